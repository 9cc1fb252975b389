#!/bin/sh
# tests/inject/span.sh on real hardware.
export REAL_GPU=1
exec sh "$ROOT/tests/inject/span.sh"
