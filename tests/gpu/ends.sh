#!/bin/sh
# The ends of tests/inject/ends.sh, on real hardware.
REAL_GPU=1 exec sh "$ROOT/tests/inject/ends.sh"
