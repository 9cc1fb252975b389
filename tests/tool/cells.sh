#!/usr/bin/env bash
# Cells that a tool outside of the tree adds to in every block are what the block counter counts, on both software
# devices; and what each thread adds stands in a software device's text as one instruction, which asks for no lanes.
set -eu
core=$B/lib/margay/libmargay-core.a
[ -x "$EX/bfs" ] || { echo "the examples need clang"; exit 77; }
case $B in *asan | **tsan) echo "a tool of another build than libmargay's sanitizer"; exit 77 ;; esac
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
# three blocks: two additions of every thread each and one of every warp, said as such; on a GPU code that asks for lanes
[ "$(grep -cE '^\s*\.pragma "margay count_threads [0-9]+, (1|3);";' emu.ptx)" = 6 ]
[ "$(grep -cE '^\s*\.pragma "margay count_warps [0-9]+, 1;";' emu.ptx)" = 3 ]
! grep -qE 'popc|activemask|red\.global' emu.ptx && grep -q 'popc' gpu.ptx && ! grep -q margay gpu.ptx
# compiled: as of `blocks`, nothing is left to the emulator and no lane keeps a count of its own
[ -e "$B/lib/margay/libmargay-cpu.so" ] || exit 0
for tool in none blocks cells.so; do
    mkdir $tool.ll
    [ $tool = cells.so ] && tool=$PWD/cells.so
    MARGAY_CPU_STORE=off MARGAY_CPU_TIER=sync MARGAY_CPU_DUMP=$PWD/${tool##*/}.ll \
        "$MARGAY" run -q --device cpu -t "$tool" -o out.${tool##*/} -- "$EX/divergent" 2000 > said
    grep -hE 'call void %|<32 x i64>' ${tool##*/}.ll/*.1.ll ${tool##*/}.ll/*.w1.ll | sed 's/[%@][0-9A-Za-z._]*//g; s/, ![a-z.]* ![0-9]*//g' > ${tool##*/}.ops || true
done
cmp none.ops blocks.ops && cmp blocks.ops cells.so.ops
grep -q 'llvm.ctpop' cells.so.ll/*.1.ll && ! grep -q 'llvm.ctpop' none.ll/*.1.ll # that is how it counts
