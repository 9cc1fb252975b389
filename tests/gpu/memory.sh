#!/bin/sh
# tests/inject/memory.sh on NVIDIA's driver: output and exit status stay when an allocation of Margay's fails.
export REAL_GPU=1
exec "$ROOT/tests/inject/memory.sh"
