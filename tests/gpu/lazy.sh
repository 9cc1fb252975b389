#!/bin/sh
# tests/inject/lazy.sh on real hardware.
REAL_GPU=1 exec sh "$ROOT/tests/inject/lazy.sh"
