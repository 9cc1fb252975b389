/* Which registers have one value for all lanes, or grow by a constant from lane to lane.
 *
 * What grows otherwise, but by the same from the first lane to each other one whatever the warp, is a tile: thread
 * numbers in blocks of 8 x 8, and what is added to them and multiplied by constants. Where a tile is two rows, as in
 * blocks of 16 x 16, it is two halves to whatever has no tile for a result: an index in a matrix, of a width that is
 * not known, or one that is clamped at an edge.
 *
 * Optimistic: all registers begin without a value and only move down (linear, varying). A definition
 * whose inactive lanes count (block.keep) makes its register varying, so one scalar always suffices:
 * whoever reads it was active when it was written. Which blocks may be pending depends on which
 * branches are uniform, so both are repeated until nothing changes.
 */
#include "device/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "device/emu/alu_form.h"

struct value {
    struct mg_affine of;
    bool halves, aligned;
    uint8_t tile;
}; /* from lane to lane; of halves: see struct cpu_shape */
struct shapes {
    struct cpu_func *f;
    struct value *v;
    uint32_t block;
    uint32_t row; /* 0: of warps. Else of so many lanes */
    bool active;  /* only those that write count */
    bool changed;
};

static const struct value none = {.of = {MG_AFFINE_NONE, 0}}, vary = {.of = {MG_AFFINE_VARIES, 0}};

static struct value with(struct mg_affine of, bool halves)
{
    return (struct value){.of = of, .halves = halves && of.is == MG_AFFINE_STEP};
}
static struct value linear(int64_t stride, bool halves)
{
    return with(mg_affine_step(stride), halves);
}
static bool is_flat(struct value v)
{
    return mg_affine_is_uniform(v.of) && !v.tile;
}
static bool is_tile(struct value v)
{
    return v.of.is == MG_AFFINE_STEP && v.tile;
}

enum { MOST_TILES = 64 };

/* Lane i has off[i] more than lane 0. */
static struct value with_offsets(struct shapes *z, const int64_t *off)
{
    struct cpu_func *f = z->f;
    int32_t tile[EMU_LANES];
    bool line = true;
    for (uint32_t i = 0; i < EMU_LANES; i++) {
        if (off[i] > INT32_MAX || off[i] < INT32_MIN) return vary;
        tile[i] = (int32_t)off[i];
        line &= off[i] == off[1] * i;
    }
    if (line) return linear(off[1], false);
    uint32_t k = 0;
    while (k < f->n_tiles && memcmp(f->tiles[k], tile, sizeof tile)) k++;
    if (z->row || k == MOST_TILES) return vary;
    if (!f->tiles) f->tiles = (void *)mg_arena_array(&f->arena, int32_t, MOST_TILES * EMU_LANES);
    memcpy(f->tiles[k], tile, sizeof tile);
    f->n_tiles = MG_MAX(f->n_tiles, k + 1);
    return (struct value){.of = mg_affine_step(0), .tile = (uint8_t)(k + 1)};
}

/* A tile of two rows as halves; what is none as it is. */
static struct value in_halves(const struct shapes *z, struct value v)
{
    if (!is_tile(v)) return v;
    const int32_t *t = z->f->tiles[v.tile - 1];
    int64_t step = (int64_t)t[1] - t[0];
    for (uint32_t i = 0; i < 15; i++)
        if ((int64_t)t[i + 1] - t[i] != step || (int64_t)t[i + 17] - t[i + 16] != step) return vary;
    return linear(step, true);
}

static struct value special_in_row(const struct cpu_reg *r)
{
    switch (r->sreg) {
    case MG_SREG_tid:
        return linear(r->comp == 0, false);
    case MG_SREG_laneid:
        return linear(1, false);
    default:
        return r->shape.varying ? vary : linear(0, false);
    }
}

/* A thread's number: what all warps have in common. */
static struct value thread_number(struct shapes *s, unsigned comp)
{
    const struct cpu_func *f = s->f;
    uint32_t x = f->dims[0], y = f->dims[1], z = f->dims[2];
    bool line = y == 1 && z == 1;
    struct value v;
    int64_t off[EMU_LANES] = {0};
    if (comp > 2) return linear(0, false);
    if (!x) return vary;
    for (uint32_t w = 0; w < cpu_warps_of(f->dims); w++)
        for (uint32_t i = 0; i < EMU_LANES; i++) {
            int64_t to = (int64_t)cpu_tid_of(f, 32 * w + i, comp) - cpu_tid_of(f, 32 * w, comp);
            if (w && off[i] != to && 32 * w + i < x * y * z) return x % 16 ? vary : linear(comp == 0, true);
            if (!w) off[i] = to;
        }
    v = with_offsets(s, off);
    v.aligned = comp == 0 && !v.tile && (line || x % 32 == 0);
    return v;
}

static struct value special(struct shapes *z, const struct cpu_reg *r)
{
    const struct cpu_func *f = z->f;
    struct value one = linear(1, false);
    one.aligned = true;
    switch (r->sreg) {
    case MG_SREG_tid:
        return thread_number(z, r->comp);
    case MG_SREG_ntid:
        one = linear(0, false);
        one.aligned = r->comp < 3 && f->dims[r->comp] && f->dims[r->comp] % 32 == 0;
        return one;
    case MG_SREG_laneid:
        return one;
    case MG_SREG_lanemask_eq:
    case MG_SREG_lanemask_lt:
    case MG_SREG_lanemask_le:
    case MG_SREG_lanemask_gt:
    case MG_SREG_lanemask_ge:
        return vary;
    default:
        return linear(0, false);
    }
}

static struct value get(struct shapes *z, uint32_t reg)
{
    if (!reg) return linear(0, false);
    const struct cpu_reg *r = &z->f->regs[reg - 1];
    if (cpu_is_constant(r)) {
        struct value v = linear(0, false);
        v.aligned = r->value % 32 == 0;
        return v;
    }
    if (r->kind == CPU_REG_SREG) return z->row ? special_in_row(r) : special(z, r);
    return z->v[reg - 1];
}

static struct value join_values(const struct shapes *z, struct value a, struct value b)
{
    if (a.of.is != MG_AFFINE_NONE && b.of.is != MG_AFFINE_NONE && a.tile != b.tile)
        a = in_halves(z, a), b = in_halves(z, b);
    struct value v = with(mg_affine_join(a.of, b.of), a.halves || b.halves);
    v.tile = v.of.is == MG_AFFINE_STEP ? a.tile | b.tile : 0;
    bool both = a.of.is != MG_AFFINE_NONE && b.of.is != MG_AFFINE_NONE;
    v.aligned = v.of.is == MG_AFFINE_STEP && (both ? a.aligned && b.aligned : a.aligned || b.aligned);
    return v;
}

static bool is_word(unsigned t)
{
    return t == MG_TYPE_u32 || t == MG_TYPE_s32 || t == MG_TYPE_b32;
}

/* Is the base of the result a multiple of 32, as those of operands are? */
static bool stays_aligned(struct shapes *z, const struct cpu_inst *in, const struct value *s)
{
    int64_t c;
    if (!is_word(in->t[0]) || z->f->regs[in->d - 1].cls != EMU_W) return false;
    switch (in->op) {
    case MG_OP_add:
    case MG_OP_sub:
        return s[0].aligned && s[1].aligned;
    case MG_OP_mul:
        return in->key == K_LO && (s[0].aligned || s[1].aligned);
    case MG_OP_mad:
        return in->key == K_LO && (s[0].aligned || s[1].aligned) && s[2].aligned;
    case MG_OP_shl:
        return cpu_constant_of(z->f, in->s[1], &c) && c < 32 && (c >= 5 || (c >= 0 && s[0].aligned));
    default:
        return false;
    }
}

struct mg_affine cpu_affine_of(const struct cpu_func *f, const struct cpu_inst *in, const struct mg_affine s[3])
{
    int64_t c[3];
    const int64_t *constant[3];
    bool integer = cpu_is_integer(in->t[0]) && (in->op != MG_OP_cvt || cpu_is_integer(in->t[1]));
    enum mg_affine_part part = in->key == K_HI           ? MG_AFFINE_HIGH
                               : in->key != K_WIDE       ? MG_AFFINE_LOW
                               : in->t[0] == MG_TYPE_u32 ? MG_AFFINE_WIDE_UNSIGNED
                                                         : MG_AFFINE_WIDE_SIGNED;
    for (int k = 0; k < 3; k++) constant[k] = cpu_constant_of(f, in->s[k], &c[k]) ? &c[k] : NULL;
    return mg_affine_of(integer || in->op == MG_OP_mov ? (enum mg_op)in->op : MG_OP_setp /* uniform or nothing */, part,
                        s, constant);
}

/* Arithmetic on tiles: what lanes differ by is computed as steps are. */
static struct value tile_of(struct shapes *z, const struct cpu_inst *in, const struct value s[3])
{
    int64_t off[EMU_LANES];
    for (uint32_t i = 0; i < EMU_LANES; i++) {
        struct mg_affine to, from[3];
        for (int k = 0; k < 3; k++)
            from[k] = s[k].tile      ? mg_affine_step(z->f->tiles[s[k].tile - 1][i])
                      : s[k].of.step ? mg_affine_step(s[k].of.step * i)
                                     : s[k].of;
        to = cpu_affine_of(z->f, in, from);
        if (to.is != MG_AFFINE_STEP) return vary;
        off[i] = to.step;
    }
    return with_offsets(z, off);
}

/* tid & 7, tid >> 3: of one that begins with a multiple of 32 */
static struct value bits_of(struct shapes *z, const struct cpu_inst *in, struct value s)
{
    int64_t c, off[EMU_LANES];
    bool right = in->op == MG_OP_shr;
    if (s.of.is != MG_AFFINE_STEP || s.tile || !s.aligned || !is_word(in->t[0]) ||
        !cpu_constant_of(z->f, in->s[1], &c) || (right && (c < 0 || c > 31)))
        return vary;
    for (uint32_t i = 0; i < EMU_LANES; i++) off[i] = right ? i >> c : i & c;
    s = with_offsets(z, off);
    s.aligned = !right && (c & 31) == 31;
    return s;
}

static struct value shape_of(struct shapes *z, const struct cpu_inst *in, const struct value s[3])
{
    struct mg_affine of[3];
    bool flat = true, halves = false, tile = false;
    for (int k = 0; k < 3; k++) {
        if (s[k].of.is == MG_AFFINE_NONE) return none;
        flat &= is_flat(s[k]);
        halves |= s[k].halves;
        tile |= is_tile(s[k]);
        of[k] = s[k].of;
    }
    if (flat) return halves && z->f->regs[in->d - 1].cls == EMU_P ? vary : linear(0, halves);
    switch (in->op) {
    case MG_OP_min: /* in rows: most likely it is not clamped where it is read */
    case MG_OP_max:
        return z->row && z->active && is_word(in->t[0]) ? is_flat(s[0]) ? s[1] : is_flat(s[1]) ? s[0] : vary : vary;
    case MG_OP_setp: /* in rows: most likely all lie on one side of an edge */
        return z->row && z->active && cpu_is_integer(in->t[0]) && s[0].of.is == MG_AFFINE_STEP &&
                       s[1].of.is == MG_AFFINE_STEP
                   ? linear(0, false)
                   : vary;
    case MG_OP_selp:
        if (z->row && z->active && is_flat(s[0]) != is_flat(s[1])) return s[is_flat(s[0])];
        return is_flat(s[2]) && !s[2].halves ? join_values(z, s[0], s[1]) : vary;
    case MG_OP_and:
    case MG_OP_shr:
        return bits_of(z, in, s[0]);
    default: {
        if (tile) return halves ? vary : tile_of(z, in, s);
        struct value v = with(cpu_affine_of(z->f, in, of), halves);
        bool keeps = in->op == MG_OP_mov || (in->op == MG_OP_cvt && is_word(in->t[0]) && is_word(in->t[1]));
        v.aligned = v.of.is == MG_AFFINE_STEP && keeps && s[0].aligned;
        return v;
    }
    }
}

static struct value alu(struct shapes *z, const struct cpu_inst *in)
{
    struct value s[3], v;
    bool tile = false;
    for (int k = 0; k < 3; k++) s[k] = get(z, in->s[k]), tile |= is_tile(s[k]);
    v = shape_of(z, in, s);
    if (tile && v.of.is == MG_AFFINE_VARIES) {
        for (int k = 0; k < 3; k++) s[k] = in_halves(z, s[k]);
        v = shape_of(z, in, s);
    }
    if (v.of.is != MG_AFFINE_STEP || v.halves || v.tile || v.of.step < 0 || v.of.step > 1) return v;
    v.aligned |= in->op == MG_OP_mov ? s[0].aligned : stays_aligned(z, in, s);
    return v;
}

/* What the instruction gives its destinations; NONE: not known yet. */
static struct value lane_result(struct shapes *z, const struct cpu_inst *in, uint32_t reg)
{
    struct value a, b;
    switch ((enum cpu_kind)in->kind) {
    case CPU_ALU:
        a = alu(z, in);
        return in->d2 == reg + 1 && a.of.is == MG_AFFINE_STEP && (a.of.step || a.tile) ? vary : a;
    case CPU_MOV:
        return get(z, in->s[0]);
    case CPU_LOW:
    case CPU_ZEXT:
    case CPU_SEXT:
        a = get(z, in->s[0]);
        a.aligned = false;
        return a;
    case CPU_NOT_P:
    case CPU_SEXT8:
    case CPU_SEXT16:
    case CPU_SEXT8H:
    case CPU_UNPACK:
        a = get(z, in->s[0]);
        return a.of.is == MG_AFFINE_STEP && (a.of.step || a.tile || (a.halves && in->kind == CPU_NOT_P)) ? vary : a;
    case CPU_PACK:
        a = get(z, in->s[0]);
        b = get(z, in->s[1]);
        if (a.of.is == MG_AFFINE_NONE || b.of.is == MG_AFFINE_NONE) return none;
        return is_flat(a) && is_flat(b) ? linear(0, a.halves || b.halves) : vary;
    case CPU_PARAM:
    case CPU_ACTIVEMASK:
    case CPU_CLOCK:
        return linear(0, false);
    case CPU_PURE: {
        bool flat = true, halves = false;
        for (uint32_t k = 0; k < in->n_list; k++) {
            a = get(z, in->list[k]);
            if (a.of.is == MG_AFFINE_NONE) return none;
            flat &= is_flat(a);
            halves |= a.halves;
        }
        return flat ? linear(0, halves) : vary;
    }
    case CPU_CVTA:
        a = get(z, in->s[0]);
        a.aligned = false;
        return a;
    case CPU_LOAD:
        if (in->where == EMU_AT_LOCAL) return vary;
        a = get(z, in->s[0]);
        if (a.of.is == MG_AFFINE_NONE) return none;
        return is_flat(a) ? linear(0, a.halves) : vary;
    case CPU_CTL: /* a vote is the same for all who take part */
        return in->ctl == EMU_CTL_SYNC && in->sub == EMU_SYNC_VOTE ? linear(0, false) : vary;
    default:
        return vary;
    }
}

struct visit {
    struct shapes *z;
    const struct cpu_inst *in;
};

static void lower_to(struct shapes *z, uint32_t r, struct value v)
{
    if (z->f->regs[r].kind != CPU_REG_PLAIN) return;
    struct value now = join_values(z, z->v[r], z->f->regs[r].known ? linear(0, false) : v);
    if (z->row && z->active && now.of.is == MG_AFFINE_VARIES && v.of.is == MG_AFFINE_STEP &&
        z->v[r].of.is == MG_AFFINE_STEP && is_flat(v) != is_flat(z->v[r]))
        now = is_flat(v) ? z->v[r] : v; /* the other is what compilers begin a loop's variable with */
    if (now.of.is == z->v[r].of.is && now.of.step == z->v[r].of.step && now.halves == z->v[r].halves &&
        now.aligned == z->v[r].aligned && now.tile == z->v[r].tile)
        return;
    z->v[r] = now;
    z->changed = true;
}

static void visit_def(void *user, uint32_t r, bool must)
{
    struct visit *v = user;
    struct shapes *z = v->z;
    if (z->f->regs[r].cls == EMU_Q) return;
    bool guarded = v->in->guard && !cpu_uniform_guard(z->f, v->in);
    uint32_t serial = z->f->n_serials ? z->f->serial_of[z->block] : 0; /* lanes come to a stop at different times */
    bool partial = mg_has(z->f->blocks[z->block].keep, r) || (serial && mg_has(z->f->serials[serial - 1].out, r)) ||
                   guarded || (!must && !v->in->guard);
    struct value got = partial && !z->active ? vary : lane_result(z, v->in, r);
    lower_to(z, r, got);
}

static void publish(struct shapes *z)
{
    for (uint32_t i = 0; i < z->f->n_regs; i++) {
        struct cpu_reg *r = &z->f->regs[i];
        struct value v = r->kind == CPU_REG_PLAIN ? z->v[i] : get(z, i + 1);
        bool varies = v.of.is == MG_AFFINE_VARIES || r->cls == EMU_Q;
        r->shape = varies ? (struct cpu_shape){.varying = true}
                          : (struct cpu_shape){
                                .halves = v.halves, .aligned = v.aligned, .tile = v.tile, .stride = (int32_t)v.of.step};
    }
}

/* f32 results whose NaNs nobody has made canonical yet: only where all definitions are such, or have canonical ones. */
static bool makes_lazy(const struct cpu_inst *in)
{
    if (in->kind != CPU_ALU || in->t[0] != MG_TYPE_f32 || cpu_is_canonical(in)) return false;
    switch (in->op) {
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_mul:
    case MG_OP_fma:
    case MG_OP_mad:
    case MG_OP_div:
    case MG_OP_rcp:
    case MG_OP_sqrt:
    case MG_OP_rsqrt:
    case MG_OP_min:
    case MG_OP_max:
        return true;
    default:
        return false;
    }
}

/* From how many operands, the first, does it only move values to d, maybe between lanes, or with another sign? */
static unsigned moves_from(const struct cpu_inst *in)
{
    if (in->kind == CPU_ALU && in->op == MG_OP_selp) return 2;
    if (in->kind == CPU_ALU && (in->op == MG_OP_neg || in->op == MG_OP_abs)) return in->t[0] == MG_TYPE_f32;
    return cpu_is_move(in) || (in->kind == CPU_CTL && in->ctl == EMU_CTL_SYNC && in->sub == EMU_SYNC_SHFL);
}

/* May readers of d make a NaN of it canonical? Where it is moved from lazy registers, or from numbers. some: at least
 * one is lazy */
static bool moves_lazy(const struct cpu_func *f, const struct cpu_inst *in, bool *some)
{
    unsigned n = moves_from(in);
    *some = false;
    for (unsigned k = 0; k < n; k++) {
        const struct cpu_reg *s = in->s[k] ? &f->regs[in->s[k] - 1] : NULL;
        if (!s || !(s->lazy || (cpu_is_constant(s) && (s->value & 0x7fffffff) <= 0x7f800000))) return false;
        *some |= s->lazy;
    }
    return n;
}

static void spoil(void *user, uint32_t r, bool must)
{
    struct visit *v = user;
    struct cpu_reg *reg = &v->z->f->regs[r];
    (void)must;
    bool some;
    if (!reg->lazy || makes_lazy(v->in) || cpu_is_canonical(v->in)) return;
    if (v->in->d == r + 1 && moves_lazy(v->z->f, v->in, &some)) return;
    reg->lazy = 0;
    v->z->changed = true;
}

static void mark_lazy(void *user, uint32_t r, bool must)
{
    struct visit *v = user;
    (void)must;
    if (makes_lazy(v->in) && !v->z->f->regs[r].settled)
        v->z->f->regs[r].lazy = 1; /* what is in memory the emulator may see */
}

static void each_def(struct shapes *z, void (*fn)(void *, uint32_t, bool))
{
    for (uint32_t b = 0; b < z->f->n_blocks; b++) {
        z->block = b;
        for (uint32_t i = z->f->blocks[b].first; i < z->f->blocks[b].end; i++) {
            struct visit v = {z, &z->f->insts[i]};
            cpu_each_def(z->f, v.in, fn, &v);
        }
    }
}

/* A move of a lazy register makes its destination lazy too, when that one has no other kind of value. */
static void find_lazy(struct shapes *z)
{
    bool some;
    each_def(z, mark_lazy);
    for (int round = 0; round < 4; round++)
        for (uint32_t i = 0; i < z->f->n_insts; i++) {
            const struct cpu_inst *in = &z->f->insts[i];
            if (in->d && moves_lazy(z->f, in, &some) && some && z->f->regs[in->d - 1].cls == EMU_W &&
                !z->f->regs[in->d - 1].settled)
                z->f->regs[in->d - 1].lazy = 1;
        }
    do {
        z->changed = false;
        each_def(z, spoil);
    } while (z->changed);
}

/* Fronts and shapes until neither changes. */
static void find_shapes(struct shapes *z)
{
    bool again = true;
    while (again) {
        again = false;
        cpu_find_fronts(z->f);
        do {
            z->changed = false;
            each_def(z, visit_def);
            again |= z->changed;
            publish(z);
        } while (z->changed);
    }
}

static void find_rows(struct shapes *z, bool active)
{
    struct cpu_func *f = z->f;
    z->active = active;
    memset(z->v, 0, f->n_regs * sizeof *z->v);
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (mg_has(f->blocks[f->entry].live, r)) z->v[r] = vary;
    do {
        z->changed = false;
        each_def(z, visit_def);
    } while (z->changed);
    for (uint32_t r = 0; r < f->n_regs; r++) {
        struct mg_affine a = z->v[r].of;
        struct cpu_reg *to = &f->regs[r];
        if (to->kind != CPU_REG_PLAIN || to->row || !to->shape.varying || a.is != MG_AFFINE_STEP ||
            llabs(a.step) > INT32_MAX)
            continue;
        to->row = (uint8_t)z->row;
        to->row_sure = !active;
        to->row_step = (int32_t)a.step;
    }
}

/* How many lanes of a warp follow one another in x. */
static uint32_t lanes_in_row(const uint32_t *dims)
{
    if (!dims[0]) return 0;
    if (dims[1] * dims[2] == 1 || dims[0] % 32 == 0) return 32;
    return dims[0] % 16 == 0 ? 16 : dims[0] % 8 == 0 ? 8 : dims[0] % 4 == 0 ? 4 : 0;
}

/* What grows by a constant within each row: in all lanes, or among those that wrote it last, as where some have left a
 * loop before others. Nothing depends on it but which code is tried first (plugin/memory.c). */
static void find_all_rows(struct cpu_func *f)
{
    struct shapes z = {.f = f, .row = lanes_in_row(f->dims)};
    for (uint32_t r = 0; r < f->n_regs; r++) f->regs[r].row = 0;
    if (!z.row) return;
    z.v = mg_xcalloc(f->n_regs + 1, sizeof *z.v);
    find_rows(&z, false);
    find_rows(&z, true);
    free(z.v);
}

void cpu_find_shapes(struct cpu_func *f)
{
    struct shapes z = {.f = f, .v = calloc(f->n_regs + 1, sizeof *z.v)};
    if (!z.v) abort();
    cpu_find_live(f);
    for (uint32_t r = 0; r < f->n_regs; r++) /* what comes from outside may be anything */
        if (mg_has(f->blocks[f->entry].live, r)) z.v[r] = vary;
    publish(&z);
    find_shapes(&z);
    find_all_rows(f);
    if (cpu_find_serials(f)) {
        find_shapes(&z);
        find_all_rows(f);
    }
    cpu_find_settled(f);
    find_lazy(&z);
    for (uint32_t i = 0; i < f->n_regs; i++)
        if (f->regs[i].kind == CPU_REG_PLAIN && !f->regs[i].shape.varying) f->regs[i].linear = ++f->n_linear;
    free(z.v);
}
