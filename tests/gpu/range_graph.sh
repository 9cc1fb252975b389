#!/bin/sh
# tests/inject/range_graph.sh on real hardware: graphs made inside and outside of --range.
REAL_GPU=1 exec sh "$ROOT/tests/inject/range_graph.sh"
