/* After how many launches the program waited at once: what a host thread launched last is waited for before it launches
 * again: for the device, for that stream, or for an event. Such launches cost the time of a way to the device and back.
 * Waiting of copies is not looked at. */
#include "inject/waits.h"

#include "base/json.h"
#include "inject/hooks.h"
#include "inject/session.h"

static __thread struct {
    enum { NONE, RUNS, WAITED_FOR } state;
    cu_stream stream;
} last; /* of this thread's launches */
static uint64_t waited;

void mg_waits_launched(cu_stream stream)
{
    if (last.state == WAITED_FOR) __atomic_fetch_add(&waited, 1, __ATOMIC_RELAXED);
    last.state = RUNS;
    last.stream = stream;
}

static cu_result note(cu_result rc, bool of_last)
{
    if (of_last && last.state == RUNS && rc == CUE_SUCCESS && mg_session.active && !mg_inside) last.state = WAITED_FOR;
    return rc;
}

void mg_waits_write(void)
{
    uint64_t n = __atomic_load_n(&waited, __ATOMIC_RELAXED);
    struct mg_buf text = MG_BUF_INIT;
    struct mg_json j;
    if (!n) return;
    mg_json_init(&j, &text, 0);
    mg_json_obj(&j);
    mg_json_key(&j, "launches");
    mg_json_u64(&j, n);
    mg_json_end(&j, '}');
    mg_store_tool_json(mg_session.store, "margay", "waited_for", text.at);
    mg_buf_release(&text);
}

MG_HOOK(cuCtxSynchronize, void)
{
    return note(MG_REAL(cuCtxSynchronize)(), true);
}
MG_HOOK(cuCtxSynchronize_v2, void *ctx)
{
    return note(MG_REAL(cuCtxSynchronize_v2)(ctx), true);
}
MG_HOOK(cuStreamSynchronize, cu_stream stream)
{
    return note(MG_REAL(cuStreamSynchronize)(stream), stream == last.stream);
}
MG_HOOK(cuStreamSynchronize_ptsz, cu_stream stream)
{
    return note(MG_REAL(cuStreamSynchronize_ptsz)(stream), stream == last.stream);
}
MG_HOOK(cuEventSynchronize, void *event)
{
    return note(MG_REAL(cuEventSynchronize)(event), true);
}
