/* Blocks of a decoded function, the blocks that may be pending while another runs, and liveness.
 *
 * A block ends at a control operation; what stands behind a barrier, a call or a .sync operation
 * without code of its own is a block too, where the emulator hands over again. Blocks are numbered
 * in the order of operations, which is rank order: of the pending blocks the first runs next.
 *
 * The front of a block is the set of blocks that lanes may be waiting at while it runs (thread
 * frontier). A register written in a block needs its other lanes' old values only if it is live in a
 * block of the front; otherwise all lanes may be written, whatever the mask.
 */
#include "device/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"

static uint32_t op_index(const struct cpu_func *f, const struct emu_op *op)
{
    return (uint32_t)(op - f->fn->ops);
}

static bool sync_in_line(const struct cpu_inst *in)
{
    return in->ctl == EMU_CTL_SYNC && cpu_sync_has_code(in->sub);
}

static bool ends_block(const struct cpu_inst *in)
{
    return in->kind == CPU_CTL && !sync_in_line(in);
}

static const struct cpu_inst *last_of(const struct cpu_func *f, uint32_t b)
{
    const struct cpu_inst *in = &f->insts[f->blocks[b].end - 1];
    return in->kind == CPU_CTL && in->ctl != EMU_CTL_SYNC ? in
           : in->ctl == EMU_CTL_SYNC && !sync_in_line(in) ? in
                                                          : NULL;
}

/* Where control may go from the end of b. */
static uint32_t find_successors(const struct cpu_func *f, uint32_t b, uint32_t *out)
{
    const struct cpu_inst *in = last_of(f, b);
    const struct emu_op *op = &f->fn->ops[f->blocks[b].end - 1];
    uint32_t n = 0;
    if (!in) {
        if (b + 1 < f->n_blocks) out[n++] = b + 1;
        return n;
    }
    switch ((enum emu_ctl)in->ctl) {
    case EMU_CTL_NEXT:
    case EMU_CTL_LOOP:
        out[n++] = in->target;
        break;
    case EMU_CTL_BRA:
        out[n++] = in->target;
        if (in->guard) out[n++] = in->fall;
        break;
    case EMU_CTL_BRX:
        for (uint32_t k = 0; k < op->a.imm; k++) {
            const struct emu_op *t = ((const struct emu_op *const *)op->ext)[k];
            out[n++] = f->block_of[op_index(f, t)] - 1;
        }
        if (in->guard) out[n++] = in->fall;
        break;
    case EMU_CTL_RET:
    case EMU_CTL_EXIT:
    case EMU_CTL_TRAP:
        if (in->guard) out[n++] = in->fall;
        break;
    default:
        out[n++] = in->fall;
        break;
    }
    return n;
}

#define MOST_SUCCESSORS 260 /* a branch table of 256 targets, and where it is not taken */

static void find_graphs(struct cpu_func *f)
{
    uint32_t room = 4 * f->n_blocks + MOST_SUCCESSORS, n = 0, succ[MOST_SUCCESSORS];
    uint32_t *from = mg_xmalloc(sizeof *from * room), *to = mg_xmalloc(sizeof *to * room);
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        uint32_t m = find_successors(f, b, succ);
        if (n + m > room) {
            room = 2 * room + m;
            from = mg_xrealloc(from, sizeof *from * room);
            to = mg_xrealloc(to, sizeof *to * room);
        }
        for (uint32_t k = 0; k < m; k++) from[n] = b, to[n++] = succ[k];
    }
    f->succ = mg_graph_of_pairs(&f->arena, f->n_blocks, from, to, n);
    f->pred = mg_graph_reversed(&f->arena, &f->succ);
    free(from);
    free(to);
}

void cpu_find_region_ways(struct cpu_func *f)
{
    uint32_t n_edges = f->succ.at[f->n_blocks], n = 0;
    uint32_t *from = mg_xmalloc(sizeof *from * (n_edges + 1)), *to = mg_xmalloc(sizeof *to * (n_edges + 1));
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        if (cpu_stop_of(f, b)) continue;
        MG_EACH_EDGE(&f->succ, b, e) from[n] = b, to[n++] = f->succ.to[e];
    }
    f->within = mg_graph_of_pairs(&f->arena, f->n_blocks, from, to, n);
    free(from);
    free(to);
}

bool cpu_find_blocks(struct cpu_func *f, char *why, size_t why_bytes)
{
    const struct emu_func *fn = f->fn;
    uint32_t n = f->n_insts;
    uint8_t *lead = mg_arena_array(&f->arena, uint8_t, n + 2); /* 1 begins a block, 2 is an entry */
    lead[op_index(f, fn->entry)] = 3;
    lead[0] |= 1;
    for (uint32_t i = 0; i < n; i++) {
        const struct emu_op *op = &fn->ops[i];
        if (!ends_block(&f->insts[i])) continue;
        lead[i + 1] |= 1;
        switch ((enum emu_ctl)op->ctl) {
        case EMU_CTL_BRA:
            lead[op_index(f, op->target)] |= 1;
            lead[op_index(f, op->fall)] |= 1;
            break;
        case EMU_CTL_NEXT:
            lead[op_index(f, op->target)] |= 1;
            break;
        case EMU_CTL_LOOP:
            lead[op_index(f, op->target)] |= 3;
            break;
        case EMU_CTL_BRX:
            if (op->a.imm > 256) {
                snprintf(why, why_bytes, "a branch table of %u targets", op->a.imm);
                return false;
            }
            for (uint32_t k = 0; k < op->a.imm; k++) lead[op_index(f, ((const struct emu_op *const *)op->ext)[k])] |= 3;
            lead[op_index(f, op->fall)] |= 3;
            break;
        case EMU_CTL_BAR:
        case EMU_CTL_SYNC:
            lead[i + 1] |= 3;
            break;
        default:
            lead[op_index(f, op->fall)] |= 3;
            break;
        }
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) count += lead[i] != 0;
    if (count > CPU_MAX_BLOCKS) {
        snprintf(why, why_bytes, "%u blocks are more than the compiler takes", count);
        return false;
    }
    f->blocks = mg_arena_array(&f->arena, struct cpu_block, count + 1);
    f->block_of = mg_arena_array(&f->arena, uint32_t, n + 1);
    f->block_words = (count + 63) / 64;
    for (uint32_t i = 0; i < n; i++) {
        if (!lead[i]) continue;
        struct cpu_block *b = &f->blocks[f->n_blocks];
        b->first = i;
        b->entry = lead[i] & 2;
        b->front = mg_arena_array(&f->arena, uint64_t, f->block_words);
        b->live = mg_arena_array(&f->arena, uint64_t, f->reg_words);
        b->keep = mg_arena_array(&f->arena, uint64_t, f->reg_words);
        b->saved = mg_arena_array(&f->arena, uint64_t, f->reg_words);
        f->block_of[i] = ++f->n_blocks;
    }
    for (uint32_t b = 0; b < f->n_blocks; b++) f->blocks[b].end = b + 1 < f->n_blocks ? f->blocks[b + 1].first : n;
    f->entry = f->block_of[op_index(f, fn->entry)] - 1;
    for (uint32_t i = 0; i < n; i++) {
        if (!ends_block(&f->insts[i])) continue;
        const struct emu_op *op = &fn->ops[i];
        struct cpu_inst *in = &f->insts[i];
        if (op->target) in->target = f->block_of[op_index(f, op->target)] - 1;
        if (op->fall) in->fall = f->block_of[op_index(f, op->fall)] - 1;
        if (in->ctl == EMU_CTL_BAR || in->ctl == EMU_CTL_SYNC) in->fall = i + 1 < n ? f->block_of[i + 1] - 1 : 0;
    }
    find_graphs(f);
    return true;
}

/* ---- fronts ------------------------------------------------------------------------------------------ */

/* The blocks of q above x become pending in x. */
static bool pend_above(struct cpu_func *f, uint32_t x, const uint64_t *q)
{
    uint64_t *to = f->blocks[x].front;
    bool grew = false;
    for (uint32_t w = x >> 6; w < f->block_words; w++) {
        uint64_t v = q[w];
        if (w == x >> 6) v &= (x & 63) == 63 ? 0 : UINT64_MAX << ((x & 63) + 1);
        grew |= (v & ~to[w]) != 0;
        to[w] |= v;
    }
    return grew;
}

/* Pending are q, of which t surely has lanes: the next to run is t or one before it. */
static bool next_is(struct cpu_func *f, const uint64_t *q, uint32_t t)
{
    bool grew = false;
    for (uint32_t x = 0; x <= t; x++)
        if (x == t || mg_has(q, x)) grew |= pend_above(f, x, q);
    return grew;
}

/* Lanes may wait inside block b (at a barrier, a .sync operation or a call) while others run: where they go on
 * counts as pending in everything that those can reach. */
static bool parks(const struct cpu_func *f, uint32_t b)
{
    for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++)
        if (f->insts[i].kind == CPU_CTL && (f->insts[i].ctl == EMU_CTL_SYNC || f->insts[i].ctl == EMU_CTL_BAR))
            return true;
    return false;
}

static bool park_front(struct cpu_func *f, uint32_t b, uint64_t *reach)
{
    memcpy(reach, f->blocks[b].front, f->block_words * sizeof *reach);
    mg_graph_close(&f->succ, reach, NULL);
    bool grew = false;
    for (uint32_t x = 0; x < f->n_blocks; x++) {
        if (!mg_has(reach, x)) continue;
        uint64_t *front = f->blocks[x].front;
        if (!mg_has(front, b)) grew = true, mg_put(front, b);
        MG_EACH_EDGE(&f->succ, b, e)
        if (!mg_has(front, f->succ.to[e])) grew = true, mg_put(front, f->succ.to[e]);
    }
    return grew;
}

void cpu_find_fronts(struct cpu_func *f)
{
    uint64_t *q = mg_xcalloc(f->block_words, sizeof *q), *reach = mg_xcalloc(f->block_words, sizeof *reach);
    for (bool again = true; again;) {
        again = false;
        for (uint32_t b = 0; b < f->n_blocks; b++) {
            const struct cpu_inst *in = last_of(f, b);
            uint32_t n = mg_graph_degree(&f->succ, b);
            const uint32_t *succ = f->succ.to + f->succ.at[b];
            bool split = in && in->guard && !cpu_uniform_guard(f, in);
            if (in && in->ctl == EMU_CTL_BRX) split = true;
            for (uint32_t k = 0; k < n; k++) { /* all lanes go one way */
                memcpy(q, f->blocks[b].front, f->block_words * sizeof *q);
                mg_put(q, succ[k]);
                again |= next_is(f, q, succ[k]);
            }
            if (split && n > 1) {
                uint32_t top = 0;
                memcpy(q, f->blocks[b].front, f->block_words * sizeof *q);
                for (uint32_t k = 0; k < n; k++) {
                    mg_put(q, succ[k]);
                    top = MG_MAX(top, succ[k]);
                }
                again |= next_is(f, q, top);
            }
            if (f->n_serials && f->serial_of[b] &&
                f->serials[f->serial_of[b] - 1].head == b) { /* lanes wait at any of its stops */
                const uint64_t *stops = f->serials[f->serial_of[b] - 1].stops;
                for (uint32_t w = 0; w < f->block_words; w++) q[w] = f->blocks[b].front[w] | stops[w];
                for (uint32_t x = 0; x < f->n_blocks; x++)
                    if (mg_has(q, x)) again |= pend_above(f, x, q);
            }
            if (in && (in->ctl == EMU_CTL_EXIT || in->ctl == EMU_CTL_RET ||
                       in->ctl == EMU_CTL_TRAP)) { /* they leave, others go on */
                memcpy(q, f->blocks[b].front, f->block_words * sizeof *q);
                for (uint32_t x = 0; x < f->n_blocks; x++)
                    if (mg_has(q, x)) again |= pend_above(f, x, q);
            }
            if (parks(f, b)) again |= park_front(f, b, reach);
        }
    }
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        for (uint32_t x = 0; x < f->n_blocks; x++)
            if (mg_has(f->blocks[b].front, x)) f->blocks[x].merges = true;
        for (uint32_t k = 0; k < f->n_serials; k++)
            if (mg_has(f->serials[k].stops, b)) f->blocks[b].merges = true;
        memset(f->blocks[b].keep, 0, f->reg_words * sizeof(uint64_t));
        for (uint32_t x = 0; x < f->n_blocks; x++)
            if (mg_has(f->blocks[b].front, x)) mg_bits_join(f->blocks[b].keep, f->blocks[x].live, f->reg_words);
    }
    free(q);
    free(reach);
}

/* ---- liveness ------------------------------------------------------------------------------------------ */

struct live {
    const struct cpu_func *f;
    uint64_t *set;
};

static void use(void *user, uint32_t r)
{
    struct live *l = user;
    if (l->f->regs[r].kind == CPU_REG_PLAIN) mg_put(l->set, r);
}
static void def(void *user, uint32_t r, bool must)
{
    struct live *l = user;
    if (must)
        mg_cut(l->set, r);
    else
        use(user, r);
}

static void step_back(struct live *l, uint32_t ix)
{
    const struct cpu_inst *in = &l->f->insts[ix];
    cpu_each_def(l->f, in, def, l);
    cpu_each_use(l->f, in, use, l);
}

void cpu_live_at(const struct cpu_func *f, uint32_t b, uint32_t ix, uint64_t *out)
{
    struct live l = {f, out};
    memset(out, 0, f->reg_words * sizeof *out);
    MG_EACH_EDGE(&f->succ, b, e) mg_bits_join(out, f->blocks[f->succ.to[e]].live, f->reg_words);
    for (uint32_t i = f->blocks[b].end; i-- > ix;) step_back(&l, i);
}

struct effects {
    const struct cpu_func *f;
    struct mg_effects *e;
};

static void note_use(void *user, uint32_t r)
{
    struct effects *x = user;
    if (x->f->regs[r].kind == CPU_REG_PLAIN) mg_effect_use(x->e, r);
}
static void note_kept(void *user, uint32_t r, bool must)
{
    if (!must) note_use(user, r);
}
static void note_written(void *user, uint32_t r, bool must)
{
    struct effects *x = user;
    if (must) mg_effect_def(x->e, r);
}

static void block_effects(void *user, uint32_t b, struct mg_effects *e)
{
    const struct cpu_func *f = user;
    struct effects x = {f, e};
    for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
        cpu_each_use(f, &f->insts[i], note_use, &x);
        cpu_each_def(f, &f->insts[i], note_kept, &x);
        cpu_each_def(f, &f->insts[i], note_written, &x);
    }
}

void cpu_find_live(struct cpu_func *f)
{
    size_t rows = (size_t)f->n_blocks * f->reg_words;
    uint64_t *in = mg_xcalloc(2 * rows + 1, sizeof *in);
    mg_liveness_run(&(struct mg_liveness){
        .pred = &f->pred, .words = f->reg_words, .effects = block_effects, .user = f, .in = in, .out = in + rows});
    for (uint32_t b = 0; b < f->n_blocks; b++)
        memcpy(f->blocks[b].live, in + (size_t)b * f->reg_words, f->reg_words * sizeof *in);
    free(in);
}

/* ---- what has been written ----------------------------------------------------------------------------- */

static void note_def(void *user, uint32_t r, bool must)
{
    (void)must;
    mg_put(user, r);
}

/* Registers written before operation ix of block b and since the function was entered, or in code for whole CTAs the
 * region began: the others are outside compiled code as they are inside. */
void cpu_dirty_at(const struct cpu_func *f, bool whole, uint32_t b, uint32_t ix, uint64_t *out)
{
    memcpy(out, f->blocks[b].dirty[whole], f->reg_words * sizeof *out);
    for (uint32_t i = f->blocks[b].first; i < ix; i++) cpu_each_def(f, &f->insts[i], note_def, out);
}

static void pass_dirty(void *user, uint32_t b, uint64_t *row)
{
    const struct cpu_func *f = user;
    for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) cpu_each_def(f, &f->insts[i], note_def, row);
}

/* Along control flow, but for what goes on by way of an entry; and lanes that waited come to run with what others
 * wrote. */
static struct mg_graph find_written_ways(const struct cpu_func *f, const struct mg_graph *succ, struct mg_arena *a)
{
    uint32_t room = succ->at[f->n_blocks], n = 0;
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t w = 0; w < f->block_words; w++) room += (uint32_t)__builtin_popcountll(f->blocks[b].front[w]);
    uint32_t *from = mg_arena_array(a, uint32_t, room + 1), *to = mg_arena_array(a, uint32_t, room + 1);
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        const struct cpu_inst *in = last_of(f, b);
        bool outside = in && (in->ctl == EMU_CTL_BAR || in->ctl == EMU_CTL_SYNC);
        MG_EACH_EDGE(succ, b, e)
        if (!outside) from[n] = b, to[n++] = succ->to[e];
        for (uint32_t x = 0; x < f->n_blocks; x++)
            if (mg_has(f->blocks[b].front, x)) from[n] = b, to[n++] = x;
    }
    return mg_graph_of_pairs(a, f->n_blocks, from, to, n);
}

void cpu_find_dirty(struct cpu_func *f)
{
    for (int whole = 0; whole < 2; whole++) {
        struct mg_arena scratch = MG_ARENA_INIT;
        struct mg_graph ways = find_written_ways(f, whole ? &f->within : &f->succ, &scratch);
        uint64_t *rows = mg_arena_array(&f->arena, uint64_t, (size_t)f->n_blocks * f->reg_words + 1);
        mg_dataflow_run(&(struct mg_dataflow){
            .g = &ways, .any = true, .words = f->reg_words, .rows = rows, .pass = pass_dirty, .user = f});
        for (uint32_t b = 0; b < f->n_blocks; b++) f->blocks[b].dirty[whole] = rows + (size_t)b * f->reg_words;
        mg_arena_release(&scratch);
    }
}

/* ---- registers that stay in memory ---------------------------------------------------------------------- */

#define MAX_LIVE 1500 /* sum over the blocks of the registers live there; MARGAY_CPU_LIVE, for tests */

/* A value that lives across a block is a phi at every join and a load or store at every way in and out; of
 * large functions that is more than all the rest, and LLVM takes
 * minutes. So there the longest-lived registers stay where they are between visits. */
void cpu_find_settled(struct cpu_func *f)
{
    uint32_t *live = mg_arena_array(&f->arena, uint32_t, f->n_regs + 1),
             *of = mg_arena_array(&f->arena, uint32_t, f->n_blocks + 1), cut;
    const char *wish = mg_env(MG_ENV_CPU_LIVE);
    if (f->pure) return; /* it has no frame */
    uint64_t sum = 0, merges = 0, most = wish ? strtoul(wish, NULL, 10) : MAX_LIVE;
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t w = 0; w < f->reg_words; w++)
            for (uint64_t m = f->blocks[b].live[w] | f->blocks[b].keep[w]; m; m &= m - 1)
                live[64 * w + (uint32_t)__builtin_ctzll(m)]++;
    for (uint32_t r = 0; r < f->n_regs; r++) of[live[r]]++;
    for (cut = 0; cut <= f->n_blocks; cut++) {
        sum += (uint64_t)of[cut] * cut;
        if (sum > most) break;
    }
    for (uint32_t b = 0; b < f->n_blocks; b++) merges += f->blocks[b].merges;
    f->region.masks_settled = merges * f->n_blocks > most;
    for (uint32_t r = 0; r < f->n_regs; r++)
        f->regs[r].settled =
            live[r] >= cut && cut <= f->n_blocks && f->regs[r].kind == CPU_REG_PLAIN && f->regs[r].cls != EMU_Q;
}
