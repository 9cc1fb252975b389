#!/bin/sh
# The planted faults of tests/tool/advise.sh on a GPU.
command -v nvidia-smi > out && nvidia-smi -L > out 2>&1 || { echo 'no GPU'; exit 77; }
DEVICES=nvidia exec "$ROOT/tests/tool/advise.sh"
