#!/bin/sh
# tests/tool/order.sh on real hardware: accesses that follow another at a constant distance, against the lanes of a trace.
export REAL_GPU=1
exec sh "$ROOT/tests/tool/order.sh"
