/* Regions of whole-CTA code that need not wait for one another, as the two of a round of
 *
 *     for (d = 1; d < blockDim.x; d *= 2) { v = t >= d ? s[t - d] : 0; __syncthreads(); s[t] += v; __syncthreads(); }
 *
 * Each warp goes on from one to the next at once (cpu_start.then), and what it has in registers stays there. Warps run
 * from the first to the last, or the other way round (down), so that no warp reads what another one is to write later,
 * nor writes what it is to read or write. That is known where all that regions touch lies at known places of shared
 * memory, and the lanes at each of their blocks are known; so nothing in them can fault, and nobody leaves them. */
#include "device/cpu/cpu.h"

#include <stdlib.h>

enum { WORD = 4, MOST_WORDS = 1 << 14 };

/* Words of shared memory that a region reads and writes, by warp; reads NULL: not known. */
struct touched {
    uint64_t *reads, *writes;
};

struct fuse {
    struct cpu_func *f;
    struct touched *of; /* by start */
    uint32_t words;     /* of a set */
    uint32_t *lanes;    /* by block, of the warp that is looked at */
};

/* The first byte that a lane of the warp accesses; false: not known, or not inside, or not at a multiple of the size */
static bool place_of(const struct cpu_func *f, const struct cpu_inst *in, uint32_t warp, uint32_t lane, int64_t *at)
{
    const struct cpu_reg *r = in->s[0] ? &f->regs[in->s[0] - 1] : NULL;
    int64_t size = (int64_t)in->bytes * in->vec;
    *at = in->off;
    if (r && cpu_is_constant(r))
        *at += (int32_t)r->value;
    else if (r && r->kind == CPU_REG_PLAIN && r->fixed && !r->shape.varying)
        *at += (int32_t)r->base[r->shape.halves && lane > 15] + r->step * warp + cpu_lane_offset(f, r->shape, lane);
    else if (r)
        return false;
    return *at >= 0 && *at + size <= f->static_shared && *at % size == 0;
}

static bool touch(struct fuse *z, const struct cpu_inst *in, uint32_t warp, uint32_t lanes, struct touched *t)
{
    uint64_t *set = (in->kind == CPU_STORE ? t->writes : t->reads) + (size_t)warp * z->words;
    int64_t at;
    if (in->where != EMU_AT_SHARED || in->mode != EMU_ORDER_WEAK) return false;
    for (uint32_t i = 0; i < EMU_LANES; i++) {
        if (!(lanes >> i & 1)) continue;
        if (!place_of(z->f, in, warp, i, &at)) return false;
        for (int64_t w = at / WORD; w <= (at + in->bytes * in->vec - 1) / WORD; w++) mg_put(set, (uint32_t)w);
    }
    return true;
}

static bool may_run(struct fuse *z, const struct cpu_inst *in, uint32_t warp, uint32_t lanes, struct touched *t)
{
    switch ((enum cpu_kind)in->kind) {
    case CPU_LOAD:
    case CPU_STORE:
        return touch(z, in, warp, lanes, t);
    case CPU_CTL:
        return in->ctl == EMU_CTL_NEXT || in->ctl == EMU_CTL_BRA || in->ctl == EMU_CTL_BAR;
    default:
        return cpu_only_computes(in);
    }
}

/* The lanes that run block b go on. */
static bool go_on(struct fuse *z, const struct cpu_start *s, uint32_t b, uint32_t warp)
{
    const struct cpu_func *f = z->f;
    const struct cpu_inst *in = &f->insts[f->blocks[b].end - 1];
    uint32_t taken;
    if (in->kind == CPU_CTL && in->guard) {
        if (in->ctl != EMU_CTL_BRA || in->target <= b || in->fall <= b || !cpu_branch_lanes(f, b, warp, &taken))
            return false;
        z->lanes[in->target] |= z->lanes[b] & taken;
        z->lanes[in->fall] |= z->lanes[b] & ~taken;
        return true;
    }
    if (cpu_stop_of(f, b)) return z->lanes[b] == UINT32_MAX && mg_has(s->always, b);
    if (!mg_graph_degree(&f->within, b)) return false;
    MG_EACH_EDGE(&f->within, b, e)
    {
        if (f->within.to[e] <= b) return false;
        z->lanes[f->within.to[e]] |= z->lanes[b];
    }
    return true;
}

static bool walk(struct fuse *z, const struct cpu_start *s, uint32_t warp, struct touched *t)
{
    const struct cpu_func *f = z->f;
    for (uint32_t b = 0; b < f->n_blocks; b++) z->lanes[b] = b == s->block ? UINT32_MAX : 0;
    for (uint32_t b = s->block; b < f->n_blocks; b++) {
        if (!mg_has(s->reach, b) || !z->lanes[b]) continue;
        if (f->serial_of[b]) return false; /* lanes that take long come back to it */
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++)
            if (!may_run(z, &f->insts[i], warp, z->lanes[b], t)) return false;
        if (!go_on(z, s, b, warp)) return false;
    }
    return true;
}

static bool is_empty(const uint64_t *set, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        if (set[i]) return false;
    return true;
}

static void look_at(struct fuse *z, uint32_t which)
{
    struct cpu_func *f = z->f;
    const struct cpu_start *s = &f->region.starts[which];
    size_t n = (size_t)z->words * f->region.n_warps;
    struct touched t = {mg_xcalloc(n, sizeof *t.reads), mg_xcalloc(n, sizeof *t.writes)};
    bool good = s->n_stops == 1 && s->stop & 1 && !f->region.paused[s->block] && is_empty(s->idle[0], f->block_words) &&
                is_empty(s->idle[1], f->block_words);
    for (uint32_t w = 0; w < f->region.n_warps && good; w++) good = walk(z, s, w, &t);
    if (good) {
        z->of[which] = t;
        return;
    }
    free(t.reads);
    free(t.writes);
}

/* May each warp do `after` at once when it has done `before`? */
static bool may_follow(const struct fuse *z, const struct touched *before, const struct touched *after, bool down)
{
    uint32_t n = z->f->region.n_warps;
    for (uint32_t k = 0; k < z->words; k++) {
        uint64_t reads = 0, writes = 0; /* of warps that do `before` later */
        for (uint32_t i = 0; i < n; i++) {
            size_t w = (size_t)(down ? i : n - 1 - i) * z->words + k;
            if (after->writes[w] & (reads | writes) || after->reads[w] & writes) return false;
            reads |= before->reads[w];
            writes |= before->writes[w];
        }
    }
    return true;
}

/* Does nobody else come to the start? */
static bool comes_alone(const struct cpu_func *f, uint32_t which)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->region.n_starts; i++)
        for (uint32_t b = 0; b < f->n_blocks; b++) {
            uint32_t id = mg_has(f->region.starts[i].reach, b) ? cpu_stop_of(f, b) : 0;
            if (id && f->region.start_of[id / 2 - 1] == which + 1 && i + 1 != which) n++;
        }
    return !n;
}

/* The start behind the last of those that are fused from the first on */
static uint32_t group(struct fuse *z, uint32_t first, bool down)
{
    struct cpu_func *f = z->f;
    uint32_t i = first + 1;
    for (; i < f->region.n_starts && z->of[i].reads; i++) {
        if (f->region.start_of[f->region.starts[i - 1].stop / 2 - 1] != i + 1 || !comes_alone(f, i)) break;
        bool good = true;
        for (uint32_t k = first; k < i && good; k++) good = may_follow(z, &z->of[k], &z->of[i], down);
        if (!good) break;
    }
    return i;
}

void cpu_find_fused(struct cpu_func *f)
{
    const struct cpu_regions *g = &f->region;
    uint32_t words = f->static_shared / WORD + 1;
    if (!g->wanted || g->n_warps < 2 || g->tail || g->lossy || g->resumes || g->n_starts < 3 || words > MOST_WORDS)
        return;
    struct fuse z = {.f = f,
                     .words = words / 64 + 1,
                     .of = mg_xcalloc(g->n_starts, sizeof *z.of),
                     .lanes = mg_xcalloc(f->n_blocks, sizeof *z.lanes)};
    for (uint32_t i = 1; i < g->n_starts; i++) look_at(&z, i);
    for (uint32_t i = 1, end; i < g->n_starts; i = end) {
        end = i + 1;
        if (!z.of[i].reads) continue;
        uint32_t up = group(&z, i, false), down = group(&z, i, true);
        end = MG_MAX(up, down);
        for (uint32_t k = i; k < end; k++) {
            struct cpu_start *s = &g->starts[k];
            s->fused = end - i > 1;
            s->goes_on = k + 1 < end;
            s->down = down > up;
            f->region.n_fused += s->fused;
        }
    }
    for (uint32_t i = 0; i < g->n_starts; i++) {
        free(z.of[i].reads);
        free(z.of[i].writes);
    }
    free(z.of);
    free(z.lanes);
}
