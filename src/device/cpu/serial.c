/* Divergent loops: lanes go through them one after the other.
 *
 * Where lanes leave a loop at different times and load from all over memory, most lanes of a vector wait for
 * the others and each load is a gather. Scalar code that runs one lane from the loop's head until it
 * comes out, then the next, needs neither masks nor gathers (plugin/serial.c). Threads that do not wait
 * for one another cannot tell. A lane that goes round as often as a turn lasts (docs/schedule.md) stops at
 * the head it came to, and all that did so go on together: who waits for another lane gets it that way.
 *
 * Kernels that look at which lanes run together (warp counts of probes, activemask) have such code for simple loops
 * alone: one jump back, from the last block, and nothing before it where lanes could meet on their way in or out. There
 * all lanes of a set are in the same round, and come out together, so who leads in a block is the first lane there in
 * that round. No loops that may wait for others by the looks of it, or whose atomics would change order.
 */
#include "device/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/env.h"
#include "device/emu/alu_form.h"

#define MOST_OPS       400  /* of a loop: its code is there twice */
#define LARGE          2000 /* operations of a function: its code is made in haste, and one lane takes as long as 32 */
#define ALU_PER_ACCESS 8    /* more arithmetic than that for each access of lanes that lie apart is a vector's */
/* Fewer accesses of lanes that lie apart for each in rows that move, and lanes stay together: of such a row each lane
 * would touch another line of memory in each round. Gathers of AVX2 take longer. */
#define APART_PER_ROW(isa) ((isa) >= EMU_ISA_AVX512 ? 4 : 1)
#define MOST_ROW           64 /* elements from the first lane's to the last one's */

/* Does the kernel look at which lanes run together? */
static bool sees_sets(const struct cpu_func *f)
{
    for (uint32_t i = 0; i < f->n_insts; i++) {
        uint8_t kind = f->insts[i].kind;
        if (cpu_counts_warps(&f->insts[i]) || kind == CPU_ACTIVEMASK || kind == CPU_REQUEST || kind == CPU_CARRIED)
            return true;
    }
    return false;
}

/* The blocks from which lanes come back to h without leaving the loop; false: h is no head, or there are other ways in.
 */
static bool find_loop(const struct cpu_func *f, uint32_t h, uint64_t *set)
{
    if (!mg_graph_loop(&f->pred, h, set)) return false;
    for (uint32_t b = 0; b < h; b++)
        if (mg_has(set, b)) return false;
    return true;
}

/* Do lanes that go through it one after the other meet as those do that go together? */
static bool keeps_sets(const struct cpu_func *f, uint32_t h, const uint64_t *set)
{
    uint32_t last = h;
    for (uint32_t b = h; b < f->n_blocks; b++)
        if (mg_has(set, b)) last = b;
    for (uint32_t b = h; b <= last; b++) {
        if (mg_has(f->blocks[h].front, b)) return false;
        if (!mg_has(set, b)) continue;
        MG_EACH_EDGE(&f->succ, b, e)
        {
            uint32_t to = f->succ.to[e];
            if (mg_has(set, to) ? to <= b && (b != last || to != h) : to < last) return false;
        }
    }
    return true;
}

/* Does every way from the head out of the loop, or back to it, lead through block b? */
static bool is_passed(const struct cpu_func *f, const struct cpu_serial *s, uint32_t b)
{
    if (b == s->head) return true;
    uint64_t *seen = mg_xcalloc(2 * (size_t)f->block_words, sizeof *seen), *wall = seen + f->block_words;
    mg_put(wall, b);
    mg_graph_after(&f->succ, s->head, seen, wall);
    bool passed = !mg_has(seen, s->head);
    for (uint32_t w = 0; w < f->block_words; w++) passed = passed && !(seen[w] & ~s->blocks[w]);
    free(seen);
    return passed;
}

struct loop_facts {
    uint32_t ops, apart, alu;     /* apart: accesses of lanes that do not lie in rows */
    uint32_t rows;                /* of those that do, in other rows from round to round */
    bool has_entry, varies;       /* varies: lanes leave at different times */
    const struct cpu_inst *lacks; /* an operation without code for one lane */
};

static bool moves(const struct cpu_func *f, const uint64_t *set, uint32_t reg)
{
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t i = f->blocks[b].first; mg_has(set, b) && i < f->blocks[b].end; i++)
            if (cpu_defines(f, &f->insts[i], reg)) return true;
    return false;
}

static void look_at_access(const struct cpu_func *f, const uint64_t *set, const struct cpu_inst *in,
                           struct loop_facts *l)
{
    const struct cpu_reg *at = in->s[0] ? &f->regs[in->s[0] - 1] : NULL;
    int64_t least, most;
    if (!at || cpu_is_uniform(at->shape)) return;
    if (at->shape.varying && !(cpu_in_rows(f, in) && at->row >= 16)) {
        l->apart++;
        return;
    }
    cpu_lane_span(f, at->shape, UINT32_MAX, &least, &most);
    const bool row = at->shape.varying || most - least <= MOST_ROW * (int64_t)cpu_access_bytes(in);
    l->rows += row && moves(f, set, in->s[0]);
}

static struct loop_facts look_at_loop(const struct cpu_func *f, const uint64_t *set)
{
    struct loop_facts l = {0};
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        if (!mg_has(set, b)) continue;
        l.has_entry |= b == f->entry;
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
            const struct cpu_inst *in = &f->insts[i];
            if (!cpu_has_lane_code(in)) {
                if (!l.lacks) l.lacks = in;
                continue;
            }
            l.ops++;
            if (in->kind == CPU_PURE)
                l.alu += f->pures[in->callee]->n_insts;
            else if (in->kind != CPU_LOAD && in->kind != CPU_STORE)
                l.alu += in->kind != CPU_NOP && in->kind != CPU_CTL && in->kind != CPU_COUNT;
            else
                look_at_access(f, set, in, &l);
        }
        const struct cpu_inst *last = &f->insts[f->blocks[b].end - 1];
        MG_EACH_EDGE(&f->succ, b, e)
        l.varies |= !mg_has(set, f->succ.to[e]) && last->guard && !cpu_uniform_guard(f, last);
    }
    return l;
}

/* Why lanes do not go through the loop one after the other; NULL: they do. */
static const char *why_not(const struct cpu_func *f, uint32_t h, const uint64_t *set, const struct loop_facts *l)
{
    const bool all = mg_env_is(MG_ENV_CPU_SERIAL, "all");
    if (l->has_entry) return "the function begins in it";
    if (l->lacks) return "no code for one lane";
    if (mg_env_is(MG_ENV_CPU_SERIAL, "off")) return "MARGAY_CPU_SERIAL=off";
    if (l->ops > MOST_OPS) return "more than 400 operations";
    if (!all && f->n_insts > LARGE) return "the function has more than 2,000 operations";
    if (!all && !l->varies) return "lanes leave it together";
    if (!all && !l->apart) return "no access at which lanes lie apart";
    if (!all && l->apart < APART_PER_ROW(f->isa) * l->rows) return "lanes lie in rows in it, too";
    if (!all && l->alu > ALU_PER_ACCESS * l->apart) return "more than 8 other operations an access";
    if (sees_sets(f) && !keeps_sets(f, h, set)) return "its lanes meet elsewhere, and warps are counted";
    return NULL;
}

/* For MARGAY_CPU_VERBOSE. */
static void tell(const struct cpu_func *f, uint32_t h, const struct loop_facts *l, const char *why)
{
    const struct emu_func *fn = f->fn;
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_printf(&b, "margay cpu: %s: loop at ", fn->code->kernel->name);
    emu_place(fn->mod->ir, fn->id, fn->ops[f->blocks[h].first].node, &b);
    mg_buf_printf(&b, " not lane by lane: %s%s", why, l->lacks && !l->has_entry ? ": " : "");
    if (l->lacks && !l->has_entry) emu_place(fn->mod->ir, fn->id, fn->ops[l->lacks - f->insts].node, &b);
    fprintf(stderr, "%s\n", b.at);
    mg_buf_release(&b);
}

/* ------------------------------------------------------------------------------------------------------------- */

static void note_use(void *user, uint32_t r)
{
    mg_put(user, r);
}
static void note_def(void *user, uint32_t r, bool must)
{
    uint64_t *const *sets = user;
    mg_put(sets[0], r);
    if (!must) mg_put(sets[1], r);
}

static void describe(struct cpu_func *f, struct cpu_serial *s)
{
    uint32_t accesses = 0;
    uint64_t *live = mg_arena_array(&f->arena, uint64_t, f->reg_words);
    s->stops = mg_arena_array(&f->arena, uint64_t, f->block_words);
    s->in = mg_arena_array(&f->arena, uint64_t, f->reg_words);
    s->out = mg_arena_array(&f->arena, uint64_t, f->reg_words);
    s->always = mg_arena_array(&f->arena, uint64_t, f->block_words);
    bool simple = !s->lone && keeps_sets(f, s->head, s->blocks);
    for (uint32_t b = 0; b < f->n_blocks && simple; b++)
        if (mg_has(s->blocks, b) && is_passed(f, s, b)) mg_put(s->always, b);
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        if (!mg_has(s->blocks, b)) continue;
        MG_EACH_EDGE(&f->succ, b, e)
        if (f->succ.to[e] <= b || !mg_has(s->blocks, f->succ.to[e])) {
            mg_put(s->stops, f->succ.to[e]);
            s->turns |= f->succ.to[e] <= b;
        }
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
            accesses += f->insts[i].kind == CPU_LOAD || f->insts[i].kind == CPU_STORE;
            s->tells_rounds |= !s->lone && cpu_counts_warps(&f->insts[i]);
            cpu_each_use(f, &f->insts[i], note_use, s->in);
            cpu_each_def(f, &f->insts[i], note_def, (uint64_t *[]){s->out, s->in});
        }
    }
    if (!s->lone) cpu_find_lane_accesses(f, s, accesses + 1);
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t w = 0; mg_has(s->stops, b) && w < f->reg_words; w++) live[w] |= f->blocks[b].live[w];
    for (uint32_t w = 0; w < f->reg_words; w++) {
        s->out[w] &= live[w];
        s->in[w] |= s->out[w];
    }
    for (uint32_t r = 0; r < f->n_regs; r++) {
        const struct cpu_reg *reg = &f->regs[r];
        if (cpu_is_constant(reg)) mg_cut(s->out, r);
        if (cpu_is_constant(reg) || (reg->kind == CPU_REG_PLAIN && !mg_has(f->blocks[s->head].live, r)))
            mg_cut(s->in, r);
    }
    if (!s->lone) cpu_find_lane_ahead(f, s);
}

struct cpu_serial *cpu_add_serial(struct cpu_func *f, uint32_t head, const uint64_t *blocks, bool lone)
{
    struct cpu_serial *s = &f->serials[f->n_serials++];
    *s = (struct cpu_serial){.head = head, .lone = lone, .blocks = mg_arena_array(&f->arena, uint64_t, f->block_words)};
    memcpy(s->blocks, blocks, f->block_words * sizeof *blocks);
    describe(f, s);
    for (uint32_t b = 0; b < f->n_blocks; b++)
        if (mg_has(blocks, b)) f->serial_of[b] = f->n_serials;
    return s;
}

bool cpu_find_serials(struct cpu_func *f)
{
    uint64_t *set = mg_arena_array(&f->arena, uint64_t, f->block_words);
    f->serial_of = mg_arena_array(&f->arena, uint32_t, f->n_blocks + 1);
    f->serials = mg_arena_array(&f->arena, struct cpu_serial, f->n_blocks + 1);
    const bool verbose = mg_env_is(MG_ENV_CPU_VERBOSE, "1");
    cpu_find_lone(f);
    for (uint32_t h = 0; h < f->n_blocks; h++) { /* outer loops first */
        if (f->serial_of[h] || !find_loop(f, h, set)) continue;
        const struct loop_facts l = look_at_loop(f, set);
        const char *why = why_not(f, h, set, &l);
        if (why && verbose) tell(f, h, &l, why);
        if (why) continue;
        cpu_add_serial(f, h, set, false);
    }
    return f->n_serials;
}
