#!/bin/sh
# tests/inject/timeline.sh, nvtx.sh and scenarios.sh on real hardware.
export REAL_GPU=1
failed=0
for t in timeline nvtx scenarios; do
    (mkdir -p $t && cd $t && sh "$ROOT/tests/inject/$t.sh") || failed=1
done
exit $failed
