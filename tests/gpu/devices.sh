#!/bin/sh
# Two contexts at once as in tests/inject/devices.sh: on two GPUs where the machine has them, else on one.
gpus=$(nvidia-smi -L | wc -l)
[ -z "${CUDA_VISIBLE_DEVICES:-}" ] || gpus=$(echo "$CUDA_VISIBLE_DEVICES" | tr , '\n' | wc -l)
[ "$gpus" -lt 2 ] || PAIRS="0,1 1,0 0,0"
export PAIRS="${PAIRS:-0,0}"
exec env REAL_GPU=1 sh "$ROOT/tests/inject/devices.sh"
