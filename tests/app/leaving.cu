/* Leaves main while detached threads go on launching. usage: leaving THREADS MICROSECONDS: exit 7, so long after every
 * thread has launched ten kernels. A launch that fails ends the process with 9. */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>

__global__ void turn(int *p)
{
    int v = p[threadIdx.x];
    for (int i = 0; i < 100; i++) v = v * 1664525 + 1013904223;
    p[threadIdx.x] = v;
}

static std::atomic<int> up;

static void launch_for_ever(int *p)
{
    cudaStream_t s;
    cudaStreamCreate(&s);
    for (int k = 0;; k++) {
        turn<<<2, 64, 0, s>>>(p);
        if (cudaGetLastError() != cudaSuccess) _exit(9);
        if (k == 10) up++;
        if (k % 16 == 0) cudaStreamSynchronize(s);
    }
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 2, *p;
    if (cudaMalloc(&p, 4096 * n) != cudaSuccess) return 1;
    for (int t = 0; t < n; t++) std::thread(launch_for_ever, p + 1024 * t).detach();
    while (up < n) usleep(100);
    usleep(argc > 2 ? atoi(argv[2]) : 0);
    return 7;
}
