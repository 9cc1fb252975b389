// A warp reads 32 words twice; between, one instruction that may empty L1. argv[1] says which.
#include <cstdio>
#include <cstdlib>

#define BETWEEN(instruction) asm volatile(instruction : "=r"(v) : "l"(flag) : "memory")

__global__ void again(const unsigned *in, unsigned *flag, unsigned *out, int how)
{
    unsigned a, b, v = 0;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(a) : "l"(in + threadIdx.x) : "memory");
    switch (how) {
    case 1: BETWEEN("ld.acquire.gpu.global.u32 %0, [%1];"); break;
    case 2: BETWEEN("ld.acquire.sys.global.u32 %0, [%1];"); break;
    case 3: BETWEEN("atom.acquire.gpu.global.add.u32 %0, [%1], 1;"); break;
    case 4: BETWEEN("atom.acq_rel.cluster.global.add.u32 %0, [%1], 1;"); break;
    case 5: BETWEEN("ld.acquire.cta.global.u32 %0, [%1];"); break;
    case 6: BETWEEN("ld.relaxed.gpu.global.u32 %0, [%1];"); break;
    case 7: BETWEEN("atom.release.gpu.global.add.u32 %0, [%1], 1;"); break;
    }
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(b) : "l"(in + threadIdx.x) : "memory");
    out[threadIdx.x] = a + b + (v > 99);
}

int main(int argc, char **argv)
{
    unsigned *in, *flag, *out;
    if (argc < 2 || cudaMalloc(&in, 128) || cudaMalloc(&flag, 4) || cudaMalloc(&out, 128)) return 1;
    cudaMemset(in, 0, 128);
    cudaMemset(flag, 0, 4);
    again<<<1, 32>>>(in, flag, out, atoi(argv[1]));
    return cudaDeviceSynchronize() != cudaSuccess;
}
