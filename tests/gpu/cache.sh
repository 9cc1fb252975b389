#!/bin/sh
# The cache model against Nsight Compute: sectors and hits of 20 kernels (bench/trace/ncu). Without ncu, or where it may not
# count, left out.
exec "$ROOT/bench/trace/ncu" "$B"
