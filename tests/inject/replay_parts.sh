#!/bin/sh
# A replay maps memory in pages, and several allocations lie in one. To reports they are the program's own: a block that rests on one buffer
# while another is written does not depend on timing, as in the run that was recorded; where one buffer is both it does.
set -u
failed=0
devices="emu cpu"
[ -e "$B/lib/margay/libmargay-cpu.so" ] || devices=emu
fail() { echo "FAIL $*"; failed=1; }
cat > pair.ptx <<'P'
.version 7.0
.target sm_70
.address_size 64
.visible .entry pair(.param .u64 from, .param .u64 to)
{
    .reg .pred %q;
    .reg .b32 %r<3>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [from];
    ld.param.u64 %d2, [to];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d1, %d1, %d3;
    add.s64 %d2, %d2, %d3;
    ld.global.u32 %r2, [%d1];
    setp.eq.u32 %q, %r2, 0;
    @%q bra done;
    st.global.u32 [%d2+4], %r1;
done:
    ret;
}
P
cat > two.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef uint64_t ptr;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuModuleLoadData(void **, const void *), cuCtxSynchronize(void);
int cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(ptr *, size_t), cuMemsetD32_v2(ptr, unsigned, size_t), cuMemFree_v2(ptr);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int main(int argc, char **argv)
{
    static char text[4096];
    void *context, *module, *f;
    ptr from, to, gone;
    FILE *in = fopen("pair.ptx", "r");
    int bad = !in || !fread(text, 1, sizeof text - 1, in) || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context);
    bad |= cuModuleLoadData(&module, text) || cuModuleGetFunction(&f, module, "pair") || cuMemAlloc_v2(&gone, 700) || cuMemAlloc_v2(&from, 600);
    bad |= cuMemFree_v2(gone) || cuMemAlloc_v2(&to, 500) || cuMemsetD32_v2(from, 7, 150);
    void *apart[] = {&from, &to}, *same[] = {&from, &from};
    for (int k = 0; k < 3; k++) bad |= cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, argc > 1 ? same : apart, NULL);
    return (bad | cuCtxSynchronize()) != 0 && argv;
}
C
gcc -O1 -o two two.c -L"$B/lib/margay/driver" -lcuda || exit 1
seen() { # DIR: do blocks depend on timing
    "$MARGAY" report "$1" --json | python3 -c "
import json, sys
print([b['timing_dependent'] for k in json.load(sys.stdin)['kernels'] for b in k['blocks']])"
}
for d in $devices; do
    for how in '' same; do
        rm -rf cap again plain
        LD_LIBRARY_PATH=$B/lib/margay/driver "$MARGAY" run -q --device $d -t blocks -o plain -- ./two $how || fail "a run on $d"
        "$MARGAY" capture -q --device $d -o cap -- ./two $how || fail "a capture on $d"
        "$MARGAY" replay -q --device $d -t blocks -o again cap || fail "a replay on $d"
        seen plain > one
        seen again > two.txt
        cmp one two.txt || { fail "timing on $d $how"; cat one two.txt; }
        grep -q "$([ -n "$how" ] && echo True || echo False)" one || { fail "what the run says, $how"; cat one; }
    done
done
[ $failed = 0 ] && echo ok
exit $failed
