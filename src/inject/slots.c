/* The slots behind the exported entries: filled once, at the first call of any of them, from the
 * backend that the configuration names. Before that nothing of us has run: constructors do nothing,
 * since the library is loaded into every child of the application, shells included.
 * Not here: which entries are hooked (hooks.def) and the jumps themselves (scripts/gen-thunks). */
#include "inject/hooks.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/env.h"
#include "base/io.h"
#include "base/map.h"
#include "inject/backend.h"
#include "inject/capture/capture.h"
#include "inject/range.h"
#include "inject/session.h"
#include "inject/steps.h"
#include "inject/timeline.h"
#include "tool/spec.h"

static struct mg_map by_address; /* what a slot holds -> entry */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void write_line(const char *line)
{
    /* one write, so that lines of several threads and processes do not mix */
    char text[1400];
    int n = snprintf(text, sizeof text, "margay: %s\n", line);
    if (n < 0) return;
    if (n >= (int)sizeof text) {
        n = (int)sizeof text - 1;
        text[n - 1] = '\n';
    }
    ssize_t done = write(STDERR_FILENO, text, (size_t)n);
    (void)done;
}

void mg_session_say_line(const char *line)
{
    if (!mg_session.config.quiet) write_line(line);
}

static void say(const char *fmt, va_list ap)
{
    char line[1300];
    vsnprintf(line, sizeof line, fmt, ap);
    write_line(line);
}

void mg_session_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
}

void mg_session_say(const char *fmt, ...)
{
    if (mg_session.config.quiet) return;
    va_list ap;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
}

/* An entry that the backend lacks: named once when the application calls it, refused every time. */
cu_result mg_inject_missing(unsigned entry)
{
    static atomic_uchar said[MG_FN_COUNT];
    if (entry < MG_FN_COUNT && !mg_inside && !atomic_exchange(&said[entry], 1))
        mg_session_say("%s is not implemented on this device; the program gets CUDA_ERROR_NOT_SUPPORTED",
                       mg_cu_entries[entry].name);
    return CUE_NOT_SUPPORTED;
}

static const struct mg_backend *pick_backend(const struct mg_config *c)
{
    if (c->device && !strcmp(c->device, "nvidia")) return &mg_backend_nvidia;
    return &mg_backend_own;
}

static void tell_of_environment(void)
{
    char text[200];
    for (unsigned e = 0; e < MG_ENV_COUNT; e++)
        if (mg_env_wrong((enum mg_env)e, text, sizeof text)) mg_session_say("%s; the default is used", text);
}

static void fill(void)
{
    struct mg_session *s = &mg_session;
    s->start_ns = mg_now_ns();
    mg_config_from_env(&s->config);
    tell_of_environment();
    mg_cache_hear(mg_session_say_line);
    s->backend = pick_backend(&s->config);
    mg_capture_prepare();
    mg_window_begin(s->config.range, s->start_ns);
    if (s->config.dir && mg_tool_spec_lists(s->config.tools, "timeline")) mg_timeline_prepare();
    if (s->config.dir && mg_tool_spec_lists(s->config.tools, "trace")) mg_steps_prepare();
    if (s->config.dir &&
        (mg_tool_spec_lists(s->config.tools, "communication") || mg_tool_spec_lists(s->config.tools, "cache")))
        mg_steps_follow();
    mg_inside++;
    bool ok = s->backend->open(&s->config);
    for (unsigned i = 0; i < MG_FN_COUNT; i++) {
        void *p = ok ? s->backend->symbol(mg_cu_entries[i].name) : NULL;
        if (p) mg_map_set(&by_address, (uint64_t)(uintptr_t)p, i);
        mg_slots[i] = p ? p : mg_missing_table[i];
    }
    mg_calls_fill(mg_timeline.on || mg_steps_on);
    if (!mg_timeline.on && mg_steps_on) mg_calls_choose((const bool[MG_FN_COUNT]){0});
    mg_inside--;
}

void mg_inject_ready(void)
{
    pthread_once(&once, fill);
}

int mg_slot_find(const void *address)
{
    uint64_t entry;
    return mg_map_get(&by_address, (uint64_t)(uintptr_t)address, &entry) ? (int)entry : -1;
}
