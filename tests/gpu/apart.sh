#!/bin/bash
# On a GPU: stores that go astray by up to 64 MiB around buffers of every kind change no count, and the program prints and ends as under
# `-t none`: at most 150 processes. Last the case that began it: 24 KiB through a pointer to 3 KiB, whose counts are the emulator's.
# APART=FILE APART_SHARED=FILE (or both in build/release/gpu): the program, already built by nvcc -cudart static and shared.   KINDS="malloc ...": only these
set -u
: "${NVCC:=$(command -v nvcc || true)}" "${MARGAY:=build/release/bin/margay}" "${ROOT:=$(cd "$(dirname "$0")/../.." && pwd)}" "${TOOLS:=-t blocks -t memory}"
MARGAY=$(readlink -f "$MARGAY") bad=0 runs=0 different=0
built=$ROOT/build/release/gpu
[ -n "${APART:-}" ] || [ ! -x "$built/apart" ] || APART=$built/apart APART_SHARED=$built/apart-shared
if [ -z "${APART:-}" ]; then
    [ -n "$NVCC" ] || { echo "no nvcc"; exit 77; }
    "$NVCC" -O1 -arch=sm_90 -cudart static -o apart "$ROOT/tests/gpu/apart.cu" && "$NVCC" -O1 -arch=sm_90 -cudart shared -o apart-shared "$ROOT/tests/gpu/apart.cu" || exit 1
    APART=$PWD/apart APART_SHARED=$PWD/apart-shared
fi
cat > look.py <<'P'
import json, sys
r, taken, died = json.load(open(sys.argv[1])), int(sys.argv[2]), sys.argv[3] != '0'
c, names = r['coverage'], [k['name'] for k in r['kernels']]
assert died or c['launches'] == taken, (c['launches'], taken)
assert c['instrumented'] == c['launches'] and c['failed'] == c['unknown'] == 0, c
open_ = [l for l in r['launches'] if not l['complete']]
assert died or not open_, [(names[l['kernel']], l['id'], l['why']) for l in open_]
assert all(l['complete'] for l in r['launches'][:len(r['launches']) - len(open_)]), 'a launch that was not the last has no end'
want = None
for l in r['launches']:
    if not l['complete']: continue
    assert l['thread_entries'] is not None, (names[l['kernel']], l['id'], l['why'])
    if names[l['kernel']] == 'work':
        want = want or l['thread_entries']
        assert l['thread_entries'] == want, (l['thread_entries'], want)
    assert l['thread_entries'][0] == l['grid'][0] * l['block'][0], l['thread_entries']
assert (want or died) and c['spoilt'] == 0
P
none() { # ARGUMENTS: into none.out, its status into want
    timeout 60 "$MARGAY" run -q -t none --device nvidia -o none -- "$APART" "$@" > none.out 2> none.err
    want=$? runs=$((runs + 1))
    rm -rf none
}
one() { # NAME KIND SIDE DISTANCES...: under -t none and instrumented
    local name=$1 again=0
    shift
    none "$@"
    timeout 60 "$MARGAY" run -q $TOOLS --device nvidia -o "$name" -- "$APART" "$@" > out 2> err
    local rc=$?
    runs=$((runs + 1))
    # where the driver puts things differs from run to run, and with it what lies so far away
    while { [ $rc != $want ] || ! cmp -s none.out out; } && [ $again -lt 3 ]; do again=$((again + 1)); none "$@"; done
    if [ $rc != $want ] || ! cmp -s none.out out; then
        echo "DIFFERS $name: exit $rc, under none $want"
        diff none.out out | head -n 4
        head -n 3 err
        different=$((different + 1)) bad=1
    elif [ $again != 0 ]; then
        echo "varies $name: as under none at the ${again}th further run"
    fi
    "$MARGAY" report "$name" --json --per-launch > p.json 2> err &&
        python3 look.py p.json "$(sed -n 's/^launches //p' out | grep . || echo 0)" "$rc" 2> err || { echo "FAIL $name: counts"; tail -n 1 err; bad=1; }
    rm -rf "$name"
}
powers() { # FROM TO
    local k
    for ((k = $1; k <= $2; k++)); do echo $(((1 << k) - 4)) $((1 << k)) $(((1 << k) + 4)); done
}
RANDOM=20
seeded=$(for i in 1 2 3 4 5 6 7 8 9 10; do echo $(((RANDOM << 6 | RANDOM & 63) % 2000000)); done | sort -n)
for kind in ${KINDS:-malloc async managed module array}; do
    for side in up down; do
        one "$kind-$side-near" $kind $side 1 4 8 $(powers 4 15)
        one "$kind-$side-page" $kind $side $(powers 16 20) $seeded
        for k in 21 23 25 26; do one "$kind-$side-$k" $kind $side $(powers $k $((k == 26 ? 26 : k == 25 ? 25 : k + 1))); done
    done
done
case " ${KINDS:-shared} " in *" shared "*)
    for side in up down; do one "shared-$side" shared $side 1 4 8 16 64 256 1020 1024 2048 4096; done
    one shared-far shared up 65536 ;;
esac
TOOLS=-tblocks
timeout 60 "$MARGAY" run -q -t blocks --device nvidia -o issue -- "$APART" issue > issue.out 2> err
rc=$?
timeout 60 "$MARGAY" run -q -t blocks --device emu -o fits -- "${APART_SHARED:-$APART}" fits > fits.out 2>> err && "$MARGAY" report issue --json --per-launch > issue.json && "$MARGAY" report fits --json --per-launch > fits.json
cmp issue.out fits.out && [ $rc = 0 ] && python3 - <<'P' || { echo "FAIL issue: exit $rc"; cat err; bad=1; }
import json
a, b = (json.load(open(f)) for f in ('issue.json', 'fits.json'))
counts = lambda r: [(r['kernels'][l['kernel']]['name'], l['thread_entries']) for l in r['launches']]
assert counts(a) == counts(b) and len(counts(a)) == 3, (counts(a), counts(b))
P
echo "$runs processes, $different differ"
exit $bad
