/* What probes add to memory, told from how often operations run (whole-CTA code).
 *
 * Probes count in registers and add those to memory where a lane ends; nobody reads that before the launch is over.
 * So code for whole CTAs keeps no such registers. It counts who passes the operations where they would grow
 *   (sites),
 * in an array of the worker's, and when the worker is done the sums are made here and added (cpu_tally_flush). What
 * all warps pass exactly once in a region is not counted at all: regions are (cpu_start.always, cpu_start.rounds).
 *
 *   red [base + off], 1                 a lane more where it stands
 *   red [base + off], c                 a lane more wherever c grows, if every lane adds c where it ends and only
 *                                       there
 *   @leader red [base + off], c         those of them that lead: see leads_from
 *   red [base + off], other             the value, at once
 *
 * Who leads and where base is need not be known then either: code for whole CTAs has none of these registers, and
 *   what goes on elsewhere
 * gets them from cpu_tally_leave.
 */
#include "device/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "device/emu/alu_form.h"
#include "device/mem.h"

enum { MOST = 512 /* places of a kernel that probes add to */, DEPTH = 8 };

struct sink {
    uint32_t base, off, under;
};
struct find {
    struct cpu_func *f;
    uint64_t *reached;
    uint32_t *base_of; /* by register: 1 + its base, UINT32_MAX: not found */
    uint8_t *leads;    /* by register: 1 is_leader, 2 not */
    struct cpu_tally list[4 * MOST];
    uint32_t n;
};

/* ---- where they are added -------------------------------------------------------------------------------- */

static bool same_base(const struct cpu_base *a, const struct cpu_base *b)
{
    return a->param == b->param && a->load == b->load && a->word == b->word && a->add == b->add;
}

/* A base that is a parameter plus a constant, or a word there plus a constant: the host can tell it. */
static bool find_base(const struct cpu_func *f, uint32_t reg, unsigned depth, struct cpu_base *out)
{
    bool any = false;
    for (uint32_t i = 0; i < f->n_insts; i++) {
        const struct cpu_inst *in = &f->insts[i];
        struct cpu_base b = {.lo = UINT32_MAX};
        bool ok = false;
        if (!cpu_defines(f, in, reg)) continue;
        bool add = in->kind == CPU_ALU && in->op == MG_OP_add && in->s[0] && in->s[1] &&
                   cpu_is_constant(&f->regs[in->s[1] - 1]);
        bool move = in->kind == CPU_MOV || (in->kind == CPU_ALU && in->op == MG_OP_mov);
        if (in->kind == CPU_PARAM) {
            ok = in->bytes == 8 && in->vec == 1;
            b.param = (uint32_t)in->off;
        } else if (depth && (add || move) && in->d == reg && in->s[0]) {
            ok = f->regs[reg - 1].cls == EMU_D && find_base(f, in->s[0], depth - 1, &b);
            if (add) b.add += f->regs[in->s[1] - 1].value;
        } else if (depth && in->kind == CPU_LOAD && in->where == EMU_AT_GLOBAL && in->bytes == 8 && in->vec == 1 &&
                   in->s[0]) {
            ok = find_base(f, in->s[0], depth - 1, &b) && !b.load;
            b.load = true;
            b.word = b.add + (uint64_t)in->off;
            b.add = 0;
        }
        if (!ok || in->guard || (any && !same_base(&b, out))) return false;
        *out = b;
        any = true;
    }
    return any;
}

static bool base_of(struct find *z, uint32_t reg, uint32_t *ix)
{
    struct cpu_func *f = z->f;
    struct cpu_base b = {.lo = UINT32_MAX};
    uint32_t *known = &z->base_of[reg - 1], k = 0;
    if (!*known) {
        *known = UINT32_MAX;
        if (find_base(f, reg, DEPTH, &b)) {
            while (k < f->tally.n_bases && !same_base(&f->tally.bases[k], &b)) k++;
            if (k < CPU_MAX_BASES) *known = 1 + k;
            if (k < CPU_MAX_BASES && k == f->tally.n_bases) f->tally.bases[f->tally.n_bases++] = b;
        }
    }
    *ix = *known - 1;
    return *known != UINT32_MAX;
}

/* ---- predicates of leaders --------------------------------------------------------------------------------- */

static bool never(const struct cpu_inst *in)
{
    return in->kind == CPU_ALU && in->op == MG_OP_setp && !in->guard && !(in->imm & 3) && in->s[0] &&
           in->s[0] == in->s[1] && (in->key & K_SUB) >> K_SUB_SHIFT == CMP_ne &&
           mg_type_kind((enum mg_type)in->t[0]) != MG_TK_FLOAT;
}

static bool leads(const struct cpu_func *f, uint32_t reg)
{
    bool any = false;
    if (f->regs[reg - 1].kind != CPU_REG_PLAIN || f->regs[reg - 1].cls != EMU_P) return false;
    for (uint32_t i = 0; i < f->n_insts; i++) {
        const struct cpu_inst *in = &f->insts[i];
        if (!cpu_defines(f, in, reg)) continue;
        if (in->kind == CPU_LEADER && in->d == reg && !in->guard)
            any = true;
        else if (!never(in))
            return false;
    }
    return any;
}

/* Does reg ever hold anything but "is the lowest of those that came here together"? */
static bool is_leader(struct find *z, uint32_t reg)
{
    uint8_t *known = &z->leads[reg - 1];
    if (!*known) *known = leads(z->f, reg) ? 1 : 2;
    return *known == 1;
}

/* In whole-CTA code, lane 0 of each warp and no other? */
static bool is_lane_0(const struct cpu_func *f, uint32_t reg)
{
    const struct cpu_block *b = &f->blocks[f->entry];
    if (!mg_has(f->region.starts[0].always, f->entry)) return false;
    for (uint32_t i = 0; i < f->n_insts; i++)
        if (cpu_defines(f, &f->insts[i], reg) && (f->insts[i].kind != CPU_LEADER || i < b->first || i >= b->end))
            return false;
    return true;
}

/* May a lane that has done operation `ix` of block `b` come to another definition of reg? */
static bool may_change(const struct cpu_func *f, uint32_t b, uint32_t ix, uint32_t reg)
{
    uint64_t *after = mg_xcalloc(f->block_words, sizeof *after);
    bool found = false;
    mg_graph_after(&f->succ, b, after, NULL);
    for (uint32_t i = ix + 1; i < f->blocks[b].end; i++) found |= cpu_defines(f, &f->insts[i], reg);
    for (uint32_t x = 0; x < f->n_blocks && !found; x++)
        for (uint32_t i = f->blocks[x].first; mg_has(after, x) && i < f->blocks[x].end; i++)
            found |= cpu_defines(f, &f->insts[i], reg);
    free(after);
    return found;
}

/* ---- registers that only count ------------------------------------------------------------------------------ */

static bool is_end(const struct cpu_func *f, uint32_t b)
{
    const struct cpu_inst *in = &f->insts[f->blocks[b].end - 1];
    return in->kind == CPU_CTL && (in->ctl == EMU_CTL_EXIT || in->ctl == EMU_CTL_RET);
}

static bool adds_constant(const struct cpu_func *f, const struct cpu_inst *in)
{
    return in->kind == CPU_ALU && in->op == MG_OP_add && in->d && in->d == in->s[0] && in->s[1] && in->s[1] != in->d &&
           cpu_is_constant(&f->regs[in->s[1] - 1]);
}

static bool sets_zero(const struct cpu_func *f, const struct cpu_inst *in)
{
    bool move = in->kind == CPU_MOV || (in->kind == CPU_ALU && in->op == MG_OP_mov);
    return move && !in->guard && in->s[0] && cpu_is_constant(&f->regs[in->s[0] - 1]) && !f->regs[in->s[0] - 1].value;
}

static uint32_t n_added(const struct cpu_inst *in)
{
    return in->offs ? MG_MAX(in->n_list, 1) : 0;
}
static uint32_t added(const struct cpu_inst *in, uint32_t k)
{
    return in->n_list ? in->list[k] : in->s[1];
}

/* Where block b adds register r to; UINT32_MAX: not so simply. */
static uint32_t sinks_of(struct find *z, uint32_t b, uint32_t r, struct sink *out, uint32_t max)
{
    const struct cpu_func *f = z->f;
    uint32_t n = 0;
    for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
        const struct cpu_inst *in = &f->insts[i];
        for (uint32_t k = 0; k < n_added(in); k++) {
            if (added(in, k) != r) continue;
            if (n == max || (in->guard && (in->guard_not || !is_leader(z, in->guard))) ||
                !base_of(z, in->s[0], &out[n].base))
                return UINT32_MAX;
            out[n].off = in->offs[k];
            out[n++].under = in->guard;
        }
    }
    return n;
}

static void drop(void *user, uint32_t r, bool must)
{
    struct cpu_func *f = user;
    (void)must;
    f->regs[r].sum = false;
}
static void drop_use(void *user, uint32_t r)
{
    drop(user, r, false);
}

/* Those of which nothing is known but that probes add to them and add them to memory. */
static void find_candidates(struct cpu_func *f)
{
    for (uint32_t i = 0; i < f->n_insts; i++)
        for (uint32_t k = 0; k < n_added(&f->insts[i]); k++) {
            uint32_t r = added(&f->insts[i], k);
            struct cpu_reg *reg = &f->regs[r - 1];
            reg->sum = reg->kind == CPU_REG_PLAIN && !reg->known && reg->cls == EMU_D && reg->shape.varying &&
                       !mg_has(f->blocks[f->entry].live, r - 1);
        }
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
            struct cpu_inst in = f->insts[i];
            if (in.kind == CPU_CLEAR && b == f->entry) continue;
            if (in.offs) {
                drop(f, in.s[0] - 1, false);
                continue;
            }
            if (in.kind == CPU_LEADER && !in.guard)
                in.s[0] = in.d2 = 0;
            else if (adds_constant(f, &in))
                in.d = in.s[0] = 0;
            else if (b == f->entry && sets_zero(f, &in))
                in.d = 0;
            cpu_each_use(f, &in, drop_use, f);
            cpu_each_def(f, &in, drop, f);
        }
}

static bool add_tally(struct find *z, struct cpu_tally t)
{
    if (z->n == MG_COUNT_OF(z->list)) return false;
    z->list[z->n++] = t;
    return true;
}

/* Register r grows at operation ix of block b and is added to s in the end. */
static bool add_growth(struct find *z, uint32_t b, uint32_t ix, const struct sink *s, enum cpu_tally_kind kind,
                       uint64_t times)
{
    struct cpu_tally t = {.at = ix, .kind = (uint8_t)kind, .base = s->base, .off = s->off, .times = times};
    const struct cpu_inst *in = &z->f->insts[ix];
    if (s->under) {
        if (kind != CPU_TALLY_LANES || in->guard || may_change(z->f, b, ix, s->under)) return false;
        t.kind = in->kind == CPU_LEADER && in->d == s->under ? CPU_TALLY_ONCE
                 : is_lane_0(z->f, s->under)                 ? CPU_TALLY_FIRST
                                                             : CPU_TALLY_UNDER;
        t.reg = s->under;
    }
    return add_tally(z, t);
}

/* Every lane adds r once where it ends, to the same places, and nowhere else. */
static bool only_counts(struct find *z, uint32_t r)
{
    struct cpu_func *f = z->f;
    struct sink to[4], here[4];
    uint32_t n = 0;
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        if (!mg_has(z->reached, b)) continue;
        uint32_t m = sinks_of(z, b, r, here, MG_COUNT_OF(here));
        if (m == UINT32_MAX || (m != 0) != is_end(f, b) || (m && f->insts[f->blocks[b].end - 1].guard)) return false;
        if (m && n && (m != n || memcmp(to, here, n * sizeof *to))) return false;
        if (m) memcpy(to, here, m * sizeof *to), n = m;
    }
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end && mg_has(z->reached, b); i++) {
            const struct cpu_inst *in = &f->insts[i];
            for (uint32_t k = 0; k < n; k++) {
                if (in->kind == CPU_LEADER && in->s[0] == r && !add_growth(z, b, i, &to[k], CPU_TALLY_LANES, 1))
                    return false;
                if (in->kind == CPU_LEADER && in->d2 == r && !add_growth(z, b, i, &to[k], CPU_TALLY_ONCE, 1))
                    return false;
                if (adds_constant(f, in) && in->d == r &&
                    !add_growth(z, b, i, &to[k], CPU_TALLY_LANES, f->regs[in->s[1] - 1].value))
                    return false;
            }
        }
    return n != 0;
}

/* What an operation adds to memory that is no sum. */
static bool add_here(struct find *z, uint32_t ix, uint32_t k)
{
    struct cpu_func *f = z->f;
    const struct cpu_inst *in = &f->insts[ix];
    uint32_t r = added(in, k);
    struct cpu_tally t = {.at = ix, .kind = CPU_TALLY_VALUE, .off = in->offs[k], .reg = r, .times = 1};
    if (!base_of(z, in->s[0], &t.base)) return false;
    if (cpu_is_constant(&f->regs[r - 1])) {
        t.kind = in->guard && !in->guard_not && is_leader(z, in->guard) && is_lane_0(f, in->guard) ? CPU_TALLY_FIRST
                                                                                                   : CPU_TALLY_LANES;
        t.times = f->regs[r - 1].value;
    }
    return add_tally(z, t);
}

static int by_place(const void *a, const void *b)
{
    const struct cpu_tally *x = a, *y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : x->off < y->off ? -1 : x->off > y->off;
}

/* Places in the array of counts: values first, which are vectors. */
static void number(struct find *z)
{
    struct cpu_func *f = z->f;
    qsort(z->list, z->n, sizeof *z->list, by_place);
    for (uint32_t i = 0; i < z->n; i++)
        if (z->list[i].kind == CPU_TALLY_VALUE) z->list[i].count = f->tally.n_counts, f->tally.n_counts += 8;
    f->tally.sites = mg_arena_array(&f->arena, struct cpu_site, z->n);
    f->tally.first_at = mg_arena_array(&f->arena, uint32_t, f->n_insts + 1);
    for (uint32_t i = z->n; i-- > 0;) f->tally.first_at[z->list[i].at] = 1 + i;
    for (uint32_t i = 0; i < z->n; i++) {
        struct cpu_tally *t = &z->list[i];
        struct cpu_base *base = &f->tally.bases[t->base];
        base->lo = MG_MIN(base->lo, t->off);
        base->hi = MG_MAX(base->hi, t->off + 8);
        if (t->kind == CPU_TALLY_UNDER) {
            t->count = f->tally.n_counts++;
            for (uint32_t b = 0; b < f->n_blocks; b++) /* lanes in a loop of their own ask for it there */
                if (f->blocks[b].first <= t->at && t->at < f->blocks[b].end && f->serial_of[b])
                    mg_put(f->serials[f->serial_of[b] - 1].in, t->reg - 1);
        }
        if (t->kind >= CPU_TALLY_UNDER) continue;
        if (!f->tally.n_sites || f->tally.sites[f->tally.n_sites - 1].at != t->at) {
            f->tally.sites[f->tally.n_sites++] = (struct cpu_site){.at = t->at, .count = f->tally.n_counts};
            f->tally.n_counts += CPU_SITE_WORDS;
        }
        struct cpu_site *s = &f->tally.sites[f->tally.n_sites - 1];
        t->site = f->tally.n_sites - 1;
        s->wants |= 1u << t->kind;
        s->guarded |= t->kind == CPU_TALLY_LANES && f->insts[t->at].guard;
    }
    for (uint32_t b = 0, i = 0; b < f->n_blocks; b++)
        for (; i < f->tally.n_sites && f->tally.sites[i].at < f->blocks[b].end; i++) f->tally.sites[i].block = b;
    for (uint32_t i = 0; i < f->region.n_starts; i++) f->region.starts[i].rounds = f->tally.n_counts++;
    f->tally.list = mg_arena_copy(&f->arena, z->list, z->n * sizeof *z->list);
    f->tally.n = z->n;
}

/* ---- registers that nothing needs any more ------------------------------------------------------------------ */

struct uses {
    uint32_t reg;
    bool found;
};
static void note_use(void *user, uint32_t r)
{
    struct uses *u = user;
    u->found |= r + 1 == u->reg;
}

static bool defines_told(const struct cpu_func *f, const struct cpu_inst *in)
{
    if (in->kind == CPU_LOAD || in->kind == CPU_PARAM)
        return in->vec == 1 && in->list[0] && f->regs[in->list[0] - 1].sum;
    return (in->kind == CPU_MOV || in->kind == CPU_ALU) && in->d && !in->d2 && f->regs[in->d - 1].sum;
}

/* Does it serve for nothing but where and by whom is added? */
static bool only_serves(const struct cpu_func *f, uint32_t reg)
{
    if (f->regs[reg - 1].kind != CPU_REG_PLAIN || mg_has(f->blocks[f->entry].live, reg - 1)) return false;
    for (uint32_t i = 0; i < f->n_insts; i++) {
        const struct cpu_inst *in = &f->insts[i];
        struct uses u = {.reg = reg};
        cpu_each_use(f, in, note_use, &u);
        bool serves = in->offs ? (in->guard == reg) + (in->s[0] == reg) == 1 && in->s[1] != reg : defines_told(f, in);
        if (u.found && !serves) return false;
    }
    return true;
}

static void refill(struct cpu_func *f, uint32_t reg, uint8_t kind, uint32_t base)
{
    f->regs[reg - 1].sum = true;
    f->tally.refills[f->tally.n_refills++] = (struct cpu_refill){reg, kind, base};
}

/* Every tally that leader p decides is told without it. */
static bool leads_for_nobody(const struct cpu_func *f, uint32_t p)
{
    for (uint32_t k = 0; k < f->tally.n; k++) {
        const struct cpu_tally *t = &f->tally.list[k];
        if (t->kind != CPU_TALLY_ONCE && t->kind != CPU_TALLY_FIRST && (t->reg == p || f->insts[t->at].guard == p))
            return false;
    }
    return true;
}

static void find_told(struct find *z)
{
    struct cpu_func *f = z->f;
    f->tally.refills = mg_arena_array(&f->arena, struct cpu_refill, f->n_regs + 1);
    for (uint32_t r = 1; r <= f->n_regs; r++) {
        if (f->regs[r - 1].sum)
            refill(f, r, CPU_REFILL_ZERO, 0);
        else if (z->leads[r - 1] == 1 && leads_for_nobody(f, r) && only_serves(f, r))
            refill(f, r, is_lane_0(f, r) ? CPU_REFILL_LANE_0 : CPU_REFILL_ZERO, 0);
    }
    for (uint32_t i = 0; i < f->n_insts; i++) {
        uint32_t base, r = f->insts[i].offs ? f->insts[i].s[0] : 0;
        if (r && !f->regs[r - 1].sum && only_serves(f, r) && base_of(z, r, &base)) refill(f, r, CPU_REFILL_BASE, base);
    }
    for (uint32_t i = 0; i < f->n_insts; i++) { /* and what those come from */
        uint32_t base, r = f->insts[i].s[0];
        if (r && !f->insts[i].offs && defines_told(f, &f->insts[i]) && !f->regs[r - 1].sum && only_serves(f, r) &&
            base_of(z, r, &base))
            refill(f, r, CPU_REFILL_BASE, base);
    }
}

void cpu_find_tallies(struct cpu_func *f)
{
    struct find *z = calloc(1, sizeof *z);
    uint32_t total = 0;
    bool ok = z != NULL;
    if (!z) abort();
    z->f = f;
    z->base_of = mg_arena_array(&f->arena, uint32_t, f->n_regs + 1);
    z->leads = mg_arena_array(&f->arena, uint8_t, f->n_regs + 1);
    z->reached = mg_arena_array(&f->arena, uint64_t, f->block_words);
    for (uint32_t i = 0; i < f->region.n_starts; i++)
        for (uint32_t w = 0; w < f->block_words; w++) z->reached[w] |= f->region.starts[i].reach[w];
    for (uint32_t i = 0; i < f->n_insts && ok; i++) {
        const struct cpu_inst *in = &f->insts[i];
        for (uint32_t k = 0; k < n_added(in); k++) ok &= added(in, k) != 0;
        total += n_added(in);
    }
    if (ok && total && total <= MOST) {
        find_candidates(f);
        for (uint32_t r = 0; r < f->n_regs; r++) {
            uint32_t before = z->n;
            if (!f->regs[r].sum || (f->regs[r].sum = only_counts(z, r + 1))) continue;
            z->n = before;
        }
        for (uint32_t i = 0; i < f->n_insts && ok; i++)
            for (uint32_t k = 0; k < n_added(&f->insts[i]) && ok; k++)
                if (!f->regs[added(&f->insts[i], k) - 1].sum) ok = add_here(z, i, k);
        if (ok) {
            number(z);
            find_told(z);
        }
        for (uint32_t r = 0; r < f->n_regs && !ok; r++) f->regs[r].sum = false;
    }
    free(z);
}

/* ---- while a launch runs, and when a worker is done with it --------------------------------------------------- */

/* Where things are added in this launch; false: not in memory that it may write to, which the emulator reports. */
bool cpu_tally_bases(const struct cpu_func *f, const char *params, uint64_t base[CPU_MAX_BASES])
{
    for (uint32_t i = 0; i < f->tally.n_bases; i++) {
        const struct cpu_base *b = &f->tally.bases[i];
        struct mg_alloc a;
        memcpy(&base[i], params + b->param, 8);
        if (b->load) {
            uint64_t at = base[i] + b->word;
            if (at & 7 || !mg_mem_find_any(at, &a) || a.base + a.bytes - at < 8) return false;
            memcpy(&base[i], (const void *)at, 8);
        }
        base[i] += b->add;
        uint64_t first = base[i] + b->lo;
        if (b->lo == UINT32_MAX) continue;
        if (first & 7 || !mg_mem_find_any(first, &a) || a.readonly || a.base + a.bytes - first < b->hi - b->lo)
            return false;
    }
    return true;
}

/* Whole-CTA code has left the region where it stood in warp `own` at operation pc: what it was about to count for
 * all warps at once is due for those that were there, and all get the registers that it did without. */
void cpu_tally_leave(const struct cpu_func *f, struct cpu_call *call, const uint64_t base[CPU_MAX_BASES],
                     uint64_t *counts)
{
    for (uint32_t i = 0; i < f->tally.n_sites; i++)
        if (cpu_site_always(f, f->region.start_of[call->start] - 1, &f->tally.sites[i]))
            counts[f->tally.sites[i].count] += call->own + (call->pc > f->tally.sites[i].at);
    for (uint32_t k = 0; k < f->tally.n_refills; k++) {
        const struct cpu_refill *r = &f->tally.refills[k];
        const struct cpu_reg *reg = &f->regs[r->reg - 1];
        uint64_t v = r->kind == CPU_REFILL_BASE ? base[r->base] : r->kind == CPU_REFILL_LANE_0;
        for (uint32_t w = 0; w < f->region.n_warps; w++) {
            char *d = call->warps[w].frame->regs + reg->off;
            if (reg->linear) call->warps[w].linear[reg->linear - 1][0] = call->warps[w].linear[reg->linear - 1][1] = v;
            if (reg->cls == EMU_P)
                *(uint32_t *)d = (uint32_t)v;
            else
                for (int i = 0; i < EMU_LANES; i++) ((uint64_t *)d)[i] = v;
        }
    }
}

static uint64_t passes(const struct cpu_func *f, const struct cpu_site *s, const uint64_t *counts)
{
    uint64_t n = counts[s->count];
    for (uint32_t k = 0; k < f->region.n_starts; k++)
        if (cpu_site_always(f, k, s)) n += f->region.n_warps * counts[f->region.starts[k].rounds];
    return n;
}

void cpu_tally_flush(const struct cpu_func *f, const uint64_t base[CPU_MAX_BASES], uint64_t *counts)
{
    for (uint32_t i = 0; i < f->tally.n; i++) {
        const struct cpu_tally *t = &f->tally.list[i];
        uint64_t v = 0;
        if (t->kind == CPU_TALLY_VALUE) {
            for (int k = 0; k < 8; k++) v += counts[t->count + k];
        } else if (t->kind == CPU_TALLY_UNDER)
            v = counts[t->count];
        else {
            const struct cpu_site *s = &f->tally.sites[t->site];
            uint64_t full = passes(f, s, counts);
            v = (t->kind == CPU_TALLY_LANES ? 32 * full : full) + counts[s->count + 1 + t->kind];
        }
        if (v) __atomic_fetch_add((uint64_t *)(base[t->base] + t->off), v * t->times, __ATOMIC_RELAXED);
    }
    memset(counts, 0, f->tally.n_counts * sizeof *counts);
}
