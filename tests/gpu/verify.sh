#!/bin/sh
# --verify as in tests/inject/verify.sh, on real hardware.
REAL_GPU=1 exec sh "$ROOT/tests/inject/verify.sh"
