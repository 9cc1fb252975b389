/* bounds: accesses to global memory outside of every live allocation, and to shared memory outside of the
 * CTA's, are reported and not performed; the launch goes on.
 *
 * The host writes the live allocations behind each launch's cells, sorted. Accesses that count from one value
 * (mg_patch_groups) are looked at together, from the lowest byte to the highest: at the range that this
 * thread hit last there (two registers). Only where that fails each of them looks for itself, at the range
 * that any thread hit last (a word in memory), then through the list. A finding is an entry of a small hash
 * table of its instruction: who, where, how often.
 *
 * list: n, steps of the search, then pairs (begin, bytes); n = all ones or 0: more allocations than fit, a graph's
 * node, or kernels allocate memory, the launch is not checked. Behind room for all of them, one word an instruction:
 * the pair hit last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/callgraph.h"
#include "analysis/space.h"
#include "tool/ranges.h"
#include "tool/tool.h"
#include "view/kit.h"

enum { most_ranges = 1024, head_words = 2, entries = 32 };
enum { key_launch, key_cta, key_thread, key_address, key_begin, key_bytes, n_keys };
enum { note_write = 1, note_atomic = 2, note_shared = 4, note_bytes = 8 /* shift */ };

enum why { MANY, NODE, KERNELS };
struct state {
    uint64_t unchecked; /* launches */
    bool kernels_make;  /* memory that the host does not know */
};
struct conf {
    const struct mg_tool_host *host;
    struct state *state;
};
static const struct mg_tool_opt bounds_opts[] = {{0}};

static enum mg_err bounds_configure(const char *args, void **conf, struct mg_diag *d)
{
    static const struct mg_field none[] = {{0}};
    const struct conf defaults = {0};
    enum mg_err err = mg_fields_parse("bounds", none, &defaults, sizeof defaults, args, conf, d);
    if (!err) ((struct conf *)*conf)->state = mg_xcalloc(1, sizeof(struct state));
    return err;
}

static void bounds_release(void *conf)
{
    if (conf) free(((struct conf *)conf)->state);
    free(conf);
}

static void bounds_begin(void *conf, const struct mg_tool_host *host)
{
    ((struct conf *)conf)->host = host;
}

/* ---- one launch ---------------------------------------------------------------------------------------- */

static void bounds_initialize(const void *conf, const struct mg_tool_launch *l, uint64_t *words)
{
    (void)conf;
    words[0] = l->id;
}

static void tell_unchecked(const struct conf *c, enum why why)
{
    static const char *const texts[] = {
        [MANY] = "bounds: launches are not checked while more than 1024 allocations are alive",
        [NODE] = "bounds: nodes of graphs are not checked",
        [KERNELS] = "bounds: launches are not checked, since kernels allocate memory (malloc, launches from kernels)"};
    _Static_assert(most_ranges == 1024, "as the text says");
    uint64_t n = __atomic_add_fetch(&c->state->unchecked, 1, __ATOMIC_RELAXED);
    if (n == 1 && c->host && c->host->say) c->host->say(texts[why]);
}

static void bounds_end(void *conf)
{
    const struct conf *c = conf;
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)__atomic_load_n(&c->state->unchecked, __ATOMIC_RELAXED));
    if (c->host && c->host->result) c->host->result("bounds", "unchecked_launches", text);
}

static uint32_t bounds_list(const void *conf, const struct mg_tool_launch *l, uint64_t *words, uint32_t n)
{
    const struct conf *c = conf;
    uint32_t most = MG_MIN((n - head_words) / 2, (uint32_t)most_ranges), found = MG_RANGE_NONE;
    bool make = __atomic_load_n(&c->state->kernels_make, __ATOMIC_RELAXED);
    /* of a node: what is alive when it is replayed is not known now */
    if (!l->node && !make) found = mg_ranges_fill(c->host, words + head_words, 2, most);
    if (found == MG_RANGE_NONE) {
        words[0] = UINT64_MAX;
        tell_unchecked(c, make ? KERNELS : l->node ? NODE : MANY);
        return head_words;
    }
    words[0] = found;
    while (found >> words[1]) words[1]++;
    return head_words + 2 * found;
}

/* ---- instrument ---------------------------------------------------------------------------------------- */

#define R               mg_o_reg
#define I               mg_o_imm
#define EMIT(form, ...) MG_CODE(c->at, form, __VA_ARGS__)

struct together { /* of one group of accesses */
    bool begun;
    uint32_t span;    /* bytes, from the lowest to the highest */
    mg_id fail;       /* predicate, alike in the lanes here: someone is not inside with all of them */
    mg_id bad;        /* predicate: this lane's access at hand is not performed */
    mg_id last, room; /* range that this thread hit last: begin, bytes - span */
};
struct sizes {
    mg_id begin, bytes;
    bool unknown;
};             /* b32: a function's registers for what shared memory the CTA has */
struct check { /* of one access */
    struct mg_patch *p;
    const struct mg_patch_inst *i;
    struct mg_code_at *at;
    const struct mg_access_group *group;
    struct together *t;
    struct sizes *shared;
    uint32_t bytes, table;
    int64_t hint; /* place of its word in the list */
    mg_id here, makes;
    bool makes_not; /* lanes at the spot; predicate of those that make the access, 0: all */
    mg_id addr, bad;
    uint32_t addr_at;  /* addr_at: which operand */
    mg_id begin, size; /* of the allocation below a bad address */
    bool grid;         /* the kernel asks where its grid's barrier is */
};

static mg_id reg32(struct check *c)
{
    return mg_code_temp(c->at, MG_TYPE_b32);
}
static mg_id reg64(struct check *c)
{
    return mg_code_temp(c->at, MG_TYPE_b64);
}
static mg_id pred(struct check *c)
{
    return mg_code_temp(c->at, MG_TYPE_pred);
}
static void set_false(struct check *c, mg_id p)
{
    EMIT("setp.ne.u32", p, c->here, c->here);
}
static void push(struct check *c, mg_id p, bool negated)
{
    mg_code_push_guard(c->at, p, negated);
}
static void pop(struct check *c)
{
    mg_code_pop_guard(c->at);
}

static void jump(struct check *c, mg_id p, bool negated, mg_id to)
{
    push(c, p, negated);
    EMIT("bra.uni", mg_o_label(to));
    pop(c);
}

static void load(struct check *c, mg_id into, mg_id from, int64_t off)
{
    EMIT("ld.global.u64", into, mg_o_addr_reg(from, off));
}

/* How many ranges begin at or below the address, in b32: a search of as many steps for every lane. */
static mg_id search(struct check *c, mg_id list, mg_id n, mg_id in)
{
    mg_id low = reg32(c), high = reg32(c), steps = reg64(c), left = reg32(c), mid = reg32(c), next = reg32(c),
          at = reg64(c), begin = reg64(c), p = pred(c), goes = pred(c), below = pred(c);
    mg_id again = mg_code_label(c->at), end = mg_code_label(c->at);
    load(c, steps, list, 8);
    EMIT("cvt.u32.u64", left, steps);
    EMIT("mov.u32", low, 0);
    EMIT("cvt.u32.u64", high, n);
    mg_code_place(c->at, again);
    EMIT("setp.eq.u32", p, left, 0);
    jump(c, p, false, end);
    EMIT("add.u32", left, left, -1);
    EMIT("add.u32", mid, low, high);
    EMIT("shr.u32", mid, mid, 1);
    EMIT("setp.lt.u32", goes, low, high);
    EMIT("and.pred", goes, goes, in);
    EMIT("mad.wide.u32", at, mid, 16, list);
    EMIT("mov.u64", begin, 0);
    push(c, goes, false);
    load(c, begin, at, 8 * head_words);
    pop(c);
    EMIT("setp.le.u64", below, begin, c->addr);
    EMIT("add.u32", next, mid, 1);
    push(c, goes, false);
    EMIT("selp.u32", low, next, low, below);
    EMIT("selp.u32", high, high, mid, below);
    pop(c);
    EMIT("bra", mg_o_label(again));
    mg_code_place(c->at, end);
    return low;
}

/* inside: the lanes' addresses lie in their pair's range; these lanes remember it where the whole group may. */
static void try_range(struct check *c, mg_id list, mg_id ix, mg_id lanes, mg_id inside)
{
    mg_id at = reg64(c), off = reg64(c), keep = inside;
    EMIT("mad.wide.u32", at, ix, 16, list);
    load(c, c->begin, at, 8 * head_words); /* without any range: zeroes */
    load(c, c->size, at, 8 * head_words + 8);
    EMIT("sub.u64", off, c->addr, c->begin);
    EMIT("add.u64", off, off, I(c->bytes));
    EMIT("setp.le.and.u64", inside, off, c->size, lanes);
    if (c->t->span > c->bytes) EMIT("setp.ge.and.u64", keep = pred(c), c->size, I(c->t->span), inside);
    push(c, keep, false);
    EMIT("mov.b64", c->t->last, c->begin);
    EMIT("sub.u64", c->t->room, c->size, I(c->t->span));
    pop(c);
}

/* A predicate of the lanes that make the access. */
static mg_id makers(struct check *c)
{
    mg_id p = pred(c);
    EMIT("setp.eq.u32", p, c->here, c->here);
    if (!c->makes) return p;
    if (!c->makes_not) {
        EMIT("and.pred", p, p, c->makes);
        return p;
    }
    EMIT("not.pred", p, c->makes);
    return p;
}

/* p stays for those of its lanes that are not in the workspace of the grid's barrier: the driver gives a cooperative
 * launch its address in two registers, and CUDA's header goes there. */
static void leave_grid(struct check *c, mg_id p)
{
    enum { GRID_BYTES = 256 };
    mg_id high = reg32(c), low = reg32(c), own = reg64(c), off = reg64(c), none = pred(c);
    EMIT("mov.u32", high, mg_o_sreg(MG_SREG_envreg1, 0));
    EMIT("mov.u32", low, mg_o_sreg(MG_SREG_envreg2, 0));
    EMIT("cvt.u64.u32", own, high);
    EMIT("shl.b64", own, own, 32);
    EMIT("cvt.u64.u32", off, low);
    EMIT("or.b64", own, own, off);
    EMIT("setp.eq.u64", none, own, 0);
    EMIT("sub.u64", off, c->addr, own);
    EMIT("setp.ge.or.u64", none, off, I(GRID_BYTES), none);
    EMIT("and.pred", p, p, none);
}

/* bad: not inside of one live allocation. */
static void look_up(struct check *c)
{
    mg_id any = pred(c), list = mg_value_list(c->at), n = reg64(c), wide = reg64(c), has = pred(c), p = pred(c);
    mg_id inside = pred(c), found = pred(c), ix = reg32(c), done = mg_code_label(c->at), miss = makers(c);
    c->begin = reg64(c), c->size = reg64(c);
    load(c, wide, list, c->hint);
    EMIT("cvt.u32.u64", ix, wide);
    try_range(c, list, ix, miss, inside);
    EMIT("not.pred", p, inside);
    EMIT("and.pred", miss, miss, p);
    EMIT("vote.sync.any.pred", any, miss, c->here);
    jump(c, any, true, done);
    load(c, n, list, 0);
    mg_id more = reg64(c);
    EMIT("add.u64", more, n, 1);
    EMIT("setp.le.u64", p, more, 1);
    jump(c, p, false, done);
    mg_id below = search(c, list, n, miss);
    EMIT("setp.ne.u32", has, below, 0);
    EMIT("and.pred", has, has, miss);
    EMIT("max.u32", ix, below, 1);
    EMIT("add.u32", ix, ix, -1);
    try_range(c, list, ix, has, found);
    EMIT("cvt.u64.u32", wide, ix);
    push(c, found, false);
    EMIT("st.global.u64", mg_o_addr_reg(list, c->hint), wide);
    pop(c);
    EMIT("not.pred", p, found);
    EMIT("and.pred", c->bad, miss, p);
    if (c->grid) leave_grid(c, c->bad);
    mg_code_place(c->at, done);
}

/* May code at the function's entry name the variable? */
static bool is_visible(const struct mg_module *m, mg_id func, mg_id var)
{
    unsigned depth = 0;
    if (!m->vars.at[var].func) return true;
    if (m->vars.at[var].func != func) return false;
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        depth += n->kind == MG_NODE_open;
        depth -= n->kind == MG_NODE_close;
        if (n->kind == MG_NODE_decl && var - m->decls.at[n->ref].first < m->decls.at[n->ref].n &&
            m->decls.at[n->ref].space == MG_SPACE_shared)
            return !depth;
    }
    return false;
}

/* Variables in shared memory that the kernel names; at most `most`. */
static uint32_t find_shared(struct mg_patch *p, mg_id *vars, uint32_t most)
{
    const struct mg_module *m = mg_patch_module(p);
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts), n_vars = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_node *node = &m->nodes.at[insts[i].node];
        for (uint32_t k = 0; k < node->n_opnds; k++) {
            const struct mg_opnd *o = &m->opnds.at[node->opnd + k];
            bool named = o->kind == MG_OPND_var || (o->kind == MG_OPND_addr && o->sub == MG_OPND_var);
            uint32_t at = 0;
            if (!named || m->vars.at[o->id].space != MG_SPACE_shared) continue;
            while (at < n_vars && vars[at] != o->id) at++;
            if (at == most) return most + 1;
            if (at == n_vars) vars[n_vars++] = o->id;
        }
    }
    return n_vars;
}

/* What the CTA has of shared memory: from the lowest of the kernel's variables to the end of the highest, or of
 * what the launch asked for. Not known where the function cannot name them all. */
static bool read_sizes(struct mg_patch *p, uint32_t func_ix, struct sizes *s)
{
    enum { MOST = 64 };
    struct mg_module *m = mg_patch_module(p);
    struct mg_code_at *entry = mg_at_entry(p, func_ix);
    mg_id vars[MOST];
    if (s->begin || s->unknown) return !s->unknown;
    uint32_t n = find_shared(p, vars, MOST);
    s->unknown = !n || n > MOST;
    for (uint32_t i = 0; i < n && !s->unknown; i++)
        s->unknown = !is_visible(m, mg_patch_twin(p)->funcs[func_ix], vars[i]);
    if (s->unknown) return false;
    mg_id at = mg_code_temp(entry, MG_TYPE_b32), dynamic = mg_code_temp(entry, MG_TYPE_b32),
          end = mg_code_reg(entry, MG_TYPE_b32), begin = mg_code_reg(entry, MG_TYPE_b32);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t bytes = mg_var_bytes(&m->vars.at[vars[i]]);
        MG_CODE(entry, "mov.u32", at, mg_o_var(vars[i]));
        if (i)
            MG_CODE(entry, "min.u32", begin, begin, at);
        else
            MG_CODE(entry, "mov.u32", begin, at);
        if (!bytes) MG_CODE(entry, "mov.u32", dynamic, mg_o_sreg(MG_SREG_dynamic_smem_size, 0));
        MG_CODE(entry, "add.u32", at, at, bytes ? I((int64_t)bytes) : R(dynamic));
        if (i)
            MG_CODE(entry, "max.u32", end, end, at);
        else
            MG_CODE(entry, "mov.u32", end, at);
    }
    MG_CODE(entry, "sub.u32", end, end, begin);
    s->begin = begin, s->bytes = end;
    return true;
}

/* out: some of `bytes` bytes from the address on, plus off, lie outside of the CTA's. In lanes that make the access. */
static void outside_shared(struct check *c, int64_t off, uint32_t bytes, mg_id out)
{
    mg_id low = reg32(c), from = reg64(c), p = pred(c);
    EMIT("cvt.u64.u32", from, c->shared->begin);
    EMIT("sub.u64", from, c->addr, from);
    if (off) EMIT("add.u64", from, from, I(off));
    EMIT("cvt.u32.u64", low, from);
    EMIT("setp.ge.u32", p, low, c->shared->bytes);
    const struct mg_module *m = mg_patch_module(c->p);
    const struct mg_opnd *o = &m->opnds.at[m->nodes.at[c->i->node].opnd + c->addr_at];
    if (o->sub == MG_OPND_reg && mg_type_bits((enum mg_type)m->regs.at[o->id].type) == 64) {
        mg_id beyond = pred(c);
        EMIT("setp.gt.u64", beyond, c->addr, I(UINT32_MAX));
        EMIT("or.pred", p, p, beyond);
    }
    EMIT("add.u32", low, low, I(bytes - 1));
    push(c, c->makes, c->makes_not);
    EMIT("setp.ge.or.u32", out, low, c->shared->bytes, p);
    pop(c);
}

static void check_shared(struct check *c)
{
    outside_shared(c, 0, c->bytes, c->bad);
    c->begin = reg64(c), c->size = reg64(c);
    EMIT("cvt.u64.u32", c->begin, c->shared->begin);
    EMIT("cvt.u64.u32", c->size, c->shared->bytes);
}

/* All of the group at once, where its first one stands. */
static void begin_group(struct check *c, enum mg_space space)
{
    struct mg_code_at *entry = mg_at_entry(c->p, c->i->func_ix);
    struct together *t = c->t;
    mg_id miss = pred(c), off = reg64(c);
    int64_t low = c->group->low - c->group->from;
    t->begun = true;
    t->fail = mg_code_reg(c->at, MG_TYPE_pred), t->bad = mg_code_reg(c->at, MG_TYPE_pred);
    set_false(c, t->bad);
    set_false(c, miss);
    if (space == MG_SPACE_shared) {
        outside_shared(c, low, t->span, miss);
    } else {
        t->last = mg_code_reg(c->at, MG_TYPE_b64), t->room = mg_code_reg(c->at, MG_TYPE_b64);
        MG_CODE(entry, "mov.u64", t->last, 1); /* nothing but address 1 is inside, and that is no address */
        MG_CODE(entry, "mov.u64", t->room, 0);
        EMIT("sub.u64", off, c->addr, t->last);
        if (low) EMIT("add.u64", off, off, I(low));
        push(c, c->makes, c->makes_not);
        EMIT("setp.gt.u64", miss, off, t->room);
        pop(c);
    }
    EMIT("vote.sync.any.pred", t->fail, miss, c->here);
}

static mg_id packed(struct check *c, enum mg_sreg s, int64_t y_at, int64_t z_at)
{
    mg_id all = reg64(c), part = reg32(c), wide = reg64(c);
    EMIT("mov.u32", part, mg_o_sreg(s, 1));
    EMIT("cvt.u64.u32", all, part);
    for (uint8_t k = 2; k <= 3; k++) {
        EMIT("mov.u32", part, mg_o_sreg(s, k));
        EMIT("cvt.u64.u32", wide, part);
        EMIT("shl.b64", wide, wide, I(k == 2 ? y_at : z_at));
        EMIT("or.b64", all, all, wide);
    }
    return all;
}

static void report(struct check *c)
{
    mg_id any = pred(c), done = mg_code_label(c->at), keys[n_keys];
    const struct mg_opnd one = I(1);
    EMIT("vote.sync.any.pred", any, c->bad, c->here);
    jump(c, any, true, done);
    keys[key_launch] = mg_value_word(c->at, 0);
    keys[key_cta] = packed(c, MG_SREG_ctaid, 32, 48);
    keys[key_thread] = packed(c, MG_SREG_tid, 16, 32);
    keys[key_address] = c->addr;
    keys[key_begin] = c->begin;
    keys[key_bytes] = c->size;
    push(c, c->bad, false);
    mg_table_update(c->at, c->table, keys, &one, 1, MG_EACH);
    pop(c);
    mg_code_place(c->at, done);
}

struct run { /* of one kernel */
    const struct mg_access_group *groups;
    const uint32_t *group_of;
    struct together *together;
    struct sizes *shared;
    uint32_t sites;
    bool grid;
};

static void check_site(struct mg_patch *p, struct run *r, uint32_t ix, const struct mg_patch_inst *i,
                       const struct mg_access *a, enum mg_space space)
{
    struct check c = {.p = p,
                      .i = i,
                      .bytes = (uint32_t)a->bytes * a->vec,
                      .grid = r->grid,
                      .at = mg_at_before(p, i->node),
                      .hint = 8 * (head_words + 2 * most_ranges + (int64_t)r->sites++)};
    mg_id done = mg_code_label(c.at);
    mg_patch_site(p, MG_SITE_INST, i->node, i->id, 0, MG_MERGE_SUM,
                  (a->writes ? note_write : 0) | (a->atomic ? note_atomic : 0) |
                      (space == MG_SPACE_shared ? note_shared : 0) | c.bytes << note_bytes);
    c.table = mg_patch_table(p, n_keys, 1, MG_MERGE_SUM, entries);
    c.group = &r->groups[r->group_of[ix]], c.t = &r->together[r->group_of[ix]], c.shared = &r->shared[i->func_ix];
    c.makes = mg_node_guard(mg_patch_module(p), i->node, &c.makes_not);
    c.addr = mg_value_address(c.at, i->node), c.addr_at = a->addr;
    if (a->space == MG_SPACE_generic) { /* what is in another window than global memory's is not looked at */
        mg_id global = mg_code_reg(c.at, MG_TYPE_pred);
        MG_CODE(c.at, "isspacep.global", global, c.addr);
        if (c.makes) {
            mg_id own = c.makes;
            if (c.makes_not) MG_CODE(c.at, "not.pred", own = mg_code_temp(c.at, MG_TYPE_pred), c.makes);
            MG_CODE(c.at, "and.pred", global, global, own);
        }
        c.makes = global, c.makes_not = false;
    }
    if (!c.t->begun) {
        c.t->span = (uint32_t)(c.group->end - c.group->low);
        c.here = mg_value_active(c.at);
        begin_group(&c, space);
    }
    c.bad = c.t->bad;
    jump(&c, c.t->fail, true, done);
    c.here = mg_value_active(c.at);
    set_false(&c, c.bad);
    if (space == MG_SPACE_shared)
        check_shared(&c);
    else
        look_up(&c);
    report(&c);
    mg_code_place(c.at, done);
    mg_patch_skip(p, i->node, c.bad);
}

/* Does code of the module get memory that the host does not know of? */
static bool makes_memory(const struct mg_module *m)
{
    for (mg_id f = 1; f < m->funcs.n; f++) {
        const char *name = mg_name(m, m->funcs.at[f].name);
        if (!strcmp(name, "malloc") || !strncmp(name, "cudaMalloc", 10) || !strncmp(name, "__cudaCDP2Malloc", 16) ||
            mg_func_is_device_launch(name))
            return true;
    }
    return false;
}

static bool asks_for_grid(const struct mg_module *m, const struct mg_patch_inst *insts, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_node *node = &m->nodes.at[insts[i].node];
        for (uint32_t k = 0; k < node->n_opnds; k++) {
            const struct mg_opnd *o = &m->opnds.at[node->opnd + k];
            if (o->kind == MG_OPND_sreg && o->id == MG_SREG_envreg2) return true;
        }
    }
    return false;
}

/* Another CTA's shared memory, of which sizes are not known here */
static bool is_of_cluster(const struct mg_module *m, mg_id node)
{
    return mg_form_has(mg_node_form(m, &m->nodes.at[node]), MG_MOD_shared__cluster);
}

static enum mg_err bounds_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct conf *c = conf;
    if (makes_memory(mg_patch_module(p))) __atomic_store_n(&c->state->kernels_make, true, __ATOMIC_RELAXED);
    if (mg_patch_module(p)->sm < 30)
        return mg_diag_err(d, MG_ERR_UNSUPPORTED, "tool bounds: the PTX is for sm_%u, votes are there from sm_30 on",
                           mg_patch_module(p)->sm);
    mg_patch_words(p, 1);
    mg_patch_list(p, head_words + 2 * most_ranges);
    return MG_ERR_OK;
}

static enum mg_err bounds_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_patch_inst *insts;
    struct run r = {0};
    uint32_t n = mg_patch_insts(p, &insts), n_groups = mg_patch_groups(p, false, &r.groups, &r.group_of);
    r.together = mg_arena_array(mg_patch_scratch(p), struct together, n_groups + 1);
    r.shared = mg_arena_array(mg_patch_scratch(p), struct sizes, mg_patch_sites(p)->n_funcs);
    r.grid = asks_for_grid(mg_patch_module(p), insts, n);
    (void)conf, (void)d;
    for (uint32_t i = 0; i < n; i++) {
        struct mg_access a;
        if (!mg_patch_access(p, &insts[i], &a) || a.is_async || is_of_cluster(mg_patch_module(p), insts[i].node))
            continue;
        unsigned set = a.space == MG_SPACE_generic ? mg_spaces_of(mg_patch_spaces(p, insts[i].func_ix), insts[i].node)
                                                   : MG_SPACE_BIT(a.space);
        if (a.space == MG_SPACE_shared && read_sizes(p, insts[i].func_ix, &r.shared[insts[i].func_ix]))
            check_site(p, &r, i, &insts[i], &a, MG_SPACE_shared);
        else if (set & MG_SPACE_BIT(MG_SPACE_global))
            check_site(p, &r, i, &insts[i], &a, MG_SPACE_global);
    }
    mg_patch_list(p, r.sites);
    return MG_ERR_OK;
}

/* ---- profile ------------------------------------------------------------------------------------------- */

static const char *kind_of(const struct mg_result_site *s)
{
    return s->note & note_atomic ? "atomic" : s->note & note_write ? "write" : "read";
}

static void key_triple(struct mg_json *j, const char *key, uint64_t v, unsigned y_at, unsigned z_at)
{
    const uint32_t xyz[3] = {(uint32_t)(v & (((uint64_t)1 << y_at) - 1)), (uint32_t)(v >> y_at & 0xffff),
                             (uint32_t)(v >> z_at & 0xffff)};
    mg_json_key_dim(j, key, xyz);
}

static void finding_json(const struct mg_result_kernel *k, const struct mg_result_site *s,
                         const struct mg_result_entry *e, struct mg_json *j)
{
    mg_json_obj(j);
    mg_kit_site_json(j, k, s);
    mg_json_key_u64(j, "launch", e->keys[key_launch]);
    key_triple(j, "cta", e->keys[key_cta], 32, 48);
    key_triple(j, "thread", e->keys[key_thread], 16, 32);
    mg_json_key_str(j, "kind", kind_of(s));
    mg_json_key_str(j, "space", s->note & note_shared ? "shared" : "global");
    mg_json_key_hex(j, "address", e->keys[key_address]);
    mg_json_key_u64(j, "bytes", s->note >> note_bytes);
    mg_json_key(j, "allocation"); /* the one below, or the lowest */
    if (e->keys[key_bytes]) {
        mg_json_obj(j);
        mg_json_key_hex(j, "address", e->keys[key_begin]);
        mg_json_key_u64(j, "bytes", e->keys[key_bytes]);
        mg_json_end(j, '}');
    } else {
        mg_json_null(j);
    }
    mg_json_key_u64(j, "times", e->cells[0]);
    mg_json_end(j, '}');
}

static void finding_row(const struct mg_result_kernel *k, const struct mg_result_site *s,
                        const struct mg_result_entry *e, struct mg_table *t)
{
    struct mg_buf who = MG_BUF_INIT;
    uint64_t c = e->keys[key_cta], x = e->keys[key_thread], at = e->keys[key_address], begin = e->keys[key_begin],
             bytes = e->keys[key_bytes];
    mg_table_row(t);
    mg_table_place(t, s);
    mg_table_text(t, kind_of(s));
    mg_table_u64(t, at);
    mg_buf_printf(&who, "CTA %u,%u,%u thread %u,%u,%u", (unsigned)(c & UINT32_MAX), (unsigned)(c >> 32 & 0xffff),
                  (unsigned)(c >> 48), (unsigned)(x & 0xffff), (unsigned)(x >> 16 & 0xffff),
                  (unsigned)(x >> 32 & 0xffff));
    mg_table_text(t, who.at);
    mg_buf_reset(&who);
    if (!bytes)
        mg_buf_adds(&who, "nothing is allocated");
    else if (at >= begin)
        mg_buf_printf(&who, "%llu bytes behind the end of 0x%llx + %llu",
                      (unsigned long long)(at - begin >= bytes ? at - begin - bytes : 0), (unsigned long long)begin,
                      (unsigned long long)bytes);
    else
        mg_buf_printf(&who, "%llu bytes before 0x%llx", (unsigned long long)(begin - at), (unsigned long long)begin);
    mg_table_text(t, who.at);
    mg_table_u64(t, e->keys[key_launch]);
    mg_table_u64(t, e->cells[0]);
    mg_table_text(t, k->demangled);
    mg_buf_release(&who);
}

static int by_who(const void *a, const void *b)
{
    const struct mg_result_entry *x = *(const struct mg_result_entry *const *)a,
                                 *y = *(const struct mg_result_entry *const *)b;
    for (int i = 0; i < n_keys; i++)
        if (x->keys[i] != y->keys[i]) return x->keys[i] < y->keys[i] ? -1 : 1;
    return 0;
}

static uint64_t tell_table(const struct mg_result_kernel *k, const struct mg_result_table *table, struct mg_table *t,
                           struct mg_json *j)
{
    const struct mg_result_entry **order = mg_xcalloc(table->n + 1, sizeof *order);
    const struct mg_result_site *s = &k->sites[table->site];
    for (uint64_t i = 0; i < table->n; i++) order[i] = &table->entries[i];
    if (table->n) qsort(order, table->n, sizeof *order, by_who);
    for (uint64_t i = 0; i < table->n; i++) {
        finding_json(k, s, order[i], j);
        finding_row(k, s, order[i], t);
    }
    free(order);
    return table->lost;
}

static void bounds_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    uint64_t lost = 0, counted = 0;
    (void)conf;
    mg_table_begin(t, "bounds", "accesses outside of live allocations: left out");
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "kind", MG_COL_TEXT, NULL);
    mg_table_column(t, "address", MG_COL_HEX, NULL);
    mg_table_column(t, "by", MG_COL_TEXT, NULL);
    mg_table_column(t, "where", MG_COL_TEXT, NULL);
    mg_table_column(t, "launch", MG_COL_COUNT, NULL);
    mg_table_column(t, "times", MG_COL_COUNT, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_json_key(j, "findings");
    mg_json_arr(j);
    for (uint32_t k = 0; k < r->n_kernels; k++) counted += r->kernels[k].counted;
    if (counted) mg_table_empty(t, "none");
    for (uint32_t k = 0; k < r->n_kernels; k++)
        for (uint32_t i = 0; i < r->kernels[k].n_tables; i++)
            lost += tell_table(&r->kernels[k], &r->kernels[k].tables[i], t, j);
    mg_json_end(j, ']');
    mg_json_key_u64(j, "more", lost);
    if (lost)
        mg_table_note(t, "and %llu more accesses of instructions that have %d findings each", (unsigned long long)lost,
                      (int)entries);
}

extern const struct mg_tool mg_tool_bounds;
const struct mg_tool mg_tool_bounds = {
    .name = "bounds",
    .summary = "accesses outside of live allocations: reported and left out",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 1.9 (docs/measured.md)",
    .opts = bounds_opts,
    .configure = bounds_configure,
    .release = bounds_release,
    .begin = bounds_begin,
    .end = bounds_end,
    .analyze = bounds_analyze,
    .instrument = bounds_instrument,
    .initialize = bounds_initialize,
    .list = bounds_list,
    .profile = bounds_profile,
    .flags = MG_TOOL_NO_LOADS | MG_TOOL_ACCESSES, /* of constants */
};
