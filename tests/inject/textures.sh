#!/bin/sh
# Texture and surface references and objects on the emulator: results, and every launch instrumented. On a
# real GPU: tests/gpu/textures.sh.
set -u
gcc -O1 -Wall -Werror -I"$ROOT/src" -o textures "$ROOT/tests/inject/textures.c" -L"$B/lib/margay/driver" -lcuda || exit 1
cat > kernels.ptx <<'P'
.version 7.0
.target sm_70
.address_size 64
.global .texref ref;
.global .texref square;
.global .surfref surf;
.visible .entry by_reference(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .f32 %f<5>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %tid.x;
    tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [ref, {%r1}];
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d3, %d1, %d2;
    st.global.f32 [%d3], %f1;
    ret;
}
.visible .entry fill_reference()
{
    .reg .b32 %r<5>;
    .reg .f32 %f<2>;
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 7;
    shr.u32 %r3, %r1, 3;
    mad.lo.u32 %r4, %r3, 10, %r2;
    cvt.rn.f32.u32 %f1, %r4;
    shl.b32 %r2, %r2, 2;
    sust.b.2d.b32.trap [surf, {%r2, %r3}], %f1;
    ret;
}
.visible .entry fill_object(.param .u64 s)
{
    .reg .b32 %r<5>;
    .reg .f32 %f<2>;
    .reg .b64 %d<2>;
    ld.param.u64 %d1, [s];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 7;
    shr.u32 %r3, %r1, 3;
    mad.lo.u32 %r4, %r3, 10, %r2;
    cvt.rn.f32.u32 %f1, %r4;
    shl.b32 %r2, %r2, 2;
    sust.b.2d.b32.zero [%d1, {%r2, %r3}], {%f1};
    ret;
}
.visible .entry filter(.param .u64 t, .param .u64 out)
{
    .reg .b32 %r<5>;
    .reg .f32 %f<9>;
    .reg .b64 %d<5>;
    ld.param.u64 %d1, [t];
    ld.param.u64 %d2, [out];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 7;
    shr.u32 %r3, %r1, 3;
    cvt.rn.f32.u32 %f1, %r2;
    cvt.rn.f32.u32 %f2, %r3;
    add.f32 %f1, %f1, 0f3F400000;
    add.f32 %f2, %f2, 0f3F800000;
    tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%d1, {%f1, %f2}];
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d4, %d2, %d3;
    st.global.f32 [%d4], %f3;
    ret;
}
.visible .entry normalised(.param .u64 out)
{
    .reg .b32 %r<5>;
    .reg .f32 %f<9>;
    .reg .b64 %d<5>;
    ld.param.u64 %d2, [out];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 7;
    shr.u32 %r3, %r1, 3;
    cvt.rn.f32.u32 %f1, %r2;
    cvt.rn.f32.u32 %f2, %r3;
    fma.rn.f32 %f1, %f1, 0f3E000000, 0f3D800000;
    fma.rn.f32 %f2, %f2, 0f3E000000, 0f3D800000;
    mov.u64 %d1, square;
    tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%d1, {%f1, %f2}];
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d4, %d2, %d3;
    st.global.f32 [%d4], %f3;
    ret;
}
P
if [ -n "${REAL_GPU:-}" ]; then # references are shared with the native code, or their kernels run native and say why
    natively=$(./textures kernels.ptx)
    [ "$natively" = ok ] || { echo "without Margay it fails as well: nothing to compare ($natively)"; exit 77; }
    [ "$("$MARGAY" run -q --device nvidia -o profile -- ./textures kernels.ptx 2> err)" = ok ] || { cat err; "$MARGAY" run --device nvidia -o again -- ./textures kernels.ptx; exit 1; }
    "$MARGAY" report profile --json | python3 -c 'import json, sys; c = json.load(sys.stdin)["coverage"]; print(c["instrumented"], "of", c["launches"], *(n["kernel"] + ": " + n["reason"] for n in c["native"]), sep="; "); sys.exit(c["launches"] != 8 or c["failed"] > 4 or not c["instrumented"])'
    exit
fi
[ "$("$MARGAY" run -q --device emu -o profile -- ./textures kernels.ptx)" = ok ] || { "$MARGAY" run --device emu -o again -- ./textures kernels.ptx; exit 1; }
"$MARGAY" report profile --json > out.json && python3 - <<'P'
import json
r = json.load(open('out.json'))['coverage']
assert r['launches'] == 8 and r['instrumented'] == 8 and not r['native'], r
P
[ $? = 0 ] || exit 1
# Tool trace has a record for each warp that runs one, without addresses; as many lanes as the block counts say.
"$MARGAY" run -q --device emu -t trace -t communication -t cache -t blocks -o traced -- ./textures kernels.ptx > out || { cat out; exit 1; }
"$MARGAY" report traced --json > out.json
"$MARGAY" trace info traced --json > info.json
"$MARGAY" trace print traced --json > print.json
"$MARGAY" study communication traced > study.text
python3 - <<'P'
import json
tools = json.load(open('out.json'))['tools']
lanes = {}
for l in open('print.json'):
    f = json.loads(l)['fields']
    if f.get('access') == 'unseen':
        assert f['bytes'] == 0 and f['addresses'] == []
        lanes[f['op']] = lanes.get(f['op'], 0) + bin(f['mask']).count('1')
want = {}
for x in tools['trace']['not_looked_at']: want[x['op']] = want.get(x['op'], 0) + x['executions']
assert lanes == want and len(want) >= 4 and all(want.values()), (lanes, want)
n = sum(want.values())
assert sum(l['unseen'] for l in tools['trace']['launches']) == n
assert tools['communication']['trace']['unseen'] == tools['cache']['unseen'] == n
ops = set(tools['cache']['unseen_ops'].split(', '))
assert ops == set(want), ops
info = json.load(open('info.json'))['files'][0]['not_looked_at']
assert {x['op'] for x in info} == set(want) and {x['kind'] for x in info} == {'texture read', 'surface access'}
P
[ $? = 0 ] || exit 1
grep -q 'not looked at, run by' study.text || { cat study.text; exit 1; }
# a surface store outside with .trap is stopped and named
sed 's/shl.b32 %r2, %r2, 2;/shl.b32 %r2, %r2, 3;/' kernels.ptx > outside.ptx
"$MARGAY" run --device emu -o outside -- ./textures outside.ptx > out 2>&1 && exit 1
grep -q 'surface access outside at x 32' out || { cat out; exit 1; }
