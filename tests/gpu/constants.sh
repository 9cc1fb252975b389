#!/bin/sh
# Constants that change between launches, as in tests/inject/constants.sh, on real hardware.
REAL_GPU=1 exec sh "$ROOT/tests/inject/constants.sh"
