/* Memory that both the host and kernels write: managed, and pinned memory that a kernel was handed. The host's stores
 * are no calls, so that before each launch what differs from what the capture has is written into it. Everything has
 * ended then, and the same was looked at when it had: what differs is the host's. What changed while a launch ran is
 * the launch's, if the process has no other threads. If it has, one of them may have stored it: the capture gets what
 * was left, so that a replay can go on from there. */
#include "inject/capture/capture.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread.h"
#include "inject/session.h"

enum what { THE_HOSTS, THE_LAUNCHS, ANYBODYS }; /* whose stores a difference is */

/* Memory of the program's own that it has given back without telling the driver: to kernels it is as good as freed. */
static bool is_gone(const struct mg_cap_area *a)
{
    enum { PAGES = 1024 };
    unsigned char in_memory[PAGES];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = a->at & ~(page - 1), end = a->at + a->bytes;
    for (; a->registered && at < end; at += PAGES * page)
        if (mincore((void *)(uintptr_t)at, MG_MIN(end - at, PAGES * page), in_memory)) return true;
    return false;
}

bool mg_shared_is_there(struct mg_cap_area *a)
{
    if (a->told && is_gone(a)) {
        PUT(MG_CAP_free, a->at);
        a->told = false;
    }
    return a->told;
}

/* now: its content. The capture learns what differs from what it has. */
static void tell(struct mg_cap_area *a, uint64_t off, const char *now, enum what what)
{
    uint64_t hash[2], n = MG_MIN(a->bytes - off, (uint64_t)MG_CAP_CHUNK), *known = &a->known[off / MG_CAP_CHUNK];
    mg_cap_hash(now, n, hash);
    if (hash[0] == *known) return;
    *known = hash[0];
    if (what == THE_HOSTS) PUT_CONTENT(MG_CAP_write, now, n, a->at + off, n);
    if (what == ANYBODYS) PUT_CONTENT(MG_CAP_left, now, n, a->at + off, n);
}

void mg_shared_refresh(struct mg_cap_area *a, const char *now)
{
    for (uint64_t off = 0; a->known && off < a->bytes; off += MG_CAP_CHUNK) tell(a, off, now + off, THE_HOSTS);
}

/* Beside other threads what is hashed must be what is written, so it is taken once. */
static void refresh(struct mg_cap_area *a, enum what what, bool alone)
{
    static char chunk[MG_CAP_CHUNK]; /* under the lock */
    if (!mg_shared_is_there(a)) return;
    for (uint64_t off = 0; a->known && off < a->bytes; off += MG_CAP_CHUNK) {
        const char *now = (const char *)(uintptr_t)a->at + off;
        if (!alone) now = memcpy(chunk, now, MG_MIN(a->bytes - off, (uint64_t)MG_CAP_CHUNK));
        tell(a, off, now, what);
    }
}

static void refresh_all(enum what what, bool alone)
{
    for (uint32_t i = 0; i < mg_capture.areas.n; i++)
        if (mg_capture.areas.at[i].told && mg_capture.areas.at[i].kind != MG_CAP_DEVICE)
            refresh(&mg_capture.areas.at[i], what, alone);
}

/* Threads that begin and end meanwhile are begun by others that are there before or behind. */
static bool is_alone(void)
{
    return !mg_thread_has_others(mg_capture.hardware);
}

void mg_shared_before(void)
{
    if (!mg_capture.shares || mg_capture.told_graph) return;
    mg_capture.alone = is_alone();
    if (mg_capture.lame || mg_check_wait(true))
        refresh_all(THE_HOSTS, mg_capture.alone);
    else
        mg_capture_miss("memory that the host writes cannot be read while a stream is being captured", true);
}

void mg_shared_after(void)
{
    if (!mg_capture.shares) return;
    bool alone = mg_capture.alone && is_alone();
    refresh_all(alone ? THE_LAUNCHS : ANYBODYS, alone);
}
