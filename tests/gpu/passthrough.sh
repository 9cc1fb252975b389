#!/bin/sh
# On a GPU: under `margay run` the examples print what they print natively, every launch is listed
# with the reason why it was not instrumented, and the same binaries run instrumented on the emulator.
set -u
bad=0 ran=0
for name in saxpy reduce divergent matmul histogram stencil bfs; do
    for prog in "$EX/$name" "$EX/$name-rt"; do
        [ -x "$prog" ] || continue
        ran=$((ran + 1))
        "$prog" >native.out 2>native.err || { echo "$prog natively: exit $?"; cat native.err; bad=1; continue; }
        for device in nvidia emu; do
            tag=$(basename "$prog").$device
            "$MARGAY" run -q --device $device -o "$tag" -- "$prog" >out 2>err || { echo "$tag: exit $?"; cat err; bad=1; }
            cmp native.out out || { echo "$tag: another output"; bad=1; }
            "$MARGAY" report "$tag" --json >json && python3 - $device <<'P' || { echo "$tag: coverage"; bad=1; }
import json, sys
c = json.load(open('json'))['coverage']
assert c['launches'] > 0 and c['failed'] == c['unknown'] == 0, c
if sys.argv[1] == 'emu':
    assert c['instrumented'] == c['launches'], c
else:
    assert c['instrumented'] + sum(n['launches'] for n in c['native']) == c['launches'] and all(n['reason'] for n in c['native']), c
P
        done
    done
done
[ $ran -gt 0 ] || { echo "no example was built"; exit 1; }
exit $bad
