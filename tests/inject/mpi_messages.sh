#!/bin/sh
# Messages of MPI in the exports: each send is joined with its receive, in all ways that MPI has (mpi_messages.c), with
# eager messages and with large ones, under each MPI library that is here.
set -u
case ${VARIANT:-} in asan | tsan | cover) echo "libmargay-mpi.so is built without: one build is enough"; exit 77 ;; esac
failed=0 ran=0
export ROOT
unset OMPI_COMM_WORLD_RANK PMI_RANK
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1
try() { # LIBRARY mpicc mpirun BYTES
    command -v "$2" > /dev/null && command -v "$3" > /dev/null || { echo "left out $1: $2 and $3 are not installed"; return; }
    ran=1
    rm -rf profile out.otf2 defs events
    "$2" -O1 -w -o client "$ROOT/tests/inject/mpi_messages.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 > out 2> err &&
        "$3" -n 4 "$MARGAY" run -q -t timeline --device emu -o profile -- ./client "$ROOT/tests/inject/fill.ptx" "$4" > out 2> err &&
        "$MARGAY" export chrome profile -o out.json 2>> err && "$MARGAY" export perfetto profile -o out.pf 2>> err &&
        rm -f out.db && "$MARGAY" export csv profile -o out.csv 2>> err && "$MARGAY" export sqlite profile -o out.db 2>> err || { echo "FAIL $1"; tail -n 12 err; failed=1; return; }
    command -v otf2-print > /dev/null && { "$MARGAY" export otf2 profile -o out.otf2 2>> err && otf2-print -G out.otf2/traces.otf2 > defs && otf2-print out.otf2/traces.otf2 > events || failed=1; }
    python3 "$ROOT/tests/inject/mpi_messages.py" out out.json out.pf $(ls defs events 2> /dev/null) 2>> err && echo "ok   $1, $4 bytes and more" || { echo "FAIL $1"; tail -n 12 err; failed=1; }
}
try "Open MPI" mpicc.openmpi mpirun.openmpi 0
try "Open MPI" mpicc.openmpi mpirun.openmpi 200000
try MPICH mpicc.mpich mpirun.mpich 0
[ $ran = 1 ] || { echo "no MPI library is installed (libopenmpi-dev openmpi-bin, libmpich-dev mpich)"; exit 77; }
exit $failed
