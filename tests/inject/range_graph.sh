#!/bin/sh
# --range and graphs: a node keeps the code that it was made with, and the coverage says so.
set -eu
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
"$NVCC" -cudart shared -gencode arch=compute_90,code=compute_90 -o range_graph "$ROOT/tests/inject/range_graph.cu"
devices=${REAL_GPU:+nvidia}
for device in ${devices:-emu cpu nvidia}; do
    [ "$device${REAL_GPU:-}" != nvidia ] || export LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart
    rm -rf p
    "$MARGAY" run -q --device $device --range profiler -t blocks -o p -- ./range_graph
    "$MARGAY" report p --json | python3 -c '
import json, sys
r = json.load(sys.stdin)
k = {k["name"]: k for k in r["kernels"]}
native = {(n["kernel"], n["launches"], n["reason"]) for n in r["coverage"]["native"]}
assert native == {("_Z5earlyPi", 5, "its node was made outside of --range"), ("_Z7betweenPi", 5, "its node was made outside of --range"), ("_Z4latePi", 1, "outside of --range")}, native
assert (k["_Z4latePi"]["instrumented"], k["_Z4latePi"]["blocks"][0]["thread_entries"]) == (5, 5 * 32), k["_Z4latePi"]'
    echo "ok   $device"
done
