/* Loads and stores over 32 lanes, and the small register helpers that the decoder inserts.
 * Compiled once per vector ISA (EMU_ISA, EMU_SUF).
 *
 * Every access is checked: consecutive and uniform addresses by one test of the operation's cached
 * allocation, others by the least and greatest address of the active lanes, and only what is not
 * inside that one allocation goes lane by lane (mem_check.c).
 */
/* clang-format off */
#include "device/emu/emu.h"
#include "device/emu/whole.h"

#include <string.h>

#define CAT2(a, b) a##b
#define CAT(a, b) CAT2(a, b)
#define NAME(x) CAT(x, EMU_SUF)
#define INLINE static inline __attribute__((always_inline))
#define ALL for (int i = 0; i < EMU_LANES; i++)

#define W(off) ((uint32_t *)(regs + (off)))
#define D(off) ((uint64_t *)(regs + (off)))
#define OP(o) ((const struct emu_op *)(const void *)(o))

/* ---- addresses ------------------------------------------------------------------------------ */

/* Addresses as the program gave them, offset added: 64 bits wide in global memory, the low 32 in
 * shared and local memory, whatever register they came from. */
INLINE void addresses(const struct emu_op *op, char *regs, uint64_t *ea, enum emu_where where)
{
    uint64_t off = (uint64_t)op->off;
    bool narrow = where == EMU_AT_SHARED || where == EMU_AT_LOCAL;
    if (op->flags & EMU_OF_BASE_NONE) {
        if (where == EMU_AT_LOCAL) off += EMU_FRAME(regs)->local_at; /* variables of this activation */
        ALL ea[i] = off;
    } else if (op->flags & EMU_OF_BASE_W) {
        const uint32_t *a = W(op->a.s[0]);
        ALL ea[i] = (uint32_t)(a[i] + (uint32_t)off);
    } else {
        const uint64_t *a = D(op->a.s[0]);
        if (narrow) ALL ea[i] = (uint32_t)(a[i] + off);
        else ALL ea[i] = a[i] + off;
    }
}

INLINE bool consecutive(const uint64_t *ea, uint64_t step)
{
    uint64_t bad = 0, a0 = ea[0];
    ALL bad |= ea[i] ^ (a0 + step * (uint64_t)i);
    return !bad;
}

/* Checks all active lanes and leaves host addresses in ea. */
INLINE void translate(const struct emu_op *op, struct emu_frame *f, enum emu_where where, uint64_t *ea, uint32_t mask, uint32_t bytes)
{
    uint64_t lo = UINT64_MAX, hi = 0, bits = 0;
    uint64_t first = ea[emu_first(mask)];
    if (mask == UINT32_MAX) {
        ALL lo = ea[i] < lo ? ea[i] : lo;
        ALL hi = ea[i] > hi ? ea[i] : hi;
        ALL bits |= ea[i];
    } else {
        uint64_t t[EMU_LANES];
        ALL t[i] = mask >> i & 1 ? ea[i] : first;
        ALL lo = t[i] < lo ? t[i] : lo;
        ALL hi = t[i] > hi ? t[i] : hi;
        ALL bits |= t[i];
    }
    bool aligned = !(bits & (bytes - 1));
    switch (where) {
    case EMU_AT_SHARED:
        if (MG_UNLIKELY(hi + bytes > f->shared_bytes || hi > UINT32_MAX || !aligned)) emu_check_lanes(f, op, ea, mask, bytes);
        ALL ea[i] += (uint64_t)f->shared;
        break;
    case EMU_AT_LOCAL: {
        uint64_t va = f->local_va, stride = f->local_stride;
        if (MG_UNLIKELY(hi + bytes > f->local_bytes || hi > UINT32_MAX || !aligned)) emu_check_lanes(f, op, ea, mask, bytes);
        ALL ea[i] += va + stride * (uint64_t)i;
        break;
    }
    default: {
        const struct emu_range *r = &f->wk->ranges[op->cache];
        if (MG_LIKELY(lo >= r->lo && hi < r->hi && hi + bytes <= r->hi && aligned)) break;
        emu_check_lanes(f, op, ea, mask, bytes);
    }
    }
}

/* All 32 lanes in shared memory through a 32-bit register: checks and looks for equal or consecutive
 * addresses in each half of the warp (rows of a 16-wide tile). False: not inside, see translate(). */
struct tile { uint32_t at[EMU_LANES]; bool same[2], run[2]; };
INLINE bool shared_tile(const struct emu_op *op, struct emu_frame *f, const char *regs, uint32_t bytes, struct tile *t)
{
    const uint32_t *a = (const uint32_t *)(regs + op->a.s[0]);
    uint32_t off = (uint32_t)op->off, hi = 0, bits = 0;
    ALL t->at[i] = a[i] + off;
    ALL hi = t->at[i] > hi ? t->at[i] : hi;
    ALL bits |= t->at[i];
    if (MG_UNLIKELY((uint64_t)hi + bytes > f->shared_bytes || bits & (bytes - 1))) return false;
    for (int h = 0; h < 2; h++) {
        const uint32_t *p = t->at + 16 * h;
        uint32_t first = p[0], same = 0, run = 0;
        for (int i = 0; i < 16; i++) same |= p[i] ^ first;
        for (int i = 0; i < 16; i++) run |= p[i] ^ (first + bytes * (uint32_t)i);
        t->same[h] = !same;
        t->run[h] = !run;
    }
    return true;
}

/* ---- elements ------------------------------------------------------------------------------- */

#define ELEMS(X)                                                                                 \
    X(U8W, uint8_t, uint32_t, uint32_t) \
    X(S8W, int8_t, int32_t, uint32_t) \
    X(S8H, int8_t, uint16_t, uint32_t) \
    X(U16W, uint16_t, uint32_t, uint32_t) \
    X(S16W, int16_t, int32_t, uint32_t) \
    X(B32W, uint32_t, uint32_t, uint32_t) \
    X(U8D, uint8_t, uint64_t, uint64_t) \
    X(S8D, int8_t, int64_t, uint64_t) \
    X(U16D, uint16_t, uint64_t, uint64_t) \
    X(S16D, int16_t, int64_t, uint64_t) \
    X(U32D, uint32_t, uint64_t, uint64_t) \
    X(S32D, int32_t, int64_t, uint64_t) \
    X(B64D, uint64_t, uint64_t, uint64_t)

struct quad { uint64_t lo, hi; };

/* Vectors of elements pass through a table of lanes, so that each lane is one move. */
#define LANE_BYTES 64
struct table { _Alignas(64) char at[EMU_LANES * LANE_BYTES]; };

#define FOR_ACTIVE(i, mask, each) if ((mask) == UINT32_MAX) { ALL each; } else { EMU_FOR_LANES(i, mask) each; }
static void get_lanes(struct table *t, const uint64_t *ea, uint32_t mask, uint32_t bytes)
{
    switch (bytes) {
    case 8: FOR_ACTIVE(i, mask, emu_get_lane(t->at + 8 * i, (const void *)ea[i], 8)) break;
    case 16: FOR_ACTIVE(i, mask, emu_get_lane(t->at + 16 * i, (const void *)ea[i], 16)) break;
    default: FOR_ACTIVE(i, mask, emu_get_lane(t->at + bytes * (uint32_t)i, (const void *)ea[i], bytes)) break;
    }
}
static void put_lanes(const struct table *t, const uint64_t *ea, uint32_t mask, uint32_t bytes)
{
    switch (bytes) {
    case 8: FOR_ACTIVE(i, mask, emu_put_lane((void *)ea[i], t->at + 8 * i, 8)) break;
    case 16: FOR_ACTIVE(i, mask, emu_put_lane((void *)ea[i], t->at + 16 * i, 16)) break;
    default: FOR_ACTIVE(i, mask, emu_put_lane((void *)ea[i], t->at + bytes * (uint32_t)i, bytes)) break;
    }
}

#define LOADS(E, MEM, CONV, REG)                                                                 \
    INLINE void load_##E(const struct emu_alu *o, char *regs, uint32_t mask, enum emu_where where) \
    {                                                                                            \
        const struct emu_op *op = OP(o);                                                         \
        struct emu_frame *f = EMU_FRAME(regs);                                                   \
        REG *d = (REG *)(regs + o->d);                                                           \
        uint64_t ea[EMU_LANES];                                                                  \
        struct tile t;                                                                           \
        if (where == EMU_AT_SHARED && mask == UINT32_MAX && op->flags & EMU_OF_BASE_W && shared_tile(op, f, regs, sizeof(MEM), &t)) { \
            for (int h = 0; h < 2; h++) {                                                        \
                REG *dh = d + 16 * h;                                                            \
                const MEM *p = (const MEM *)(f->shared + t.at[16 * h]);                          \
                if (t.same[h]) {                                                                 \
                    REG v = (REG)(CONV)*p;                                                       \
                    for (int i = 0; i < 16; i++) dh[i] = v;                                      \
                } else if (t.run[h]) {                                                           \
                    for (int i = 0; i < 16; i++) dh[i] = (REG)(CONV)p[i];                        \
                } else {                                                                         \
                    for (int i = 0; i < 16; i++) dh[i] = (REG)(CONV) * (const MEM *)(f->shared + t.at[16 * h + i]); \
                }                                                                                \
            }                                                                                    \
            return;                                                                              \
        }                                                                                        \
        addresses(op, regs, ea, where);                                                                 \
        if (where == EMU_AT_GLOBAL && mask == UINT32_MAX && consecutive(ea, sizeof(MEM))) {      \
            const struct emu_range *r = &f->wk->ranges[op->cache];                               \
            if (MG_LIKELY(ea[0] >= r->lo && ea[0] < r->hi && ea[0] + EMU_LANES * sizeof(MEM) <= r->hi && !(ea[0] & (sizeof(MEM) - 1)))) { \
                const MEM *p = (const MEM *)ea[0];                                               \
                ALL d[i] = (REG)(CONV)p[i];                                                      \
                return;                                                                          \
            }                                                                                    \
        }                                                                                        \
        translate(op, f, where, ea, mask, sizeof(MEM));                                          \
        if (mask == UINT32_MAX) {                                                                \
            ALL d[i] = (REG)(CONV) * (const MEM *)ea[i];                                         \
        } else {                                                                                 \
            EMU_FOR_LANES(i, mask) d[i] = (REG)(CONV) * (const MEM *)ea[i];                      \
        }                                                                                        \
    }                                                                                            \
    INLINE void vload_##E(const struct emu_alu *o, char *regs, uint32_t mask, enum emu_where where) \
    {                                                                                            \
        const struct emu_op *op = OP(o);                                                         \
        uint64_t ea[EMU_LANES];                                                                  \
        addresses(op, regs, ea, where);                                                                 \
        translate(op, EMU_FRAME(regs), where, ea, mask, (uint32_t)sizeof(MEM) * op->vec);        \
        struct table t;                                                                          \
        get_lanes(&t, ea, mask, (uint32_t)sizeof(MEM) * op->vec);                                \
        for (unsigned k = 0; k < op->vec; k++) {                                                 \
            REG *d = (REG *)(regs + op->slots[k]);                                               \
            const MEM *p = (const MEM *)t.at + k;                                                \
            if (mask != UINT32_MAX) EMU_FOR_LANES(i, mask) d[i] = (REG)(CONV)p[i * op->vec];     \
            else if (op->vec == 2) ALL d[i] = (REG)(CONV)p[2 * i];                               \
            else if (op->vec == 4) ALL d[i] = (REG)(CONV)p[4 * i];                               \
            else ALL d[i] = (REG)(CONV)p[(uint32_t)i * op->vec];                                 \
        }                                                                                        \
    }                                                                                            \
    INLINE void store_##E(const struct emu_alu *o, char *regs, uint32_t mask, enum emu_where where) \
    {                                                                                            \
        const struct emu_op *op = OP(o);                                                         \
        struct emu_frame *f = EMU_FRAME(regs);                                                   \
        const REG *s = (const REG *)(regs + o->s[1]);                                            \
        uint64_t ea[EMU_LANES];                                                                  \
        struct tile t;                                                                           \
        if (where == EMU_AT_SHARED && mask == UINT32_MAX && op->flags & EMU_OF_BASE_W && shared_tile(op, f, regs, sizeof(MEM), &t)) { \
            for (int h = 0; h < 2; h++) {                                                        \
                const REG *sh = s + 16 * h;                                                      \
                if (t.run[h]) {                                                                  \
                    MEM *p = (MEM *)(f->shared + t.at[16 * h]);                                  \
                    for (int i = 0; i < 16; i++) p[i] = (MEM)sh[i];                              \
                } else {                                                                         \
                    for (int i = 0; i < 16; i++) *(MEM *)(f->shared + t.at[16 * h + i]) = (MEM)sh[i]; \
                }                                                                                \
            }                                                                                    \
            return;                                                                              \
        }                                                                                        \
        addresses(op, regs, ea, where);                                                                 \
        if (where == EMU_AT_GLOBAL && mask == UINT32_MAX && consecutive(ea, sizeof(MEM))) {      \
            const struct emu_range *r = &f->wk->ranges[op->cache];                               \
            if (MG_LIKELY(ea[0] >= r->lo && ea[0] < r->hi && ea[0] + EMU_LANES * sizeof(MEM) <= r->hi && !(ea[0] & (sizeof(MEM) - 1)))) { \
                MEM *p = (MEM *)ea[0];                                                           \
                ALL p[i] = (MEM)s[i];                                                            \
                return;                                                                          \
            }                                                                                    \
        }                                                                                        \
        translate(op, f, where, ea, mask, sizeof(MEM));                                          \
        EMU_FOR_LANES(i, mask) *(MEM *)ea[i] = (MEM)s[i];                                        \
    }                                                                                            \
    INLINE void vstore_##E(const struct emu_alu *o, char *regs, uint32_t mask, enum emu_where where) \
    {                                                                                            \
        const struct emu_op *op = OP(o);                                                         \
        uint64_t ea[EMU_LANES];                                                                  \
        addresses(op, regs, ea, where);                                                                 \
        translate(op, EMU_FRAME(regs), where, ea, mask, (uint32_t)sizeof(MEM) * op->vec);        \
        struct table t;                                                                          \
        MEM *p = (MEM *)t.at;                                                                    \
        const REG *s[8];                                                                         \
        for (unsigned k = 0; k < op->vec; k++) s[k] = (const REG *)(regs + op->slots[k]);        \
        if (op->vec == 2) ALL p[2 * i] = (MEM)s[0][i], p[2 * i + 1] = (MEM)s[1][i];              \
        else if (op->vec == 4) ALL p[4 * i] = (MEM)s[0][i], p[4 * i + 1] = (MEM)s[1][i], p[4 * i + 2] = (MEM)s[2][i], p[4 * i + 3] = (MEM)s[3][i];\
        else                                                                                     \
            for (unsigned k = 0; k < op->vec; k++) ALL p[(uint32_t)i * op->vec + k] = (MEM)s[k][i];\
        put_lanes(&t, ea, mask, (uint32_t)sizeof(MEM) * op->vec);                                \
    }                                                                                            \
    INLINE void param_##E(const struct emu_alu *o, char *regs, uint32_t mask)                    \
    {                                                                                            \
        const struct emu_op *op = OP(o);                                                         \
        const char *p = EMU_FRAME(regs)->params + op->off;                                       \
        for (unsigned k = 0; k < op->vec; k++) {                                                 \
            MEM v;                                                                               \
            memcpy(&v, p + k * sizeof v, sizeof v);                                              \
            REG *d = (REG *)(regs + (op->slots ? op->slots[k] : o->d)), x = (REG)(CONV)v;        \
            if (mask == UINT32_MAX) ALL d[i] = x;                                                \
            else ALL d[i] = mask >> i & 1 ? x : d[i];                                            \
        }                                                                                        \
    }                                                                                            \
    static void ld_global_##E(const struct emu_alu *o, char *regs, uint32_t mask) { load_##E(o, regs, mask, EMU_AT_GLOBAL); } \
    static void ld_shared_##E(const struct emu_alu *o, char *regs, uint32_t mask) { load_##E(o, regs, mask, EMU_AT_SHARED); } \
    static void ld_local_##E(const struct emu_alu *o, char *regs, uint32_t mask) { load_##E(o, regs, mask, EMU_AT_LOCAL); } \
    static void vld_global_##E(const struct emu_alu *o, char *regs, uint32_t mask) { vload_##E(o, regs, mask, EMU_AT_GLOBAL); } \
    static void vld_shared_##E(const struct emu_alu *o, char *regs, uint32_t mask) { vload_##E(o, regs, mask, EMU_AT_SHARED); } \
    static void vld_local_##E(const struct emu_alu *o, char *regs, uint32_t mask) { vload_##E(o, regs, mask, EMU_AT_LOCAL); } \
    static void ld_param_##E(const struct emu_alu *o, char *regs, uint32_t mask) { param_##E(o, regs, mask); } \
    static void st_global_##E(const struct emu_alu *o, char *regs, uint32_t mask) { store_##E(o, regs, mask, EMU_AT_GLOBAL); } \
    static void st_shared_##E(const struct emu_alu *o, char *regs, uint32_t mask) { store_##E(o, regs, mask, EMU_AT_SHARED); } \
    static void st_local_##E(const struct emu_alu *o, char *regs, uint32_t mask) { store_##E(o, regs, mask, EMU_AT_LOCAL); } \
    static void vst_global_##E(const struct emu_alu *o, char *regs, uint32_t mask) { vstore_##E(o, regs, mask, EMU_AT_GLOBAL); } \
    static void vst_shared_##E(const struct emu_alu *o, char *regs, uint32_t mask) { vstore_##E(o, regs, mask, EMU_AT_SHARED); } \
    static void vst_local_##E(const struct emu_alu *o, char *regs, uint32_t mask) { vstore_##E(o, regs, mask, EMU_AT_LOCAL); }

ELEMS(LOADS)

/* 128-bit elements: rare, one general path for scalars and vectors. */
INLINE void load_q(const struct emu_alu *o, char *regs, uint32_t mask, enum emu_where where)
{
    const struct emu_op *op = OP(o);
    uint64_t ea[EMU_LANES];
    if (where == EMU_AT_PARAM) ALL ea[i] = (uint64_t)(EMU_FRAME(regs)->params + op->off);
    else {
        addresses(op, regs, ea, where);
        translate(op, EMU_FRAME(regs), where, ea, mask, 16u * op->vec);
    }
    for (unsigned k = 0; k < op->vec; k++) {
        struct quad *d = (struct quad *)(regs + (op->slots ? op->slots[k] : o->d));
        if (where == EMU_AT_PARAM) EMU_FOR_LANES(i, mask) memcpy(&d[i], (const char *)ea[i] + 16 * k, 16);
        else EMU_FOR_LANES(i, mask) emu_get16(&d[i], (const char *)ea[i] + 16 * k);
    }
}
INLINE void store_q(const struct emu_alu *o, char *regs, uint32_t mask, enum emu_where where)
{
    const struct emu_op *op = OP(o);
    uint64_t ea[EMU_LANES];
    addresses(op, regs, ea, where);
    translate(op, EMU_FRAME(regs), where, ea, mask, 16u * op->vec);
    EMU_FOR_LANES(i, mask)
    for (unsigned k = 0; k < op->vec; k++) emu_put16((char *)ea[i] + 16 * k, (struct quad *)(regs + (op->slots ? op->slots[k] : o->s[1])) + i);
}
static void ld_global_B128Q(const struct emu_alu *o, char *regs, uint32_t mask) { load_q(o, regs, mask, EMU_AT_GLOBAL); }
static void ld_shared_B128Q(const struct emu_alu *o, char *regs, uint32_t mask) { load_q(o, regs, mask, EMU_AT_SHARED); }
static void ld_local_B128Q(const struct emu_alu *o, char *regs, uint32_t mask) { load_q(o, regs, mask, EMU_AT_LOCAL); }
static void ld_param_B128Q(const struct emu_alu *o, char *regs, uint32_t mask) { load_q(o, regs, mask, EMU_AT_PARAM); }
static void st_global_B128Q(const struct emu_alu *o, char *regs, uint32_t mask) { store_q(o, regs, mask, EMU_AT_GLOBAL); }
static void st_shared_B128Q(const struct emu_alu *o, char *regs, uint32_t mask) { store_q(o, regs, mask, EMU_AT_SHARED); }
static void st_local_B128Q(const struct emu_alu *o, char *regs, uint32_t mask) { store_q(o, regs, mask, EMU_AT_LOCAL); }
#define vld_global_B128Q ld_global_B128Q
#define vld_shared_B128Q ld_shared_B128Q
#define vld_local_B128Q ld_local_B128Q
#define vst_global_B128Q st_global_B128Q
#define vst_shared_B128Q st_shared_B128Q
#define vst_local_B128Q st_local_B128Q

/* Generic addresses are host addresses, so global and generic accesses differ only in what the check
 * accepts (op->space). By element, and by whether there are several. */
#define ROW(E, one, several) [EMU_E_##E] = {one##_##E, several##_##E},
#define LD_GLOBAL(E, ...) ROW(E, ld_global, vld_global)
#define LD_SHARED(E, ...) ROW(E, ld_shared, vld_shared)
#define LD_LOCAL(E, ...) ROW(E, ld_local, vld_local)
#define LD_PARAM(E, ...) ROW(E, ld_param, ld_param)
#define ST_GLOBAL(E, ...) ROW(E, st_global, vst_global)
#define ST_SHARED(E, ...) ROW(E, st_shared, vst_shared)
#define ST_LOCAL(E, ...) ROW(E, st_local, vst_local)
#define TABLE(name, EACH) const emu_alu_fn NAME(name)[EMU_E_COUNT][2] = {ELEMS(EACH) EACH(B128Q)};
TABLE(emu_load_global, LD_GLOBAL)
TABLE(emu_load_shared, LD_SHARED)
TABLE(emu_load_local, LD_LOCAL)
TABLE(emu_load_param, LD_PARAM)
TABLE(emu_store_global, ST_GLOBAL)
TABLE(emu_store_shared, ST_SHARED)
TABLE(emu_store_local, ST_LOCAL)

/* red.add of integers: lanes that all name one address of global memory are summed and added once
 * (what probes count leaves that way); everything else is atom.c's. */
#define RED_ADD(name, T, REG)                                                                    \
    void NAME(emu_##name)(const struct emu_alu *o, char *regs, uint32_t mask)                    \
    {                                                                                            \
        const struct emu_op *op = OP(o);                                                         \
        const struct emu_range *r = &EMU_FRAME(regs)->wk->ranges[op->cache];                     \
        const uint64_t *a = D(o->s[0]);                                                          \
        const REG *s = (const REG *)(regs + o->s[1]);                                            \
        int first = emu_first(mask);                                                             \
        uint64_t at = a[first] + (uint64_t)op->off, differ = 0;                                  \
        T sum = 0;                                                                               \
        if (mask == UINT32_MAX) {                                                                \
            ALL differ |= a[i] ^ a[0];                                                           \
            ALL sum += (T)s[i];                                                                  \
        } else {                                                                                 \
            EMU_FOR_LANES(i, mask) differ |= a[i] ^ a[first], sum += (T)s[i];                    \
        }                                                                                        \
        if (differ || at < r->lo || at >= r->hi || at + sizeof(T) > r->hi || at & (sizeof(T) - 1)) emu_red_add(o, regs, mask); \
        else if (sum) __atomic_fetch_add((T *)at, sum, __ATOMIC_SEQ_CST);                        \
    }
RED_ADD(red_add_w, uint32_t, uint32_t)
RED_ADD(red_add_d, uint64_t, uint64_t)

/* ---- helpers -------------------------------------------------------------------------------- */

void NAME(emu_guarded)(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    mask &= *W(op->guard) ^ op->guard_flip;
    if (mask) op->real(o, regs, mask);
}
void NAME(emu_not_p)(const struct emu_alu *o, char *regs, uint32_t mask) { *W(o->d) = (*W(o->d) & ~mask) | (~*W(o->s[0]) & mask); }
void NAME(emu_mov_p)(const struct emu_alu *o, char *regs, uint32_t mask) { *W(o->d) = (*W(o->d) & ~mask) | (*W(o->s[0]) & mask); }

#define LANEWISE(name, DT, ST, expr)                                                             \
    void NAME(emu_##name)(const struct emu_alu *o, char *regs, uint32_t mask)                    \
    {                                                                                            \
        DT *d = (DT *)(regs + o->d);                                                             \
        const ST *s = (const ST *)(regs + o->s[0]);                                              \
        if (mask == UINT32_MAX) ALL d[i] = (DT)(expr);                                           \
        else ALL d[i] = mask >> i & 1 ? (DT)(expr) : d[i];                                       \
    }
LANEWISE(mov_w, uint32_t, uint32_t, s[i])
LANEWISE(mov_d, uint64_t, uint64_t, s[i])
LANEWISE(lo_dw, uint32_t, uint64_t, s[i])
LANEWISE(zext_wd, uint64_t, uint32_t, s[i])
LANEWISE(sext_wd, uint64_t, int32_t, (int64_t)s[i])
LANEWISE(sext8_w, uint32_t, uint32_t, (int32_t)(int8_t)s[i])
LANEWISE(sext16_w, uint32_t, uint32_t, (int32_t)(int16_t)s[i])
LANEWISE(sext8_h, uint32_t, uint32_t, (uint16_t)(int8_t)s[i])

void NAME(emu_mov_q)(const struct emu_alu *o, char *regs, uint32_t mask)
{
    struct quad *d = (struct quad *)(regs + o->d);
    const struct quad *s = (const struct quad *)(regs + o->s[0]);
    EMU_FOR_LANES(i, mask) d[i] = s[i];
}

/* mov.bN d, {a, b, ...} and its inverse; op->bytes: of one element, op->vec: elements, a.imm: enum
 * emu_class of the whole. Elements may be sinks (offset 0 in slots). */
void NAME(emu_pack)(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    if (op->bytes == 4 && op->vec == 2) {
        const uint32_t *lo = W(op->slots[0]), *hi = W(op->slots[1]);
        uint64_t *d = D(o->d);
        if (mask == UINT32_MAX) ALL d[i] = lo[i] | (uint64_t)hi[i] << 32;
        else ALL d[i] = mask >> i & 1 ? lo[i] | (uint64_t)hi[i] << 32 : d[i];
        return;
    }
    EMU_FOR_LANES(i, mask)
    {
        uint64_t v[2] = {0, 0};
        for (unsigned k = 0; k < op->vec; k++) {
            uint64_t x = op->bytes == 8 ? D(op->slots[k])[i] : W(op->slots[k])[i];
            memcpy((char *)v + k * op->bytes, &x, op->bytes);
        }
        if (o->imm == EMU_Q) ((struct quad *)(regs + o->d))[i] = (struct quad){v[0], v[1]};
        else if (o->imm == EMU_D) D(o->d)[i] = v[0];
        else W(o->d)[i] = (uint32_t)v[0];
    }
}
void NAME(emu_unpack)(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    if (op->bytes == 4 && op->vec == 2) {
        const uint64_t *s = D(o->s[0]);
        for (unsigned k = 0; k < 2; k++) {
            uint32_t *d = W(op->slots[k]);
            if (!op->slots[k]) continue;
            if (mask == UINT32_MAX) ALL d[i] = (uint32_t)(s[i] >> 32 * k);
            else ALL d[i] = mask >> i & 1 ? (uint32_t)(s[i] >> 32 * k) : d[i];
        }
        return;
    }
    EMU_FOR_LANES(i, mask)
    {
        uint64_t v[2] = {0, 0};
        if (o->imm == EMU_Q) memcpy(v, (struct quad *)(regs + o->s[0]) + i, 16);
        else if (o->imm == EMU_D) v[0] = D(o->s[0])[i];
        else v[0] = W(o->s[0])[i];
        for (unsigned k = 0; k < op->vec; k++) {
            uint64_t x = 0;
            memcpy(&x, (char *)v + k * op->bytes, op->bytes);
            if (!op->slots[k]) continue;
            if (op->bytes == 8) D(op->slots[k])[i] = x;
            else W(op->slots[k])[i] = (uint32_t)x;
        }
    }
}
