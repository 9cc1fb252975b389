/* What an instruction reads and writes; shared by the analyses and the plugin. */
#include "device/cpu/cpu.h"
#include "base/search.h"
#include "device/emu/alu_form.h"

bool cpu_counts_warps(const struct cpu_inst *in)
{
    bool warps = false;
    for (uint32_t k = 0; k < in->n_counts; k++) warps |= in->counts[k].warps;
    return warps;
}

bool cpu_is_move(const struct cpu_inst *in)
{
    return in->kind == CPU_MOV || (in->kind == CPU_ALU && in->op == MG_OP_mov);
}

bool cpu_is_canonical(const struct cpu_inst *in)
{
    return in->kind == CPU_ALU && in->t[0] == MG_TYPE_f32 && in->op != MG_OP_div &&
           (in->key & (K_APPROX | K_SAT)) == K_APPROX;
}

uint32_t cpu_reg_at(const struct cpu_func *f, uint32_t off)
{
    uint32_t k;
    if (!off) return 0;
    MG_FIND_FIRST(k, f->n_regs, f->regs[k].off < off);
    return k < f->n_regs && f->regs[k].off == off ? k + 1 : 0;
}

void cpu_each_use(const struct cpu_func *f, const struct cpu_inst *in, void (*fn)(void *, uint32_t), void *user)
{
    if (in->guard) fn(user, in->guard - 1);
    for (int k = 0; k < 4; k++)
        if (in->s[k]) fn(user, in->s[k] - 1);
    for (int k = 0; k < 3; k++)
        if (in->was[k]) fn(user, in->was[k] - 1);
    switch ((enum cpu_kind)in->kind) {
    case CPU_CALL:
    case CPU_STORE:
    case CPU_CTL:
    case CPU_PURE:
        for (uint32_t k = 0; k < in->n_list; k++)
            if (in->list[k]) fn(user, in->list[k] - 1);
        break;
    default:
        break;
    }
    if (in->kind == CPU_CTL && in->ctl == EMU_CTL_RET && !f->is_kernel) /* results */
        for (uint32_t k = 0; k < f->fn->n_rets; k++)
            if (f->fn->rets[k].from_reg) {
                uint32_t r = cpu_reg_at(f, f->fn->rets[k].from);
                if (r) fn(user, r - 1);
            }
}

void cpu_each_def(const struct cpu_func *f, const struct cpu_inst *in, void (*fn)(void *, uint32_t, bool), void *user)
{
    (void)f;
    bool must = !in->guard;
    switch ((enum cpu_kind)in->kind) {
    case CPU_CALL:
    case CPU_CTL:
        if (in->known) {
            if (in->d) fn(user, in->d - 1, must);
            if (in->d2) fn(user, in->d2 - 1, must);
            break;
        }
        for (uint32_t k = 0; k < in->n_list; k++)
            if (in->list[k]) fn(user, in->list[k] - 1, false);
        break;
    case CPU_LOAD:
    case CPU_PARAM:
    case CPU_TEXEL:
        for (uint32_t k = 0; k < in->n_list; k++)
            if (in->list[k]) fn(user, in->list[k] - 1, must);
        break;
    default:
        if (in->d) fn(user, in->d - 1, must);
        if (in->d2) fn(user, in->d2 - 1, must);
        break;
    }
}

bool cpu_uniform_guard(const struct cpu_func *f, const struct cpu_inst *in)
{
    return !in->guard || cpu_is_uniform(f->regs[in->guard - 1].shape);
}

/* Is there code for one lane? Not for strong loads: a call that marks the warp as one that may wait comes before each
 * (emu/decode_mem.c). */
bool cpu_has_lane_code(const struct cpu_inst *in)
{
    bool real = in->t[0] == MG_TYPE_f32 || in->t[0] == MG_TYPE_f64;
    switch ((enum cpu_kind)in->kind) {
    case CPU_ALU:
        return !real || in->op == MG_OP_setp || in->op == MG_OP_cvt || !(in->imm || in->key & K_APPROX);
    case CPU_LOAD:
    case CPU_STORE:
        return (in->where == EMU_AT_GLOBAL || in->where == EMU_AT_SHARED) && !(in->vec & (in->vec - 1));
    case CPU_NOP:
    case CPU_MOV:
    case CPU_NOT_P:
    case CPU_LOW:
    case CPU_ZEXT:
    case CPU_SEXT:
    case CPU_SEXT8:
    case CPU_SEXT16:
    case CPU_SEXT8H:
    case CPU_PACK:
    case CPU_UNPACK:
    case CPU_PARAM:
    case CPU_CVTA:
    case CPU_PURE:
        return true;
    case CPU_COUNT:
        return !in->s[0] && !(in->guard && cpu_counts_warps(in));
    case CPU_CTL:
        return in->ctl == EMU_CTL_NEXT || in->ctl == EMU_CTL_LOOP || (in->ctl == EMU_CTL_BRA && !in->sub);
    default:
        return false;
    }
}

struct defined {
    uint32_t reg;
    bool yes;
};
static void is_defined(void *user, uint32_t r, bool must)
{
    struct defined *d = user;
    (void)must;
    d->yes |= r + 1 == d->reg;
}

bool cpu_defines(const struct cpu_func *f, const struct cpu_inst *in, uint32_t reg)
{
    struct defined d = {.reg = reg};
    cpu_each_def(f, in, is_defined, &d);
    return d.yes;
}

bool cpu_constant_of(const struct cpu_func *f, uint32_t reg, int64_t *out)
{
    const struct cpu_reg *r = reg ? &f->regs[reg - 1] : NULL;
    if (r && r->kind == CPU_REG_SREG && r->sreg == MG_SREG_ntid && r->comp < 3 && f->dims[r->comp]) {
        *out = f->dims[r->comp];
        return true;
    }
    if (!r || !cpu_is_constant(r)) return false;
    *out = r->cls == EMU_D ? (int64_t)r->value : (int32_t)r->value;
    return true;
}

bool cpu_in_rows(const struct cpu_func *f, const struct cpu_inst *in)
{
    const struct cpu_reg *r = in->s[0] ? &f->regs[in->s[0] - 1] : NULL;
    if (!r || !r->shape.varying || !r->row || in->vec > 1 || (in->bytes != 4 && in->bytes != 8)) return false;
    return f->isa >= EMU_ISA_AVX2 && (r->row_step == in->bytes || (!r->row_step && in->kind == CPU_LOAD));
}

bool cpu_is_placed(const struct cpu_func *f, const struct cpu_inst *in)
{
    return !f->regs[in->s[0] - 1].shape.varying;
}

bool cpu_plain_barrier(const struct cpu_func *f, const struct cpu_inst *in)
{
    const struct cpu_reg *number = in->s[0] ? &f->regs[in->s[0] - 1] : NULL;
    return !in->guard && in->sub == EMU_BAR_SYNC && !in->s[1] && number && number->kind == CPU_REG_CONST &&
           !number->value;
}

uint32_t cpu_stop_of(const struct cpu_func *f, uint32_t b)
{
    const struct cpu_inst *in = &f->insts[f->blocks[b].end - 1];
    if (in->kind != CPU_CTL || f->serial_of[b]) return 0;
    if (in->ctl == EMU_CTL_BAR) return CPU_STOP(in->fall, 1);
    return in->ctl == EMU_CTL_LOOP && f->region.n_warps > 1 ? CPU_STOP(in->target, 0) : 0;
}
