/* Contexts, on as many devices as the program used. Work is sent in one order: where it changes stream or context, an
 * event orders the two, so what was sent last ends last. */
#include "replay/replay.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/env.h"

enum { MOST_CONTEXTS = 256, MOST_DEVICES = 16, MOST_STREAMS = 1024 };

/* A capture names its devices by the program's numbers; here they are counted as they come. */
static uint32_t place_of(const struct mg_replay *r, uint64_t device)
{
    uint32_t k = 0;
    while (k < r->devices.n && r->devices.at[k] != device) k++;
    return k;
}

const char *mg_replay_scan_context(struct mg_replay *r, const struct mg_cap_op *op)
{
    if (place_of(r, op->words[1]) == r->devices.n) *mg_vec_push(&r->devices) = op->words[1];
    return op->words[0] && r->devices.n <= MOST_DEVICES ? NULL : "it names a context that cannot be";
}

/* The first of a device is its primary one. */
static int make(struct mg_replay *r, uint64_t number, uint64_t device)
{
    struct mg_context c = {.number = number, .device = device};
    cu_device d;
    bool primary = true;
    for (uint32_t k = 0; k < r->contexts.n; k++) primary &= r->contexts.at[k].device != device;
    int status = mg_replay_call(r, mg_cu.cuDeviceGet(&d, (int)place_of(r, device)), "cuDeviceGet");
    if (!status)
        status = mg_replay_call(
            r, primary ? mg_cu.cuDevicePrimaryCtxRetain(&c.handle, d) : mg_cu.cuCtxCreate_v2(&c.handle, 0, d),
            "making a context");
    if (!status) status = mg_replay_call(r, mg_cu.cuCtxSetCurrent(c.handle), "cuCtxSetCurrent");
    if (!status) status = mg_replay_call(r, mg_cu.cuEventCreate(&c.event, CUEVENT_DISABLE_TIMING), "cuEventCreate");
    *mg_vec_push(&c.streams) = NULL;
    *mg_vec_push(&r->contexts) = c;
    return status;
}

int mg_replay_start(struct mg_replay *r)
{
    const char *missing;
    int n = 0;
    char devices[16];
    snprintf(devices, sizeof devices, "%u", r->devices.n);
    if (r->devices.n > 1)
        setenv(mg_env_name(MG_ENV_DEVICES), devices, 0); /* cpu and emu show as many as they are told */
    setenv(mg_env_name(MG_ENV_CAPTURE), "replay", 1);    /* their own memory keeps away from the program's, too */
    if (!mg_replay_driver_open(&missing)) return mg_replay_fail(r, MG_REPLAY_DEVICE, "the driver lacks %s", missing);
    int status = mg_replay_call(r, mg_cu.cuInit(0), "cuInit");
    if (!status) status = mg_replay_call(r, mg_cu.cuDeviceGetCount(&n), "cuDeviceGetCount");
    if (!status && r->devices.n > (uint32_t)n)
        return mg_replay_fail(r, MG_REPLAY_DEVICE, "the program used %u devices, and here %s %d", r->devices.n,
                              n == 1 ? "is" : "are", n);
    return status ? status : make(r, 0, r->devices.n ? r->devices.at[0] : 0);
}

/* The context of before the capture named one becomes the first that it names. */
int mg_replay_context(struct mg_replay *r, const struct mg_cap_op *op)
{
    uint64_t number = op->words[0], device = op->words[1];
    uint32_t k = 0;
    while (k < r->contexts.n && r->contexts.at[k].number != number) k++;
    if (k == r->contexts.n && !r->contexts.at[0].number) {
        r->contexts.at[k = 0].number = number;
    } else if (k == r->contexts.n) {
        if (k == MOST_CONTEXTS) return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: it has too many contexts", r->path);
        if (make(r, number, device)) return r->status;
    }
    if (r->contexts.at[k].device != device)
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: context %llu is on two devices", r->path,
                              (unsigned long long)number);
    return mg_replay_go(r, k);
}

int mg_replay_go(struct mg_replay *r, uint32_t context)
{
    r->context = context;
    return mg_replay_call(r, mg_cu.cuCtxSetCurrent(r->contexts.at[context].handle), "cuCtxSetCurrent");
}

int mg_replay_device(const struct mg_replay *r)
{
    return (int)place_of(r, r->contexts.at[r->context].device);
}

/* What is sent to it comes behind all that was sent before. Of very many streams some share one. */
cu_stream mg_replay_enter(struct mg_replay *r, uint64_t stream)
{
    stream %= MOST_STREAMS;
    struct mg_context *c = &r->contexts.at[r->context], *last = &r->contexts.at[r->busy];
    cu_stream from = last->streams.n > r->stream ? last->streams.at[r->stream] : NULL;
    uint32_t now = r->context;
    if (r->busy != now || r->stream != stream) {
        int status = r->busy != now ? mg_replay_go(r, r->busy) : 0;
        if (!status) status = mg_replay_call(r, mg_cu.cuEventRecord(last->event, from), "recording an event");
        if (r->busy != now && !status) status = mg_replay_go(r, now);
    }
    while (c->streams.n <= stream) {
        cu_stream s = NULL;
        if (mg_replay_call(r, mg_cu.cuStreamCreate(&s, CUSTREAM_NON_BLOCKING), "making a stream")) return NULL;
        *mg_vec_push(&c->streams) = s;
    }
    cu_stream to = c->streams.at[stream];
    if ((r->busy != now || r->stream != stream) && !r->status)
        mg_replay_call(r, mg_cu.cuStreamWaitEvent(to, last->event, 0), "waiting for an event");
    r->busy = now;
    r->stream = stream;
    return to;
}

/* Copies of the host's have no stream of their own: they follow in the last one, if it is of this context. */
cu_stream mg_replay_last(struct mg_replay *r)
{
    return mg_replay_enter(r, r->busy == r->context ? r->stream : 0);
}

int mg_replay_settle(struct mg_replay *r)
{
    uint32_t now = r->context;
    int status = r->busy != now ? mg_replay_go(r, r->busy) : 0;
    if (!status)
        status = mg_replay_call(r, mg_cu.cuCtxSynchronize(), "launch %llu (%s)",
                                (unsigned long long)(r->n_launches - (r->n_launches > 0)),
                                r->last_kernel ? r->last_kernel : "no kernel");
    return r->busy != now && !status ? mg_replay_go(r, now) : status;
}
