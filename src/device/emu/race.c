#include "device/emu/race.h"

#include <stdlib.h>
#include <string.h>

/* ---- of a launch, of a CTA ---------------------------------------------------------------------------- */

static struct emu_race *race_new(const struct emu_launch *l)
{
    const struct mg_dim3 *g = &l->l->grid;
    struct emu_race *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->n_ctas = (uint64_t)g->x * g->y * g->z;
    r->past = calloc(MG_MIN(r->n_ctas, EMU_RACE_MOST_CTAS), sizeof *r->past);
    if (r->n_ctas > EMU_RACE_MOST_CTAS) atomic_store(&r->full, true);
    if (r->past && !pthread_rwlock_init(&r->past_lock, NULL)) return r;
    free(r->past);
    free(r);
    return NULL;
}

void emu_race_free(struct emu_race *r)
{
    if (!r) return;
    for (struct emu_race_page *p = atomic_load(&r->all_pages), *next; p; p = next) {
        next = p->next;
        free(p->times);
        free(p);
    }
    for (struct emu_race_level *l = atomic_load(&r->all_levels), *next; l; l = next) {
        next = l->next;
        free(l);
    }
    for (uint64_t i = 0; i < r->n_ctas && i < EMU_RACE_MOST_CTAS; i++) {
        if (r->past[i]) mg_vec_release(&r->past[i]->events);
        free(r->past[i]);
    }
    free(r->past);
    pthread_rwlock_destroy(&r->past_lock);
    free(r);
}

struct emu_race_cta *emu_race_cta_new(struct emu_launch *l)
{
    struct emu_race_cta *k = calloc(1, sizeof *k);
    pthread_mutex_lock(&l->lock);
    if (!l->race) l->race = race_new(l);
    if (k) k->race = l->race;
    pthread_mutex_unlock(&l->lock);
    if (k && k->race) return k;
    free(k);
    return NULL;
}

void emu_race_cta_free(struct emu_race_cta *k)
{
    if (!k) return;
    mg_map_release(&k->flags);
    free(k);
}

/* ---- pages ---------------------------------------------------------------------------------------------- */

static struct emu_race_level *level_of(struct emu_race *r, uint64_t address)
{
    _Atomic(struct emu_race_level *) *at = &r->levels[address >> 30];
    struct emu_race_level *l = atomic_load(at), *none = NULL;
    if (l) return l;
    l = calloc(1, sizeof *l);
    if (!l) return NULL;
    if (!atomic_compare_exchange_strong(at, &none, l)) {
        free(l);
        return none;
    }
    l->next = atomic_load(&r->all_levels);
    while (!atomic_compare_exchange_weak(&r->all_levels, &l->next, l)) {
    }
    return l;
}

/* NULL: none, and none can be made. */
static struct emu_race_page *page_of(struct emu_race *r, uint64_t address)
{
    struct emu_race_level *l = address >> 48 ? NULL : level_of(r, address);
    if (!l) return NULL;
    _Atomic(struct emu_race_page *) *at = &l->pages[address >> 12 & 0x3ffff];
    struct emu_race_page *p = atomic_load(at), *none = NULL;
    if (p) return p;
    p = atomic_fetch_add(&r->bytes, sizeof *p) < EMU_RACE_CAP ? calloc(1, sizeof *p) : NULL;
    if (!p) {
        atomic_store(&r->full, true);
        return NULL;
    }
    if (!atomic_compare_exchange_strong(at, &none, p)) {
        free(p);
        return none;
    }
    p->next = atomic_load(&r->all_pages);
    while (!atomic_compare_exchange_weak(&r->all_pages, &p->next, p)) {
    }
    return p;
}

/* The page that is locked: neighbouring lanes mostly touch one. A thread holds one at most. */
struct held {
    struct emu_race_page *page; /* NULL: none */
    uint64_t number;
    _Atomic uint8_t *lock;
};

static void let_go(struct held *h)
{
    if (h->page) atomic_store_explicit(h->lock, 0, memory_order_release);
    h->page = NULL;
}

/* NULL: it has no shadow. */
static struct emu_race_page *hold(struct held *h, struct emu_race *r, uint64_t address)
{
    uint64_t number = address >> 12;
    if (h->page && h->number == number) return h->page;
    let_go(h);
    struct emu_race_page *p = page_of(r, address);
    if (!p) return NULL;
    h->lock = &r->locks[number * 0x9e3779b97f4a7c15u >> 54];
    while (atomic_exchange_explicit(h->lock, 1, memory_order_acquire)) {
    }
    h->number = number;
    return h->page = p;
}

/* ---- two accesses of one word -------------------------------------------------------------------------- */

struct access { /* of one lane */
    const struct emu_op *op;
    struct emu_frame *f;
    struct emu_race_cta *k;
    uint64_t self; /* its record, without bytes */
    uint64_t cta, address;
    const uint64_t *ea;        /* of all lanes */
    uint32_t warp, lane, done; /* done: lanes of this instruction before it */
    uint32_t bytes;
    uint32_t time;      /* of a strong write */
    const char *stored; /* what it stores; NULL: nothing, or what depends on the memory */
    uint64_t alike;     /* a write that it races with, of the same value in all words so far; 0: none */
    bool reads, writes, told;
    struct held held;
};

static bool same_warp(const struct access *a, uint64_t record)
{
    return !((a->self ^ record) >> 37);
}

static bool both_strong(const struct access *a, uint64_t record)
{
    unsigned x = EMU_RACE_KIND_OF(a->self), y = EMU_RACE_KIND_OF(record);
    if (x == EMU_RACE_WEAK || y == EMU_RACE_WEAK) return false;
    return EMU_RACE_CTA_OF(record) == a->cta || (x != EMU_RACE_CTA && y != EMU_RACE_CTA);
}

static void values_of(const struct access *a, uint32_t lane, char *v)
{
    const struct emu_op *op = a->op;
    uint32_t step = op->bytes == 16 ? 16 : op->flags & EMU_OF_WIDE ? 8 : 4;
    for (uint32_t e = 0; e < op->vec; e++)
        memcpy(v + e * op->bytes, a->f->regs + (op->slots ? op->slots[e] : op->a.s[1]) + lane * step, op->bytes);
}

/* Was the record's write a plain one of its kind: no atomic that depends on what was there? */
static bool was_store(const struct access *a, uint64_t record)
{
    uint32_t site = EMU_RACE_SITE_OF(record);
    unsigned kind = EMU_RACE_KIND_OF(record);
    return site ? !emu_check_combines(a->f->w->cta->code, site) : kind == EMU_RACE_WEAK || kind == EMU_RACE_STRONG;
}

static void report_race(struct access *a, uint64_t record, unsigned other_what, bool same)
{
    if (a->told) return;
    a->told = true;
    struct emu_race_fact x = {.site = a->op->site,
                              .lane = a->lane,
                              .bytes = a->bytes,
                              .what = a->op->sub & (EMU_CHECK_READ | EMU_CHECK_WRITE),
                              .kind = a->op->mode,
                              .other_what = other_what,
                              .address = a->address,
                              .other = record,
                              .same = same};
    emu_race_found(a->f, &x);
}

/* Bytes of a word, a bit each, as the bits of the word. */
static uint32_t bits_of(uint32_t bytes)
{
    return (bytes & 1) * 0xffu | (bytes >> 1 & 1) * 0xff00u | (bytes >> 2 & 1) * 0xff0000u |
           (bytes >> 3 & 1) * 0xff000000u;
}

/* The two write the same where they meet. What the other one writes stands in the shadow: it may not have got to the
 * memory yet. */
static bool same_value(const struct access *a, uint64_t record, uint32_t stored, uint32_t value, uint32_t bytes)
{
    return a->stored && was_store(a, record) && !((stored ^ value) & bits_of((uint32_t)record & bytes));
}

/* Two lanes store to one place in one instruction. */
static void collide(struct access *a, uint64_t record)
{
    char v[256], u[256];
    uint32_t other = EMU_RACE_LANE_OF(record);
    if (!(a->done >> other & 1) || a->reads || a->bytes > sizeof v || a->ea[other] != a->address) return;
    values_of(a, a->lane, v);
    values_of(a, other, u);
    if (memcmp(v, u, a->bytes)) report_race(a, record, EMU_CHECK_WRITE, false);
}

static bool races(const struct access *a, uint64_t record, const uint32_t *time)
{
    if (same_warp(a, record) || both_strong(a, record)) return false;
    const struct emu_race_warp *w = &a->k->warps[a->warp];
    bool strong = EMU_RACE_KIND_OF(record) == EMU_RACE_STRONG || EMU_RACE_KIND_OF(record) == EMU_RACE_ATOMIC;
    if (strong && time && *time && *time <= w->seen) return false; /* it was read from that write, or a later one */
    return !emu_race_ordered(a->k, a->cta, a->warp, record);
}

/* Of several readers one is kept: of another CTA than the last writer's rather than of its own, else by chance. */
static void note_read(const struct access *a, struct emu_race_word *w, uint64_t self)
{
    uint64_t old = w->read;
    if (old && !same_warp(a, old) && EMU_RACE_CTA_OF(old) != a->cta) {
        bool mine_foreign = !w->write || EMU_RACE_CTA_OF(w->write) != a->cta,
             old_foreign = !w->write || EMU_RACE_CTA_OF(w->write) != EMU_RACE_CTA_OF(old);
        if (old_foreign && !mine_foreign) return;
        if (old_foreign && (a->address >> 2) * 0x9e3779b97f4a7c15u >> 63) return;
    }
    w->read =
        old && same_warp(a, old) && EMU_RACE_INTERVAL_OF(old) == EMU_RACE_INTERVAL_OF(self) ? self | (old & 15) : self;
}

/* stored: of the word's bytes that are written. */
static void touch(struct access *a, struct emu_race_page *p, uint32_t word, uint32_t bytes, uint32_t stored)
{
    struct emu_race_word *w = &p->words[word];
    uint64_t self = a->self | bytes;
    const uint32_t *time = p->times ? &p->times[word] : NULL;
    if (w->write & bytes && w->write != self) {
        if (!races(a, w->write, time)) {
            if (a->writes && !((w->write ^ self) & ~(15ull | 31ull << 32))) collide(a, w->write);
        } else if (a->writes && same_value(a, w->write, stored, p->values[word], bytes))
            a->alike = w->write;
        else
            report_race(a, w->write, EMU_CHECK_WRITE, false);
    }
    if (!a->writes) {
        note_read(a, w, self);
        return;
    }
    if (w->read & bytes && races(a, w->read, NULL)) report_race(a, w->read, EMU_CHECK_READ, false);
    if (w->read & bytes) w->read = 0;
    w->write = same_warp(a, w->write) && w->write && EMU_RACE_INTERVAL_OF(w->write) == EMU_RACE_INTERVAL_OF(self) &&
                       EMU_RACE_KIND_OF(w->write) == EMU_RACE_KIND_OF(self) &&
                       (a->stored != NULL) == was_store(a, w->write)
                   ? self | (w->write & 15)
                   : self;
    p->values[word] = (p->values[word] & ~bits_of(bytes)) | (stored & bits_of(bytes));
}

/* ---- flags ----------------------------------------------------------------------------------------------- */

static uint32_t *times_of(struct emu_race *r, struct emu_race_page *p)
{
    if (!p->times && atomic_fetch_add(&r->bytes, EMU_RACE_PAGE) < EMU_RACE_CAP)
        p->times = calloc(EMU_RACE_PAGE / 4, sizeof *p->times);
    if (!p->times) atomic_store(&r->full, true);
    return p->times;
}

static void order_by(struct access *a, struct emu_race_page *p, uint64_t at)
{
    struct emu_race_warp *w = &a->k->warps[a->warp];
    uint32_t word = (uint32_t)(at & (EMU_RACE_PAGE - 1)) / 4;
    if (a->reads && !(w->n_asked && w->asked[(w->n_asked - 1) % EMU_LANES] == at)) {
        if (w->n_asked < EMU_LANES) w->asked[w->n_asked] = at;
        w->n_asked += w->n_asked <= EMU_LANES;
    }
    if (a->writes && times_of(a->k->race, p)) p->times[word] = MG_MAX(p->times[word], a->time);
}

static uint32_t time_at(struct emu_race *r, uint64_t address)
{
    struct held h = {0};
    struct emu_race_page *p = hold(&h, r, address);
    if (!p) return atomic_load(&r->time);
    uint32_t time = p->times ? p->times[(address & (EMU_RACE_PAGE - 1)) / 4] : 0;
    let_go(&h);
    return time;
}

void emu_race_settle(struct emu_race_cta *k, uint32_t warp)
{
    struct emu_race_warp *w = &k->warps[warp];
    if (w->n_asked > EMU_LANES)
        w->pending = MG_MAX(w->pending, atomic_load(&k->race->time));
    else
        for (uint32_t i = 0; i < w->n_asked; i++) w->pending = MG_MAX(w->pending, time_at(k->race, w->asked[i]));
    if (w->acquires[0] || w->acquires[1]) w->seen_narrow = MG_MAX(w->seen_narrow, w->pending);
    if (w->acquires[0]) w->seen = MG_MAX(w->seen, w->pending);
    w->n_asked = 0;
    w->acquires[0] = w->acquires[1] = false;
}

static void order_by_shared(struct access *a)
{
    struct emu_race_warp *w = &a->k->warps[a->warp];
    uint64_t at;
    if (a->reads && mg_map_get(&a->k->flags, a->address, &at)) w->pending = MG_MAX(w->pending, (uint32_t)at);
    if (a->writes) mg_map_set(&a->k->flags, a->address, a->time);
}

/* ---- the operations --------------------------------------------------------------------------------------- */

/* A word's worth, all of one word: most accesses. */
static bool word_global(struct access *a, bool strong)
{
    if (a->bytes != 4 || a->address & 3) return false;
    struct emu_race_page *p = hold(&a->held, a->k->race, a->address);
    uint32_t stored = 0;
    if (!p) return true;
    if (a->stored) memcpy(&stored, a->stored, 4);
    touch(a, p, (uint32_t)(a->address & (EMU_RACE_PAGE - 1)) / 4, 15, stored);
    if (strong) order_by(a, p, a->address);
    return true;
}

static void bytes_global(struct access *a, bool strong)
{
    uint64_t end = a->address + a->bytes;
    for (uint64_t at = a->address; at < end;) {
        uint64_t stop = MG_MIN(end, (at & ~(uint64_t)(EMU_RACE_PAGE - 1)) + EMU_RACE_PAGE);
        struct emu_race_page *p = hold(&a->held, a->k->race, at);
        if (!p) return;
        while (at < stop) {
            uint32_t from = at & 3, n = (uint32_t)MG_MIN(stop - at, 4 - from),
                     word = (uint32_t)(at & (EMU_RACE_PAGE - 1)) / 4;
            uint32_t stored = 0;
            if (a->stored) memcpy((char *)&stored + from, a->stored + (at - a->address), n);
            touch(a, p, word, ((1u << n) - 1) << from, stored);
            if (strong) order_by(a, p, at);
            at += n;
        }
    }
}

static void lane_global(struct access *a, bool strong)
{
    if (!word_global(a, strong)) bytes_global(a, strong);
    if (a->alike) report_race(a, a->alike, EMU_CHECK_WRITE, true);
}

enum where { GLOBAL, SHARED, ELSEWHERE };

static enum where where_is(const struct emu_frame *f, const struct emu_op *op, uint32_t lane, uint64_t a)
{
    if (op->space == MG_SPACE_shared) return SHARED;
    if (op->space == MG_SPACE_global) return GLOBAL;
    if (a - (uint64_t)f->shared < f->shared_bytes) return SHARED;
    if (a - (f->local_va + f->local_stride * lane) < f->local_bytes || a - (uint64_t)f->params < f->param_bytes)
        return ELSEWHERE;
    return f->w->cta->n_peers > 1 && emu_in_cluster(f, a, 1) ? ELSEWHERE : GLOBAL;
}

void emu_race_access(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = (const struct emu_op *)(const void *)o;
    struct emu_frame *f = EMU_FRAME(regs);
    struct emu_cta *c = f->w->cta;
    struct emu_race_cta *k = c->check->race;
    uint64_t ea[EMU_LANES];
    if (op->guard) mask &= *(const uint32_t *)(regs + op->guard) ^ op->guard_flip;
    if (!mask || !k || c->linear >= EMU_RACE_MOST_CTAS) return;
    bool strong = op->mode != EMU_RACE_WEAK, narrow = op->sub & EMU_RACE_NARROW;
    struct access a = {.op = op,
                       .f = f,
                       .k = k,
                       .cta = c->linear,
                       .warp = f->w->ix,
                       .ea = ea,
                       .bytes = (uint32_t)op->bytes * op->vec,
                       .reads = op->sub & EMU_CHECK_READ,
                       .writes = op->sub & EMU_CHECK_WRITE};
    char stored[256];
    bool stores = a.writes && (!a.reads || op->sub & EMU_CHECK_SETS) && a.bytes <= sizeof stored;
    bool reads = a.reads && (!a.writes || op->sub & EMU_RACE_RESULT); /* sees what was written */
    emu_race_settle(k, a.warp);
    if (op->sub & EMU_RACE_RELEASE) emu_race_fenced(k, a.warp, narrow);
    if (strong && a.writes) a.time = emu_race_publish(k, a.cta, a.warp);
    uint32_t site = op->site < EMU_RACE_MOST_SITES ? op->site : 0;
    k->touched |= op->space != MG_SPACE_shared;
    emu_plain_addresses(f, op, regs, ea);
    EMU_FOR_LANES(i, mask)
    {
        if (op->space == MG_SPACE_shared) ea[i] += (uint64_t)f->shared;
        enum where at = where_is(f, op, i, ea[i]);
        a.lane = i;
        a.address = ea[i];
        a.told = false;
        a.alike = 0;
        a.stored = stores ? stored : NULL;
        if (stores) values_of(&a, i, stored);
        a.self = a.cta << 42 | (uint64_t)a.warp << 37 | (uint64_t)i << 32 | (uint64_t)k->interval << 18 | site << 6 |
                 (uint64_t)op->mode << 4;
        if (at == SHARED && strong) order_by_shared(&a);
        if (at == GLOBAL && !(ea[i] & (op->bytes - 1u))) lane_global(&a, strong);
        a.done |= 1u << i;
    }
    let_go(&a.held);
    if (op->sub & EMU_RACE_ACQUIRE && reads) k->warps[a.warp].acquires[narrow] = true;
}

void emu_race_fence(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = (const struct emu_op *)(const void *)o;
    struct emu_frame *f = EMU_FRAME(regs);
    if (op->guard) mask &= *(const uint32_t *)(regs + op->guard) ^ op->guard_flip;
    if (!mask || !f->w->cta->check->race) return;
    emu_race_settle(f->w->cta->check->race, f->w->ix);
    emu_race_fenced(f->w->cta->check->race, f->w->ix, op->sub & EMU_RACE_NARROW);
}
