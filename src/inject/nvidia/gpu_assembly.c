/* How long the driver's assembler takes for twins, and a line for who waits: after a second, and every ten seconds
 * that it goes on. A thread says it, which is there while large texts are under way. */
#include "inject/nvidia/gpu.h"

#include <time.h>

#include "base/io.h"
#include "base/thread.h"
#include "inject/hooks.h"
#include "inject/session.h"
#include "inject/twin.h"

#define LARGE_BYTES 65536u /* shorter texts take no second */
#define FIRST_NS    1000000000u
#define AGAIN_NS    10000000000u
#define LOOK_NS     100000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below */
static uint32_t n_large;                                 /* under way */
static uint64_t since;                                   /* there are any */
static bool watched;

static void *watch(void *none)
{
    uint64_t say_after = FIRST_NS;
    (void)none;
    mg_inside++;
    mg_thread_name("margay-waits");
    for (;;) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        pthread_mutex_lock(&lock);
        uint32_t n = n_large;
        uint64_t ns = mg_now_ns() - since;
        if (!n) watched = false;
        pthread_mutex_unlock(&lock);
        if (!n) return NULL;
        if (ns < say_after) continue;
        mg_session_say("the driver assembles the instrumented code of %u %s, %.0f s so far; it is kept for other runs",
                       (unsigned)n, n == 1 ? "kernel" : "kernels", (double)ns * 1e-9);
        say_after = ns / AGAIN_NS * AGAIN_NS + AGAIN_NS;
    }
}

uint64_t mg_gpu_assembly_begin(size_t bytes)
{
    uint64_t now = mg_now_ns();
    if (bytes < LARGE_BYTES || mg_session.config.quiet) return now;
    pthread_mutex_lock(&lock);
    if (!n_large++) since = now;
    if (!watched) watched = mg_thread_start(watch, NULL, 0, NULL);
    pthread_mutex_unlock(&lock);
    return now;
}

/* The time line of a first run. */
void mg_gpu_assembly_say(const char *kernel, size_t bytes, uint64_t began, const char *how)
{
    uint64_t now = mg_now_ns(), first = mg_session.start_ns;
    if (mg_session.config.verbose)
        mg_session_say("%.3f to %.3f s: %s, %zu KB of text, %s", (double)(began - first) * 1e-9,
                       (double)(now - first) * 1e-9, kernel, bytes / 1024, how);
}

void mg_gpu_assembly_end(size_t bytes, uint64_t began)
{
    mg_jit_spent(mg_now_ns() - began);
    if (bytes < LARGE_BYTES || mg_session.config.quiet) return;
    pthread_mutex_lock(&lock);
    n_large--;
    pthread_mutex_unlock(&lock);
}
