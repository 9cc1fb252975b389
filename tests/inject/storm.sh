#!/bin/sh
# Launches from many threads, each on its own stream, of a kernel that nobody has launched before: every one of them is
# instrumented, and counts and results are those of the closed form. jitter.c lets threads stand still in front of locks.
# Under the thread sanitizer its reports are failures as well. STORMS=N SEED=S: more of them, or the same again.
set -u
failed=0 seed=${SEED:-$(date +%s)} storms=${STORMS:-2}
sanitize=
[ "${VARIANT:-release}" = tsan ] && sanitize=-fsanitize=thread
gcc -O1 -g -Wall $sanitize -o storm "$ROOT/tests/inject/storm.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread &&
    gcc -O1 -Wall -shared -fPIC -o jitter.so "$ROOT/tests/inject/jitter.c" -ldl || exit 1
[ -n "${REAL_GPU:-}" ] || export LD_LIBRARY_PATH="$B/test/driver"
export TSAN_OPTIONS="${TSAN_OPTIONS:-} exitcode=0 log_path=$PWD/race"
echo "     SEED=$seed"

storm() { # NAME DEVICE THREADS LAUNCHES ROUNDS PARAMETERS JITTER
    rm -rf profile
    MARGAY_CPU_TIER=sync LD_PRELOAD=${7:+$PWD/jitter.so} JITTER=${7:-} timeout 250 "$MARGAY" run -q --device "$2" -o profile -- ./storm "$3" "$4" "$5" "$6" > out 2> err &&
        grep -qx ok out && "$MARGAY" report profile --json > out.json && python3 - "$2" "$3" "$4" "$5" "$6" <<'P'
import json, sys
device, (threads, launches, rounds, params) = sys.argv[1], map(int, sys.argv[2:])
r, n = json.load(open('out.json')), threads * launches * rounds
c = r['coverage']
later = sum(k['launches'] for k in c['native'] if k['reason'] == 'loading its instrumented code would wait for work in flight')
assert (c['launches'], c['instrumented'], c['failed']) == (n, n - later, 0) and (device == 'nvidia' or not later), c
assert len(r['kernels']) == 1 and [b['thread_entries'] for b in r['kernels'][0]['blocks']] == [32 * (n - later), 4 * (n - later), 32 * (n - later)], r['kernels']
P
}
try() {
    if storm "$@"; then echo "ok   $1"; else echo "FAIL $1 (SEED=$seed)"; tail -n 5 out err; failed=1; fi
}
for device in emu cpu nvidia; do
    [ $device != cpu ] || [ -n "$sanitize" ] || [ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "left out cpu: the CPU device is not built here (llvm-19-dev)"; continue; }
    [ $device = cpu ] && [ -n "$sanitize" ] && continue
    try "$device" $device 64 10 1 0 ""
    [ -n "$sanitize" ] && { try "$device, 8 threads" $device 8 20 3 30 ""; continue; }
    [ "${VARIANT:-release}" = asan ] && { echo "left out $device, jitter: the address sanitizer wants to be loaded first"; continue; }
    for k in $(seq "$storms"); do
        try "$device, jitter $k" $device 64 2 3 30 "$((seed + k)),100,3000"
    done
done
for f in race.*; do
    [ -e "$f" ] || continue
    echo "FAIL the thread sanitizer:"
    head -60 "$f"
    failed=1
done
exit $failed
