// One of ten parallel algorithms of CUDA's core libraries over elements of 1, 4, 8 or 16 bytes, at sizes around
// the borders of tiles; each result is compared with the host's own computation.
//   nvcc -DTORTURE_ALGORITHM=TORTURE_SCAN -DTORTURE_BYTES=4 algorithm.cu; ./a.out [ROUNDS [SEED]]
// ALGORITHM: SCAN SCAN_BY_KEY REDUCE REDUCE_BY_KEY SELECT PARTITION UNIQUE SORT HISTOGRAM RUN_LENGTH
// Prints one line and ends with 0, or says which element is wrong and ends with 1.
#define TORTURE_SCAN 1
#define TORTURE_SCAN_BY_KEY 2
#define TORTURE_REDUCE 3
#define TORTURE_REDUCE_BY_KEY 4
#define TORTURE_SELECT 5
#define TORTURE_PARTITION 6
#define TORTURE_UNIQUE 7
#define TORTURE_SORT 8
#define TORTURE_HISTOGRAM 9
#define TORTURE_RUN_LENGTH 10

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <thrust/device_vector.h>
#if TORTURE_ALGORITHM == TORTURE_SCAN || TORTURE_ALGORITHM == TORTURE_SCAN_BY_KEY
#include <thrust/scan.h>
#elif TORTURE_ALGORITHM == TORTURE_REDUCE || TORTURE_ALGORITHM == TORTURE_REDUCE_BY_KEY
#include <thrust/reduce.h>
#elif TORTURE_ALGORITHM == TORTURE_SELECT
#include <thrust/copy.h>
#elif TORTURE_ALGORITHM == TORTURE_PARTITION
#include <thrust/partition.h>
#elif TORTURE_ALGORITHM == TORTURE_UNIQUE
#include <thrust/unique.h>
#elif TORTURE_ALGORITHM == TORTURE_SORT
#include <thrust/sort.h>
#elif TORTURE_ALGORITHM == TORTURE_HISTOGRAM
#include <cub/device/device_histogram.cuh>
#else
#include <cub/device/device_run_length_encode.cuh>
#endif

#define BOTH __host__ __device__

#if TORTURE_BYTES == 1
typedef uint8_t T;
static BOTH T make(uint64_t v) { return (T)v; }
static BOTH uint64_t word(T v) { return v; }
#elif TORTURE_BYTES == 4
typedef int T;
static BOTH T make(uint64_t v) { return (T)(v & 0xfff); }
static BOTH uint64_t word(T v) { return (uint64_t)v; }
#elif TORTURE_BYTES == 8
typedef long long T;
static BOTH T make(uint64_t v) { return (T)(v * 0x100000001ull & 0xfff00000fffull); }
static BOTH uint64_t word(T v) { return (uint64_t)v; }
#elif TORTURE_ALGORITHM == TORTURE_HISTOGRAM
typedef __int128 T; // its samples are numbers
static BOTH T make(uint64_t v) { return (T)v << 64 | ~v; }
static BOTH uint64_t word(T v) { return (uint64_t)(v >> 64); }
#else
struct alignas(16) T { uint64_t a, b; }; // a torn one has a wrong b
static BOTH T make(uint64_t v) { return T{v, ~v}; }
static BOTH uint64_t word(T v) { return v.a; }
static BOTH bool operator==(T x, T y) { return x.a == y.a && x.b == y.b; }
static BOTH bool operator!=(T x, T y) { return !(x == y); }
static BOTH bool operator<(T x, T y) { return x.a < y.a || (x.a == y.a && x.b < y.b); }
#endif

// Scans and reductions by key: associative, and of 16 bytes not commutative (maps x -> a x + b, one after the other).
struct Join {
    BOTH T operator()(const T &x, const T &y) const
    {
#if TORTURE_BYTES == 16 && TORTURE_ALGORITHM != TORTURE_HISTOGRAM
        return T{y.a * x.a, y.a * x.b + y.b};
#else
        return (T)(x + y);
#endif
    }
};
// Reductions may take elements in any order.
struct Sum {
    BOTH T operator()(const T &x, const T &y) const
    {
#if TORTURE_BYTES == 16 && TORTURE_ALGORITHM != TORTURE_HISTOGRAM
        return T{x.a + y.a, x.b ^ y.b};
#else
        return (T)(x + y);
#endif
    }
};
struct Chosen { BOTH bool operator()(const T &x) const { return word(x) % 3 == 1; } };

static uint64_t seed;
static uint64_t next()
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return seed >> 33;
}

static const size_t N = 150001;
static std::vector<T> values(size_t n, bool runs)
{
    std::vector<T> v(n);
    T last = make(next());
    for (auto &x : v) {
        if (!runs || next() % 4 == 0) last = make(next());
        x = last;
    }
    return v;
}
static std::vector<int> keys(size_t n)
{
    std::vector<int> k(n);
    int at = 0;
    for (auto &x : k) x = at += next() % 7 == 0;
    return k;
}

template <class V> static void same(const char *what, size_t n, const V *got, size_t n_got, const V *want, size_t n_want)
{
    if (n_got != n_want) {
        printf("WRONG: n=%zu: %s: %zu elements, not %zu\n", n, what, n_got, n_want);
        exit(1);
    }
    for (size_t i = 0; i < n_want; i++)
        if (!(got[i] == want[i])) {
            printf("WRONG: n=%zu: %s: element %zu\n", n, what, i);
            exit(1);
        }
}
template <class V> static void same(const char *what, size_t n, const thrust::device_vector<V> &d, size_t n_got, const std::vector<V> &want)
{
    std::vector<V> got(d.size());
    cudaError_t r = cudaMemcpy(got.data(), thrust::raw_pointer_cast(d.data()), d.size() * sizeof(V), cudaMemcpyDeviceToHost);
    if (r != cudaSuccess) {
        printf("WRONG: n=%zu: %s\n", n, cudaGetErrorString(r));
        exit(1);
    }
    same(what, n, got.data(), n_got, want.data(), want.size());
}

#if TORTURE_ALGORITHM == TORTURE_SCAN
static void one(size_t n)
{
    std::vector<T> in = values(n, false), want(n);
    for (size_t i = 0; i < n; i++) want[i] = i ? Join()(want[i - 1], in[i]) : in[i];
    thrust::device_vector<T> d(in.begin(), in.end()), out(n);
    thrust::inclusive_scan(d.begin(), d.end(), out.begin(), Join());
    same("scan", n, out, n, want);
}
#elif TORTURE_ALGORITHM == TORTURE_SCAN_BY_KEY
static void one(size_t n)
{
    std::vector<T> in = values(n, false), want(n);
    std::vector<int> k = keys(n);
    for (size_t i = 0; i < n; i++) want[i] = i && k[i] == k[i - 1] ? Join()(want[i - 1], in[i]) : in[i];
    thrust::device_vector<T> d(in.begin(), in.end()), out(n);
    thrust::device_vector<int> dk(k.begin(), k.end());
    thrust::inclusive_scan_by_key(dk.begin(), dk.end(), d.begin(), out.begin(), thrust::equal_to<int>(), Join());
    same("scan by key", n, out, n, want);
}
#elif TORTURE_ALGORITHM == TORTURE_REDUCE
static void one(size_t n)
{
    std::vector<T> in = values(n, false);
    T want = make(0);
    for (auto &x : in) want = Sum()(want, x);
    thrust::device_vector<T> d(in.begin(), in.end());
    T got = thrust::reduce(d.begin(), d.end(), make(0), Sum());
    same("reduce", n, &got, 1, &want, 1);
}
#elif TORTURE_ALGORITHM == TORTURE_REDUCE_BY_KEY
static void one(size_t n)
{
    std::vector<T> in = values(n, false), want;
    std::vector<int> k = keys(n), want_k;
    for (size_t i = 0; i < n; i++)
        if (i && k[i] == k[i - 1]) want.back() = Join()(want.back(), in[i]);
        else want.push_back(in[i]), want_k.push_back(k[i]);
    thrust::device_vector<T> d(in.begin(), in.end()), out(n);
    thrust::device_vector<int> dk(k.begin(), k.end()), ok(n);
    auto end = thrust::reduce_by_key(dk.begin(), dk.end(), d.begin(), ok.begin(), out.begin(), thrust::equal_to<int>(), Join());
    same("keys", n, ok, (size_t)(end.first - ok.begin()), want_k);
    same("sums", n, out, (size_t)(end.second - out.begin()), want);
}
#elif TORTURE_ALGORITHM == TORTURE_SELECT
static void one(size_t n)
{
    std::vector<T> in = values(n, false), want;
    for (auto &x : in)
        if (Chosen()(x)) want.push_back(x);
    thrust::device_vector<T> d(in.begin(), in.end()), out(n);
    auto end = thrust::copy_if(d.begin(), d.end(), out.begin(), Chosen());
    same("select", n, out, (size_t)(end - out.begin()), want);
}
#elif TORTURE_ALGORITHM == TORTURE_PARTITION
static void one(size_t n)
{
    std::vector<T> in = values(n, false), want;
    for (auto &x : in)
        if (Chosen()(x)) want.push_back(x);
    size_t n_chosen = want.size();
    for (auto &x : in)
        if (!Chosen()(x)) want.push_back(x);
    thrust::device_vector<T> d(in.begin(), in.end());
    auto end = thrust::stable_partition(d.begin(), d.end(), Chosen());
    same("partition", n, d, n, want);
    if ((size_t)(end - d.begin()) != n_chosen) {
        printf("WRONG: n=%zu: partition: %zu chosen, not %zu\n", n, (size_t)(end - d.begin()), n_chosen);
        exit(1);
    }
}
#elif TORTURE_ALGORITHM == TORTURE_UNIQUE
static void one(size_t n)
{
    std::vector<T> in = values(n, true), want;
    for (size_t i = 0; i < n; i++)
        if (!i || in[i] != in[i - 1]) want.push_back(in[i]);
    thrust::device_vector<T> d(in.begin(), in.end());
    auto end = thrust::unique(d.begin(), d.end());
    same("unique", n, d, (size_t)(end - d.begin()), want);
}
#elif TORTURE_ALGORITHM == TORTURE_SORT
#include <algorithm>
static void one(size_t n)
{
    std::vector<T> in = values(n, false), want = in;
    std::sort(want.begin(), want.end());
    thrust::device_vector<T> d(in.begin(), in.end());
    thrust::sort(d.begin(), d.end());
    same("sort", n, d, n, want);
}
#elif TORTURE_ALGORITHM == TORTURE_HISTOGRAM
static void one(size_t n)
{
    const int bins = 16;
    std::vector<T> in = values(n, false), levels;
    uint64_t top = TORTURE_BYTES == 1 ? 240 : TORTURE_BYTES == 4 ? 3840 : TORTURE_BYTES == 8 ? 0xf0000000f00ull : 0x70000000;
    for (int i = 0; i <= bins; i++) levels.push_back(TORTURE_BYTES == 16 ? (T)((T)(top / bins * i) << (TORTURE_BYTES == 16 ? 64 : 0)) : (T)(top / bins * i));
    std::vector<int> want(bins);
    for (auto &x : in)
        for (int b = 0; b < bins; b++) want[b] += !(x < levels[b]) && x < levels[b + 1];
    thrust::device_vector<T> d(in.begin(), in.end()), l(levels.begin(), levels.end());
    thrust::device_vector<int> out(bins);
    size_t room = 0;
    cudaError_t r = cudaSuccess;
    thrust::device_vector<char> temp;
    for (int pass = 0; pass < 2 && r == cudaSuccess; pass++) {
        if (pass) temp.resize(room);
        r = cub::DeviceHistogram::HistogramRange(pass ? thrust::raw_pointer_cast(temp.data()) : nullptr, room, thrust::raw_pointer_cast(d.data()),
                                                 thrust::raw_pointer_cast(out.data()), bins + 1, thrust::raw_pointer_cast(l.data()), (int)n);
    }
    if (r != cudaSuccess) printf("WRONG: n=%zu: %s\n", n, cudaGetErrorString(r)), exit(1);
    same("histogram", n, out, (size_t)bins, want);
}
#elif TORTURE_ALGORITHM == TORTURE_RUN_LENGTH
static void one(size_t n)
{
    std::vector<T> in = values(n, true), want;
    std::vector<int> want_l;
    for (size_t i = 0; i < n; i++)
        if (i && in[i] == in[i - 1]) want_l.back()++;
        else want.push_back(in[i]), want_l.push_back(1);
    thrust::device_vector<T> d(in.begin(), in.end()), out(n);
    thrust::device_vector<int> lengths(n), count(1);
    size_t room = 0;
    cudaError_t r = cudaSuccess;
    thrust::device_vector<char> temp;
    for (int pass = 0; pass < 2 && r == cudaSuccess; pass++) {
        if (pass) temp.resize(room);
        r = cub::DeviceRunLengthEncode::Encode(pass ? thrust::raw_pointer_cast(temp.data()) : nullptr, room, d.begin(), out.begin(), lengths.begin(),
                                               count.begin(), (int)n);
    }
    if (r != cudaSuccess) printf("WRONG: n=%zu: %s\n", n, cudaGetErrorString(r)), exit(1);
    size_t n_runs = (size_t)(int)count[0];
    same("values", n, out, n_runs, want);
    same("lengths", n, lengths, n_runs, want_l);
}
#else
#error "set TORTURE_ALGORITHM and TORTURE_BYTES"
#endif

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1, 31, 32, 33, 255, 256, 257, 1919, 1920, 1921, 2047, 2048, 2049, 3583, 3584, 3585, 4607, 4608, 4609, 5631, 5632, 5633, 7679, 7680, 7681, 10751, 10752, 10753, 65537, N};
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    try {
        for (int i = 0; i < rounds; i++)
            for (size_t n : sizes) one(n);
    } catch (const std::exception &e) {
        printf("WRONG: %s\n", e.what());
        return 1;
    }
    printf("right: %zu sizes, %d rounds\n", sizeof sizes / sizeof *sizes, rounds);
    return 0;
}
