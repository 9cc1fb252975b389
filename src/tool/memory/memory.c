/* memory: what each memory instruction asks of the memory system: accesses, bytes, requests, 32-byte
 * sectors, 128-byte lines, strides and bank conflicts, aggregated in the kernel, without a trace.
 *
 *   access    one thread executes the instruction         request   one warp does, with at least one lane
 *   sector    an aligned 32 bytes of global, local or constant memory that a request touches; line: 128
 *   conflict  shared memory has 32 banks of 4 bytes; a request is served in groups of lanes that ask for 128
 *             bytes together (all 32 with up to 4 bytes a lane, halves with 8, quarters with 16). A group
 *             takes as many passes as its busiest bank has different words: those beyond the first count
 *
 * level=bytes counts accesses and bytes alone: from block counts, guarded instructions in a register. level=full
 * classifies each request (tool/memory/count.c). Instructions of one group (mg_patch_groups) are looked at together
 * where that says enough, and addresses in shared memory where they are made, outside of loops, or when the twin is
 * made (tool/memory/fixed.c), or several of them for one (tool/memory/bundle.c). How far apart lanes are is guessed
 * (tool/memory/stride.c) and asked first (tool/memory/likely.c). This file: sites. tool/memory/report.c: what is shown.
 */
#include <stdlib.h>

#include "analysis/loop.h"
#include "analysis/space.h"
#include "analysis/ssa.h"
#include "analysis/uniform.h"
#include "tool/memory/memory.h"
#include "tool/tool.h"

enum {
    FEW = 6,         /* requests of a thread */
    MOST_BITS = 200, /* sums of one kernel outside of loops, a bit each: there are 240 */
    MOST_WORDS = 16, /* in loops, a register or two each */
    MANY = 40        /* groups of accesses: the assembler takes a second for the code of so many */
};
static const char *const levels[] = {"full", "bytes", NULL}; /* ORDER mg_memory_level */
static const struct mg_tool_opt memory_opts[] = {
    {"level", "full",
     "full: requests, sectors, strides, bank conflicts; bytes: accesses and bytes alone, next to nothing"},
    {0},
};
static const struct mg_field memory_fields[] = {
    {"level", MG_FIELD_CHOICE, offsetof(struct mg_memory_opts, level), 0, 0, levels}, {0}};

static enum mg_err memory_configure(const char *args, void **conf, struct mg_diag *d)
{
    const struct mg_memory_opts defaults = {.level = MG_MEMORY_FULL};
    return mg_fields_parse("memory", memory_fields, &defaults, sizeof defaults, args, conf, d);
}

static enum mg_err memory_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_memory_opts *o = conf;
    const struct mg_module *m = mg_patch_module(p);
    if (o->level == MG_MEMORY_FULL && m->sm < 70)
        return mg_diag_err(d, MG_ERR_UNSUPPORTED,
                           "tool memory, level=full: the PTX is for sm_%u, warps are matched from sm_70 on", m->sm);
    mg_patch_want_blocks(p);
    if (o->level == MG_MEMORY_FULL) mg_patch_keep_lanes(p);
    return MG_ERR_OK;
}

/* ---- sites --------------------------------------------------------------------------------------------- */

static bool access_of(struct mg_patch *p, const struct mg_patch_inst *i, struct mg_access *a)
{
    return mg_patch_access(p, i, a) && a->space != MG_SPACE_param;
}

/* Where the access goes: its own space, or what analysis proves of a generic address; generic: not one. */
static enum mg_space space_of(struct mg_patch *p, const struct mg_patch_inst *i, const struct mg_access *a,
                              unsigned *set)
{
    *set =
        a->space == MG_SPACE_generic ? mg_spaces_of(mg_patch_spaces(p, i->func_ix), i->node) : MG_SPACE_BIT(a->space);
    return mg_spaces_one(*set);
}

struct group {
    uint32_t site, cell /* of the first, + 1; 0: not there yet */;
    int64_t from;
    bool same;          /* all lanes ask for one address in each of them */
    uint32_t *by_place; /* address modulo 128: 1 + the site there; 0: none */
    struct mg_memory_group shared;
    struct mg_memory_request first; /* its code, which those that follow stand behind */
    MG_VEC(struct mg_memory_follower) followers;
    struct mg_memory_ask ask; /* summed: what each 32 of the sum ask for, all of the group alike */
    uint32_t sum;
    bool summed;
};
struct bundle { /* groups that are looked at together, the first of them for all */
    uint32_t n, bytes;
    uint32_t known; /* so many of them have their cells */
    uint32_t site;  /* of the first */
    uint32_t rep;   /* whose address is looked at: the value that is made first */
    uint32_t group[MG_MEMORY_BUNDLED];
    const struct mg_patch_inst *insts[MG_MEMORY_BUNDLED]; /* their first accesses */
    struct mg_memory_form forms[MG_MEMORY_BUNDLED];
    struct mg_memory_request q[MG_MEMORY_BUNDLED];
};
struct class_of {
    uint32_t func_ix, base, bytes, uses;
    struct mg_memory_class k;
};
struct alike { /* an address of which lanes are likely to have one */
    uint32_t func_ix, base;
    mg_id lanes; /* that do, where it is made */
};
struct run { /* of one kernel */
    struct mg_patch *p;
    const struct mg_access_group *groups;
    const uint32_t *group_of;
    struct group *state;
    uint32_t n_groups;
    struct mg_memory_value *values; /* of tool/memory/fixed.c */
    bool in_rows;                   /* threads are told apart by their numbers in a row alone */
    mg_id row;                      /* register: all ones where the warp lies in one row; 0: not made yet */
    MG_VEC(struct class_of) classes;
    MG_VEC(struct alike) alike;
    MG_VEC(struct bundle *) bundles;
    struct bundle **bundle_of;        /* by group; NULL: it is alone */
    const struct mg_affine **strides; /* by function and whether threads are in rows; NULL: not looked at */
    struct mg_memory_called called;
    bool many;                   /* accesses: with calls */
    uint32_t sites, bits, words; /* sums outside of loops and in them */
};

static mg_id plain_guard(struct mg_code_at *at, mg_id guard, bool negated)
{
    if (!guard || !negated) return guard;
    mg_id p = mg_code_reg(at, MG_TYPE_pred);
    MG_CODE(at, "not.pred", p, guard);
    return p;
}

/* A generic access that may be to shared memory: lanes to whom it is go one way, the others the other. */
static void count_generic(struct mg_memory_request *q, enum mg_space space)
{
    mg_id shared = mg_code_reg(q->at, MG_TYPE_pred), elsewhere = mg_code_reg(q->at, MG_TYPE_pred), generic = q->addr,
          near = mg_code_reg(q->at, MG_TYPE_b64);
    MG_CODE(q->at, "isspacep.shared", shared, generic);
    MG_CODE(q->at, "not.pred", elsewhere, shared);
    if (q->makes) {
        MG_CODE(q->at, "and.pred", shared, shared, q->makes);
        MG_CODE(q->at, "and.pred", elsewhere, elsewhere, q->makes);
    }
    MG_CODE(q->at, "cvta.to.shared.u64", near, generic);
    q->makes = shared;
    q->addr = near;
    q->space = MG_SPACE_shared;
    mg_memory_count(q, NULL);
    if (space == MG_SPACE_shared) return;
    q->makes = elsewhere;
    q->addr = generic;
    q->space = MG_SPACE_global;
    mg_memory_count(q, NULL);
}

/* ---- classes of addresses ------------------------------------------------------------------------------------ */

/* Where a value is made: behind the instruction, or at the head of the block where others meet; NULL: nowhere that one
 * can look. */
static struct mg_code_at *made_at(struct run *r, uint32_t func_ix, uint32_t value, uint32_t *block)
{
    const struct mg_ssa_value *v = &mg_patch_ssa(r->p, func_ix)->values[value];
    const struct mg_module *m = mg_patch_module(r->p);
    *block = v->block;
    if (v->kind == MG_SSA_phi) return mg_at_block(r->p, mg_patch_sites(r->p)->first_block[func_ix] + v->block);
    if (v->kind != MG_SSA_def || m->nodes.at[v->node].guard ||
        mg_node_form(m, &m->nodes.at[v->node])->op_flags & MG_OPF_ENDS_BLOCK)
        return NULL;
    return mg_at_after(r->p, v->node);
}

static struct class_of *find_class(struct run *r, uint32_t func_ix, uint32_t base, uint32_t bytes)
{
    for (size_t i = 0; i < r->classes.n; i++) {
        struct class_of *k = &r->classes.at[i];
        if (k->func_ix == func_ix && k->base == base && k->bytes == bytes) return k;
    }
    *mg_vec_push(&r->classes) = (struct class_of){.func_ix = func_ix, .base = base, .bytes = bytes};
    return &r->classes.at[r->classes.n - 1];
}

static bool is_classed(const struct mg_access_group *g, const struct mg_access *a)
{
    return g->space == MG_SPACE_shared && g->base && a->bytes * a->vec >= 4;
}

/* The class of a group's addresses, where one look at them serves several requests; NULL: each has to look. */
static const struct mg_memory_class *class_of(struct run *r, const struct mg_patch_inst *i,
                                              const struct mg_access_group *g, const struct mg_access *a)
{
    uint32_t bytes = (uint32_t)a->bytes * a->vec, block;
    const struct mg_loops *l = mg_patch_loops(r->p, i->func_ix);
    if (!is_classed(g, a)) return NULL;
    struct class_of *k = find_class(r, i->func_ix, g->base, bytes);
    if (k->k.lanes) return &k->k;
    struct mg_code_at *at = made_at(r, i->func_ix, g->base, &block);
    bool often = l->loop_of[i->block] != MG_NO_LOOP && !mg_loops_contains(l, l->loop_of[i->block], block);
    if (!at || (!often && k->uses < 2)) return NULL;
    k->k.changes = i->func_ix || l->loop_of[block] != MG_NO_LOOP;
    struct mg_module *m = mg_patch_module(r->p);
    mg_id reg = mg_patch_ssa(r->p, i->func_ix)->values[g->base].reg;
    struct mg_memory_request q = {.at = at, .m = m, .space = MG_SPACE_shared, .bytes = bytes, .addr = reg};
    if (r->many) q.called = &r->called;
    if (mg_type_bits((enum mg_type)m->regs.at[reg].type) == 32) {
        q.addr = mg_code_temp(at, MG_TYPE_b64);
        MG_CODE(at, "cvt.u64.u32", q.addr, reg);
    }
    mg_memory_classify(&q, &k->k);
    return &k->k;
}

static const struct mg_affine *strides_of(struct run *r, uint32_t func_ix, bool in_rows)
{
    const struct mg_affine **v = &r->strides[2 * func_ix + in_rows];
    if (!*v) *v = mg_memory_strides(r->p, func_ix, in_rows);
    return *v;
}

/* How far apart lanes are likely to be; sure: in rows or not. */
static struct mg_affine likely_step(struct run *r, const struct mg_patch_inst *i, const struct mg_access_group *g,
                                    bool *sure)
{
    struct mg_affine a = mg_affine_varies();
    for (int in_rows = 0; g->base && a.is != MG_AFFINE_STEP && in_rows < 2; in_rows++) {
        a = strides_of(r, i->func_ix, in_rows)[g->base];
        *sure = !in_rows;
    }
    return a;
}

/* Those of lanes likely to have one address that do, where it is made once, outside of loops, and asked for more often;
 * 0: each has to look. */
static mg_id alike_of(struct run *r, const struct mg_patch_inst *i, const struct mg_access_group *g)
{
    for (size_t k = 0; k < r->alike.n; k++)
        if (r->alike.at[k].func_ix == i->func_ix && r->alike.at[k].base == g->base) return r->alike.at[k].lanes;
    uint32_t block;
    const struct mg_loops *l = mg_patch_loops(r->p, i->func_ix);
    struct mg_code_at *at = i->func_ix ? NULL : made_at(r, 0, g->base, &block);
    if (!at || l->loop_of[block] != MG_NO_LOOP || l->loop_of[i->block] == MG_NO_LOOP) return 0;
    struct mg_memory_request q = {
        .at = at, .m = mg_patch_module(r->p), .addr = mg_patch_ssa(r->p, 0)->values[g->base].reg};
    mg_id lanes = mg_memory_find_alike(&q);
    *mg_vec_push(&r->alike) = (struct alike){i->func_ix, g->base, lanes};
    return lanes;
}

/* Is what the address asks for known? Worth it in kernels whose CTAs will hardly be anything but rows. */
static bool is_fixed(struct run *r, const struct mg_patch_inst *i, const struct mg_access_group *g,
                     const struct mg_access *a, struct mg_memory_fixed *x)
{
    return r->in_rows && !i->func_ix && is_classed(g, a) &&
           mg_memory_fix(r->p, &r->values, g->base, (uint32_t)a->bytes * a->vec, x);
}

static bool is_in_rows(const struct mg_module *m, const struct mg_patch_inst *insts, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_node *k = &m->nodes.at[insts[i].node];
        for (uint32_t o = 0; o < k->n_opnds; o++)
            if (m->opnds.at[k->opnd + o].kind == MG_OPND_sreg && m->opnds.at[k->opnd + o].id == MG_SREG_tid &&
                m->opnds.at[k->opnd + o].sub != 1)
                return false;
    }
    return true;
}

static mg_id find_row(struct run *r)
{
    if (r->row) return r->row;
    struct mg_code_at *at = mg_at_entry(r->p, 0);
    mg_id x = mg_code_temp(at, MG_TYPE_b32), y = mg_code_temp(at, MG_TYPE_b32), z = mg_code_temp(at, MG_TYPE_b32),
          whole = mg_code_temp(at, MG_TYPE_pred), one = mg_code_temp(at, MG_TYPE_pred);
    r->row = mg_code_reg(at, MG_TYPE_b32);
    MG_CODE(at, "mov.u32", x, mg_o_sreg(MG_SREG_ntid, 1));
    MG_CODE(at, "mov.u32", y, mg_o_sreg(MG_SREG_ntid, 2));
    MG_CODE(at, "mov.u32", z, mg_o_sreg(MG_SREG_ntid, 3));
    MG_CODE(at, "and.b32", x, x, 31);
    MG_CODE(at, "setp.eq.u32", whole, x, 0);
    MG_CODE(at, "mul.lo.u32", y, y, z);
    MG_CODE(at, "setp.eq.u32", one, y, 1);
    MG_CODE(at, "or.pred", one, one, whole);
    MG_CODE(at, "selp.b32", r->row, -1, 0, one);
    return r->row;
}

/* Is there room for one more sum? Outside of loops it is a bit of each thread, in loops it takes registers. */
static bool has_room(struct run *r, const struct mg_patch_inst *i)
{
    bool once = mg_patch_loops(r->p, i->func_ix)->loop_of[i->block] == MG_NO_LOOP;
    return once ? r->bits++ < MOST_BITS : r->words++ < MG_MAX(mg_patch_room(r->p) / 4, (uint32_t)MOST_WORDS);
}

/* A bit of each thread, or a register: each so many add what is known of a request. */
static uint32_t sum_of_fixed(struct run *r, const struct mg_memory_request *q, const struct mg_memory_fixed *x,
                             uint32_t every)
{
    uint32_t sum = mg_patch_shared_sum(r->p);
    mg_patch_share(r->p, sum, every, q->cell + x->pattern, 1);
    if (x->conflicts) mg_patch_share(r->p, sum, every, q->cell + MG_MC_CONFLICTS, x->conflicts);
    return sum;
}

static void count_fixed(struct run *r, const struct mg_patch_inst *i, struct mg_memory_request *q,
                        const struct mg_memory_fixed *x)
{
    uint32_t sum = UINT32_MAX, some = UINT32_MAX, every = mg_memory_is_steady(x) ? 1 : 32;
    bool once = mg_patch_loops(r->p, 0)->loop_of[i->block] == MG_NO_LOOP;
    const struct mg_memory_fixed y = mg_memory_parts_of(x);
    if ((every == 1 || once) && has_room(r, i)) sum = sum_of_fixed(r, q, x, every);
    if (every == 32 && once && mg_memory_is_steady(&y) && has_room(r, i)) some = sum_of_fixed(r, q, &y, 1);
    mg_memory_count_fixed(q, x, find_row(r), sum, some);
}

static void count_uses(struct run *r, const struct mg_patch_inst *insts, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct mg_access a;
        const struct mg_access_group *g = r->group_of[i] == UINT32_MAX ? NULL : &r->groups[r->group_of[i]];
        if (!g || g->first != insts[i].node || !access_of(r->p, &insts[i], &a) || !is_classed(g, &a)) continue;
        struct mg_memory_fixed x;
        if (is_fixed(r, &insts[i], g, &a, &x)) continue;
        const struct bundle *b = r->bundle_of[r->group_of[i]];
        if (b && b->group[b->rep] != r->group_of[i]) continue;
        struct class_of *k = find_class(r, insts[i].func_ix, g->base, (uint32_t)a.bytes * a.vec);
        k->uses++;
        k->k.own |= mg_patch_loops(r->p, insts[i].func_ix)->loop_of[insts[i].block] != MG_NO_LOOP;
    }
}

/* ---- bundles ----------------------------------------------------------------------------------------------------- */

/* Is any register of the operand at `from` written before `to`, of one block? */
static bool is_written(struct run *r, mg_id from, mg_id to)
{
    const struct mg_module *m = mg_patch_module(r->p);
    mg_id read[8], written[16];
    uint32_t n_read = mg_node_uses(m, from, read, MG_COUNT_OF(read));
    for (mg_id k = from; k && k != to; k = m->nodes.at[k].next) {
        if (m->nodes.at[k].kind != MG_NODE_inst) continue;
        uint32_t n = mg_node_defs(m, k, written, MG_COUNT_OF(written));
        if (n > MG_COUNT_OF(written) || n_read > MG_COUNT_OF(read)) return true;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n_read; j++)
                if (written[i] == read[j]) return true;
    }
    return false;
}

/* Is the address made anew wherever it is asked for? Else each access has it easy. */
static bool is_made_there(struct run *r, const struct mg_patch_inst *i, uint32_t value)
{
    const struct mg_loops *l = mg_patch_loops(r->p, i->func_ix);
    return l->loop_of[mg_patch_ssa(r->p, i->func_ix)->values[value].block] == l->loop_of[i->block];
}

static void bundle_group(struct run *r, const struct mg_patch_inst *i, uint32_t ix, const struct mg_access *a)
{
    const struct mg_access_group *g = &r->groups[ix];
    uint32_t bytes = (uint32_t)a->bytes * a->vec;
    struct mg_memory_fixed x;
    bool sure;
    if (!is_classed(g, a) || likely_step(r, i, g, &sure).is == MG_AFFINE_STEP || is_fixed(r, i, g, a, &x))
        return; /* each has it easy */
    const struct mg_memory_form f =
        mg_memory_form_of(mg_patch_ssa(r->p, i->func_ix), strides_of(r, i->func_ix, true), g->base);
    for (size_t k = r->bundles.n; k-- > 0;) {
        struct bundle *b = r->bundles.at[k];
        const struct mg_access_group *of = &r->groups[b->group[0]];
        if (of->window != g->window) break;
        if (of->guard != g->guard || of->guard_not != g->guard_not || b->bytes != bytes || b->n == MG_MEMORY_BUNDLED ||
            b->forms[0].core != f.core || b->forms[0].scale != f.scale || i - b->insts[0] > MG_MC_MOST_BACK)
            continue;
        uint32_t asked[2];
        bool clean = true;
        for (uint32_t j = 0; j < b->n && clean; j++) clean = !is_written(r, b->insts[j]->node, i->node);
        if (!clean || (mg_memory_to_ask((const struct mg_memory_form[]){b->forms[0], f}, 2, asked) &&
                       (g->guard || !is_made_there(r, i, g->base))))
            continue;
        if (g->base < r->groups[b->group[b->rep]].base) b->rep = b->n;
        b->insts[b->n] = i, b->forms[b->n] = f, b->group[b->n++] = ix;
        r->bundle_of[ix] = b;
        return;
    }
    struct bundle *b = mg_arena_new(mg_patch_scratch(r->p), struct bundle);
    *b = (struct bundle){.n = 1, .bytes = bytes, .group = {ix}, .insts = {i}, .forms = {f}};
    r->bundle_of[ix] = b;
    *mg_vec_push(&r->bundles) = b;
}

static void find_bundles(struct run *r, const struct mg_patch_inst *insts, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct mg_access a;
        if (r->group_of[i] == UINT32_MAX || r->groups[r->group_of[i]].first != insts[i].node ||
            !access_of(r->p, &insts[i], &a))
            continue;
        bundle_group(r, &insts[i], r->group_of[i], &a);
    }
    for (uint32_t i = 0; i < r->n_groups; i++)
        if (r->bundle_of[i] && r->bundle_of[i]->n < 2) r->bundle_of[i] = NULL;
}

/* ---- one site -------------------------------------------------------------------------------------------------- */

/* Addresses that differ by multiples of this ask for the same. */
static uint32_t period(enum mg_space space, uint32_t bytes)
{
    return space == MG_SPACE_const ? 1 : space != MG_SPACE_shared ? 128 : bytes < 4 ? 4 : 1;
}

/* Is the address the same in all lanes that can be here together? */
static bool is_uniform(struct mg_patch *p, const struct mg_patch_inst *i, const struct mg_opnd *o)
{
    const struct mg_uniform *u = i->func_ix ? NULL : mg_patch_uniform(p, 0);
    if (!u || u->cohort[i->block] == MG_NO_COHORT || o->kind != MG_OPND_addr) return false;
    if (o->sub == MG_OPND_reg && o->id >= mg_patch_cfg(p, 0)->m->regs.n)
        return true; /* the twin's: where a variable is */
    return o->sub == MG_OPND_var || (o->sub == MG_OPND_reg && !(o->n & 7) && o->id >= u->reg_lo && o->id < u->reg_hi &&
                                     !u->varying[o->id - u->reg_lo]);
}

/* Where the code only says what is meant, in a register of its own, if it is not the program's: the CPU device knows a
 * register by the one way in which it differs from lane to lane. */
static void find_address(struct mg_memory_request *q, const struct mg_patch_inst *i, const struct mg_opnd *o,
                         bool split)
{
    if (q->m->marked && !split && o->kind == MG_OPND_addr && o->sub == MG_OPND_reg && !(o->n & 7)) {
        q->addr = o->id, q->off = (int64_t)o->val;
        return;
    }
    q->addr = mg_value_address(q->at, i->node);
    if (!q->m->marked) return;
    mg_id own = mg_code_reg(q->at, MG_TYPE_b64);
    MG_CODE(q->at, "mov.b64", own, q->addr);
    q->addr = own;
}

/* Counts one that is likely to have that step; false: that is as well done otherwise. */
static bool count_step(struct run *r, const struct mg_patch_inst *i, struct group *s, struct mg_memory_request *q,
                       int64_t step, bool sure)
{
    bool far = q->space == MG_SPACE_global || q->space == MG_SPACE_generic,
         told = mg_memory_of_step(q->space, q->bytes, step, &s->ask);
    if (!step || (far && step == q->bytes) || (!told && (!far || q->bytes > 16 || q->bytes & (q->bytes - 1))))
        return false;
    if (told && has_room(r, i)) {
        s->sum = mg_patch_shared_sum(r->p), s->summed = true;
        mg_memory_share(r->p, s->sum, q->cell, &s->ask);
    } else if (!far) {
        return false;
    }
    if (!s->summed && q->group)
        s->shared.in_step = mg_code_reg(q->at, MG_TYPE_pred), s->shared.from = mg_code_reg(q->at, MG_TYPE_b32),
        s->shared.step = step;
    mg_memory_count_strided(q, step, sure, s->summed ? s->sum : UINT32_MAX);
    return true;
}

/* In front of the first of a group. */
static void count_first(struct run *r, const struct mg_patch_inst *i, const struct mg_access *a,
                        const struct mg_access_group *g, struct group *s, struct mg_memory_request *q)
{
    struct mg_memory_fixed x;
    const struct mg_memory_class *k = NULL;
    bool sure = false;
    struct mg_affine step = s->same ? mg_affine_varies() : likely_step(r, i, g, &sure);
    if (q->space == MG_SPACE_const && step.is != MG_AFFINE_STEP)
        step = mg_affine_step(0), sure = false; /* they mostly do */
    bool flat = !s->same && mg_affine_is_uniform(step);
    mg_id alike = flat && g->base ? alike_of(r, i, g) : 0;
    if (s->same || (flat && !alike && !q->makes) || (alike && !(k = class_of(r, i, g, a)))) {
        uint32_t cell = q->cell + (q->group ? MG_MC_SAME_ALL : MG_MC_SAME),
                 sum = has_room(r, i) ? mg_patch_sum(r->p, cell) : UINT32_MAX;
        if (s->same)
            mg_memory_count_same(q, cell, sum);
        else
            mg_memory_count_alike(q, alike, sure, cell, sum);
    } else if (!alike && is_fixed(r, i, g, a, &x)) {
        count_fixed(r, i, q, &x);
    } else if (k || (k = class_of(r, i, g, a)) != NULL) {
        q->alike = alike;
        q->part_sum = mg_patch_room(r->p) && has_room(r, i)
                          ? mg_patch_sum(r->p, q->cell + (alike ? MG_MC_SAME : MG_MC_UNIT))
                          : UINT32_MAX;
        mg_memory_count(q, k);
    } else if (q->makes || step.is != MG_AFFINE_STEP || !count_step(r, i, s, q, step.step, sure)) {
        mg_memory_count(q, NULL);
    }
}

/* In front of the last of them: one for all, if addresses are as far apart in all lanes; else each for itself. */
static void count_bundle(struct run *r, struct bundle *b, const struct mg_access *a)
{
    struct mg_code_at *at = mg_at_before(r->p, b->insts[b->n - 1]->node);
    const struct mg_patch_inst *i = b->insts[b->rep];
    mg_id addr[MG_MEMORY_BUNDLED], makes = b->q[b->n - 1].makes, slow = mg_code_label(at), done = mg_code_label(at);
    uint32_t asked[MG_MEMORY_BUNDLED], n = mg_memory_to_ask(b->forms, b->n, asked);
    for (uint32_t k = 0; k < b->n; k++) {
        b->q[k].at = at, b->q[k].makes = makes;
        b->q[k].addr = mg_value_address(at, b->insts[k]->node);
    }
    addr[0] = b->q[0].addr;
    for (uint32_t k = 0; k < n; k++) addr[k + 1] = b->q[asked[k]].addr;
    struct mg_memory_request all = b->q[0];
    all.addr = b->q[b->rep].addr;
    mg_memory_ask_apart(&all, addr, n + 1, slow);
    count_first(r, i, a, &r->groups[b->group[b->rep]], &r->state[b->group[b->rep]], &all);
    if (n) {
        MG_CODE(at, "bra.uni", mg_o_label(done));
        mg_code_place(at, slow);
        b->q[0].cell += MG_MC_COUNT;
        b->q[0].strip = mg_patch_strip(r->p, b->q[0].cell + MG_MC_SECTORS, MG_MC_COUNT - MG_MC_SECTORS);
        mg_memory_count_each(b->q, b->n);
    }
    mg_code_place(at, done);
}

static void count_site(struct run *r, uint32_t ix, const struct mg_patch_inst *i, const struct mg_access *a)
{
    struct mg_patch *p = r->p;
    struct mg_module *m = mg_patch_module(p);
    bool negated = false;
    mg_id guard = mg_node_guard(m, i->node, &negated);
    unsigned set;
    enum mg_space space = space_of(p, i, a, &set);
    struct mg_memory_note note = {.bytes = (uint32_t)a->bytes * a->vec,
                                  .vec = a->vec,
                                  .space = space,
                                  .reads = a->reads,
                                  .writes = a->writes,
                                  .atomic = a->atomic,
                                  .guarded = guard != 0,
                                  .full = true};
    const struct mg_access_group *g = &r->groups[r->group_of[ix]];
    struct group *s = &r->state[r->group_of[ix]];
    const struct mg_opnd o =
        m->opnds.at[m->nodes.at[i->node].opnd + a->addr]; /* a copy: code that is made moves them */
    int64_t off = (int64_t)o.val;
    if (s->cell && r->sites - s->site > MG_MC_MOST_BACK) s = mg_arena_new(mg_patch_scratch(p), struct group);
    bool first = !s->cell, generic = a->space == MG_SPACE_generic,
         meant = m->marked, /* each place is counted by itself */
        lined = !meant && !generic && space == MG_SPACE_global && note.bytes >= 4 && note.bytes <= 128 &&
                !(note.bytes & (note.bytes - 1));
    if (first)
        s->site = r->sites, s->from = off, s->same = is_uniform(p, i, &o),
        s->by_place = mg_arena_array(mg_patch_scratch(p), uint32_t, 128);
    uint32_t place = (uint64_t)(off - s->from) % period(space, note.bytes),
             places = first && lined && !s->same ? 128 / note.bytes : 0;
    bool known = s->by_place[place] || (!first && s->same), own = first || (meant && !known);
    uint32_t leader = !s->same && s->by_place[place] ? s->by_place[place] - 1 : s->site; /* at that place */
    struct bundle *b = first && !meant && s == &r->state[r->group_of[ix]] ? r->bundle_of[r->group_of[ix]] : NULL;
    if (b && !b->known) b->site = r->sites;
    if (b) note.back = r->sites - b->site;
    if (!own) note.back = r->sites - leader, note.apart = (uint32_t)((uint64_t)(off - s->from) % 128 / 4);
    uint32_t cell = mg_patch_site(p, MG_SITE_INST, i->node, i->id,
                                  known            ? 0
                                  : b && !b->known ? 2 * MG_MC_COUNT
                                                   : MG_MC_COUNT + places,
                                  MG_MERGE_SUM, mg_memory_pack(&note));
    if (!s->by_place[place]) s->by_place[place] = r->sites + 1;
    r->sites++;
    if (known) return;
    struct mg_memory_request q = {
        .at = mg_at_before(p, i->node), .m = m, .space = space, .bytes = note.bytes, .cell = cell, .places = places};
    q.makes = plain_guard(q.at, guard, negated);
    if (r->many) q.called = &r->called;
    if (!meant) q.strip = mg_patch_strip(p, cell + MG_MC_SECTORS, MG_MC_COUNT - MG_MC_SECTORS);
    if (places) mg_strip_ones(p, q.place_strip = mg_patch_strip(p, cell + MG_MC_COUNT, places));
    if (own && guard) {
        mg_code_push_guard(q.at, q.makes, false);
        mg_sum_add(q.at, mg_patch_sum(p, cell + MG_MC_ACCESSES), mg_o_imm(1));
        mg_code_pop_guard(q.at);
    }
    if (!first && s->shared.covered) {
        *mg_vec_push(&s->followers) =
            (struct mg_memory_follower){.cell = cell, .strip = q.strip, .apart = off - s->from};
        return;
    }
    if (b) {
        s->cell = cell + 1;
        b->q[b->known++] = q;
        if (b->known == b->n) count_bundle(r, b, a);
        return;
    }
    find_address(&q, i, &o, generic && set & MG_SPACE_BIT(MG_SPACE_shared));
    if (first && !(generic && set & MG_SPACE_BIT(MG_SPACE_shared))) s->cell = cell + 1;
    if (generic && set & MG_SPACE_BIT(MG_SPACE_shared)) {
        count_generic(&q, space);
    } else if (meant) {
        mg_memory_count(&q, NULL);
    } else if (first) {
        if (g->n > 1 && space != MG_SPACE_shared) {
            s->shared = (struct mg_memory_group){.covered = mg_code_reg(q.at, MG_TYPE_pred),
                                                 .slot = mg_code_reg(q.at, MG_TYPE_b32)};
            q.group = &s->shared;
        }
        s->first = q;
        count_first(r, i, a, g, s, &q);
    } else {
        mg_memory_count(&q, NULL);
    }
}

/* Is more counted outside of loops than what setting up words near the threads takes? What bits of each thread count is
 * left out. */
static bool is_busy(struct run *r, const struct mg_patch_inst *insts, uint32_t n)
{
    uint32_t requests = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct mg_access a;
        struct mg_memory_fixed x;
        const struct mg_access_group *g = r->group_of[i] == UINT32_MAX ? NULL : &r->groups[r->group_of[i]];
        if (!g || insts[i].func_ix || g->first != insts[i].node || !access_of(r->p, &insts[i], &a) ||
            mg_patch_loops(r->p, 0)->loop_of[insts[i].block] != MG_NO_LOOP || is_fixed(r, &insts[i], g, &a, &x))
            continue;
        const struct mg_module *m = mg_patch_module(r->p);
        requests += !is_uniform(r->p, &insts[i], &m->opnds.at[m->nodes.at[insts[i].node].opnd + a.addr]);
    }
    return requests >= FEW;
}

static void count_bytes(struct mg_patch *p, const struct mg_patch_inst *i, const struct mg_access *a)
{
    bool negated = false;
    mg_id guard = mg_node_guard(mg_patch_module(p), i->node, &negated);
    unsigned set;
    struct mg_memory_note note = {.bytes = (uint32_t)a->bytes * a->vec,
                                  .vec = a->vec,
                                  .space = space_of(p, i, a, &set),
                                  .reads = a->reads,
                                  .writes = a->writes,
                                  .atomic = a->atomic,
                                  .guarded = guard != 0};
    uint32_t cell = mg_patch_site(p, MG_SITE_INST, i->node, i->id, guard != 0, MG_MERGE_SUM, mg_memory_pack(&note));
    if (!guard) return;
    struct mg_code_at *at = mg_at_before(p, i->node);
    mg_code_push_guard(at, guard, negated);
    mg_sum_add(at, mg_patch_sum(p, cell + MG_MC_ACCESSES), mg_o_imm(1));
    mg_code_pop_guard(at);
}

static enum mg_err memory_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_memory_opts *o = conf;
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts);
    struct run r = {.p = p};
    (void)d;
    if (o->level == MG_MEMORY_FULL) {
        r.n_groups = mg_patch_groups(p, true, &r.groups, &r.group_of);
        r.state = mg_arena_array(mg_patch_scratch(p), struct group, r.n_groups + 1);
        r.in_rows = is_in_rows(mg_patch_module(p), insts, n);
        r.strides = mg_arena_array(mg_patch_scratch(p), const struct mg_affine *, 2 * mg_patch_sites(p)->n_funcs);
        if (!mg_patch_module(p)->marked) {
            r.bundle_of = mg_arena_array(mg_patch_scratch(p), struct bundle *, r.n_groups + 1);
            find_bundles(&r, insts, n);
            count_uses(&r, insts, n);
            if (is_busy(&r, insts, n)) mg_patch_near(p);
            r.called.p = p;
            r.many = r.n_groups > MANY;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        struct mg_access a;
        if (!access_of(p, &insts[i], &a)) continue;
        if (o->level == MG_MEMORY_FULL)
            count_site(&r, i, &insts[i], &a);
        else
            count_bytes(p, &insts[i], &a);
    }
    for (uint32_t i = 0; i < r.n_groups; i++) {
        struct group *s = &r.state[i];
        for (uint32_t k = 0; s->summed && k < s->followers.n; k++)
            mg_memory_share(p, s->sum, s->followers.at[k].cell, &s->ask);
        if (s->followers.n) mg_memory_follow(&s->first, &s->shared, s->followers.at, (uint32_t)s->followers.n);
        mg_vec_release(&s->followers);
    }
    if (o->level == MG_MEMORY_FULL) /* as many warps as there can be: the slow paths' values go to local memory */
        mg_patch_few_registers(p, 32, 2 * MG_MIN(r.words, (uint32_t)MOST_WORDS));
    mg_vec_release(&r.classes);
    mg_vec_release(&r.alike);
    mg_vec_release(&r.bundles);
    mg_memory_called_release(&r.called);
    return MG_ERR_OK;
}

extern const struct mg_tool mg_tool_memory;
const struct mg_tool mg_tool_memory = {
    .name = "memory",
    .summary = "accesses, bytes, sectors, strides and bank conflicts of each memory instruction",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 1.51, with level=bytes 1.03 (docs/measured.md)",
    .opts = memory_opts,
    .configure = memory_configure,
    .release = free,
    .analyze = memory_analyze,
    .instrument = memory_instrument,
    .profile = mg_memory_profile,
    .flags = MG_TOOL_NO_LOADS | MG_TOOL_APART | MG_TOOL_ACCESSES,
};
