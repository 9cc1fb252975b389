#!/bin/sh
# An outside witness: 24 kernels whose instructions the assembler leaves as they are (instructions.cu). What
# Nsight Compute counts of them in the native machine code, by warps and by threads, is what `blocks` says, exactly.
# Without ncu, or where it may not count (ERR_NVGPUCTRPERM), the test is left out and says so.
set -u
NCU=${NCU:-$(command -v ncu || echo /usr/local/cuda/bin/ncu)}
[ -n "$NVCC" ] || { echo "nvcc is not installed"; exit 77; }
[ -x "$NCU" ] || { echo "Nsight Compute (ncu) is not installed"; exit 77; }
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
"$NVCC" -arch=sm_"$arch" -o instructions "$ROOT/tests/gpu/instructions.cu" || exit 1
./instructions > native.out || { cat native.out; exit 1; }
"$NCU" --metrics sass__inst_executed_per_opcode,sass__thread_inst_executed_true_per_opcode --csv --page raw \
    --print-units base --print-metric-instances details --log-file ncu.csv ./instructions > ncu.out 2>&1
rc=$?
grep -q ERR_NVGPUCTRPERM ncu.out ncu.csv && { echo "ncu may not count here (ERR_NVGPUCTRPERM)"; exit 77; }
[ $rc = 0 ] || { echo "ncu: exit $rc"; cat ncu.out ncu.csv; exit 1; }
"$MARGAY" run -q -t blocks,warps=on --device nvidia -o profile -- ./instructions > out 2> err || { cat out err; exit 1; }
cmp native.out out || exit 1
"$MARGAY" report profile --json > profile.json && python3 "$ROOT/tests/gpu/ncu.py" ncu.csv profile.json
