#!/bin/sh
# --stats: each step of a run has its time, in the summary and in the profile, on the emulator and on the
# nvidia backend over it; what is cached is not compiled again.
set -u
failed=0
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart
cat > look.py <<'P'
import json, sys
s = json.load(open('out.json'))['tools']['margay']['stats']
steps = ['parse_ns', 'analyse_ns', 'instrument_ns', 'print_ns', 'jit_ns', 'load_ns', 'execute_ns']
assert list(s) == ['kernels', 'launches', 'timed'] + steps + ['total_ns'], s
assert (s['kernels'], s['launches']) == (1, 13) and 1 <= s['timed'] <= 13, s
assert all(s[k] > 0 for k in steps if k != 'jit_ns'), s
assert (s['jit_ns'] > 0) == (sys.argv[1] == 'nvidia'), s
assert sum(s[k] for k in steps[:-1]) < s['total_ns'], s
P
for device in emu nvidia nvidia; do
    rm -rf profile
    if "$MARGAY" run --stats --device $device -o profile -- "$EX/bfs" > out 2> err && "$MARGAY" report profile --json > out.json &&
        python3 look.py $device 2>> err &&
        grep -Eq '^margay: own time.*: parse .* ms .*, analyse .*, instrument .*, print .*, JIT .*, load .*, execute .*; 1 kernel instrumented, 13 launches' err; then
        echo "ok   $device"
    else
        echo "FAIL $device"
        cat err
        failed=1
    fi
done
exit $failed
