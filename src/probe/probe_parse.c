/* Reads compiled probes and proves that they can do no harm: no memory but their maps, no waiting, no
 * loop without an end. What is refused is named with the line of the source it came from. */
#include <stdlib.h>
#include <string.h>

#include "analysis/dom.h"
#include "analysis/indvar.h"
#include "analysis/loop.h"
#include "ptx/ptx.h"
#include "probe/probe.h"

struct checker {
    struct mg_probe *p;
    struct mg_probe_fn *fn;
    const char *file;
    struct mg_diag *d;
    uint32_t n_errors;
};

/* ---- messages ------------------------------------------------------------------------------------- */

static void refuse(struct checker *c, mg_id node, const char *hint, const char *fmt, ...) MG_PRINTF(4, 5);
static void refuse(struct checker *c, mg_id node, const char *hint, const char *fmt, ...)
{
    const struct mg_module *m = c->p->m;
    struct mg_buf text = MG_BUF_INIT;
    const char *file = c->file;
    uint32_t line = 0, col = 0;
    va_list ap;
    for (mg_id id = node; id && !line; id = m->nodes.at[id].prev)
        if (m->nodes.at[id].kind == MG_NODE_loc) {
            const struct mg_loc *loc = &m->locs.at[m->nodes.at[id].ref];
            line = loc->line;
            col = loc->col;
            for (uint32_t i = 1; i < m->files.n; i++)
                if (m->files.at[i].index == loc->file) file = mg_name(m, m->files.at[i].path);
        }
    if (!line && node) line = m->nodes.at[node].line; /* of the PTX */
    va_start(ap, fmt);
    mg_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    (void)mg_diag_add(c->d, MG_ERR_UNSUPPORTED, MG_SEV_ERROR, file, line, col, hint, "%s", text.at);
    mg_buf_release(&text);
    c->n_errors++;
}

/* ---- strings ----------------------------------------------------------------------------------------- */

/* Text of a variable that is initialised by bytes. */
static const char *string_of(struct mg_probe *p, const struct mg_var *v)
{
    const struct mg_module *m = p->m;
    char *text = mg_arena_zalloc(&p->arena, v->n_inits + 1u);
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_inits; i++) {
        const struct mg_init *in = &m->inits.at[v->first_init + i];
        if (in->kind == MG_INIT_open || in->kind == MG_INIT_close) continue;
        if (in->kind != MG_INIT_int || !in->val) break;
        text[n++] = (char)in->val;
    }
    return text;
}

static void read_strings(struct checker *c)
{
    struct mg_probe *p = c->p;
    const struct mg_module *m = p->m;
    p->maps = mg_arena_array(&p->arena, struct mg_probe_map, m->vars.n);
    p->fns = mg_arena_array(&p->arena, struct mg_probe_fn, m->vars.n);
    p->events = mg_arena_array(&p->arena, struct mg_probe_event, m->vars.n);
    for (mg_id v = 1; v < m->vars.n; v++) {
        const struct mg_var *var = &m->vars.at[v];
        const char *name = mg_name(m, var->name);
        if (var->func || !var->n_inits || (var->space != MG_SPACE_global && var->space != MG_SPACE_const)) continue;
        const char *text = string_of(p, var);
        size_t n = strlen(name);
        if (!strncmp(text, "map ", 4)) {
            p->maps[p->n_maps++] =
                (struct mg_probe_map){.name = name, .decl = text + 4, .var = v, .update = UINT32_MAX};
        } else if (!strcmp(text, "event")) {
            p->events[p->n_events++] = (struct mg_probe_event){name, v};
        } else if (!strncmp(text, "site ", 5) && n > 5 && !strcmp(name + n - 5, "_site")) {
            char *fn = mg_arena_strndup(&p->arena, name, n - 5);
            mg_id func = mg_module_find_func(m, fn);
            if (!func || !m->funcs.at[func].defined)
                refuse(c, 0, NULL, "probe %s has a site, but no body", fn);
            else
                p->fns[p->n_fns++] = (struct mg_probe_fn){.name = fn, .site = text + 5, .func = func};
        }
    }
    if (!p->n_fns && !c->n_errors) refuse(c, 0, "MG_PROBE(name, \"sites\") { ... }", "no probe in this file");
}

/* ---- instructions ---------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint8_t call, n_args;
} calls[] = {{"mg_update", MG_PC_update, 2},     {"mg_update1", MG_PC_update, 3}, {"mg_update2", MG_PC_update, 4},
             {"mg_update3", MG_PC_update, 5},    {"mg_arg", MG_PC_arg, 1},        {"mg_var", MG_PC_var, 1},
             {"mg_set_var", MG_PC_set_var, 2},   {"mg_skip", MG_PC_skip, 0},      {"mg_below", MG_PC_below, 2},
             {"mg_event_begin", MG_PC_begin, 1}, {"mg_event_end", MG_PC_end, 1},  {"mg_emit1", MG_PC_emit, 1},
             {"mg_emit2", MG_PC_emit, 2},        {"mg_emit3", MG_PC_emit, 3},     {"mg_emit4", MG_PC_emit, 4}};

static mg_id callee_of(const struct mg_module *m, mg_id node)
{
    const struct mg_node *n = &m->nodes.at[node];
    for (uint32_t i = 0; i < n->n_opnds; i++)
        if (m->opnds.at[n->opnd + i].kind == MG_OPND_func) return m->opnds.at[n->opnd + i].id;
    return 0;
}

enum mg_probe_call mg_probe_call_of(const struct mg_module *m, mg_id node, enum mg_expr_value *value)
{
    mg_id f = callee_of(m, node);
    const char *name = f ? mg_name(m, m->funcs.at[f].name) : "";
    *value = MG_EV_none;
    for (unsigned i = 0; i < MG_COUNT_OF(calls); i++)
        if (!strcmp(name, calls[i].name)) return (enum mg_probe_call)calls[i].call;
    if (strncmp(name, "mg_", 3)) return MG_PC_none;
    for (unsigned v = 1; v < MG_EV_COUNT; v++) {
        const char *text = mg_expr_value_text((enum mg_expr_value)v), *at = name + 3;
        while (*at && *text && (*at == *text || (*at == '_' && *text == '.'))) at++, text++;
        if (*at || *text || mg_expr_value_flags((enum mg_expr_value)v) & MG_EVF_STR) continue;
        *value = (enum mg_expr_value)v;
        return MG_PC_value;
    }
    return MG_PC_none;
}

uint32_t mg_probe_args(const struct mg_module *m, mg_id node)
{
    mg_id f = callee_of(m, node);
    for (unsigned i = 0; f && i < MG_COUNT_OF(calls); i++)
        if (!strcmp(mg_name(m, m->funcs.at[f].name), calls[i].name)) return calls[i].n_args;
    return 0;
}

const char *mg_probe_event(const struct mg_probe *p, const struct mg_probe_known *k)
{
    for (uint32_t i = 0; i < p->n_events; i++)
        if (k->kind == MG_PK_MAP && p->events[i].var == k->id) return p->events[i].name;
    return NULL;
}

static bool is_arithmetic(const struct mg_form *f)
{
    switch (f->op) {
    case MG_OP_sqrt:
    case MG_OP_rcp:
    case MG_OP_ex2:
    case MG_OP_lg2:
    case MG_OP_testp:
    case MG_OP_copysign:
    case MG_OP_cvta:
        return true;
    default:
        return mg_op_is_plain(f->op);
    }
}

static void check_call(struct checker *c, const struct mg_probe_fold *f, mg_id id)
{
    const struct mg_module *m = c->p->m;
    enum mg_expr_value value;
    enum mg_probe_call call = mg_probe_call_of(m, id, &value);
    mg_id callee = callee_of(m, id);
    const char *name = callee ? mg_name(m, m->funcs.at[callee].name) : "?";
    struct mg_probe_known k = mg_probe_param(f, id, 0);
    bool is_map = false;
    switch (call) {
    case MG_PC_none:
        refuse(c, id, "functions of a probe's own are static inline",
               "call of %s, which is no function of margay/probe.h", name);
        break;
    case MG_PC_value:
        c->fn->uses[value] = true;
        break;
    case MG_PC_update:
        for (uint32_t i = 0; i < c->p->n_maps && i < 64; i++) {
            bool is_it = k.kind == MG_PK_MAP && c->p->maps[i].var == k.id;
            is_map |= is_it;
            c->fn->maps |= (uint64_t)is_it << i;
        }
        if (!is_map) refuse(c, id, NULL, "the map of an update is chosen while the probe runs, or is no MG_MAP");
        break;
    case MG_PC_arg:
    case MG_PC_var:
    case MG_PC_set_var:
        if (k.kind != MG_PK_NUM || k.num >= (call == MG_PC_arg ? 100 : MG_EXPR_C_VARS))
            refuse(c, id, NULL, "%s wants a constant below %d", name, call == MG_PC_arg ? 100 : MG_EXPR_C_VARS);
        break;
    case MG_PC_begin:
    case MG_PC_end:
        if (!mg_probe_event(c->p, &k))
            refuse(c, id, "MG_EVENT(name)", "the event of %s is chosen while the probe runs, or is no MG_EVENT", name);
        break;
    case MG_PC_emit:
        c->fn->emits = true;
        break;
    case MG_PC_skip:
        c->fn->skips = true;
        break;
    case MG_PC_below:
        k = mg_probe_param(f, id, 1);
        if (k.kind != MG_PK_NUM || k.num > MG_PROBE_ROUNDS)
            refuse(c, id, NULL, "the bound of a loop is a constant up to %d", MG_PROBE_ROUNDS);
        break;
    }
}

static void check_inst(struct checker *c, const struct mg_probe_fold *f, mg_id id)
{
    const struct mg_module *m = c->p->m;
    const struct mg_node *n = &m->nodes.at[id];
    const struct mg_form *form = mg_node_form(m, n);
    const struct mg_opnd *o = &m->opnds.at[n->opnd];
    bool param = form->space == MG_SPACE_param && n->n_opnds == 2;
    if (form->op == MG_OP_call) {
        if (n->guard) refuse(c, id, NULL, "a call under a predicate");
        check_call(c, f, id);
    } else if (form->op == MG_OP_ld && param && o[1].kind == MG_OPND_addr && o[1].sub == MG_OPND_var &&
               !o[1].val) { /* what a call gave */
    } else if (form->op == MG_OP_st && param && o[0].kind == MG_OPND_addr && o[0].sub == MG_OPND_var && !o[0].val) {
    } else if (form->op == MG_OP_bra || (form->op == MG_OP_ret && !n->guard)) {
    } else if (form->op_flags & (MG_OPF_READS | MG_OPF_WRITES | MG_OPF_ATOMIC)) {
        refuse(c, id, "a probe keeps things in maps (MG_MAP) and in mg_var", "memory access %s",
               mg_name(m, form->text));
    } else if (!is_arithmetic(form)) {
        refuse(c, id, NULL, "%s is not for probes", mg_name(m, form->text));
    }
    mg_id regs[16], guard = n->guard;
    uint32_t n_regs = mg_node_uses(m, id, regs, 16),
             n_all = n_regs + mg_node_defs(m, id, regs + MG_MIN(n_regs, 16u), 16 - MG_MIN(n_regs, 16u));
    bool own = n_all <= 16 && (!guard || (guard >= c->fn->reg_lo && guard < c->fn->reg_hi));
    for (uint32_t i = 0; i < MG_MIN(n_all, 16u); i++) own &= regs[i] >= c->fn->reg_lo && regs[i] < c->fn->reg_hi;
    if (!own) {
        refuse(c, id, NULL, "%s with registers that are not the probe's own", mg_name(m, form->text));
        return;
    }
    bool moves = form->op == MG_OP_mov || form->op == MG_OP_cvta,
         single = n->n_opnds && o[0].kind == MG_OPND_reg && c->fn->n_defs[o[0].id - c->fn->reg_lo] == 1;
    if (is_arithmetic(form) &&
        (n->n_opnds < 2 || n->n_opnds > 5 || o[0].kind != MG_OPND_reg || o[0].sub || m->regs.at[o[0].id].vec))
        refuse(c, id, NULL, "%s with these operands is not for probes", mg_name(m, form->text));
    if (param &&
        (form->op == MG_OP_ld ? o[0].kind != MG_OPND_reg || mg_type_bits((enum mg_type)m->regs.at[o[0].id].type) != 64
                              : o[1].kind == MG_OPND_reg && mg_type_bits((enum mg_type)m->regs.at[o[1].id].type) != 64))
        refuse(c, id, NULL, "%s: what functions of margay/probe.h take and give has 64 bits", mg_name(m, form->text));
    for (uint32_t i = 1; i < n->n_opnds && is_arithmetic(form); i++)
        if (mg_probe_operand(f, &o[i], 64).kind == MG_PK_MAP && !(moves && single))
            refuse(c, id, NULL, "arithmetic on the address of a map");
    for (uint32_t i = 0; i < n->n_opnds; i++)
        if (o[i].kind == MG_OPND_sreg)
            refuse(c, id, "see the functions of margay/probe.h", "special register %s",
                   mg_sreg_text((enum mg_sreg)o[i].id));
        else if (o[i].kind == MG_OPND_vec || o[i].kind == MG_OPND_pair)
            refuse(c, id, NULL, "%s with vector operands is not for probes", mg_name(m, form->text));
}

/* ---- loops --------------------------------------------------------------------------------------------------- */

static struct mg_probe_known never_below(void *user, mg_id call)
{
    const struct mg_probe *p = user;
    enum mg_expr_value v;
    return (struct mg_probe_known){.kind = mg_probe_call_of(p->m, call, &v) == MG_PC_below ? MG_PK_NUM : MG_PK_NO};
}

/* Blocks that wait for no other: with mg_below saying no for ever and loops of constant rounds cut where
 * they go back, all of them, or something goes round. */
struct rounds {
    const struct mg_cfg *g;
    const struct mg_loops *loops;
    const struct mg_ivs *ivs;
    struct mg_probe_fold f;
    uint32_t *waits; /* block -> ways into it that are open */
};

static bool is_open(const struct rounds *r, uint32_t b, uint32_t s)
{
    uint32_t to = r->g->edges[r->g->blocks[b].succ_at + s], l = r->loops->loop_of[to];
    if (!mg_probe_may_go(&r->f, b, s)) return false;
    bool back = l != MG_NO_LOOP && r->loops->loops[l].header == to && r->loops->loops[l].n_headers == 1 &&
                mg_loops_contains(r->loops, l, b);
    return !(back && r->ivs->exact[l] && r->ivs->exact[l] <= MG_PROBE_ROUNDS);
}

static bool goes_round(struct rounds *r)
{
    const struct mg_cfg *g = r->g;
    uint32_t *ready = mg_xcalloc(g->n_blocks + 1, sizeof *ready), n = 0, done = 0;
    for (uint32_t b = 0; b < g->n_blocks; b++)
        for (uint32_t s = 0; s < g->blocks[b].n_succs; s++)
            if (is_open(r, b, s)) r->waits[g->edges[g->blocks[b].succ_at + s]]++;
    for (uint32_t b = 0; b < g->n_blocks; b++)
        if (!r->waits[b]) ready[n++] = b;
    while (done < n) {
        uint32_t b = ready[done++];
        for (uint32_t s = 0; s < g->blocks[b].n_succs; s++)
            if (is_open(r, b, s) && !--r->waits[g->edges[g->blocks[b].succ_at + s]])
                ready[n++] = g->edges[g->blocks[b].succ_at + s];
    }
    free(ready);
    return done < g->n_blocks;
}

static void check_loops(struct checker *c)
{
    const struct mg_cfg *g = c->fn->cfg;
    struct mg_dom *dom = mg_dom_new(g);
    struct mg_loops *loops = mg_loops_new(g);
    struct mg_ivs *ivs = mg_ivs_new(g, dom, loops);
    struct rounds r = {.g = g,
                       .loops = loops,
                       .ivs = ivs,
                       .f = {.p = c->p, .fn = c->fn, .result = never_below, .user = c->p},
                       .waits = mg_xcalloc(g->n_blocks + 1, sizeof *r.waits)};
    mg_probe_fold_run(&r.f, true, &c->p->arena);
    uint32_t b = 0;
    if (goes_round(&r)) {
        while (b + 1 < g->n_blocks && !r.waits[b]) b++;
        refuse(c, g->blocks[b].first, "MG_FOR(i, most) with a constant bound, and break to leave it early",
               "a loop of which nothing proves that it ends within %d rounds", MG_PROBE_ROUNDS);
    }
    free(r.waits);
    mg_ivs_free(ivs);
    mg_loops_free(loops);
    mg_dom_free(dom);
}

/* ---- a probe ----------------------------------------------------------------------------------------------------- */

static void check_fn(struct checker *c, struct mg_probe_fn *fn)
{
    struct mg_module *m = c->p->m;
    c->fn = fn;
    fn->cfg = mg_cfg_new(m, fn->func);
    fn->reg_lo = UINT32_MAX;
    for (mg_id r = 1; r < m->regs.n; r++)
        if (m->regs.at[r].func == fn->func) {
            fn->reg_lo = MG_MIN(fn->reg_lo, r);
            fn->reg_hi = r + 1;
        }
    fn->reg_lo = MG_MIN(fn->reg_lo, fn->reg_hi);
    fn->n_defs = mg_arena_zalloc(&c->p->arena, fn->reg_hi - fn->reg_lo + 1u);
    MG_EACH_NODE(m, &m->funcs.at[fn->func], id)
    {
        mg_id defs[16];
        uint32_t n = m->nodes.at[id].kind == MG_NODE_inst ? mg_node_defs(m, id, defs, 16) : 0;
        for (uint32_t i = 0; i < n && i < 16; i++) {
            uint8_t *d = defs[i] >= fn->reg_lo && defs[i] < fn->reg_hi ? &fn->n_defs[defs[i] - fn->reg_lo] : NULL;
            if (d && *d < 2) *d = (uint8_t)(*d + (m->nodes.at[id].guard ? 2 : 1));
        }
    }
    if (m->funcs.at[fn->func].n_params || m->funcs.at[fn->func].n_rets)
        refuse(c, m->funcs.at[fn->func].first_node, NULL, "probe %s takes or gives something", fn->name);
    struct mg_probe_fold f = {.p = c->p, .fn = fn};
    mg_probe_fold_run(&f, true, &c->p->arena);
    MG_EACH_NODE(m, &m->funcs.at[fn->func], id)
    {
        if (m->nodes.at[id].kind == MG_NODE_inst)
            check_inst(c, &f, id);
        else if (m->nodes.at[id].kind == MG_NODE_decl && m->decls.at[m->nodes.at[id].ref].space != MG_SPACE_reg &&
                 m->decls.at[m->nodes.at[id].ref].space != MG_SPACE_param)
            refuse(c, id, "a probe keeps things in maps (MG_MAP) and in mg_var", "an array or a variable in memory");
    }
    if (!c->n_errors) check_loops(c);
}

/* clang 14 writes labels of its own into the middle of calls: nothing refers to them. */
static char *strip_labels(const char *text, size_t *bytes)
{
    char *out = mg_xmalloc(*bytes + 1);
    size_t n = 0;
    for (const char *at = text, *end = text + *bytes; at < end;) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((eol ? eol + 1 : end) - at);
        if (len < 4 || memcmp(at, "Ltmp", 4)) {
            memcpy(out + n, at, len);
            n += len;
        }
        at += len;
    }
    out[n] = 0;
    *bytes = n;
    return out;
}

enum mg_err mg_probe_parse(const char *ptx, size_t bytes, const char *file, struct mg_probe **out, struct mg_diag *d)
{
    struct mg_probe *p = mg_xcalloc(1, sizeof *p);
    struct checker c = {.p = p, .d = d, .file = file};
    char *text = strip_labels(ptx, &bytes);
    *out = NULL;
    c.file = mg_arena_strndup(&p->arena, file, strlen(file));
    enum mg_err err = mg_ptx_parse(text, bytes, c.file, &p->m, d);
    free(text);
    if (!err) {
        read_strings(&c);
        for (uint32_t i = 0; i < p->n_fns; i++) check_fn(&c, &p->fns[i]);
        if (c.n_errors) err = MG_ERR_UNSUPPORTED;
    }
    if (err)
        mg_probe_free(p);
    else
        *out = p;
    return err;
}

void mg_probe_free(struct mg_probe *p)
{
    if (!p) return;
    for (uint32_t i = 0; i < p->n_fns; i++)
        if (p->fns[i].cfg) mg_cfg_free(p->fns[i].cfg);
    if (p->m) mg_module_free(p->m);
    mg_arena_release(&p->arena);
    free(p);
}

const struct mg_probe_fn *mg_probe_find(const struct mg_probe *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_fns; i++)
        if (!strcmp(p->fns[i].name, name)) return &p->fns[i];
    return NULL;
}

void mg_probe_text(const struct mg_probe *p, const char *path, struct mg_buf *out)
{
    mg_buf_printf(out, "probe \"%s\"\n", path);
    for (uint32_t i = 0; i < p->n_maps; i++) mg_buf_printf(out, "map @%s%s\n", p->maps[i].name, p->maps[i].decl);
    for (uint32_t i = 0; i < p->n_fns; i++) mg_buf_printf(out, "%s { call %s }\n", p->fns[i].site, p->fns[i].name);
}

/* ---- with the program that calls them ------------------------------------------------------------------ */

static void add_uses(const struct mg_expr_node *n, bool *uses)
{
    if (n->kind == MG_EK_VALUE) uses[n->value] = true;
    for (unsigned i = 0; i < n->n_args; i++) add_uses(n->args[i], uses);
}

static void join_call(struct mg_expr *e, const struct mg_probe *p, struct mg_expr_clause *c,
                      const struct mg_probe_fn *fn)
{
    c->skips |= fn->skips;
    for (unsigned v = 1; v < MG_EV_COUNT; v++) {
        c->uses[v] |= fn->uses[v];
        e->uses[v] |= fn->uses[v];
    }
    for (uint32_t i = 0; i < p->n_maps && i < 64; i++) {
        const struct mg_expr_update *up = fn->maps >> i & 1 ? e->updates[p->maps[i].update] : NULL;
        for (uint32_t k = 0; up && k < up->n_keys; k++) add_uses(up->keys[k], c->uses);
    }
}

enum mg_err mg_expr_join(struct mg_expr *e, struct mg_probe *p, const char *name, struct mg_diag *d)
{
    for (uint32_t i = 0; i < p->n_maps; i++) {
        for (uint32_t u = 0; u < e->n_updates && p->maps[i].update == UINT32_MAX; u++)
            if (!strcmp(e->maps[e->updates[u]->map].name + 1, p->maps[i].name)) p->maps[i].update = u;
        if (p->maps[i].update == UINT32_MAX)
            return mg_diag_err(d, MG_ERR_INPUT, "%s: map %s is not the program's", name, p->maps[i].name);
    }
    for (struct mg_expr_clause *c = e->clauses; c; c = c->next)
        for (const struct mg_expr_stmt *s = c->body; s; s = s->next) {
            const struct mg_probe_fn *fn = s->kind == MG_ES_CALL ? mg_probe_find(p, s->name) : NULL;
            if (s->kind == MG_ES_CALL && !fn)
                return mg_diag_err(d, MG_ERR_INPUT, "%s: there is no probe %s", name, s->name);
            if (fn) join_call(e, p, c, fn);
        }
    for (uint32_t i = 0; i < p->n_fns; i++) {
        if (!p->fns[i].emits) continue;
        if (e->n_emits == MG_EXPR_EMITS)
            return mg_diag_err(d, MG_ERR_LIMIT, "%s: more than %d emits", name, MG_EXPR_EMITS);
        p->fns[i].emit = e->n_emits;
        e->emits[e->n_emits++] = p->fns[i].name;
    }
    return mg_expr_recheck(e, name, d);
}
