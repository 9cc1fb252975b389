#!/bin/sh
# A program on the CUDA 12 runtime is refused in one line that names it; its own error check sees 801.
set -e
cat > app.c <<'C'
#include <stdio.h>
#include <string.h>
void **__cudaRegisterFatBinary(void *);
int cudaMalloc(void **, size_t);
int cudaThreadSynchronize(void);
const char *cudaGetErrorString(int);
int main(void)
{
    void *p;
    __cudaRegisterFatBinary(0);
    int e = cudaMalloc(&p, 4);
    printf("%d %s\n", e, cudaGetErrorString(e));
    return cudaThreadSynchronize() == 801 ? 0 : 1;
}
C
cc app.c -L"$B/lib/margay/cudart" -l:libcudart.so.12 -o app
. "$ROOT/tests/runtime/common"
under "$RT" ./app > out 2> err
[ "$(cat out)" = "801 operation not supported" ]
[ "$(wc -l < err)" = 1 ]
grep -q 'CUDA 12 runtime (libcudart.so.12)' err
# margay run looks before it starts the program
rm -f out err
"$MARGAY" run -o profile --device emu -- ./app > out 2> err && rc=0 || rc=$?
[ $rc = 122 ]
[ ! -s out ]
[ "$(wc -l < err)" = 1 ]
grep -q 'app needs libcudart.so.12: .*CUDA 13' err
[ ! -e profile ]
