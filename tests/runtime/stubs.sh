#!/bin/sh
# Stubs made by nvcc, with the null stream as it is and per thread, over the fake driver.
set -e
. "$ROOT/tests/runtime/common"
[ -n "$NVCC" ] || { echo "no nvcc"; exit 77; }
build_fake
"$NVCC" -cudart shared -arch=sm_90 "$T/stubs.cu" -o legacy
"$NVCC" -cudart shared -arch=sm_90 --default-stream per-thread "$T/stubs.cu" -o per-thread
for s in legacy per-thread; do
    FAKE_LOG="$PWD/$s.log" under "$PWD:$RT" ./$s 2> err
    [ "$(grep -c 'cudaGLSetGLDevice, which is not implemented' err)" = 1 ]
    [ "$(grep -c '^cuLibraryLoadData wrapper jit 0 option 1=1$' $s.log)" = 1 ]
done
grep -q '^cuLaunchKernel _Z6kerneliPf 2,1,1 100,1,1 16 0 first 7 extra 0$' legacy.log
grep -q '^cuLaunchKernel _Z7of_typeIdEvT_ 1,2,3 1,1,1 0 0 ' legacy.log
grep -q '^cuMemcpyHtoD_v2 16 stream 0$' legacy.log
grep -q '^cuLaunchKernel _Z6kerneliPf 2,1,1 100,1,1 16 2 first 7 extra 0$' per-thread.log
grep -q '^cuLaunchKernel _Z6kerneliPf 3,1,1 4,1,1 0 2 first 8' per-thread.log
grep -q '^cuMemcpyHtoDAsync_v2 16 stream 2$' per-thread.log
