/* blocks: how often each basic block was entered, by threads and by warps. The simple scheme, made
 * of plain PTX without a new basic block:
 *
 *   entry of a function      mov.u64 c_i, 0                       one 64-bit register per counter
 *   head of a block          add.u64 c_i, c_i, 1
 *   before ret and exit      ld.global.u64 base, [ctx];  red.global.add.u64 [base + 8*i], c_i
 *
 * Blocks that are entered equally often (analysis/equiv.h) share a counter, which one of them, the
 * class's representative, keeps; a kernel's blocks that every thread enters once need no register
 * at all. Only the counters a path can have touched are flushed at its end, and a guarded ret or
 * exit guards its flush. Functions have registers of their own and flush at their return; before a
 * call whose callee may leave by `exit` the caller flushes and begins again at zero, because the
 * lanes that exit never come back. In a function (not a kernel) a class outside every cycle has no
 * register: it adds 1 to memory at once.
 *
 * Warp entries. Lanes of a cohort (analysis/uniform.h) move together, so its first lane's thread
 * count is the warp's: nothing is added in the block, and the flush adds the leader's c_i. Elsewhere
 * the lowest active lane counts, in this order, which the emulator knows by sight (the first add
 * only in a representative):
 *
 *     add.u64 c, c, 1;  activemask.b32 m;  and.b32 t, m, lt;  setp.eq.u32 p, t, 0;  @p add.u64 w, w, 1;
 *
 * scope=cta|warp: a predicate computed at the entry guards every flush; nothing else changes.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/callgraph.h"
#include "analysis/equiv.h"
#include "analysis/loop.h"
#include "analysis/uniform.h"
#include "base/buf.h"
#include "pass/priv.h"
#include "tool/tool.h"

#define WORD_CTA 0  /* context words: which linear CTA and warp count */
#define WORD_WARP 1

/* ---- options --------------------------------------------------------------------------------- */

static const struct mg_tool_opt blocks_opts[] = {
    {"warps", "on", "count warp entries too (on|off)"},
    {"scope", "full", "which threads count: full, cta (one CTA) or warp (one warp of one CTA)"},
    {"cta", "0", "linear id of the CTA for scope=cta and scope=warp"},
    {"warp", "0", "linear id of the warp in its CTA for scope=warp"},
    {0},
};

static bool read_number(const char *s, uint64_t *out)
{
    char *end;
    if (*s < '0' || *s > '9') return false;
    *out = strtoull(s, &end, 0);
    return !*end;
}

static bool set_option(struct mg_blocks_opts *o, const char *key, const char *value)
{
    uint64_t n;
    if (!strcmp(key, "warps")) {
        o->warps = !strcmp(value, "on");
        return o->warps || !strcmp(value, "off");
    }
    if (!strcmp(key, "scope")) {
        static const char *const names[] = {"full", "cta", "warp"};
        for (unsigned i = 0; i < MG_COUNT_OF(names); i++)
            if (!strcmp(value, names[i])) {
                o->scope = (enum mg_blocks_scope)i;
                return true;
            }
        return false;
    }
    if (!read_number(value, &n)) return false;
    if (!strcmp(key, "cta")) o->cta = n;
    else if (!strcmp(key, "warp") && n < 64) o->warp = (uint32_t)n;
    else return false;
    return true;
}

static enum mg_err blocks_configure(const char *args, void **conf, struct mg_diag *d)
{
    struct mg_blocks_opts *o = mg_xcalloc(1, sizeof *o);
    char *copy = mg_xstrdup(args ? args : ""), *save = NULL;
    enum mg_err err = MG_ERR_OK;
    o->warps = true;
    for (char *kv = strtok_r(copy, ",", &save); kv && !err; kv = strtok_r(NULL, ",", &save)) {
        char *eq = strchr(kv, '=');
        if (eq) *eq = 0;
        if (!set_option(o, kv, eq ? eq + 1 : "on"))
            err = mg_diag_err(d, MG_ERR_INPUT, "tool blocks: bad option \"%s%s%s\"", kv, eq ? "=" : "", eq ? eq + 1 : "");
    }
    free(copy);
    *conf = err ? NULL : o;
    if (err) free(o);
    return err;
}

static void blocks_initialize(const void *conf, uint64_t words[MG_CTX_N_WORDS])
{
    const struct mg_blocks_opts *o = conf;
    words[WORD_CTA] = o->cta;
    words[WORD_WARP] = o->warp;
}

/* ---- instrumentation of one function ---------------------------------------------------------- */

enum warp_rule { WARP_NONE, WARP_LEADER, WARP_LOWEST };

struct block_plan {
    uint32_t dense;     /* id among the kernel's blocks */
    uint32_t cls;       /* class of equally frequent blocks; MG_NO_CLASS: never entered */
    bool begins;        /* a cohort begins here */
    enum warp_rule rule;
    mg_id warps;        /* register, WARP_LOWEST and not direct */
    uint32_t warps_at;  /* counter of its warp entries; UINT32_MAX: another block of its group flushes it */
    mg_id leader;       /* predicate of its cohort's first lane, WARP_LEADER */
};

enum class_kind {
    CLASS_REGISTER, /* counts in `reg`, flushed */
    CLASS_DIRECT,   /* adds to memory at its representative's head */
    CLASS_ONE,      /* every thread enters it once: the flush adds 1 */
};
struct class_plan {
    enum class_kind kind;
    bool once;       /* CLASS_REGISTER: the register starts at 1, nothing is added */
    uint32_t rep;    /* block that counts */
    uint32_t at;     /* counter */
    mg_id reg;
};

struct emitter {
    const struct mg_blocks_opts *o;
    struct mg_counter_layout *layout;
    struct mg_twin *t;
    struct mg_module *m;
    const struct mg_cfg *c;
    uint32_t ix;
    mg_id func, ctx, at;          /* at: node in front of which code goes */
    mg_id guard; bool guard_not;  /* of what is inserted; 0: none */
    struct block_plan *plans;
    struct class_plan *classes; uint32_t n_classes;
    bool *may_leave;              /* block -> its call may end the lane */
    mg_id base, mask, below, low, lt, mine, both, always;
    bool ballot;                  /* vote.ballot stands in for activemask */
    const bool *may_exit;         /* by func id */
};

#define EMIT(e, form, ...) emit((e), (form), (const struct mg_opnd[]){__VA_ARGS__}, \
                                sizeof((const struct mg_opnd[]){__VA_ARGS__}) / sizeof(struct mg_opnd))

static mg_id emit(struct emitter *e, const char *form, const struct mg_opnd *opnds, uint32_t n)
{
    mg_id id = mg_insert(e->m, e->func, e->at, form, opnds, n);
    e->m->nodes.at[id].guard = e->guard;
    if (e->guard_not) e->m->nodes.at[id].flags |= MG_NF_GUARD_NOT;
    return id;
}

static mg_id new_reg(struct emitter *e, const char *name, enum mg_type type)
{
    return mg_module_add_reg(e->m, e->func, name, type);
}

/* Sets the guard of what follows to (guard and p). */
static void guard_by(struct emitter *e, mg_id guard, bool guard_not, mg_id p)
{
    e->guard = 0;
    e->guard_not = false;
    if (!guard || !p) {
        e->guard = guard ? guard : p;
        e->guard_not = guard && guard_not;
        return;
    }
    if (guard_not) {
        EMIT(e, "not.pred", mg_o_reg(e->both), mg_o_reg(guard));
        EMIT(e, "and.pred", mg_o_reg(e->both), mg_o_reg(e->both), mg_o_reg(p));
    } else {
        EMIT(e, "and.pred", mg_o_reg(e->both), mg_o_reg(guard), mg_o_reg(p));
    }
    e->guard = e->both;
}

static void emit_lowest(struct emitter *e, mg_id pred)
{
    if (e->ballot) EMIT(e, "vote.ballot.b32", mg_o_reg(e->mask), mg_o_reg(e->always));
    else EMIT(e, "activemask.b32", mg_o_reg(e->mask));
    EMIT(e, "and.b32", mg_o_reg(e->below), mg_o_reg(e->mask), mg_o_reg(e->lt));
    EMIT(e, "setp.eq.u32", mg_o_reg(pred), mg_o_reg(e->below), mg_o_imm(0));
}

static struct mg_opnd counter_at(const struct emitter *e, uint32_t counter)
{
    return mg_o_addr_reg(e->base, 8 * (int64_t)counter);
}

/* In front of the block's first instruction, and of the pragmas that belong to it. */
static mg_id head_of(const struct mg_module *m, const struct mg_block *k)
{
    mg_id at = k->first;
    while (m->nodes.at[at].prev && m->nodes.at[m->nodes.at[at].prev].kind == MG_NODE_pragma) at = m->nodes.at[at].prev;
    return at;
}

static void emit_head(struct emitter *e, uint32_t b)
{
    const struct block_plan *p = &e->plans[b];
    if (p->cls == MG_NO_CLASS) return;
    const struct class_plan *k = &e->classes[p->cls];
    e->at = head_of(e->m, &e->c->blocks[b]);
    e->guard = 0;
    e->guard_not = false;
    if (k->rep == b && k->kind == CLASS_DIRECT) {
        e->guard = e->mine;
        EMIT(e, "red.global.add.u64", counter_at(e, k->at), mg_o_imm(1));
        e->guard = 0;
    } else if (k->rep == b && k->kind == CLASS_REGISTER && !k->once) {
        EMIT(e, "add.u64", mg_o_reg(k->reg), mg_o_reg(k->reg), mg_o_imm(1));
    }
    if (p->begins && b != 0) emit_lowest(e, p->leader);
    if (p->rule != WARP_LOWEST) return;
    emit_lowest(e, e->low);
    if (!p->warps) {
        guard_by(e, e->mine, false, e->low);
        EMIT(e, "red.global.add.u64", counter_at(e, p->warps_at), mg_o_imm(1));
    } else {
        e->guard = e->low;
        EMIT(e, "add.u64", mg_o_reg(p->warps), mg_o_reg(p->warps), mg_o_imm(1));
    }
    e->guard = 0;
}

/* Blocks from whose head a lane can come to the end of block `to` (to itself included). */
static void find_reaching(const struct mg_cfg *c, uint32_t to, bool *reach)
{
    uint32_t *stack = mg_xmalloc(sizeof *stack * (c->n_blocks + 1)), n = 0;
    memset(reach, 0, c->n_blocks);
    stack[n++] = to;
    reach[to] = true;
    while (n) {
        const struct mg_block *k = &c->blocks[stack[--n]];
        for (uint32_t i = 0; i < k->n_preds; i++) {
            uint32_t p = c->preds[k->pred_at + i];
            if (reach[p]) continue;
            reach[p] = true;
            stack[n++] = p;
        }
    }
    free(stack);
}

static struct mg_opnd class_value(const struct class_plan *k)
{
    return k->kind == CLASS_ONE ? mg_o_imm(1) : mg_o_reg(k->reg);
}

static bool flushes_class(const struct class_plan *k, const bool *reach)
{
    return k->kind == CLASS_ONE || (k->kind == CLASS_REGISTER && (k->once || reach[k->rep]));
}

static bool flushes_block(const struct emitter *e, uint32_t b, const bool *reach)
{
    const struct block_plan *p = &e->plans[b];
    if (p->cls == MG_NO_CLASS || p->rule == WARP_NONE || p->warps_at == UINT32_MAX) return false;
    if (p->rule == WARP_LOWEST) return p->warps && reach[b];
    return flushes_class(&e->classes[p->cls], reach);
}

/* The guard for a flush: `both` is left free for the leaders. */
static void guard_flush(struct emitter *e, mg_id guard, bool guard_not)
{
    guard_by(e, guard, guard_not, e->mine);
    if (!guard || !e->mine) return;
    mg_id copy = new_reg(e, "__mg_g", MG_TYPE_pred), both = e->guard;
    e->guard = 0;
    EMIT(e, "mov.pred", mg_o_reg(copy), mg_o_reg(both));
    e->guard = copy;
}

/* Adds the registers that blocks in `reach` may have counted in to memory, for the lanes with guard
 * (and mine). */
static void emit_flush(struct emitter *e, const bool *reach, mg_id guard, bool guard_not)
{
    uint32_t n = e->c->n_blocks;
    bool any = false;
    for (uint32_t k = 0; k < e->n_classes; k++) any |= flushes_class(&e->classes[k], reach);
    for (uint32_t b = 0; b < n; b++) any |= flushes_block(e, b, reach);
    if (!any) return;
    guard_flush(e, guard, guard_not);
    mg_id flush_guard = e->guard;
    bool flush_not = e->guard_not;
    EMIT(e, "ld.global.u64", mg_o_reg(e->base), mg_o_addr_reg(e->ctx, MG_CTX_COUNTERS));
    for (uint32_t k = 0; k < e->n_classes; k++)
        if (flushes_class(&e->classes[k], reach))
            EMIT(e, "red.global.add.u64", counter_at(e, e->classes[k].at), class_value(&e->classes[k]));
    for (uint32_t b = 0; b < n; b++)
        if (flushes_block(e, b, reach) && e->plans[b].rule == WARP_LOWEST)
            EMIT(e, "red.global.add.u64", counter_at(e, e->plans[b].warps_at), mg_o_reg(e->plans[b].warps));
    mg_id leader = 0;
    for (uint32_t b = 0; b < n; b++) {
        const struct block_plan *p = &e->plans[b];
        if (!flushes_block(e, b, reach) || p->rule != WARP_LEADER) continue;
        if (p->leader != leader) guard_by(e, flush_guard, flush_not, leader = p->leader);
        EMIT(e, "red.global.add.u64", counter_at(e, p->warps_at), class_value(&e->classes[p->cls]));
    }
    e->guard = 0;
    e->guard_not = false;
}

static void emit_zeros(struct emitter *e, const bool *reach, mg_id guard, bool guard_not)
{
    e->guard = guard;
    e->guard_not = guard_not;
    for (uint32_t k = 0; k < e->n_classes; k++)
        if (flushes_class(&e->classes[k], reach)) EMIT(e, "mov.u64", mg_o_reg(e->classes[k].reg), mg_o_imm(0));
    for (uint32_t b = 0; b < e->c->n_blocks; b++)
        if (flushes_block(e, b, reach) && e->plans[b].rule == WARP_LOWEST)
            EMIT(e, "mov.u64", mg_o_reg(e->plans[b].warps), mg_o_imm(0));
    e->guard = 0;
    e->guard_not = false;
}

/* ---- entry ----------------------------------------------------------------------------------- */

/* mine: does this thread's CTA (and warp) count? */
static void emit_mine(struct emitter *e)
{
    if (e->o->scope == MG_COUNT_FULL) return;
    mg_id a = new_reg(e, "__mg_a", MG_TYPE_b32), b = new_reg(e, "__mg_b", MG_TYPE_b32), x = new_reg(e, "__mg_x", MG_TYPE_b32);
    mg_id l = new_reg(e, "__mg_l", MG_TYPE_b64), w = new_reg(e, "__mg_v", MG_TYPE_b64);
    bool warp = e->o->scope == MG_COUNT_WARP;
    e->mine = new_reg(e, "__mg_mine", MG_TYPE_pred);
    EMIT(e, "mov.u32", mg_o_reg(a), mg_o_sreg(MG_SREG_ctaid, 3));
    EMIT(e, "mov.u32", mg_o_reg(b), mg_o_sreg(MG_SREG_nctaid, 2));
    EMIT(e, "mov.u32", mg_o_reg(x), mg_o_sreg(MG_SREG_ctaid, 2));
    EMIT(e, "mad.lo.u32", mg_o_reg(a), mg_o_reg(a), mg_o_reg(b), mg_o_reg(x));
    EMIT(e, "mov.u32", mg_o_reg(b), mg_o_sreg(MG_SREG_nctaid, 1));
    EMIT(e, "mul.wide.u32", mg_o_reg(l), mg_o_reg(a), mg_o_reg(b));
    EMIT(e, "mov.u32", mg_o_reg(x), mg_o_sreg(MG_SREG_ctaid, 1));
    EMIT(e, "cvt.u64.u32", mg_o_reg(w), mg_o_reg(x));
    EMIT(e, "add.u64", mg_o_reg(l), mg_o_reg(l), mg_o_reg(w));
    EMIT(e, "ld.global.u64", mg_o_reg(w), mg_o_addr_reg(e->ctx, MG_CTX_WORDS + 8 * WORD_CTA));
    EMIT(e, "setp.eq.u64", mg_o_reg(e->mine), mg_o_reg(l), mg_o_reg(w));
    if (!warp) return;
    EMIT(e, "mov.u32", mg_o_reg(a), mg_o_sreg(MG_SREG_tid, 3));
    EMIT(e, "mov.u32", mg_o_reg(b), mg_o_sreg(MG_SREG_ntid, 2));
    EMIT(e, "mov.u32", mg_o_reg(x), mg_o_sreg(MG_SREG_tid, 2));
    EMIT(e, "mad.lo.u32", mg_o_reg(a), mg_o_reg(a), mg_o_reg(b), mg_o_reg(x));
    EMIT(e, "mov.u32", mg_o_reg(b), mg_o_sreg(MG_SREG_ntid, 1));
    EMIT(e, "mov.u32", mg_o_reg(x), mg_o_sreg(MG_SREG_tid, 1));
    EMIT(e, "mad.lo.u32", mg_o_reg(a), mg_o_reg(a), mg_o_reg(b), mg_o_reg(x));
    EMIT(e, "shr.u32", mg_o_reg(a), mg_o_reg(a), mg_o_imm(5));
    EMIT(e, "cvt.u64.u32", mg_o_reg(l), mg_o_reg(a));
    EMIT(e, "ld.global.u64", mg_o_reg(w), mg_o_addr_reg(e->ctx, MG_CTX_WORDS + 8 * WORD_WARP));
    EMIT(e, "setp.eq.u64", mg_o_reg(e->both), mg_o_reg(l), mg_o_reg(w));
    EMIT(e, "and.pred", mg_o_reg(e->mine), mg_o_reg(e->mine), mg_o_reg(e->both));
}

static void emit_entry(struct emitter *e)
{
    e->at = e->t->entry_at[e->ix];
    emit_mine(e);
    bool lowest = false, direct = false;
    for (uint32_t k = 0; k < e->n_classes; k++) {
        direct |= e->classes[k].kind == CLASS_DIRECT;
        if (e->classes[k].kind == CLASS_REGISTER) EMIT(e, "mov.u64", mg_o_reg(e->classes[k].reg), mg_o_imm(e->classes[k].once));
    }
    for (uint32_t b = 0; b < e->c->n_blocks; b++) {
        const struct block_plan *p = &e->plans[b];
        lowest |= p->rule == WARP_LOWEST || p->begins;
        direct |= p->rule == WARP_LOWEST && !p->warps;
        if (p->rule == WARP_LOWEST && p->warps) EMIT(e, "mov.u64", mg_o_reg(p->warps), mg_o_imm(0));
    }
    if (direct) EMIT(e, "ld.global.u64", mg_o_reg(e->base), mg_o_addr_reg(e->ctx, MG_CTX_COUNTERS));
    if (!lowest) return;
    EMIT(e, "mov.u32", mg_o_reg(e->lt), mg_o_sreg(MG_SREG_lanemask_lt, 0));
    if (e->ballot) EMIT(e, "setp.eq.u32", mg_o_reg(e->always), mg_o_reg(e->lt), mg_o_reg(e->lt));
    for (uint32_t b = 0; b < e->c->n_blocks; b++) { /* cohorts that begin later have no leader yet */
        const struct block_plan *p = &e->plans[b];
        if (!p->begins) continue;
        if (b == 0) emit_lowest(e, p->leader);
        else EMIT(e, "setp.ne.u32", mg_o_reg(p->leader), mg_o_reg(e->lt), mg_o_reg(e->lt));
    }
}

/* ---- planning -------------------------------------------------------------------------------- */

static bool callee_may_exit(const struct emitter *e, mg_id node)
{
    struct mg_call call;
    mg_call_read(e->m, node, &call);
    if (call.func) {
        mg_id body = mg_func_body(e->m, call.func);
        return body ? e->may_exit[body] : !mg_func_is_builtin(mg_name(e->m, e->m->funcs.at[call.func].name));
    }
    if (call.indirect) return e->may_exit[0]; /* any address-taken function */
    const struct mg_opnd *o = call.callee == MG_NO_OPND ? NULL : &e->m->opnds.at[e->m->nodes.at[node].opnd + call.callee];
    return !o || o->kind != MG_OPND_sym || !mg_func_is_builtin(mg_name(e->m, o->id));
}

/* Which classes there are and how each counts. A block that counts warps by its lowest lane is the
 * best representative: the emulator does both adds at once. */
static bool plan_classes(struct emitter *e, const struct mg_equiv *q, const struct mg_loops *l)
{
    const struct mg_cfg *c = e->c;
    bool kernel = e->ix == 0, leaves_in_call = false;
    for (uint32_t b = 0; b < c->n_blocks; b++) leaves_in_call |= e->may_leave[b];
    e->n_classes = q->n_classes;
    e->classes = mg_xcalloc(q->n_classes + 1, sizeof *e->classes);
    for (uint32_t k = 0; k < q->n_classes; k++) e->classes[k].rep = UINT32_MAX;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        if (e->plans[b].cls == MG_NO_CLASS) continue;
        struct class_plan *k = &e->classes[e->plans[b].cls];
        bool better = k->rep == UINT32_MAX || (e->plans[b].rule == WARP_LOWEST && e->plans[k->rep].rule != WARP_LOWEST);
        if (better) k->rep = b;
    }
    for (uint32_t i = 0; i < q->n_classes; i++) {
        struct class_plan *k = &e->classes[i];
        bool once = i == q->once;
        k->at = e->layout->n_counters++;
        if (!kernel && l->loop_of[k->rep] == MG_NO_LOOP) k->kind = CLASS_DIRECT;
        else if (kernel && once && !leaves_in_call) k->kind = CLASS_ONE;
        else k->once = once;
    }
    return kernel;
}

/* One counter for the blocks of one class and one cohort. */
static void share_leader_counters(struct emitter *e, const struct mg_uniform *u)
{
    struct mg_map group = MG_MAP_INIT;
    for (uint32_t b = 0; b < e->c->n_blocks; b++) {
        struct block_plan *p = &e->plans[b];
        if (p->rule != WARP_LEADER) continue;
        uint64_t key = (uint64_t)p->cls << 32 | u->cohort[b], known;
        if (mg_map_get(&group, key, &known)) {
            e->layout->warps[p->dense] = (uint32_t)known;
            p->warps_at = UINT32_MAX;
            continue;
        }
        e->layout->warps[p->dense] = p->warps_at = e->layout->n_counters++;
        mg_map_set(&group, key, p->warps_at);
    }
    mg_map_release(&group);
}

static void assign_registers(struct emitter *e, const struct mg_uniform *u, bool kernel)
{
    uint32_t n_counts = 0, n_warps = 0, n_leaders = 0, n = e->c->n_blocks;
    for (uint32_t k = 0; k < e->n_classes; k++) n_counts += e->classes[k].kind == CLASS_REGISTER;
    for (uint32_t b = 0; b < n; b++) {
        const struct block_plan *p = &e->plans[b];
        n_warps += p->rule == WARP_LOWEST && (kernel || e->classes[p->cls].kind != CLASS_DIRECT);
        n_leaders += p->begins;
    }
    mg_id counts = n_counts ? mg_module_add_regs(e->m, e->func, "__mg_c", MG_TYPE_u64, n_counts) : 0;
    mg_id warps = n_warps ? mg_module_add_regs(e->m, e->func, "__mg_w", MG_TYPE_u64, n_warps) : 0;
    mg_id leaders = n_leaders ? mg_module_add_regs(e->m, e->func, "__mg_leader", MG_TYPE_pred, n_leaders) : 0;
    for (uint32_t k = 0; k < e->n_classes; k++)
        if (e->classes[k].kind == CLASS_REGISTER) e->classes[k].reg = counts++;
    for (uint32_t b = 0; b < n; b++) {
        struct block_plan *p = &e->plans[b];
        if (p->rule == WARP_LOWEST && (kernel || e->classes[p->cls].kind != CLASS_DIRECT)) p->warps = warps++;
        if (p->begins) p->leader = leaders++;
    }
    for (uint32_t b = 0; b < n; b++)
        if (e->plans[b].rule == WARP_LEADER) e->plans[b].leader = e->plans[u->cohort[b]].leader;
}

static void plan_blocks(struct emitter *e, const struct mg_sites *s, uint32_t zero_at)
{
    const struct mg_cfg *c = e->c;
    struct mg_loops *l = mg_loops_new(c);
    struct mg_uniform *u = mg_uniform_new(c, l);
    struct mg_equiv *q = mg_equiv_new(c, e->may_leave);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        struct block_plan *p = &e->plans[b];
        p->dense = s->first_block[e->ix] + b;
        p->cls = q->class_of[b];
        if (e->layout->warps && p->cls != MG_NO_CLASS) {
            p->rule = u->cohort[b] != MG_NO_COHORT ? WARP_LEADER : WARP_LOWEST;
            p->begins = p->rule == WARP_LEADER && u->cohort[b] == b;
        }
    }
    bool kernel = plan_classes(e, q, l);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        struct block_plan *p = &e->plans[b];
        e->layout->threads[p->dense] = p->cls == MG_NO_CLASS ? zero_at : e->classes[p->cls].at;
        if (e->layout->warps) e->layout->warps[p->dense] = zero_at;
        if (p->rule == WARP_LOWEST) e->layout->warps[p->dense] = p->warps_at = e->layout->n_counters++;
    }
    if (e->layout->warps) share_leader_counters(e, u);
    assign_registers(e, u, kernel);
    mg_equiv_free(q);
    mg_uniform_free(u);
    mg_loops_free(l);
    e->base = new_reg(e, "__mg_base", MG_TYPE_b64);
    if (!e->layout->warps) return;
    e->mask = new_reg(e, "__mg_m", MG_TYPE_b32);
    e->below = new_reg(e, "__mg_t", MG_TYPE_b32);
    e->lt = new_reg(e, "__mg_lt", MG_TYPE_b32);
    e->low = new_reg(e, "__mg_p", MG_TYPE_pred);
    if (e->ballot) e->always = new_reg(e, "__mg_true", MG_TYPE_pred);
}

/* ---- the function ---------------------------------------------------------------------------- */

/* What the end of block b asks for. */
static void emit_end(struct emitter *e, uint32_t b, bool *reach)
{
    mg_id last = e->c->blocks[b].last;
    struct mg_node n = e->m->nodes.at[last];
    unsigned op = mg_node_form(e->m, &n)->op;
    bool leaves = op == MG_OP_ret || op == MG_OP_exit, call = op == MG_OP_call;
    if (!leaves && !e->may_leave[b]) return;
    find_reaching(e->c, b, reach);
    e->at = last;
    struct mg_call c = {.indirect = false};
    if (call) mg_call_read(e->m, last, &c);
    if (c.indirect) n.guard = 0; /* two calls stand there: flush for the lanes of both */
    bool is_not = n.guard && (n.flags & MG_NF_GUARD_NOT);
    emit_flush(e, reach, n.guard, is_not);
    if (call) emit_zeros(e, reach, n.guard, is_not);
}

/* A body may end without ret: by its last instruction, or by a branch to a label behind it. */
static bool can_fall_off(const struct emitter *e)
{
    const struct mg_module *m = e->m;
    const struct mg_cfg *c = e->c;
    if (!c->n_blocks) return false;
    mg_id last = c->blocks[c->n_blocks - 1].last;
    const struct mg_node *n = &m->nodes.at[last];
    const struct mg_form *f = mg_node_form(m, n);
    if (!(f->op_flags & MG_OPF_ENDS_BLOCK) || n->guard || f->op == MG_OP_call) return true;
    for (mg_id id = n->next; id; id = m->nodes.at[id].next)
        if (m->nodes.at[id].kind == MG_NODE_label && m->labels.at[m->nodes.at[id].ref].targeted) return true;
    return false;
}

static void instrument_func(struct emitter *e, const struct mg_sites *s, uint32_t zero_at)
{
    bool *reach = mg_xmalloc(e->c->n_blocks + 1);
    bool falls = can_fall_off(e);
    e->plans = mg_xcalloc(e->c->n_blocks + 1, sizeof *e->plans);
    e->may_leave = mg_xcalloc(e->c->n_blocks + 1, sizeof *e->may_leave);
    for (uint32_t b = 0; b < e->c->n_blocks; b++) {
        mg_id last = e->c->blocks[b].last;
        e->may_leave[b] = mg_node_form(e->m, &e->m->nodes.at[last])->op == MG_OP_call && callee_may_exit(e, last);
    }
    plan_blocks(e, s, zero_at);
    if (e->layout->warps || e->o->scope != MG_COUNT_FULL) e->both = new_reg(e, "__mg_both", MG_TYPE_pred);
    emit_entry(e);
    for (uint32_t b = 0; b < e->c->n_blocks; b++) {
        emit_head(e, b);
        emit_end(e, b, reach);
    }
    if (falls) {
        memset(reach, 1, e->c->n_blocks);
        e->at = 0;
        emit_flush(e, reach, 0, false);
    }
    free(e->classes);
    free(e->plans);
    free(e->may_leave);
    free(reach);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Which functions may end a lane by `exit`, themselves or in what they call. Index 0: some
 * address-taken function may. */
static bool *find_may_exit(const struct mg_module *m, const struct mg_twin *t)
{
    bool *may = mg_xcalloc(m->funcs.n, sizeof *may);
    struct emitter e = {.m = (struct mg_module *)m, .may_exit = may};
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < t->n_funcs; i++) {
            mg_id func = t->funcs[i];
            bool now = may[func];
            MG_EACH_NODE(m, &m->funcs.at[func], id) {
                const struct mg_node *n = &m->nodes.at[id];
                if (now) break;
                if (n->kind != MG_NODE_inst) continue;
                unsigned op = mg_node_form(m, n)->op;
                now = op == MG_OP_exit || (op == MG_OP_call && callee_may_exit(&e, id));
            }
            changed |= now != may[func];
            may[func] = now;
            if (now && i) may[0] = true;
        }
    }
    return may;
}

/* Sets how the active lanes are asked for; false: this PTX has no way. */
static bool choose_mask(struct mg_module *m, bool *ballot)
{
    unsigned version = m->version_major * 10u + m->version_minor;
    *ballot = false;
    if (version >= 62 && m->sm >= 30) return true;
    if (version >= 20 && m->sm >= 20 && m->sm < 70) return *ballot = true;
    if (m->sm < 70) return false;
    m->version_major = 6; /* sm_70 came with 6.0, activemask with 6.2 */
    m->version_minor = 2;
    return true;
}

static uint32_t begin_layout(struct mg_counter_layout *l, const struct mg_sites *s, bool warps, bool others)
{
    uint32_t n = s->n_blocks;
    *l = (struct mg_counter_layout){.n_blocks = n, .other_at = UINT32_MAX, .threads = mg_xcalloc(n + 1, sizeof *l->threads)};
    if (warps) l->warps = mg_xcalloc(n + 1, sizeof *l->warps);
    uint32_t zero_at = l->n_counters++; /* nothing adds to it: for blocks no path reaches */
    if (others) l->other_at = l->n_counters++;
    return zero_at;
}

/* Lanes that call a function without a clone. */
static void count_others(struct mg_twin *t, const struct mg_counter_layout *l)
{
    for (uint32_t i = 0; i < t->n_native_calls; i++) {
        mg_id node = t->native_calls[i], func = 0;
        uint32_t ix = 0;
        for (uint32_t f = 0; f < t->n_funcs && !func; f++)
            MG_EACH_NODE(t->m, &t->m->funcs.at[t->funcs[f]], id)
                if (id == node) {
                    func = t->funcs[f];
                    ix = f;
                }
        if (!func) continue;
        mg_id base = mg_module_add_reg(t->m, func, "__mg_other", MG_TYPE_b64);
        mg_id ld = MG_INSERT(t->m, func, node, "ld.global.u64", mg_o_reg(base), mg_o_addr_reg(t->ctx_reg[ix], MG_CTX_COUNTERS));
        mg_id red = MG_INSERT(t->m, func, node, "red.global.add.u64", mg_o_addr_reg(base, 8 * (int64_t)l->other_at), mg_o_imm(1));
        t->m->nodes.at[ld].guard = t->m->nodes.at[red].guard = t->native_guards[i];
    }
}

static enum mg_err blocks_instrument(const void *conf, const struct mg_sites *sites, struct mg_twin *twin,
                                     struct mg_counter_layout *layout, struct mg_diag *d)
{
    const struct mg_blocks_opts *o = conf;
    if (sites->n_funcs != twin->n_funcs) return mg_diag_err(d, MG_ERR_STATE, "sites and twin are of different kernels");
    bool ballot, warps = o->warps && choose_mask(twin->m, &ballot);
    if (!warps) ballot = false;
    uint32_t zero_at = begin_layout(layout, sites, warps, twin->n_native_calls != 0);
    bool *may_exit = find_may_exit(twin->m, twin);
    for (uint32_t i = 0; i < twin->n_funcs; i++) {
        struct emitter e = {.o = o, .layout = layout, .t = twin, .m = twin->m, .c = sites->cfgs[i], .ix = i,
                            .func = twin->funcs[i], .ctx = twin->ctx_reg[i], .ballot = ballot, .may_exit = may_exit};
        instrument_func(&e, sites, zero_at);
    }
    count_others(twin, layout);
    free(may_exit);
    return MG_ERR_OK;
}

extern const struct mg_tool mg_tool_blocks;
const struct mg_tool mg_tool_blocks = {
    .name = "blocks", .summary = "count how often each basic block is entered, by threads and by warps",
    .opts = blocks_opts, .configure = blocks_configure, .release = free,
    .instrument = blocks_instrument, .initialize = blocks_initialize,
};
