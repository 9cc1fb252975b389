/* Finds the function for an instruction form: the form's modifiers become one key, and the row with
 * that opcode, those types and that key is searched in the tables of alu_*.c and vec_alu_*.c.
 *
 * This happens once per form and module, so a linear search will do. What no row has is not known
 * and refused by the decoder: nothing is approximated by a neighbouring form.
 * PTX 1.x: on sm_1x every f32 operation is .ftz, operations that later need .approx or a rounding
 * have one, and mad.f32 truncates its product; f64 stays f64 (map_f64_to_f32 programs compute with
 * more precision than an sm_10 did).
 */
#include "device/emu/alu_priv.h"

#include <stdlib.h>

#include "base/env.h"

static const struct {
    uint16_t mod;
    uint32_t key;
} mod_keys[] = {
    {MG_MOD_rn, K_RN},
    {MG_MOD_rz, K_RZ},
    {MG_MOD_rm, K_RM},
    {MG_MOD_rp, K_RP},
    {MG_MOD_rni, K_RNI},
    {MG_MOD_rzi, K_RZI},
    {MG_MOD_rmi, K_RMI},
    {MG_MOD_rpi, K_RPI},
    {MG_MOD_ftz, K_FTZ},
    {MG_MOD_sat, K_SAT},
    {MG_MOD_approx, K_APPROX},
    {MG_MOD_full, K_FULL},
    {MG_MOD_wide, K_WIDE},
    {MG_MOD_NaN, K_NAN},
    {MG_MOD_abs, K_ABS},
    {MG_MOD_xorsign, K_XORSIGN},
    {MG_MOD_relu, K_RELU},
    {MG_MOD_cc, K_CC},
    {MG_MOD_clamp, K_CLAMP},
    {MG_MOD_wrap, K_WRAP},
    {MG_MOD_shiftamt, K_SHIFTAMT},
    {MG_MOD_l, K_L},
    {MG_MOD_r, K_R},
    {MG_MOD_pack, K_PACK},
    {MG_MOD_po, K_PO},
    {MG_MOD_shr7, K_SHR7},
    {MG_MOD_shr15, K_SHR15},
    {MG_MOD_and, K_AND},
    {MG_MOD_or, K_OR},
    {MG_MOD_xor, K_XOR},
};
/* Words that mean a sub-operation; lo and hi are either parts of a product or comparisons. */
static const struct {
    uint16_t mod;
    uint8_t sub;
} sub_keys[] = {
    {MG_MOD_eq, CMP_eq},
    {MG_MOD_ne, CMP_ne},
    {MG_MOD_lt, CMP_lt},
    {MG_MOD_le, CMP_le},
    {MG_MOD_gt, CMP_gt},
    {MG_MOD_ge, CMP_ge},
    {MG_MOD_lo, CMP_lt},
    {MG_MOD_ls, CMP_le},
    {MG_MOD_hi, CMP_gt},
    {MG_MOD_hs, CMP_ge},
    {MG_MOD_equ, CMP_equ},
    {MG_MOD_neu, CMP_neu},
    {MG_MOD_ltu, CMP_ltu},
    {MG_MOD_leu, CMP_leu},
    {MG_MOD_gtu, CMP_gtu},
    {MG_MOD_geu, CMP_geu},
    {MG_MOD_num, CMP_num},
    {MG_MOD_nan, CMP_nan},
    /* testp */
    {MG_MOD_finite, 1},
    {MG_MOD_infinite, 2},
    {MG_MOD_number, 3},
    {MG_MOD_notanumber, 4},
    {MG_MOD_normal, 5},
    {MG_MOD_subnormal, 6},
    /* prmt */
    {MG_MOD_f4e, 1},
    {MG_MOD_b4e, 2},
    {MG_MOD_rc8, 3},
    {MG_MOD_ecl, 4},
    {MG_MOD_ecr, 5},
    {MG_MOD_rc16, 6},
};

static bool has_compare(unsigned op)
{
    return op == MG_OP_setp || op == MG_OP_set || op == MG_OP_vset || op == MG_OP_vset2 || op == MG_OP_vset4;
}

static bool key_of(const struct mg_form *f, uint32_t *key)
{
    uint32_t k = 0;
    for (unsigned i = 0; i < f->n_mods; i++) {
        unsigned m = f->mods[i], j;
        if (mg_mod_class((enum mg_mod)m) == MG_MC_TYPE) continue;
        if (!has_compare(f->op) && (m == MG_MOD_lo || m == MG_MOD_hi)) {
            k |= m == MG_MOD_lo ? K_LO : K_HI;
            continue;
        }
        bool video = f->op_flags & MG_OPF_VIDEO && (m == MG_MOD_add || m == MG_MOD_min || m == MG_MOD_max);
        if (video) { /* second operation; its own bits, unused by video otherwise */
            k |= m == MG_MOD_add ? K_AND : m == MG_MOD_min ? K_OR : K_XOR;
            continue;
        }
        for (j = 0; j < MG_COUNT_OF(mod_keys) && mod_keys[j].mod != m; j++) {
        }
        if (j < MG_COUNT_OF(mod_keys)) {
            k |= mod_keys[j].key;
            continue;
        }
        for (j = 0; j < MG_COUNT_OF(sub_keys) && sub_keys[j].mod != m; j++) {
        }
        if (j == MG_COUNT_OF(sub_keys)) return false;
        k |= (uint32_t)sub_keys[j].sub << K_SUB_SHIFT;
    }
    *key = k;
    return true;
}

/* Roundings that a text may leave out, and the rules of PTX 1.x */
static uint32_t complete_key(const struct mg_form *f, uint32_t key, unsigned sm, bool ftz_implied)
{
    enum mg_type t = (enum mg_type)f->types[0], t1 = (enum mg_type)f->types[1];
    bool is_float = mg_type_kind(t) == MG_TK_FLOAT || t == MG_TYPE_f16x2 || t == MG_TYPE_bf16x2;
    bool old = ftz_implied || (sm && sm < 20);
    bool f32 = t == MG_TYPE_f32 || t1 == MG_TYPE_f32;
    switch (f->op) {
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_mul:
        if ((is_float || t == MG_TYPE_f32x2) && !(key & K_ROUND)) key |= K_RN;
        break;
    case MG_OP_fma:
    case MG_OP_mad:
        if (is_float && !(key & K_ROUND) && !(old && t == MG_TYPE_f32)) key |= K_RN;
        break;
    case MG_OP_div:
    case MG_OP_rcp:
    case MG_OP_sqrt:
        if (is_float && !(key & (K_ROUND | K_APPROX | K_FULL))) key |= t == MG_TYPE_f64 ? K_RN : K_APPROX;
        break;
    case MG_OP_rsqrt:
    case MG_OP_sin:
    case MG_OP_cos:
    case MG_OP_lg2:
    case MG_OP_ex2:
    case MG_OP_tanh:
        key |= K_APPROX;
        break;
    case MG_OP_cvt:
    case MG_OP_set:
    case MG_OP_setp:
    case MG_OP_slct:
    case MG_OP_abs:
    case MG_OP_neg:
    case MG_OP_min:
    case MG_OP_max:
        break;
    default:
        f32 = false;
    }
    return old && f32 ? key | K_FTZ : key;
}

static const struct alu_row *search(const struct alu_table *t, const struct mg_form *f, unsigned n_src, uint32_t key)
{
    for (unsigned i = 0; i < t->n; i++) {
        const struct alu_row *r = &t->rows[i];
        if (r->op != f->op || r->key != key) continue;
        if (r->t[0] != f->types[0] || r->t[1] != f->types[1] || r->t[2] != f->types[2]) continue;
        unsigned n = r->sets_imm != 0;
        while (n < 4u + (r->sets_imm != 0) && r->st[n - (r->sets_imm != 0)]) n++;
        if (n == n_src) return r;
    }
    return NULL;
}

#define X(name) {&name##_base, &name##_avx2, &name##_avx512},
static const struct alu_table *const tables[][EMU_ISA_COUNT] = {
    ALU_TABLES(X){&alu_rare, &alu_rare, &alu_rare},
};
#undef X

/* The row, and its opcode: rows are numbered through all tables. */
static const struct alu_row *search_all(const struct mg_form *f, unsigned n_src, uint32_t key, enum emu_isa isa,
                                        uint16_t *opcode)
{
    unsigned at = EMU_OP_COUNT;
    for (unsigned i = 0; i < MG_COUNT_OF(tables); i++) {
        const struct alu_table *t = tables[i][isa];
        const struct alu_row *r = search(t, f, n_src, key);
        if (r) *opcode = (uint16_t)(at + (r - t->rows));
        if (r) return r;
        at += t->n;
    }
    return NULL;
}

const struct alu_row *emu_alu_row(unsigned opcode, enum emu_isa isa)
{
    unsigned at = opcode - EMU_OP_COUNT;
    for (unsigned i = 0; i < MG_COUNT_OF(tables) && opcode >= EMU_OP_COUNT; i++) {
        const struct alu_table *t = tables[i][isa];
        if (at < t->n) return &t->rows[at];
        at -= t->n;
    }
    return NULL;
}

static uint8_t class_of(enum mg_type t)
{
    if (!t) return EMU_NONE;
    if (t == MG_TYPE_pred) return EMU_P;
    unsigned bits = mg_type_bits(t);
    return bits == 128 ? EMU_Q : bits == 64 ? EMU_D : EMU_W;
}

static void describe(const struct alu_row *r, uint16_t opcode, struct emu_alu_desc *out)
{
    *out = (struct emu_alu_desc){.opcode = opcode,
                                 .d = class_of((enum mg_type)r->dt),
                                 .d2 = class_of((enum mg_type)r->d2t),
                                 .uses_cc = r->uses_cc,
                                 .sets_imm = r->sets_imm,
                                 .imm = r->imm};
    while (out->n_src < 4 && r->st[out->n_src]) {
        out->src_type[out->n_src] = r->st[out->n_src];
        out->src[out->n_src] = class_of((enum mg_type)r->st[out->n_src]);
        out->n_src++;
    }
}

/* setp and set: rows have neither the boolean operator nor set's destination type. */
static bool find_compare(const struct mg_form *f, unsigned n_src, uint32_t key, enum emu_isa isa,
                         struct emu_alu_desc *out)
{
    static const struct {
        uint8_t type, truth;
    } truths[] = {{MG_TYPE_u32, 0}, {MG_TYPE_s32, 0},   {MG_TYPE_b32, 0},   {MG_TYPE_f32, 1},
                  {MG_TYPE_f16, 2}, {MG_TYPE_bf16, 3},  {MG_TYPE_u16, 4},   {MG_TYPE_s16, 4},
                  {MG_TYPE_b16, 4}, {MG_TYPE_f16x2, 2}, {MG_TYPE_bf16x2, 3}};
    struct mg_form g = *f;
    uint32_t bool_op = (key & K_BOOL) >> K_BOOL_SHIFT;
    unsigned truth = 0;
    if (n_src != (bool_op ? 3u : 2u)) return false;
    if (f->op == MG_OP_set) {
        while (truth < MG_COUNT_OF(truths) && truths[truth].type != f->types[0]) truth++;
        if (truth == MG_COUNT_OF(truths)) return false;
        truth = truths[truth].truth;
        g.types[0] = 0;
    }
    uint16_t opcode;
    const struct alu_row *r = search_all(&g, 2, key & ~(uint32_t)K_BOOL, isa, &opcode);
    if (!r) return false;
    describe(r, opcode, out);
    out->imm = bool_op | truth << 2;
    if (bool_op) {
        out->n_src = 3;
        out->src[2] = EMU_P;
        out->src_type[2] = MG_TYPE_pred;
    }
    return true;
}

bool emu_alu_find(const struct mg_form *f, uint32_t n_opnds, unsigned sm, bool ftz_implied, enum emu_isa isa,
                  struct emu_alu_desc *out)
{
    uint32_t key;
    uint16_t opcode;
    if (f->op == MG_OP_cvt && n_opnds >= 2 && alu_cvt_small(f, n_opnds - 1, out)) return true;
    if (f->unknown || n_opnds < 2 || n_opnds > 6 || f->vec || f->space || !key_of(f, &key)) return false;
    key = complete_key(f, key, sm, ftz_implied);
    unsigned n_src = n_opnds - 1;
    if (f->op == MG_OP_setp || f->op == MG_OP_set) return find_compare(f, n_src, key, isa, out);
    if (f->op_flags & MG_OPF_VIDEO && alu_video_find(f, n_src, key, out)) return true;
    const struct alu_row *r = search_all(f, n_src, key, isa, &opcode);
    if (!r && f->op == MG_OP_cvt) return alu_cvt_any(f, n_src, key, out);
    if (!r) return false;
    describe(r, opcode, out);
    return true;
}

enum emu_isa emu_isa_best(void)
{
    static const char *const names[] = {"base", "avx2", "avx512"};
    enum emu_isa best = EMU_ISA_BASE;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
        best = EMU_ISA_AVX2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512cd"))
            best = EMU_ISA_AVX512;
    }
    if (mg_env_is(MG_ENV_ISA, "sse")) best = EMU_ISA_BASE; /* and no AVX: emu_whole_needs_exchange */
    for (unsigned i = 0; i < best; i++)
        if (mg_env_is(MG_ENV_ISA, names[i])) best = (enum emu_isa)i;
    return best;
}
