/* driver: order between streams, events, callbacks, memory, modules, launches, errors. Against a
 * fake device: what is asserted follows from the rules of the CUDA driver API alone. */
#include "test.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver_calls.h"

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

MG_TEST(driver_calls_before_init_fail)
{
    int v = 0;
    if (driver_started) mg_test_skip("another test has initialised the driver");
    MG_CHECK_EQ(CALL(cuDeviceGetCount)(&v), CUE_NOT_INITIALIZED);
    MG_CHECK_EQ(CALL(cuInit)(1u), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuDriverGetVersion)(&v), 0);
    MG_CHECK_EQ(v, 13000);
}

MG_TEST(driver_answers_a_recorded_device)
{
    start_driver();
    int v = 0;
    char name[64];
    size_t bytes;
    MG_CHECK_EQ(CALL(cuDeviceGetCount)(&v), 0);
    MG_CHECK_EQ(v, 1);
    MG_CHECK_EQ(CALL(cuDeviceGetName)(name, 64, 0), 0);
    MG_CHECK_STR(name, "NVIDIA H200");
    MG_CHECK_EQ(CALL(cuDeviceTotalMem_v2)(&bytes, 0), 0);
    MG_CHECK_EQ(bytes, 150109880320);
    MG_CHECK_EQ(CALL(cuDeviceGetAttribute)(&v, CUDEV_MULTIPROCESSOR_COUNT, 0), 0);
    MG_CHECK_EQ(v, 132);
    for (int i = 1; i < CUDEV_COUNT; i++) MG_CHECK_EQ(CALL(cuDeviceGetAttribute)(&v, i, 0), 0);
    MG_CHECK_EQ(CALL(cuDeviceGetAttribute)(&v, CUDEV_COUNT, 0), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuDeviceGetAttribute)(&v, 1, 1), CUE_INVALID_DEVICE);
}

MG_TEST(driver_entries_by_name_and_version)
{
    start_driver();
    void *fn = NULL;
    int status = -1;
    MG_CHECK_EQ(CALL(cuGetProcAddress_v2)("cuMemAlloc", &fn, 13000, (uint64_t)0, &status), 0);
    MG_CHECK(fn == mg_driver_symbol("cuMemAlloc_v2"));
    MG_CHECK_EQ(CALL(cuGetProcAddress_v2)("cuLaunchKernel", &fn, 13000, (uint64_t)2, &status), 0);
    MG_CHECK(fn == mg_driver_symbol("cuLaunchKernel_ptsz"));
    MG_CHECK_EQ(CALL(cuGetProcAddress_v2)("", &fn, 0, (uint64_t)0, &status), 0);
    MG_CHECK(fn == mg_driver_symbol("cuGetProcAddress_v2"));
    MG_CHECK_EQ(CALL(cuGetProcAddress_v2)("cuGLGetDevices", &fn, 13000, (uint64_t)0, &status), CUE_NOT_FOUND);
    MG_CHECK(!fn);
    const void *table = &fn;
    MG_CHECK(CALL(cuGetExportTable)(&table, (const cu_uuid *)"0123456789abcdef") != 0);
    MG_CHECK(!table);
    for (uint32_t i = 0; i < 2000; i++) /* every name we have is a name of the driver */
        if (mg_driver_symbol_at(i)) MG_CHECK(mg_cu_entry_find(mg_driver_symbol_at(i)) >= 0);
}

MG_TEST(driver_contexts_stack)
{
    start_driver();
    cu_ctx primary = current(), mine = NULL, got = NULL;
    MG_CHECK_EQ(CALL(cuCtxCreate_v2)(&mine, 0u, 0), 0);
    MG_CHECK(current() == mine && mine != primary);
    cu_ptr p = 0;
    MG_CHECK_EQ(CALL(cuMemAlloc_v2)(&p, (size_t)100), 0);
    MG_CHECK_EQ(CALL(cuCtxPopCurrent_v2)(&got), 0);
    MG_CHECK(got == mine && current() == primary);
    MG_CHECK_EQ(CALL(cuCtxPushCurrent_v2)(mine), 0);
    MG_CHECK_EQ(CALL(cuCtxDestroy_v2)(mine), 0);
    MG_CHECK(current() == primary);
    MG_CHECK_EQ(CALL(cuCtxSetCurrent)(mine), CUE_INVALID_CONTEXT);
    MG_CHECK_EQ(CALL(cuMemFree_v2)(p), CUE_INVALID_VALUE); /* went with its context */
}

MG_TEST(driver_copies_check_their_range)
{
    start_driver();
    cu_ptr p = 0;
    char in[64], out[64] = {0};
    memset(in, 5, sizeof in);
    MG_CHECK_EQ(CALL(cuMemAlloc_v2)(&p, (size_t)64), 0);
    MG_CHECK_EQ(p % 256, 0);
    MG_CHECK_EQ(CALL(cuMemcpyHtoD_v2)(p, in, (size_t)64), 0);
    MG_CHECK_EQ(CALL(cuMemcpyHtoD_v2)(p, in, (size_t)65), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMemcpyHtoD_v2)((cu_ptr)(uintptr_t)out, in, (size_t)1), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMemsetD32_v2)(p + 8, 0x01020304u, (size_t)2), 0);
    MG_CHECK_EQ(CALL(cuMemsetD32_v2)(p + 2, 0u, (size_t)1), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMemcpyDtoH_v2)(out, p, (size_t)64), 0);
    MG_CHECK(out[7] == 5 && out[8] == 4 && out[11] == 1 && out[15] == 1 && out[16] == 5);
    MG_CHECK_EQ(CALL(cuMemFree_v2)(p + 1), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMemFree_v2)(p), 0);
    MG_CHECK_EQ(CALL(cuMemFree_v2)(p), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMemFree_v2)((cu_ptr)0), 0);
    MG_CHECK_EQ(CALL(cuMemAlloc_v2)(&p, (size_t)0), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMemAlloc_v2)(&p, (size_t)1 << 45), CUE_OUT_OF_MEMORY);
}

MG_TEST(driver_copies_rows_and_slices)
{
    start_driver();
    enum { W = 5, H = 3, D = 2 };
    cu_ptr p = 0;
    size_t pitch = 0;
    MG_CHECK_EQ(CALL(cuMemAllocPitch_v2)(&p, &pitch, (size_t)W, (size_t)(H * D), 4u), 0);
    MG_CHECK(pitch >= W && pitch % 512 == 0);
    char in[W * H * D], out[W * H * D] = {0};
    for (int i = 0; i < W * H * D; i++) in[i] = (char)i;
    struct cu_memcpy3d c = {.src_type = CUMEM_HOST,
                            .src_host = in,
                            .src_pitch = W,
                            .src_height = H,
                            .dst_type = CUMEM_DEVICE,
                            .dst_device = p,
                            .dst_pitch = pitch,
                            .dst_height = H,
                            .width = W,
                            .height = H,
                            .depth = D};
    MG_CHECK_EQ(CALL(cuMemcpy3D_v2)(&c), 0);
    MG_CHECK_EQ(((char *)(uintptr_t)p)[pitch * (H + 1) + 2], W * (H + 1) + 2);
    size_t *const sizes[] = {&c.dst_y, &c.dst_z, &c.height, &c.depth, &c.dst_pitch, &c.dst_height, &c.width, &c.dst_x};
    for (size_t k = 0; k < MG_COUNT_OF(sizes); k++) /* sums and products that do not fit are no small ones */
        for (int bit = 48; bit < 64; bit++) {
            size_t was = *sizes[k];
            *sizes[k] = was + ((size_t)1 << bit);
            MG_CHECK_EQ(CALL(cuMemcpy3D_v2)(&c), CUE_INVALID_VALUE);
            *sizes[k] = was;
        }
    cu_array array;
    struct cu_array3d_desc huge = {1u << 31, 1u << 31, 1u << 31, CUAD_FLOAT, 1, 0};
    MG_CHECK_EQ(CALL(cuArray3DCreate_v2)(&array, &huge), CUE_INVALID_VALUE);
    struct cu_memcpy2d b = {.src_type = CUMEM_DEVICE,
                            .src_device = p,
                            .src_pitch = pitch,
                            .src_x = 1,
                            .src_y = 1,
                            .dst_type = CUMEM_HOST,
                            .dst_host = out,
                            .dst_pitch = W,
                            .width = 3,
                            .height = 2};
    MG_CHECK_EQ(CALL(cuMemcpy2D_v2)(&b), 0);
    MG_CHECK(out[0] == W + 1 && out[2] == W + 3 && out[3] == 0 && out[W] == 2 * W + 1);
    b.src_pitch = 2;
    MG_CHECK_EQ(CALL(cuMemcpy2D_v2)(&b), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMemFree_v2)(p), 0);
}

MG_TEST(driver_module_has_functions_and_globals)
{
    start_driver();
    cu_module m = load_fake();
    cu_function f;
    cu_ptr p;
    size_t n;
    unsigned count;
    MG_CHECK_EQ(CALL(cuModuleGetFunction)(&f, m, "add"), 0);
    MG_CHECK_EQ(CALL(cuModuleGetFunction)(&f, m, "nothing"), CUE_NOT_FOUND);
    MG_CHECK_EQ(CALL(cuModuleGetFunctionCount)(&count, m), 0);
    MG_CHECK_EQ(count, 7);
    MG_CHECK_EQ(CALL(cuModuleGetGlobal_v2)(&p, &n, m, "counter"), 0);
    MG_CHECK_EQ(n, 4);
    MG_CHECK_EQ(*(uint32_t *)(uintptr_t)p, 7);
    MG_CHECK_EQ(CALL(cuModuleUnload)(m), 0);
    MG_CHECK_EQ(CALL(cuModuleUnload)(m), CUE_INVALID_HANDLE);
    char log[256] = "";
    int options[] = {CUJIT_ERROR_LOG_BUFFER, CUJIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    MG_CHECK_EQ(CALL(cuModuleLoadDataEx)(&m,
                                         ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry x( { ret; }\n",
                                         2u, options, values),
                CUE_INVALID_PTX);
    MG_CHECK(strlen(log) > 0);
}

MG_TEST(driver_library_kernel_runs_in_each_context)
{
    start_driver();
    cu_library lib = NULL;
    cu_kernel k = NULL;
    cu_ptr a = 0, b = 0;
    size_t n;
    MG_CHECK_EQ(CALL(cuLibraryLoadData)(&lib, fake_ptx, (int *)NULL, (void **)NULL, 0u, (int *)NULL, (void **)NULL, 0u),
                0);
    MG_CHECK_EQ(CALL(cuLibraryGetKernel)(&k, lib, "add"), 0);
    MG_CHECK_EQ(CALL(cuLibraryGetGlobal)(&a, &n, lib, "counter"), 0);
    uint32_t count = 1, inc = 3;
    void *params[] = {&a, &count, &inc};
    MG_CHECK_EQ(CALL(cuLaunchKernel)((cu_function)(void *)k, 1u, 1u, 1u, 1u, 1u, 1u, 0u, (cu_stream)NULL, params,
                                     (void **)NULL),
                0);
    MG_CHECK_EQ(CALL(cuCtxSynchronize)(), 0);
    MG_CHECK_EQ(*(uint32_t *)(uintptr_t)a, 10);
    cu_ctx mine;
    MG_CHECK_EQ(CALL(cuCtxCreate_v2)(&mine, 0u, 0), 0);
    MG_CHECK_EQ(CALL(cuLibraryGetGlobal)(&b, &n, lib, "counter"), 0);
    MG_CHECK(a != b);
    MG_CHECK_EQ(*(uint32_t *)(uintptr_t)b, 7); /* an instance of its own */
    MG_CHECK_EQ(CALL(cuCtxDestroy_v2)(mine), 0);
    MG_CHECK_EQ(CALL(cuLibraryUnload)(lib), 0);
}

/* add and mul do not commute: the result tells the order. */
MG_TEST(driver_stream_keeps_order)
{
    start_driver();
    cu_module m = load_fake();
    cu_stream s;
    cu_ptr p = zeroed(4);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&s, 1u), 0);
    uint32_t want = 0;
    for (uint32_t i = 0; i < 200; i++) {
        launch_by(m, i % 3 ? "add" : "mul", s, p, 1, i);
        want = i % 3 ? want + i : want * i;
    }
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(s), 0);
    MG_CHECK_EQ(*(uint32_t *)(uintptr_t)p, want);
    MG_CHECK_EQ(CALL(cuStreamDestroy_v2)(s), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(s), CUE_INVALID_HANDLE);
    CALL(cuMemFree_v2)(p);
    CALL(cuModuleUnload)(m);
}

MG_TEST(driver_streams_run_at_the_same_time)
{
    start_driver();
    cu_module m = load_fake();
    cu_stream a, b;
    cu_ptr flag = zeroed(4);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&a, 1u), 0);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&b, 1u), 0);
    launch_by(m, "await", a, flag, 0, 0); /* ends only if b's kernel runs meanwhile */
    MG_CHECK_EQ(CALL(cuStreamQuery)(a), CUE_NOT_READY);
    launch_by(m, "add", b, flag, 1, 1);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(a), 0);
    MG_CHECK_EQ(CALL(cuStreamQuery)(a), 0);
    CALL(cuStreamDestroy_v2)(a), CALL(cuStreamDestroy_v2)(b);
    CALL(cuMemFree_v2)(flag);
    CALL(cuModuleUnload)(m);
}

MG_TEST(driver_legacy_stream_orders_blocking_streams)
{
    start_driver();
    cu_module m = load_fake();
    cu_stream blocking, other;
    cu_ptr p = zeroed(4);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&blocking, 0u), 0);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&other, 0u), 0);
    launch_nap(m, blocking, 20);
    launch_by(m, "add", blocking, p, 1, 5);
    launch_by(m, "mul", NULL, p, 1, 3);  /* after blocking's work */
    launch_by(m, "add", other, p, 1, 1); /* after the legacy stream's */
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(other), 0);
    MG_CHECK_EQ(*(uint32_t *)(uintptr_t)p, 16);
    /* a destroyed stream's work still comes before the legacy stream's */
    launch_nap(m, blocking, 20);
    launch_by(m, "add", blocking, p, 1, 4);
    MG_CHECK_EQ(CALL(cuStreamDestroy_v2)(blocking), 0);
    uint32_t got = 0;
    MG_CHECK_EQ(CALL(cuMemcpyDtoH_v2)(&got, p, (size_t)4), 0);
    MG_CHECK_EQ(got, 20);
    /* a non-blocking stream takes no part */
    cu_stream free_one;
    cu_ptr flag = zeroed(4);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&free_one, 1u), 0);
    launch_by(m, "await", free_one, flag, 0, 0);
    launch_by(m, "add", NULL, p, 1, 1);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)((cu_stream)NULL), 0);
    MG_CHECK_EQ(*(uint32_t *)(uintptr_t)p, 21);
    __atomic_store_n((uint32_t *)(uintptr_t)flag, 1, __ATOMIC_RELEASE);
    MG_CHECK_EQ(CALL(cuCtxSynchronize)(), 0);
    CALL(cuStreamDestroy_v2)(other), CALL(cuStreamDestroy_v2)(free_one);
    CALL(cuMemFree_v2)(p), CALL(cuMemFree_v2)(flag);
    CALL(cuModuleUnload)(m);
}

MG_TEST(driver_events_order_and_time)
{
    start_driver();
    cu_module m = load_fake();
    cu_stream a, b;
    cu_event e, t0, t1;
    cu_ptr p = zeroed(4);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&a, 1u), 0);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&b, 1u), 0);
    MG_CHECK_EQ(CALL(cuEventCreate)(&e, (unsigned)CUEVENT_DISABLE_TIMING), 0);
    MG_CHECK_EQ(CALL(cuEventCreate)(&t0, 0u), 0);
    MG_CHECK_EQ(CALL(cuEventCreate)(&t1, 0u), 0);
    MG_CHECK_EQ(CALL(cuEventQuery)(e), 0); /* never recorded: nothing to wait for */
    float ms = 0;
    MG_CHECK_EQ(CALL(cuEventElapsedTime)(&ms, t0, t1), CUE_INVALID_HANDLE);
    MG_CHECK_EQ(CALL(cuEventRecord)(t0, a), 0);
    launch_nap(m, a, 30);
    launch_by(m, "add", a, p, 1, 5);
    MG_CHECK_EQ(CALL(cuEventRecord)(e, a), 0);
    MG_CHECK_EQ(CALL(cuEventRecord)(t1, a), 0);
    MG_CHECK_EQ(CALL(cuEventQuery)(e), CUE_NOT_READY);
    MG_CHECK_EQ(CALL(cuEventElapsedTime)(&ms, t0, t1), CUE_NOT_READY);
    MG_CHECK_EQ(CALL(cuStreamWaitEvent)(b, e, 0u), 0);
    launch_by(m, "mul", b, p, 1, 2);
    MG_CHECK_EQ(CALL(cuEventDestroy_v2)(e), 0); /* the wait holds */
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(b), 0);
    MG_CHECK_EQ(*(uint32_t *)(uintptr_t)p, 10);
    MG_CHECK_EQ(CALL(cuEventSynchronize)(t1), 0);
    MG_CHECK_EQ(CALL(cuEventElapsedTime)(&ms, t0, t1), 0);
    MG_CHECK(ms >= 30 && ms < 5000);
    CALL(cuEventDestroy_v2)(t0), CALL(cuEventDestroy_v2)(t1);
    CALL(cuStreamDestroy_v2)(a), CALL(cuStreamDestroy_v2)(b);
    CALL(cuMemFree_v2)(p);
    CALL(cuModuleUnload)(m);
}

static int called;
static cu_result seen_status = -1;
static void count_call(void *user)
{
    sleep_ms(5);
    called += *(int *)user;
}
static void count_callback(cu_stream s, cu_result status, void *user)
{
    (void)s;
    seen_status = status;
    called *= *(int *)user;
}

MG_TEST(driver_host_functions_run_in_order)
{
    start_driver();
    cu_stream s;
    int three = 3;
    called = 1;
    MG_CHECK_EQ(CALL(cuStreamCreate)(&s, 1u), 0);
    MG_CHECK_EQ(CALL(cuLaunchHostFunc)(s, count_call, &three), 0);
    MG_CHECK_EQ(CALL(cuStreamAddCallback)(s, count_callback, &three, 0u), 0);
    MG_CHECK_EQ(CALL(cuLaunchHostFunc)(s, count_call, &three), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(s), 0);
    MG_CHECK_EQ(called, 15);
    MG_CHECK_EQ(seen_status, 0);
    CALL(cuStreamDestroy_v2)(s);
}

MG_TEST(driver_async_copies_follow_the_pageable_rules)
{
    start_driver();
    cu_module m = load_fake();
    cu_stream s;
    cu_ptr flag = zeroed(4), p = zeroed(4);
    uint32_t *pinned = NULL, pageable = 7;
    MG_CHECK_EQ(CALL(cuMemHostAlloc)((void **)&pinned, (size_t)4, 0u), 0);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&s, 1u), 0);
    launch_by(m, "await", s, flag, 0, 0);
    MG_CHECK_EQ(CALL(cuMemcpyHtoDAsync_v2)(p, &pageable, (size_t)4, s), 0);
    pageable = 9;                                                        /* the call has read it */
    MG_CHECK_EQ(CALL(cuMemcpyDtoHAsync_v2)(pinned, p, (size_t)4, s), 0); /* and did not wait */
    *pinned = 1;
    __atomic_store_n((uint32_t *)(uintptr_t)flag, 1, __ATOMIC_RELEASE);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(s), 0);
    MG_CHECK_EQ(*pinned, 7);
    launch_nap(m, s, 10);
    launch_by(m, "add", s, p, 1, 1);
    MG_CHECK_EQ(CALL(cuMemcpyDtoHAsync_v2)(&pageable, p, (size_t)4, s), 0); /* to pageable memory: done on return */
    MG_CHECK_EQ(pageable, 8);
    MG_CHECK_EQ(CALL(cuMemFreeHost)(pinned), 0);
    MG_CHECK_EQ(CALL(cuMemFreeHost)(&pageable), CUE_INVALID_VALUE);
    CALL(cuStreamDestroy_v2)(s);
    CALL(cuMemFree_v2)(flag), CALL(cuMemFree_v2)(p);
    CALL(cuModuleUnload)(m);
}

MG_TEST(driver_stream_memory_operations)
{
    start_driver();
    cu_stream a, b;
    cu_ptr p = zeroed(16);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&a, 1u), 0);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&b, 1u), 0);
    MG_CHECK_EQ(CALL(cuStreamWaitValue32_v2)(a, p, 3u, (unsigned)CUWAIT_GEQ), 0);
    MG_CHECK_EQ(CALL(cuStreamWriteValue64_v2)(a, p + 8, (uint64_t)1 << 40, 0u), 0);
    sleep_ms(2);
    MG_CHECK_EQ(CALL(cuStreamQuery)(a), CUE_NOT_READY);
    MG_CHECK_EQ(CALL(cuStreamWriteValue32_v2)(b, p, 4u, 0u), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(a), 0);
    MG_CHECK_EQ(((uint64_t *)(uintptr_t)p)[1], 1ll << 40);
    MG_CHECK_EQ(CALL(cuStreamWriteValue32_v2)(b, p + 2, 4u, 0u), CUE_INVALID_VALUE);
    CALL(cuStreamDestroy_v2)(a), CALL(cuStreamDestroy_v2)(b);
    CALL(cuMemFree_v2)(p);
}

MG_TEST(driver_launches_are_checked)
{
    start_driver();
    cu_module m = load_fake();
    cu_function add = func(m, "add"), big = func(m, "big"), refused = func(m, "refused");
    cu_ptr p = zeroed(4);
    uint32_t n = 1, by = 2;
    void *params[] = {&p, &n, &by};
#define LAUNCH(f, gx, bx, shared)                                                                                      \
    CALL(cuLaunchKernel)                                                                                               \
    (f, (unsigned)(gx), 1u, 1u, (unsigned)(bx), 1u, 1u, (unsigned)(shared), (cu_stream)NULL, params, (void **)NULL)
    MG_CHECK_EQ(LAUNCH(add, 0, 1, 0), CUE_INVALID_VALUE);
    MG_CHECK_EQ(LAUNCH(add, 1, 1025, 0), CUE_INVALID_VALUE);
    MG_CHECK_EQ(LAUNCH(big, 1, 129, 0), CUE_LAUNCH_OUT_OF_RESOURCES);
    MG_CHECK_EQ(LAUNCH(big, 1, 128, 0), 0);
    MG_CHECK_EQ(LAUNCH(add, 1, 1, 49152), CUE_INVALID_VALUE); /* 1024 static bytes are taken */
    MG_CHECK_EQ(LAUNCH(add, 1, 1, 48128), 0);
    MG_CHECK_EQ(CALL(cuFuncSetAttribute)(add, (int)CUFUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449 - 1024),
                CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuFuncSetAttribute)(add, (int)CUFUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000), 0);
    MG_CHECK_EQ(LAUNCH(add, 1, 1, 100000), 0);
    MG_CHECK_EQ(LAUNCH(refused, 1, 1, 0), CUE_NOT_SUPPORTED);
    MG_CHECK_EQ(LAUNCH((cu_function)(void *)m, 1, 1, 0), CUE_INVALID_HANDLE);
    MG_CHECK_EQ(CALL(cuLaunchCooperativeKernel)(add, 1000000u, 1u, 1u, 128u, 1u, 1u, 0u, (cu_stream)NULL, params),
                CUE_COOPERATIVE_LAUNCH_TOO_LARGE);
    struct {
        cu_ptr p;
        uint32_t n, by;
    } buffer = {p, 1, 40};
    size_t bytes = sizeof buffer;
    void *extra[] = {CULAUNCH_PARAM_BUFFER_POINTER, &buffer, CULAUNCH_PARAM_BUFFER_SIZE, &bytes, CULAUNCH_PARAM_END};
    MG_CHECK_EQ(CALL(cuLaunchKernel)(add, 1u, 1u, 1u, 1u, 1u, 1u, 0u, (cu_stream)NULL, (void **)NULL, extra), 0);
    MG_CHECK_EQ(CALL(cuCtxSynchronize)(), 0); /* no refused launch has broken the context */
    MG_CHECK_EQ(*(uint32_t *)(uintptr_t)p, 44);
    CALL(cuMemFree_v2)(p);
    CALL(cuModuleUnload)(m);
}

MG_TEST(driver_occupancy_follows_the_published_rules)
{
    start_driver();
    cu_module m = load_fake();
    cu_function f = func(m, "add"); /* 32 registers, 1024 bytes of static shared memory */
    static const struct {
        int block;
        size_t dynamic;
        int want;
    } rows[] = {
        {1024, 0, 2},                 /* 64 warps an SM */
        {256, 0, 8},     {32, 0, 32}, /* block slots */
        {96, 0, 21},                  /* 64 / 3 */
        {128, 40000, 5},              /* 233472 / (1024 + 1024 + 40000 -> 42112) */
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        int n = -1;
        MG_CHECK_EQ(CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&n, f, rows[i].block, rows[i].dynamic), 0);
        MG_CHECK_EQ(n, rows[i].want);
    }
    int grid, block;
    MG_CHECK_EQ(CALL(cuOccupancyMaxPotentialBlockSize)(&grid, &block, f, (cu_block_to_shared_fn)NULL, (size_t)0, 0), 0);
    MG_CHECK_EQ(block, 1024);
    MG_CHECK_EQ(grid, 264);
    CALL(cuModuleUnload)(m);
}

static struct mg_launch_done noted;
static int n_noted;
static void take_note(void *user, const struct mg_launch_done *done)
{
    (void)user;
    noted = *done;
    n_noted++;
}

MG_TEST(driver_notes_a_launch_before_later_work)
{
    start_driver();
    cu_module m = load_fake();
    cu_ptr p = zeroed(4);
    n_noted = 0;
    mg_driver_note_next_launch(take_note, NULL);
    launch_by(m, "add", NULL, p, 1, 1);
    launch_by(m, "add", NULL, p, 1, 1); /* not noted */
    MG_CHECK_EQ(CALL(cuCtxSynchronize)(), 0);
    MG_CHECK_EQ(n_noted, 1);
    MG_CHECK_EQ(noted.cuda_error, 0);
    MG_CHECK(noted.end_ns >= noted.start_ns && noted.start_ns);
    mg_driver_note_next_launch(take_note, NULL);
    MG_CHECK(CALL(cuLaunchKernel)((cu_function)NULL, 1u, 1u, 1u, 1u, 1u, 1u, 0u, (cu_stream)NULL, (void **)NULL,
                                  (void **)NULL) != 0);
    launch_by(m, "add", NULL, p, 1, 1); /* the rejected launch took the note with it */
    MG_CHECK_EQ(CALL(cuCtxSynchronize)(), 0);
    MG_CHECK_EQ(n_noted, 1);
    CALL(cuMemFree_v2)(p);
    CALL(cuModuleUnload)(m);
}

MG_TEST(driver_pointer_attributes)
{
    start_driver();
    cu_ptr p = zeroed(100), managed = 0;
    void *host = NULL;
    unsigned type = 0;
    int is_managed = -1;
    MG_CHECK_EQ(CALL(cuMemAllocManaged)(&managed, (size_t)10, 1u), 0);
    MG_CHECK_EQ(CALL(cuMemHostAlloc)(&host, (size_t)10, 0u), 0);
    MG_CHECK_EQ(CALL(cuPointerGetAttribute)((void *)&type, (int)CUPTR_MEMORY_TYPE, p + 5), 0);
    MG_CHECK_EQ(type, CUMEM_DEVICE);
    MG_CHECK_EQ(CALL(cuPointerGetAttribute)((void *)&type, (int)CUPTR_MEMORY_TYPE, (cu_ptr)(uintptr_t)host), 0);
    MG_CHECK_EQ(type, CUMEM_HOST);
    MG_CHECK_EQ(CALL(cuPointerGetAttribute)((void *)&is_managed, (int)CUPTR_IS_MANAGED, managed), 0);
    MG_CHECK_EQ(is_managed, 1);
    MG_CHECK_EQ(CALL(cuPointerGetAttribute)((void *)&type, (int)CUPTR_MEMORY_TYPE, (cu_ptr)(uintptr_t)&type),
                CUE_INVALID_VALUE);
    cu_ptr base = 0;
    size_t bytes = 0;
    MG_CHECK_EQ(CALL(cuMemGetAddressRange_v2)(&base, &bytes, p + 99), 0);
    MG_CHECK(base == p && bytes == 100);
    char mine[100];
    MG_CHECK_EQ(CALL(cuMemHostRegister_v2)(mine, sizeof mine, 0u), 0);
    MG_CHECK_EQ(CALL(cuMemHostRegister_v2)(mine + 10, (size_t)1, 0u), CUE_HOST_MEMORY_ALREADY_REGISTERED);
    MG_CHECK_EQ(CALL(cuMemHostUnregister)(mine), 0);
    MG_CHECK_EQ(CALL(cuMemHostUnregister)(mine), CUE_HOST_MEMORY_NOT_REGISTERED);
    CALL(cuMemFree_v2)(p), CALL(cuMemFree_v2)(managed), CALL(cuMemFreeHost)(host);
}

/* It has none of the driver's threads: an error at once, as from NVIDIA's driver, no endless wait. */
MG_TEST(driver_refuses_a_forked_child)
{
    start_driver();
    int status = 0, n = 0;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(300);
        cu_ptr p;
        bool refused = CALL(cuInit)(0u) == CUE_NOT_INITIALIZED && CALL(cuDeviceGetCount)(&n) == CUE_NOT_INITIALIZED &&
                       CALL(cuMemAlloc_v2)(&p, (size_t)4) == CUE_NOT_INITIALIZED &&
                       CALL(cuCtxSynchronize)() == CUE_NOT_INITIALIZED;
        _exit(refused ? 0 : 1);
    }
    MG_CHECK_EQ(waitpid(pid, &status, 0), pid);
    MG_CHECK_EQ(status, 0);
    MG_CHECK_EQ(CALL(cuCtxSynchronize)(), 0); /* the parent goes on */
}

/* Last: it breaks a context for good (one of its own). */
MG_TEST(driver_fault_breaks_its_context_and_no_other)
{
    start_driver();
    cu_ctx mine;
    MG_CHECK_EQ(CALL(cuCtxCreate_v2)(&mine, 0u, 0), 0);
    cu_module m = load_fake();
    cu_ptr p = zeroed(4);
    MG_CHECK_EQ(CALL(cuLaunchKernel)(func(m, "fault"), 1u, 1u, 1u, 1u, 1u, 1u, 0u, (cu_stream)NULL, (void **)NULL,
                                     (void **)NULL),
                0);
    MG_CHECK_EQ(CALL(cuCtxSynchronize)(), CUE_ILLEGAL_ADDRESS);
    MG_CHECK_EQ(CALL(cuCtxSynchronize)(), CUE_ILLEGAL_ADDRESS);
    MG_CHECK_EQ(CALL(cuMemAlloc_v2)(&p, (size_t)4), CUE_ILLEGAL_ADDRESS);
    MG_CHECK_EQ(CALL(cuCtxDestroy_v2)(mine), 0);
    p = zeroed(4);
    m = load_fake();
    launch_by(m, "add", NULL, p, 1, 1);
    MG_CHECK_EQ(CALL(cuCtxSynchronize)(), 0);
    CALL(cuMemFree_v2)(p);
    CALL(cuModuleUnload)(m);
}
