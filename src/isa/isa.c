/* The tables of isa.h as arrays, look-ups over them, and the reading of a form's dotted text.
 *
 * Look-ups are linear: they happen once per distinct form or special register of a module, not
 * per instruction, and comparing lengths first settles nearly every row.
 */
#include "isa/isa.h"

#include <string.h>

#define NAME(s)                                                                                                        \
    {                                                                                                                  \
        s, sizeof(s) - 1                                                                                               \
    }
struct name {
    const char *s;
    size_t len;
};

static const struct name op_names[MG_OP_COUNT] = {
    [MG_OP_none] = NAME(""),
#define OP(name, flags) [MG_OP_##name] = NAME(#name),
#include "isa/ops.def"
#undef OP
};

static const uint16_t op_flag_bits[MG_OP_COUNT] = {
#define R               MG_OPF_READS
#define W               MG_OPF_WRITES
#define A               MG_OPF_ATOMIC
#define C               MG_OPF_CONVERGENT
#define B               MG_OPF_BARRIER
#define E               MG_OPF_ENDS_BLOCK
#define N               MG_OPF_NO_DST
#define F               MG_OPF_FLOAT
#define T               MG_OPF_TWO_DST
#define O               MG_OPF_OURS
#define H               MG_OPF_HIDDEN
#define V               MG_OPF_VIDEO
#define OP(name, flags) [MG_OP_##name] = (flags),
#include "isa/ops.def"
#undef OP
};

static const struct name mod_names[MG_MOD_COUNT] = {
    [MG_MOD_none] = NAME(""),
#define MOD(name, text, class, value) [MG_MOD_##name] = NAME(text),
#include "isa/mods.def"
#undef MOD
};
static const struct {
    uint8_t class, value;
} mod_facts[MG_MOD_COUNT] = {
#define MOD(name, text, class, value) [MG_MOD_##name] = {MG_MC_##class, value},
#include "isa/mods.def"
#undef MOD
};

static const struct name type_names[MG_TYPE_COUNT] = {
    [MG_TYPE_none] = NAME(""),
#define TYPE(name, bits, kind) [MG_TYPE_##name] = NAME(#name),
#include "isa/types.def"
#undef TYPE
};
static const struct {
    uint8_t bits, kind;
} type_facts[MG_TYPE_COUNT] = {
#define TYPE(name, bits, kind) [MG_TYPE_##name] = {bits, MG_TK_##kind},
#include "isa/types.def"
#undef TYPE
};

static const struct name sreg_names[MG_SREG_COUNT] = {
    [MG_SREG_none] = NAME(""),
#define SREG(name, text, type, comps) [MG_SREG_##name] = NAME(text),
#include "isa/sregs.def"
#undef SREG
};
static const uint8_t sreg_types[MG_SREG_COUNT] = {
#define SREG(name, text, type, comps) [MG_SREG_##name] = MG_TYPE_##type,
#include "isa/sregs.def"
#undef SREG
};

static unsigned find(const struct name *names, unsigned count, const char *s, size_t len)
{
    if (!len) return 0;
    for (unsigned i = 1; i < count; i++)
        if (names[i].len == len && names[i].s[len - 1] == s[len - 1] && !memcmp(names[i].s, s, len)) return i;
    return 0;
}

const char *mg_op_name(enum mg_op op)
{
    return op < MG_OP_COUNT ? op_names[op].s : "";
}

enum mg_op mg_op_find(const char *s, size_t len)
{
    return (enum mg_op)find(op_names, MG_OP_COUNT, s, len);
}

unsigned mg_op_flags(enum mg_op op)
{
    return op < MG_OP_COUNT ? op_flag_bits[op] : 0;
}

bool mg_op_is_plain(enum mg_op op)
{
    switch (op) {
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_mul:
    case MG_OP_mad:
    case MG_OP_fma:
    case MG_OP_div:
    case MG_OP_rem:
    case MG_OP_abs:
    case MG_OP_neg:
    case MG_OP_min:
    case MG_OP_max:
    case MG_OP_and:
    case MG_OP_or:
    case MG_OP_xor:
    case MG_OP_not:
    case MG_OP_shl:
    case MG_OP_shr:
    case MG_OP_bfe:
    case MG_OP_bfi:
    case MG_OP_brev:
    case MG_OP_clz:
    case MG_OP_popc:
    case MG_OP_bfind:
    case MG_OP_cvt:
    case MG_OP_mov:
    case MG_OP_setp:
    case MG_OP_set:
    case MG_OP_selp:
    case MG_OP_slct:
    case MG_OP_lop3:
    case MG_OP_shf:
    case MG_OP_prmt:
    case MG_OP_sad:
    case MG_OP_cnot:
        return true;
    default:
        return false;
    }
}

const char *mg_mod_text(enum mg_mod m)
{
    return m < MG_MOD_COUNT ? mod_names[m].s : "";
}

enum mg_mod mg_mod_find(const char *s, size_t len)
{
    return (enum mg_mod)find(mod_names, MG_MOD_COUNT, s, len);
}

enum mg_mod_class mg_mod_class(enum mg_mod m)
{
    return m < MG_MOD_COUNT ? (enum mg_mod_class)mod_facts[m].class : MG_MC_NONE;
}

enum mg_space mg_mod_space(enum mg_mod m)
{
    return mg_mod_class(m) == MG_MC_SPACE ? (enum mg_space)mod_facts[m].value : MG_SPACE_generic;
}

const char *mg_type_name(enum mg_type t)
{
    return t < MG_TYPE_COUNT ? type_names[t].s : "";
}

unsigned mg_type_bits(enum mg_type t)
{
    return t < MG_TYPE_COUNT ? type_facts[t].bits : 0;
}

enum mg_type_kind mg_type_kind(enum mg_type t)
{
    return t < MG_TYPE_COUNT ? (enum mg_type_kind)type_facts[t].kind : MG_TK_NONE;
}

enum mg_type mg_type_find(const char *s, size_t len)
{
    return (enum mg_type)find(type_names, MG_TYPE_COUNT, s, len);
}

const char *mg_space_name(enum mg_space s)
{
    static const char *const names[MG_SPACE_COUNT] = {
        [MG_SPACE_generic] = "",    [MG_SPACE_reg] = "reg",       [MG_SPACE_sreg] = "sreg",
        [MG_SPACE_const] = "const", [MG_SPACE_global] = "global", [MG_SPACE_local] = "local",
        [MG_SPACE_param] = "param", [MG_SPACE_shared] = "shared", [MG_SPACE_tex] = "tex"};
    return s < MG_SPACE_COUNT ? names[s] : "";
}

const char *mg_sreg_text(enum mg_sreg r)
{
    return r < MG_SREG_COUNT ? sreg_names[r].s : "";
}

enum mg_sreg mg_sreg_find(const char *s, size_t len)
{
    return (enum mg_sreg)find(sreg_names, MG_SREG_COUNT, s, len);
}

enum mg_type mg_sreg_type(enum mg_sreg r)
{
    return r < MG_SREG_COUNT ? (enum mg_type)sreg_types[r] : MG_TYPE_none;
}

/* The table's flags hold for the stem; some forms of a stem behave otherwise. */
static unsigned refine(const struct mg_form *f, unsigned flags)
{
    switch ((enum mg_op)f->op) {
    case MG_OP_bar:
    case MG_OP_barrier:
        if (mg_form_has(f, MG_MOD_red)) flags &= ~(unsigned)MG_OPF_NO_DST;
        if (mg_form_has(f, MG_MOD_warp)) flags &= ~(unsigned)MG_OPF_BARRIER;
        break;
    case MG_OP_cp:
        if (mg_form_has(f, MG_MOD_commit_group) || mg_form_has(f, MG_MOD_wait_group) || mg_form_has(f, MG_MOD_wait_all))
            flags &= ~(unsigned)(MG_OPF_READS | MG_OPF_WRITES);
        if (mg_form_has(f, MG_MOD_mbarrier)) flags &= ~(unsigned)MG_OPF_READS;
        if (mg_form_has(f, MG_MOD_prefetch)) flags &= ~(unsigned)MG_OPF_WRITES;
        if (mg_form_has(f, MG_MOD_red) || mg_form_has(f, MG_MOD_reduce)) flags |= MG_OPF_ATOMIC;
        break;
    case MG_OP_mbarrier:
        if (mg_form_has(f, MG_MOD_init) || mg_form_has(f, MG_MOD_inval))
            flags = (flags & ~(unsigned)MG_OPF_READS) | MG_OPF_NO_DST;
        if (mg_form_has(f, MG_MOD_expect_tx) || mg_form_has(f, MG_MOD_complete_tx))
            if (!mg_form_has(f, MG_MOD_arrive) && !mg_form_has(f, MG_MOD_arrive_drop)) flags |= MG_OPF_NO_DST;
        if (mg_form_has(f, MG_MOD_pending_count)) flags &= ~(unsigned)(MG_OPF_READS | MG_OPF_WRITES);
        break;
    case MG_OP_multimem:
        if (mg_form_has(f, MG_MOD_red)) flags |= MG_OPF_ATOMIC | MG_OPF_NO_DST;
        if (mg_form_has(f, MG_MOD_st)) flags = (flags & ~(unsigned)MG_OPF_READS) | MG_OPF_NO_DST;
        if (mg_form_has(f, MG_MOD_ld_reduce)) flags &= ~(unsigned)MG_OPF_WRITES;
        if (mg_form_has(f, MG_MOD_cp)) flags |= MG_OPF_NO_DST;
        break;
    case MG_OP_wmma:
        if (mg_form_has(f, MG_MOD_load)) flags = (flags | MG_OPF_READS) & ~(unsigned)MG_OPF_FLOAT;
        if (mg_form_has(f, MG_MOD_store)) flags = (flags | MG_OPF_WRITES | MG_OPF_NO_DST) & ~(unsigned)MG_OPF_FLOAT;
        break;
    case MG_OP_wgmma:
        if (mg_form_has(f, MG_MOD_mma_async)) flags = (flags | MG_OPF_READS) & ~(unsigned)MG_OPF_NO_DST;
        break;
    case MG_OP_tcgen05:
        if (mg_form_has(f, MG_MOD_ld)) flags &= ~(unsigned)MG_OPF_NO_DST;
        if (mg_form_has(f, MG_MOD_alloc)) flags |= MG_OPF_WRITES;
        if (mg_form_has(f, MG_MOD_cp)) flags |= MG_OPF_READS;
        break;
    case MG_OP_clusterlaunchcontrol:
        if (mg_form_has(f, MG_MOD_query_cancel)) flags &= ~(unsigned)MG_OPF_NO_DST;
        break;
    default:
        break;
    }
    return flags;
}

void mg_form_parse(struct mg_form *f, const char *text, size_t len)
{
    const char *end = text + len, *dot = memchr(text, '.', len);
    *f = (struct mg_form){.text = f->text};
    f->op = (uint16_t)mg_op_find(text, dot ? (size_t)(dot - text) : len);
    f->unknown = !f->op;
    while (dot) {
        const char *word = dot + 1;
        dot = memchr(word, '.', (size_t)(end - word));
        enum mg_mod m = mg_mod_find(word, (size_t)((dot ? dot : end) - word));
        if (!m) f->unknown = 1;
        if (f->n_mods == MG_FORM_MAX_MODS) {
            f->unknown = 1;
            break;
        }
        f->mods[f->n_mods++] = (uint16_t)m;
        uint8_t value = mod_facts[m].value;
        switch ((enum mg_mod_class)mod_facts[m].class) {
        case MG_MC_TYPE:
            if (f->n_types < 4) f->types[f->n_types++] = value;
            break;
        case MG_MC_SPACE:
            if (!f->space) f->space = value;
            break;
        case MG_MC_VEC:
            f->vec = value;
            break;
        case MG_MC_ROUND:
            if (!f->rounding) f->rounding = (uint8_t)m;
            break;
        default:
            break;
        }
    }
    f->op_flags = (uint16_t)refine(f, mg_op_flags((enum mg_op)f->op));
}
