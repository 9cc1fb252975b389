#!/bin/sh
# tests/inject/inside.sh on real hardware: what kernels begin and end lies within their spans, by times=events and times=twin.
export REAL_GPU=1
exec sh "$ROOT/tests/inject/inside.sh"
