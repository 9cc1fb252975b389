#!/usr/bin/env bash
# Communication on a GPU: the example exchange, whose every data set and metric is known by formula, and the same transfers
# as on the CPU device for programs without races; the cache model's sectors are those of tool memory.
set -euo pipefail
[ -x "$EX/exchange-rt" ] || { echo "the example exchange was not built: needs nvcc"; exit 77; }
nvidia-smi -L > /dev/null 2>&1 || { echo "no GPU"; exit 77; }
bad=0
for pattern in 'ring 1000 4' 'halo 300 5' 'tree 64 6' 'transpose 144 3' 'all 40 3' 'personal 50 3' 'scatter 64 4' 'multicast 64 5' 'gather 64 4' 'add 50 5'; do
    read -r name args <<<"$pattern"
    rm -rf p
    "$MARGAY" run -q -t trace --device nvidia -o p -- "$EX/exchange-rt" $pattern > out || { cat out; bad=1; continue; }
    "$MARGAY" study communication p --json > p.json
    python3 "$ROOT/tests/app/exchanges.py" p.json $pattern || bad=1
done
# The tools communication and cache: the study's numbers on the trace of the same run, and no trace stays.
rm -rf p
"$MARGAY" run -q -t communication -t cache -t trace --device nvidia -o p -- "$EX/exchange-rt" tree 64 6 > out
"$MARGAY" study communication p --json > communication.json
"$MARGAY" study cache p --json > cache.json
"$MARGAY" report p --json > p.json
python3 - <<'END' || bad=1
import json
tools = json.load(open('p.json'))['tools']
for name in 'communication', 'cache':
    tools[name].pop('options')
    assert tools[name] == json.load(open(name + '.json'))[name], name
END
rm -rf p
"$MARGAY" run -q -t communication --device nvidia -o p -- "$EX/exchange-rt" ring 1000 4 > out
[ ! -e p/trace ] || { echo "the tool's trace stays"; bad=1; }
other=cpu # where it was built
"$MARGAY" run -q --device cpu -o p -- true 2> /dev/null || other=emu
for program in 'stencil 500 4' 'histogram 100000' 'reduce 100000' 'matmul 128'; do
    read -r name args <<<"$program"
    for device in nvidia $other; do
        rm -rf $device
        "$MARGAY" run -q -t trace --device $device -o $device -- "$EX/$name-rt" $args > out
        "$MARGAY" study communication $device --json --entity thread > $device.json
    done
    "$MARGAY" study cache nvidia --json > cache.json
    for device in nvidia $other; do
        rm -rf m
        "$MARGAY" run -q -t memory --device $device -o m -- "$EX/$name-rt" $args > out
        "$MARGAY" report m --json > memory.$device.json
    done
    python3 "$ROOT/tests/cli/cache.py" cache.json memory.nvidia.json memory.$other.json || bad=1
    python3 - "$program" $other <<'END' || bad=1
import json, sys
a, b = (json.load(open(f'{d}.json'))['communication'] for d in ('nvidia', sys.argv[2]))
for x in a, b:
    for bytes in [x['bytes']] + [s['bytes'] for s in x['streams']]: bytes.pop('SDV'), bytes.pop('SCV')
    x.pop('streams'), x['trace'].clear()
    x['metrics']['stride'] = [s for s in x['metrics']['stride'] if s['bytes'] < 1 << 16] # else from one allocation to another
differ = [k for k in a if a[k] != b[k]]
print(sys.argv[1], 'threads:', f'as on {sys.argv[2]}' if not differ else f'{differ} differ')
sys.exit(bool(differ))
END
done
exit $bad
