/* Warp-level operations: shfl, vote, match, redux, elect, with and without .sync.
 *
 * The .sync forms are executed for lanes that may have come from several places (struct emu_part):
 * values are gathered by lane, combined, and scattered to each place's own destination.
 * Operand places: a.s[0] value, a.s[1] second (shfl lane), a.s[2] third (shfl clamp), a.cc the
 * member mask (ORDER SYNC), a.d result, a.d2 predicate.
 */
#include "device/emu/defined.h"
#include "device/emu/matrix.h"

#include <string.h>

enum { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
enum { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum { MATCH_ANY, MATCH_ALL };
enum { REDUX_ADD, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR };

static const uint32_t *words(const char *regs, uint32_t off)
{
    return (const uint32_t *)(regs + off);
}

/* PTX ISA, shfl: c holds clamp in bits 0-4 and the segment mask in bits 8-12. */
bool emu_shfl_source(unsigned mode, uint32_t lane, uint32_t b, uint32_t c, uint32_t *from)
{
    uint32_t segment = c >> 8 & 31, clamp = c & 31;
    uint32_t max = (lane & segment) | (clamp & ~segment), min = lane & segment;
    int32_t j;
    b &= 31;
    bool in;
    switch (mode) {
    case SHFL_UP:
        j = (int32_t)lane - (int32_t)b;
        in = j >= (int32_t)max;
        break;
    case SHFL_DOWN:
        j = (int32_t)(lane + b);
        in = j <= (int32_t)max;
        break;
    case SHFL_BFLY:
        j = (int32_t)(lane ^ b);
        in = j <= (int32_t)max;
        break;
    default:
        j = (int32_t)(min | (b & ~segment));
        in = j <= (int32_t)max;
        break;
    }
    *from = in ? (uint32_t)j & 31 : lane;
    return in;
}

static void set_pred(char *regs, uint32_t off, uint32_t mask, uint32_t value)
{
    uint32_t *p = (uint32_t *)(regs + off);
    *p = (*p & ~mask) | (value & mask);
}

static uint64_t fold(unsigned mode, enum mg_type t, uint64_t x, uint64_t y)
{
    float a, b, r;
    uint32_t xi = (uint32_t)x, yi = (uint32_t)y;
    switch (mode) {
    case REDUX_ADD:
        return (uint32_t)(xi + yi);
    case REDUX_AND:
        return xi & yi;
    case REDUX_OR:
        return xi | yi;
    case REDUX_XOR:
        return xi ^ yi;
    default:
        break;
    }
    bool less;
    if (t == MG_TYPE_f32) {
        memcpy(&a, &xi, 4);
        memcpy(&b, &yi, 4);
        if (a != a) return yi;
        if (b != b) return xi;
        if (a == b) { /* -0 < +0 */
            less = xi >> 31 > yi >> 31;
        } else
            less = a < b;
        r = (mode == REDUX_MIN) == less ? a : b;
        memcpy(&xi, &r, 4);
        return xi;
    }
    less = t == MG_TYPE_s32 ? (int32_t)xi < (int32_t)yi : xi < yi;
    return (mode == REDUX_MIN) == less ? xi : yi;
}

static uint32_t redux(const struct emu_op *op, const uint32_t *v, uint32_t lanes)
{
    uint64_t r = 0;
    bool first = true, nan = false;
    EMU_FOR_LANES(i, lanes)
    {
        uint32_t x = v[i];
        if (op->type == MG_TYPE_f32) {
            if (op->a.imm & 1) x &= 0x7fffffff; /* .abs */
            if ((x & 0x7fffffff) > 0x7f800000) nan = true;
        }
        r = first ? x : fold(op->mode, op->type, r, x);
        first = false;
    }
    if (op->type == MG_TYPE_f32 && ((nan && op->a.imm & 2) || ((uint32_t)r & 0x7fffffff) > 0x7f800000))
        r = 0x7fffffff; /* .NaN, or nothing else there */
    return (uint32_t)r;
}

/* Predicate of all lanes; sources may be negated (a.imm all ones). */
static uint32_t gather_pred(const struct emu_part *parts, uint32_t n)
{
    uint32_t p = 0;
    for (uint32_t k = 0; k < n; k++)
        p |= (*words(parts[k].regs, parts[k].op->a.s[0]) ^ parts[k].op->a.imm) & parts[k].mask;
    return p;
}

static void exec_shfl(const struct emu_part *parts, uint32_t n, uint32_t lanes)
{
    uint32_t v[EMU_LANES], out[EMU_LANES];
    const uint32_t *value = words(parts[0].regs, parts[0].op->a.s[0]);
    if (n > 1) {
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t *s = words(parts[k].regs, parts[k].op->a.s[0]);
            EMU_FOR_LANES(i, parts[k].mask) v[i] = s[i];
        }
        value = v;
    }
    for (uint32_t k = 0; k < n; k++) {
        const struct emu_op *op = parts[k].op;
        char *regs = parts[k].regs;
        const uint32_t *b = words(regs, op->a.s[1]), *c = words(regs, op->a.s[2]);
        uint32_t preds = 0, *d = (uint32_t *)(regs + op->a.d);
        EMU_FOR_LANES(i, parts[k].mask)
        {
            uint32_t from;
            preds |= (uint32_t)emu_shfl_source(op->mode, i, b[i], c[i], &from) << i;
            if (!(lanes >> from & 1)) from = i; /* not there: undefined in PTX */
            out[i] = value[from];
        }
        EMU_FOR_LANES(i, parts[k].mask) d[i] = out[i];
        if (op->a.d2) set_pred(regs, op->a.d2, parts[k].mask, preds);
    }
}

static void exec_match(const struct emu_part *parts, uint32_t n, uint32_t lanes)
{
    uint64_t v[EMU_LANES] = {0};
    for (uint32_t k = 0; k < n; k++) EMU_FOR_LANES(i, parts[k].mask)
    v[i] = parts[k].op->type == MG_TYPE_b64 ? ((const uint64_t *)(parts[k].regs + parts[k].op->a.s[0]))[i]
                                            : words(parts[k].regs, parts[k].op->a.s[0])[i];
    uint32_t same[EMU_LANES];
    bool all = true;
    EMU_FOR_LANES(i, lanes)
    {
        same[i] = 0;
        EMU_FOR_LANES(j, lanes) same[i] |= (uint32_t)(v[i] == v[j]) << j;
        all &= same[i] == lanes;
    }
    for (uint32_t k = 0; k < n; k++) {
        const struct emu_op *op = parts[k].op;
        uint32_t *d = (uint32_t *)(parts[k].regs + op->a.d);
        EMU_FOR_LANES(i, parts[k].mask) d[i] = op->mode == MATCH_ANY ? same[i] : all ? lanes : 0;
        if (op->a.d2) set_pred(parts[k].regs, op->a.d2, parts[k].mask, all ? UINT32_MAX : 0);
    }
}

static void exec_vote(const struct emu_part *parts, uint32_t n, uint32_t lanes)
{
    uint32_t p = gather_pred(parts, n);
    for (uint32_t k = 0; k < n; k++) {
        const struct emu_op *op = parts[k].op;
        bool r = op->mode == VOTE_ALL ? p == lanes : op->mode == VOTE_ANY ? p != 0 : p == lanes || !p;
        if (op->mode == VOTE_BALLOT) {
            uint32_t *d = (uint32_t *)(parts[k].regs + op->a.d);
            for (int i = 0; i < EMU_LANES; i++) d[i] = parts[k].mask >> i & 1 ? p : d[i];
        } else
            set_pred(parts[k].regs, op->a.d, parts[k].mask, r ? UINT32_MAX : 0);
    }
}

static void exec_redux(const struct emu_part *parts, uint32_t n, uint32_t lanes)
{
    uint32_t v[EMU_LANES];
    for (uint32_t k = 0; k < n; k++)
        EMU_FOR_LANES(i, parts[k].mask) v[i] = words(parts[k].regs, parts[k].op->a.s[0])[i];
    uint32_t r = redux(parts[0].op, v, lanes);
    for (uint32_t k = 0; k < n; k++)
        EMU_FOR_LANES(i, parts[k].mask)((uint32_t *)(parts[k].regs + parts[k].op->a.d))[i] = r;
}

static void exec_elect(const struct emu_part *parts, uint32_t n, uint32_t lanes)
{
    uint32_t leader = (uint32_t)emu_first(lanes);
    for (uint32_t k = 0; k < n; k++) {
        const struct emu_op *op = parts[k].op;
        if (op->a.d) EMU_FOR_LANES(i, parts[k].mask)((uint32_t *)(parts[k].regs + op->a.d))[i] = leader;
        if (op->a.d2) set_pred(parts[k].regs, op->a.d2, parts[k].mask, 1u << leader);
    }
}

void emu_sync_exec(const struct emu_part *parts, uint32_t n, uint32_t lanes)
{
    if (MG_UNLIKELY(parts[0].op->ext && parts[0].op->sub < EMU_SYNC_MATRIX)) emu_defined_sync(parts, n, lanes);
    switch ((enum emu_sync)parts[0].op->sub) {
    case EMU_SYNC_WARP:
        break;
    case EMU_SYNC_SHFL:
        exec_shfl(parts, n, lanes);
        break;
    case EMU_SYNC_VOTE:
        exec_vote(parts, n, lanes);
        break;
    case EMU_SYNC_MATCH:
        exec_match(parts, n, lanes);
        break;
    case EMU_SYNC_REDUX:
        exec_redux(parts, n, lanes);
        break;
    case EMU_SYNC_ELECT:
        exec_elect(parts, n, lanes);
        break;
    case EMU_SYNC_MATRIX:
        emu_matrix_exec(parts, n, lanes);
        break;
    case EMU_SYNC_MBAR:
    case EMU_SYNC_CLUSTER:
    case EMU_SYNC_WGMMA:
        break; /* waits, not exchanges: emu_wait_arrive */
    }
}

/* ---- without .sync: among the lanes that are here ---------------------------------------------- */

void emu_warp_here(const struct emu_alu *o, char *regs, uint32_t mask)
{
    struct emu_part part = {(const struct emu_op *)(const void *)o, regs, mask};
    emu_sync_exec(&part, 1, mask);
}

void emu_activemask(const struct emu_alu *o, char *regs, uint32_t mask)
{
    uint32_t *d = (uint32_t *)(regs + o->d);
    for (int i = 0; i < EMU_LANES; i++) d[i] = mask >> i & 1 ? mask : d[i];
}

/* Fills op->sub, mode, type for a warp operation; the result is its opcode when it is straight, none
 * when it is a .sync form (op->ctl says so) or none at all. */
enum emu_opcode emu_warpop_find(const struct mg_form *f, struct emu_op *op)
{
    bool sync = mg_form_has(f, MG_MOD_sync);
    op->type = f->n_types ? f->types[0] : MG_TYPE_none;
    switch ((enum mg_op)f->op) {
    case MG_OP_activemask:
        return EMU_OP_activemask;
    case MG_OP_shfl:
        op->sub = EMU_SYNC_SHFL;
        op->mode = mg_form_has(f, MG_MOD_up)     ? SHFL_UP
                   : mg_form_has(f, MG_MOD_down) ? SHFL_DOWN
                   : mg_form_has(f, MG_MOD_bfly) ? SHFL_BFLY
                                                 : SHFL_IDX;
        break;
    case MG_OP_vote:
        op->sub = EMU_SYNC_VOTE;
        op->mode = mg_form_has(f, MG_MOD_all)   ? VOTE_ALL
                   : mg_form_has(f, MG_MOD_any) ? VOTE_ANY
                   : mg_form_has(f, MG_MOD_uni) ? VOTE_UNI
                                                : VOTE_BALLOT;
        break;
    case MG_OP_match:
        op->sub = EMU_SYNC_MATCH;
        op->mode = mg_form_has(f, MG_MOD_all) ? MATCH_ALL : MATCH_ANY;
        break;
    case MG_OP_redux:
        op->sub = EMU_SYNC_REDUX;
        op->mode = mg_form_has(f, MG_MOD_add)   ? REDUX_ADD
                   : mg_form_has(f, MG_MOD_min) ? REDUX_MIN
                   : mg_form_has(f, MG_MOD_max) ? REDUX_MAX
                   : mg_form_has(f, MG_MOD_and) ? REDUX_AND
                   : mg_form_has(f, MG_MOD_or)  ? REDUX_OR
                                                : REDUX_XOR;
        break;
    case MG_OP_elect:
        op->sub = EMU_SYNC_ELECT;
        break;
    case MG_OP_bar:
        op->sub = EMU_SYNC_WARP;
        break;
    default:
        return EMU_OP_none;
    }
    if (sync) op->ctl = EMU_CTL_SYNC;
    return sync ? EMU_OP_none : EMU_OP_warp_here;
}
