/* --check: what orders accesses of different threads.
 *
 *   bar, barrier           all that went before of the warps that arrived, for those that waited
 *   .sync warp operations  the lanes of the member mask (by the letter only bar.warp.sync orders memory;
 *                          lanes that meet in a shuffle are in step all the same)
 *   mbarrier               who arrived, for those that saw the phase end
 *   atom.cas, atom.exch, acquire and release: who wrote the word before; volatile: likewise, of other warps
 *   cp.async               what was copied is there once its thread has waited for the group
 * Orders between warps are between warps as wholes: of two lanes one of which waits alone too much may
 * be taken as ordered, never too little.
 */
#include "device/emu/async.h"
#include "device/emu/check.h"
#include "device/emu/race.h"

#include <stdlib.h>
#include <string.h>

static int32_t end_of(const struct emu_check_warp *w)
{
    return (w->now | 0xfff) + 1;
}
static void begin(struct emu_check_warp *w, uint32_t warp, uint32_t interval)
{
    w->now = EMU_STAMP(interval) | (int32_t)(warp << 5);
}

/* Out of numbers: all that was is forgotten but what was written at all. */
static void start_over(struct emu_check *k)
{
    for (uint32_t i = 0; i < k->n_cells; i++) {
        k->w[i] = k->w[i] >= k->base ? EMU_STAMP(1) : 0;
        k->r[i] = k->q[i] = 0;
    }
    k->base = EMU_STAMP(1);
    k->interval = 2;
    for (uint32_t i = 0; i < EMU_MAX_WARPS; i++) {
        struct emu_check_warp *w = &k->warps[i];
        begin(w, i, 2);
        w->limit = w->own = EMU_STAMP(2);
        for (uint32_t j = 0; j < EMU_MAX_WARPS; j++) w->seen[j] = EMU_STAMP(2);
        free(w->lanes);
        w->lanes = NULL;
        w->copies.n = 0;
    }
    for (uint32_t b = 0; b < EMU_N_BARS; b++) memset(&k->bars[b].at, 0, sizeof k->bars[b].at);
    memset(k->points.at, 0, k->points.n * sizeof *k->points.at);
}

uint32_t emu_check_interval(struct emu_check *k)
{
    if (++k->interval >= EMU_LAST_INTERVAL) start_over(k);
    return k->interval;
}

static void merge_clock(int32_t *to, const int32_t *from)
{
    for (uint32_t i = 0; i < EMU_MAX_WARPS; i++) to[i] = MG_MAX(to[i], from[i]);
}

/* What the warp knows, itself included; it begins a new interval afterwards, unless it waits. */
static void publish(const struct emu_check_warp *w, uint32_t warp, struct emu_check_point *p)
{
    merge_clock(p->seen, w->seen);
    for (uint32_t i = 0; i < EMU_MAX_WARPS; i++) p->seen[i] = MG_MAX(p->seen[i], w->limit);
    p->seen[warp] = end_of(w);
}

/* ---- barriers of the CTA -------------------------------------------------------------------------- */

static void misuse(struct emu_warp *w, const struct emu_set *s, enum emu_check_misuse what, uint32_t n0, uint32_t n1,
                   uint32_t other_site, uint32_t other_lane)
{
    const struct emu_cta *c = w->cta;
    uint32_t lane = (uint32_t)emu_first(s->mask);
    struct emu_found x = {.kind = MG_FINDING_BARRIER,
                          .misuse = (uint8_t)what,
                          .site = s->pc->site,
                          .other_site = other_site,
                          .thread = w->ix * EMU_LANES + lane,
                          .other_thread = w->ix * EMU_LANES + other_lane,
                          .n = {n0, n1},
                          .linear = c->linear,
                          .times = 1};
    memcpy(x.cta, c->id, sizeof x.cta);
    emu_check_found(s->frame, &x);
}

static bool aligned(const struct emu_set *s)
{
    const struct mg_module *m = s->frame->fn->mod->ir;
    const struct mg_form *f = mg_node_form(m, &m->nodes.at[s->pc->node]);
    return f->op == MG_OP_bar || mg_form_has(f, MG_MOD_aligned);
}

/* All live lanes of the warp are at barrier b. */
void emu_check_bar_arrive(struct emu_warp *w, uint32_t b)
{
    struct emu_cta *c = w->cta;
    struct emu_check *k = c->check;
    const struct emu_set *first = NULL;
    uint32_t all = (c->n_threads + EMU_LANES - 1) / EMU_LANES * EMU_LANES, count = 0;
    bool waits = false;
    for (uint32_t i = 0; i < w->n_sets; i++) {
        const struct emu_set *s = &w->sets[i];
        if (s->state != EMU_PARK_BAR || s->bar != b) continue;
        if (first && s->pc != first->pc && (aligned(s) || aligned(first)))
            misuse(w, s, EMU_MISUSE_PLACES, 0, 0, first->pc->site, (uint32_t)emu_first(first->mask));
        if (!first) first = s;
        waits |= s->pc->sub != EMU_BAR_ARRIVE;
        uint32_t n = s->pc->a.s[1] ? ((const uint32_t *)(s->frame->regs + s->pc->a.s[1]))[emu_first(s->mask)] : all;
        if (n % EMU_LANES)
            misuse(w, s, EMU_MISUSE_MULTIPLE, n, 0, 0, 0);
        else if (n > all)
            misuse(w, s, EMU_MISUSE_MORE, n, c->n_threads, 0, 0);
        count = n;
    }
    if (!first) return;
    if (!k->bars[b].used) {
        memset(&k->bars[b], 0, sizeof k->bars[b]);
        k->bars[b].used = true;
        k->bars[b].count = count;
        k->bars[b].site = first->pc->site;
    } else if (k->bars[b].count != count)
        misuse(w, first, EMU_MISUSE_COUNTS, count, k->bars[b].count, k->bars[b].site, 0);
    if (!waits) k->bars[b].signals |= 1u << w->ix;
    publish(&k->warps[w->ix], w->ix, &k->bars[b].at);
    if (!waits) begin(&k->warps[w->ix], w->ix, emu_check_interval(k));
}

/* Barrier b is complete: `warps` had arrived, of them those that wait go on. */
void emu_check_bar_done(struct emu_cta *c, uint32_t b, uint32_t warps)
{
    struct emu_check *k = c->check;
    bool all = !k->bars[b].signals;
    for (uint32_t i = 0; i < c->n_warps; i++) all &= !c->warps[i].live || (warps >> i & 1);
    uint32_t next = emu_check_interval(k);
    int32_t limit = EMU_STAMP(next);
    for (uint32_t i = 0; i < c->n_warps; i++) {
        struct emu_check_warp *w = &k->warps[i];
        if (all)
            w->limit = w->own = limit;
        else if (warps >> i & 1 && !(k->bars[b].signals >> i & 1)) {
            int32_t least = w->own = end_of(w);
            merge_clock(w->seen, k->bars[b].at.seen);
            for (uint32_t j = 0; j < c->n_warps; j++)
                if (j != i) least = MG_MIN(least, w->seen[j]);
            w->limit = MG_MAX(w->limit, least);
        } else
            continue;
        begin(w, i, next);
    }
    k->bars[b].used = false;
    emu_race_bar(c, all ? (uint32_t)((1ull << c->n_warps) - 1) : warps & ~k->bars[b].signals);
}

/* ---- lanes of a warp ------------------------------------------------------------------------------- */

static void sync_part(struct emu_check_warp *w, uint32_t lanes)
{
    int32_t row[EMU_LANES] = {0}, now = end_of(w);
    if (!w->lanes) w->lanes = calloc(EMU_LANES, sizeof *w->lanes);
    if (!w->lanes) { /* no memory: taken as ordered */
        w->own = now;
        return;
    }
    EMU_FOR_LANES(i, lanes)
    for (int j = 0; j < EMU_LANES; j++) row[j] = MG_MAX(row[j], w->lanes[i][j]);
    EMU_FOR_LANES(j, lanes) row[j] = now;
    EMU_FOR_LANES(i, lanes) memcpy(w->lanes[i], row, sizeof row);
}

/* In front of the operation, whose result may stand where its member mask or its guard stood. */
void emu_check_members(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = (const struct emu_op *)(const void *)o;
    struct emu_frame *f = EMU_FRAME(regs);
    struct emu_check_warp *w = &f->w->cta->check->warps[f->w->ix];
    const uint32_t *members = (const uint32_t *)(regs + o->cc);
    uint32_t run = op->guard ? mask & (*(const uint32_t *)(regs + op->guard) ^ op->guard_flip) : mask;
    EMU_FOR_LANES(i, run) w->members[i] = members[i];
    w->syncing = (w->syncing & ~mask) | run;
}

void emu_check_synced(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = (const struct emu_op *)(const void *)o;
    struct emu_frame *f = EMU_FRAME(regs);
    struct emu_check *k = f->w->cta->check;
    struct emu_check_warp *w = &k->warps[f->w->ix];
    const uint32_t *members = w->members;
    mask &= w->syncing;
    if (!mask) return;
    for (uint32_t left = mask; left;) {
        uint32_t lane = (uint32_t)emu_first(left), m = members[lane], group = 0;
        EMU_FOR_LANES(i, left) group |= (uint32_t)(members[i] == m) << i;
        left &= ~group;
        uint32_t outside = group & ~m;
        if (outside) {
            struct emu_found x = {.kind = MG_FINDING_BARRIER,
                                  .misuse = EMU_MISUSE_MEMBERS,
                                  .site = op->site,
                                  .thread = f->w->ix * EMU_LANES + (uint32_t)emu_first(outside),
                                  .n = {m, 0},
                                  .linear = f->w->cta->linear,
                                  .times = 1};
            memcpy(x.cta, f->w->cta->id, sizeof x.cta);
            emu_check_found(f, &x);
        }
        m |= group;
        if (!(f->w->live & ~m))
            w->own = end_of(w);
        else
            sync_part(w, m);
    }
    begin(w, f->w->ix, emu_check_interval(k));
}

/* ---- locks, flags, mbarriers ------------------------------------------------------------------------ */

void emu_check_release(struct emu_check *k, uint32_t warp, const uint64_t *address, uint32_t lanes)
{
    uint64_t at, last = 0;
    EMU_FOR_LANES(i, lanes)
    {
        if (address[i] + 1 == last) continue;
        last = address[i] + 1;
        if (!mg_map_get(&k->points_at, last, &at)) {
            *mg_vec_push(&k->points) = (struct emu_check_point){0};
            mg_map_set(&k->points_at, last, at = k->points.n);
        }
        publish(&k->warps[warp], warp, &k->points.at[at - 1]);
    }
    begin(&k->warps[warp], warp, emu_check_interval(k));
}

void emu_check_acquire(struct emu_check *k, uint32_t warp, const uint64_t *address, uint32_t lanes, bool among)
{
    struct emu_check_warp *w = &k->warps[warp];
    uint64_t at, last = 0;
    EMU_FOR_LANES(i, lanes)
    {
        if (address[i] + 1 == last) continue;
        last = address[i] + 1;
        if (mg_map_get(&k->points_at, last, &at)) merge_clock(w->seen, k->points.at[at - 1].seen);
    }
    if (!among) return;
    w->own = end_of(w);
    begin(w, warp, emu_check_interval(k));
}

static uint64_t word_of(struct emu_frame *f, const struct emu_op *place, const char *regs, uint32_t lane)
{
    struct emu_op quiet = *place;
    quiet.mode = EMU_CK_SELF;
    return (uint64_t)emu_at(f, &quiet, regs, lane, 8, 8);
}

void emu_check_mbar(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = (const struct emu_op *)(const void *)o;
    const struct emu_mbar *b = op->ext;
    struct emu_frame *f = EMU_FRAME(regs);
    struct emu_check *k = f->w->cta->check;
    uint64_t words[EMU_LANES];
    if (op->guard) mask &= *(const uint32_t *)(regs + op->guard) ^ op->guard_flip;
    if (o->d) mask &= *(const uint32_t *)(regs + o->d);
    EMU_FOR_LANES(i, mask) words[i] = word_of(f, &b->at, regs, i);
    if (!mask) return;
    emu_race_mbar(f->w->cta, f->w->ix, words, mask, o->d);
    if (o->d)
        emu_check_acquire(k, f->w->ix, words, mask, true);
    else
        emu_check_release(k, f->w->ix, words, mask);
}

/* The lanes have seen all lanes of the cluster arrive: lenient, what these did since counts as well. */
void emu_check_cluster(const struct emu_alu *o, char *regs, uint32_t mask)
{
    struct emu_frame *f = EMU_FRAME(regs);
    struct emu_check *k = f->w->cta->check;
    struct emu_check_warp *w = &k->warps[f->w->ix];
    (void)o;
    (void)mask;
    emu_race_cluster(f->w->cta, f->w->ix);
    w->limit = w->own = EMU_STAMP(k->interval + 1);
    begin(w, f->w->ix, emu_check_interval(k));
}

/* ---- cp.async -------------------------------------------------------------------------------------- */

void emu_check_commit(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = (const struct emu_op *)(const void *)o;
    struct emu_frame *f = EMU_FRAME(regs);
    if (op->guard) mask &= *(const uint32_t *)(regs + op->guard) ^ op->guard_flip;
    EMU_FOR_LANES(i, mask) f->w->cta->check->warps[f->w->ix].groups[i]++;
}

/* What is there now counts as written by its thread at this moment. */
static void finish_copy(struct emu_check *k, struct emu_check_warp *w, const struct emu_check_copy *c)
{
    int32_t self = w->now + (int32_t)c->lane, pending = EMU_STAMP_COPY(self);
    for (uint32_t i = c->at >> k->shift; i < (c->at + c->bytes) >> k->shift && i < k->n_cells; i++)
        if (k->w[i] == pending) k->w[i] = self;
}

void emu_check_wait(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = (const struct emu_op *)(const void *)o;
    struct emu_frame *f = EMU_FRAME(regs);
    struct emu_check *k = f->w->cta->check;
    struct emu_check_warp *w = &k->warps[f->w->ix];
    uint32_t n = 0;
    if (op->guard) mask &= *(const uint32_t *)(regs + op->guard) ^ op->guard_flip;
    for (uint32_t i = 0; i < w->copies.n; i++) {
        const struct emu_check_copy *c = &w->copies.at[i];
        if (mask >> c->lane & 1 && (op->off < 0 || (int64_t)c->group + op->off < (int64_t)w->groups[c->lane]))
            finish_copy(k, w, c);
        else
            w->copies.at[n++] = *c;
    }
    w->copies.n = n;
}
