/* Copies between global and shared memory that a thread starts and waits for later: cp.async, bulk
 * copies and reductions, st.async and red.async. Tensor copies are in tma.c. */
#include "device/emu/async.h"
#include "device/emu/check.h"
#include "device/emu/whole.h"

#include <string.h>

#define OP(o) ((const struct emu_op *)(const void *)(o))

static uint32_t word(const char *regs, uint32_t off, uint32_t lane)
{
    return ((const uint32_t *)(regs + off))[lane];
}

void emu_copy_small(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_copy *c = OP(o)->ext;
    struct emu_frame *f = EMU_FRAME(regs);
    uint32_t skip = c->skips ? *(const uint32_t *)(regs + c->skip) ^ c->skip_flip : 0;
    EMU_FOR_LANES(i, mask)
    {
        uint32_t n = c->bytes, from = c->src_size ? MG_MIN(word(regs, c->src_size, i), n) : n;
        char *dst = emu_at(f, &c->dst, regs, i, n, n);
        if (skip >> i & 1) from = 0;
        if (from == n) {
            emu_get_lane(dst, emu_at(f, &c->src, regs, i, n, n), n);
            continue;
        }
        const char *src = from ? emu_at(f, &c->src, regs, i, from, n) : NULL;
        if (from) memcpy(dst, src, from);
        memset(dst + from, 0, n - from);
    }
}

static uint64_t *barrier(struct emu_frame *f, const struct emu_copy *c, char *regs, uint32_t lane)
{
    return c->bar.node ? (uint64_t *)(void *)emu_at(f, &c->bar, regs, lane, 8, 8) : NULL;
}

static void move(const struct emu_copy *c, char *dst, const char *src, uint32_t n, uint32_t byte_mask)
{
    if (c->reduce)
        emu_reduce_bytes(c->reduce - 1u, c->type, dst, src, n, !c->to_global);
    else if (!c->byte_mask)
        memmove(dst, src, n);
    else
        for (uint32_t k = 0; k < n; k++)
            if (byte_mask >> (k & 15) & 1) dst[k] = src[k];
}

void emu_copy_bulk(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_copy *c = OP(o)->ext;
    struct emu_frame *f = EMU_FRAME(regs);
    EMU_FOR_LANES(i, mask)
    {
        uint32_t n = c->size ? word(regs, c->size, i) : c->bytes,
                 bytes = c->byte_mask ? word(regs, c->byte_mask, i) : 0;
        if (n & 15)
            emu_fault(f, OP(o), MG_FAULT_MISALIGNED, (int)i, 0, n, "bulk copy of %u bytes, not a multiple of 16,", n);
        char *dst = emu_at(f, &c->dst, regs, i, n, 16);
        const char *src = emu_at(f, &c->src, regs, i, n, 16);
        uint64_t *bar = barrier(f, c, regs, i);
        if (!c->ctas) {
            move(c, dst, src, n, bytes);
            if (bar) emu_mbar_complete(bar, n);
            continue;
        }
        uint32_t ctas = word(regs, c->ctas, i) & 0xffff;
        EMU_FOR_LANES(r, ctas)
        {
            char *to = emu_peer_at(f, dst, r), *b = bar ? emu_peer_at(f, (const char *)bar, r) : NULL;
            if (!to)
                emu_fault(f, OP(o), MG_FAULT_TRAP, (int)i, 0, 0, "multicast to CTA rank %u in a cluster of %u", r,
                          f->w->cta->n_peers);
            move(c, to, src, n, bytes);
            if (f->w->cta->check) emu_check_filled(f, to, n);
            if (b) emu_mbar_complete((uint64_t *)(void *)b, n);
        }
    }
}

void emu_copy_value(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_copy *c = OP(o)->ext;
    struct emu_frame *f = EMU_FRAME(regs);
    uint32_t each = mg_type_bits(c->type) / 8, n = each * c->vec;
    EMU_FOR_LANES(i, mask)
    {
        char v[32], *dst = emu_at(f, &c->dst, regs, i, n, n);
        for (uint32_t k = 0; k < c->vec; k++)
            memcpy(v + k * each, regs + c->values[k] + i * (c->values_wide ? 8 : 4), each);
        uint64_t *bar = barrier(f, c, regs, i);
        move(c, dst, v, n, 0);
        if (bar) emu_mbar_complete(bar, n);
    }
}
