#!/usr/bin/env bash
# margay run -t communication while the program runs: what is analysed leaves the disk, the program going on until it has, with and without rests; a program that dies leaves what its complete launches gave; a disk that is full takes nothing of what was freed; who interrupts the analysis, the program having ended, gets what it has.
# clock
# long
set -euo pipefail
case ${VARIANT:-release} in asan | tsan) kill= ;; *) kill=kill ;; esac
head -c 65536 /dev/zero > hole
fallocate -p -o 0 -l 65536 hole 2> /dev/null || { echo 'this file system makes no holes'; exit 77; }
gcc -O1 -Wall -Werror -D_GNU_SOURCE -o follow "$ROOT/tests/inject/follow.c" -L"$B/lib/margay/driver" -l:libcuda.so.1
export XDG_CACHE_HOME=$PWD/cache
[ "${DEVICES:-}" = nvidia ] || export LD_LIBRARY_PATH=$B/test/driver # tests/gpu/follow.sh has a real one
try() { # DEVICE HOW END
    local rc=0
    rm -rf p
    "$MARGAY" run -q -t communication --device "$1" -o p -- ./follow p "$2" "$3" > out 2> err || rc=$?
    [ $rc = $([ "$3" = kill ] && echo 137 || echo 0) ] || { echo "FAIL $*: $rc"; cat out err; return 1; }
    [ ! -e p/trace ]
    "$MARGAY" report p --json > p.json
    python3 - "$(cat out)" "$3" <<'P' || { echo "FAIL $*"; cat err; return 1; }
import json, sys
n, end = int(sys.argv[1]), sys.argv[2]
c = json.load(open('p.json'))['tools']['communication']
t, loads = c['trace'], c['bytes']['KDV']['next']
assert t['damaged'] == 0 and t['untraced'] == 0 and c['ambiguous']['bytes'] == 0, t
bytes = 64 * 128 * 4
used = c['bytes']['KCV']['next']
if end == 'end':
    assert not t['partial'] and t['launches'] == n == len(loads), (n, t)
    assert all(loads[str(i)] == dict(load=bytes, store=bytes, atomic=0) for i in range(n))
    assert all(used[str(i)] == dict(load=bytes * (i > 0), store=bytes * (i < n - 1), atomic=0) for i in range(n))
    assert c['transfer_count'] == 64 * (n - 1), c['transfer_count']
else: # half of the file is of launches that were analysed before it died
    assert t['partial'] and n // 3 < t['launches'] <= n, (n, t)
    assert all(loads[str(i)] == dict(load=bytes, store=bytes, atomic=0) for i in range(n // 3))
    assert all(used[str(i)]['load'] == bytes for i in range(1, n // 3))
P
}
bad=0
on_disk() { # KIB HOW END: on a disk of that size: all launches are in the result, or in the trace, which stayed
    mount -t tmpfs -o "size=${1}k" none disk 2> /dev/null || { echo 'no disk can be mounted here: none is filled'; return 0; }
    "$MARGAY" run -q -t communication --device emu -o disk/p -- ./follow disk/p "$2" "$3" > out 2> err || { echo "FAIL a disk of $1 KiB: $?"; cat out err; }
    if [ -e disk/p/trace ]; then "$MARGAY" study communication disk/p --json; else "$MARGAY" report disk/p --json; fi > p.json
    umount disk
    python3 - "$(cat out)" "$3" <<'P' || { echo "FAIL a disk of $1 KiB: $3"; cat err; return 1; }
import json, sys
c, n = json.load(open('p.json')), int(sys.argv[1])
c = c.get('tools', c)['communication']
t = c['trace']
# a disk that is full has not got the last ones: then the result says that it is partial
whole = t['launches'] == n and not t['partial']
assert t['damaged'] == 0 and t['untraced'] == 0 and (whole or t['partial'] and n // 10 < t['launches'] <= n), (n, t)
assert all(c['bytes']['KCV']['next'][str(i)]['load'] == 64 * 128 * 4 * (i > 0) for i in range(n if whole else t['launches'] // 2))
P
}
mkdir disk
on_disk 65536 sync full || bad=1
on_disk 3000 sync 200 || bad=1
devices=${DEVICES:-emu cpu nvidia}
[ "${VARIANT:-release}" = release ] || devices='emu nvidia' # the CPU device under sanitizers: tests/inject/scenarios.sh, tools.sh, records.sh
for device in $devices; do
    [ "$device" != nvidia ] || [ -n "${DEVICES:-}" ] || [ -e "$B/test/driver/libcuda.so.1" ] || continue
    try $device sync end || bad=1
    try $device async end || bad=1
    [ -z "$kill" ] || try $device async kill || bad=1
    [ $device = nvidia ] || try $device graph end || bad=1
done
# stops the analyst until the program has ended and margay run was told to end, too; where it had begun by then, once more
cat > stop.py <<'P'
import os, signal, sys, time
run = int(sys.argv[1])
def field(pid, name):
    with open(f'/proc/{pid}/status') as f: return next(l.split()[1] for l in f if l.startswith(name + ':'))
def children():
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try: found += [int(pid)] if int(field(pid, 'PPid')) == run else []
        except (OSError, StopIteration): pass
    return found
def catches(pid, sig): return int(field(pid, 'SigCgt'), 16) >> sig - 1 & 1
def until(so):
    while not so(): time.sleep(0.01)
until(lambda: [c for c in children() if catches(c, signal.SIGUSR1)])
analyst = [c for c in children() if catches(c, signal.SIGUSR1)][0]
os.kill(analyst, signal.SIGSTOP)
until(lambda: os.path.getsize('out') and catches(run, signal.SIGINT))
os.kill(run, signal.SIGTERM)
os.kill(analyst, signal.SIGCONT)
P
for round in 1 2 3 4 5 6; do
    rm -rf p
    "$MARGAY" run -q -t communication --device emu -o p -- ./follow p async 300 > out 2> err &
    python3 stop.py $! out
    wait $! || { echo "FAIL interrupted: $?"; bad=1; }
    grep -q 'is analysed up to there' err || break
done
grep -q 'the analysis was interrupted' err && grep -q 'stays, and is not analysed' err || { echo 'FAIL interrupted'; cat err; bad=1; }
"$MARGAY" study communication p --json | python3 -c '
import json, sys
t = json.load(sys.stdin)["communication"]["trace"]
assert t["launches"] == 300 and not t["partial"], t' || bad=1
exit $bad
