/* Items that one record can hold: they stand one behind the other in a block, and the same lanes execute them,
 * together. Nothing between them lets other lanes join: no barrier, nothing that works across lanes. */
#include "tool/trace/loops.h"

enum { MOST_ADDRESSES = 8 /* two registers each, until the last one */ };

/* May lanes that came apart go on together behind it? To what is .aligned all lanes of a warp come together. */
static bool lets_join(const struct mg_form *f)
{
    return f->op_flags & MG_OPF_BARRIER || (f->op_flags & MG_OPF_CONVERGENT && !mg_form_has(f, MG_MOD_aligned));
}

static bool follows(const struct mg_module *m, const struct mg_trace_item *a, const struct mg_trace_item *b)
{
    if (a->inst->id != b->inst->id || b->one_by_one || b->loop != UINT32_MAX) return false;
    for (const struct mg_patch_inst *i = a->inst; i < b->inst; i++)
        if (lets_join(mg_node_form(m, &m->nodes.at[i->node]))) return false;
    return true;
}

uint32_t mg_trace_group_from(struct mg_patch *p, const struct mg_trace_item *items, uint32_t n, uint32_t first)
{
    const struct mg_module *m = mg_patch_module(p);
    uint32_t end = first + 1, addresses = items[first].access;
    if (items[first].one_by_one || items[first].loop != UINT32_MAX || !mg_channel_is_whole(p)) return 1;
    while (end < n && end - first < MG_CHANNEL_MOST_GROUP && addresses + items[end].access <= MOST_ADDRESSES &&
           follows(m, &items[end - 1], &items[end]))
        addresses += items[end++].access;
    return end - first;
}

bool mg_trace_comes_once(struct mg_patch *p, const struct mg_trace_item *items, uint32_t n)
{
    const struct mg_loops *l = mg_patch_loops(p, 0);
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_trace_item *x = &items[i];
        if (x->inst->func_ix || mg_loops_depth(l, x->inst->block) > (x->loop == UINT32_MAX ? 0u : 1u)) return false;
    }
    return true;
}

void mg_trace_keep_addresses(struct mg_patch *p, struct mg_trace_item *items, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!items[i].access) continue;
        struct mg_code_at *at = mg_at_before(p, items[i].inst->node);
        items[i].now = mg_code_reg(at, MG_TYPE_b64);
        MG_CODE(at, "mov.u64", items[i].now, mg_value_address(at, items[i].inst->node));
    }
}
