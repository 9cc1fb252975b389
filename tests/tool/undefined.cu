/* Values that nobody wrote, on their way through CUDA's runtime: what was allocated anew, what was copied. */
#include <cstdio>
#include <cstdlib>

__global__ void decide(const int *in, int *out)
{
    if (in[threadIdx.x] > 3) out[threadIdx.x] = 1; // DECIDES
    else atomicAdd(&out[0], 2);
}

__global__ void add_up(const float *in, float *out, int n)
{
    float sum; // never set
    for (int i = 0; i < n; i++) sum += in[i];
    out[threadIdx.x] = sum; // STORES
}

__global__ void twice(const int *in, int *out) { out[threadIdx.x] = 2 * in[threadIdx.x]; } // TWICE

int main(int argc, char **argv)
{
    enum { N = 64 };
    int *a, *b, host[N] = {0};
    int which = atoi(argv[1]);
    cudaMalloc(&a, sizeof host);
    cudaMalloc(&b, sizeof host);
    cudaMemset(b, 0, sizeof host);
    if (which != 1) cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
    if (which == 2) { /* handed out anew */
        cudaFree(a);
        cudaMalloc(&a, sizeof host);
    }
    if (which <= 2 || which == 5) decide<<<1, N>>>(a, b);
    if (which == 3) add_up<<<1, N>>>((float *)a, (float *)b, argc + 1);
    if (which == 4) { /* copied within the device, and from there to the host */
        cudaFree(a);
        cudaMalloc(&a, sizeof host);
        int *c;
        cudaMalloc(&c, sizeof host);
        twice<<<1, N>>>(a, c);
        cudaMemcpy(b, c, sizeof host, cudaMemcpyDeviceToDevice);
    }
    if (which == 6) twice<<<1, N>>>(a, b);
    cudaError_t e = which == 7 ? cudaSuccess : cudaMemcpy(host, b, sizeof host, cudaMemcpyDeviceToHost);
    puts(e ? "failed" : "well");
    return e != 0;
}
