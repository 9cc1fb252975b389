/* Rows of a warp in shared memory, loaded as they were stored: trees and scans store a row, and load one that begins
 * some lanes further on, which overlaps two stores. A processor hands a store on to a load that lies within it, else
 * the load waits until the stores are in the cache. So where rows are stored at multiples of a vector register, a load
 * at another place is two such and a shift, unless many warps have run since; and of some lanes that are known
 * (split.c) the whole vectors are stored, others with what they had. That is known of addresses that come from thread
 * numbers and constants alone. */
#include "device/cpu/plugin/emit.h"

#define B e->b

enum { LANE_BYTES = 4, ROW_BYTES = LANE_BYTES * EMU_LANES };

static int64_t piece_bytes(struct emit *e)
{
    return emit_is(e, EMU_ISA_AVX512) ? 64 : 32;
}

/* Where lane 0 of warp 0 accesses shared memory, of lanes in a row and warps at multiples of a piece; false: not so. */
static bool place_of(struct emit *e, const struct cpu_inst *in, int64_t *at)
{
    const struct cpu_reg *r = in->s[0] ? &e->f->regs[in->s[0] - 1] : NULL;
    if (!e->whole || !emit_is(e, EMU_ISA_AVX2) || in->where != EMU_AT_SHARED || in->space == MG_SPACE_generic ||
        in->guard || in->bytes != LANE_BYTES || in->vec != 1 || !in->list[0])
        return false;
    if (!r || r->kind != CPU_REG_PLAIN || r->known || !r->fixed || r->shape.varying || r->shape.halves ||
        r->shape.tile || r->shape.stride != LANE_BYTES || r->step % piece_bytes(e))
        return false;
    *at = (int32_t)r->base[0] + in->off;
    return *at % LANE_BYTES == 0;
}

/* The least and the greatest place of lane 0 among the warps. */
static void places(struct emit *e, const struct cpu_inst *in, int64_t at, int64_t *least, int64_t *most)
{
    int64_t all = e->f->regs[in->s[0] - 1].step * (e->f->region.n_warps - 1);
    *least = at + MG_MIN(all, 0);
    *most = at + MG_MAX(all, 0);
}

static int64_t room(struct emit *e)
{
    int64_t w = piece_bytes(e);
    return (e->f->static_shared + w - 1) / w * w;
}

/* Pieces may lie in front of shared memory or behind it where no lane of theirs is active. */
static bool is_near(struct emit *e, const struct cpu_inst *in, int64_t at)
{
    int64_t least, most;
    places(e, in, at, &least, &most);
    return least > -ROW_BYTES && most < room(e) && room(e);
}

static bool is_row_store(struct emit *e, const struct cpu_inst *in)
{
    int64_t at;
    return in->kind == CPU_STORE && place_of(e, in, &at) && at % piece_bytes(e) == 0;
}

static bool stores_rows(struct emit *e)
{
    for (uint32_t i = 0; i < e->f->n_insts; i++)
        if (is_row_store(e, &e->f->insts[i])) return true;
    return false;
}

/* Does the warp come here from a row that it has stored, without having waited for others? */
static bool has_stored_row(struct emit *e)
{
    const struct cpu_start *last = e->f->region.starts + emit_region(e), *s = last;
    while (s > e->f->region.starts && s[-1].goes_on) s--;
    for (; s <= last; s++)
        for (uint32_t b = 0; b < e->f->n_blocks; b++)
            for (uint32_t i = e->f->blocks[b].first; mg_has(s->reach, b) && i < e->f->blocks[b].end; i++)
                if ((s < last || i < e->ix) && is_row_store(e, &e->f->insts[i])) return true;
    return false;
}

/* Are stores still on their way to the cache where their row is loaded? Not if many warps have run since. With AVX-512
 * up to 8 are unrolled, and a row that is loaded as it was stored is in registers. */
static bool is_recent(struct emit *e)
{
    uint32_t few_warps = emit_is(e, EMU_ISA_AVX512) ? 8 : 2;
    return e->f->region.n_warps <= few_warps ? stores_rows(e) : has_stored_row(e);
}

bool emit_in_pieces(struct emit *e, const struct cpu_inst *in)
{
    int64_t at, least, most;
    if (!place_of(e, in, &at) || !is_near(e, in, at)) return false;
    if (in->kind == CPU_LOAD) return is_recent(e);
    places(e, in, at, &least, &most);
    return in->kind == CPU_STORE && at % piece_bytes(e) == 0 && least >= 0 && most + ROW_BYTES <= room(e);
}

/* How many lanes lane 0 stands behind the begin of its piece */
static unsigned shift_of(struct emit *e, const struct cpu_inst *in)
{
    int64_t at = 0, w = piece_bytes(e);
    place_of(e, in, &at);
    return (unsigned)((at % w + w) % w / LANE_BYTES);
}

/* Piece k from the one on in which lane 0 lies */
static val piece_at(struct emit *e, unsigned k)
{
    const struct cpu_inst *in = e->in;
    int64_t at = 0, least, most, by = (int64_t)k * piece_bytes(e) - (int64_t)shift_of(e, in) * LANE_BYTES;
    place_of(e, in, &at);
    places(e, in, at, &least, &most);
    val low = LLVMBuildTrunc(B, emit_address(e, in, false, 0), e->t.i32, "");
    val off = LLVMBuildAdd(B, LLVMBuildSExt(B, low, e->t.i64, ""), k64(e, (uint64_t)by), "");
    val args[2] = {off, k64(e, 0)};
    if (least + by < 0) off = emit_intrinsic(e, "llvm.smax", &e->t.i64, 1, args, 2);
    args[0] = off, args[1] = k64(e, (uint64_t)(room(e) - piece_bytes(e)));
    if (most + by + piece_bytes(e) > room(e)) off = emit_intrinsic(e, "llvm.smin", &e->t.i64, 1, args, 2);
    return LLVMBuildGEP2(B, e->t.i8, e->arg.shared, &off, 1, "");
}

static LLVMTypeRef piece_type(struct emit *e)
{
    return LLVMVectorType(e->t.i32, (unsigned)(piece_bytes(e) / LANE_BYTES));
}
static val load_piece(struct emit *e, unsigned k)
{
    return emit_single(e, LLVMBuildLoad2(B, piece_type(e), piece_at(e, k), ""), (unsigned)piece_bytes(e));
}

/* n lanes from the first on, of v and behind it of next */
static val lanes_from(struct emit *e, val v, val next, unsigned first, unsigned n)
{
    val pick[EMU_LANES];
    for (unsigned i = 0; i < n; i++) pick[i] = k32(e, first + i);
    return LLVMBuildShuffleVector(B, v, next, LLVMConstVector(pick, n), "");
}

val emit_load_pieces(struct emit *e, uint32_t lanes)
{
    unsigned per = (unsigned)(piece_bytes(e) / LANE_BYTES), n = EMU_LANES / per, shift = shift_of(e, e->in);
    val piece[EMU_LANES / 8 + 1], all[EMU_LANES / 8], none = LLVMGetPoison(piece_type(e));
    for (unsigned k = 0; k <= n; k++) { /* lanes per * k - shift to per * (k + 1) - shift - 1 */
        uint64_t its = (((uint64_t)1 << per) - 1) << (per * k);
        piece[k] = its & (uint64_t)lanes << shift ? load_piece(e, k) : none;
    }
    for (unsigned k = 0; k < n; k++) all[k] = lanes_from(e, piece[k], piece[k + 1], shift, per);
    for (; n > 1; n /= 2)
        for (unsigned k = 0; k < n / 2; k++) all[k] = lanes_from(e, all[2 * k], all[2 * k + 1], 0, EMU_LANES / (n / 2));
    return all[0];
}

void emit_store_pieces(struct emit *e, val v, uint32_t lanes)
{
    unsigned per = (unsigned)(piece_bytes(e) / LANE_BYTES);
    for (unsigned k = 0; k < EMU_LANES / per; k++) {
        val who[16], own = lanes_from(e, v, LLVMGetPoison(LLVMTypeOf(v)), k * per, per);
        uint32_t some = lanes >> (per * k) & (uint32_t)(((uint64_t)1 << per) - 1);
        for (unsigned i = 0; i < per; i++) who[i] = LLVMConstInt(e->t.i1, some >> i & 1, 0);
        if (!some) continue;
        if (some != ((uint64_t)1 << per) - 1)
            own = LLVMBuildSelect(B, LLVMConstVector(who, per), own, load_piece(e, k), "");
        emit_single(e, LLVMBuildStore(B, own, piece_at(e, k)), (unsigned)piece_bytes(e));
    }
}
