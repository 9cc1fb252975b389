#!/usr/bin/env bash
# margay study subset: planted phases, witnesses for k-means, BIC and equation (1), judges, hand-over, a real program.
set -euo pipefail
make -s -C "$ROOT" VARIANT="$VARIANT" "build/$VARIANT/bin/mkprofile" >/dev/null
"$B/bin/mkprofile" base
python3 "$ROOT/tests/cli/subset.py" "$MARGAY"

# A program with its time line: the intervals between its synchronising calls.
"$MARGAY" run -q --device cpu -t blocks -t timeline -o live -- "$EX/bfs-rt" > /dev/null
"$MARGAY" run -q --device cpu -t timeline -o times -- "$EX/bfs-rt" > /dev/null
cp -r times again # the same times judge
"$MARGAY" study subset live --times times again --interval sync --json > sync.json
"$MARGAY" study subset live --launches launches.csv > text
"$MARGAY" export features live > features.csv
"$MARGAY" report live --csv --table launches > report.csv
python3 - <<'P'
import csv, json
d = json.load(open('sync.json'))
launches = list(csv.DictReader(open('report.csv', newline='')))
assert d['interval'] == 'sync' and 1 < d['intervals'] <= d['launches'] == len(launches), d
assert abs(sum(s['weight'] for s in d['selected']) - 1) < 1e-9
assert d['times'] == 'native' and d['judges'][0]['error_pct'] == d['error']['in_sample_pct'] == d['error']['held_out_pct']
rows = list(csv.DictReader(open('features.csv', newline='')))
assert [int(r['thread_instructions']) for r in rows] == [int(l['thread_instructions']) for l in launches]
assert [int(r['time_ns']) for r in rows] == [int(l['time_ns']) for l in launches]
classes = list(rows[0])[list(rows[0]).index('integer'):-1]
assert all(sum(float(r[c]) for c in classes) == float(r['thread_instructions']) for r in rows)
tracers = list(csv.DictReader(open('launches.csv', newline='')))
assert tracers and all(int(t['number']) == int(t['launch']) + 1 and t['cuLaunchKernel'] == t['number'] for t in tracers), tracers
P
rc=0; "$MARGAY" study subset times 2> err || rc=$?
[ $rc = 3 ] && grep -q 'no launch has counts' err

# Two threads in one stream: paired where their launches differ, else refused; without a time line nothing tells them apart. A replay has
# one thread: its n-th launch of a kernel is paired with the program's.
cat > two.ptx <<'P'
.version 7.0
.target sm_70
.address_size 64
.visible .entry one(.param .u64 p) { ret; }
.visible .entry two(.param .u64 p) { ret; }
P
cat > threads.c <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuCtxSynchronize(void);
int cuModuleLoad(void **, const char *), cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
static void *context, *function[2];
static pthread_barrier_t turn;
static int first, same;
static void *work(void *p)
{
    int me = p != NULL;
    unsigned long long arg = 0;
    cuCtxSetCurrent(context);
    for (int round = 0; round < 6; round++) {
        pthread_barrier_wait(&turn);
        if ((round + first) % 2 != me) continue;
        for (int k = 0; k < 3; k++)
            if (cuLaunchKernel(function[same ? 0 : me], 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&arg}, NULL)) exit(3);
    }
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t t[2];
    void *m;
    int d;
    first = argc > 1 && !strcmp(argv[1], "1"), same = argc > 2;
    if (cuInit(0) || cuDeviceGet(&d, 0) || cuDevicePrimaryCtxRetain(&context, d) || cuCtxSetCurrent(context) || cuModuleLoad(&m, "two.ptx") ||
        cuModuleGetFunction(&function[0], m, "one") || cuModuleGetFunction(&function[1], m, "two"))
        return 2;
    pthread_barrier_init(&turn, NULL, 2);
    for (long k = 0; k < 2; k++) pthread_create(&t[k], NULL, work, (void *)k);
    for (int k = 0; k < 2; k++) pthread_join(t[k], NULL);
    return cuCtxSynchronize();
}
C
gcc -O1 -pthread -o threads threads.c -L"$B/lib/margay/driver" -lcuda
record() { "$MARGAY" run -q --device emu "${@:3}" -o "$1" -- ./threads $2 > /dev/null; }
record both "0" -t blocks -t timeline
record both2 "1" -t timeline
record bare "0" -t blocks
record alike "0 same" -t blocks -t timeline
"$MARGAY" study subset both --times both2 --json > /dev/null
rc=0; "$MARGAY" study subset both --times bare 2> err || rc=$?
[ $rc = 3 ] && grep -q 'bare: several threads launch in one stream, and it does not tell them apart' err
rc=0; "$MARGAY" study subset alike --times alike 2> err || rc=$?
[ $rc = 3 ] && grep -q 'two threads make the same launches in stream 0' err
"$MARGAY" capture -q --device emu -o cap -- ./threads 0 > /dev/null
"$MARGAY" replay -q --device emu -t timeline -o replayed cap 2> err || [ $? = 5 ] # its kernels store nothing
"$MARGAY" study subset both --times replayed --json > of_replay
"$MARGAY" study subset both --times both2 --json > of_run
python3 -c "
import json
a, b = (json.load(open(f)) for f in ('of_replay', 'of_run'))
assert [s['launch'] for s in a['selected']] == [s['launch'] for s in b['selected']] and a['launches'] == 18 and a['times'] == 'native'"
"$MARGAY" capture -q --device emu -o cap2 -- ./threads 1 > /dev/null
"$MARGAY" replay -q --device emu -t timeline -o replayed2 cap2 2> err || [ $? = 5 ]
"$MARGAY" study subset both --times replayed2 --json > of_other # the threads took turns the other way round
python3 -c "
import json
a, b = (json.load(open(f))['selected'] for f in ('of_other', 'of_run'))
assert [s['launch'] for s in a] == [s['launch'] for s in b]"
# Threads that launch one kernel with other counts: refused, with a replay, too; in graphs a warning. Replays of one capture are paired.
cat > loop.cu <<'P'
#include <cstdio>
#include <cstdlib>
#include <thread>
__global__ void spin(int *p, int n) { for (int i = 0; i < n; i++) p[threadIdx.x] = p[threadIdx.x] * 3 + 1; }
static int *p;
static void work(int n, cudaStream_t s) { for (int k = 0; k < 5; k++) spin<<<1, 32, 0, s>>>(p + 32 * (n > 9), n); }
int main(int argc, char **argv)
{
    cudaStream_t s[2];
    cudaEvent_t e[2];
    cudaGraph_t g;
    cudaGraphExec_t x;
    cudaMalloc(&p, 4096);
    for (int k = 0; k < 2; k++) cudaStreamCreate(&s[k]), cudaEventCreate(&e[k]);
    if (argv[1][0] == 'g') {
        cudaStreamBeginCapture(s[0], cudaStreamCaptureModeThreadLocal);
        cudaEventRecord(e[0], s[0]), cudaStreamWaitEvent(s[1], e[0], 0);
        work(9, s[0]), work(90, s[1]);
        cudaEventRecord(e[1], s[1]), cudaStreamWaitEvent(s[0], e[1], 0);
        cudaStreamEndCapture(s[0], &g), cudaGraphInstantiate(&x, g, 0), cudaGraphLaunch(x, s[0]);
    } else {
        std::thread a(work, 9, argv[1][0] == 'o' ? s[0] : s[1]);
        std::thread b(work, 90, s[0]);
        a.join(), b.join();
    }
    return cudaDeviceSynchronize() != cudaSuccess;
}
P
if [ -n "$NVCC" ] && "$NVCC" -O1 -arch=sm_80 -cudart shared -o loop loop.cu; then
    for way in one two graph; do
        "$MARGAY" run -q --device emu -t blocks -t timeline -o $way.c -- ./loop $way
        "$MARGAY" capture -q --device emu -o $way.cap -- ./loop $way
        "$MARGAY" replay -q --device emu -t timeline -o $way.t $way.cap
        "$MARGAY" replay -q --device emu -t blocks -t timeline -o $way.rc $way.cap
        "$MARGAY" study subset $way.rc --times $way.t > out
        rc=0; "$MARGAY" study subset $way.c --times $way.t > out 2> err || rc=$?
        case $way in
        one) [ $rc = 3 ] && grep -q 'several threads launch spin.* in stream [0-9]*, with other counts, and one of .* is a replay' err ;;
        two) [ $rc = 3 ] && grep -q 'two threads make the same launches, with other counts' err ;;
        graph) [ $rc = 0 ] && grep -q 'warning: graph.t: launches of spin.* in graphs have one geometry and other counts' err ;;
        esac
    done
fi
