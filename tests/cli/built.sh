#!/bin/sh
# A source that is newer than what was loaded is no source that ran: told for PTX of a file, for PTX in the program, and
# not told where nobody knows (PTX in memory that the program has read itself).
set -e
failed=0
fail() { echo "FAIL $*"; failed=1; }
printf '// nothing\n__global__ void k(int *p)\n{\n    *p = 1;\n}\n' > k.cu
printf '// nothing\n*p = 1;\n' > inlined.cuh
cat > k.ptx <<P
.version 7.0
.target sm_70
.address_size 64
.file 1 "$PWD/k.cu"
.file 2 "$PWD/inlined.cuh"
.visible .entry k(.param .u64 p)
{
.reg .b64 %d<2>;
.loc 1 4 5
ld.param.u64 %d1, [p];
.loc 2 2 1
st.global.u32 [%d1], 1;
ret;
}
P
cat > k.c <<'P'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxSynchronize(void), cuModuleLoadData(void **, const void *), cuModuleLoad(void **, const char *),
    cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(uint64_t *, size_t),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
extern const char text[];
__asm__(".section .rodata\n.globl text\ntext: .incbin \"k.ptx\"\n.byte 0\n.previous\n");
static char room[4096];
int main(int argc, char **argv)
{
    void *ctx, *m, *f;
    int device;
    uint64_t p;
    void *args[] = {&p};
    const char *how = argc > 1 ? argv[1] : "";
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&ctx, device) || cuCtxSetCurrent(ctx)) return 1;
    if (!strcmp(how, "file") ? cuModuleLoad(&m, "k.ptx") : cuModuleLoadData(&m, !strcmp(how, "heap") ? strdup(text) : !strcmp(how, "static") ? strcpy(room, text) : text))
        return 2;
    return cuModuleGetFunction(&f, m, "k") || cuMemAlloc_v2(&p, 4) || cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL) ||
           cuCtxSynchronize();
}
P
gcc -std=gnu17 -O1 -o prog k.c -L"$B/lib/margay/driver" -l:libcuda.so.1
gcc -std=gnu17 -O1 -shared -fPIC -Dmain=run -o liblate.so k.c -L"$B/lib/margay/driver" -l:libcuda.so.1
printf '#include <dlfcn.h>\nint main(void) { char *a[] = {"", "", 0}; return ((int (*)(int, char **))dlsym(dlopen("./liblate.so", RTLD_NOW), "run"))(2, a); }\n' > late.c
gcc -O1 -w -o late late.c
told() { # PROFILE [FILE]: is the source's age told by annotate?
    "$MARGAY" annotate "$1" "${2:-k.cu}" > out 2> err || { cat out err; fail "annotate $1"; }
    grep -q "${2:-k.cu} was changed since the program was built: " out
}
run() { rm -rf "$1"; "$MARGAY" run -q --device emu -t memory -o "$1" -- $2 || fail "run $1"; }
built() { "$MARGAY" report "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["kernels"][0]["built_unix_ns"])'; }
written() { python3 -c 'import os, sys; print(os.stat(sys.argv[1]).st_mtime_ns)' "$1"; }
old='2020-01-01 00:00' between='2021-06-01 12:00' new='2022-01-01 00:00'
for way in 'file k.ptx ./prog file' 'program prog ./prog' 'library liblate.so ./late'; do
    set -- $way; what=$1 file=$2; shift 2
    touch -d "$new" prog late liblate.so k.ptx; touch -d "$old" k.cu inlined.cuh; run "$what" "$*"
    [ "$(built "$what")" = "$(written "$file")" ] || fail "$what: built $(built "$what"), written $(written "$file")"
    told "$what" && fail "$what: an old source is doubted"
    told "$what" inlined.cuh && fail "$what: an old header is doubted"
    touch -d "$old" "$file"; touch -d "$between" k.cu inlined.cuh; run "$what" "$*"
    told "$what" inlined.cuh || fail "$what: a header of inlined lines alone was changed after the build, and nobody says so"
    told "$what" || fail "$what: the source was changed after the build, and nobody says so"
done
for way in heap static; do # what the program has read itself, or can have
    touch -d "$old" prog k.ptx; touch -d "$between" k.cu; run $way "./prog $way"
    [ "$(built $way)" = None ] || fail "$way: built $(built $way)"
    told $way && fail "$way: nobody knows when it was built, and it is doubted"
done
if [ -n "$NVCC" ]; then # a fatbin, behind its wrapper
    printf '__global__ void k(int *p)\n{\n    *p = 1;\n}\nint main() { int *p; cudaMalloc(&p, 4); k<<<1, 1>>>(p); return cudaDeviceSynchronize(); }\n' > fat.cu
    "$NVCC" -cudart shared -lineinfo -gencode arch=compute_90,code=compute_90 -o fat fat.cu
    touch -d "$new" fat; run bin ./fat
    [ "$(built bin)" = "$(written fat)" ] || fail "fat: built $(built bin), written $(written fat)"
fi
# a name without a folder is no place
sed "s|$PWD/||" k.ptx > named && mv named k.ptx; touch -d "$old" k.cu inlined.cuh; run relative './prog file'
"$MARGAY" annotate relative k.cu > out
grep -q '^k\.cu is a name without a folder: ' out || { cat out; fail "a name without a folder"; }
exit $failed
