/* How registers move from one CTA to the next in x, and from one warp to the next: what is computed from parameters,
 * constants, thread numbers and `ctaid` by sums and products with constants grows by the same each time. Checks in
 * whole-CTA code then hold for many CTAs at once (plugin/walk.c). Only of registers that one operation writes, in front
 * of all that read them: who comes to that has the value, whatever others do (region.c says what all warps have). */
#include "device/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "device/emu/alu_form.h"

struct motion {
    struct mg_affine of[2]; /* from CTA to CTA, from warp to warp */
    uint32_t widened;       /* cpu_reg.widened */
    bool fixed;             /* in warp 0 of every CTA it is base, in lanes 0 and 16 */
    uint64_t base[2];
};
struct find {
    struct cpu_func *f;
    struct motion *m; /* by register */
    uint32_t *defs;   /* how many operations write it */
    uint32_t ix;
    bool changed;
};

static const struct motion any = {.of = {{MG_AFFINE_VARIES, 0}, {MG_AFFINE_VARIES, 0}}};

static struct motion steps(struct mg_affine cta, struct mg_affine warp)
{
    bool both = cta.is == MG_AFFINE_STEP && warp.is == MG_AFFINE_STEP;
    return both ? (struct motion){.of = {cta, warp}} : any;
}
static bool is_known(struct motion m)
{
    return m.of[0].is == MG_AFFINE_STEP;
}
static bool moves(struct motion m)
{
    return m.of[0].step || m.of[1].step;
}

static struct motion get(const struct find *z, uint32_t reg)
{
    const struct cpu_reg *r = reg ? &z->f->regs[reg - 1] : NULL;
    struct motion m = steps(mg_affine_step(0), mg_affine_step(0));
    m.fixed = true;
    if (!r) return m;
    if (cpu_is_constant(r)) {
        m.base[0] = m.base[1] = r->value;
        return m;
    }
    if (r->kind == CPU_REG_PLAIN) return z->m[reg - 1];
    bool fixed;
    uint64_t base[2];
    m = steps(mg_affine_step(r->sreg == MG_SREG_ctaid && r->comp == 0), cpu_special(z->f, r, &fixed, base));
    m.fixed = fixed;
    memcpy(m.base, base, sizeof base);
    return m;
}

/* Is it a word, of a register that may wrap from one CTA to another, that the operation extends? */
static bool extends(const struct find *z, const struct cpu_inst *in)
{
    const struct cpu_reg *r = in->s[0] ? &z->f->regs[in->s[0] - 1] : NULL;
    bool wide = in->kind == CPU_ALU && (in->op == MG_OP_mul || in->op == MG_OP_mad) && in->key == K_WIDE;
    bool cvt = in->kind == CPU_ALU && in->op == MG_OP_cvt;
    if (!wide && !cvt && in->kind != CPU_SEXT && in->kind != CPU_ZEXT) return false;
    return r && r->kind == CPU_REG_PLAIN && moves(get(z, in->s[0]));
}

static bool is_plain(const struct cpu_inst *in)
{
    switch ((enum cpu_kind)in->kind) {
    case CPU_MOV:
    case CPU_LOW:
    case CPU_ZEXT:
    case CPU_SEXT:
    case CPU_CVTA:
        return true;
    case CPU_ALU:
        return !(in->key & K_SAT) && !(in->op == MG_OP_cvt && (mg_type_bits((enum mg_type)in->t[0]) != 64 ||
                                                               mg_type_bits((enum mg_type)in->t[1]) != 32));
    default:
        return false;
    }
}

static struct motion result_of(const struct find *z, const struct cpu_inst *in)
{
    struct motion to = {0}, s[3];
    struct mg_affine by[2];
    uint64_t base[3][2];
    bool fixed = true;
    bool product = in->kind == CPU_ALU && in->key == K_WIDE;
    if (in->kind == CPU_PARAM && !in->guard) return steps(mg_affine_step(0), mg_affine_step(0));
    if (in->guard || !is_plain(in) || in->s[3]) return any;
    for (int k = 0; k < 3; k++) {
        s[k] = get(z, in->s[k]);
        if (!is_known(s[k])) return s[k];
        if (to.widened && s[k].widened && to.widened != s[k].widened) return any;
        to.widened |= s[k].widened;
        fixed &= s[k].fixed;
        memcpy(base[k], s[k].base, sizeof base[k]);
    }
    for (int i = 0; i < 2; i++) {
        struct mg_affine of[3] = {s[0].of[i], s[1].of[i], s[2].of[i]};
        by[i] = in->kind == CPU_ALU ? cpu_affine_of(z->f, in, of) : of[0];
    }
    struct motion got = steps(by[0], by[1]);
    if (!is_known(got) || (product && moves(s[1]))) return any; /* compilers put constants there */
    got.widened = to.widened;
    got.fixed = fixed && in->d && z->f->regs[in->d - 1].cls != EMU_P && cpu_evaluate(z->f, in, base, got.base);
    if (!extends(z, in)) return got;
    if (got.widened) return any;
    got.widened = z->ix + 1;
    return got;
}

static void count_def(void *user, uint32_t r, bool must)
{
    struct find *z = user;
    (void)must;
    z->defs[r]++;
}

static void visit_def(void *user, uint32_t r, bool must)
{
    struct find *z = user;
    (void)must;
    if (z->m[r].of[0].is != MG_AFFINE_NONE) return;
    z->m[r] = result_of(z, &z->f->insts[z->ix]);
    z->changed |= z->m[r].of[0].is != MG_AFFINE_NONE;
}

void cpu_find_walks(struct cpu_func *f)
{
    struct find z = {
        .f = f, .m = mg_xcalloc(f->n_regs + 1, sizeof *z.m), .defs = mg_xcalloc(f->n_regs + 1, sizeof *z.defs)};
    for (uint32_t i = 0; i < f->n_insts; i++) cpu_each_def(f, &f->insts[i], count_def, &z);
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (z.defs[r] != 1 || mg_has(f->blocks[f->entry].live, r)) z.m[r] = any;
    do {
        z.changed = false;
        for (z.ix = 0; z.ix < f->n_insts; z.ix++) cpu_each_def(f, &f->insts[z.ix], visit_def, &z);
    } while (z.changed);
    for (uint32_t r = 0; r < f->n_regs; r++) {
        struct cpu_reg *to = &f->regs[r];
        to->walks = to->kind == CPU_REG_PLAIN && is_known(z.m[r]);
        for (int i = 0; i < 2; i++) to->walk[i] = z.m[r].of[i].step;
        to->widened = z.m[r].widened;
        if (!to->walks || to->fixed || !z.m[r].fixed || to->widened || to->shape.varying || to->walk[0]) continue;
        to->fixed = true; /* whichever warps write it */
        to->step = to->walk[1];
        memcpy(to->base, z.m[r].base, sizeof to->base);
    }
    free(z.m);
    free(z.defs);
}
