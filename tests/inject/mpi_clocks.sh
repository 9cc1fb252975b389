#!/bin/sh
# clocks=mpi: two of four ranks believe to be on another host (other_host.c: its clock began elsewhere and runs 100 ppm fast,
# its time of day is 40 ms late). Every barrier lies within its true times, as far as the uncertainty that is printed; by the
# time of day it lies 40 ms beside them, and no uncertainty is claimed.
set -u
case ${VARIANT:-} in asan | tsan | cover) echo "libmargay-mpi.so is built without: one build is enough"; exit 77 ;; esac
failed=0 ran=0
unset OMPI_COMM_WORLD_RANK PMI_RANK
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" # other_host.c stands in front of it
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1
cat > check.py <<'P'
import csv, json, sys
how = sys.argv[1]
t = json.load(open('out.json'))['tools']['timeline']
clock = {p['rank']: (p['clock'], p['clock_uncertainty_ns']) for p in t['processes']}
rank_of = {p['pid']: p['rank'] for p in t['processes']}
spans, true = {}, {}
for r in csv.DictReader(open('spans.csv')):
    if r['name'] == 'MPI_Barrier':
        spans.setdefault(rank_of[int(r['process'])], []).append((int(r['start_ns']), int(r['end_ns'])))
for line in open('out'):
    w = line.split()
    if w and w[0] == 'barrier':
        true.setdefault(int(w[1]), []).append((int(w[3]), int(w[4])))
away = {r: [] for r in range(4)}
for rank in range(4):
    assert len(true[rank]) == len(spans[rank]) == 10
    for (a, b), (begin, end) in zip(sorted(true[rank]), sorted(spans[rank])):
        assert how != 'mpi' or max(a - begin, end - b) <= clock[rank][1], (rank, a, b, begin, end, clock)
        away[rank].append(begin - a)
if how == 'mpi':
    far = 'messages', clock[2][1]
    assert clock == {0: ('same', 0), 1: ('same', 0), 2: far, 3: far} and 0 < clock[2][1] < 5e8, clock
    drift = [p['clock_drift_ppm'] for p in t['processes']]
    assert abs(max(drift, key=abs) - 100) < 1 + 2e6 * clock[2][1] / 0.9e9, drift
else:                                                   # the first file's clock is the one that counts
    assert clock[0] == clock[1] != clock[2] == clock[3] and {('same', 0), ('time of day', None)} == set(clock.values()), clock
    assert abs(min(away[0]) - min(away[2])) > 20e6, away
print(how, clock[2])
P
gcc -shared -fPIC -O1 -w -o other_host.so "$ROOT/tests/inject/other_host.c" || exit 1
try() { # LIBRARY mpicc mpirun
    command -v "$2" > /dev/null && command -v "$3" > /dev/null || { echo "left out $1: $2 and $3 are not installed"; return; }
    ran=1
    "$2" -O1 -w -o client "$ROOT/tests/inject/mpi_clocks.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 > out 2> err || { echo "FAIL $1"; cat err; failed=1; return; }
    for how in mpi day; do
        rm -rf profile
        SINCE=$(python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))')
        export SINCE
        "$3" -n 4 env LD_PRELOAD="$PWD/other_host.so" "$MARGAY" run -t timeline,clocks=$how --device emu -o profile -- ./client > out 2> err &&
            "$MARGAY" report profile --json > out.json 2>> err && "$MARGAY" export csv profile -o spans.csv 2>> err && python3 check.py $how 2>> err &&
            "$MARGAY" report profile | grep -q "clock of ranks [0-3, ]*: by $([ $how = mpi ] && echo messages || echo the time of day)" && echo "ok   $1, $how" || { echo "FAIL $1, $how"; tail -n 12 out err; failed=1; }
    done
}
try "Open MPI" mpicc.openmpi mpirun.openmpi
try MPICH mpicc.mpich mpirun.mpich
[ $ran = 1 ] || { echo "no MPI library is installed (libopenmpi-dev openmpi-bin, libmpich-dev mpich)"; exit 77; }
exit $failed
