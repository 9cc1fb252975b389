/* How long a multiprocessor takes for the requests that go through its texture unit: rows COST_UNIT of
 * src/report/advice/costs.def are four times what this prints. Two CTAs of 32 warps a multiprocessor, everything in L1;
 * stores go to L2, where multiprocessors wait for each other, so that they have no row.
 *   nvcc -O3 -arch=sm_90 -o texture bench/advise/texture.cu && ./texture */
#include <cstdio>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#define N 256
enum { LDG, TEX1F, TEX1F4, TEX1L, TEX2P, TEX2L, TEX3P, SULD, TLD4, SUST };
static const char *names[] = {"ld.global.nc", "tex.1d.s32 float", "tex.1d.s32 float4", "tex.1d.f32 linear",
                              "tex.2d point", "tex.2d linear",    "tex.3d point",      "suld.2d",
                              "tld4.2d",      "sust.2d"};
template <int K>
__global__ void k(cudaTextureObject_t t, cudaSurfaceObject_t s, const float *p, float *out, long long *when, int step)
{
    int lane = threadIdx.x & 31, base = (threadIdx.x >> 5) * 32 & 511;
    float sum = 0;
    __syncthreads();
    long long begin = clock64();
#pragma unroll 8
    for (int i = 0; i < N; i++) {
        int x = (base + lane + i * step) & 511;
        if (K == LDG) sum += __ldg(p + x);
        if (K == TEX1F) sum += tex1Dfetch<float>(t, x);
        if (K == TEX1F4) {
            float4 v = tex1Dfetch<float4>(t, x);
            sum += v.x + v.w;
        }
        if (K == TEX1L) sum += tex1D<float>(t, x + .5f);
        if (K == TEX2P || K == TEX2L) sum += tex2D<float>(t, (x & 31) + .5f, (x >> 5) + .5f);
        if (K == TEX3P) sum += tex3D<float>(t, (x & 31) + .5f, (x >> 5 & 3) + .5f, (x >> 7) + .5f);
        if (K == SULD) sum += surf2Dread<float>(s, (x & 31) * 4, x >> 5);
        if (K == SUST) surf2Dwrite<float>(sum + i, s, (x & 31) * 4, x >> 5);
        if (K == TLD4) sum += tex2Dgather<float4>(t, (x & 31) + .5f, (x >> 5) + .5f, 0).x;
    }
    long long end = clock64();
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    if (!threadIdx.x) when[2 * blockIdx.x] = begin, when[2 * blockIdx.x + 1] = end;
}
template <int K>
void run(int sms, cudaTextureObject_t t, cudaSurfaceObject_t s, const float *p, float *out, long long *when)
{
    std::vector<long long> w(4 * sms);
    double best = 1e30;
    for (int r = 0; r < 5; r++) {
        k<K><<<2 * sms, 1024>>>(t, s, p, out, when, 32);
        cudaMemcpy(w.data(), when, w.size() * 8, cudaMemcpyDeviceToHost);
        std::vector<double> d;
        for (int i = 0; i < 2 * sms; i++) d.push_back(w[2 * i + 1] - w[2 * i]);
        std::sort(d.begin(), d.end());
        best = std::min(best, d[d.size() / 2]);
    }
    printf("%-20s %.2f cycles a warp request  (%s)\n", names[K], best / (64. * N),
           cudaGetErrorString(cudaGetLastError()));
}
int main()
{
    int sms;
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    float *p, *out;
    long long *when;
    cudaMalloc(&p, 1 << 16), cudaMalloc(&out, 4 << 20), cudaMalloc(&when, 1 << 16);
    cudaMemset(p, 0, 1 << 16);
    auto linear = [&](cudaChannelFormatDesc d) {
        cudaResourceDesc r = {};
        r.resType = cudaResourceTypeLinear;
        r.res.linear = {p, d, 1 << 16};
        cudaTextureDesc td = {};
        td.readMode = cudaReadModeElementType;
        cudaTextureObject_t t;
        cudaCreateTextureObject(&t, &r, &td, 0);
        return t;
    };
    auto array = [&](int w, int h, int dd, bool lin) {
        cudaArray_t a;
        auto d = cudaCreateChannelDesc<float>();
        cudaMalloc3DArray(&a, &d, make_cudaExtent(w, h, dd),
                          dd ? 0 : cudaArraySurfaceLoadStore | cudaArrayTextureGather * (h > 1));
        cudaResourceDesc r = {};
        r.resType = cudaResourceTypeArray;
        r.res.array.array = a;
        cudaTextureDesc td = {};
        td.readMode = cudaReadModeElementType;
        td.filterMode = lin ? cudaFilterModeLinear : cudaFilterModePoint;
        cudaTextureObject_t t;
        cudaCreateTextureObject(&t, &r, &td, 0);
        cudaSurfaceObject_t s = 0;
        if (!dd) cudaCreateSurfaceObject(&s, &r);
        return std::make_pair(t, s);
    };
    auto one = linear(cudaCreateChannelDesc<float>()), four = linear(cudaCreateChannelDesc<float4>());
    auto l1 = array(512, 0, 0, true), p2 = array(32, 16, 0, false), l2 = array(32, 16, 0, true),
         p3 = array(32, 4, 4, false);
    run<LDG>(sms, 0, 0, p, out, when), run<TEX1F>(sms, one, 0, p, out, when), run<TEX1F4>(sms, four, 0, p, out, when),
        run<TEX1L>(sms, l1.first, 0, p, out, when), run<TEX2P>(sms, p2.first, 0, p, out, when),
        run<TEX2L>(sms, l2.first, 0, p, out, when), run<TEX3P>(sms, p3.first, 0, p, out, when),
        run<SULD>(sms, 0, p2.second, p, out, when), run<TLD4>(sms, p2.first, 0, p, out, when),
        run<SUST>(sms, 0, p2.second, p, out, when);
}
