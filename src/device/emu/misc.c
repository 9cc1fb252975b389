/* Straight operations that need the activation or the world: addresses of variables, conversion
 * between address spaces, clocks, fences. Generic addresses are host addresses. */
#include "device/emu/emu.h"

#include <stdatomic.h>
#include <time.h>

#include "base/io.h"
#include "device/mem.h"

#define OP(o) ((const struct emu_op *)(const void *)(o))

static void put(const struct emu_alu *o, char *regs, uint32_t mask, uint64_t v)
{
    const bool wide = OP(o)->flags & EMU_OF_WIDE, all = mask == UINT32_MAX;
    uint64_t *d = (uint64_t *)(regs + o->d);
    uint32_t *half = (uint32_t *)(regs + o->d);
    for (uint32_t i = 0; all && wide && i < 32; i++) d[i] = v;
    for (uint32_t i = 0; all && !wide && i < 32; i++) half[i] = (uint32_t)v;
    if (all) return;
    if (wide)
        EMU_FOR_LANES(i, mask) d[i] = v;
    else
        EMU_FOR_LANES(i, mask) half[i] = (uint32_t)v;
}

void emu_mark_suspect(const struct emu_alu *o, char *regs, uint32_t mask)
{
    (void)o;
    (void)mask;
    EMU_FRAME(regs)->w->suspect = 1;
}

void emu_local_address(const struct emu_alu *o, char *regs, uint32_t mask)
{
    put(o, regs, mask, EMU_FRAME(regs)->local_at + (uint64_t)OP(o)->off);
}

void emu_param_address(const struct emu_alu *o, char *regs, uint32_t mask)
{
    put(o, regs, mask, (uint64_t)EMU_FRAME(regs)->params + (uint64_t)OP(o)->off);
}

/* mode 1: from generic (.to). Global, constant and parameter addresses are generic already. */
void emu_cvta(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    const struct emu_frame *f = EMU_FRAME(regs);
    const uint64_t *s = (const uint64_t *)(regs + o->s[0]);
    uint64_t *d = (uint64_t *)(regs + o->d), base = 0, step = 0;
    if (op->space == MG_SPACE_shared && f->w->cta->n_peers > 1) {
        emu_cluster_cvta(o, regs, mask);
        return;
    }
    if (op->space == MG_SPACE_shared) base = (uint64_t)f->shared;
    if (op->space == MG_SPACE_local) base = f->local_va, step = f->local_stride;
    if (op->mode)
        EMU_FOR_LANES(i, mask) d[i] = s[i] - base - step * i;
    else
        EMU_FOR_LANES(i, mask) d[i] = s[i] + base + step * i;
}

static bool is_const(uint64_t address)
{
    struct mg_alloc a;
    return mg_mem_find(address, &a) && a.kind == MG_ALLOC_CONST;
}

void emu_isspacep(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    const struct emu_frame *f = EMU_FRAME(regs);
    const uint64_t *s = (const uint64_t *)(regs + o->s[0]);
    uint32_t r = 0, *d = (uint32_t *)(regs + o->d);
    EMU_FOR_LANES(i, mask)
    {
        bool shared = s[i] - (uint64_t)f->shared < f->shared_bytes, cluster = shared || emu_in_cluster(f, s[i], 1);
        bool local = s[i] - (f->local_va + f->local_stride * i) < f->local_bytes;
        bool param = s[i] - (uint64_t)f->params < f->param_bytes, in;
        switch (op->space) {
        case MG_SPACE_shared:
            in = op->flags & EMU_OF_CLUSTER ? cluster : shared;
            break;
        case MG_SPACE_local:
            in = local;
            break;
        case MG_SPACE_param:
            in = param;
            break;
        case MG_SPACE_const:
            in = is_const(s[i]);
            break;
        default:
            in = !cluster && !local && !param && !is_const(s[i]);
            break;
        }
        r |= (uint32_t)in << i;
    }
    *d = (*d & ~mask) | (r & mask);
}

unsigned emu_clock_shift(uint64_t sreg)
{
    return sreg == MG_SREG_clock_hi || sreg == MG_SREG_globaltimer_hi ? 32 : 0;
}

/* imm: enum mg_sreg. Clocks tick in nanoseconds of the host's monotonic clock. */
void emu_clock(const struct emu_alu *o, char *regs, uint32_t mask)
{
    put(o, regs, mask, mg_now_ns() >> emu_clock_shift((uint64_t)o->imm));
}

void emu_fence(const struct emu_alu *o, char *regs, uint32_t mask)
{
    (void)o;
    (void)regs;
    (void)mask;
    atomic_thread_fence(memory_order_seq_cst);
}

void emu_nop(const struct emu_alu *o, char *regs, uint32_t mask)
{
    (void)o;
    (void)regs;
    (void)mask;
}

/* Sleeping lanes wait for somebody else: the warp gives way at its next back-edge. Inserted code waits for the host or
 * another worker, since no warp of this one gives way in the middle of it (but where chance decides): the worker itself
 * sleeps, and no lane or warp comes before another. */
void emu_nanosleep(const struct emu_alu *o, char *regs, uint32_t mask)
{
    struct emu_warp *w = EMU_FRAME(regs)->w;
    (void)mask;
    if (OP(o)->probe && !w->chance) {
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        return;
    }
    w->suspect = 1;
    w->budget = MG_MIN(w->budget, EMU_SPIN_COST);
}
