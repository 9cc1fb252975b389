#!/bin/sh
# The runtime over a driver that only writes down its calls: the sequence a real runtime makes
# (load at first use with the program's own wrapper, kernel launched as a CUkernel), errors, threads.
set -e
. "$ROOT/tests/runtime/common"
build_fake
cc -std=gnu17 "$T/mkfatbin.c" -o mkfatbin
printf '.version 7.0\n.target sm_70\n.address_size 64\n.visible .entry fill(){ret;}\n' > tiny.ptx
./mkfatbin tiny.ptx 70 tiny.S
cc -std=gnu17 -O1 -I"$ROOT/src" "$T/client.c" tiny.S -L"$RT" -l:libcudart.so.13 -lpthread -o client
FAKE_LOG="$PWD/log" under "$PWD:$RT" ./client
[ "$(grep -c '^cuLibraryLoadData wrapper jit 0 option 1=1$' log)" = 1 ]
[ "$(grep -c '^cuLibraryLoadData' log)" = 1 ]
[ "$(grep -c '^cuDevicePrimaryCtxRetain' log)" = 1 ]
[ "$(grep -c '^cuLaunchKernel fill 8,1,1 128,1,1 0 [0-9]* first 1000 extra 0$' log)" = 4 ]
[ "$(grep -c '^cuLaunchKernel sum 1,1,1 1,1,1 0' log)" = 4 ]
[ "$(grep -c '^cuLibraryGetKernel fill' log)" -ge 1 ]
# At exit images stay loaded, for threads that launch on; dlclose unloads them.
if grep -q cuLibraryUnload log; then exit 1; fi
cat > closes.c <<'E'
#include <dlfcn.h>
#include <stdlib.h>
int main(void)
{
    void *so = dlopen("./client.so", RTLD_NOW);
    int (*run)(int, char **) = so ? (int (*)(int, char **))dlsym(so, "client_main") : NULL;
    return !run || run(1, (char *[]){"client", NULL}) || dlclose(so) || system("cp log closed");
}
E
cc -std=gnu17 -O1 -shared -fPIC -Dmain=client_main -I"$ROOT/src" "$T/client.c" tiny.S -L"$RT" -l:libcudart.so.13 -lpthread -o client.so
cc -std=gnu17 closes.c -o closes
rm -f log; FAKE_LOG="$PWD/log" under "$PWD:$RT" ./closes
tail -1 closed | grep -q cuLibraryUnload
FAKE_FAIL=cuStreamQuery:600 under "$PWD:$RT" ./client
# A program whose image does not load is told why at the launch, not at the registration.
if FAKE_FAIL=cuLibraryLoadData:209 under "$PWD:$RT" ./client 2> err; then exit 1; fi
grep -q 'cudaErrorNoKernelImageForDevice (no kernel image is available for execution on the device)' err
# No driver, no device.
rm libcuda.so.1
if ! ldconfig -p | grep -q libcuda.so.1; then
    if under "$PWD:$RT" ./client 2> err; then exit 1; fi
    grep -q 'cudaErrorInsufficientDriver' err
fi
