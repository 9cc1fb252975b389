#!/bin/sh
# Calls of MPI on the time line: four ranks under each MPI library that is here (Open MPI, MPICH: handles are addresses or
# ints). Counts, bytes, peers and the matrix of messages are known in closed form; one directory has all ranks.
set -u
failed=0 ran=0
unset OMPI_COMM_WORLD_RANK PMI_RANK
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1
cat > check.py <<'P'
import collections, json
t = json.load(open('out.json'))['tools']['timeline']
N, NONE = 4, 2**64 - 1
count = {c['name']: c['count'] for c in t['calls'] if c['layer'] == 'mpi'}
assert count == {'MPI_Init': N, 'MPI_Irecv': 3 * N, 'MPI_Isend': 3 * N, 'MPI_Waitall': 3 * N, 'MPI_Send': 2 + N, 'MPI_Recv': 2, 'MPI_Allreduce': N,
                 'MPI_Bcast': N, 'MPI_Allgather': N, 'MPI_Gather': N, 'MPI_Comm_split': N, 'MPI_Comm_free': N, 'MPI_Barrier': N, 'MPI_Finalize': N}, count
assert not any(c['failed'] for c in t['calls'] if c['layer'] == 'mpi'), t['calls']
want = {(r, (r + 1) % N): [3, 3 * 80 * (r + 1)] for r in range(N)}
for pair in ((2, 0), (3, 1)): # in a communicator whose ranks are not the world's
    want[pair] = [1, 20]
for r in range(N): # to no process
    want[r, None] = [1, 16]
assert {(m['from'], m['to']): [m['count'], m['bytes']] for m in t['messages']} == want, t['messages']
assert sorted(p['rank'] for p in t['processes']) == list(range(N)), t['processes']
seen = collections.Counter()
for r in map(json.loads, open('records')):
    f = r['fields']
    if r['kind'] != 'call' or f['layer'] != 'mpi':
        continue
    peer, tag, size, _ = (int(str(a), 0) for a in f['arguments'])
    seen[f['name'], tag, size if f['name'] != 'MPI_Isend' else None] += 1
    assert f['end'] >= f['begin'] > 0
    if f['name'] == 'MPI_Bcast':
        assert peer == 1, r
sizes = {'MPI_Allreduce': {8: N}, 'MPI_Bcast': {12: N}, 'MPI_Allgather': {8: N}, 'MPI_Gather': {8: N - 1, NONE: 1}, 'MPI_Barrier': {NONE: N}, 'MPI_Recv': {20: 2}}
for name, of in sizes.items():
    assert {k[2]: n for k, n in seen.items() if k[0] == name} == of, (name, seen)
assert seen['MPI_Isend', 7, None] == 3 * N and seen['MPI_Recv', 9, 20] == 2, seen
P
try() { # LIBRARY mpicc mpirun
    command -v "$2" > /dev/null && command -v "$3" > /dev/null || { echo "left out $1: $2 and $3 are not installed"; return; }
    ran=1
    rm -rf profile
    "$2" -O1 -w -o client "$ROOT/tests/inject/mpi.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 > out 2> err &&
        "$3" -n 4 "$MARGAY" run -t timeline --device emu -o profile -- ./client "$ROOT/tests/inject/fill.ptx" > out 2> err &&
        grep -qx ok out && "$MARGAY" report profile --json > out.json 2>> err && "$MARGAY" report profile 2>> err | grep -q 'messages of MPI by rank' &&
        "$MARGAY" trace print --json --by-time profile > records 2>> err && python3 check.py 2>> err &&
        "$MARGAY" export csv profile 2>> err | grep -q ',mpi,MPI_Barrier,' && rm -rf profile &&
        printf '%s\n' 'exec ./client "$@"' > job.sh &&
        "$3" -n 4 "$MARGAY" run -t timeline --device emu -o profile -- sh job.sh "$ROOT/tests/inject/fill.ptx" > out 2> err &&
        [ "$(grep -c 'calls of MPI are not on the time line' err)" = 1 ] && grep -qx ok out && echo "ok   $1" || { echo "FAIL $1"; tail -n 12 out err; failed=1; }
}
try "Open MPI" mpicc.openmpi mpirun.openmpi
try MPICH mpicc.mpich mpirun.mpich
[ $ran = 1 ] || { echo "no MPI library is installed (libopenmpi-dev openmpi-bin, libmpich-dev mpich)"; exit 77; }
exit $failed
