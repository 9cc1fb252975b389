/* A one-liner in a kernel: for every spot of every clause, the updates of maps.
 *
 *   everything known beforehand    a site without cells: derived from block counts, no code at all
 *   keys known at the site         cells, one run for all sites with equal keys; counts and sums of the
 *                                  first of them in registers of every thread (mg_patch_sum)
 *   other keys                     an entry of the update's hash table
 *
 * analyze walks the clauses without emitting, to learn whether block counts are wanted; instrument walks
 * them again. */
#include "probe/expr_walk.h"

enum { MAX_SUMS = 12, NO_SUM = UINT32_MAX };

/* ---- what the site tells --------------------------------------------------------------------------- */

/* Values that the profile's record of a site repeats exactly. */
static bool is_of_site(const struct mg_expr_node *n, const struct mg_expr_env *env)
{
    if (n->kind == MG_EK_VALUE) {
        if (n->value == MG_EV_width)
            return env->values[MG_EV_width].known &&
                   mg_expr_op_width(env->values[MG_EV_op].str) == (uint32_t)env->values[MG_EV_width].num;
        return mg_expr_value_flags((enum mg_expr_value)n->value) & MG_EVF_SITE;
    }
    if (n->kind != MG_EK_NUM && n->kind != MG_EK_STR && n->kind != MG_EK_OP && n->kind != MG_EK_FUNC) return false;
    for (unsigned i = 0; i < n->n_args; i++)
        if (!is_of_site(n->args[i], env)) return false;
    return true;
}

uint32_t mg_expr_site_keys(const struct mg_expr_update *up, const struct mg_expr_env *env)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < up->n_keys; i++)
        if (is_of_site(up->keys[i], env) && mg_expr_eval(up->keys[i], env).known) set |= 1u << i;
    return set;
}

/* Number of an update's tuple of site keys; *fresh: it is new. */
static uint32_t tuple_of(struct mg_expr_placer *pl, const struct mg_expr_update *up, const struct mg_expr_env *env,
                         uint32_t keys, bool *fresh)
{
    struct mg_buf text = MG_BUF_INIT;
    mg_buf_printf(&text, "%u/%x", up->ix, keys);
    for (uint32_t i = 0; i < up->n_keys; i++) {
        if (!(keys >> i & 1)) continue;
        struct mg_expr_const c = mg_expr_eval(up->keys[i], env);
        if (c.is_str)
            mg_buf_printf(&text, "|\"%s", c.str);
        else
            mg_buf_printf(&text, "|%lld", (long long)c.num);
    }
    mg_str id = mg_intern_add(&pl->tuples, text.at, text.n);
    *fresh = pl->entries.n <= id;
    while (pl->entries.n <= id) *mg_vec_push(&pl->entries) = (struct mg_expr_entry){0};
    mg_buf_release(&text);
    return id;
}

/* ---- reserving ---------------------------------------------------------------------------------------- */

static uint32_t reserve_site(struct mg_expr_walk *w, const struct mg_expr_update *up, uint32_t n, enum mg_merge rule,
                             enum mg_expr_note kind, uint32_t payload)
{
    const struct mg_expr_spot *s = w->spot;
    uint8_t where = s->site->where;
    uint32_t note = mg_expr_note(up->ix, kind, payload);
    if (where == MG_EW_INST) return mg_patch_site(w->pl->p, MG_SITE_INST, s->node, s->block, n, rule, note);
    if (where == MG_EW_EDGE || where == MG_EW_BACK_EDGE)
        return mg_patch_site(w->pl->p, MG_SITE_EDGE, s->succ, s->block, n, rule, note);
    return mg_patch_site(w->pl->p, MG_SITE_BLOCK, 0, s->block, n, rule, note);
}

static enum mg_merge rule_of(const struct mg_expr_map *m)
{
    return m->agg == MG_EA_min || m->agg == MG_EA_max ? MG_MERGE_MAX : MG_MERGE_SUM;
}

static struct mg_expr_entry *entry_of(struct mg_expr_walk *w, const struct mg_expr_update *up,
                                      const struct mg_expr_map *m, uint32_t keys)
{
    struct mg_expr_placer *pl = w->pl;
    bool fresh;
    uint32_t id = tuple_of(pl, up, &w->spot->env, keys, &fresh), n = mg_expr_map_cells(m);
    struct mg_expr_entry *e = &pl->entries.at[id];
    if (!fresh) return e;
    e->cell = reserve_site(w, up, n, rule_of(m), MG_EN_CELLS, 0);
    bool sums = m->agg == MG_EA_count || m->agg == MG_EA_sum || m->agg == MG_EA_avg;
    for (uint32_t i = 0; i < 2; i++) {
        e->sums[i] = NO_SUM;
        if (!sums || i >= n || pl->n_sums + n - i > MAX_SUMS) continue;
        e->sums[i] = mg_patch_sum(pl->p, e->cell + i);
        pl->n_sums++;
    }
    return e;
}

/* ---- updates ---------------------------------------------------------------------------------------------- */

static struct mg_expr_val value_of(struct mg_expr_walk *w, const struct mg_expr_update *up)
{
    if (up->value) return mg_expr_code(&w->here, up->value);
    return w->given && w->pl->e->maps[up->map].agg != MG_EA_count ? *w->given : mg_expr_imm(1);
}

/* Bucket of a value, as b32. */
static mg_id bucket_of(struct mg_expr_walk *w, const struct mg_expr_map *m, struct mg_expr_val v)
{
    struct mg_code_at *at = w->here.at;
    mg_id x = mg_expr_reg(&w->here, v), b = mg_code_temp(at, MG_TYPE_b32), p = mg_code_temp(at, MG_TYPE_pred);
    if (m->agg == MG_EA_hist) { /* below 0: 0; 0: 1; 2^k and more: k + 2 */
        MG_CODE(at, "clz.b64", b, x);
        MG_CODE(at, "sub.s32", b, MG_EXPR_HIST, b);
        MG_CODE(at, "setp.lt.s64", p, x, 0);
        MG_CODE(at, "selp.b32", b, 0, b, p);
        return b;
    }
    mg_id q = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "max.s64", q, x, mg_o_imm(m->lo - (m->lo > INT64_MIN)));
    MG_CODE(at, "min.s64", q, q, mg_o_imm(m->hi));
    MG_CODE(at, "sub.s64", q, q, mg_o_imm(m->lo));
    MG_CODE(at, "add.s64", q, q, mg_o_imm(m->step)); /* -1 below: between 0 and step */
    MG_CODE(at, "div.u64", q, q, mg_o_imm(m->step));
    MG_CODE(at, "cvt.u32.u64", b, q);
    MG_CODE(at, "setp.ge.s64", p, x, mg_o_imm(m->hi));
    MG_CODE(at, "selp.b32", b, (int64_t)mg_expr_lhist_buckets(m) - 1, b, p);
    return b;
}

/* Smallest and largest: 64 unsigned bits of which the largest stays, none of them 0. */
static struct mg_opnd kept_of(struct mg_expr_walk *w, const struct mg_expr_map *m, struct mg_expr_val v)
{
    struct mg_code_at *at = w->here.at;
    mg_id r = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "xor.b64", r, mg_expr_reg(&w->here, v), mg_o_imm(m->agg == MG_EA_min ? INT64_MAX : INT64_MIN));
    MG_CODE(at, "min.u64", r, r, -2);
    MG_CODE(at, "add.u64", r, r, 1);
    return mg_o_reg(r);
}

/* Words of key: number of the site keys, keys known here only, bucket or value. */
static uint32_t table_of(struct mg_expr_placer *pl, const struct mg_expr_update *up, const struct mg_expr_map *m,
                         uint32_t site_keys)
{
    uint64_t table, key = (uint64_t)up->ix << 8 | site_keys;
    if (mg_map_get(&pl->tables, key, &table)) return (uint32_t)table;
    bool bucket = m->agg == MG_EA_hist || m->agg == MG_EA_lhist || m->agg == MG_EA_topk;
    uint32_t n_keys = up->n_keys - (uint32_t)__builtin_popcount(site_keys) + (site_keys != 0) + bucket;
    mg_patch_site(pl->p, MG_SITE_KERNEL, 0, 0, 0, MG_MERGE_SUM, mg_expr_note(up->ix, MG_EN_TABLE, site_keys));
    table = mg_patch_table(pl->p, n_keys, m->agg == MG_EA_avg ? 2 : 1, rule_of(m), pl->e->entries);
    mg_map_set(&pl->tables, key, table);
    return (uint32_t)table;
}

static void update_table(struct mg_expr_walk *w, const struct mg_expr_update *up, const struct mg_expr_map *m,
                         uint32_t site_keys)
{
    struct mg_expr_placer *pl = w->pl;
    struct mg_expr_here *h = &w->here;
    mg_id keys[MG_EXPR_KEYS + 2];
    struct mg_opnd v[2];
    uint32_t n = 0, n_v = 0, table = table_of(pl, up, m, site_keys);
    bool fresh, warp;
    struct mg_expr_val value = value_of(w, up);
    warp = value.warp;
    if (site_keys) {
        uint32_t name = tuple_of(pl, up, &w->spot->env, site_keys, &fresh);
        if (fresh) reserve_site(w, up, 0, MG_MERGE_SUM, MG_EN_NAME, name);
        keys[n++] = mg_expr_reg(h, mg_expr_imm(name));
    }
    for (uint32_t i = 0; i < up->n_keys; i++) {
        if (site_keys >> i & 1) continue;
        struct mg_expr_val k = mg_expr_code(h, up->keys[i]);
        warp &= k.warp;
        keys[n++] = mg_expr_reg(h, k);
    }
    if (m->agg == MG_EA_topk) {
        keys[n++] = mg_expr_reg(h, value);
    } else if (m->agg == MG_EA_hist || m->agg == MG_EA_lhist) {
        keys[n] = mg_code_temp(h->at, MG_TYPE_b64);
        MG_CODE(h->at, "cvt.u64.u32", keys[n], bucket_of(w, m, value));
        n++;
    }
    if (m->agg == MG_EA_sum || m->agg == MG_EA_avg) v[n_v++] = mg_expr_opnd(h, value);
    if (m->agg == MG_EA_min || m->agg == MG_EA_max)
        v[n_v++] = kept_of(w, m, value);
    else if (m->agg != MG_EA_sum)
        v[n_v++] = mg_o_imm(1);
    mg_table_update(h->at, table, keys, v, n_v, warp ? (rule_of(m) == MG_MERGE_MAX ? MG_ONCE : MG_TIMES) : MG_EACH);
}

static void add_value(struct mg_expr_walk *w, const struct mg_expr_entry *e, uint32_t which, struct mg_expr_val v)
{
    struct mg_opnd o = mg_expr_opnd(&w->here, v);
    if (e->sums[which] != NO_SUM)
        mg_sum_add(w->here.at, e->sums[which], o);
    else
        mg_cell_update(w->here.at, e->cell + which, o, v.warp ? MG_TIMES : MG_EACH);
}

static void update_cells(struct mg_expr_walk *w, const struct mg_expr_update *up, const struct mg_expr_map *m,
                         uint32_t site_keys)
{
    struct mg_expr_here *h = &w->here;
    struct mg_expr_entry e = *entry_of(w, up, m, site_keys);
    struct mg_expr_val value = value_of(w, up);
    switch (m->agg) {
    case MG_EA_hist:
    case MG_EA_lhist:
        mg_cell_update_at(h->at, e.cell, mg_expr_map_cells(m), bucket_of(w, m, value), mg_o_imm(1),
                          value.warp ? MG_TIMES : MG_EACH);
        break;
    case MG_EA_min:
    case MG_EA_max:
        mg_cell_update(h->at, e.cell, kept_of(w, m, value), value.warp ? MG_ONCE : MG_EACH);
        break;
    case MG_EA_avg:
        add_value(w, &e, 1, mg_expr_imm(1)); /* falls through */
    default:
        add_value(w, &e, 0, value);
    }
}

/* Everything known beforehand: the block counter tells. */
static bool derive(struct mg_expr_walk *w, const struct mg_expr_update *up, const struct mg_expr_map *m,
                   uint32_t site_keys)
{
    struct mg_expr_const v =
        up->value ? mg_expr_eval(up->value, &w->spot->env) : (struct mg_expr_const){.known = true, .num = 1};
    if (w->given && m->agg != MG_EA_count)
        v = (struct mg_expr_const){.known = w->given->kind == MG_VAL_IMM, .num = w->given->num};
    bool keys = site_keys + 1 == (uint64_t)1 << up->n_keys;
    if (!w->counted || !w->always || !keys || mg_expr_wants_table(m) || !v.known || v.num < 0 ||
        v.num >= MG_EXPR_PAYLOAD)
        return false;
    w->pl->wants_blocks = true;
    if (!w->pl->dry) reserve_site(w, up, 0, MG_MERGE_SUM, MG_EN_DERIVED, (uint32_t)v.num);
    return true;
}

/* ---- code at a spot -------------------------------------------------------------------------------------- */

static struct mg_code_at *spot_at(struct mg_expr_walk *w)
{
    const struct mg_expr_spot *s = w->spot;
    struct mg_patch *p = w->pl->p;
    switch (s->site->where) {
    case MG_EW_BLOCK:
    case MG_EW_LOOP:
        return mg_at_block(p, s->block);
    case MG_EW_EDGE:
    case MG_EW_BACK_EDGE:
        return mg_at_edge(p, s->block, s->succ);
    default:
        return w->exit_at ? w->exit_at : mg_at_entry(p, s->func_ix);
    }
}

/* Registers of the function's variables, 0 as the function begins. */
static const mg_id *vars_of(struct mg_expr_placer *pl, uint32_t func_ix)
{
    return pl->vars ? pl->vars[func_ix] : NULL;
}

static void make_vars(struct mg_expr_placer *pl)
{
    uint32_t n_funcs = mg_patch_sites(pl->p)->n_funcs, n = pl->e->n_vars;
    if (!n) return;
    pl->vars = mg_arena_array(mg_patch_scratch(pl->p), mg_id *, n_funcs);
    for (uint32_t f = 0; f < n_funcs; f++) {
        struct mg_code_at *at = mg_at_entry(pl->p, f);
        pl->vars[f] = mg_arena_array(mg_patch_scratch(pl->p), mg_id, n);
        for (uint32_t i = 0; i < n; i++) {
            pl->vars[f][i] = mg_code_reg(at, MG_TYPE_b64);
            MG_CODE(at, "mov.u64", pl->vars[f][i], 0);
        }
    }
}

/* Once a spot, when the first code is wanted: guards for the lanes in which the clause fires. */
bool mg_expr_begin(struct mg_expr_walk *w)
{
    static const enum mg_expr_value of_lanes[] = {MG_EV_active, MG_EV_lanes, MG_EV_leader};
    struct mg_expr_here *h = &w->here;
    const struct mg_expr_clause *c = w->spot->clause;
    if (w->begun) return w->ok;
    w->begun = true;
    w->ok = mg_expr_here_init(h, w->pl->p, w->spot);
    if (!w->ok) return false;
    if (!w->spot->node) h->at = h->before = spot_at(w);
    h->vars = vars_of(w->pl, mg_code_func(h->at));
    h->ranges_at = w->pl->ranges_at;
    if (c->skips) {
        mg_id zero = mg_code_temp(h->at, MG_TYPE_b32);
        w->skip = mg_code_reg(h->at, MG_TYPE_pred);
        MG_CODE(h->at, "mov.u32", zero, 0);
        MG_CODE(h->at, "setp.ne.u32", w->skip, zero, 0);
    }
    mg_code_push_guard(h->at, h->guard, h->guard_not);
    if (w->spot->site->where == MG_EW_CTA_ENTRY) {
        mg_id first = mg_code_temp(h->at, MG_TYPE_pred);
        MG_CODE(h->at, "setp.eq.u32", first, mg_value_tid(h->at), 0);
        mg_code_push_guard(h->at, first, false);
    }
    for (unsigned i = 0; i < MG_COUNT_OF(of_lanes); i++) /* before any condition parts them */
        if (c->uses[of_lanes[i]]) mg_expr_value_at(h, of_lanes[i]);
    if (c->uses[MG_EV_alloc] || c->uses[MG_EV_offset]) mg_expr_value_at(h, MG_EV_offset);
    for (unsigned v = 1; v < MG_EV_COUNT && c->calls; v++) /* a probe in C asks for them behind branches of its own */
        if (c->uses[v] && v != MG_EV_clock && v != MG_EV_time) mg_expr_value_at(h, (enum mg_expr_value)v);
    if (c->pred && !mg_expr_eval(c->pred, &w->spot->env).known)
        mg_code_push_guard(h->at, mg_expr_pred(h, mg_expr_code(h, c->pred)), false);
    return true;
}

static void end_code(struct mg_expr_walk *w)
{
    const struct mg_expr_clause *c = w->spot->clause;
    if (!w->ok) return;
    mg_code_pop_guard(w->here.at);
    if (w->spot->site->where == MG_EW_CTA_ENTRY) mg_code_pop_guard(w->here.at);
    if (c->pred && !mg_expr_eval(c->pred, &w->spot->env).known) mg_code_pop_guard(w->here.at);
    if (w->skip) mg_patch_skip(w->pl->p, w->spot->node, w->skip);
}

void mg_expr_update(struct mg_expr_walk *w, const struct mg_expr_update *up)
{
    const struct mg_expr_map *m = &w->pl->e->maps[up->map];
    uint32_t keys = mg_expr_site_keys(up, &w->spot->env);
    if (derive(w, up, m, keys) || w->pl->dry || !mg_expr_begin(w)) return;
    if (keys + 1 == (uint64_t)1 << up->n_keys && !mg_expr_wants_table(m))
        update_cells(w, up, m, keys);
    else
        update_table(w, up, m, keys);
}

/* ---- statements ------------------------------------------------------------------------------------------- */

static void place_body(struct mg_expr_walk *w, const struct mg_expr_stmt *s);

static void place_if(struct mg_expr_walk *w, const struct mg_expr_stmt *s)
{
    struct mg_expr_const c = mg_expr_eval(s->expr, &w->spot->env);
    if (c.known) {
        place_body(w, c.num ? s->then : s->other);
        return;
    }
    bool always = w->always;
    if (w->pl->dry || !mg_expr_begin(w)) return;
    w->always = false;
    struct mg_code_at *at = w->here.at;
    mg_id p = mg_expr_pred(&w->here, mg_expr_code(&w->here, s->expr));
    mg_code_push_guard(at, p, false);
    place_body(w, s->then);
    mg_code_pop_guard(at);
    if (s->other) {
        mg_code_push_guard(at, p, true);
        place_body(w, s->other);
        mg_code_pop_guard(at);
    }
    w->always = always;
}

void mg_expr_skip(struct mg_expr_walk *w)
{
    mg_id zero = mg_code_temp(w->here.at, MG_TYPE_b32);
    MG_CODE(w->here.at, "mov.u32", zero, 0);
    MG_CODE(w->here.at, "setp.eq.u32", w->skip, zero, 0);
}

void mg_expr_event(struct mg_expr_walk *w, const char *name, bool end)
{
    w->pl->has_events = true;
    if (!w->pl->dry && mg_expr_begin(w)) mg_event_write(w->pl->events, w->here.at, name, end, w->spot->node);
}

void mg_expr_emit(struct mg_expr_walk *w, uint32_t emit, const struct mg_expr_val *values, uint32_t n)
{
    mg_id words[MG_CHANNEL_MOST_WORDS];
    for (uint32_t i = 0; i < n; i++) words[i] = mg_expr_reg(&w->here, values[i]);
    mg_channel_lanes(w->here.at, emit, words, n);
}

static void place_emit(struct mg_expr_walk *w, const struct mg_expr_update *up)
{
    struct mg_expr_val values[MG_CHANNEL_MOST_WORDS];
    w->pl->emits = true;
    if (w->pl->dry || !mg_expr_begin(w)) return;
    for (uint32_t i = 0; i < up->n_keys; i++) values[i] = mg_expr_code(&w->here, up->keys[i]);
    mg_expr_emit(w, up->ix, values, up->n_keys);
}

static void place_body(struct mg_expr_walk *w, const struct mg_expr_stmt *s)
{
    for (; s; s = s->next) {
        if (s->kind == MG_ES_UPDATE) {
            mg_expr_update(w, &s->up);
        } else if (s->kind == MG_ES_IF) {
            place_if(w, s);
        } else if (s->kind == MG_ES_BEGIN || s->kind == MG_ES_END) {
            mg_expr_event(w, s->name, s->kind == MG_ES_END);
        } else if (s->kind == MG_ES_EMIT) {
            place_emit(w, &s->up);
        } else if (s->kind == MG_ES_CALL) {
            mg_probe_place(w, mg_probe_find(w->pl->conf->probe, s->name));
        } else if (w->pl->dry || !mg_expr_begin(w)) {
            continue;
        } else if (s->kind == MG_ES_SKIP) {
            mg_expr_skip(w);
        } else {
            struct mg_opnd v = mg_expr_opnd(&w->here, mg_expr_code(&w->here, s->expr));
            MG_CODE(w->here.at, v.kind == MG_OPND_imm ? "mov.u64" : "mov.b64", w->here.vars[s->var], v);
        }
    }
}

/* ---- spots --------------------------------------------------------------------------------------------------- */

/* Are the spot's executions those of its block, for every thread? */
static bool is_counted(struct mg_expr_placer *pl, const struct mg_expr_spot *s)
{
    bool is_not;
    switch (s->site->where) {
    case MG_EW_INST:
        return s->site->issued || !mg_node_guard(mg_patch_module(pl->p), s->node, &is_not);
    case MG_EW_BLOCK:
    case MG_EW_LOOP:
        return true;
    case MG_EW_KERNEL_ENTRY:
    case MG_EW_FUNC_ENTRY: { /* unless the first block is a loop's, too */
        const struct mg_cfg *c = mg_patch_cfg(pl->p, s->func_ix);
        return !c->blocks[0].n_preds;
    }
    default:
        return false;
    }
}

static void place_at(struct mg_expr_placer *pl, const struct mg_expr_spot *s, struct mg_code_at *exit_at)
{
    struct mg_expr_walk w = {.pl = pl, .spot = s, .exit_at = exit_at, .always = true, .counted = is_counted(pl, s)};
    if (s->clause->pred) {
        struct mg_expr_const c = mg_expr_eval(s->clause->pred, &s->env);
        if (c.known && !c.num) return;
        w.always = c.known;
    }
    place_body(&w, s->clause->body);
    end_code(&w);
}

struct at_exit {
    struct mg_expr_placer *pl;
    const struct mg_expr_spot *s;
};

static void place_exit(struct mg_code_at *at, void *user)
{
    const struct at_exit *x = user;
    place_at(x->pl, x->s, at);
}

static void place_spot(const struct mg_expr_spot *s, void *user)
{
    struct mg_expr_placer *pl = user;
    struct at_exit x = {pl, s};
    bool leaves = s->site->where == MG_EW_KERNEL_EXIT || s->site->where == MG_EW_FUNC_EXIT;
    if (!leaves || pl->dry)
        place_at(pl, s, NULL);
    else
        mg_at_exits(pl->p, s->func_ix, place_exit, &x);
}

/* Without emitting: what will be wanted. */
static void list_wanted(struct mg_expr_placer *pl, const struct mg_expr_conf *c, struct mg_patch *p)
{
    *pl = (struct mg_expr_placer){.conf = c, .e = c->e, .p = p, .dry = true};
    mg_intern_init(&pl->tuples);
    mg_expr_each_spot(c->e, p, place_spot, pl);
    mg_intern_release(&pl->tuples);
}

enum mg_err mg_expr_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_expr_conf *c = conf;
    struct mg_expr_placer pl;
    if (c->e->probe && !c->probe) return mg_diag_err(d, MG_ERR_NOT_FOUND, "%s cannot be read", c->e->probe);
    list_wanted(&pl, c, p);
    if (pl.wants_blocks) mg_patch_want_blocks(p);
    if (c->e->uses[MG_EV_active] || c->e->uses[MG_EV_lanes] || c->e->uses[MG_EV_leader]) mg_patch_keep_lanes(p);
    if (c->e->uses[MG_EV_launch]) mg_patch_words(p, 1); /* the first of the tool's own: number 0 */
    bool ranges = mg_expr_wants_allocations(c->e);
    if (pl.has_events || ranges)
        mg_events_reserve(p, pl.has_events ? c->e->records : 0); /* allocations stand behind the frame */
    if (ranges) mg_patch_list(p, MG_EXPR_ALLOC_WORDS);
    if (pl.emits) mg_patch_channel(p);
    return MG_ERR_OK;
}

enum mg_err mg_expr_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_expr_conf *c = conf;
    struct mg_expr_placer seen, pl = {.conf = c, .e = c->e, .p = p};
    (void)d;
    list_wanted(&seen, c, p);
    pl.ranges_at = mg_frame_words(seen.has_events ? c->e->records : 0);
    pl.events = mg_arena_new(mg_patch_scratch(p), struct mg_events);
    *pl.events = (struct mg_events){.p = p, .records = c->e->records, .global = c->global};
    mg_intern_init(&pl.tuples);
    make_vars(&pl);
    mg_expr_each_spot(c->e, p, place_spot, &pl);
    mg_events_end(pl.events);
    mg_intern_release(&pl.tuples);
    mg_map_release(&pl.tables);
    mg_vec_release(&pl.entries);
    return MG_ERR_OK;
}
