/* Calls of the driver by name, and the few things its tests do all the time. */
#ifndef MG_TESTS_UNIT_DRIVER_CALLS_H
#define MG_TESTS_UNIT_DRIVER_CALLS_H

#include "abi/cu.h"
#include "driver/driver.h"
#include "fake_device.h"
#include "test.h"

/* Every driver call returns cu_result; arguments must have the entry's exact types. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes" /* no prototype on purpose: one type for all entries */
typedef cu_result (*driver_call)();
#pragma GCC diagnostic pop
static inline driver_call find_call(const char *name)
{
    void *p = mg_driver_symbol(name);
    driver_call f;
    memcpy(&f, &p, sizeof f);
    if (!f) mg_test_fail(__FILE__, __LINE__, "%s is not there", name);
    return f;
}
#define CALL(name) find_call(#name)

static bool driver_started;
static inline void start_driver(void)
{
    cu_ctx ctx = NULL;
    if (!driver_started) {
        struct mg_driver_config c = {.size = sizeof c, .device = "fake", .ops = &fake_ops};
        mg_driver_configure(&c);
        driver_started = true;
    }
    MG_CHECK_EQ(CALL(cuInit)(0u), 0);
    MG_CHECK_EQ(CALL(cuCtxGetCurrent)(&ctx), 0);
    if (ctx) return;
    MG_CHECK_EQ(CALL(cuDevicePrimaryCtxRetain)(&ctx, 0), 0);
    MG_CHECK_EQ(CALL(cuCtxSetCurrent)(ctx), 0);
}

static inline MG_UNUSED cu_ctx current(void)
{
    cu_ctx c = NULL;
    CALL(cuCtxGetCurrent)(&c);
    return c;
}

static inline MG_UNUSED cu_module load_fake(void)
{
    cu_module m = NULL;
    MG_CHECK_EQ(CALL(cuModuleLoadData)(&m, fake_ptx), 0);
    return m;
}

static inline MG_UNUSED cu_function func(cu_module m, const char *name)
{
    cu_function f = NULL;
    MG_CHECK_EQ(CALL(cuModuleGetFunction)(&f, m, name), 0);
    return f;
}

static inline MG_UNUSED cu_ptr zeroed(size_t bytes)
{
    cu_ptr p = 0;
    MG_CHECK_EQ(CALL(cuMemAlloc_v2)(&p, bytes), 0);
    MG_CHECK_EQ(CALL(cuMemsetD8_v2)(p, 0, bytes), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)((cu_stream)NULL), 0);
    return p;
}

static inline MG_UNUSED void launch_by(cu_module m, const char *name, cu_stream s, cu_ptr p, uint32_t n, uint32_t by)
{
    void *params[] = {&p, &n, &by};
    MG_CHECK_EQ(CALL(cuLaunchKernel)(func(m, name), 1u, 1u, 1u, 1u, 1u, 1u, 0u, s, params, (void **)NULL), 0);
}

static inline MG_UNUSED void launch_nap(cu_module m, cu_stream s, uint32_t ms)
{
    void *params[] = {&ms};
    MG_CHECK_EQ(CALL(cuLaunchKernel)(func(m, "nap"), 1u, 1u, 1u, 1u, 1u, 1u, 0u, s, params, (void **)NULL), 0);
}

#endif
