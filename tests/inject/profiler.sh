#!/bin/sh
# Under profilers that are preloaded in front of us: one answers for the C library, one is given for the driver; and behind `margay run`,
# where a profiler does not see the program: one line says so. On a GPU: tests/gpu/coexist.sh.
set -u
[ "$VARIANT" = asan ] && { echo "the sanitizer's runtime stands in for dlvsym, too"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver
gcc -O1 -shared -fPIC -o profiler.so "$ROOT/tests/inject/profiler.c" && gcc -O1 -I"$ROOT/include" -o traps "$ROOT/tests/inject/traps.c" -ldl -lpthread || exit 1
LD_PRELOAD=$PWD/profiler.so timeout 300 "$MARGAY" run --device nvidia -o profile -- ./traps incapture > out 2> err || { echo "exit $?"; cat out err; exit 1; }
grep -q '^coverage: 6 of 6' err || { cat err; exit 1; }
gcc -O1 -DOPENS -shared -fPIC -o opens.so "$ROOT/tests/inject/profiler.c" || exit 1
DRIVER=$B/test/driver/libcuda.so.1 LD_PRELOAD=$PWD/opens.so timeout 300 "$MARGAY" run --device nvidia -o opens -- ./traps incapture > out 2> err || { echo "exit $?"; cat out err; exit 1; }
grep -q '^coverage: 6 of 6' err || { cat err; exit 1; }
mkdir bin && printf '#!/bin/sh\nexec "$@"\n' > bin/ncu && chmod +x bin/ncu
"$MARGAY" run --device nvidia -o behind -- ./bin/ncu ./traps incapture > out 2> err || { echo "exit $?"; cat out err; exit 1; }
grep -q '^margay: ncu sees nothing of a program that margay runs under it; put it in front' err || { cat err; exit 1; }
"$MARGAY" run -q --device nvidia -o quiet -- ./bin/ncu ./traps incapture > out 2> err && [ ! -s err ] || { echo "not quiet"; cat err; exit 1; }
