#!/bin/sh
# What tools insert changes neither which lanes run together nor the order of warps, with one worker: `part` leaves a loop in four
# rounds, and behind it each warp is whole again, though its records wait for pages; `queue` appends in the order of warps, which all come
# to the loop before the first one goes on: inserted code may have loops of its own, or jump to right in front of that loop.
set -u
cat > keep.ptx <<'P'
.version 7.8
.target sm_80
.address_size 64
.visible .entry part(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
    and.b32 %r4, %r1, 3; mov.u32 %r5, 0; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd2, %rd2, %rd3;
L:  setp.ge.u32 %p1, %r5, %r4;
    @%p1 bra DONE;
    add.u32 %r6, %r1, %r5; mul.wide.u32 %rd3, %r6, 4; add.u64 %rd3, %rd1, %rd3; ld.global.u32 %r6, [%rd3];
    add.u32 %r5, %r5, %r6;
    bra L;
DONE:
    st.global.u32 [%rd2], %r5;
    ret;
}
.visible .entry queue(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, 10; and.b32 %r4, %r1, 3; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3;
    atom.global.add.u32 %r3, [%rd2], 1;
    mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd2, %rd3; add.u32 %r5, %r2, 9; st.global.u32 [%rd3+4], %r5;
    mov.u32 %r5, 0;
    ld.global.u32 %r6, [%rd1];
L:  setp.ge.u32 %p1, %r5, %r4;
    @%p1 bra DONE;
    atom.global.add.u32 %r3, [%rd2], %r6;
    mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd2, %rd3; add.u32 %r7, %r2, %r5; st.global.u32 [%rd3+4], %r7;
    add.u32 %r5, %r5, 1;
    bra L;
DONE:
    ret;
}
P
cat > keep.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoad(void **, const char *), cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(uint64_t *, size_t);
int cuMemcpyHtoD_v2(uint64_t, const void *, size_t), cuMemcpyDtoH_v2(void *, uint64_t, size_t);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
#define TRY(call) do { int rc = (call); if (rc) { printf("%s: %d\n", #call, rc); exit(2); } } while (0)
enum { N = 1 << 15 };
static uint32_t x[N + 4], y[N + 1];
int main(int argc, char **argv)
{
    void *c, *m, *f;
    int d, many = argc > 1 && argv[1][0] == 'p';
    uint64_t in, out, at = 1;
    TRY(cuInit(0)); TRY(cuDeviceGet(&d, 0)); TRY(cuDevicePrimaryCtxRetain(&c, d)); TRY(cuCtxSetCurrent(c));
    TRY(cuModuleLoad(&m, "keep.ptx")); TRY(cuModuleGetFunction(&f, m, many ? "part" : "queue"));
    TRY(cuMemAlloc_v2(&in, sizeof x)); TRY(cuMemAlloc_v2(&out, sizeof y));
    for (int i = 0; i < N + 4; i++) x[i] = 1;
    TRY(cuMemcpyHtoD_v2(in, x, sizeof x)); TRY(cuMemcpyHtoD_v2(out, y, sizeof y));
    TRY(cuLaunchKernel(f, many ? N / 128 : 1, 1, 1, many ? 128 : 256, 1, 1, 0, NULL, (void *[]){&in, &out}, NULL));
    TRY(cuMemcpyDtoH_v2(y, out, sizeof y));
    if (many) {
        for (uint32_t i = 0; i < N; i++) if (y[i] != i % 4) return printf("part: y[%u] is %u\n", i, y[i]), 1;
        return 0;
    }
    /* every warp comes to the loop before the first one goes on; then each goes through it, all its lanes round by round */
    for (uint32_t i = 0; i < 256; i++, at++) if (y[at] != 10 * i + 9) return printf("queue: %u is %u\n", (unsigned)at, y[at]), 1;
    for (uint32_t w = 0; w < 8; w++)
        for (uint32_t e = 0; e < 3; e++)
            for (uint32_t i = 32 * w; i < 32 * w + 32; i++)
                if (e < i % 4 && y[at++] != 10 * i + e) return printf("queue: %u is %u\n", (unsigned)at - 1, y[at - 1]), 1;
    return at != 1 + y[0];
}
C
gcc -O1 -Wall -o keep keep.c -L"$B/lib/margay/driver" -lcuda || exit 1
export LD_LIBRARY_PATH=$B/test/driver
bad=0
for device in emu cpu; do
    [ $device = emu ] || [ -e "$B/lib/margay/libmargay-cpu.so" ] || continue
    for tool in none bounds trace accesses communication cache memory lanes values latency clock opcodes functions timeline \
        'expr,ld.global /value > 5/ { @v[value] = count() }' 'expr,ld.global /lane > 7/ { @v[lane] = count() }'; do
        rm -rf q
        "$MARGAY" run -q --device $device --workers 1 -t "$tool" -o q -- ./keep queue || { echo "$device, $tool: another order"; bad=1; }
    done
    "$MARGAY" run -q --verify --device $device --workers 1 -t bounds -o v -- ./keep queue || { echo "$device, --verify -t bounds: $?"; bad=1; }
    for beside in '' '-t bounds' '-t trace' '-t trace --channel drop' '-t accesses' '-t communication' '-t cache'; do
        rm -rf p
        "$MARGAY" run -q --device $device --workers 1 -t blocks,warps=on -t lanes -t memory $beside -o p -- ./keep part > said 2>&1 || { cat said; bad=1; }
        "$MARGAY" report p --json > p.json || bad=1
        python3 - "$device, beside $beside" <<'P' || bad=1
import json, sys
j, n, want = json.load(open('p.json')), 1024, [1, 4, 3, 1]
k, lanes = j['kernels'][0], j['tools']['lanes']['kernels'][0]['blocks']
assert [b['warp_entries'] for b in k['blocks']] == [n * w for w in want], (sys.argv[1], k['blocks'])
assert not k['schedule_dependent'], sys.argv[1]
assert [sum(b['lanes'][1:]) for b in lanes] == [n * w for w in want] and lanes[3]['lanes'][32] == n, (sys.argv[1], lanes)
store = j['tools']['memory']['sites'][1]
assert (store['requests'], store['sectors']) == (n, 4 * n), (sys.argv[1], store)
P
    done
done
exit $bad
