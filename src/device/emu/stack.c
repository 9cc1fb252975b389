/* alloca, stacksave, stackrestore: a part of each thread's local memory is handed out from its end
 * down. Addresses are those of local memory; a function's return gives back what it took. */
#include "device/emu/emu.h"

#include <string.h>

#define OP(o) ((const struct emu_op *)(const void *)(o))

static uint64_t get(const struct emu_op *op, const char *regs, uint32_t at, uint32_t lane)
{
    return op->flags & EMU_OF_WIDE ? ((const uint64_t *)(regs + at))[lane] : ((const uint32_t *)(regs + at))[lane];
}

static void put(const struct emu_op *op, char *regs, uint32_t lane, uint64_t v)
{
    if (op->flags & EMU_OF_WIDE)
        ((uint64_t *)(regs + op->a.d))[lane] = v;
    else
        ((uint32_t *)(regs + op->a.d))[lane] = (uint32_t)v;
}

/* imm: alignment, a power of two; the end of local memory is a multiple of 4096 */
void emu_alloca(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    struct emu_frame *f = EMU_FRAME(regs);
    uint64_t room = f->w->cta->code->alloca_bytes;
    EMU_FOR_LANES(i, mask)
    {
        uint64_t size = get(op, regs, o->s[0], i), used = f->w->alloca_used[i];
        uint64_t want = (used + size + o->imm - 1) & ~(uint64_t)(o->imm - 1);
        if (size > room || want > room)
            emu_fault(f, op, MG_FAULT_STACK, (int)i, 0, 0,
                      "stack exhausted: alloca of %llu bytes, %llu of %llu are in use", (unsigned long long)size,
                      (unsigned long long)used, (unsigned long long)room);
        f->w->alloca_used[i] = (uint32_t)want;
        put(op, regs, i, f->local_bytes - want);
    }
}

void emu_stack_save(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_frame *f = EMU_FRAME(regs);
    EMU_FOR_LANES(i, mask) put(OP(o), regs, i, f->local_bytes - f->w->alloca_used[i]);
}

void emu_stack_restore(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    struct emu_frame *f = EMU_FRAME(regs);
    EMU_FOR_LANES(i, mask)
    {
        uint64_t at = get(op, regs, o->s[0], i);
        if (at > f->local_bytes || f->local_bytes - at > f->w->alloca_used[i])
            emu_fault(f, op, MG_FAULT_STACK, (int)i, 0, 0, "stackrestore of 0x%llx, which no stacksave gave",
                      (unsigned long long)at);
        f->w->alloca_used[i] = (uint32_t)(f->local_bytes - at);
    }
}

void emu_stack_enter(struct emu_frame *f)
{
    memcpy(f->regs + f->fn->stack_slot, f->w->alloca_used, sizeof f->w->alloca_used);
}

void emu_stack_leave(struct emu_frame *f, uint32_t mask)
{
    const uint32_t *before = (const uint32_t *)(f->regs + f->fn->stack_slot);
    EMU_FOR_LANES(i, mask) f->w->alloca_used[i] = before[i];
}
