/* Memory of our own, apart from the program's: a program that writes past its buffers meets an address that nothing
 * is mapped at, as it would natively, and not our counters.
 *
 *   range, one for each context and kind     | 64 MiB unmapped | step | step | not mapped yet ... | 64 MiB
 *     unmapped |
 *   step, mapped as it is needed             | check words | piece | check words | piece | check words | ...
 *
 * Device memory: addresses are reserved, memory is made and mapped by steps of 2 MiB and more; none of these calls
 * waits for work of the application, and what has been mapped stays until the context is gone. Pinned host memory: a
 * mapping of our own that is registered by steps; it is shared memory, so that a fork leaves it where the device knows
 * it. A driver without these calls, or under MPS: each piece is allocated alone, with its check words; told in one
 * line. */
#include "inject/nvidia/nv_priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB         ((size_t)1 << 20)
#define GUARD_BYTES (64 * MIB)
#define ROOM_BYTES  (8192 * MIB) /* of one range: a context that needs more gets another */
#define STEP_BYTES  (2 * MIB)
#define CHECK_BYTES 128u /* in front of each piece and behind it; pieces are aligned by as much */
#define LOOK_PIECES 256u /* at once */

static const struct {
    unsigned host_flags;
    const char *what;
} kinds[] = {[MG_NV_DEVICE] = {0, "device memory"}, [MG_NV_HOST] = {3 /* portable, mapped */, "pinned host memory"}};

struct mg_nv_range {
    uint64_t base;        /* behind the first guard */
    size_t room, mapped;  /* bytes */
    MG_VEC(size_t) steps; /* their bytes */
    struct mg_nv_range *next;
};
static struct mg_nv_range *spare; /* host ranges of contexts that are gone; under mg_nv.lock */

static size_t rounded(size_t bytes, size_t by)
{
    return (bytes + by - 1) / by * by;
}

/* ---- check words -------------------------------------------------------------------------------------- */

static uint64_t word_for(uint64_t address)
{
    return 0x9d6d617267617921u ^ address * 0x9e3779b97f4a7c15u;
}

void mg_nv_check_fill(void *to, uint64_t at, size_t bytes)
{
    for (size_t i = 0; i < bytes / 8; i++) ((uint64_t *)to)[i] = word_for(at + 8 * i);
}

bool mg_nv_check_holds(const void *from, uint64_t at, size_t bytes)
{
    for (size_t i = 0; i < bytes / 8; i++)
        if (((const uint64_t *)from)[i] != word_for(at + 8 * i)) return false;
    return true;
}

static bool write_checks(struct mg_nv_ctx *x, enum mg_nv_kind kind, uint64_t at, size_t bytes)
{
    uint8_t words[2][CHECK_BYTES];
    const uint64_t to[2] = {at - CHECK_BYTES, at + bytes};
    if (kind == MG_NV_HOST) {
        for (int i = 0; i < 2; i++) mg_nv_check_fill((void *)(uintptr_t)to[i], to[i], CHECK_BYTES);
        return true;
    }
    bool ok = true;
    pthread_mutex_lock(&x->copying);
    for (int i = 0; i < 2; i++) {
        mg_nv_check_fill(words[i], to[i], CHECK_BYTES);
        ok = ok && mg_nv.cuMemcpyHtoDAsync_v2(to[i], words[i], CHECK_BYTES, x->copy) == CUE_SUCCESS;
    }
    ok = mg_nv_copies_wait(x) && ok;
    pthread_mutex_unlock(&x->copying);
    return ok;
}

/* ---- ranges --------------------------------------------------------------------------------------------- */

static bool has_virtual(const struct mg_nv_ctx *x)
{
    enum { VIRTUAL_MEMORY = 102, MPS_ENABLED = 133 };
    int can = 0, mps = 0;
    if (!mg_nv.cuMemAddressReserve || !mg_nv.cuMemAddressFree || !mg_nv.cuMemCreate || !mg_nv.cuMemRelease ||
        !mg_nv.cuMemMap || !mg_nv.cuMemUnmap || !mg_nv.cuMemSetAccess)
        return false;
    if (mg_nv.cuDeviceGetAttribute(&mps, MPS_ENABLED, x->device) != CUE_SUCCESS) mps = 0;
    return mg_nv.cuDeviceGetAttribute(&can, VIRTUAL_MEMORY, x->device) == CUE_SUCCESS && can && !mps;
}

static bool can_register(const struct mg_nv_ctx *x)
{
    enum { SAME_ADDRESS_FOR_REGISTERED = 91 };
    int same = 0;
    return mg_nv.cuMemHostRegister_v2 &&
           mg_nv.cuDeviceGetAttribute(&same, SAME_ADDRESS_FOR_REGISTERED, x->device) == CUE_SUCCESS && same;
}

static uint64_t reserve(enum mg_nv_kind kind, size_t bytes)
{
    if (kind == MG_NV_HOST) {
        void *p = mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return p == MAP_FAILED ? 0 : (uintptr_t)p;
    }
    cu_ptr at = 0;
    return mg_nv.cuMemAddressReserve(&at, bytes, 0, 0, 0) == CUE_SUCCESS ? at : 0;
}

static struct mg_nv_range *take_spare(enum mg_nv_kind kind)
{
    pthread_mutex_lock(&mg_nv.lock);
    struct mg_nv_range *r = kind == MG_NV_HOST ? spare : NULL;
    if (r) spare = r->next;
    pthread_mutex_unlock(&mg_nv.lock);
    return r;
}

/* A range more, smaller where addresses are scarce (a limit on the process' addresses). */
static struct mg_nv_range *range_new(enum mg_nv_kind kind, size_t least)
{
    struct mg_nv_range *r = least <= ROOM_BYTES ? take_spare(kind) : NULL;
    size_t room = MG_MAX(ROOM_BYTES, rounded(least, STEP_BYTES));
    if (r || !(r = calloc(1, sizeof *r))) return r;
    uint64_t at = 0;
    for (; !(at = reserve(kind, room + 2 * GUARD_BYTES)) && room / 4 >= MG_MAX(least, 16 * MIB);
         room = rounded(room / 4, STEP_BYTES)) {
    }
    if (!at) {
        free(r);
        return NULL;
    }
    r->base = at + GUARD_BYTES;
    r->room = room;
    return r;
}

static cu_result map_device(const struct mg_nv_ctx *x, uint64_t at, size_t bytes)
{
    const struct cu_alloc_prop prop = {.type = 1, .location = {CULOC_DEVICE, x->device}};
    const struct cu_access access = {{CULOC_DEVICE, x->device}, CUACCESS_READWRITE};
    cu_mem_handle h = 0;
    cu_result rc = mg_nv.cuMemCreate(&h, bytes, &prop, 0);
    if (rc != CUE_SUCCESS) return rc;
    rc = mg_nv.cuMemMap(at, bytes, 0, h, 0);
    if (rc == CUE_SUCCESS && (rc = mg_nv.cuMemSetAccess(at, bytes, &access, 1)) != CUE_SUCCESS)
        mg_nv.cuMemUnmap(at, bytes); /* nothing runs there yet */
    mg_nv.cuMemRelease(h);           /* it goes when it is unmapped */
    return rc;
}

static cu_result map_host(uint64_t at, size_t bytes)
{
    void *p = (void *)(uintptr_t)at;
    if (mprotect(p, bytes, PROT_READ | PROT_WRITE)) return CUE_OUT_OF_MEMORY;
    return mg_nv.cuMemHostRegister_v2(p, bytes, kinds[MG_NV_HOST].host_flags);
}

/* Memory for a piece of so many bytes, check words included, and more where much is there already. */
static cu_result add_step(struct mg_nv_ctx *x, struct mg_nv_apart *a, enum mg_nv_kind kind, size_t least)
{
    struct mg_nv_range *r = a->ranges;
    if (!r || r->room - r->mapped < rounded(least, STEP_BYTES)) {
        if (!(r = range_new(kind, least))) return CUE_NOT_SUPPORTED;
        r->next = a->ranges;
        a->ranges = r;
    }
    size_t bytes =
        MG_MIN(MG_MAX(rounded(least, STEP_BYTES), r->mapped / 8 / STEP_BYTES * STEP_BYTES), r->room - r->mapped);
    uint64_t at = r->base + r->mapped;
    cu_result rc = kind == MG_NV_HOST ? map_host(at, bytes) : map_device(x, at, bytes);
    if (rc != CUE_SUCCESS) return rc;
    *mg_vec_push(&r->steps) = bytes;
    r->mapped += bytes;
    *mg_vec_push(&a->holes) = (struct mg_nv_piece){at, bytes};
    return CUE_SUCCESS;
}

/* ---- pieces ------------------------------------------------------------------------------------------------ */

static uint64_t take_hole(struct mg_nv_apart *a, size_t bytes)
{
    for (uint32_t i = 0; i < a->holes.n; i++) {
        struct mg_nv_piece *h = &a->holes.at[i];
        if (h->bytes < bytes) continue;
        uint64_t at = h->at;
        h->at += bytes;
        h->bytes -= bytes;
        if (h->bytes < 4 * CHECK_BYTES) *h = a->holes.at[--a->holes.n];
        return at;
    }
    return 0;
}

static uint64_t allocate_alone(enum mg_nv_kind kind, size_t bytes)
{
    cu_ptr at = 0;
    void *host = NULL;
    if (kind == MG_NV_DEVICE) return mg_nv.cuMemAlloc_v2(&at, bytes) == CUE_SUCCESS ? at : 0;
    return mg_nv.cuMemHostAlloc(&host, bytes, kinds[kind].host_flags) == CUE_SUCCESS ? (uintptr_t)host : 0;
}

/* Once a process: where memory of ours is none of its own. */
static void tell_plain(enum mg_nv_kind kind)
{
    static const char *const lines[] = {
        [MG_NV_DEVICE] =
            "no virtual memory calls here (or MPS): Margay's device memory lies among the program's, with check words around it",
        [MG_NV_HOST] =
            "own host memory cannot be pinned here: Margay's pinned memory lies among the program's, with check words around it"};
    static bool told[2];
    if (!__atomic_exchange_n(&told[kind], true, __ATOMIC_RELAXED) && mg_nv.config.say) mg_nv.config.say(lines[kind]);
}

static uint64_t take_room(struct mg_nv_ctx *x, enum mg_nv_kind kind, size_t bytes) /* under x->growing */
{
    struct mg_nv_apart *a = &x->apart[kind];
    if (!a->tried) a->plain = !(kind == MG_NV_DEVICE ? has_virtual(x) : can_register(x));
    uint64_t at = a->plain ? 0 : take_hole(a, bytes);
    if (!a->plain && !at) {
        cu_result rc = add_step(x, a, kind, bytes);
        if (rc != CUE_SUCCESS && rc != CUE_OUT_OF_MEMORY && !a->holes.n && (!a->ranges || !a->ranges->mapped))
            a->plain = true; /* at the first attempt: not here */
        at = rc == CUE_SUCCESS ? take_hole(a, bytes) : 0;
    }
    a->tried = true;
    if (!a->plain) return at;
    tell_plain(kind);
    return allocate_alone(kind, bytes);
}

uint64_t mg_nv_take(struct mg_nv_ctx *x, enum mg_nv_kind kind, size_t bytes)
{
    struct mg_nv_apart *a = &x->apart[kind];
    bytes = rounded(bytes, CHECK_BYTES);
    pthread_mutex_lock(&x->growing);
    uint64_t room = x->error ? 0 : take_room(x, kind, bytes + 2 * CHECK_BYTES);
    pthread_mutex_unlock(&x->growing);
    if (!room || !write_checks(x, kind, room + CHECK_BYTES, bytes)) return 0;
    pthread_mutex_lock(&x->growing);
    *mg_vec_push(&a->pieces) = (struct mg_nv_piece){room + CHECK_BYTES, bytes};
    pthread_mutex_unlock(&x->growing);
    return room + CHECK_BYTES;
}

/* ---- looking at the check words ----------------------------------------------------------------------------- */

static bool piece_holds(const uint8_t *front, const uint8_t *back, const struct mg_nv_piece *p)
{
    return mg_nv_check_holds(front, p->at - CHECK_BYTES, CHECK_BYTES) &&
           mg_nv_check_holds(back, p->at + p->bytes, CHECK_BYTES);
}

static bool host_holds(struct mg_nv_ctx *x)
{
    const struct mg_nv_apart *a = &x->apart[MG_NV_HOST];
    bool whole = true;
    pthread_mutex_lock(&x->growing);
    for (uint32_t i = 0; i < a->pieces.n; i++) {
        const uint8_t *at = (const uint8_t *)(uintptr_t)a->pieces.at[i].at;
        whole &= piece_holds(at - CHECK_BYTES, at + a->pieces.at[i].bytes, &a->pieces.at[i]);
    }
    pthread_mutex_unlock(&x->growing);
    return whole;
}

/* Some pieces of the device's, in turn. True, too, where they cannot be read: the context is broken. */
static bool device_holds(struct mg_nv_ctx *x, uint32_t n) /* holding x->copying */
{
    struct mg_nv_apart *a = &x->apart[MG_NV_DEVICE];
    struct mg_nv_piece some[LOOK_PIECES];
    pthread_mutex_lock(&x->growing);
    n = MG_MIN(MG_MIN(n, LOOK_PIECES), (uint32_t)a->pieces.n);
    for (uint32_t i = 0; i < n; i++) some[i] = a->pieces.at[a->next_look++ % a->pieces.n];
    pthread_mutex_unlock(&x->growing);
    if (!n || !mg_nv_staging(x, (size_t)n * 2 * CHECK_BYTES)) return true;
    uint8_t *to = x->staging;
    bool read = true;
    for (uint32_t i = 0; i < n && read; i++)
        read = mg_nv.cuMemcpyDtoHAsync_v2(to + 2 * i * CHECK_BYTES, some[i].at - CHECK_BYTES, CHECK_BYTES, x->copy) ==
                   CUE_SUCCESS &&
               mg_nv.cuMemcpyDtoHAsync_v2(to + (2 * i + 1) * CHECK_BYTES, some[i].at + some[i].bytes, CHECK_BYTES,
                                          x->copy) == CUE_SUCCESS;
    if (!mg_nv_copies_wait(x) || !read) return true;
    bool whole = true;
    for (uint32_t i = 0; i < n; i++)
        whole &= piece_holds(to + 2 * i * CHECK_BYTES, to + (2 * i + 1) * CHECK_BYTES, &some[i]);
    return whole;
}

void mg_nv_look_around(struct mg_nv_ctx *x, bool all)
{
    uint32_t n = all ? UINT32_MAX : 16;
    bool whole = host_holds(x);
    for (uint32_t done = 0; whole && (!done || (all && done < x->apart[MG_NV_DEVICE].pieces.n)); done += LOOK_PIECES)
        whole = device_holds(x, n);
    if (whole || x->spoilt) return;
    x->spoilt = true;
    if (mg_nv.config.say)
        mg_nv.config.say(
            "the program wrote into Margay's memory: launches that end from now on in this context have no counts");
}

/* ---- the end -------------------------------------------------------------------------------------------------- */

static void release_device(struct mg_nv_range *r)
{
    uint64_t at = r->base;
    for (uint32_t i = 0; i < r->steps.n; at += r->steps.at[i++]) mg_nv.cuMemUnmap(at, r->steps.at[i]);
    mg_nv.cuMemAddressFree(r->base - GUARD_BYTES, r->room + 2 * GUARD_BYTES);
    mg_vec_release(&r->steps);
    free(r);
}

/* Its addresses serve the next context, since somebody may still look at what was there. */
static void release_host(struct mg_nv_range *r)
{
    madvise((void *)(uintptr_t)r->base, r->mapped, MADV_REMOVE);
    r->mapped = 0;
    r->steps.n = 0;
    pthread_mutex_lock(&mg_nv.lock);
    r->next = spare;
    spare = r;
    pthread_mutex_unlock(&mg_nv.lock);
}

void mg_nv_apart_gone(struct mg_nv_ctx *x)
{
    pthread_mutex_lock(&x->copying);
    pthread_mutex_lock(&x->growing);
    for (int kind = 0; kind < 2; kind++) {
        struct mg_nv_apart *a = &x->apart[kind];
        for (struct mg_nv_range *r = a->ranges, *next; r; r = next) {
            next = r->next;
            if (kind == MG_NV_DEVICE)
                release_device(r);
            else
                release_host(r);
        }
        mg_vec_release(&a->holes);
        mg_vec_release(&a->pieces);
        *a = (struct mg_nv_apart){0};
    }
    x->staging = NULL;
    x->staging_bytes = 0;
    pthread_mutex_unlock(&x->growing);
    pthread_mutex_unlock(&x->copying);
}
