#!/bin/sh
# The nvidia backend, with a driver over the emulator in NVIDIA's place: twins are loaded through the
# driver, slots, events and the drain thread see to the counts, and every count equals the one that the
# emulator device gives. Programs on the shared runtime use our own one here.
set -u
failed=0
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart
[ -e "$B/test/driver/libcuda.so.1" ] || { echo "no driver library for tests was built"; exit 1; }
cat > same.py <<'P'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
want, opts = int(sys.argv[3]), sys.argv[4:]
assert a['device']['kind'] == 'emu' and b['device']['kind'] == 'nvidia', (a['device'], b['device'])
c = b['coverage']
assert (c['launches'], c['instrumented'], c['failed'], c['unknown']) == (want, want, 0, 0), c
assert all(l['complete'] for l in b['launches']), 'incomplete'
def counts(r):
    return {k['name']: (k['launches'], k['threads'], [(x['ptx_line'], x['thread_entries']) for x in k['blocks']]) for k in r['kernels']}
x, y = counts(a), counts(b)
if 'spins' in opts:
    x, y = {k: v[:2] for k, v in x.items()}, {k: v[:2] for k, v in y.items()}
assert x == y, (x, y)
assert any(l['time_ns'] for l in b['launches']) or 'untimed' in opts, 'no launch was timed'
P
both() { # NAME LAUNCHES OPTIONS PROGRAM...
    name=$1 launches=$2 opts=$3
    shift 3
    rm -rf emu gpu
    if "$MARGAY" run -q --device emu -o emu -- "$@" > out.emu 2> err && "$MARGAY" run -q --device nvidia -o gpu -- "$@" > out.gpu 2>> err &&
        cmp out.emu out.gpu && "$MARGAY" report emu --json > emu.json && "$MARGAY" report gpu --json > gpu.json &&
        python3 same.py emu.json gpu.json "$launches" $opts 2>> err; then
        echo "ok   $name"
    else
        echo "FAIL $name"
        tail -n 20 err
        failed=1
    fi
}
for e in saxpy:1 reduce:1 divergent:1 matmul:1 histogram:1 stencil:4 bfs:13; do
    both "${e%:*}" "${e#*:}" "" "$EX/${e%:*}"
done
[ -z "$(ls cache/margay/twins)" ] && { echo "FAIL no machine code was kept"; failed=1; }
if [ -n "$NVCC" ]; then
    "$NVCC" -cudart shared -arch=sm_90 -o features "$ROOT/tests/inject/features.cu" || exit 1
    both state 3 "" ./features state
    both indirect 1 "" ./features indirect
    both cooperative 1 spins ./features cooperative
    both capture 10 untimed ./features capture
    both nodes 4 untimed ./features nodes
    both shared 1 "" ./features shared
    both streams 80 "" ./features streams
    both ex 1 "" ./features ex
    both printf 1 "" ./features printf
    both reset 2 "" ./features reset
fi
exit $failed
