/* Eleven faults, one a kernel launch, each by one thread; `faults N` makes the Nth alone, `faults` none. */
#include <cstdio>
#include <cstdlib>

enum { N = 252 }; /* 1008 bytes: 16 are free behind each allocation, whatever comes next */
__device__ int table[64];
__device__ int other[64];

__global__ void write_behind(int *p) { if (threadIdx.x == 3) p[N] = 1; }                  /* 1 */
__global__ void read_behind(int *p, int *q) { q[threadIdx.x] = p[threadIdx.x == 4 ? N + 3 : threadIdx.x]; } /* 2 */
__global__ void read_before(int *p, int *q) { q[threadIdx.x] = p[threadIdx.x == 5 ? -1 : (int)threadIdx.x]; } /* 3 */
__global__ void null_write(int *p, int *z) { if (threadIdx.x == 6) *z = p[0]; }           /* 4 */
__global__ void wide_read(int *p, int *q) { if (threadIdx.x == 7) { int4 v = *(int4 *)(p + N); q[0] = v.x + v.y + v.z + v.w; } } /* 5 */
__global__ void atomic_behind(int *p) { if (threadIdx.x == 8) atomicAdd(p + N + 1, 1); }  /* 6 */
__global__ void freed(int *p, int *q) { if (threadIdx.x == 9) q[0] = p[0]; }              /* 7 */
__global__ void far_write(int *p, long off) { if (threadIdx.x == 10) p[off] = 2; }        /* 8 */
__global__ void table_behind(int n) { if (threadIdx.x == 11) other[n] = table[1]; }       /* 9 */
__global__ void byte_behind(char *p) { if (threadIdx.x == 12) p[N * 4] = 1; }             /* 10 */
__global__ void shared_behind(int *q, int n) { __shared__ int s[64]; s[threadIdx.x == 13 ? n : threadIdx.x & 63] = 1; __syncthreads(); q[threadIdx.x] = s[threadIdx.x & 63]; } /* 11 */
__global__ void fine(int *p, int *q)
{
    __shared__ int s[N];
    extern __shared__ int d[];
    s[threadIdx.x] = p[threadIdx.x], d[N - 1 - threadIdx.x] = 1;
    __syncthreads();
    q[threadIdx.x] = s[N - 1 - threadIdx.x] + d[threadIdx.x] + table[threadIdx.x & 63];
    other[threadIdx.x & 63] = 1;
}

int main(int argc, char **argv)
{
    int which = argc > 1 ? atoi(argv[1]) : 0;
    int *p, *q, *gone;
    cudaMalloc(&gone, 1 << 22);
    cudaMalloc(&q, N * sizeof *q);
    cudaMalloc(&p, N * sizeof *p);
    cudaMemset(p, 0, N * sizeof *p);
    fine<<<1, N, N * sizeof(int)>>>(p, q);
    if (which == 7) cudaFree(gone);
    for (int i = 0; which == 99 && i < 1100; i++) cudaMalloc(&gone, 256); // more than are told apart
    switch (which) {
    case 1: write_behind<<<1, N>>>(p); break;
    case 2: read_behind<<<1, N>>>(p, q); break;
    case 3: read_before<<<1, N>>>(p, q); break;
    case 4: null_write<<<1, N>>>(p, NULL); break;
    case 5: wide_read<<<1, N>>>(p, q); break;
    case 6: atomic_behind<<<1, N>>>(p); break;
    case 7: freed<<<1, N>>>(gone, q); break;
    case 8: far_write<<<1, N>>>(p, 1L << 40); break;
    case 9: table_behind<<<1, N>>>(64 + (1 << 26)); break;
    case 10: byte_behind<<<1, N>>>((char *)p); break;
    case 11: shared_behind<<<1, N>>>(q, 80); break;
    default: break;
    }
    fine<<<1, N, N * sizeof(int)>>>(p, q);
    cudaError_t e = cudaDeviceSynchronize();
    puts(cudaGetErrorString(e));
    return e != cudaSuccess;
}
