/* What threads keep in registers until they leave, each for itself, whoever else is there then.
 *
 *   row    up to 32 cells side by side, one in each lane. Adding costs two instructions
 *   run    ones that go to the same cell of several, one after another, are added to it together
 *
 * Where code runs once, or where another function may end the thread, they go to memory at once. */
#include "tool/patch_priv.h"

#define R(r) mg_o_reg(r)
#define I(n) mg_o_imm(n)

enum { MOST_REGISTERS = 16 /* of 64 bits, of one function */ };

uint32_t mg_patch_row(struct mg_patch *p, uint32_t first, uint32_t n)
{
    if (n > 32 || first > p->rules.n || n > p->rules.n - first) mg_patch_refuse(p, MG_ERR_STATE, "a row of cells that were not reserved");
    *mg_vec_push(&p->rows) = (struct mg_patch_row){.first = first, .regs = mg_arena_array(&p->scratch, mg_id, p->all->sites->n_funcs)};
    return (uint32_t)p->rows.n - 1;
}

/* May a thread end in this function without passing its exits? */
static bool ends_elsewhere(struct mg_patch *p, uint32_t func_ix)
{
    struct mg_patches *all = p->all;
    const struct mg_cfg *c = all->sites->cfgs[func_ix];
    if (!all->may_exit) all->may_exit = mg_funcs_may_exit(all->m, all->twin);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        unsigned op = mg_node_form(all->m, &all->m->nodes.at[c->blocks[b].last])->op;
        if (op == MG_OP_exit && func_ix) return true;
        if (op == MG_OP_call && mg_callee_may_exit(all->m, all->may_exit, c->blocks[b].last)) return true;
    }
    return false;
}

/* Adds a lane's part to its cell in memory, where it is not 0. */
static void add_now(struct mg_code_at *at, const struct mg_patch_row *row, mg_id v)
{
    mg_id some = mg_code_temp(at, MG_TYPE_pred);
    MG_PURE(at, "setp.ne.u64", R(some), R(v), I(0));
    mg_code_push_guard(at, some, false);
    MG_CODE(at, "red.global.add.u64", mg_o_addr_reg(mg_value_row(at), 8 * (int64_t)row->first), R(v));
    mg_code_pop_guard(at);
}

static void flush(struct mg_code_at *at, void *user)
{
    const struct mg_patch_row *row = user;
    if (row->regs[at->func_ix]) add_now(at, row, row->regs[at->func_ix]);
}

static bool may_keep(struct mg_code_at *at, uint32_t registers)
{
    struct mg_patch_own *own = &at->p->own[at->func_ix];
    if (own->n_row_regs + registers > MOST_REGISTERS || !mg_at_repeats(at) || ends_elsewhere(at->p, at->func_ix)) return false;
    own->n_row_regs += registers;
    return true;
}

static mg_id register_of(struct mg_code_at *at, struct mg_patch_row *row)
{
    struct mg_patch *p = at->p;
    mg_id *r = &row->regs[at->func_ix];
    if (*r || !may_keep(at, 1)) return *r;
    *r = mg_code_reg(at, MG_TYPE_b64);
    MG_PURE(mg_at_entry(p, at->func_ix), "mov.u64", R(*r), I(0));
    mg_at_exits(p, at->func_ix, flush, mg_arena_copy(&p->scratch, row, sizeof *row)); /* rows move, their registers do not */
    return *r;
}

void mg_row_add(struct mg_code_at *at, uint32_t ix, mg_id v)
{
    struct mg_patch_row *row = &at->p->rows.at[ix];
    mg_id wide = mg_code_temp(at, MG_TYPE_b64), r = register_of(at, row);
    MG_PURE(at, "cvt.u64.u32", R(wide), R(v));
    if (r) MG_CODE(at, "add.u64", R(r), R(r), R(wide));
    else add_now(at, row, wide);
}

/* ---- runs -------------------------------------------------------------------------------------------------- */

static mg_id cell_address(struct mg_code_at *at, mg_id ix)
{
    mg_id a = mg_code_temp(at, MG_TYPE_b64);
    MG_PURE(at, "mad.wide.u32", R(a), R(ix), I(8), R(mg_value_base(at)));
    return a;
}

struct run { uint32_t func_ix, first; mg_id last /* b32: number of its cell */, count /* b64 */; };

static void add_run(struct mg_code_at *at, const struct run *r, mg_id when)
{
    mg_code_push_guard(at, when, false);
    MG_CODE(at, "red.global.add.u64", mg_o_addr_reg(cell_address(at, r->last), 8 * (int64_t)r->first), R(r->count));
    mg_code_pop_guard(at);
}

static void end_run(struct mg_code_at *at, void *user)
{
    const struct run *r = user;
    mg_id some = mg_code_temp(at, MG_TYPE_pred);
    if (at->func_ix != r->func_ix) return;
    MG_PURE(at, "setp.ne.u64", R(some), R(r->count), I(0));
    add_run(at, r, some);
}

void mg_run_add(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id ix)
{
    struct mg_patch *p = at->p;
    if (first > p->rules.n || n > p->rules.n - first) mg_patch_refuse(p, MG_ERR_STATE, "a run of cells that were not reserved");
    if (!may_keep(at, 2)) {
        MG_CODE(at, "red.global.add.u64", mg_o_addr_reg(cell_address(at, ix), 8 * (int64_t)first), I(1));
        return;
    }
    struct run r = {.func_ix = at->func_ix, .first = first, .last = mg_code_reg(at, MG_TYPE_b32), .count = mg_code_reg(at, MG_TYPE_b64)};
    struct mg_code_at *entry = mg_at_entry(p, at->func_ix);
    MG_PURE(entry, "mov.u32", R(r.last), I(0));
    MG_PURE(entry, "mov.u64", R(r.count), I(0));
    mg_at_exits(p, at->func_ix, end_run, mg_arena_copy(&p->scratch, &r, sizeof r));
    mg_id other = mg_code_temp(at, MG_TYPE_pred), some = mg_code_temp(at, MG_TYPE_pred);
    MG_PURE(at, "setp.ne.u32", R(other), R(ix), R(r.last));
    MG_PURE(at, "setp.ne.and.u64", R(some), R(r.count), I(0), R(other));
    add_run(at, &r, some);
    mg_code_push_guard(at, other, false);
    MG_CODE(at, "mov.u32", R(r.last), R(ix));
    MG_CODE(at, "mov.u64", R(r.count), I(0));
    mg_code_pop_guard(at);
    MG_CODE(at, "add.u64", R(r.count), R(r.count), I(1));
}
