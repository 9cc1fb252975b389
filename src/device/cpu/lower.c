/* A decoded function as instructions whose meaning is known: an emulator operation is a function
 * pointer, which is looked up in the tables it came from (alu_priv.h, emu_vec_ops). What is not found
 * or has no vector code of its own stays a call of that function (CPU_CALL); for it every register
 * that the instruction names may be read and written.
 */
#include "device/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "device/emu/alu_priv.h"

/* ---- function pointer -> table row -------------------------------------------------------------- */

struct rows { struct mg_map map; const struct alu_row *row[4096]; uint32_t n; };
static struct rows rows_of[EMU_ISA_COUNT];
static pthread_mutex_t rows_lock = PTHREAD_MUTEX_INITIALIZER;

#define TABLE(name) {&name##_base, &name##_avx2, &name##_avx512},
static const struct alu_table *const tables[][EMU_ISA_COUNT] = {ALU_TABLES(TABLE)};

static const struct alu_row *row_of(enum emu_isa isa, emu_alu_fn fn)
{
    struct rows *r = &rows_of[isa];
    uint64_t at;
    pthread_mutex_lock(&rows_lock);
    if (!r->n) {
        r->n = 1;
        for (unsigned k = 0; k < MG_COUNT_OF(tables); k++)
            for (uint32_t i = 0; i < tables[k][isa]->n && r->n < MG_COUNT_OF(r->row); i++) {
                const struct alu_row *row = &tables[k][isa]->rows[i];
                if (mg_map_get(&r->map, (uint64_t)row->fn, NULL)) continue;
                r->row[r->n] = row;
                mg_map_set(&r->map, (uint64_t)row->fn, r->n++);
            }
    }
    const struct alu_row *found = mg_map_get(&r->map, (uint64_t)fn, &at) ? r->row[at] : NULL;
    pthread_mutex_unlock(&rows_lock);
    return found;
}

static emu_alu_fn activemask_fn(void)
{
    struct mg_form f = {0};
    struct emu_op op = {0};
    mg_form_parse(&f, "activemask.b32", 14);
    return emu_warpop_find(&f, &op);
}

static emu_alu_fn atomic_fn(void)
{
    struct mg_form f = {0};
    struct emu_op op = {0};
    mg_form_parse(&f, "atom.global.cas.b32", 19);
    return emu_atom_find(&f, &op, true);
}

static const struct emu_vec_ops *vec_ops(enum emu_isa isa)
{
    return isa == EMU_ISA_AVX512 ? &emu_vec_avx512 : isa == EMU_ISA_AVX2 ? &emu_vec_avx2 : &emu_vec_base;
}

/* ---- what is compiled in line --------------------------------------------------------------------- */

static bool is_int(unsigned t) { return t == MG_TYPE_u32 || t == MG_TYPE_s32 || t == MG_TYPE_b32 || t == MG_TYPE_u64 || t == MG_TYPE_s64 || t == MG_TYPE_b64; }

static bool inline_cvt(const struct alu_row *r, const struct cpu_inst *in)
{
    unsigned d = r->t[0], s = r->t[1];
    bool di = mg_type_kind((enum mg_type)d) != MG_TK_FLOAT, si = mg_type_kind((enum mg_type)s) != MG_TK_FLOAT;
    if (di && si) return r->key == 0;
    if (!di && si) return r->key == K_RN && !in->imm && (d == MG_TYPE_f32 || d == MG_TYPE_f64);
    if (di && !si) /* truncation, the common one */
        return r->key == K_RZI && s == MG_TYPE_f32 && (d == MG_TYPE_s32 || d == MG_TYPE_u32);
    if (d == MG_TYPE_f64 && s == MG_TYPE_f32) return r->key == 0;
    if (d == MG_TYPE_f32 && s == MG_TYPE_f32) return r->key == K_SAT && !in->imm;
    return d == MG_TYPE_f32 && s == MG_TYPE_f64 && r->key == K_RN && !in->imm;
}

/* Is there vector code for this row? The plugin has the same list. */
static bool in_line(const struct alu_row *r, const struct cpu_inst *in, enum emu_isa isa)
{
    unsigned t = r->t[0];
    bool f32 = t == MG_TYPE_f32, f64 = t == MG_TYPE_f64, i = is_int(t), i32 = i && mg_type_bits((enum mg_type)t) == 32;
    bool wide = isa == EMU_ISA_AVX512 && f32; /* plugin/approx.c */
    bool approx = wide && (r->key & ~(uint32_t)K_FTZ) == K_APPROX && !in->imm, directed = wide && in->imm >= MX_RM && in->imm <= MX_RZ && !(r->key & ~(uint32_t)K_ROUND);
    bool nearest = (r->key & K_ROUND) == K_RN && !in->imm && !(r->key & K_FTZ);
    switch (r->op) {
    case MG_OP_add: case MG_OP_sub:
        return (i && !r->key) || ((f32 || f64) && (nearest || directed));
    case MG_OP_mul:
        if (f32 || f64) return nearest || directed;
        if (r->key == K_WIDE) return t != MG_TYPE_none;
        return (i && r->key == K_LO) || (i32 && r->key == K_HI);
    case MG_OP_mad: case MG_OP_fma:
        if (f32 || f64) return directed || (nearest && isa != EMU_ISA_BASE);
        if (r->key == K_WIDE) return true;
        return i && r->key == K_LO;
    case MG_OP_min: case MG_OP_max:
        return (i && !r->key) || (f32 && !r->key);
    case MG_OP_neg: case MG_OP_abs:
        return !r->key && (i || f32);
    case MG_OP_not: case MG_OP_and: case MG_OP_or: case MG_OP_xor:
        return !r->key && (i || t == MG_TYPE_pred);
    case MG_OP_shl: case MG_OP_shr:
        return i && !r->key;
    case MG_OP_selp:
        return true;
    case MG_OP_mov:
        return t != MG_TYPE_b128;
    case MG_OP_div:
        return (f32 || f64) && (nearest || directed);
    case MG_OP_rcp: case MG_OP_sqrt:
        return ((f32 || f64) && nearest) || approx;
    case MG_OP_ex2: case MG_OP_rsqrt:
        return approx;
    case MG_OP_setp: {
        if (in->imm & 3 && !in->s[2]) return false;
        unsigned sub = (r->key & K_SUB) >> K_SUB_SHIFT;
        if (r->key & ~(uint32_t)K_SUB || !sub) return false;
        if (f32 || f64) return sub <= CMP_nan;
        return (i || t == MG_TYPE_u16 || t == MG_TYPE_s16 || t == MG_TYPE_b16) && sub <= CMP_ge;
    }
    case MG_OP_cvt: return inline_cvt(r, in);
    case MG_OP_popc: case MG_OP_clz: case MG_OP_brev:
        return i && !r->key;
    default: return false;
    }
}

/* Bit fields whose place is known. */
static bool known_field(const struct cpu_func *f, const struct alu_row *r, const struct cpu_inst *in)
{
    uint32_t pos = r->op == MG_OP_bfi ? in->s[2] : in->s[1], len = r->op == MG_OP_bfi ? in->s[3] : in->s[2];
    if ((r->op != MG_OP_bfi && r->op != MG_OP_bfe) || !is_int(r->t[0]) || !pos || !len) return false;
    const struct cpu_reg *p = &f->regs[pos - 1], *n = &f->regs[len - 1];
    uint64_t at = (uint32_t)p->value, bits = (uint32_t)n->value;
    return p->kind == CPU_REG_CONST && n->kind == CPU_REG_CONST && bits && bits <= 32 && at + bits <= mg_type_bits((enum mg_type)r->t[0]);
}

/* ---- registers -------------------------------------------------------------------------------------- */

static void list_regs(struct cpu_func *f)
{
    const struct emu_func *fn = f->fn;
    f->regs = mg_arena_array(&f->arena, struct cpu_reg, fn->n_slots + 2);
    for (uint32_t i = 0; i < fn->n_slots; i++) {
        f->regs[f->n_regs++] = (struct cpu_reg){.off = fn->slots[i].off, .cls = fn->slots[i].cls};
    }
    for (uint32_t i = 0; i < fn->n_consts; i++) {
        uint32_t r = cpu_reg_at(f, fn->consts[i].off);
        if (!r) continue;
        f->regs[r - 1].kind = CPU_REG_CONST;
        f->regs[r - 1].value = fn->consts[i].lo;
    }
    for (uint32_t i = 0; i < fn->n_sregs; i++) {
        uint32_t r = cpu_reg_at(f, fn->sregs[i].off);
        if (!r) continue;
        f->regs[r - 1].kind = CPU_REG_SREG;
        f->regs[r - 1].sreg = fn->sregs[i].sreg;
        f->regs[r - 1].comp = fn->sregs[i].comp;
    }
    f->reg_words = (f->n_regs + 63) / 64 + 1;
}

/* ---- instructions -------------------------------------------------------------------------------------- */

static bool find_access(const struct emu_vec_ops *v, emu_alu_fn fn, struct cpu_inst *in)
{
    static const enum emu_where places[] = {EMU_AT_GLOBAL, EMU_AT_SHARED, EMU_AT_LOCAL, EMU_AT_PARAM};
    for (unsigned w = 0; w < MG_COUNT_OF(places); w++)
        for (unsigned e = 0; e < EMU_E_B128Q; e++)
            for (int vec = 0; vec < 2; vec++) {
                bool load = v->load(places[w], (enum emu_elem)e, vec) == fn;
                if (!load && v->store(places[w], (enum emu_elem)e, vec) != fn) continue;
                in->kind = !load ? CPU_STORE : places[w] == EMU_AT_PARAM ? CPU_PARAM : CPU_LOAD;
                in->where = (uint8_t)places[w];
                in->elem = (uint8_t)e;
                return true;
            }
    return false;
}

/* Integer atomics of 32 bits on shared memory have code of their own. */
static bool shared_atomic(const struct emu_op *op)
{
    bool word = op->type == MG_TYPE_u32 || op->type == MG_TYPE_s32 || op->type == MG_TYPE_b32;
    return op->space == MG_SPACE_shared && op->bytes == 4 && word && !(op->flags & EMU_OF_CLUSTER) && op->sub != EMU_ATOM_INC && op->sub != EMU_ATOM_DEC && op->sub != EMU_ATOM_CAS;
}

/* Words of ours in a CTA's shared memory lie elsewhere than compiled code looks. */
static bool is_apart(const struct emu_op *op) { return op->probe && op->space == MG_SPACE_shared; }

/* So have those on global memory that the host has an operation for, or can do in a short loop. */
static bool global_atomic(const struct emu_op *op)
{
    enum mg_type_kind k = mg_type_kind((enum mg_type)op->type);
    bool number = k == MG_TK_UINT || k == MG_TK_SINT || k == MG_TK_BITS, real = op->type == MG_TYPE_f32 || op->type == MG_TYPE_f64;
    if ((op->space != MG_SPACE_global && op->space != MG_SPACE_generic) || op->flags & EMU_OF_CLUSTER || (op->bytes != 4 && op->bytes != 8)) return false;
    return op->sub == EMU_ATOM_ADD ? number || real : number && op->sub != EMU_ATOM_INC && op->sub != EMU_ATOM_DEC && op->sub != EMU_ATOM_CAS;
}

/* Registers of a CPU_CALL: everything the instruction names, and the operands of this operation. */
static void name_all(struct cpu_func *f, const struct emu_op *op, struct cpu_inst *in, uint32_t ix)
{
    const struct emu_func *fn = f->fn;
    uint32_t from = fn->named_at[ix], to = from, n = 0;
    for (uint32_t k = ix + 1; k <= fn->n_ops && to == from; k++) to = fn->named_at[k];
    in->list = mg_arena_array(&f->arena, uint32_t, to - from + 8);
    const uint32_t more[] = {op->a.d, op->a.d2, op->a.s[0], op->a.s[1], op->a.s[2], op->a.s[3], op->guard, op->a.cc};
    for (uint32_t k = from; k < to + MG_COUNT_OF(more); k++) {
        uint32_t r = cpu_reg_at(f, k < to ? fn->named[k] : more[k - to]);
        if (!r) continue;
        bool known = false;
        for (uint32_t j = 0; j < n && !known; j++) known = in->list[j] == r;
        if (!known) in->list[n++] = r;
    }
    in->n_list = n;
}

static void lower_alu(struct cpu_func *f, const struct alu_row *row, const struct emu_op *op, struct cpu_inst *in)
{
    in->op = row->op;
    memcpy(in->t, row->t, 3);
    in->key = row->key;
    in->imm = op->a.imm;
    unsigned n = 0;
    while (n < 4 && row->st[n]) n++;
    if (row->op == MG_OP_setp && op->a.imm & 3) n = 3;
    if (row->op == MG_OP_setp && (row->t[0] == MG_TYPE_b16 || row->t[0] == MG_TYPE_u16)) in->t[0] = MG_TYPE_u32; /* one function: lanes are zero-extended */
    for (unsigned k = 0; k < n; k++) in->s[k] = cpu_reg_at(f, op->a.s[k]);
    in->d = cpu_reg_at(f, op->a.d);
    in->d2 = cpu_reg_at(f, op->a.d2);
    if ((in_line(row, in, f->isa) || known_field(f, row, in)) && !row->uses_cc) in->kind = CPU_ALU;
    else if (!row->uses_cc) in->known = 1;
}

static void lower_op(struct cpu_func *f, uint32_t ix)
{
    const struct emu_op *op = &f->fn->ops[ix];
    struct cpu_inst *in = &f->insts[ix];
    const struct emu_vec_ops *v = vec_ops(f->isa);
    *in = (struct cpu_inst){.kind = CPU_CALL, .ctl = op->ctl, .sub = op->sub, .mode = op->mode, .type = op->type, .guard_not = op->guard_flip != 0, .imm = op->a.imm, .probe = op->probe};
    in->guard = cpu_reg_at(f, op->guard);
    if (op->ctl) {
        in->kind = CPU_CTL;
        for (int k = 0; k < 4; k++) in->s[k] = cpu_reg_at(f, op->a.s[k]);
        in->d = cpu_reg_at(f, op->a.d);
        in->d2 = cpu_reg_at(f, op->a.d2);
        switch ((enum emu_ctl)op->ctl) {
        case EMU_CTL_CALL: case EMU_CTL_CALLI: case EMU_CTL_BUILTIN: name_all(f, op, in, ix); break;
        case EMU_CTL_SYNC:
            if (op->sub > EMU_SYNC_ELECT) {
                name_all(f, op, in, ix);
                break;
            }
            in->known = 1;
            in->list = mg_arena_array(&f->arena, uint32_t, 1);
            in->list[0] = cpu_reg_at(f, op->a.cc); /* ORDER SYNC: the member mask */
            in->n_list = in->list[0] != 0;
            break;
        default: in->known = 1; break;
        }
        return;
    }
    emu_alu_fn fn = op->a.fn == v->guarded ? op->real : op->a.fn;
    const struct alu_row *row = row_of(f->isa, fn);
    if (row) lower_alu(f, row, op, in);
    static const struct { size_t at; uint8_t kind; } moves[] = {
        {offsetof(struct emu_vec_ops, mov_w), CPU_MOV}, {offsetof(struct emu_vec_ops, mov_d), CPU_MOV}, {offsetof(struct emu_vec_ops, mov_p), CPU_MOV},
        {offsetof(struct emu_vec_ops, not_p), CPU_NOT_P}, {offsetof(struct emu_vec_ops, lo_dw), CPU_LOW}, {offsetof(struct emu_vec_ops, zext_wd), CPU_ZEXT},
        {offsetof(struct emu_vec_ops, sext_wd), CPU_SEXT}, {offsetof(struct emu_vec_ops, sext8_w), CPU_SEXT8}, {offsetof(struct emu_vec_ops, sext16_w), CPU_SEXT16},
        {offsetof(struct emu_vec_ops, sext8_h), CPU_SEXT8H}};
    for (unsigned k = 0; k < MG_COUNT_OF(moves) && !row; k++) {
        emu_alu_fn m;
        memcpy(&m, (const char *)v + moves[k].at, sizeof m);
        if (m != fn) continue;
        in->kind = moves[k].kind;
        in->d = cpu_reg_at(f, op->a.d);
        in->s[0] = cpu_reg_at(f, op->a.s[0]);
    }
    static emu_alu_fn active;
    if (!active) active = activemask_fn();
    if (fn == active) in->kind = CPU_ACTIVEMASK, in->d = cpu_reg_at(f, op->a.d);
    else if (fn == emu_nop) in->kind = CPU_NOP;
    else if (fn == emu_fence) in->kind = CPU_FENCE;
    else if (fn == emu_cvta && op->space == MG_SPACE_shared) {
        in->kind = CPU_CVTA;
        in->d = cpu_reg_at(f, op->a.d);
        in->s[0] = cpu_reg_at(f, op->a.s[0]);
    } else if ((fn == v->pack_wd || fn == v->unpack_dw) && op->vec == 2 && op->bytes == 4 && op->a.imm == EMU_D) {
        bool pack = fn == v->pack_wd;
        in->kind = pack ? CPU_PACK : CPU_UNPACK;
        in->d = pack ? cpu_reg_at(f, op->a.d) : cpu_reg_at(f, op->slots[0]);
        in->d2 = pack ? 0 : cpu_reg_at(f, op->slots[1]);
        in->s[0] = pack ? cpu_reg_at(f, op->slots[0]) : cpu_reg_at(f, op->a.s[0]);
        in->s[1] = pack ? cpu_reg_at(f, op->slots[1]) : 0;
        if (pack && (!in->s[0] || !in->s[1])) in->kind = CPU_CALL;
    } else if (fn == v->leader) {
        in->kind = CPU_LEADER;
        in->d = cpu_reg_at(f, op->a.d);
        in->d2 = cpu_reg_at(f, op->a.d2);
        in->s[0] = cpu_reg_at(f, op->a.s[0]);
    } else if (fn == v->clear_run) {
        in->kind = CPU_CLEAR;
        in->list = mg_arena_array(&f->arena, uint32_t, op->a.imm);
        for (uint32_t k = 0; k < op->a.imm; k++) in->list[in->n_list++] = cpu_reg_at(f, op->a.d + k * 256);
    } else if (!row && !(op->flags & EMU_OF_CLUSTER) && !is_apart(op) && find_access(v, fn, in)) {
        in->vec = op->vec;
        in->bytes = op->bytes;
        in->off = op->off;
        in->space = op->space;
        in->cache = op->cache;
        in->base_w = (op->flags & EMU_OF_BASE_W) != 0;
        in->base_none = (op->flags & EMU_OF_BASE_NONE) != 0;
        if (in->kind != CPU_PARAM && !in->base_none) in->s[0] = cpu_reg_at(f, op->a.s[0]);
        in->list = mg_arena_array(&f->arena, uint32_t, op->vec);
        in->n_list = op->vec;
        for (unsigned k = 0; k < op->vec; k++) in->list[k] = cpu_reg_at(f, op->slots ? op->slots[k] : in->kind == CPU_STORE ? op->a.s[1] : op->a.d);
        if (in->kind == CPU_STORE)
            for (unsigned k = 0; k < op->vec; k++)
                if (!in->list[k]) in->kind = CPU_CALL;
    }
    static emu_alu_fn atomics;
    if (!atomics) atomics = atomic_fn();
    bool shared = shared_atomic(op) && !is_apart(op);
    if (in->kind == CPU_CALL && op->vec <= 1 && ((fn == atomics && (shared || global_atomic(op))) || (fn == emu_red_add && shared))) {
        in->kind = CPU_ATOM;
        in->where = shared ? EMU_AT_SHARED : EMU_AT_GLOBAL;
        in->bytes = op->bytes;
        in->off = op->off;
        in->cache = op->cache;
        in->base_w = !shared && op->flags & EMU_OF_BASE_W;
        in->waits = (op->flags & EMU_OF_SYNC) != 0;
        for (int k = 0; k < 2; k++) in->s[k] = k || !(op->flags & EMU_OF_BASE_NONE) ? cpu_reg_at(f, op->a.s[k]) : 0;
        in->d = cpu_reg_at(f, op->a.d);
        f->suspects |= in->waits;
        if (!in->s[1]) in->kind = CPU_CALL;
    }
    if (in->kind == CPU_CALL && op->vec <= 1 && (fn == atomics || fn == v->red_add_w || fn == v->red_add_d || fn == emu_red_add)) {
        in->known = 1;
        for (int k = 0; k < 3; k++) in->s[k] = cpu_reg_at(f, op->a.s[k]);
        in->d = cpu_reg_at(f, op->a.d);
        if (fn == v->red_add_d && op->off >= 0 && op->off <= INT32_MAX && in->s[0] && in->s[1] && op->probe) {
            in->offs = mg_arena_array(&f->arena, uint32_t, 1);
            in->offs[0] = (uint32_t)op->off;
            in->cache = op->cache;
        }
    } else if (fn == v->red_run) {
        const struct emu_red *list = op->ext;
        in->known = 1;
        in->s[0] = cpu_reg_at(f, op->a.s[0]);
        in->list = mg_arena_array(&f->arena, uint32_t, op->a.imm);
        in->offs = mg_arena_array(&f->arena, uint32_t, op->a.imm);
        for (uint32_t k = 0; k < op->a.imm; k++) {
            in->offs[in->n_list] = list[k].off;
            in->list[in->n_list++] = cpu_reg_at(f, list[k].from);
        }
        in->cache = op->cache;
    }
    if (in->kind == CPU_CALL) {
        if (!in->known) name_all(f, op, in, ix);
        bool adds = fn == v->red_add_w || fn == v->red_add_d || fn == emu_red_add || fn == v->red_run; /* who only adds waits for nobody */
        f->suspects |= (op->flags & EMU_OF_SYNC) || fn == emu_mark_suspect || fn == emu_nanosleep || (op->flags & EMU_OF_READS && op->flags & EMU_OF_WRITES && !adds);
    }
}

struct defs { struct cpu_func *f; uint8_t *n; };
static void count_def(void *user, uint32_t r, bool must)
{
    struct defs *d = user;
    (void)must;
    if (d->n[r] < 2) d->n[r]++;
}

/* Registers that only ever get one constant. */
static void find_known(struct cpu_func *f)
{
    struct defs d = {f, mg_arena_array(&f->arena, uint8_t, f->n_regs + 1)};
    for (uint32_t i = 0; i < f->n_insts; i++) cpu_each_def(f, &f->insts[i], count_def, &d);
    for (uint32_t i = 0; i < f->n_insts; i++) {
        const struct cpu_inst *in = &f->insts[i];
        if (in->kind != CPU_MOV && (in->kind != CPU_ALU || in->op != MG_OP_mov)) continue;
        if (in->guard || !in->d || !in->s[0] || d.n[in->d - 1] != 1) continue;
        struct cpu_reg *r = &f->regs[in->d - 1];
        const struct cpu_reg *s = &f->regs[in->s[0] - 1];
        if (s->kind != CPU_REG_CONST || r->kind != CPU_REG_PLAIN || r->cls != s->cls || r->cls == EMU_Q) continue;
        r->known = 1;
        r->value = s->value;
    }
}

struct cpu_func *cpu_lower(const struct emu_func *fn, const uint32_t dims[3], char *why, size_t why_bytes)
{
    if (fn->n_ops > CPU_MAX_OPS) {
        snprintf(why, why_bytes, "%u operations are more than the compiler takes", fn->n_ops);
        return NULL;
    }
    struct cpu_func *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->fn = fn;
    f->isa = fn->mod->dev->isa;
    f->is_kernel = fn == fn->code->entry;
    f->static_shared = fn->code->static_shared;
    memcpy(f->dims, dims, sizeof f->dims);
    list_regs(f);
    f->n_insts = fn->n_ops;
    f->insts = mg_arena_array(&f->arena, struct cpu_inst, fn->n_ops + 1);
    for (uint32_t i = 0; i < fn->n_ops; i++) lower_op(f, i);
    for (uint32_t i = 0; i < f->n_regs; i++) {
        static const uint8_t known[] = {MG_SREG_tid, MG_SREG_ctaid, MG_SREG_ntid, MG_SREG_nctaid, MG_SREG_laneid, MG_SREG_lanemask_lt, MG_SREG_lanemask_le,
                                        MG_SREG_lanemask_eq, MG_SREG_lanemask_gt, MG_SREG_lanemask_ge, MG_SREG_WARP_SZ, MG_SREG_warpid};
        if (f->regs[i].kind != CPU_REG_SREG) continue;
        bool is = false;
        for (unsigned k = 0; k < MG_COUNT_OF(known); k++) is |= f->regs[i].sreg == known[k];
        f->own_sregs |= !is;
    }
    find_known(f);
    if (!cpu_find_blocks(f, why, why_bytes)) {
        cpu_func_free(f);
        return NULL;
    }
    cpu_find_shapes(f); /* fronts and liveness with it: they depend on one another */
    cpu_find_dirty(f);
    cpu_find_regions(f);
    return f;
}

void cpu_func_free(struct cpu_func *f)
{
    if (!f) return;
    mg_arena_release(&f->arena);
    free(f);
}
