#!/bin/sh
# On a GPU: under `margay run` the examples print what they print natively, every launch is instrumented,
# and every block's thread count is the emulator's. bfs writes one array from many threads on purpose:
# which of them finds a node first is the hardware's choice, so its counts are not compared. `-t none`
# leaves every launch native.
set -u
bad=0 ran=0
cat > same.py <<'P'
import json, sys
gpu, emu, racy = json.load(open('gpu.json')), json.load(open('emu.json')), sys.argv[1] == 'bfs'
c = gpu['coverage']
assert c['launches'] == c['instrumented'] > 0 and c['failed'] == c['unknown'] == 0, c
assert all(l['complete'] for l in gpu['launches']) and any(l['time_ns'] for l in gpu['launches'])
counts = lambda r: {k['name']: (k['launches'], k['threads'], [(b['ptx_line'], b['thread_entries']) for b in k['blocks'][:1 if racy else None]]) for k in r['kernels']}
assert counts(gpu) == counts(emu), (counts(gpu), counts(emu))
assert all(k['registers']['native'] > 0 and k['registers']['instrumented'] > 0 for k in gpu['kernels'])
P
for name in saxpy reduce divergent matmul histogram stencil bfs; do
    for prog in "$EX/$name" "$EX/$name-rt"; do
        [ -x "$prog" ] || continue
        ran=$((ran + 1)) tag=$(basename "$prog")
        "$prog" >native.out 2>native.err || { echo "$prog natively: exit $?"; cat native.err; bad=1; continue; }
        for device in nvidia emu; do
            "$MARGAY" run -q --device $device -o "$tag.$device" -- "$prog" >out 2>err || { echo "$tag on $device: exit $?"; cat err; bad=1; }
            cmp native.out out || { echo "$tag on $device: another output"; bad=1; }
        done
        "$MARGAY" report "$tag.nvidia" --json >gpu.json && "$MARGAY" report "$tag.emu" --json >emu.json &&
            python3 same.py $name || { echo "$tag: counts"; bad=1; }
    done
done
"$MARGAY" run -q -t none --device nvidia -o none -- "$EX/saxpy" >out 2>err && "$MARGAY" report none --json >gpu.json &&
    python3 -c 'import json; c = json.load(open("gpu.json"))["coverage"]; assert c["instrumented"] == 0 and [n["reason"] for n in c["native"]] == ["no tool"], c' ||
    { echo "-t none"; bad=1; }
[ $ran -gt 0 ] || { echo "no example was built"; exit 1; }
exit $bad
