// Functions that the compiler inlines, and one that stays a call: what source view and flame graph show of them.
__device__ __forceinline__ int twist(int x) { return x * 7 ^ (x >> 3); }
__device__ __forceinline__ int both(int x)
{
    int y = twist(x);
    return y + twist(y ^ 5);
}
__device__ __noinline__ int apart(int v, int n)
{
    for (int k = 0; k < n; k++) v = twist(v) + k;
    return v;
}
extern "C" __global__ void walk(int n, const int *in, int *out)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    out[at] = both(in[at]) + apart(in[at], n);
}
