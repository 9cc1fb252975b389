#!/usr/bin/env bash
# Tools communication and cache, which analyse while the program runs, give the bytes of margay study on the trace of the same run: every exchange on one software device, three other programs on both, by 1, 2 and 4 workers.
set -euo pipefail
[ -x "$EX/exchange" ] || { echo "the examples were not built: need clang"; exit 77; }
bad=0 workers=1 turn=0
same() { # DEVICE PROGRAM ARGS...
    local device=$1
    shift
    rm -rf p
    "$MARGAY" run -q -t communication -t cache -t trace --workers $workers --device "$device" -o p -- "$EX/$1" "${@:2}" > out 2>&1 || { cat out; return 1; }
    "$MARGAY" report p --json > tools.json
    "$MARGAY" study communication p --json --workers $workers > communication.json
    "$MARGAY" study cache p --json > cache.json
    python3 - <<'P' || { echo "FAIL $device $workers $*"; return 1; }
import json
tools = json.load(open('tools.json'))['tools']
text = lambda v: json.dumps(v, sort_keys=True) # the report has members in alphabetical order
for name in ('communication', 'cache'):
    want, have = json.load(open(name + '.json'))[name], tools[name]
    have.pop('options')
    assert want['launches'] and text(have) == text(want), [k for k in want if text(have.get(k)) != text(want[k])]
P
}
for what in 'exchange ring 16 4' 'exchange halo 9 5' 'exchange tree 16 4' 'exchange transpose 25 3' 'exchange all 24 60' 'exchange personal 12 3' \
    'exchange scatter 8 4' 'exchange multicast 5 5' 'exchange gather 8 4' 'exchange add 6 5' 'bfs 5000' 'stencil' 'reduce'; do
    devices='emu cpu'
    [ "${VARIANT:-release}" = release ] || devices=emu # the CPU device under sanitizers: tests/inject/scenarios.sh, tools.sh, records.sh
    [ "${what%% *}" != exchange ] || [ "$devices" = emu ] || { devices=$([ $turn = 0 ] && echo emu || echo cpu) && turn=$((1 - turn)); }
    for device in $devices; do
        # shellcheck disable=SC2086
        same $device $what || bad=1
        workers=$((workers == 4 ? 1 : 2 * workers))
    done
done
exit $bad
