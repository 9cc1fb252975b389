/* Rows of a tile in shared memory, loaded as they were stored. A processor hands a store on to a load that lies within
 * it; a load of a row that begins a few lanes further on or back overlaps two, and waits until both are in the cache,
 * behind all that was stored before. So the row is loaded as it was stored, and the few lanes beside it one by one.
 * Which stores there are is known of places that come from thread numbers and constants alone; what else is there is
 * only slow. */
#include "device/cpu/plugin/emit.h"

#include <stdlib.h>

#define B e->b

enum { LANE_BYTES = 4, MOST_BESIDE = 2 };

/* Lanes of a store that lie one behind the other: n from `place` on, in warp 0. */
struct piece {
    int64_t place;
    unsigned n;
};
struct search {
    struct emit *e;
    int64_t place, step; /* of the load, in warp 0; from there in the next one */
    unsigned n;
    int64_t by;        /* the nearest row of n lanes begins so many lanes in front of the load; INT64_MAX: none */
    struct piece side; /* what is stored beside that row in one go and holds what the load needs; n: 0: none */
};

/* How far the load stands behind a piece, in whichever warp that is nearest. */
static int64_t behind(const struct search *z, int64_t place)
{
    int64_t d = z->place - place, step = llabs(z->step);
    if (!step) return d;
    d = (d % step + step) % step;
    return d > step / 2 ? d - step : d;
}

static void look_for_row(struct search *z, struct piece p)
{
    int64_t d = behind(z, p.place);
    if (p.n < z->n || d % LANE_BYTES) return;
    for (unsigned first = 0; first + z->n <= p.n; first += z->n, d -= (int64_t)z->n * LANE_BYTES)
        if (llabs(d) <= MOST_BESIDE * LANE_BYTES && llabs(d / LANE_BYTES) < llabs(z->by)) z->by = d / LANE_BYTES;
}

static void look_beside(struct search *z, struct piece p)
{
    int64_t lack = llabs(z->by), first = z->by > 0 ? z->n - lack : 0; /* lanes that are not in the row */
    int64_t d = behind(z, p.place) / LANE_BYTES + first;
    if (p.n <= MOST_BESIDE && d >= 0 && d + lack <= p.n)
        z->side = (struct piece){z->place + (first - d) * LANE_BYTES, p.n};
}

/* Calls fn for all that stores of the function write in one go. */
static void each_piece(struct search *z, void (*fn)(struct search *, struct piece))
{
    struct cpu_func *f = z->e->f;
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
            const struct cpu_inst *st = &f->insts[i];
            const struct cpu_reg *r = st->s[0] ? &f->regs[st->s[0] - 1] : NULL;
            uint32_t lanes = f->blocks[b].few ? f->blocks[b].few : UINT32_MAX;
            if (st->kind != CPU_STORE || st->where != EMU_AT_SHARED || st->space == MG_SPACE_generic || st->vec != 1 ||
                st->bytes != LANE_BYTES || !r || r->kind != CPU_REG_PLAIN || r->known || !r->fixed ||
                r->shape.varying || r->shape.halves || (f->region.n_warps > 1 && r->step != z->step))
                continue;
            struct piece p = {0};
            for (unsigned k = 0; k < EMU_LANES; k++) {
                int64_t at = (int32_t)r->base[0] + st->off + cpu_lane_offset(f, r->shape, k);
                bool on = lanes >> k & 1;
                if (p.n && (!on || at != p.place + (int64_t)p.n * LANE_BYTES)) fn(z, p), p.n = 0;
                if (on && !p.n++) p.place = at;
            }
            if (p.n) fn(z, p);
        }
}

/* Does it lie in shared memory in every warp? */
static bool is_inside(const struct search *z, int64_t place, unsigned n)
{
    int64_t far = z->step * (z->e->f->region.n_warps - 1);
    return place + MG_MIN(far, 0) >= 0 && place + MG_MAX(far, 0) + (int64_t)n * LANE_BYTES <= z->e->f->static_shared;
}

static val load(const struct search *z, val at, int64_t place, unsigned n)
{
    struct emit *e = z->e;
    LLVMTypeRef t = n > 1 ? LLVMVectorType(e->t.i32, n) : e->t.i32;
    return emit_single(e, LLVMBuildLoad2(B, t, emit_at(e, at, (uint64_t)(place - z->place)), ""), LANE_BYTES);
}

/* The piece beside the row, in the first of n lanes. It is loaded as it was stored: by powers of two. */
static val load_side(const struct search *z, val at)
{
    struct emit *e = z->e;
    val v = LLVMGetPoison(LLVMVectorType(e->t.i32, z->n)), pick[EMU_LANES];
    for (unsigned k = 0, n; k < z->side.n; k += n) {
        for (n = 1; 2 * n <= z->side.n - k;) n *= 2;
        val own = load(z, at, z->side.place + (int64_t)k * LANE_BYTES, n);
        if (n == 1) {
            v = LLVMBuildInsertElement(B, v, own, k32(e, k), "");
            continue;
        }
        for (unsigned i = 0; i < z->n; i++) pick[i] = i < n ? k32(e, i) : LLVMGetPoison(e->t.i32);
        v = LLVMBuildShuffleVector(B, own, LLVMGetPoison(LLVMTypeOf(own)), LLVMConstVector(pick, z->n), "");
    }
    return v;
}

/* Looks for the row that the load overlaps, and what lies beside it. */
static bool overlaps(struct search *z)
{
    each_piece(z, look_for_row);
    if (!z->by || z->by == INT64_MAX || !is_inside(z, z->place - z->by * LANE_BYTES, z->n)) return false;
    each_piece(z, look_beside);
    return z->side.n && is_inside(z, z->side.place, z->side.n);
}

val emit_load_as_stored(struct emit *e, const val *at, const int64_t *place, unsigned rows, int64_t step, unsigned n)
{
    val own[2], side[2], pick[EMU_LANES];
    struct search z[2];
    bool good = true;
    for (unsigned r = 0; r < rows; r++) {
        z[r] = (struct search){.e = e, .place = place[r], .step = step, .n = n, .by = INT64_MAX};
        good &= overlaps(&z[r]) && z[r].by == z[0].by && z[r].side.place - place[r] == z[0].side.place - place[0];
    }
    for (unsigned r = 0; r < rows; r++) {
        own[r] = load(&z[r], at[r], good ? place[r] - z[r].by * LANE_BYTES : place[r], n);
        if (good) side[r] = load_side(&z[r], at[r]);
    }
    val v = emit_joined(e, own, rows);
    if (!good) return v;
    for (unsigned i = 0; i < n * rows; i++) {
        int64_t row = i - i % n, from = (int64_t)(i % n) + z[0].by;
        bool inside = from >= 0 && from < n;
        if (!inside) from = n * rows + ((int64_t)(i % n) - (z[0].side.place - place[0]) / LANE_BYTES);
        pick[i] = k32(e, (uint64_t)(row + from));
    }
    return LLVMBuildShuffleVector(B, v, emit_joined(e, side, rows), LLVMConstVector(pick, n * rows), "");
}
