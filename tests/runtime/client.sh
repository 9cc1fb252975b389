#!/bin/sh
# A runtime client built without nvcc (clang's PTX in a fatbin, our library linked directly) runs under
# margay with its results right, plain and instrumented, from four threads.
set -e
. "$ROOT/tests/runtime/common"
clang=$(command -v clang || command -v clang-14) || { echo "no clang"; exit 77; }
[ -e "$B/lib/margay/driver/libcuda.so.1" ] || { echo "no driver built"; exit 77; }
"$clang" -x cuda --cuda-path=/nonexistent --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib -O2 -S "$T/client.cu" -o client.ptx
cc -std=gnu17 "$T/mkfatbin.c" -o mkfatbin
./mkfatbin client.ptx 70 client.S
cc -std=gnu17 -O1 -I"$ROOT/src" "$T/client.c" client.S -L"$RT" -l:libcudart.so.13 -lpthread -o client
"$MARGAY" run -q --device emu -t none -o plain -- ./client run
"$MARGAY" run -q --device emu -t blocks -o counted -- ./client run
"$MARGAY" report counted --json > counted.json
grep -q '"launches": 8' counted.json
