#!/bin/sh
# Texels of device memory by their number: lanes in a row, at one place, anywhere, some of them and all, in front of the
# first texel and behind the last, objects that differ between lanes, one that is made anew under the handle of another,
# one that was destroyed, texels that are words (which have code) and others. The CPU device's results and counts are the emulator's, with each
# vector ISA.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > texels.cu <<'C'
#include <cstdio>
#include <cstdlib>
enum { N = 1000, OUT = 1152 };
static __device__ unsigned bits(float x) { return __float_as_uint(x); }
static __device__ unsigned bits(unsigned x) { return x; }
static __device__ unsigned bits(unsigned char x) { return x; }
static __device__ unsigned bits(uint2 x) { return x.x * 31 + x.y; }
template <typename T> __global__ void fetch(cudaTextureObject_t t, cudaTextureObject_t other, const int *index, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = bits(tex1Dfetch<T>(t, i)) + 3 * bits(tex1Dfetch<T>(t, blockIdx.x * 7));
    for (int k = -2; k < 3; k++) v = v * 5 + bits(tex1Dfetch<T>(t, i + k));
    v = v * 5 + bits(tex1Dfetch<T>(t, index[i]));
    if (i % 3 == 1) v = v * 5 + bits(tex1Dfetch<T>(t, index[i] + i / 64));
    if (i % 5 > 2) v = v * 5 + bits(tex1Dfetch<T>(t, i * 2 - 100));
    v = v * 5 + bits(tex1Dfetch<T>(i & 1 ? t : other, index[i]));
    out[i] = v;
}
__global__ void inside(cudaTextureObject_t t, float *out) { out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); }
template <typename T> static cudaTextureObject_t object(const void *at)
{
    cudaResourceDesc r = {};
    cudaTextureDesc t = {};
    cudaTextureObject_t o = 0;
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = (void *)at, r.res.linear.sizeInBytes = N * sizeof(T), r.res.linear.desc = cudaCreateChannelDesc<T>();
    t.readMode = cudaReadModeElementType;
    if (cudaCreateTextureObject(&o, &r, &t, NULL)) exit(9);
    return o;
}
template <typename T> static void run(const char *name)
{
    static unsigned char host[2 * 4096 * sizeof(T)];
    static unsigned got[OUT];
    static int index[OUT];
    char *at;
    int *places;
    unsigned *out;
    for (size_t i = 0; i < sizeof host; i++) host[i] = (unsigned char)(i * 37 % 251);
    for (int i = 0; i < OUT; i++) index[i] = i % 50 == 7 ? -i : i * 613 % (N + 3);
    cudaMalloc(&at, sizeof host), cudaMalloc(&places, sizeof index), cudaMalloc(&out, sizeof got);
    cudaMemcpy(at, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpy(places, index, sizeof index, cudaMemcpyHostToDevice);
    for (int k = 0; k < 3; k++) {
        cudaTextureObject_t t = object<T>(at + k * 512), other = object<T>(at + 4096);
        unsigned sum = 0;
        for (int again = 0; again < 2; again++) fetch<T><<<OUT / 96, 96>>>(t, other, places, out);
        if (cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost)) exit(8);
        for (int i = 0; i < OUT; i++) sum = sum * 31 + got[i];
        printf("%s, %d: %u\n", name, k, sum);
        cudaDestroyTextureObject(t), cudaDestroyTextureObject(other);
    }
    cudaFree(at), cudaFree(places), cudaFree(out);
}
int main(int n, char **)
{
    if (n > 1) { /* a launch with an object that was destroyed after the one before */
        void *at, *out;
        if (cudaMalloc(&at, 8192) || cudaMalloc(&out, 4096)) return 9;
        cudaTextureObject_t t = object<float>(at);
        for (int k = 0; k < 2; k++) {
            inside<<<1, 64>>>(t, (float *)out);
            printf("destroyed, %d: %d\n", k, cudaDeviceSynchronize());
            cudaDestroyTextureObject(t);
        }
        return 0;
    }
    run<float>("float"), run<unsigned>("unsigned"), run<unsigned char>("char"), run<uint2>("pair");
}
C
"$NVCC" -O3 -arch=sm_90 -cudart shared texels.cu -o texels || { echo "FAIL nvcc"; exit 1; }
. "$ROOT/tests/cpu/counted.inc"
gone() { "$MARGAY" run -q --workers 1 -t none -o "$1.gone" --device "$2" -- ./texels gone 2>&1 | grep -v profile > "$1.gone.out"; }
counted emu texels --device emu
gone emu emu
for isa in ${ISA:-avx512 avx2 base}; do
    MARGAY_CPU_TIER=sync MARGAY_ISA=$isa counted cpu.$isa texels --device cpu
    MARGAY_CPU_TIER=sync MARGAY_ISA=$isa gone cpu.$isa cpu
    as_emulator cpu.$isa out counts gone.out
done
grep -q '^destroyed, 0: 0' emu.gone.out && grep -q '^destroyed, 1: [1-9]' emu.gone.out || { echo "FAIL a destroyed object was read"; cat emu.gone.out; exit 1; }
[ "$(sort -u emu.out | grep -c , )" -ge 12 ] && grep -q '[1-9]' emu.counts || { echo "FAIL nothing was compared"; cat emu.out; exit 1; }
