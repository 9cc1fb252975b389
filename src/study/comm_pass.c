/* One launch over one worker's pages: stores into the new cells, loads against new and old ones, then new over old.
 * Accesses come target by target (comm.c sorts them), so that what a target has read is one number in a cell. */
#include <stdlib.h>
#include <string.h>

#include "study/comm_worker.h"

struct lanes { /* of one target, as the passes see them */
    struct comm_worker *w;
    const struct mg_comm_access *a;
    uint32_t unit; /* of the step */
};
typedef void touch_fn(const struct lanes *l, uint64_t address);

static bool is_mine(const struct comm_worker *w, uint64_t address)
{
    const struct mg_comm_opts *o = &w->comm->opts;
    uint64_t page = address >> SHADOW_PAGE_SHIFT;
    if (o->ranks == 1 && o->workers == 1) return true;
    uint32_t hash = (uint32_t)(page * 0x9e3779b97f4a7c15u >> 40);
    return hash % o->ranks == o->rank && hash / o->ranks % o->workers == w->number;
}

/* ---- stores ------------------------------------------------------------------------------------------- */

static void note_order(struct new_cell *c, const struct mg_comm_access *a, uint32_t cta, uint32_t first_cta)
{
    if (cta != first_cta) c->many_ctas = true;
    if (a->phase > c->phase) return;
    if (a->phase < c->phase) {
        c->phase = a->phase;
        c->order = a->order;
        c->warp = a->warp;
        c->many_warps = false;
    } else if (a->warp != c->warp) {
        c->many_warps = true;
    } else if (a->order < c->order) {
        c->order = a->order;
    }
}

static void write_cell(const struct lanes *l, struct new_cell *c, uint32_t weight)
{
    struct shadow *s = &l->w->shadow;
    uint32_t per_cta = l->w->comm->step->per_cta, cta = l->unit / per_cta;
    bool atomic = l->a->kind == MG_COMM_ATOMIC;
    uint64_t stores = atomic ? 0 : weight, atomics = atomic ? weight : 0;
    if (!c->writer) {
        *c = (struct new_cell){.writer = l->unit + 1,
                               .start = c->start,
                               .phase = l->a->phase,
                               .order = l->a->order,
                               .warp = l->a->warp,
                               .stores = (uint32_t)stores,
                               .atomics = (uint32_t)atomics & 0xffffff};
    } else {
        uint32_t first = c->writer & SHADOW_LIST ? s->new_shares.at[c->writer & ~SHADOW_LIST].unit : c->writer - 1;
        note_order(c, l->a, cta, first / per_cta);
        bool alone = c->writer == l->unit + 1 && c->stores + stores <= UINT32_MAX && c->atomics + atomics < 1u << 24;
        if (alone) {
            c->stores += (uint32_t)stores;
            c->atomics = (uint32_t)(c->atomics + atomics) & 0xffffff;
        } else {
            shadow_add_share(s, c, l->unit, stores, atomics);
        }
    }
    if (!atomic) c->has_store = true;
}

static void write_lane(const struct lanes *l, uint64_t address)
{
    struct shadow *s = &l->w->shadow;
    uint64_t end = address + (l->w->comm->opts.match == MG_COMM_START ? 1 : l->a->bytes), start = address;
    while (address < end) {
        uint64_t line_end = (address | (SHADOW_LINE - 1)) + 1, to = MG_MIN(line_end, end);
        if (!is_mine(l->w, address)) {
            address = to;
            continue;
        }
        struct shadow_slot *slot = shadow_slot(shadow_page(s, address), address);
        bool fine = (address | to) & 3;
        struct new_line *n = shadow_new(s, slot, address, fine);
        if (fine && !n->fine) {
            shadow_divide_new(s, slot);
            n = slot->now;
        }
        uint32_t width = n->fine ? 1 : 4, weight = l->w->comm->opts.match == MG_COMM_START ? l->a->bytes : width;
        for (; address < to; address += width) {
            struct new_cell *c = &n->cells[(address & (SHADOW_LINE - 1)) / width];
            write_cell(l, c, weight);
            if (address == start) c->start = true;
        }
    }
}

/* ---- loads -------------------------------------------------------------------------------------------- */

enum order { FROM_BEFORE, FROM_SELF, FROM_LAUNCH, UNKNOWN };

static bool is_own(const struct lanes *l, const struct new_cell *c)
{
    const struct mg_comm *comm = l->w->comm;
    if (c->writer & SHADOW_LIST) return comm->opts.entity >= MG_COMM_SM && !c->many_ctas;
    return comm_entity_of_unit(comm, comm->step, c->writer - 1) == comm_entity_of_unit(comm, comm->step, l->unit);
}

/* Whose value does the access read of a cell that the launch writes, too? */
static enum order order_of(const struct lanes *l, const struct new_cell *c)
{
    const struct mg_comm_access *a = l->a;
    uint32_t per_cta = l->w->comm->step->per_cta;
    if (a->kind == MG_COMM_ATOMIC && !c->has_store) return FROM_BEFORE;
    uint32_t writer =
        c->writer & SHADOW_LIST ? l->w->shadow.new_shares.at[c->writer & ~SHADOW_LIST].unit : c->writer - 1;
    if (c->many_ctas || writer / per_cta != l->unit / per_cta) return UNKNOWN;
    bool after;
    if (!c->many_warps && a->warp == c->warp)
        after = a->order > c->order;
    else if (a->phase != c->phase)
        after = a->phase > c->phase;
    else
        return UNKNOWN;
    return !after ? FROM_BEFORE : is_own(l, c) ? FROM_SELF : FROM_LAUNCH;
}

static uint32_t place_of(const struct comm_worker *w, uint32_t step, uint32_t entity)
{
    uint64_t key = (uint64_t)step << 32 | entity;
    return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & (w->sources_cap - 1);
}

static void grow_sources(struct comm_worker *w)
{
    w->sources_cap = w->sources_cap ? 2 * w->sources_cap : 64;
    free(w->sources_at);
    w->sources_at = mg_xcalloc(w->sources_cap, sizeof *w->sources_at);
    for (uint32_t i = 0; i < w->sources.n; i++) {
        uint32_t at = place_of(w, w->sources.at[i].step, w->sources.at[i].entity);
        while (w->sources_at[at]) at = (at + 1) & (w->sources_cap - 1);
        w->sources_at[at] = i + 1;
    }
}

static uint32_t find_source(struct comm_worker *w, uint32_t step, uint32_t entity)
{
    if (2 * (w->sources.n + 1) > w->sources_cap) grow_sources(w);
    uint32_t at = place_of(w, step, entity);
    for (; w->sources_at[at]; at = (at + 1) & (w->sources_cap - 1)) {
        const struct source *s = &w->sources.at[w->sources_at[at] - 1];
        if (s->step == step && s->entity == entity) return w->sources_at[at] - 1;
    }
    *mg_vec_push(&w->sources) = (struct source){.step = step, .entity = entity};
    w->sources_at[at] = w->sources.n;
    return w->sources.n - 1;
}

/* The source that a writer is: several where its units are not of one entity. */
static uint32_t source_of(struct comm_worker *w, uint32_t writer)
{
    const struct mg_comm *c = w->comm;
    if (writer == w->last_writer) return w->last_source;
    const struct share *shares = w->shadow.old_shares.at;
    uint32_t ix = writer & ~SHADOW_LIST, unit = writer & SHADOW_LIST ? shares[ix].unit : writer - 1;
    const struct mg_comm_step *s = comm_step_of_unit(c, unit);
    uint32_t entity = comm_entity_of_unit(c, s, unit - s->first_unit);
    for (; writer & SHADOW_LIST && ix; ix = shares[ix].next)
        if (comm_entity_of_unit(c, s, shares[ix].unit - s->first_unit) != entity) entity = MG_COMM_SEVERAL;
    w->last_writer = writer;
    return w->last_source = find_source(w, (uint32_t)(s - c->steps.at), entity);
}

/* What a unit has stored is used: counts of its CTA, from any worker. */
static void use_stores(struct comm_worker *w, uint32_t unit, uint64_t stores, uint64_t atomics, bool start,
                       uint64_t address)
{
    const struct mg_comm_step *s = comm_step_of_unit(w->comm, unit);
    uint32_t cta = (unit - s->first_unit) / s->per_cta;
    __atomic_fetch_add(&s->used[cta].store, stores, __ATOMIC_RELAXED);
    if (atomics) __atomic_fetch_add(&s->used[cta].atomic, atomics, __ATOMIC_RELAXED);
    if (start) gap_stores_add(&w->stores, s->first_unit + cta * s->per_cta, address);
}

static void use_writers(struct comm_worker *w, struct old_cell *c, uint64_t address)
{
    bool start = c->start;
    if (c->writer & SHADOW_LIST) {
        for (uint32_t ix = c->writer & ~SHADOW_LIST; ix; ix = w->shadow.old_shares.at[ix].next) {
            struct share *s = &w->shadow.old_shares.at[ix];
            if (s->stores | s->atomics | start) use_stores(w, s->unit, s->stores, s->atomics, start, address);
            s->stores = s->atomics = 0;
        }
    } else if (c->stores | c->atomics | start) {
        use_stores(w, c->writer - 1, c->stores, c->atomics, start, address);
        c->stores = 0;
        c->atomics = 0;
    }
    c->start = false;
}

static void read_old(const struct lanes *l, struct old_cell *c, uint64_t address, uint32_t weight)
{
    struct comm_worker *w = l->w;
    uint32_t ix = source_of(w, c->writer);
    struct source *s = &w->sources.at[ix];
    if (l->a->kind == MG_COMM_LOAD) w->used.load += weight;
    s->executed += weight;
    if (s->access != w->access) s->reads++;
    s->access = w->access;
    if (c->mark != w->mark) {
        s->bytes += weight;
        if (c->mark <= w->comm->entity_base) s->fresh += weight;
        c->mark = w->mark;
        c->width = MG_MIN(weight, 127u) & 127;
    } else if (w->comm->opts.match == MG_COMM_START && weight > c->width) { /* a wider read of the same start */
        s->bytes += weight - c->width;
        c->width = MG_MIN(weight, 127u) & 127;
    }
    use_writers(w, c, address);
    if (w->comm->opts.keep_addresses)
        shadow_note_read(&w->shadow, address, w->comm->opts.match == MG_COMM_START ? 1 : weight);
}

static void read_cell(const struct lanes *l, struct old_cell *c, const struct new_cell *n, uint64_t address,
                      uint32_t weight)
{
    struct comm_worker *w = l->w;
    enum order o = n && n->writer ? order_of(l, n) : FROM_BEFORE;
    if (l->a->kind == MG_COMM_ATOMIC) {
        if (n && n->writer & SHADOW_LIST) w->in_launch_atomic += weight;
        if (c && c->writer) w->used.atomic += weight; /* whoever was first: replace_cell counts it once */
    }
    if (o == FROM_LAUNCH) w->in_launch += weight;
    if (o == UNKNOWN) {
        w->ambiguous += weight;
        if (c && c->writer) w->ambiguous_most += weight;
    }
    if (o == FROM_BEFORE && c && c->writer) read_old(l, c, address, weight);
}

static void read_lane(const struct lanes *l, uint64_t address)
{
    struct comm_worker *w = l->w;
    bool by_start = w->comm->opts.match == MG_COMM_START;
    uint64_t end = address + (by_start ? 1 : l->a->bytes), start = address, used = w->used.load;
    bool begins = false; /* the first line's part communicates */
    while (address < end) {
        if (address == start || !(address & (((uint64_t)1 << SHADOW_PAGE_SHIFT) - 1))) w->access++;
        uint64_t line_end = (address | (SHADOW_LINE - 1)) + 1, to = MG_MIN(line_end, end);
        struct shadow_page *p = is_mine(w, address) ? shadow_find(&w->shadow, address) : NULL;
        struct shadow_slot *slot = p ? shadow_slot(p, address) : NULL;
        if (!slot || (!slot->old && !slot->now)) {
            address = to;
            continue;
        }
        bool fine = (address | to) & 3 || (slot->old && slot->old->fine) || (slot->now && slot->now->fine);
        if (fine) shadow_divide_old(&w->shadow, slot);
        uint32_t width = fine ? 1 : 4, weight = by_start ? l->a->bytes : width;
        for (; address < to; address += width) {
            uint32_t at = address & (SHADOW_LINE - 1);
            struct new_cell *n = slot->now ? &slot->now->cells[slot->now->fine ? at : at / 4] : NULL;
            read_cell(l, slot->old ? &slot->old->cells[at / width] : NULL, n, address, weight);
        }
        if ((start | (SHADOW_LINE - 1)) + 1 >= to) begins |= w->used.load != used;
    }
    if (begins && is_mine(w, start)) gap_runs_add(&w->loads, start, 0, 1);
}

/* ---- spans: adjacent lanes that access words, one behind the other ------------------------------------- */

/* Can adjacent lanes of the access be taken together? */
static bool has_spans(const struct comm_worker *w, const struct mg_comm_access *a)
{
    return a->kind != MG_COMM_ATOMIC && (a->bytes == 4 || a->bytes == 8 || a->bytes == 16) &&
           w->comm->opts.match == MG_COMM_BYTE;
}

static bool is_span(const struct comm_worker *w, const struct mg_comm_access *a)
{
    return a->stride == (int32_t)a->bytes && !(a->base & (a->bytes - 1)) && has_spans(w, a);
}

/* Cells from i to j hold what one unit wrote; all of them have been read by this target, or none. */
static bool is_even(const struct comm_worker *w, const struct old_cell *c, uint32_t i, uint32_t j)
{
    uint32_t writer = c[i].writer, other = 0;
    bool seen = c[i].mark == w->mark;
    for (uint32_t k = i; k < j; k++) other |= (c[k].writer ^ writer) | (uint32_t)((c[k].mark == w->mark) ^ seen);
    return !other && writer;
}

static void read_even(const struct lanes *l, struct old_cell *c, uint32_t i, uint32_t j, uint64_t line)
{
    struct comm_worker *w = l->w;
    uint32_t ix = source_of(w, c[i].writer), bytes = (j - i) * 4;
    struct source *s = &w->sources.at[ix];
    w->used.load += bytes;
    s->executed += bytes;
    s->reads += bytes / l->a->bytes;
    if (c[i].mark == w->mark) return;
    s->bytes += bytes;
    for (uint32_t k = i; k < j; k++) {
        if (c[k].mark <= w->comm->entity_base) s->fresh += 4;
        c[k].mark = w->mark;
        c[k].width = 4;
        if (c[k].writer & SHADOW_LIST || c[k].stores || c[k].atomics || c[k].start) use_writers(w, &c[k], line + 4 * k);
    }
    if (w->comm->opts.keep_addresses) shadow_note_read(&w->shadow, line + 4 * i, bytes);
}

static void read_span(const struct lanes *l, uint64_t address, uint32_t lanes)
{
    struct comm_worker *w = l->w;
    uint64_t end = address + (uint64_t)lanes * l->a->bytes;
    while (address < end) {
        uint64_t line = address & ~(uint64_t)(SHADOW_LINE - 1), to = MG_MIN(line + SHADOW_LINE, end);
        struct shadow_page *p = is_mine(w, address) ? shadow_find(&w->shadow, address) : NULL;
        struct shadow_slot *slot = p ? shadow_slot(p, address) : NULL;
        uint32_t i = (uint32_t)(address - line) / 4, j = (uint32_t)(to - line) / 4;
        if (slot && slot->old && !slot->now && !slot->old->fine && is_even(w, slot->old->cells, i, j)) {
            w->access += (to - address) / l->a->bytes;
            read_even(l, slot->old->cells, i, j, line);
            gap_runs_add(&w->loads, address, l->a->bytes, (uint32_t)(to - address) / l->a->bytes);
        } else if (slot && (slot->old || slot->now)) {
            for (; address < to; address += l->a->bytes) read_lane(l, address);
        }
        address = to;
    }
}

static void write_span(const struct lanes *l, uint64_t address, uint32_t lanes)
{
    struct comm_worker *w = l->w;
    uint64_t end = address + (uint64_t)lanes * l->a->bytes;
    uint32_t starts = l->a->bytes / 4 - 1;
    while (address < end) {
        uint64_t line = address & ~(uint64_t)(SHADOW_LINE - 1), to = MG_MIN(line + SHADOW_LINE, end);
        struct shadow_slot *slot = is_mine(w, address) ? shadow_slot(shadow_page(&w->shadow, address), address) : NULL;
        struct new_line *n = slot ? shadow_new(&w->shadow, slot, address, false) : NULL;
        uint32_t i = (uint32_t)(address - line) / 4, j = (uint32_t)(to - line) / 4, other = 0;
        for (uint32_t k = i; n && !n->fine && k < j; k++) other |= n->cells[k].writer;
        if (n && !n->fine && !other) {
            const struct new_cell cell = {.writer = l->unit + 1,
                                          .stores = 4,
                                          .phase = l->a->phase,
                                          .order = l->a->order,
                                          .warp = l->a->warp,
                                          .has_store = true};
            for (uint32_t k = i; k < j; k++) {
                n->cells[k] = cell;
                n->cells[k].start = !((k - i) & starts);
            }
        } else if (n) {
            for (; address < to; address += l->a->bytes) write_lane(l, address);
        }
        address = to;
    }
}

/* ---- lanes -------------------------------------------------------------------------------------------- */

/* Lanes whose addresses are listed: those one behind the other, as rows of a tile, together. */
static void each_run(const struct lanes *l, const uint64_t *address, uint32_t n, touch_fn *fn)
{
    uint32_t bytes = l->a->bytes;
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && address[end] == address[end - 1] + bytes;) end++;
        if (end - i > 1 && !(address[i] & (bytes - 1)))
            (fn == read_lane ? read_span : write_span)(l, address[i], end - i);
        else
            for (uint32_t k = i; k < end; k++) fn(l, address[k]);
    }
}

static void each_lane(const struct lanes *l, uint32_t only, touch_fn *fn)
{
    const struct mg_comm_access *a = l->a;
    const uint64_t *listed = l->w->comm->launch->addresses;
    uint64_t address = a->base;
    uint32_t ix = 0;
    if (a->stride != MG_COMM_LISTED && l->w->comm->n_shares > 1) { /* nothing of it in this worker's pages */
        uint64_t far = a->base + (uint64_t)(int64_t)a->stride * (uint32_t)(__builtin_popcount(a->mask) - 1);
        uint64_t low = MG_MIN(far, a->base), high = MG_MAX(far, a->base) + a->bytes - 1;
        if (low >> SHADOW_PAGE_SHIFT == high >> SHADOW_PAGE_SHIFT && !is_mine(l->w, low)) return;
    }
    if (only == UINT32_MAX && is_span(l->w, a)) {
        (fn == read_lane ? read_span : write_span)(l, address, (uint32_t)__builtin_popcount(a->mask));
        return;
    }
    if (only == UINT32_MAX && a->stride == MG_COMM_LISTED && has_spans(l->w, a)) {
        each_run(l, listed + a->first, (uint32_t)__builtin_popcount(a->mask), fn);
        return;
    }
    for (uint32_t left = a->mask; left; left &= left - 1, ix++) {
        if (a->stride == MG_COMM_LISTED) address = listed[a->first + ix];
        if ((left & -left) & only) fn(l, address);
        if (a->stride != MG_COMM_LISTED) address += (uint64_t)(int64_t)a->stride;
    }
}

/* fn for the lanes of a row of accesses of one target, or where targets are threads of one warp. */
static void each_access(struct comm_worker *w, const uint32_t *order, uint64_t n, bool writes, touch_fn *fn,
                        uint32_t only, uint32_t lane)
{
    const struct mg_comm *c = w->comm;
    for (uint64_t i = 0; i < n; i++) {
        const struct mg_comm_access *a = &c->launch->accesses[order[i]];
        if (!(a->mask & only) || (writes ? a->kind == MG_COMM_LOAD : a->kind == MG_COMM_STORE)) continue;
        struct lanes l = {.w = w, .a = a, .unit = a->cta};
        if (c->opts.entity == MG_COMM_WARP) l.unit = a->cta * c->step->per_cta + a->warp;
        if (c->opts.entity == MG_COMM_THREAD) l.unit = a->cta * c->step->per_cta + a->warp * 32u + lane;
        each_lane(&l, only, fn);
    }
}

/* Edges of the target, by source. */
static void close_target(struct comm_worker *w)
{
    uint32_t n = w->sources.n;
    mg_vec_reserve(&w->keys, 2 * n);
    for (uint32_t i = 0; i < n; i++)
        w->keys.at[i] = (struct mg_sort_key){(uint64_t)w->sources.at[i].step << 32 | w->sources.at[i].entity, i};
    mg_sort_keys(w->keys.at, w->keys.at + n, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct source *s = &w->sources.at[w->keys.at[i].ix];
        *mg_vec_push(&w->edges) = (struct mg_comm_edge){.source_step = s->step,
                                                        .source = s->entity,
                                                        .target = w->target,
                                                        .target_step = (uint32_t)(w->comm->step - w->comm->steps.at),
                                                        .bytes = s->bytes,
                                                        .executed = s->executed,
                                                        .reads = s->reads,
                                                        .fresh = s->fresh};
    }
    for (uint32_t i = 0; i < w->sources.n; i++) { /* each from its place in the hash */
        uint32_t at = place_of(w, w->sources.at[i].step, w->sources.at[i].entity);
        while (w->sources_at[at] != i + 1) at = (at + 1) & (w->sources_cap - 1);
        w->sources_at[at] = 0;
    }
    w->sources.n = 0;
    w->last_writer = 0;
}

static void open_target(struct comm_worker *w, uint32_t entity)
{
    w->target = entity;
    w->mark = w->comm->entity_base + entity + 1;
}

static void close_cta(struct comm_worker *w, uint32_t cta)
{
    struct mg_comm_volume *used = &w->comm->step->used[cta];
    if (w->used.load) __atomic_fetch_add(&used->load, w->used.load, __ATOMIC_RELAXED);
    if (w->used.atomic) __atomic_fetch_add(&used->atomic, w->used.atomic, __ATOMIC_RELAXED);
    w->used = (struct mg_comm_volume){0};
    gap_runs_close(&w->loads, cta, (uint32_t)(w->comm->step - w->comm->steps.at), &w->load_spans);
}

static uint64_t warp_key(const struct mg_comm_access *a)
{
    return (uint64_t)a->cta << 16 | a->warp;
}

static void read_all(struct comm_worker *w)
{
    const struct mg_comm *c = w->comm;
    uint64_t n = c->launch->n_accesses;
    bool threads = c->opts.entity == MG_COMM_THREAD, warps = threads || c->opts.entity == MG_COMM_WARP;
    for (uint64_t i = 0, to; i < n; i = to) {
        const struct mg_comm_access *first = &c->launch->accesses[c->order[i]], *a = first;
        for (to = i + 1; to < n; to++) {
            a = &c->launch->accesses[c->order[to]];
            if (warps ? warp_key(a) != warp_key(first) : a->cta != first->cta) break;
        }
        uint32_t unit = warps ? first->cta * c->step->per_cta + first->warp * (threads ? 32u : 1u) : first->cta;
        for (uint32_t lane = 0; lane < (threads ? 32u : 1u); lane++) {
            if (threads && first->warp * 32u + lane >= c->step->per_cta) break;
            uint32_t entity = comm_entity_of_unit(c, c->step, unit + lane);
            if (entity != w->target || w->mark <= c->entity_base) {
                close_target(w);
                open_target(w, entity);
            }
            each_access(w, c->order + i, to - i, false, read_lane, threads ? 1u << lane : UINT32_MAX, lane);
        }
        if (to == n || a->cta != first->cta) close_cta(w, first->cta);
    }
    close_target(w);
}

static void write_all(struct comm_worker *w)
{
    const struct mg_comm *c = w->comm;
    uint64_t n = c->launch->n_accesses;
    if (c->opts.entity != MG_COMM_THREAD) {
        each_access(w, c->order, n, true, write_lane, UINT32_MAX, 0);
        return;
    }
    for (uint64_t i = 0, to; i < n; i = to) {
        for (to = i + 1; to < n; to++)
            if (warp_key(&c->launch->accesses[c->order[to]]) != warp_key(&c->launch->accesses[c->order[i]])) break;
        for (uint32_t lane = 0; lane < 32; lane++)
            each_access(w, c->order + i, to - i, true, write_lane, 1u << lane, lane);
    }
}

/* ---- new over old ------------------------------------------------------------------------------------- */

static void replace_cell(struct comm_worker *w, struct old_cell *old, const struct new_cell *n)
{
    struct shadow *s = &w->shadow;
    uint32_t first = w->comm->step->first_unit;
    bool counted = old->writer != 0; /* its atomics were, as readers */
    shadow_drop_list(s, old->writer);
    old->start = n->start;
    old->mark = 0;
    if (n->writer & SHADOW_LIST) {
        old->writer = shadow_keep_list(s, n->writer, first);
        old->stores = 0;
        old->atomics = 0;
        for (uint32_t ix = old->writer & ~SHADOW_LIST; counted && ix; ix = s->old_shares.at[ix].next)
            s->old_shares.at[ix].atomics = 0;
    } else {
        old->writer = first + n->writer;
        old->stores = n->stores;
        old->atomics = counted ? 0 : n->atomics;
    }
}

static void replace_all(struct comm_worker *w)
{
    struct shadow *s = &w->shadow;
    for (uint32_t i = 0; i < s->written.n; i++) {
        struct shadow_slot *slot = shadow_slot(shadow_find(s, s->written.at[i]), s->written.at[i]);
        if (slot->old && slot->old->fine) shadow_divide_new(s, slot);
        struct old_line *old = shadow_old(slot, slot->now->fine);
        if (slot->now->fine && !old->fine) {
            shadow_divide_old(s, slot);
            old = slot->old;
        }
        for (uint32_t k = 0; k < (old->fine ? (uint32_t)SHADOW_LINE : (uint32_t)SHADOW_WORDS); k++)
            if (slot->now->cells[k].writer) replace_cell(w, &old->cells[k], &slot->now->cells[k]);
    }
    shadow_forget_new(s);
}

void comm_pass(struct comm_worker *w)
{
    w->mark = 0;
    w->last_writer = 0;
    write_all(w);
    read_all(w);
    replace_all(w);
}
