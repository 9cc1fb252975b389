#!/bin/sh
# Margay's memory on an NVIDIA device stands apart from the program's (the driver over the emulator): nothing of the program's is
# near it; what a kernel writes there is found, the launch has no counts and says why, and no other count changes; without virtual
# memory calls the same with allocations of the driver's; a context takes its memory along.
# long
set -u
failed=0
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart EMU_GPU_MAPS=$PWD/maps
gcc -O1 -Wl,--unresolved-symbols=ignore-all -o apart "$ROOT/tests/inject/apart.c" "$B/test/driver/libcuda.so.1" || exit 1
bad() { echo "FAIL $*"; cat err; failed=1; }
run() { # NAME [OPTIONS] -- ARGUMENTS: exit status in rc
    name=$1
    shift
    rm -rf maps "$name"
    timeout 300 "$MARGAY" run -o "$name" "$@" > out 2> err
    rc=$?
    "$MARGAY" report "$name" --json --per-launch > "$name.json" 2>> err
}
run emu --device emu -- ./apart work
[ $rc = 0 ] && grep -qx done out && echo "ok   the emulator's counts" || bad "emulator: $rc"
cat > same.py <<'P'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
least, tool = int(sys.argv[3]), sys.argv[4:]
name = lambda r, l: r['kernels'][l['kernel']]['name']
works = lambda r: [l for l in r['launches'] if name(r, l) == 'work']
none = [l for l in b['launches'] if l['thread_entries'] is None]
assert all(l['complete'] and l['why'].startswith('the program wrote into it') and l['ran'] == 'instrumented' for l in none), none
assert b['coverage']['spoilt'] == len(none) >= least, (len(none), least)
assert b['coverage']['instrumented'] == b['coverage']['launches'], b['coverage']
if not least: assert not none, none
told = 0
for x, y in zip(works(a), works(b)):
    if y['thread_entries'] is not None: told += 1
    assert y['thread_entries'] in (None, x['thread_entries']), (x['thread_entries'], y['thread_entries'])
for l in b['launches']:
    if name(b, l) == 'stray': assert l['thread_entries'] in (None, [1]), l
assert told >= 1 and len(works(a)) == len(works(b)), told
for k in b['kernels']:
    assert k['spoilt'] == sum(l['thread_entries'] is None for l in b['launches'] if l['kernel'] == k['id']), k['name']
if tool:
    # cells of other tools hold launches with counts alone: accesses of `work` are 2 a round
    counted = sum(sum(n * i for n, i in zip(l['thread_entries'], (1, 0, 0))) for l in works(b) if l['thread_entries'])
    sites = [s for s in b['tools']['memory']['sites'] if b['kernels'][s['kernel']]['name'] == 'work']
    rounds = sum(l['thread_entries'][1] for l in works(b) if l['thread_entries'])
    assert sites and all(s['accesses'] == rounds for s in sites), (sites, rounds)
P
for plain in "" 1; do
    [ -z "$plain" ] || export EMU_GPU_PLAIN=1
    run work --strict --device nvidia -- ./apart work
    [ $rc = 0 ] && python3 same.py emu.json work.json 0 2>> err && echo "ok   work${plain:+, plain}" || bad "work: $rc"
    lines=$(grep -c 'among the program' err)
    [ "$lines" = "${plain:+2}${plain:-0}" ] || [ "$plain$lines" = 12 ] || bad "$lines lines about plain memory"
done
unset EMU_GPU_PLAIN
run far --device nvidia -t accesses -t blocks -- ./apart far
[ $rc = 0 ] && grep -qx 'near: 0 of 161; mapped 1, pinned 1' out && echo "ok   nothing near" || { cat out; bad "near"; }
for where in front behind counters; do
    run $where --strict --device nvidia -t blocks -t memory -- ./apart $where
    [ $rc = 121 ] && python3 same.py emu.json $where.json 1 memory 2>> err && grep -q 'coverage: .* without counts: the program wrote into them' err &&
        "$MARGAY" report $where | grep -q 'without counts (launch' && echo "ok   $where" || { cat out; bad "$where: $rc"; }
done
run piece --device nvidia -- ./apart piece
[ $rc = 0 ] && python3 same.py emu.json piece.json 1 2>> err && grep -q "^margay: the program wrote into Margay's memory" err && echo "ok   piece" || { cat out; bad "piece: $rc"; }
# words of ours in the CTA's shared memory, which the emulator lays in front of the kernel's: what hits the word between is seen
run shared --device nvidia -t lanes -- ./apart shared
[ $rc = 0 ] && python3 - <<'P' 2>> err && echo "ok   shared" || { cat out; bad "shared: $rc"; }
import json
r = json.load(open('shared.json'))
of = [l for l in r['launches'] if r['kernels'][l['kernel']]['name'] == 'share']
assert len(of) == 3 and all(l['complete'] for l in of), of
assert [l['why'] is None for l in of] == [True, False, True] and of[1]['why'].startswith('the program wrote into it'), [l['why'] for l in of]
assert r['coverage']['spoilt'] == 1, r['coverage']
P
# a recursive function keeps nothing of ours in shared memory: a store beside the kernel's array ends as without a tool
for off in 0 1020 -4 -512 -1024 1024; do
    run none --device nvidia -t none -- ./apart calls $off
    mv out none.out
    want=$rc
    run calls --device nvidia -- ./apart calls $off
    cmp out none.out && [ $rc = $want ] && python3 - $off <<'P' 2>> err && echo "ok   calls $off" || { cat out; bad "calls $off: $rc"; }
import json, sys
r = json.load(open('calls.json'))
of = [l for l in r['launches'] if r['kernels'][l['kernel']]['name'] == 'calls']
assert len(of) == 1 and of[0]['complete'] == (0 <= int(sys.argv[1]) < 1024), of
# 2 CTAs of 64 threads, one of each stores; every thread enters the function 301 times
if of[0]['complete']: assert of[0]['thread_entries'] == [128, 2, 128, 128, 38528, 38400, 38400, 38528], of
P
done
# beside an array, with words of ours in front of it: faults as without a tool, and no count changes
for kernel in near generic; do
    for off in 0 1016 -4 -8 -1024 -1028 -2048 -4096 1020 1024; do
        run none --device nvidia -t none -- ./apart $kernel $off
        mv out none.out
        want=$rc
        run $kernel --device nvidia -t lanes -t blocks -- ./apart $kernel $off
        cmp out none.out && [ $rc = $want ] && python3 - $kernel $off <<'P' 2>> err && echo "ok   $kernel $off" || { cat out; bad "$kernel $off: $rc"; }
import json, sys
kernel, inside = sys.argv[1], 0 <= int(sys.argv[2]) <= 1016
r = json.load(open(kernel + '.json'))
of = [l for l in r['launches'] if r['kernels'][l['kernel']]['name'] == kernel]
assert len(of) == 1 and of[0]['complete'] == inside, of
# 2 CTAs of 64 threads, six branches that half of them take, one thread of each stores; 5 rounds
if inside: assert of[0]['thread_entries'] == [128] + [64, 128] * 6 + [2, 640, 128], of
assert r['coverage']['spoilt'] == 0, r['coverage']
P
    done
done
run contexts --device nvidia -- ./apart contexts 6
"$MARGAY" report contexts --json > out.json
[ $rc = 0 ] && python3 - <<'P' 2>> err && echo "ok   contexts" || bad "contexts: $rc"
import json
c = json.load(open('out.json'))['coverage']
assert (c['launches'], c['instrumented'], c['spoilt']) == (6, 6, 0), c
n = {}
for l in open('maps'):
    what, at, size = l.split()
    n.setdefault(what, []).append((at, size))
assert sorted(n['map']) == sorted(n['unmap']) and len(n['map']) >= 6, n
assert sorted(n['reserve']) == sorted(n['free']) and len(n['reserve']) == 6, n
assert len({at for at, size in n['host']}) < 6, n['host'] # pinned ranges serve the next context
P
exit $failed
