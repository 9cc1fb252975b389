// Kernels whose accesses go through a channel: saxpy, stencil, bfs. channel KERNEL SIZE: one small launch, then the large
// ones between two events; prints their time.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(x) do { cudaError_t e = (x); if (e) { fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void saxpy(const float *x, float *y, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

__global__ void stencil(const float *in, float *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && x < w - 1 && y > 0 && y < h - 1) {
        size_t i = (size_t)y * w + x;
        out[i] = .25f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]) + .1f * in[i];
    }
}

__global__ void bfs(const int *at, const int *to, int *cost, int *changed, int n, int level)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || cost[i] != level)
        return;
    for (int e = at[i]; e < at[i + 1]; e++)
        if (cost[to[e]] < 0) {
            cost[to[e]] = level + 1;
            *changed = 1;
        }
}

static unsigned state = 7;
static unsigned next()
{
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

static float *floats(size_t n)
{
    float *p;
    CHECK(cudaMalloc(&p, n * 4));
    CHECK(cudaMemset(p, 0, n * 4));
    return p;
}

static int *upload(const std::vector<int> &v)
{
    int *p;
    CHECK(cudaMalloc(&p, v.size() * 4));
    CHECK(cudaMemcpy(p, v.data(), v.size() * 4, cudaMemcpyHostToDevice));
    return p;
}

int main(int argc, char **argv)
{
    const char *kernel = argc > 1 ? argv[1] : "saxpy";
    int n = argc > 2 ? atoi(argv[2]) : 1 << 20;
    float ms = 0;
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    if (!strcmp(kernel, "saxpy")) {
        float *x = floats(n), *y = floats(n);
        saxpy<<<4, 256>>>(x, y, 2, 1024);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(begin));
        saxpy<<<(n + 255) / 256, 256>>>(x, y, 2, n);
    } else if (!strcmp(kernel, "stencil")) {
        float *a = floats((size_t)n * n), *b = floats((size_t)n * n);
        stencil<<<dim3(2, 8), dim3(32, 8)>>>(a, b, 64, 64);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(begin));
        stencil<<<dim3((n + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(a, b, n, n);
    } else {
        std::vector<int> at(n + 1), to, cost(n, -1), zero(1, 0);
        for (int i = 0; i < n; i++) {
            at[i] = (int)to.size();
            for (int d = next() % 100 < 3 ? 2 + next() % 60 : 2 + next() % 9; d; d--)
                to.push_back(next() % n);
        }
        at[n] = (int)to.size();
        cost[0] = 0;
        int *a = upload(at), *t = upload(to), *c = upload(cost), *changed = upload(zero), more = 1;
        bfs<<<1, 256>>>(a, t, c, changed, 256, 99);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(begin));
        for (int level = 0; more; level++) {
            CHECK(cudaMemset(changed, 0, 4));
            bfs<<<(n + 255) / 256, 256>>>(a, t, c, changed, n, level);
            CHECK(cudaMemcpy(&more, changed, 4, cudaMemcpyDeviceToHost));
        }
    }
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    printf("%.3f ms\n", ms);
    return 0;
}
