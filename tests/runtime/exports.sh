#!/bin/sh
# The library exports exactly the listed names under the version node of its own name, and needs glibc alone.
set -e
lib="$B/lib/margay/cudart/libcudart.so.13"
sed -n 's/^RT_EXPORT(\(.*\))/\1/p' "$ROOT/src/runtime/exports.def" | LC_ALL=C sort > listed
nm -D --defined-only --with-symbol-versions "$lib" | sed -n 's/^[0-9a-f]* [TW] \(.*\)@@libcudart.so.13$/\1/p' | LC_ALL=C sort > exported
diff listed exported
[ "$(wc -l < listed)" = 422 ]
[ "$(readelf -d "$lib" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')" = libcudart.so.13 ]
if readelf -d "$lib" | grep NEEDED | grep -vE "libc\.so|libm\.so|libpthread|libdl|ld-linux|lib[a-z]*san"; then exit 1; fi
real=$(dirname "$(dirname "${NVCC:-/none/none}")")/lib64/libcudart.so.13
[ ! -r "$real" ] || nm -D --defined-only "$real" | sed -n 's/^[0-9a-f]* T \([^@]*\).*/\1/p' | LC_ALL=C sort | diff - listed
