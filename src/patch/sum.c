/* Sums: registers of each thread, added to memory where the thread leaves the function, by the same
 * machinery as the block counter's (count/flush.c). Those of one function lie behind one another in
 * every copy of the region, and each belongs to a cell.
 *
 *   at most one addition of 1 in an activation    a bit of a packed register
 *   small: constants outside of loops             32 bits, whose sum over a warp fits 32 bits, too
 *   1 in each round of loops that end in time     32 bits
 *   other                                         64 bits; beyond what registers there are: a word of local memory
 *     */
#include <stdlib.h>

#include "count/regs.h"
#include "patch/priv.h"

enum { MOST_CELLS = 40 /* registers of 32 bits for sums that are no bits */, SMALL = 1 << 27 };
#define LARGE ((uint64_t)1 << 32)

struct mg_sums {
    struct mg_patch *p;
    uint32_t func_ix;
    struct mg_rfunc f;
    struct mg_counter_opts opts;
    struct mg_counter_layout layout;
    uint32_t *counter; /* sum -> counter of f; UINT32_MAX: not used here */
    uint64_t *all;     /* set of all counters */
};

static int by_kind_and_weight(const void *a, const void *b)
{
    const struct mg_patch_sum_use *x = a, *y = b;
    bool bit_x = x->kind == MG_RC_BIT, bit_y = y->kind == MG_RC_BIT;
    if (bit_x != bit_y) return bit_x ? -1 : 1;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return x->sum < y->sum ? -1 : x->sum > y->sum;
}

uint64_t mg_sum_most(const struct mg_code_at *at, struct mg_opnd v)
{
    if (v.kind != MG_OPND_imm) return UINT64_MAX;
    if (!mg_at_repeats(at)) return v.val;
    const struct mg_loops *l = mg_patch_loops(at->p, at->func_ix);
    uint32_t b = mg_cfg_block_of(mg_patch_cfg(at->p, at->func_ix), at->node);
    unsigned bits;
    bool below;
    if (b == MG_NO_BLOCK || at->kind == MG_AT_EDGE || v.val != 1) return UINT64_MAX;
    bool known = mg_ivs_most(mg_patch_ivs(at->p, at->func_ix), l, l->loop_of[b], &bits, &below);
    return known && bits <= 32 ? ((uint64_t)1 << bits) - below : UINT64_MAX;
}

/* The sums that the code of a function adds to: bits first, then the most frequent. */
static uint32_t find_used(struct mg_patch *p, uint32_t func_ix, struct mg_patch_sum_use *list)
{
    struct mg_patch_sum_use *all = mg_xcalloc(p->sums.n + 1, sizeof *all);
    const struct mg_freq *q = p->all->funcs[func_ix].freq;
    uint32_t n = 0, n_bits = 0, cells = 0, most = MG_MAX(mg_patch_room(p) / 2, (uint32_t)MOST_CELLS);
    for (uint32_t i = 0; i < p->spots.n; i++) {
        const struct mg_code_at *at = p->spots.at[i];
        if (at->func_ix != func_ix) continue;
        uint32_t b = mg_cfg_block_of(p->all->sites->cfgs[func_ix], at->node);
        for (uint32_t k = 0; k < at->items.n; k++) {
            const struct mg_code_item *it = &at->items.at[k];
            if (it->node) continue;
            struct mg_patch_sum_use *u = &all[it->sum];
            u->weight += 1e-9 + (b != MG_NO_BLOCK ? q->block[b] : 1);
            u->most = MG_MIN(u->most, LARGE) + MG_MIN(it->most, LARGE);
        }
    }
    for (uint32_t s = 0; s < p->sums.n; s++) {
        struct mg_patch_sum_use u = all[s];
        if (u.weight == 0) continue;
        u.sum = s;
        u.kind = u.most == 1 && n_bits < MG_BANK * MG_BIT_BANKS ? MG_RC_BIT : u.most < LARGE ? MG_RC_32 : MG_RC_64;
        n_bits += u.kind == MG_RC_BIT;
        list[n++] = u;
    }
    qsort(list, n, sizeof *list, by_kind_and_weight);
    for (uint32_t i = n_bits; i < n; i++) {
        uint32_t need = list[i].kind == MG_RC_64 ? 2 : 1;
        cells += need;
        if (cells > most) list[i].kind = MG_RC_LOCAL; /* from here on all: slots are in order of kinds */
    }
    free(all);
    return n;
}

void mg_sums_place(struct mg_patch *p)
{
    struct mg_region *r = p->region;
    uint32_t n_funcs = p->all->sites->n_funcs;
    if (!p->sums.n && !p->near.cells.n) return;
    struct mg_patch_sum_use *list = mg_xcalloc(p->sums.n + 1, sizeof *list);
    MG_VEC(struct mg_layout_sum) slots = {0};
    for (uint32_t i = 0; i < p->near.cells.n; i++)
        *mg_vec_push(&slots) = (struct mg_layout_sum){.cell = p->near.cells.at[i], .slot = r->n_cells + i};
    for (uint32_t f = 0; f < n_funcs; f++) {
        struct mg_patch_own *own = &p->own[f];
        if (!p->sums.n || !p->all->sites->cfgs[f]->n_blocks) continue;
        mg_patch_placer(p->all, f); /* knows of loops, and how often blocks run */
        own->n_sums = find_used(p, f, list);
        own->sums = mg_arena_copy(&p->scratch, list, own->n_sums * sizeof *list);
        own->first_sum = slots.n;
        for (uint32_t k = 0; k < own->n_sums; k++) {
            uint32_t slot = r->n_cells + slots.n;
            *mg_vec_push(&slots) = (struct mg_layout_sum){.cell = p->sums.at[list[k].sum], .slot = slot};
        }
    }
    MG_VEC(struct mg_layout_share) shares = {0};
    for (uint32_t f = 0; f < n_funcs; f++)
        for (uint32_t k = 0; k < p->own[f].n_sums; k++)
            for (uint32_t i = 0; i < p->shares.n; i++)
                if (p->shares.at[i].sum == p->own[f].sums[k].sum)
                    *mg_vec_push(&shares) =
                        (struct mg_layout_share){p->shares.at[i].cell, r->n_cells + p->own[f].first_sum + k,
                                                 p->shares.at[i].times, p->shares.at[i].every};
    r->shares = mg_arena_copy(&p->all->layout->arena, shares.at, shares.n * sizeof *r->shares);
    r->n_shares = shares.n;
    mg_vec_release(&shares);
    r->sums = mg_arena_copy(&p->all->layout->arena, slots.at, slots.n * sizeof *r->sums);
    r->n_sums = slots.n;
    mg_vec_release(&slots);
    free(list);
}

static void give_registers(struct mg_sums *s, const struct mg_patch_sum_use *list, uint32_t n)
{
    struct mg_rfunc *f = &s->f;
    f->n = f->n_measured = n;
    f->counters = mg_xcalloc(n + 1, sizeof *f->counters);
    for (uint32_t i = 0; i < n; i++) {
        s->counter[list[i].sum] = i;
        f->counters[i] = (struct mg_rc){.kind = list[i].kind, .slot = i, .small = list[i].most < SMALL};
        f->n_bits += list[i].kind == MG_RC_BIT;
        f->n_words += list[i].kind == MG_RC_32 || list[i].kind == MG_RC_64;
        f->local.n_words += list[i].kind == MG_RC_LOCAL;
    }
    mg_rc_assign_registers(f, 0);
}

struct mg_sums *mg_sums_begin(struct mg_patch *p, uint32_t func_ix)
{
    struct mg_patches *all = p->all;
    const struct mg_region *r = p->region;
    const struct mg_patch_own *own = &p->own[func_ix];
    if (!own->n_sums) return NULL;
    if (!all->may_exit) all->may_exit = mg_funcs_may_exit(all->m, all->twin);
    struct mg_sums *s = mg_xcalloc(1, sizeof *s);
    s->p = p;
    s->func_ix = func_ix;
    s->opts.shards = r->n_copies;
    s->layout = (struct mg_counter_layout){.n_copies = r->n_copies, .copy_words = r->copy_words, .counter_words = 1};
    s->f.o = &s->opts;
    s->f.layout = &s->layout;
    s->f.x = (struct mg_emit){.t = all->twin,
                              .m = all->m,
                              .c = all->sites->cfgs[func_ix],
                              .ix = func_ix,
                              .func = all->twin->funcs[func_ix],
                              .ctx = all->twin->ctx_reg[func_ix],
                              .may_exit = all->may_exit};
    s->f.sync = all->o->reduce && all->m->sm >= 70;
    s->f.redux = all->m->sm >= 80;
    s->f.at = (uint32_t)r->at + r->n_cells + own->first_sum;
    s->counter = mg_xcalloc(p->sums.n + 1, sizeof *s->counter);
    s->all = mg_xcalloc(own->n_sums / 64 + 1, sizeof *s->all);
    for (uint32_t i = 0; i < own->n_sums; i++) s->all[i / 64] |= 1ull << i % 64;
    give_registers(s, own->sums, own->n_sums);
    s->f.x.at = all->twin->entry_at[func_ix];
    mg_rc_clear(&s->f, NULL);
    return s;
}

void mg_sums_add(struct mg_sums *s, mg_id in_front, const struct mg_code_item *it)
{
    struct mg_emit *x = &s->f.x;
    const struct mg_rc *c = &s->f.counters[s->counter[it->sum]];
    x->at = in_front;
    if (c->kind == MG_RC_LOCAL) {
        mg_id v = mg_rc_temp64(&s->f);
        int64_t off = 8 * (int64_t)(c->slot - s->f.n_bits - s->f.n_words);
        EMIT_AT(x, "ld.local.u64", v, mg_o_addr_reg(s->f.local.reg, off));
        EMIT_AT(x, "add.u64", v, v, it->v);
        mg_emit_guard(x, it->guard, it->guard_not);
        EMIT_AT(x, "st.local.u64", mg_o_addr_reg(s->f.local.reg, off), v);
    } else {
        mg_emit_guard(x, it->guard, it->guard_not);
        if (c->kind == MG_RC_BIT)
            EMIT_AT(x, "or.b32", c->reg, c->reg, (int64_t)1 << c->bit);
        else
            EMIT_AT(x, c->kind == MG_RC_32 ? "add.u32" : "add.u64", c->reg, c->reg, it->v);
    }
    mg_emit_guard(x, 0, false);
}

void mg_sums_end(struct mg_sums *s)
{
    struct mg_rfunc *f = &s->f;
    const struct mg_module *m = f->x.m;
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++) {
        mg_id last = f->x.c->blocks[b].last;
        const struct mg_node *n = &m->nodes.at[last];
        unsigned op = mg_node_form(m, n)->op;
        f->x.at = last;
        if (op == MG_OP_ret || op == MG_OP_exit) {
            mg_rc_flush(f, NULL, n->guard, n->guard && n->flags & MG_NF_GUARD_NOT, true);
        } else if (op == MG_OP_call && mg_callee_may_exit(m, f->x.may_exit, last)) {
            mg_rc_flush_lanes(f, s->all);
            mg_rc_clear(f, s->all);
        }
    }
    f->x.at = mg_patch_close(s->p->all, s->func_ix);
    if (f->x.at) mg_rc_flush(f, NULL, 0, false, true);
    free(f->counters);
    free(f->packed.banks);
    free(s->counter);
    free(s->all);
    free(s);
}
