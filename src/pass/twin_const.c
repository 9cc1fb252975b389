/* Constants of a GPU's twin. Machine code reads them from a bank of its own, which a twin has not: their values may
 * change between any two launches, by any copy or kernel. So the launch brings along what the values were when the
 * host last looked, in a parameter more (parameters lie in a bank), and the kernel looks whether they still are:
 *
 *     parameter   +0 address of a copy of the values in global memory   +8 addresses of the tables   +at values
 *     entry       for (i = lane; i < words; i += 32)  stale |= global[table + 4i] != global[copy + 4i];   vote.any
 *                 stale
 *                 (tables of more words: i = tid.x, i += ntid.x, bar.red.or)
 *                 @stale bra SLOW
 *                 body with  ld.const d, [table+8]  ->  ld.param d, [values+8]            addresses taken: those
 *                            of the values
 *     SLOW        body with  ld.const d, [table+8]  ->  ld.global.nc d, [address + 8]
 *
 * Other variables' addresses come in the parameter, too: they never change, and two loads, one behind the other, are
 * none at the beginning of every thread. A kernel may have those alone: then there is no copy, and one body. Not
 * where loops read tables at moving places: ptxas makes other code of a loop whose base is a parameter (pb_tpacf:
 * 1.12 to 1.21).
 *
 * Right whatever the host knows; quick when it knew. The second body is made behind all tools, so that both count
 * in the same registers. Only for kernels of a few tables and instructions, without functions, whose constants
 * nobody looks at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pass/priv.h"

enum {
    MOST_TABLES = 8,
    MOST_ADDRESSES = 16,
    MOST_BYTES = 2816,
    MOST_PARAMS = 4096,
    MOST_INSTS = 1500,
    FEW_INSTS = 400,
    FEW_LOADS = 8,
    FEW_WORDS = 64,
    MIXED = 255
};

struct table {
    mg_id var;
    uint32_t lo, hi;
    bool whole;
};
struct plan {
    const struct mg_module *m;
    bool one_table; /* an address of one or another is none that can be told */
    struct table tables[MOST_TABLES];
    uint32_t n;
    uint32_t loads;
    uint8_t *pointers; /* by register: of which table it may hold an address, + 1 */
};

static bool is_constant(const struct mg_var *v)
{
    return v->space == MG_SPACE_const && !v->func && !v->is_param &&
           mg_type_kind((enum mg_type)v->type) != MG_TK_OPAQUE;
}

static struct table *table_of(struct plan *p, mg_id var)
{
    const struct mg_var *v = &p->m->vars.at[var];
    if (v->def) v = &p->m->vars.at[var = v->def];
    for (uint32_t i = 0; i < p->n; i++)
        if (p->tables[i].var == var) return &p->tables[i];
    if (p->n == MOST_TABLES || v->count || mg_var_align(v) < 4 || !mg_var_bytes(v)) return NULL;
    p->tables[p->n] = (struct table){.var = var, .lo = UINT32_MAX};
    return &p->tables[p->n++];
}

bool mg_is_constant_load(const struct mg_module *m, const struct mg_node *n)
{
    const struct mg_form *f = mg_node_form(m, n);
    return f->op == MG_OP_ld && mg_form_has(f, MG_MOD_const) && n->n_opnds == 2 &&
           m->opnds.at[n->opnd + 1].kind == MG_OPND_addr;
}

/* What the instruction says of constants; takes: of which table it takes the address, + 1. False: something that cannot
 * be told. */
static bool classify_constant_use(struct plan *p, const struct mg_node *n, uint8_t *takes)
{
    const struct mg_module *m = p->m;
    const struct mg_form *f = mg_node_form(m, n);
    bool load = mg_is_constant_load(m, n);
    *takes = 0;
    if (mg_form_has(f, MG_MOD_const) && !load) return false; /* cvta, prefetch */
    p->loads += load;
    for (uint32_t i = 0; i < n->n_opnds; i++) {
        const struct mg_opnd *o = &m->opnds.at[n->opnd + i];
        bool fixed = o->kind == MG_OPND_addr && o->sub == MG_OPND_var;
        if (!(fixed || o->kind == MG_OPND_var) || !is_constant(&m->vars.at[o->id])) continue;
        struct table *t = table_of(p, o->id);
        if (!t || (fixed && !load)) return false;
        if (!fixed) {
            t->whole = true;
            *takes = (uint8_t)(t - p->tables + 1);
            continue;
        }
        uint64_t end = o->val + mg_type_bits((enum mg_type)f->types[0]) / 8 * (f->vec ? f->vec : 1u);
        if ((int64_t)o->val < 0 || end > mg_var_bytes(&m->vars.at[t->var])) return false;
        t->lo = MG_MIN(t->lo, (uint32_t)o->val / 16 * 16);
        t->hi = MG_MAX(t->hi, ((uint32_t)end + 3) / 4 * 4);
    }
    return true;
}

/* Of which table the instruction reads an address, + 1; 0: of none; MIXED: of several, or it cannot be told which. */
static uint8_t pointer_of(const struct plan *p, mg_id node)
{
    mg_id ids[64];
    uint32_t n = mg_node_uses(p->m, node, ids, MG_COUNT_OF(ids));
    uint8_t of = n > MG_COUNT_OF(ids) ? MIXED : 0;
    for (uint32_t i = 0; i < n && of != MIXED; i++)
        if (p->pointers[ids[i]]) of = of && of != p->pointers[ids[i]] ? MIXED : p->pointers[ids[i]];
    return of;
}

static bool add_pointer(struct plan *p, mg_id reg, uint8_t of)
{
    uint8_t *at = &p->pointers[reg], now = *at && *at != of ? MIXED : of;
    bool changed = *at != now;
    *at = now;
    return changed;
}

/* Every address of a constant comes from the tables, and goes nowhere but into loads of constants. */
static bool follow_pointers(struct plan *p, const struct mg_func *f)
{
    const struct mg_module *m = p->m;
    for (bool again = true; again;) {
        again = false;
        MG_EACH_NODE(m, f, id)
        {
            mg_id ids[64];
            uint8_t of = m->nodes.at[id].kind == MG_NODE_inst ? pointer_of(p, id) : 0;
            if (!of) continue;
            unsigned op = mg_node_form(m, &m->nodes.at[id])->op;
            if (op == MG_OP_ld || op == MG_OP_setp) continue;
            uint32_t n = mg_node_defs(m, id, ids, MG_COUNT_OF(ids));
            for (uint32_t i = 0; i < n && i < MG_COUNT_OF(ids); i++) again |= add_pointer(p, ids[i], of);
        }
    }
    MG_EACH_NODE(m, f, id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind != MG_NODE_inst) continue;
        const struct mg_form *form = mg_node_form(m, n);
        const struct mg_opnd *at = n->n_opnds == 2 ? &m->opnds.at[n->opnd + 1] : NULL;
        bool moves = mg_is_constant_load(m, n) && at->sub == MG_OPND_reg;
        if (moves && (!p->pointers[at->id] || (p->one_table && p->pointers[at->id] == MIXED))) return false;
        if (moves || !pointer_of(p, id)) continue;
        mg_id ids[4];
        if (form->op == MG_OP_ld || form->op == MG_OP_call || !mg_node_defs(m, id, ids, MG_COUNT_OF(ids))) return false;
    }
    return true;
}

static bool make_plan(struct plan *p, const struct mg_twin *t)
{
    const struct mg_module *m = p->m;
    const struct mg_func *f = &m->funcs.at[t->kernel];
    bool ok = t->n_funcs == 1 && m->sm >= 70 && m->version_major >= 6 && f->n_insts <= MOST_INSTS;
    p->pointers = mg_xcalloc(m->regs.n, sizeof *p->pointers);
    MG_EACH_NODE(m, f, id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        uint8_t takes;
        ok = ok && n->kind != MG_NODE_target && n->kind != MG_NODE_raw;
        if (!ok) return false;
        if (n->kind != MG_NODE_inst) continue;
        if (!classify_constant_use(p, n, &takes)) return false;
        mg_id ids[4];
        uint32_t defs = takes ? mg_node_defs(m, id, ids, MG_COUNT_OF(ids)) : 0;
        if (takes && (defs != 1 || n->guard)) return false;
        if (takes) add_pointer(p, ids[0], takes);
    }
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        struct table *x = &p->tables[i];
        uint64_t size = mg_var_bytes(&m->vars.at[x->var]);
        if (size > UINT32_MAX) return false;
        if (x->whole) x->lo = 0, x->hi = (uint32_t)size;
        if (x->hi > size || x->hi % 4 || x->hi - x->lo > MOST_BYTES) return false;
        bytes += (x->hi - x->lo + 15) / 16 * 16;
    }
    bool worth = f->n_insts <= FEW_INSTS || p->loads >= FEW_LOADS;
    return p->n && p->loads && worth && bytes <= MOST_BYTES && follow_pointers(p, f);
}

/* ---- the parameter ------------------------------------------------------------------------------------- */

#define EMIT(...) MG_INSERT(m, func, at, __VA_ARGS__)

static mg_id new_reg(struct mg_module *m, mg_id func, enum mg_type type)
{
    return mg_module_add_reg(m, func, "__mg_z", type);
}
/* A call, since the array of nodes may move while one is made. */
static void set_guard(struct mg_module *m, mg_id node, mg_id p)
{
    m->nodes.at[node].guard = p;
}

static void add_param(struct mg_twin_build *b, uint32_t bytes)
{
    struct mg_module *m = b->m;
    struct mg_twin *t = b->t;
    t->known_param = mg_func_add_param(m, t->kernel, mg_intern_adds(&m->names, "__mg_known"), MG_TYPE_b8);
    t->ctx_param = t->known_param - 1;
    struct mg_var *v = &m->vars.at[t->known_param];
    v->align = 16;
    v->n_dims = 1;
    v->dims = mg_arena_array(&m->arena, uint64_t, 1);
    v->dims[0] = bytes;
    t->known_bytes = bytes;
    struct mg_func *k = &m->funcs.at[t->kernel];
    t->known_offset = (uint32_t)mg_func_param_offset(k, m->vars.at, k->n_params - 1);
    k->param_bytes = t->known_offset + bytes;
}

/* Variables of which the kernel takes the address, or which it reads or writes, but for those in the plan; returns how
 * many. */
static uint32_t find_addresses(const struct plan *p, const struct mg_func *f, mg_id *vars)
{
    const struct mg_module *m = p->m;
    uint32_t n = 0;
    MG_EACH_NODE(m, f, id)
    {
        const struct mg_node *x = &m->nodes.at[id];
        for (uint32_t i = 0; x->kind == MG_NODE_inst && !(x->flags & MG_NF_META) && i < x->n_opnds; i++) {
            const struct mg_opnd *o = &m->opnds.at[x->opnd + i];
            if (o->kind != MG_OPND_var && (o->kind != MG_OPND_addr || o->sub != MG_OPND_var)) continue;
            const struct mg_var *v = &m->vars.at[o->id];
            bool state = (v->space == MG_SPACE_global || v->space == MG_SPACE_const) && !v->func && !v->is_param &&
                         mg_type_kind((enum mg_type)v->type) != MG_TK_OPAQUE;
            mg_id var = v->def ? v->def : o->id;
            for (uint32_t k = 0; k < p->n; k++) state = state && p->tables[k].var != var;
            for (uint32_t k = 0; k < n; k++) state = state && vars[k] != var;
            if (state && n < MOST_ADDRESSES) vars[n++] = var;
        }
    }
    return n;
}

void mg_twin_plan_constants(struct mg_twin_func *f)
{
    struct mg_twin *t = f->b->t;
    struct plan p = {.m = f->b->m, .one_table = f->b->flags & MG_TWIN_ONE_TABLE};
    mg_id vars[MOST_ADDRESSES];
    bool values = (f->b->flags & MG_TWIN_CONSTANTS) && make_plan(&p, t),
         addresses = (f->b->flags & MG_TWIN_ADDRESSES) && !mg_twin_reads_tables_in_loops(p.m, t->kernel);
    for (;; values = false) {
        if (!values) p.n = 0;
        uint32_t n = addresses ? find_addresses(&p, &p.m->funcs.at[t->kernel], vars) : 0,
                 at = (8 * (p.n + n + 1) + 15) / 16 * 16, bytes = at;
        for (uint32_t i = 0; i < p.n; i++) bytes += (p.tables[i].hi - p.tables[i].lo + 15) / 16 * 16;
        bool fits = t->ctx_offset + 8 + 16 + bytes <= MOST_PARAMS;
        if (!fits && values) continue;
        if (!fits || p.n + n == 0) break;
        add_param(f->b, bytes);
        t->known = mg_xcalloc(p.n + n, sizeof *t->known);
        t->known_values = at;
        for (uint32_t i = 0; i < p.n; i++) {
            struct table *x = &p.tables[i];
            t->known[t->n_known++] = (struct mg_twin_known){
                .symbol = mg_twin_symbol_of_var(f->b, x->var), .from = x->lo, .bytes = x->hi - x->lo, .at = at};
            at += (x->hi - x->lo + 15) / 16 * 16;
        }
        for (uint32_t i = 0; i < n; i++)
            t->known[t->n_known++] = (struct mg_twin_known){.symbol = mg_twin_symbol_of_var(f->b, vars[i])};
        break;
    }
    free(p.pointers);
}

/* ---- two bodies ------------------------------------------------------------------------------------------ */

struct split {
    struct mg_twin *t;
    struct mg_map labels; /* of the body -> of its copy; of what stands in front of it -> themselves */
};

static mg_id label_of(struct split *s, mg_id label)
{
    struct mg_module *m = s->t->m;
    uint64_t to;
    if (!mg_map_get(&s->labels, label, &to)) {
        to = mg_module_add_label(m, s->t->kernel, "$__mg_stale");
        m->labels.at[to].targeted = m->labels.at[label].targeted;
        mg_map_set(&s->labels, label, to);
    }
    return (mg_id)to;
}

static mg_id copy_operands(struct split *s, mg_id first, uint32_t n)
{
    struct mg_module *m = s->t->m;
    mg_id at = mg_opnd_alloc(m, n);
    for (uint32_t i = 0; i < n; i++) {
        struct mg_opnd o = m->opnds.at[first + i];
        if (o.kind == MG_OPND_vec || o.kind == MG_OPND_list || o.kind == MG_OPND_tensor || o.kind == MG_OPND_pair)
            o.id = copy_operands(s, o.id, o.n);
        if (o.kind == MG_OPND_label) o.id = label_of(s, o.id);
        m->opnds.at[at + i] = o;
    }
    return at;
}

static void append_copy(struct split *s, mg_id node)
{
    struct mg_module *m = s->t->m;
    struct mg_node x = m->nodes.at[node];
    mg_id to = mg_node_new_kind(m, (enum mg_node_kind)x.kind, x.kind == MG_NODE_label ? label_of(s, x.ref) : x.ref);
    mg_id opnd = x.kind == MG_NODE_inst ? copy_operands(s, x.opnd, x.n_opnds) : x.opnd;
    struct mg_node *n = &m->nodes.at[to];
    n->flags = x.flags;
    n->guard = x.guard;
    n->opnd = opnd;
    n->n_opnds = x.n_opnds;
    n->line = x.line;
    n->origin = x.origin;
    mg_node_insert_before(m, s->t->kernel, 0, to);
}

/* Everything from the node to the end once more, behind it; returns the label in front of that. */
static mg_id append_body(struct split *s, mg_id first)
{
    struct mg_module *m = s->t->m;
    mg_id func = s->t->kernel, last, label = mg_module_add_label(m, func, "$__mg_slow");
    m->labels.at[label].targeted = 1;
    mg_insert(m, func, 0, "ret", NULL, 0);
    last = m->funcs.at[func].last_node;
    mg_node_insert_before(m, func, 0, mg_node_new_kind(m, MG_NODE_label, label));
    for (mg_id id = m->nodes.at[first].prev; id;
         id = m->nodes.at[id].prev) /* code behind the body may belong to what is not copied */
        if (m->nodes.at[id].kind == MG_NODE_label) mg_map_set(&s->labels, m->nodes.at[id].ref, m->nodes.at[id].ref);
    uint32_t depth = 0;
    for (mg_id id = first;; id = m->nodes.at[id].next) {
        unsigned kind = m->nodes.at[id].kind;
        depth += kind == MG_NODE_open;
        if (kind != MG_NODE_decl || depth) append_copy(s, id);
        depth -= kind == MG_NODE_close;
        if (id == last) break;
    }
    mg_map_release(&s->labels);
    return label;
}

/* Which table's address the register holds, from the entry on; how far into it. NULL: none whose values are there. */
static const struct mg_twin_known *known_of(const struct mg_twin *t, mg_id reg, int64_t *off)
{
    for (uint32_t i = 0; i < t->n_known_regs; i++)
        if (t->known_regs[i].reg == reg) {
            const struct mg_twin_known *k = &t->known[t->known_regs[i].table];
            *off = t->known_regs[i].off;
            return k->bytes ? k : NULL;
        }
    return NULL;
}

static void read_parameter(struct mg_module *m, mg_id node)
{
    const char *text = mg_name(m, m->forms.at[m->nodes.at[node].ref].text), *at = strstr(text, ".global"),
               *rest = at ? at + strlen(".global") : NULL;
    struct mg_buf b = MG_BUF_INIT;
    mg_assert(at);
    if (!strncmp(rest, ".nc", 3)) rest += 3;
    mg_buf_add(&b, text, (size_t)(at - text));
    mg_buf_adds(&b, ".param");
    mg_buf_adds(&b, rest);
    mg_id form = mg_form_intern(m, b.at, b.n);
    m->nodes.at[node].ref = form;
    mg_buf_release(&b);
}

/* Loads of constants and addresses that were taken, from the node on up to the label of the other body. */
static void use_parameter(struct mg_twin *t, mg_id first, mg_id slow)
{
    struct mg_module *m = t->m;
    bool *load = mg_xcalloc(m->nodes.n, sizeof *load);
    for (uint32_t i = 0; i < t->n_known_loads; i++) load[t->known_loads[i]] = true;
    for (mg_id id = first, next; id; id = next) {
        next = m->nodes.at[id].next;
        if (m->nodes.at[id].kind == MG_NODE_label && m->nodes.at[id].ref == slow) break;
        if (m->nodes.at[id].kind != MG_NODE_inst) continue;
        struct mg_node n = m->nodes.at[id];
        if (load[id]) read_parameter(m, id);
        for (uint32_t i = 0; i < n.n_opnds; i++) {
            struct mg_opnd *o = &m->opnds.at[n.opnd + i];
            int64_t off;
            bool base = o->kind == MG_OPND_addr && o->sub == MG_OPND_reg;
            const struct mg_twin_known *k = base || o->kind == MG_OPND_reg ? known_of(t, o->id, &off) : NULL;
            if (!k) continue;
            off += (int64_t)k->at - (int64_t)k->from;
            if (base) {
                *o = mg_o_addr_var(t->known_param, (int64_t)o->val + off);
                continue;
            }
            mg_id reg = new_reg(m, t->kernel, MG_TYPE_b64);
            m->opnds.at[n.opnd + i].id = reg;
            MG_INSERT(m, t->kernel, id, "mov.u64", reg, mg_o_var(t->known_param));
            MG_INSERT(m, t->kernel, id, "add.s64", reg, reg, mg_o_imm(off));
        }
    }
    free(load);
}

/* Word i + first of every table, or'ed into `stale` where it is not what it was: all loads in front, then what came. */
static void compare(struct mg_twin *t, mg_id at, mg_id i, uint32_t first, mg_id copy, mg_id stale)
{
    struct mg_module *m = t->m;
    mg_id func = t->kernel, now[MOST_TABLES], then[MOST_TABLES], off = new_reg(m, func, MG_TYPE_b64);
    uint32_t n = 0;
    EMIT("mad.wide.u32", off, i, 4, copy);
    for (uint32_t k = 0; k < t->n_known; k++) {
        const struct mg_twin_known *x = &t->known[k];
        if (x->bytes / 4 <= first) continue;
        mg_id p = new_reg(m, func, MG_TYPE_pred), from = new_reg(m, func, MG_TYPE_b64);
        now[n] = new_reg(m, func, MG_TYPE_b32);
        then[n] = new_reg(m, func, MG_TYPE_b32);
        EMIT("mov.u32", now[n], 0);
        EMIT("mov.u32", then[n], 0);
        EMIT("setp.lt.u32", p, i, mg_o_imm(x->bytes / 4 - first));
        EMIT("ld.param.u64", from, mg_o_addr_var(t->known_param, 8 * (int64_t)(k + 1)));
        EMIT("mad.wide.u32", from, i, 4, from);
        set_guard(m, EMIT("ld.global.nc.b32", now[n], mg_o_addr_reg(from, x->from + 4 * (int64_t)first)), p);
        set_guard(m,
                  EMIT("ld.global.nc.b32", then[n],
                       mg_o_addr_reg(off, (int64_t)x->at - t->known_values + 4 * (int64_t)first)),
                  p);
        n++;
    }
    for (uint32_t k = 0; k < n; k++) {
        EMIT("xor.b32", now[k], now[k], then[k]);
        EMIT("or.b32", stale, stale, now[k]);
    }
}

/* Few words: every warp looks at all of them. CTAs whose last warp is not full take the other body, so that all lanes
 * of a warp take the same. */
static void check_by_warps(struct mg_twin *t, mg_id at, mg_id slow, mg_id copy, mg_id stale, uint32_t words)
{
    struct mg_module *m = t->m;
    mg_id func = t->kernel, i = new_reg(m, func, MG_TYPE_b32), n = new_reg(m, func, MG_TYPE_b32),
          p = new_reg(m, func, MG_TYPE_pred);
    EMIT("mov.u32", n, mg_o_sreg(MG_SREG_ntid, 1));
    for (uint8_t axis = 2; axis <= 3; axis++) {
        EMIT("mov.u32", i, mg_o_sreg(MG_SREG_ntid, axis));
        EMIT("mul.lo.u32", n, n, i);
    }
    EMIT("and.b32", n, n, 31);
    EMIT("setp.ne.u32", p, n, 0);
    set_guard(m, EMIT("bra", mg_o_label(slow)), p);
    EMIT("mov.u32", i, mg_o_sreg(MG_SREG_laneid, 0));
    for (uint32_t first = 0; first < words; first += 32) compare(t, at, i, first, copy, stale);
    EMIT("setp.ne.u32", p, stale, 0);
    EMIT("vote.sync.any.pred", p, p, -1);
    set_guard(m, EMIT("bra", mg_o_label(slow)), p);
}

/* Many: every CTA, each of its rows of threads a part. */
static void check_by_ctas(struct mg_twin *t, mg_id at, mg_id slow, mg_id copy, mg_id stale, uint32_t words)
{
    struct mg_module *m = t->m;
    mg_id func = t->kernel, i = new_reg(m, func, MG_TYPE_b32), n = new_reg(m, func, MG_TYPE_b32),
          p = new_reg(m, func, MG_TYPE_pred), again = mg_module_add_label(m, func, "$__mg_known");
    m->labels.at[again].targeted = 1;
    EMIT("mov.u32", i, mg_o_sreg(MG_SREG_tid, 1));
    EMIT("mov.u32", n, mg_o_sreg(MG_SREG_ntid, 1));
    mg_node_insert_before(m, func, at, mg_node_new_kind(m, MG_NODE_label, again));
    compare(t, at, i, 0, copy, stale);
    EMIT("add.u32", i, i, n);
    EMIT("setp.lt.u32", p, i, mg_o_imm(words));
    set_guard(m, EMIT("bra", mg_o_label(again)), p);
    EMIT("setp.ne.u32", p, stale, 0);
    EMIT("bar.red.or.pred", p, 0, p);
    set_guard(m, EMIT("bra", mg_o_label(slow)), p);
}

static void emit_check(struct mg_twin *t, mg_id at, mg_id slow)
{
    struct mg_module *m = t->m;
    mg_id func = t->kernel, copy = new_reg(m, func, MG_TYPE_b64), stale = new_reg(m, func, MG_TYPE_b32);
    uint32_t most = 0, all = 0;
    for (uint32_t k = 0; k < t->n_known; k++) {
        most = MG_MAX(most, t->known[k].bytes / 4);
        all += t->known[k].bytes / 4;
    }
    EMIT("ld.param.u64", copy, mg_o_addr_var(t->known_param, 0));
    EMIT("mov.u32", stale, 0);
    if (all <= FEW_WORDS)
        check_by_warps(t, at, slow, copy, stale, most);
    else
        check_by_ctas(t, at, slow, copy, stale, most);
}

void mg_twin_split_constants(struct mg_twin *t)
{
    struct split s = {.t = t, .labels = MG_MAP_INIT};
    mg_id first = t->entry_at[0];
    if (t->known_bytes == t->known_values || !first) return;
    mg_id before = t->m->nodes.at[first].prev, slow = append_body(&s, first);
    use_parameter(t, first, slow);
    first = before ? t->m->nodes.at[before].next : t->m->funcs.at[t->kernel].first_node;
    emit_check(t, first, slow);
}
