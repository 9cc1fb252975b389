/* Races on global memory, planted: kernel r_NAME races at the lines marked "NAME: one" and "NAME: other" (one line
 * when it races with itself), and s_NAME does the same soundly. */
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda/atomic>
namespace cg = cooperative_groups;

#define N 64 /* threads of a CTA */
__device__ unsigned counter;
__device__ int flag;

__global__ void r_fence(int *data, int *out) /* the flag is raised without a fence */
{
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            data[0] = 7; // fence: one
            atomicExch(&flag, 1);
        }
    } else if (threadIdx.x == 0) {
        while (atomicAdd(&flag, 0) == 0) {}
        __threadfence();
        out[blockIdx.x] = data[0]; // fence: other
    }
}
__global__ void s_fence(int *data, int *out)
{
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            data[0] = 7;
            __threadfence();
            atomicExch(&flag, 1);
        }
    } else if (threadIdx.x == 0) {
        while (atomicAdd(&flag, 0) == 0) {}
        __threadfence();
        out[0] = data[0];
    }
}
__global__ void r_acquire(int *data, int *out) /* and read without one */
{
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            data[0] = 7; // acquire: one
            __threadfence();
            *(volatile int *)&flag = 1;
        }
    } else if (threadIdx.x == 0) {
        while (*(volatile int *)&flag == 0) {}
        out[blockIdx.x] = data[0]; // acquire: other
    }
}
__global__ void s_acquire(int *data, int *out) /* volatile flag, fences on both sides */
{
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            data[0] = 7;
            __threadfence();
            *(volatile int *)&flag = 1;
        }
    } else if (threadIdx.x == 0) {
        while (*(volatile int *)&flag == 0) {}
        __threadfence();
        out[0] = data[0];
    }
}
__global__ void r_barrier(int *data, int *out) /* the others' stores are not behind the flag */
{
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x; // barrier: one
        if (threadIdx.x == 0) {
            __threadfence();
            atomicExch(&flag, 1);
        }
    } else {
        if (threadIdx.x == 0)
            while (atomicAdd(&flag, 0) == 0) {}
        __syncthreads();
        out[blockIdx.x * N + threadIdx.x] = data[threadIdx.x]; // barrier: other
    }
}
__global__ void s_barrier(int *data, int *out)
{
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicExch(&flag, 1);
        }
    } else {
        if (threadIdx.x == 0)
            while (atomicAdd(&flag, 0) == 0) {}
        __syncthreads();
        out[threadIdx.x] = data[threadIdx.x];
    }
}
__global__ void r_scope(int *data, int *out) /* a fence of the CTA for a reader in another */
{
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            data[0] = 7; // scope: one
            __threadfence_block();
            atomicExch(&flag, 1);
        }
    } else if (threadIdx.x == 0) {
        while (atomicAdd(&flag, 0) == 0) {}
        __threadfence();
        out[blockIdx.x] = data[0]; // scope: other
    }
}
__global__ void s_scope(int *data, int *out) /* in one CTA it is enough */
{
    if (threadIdx.x == 0) {
        data[blockIdx.x * N] = 7;
        __threadfence_block();
        atomicExch(&data[blockIdx.x * N + 1], 1);
    } else if (threadIdx.x == 32) {
        while (atomicAdd(&data[blockIdx.x * N + 1], 0) == 0) {}
        __threadfence_block();
        out[blockIdx.x] = data[blockIdx.x * N];
    }
}
__global__ void r_counter(int *data, int *) /* counted without an atomic */
{
    if (threadIdx.x == 0) data[0] = data[0] + 1; // counter: one // counter: other
}
__global__ void s_counter(int *data, int *)
{
    if (threadIdx.x == 0) atomicAdd(&data[0], 1);
}
__global__ void r_grid(int *data, int *out) /* the sum before all CTAs have written theirs */
{
    if (threadIdx.x == 0) data[blockIdx.x] = blockIdx.x; // grid: one
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < gridDim.x; i++) sum += data[i]; // grid: other
        out[0] = sum;
    }
}
__global__ void s_grid(int *data, int *out)
{
    if (threadIdx.x == 0) data[blockIdx.x] = blockIdx.x;
    cg::this_grid().sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < gridDim.x; i++) sum += data[i];
        out[0] = sum;
    }
}
__global__ void r_buffer(int *data, int *) /* the buffer that is read is the one that is written: off by one */
{
    int t = blockIdx.x * N + threadIdx.x, n = gridDim.x * N;
    for (int step = 0; step < 4; step++) {
        int *from = data + (step + 1) / 2 % 2 * n, *to = data + (step & 1) * n; // steps 1 and 2 differ from 0 and 1
        int left = from[(t + n - N) % n]; // buffer: one
        to[t] = left + step; // buffer: other
        cg::this_grid().sync();
    }
}
__global__ void s_buffer(int *data, int *)
{
    int t = blockIdx.x * N + threadIdx.x, n = gridDim.x * N;
    for (int step = 0; step < 4; step++) {
        int *from = data + (step & 1) * n, *to = data + (~step & 1) * n;
        int left = from[(t + n - N) % n];
        to[t] = left + step;
        cg::this_grid().sync();
    }
}
__global__ void r_histogram(int *data, int *) /* bins without atomics */
{
    int bin = threadIdx.x % 4;
    int old = data[bin];
    data[bin] = old + threadIdx.x; // histogram: one // histogram: other
}
__global__ void s_histogram(int *data, int *)
{
    atomicAdd(&data[threadIdx.x % 4], (int)threadIdx.x);
}
__global__ void r_values(int *data, int *) /* two CTAs store different values */
{
    if (threadIdx.x == 5) data[3] = blockIdx.x; // values: one // values: other
}
__global__ void s_values(int *data, int *) /* the same value: a note */
{
    if (threadIdx.x == 5) data[3] = 1;
}
__global__ void s_crowd(int *data, int *) /* all CTAs at the same pace: what another one stores is often not in the memory yet */
{
    for (int i = threadIdx.x; i < 1 << 14; i += N) data[i] = i + 1;
}
__global__ void r_part(int *data, int *) /* of one store half has the same value */
{
    if (threadIdx.x == 5) ((int2 *)data)[3] = make_int2(1, blockIdx.x); // part: one // part: other
}
__global__ void r_halo(int *data, int *out) /* a neighbour's border is read while it is written */
{
    int t = blockIdx.x * N + threadIdx.x;
    data[t] = t; // halo: one
    __syncthreads();
    out[t] = data[(t + 1) % (gridDim.x * N)]; // halo: other
}
__global__ void s_halo(int *data, int *out) /* borders stay in the CTA */
{
    int t = blockIdx.x * N + threadIdx.x;
    data[t] = t;
    __syncthreads();
    out[t] = data[blockIdx.x * N + (threadIdx.x + 1) % N];
}
__global__ void r_last(int *data, int *out) /* the last CTA sums up; nobody fenced */
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        data[blockIdx.x] = 1; // last: one
        last = atomicInc(&counter, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        for (int i = 0; i < gridDim.x; i++) out[0] += data[i]; // last: other
}
__global__ void s_last(int *data, int *out)
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        data[blockIdx.x] = 1;
        __threadfence();
        last = atomicInc(&counter, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        for (int i = 0; i < gridDim.x; i++) out[0] += data[i];
}
__global__ void r_warps(int *data, int *out) /* two warps of a CTA, no barrier between */
{
    if (threadIdx.x < 32) data[blockIdx.x * N + threadIdx.x] = 1; // warps: one
    if (threadIdx.x >= 32) out[blockIdx.x * N + threadIdx.x] = data[blockIdx.x * N + threadIdx.x - 32]; // warps: other
}
__global__ void s_warps(int *data, int *out)
{
    if (threadIdx.x < 32) data[blockIdx.x * N + threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x >= 32) out[blockIdx.x * N + threadIdx.x] = data[blockIdx.x * N + threadIdx.x - 32];
}
__global__ void r_lanes(int *data, int *) /* lanes of a warp store different values in one instruction */
{
    if (threadIdx.x < 8) data[blockIdx.x * N] = threadIdx.x; // lanes: one // lanes: other
}
__global__ void s_lanes(int *data, int *)
{
    if (threadIdx.x < 8) data[blockIdx.x * N] = blockIdx.x;
}
/* As atomicExch() and atomicAdd(), but on the kernel's own line. */
#define EXCHANGE(to, at, v) asm volatile("atom.global.exch.b32 %0, [%1], %2;" : "=r"(to) : "l"(at), "r"(v) : "memory")
#define ADD(at, v) asm volatile("red.global.add.u32 [%0], %1;" ::"l"(at), "r"(v) : "memory")
__global__ void r_exchange(int *data, int *) /* an atomic exchange and a store, of different values */
{
    int old;
    if (threadIdx.x || blockIdx.x > 1) return;
    if (blockIdx.x) data[3] = 2; // exchange: one
    else EXCHANGE(old, data + 3, 1); // exchange: other
}
__global__ void s_exchange(int *data, int *) /* of one value: a note */
{
    if (threadIdx.x || blockIdx.x > 1) return;
    if (blockIdx.x) data[3] = 1;
    else atomicExch(&data[3], 1);
}
__global__ void r_exchanged(int *data, int *out) /* of one value, but who comes first decides what out gets */
{
    if (threadIdx.x || blockIdx.x > 1) return;
    if (blockIdx.x) data[3] = 1; // exchanged: one
    else EXCHANGE(out[0], data + 3, 1); // exchanged: other
}
__global__ void r_added(int *data, int *) /* the store leaves what is there, but is lost or makes the sum wrong */
{
    if (threadIdx.x || blockIdx.x > 1) return;
    if (blockIdx.x) data[3] = 0; // added: one
    else ADD(data + 3, 0); // added: other
}
/* Sound, of forms of their own. */
__global__ void s_lookback(int *data, int *out) /* each CTA waits for the sum of the one before: value and state in one word */
{
    unsigned long long *state = (unsigned long long *)data;
    __shared__ int before;
    if (threadIdx.x == 0) {
        unsigned long long s = 0;
        while (blockIdx.x && !((s = cuda::atomic_ref<unsigned long long>(state[blockIdx.x - 1]).load(cuda::memory_order_relaxed)) >> 32)) {}
        before = (int)s;
        cuda::atomic_ref<unsigned long long>(state[blockIdx.x]).store((unsigned)(before + 3) | 1ull << 32, cuda::memory_order_relaxed);
    }
    __syncthreads();
    out[blockIdx.x * N + threadIdx.x] = before;
}
__global__ void s_lock(int *data, int *)
{
    if (threadIdx.x == 0) {
        while (atomicCAS(&flag, 0, 1)) {}
        __threadfence();
        data[9] += 1;
        __threadfence();
        atomicExch(&flag, 0);
    }
}
__global__ void s_bytes(int *data, int *) /* neighbouring bytes of one word */
{
    ((char *)data)[blockIdx.x * N + threadIdx.x] = threadIdx.x;
    if (threadIdx.x == 0) ((char *)data)[4096 + blockIdx.x] = 1;
}
__global__ void s_fences(int *data, int *out) /* every thread fences, one publishes behind the barrier */
{
    __shared__ bool last;
    data[blockIdx.x * N + threadIdx.x] = 2;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&counter, 1) == gridDim.x - 1;
    __syncthreads();
    if (last) out[threadIdx.x] = data[threadIdx.x * 4 % (gridDim.x * N)];
}
__global__ void s_release(int *data, int *out)
{
    cuda::atomic_ref<int, cuda::thread_scope_device> f(flag);
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        data[1] = 4;
        f.store(1, cuda::memory_order_release);
    } else if (blockIdx.x == 1) { /* hands it on */
        while (!f.load(cuda::memory_order_acquire)) {}
        data[2] = data[1] + 1;
        f.store(2, cuda::memory_order_release);
    } else {
        while (f.load(cuda::memory_order_acquire) != 2) {}
        out[blockIdx.x] = data[1] + data[2];
    }
}

typedef void (*kernel)(int *, int *);
int main()
{
    static const kernel all[] = {r_fence, s_fence, r_acquire, s_acquire, r_barrier, s_barrier, r_scope, s_scope, r_counter, s_counter, r_grid, s_grid, r_buffer, s_buffer, r_histogram,
                                 s_histogram, r_values, s_values, s_crowd, r_part, r_halo, s_halo, r_last, s_last, r_warps, s_warps, r_lanes, s_lanes, r_exchange, s_exchange, r_exchanged, r_added, s_lookback, s_lock, s_bytes, s_fences, s_release};
    int *data, *out, zero = 0;
    cudaMalloc(&data, 1 << 16);
    cudaMalloc(&out, 1 << 16);
    for (kernel k : all) {
        cudaMemset(data, 0, 1 << 16);
        cudaMemcpyToSymbol(flag, &zero, 4);
        cudaMemcpyToSymbol(counter, &zero, 4);
        void *args[] = {&data, &out};
        cudaError_t e = cudaLaunchCooperativeKernel((void *)k, 4, N, args, 0, 0);
        if (e == cudaSuccess) e = cudaDeviceSynchronize();
        if (e != cudaSuccess) return puts(cudaGetErrorString(e)), 1;
    }
    puts("done");
}
