/* Some bits of one vector and the others of another, (x & C) | (y & ~C), in lanes under a mask, where the others keep x
 * or y. LLVM 19 (19.1.7) makes wrong code of it with AVX-512: its patterns of VPTERNLOG under a mask exchange two
 * operands. So the mask is made part of C, which is 0 (or all ones) where y (or x) is kept. tests/cpu/merge.sh */
#include "device/cpu/plugin/jit.h"

typedef LLVMValueRef val;

static val behind_casts(val v)
{
    while (LLVMIsABitCastInst(v)) v = LLVMGetOperand(v, 0);
    return v;
}

/* v = of[0] & *c, *c a constant of a vector */
static bool is_masked(val v, val *of, val *c)
{
    if (!LLVMIsAInstruction(v) || LLVMGetInstructionOpcode(v) != LLVMAnd) return false;
    for (unsigned i = 0; i < 2; i++) {
        *c = LLVMGetOperand(v, i);
        *of = LLVMGetOperand(v, 1 - i);
        if (LLVMIsConstant(*c)) return true;
    }
    return false;
}

/* What the select is replaced by, NULL: it is of another form. */
static val without_mask(LLVMBuilderRef b, val select)
{
    if (LLVMGetTypeKind(LLVMTypeOf(LLVMGetCondition(select))) != LLVMVectorTypeKind) return NULL;
    for (unsigned arm = 1; arm < 3; arm++) {
        val merge = behind_casts(LLVMGetOperand(select, arm)), kept = behind_casts(LLVMGetOperand(select, 3 - arm));
        val x, y, c, other;
        if (!LLVMIsAInstruction(merge) || LLVMGetInstructionOpcode(merge) != LLVMOr) continue;
        if (!is_masked(LLVMGetOperand(merge, 0), &x, &c) || !is_masked(LLVMGetOperand(merge, 1), &y, &other)) continue;
        if (other != LLVMConstNot(c)) continue;
        if (behind_casts(x) == kept) { /* exchange both, so that y is kept */
            val t = x;
            x = y, y = t, c = other;
        }
        if (behind_casts(y) != kept) continue;
        LLVMPositionBuilderBefore(b, select);
        val none = LLVMConstNull(LLVMTypeOf(c)), on = LLVMGetCondition(select);
        val bits = LLVMBuildSelect(b, on, arm == 1 ? c : none, arm == 1 ? none : c, "");
        val made = LLVMBuildOr(b, LLVMBuildAnd(b, x, bits, ""), LLVMBuildAnd(b, y, LLVMBuildNot(b, bits, ""), ""), "");
        return LLVMBuildBitCast(b, made, LLVMTypeOf(select), "");
    }
    return NULL;
}

void mg_part_merges(LLVMModuleRef m)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(m));
    for (val fn = LLVMGetFirstFunction(m); fn; fn = LLVMGetNextFunction(fn))
        for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(fn); bb; bb = LLVMGetNextBasicBlock(bb))
            for (val v = LLVMGetFirstInstruction(bb), next; v; v = next) {
                next = LLVMGetNextInstruction(v);
                val other = LLVMIsASelectInst(v) ? without_mask(b, v) : NULL;
                if (!other) continue;
                LLVMReplaceAllUsesWith(v, other);
                LLVMInstructionEraseFromParent(v);
            }
    LLVMDisposeBuilder(b);
}
