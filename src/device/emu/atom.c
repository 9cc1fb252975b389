/* Atomics and reductions: lane by lane in lane order.
 *
 * On shared memory they are plain (a CTA stays on one thread), on global memory they are the
 * host's own atomic operations, sequentially consistent whatever order and scope were asked for.
 * Reductions of integers whose lanes all name one address are summed first: one host operation.
 */
#include "device/emu/async.h"
#include "device/emu/whole.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"

#define OP(o) ((const struct emu_op *)(const void *)(o))

static float f32_of(uint32_t b)
{
    float f;
    memcpy(&f, &b, 4);
    return f;
}
static uint32_t f32_bits(float f)
{
    uint32_t b;
    memcpy(&b, &f, 4);
    return b;
}
static double f64_of(uint64_t b)
{
    double f;
    memcpy(&f, &b, 8);
    return f;
}
static uint64_t f64_bits(double f)
{
    uint64_t b;
    memcpy(&b, &f, 8);
    return b;
}

/* ---- 16-bit floats ------------------------------------------------------------------------------ */

static double half_value(uint32_t h)
{
    uint32_t e = h >> 10 & 31, m = h & 1023;
    double v = e == 31 ? (m ? __builtin_nan("") : __builtin_inf())
               : e     ? __builtin_ldexp(1024 + m, (int)e - 25)
                       : __builtin_ldexp(m, -24);
    return h >> 15 ? -v : v;
}
/* Nearest even. The sum of two halves is exact in double, so this rounds once. */
static uint32_t half_bits(double v)
{
    if (v != v) return 0x7fff;
    uint32_t sign = f64_bits(v) >> 63 ? 0x8000 : 0;
    double a = sign ? -v : v;
    if (a >= 65520.0) return sign | 0x7c00;
    if (a < 6.103515625e-05) return sign | (uint32_t)__builtin_nearbyint(a * 16777216.0);
    int e = (int)(f64_bits(a) >> 52) - 1023;
    uint32_t m = (uint32_t)__builtin_nearbyint(__builtin_ldexp(a, 10 - e)); /* 1024..2048 */
    return sign | (((uint32_t)(e + 15) << 10) + (m - 1024));
}
static double bf_value(uint32_t b)
{
    return f32_of(b << 16);
}
/* The sum of two bf16 need not be exact in f32 but is in double unless the exponents are far apart;
 * then the small one only decides ties, which double's sticky rounding keeps apart. */
static uint32_t bf_bits(double v)
{
    if (v != v) return 0x7fff;
    double a = v < 0 ? -v : v;
    uint64_t d = f64_bits(v);
    uint32_t sign = (uint32_t)(d >> 63) << 15;
    if (a > 3.3895313892515355e38 * (1 + 1.0 / 512)) return sign | 0x7f80;
    if (a < 1.1754943508222875e-38) return sign | (uint32_t)__builtin_nearbyint(__builtin_ldexp(a, 133));
    int e = (int)(f64_bits(a) >> 52) - 1023;
    uint32_t m = (uint32_t)__builtin_nearbyint(__builtin_ldexp(a, 7 - e)); /* 128..256 */
    return sign | (((uint32_t)(e + 127) << 7) + (m - 128));
}

static uint32_t add16(enum mg_type t, uint32_t a, uint32_t b, unsigned op)
{
    bool bf = t == MG_TYPE_bf16 || t == MG_TYPE_bf16x2;
    double x = bf ? bf_value(a & 0xffff) : half_value(a & 0xffff),
           y = bf ? bf_value(b & 0xffff) : half_value(b & 0xffff), r;
    if (op == EMU_ATOM_ADD)
        r = x + y;
    else if (x != x || y != y)
        r = x != x ? y : x;
    else if (x == y)
        return op == EMU_ATOM_MIN ? (a | b) & 0xffff : a & b & 0xffff;
    else
        r = (op == EMU_ATOM_MIN) == (x < y) ? x : y;
    return bf ? bf_bits(r) : half_bits(r);
}

/* ---- one value ----------------------------------------------------------------------------------- */

static uint64_t combine(unsigned op, enum mg_type t, uint64_t old, uint64_t b, uint64_t c)
{
    bool is64 = mg_type_bits(t) == 64, is_signed = mg_type_kind(t) == MG_TK_SINT;
    switch ((enum emu_atom)op) {
    case EMU_ATOM_ADD:
        if (t == MG_TYPE_f32) return f32_bits(f32_of((uint32_t)old) + f32_of((uint32_t)b));
        if (t == MG_TYPE_f64) return f64_bits(f64_of(old) + f64_of(b));
        if (t == MG_TYPE_f16 || t == MG_TYPE_bf16) return add16(t, (uint32_t)old, (uint32_t)b, op);
        if (t == MG_TYPE_f16x2 || t == MG_TYPE_bf16x2)
            return add16(t, (uint32_t)old, (uint32_t)b, op) | add16(t, (uint32_t)old >> 16, (uint32_t)b >> 16, op)
                                                                  << 16;
        return is64 ? old + b : (uint32_t)(old + b);
    case EMU_ATOM_EXCH:
        return b;
    case EMU_ATOM_CAS:
        return old == b ? c : old;
    case EMU_ATOM_AND:
        return old & b;
    case EMU_ATOM_OR:
        return old | b;
    case EMU_ATOM_XOR:
        return old ^ b;
    case EMU_ATOM_INC:
        return (uint32_t)old >= (uint32_t)b ? 0 : (uint32_t)old + 1;
    case EMU_ATOM_DEC:
        return (uint32_t)old == 0 || (uint32_t)old > (uint32_t)b ? (uint32_t)b : (uint32_t)old - 1;
    case EMU_ATOM_MIN:
    case EMU_ATOM_MAX: {
        bool less;
        if (t == MG_TYPE_f16 || t == MG_TYPE_bf16) return add16(t, (uint32_t)old, (uint32_t)b, op);
        if (t == MG_TYPE_f16x2 || t == MG_TYPE_bf16x2)
            return add16(t, (uint32_t)old, (uint32_t)b, op) | add16(t, (uint32_t)old >> 16, (uint32_t)b >> 16, op)
                                                                  << 16;
        if (t == MG_TYPE_f32) {
            float x = f32_of((uint32_t)old), y = f32_of((uint32_t)b);
            if (x != x) return b;
            if (y != y) return old;
            less = x < y || (x == y && old >> 31 > b >> 31);
        } else if (is64)
            less = is_signed ? (int64_t)old < (int64_t)b : old < b;
        else
            less = is_signed ? (int32_t)old < (int32_t)b : (uint32_t)old < (uint32_t)b;
        return (op == EMU_ATOM_MIN) == less ? old : b;
    }
    }
    mg_unreachable();
}

static uint64_t apply_plain(unsigned op, enum mg_type t, unsigned bytes, void *p, uint64_t b, uint64_t c)
{
    uint64_t old = 0, v;
    memcpy(&old, p, bytes);
    v = combine(op, t, old, b, c);
    memcpy(p, &v, bytes);
    return old;
}

#define CAS_LOOP(T)                                                                                                    \
    do {                                                                                                               \
        T *q = p, o = __atomic_load_n(q, __ATOMIC_SEQ_CST);                                                            \
        while (!__atomic_compare_exchange_n(q, &o, (T)combine(op, t, o, b, c), false, __ATOMIC_SEQ_CST,                \
                                            __ATOMIC_SEQ_CST)) {                                                       \
        }                                                                                                              \
        return o;                                                                                                      \
    } while (0)

static uint64_t apply(unsigned op, enum mg_type t, unsigned bytes, void *p, uint64_t b, uint64_t c)
{
    if (mg_type_kind(t) != MG_TK_FLOAT && mg_type_kind(t) != MG_TK_PACKED) {
        if (op == EMU_ATOM_ADD)
            return bytes == 4 ? __atomic_fetch_add((uint32_t *)p, (uint32_t)b, __ATOMIC_SEQ_CST)
                              : __atomic_fetch_add((uint64_t *)p, b, __ATOMIC_SEQ_CST);
        if (op == EMU_ATOM_EXCH)
            return bytes == 4 ? __atomic_exchange_n((uint32_t *)p, (uint32_t)b, __ATOMIC_SEQ_CST)
                              : __atomic_exchange_n((uint64_t *)p, b, __ATOMIC_SEQ_CST);
    }
    switch (bytes) {
    case 2:
        CAS_LOOP(uint16_t);
    case 4:
        CAS_LOOP(uint32_t);
    default:
        CAS_LOOP(uint64_t);
    }
}

void emu_reduce_bytes(unsigned op, enum mg_type t, char *dst, const char *src, uint64_t bytes, bool private_memory)
{
    unsigned each = mg_type_bits(t) / 8;
    for (uint64_t k = 0; k + each <= bytes; k += each) {
        uint64_t v = 0;
        memcpy(&v, src + k, each);
        if (private_memory)
            apply_plain(op, t, each, dst + k, v, 0);
        else
            apply(op, t, each, dst + k, v, 0);
    }
}

/* ---- lanes --------------------------------------------------------------------------------------- */

static uint64_t value_of(const struct emu_op *op, const char *regs, uint32_t off, uint32_t lane)
{
    return op->flags & EMU_OF_WIDE ? ((const uint64_t *)(regs + off))[lane] : ((const uint32_t *)(regs + off))[lane];
}

static void set_value(const struct emu_op *op, char *regs, uint32_t off, uint32_t lane, uint64_t v)
{
    if (op->flags & EMU_OF_WIDE)
        ((uint64_t *)(regs + off))[lane] = v;
    else
        ((uint32_t *)(regs + off))[lane] = (uint32_t)v;
}

/* add of 32-bit integers in the CTA's own shared memory, as histograms have it. False: not inside. */
static bool shared_add(const struct emu_op *op, const struct emu_frame *f, char *regs, uint32_t mask)
{
    const uint32_t *a = (const uint32_t *)(regs + op->a.s[0]), *b = (const uint32_t *)(regs + op->a.s[1]);
    uint32_t *d = op->a.d ? (uint32_t *)(regs + op->a.d) : NULL, off = (uint32_t)op->off, bad = 0, ea[EMU_LANES];
    if (f->shared_bytes < 4) return false;
    uint32_t limit = (uint32_t)f->shared_bytes - 3;
    for (uint32_t i = 0; i < EMU_LANES; i++) {
        ea[i] = a[i] + off;
        bad |= (uint32_t)(ea[i] >= limit || ea[i] & 3) << i;
    }
    if (bad & mask) return false;
    EMU_FOR_LANES(i, mask)
    {
        uint32_t *p = (uint32_t *)(f->shared + ea[i]), old = *p;
        *p = old + b[i];
        if (d) d[i] = old;
    }
    return true;
}

static bool adds_shared(const struct emu_op *op)
{
    return op->space == MG_SPACE_shared && op->sub == EMU_ATOM_ADD && op->bytes == 4 && op->vec <= 1 &&
           op->flags & EMU_OF_BASE_W && !(op->flags & EMU_OF_CLUSTER) &&
           (op->type == MG_TYPE_u32 || op->type == MG_TYPE_s32);
}

static bool is_private(const struct emu_frame *f, uint64_t ea)
{
    return ea - (uint64_t)f->shared < f->shared_bytes;
}

void emu_atom(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    struct emu_frame *f = EMU_FRAME(regs);
    uint64_t ea[EMU_LANES];
    if (adds_shared(op) && shared_add(op, f, regs, mask)) {
        if (op->flags & EMU_OF_SYNC) f->w->suspect = 1;
        return;
    }
    emu_host_addresses(f, op, regs, mask, (uint32_t)op->bytes * op->vec, ea);
    if (op->flags & EMU_OF_SYNC) f->w->suspect = 1;
    if (op->vec > 1) {
        EMU_FOR_LANES(i, mask)
        for (unsigned k = 0; k < op->vec; k++) {
            uint64_t b = value_of(op, regs, op->slots[8 + k], i), old;
            void *p = (char *)ea[i] + k * op->bytes;
            old = is_private(f, ea[i]) ? apply_plain(op->sub, op->type, op->bytes, p, b, 0)
                                       : apply(op->sub, op->type, op->bytes, p, b, 0);
            if (op->flags & EMU_OF_SYNC && op->slots[k]) set_value(op, regs, op->slots[k], i, old);
        }
        return;
    }
    EMU_FOR_LANES(i, mask)
    {
        uint64_t b = value_of(op, regs, o->s[1], i), c = o->s[2] ? value_of(op, regs, o->s[2], i) : 0, old;
        old = is_private(f, ea[i]) ? apply_plain(op->sub, op->type, op->bytes, (void *)ea[i], b, c)
                                   : apply(op->sub, op->type, op->bytes, (void *)ea[i], b, c);
        if (o->d) set_value(op, regs, o->d, i, old);
    }
}

/* red.add of an integer: lanes with one address are summed and added once. */
void emu_red_add(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    struct emu_frame *f = EMU_FRAME(regs);
    uint64_t ea[EMU_LANES];
    if (adds_shared(op) && shared_add(op, f, regs, mask)) return;
    emu_host_addresses(f, op, regs, mask, op->bytes, ea);
    uint64_t first = ea[emu_first(mask)], sum = 0;
    bool uniform = true;
    EMU_FOR_LANES(i, mask) uniform &= ea[i] == first;
    if (!uniform) {
        bool private = is_private(f, first);
        EMU_FOR_LANES(i, mask)
        {
            uint64_t b = value_of(op, regs, o->s[1], i);
            if (private && is_private(f, ea[i]))
                apply_plain(op->sub, op->type, op->bytes, (void *)ea[i], b, 0);
            else if (op->bytes == 4)
                __atomic_fetch_add((uint32_t *)ea[i], (uint32_t)b, __ATOMIC_SEQ_CST);
            else
                __atomic_fetch_add((uint64_t *)ea[i], b, __ATOMIC_SEQ_CST);
        }
        return;
    }
    EMU_FOR_LANES(i, mask) sum += value_of(op, regs, o->s[1], i);
    if (!sum) return;
    if (is_private(f, first))
        apply_plain(op->sub, op->type, op->bytes, (void *)first, sum, 0);
    else if (op->bytes == 4)
        __atomic_fetch_add((uint32_t *)first, (uint32_t)sum, __ATOMIC_SEQ_CST);
    else
        __atomic_fetch_add((uint64_t *)first, sum, __ATOMIC_SEQ_CST);
}

/* ---- 16 bytes at once ------------------------------------------------------------------------------ */

/* exch and cas of 128 bits. */
void emu_atom_q(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    uint64_t ea[EMU_LANES];
    emu_host_addresses(EMU_FRAME(regs), op, regs, mask, 16, ea);
    EMU_FRAME(regs)->w->suspect = 1;
    EMU_FOR_LANES(i, mask)
    {
        uint64_t old[2], to[2];
        bool cas = op->sub == EMU_ATOM_CAS;
        memcpy(to, regs + (cas ? o->s[2] : o->s[1]) + 16 * i, 16);
        if (cas)
            memcpy(old, regs + o->s[1] + 16 * i, 16);
        else
            emu_get16(old, (const void *)ea[i]);
        while (!emu_exchange16((void *)ea[i], old, to) && !cas) {
        }
        if (o->d) memcpy(regs + o->d + 16 * i, old, 16);
    }
}

bool emu_whole_needs_exchange(void)
{
    static _Atomic int answer; /* 1: no, 2: yes */
    if (!answer) answer = 1 + (!__builtin_cpu_supports("avx") || mg_env_is(MG_ENV_ISA, "sse"));
    return answer == 2;
}

/* A strong access of n times 16 bytes where a move may come apart: each 16 are read by an exchange of 0 for 0. */
static void exchange_lane(char *at, char *mine, uint32_t bytes, bool write)
{
    for (uint32_t k = 0; k < bytes; k += 16) {
        uint64_t old[2] = {0, 0}, to[2] = {0, 0};
        if (write) memcpy(to, mine + k, 16), memcpy(old, at + k, 16);
        while (!emu_exchange16(at + k, old, to) && write) {
        }
        if (!write) memcpy(mine + k, old, 16);
    }
}

static char *element(const struct emu_op *op, char *regs, unsigned k, uint32_t lane)
{
    uint32_t off = op->slots ? op->slots[k] : op->flags & EMU_OF_WRITES ? op->a.s[1] : op->a.d;
    return regs + off + lane * (op->bytes == 16 ? 16 : op->flags & EMU_OF_WIDE ? 8 : 4);
}

void emu_load_exchange(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    char lane[64];
    uint64_t ea[EMU_LANES];
    uint32_t bytes = (uint32_t)op->bytes * op->vec, kept = op->flags & EMU_OF_WIDE ? 8 : 4;
    emu_host_addresses(EMU_FRAME(regs), op, regs, mask, bytes, ea);
    EMU_FOR_LANES(i, mask)
    {
        exchange_lane((char *)ea[i], lane, bytes, false);
        for (unsigned k = 0; k < op->vec; k++) {
            int64_t v = 0;
            unsigned unused = 64 - 8 * op->bytes;
            if (op->bytes == 16) {
                memcpy(element(op, regs, k, i), lane + 16 * k, 16);
                continue;
            }
            memcpy(&v, lane + k * op->bytes, op->bytes);
            if (mg_type_kind((enum mg_type)op->type) == MG_TK_SINT) v = (int64_t)((uint64_t)v << unused) >> unused;
            memcpy(element(op, regs, k, i), &v, kept);
        }
    }
}

void emu_store_exchange(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    char lane[64];
    uint64_t ea[EMU_LANES];
    uint32_t bytes = (uint32_t)op->bytes * op->vec;
    emu_host_addresses(EMU_FRAME(regs), op, regs, mask, bytes, ea);
    EMU_FOR_LANES(i, mask)
    {
        for (unsigned k = 0; k < op->vec; k++) memcpy(lane + k * op->bytes, element(op, regs, k, i), op->bytes);
        exchange_lane((char *)ea[i], lane, bytes, true);
    }
}

enum emu_opcode emu_atom_find(const struct mg_form *f, struct emu_op *op, bool with_result)
{
    static const struct {
        enum mg_mod mod;
        enum emu_atom op;
    } ops[] = {{MG_MOD_add, EMU_ATOM_ADD}, {MG_MOD_inc, EMU_ATOM_INC}, {MG_MOD_dec, EMU_ATOM_DEC},
               {MG_MOD_min, EMU_ATOM_MIN}, {MG_MOD_max, EMU_ATOM_MAX}, {MG_MOD_exch, EMU_ATOM_EXCH},
               {MG_MOD_cas, EMU_ATOM_CAS}, {MG_MOD_and, EMU_ATOM_AND}, {MG_MOD_or, EMU_ATOM_OR},
               {MG_MOD_xor, EMU_ATOM_XOR}};
    if (f->unknown || !f->n_types || mg_form_has(f, MG_MOD_async)) return EMU_OP_none;
    int found = -1;
    for (unsigned i = 0; i < MG_COUNT_OF(ops) && found < 0; i++)
        if (mg_form_has(f, ops[i].mod)) found = (int)i;
    if (found < 0) return EMU_OP_none;
    enum mg_type t = f->types[0];
    op->sub = ops[found].op;
    op->type = (uint8_t)t;
    op->bytes = (uint8_t)(mg_type_bits(t) / 8);
    op->vec = f->vec ? f->vec : 1;
    bool number = mg_type_kind(t) == MG_TK_UINT || mg_type_kind(t) == MG_TK_SINT;
    if (op->bytes == 16)
        return op->vec == 1 && (op->sub == EMU_ATOM_EXCH || op->sub == EMU_ATOM_CAS) &&
                       __builtin_cpu_supports("cmpxchg16b")
                   ? EMU_OP_atom_q
                   : EMU_OP_none;
    if (op->bytes != 2 && op->bytes != 4 && op->bytes != 8) return EMU_OP_none;
    if (!with_result && op->vec == 1 && op->sub == EMU_ATOM_ADD && number) return EMU_OP_red_add;
    return EMU_OP_atom;
}
