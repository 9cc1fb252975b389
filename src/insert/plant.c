/* See plant.h. */
#include "insert/plant.h"

#include <string.h>

struct here {
    struct mg_module *m;
    mg_id func, at;
};

static mg_id behind(struct here *h, const char *form, const struct mg_opnd *o, uint32_t n)
{
    mg_id node = mg_node_new(h->m, form, o, n);
    mg_node_insert_after(h->m, h->func, h->at, node);
    return h->at = node;
}
#define BEHIND(...) behind(&h, MG_INST(__VA_ARGS__))

static mg_id find_store(const struct mg_module *m, mg_id func, bool *global)
{
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        const char *form = n->kind == MG_NODE_inst ? mg_name(m, mg_node_form(m, n)->text) : "";
        if (n->flags & MG_NF_META || strncmp(form, "st.", 3) || m->opnds.at[n->opnd].kind != MG_OPND_addr) continue;
        enum mg_space space = (enum mg_space)mg_node_form(m, n)->space;
        if (space != MG_SPACE_global && space != MG_SPACE_generic) continue;
        *global = space == MG_SPACE_global;
        return id;
    }
    return 0;
}

bool mg_plant(struct mg_module *m, mg_id func)
{
    bool global = false;
    mg_id store = find_store(m, func, &global);
    if (!store) return false;
    struct here h = {m, func, store};
    mg_id sum = mg_module_add_reg(m, func, "__mg_sum", MG_TYPE_b32),
          more = mg_module_add_reg(m, func, "__mg_more", MG_TYPE_b32);
    mg_id here = mg_module_add_reg(m, func, "__mg_here", MG_TYPE_pred),
          may = mg_module_add_reg(m, func, "__mg_may", MG_TYPE_pred);
    mg_id byte = mg_module_add_reg(m, func, "__mg_byte", MG_TYPE_b16);
    const struct mg_node was = m->nodes.at[store];
    const struct mg_opnd address = m->opnds.at[was.opnd];
    BEHIND("mov.u32", sum, mg_o_sreg(MG_SREG_tid, 1));
    for (uint8_t k = 1; k <= 3; k++) {
        BEHIND("mov.u32", more, mg_o_sreg(MG_SREG_tid, k));
        BEHIND("or.b32", sum, sum, more);
        BEHIND("mov.u32", more, mg_o_sreg(MG_SREG_ctaid, k));
        BEHIND("or.b32", sum, sum, more);
    }
    BEHIND("setp.eq.u32", here, sum, 0);
    if (was.guard && was.flags & MG_NF_GUARD_NOT) {
        BEHIND("not.pred", may, was.guard);
        BEHIND("and.pred", here, here, may);
    } else if (was.guard) {
        BEHIND("and.pred", here, here, was.guard);
    }
    BEHIND("mov.u16", byte, MG_PLANT_BYTE);
    mg_id wrong = BEHIND(global ? "st.global.u8" : "st.u8", address, byte);
    m->nodes.at[wrong].guard = here;
    return true;
}
