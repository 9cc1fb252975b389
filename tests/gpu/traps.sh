#!/bin/sh
# The traps of tests/inject/traps.sh, on real hardware.
REAL_GPU=1 exec sh "$ROOT/tests/inject/traps.sh"
