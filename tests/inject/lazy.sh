#!/bin/sh
# A module of 200 kernels of which three are launched, at once from three threads, costs three kernels' machine code;
# --eager makes all 200, of which none is made twice.
set -u
failed=0 N=${N:-200}
[ -n "${REAL_GPU:-}" ] || export LD_LIBRARY_PATH=$B/test/driver
gcc -O1 -o lazy "$ROOT/tests/inject/lazy.c" -ldl -lpthread || exit 1
{
    printf '.version 7.0\n.target sm_70\n.address_size 64\n'
    for k in $(seq 0 $((N - 1))); do
        printf '.visible .entry k%d(.param .u64 p)\n{\n.reg .b64 %%p;\nld.param.u64 %%p, [p];\nred.global.add.u32 [%%p], %d;\nret;\n}\n' "$k" "$k"
    done
} > many.ptx
one() { # NAME MADE LAUNCHED OPTIONS...
    name=$1 made=$2 launched=$3
    shift 3
    rm -rf profile "cache.$name"
    XDG_CACHE_HOME=$PWD/cache.$name "$MARGAY" run -q --stats --device nvidia "$@" -o profile -- ./lazy many.ptx $launched > out 2> err && grep -qx ok out &&
        "$MARGAY" report profile --json > out.json && [ "$(ls "cache.$name/margay/twins" | wc -l)" = "$made" ] &&
        python3 - "$launched" <<'P' && echo "ok   $name" || { echo "FAIL $name"; cat out err; ls "cache.$name/margay/twins" | wc -l; failed=1; }
import json, sys
r, names = json.load(open('out.json')), sorted('k' + n for n in sys.argv[1].split())
later = [n['kernel'] for n in r['coverage']['native'] if n['reason'] == 'loading its instrumented code would wait for work in flight']
assert r['coverage']['instrumented'] + len(later) == len(names) and r['coverage']['instrumented'], r['coverage'] # another's kernel was running
assert sorted(k['name'] for k in r['kernels']) == names and all(k['threads'] == 32 for k in r['kernels'] if k['name'] not in later)
P
    grep 'own time' err
}
one three 3 "0 7 $((N - 1))"
one eager "$N" "0 7 $((N - 1))" --eager
one threads 40 "$(seq -s ' ' 1 40)"
exit $failed
