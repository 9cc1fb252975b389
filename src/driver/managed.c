/* Advice about managed memory: there is one memory here, so advice and prefetches move nothing;
 * they are checked, kept in order, and told back by the range queries. */
#include "driver/priv.h"

#include <string.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

/* The range must lie in one managed allocation. */
static cu_result managed_range(cu_ptr p, size_t bytes, struct mg_alloc *a)
{
    CHECK(bytes && mg_mem_find(p, a) && bytes <= a->base + a->bytes - p);
    CHECK(a->kind == MG_ALLOC_MANAGED || a->kind == MG_ALLOC_GLOBAL);
    return CUE_SUCCESS;
}

static struct cu_location device_location(int dev)
{
    return dev == CUDEVICE_CPU ? (struct cu_location){CULOC_HOST, 0} : (struct cu_location){CULOC_DEVICE, dev};
}

static cu_result check_location(struct cu_location l)
{
    if (l.type == CULOC_DEVICE) return mg_location_check(&l);
    CHECK(l.type >= CULOC_HOST && l.type <= CULOC_HOST_NUMA_CURRENT);
    return CUE_SUCCESS;
}

/* ---- prefetch ---------------------------------------------------------------------------------------- */

static cu_result prefetch(cu_ptr p, size_t bytes, struct cu_location l, cu_stream h, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    struct mg_alloc a;
    r = managed_range(p, bytes, &a);
    if (!r) r = check_location(l);
    if (r) return r;
    mg_lock();
    struct mg_dalloc *d = mg_dalloc_get(a.base);
    if (d) d->prefetch_type = l.type, d->prefetch_id = l.id;
    mg_unlock();
    struct mg_work op = {.kind = MG_OPK_EMPTY};
    return mg_stream_do(s, &op, MG_ASYNC);
}
MG_BOTH(cuMemPrefetchAsync, ptsz, (cu_ptr p, size_t bytes, cu_device dev, cu_stream s),
        prefetch(p, bytes, device_location(dev), s, PT))
MG_BOTH(cuMemPrefetchAsync_v2, ptsz, (cu_ptr p, size_t bytes, struct cu_location l, unsigned flags, cu_stream s),
        ((void)flags, prefetch(p, bytes, l, s, PT)))

static cu_result prefetch_batch(cu_ptr *p, size_t *bytes, size_t n, struct cu_location *l, size_t *ixs, size_t n_l,
                                cu_stream s, int pt)
{
    CHECK(p && bytes && n && l && ixs && n_l && n_l <= n);
    for (size_t i = 0, k = 0; i < n; i++) {
        while (k + 1 < n_l && ixs[k + 1] <= i) k++;
        cu_result r = prefetch(p[i], bytes[i], l[k], s, pt);
        if (r) return r;
    }
    return CUE_SUCCESS;
}
MG_BOTH(cuMemPrefetchBatchAsync, ptsz,
        (cu_ptr * p, size_t *bytes, size_t n, struct cu_location *l, size_t *ixs, size_t n_l, unsigned long long flags,
         cu_stream s),
        ((void)flags, prefetch_batch(p, bytes, n, l, ixs, n_l, s, PT)))

static cu_result discard_batch(cu_ptr *p, size_t *bytes, size_t n, cu_stream h, int pt)
{
    struct CUstream_st *s;
    struct mg_alloc a;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(p && bytes && n);
    for (size_t i = 0; !r && i < n; i++) r = managed_range(p[i], bytes[i], &a);
    return r; /* discarded contents are undefined: leaving them is allowed */
}
MG_BOTH(cuMemDiscardBatchAsync, ptsz, (cu_ptr * p, size_t *bytes, size_t n, unsigned long long flags, cu_stream s),
        ((void)flags, discard_batch(p, bytes, n, s, PT)))
MG_BOTH(cuMemDiscardAndPrefetchBatchAsync, ptsz,
        (cu_ptr * p, size_t *bytes, size_t n, struct cu_location *l, size_t *ixs, size_t n_l, unsigned long long flags,
         cu_stream s),
        ((void)flags, prefetch_batch(p, bytes, n, l, ixs, n_l, s, PT)))

/* ---- advice ------------------------------------------------------------------------------------------- */

static cu_result advise(cu_ptr p, size_t bytes, int advice, struct cu_location l)
{
    cu_result r = mg_enter(NULL);
    struct mg_alloc a;
    if (!r) r = managed_range(p, bytes, &a);
    if (r) return r;
    CHECK(advice >= CUADVISE_SET_READ_MOSTLY && advice <= CUADVISE_UNSET_ACCESSED_BY);
    bool needs =
        advice == CUADVISE_SET_PREFERRED || advice == CUADVISE_SET_ACCESSED_BY || advice == CUADVISE_UNSET_ACCESSED_BY;
    if (needs && (r = check_location(l))) return r;
    uint32_t bit = l.type != CULOC_DEVICE ? MG_ACCESSED_BY_CPU : mg_location_check(&l) ? 0 : 1u << l.id;
    mg_lock();
    struct mg_dalloc *d = mg_dalloc_get(a.base);
    if (d) {
        switch (advice) {
        case CUADVISE_SET_READ_MOSTLY:
            d->read_mostly = true;
            break;
        case CUADVISE_UNSET_READ_MOSTLY:
            d->read_mostly = false;
            break;
        case CUADVISE_SET_PREFERRED:
            d->preferred_type = l.type, d->preferred_id = l.id;
            break;
        case CUADVISE_UNSET_PREFERRED:
            d->preferred_type = CULOC_INVALID, d->preferred_id = CUDEVICE_INVALID;
            break;
        case CUADVISE_SET_ACCESSED_BY:
            d->accessed_by |= bit;
            break;
        default:
            d->accessed_by &= ~bit;
            break;
        }
    }
    mg_unlock();
    return CUE_SUCCESS;
}
static cu_result cuMemAdvise(cu_ptr p, size_t bytes, int advice, cu_device dev)
{
    return advise(p, bytes, advice, device_location(dev));
}
static cu_result cuMemAdvise_v2(cu_ptr p, size_t bytes, int advice, struct cu_location l)
{
    return advise(p, bytes, advice, l);
}

static int old_style(int type, int id) /* as a device number */
{
    return type == CULOC_DEVICE ? id : type == CULOC_INVALID ? CUDEVICE_INVALID : CUDEVICE_CPU;
}

static cu_result cuMemRangeGetAttribute(void *out, size_t out_bytes, int attr, cu_ptr p, size_t bytes)
{
    cu_result r = mg_enter(NULL);
    struct mg_alloc a;
    if (!r) r = managed_range(p, bytes, &a);
    if (r) return r;
    CHECK(out && out_bytes >= 4 && out_bytes % 4 == 0 && (attr == CURANGE_ACCESSED_BY || out_bytes == 4));
    struct mg_dalloc d = {.preferred_id = CUDEVICE_INVALID, .prefetch_id = CUDEVICE_INVALID};
    mg_lock();
    if (mg_dalloc_get(a.base)) d = *mg_dalloc_get(a.base);
    mg_unlock();
    int *v = out;
    switch (attr) {
    case CURANGE_READ_MOSTLY:
        *v = d.read_mostly;
        break;
    case CURANGE_PREFERRED_LOCATION:
        *v = old_style(d.preferred_type, d.preferred_id);
        break;
    case CURANGE_LAST_PREFETCH_LOCATION:
        *v = old_style(d.prefetch_type, d.prefetch_id);
        break;
    case CURANGE_ACCESSED_BY: {
        size_t n = out_bytes / 4, k = 0;
        for (int i = 0; i < mg_drv.n_devices; i++)
            if (d.accessed_by & 1u << i && k < n) v[k++] = i;
        if (d.accessed_by & MG_ACCESSED_BY_CPU && k < n) v[k++] = CUDEVICE_CPU;
        while (k < n) v[k++] = CUDEVICE_INVALID;
        break;
    }
    case CURANGE_PREFERRED_LOCATION_TYPE:
        *v = d.preferred_type;
        break;
    case CURANGE_PREFERRED_LOCATION_ID:
        *v = d.preferred_id;
        break;
    case CURANGE_LAST_PREFETCH_LOCATION_TYPE:
        *v = d.prefetch_type;
        break;
    case CURANGE_LAST_PREFETCH_LOCATION_ID:
        *v = d.prefetch_id;
        break;
    default:
        return CUE_INVALID_VALUE;
    }
    return CUE_SUCCESS;
}

static cu_result cuMemRangeGetAttributes(void **out, size_t *out_bytes, int *attrs, size_t n, cu_ptr p, size_t bytes)
{
    CHECK(out && out_bytes && attrs && n);
    for (size_t i = 0; i < n; i++) {
        cu_result r = cuMemRangeGetAttribute(out[i], out_bytes[i], attrs[i], p, bytes);
        if (r) return r;
    }
    return CUE_SUCCESS;
}

const struct mg_entry mg_entries_managed[] = {
    MG_ENTRY2(cuMemPrefetchAsync, ptsz),
    MG_ENTRY2(cuMemPrefetchAsync_v2, ptsz),
    MG_ENTRY2(cuMemPrefetchBatchAsync, ptsz),
    MG_ENTRY2(cuMemDiscardBatchAsync, ptsz),
    MG_ENTRY2(cuMemDiscardAndPrefetchBatchAsync, ptsz),
    MG_ENTRY(cuMemAdvise),
    MG_ENTRY(cuMemAdvise_v2),
    MG_ENTRY(cuMemRangeGetAttribute),
    MG_ENTRY(cuMemRangeGetAttributes),
    {0},
};
