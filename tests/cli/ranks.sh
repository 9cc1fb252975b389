#!/usr/bin/env bash
# margay study communication by several processes: the bytes of one process, with any launcher's variables and under mpirun; what is left behind or damaged.
set -euo pipefail
[ -x "$EX/exchange" ] || { echo "the examples were not built: need clang"; exit 77; }
"$MARGAY" run -q -t trace --device emu -o halo -- "$EX/exchange" halo 9 5 > /dev/null
"$MARGAY" run -q -t trace --device emu -o bfs -- "$EX/bfs" 900 > /dev/null
study() { "$MARGAY" study communication "$@"; }
launch() { # SIZE ARGS...: as PMI does; rank 0's output
    local size=$1 i
    shift
    for i in $(seq 1 $((size - 1))); do PMI_RANK=$i PMI_SIZE=$size study "$@" > rank.$i & done
    PMI_RANK=0 PMI_SIZE=$size study "$@"
    wait
    for i in $(seq 1 $((size - 1))); do [ ! -s rank.$i ]; done
}
for what in 'halo --json' 'bfs --json' 'bfs --json --entity thread' 'bfs' 'bfs --json --match start --workers 2'; do
    # shellcheck disable=SC2086
    study $what > one
    for size in 2 4; do
        # shellcheck disable=SC2086
        launch $size $what > several
        cmp one several
    done
done
ls halo/trace bfs/trace > left
[ "$(grep -c mgt left)" = 2 ] || { cat left; exit 1; }
study bfs --json > one
if command -v mpirun > /dev/null; then
    mpirun --allow-run-as-root --oversubscribe -n 4 "$MARGAY" study communication bfs --json > several
    cmp one several
fi
# What an earlier run left behind is not taken for a part of this one where it is none; a damaged part is refused.
PMI_RANK=1 PMI_SIZE=2 study bfs > rank.1
part=$(ls bfs/trace/*.1)
truncate -s -5 "$part"
rc=0
PMI_RANK=0 PMI_SIZE=2 study bfs > out 2> err || rc=$?
[ $rc = 3 ] && grep -q 'damaged' err && [ ! -e "$part" ]
PMI_RANK=1 PMI_SIZE=2 study bfs --entity kernel > rank.1
launch 2 bfs > out
cmp <(study bfs) out
rc=0
PMI_RANK=0 PMI_SIZE=2 study bfs --appendix-b x.json > out 2> err || rc=$?
[ $rc = 3 ] && grep -q 'made by one process' err
