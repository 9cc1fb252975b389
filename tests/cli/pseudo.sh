#!/usr/bin/env bash
# margay trace convert --to accelsim-pseudo: read back by the rules of the simulator's parser; warp and thread instructions are those
# of the block counter, global accesses those of the memory form, names are in the simulator's map, both devices the same.
set -euo pipefail
[ -x "$EX/bfs" ] || { echo "the examples were not built: need clang"; exit 77; }
look() { # NAME DEVICE LANES PROGRAM...
    local name=$1 device=$2 lanes=$3
    shift 3
    "$MARGAY" run -q -t trace,instructions=on -t blocks --device $device -o $name -- "$@" > /dev/null
    "$MARGAY" trace convert $name --to accelsim-pseudo -o $name.pseudo 2> said || { cat said; exit 1; }
    "$MARGAY" trace convert $name --to accelsim-memory -o $name.memory 2> /dev/null
    "$MARGAY" report $name --json > $name.json
    grep -q 'not machine code' said
    python3 "$ROOT/tests/cli/pseudo.py" $name $lanes
}
for program in 'bfs 300' 'matmul 32' 'histogram 700' 'divergent 200' 'stencil 20 2'; do
    read -r name args <<<"$program"
    for device in emu cpu; do
        [ $name-$device = bfs-cpu ] && continue # which thread claims a node first is a race
        look $name.$device $device "" "$EX/$name" $args
    done
done
# Warps part and meet by chance, within blocks, too.
for seed in 1 2 3 4; do MARGAY_APART=$seed look divergent.$seed emu lanes "$EX/divergent" 200; done
# Guards: what no lane of a warp accesses is no access, and neither is shared memory behind a generic address.
if [ -n "$NVCC" ]; then
    "$NVCC" -cudart shared -gencode arch=compute_90,code=compute_90 -o guards "$ROOT/tests/cli/pseudo.cu"
    for device in emu cpu; do look guards.$device $device "" ./guards; done
    [ "$(cat guards.emu.pseudo/*.traceg | grep -c ' NOP ')" = 7 ] # of 4 warps: the store of 3, the load of 1 and, from shared memory, of 3
fi
# A trace without instructions, and one without the profile that has the PTX.
"$MARGAY" run -q -t trace --device emu -o plain -- "$EX/matmul" 32 > /dev/null
status=0
"$MARGAY" trace convert plain --to accelsim-pseudo -o none 2> said || status=$?
[ $status = 3 ] && grep -q 'instructions=on' said
mkdir alone && cp matmul.emu/trace/*.mgt alone/
status=0
"$MARGAY" trace convert alone/*.mgt --to accelsim-pseudo -o none2 2> said || status=$?
[ $status = 3 ] && [ "$(wc -l < said)" -ge 1 ]
