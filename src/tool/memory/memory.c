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
 * made (tool/memory/fixed.c). This file: sites. tool/memory/report.c: what is shown. */
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
};
struct class_of {
    uint32_t func_ix, base, bytes, uses;
    struct mg_memory_class k;
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
    return once ? r->bits++ < MOST_BITS : r->words++ < MOST_WORDS;
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
        struct class_of *k = find_class(r, insts[i].func_ix, g->base, (uint32_t)a.bytes * a.vec);
        k->uses++;
        k->k.own |= mg_patch_loops(r->p, insts[i].func_ix)->loop_of[insts[i].block] != MG_NO_LOOP;
    }
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
        lined = !meant && !generic && space != MG_SPACE_shared && space != MG_SPACE_const && note.bytes >= 4 &&
                note.bytes <= 128 && !(note.bytes & (note.bytes - 1));
    if (first)
        s->site = r->sites, s->from = off, s->same = is_uniform(p, i, &o),
        s->by_place = mg_arena_array(mg_patch_scratch(p), uint32_t, 128);
    uint32_t place = (uint64_t)(off - s->from) % period(space, note.bytes),
             places = first && lined && !s->same ? 128 / note.bytes : 0;
    bool known = s->by_place[place] || (!first && s->same), own = first || (meant && !known);
    uint32_t leader = meant && s->by_place[place] ? s->by_place[place] - 1 : s->site;
    if (!own) note.back = r->sites - leader, note.apart = (uint32_t)((uint64_t)(off - s->from) % 128 / 4);
    uint32_t cell = mg_patch_site(p, MG_SITE_INST, i->node, i->id, known ? 0 : MG_MC_COUNT + places, MG_MERGE_SUM,
                                  mg_memory_pack(&note));
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
        struct mg_memory_fixed x;
        uint32_t same = cell + (q.group ? MG_MC_SAME_ALL : MG_MC_SAME);
        if (s->same)
            mg_memory_count_same(&q, same, has_room(r, i) ? mg_patch_sum(p, same) : UINT32_MAX);
        else if (is_fixed(r, i, g, a, &x))
            count_fixed(r, i, &q, &x);
        else
            mg_memory_count(&q, class_of(r, i, g, a));
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
        if (!mg_patch_module(p)->marked) {
            count_uses(&r, insts, n);
            if (is_busy(&r, insts, n)) mg_patch_near(p);
            r.called.p = p;
            r.many = r.n_groups > MANY;
        }
        mg_patch_few_registers(p, 32); /* as many warps as there can be: the slow paths' values go to local memory */
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
        if (s->followers.n) mg_memory_follow(&s->first, &s->shared, s->followers.at, (uint32_t)s->followers.n);
        mg_vec_release(&s->followers);
    }
    mg_vec_release(&r.classes);
    mg_memory_called_release(&r.called);
    return MG_ERR_OK;
}

extern const struct mg_tool mg_tool_memory;
const struct mg_tool mg_tool_memory = {
    .name = "memory",
    .summary = "accesses, bytes, sectors, strides and bank conflicts of each memory instruction",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 1.52, with level=bytes 1.03 (docs/measured.md)",
    .opts = memory_opts,
    .configure = memory_configure,
    .release = free,
    .analyze = memory_analyze,
    .instrument = memory_instrument,
    .profile = mg_memory_profile,
    .flags = MG_TOOL_NO_LOADS | MG_TOOL_APART | MG_TOOL_ACCESSES,
};
