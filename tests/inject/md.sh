#!/bin/sh
# The mini-application of molecular dynamics (examples/md) on four ranks: energy and momentum are conserved, the first energy is
# that of a direct sum over all pairs, and the one directory has every rank's kernels, copies and messages.
set -u
[ -e "$EX/md.ptx.o" ] || { echo 'the example md is not built here (clang)'; exit 77; }
failed=0 ran=0 steps=20
unset OMPI_COMM_WORLD_RANK PMI_RANK
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1
cat > check.py <<'P'
import collections, json, math, re, sys
steps, N, ranks = int(sys.argv[1]), 216, 4
# the energy at the begin: all pairs of the lattice, and the velocities
box, cut, state, v = 6 * 1.2, 2.5, 12345, []
for _ in range(3 * N):
    state = (state * 1664525 + 1013904223) % 2**32
    v.append((state >> 8) / 2**24 - 0.5)
mean = [math.fsum(v[k::3]) / N for k in range(3)]
energy = math.fsum(0.5 * (x - mean[i % 3])**2 for i, x in enumerate(v))
at = [(i % 6 * 1.2, i // 6 % 6 * 1.2, i // 36 * 1.2) for i in range(N)]
lj = lambda r: 4 * (r**-12 - r**-6)
slope = 24 * (2 * cut**-12 - cut**-6) / cut
for i in range(N):
    for j in range(i):
        r = math.sqrt(sum(min(abs(a - b), box - abs(a - b))**2 for a, b in zip(at[i], at[j])))
        if r < cut:
            energy += lj(r) - lj(cut) + (r - cut) * slope
printed = float(re.match(r'energy (\S+),', open('out').read())[1])
assert abs(printed - energy) < 1e-5, (printed, energy)
r = json.load(open('out.json'))
t = r['tools']['timeline']
assert [p['rank'] for p in r['processes']] == list(range(ranks)), r['processes']
slice_bytes = 3 * 8 * N // ranks
want = {(k, (k + 1) % ranks): ((ranks - 1) * steps, (ranks - 1) * steps * slice_bytes) for k in range(ranks)}
assert {(m['from'], m['to']): (m['count'], m['bytes']) for m in t['messages']} == want, t['messages']
work = collections.Counter()
for d in t['device']:
    work[d['process'], d['name']] += d['count']
names = {'dev_nonbonded', 'dev_sum_forces', 'HtoD', 'DtoH'}
assert {n for _, n in work} == names and len(work) == 4 * ranks and set(work.values()) == {steps + 1}, work
ranks_of = {p['pid']: p['rank'] for p in t['processes']}
for list_ in t['device'], t['utilisation']:
    assert all(ranks_of[d['process']] == d['rank'] for d in list_) and [d['rank'] for d in list_] == sorted(d['rank'] for d in list_), list_
tau = t['tau']
assert len(tau) == 2 * ranks and all(x['calls'] == steps + 1 for x in tau), tau
P
try() { # LIBRARY mpicc mpirun
    command -v "$2" > /dev/null && command -v "$3" > /dev/null || { echo "left out $1: $2 and $3 are not installed"; return; }
    ran=1
    rm -rf profile
    "$2" -std=c17 -O2 -w "$ROOT/examples/md/main.c" "$EX/md.ptx.o" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lm -o md > out 2> err &&
        "$3" -n 4 "$MARGAY" run -t timeline,tau=on --device emu -o profile -- ./md $steps > out 2> err && grep -qx PASSED out &&
        "$MARGAY" report profile --json > out.json 2>> err && python3 check.py $steps 2>> err && echo "ok   $1" || { echo "FAIL $1"; tail -n 12 out err; failed=1; }
}
try "Open MPI" mpicc.openmpi mpirun.openmpi
try MPICH mpicc.mpich mpirun.mpich
[ $ran = 1 ] || { echo "no MPI library is installed (libopenmpi-dev openmpi-bin, libmpich-dev mpich)"; exit 77; }
exit $failed
