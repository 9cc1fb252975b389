/* Scheme register of the tool blocks: counts a minimal set (pass/count.h) in registers and adds it to
 * memory by one reduction a warp where a path ends (blocks_flush.c).
 *
 *   at most once in an activation     one bit of a packed register:   or.b32 K, K, bit
 *   in loops                          a register:                     add c, c, 1
 *   by an induction variable          nothing in the loop; at its entry  sub c, c, i;  at its exits  add c, c, i
 *   more than there are registers for a word of local memory; a byte where it happens at most once
 *
 * Code stands on edges of the CFG: behind the branch for the way that falls through, in a block of its
 * own for a cold one that is taken. Counters of 32 bits only where fewer than 2^32 events are proven.
 * The kernel's entries are its threads; a function's are the entries of the blocks that call it, or
 * it counts them itself (recursion, pointers, guarded calls). In front of a call that may end the
 * lane everything is flushed and begins anew.
 *
 * Warp entries: as in scheme class, a cohort's blocks by what its first lane alone has measured, others
 * by the lowest active lane; in functions whose counters travel all by that, in the CTA's shared memory.
 */
#include "analysis/alike.h"
#include "tool/blocks_regs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)
#define R(r) mg_o_reg(r)
#define I(n) mg_o_imm(n)

/* ---- who calls whom ---------------------------------------------------------------------------------- */

struct kernel {
    const struct mg_blocks_opts *o;
    const struct mg_sites *s;
    struct mg_twin *t;
    struct mg_counter_layout *l;
    struct mg_rfunc *funcs;
    bool *may_exit;
    uint32_t *order; /* callers before callees */
    struct mg_carry *carry; /* NULL: no function's counters travel */
};

/* Blocks that call function i, each once in each of its entries; false: entries do not follow from them. */
static bool find_callers(struct kernel *k, uint32_t i, const bool *taken)
{
    struct mg_rfunc *f = &k->funcs[i];
    const struct mg_module *m = k->s->cfgs[0]->m; /* the original: calls as the application has them */
    if (taken[k->s->funcs[i]]) return false;
    for (uint32_t pass = 0; pass < 2; pass++) {
        f->n_callers = 0;
        for (uint32_t j = 0; j < k->s->n_funcs; j++)
            for (uint32_t b = 0; b < k->s->cfgs[j]->n_blocks; b++) {
                mg_id last = k->s->cfgs[j]->blocks[b].last;
                if (!k->s->cfgs[j]->reachable[b] || mg_direct_callee(m, last) != k->s->funcs[i]) continue;
                if (m->nodes.at[last].guard) return false;
                if (pass) f->callers[f->n_callers] = k->s->first_block[j] + b;
                f->n_callers++;
            }
        if (!pass) f->callers = mg_xcalloc(f->n_callers + 1, sizeof *f->callers);
    }
    return f->n_callers != 0;
}

/* Kernel first; a function when all its callers are done; one in a circle of calls counts its entries. */
static void order_funcs(struct kernel *k)
{
    uint32_t n = k->s->n_funcs, done = 0;
    bool *placed = mg_xcalloc(n + 1, sizeof *placed), *taken = mg_funcs_taken(k->s->cfgs[0]->m);
    k->order = mg_xcalloc(n + 1, sizeof *k->order);
    for (uint32_t i = 1; i < n; i++) k->funcs[i].from_calls = find_callers(k, i, taken);
    k->order[done++] = 0;
    placed[0] = true;
    while (done < n) {
        uint32_t found = UINT32_MAX, first = UINT32_MAX; /* first: of a circle, where one is known */
        for (uint32_t i = 1; i < n && found == UINT32_MAX; i++) {
            if (placed[i]) continue;
            if (first == UINT32_MAX || (k->carry && k->carry->cyclic[i] && !k->carry->cyclic[first])) first = i;
            bool ready = true;
            for (uint32_t c = 0; c < k->funcs[i].n_callers && k->funcs[i].from_calls; c++)
                ready = ready && placed[k->s->blocks[k->funcs[i].callers[c]].func_ix];
            if (ready) found = i;
        }
        if (found == UINT32_MAX) k->funcs[found = first].from_calls = false;
        placed[found] = true;
        k->order[done++] = found;
    }
    free(placed);
    free(taken);
}

/* ---- planning a function ------------------------------------------------------------------------------ */

static void find_rules(struct mg_rfunc *f, struct mg_rfunc *kernel)
{
    const struct mg_cfg *c = f->x.c;
    f->rule = mg_xcalloc(c->n_blocks + 1, sizeof *f->rule);
    f->warp_counter = mg_xcalloc(c->n_blocks + 1, sizeof *f->warp_counter);
    f->cohorts = mg_xcalloc(c->n_blocks + 1, sizeof *f->cohorts);
    if (!f->x.o->warps) return;
    for (uint32_t b = 0; f->carried && b < c->n_blocks; b++) {
        if (!c->reachable[b]) continue;
        f->rule[b] = MG_WR_LOWEST;
        f->warp_counter[b] = kernel->n_near++;
    }
    if (f->carried) return;
    bool leaves = false;
    for (uint32_t b = 0; b < c->n_blocks; b++) leaves |= f->may_leave[b];
    struct mg_uniform *u = mg_uniform_new(c, f->plan->loops);
    bool *worth = mg_xcalloc(c->n_blocks + 1, sizeof *worth); /* cohorts with a loop */
    uint32_t n_worth = 0;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        if (!c->reachable[b] || u->cohort[b] == MG_NO_COHORT || worth[u->cohort[b]]) continue;
        bool loop = !leaves && f->plan->loops->loop_of[b] != MG_NO_LOOP && n_worth < MG_MAX_COHORTS;
        worth[u->cohort[b]] = u->cohort[b] == 0 || loop;
        n_worth += worth[u->cohort[b]];
    }
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        if (!c->reachable[b]) continue;
        bool cohort = u->cohort[b] != MG_NO_COHORT && worth[u->cohort[b]];
        f->rule[b] = cohort && (u->cohort[b] == 0 || b != u->cohort[b]) ? MG_WR_COHORT : MG_WR_LOWEST;
        f->warp_counter[b] = cohort ? u->cohort[b] : 0;
    }
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (worth[b]) f->cohorts[f->n_cohorts++] = (struct mg_rcohort){.begin = b, .flag = UINT32_MAX};
    free(worth);
    mg_uniform_free(u);
}

struct wanted { enum mg_count_width width; bool rare, few; double events; uint32_t counter; }; /* rare: not in an innermost loop */

static int by_events(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    if (x->events != y->events) return x->events > y->events ? -1 : 1;
    return x->counter < y->counter ? -1 : x->counter > y->counter;
}

#define GUARD_FROM 6     /* counters of 64 bits in one loop */
#define MANY_THREADS 1024
#define FEW_LEFT 4       /* registers for counters */
#define MOST_WIDE 4      /* counters of two registers for induction variables of loops inside loops */
#define MOST_LATE 16     /* counters that begin behind their loops and are taken to cost no register */
#define MOST_RENEWED 64  /* counters of a function whose zeroes are renewed behind loops */
#define MOST_SENT 6      /* registers of callees' counters that live on from call to call beside counters in shared memory */
#define FEW_REGISTERS 8  /* for counters in loops, where CTAs are as large: registers of native code are few */

/* Would it be one of 64 bits on which 32 do where rounds are counted? */
static bool is_wide(const struct mg_rfunc *f, const struct wanted *w)
{
    return w->width == MG_WIDTH_64 && f->plan->list[w->counter].kind != MG_COUNT_IV && mg_shared_takes(f, w->counter);
}

/* By counter: is it worth counting rounds of its loop, three instructions in each, so that 32 bits do for this and
 * the others there? To be freed. */
static bool *choose_guarded(const struct mg_rfunc *f, const struct wanted *rest, uint32_t n)
{
    const uint32_t n_loops = f->plan->loops->n_loops;
    bool *guarded = mg_xcalloc(f->n + 1, sizeof *guarded);
    uint32_t *in_loop = mg_xcalloc(n_loops + 1, sizeof *in_loop); /* the last: in none */
    if (!mg_shared_may(f)) n = 0;
    for (uint32_t k = 0; k < n; k++) in_loop[MG_MIN(mg_shared_loop(f, rest[k].counter), n_loops)] += is_wide(f, &rest[k]);
    for (uint32_t k = 0; k < n; k++) guarded[rest[k].counter] = is_wide(f, &rest[k]) && in_loop[MG_MIN(mg_shared_loop(f, rest[k].counter), n_loops)] >= GUARD_FROM;
    free(in_loop);
    return guarded;
}

/* Is it nothing before its loop has ended? */
static bool begins_late(const struct mg_count *k) { return (k->n_ifs || k->restores) && k->one_run; }

/* 32-bit registers that the counter wants while the kernel has others to hold. */
static uint32_t cells_of(const struct mg_rfunc *f, const struct wanted *w, const bool *guarded)
{
    if (w->few || (w->counter < f->n_measured && begins_late(&f->plan->list[w->counter]))) return 0;
    bool carries = w->rare && f->x.o->scope == MG_COUNT_FULL && !f->n_cohorts;
    return w->width == MG_WIDTH_64 && !carries && !guarded[w->counter] ? 2 : 1;
}

/* Do CTAs wait for all their threads in loops? Only other CTAs make up for that. */
static bool waits_in_loops(const struct mg_rfunc *f)
{
    const struct mg_cfg *c = f->x.c;
    for (uint32_t b = 0; b < c->n_blocks; b++)
        for (mg_id id = c->blocks[b].first; c->reachable[b] && f->plan->loops->loop_of[b] != MG_NO_LOOP && id; id = id == c->blocks[b].last ? 0 : f->x.m->nodes.at[id].next) {
            const struct mg_node *n = &f->x.m->nodes.at[id];
            if (n->kind != MG_NODE_inst) continue;
            unsigned op = mg_node_form(f->x.m, n)->op;
            if (op == MG_OP_bar || op == MG_OP_barrier) return true;
        }
    return false;
}

/* 32-bit registers for counters in loops: no more than leave room for as many CTAs as natively, where that matters. */
static uint32_t most_cells(const struct mg_rfunc *f)
{
    const struct mg_twin *t = f->x.t;
    uint32_t most = t->threads >= MANY_THREADS ? MG_MIN(f->x.o->registers, (uint32_t)FEW_REGISTERS) : f->x.o->registers;
    if (t->most_registers && (t->must_fit || waits_in_loops(f))) most = MG_MIN(most, t->most_registers > t->registers ? t->most_registers - t->registers : 0);
    return most;
}

/* An addition of doubles is one instruction, and on devices that compute with them at half the speed of floats it runs
 * beside the integers of a loop; 64 bits of integers take two. */
static bool reals_are_fast(uint32_t sm) { return sm == 60 || sm == 70 || sm == 80 || sm == 90 || sm == 100; }

static bool counts_in_reals(const struct mg_rfunc *f, uint32_t counter)
{
    return reals_are_fast(f->x.o->sm) && (counter >= f->n_measured || f->plan->list[counter].kind != MG_COUNT_IV);
}

/* Comes any of what callees send back in the packed register that is the kernel's as well? */
static bool sent_bits(const struct mg_rfunc *f)
{
    for (uint32_t i = f->n - f->n_sources; i < f->n; i++)
        if (f->counters[i].kind == MG_RC_BIT) return true;
    return false;
}

/* 32-bit registers in which callees send counters back. */
static uint32_t sent_registers(const struct mg_rfunc *f)
{
    uint32_t n = 0;
    for (uint32_t i = f->n - f->n_sources; i < f->n; i++) {
        const struct mg_rc *c = &f->counters[i];
        if (c->kind != MG_RC_FIELD || !c->bit) n += c->kind == MG_RC_64 ? 2 : 1;
    }
    return n;
}

/* Registers are so few, and other CTAs so needed, that shared memory is better for all: no warp sums anything at its end. */
static bool all_to_shared(const struct mg_rfunc *f, const struct wanted *rest, uint32_t n_rest, uint32_t most)
{
    bool plain = !f->n_sources && !f->n_cohorts && !f->n_cuts && !f->n_flags && !f->n_near && f->n_bits + n_rest <= MG_SHARED_FEW;
    if (!plain || most > FEW_LEFT || !waits_in_loops(f) || !f->redux || f->x.o->scope != MG_COUNT_FULL) return false;
    for (uint32_t k = 0; k < n_rest; k++)
        if (!mg_shared_takes(f, rest[k].counter)) return false;
    return true;
}

/* And are they all words of loops, but for what is packed? */
static bool all_to_loops(const struct mg_rfunc *f, const struct wanted *rest, uint32_t n_rest)
{
    bool *asked = mg_xcalloc(f->plan->loops->n_loops + 1, sizeof *asked), good = true;
    for (uint32_t k = 0; k < n_rest && good; k++) good = rest[k].few || mg_loop_words_may(f, rest[k].counter, asked);
    free(asked);
    return good && f->n_bits <= MG_BANK;
}

#define FEW_FROM 3

/* Marks those of the rest that the packed register of small fields takes: the busiest. Fewer are no gain. */
static void choose_few(struct mg_rfunc *f, struct wanted *rest, uint32_t n_rest)
{
    uint32_t n = 0;
    bool may = !f->x.ix && f->redux && !f->n_sources && !f->n_cohorts && !f->x.o->warps;
    for (uint32_t k = 0; k < n_rest; k++) n += may && f->plan->list[rest[k].counter].few;
    for (uint32_t k = 0; n >= FEW_FROM && k < n_rest; k++) {
        rest[k].few = f->plan->list[rest[k].counter].few && f->n_few < MG_FEW_COLUMNS * MG_FEW_GROUPS;
        f->n_few += rest[k].few;
    }
}

/* Gives each counter its kind: bits while there are banks, registers for the busiest. */
static void assign_kinds(struct mg_rfunc *f, const struct wanted *all)
{
    struct wanted *rest = mg_xcalloc(f->n + 1, sizeof *rest);
    uint32_t n_rest = 0, cells = 0, wanted = 0, late = 0, n_own = f->n - f->n_sources;
    bool *placed = mg_xcalloc(f->n + 1, sizeof *placed);
    for (uint32_t i = n_own; i < f->n; i++) { /* what comes from callees has its registers already */
        placed[i] = true;
        if (f->counters[i].kind != MG_RC_BIT) f->counters[i].slot = f->n_words++; /* among words, for now */
        cells += f->counters[i].kind == MG_RC_64 ? 2 : f->counters[i].kind == MG_RC_32;
    }
    for (uint32_t k = 0; k < f->n_cohorts; k++) /* flags of cohorts have to be bits */
        if (f->cohorts[k].flag != UINT32_MAX) {
            placed[f->cohorts[k].flag] = true;
            f->counters[f->cohorts[k].flag] = (struct mg_rc){.kind = MG_RC_BIT, .slot = f->n_bits++};
        }
    bool rows = mg_rows_plan(f, placed);
    if (rows) f->n_bits = MG_BANK * (f->n_cuts + 1);
    for (uint32_t i = 0; i < n_own; i++) {
        if (placed[i]) continue;
        if (all[i].width == MG_WIDTH_BIT && !rows && f->n_bits < MG_BANK * MG_BIT_BANKS) {
            f->counters[i].kind = MG_RC_BIT;
            f->counters[i].slot = f->n_bits++;
        } else if (all[i].width == MG_WIDTH_BIT) {
            f->counters[i].kind = MG_RC_FLAG;
            f->n_flags++;
        } else {
            rest[n_rest++] = all[i];
        }
    }
    free(placed);
    qsort(rest, n_rest, sizeof *rest, by_events);
    choose_few(f, rest, n_rest);
    cells += f->n_few != 0;
    bool *guarded = choose_guarded(f, rest, n_rest);
    for (uint32_t k = 0; k < n_rest; k++) wanted += cells_of(f, &rest[k], guarded);
    uint32_t most = most_cells(f);
    bool shares = wanted + cells > most && mg_shared_may(f) && mg_shared_has_room(f);
    if (shares && !sent_bits(f) && sent_registers(f) > MOST_SENT) { /* registers of callees' counters need not live from call to call either */
        f->settles = f->n_sources != 0;
        cells = 0;
    }
    if (shares && wanted > 2 * most) most /= 4; /* most events go to shared memory anyhow */
    if (!shares) most = MG_COUNTER_CELLS;
    f->all_shared = shares && all_to_shared(f, rest, n_rest, most);
    bool in_loops = f->all_shared && all_to_loops(f, rest, n_rest);
    if (in_loops) f->all_shared = false;
    if (f->all_shared && f->n_few) {
        f->n_few = 0;
        for (uint32_t k = 0; k < n_rest; k++) rest[k].few = false;
    }
    for (uint32_t i = 0; f->all_shared && i < n_own; i++)
        if (f->counters[i].kind == MG_RC_BIT && all[i].width == MG_WIDTH_BIT) f->counters[i].kind = MG_RC_SHARED, f->n_shared++, f->n_bits--;
    for (uint32_t k = 0; k < n_rest; k++) {
        struct mg_rc *c = &f->counters[rest[k].counter];
        uint32_t need = cells_of(f, &rest[k], guarded);
        if (!need && late++ >= MOST_LATE) need = rest[k].width == MG_WIDTH_64 ? 2 : 1;
        bool narrow = guarded[rest[k].counter];
        if (rest[k].few) {
            c->kind = MG_RC_FEW;
            f->n_words++;
            continue;
        }
        if (f->all_shared || in_loops || (shares && cells + need > most && mg_shared_takes(f, rest[k].counter))) c->kind = MG_RC_SHARED, f->n_shared++;
        else if (cells + need > MG_COUNTER_CELLS) c->kind = MG_RC_LOCAL;
        else if (need == 2 || (!need && rest[k].width == MG_WIDTH_64)) c->kind = MG_RC_64, c->real = counts_in_reals(f, rest[k].counter);
        else if (narrow || rest[k].width != MG_WIDTH_64) c->kind = MG_RC_32, c->small = c->guarded = narrow;
        else c->kind = MG_RC_CARRY;
        if (!mg_rc_in_memory(c)) cells += need, f->n_words++;
    }
    free(guarded);
    uint32_t word = f->n_bits, local = f->n_bits + f->n_words, few = 0;
    for (uint32_t k = 0; k < n_rest; k++)
        if (rest[k].few) f->counters[rest[k].counter].bit = mg_rc_few(few++), f->counters[rest[k].counter].slot = word++;
    for (uint32_t i = n_own; i < f->n; i++)
        if (f->counters[i].kind != MG_RC_BIT) f->counters[i].slot += f->n_bits, word++;
    for (uint32_t k = 0; k < n_rest; k++) {
        struct mg_rc *c = &f->counters[rest[k].counter];
        if (c->kind != MG_RC_SHARED && c->kind != MG_RC_FEW) c->slot = c->kind == MG_RC_LOCAL ? local++ : word++;
    }
    f->n_locals = local - f->n_bits - f->n_words;
    for (uint32_t i = 0; i < n_own; i++)
        if (f->counters[i].kind == MG_RC_FLAG) f->counters[i].slot = local++;
    f->shared_slot = local;
    for (uint32_t i = 0; i < n_own; i++)
        if (f->counters[i].kind == MG_RC_SHARED) f->counters[i].slot = local++;
    f->n_shared += f->n_near;
    if (in_loops) mg_loop_words_place(f, f->shared_slot);
    free(rest);
}

void mg_rc_add_local_array(struct mg_rfunc *f)
{
    struct mg_module *m = f->x.m;
    char name[32];
    mg_id var = m->vars.n, decl = m->decls.n;
    snprintf(name, sizeof name, "__mg_local%u", (unsigned)var);
    struct mg_var v = {.name = mg_intern_adds(&m->names, name), .space = MG_SPACE_local, .type = MG_TYPE_b64, .align = 8, .n_dims = 1, .func = f->x.func};
    v.dims = mg_arena_array(&m->arena, uint64_t, 1);
    v.dims[0] = f->n_locals + (f->n_flags + 7) / 8;
    f->rows_at = (uint32_t)(8 * v.dims[0]);
    if (f->n_cuts) v.dims[0] += f->n_cuts / 2 + 1;
    *mg_vec_push(&m->vars) = v;
    *mg_vec_push(&m->decls) = (struct mg_decl){.space = MG_SPACE_local, .type = MG_TYPE_b64, .first = var, .n = 1};
    mg_node_insert_after(m, f->x.func, 0, mg_node_new_kind(m, MG_NODE_decl, decl));
    f->local = var;
    f->local_reg = mg_emit_reg(&f->x, "__mg_locals", MG_TYPE_b64);
    if (f->n_flags) f->flagged = mg_emit_reg(&f->x, "__mg_flagged", MG_TYPE_b32);
}

void mg_rc_assign_registers(struct mg_rfunc *f, mg_id shared)
{
    f->n_banks = f->n_cuts ? 1 : (f->n_bits + MG_BANK - 1) / MG_BANK;
    if (f->n_cuts) f->row = mg_emit_reg(&f->x, "__mg_row", MG_TYPE_u32);
    f->banks = mg_xcalloc(f->n_banks + 1, sizeof *f->banks);
    uint32_t had = shared ? 1 : 0;
    mg_id first = f->n_banks > had ? mg_module_add_regs(f->x.m, f->x.func, "__mg_k", MG_TYPE_b32, f->n_banks - had) : 0;
    for (uint32_t k = 0; k < f->n_banks; k++) f->banks[k] = k < had ? shared : first + k - had;
    for (uint32_t i = 0; i < f->n - f->n_sources; i++) {
        struct mg_rc *c = &f->counters[i];
        if (c->kind == MG_RC_BIT) {
            c->reg = f->banks[f->n_cuts ? 0 : c->slot / MG_BANK];
            c->bit = mg_rc_bit(c->slot);
        } else if (c->kind == MG_RC_FEW) {
            if (!f->few) f->few = mg_emit_reg(&f->x, "__mg_few", MG_TYPE_u32);
            c->reg = f->few;
        } else if (!mg_rc_in_memory(c)) {
            c->reg = mg_emit_reg(&f->x, "__mg_c", c->real ? MG_TYPE_b64 : c->kind == MG_RC_64 ? MG_TYPE_u64 : MG_TYPE_u32);
        }
    }
    if (f->n_locals || f->n_flags || f->n_cuts) mg_rc_add_local_array(f);
}

static bool has_inner(const struct mg_loops *l, uint32_t loop)
{
    for (uint32_t i = 0; i < l->n_loops; i++)
        if (l->loops[i].parent == loop) return true;
    return false;
}

/* Tell so many induction variables in each round of a loop around theirs that two registers for each would be too much? */
static bool many_in_loops(const struct mg_rfunc *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->plan->n; i++) n += f->plan->list[i].kind == MG_COUNT_IV && !f->plan->list[i].one_run;
    return n > MOST_WIDE;
}

/* Three instructions and one register, or two of each? The latter only in innermost loops. */
static bool is_rare(const struct mg_rfunc *f, const struct mg_count *k)
{
    const struct mg_loops *l = f->plan->loops;
    if (k->kind == MG_COUNT_IV) return f->plan->ivs->list[k->iv].bits == 32 && !k->carries && !k->restores && many_in_loops(f);
    uint32_t loop = l->loop_of[k->block];
    while (k->kind == MG_COUNT_EDGE && loop != MG_NO_LOOP && !mg_loops_contains(l, loop, f->x.c->edges[k->edge])) loop = l->loops[loop].parent;
    return has_inner(l, loop);
}

/* What callees send back, in the registers in which it comes. */
static void add_sources(const struct kernel *k, struct mg_rfunc *f)
{
    for (uint32_t i = 0; i < f->n_sources; i++) {
        const struct mg_rsource *from = &f->sources[i];
        struct mg_rc *c = &f->counters[f->n - f->n_sources + i];
        *c = k->funcs[from->func].counters[from->counter];
        c->reg = k->carry->regs[(size_t)f->x.ix * k->carry->n_cells + c->cell];
    }
}

/* ---- what CTA 0 counts for all ---------------------------------------------------------------------------- */

static bool enters_alike(const struct mg_rfunc *f, const struct mg_alike *a, uint32_t loop)
{
    const struct mg_cfg *c = f->x.c;
    const struct mg_block *h = &c->blocks[f->plan->loops->loops[loop].header];
    for (uint32_t i = 0; i < h->n_preds; i++) {
        uint32_t p = c->preds[h->pred_at + i];
        if (c->reachable[p] && !mg_loops_contains(f->plan->loops, loop, p) && !mg_alike_end(a, c, p)) return false;
    }
    return true;
}

static bool is_alike(const struct mg_rfunc *f, const struct mg_alike *a, uint32_t counter)
{
    const struct mg_count *k = &f->plan->list[counter];
    const struct mg_rc *c = &f->counters[counter];
    if (c->kind != MG_RC_BIT && c->kind != MG_RC_FEW && c->kind != MG_RC_64 && (c->kind != MG_RC_32 || c->guarded)) return false;
    bool alike = true;
    switch (k->kind) {
    case MG_COUNT_ENTRY: return false;
    case MG_COUNT_BLOCK: return a->block[k->block];
    case MG_COUNT_EDGE: case MG_COUNT_LEAVE: return mg_alike_end(a, f->x.c, k->block);
    case MG_COUNT_IV:
        for (uint32_t i = 0; i < k->n_ifs; i++) alike = alike && mg_alike_reg(a, k->ifs[i].pred);
        return alike && a->block[f->plan->ivs->list[k->iv].block] && enters_alike(f, a, f->plan->ivs->list[k->iv].loop);
    }
    return false;
}

/* Counters that every CTA's threads count alike reach memory from CTA 0 alone, whose share is multiplied where counts are read: where all of them are
 * like that, since asking for the CTA costs as many instructions as are saved otherwise. */
static bool all_alike(const struct mg_rfunc *f)
{
    bool all = !f->x.ix && f->x.o->scope == MG_COUNT_FULL && !f->x.o->warps && !f->n_cohorts && !f->n_cuts && !f->n_sources && !f->n_near && f->n_measured;
    struct mg_alike *a = all ? mg_alike_new(f->x.c, f->may_leave) : NULL;
    for (uint32_t i = 0; all && i < f->n_measured; i++) all = is_alike(f, a, i);
    mg_alike_free(a);
    return all;
}

static void plan_counters(const struct kernel *kernel, struct mg_rfunc *f)
{
    const struct mg_count_plan *p = f->plan;
    const struct mg_carry *y = kernel->carry;
    uint32_t n_lowest = 0;
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++) n_lowest += f->rule[b] == MG_WR_LOWEST;
    f->n_measured = p->n;
    f->n = p->n + n_lowest + f->n_sources;
    f->counters = mg_xcalloc(f->n + 1, sizeof *f->counters);
    struct wanted *all = mg_xcalloc(f->n + 1, sizeof *all);
    for (uint32_t i = 0; i < p->n; i++) all[i] = (struct wanted){.width = p->list[i].width, .rare = is_rare(f, &p->list[i]), .events = p->list[i].events, .counter = i};
    uint32_t at = p->n;
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++) {
        if (f->rule[b] != MG_WR_LOWEST) continue;
        for (uint32_t k = 0; k < f->n_cohorts; k++)
            if (f->cohorts[k].begin == b) f->cohorts[k].flag = at;
        f->warp_counter[b] = at;
        all[at] = (struct wanted){.width = mg_count_block_width(p, b), .rare = has_inner(p->loops, p->loops->loop_of[b]), .events = p->freq->block[b], .counter = at};
        at++;
    }
    if (f->n_sources) add_sources(kernel, f);
    assign_kinds(f, all);
    free(all);
    f->alike = all_alike(f);
    mg_rc_assign_registers(f, y ? y->regs[(size_t)f->x.ix * y->n_cells] : 0);
}

/* ---- which counters may have counted --------------------------------------------------------------------- */

static void note(struct mg_rfunc *f, uint32_t block, uint32_t counter)
{
    f->live[block][counter / 64] |= 1ull << counter % 64;
}

static void note_rim(struct mg_rfunc *f, uint32_t loop, uint32_t counter)
{
    const struct mg_cfg *c = f->x.c;
    for (uint32_t b = 0; b < c->n_blocks; b++) /* from the loop's entry on: the register holds what is taken off */
        if (mg_loops_contains(f->plan->loops, loop, b)) note(f, b, counter);
}

/* Behind a call, what it sends back. */
static void note_sources(struct mg_rfunc *f)
{
    const struct mg_cfg *c = f->x.c;
    for (uint32_t b = 0; b < c->n_blocks; b++)
        for (uint32_t i = 0; f->n_sources && !f->settles && mg_direct_callee(c->m, c->blocks[b].last) && i < f->n_sources; i++) note(f, b, f->n - f->n_sources + i);
}

static void find_live(struct mg_rfunc *f)
{
    const struct mg_cfg *c = f->x.c;
    f->n_words_live = (f->n + 63) / 64 + 1;
    f->live = mg_xcalloc(c->n_blocks + 1, sizeof *f->live);
    uint64_t *all = mg_xcalloc((size_t)f->n_words_live * (c->n_blocks + 1), sizeof *all);
    for (uint32_t b = 0; b <= c->n_blocks; b++) f->live[b] = all + (size_t)b * f->n_words_live;
    for (uint32_t i = 0; i < f->n_measured; i++) {
        const struct mg_count *k = &f->plan->list[i];
        switch (k->kind) {
        case MG_COUNT_ENTRY: note(f, 0, i); break;
        case MG_COUNT_BLOCK: case MG_COUNT_LEAVE: note(f, k->block, i); break;
        case MG_COUNT_EDGE: note(f, c->edges[k->edge], i); break;
        case MG_COUNT_IV: note_rim(f, f->plan->ivs->list[k->iv].loop, i); break;
        }
    }
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (f->rule[b] == MG_WR_LOWEST) note(f, b, f->warp_counter[b]);
    note_sources(f);
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < c->n_blocks; i++) {
            uint32_t b = c->rpo[i];
            const struct mg_block *k = &c->blocks[b];
            for (uint32_t p = 0; p < k->n_preds; p++) {
                const uint64_t *from = f->live[c->preds[k->pred_at + p]];
                for (uint32_t w = 0; w < f->n_words_live; w++) {
                    again |= (from[w] & ~f->live[b][w]) != 0;
                    f->live[b][w] |= from[w];
                }
            }
        }
    }
}

/* Does a loop end in front of the block? */
static bool is_behind_loop(const struct mg_rfunc *f, uint32_t b)
{
    const struct mg_cfg *c = f->x.c;
    const struct mg_loops *l = f->plan->loops;
    for (uint32_t p = 0; p < c->blocks[b].n_preds; p++) {
        uint32_t from = c->preds[c->blocks[b].pred_at + p];
        if (c->reachable[from] && l->loop_of[from] != MG_NO_LOOP && !mg_loops_contains(l, l->loop_of[from], b)) return true;
    }
    return false;
}

/* Has nothing counted in the register when a lane comes to the block's head, nor on the way to it? */
static bool is_zero_at(const struct mg_rfunc *f, uint32_t b, mg_id reg)
{
    const struct mg_cfg *c = f->x.c;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct mg_count *k = &f->plan->list[i];
        if (f->counters[i].reg != reg) continue;
        if (k->kind == MG_COUNT_EDGE && c->edges[k->edge] == b) return false;
        if (k->kind == MG_COUNT_IV && f->plan->loops->loops[f->plan->ivs->list[k->iv].loop].header == b) return false;
        for (uint32_t p = 0; p < c->blocks[b].n_preds; p++)
            if (mg_rc_in(f->live[c->preds[c->blocks[b].pred_at + p]], i)) return false;
    }
    return true;
}

/* Behind loops in which a register is zero it becomes zero once more: none has to hold that zero in the loop. */
static void renew_zeroes(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    bool plain = !f->carried && !f->n_sources && f->n == f->n_measured && !f->n_cuts && f->n <= MOST_RENEWED;
    for (uint32_t b = 1; plain && b < x->c->n_blocks; b++) {
        if (!x->c->reachable[b] || !is_behind_loop(f, b)) continue;
        x->at = mg_block_head(x->m, &x->c->blocks[b]);
        for (uint32_t k = 0; k < f->n_banks; k++)
            if (is_zero_at(f, b, f->banks[k])) EMIT("mov.u32", R(f->banks[k]), I(0));
        if (f->few && is_zero_at(f, b, f->few)) EMIT("mov.u32", R(f->few), I(0));
        for (uint32_t i = 0; i < f->n; i++) {
            const struct mg_rc *c = &f->counters[i];
            if (c->kind == MG_RC_BIT || c->kind == MG_RC_FEW || mg_rc_in_memory(c) || !is_zero_at(f, b, c->reg)) continue;
            EMIT(c->kind == MG_RC_64 ? "mov.u64" : "mov.u32", R(c->reg), I(mg_rc_zero(c)));
        }
    }
}

/* ---- counting code ----------------------------------------------------------------------------------------- */

static void emit_measured(struct mg_rfunc *f, uint32_t i)
{
    const struct mg_count *k = &f->plan->list[i];
    switch (k->kind) {
    case MG_COUNT_ENTRY: mg_rc_event(f, i, (struct mg_spot){.at = f->x.t->entry_at[f->x.ix]}); break;
    case MG_COUNT_BLOCK: mg_rc_event(f, i, (struct mg_spot){.at = mg_block_head(f->x.m, &f->x.c->blocks[k->block])}); break;
    case MG_COUNT_EDGE: mg_rc_event(f, i, mg_place_edge(&f->place, k->block, k->edge)); break;
    case MG_COUNT_LEAVE: mg_rc_event(f, i, mg_place_leave(&f->place, k->block)); break;
    case MG_COUNT_IV: mg_rc_iv(f, i); break;
    }
}

/* At the block's head, the lowest active lane counts. */
static void emit_lowest(struct mg_carry *y, struct mg_rfunc *f, const struct mg_rfunc *kernel, uint32_t b)
{
    struct mg_emit *x = &f->x;
    struct mg_spot s = {.at = mg_block_head(x->m, &x->c->blocks[b]), .guard = f->low};
    x->at = s.at;
    if (f->ballot) EMIT("vote.ballot.b32", R(f->mask), R(f->always));
    else EMIT("activemask.b32", R(f->mask));
    EMIT("and.b32", R(f->below), R(f->mask), R(f->lt));
    EMIT("setp.eq.u32", R(f->low), R(f->below), I(0));
    if (f->carried) mg_shared_near(f, kernel, y, f->warp_counter[b], f->low);
    else mg_rc_event(f, f->warp_counter[b], s);
}

static bool counts_lowest(const struct mg_rfunc *f)
{
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++)
        if (f->rule[b] == MG_WR_LOWEST) return true;
    return false;
}

static void emit_entry(struct mg_carry *y, struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    x->at = x->t->entry_at[x->ix];
    if (f->carried) mg_carry_enter(y, f);
    else mg_rc_clear(f, NULL);
    if (y && !x->ix) mg_carry_begin(y, f);
    if (!counts_lowest(f)) return;
    f->mask = mg_emit_reg(x, "__mg_m", MG_TYPE_b32);
    f->below = mg_emit_reg(x, "__mg_t", MG_TYPE_b32);
    f->lt = mg_emit_reg(x, "__mg_lt", MG_TYPE_b32);
    f->low = mg_emit_reg(x, "__mg_low", MG_TYPE_pred);
    EMIT("mov.u32", R(f->lt), mg_o_sreg(MG_SREG_lanemask_lt, 0));
    if (!f->ballot) return;
    f->always = mg_emit_reg(x, "__mg_true", MG_TYPE_pred);
    EMIT("setp.eq.u32", R(f->always), R(f->lt), R(f->lt));
}

static void emit_end(struct mg_carry *y, struct mg_rfunc *f, uint32_t b)
{
    struct mg_module *m = f->x.m;
    mg_id last = f->x.c->blocks[b].last;
    const struct mg_node *n = &m->nodes.at[last];
    unsigned op = mg_node_form(m, n)->op;
    f->x.at = last;
    if (f->carried) {
        if (op == MG_OP_ret) mg_carry_return(y, f, last);
    } else if (op == MG_OP_ret || op == MG_OP_exit) {
        mg_rc_flush(f, f->live[b], n->guard, n->guard && (n->flags & MG_NF_GUARD_NOT), mg_leave_may_be_zero(f, b));
    } else if (f->may_leave[b]) {
        mg_rc_flush_lanes(f, f->live[b]);
        mg_rc_clear(f, f->live[b]);
    }
}

static void emit_func(struct mg_carry *y, struct mg_rfunc *f, const struct mg_rfunc *kernel)
{
    struct mg_emit *x = &f->x;
    const struct mg_cfg *c = x->c;
    emit_entry(y, f);
    mg_id ret = mg_body_close(x->t, x->ix, c); /* blocks of their own come behind the body */
    x->at = x->t->entry_at[x->ix] ? x->t->entry_at[x->ix] : ret;
    mg_shared_clear(f);
    mg_rows_emit(f);
    renew_zeroes(f);
    for (uint32_t i = 0; i < f->n_measured; i++) emit_measured(f, i);
    mg_loop_words_emit(f);
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (f->rule[b] == MG_WR_LOWEST) emit_lowest(y, f, kernel, b);
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (c->reachable[b]) emit_end(y, f, b);
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (c->reachable[b] && !x->ix && f->n_measured) mg_leave_keep_rare(f, b);
    x->at = ret;
    if (ret && f->carried) mg_carry_return(y, f, ret);
    else if (ret) mg_rc_flush(f, NULL, 0, false, true);
    if (f->carried) mg_carry_check(y, f);
    mg_shared_rounds(f);
}

/* ---- the kernel ------------------------------------------------------------------------------------------- */

/* Has the plan counters with conditions, and so many others that there is no register for them? */
static bool goes_to_shared(const struct mg_rfunc *f)
{
    uint32_t n = 0, n_ifs = 0;
    for (uint32_t i = 0; i < f->plan->n; i++) {
        const struct mg_count *k = &f->plan->list[i];
        n_ifs += k->n_ifs != 0;
        if (k->width != MG_WIDTH_BIT && !k->few && !begins_late(k)) n += k->width == MG_WIDTH_64 ? 2 : 1;
    }
    return n_ifs && n > most_cells(f) && mg_shared_may(f) && mg_shared_has_room(f);
}

static bool plan_func(struct kernel *k, uint32_t i, const uint64_t *measured)
{
    struct mg_rfunc *f = &k->funcs[i];
    const struct mg_cfg *c = k->s->cfgs[i];
    f->x = (struct mg_emit){.o = k->o, .layout = k->l, .t = k->t, .m = k->t->m, .c = c, .ix = i, .func = k->t->funcs[i], .ctx = k->t->ctx_reg[i], .may_exit = k->may_exit};
    f->may_leave = mg_xcalloc(c->n_blocks + 1, sizeof *f->may_leave);
    f->sync = f->x.m->sm >= 70;
    f->redux = f->x.m->sm >= 80;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        mg_id last = c->blocks[b].last;
        f->may_leave[b] = mg_node_form(f->x.m, &f->x.m->nodes.at[last])->op == MG_OP_call && mg_callee_may_exit(f->x.m, k->may_exit, last);
    }
    f->back = mg_carry_cycles(k->carry, i);
    struct mg_count_opts o = {.wide_is_one = reals_are_fast(k->o->sm), .entries_known = i == 0 || f->from_calls, .may_leave = f->may_leave, .calls_back = f->back, .measured = measured ? measured + k->s->first_block[i] : NULL};
    f->plan = mg_count_plan_new(c, &o);
    if (goes_to_shared(f)) { /* where conditions behind loops cost more than events in rare blocks */
        mg_count_plan_free(f->plan);
        o.no_ifs = true;
        f->plan = mg_count_plan_new(c, &o);
    }
    f->place = (struct mg_placer){.m = f->x.m, .func = f->x.func, .c = c, .f = f->plan->freq};
    return !f->plan->fails;
}

/* Where a function's counters arrive: in the arrays of those that add them to memory. */
static void place_copies(struct kernel *k, uint32_t i, struct mg_counter_flow *out)
{
    struct mg_rfunc *f = &k->funcs[i];
    out->slots = mg_xcalloc((size_t)k->s->n_funcs * f->n_measured + 1, sizeof *out->slots);
    for (uint32_t r = 0; r < k->s->n_funcs; r++) {
        const struct mg_rfunc *to = &k->funcs[r];
        bool any = false;
        for (uint32_t q = 0; q < to->n_sources; q++) {
            if (to->sources[q].func != i) continue;
            uint32_t slot = to->counters[to->n - to->n_sources + q].slot, counter = to->sources[q].counter;
            out->slots[out->n_copies * f->n_measured + counter] = to->at + slot;
            if (!out->n_copies) f->counters[counter].slot = slot; /* what fills up goes there at once */
            any = true;
        }
        if (any && !out->n_copies++) f->at = to->at;
    }
}

/* Counters of the function in the launch's array, and how its blocks follow from them. */
static void place_counters(struct kernel *k, uint32_t i, struct mg_counter_flow *out)
{
    struct mg_rfunc *f = &k->funcs[i];
    struct mg_counter_layout *l = k->l;
    *out = (struct mg_counter_flow){.first_block = k->s->first_block[i], .at = f->at, .n = f->n_measured, .by_launch = i == 0};
    out->flow = f->plan->flow;
    f->plan->flow = (struct mg_flow){0};
    for (uint32_t e = 0; !f->carried && e < out->flow.n_edges; e++) /* measured numbers become slots */
        if (out->flow.edges[e].from < MG_FLOW_LOOP) out->flow.edges[e].from = f->counters[out->flow.edges[e].from].slot;
    if (f->from_calls) {
        out->callers = f->callers;
        out->n_callers = f->n_callers;
        f->callers = NULL;
    }
    out->n_alike = f->alike ? mg_rc_slots(f) : 0;
    if (f->carried) place_copies(k, i, out);
    out->cohorts = mg_xcalloc(f->n_cohorts + 1, sizeof *out->cohorts);
    out->n_cohorts = f->n_cohorts;
    for (uint32_t q = 0; q < f->n_cohorts; q++) {
        struct mg_counter_cohort *to = &out->cohorts[q];
        struct mg_rcohort *from = &f->cohorts[q];
        to->at = from->at = l->n_counters;
        l->n_counters += mg_rc_slots(f);
        to->entries_at = from->flag == UINT32_MAX ? UINT32_MAX : f->at + f->counters[from->flag].slot;
        to->blocks = mg_xcalloc(f->x.c->n_blocks + 1, sizeof *to->blocks);
        for (uint32_t b = 0; b < f->x.c->n_blocks; b++)
            if (f->rule[b] == MG_WR_COHORT && f->warp_counter[b] == from->begin) to->blocks[to->n_blocks++] = b;
    }
    for (uint32_t b = 0; l->warps && b < f->x.c->n_blocks; b++)
        l->warps[k->s->first_block[i] + b] = f->rule[b] != MG_WR_LOWEST ? UINT32_MAX
            : f->carried ? k->funcs[0].at + k->funcs[0].shared_slot + f->warp_counter[b] : f->at + f->counters[f->warp_counter[b]].slot;
}

static void release_func(struct mg_rfunc *f)
{
    if (f->live) free(f->live[0]);
    free(f->live);
    free(f->lanes);
    free(f->zero);
    free(f->counters);
    free(f->banks);
    free(f->cuts);
    free(f->ranges);
    free(f->rule);
    free(f->warp_counter);
    free(f->cohorts);
    free(f->may_leave);
    free(f->back);
    free(f->sources);
    free(f->callers);
    mg_placer_release(&f->place);
    mg_count_plan_free(f->plan);
}

static void emit_kernel(struct kernel *k)
{
    struct mg_counter_layout *l = k->l;
    bool ballot;
    if (!k->o->warps || !mg_choose_mask(k->t->m, &ballot)) ballot = false;
    l->flows = mg_xcalloc(k->s->n_funcs + 1, sizeof *l->flows);
    if (k->carry) mg_carry_assign(k->carry, k->funcs, k->order);
    for (uint32_t n = 0; n < k->s->n_funcs; n++) find_rules(&k->funcs[n], &k->funcs[0]);
    for (uint32_t n = 0; n < k->s->n_funcs; n++) {
        struct mg_rfunc *f = &k->funcs[k->order[n]];
        f->ballot = ballot;
        mg_carry_receive(k->carry, k->funcs, k->order[n]);
        if (f->carried) continue;
        plan_counters(k, f);
        find_live(f);
        f->at = l->n_counters;
        l->n_counters += mg_rc_slots(f);
    }
    for (uint32_t n = 0; n < k->s->n_funcs; n++) place_counters(k, k->order[n], &l->flows[l->n_flows++]);
    l->copy_words = (l->n_counters + 15) / 16 * 16;
    for (uint32_t i = 0; i < k->s->n_funcs; i++)
        if (k->s->cfgs[i]->n_blocks) emit_func(k->carry, &k->funcs[i], &k->funcs[0]);
    for (uint32_t i = 0; k->carry && i < k->s->n_funcs; i++) mg_carry_calls(k->carry, k->funcs, i);
    mg_emit_others(k->t, l);
}

/* Warps are counted in shared memory where counters travel: only where nothing has to be added to memory before a call. */
static bool may_carry(const struct kernel *k)
{
    uint32_t words = 0;
    if (!k->o->warps) return true;
    for (uint32_t i = 1; i < k->s->n_funcs; i++) {
        if (k->may_exit[k->s->funcs[i]]) return false;
        for (uint32_t b = 0; b < k->s->cfgs[i]->n_blocks; b++) words += k->s->cfgs[i]->reachable[b];
    }
    return !k->may_exit[0] && mg_shared_may_be_near(k->t->m, k->o, words);
}

enum mg_err mg_blocks_register(const struct mg_blocks_opts *o, const struct mg_sites *s, struct mg_twin *t, struct mg_counter_layout *l, struct mg_diag *d)
{
    struct kernel k = {.o = o, .s = s, .t = t, .l = l};
    struct mg_blocks_opts no_warps = *o;
    bool ballot;
    if (o->warps && !mg_choose_mask(t->m, &ballot)) {
        no_warps.warps = false;
        k.o = &no_warps;
    }
    *l = (struct mg_counter_layout){.n_blocks = s->n_blocks, .n_copies = o->shards, .counter_words = 1, .other_at = UINT32_MAX};
    if (t->n_native_calls) l->other_at = l->n_counters++;
    mg_raise_target(t->m, o->sm);
    k.funcs = mg_xcalloc(s->n_funcs + 1, sizeof *k.funcs);
    k.may_exit = mg_funcs_may_exit(t->m, t);
    if (may_carry(&k)) k.carry = mg_carry_new(s, t, k.may_exit, k.o->warps);
    order_funcs(&k);
    uint64_t *measured = mg_blocks_weights_of(o->weights, s->kernel, s->n_blocks);
    bool ok = true;
    for (uint32_t i = 0; i < s->n_funcs; i++) ok = plan_func(&k, i, measured) && ok;
    if (ok) {
        if (k.o->warps) l->warps = mg_xcalloc(s->n_blocks + 1, sizeof *l->warps);
        emit_kernel(&k);
    }
    for (uint32_t i = 0; i < s->n_funcs; i++) release_func(&k.funcs[i]);
    free(measured);
    free(k.funcs);
    free(k.may_exit);
    free(k.order);
    mg_carry_free(k.carry);
    if (ok) return MG_ERR_OK;
    mg_counter_layout_release(l);
    return mg_blocks_class(o, s, t, l, d); /* a branch through a table with a guard: nothing can be put on its ways */
}
