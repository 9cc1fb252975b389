#include "inject/capture/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/io.h"
#include "device/mem.h"
#include "inject/backend.h"
#include "inject/config.h"
#include "inject/session.h"

struct mg_capture mg_capture;
void *mg_capture_next[MG_FN_COUNT];

#define CAP(name) extern cu_result mg_capture_##name();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include "inject/capture/entries.def"
#pragma GCC diagnostic pop
#undef CAP
static void *const table[MG_FN_COUNT] = {
#define CAP(name) [MG_FN_##name] = (void *)mg_capture_##name,
#include "inject/capture/entries.def"
#undef CAP
};

void *mg_capture_target(unsigned entry)
{
    if (!mg_capture.wanted || !table[entry]) return NULL;
    mg_capture_next[entry] = mg_hook_table[entry] ? mg_hook_table[entry] : mg_slots[entry];
    return table[entry];
}

void mg_capture_prepare(void)
{
    pthread_mutexattr_t recursive;
    const char *check = mg_config_env(mg_env_name(MG_ENV_CAPTURE));
    if (!check || !*check || !mg_session.config.dir) return;
    if (!strcmp(check, "replay")) { /* margay-replay: its own memory lies where no program has any */
        if (mg_session.backend == &mg_backend_own) mg_mem_init_at(MG_CAP_REPLAY_ARENA, MG_CAP_HEAP);
        return;
    }
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mg_capture.lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    mg_capture.check = !strcmp(check, "all")   ? MG_CAPTURE_CHECK_ALL
                       : !strcmp(check, "end") ? MG_CAPTURE_CHECK_END
                                               : MG_CAPTURE_CHECK_AUTO;
    mg_capture.wanted = true;
    if (mg_session.backend == &mg_backend_own && !mg_mem_init_at(MG_CAP_ARENA, MG_CAP_HEAP)) {
        mg_session_error("nothing is captured: the addresses from 0x%llx on are not free in this process",
                         (unsigned long long)MG_CAP_ARENA);
        mg_capture.wanted = false;
    }
}

/* Device kind and command line, so that a capture says what it is of. */
static void put_run(void)
{
    char line[4096];
    const char *kind = mg_session.backend->kind(&mg_session.config);
    FILE *f = fopen("/proc/self/cmdline", "re");
    size_t n = f ? fread(line, 1, sizeof line, f) : 0;
    if (f) fclose(f);
    uint64_t words[] = {!strcmp(kind, "emu") ? 0 : !strcmp(kind, "cpu") ? 1 : 2, mg_session.sm, (uint64_t)getpid()};
    mg_capture_put(MG_CAP_run, words, 3, line, n);
}

void mg_capture_begin(void)
{
    char path[4200];
    struct mg_diag d = MG_DIAG_INIT;
    if (!mg_capture.wanted) return;
    snprintf(path, sizeof path, "%s/capture-%u.mgc", mg_session.config.dir, (unsigned)getpid());
    for (unsigned n = 2; n < 1000 && !access(path, F_OK); n++) /* what was this process before it called exec */
        snprintf(path, sizeof path, "%s/capture-%u-%u.mgc", mg_session.config.dir, (unsigned)getpid(), n);
    if (mg_cap_writer_open(&mg_capture.out, path, &d)) {
        mg_session_error("nothing is captured: %s", mg_diag_first(&d, MG_ERR_IO));
        mg_diag_release(&d);
        return;
    }
    mg_capture.hardware = mg_session_can(MG_BACKEND_HARDWARE);
    mg_capture.begin_ns = mg_check_now_ns();
    mg_capture.on = true;
    put_run();
}

static void say_failed(void)
{
    mg_session_error("the capture is not whole: %s", strerror(mg_capture.out.error));
}

void mg_capture_end(void)
{
    if (!mg_capture.on || (uint32_t)getpid() != mg_session.pid) return;
    mg_inside++;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5; /* another thread's operation ends in time, or the file stays torn */
    if (!pthread_mutex_timedlock(&mg_capture.lock, &until)) {
        if (mg_check_wait(true))
            for (uint32_t i = 0; i < mg_capture.areas.n; i++) mg_check_area(&mg_capture.areas.at[i], true);
        mg_capture.on = false;
        if (!mg_cap_writer_close(&mg_capture.out)) say_failed();
        pthread_mutex_unlock(&mg_capture.lock);
    }
    mg_inside--;
}

bool mg_capture_looks(void)
{
    return mg_capture.on && !mg_inside;
}
void mg_capture_lock(void)
{
    pthread_mutex_lock(&mg_capture.lock);
    mg_inside++;
}
void mg_capture_unlock(void)
{
    mg_inside--;
    pthread_mutex_unlock(&mg_capture.lock);
}

static void after_put(enum mg_cap_op_kind kind)
{
    static bool said;
    if (kind == MG_CAP_launch || kind == MG_CAP_write || kind == MG_CAP_copy || kind == MG_CAP_set ||
        kind == MG_CAP_copy3d)
        mg_capture.n_changes++;
    if (mg_capture.out.failed && !said) {
        said = true;
        say_failed();
    }
}

/* Does where it is done matter? */
static bool has_place(enum mg_cap_op_kind kind)
{
    return kind != MG_CAP_run && kind != MG_CAP_uncaptured && kind != MG_CAP_image && kind != MG_CAP_check &&
           kind != MG_CAP_left && kind != MG_CAP_context;
}

void mg_capture_put(enum mg_cap_op_kind kind, const uint64_t *words, uint32_t n, const void *payload, size_t bytes)
{
    if (!mg_capture.on) return;
    if (has_place(kind)) mg_cap_context_told();
    mg_cap_put(&mg_capture.out, &(struct mg_cap_op_in){kind, words, n, payload, bytes});
    after_put(kind);
}

void mg_capture_put_content(enum mg_cap_op_kind kind, const uint64_t *words, uint32_t n, const void *data,
                            uint64_t bytes)
{
    if (!mg_capture.on) return;
    if (has_place(kind)) mg_cap_context_told();
    mg_cap_put_content(&mg_capture.out, &(struct mg_cap_op_in){kind, words, n, NULL, 0}, data, bytes);
    after_put(kind);
}

uint32_t mg_capture_miss(const char *why, bool sticky)
{
    static struct {
        const char *why;
        uint32_t number;
    } known[64]; /* texts are literals */
    uint32_t k = 0;
    while (k < MG_COUNT_OF(known) - 1 && known[k].why && strcmp(known[k].why, why)) k++;
    if (!known[k].why) {
        known[k].why = why;
        known[k].number = ++mg_capture.n_reasons;
        PUT_TEXT(MG_CAP_uncaptured, why, known[k].number);
    }
    if (sticky && !mg_capture.sticky) mg_capture.sticky = known[k].number;
    return known[k].number;
}
