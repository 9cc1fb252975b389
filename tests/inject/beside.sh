#!/bin/sh
# A thread's first launch of a kernel is not held up by the assembler that is busy with the twin of another thread's: that one
# ends when the other has launched (a driver over the emulator, whose assembler waits for a file). Large texts are linked for
# that, told how many registers leave room for all CTAs, and kept by us.
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart
cat > beside.cu <<'C'
#include <cstdio>
#include <pthread.h>
#include <unistd.h>
__global__ void large(int *a, const int *any)
{
    __shared__ int s[512]; // such a text is compiled while it is loaded, which holds up everybody, if it is not large
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 300; k++) s[(any[k] + threadIdx.x) % 512] += a[any[k + 1] + k];
    while (((volatile int *)a)[512 + threadIdx.x]) s[threadIdx.x]++; // another CTA may end that: all have to fit
    a[threadIdx.x] = s[threadIdx.x];
}
__global__ void small(int *a)
{
    a[threadIdx.x] += 1;
}
static int *data[3];
static void *other(void *)
{
    while (access("begun", F_OK)) usleep(1000);
    small<<<1, 64>>>(data[2]);
    if (cudaDeviceSynchronize()) return NULL;
    fclose(fopen("go", "w"));
    return data;
}
int main()
{
    pthread_t t;
    void *ok;
    for (int i = 0; i < 3; i++) cudaMalloc(&data[i], 4096), cudaMemset(data[i], 0, 4096);
    pthread_create(&t, NULL, other, NULL);
    large<<<1, 512>>>(data[0], data[1]);
    int bad = cudaDeviceSynchronize();
    pthread_join(t, &ok);
    puts(bad || !ok ? "FAILED" : "PASSED");
}
C
"$NVCC" -cudart shared -gencode arch=compute_80,code=compute_80 -o beside beside.cu -lpthread || exit 1
EMU_GPU_TOLD=1 EMU_GPU_ASSEMBLES_UNTIL=go "$MARGAY" run -q --device nvidia -t memory -o p -- ./beside > out 2>&1 || { echo FAIL; cat out; exit 1; }
[ "$(grep told: out)" = 'told: 128 registers' ] || { echo 'FAIL: 512 threads of a CTA have 128 registers each, said once'; cat out; exit 1; }
grep -q PASSED out || { echo "FAIL: output"; cat out; exit 1; }
"$MARGAY" report p --json | python3 -c 'import json, sys; c = json.load(sys.stdin)["coverage"]; sys.exit(c["instrumented"] != 2)' || { echo "FAIL: not instrumented"; exit 1; }
rm -f go # the second run finds the code: its assembler would not end
EMU_GPU_ASSEMBLES_UNTIL=never timeout 30 "$MARGAY" run -q --device nvidia -t memory -o q -- ./beside > out 2>&1 || { echo "FAIL: second run"; cat out; exit 1; }
