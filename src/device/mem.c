/* Device memory of the software devices (mem.h).
 *
 * Two ranges of address space are mapped without being backed: the program's arena and Margay's own. Pages
 * appear when they are touched and go back to the system when an allocation is freed; where an allocation
 * holds 2 MiB whole, large ones are asked for. Extents (extents.h) are multiples of 256 bytes; the bytes an
 * allocation asked for are its exact bounds. The tables lie outside of the arenas, so no kernel can reach them.
 *
 *     program's arena    zone | allocation | zone   zone | allocation | zone   ...
 *
 * A red zone is address space that belongs to no allocation, so that who runs over an end is seen by the check
 * that every access gets. What is freed stays unused until QUARANTINE_BYTES have been freed after it.
 */
#include "device/mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/vec.h"
#include "device/defined.h"
#include "device/extents.h"

#define GRANULE         MG_EXTENT_GRANULE
#define PAGE            4096ull
#define RETURN_BYTES    (256u << 10) /* own memory: freed extents from this size on give their pages back */
#define LARGE_PAGE      (2ull << 20)
#define DEFAULT_RESERVE (256ull << 30)
#define LEAST_RESERVE   (64ull << 20)
#define OWN_RESERVE     (64ull << 30)
#define HEAP_RESERVE    (64ull << 30)
#define USUAL_BASE      0x180000000000ull /* the program's arena, where nothing else lies there: compiled code that */
                                          /* holds a variable's address is found again (cpu/store.c) */
#define ZONE_LEAST       4096u
#define ZONE_MOST        (1u << 20)
#define ZONE_SHIFT       768u         /* no whole page: see zone_of */
#define QUARANTINE_BYTES (1ull << 30) /* of address space, zones included */

struct range {
    uint64_t lo, hi;
    struct mg_extents free;
    struct mg_extent *live;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct range program, own;
static struct mg_extents heap; /* addresses of its own for what kernels allocate; empty: they are the program's */
static uint64_t live_bytes, limit_bytes, next_id = 1;
static _Atomic uint64_t epoch = 1;
static MG_VEC(struct mg_extent *) quarantine; /* from first_freed on, oldest first */
static struct mg_extent *freed;               /* the same, by address */
static uint32_t first_freed;
static uint64_t quarantine_bytes;

/* ---- arenas --------------------------------------------------------------------------------- */

void *mg_mem_map_at(uint64_t base, uint64_t bytes, int protection)
{
#ifdef __SANITIZE_THREAD__ /* it keeps most addresses for itself, and takes the flag for a wish */
    if (base) return NULL;
#endif
    void *p = mmap((void *)base, bytes, protection,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (base ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    if (p == MAP_FAILED) return NULL;
    if (!base || (uint64_t)p == base) return p;
    munmap(p, bytes); /* a kernel that does not know the flag */
    return NULL;
}

static bool reserve_range(struct range *r, uint64_t base, uint64_t reserve, uint64_t least)
{
    for (; reserve >= least; reserve /= 2) {
        void *p = mg_mem_map_at(base, reserve, PROT_READ | PROT_WRITE);
        if (!p) continue;
        madvise(p, reserve, MADV_DONTDUMP);
        r->lo = ((uint64_t)p + 0x1fffff) & ~0x1fffffull;
        r->hi = ((uint64_t)p + reserve) & ~(uint64_t)(GRANULE - 1);
        return mg_extent_give(&r->free, r->lo, r->hi - r->lo);
    }
    return false;
}

static bool init_locked(uint64_t base, uint64_t reserve)
{
    if (program.lo) return own.lo != 0;
    if (!reserve) reserve = DEFAULT_RESERVE;
    if (!base && reserve_range(&program, USUAL_BASE, reserve, reserve)) base = USUAL_BASE;
    if (!program.lo && !reserve_range(&program, base, reserve, LEAST_RESERVE)) return false;
    if (!limit_bytes) limit_bytes = program.hi - program.lo;
    uint64_t bytes = MG_MIN((program.hi - program.lo) / 4 + LARGE_PAGE, OWN_RESERVE);
    return (base && reserve_range(&own, base - (UINT64_C(1) << 40), bytes, LEAST_RESERVE)) ||
           reserve_range(&own, 0, bytes, LEAST_RESERVE);
}

/* ---- interface ------------------------------------------------------------------------------ */

static bool init(uint64_t base, uint64_t heap_base, uint64_t reserve_bytes)
{
    int saved = errno;
    struct range r = {0};
    pthread_rwlock_wrlock(&lock);
    bool ok = init_locked(base, reserve_bytes) && (!base || program.lo == base);
    if (ok && heap_base && !heap.by_size && reserve_range(&r, heap_base, HEAP_RESERVE, LEAST_RESERVE)) heap = r.free;
    pthread_rwlock_unlock(&lock);
    errno = saved;
    return ok;
}

bool mg_mem_init(uint64_t reserve_bytes)
{
    return init(0, 0, reserve_bytes);
}
bool mg_mem_init_at(uint64_t base, uint64_t heap_base)
{
    return init(base, heap_base, 0);
}

/* Memory that is not the arena's: the program's own, or mapped by the driver. */
static bool is_foreign(enum mg_alloc_kind kind)
{
    return kind == MG_ALLOC_REGISTERED || kind == MG_ALLOC_VMM;
}

static struct range *range_of(enum mg_alloc_kind kind)
{
    return kind == MG_ALLOC_INTERNAL ? &own : &program;
}

/* What is free for it. */
static struct mg_extents *free_of(enum mg_alloc_kind kind)
{
    return kind == MG_ALLOC_HEAP && heap.by_size ? &heap : &range_of(kind)->free;
}

static bool add_live(uint64_t base, uint64_t bytes, uint64_t span, uint32_t zone, enum mg_alloc_kind kind)
{
    struct range *r = range_of(kind);
    struct mg_extent *n = mg_extent_new(base, 0, span);
    if (!n) return false;
    n->zone = zone;
    n->alloc = (struct mg_alloc){
        .base = base, .bytes = bytes, .id = next_id++, .kind = kind, .readonly = kind == MG_ALLOC_CONST};
    r->live = mg_extent_insert(r->live, n);
    live_bytes += is_foreign(kind) || r == &own ? 0 : bytes;
    atomic_fetch_add(&epoch, 1);
    return true;
}

/* Around the program's allocations. What kernels allocate themselves, in thousands, has little. Arrays of a power of 2
 * do not all begin at one place of a page: processors take a load for one of what was stored 4 KiB away, and wait. Each
 * begins 1536 bytes behind the one before it, so that 8 have 8 places. */
static uint32_t zone_of(enum mg_alloc_kind kind, uint64_t span)
{
    if (kind == MG_ALLOC_INTERNAL) return 0;
    if (kind == MG_ALLOC_HEAP || kind == MG_ALLOC_RUNTIME) return GRANULE;
    return (uint32_t)MG_MAX(MG_MIN(span / 4, ZONE_MOST) & ~(uint64_t)(GRANULE - 1), ZONE_LEAST) + ZONE_SHIFT;
}

/* Pages of 2 MiB for what lies in them whole: fewer faults, and kernels that stream or gather wait less for
 * translations. */
static void use_large_pages(uint64_t base, uint64_t bytes)
{
    uint64_t lo = (base + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1), hi = (base + bytes) & ~(LARGE_PAGE - 1);
    if (lo < hi) madvise((void *)lo, hi - lo, MADV_HUGEPAGE);
}

static uint64_t with_zones(const struct mg_extent *n)
{
    return n->span + 2ull * n->zone;
}

/* Ranges that have waited longest are free again, until what waits is no more than that. */
static void release_freed(uint64_t most)
{
    while (quarantine_bytes > most) {
        struct mg_extent *n = quarantine.at[first_freed++];
        freed = mg_extent_removed(freed, n->key, 0, &n);
        quarantine_bytes -= with_zones(n);
        mg_extent_give(&program.free, n->key - n->zone, with_zones(n));
        free(n);
    }
    if (first_freed < 1024 || first_freed < quarantine.n / 2) return;
    memmove(quarantine.at, quarantine.at + first_freed, (quarantine.n - first_freed) * sizeof *quarantine.at);
    quarantine.n -= first_freed;
    first_freed = 0;
}

/* Where address space is short what was freed is used again, then zones are as small as can be. */
static uint64_t take_addresses(struct mg_extents *x, uint64_t span, uint64_t align, uint32_t *zone)
{
    uint64_t at = mg_extent_take(x, span + 2ull * *zone, align, *zone);
    if (!at && x == &program.free && quarantine_bytes) {
        release_freed(0);
        at = mg_extent_take(x, span + 2ull * *zone, align, *zone);
    }
    if (!at && *zone > GRANULE) {
        *zone = GRANULE;
        at = mg_extent_take(x, span + 2ull * *zone, align, *zone);
    }
    return at ? at + *zone : 0;
}

uint64_t mg_mem_alloc(uint64_t bytes, uint64_t align, enum mg_alloc_kind kind)
{
    int saved = errno;
    uint64_t base = 0;
    if (align < GRANULE) align = GRANULE;
    if (align & (align - 1) || bytes > (1ull << 46)) return 0;
    uint64_t span = bytes ? (bytes + GRANULE - 1) & ~(uint64_t)(GRANULE - 1) : GRANULE;
    uint32_t zone = zone_of(kind, span);
    struct range *r = range_of(kind);
    pthread_rwlock_wrlock(&lock);
    if (init_locked(0, 0) && (r == &own || live_bytes + bytes <= limit_bytes)) {
        base = take_addresses(free_of(kind), span, align, &zone);
        if (base && !add_live(base, bytes, span, zone, kind)) {
            mg_extent_give(free_of(kind), base - zone, span + 2ull * zone);
            base = 0;
        }
    }
    pthread_rwlock_unlock(&lock);
    if (base) use_large_pages(base, bytes);
    errno = saved;
    return base;
}

/* Its pages hold nothing of others: zones have a page at least. */
static void give_back_pages(uint64_t base, uint64_t span)
{
    madvise((void *)(base & ~(PAGE - 1)), ((base + span + PAGE - 1) & ~(PAGE - 1)) - (base & ~(PAGE - 1)),
            MADV_DONTNEED);
}

/* What nobody may use for a while. */
static void quarantine_add(struct mg_extent *n)
{
    *mg_vec_push(&quarantine) = n;
    freed = mg_extent_insert(freed, n);
    quarantine_bytes += with_zones(n);
    release_freed(QUARANTINE_BYTES);
}

/* Of no tree; it is the callee's. */
static void free_extent(struct mg_extent *n)
{
    if (n->zone >= ZONE_LEAST) {
        give_back_pages(n->key, n->span);
        quarantine_add(n);
        return;
    }
    uint64_t lo = (n->key + PAGE - 1) & ~(PAGE - 1), hi = (n->key + n->span) & ~(PAGE - 1);
    if (n->span >= RETURN_BYTES) madvise((void *)lo, hi - lo, MADV_DONTNEED);
    mg_extent_give(free_of(n->alloc.kind), n->key - n->zone, with_zones(n));
    free(n);
}

static bool remove_live(struct range *r, uint64_t base, bool registered)
{
    struct mg_extent *n = mg_extent_at_or_below(r->live, base), *gone = NULL;
    if (!n || n->key != base || is_foreign(n->alloc.kind) != registered) return false;
    r->live = mg_extent_removed(r->live, base, 0, &gone);
    live_bytes -= registered || r == &own ? 0 : gone->alloc.bytes;
    atomic_fetch_add(&epoch, 1);
    if (registered) {
        free(gone);
    } else {
        mg_defined_set(base, gone->span);
        free_extent(gone);
    }
    return true;
}

bool mg_mem_free(uint64_t base)
{
    int saved = errno;
    pthread_rwlock_wrlock(&lock);
    bool ok = remove_live(&program, base, false) || remove_live(&own, base, false);
    pthread_rwlock_unlock(&lock);
    errno = saved;
    return ok;
}

bool mg_mem_register(uint64_t base, uint64_t bytes)
{
    return mg_mem_register_as(base, bytes, MG_ALLOC_REGISTERED);
}

static bool meets(const struct range *r, uint64_t base, uint64_t bytes)
{
    return r->lo && base < r->hi && base + bytes > r->lo;
}

bool mg_mem_register_as(uint64_t base, uint64_t bytes, enum mg_alloc_kind kind)
{
    if (!base || !bytes || base + bytes < base) return false;
    pthread_rwlock_wrlock(&lock);
    struct mg_extent *n = mg_extent_at_or_below(program.live, base + bytes - 1);
    bool overlaps = n && n->key + MG_MAX(n->span, 1) > base;
    bool ok = !overlaps && !meets(&program, base, bytes) && !meets(&own, base, bytes) && is_foreign(kind) &&
              add_live(base, bytes, bytes, 0, kind);
    pthread_rwlock_unlock(&lock);
    return ok;
}

bool mg_mem_unregister(uint64_t base)
{
    pthread_rwlock_wrlock(&lock);
    bool ok = remove_live(&program, base, true);
    pthread_rwlock_unlock(&lock);
    return ok;
}

static bool find_in(const struct range *r, uint64_t address, struct mg_alloc *out)
{
    struct mg_extent *n = mg_extent_at_or_below(r->live, address);
    if (!n || address - n->alloc.base >= MG_MAX(n->alloc.bytes, 1)) return false;
    if (out) *out = n->alloc;
    return true;
}

bool mg_mem_find(uint64_t address, struct mg_alloc *out)
{
    pthread_rwlock_rdlock(&lock);
    bool ok = find_in(&program, address, out);
    pthread_rwlock_unlock(&lock);
    return ok;
}

bool mg_mem_find_any(uint64_t address, struct mg_alloc *out)
{
    pthread_rwlock_rdlock(&lock);
    bool ok = find_in(&own, address, out) || find_in(&program, address, out);
    pthread_rwlock_unlock(&lock);
    return ok;
}

bool mg_mem_find_freed(uint64_t address, struct mg_alloc *out)
{
    pthread_rwlock_rdlock(&lock);
    const struct mg_extent *n = mg_extent_at_or_below(freed, address);
    bool ok = n && address - n->alloc.base < n->alloc.bytes;
    if (ok && out) *out = n->alloc;
    pthread_rwlock_unlock(&lock);
    return ok;
}

bool mg_mem_has_freed(uint64_t lo, uint64_t hi)
{
    pthread_rwlock_rdlock(&lock);
    const struct mg_extent *n = mg_extent_at_or_below(freed, hi - 1);
    bool any = n && n->alloc.base + n->alloc.bytes > lo;
    pthread_rwlock_unlock(&lock);
    return any;
}

bool mg_mem_is_own(uint64_t address)
{
    return address - own.lo < own.hi - own.lo;
}

void mg_mem_reuse_freed(void)
{
    pthread_rwlock_wrlock(&lock);
    release_freed(0);
    pthread_rwlock_unlock(&lock);
}

bool mg_mem_nearest(uint64_t address, struct mg_alloc *below, struct mg_alloc *above)
{
    pthread_rwlock_rdlock(&lock);
    struct mg_extent *b = mg_extent_at_or_below(program.live, address),
                     *a = mg_extent_at_or_above(program.live, address, 1);
    if (below) *below = b ? b->alloc : (struct mg_alloc){0};
    if (above) *above = a ? a->alloc : (struct mg_alloc){0};
    pthread_rwlock_unlock(&lock);
    return b || a;
}

static void each(struct mg_extent *n, void (*fn)(void *, const struct mg_alloc *), void *user)
{
    for (; n; n = n->child[1]) {
        each(n->child[0], fn, user);
        fn(user, &n->alloc);
    }
}

void mg_mem_each(void (*fn)(void *user, const struct mg_alloc *a), void *user)
{
    pthread_rwlock_rdlock(&lock);
    each(program.live, fn, user);
    pthread_rwlock_unlock(&lock);
}

void mg_mem_totals(uint64_t *live_out, uint64_t *limit_out)
{
    pthread_rwlock_rdlock(&lock);
    if (live_out) *live_out = live_bytes;
    if (limit_out) *limit_out = limit_bytes;
    pthread_rwlock_unlock(&lock);
}

void mg_mem_set_limit(uint64_t bytes)
{
    pthread_rwlock_wrlock(&lock);
    limit_bytes = bytes;
    pthread_rwlock_unlock(&lock);
}

bool mg_mem_set_tag(uint64_t base, uint32_t tag)
{
    pthread_rwlock_wrlock(&lock);
    struct mg_extent *n = mg_extent_at_or_below(program.live, base);
    bool ok = n && n->key == base;
    if (ok) n->alloc.tag = tag;
    if (ok) atomic_fetch_add(&epoch, 1);
    pthread_rwlock_unlock(&lock);
    return ok;
}

void mg_mem_arena(uint64_t out[2])
{
    out[0] = program.lo;
    out[1] = program.hi - program.lo;
}

void mg_mem_changed(void)
{
    atomic_fetch_add(&epoch, 1);
}

uint64_t mg_mem_epoch(void)
{
    return atomic_load_explicit(&epoch, memory_order_acquire);
}
