#!/bin/sh
# The features of tests/inject/features.sh on a GPU, compiled as a whole and as relocatable code: each program's own
# check passes, every launch is instrumented, every thread count is the emulator's (where nothing spins).
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
failed=0
cat > same.py <<'P'
import json, sys
gpu, emu, want, spins = json.load(open('gpu.json')), json.load(open('emu.json')), int(sys.argv[1]), sys.argv[2:] == ['spins']
c = gpu['coverage']
assert (c['launches'], c['instrumented'], c['failed'], c['unknown']) == (want, want, 0, 0), c
assert all(l['complete'] for l in gpu['launches'])
counts = lambda r: {k['name']: (k['launches'], k['threads'], [] if spins else [(b['ptx_line'], b['thread_entries']) for b in k['blocks']]) for k in r['kernels']}
assert counts(gpu) == counts(emu), (counts(gpu), counts(emu))
P
for how in "" -rdc=true; do
    "$NVCC" -cudart shared $how -arch=sm_90 -o features "$ROOT/tests/inject/features.cu" || exit 1
    while read -r name launches spins; do
        rm -rf gpu emu
        if "$MARGAY" run -q --device nvidia -o gpu -- ./features "$name" > out 2> err && grep -q "^$name: ok" out &&
            "$MARGAY" run -q --device emu -o emu -- ./features "$name" > out.emu 2>> err &&
            "$MARGAY" report gpu --json > gpu.json && "$MARGAY" report emu --json > emu.json && python3 same.py "$launches" $spins 2>> err; then
            echo "ok   $name $how"
        else
            echo "FAIL $name $how"
            tail -n 5 out err
            failed=1
        fi
    done < "$ROOT/tests/inject/features.list"
done
exit $failed
