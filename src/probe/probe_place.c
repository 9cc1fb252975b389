/* A probe in C at a spot: its code put inline. What is known there is folded, branches that are decided are
 * left out, calls become values, updates of maps and variables. The rest is copied with registers of its own. */
#include "probe/expr_walk.h"

struct splice {
    struct mg_expr_walk *w;
    const struct mg_probe_fn *fn;
    const struct mg_module *m; /* of the probe */
    struct mg_probe_fold f;
    struct mg_code_at *at;
    mg_id *regs;                /* register - reg_lo -> ours; 0: none yet */
    struct mg_expr_val *params; /* by variable */
    struct mg_map labels;       /* label -> ours */
    struct mg_map fuel;         /* call of mg_below -> b32: how often it said yes */
    mg_id end;
};

/* ---- known beforehand ---------------------------------------------------------------------------- */

static struct mg_probe_known result_of(void *user, mg_id call)
{
    const struct splice *s = user;
    enum mg_expr_value v;
    struct mg_probe_known no = {0};
    if (mg_probe_call_of(s->m, call, &v) != MG_PC_value) return no;
    const struct mg_expr_const c = s->w->spot->env.values[v];
    if (c.known) return (struct mg_probe_known){.kind = MG_PK_NUM, .num = (uint64_t)c.num};
    return no;
}

static const struct mg_expr_update *update_of(const struct splice *s, mg_id call)
{
    const struct mg_probe *p = s->f.p;
    struct mg_probe_known k = mg_probe_param(&s->f, call, 0);
    for (uint32_t i = 0; i < p->n_maps; i++)
        if (k.kind == MG_PK_MAP && p->maps[i].var == k.id && p->maps[i].update != UINT32_MAX)
            return s->w->pl->e->updates[p->maps[i].update];
    return NULL;
}

/* ---- operands -------------------------------------------------------------------------------------- */

static mg_id our_reg(struct splice *s, mg_id reg)
{
    mg_id *r = &s->regs[reg - s->fn->reg_lo];
    if (!*r) *r = mg_code_temp(s->at, (enum mg_type)s->m->regs.at[reg].type);
    return *r;
}

static mg_id known_pred(struct splice *s, bool v)
{
    mg_id p = mg_code_temp(s->at, MG_TYPE_pred), zero = mg_code_temp(s->at, MG_TYPE_b32);
    MG_CODE(s->at, "mov.u32", zero, 0);
    MG_CODE(s->at, v ? "setp.eq.u32" : "setp.ne.u32", p, zero, 0);
    return p;
}

static struct mg_opnd our_opnd(struct splice *s, const struct mg_opnd *o)
{
    if (o->kind != MG_OPND_reg && o->kind != MG_OPND_not) return *o;
    unsigned bits = mg_type_bits((enum mg_type)s->m->regs.at[o->id].type);
    struct mg_probe_known k = mg_probe_operand(&s->f, o, bits);
    if (k.kind == MG_PK_NUM && bits == 1) return mg_o_reg(known_pred(s, k.num));
    if (k.kind == MG_PK_NUM)
        return mg_o_imm(bits < 64 ? (int64_t)(k.num << (64 - bits)) >> (64 - bits) : (int64_t)k.num);
    struct mg_opnd to = *o;
    to.id = our_reg(s, o->id);
    return to;
}

/* A register or constant of the probe, as a value of 64 bits. */
static struct mg_expr_val our_value(struct splice *s, const struct mg_opnd *o)
{
    struct mg_probe_known k = mg_probe_operand(&s->f, o, 64);
    if (k.kind == MG_PK_NUM) return mg_expr_imm((int64_t)k.num);
    if (k.kind == MG_PK_MAP) return mg_expr_imm(0);
    return (struct mg_expr_val){.kind = MG_VAL_REG, .reg = our_reg(s, o->id)};
}

static struct mg_expr_val param(const struct splice *s, mg_id call, uint32_t ix)
{
    mg_id var = mg_probe_param_var(s->m, call, ix);
    struct mg_probe_known k = mg_probe_param(&s->f, call, ix);
    if (k.kind == MG_PK_NUM) return mg_expr_imm((int64_t)k.num);
    return var && s->params[var].kind != MG_VAL_NONE ? s->params[var] : mg_expr_imm(0);
}

/* ---- calls -------------------------------------------------------------------------------------------- */

static void emit_update(struct splice *s, mg_id call)
{
    const struct mg_expr_update *up = update_of(s, call);
    struct mg_expr_val value = param(s, call, 1), keys[3] = {param(s, call, 2), param(s, call, 3), param(s, call, 4)};
    struct mg_expr_walk *w = s->w;
    bool always = w->always;
    if (!up) return;
    w->always &= mg_cfg_block_of(s->fn->cfg, call) == 0;
    w->given = &value;
    w->here.inputs = keys;
    w->here.n_inputs = MG_COUNT_OF(keys);
    mg_expr_update(w, up);
    w->given = NULL;
    w->here.inputs = NULL;
    w->here.n_inputs = 0;
    w->always = always;
}

/* i < most, and no more often than MG_PROBE_FUEL. */
static struct mg_expr_val emit_below(struct splice *s, mg_id call)
{
    uint64_t fuel = 0;
    mg_id p = mg_code_temp(s->at, MG_TYPE_pred), r = mg_code_temp(s->at, MG_TYPE_b64),
          i = mg_expr_reg(&s->w->here, param(s, call, 0));
    mg_map_get(&s->fuel, call, &fuel);
    MG_CODE(s->at, "setp.lt.s64", p, i, mg_expr_opnd(&s->w->here, param(s, call, 1)));
    MG_CODE(s->at, "setp.lt.and.u32", p, (mg_id)fuel, MG_PROBE_FUEL, p);
    MG_CODE(s->at, "add.u32", (mg_id)fuel, (mg_id)fuel, 1);
    MG_CODE(s->at, "selp.b64", r, 1, 0, p);
    return (struct mg_expr_val){.kind = MG_VAL_REG, .reg = r};
}

static void emit_event(struct splice *s, mg_id call)
{
    enum mg_expr_value v;
    struct mg_probe_known k = mg_probe_param(&s->f, call, 0);
    const char *name = mg_probe_event(s->f.p, &k);
    if (name) mg_expr_event(s->w, name, mg_probe_call_of(s->m, call, &v) == MG_PC_end);
}

static void emit_record(struct splice *s, mg_id call)
{
    struct mg_expr_val values[MG_EXPR_C_EMITS];
    uint32_t n = mg_probe_args(s->m, call);
    for (uint32_t i = 0; i < n; i++) values[i] = param(s, call, i);
    mg_expr_emit(s->w, s->fn->emit, values, n);
}

static void emit_call(struct splice *s, mg_id call)
{
    struct mg_expr_here *h = &s->w->here;
    struct mg_expr_val r = {0}, ix = param(s, call, 0);
    enum mg_expr_value v;
    mg_id to = mg_probe_param_var(s->m, call, UINT32_MAX);
    switch (mg_probe_call_of(s->m, call, &v)) {
    case MG_PC_update:
        emit_update(s, call);
        break;
    case MG_PC_skip:
        mg_expr_skip(s->w);
        break;
    case MG_PC_begin:
    case MG_PC_end:
        emit_event(s, call);
        break;
    case MG_PC_emit:
        emit_record(s, call);
        break;
    case MG_PC_below:
        r = emit_below(s, call);
        break;
    case MG_PC_arg:
        r = (struct mg_expr_val){.kind = MG_VAL_REG, .reg = mg_value_param(s->at, (uint32_t)ix.num)};
        break;
    case MG_PC_var:
        r = (struct mg_expr_val){.kind = MG_VAL_REG, .reg = h->vars[ix.num]};
        break;
    case MG_PC_set_var: {
        struct mg_opnd x = mg_expr_opnd(h, param(s, call, 1));
        MG_CODE(s->at, x.kind == MG_OPND_imm ? "mov.u64" : "mov.b64", h->vars[ix.num], x);
        break;
    }
    case MG_PC_value:
        r = v == MG_EV_clock  ? (struct mg_expr_val){.kind = MG_VAL_REG, .reg = mg_value_clock(s->at)}
            : v == MG_EV_time ? (struct mg_expr_val){.kind = MG_VAL_REG, .reg = mg_value_globaltimer(s->at)}
                              : mg_expr_value_at(h, v);
        break;
    default:
        break;
    }
    if (to) s->params[to] = r;
}

/* ---- instructions ------------------------------------------------------------------------------------------ */

static struct mg_opnd our_label(struct splice *s, mg_id label)
{
    uint64_t to;
    if (!mg_map_get(&s->labels, label, &to)) {
        to = mg_code_label(s->at);
        mg_map_set(&s->labels, label, to);
    }
    return mg_o_label((mg_id)to);
}

static void emit_arithmetic(struct splice *s, const struct mg_node *n, const struct mg_form *form)
{
    struct mg_opnd o[8];
    const struct mg_opnd *from = &s->m->opnds.at[n->opnd];
    const char *text = mg_name(s->m, form->text);
    uint32_t count = MG_MIN(n->n_opnds, (uint32_t)MG_COUNT_OF(o));
    if (from[0].kind == MG_OPND_reg && s->f.regs[from[0].id - s->fn->reg_lo].kind != MG_PK_NO)
        return; /* known: whoever reads it has it */
    for (uint32_t i = 1; i < count; i++) o[i] = our_opnd(s, &from[i]);
    o[0] = mg_o_reg(our_reg(s, from[0].id));
    if (form->op == MG_OP_cvta) text = "mov.b64";
    mg_code(s->at, text, o, count);
}

static void emit_inst(struct splice *s, mg_id id)
{
    const struct mg_node *n = &s->m->nodes.at[id];
    const struct mg_form *form = mg_node_form(s->m, n);
    const struct mg_opnd *o = &s->m->opnds.at[n->opnd];
    struct mg_opnd guard = {.kind = MG_OPND_reg, .id = n->guard};
    bool is_not = n->flags & MG_NF_GUARD_NOT;
    if (n->guard) {
        struct mg_probe_known g = mg_probe_operand(&s->f, &guard, 1);
        if (g.kind == MG_PK_NUM && !g.num != is_not) return; /* never */
        if (g.kind != MG_PK_NO)
            guard.id = 0;
        else
            guard.id = our_reg(s, n->guard);
    }
    if (guard.id) mg_code_push_guard(s->at, guard.id, is_not);
    if (form->op == MG_OP_call) {
        emit_call(s, id);
    } else if (form->op == MG_OP_ret) {
        MG_CODE(s->at, "bra", mg_o_label(s->end));
    } else if (form->op == MG_OP_bra) {
        MG_CODE(s->at, "bra", our_label(s, o[0].id));
    } else if (form->op == MG_OP_st) {
        s->params[o[0].id] = our_value(s, &o[1]);
    } else if (form->op == MG_OP_ld) {
        struct mg_expr_val v = s->params[o[1].id];
        if (s->f.regs[o[0].id - s->fn->reg_lo].kind == MG_PK_NO)
            MG_CODE(s->at, "mov.b64", our_reg(s, o[0].id),
                    mg_expr_reg(&s->w->here, v.kind == MG_VAL_NONE ? mg_expr_imm(0) : v));
    } else {
        emit_arithmetic(s, n, form);
    }
    if (guard.id) mg_code_pop_guard(s->at);
}

/* ---- the whole -------------------------------------------------------------------------------------------- */

static bool is_reached(const struct splice *s, mg_id id)
{
    uint32_t b = mg_cfg_block_of(s->fn->cfg, id);
    return b != MG_NO_BLOCK && s->f.reached[b];
}

/* Updates that everything is known of: counts of blocks tell them, without code. True: that was all. */
static bool all_derived(struct splice *s, bool place)
{
    bool all = true;
    MG_EACH_NODE(s->m, &s->m->funcs.at[s->fn->func], id)
    {
        enum mg_expr_value v;
        if (s->m->nodes.at[id].kind != MG_NODE_inst || mg_node_form(s->m, &s->m->nodes.at[id])->op != MG_OP_call ||
            !is_reached(s, id))
            continue;
        enum mg_probe_call call = mg_probe_call_of(s->m, id, &v);
        bool event = call == MG_PC_begin || call == MG_PC_end;
        if (call == MG_PC_set_var || call == MG_PC_skip || call == MG_PC_emit || event) all = false;
        s->w->pl->has_events |= event;
        s->w->pl->emits |= call == MG_PC_emit;
        if (call != MG_PC_update) continue;
        mg_id var = mg_probe_param_var(s->m, id, 1);
        const struct mg_expr_update *up = update_of(s, id);
        bool count = up && s->w->pl->e->maps[up->map].agg == MG_EA_count;
        if (mg_cfg_block_of(s->fn->cfg, id) || !var || (!count && mg_probe_param(&s->f, id, 1).kind != MG_PK_NUM))
            all = false;
        else if (place)
            emit_update(s, id);
        else
            all &= up && s->w->counted && s->w->always &&
                   mg_expr_site_keys(up, &s->w->spot->env) + 1 == (uint64_t)1 << up->n_keys;
    }
    return all;
}

static void emit_all(struct splice *s)
{
    const struct mg_func *f = &s->m->funcs.at[s->fn->func];
    s->at = s->w->here.at;
    s->end = mg_code_label(s->at);
    MG_EACH_NODE(s->m, f, id)
    {
        enum mg_expr_value v;
        const struct mg_node *n = &s->m->nodes.at[id];
        if (n->kind != MG_NODE_inst || mg_node_form(s->m, n)->op != MG_OP_call ||
            mg_probe_call_of(s->m, id, &v) != MG_PC_below)
            continue;
        mg_id fuel = mg_code_temp(s->at, MG_TYPE_b32);
        MG_CODE(s->at, "mov.u32", fuel, 0);
        mg_map_set(&s->fuel, id, fuel);
    }
    MG_EACH_NODE(s->m, f, id)
    {
        const struct mg_node *n = &s->m->nodes.at[id];
        if (n->kind == MG_NODE_inst && is_reached(s, id))
            emit_inst(s, id);
        else if (n->kind == MG_NODE_label && s->m->labels.at[n->ref].targeted)
            mg_code_place(s->at, our_label(s, n->ref).id);
    }
    mg_code_place(s->at, s->end);
}

void mg_probe_place(struct mg_expr_walk *w, const struct mg_probe_fn *fn)
{
    const struct mg_probe *p = w->pl->conf->probe;
    struct mg_arena *scratch = mg_patch_scratch(w->pl->p);
    struct splice s = {.w = w, .fn = fn, .m = p->m, .f = {.p = p, .fn = fn, .result = result_of}};
    s.f.user = &s;
    mg_probe_fold_run(&s.f, false, scratch);
    s.regs = mg_arena_array(scratch, mg_id, fn->reg_hi - fn->reg_lo + 1);
    s.params = mg_arena_array(scratch, struct mg_expr_val, p->m->vars.n);
    if (w->pl->dry || all_derived(&s, false))
        all_derived(&s, true);
    else if (mg_expr_begin(w))
        emit_all(&s);
    mg_map_release(&s.labels);
    mg_map_release(&s.fuel);
}
