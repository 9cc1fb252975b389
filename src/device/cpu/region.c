/* What whole-CTA code needs to know of a kernel (plugin/whole.c).
 *
 * Such code runs region after region: from a start (the kernel's entry, what stands behind a barrier,
 * a loop where warps pause) all warps in turn up to the next stop; when all came to the same stop that
 * is the next start. Which one it is, is looked at while it runs, so nothing here has to prove that
 * barriers are met together. What is found here: the starts, where each may stop, and which registers
 * are the CTA's: in warp w they have what they have in warp 0 plus wstride * w, so one scalar stands
 * for all warps between regions. That holds for what is computed from parameters, constants and
 * thread numbers in blocks that all warps execute equally often (not tainted).
 */
#include "device/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "device/emu/alu_form.h"

struct value {
    struct mg_affine of;
    bool fixed;
    uint64_t base[2];
}; /* from warp to warp; fixed: base is what warp 0 has */
struct find {
    struct cpu_func *f;
    struct value *v;   /* by register */
    uint64_t *tainted; /* blocks that warps may execute differently often in a region */
    uint64_t *post;    /* by block: the blocks on all its ways to a stop */
    uint32_t block;
    bool changed;
    bool rows; /* of registers whose lanes most likely lie in rows: what they have if they do */
};

static const struct value own = {.of = {MG_AFFINE_VARIES, 0}};

static struct value cta(int64_t step)
{
    return (struct value){.of = mg_affine_step(step)};
}
static struct value fixed(int64_t step, uint64_t low, uint64_t high)
{
    return (struct value){mg_affine_step(step), true, {low, high}};
}

/* A thread's number in lanes 0 and 16, where it grows by the same from warp to warp. */
static struct value thread_number(const struct cpu_func *f, unsigned comp)
{
    uint32_t warps = cpu_warps_of(f->dims), low = 0, step = 0;
    if (comp > 2) return fixed(0, 0, 0);
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t first = cpu_tid_of(f, 16 * half, comp);
        if (!half && warps > 1) step = cpu_tid_of(f, 32, comp) - first;
        for (uint32_t w = 1; w < warps && 32 * w + 16 * half < f->dims[0] * f->dims[1] * f->dims[2]; w++)
            if (cpu_tid_of(f, 32 * w + 16 * half, comp) != first + step * w) return own;
        if (!half) low = first;
        if (half) return fixed(step, low, first);
    }
    return own;
}

static struct value special(const struct cpu_func *f, const struct cpu_reg *r)
{
    switch (r->sreg) {
    case MG_SREG_tid:
        return thread_number(f, r->comp);
    case MG_SREG_warpid:
        return fixed(1, 0, 0);
    case MG_SREG_laneid:
        return fixed(0, 0, 16);
    case MG_SREG_ntid:
        return r->comp > 2 ? fixed(0, 0, 0) : fixed(0, f->dims[r->comp], f->dims[r->comp]);
    case MG_SREG_ctaid:
    case MG_SREG_nctaid:
    case MG_SREG_WARP_SZ:
        return cta(0);
    default:
        return own;
    }
}

struct mg_affine cpu_special(const struct cpu_func *f, const struct cpu_reg *r, bool *fixed, uint64_t base[2])
{
    struct value v = special(f, r);
    *fixed = v.fixed;
    memcpy(base, v.base, sizeof v.base);
    return v.of;
}

static struct value get(const struct find *z, uint32_t reg)
{
    if (!reg) return cta(0);
    const struct cpu_reg *r = &z->f->regs[reg - 1];
    if (cpu_is_constant(r)) return fixed(0, r->value, r->value);
    if (r->shape.varying && !(z->rows && r->row)) return own;
    return r->kind == CPU_REG_SREG ? special(z->f, r) : z->v[reg - 1];
}

/* Does the register grow along a row? */
static bool grows(const struct find *z, uint32_t reg)
{
    const struct cpu_reg *r = reg ? &z->f->regs[reg - 1] : NULL;
    if (!r || cpu_is_constant(r)) return false;
    if (r->shape.varying) return r->row && r->row_step;
    return cpu_lane_offset(z->f, r->shape, 1);
}

static uint64_t extended(unsigned t, uint64_t v)
{
    unsigned n = mg_type_bits((enum mg_type)t);
    if (n >= 64) return v;
    v &= (1ull << n) - 1;
    return mg_type_kind((enum mg_type)t) == MG_TK_SINT && v >> (n - 1) ? v | ~0ull << n : v;
}

bool cpu_evaluate(const struct cpu_func *f, const struct cpu_inst *in, uint64_t s[3][2], uint64_t out[2])
{
    unsigned t = in->t[0];
    for (int h = 0; h < 2; h++) {
        uint64_t a = s[0][h], b = s[1][h], c = s[2][h];
        bool wide = in->key == K_WIDE;
        if (wide) a = extended(t, a), b = extended(t, b);
        if (in->kind == CPU_ALU && in->op != MG_OP_cvt && !cpu_is_integer(t) && !wide) return false;
        if (in->kind != CPU_ALU) {
            if (in->kind == CPU_SEXT)
                a = extended(MG_TYPE_s32, a);
            else if (in->kind != CPU_MOV && in->kind != CPU_LOW && in->kind != CPU_ZEXT)
                return false;
            out[h] = a;
        } else
            switch (in->op) {
            case MG_OP_mov:
                out[h] = a;
                break;
            case MG_OP_add:
                out[h] = a + b;
                break;
            case MG_OP_sub:
                out[h] = a - b;
                break;
            case MG_OP_neg:
                out[h] = -a;
                break;
            case MG_OP_mul:
                if (in->key == K_HI) return false;
                out[h] = a * b;
                break;
            case MG_OP_mad:
                if (in->key == K_HI) return false;
                out[h] = a * b + c;
                break;
            case MG_OP_and:
                out[h] = a & b;
                break;
            case MG_OP_shl:
                out[h] = b < mg_type_bits((enum mg_type)t) ? a << b : 0;
                break;
            case MG_OP_cvt:
                if (!cpu_is_integer(t) || !cpu_is_integer(in->t[1])) return false;
                out[h] = extended(in->t[1], a);
                break;
            default:
                return false;
            }
        if (f->regs[in->d - 1].cls != EMU_D) out[h] = (uint32_t)out[h];
    }
    return true;
}

/* tid & 7 of warps that begin with a multiple of 8: the same in all */
static bool masks_step(const struct find *z, const struct cpu_inst *in, struct mg_affine of)
{
    int64_t c, low = of.step & -of.step;
    return in->op == MG_OP_and && cpu_is_integer(in->t[0]) && of.is == MG_AFFINE_STEP &&
           cpu_constant_of(z->f, in->s[1], &c) && c >= 0 && c < low;
}

static struct value result_of(const struct find *z, const struct cpu_inst *in);
static struct value cta_result(const struct find *z, const struct cpu_inst *in)
{
    if (z->rows && in->kind == CPU_ALU && (in->op == MG_OP_min || in->op == MG_OP_max) && cpu_is_integer(in->t[0]) &&
        grows(z, in->s[0]) != grows(z, in->s[1]))
        return get(z, in->s[!grows(z, in->s[0])]); /* most likely it is not clamped where it is read (shape.c) */
    struct value v = result_of(z, in);
    uint64_t s[3][2];
    bool known = v.of.is == MG_AFFINE_STEP && in->d && z->f->regs[in->d - 1].cls != EMU_P &&
                 (in->kind == CPU_ALU || in->kind == CPU_MOV || in->kind == CPU_LOW || in->kind == CPU_ZEXT ||
                  in->kind == CPU_SEXT);
    for (int k = 0; k < 3; k++) {
        struct value from = get(z, in->s[k]);
        memcpy(s[k], from.base, sizeof s[k]);
        known &= !in->s[k] || from.fixed;
    }
    v.fixed = known && cpu_evaluate(z->f, in, s, v.base);
    if (!v.fixed) v.base[0] = v.base[1] = 0;
    return v;
}

static struct value result_of(const struct find *z, const struct cpu_inst *in)
{
    struct value a = get(z, in->s[0]);
    struct mg_affine s[3];
    switch ((enum cpu_kind)in->kind) {
    case CPU_ALU:
        for (int k = 0; k < 3; k++) s[k] = get(z, in->s[k]).of;
        if (masks_step(z, in, s[0])) return cta(0);
        return (struct value){.of = cpu_affine_of(z->f, in, s)};
    case CPU_MOV:
    case CPU_LOW:
    case CPU_ZEXT:
    case CPU_SEXT:
    case CPU_CVTA:
        return a;
    case CPU_NOT_P:
    case CPU_SEXT8:
    case CPU_SEXT16:
    case CPU_SEXT8H:
    case CPU_UNPACK:
        return a.of.step ? own : a;
    case CPU_PACK: {
        struct mg_affine b = get(z, in->s[1]).of;
        if (a.of.is == MG_AFFINE_NONE || b.is == MG_AFFINE_NONE) return (struct value){.of = {MG_AFFINE_NONE, 0}};
        return mg_affine_is_uniform(a.of) && mg_affine_is_uniform(b) ? a : own;
    }
    case CPU_PARAM:
        return cta(0);
    default:
        return own;
    }
}

static bool guard_is_cta(const struct find *z, const struct cpu_inst *in)
{
    struct value g = get(z, in->guard);
    return !in->guard || (cpu_uniform_guard(z->f, in) && g.of.is != MG_AFFINE_VARIES && !g.of.step);
}

struct visit {
    struct find *z;
    const struct cpu_inst *in;
};

static void visit_def(void *user, uint32_t r, bool must)
{
    struct visit *v = user;
    struct find *z = v->z;
    struct value *to = &z->v[r], got;
    (void)must;
    if (to->of.is == MG_AFFINE_VARIES) return;
    const struct cpu_reg *reg = &z->f->regs[r];
    bool none = reg->shape.varying && !(z->rows && reg->row);
    got = none || mg_has(z->tainted, z->block) || !guard_is_cta(z, v->in) ? own : cta_result(z, v->in);
    if (got.of.is == MG_AFFINE_NONE) return;
    struct mg_affine now = mg_affine_join(to->of, got.of);
    if (to->of.is == MG_AFFINE_NONE)
        *to = got;
    else if (now.is == MG_AFFINE_VARIES)
        *to = own;
    else if (to->fixed && (!got.fixed || got.base[0] != to->base[0] || got.base[1] != to->base[1]))
        to->fixed = false;
    else
        return;
    z->changed = true;
}

/* ---- which blocks all warps execute alike ------------------------------------------------------------ */

static void add_self(void *user, uint32_t b, uint64_t *row)
{
    (void)user;
    mg_put(row, b);
}

static void find_post(struct find *z)
{
    struct cpu_func *f = z->f;
    struct mg_arena scratch = MG_ARENA_INIT;
    struct mg_graph back = mg_graph_reversed(&scratch, &f->within);
    uint32_t *order = mg_arena_array(&scratch, uint32_t, f->n_blocks);
    for (uint32_t b = 0; b < f->n_blocks; b++) order[b] = f->n_blocks - 1 - b;
    mg_dataflow_run(
        &(struct mg_dataflow){.g = &back, .order = order, .words = f->block_words, .rows = z->post, .pass = add_self});
    for (uint32_t b = 0; b < f->n_blocks; b++) mg_put(z->post + (size_t)b * f->block_words, b);
    mg_arena_release(&scratch);
}

/* From a branch that warps may take differently: everything before the blocks that all of them come to. */
static bool taint(struct find *z, uint32_t b)
{
    struct cpu_func *f = z->f;
    uint64_t *seen = mg_xcalloc(2 * (size_t)f->block_words, sizeof *seen), *wall = seen + f->block_words;
    memcpy(wall, z->post + (size_t)b * f->block_words, f->block_words * sizeof *wall);
    mg_cut(wall, b);
    mg_graph_after(&f->within, b, seen, wall);
    bool grew = mg_bits_join(z->tainted, seen, f->block_words);
    free(seen);
    return grew;
}

/* Of the warps that pause at the end of block b some have lanes that wait elsewhere, others none. Where the first of
 * such lanes may wait warps part: all that is run from there on, up to blocks that all lanes come to. */
static bool taint_waiting(struct find *z, uint32_t b, uint32_t next)
{
    struct cpu_func *f = z->f;
    const uint64_t *waits = f->blocks[b].front;
    uint64_t *seen = mg_xcalloc(2 * (size_t)f->block_words, sizeof *seen), *wall = seen + f->block_words;
    uint32_t first = f->n_blocks, last = 0;
    memcpy(wall, z->post + (size_t)next * f->block_words, f->block_words * sizeof *wall);
    for (uint32_t x = 0; x < f->n_blocks; x++) {
        if (!mg_has(waits, x)) continue;
        mg_bits_meet(wall, z->post + (size_t)x * f->block_words, f->block_words);
        first = MG_MIN(first, x);
        last = x;
    }
    for (uint32_t x = 0; x < last; x++) mg_cut(wall, x);
    mg_put(seen, next);
    mg_graph_close(&f->within, seen, wall);
    for (uint32_t x = 0; x < first; x++) mg_cut(seen, x);
    mg_bits_join(seen, waits, f->block_words);
    for (uint32_t w = 0; w < f->block_words; w++) seen[w] &= ~wall[w];
    mg_graph_close(&f->within, seen, wall);
    bool grew = mg_bits_join(z->tainted, seen, f->block_words);
    free(seen);
    return grew;
}

static bool find_taint(struct find *z)
{
    bool grew = false;
    for (uint32_t b = 0; b < z->f->n_blocks; b++) {
        const struct cpu_inst *in = &z->f->insts[z->f->blocks[b].end - 1];
        uint32_t stop = cpu_stop_of(z->f, b);
        if (stop && !(stop & 1)) grew |= taint_waiting(z, b, stop / 2 - 1);
        if (in->kind == CPU_CTL && in->ctl == EMU_CTL_BRA && !guard_is_cta(z, in)) grew |= taint(z, b);
    }
    return grew;
}

/* ---- starts -------------------------------------------------------------------------------------------- */

/* Blocks that run from `start` on up to the next stop, those where lanes may be waiting when it begins included. */
static void find_reach(const struct cpu_func *f, uint32_t start, uint64_t *reach)
{
    if (f->region.paused[start]) memcpy(reach, f->blocks[start].front, f->block_words * sizeof *reach);
    mg_put(reach, start);
    mg_graph_close(&f->within, reach, NULL);
}

static void find_starts(struct find *z)
{
    struct cpu_func *f = z->f;
    uint32_t ops = 0;
    f->region.starts = mg_arena_array(&f->arena, struct cpu_start, f->n_blocks);
    f->region.paused = mg_arena_array(&f->arena, bool, f->n_blocks);
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        uint32_t id = cpu_stop_of(f, b);
        if (id && !(id & 1)) f->region.paused[id / 2 - 1] = true;
    }
    f->region.start_of = mg_arena_array(&f->arena, uint32_t, f->n_blocks);
    f->region.starts[f->region.n_starts++].block = f->entry;
    f->region.start_of[f->entry] = 1;
    bool lost = false; /* some warps may end while others go on */
    f->region.wanted = true;
    for (uint32_t i = 0; i < f->region.n_starts; i++) {
        struct cpu_start *s = &f->region.starts[i];
        s->reach = mg_arena_array(&f->arena, uint64_t, f->block_words);
        find_reach(f, s->block, s->reach);
        bool ends = false;
        for (uint32_t b = 0; b < f->n_blocks; b++) {
            if (!mg_has(s->reach, b)) continue;
            const struct cpu_inst *in = &f->insts[f->blocks[b].end - 1];
            ops += f->blocks[b].end - f->blocks[b].first;
            if (in->kind == CPU_CTL && (in->ctl == EMU_CTL_EXIT || in->ctl == EMU_CTL_RET))
                ends |= in->guard || mg_has(z->tainted, b);
            if (in->kind == CPU_CTL && in->ctl == EMU_CTL_BRA && !cpu_uniform_guard(f, in)) f->region.splits = true;
            uint32_t id = cpu_stop_of(f, b), next = id / 2 - 1;
            MG_EACH_EDGE(&f->succ, b, e) f->region.loops |= f->succ.to[e] <= b;
            if (!id) continue;
            f->region.wanted &= next != f->entry;
            if (!s->n_stops) s->stop = id;
            if (!s->n_stops || s->stop != id) s->n_stops++;
            if (f->region.start_of[next]) continue;
            f->region.starts[f->region.n_starts].block = next;
            f->region.start_of[next] = ++f->region.n_starts;
        }
        lost |= ends && s->n_stops;
        f->region.splits |= ends;
    }
    f->region.lossy = lost;
    f->region.n_ops = ops;
}

/* ---- constants ------------------------------------------------------------------------------------------- */

/* What a register holds in every lane that comes to a block: nothing known so far, one constant, anything. */
enum { CONST_NONE, CONST_ONE, CONST_ANY };
struct cell {
    uint64_t is, v;
};
#define CELL_WORDS (sizeof(struct cell) / sizeof(uint64_t))
struct constants {
    const struct cpu_func *f;
    struct cell *now;
    const struct cpu_inst *in;
};

static bool join_cells(uint64_t *row, const uint64_t *more, uint32_t words)
{
    struct cell *to = (struct cell *)(void *)row;
    const struct cell *from = (const struct cell *)(const void *)more;
    bool grew = false;
    for (uint32_t r = 0; r < words / CELL_WORDS; r++) {
        if (from[r].is == CONST_NONE || to[r].is == CONST_ANY) continue;
        if (to[r].is == CONST_ONE && from[r].is == CONST_ONE && to[r].v == from[r].v) continue;
        if (to[r].is == CONST_NONE)
            to[r] = from[r];
        else
            to[r].is = CONST_ANY;
        grew = true;
    }
    return grew;
}

static void write_cell(void *user, uint32_t r, bool must)
{
    struct constants *c = user;
    const struct cpu_inst *in = c->in;
    const struct cpu_reg *s = in->s[0] ? &c->f->regs[in->s[0] - 1] : NULL;
    bool move = must && !in->guard && s && cpu_is_move(in) && s->cls == c->f->regs[r].cls && !s->lazy;
    if (move && cpu_is_constant(s))
        c->now[r] = (struct cell){CONST_ONE, s->value};
    else if (move && s->kind == CPU_REG_PLAIN)
        c->now[r] = c->now[in->s[0] - 1];
    else
        c->now[r].is = CONST_ANY;
}

static void pass_cells(void *user, uint32_t b, uint64_t *row)
{
    const struct cpu_func *f = user;
    struct constants c = {.f = f, .now = (struct cell *)(void *)row};
    for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
        c.in = &f->insts[i];
        cpu_each_def(f, c.in, write_cell, &c);
    }
}

/* Vectors that hold a constant where a region begins need not be kept between regions. */
static void find_constants(struct cpu_func *f)
{
    uint32_t n = f->n_regs;
    struct cell *at = mg_xcalloc((size_t)f->n_blocks * n + 1, sizeof *at);
    for (uint32_t r = 0; r < n; r++) at[(size_t)f->entry * n + r].is = CONST_ANY;
    mg_dataflow_run(&(struct mg_dataflow){.g = &f->succ,
                                          .any = true,
                                          .join = join_cells,
                                          .words = n * (uint32_t)CELL_WORDS,
                                          .rows = (uint64_t *)(void *)at,
                                          .pass = pass_cells,
                                          .user = f});
    for (uint32_t i = 0; i < f->region.n_starts; i++) {
        struct cpu_start *s = &f->region.starts[i];
        s->constant = mg_arena_array(&f->arena, uint64_t, f->reg_words);
        s->value = mg_arena_array(&f->arena, uint64_t, n);
        if (f->region.paused[s->block]) continue; /* lanes that wait elsewhere may have others */
        for (uint32_t r = 0; r < n; r++) {
            const struct cell *c = &at[(size_t)s->block * n + r];
            if (c->is != CONST_ONE || f->regs[r].kind != CPU_REG_PLAIN || !f->regs[r].shape.varying ||
                f->regs[r].cls == EMU_Q)
                continue;
            mg_put(s->constant, r);
            s->value[r] = c->v;
        }
    }
    free(at);
}

/* ---- what always runs -------------------------------------------------------------------------------------- */

static bool ends_lanes(const struct cpu_func *f, uint32_t b)
{
    const struct cpu_inst *in = &f->insts[f->blocks[b].end - 1];
    return in->kind == CPU_CTL && (in->ctl == EMU_CTL_EXIT || in->ctl == EMU_CTL_RET || in->ctl == EMU_CTL_TRAP);
}

/* Blocks run in the order of their numbers but for jumps back. So all lanes of a warp that begins with all meet in a
 * block that nothing jumps over, neither forth nor back, and in front of which none of them stops or ends. */
static void find_always(struct cpu_func *f)
{
    bool *not_all = calloc(f->n_blocks + 1, sizeof *not_all);
    if (!not_all) abort();
    for (uint32_t i = 0; i < f->region.n_starts; i++) {
        struct cpu_start *s = &f->region.starts[i];
        s->always = mg_arena_array(&f->arena, uint64_t, f->block_words);
        if ((f->region.paused[s->block] && f->region.splits) || (i && f->region.lossy) || f->region.tail)
            continue; /* not all may begin */
        memset(not_all, 0, f->n_blocks * sizeof *not_all);
        for (uint32_t b = 0; b < f->n_blocks; b++) {
            if (!mg_has(s->reach, b)) continue;
            for (uint32_t x = b + 1; (!mg_graph_degree(&f->within, b) || ends_lanes(f, b)) && x < f->n_blocks; x++)
                not_all[x] = true;
            MG_EACH_EDGE(&f->within, b, e)
            {
                for (uint32_t x = b + 1; x < f->within.to[e]; x++) not_all[x] = true;
                for (uint32_t x = f->within.to[e]; x <= b; x++) not_all[x] = true;
            }
        }
        for (uint32_t b = s->block; b < f->n_blocks; b++)
            if (mg_has(s->reach, b) && !not_all[b]) mg_put(s->always, b);
    }
    free(not_all);
}

/* Is whole-CTA code worth having? Not where it would leave at once, or grow too much. */
static bool suits(const struct cpu_func *f)
{
    for (uint32_t i = 0; i < f->n_insts; i++) {
        const struct cpu_inst *in = &f->insts[i];
        if (in->kind != CPU_CTL) continue;
        switch ((enum emu_ctl)in->ctl) {
        case EMU_CTL_BRX:
        case EMU_CTL_CALL:
        case EMU_CTL_CALLI:
            return false;
        case EMU_CTL_SYNC:
            if (!cpu_sync_has_code(in->sub)) return false;
            break;
        case EMU_CTL_BAR:
            if (!cpu_plain_barrier(f, in)) return false;
            break;
        default:
            break;
        }
    }
    return true;
}

static void visit_all(struct find *z)
{
    struct cpu_func *f = z->f;
    do {
        z->changed = false;
        for (uint32_t b = z->block = 0; b < f->n_blocks; z->block = ++b)
            for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
                struct visit v = {z, &f->insts[i]};
                cpu_each_def(f, v.in, visit_def, &v);
            }
    } while (z->changed);
}

/* Where rows of lanes begin, as far as thread numbers and constants say it. */
static void find_likely(struct find *z)
{
    struct cpu_func *f = z->f;
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (f->regs[r].shape.varying && f->regs[r].row && z->v[r].of.is == MG_AFFINE_VARIES &&
            !mg_has(f->blocks[f->entry].live, r))
            z->v[r] = (struct value){.of = {MG_AFFINE_NONE, 0}};
    z->rows = true;
    visit_all(z);
    for (uint32_t r = 0; r < f->n_regs; r++) {
        struct cpu_reg *to = &f->regs[r];
        const struct value *v = &z->v[r];
        if (!to->shape.varying || !to->row || v->of.is != MG_AFFINE_STEP || !v->fixed) continue;
        to->likely = true;
        to->step = v->of.step;
        for (int h = 0; h < 2; h++) to->base[h] = v->base[h];
    }
}

#define WHOLE_MAX_OPS 1500 /* all regions together; LLVM's time grows faster than they do */

void cpu_find_regions(struct cpu_func *f)
{
    uint64_t threads = (uint64_t)f->dims[0] * f->dims[1] * f->dims[2];
    f->region.n_warps = cpu_warps_of(f->dims);
    f->region.tail = threads % 32 ? (1u << threads % 32) - 1 : 0;
    cpu_find_region_ways(f);
    if (!f->is_kernel || !threads || f->region.n_warps > EMU_MAX_WARPS || !suits(f)) return;
    struct find z = {.f = f,
                     .v = calloc(f->n_regs + 1, sizeof *z.v),
                     .tainted = calloc(f->block_words, sizeof *z.tainted),
                     .post = calloc((size_t)f->n_blocks * f->block_words, sizeof *z.post)};
    if (!z.v || !z.tainted || !z.post) abort();
    find_post(&z);
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (mg_has(f->blocks[f->entry].live, r)) z.v[r] = own;
    do visit_all(&z);
    while (find_taint(&z));
    for (uint32_t r = 0; r < f->n_regs; r++) {
        f->regs[r].cta = f->regs[r].linear && z.v[r].of.is != MG_AFFINE_VARIES;
        f->regs[r].step = z.v[r].of.step;
        f->regs[r].fixed = f->regs[r].cta && z.v[r].fixed;
        for (int h = 0; h < 2; h++) f->regs[r].base[h] = z.v[r].base[h];
    }
    find_likely(&z);
    find_starts(&z);
    f->region.wanted &= f->region.n_ops <= WHOLE_MAX_OPS && f->region.n_ops <= 4 * f->n_insts;
    if (f->region.wanted) find_constants(f);
    find_always(f);
    for (uint32_t i = 0; i < f->region.n_starts; i++) f->region.resumes |= f->region.starts[i].n_stops > 1;
    free(z.v);
    free(z.tainted);
    free(z.post);
}
