#!/bin/sh
# Modules that are loaded, launched and unloaded leave nothing behind but their place in the profile, with a tool and without:
# the process grows by less than 10 MB from the 400th to the last of N (4,000 in the long form), and no count is lost.
set -u
failed=0 N=${N:-800} limit=10240
case ${VARIANT:-release} in asan | tsan) echo "     a sanitizer keeps freed memory back: sizes are not looked at"; limit=100000000 N=200 ;; esac
gcc -O1 -Wall -o unloads "$ROOT/tests/inject/unloads.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 || exit 1
[ -n "${REAL_GPU:-}" ] || export LD_LIBRARY_PATH="$B/test/driver"
for device in ${REAL_GPU:+nvidia} $([ -n "${REAL_GPU:-}" ] || echo emu cpu nvidia); do
    for tool in none blocks; do
        for text in same own; do
            rm -rf profile
            tier=1000000 # the CPU device: never compiled, so that LLVM is not loaded meanwhile
            [ "$device/$text" = cpu/same ] && tier=sync
            if MARGAY_CPU_TIER=$tier XDG_CACHE_HOME=$PWD/cache "$MARGAY" run -q -t $tool --device $device -o profile -- ./unloads "$N" $text > out 2> err && read -r ok kb < out && [ "$ok" = ok ] &&
                "$MARGAY" report profile --json > out.json && python3 - "$N" $tool $text <<'P' && [ "$kb" -lt "$limit" ]; then
import json, sys
n, tool, text = int(sys.argv[1]), *sys.argv[2:]
r = json.load(open('out.json'))
c = r['coverage']
assert c['launches'] == n and c['instrumented'] == (n if tool == 'blocks' else 0) and not c['failed'], c
assert len(r['kernels']) == (1 if text == 'same' else n), len(r['kernels'])
if tool == 'blocks':
    blocks = [[b['thread_entries'] for b in k['blocks']] for k in r['kernels']]
    assert blocks == ([[32 * n, 4 * n, 32 * n]] if text == 'same' else [[32, 4, 32]] * n), blocks[:3]
P
                echo "ok   $device, $tool, $text: $kb KB"
            else
                echo "FAIL $device, $tool, $text: $(head -c 200 out) (limit $limit KB)"
                head -5 err
                failed=1
            fi
        done
    done
done
exit $failed
