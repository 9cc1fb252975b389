/* What the files of the runtime share: the driver as a table of pointers, entering and leaving a
 * call, and the registry of what programs register before main.
 *
 *   program -> cudaX() here -> mg_rt_enter (driver found, a context current) -> cu.cuX() -> libcuda.so.1
 *
 * The runtime knows the driver by name alone (dlopen, dlsym): whichever libcuda.so.1 the process
 * has gets the calls. It holds no device, no emulator and no tool. */
#ifndef MG_RUNTIME_PRIV_H
#define MG_RUNTIME_PRIV_H

#include <stdbool.h>

#include "abi/cu.h"
#include "abi/cudart.h"

#define MG_RT_VERSION 13000

/* An exported function: declares and begins its definition. */
#define RT_VISIBLE __attribute__((visibility("default")))
#define RT_API(name, params)                                                                                           \
    RT_VISIBLE cudaError_t name params;                                                                                \
    RT_VISIBLE cudaError_t name params
/* The variant of a stream call that code built with --default-stream per-thread uses: the same
 * call, its null stream replaced. `args` names its stream through RT_PT(). */
#define RT_API_PTSZ(name, params, args)                                                                                \
    RT_API(name##_ptsz, params)                                                                                        \
    {                                                                                                                  \
        return name args;                                                                                              \
    }
#define RT_PT(stream) ((stream) ? (stream) : cudaStreamPerThread)

struct mg_rt_driver {
#define CU(name, params) cu_result(*name) params;
#include "runtime/driver.def"
#undef CU
};
extern struct mg_rt_driver mg_rt_cu; /* filled once by mg_rt_driver_ready, constant afterwards */
#define cu mg_rt_cu

/* Finds and initialises the driver, once. Needs no context. */
cudaError_t mg_rt_driver_ready(void);
/* What every call that needs a device does first: driver, a current context (the calling thread's
 * device's primary context if none is current), managed variables of loaded programs. */
cudaError_t mg_rt_enter(void);
/* Ends a call: notes a failure as the thread's last error and returns it. */
cudaError_t mg_rt_done(cu_result r);
/* The same for errors that are the runtime's own. */
cudaError_t mg_rt_fail(cudaError_t e);
/* What RT_API functions do with errors that must not touch the last error. */
cudaError_t mg_rt_from_driver(cu_result r);
/* Says one line on stderr that a call is not implemented; once a name. Returns 801. */
cudaError_t mg_rt_missing(const char *name);

#define RT_ENTER()                                                                                                     \
    do {                                                                                                               \
        cudaError_t entered = mg_rt_enter();                                                                           \
        if (entered) return mg_rt_fail(entered);                                                                       \
    } while (0)

struct mg_rt_thread { /* state of one thread */
    int device;       /* of cudaSetDevice */
    int last_error;
    unsigned depth; /* of the stack of call configurations */
    struct mg_rt_call {
        dim3 grid, block;
        size_t shared_bytes;
        cudaStream_t stream;
    } calls[16];
};
extern _Thread_local struct mg_rt_thread mg_rt_thread;

/* ---- devices (context.c) ---- */
int mg_rt_device_count(void);
/* Ordinal of the device that calls of this thread go to. */
int mg_rt_device(void);
cu_device mg_rt_device_handle(int ordinal);
int mg_rt_device_attribute(int attribute, int ordinal); /* 0 where the driver refuses */
/* The primary context of a device, retained; the current context is left as it is. */
cudaError_t mg_rt_primary(int device, cu_ctx *ctx);

/* ---- registry (module.c) ---- */
struct mg_rt_variable {
    cu_ptr address;
    size_t bytes;
};
/* The driver's kernel for a host stub, a cudaKernel_t or a cudaFunction_t. */
cudaError_t mg_rt_kernel(const void *func, cu_function *out);
cudaError_t mg_rt_variable(const void *symbol, struct mg_rt_variable *out);
const char *mg_rt_kernel_name(const void *func); /* NULL: not registered */
/* The CUfunction of the current context for `func`, whose kernel mg_rt_kernel found. */
cudaError_t mg_rt_function(const void *func, cu_function kernel, cu_function *out);
/* The host stub that a CUfunction or CUkernel was made from; itself where there is none. */
const void *mg_rt_host_of(const void *handle);
/* A kernel handle given to the program; from now on accepted where a host stub is. */
void mg_rt_kernel_note(cu_kernel kernel);
/* Loads what has managed variables; cheap when there is none. */
cudaError_t mg_rt_managed_ready(void);

/* ---- copies (copy.c, copy3d.c, array.c) ---- */
/* One linear copy. Not async: it waits, on the legacy stream or on the per-thread one given. */
cudaError_t mg_rt_copy(void *dst, const void *src, size_t bytes, int kind, cudaStream_t stream, bool async);
/* The driver's form of a 3D copy, and back. */
cudaError_t mg_rt_volume(const struct cudaMemcpy3DParms *p, struct cu_memcpy3d *c);
void mg_rt_volume_back(const struct cu_memcpy3d *c, struct cudaMemcpy3DParms *p);
size_t mg_rt_element_bytes(int format, unsigned channels); /* of an array */

#endif
