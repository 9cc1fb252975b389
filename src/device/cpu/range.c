/* What integer registers may hold, from the block's shape: between which bounds. Of use is what comes out as one value,
 * which makes the register known (cpu_reg.known): where threads take the elements of a row in steps of the block, the
 * number of their rounds, and whether there are any left over, is the same in all of them, but compilers work it out
 * from each thread's number.
 *
 * Bounds of a register hold wherever it is read, but for those of what its block wrote last. W: 32 bits as signed; D:
 * 64 bits; P: 0 or 1. Arithmetic that may wrap gives anything. */
#include "device/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "device/emu/alu_form.h"

struct span {
    int64_t lo, hi;
};
#define MOST_CHANGES 3 /* of a register's bounds; loops would widen them for ever */

struct ranges {
    struct cpu_func *f;
    struct span *all, *here; /* by register: wherever, and at this place of the block */
    bool *set, *local;       /* is `all` something; is `here` */
    uint8_t *changes;
    const struct cpu_inst *in;
    bool grew;
};

static struct span full(const struct cpu_reg *r)
{
    if (r->cls == EMU_P) return (struct span){0, 1};
    return r->cls == EMU_W ? (struct span){INT32_MIN, INT32_MAX} : (struct span){INT64_MIN, INT64_MAX};
}

static struct span special(const struct cpu_func *f, const struct cpu_reg *r)
{
    int64_t dim = r->comp < 3 ? f->dims[r->comp] : 1;
    switch (r->sreg) {
    case MG_SREG_tid:
        return dim ? (struct span){0, dim - 1} : (struct span){0, INT32_MAX};
    case MG_SREG_ntid:
        return dim ? (struct span){dim, dim} : (struct span){1, INT32_MAX};
    case MG_SREG_laneid:
        return (struct span){0, 31};
    case MG_SREG_WARP_SZ:
        return (struct span){32, 32};
    case MG_SREG_ctaid:
        return (struct span){0, INT32_MAX};
    default:
        return full(r);
    }
}

/* False: nothing seen so far. */
static bool get(const struct ranges *z, uint32_t reg, struct span *out)
{
    const struct cpu_reg *r = &z->f->regs[reg - 1];
    if (r->kind == CPU_REG_CONST) {
        int64_t v = r->cls == EMU_D ? (int64_t)r->value : r->cls == EMU_P ? (int64_t)(r->value & 1) : (int32_t)r->value;
        *out = (struct span){v, v};
        return true;
    }
    if (r->kind == CPU_REG_SREG) {
        *out = special(z->f, r);
        return true;
    }
    *out = z->local[reg - 1] ? z->here[reg - 1] : z->all[reg - 1];
    return z->local[reg - 1] || z->set[reg - 1];
}

static bool is_point(struct span a)
{
    return a.lo == a.hi;
}

/* Of the operation's type: bounds as signed numbers say the same where the sign is not set. */
static bool reads_as_signed(unsigned t, struct span a, struct span b)
{
    return mg_type_kind((enum mg_type)t) == MG_TK_SINT || (a.lo >= 0 && b.lo >= 0);
}

static bool product(struct span a, struct span b, struct span *out)
{
    int64_t p[4];
    if (__builtin_mul_overflow(a.lo, b.lo, &p[0]) || __builtin_mul_overflow(a.lo, b.hi, &p[1]) ||
        __builtin_mul_overflow(a.hi, b.lo, &p[2]) || __builtin_mul_overflow(a.hi, b.hi, &p[3]))
        return false;
    *out = (struct span){p[0], p[0]};
    for (int k = 1; k < 4; k++) out->lo = MG_MIN(out->lo, p[k]), out->hi = MG_MAX(out->hi, p[k]);
    return true;
}

static bool sum(struct span a, struct span b, struct span *out)
{
    return !__builtin_add_overflow(a.lo, b.lo, &out->lo) && !__builtin_add_overflow(a.hi, b.hi, &out->hi);
}

static bool shifted(const struct cpu_inst *in, struct span a, struct span b, struct span *out)
{
    int64_t bits = mg_type_bits((enum mg_type)in->t[0]);
    if (!is_point(b) || b.lo < 0 || b.lo >= bits) return false;
    if (in->op == MG_OP_shl) return b.lo < 62 && product(a, (struct span){1ll << b.lo, 1ll << b.lo}, out);
    *out = (struct span){a.lo >> b.lo, a.hi >> b.lo};
    return reads_as_signed(in->t[0], a, a);
}

/* 0 and 1: never, always. */
static struct span compared(const struct cpu_inst *in, struct span a, struct span b)
{
    struct span never = {0, 0}, always = {1, 1}, either = {0, 1};
    if (in->imm & 3) return either;
    switch ((in->key & K_SUB) >> K_SUB_SHIFT) {
    case CMP_eq:
        return a.hi < b.lo || b.hi < a.lo ? never : is_point(a) && is_point(b) ? always : either;
    case CMP_ne:
        return a.hi < b.lo || b.hi < a.lo ? always : is_point(a) && is_point(b) ? never : either;
    case CMP_lt:
        return a.hi < b.lo ? always : a.lo >= b.hi ? never : either;
    case CMP_le:
        return a.hi <= b.lo ? always : a.lo > b.hi ? never : either;
    case CMP_gt:
        return a.lo > b.hi ? always : a.hi <= b.lo ? never : either;
    case CMP_ge:
        return a.lo >= b.hi ? always : a.hi < b.lo ? never : either;
    default:
        return either;
    }
}

/* False: anything. */
static bool alu(const struct cpu_inst *in, const struct span *s, struct span *out)
{
    unsigned t = in->t[0];
    if (in->op == MG_OP_mov) {
        *out = s[0];
        return true;
    }
    bool whole = cpu_is_integer(t) && mg_type_bits((enum mg_type)t) >= 32;
    if (!whole) return false;
    switch (in->op) {
    case MG_OP_add:
        return sum(s[0], s[1], out);
    case MG_OP_sub:
        return s[1].lo > INT64_MIN && sum(s[0], (struct span){-s[1].hi, -s[1].lo}, out);
    case MG_OP_mul:
    case MG_OP_mad:
        if (in->key != K_LO && (in->key != K_WIDE || !reads_as_signed(t, s[0], s[1]))) return false;
        return product(s[0], s[1], out) && (in->op == MG_OP_mul || sum(*out, s[2], out));
    case MG_OP_min:
        *out = (struct span){MG_MIN(s[0].lo, s[1].lo), MG_MIN(s[0].hi, s[1].hi)};
        return reads_as_signed(t, s[0], s[1]);
    case MG_OP_max:
        *out = (struct span){MG_MAX(s[0].lo, s[1].lo), MG_MAX(s[0].hi, s[1].hi)};
        return reads_as_signed(t, s[0], s[1]);
    case MG_OP_shl:
    case MG_OP_shr:
        return shifted(in, s[0], s[1], out);
    case MG_OP_and:
        if (is_point(s[0]) && is_point(s[1])) {
            *out = (struct span){s[0].lo & s[1].lo, s[0].lo & s[1].lo};
            return true;
        }
        *out = (struct span){0, MG_MIN(s[0].lo < 0 ? INT64_MAX : s[0].hi, s[1].lo < 0 ? INT64_MAX : s[1].hi)};
        return s[0].lo >= 0 || s[1].lo >= 0;
    case MG_OP_setp:
        *out = reads_as_signed(t, s[0], s[1]) ? compared(in, s[0], s[1]) : (struct span){0, 1};
        return true;
    case MG_OP_selp:
        *out =
            is_point(s[2]) ? s[2].lo ? s[0] : s[1] : (struct span){MG_MIN(s[0].lo, s[1].lo), MG_MAX(s[0].hi, s[1].hi)};
        return true;
    case MG_OP_cvt: /* to t[0] from t[1] */
        *out = s[0];
        return !(in->key & K_SAT) && cpu_is_integer(in->t[1]) && mg_type_bits((enum mg_type)in->t[1]) >= 32 &&
               reads_as_signed(in->t[1], s[0], s[0]);
    default:
        return false;
    }
}

/* False: nothing is known of its operands so far. */
static bool result(const struct ranges *z, const struct cpu_inst *in, uint32_t reg, struct span *out)
{
    struct span s[3] = {{0, 0}, {0, 0}, {0, 0}}, any = full(&z->f->regs[reg]);
    bool said = false;
    *out = any;
    if (in->kind != CPU_ALU && in->kind != CPU_MOV && in->kind != CPU_NOT_P && in->kind != CPU_LOW &&
        in->kind != CPU_ZEXT && in->kind != CPU_SEXT)
        return true;
    for (int k = 0; k < 3; k++)
        if (in->s[k] && !get(z, in->s[k], &s[k])) return false;
    if (in->kind == CPU_ALU)
        said = alu(in, s, out);
    else if (in->kind == CPU_NOT_P)
        *out = (struct span){1 - s[0].hi, 1 - s[0].lo}, said = true;
    else
        *out = s[0], said = in->kind != CPU_ZEXT || s[0].lo >= 0;
    if (said && in->d2 == reg + 1) *out = (struct span){1 - out->hi, 1 - out->lo}; /* setp's other one */
    if (!said || out->lo < any.lo || out->hi > any.hi) *out = any;
    return true;
}

static void write_span(void *user, uint32_t r, bool must)
{
    struct ranges *z = user;
    const struct cpu_reg *reg = &z->f->regs[r];
    struct span now;
    if (reg->kind != CPU_REG_PLAIN || reg->cls == EMU_Q || !result(z, z->in, r, &now)) return;
    if (!must) now = full(reg);
    z->here[r] = now;
    z->local[r] = true;
    if (z->set[r]) now = (struct span){MG_MIN(now.lo, z->all[r].lo), MG_MAX(now.hi, z->all[r].hi)};
    if (z->set[r] && now.lo == z->all[r].lo && now.hi == z->all[r].hi) return;
    z->all[r] = z->set[r] && ++z->changes[r] > MOST_CHANGES ? full(reg) : now;
    z->set[r] = z->grew = true;
}

static void publish(const struct ranges *z)
{
    for (uint32_t r = 0; r < z->f->n_regs; r++) {
        struct cpu_reg *reg = &z->f->regs[r];
        if (reg->kind != CPU_REG_PLAIN || reg->cls == EMU_Q || !z->set[r] || !is_point(z->all[r])) continue;
        reg->known = 1;
        reg->value = reg->cls == EMU_D ? (uint64_t)z->all[r].lo : (uint32_t)z->all[r].lo;
    }
}

/* What is live at the entry may be anything; so a register that some way leads to unwritten is not known. */
void cpu_find_ranges(struct cpu_func *f)
{
    struct ranges z = {.f = f,
                       .all = mg_xcalloc(f->n_regs + 1, sizeof *z.all),
                       .here = mg_xcalloc(f->n_regs + 1, sizeof *z.here),
                       .set = mg_xcalloc(f->n_regs + 1, sizeof *z.set),
                       .local = mg_xcalloc(f->n_regs + 1, sizeof *z.local),
                       .changes = mg_xcalloc(f->n_regs + 1, sizeof *z.changes)};
    cpu_find_live(f);
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (mg_has(f->blocks[f->entry].live, r)) z.all[r] = full(&f->regs[r]), z.set[r] = true;
    do {
        z.grew = false;
        for (uint32_t b = 0; b < f->n_blocks; b++) {
            memset(z.local, 0, f->n_regs * sizeof *z.local);
            for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
                z.in = &f->insts[i];
                cpu_each_def(f, z.in, write_span, &z);
            }
        }
    } while (z.grew);
    publish(&z);
    free(z.all);
    free(z.here);
    free(z.set);
    free(z.local);
    free(z.changes);
}
