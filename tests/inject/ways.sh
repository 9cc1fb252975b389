#!/bin/sh
# Every way to start a kernel (ways.c): each launch does what it should, and is instrumented and counted exactly, and what the
# program asks of its kernels is answered as without; from PTX and, with ptxas, from a cubin that carries its text. On
# the emulator and through the nvidia backend over it (on a real GPU: tests/gpu/ways.sh).
set -u
failed=0
gcc -O1 -Wall -Werror -I"$ROOT/src" -o ways "$ROOT/tests/inject/ways.c" -ldl || exit 1
export XDG_CACHE_HOME=$PWD/cache
ptxas=$([ -n "$NVCC" ] && command -v "$(dirname "$NVCC")/ptxas")
[ -z "$ptxas" ] || { ./ways text > ways.ptx && "$ptxas" -g -arch=sm_90 -o ways.cubin ways.ptx 2> /dev/null || exit 1; }
for device in ${DEVICES:-emu nvidia}; do for from in "" ${ptxas:+ways.cubin}; do
    rm -rf profile native
    [ "$device${REAL_GPU:-}" = nvidia ] && export LD_LIBRARY_PATH="$B/test/driver"
    if "$MARGAY" run -q -t none --device $device -o native -- ./ways $from > native.out 2> err && "$MARGAY" run -q --device $device -o profile -- ./ways $from > out 2>> err &&
        cmp native.out out 2>> err && [ "$(grep -c occupancy out)" = 2 ] && [ "$(grep occupancy out | uniq | wc -l)" = 1 ] &&
        "$MARGAY" report profile --json > out.json && python3 - $(sed -n 's/^ok \([0-9]*\) .*/\1/p' out) 2>> err <<'P'; then
import json, sys
r, n = json.load(open('out.json')), int(sys.argv[1])
c = r['coverage']
later = [x for x in c['native'] if x['reason'] == 'loading its instrumented code would wait for work in flight'] # on a GPU, and there alone
ran = n - sum(x['launches'] for x in later)
assert n >= 25 and (c['launches'], c['instrumented'], c['failed'], c['unknown']) == (n, ran, 0, 0) and len(c['native']) == len(later), (n, c)
assert r['device']['kind'] == 'nvidia' or not later
for k in r['kernels']:
    m = sum(l['replays'] or 1 for l in r['launches'] if l['kernel'] == k['id'] and l['ran'] == 'instrumented')
    assert k['incomplete'] == 0 and [b['thread_entries'] for b in k['blocks']] == ([128 * m, 100 * m, 128 * m] if m else [None] * 3), (m, k)
P
        echo "ok   $device $from: $(grep -v occupancy out | tr '\n' ' ')"
    else
        echo "FAIL $device $from"
        cat native.out out err 2>&1
        failed=1
    fi
done; done
exit $failed
