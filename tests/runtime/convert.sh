#!/bin/sh
# Copies, arrays, textures and nodes over the fake driver: see convert.c.
set -e
. "$ROOT/tests/runtime/common"
build_fake
cc -std=gnu17 -O1 -I"$ROOT/src" "$T/convert.c" -L"$RT" -l:libcudart.so.13 -o convert
under "$PWD:$RT" ./convert
