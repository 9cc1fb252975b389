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
