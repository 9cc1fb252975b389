#!/bin/sh
# The shapes of tests/tool/shapes.sh on a GPU: its multiprocessors decide which grids are too small.
command -v nvidia-smi > out && nvidia-smi -L > out 2>&1 || { echo 'no GPU'; exit 77; }
DEVICES=nvidia exec "$ROOT/tests/tool/shapes.sh"
