/* What a tool sees of a kernel, and what it reserves: sites, cells, tables, words. See patch.h. */
#include "patch/priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pass/priv.h"

enum {
    MOST_CELLS = 1 << 22,
    MOST_ENTRIES = 1 << 20,
    REGISTERS = 65536,    /* of a multiprocessor */
    MOST_REGISTERS = 255, /* of a thread */
    SPILLED = 32, /* registers that may lie in local memory: with all threads there they stay in the first cache */
    MANY_REGISTERS = 96 /* with fewer warps than that leaves, nothing is gained any more */
};

void mg_patch_refuse(struct mg_patch *p, enum mg_err err, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    if (p->err) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    p->err = mg_diag_err(&p->d, err, "%s", text);
}

/* ---- what is under work ------------------------------------------------------------------------ */

struct mg_module *mg_patch_module(struct mg_patch *p)
{
    return p->all->m;
}
const struct mg_sites *mg_patch_sites(const struct mg_patch *p)
{
    return p->all->sites;
}
struct mg_twin *mg_patch_twin(struct mg_patch *p)
{
    return p->all->twin;
}
uint32_t mg_patch_sm(const struct mg_patch *p)
{
    return p->all->o->sm ? p->all->o->sm : p->all->m->sm;
}
struct mg_arena *mg_patch_scratch(struct mg_patch *p)
{
    return &p->scratch;
}

const struct mg_cfg *mg_patch_cfg(struct mg_patch *p, uint32_t func_ix)
{
    return p->all->sites->cfgs[func_ix];
}

const struct mg_dom *mg_patch_dom(struct mg_patch *p, uint32_t func_ix)
{
    struct mg_patch_func *f = &p->all->funcs[func_ix];
    if (!f->dom) f->dom = mg_dom_new(mg_patch_cfg(p, func_ix));
    return f->dom;
}

const struct mg_loops *mg_patch_loops(struct mg_patch *p, uint32_t func_ix)
{
    struct mg_patch_func *f = &p->all->funcs[func_ix];
    if (!f->loops) f->loops = mg_loops_new(mg_patch_cfg(p, func_ix));
    return f->loops;
}

const struct mg_ivs *mg_patch_ivs(struct mg_patch *p, uint32_t func_ix)
{
    struct mg_patch_func *f = &p->all->funcs[func_ix];
    if (!f->ivs) f->ivs = mg_ivs_new(mg_patch_cfg(p, func_ix), mg_patch_dom(p, func_ix), mg_patch_loops(p, func_ix));
    return f->ivs;
}

const struct mg_live *mg_patch_live(struct mg_patch *p, uint32_t func_ix)
{
    struct mg_patch_func *f = &p->all->funcs[func_ix];
    if (!f->live) f->live = mg_live_new(mg_patch_cfg(p, func_ix));
    return f->live;
}

const struct mg_ssa *mg_patch_ssa(struct mg_patch *p, uint32_t func_ix)
{
    struct mg_patch_func *f = &p->all->funcs[func_ix];
    if (!f->ssa) f->ssa = mg_ssa_new(mg_patch_cfg(p, func_ix), mg_patch_dom(p, func_ix), mg_patch_live(p, func_ix));
    return f->ssa;
}

const struct mg_spaces *mg_patch_spaces(struct mg_patch *p, uint32_t func_ix)
{
    (void)func_ix; /* found for the whole module at once */
    if (!p->all->spaces) p->all->spaces = mg_spaces_new(p->all->app);
    return p->all->spaces;
}

const struct mg_uniform *mg_patch_uniform(struct mg_patch *p, uint32_t func_ix)
{
    struct mg_patch_func *f = &p->all->funcs[func_ix];
    if (!f->uniform) f->uniform = mg_uniform_new(mg_patch_cfg(p, func_ix), mg_patch_loops(p, func_ix));
    return f->uniform;
}

bool mg_patch_may_leave(struct mg_patch *p, uint32_t func_ix, uint32_t block)
{
    struct mg_patches *s = p->all;
    mg_id last = s->sites->cfgs[func_ix]->blocks[block].last;
    if (!s->may_exit) s->may_exit = mg_funcs_may_exit(s->m, s->twin);
    return mg_node_form(s->m, &s->m->nodes.at[last])->op == MG_OP_call && mg_callee_may_exit(s->m, s->may_exit, last);
}

struct mg_placer *mg_patch_placer(struct mg_patches *s, uint32_t func_ix)
{
    struct mg_patch_func *f = &s->funcs[func_ix];
    if (f->has_placer) return &f->placer;
    if (!f->loops) f->loops = mg_loops_new(s->sites->cfgs[func_ix]);
    if (!f->freq) f->freq = mg_freq_new(s->sites->cfgs[func_ix], f->loops, NULL);
    mg_patch_close(s, func_ix);
    f->placer =
        (struct mg_placer){.m = s->m, .func = s->twin->funcs[func_ix], .c = s->sites->cfgs[func_ix], .f = f->freq};
    f->has_placer = true;
    return &f->placer;
}

mg_id mg_patch_close(struct mg_patches *s, uint32_t func_ix)
{
    struct mg_patch_func *f = &s->funcs[func_ix];
    if (!f->closed) f->closing = mg_body_close(s->twin, func_ix, s->sites->cfgs[func_ix]);
    f->closed = true;
    return f->closing;
}

uint32_t mg_patch_insts(struct mg_patch *p, const struct mg_patch_inst **out)
{
    struct mg_patches *s = p->all;
    const struct mg_module *m = s->app;
    if (!s->insts) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < s->sites->n_blocks; i++) n += s->sites->blocks[i].n_insts;
        s->insts = mg_xcalloc(n + 1, sizeof *s->insts);
        for (uint32_t i = 0; i < s->sites->n_blocks; i++) {
            const struct mg_site_block *b = &s->sites->blocks[i];
            const struct mg_block *k = &s->sites->cfgs[b->func_ix]->blocks[b->block_ix];
            for (mg_id id = k->first; id; id = id == k->last ? 0 : m->nodes.at[id].next) {
                const struct mg_node *x = &m->nodes.at[id];
                if (x->kind == MG_NODE_inst && !(x->flags & MG_NF_META))
                    s->insts[s->n_insts++] =
                        (struct mg_patch_inst){.node = id, .func_ix = b->func_ix, .block = b->block_ix, .id = i};
            }
        }
    }
    *out = s->insts;
    return s->n_insts;
}

bool mg_patch_ends_in_callee(struct mg_patch *p)
{
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts);
    for (uint32_t i = 0; i < n; i++)
        if (insts[i].func_ix && mg_node_form(p->all->m, &p->all->m->nodes.at[insts[i].node])->op == MG_OP_exit)
            return true;
    return false;
}

/* ---- reserving ----------------------------------------------------------------------------------- */

static struct mg_layout_site *last_site(struct mg_patch *p)
{
    if (!p->sites.n) mg_patch_refuse(p, MG_ERR_STATE, "cells without a site");
    return p->sites.n ? &p->sites.at[p->sites.n - 1] : NULL;
}

uint32_t mg_patch_cells(struct mg_patch *p, uint32_t n, enum mg_merge rule)
{
    struct mg_layout_site *s = last_site(p);
    uint32_t first = p->rules.n;
    if (!s) return 0;
    if (n > MOST_CELLS - first) {
        mg_patch_refuse(p, MG_ERR_LIMIT, "more than %d cells for one kernel", (int)MOST_CELLS);
        return 0;
    }
    s->n_cells += n;
    for (uint32_t i = 0; i < n; i++) *mg_vec_push(&p->rules) = (uint8_t)rule;
    return first;
}

static uint32_t block_of(const struct mg_patches *s, mg_id node)
{
    for (uint32_t i = 0; i < s->sites->n_funcs; i++) {
        uint32_t b = mg_cfg_block_of(s->sites->cfgs[i], node);
        if (b != MG_NO_BLOCK) return s->sites->first_block[i] + b;
    }
    return MG_NO_BLOCK;
}

uint32_t mg_patch_site(struct mg_patch *p, enum mg_site_kind kind, mg_id node, uint32_t block, uint32_t n,
                       enum mg_merge rule, uint32_t note)
{
    const struct mg_sites *s = p->all->sites;
    struct mg_layout_site one = {
        .kind = kind, .note = note, .block = kind == MG_SITE_KERNEL ? 0 : block, .cell = p->rules.n, .op = ""};
    if (kind == MG_SITE_INST) one.block = block_of(p->all, node);
    if (kind == MG_SITE_EDGE) one.succ = node;
    bool bad = kind != MG_SITE_KERNEL && one.block >= s->n_blocks;
    if (bad || (kind == MG_SITE_EDGE && one.succ >= s->blocks[one.block].n_succs)) {
        mg_patch_refuse(p, MG_ERR_STATE, "a site that is not of this kernel");
        return 0;
    }
    *mg_vec_push(&p->sites) = one;
    *mg_vec_push(&p->site_nodes) = kind == MG_SITE_INST ? node : 0;
    return mg_patch_cells(p, n, rule);
}

void mg_patch_one_copy(struct mg_patch *p)
{
    p->one_copy = true;
}

void mg_patch_name(struct mg_patch *p, const char *name)
{
    struct mg_layout_site *s = last_site(p);
    if (s) s->op = mg_arena_strndup(&p->all->layout->arena, name, strlen(name));
}

uint32_t mg_patch_table(struct mg_patch *p, uint32_t keys, uint32_t n, enum mg_merge rule, uint32_t entries)
{
    if (!last_site(p)) return 0;
    if (!keys || entries > MOST_ENTRIES || entries & (entries - 1)) {
        mg_patch_refuse(p, MG_ERR_LIMIT, "a table of %u keys and %u entries", (unsigned)keys, (unsigned)entries);
        return 0;
    }
    *mg_vec_push(&p->tables) = (struct mg_layout_table){
        .site = p->sites.n - 1, .n_keys = keys, .n_cells = n, .n_entries = entries, .rule = rule};
    return p->tables.n - 1;
}

uint32_t mg_patch_words(struct mg_patch *p, uint32_t n)
{
    uint32_t first = p->region->n_launch_words;
    if (!first) p->region->first_word = p->all->n_launch_words;
    if (p->region->first_word + first != p->all->n_launch_words)
        mg_patch_refuse(p, MG_ERR_STATE, "words have to be reserved by analyze");
    else if (n > MG_CTX_N_WORDS - p->all->n_launch_words)
        mg_patch_refuse(p, MG_ERR_LIMIT, "tools ask for more than %d words a launch", (int)MG_CTX_N_WORDS);
    if (p->err) return 0;
    p->region->n_launch_words += n;
    p->all->n_launch_words += n;
    return first;
}

uint64_t mg_patch_ctas(const struct mg_patch *p)
{
    p->all->twin->fitted = true;
    return p->all->twin->ctas;
}

mg_id mg_patch_warp_bytes(struct mg_patch *p, uint32_t bytes)
{
    mg_id var = mg_kernel_add_shared(p->all->m, p->all->twin->kernel, "__mg_warps", bytes);
    if (!var) return 0;
    struct mg_code_at *at = mg_at_entry(p, 0);
    mg_id r = mg_code_reg(at, MG_TYPE_b32);
    MG_PURE(at, "mov.u32", r, mg_o_var(var));
    MG_PURE(at, "mad.lo.u32", r, mg_value_warp(at), mg_o_imm(bytes), r);
    return r;
}

void mg_patch_near(struct mg_patch *p)
{
    p->near.wanted = true;
}

uint32_t mg_patch_room(struct mg_patch *p)
{
    struct mg_twin *t = p->all->twin;
    uint32_t most = t->must_fit ? MG_MIN(t->most_registers, (uint32_t)MOST_REGISTERS) : 0;
    if (!t->registers || most <= t->registers) return 0;
    t->fitted = true;
    return most - t->registers;
}

/* As many as leave room for as many CTAs of the launch as n do. */
static uint32_t for_as_many(const struct mg_twin *t, uint32_t n)
{
    uint32_t threads = (t->threads + 31) / 32 * 32, ctas = threads ? REGISTERS / (n * threads) : 0;
    return ctas ? MG_MIN(REGISTERS / (ctas * threads) / 8 * 8, (uint32_t)MOST_REGISTERS) : n;
}

/* As the native code has them, and some; more, where what is kept in loops would not be in the cache. Where all CTAs of
 * the launch that the twin is made for run at once and leave room for more, that many: fewer would gain nothing. One of
 * few numbers, so that launches of like sizes share texts.
 */
static uint32_t registers_for(struct mg_twin *t, uint32_t least, uint32_t kept)
{
    static const uint8_t sizes[] = {255, 168, 128, 96, 80, 64, 56, 48, 40};
    uint32_t usual = MG_MAX(least, (t->registers + 15) / 8 * 8),
             hot = t->registers + kept > SPILLED ? (t->registers + kept - SPILLED + 7) / 8 * 8 : 0;
    usual = MG_MIN(MG_MAX(usual, MG_MIN(hot, (uint32_t)MANY_REGISTERS)), (uint32_t)MOST_REGISTERS);
    uint32_t whole = for_as_many(t, usual);
    if (whole > usual) t->fitted = true, t->fewer = usual, usual = whole;
    for (uint32_t i = 0; t->must_fit && i < MG_COUNT_OF(sizes); i++) {
        if (sizes[i] > t->most_registers || sizes[i] <= usual) continue;
        t->fitted = true;
        if (!t->fewer) t->fewer = usual;
        return sizes[i];
    }
    return usual;
}

/* Blocks in loops, which have counters of their own; strips. */
static uint32_t kept_beside(struct mg_patch *p)
{
    const struct mg_loops *l = mg_patch_loops(p, 0);
    const struct mg_cfg *c = p->all->sites->cfgs[0];
    uint32_t n = p->own[0].n_strip_regs;
    for (uint32_t b = 0; b < c->n_blocks; b++) n += l->loop_of[b] != MG_NO_LOOP;
    return n;
}

void mg_patch_few_registers(struct mg_patch *p, uint32_t least, uint32_t kept)
{
    struct mg_twin *t = p->all->twin;
    struct mg_func *f = &p->all->m->funcs.at[t->kernel];
    if (f->maxnreg || f->minnctapersm || f->maxntid[0] || f->reqntid[0]) return;
    t->fitted |= !t->registers;
    if (!t->registers) return;
    struct mg_module *m = p->all->m;
    char text[32];
    uint32_t first = m->directives.n;
    f->maxnreg = registers_for(t, least, kept ? kept + kept_beside(p) : 0);
    for (uint32_t i = 0; i < f->n_directives; i++) {
        struct mg_directive d = m->directives.at[f->first_directive + i];
        *mg_vec_push(&m->directives) = d;
    }
    snprintf(text, sizeof text, ".maxnreg %u", (unsigned)f->maxnreg);
    *mg_vec_push(&m->directives) = (struct mg_directive){mg_intern_adds(&m->names, text)};
    f->first_directive = first;
    f->n_directives++;
}

void mg_patch_list(struct mg_patch *p, uint32_t n)
{
    p->region->n_list += n;
}

void mg_patch_want_blocks(struct mg_patch *p)
{
    if (!p->in_analyze) mg_patch_refuse(p, MG_ERR_STATE, "block counts have to be asked for by analyze");
    p->wants_blocks = true;
}

void mg_patch_keep_lanes(struct mg_patch *p)
{
    if (!p->in_analyze) mg_patch_refuse(p, MG_ERR_STATE, "analyze has to say that lanes are to meet as natively");
    p->all->twin->keeps_lanes = true;
}

uint32_t mg_patch_sum(struct mg_patch *p, uint32_t cell)
{
    if (cell >= p->rules.n || p->rules.at[cell] != MG_MERGE_SUM) {
        mg_patch_refuse(p, MG_ERR_STATE, "a sum goes to a cell of rule SUM");
        return 0;
    }
    *mg_vec_push(&p->sums) = cell;
    return p->sums.n - 1;
}

uint32_t mg_patch_shared_sum(struct mg_patch *p)
{
    *mg_vec_push(&p->sums) = UINT32_MAX;
    return p->sums.n - 1;
}

void mg_patch_share(struct mg_patch *p, uint32_t sum, uint32_t every, uint32_t cell, uint32_t times)
{
    if (cell >= p->rules.n || p->rules.at[cell] != MG_MERGE_SUM || sum >= p->sums.n)
        mg_patch_refuse(p, MG_ERR_STATE, "a share of a sum goes to a cell of rule SUM");
    else
        *mg_vec_push(&p->shares) = (struct mg_patch_share){sum, cell, times, every};
}

/* Can this result be set to 0 by one move, or is there none? */
static bool can_zero(const struct mg_module *m, const struct mg_opnd *d)
{
    if (d->kind != MG_OPND_reg) return true;
    unsigned bits = mg_type_bits((enum mg_type)m->regs.at[d->id].type);
    return !m->regs.at[d->id].vec && (bits == 16 || bits == 32 || bits == 64);
}

void mg_patch_skip(struct mg_patch *p, mg_id node, mg_id pred)
{
    const struct mg_module *m = p->all->m;
    const struct mg_node *n = &m->nodes.at[node];
    bool can = !(mg_node_form(m, n)->op_flags & MG_OPF_ENDS_BLOCK);
    if (can && n->n_opnds && !(mg_node_form(m, n)->op_flags & MG_OPF_NO_DST)) {
        const struct mg_opnd *d = &m->opnds.at[n->opnd];
        can = can_zero(m, d);
        for (uint32_t i = 0; d->kind == MG_OPND_vec && i < d->n; i++) can = can && can_zero(m, &m->opnds.at[d->id + i]);
    }
    if (!can) {
        mg_patch_refuse(p, MG_ERR_UNSUPPORTED, "%s cannot be skipped", mg_name(m, mg_node_form(m, n)->text));
        return;
    }
    *mg_vec_push(&p->skips) = (struct mg_patch_skips){node, pred};
}

mg_id mg_node_guard(const struct mg_module *m, mg_id node, bool *negated)
{
    const struct mg_node *n = &m->nodes.at[node];
    *negated = n->guard && n->flags & MG_NF_GUARD_NOT;
    return n->guard;
}
