#!/bin/sh
# `make install`, then ldconfig over the installed prefix: our libraries that carry NVIDIA's names are
# not in its cache, and the installed program runs.
set -u
case ${VARIANT:-} in asan | tsan | cover) echo "one build is enough"; exit 77 ;; esac
flock "$B/.install" make -s -C "$ROOT" VARIANT=release B="$B" PREFIX="$PWD/prefix" install > log 2>&1 || { cat log; exit 1; }
[ -x prefix/lib/libtau_cuda.so ] && [ -f prefix/include/margay/tau_cuda.h ] && grep -q -- -ltau_cuda prefix/lib/pkgconfig/tau_cuda.pc || { echo "TAUcuda is not installed"; exit 1; }
[ -x prefix/lib/libmargay-profile.so ] && grep -q -- -lmargay-profile prefix/lib/pkgconfig/margay-profile.pc || { echo "libmargay-profile is not installed"; exit 1; }
ldconfig=$(command -v ldconfig || echo /sbin/ldconfig)
echo "$PWD/prefix/lib" > conf
"$ldconfig" -C cache -f conf -N 2> /dev/null
"$ldconfig" -C cache -f conf 2> /dev/null
if "$ldconfig" -C cache -p | grep -q "$PWD/prefix.*libcuda"; then
    echo "ldconfig found our libcuda or libcudart"
    "$ldconfig" -C cache -p
    exit 1
fi
gcc -O1 -o client "$ROOT/tests/inject/client.c" -ldl || exit 1
./prefix/bin/margay run -o profile -- ./client dlopen libcuda.so.1 > out 2> err && grep -q 'client: ok' out &&
    grep -q '^coverage: 1 of 1' err || { cat out err; exit 1; }
./prefix/bin/margay run -q --audit -o profile2 -- ./client dlopen libcuda.so.1 > out 2> err && grep -q 'client: ok' out ||
    { cat out err; exit 1; }
# without `margay run` the library is a plain libcuda.so.1: nothing is recorded, nothing is said
LD_LIBRARY_PATH=$PWD/prefix/lib/margay/driver ./client dlopen libcuda.so.1 > out 2> err && grep -q 'client: ok' out &&
    [ ! -s err ] || { cat out err; exit 1; }
./prefix/bin/margay capture -q --device emu -o captured -- ./client dlopen libcuda.so.1 > out 2>&1 && ./prefix/bin/margay replay -q -o replayed captured 2> err ||
    { cat out err; exit 1; }
./prefix/bin/margay doctor > out && grep -q '^emu device *ok' out || { cat out; exit 1; }
# tools outside the tree build against what was installed, and count what theirs built in the tree count
cp "$ROOT"/examples/tools/*.c "$ROOT/examples/tools/Makefile" . && make -s CC=gcc CFLAGS="-Werror $(sed -n 's/^CFLAGS := //p' Makefile | sed 's|\$(CORE)|prefix/include/margay/core|')" PREFIX=prefix > log 2>&1 || { cat log; exit 1; }
./prefix/bin/margay run -o profile3 -t ./none.so -t ./zeros.so --device emu -- "$B/examples/reduce" > out 2> err || { cat out err; exit 1; }
./prefix/bin/margay report profile3 --json > tools.json && python3 - <<'P' || { cat err tools.json; exit 1; }
import json
t = json.load(open('tools.json'))['tools']
assert t['mine']['launches'] and all(n >= 1 for n in t['mine']['launches']), t
loads = t['zeros']['loads']
state, zeros = 1, 0
for i in range(1 << 18): # the input of examples/reduce: pick() of examples/common/host.h
    state = (state * 1664525 + 1013904223) & 0xffffffff
    zeros += (state >> 4) * 1000 >> 28 == 500
assert loads[0]['reads'] == 1 << 18 and loads[0]['zeros'] == zeros > 0, (loads[0], zeros)
P
