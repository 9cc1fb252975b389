/* mbarrier: arrival counts and bytes in one word of shared memory. The CTAs of a cluster run on one
 * worker, so plain loads and stores are enough. Waiting is in cluster.c. */
#include "device/emu/async.h"

struct fields {
    uint32_t pending, expected;
    int32_t bytes;
    uint32_t phase;
};

static struct fields unpack(uint64_t w)
{
    return (struct fields){(uint32_t)(w & 0xfffff), (uint32_t)(w >> 20 & 0xfffff), (int32_t)((int64_t)(w << 2) >> 42),
                           (uint32_t)(w >> 63)};
}

/* Stores the state; a phase with nothing left to come ends here. */
static void put(uint64_t *bar, struct fields s)
{
    if (!s.pending && !s.bytes) {
        s.phase ^= 1;
        s.pending = s.expected;
    }
    *bar = (uint64_t)s.phase << 63 | ((uint64_t)(uint32_t)s.bytes & 0x3fffff) << 40 | (uint64_t)s.expected << 20 |
           s.pending;
}

void emu_mbar_init(uint64_t *bar, uint32_t count)
{
    *bar = (uint64_t)(count & 0xfffff) << 20 | (count & 0xfffff);
}

bool emu_mbar_arrive(uint64_t *bar, uint32_t count, bool drop)
{
    struct fields s = unpack(*bar);
    if (s.pending < count || (drop && s.expected < count)) return false;
    s.pending -= count;
    if (drop) s.expected -= count;
    put(bar, s);
    return true;
}

void emu_mbar_expect(uint64_t *bar, uint32_t bytes)
{
    struct fields s = unpack(*bar);
    s.bytes += (int32_t)bytes;
    put(bar, s);
}

void emu_mbar_complete(uint64_t *bar, uint32_t bytes)
{
    emu_mbar_expect(bar, 0u - bytes);
}

uint32_t emu_mbar_awaited(const struct emu_mbar *b, const char *regs, uint32_t lane)
{
    if (b->parity) return ((const uint32_t *)(regs + b->token))[lane] & 1;
    return emu_mbar_phase(((const uint64_t *)(regs + b->token))[lane]);
}

static uint32_t value(const char *regs, uint32_t off, uint32_t lane, uint32_t otherwise)
{
    return off ? ((const uint32_t *)(regs + off))[lane] : otherwise;
}

void emu_mbar_run(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = (const struct emu_op *)(const void *)o;
    const struct emu_mbar *b = op->ext;
    struct emu_frame *f = EMU_FRAME(regs);
    uint32_t done = 0;
    EMU_FOR_LANES(i, mask)
    {
        uint64_t *bar = (uint64_t *)(void *)emu_at(f, &b->at, regs, i, 8, 8), old = *bar;
        bool ok = true;
        switch ((enum emu_mbar_kind)b->kind) {
        case EMU_MBAR_INIT:
            emu_mbar_init(bar, value(regs, b->count, i, 1));
            break;
        case EMU_MBAR_INVAL:
            *bar = 0;
            break;
        case EMU_MBAR_ARRIVE:
        case EMU_MBAR_DROP:
            if (b->bytes) emu_mbar_expect(bar, value(regs, b->bytes, i, 0));
            ok = emu_mbar_arrive(bar, value(regs, b->count, i, 1), b->kind == EMU_MBAR_DROP);
            if (o->d) ((uint64_t *)(regs + o->d))[i] = old;
            break;
        case EMU_MBAR_NOINC:
            ok = emu_mbar_arrive(bar, 1, false);
            break;
        case EMU_MBAR_EXPECT:
            emu_mbar_expect(bar, value(regs, b->bytes, i, 0));
            break;
        case EMU_MBAR_COMPLETE:
            emu_mbar_complete(bar, value(regs, b->bytes, i, 0));
            break;
        case EMU_MBAR_TEST:
            done |= (uint32_t)(emu_mbar_phase(old) != emu_mbar_awaited(b, regs, i)) << i;
            break;
        }
        if (!ok)
            emu_fault(f, op, MG_FAULT_TRAP, (int)i, 0, 0,
                      "arrival at an mbarrier that expects %u in this phase, %u of them still to come",
                      unpack(old).expected, unpack(old).pending);
    }
    if (b->kind != EMU_MBAR_TEST) return;
    uint32_t *d = (uint32_t *)(regs + o->d);
    *d = (*d & ~mask) | done;
    if (done != mask) emu_nanosleep(o, regs, mask); /* who asks again should let others run first */
}

void emu_mbar_pending(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const uint64_t *s = (const uint64_t *)(regs + o->s[0]);
    uint32_t *d = (uint32_t *)(regs + o->d);
    EMU_FOR_LANES(i, mask) d[i] = unpack(s[i]).pending;
}
