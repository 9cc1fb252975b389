/* What the programs with planted faults share: `PROGRAM fault|sound`; both print the same result. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t e_ = (call);                                                                                       \
        if (e_ != cudaSuccess) {                                                                                       \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e_));                                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

template <class T> static T *to_device(const std::vector<T> &v)
{
    T *d;
    CHECK(cudaMalloc(&d, v.size() * sizeof(T)));
    CHECK(cudaMemcpy(d, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return d;
}

template <class T> static std::vector<T> from_device(const T *d, size_t n)
{
    std::vector<T> v(n);
    CHECK(cudaMemcpy(v.data(), d, n * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
}

static unsigned mix(unsigned x) /* a number that looks random */
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

static bool is_fault(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "fault")) return true;
    if (argc == 2 && !strcmp(argv[1], "sound")) return false;
    fprintf(stderr, "usage: %s fault|sound\n", argv[0]);
    exit(2);
}

template <class T> static void print_sum(const std::vector<T> &v)
{
    double sum = 0;
    for (size_t i = 0; i < v.size(); i++) sum += (double)v[i] * (double)(i % 97 + 1);
    printf("%.6f\n", sum);
}
