/* Functions of ours that several spots call, where the same code at each of them would be more than the assembler takes
 * in short time. Parameters and result are 32 and 64 bits wide.
 *
 * A call is uniform, and so are all branches inside: the lanes here enter, go through and come back together, and ask
 * inside for who they are as they would here. Cells are reached by an address that is handed over: functions know
 * neither the launch nor the CTA's shared memory. */
#include "insert/emit.h"
#include "patch/priv.h"

#include <stdio.h>

struct mg_code_at *mg_at_called(struct mg_patch *p, bool has_result)
{
    struct mg_module *m = p->all->m;
    struct mg_code_at *at = mg_arena_new(&p->scratch, struct mg_code_at),
                      *pro = mg_arena_new(&p->scratch, struct mg_code_at);
    char name[32];
    mg_id func = m->funcs.n, ret = m->vars.n;
    snprintf(name, sizeof name, "__mg_called%u", (unsigned)func);
    if (has_result)
        *mg_vec_push(&m->vars) = (struct mg_var){.name = mg_intern_adds(&m->names, "__mg_result"),
                                                 .space = MG_SPACE_param,
                                                 .type = MG_TYPE_b32,
                                                 .func = func,
                                                 .is_ret = 1};
    *mg_vec_push(&m->funcs) = (struct mg_func){.name = mg_intern_adds(&m->names, name),
                                               .kind = MG_FUNC_func,
                                               .defined = 1,
                                               .def = func,
                                               .first_ret = has_result ? ret : 0,
                                               .n_rets = has_result,
                                               .stays = 1};
    mg_module_add_item(m, (struct mg_item){.kind = MG_ITEM_func, .id = func});
    *pro = (struct mg_code_at){.p = p, .kind = MG_AT_CALLED, .called = func};
    *at = (struct mg_code_at){.p = p, .kind = MG_AT_CALLED, .called = func, .begin = pro};
    *mg_vec_push(&p->called) = at;
    return at;
}

mg_id mg_called_param(struct mg_code_at *f, enum mg_type type)
{
    struct mg_module *m = mg_at_module(f);
    char name[32];
    mg_id r = mg_code_reg(f, type);
    snprintf(name, sizeof name, "__mg_in%u", (unsigned)m->vars.n);
    mg_id param = mg_func_add_param(m, f->called, mg_intern_adds(&m->names, name), type);
    *mg_vec_push(&f->params) = r;
    /* parameters move when one is added, and what is linked follows: so they are loaded there and then */
    MG_INSERT(m, f->called, 0, mg_type_bits(type) == 64 ? "ld.param.b64" : "ld.param.b32", r, mg_o_addr_var(param, 0));
    return r;
}

void mg_called_cells(struct mg_code_at *f)
{
    f->base = mg_called_param(f, MG_TYPE_b64);
}

void mg_called_return(struct mg_code_at *f, mg_id result)
{
    MG_CODE(f, "st.param.b32", mg_o_addr_var(mg_at_module(f)->funcs.at[f->called].first_ret, 0), result);
}

void mg_code_call(struct mg_code_at *at, const struct mg_code_at *f, mg_id result, const mg_id *args)
{
    struct mg_module *m = mg_at_module(at);
    uint32_t n = (uint32_t)f->params.n;
    struct mg_opnd in = {.kind = MG_OPND_list, .n = (uint16_t)n, .id = mg_opnd_alloc(m, n)};
    for (uint32_t i = 0; i < n; i++) m->opnds.at[in.id + i] = mg_o_reg(args[i]);
    if (!result) {
        MG_CODE(at, "call.uni", mg_o_func(f->called), in);
        return;
    }
    struct mg_opnd out = {.kind = MG_OPND_list, .n = 1, .id = mg_opnd_alloc(m, 1)};
    m->opnds.at[out.id] = mg_o_reg(result);
    MG_CODE(at, "call.uni", out, mg_o_func(f->called), in);
}

static void link_items(struct mg_module *m, const struct mg_code_at *at)
{
    for (uint32_t i = 0; i < at->items.n; i++) mg_node_insert_before(m, at->called, 0, at->items.at[i].node);
}

void mg_called_link(struct mg_patch *p)
{
    struct mg_module *m = p->all->m;
    for (uint32_t i = 0; i < p->called.n; i++) {
        struct mg_code_at *f = p->called.at[i];
        link_items(m, f->begin);
        link_items(m, f);
        mg_insert(m, f->called, 0, "ret.uni", NULL, 0);
    }
}

void mg_called_release(struct mg_patch *p)
{
    for (uint32_t i = 0; i < p->called.n; i++) {
        struct mg_code_at *f = p->called.at[i];
        mg_vec_release(&f->begin->items);
        mg_vec_release(&f->begin->known);
        mg_vec_release(&f->items);
        mg_vec_release(&f->known);
        mg_vec_release(&f->params);
    }
    mg_vec_release(&p->called);
}
