/* Slow paths of memory accesses: what is not inside the operation's cached allocation is looked at
 * lane by lane. Global and constant addresses must lie in a live allocation; generic ones may also
 * lie in the CTA's shared memory, the thread's own local memory or the parameter block. Margay's own memory, and its
 * words in shared and local memory, are there for inserted accesses alone. */
#include "device/emu/emu.h"

#include <stdlib.h>
#include <string.h>

#include "device/mem.h"

/* Forgets cached allocations when the table of allocations has changed. */
void emu_epoch(struct emu_worker *wk)
{
    uint64_t now = mg_mem_epoch();
    if (now == wk->epoch) return;
    wk->epoch = now;
    memset(wk->ranges, 0, wk->n_ranges * sizeof *wk->ranges);
}

/* A kernel's operations most often hit the allocations that they hit when it was launched before. */
void emu_ranges_begin(struct emu_worker *wk)
{
    struct emu_code *c = wk->l->code;
    pthread_mutex_lock(&c->kept_lock);
    if (c->kept && c->kept_epoch == mg_mem_epoch()) {
        memcpy(wk->ranges, c->kept, wk->n_ranges * sizeof *wk->ranges);
        wk->epoch = c->kept_epoch;
    }
    pthread_mutex_unlock(&c->kept_lock);
}

void emu_ranges_end(struct emu_worker *wk)
{
    struct emu_code *c = wk->l->code;
    pthread_mutex_lock(&c->kept_lock);
    if (!c->kept) c->kept = calloc(wk->n_ranges + 1, sizeof *c->kept);
    if (c->kept && c->kept_epoch != wk->epoch) memset(c->kept, 0, wk->n_ranges * sizeof *c->kept);
    c->kept_epoch = wk->epoch;
    for (uint32_t i = 0; c->kept && i < wk->n_ranges; i++)
        if (wk->ranges[i].hi) c->kept[i] = wk->ranges[i];
    pthread_mutex_unlock(&c->kept_lock);
}

static bool inside(uint64_t ea, uint32_t bytes, uint64_t lo, uint64_t size)
{
    return ea >= lo && ea - lo < size && size - (ea - lo) >= bytes;
}

bool emu_check_one(struct emu_frame *f, const struct emu_op *op, int lane, uint64_t ea, uint32_t bytes)
{
    struct emu_range *r = &f->wk->ranges[op->cache];
    if (op->space == MG_SPACE_param)
        return inside(ea, bytes, (uint64_t)f->params, f->param_bytes) && !(op->flags & EMU_OF_WRITES);
    if (inside(ea, bytes, r->lo, r->hi - r->lo)) return true;
    if (op->space == MG_SPACE_generic) {
        if (inside(ea, bytes, (uint64_t)f->shared, f->shared_bytes) ||
            (f->w->cta->n_peers > 1 && emu_in_cluster(f, ea, bytes)))
            return true;
        if (inside(ea, bytes, f->local_va + f->local_stride * (uint64_t)lane, f->local_bytes)) return true;
        if (inside(ea, bytes, (uint64_t)f->params, f->param_bytes)) return !(op->flags & EMU_OF_WRITES);
    }
    struct mg_alloc a;
    if (!(op->probe ? mg_mem_find_any(ea, &a) : mg_mem_find(ea, &a)) || !inside(ea, bytes, a.base, a.bytes))
        return false;
    if (a.readonly && op->flags & EMU_OF_WRITES) return false;
    /* the last entry is shared by functions that indirect calls brought in late, the program's stores among them */
    if ((!a.readonly && a.kind != MG_ALLOC_INTERNAL) || op->cache + 1 < f->wk->n_ranges)
        *r = (struct emu_range){a.base, a.base + a.bytes};
    return true;
}

/* Margay's words in shared and local memory have addresses from EMU_OWN_WORDS on, where nothing of the program's lies:
 * behind the CTA's shared memory, and in the frame. Makes ea what the caller turns into the host's address. */
bool emu_own_word(const struct emu_frame *f, const struct emu_op *op, uint32_t lane, uint64_t *ea, uint32_t bytes)
{
    bool shared = op->space == MG_SPACE_shared;
    uint64_t at = (uint32_t)(*ea - EMU_OWN_WORDS - (shared || !(op->flags & EMU_OF_BASE_NONE) ? 0 : f->local_at));
    if (!op->probe || !inside(at, bytes, 0, shared ? f->w->cta->code->own_shared : f->fn->own_local)) return false;
    if (shared)
        *ea = emu_own_shared_at(f->shared_bytes) + at;
    else
        *ea = (uint64_t)f->regs + f->fn->own_local_at + (uint64_t)f->fn->own_local * lane + at -
              (f->local_va + f->local_stride * lane);
    return true;
}

void emu_check_lanes(struct emu_frame *f, const struct emu_op *op, uint64_t *ea, uint32_t mask, uint32_t bytes)
{
    static const _Alignas(64) char zeros[128];
    struct emu_range beside = {0};
    uint32_t again = 0;
    EMU_FOR_LANES(i, mask)
    {
        if (ea[i] & (bytes - 1)) {
            emu_stray_again(f, op, again);
            emu_fault(f, op, MG_FAULT_MISALIGNED, (int)i, ea[i], bytes, "misaligned %s of %u bytes",
                      op->flags & EMU_OF_WRITES ? "write" : "read", bytes);
        }
        if (op->space == MG_SPACE_global && inside(ea[i], bytes, beside.lo, beside.hi - beside.lo)) {
            again++;
            ea[i] = (uint64_t)zeros;
            continue;
        }
        bool ok;
        if (op->space == MG_SPACE_shared)
            ok = inside(ea[i], bytes, 0, f->shared_bytes);
        else if (op->space == MG_SPACE_local)
            ok = inside(ea[i], bytes, 0, f->local_bytes);
        else
            ok = emu_check_one(f, op, (int)i, ea[i], bytes);
        if (ok || (op->space == MG_SPACE_shared || op->space == MG_SPACE_local ? emu_own_word(f, op, i, &ea[i], bytes)
                                                                               : false))
            continue;
        if (!emu_stray(f, op, (int)i, ea[i], bytes, &beside)) {
            emu_stray_again(f, op, again);
            emu_fault_access(f, op, (int)i, ea[i], bytes);
        }
        ea[i] = (uint64_t)zeros;
    }
    emu_stray_again(f, op, again);
}

/* An address as the program gave it: 32 bits in shared and local memory. */
uint64_t emu_plain_address(const struct emu_frame *f, const struct emu_op *op, const char *regs, uint32_t lane)
{
    uint64_t a = (uint64_t)op->off;
    bool narrow = op->space == MG_SPACE_shared || op->space == MG_SPACE_local;
    if (op->flags & EMU_OF_BASE_NONE) return a + (op->space == MG_SPACE_local ? f->local_at : 0);
    if (op->flags & EMU_OF_BASE_W) return (uint32_t)(a + ((const uint32_t *)(regs + op->a.s[0]))[lane]);
    a += ((const uint64_t *)(regs + op->a.s[0]))[lane];
    return narrow ? (uint32_t)a : a;
}

void emu_plain_addresses(const struct emu_frame *f, const struct emu_op *op, const char *regs, uint64_t ea[EMU_LANES])
{
    if (op->flags & (EMU_OF_BASE_NONE | EMU_OF_BASE_W) || op->space == MG_SPACE_shared || op->space == MG_SPACE_local) {
        for (uint32_t i = 0; i < EMU_LANES; i++) ea[i] = emu_plain_address(f, op, regs, i);
        return;
    }
    const uint64_t *base = (const uint64_t *)(regs + op->a.s[0]);
    for (uint32_t i = 0; i < EMU_LANES; i++) ea[i] = base[i] + (uint64_t)op->off;
}

/* Addresses of the active lanes as host addresses, checked; for atomics and other lane loops. */
void emu_host_addresses(struct emu_frame *f, const struct emu_op *op, char *regs, uint32_t mask, uint32_t bytes,
                        uint64_t *ea)
{
    bool check = false;
    const struct emu_range *r = &f->wk->ranges[op->cache];
    EMU_FOR_LANES(i, mask)
    {
        ea[i] = emu_plain_address(f, op, regs, i);
        check |= (ea[i] & (bytes - 1)) || !inside(ea[i], bytes, r->lo, r->hi - r->lo);
    }
    if (op->space == MG_SPACE_shared || op->space == MG_SPACE_local || check) emu_check_lanes(f, op, ea, mask, bytes);
    if (op->space == MG_SPACE_shared) {
        EMU_FOR_LANES(i, mask) ea[i] += (uint64_t)f->shared;
    } else if (op->space == MG_SPACE_local) {
        EMU_FOR_LANES(i, mask) ea[i] += f->local_va + f->local_stride * i;
    }
}
