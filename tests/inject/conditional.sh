#!/bin/sh
# Conditional graph nodes on the emulator: if, while and switch; every launch that took place is counted.
set -u
gcc -O1 -Wall -Werror -I"$ROOT/src" -o conditional "$ROOT/tests/inject/conditional.c" -L"$B/lib/margay/driver" -lcuda || exit 1
cat > kernels.ptx <<'P'
.version 8.3
.target sm_90
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 h, .param .b32 v);
.visible .entry step(.param .u64 out, .param .u64 handle, .param .u32 n)
{
    .reg .b32 %r<6>;
    .reg .b64 %d<3>;
    ld.param.u64 %d1, [out];
    ld.param.u64 %d2, [handle];
    ld.param.u32 %r1, [n];
    ld.global.u32 %r2, [%d1];
    add.u32 %r3, %r2, 1;
    st.global.u32 [%d1], %r3;
    rem.u32 %r4, %r3, %r1;
    {
    .param .b64 h;
    .param .b32 v;
    st.param.b64 [h], %d2;
    st.param.b32 [v], %r4;
    call cudaGraphSetConditional, (h, v);
    }
    ret;
}
.visible .entry mark(.param .u64 out, .param .u64 unused, .param .u32 k)
{
    .reg .b32 %r<3>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [out];
    ld.param.u32 %r1, [k];
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d3, %d1, %d2;
    red.global.add.u32 [%d3], 1;
    ret;
}
P
[ "$("$MARGAY" run -q -t none --device emu -o native -- ./conditional kernels.ptx)" = ok ] || { "$MARGAY" run -t none --device emu -o again -- ./conditional kernels.ptx; exit 1; }
[ "$("$MARGAY" run -q --device emu -o profile -- ./conditional kernels.ptx)" = ok ] || exit 1
"$MARGAY" report profile --json > out.json && python3 - <<'P'
import json
r = json.load(open('out.json'))
c = r['coverage']
k = {x['name']: x for x in r['kernels']}
assert k['step']['launches'] == 15 + 5 + 5 and k['mark']['launches'] == 5 + 4, k
assert c['launches'] == c['instrumented'] == 34 and c['unknown'] == 0, c
P

# On a GPU they are passed through (here a driver over the emulator): the program runs as ever, the nodes at the top are
# counted, and a launch whose conditional nodes ran who knows how often is unknown, with the reason.
LD_LIBRARY_PATH=$B/test/driver XDG_CACHE_HOME=$PWD/cache "$MARGAY" run --device nvidia -o passed -- ./conditional kernels.ptx > out 2> err && grep -qx ok out &&
    grep -q '^  launch: 13 unknown, graph with a conditional node$' err && "$MARGAY" report passed --json > out.json && python3 - <<'P' || { cat out err; exit 1; }
import json
r = json.load(open('out.json'))
c, k = r['coverage'], {x['name']: x for x in r['kernels']}
assert (c['launches'], c['instrumented'], c['failed'], c['unknown']) == (10, 10, 0, 13), c
assert k['step']['launches'] == k['step']['threads'] == 10 and k['step']['blocks'][0]['thread_entries'] == 10, k['step']
P
