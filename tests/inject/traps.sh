#!/bin/sh
# What an instrumenting library may break on a GPU, against the driver library over the emulator (on a
# real one: tests/gpu/traps.sh): the program's own check passes, and every count that can be known is exact: a launch of `add` counts 1024
# threads at its entry and 1000 in its body.
set -u
failed=0
export XDG_CACHE_HOME=$PWD/cache EMU_GPU_COUNT=1
[ -n "${REAL_GPU:-}" ] || export LD_LIBRARY_PATH=$B/test/driver
gcc -O1 -I"$ROOT/include" -o traps "$ROOT/tests/inject/traps.c" -ldl -lpthread || exit 1
cat > see.py <<'P'
import json, sys
r, what, want = json.load(open('out.json')), sys.argv[1], [int(x) for x in sys.argv[2:]]
c = r['coverage']
assert c['failed'] == c['unknown'] == 0, c
k = {k['name']: k for k in r['kernels']}
add = k['add']
n = add['launches'] - add['incomplete']
if what == 'spin':
    assert [x['reason'] for x in c['native']] == ['loading its instrumented code would wait for work in flight'], c
    assert k['set']['launches'] == 3 and k['set']['blocks'][0]['thread_entries'] >= 1, k['set']
elif what == 'onoff':
    assert {x['reason'] for x in c['native']} == {'switched off'} and sum(x['launches'] for x in c['native']) == 6, c
    assert c['instrumented'] == 8, c
    n = 8
else:
    assert c['instrumented'] == c['launches'], c
if want:
    assert add['launches'] == want[0], (add['launches'], want)
assert add['incomplete'] <= (want[1] if len(want) > 1 else 0), add
assert (add['blocks'][0]['thread_entries'], add['blocks'][1]['thread_entries']) == (1024 * n, 1000 * n), (n, add['blocks'][:2])
P
trap_() { # WHAT EXIT [LAUNCHES OF add [MAY BE INCOMPLETE]]
    what=$1 want=$2
    shift 2
    rm -rf profile
    timeout 300 "$MARGAY" run -q --device nvidia -o profile -- ./traps "$what" > out 2> err
    rc=$?
    if [ $rc = "$want" ] && grep -qx "$what: ok" out && "$MARGAY" report profile --json > out.json && python3 see.py "$what" "$@" 2>> err; then
        echo "ok   $what"
    else
        echo "FAIL $what: exit $rc"
        tail -n 12 out err
        failed=1
    fi
}
sed -i 's/^add = .*/add = k.get("add", {"launches": 0, "incomplete": 0, "blocks": [{"thread_entries": 0}] * 2})/' see.py
trap_ spin 0
trap_ capture 0
trap_ incapture 0 6
trap_ threads 0 1280
trap_ contexts 0 54 50
trap_ reset 0 51 50
trap_ update 0 109
trap_ onoff 0 14
trap_ leave 7 50
trap_ many 0 20000
trap_ reload 0 300
[ -n "${REAL_GPU:-}" ] || { # 301 of the program's, and as many twins at most
    read -r _ loaded most allocated <<EOF
$(grep '^modules:' err)
EOF
    [ "$loaded" -gt 500 ] && [ "$most" -le 40 ] && [ "$allocated" -le 100 ] && echo "ok   unloaded" || { echo "FAIL unloaded: $loaded $most $allocated"; failed=1; }
}
trap_ recapture 0 20000
trap_ endless 0 1
exit $failed
