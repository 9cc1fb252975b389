/* cp.async.bulk.tensor and tensormap.replace: tiles of a tensor of 1 to 5 dimensions.
 *
 * A tile lies dense in shared memory, first dimension innermost, its 16-byte pieces permuted by the
 * map's swizzle (device/tensormap.h). Elements outside the tensor read as zeros or NaN and are not
 * written; an mbarrier is told the whole tile's bytes either way.
 */
#include "device/emu/async.h"
#include "device/emu/check.h"
#include "device/emu/defined.h"

#include <string.h>

#include "device/mem.h"
#include "device/tensormap.h"

#define OP(o) ((const struct emu_op *)(const void *)(o))

struct tile { /* one copy under way */
    struct emu_frame *f;
    const struct emu_op *op;
    const struct emu_copy *c;
    const struct mg_tmap *map;
    uint32_t lane, elem;
    uint32_t count[EMU_MAX_DIMS]; /* elements in shared memory; 1 beyond the rank */
    int64_t at[EMU_MAX_DIMS];
    uint64_t shared_address; /* as the swizzle sees it: offset in the CTA's shared memory */
    char *shared;            /* of that address */
};

static MG_NORETURN void wrong(const struct tile *t, const char *what)
{
    emu_fault(t->f, t->op, MG_FAULT_TRAP, (int)t->lane, 0, 0, "tensor copy: %s", what);
}

static uint64_t tile_bytes(const struct tile *t)
{
    uint64_t n = t->elem;
    for (int d = 0; d < EMU_MAX_DIMS; d++) n *= t->count[d];
    return n;
}

/* NaN as CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA writes it */
static void fill(const struct tile *t, char *p, uint32_t n)
{
    static const uint8_t half[2] = {0xff, 0x7f}, single[4] = {0xff, 0xff, 0xff, 0x7f},
                         wide[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    const uint8_t *nan = t->elem == 2 ? half : t->elem == 4 ? single : wide;
    bool is_float = t->map->type >= MG_TMAP_F16;
    if (!t->map->nan_fill || !is_float)
        memset(p, 0, n);
    else
        for (uint32_t k = 0; k < n; k++) p[k] = (char)nan[k % t->elem];
}

/* n bytes of a row: global memory at `from` (NULL: outside) and the tile's byte `at`, by pieces that
 * the swizzle leaves whole. */
static void move_row(const struct tile *t, char *global, uint64_t at, uint64_t n)
{
    static const uint8_t types[MG_TMAP_TYPE_COUNT] = {MG_TYPE_u8,  MG_TYPE_u16, MG_TYPE_u32, MG_TYPE_s32, MG_TYPE_u64,
                                                      MG_TYPE_s64, MG_TYPE_f16, MG_TYPE_f32, MG_TYPE_f64, MG_TYPE_bf16,
                                                      MG_TYPE_f32, MG_TYPE_f32, MG_TYPE_f32}; /* of reductions */
    bool flip = t->map->swizzle == MG_TMAP_SWIZZLE_128_ATOM_32_FLIP;
    for (uint64_t k = 0; k < n;) {
        uint64_t piece = t->map->swizzle ? (flip ? 8 : 16) - ((t->shared_address + at + k) & (flip ? 7 : 15)) : n;
        uint32_t m = (uint32_t)MG_MIN(piece, n - k);
        uint64_t a = mg_tmap_swizzle(t->map->swizzle, t->shared_address + at + k);
        char *s = t->shared + (a - t->shared_address);
        if (!global)
            fill(t, s, m);
        else if (!t->c->to_global)
            memcpy(s, global + k, m);
        else if (t->c->reduce)
            emu_reduce_bytes(t->c->reduce - 1u, types[t->map->type], global + k, s, m, false);
        else
            memcpy(global + k, s, m);
        k += m;
    }
}

/* One row of the innermost dimension whose outer coordinates are inside (or not). */
static void row(const struct tile *t, uint64_t base, bool inside, uint64_t at)
{
    const struct mg_tmap *m = t->map;
    int64_t size = (int64_t)m->last[0] + 1, x = t->at[0];
    uint32_t n = t->count[0], step = m->step[0], elem = t->elem;
    if (step == 1) { /* before, inside, behind */
        int64_t before = x < 0 ? MG_MIN(-x, (int64_t)n) : 0, end = MG_MIN((int64_t)n, size - x);
        if (!inside || end < before) before = end = n;
        if (before && !t->c->to_global) move_row(t, NULL, at, (uint64_t)before * elem);
        if (end > before) {
            uint64_t ea = base + (uint64_t)(x + before) * elem;
            uint32_t bytes = (uint32_t)((uint64_t)(end - before) * elem);
            struct emu_op place = t->c->map;
            place.flags = t->c->to_global ? EMU_OF_WRITES : EMU_OF_READS;
            place.space = MG_SPACE_global;
            if (!emu_check_one(t->f, &place, (int)t->lane, ea, bytes))
                emu_fault_access(t->f, &place, (int)t->lane, ea, bytes);
            if (t->c->to_global) emu_defined_written(t->f, ea, bytes);
            move_row(t, (char *)ea, at + (uint64_t)before * elem, bytes);
        }
        if (end < (int64_t)n && !t->c->to_global)
            move_row(t, NULL, at + (uint64_t)end * elem, (uint64_t)((int64_t)n - end) * elem);
        return;
    }
    for (uint32_t k = 0; k < n; k++) {
        int64_t pos = x + (int64_t)k * step;
        bool in = inside && pos >= 0 && pos < size;
        uint64_t ea = base + (uint64_t)pos * elem;
        if (in) {
            struct emu_op place = t->c->map;
            place.flags = t->c->to_global ? EMU_OF_WRITES : EMU_OF_READS;
            place.space = MG_SPACE_global;
            if (!emu_check_one(t->f, &place, (int)t->lane, ea, elem))
                emu_fault_access(t->f, &place, (int)t->lane, ea, elem);
            if (t->c->to_global) emu_defined_written(t->f, ea, elem);
        }
        if (in || !t->c->to_global) move_row(t, in ? (char *)ea : NULL, at + (uint64_t)k * elem, elem);
    }
}

static void move_tile(const struct tile *t)
{
    const struct mg_tmap *m = t->map;
    uint32_t k[EMU_MAX_DIMS] = {0};
    uint64_t at = 0, row_bytes = (uint64_t)t->count[0] * t->elem;
    for (;;) {
        uint64_t base = m->address;
        bool inside = true;
        for (unsigned d = 1; d < m->rank; d++) {
            int64_t pos = t->at[d] + (int64_t)k[d] * m->step[d];
            inside &= pos >= 0 && pos <= (int64_t)m->last[d];
            base += (uint64_t)pos * m->strides[d - 1];
        }
        row(t, base, inside, at);
        at += row_bytes;
        unsigned d = 1;
        while (d < EMU_MAX_DIMS && ++k[d] == t->count[d]) k[d++] = 0;
        if (d == EMU_MAX_DIMS) return;
    }
}

static void open_tile(struct tile *t, const char *regs)
{
    const struct emu_copy *c = t->c;
    t->map = (const struct mg_tmap *)(const void *)emu_at(t->f, &c->map, regs, t->lane, MG_TMAP_BYTES, 64);
    if (t->map->magic != MG_TMAP_MAGIC || !t->map->rank || t->map->rank > EMU_MAX_DIMS)
        wrong(t, "the address does not hold a tensor map of cuTensorMapEncodeTiled");
    if (t->map->rank != c->n_dims) wrong(t, "the tensor map has another number of dimensions");
    t->elem = mg_tmap_type_bytes(t->map->type);
    if (!t->elem || (c->reduce && t->elem == 1)) wrong(t, "the tensor map's element type does not fit");
    for (unsigned d = 0; d < EMU_MAX_DIMS; d++) {
        t->count[d] = 1;
        if (d >= t->map->rank) continue;
        if (!t->map->box[d] || !t->map->step[d]) wrong(t, "the tensor map has an empty box");
        t->count[d] = mg_tmap_count(t->map, d);
        t->at[d] = ((const int32_t *)(regs + c->coords[d]))[t->lane];
    }
}

void emu_copy_tensor(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_copy *c = OP(o)->ext;
    struct emu_frame *f = EMU_FRAME(regs);
    EMU_FOR_LANES(i, mask)
    {
        struct tile t = {.f = f, .op = OP(o), .c = c, .lane = i};
        open_tile(&t, regs);
        uint64_t n = tile_bytes(&t);
        const struct emu_op *side = c->to_global ? &c->src : &c->dst;
        uint32_t align = t.map->interleave == 2 ? 32 : t.map->swizzle ? 128 : 16;
        char *shared = emu_at(f, side, regs, i, n, MG_MIN(align, 128u));
        uint64_t *bar = c->bar.node ? (uint64_t *)(void *)emu_at(f, &c->bar, regs, i, 8, 8) : NULL;
        uint32_t ctas = c->ctas ? ((const uint32_t *)(regs + c->ctas))[i] & 0xffff : 1;
        EMU_FOR_LANES(r, ctas)
        {
            t.shared = c->ctas ? emu_peer_at(f, shared, r) : shared;
            char *b = c->ctas && bar ? emu_peer_at(f, (const char *)bar, r) : (char *)bar;
            if (!t.shared) wrong(&t, "multicast to a CTA rank outside the cluster");
            t.shared_address = (uint64_t)t.shared & 0xfffff; /* shared memory begins at a page */
            move_tile(&t);
            if (f->w->cta->check && c->ctas) emu_check_filled(f, t.shared, (uint32_t)n);
            if (b) emu_mbar_complete((uint64_t *)(void *)b, (uint32_t)n);
        }
    }
}

/* ---- tensormap.replace ------------------------------------------------------------------------- */

/* ORDER REPLACE: decode_async.c */
enum {
    FIELD_ADDRESS,
    FIELD_RANK,
    FIELD_BOX,
    FIELD_DIM,
    FIELD_STRIDE,
    FIELD_STEP,
    FIELD_TYPE,
    FIELD_INTERLEAVE,
    FIELD_SWIZZLE,
    FIELD_FILL,
    FIELD_ATOMICITY
};
/* The instruction numbers element types otherwise than CUtensorMapDataType does. */
static uint8_t type_of(uint64_t v)
{
    static const uint8_t other[] = {MG_TMAP_F32_FTZ, MG_TMAP_F64, MG_TMAP_BF16};
    return v >= 8 && v <= 10 ? other[v - 8] : (uint8_t)v;
}

void emu_tensormap_replace(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_copy *c = OP(o)->ext;
    struct emu_frame *f = EMU_FRAME(regs);
    EMU_FOR_LANES(i, mask)
    {
        struct mg_tmap *m = (struct mg_tmap *)(void *)emu_at(f, &c->dst, regs, i, MG_TMAP_BYTES, 128);
        uint64_t v =
            c->values_wide ? ((const uint64_t *)(regs + c->value))[i] : ((const uint32_t *)(regs + c->value))[i];
        uint32_t d = c->ordinal;
        switch (c->field) {
        case FIELD_ADDRESS:
            m->address = v;
            break;
        case FIELD_RANK:
            m->rank = (uint8_t)(v + 1);
            break; /* zero-based, as PTX has it */
        case FIELD_BOX:
            if (d < MG_TMAP_DIMS) m->box[d] = (uint16_t)v;
            break;
        case FIELD_DIM:
            if (d < MG_TMAP_DIMS) m->last[d] = (uint32_t)v - 1;
            break;
        case FIELD_STRIDE:
            if (d < MG_TMAP_DIMS - 1) m->strides[d] = v;
            break;
        case FIELD_STEP:
            if (d < MG_TMAP_DIMS) m->step[d] = (uint8_t)v;
            break;
        case FIELD_TYPE:
            m->type = type_of(v);
            break;
        case FIELD_INTERLEAVE:
            m->interleave = (uint8_t)v;
            break;
        case FIELD_SWIZZLE:
            m->swizzle = (uint8_t)v;
            break;
        case FIELD_ATOMICITY:
            if (m->swizzle >= MG_TMAP_SWIZZLE_128) m->swizzle = (uint8_t)(MG_TMAP_SWIZZLE_128 + (v & 3));
            break;
        default:
            m->nan_fill = (uint8_t)v;
            break;
        }
    }
}

void emu_tensormap_copy(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_copy *c = OP(o)->ext;
    struct emu_frame *f = EMU_FRAME(regs);
    EMU_FOR_LANES(i, mask)
    memcpy(emu_at(f, &c->dst, regs, i, MG_TMAP_BYTES, 128), emu_at(f, &c->src, regs, i, MG_TMAP_BYTES, 128),
           MG_TMAP_BYTES);
}
