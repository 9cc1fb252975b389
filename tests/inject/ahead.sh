#!/bin/sh
# clock
# Kernels that are likely to be launched soon are assembled before they are, side by side, and counted as ever: launched by one
# thread and by four, beside forks, contexts that end and processes that leave meanwhile; bounded, and not at all in a program
# that has run before (a driver over the emulator, whose assembler takes its time).
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
[ "$(nproc)" -ge 2 ] || { echo "needs two processors"; exit 77; }
failed=0
cat > ahead.cu <<'C'
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
template <int N> __global__ void __launch_bounds__(64) k(int *a, const int *any)
{
#pragma unroll
    for (int i = 0; i < 120 + N; i++) a[(any[i] * (i + N) + threadIdx.x) % 512] += any[i + 1] + i;
}
__global__ void tiny(int *a)
{
    a[threadIdx.x] = 1;
}
static int *a, *b;
static void launch(int n)
{
    switch (n) {
    case 0: k<0><<<1, 64>>>(a, b); break;
    case 1: k<1><<<1, 64>>>(a, b); break;
    case 2: k<2><<<1, 64>>>(a, b); break;
    case 3: k<3><<<1, 64>>>(a, b); break;
    case 4: k<4><<<1, 64>>>(a, b); break;
    case 5: k<5><<<1, 64>>>(a, b); break;
    }
}
static void *some(void *p)
{
    for (int i = 0; i < 6; i++) {
        launch((int)((long)p + i) % 6);
        if (i != 2) continue;
        pid_t child = fork(); // which makes no calls
        int status = -1;
        if (!child) exit(5);
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 5) abort();
    }
    return NULL;
}
int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "all";
    if (cudaMalloc(&a, 4096) || cudaMalloc(&b, 4096) || cudaMemset(a, 0, 4096) || cudaMemset(b, 0, 4096)) return 2;
    if (!strcmp(how, "tiny"))
        tiny<<<1, 64>>>(a); // is assembled before the others are
    else
        launch(0);
    if (cudaDeviceSynchronize()) return 2;
    if (!strcmp(how, "tiny")) return 3;
    if (!strcmp(how, "leave")) return 3; // others are being assembled
    if (!strcmp(how, "_exit")) _exit(3);
    if (!strcmp(how, "reset")) return cudaDeviceReset() ? 2 : 3;
    if (!strcmp(how, "threads")) {
        pthread_t t[4];
        for (long i = 0; i < 4; i++) pthread_create(&t[i], NULL, some, (void *)i);
        for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    } else {
        for (int i = 1; i < 6; i++) launch(i);
    }
    return cudaDeviceSynchronize() ? 2 : 3;
}
C
"$NVCC" -cudart shared -gencode arch=compute_80,code=compute_80 -o ahead ahead.cu -lpthread || exit 1
LIBRARIES=$B/test/driver:$B/lib/margay/cudart
run() { # NAME HOW
    rm -rf "$1"
    LD_LIBRARY_PATH=$LIBRARIES XDG_CACHE_HOME=$PWD/cache timeout 60 "$MARGAY" run -v --device nvidia -t memory -t lanes -o "$1" -- ./ahead "$2" > "$1.err" 2>&1
    status=$?
    n=$(grep -c ' KB of text, ahead$' "$1.err")
    kept=$(ls cache/margay/twins | wc -l)
    [ $status = 3 ] && "$MARGAY" report "$1" --json > "$1.json" || { echo "FAIL $1: status $status"; cat "$1.err"; failed=1; }
}
"$MARGAY" run -q --device emu -t memory -t lanes -o emu -- ./ahead > /dev/null 2>&1
"$MARGAY" report emu --json > emu.json || exit 1
cat > same.py <<'P'
import json, sys
times, told = int(sys.argv[2]), []
def counts(path):
    r = json.load(open(path))
    c = r['coverage']
    assert c['instrumented'] == c['launches'], c
    if times == 1:
        told.append([{k['kernel']: (k['bytes_read'], k['bytes_written'], k['sectors_wasted']) for k in r['tools']['memory']['kernels']}, r['tools']['lanes']])
    return {k['name']: (k['launches'], k['threads'], [b['thread_entries'] for b in k['blocks']]) for k in r['kernels']}
ours, theirs = counts(sys.argv[1]), counts('emu.json')
assert times > 1 or told[0] == told[1], told
assert len(theirs) == 6 and ours.keys() == theirs.keys(), (ours.keys(), theirs.keys())
for n, (launches, threads, blocks) in theirs.items():
    k = 1 if times == 1 else times + (n.startswith('_Z1kILi0E'))
    assert ours[n] == (k, k * threads, [k * b for b in blocks]), (n, ours[n], theirs[n])
P
export EMU_GPU_ASSEMBLES=200
rm -rf cache && run first all
python3 same.py first.json 1 && [ "$n" -ge 1 ] && [ "$kept" = 6 ] && echo "ok   first run, $n of 6 ahead" || { echo "FAIL first: $n ahead, $kept kept"; cat first.err; failed=1; }
run second all
python3 same.py second.json 1 && [ "$n" = 0 ] && [ "$kept" = 6 ] && echo "ok   second run" || { echo "FAIL second: $n ahead, $kept kept"; failed=1; }
rm -rf cache && run threads threads
python3 same.py threads.json 4 && [ "$kept" = 6 ] && echo "ok   threads and forks" || { echo "FAIL threads: $kept kept"; failed=1; }
ways='tiny leave _exit reset'
[ "${VARIANT:-}" = tsan ] && ways=tiny # the others take long there
for how in $ways; do
    rm -rf cache && run "go$how" $how
    python3 -c 'import json, sys; c = json.load(open(sys.argv[1]))["coverage"]; assert c["launches"] == c["instrumented"] == 1, c' "go$how.json" &&
        [ "$kept" -lt 6 ] && echo "ok   $how" || { echo "FAIL $how"; cat "go$how.err"; failed=1; }
done
# on one processor nothing is
rm -rf cache && LD_LIBRARY_PATH=$LIBRARIES XDG_CACHE_HOME=$PWD/cache taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" \
    "$MARGAY" run -q --device nvidia -t memory -t lanes -o one -- ./ahead leave > out 2>&1
[ "$(ls cache/margay/twins | wc -l)" = 1 ] && echo "ok   one processor" || { echo "FAIL one processor"; cat out; failed=1; }
exit $failed
