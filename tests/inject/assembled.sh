#!/bin/sh
# Kernels assembled by a ptxas process: our ptxas in front of PATH keeps the PTX, which is found again
# by the machine code, in this run and in later ones; so is the PTX that Triton's cache holds.
set -u
[ -n "$NVCC" ] || { echo "needs ptxas"; exit 77; }
toolkit=$(dirname "$NVCC")
failed=0
export MARGAY_CACHE="$PWD/cache" HOME="$PWD/home" TMPDIR="$PWD" USER=me
mkdir -p home
gcc -O1 -o assembled "$ROOT/tests/inject/assembled.c" -L"$B/lib/margay/driver" -lcuda || exit 1
counted() { # WHAT PROGRAM...
    what=$1
    shift
    rm -rf profile
    if PATH="$toolkit:$PATH" "$MARGAY" run -q --strict -o profile -- "$@" > out 2> err && grep -q '^ok$' out && [ ! -s err ] &&
        "$MARGAY" report profile --json | python3 -c '
import json, sys
r = json.load(sys.stdin)
assert r["coverage"]["instrumented"] == 1, r["coverage"]
assert [b["thread_entries"] for b in r["kernels"][0]["blocks"]] == [256, 200, 256], r["kernels"][0]["blocks"]' >> err 2>&1; then
        echo "ok   $what"
    else
        echo "FAIL $what"
        cat out err
        failed=1
    fi
}
cp "$ROOT/tests/inject/fill.ptx" a.ptx
counted "assembled in the run" ./assembled run a.ptx a.cubin
[ "$(ls cache/ptx | wc -l)" = 1 ] && cmp -s cache/ptx/*.ptx a.ptx || { echo "FAIL what the cache holds"; ls -l cache/ptx; failed=1; }
counted "assembled by an earlier run" ./assembled load a.cubin

# Triton's layout: found where a .ttgir says that one compilation made all, not found without
triton=home/.triton/cache/HASH
mkdir -p "$triton" other/HASH
sed 's/st.global.u32/st.volatile.global.u32/' a.ptx > "$triton/fill.ptx"
"$toolkit/ptxas" "$triton/fill.ptx" -o "$triton/fill.cubin" -arch=sm_90 || exit 1
"$MARGAY" run -q -o none -- ./assembled load "$triton/fill.cubin" > out 2> err
grep -q '^load: 209' out || { echo "FAIL a .ptx beside a .cubin was believed"; cat out err; failed=1; }
touch "$triton/fill.ttgir"
counted "Triton's cache" ./assembled load "$triton/fill.cubin"
cp "$triton"/* other/HASH && mv "$triton" moved
TRITON_CACHE_DIR=$PWD/other counted "TRITON_CACHE_DIR" ./assembled load moved/fill.cubin
mkdir -p torchinductor_me/triton/0 && mv other/HASH torchinductor_me/triton/0/
counted "inductor's cache" ./assembled load moved/fill.cubin

# errors are the assembler's own
echo "not PTX" > bad.ptx
PATH="$toolkit:$PATH" "$MARGAY" run -q -o bad -- ./assembled run bad.ptx bad.cubin > out 2> err
"$toolkit/ptxas" bad.ptx -o bad.cubin -arch=sm_90 --warn-on-spills > want 2>&1
rc=$?
grep -q "^ptxas: $rc\$" out && grep -qF "$(grep fatal want)" err || { echo "FAIL errors of the assembler"; cat out err want; failed=1; }
"$B/lib/margay/tools/ptxas" --version > /dev/null 2>&1 || PATH="$toolkit:$PATH" "$B/lib/margay/tools/ptxas" --version > /dev/null || { echo "FAIL --version"; failed=1; }
exit $failed
