/* Branches by thread numbers alone, as `threadIdx.x < 16`: which lanes part is known when the code is made.
 *
 * Of the warps of a CTA most go one way with all lanes. Where those whose lanes part all part alike, the code for some
 * lanes is told (cpu_block.part), and with it the block behind the branch (cpu_block.few): plugin/memory.c reads and
 * writes no more there than these lanes', which is less, and what was stored so comes back to loads without a wait. */
#include "device/cpu/cpu.h"

#include <string.h>

#include "device/emu/alu_form.h"

struct look {
    const struct cpu_func *f;
    uint32_t block, warp;
};

/* What a register of 32 bits holds in a lane, whatever the CTA. */
static bool number_in(const struct look *l, uint32_t reg, uint32_t lane, uint32_t *out)
{
    const struct cpu_reg *r = reg ? &l->f->regs[reg - 1] : NULL;
    if (!r || r->cls != EMU_W) return false;
    if (cpu_is_constant(r))
        *out = (uint32_t)r->value;
    else if (r->kind == CPU_REG_SREG && r->sreg == MG_SREG_tid && r->comp < 3)
        *out = cpu_tid_of(l->f, 32 * l->warp + lane, r->comp);
    else if (r->kind == CPU_REG_PLAIN && r->fixed)
        *out = (uint32_t)(r->base[r->shape.halves && lane > 15] + (uint64_t)r->step * l->warp +
                          (uint64_t)cpu_lane_offset(l->f, r->shape, lane));
    else
        return false;
    return true;
}

static bool compares(unsigned how, bool sign, uint32_t x, uint32_t y, bool *out)
{
    int64_t a = sign ? (int32_t)x : (int64_t)x, b = sign ? (int32_t)y : (int64_t)y;
    switch (how) {
    case CMP_eq:
        *out = a == b;
        return true;
    case CMP_ne:
        *out = a != b;
        return true;
    case CMP_lt:
        *out = a < b;
        return true;
    case CMP_le:
        *out = a <= b;
        return true;
    case CMP_gt:
        *out = a > b;
        return true;
    case CMP_ge:
        *out = a >= b;
        return true;
    default:
        return false;
    }
}

static bool compared_lanes(const struct look *l, const struct cpu_inst *in, uint32_t *lanes)
{
    bool word = in->t[0] == MG_TYPE_s32 || in->t[0] == MG_TYPE_u32 || in->t[0] == MG_TYPE_b32, yes;
    *lanes = 0;
    for (uint32_t i = 0; i < EMU_LANES; i++) {
        uint32_t a, b;
        if (!word || in->imm & 3 || !number_in(l, in->s[0], i, &a) || !number_in(l, in->s[1], i, &b) ||
            !compares((in->key & K_SUB) >> K_SUB_SHIFT, in->t[0] == MG_TYPE_s32, a, b, &yes))
            return false;
        *lanes |= (uint32_t)yes << i;
    }
    return true;
}

/* The one operation that defines the register, if every way to the block leads through it; false: none, or others. Of
 * CTAs of one warp: others have more branches to look at than that brings. */
static bool defined_before(const struct look *l, uint32_t reg, struct look *there, uint32_t *ix)
{
    const struct cpu_func *f = l->f;
    uint32_t n = 0, d = 0;
    if (f->region.n_warps > 1) return false;
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++)
            if (cpu_defines(f, &f->insts[i], reg)) n++, d = b, *ix = i;
    if (n != 1 || d == l->block || !mg_graph_is_behind(&f->succ, f->entry, d, l->block, NULL)) return false;
    *there = (struct look){f, d, l->warp};
    return true;
}

/* The lanes in which predicate `reg` holds in front of operation `ix` of the block. */
static bool lanes_of(const struct look *l, uint32_t reg, uint32_t ix, uint32_t *lanes)
{
    const struct cpu_func *f = l->f;
    uint32_t a = 0, b = 0, i = ix;
    if (!reg) return false;
    if (cpu_is_constant(&f->regs[reg - 1])) {
        *lanes = f->regs[reg - 1].value & 1 ? UINT32_MAX : 0;
        return true;
    }
    while (i > f->blocks[l->block].first && !cpu_defines(f, &f->insts[i - 1], reg)) i--;
    struct look there;
    if (i == f->blocks[l->block].first) {
        if (!defined_before(l, reg, &there, &i)) return false;
        l = &there;
    } else
        i--;
    const struct cpu_inst *in = &f->insts[i];
    if (in->guard || in->d != reg || in->d2) return false;
    if (in->kind == CPU_MOV) return lanes_of(l, in->s[0], i, lanes);
    if (in->kind == CPU_ALU && in->op == MG_OP_setp) return compared_lanes(l, in, lanes);
    if (in->kind == CPU_ALU && in->op == MG_OP_mov) return lanes_of(l, in->s[0], i, lanes);
    if (in->kind == CPU_NOT_P) {
        bool known = lanes_of(l, in->s[0], i, lanes);
        *lanes = ~*lanes;
        return known;
    }
    if (in->kind != CPU_ALU || in->t[0] != MG_TYPE_pred || !lanes_of(l, in->s[0], i, &a) ||
        !lanes_of(l, in->s[1], i, &b))
        return false;
    *lanes = in->op == MG_OP_xor ? a ^ b : in->op == MG_OP_and ? a & b : a | b;
    return in->op == MG_OP_xor || in->op == MG_OP_and || in->op == MG_OP_or;
}

bool cpu_branch_lanes(const struct cpu_func *f, uint32_t b, uint32_t warp, uint32_t *lanes)
{
    uint32_t ix = f->blocks[b].end - 1;
    struct look l = {f, b, warp};
    if (!lanes_of(&l, f->insts[ix].guard, ix, lanes)) return false;
    if (f->insts[ix].guard_not) *lanes = ~*lanes;
    return true;
}

/* The lanes that take the branch at the block's end, in all warps whose lanes part, from which warp to which; 0: not
 * known. */
static uint32_t parts(const struct cpu_func *f, uint32_t b, uint32_t warps[2])
{
    uint32_t ix = f->blocks[b].end - 1, all = 0, lanes = 0;
    const struct cpu_inst *in = &f->insts[ix];
    if (in->kind != CPU_CTL || in->ctl != EMU_CTL_BRA || !in->guard || in->target == in->fall) return 0;
    for (uint32_t w = 0; w < f->region.n_warps; w++) {
        if (!cpu_branch_lanes(f, b, w, &lanes)) return 0;
        if (!lanes || lanes == UINT32_MAX) continue;
        if (all && all != lanes) return 0;
        if (!all) warps[0] = w;
        warps[1] = w;
        all = lanes;
    }
    return all;
}

/* Where only such lanes come, most likely all of them do. */
static void pass_on(struct cpu_func *f, uint32_t b)
{
    struct cpu_block *to = &f->blocks[b], *from = NULL;
    MG_EACH_EDGE(&f->pred, b, e)
    {
        struct cpu_block *p = &f->blocks[f->pred.to[e]];
        if (f->pred.to[e] >= b || !p->few || (from && from->few != p->few)) return;
        from = p;
    }
    if (!from || to->few) return;
    to->few = from->few;
    memcpy(to->few_warps, from->few_warps, sizeof to->few_warps);
}

void cpu_find_splits(struct cpu_func *f)
{
    for (uint32_t b = 0; b < f->n_blocks && f->region.wanted && !f->region.tail; b++) {
        const struct cpu_inst *in = &f->insts[f->blocks[b].end - 1];
        uint32_t warps[2] = {0, 0}, lanes = parts(f, b, warps), to[2] = {in->target, in->fall};
        f->blocks[b].part = lanes;
        for (int k = 0; k < 2 && lanes; k++) {
            struct cpu_block *t = &f->blocks[to[k]];
            if (mg_graph_degree(&f->pred, to[k]) != 1) continue;
            t->few = k ? ~lanes : lanes;
            t->few_warps[0] = warps[0];
            t->few_warps[1] = warps[1];
        }
    }
    for (uint32_t b = 0; b < f->n_blocks; b++) pass_on(f, b);
}
