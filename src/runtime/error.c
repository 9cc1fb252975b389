/* Errors of the runtime: what a driver result becomes, the thread's last error, names and texts,
 * and the one line about a call that is not implemented. */
#include "runtime/priv.h"
#include "base/search.h"

#include <stdio.h>
#include <string.h>

_Thread_local struct mg_rt_thread mg_rt_thread;

static const struct error_row {
    int number;
    const char *name, *text;
} rows[] = {
#define RT_ERROR(number, name, text) {number, #name, text},
#include "runtime/errors.def"
#undef RT_ERROR
};

static const struct error_row *find_row(int number)
{
    size_t n = sizeof rows / sizeof *rows, k; /* ORDER RUNTIME_ERRORS */
    MG_FIND_FIRST(k, n, rows[k].number < number);
    return k < n && rows[k].number == number ? &rows[k] : NULL;
}

/* Errors after which a context is lost: reading the last error does not clear them. */
static bool error_is_sticky(int e)
{
    return e == CUE_ILLEGAL_ADDRESS || e == CUE_LAUNCH_TIMEOUT || e == CUE_ASSERT ||
           (e >= CUE_HARDWARE_STACK_ERROR && e <= CUE_LAUNCH_FAILED);
}

cudaError_t mg_rt_from_driver(cu_result r)
{
    return find_row(r) ? r : cudaErrorUnknown; /* the numbers are the same since CUDA 10.1 */
}

cudaError_t mg_rt_fail(cudaError_t e)
{
    if (e) mg_rt_thread.last_error = e;
    return e;
}

cudaError_t mg_rt_done(cu_result r)
{
    if (r == CUE_NOT_READY) return cudaErrorNotReady; /* an answer, not an error: never the last error */
    return r ? mg_rt_fail(mg_rt_from_driver(r)) : cudaSuccess;
}

/* A set of names: a program that polls an unsupported call must not flood the terminal. */
cudaError_t mg_rt_missing(const char *name)
{
    static const char *said[512];
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        const char *seen = __atomic_load_n(&said[i], __ATOMIC_ACQUIRE);
        if (!seen && __atomic_compare_exchange_n(&said[i], &seen, name, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            fprintf(
                stderr,
                "margay: the program calls %s, which is not implemented without a GPU: it gets cudaErrorNotSupported\n",
                name);
            break;
        }
        if (!strcmp(seen, name)) break;
    }
    return mg_rt_fail(cudaErrorNotSupported);
}

RT_API(cudaGetLastError, (void))
{
    cudaError_t e = mg_rt_thread.last_error;
    if (!error_is_sticky(e)) mg_rt_thread.last_error = cudaSuccess;
    return e;
}

RT_API(cudaPeekAtLastError, (void))
{
    return mg_rt_thread.last_error;
}

RT_VISIBLE const char *cudaGetErrorName(cudaError_t e);
RT_VISIBLE const char *cudaGetErrorName(cudaError_t e)
{
    const struct error_row *row = find_row(e);
    return row ? row->name : "unrecognized error code";
}

RT_VISIBLE const char *cudaGetErrorString(cudaError_t e);
RT_VISIBLE const char *cudaGetErrorString(cudaError_t e)
{
    const struct error_row *row = find_row(e);
    return row ? row->text : "unrecognized error code";
}
