#!/bin/sh
# An outside witness for `lanes` and `memory`: requests, sectors, and how many warps and threads executed each machine instruction
# natively, by Nsight Compute, on the kernels of instructions.cu and, where `make bench-gpu` was built, on those of bench/gpu at small
# size. WITNESS names a file with more programs, a line each: NAME FOLDER COMMAND. witness.py says what is compared.
set -u
NCU=${NCU:-$(command -v ncu || echo /usr/local/cuda/bin/ncu)}
[ -n "$NVCC" ] || { echo "nvcc is not installed"; exit 77; }
[ -x "$NCU" ] || { echo "Nsight Compute (ncu) is not installed"; exit 77; }
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
"$NVCC" -arch=sm_"$arch" -o instructions "$ROOT/tests/gpu/instructions.cu" || exit 1
metrics= here=$PWD names=
for kind in ld st red atom; do metrics=$metrics,l1tex__t_requests_pipe_lsu_mem_global_op_$kind.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_$kind.sum; done
profile() { # NAME KERNELS COMMAND...: NAME.raw.csv, NAME.source.csv
    name=$1 kernels=$2
    shift 2
    timeout 60 "$NCU" --target-processes all --kernel-name "regex:$kernels" --metrics "${metrics#,}" --section SourceCounters --import-source no -f -o "$here/$name" "$@" > "$here/$name.out" 2>&1 < /dev/null ||
        { tail -n 5 "$here/$name.out"; return 1; }
    "$NCU" --import "$here/$name.ncu-rep" --csv --page raw --print-units base > "$here/$name.raw.csv" && "$NCU" --import "$here/$name.ncu-rep" --csv --page source --print-source sass > "$here/$name.source.csv"
}
witness() { # NAME COMMAND...
    program=$1
    shift
    profile "$program" . "$@" || { grep -q ERR_NVGPUCTRPERM "$here/$program.out" && exit 77; echo "$program: left out, ncu failed natively"; return; }
    "$MARGAY" run -q -t lanes -t memory --device nvidia -o "$here/$program.profile" -- "$@" > "$here/$program.text" 2>&1 < /dev/null && "$MARGAY" report "$here/$program.profile" --json > "$here/$program.json" ||
        { echo "$program: left out, not under margay"; return; }
    differ=$(python3 "$ROOT/tests/gpu/witness.py" --differ "$here/$program")
    [ -z "$differ" ] || profile "$program.twin" "^($differ)$" "$MARGAY" run -q -t lanes -t memory --device nvidia -o "$here/$program.beside" -- "$@" || echo "$program: ncu failed under margay"
    names="$names $program"
}
witness instructions ./instructions
[ -x "$B/bin/bench-gpu" ] && [ -e "$B/bench/gpu/kernels.90.ptx" ] && witness bench "$B/bin/bench-gpu" "$B/bench/gpu/kernels.90.ptx" --size small --check --styles native
if [ -n "${WITNESS:-}" ]; then
    while read -r name folder command; do
        cd "$folder" && witness "$name" $command < /dev/null
        cd "$here" || exit 1
    done < "$WITNESS"
fi
[ -n "$names" ] || { echo "nothing to compare: ncu failed on each program without Margay"; exit 77; }
python3 "$ROOT/tests/gpu/witness.py" $names
