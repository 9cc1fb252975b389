#!/bin/sh
# Tool memory where several instructions count from one base: each against the lanes of a trace.
set -eu
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o order "$ROOT/tests/tool/order.cu"
devices=${REAL_GPU:+nvidia}
for way in ${devices:-emu cpu apart}; do
    device=$way how=together
    case $way in
    nvidia) how=parts ;;
    apart) device=emu how=anywhere && export MARGAY_APART=7 ;;
    esac
    rm -rf t m
    "$MARGAY" run -q --device $device -t trace -o t -- ./order
    "$MARGAY" run -q --device $device -t memory -o m -- ./order
    "$MARGAY" trace convert t --to csv -o lanes.csv 2> err
    "$MARGAY" report m --json > m.json
    python3 "$ROOT/tests/tool/order.py" m.json lanes.csv $how && echo "ok   $way"
done
