#!/bin/sh
# Two contexts at once as in tests/inject/devices.sh: on two GPUs where the machine has them, else on one.
[ "$(nvidia-smi -L | wc -l)" -gt 1 ] && PAIRS="0,1 1,0 0,0"
export PAIRS="${PAIRS:-0,0}"
exec env REAL_GPU=1 sh "$ROOT/tests/inject/devices.sh"
