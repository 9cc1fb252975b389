#!/usr/bin/env bash
# Cells that a tool outside of the tree adds to in every block are what the block counter counts, on both software
# devices; and what each thread adds stands in a software device's text as one instruction, which asks for no lanes.
set -eu
core=$B/lib/margay/libmargay-core.a
[ -x "$EX/bfs" ] || { echo "the examples need clang"; exit 77; }
case $B in *asan | *ubsan | *tsan) echo "a tool of another build than libmargay's sanitizer"; exit 77 ;; esac
gcc -std=c17 -D_GNU_SOURCE -O1 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -I"$ROOT/src" -I"$B/gen" -shared -o cells.so \
    "$ROOT/tests/tool/cells.c" "$core" -Wl,--exclude-libs,ALL -lm
for device in emu cpu; do
    [ $device = emu ] || [ -e "$B/lib/margay/libmargay-cpu.so" ] || continue
    for program in bfs divergent histogram; do
        rm -rf out
        "$MARGAY" run -q --device $device -t blocks,warps=on -t "$PWD/cells.so" -o out -- "$EX/$program" > said
        "$MARGAY" report --json out > $device.$program.json
        python3 - $device.$program.json <<'P'
import json, sys
j = json.load(open(sys.argv[1]))
sites = {}
for s in j['tools']['cells']['sites']: sites.setdefault(s['kernel'], []).append(s['cells'])
for k, kernel in enumerate(j['kernels']):
    want = [[b['thread_entries'], 3 * b['thread_entries'], b['warp_entries']] for b in kernel['blocks']]
    assert sites[k] == want, (kernel['name'], want, sites[k])
    assert any(b['thread_entries'] for b in kernel['blocks'])
P
    done
done
"$MARGAY" ptx instrument -t "$PWD/cells.so" "$ROOT/tests/exec/saxpy.ptx" > emu.ptx
"$MARGAY" ptx instrument -t "$PWD/cells.so" --sm 90 "$ROOT/tests/exec/saxpy.ptx" > gpu.ptx
# three blocks: two additions of every thread each, unguarded, with their constants; one of the lowest lane
[ "$(grep -cE '^\s*red\.global\.add\.u64 \[[^]]*\], (1|3);' emu.ptx)" = 6 ] && [ "$(grep -cE '^\s*@\S+ red\.global\.add\.u64 ' emu.ptx)" = 3 ]
! grep -q 'popc' emu.ptx && grep -q 'popc' gpu.ptx
