/* Scheme register: which counter is kept where. Bits of packed registers while there are banks, small fields, registers
 * for the busiest, words of shared memory where registers are short, words and bytes of local memory for the rest. */
#include "count/storage/storage.h"

#include <stdlib.h>

static int by_events(const void *a, const void *b)
{
    const struct mg_wanted *x = a, *y = b;
    if (x->events != y->events) return x->events > y->events ? -1 : 1;
    return x->counter < y->counter ? -1 : x->counter > y->counter;
}

#define GUARD_FROM   6 /* counters of 64 bits in one loop */
#define MANY_THREADS 1024
#define FEW_LEFT     4  /* registers for counters */
#define MOST_LATE    16 /* counters that begin behind their loops and are taken to cost no register */
#define MOST_SENT                                                                                                      \
    6 /* registers of callees' counters that live on from call to call beside counters in shared memory                \
       */
#define HANDED_OVER    6 /* for counters in loops, where warps hand registers over: producers of GEMMs are left 40 */
#define MOST_FIELDS    (4 * MG_COUNTER_CELLS)
#define FIELDS_IN_LOOP 4 /* whose rounds are counted for them: some five instructions in each */
#define FEW_REGISTERS  8 /* for counters in loops, where CTAs are as large: registers of native code are few */

/* Would it be one of 64 bits on which 32 do where rounds are counted? */
static bool is_wide(const struct mg_rfunc *f, const struct mg_wanted *w)
{
    return w->width == MG_WIDTH_64 && f->plan->list[w->counter].kind != MG_COUNT_IV && mg_shared_takes(f, w->counter);
}

/* By counter: is it worth counting rounds of its loop, three instructions in each, so that 32 bits do for this and
 * the others there? To be freed. */
static bool *choose_guarded(const struct mg_rfunc *f, const struct mg_wanted *rest, uint32_t n)
{
    const uint32_t n_loops = f->plan->loops->n_loops;
    bool *guarded = mg_xcalloc(f->n + 1, sizeof *guarded);
    uint32_t *in_loop = mg_xcalloc(n_loops + 1, sizeof *in_loop); /* the last: in none */
    if (!mg_shared_may(f)) n = 0;
    for (uint32_t k = 0; k < n; k++)
        in_loop[MG_MIN(mg_shared_loop(f, rest[k].counter), n_loops)] += is_wide(f, &rest[k]);
    for (uint32_t k = 0; k < n; k++)
        guarded[rest[k].counter] =
            is_wide(f, &rest[k]) && in_loop[MG_MIN(mg_shared_loop(f, rest[k].counter), n_loops)] >= GUARD_FROM;
    free(in_loop);
    return guarded;
}

/* Is it nothing before its loop has ended? */
static bool begins_late(const struct mg_count *k)
{
    return (k->n_ifs || k->restores) && k->one_run;
}

/* 32-bit registers that the counter wants while the kernel has others to hold. */
static uint32_t cells_of(const struct mg_rfunc *f, const struct mg_wanted *w, const bool *guarded)
{
    if (w->few || (w->counter < f->n_measured && begins_late(&f->plan->list[w->counter]))) return 0;
    bool carries = w->rare && f->o->scope == MG_COUNT_FULL && !f->warps.n_cohorts;
    return w->width == MG_WIDTH_64 && !carries && !guarded[w->counter] ? 2 : 1;
}

/* Do CTAs wait for all their threads in loops? Only other CTAs make up for that. */
static bool waits_in_loops(const struct mg_rfunc *f)
{
    const struct mg_cfg *c = f->x.c;
    for (uint32_t b = 0; b < c->n_blocks; b++)
        for (mg_id id = c->blocks[b].first; c->reachable[b] && f->plan->loops->loop_of[b] != MG_NO_LOOP && id;
             id = id == c->blocks[b].last ? 0 : f->x.m->nodes.at[id].next) {
            const struct mg_node *n = &f->x.m->nodes.at[id];
            if (n->kind != MG_NODE_inst) continue;
            unsigned op = mg_node_form(f->x.m, n)->op;
            if (op == MG_OP_bar || op == MG_OP_barrier) return true;
        }
    return false;
}

/* Is the kernel one of warps that hand registers over to each other? The number it is launched with says nothing about
 * what its parts need. */
static bool hands_registers_over(const struct mg_rfunc *f)
{
    const struct mg_cfg *c = f->x.c;
    for (uint32_t b = 0; b < c->n_blocks; b++)
        for (mg_id id = c->blocks[b].first; c->reachable[b] && id;
             id = id == c->blocks[b].last ? 0 : f->x.m->nodes.at[id].next)
            if (f->x.m->nodes.at[id].kind == MG_NODE_inst &&
                mg_node_form(f->x.m, &f->x.m->nodes.at[id])->op == MG_OP_setmaxnreg)
                return true;
    return false;
}

/* Does it count how often a loop that waits for an mbarrier goes around? */
bool mg_kinds_waits_on(const struct mg_rfunc *f, uint32_t counter)
{
    const struct mg_count *k = &f->plan->list[counter];
    const struct mg_loops *l = f->plan->loops;
    if (counter >= f->n_measured || (k->kind != MG_COUNT_BLOCK && k->kind != MG_COUNT_EDGE)) return false;
    uint32_t to = k->kind == MG_COUNT_EDGE ? f->x.c->edges[k->edge] : k->block, loop = l->loop_of[k->block];
    return loop != MG_NO_LOOP && f->plan->freq->waits[loop] && mg_loops_contains(l, loop, to) &&
           (k->kind == MG_COUNT_EDGE || k->block != l->loops[loop].header);
}

/* 32-bit registers for counters in loops: no more than leave room for as many CTAs as natively, where that matters. */
static uint32_t most_cells(const struct mg_rfunc *f)
{
    struct mg_twin *t = f->x.t;
    uint32_t most = t->threads >= MANY_THREADS ? MG_MIN(f->o->registers, (uint32_t)FEW_REGISTERS) : f->o->registers;
    if (hands_registers_over(f)) return MG_MIN(most, (uint32_t)HANDED_OVER);
    t->fitted |= t->threads >= MANY_THREADS;
    if (t->most_registers && (t->must_fit || waits_in_loops(f)))
        t->fitted = true, most = MG_MIN(most, t->most_registers > t->registers ? t->most_registers - t->registers : 0);
    return most;
}

bool mg_rc_reals_are_fast(uint32_t sm)
{
    return sm == 60 || sm == 70 || sm == 80 || sm == 90 || sm == 100;
}

bool mg_kinds_in_reals(const struct mg_rfunc *f, uint32_t counter)
{
    return mg_rc_reals_are_fast(f->o->sm) && (counter >= f->n_measured || f->plan->list[counter].kind != MG_COUNT_IV);
}

/* Comes any of what callees send back in the packed register that is the kernel's as well? */
static bool sent_bits(const struct mg_rfunc *f)
{
    for (uint32_t i = f->n - f->calls.n_sources; i < f->n; i++)
        if (f->counters[i].kind == MG_RC_BIT) return true;
    return false;
}

/* 32-bit registers in which callees send counters back. */
static uint32_t sent_registers(const struct mg_rfunc *f)
{
    uint32_t n = 0;
    for (uint32_t i = f->n - f->calls.n_sources; i < f->n; i++) {
        const struct mg_rc *c = &f->counters[i];
        if (c->kind != MG_RC_FIELD || !c->bit) n += mg_storage_of(c)->wide ? 2 : 1;
    }
    return n;
}

/* May counters of what happens once be words of shared memory, too? */
static bool bits_may_share(const struct mg_rfunc *f, uint32_t n_rest)
{
    bool plain = !f->calls.n_sources && !f->warps.n_cohorts && !f->packed.n_cuts && f->n_bits + n_rest <= MG_SHARED_FEW;
    for (uint32_t i = 0; i < f->n; i++) plain = plain && f->counters[i].kind == MG_RC_BIT; /* or not placed so far */
    return plain && f->redux && f->o->scope == MG_COUNT_FULL;
}

/* Registers are so few, and other CTAs so needed, that shared memory is better for all: no warp sums anything at its
 * end. */
static bool all_to_shared(const struct mg_rfunc *f, const struct mg_wanted *rest, uint32_t n_rest, uint32_t most)
{
    if (most > FEW_LEFT || !waits_in_loops(f) || !bits_may_share(f, n_rest)) return false;
    for (uint32_t k = 0; k < n_rest; k++)
        if (!mg_shared_takes(f, rest[k].counter)) return false;
    return true;
}

/* And are they all words of loops, but for what is packed? */
static bool all_to_loops(const struct mg_rfunc *f, const struct mg_wanted *rest, uint32_t n_rest)
{
    bool *asked = mg_xcalloc(f->plan->loops->n_loops + 1, sizeof *asked), good = true;
    for (uint32_t k = 0; k < n_rest && good; k++) good = rest[k].few || mg_loop_words_may(f, rest[k].counter, asked);
    free(asked);
    return good && f->n_bits <= MG_BANK;
}

#define FEW_FROM   3
#define BITS_SHARE "at most once in an activation; registers are left to the kernel"

/* Marks those of the rest that the packed register of small fields takes: the busiest. Fewer are no gain. */
static void choose_few(struct mg_rfunc *f, struct mg_wanted *rest, uint32_t n_rest)
{
    uint32_t n = 0;
    bool may = !f->x.ix && f->redux && !f->calls.n_sources && !f->warps.n_cohorts && !f->o->warps;
    for (uint32_t k = 0; k < n_rest; k++) n += may && f->plan->list[rest[k].counter].few;
    for (uint32_t k = 0; n >= FEW_FROM && k < n_rest; k++) {
        rest[k].few = f->plan->list[rest[k].counter].few && f->packed.n_few < MG_FEW_COLUMNS * MG_FEW_GROUPS;
        f->packed.n_few += rest[k].few;
    }
}

/* Where registers are too few and shared memory may take nothing, what counts in loops gets fields, four of which are a
 * register: words of local memory cost most. */
static void choose_fields(struct mg_kinds *z, struct mg_wanted *rest, uint32_t n_rest)
{
    struct mg_rfunc *f = z->f;
    const struct mg_loops *l = f->plan->loops;
    if (z->shares || f->lone.is || z->wanted + z->cells <= MG_COUNTER_CELLS) return;
    uint32_t *n = mg_xcalloc(l->n_loops + 1, sizeof *n);
    f->packed.in_loop = mg_xcalloc(l->n_loops + 1, sizeof *f->packed.in_loop);
    for (uint32_t k = 0; k < n_rest; k++)
        if (rest[k].loop != MG_NO_LOOP && l->loops[rest[k].loop].n_headers == 1) n[rest[k].loop]++;
    for (uint32_t k = 0; k < l->n_loops; k++) f->packed.in_loop[k] = n[k] >= FIELDS_IN_LOOP;
    for (uint32_t k = 0, left = MOST_FIELDS; left && k < n_rest; k++)
        left -= rest[k].field = rest[k].loop != MG_NO_LOOP && f->packed.in_loop[rest[k].loop];
    free(n);
}

/* Gives counters of the class slots from at on; returns the one behind. */
static uint32_t place_class(struct mg_rfunc *f, enum mg_rc_kind kind, uint32_t at)
{
    for (uint32_t i = 0; i < f->n - f->calls.n_sources; i++)
        if (f->counters[i].kind == kind) f->counters[i].slot = at++;
    return at;
}

/* Slots of classes in memory, from at on; words of local memory have theirs. */
static void place_in_memory(struct mg_rfunc *f, uint32_t at, bool in_loops)
{
    f->shared.slot = place_class(f, MG_RC_FLAG, at);
    place_class(f, MG_RC_SHARED, f->shared.slot);
    if (in_loops) mg_loop_words_place(f, f->shared.slot);
    uint32_t others = f->shared.slot + f->shared.n;
    at = others;
    for (enum mg_rc_kind kind = 0; kind < MG_RC_KINDS; kind++)
        if (mg_storage_at(kind)->in_memory && kind != MG_RC_LOCAL && kind != MG_RC_FLAG && kind != MG_RC_SHARED)
            at = place_class(f, kind, at);
    f->n_others = at - others;
}

/* The counter's slot among registers, or in local memory; other classes give theirs elsewhere. */
static void place_one(struct mg_rc *c, uint32_t *word, uint32_t *local)
{
    if (c->kind == MG_RC_LOCAL)
        c->slot = (*local)++;
    else if (!mg_rc_in_memory(c) && c->kind != MG_RC_FEW && c->kind != MG_RC_BIT)
        c->slot = (*word)++;
}

/* Slots of all but the class bit: small fields, what callees send back, other registers, memory. */
static void place_slots(struct mg_rfunc *f, const struct mg_wanted *all, const struct mg_wanted *rest, uint32_t n_rest,
                        bool in_loops)
{
    uint32_t word = f->n_bits, local = f->n_bits + f->n_words, few = 0, n_own = f->n - f->calls.n_sources;
    for (uint32_t k = 0; k < n_rest; k++)
        if (rest[k].few)
            f->counters[rest[k].counter].bit = mg_rc_few(few++), f->counters[rest[k].counter].slot = word++;
    for (uint32_t i = n_own; i < f->n; i++)
        if (f->counters[i].kind != MG_RC_BIT) f->counters[i].slot += f->n_bits, word++;
    for (uint32_t k = 0; k < n_rest; k++) /* fields of a register one behind the other */
        if (rest[k].field) place_one(&f->counters[rest[k].counter], &word, &local);
    for (uint32_t k = 0; k < n_rest; k++)
        if (!rest[k].field) place_one(&f->counters[rest[k].counter], &word, &local);
    for (uint32_t i = 0; i < n_own; i++) /* what happens once, and no bit is free */
        if (all[i].width == MG_WIDTH_BIT) place_one(&f->counters[i], &word, &local);
    f->local.n_words = local - f->n_bits - f->n_words;
    place_in_memory(f, local, in_loops);
}

/* Counters that no class is asked for: what comes from callees has its registers already, flags of cohorts have to be
 * bits, saved banks take theirs. Returns which these are, to be freed. */
static bool *place_known(struct mg_kinds *z)
{
    struct mg_rfunc *f = z->f;
    bool *placed = mg_xcalloc(f->n + 1, sizeof *placed);
    for (uint32_t i = f->n - f->calls.n_sources; i < f->n; i++) {
        placed[i] = true;
        if (f->counters[i].kind != MG_RC_BIT) f->counters[i].slot = f->n_words++; /* among words, for now */
        z->cells += mg_storage_of(&f->counters[i])->wide ? 2 : f->counters[i].kind == MG_RC_32;
    }
    for (uint32_t k = 0; k < f->warps.n_cohorts; k++)
        if (f->warps.cohorts[k].flag != UINT32_MAX) {
            placed[f->warps.cohorts[k].flag] = true;
            f->counters[f->warps.cohorts[k].flag] =
                (struct mg_rc){.kind = MG_RC_BIT, .slot = f->n_bits++, .why = "begins a cohort of lanes"};
        }
    z->saved = !f->lone.is && mg_saved_plan(f, placed);
    if (z->saved) f->n_bits = MG_BANK * (f->packed.n_cuts + 1);
    return placed;
}

/* How many registers are good for the kernel, and whether shared memory holds what is left. */
static void choose_most(struct mg_kinds *z, const struct mg_wanted *rest, uint32_t n_rest)
{
    struct mg_rfunc *f = z->f;
    z->cells += f->packed.n_few != 0;
    for (uint32_t k = 0; k < n_rest; k++) z->wanted += cells_of(f, &rest[k], z->guarded);
    z->most = most_cells(f);
    z->shares = z->wanted + z->cells > z->most && mg_shared_may(f) && mg_shared_has_room(f);
    if (!z->shares) {
        z->most = MG_COUNTER_CELLS;
        return;
    }
    if (!sent_bits(f) && sent_registers(f) > MOST_SENT) { /* callees' counters need not live from call to call either */
        f->calls.settles = f->calls.n_sources != 0;
        z->cells = 0;
    }
    if (z->wanted > 2 * z->most && !hands_registers_over(f)) z->most /= 4; /* most events go to shared memory anyhow */
}

/* Where all counters go to shared memory, bits do, too; those of a producer, whose few live through no loop then, also
 * beside others in registers. */
static void choose_all_shared(struct mg_kinds *z, const struct mg_wanted *all, struct mg_wanted *rest, uint32_t n_rest)
{
    struct mg_rfunc *f = z->f;
    f->shared.all = z->shares && all_to_shared(f, rest, n_rest, z->most);
    z->in_loops = f->shared.all && all_to_loops(f, rest, n_rest);
    if (z->in_loops) f->shared.all = false;
    if (f->shared.all && f->packed.n_few) {
        f->packed.n_few = 0;
        for (uint32_t k = 0; k < n_rest; k++) rest[k].few = false;
    }
    bool bits_share = f->shared.all || (z->shares && hands_registers_over(f) && bits_may_share(f, n_rest));
    for (uint32_t i = 0; bits_share && i < f->n - f->calls.n_sources; i++)
        if (f->counters[i].kind == MG_RC_BIT && all[i].width == MG_WIDTH_BIT)
            f->counters[i].kind = MG_RC_SHARED, f->counters[i].why = BITS_SHARE, f->shared.n++, f->n_bits--;
}

/* Gives each counter its kind: bits while there are banks, registers for the busiest. */
void mg_rc_assign_kinds(struct mg_rfunc *f, const struct mg_wanted *all)
{
    struct mg_wanted *rest = mg_xcalloc(f->n + 1, sizeof *rest);
    uint32_t n_rest = 0, late = 0, n_own = f->n - f->calls.n_sources;
    struct mg_kinds z = {.f = f};
    bool *placed = place_known(&z);
    for (uint32_t i = 0; i < n_own; i++)
        if (!placed[i] && all[i].width != MG_WIDTH_BIT) rest[n_rest++] = all[i];
    qsort(rest, n_rest, sizeof *rest, by_events);
    choose_few(f, rest, n_rest);
    bool *guarded = choose_guarded(f, rest, n_rest);
    z.guarded = guarded;
    choose_most(&z, rest, n_rest);
    choose_fields(&z, rest, n_rest);
    z.need = 1;
    for (uint32_t i = 0; i < n_own; i++)
        if (!placed[i] && all[i].width == MG_WIDTH_BIT) mg_storage_choose(&z, &all[i]);
    choose_all_shared(&z, all, rest, n_rest);
    for (uint32_t k = 0; k < n_rest; k++) {
        z.need = cells_of(f, &rest[k], guarded);
        if (!z.need && late++ >= MOST_LATE) z.need = rest[k].width == MG_WIDTH_64 ? 2 : 1;
        mg_storage_choose(&z, &rest[k]);
    }
    place_slots(f, all, rest, n_rest, z.in_loops);
    free(guarded);
    free(placed);
    free(rest);
}

void mg_rc_assign_registers(struct mg_rfunc *f, mg_id shared)
{
    f->packed.n_banks = f->packed.n_cuts ? 1 : (f->n_bits + MG_BANK - 1) / MG_BANK;
    if (f->packed.n_cuts) f->packed.saved_at = mg_emit_reg(&f->x, "__mg_saved", MG_TYPE_u32);
    f->packed.banks = mg_xcalloc(f->packed.n_banks + 1, sizeof *f->packed.banks);
    uint32_t had = shared ? 1 : 0;
    mg_id first = f->packed.n_banks > had
                      ? mg_module_add_regs(f->x.m, f->x.func, "__mg_k", MG_TYPE_b32, f->packed.n_banks - had)
                      : 0;
    for (uint32_t k = 0; k < f->packed.n_banks; k++) f->packed.banks[k] = k < had ? shared : first + k - had;
    for (uint32_t i = 0; i < f->n - f->calls.n_sources; i++) {
        struct mg_rc *c = &f->counters[i];
        const struct mg_storage *s = mg_storage_of(c);
        if (s->reg)
            c->reg = s->reg(f, c);
        else if (!s->in_memory)
            c->reg = mg_emit_reg(&f->x, "__mg_c", c->real ? MG_TYPE_b64 : s->wide ? MG_TYPE_u64 : MG_TYPE_u32);
    }
    if (f->local.n_words || f->local.n_bytes || f->packed.n_cuts) mg_rc_add_local_array(f);
}

bool mg_rc_goes_to_shared(const struct mg_rfunc *f)
{
    uint32_t n = 0, n_ifs = 0;
    for (uint32_t i = 0; i < f->plan->n; i++) {
        const struct mg_count *k = &f->plan->list[i];
        n_ifs += k->n_ifs != 0;
        if (k->width != MG_WIDTH_BIT && !k->few && !begins_late(k)) n += k->width == MG_WIDTH_64 ? 2 : 1;
    }
    return n_ifs && n > most_cells(f) && mg_shared_may(f) && mg_shared_has_room(f);
}
