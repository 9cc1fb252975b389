/* Work of the host in streams: host functions, callbacks, values that a stream waits for, copies into pinned memory.
 * What they fill a copy from pinned memory reads when it runs, not when it is called: it is waited for. */
#include "inject/capture/capture.h"

#include "inject/streams.h"

#define NOT_SETTLED "copies from pinned memory that unfinished work may fill are not captured"

/* Pageable memory is read, and written, before the call returns. */
static bool is_pinned(const void *p)
{
    return mg_cap_area_find((uintptr_t)p) != NULL;
}

void mg_host_fills(const void *to)
{
    mg_capture.host_works |= is_pinned(to);
}

bool mg_host_reads(const void *from, bool waited)
{
    if (waited || !mg_capture.host_works || !is_pinned(from) || mg_check_wait(true)) return true;
    mg_capture_miss(NOT_SETTLED, true);
    return false;
}

static bool begin(cu_stream s, bool per_thread)
{
    if (!mg_capture_looks() || mg_cap_is_capturing(s, per_thread)) return false;
    mg_capture_lock();
    mg_check_stream(STREAM_OF(s, per_thread));
    mg_capture.host_works = true;
    mg_inside--;
    return true;
}
static cu_result end(cu_result rc)
{
    mg_inside++;
    mg_capture_unlock();
    return rc;
}
#define IN_STREAM(name, pt, call) return begin(s, pt) ? end(NEXT(name) call) : NEXT(name) call

#define HOST_FUNC(name, pt)                                                                                            \
    MG_CAPTURE(name, cu_stream s, cu_host_fn fn, void *user)                                                           \
    {                                                                                                                  \
        IN_STREAM(name, pt, (s, fn, user));                                                                            \
    }
HOST_FUNC(cuLaunchHostFunc, false)
HOST_FUNC(cuLaunchHostFunc_ptsz, true)
#define CALLBACK(name, pt)                                                                                             \
    MG_CAPTURE(name, cu_stream s, cu_stream_fn fn, void *user, unsigned flags)                                         \
    {                                                                                                                  \
        IN_STREAM(name, pt, (s, fn, user, flags));                                                                     \
    }
CALLBACK(cuStreamAddCallback, false)
CALLBACK(cuStreamAddCallback_ptsz, true)
#define WAIT_VALUE(name, pt, T)                                                                                        \
    MG_CAPTURE(name, cu_stream s, cu_ptr at, T value, unsigned flags)                                                  \
    {                                                                                                                  \
        IN_STREAM(name, pt, (s, at, value, flags));                                                                    \
    }
WAIT_VALUE(cuStreamWaitValue32, false, uint32_t)
WAIT_VALUE(cuStreamWaitValue32_ptsz, true, uint32_t)
WAIT_VALUE(cuStreamWaitValue32_v2, false, uint32_t)
WAIT_VALUE(cuStreamWaitValue32_v2_ptsz, true, uint32_t)
WAIT_VALUE(cuStreamWaitValue64, false, uint64_t)
WAIT_VALUE(cuStreamWaitValue64_ptsz, true, uint64_t)
WAIT_VALUE(cuStreamWaitValue64_v2, false, uint64_t)
WAIT_VALUE(cuStreamWaitValue64_v2_ptsz, true, uint64_t)
