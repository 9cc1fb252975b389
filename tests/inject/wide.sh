#!/bin/sh
# A twin that has no more registers than the native code is made once more with room for some where the launch's CTAs all run at once;
# when a launch comes of which fewer would then run at once than natively, the first one serves, also where the kernel has launch
# bounds. An application that says itself how many registers there may be is left alone.
set -u
failed=0
export LD_LIBRARY_PATH=$B/test/driver EMU_GPU_COUNT=1 EMU_GPU_WIDE=4 EMU_GPU_REGISTERS=32
gcc -O1 -o wide "$ROOT/tests/inject/wide.c" -ldl || exit 1
kernel() { # BOUNDS
    printf '.version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p)\n%s\n{\n.reg .b64 %%p;\nld.param.u64 %%p, [p];\nred.global.add.u64 [%%p], 1;\nret;\n}\n' "$1"
}
kernel '' > plain.ptx
kernel '.maxntid 128, 1, 1' > bounds.ptx
kernel '.reqntid 64' > threads.ptx
kernel '.maxntid 128 .minnctapersm 2' > own.ptx
one() { # NAME MODULES FILE CTAS...
    name=$1 modules=$2
    shift 2
    rm -rf profile "cache.$name"
    XDG_CACHE_HOME=$PWD/cache.$name "$MARGAY" run -q ${TOOL:+-t $TOOL} --device nvidia -o profile -- ./wide "$@" > out 2> err && grep -qx ok out && grep -q "^modules: $modules " err &&
        "$MARGAY" report profile --json > out.json && shift && python3 - "$@" <<'P' && echo "ok   $name" || { echo "FAIL $name"; cat out err; failed=1; }
import json, sys
r, n = json.load(open('out.json')), [int(x) for x in sys.argv[1:]]
assert r['coverage']['instrumented'] == len(n), r['coverage']
assert r['kernels'][0]['threads'] in (None, 64 * sum(n)), r['kernels'][0]['threads']
P
}
one small 3 plain.ptx 10 528 7
one large 3 plain.ptx 10 9000 7 9000
one wave 3 plain.ptx 10 600 9000
one bounds 3 bounds.ptx 10 9000
one threads 3 threads.ptx 10 9000
one own 2 own.ptx 10 528
one first 2 plain.ptx 9000 10 9000
export EMU_GPU_REGISTERS=24 # fewer are no help
one few 2 plain.ptx 10 9000
# With 40 registers 25 CTAs of the 32 fit. A twin whose text says so itself keeps to fewer when it is told in its text, the others by an option.
export EMU_GPU_TWIN=40
unset EMU_GPU_WIDE
one option 3 plain.ptx 4000
TOOL=trace one text 3 plain.ptx 4000
# A text that says how many registers there may be says as many as its first launch leaves; once more with few when one comes that lacks room.
export EMU_GPU_TWIN=96
TOOL=memory one room 2 plain.ptx 10
TOOL=memory one tight 3 plain.ptx 10 9000 7 9000
TOOL=memory one tight_first 2 plain.ptx 9000 10
exit $failed
