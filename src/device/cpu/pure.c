/* Calls of functions of arithmetic alone, which compiled code does itself: such a function is one of the caller's
 * object (plugin/pure.c). It reads its parameters, which are registers, and has branches forward and one end, where all
 * lanes meet; so lanes of a set go on behind the call together, as in the emulator, and nothing can stop them inside.
 */
#include "device/cpu/cpu.h"

#include <stdlib.h>

#include "base/vec.h"

enum { MOST_OPS = 2000, MOST_ARGS = 16 };

/* By its operations, not by their forms. Behind all the decoder puts an end of its own. */
static bool may_be_pure(const struct emu_func *fn)
{
    if (fn->n_ops < 2 || fn->n_ops > MOST_OPS || fn->n_rets != 1 || fn->n_sregs || fn->entry != fn->ops) return false;
    const struct emu_op *end = &fn->ops[fn->n_ops - 2];
    for (const struct emu_op *op = fn->ops; op < end; op++) {
        bool jumps = op->ctl == EMU_CTL_NEXT || op->ctl == EMU_CTL_BRA;
        if ((op->ctl && !jumps) || op->probe || (jumps && (op->target <= op || op->target > end))) return false;
    }
    return end->ctl == EMU_CTL_RET && !end->guard;
}

static bool is_pure(const struct cpu_func *f)
{
    for (uint32_t i = 0; i < f->n_insts; i++) {
        const struct cpu_inst *in = &f->insts[i];
        switch ((enum cpu_kind)in->kind) {
        case CPU_NOP:
        case CPU_CTL:
        case CPU_ALU:
        case CPU_MOV:
        case CPU_NOT_P:
        case CPU_LOW:
        case CPU_ZEXT:
        case CPU_SEXT:
        case CPU_PACK:
        case CPU_UNPACK:
            break;
        default:
            return false;
        }
    }
    return true;
}

bool cpu_calls_pure(const struct cpu_func *f, const struct emu_func *fn)
{
    for (uint32_t k = 0; k < f->n_pures; k++)
        if (f->pures[k]->fn == fn) return true;
    return false;
}

/* Which of f's the function is; UINT32_MAX: none. */
static uint32_t find_callee(struct cpu_func *f, const struct emu_func *fn)
{
    for (uint32_t k = 0; k < f->n_pures; k++)
        if (f->pures[k]->fn == fn) return k;
    struct cpu_func *g = may_be_pure(fn) ? cpu_lower_pure(fn, f->dims) : NULL;
    if (!g || !is_pure(g)) {
        cpu_func_free(g);
        return UINT32_MAX;
    }
    f->pures = mg_xrealloc(f->pures, (f->n_pures + 1) * sizeof(struct cpu_func *));
    f->pures[f->n_pures] = g;
    return f->n_pures++;
}

static bool is_number(unsigned c)
{
    return c == EMU_W || c == EMU_D;
}

bool cpu_lower_pure_call(struct cpu_func *f, uint32_t ix, struct cpu_inst *in)
{
    const struct emu_op *op = &f->fn->ops[ix];
    const struct emu_call *call = op->ext;
    const struct emu_func *fn = call->callee;
    if (op->guard || op->fall != op + 1 || call->n_in > MOST_ARGS || call->n_in != fn->n_params || call->n_out != 1 ||
        fn->n_rets != 1)
        return false;
    const struct emu_arg *out = &call->actual_out[0];
    bool ok =
        out->to_reg && fn->rets[0].from_reg && out->to_class == fn->rets[0].from_class && is_number(out->to_class);
    for (uint32_t k = 0; k < call->n_in && ok; k++) {
        const struct emu_arg *a = &call->actual_in[k], *to = &fn->params[k];
        ok = a->from_reg && to->to_reg && a->from_class == to->to_class && is_number(a->from_class) &&
             cpu_reg_at(f, a->from);
    }
    in->callee = ok && cpu_reg_at(f, out->to) ? find_callee(f, fn) : UINT32_MAX;
    if (in->callee == UINT32_MAX) {
        in->callee = 0;
        return false;
    }
    in->kind = CPU_PURE;
    in->ctl = EMU_CTL_NONE;
    in->known = 1;
    in->d = cpu_reg_at(f, out->to);
    in->n_list = call->n_in;
    in->list = mg_arena_array(&f->arena, uint32_t, call->n_in + 1);
    for (uint32_t k = 0; k < call->n_in; k++) in->list[k] = cpu_reg_at(f, call->actual_in[k].from);
    return true;
}
