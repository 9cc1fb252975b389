/* A runtime client made without nvcc: registers a fatbin as nvcc's constructors do and launches as
 * nvcc's stubs do. With argument "run" it checks the kernels' results (needs a device that runs
 * them), without it makes the calls alone. Exit 0: as it should be. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cudart.h"

extern unsigned fatbin[];
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaUnregisterFatBinary(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, cudaStream_t);
cudaError_t __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaMalloc(void **, size_t);
cudaError_t cudaFree(void *);
cudaError_t cudaMemcpy(void *, const void *, size_t, int);
cudaError_t cudaMemcpyAsync(void *, const void *, size_t, int, cudaStream_t);
cudaError_t cudaMemcpyToSymbol(const void *, const void *, size_t, size_t, int);
cudaError_t cudaMemcpyFromSymbol(void *, const void *, size_t, size_t, int);
cudaError_t cudaMemset(void *, int, size_t);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaStreamCreate(cudaStream_t *);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamQuery(cudaStream_t);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *, int);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *, const void *);
cudaError_t cudaGetSymbolSize(size_t *, const void *);
const char *cudaGetErrorName(cudaError_t);
const char *cudaGetErrorString(cudaError_t);

static void **handle;
static int bias[4], scale;

/* The two stubs, one in today's form and one in that of CUDA 12. */
static void fill(int n, int *out)
{
    static cudaKernel_t kernel;
    void *args[] = {&n, &out};
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    if (!kernel) __cudaGetKernel(&kernel, (const void *)(uintptr_t)fill);
    if (!__cudaPopCallConfiguration(&grid, &block, &shared, &stream))
        __cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}
static void sum(int n, const int *in, int *out)
{
    void *args[] = {&n, &in, &out};
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    if (!__cudaPopCallConfiguration(&grid, &block, &shared, &stream))
        cudaLaunchKernel((const void *)(uintptr_t)sum, grid, block, args, shared, stream);
}

__attribute__((constructor)) static void register_all(void)
{
    handle = __cudaRegisterFatBinary(fatbin);
    __cudaRegisterFunction(handle, (const char *)(uintptr_t)fill, "fill", "fill", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFunction(handle, (const char *)(uintptr_t)sum, "sum", "sum", -1, 0, 0, 0, 0, 0);
    __cudaRegisterVar(handle, (char *)bias, "bias", "bias", 0, sizeof bias, 0, 0);
    __cudaRegisterVar(handle, (char *)&scale, "scale", "scale", 0, sizeof scale, 1, 0);
    __cudaRegisterFatBinaryEnd(handle);
}
static void unregister(void)
{
    __cudaUnregisterFatBinary(handle);
}

#define CHECK(call) check((call), #call, __LINE__)
static void check(cudaError_t e, const char *what, int line)
{
    if (!e) return;
    fprintf(stderr, "client.c:%d: %s: %s (%s)\n", line, what, cudaGetErrorName(e), cudaGetErrorString(e));
    exit(1);
}
static void must(int ok, const char *what, int line)
{
    if (ok) return;
    fprintf(stderr, "client.c:%d: not so: %s\n", line, what);
    exit(1);
}
#define MUST(condition) must((condition), #condition, __LINE__)

enum { N = 1000 };
static int run;

/* Launches `fill` and `sum` on a stream of its own; several threads at once. */
static void *work(void *user)
{
    int *out, *total, host[N], got = 0, want = 0;
    cudaStream_t stream;
    (void)user;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc((void **)&out, sizeof host));
    CHECK(cudaMalloc((void **)&total, sizeof *total));
    if (!__cudaPushCallConfiguration((dim3){(N + 127) / 128, 1, 1}, (dim3){128, 1, 1}, 0, stream)) fill(N, out);
    CHECK(cudaGetLastError());
    if (!__cudaPushCallConfiguration((dim3){1, 1, 1}, (dim3){1, 1, 1}, 0, stream)) sum(N, out, total);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(host, out, sizeof host, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaMemcpyAsync(&got, total, sizeof got, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < N; i++) {
        int value = i * 3 + (i & 3) * 10;
        if (run) MUST(host[i] == value);
        want += value;
    }
    if (run) MUST(got == want);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(out));
    CHECK(cudaFree(total));
    return NULL;
}

int main(int argc, char **argv)
{
    struct cudaFuncAttributes attr;
    struct cudaDeviceProp prop;
    int bias_host[4] = {0, 10, 20, 30}, three = 3, back[4] = {0};
    size_t bytes = 0;
    pthread_t threads[4];
    run = argc > 1 && !strcmp(argv[1], "run");
    atexit(unregister);
    CHECK(cudaGetDeviceProperties(&prop, 0));
    MUST(prop.name[0] && prop.warpSize);
    CHECK(cudaMemcpyToSymbol(bias, bias_host, sizeof bias_host, 0, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyToSymbol(&scale, &three, sizeof three, 0, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyFromSymbol(back + 1, bias, 12, 4, cudaMemcpyDeviceToHost));
    MUST(!memcmp(back, bias_host, sizeof back));
    CHECK(cudaGetSymbolSize(&bytes, bias));
    if (run) MUST(bytes == sizeof bias);
    CHECK(cudaFuncGetAttributes(&attr, (const void *)(uintptr_t)fill));
    MUST(attr.maxThreadsPerBlock > 0);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);

    /* Mistakes are reported once, by the right name. */
    MUST(cudaMemcpyToSymbol(&three, &three, 4, 0, cudaMemcpyHostToDevice) == cudaErrorInvalidSymbol);
    MUST(cudaPeekAtLastError() == cudaErrorInvalidSymbol && cudaGetLastError() == cudaErrorInvalidSymbol);
    MUST(cudaGetLastError() == cudaSuccess);
    cudaError_t busy = cudaStreamQuery(NULL); /* "not ready" is an answer: it is never the last error */
    MUST((busy == cudaSuccess || busy == cudaErrorNotReady) && cudaGetLastError() == cudaSuccess);
    if (getenv("FAKE_FAIL")) MUST(busy == cudaErrorNotReady);
    MUST(cudaMemcpyToSymbol(bias, bias_host, 1 << 20, 0, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    MUST(cudaLaunchKernel((const void *)(uintptr_t)work, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL) ==
         cudaErrorInvalidDeviceFunction);
    MUST(cudaLaunchKernel((const void *)(uintptr_t)fill, (dim3){0, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL) ==
         cudaErrorInvalidConfiguration);
    MUST(cudaGetLastError() == cudaErrorInvalidConfiguration);
    CHECK(cudaDeviceSynchronize());
    puts("client ok");
    return 0;
}
