#!/bin/sh
# Programs over NVIDIA's core libraries for CUDA, whose kernels wait for one another's partial sums through memory (look-back): ten algorithms,
# elements of 1, 4, 8 and 16 bytes, each compared with the host's own computation. Built outside of the repository, once.
#   CCCL=DIR        a checkout of the libraries (its cub, thrust and libcudacxx folders), or include/cccl of a toolkit; BUILT=DIR: programs are there, or go there
#   RUNS=3 WORKERS="2 4" DEVICES="cpu emu nvidia" PROGRAMS="SCAN-4 ..." ROUNDS=3
set -u
failed=0 n=0
[ -n "${CCCL:-}${BUILT:-}" ] || { echo "skipped: programs over CCCL: set CCCL to a checkout of the libraries"; exit 77; }
built=${BUILT:-${XDG_CACHE_HOME:-$HOME/.cache}/margay-torture/cccl}
case $built in "$ROOT"/tests/* | "$ROOT"/src/*) echo "FAIL: programs are not built inside of the repository"; exit 1 ;; esac
mkdir -p "$built"
all=
for bytes in 4 16 8 1; do
    for a in SCAN SCAN_BY_KEY REDUCE REDUCE_BY_KEY SELECT PARTITION UNIQUE SORT HISTOGRAM RUN_LENGTH; do all="$all $a-$bytes"; done
done
programs=${PROGRAMS:-$all}
for p in $programs; do
    [ -x "$built/$p" ] && continue
    [ -n "${NVCC:-}" ] && [ -n "${CCCL:-}" ] || { echo "skipped: $p is not built: needs nvcc and CCCL"; exit 77; }
    nice "$NVCC" -O2 -std=c++17 -cudart shared -gencode 'arch=compute_90,code=[sm_90,compute_90]' -DTORTURE_ALGORITHM="TORTURE_${p%-*}" -DTORTURE_BYTES="${p#*-}" \
        -I"$CCCL/thrust" -I"$CCCL/libcudacxx/include" -I"$CCCL/cub" -o "$built/$p.part" "$ROOT/tests/torture/algorithm.cu" > build.log 2>&1 &&
        mv "$built/$p.part" "$built/$p" || { echo "FAIL: $p cannot be built"; tail -n 5 build.log; exit 1; }
done
# the runs' seeds are their numbers
for device in ${DEVICES:-cpu emu nvidia}; do
    [ $device != cpu ] || [ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "skipped: cpu is not built"; continue; }
    for workers in ${WORKERS:-2 4}; do
        for p in $programs; do
            run=0
            while [ $run -lt "${RUNS:-3}" ]; do
                run=$((run + 1)) n=$((n + 1))
                libraries=
                [ $device != nvidia ] || libraries=$B/test/driver:$B/lib/margay/cudart # NVIDIA's driver is the emulator here
                LD_LIBRARY_PATH=$libraries timeout 120 "$MARGAY" run -q --device $device --workers=$workers ${TOOL:--t none} -o o -- "$built/$p" "${ROUNDS:-3}" $run > out 2>&1 && grep -q '^right' out ||
                    { echo "FAIL $device, $workers workers, $p, seed $run: $(head -n 2 out | cut -c 1-200)"; failed=$((failed + 1)); }
                rm -rf o
            done
        done
    done
done
echo "$n runs, $failed failed"
[ $failed = 0 ]
