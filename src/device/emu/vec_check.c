/* --check: the operation before each access of shared memory, over 32 lanes. Compiled once per vector
 * ISA (EMU_ISA, EMU_SUF).
 *
 * Half warps that touch a row of cells, or all one address, are looked at as wholes; what is not clean at
 * once goes lane by lane (check.c), which decides. */
#include "device/emu/check.h"

#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define CAT2(a, b) a##b
#define CAT(a, b)  CAT2(a, b)
#define NAME(x)    CAT(x, EMU_SUF)
#define INLINE     static inline __attribute__((always_inline))
#define ALL        for (int i = 0; i < EMU_LANES; i++)
enum { HALF = EMU_LANES / 2 };

typedef int32_t vec __attribute__((vector_size(4 * HALF), aligned(4), may_alias));

/* A stamp that is ordered before what `self` does now: old, of the same lane, or of the warp before it
 * synchronised. Of numbers, and of vectors (where true is -1). */
#define CLEAN(x, self) (((x) < limit) | !(((x) ^ (self)) & 0xfff) | (!(((x) ^ (self)) & EMU_STAMP_WARP) & ((x) < own)))
#define CLEANS(x, self)                                                                                                \
    (((x) < limit) | ((((x) ^ (self)) & 0xfff) == 0) | (((((x) ^ (self)) & EMU_STAMP_WARP) == 0) & ((x) < own)))
#define AT(p) (*(vec *)(void *)(p))
/* Stamps of HALF cells, `1 << per` of each lane, beginning with the block's. */
#define SELVES(block) (((lane_numbers + HALF * (block)) >> per) + now)
static const vec lane_numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

INLINE bool all(const vec *m)
{
#if defined(__AVX512F__)
    return !_mm512_cmpneq_epi32_mask(_mm512_loadu_si512(m), _mm512_set1_epi32(-1));
#elif defined(__AVX2__)
    const __m256i *h = (const __m256i *)(const void *)m;
    return _mm256_movemask_epi8(_mm256_and_si256(_mm256_loadu_si256(h), _mm256_loadu_si256(h + 1))) == -1;
#else
    uint64_t h[HALF / 2], acc = UINT64_MAX;
    memcpy(h, m, sizeof h);
    for (int i = 0; i < HALF / 2; i++) acc &= h[i];
    return acc == UINT64_MAX;
#endif
}

/* HALF lanes, each `1 << per` cells from cell c on. */
INLINE bool read_row(struct emu_check *k, const struct emu_check_warp *cw, uint32_t c, int32_t now, uint32_t site,
                     int per)
{
    int32_t limit = cw->limit, own = cw->own;
    vec free_of[4], sites = (vec){0} + (int32_t)site, good = (vec){0} == 0, idle = good;
    for (int b = 0; b < 1 << per; b++) {
        vec self = SELVES(b), x = AT(k->w + c + HALF * b), y = AT(k->r + c + HALF * b);
        free_of[b] = CLEANS(y, self);
        good &= (x >= k->base) & CLEANS(x, self);
        idle &= free_of[b];
    }
    if (!all(&good)) return false;
    if (!all(&idle)) /* others have read it, too: one is kept, of another warp if there is one */
        for (int b = 0; b < 1 << per; b++) {
            uint32_t at = c + HALF * (uint32_t)b;
            vec y = AT(k->r + at), q = AT(k->q + at), other = ((y ^ now) & EMU_STAMP_WARP) != 0;
            vec keep = ~free_of[b] & (other | (q < limit) | (((q ^ now) & EMU_STAMP_WARP) == 0));
            AT(k->q + at) = (~keep & q) | (keep & y);
            AT(k->qs + at) = (~keep & AT(k->qs + at)) | (keep & AT(k->rs + at));
        }
    for (int b = 0; b < 1 << per; b++) {
        AT(k->r + c + HALF * b) = SELVES(b);
        AT(k->rs + c + HALF * b) = sites;
    }
    return true;
}

INLINE bool write_row(struct emu_check *k, const struct emu_check_warp *cw, uint32_t c, int32_t now, uint32_t site,
                      int per)
{
    int32_t limit = cw->limit, own = cw->own;
    vec sites = (vec){0} + (int32_t)site, good = (vec){0} == 0;
    for (int b = 0; b < 1 << per; b++) {
        vec self = SELVES(b);
        good &= CLEANS(AT(k->w + c + HALF * b), self) & CLEANS(AT(k->r + c + HALF * b), self) &
                CLEANS(AT(k->q + c + HALF * b), self);
    }
    if (!all(&good)) return false;
    for (int b = 0; b < 1 << per; b++) {
        AT(k->w + c + HALF * b) = SELVES(b);
        AT(k->ws + c + HALF * b) = sites;
    }
    return true;
}

/* Lanes `first` and the next HALF - 1 read n cells from c on, the same ones. */
INLINE bool read_same(struct emu_check *k, const struct emu_check_warp *cw, uint32_t c, uint32_t n, int32_t now,
                      uint32_t site)
{
    int32_t limit = cw->limit, own = cw->own;
    for (uint32_t e = 0; e < n; e++) {
        int32_t x = k->w[c + e];
        if (x < k->base || !((x < limit) | (!((x ^ now) & EMU_STAMP_WARP) & (x < own)))) return false;
    }
    for (uint32_t e = 0; e < n; e++) {
        int32_t y = k->r[c + e], *q = &k->q[c + e];
        if (y >= limit && (y ^ now) & EMU_STAMP_WARP) {
            *q = y;
            k->qs[c + e] = k->rs[c + e];
        } else if (*q < limit || !((*q ^ now) & EMU_STAMP_WARP)) {
            *q = now + HALF - 2;
            k->qs[c + e] = site;
        }
        k->r[c + e] = now + HALF - 1;
        k->rs[c + e] = site;
    }
    return true;
}

/* A cell of each lane, in any order. The result is the lanes that are not clean. */
INLINE uint32_t read_lanes(struct emu_check *k, const struct emu_check_warp *cw, const uint32_t *at, uint32_t lanes,
                           uint32_t site)
{
    int32_t limit = cw->limit, own = cw->own, base = k->base;
    uint32_t shift = k->shift, rest = 0;
    EMU_FOR_LANES(i, lanes)
    {
        uint32_t c = at[i] >> shift;
        int32_t self = cw->now + (int32_t)i, x = k->w[c], y = k->r[c];
        if ((x < base) | !CLEAN(x, self)) {
            rest |= 1u << i;
            continue;
        }
        if (y >= limit && (y ^ self) & EMU_STAMP_WHO) {
            int32_t z = k->q[c];
            if ((y ^ self) & EMU_STAMP_WARP || z < limit || !((z ^ self) & EMU_STAMP_WARP)) {
                k->q[c] = y;
                k->qs[c] = k->rs[c];
            }
        }
        k->r[c] = self;
        k->rs[c] = site;
    }
    return rest;
}

INLINE uint32_t write_lanes(const struct emu_op *op, struct emu_frame *f, const struct emu_check_warp *cw,
                            const uint32_t *at, uint32_t lanes)
{
    struct emu_check *k = f->w->cta->check;
    int32_t limit = cw->limit, own = cw->own;
    uint32_t shift = k->shift, site = op->site;
    EMU_FOR_LANES(i, lanes)
    {
        uint32_t c = at[i] >> shift;
        int32_t self = cw->now + (int32_t)i, x = k->w[c], y = k->r[c], z = k->q[c];
        if (!CLEAN(x, self) | !CLEAN(y, self) | !CLEAN(z, self)) return lanes;
    }
    EMU_FOR_LANES(i, lanes)
    {
        k->w[at[i] >> shift] = cw->now + (int32_t)i;
        k->ws[at[i] >> shift] = site;
    }
    uint32_t same = 0;
    EMU_FOR_LANES(i, lanes) same |= (uint32_t)(k->w[at[i] >> shift] != cw->now + (int32_t)i);
    if (same) emu_check_same(op, f, at, lanes);
    return 0;
}

/* Atomics of one cell each; the result is the lanes that are not clean. */
INLINE uint32_t atomic_lanes(struct emu_check *k, const struct emu_check_warp *cw, const uint32_t *at, uint32_t lanes,
                             uint32_t site)
{
    int32_t limit = cw->limit, own = cw->own, base = k->base;
    uint32_t shift = k->shift, rest = 0;
    EMU_FOR_LANES(i, lanes)
    {
        uint32_t c = at[i] >> shift;
        int32_t self = cw->now + (int32_t)i, x = k->w[c], y = k->r[c], z = k->q[c];
        bool like = (x >> 10 & 3) == EMU_CK_ATOMIC && x < EMU_STAMP(EMU_COPY_INTERVAL);
        if ((x < base) | (!CLEAN(x, self) & !like) | !CLEAN(y, self) | !CLEAN(z, self)) {
            rest |= 1u << i;
            continue;
        }
        k->w[c] = self + EMU_STAMP_KIND(EMU_CK_ATOMIC);
        k->ws[c] = site;
    }
    return rest;
}

/* Offsets in shared memory; the result is the lanes whose address is there. */
INLINE uint32_t offsets(const struct emu_op *op, struct emu_frame *f, const char *regs, uint32_t mask, uint32_t *at)
{
    uint64_t off = (uint64_t)op->off, limit = f->shared_bytes;
    if (op->space == MG_SPACE_shared) {
        if (op->flags & EMU_OF_BASE_NONE)
            ALL at[i] = (uint32_t)off;
        else if (op->flags & EMU_OF_BASE_W) {
            const uint32_t *a = (const uint32_t *)(regs + op->a.s[0]);
            ALL at[i] = a[i] + (uint32_t)off;
        } else {
            const uint64_t *a = (const uint64_t *)(regs + op->a.s[0]);
            ALL at[i] = (uint32_t)(a[i] + off);
        }
        return mask;
    }
    uint64_t add = off - (uint64_t)f->shared;
    const uint64_t *a = (const uint64_t *)(regs + op->a.s[0]);
    uint32_t in = 0;
    if (op->flags & (EMU_OF_BASE_NONE | EMU_OF_BASE_W)) return 0;
    ALL in |= (uint32_t)(a[i] + add < limit) << i;
    in &= mask;
    if (!in) return 0;
    ALL at[i] = (uint32_t)(a[i] + add);
    return in;
}

void NAME(emu_check_access)(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = (const struct emu_op *)(const void *)o;
    struct emu_frame *f = EMU_FRAME(regs);
    struct emu_check *k = f->w->cta->check;
    const struct emu_check_warp *cw = &k->warps[f->w->ix];
    uint32_t at[EMU_LANES], bytes = (uint32_t)op->bytes * op->vec, bad = 0;
    if (op->guard) mask &= *(const uint32_t *)(regs + op->guard) ^ op->guard_flip;
    if (!mask || !k->n_cells) return;
    uint32_t lanes = offsets(op, f, regs, mask, at);
    if (op->space == MG_SPACE_generic && lanes != mask && op->sub & EMU_CHECK_WRITE && f->w->cta->n_peers > 1) {
        const uint64_t *a = (const uint64_t *)(regs + o->s[0]);
        EMU_FOR_LANES(i, mask & ~lanes) emu_check_filled(f, (const char *)(a[i] + (uint64_t)op->off), bytes);
    }
    if (!lanes) return;
    uint32_t last = (uint32_t)f->shared_bytes - bytes, align = bytes - 1;
    if (bytes > f->shared_bytes) return;
    if (lanes == UINT32_MAX)
        ALL bad |= (at[i] > last) | (at[i] & align);
    else
        ALL bad |= lanes >> i & 1 ? (at[i] > last) | (at[i] & align) : 0;
    if (bad) return; /* the operation itself will stop the launch */
    uint32_t cells = bytes >> k->shift;
    if (op->mode == EMU_CK_ATOMIC && op->sub == (EMU_CHECK_READ | EMU_CHECK_WRITE) && cells == 1) {
        lanes = atomic_lanes(k, cw, at, lanes, op->site);
        if (lanes) emu_check_lanes_touch(op, f, at, lanes);
        return;
    }
    if (op->sub & EMU_CHECK_SYNC || op->mode != EMU_CK_PLAIN || !cells || cells & (cells - 1) || cells > 4) {
        emu_check_lanes_touch(op, f, at, lanes);
        return;
    }
    bool writes = op->sub & EMU_CHECK_WRITE;
    uint32_t rest = 0;
    for (int h = 0; h < 2; h++) {
        uint32_t part = lanes >> (HALF * h) & 0xffff, c;
        const uint32_t *p = at + HALF * h;
        int32_t now = cw->now + HALF * h;
        if (part == 0xffff) {
            uint32_t row = 0, same = 0;
            for (int i = 0; i < HALF; i++) row |= p[i] ^ (p[0] + bytes * (uint32_t)i);
            for (int i = 0; i < HALF; i++) same |= p[i] ^ p[0];
            c = p[0] >> k->shift;
            if (!row) {
                int per = cells == 1 ? 0 : cells == 2 ? 1 : 2;
                bool ok =
                    writes ? per == 0 ? write_row(k, cw, c, now, op->site, 0) : write_row(k, cw, c, now, op->site, per)
                    : per == 0 ? read_row(k, cw, c, now, op->site, 0)
                               : read_row(k, cw, c, now, op->site, per);
                if (ok) continue;
            } else if (!same && !writes && read_same(k, cw, c, cells, now, op->site))
                continue;
        }
        rest |= part << (HALF * h);
    }
    if (rest && cells == 1) rest = writes ? write_lanes(op, f, cw, at, rest) : read_lanes(k, cw, at, rest, op->site);
    if (rest) emu_check_lanes_touch(op, f, at, rest);
}
