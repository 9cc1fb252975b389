#!/bin/sh
# Programs that link PTX with nvJitLink: the PTX of all inputs, linked, is what runs and what is
# counted, however the library was reached; with machine code among the inputs it is refused.
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
lib=$(ls "$(dirname "$NVCC")"/../lib64/libnvJitLink.so.13 "$(dirname "$NVCC")"/../lib/libnvJitLink.so.13 2> /dev/null | head -1)
[ -n "$lib" ] || { echo "needs libnvJitLink.so.13"; exit 77; }
dir=$(cd "$(dirname "$lib")" && pwd)
lib=$dir/libnvJitLink.so.13
failed=0
driver=$B/lib/margay/driver
gcc -O1 -o dlopened "$ROOT/tests/inject/nvjitlink.c" -L"$driver" -lcuda -Wl,--allow-shlib-undefined -ldl || exit 1
gcc -O1 -Wl,--no-as-needed -o linked "$ROOT/tests/inject/nvjitlink.c" -L"$driver" -lcuda -Wl,--allow-shlib-undefined "$lib" -Wl,-rpath,"$dir" -ldl || exit 1

counted() { # WHAT PROGRAM...: 256 threads enter the kernel, 200 call the function of the other text
    what=$1
    shift
    rm -rf profile
    if "$MARGAY" run -q --strict -o profile -- "$@" > out 2> err && grep -q '^ok$' out && [ ! -s err ] &&
        "$MARGAY" report profile --json > out.json && python3 - >> err 2>&1 <<'P' && "$ROOT/tests/witness" -- "$@" >> err 2>&1; then
import json
r = json.load(open('out.json'))
c = r['coverage']
assert (c['launches'], c['instrumented']) == (1, 1), c
(k,) = r['kernels']
entries = {f: [b['thread_entries'] for b in k['blocks'] if b['function'] == f] for f in ('fill', 'times3')}
assert entries == {'fill': [256, 200, 200, 256], 'times3': [200]}, entries
P
        echo "ok   $what"
    else
        echo "FAIL $what"
        cat out err
        failed=1
    fi
}
counted linked ./linked linked
counted dlopen ./dlopened dlopen "$lib"
counted file ./dlopened file "$lib"
counted single ./dlopened single "$lib"
"$MARGAY" run -o none -t none -- ./linked linked > out 2> err && grep -q '^ok$' out || { echo "FAIL -t none"; cat out err; failed=1; }

rm -rf profile
"$MARGAY" run -o profile -- ./dlopened machine "$lib" > out 2> err
rc=$?
if [ $rc = 3 ] && grep -q '^load: 209' out && [ "$(grep -c '^margay: .*no PTX' err)" = 1 ]; then
    echo "ok   machine code"
else
    echo "FAIL machine code: exit $rc"
    cat out err
    failed=1
fi
exit $failed
