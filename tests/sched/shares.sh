#!/bin/sh
# margay sched: programs get their shares of device time, by a witness outside of it: processor time of the threads that run
# kernels, from /proc. What it tells of launches and instructions is what the programs' profiles say.
# clock
set -u
failed=0
fail() { echo "FAIL $*"; failed=1; }
device=cpu; [ -e "$B/lib/margay/libmargay-cpu.so" ] || device=emu
gcc -O1 -g -Wall -o worker "$ROOT/tests/sched/worker.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
sched() { rm -rf dir; timeout 300 "$MARGAY" sched -q --device $device -o dir --json out.json --svg out.svg "$@" > out 2> err; }
# Shares are judged where the machine gave the programs some processor time: many turns, and nobody who stood still for so long
# that the gate let it pass.
judged() { python3 -c 'import json, sys; r = json.load(open("out.json")); sys.exit(not ((r["turns"] >= 40 or len(sys.argv) > 1) and sum(p["device_ns"] for p in r["programs"]) > 4e8 and not any(p["forced"] for p in r["programs"])))' "$@" ||
    { echo "     not judged: the machine is too busy"; return 1; }; }
# NAME PCT... : shares as the JSON has them, and the witness', within 8 points of these
shares() {
    judged || { rm -f witness.json; return; }
    python3 - "$@" <<'P' || fail "$1"
import json, sys
r, name, want = json.load(open('out.json')), sys.argv[1], [float(x) for x in sys.argv[2:]]
try: seen = json.load(open('witness.json'))
except OSError: seen = None
got = [p['device_share_pct'] for p in r['programs']]
assert all(abs(g - w) < 8 for g, w in zip(got, want)), (name, got, want)
assert not seen or all(abs(g - w) < 8 for g, w in zip(seen, want)), (name, 'witness', seen, want)
print('ok  ', name, got, 'witness', seen and [round(s, 1) for s in seen])
P
    rm -f witness.json
}
# until the schedulers' programs have ended: processor time of the threads that run kernels
witness() {
    python3 - "$@" <<'P' &
import glob, json, os, sys, time
names, used, until = sys.argv[1:], {}, time.time() + 30
def threads(name):
    for ctl in glob.glob(f'dir/{name}/ctl.*'):
        pid = ctl.rsplit('.', 1)[1]
        for task in glob.glob(f'/proc/{pid}/task/*'):
            try:
                if open(task + '/comm').read() == 'margay worker\n': yield task, int(open(task + '/schedstat').read().split()[0])
            except (OSError, ValueError, IndexError): pass
begun = False
while time.time() < until:
    now = {n: dict(threads(n)) for n in names}
    if all(now.values()): begun = True
    if begun and not all(now.values()): break
    if begun:
        for n in names: used.setdefault(n, {}).setdefault('first', dict(now[n])); used[n]['last'] = {**used[n].get('last', {}), **now[n]}
    time.sleep(0.02)
spent = {n: sum(v - u['first'].get(t, 0) for t, v in u['last'].items()) for n, u in used.items()}
all_of = sum(spent.values())
if all_of: json.dump([100 * spent[n] / all_of for n in names], open('witness.tmp', 'w')); os.rename('witness.tmp', 'witness.json')
P
    watcher=$!
}

witness A B
sched -- A: ./worker 2000 2 -- B: ./worker 20000 2 || { fail "equal shares: $?"; cat out err; }
wait $watcher; shares "equal shares" 50 50
python3 - <<'P' || fail "what is told is what is recorded"
import json, os, subprocess
r = json.load(open('out.json'))
assert r['margay_json'] == 1 and r['policy'] == 'credit' and r['turns'] >= 1, r
assert r['seconds']
for p in r['programs']:
    q = json.loads(subprocess.check_output([os.environ['MARGAY'], 'report', '--json', 'dir/' + p['name']]))
    assert p['launches'] == q['coverage']['launches'], (p['launches'], q['coverage'])
    assert p['thread_instructions'] == sum(k['thread_instructions'] for k in q['kernels']), p
    assert p['exit'] == 0 and p['share_pct'] == 50
P
grep -q '^<svg .*</svg>$' out.svg || tr '\n' ' ' < out.svg | grep -q '<svg .*</svg>' || fail "picture"
witness A B C
sched --share A=50,B=30,C=20 -- A: ./worker 4000 2 -- B: ./worker 40000 2 sync -- C: ./worker 1000 2 streams || { fail "three programs: $?"; cat out err; }
wait $watcher; shares "three programs" 50 30 20
# a program that idles gives its share away, one that has ended frees it
sched -- A: ./worker 2000 x200 -- B: ./worker 20000 1.5 || fail "one ends: $?"
! judged any || python3 -c 'import json; r = json.load(open("out.json")); p = r["programs"]; assert p[1]["device_ns"] > 3 * p[0]["device_ns"], p' || fail "one ends"
sched -- A: ./worker 2000 1 think -- B: ./worker 20000 1 || fail "one thinks: $?"
! judged any || python3 -c 'import json; r = json.load(open("out.json")); p = r["programs"]; assert p[1]["device_share_pct"] > 60 and p[0]["launches"] > 20, p' || fail "one thinks"
# one whose launches are refused is given no turns for them, and works on when they are taken again
sched -- A: ./worker 2000 x500 refused -- B: ./worker 20000 2 || fail "refused: $?"
python3 -c 'import json; r = json.load(open("out.json")); p = r["programs"]; assert r["turns"] < 60 and p[0]["launches"] == 1 and p[1]["launches"], (r["turns"], p)' || fail "refused"
# whoever has a higher priority goes first
sched --priority A=1 -- A: ./worker 2000 1 -- B: ./worker 20000 1 || fail "priority: $?"
! judged any || python3 -c 'import json; r = json.load(open("out.json")); p = r["programs"]; assert p[0]["device_ns"] > 4 * p[1]["device_ns"] or p[0]["device_share_pct"] > 65, p' || fail "priority"
# without a policy nobody waits
sched --policy none -- A: ./worker 2000 1 -- B: ./worker 20000 1 || fail "none: $?"
python3 -c 'import json; r = json.load(open("out.json")); assert r["policy"] == "none" and r["turns"] == 0 and all(p["launches"] and p["waited_ns"] < 1e9 for p in r["programs"])' || fail "none"
# a policy of one file: shares of instructions
gcc -Wall -shared -fPIC -I"$ROOT/include" -o instructions.so "$ROOT/examples/policies/instructions.c" || fail "policy"
sched --policy ./instructions.so --share A=75,B=25 -- A: ./worker 2000 1.5 -- B: ./worker 20000 1.5 || { fail "policy of a file: $?"; cat err; }
! judged || python3 -c 'import json; r = json.load(open("out.json")); s = r["programs"][0]["instruction_share_pct"]; assert r["policy"] == "instructions" and s > 55, s' || fail "policy of a file"
exit $failed
