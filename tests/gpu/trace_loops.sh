#!/bin/sh
# Tool trace on a GPU: loops and blocks as one record. Random kernels have every access of every lane in its order, and
# indices that wrap are as closed forms say (tests/tool/trace_loops.sh).
set -u
: "${MARGAY:=margay}" "${ROOT:=$(cd "$(dirname "$0")/../.." && pwd)}" "${B:=$ROOT/build/release}" "${EX:=$B/examples}"
[ -e /dev/nvidiactl ] || { echo "no GPU"; exit 77; }
export MARGAY ROOT B EX GPU=1
exec bash "$ROOT/tests/tool/trace_loops.sh"
