/* Which lanes of a warp run next, and what makes lanes wait (docs/schedule.md is the contract).
 *
 * A warp's live lanes are the running set plus w->sets, disjoint. Ready sets at the same operation
 * of the same activation are one set. The next to run is the least by (turn, deeper call, older
 * activation, operation); operations of a function lie in rank order. With MARGAY_APART (tests) chance decides.
 */
#include "device/emu/check.h"
#include "device/emu/defined.h"
#include "device/emu/matrix.h"
#include "device/emu/room.h"

#include <stdlib.h>
#include <string.h>

/* ---- activations ---------------------------------------------------------------------------- */

void emu_frame_fill_sregs(struct emu_frame *f)
{
    const struct emu_warp *w = f->w;
    const struct emu_cta *c = w->cta;
    const struct mg_launch *l = c->l->l;
    const uint32_t ntid[3] = {l->block.x, l->block.y, l->block.z}, nctaid[3] = {l->grid.x, l->grid.y, l->grid.z};
    const uint32_t size[3] = {c->l->cluster.x, c->l->cluster.y, c->l->cluster.z};
    for (uint32_t k = 0; k < f->fn->n_sregs; k++) {
        const struct emu_sreg *s = &f->fn->sregs[k];
        uint32_t *d = (uint32_t *)(f->regs + s->off);
        uint64_t v = 0;
        unsigned comp = s->comp < 3 ? s->comp : 0;
        switch (s->sreg) {
        case MG_SREG_tid:
            if (s->comp < 3)
                memcpy(d, w->tid[comp], sizeof w->tid[comp]);
            else
                memset(d, 0, 4 * EMU_LANES);
            continue;
        case MG_SREG_laneid:
            for (uint32_t i = 0; i < EMU_LANES; i++) d[i] = i;
            continue;
        case MG_SREG_lanemask_eq:
            for (uint32_t i = 0; i < EMU_LANES; i++) d[i] = 1u << i;
            continue;
        case MG_SREG_lanemask_lt:
            for (uint32_t i = 0; i < EMU_LANES; i++) d[i] = (1u << i) - 1;
            continue;
        case MG_SREG_lanemask_le:
            for (uint32_t i = 0; i < EMU_LANES; i++) d[i] = (2u << i) - 1;
            continue;
        case MG_SREG_lanemask_gt:
            for (uint32_t i = 0; i < EMU_LANES; i++) d[i] = ~((2u << i) - 1);
            continue;
        case MG_SREG_lanemask_ge:
            for (uint32_t i = 0; i < EMU_LANES; i++) d[i] = ~((1u << i) - 1);
            continue;
        case MG_SREG_ntid:
            v = s->comp < 3 ? ntid[comp] : 0;
            break;
        case MG_SREG_ctaid:
            v = s->comp < 3 ? c->id[comp] : 0;
            break;
        case MG_SREG_nctaid:
            v = s->comp < 3 ? nctaid[comp] : 0;
            break;
        case MG_SREG_warpid:
            v = w->ix;
            break;
        case MG_SREG_nwarpid:
            v = 64;
            break;
        case MG_SREG_smid:
            v = c->linear % c->l->dev->n_sms;
            break;
        case MG_SREG_nsmid:
            v = c->l->dev->n_sms;
            break;
        case MG_SREG_gridid:
            v = c->l->id;
            break;
        case MG_SREG_WARP_SZ:
            v = EMU_LANES;
            break;
        case MG_SREG_dynamic_smem_size:
            v = l->dyn_shared_bytes;
            break;
        case MG_SREG_total_smem_size:
            v = (c->shared_bytes + 127) & ~127ull;
            break; /* as allocated */
        case MG_SREG_aggr_smem_size:
            v = (c->shared_bytes + 127) & ~127ull;
            break;
        case MG_SREG_envreg1:
            v = c->l->grid_workspace >> 32;
            break; /* cooperative groups read it there */
        case MG_SREG_envreg2:
            v = c->l->grid_workspace & UINT32_MAX;
            break;
        /* where no cluster was asked for every CTA is its own */
        case MG_SREG_clusterid:
            v = s->comp < 3 ? c->id[comp] / size[comp] : 0;
            break;
        case MG_SREG_nclusterid:
            v = s->comp < 3 ? nctaid[comp] / size[comp] : 0;
            break;
        case MG_SREG_cluster_ctaid:
            v = s->comp < 3 ? c->id[comp] % size[comp] : 0;
            break;
        case MG_SREG_cluster_nctaid:
            v = s->comp < 3 ? size[comp] : 0;
            break;
        case MG_SREG_cluster_ctarank:
            v = c->rank;
            break;
        case MG_SREG_cluster_nctarank:
            v = c->n_peers;
            break;
        case MG_SREG_is_explicit_cluster:
            v = l->cluster.x != 0;
            break;
        default:
            v = 0;
            break;
        }
        if (mg_sreg_type(s->sreg) == MG_TYPE_pred)
            *d = v ? UINT32_MAX : 0;
        else if (mg_type_bits(mg_sreg_type(s->sreg)) == 64)
            for (int i = 0; i < EMU_LANES; i++) ((uint64_t *)d)[i] = v;
        else
            for (int i = 0; i < EMU_LANES; i++) d[i] = (uint32_t)v;
    }
}

static void fill_consts(struct emu_frame *f)
{
    for (uint32_t k = 0; k < f->fn->n_consts; k++) {
        const struct emu_const *c = &f->fn->consts[k];
        char *d = f->regs + c->off;
        if (c->cls == EMU_P) *(uint32_t *)d = c->lo ? UINT32_MAX : 0;
        for (int i = 0; i < EMU_LANES; i++) {
            if (c->cls == EMU_W)
                ((uint32_t *)d)[i] = (uint32_t)c->lo;
            else if (c->cls == EMU_D)
                ((uint64_t *)d)[i] = c->lo;
            else if (c->cls == EMU_Q)
                ((uint64_t *)d)[2 * i] = c->lo, ((uint64_t *)d)[2 * i + 1] = c->hi;
        }
    }
}

/* A large frame of the function's own, from a launch before, is taken as a warp's next CTA takes it: constants are
 * there, and registers that nobody has written hold anything. */
#define LARGE_FRAME (256u << 10)

/* New activation; kept in the warp's pool for reuse when its lanes have left. */
struct emu_frame *emu_frame_push(struct emu_warp *w, struct emu_func *fn, struct emu_frame *parent,
                                 const struct emu_op *call, uint32_t mask)
{
    struct emu_frame *f = NULL, **at;
    for (at = &w->pool; *at; at = &(*at)->next)
        if ((*at)->fn == fn) {
            f = *at;
            *at = f->next;
            break;
        }
    if (!f) {
        f = emu_room_take(w->wk->room, sizeof *f + fn->frame_bytes);
        if (!f) {
            if (parent)
                emu_fault(parent, call, MG_FAULT_MEMORY, emu_first(mask), 0, 0, "host memory ran out for a call");
            return NULL;
        }
        bool kept = fn->frame_bytes >= LARGE_FRAME && emu_room_was(f) == fn->number;
        memset(f, 0, sizeof *f + (kept ? 0 : fn->frame_bytes));
        f->fn = fn;
        f->next_of_warp = w->all;
        w->all = f;
        if (!kept) fill_consts(f);
    }
    struct emu_cta *c = w->cta;
    f->wk = w->wk;
    f->w = w;
    f->shared = c->shared;
    f->shared_bytes = c->shared_bytes;
    f->params = c->l->params;
    f->param_bytes = c->l->param_bytes;
    f->local_stride = c->local_stride;
    f->local_bytes = c->code->local_bytes;
    f->local_va = (uint64_t)c->local + c->local_stride * EMU_LANES * w->ix;
    f->local_at = parent ? parent->local_at + parent->fn->local_bytes : 0;
    f->parent = parent;
    f->call = call;
    f->mask = mask;
    f->depth = parent ? parent->depth + 1 : 0;
    f->seq = w->next_seq++;
    if (parent &&
        (f->depth > EMU_MAX_DEPTH || f->local_at + fn->local_bytes > f->local_bytes - c->code->alloca_bytes)) {
        f->next = w->pool;
        w->pool = f;
        emu_fault(parent, call, MG_FAULT_STACK, emu_first(mask), 0, 0,
                  "call stack exhausted (depth %u, %llu bytes of local memory per thread)", parent->depth + 1,
                  (unsigned long long)parent->local_bytes);
    }
    emu_frame_fill_sregs(f);
    if (MG_UNLIKELY(fn->n_marks)) emu_defined_enter(f);
    if (fn->stack_slot) emu_stack_enter(f);
    return f;
}

void emu_frame_drop(struct emu_frame *f)
{
    f->next = f->w->pool;
    f->w->pool = f;
}

/* ---- sets ----------------------------------------------------------------------------------- */

void emu_set_add(struct emu_warp *w, const struct emu_op *pc, struct emu_frame *f, uint32_t mask, uint32_t turn)
{
    for (uint32_t i = 0; i < w->n_sets; i++) {
        struct emu_set *s = &w->sets[i];
        if (s->state == EMU_READY && s->pc == pc && s->frame == f && s->turn == turn) {
            s->mask |= mask;
            return;
        }
    }
    w->sets[w->n_sets++] = (struct emu_set){.pc = pc, .frame = f, .mask = mask, .turn = turn, .state = EMU_READY};
}

static bool runs_before(const struct emu_set *a, const struct emu_set *b)
{
    if (a->turn != b->turn) return a->turn < b->turn;
    if (a->frame->depth != b->frame->depth) return a->frame->depth > b->frame->depth;
    if (a->frame->seq != b->frame->seq) return a->frame->seq < b->frame->seq;
    return a->pc < b->pc;
}

uint32_t emu_chance(struct emu_warp *w)
{
    w->chance ^= w->chance << 13, w->chance ^= w->chance >> 7, w->chance ^= w->chance << 17;
    return (uint32_t)(w->chance >> 32);
}

/* Any ready set, and now and then only some of its lanes. */
static bool pick_by_chance(struct emu_warp *w, struct emu_set *out)
{
    uint32_t ready[EMU_LANES], n = 0;
    for (uint32_t i = 0; i < w->n_sets; i++)
        if (w->sets[i].state == EMU_READY) ready[n++] = i;
    if (!n) return false;
    struct emu_set *s = &w->sets[ready[emu_chance(w) % n]];
    uint32_t part = s->mask & emu_chance(w);
    *out = *s;
    w->wk->rotated = true;
    if (part && part != s->mask && !(emu_chance(w) & 3)) {
        s->mask &= ~part;
        out->mask = part;
    } else
        *s = w->sets[--w->n_sets];
    return true;
}

bool emu_set_pick(struct emu_warp *w, struct emu_set *out)
{
    uint32_t best = UINT32_MAX;
    if (MG_UNLIKELY(w->chance)) return pick_by_chance(w, out);
    for (uint32_t i = 0; i < w->n_sets; i++)
        if (w->sets[i].state == EMU_READY && (best == UINT32_MAX || runs_before(&w->sets[i], &w->sets[best]))) best = i;
    if (best == UINT32_MAX) return false;
    *out = w->sets[best];
    w->sets[best] = w->sets[--w->n_sets];
    return true;
}

static void drop_set(struct emu_warp *w, uint32_t ix)
{
    w->sets[ix] = w->sets[--w->n_sets];
}

/* ---- .sync warp operations ------------------------------------------------------------------- */

/* Do two waiting operations stand for the same one? Same kind and mode; where they are does not matter. */
static bool same_sync(const struct emu_op *a, const struct emu_op *b)
{
    if (a->sub == EMU_SYNC_MATRIX && b->sub == EMU_SYNC_MATRIX) return a == b || emu_matrix_same(a->ext, b->ext);
    return a == b || (a->sub == b->sub && a->mode == b->mode && a->type == b->type);
}

/* Completes every parked group whose live members have all arrived. */
static void finish_syncs(struct emu_warp *w)
{
again:
    for (uint32_t i = 0; i < w->n_sets; i++) {
        if (w->sets[i].state != EMU_PARK_SYNC) continue;
        uint32_t need = w->sets[i].need, here = 0;
        const struct emu_op *op = w->sets[i].pc;
        struct emu_part parts[EMU_LANES];
        uint32_t ixs[EMU_LANES], n = 0;
        for (uint32_t j = 0; j < w->n_sets; j++) {
            struct emu_set *s = &w->sets[j];
            if (s->state != EMU_PARK_SYNC || s->need != need || !same_sync(s->pc, op)) continue;
            parts[n] = (struct emu_part){s->pc, s->frame->regs, s->mask};
            ixs[n++] = j;
            here |= s->mask;
        }
        if (need & w->live & ~here) continue;
        emu_sync_exec(parts, n, here);
        struct emu_set done[EMU_LANES];
        for (uint32_t k = 0; k < n; k++) done[k] = w->sets[ixs[k]];
        for (uint32_t k = n; k-- > 0;) drop_set(w, ixs[k]);
        for (uint32_t k = 0; k < n; k++) emu_set_add(w, done[k].pc + 1, done[k].frame, done[k].mask, 0);
        goto again;
    }
}

uint32_t emu_sync_arrive(struct emu_warp *w, const struct emu_op *op, struct emu_frame *f, uint32_t mask, uint32_t turn)
{
    const uint32_t *members =
        (const uint32_t *)(f->regs + op->a.cc); /* ORDER SYNC: a.cc is the member mask's register */
    uint32_t go = 0;
    if (op->sub >= EMU_SYNC_MBAR) return emu_wait_arrive(w, op, f, mask, turn);
    if (mask == w->live && op->sub == EMU_SYNC_MATRIX) {
        struct emu_part all = {op, f->regs, mask};
        emu_sync_exec(&all, 1, mask);
        return mask;
    }
    bool parked = false;
    for (uint32_t left = mask; left;) {
        uint32_t m = members[emu_first(left)], group = 0;
        EMU_FOR_LANES(i, left) group |= (uint32_t)(members[i] == m) << i;
        left &= ~group;
        uint32_t need = m | group; /* a lane outside its own mask: undefined in PTX, here it belongs */
        if (!(need & w->live & ~group)) {
            struct emu_part part = {op, f->regs, group};
            emu_sync_exec(&part, 1, group);
            go |= group;
            continue;
        }
        w->sets[w->n_sets++] =
            (struct emu_set){.pc = op, .frame = f, .mask = group, .turn = turn, .state = EMU_PARK_SYNC, .need = m};
        parked = true;
    }
    if (parked) finish_syncs(w);
    return go;
}

/* ---- CTA barriers ---------------------------------------------------------------------------- */

static uint32_t bar_number(const struct emu_op *op, const struct emu_frame *f, uint32_t mask)
{
    return ((const uint32_t *)(f->regs + op->a.s[0]))[emu_first(mask)];
}

/* Of the warps that leave the barrier together: as many as the one has that has fewest. */
static uint8_t pauses_behind(const struct emu_cta *c, uint32_t b, const struct emu_barrier *done)
{
    uint8_t n = EMU_LOOP_PAUSES;
    for (uint32_t k = 0; k < c->n_warps; k++)
        if (done->warps >> k & 1 && c->warps[k].at_bar == b + 1) n = MG_MIN(n, c->warps[k].pauses);
    return c->n_warps > 1 ? MG_MAX(n, EMU_BAR_PAUSES) : n;
}

static void release_bar(struct emu_cta *c, uint32_t b)
{
    struct emu_barrier *bar = &c->bars[b];
    struct emu_barrier done = *bar;
    uint8_t pauses = pauses_behind(c, b, &done);
    *bar = (struct emu_barrier){0};
    if (c->check) emu_check_bar_done(c, b, done.warps);
    for (uint32_t k = 0; k < c->n_warps; k++) {
        struct emu_warp *w = &c->warps[k];
        if (!(done.warps >> k & 1) || w->at_bar != b + 1) continue;
        w->at_bar = 0;
        w->pauses = pauses;
        struct emu_set old[EMU_LANES];
        uint32_t n = w->n_sets;
        memcpy(old, w->sets, n * sizeof *old);
        w->n_sets = 0;
        for (uint32_t i = 0; i < n; i++) {
            struct emu_set *s = &old[i];
            if (s->state != EMU_PARK_BAR || s->bar != b) {
                w->sets[w->n_sets++] = *s;
                continue;
            }
            const struct emu_op *op = s->pc;
            if (op->sub == EMU_BAR_RED) { /* mode: enum mg_mod popc, and, or */
                uint32_t *d = (uint32_t *)(s->frame->regs + op->a.d);
                if (op->type == MG_TYPE_pred)
                    *d = (*d & ~s->mask) | ((op->mode == 1 ? done.red_and : done.red_or) ? s->mask : 0);
                else
                    EMU_FOR_LANES(l, s->mask) d[l] = done.red_count;
            }
            emu_set_add(w, op + 1, s->frame, s->mask, 0);
        }
    }
}

/* Completes barriers whose participants have all arrived (also because others have left). */
static bool check_bar(struct emu_cta *c, uint32_t b)
{
    struct emu_barrier *bar = &c->bars[b];
    if (!bar->warps) return false;
    if (bar->expect) {
        if (bar->threads < bar->expect) return false;
    } else {
        for (uint32_t k = 0; k < c->n_warps; k++)
            if (c->warps[k].live && !(bar->warps >> k & 1)) return false;
    }
    release_bar(c, b);
    return true;
}

void emu_cta_bar_check(struct emu_cta *c)
{
    for (uint32_t b = 0; b < EMU_N_BARS; b++) check_bar(c, b);
}

/* All live lanes of the warp at barrier b: the warp has arrived. */
static void warp_arrives(struct emu_warp *w, uint32_t b)
{
    struct emu_cta *c = w->cta;
    struct emu_barrier *bar = &c->bars[b];
    uint32_t expect = 0, n_arrive = 0, n = w->n_sets;
    bool waits = false;
    if (!bar->warps) *bar = (struct emu_barrier){.red_and = 1};
    if (c->check) emu_check_bar_arrive(w, b);
    for (uint32_t i = 0; i < n; i++) {
        struct emu_set *s = &w->sets[i];
        if (s->state != EMU_PARK_BAR || s->bar != b) continue;
        const struct emu_op *op = s->pc;
        if (op->a.s[1]) expect = ((const uint32_t *)(s->frame->regs + op->a.s[1]))[emu_first(s->mask)];
        if (op->sub == EMU_BAR_RED) {
            uint32_t p = (*(const uint32_t *)(s->frame->regs + op->a.s[2]) ^ op->a.imm) & s->mask;
            bar->red_count += emu_popc(p);
            bar->red_and &= p == s->mask;
            bar->red_or |= p != 0;
        }
        if (op->sub == EMU_BAR_ARRIVE)
            n_arrive++;
        else
            waits = true;
    }
    bar->warps |= 1u << w->ix;
    bar->threads += EMU_LANES;
    if (expect) bar->expect = (expect + EMU_LANES - 1) / EMU_LANES * EMU_LANES;
    if (n_arrive) { /* those who only signal go on */
        struct emu_set old[EMU_LANES];
        memcpy(old, w->sets, n * sizeof *old);
        w->n_sets = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (old[i].state == EMU_PARK_BAR && old[i].bar == b && old[i].pc->sub == EMU_BAR_ARRIVE)
                emu_set_add(w, old[i].pc + 1, old[i].frame, old[i].mask, 0);
            else
                w->sets[w->n_sets++] = old[i];
        }
    }
    if (waits) w->at_bar = (uint8_t)(b + 1);
    check_bar(c, b);
}

static void finish_bars(struct emu_warp *w)
{
    if (w->at_bar || !w->live) return;
    for (uint32_t b = 0; b < EMU_N_BARS; b++) {
        uint32_t here = 0;
        for (uint32_t i = 0; i < w->n_sets; i++)
            if (w->sets[i].state == EMU_PARK_BAR && w->sets[i].bar == b) here |= w->sets[i].mask;
        if (here && here == w->live) {
            warp_arrives(w, b);
            return;
        }
    }
}

bool emu_bar_arrive(struct emu_warp *w, const struct emu_op *op, struct emu_frame *f, uint32_t mask)
{
    uint32_t b = bar_number(op, f, mask);
    if (b >= EMU_N_BARS) emu_fault(f, op, MG_FAULT_TRAP, emu_first(mask), 0, 0, "barrier number %u is not below 16", b);
    w->sets[w->n_sets++] =
        (struct emu_set){.pc = op, .frame = f, .mask = mask, .state = EMU_PARK_BAR, .bar = (uint8_t)b};
    finish_bars(w);
    return true;
}

/* ---- leaving --------------------------------------------------------------------------------- */

void emu_lanes_exit(struct emu_warp *w, uint32_t mask)
{
    w->live &= ~mask;
    if (w->n_sets) {
        finish_syncs(w);
        finish_bars(w);
    }
    if (!w->live) {
        w->cta->n_live--;
        emu_cta_bar_check(w->cta);
    }
    if (w->cta->n_peers > 1) emu_cluster_check(w->cta);
}

/* Every live warp of the CTA waits for something that cannot come. */
void emu_deadlock(struct emu_cta *c)
{
    struct mg_buf b = MG_BUF_INIT;
    struct emu_frame *f = NULL;
    const struct emu_op *op = NULL;
    int lane = 0;
    uint32_t listed = 0, more = 0;
    mg_buf_adds(&b, "deadlock, every live warp waits: ");
    for (uint32_t r = 0; r < c->n_peers * c->n_warps; r++) {
        uint32_t k = r % c->n_warps;
        struct emu_warp *w = &c->peers[r / c->n_warps]->warps[k];
        for (uint32_t i = 0; i < w->n_sets; i++) {
            struct emu_set *s = &w->sets[i];
            if (!f) f = s->frame, op = s->pc, lane = emu_first(s->mask);
            if (listed == 6) {
                more++;
                continue;
            }
            mg_buf_adds(&b, listed++ ? "; " : "");
            if (c->n_peers > 1) mg_buf_printf(&b, "CTA (%u,%u,%u) ", w->cta->id[0], w->cta->id[1], w->cta->id[2]);
            mg_buf_printf(&b, "warp %u lanes 0x%08x at ", k, s->mask);
            if (s->state == EMU_PARK_CLUSTER)
                mg_buf_adds(&b, "the cluster's barrier ");
            else if (s->state == EMU_PARK_WGMMA)
                mg_buf_adds(&b, "wgmma.wait_group for the other warps of its group ");
            else if (s->state == EMU_PARK_BAR)
                mg_buf_printf(&b, "barrier %u ", s->bar);
            else
                mg_buf_printf(
                    &b, "%s waiting for lanes 0x%08x ",
                    mg_op_name(mg_node_form(s->frame->fn->mod->ir, &s->frame->fn->mod->ir->nodes.at[s->pc->node])->op),
                    s->need & w->live);
            mg_buf_adds(&b, "(");
            emu_place(s->frame->fn->mod->ir, s->frame->fn->id, s->pc->node, &b);
            mg_buf_adds(&b, ")");
        }
    }
    if (more) mg_buf_printf(&b, "; and %u more", more);
    char text[800];
    size_t n = b.n < sizeof text - 1 ? b.n : sizeof text - 1;
    memcpy(text, b.at, n);
    text[n] = 0;
    mg_buf_release(&b);
    emu_fault(f, op, MG_FAULT_DEADLOCK, lane, 0, 0, "%s", text);
}
