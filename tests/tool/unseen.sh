#!/bin/sh
# Tools that look at accesses name the memory instructions that they do not look at, with how many there are and how often
# they ran: two matrix loads of 64 threads each, a guarded one, and a texture, a bulk copy and a surface that nothing reaches.
set -u
failed=0
gcc -O1 -o ptxrun "$ROOT/tests/cli/ptxrun.c" -ldl || exit 1
cat > unseen.ptx <<'END'
.version 8.0
.target sm_90
.address_size 64
.visible .entry mixed(.param .u64 p, .param .u32 n)
{
    .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %q<3>; .reg .f32 %f<9>;
    .shared .align 16 .b8 tile[1024];
    .shared .align 8 .b64 bar;
    ld.param.u64 %d1, [p];
    ld.param.u32 %r5, [n];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, tile;
    setp.ne.u32 %q1, %r5, 0;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r2];
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];
    @%q1 mbarrier.init.shared.b64 [bar], 1;
    st.global.u32 [%d1], %r3;
    @!%q1 bra DONE;
    tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%f5, %f6}];
    suld.b.1d.b32.trap {%r6}, [%d1, {%r1}];
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d1], 64, [bar];
    cp.async.bulk.commit_group;
DONE:
    ret;
}
END
cat > look.py <<'END'
import json, sys
r, tool = json.load(sys.stdin), sys.argv[1]
rows = {(x['op'].split('.')[0], x['kind']): (x['kernel'], x['instructions'], x['executions']) for x in r['tools'][tool]['not_looked_at']}
n = (lambda v: v) if sys.argv[2] == 'counted' else (lambda v: None)
want = {('ldmatrix', 'matrix load'): (0, 2, n(128)), ('mbarrier', 'barrier in memory'): (0, 1, None), ('tex', 'texture read'): (0, 1, n(0)),
        ('suld', 'surface access'): (0, 1, n(0)), ('cp', 'bulk copy'): (0, 1, n(0))}
assert rows == want, (rows, want)
END
for t in memory:counted memory,level=bytes:counted bounds:no values:no latency:no accesses:no; do
    tool=${t%%[,:]*}
    rm -rf p
    "$MARGAY" run --device emu -t ${t%:*} -o p -- ./ptxrun load=unseen.ptx mixed:2,1,1:32,1,1:0 > out 2> err || { echo "FAIL $t"; cat out err; failed=1; }
    grep -q 'not looked at in mixed: .*ldmatrix.*(matrix load' err || { echo "FAIL $t: the summary says nothing of matrix loads"; cat err; failed=1; }
    "$MARGAY" report p > text 2>&1 && grep -q 'not looked at in mixed: .*2 ldmatrix.*(matrix load.*tex.2d.*(texture read.*' text || { echo "FAIL $t: the report says nothing of textures"; cat text; failed=1; }
    "$MARGAY" report p --json | python3 look.py $tool ${t#*:} || { echo "FAIL $t --json"; failed=1; }
done
# The trace names them itself: those that reach global memory where it does not look. Bulk copies it looks at.
sed 's/    cp.async.bulk.commit_group;/    cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d1, {%r1}], [tile];\n&/' unseen.ptx > tensor.ptx
"$MARGAY" run -q --device emu -t trace -o t -- ./ptxrun load=tensor.ptx mixed:2,1,1:32,1,1:0 > out 2> err || { echo 'FAIL trace'; cat out err; failed=1; }
"$MARGAY" trace info t --json | python3 -c '
import json, sys
f, = json.load(sys.stdin)["files"]
have = sorted((x["op"].split(".")[0], x["kind"]) for x in f["not_looked_at"])
assert have == [("cp", "bulk copy"), ("suld", "surface access"), ("tex", "texture read")] and "tensor" in str(f["not_looked_at"]), have' || { echo 'FAIL trace info --json'; failed=1; }
"$MARGAY" trace info t | grep -q 'not looked at in mixed: tex.2d' || { echo 'FAIL trace info'; failed=1; }
# Matrix loads one behind another are one record of all: each of them is there, once a warp, and the kernel is not a record's code for each.
matrices() { # N: a kernel with N pairs of loads
    printf '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry matrices(.param .u64 p, .param .u32 n)\n{\n    .reg .b32 %%a<9>, %%b<9>; .reg .f32 %%c<9>; .reg .b64 %%d<3>;\n'
    printf '    ld.param.u64 %%d1, [p];\n    cvta.to.global.u64 %%d1, %%d1;\n    mov.u32 %%b0, %%tid.x;\n    mul.wide.u32 %%d2, %%b0, 4;\n    add.s64 %%d2, %%d1, %%d2;\n'
    for k in $(seq "$1"); do
        for m in a.sync.aligned.row b.sync.aligned.col; do
            printf '    wmma.load.%s.m16n16k16.global.f16 {%%a1, %%a2, %%a3, %%a4, %%a5, %%a6, %%a7, %%a8}, [%%d1], 16;\n' $m
        done
        printf '    st.global.u32 [%%d2+%d], %%a1;\n' $((128 * k))
    done
    printf '    ret;\n}\n'
}
matrices 11 > eleven.ptx
for device in emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu); do
    rm -rf m
    "$MARGAY" run -q --device $device -t trace,sum=on -o m -- ./ptxrun load=eleven.ptx matrices:3,1,1:64,1,1:0 > out 2> err || { echo "FAIL matrices on $device"; cat out err; failed=1; }
    "$MARGAY" report m --json > m.json
    "$MARGAY" trace print m --json > print.json
    python3 - <<'END' || { echo "FAIL matrices on $device"; failed=1; }
import json
l, = json.load(open('m.json'))['tools']['trace']['launches']
assert l['complete'] and l['lanes'] == l['received_lanes'] == 3 * 64 * 11 and l['address_sum'] == l['counted_sum'] and l['unseen'] == 3 * 64 * 22, l
warps = {}
for line in open('print.json'):
    f = json.loads(line)['fields']
    if 'access' in f and 'mask' in f: warps.setdefault((f['cta'], f['warp']), []).append((f['access'], bin(f['mask']).count('1'), f.get('op', '')[:11]))
pair = [('unseen', 32, 'wmma.load.a'), ('unseen', 32, 'wmma.load.b'), ('store', 32, warps[0, 0][2][2])]
assert len(warps) == 6 and all(w == pair * 11 for w in warps.values()), warps
END
done
matrices 4 | "$MARGAY" ptx instrument --sm 90 -t trace - > four.ptx
"$MARGAY" ptx instrument --sm 90 -t trace eleven.ptx > twin.ptx
[ "$(wc -c < twin.ptx)" -lt $((4 * $(wc -c < four.ptx))) ] || { echo "FAIL a twin of eleven pairs: $(wc -c < twin.ptx) bytes, of four $(wc -c < four.ptx)"; failed=1; }
"$MARGAY" run -q --device emu -t memory -o plain -- "$EX/saxpy" > out 2> err && "$MARGAY" report plain --json | python3 -c 'import json,sys; assert json.load(sys.stdin)["tools"]["memory"]["not_looked_at"] == []' ||
    { echo 'FAIL a kernel without such instructions'; failed=1; }
# Bytes that are not looked at leave no verdict about bytes.
"$MARGAY" run -q --device emu -t advise -o a -- ./ptxrun load=unseen.ptx mixed:264,1,1:32,1,1:0 > out 2> err && "$MARGAY" report a --json | python3 -c '
import json, sys
r = json.load(sys.stdin)
why, = r["no_verdict"]
assert why["kernel"] == 0 and why["why"].startswith("tool memory does not look at what ldmatrix.") and not [f for f in r["findings"] if f["rule"].endswith("_bound")], r["findings"]' ||
    { echo 'FAIL a verdict on bytes that are not known'; failed=1; }
exit $failed
