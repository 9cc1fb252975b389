#!/bin/sh
# Kernels launched by kernels on the emulator: they run in order, are counted apart, and their blocks are counted.
set -u
gcc -O1 -Wall -Werror -o children "$ROOT/tests/inject/children.c" -L"$B/lib/margay/driver" -lcuda || exit 1
cat > kernels.ptx <<'P'
.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2 (.param .b64 a, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2 (.param .b64 p, .param .b64 t);
.visible .entry tree(.param .u64 out, .param .u32 depth)
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [out];
    ld.param.u32 %r1, [depth];
    mov.u32 %r2, %tid.x;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra done;
    mul.wide.u32 %d4, %r1, 4;
    add.s64 %d5, %d1, %d4;
    red.global.add.u32 [%d5], 1;
    setp.ge.u32 %p1, %r1, 3;
    @%p1 bra done;
    add.u32 %r3, %r1, 1;
    {
    .param .b64 a1;
    .param .align 4 .b8 g1[12];
    .param .align 4 .b8 b1[12];
    .param .b32 s1;
    .param .b64 r1;
    mov.u64 %d2, tree;
    st.param.b64 [a1], %d2;
    st.param.b32 [g1], 2;
    st.param.b32 [g1+4], 1;
    st.param.b32 [g1+8], 1;
    st.param.b32 [b1], 32;
    st.param.b32 [b1+4], 1;
    st.param.b32 [b1+8], 1;
    st.param.b32 [s1], 0;
    call (r1), __cudaCDP2GetParameterBufferV2, (a1, g1, b1, s1);
    ld.param.b64 %d3, [r1];
    }
    st.u64 [%d3], %d1;
    st.u32 [%d3+8], %r3;
    {
    .param .b64 p1;
    .param .b64 t1;
    .param .b32 e1;
    st.param.b64 [p1], %d3;
    st.param.b64 [t1], 0;
    call (e1), __cudaCDP2LaunchDeviceV2, (p1, t1);
    ld.param.b32 %r4, [e1];
    }
    setp.ne.u32 %p2, %r4, 0;
    @%p2 trap;
done:
    ret;
}
.visible .entry note(.param .u64 out, .param .u32 id)
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [out];
    ld.param.u32 %r1, [id];
    atom.global.add.u32 %r2, [%d1], 1;
    mul.wide.u32 %d4, %r2, 4;
    add.s64 %d5, %d1, %d4;
    st.global.u32 [%d5+4], %r1;
    setp.ne.u32 %p1, %r1, 1;
    @%p1 bra done;
    {
    .param .b64 a2;
    .param .align 4 .b8 g2[12];
    .param .align 4 .b8 b2[12];
    .param .b32 s2;
    .param .b64 r2;
    mov.u64 %d2, note;
    st.param.b64 [a2], %d2;
    st.param.b32 [g2], 1;
    st.param.b32 [g2+4], 1;
    st.param.b32 [g2+8], 1;
    st.param.b32 [b2], 1;
    st.param.b32 [b2+4], 1;
    st.param.b32 [b2+8], 1;
    st.param.b32 [s2], 0;
    call (r2), __cudaCDP2GetParameterBufferV2, (a2, g2, b2, s2);
    ld.param.b64 %d3, [r2];
    }
    st.u64 [%d3], %d1;
    st.u32 [%d3+8], 2;
    {
    .param .b64 p2;
    .param .b64 t2;
    .param .b32 e2;
    st.param.b64 [p2], %d3;
    st.param.b64 [t2], 0;
    call (e2), __cudaCDP2LaunchDeviceV2, (p2, t2);
    ld.param.b32 %r4, [e2];
    }
    setp.ne.u32 %p2, %r4, 0;
    @%p2 trap;
done:
    ret;
}
.visible .entry order(.param .u64 out, .param .u32 unused)
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [out];
    {
    .param .b64 a3;
    .param .align 4 .b8 g3[12];
    .param .align 4 .b8 b3[12];
    .param .b32 s3;
    .param .b64 r3;
    mov.u64 %d2, note;
    st.param.b64 [a3], %d2;
    st.param.b32 [g3], 1;
    st.param.b32 [g3+4], 1;
    st.param.b32 [g3+8], 1;
    st.param.b32 [b3], 1;
    st.param.b32 [b3+4], 1;
    st.param.b32 [b3+8], 1;
    st.param.b32 [s3], 0;
    call (r3), __cudaCDP2GetParameterBufferV2, (a3, g3, b3, s3);
    ld.param.b64 %d3, [r3];
    }
    st.u64 [%d3], %d1;
    st.u32 [%d3+8], 7;
    {
    .param .b64 p3;
    .param .b64 t3;
    .param .b32 e3;
    st.param.b64 [p3], %d3;
    st.param.b64 [t3], 3;
    call (e3), __cudaCDP2LaunchDeviceV2, (p3, t3);
    ld.param.b32 %r4, [e3];
    }
    setp.ne.u32 %p2, %r4, 0;
    @%p2 trap;
    {
    .param .b64 a4;
    .param .align 4 .b8 g4[12];
    .param .align 4 .b8 b4[12];
    .param .b32 s4;
    .param .b64 r4;
    mov.u64 %d2, note;
    st.param.b64 [a4], %d2;
    st.param.b32 [g4], 1;
    st.param.b32 [g4+4], 1;
    st.param.b32 [g4+8], 1;
    st.param.b32 [b4], 1;
    st.param.b32 [b4+4], 1;
    st.param.b32 [b4+8], 1;
    st.param.b32 [s4], 0;
    call (r4), __cudaCDP2GetParameterBufferV2, (a4, g4, b4, s4);
    ld.param.b64 %d3, [r4];
    }
    st.u64 [%d3], %d1;
    st.u32 [%d3+8], 1;
    {
    .param .b64 p4;
    .param .b64 t4;
    .param .b32 e4;
    st.param.b64 [p4], %d3;
    st.param.b64 [t4], 0;
    call (e4), __cudaCDP2LaunchDeviceV2, (p4, t4);
    ld.param.b32 %r4, [e4];
    }
    setp.ne.u32 %p2, %r4, 0;
    @%p2 trap;
    {
    .param .b64 a5;
    .param .align 4 .b8 g5[12];
    .param .align 4 .b8 b5[12];
    .param .b32 s5;
    .param .b64 r5;
    mov.u64 %d2, note;
    st.param.b64 [a5], %d2;
    st.param.b32 [g5], 1;
    st.param.b32 [g5+4], 1;
    st.param.b32 [g5+8], 1;
    st.param.b32 [b5], 1;
    st.param.b32 [b5+4], 1;
    st.param.b32 [b5+8], 1;
    st.param.b32 [s5], 0;
    call (r5), __cudaCDP2GetParameterBufferV2, (a5, g5, b5, s5);
    ld.param.b64 %d3, [r5];
    }
    st.u64 [%d3], %d1;
    st.u32 [%d3+8], 3;
    {
    .param .b64 p5;
    .param .b64 t5;
    .param .b32 e5;
    st.param.b64 [p5], %d3;
    st.param.b64 [t5], 0;
    call (e5), __cudaCDP2LaunchDeviceV2, (p5, t5);
    ld.param.b32 %r4, [e5];
    }
    setp.ne.u32 %p2, %r4, 0;
    @%p2 trap;
    ret;
}
P
[ "$("$MARGAY" run -q -t none --device emu -o native -- ./children kernels.ptx)" = ok ] || { echo "not native"; exit 1; }
[ "$("$MARGAY" run -q --device emu -o profile -- ./children kernels.ptx)" = ok ] || { "$MARGAY" run --device emu -o again -- ./children kernels.ptx; exit 1; }
for d in native profile; do "$MARGAY" report $d --json > $d.json || exit 1; done
python3 - <<'P'
import json
for name in 'native', 'profile':
    r = json.load(open(name + '.json'))
    c = r['coverage']
    assert c['launches'] == 2 and c['device_launches'] == 14 + 4 and c['unknown'] == c['failed'] == 0, c
    assert c['instrumented'] == (2 if name == 'profile' else 0), c
    assert sum(l['by_kernel'] for l in r['launches']) == 18
k = {x['name']: x for x in r['kernels']}
assert k['tree']['launches'] == 15 and k['note']['launches'] == 4
first = k['tree']['blocks'][0]
assert first['thread_entries'] == 32 * (2 + 4 + 8 + 16) and first['warp_entries'] == 30, first
assert k['note']['blocks'][0]['thread_entries'] == 4
assert all(l['ran'] == 'instrumented' for l in r['launches'])
P

# On a GPU (here a driver over the emulator) kernels that launch kernels run native, named with the reason; what they launch is unknown.
LD_LIBRARY_PATH=$B/test/driver XDG_CACHE_HOME=$PWD/cache "$MARGAY" run --device nvidia -o passed -- ./children kernels.ptx > out 2> err && grep -qx ok out &&
    grep -q '^  launch: 2 unknown, kernels launched on the device$' err && "$MARGAY" report passed --json > out.json && python3 - <<'P' || { cat out err; exit 1; }
import json
c = json.load(open('out.json'))['coverage']
assert (c['launches'], c['instrumented'], c['failed'], c['unknown']) == (2, 0, 0, 2), c
assert [(x['kernel'], x['reason']) for x in c['native'] if x['ran'] == 'native'] == [('tree', 'address of a kernel: tree'), ('order', 'address of a kernel: note')], c
P

# Each is a launch of its own in a trace of accesses, numbered apart; on a GPU the trace knows none.
[ "$("$MARGAY" run -q --device emu -t trace,sum=on -o traced -- ./children kernels.ptx)" = ok ] && "$MARGAY" report traced --json > traced.json &&
    "$MARGAY" trace print traced --json > traced.jsonl && python3 - <<'P' || exit 1
import json
t = json.load(open('traced.json'))['tools']['trace']
rows = [json.loads(l) for l in open('traced.jsonl')]
steps = [r['fields'] for r in rows if r['kind'] == 'trace.step' and r['fields']['kind'] == 'launch']
assert sorted(s['launch'] for s in steps) == [0, 1] + [2 ** 62 + i for i in range(18)] and sum(s['flags'] >> 9 & 1 for s in steps) == 18, steps
assert len(t['launches']) == 20 and all(l['lanes'] == l['received_lanes'] > 0 and l['address_sum'] == l['counted_sum'] for l in t['launches']), t
atomics = [r['fields'] for r in rows if r['kind'] == 'trace.access' and r['fields']['access'] == 'atomic' and r['fields']['kernel'] == 'tree']
assert len(atomics) == 30 and all(a['mask'] == 1 for a in atomics) # 2 + 4 + 8 + 16 CTAs, a lane of each
P
