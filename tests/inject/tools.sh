#!/bin/sh
# Tools outside the tree, several at once, switched and added while the program runs: what they count has a
# closed form, the program's results stay, and each gives what it gives alone. On the emulator, the CPU device
# where there is one, and through the nvidia backend with a driver over the emulator.
# clock
set -u
case ${VARIANT:-} in tsan | cover) echo "one build and a sanitizer's are enough"; exit 77 ;; asan) sanitize=-fsanitize=address,undefined ;; *) sanitize= ;; esac
failed=0
export XDG_CACHE_HOME=$PWD/cache
core=$B/lib/margay/libmargay-core.a
tool() { # SOURCE OUT
    gcc $sanitize -std=c17 -D_GNU_SOURCE -O1 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -I"$ROOT/src" -I"$B/gen" -shared -o "$2" "$1" "$core" \
        -Wl,--exclude-libs,ALL ${sanitize:--Wl,-z,defs} -lm -lpthread -ldl || exit 1
}
tool "$ROOT/tests/inject/every.c" every.so
tool "$ROOT/examples/tools/zeros.c" zeros.so
gcc -O1 -Wall -Werror -I"$ROOT/include" -o tools "$ROOT/tests/inject/tools.c" -L"$B/lib/margay/driver" -lcuda || exit 1
cp "$ROOT/tests/inject/fill.ptx" .
fail() { echo "FAIL $*"; failed=1; }
run() { # PROFILE ARGS... -- MODE...
    p=$1
    shift
    rm -rf "$p"
    "$MARGAY" run -o "$p" "$@" > out 2> err && grep -q '^ok$' out || { fail "$*"; cat out err; }
}
json() { "$MARGAY" report "$1" --json > "$1.json" && shift && python3 - "$@" > why 2>&1 || { fail "$what"; cat why; }; }

for device in emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu) nvidia; do
    [ $device != nvidia ] || export LD_LIBRARY_PATH=$B/test/driver
    for mode in plain graph; do
        what="$device, $mode"
        rm -f finalized
        run p --device $device -t blocks -t ./every.so,out="$PWD/finalized" -- ./tools fill.ptx $mode
        json p $device $mode <<'P'
import json, sys
r = json.load(open('p.json'))
device, mode = sys.argv[1:]
e = r['tools']['every']
k = e['kernels'][0]
ids = 55 if mode == 'plain' else 10
assert (k['name'], k['counted'], k['note'], k['lost']) == ('fill', 10, 7, 0), k
assert k['cells'] == [2560, 255, 255, 256 * ids], k
assert k['table'] == [0, 640, 1, 640, 2, 640, 3, 640], k
assert sorted(k['launches']) == ([256 * (i + 1) for i in range(10)] if mode == 'plain' else [256] * 10) or (device, mode) == ('nvidia', 'graph') and sum(k['launches']) == 2560, k
assert r['kernels'][0]['blocks'][0]['thread_entries'] == 2560 and r['coverage']['instrumented'] == 10
lines = [l.split() for l in open('finalized')]
assert all(l[1] == '1' and l[3] == '4' for l in lines) and sum(int(l[2]) for l in lines) == 2560, lines
h = e['host']
assert h['finalized'] == len(lines) and h['allocations'] == 1 and h['modules'] == 1 and h['kernels'] == 1 and h['arrays'] == 1 and h['textures'] == 1, h
P
    done
done
unset LD_LIBRARY_PATH

what="each gives what it gives alone"
run a -t ./zeros.so --device emu -- "$B/examples/stencil" > /dev/null 2>&1; failed=0 # its output is another
run b -t ./every.so --device emu -- "$B/examples/stencil" > /dev/null 2>&1; failed=0
run c -t blocks --device emu -- "$B/examples/stencil" > /dev/null 2>&1; failed=0
run d -t ./zeros.so -t blocks -t ./every.so --device emu -- "$B/examples/stencil" > /dev/null 2>&1; failed=0
for p in a b c d; do "$MARGAY" report $p --json > $p.json || fail "report $p"; done
python3 - > why 2>&1 <<'P' || { fail "$what"; cat why; }
import json
a, b, c, d = (json.load(open(f + '.json')) for f in 'abcd')
assert a['tools']['zeros']['loads'] == d['tools']['zeros']['loads'] and any(l['reads'] for l in a['tools']['zeros']['loads'])
assert b['tools']['every']['kernels'] == d['tools']['every']['kernels'] and b['tools']['every']['kernels'][0]['counted'] > 1
assert c['kernels'][0]['blocks'] == d['kernels'][0]['blocks']
assert a['kernels'][0]['blocks'][0]['thread_entries'] is None
P

what="a thousand times on and off"
run p -t blocks -t ./every.so --device emu -- ./tools fill.ptx toggle every
[ -n "$sanitize" ] || grep -q 'grown by 0 KB' out || { fail "it leaks"; cat out; }
json p <<'P'
import json
r = json.load(open('p.json'))
k = r['tools']['every']['kernels'][0]
assert k['counted'] == 500 and k['cells'][0] == 500 * 256, k
assert k['cells'][3] == 256 * sum(i + 1 for i in range(1000) if i & 2), k
assert r['kernels'][0]['blocks'][0]['thread_entries'] == 500 * 256, r['kernels'][0]['blocks'][0]
assert r['coverage']['instrumented'] == 750 and r['coverage']['native'][0]['reason'] == 'switched off', r['coverage']
P

what="a one-liner, a thousand times on and off"
run p -t blocks -e 'st.global { @stores[kernel] = count() } kernel:entry { $n = 0 } edge:back { $n = $n + 1 } kernel:exit { @rounds = max($n); @cta[cta] = count() }' --device emu -- ./tools fill.ptx toggle expr
[ -n "$sanitize" ] || grep -q 'grown by 0 KB' out || { fail "it leaks"; cat out; }
json p <<'P'
import json
r = json.load(open('p.json'))
maps = {m['name']: m['entries'] for m in r['tools']['expr']['maps']}
assert maps['@stores'] == [{'key': ['fill'], 'value': 500 * 200}] and sum(e['value'] for e in maps['@cta']) == 500 * 256, maps
assert r['coverage']['instrumented'] == 750, r['coverage']
P

what="added while it runs"
run p -t blocks --device emu -- ./tools fill.ptx add "$PWD/every.so"
json p <<'P'
import json
r = json.load(open('p.json'))
assert r['tools']['every']['kernels'][0]['counted'] == 5 and r['kernels'][0]['blocks'][0]['thread_entries'] == 2560
P

what="until its cells do not change any more"
run p -t ./zeros.so --launches steady --device emu -- ./tools fill.ptx plain
json p <<'P'
import json
r = json.load(open('p.json'))
assert r['coverage']['instrumented'] == 3 and 'steady' in r['coverage']['native'][0]['reason'], r['coverage']
P

what="switched by margay ctl"
rm -rf p
gcc -O1 -Wall -Werror -I"$ROOT/include" -o control "$ROOT/tests/inject/control.c" -L"$B/lib/margay/driver" -lcuda || exit 1
mkfifo in out.fifo
"$MARGAY" run -q -o p -t blocks -t ./every.so --device emu -- ./control fill.ptx wait < in > out.fifo 2> err &
pid=$!
exec 3> in 4< out.fifo
read -r line <&4
read -r line <&4
"$MARGAY" ctl $pid tool every off > status && grep -q 'tools blocks, every (off)' status || { fail "$what"; cat status; }
"$MARGAY" ctl $pid tool nothing off > status 2>&1 && fail "a tool that is not there"
"$MARGAY" ctl $pid tool ./zeros.so on > status 2>&1 && grep -q 'adds .*zeros.so at its next launch' status || { fail "ctl adds"; cat status; }
echo go >&3
cat <&4 > rest
wait $pid
json p <<'P'
import json
r = json.load(open('p.json'))
assert r['tools']['every']['kernels'][0]['counted'] == 5 and r['kernels'][0]['blocks'][0]['thread_entries'] == 2560, r['tools']
assert r['tools']['zeros']['loads'] == [], r['tools']
P

if [ -z "$sanitize" ]; then # whose runtime must come first
what="announced by itself"
rm -rf p
"$MARGAY" run -q -o p -t blocks --device emu -- env LD_PRELOAD="$PWD/every.so:${LD_PRELOAD:-}:$B/lib/margay/driver/libcuda.so.1" ./tools fill.ptx plain > out 2> err && grep -q '^ok$' out || { fail "$what"; cat out err; }
json p <<'P'
import json
assert json.load(open('p.json'))['tools']['every']['kernels'][0]['counted'] == 10
P
fi

what="killed: what had ended is there"
rm -rf p
"$MARGAY" run -q -o p -t blocks -t ./every.so --device emu -- ./tools fill.ptx die > out 2> err &
for i in 1 2 3 4 5 6 7 8; do # meanwhile another process asks
    sleep 0.2
    "$MARGAY" report p --tool every > live 2> /dev/null && grep -q 'fill *1,280' live && break
done
grep -q 'has not ended' live && grep -q 'fill *1,280' live || { fail "while it runs"; cat live; }
wait $!
[ $? = 137 ] || { fail "$what"; cat out err; }
json p <<'P'
import json
assert json.load(open('p.json'))['tools']['every']['kernels'][0]['counted'] == 5
P

what="a tool that leaves a kernel alone"
run p -t blocks -t ./every.so,refuse --device emu -- ./tools fill.ptx plain
grep -q 'fill: without tool every, it refuses every kernel' err || { fail "$what"; cat err; }
json p <<'P'
import json
r = json.load(open('p.json'))
assert r['tools']['every']['left_alone'] == [{'kernel': 0, 'reason': 'it refuses every kernel'}] and r['coverage']['instrumented'] == 10, r['tools']
P

"$MARGAY" run -q --strict -o strict -t blocks -t ./every.so,refuse --device emu -- ./tools fill.ptx plain > out 2> err
[ $? = 121 ] || { fail "--strict"; cat err; }

what="its table as CSV, and the raw one when the tool is gone"
run p -t ./every.so --device emu -- ./tools fill.ptx plain
"$MARGAY" report p --csv --tool every --table threads | tr -d '\r' > csv
printf 'kernel,kernel_name,threads\n0,fill,2560\n' | cmp -s - csv || { fail "$what"; cat csv; }
"$MARGAY" report p --csv --table nothing > csv 2> err && fail "a table that is not there"
mv every.so gone.so
"$MARGAY" report p --tool every > text 2> err
grep -q 'every.so cannot be opened' text && grep -q '2560 255 255' text || { fail "raw sites"; cat text err; }
mv gone.so every.so

for bad in "./fill.ptx cannot be opened" "nothing there is no tool named nothing" "./zeros.so,depth=1 has no options"; do
    "$MARGAY" run -t "${bad%% *}" -- ./tools fill.ptx plain > out 2> err
    [ $? = 120 ] && grep -q "${bad#* }" err || { fail "$bad"; cat err; }
done
"$MARGAY" tools -v ./every.so blocks > out && grep -q 'refuse=off' out && grep -q 'keeps: .* each of its launches' out && grep -q 'keeps: block counts' out || { fail "margay tools"; cat out; }
printf '#define MG_TOOL_STAMP "older"\n#include "tool/plugin.h"\nstatic const struct mg_tool t = {.name = "t"};\nMG_TOOL_PLUGIN(t)\n' > old.c
tool old.c old.so
"$MARGAY" run -t ./old.so -- ./tools fill.ptx plain > out 2> err
[ $? = 120 ] && grep -q 'built with other headers' err || { fail "another stamp"; cat err; }
"$MARGAY" run -t blocks -t blocks -- ./tools fill.ptx plain > out 2> err
[ $? = 120 ] && grep -q 'given twice' err || { fail "twice"; cat err; }
exit $failed
