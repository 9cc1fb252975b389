/* Device memory of the software devices (mem.h).
 *
 * One range of address space is mapped without being backed; pages appear when they are touched
 * and go back to the system when a large allocation is freed; where an allocation holds 2 MiB whole,
 * large ones are asked for. Three balanced trees (treaps) hold
 * live allocations by address, free extents by address (to join neighbours) and free extents by
 * size (best fit). Extents are multiples of 256 bytes; the bytes an allocation asked for are its
 * exact bounds. The tables live outside the arena, so no kernel can reach them.
 */
#include "device/mem.h"

#include "device/defined.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GRANULE 256u
#define RETURN_BYTES (256u << 10) /* freed extents from this size on give their pages back */
#define LARGE_PAGE (2ull << 20)
#define DEFAULT_RESERVE (256ull << 30)

struct mem_node { /* of one tree; a free extent is in two of them */
    struct mem_node *child[2];
    uint64_t key, key2;
    uint32_t priority;
    uint64_t span;         /* bytes of the extent, a multiple of GRANULE */
    struct mg_alloc alloc; /* live allocations */
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct mem_node *live, *free_by_address, *free_by_size;
static uint64_t arena_lo, arena_hi, live_bytes, limit_bytes, next_id = 1;
static _Atomic uint64_t epoch = 1;
static uint32_t random_state = 2463534242u;

/* ---- trees ---------------------------------------------------------------------------------- */

static int compare(const struct mem_node *n, uint64_t key, uint64_t key2)
{
    if (key != n->key) return key < n->key ? -1 : 1;
    return key2 == n->key2 ? 0 : key2 < n->key2 ? -1 : 1;
}

static struct mem_node *rotate(struct mem_node *n, int up)
{
    struct mem_node *c = n->child[up];
    n->child[up] = c->child[!up];
    c->child[!up] = n;
    return c;
}

static struct mem_node *insert(struct mem_node *root, struct mem_node *n)
{
    if (!root) return n;
    int side = compare(root, n->key, n->key2) > 0;
    root->child[side] = insert(root->child[side], n);
    return root->child[side]->priority > root->priority ? rotate(root, side) : root;
}

static struct mem_node *join(struct mem_node *a, struct mem_node *b)
{
    if (!a || !b) return a ? a : b;
    if (a->priority > b->priority) {
        a->child[1] = join(a->child[1], b);
        return a;
    }
    b->child[0] = join(a, b->child[0]);
    return b;
}

static struct mem_node *removed(struct mem_node *root, uint64_t key, uint64_t key2, struct mem_node **out)
{
    if (!root) return NULL;
    int c = compare(root, key, key2);
    if (c == 0) {
        *out = root;
        return join(root->child[0], root->child[1]);
    }
    root->child[c > 0] = removed(root->child[c > 0], key, key2, out);
    return root;
}

/* Greatest node with key <= key. */
static struct mem_node *at_or_below(struct mem_node *n, uint64_t key)
{
    struct mem_node *best = NULL;
    while (n) {
        if (n->key <= key) best = n, n = n->child[1];
        else n = n->child[0];
    }
    return best;
}

/* Smallest node with (key, key2) >= given. */
static struct mem_node *at_or_above(struct mem_node *n, uint64_t key, uint64_t key2)
{
    struct mem_node *best = NULL;
    while (n) {
        if (compare(n, key, key2) <= 0) best = n, n = n->child[0];
        else n = n->child[1];
    }
    return best;
}

static struct mem_node *node_new(uint64_t key, uint64_t key2, uint64_t span)
{
    struct mem_node *n = calloc(1, sizeof *n);
    if (!n) return NULL;
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    *n = (struct mem_node){.key = key, .key2 = key2, .span = span, .priority = random_state};
    return n;
}

/* ---- extents -------------------------------------------------------------------------------- */

static bool give_extent(uint64_t base, uint64_t span)
{
    struct mem_node *below = base ? at_or_below(free_by_address, base - 1) : NULL, *gone = NULL;
    struct mem_node *above = at_or_above(free_by_address, base + span, 0);
    if (below && below->key + below->span == base) {
        base = below->key;
        span += below->span;
        free_by_size = removed(free_by_size, below->span, below->key, &gone);
        free(gone);
        free_by_address = removed(free_by_address, below->key, 0, &gone);
        free(gone);
    }
    if (above && above->key == base + span) {
        span += above->span;
        free_by_size = removed(free_by_size, above->span, above->key, &gone);
        free(gone);
        free_by_address = removed(free_by_address, above->key, 0, &gone);
        free(gone);
    }
    struct mem_node *a = node_new(base, 0, span), *s = node_new(span, base, span);
    if (!a || !s) { /* the extent is lost, nothing else */
        free(a);
        free(s);
        return false;
    }
    free_by_address = insert(free_by_address, a);
    free_by_size = insert(free_by_size, s);
    return true;
}

static uint64_t take_extent(uint64_t span, uint64_t align)
{
    uint64_t need = align > GRANULE ? span + align - GRANULE : span;
    struct mem_node *s = at_or_above(free_by_size, need, 0), *gone = NULL;
    if (!s) return 0;
    uint64_t base = s->key2, have = s->span;
    free_by_size = removed(free_by_size, have, base, &gone);
    free(gone);
    free_by_address = removed(free_by_address, base, 0, &gone);
    free(gone);
    uint64_t at = (base + align - 1) & ~(align - 1);
    if (at > base) give_extent(base, at - base);
    if (base + have > at + span) give_extent(at + span, base + have - at - span);
    return at;
}

/* ---- interface ------------------------------------------------------------------------------ */

static bool init_locked(uint64_t reserve)
{
    if (arena_lo) return true;
    if (!reserve) reserve = DEFAULT_RESERVE;
    for (; reserve >= (64ull << 20); reserve /= 2) {
        void *p = mmap(NULL, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) continue;
        madvise(p, reserve, MADV_DONTDUMP);
        arena_lo = ((uint64_t)p + 0x1fffff) & ~0x1fffffull;
        arena_hi = ((uint64_t)p + reserve) & ~(uint64_t)(GRANULE - 1);
        if (!limit_bytes) limit_bytes = arena_hi - arena_lo;
        return give_extent(arena_lo, arena_hi - arena_lo);
    }
    return false;
}

bool mg_mem_init(uint64_t reserve_bytes)
{
    int saved = errno;
    pthread_rwlock_wrlock(&lock);
    bool ok = init_locked(reserve_bytes);
    pthread_rwlock_unlock(&lock);
    errno = saved;
    return ok;
}

/* Memory that is not the arena's: the program's own, or mapped by the driver. */
static bool is_foreign(enum mg_alloc_kind kind) { return kind == MG_ALLOC_REGISTERED || kind == MG_ALLOC_VMM; }

static bool add_live(uint64_t base, uint64_t bytes, uint64_t span, enum mg_alloc_kind kind)
{
    struct mem_node *n = node_new(base, 0, span);
    if (!n) return false;
    n->alloc = (struct mg_alloc){.base = base, .bytes = bytes, .id = next_id++, .kind = kind, .readonly = kind == MG_ALLOC_CONST};
    live = insert(live, n);
    live_bytes += is_foreign(kind) ? 0 : bytes;
    atomic_fetch_add(&epoch, 1);
    return true;
}

/* Pages of 2 MiB for what lies in them whole: fewer faults, and kernels that stream or gather wait less for translations. */
static void use_large_pages(uint64_t base, uint64_t bytes)
{
    uint64_t lo = (base + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1), hi = (base + bytes) & ~(LARGE_PAGE - 1);
    if (lo < hi) madvise((void *)lo, hi - lo, MADV_HUGEPAGE);
}

uint64_t mg_mem_alloc(uint64_t bytes, uint64_t align, enum mg_alloc_kind kind)
{
    int saved = errno;
    uint64_t base = 0;
    if (align < GRANULE) align = GRANULE;
    if (align & (align - 1) || bytes > (1ull << 46)) return 0;
    uint64_t span = bytes ? (bytes + GRANULE - 1) & ~(uint64_t)(GRANULE - 1) : GRANULE;
    pthread_rwlock_wrlock(&lock);
    if (init_locked(0) && live_bytes + bytes <= limit_bytes) {
        base = take_extent(span, align);
        if (base && !add_live(base, bytes, span, kind)) {
            give_extent(base, span);
            base = 0;
        }
    }
    pthread_rwlock_unlock(&lock);
    if (base) use_large_pages(base, bytes);
    errno = saved;
    return base;
}

static bool remove_live(uint64_t base, bool registered)
{
    struct mem_node *n = at_or_below(live, base), *gone = NULL;
    if (!n || n->key != base || is_foreign(n->alloc.kind) != registered) return false;
    live = removed(live, base, 0, &gone);
    live_bytes -= registered ? 0 : gone->alloc.bytes;
    atomic_fetch_add(&epoch, 1);
    if (!registered) {
        mg_defined_set(base, gone->span);
        uint64_t lo = (base + 4095) & ~4095ull, hi = (base + gone->span) & ~4095ull;
        if (gone->span >= RETURN_BYTES) madvise((void *)lo, hi - lo, MADV_DONTNEED);
        give_extent(base, gone->span);
    }
    free(gone);
    return true;
}

bool mg_mem_free(uint64_t base)
{
    int saved = errno;
    pthread_rwlock_wrlock(&lock);
    bool ok = remove_live(base, false);
    pthread_rwlock_unlock(&lock);
    errno = saved;
    return ok;
}

bool mg_mem_register(uint64_t base, uint64_t bytes) { return mg_mem_register_as(base, bytes, MG_ALLOC_REGISTERED); }

bool mg_mem_register_as(uint64_t base, uint64_t bytes, enum mg_alloc_kind kind)
{
    if (!base || !bytes || base + bytes < base) return false;
    pthread_rwlock_wrlock(&lock);
    struct mem_node *n = at_or_below(live, base + bytes - 1);
    bool overlaps = n && n->key + MG_MAX(n->span, 1) > base;
    bool in_arena = arena_lo && base < arena_hi && base + bytes > arena_lo;
    bool ok = !overlaps && !in_arena && is_foreign(kind) && add_live(base, bytes, bytes, kind);
    pthread_rwlock_unlock(&lock);
    return ok;
}

bool mg_mem_unregister(uint64_t base)
{
    pthread_rwlock_wrlock(&lock);
    bool ok = remove_live(base, true);
    pthread_rwlock_unlock(&lock);
    return ok;
}

bool mg_mem_find(uint64_t address, struct mg_alloc *out)
{
    pthread_rwlock_rdlock(&lock);
    struct mem_node *n = at_or_below(live, address);
    bool ok = n && address - n->alloc.base < MG_MAX(n->alloc.bytes, 1);
    if (ok && out) *out = n->alloc;
    pthread_rwlock_unlock(&lock);
    return ok;
}

bool mg_mem_nearest(uint64_t address, struct mg_alloc *below, struct mg_alloc *above)
{
    pthread_rwlock_rdlock(&lock);
    struct mem_node *b = at_or_below(live, address), *a = at_or_above(live, address, 1);
    if (below) *below = b ? b->alloc : (struct mg_alloc){0};
    if (above) *above = a ? a->alloc : (struct mg_alloc){0};
    pthread_rwlock_unlock(&lock);
    return b || a;
}

static void each(struct mem_node *n, void (*fn)(void *, const struct mg_alloc *), void *user)
{
    for (; n; n = n->child[1]) {
        each(n->child[0], fn, user);
        fn(user, &n->alloc);
    }
}

void mg_mem_each(void (*fn)(void *user, const struct mg_alloc *a), void *user)
{
    pthread_rwlock_rdlock(&lock);
    each(live, fn, user);
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

static bool change(uint64_t base, uint32_t tag, int readonly)
{
    pthread_rwlock_wrlock(&lock);
    struct mem_node *n = at_or_below(live, base);
    bool ok = n && n->key == base;
    if (ok && readonly < 0) n->alloc.tag = tag;
    if (ok && readonly >= 0) n->alloc.readonly = readonly;
    if (ok) atomic_fetch_add(&epoch, 1);
    pthread_rwlock_unlock(&lock);
    return ok;
}

bool mg_mem_set_tag(uint64_t base, uint32_t tag) { return change(base, tag, -1); }

bool mg_mem_set_readonly(uint64_t base, bool readonly) { return change(base, 0, readonly); }

void mg_mem_arena(uint64_t out[2])
{
    out[0] = arena_lo;
    out[1] = arena_hi - arena_lo;
}

uint64_t mg_mem_epoch(void) { return atomic_load_explicit(&epoch, memory_order_acquire); }
