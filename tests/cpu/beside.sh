#!/bin/sh
# Loads that lie a little before or behind an array pass as 0 (docs/schedule.md, "Bounds"), in every form that the CPU device compiles: rows
# and tiles of lanes, some of them, at a distance, by index, several elements, lane by lane in a loop, many rounds. The program works out what to
# expect; emulator and CPU device tell the same places and count the same, with each vector ISA. Stores, loads too far off and --check stop.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > beside.cu <<'C'
#include <cstdio>
#include <cstdlib>
enum { N = 1000, THREADS = 1024 };
template <typename T> __device__ T add(T a, T b) { return a + b; }
template <> __device__ int4 add(int4 a, int4 b) { return make_int4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
template <typename T> __global__ void row(const T *x, T *out, int d) { int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = x[i + d]; }
template <typename T> __global__ void some(const T *x, T *out, int d) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i % 3 != 1) out[i] = x[i + d]; }
template <typename T> __global__ void apart(const T *x, T *out, int d) { int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = x[3 * i - 1000 + d]; }
template <typename T> __global__ void indexed(const T *x, T *out, const int *at, int d) { int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = x[at[i] + d]; }
template <typename T> __global__ void tile(const T *x, T *out, int d) { int i = blockIdx.x * blockDim.x * blockDim.y + threadIdx.y * blockDim.x + threadIdx.x; out[i] = x[(int)((blockIdx.x * 16 + threadIdx.y) * 20 + threadIdx.x) - 200 + d]; }
template <typename T> __global__ void loop(const T *x, T *out, int d) { int i = blockIdx.x * blockDim.x + threadIdx.x; T v = x[0]; for (int k = i * 7 % 13; k < 40; k += 1 + (i + k) % 3) v = add(v, x[i + d + 5 * k % 11]); out[i] = v; }
template <typename T> __global__ void rounds(const T *x, T *out, int d, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; T v = x[0]; for (int k = 0; k < n; k++) v = add(v, add(x[i + d + k], x[i - 2 * k])); out[i] = v; }
__global__ void store(int *x, int d) { x[(int)threadIdx.x + d] = 7; }
__global__ void once(const int *x, int *out, int d) { out[threadIdx.x] = x[(int)threadIdx.x + d]; }

static bool same(int a, int b) { return a == b; }
static bool same(char a, char b) { return a == b; }
static bool same(double a, double b) { return a == b; }
static bool same(int4 a, int4 b) { return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w; }
static void give(int &v, int i) { v = i + 1; }
static void give(char &v, int i) { v = i % 100 + 1; }
static void give(double &v, int i) { v = i + 0.5; }
static void give(int4 &v, int i) { v = make_int4(i + 1, i + 2, i + 3, i + 4); }
static int plus(int a, int b) { return a + b; }
static char plus(char a, char b) { return (char)(a + b); }
static double plus(double a, double b) { return a + b; }
static int4 plus(int4 a, int4 b) { return make_int4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

template <typename T> struct bench {
    T host[N], got[THREADS], *x, *out;
    int at[THREADS], *indices;
    T x_at(int i) { T none = {}; return i < 0 || i >= N ? none : host[i]; }
    void check(const char *what, int d, T (*want)(bench *, int, int))
    {
        int r = cudaDeviceSynchronize(), bad = 0;
        r = r ? r : cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
        for (int i = 0; i < THREADS; i++) bad += !same(got[i], want(this, i, d));
        printf("%d bytes, %s %d: %d, %d differ\n", (int)sizeof(T), what, d, r, bad);
        cudaMemset(out, 0, sizeof got);
    }
    void run()
    {
        for (int i = 0; i < N; i++) give(host[i], i);
        for (int i = 0; i < THREADS; i++) at[i] = i * 389 % 1400 - 200;
        void *wide; /* as its red zone is: 64 KiB on each side of x */
        cudaMalloc(&wide, 1 << 18), cudaMalloc(&x, sizeof host), cudaMalloc(&wide, 1 << 18);
        cudaMalloc(&out, sizeof got), cudaMalloc(&indices, sizeof at);
        cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice), cudaMemcpy(indices, at, sizeof at, cudaMemcpyHostToDevice);
        cudaMemset(out, 0, sizeof got);
        for (int d : {-700, -33, -1, 0, 1, 40, 900}) {
            row<<<8, 128>>>(x, out, d), check("row", d, [](bench *b, int i, int d) { return b->x_at(i + d); });
            some<<<8, 128>>>(x, out, d), check("some", d, [](bench *b, int i, int d) { T none = {}; return i % 3 == 1 ? none : b->x_at(i + d); });
            apart<<<8, 128>>>(x, out, d), check("apart", d, [](bench *b, int i, int d) { return b->x_at(3 * i - 1000 + d); });
            indexed<<<8, 128>>>(x, out, indices, d), check("indexed", d, [](bench *b, int i, int d) { return b->x_at(b->at[i] + d); });
            tile<<<4, dim3(16, 16)>>>(x, out, d), check("tile", d, [](bench *b, int i, int d) { return b->x_at((i / 256 * 16 + i % 256 / 16) * 20 + i % 16 - 200 + d); });
            loop<<<8, 128>>>(x, out, d), check("loop", d, [](bench *b, int i, int d) {
                T v = b->host[0];
                for (int k = i * 7 % 13; k < 40; k += 1 + (i + k) % 3) v = plus(v, b->x_at(i + d + 5 * k % 11));
                return v;
            });
            rounds<<<8, 128>>>(x, out, d, 40), check("rounds", d, [](bench *b, int i, int d) {
                T v = b->host[0];
                for (int k = 0; k < 40; k++) v = plus(v, plus(b->x_at(i + d + k), b->x_at(i - 2 * k)));
                return v;
            });
        }
    }
};
int main(int n, char **arg)
{
    static bench<int> a; static bench<char> b; static bench<double> c; static bench<int4> e;
    if (n > 2) { /* so many words from the start of an array of 64 KiB; 256 KiB on each side of it are nobody's */
        int *x, *out;
        void *wide;
        cudaMalloc(&wide, 1 << 20), cudaMalloc(&x, 1 << 16), cudaMalloc(&wide, 1 << 20), cudaMalloc(&out, 128);
        if (*arg[1] == 's') store<<<1, 32>>>(x, atoi(arg[2])); else once<<<1, 32>>>(x, out, atoi(arg[2]));
        printf("%d\n", cudaDeviceSynchronize());
        return 0;
    }
    a.run(), b.run(), c.run(), e.run();
}
C
"$NVCC" -O3 -std=c++17 -arch=sm_90 -cudart shared beside.cu -o beside || { echo "FAIL nvcc"; exit 1; }
. "$ROOT/tests/cpu/counted.inc"
run() { # NAME OPTION...: and the places that were told
    n=$1
    shift
    counted "$n" beside "$@"
    "$MARGAY" report "$n" --json | python3 -c 'import json, sys
for f in json.load(sys.stdin)["tools"]["bounds"]["findings"]: print(f["kernel"], f["ptx_line"], f["bytes"], f["times"])' > "$n.told"
}
run emu --device emu
[ "$(grep -c ': 0, 0 differ' emu.out)" = 196 ] && [ "$(wc -l < emu.out)" = 196 ] || { echo "FAIL emu"; grep -v ': 0, 0 differ' emu.out | head; exit 1; }
[ "$(cut -d' ' -f1 emu.told | sort -u | wc -l)" = 28 ] || { echo "FAIL not all kernels were told of"; cat emu.told; exit 1; }
for isa in ${ISA:-avx512 avx2 base}; do
    MARGAY_CPU_TIER=sync MARGAY_CPU_VERIFY=1 MARGAY_ISA=$isa run cpu.$isa --device cpu
    as_emulator cpu.$isa out counts told
done
says() { # WANT DEVICE OPTION... -- ARG...: what the driver answers
    want=$1 d=$2
    shift 2
    rm -rf far
    got=$(MARGAY_CPU_TIER=sync "$MARGAY" run -q --device "$d" -t blocks -o far "$@" 2> err)
    [ "$got" = "$want" ] || { echo "FAIL $d $*: $got, not $want"; cat err; exit 1; }
}
for d in emu cpu; do
    says 0 $d -- ./beside load 16353    # 4 bytes behind
    says 0 $d -- ./beside load 18432    # 8 KiB
    says 0 $d -- ./beside load -2048    # and before
    says 700 $d -- ./beside load 50000  # beyond 64 KiB
    says 700 $d -- ./beside load -50000
    says 700 $d -- ./beside store 16353
    says 700 $d -- ./beside store 18432
    says 700 $d -- ./beside store -1
    says 700 $d --check -- ./beside load 16353
    says 700 $d --check -- ./beside load -1
done
