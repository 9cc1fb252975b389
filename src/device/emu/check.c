/* --check: the cells of a CTA's shared memory, and one lane's access in full. The common cases of
 * whole warps are in vec_check.c. */
#include "device/emu/check.h"
#include "device/emu/defined.h"
#include "device/emu/race.h"

#include <stdlib.h>
#include <string.h>

/* ---- cells ------------------------------------------------------------------------------------- */

static bool lay_out(struct emu_check *k, uint32_t shift)
{
    uint32_t n = (uint32_t)((k->cta->shared_bytes + (1u << shift) - 1) >> shift);
    int32_t *p = n ? calloc(n, 6 * sizeof *p) : NULL;
    if (n && !p) return false;
    k->cells = p;
    k->n_cells = n;
    k->shift = shift;
    k->w = p, k->r = p + n, k->q = p + 2 * (size_t)n;
    k->ws = (uint32_t *)p + 3 * (size_t)n, k->rs = (uint32_t *)p + 4 * (size_t)n, k->qs = (uint32_t *)p + 5 * (size_t)n;
    return true;
}

struct emu_check *emu_check_new(struct emu_cta *c)
{
    struct emu_check *k = calloc(1, sizeof *k);
    if (!k) return NULL;
    k->cta = c;
    k->race = emu_race_cta_new(c->l);
    if (lay_out(k, 3u - atomic_load(&c->code->check_fine))) return k;
    emu_race_cta_free(k->race);
    free(k);
    return NULL;
}

void emu_check_free(struct emu_check *k)
{
    if (!k) return;
    for (uint32_t i = 0; i < EMU_MAX_WARPS; i++) {
        free(k->warps[i].lanes);
        mg_vec_release(&k->warps[i].copies);
    }
    mg_map_release(&k->points_at);
    mg_vec_release(&k->points);
    emu_race_cta_free(k->race);
    free(k->cells);
    free(k);
}

/* Smaller cells from now on, each with what was known of the larger one. Out of memory: none at all,
 * and nothing more is found in this CTA. */
void emu_check_regrain(struct emu_check *k, uint32_t bytes)
{
    uint32_t shift = bytes >= 4 ? 2 : bytes >= 2 ? 1 : 0, more = k->shift - shift;
    struct emu_check old = *k;
    if (shift >= k->shift) return;
    if (!lay_out(k, shift)) k->n_cells = 0;
    for (uint32_t i = 0; i < k->n_cells; i++) {
        uint32_t from = i >> more;
        k->w[i] = old.w[from], k->r[i] = old.r[from], k->q[i] = old.q[from];
        k->ws[i] = old.ws[from], k->rs[i] = old.rs[from], k->qs[i] = old.qs[from];
    }
    free(old.cells);
    uint8_t fine = (uint8_t)(3 - shift);
    if (fine > atomic_load(&k->cta->l->code->check_fine)) atomic_store(&k->cta->l->code->check_fine, fine);
}

void emu_check_start(struct emu_check *k)
{
    if (k->race) emu_race_start(k->race);
    if (k->interval > EMU_LAST_INTERVAL / 2) {
        if (k->n_cells) memset(k->cells, 0, 3 * (size_t)k->n_cells * sizeof *k->w);
        k->interval = 0;
    }
    k->base = EMU_STAMP(++k->interval);
    int32_t limit = EMU_STAMP(++k->interval);
    memset(k->bars, 0, sizeof k->bars);
    mg_map_release(&k->points_at);
    k->points.n = 0;
    for (uint32_t i = 0; i < k->cta->n_warps; i++) {
        struct emu_check_warp *w = &k->warps[i];
        w->now = limit | (int32_t)(i << 5);
        w->limit = w->own = limit;
        for (uint32_t j = 0; j < EMU_MAX_WARPS; j++) w->seen[j] = limit;
        free(w->lanes);
        w->lanes = NULL;
        memset(w->groups, 0, sizeof w->groups);
        for (uint32_t j = 0; j < w->copies.n; j++) /* of the CTA before, never waited for */
            for (uint32_t c = w->copies.at[j].at >> k->shift;
                 c < (w->copies.at[j].at + w->copies.at[j].bytes) >> k->shift && c < k->n_cells; c++)
                k->w[c] = 0;
        w->copies.n = 0;
    }
}

bool emu_check_combines(const struct emu_code *c, uint32_t site)
{
    pthread_mutex_lock(&c->kernel->lock); /* functions may still be decoded */
    bool combines = c->sites.at[site].combines;
    pthread_mutex_unlock(&c->kernel->lock);
    return combines;
}

/* ---- one lane's access -------------------------------------------------------------------------- */

/* Do the access of a lane now and the stamped one race? */
bool emu_check_conflict(const struct emu_check *k, uint32_t warp, uint32_t lane, unsigned kind, int32_t stamp)
{
    const struct emu_check_warp *w = &k->warps[warp];
    uint32_t other_warp = (uint32_t)stamp >> 5 & 31, other_lane = (uint32_t)stamp & 31,
             other_kind = (uint32_t)stamp >> 10 & 3;
    if (stamp < w->limit) return false;
    if (stamp >= EMU_STAMP(EMU_COPY_INTERVAL)) return true;
    if (kind == EMU_CK_ATOMIC && other_kind == EMU_CK_ATOMIC) return false;
    if (other_warp != warp) {
        bool strong = kind == EMU_CK_ATOMIC || kind == EMU_CK_VOLATILE,
             other_strong = other_kind == EMU_CK_ATOMIC || other_kind == EMU_CK_VOLATILE;
        return !(strong && other_strong) && stamp >= w->seen[other_warp];
    }
    if (other_lane == lane || kind == EMU_CK_WARP || other_kind == EMU_CK_WARP || stamp < w->own) return false;
    return !w->lanes || stamp >= w->lanes[lane][other_lane];
}

/* Stores, that is: nothing depends on what was there. Of atomics, an exch whose result is never read does so. */
static bool only_stores(const struct emu_check_access *a)
{
    return a->what == EMU_CHECK_WRITE || (a->op && a->op->sub & EMU_CHECK_SETS);
}

/* Does the store leave the cell as it is? Two that store the same do no harm. */
static bool stores_same(const struct emu_check_access *a, uint32_t lane, uint32_t at, uint32_t cell_at,
                        uint32_t cell_bytes)
{
    const struct emu_op *op = a->op;
    const struct emu_frame *f = a->f;
    char v[256];
    if (!op) return false;
    uint32_t step = op->bytes == 16 ? 16 : op->flags & EMU_OF_WIDE ? 8 : 4;
    for (uint32_t e = 0; e < op->vec && (e + 1) * op->bytes <= sizeof v; e++)
        memcpy(v + e * op->bytes, f->regs + (op->slots ? op->slots[e] : op->a.s[1]) + lane * step, op->bytes);
    uint32_t from = cell_at > at ? cell_at - at : 0, n = MG_MIN(cell_bytes, (uint32_t)op->bytes * op->vec - from);
    return !memcmp(f->shared + at + from, v + from, n);
}

static void report_finding(const struct emu_check_access *a, unsigned kind, uint32_t lane, uint32_t at, uint32_t bytes,
                           int32_t other, uint32_t other_site, unsigned other_what)
{
    const struct emu_warp *w = a->f->w;
    const struct emu_cta *c = w->cta;
    unsigned other_kind = other >= EMU_STAMP(EMU_COPY_INTERVAL) ? EMU_CK_COPY : (unsigned)other >> 10 & 3;
    struct emu_found x = {.kind = (uint8_t)kind,
                          .what = (uint8_t)((a->what & (EMU_CHECK_READ | EMU_CHECK_WRITE)) | a->kind << 4),
                          .other_what = (uint8_t)(other_what | other_kind << 4),
                          .site = a->site,
                          .other_site = other_site,
                          .thread = w->ix * EMU_LANES + lane,
                          .other_thread = (uint32_t)other & EMU_STAMP_WHO,
                          .at = at,
                          .bytes = bytes,
                          .linear = c->linear,
                          .times = 1};
    memcpy(x.cta, c->id, sizeof x.cta);
    emu_check_found(a->f, &x);
}

static void note_read(struct emu_check *k, const struct emu_check_warp *w, uint32_t cell, int32_t self, uint32_t site)
{
    int32_t old = k->r[cell], q = k->q[cell];
    bool same_warp = !((old ^ self) & EMU_STAMP_WARP);
    if (old >= w->limit && (old ^ self) & EMU_STAMP_WHO &&
        (!same_warp || q < w->limit || !((q ^ self) & EMU_STAMP_WARP))) {
        k->q[cell] = old;
        k->qs[cell] = k->rs[cell];
    }
    k->r[cell] = self;
    k->rs[cell] = site;
}

void emu_check_touch(const struct emu_check_access *a, uint32_t lane, uint32_t at, uint32_t bytes)
{
    struct emu_warp *w = a->f->w;
    struct emu_check *k = w->cta->check;
    if (!bytes || !k->n_cells || (uint64_t)at + bytes > w->cta->shared_bytes) return;
    while (k->shift && ((at | bytes) & ((1u << k->shift) - 1))) {
        emu_check_regrain(k, 1u << (k->shift - 1));
        if (!k->n_cells) return;
    }
    const struct emu_check_warp *cw = &k->warps[w->ix];
    unsigned kind = a->kind == EMU_CK_COPY ? EMU_CK_PLAIN : a->kind;
    int32_t self = cw->now + (int32_t)lane + EMU_STAMP_KIND(kind);
    uint32_t size = 1u << k->shift, end = (at + bytes) >> k->shift;
    bool told = false;
    for (uint32_t c = at >> k->shift; c < end; c++) {
        int32_t last = k->w[c], put = self;
        bool again = false; /* stores what another thread has just stored */
        if (last >= k->base && emu_check_conflict(k, w->ix, lane, kind, last)) {
            bool same =
                last < EMU_STAMP(EMU_COPY_INTERVAL) && only_stores(a) && stores_same(a, lane, at, c << k->shift, size);
            if (same && !emu_check_combines(w->cta->code, k->ws[c])) {
                bool same_warp = !((last ^ self) & EMU_STAMP_WARP);
                again = true;
                put = same_warp ? cw->now + (int32_t)lane + EMU_STAMP_KIND(EMU_CK_WARP) : k->base;
            } else {
                if (!told) report_finding(a, MG_FINDING_RACE, lane, at, bytes, last, k->ws[c], EMU_CHECK_WRITE);
                told = true;
            }
        }
        if (!(a->what & EMU_CHECK_WRITE)) {
            note_read(k, cw, c, self, a->site);
            continue;
        }
        if (!told && !again && emu_check_conflict(k, w->ix, lane, kind, k->r[c])) {
            report_finding(a, MG_FINDING_RACE, lane, at, bytes, k->r[c], k->rs[c], EMU_CHECK_READ);
            told = true;
        }
        if (!told && !again && emu_check_conflict(k, w->ix, lane, kind, k->q[c])) {
            report_finding(a, MG_FINDING_RACE, lane, at, bytes, k->q[c], k->qs[c], EMU_CHECK_READ);
            told = true;
        }
        k->w[c] = a->kind == EMU_CK_COPY ? EMU_STAMP_COPY(self) : put;
        k->ws[c] = a->site;
    }
}

/* Do two lanes store different values? */
static bool collide(const struct emu_op *op, struct emu_frame *f, uint32_t i, uint32_t j)
{
    uint32_t step = op->bytes == 16 ? 16 : op->flags & EMU_OF_WIDE ? 8 : 4;
    for (uint32_t e = 0; e < op->vec; e++) {
        const char *v = f->regs + (op->slots ? op->slots[e] : op->a.s[1]);
        if (memcmp(v + i * step, v + j * step, op->bytes)) return true;
    }
    return false;
}

void emu_check_same(const struct emu_op *op, struct emu_frame *f, const uint32_t *at, uint32_t mask)
{
    struct emu_check *k = f->w->cta->check;
    const struct emu_check_warp *w = &k->warps[f->w->ix];
    struct emu_check_access a = {f, op, op->site, EMU_CHECK_WRITE, op->mode};
    uint32_t bytes = (uint32_t)op->bytes * op->vec;
    EMU_FOR_LANES(i, mask)
    {
        uint32_t c = at[i] >> k->shift, other = (uint32_t)k->w[c] & 31;
        if (other == i || k->w[c] < w->limit || !(mask >> other & 1) || at[other] != at[i]) continue;
        if (op->mode == EMU_CK_ATOMIC) continue;
        if (collide(op, f, i, other)) {
            report_finding(&a, MG_FINDING_RACE, i, at[i], bytes, w->now + (int32_t)other, op->site, EMU_CHECK_WRITE);
            continue;
        }
        for (; c < (at[i] + bytes) >> k->shift; c++) k->w[c] = w->now + (int32_t)other + EMU_STAMP_KIND(EMU_CK_WARP);
    }
}

/* An operation of check_decode.c for lanes in any order of addresses, all of them inside. */
void emu_check_lanes_touch(const struct emu_op *op, struct emu_frame *f, const uint32_t *at, uint32_t mask)
{
    struct emu_check *k = f->w->cta->check;
    struct emu_check_access a = {f, op, op->site, op->sub & (EMU_CHECK_READ | EMU_CHECK_WRITE), op->mode};
    uint32_t bytes = (uint32_t)op->bytes * op->vec;
    bool stores = a.what == EMU_CHECK_WRITE;
    uint64_t words[EMU_LANES];
    if (op->sub & EMU_CHECK_SYNC) EMU_FOR_LANES(i, mask) words[i] = at[i];
    if (op->sub & EMU_CHECK_SYNC && a.what & EMU_CHECK_READ)
        emu_check_acquire(k, f->w->ix, words, mask, a.kind != EMU_CK_VOLATILE);
    if (!stores) {
        EMU_FOR_LANES(i, mask) emu_check_touch(&a, i, at[i], bytes);
    } else {
        uint32_t left = mask, later = 0;
        while (left) { /* the first lane of each address; the others are compared with it */
            uint32_t i = (uint32_t)emu_first(left), same = 0;
            EMU_FOR_LANES(j, left) same |= (uint32_t)(at[j] == at[i]) << j;
            emu_check_touch(&a, i, at[i], bytes);
            left &= ~same;
            if (same & (same - 1)) later |= same;
        }
        if (later && k->n_cells) emu_check_same(op, f, at, later);
    }
    if (op->sub & EMU_CHECK_SYNC && a.what & EMU_CHECK_WRITE) emu_check_release(k, f->w->ix, words, mask);
}

/* ---- accesses through emu_at ---------------------------------------------------------------------- */

void emu_check_at(struct emu_frame *f, const struct emu_op *place, uint32_t lane, uint64_t host, uint32_t bytes)
{
    uint64_t at = host - (uint64_t)f->shared;
    if (place->flags & EMU_OF_WRITES) emu_defined_written(f, host, bytes);
    if (!place->site || place->mode == EMU_CK_SELF) return;
    if (at >= f->shared_bytes) {
        if (place->flags & EMU_OF_WRITES) emu_check_filled(f, (const char *)host, bytes);
        return;
    }
    struct emu_check_access a = {f, NULL, place->site, place->flags & (EMU_CHECK_READ | EMU_CHECK_WRITE), place->mode};
    emu_check_touch(&a, lane, (uint32_t)at, bytes);
    if (place->mode != EMU_CK_COPY) return;
    struct emu_check *k = f->w->cta->check;
    struct emu_check_warp *w = &k->warps[f->w->ix];
    *mg_vec_push(&w->copies) = (struct emu_check_copy){(uint32_t)at, bytes, lane, w->groups[lane]};
}

void emu_check_filled(struct emu_frame *f, const char *p, uint32_t bytes)
{
    const struct emu_cta *c = f->w->cta;
    emu_defined_written(f, (uint64_t)p, bytes);
    for (uint32_t r = 0; r < c->n_peers; r++) {
        struct emu_check *k = c->peers[r]->check;
        uint64_t at = (uint64_t)p - (uint64_t)c->peers[r]->shared;
        if (at >= c->peers[r]->shared_bytes || c->peers[r]->shared_bytes - at < bytes || !k->n_cells) continue;
        for (uint64_t i = at >> k->shift; i < (at + bytes + (1u << k->shift) - 1) >> k->shift; i++) k->w[i] = k->base;
    }
}
