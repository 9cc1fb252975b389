/* Allocations at the addresses that the capture names, whatever memory they were: address ranges are reserved before
 * anything runs, pages are mapped when an allocation needs them, and stay. */
#include "replay/replay.h"
#include "base/search.h"

#include <string.h>

/* What is mapped for an allocation: in the arena more than it, on both sides. */
struct mg_range_of mg_replay_span(uint64_t at, uint64_t bytes)
{
    uint64_t into = at - MG_CAP_ARENA;
    if (into >= MG_CAP_ARENA_BYTES) return (struct mg_range_of){at, at + bytes};
    return (struct mg_range_of){at - MG_MIN(into, MG_CAP_MARGIN), at + bytes + MG_CAP_MARGIN};
}

static bool reserve_at(struct mg_replay *r, uint64_t lo, uint64_t hi)
{
    cu_ptr got = 0;
    if (hi <= lo || mg_cu.cuMemAddressReserve(&got, hi - lo, r->granule, lo, 0) != CUE_SUCCESS) return false;
    if (got != lo) mg_cu.cuMemAddressFree(got, hi - lo);
    return got == lo;
}

/* Ranges come in order. A driver may not look at where a small one is asked for, and begin at the next multiple of 32
 * MiB (an H200's: not at 2 MiB, but at 1 GiB). */
int mg_replay_reserve(struct mg_replay *r, uint64_t lo, uint64_t hi)
{
    static const struct cu_alloc_prop prop = {.type = 1, .location = {CULOC_DEVICE, 0}};
    enum { BLOCK = 32 << 20, LOOKED_AT = 1 << 30 };
    if (!r->granule &&
        mg_replay_call(r, mg_cu.cuMemGetAllocationGranularity(&r->granule, &prop, 0), "memory at fixed addresses"))
        return r->status;
    lo = MG_MAX(lo & ~((uint64_t)r->granule - 1), r->reserved);
    hi = (hi + r->granule - 1) & ~((uint64_t)r->granule - 1);
    if (hi <= lo) return 0; /* within the one before */
    bool there = reserve_at(r, lo, hi);
    if (!there) {
        uint64_t from = MG_MAX(lo & ~(uint64_t)(BLOCK - 1), r->reserved);
        uint64_t to = MG_MAX((hi + BLOCK - 1) & ~(uint64_t)(BLOCK - 1), from + LOOKED_AT);
        there = reserve_at(r, from, to);
        hi = there ? to : hi;
    }
    if (!there)
        return mg_replay_fail(
            r, MG_REPLAY_DEVICE,
            "the addresses from 0x%llx to 0x%llx, where the program had memory, are not free in this process",
            (unsigned long long)lo, (unsigned long long)hi);
    r->reserved = hi;
    return 0;
}

/* Pages from lo on that are not there yet, as many as lie in a row. */
static int map_run(struct mg_replay *r, uint64_t lo, uint64_t bytes)
{
    cu_mem_handle h;
    struct cu_alloc_prop prop = {.type = 1, .location = {CULOC_DEVICE, mg_replay_device(r)}};
    struct cu_access access = {prop.location, CUACCESS_READWRITE};
    int status =
        mg_replay_call(r, mg_cu.cuMemCreate(&h, bytes, &prop, 0), "memory of %llu bytes", (unsigned long long)bytes);
    if (!status)
        status = mg_replay_call(r, mg_cu.cuMemMap(lo, bytes, 0, h, 0), "memory at 0x%llx", (unsigned long long)lo);
    if (!status)
        status = mg_replay_call(r, mg_cu.cuMemSetAccess(lo, bytes, &access, 1), "access to memory at 0x%llx",
                                (unsigned long long)lo);
    for (int d = 0; !status && d < (int)r->devices.n; d++) /* others reach it where the machine lets them */
        if (d != prop.location.id)
            mg_cu.cuMemSetAccess(lo, bytes, &(struct cu_access){{CULOC_DEVICE, d}, CUACCESS_READWRITE}, 1);
    if (!status) mg_cu.cuMemRelease(h);
    for (uint64_t p = lo; p < lo + bytes; p += r->granule) mg_map_set(&r->pages, p, 0);
    return status;
}

static int map_all(struct mg_replay *r, uint64_t lo, uint64_t hi)
{
    for (uint64_t p = lo; p < hi; p += r->granule) {
        uint64_t end = p;
        while (end < hi && !mg_map_get(&r->pages, end, NULL)) end += r->granule;
        if (end > p && map_run(r, p, end - p)) return r->status;
        p = end;
    }
    return 0;
}

static uint32_t place_of(const struct mg_replay *r, uint64_t at)
{
    uint32_t k;
    MG_FIND_FIRST(k, r->live.n, r->live.at[k].at < at);
    return k;
}

struct mg_live *mg_replay_live_at(struct mg_replay *r, uint64_t p)
{
    uint32_t k = place_of(r, p);
    if (k < r->live.n && r->live.at[k].at == p) return &r->live.at[k];
    return k && p - r->live.at[k - 1].at < r->live.at[k - 1].bytes ? &r->live.at[k - 1] : NULL;
}

int mg_replay_alloc(struct mg_replay *r, uint64_t at, uint64_t bytes)
{
    uint64_t page = ~((uint64_t)r->granule - 1), was;
    struct mg_range_of all = mg_replay_span(at, bytes);
    bool used = false;
    uint32_t k = place_of(r, at);
    if ((k < r->live.n && r->live.at[k].at < at + bytes) || mg_replay_live_at(r, at))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: two allocations overlap at 0x%llx", r->path,
                              (unsigned long long)at);
    if (map_all(r, all.lo & page, (all.hi + r->granule - 1) & page)) return r->status;
    for (uint64_t p = at & page; p < at + bytes; p += r->granule) {
        used |= mg_map_get(&r->pages, p, &was) && was;
        mg_map_set(&r->pages, p, 1);
    }
    mg_vec_push(&r->live);
    memmove(&r->live.at[k + 1], &r->live.at[k], (r->live.n - 1 - k) * sizeof *r->live.at);
    r->live.at[k] = (struct mg_live){.at = at, .bytes = bytes, .context = r->context, .checked = r->n_launches};
    if (mg_replay_tell) mg_replay_tell(at, bytes);
    /* fresh pages are zero; what lay there before is not the program's */
    return used ? mg_replay_call(r, mg_cu.cuMemsetD8Async(at, 0, bytes, mg_replay_last(r)), "clearing memory") : 0;
}

int mg_replay_free(struct mg_replay *r, uint64_t at)
{
    uint32_t k = place_of(r, at);
    if (k == r->live.n || r->live.at[k].at != at)
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: memory that is not allocated is freed at 0x%llx", r->path,
                              (unsigned long long)at);
    if (mg_replay_tell) mg_replay_tell(at, 0);
    r->n_unseen += r->live.at[k].checked < r->n_launches;
    memmove(&r->live.at[k], &r->live.at[k + 1], (--r->live.n - k) * sizeof *r->live.at);
    return 0;
}

int mg_replay_read(struct mg_replay *r, uint64_t at, void *to, uint64_t bytes)
{
    cu_stream s = mg_replay_last(r);
    int status = mg_replay_call(r, mg_cu.cuMemcpyDtoHAsync_v2(to, at, bytes, s), "reading memory at 0x%llx",
                                (unsigned long long)at);
    return status ? status : mg_replay_settle(r);
}
