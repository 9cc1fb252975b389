/* Patterns of inserted counters (MG_NF_PROBE): counts of blocks run as a few operations instead of one per
 * instruction.
 *
 *   mov.u64 c, 0; ...                                   at an entry: one clearing of neighbours
 *   [add.u64 c, c, 1;] activemask.b32 m; and.b32 t, m, lt; setp.eq.u32 p, t, 0; [@p add.u64 w, w, 1;]
 *                                                       at the head of a block: the lowest active lane
 *   red.global.add.u64 [b + n], c; ...                  a counter before an end, a constant anywhere: lanes
 *     summed, one atomic each
 *
 * The results are those of the single instructions, but for m and t, which nothing else reads. Where
 * every instruction is to be seen (witness, event stream) nothing is taken together. */
#include "device/emu/decode.h"

#include <string.h>

#define MAX_RUN 200 /* emu_op.extra is 8 bits */

/* The nth instruction after node, not past last; 0 when there is none. */
static mg_id following(struct decoder *d, mg_id node, unsigned n, mg_id last)
{
    while (n) {
        if (node == last || !node) return 0;
        node = d->m->nodes.at[node].next;
        n -= node && d->m->nodes.at[node].kind == MG_NODE_inst;
    }
    return node;
}

static bool is_form(struct decoder *d, mg_id node, const char *text)
{
    return node && !strcmp(mg_name(d->m, mg_node_form(d->m, &d->m->nodes.at[node])->text), text);
}

static const struct mg_opnd *opnds(struct decoder *d, mg_id node)
{
    return &d->m->opnds.at[d->m->nodes.at[node].opnd];
}

bool dec_is_probe(const struct decoder *d, mg_id node)
{
    return d->m->nodes.at[node].flags & MG_NF_PROBE;
}

static bool is_reg(const struct mg_opnd *o)
{
    return o->kind == MG_OPND_reg && !o->val && !o->sub;
}

static bool is_number(const struct mg_opnd *o, uint64_t n)
{
    return o->kind == MG_OPND_imm && o->val == n;
}

/* add.u64 c, c, 1 */
static bool is_count(struct decoder *d, mg_id node)
{
    if (!node || mg_node_form(d->m, &d->m->nodes.at[node])->op != MG_OP_add || !is_form(d, node, "add.u64"))
        return false;
    const struct mg_opnd *o = opnds(d, node);
    return dec_is_probe(d, node) && is_reg(&o[0]) && o[1].kind == MG_OPND_reg && o[0].id == o[1].id && !o[1].val &&
           is_number(&o[2], 1);
}

static mg_id leader(struct decoder *d, mg_id node, mg_id last)
{
    const struct mg_module *m = d->m;
    mg_id n0 = node;
    unsigned extra = 2;
    uint32_t c = 0;
    if (is_count(d, node)) {
        n0 = following(d, node, 1, last);
        if (!n0 || m->nodes.at[node].guard) return 0;
        extra++;
    }
    if (mg_node_form(m, &m->nodes.at[n0])->op != MG_OP_activemask) return 0;
    mg_id n1 = following(d, n0, 1, last), n2 = following(d, n0, 2, last), n3 = following(d, n0, 3, last);
    if (!is_form(d, n1, "and.b32") || !is_form(d, n2, "setp.eq.u32") || m->nodes.at[n0].guard ||
        m->nodes.at[n1].guard || m->nodes.at[n2].guard)
        return 0;
    const struct mg_opnd *o0 = opnds(d, n0), *o1 = opnds(d, n1), *o2 = opnds(d, n2);
    bool lt = is_reg(&o1[2]) || (o1[2].kind == MG_OPND_sreg && o1[2].id == MG_SREG_lanemask_lt);
    if (!dec_is_probe(d, n0) || !dec_is_probe(d, n1) || !dec_is_probe(d, n2)) return 0;
    if (!lt || !is_reg(&o0[0]) || !is_reg(&o1[0]) || !is_reg(&o1[1]) || o1[1].id != o0[0].id || !is_reg(&o2[0]) ||
        !is_reg(&o2[1]) || o2[1].id != o1[0].id || !is_number(&o2[2], 0))
        return 0;
    uint32_t p = dec_reg(d, &o2[0]), w = 0;
    if (is_count(d, n3) && m->nodes.at[n3].guard == o2[0].id && !(m->nodes.at[n3].flags & MG_NF_GUARD_NOT)) {
        w = dec_reg(d, &opnds(d, n3)[0]);
        extra++;
        n2 = n3;
    }
    if (n0 != node) c = dec_reg(d, &opnds(d, node)[0]);
    struct emu_op *op = dec_emit_inst(d, EMU_OP_leader, EMU_CTL_NONE);
    op->a.d = p;
    op->a.d2 = w;
    op->a.s[0] = c;
    op->extra = (uint8_t)extra;
    return n2;
}

/* Registers lie in the order in which they are first named, so counters of one function are neighbours. */
static mg_id clear_run(struct decoder *d, mg_id node, mg_id last)
{
    uint32_t n = 0, at = 0;
    mg_id end = 0;
    for (mg_id id = node; n < MAX_RUN && is_form(d, id, "mov.u64") && !d->m->nodes.at[id].guard;
         id = following(d, id, 1, last)) {
        const struct mg_opnd *o = opnds(d, id);
        if (!dec_is_probe(d, id) || !is_reg(&o[0]) || !is_number(&o[1], 0)) break;
        uint32_t slot = dec_reg(d, &o[0]);
        if (!n)
            at = slot;
        else if (slot != at + n * 256)
            break;
        n++;
        end = id;
    }
    if (n < 2) return 0;
    struct emu_op *op = dec_emit_inst(d, EMU_OP_clear_run, EMU_CTL_NONE);
    op->a.d = at;
    op->a.imm = n;
    op->extra = (uint8_t)(n - 1);
    return end;
}

static mg_id add_run(struct decoder *d, mg_id node, mg_id last)
{
    const struct mg_node *first = &d->m->nodes.at[node];
    struct emu_red list[MAX_RUN];
    uint32_t n = 0;
    mg_id end = 0, base = 0;
    int64_t lo = 0, hi = 0;
    for (mg_id id = node; n < MAX_RUN && is_form(d, id, "red.global.add.u64"); id = following(d, id, 1, last)) {
        const struct mg_node *now = &d->m->nodes.at[id];
        const struct mg_opnd *o = opnds(d, id);
        if (now->guard != first->guard || ((now->flags ^ first->flags) & MG_NF_GUARD_NOT)) break;
        struct mg_opnd b = mg_o_reg(o[0].id);
        if (!dec_is_probe(d, id) || o[0].kind != MG_OPND_addr || o[0].sub != MG_OPND_reg || o[0].n & 7 ||
            (base && o[0].id != base))
            break;
        if (dec_reg_class(d, &b) != EMU_D || !(is_reg(&o[1]) || o[1].kind == MG_OPND_imm)) break;
        base = o[0].id;
        int64_t off = (int64_t)o[0].val;
        lo = n ? MG_MIN(lo, off) : off;
        hi = n ? MG_MAX(hi, off) : off;
        if (lo < 0 || hi > INT32_MAX || (off - lo) & 7 || (hi - off) & 7) break;
        list[n++] = (struct emu_red){.node = id, .from = dec_src(d, &o[1], EMU_D, MG_TYPE_u64), .off = (uint32_t)off};
        end = id;
    }
    if (!n) return 0;
    struct emu_op proto = {0};
    dec_address(d, &proto, &opnds(d, node)[0], MG_SPACE_global);
    lo = list[0].off;
    hi = list[0].off;
    for (uint32_t k = 1; k < n; k++) lo = MG_MIN(lo, list[k].off), hi = MG_MAX(hi, list[k].off);
    struct emu_op *op = dec_emit_inst(d, EMU_OP_red_run, EMU_CTL_NONE);
    op->a.s[0] = proto.a.s[0];
    op->a.imm = n;
    op->off = lo;
    op->a.cc = (uint32_t)(hi - lo) + 8; /* bytes from the least to the end of the greatest */
    op->ext = mg_arena_copy(&d->code->arena, list, n * sizeof *list);
    op->cache = proto.cache;
    op->space = proto.space;
    op->flags = (uint8_t)(proto.flags | EMU_OF_READS | EMU_OF_WRITES | EMU_OF_WIDE);
    op->bytes = 8;
    op->vec = 1;
    op->sub = EMU_ATOM_ADD;
    op->type = MG_TYPE_u64;
    op->extra = (uint8_t)(n - 1);
    return end;
}

/* Returns the last node taken; 0: none of these patterns begins here. */
mg_id dec_probe(struct decoder *d, mg_id node, mg_id last)
{
    if (d->mod->dev->opts.count_positions || atomic_load(&d->mod->dev->trace))
        return 0; /* every instruction is to be seen */
    switch ((enum mg_op)mg_node_form(d->m, &d->m->nodes.at[node])->op) {
    case MG_OP_add:
    case MG_OP_activemask:
        return leader(d, node, last);
    case MG_OP_mov:
        return clear_run(d, node, last);
    case MG_OP_red:
        return add_run(d, node, last);
    default:
        return 0;
    }
}
