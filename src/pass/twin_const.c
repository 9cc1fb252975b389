/* Constants of a GPU's twin that stand at fixed places of small tables: machine code reads them as operands
 * from its own constant bank, which a twin has not. Read one by one at their global addresses they cost up to
 * 1.4 times the kernel (facts in docs/measured.md). So each warp copies the part of the table that is read so to
 * shared memory when it begins, and takes four at a time from there:
 *
 *     warp = linear thread / 32;  at = copies + warp * bytes         (entry, all lanes of the warp)
 *     for (w = lane; w < words; w += lanes)  st.shared [at + 4w], ld.global.nc [table + 4w];   bar.warp.sync
 *     ld.const.f32 d, [table+8]   ->   ld.shared.v4 {a, b, c, e}, [at];  mov d, c            (once for a block)
 *
 * Only where no tool looks at the kernel's loads, in kernels without dynamic shared memory, whose own leaves room. */
#include <stdio.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "pass/priv.h"

enum { MOST_BYTES = 256, MOST_SHARED = 24576, FEW_LOADS = 8, MOST_VARS = 4 };

struct table { mg_id var; uint32_t lo, hi, loads, at; }; /* [lo, hi): bytes that are read; at: of the copy */
struct cache {
    struct mg_twin_func *f;
    struct table tables[MOST_VARS]; uint32_t n;
    uint32_t bytes;
    mg_id copies, at;          /* the variable; register: this warp's copy */
};

static uint32_t load_bytes(const struct mg_form *f)
{
    return mg_type_bits((enum mg_type)f->types[0]) / 8 * (f->vec ? f->vec : 1);
}

/* A load from a fixed place of a table of the module's; its variable, or 0. */
static mg_id fixed_load(const struct mg_module *m, const struct mg_node *n)
{
    if (n->kind != MG_NODE_inst || (n->flags & MG_NF_META)) return 0;
    const struct mg_form *f = mg_node_form(m, n);
    if (f->op != MG_OP_ld || n->n_opnds != 2 || f->n_types != 1 || !mg_form_has(f, MG_MOD_const) || mg_form_has(f, MG_MOD_volatile)) return 0;
    const struct mg_opnd *o = &m->opnds.at[n->opnd + 1];
    if (o->kind != MG_OPND_addr || o->sub != MG_OPND_var) return 0;
    const struct mg_var *v = &m->vars.at[o->id];
    if (v->space != MG_SPACE_const || v->func || v->count || mg_var_align(v) < 4 || load_bytes(f) > 16) return 0;
    uint64_t end = o->val + load_bytes(f);
    return (int64_t)o->val >= 0 && end <= mg_var_bytes(v) ? (v->def ? v->def : o->id) : 0;
}

static struct table *table_of(struct cache *k, mg_id var)
{
    for (uint32_t i = 0; i < k->n; i++)
        if (k->tables[i].var == var) return &k->tables[i];
    return NULL;
}

static void find_tables(struct cache *k)
{
    struct mg_module *m = k->f->b->m;
    uint32_t n = 0;
    MG_EACH_NODE(m, &m->funcs.at[k->f->func], id) {
        mg_id var = fixed_load(m, &m->nodes.at[id]);
        if (!var) continue;
        struct table *t = table_of(k, var);
        if (!t && k->n == MOST_VARS) continue;
        if (!t) *(t = &k->tables[k->n++]) = (struct table){.var = var, .lo = UINT32_MAX};
        uint32_t off = (uint32_t)m->opnds.at[m->nodes.at[id].opnd + 1].val, end = off + load_bytes(mg_node_form(m, &m->nodes.at[id]));
        t->lo = MG_MIN(t->lo, off / 16 * 16);
        t->hi = MG_MAX(t->hi, (end + 3) / 4 * 4);
        t->loads++;
    }
    for (uint32_t i = 0; i < k->n; i++) {
        struct table t = k->tables[i];
        if (t.loads < FEW_LOADS || t.hi > mg_var_bytes(&m->vars.at[t.var]) || k->bytes + (t.hi - t.lo + 15) / 16 * 16 > MOST_BYTES) continue;
        t.at = k->bytes;
        k->bytes += (t.hi - t.lo + 15) / 16 * 16;
        k->tables[n++] = t;
    }
    k->n = n;
}

/* Room in shared memory, and nobody who would see it move. */
static bool has_room(const struct mg_module *m, uint64_t bytes)
{
    bool dynamic;
    bytes += mg_twin_shared_bytes(m, &dynamic);
    return !dynamic && bytes <= MOST_SHARED;
}

static uint32_t count_warps(const struct mg_func *f)
{
    const uint32_t *d = f->reqntid[0] ? f->reqntid : f->maxntid;
    uint64_t threads = d[0] ? (uint64_t)d[0] * MG_MAX(d[1], 1u) * MG_MAX(d[2], 1u) : 1024;
    return (uint32_t)((MG_MIN(threads, 1024u) + 31) / 32);
}

mg_id mg_kernel_add_shared(struct mg_module *m, mg_id func, const char *stem, uint32_t bytes)
{
    uint64_t all = (uint64_t)bytes * count_warps(&m->funcs.at[func]);
    char name[64];
    mg_id var = m->vars.n, decl = m->decls.n;
    if (!has_room(m, all)) return 0;
    snprintf(name, sizeof name, "%s%u", stem, (unsigned)var);
    struct mg_var v = {.name = mg_intern_adds(&m->names, name), .space = MG_SPACE_shared, .type = MG_TYPE_b8, .align = 16, .n_dims = 1, .func = func};
    v.dims = mg_arena_array(&m->arena, uint64_t, 1);
    v.dims[0] = all;
    *mg_vec_push(&m->vars) = v;
    *mg_vec_push(&m->decls) = (struct mg_decl){.space = MG_SPACE_shared, .type = MG_TYPE_b8, .first = var, .n = 1};
    mg_node_insert_after(m, func, 0, mg_node_new_kind(m, MG_NODE_decl, decl));
    return var;
}

#define EMIT(...) MG_INSERT(m, func, at, __VA_ARGS__)
#define R(r) mg_o_reg(r)
#define I(n) mg_o_imm(n)

static mg_id new_label(struct mg_module *m, mg_id func)
{
    mg_id label = mg_module_add_label(m, func, "$__mg_copy");
    m->labels.at[label].targeted = 1;
    return label;
}

static void put_label(struct mg_module *m, mg_id func, mg_id at, mg_id label)
{
    mg_node_insert_before(m, func, at, mg_node_new_kind(m, MG_NODE_label, label));
}

static void emit_copies(struct cache *k)
{
    struct mg_module *m = k->f->b->m;
    mg_id func = k->f->func, at = k->f->b->t->entry_at[k->f->ix], bases[MOST_VARS];
    for (uint32_t i = 0; i < k->n; i++) bases[i] = mg_twin_symbol_reg(k->f, mg_twin_symbol_of_var(k->f->b, k->tables[i].var));
    mg_id a = mg_module_add_reg(m, func, "__mg_a", MG_TYPE_b32), b = mg_module_add_reg(m, func, "__mg_b", MG_TYPE_b32), p = mg_module_add_reg(m, func, "__mg_p", MG_TYPE_pred);
    mg_id lanes = mg_module_add_reg(m, func, "__mg_l", MG_TYPE_b32), word = mg_module_add_reg(m, func, "__mg_w", MG_TYPE_b32), from = mg_module_add_reg(m, func, "__mg_f", MG_TYPE_b64), to = mg_module_add_reg(m, func, "__mg_t", MG_TYPE_b32);
    k->at = mg_module_add_reg(m, func, "__mg_k", MG_TYPE_b32);
    EMIT("mov.u32", R(a), mg_o_sreg(MG_SREG_tid, 3));
    EMIT("mov.u32", R(b), mg_o_sreg(MG_SREG_ntid, 2));
    EMIT("mul.lo.u32", R(a), R(a), R(b));
    EMIT("mov.u32", R(b), mg_o_sreg(MG_SREG_tid, 2));
    EMIT("add.u32", R(a), R(a), R(b));
    EMIT("mov.u32", R(b), mg_o_sreg(MG_SREG_ntid, 1));
    EMIT("mul.lo.u32", R(a), R(a), R(b));
    EMIT("mov.u32", R(b), mg_o_sreg(MG_SREG_tid, 1));
    EMIT("add.u32", R(a), R(a), R(b));
    EMIT("and.b32", R(b), R(a), I(31));
    EMIT("shr.u32", R(a), R(a), I(5));
    EMIT("mov.u32", R(k->at), (struct mg_opnd){.kind = MG_OPND_var, .id = k->copies});
    EMIT("mad.lo.u32", R(k->at), R(a), I(k->bytes), R(k->at));
    EMIT("mov.u32", R(lanes), mg_o_sreg(MG_SREG_ntid, 1)); /* a last warp may have fewer than 32 */
    for (uint8_t axis = 2; axis <= 3; axis++) {
        EMIT("mov.u32", R(to), mg_o_sreg(MG_SREG_ntid, axis));
        EMIT("mul.lo.u32", R(lanes), R(lanes), R(to));
    }
    EMIT("shl.b32", R(a), R(a), I(5));
    EMIT("sub.u32", R(lanes), R(lanes), R(a));
    EMIT("min.u32", R(lanes), R(lanes), I(32));
    for (uint32_t i = 0; i < k->n; i++) {
        const struct table *t = &k->tables[i];
        mg_id again = new_label(m, func), done = new_label(m, func);
        EMIT("mov.u32", R(a), R(b));
        put_label(m, func, at, again);
        EMIT("setp.ge.u32", R(p), R(a), I((t->hi - t->lo) / 4));
        m->nodes.at[EMIT("bra", mg_o_label(done))].guard = p;
        EMIT("mad.wide.u32", R(from), R(a), I(4), R(bases[i]));
        EMIT("mad.lo.u32", R(to), R(a), I(4), R(k->at));
        EMIT("ld.global.nc.b32", R(word), mg_o_addr_reg(from, t->lo));
        EMIT("st.shared.b32", mg_o_addr_reg(to, t->at), R(word));
        EMIT("add.u32", R(a), R(a), R(lanes));
        EMIT("bra", mg_o_label(again));
        put_label(m, func, at, done);
    }
    EMIT("bar.warp.sync", I(-1));
}

/* The registers with the four words around a place, loaded in front of the block's first use of them. */
struct quad { uint32_t block, at; mg_id regs[4]; };

static const mg_id *quad_of(struct cache *k, struct quad *quads, uint32_t *n, uint32_t block, uint32_t at, mg_id node)
{
    struct mg_module *m = k->f->b->m;
    for (uint32_t i = *n; i-- > 0 && quads[i].block == block;)
        if (quads[i].at == at) return quads[i].regs;
    struct quad *q = &quads[(*n)++];
    *q = (struct quad){.block = block, .at = at};
    mg_id first = mg_module_add_regs(m, k->f->func, "__mg_q", MG_TYPE_b32, 4), list = mg_opnd_alloc(m, 4);
    for (uint32_t i = 0; i < 4; i++) {
        q->regs[i] = first + i;
        m->opnds.at[list + i] = R(first + i);
    }
    MG_INSERT(m, k->f->func, node, "ld.shared.v4.b32", ((struct mg_opnd){.kind = MG_OPND_vec, .id = list, .n = 4}), mg_o_addr_reg(k->at, at));
    return q->regs;
}

static void replace_load(struct cache *k, const struct table *t, struct quad *quads, uint32_t *n, uint32_t block, mg_id node)
{
    struct mg_module *m = k->f->b->m;
    struct mg_node x = m->nodes.at[node];
    const struct mg_form *f = mg_node_form(m, &x);
    uint32_t at = t->at + (uint32_t)m->opnds.at[x.opnd + 1].val - t->lo;
    if (!f->vec && load_bytes(f) == 4) {
        mg_id word = quad_of(k, quads, n, block, at / 16 * 16, node)[at % 16 / 4], form = mg_form_intern(m, "mov.b32", 7);
        m->nodes.at[node].ref = form;
        m->opnds.at[m->nodes.at[node].opnd + 1] = R(word);
        return;
    }
    m->opnds.at[x.opnd + 1] = mg_o_addr_reg(k->at, at);
    mg_twin_replace_const(m, node, ".shared");
}

void mg_twin_cache_constants(struct mg_twin_func *f)
{
    struct mg_module *m = f->b->m;
    struct cache k = {.f = f};
    if (m->sm < 70 || m->version_major < 6) return;
    find_tables(&k);
    if (!k.n || !(k.copies = mg_kernel_add_shared(m, f->func, "__mg_const", k.bytes))) return;
    emit_copies(&k);
    struct mg_cfg *c = mg_cfg_new(m, f->func);
    uint32_t loads = 0, n = 0;
    for (uint32_t i = 0; i < k.n; i++) loads += k.tables[i].loads;
    struct quad *quads = mg_xcalloc(loads + 1, sizeof *quads);
    mg_id next;
    for (mg_id id = m->funcs.at[f->func].first_node; id; id = next) {
        next = m->nodes.at[id].next;
        mg_id var = fixed_load(m, &m->nodes.at[id]);
        struct table *t = var ? table_of(&k, var) : NULL;
        if (t) replace_load(&k, t, quads, &n, mg_cfg_block_of(c, id), id);
    }
    free(quads);
    mg_cfg_free(c);
}
