#!/bin/sh
# An allocation of more than this machine's memory and swap (as /proc/meminfo tells them) is refused, in one line; --overcommit
# allows it; one that fits is not looked at. Free and total memory are the device's in each case.
set -u
cat > take.c <<'P'
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx;
    uint64_t p = 0, q = 0;
    size_t free_bytes = 0, total = 0;
#define CALL(name, args, ...) ((int (*) args)dlsym(lib, #name))(__VA_ARGS__)
    CALL(cuInit, (unsigned), 0);
    CALL(cuDevicePrimaryCtxRetain, (void **, int), &ctx, 0);
    CALL(cuCtxSetCurrent, (void *), ctx);
    CALL(cuMemGetInfo_v2, (size_t *, size_t *), &free_bytes, &total);
    int small = CALL(cuMemAlloc_v2, (uint64_t *, size_t), &p, 1 << 20);
    int large = CALL(cuMemAlloc_v2, (uint64_t *, size_t), &q, argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
    printf("%zu %zu %d %d\n", free_bytes, total, small, large);
    return 0;
}
P
gcc -O1 -Wall -Werror -o take take.c -ldl || exit 1
bytes=$(awk '/^MemTotal:|^SwapTotal:/ { n += $2 } END { printf "%.0f", n * 1024 + 1048576 }' /proc/meminfo)
[ "$bytes" -lt 140000000000 ] || { echo 'this machine has more memory than the device'; exit 77; }
fail() { echo "$1"; cat out err; exit 1; }
"$MARGAY" run -t none --device emu -- ./take "$bytes" > out 2> err || fail 'refused: status'
[ "$(cut -d' ' -f3,4 out)" = '0 2' ] || fail 'not refused'
[ "$(grep -c 'of memory and swap (margay run --overcommit allows it)' err)" = 1 ] || fail 'nothing is said'
refused=$(cut -d' ' -f1,2 out)
"$MARGAY" run -t none --device emu --overcommit -- ./take "$bytes" > out 2> err || fail 'allowed: status'
[ "$(cat out)" = "$refused 0 0" ] && ! grep -q "of memory and swap" err || fail 'refused with --overcommit, or other answers'
"$MARGAY" run -t none --device emu -- ./take 1048576 > out 2> err || fail 'small: status'
[ "$(cat out)" = "$refused 0 0" ] && ! grep -q "of memory and swap" err || fail 'a small one is refused'
