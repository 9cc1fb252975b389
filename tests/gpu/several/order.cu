/* Kernels of two GPUs that wait for one another by events: A on device 0, B on device 1, in turns. A's end lies before B's
 * begin and B's end before the next A's begin, whatever clocks say.   order ROUNDS NANOSECONDS */
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#define CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(e_)); exit(2); } } while (0)
__device__ void spin(long long ns)
{
    long long from, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(from));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - from < ns);
}
__global__ void even(long long ns) { spin(ns); }
__global__ void odd(long long ns) { spin(ns); }
int main(int, char **argv)
{
    int rounds = atoi(argv[1]), n;
    long long ns = atoll(argv[2]);
    CHECK(cudaGetDeviceCount(&n));
    cudaStream_t s[2];
    cudaEvent_t e[2];
    for (int d = 0; d < 2; d++) {
        CHECK(cudaSetDevice(d % n));
        CHECK(cudaStreamCreateWithFlags(&s[d], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&e[d], cudaEventDisableTiming));
    }
    for (int i = 0; i < rounds; i++) {
        for (int d = 0; d < 2; d++) {
            CHECK(cudaSetDevice(d % n));
            if (i || d) CHECK(cudaStreamWaitEvent(s[d], e[!d], 0));
            if (d) odd<<<1, 1, 0, s[d]>>>(ns);
            else even<<<1, 1, 0, s[d]>>>(ns);
            CHECK(cudaEventRecord(e[d], s[d]));
        }
        if (i % 50 == 49) CHECK(cudaStreamSynchronize(s[1]));
    }
    CHECK(cudaStreamSynchronize(s[1]));
    printf("%d rounds\n", rounds);
}
