#!/bin/sh
# Blocks of 16, 8 or 4 threads a row: accesses by rows of lanes (cpu_reg.row) and of tiles (cpu_shape.tile) give the emulator's
# results, counts and faults, in shapes that fill warps and that do not, with idle lanes, with numbers that wrap, with rows that
# are none after all; thread numbers of one dimension taken apart into tiles, too, and rows that store at one place.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > rows.cu <<'C'
#include <cstdio>
#include <cstdlib>
#define W 96
template <typename T> __global__ void tile(const T *a, T *out) /* tile with halo, edge lanes, products along rows and columns */
{
    extern __shared__ char room[];
    T *s = (T *)room;
    int bx = blockDim.x, by = blockDim.y, w = bx + 2, x = blockIdx.x * bx + threadIdx.x, y = blockIdx.y * by + threadIdx.y;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    s += threadIdx.z * w * (by + 2);
    s[ty * w + tx] = a[y * W + x];
    if (tx == 1) s[ty * w] = x ? a[y * W + x - 1] : 3;
    if (tx == bx) s[ty * w + bx + 1] = x < W - 1 ? a[y * W + x + 1] : 5;
    if (ty == 1) s[tx] = y ? a[(y - 1) * W + x] : 7;
    if (ty == by) s[(by + 1) * w + tx] = y < W - 1 ? a[(y + 1) * W + x] : 9;
    __syncthreads();
    T v = 0;
    for (int k = 0; k < bx; k++) v += s[ty * w + k + 1] * s[(k % by + 1) * w + tx];
    out[(threadIdx.z * W + y) * W + x] = v + s[ty * w + tx - 1] + s[ty * w + tx + 1] * 2 + s[(ty - 1) * w + tx] * 3 + s[(ty + 1) * w + tx] * 4;
}
__global__ void odd(unsigned n, const unsigned *a, unsigned *out) /* wraps; bases that differ within a row; guards */
{
    unsigned x = threadIdx.x, y = threadIdx.y + blockDim.y * threadIdx.z, me = (blockIdx.x * blockDim.z * blockDim.y + y) * blockDim.x + x, v = 0;
    unsigned at = (x - 3u) & 0xffffffu;                     /* wraps within the row */
    if (at < 64) v = a[at];
    const unsigned *p = x % 3 ? a + y * 8 : a + 1000 - y;   /* another base for some lanes of the row */
    v += p[x] * 3;
    if (x > 1 && y % 3 != 1) v += a[y * 16 + x - 2] * 5;    /* some lanes, some rows not at all */
    for (unsigned k = 0; k < (n + y) % 5; k++) v += a[(y + k) * 16 + x] ^ a[y + k]; /* rows leave at different times */
    if (me < n) out[me] = v;
}
template <int X> __global__ void line(unsigned n, const unsigned *a, unsigned *out) /* rows of X in blocks of one dimension */
{
    __shared__ unsigned s[64 + 3][X + 1], last[64];
    unsigned t = threadIdx.x, x = t & (X - 1), y = t / X, i = blockIdx.x * blockDim.x + t, v;
    s[y][x] = a[(blockIdx.x * (blockDim.x / X) + y) * 32 + x];
    if (x < 2) s[y][X - x] = a[y * 32 + 31 - x];
    if (y < 3) s[blockDim.x / X + y][x] = a[x * 32 + y];
    last[y] = i * 5;                                        /* the last lane's */
    __syncthreads();
    if (t % 3 == n % 3) last[y] += s[y][x];                 /* the last of those that are there */
    __syncthreads();
    v = s[y][x] * 3 + s[y + 2][x] * 5 + s[y][X] * 7 + last[y] + (x > n % X ? a[i - (n % X)] : a[y]);
    const unsigned char *bytes = (const unsigned char *)a;
    const uint2 *pairs = (const uint2 *)a;
    v += bytes[y * 64 + x] * 11 + pairs[y * 16 + x].y * 13;
    out[i] = v;
    if (x == X - 1) ((unsigned short *)(out + 4096))[y * X + x] = v, ((double *)(out + 8192))[y * 8 + x] = v;
}
__global__ void outside(const unsigned *a, unsigned *out) /* the last lanes of one row */
{
    out[threadIdx.y * 8 + threadIdx.x] = a[(threadIdx.y == 5 ? 1 << 20 : 0) + threadIdx.y * 8 + threadIdx.x];
}
static unsigned host[3 * W * W * 2], sum;
static void tell(const void *from, size_t n, const char *what, dim3 b)
{
    cudaMemcpy(host, from, n, cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < n / 4; i++) sum = (sum ^ host[i]) * 16777619u;
    printf("%s %ux%ux%u %08x %s\n", what, b.x, b.y, b.z, sum, cudaGetErrorName(cudaGetLastError()));
}
int main(int argc, char **argv)
{
    static const dim3 blocks[] = {{8, 8, 1}, {4, 3, 3}, {4, 4, 2}, {12, 4, 1}, {24, 2, 1}, {8, 3, 1}, {16, 4, 1}, {2, 16, 1}, {1, 32, 1}, {16, 2, 3}, {48, 2, 1}, {8, 4, 3}};
    int some = argc > 1 ? atoi(argv[1]) : 12;
    unsigned *a, *out;
    float *f;
    double *d;
    cudaMalloc(&a, sizeof host), cudaMalloc(&out, sizeof host), cudaMalloc(&f, sizeof host), cudaMalloc(&d, sizeof host);
    for (unsigned i = 0; i < sizeof host / 4; i++) host[i] = i * 2654435761u >> 12;
    cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
    for (unsigned i = 0; i < sizeof host / 4; i++) ((float *)host)[i] = (float)(i * 2654435761u >> 22);
    cudaMemcpy(f, host, sizeof host, cudaMemcpyHostToDevice);
    for (unsigned i = 0; i < sizeof host / 8; i++) ((double *)host)[i] = i * 2654435761u >> 22;
    cudaMemcpy(d, host, sizeof host, cudaMemcpyHostToDevice);
    for (int i = 0; i < some; i++) {
        dim3 b = blocks[i];
        dim3 grid(W / b.x, W / b.y);
        size_t room = (b.x + 2) * (b.y + 2) * b.z;
        tile<float><<<grid, b, room * 4>>>(f, (float *)out), tell(out, W * W * b.z * 4, "float", b);
        tile<double><<<grid, b, room * 8>>>(d, (double *)out), tell(out, W * W * b.z * 8, "double", b);
        for (unsigned n = 900; n < 903; n++) odd<<<9, b>>>(n, a, out), tell(out, 4000, "odd", b);
    }
    for (unsigned b = 32; b <= 80 && argc < 3; b += 48)
        for (unsigned n = 900; n < 903; n++) {
            line<4><<<9, b>>>(n, a, out), tell(out, 1 << 16, "line of 4", b);
            line<8><<<9, b>>>(n, a, out), tell(out, 1 << 16, "line of 8", b);
            line<16><<<9, b>>>(n, a, out), tell(out, 1 << 16, "line of 16", b);
        }
    if (argc > 2) outside<<<1, dim3(8, 8)>>>(a, out), tell(out, 256, "outside", dim3(8, 8));
}
C
"$NVCC" -O3 -arch=sm_90 -cudart shared rows.cu -o rows || { echo "FAIL nvcc"; exit 1; }
run() { # NAME SHAPES OPTION...: what it printed
    name=$1 shapes=$2
    shift 2
    "$MARGAY" run -q --workers 1 -o "$name" "$@" -- ./rows "$shapes" > "$name.out" 2>&1 || { echo "FAIL $name"; cat "$name.out"; exit 1; }
}
counts() {
    "$MARGAY" report "$1" --json | python3 -c 'import json, sys
for k in json.load(sys.stdin)["kernels"]: print([(b["thread_entries"], b["warp_entries"]) for b in k["blocks"]], k.get("memory"))' > "$1.counts"
}
same() { # ONE ANOTHER
    cmp -s "$1" "$2" || { echo "FAIL $2"; diff "$1" "$2"; exit 1; }
}
run emu 12 --device emu -t none
run emu.counted 2 --device emu -t blocks -t memory
counts emu.counted
"$MARGAY" run -q --device emu -t none -- ./rows 0 outside > emu.outside 2>&1
grep -q 'outside.*IllegalAddress' emu.outside || { echo "FAIL nothing went outside"; cat emu.outside; exit 1; }
grep -q '[1-9]' emu.counted.counts || { echo "FAIL nothing was counted"; exit 1; }
export MARGAY_CPU_TIER=sync
for isa in ${ISA:-avx512 avx2 base}; do
    export MARGAY_ISA=$isa
    run "$isa" 12 --device cpu -t none
    same emu.out "$isa.out"
    "$MARGAY" run -q --device cpu -t none -- ./rows 0 outside > "$isa.outside" 2>&1
    same emu.outside "$isa.outside"
done
run cpu.counted 2 --device cpu -t blocks -t memory
counts cpu.counted
same emu.counted.out cpu.counted.out
same emu.counted.counts cpu.counted.counts
