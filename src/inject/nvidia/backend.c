/* NVIDIA's driver as a backend: opened by the path that the launcher found, with its own calls to
 * itself kept inside (RTLD_DEEPBIND; sanitizers cannot live with that flag). What a launch on a GPU
 * needs beyond passing calls on is in the gpu_ files; nv_ files know neither tools nor PTX. */
#include "inject/nvidia/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "inject/backend.h"
#include "inject/channels.h"
#include "inject/gate.h"
#include "inject/hooks.h"
#include "inject/session.h"
#include "inject/symbols.h"
#include "record/channel.h"

#define DRAIN_AT_DEATH_NS 2000000000u

static void *driver;
cu_result cuInit(unsigned flags); /* as we export it */

static const char *kind_nvidia(const struct mg_config *c)
{
    (void)c;
    return "nvidia";
}

static void *real_symbol(const char *name)
{
    return driver ? dlsym(driver, name) : NULL;
}

static void enter_thread(void)
{
    mg_inside++; /* what this thread calls is never the application's */
}

static void pass_ends(void)
{
    mg_gpu_graph_pass();
    mg_frames_look();
    mg_gpu_known_pass();
}

static bool open_real(const struct mg_config *c)
{
    static char why[100];
    int flags = RTLD_NOW | RTLD_LOCAL;
    const char *path = c->real ? c->real : "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
#ifndef MG_SANITIZER
    flags |= RTLD_DEEPBIND;
#endif
    driver = dlopen(path, flags);
    if (driver && real_symbol("cuInit") == (void *)cuInit) { /* whoever stands in for dlopen gives us ourselves */
        void *(*open_past)(const char *, int) = (void *(*)(const char *, int))mg_libc_symbol("dlopen");
        driver = open_past ? open_past(path, flags) : NULL;
        if (driver && real_symbol("cuInit") == (void *)cuInit) {
            mg_session_say("the NVIDIA driver cannot be opened beside what is preloaded here");
            return false;
        }
    }
    if (!driver) {
        mg_session_say("the NVIDIA driver cannot be opened: %s", dlerror());
        return false;
    }
    const char *missing = mg_nv_open(&(struct mg_nv_config){.size = sizeof(struct mg_nv_config),
                                                            .symbol = real_symbol,
                                                            .say = mg_session_say_line,
                                                            .thread_begins = enter_thread,
                                                            .is_hurried = mg_gate_hurries,
                                                            .takes_turns = mg_gate_has_turns,
                                                            .pass_begins = mg_gpu_announce,
                                                            .pass_ends = pass_ends,
                                                            .driver_path = path});
    if (missing) {
        snprintf(why, sizeof why, mg_reason_text(MG_REASON_driver_lacks), missing);
        mg_session.cannot = why;
    }
    return true;
}

static void drain(uint64_t timeout_ns)
{
    mg_gpu_ahead_stop();
    static bool in_vain; /* a process that leaves drains more than once, but waits only once */
    if (!mg_session.cannot && !mg_nv_drain(in_vain ? 0 : timeout_ns)) in_vain = true;
}

static void collect(void)
{
    if (!mg_session.cannot) mg_nv_collect();
}

static void flush(uint64_t timeout_ns)
{
    if (!mg_session.cannot) mg_nv_flush(timeout_ns);
}

static void context_ends(void *ctx, int device)
{
    if (mg_session.cannot) return;
    bool destroyed = ctx != NULL;
    ctx = ctx ? ctx : mg_nv_ctx_primary(device);
    if (ctx) mg_gpu_ahead_leave(ctx, destroyed);
    if (ctx) mg_nv_ctx_ends(ctx, DRAIN_AT_DEATH_NS);
}

static void context_ended(void *ctx, int device, bool surely)
{
    if (mg_session.cannot) return;
    if (!surely && mg_nv_ctx_is_active(device)) return;
    ctx = ctx ? ctx : mg_nv_ctx_primary(device);
    mg_session.generation++;
    if (!ctx) return;
    mg_gpu_forget_stack(ctx);
    mg_nv_ctx_gone(ctx);
}

/* ---- channels: kernels copy full pages to the host's memory, the rest is read when they have ended ---- */

static void channel_size(void *where, uint32_t *rings, uint32_t *pages)
{
    uint32_t n, warps = mg_nv_warps(where, &n);
    for (*rings = 1; *rings < n;) *rings *= 2;
    *pages = warps + (8 + MG_CHANNEL_LISTED) * n +
             1024; /* held by warps, being filled or waiting to be sent, on their way */
}
static void *channel_where(void)
{
    return mg_session.cannot ? NULL : mg_nv_ctx_current();
}
static uint64_t channel_memory(void *where, size_t bytes)
{
    return mg_nv_memory(where, bytes);
}
static void *channel_host(void *where, size_t bytes)
{
    return mg_nv_host_memory(where, bytes);
}
static bool channel_read(void *where, void *to, uint64_t from, size_t bytes)
{
    return !mg_nv_ctx_is_broken(where) && mg_nv_read(where, to, from, bytes);
}
static bool channel_begin_read(void *where, void *to, uint64_t from, size_t bytes)
{
    return !mg_nv_ctx_is_broken(where) && mg_nv_begin_read(where, to, from, bytes);
}
static bool channel_end_reads(void *where)
{
    return mg_nv_end_reads(where);
}
static bool channel_write(void *where, uint64_t to, const void *data, size_t bytes)
{
    return mg_nv_write(where, to, data, bytes);
}
static bool channel_is_of(void *where, void *ctx, int device)
{
    return mg_nv_ctx_is(where, ctx ? ctx : mg_nv_ctx_primary(device));
}
static bool channel_is_quiet(void *where)
{
    return mg_nv_ctx_is_quiet(where);
}
static void channel_enter(void *where)
{
    mg_nv_enter(where);
}

static const struct mg_channel_io channel_nvidia = {
    .size = channel_size,
    .where = channel_where,
    .memory = channel_memory,
    .host = channel_host,
    .read = channel_read,
    .begin_read = channel_begin_read,
    .end_reads = channel_end_reads,
    .write = channel_write,
    .is_of = channel_is_of,
    .is_quiet = channel_is_quiet,
    .enter = channel_enter,
};

const struct mg_backend mg_backend_nvidia = {
    MG_BACKEND_DEFAULTS,
    .caps = MG_BACKEND_HARDWARE | MG_BACKEND_COMPILES_APART | MG_BACKEND_LOOKS,
    .kind = kind_nvidia,
    .open = open_real,
    .symbol = real_symbol,
    .channel = &channel_nvidia,
    .global = mg_gpu_global,
    .function_address = mg_gpu_function_address,
    .adapt = mg_twin_for_gpu,
    .table = mg_gpu_table,
    .known = mg_gpu_known_fill,
    .compile = mg_gpu_compile,
    .is_for_any = mg_gpu_is_for_any,
    .ahead = mg_gpu_ahead,
    .may_load = mg_gpu_may_load,
    .load = mg_gpu_load,
    .unload = mg_gpu_unload,
    .why_not = mg_gpu_why_not,
    .most_registers = mg_gpu_most_registers,
    .block_take = mg_gpu_take,
    .block_give = mg_gpu_give,
    .write = mg_gpu_write,
    .peek = mg_gpu_peek,
    .poke = mg_gpu_poke,
    .send = mg_gpu_send,
    .node_taken = mg_gpu_node_taken,
    .graph_stays = mg_gpu_graph_stays,
    .node_changed = mg_gpu_node_changed,
    .drain = drain,
    .collect = collect,
    .flush = flush,
    .context_ends = context_ends,
    .context_ended = context_ended,
};
