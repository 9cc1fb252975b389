/* Memory that both the host and kernels write: managed, and pinned memory that a kernel was handed. The host's stores
 * are no calls, so that before each launch what differs from what the capture has is written into it. Everything has
 * ended then, and the same was looked at when it had: what differs is the host's. */
#include "inject/capture/capture.h"

#include <sys/mman.h>
#include <unistd.h>

#include "inject/session.h"

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

void mg_shared_refresh(struct mg_cap_area *a, bool write)
{
    if (a->told && is_gone(a)) {
        PUT(MG_CAP_free, a->at);
        a->told = false;
    }
    if (!a->told) return;
    for (uint64_t off = 0; a->known && off < a->bytes; off += MG_CAP_CHUNK) {
        uint64_t hash[2], n = MG_MIN(a->bytes - off, (uint64_t)MG_CAP_CHUNK), *known = &a->known[off / MG_CAP_CHUNK];
        const char *now = (const char *)(uintptr_t)a->at + off;
        mg_cap_hash(now, n, hash);
        if (hash[0] == *known) continue;
        *known = hash[0];
        if (write) PUT_CONTENT(MG_CAP_write, now, n, a->at + off, n);
    }
}

static void refresh_all(bool write)
{
    for (uint32_t i = 0; i < mg_capture.areas.n; i++)
        if (mg_capture.areas.at[i].told && mg_capture.areas.at[i].kind != MG_CAP_DEVICE)
            mg_shared_refresh(&mg_capture.areas.at[i], write);
}

void mg_shared_before(void)
{
    if (!mg_capture.shares || mg_capture.told_graph) return;
    if (mg_capture.lame || mg_check_wait(true))
        refresh_all(true);
    else
        mg_capture_miss("memory that the host writes cannot be read while a stream is being captured", true);
}

void mg_shared_after(void)
{
    if (mg_capture.shares) refresh_all(false);
}
