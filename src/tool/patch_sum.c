/* Sums: registers of each thread, added to memory where the thread leaves the function, by the same
 * machinery as the block counter's (blocks_flush.c). Those of one function lie behind one another in
 * every copy of the region, and each belongs to a cell. */
#include "tool/blocks_regs.h"
#include "tool/patch_priv.h"

enum { MOST_REGISTERS = 16 }; /* sums in registers; others are words of local memory */

struct mg_sums {
    struct mg_patch *p;
    uint32_t func_ix;
    struct mg_rfunc f;
    struct mg_blocks_opts opts;
    struct mg_counter_layout layout;
    uint32_t *counter;   /* sum -> counter of f; UINT32_MAX: not used here */
    uint64_t *all;       /* set of all counters */
};

/* Sums that the code of a function adds to, in order of their weight: the most frequent first. */
static uint32_t find_used(const struct mg_patch *p, uint32_t func_ix, uint32_t *order)
{
    double *weight = mg_xcalloc(p->sums.n + 1, sizeof *weight);
    const struct mg_freq *q = p->all->funcs[func_ix].freq;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->spots.n; i++) {
        const struct mg_code_at *at = p->spots.at[i];
        uint32_t b = at->func_ix == func_ix ? mg_cfg_block_of(p->all->sites->cfgs[func_ix], at->node) : MG_NO_BLOCK;
        if (at->func_ix != func_ix) continue;
        for (uint32_t k = 0; k < at->items.n; k++)
            if (!at->items.at[k].node) weight[at->items.at[k].sum] += 1e-9 + (q && b != MG_NO_BLOCK ? q->block[b] : 1);
    }
    for (uint32_t s = 0; s < p->sums.n; s++) {
        if (weight[s] == 0) continue;
        uint32_t at = n++;
        while (at && weight[order[at - 1]] < weight[s]) order[at] = order[at - 1], at--;
        order[at] = s;
    }
    free(weight);
    return n;
}

void mg_sums_place(struct mg_patch *p)
{
    struct mg_region *r = p->region;
    uint32_t n_funcs = p->all->sites->n_funcs;
    if (!p->sums.n) return;
    r->sums = mg_arena_array(&p->all->layout->arena, struct mg_layout_sum, (size_t)p->sums.n * n_funcs);
    for (uint32_t f = 0; f < n_funcs; f++) {
        struct mg_patch_own *own = &p->own[f];
        if (!p->all->sites->cfgs[f]->n_blocks) continue;
        mg_patch_placer(p->all, f); /* knows how often blocks run */
        own->sums = mg_arena_array(&p->scratch, uint32_t, p->sums.n);
        own->first_sum = r->n_sums;
        own->n_sums = find_used(p, f, own->sums);
        for (uint32_t k = 0; k < own->n_sums; k++, r->n_sums++)
            r->sums[r->n_sums] = (struct mg_layout_sum){.cell = p->sums.at[own->sums[k]], .slot = r->n_cells + r->n_sums};
    }
}

static void give_registers(struct mg_sums *s, const uint32_t *order, uint32_t n)
{
    struct mg_rfunc *f = &s->f;
    f->n = f->n_measured = n;
    f->counters = mg_xcalloc(n + 1, sizeof *f->counters);
    for (uint32_t i = 0; i < n; i++) {
        s->counter[order[i]] = i;
        f->counters[i] = (struct mg_rc){.kind = i < MOST_REGISTERS ? MG_RC_64 : MG_RC_LOCAL, .slot = i};
        if (i < MOST_REGISTERS) f->counters[i].reg = mg_emit_reg(&f->x, "__mg_c", MG_TYPE_u64), f->n_words++;
        else f->n_locals++;
    }
    if (f->n_locals) mg_rc_add_local_array(f);
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
    s->f.x = (struct mg_emit){.o = &s->opts, .layout = &s->layout, .t = all->twin, .m = all->m, .c = all->sites->cfgs[func_ix], .ix = func_ix,
                              .func = all->twin->funcs[func_ix], .ctx = all->twin->ctx_reg[func_ix], .may_exit = all->may_exit};
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
        int64_t off = 8 * (int64_t)(c->slot - s->f.n_words);
        EMIT_AT(x, "ld.local.u64", mg_o_reg(v), mg_o_addr_reg(s->f.local_reg, off));
        EMIT_AT(x, "add.u64", mg_o_reg(v), mg_o_reg(v), it->v);
        mg_emit_guard(x, it->guard, it->guard_not);
        EMIT_AT(x, "st.local.u64", mg_o_addr_reg(s->f.local_reg, off), mg_o_reg(v));
    } else {
        mg_emit_guard(x, it->guard, it->guard_not);
        EMIT_AT(x, "add.u64", mg_o_reg(c->reg), mg_o_reg(c->reg), it->v);
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
            mg_rc_flush(f, NULL, n->guard, n->guard && n->flags & MG_NF_GUARD_NOT);
        } else if (op == MG_OP_call && mg_callee_may_exit(m, f->x.may_exit, last)) {
            mg_rc_flush_lanes(f, s->all);
            mg_rc_clear(f, s->all);
        }
    }
    f->x.at = mg_patch_close(s->p->all, s->func_ix);
    if (f->x.at) mg_rc_flush(f, NULL, 0, false);
    free(f->counters);
    free(s->counter);
    free(s->all);
    free(s);
}
