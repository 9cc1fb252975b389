#!/bin/sh
# Every scheme of counters gives the thread counts that the emulator's own scheme gives, in every block
# of every example; and weights of an earlier run change no count. One worker: in bfs the order of CTAs
# decides who marks a node first.
set -u
bad=0 ran=0
programs='saxpy reduce divergent matmul histogram stencil bfs'
[ "${VARIANT:-release}" = release ] || programs=divergent # random kernels under sanitizers: the unit tests tool_*
for prog in $programs; do
    [ -x "$EX/$prog" ] || continue
    ran=$((ran + 1))
    "$MARGAY" run -q --device emu --workers 1 -t blocks -o "$prog.class" -- "$EX/$prog" >"$prog.out" 2>&1 || { echo "$prog under class: exit $?"; bad=1; }
    "$MARGAY" report "$prog.class" --json >"$prog.class.json"
    python3 -c '
import json, sys
for k in json.load(open(sys.argv[1]))["kernels"]:
    for b in k["blocks"]: print(k["name"], b["id"], b["thread_entries"])' "$prog.class.json" >"$prog.weights"
    for scheme in register register,warps=off,shards=8,sm=90 "register,weights=$prog.weights" "register,weights=$prog.class" thread flux atomic register,scope=cta,cta=1; do
        "$MARGAY" run -q --device emu --workers 1 -t "blocks,counters=$scheme" -o "$prog.p" -- "$EX/$prog" >"$prog.out" 2>&1 || { echo "$prog under $scheme: exit $?"; cat "$prog.out"; bad=1; }
        "$MARGAY" report "$prog.p" --json >"$prog.json"
        base=$prog.class.json
        case $scheme in *scope=cta*)
            "$MARGAY" run -q --device emu --workers 1 -t blocks,scope=cta,cta=1 -o "$prog.cta" -- "$EX/$prog" >/dev/null 2>&1
            "$MARGAY" report "$prog.cta" --json >"$prog.cta.json"
            base=$prog.cta.json ;;
        esac
        python3 - "$base" "$prog.json" "$prog $scheme" <<'PY' || bad=1
import json, sys
a, b = ([(k["name"], x["id"], x["thread_entries"], x["warp_entries"]) for k in json.load(open(f))["kernels"] for x in k["blocks"]] for f in sys.argv[1:3])
wrong = [(x, y) for x, y in zip(a, b) if x[:3] != y[:3] or (y[3] is not None and x[3] != y[3])]
if wrong or len(a) != len(b) or not a: sys.exit("%s: %d blocks differ, first %s" % (sys.argv[3], len(wrong), wrong[:1]))
PY
        rm -rf "$prog.p" "$prog.cta"
    done
done
# Warps too: of random kernels, and of a recursive function, whose warps' counters travel with its calls.
gcc -O1 -o launch "$ROOT/tests/fuzz/kernels/launch.c" -L"$B/lib/margay/driver" -lcuda || bad=1
cat >fib.ptx <<'PTX'
// RUN grid=3 block=50
.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 r) fib(.param .b32 n)
{
    .reg .pred %p;
    .reg .b32 %n, %a, %b;
    ld.param.b32 %n, [n];
    setp.lt.u32 %p, %n, 2;
    @%p bra small;
    sub.u32 %a, %n, 1;
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %a; call (y), fib, (x); ld.param.b32 %b, [y]; }
    sub.u32 %a, %n, 2;
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %a; call (y), fib, (x); ld.param.b32 %a, [y]; }
    add.u32 %n, %a, %b;
small:
    st.param.b32 [r], %n;
    ret;
}
.visible .entry fuzz_fib(.param .u64 in, .param .u64 out, .param .u32 n)
{
    .reg .b32 %t, %c, %v;
    .reg .b64 %o;
    mov.u32 %t, %tid.x;
    mov.u32 %c, %ctaid.x;
    mad.lo.u32 %c, %c, 50, %t;
    rem.u32 %t, %t, 11;
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %t; call (y), fib, (x); ld.param.b32 %v, [y]; }
    ld.param.u64 %o, [out];
    mad.wide.u32 %o, %c, 4, %o;
    st.global.u32 [%o], %v;
    ret;
}
PTX
for seed in fib 301 305 311; do
    if [ $seed = fib ]; then cp fib.ptx k.ptx; else "$ROOT/tests/fuzz/kernels/generate" $seed >k.ptx; fi
    for scheme in class register register,sm=90; do
        LD_LIBRARY_PATH=$B/lib/margay/driver "$MARGAY" run -q --device emu -t "blocks,warps=on,counters=$scheme" -o w.p -- ./launch k.ptx >w.out 2>&1 || { echo "kernel $seed under $scheme:"; cat w.out; bad=1; }
        "$MARGAY" report w.p --json | python3 -c '
import json, sys
for k in json.load(sys.stdin)["kernels"]:
    for b in k["blocks"]: print(k["name"], b["id"], b["thread_entries"], b["warp_entries"])' >"w.$scheme"
        rm -rf w.p
        cmp -s w.class "w.$scheme" && [ -s w.class ] || { echo "kernel $seed: warps differ between class and $scheme"; diff w.class "w.$scheme"; bad=1; }
    done
done
"$MARGAY" ptx instrument --sm 90 -t blocks,warps=on,counters=register --dump plan fib.ptx | grep -q 'warps of block .*: field: travels with its calls' || { echo "the counters of fib's warps do not travel"; bad=1; }
# What each thread counted: the sums are the blocks', and a thread of saxpy enters its head once.
mkdir each
"$MARGAY" run -q --device emu -t blocks,counters=thread,each=each -o e.p -- "$EX/divergent" >e.out 2>&1 && "$MARGAY" report e.p --json >e.json && python3 - <<'PY' || { echo "each="; bad=1; }
import csv, glob, json
r = json.load(open('e.json'))
files = sorted(glob.glob('each/*.csv'), key=lambda f: int(f.split('-')[-1][:-4]))
assert len(files) == len(r['launches']) > 0, files
for k in r['kernels']:
    rows = [row for l, f in zip(r['launches'], files) if l['kernel'] == k['id'] for row in csv.DictReader(open(f))]
    for b in k['blocks']:
        mine = [int(row['entries']) for row in rows if int(row['block']) == b['id']]
        assert sum(mine) == b['thread_entries'], (b, sum(mine))
    assert sum(row['block'] == '0' and row['entries'] == '1' for row in rows) == k['threads'], k['threads']
PY
"$MARGAY" run -q --device emu -t blocks,each=each -o n.p -- "$EX/saxpy" >n.out 2>&1
[ $? -eq 120 ] && grep -q 'counters=thread' n.out || { echo "each= without counters=thread is taken"; bad=1; }
# Weights that are not there are refused before the program starts.
"$MARGAY" run -q --device emu -t "blocks,counters=register,weights=nowhere" -o n.p -- "$EX/saxpy" >n.out 2>&1
[ $? -eq 120 ] || { echo "weights=nowhere is taken"; bad=1; }
mkdir -p empty.d
"$MARGAY" run -q --device emu -t "blocks,counters=register,weights=empty.d" -o n.p -- "$EX/saxpy" >n.out 2>&1
[ $? -eq 120 ] && grep -q 'empty.d' n.out || { echo "a directory without a profile as weights:"; cat n.out; bad=1; }
[ $ran -gt 0 ] || { echo "no example was built"; exit 1; }
exit $bad
