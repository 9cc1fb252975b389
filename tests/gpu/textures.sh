#!/bin/sh
# tests/inject/textures.sh on real hardware.
REAL_GPU=1 exec sh "$ROOT/tests/inject/textures.sh"
