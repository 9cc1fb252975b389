#!/bin/sh
# margay replay --export of what has arrays, mipmaps, textures and surfaces: the C program leaves the recorded bytes on every device, and
# does not where its data are others. Of a launch that reads what other kernels allocated, taken out alone, one line says why it fails.
set -u
failed=0
devices="emu cpu"
[ -e "$B/lib/margay/libmargay-cpu.so" ] || devices=emu
fail() { echo "FAIL $*"; failed=1; }
gcc -O1 -Wall -Werror -I"$ROOT/src" -o images "$ROOT/tests/inject/images.c" -L"$B/lib/margay/driver" -lcuda || exit 1
exported() { # NAME LAUNCHES WORDS OPTIONS...: as a program, on each device
    name=$1 words=$2
    shift 2
    rm -rf folder
    "$MARGAY" replay -q --export folder --device emu "$@" cap > out 2> err || { fail "$name: export"; cat err; return; }
    (cd folder && gcc -O1 -Wall -Wextra -Werror -o it replay.c -L"$B/lib/margay/driver" -lcuda) || { fail "$name: not C"; return; }
    for d in $devices; do
        (cd folder && "$MARGAY" run -q -t none --device $d -o ran -- ./it) > out 2>&1 && grep -qx "$words" out && echo "ok   $name on $d" || { fail "$name on $d"; cat out; }
    done
}
"$MARGAY" capture -q --check all --device emu -o cap -- ./images > out 2>&1 && grep -qx '0 wrong' out || { fail 'the program'; cat out; }
for op in array level copy3d object object_free; do
    "$MARGAY" replay --list cap | grep -q "^$op " || fail "the capture has no $op"
done
exported 'all of it' '3 launches, the recorded results'
at=$(sed -n 's/.*copy3d(.*data + \([0-9]*\).*/\1/p' folder/replay.c)
printf x | dd of=folder/data.bin bs=1 seek=$((at + 4)) conv=notrunc 2> dd
(cd folder && "$MARGAY" run -q -t none --device emu -o ran -- ./it) > out 2>&1
[ $? = 1 ] && grep -q '^launch 2 left other bytes' out || { fail 'other content of a mipmap'; cat out; }
"$MARGAY" capture -q --check all --device emu -o cap2 -- ./images flat > out 2>&1 && grep -qx '0 wrong' out || { fail 'without a mipmap'; cat out; }
rm -rf cap && mv cap2 cap
exported 'the second launch' '1 launch, the recorded results' --launches 1

cat > heap.ptx <<'P'
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b64 r) malloc(.param .b64 n);
.visible .entry make(.param .u64 at)
{
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [at];
    mov.u64 %d2, 64;
    {
    .param .b64 a;
    .param .b64 b;
    st.param.b64 [a], %d2;
    call (b), malloc, (a);
    ld.param.b64 %d3, [b];
    }
    st.u64 [%d3], 42;
    st.global.u64 [%d1], %d3;
    ret;
}
.visible .entry read(.param .u64 at)
{
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [at];
    ld.global.u64 %d2, [%d1];
    ld.u64 %d3, [%d2];
    st.global.u64 [%d1+8], %d3;
    ret;
}
P
cat > heap.c <<'C'
#include "adder.h"
D(cuModuleLoad, cu_module *, const char *)
int main(void)
{
    cu_device device;
    cu_ctx context;
    cu_module module;
    cu_function make, read;
    cu_ptr at;
    unsigned long long words[2];
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoad(&module, "heap.ptx"));
    OK(cuModuleGetFunction(&make, module, "make"));
    OK(cuModuleGetFunction(&read, module, "read"));
    OK(cuMemAlloc_v2(&at, 16));
    OK(cuLaunchKernel(make, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&at}, NULL));
    OK(cuLaunchKernel(read, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&at}, NULL));
    OK(cuMemcpyDtoH_v2(words, at, 16));
    return words[1] != 42;
}
C
gcc -O1 -I"$ROOT/src" -I"$ROOT/tests/inject" -o heap heap.c -L"$B/lib/margay/driver" -lcuda || exit 1
for d in $devices; do
    rm -rf hcap alone again
    "$MARGAY" capture -q --device $d -o hcap -- ./heap || fail "a heap on $d"
    "$MARGAY" replay -q --device $d --extract alone --launches 1 -o x hcap || fail "taking a launch out on $d"
    "$MARGAY" replay --device $d -o again alone > out 2> err
    [ $? = 4 ] && grep -q 'memory that kernels allocate themselves (malloc) is not taken out with a launch that reads it' err || { fail "a launch that reads a heap on $d"; cat err; }
done
[ $failed = 0 ] && echo ok
exit $failed
