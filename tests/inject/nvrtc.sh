#!/bin/sh
# Programs compiled by NVRTC to machine code: the PTX of the same program is what runs and what is
# counted, however the library was reached; machine code that nobody knows the PTX of is refused.
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
lib=$(ls "$(dirname "$NVCC")"/../lib64/libnvrtc.so "$(dirname "$NVCC")"/../lib/libnvrtc.so 2> /dev/null | head -1)
[ -n "$lib" ] || { echo "needs libnvrtc"; exit 77; }
dir=$(cd "$(dirname "$lib")" && pwd)
failed=0
driver=$B/lib/margay/driver
gcc -O1 -o dlopened "$ROOT/tests/inject/nvrtc.c" -L"$driver" -lcuda -Wl,--allow-shlib-undefined -ldl || exit 1
gcc -O1 -Wl,--no-as-needed -o linked "$ROOT/tests/inject/nvrtc.c" -L"$driver" -lcuda -Wl,--allow-shlib-undefined -L"$dir" -lnvrtc -Wl,-rpath,"$dir" -ldl || exit 1

counted() { # WHAT PROGRAM...: every count as the program's own geometry gives it, and as the witness
    what=$1
    shift
    rm -rf profile
    if "$MARGAY" run -q --strict -o profile -- "$@" > out 2> err && grep -q '^ok$' out && [ ! -s err ] &&
        "$MARGAY" report profile --json > out.json && python3 - >> err 2>&1 <<'P' && "$ROOT/tests/witness" -- "$@" >> err 2>&1; then
import json
r = json.load(open('out.json'))
c = r['coverage']
assert (c['launches'], c['instrumented']) == (1, 1), c
assert [b['thread_entries'] for b in r['kernels'][0]['blocks']] == [256, 200, 256], r['kernels'][0]['blocks']
assert r['kernels'][0]['registers']['native'] > 0
P
        echo "ok   $what"
    else
        echo "FAIL $what"
        cat out err
        failed=1
    fi
}
counted linked ./linked linked
counted dlopen ./dlopened dlopen "$dir/libnvrtc.so"
counted file ./dlopened file "$dir/libnvrtc.so"
"$MARGAY" run -o none -t none -- ./linked linked > out 2> err && grep -q '^ok$' out || { echo "FAIL -t none"; cat out err; failed=1; }

# a capture holds the machine code and the PTX: a device takes what it can run
cat > pair.py <<'P'
data = open('folder/data.bin', 'rb').read()
assert data.count(b'\x7fELF') == 1 and data.count(b'.version') == 1 and data.index(b'\x50\xed\x55\xba') < data.index(b'\x7fELF') < data.index(b'.version')
P
"$MARGAY" capture -q --device emu -o cap -- ./linked linked > out 2> err && "$MARGAY" replay -q -t blocks --device emu -o again cap > out 2> err &&
    "$MARGAY" report again --json | grep -q '"thread_entries": *256' && "$MARGAY" replay -q --export folder cap > out 2> err && python3 pair.py 2> err &&
    echo "ok   captured" || { echo "FAIL captured"; cat out err; failed=1; }

rm -rf profile
"$MARGAY" run -o profile -- ./dlopened other "$dir/libnvrtc.so" > out 2> err
rc=$?
if [ $rc = 3 ] && grep -q '^load: 209' out && [ "$(grep -c '^margay: .*no PTX' err)" = 1 ] &&
    grep -q '^  kill: rejected, no PTX' err; then
    echo "ok   unknown machine code"
else
    echo "FAIL unknown machine code: exit $rc"
    cat out err
    failed=1
fi
exit $failed
