/* --check: one lane of an instruction with undefined sources (defined.h). Exact bit by bit where a bit of
 * the result depends on few bits of the sources; else all bits of the results are undefined. */
#include "device/emu/defined.h"

struct lane {
    const struct emu_def *d;
    struct emu_frame *f;
    uint32_t lane, origin;
};

static uint64_t und(struct lane *x, uint32_t i)
{
    return emu_defined_get(x->f, &x->d->src[i], x->lane, &x->origin);
}
static uint64_t val(const struct lane *x, uint32_t i)
{
    return emu_defined_value(x->f, &x->d->src[i], x->lane);
}
static uint64_t cut(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
}

static uint64_t lop3(uint32_t table, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t r = 0;
    for (unsigned k = 0; k < 8; k++)
        if (table >> k & 1) r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return r;
}

/* A bit of the result is undefined when some choice of the undefined bits changes it. */
static uint64_t logic(struct lane *x, uint32_t table)
{
    uint64_t a = val(x, 0), b = val(x, 1), c = x->d->n_src > 2 ? val(x, 2) : 0;
    uint64_t ua = und(x, 0), ub = und(x, 1), uc = x->d->n_src > 2 ? und(x, 2) : 0, r = lop3(table, a, b, c), bad = 0;
    for (unsigned k = 1; k < 8; k++) bad |= r ^ lop3(table, k & 4 ? a ^ ua : a, k & 2 ? b ^ ub : b, k & 1 ? c ^ uc : c);
    return bad;
}

static uint64_t shift(struct lane *x)
{
    uint64_t v = und(x, 0), by = val(x, 1) & UINT32_MAX;
    unsigned bits = mg_type_bits((enum mg_type)x->d->type);
    bool sign = mg_type_kind((enum mg_type)x->d->type) == MG_TK_SINT;
    if (und(x, 1) & UINT32_MAX) return UINT64_MAX;
    v &= cut(bits);
    if (x->d->exact == EMU_EX_SHL) return by >= bits ? 0 : v << by & cut(bits);
    if (!sign) return by >= bits ? 0 : v >> by;
    if (by >= bits) by = bits - 1;
    return (uint64_t)((int64_t)(v << (64 - bits)) >> by >> (64 - bits)) & cut(bits);
}

/* shf.{l,r}.{clamp,wrap}.b32: imm bit 0: left, bit 1: wrap */
static uint64_t funnel(struct lane *x)
{
    uint64_t both = (und(x, 1) & UINT32_MAX) << 32 | (und(x, 0) & UINT32_MAX), by = val(x, 2) & UINT32_MAX;
    if (und(x, 2) & UINT32_MAX) return UINT32_MAX;
    by = x->d->imm & 2 ? by & 31 : MG_MIN(by, 32);
    return x->d->imm & 1 ? both << by >> 32 : both >> by & UINT32_MAX;
}

static uint64_t permute(struct lane *x)
{
    uint64_t both = (und(x, 1) & UINT32_MAX) << 32 | (und(x, 0) & UINT32_MAX), sel = val(x, 2), r = 0;
    if (und(x, 2) & 0xffff) return UINT32_MAX;
    for (unsigned k = 0; k < 4; k++) {
        unsigned s = sel >> 4 * k & 15;
        uint64_t b = both >> 8 * (s & 7) & 0xff;
        if (s & 8) b = b & 0x80 ? 0xff : 0; /* its sign, eight times */
        r |= b << 8 * k;
    }
    return r;
}

static uint64_t field(struct lane *x, bool insert)
{
    unsigned bits = mg_type_bits((enum mg_type)x->d->type), at = insert ? 2 : 1;
    uint64_t pos = val(x, at) & 0xff, len = val(x, at + 1) & 0xff;
    if ((und(x, at) | und(x, at + 1)) & 0xff) return UINT64_MAX;
    if (insert) {
        if (pos >= bits) return und(x, 1);
        uint64_t m = cut((unsigned)MG_MIN(len, 64)) << pos;
        return (und(x, 1) & ~m) | (und(x, 0) << pos & m);
    }
    uint64_t v = pos < 64 ? (und(x, 0) & cut(bits)) >> pos : 0;
    bool sign = mg_type_kind((enum mg_type)x->d->type) == MG_TK_SINT;
    if (len >= bits) len = bits;
    if (sign && len && und(x, 0) >> MG_MIN(pos + len - 1, bits - 1) & 1) return v | ~cut((unsigned)len);
    return v & cut((unsigned)len);
}

static uint64_t converted(struct lane *x)
{
    unsigned from = mg_type_bits((enum mg_type)x->d->from), to = mg_type_bits((enum mg_type)x->d->type);
    uint64_t v = und(x, 0) & cut(from);
    if (to > from && mg_type_kind((enum mg_type)x->d->from) == MG_TK_SINT && v >> (from - 1) & 1) v |= ~cut(from);
    v &= cut(to);
    if (mg_type_kind((enum mg_type)x->d->type) == MG_TK_SINT && v >> (to - 1) & 1)
        v |= ~cut(to); /* registers are wider */
    return v;
}

static uint64_t halves(struct lane *x)
{
    uint64_t u = 0, r = 0;
    for (uint32_t i = 0; i < x->d->n_src; i++) u |= und(x, i);
    for (unsigned k = 0; k < 2; k++)
        if (u >> 16 * k & 0xffff) r |= 0xffffull << 16 * k;
    return r;
}

static uint64_t reversed(uint64_t v, unsigned bits)
{
    uint64_t r = 0;
    for (unsigned k = 0; k < bits; k++) r |= (v >> k & 1) << (bits - 1 - k);
    return r;
}

/* ---- comparisons ------------------------------------------------------------------------------------ */

static int order(const struct lane *x, bool *known)
{
    enum mg_type t = (enum mg_type)x->d->type;
    unsigned bits = mg_type_bits(t);
    uint64_t a = val(x, 0) & cut(bits), b = val(x, 1) & cut(bits);
    *known = mg_type_kind(t) == MG_TK_UINT || mg_type_kind(t) == MG_TK_SINT || mg_type_kind(t) == MG_TK_BITS;
    if (mg_type_kind(t) == MG_TK_SINT) {
        int64_t p = (int64_t)(a << (64 - bits)), q = (int64_t)(b << (64 - bits));
        return p < q ? -1 : p > q;
    }
    return a < b ? -1 : a > b;
}

/* The comparison: 0, 1, or -1 for one that is undefined (or not worked out here: floats). */
static int compared(struct lane *x)
{
    unsigned bits = mg_type_bits((enum mg_type)x->d->type), cmp = x->d->cmp;
    uint64_t u = (und(x, 0) | und(x, 1)) & cut(bits);
    bool known;
    int o = order(x, &known);
    if (!known) return -1;
    if (u) { /* bits that differ for sure */
        bool differ = (val(x, 0) ^ val(x, 1)) & ~u & cut(bits);
        return differ && cmp == MG_MOD_eq ? 0 : differ && cmp == MG_MOD_ne ? 1 : -1;
    }
    switch (cmp) {
    case MG_MOD_eq:
        return o == 0;
    case MG_MOD_ne:
        return o != 0;
    case MG_MOD_lt:
    case MG_MOD_lo:
        return o < 0;
    case MG_MOD_le:
    case MG_MOD_ls:
        return o <= 0;
    case MG_MOD_gt:
    case MG_MOD_hi:
        return o > 0;
    case MG_MOD_ge:
    case MG_MOD_hs:
        return o >= 0;
    default:
        return -1;
    }
}

/* p = t op c, q = !t op c */
static void set_predicates(struct lane *x)
{
    const struct emu_def *d = x->d;
    int t = compared(x);
    uint64_t uc = d->bool_op ? und(x, 2) & 1 : 0, c = d->bool_op ? val(x, 2) : 0, ut = und(x, 0) | und(x, 1);
    bool ut_any = t < 0 && ut;
    for (uint32_t k = 0; k < d->n_dst; k++) {
        int v = t < 0 ? -1 : k ? !t : t;
        bool bad = ut_any || uc;
        if (d->bool_op == 1 && ((!uc && !c) || v == 0)) bad = false;
        if (d->bool_op == 2 && ((!uc && c) || v == 1)) bad = false;
        emu_defined_put(x->f, &d->dst[k], x->lane, bad ? 1 : 0, x->origin);
    }
}

/* ---- all of them ------------------------------------------------------------------------------------- */

static uint64_t selected(struct lane *x)
{
    if (!und(x, 2)) {
        x->origin = 0;
        return und(x, val(x, 2) ? 0 : 1);
    }
    return und(x, 0) | und(x, 1) | (val(x, 0) ^ val(x, 1));
}

static void pack(struct lane *x)
{
    const struct emu_def *d = x->d;
    uint64_t v = 0;
    for (uint32_t i = 0; i < d->n_src; i++) {
        uint64_t u = und(x, i) & cut(d->imm);
        v |= d->dst[0].cls == EMU_Q ? (u ? UINT64_MAX : 0) : u << i * d->imm;
    }
    emu_defined_put(x->f, &d->dst[0], x->lane, v, x->origin);
}

static void unpack(struct lane *x)
{
    const struct emu_def *d = x->d;
    uint64_t v = und(x, 0), part[EMU_DEF_MOST];
    for (uint32_t i = 0; i < d->n_dst; i++) part[i] = (d->src[0].cls == EMU_Q ? v : v >> i * d->imm) & cut(d->imm);
    for (uint32_t i = 0; i < d->n_dst; i++) emu_defined_put(x->f, &d->dst[i], x->lane, part[i], x->origin);
}

void emu_defined_lane(const struct emu_def *d, struct emu_frame *f, uint32_t lane)
{
    struct lane x = {d, f, lane, 0};
    uint64_t v = 0;
    switch ((enum emu_exact)d->exact) {
    case EMU_EX_MOVE:
    case EMU_EX_NOT:
        v = und(&x, 0);
        break;
    case EMU_EX_AND:
        v = logic(&x, 0xc0);
        break;
    case EMU_EX_OR:
        v = logic(&x, 0xfc);
        break;
    case EMU_EX_XOR:
        v = und(&x, 0) | und(&x, 1);
        break;
    case EMU_EX_LOP3:
        v = logic(&x, d->imm);
        break;
    case EMU_EX_SHL:
    case EMU_EX_SHR:
        v = shift(&x);
        break;
    case EMU_EX_SHF:
        v = funnel(&x);
        break;
    case EMU_EX_PRMT:
        v = permute(&x);
        break;
    case EMU_EX_BFE:
        v = field(&x, false);
        break;
    case EMU_EX_BFI:
        v = field(&x, true);
        break;
    case EMU_EX_SELECT:
        v = selected(&x);
        break;
    case EMU_EX_CONVERT:
        v = converted(&x);
        break;
    case EMU_EX_HALVES:
        v = halves(&x);
        break;
    case EMU_EX_BREV:
        v = reversed(und(&x, 0), mg_type_bits((enum mg_type)d->type));
        break;
    case EMU_EX_PACK:
        pack(&x);
        return;
    case EMU_EX_UNPACK:
        unpack(&x);
        return;
    case EMU_EX_SETP:
        set_predicates(&x);
        return;
    case EMU_EX_ANY:
        for (uint32_t i = 0; i < d->n_src; i++) v |= und(&x, i);
        if (v) v = UINT64_MAX;
        break;
    }
    for (uint32_t i = 0; i < d->n_dst; i++) emu_defined_put(f, &d->dst[i], lane, v, x.origin);
}
