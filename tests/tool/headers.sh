#!/bin/sh
# A finding in a header of the toolkit names the line of the user's that calls it, and the header's beside it; a header of the
# user's own is named itself. Written files are whole or not there.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
mkdir -p cuda-9.9/include own/include
cat > cuda-9.9/include/reader.cuh <<'E'
__device__ __forceinline__ float read_inner(const float *p, int i)
{
    return p[i];
}
__device__ __forceinline__ float read_one(const float *p, int i) { return read_inner(p, i); }
E
sed 's/read_/own_/g' cuda-9.9/include/reader.cuh > own/include/own.cuh
cat > user.cu <<'E'
#include "reader.cuh"
#include "own.cuh"
__global__ void strided(float *o, const float *i)
{
    float sound = read_one(i, threadIdx.x + blockIdx.x * 256);
    o[threadIdx.x + blockIdx.x * 256] = sound + read_one(i, threadIdx.x * 64); /* 6 */
}
__global__ void mine(float *o, const float *i)
{
    o[threadIdx.x + blockIdx.x * 256] = own_one(i, threadIdx.x * 64); /* 10 */
}
int main(int argc, char **argv)
{
    float *o, *i;
    cudaMalloc(&o, 4 * 256 * 64);
    cudaMalloc(&i, 4 * 256 * 64);
    strided<<<64, 256>>>(o, i);
    mine<<<64, 256>>>(o, i);
    return cudaDeviceSynchronize() != cudaSuccess;
}
E
"$NVCC" -cudart shared -lineinfo -O2 -Icuda-9.9/include -Iown/include -gencode arch=compute_90,code=compute_90 -o user user.cu
"$MARGAY" run -q --device emu -t advise -o d -- ./user
"$MARGAY" report d --json > d.json
"$MARGAY" report d > d.txt
python3 - <<'P'
import json, os
found = [f for f in json.load(open('d.json'))['findings'] if f['rule'] == 'uncoalesced']
by = {f['function']: f for f in found}
s, m = by['_Z7stridedPfPKf'], by['_Z4minePfPKf']
assert (os.path.basename(s['file']), s['line'], os.path.basename(s['header']), s['header_line']) == ('user.cu', 6, 'reader.cuh', 3), s
assert (os.path.basename(m['file']), m['line'], m['header'], m['header_line']) == ('own.cuh', 3, None, None), m
assert len(found) == 2, found # the sound read of the same header line is none
P
grep -q 'uncoalesced  user.cu:6  strided, .*, calls reader.cuh:3$' d.txt || { cat d.txt; exit 1; }
grep -q '^               > o\[threadIdx.x + blockIdx.x \* 256\] = sound + read_one(i, threadIdx.x \* 64); /\* 6 \*/$' d.txt || { cat d.txt; exit 1; }
"$MARGAY" report d --csv --tool memory > m.csv
! grep -q ':0[,"]' m.csv

# ---- what is written is whole, or what was there stays
for form in 'report d --html page' 'export folded d -o page' 'export features d -o page'; do
    echo before > page; rc=0
    (ulimit -f 0; exec "$MARGAY" $form) > out 2> err || rc=$?
    [ $rc = 3 ] && [ "$(cat page)" = before ] && ! ls | grep part || { echo "$form: $rc"; cat err; ls; exit 1; }
done
"$MARGAY" run -q --device emu -t timeline -t trace -o t -- ./user
for form in 'export chrome t -o out.json' 'export perfetto t -o out.pb' 'export csv t -o out.csv' 'export sqlite t -o out.db' 'trace convert t --to csv -o out.csv'; do
    out=${form##* }
    echo before > "$out"; rc=0
    (ulimit -f 0; exec "$MARGAY" $form) > said 2> err || rc=$?
    [ $rc = 3 ] && [ "$(cat "$out")" = before ] && ! ls | grep part || { echo "$form: $rc"; cat said err; exit 1; }
    "$MARGAY" $form > said && [ "$(head -c 6 "$out" | tr -d '\0')" != before ]
done
ln -s page link && chmod 600 page
"$MARGAY" report d --html link && [ -L link ] && grep -q '<html' page && [ "$(stat -c %a page)" = 600 ]
"$MARGAY" export csv t -o /dev/stdout | grep -q '^start_ns,'
