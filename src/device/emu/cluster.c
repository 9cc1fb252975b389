/* Clusters: the shared memory of their CTAs as one window, their barrier, and lanes that wait for
 * it, in mbarrier.try_wait or in wgmma.wait_group.
 *
 * The CTAs of a cluster are run in turns by one worker (launch.c). A generic address is a host
 * address in all of them; a shared::cluster address holds rank + 1 above EMU_CLUSTER_SHIFT, or
 * nothing there when it is the CTA's own. Waiting lanes are parked and looked at each time their
 * warp's turn comes (emu_wait_poll): they cost nothing, and how often a waiting loop runs does not
 * depend on how long it waits.
 */
#include "device/emu/async.h"
#include "device/emu/check.h"

#include <string.h>

#define OP(o)       ((const struct emu_op *)(const void *)(o))
#define OFFSET_MASK ((1u << EMU_CLUSTER_SHIFT) - 1)

/* ---- addresses ------------------------------------------------------------------------------- */

static struct emu_cta *owner(const struct emu_frame *f, uint64_t address, uint32_t bytes)
{
    const struct emu_cta *c = f->w->cta;
    for (uint32_t r = 0; r < c->n_peers; r++) {
        uint64_t off = address - (uint64_t)c->peers[r]->shared;
        if (off < f->shared_bytes && f->shared_bytes - off >= bytes) return c->peers[r];
    }
    return NULL;
}

bool emu_in_cluster(const struct emu_frame *f, uint64_t address, uint32_t bytes)
{
    return owner(f, address, bytes) != NULL;
}

/* 0 where no CTA is: whoever uses it faults. */
static uint64_t to_generic(const struct emu_frame *f, uint64_t a)
{
    const struct emu_cta *c = f->w->cta;
    uint32_t rank = (uint32_t)a >> EMU_CLUSTER_SHIFT;
    if (!rank) return (uint64_t)f->shared + (uint32_t)a;
    return rank <= c->n_peers ? (uint64_t)c->peers[rank - 1]->shared + (a & OFFSET_MASK) : 0;
}

static uint64_t to_shared(const struct emu_frame *f, uint64_t a)
{
    const struct emu_cta *c = owner(f, a, 1);
    if (!c || c == f->w->cta) return a - (uint64_t)f->shared;
    return (a - (uint64_t)c->shared) | (uint64_t)(c->rank + 1) << EMU_CLUSTER_SHIFT;
}

void emu_cluster_address(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_frame *f = EMU_FRAME(regs);
    uint64_t *d = (uint64_t *)(regs + o->d);
    EMU_FOR_LANES(i, mask) d[i] = to_generic(f, emu_plain_address(f, OP(o), regs, i));
}

void emu_cluster_cvta(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_frame *f = EMU_FRAME(regs);
    const uint64_t *s = (const uint64_t *)(regs + o->s[0]);
    uint64_t *d = (uint64_t *)(regs + o->d);
    if (OP(o)->mode)
        EMU_FOR_LANES(i, mask) d[i] = to_shared(f, s[i]);
    else
        EMU_FOR_LANES(i, mask) d[i] = to_generic(f, s[i]);
}

static uint64_t address_of(const struct emu_alu *o, const char *regs, uint32_t lane)
{
    return OP(o)->flags & EMU_OF_WIDE ? ((const uint64_t *)(regs + o->s[0]))[lane]
                                      : ((const uint32_t *)(regs + o->s[0]))[lane];
}

void emu_mapa(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    struct emu_frame *f = EMU_FRAME(regs);
    const uint32_t *ranks = (const uint32_t *)(regs + o->s[1]);
    EMU_FOR_LANES(i, mask)
    {
        uint64_t a = address_of(o, regs, i), r;
        if (ranks[i] >= f->w->cta->n_peers)
            emu_fault(f, op, MG_FAULT_TRAP, (int)i, 0, 0, "CTA rank %u in a cluster of %u", ranks[i],
                      f->w->cta->n_peers);
        if (op->space == MG_SPACE_shared)
            r = (a & OFFSET_MASK) | (uint64_t)(ranks[i] + 1) << EMU_CLUSTER_SHIFT;
        else {
            const struct emu_cta *c = owner(f, a, 1);
            if (!c) emu_fault(f, op, MG_FAULT_ADDRESS, (int)i, a, 1, "mapa of an address outside shared memory");
            r = a - (uint64_t)c->shared + (uint64_t)c->peers[ranks[i]]->shared;
        }
        if (op->flags & EMU_OF_WIDE)
            ((uint64_t *)(regs + o->d))[i] = r;
        else
            ((uint32_t *)(regs + o->d))[i] = (uint32_t)r;
    }
}

void emu_getctarank(const struct emu_alu *o, char *regs, uint32_t mask)
{
    struct emu_frame *f = EMU_FRAME(regs);
    uint32_t *d = (uint32_t *)(regs + o->d);
    EMU_FOR_LANES(i, mask)
    {
        uint64_t a = address_of(o, regs, i);
        if (OP(o)->space == MG_SPACE_shared)
            d[i] = (uint32_t)a >> EMU_CLUSTER_SHIFT ? ((uint32_t)a >> EMU_CLUSTER_SHIFT) - 1 : f->w->cta->rank;
        else {
            const struct emu_cta *c = owner(f, a, 1);
            if (!c)
                emu_fault(f, OP(o), MG_FAULT_ADDRESS, (int)i, a, 1, "getctarank of an address outside shared memory");
            d[i] = c->rank;
        }
    }
}

char *emu_at(struct emu_frame *f, const struct emu_op *place, const char *regs, uint32_t lane, uint64_t bytes,
             uint32_t align)
{
    uint64_t a = emu_plain_address(f, place, regs, lane), host = a;
    uint32_t n = (uint32_t)MG_MIN(bytes, UINT32_MAX);
    bool ok;
    if (a & (align - 1))
        emu_fault(f, place, MG_FAULT_MISALIGNED, (int)lane, a, n, "misaligned %s of %u bytes",
                  place->flags & EMU_OF_WRITES ? "write" : "read", n);
    switch (place->space) {
    case MG_SPACE_shared:
        if (place->probe && emu_own_word(f, place, lane, &a, n)) return f->shared + a;
        host = place->flags & EMU_OF_CLUSTER ? to_generic(f, a) : (uint64_t)f->shared + a;
        ok = place->flags & EMU_OF_CLUSTER ? !bytes || owner(f, host, n) != NULL
                                           : a <= f->shared_bytes && f->shared_bytes - a >= bytes;
        break;
    case MG_SPACE_local:
        host = f->local_va + f->local_stride * lane + a;
        ok = a <= f->local_bytes && f->local_bytes - a >= bytes;
        break;
    default:
        ok = !bytes || emu_check_one(f, place, (int)lane, a, n);
        break;
    }
    if (!ok) emu_fault_access(f, place, (int)lane, a, n);
    if (MG_UNLIKELY(f->w->cta->check != NULL) && n) emu_check_at(f, place, lane, host, n);
    return (char *)host;
}

char *emu_peer_at(struct emu_frame *f, const char *p, uint32_t rank)
{
    const struct emu_cta *c = owner(f, (uint64_t)p, 1);
    return c && rank < c->n_peers ? c->peers[rank]->shared + (p - c->shared) : NULL;
}

/* ---- waiting --------------------------------------------------------------------------------- */

void emu_cluster_check(struct emu_cta *c)
{
    for (uint32_t r = 0; r < c->n_peers; r++)
        for (uint32_t k = 0; k < c->n_warps; k++)
            if (c->peers[r]->warps[k].live & ~c->peers[r]->warps[k].arrived) return;
    for (uint32_t r = 0; r < c->n_peers; r++)
        for (uint32_t k = 0; k < c->n_warps; k++) c->peers[r]->warps[k].arrived = 0;
}

void emu_cluster_arrive(const struct emu_alu *o, char *regs, uint32_t mask)
{
    struct emu_warp *w = EMU_FRAME(regs)->w;
    (void)o;
    w->arrived |= mask;
    emu_cluster_check(w->cta);
}

void emu_wgmma_commit(const struct emu_alu *o, char *regs, uint32_t mask)
{
    struct emu_warp *w = EMU_FRAME(regs)->w;
    (void)o;
    (void)mask;
    w->wgmma_at[w->wgmma_groups++ % MG_COUNT_OF(w->wgmma_at)] = w->wgmmas;
}

/* A wgmma is done when all four warps have issued theirs: until then its operands may be read. */
static bool group_behind(const struct emu_warp *w, uint32_t need)
{
    const struct emu_cta *c = w->cta;
    for (uint32_t k = w->ix / 4 * 4; k < w->ix / 4 * 4 + 4 && k < c->n_warps; k++)
        if (c->warps[k].live && c->warps[k].wgmmas < need) return true;
    return false;
}

static void set_pred(const struct emu_set *s, bool value)
{
    uint32_t *d = (uint32_t *)(s->frame->regs + s->pc->a.d);
    *d = value ? *d | s->mask : *d & ~s->mask;
}

uint32_t emu_wait_arrive(struct emu_warp *w, const struct emu_op *op, struct emu_frame *f, uint32_t mask, uint32_t turn)
{
    uint32_t go = 0;
    if (op->sub == EMU_SYNC_CLUSTER) {
        uint32_t wait = mask & w->arrived;
        if (wait)
            w->sets[w->n_sets++] =
                (struct emu_set){.pc = op, .frame = f, .mask = wait, .turn = turn, .state = EMU_PARK_CLUSTER};
        w->polls |= wait != 0;
        return mask & ~wait;
    }
    if (op->sub == EMU_SYNC_WGMMA) {
        uint32_t pending = op->a.imm, groups = w->wgmma_groups;
        uint32_t need = groups > pending && pending < MG_COUNT_OF(w->wgmma_at)
                            ? w->wgmma_at[(groups - 1 - pending) % MG_COUNT_OF(w->wgmma_at)]
                            : 0;
        if (!group_behind(w, need)) return mask;
        w->sets[w->n_sets++] =
            (struct emu_set){.pc = op, .frame = f, .mask = mask, .turn = turn, .need = need, .state = EMU_PARK_WGMMA};
        w->polls = 1;
        return 0;
    }
    const struct emu_mbar *b = op->ext;
    uint32_t *d = (uint32_t *)(f->regs + op->a.d);
    for (uint32_t left = mask; left;) { /* lanes by barrier and phase; usually one group */
        const uint64_t *word = NULL;
        uint32_t phase = 0, group = 0;
        EMU_FOR_LANES(i, left)
        {
            const uint64_t *at = (const uint64_t *)(const void *)emu_at(f, &b->at, f->regs, i, 8, 8);
            uint32_t p = emu_mbar_awaited(b, f->regs, i);
            if (!group) word = at, phase = p;
            group |= (uint32_t)(at == word && p == phase) << i;
        }
        left &= ~group;
        if (emu_mbar_phase(*word) != phase) {
            *d |= group;
            go |= group;
            continue;
        }
        w->sets[w->n_sets++] = (struct emu_set){
            .pc = op, .frame = f, .mask = group, .turn = turn, .need = phase, .word = word, .state = EMU_PARK_MBAR};
        w->polls = 1;
    }
    return go;
}

bool emu_wait_poll(struct emu_warp *w, bool give_up)
{
    struct emu_set old[EMU_LANES];
    uint32_t n = w->n_sets, woken = 0;
    bool over[EMU_LANES];
    w->polls = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct emu_set *s = &w->sets[i];
        over[i] = s->state == EMU_PARK_MBAR      ? give_up || emu_mbar_phase(*s->word) != s->need
                  : s->state == EMU_PARK_CLUSTER ? !(w->arrived & s->mask)
                                                 : s->state == EMU_PARK_WGMMA && !group_behind(w, s->need);
        woken |= over[i] ? s->mask : 0;
        w->polls |= !over[i] && s->state >= EMU_PARK_MBAR;
    }
    if (!woken) return false;
    memcpy(old, w->sets, n * sizeof *old);
    w->n_sets = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!over[i]) w->sets[w->n_sets++] = old[i];
    for (uint32_t i = 0; i < n; i++) {
        if (!over[i]) continue;
        if (old[i].state == EMU_PARK_MBAR) set_pred(&old[i], emu_mbar_phase(*old[i].word) != old[i].need);
        emu_set_add(w, old[i].pc + 1, old[i].frame, old[i].mask, 0);
    }
    return true;
}
