#!/bin/sh
# Tool trace on a GPU: what kernels counted is what the trace holds, lane by lane and as a sum of addresses, for the examples
# and for tests/tool/trace.cu (generic pointers, atomics, streams, a graph); the programs' output stays; nothing hangs.
# Prints kernel times against the native ones; they decide nothing.
set -u
: "${NVCC:=$(command -v nvcc || true)}" "${MARGAY:=margay}" "${ROOT:=$(cd "$(dirname "$0")/../.." && pwd)}"
[ -e /dev/nvidiactl ] || { echo "no GPU"; exit 77; }
failed=0
fail() { echo "FAIL $*"; failed=1; }
cat > whole.py <<'P'
import json, subprocess, sys
j = json.load(open('p.json'))
tool, margay = j['tools']['trace'], sys.argv[1]
c = tool['channel']
assert (c['dropped_records'], c['lost_segments'], c['damaged_pages'], c['late_pages'], tool['dropped'], tool['missed']) == (0,) * 6, (c, tool['dropped'], tool['missed'])
for l in tool['launches']: assert l['complete'] and l['lanes'] == l['received_lanes'] and l['address_sum'] == l['counted_sum'], l
sums = {}
for line in subprocess.Popen([margay, 'trace', 'print', 'p', '--kind', 'trace.access', '--json'], stdout=subprocess.PIPE).stdout:
    a = json.loads(line)['fields']
    s = sums.setdefault(a['launch'], [0, 0, 0])
    s[0] += a['bytes'] != 0
    s[1] += len(a['addresses'])
    s[2] = (s[2] + sum(a['addresses'])) % (1 << 64)
for l in tool['launches']: assert [l['records'], l['lanes'], l['address_sum']] == sums.get(l['launch'], [0, 0, 0]), (l, sums.get(l['launch']))
print(sum(l['records'] for l in tool['launches']), 'accesses', '%.1f bytes each' % (sum(l['bytes'] for l in tool['launches']) / max(1, sum(l['records'] + l['barriers'] for l in tool['launches']))))
P
run() { # NAME PROGRAM ARGS...
    name=$1
    shift
    "$@" > native || fail "$name: native"
    rm -rf p t
    "$MARGAY" run -q -o t --device nvidia -t none -- "$@" > /dev/null 2>&1
    timeout 300 "$MARGAY" run -q -o p --device nvidia -t trace,sum=on -- "$@" > out 2> err || fail "$name: exit $?: $(tail -3 err)"
    cmp -s out native || fail "$name: the program's output is another"
    "$MARGAY" trace verify p > /dev/null || fail "$name: verify"
    "$MARGAY" report p --json > p.json
    "$MARGAY" report t --json > t.json
    python3 whole.py "$MARGAY" > why 2>&1 || { fail "$name"; tail -4 why; }
    python3 - "$name" "$(tail -1 why)" <<'P'
import json, sys
times = [sum(l['time_ns'] for l in json.load(open(f))['launches'] if l['time_ns']) for f in ('t.json', 'p.json')]
print('%-10s native %.3f ms, traced %.3f ms: %.1f; %s' % (sys.argv[1], times[0] / 1e6, times[1] / 1e6, times[1] / max(1, times[0]), sys.argv[2]))
P
}
for program in saxpy reduce matmul stencil histogram bfs divergent; do run $program "$B/examples/$program"; done
if [ -n "$NVCC" ]; then
    "$NVCC" -gencode arch=compute_80,code=compute_80 -o app "$ROOT/tests/tool/trace.cu" && run app ./app
    "$MARGAY" trace print p --kind trace.step --json > steps.jsonl
    python3 - <<'P' || fail steps
import json
steps = sorted((json.loads(l)['fields'] for l in open('steps.jsonl')), key=lambda s: (s['order'], s['time']))
short = lambda s: s['kind'] if s['kind'] != 'launch' else [w for w in ('generic', 'add', 'scale') if w in s['name']][0]
order = [short(s) for s in steps if s['kind'] in ('launch', 'copy', 'memset')]
assert order == ['generic', 'copy', 'memset', 'add', 'scale', 'copy'] + 3 * ['copy', 'scale'] + ['copy'], order # three runs of the graph
assert [(s['replay'], s['flags'] & 1) for s in steps if s['kind'] == 'launch' and s['graph']] == [(0, 1), (1, 1), (2, 1)], steps
P
fi
for policy in drop 1/4; do
    rm -rf p
    timeout 120 "$MARGAY" run -q -o p --device nvidia --channel $policy -t trace -- "$B/examples/matmul" > out 2> err || fail "$policy: $?"
    "$MARGAY" report p --json > p.json
    n=$(python3 -c "
import json
t = json.load(open('p.json'))['tools']['trace']
n = sum(l['lanes'] - l['received_lanes'] for l in t['launches'])
assert n == t['dropped'] >= 0, t
print(n)") || fail "$policy"
    rc=0
    "$MARGAY" trace verify p > /dev/null 2> err || rc=$?
    [ "$rc" = "$([ "$n" = 0 ] && echo 0 || echo 3)" ] || fail "$policy: $n lanes are missing, verify: $rc $(tail -2 err)"
done
exit $failed
