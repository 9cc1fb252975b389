/* Blocks for lanes that are known (known.c) and lie apart in shared memory, as along the diagonals of a tile: code for
 * one lane after the other, with every address a constant. A gather and a scatter take as long as they have lanes.
 *
 * Lanes of a warp take each step together. One after the other gives the same where none stores what another one loads
 * or stores in another step of the block; addresses are known, so that is looked at. What is written has to end with
 * the block. */
#include "device/cpu/plugin/emit.h"

#include <stdlib.h>

#include "device/emu/alu_form.h"

#define B e->b

enum { MOST_LANES = 16, MOST_OPS = 64, MOST_ACCESSES = 16, GATHER = 14, PER_CYCLE = 4 };

/* Has the operation code for one lane, which never leaves? */
static bool has_code(const struct cpu_inst *in)
{
    bool real = in->t[0] == MG_TYPE_f32 || in->t[0] == MG_TYPE_f64;
    if (in->guard) return false;
    switch ((enum cpu_kind)in->kind) {
    case CPU_NOP:
        return true;
    case CPU_ALU:
        return !in->d2 && (!real || in->op == MG_OP_setp || !(in->imm || in->key & (K_APPROX | K_FULL)));
    case CPU_MOV:
    case CPU_NOT_P:
    case CPU_LOW:
    case CPU_ZEXT:
    case CPU_SEXT:
        return true;
    case CPU_LOAD:
    case CPU_STORE:
        return in->where == EMU_AT_SHARED && in->vec == 1 && !in->mode && in->list[0] && in->s[0] &&
               in->space != MG_SPACE_generic && !in->probe;
    default:
        return false;
    }
}

/* Does the operation make a scalar of which it is known what it always is? Such are made before all lanes. */
static bool is_plain(const struct emit *e, const struct cpu_inst *in)
{
    const struct cpu_reg *d = in->d ? &e->f->regs[in->d - 1] : NULL;
    return d && (in->kind == CPU_ALU || in->kind == CPU_MOV) && !in->guard && !in->d2 && in->key != K_WIDE &&
           in->op != MG_OP_cvt && d->kind == CPU_REG_PLAIN && !d->shape.varying && d->fixed;
}

/* Where in shared memory a lane accesses; false: not known, or not inside. */
static bool place_of(const struct emit *e, const struct cpu_inst *in, uint32_t lane, int64_t *at)
{
    const struct cpu_reg *r = &e->f->regs[in->s[0] - 1];
    if (!cpu_is_constant(r) && (r->kind != CPU_REG_PLAIN || !r->fixed)) return false;
    *at = cpu_is_constant(r) ? (int32_t)r->value
                             : (int32_t)r->base[r->shape.halves && lane > 15] + cpu_lane_offset(e->f, r->shape, lane);
    *at += in->off;
    return *at >= 0 && *at + in->bytes <= e->f->static_shared && *at % in->bytes == 0;
}

struct block {
    uint32_t ops, n, access[MOST_ACCESSES];
    int64_t at[MOST_ACCESSES][EMU_LANES];
    unsigned apart; /* accesses of which lanes lie apart */
};

static bool look(struct emit *e, uint32_t b, uint32_t lanes, struct block *out)
{
    const struct cpu_func *f = e->f;
    for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
        const struct cpu_inst *in = &f->insts[i];
        bool memory = in->kind == CPU_LOAD || in->kind == CPU_STORE;
        if (in->kind == CPU_CTL && i + 1 == f->blocks[b].end) break;
        if (is_plain(e, in)) continue;
        if (!has_code(in) || ++out->ops > MOST_OPS || (memory && out->n == MOST_ACCESSES)) return false;
        uint32_t d = in->kind == CPU_LOAD ? in->list[0] : in->kind == CPU_STORE ? 0 : in->d;
        if (d && (!f->regs[d - 1].shape.varying || f->regs[d - 1].settled)) return false;
        if (!memory) continue;
        int64_t *at = out->at[out->n], last = -1;
        bool apart = false;
        for (uint32_t l = 0; l < EMU_LANES; l++) {
            if (!(lanes >> l & 1)) continue;
            if (!place_of(e, in, l, &at[l])) return false;
            apart |= last >= 0 && at[l] - last != in->bytes && at[l] != last;
            last = at[l];
        }
        out->apart += apart;
        out->access[out->n++] = i;
    }
    return out->apart;
}

/* Does a lane touch in step `a` what a later one does in step `b` before it, one of both storing? */
static bool clash(const struct emit *e, const struct block *k, uint32_t lanes, uint32_t a, uint32_t b)
{
    const struct cpu_inst *x = &e->f->insts[k->access[a]], *y = &e->f->insts[k->access[b]];
    if (x->kind != CPU_STORE && y->kind != CPU_STORE) return false;
    for (uint32_t i = 0; i < EMU_LANES; i++)
        for (uint32_t j = i + 1; j < EMU_LANES; j++)
            if (lanes >> i & 1 && lanes >> j & 1 && k->at[a][i] < k->at[b][j] + y->bytes &&
                k->at[b][j] < k->at[a][i] + x->bytes)
                return true;
    return false;
}

static bool suits(struct emit *e, uint32_t b, uint32_t lanes, struct block *k)
{
    const struct cpu_func *f = e->f;
    uint32_t n = (uint32_t)__builtin_popcount(lanes);
    if (!lanes || n > MOST_LANES || !look(e, b, lanes, k) || n * k->ops > PER_CYCLE * (GATHER * k->apart + k->ops))
        return false;
    for (uint32_t x = 0; x < k->n; x++)
        for (uint32_t y = 0; y < x; y++)
            if (clash(e, k, lanes, x, y)) return false;
    cpu_live_at(f, b, f->blocks[b].end - 1, e->scratch);
    for (uint32_t r = 0; r < f->reg_words; r++) e->scratch[r] |= f->blocks[b].keep[r];
    for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
        const struct cpu_inst *in = &f->insts[i];
        uint32_t d = in->kind == CPU_LOAD ? in->list[0] : in->kind == CPU_STORE || in->kind == CPU_CTL ? 0 : in->d;
        if (d && !is_plain(e, in) && mg_has(e->scratch, d - 1)) return false;
    }
    return true;
}

/* ---- code ---------------------------------------------------------------------------------------------------------
 */

struct begin {
    struct emit *e;
    uint32_t lane;
    uint64_t *written;
};

/* What the lane has in a register that the block reads before it writes it. */
static void begin_register(void *user, uint32_t r)
{
    struct begin *g = user;
    struct emit *e = g->e;
    const struct cpu_reg *reg = &e->f->regs[r];
    if (mg_has(g->written, r) || cpu_is_constant(reg)) return;
    mg_put(g->written, r);
    emit_lane_needs(e, r);
    e->version = PART;
    val v;
    if (reg->shape.varying)
        v = LLVMBuildExtractElement(B, emit_vec(e, r + 1, true), k32(e, g->lane), "");
    else {
        v = emit_scalar(e, r + 1, reg->shape.halves && g->lane > 15, true);
        int64_t off = cpu_lane_offset(e->f, reg->shape, g->lane);
        if (off) v = LLVMBuildAdd(B, v, LLVMConstInt(LLVMTypeOf(v), (uint64_t)off, 0), "");
    }
    e->version = LANE;
    LLVMBuildStore(B, v, e->serial.vars[r]);
}

static void write_begun(void *user, uint32_t r, bool must)
{
    struct begin *g = user;
    (void)must;
    mg_put(g->written, r);
}

static void access(struct emit *e, int64_t at)
{
    const struct cpu_inst *in = e->in;
    LLVMTypeRef t = emit_mem_type(e, in->bytes);
    val p = emit_at(e, e->arg.shared, (uint64_t)at);
    if (in->kind == CPU_LOAD) {
        val v = emit_single(e, LLVMBuildLoad2(B, t, p, ""), in->bytes);
        emit_set_scalar(e, in->list[0], 0, emit_extended(e, in, v, false), NULL);
        return;
    }
    val v = emit_scalar(e, in->list[0], 0, false);
    if (LLVMTypeOf(v) != t) v = LLVMBuildTrunc(B, v, t, "");
    emit_single(e, LLVMBuildStore(B, v, p), in->bytes);
}

static bool lane_by_lane(struct emit *e, uint32_t b, uint32_t lanes, const struct block *k, uint64_t *written)
{
    struct cpu_func *f = e->f;
    bool ok = true;
    for (e->ix = f->blocks[b].first; e->ix < f->blocks[b].end && ok; e->ix++)
        if (is_plain(e, e->in = &f->insts[e->ix])) ok = emit_instruction(e);
    for (uint32_t lane = 0; lane < EMU_LANES; lane++) {
        if (!(lanes >> lane & 1)) continue;
        struct begin g = {e, lane, written};
        uint32_t n = 0;
        for (uint32_t i = 0; i < f->reg_words; i++) written[i] = 0;
        for (e->ix = f->blocks[b].first; e->ix < f->blocks[b].end && ok; e->ix++) {
            e->in = &f->insts[e->ix];
            if (e->in->kind == CPU_CTL) break;
            if (is_plain(e, e->in)) continue;
            e->version = LANE;
            bool memory = n < k->n && k->access[n] == e->ix;
            if (!memory)
                cpu_each_use(f, e->in, begin_register, &g);
            else if (e->in->kind == CPU_STORE)
                begin_register(&g, e->in->list[0] - 1);
            cpu_each_def(f, e->in, emit_lane_needs_def, e);
            if (memory)
                access(e, k->at[n++][lane]);
            else
                ok = emit_instruction(e);
            cpu_each_def(f, e->in, write_begun, &g);
        }
    }
    e->version = PART;
    return ok;
}

/* The operations of block b but a jump at its end, where that is worth while: *done. false: an operation has no code */
bool emit_few_lanes(struct emit *e, uint32_t b, bool *done)
{
    struct block k = {0};
    uint32_t lanes = emit_known_lanes(e);
    if (!lanes || !suits(e, b, lanes, &k)) return true;
    uint64_t *written = mg_xcalloc(e->f->reg_words + 1, sizeof *written);
    bool ok = lane_by_lane(e, b, lanes, &k, written);
    free(written);
    *done = true;
    return ok;
}
