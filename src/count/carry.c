/* Counters that travel with calls: a function that only direct calls reach does not add its counts to
 * memory at every return. It gets its counters' registers as further parameters and sends them back
 * beside its result; the kernel, or the last caller that cannot pass them on, adds them once.
 *
 *     entered at most once by a thread    the registers scheme register would use in the kernel
 *     at most 200 times                   what happens at most once an activation: 8 bits of a register, or as few
 *                                         as do
 *     any number of times                 the same; a test in every activation adds fields that fill up to memory
 *     in loops                            64 bits
 *
 * A recursive function tests its fields in front of calls that may enter it again, where it returns behind such a
 * call or a loop, and in every round of loops around its own calls, so that no field takes more than a few events
 * between two tests (count/spill.c); such loops' events are fields too. A function whose registers would not fit
 * where parameters travel keeps flushing. */
#include "count/storage/storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMIT(...)  EMIT_AT(x, __VA_ARGS__)
#define MOST_FUNCS 256
#define MOST_UNITS 12  /* of 32 bits: parameters and results travel in so many registers */
#define UNTESTED   200 /* events that a field can take without tests */
#define MOST_UNTESTED                                                                                                  \
    60               /* calls of a recursive function in a row that need no test while none of them calls it again */
#define MOST_HOLE 32 /* bytes: so many of parameters travel in registers for certain */
#define SHARED    UINT32_MAX

/* ---- who calls whom ------------------------------------------------------------------------------ */

static uint32_t callee_of(const struct mg_carry *y, uint32_t i, uint32_t block)
{
    const struct mg_cfg *c = y->s->cfgs[i];
    mg_id func = mg_direct_callee(c->m, c->blocks[block].last);
    for (uint32_t j = 0; func && j < y->n; j++)
        if (y->s->funcs[j] == func) return j;
    return UINT32_MAX;
}

/* The variable in which the call's result comes, 0: none; false: it comes some other way. */
static bool find_result(const struct mg_module *m, mg_id node, mg_id *var)
{
    struct mg_call c;
    mg_call_read(m, node, &c);
    *var = 0;
    if (c.rets == MG_NO_OPND) return true;
    const struct mg_opnd *list = &m->opnds.at[m->nodes.at[node].opnd + c.rets];
    if (!list->n) return true;
    if (list->n != 1 || m->opnds.at[list->id].kind != MG_OPND_var) return false;
    *var = m->opnds.at[list->id].id;
    return true;
}

static struct mg_decl *find_decl(struct mg_module *m, mg_id func, mg_id var)
{
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        if (m->nodes.at[id].kind != MG_NODE_decl) continue;
        struct mg_decl *d = &m->decls.at[m->nodes.at[id].ref];
        if (d->space != MG_SPACE_reg && var >= d->first && var < d->first + d->n) return d;
    }
    return NULL;
}

/* Has the call a variable for the result that is nobody else's? */
static bool may_widen(struct mg_module *m, const struct mg_carry *y, uint32_t i, mg_id node)
{
    mg_id var, other;
    if (!find_result(m, node, &var)) return false;
    if (!var) return true;
    const struct mg_decl *d = find_decl(m, y->s->funcs[i], var);
    if (!d || d->n != 1) return false;
    const struct mg_cfg *c = y->s->cfgs[i];
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        mg_id last = c->blocks[b].last;
        if (last == node || mg_node_form(m, &m->nodes.at[last])->op != MG_OP_call) continue;
        if (!find_result(m, last, &other) || other == var) return false;
    }
    return true;
}

static bool has_shape(const struct mg_module *m, mg_id func)
{
    const struct mg_func *f = &m->funcs.at[func];
    if (m->version_major < 2 || f->kind != MG_FUNC_func || f->noreturn || f->n_rets > 1) return false;
    for (uint32_t k = 0; k < f->n_params; k++)
        if (m->vars.at[f->first_param + k].is_reg_param) return false;
    return !f->n_rets || (!m->vars.at[f->first_ret].is_reg_param && mg_var_bytes(&m->vars.at[f->first_ret]));
}

struct mg_carry *mg_carry_new(const struct mg_sites *s, const struct mg_twin *t, const bool *may_exit)
{
    uint32_t n = s->n_funcs;
    if (n < 2 || n > MOST_FUNCS) return NULL;
    struct mg_module *m = t->m;
    struct mg_carry *y = mg_xcalloc(1, sizeof *y);
    bool *taken = mg_funcs_taken(s->cfgs[0]->m), any = false;
    y->n = n;
    y->s = s;
    y->calls = mg_xcalloc((size_t)n * n, sizeof *y->calls);
    y->carried = mg_xcalloc(n, sizeof *y->carried);
    y->cyclic = mg_xcalloc(n, sizeof *y->cyclic);
    y->times = mg_xcalloc(n, sizeof *y->times);
    y->through = mg_xcalloc((size_t)n * n, sizeof *y->through);
    y->without_context = mg_xcalloc(n, sizeof *y->without_context);
    for (uint32_t i = 1; i < n; i++) {
        y->carried[i] =
            !taken[s->funcs[i]] && !may_exit[s->funcs[i]] && s->cfgs[i]->n_blocks && has_shape(m, s->funcs[i]);
        if (taken[s->funcs[i]]) y->times[i] = UINT32_MAX;
    }
    y->times[0] = 1;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t b = 0; b < s->cfgs[i]->n_blocks; b++) {
            uint32_t j = callee_of(y, i, b);
            mg_id last = s->cfgs[i]->blocks[b].last;
            if (j == UINT32_MAX) continue;
            y->calls[i * n + j] = true;
            if (m->nodes.at[last].guard || !may_widen(m, y, i, last)) y->carried[j] = false;
        }
    bool *reach = mg_xcalloc((size_t)n * n, sizeof *reach);
    memcpy(reach, y->calls, (size_t)n * n * sizeof *reach);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; reach[i * n + k] && j < n; j++) reach[i * n + j] |= reach[k * n + j];
    for (uint32_t i = 0; i < n; i++) {
        y->cyclic[i] = reach[i * n + i];
        any |= y->carried[i];
    }
    free(reach);
    free(taken);
    if (any) return y;
    mg_carry_free(y);
    return NULL;
}

void mg_carry_free(struct mg_carry *y)
{
    if (!y) return;
    free(y->calls);
    free(y->carried);
    free(y->cyclic);
    free(y->times);
    free(y->few);
    free(y->through);
    free(y->without_context);
    free(y->cells);
    free(y->regs);
    free(y);
}

bool *mg_carry_cycles(const struct mg_carry *y, uint32_t func)
{
    if (!y || !y->cyclic[func] || !y->carried[func]) return NULL;
    const struct mg_cfg *c = y->s->cfgs[func];
    bool *back = mg_xcalloc(c->n_blocks + 1, sizeof *back);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        uint32_t j = callee_of(y, func, b);
        back[b] = j != UINT32_MAX && y->cyclic[j];
    }
    return back;
}

/* ---- how often a function is entered --------------------------------------------------------------- */

/* Calls of j on any way through i. */
static uint32_t most_calls(const struct mg_carry *y, const struct mg_rfunc *f, uint32_t i, uint32_t j)
{
    const struct mg_cfg *c = y->s->cfgs[i];
    uint32_t *most = mg_xcalloc(c->n_blocks + 1, sizeof *most), best = 0,
             *place = mg_xcalloc(c->n_blocks + 1, sizeof *place);
    for (uint32_t k = 0; k < c->n_blocks; k++) place[c->rpo[k]] = k;
    for (uint32_t k = 0; k < c->n_blocks && best != UINT32_MAX; k++) {
        uint32_t b = c->rpo[k];
        for (uint32_t p = 0; p < c->blocks[b].n_preds; p++) {
            uint32_t from = c->preds[c->blocks[b].pred_at + p];
            if (place[from] < k && most[from] > most[b]) most[b] = most[from];
        }
        if (callee_of(y, i, b) == j) {
            most[b]++;
            if (f->plan->loops->loop_of[b] != MG_NO_LOOP) best = UINT32_MAX;
        }
        if (most[b] > best) best = most[b];
    }
    free(most);
    free(place);
    return best;
}

/* Do functions that cannot call themselves enter j few times? Those that can test fields in every round of loops around
 * their calls. */
static bool is_entered_seldom(const struct mg_carry *y, const struct mg_rfunc *funcs, uint32_t j)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < y->n && sum <= MOST_UNTESTED; i++) {
        if (!y->calls[i * y->n + j] || (y->cyclic[i] && y->carried[i])) continue;
        sum += (uint64_t)most_calls(y, &funcs[i], i, j) * y->times[i];
    }
    return sum <= MOST_UNTESTED;
}

static uint32_t find_times(struct mg_carry *y, const struct mg_rfunc *funcs, bool *known, uint32_t j)
{
    uint64_t sum = y->times[j];
    if (known[j]) return y->times[j];
    known[j] = true;
    if (y->cyclic[j]) sum = UINT32_MAX;
    for (uint32_t i = 0; i < y->n && sum <= UNTESTED; i++) {
        if (!y->calls[i * y->n + j]) continue;
        uint32_t calls = most_calls(y, &funcs[i], i, j);
        sum = calls == UINT32_MAX ? calls : sum + (uint64_t)calls * find_times(y, funcs, known, i);
    }
    return y->times[j] = sum > UNTESTED ? UINT32_MAX : (uint32_t)sum;
}

/* ---- in what registers ------------------------------------------------------------------------------- */

static uint32_t new_cell(struct mg_carry *y, uint32_t func, enum mg_type type)
{
    y->cells = mg_xrealloc(y->cells, (y->n_cells + 1) * sizeof *y->cells);
    y->cells[y->n_cells] = (struct mg_cell){func, type};
    return y->n_cells++;
}

/* Innermost loop in every round of which the counter counts at most once. */
static uint32_t loop_of(const struct mg_rfunc *f, const struct mg_count *k)
{
    const struct mg_loops *l = f->plan->loops;
    uint32_t loop = k->kind == MG_COUNT_ENTRY ? MG_NO_LOOP : l->loop_of[k->block];
    while (k->kind == MG_COUNT_EDGE && loop != MG_NO_LOOP && !mg_loops_contains(l, loop, f->x.c->edges[k->edge]))
        loop = l->loops[loop].parent;
    return loop;
}

static bool calls_back(const struct mg_rfunc *f, uint32_t loop)
{
    for (uint32_t b = 0; f->calls.back && b < f->x.c->n_blocks; b++)
        if (f->calls.back[b] && mg_loops_contains(f->plan->loops, loop, b)) return true;
    return false;
}

static enum mg_rc_kind kind_of(const struct mg_carry *y, const struct mg_rfunc *f, const struct mg_count *k)
{
    uint32_t i = f->x.ix, loop = loop_of(f, k);
    if (k->kind == MG_COUNT_IV) return k->width == MG_WIDTH_32 && y->times[i] == 1 ? MG_RC_32 : MG_RC_64;
    if (f->calls.back && loop != MG_NO_LOOP && calls_back(f, loop)) return MG_RC_FIELD;
    if (k->width != MG_WIDTH_BIT) return k->width == MG_WIDTH_32 && y->times[i] == 1 ? MG_RC_32 : MG_RC_64;
    return y->times[i] != 1 ? MG_RC_FIELD : y->n_bits < MG_BANK ? MG_RC_BIT : MG_RC_32;
}

/* Bits that a field of the function needs. Those that the kernel adds lane by lane are as narrow as they can be: what
 * travels is what each call costs. */
static uint32_t field_width(const struct mg_carry *y, const struct mg_rfunc *kernel, uint32_t i)
{
    uint32_t width = 1;
    bool summed = !kernel->lone.is || y->times[i] == UINT32_MAX;
    for (uint32_t k = 1; k < y->n; k++) summed |= !y->carried[k];
    if (summed) return 8;
    while (y->times[i] >> width) width++;
    return width;
}

/* Counters of one function, with fields so wide; its registers are cells of its own but for the bits. Those of warps
 * stand behind the plan's, in the order of their blocks. */
static void place_own(struct mg_carry *y, struct mg_rfunc *f, uint32_t width)
{
    uint32_t n_fields = 0, cell = 0, each = 32 / width, b = 0;
    f->n = f->plan->n;
    for (uint32_t i = 0; f->o->warps && i < f->x.c->n_blocks; i++) f->n += f->x.c->reachable[i];
    f->n_measured = f->n;
    free(f->counters);
    f->counters = mg_xcalloc(f->n + 1, sizeof *f->counters);
    for (uint32_t i = 0; i < f->n; i++) {
        struct mg_rc *c = &f->counters[i];
        struct mg_count k;
        if (i < f->plan->n) {
            k = f->plan->list[i];
        } else {
            while (!f->x.c->reachable[b]) b++;
            k = (struct mg_count){.kind = MG_COUNT_BLOCK, .block = b, .width = mg_count_block_width(f->plan, b)};
            b++;
        }
        c->kind = kind_of(y, f, &k);
        c->why = y->times[f->x.ix] == 1 ? "travels with a call that is made once" : "travels with its calls";
        if (c->kind == MG_RC_BIT) {
            c->slot = y->n_bits++;
            c->bit = mg_rc_bit(c->slot);
        } else if (c->kind == MG_RC_FIELD) {
            if (n_fields % each == 0) cell = new_cell(y, f->x.ix, MG_TYPE_b32);
            c->bit = width * (n_fields++ % each);
            c->width = width;
            c->cell = cell;
        } else {
            c->cell = new_cell(y, f->x.ix, mg_storage_of(c)->wide ? MG_TYPE_b64 : MG_TYPE_b32);
        }
    }
}

static void find_through(struct mg_carry *y)
{
    uint32_t n = y->n;
    memset(y->through, 0, (size_t)n * n * sizeof *y->through);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) y->through[i * n + j] = y->calls[i * n + j] && y->carried[j];
        if (y->carried[i]) y->through[i * n + i] = true;
    }
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; y->carried[k] && i < n; i++)
            for (uint32_t j = 0; y->through[i * n + k] && j < n; j++) y->through[i * n + j] |= y->through[k * n + j];
}

static bool has_bits(const struct mg_rfunc *f)
{
    for (uint32_t i = 0; f->calls.carried && i < f->n_measured; i++)
        if (f->counters[i].kind == MG_RC_BIT) return true;
    return false;
}

static bool passes(const struct mg_carry *y, const struct mg_rfunc *funcs, uint32_t i, uint32_t cell)
{
    uint32_t from = y->cells[cell].func;
    if (from != SHARED) return y->through[i * y->n + from];
    for (uint32_t j = 0; j < y->n; j++)
        if (y->through[i * y->n + j] && has_bits(&funcs[j])) return true;
    return false;
}

/* Registers that travel through a function. */
static uint32_t count_units(const struct mg_carry *y, const struct mg_rfunc *funcs, uint32_t i)
{
    uint32_t units = 0;
    for (uint32_t c = 0; c < y->n_cells; c++)
        if (passes(y, funcs, i, c)) units += y->cells[c].type == MG_TYPE_b64 ? 2 : 1;
    return units;
}

/* ---- functions that do without the context's address ------------------------------------------------- */

/* Does the application's part of the function use it, but for handing it on? */
static bool uses_context(const struct mg_rfunc *f)
{
    const struct mg_module *m = f->x.m;
    mg_id ids[256];
    MG_EACH_NODE(m, &m->funcs.at[f->x.func], id)
    {
        if (m->nodes.at[id].kind != MG_NODE_inst || mg_direct_callee(m, id)) continue;
        uint32_t n = mg_node_uses(m, id, ids, MG_COUNT_OF(ids));
        if (n > MG_COUNT_OF(ids)) return true;
        for (uint32_t k = 0; k < n; k++)
            if (ids[k] == f->x.ctx) return true;
    }
    return false;
}

/* Nor does any field of it fill up, which goes to memory then, nor of what it calls. Its hidden parameter goes
 * (pass/twin_ctx.c). */
static void find_without_context(struct mg_carry *y, struct mg_rfunc *funcs)
{
    for (uint32_t i = 1; i < y->n; i++)
        y->without_context[i] = y->carried[i] && y->times[i] != UINT32_MAX && !uses_context(&funcs[i]);
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 1; i < y->n; i++)
            for (uint32_t j = 1; j < y->n && y->without_context[i]; j++)
                if (y->calls[i * y->n + j] && !y->without_context[j]) {
                    y->without_context[i] = false;
                    again = true;
                }
    }
}

/* ---- settled ------------------------------------------------------------------------------------------ */

void mg_carry_assign(struct mg_carry *y, struct mg_rfunc *funcs, const uint32_t *order)
{
    bool *known = mg_xcalloc(y->n, sizeof *known);
    known[0] = true;
    for (uint32_t i = 0; i < y->n; i++) (void)find_times(y, funcs, known, i);
    free(known);
    y->few = mg_xcalloc(y->n, sizeof *y->few);
    for (bool again = true; again;) { /* callees first: their callers may still fit without them */
        again = false;
        y->n_cells = y->n_bits = 0;
        new_cell(y, SHARED, MG_TYPE_b32);
        for (uint32_t i = 0; i < y->n; i++) {
            funcs[i].calls.carried = y->carried[i];
            funcs[i].calls.adds = y->carried[i] && y->times[i] != 1;
            if (y->carried[i]) place_own(y, &funcs[i], field_width(y, &funcs[0], i));
        }
        find_through(y);
        for (uint32_t k = y->n; k-- > 0 && !again;) {
            uint32_t i = order[k];
            if (!y->carried[i] || count_units(y, funcs, i) <= MOST_UNITS) continue;
            y->carried[i] = false;
            again = true;
        }
    }
    y->regs = mg_xcalloc((size_t)y->n * y->n_cells, sizeof *y->regs);
    for (uint32_t i = 0; i < y->n; i++) y->few[i] = is_entered_seldom(y, funcs, i);
    find_without_context(y, funcs);
}

static mg_id *reg_of(const struct mg_carry *y, uint32_t func, uint32_t cell)
{
    return &y->regs[(size_t)func * y->n_cells + cell];
}

static void make_regs(struct mg_carry *y, struct mg_rfunc *funcs, struct mg_rfunc *f)
{
    for (uint32_t c = 0; c < y->n_cells; c++)
        if (passes(y, funcs, f->x.ix, c)) *reg_of(y, f->x.ix, c) = mg_emit_reg(&f->x, "__mg_c", y->cells[c].type);
}

/* Fields first, those of one register side by side: they are summed in pairs, and emptied in a row. */
static void list_sources(const struct mg_carry *y, const struct mg_rfunc *funcs, struct mg_rfunc *f)
{
    uint32_t most = 0;
    for (uint32_t j = 0; j < y->n; j++)
        if (y->through[f->x.ix * y->n + j]) most += funcs[j].n_measured;
    f->calls.sources = mg_xcalloc(most + 1, sizeof *f->calls.sources);
    for (uint32_t fields = 2; fields-- > 0;)
        for (uint32_t j = 0; j < y->n; j++)
            for (uint32_t i = 0; y->through[f->x.ix * y->n + j] && i < funcs[j].n_measured; i++)
                if ((funcs[j].counters[i].kind == MG_RC_FIELD) == fields)
                    f->calls.sources[f->calls.n_sources++] = (struct mg_rsource){j, i};
}

void mg_carry_receive(struct mg_carry *y, struct mg_rfunc *funcs, uint32_t func)
{
    struct mg_rfunc *f = &funcs[func];
    if (!y) return;
    make_regs(y, funcs, f);
    if (f->calls.carried) {
        for (uint32_t i = 0; i < f->n_measured; i++) f->counters[i].reg = *reg_of(y, func, f->counters[i].cell);
        return;
    }
    list_sources(y, funcs, f);
    f->n_bits = *reg_of(y, func, 0) ? y->n_bits : 0;
}

/* ---- code ---------------------------------------------------------------------------------------------- */

struct place {
    uint32_t cell;
    uint32_t off;
};

/* A recursive function that needs the context's address sends it back, too: nobody has to keep it during the call. */
static bool returns_context(const struct mg_carry *y, uint32_t func)
{
    return y->cyclic[func];
}

/* Where cells lie behind so many bytes; returns the whole. Those of 64 bits come first, behind
 * a narrow one that fills a hole. */
static uint32_t lay_out(const struct mg_carry *y, uint32_t func, uint32_t bytes, struct place *out, uint32_t *n)
{
    uint32_t at = (bytes + 3) / 4 * 4, filler = UINT32_MAX;
    *n = 0;
    for (uint32_t round = at % 8 ? 0 : 1; round < 3; round++)
        for (uint32_t c = 0; c < y->n_cells; c++) {
            bool wide = y->cells[c].type == MG_TYPE_b64;
            if (!*reg_of(y, func, c) || wide != (round == 1) || c == filler) continue;
            if (wide) at = (at + 7) / 8 * 8;
            out[(*n)++] = (struct place){c, at};
            at += wide ? 8 : 4;
            if (round) continue;
            filler = c;
            break;
        }
    return (at + 7) / 8 * 8;
}

/* Where the counters begin in what the function sends back: behind its result, and behind a hole as wide as its
 * parameters, so that they come back in the machine's registers in which they went; the context's address, too. */
static void find_sent(const struct mg_carry *y, struct mg_rfunc *f)
{
    const struct mg_module *m = f->x.m;
    const struct mg_func *fn = &m->funcs.at[f->x.func];
    uint32_t result = fn->n_rets ? (uint32_t)mg_var_bytes(&m->vars.at[fn->first_ret]) : 0, in = 0, context = 0;
    for (uint32_t k = 0; k < fn->n_params; k++) {
        const struct mg_var *v = &m->vars.at[fn->first_param + k];
        bool is_context = v->name == m->vars.at[f->x.t->ctx_param].name;
        uint32_t bytes = (uint32_t)mg_var_bytes(v);
        if (y->without_context[f->x.ix] && is_context) continue;
        if (bytes > 4) in = (in + 7) / 8 * 8;
        if (is_context) context = in;
        in += (bytes + 3) / 4 * 4;
    }
    bool has_hole = in <= MOST_HOLE;
    f->calls.sent_at = has_hole ? MG_MAX(result, in) : result;
    f->calls.context_at = 0;
    if (!returns_context(y, f->x.ix)) return;
    f->calls.context_at = has_hole && context >= result ? context : (result + 7) / 8 * 8;
    f->calls.sent_at = MG_MAX(f->calls.sent_at, f->calls.context_at + 8);
}

static void widen(struct mg_module *m, mg_id var, uint32_t bytes)
{
    uint64_t *dims = mg_arena_array(&m->arena, uint64_t, 1);
    struct mg_var *v = &m->vars.at[var];
    uint32_t align = mg_var_align(v);
    v->type = MG_TYPE_b8;
    v->vec = 0;
    v->align = align > 8 ? align : 8;
    v->n_dims = 1;
    v->dims = dims;
    dims[0] = bytes;
}

static mg_id new_result(struct mg_module *m, mg_id func, const char *prefix, bool is_ret)
{
    char name[32];
    mg_id var = m->vars.n;
    snprintf(name, sizeof name, "%s%u", prefix, (unsigned)var);
    *mg_vec_push(&m->vars) = (struct mg_var){.name = mg_intern_adds(&m->names, name),
                                             .space = MG_SPACE_param,
                                             .type = MG_TYPE_b64,
                                             .func = func,
                                             .is_ret = is_ret};
    return var;
}

static void widen_result(struct mg_module *m, mg_id func, uint32_t bytes)
{
    if (!m->funcs.at[func].n_rets) {
        mg_id var = new_result(m, func, "__mg_ret", true);
        m->funcs.at[func].first_ret = var;
        m->funcs.at[func].n_rets = 1;
    }
    widen(m, m->funcs.at[func].first_ret, bytes);
}

void mg_carry_enter(struct mg_carry *y, struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    struct mg_module *m = x->m;
    struct place *to = mg_xcalloc(y->n_cells + 1, sizeof *to);
    find_sent(y, f);
    uint32_t n, bytes = lay_out(y, x->ix, f->calls.sent_at, to, &n), n_funcs = m->funcs.n;
    for (mg_id other = 1; other < n_funcs; other++) {
        if (m->funcs.at[other].kind != MG_FUNC_func || mg_func_body(m, other) != x->func) continue;
        for (uint32_t k = 0; k < n; k++) {
            char name[32];
            snprintf(name, sizeof name, "__mg_in%u", (unsigned)m->vars.n);
            mg_id var = mg_func_add_param(m, other, mg_intern_adds(&m->names, name), y->cells[to[k].cell].type);
            if (other == x->func)
                EMIT(y->cells[to[k].cell].type == MG_TYPE_b64 ? "ld.param.b64" : "ld.param.b32",
                     *reg_of(y, x->ix, to[k].cell), mg_o_addr_var(var, 0));
        }
        widen_result(m, other, bytes);
    }
    free(to);
}

/* Has every way from the function's entry to the block's end neither a loop nor a call by which the function may be
 * entered again? Then the few events on it need no test. */
static bool is_short_way(const struct mg_rfunc *f, uint32_t block)
{
    const struct mg_cfg *c = f->x.c;
    uint64_t *before = mg_xcalloc(mg_bits_words(c->n_blocks) + 1, sizeof *before);
    bool is_short = true;
    mg_cfg_find_reaching(c, block, before);
    for (uint32_t b = 0; b < c->n_blocks; b++)
        is_short = is_short && (!mg_has(before, b) || (!f->calls.back[b] && f->plan->loops->loop_of[b] == MG_NO_LOOP));
    free(before);
    return is_short;
}

/* Tests fields on the ways to a return that are long; the short ones, by which most activations leave, go without. */
static void test_at_return(struct mg_carry *y, struct mg_rfunc *f, mg_id ret)
{
    struct mg_emit *x = &f->x;
    const struct mg_cfg *c = x->c;
    uint32_t block = 0;
    while (block < c->n_blocks && c->blocks[block].last != ret) block++;
    bool apart = y->times[x->ix] == UINT32_MAX && block < c->n_blocks && f->calls.back && !f->calls.back[block] &&
                 f->plan->loops->loop_of[block] == MG_NO_LOOP;
    for (uint32_t p = 0; apart && p < c->blocks[block].n_preds; p++) {
        uint32_t from = c->preds[c->blocks[block].pred_at + p], edge = c->blocks[from].succ_at;
        if (!c->reachable[from] || is_short_way(f, from)) continue;
        while (c->edges[edge] != block) edge++;
        struct mg_spot s = mg_place_edge(&f->place, from, edge);
        x->at = s.guard ? c->blocks[from].last : s.at;
        mg_rc_spill_fields(f, y);
    }
    x->at = ret;
    if (!apart) mg_rc_spill_fields(f, y);
}

void mg_carry_return(struct mg_carry *y, struct mg_rfunc *f, mg_id at)
{
    struct mg_emit *x = &f->x;
    struct place *to = mg_xcalloc(y->n_cells + 1, sizeof *to);
    mg_id result = x->m->funcs.at[x->func].first_ret;
    uint32_t n;
    lay_out(y, x->ix, f->calls.sent_at, to, &n);
    x->at = at;
    if (y->cyclic[x->ix]) test_at_return(y, f, at);
    for (uint32_t k = 0; k < n; k++)
        EMIT(y->cells[to[k].cell].type == MG_TYPE_b64 ? "st.param.b64" : "st.param.b32",
             mg_o_addr_var(result, to[k].off), *reg_of(y, x->ix, to[k].cell));
    if (returns_context(y, x->ix)) EMIT("st.param.b64", mg_o_addr_var(result, f->calls.context_at), x->ctx);
    free(to);
}

/* The block at whose head an activation's fields are tested before any call may enter the function again: the last that
 * all such calls have passed, outside loops; short ways need not pass it. 0: the entry. */
static uint32_t find_descent(const struct mg_carry *y, const struct mg_rfunc *f)
{
    const struct mg_dom *d = f->plan->dom;
    uint32_t at = MG_NO_BLOCK, n = 0;
    for (uint32_t b = 0; f->calls.back && b < f->x.c->n_blocks; b++) {
        if (!f->calls.back[b] || !f->x.c->reachable[b]) continue;
        n++;
        if (at == MG_NO_BLOCK) at = b;
        while (!mg_dom_over(d, at, b)) at = d->idom[at];
    }
    if (!n || n > MOST_UNTESTED || !y->few[f->x.ix]) return 0;
    while (at && f->plan->loops->loop_of[at] != MG_NO_LOOP) at = d->idom[at];
    return at;
}

void mg_carry_check(struct mg_carry *y, struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    const struct mg_loops *l = f->plan->loops;
    if (y->times[x->ix] != UINT32_MAX) return;
    uint32_t descent = find_descent(y, f);
    x->at = descent ? mg_block_head(x->m, &x->c->blocks[descent]) : x->t->entry_at[x->ix];
    mg_rc_spill_fields(f, y);
    for (uint32_t k = 0; k < l->n_loops;
         k++) /* in every round, behind its calls; an irreducible loop's headers are all tested */
        for (uint32_t b = 0; b < x->c->n_blocks && calls_back(f, k); b++) {
            const struct mg_block *h = &x->c->blocks[b];
            uint32_t latch = f->plan->ivs->latch[k];
            bool tests = mg_loops_contains(l, k, b) && b == (latch == MG_NO_BLOCK ? l->loops[k].header : latch);
            for (uint32_t p = 0; p < h->n_preds && mg_loops_contains(l, k, b) && l->loops[k].n_headers > 1; p++)
                tests |= !mg_loops_contains(l, k, x->c->preds[h->pred_at + p]);
            if (!tests) continue;
            x->at = mg_block_head(x->m, h);
            mg_rc_spill_fields(f, y);
        }
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static mg_id add_result(struct mg_module *m, mg_id func, mg_id node)
{
    struct mg_node n = m->nodes.at[node];
    struct mg_call c;
    mg_call_read(m, node, &c);
    mg_id var = new_result(m, func, "__mg_back", false), decl = m->decls.n, list = mg_opnd_alloc(m, 1);
    *mg_vec_push(&m->decls) = (struct mg_decl){.space = MG_SPACE_param, .type = MG_TYPE_b8, .first = var, .n = 1};
    mg_node_insert_after(m, func, 0, mg_node_new_kind(m, MG_NODE_decl, decl));
    m->opnds.at[list] = mg_o_var(var);
    struct mg_opnd rets = {.kind = MG_OPND_list, .n = 1, .id = list};
    if (c.rets != MG_NO_OPND) {
        m->opnds.at[n.opnd + c.rets] = rets;
        return var;
    }
    mg_id first = mg_opnd_alloc(m, n.n_opnds + 1u);
    m->opnds.at[first] = rets;
    memcpy(&m->opnds.at[first + 1], &m->opnds.at[n.opnd], n.n_opnds * sizeof(struct mg_opnd));
    m->nodes.at[node].opnd = first;
    m->nodes.at[node].n_opnds++;
    return var;
}

static void rewrite_call(struct mg_carry *y, struct mg_rfunc *f, const struct mg_rfunc *callee, mg_id node)
{
    struct mg_emit *x = &f->x;
    struct mg_module *m = x->m;
    struct place *to = mg_xcalloc(y->n_cells + 1, sizeof *to);
    uint32_t n, bytes = lay_out(y, callee->x.ix, callee->calls.sent_at, to, &n);
    mg_id var, after = m->nodes.at[node].next;
    find_result(m, node, &var);
    if (!var)
        var = add_result(m, x->func, node);
    else
        find_decl(m, x->func, var)->type = MG_TYPE_b8;
    widen(m, var, bytes);
    x->at = after;
    for (uint32_t k = 0; k < n; k++) {
        struct mg_call c;
        mg_id reg = *reg_of(y, x->ix, to[k].cell);
        mg_call_read(m, node, &c);
        mg_call_add_arg(m, node, &c, reg);
        EMIT(y->cells[to[k].cell].type == MG_TYPE_b64 ? "ld.param.b64" : "ld.param.b32", reg,
             mg_o_addr_var(var, to[k].off));
    }
    if (returns_context(y, callee->x.ix) && x->ix)
        EMIT("ld.param.b64", x->ctx, mg_o_addr_var(var, callee->calls.context_at));
    if (f->calls.settles) {
        mg_rc_settle(f);
        x->at = node;
        mg_rc_clear_sources(f);
    }
    free(to);
}

void mg_carry_calls(struct mg_carry *y, struct mg_rfunc *funcs, uint32_t func)
{
    for (uint32_t b = 0; b < y->s->cfgs[func]->n_blocks; b++) {
        uint32_t j = callee_of(y, func, b);
        if (j != UINT32_MAX && y->carried[j])
            rewrite_call(y, &funcs[func], &funcs[j], y->s->cfgs[func]->blocks[b].last);
    }
}
