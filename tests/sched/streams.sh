#!/bin/sh
# Kernels that run at once on a GPU are charged for the time in which the device worked for their program: that is the union of
# its launches' times, as its profile has them. Over the stand-in for a GPU, whose streams run beside one another.
# clock
set -u
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart
gcc -O1 -g -Wall -o worker "$ROOT/tests/sched/worker.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
timeout 300 "$MARGAY" sched -q --device nvidia -o dir --json out.json -- A: ./worker 3000 x64 threads -- B: ./worker 3000 x256 streams > out 2> err || { cat out err; exit 1; }
python3 "$ROOT/tests/sched/union.py" "$MARGAY" dir out.json
