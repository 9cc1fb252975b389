#!/usr/bin/env bash
# On a GPU, as tests/inject/follow.sh: programs that launch until half of their trace has left the disk, with and without rests, and killed.
set -euo pipefail
nvidia-smi -L > /dev/null 2>&1 || { echo "no GPU"; exit 77; }
DEVICES=nvidia exec "$ROOT/tests/inject/follow.sh"
