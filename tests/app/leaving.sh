#!/bin/sh
# A program that leaves main while detached threads still launch ends with main's own status, 48 times (make torture: 400): images stay loaded
# at exit. With and without a tool, under a scheduler, and over our driver alone.
# long
set -u
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
failed=0
"$NVCC" -cudart shared -arch=sm_80 -O1 -o leaving "$ROOT/tests/app/leaving.cu" || exit 1
times=12 few=2
[ -z "${TORTURE:-}" ] || times=100 few=10
[ "${VARIANT:-release}" = release ] || times=4 few=1
try() { # NAME TIMES COMMAND...
    name=$1 n=$2 i=0; shift 2
    while [ $i -lt "$n" ]; do
        timeout 300 "$@" ./leaving 3 $((i * 30)) > out 2> err
        rc=$?
        [ $rc = 7 ] || { echo "FAIL $name, time $i: exit $rc"; tail -n 5 out err; failed=1; return; }
        i=$((i + 1))
        rm -rf profile
    done
    echo "ok   $name"
}
gcc -O1 -g -Wall -o worker "$ROOT/tests/sched/worker.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
try_driver() { # DEVICE: a program without the runtime
    for i in $(seq $few); do
        rm -rf profile
        timeout 300 "$MARGAY" run -q --device "$1" -o profile -- ./worker 500 "0.$i" leave > out 2> err
        rc=$?
        [ $rc = 7 ] || { echo "FAIL $1, driver, time $i: exit $rc"; tail -n 5 out err; failed=1; }
    done
}
cat > last.cu <<'P'
#include <cstdio>
#include <pthread.h>
#include <thread>
__global__ void inc(int *p) { p[threadIdx.x]++; }
static void work()
{
    int *p, back[32];
    cudaMalloc(&p, sizeof back), cudaMemset(p, 0, sizeof back);
    for (int k = 0; k < 20; k++) inc<<<1, 32>>>(p);
    cudaMemcpy(back, p, sizeof back, cudaMemcpyDeviceToHost);
    printf("%d\n", back[31]);
}
int main()
{
    cudaFree(0);
    std::thread(work).detach();
    pthread_exit(nullptr);
}
P
"$NVCC" -cudart shared -arch=sm_80 -O1 -o last last.cu || exit 1
for device in cpu emu; do # the main thread has gone: the program's last thread ends the process, whatever threads of Margay's there are
    [ $device = emu ] || [ -e "$B/lib/margay/libmargay-cpu.so" ] || continue
    timeout 60 "$MARGAY" run -q --device $device -t blocks -o profile -- ./last > out 2> err && [ "$(cat out)" = 20 ] &&
        "$MARGAY" report profile --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["coverage"]["instrumented"] == 20' && echo "ok   $device, pthread_exit" || { echo "FAIL $device, pthread_exit"; tail -n 5 out err; failed=1; }
    rm -rf profile
done
for device in cpu emu; do
    [ $device = emu ] || [ -e "$B/lib/margay/libmargay-cpu.so" ] || continue
    try_driver $device
    for tool in none blocks; do
        try "$device, $tool" $times "$MARGAY" run -q --device $device -t $tool -o profile --
    done
    try "$device, timeline" $few "$MARGAY" run -q --device $device -t timeline -o profile --
done
# a status that is not 0 is a finding of margay sched: 1
for i in $(seq $few); do
    rm -rf profile
    timeout 300 "$MARGAY" sched -q --device emu -o profile --json out.json -- A: ./leaving 3 $((i * 50)) -- B: ./leaving 2 0 > out 2> err
    python3 -c 'import json; assert [p["exit"] for p in json.load(open("out.json"))["programs"]] == [7, 7]' || { echo "FAIL sched, time $i"; cat out.json err; failed=1; }
done
exit $failed
