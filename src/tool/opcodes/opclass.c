/* Classes of instructions: one table row per opcode, refined by the types of the form. */
#include "tool/opcodes/opclass.h"

/* Class by opcode; what computes on floats as well as integers stands under integer and is refined. */
static enum mg_op_class class_of_op(enum mg_op op)
{
    switch (op) {
    case MG_OP_abs:
    case MG_OP_add:
    case MG_OP_addc:
    case MG_OP_cos:
    case MG_OP_div:
    case MG_OP_dp2a:
    case MG_OP_dp4a:
    case MG_OP_ex2:
    case MG_OP_fma:
    case MG_OP_lg2:
    case MG_OP_mad:
    case MG_OP_mad24:
    case MG_OP_madc:
    case MG_OP_max:
    case MG_OP_min:
    case MG_OP_mul:
    case MG_OP_mul24:
    case MG_OP_neg:
    case MG_OP_rcp:
    case MG_OP_rem:
    case MG_OP_rsqrt:
    case MG_OP_sad:
    case MG_OP_sin:
    case MG_OP_sqrt:
    case MG_OP_sub:
    case MG_OP_subc:
    case MG_OP_tanh:
    case MG_OP_copysign:
    case MG_OP_popc:
    case MG_OP_clz:
    case MG_OP_bfind:
    case MG_OP_fns:
        return MG_CLASS_INTEGER;
    case MG_OP_mma:
    case MG_OP_wmma:
    case MG_OP_wgmma:
    case MG_OP_tcgen05:
    case MG_OP_ldmatrix:
    case MG_OP_stmatrix:
    case MG_OP_movmatrix:
        return MG_CLASS_MATRIX;
    case MG_OP_vabsdiff:
    case MG_OP_vabsdiff2:
    case MG_OP_vabsdiff4:
    case MG_OP_vadd:
    case MG_OP_vadd2:
    case MG_OP_vadd4:
    case MG_OP_vavrg2:
    case MG_OP_vavrg4:
    case MG_OP_vmad:
    case MG_OP_vmax:
    case MG_OP_vmax2:
    case MG_OP_vmax4:
    case MG_OP_vmin:
    case MG_OP_vmin2:
    case MG_OP_vmin4:
    case MG_OP_vset:
    case MG_OP_vset2:
    case MG_OP_vset4:
    case MG_OP_vshl:
    case MG_OP_vshr:
    case MG_OP_vsub:
    case MG_OP_vsub2:
    case MG_OP_vsub4:
        return MG_CLASS_VIDEO;
    case MG_OP_setp:
    case MG_OP_set:
    case MG_OP_testp:
    case MG_OP_slct:
    case MG_OP_selp:
    case MG_OP_isspacep:
    case MG_OP_istypep:
        return MG_CLASS_COMPARE;
    case MG_OP_and:
    case MG_OP_or:
    case MG_OP_xor:
    case MG_OP_not:
    case MG_OP_cnot:
    case MG_OP_lop3:
    case MG_OP_shl:
    case MG_OP_shr:
    case MG_OP_shf:
    case MG_OP_bfe:
    case MG_OP_bfi:
    case MG_OP_bmsk:
    case MG_OP_brev:
    case MG_OP_szext:
        return MG_CLASS_LOGIC;
    case MG_OP_mov:
    case MG_OP_cvt:
    case MG_OP_cvta:
    case MG_OP_prmt:
    case MG_OP_shfl:
    case MG_OP_mapa:
    case MG_OP_getctarank:
    case MG_OP_createpolicy:
    case MG_OP_stacksave:
    case MG_OP_stackrestore:
    case MG_OP_alloca:
        return MG_CLASS_MOVE;
    case MG_OP_ld:
    case MG_OP_ldu:
    case MG_OP_st:
    case MG_OP_cp:
    case MG_OP_prefetch:
    case MG_OP_prefetchu:
    case MG_OP_discard:
    case MG_OP_applypriority:
    case MG_OP_multimem:
    case MG_OP_tensormap:
        return MG_CLASS_MEMORY;
    case MG_OP_atom:
    case MG_OP_red:
        return MG_CLASS_ATOMIC;
    case MG_OP_tex:
    case MG_OP_tld4:
    case MG_OP_txq:
    case MG_OP_suld:
    case MG_OP_sust:
    case MG_OP_sured:
    case MG_OP_suq:
        return MG_CLASS_TEXTURE;
    case MG_OP_bra:
    case MG_OP_brx:
    case MG_OP_call:
    case MG_OP_ret:
    case MG_OP_exit:
    case MG_OP_trap:
    case MG_OP_brkpt:
        return MG_CLASS_CONTROL;
    case MG_OP_bar:
    case MG_OP_barrier:
    case MG_OP_membar:
    case MG_OP_fence:
    case MG_OP_mbarrier:
    case MG_OP_vote:
    case MG_OP_match:
    case MG_OP_activemask:
    case MG_OP_redux:
    case MG_OP_elect:
    case MG_OP_griddepcontrol:
    case MG_OP_clusterlaunchcontrol:
    case MG_OP_nanosleep:
    case MG_OP_setmaxnreg:
    case MG_OP_pmevent:
        return MG_CLASS_SYNC;
    default:
        return MG_CLASS_OTHER;
    }
}

static bool is_half(unsigned type)
{
    return type == MG_TYPE_f16 || type == MG_TYPE_bf16 || type == MG_TYPE_f16x2 || type == MG_TYPE_bf16x2;
}

enum mg_op_class mg_form_class(const struct mg_form *f)
{
    enum mg_op_class c = class_of_op((enum mg_op)f->op);
    if (f->op == MG_OP_cp && mg_form_has(f, MG_MOD_wait_group)) return MG_CLASS_SYNC;
    if (c != MG_CLASS_INTEGER || !f->n_types) return c;
    if (is_half(f->types[0])) return MG_CLASS_HALF;
    return mg_type_kind((enum mg_type)f->types[0]) == MG_TK_FLOAT || f->types[0] == MG_TYPE_f32x2 ? MG_CLASS_FLOAT : c;
}

enum mg_gt_class mg_form_gt_class(const struct mg_form *f)
{
    switch (mg_form_class(f)) {
    case MG_CLASS_MOVE:
        return MG_GT_MOVE;
    case MG_CLASS_LOGIC:
    case MG_CLASS_COMPARE:
        return f->op == MG_OP_selp || f->op == MG_OP_slct ? MG_GT_MOVE : MG_GT_LOGIC;
    case MG_CLASS_CONTROL:
    case MG_CLASS_SYNC:
        return MG_GT_CONTROL;
    case MG_CLASS_MEMORY:
    case MG_CLASS_ATOMIC:
    case MG_CLASS_TEXTURE:
        return MG_GT_SEND;
    case MG_CLASS_MATRIX:
        return f->op == MG_OP_ldmatrix || f->op == MG_OP_stmatrix ? MG_GT_SEND
               : f->op == MG_OP_movmatrix                         ? MG_GT_MOVE
                                                                  : MG_GT_COMPUTATION;
    case MG_CLASS_OTHER:
        return MG_GT_MOVE;
    default:
        return f->op == MG_OP_min || f->op == MG_OP_max ? MG_GT_LOGIC : MG_GT_COMPUTATION;
    }
}

enum mg_op_width mg_form_width(const struct mg_form *f)
{
    enum mg_op_class c = mg_form_class(f);
    if (c == MG_CLASS_MATRIX) return MG_WIDTH_MATRIX;
    if (f->vec == 2) return MG_WIDTH_V2;
    if (f->vec == 4) return MG_WIDTH_V4;
    if (f->vec == 8) return MG_WIDTH_V8;
    if (c == MG_CLASS_VIDEO || f->op == MG_OP_dp2a || f->op == MG_OP_dp4a) return MG_WIDTH_PACKED;
    return f->n_types && mg_type_kind((enum mg_type)f->types[0]) == MG_TK_PACKED ? MG_WIDTH_PACKED : MG_WIDTH_SCALAR;
}

const char *mg_op_class_name(enum mg_op_class c)
{
    static const char *const names[] = {"integer", "float",  "half",   "matrix",  "video",   "compare", "logic",
                                        "move",    "memory", "atomic", "texture", "control", "sync",    "other"};
    return names[c];
}

const char *mg_gt_class_name(enum mg_gt_class c)
{
    static const char *const names[] = {"move", "logic", "control", "computation", "send"};
    return names[c];
}

const char *mg_op_width_name(enum mg_op_width w)
{
    static const char *const names[] = {"scalar", "v2", "v4", "v8", "packed", "matrix"};
    return names[w];
}
