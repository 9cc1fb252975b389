#!/bin/sh
# The store of compiled kernels, and LLVM only where it is needed: a first run compiles, a second one takes
# the code from the store without opening the plugin, a damaged file is compiled again, an application with
# an LLVM of its own does not disturb ours; emulated runs and moments on the CPU device never open the plugin.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
export MARGAY_CACHE="$PWD/cache" MARGAY_CPU_VERBOSE=1
failed=0
# name, wanted in what it says, opens the plugin (yes|no), device, tier
check()
{
    MARGAY_CPU_TIER=$5 LD_DEBUG=files LD_DEBUG_OUTPUT=$PWD/ld "$MARGAY" run -q --device "$4" -o p -- "$EX/$6" > out 2> said
    rc=$?
    opened=no
    cat ld.* 2> /dev/null | grep -q 'libmargay-cpu' && opened=yes
    rm -rf p ld.*
    if [ $rc = 0 ] && grep -q PASSED out && { [ -z "$2" ] && ! grep -q 'margay cpu' said || grep -q "$2" said; } && [ $opened = "$3" ]; then echo "ok   $1"
    else
        echo "FAIL $1: exit $rc, plugin opened: $opened"
        cat out said
        failed=1
    fi
}
check "emulator" '' no emu sync matmul
check "compiled" ': compiled' yes cpu sync matmul
check "again" 'from the store' no cpu sync matmul
for f in cache/cpu/*; do printf 'x' | dd of="$f" bs=1 seek=200 conv=notrunc 2> /dev/null; done
check "damaged" ': compiled' yes cpu sync matmul
check "mended" 'from the store' no cpu sync matmul
# A function for which there is no code: why is kept as well, since to find it out takes the longest.
for run in first second; do
    MARGAY_CPU_TIER=sync "$MARGAY" run -q --device cpu -t bounds -o p -- "$EX/reduce" > out 2> said && grep -q PASSED out &&
        [ "$(grep -c 'warps: emulated: .*, as in a run before' said)" = "$([ $run = first ] && echo 0 || echo 1)" ] &&
        grep -q 'warps: emulated: ' said || { echo "FAIL no code, $run run"; cat out said; failed=1; }
    rm -rf p
done
for other in /usr/lib/*/libLLVM.so.19* /usr/lib/*/libLLVM-1[0-9].so.1; do # the application has one of its own
    [ -e "$other" ] || continue
    rm -rf cache
    LD_PRELOAD=$other check "beside $other" ': compiled' yes cpu sync matmul
    break
done
# The address of a module's variable is in the code: variables lie at the same place in each run.
if [ -n "$NVCC" ]; then
    cat > variable.cu <<'C'
#include <cstdio>
__device__ int table[64];
__global__ void read(int *out, int *(*p)) { *p = table, out[threadIdx.x] = table[threadIdx.x & 63] + 1; }
int main()
{
    int *out, host[256], **p;
    cudaMalloc(&out, sizeof host), cudaMalloc(&p, sizeof *p);
    read<<<1, 256>>>(out, p);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    puts(host[255] == 1 ? "PASSED" : "FAILED");
}
C
    mkdir -p own && "$NVCC" -O1 -arch=sm_80 -cudart shared variable.cu -o own/variable || { echo "FAIL nvcc"; exit 1; }
    EX=$PWD/own check "a variable's address" ': compiled' yes cpu sync variable
    EX=$PWD/own check "its address again" 'from the store' no cpu sync variable
fi
# A folder that cannot be written: one line, however many kernels; none under -q.
touch plain
for quiet in '' -q; do
    MARGAY_CACHE=$PWD/plain MARGAY_CPU_TIER=sync "$MARGAY" run $quiet --device cpu -o p -- "$EX/bfs" > out 2> said && grep -q PASSED out &&
        [ "$(grep -c "^margay: nothing can be kept for later runs: $PWD/plain/cpu: Not a directory\$" said)" = "$([ $quiet ] && echo 0 || echo 1)" ] || { echo "FAIL no cache folder, $quiet"; cat out said; failed=1; }
    rm -rf p
done
check "a moment" '' no cpu 60000 matmul
# Without a GPU it is the device that runs are given.
if [ ! -e /dev/nvidiactl ]; then
    "$MARGAY" run -q -o auto -- "$EX/saxpy" > /dev/null 2>&1
    "$MARGAY" report auto --json | grep -q '"kind": *"cpu"' || { echo "FAIL auto does not choose the CPU device"; failed=1; }
fi
exit $failed
