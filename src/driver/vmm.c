/* Virtual memory management: reserved addresses, physical memory as anonymous files, mappings of
 * one into the other. What is mapped and accessible is entered in the table that kernels are checked
 * against, adjacent mappings as one range; the table changes only while the context is idle. */
#include "driver/priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

enum { GRANULE = 2 << 20 };

struct physical {
    int fd;
    size_t bytes;
    uint32_t refs; /* the application's and one a mapping */
    struct cu_alloc_prop prop;
};
struct mapping {
    uint64_t base, bytes;
    size_t offset;
    struct physical *of;
    uint8_t access[MG_DEVICES_MAX];
};
struct reservation {
    uint64_t base, bytes;
    MG_VEC(struct mapping) maps; /* by address */
    MG_VEC(uint64_t) entered;
};
static MG_VEC(struct reservation *) reservations;
static uint64_t physical_bytes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything here */

static struct reservation *reservation_of(uint64_t p, uint64_t bytes)
{
    for (uint32_t i = 0; i < reservations.n; i++) {
        struct reservation *r = reservations.at[i];
        if (p >= r->base && p - r->base < r->bytes && bytes <= r->base + r->bytes - p) return r;
    }
    return NULL;
}

/* NULL: it is the host's. */
static uint64_t *created_of(const struct cu_alloc_prop *p)
{
    return p->location.type == CULOC_DEVICE ? &mg_drv.ordinals[p->location.id].created : NULL;
}

static void drop(struct physical *f)
{
    if (--f->refs) return;
    close(f->fd);
    physical_bytes -= f->bytes;
    if (created_of(&f->prop)) __atomic_sub_fetch(created_of(&f->prop), f->bytes, __ATOMIC_RELAXED);
    free(f);
}

static bool is_accessible(const struct mapping *m)
{
    bool any = false;
    for (int i = 0; i < mg_drv.n_devices; i++) any |= m->access[i] != CUACCESS_NONE;
    return any;
}

/* The table's ranges of a reservation, anew: maximal runs of accessible mappings. */
static void enter(struct reservation *r, struct CUctx_st *ctx)
{
    for (uint32_t i = 0; i < r->entered.n; i++) mg_dalloc_free(r->entered.at[i]);
    r->entered.n = 0;
    for (uint32_t i = 0; i < r->maps.n;) {
        if (!is_accessible(&r->maps.at[i])) {
            i++;
            continue;
        }
        uint64_t base = r->maps.at[i].base, end = base;
        cu_device device = r->maps.at[i].of->prop.location.id;
        while (i < r->maps.n && is_accessible(&r->maps.at[i]) && r->maps.at[i].base == end)
            end += r->maps.at[i++].bytes;
        if (!mg_mem_register_as(base, end - base, MG_ALLOC_VMM)) continue;
        mg_lock();
        if (mg_dalloc_add(ctx, base, 0)) mg_dalloc_move(base, mg_device_check(device) ? 0 : device);
        mg_unlock();
        *mg_vec_push(&r->entered) = base;
    }
}

static cu_result check_prop(const struct cu_alloc_prop *p)
{
    CHECK(p && (p->type == 1 || p->type == 2));
    cu_result r = mg_location_check(&p->location);
    if (r) return r;
    if (p->handle_types & ~1) {
        mg_say("memory handles shared between processes are not supported");
        return CUE_NOT_SUPPORTED;
    }
    return CUE_SUCCESS;
}

static cu_result cuMemGetAllocationGranularity(size_t *out, const struct cu_alloc_prop *p, int option)
{
    cu_result r = !mg_drv.initialised ? CUE_NOT_INITIALIZED : check_prop(p);
    if (r) return r;
    CHECK(out && (option == 0 || option == 1));
    *out = GRANULE;
    return CUE_SUCCESS;
}

static cu_result cuMemAddressReserve(cu_ptr *out, size_t bytes, size_t align, cu_ptr hint, unsigned long long flags)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    CHECK(out && bytes && bytes % GRANULE == 0 && !flags && !(align & (align - 1)) && hint % GRANULE == 0);
    align = MG_MAX(align, (size_t)GRANULE);
    CHECK(bytes + align > bytes);
    struct reservation *r = calloc(1, sizeof *r);
    if (!r) return CUE_OUT_OF_MEMORY;
    uint64_t base = 0;
    if (hint && mg_mem_map_at(hint, bytes, PROT_NONE)) base = hint; /* taken when it is free */
    if (!base) {
        char *p = mmap(NULL, bytes + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            free(r);
            return CUE_OUT_OF_MEMORY;
        }
        char *at = (char *)(((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1)), *end = p + bytes + align;
        if (at > p) munmap(p, (size_t)(at - p));
        if (end > at + bytes) munmap(at + bytes, (size_t)(end - at) - bytes);
        base = (uintptr_t)at;
    }
    r->base = base;
    r->bytes = bytes;
    pthread_mutex_lock(&lock);
    *mg_vec_push(&reservations) = r;
    pthread_mutex_unlock(&lock);
    *out = base;
    return CUE_SUCCESS;
}

static cu_result cuMemAddressFree(cu_ptr p, size_t bytes)
{
    cu_result e = CUE_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < reservations.n && e; i++) {
        struct reservation *r = reservations.at[i];
        if (r->base != p || r->bytes != bytes || r->maps.n) continue;
        munmap((void *)(uintptr_t)p, bytes);
        mg_vec_release(&r->maps);
        mg_vec_release(&r->entered);
        free(r);
        reservations.at[i] = reservations.at[--reservations.n];
        e = CUE_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return e;
}

static struct physical *physical_of(cu_mem_handle h)
{
    struct physical *f = (struct physical *)(uintptr_t)h;
    return mg_obj_is(f, MG_OBJ_PHYSICAL) ? f : NULL;
}

static cu_result cuMemCreate(cu_mem_handle *out, size_t bytes, const struct cu_alloc_prop *p, unsigned long long flags)
{
    cu_result r = !mg_drv.initialised ? CUE_NOT_INITIALIZED : check_prop(p);
    if (r) return r;
    CHECK(out && bytes && bytes % GRANULE == 0 && !flags);
    uint64_t live, limit;
    mg_mem_totals(&live, &limit);
    struct physical *f = calloc(1, sizeof *f);
    if (!f) return CUE_OUT_OF_MEMORY;
    *f = (struct physical){.fd = -1, .bytes = bytes, .refs = 1, .prop = *p};
    pthread_mutex_lock(&lock);
    bool fits = live + physical_bytes + bytes <= limit && (!created_of(p) || mg_device_has_room(p->location.id, bytes));
    if (fits) f->fd = memfd_create("margay-device-memory", MFD_CLOEXEC);
    if (f->fd >= 0 && ftruncate(f->fd, (off_t)bytes)) {
        close(f->fd);
        f->fd = -1;
    }
    if (f->fd >= 0) physical_bytes += bytes;
    if (f->fd >= 0 && created_of(p)) __atomic_add_fetch(created_of(p), bytes, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    if (f->fd < 0) {
        free(f);
        mg_memory_refused(physical_bytes + bytes);
        return CUE_OUT_OF_MEMORY;
    }
    mg_obj_add(f, MG_OBJ_PHYSICAL);
    *out = (uintptr_t)f;
    return CUE_SUCCESS;
}

static cu_result cuMemRelease(cu_mem_handle h)
{
    struct physical *f = physical_of(h);
    CHECK(f);
    pthread_mutex_lock(&lock);
    if (f->refs == 1) mg_obj_del(f, MG_OBJ_PHYSICAL);
    drop(f);
    pthread_mutex_unlock(&lock);
    return CUE_SUCCESS;
}

static cu_result cuMemMap(cu_ptr p, size_t bytes, size_t offset, cu_mem_handle h, unsigned long long flags)
{
    struct physical *f = physical_of(h);
    CHECK(f && bytes && !flags && p % GRANULE == 0 && bytes % GRANULE == 0 && offset % GRANULE == 0 &&
          offset <= f->bytes && bytes <= f->bytes - offset);
    cu_result e = CUE_SUCCESS;
    pthread_mutex_lock(&lock);
    struct reservation *r = reservation_of(p, bytes);
    uint32_t at = 0;
    if (!r) e = CUE_INVALID_VALUE;
    while (!e && at < r->maps.n && r->maps.at[at].base + r->maps.at[at].bytes <= p) at++;
    if (!e && at < r->maps.n && r->maps.at[at].base < p + bytes) e = CUE_INVALID_VALUE; /* mapped already */
    if (!e && mmap((void *)(uintptr_t)p, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, f->fd, (off_t)offset) ==
                  MAP_FAILED)
        e = CUE_OUT_OF_MEMORY;
    if (!e) {
        mg_vec_push(&r->maps);
        memmove(r->maps.at + at + 1, r->maps.at + at, (r->maps.n - 1 - at) * sizeof *r->maps.at);
        r->maps.at[at] = (struct mapping){p, bytes, offset, f, {CUACCESS_NONE}};
        f->refs++;
    }
    pthread_mutex_unlock(&lock);
    return e;
}

/* Mappings wholly inside [p, p + bytes), which they must fill. No access: they are unmapped. */
static cu_result for_range(cu_ptr p, size_t bytes, const struct cu_access *access)
{
    struct CUctx_st *ctx;
    cu_result e = mg_enter(&ctx);
    if (e) return e;
    mg_ctx_sync(ctx);
    pthread_mutex_lock(&lock);
    struct reservation *r = reservation_of(p, bytes);
    uint64_t covered = 0;
    for (uint32_t i = 0; r && i < r->maps.n; i++) {
        const struct mapping *m = &r->maps.at[i];
        if (m->base >= p && m->base + m->bytes <= p + bytes) covered += m->bytes;
    }
    if (!r || covered != bytes || !bytes) e = CUE_INVALID_VALUE;
    for (uint32_t i = 0; !e && i < r->maps.n;) {
        struct mapping *m = &r->maps.at[i];
        if (m->base < p || m->base >= p + bytes) {
            i++;
        } else if (!access) {
            mmap((void *)(uintptr_t)m->base, m->bytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
            if (m->of->refs == 1) mg_obj_del(m->of, MG_OBJ_PHYSICAL);
            drop(m->of);
            memmove(m, m + 1, (--r->maps.n - i) * sizeof *m);
        } else {
            r->maps.at[i++].access[access->location.id] = (uint8_t)access->flags;
        }
    }
    if (!e) enter(r, ctx);
    pthread_mutex_unlock(&lock);
    return e;
}

static cu_result cuMemUnmap(cu_ptr p, size_t bytes)
{
    return for_range(p, bytes, NULL);
}

static cu_result cuMemSetAccess(cu_ptr p, size_t bytes, const struct cu_access *desc, size_t n)
{
    CHECK(desc && n);
    cu_result e = CUE_SUCCESS;
    for (size_t i = 0; i < n && !e; i++) {
        CHECK(desc[i].flags == CUACCESS_NONE || desc[i].flags == CUACCESS_READ || desc[i].flags == CUACCESS_READWRITE);
        if (desc[i].location.type != CULOC_DEVICE) continue;
        e = mg_location_check(&desc[i].location);
        if (!e) e = for_range(p, bytes, &desc[i]);
    }
    return e;
}

static cu_result cuMemGetAccess(unsigned long long *flags, const struct cu_location *l, cu_ptr p)
{
    CHECK(flags && l);
    cu_result e = mg_location_check(l);
    if (e) return e;
    e = CUE_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    struct reservation *r = reservation_of(p, 1);
    for (uint32_t i = 0; r && i < r->maps.n; i++)
        if (p - r->maps.at[i].base < r->maps.at[i].bytes) {
            *flags = r->maps.at[i].access[l->type == CULOC_DEVICE ? l->id : 0];
            e = CUE_SUCCESS;
        }
    pthread_mutex_unlock(&lock);
    return e;
}

static cu_result cuMemGetAllocationPropertiesFromHandle(struct cu_alloc_prop *out, cu_mem_handle h)
{
    struct physical *f = physical_of(h);
    CHECK(out && f);
    *out = f->prop;
    return CUE_SUCCESS;
}

static cu_result cuMemRetainAllocationHandle(cu_mem_handle *out, void *address)
{
    CHECK(out);
    cu_result e = CUE_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    struct reservation *r = reservation_of((uintptr_t)address, 1);
    for (uint32_t i = 0; r && i < r->maps.n; i++) {
        struct mapping *m = &r->maps.at[i];
        if ((uintptr_t)address - m->base >= m->bytes) continue;
        if (!mg_obj_is(m->of, MG_OBJ_PHYSICAL)) mg_obj_add(m->of, MG_OBJ_PHYSICAL);
        m->of->refs++;
        *out = (uintptr_t)m->of;
        e = CUE_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return e;
}

const struct mg_entry mg_entries_vmm[] = {
    MG_ENTRY(cuMemGetAllocationGranularity),
    MG_ENTRY(cuMemAddressReserve),
    MG_ENTRY(cuMemAddressFree),
    MG_ENTRY(cuMemCreate),
    MG_ENTRY(cuMemRelease),
    MG_ENTRY(cuMemMap),
    MG_ENTRY(cuMemUnmap),
    MG_ENTRY(cuMemSetAccess),
    MG_ENTRY(cuMemGetAccess),
    MG_ENTRY(cuMemGetAllocationPropertiesFromHandle),
    MG_ENTRY(cuMemRetainAllocationHandle),
    {0},
};
