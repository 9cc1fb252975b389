// Guarded accesses that whole warps make or do not: a store to global memory, a load from there or from shared memory.
__global__ void guards(int n, bool far, int *a, int *b)
{
    __shared__ int s[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x, *p = far ? a : s;
    s[threadIdx.x] = i;
    __syncthreads();
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %0, %1; @p st.global.u32 [%2], %0; @!p ld.u32 %0, [%3]; st.global.u32 [%4], %0; }"
                 : "+r"(i) : "r"(n), "l"(a + i), "l"(p + threadIdx.x), "l"(b + i));
}

int main()
{
    int *a;
    if (cudaMalloc(&a, 1024)) return 1;
    guards<<<2, 64>>>(32, false, a, a + 128);
    return cudaDeviceSynchronize() != cudaSuccess;
}
