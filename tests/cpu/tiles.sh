#!/bin/sh
# Blocks of two rows a warp whose indices are clamped at an edge, or of a pitch that is not known, and CTAs of one warp in which
# lanes part by their numbers: results are what the host computes, those and block counts the emulator's, on every vector ISA.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > tiles.cu <<'C'
#include <cstdio>
#include <cstdlib>
#include <cstring>
enum { W = 150, H = 61, P = 163, N = 16, T = 9 };

/* 16 x 16 threads load a tile and make what lies 1 inside; edges are clamped. */
__global__ void blur(const int *x, int *out, int w, int h, int pitch)
{
    __shared__ int s[N][N];
    int tx = threadIdx.x, ty = threadIdx.y, c = blockIdx.x * (N - 2) - 1 + tx, r = blockIdx.y * (N - 2) - 1 + ty;
    int top = max(0, 1 - (int)blockIdx.y * (N - 2)), bottom = min(N - 1, h - (int)blockIdx.y * (N - 2));
    int left = max(0, 1 - (int)blockIdx.x * (N - 2)), right = min(N - 1, w - (int)blockIdx.x * (N - 2));
    if (c >= 0 && c < w && r >= 0 && r < h) s[ty][tx] = x[r * pitch + c];
    __syncthreads();
    int up = max(ty - 1, top), down = min(ty + 1, bottom), west = max(tx - 1, left), east = min(tx + 1, right);
    if (tx >= 1 && tx < N - 1 && ty >= 1 && ty < N - 1 && c < w && r < h)
        out[r * pitch + c] = s[ty][tx] * 3 + s[up][tx] + 5 * s[down][tx] + 7 * s[ty][west] + 11 * s[ty][east];
}

/* Along the diagonals of a tile, lanes by their numbers; between two of these all lanes of the warp meet. */
template <int LANES> __global__ void wave(const int *x, int *out, int gain)
{
    __shared__ int s[N + 1][N + 1], ref[N][N];
    int t = threadIdx.x, b = blockIdx.x * N * N;
    if (t < N)
        for (int i = 0; i < N; i++) ref[i][t] = x[b + i * N + t];
    if (t < N) s[0][t + 1] = t * gain, s[t + 1][0] = -t * gain;
    if (!t) s[0][0] = blockIdx.x;
    __syncthreads();
#pragma unroll
    for (int m = 0; m < N; m++) {
        if (t <= m) {
            int c = t + 1, r = m - t + 1;
            s[r][c] = max(s[r - 1][c - 1] + ref[r - 1][c - 1], max(s[r][c - 1] - gain, s[r - 1][c] - gain));
        }
        __syncthreads();
    }
#pragma unroll
    for (int m = N - 2; m >= 0; m--) {
        if (t <= m) {
            int c = t + N - m, r = N - t;
            s[r][c] = max(s[r - 1][c - 1] + ref[r - 1][c - 1], max(s[r][c - 1] - gain, s[r - 1][c] - gain));
        }
        __syncthreads();
    }
    if (t < N)
        for (int i = 0; i < N; i++) out[b + i * N + t] = s[i + 1][t + 1];
}

/* Each lane stores where the next one loads in the same step: lanes go together. And lanes that part twice before they meet. */
__global__ void shift(const int *x, int *out)
{
    __shared__ int s[T + 1][33];
    int t = threadIdx.x, b = blockIdx.x * T * 33;
    for (int i = 0; i < T; i++) s[i][t] = x[b + i * 33 + t];
    if (t == 0)
        for (int i = 0; i < T; i++) s[i][32] = x[b + i * 33 + 32];
    __syncthreads();
    if (t < T) {
        s[t][t] = s[t][t + 1] + 1; /* a diagonal, from its neighbour */
        s[t + 1][t + 1] = s[t][t] * 3; /* where the next lane has stored */
    }
    __syncthreads();
    if (t < 4) {
        if (t & 1) s[t][t + 8] += s[t + 1][t + 9];
        else s[t][t + 8] -= s[t + 1][t + 9];
    }
    __syncthreads();
    for (int i = 0; i < T; i++) out[b + i * 33 + t] = s[i][t];
    if (t == 0)
        for (int i = 0; i < T; i++) out[b + i * 33 + 32] = s[i][32];
}

static int x[1 << 16], got[1 << 16], want[1 << 16], *dx, *dout;
static int clamp(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }

static void check(const char *what, int n)
{
    int bad = 0;
    cudaMemcpy(got, dout, sizeof got, cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; i++) bad += got[i] != want[i];
    printf("%s: %d of %d differ\n", what, bad, n);
    cudaMemset(dout, 0, sizeof got);
    memset(want, 0, sizeof want);
}

static void host_wave(int b, int gain)
{
    static int s[N + 1][N + 1];
    for (int i = 0; i < N; i++) s[0][i + 1] = i * gain, s[i + 1][0] = -i * gain;
    s[0][0] = b;
    for (int r = 1; r <= N; r++)
        for (int c = 1; c <= N; c++) {
            int v = s[r - 1][c - 1] + x[b * N * N + (r - 1) * N + c - 1], left = s[r][c - 1] - gain, up = s[r - 1][c] - gain;
            s[r][c] = want[b * N * N + (r - 1) * N + c - 1] = v > left ? v > up ? v : up : left > up ? left : up;
        }
}

static void host_shift(int b)
{
    int(*s)[33] = (int(*)[33])(want + b * T * 33), was[T];
    memcpy(s, x + b * T * 33, T * 33 * sizeof **s);
    for (int t = 0; t < T; t++) was[t] = s[t][t + 1] + 1;
    for (int t = 0; t < T; t++) s[t][t] = was[t];
    for (int t = 0; t < T - 1; t++) s[t + 1][t + 1] = was[t] * 3;
    for (int side = 0; side < 2; side++) { /* lanes of one side have no address with those of the other */
        int v[4];
        for (int t = side; t < 4; t += 2) v[t] = s[t][t + 8] + (t & 1 ? 1 : -1) * s[t + 1][t + 9];
        for (int t = side; t < 4; t += 2) was[t] = v[t];
    }
    for (int t = 0; t < 4; t++) s[t][t + 8] = was[t];
}

int main(void)
{
    for (int i = 0; i < 1 << 16; i++) x[i] = (int)(i * 2654435761u >> 20) - 2000;
    cudaMalloc(&dx, sizeof x), cudaMalloc(&dout, sizeof got);
    cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
    cudaMemset(dout, 0, sizeof got);
    blur<<<dim3((W + N - 3) / (N - 2), (H + N - 3) / (N - 2)), dim3(N, N)>>>(dx, dout, W, H, P);
    for (int r = 0; r < H; r++)
        for (int c = 0; c < W; c++)
            want[r * P + c] = x[r * P + c] * 3 + x[clamp(r - 1, 0, H - 1) * P + c] + 5 * x[clamp(r + 1, 0, H - 1) * P + c] +
                              7 * x[r * P + clamp(c - 1, 0, W - 1)] + 11 * x[r * P + clamp(c + 1, 0, W - 1)];
    check("blur", H * P);
    for (int lanes = N; lanes <= 2 * N; lanes += N) {
        if (lanes == N) wave<N><<<40, N>>>(dx, dout, 9);
        else wave<2 * N><<<40, 2 * N>>>(dx, dout, 9);
        for (int b = 0; b < 40; b++) host_wave(b, 9);
        check(lanes == N ? "wave of 16" : "wave of 32", 40 * N * N);
    }
    shift<<<30, 32>>>(dx, dout);
    for (int b = 0; b < 30; b++) host_shift(b);
    check("shift", 30 * T * 33);
}
C
"$NVCC" -O3 -arch=sm_90 -cudart shared tiles.cu -o tiles || { echo "FAIL nvcc"; exit 1; }
export MARGAY_CPU_STORE=off MARGAY_CPU_TIER=sync
. "$ROOT/tests/cpu/counted.inc"
counted emu tiles --device emu
[ "$(grep -c ': 0 of ' emu.out)" = 4 ] || { echo FAIL; cat emu.out; exit 1; }
for isa in ${ISA:-avx512 avx2 base}; do
    MARGAY_ISA=$isa counted "cpu.$isa" tiles --device cpu -t none
    as_emulator "cpu.$isa" out
done
counted warps.emu tiles --device emu -t blocks,warps=on
counted warps tiles --device cpu -t blocks,warps=on
cmp warps.emu.counts warps.counts || { diff warps.emu.counts warps.counts; exit 1; }
