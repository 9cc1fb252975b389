/* What is known of the accesses to global memory in a loop that lanes go through one after the other (serial.c), so
 * that they need be looked at less: that they are aligned, that their addresses move by the same amount from round to
 * round, and that another one before them went to the same place. */
#include "device/cpu/cpu.h"

#include <stdlib.h>

#include "device/emu/alu_form.h"

#define MOST_APART 4096 /* bytes between accesses that one stands for */
#define MOST_SLICE 16   /* operations that lead to an address */

/* ---- alignment --------------------------------------------------------------------------------------------- */

struct zeros {
    const struct cpu_func *f;
    uint64_t *in_work;
    uint32_t budget;
    struct cpu_lane_access *a;
};

static unsigned low_zeros(struct zeros *z, uint32_t reg);

/* Zeros at the low end of what the instruction gives its destination; 64: of no matter. */
static unsigned zeros_of(struct zeros *z, const struct cpu_inst *in)
{
    unsigned n, m;
    if (in->kind == CPU_PARAM && in->bytes == 8 && in->vec == 1) { /* a pointer: looked at when the loop is entered */
        uint32_t k = 0;
        while (k < z->a->n_params && z->a->params[k] != (uint32_t)in->off) k++;
        if (k == MG_COUNT_OF(z->a->params)) return 0;
        if (k == z->a->n_params) z->a->params[z->a->n_params++] = (uint32_t)in->off;
        return 64;
    }
    switch ((enum cpu_kind)in->kind) {
    case CPU_MOV:
    case CPU_ZEXT:
    case CPU_SEXT:
    case CPU_LOW:
        return low_zeros(z, in->s[0]);
    case CPU_ALU:
        break;
    default:
        return 0;
    }
    if (mg_type_kind((enum mg_type)in->t[0]) == MG_TK_FLOAT || in->d2) return 0;
    switch (in->op) {
    case MG_OP_mov:
        return low_zeros(z, in->s[0]);
    case MG_OP_cvt:
        return mg_type_kind((enum mg_type)in->t[1]) == MG_TK_FLOAT ? 0 : low_zeros(z, in->s[0]);
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_selp:
        n = low_zeros(z, in->s[0]), m = low_zeros(z, in->s[1]);
        return MG_MIN(n, m);
    case MG_OP_mul:
    case MG_OP_mad:
        if (in->key == K_HI) return 0;
        n = MG_MIN(low_zeros(z, in->s[0]) + low_zeros(z, in->s[1]), 64u);
        m = in->op == MG_OP_mad ? low_zeros(z, in->s[2]) : 64;
        return MG_MIN(n, m);
    case MG_OP_shl:
        if (!in->s[1] || !cpu_is_constant(&z->f->regs[in->s[1] - 1]) || z->f->regs[in->s[1] - 1].value > 31) return 0;
        n = low_zeros(z, in->s[0]) + (unsigned)z->f->regs[in->s[1] - 1].value;
        return MG_MIN(n, 64u);
    default:
        return 0;
    }
}

/* The least of all that the register is given; what comes back to it by way of itself adds nothing. */
static unsigned low_zeros(struct zeros *z, uint32_t reg)
{
    const struct cpu_reg *r = reg ? &z->f->regs[reg - 1] : NULL;
    unsigned least = 64;
    if (!r || !z->budget || r->kind == CPU_REG_SREG) return 0;
    if (cpu_is_constant(r)) return r->value ? (unsigned)__builtin_ctzll(r->value) : 64;
    if (mg_has(z->in_work, reg - 1)) return 64;
    z->budget--;
    mg_put(z->in_work, reg - 1);
    for (uint32_t i = 0; i < z->f->n_insts && least; i++) {
        unsigned n = cpu_defines(z->f, &z->f->insts[i], reg) ? zeros_of(z, &z->f->insts[i]) : 64;
        least = MG_MIN(least, n);
    }
    mg_cut(z->in_work, reg - 1);
    return least;
}

/* ---- the loop ------------------------------------------------------------------------------------------------- */

/* How many operations of [from, to) in the loop define the register; *at: the last. */
static uint32_t definitions(const struct cpu_func *f, const struct cpu_serial *s, uint32_t reg, uint32_t from,
                            uint32_t to, uint32_t *at)
{
    uint32_t n = 0;
    for (uint32_t b = s->head; b < f->n_blocks; b++)
        for (uint32_t i = MG_MAX(f->blocks[b].first, from); mg_has(s->blocks, b) && i < MG_MIN(f->blocks[b].end, to);
             i++)
            if (cpu_defines(f, &f->insts[i], reg)) n++, *at = i;
    return n;
}

/* No jumps back but to the head? */
static bool is_plain(const struct cpu_func *f, const struct cpu_serial *s)
{
    for (uint32_t b = s->head; b < f->n_blocks; b++) {
        if (!mg_has(s->blocks, b)) continue;
        MG_EACH_EDGE(&f->succ, b, e)
        if (mg_has(s->blocks, f->succ.to[e]) && f->succ.to[e] <= b && f->succ.to[e] != s->head) return false;
    }
    return true;
}

static uint32_t block_of(const struct cpu_func *f, uint32_t ix)
{
    uint32_t b = 0;
    while (f->blocks[b].end <= ix) b++;
    return b;
}

/* Does every way from the head to block b within a round lead through block a? In loops that are plain. */
static bool is_behind(const struct cpu_func *f, const struct cpu_serial *s, uint32_t a, uint32_t b)
{
    uint64_t *outside = mg_xmalloc(sizeof *outside * f->block_words);
    for (uint32_t w = 0; w < f->block_words; w++) outside[w] = ~s->blocks[w];
    bool behind = mg_graph_is_behind(&f->succ, s->head, a, b, outside);
    free(outside);
    return behind;
}

/* ---- addresses that move evenly ------------------------------------------------------------------------------ */

/* Is the register the same all the time, or does one operation alone change it, by *step? Between two jumps back
 * operations come in ascending order, so that this happens once at most. */
static bool moves_by(const struct cpu_func *f, const struct cpu_serial *s, bool plain, uint32_t reg, int64_t *step)
{
    uint32_t at, from, n = definitions(f, s, reg, 0, f->n_insts, &at);
    *step = 0;
    if (n != 1) return !n;
    const struct cpu_inst *in = &f->insts[at];
    if (cpu_is_move(in) && in->s[0]) { /* by way of another */
        if (!plain || definitions(f, s, in->s[0], 0, f->n_insts, &from) != 1 || from > at || f->insts[from].guard ||
            !is_behind(f, s, block_of(f, from), block_of(f, at)))
            return false;
        in = &f->insts[from];
    }
    if (in->kind != CPU_ALU || in->op != MG_OP_add || in->d2 || mg_type_kind((enum mg_type)in->t[0]) == MG_TK_FLOAT)
        return false;
    for (unsigned k = 0; k < 2; k++) {
        const struct cpu_reg *by = in->s[!k] ? &f->regs[in->s[!k] - 1] : NULL;
        if (in->s[k] != reg || !by || !cpu_is_constant(by)) continue;
        *step = (int64_t)by->value;
        return *step > -MOST_APART && *step < MOST_APART;
    }
    return false;
}

/* ---- accesses that stand for others -------------------------------------------------------------------------- */

/* Whoever comes to a has been at l before, in the same round, with the same register for an address. */
static bool stands_for(const struct cpu_func *f, const struct cpu_serial *s, uint32_t l, uint32_t a)
{
    const struct cpu_inst *first = &f->insts[l], *in = &f->insts[a];
    int64_t apart = in->off - first->off;
    uint32_t at;
    return first->s[0] == in->s[0] && first->probe == in->probe && !first->guard &&
           cpu_access_bytes(in) <= cpu_access_bytes(first) && apart % (int64_t)cpu_access_bytes(in) == 0 &&
           apart > -MOST_APART && apart < MOST_APART && !definitions(f, s, in->s[0], l, a, &at) &&
           is_behind(f, s, block_of(f, l), block_of(f, a));
}

static void find_leader(const struct cpu_func *f, struct cpu_serial *s, struct cpu_lane_access *a)
{
    const struct cpu_inst *in = &f->insts[a->at];
    for (struct cpu_lane_access *l = s->accesses; l < a; l++) {
        const struct cpu_inst *first = &f->insts[l->at];
        int64_t apart = in->off - first->off, size = (int64_t)cpu_access_bytes(first);
        if (l->even || l->leader || !stands_for(f, s, l->at, a->at)) continue;
        a->leader = (uint32_t)(l - s->accesses) + 1;
        if (-apart > (int64_t)l->below) l->below = (uint32_t)((-apart + size - 1) / size * size);
        if (apart + (int64_t)cpu_access_bytes(in) - size > (int64_t)l->above)
            l->above = (uint32_t)(apart + (int64_t)cpu_access_bytes(in) - size);
        return;
    }
}

/* ---- loads through what even loads bring ----------------------------------------------------------------------- */

/* What leads to them: loads that move evenly, arithmetic, and what decides whether there is another round. A register
 * that something else defines counts as it is when the lane begins: it is a guess. */
struct slice {
    const struct cpu_func *f;
    const struct cpu_serial *s;
    uint64_t *ops;
    uint32_t n;
    bool even, ok;
};
static void need(void *user, uint32_t r);

static void add_to_slice(struct slice *c, uint32_t ix)
{
    const struct cpu_inst *in = &c->f->insts[ix];
    if (mg_has(c->ops, ix)) return;
    mg_put(c->ops, ix);
    c->n++;
    if (c->n <= MOST_SLICE) cpu_each_use(c->f, in, need, c);
}

static const struct cpu_lane_access *even_load(const struct cpu_serial *s, uint32_t ix)
{
    for (uint32_t k = 0; k < s->n_accesses; k++)
        if (s->accesses[k].at == ix) return s->accesses[k].even && s->accesses[k].step ? &s->accesses[k] : NULL;
    return NULL;
}

static void need(void *user, uint32_t r)
{
    struct slice *c = user;
    uint32_t at, n = definitions(c->f, c->s, r + 1, 0, c->f->n_insts, &at);
    const struct cpu_inst *in = n ? &c->f->insts[at] : NULL;
    bool load = n == 1 && in->kind == CPU_LOAD && even_load(c->s, at);
    if (n == 1 && !in->guard && (load || (in->kind >= CPU_ALU && in->kind <= CPU_UNPACK))) {
        c->even |= load;
        add_to_slice(c, at);
    } else if (!cpu_is_constant(&c->f->regs[r]) && !mg_has(c->s->in, r))
        c->ok = false;
}

/* The jump back to the head, if there is one alone. */
static uint32_t jump_back(const struct cpu_func *f, const struct cpu_serial *s)
{
    uint32_t at = UINT32_MAX, n_jumps = 0;
    MG_EACH_EDGE(&f->pred, s->head, e)
    {
        uint32_t b = f->pred.to[e];
        if (b >= s->head && mg_has(s->blocks, b)) n_jumps++, at = f->blocks[b].end - 1;
    }
    return n_jumps == 1 && f->insts[at].kind == CPU_CTL ? at : UINT32_MAX;
}

void cpu_find_lane_ahead(struct cpu_func *f, struct cpu_serial *s)
{
    uint32_t last = jump_back(f, s), words = (f->n_insts + 63) / 64;
    struct slice all = {f, s, mg_arena_array(&f->arena, uint64_t, words), .ok = true};
    if (last == UINT32_MAX || !is_plain(f, s)) return;
    for (uint32_t k = 0; k < s->n_accesses; k++) {
        const struct cpu_lane_access *a = &s->accesses[k];
        const struct cpu_inst *in = &f->insts[a->at];
        if (in->kind != CPU_LOAD || a->even || a->leader || in->guard) continue;
        struct slice c = {f, s, mg_arena_array(&f->arena, uint64_t, words), .ok = true};
        need(&c, in->s[0] - 1);
        if (!c.even || !c.ok || c.n > MOST_SLICE) continue;
        for (uint32_t w = 0; w < words; w++) all.ops[w] |= c.ops[w];
        mg_put(all.ops, a->at);
        all.even = true;
    }
    if (!all.even) return;
    if (f->insts[last].guard) need(&all, f->insts[last].guard - 1);
    s->ahead = mg_arena_array(&f->arena, uint32_t, f->n_insts);
    for (uint32_t i = 0; i < f->n_insts; i++)
        if (mg_has(all.ops, i)) s->ahead[s->n_ahead++] = i;
    s->ahead_test = last;
    if (!all.ok || s->n_ahead > 2 * MOST_SLICE) s->n_ahead = 0;
}

void cpu_find_lane_accesses(struct cpu_func *f, struct cpu_serial *s, uint32_t most)
{
    bool plain = is_plain(f, s);
    s->accesses = mg_arena_array(&f->arena, struct cpu_lane_access, most);
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t i = f->blocks[b].first; mg_has(s->blocks, b) && i < f->blocks[b].end; i++) {
            const struct cpu_inst *in = &f->insts[i];
            if ((in->kind != CPU_LOAD && in->kind != CPU_STORE) || in->where != EMU_AT_GLOBAL || !in->s[0]) continue;
            struct cpu_lane_access *a = &s->accesses[s->n_accesses++];
            struct zeros z = {f, mg_arena_array(&f->arena, uint64_t, f->reg_words), 64, a};
            *a = (struct cpu_lane_access){.at = i};
            a->aligned = in->off % (int64_t)cpu_access_bytes(in) == 0 &&
                         1ull << MG_MIN(low_zeros(&z, in->s[0]), 63u) >= cpu_access_bytes(in);
            if (f->regs[in->s[0] - 1].cls != EMU_D) continue;
            a->even = moves_by(f, s, plain, in->s[0], &a->step) && a->step % (int64_t)cpu_access_bytes(in) == 0;
            if (!a->even && plain) find_leader(f, s, a);
        }
}
