/* Rows: up to 32 cells side by side, of which each lane of a warp keeps one in a register. Adding costs two
 * instructions, and leaving one: a lane adds its own to memory, whoever else is there. Where code runs once,
 * or where another function may end the thread, it goes to memory at once. */
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

static mg_id register_of(struct mg_code_at *at, struct mg_patch_row *row)
{
    struct mg_patch *p = at->p;
    struct mg_patch_own *own = &p->own[at->func_ix];
    mg_id *r = &row->regs[at->func_ix];
    if (*r) return *r;
    if (own->n_row_regs == MOST_REGISTERS || !mg_at_repeats(at) || ends_elsewhere(p, at->func_ix)) return 0;
    own->n_row_regs++;
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
