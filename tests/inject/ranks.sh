#!/bin/sh
# Parallel programs: four launchers of one job write one directory, and one summary follows, in order of ranks; no MPI library
# is needed. The launchers' variables are set here as Open MPI, MPICH, PALS, Slurm and torchrun set them; where
# mpirun is installed it starts them itself. A launcher around the whole job gives the same directory.
set -u
failed=0
gcc -O1 -Wall -o client "$ROOT/tests/inject/timeline.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
say() { [ "$1" = 0 ] && echo "ok   $2" || { echo "FAIL $2"; tail -n 12 err; failed=1; }; }
for v in OMPI_COMM_WORLD_RANK PMI_RANK PALS_RANKID PMIX_RANK RANK SLURM_PROCID MV2_COMM_WORLD_RANK; do unset $v; done
cat > check.py <<'P'
import json, sys
r = json.load(open('out.json'))
n = int(sys.argv[1])
assert [p['rank'] for p in r['processes']] == list(range(n)), r['processes']
assert all(p['exit'] == 0 and p['closed'] for p in r['processes']) and r['exit'] == 0, r['processes']
c, t = r['coverage'], r['tools']['timeline']
launches = sum(5 + i for i in range(n)) # rank i makes 5 + i
assert c['launches'] == launches and c['instrumented'] == launches, c
assert sorted(p['rank'] for p in t['processes']) == list(range(n)), t['processes']
assert t['totals']['launches'] == launches, t['totals']
by = {p['pid']: p['rank'] for p in t['processes']}
assert {by[d['process']]: d['count'] for d in t['device'] if d['kind'] == 'kernel'} == {i: 5 + i for i in range(n)}, t['device']
# one clock for all processes of a host: each rank's first record lies within the job
assert max(p['start_ns'] for p in t['processes']) - min(p['start_ns'] for p in t['processes']) < 60e9, t['processes']
P
ranks() { # NAME RANK-VARIABLE SIZE-VARIABLE [MORE=...]
    name=$1 rank=$2 size=$3
    shift 3
    rm -rf profile
    : > err
    for i in 3 1 0 2; do
        env "$@" $rank=$i $size=4 "$MARGAY" run -t blocks -t timeline --device emu -o profile -- ./client "$ROOT/tests/inject/fill.ptx" plain $((5 + i)) > out.$i 2> err.$i &
    done
    wait
    cat err.* > err
    "$MARGAY" report profile --json > out.json && python3 check.py 4 2>> err && [ "$(grep -c '^coverage' err)" = 1 ] && ! grep -q 'already holds' err &&
        [ "$(ls profile | grep -c '^run-')" = 1 ] && ! ls profile | grep -q '^ranks'
    say $? "$name"
}
ranks "Open MPI" OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMIX_NAMESPACE=12345
ranks MPICH PMI_RANK PMI_SIZE
ranks Slurm SLURM_PROCID SLURM_STEP_NUM_TASKS SLURM_JOB_ID=77
ranks torchrun RANK WORLD_SIZE LOCAL_RANK=0

# not a job: RANK alone, a batch script's SLURM_PROCID
for v in RANK=0 "SLURM_PROCID=0 SLURM_NTASKS=4"; do
    rm -rf profile
    env $v "$MARGAY" run --device emu -o profile -- ./client "$ROOT/tests/inject/fill.ptx" plain 2 > out 2> err && grep -q '^coverage' err &&
        "$MARGAY" report profile --json | python3 -c "import json, sys; assert json.load(sys.stdin)['processes'][0]['rank'] is None"
    say $? "$v is no job"
done

# one launcher around all: the processes say their ranks
cat > job.sh <<'S'
for i in 2 0 1; do OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=3 ./client "$1" plain $((5 + i)) > /dev/null & done
wait
S
rm -rf profile
"$MARGAY" run -t blocks -t timeline --device emu -o profile -- sh job.sh "$ROOT/tests/inject/fill.ptx" > out 2> err && "$MARGAY" report profile --json > out.json && python3 check.py 3 2>> err
say $? "one launcher around the job"

if command -v mpirun > /dev/null; then
    for i in 0 1 2 3; do :; done
    rm -rf profile
    cat > rank.sh <<'S'
r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
exec ./client "$1" plain $((5 + r))
S
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 mpirun -n 4 \
        "$MARGAY" run -t blocks -t timeline --device emu -o profile -- sh rank.sh "$ROOT/tests/inject/fill.ptx" > out 2> err &&
        "$MARGAY" report profile --json > out.json && python3 check.py 4 2>> err && [ "$(grep -c '^coverage' err)" = 1 ]
    say $? "mpirun -n 4 margay run"
else
    echo "left out mpirun: it is not installed (openmpi-bin)"
fi
exit $failed
