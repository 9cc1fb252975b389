/* Which of nvprof's eight instruction metrics an instruction of PTX counts as. nvprof counts machine code; an
 * instruction here goes where the machine code that it mostly becomes does. What nvprof has no class for, f16 and
 * matrices, is miscellaneous, and so are moves, parameters and addresses, which mostly become nothing. */
#include "report/overview/priv.h"

#include <string.h>

#include "isa/isa.h"

const char *const metric_names[METRIC_COUNT] = {/* ORDER METRICS */
                                                "fp32",    "fp64",   "integer",      "bit convert",
                                                "control", "memory", "inter-thread", "miscellaneous"};

static bool is_moving(enum mg_op op)
{
    return op == MG_OP_mov || op == MG_OP_cvta || op == MG_OP_selp || op == MG_OP_slct || op == MG_OP_prmt ||
           op == MG_OP_isspacep || op == MG_OP_mapa || op == MG_OP_getctarank || op == MG_OP_activemask ||
           op == MG_OP_nanosleep || op == MG_OP_fence || op == MG_OP_membar || op == MG_OP_mma || op == MG_OP_wmma ||
           op == MG_OP_wgmma || op == MG_OP_tcgen05 || op == MG_OP_none;
}

/* By the type that it computes in: the last of cvt-like forms is the source, the first the result. */
static enum overview_metric by_type(const struct mg_form *f)
{
    for (unsigned i = 0; i < f->n_types; i++) {
        enum mg_type_kind kind = mg_type_kind((enum mg_type)f->types[i]);
        if (kind == MG_TK_PACKED) return METRIC_MISC;
        if (kind != MG_TK_FLOAT) continue;
        unsigned bits = mg_type_bits((enum mg_type)f->types[i]);
        return bits == 64 ? METRIC_FP64 : bits == 32 ? METRIC_FP32 : METRIC_MISC;
    }
    return METRIC_INTEGER;
}

enum overview_metric metric_of(const char *op)
{
    struct mg_form f = {0};
    mg_form_parse(&f, op, strlen(op));
    switch (f.op) {
    case MG_OP_shfl:
    case MG_OP_vote:
    case MG_OP_match:
    case MG_OP_redux:
    case MG_OP_elect:
        return METRIC_LANES;
    case MG_OP_cvt:
        return METRIC_CONVERT;
    default:
        break;
    }
    if (is_moving((enum mg_op)f.op)) return METRIC_MISC;
    if (f.op_flags & (MG_OPF_READS | MG_OPF_WRITES | MG_OPF_ATOMIC))
        return f.space == MG_SPACE_param ? METRIC_MISC : METRIC_MEMORY;
    if (f.op_flags & MG_OPF_ENDS_BLOCK) return METRIC_CONTROL;
    if (f.op_flags & (MG_OPF_BARRIER | MG_OPF_CONVERGENT)) return METRIC_MISC;
    if (!f.n_types) return METRIC_MISC;
    return by_type(&f);
}
