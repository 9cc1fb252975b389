#!/bin/sh
# Copies, arrays, textures and nodes over the fake driver: see convert.c.
set -e
T="$ROOT/tests/runtime" RT="$B/lib/margay/cudart"
cc -std=gnu17 -shared -fPIC -Wl,-soname,libcuda.so.1 -I"$ROOT/src" -I"$ROOT" "$T/fake.c" "$T/fake_rest.c" -o libcuda.so.1
cc -std=gnu17 -O1 -I"$ROOT/src" "$T/convert.c" -L"$RT" -l:libcudart.so.13 -o convert
LD_LIBRARY_PATH="$PWD:$RT" ./convert
