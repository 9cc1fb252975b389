/* What inserted code counts (MG_OPF_OURS): where the launch's cells are, and additions to them, of which those that
 * stand one behind the other under one guard are one operation. */
#include "device/emu/decode.h"
#include "isa/request.h"

#define MAX_RUN 200 /* emu_op.extra is 8 bits */

static const struct mg_node *inst(const struct decoder *d, mg_id node)
{
    return &d->m->nodes.at[node];
}

static bool is_count(const struct decoder *d, mg_id node)
{
    if (inst(d, node)->kind != MG_NODE_inst || !dec_is_probe(d, node)) return false;
    unsigned op = mg_node_form(d->m, inst(d, node))->op;
    return op == MG_OP_count_threads || op == MG_OP_count_warps;
}

static bool reads_register(const struct decoder *d, mg_id node)
{
    const struct mg_node *n = inst(d, node);
    return n->n_opnds > 1 && d->m->opnds.at[n->opnd + 1].kind == MG_OPND_reg;
}

static struct emu_count count_of(struct decoder *d, mg_id node)
{
    const struct mg_node *n = inst(d, node);
    const struct mg_opnd *o = &d->m->opnds.at[n->opnd];
    bool reg = n->n_opnds == 2 && o[1].kind == MG_OPND_reg && dec_reg_class(d, &o[1]) == EMU_D;
    if (n->n_opnds != 2 || o[0].kind != MG_OPND_imm || o[0].val >= EMU_MAX_CELLS || (!reg && o[1].kind != MG_OPND_imm))
        dec_refuse(d, "operands of %s", mg_op_name((enum mg_op)mg_node_form(d->m, n)->op));
    d->code->n_cells = MG_MAX(d->code->n_cells, (uint32_t)o[0].val + 1);
    return (struct emu_count){.cell = (uint32_t)o[0].val,
                              .warps = mg_node_form(d->m, n)->op == MG_OP_count_warps,
                              .from = reg ? dec_reg(d, &o[1]) : 0,
                              .n = reg ? 0 : o[1].val};
}

/* Returns the last of those that begin at node; 0: it is none. */
mg_id dec_count(struct decoder *d, mg_id node, mg_id last)
{
    const struct mg_node *first = inst(d, node);
    struct emu_count list[MAX_RUN];
    uint32_t n = 1;
    if (!is_count(d, node)) return 0;
    list[0] = count_of(d, node);
    bool seen = d->mod->dev->opts.count_positions || atomic_load(&d->mod->dev->trace), /* every instruction */
        alone = seen || list[0].from;
    while (!alone && n < MAX_RUN && node != last) {
        mg_id next = first->next;
        const struct mg_node *now = inst(d, next);
        if (!next || !is_count(d, next) || reads_register(d, next) || now->guard != first->guard ||
            ((now->flags ^ first->flags) & MG_NF_GUARD_NOT))
            break;
        list[n++] = count_of(d, node = next);
        first = now;
    }
    struct emu_op *op = dec_emit_inst(d, list[0].from ? EMU_OP_count_value : EMU_OP_count, EMU_CTL_NONE);
    op->a.imm = n;
    op->a.s[0] = list[0].from;
    op->ext = mg_arena_copy(&d->code->arena, list, n * sizeof *list);
    op->extra = (uint8_t)(n - 1);
    return node;
}

void dec_cells(struct decoder *d, const struct mg_opnd *o, uint32_t n)
{
    bool well = n == 2 && o[0].kind == MG_OPND_addr && o[0].sub == MG_OPND_var && o[1].kind == MG_OPND_imm &&
                d->f->kind == MG_FUNC_entry && d->fn == d->code->entry && d->m->vars.at[o[0].id].is_param &&
                dec_is_probe(d, d->node);
    if (!well) dec_refuse(d, "operands of cells");
    d->code->cells_param = mg_func_param_offset(d->f, d->m->vars.at, o[0].id - d->f->first_param);
    d->code->cells_off = o[1].val;
    d->code->has_cells = true;
    dec_emit_inst(d, EMU_OP_nop, EMU_CTL_NONE);
}

/* Cell, width and space, a register and what is added to it: the lanes' addresses. One of 32 bits wraps around. */
void dec_request(struct decoder *d, const struct mg_opnd *o, uint32_t n)
{
    bool well = n == 4 && o[0].kind == MG_OPND_imm && o[0].val < EMU_MAX_CELLS - MG_RQ_COUNT &&
                o[1].kind == MG_OPND_imm && o[1].val < MG_SPACE_COUNT * MG_RQ_BYTES && o[2].kind == MG_OPND_reg &&
                o[3].kind == MG_OPND_imm && dec_is_probe(d, d->node);
    enum emu_class c = well ? dec_reg_class(d, &o[2]) : EMU_NONE;
    unsigned bytes = well ? o[1].val % MG_RQ_BYTES : 0;
    if (!bytes || bytes > EMU_MOST_REQUESTED || bytes & (bytes - 1) || (c != EMU_D && c != EMU_W))
        dec_refuse(d, "operands of count_request");
    struct emu_request r = {
        .cell = (uint32_t)o[0].val, .bytes = (uint8_t)bytes, .space = (uint8_t)(o[1].val / MG_RQ_BYTES)};
    struct emu_op *op = dec_emit_inst(d, EMU_OP_count_request, EMU_CTL_NONE);
    op->a.s[0] = dec_reg(d, &o[2]);
    op->off = (int64_t)o[3].val;
    if (c == EMU_W) op->flags |= EMU_OF_BASE_W;
    op->ext = mg_arena_copy(&d->code->arena, &r, sizeof r);
    d->code->n_cells = MG_MAX(d->code->n_cells, r.cell + MG_RQ_COUNT);
}

/* Cell, bits and order, the value, what the lane carried before, was there one? */
void dec_carried(struct decoder *d, const struct mg_opnd *o, uint32_t n)
{
    bool well = n == 5 && o[0].kind == MG_OPND_imm && o[0].val < EMU_MAX_CELLS - MG_CR_COUNT &&
                o[1].kind == MG_OPND_imm && o[1].val < (MG_CK_F64 + 1) * MG_CR_BITS && dec_is_probe(d, d->node);
    unsigned bits = well ? o[1].val % MG_CR_BITS : 0;
    for (uint32_t k = 2; k < n && well; k++) {
        enum emu_class c = bits > 32 && k < 4 ? EMU_D : EMU_W;
        well = o[k].kind == MG_OPND_reg && dec_reg_class(d, &o[k]) == c;
    }
    if (!well || (bits != 8 && bits != 16 && bits != 32 && bits != 64)) dec_refuse(d, "operands of count_carried");
    struct emu_carried r = {
        .cell = (uint32_t)o[0].val, .bits = (uint8_t)bits, .kind = (uint8_t)(o[1].val / MG_CR_BITS)};
    struct emu_op *op = dec_emit_inst(d, EMU_OP_count_carried, EMU_CTL_NONE);
    for (uint32_t k = 0; k < 3; k++) op->a.s[k] = dec_reg(d, &o[2 + k]);
    op->ext = mg_arena_copy(&d->code->arena, &r, sizeof r);
    d->code->n_cells = MG_MAX(d->code->n_cells, r.cell + MG_CR_COUNT);
}
