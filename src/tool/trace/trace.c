/* trace: every access to global memory, and every barrier, as a record in the trace of the process, with the steps of
 * the host between them (inject/steps.c). Read by trace/access.h; docs/tools/trace.md.
 *
 *   lanes          counted in the kernel, in registers: those of the selected accesses
 *   received_lanes of the records that arrived: as many, unless records were dropped or sampled
 *
 * A generic address is looked at lane by lane: lanes that reach shared or local memory are no accesses of global memory
 * and neither recorded nor counted. */
#include <stdlib.h>
#include <string.h>

#include "analysis/space.h"
#include "patch/layout.h"
#include "tool/host.h"
#include "tool/tool.h"
#include "tool/trace/loops.h"
#include "tool/trace/trace.h"
#include "view/kit.h"
#include "view/unseen.h"

static const struct mg_tool_opt trace_opts[] = {
    {"barriers", "on", "a record for each barrier that a warp comes to"},
    {"buffer", "", "accesses to this allocation alone: its number, as arguments of launches have it in the profile"},
    {"cta", "", "CTAs A-B of each launch, by their linear number"},
    {"instructions", "off",
     "a record for each basic block that a warp enters, with its instructions: every instruction of every warp"},
    {"line", "", "accesses of source lines A-B, or FILE:A-B"},
    {"loops", "on", "one record for all rounds of a loop, where its accesses are regular; off: one for each access"},
    {"sample", "1", "of each N CTAs one: what is left out is counted"},
    {"sum", "off", "the kernel adds up the addresses, too, to compare with what arrived"},
    {0},
};

/* ---- options -------------------------------------------------------------------------------------------- */

/* "A" or "A-B". */
static bool read_range(const char *text, uint64_t *first, uint64_t *last)
{
    char *end;
    if (*text < '0' || *text > '9') return false;
    *first = *last = strtoull(text, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9') *last = strtoull(end + 1, &end, 10);
    return !*end && *first <= *last;
}

static bool read_lines(const char *text, struct mg_trace_limits *o)
{
    const char *colon = strrchr(text, ':');
    uint64_t first, last;
    if (!read_range(colon ? colon + 1 : text, &first, &last) || !first || last > UINT32_MAX) return false;
    free(o->file);
    o->file = colon ? strndup(text, (size_t)(colon - text)) : NULL;
    o->line_first = (uint32_t)first;
    o->line_last = (uint32_t)last;
    return true;
}

static bool read_switch(const char *text, bool *out)
{
    *out = !strcmp(text, "on");
    return *out || !strcmp(text, "off");
}

static bool read_option(char *kv, struct mg_trace_limits *o)
{
    char *value = strchr(kv, '=');
    uint64_t same, n;
    if (!value) return false;
    *value++ = 0;
    bool ok = false;
    if (!strcmp(kv, "barriers"))
        ok = read_switch(value, &o->barriers);
    else if (!strcmp(kv, "sum"))
        ok = read_switch(value, &o->sum);
    else if (!strcmp(kv, "instructions"))
        ok = read_switch(value, &o->instructions);
    else if (!strcmp(kv, "loops"))
        ok = read_switch(value, &o->loops);
    else if (!strcmp(kv, "cta"))
        ok = read_range(value, &o->cta_first, &o->cta_last);
    else if (!strcmp(kv, "line"))
        ok = read_lines(value, o);
    else if (!strcmp(kv, "buffer"))
        ok = read_range(value, &o->buffer, &same) && same == o->buffer;
    else if (!strcmp(kv, "sample") && (ok = read_range(value, &n, &same) && n == same && n && n <= 1 << 20))
        o->one_of = (uint32_t)n;
    value[-1] = '=';
    return ok;
}

static enum mg_err trace_configure(const char *args, void **conf, struct mg_diag *d)
{
    struct mg_trace_conf *c = mg_xcalloc(1, sizeof *c);
    char *copy = mg_xstrdup(args ? args : ""), *save = NULL;
    enum mg_err err = MG_ERR_OK;
    pthread_mutex_init(&c->lock, NULL);
    c->limits = (struct mg_trace_limits){
        .cta_last = UINT64_MAX, .buffer = UINT64_MAX, .one_of = 1, .barriers = true, .loops = true};
    for (char *kv = strtok_r(copy, ",", &save); kv && !err; kv = strtok_r(NULL, ",", &save))
        if (!read_option(kv, &c->limits)) err = mg_diag_err(d, MG_ERR_INPUT, "tool trace: bad option \"%s\"", kv);
    if (!err && c->limits.instructions && (c->limits.line_last || c->limits.buffer != UINT64_MAX))
        err = mg_diag_err(d, MG_ERR_INPUT,
                          "tool trace: bad option \"instructions\" beside line or buffer: blocks are whole");
    free(copy);
    *conf = c;
    return err;
}

static void trace_release(void *conf)
{
    struct mg_trace_conf *c = conf;
    if (!c) return;
    mg_trace_free_stream(c);
    free(c->limits.file);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ---- instrument ----------------------------------------------------------------------------------------- */

enum { WORD_FIRST, WORD_LAST, N_WORDS }; /* addresses of the selected buffer */

static enum mg_err trace_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_trace_conf *c = conf;
    (void)d;
    if (c->limits.buffer != UINT64_MAX) mg_patch_words(p, N_WORDS);
    mg_patch_channel(p);
    return MG_ERR_OK;
}

/* A predicate of this spot: a op b. */
static mg_id compare(struct mg_code_at *at, const char *form, mg_id a, struct mg_opnd b)
{
    mg_id p = mg_code_reg(at, MG_TYPE_pred);
    MG_CODE(at, form, p, a, b);
    return p;
}

static uint32_t push(struct mg_code_at *at, mg_id pred)
{
    mg_code_push_guard(at, pred, false);
    return 1;
}

/* Leaves the lanes that are selected; returns how many guards were pushed. */
static uint32_t select_lanes(struct mg_code_at *at, const struct mg_trace_limits *o, mg_id address)
{
    uint32_t n = 0;
    if (o->cta_first) n += push(at, compare(at, "setp.ge.u64", mg_value_cta(at), mg_o_imm((int64_t)o->cta_first)));
    if (o->cta_last != UINT64_MAX)
        n += push(at, compare(at, "setp.le.u64", mg_value_cta(at), mg_o_imm((int64_t)o->cta_last)));
    if (o->buffer != UINT64_MAX && address) {
        n += push(at, compare(at, "setp.ge.u64", address, mg_o_reg(mg_value_word(at, WORD_FIRST))));
        n += push(at, compare(at, "setp.le.u64", address, mg_o_reg(mg_value_word(at, WORD_LAST))));
    }
    return n;
}

static uint32_t sample_ctas(struct mg_code_at *at, const struct mg_trace_limits *o)
{
    if (o->one_of <= 1) return 0;
    mg_id part = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "rem.u64", part, mg_value_cta(at), mg_o_imm(o->one_of));
    return push(at, compare(at, "setp.eq.u64", part, mg_o_imm(o->one_of / 2)));
}

static void record_access(const struct mg_trace_limits *o, struct mg_patch *p, const struct mg_trace_item *x, bool ask)
{
    bool negated;
    const mg_id node = x->inst->node, guard = mg_node_guard(mg_patch_module(p), node, &negated);
    uint32_t n = 0;
    const bool recorded = x->loop != UINT32_MAX || x->in_group; /* elsewhere */
    if (x->loop != UINT32_MAX && !o->sum) return;
    struct mg_code_at *at = mg_at_before(p, node);
    mg_code_push_guard(at, guard, negated);
    mg_id address = mg_value_address(at, node);
    if (ask) {
        mg_id global = mg_code_reg(at, MG_TYPE_pred);
        MG_CODE(at, "isspacep.global", global, address);
        n += push(at, global);
    }
    n += select_lanes(at, o, address);
    mg_sum_add(at, mg_patch_sum(p, x->cell + MG_TRACE_CELL_LANES), mg_o_imm(1));
    if (o->sum) mg_sum_add(at, mg_patch_sum(p, x->cell + MG_TRACE_CELL_SUM), mg_o_reg(address));
    if (!recorded) {
        n += sample_ctas(at, o);
        mg_channel_access(at, x->site, node);
    }
    for (; n; n--) mg_code_pop_guard(at);
    mg_code_pop_guard(at);
}

/* A bulk copy between global and shared memory: one lane gives an address, so many bytes, a multiple of 16. */
struct bulk {
    uint32_t address, size; /* operands */
    enum mg_access_kind kind;
};

static bool is_bulk(const struct mg_module *m, mg_id node, struct bulk *b)
{
    const struct mg_node *n = &m->nodes.at[node];
    const struct mg_form *f = mg_node_form(m, n);
    const char *text = mg_name(m, f->text);
    if (f->op != MG_OP_cp || !mg_form_has(f, MG_MOD_bulk) || mg_form_has(f, MG_MOD_tensor) || n->n_opnds < 3)
        return false;
    bool writes = strstr(text, ".global.shared") != NULL,
         reads = strstr(text, "shared::cluster.global") || strstr(text, "shared::cta.global");
    *b = (struct bulk){.address = writes ? 0 : 1,
                       .size = 2,
                       .kind = !writes                         ? MG_ACCESS_LOAD
                               : mg_form_has(f, MG_MOD_reduce) ? MG_ACCESS_ATOMIC
                                                               : MG_ACCESS_STORE};
    const struct mg_opnd *at = &m->opnds.at[n->opnd + b->address];
    return (writes || reads) && at->kind == MG_OPND_addr && at->sub == MG_OPND_reg &&
           mg_type_bits((enum mg_type)m->regs.at[at->id].type) == 64;
}

static void record_bulk(const struct mg_trace_limits *o, struct mg_patch *p, const struct mg_trace_item *x,
                        const struct bulk *b)
{
    bool negated;
    const struct mg_module *m = mg_patch_module(p);
    const mg_id guard = mg_node_guard(m, x->inst->node, &negated);
    const struct mg_opnd address = m->opnds.at[m->nodes.at[x->inst->node].opnd + b->address],
                         size = m->opnds.at[m->nodes.at[x->inst->node].opnd + b->size];
    struct mg_code_at *at = mg_at_before(p, x->inst->node);
    mg_id pieces = mg_code_temp(at, MG_TYPE_b64), words[2] = {mg_code_temp(at, MG_TYPE_b64), mg_value_wide(at, size)};
    MG_CODE(at, "add.s64", words[0], address.id, (int64_t)address.val);
    MG_CODE(at, "shr.u64", pieces, words[1], 4);
    mg_code_push_guard(at, guard, negated);
    uint32_t n = select_lanes(at, o, words[0]);
    mg_sum_add(at, mg_patch_sum(p, x->cell + MG_TRACE_CELL_LANES), mg_o_reg(pieces));
    if (o->sum) { /* n addresses from a on, 16 apart: n a + 8 n (n - 1) */
        mg_id sum = mg_code_temp(at, MG_TYPE_b64), rest = mg_code_temp(at, MG_TYPE_b64);
        MG_CODE(at, "sub.u64", rest, pieces, 1);
        MG_CODE(at, "shl.b64", rest, rest, 3);
        MG_CODE(at, "add.u64", rest, rest, words[0]);
        MG_CODE(at, "mul.lo.u64", sum, rest, pieces);
        mg_sum_add(at, mg_patch_sum(p, x->cell + MG_TRACE_CELL_SUM), mg_o_reg(sum));
    }
    n += sample_ctas(at, o);
    mg_channel_lanes(at, x->site, words, 2);
    for (; n; n--) mg_code_pop_guard(at);
    mg_code_pop_guard(at);
}

/* What has no address: a barrier, or an instruction that nobody looks into. */
static void record_once(const struct mg_trace_limits *o, struct mg_patch *p, const struct mg_trace_item *x,
                        enum mg_access_kind kind)
{
    bool negated;
    const mg_id guard = mg_node_guard(mg_patch_module(p), x->inst->node, &negated);
    const bool guarded = kind != MG_ACCESS_BLOCK; /* all enter a block */
    if (x->loop != UINT32_MAX || x->in_group) return;
    struct mg_code_at *at = mg_at_before(p, x->inst->node);
    mg_code_push_guard(at, guarded ? guard : 0, negated);
    uint32_t n = select_lanes(at, o, 0);
    n += sample_ctas(at, o);
    mg_channel_once(at, x->site, NULL, 0);
    for (; n; n--) mg_code_pop_guard(at);
    mg_code_pop_guard(at);
}

/* Does the instruction reach global memory at places that only the hardware, or nobody here, works out: textures,
 * surfaces, tensor copies, matrices, multicast? */
static bool is_unseen(const struct mg_module *m, mg_id node)
{
    const struct mg_form *f = mg_node_form(m, &m->nodes.at[node]);
    const char *text = mg_name(m, f->text);
    if (!mg_unseen_kind(text)) return false;
    switch (f->op) {
    case MG_OP_ldmatrix: /* of shared memory alone */
    case MG_OP_stmatrix:
    case MG_OP_wgmma:
    case MG_OP_tcgen05:
    case MG_OP_mbarrier:
    case MG_OP_st:
        return false;
    case MG_OP_wmma:
    case MG_OP_tensormap:
        return !strstr(text, ".shared");
    case MG_OP_cp:
        return strstr(text, ".global") != NULL;
    default:
        return true;
    }
}

/* Is the instruction of a selected source line? */
static bool is_of_lines(const struct mg_trace_limits *o, struct mg_patch *p, const struct mg_patch_inst *i)
{
    const struct mg_module *app = mg_patch_cfg(p, i->func_ix)->m;
    mg_id node = i->node;
    if (!o->line_last) return true;
    while (node && app->nodes.at[node].kind != MG_NODE_loc) node = app->nodes.at[node].prev;
    const struct mg_loc *loc = node ? &app->locs.at[app->nodes.at[node].ref] : NULL;
    if (!loc || loc->line < o->line_first || loc->line > o->line_last) return false;
    for (uint32_t f = 0; o->file && f < app->files.n; f++) {
        if (app->files.at[f].index != loc->file) continue;
        const char *path = mg_name(app, app->files.at[f].path);
        size_t n = strlen(path), m = strlen(o->file);
        return n >= m && !strcmp(path + n - m, o->file) && (n == m || path[n - m - 1] == '/');
    }
    return !o->file;
}

/* ---- what is recorded, in the order of sites */

enum what { ACCESS, ASKED /* which lanes reach global memory */, BULK, ONCE };
struct recorded {
    enum what what;
    enum mg_access_kind kind;
    struct bulk bulk;
};
struct plan {
    const struct mg_trace_limits *o;
    struct mg_patch *p;
    MG_VEC(struct mg_trace_item) items;
    MG_VEC(struct recorded) how; /* the same */
};

static void plan_one(struct plan *x, const struct mg_patch_inst *i, uint32_t number, const struct mg_access *a,
                     struct recorded how)
{
    struct mg_trace_item *t = mg_vec_push(&x->items);
    *t = (struct mg_trace_item){.inst = i,
                                .number = number,
                                .access = how.what == ACCESS,
                                .one_by_one =
                                    how.what == ASKED || how.what == BULK ||
                                    (mg_patch_module(x->p)->nodes.at[i->node].guard && how.kind != MG_ACCESS_BLOCK),
                                .loop = UINT32_MAX,
                                .site = x->items.n - 1};
    if (a) t->a = *a;
    *mg_vec_push(&x->how) = how;
}

static void plan_inst(struct plan *x, const struct mg_patch_inst *insts, uint32_t i)
{
    const struct mg_patch_inst *at = &insts[i];
    const struct mg_module *m = mg_patch_module(x->p);
    struct mg_access a;
    struct bulk b;
    if (x->o->instructions && (!i || at->id != insts[i - 1].id))
        plan_one(x, at, i, NULL, (struct recorded){.what = ONCE, .kind = MG_ACCESS_BLOCK});
    if (mg_node_form(m, &m->nodes.at[at->node])->op_flags & MG_OPF_BARRIER) {
        if (x->o->barriers) plan_one(x, at, i, NULL, (struct recorded){.what = ONCE, .kind = MG_ACCESS_BARRIER});
        return;
    }
    if (is_bulk(m, at->node, &b))
        plan_one(x, at, i, NULL, (struct recorded){BULK, b.kind, b});
    else if (is_unseen(m, at->node))
        plan_one(x, at, i, NULL, (struct recorded){.what = ONCE, .kind = MG_ACCESS_UNSEEN});
    if (!mg_patch_access(x->p, at, &a)) return;
    unsigned set = a.space == MG_SPACE_generic ? mg_spaces_of(mg_patch_spaces(x->p, at->func_ix), at->node)
                                               : MG_SPACE_BIT(a.space);
    if (!(set & MG_SPACE_BIT(MG_SPACE_global))) return;
    plan_one(x, at, i, &a,
             (struct recorded){.what = set == MG_SPACE_BIT(MG_SPACE_global) ? ACCESS : ASKED,
                               .kind = a.atomic   ? MG_ACCESS_ATOMIC
                                       : a.writes ? MG_ACCESS_STORE
                                                  : MG_ACCESS_LOAD});
}

/* A record of a loop's rounds; what they counted. */
static void record_loop(void *user, struct mg_code_at *at, const struct mg_trace_loop *l,
                        const struct mg_trace_rounds *r)
{
    const struct plan *x = user;
    struct mg_channel_item list[MG_CHANNEL_MOST_GROUP];
    uint32_t n = select_lanes(at, x->o, 0);
    for (uint32_t i = 0; i < l->n; i++) {
        const struct mg_trace_item *t = &x->items.at[l->items[i]];
        list[i] = (struct mg_channel_item){.site = t->site, .address = r->first[i], .stride = r->stride[i]};
        if (!t->access) continue;
        list[i].width = (uint32_t)t->a.bytes * MG_MAX(t->a.vec, 1);
        if (!x->o->sum) mg_sum_add(at, mg_patch_sum(x->p, t->cell + MG_TRACE_CELL_LANES), mg_o_reg(r->rounds));
    }
    n += sample_ctas(at, x->o);
    mg_channel_group(at, list, l->n, r->rounds);
    for (; n; n--) mg_code_pop_guard(at);
}

/* The site of what is recorded; a site of a channel is that of the same number. */
static void make_site(const struct plan *x, struct mg_trace_item *t, const struct recorded *how)
{
    uint32_t note = how->kind | t->number << MG_TRACE_NOTE_SHIFT | (how->what == BULK ? MG_TRACE_NOTE_BULK : 0),
             cells = how->what == ONCE ? 0
                     : x->o->sum       ? MG_TRACE_N_CELLS
                                       : 1;
    t->cell = mg_patch_site(x->p, MG_SITE_INST, t->inst->node, 0, cells, MG_MERGE_SUM, note);
}

/* The items from `first` on in one record, where the last of them is. */
static void record_group(const struct plan *x, uint32_t first, uint32_t n)
{
    struct mg_channel_item list[MG_CHANNEL_MOST_GROUP];
    struct mg_trace_item *t = &x->items.at[first];
    mg_trace_keep_addresses(x->p, t, n);
    struct mg_code_at *at = mg_at_before(x->p, t[n - 1].inst->node);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct mg_channel_item){.site = t[i].site,
                                           .width = t[i].access ? (uint32_t)t[i].a.bytes * MG_MAX(t[i].a.vec, 1) : 0,
                                           .address = t[i].now};
    uint32_t guards = select_lanes(at, x->o, 0);
    guards += sample_ctas(at, x->o);
    mg_channel_group(at, list, n, 0);
    for (; guards; guards--) mg_code_pop_guard(at);
}

static void record_one(const struct plan *x, const struct mg_trace_item *t, const struct recorded *how)
{
    if (how->what == BULK)
        record_bulk(x->o, x->p, t, &how->bulk);
    else if (how->what == ONCE)
        record_once(x->o, x->p, t, how->kind);
    else
        record_access(x->o, x->p, t, how->what == ASKED);
}

static uint32_t group_from(const struct plan *x, uint32_t first)
{
    const bool together = x->o->buffer == UINT64_MAX; /* else which lanes are recorded depends on their address */
    return together ? mg_trace_group_from(x->p, x->items.at, x->items.n, first) : 1;
}

static void record_all(struct plan *x)
{
    struct mg_trace_loops loops = {0};
    uint32_t places = 0;
    if (x->o->loops && x->o->buffer == UINT64_MAX) loops = mg_trace_find_loops(x->p, x->items.at, x->items.n);
    mg_patch_few_registers(x->p, loops.quiet ? 40 : 64,
                           0); /* what writes runs rarely, or waits: warps are worth more */
    for (uint32_t i = 0; i < x->items.n; i++) make_site(x, &x->items.at[i], &x->how.at[i]);
    for (uint32_t i = 0; i < x->items.n; i += group_from(x, i)) places += x->items.at[i].loop == UINT32_MAX;
    if (mg_trace_comes_once(x->p, x->items.at, x->items.n)) mg_channel_expect(x->p, places + loops.n);
    /* first: where a loop is left, its record stands in front of what comes next */
    for (uint32_t i = 0; i < loops.n; i++) mg_trace_put_loop(x->p, &loops.at[i], x->items.at, record_loop, x);
    for (uint32_t i = 0, n; i < x->items.n; i += n) {
        n = group_from(x, i);
        for (uint32_t k = i; k < i + n; k++) x->items.at[k].in_group = n > 1;
        for (uint32_t k = i; k < i + n; k++) record_one(x, &x->items.at[k], &x->how.at[k]);
        if (n > 1) record_group(x, i, n);
    }
}

static enum mg_err trace_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    struct plan x = {.o = &((const struct mg_trace_conf *)conf)->limits, .p = p};
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts);
    (void)d;
    for (uint32_t i = 0; i < n; i++)
        if (is_of_lines(x.o, p, &insts[i])) plan_inst(&x, insts, i);
    record_all(&x);
    for (uint32_t i = 0; i < n && x.o->instructions; i++) /* behind those that write: only their text is wanted */
        mg_patch_site(p, MG_SITE_INST, insts[i].node, 0, 0, MG_MERGE_SUM,
                      MG_ACCESS_INSTRUCTION | i << MG_TRACE_NOTE_SHIFT);
    mg_vec_release(&x.items);
    mg_vec_release(&x.how);
    return MG_ERR_OK;
}

/* ---- a launch, the process ------------------------------------------------------------------------------- */

struct search {
    uint64_t id, *words;
};

static void find_buffer(const struct mg_host_allocation *a, void *user)
{
    struct search *s = user;
    if (a->id != s->id || !a->bytes) return;
    s->words[WORD_FIRST] = a->address;
    s->words[WORD_LAST] = a->address + a->bytes - 1;
}

static void trace_initialize(const void *conf, const struct mg_tool_launch *l, uint64_t *words)
{
    const struct mg_trace_conf *c = conf;
    (void)l;
    if (c->limits.buffer == UINT64_MAX) return;
    words[WORD_FIRST] = UINT64_MAX; /* it does not live: nothing is selected */
    words[WORD_LAST] = 0;
    c->host->allocations(find_buffer, &(struct search){c->limits.buffer, words});
}

static void trace_begin(void *conf, const struct mg_tool_host *host)
{
    ((struct mg_trace_conf *)conf)->host = host;
}

static void trace_finalize(void *conf, const struct mg_tool_launch *l, const uint64_t *cells, uint32_t n)
{
    mg_trace_finalize(conf, l->traced, l->node ? l->shape.times : 1, l->complete, cells, n);
}

static void trace_end(void *conf)
{
    mg_trace_end_stream(conf);
}

static void trace_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    (void)conf, (void)j;
    mg_table_begin(t, "trace", "accesses to global memory in the trace (margay trace info, print, convert)");
    mg_table_column(t, "kernel", MG_COL_TEXT, "");
    mg_table_column(t, "place", MG_COL_PLACE, "");
    mg_table_column(t, "instruction", MG_COL_TEXT, "");
    mg_table_column(t, "lanes", MG_COL_COUNT, "");
    mg_table_empty(t, "no kernel with accesses to global memory ran to its end");
    for (uint32_t i = 0; i < r->n_kernels; i++) {
        const struct mg_result_kernel *k = &r->kernels[i];
        for (uint32_t n = 0; n < k->n_sites; n++) {
            if (!k->sites[n].n_cells) continue;
            mg_table_row(t);
            mg_table_text(t, k->demangled);
            mg_table_place(t, &k->sites[n]);
            mg_table_text(t, k->sites[n].op);
            mg_table_u64(t, k->cells[k->sites[n].cell + MG_TRACE_CELL_LANES]);
        }
    }
    mg_table_sort(t, 3);
}

extern const struct mg_tool mg_tool_trace;
const struct mg_tool mg_tool_trace = {
    .name = "trace",
    .summary = "every access to global memory into the trace, with the steps of the host",
    .opts = trace_opts,
    .configure = trace_configure,
    .release = trace_release,
    .analyze = trace_analyze,
    .instrument = trace_instrument,
    .initialize = trace_initialize,
    .begin = trace_begin,
    .finalize = trace_finalize,
    .end = trace_end,
    .stream = mg_trace_stream,
    .profile = trace_profile,
    .flags = MG_TOOL_ACCESSES | MG_TOOL_BULK,
};
