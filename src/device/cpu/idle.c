/* Warps with nothing to do in a region of whole-CTA code, as most in the last rounds of
 *
 *     for (d = blockDim.x / 2; d; d /= 2) { if (threadIdx.x < d) ...; __syncthreads(); }
 *
 * Found is a branch that all warps come to, in front of which nothing but registers is written, and behind which, on
 * one side, nothing either up to the stop. If a warp goes there with all its lanes, and so do all behind it, the code
 * made for the branch leaves these out (cpu_start.idle). That the others follow is known of comparisons of a thread's
 * number, which grows from warp to warp, with what is equal in all; or every warp's lanes are known (split.c). */
#include "device/cpu/cpu.h"

#include <stdlib.h>

#include "device/emu/alu_form.h"

struct find {
    struct cpu_func *f;
    struct cpu_start *s;
    uint32_t which; /* the start's number */
    bool quiet;     /* of the operation that is looked at */
    bool ends;      /* all that run come to the kernel's end */
    uint32_t next;  /* else the block behind the stop */
};

/* A register that the CTA has is what warp 0 makes it, whoever else does. */
static void look_at_write(void *user, uint32_t r, bool must)
{
    struct find *z = user;
    (void)must;
    if (z->ends) return;
    z->quiet &= z->f->regs[r].cta || (!mg_has(z->f->blocks[z->next].live, r) && !mg_has(z->f->blocks[z->next].keep, r));
}

bool cpu_only_computes(const struct cpu_inst *in)
{
    switch ((enum cpu_kind)in->kind) {
    case CPU_CALL:
    case CPU_CTL:
    case CPU_LOAD:
    case CPU_TEXEL:
    case CPU_STORE:
    case CPU_ATOM:
    case CPU_FENCE:
    case CPU_ACTIVEMASK:
    case CPU_CLOCK:
    case CPU_REQUEST:
    case CPU_CARRIED:
        return false;
    default:
        return true;
    }
}

/* Does the operation write registers alone, none that counts behind the stop unless it is the CTA's? */
static bool is_quiet(struct find *z, uint32_t at)
{
    const struct cpu_inst *in = &z->f->insts[at];
    if (!cpu_only_computes(in)) return false;
    if (in->kind == CPU_COUNT) return cpu_site_always(z->f, z->which, &z->f->tally.sites[z->f->tally.site_at[at] - 1]);
    z->quiet = true;
    cpu_each_def(z->f, in, look_at_write, z);
    return z->quiet;
}

static bool all_quiet(struct find *z, uint32_t b)
{
    uint32_t end = z->f->blocks[b].end - 1;
    for (uint32_t i = z->f->blocks[b].first; i < end; i++)
        if (!is_quiet(z, i)) return false;
    return z->f->insts[end].kind == CPU_CTL || is_quiet(z, end);
}

/* Is it the same in all warps of the CTA? */
static bool is_equal(const struct cpu_reg *r)
{
    bool special = r->kind == CPU_REG_SREG && r->sreg != MG_SREG_tid && r->sreg != MG_SREG_warpid;
    return cpu_is_constant(r) || (cpu_is_uniform(r->shape) && (special || (r->cta && !r->step)));
}

/* From block b all lanes go on to the stop, or to the end, without a branch. */
static bool goes_quietly(struct find *z, uint32_t b)
{
    const struct cpu_func *f = z->f;
    for (;;) {
        const struct cpu_inst *in = &f->insts[f->blocks[b].end - 1];
        uint32_t stop = cpu_stop_of(f, b), to = b + 1;
        if (!all_quiet(z, b)) return false;
        if (stop) return !z->ends && stop == CPU_STOP(z->next, 1);
        if (in->kind == CPU_CTL && in->guard) return false;
        if (in->kind == CPU_CTL && (in->ctl == EMU_CTL_EXIT || in->ctl == EMU_CTL_RET)) return z->ends;
        if (in->kind == CPU_CTL && in->ctl != EMU_CTL_NEXT && in->ctl != EMU_CTL_BRA) return false;
        if (in->kind == CPU_CTL) to = in->target;
        if (to <= b) return false;
        b = to;
    }
}

/* Constants that the region's start knows and the next one's does not are kept by each warp. */
static bool keeps_constants(const struct find *z)
{
    const struct cpu_func *f = z->f;
    const struct cpu_start *to = &f->region.starts[f->region.start_of[z->next] - 1];
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (mg_has(f->blocks[z->next].live, r) && mg_has(z->s->constant, r) && !mg_has(to->constant, r)) return true;
    return false;
}

/* Every warp's lanes are known: is each whose lanes all take the branch (or, side 1, all do not) followed by such? */
static bool known_to_follow(const struct find *z, uint32_t b, int side)
{
    bool seen = false;
    for (uint32_t w = 0; w < z->f->region.n_warps; w++) {
        uint32_t lanes;
        if (!cpu_branch_lanes(z->f, b, w, &lanes)) return false;
        if (side) lanes = ~lanes;
        if (seen && lanes != UINT32_MAX) return false;
        seen |= lanes == UINT32_MAX;
    }
    return seen;
}

/* Does the register grow over all threads, from 0 or more, none of them 2^31? */
static bool grows(const struct cpu_func *f, const struct cpu_reg *r)
{
    int64_t least, most;
    if (r->kind != CPU_REG_PLAIN || r->cls != EMU_W || !r->fixed || r->shape.varying || r->shape.halves) return false;
    cpu_lane_span(f, r->shape, UINT32_MAX, &least, &most);
    int64_t first = (int64_t)(uint32_t)r->base[0] + least,
            last = (int64_t)(uint32_t)r->base[0] + most + r->step * (f->region.n_warps - 1);
    return r->step > 0 && least >= 0 && first >= 0 && last <= INT32_MAX;
}

/* A comparison of such a one with what is equal in all threads: where all lanes say no (side 1) or yes, do they in the
 * warps behind this one? */
static bool compared_to_follow(const struct find *z, uint32_t b, int side)
{
    const struct cpu_func *f = z->f;
    uint32_t end = f->blocks[b].end - 1, i = end;
    const struct cpu_inst *br = &f->insts[end], *in;
    while (i > f->blocks[b].first && !cpu_defines(f, &f->insts[i - 1], br->guard)) i--;
    if (i == f->blocks[b].first) return false;
    in = &f->insts[i - 1];
    if (in->kind != CPU_ALU || in->op != MG_OP_setp || in->d != br->guard || in->d2 || in->guard || in->imm & 3 ||
        (in->t[0] != MG_TYPE_s32 && in->t[0] != MG_TYPE_u32) || !in->s[0] || !in->s[1])
        return false;
    if (!grows(f, &f->regs[in->s[0] - 1]) || !is_equal(&f->regs[in->s[1] - 1])) return false;
    unsigned how = (in->key & K_SUB) >> K_SUB_SHIFT;
    bool no = side != br->guard_not; /* the comparison fails in all lanes */
    return no ? how == CMP_lt || how == CMP_le : how == CMP_gt || how == CMP_ge;
}

static void look_at_branch(struct find *z, uint32_t b)
{
    const struct cpu_inst *in = &z->f->insts[z->f->blocks[b].end - 1];
    for (int side = 0; side < 2; side++) {
        uint32_t to = side ? in->fall : in->target;
        if (to > b && goes_quietly(z, to) && (known_to_follow(z, b, side) || compared_to_follow(z, b, side)))
            mg_put(z->s->idle[side], b);
    }
}

/* In the order of blocks: all warps come to b, and have written nothing, where they do so to all in front of it. */
static void look_at_region(struct find *z)
{
    const struct cpu_func *f = z->f;
    bool *calm = mg_xcalloc(f->n_blocks, sizeof *calm), *reached = mg_xcalloc(f->n_blocks, sizeof *reached);
    for (uint32_t b = 0; b < f->n_blocks; b++) { /* calm: so far nobody comes from elsewhere */
        calm[b] = mg_has(z->s->reach, b);
        reached[b] = b == z->s->block;
    }
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        const struct cpu_inst *in = &f->insts[f->blocks[b].end - 1];
        if (!mg_has(z->s->reach, b)) continue;
        bool quiet = calm[b] && reached[b] && all_quiet(z, b), branch = in->kind == CPU_CTL && in->ctl == EMU_CTL_BRA,
             equal = !(in->kind == CPU_CTL && in->guard) || (branch && is_equal(&f->regs[in->guard - 1]));
        if (quiet && branch && !equal && in->guard) look_at_branch(z, b);
        MG_EACH_EDGE(&f->within, b, e)
        {
            uint32_t to = f->within.to[e];
            if (to <= b || !quiet || !equal)
                calm[to] = false;
            else
                reached[to] = true;
        }
    }
    free(calm);
    free(reached);
}

void cpu_find_idle(struct cpu_func *f)
{
    if (!f->region.wanted) return;
    for (uint32_t i = 0; i < f->region.n_starts; i++) {
        struct cpu_start *s = &f->region.starts[i];
        struct find z = {.f = f, .s = s, .which = i, .ends = !s->n_stops, .next = s->stop / 2 - 1};
        for (int side = 0; side < 2; side++) s->idle[side] = mg_arena_array(&f->arena, uint64_t, f->block_words);
        if (f->region.n_warps < 2 || f->region.tail || f->region.lossy || f->region.paused[s->block] || s->n_stops > 1)
            continue;
        if (!z.ends && ((!i && f->region.loops) || !(s->stop & 1) || f->region.paused[z.next] || keeps_constants(&z)))
            continue;
        look_at_region(&z);
    }
}
