/* --check: the step before a load, a store, an atomic (defined.h), and what a call hands over. Addresses
 * are not yet checked here: what lies outside is left to the instruction itself, which stops the launch. */
#include "device/emu/defined.h"
#include "device/emu/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/defined.h"
#include "device/mem.h"

#define OP(o) ((const struct emu_op *)(const void *)(o))
#define ALL   for (uint32_t i = 0; i < EMU_LANES; i++)
enum { MOST_BYTES = 32 }; /* of one lane's access */

struct emu_defined_cta { /* bits of a CTA's memory, 1: defined */
    uint8_t *shared, *local;
    uint64_t high, low; /* of each thread's local memory: below and from here on something was written (alloca hands out
                           from the end) */
};

/* ---- a CTA's memory ---------------------------------------------------------------------------------- */

static uint64_t alloca_at(const struct emu_cta *c)
{
    return c->code->local_bytes - c->code->alloca_bytes;
}

bool emu_defined_cta_new(struct emu_cta *c)
{
    struct emu_defined_cta *k = c->defined = calloc(1, sizeof *k);
    if (!k) return false;
    k->shared = calloc(c->shared_bytes + MOST_BYTES, 1);
    k->low = UINT64_MAX;
    if (c->local_cap) {
        k->local = mmap(NULL, c->local_cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (k->local == MAP_FAILED) k->local = NULL;
    }
    return k->shared && (k->local || !c->local_cap);
}

void emu_defined_cta_free(struct emu_cta *c)
{
    if (!c->defined) return;
    free(c->defined->shared);
    if (c->defined->local) munmap(c->defined->local, c->local_cap);
    free(c->defined);
    c->defined = NULL;
}

void emu_defined_cta_start(struct emu_cta *c)
{
    struct emu_defined_cta *k = c->defined;
    memset(k->shared, 0, c->shared_bytes);
    for (uint64_t t = 0; t < (uint64_t)EMU_LANES * c->n_warps; t++) {
        uint8_t *p = k->local ? k->local + t * c->local_stride : NULL;
        if (p && k->high) memset(p, 0, k->high);
        if (p && k->low < c->code->local_bytes) memset(p + k->low, 0, c->code->local_bytes - k->low);
    }
    k->high = 0;
    k->low = UINT64_MAX;
    if (c->wk->kept.n) mg_map_release(&c->wk->kept);
}

static void touched(struct emu_cta *c, uint64_t at, uint64_t bytes)
{
    struct emu_defined_cta *k = c->defined;
    if (at < alloca_at(c))
        k->high = MG_MAX(k->high, MG_MIN(at + bytes, alloca_at(c)));
    else
        k->low = MG_MIN(k->low, at);
}

static uint8_t *local_bits(const struct emu_frame *f, uint32_t lane, uint64_t at)
{
    const struct emu_cta *c = f->w->cta;
    return c->defined->local + c->local_stride * (uint64_t)(f->w->ix * EMU_LANES + lane) + at;
}

void emu_defined_activation(struct emu_frame *f)
{
    struct emu_cta *c = f->w->cta;
    if (!f->parent || !f->fn->local_bytes || f->local_at >= c->defined->high) return;
    EMU_FOR_LANES(i, f->mask) memset(local_bits(f, i, f->local_at), 0, f->fn->local_bytes);
}

/* Of a CTA's shared memory, of one of the cluster's, of its threads' local memory; NULL: none of them. */
static uint8_t *cta_bits(const struct emu_frame *f, uint64_t host, uint64_t bytes, unsigned *space, bool writes)
{
    struct emu_cta *c = f->w->cta;
    for (uint32_t r = 0; r < c->n_peers; r++) {
        struct emu_cta *p = c->peers[r];
        uint64_t at = host - (uint64_t)p->shared;
        if (at >= p->shared_bytes || p->shared_bytes - at < bytes) continue;
        *space = EMU_ORIGIN_SHARED;
        return p->defined->shared + at;
    }
    uint64_t at = host - (uint64_t)c->local;
    if (!c->local || at >= c->local_cap || c->local_cap - at < bytes) return NULL;
    *space = EMU_ORIGIN_LOCAL;
    if (writes) touched(c, at % c->local_stride, bytes);
    return c->defined->local + at;
}

/* ---- where a lane's bits are ---------------------------------------------------------------------------- */

struct access {
    const struct emu_op *op;
    struct emu_frame *f;
    uint32_t mask, bytes;
    uint64_t ea[EMU_LANES];
};

static void begin(struct access *a, const struct emu_op *op, char *regs, uint32_t mask)
{
    struct emu_frame *f = a->f = EMU_FRAME(regs);
    uint64_t off = (uint64_t)op->off;
    bool narrow = op->space == MG_SPACE_shared || op->space == MG_SPACE_local;
    a->op = op;
    a->bytes = (uint32_t)op->bytes * op->vec;
    a->mask = op->guard ? mask & (*(const uint32_t *)(const void *)(regs + op->guard) ^ op->guard_flip) : mask;
    struct emu_def_opnd base = {.mark = op->a.s[1]};
    if (MG_UNLIKELY(f->shade->marks[base.mark].some & a->mask))
        emu_defined_use(f, op, &base, EMU_USE_ADDRESS, a->mask, a->bytes);
    if (op->flags & EMU_OF_BASE_NONE) {
        if (op->space == MG_SPACE_local) off += f->local_at;
        ALL a->ea[i] = off;
    } else if (op->flags & EMU_OF_BASE_W) {
        const uint32_t *r = (const uint32_t *)(const void *)(regs + op->a.s[0]);
        ALL a->ea[i] = (uint32_t)(r[i] + (uint32_t)off);
    } else {
        const uint64_t *r = (const uint64_t *)(const void *)(regs + op->a.s[0]);
        if (narrow)
            ALL a->ea[i] = (uint32_t)(r[i] + off);
        else
            ALL a->ea[i] = r[i] + off;
    }
}

static const uint8_t nothing[MOST_BYTES]; /* of a page that nobody has written */

/* Global memory: all lanes in one page, which is wholly defined. */
static bool all_defined(const struct access *a)
{
    uint64_t lo = UINT64_MAX, hi = 0;
    EMU_FOR_LANES(i, a->mask)
    {
        lo = MG_MIN(lo, a->ea[i]);
        hi = MG_MAX(hi, a->ea[i]);
    }
    hi += a->bytes - 1;
    if (hi - lo > 64 * MG_PAGE_BYTES) return false;
    for (uint64_t at = lo & ~(uint64_t)(MG_PAGE_BYTES - 1); at <= hi; at += MG_PAGE_BYTES) {
        uintptr_t s = mg_page_of(at);
        if (s != MG_PAGE_DEFINED && (s == MG_PAGE_FRESH || !mg_page_try_defined(at, (struct mg_page *)s))) return false;
    }
    return true;
}

/* The bits of what a lane reads; NULL: all are defined, or it is no such memory. */
static const uint8_t *read_bits(const struct access *a, uint32_t lane, unsigned *space)
{
    const struct emu_frame *f = a->f;
    uint64_t ea = a->ea[lane];
    const uint8_t *p;
    switch (a->op->space) {
    case MG_SPACE_shared:
        *space = EMU_ORIGIN_SHARED;
        return ea <= f->shared_bytes && f->shared_bytes - ea >= a->bytes ? f->w->cta->defined->shared + ea : NULL;
    case MG_SPACE_local:
        *space = EMU_ORIGIN_LOCAL;
        return ea <= f->local_bytes && f->local_bytes - ea >= a->bytes ? local_bits(f, lane, ea) : NULL;
    case MG_SPACE_generic:
        if ((p = cta_bits(f, ea, a->bytes, space, false))) return p;
        break;
    default:
        break;
    }
    *space = EMU_ORIGIN_GLOBAL;
    uintptr_t s = mg_page_of(ea);
    if (s <= MG_PAGE_FRESH) return s == MG_PAGE_FRESH ? nothing : NULL;
    uint32_t at = (uint32_t)(ea & (MG_PAGE_BYTES - 1));
    return at + a->bytes <= MG_PAGE_BYTES ? ((const struct mg_page *)s)->bits + at : NULL;
}

static inline __attribute__((always_inline)) bool is_whole(const uint8_t *p, uint32_t bytes)
{
    uint64_t v[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    switch (bytes) {
    case 1:
        return *p == 0xff;
    case 2:
        memcpy(v, p, 2);
        break;
    case 4:
        memcpy(v, p, 4);
        break;
    case 8:
        memcpy(v, p, 8);
        break;
    case 16:
        memcpy(v, p, 16);
        break;
    default:
        memcpy(v, p, MG_MIN(bytes, sizeof v));
        break;
    }
    return (v[0] & v[1] & v[2] & v[3]) == UINT64_MAX;
}

/* Of what was stored undefined in shared and local memory the origin stays known, for a while. */
enum { MOST_KEPT = 65536 };

static void keep_origin(struct emu_worker *wk, const uint8_t *p, uint32_t bytes, uint32_t origin)
{
    if (!origin || wk->kept.n > MOST_KEPT) return;
    for (uint32_t k = 0; k < bytes; k++)
        if (p[k] != 0xff) mg_map_set(&wk->kept, (uint64_t)(uintptr_t)(p + k), origin);
}

static uint32_t kept_origin(const struct emu_worker *wk, const uint8_t *p, uint32_t bytes)
{
    uint64_t origin;
    for (uint32_t k = 0; wk->kept.n && k < bytes; k++)
        if (p[k] != 0xff && mg_map_get(&wk->kept, (uint64_t)(uintptr_t)(p + k), &origin)) return (uint32_t)origin;
    return 0;
}

static uint32_t origin_of(const struct access *a, unsigned space, uint64_t address)
{
    uint32_t o = EMU_ORIGIN(space, a->op->site);
    if (!mg_map_get(&a->f->wk->origins, o, NULL)) mg_map_set(&a->f->wk->origins, o, address);
    return o;
}

/* The address as a finding tells it: in shared memory from its beginning on. */
static uint64_t told_address(const struct access *a, unsigned space, uint32_t lane)
{
    uint64_t ea = a->ea[lane];
    if (a->op->space != MG_SPACE_generic) return ea;
    if (space == EMU_ORIGIN_SHARED) return ea - (uint64_t)a->f->shared;
    return space == EMU_ORIGIN_LOCAL ? (ea - (uint64_t)a->f->w->cta->local) % a->f->local_stride : ea;
}

/* ---- loads ------------------------------------------------------------------------------------------------ */

static void load_lane(const struct access *a, uint32_t lane, const uint8_t *p, uint32_t origin)
{
    const struct emu_def *d = a->op->ext;
    uint32_t bytes = a->op->bytes;
    for (uint32_t k = 0; k < d->n_dst; k++) {
        uint64_t v = 0, hi = UINT64_MAX;
        memcpy(&v, p + k * bytes, MG_MIN(bytes, 8));
        if (bytes == 16) memcpy(&hi, p + k * bytes + 8, 8);
        v = bytes < 8 ? ~v & ((1ull << 8 * bytes) - 1) : ~v;
        if (~hi) v = UINT64_MAX;
        if (d->sext && bytes < 8 && v >> (8 * bytes - 1) & 1) v |= UINT64_MAX << 8 * bytes;
        emu_defined_put(a->f, &d->dst[k], lane, v, origin);
    }
}

/* Shared memory, words that all lie inside: at once. */
static bool shared_defined(const struct access *a)
{
    const struct emu_frame *f = a->f;
    const uint8_t *p = f->w->cta->defined->shared;
    uint32_t all = UINT32_MAX, outside = 0;
    if (a->op->space != MG_SPACE_shared || (a->bytes != 4 && a->bytes != 8 && a->bytes != 16) ||
        f->shared_bytes < a->bytes)
        return false;
    uint64_t last = f->shared_bytes - a->bytes;
    EMU_FOR_LANES(i, a->mask) outside |= a->ea[i] > last;
    if (outside) return false;
    for (uint32_t k = 0; k < a->bytes; k += 4) EMU_FOR_LANES(i, a->mask)
        {
            uint32_t v;
            memcpy(&v, p + a->ea[i] + k, 4);
            all &= v;
        }
    return all == UINT32_MAX;
}

void emu_defined_load(const struct emu_alu *o, char *regs, uint32_t mask)
{
    struct access a;
    begin(&a, OP(o), regs, mask);
    const struct emu_def *d = a.op->ext;
    uint32_t bad = 0, m = a.mask;
    if (!m) return;
    if (a.op->space == MG_SPACE_param || a.op->space == MG_SPACE_const ||
        (a.op->space == MG_SPACE_global && all_defined(&a)) || shared_defined(&a)) {
        for (uint32_t k = 0; k < d->n_dst; k++) emu_defined_clear(a.f, d->dst[k].mark, m);
        return;
    }
    const uint8_t *at[EMU_LANES];
    unsigned space[EMU_LANES];
    EMU_FOR_LANES(i, m)
    {
        at[i] = read_bits(&a, i, &space[i]);
        if (at[i] && !is_whole(at[i], a.bytes)) bad |= 1u << i;
    }
    for (uint32_t k = 0; k < d->n_dst; k++) emu_defined_clear(a.f, d->dst[k].mark, m & ~bad);
    EMU_FOR_LANES(i, bad)
    {
        uint32_t kept = space[i] == EMU_ORIGIN_GLOBAL ? 0 : kept_origin(a.f->wk, at[i], a.bytes);
        load_lane(&a, i, at[i], kept ? kept : origin_of(&a, space[i], told_address(&a, space[i], i)));
    }
}

/* ---- stores ----------------------------------------------------------------------------------------------- */

/* Does the host see what is stored there, or nobody of the program's? Such memory counts as defined. */
static bool is_tracked(uint64_t address)
{
    struct mg_alloc m;
    if (!mg_mem_find(address, &m)) return false;
    return m.kind == MG_ALLOC_DEVICE || m.kind == MG_ALLOC_GLOBAL || m.kind == MG_ALLOC_HEAP || m.kind == MG_ALLOC_VMM;
}

/* Where the bits of what a lane writes go; NULL: nothing is kept. fresh: undefined bits come. */
static uint8_t *write_bits(const struct access *a, uint32_t lane, bool fresh, struct mg_page **page)
{
    struct emu_frame *f = a->f;
    uint64_t ea = a->ea[lane];
    unsigned space = 0;
    uint8_t *p;
    *page = NULL;
    switch (a->op->space) {
    case MG_SPACE_shared:
    case MG_SPACE_local:
        p = (uint8_t *)(uintptr_t)read_bits(a, lane, &space);
        if (p && space == EMU_ORIGIN_LOCAL) touched(f->w->cta, ea, a->bytes);
        return p;
    case MG_SPACE_generic:
        if ((p = cta_bits(f, ea, a->bytes, &space, true))) return p;
        break;
    default:
        break;
    }
    uintptr_t s = mg_page_of(ea);
    uint32_t at = (uint32_t)(ea & (MG_PAGE_BYTES - 1));
    if (at + a->bytes > MG_PAGE_BYTES || (s == MG_PAGE_DEFINED && (!fresh || !is_tracked(ea)))) return NULL;
    *page = s > MG_PAGE_FRESH ? (struct mg_page *)s : mg_page_open(ea);
    return *page ? (*page)->bits + at : NULL;
}

static uint8_t store_number(const struct access *a)
{
    struct emu_worker *wk = a->f->wk;
    uint64_t n;
    if (mg_map_get(&wk->stores, a->op->site, &n)) return (uint8_t)n;
    const struct emu_site *s = &wk->l->code->sites.at[a->op->site];
    n = mg_defined_store_new(wk->l->code->kernel->name, s->fn->mod->seq << 40 ^ (uint64_t)s->node);
    mg_map_set(&wk->stores, a->op->site, n);
    return (uint8_t)n;
}

/* Undefined bits go to memory. Global memory remembers who did it, but where whole bytes of an access are undefined
 * beside others that are not: the bytes between the members of a structure are copied along with these. */
static void store_lane(const struct access *a, uint32_t lane, uint8_t *p, struct mg_page *page)
{
    const struct emu_def *d = a->op->ext;
    uint32_t bytes = a->op->bytes, origin = 0, bad = 0;
    bool in_part = false;
    for (uint32_t k = 0; k < d->n_src; k++) {
        uint64_t v = ~emu_defined_get(a->f, &d->src[k], lane, &origin);
        memcpy(p + k * bytes, &v, MG_MIN(bytes, 8));
        if (bytes == 16) memcpy(p + k * bytes + 8, &v, 8);
    }
    if (!page) {
        keep_origin(a->f->wk, p, a->bytes, origin);
        return;
    }
    for (uint32_t k = 0; k < a->bytes; k++) {
        bad += p[k] != 0xff;
        in_part |= p[k] != 0xff && p[k];
    }
    uint8_t n = bad == a->bytes || in_part ? store_number(a) : 0;
    if (n || atomic_load(&page->who)) mg_page_who(page, a->ea[lane], a->bytes, n);
    if (!n) return;
    emu_defined_told(a->f, a->op, EMU_USE_COPIED, lane, 1, origin, a->bytes, n);
}

static void store_whole(const struct access *a, uint32_t mask)
{
    uint64_t first = a->ea[0], apart = 0;
    if (a->op->space == MG_SPACE_global) {
        if (all_defined(a)) return;
        ALL apart |= a->ea[i] ^ (first + (uint64_t)a->bytes * i);
        if (mask == UINT32_MAX && !apart && (first & (MG_PAGE_BYTES - 1)) + EMU_LANES * a->bytes <= MG_PAGE_BYTES) {
            struct mg_page *page;
            uint8_t *p = write_bits(a, 0, false, &page);
            if (p) memset(p, 0xff, EMU_LANES * a->bytes);
            return;
        }
    }
    EMU_FOR_LANES(i, mask)
    {
        struct mg_page *page;
        uint8_t *p = write_bits(a, i, false, &page);
        if (p) memset(p, 0xff, a->bytes);
    }
}

void emu_defined_store(const struct emu_alu *o, char *regs, uint32_t mask)
{
    struct access a;
    begin(&a, OP(o), regs, mask);
    const struct emu_def *d = a.op->ext;
    uint32_t some = 0, m = a.mask;
    if (!m) return;
    for (uint32_t k = 0; k < d->n_src; k++) some |= a.f->shade->marks[d->src[k].mark].some;
    some &= m;
    if (m & ~some) store_whole(&a, m & ~some);
    EMU_FOR_LANES(i, some)
    {
        struct mg_page *page;
        uint8_t *p = write_bits(&a, i, true, &page);
        if (p) store_lane(&a, i, p, page);
    }
}

/* ---- atomics ----------------------------------------------------------------------------------------------- */

/* The memory that an atomic reads is an operand, too; exch alone does not look at it. */
static void atom_lane(const struct access *a, uint32_t lane)
{
    const struct emu_def *d = a->op->ext;
    unsigned space;
    struct mg_page *page;
    const uint8_t *p = read_bits(a, lane, &space);
    if (!p || is_whole(p, a->bytes)) {
        for (uint32_t k = 0; k < d->n_dst; k++) emu_defined_clear(a->f, d->dst[k].mark, 1u << lane);
        return;
    }
    uint32_t origin = origin_of(a, space, told_address(a, space, lane));
    if (a->op->sub == EMU_ATOM_EXCH)
        load_lane(a, lane, p, origin);
    else {
        emu_defined_told(a->f, a->op, EMU_USE_ATOMIC, lane, 1, origin, a->bytes, 0);
        for (uint32_t k = 0; k < d->n_dst; k++) emu_defined_clear(a->f, d->dst[k].mark, 1u << lane);
    }
    uint8_t *to = write_bits(a, lane, false, &page);
    if (to) memset(to, 0xff, a->bytes);
}

void emu_defined_atom(const struct emu_alu *o, char *regs, uint32_t mask)
{
    struct access a;
    begin(&a, OP(o), regs, mask);
    const struct emu_def *d = a.op->ext;
    for (uint32_t k = 0; k < d->n_src; k++) emu_defined_use(a.f, a.op, &d->src[k], EMU_USE_ATOMIC, a.mask, a.bytes);
    EMU_FOR_LANES(i, a.mask) atom_lane(&a, i);
}

/* ---- by others ----------------------------------------------------------------------------------------------- */

void emu_defined_written(struct emu_frame *f, uint64_t host, uint64_t bytes)
{
    unsigned space;
    if (!f->w->cta->defined) return;
    uint8_t *p = cta_bits(f, host, bytes, &space, true);
    if (p)
        memset(p, 0xff, bytes);
    else
        mg_defined_set(host, bytes);
}

/* ---- calls --------------------------------------------------------------------------------------------------- */

static struct emu_def_opnd place_of(const struct emu_func *fn, uint32_t off, uint8_t cls)
{
    uint32_t mark = fn->n_marks ? fn->mark_at[off / 4] : 0;
    return (struct emu_def_opnd){.mark = mark, .off = off, .cls = cls, .bits = fn->n_marks ? fn->marks[mark].bits : 0};
}

static void arg_lane(const struct emu_arg *a, struct emu_frame *from, struct emu_frame *to, uint32_t lane)
{
    uint32_t origin = 0;
    uint64_t v = 0;
    if (a->from_reg) {
        struct emu_def_opnd s = place_of(from->fn, a->from, a->from_class);
        v = emu_defined_get(from, &s, lane, &origin);
    }
    if (a->to_reg) {
        struct emu_def_opnd d = place_of(to->fn, a->to, a->to_class);
        if (!a->from_reg) {
            uint64_t have = 0;
            uint32_t n = MG_MIN(a->bytes, 8);
            memcpy(&have, local_bits(from, lane, from->local_at + a->from), n);
            v = n < 8 ? ~have & ((1ull << 8 * n) - 1) : ~have;
            origin = kept_origin(from->wk, local_bits(from, lane, from->local_at + a->from), n);
            if (!origin) origin = EMU_ORIGIN(EMU_ORIGIN_LOCAL, 0);
        }
        emu_defined_put(to, &d, lane, v, origin);
        return;
    }
    uint64_t at = to->local_at + a->to;
    touched(to->w->cta, at, a->bytes);
    if (!a->from_reg) {
        const uint8_t *p = local_bits(from, lane, from->local_at + a->from);
        memmove(local_bits(to, lane, at), p, a->bytes);
        if (from->wk->kept.n)
            keep_origin(from->wk, local_bits(to, lane, at), a->bytes, kept_origin(from->wk, p, a->bytes));
        return;
    }
    v = ~v;
    memset(local_bits(to, lane, at), v == UINT64_MAX ? 0xff : 0, a->bytes);
    memcpy(local_bits(to, lane, at), &v, MG_MIN(a->bytes, 8));
    if (~v) keep_origin(from->wk, local_bits(to, lane, at), a->bytes, origin);
}

void emu_defined_arg(const struct emu_arg *a, struct emu_frame *from, struct emu_frame *to, uint32_t mask)
{
    EMU_FOR_LANES(i, mask) arg_lane(a, from, to, i);
}

void emu_defined_results(const struct emu_alu *o, char *regs, uint32_t mask)
{
    struct emu_frame *f = EMU_FRAME(regs);
    const struct emu_call *call = OP(o)->ext;
    for (uint32_t k = 0; k < call->n_out; k++) {
        const struct emu_arg *a = &call->actual_out[k];
        if (a->to_reg)
            emu_defined_clear(f, place_of(f->fn, a->to, a->to_class).mark, mask);
        else {
            touched(f->w->cta, f->local_at + a->to, a->bytes);
            EMU_FOR_LANES(i, mask) memset(local_bits(f, i, f->local_at + a->to), 0xff, a->bytes);
        }
    }
}
