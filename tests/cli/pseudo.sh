#!/usr/bin/env bash
# margay trace convert --to accelsim-pseudo: read back by the rules of the simulator's parser; warp and thread instructions are those
# of the block counter, global accesses those of the memory form, names are in the simulator's map, both devices the same.
set -euo pipefail
[ -x "$EX/bfs" ] || { echo "the examples were not built: need clang"; exit 77; }
for program in 'bfs 300' 'matmul 32' 'histogram 700' 'divergent 200' 'stencil 20 2'; do
    read -r name args <<<"$program"
    for device in emu cpu; do
        [ $name-$device = bfs-cpu ] && continue # which thread claims a node first is a race
        "$MARGAY" run -q -t trace,instructions=on -t blocks --device $device -o $name.$device -- "$EX/$name" $args > /dev/null
        "$MARGAY" trace convert $name.$device --to accelsim-pseudo -o $name.$device.pseudo 2> said || { cat said; exit 1; }
        "$MARGAY" trace convert $name.$device --to accelsim-memory -o $name.$device.memory 2> /dev/null
        "$MARGAY" report $name.$device --json > $name.$device.json
        grep -q 'not machine code' said
        python3 "$ROOT/tests/cli/pseudo.py" $name.$device
    done
done
# A trace without instructions, and one without the profile that has the PTX.
"$MARGAY" run -q -t trace --device emu -o plain -- "$EX/matmul" 32 > /dev/null
status=0
"$MARGAY" trace convert plain --to accelsim-pseudo -o none 2> said || status=$?
[ $status = 3 ] && grep -q 'instructions=on' said
mkdir alone && cp matmul.emu/trace/*.mgt alone/
status=0
"$MARGAY" trace convert alone/*.mgt --to accelsim-pseudo -o none2 2> said || status=$?
[ $status = 3 ] && [ "$(wc -l < said)" -ge 1 ]
