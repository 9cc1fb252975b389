#!/usr/bin/env bash
# Tool trace, loops as one record: kernels with loops of many shapes have every access of every lane in its order, as the same
# program run here says, and, where lanes go together, the same records with and without loops; a product by tiles is
# recorded by loops alone, and studies find in both traces the same. On emulator, CPU device and behind a stand-in for a GPU;
# GPU=1: on a GPU alone (tests/gpu/trace_loops.sh).
set -u
failed=0
export XDG_CACHE_HOME=$PWD/cache
fail() { echo "FAIL $*"; failed=1; }
loops="python3 $ROOT/tests/tool/trace_loops.py"
run() { # WHAT DEVICE PROGRAM ARGS...: on.json off.json of accesses, p.on p.off profiles, r.on.json r.off.json reports
    what=$1 device=$2
    shift 2
    for o in on off; do
        rm -rf p.$o
        timeout 300 "$MARGAY" run -q -o p.$o --device $device -t trace,sum=on,loops=$o -- "$@" > out 2> err || fail "$what: exit $?: $(tail -3 err)"
        "$MARGAY" trace print p.$o --json > $o.json || fail "$what: print"
        "$MARGAY" report p.$o --json > r.$o.json || fail "$what: report"
        "$MARGAY" trace verify p.$o > /dev/null || fail "$what: verify"
    done
    python3 - > why 2>&1 <<'P' || { fail "$what: sums"; cat why; }
import json
on, off = (json.load(open(f'r.{o}.json'))['tools']['trace'] for o in ('on', 'off'))
assert not any(l['in_loops'] for l in off['launches'])
for a, b in zip(on['launches'], off['launches'], strict=True):
    assert a['lanes'] == a['received_lanes'] == b['lanes'] and a['address_sum'] == a['counted_sum'], (a, b)
assert on['dropped'] == on['missed'] == 0
P
}
in_loops() { python3 -c "
import json
print(sum(l['in_loops'] for l in json.load(open('r.on.json'))['tools']['trace']['launches']))"; }
gcc -O1 -o ptxrun "$ROOT/tests/cli/ptxrun.c" -ldl || exit 1
software="emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu)"
places="$software stand-in"
[ -n "${GPU:-}" ] && places=gpu software=nvidia
seed=21
for where in $places; do
    device=$where other=off.json
    case $where in
    gpu) device=nvidia other= ;; # where lanes meet again is its matter
    stand-in) device=nvidia LD_LIBRARY_PATH=$B/test/driver; export LD_LIBRARY_PATH ;;
    esac
    $loops make $seed 12 || exit 1
    run "$where seed $seed" $device ./ptxrun load=loops.ptx $(cat args)
    $loops check on.json $other > why 2>&1 || { fail "$where seed $seed"; tail -3 why; }
    [ "$(in_loops)" -gt 50 ] || fail "$where: no loop has one record"
    seed=$((seed + 1))
done
[ -n "${GPU:-}" ] || unset LD_LIBRARY_PATH
for device in $software; do
    run "$device wraps" $device ./ptxrun mib=4100 load="$ROOT/tests/tool/trace_loops.ptx" {up,over,down,guess}:1,1,1:64,1,1:30 {up,over,down,guess}:1,1,1:64,1,1:1 \
        {up,down,guess}:1,1,1:32,1,1:11 until:1,1,1:32,1,1:{1,4,52}
    python3 - > why 2>&1 <<'P' || { fail "$device wraps"; cat why; }
import json
rows = [r['fields'] for r in map(json.loads, open('on.json')) if r['kind'] in ('trace.access', 'trace.step')]
base = next(int(s['dst'], 16) for s in rows if s.get('kind') == 'alloc' and s['bytes'] == 4100 << 20)
of = {'up': lambda t, r: (t + 0xffffffc0 + 3 * r) % 2 ** 32, 'over': lambda t, r: (t + 0x7fffffc0 + 3 * r + 2 ** 31) % 2 ** 32,
      'down': lambda t, r: (t - 3 * r) % 2 ** 32, 'guess': lambda t, r: (t - 3 * r) % 2 ** 32}
launches = [(k, 64, 30) for k in of] + [(k, 64, 1) for k in of] + [(k, 32, 11) for k in ('up', 'down', 'guess')]
for n, (k, threads, rounds) in enumerate(launches):
    for w in range(threads // 32):
        got = [(a['number'], [p - base for p in a['addresses']]) for a in rows if 'access' in a and a['launch'] == n and a['warp'] == w]
        assert got == [(r, [of[k](32 * w + l, r) for l in range(32)]) for r in range(rounds)], (n, k, w, got)
for n, rounds in enumerate((1, 4, 52)): # steps of 2 n bytes, a load and a store beside it
    got = [(a['number'], [p - base for p in a['addresses']]) for a in rows if 'access' in a and a['launch'] == 11 + n]
    assert got == [(k, [8 * l + 2 * rounds * (k // 2) + 4 * (k % 2) for l in range(32)]) for k in range(2 * rounds)], (rounds, got)
tool = json.load(open('r.on.json'))['tools']['trace']['launches']
# those whose index wraps in some lane have each round on its own, unless rounds are compared; of `up` 11 rounds wrap in none
assert [l['in_loops'] for l in tool] == [0, 0, 0, tool[3]['in_loops']] + [0] * 4 + [11, 0, tool[10]['in_loops'], 0, 8, 104] and tool[3]['in_loops'] > 30, tool
P
done
[ -n "${GPU:-}" ] && exit $failed
run matmul emu "$B/examples/matmul"
python3 - > why 2>&1 <<'P' || { fail matmul; cat why; }
import json
l, = json.load(open('r.on.json'))['tools']['trace']['launches']
warps = l['records'] + l['barriers'] - l['in_loops'] # one store each; two loads and two barriers a round
assert warps == 64 * 8 and l['barriers'] % (2 * warps) == 0 and l['records'] == warps + l['barriers'] > 2 * warps, l
P
for o in on off; do "$MARGAY" study communication p.$o --json > s.$o.json 2> err || fail "study: $(cat err)"; done
python3 - > why 2>&1 <<'P' || { fail 'study of loops'; cat why; }
import json
a, b = (json.load(open(f's.{o}.json')) for o in ('on', 'off'))
def compare(x, y, at=''):
    if isinstance(x, dict): [compare(x[k], y[k], f'{at}.{k}') for k in x]
    elif isinstance(x, list): [compare(i, j, f'{at}[]') for i, j in zip(x, y, strict=True)]
    else: assert x == y or str(x).startswith('p.o') or str(x).startswith('0x'), (at, x, y)
compare(a, b)
assert len(str(a)) > 1000
P
# what is selected by CTA comes by loops, too; what is selected by buffer, a sample of records, and with its blocks a loop
# around another one, access by access
for how in 'trace,sum=on,cta=1-2 block yes' 'trace,sum=on,buffer=1 block no' 'trace,sum=on,instructions=on block no' 'trace,sum=on,barriers=off block yes' \
    'trace,sum=on,sample=2 block yes' 'trace,sum=on 1/3 no'; do
    set -- $how
    rm -rf p
    "$MARGAY" run -q -o p --device emu --channel $2 -t $1 -- "$B/examples/matmul" > out 2> err || fail "$how: $(cat err)"
    "$MARGAY" report p --json > p.json
    python3 - "$@" > why 2>&1 <<'P' || { fail "$how"; cat why; }
import json, sys
what, policy, loops = sys.argv[1:]
l, = json.load(open('p.json'))['tools']['trace']['launches']
whole = 'sample' not in what and policy == 'block'
assert (l['lanes'] == l['received_lanes']) == whole and (not whole or l['address_sum'] == l['counted_sum']), l
assert l['received_lanes'] > 0 and (l['in_loops'] > 0) == (loops == 'yes'), l
P
done
exit $failed
