#!/bin/sh
# Features of CUDA programs under `blocks`: the program's own check passes, every launch is
# instrumented, as many launches as expected, and every count equals the witness. A grid barrier spins
# until the other CTAs arrive: how often depends on timing, so `cooperative` has no witness.
# long
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
"$NVCC" -cudart shared -arch=sm_90 -o features "$ROOT/tests/inject/features.cu" || exit 1
failed=0
while read -r name launches spins; do
    rm -rf profile
    if "$MARGAY" run -q --strict -o profile -- ./features "$name" > out 2> err && grep -q "^$name: ok" out &&
        "$MARGAY" report profile --json > out.json && python3 - "$launches" >> err <<'P' && { [ "$spins" ] || "$ROOT/tests/witness" -- ./features "$name" > witness 2>&1; }; then
import json, sys
r = json.load(open('out.json'))
c = r['coverage']
assert (c['launches'], c['instrumented'], c['unknown']) == (int(sys.argv[1]), int(sys.argv[1]), 0), c
assert all(l['complete'] for l in r['launches'])
P
        echo "ok   $name"
    else
        echo "FAIL $name"
        for f in out err witness; do tail -n 20 $f; done
        failed=1
    fi
done < "$ROOT/tests/inject/features.list"
[ "${VARIANT:-release}" = release ] || exit $failed # linked.sh has the rest under sanitizers
# relocatable device code: the driver links, the twin comes from the linked module
"$NVCC" -cudart shared -rdc=true -arch=sm_90 -o features "$ROOT/tests/inject/features.cu" || exit 1
for name in state indirect streams; do
    if "$MARGAY" run -q --strict -o rdc-$name -- ./features $name > out 2> err; then
        echo "ok   $name, -rdc=true"
    else
        echo "FAIL $name, -rdc=true"
        cat out err
        failed=1
    fi
done
# a static runtime is refused before it starts, one met later is named
"$NVCC" -arch=sm_90 -o static "$ROOT/tests/inject/features.cu" || exit 1
"$MARGAY" run -o static-dir --device emu -- ./static state > out 2> err
rc=$?
if [ $rc = 122 ] && [ ! -s out ] && [ "$(wc -l < err)" = 1 ] && grep -q 'NVCC_APPEND_FLAGS="-cudart shared"' err; then
    echo "ok   static runtime"
else
    echo "FAIL static runtime: $rc"
    cat out err
    failed=1
fi
"$MARGAY" run -o static-dir --device emu -- sh -c './static state' > out 2> err
if [ "$(grep -c 'static.*statically linked.*NVCC_APPEND_FLAGS' err)" = 1 ]; then
    echo "ok   static runtime in a child"
else
    echo "FAIL static runtime in a child"
    cat out err
    failed=1
fi
# a closed library of CUDA's cannot be linked anew
cp static libcurand.so.10
"$MARGAY" run -o static-dir --device emu -- sh -c './libcurand.so.10 state' > out 2> err
if [ "$(grep -c 'libcurand.so.10 is closed and has a CUDA runtime of its own, which needs a GPU' err)" = 1 ] && ! grep -q NVCC_APPEND err; then
    echo "ok   closed library"
else
    echo "FAIL closed library"
    cat out err
    failed=1
fi
exit $failed
