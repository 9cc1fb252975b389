#!/bin/sh
# Tools and one-liners that come and go a thousand times on a real GPU, as tests/inject/tools.sh has it for the other devices: results and
# counts are those of the launches that had them, and nothing grows.
set -u
failed=0
fail() { echo "FAIL $*"; failed=1; }
gcc -std=c17 -D_GNU_SOURCE -O1 -fPIC -fvisibility=hidden -I"$ROOT/src" -I"$B/gen" -shared -o every.so "$ROOT/tests/inject/every.c" "$B/lib/margay/libmargay-core.a" \
    -Wl,--exclude-libs,ALL -Wl,-z,defs -lm -lpthread -ldl || exit 1
gcc -O1 -I"$ROOT/include" -o tools "$ROOT/tests/inject/tools.c" -L"$B/lib/margay/driver" -lcuda || exit 1
cp "$ROOT/tests/inject/fill.ptx" .
run() { # TOOL ARGS...
    tool=$1
    shift
    rm -rf p
    "$MARGAY" run -o p -t blocks "$@" --device nvidia -- ./tools fill.ptx toggle $tool > out 2> err && grep -q '^ok$' out || { fail "$tool"; cat out err; }
    grep -q 'grown by 0 KB' out || { fail "$tool leaks"; cat out; }
    "$MARGAY" report p --json > p.json
}
run every -t ./every.so
python3 - <<'P' || fail "counts of a tool"
import json
r = json.load(open('p.json'))
k = r['tools']['every']['kernels'][0]
assert k['counted'] == 500 and k['cells'][0] == 500 * 256, k
assert k['cells'][3] == 256 * sum(i + 1 for i in range(1000) if i & 2), k
assert r['kernels'][0]['blocks'][0]['thread_entries'] == 500 * 256, r['kernels'][0]['blocks'][0]
assert r['coverage']['instrumented'] == 750 and r['coverage']['native'][0]['reason'] == 'switched off', r['coverage']
P
run expr -e 'st.global { @stores[kernel] = count() } kernel:entry { $n = 0 } edge:back { $n = $n + 1 } kernel:exit { @rounds = max($n); @cta[cta] = count() }'
python3 - <<'P' || fail "counts of a one-liner"
import json
r = json.load(open('p.json'))
maps = {m['name']: m['entries'] for m in r['tools']['expr']['maps']}
assert maps['@stores'] == [{'key': ['fill'], 'value': 500 * 200}] and sum(e['value'] for e in maps['@cta']) == 500 * 256, maps
assert r['coverage']['instrumented'] == 750, r['coverage']
P
run accesses -t accesses
python3 - <<'P' || fail "records of a tool"
import json
s, c = (json.load(open('p.json'))['tools']['accesses'][k] for k in ('stream', 'channel'))
assert s['accesses'] == s['received'] == 500 * 200 and not s['out_of_order'] and not c['lost_segments'] and not c['dropped_records'], (s, c)
P
[ $failed = 0 ] && echo ok
exit $failed
