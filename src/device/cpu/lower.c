/* A decoded function as instructions that the plugin has code for, or else calls of the emulator's function
 * (CPU_CALL). An operation says by its opcode what it is: arithmetic by the row of its form (alu_form.h), everything
 * else by a row of emu/operations.def, which names the function here that fills in its operands. For a call every
 * register that the PTX instruction names may be read and written, unless its operands are known.
 */
#include "device/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "device/emu/alu_form.h"

/* ---- what is compiled in line --------------------------------------------------------------------- */

/* A form that is asked about: does the plugin have code for it? */
struct form {
    const struct cpu_func *f;
    const struct cpu_inst *in; /* its operands and imm; NULL of f: only the row is known */
    const struct alu_row *row;
    uint32_t imm;
    enum emu_isa isa;
};

static unsigned form_type(const struct form *x)
{
    return x->row->t[0];
}
static bool is_f32(const struct form *x)
{
    return form_type(x) == MG_TYPE_f32;
}
static bool is_real(const struct form *x)
{
    return is_f32(x) || form_type(x) == MG_TYPE_f64;
}
static bool is_short(unsigned t)
{
    return t == MG_TYPE_u16 || t == MG_TYPE_s16 || t == MG_TYPE_b16;
}
static bool is_plain_int(const struct form *x)
{
    return (cpu_is_integer(form_type(x)) || is_short(form_type(x))) && !x->row->key;
}
/* A hundred instructions of LLVM each, several times over: many of them would make a function that is too large to be
 * compiled at all. */
#define MANY_APPROX 32
static bool few_approx(const struct cpu_func *f)
{
    unsigned n = 0;
    for (uint32_t i = 0; f && i < f->fn->n_ops && n <= MANY_APPROX; i++) {
        const struct alu_row *row = emu_alu_row(f->fn->ops[i].opcode, f->isa);
        n += row && row->key & (K_APPROX | K_FULL);
    }
    return n <= MANY_APPROX;
}
/* plugin/approx.c; what is shorter with AVX-512 always */
static bool is_approx(const struct form *x)
{
    unsigned op = x->row->op;
    bool ours = x->isa >= EMU_ISA_AVX2 && is_real(x) && (x->row->key & ~(uint32_t)K_FTZ) == K_APPROX && !x->imm,
         shorter = op == MG_OP_ex2 || op == MG_OP_rcp || op == MG_OP_rsqrt || op == MG_OP_sqrt;
    return ours && ((x->isa == EMU_ISA_AVX512 && shorter) || few_approx(x->f));
}
static bool is_approx_quotient(const struct form *x)
{
    uint32_t key = x->row->key & ~(uint32_t)(K_FTZ | K_SAT);
    return x->isa >= EMU_ISA_AVX2 && is_f32(x) && (key == K_APPROX || key == K_FULL) && !x->imm && few_approx(x->f);
}
static bool is_directed(const struct form *x)
{
    bool ours = x->isa == EMU_ISA_AVX512 || (x->isa == EMU_ISA_AVX2 && x->row->op != MG_OP_div);
    return ours && is_f32(x) && x->imm >= MX_RM && x->imm <= MX_RZ && !(x->row->key & ~(uint32_t)K_ROUND);
}
static bool is_nearest(const struct form *x)
{
    return (x->row->key & K_ROUND) == K_RN && !(x->imm & ~(uint32_t)MX_FTZ);
}

static bool forms_any(const struct form *x)
{
    return x->row != NULL;
}
static bool forms_integer(const struct form *x)
{
    return is_plain_int(x);
}
static bool forms_sum(const struct form *x)
{
    return is_real(x) ? is_nearest(x) || is_directed(x) : is_plain_int(x);
}
static bool forms_min_max(const struct form *x)
{
    return is_real(x) ? !(x->row->key & ~(uint32_t)(K_FTZ | K_NAN)) : is_plain_int(x);
}
static bool forms_sign(const struct form *x)
{
    return forms_min_max(x);
}
static bool forms_logic(const struct form *x)
{
    return is_plain_int(x) || (form_type(x) == MG_TYPE_pred && !x->row->key);
}
static bool forms_mov(const struct form *x)
{
    return form_type(x) != MG_TYPE_b128;
}
static bool forms_quotient(const struct form *x)
{
    if (is_plain_int(x)) return true;
    return is_real(x) && (is_nearest(x) || is_directed(x) || is_approx_quotient(x));
}
static bool forms_root(const struct form *x)
{
    return (is_real(x) && is_nearest(x)) || is_approx(x);
}
static bool forms_approx(const struct form *x)
{
    return is_approx(x);
}

static bool forms_product(const struct form *x)
{
    uint32_t key = x->row->key;
    bool word = cpu_is_integer(form_type(x)) && mg_type_bits((enum mg_type)form_type(x)) == 32;
    if (is_real(x)) return is_nearest(x) || is_directed(x);
    if (key == K_WIDE) return form_type(x) != MG_TYPE_none;
    return ((cpu_is_integer(form_type(x)) || is_short(form_type(x))) && key == K_LO) || (word && key == K_HI);
}

static bool forms_product3(const struct form *x)
{
    if (is_real(x)) return is_directed(x) || (is_nearest(x) && x->isa != EMU_ISA_BASE);
    return x->row->key == K_WIDE || ((cpu_is_integer(form_type(x)) || is_short(form_type(x))) && x->row->key == K_LO);
}

static bool forms_compare(const struct form *x)
{
    unsigned t = form_type(x), sub = (x->row->key & K_SUB) >> K_SUB_SHIFT;
    if (x->f && x->imm & 3 && !x->in->s[2]) return false;
    if (x->row->key & ~(uint32_t)(K_SUB | K_FTZ) || !sub) return false;
    if (is_real(x)) return sub <= CMP_nan;
    return (cpu_is_integer(t) || is_short(t)) && sub <= CMP_ge;
}

/* To half precision and back: rounded to nearest */
static bool converts_half(unsigned d, unsigned s, uint32_t key)
{
    bool to = d == MG_TYPE_f16 || d == MG_TYPE_bf16, from = s == MG_TYPE_f16 || s == MG_TYPE_bf16;
    return (to && s == MG_TYPE_f32 && key == K_RN) || (from && d == MG_TYPE_f32 && !key);
}
static bool is_full(unsigned t)
{
    return t == MG_TYPE_f32 || t == MG_TYPE_f64;
}

static bool forms_convert(const struct form *x)
{
    unsigned d = x->row->t[0], s = x->row->t[1];
    uint32_t key = x->row->key, round = key & K_ROUND, more = key & ~(uint32_t)K_ROUND;
    bool to_int = mg_type_kind((enum mg_type)d) != MG_TK_FLOAT, from_int = mg_type_kind((enum mg_type)s) != MG_TK_FLOAT;
    if (x->row->st[1]) return false; /* a pair */
    if (to_int && from_int) return key == 0;
    if (from_int) return key == K_RN && !x->imm && is_full(d);
    if (x->isa >= EMU_ISA_AVX2 && converts_half(d, s, key)) return true;
    if (!is_full(s) || (round >= K_RNI && round != K_RZI && x->isa < EMU_ISA_AVX2)) return false;
    if (to_int) return cpu_is_integer(d) && round >= K_RNI && !(more & ~(uint32_t)(K_SAT | K_FTZ)) && !x->imm;
    if (d == MG_TYPE_f32 && s == MG_TYPE_f64)
        return round == K_RN && !(more & ~(uint32_t)K_FTZ) && !(x->imm & ~(uint32_t)MX_FTZ);
    if (!is_full(d) || x->imm) return false;
    if (d != s) return !(key & ~(uint32_t)K_FTZ);
    if (round == K_RZI && x->isa < EMU_ISA_AVX2) return false;
    return round              ? round >= K_RNI && !(more & ~(uint32_t)K_FTZ)
           : d == MG_TYPE_f32 ? key && !(key & ~(uint32_t)(K_SAT | K_FTZ))
                              : key == K_SAT;
}

/* Of as many bits as are known: three operands decide how the result varies */
static bool forms_insert(const struct form *x)
{
    return x->f && x->in->s[3] && x->f->regs[x->in->s[3] - 1].kind == CPU_REG_CONST;
}
static bool forms_bfind(const struct form *x)
{
    return cpu_is_integer(form_type(x)) && !(x->row->key & ~(uint32_t)K_SHIFTAMT);
}
static bool forms_select(const struct form *x)
{
    unsigned n = mg_type_bits((enum mg_type)form_type(x));
    return n == 32 || n == 64;
}
static bool forms_product24(const struct form *x)
{
    return x->row->key == K_LO || x->row->key == K_HI;
}

static bool (*const in_line[MG_OP_COUNT])(const struct form *) = {
#define ARITH(opcode, forms, code) [MG_OP_##opcode] = forms_##forms,
#include "device/cpu/arithmetic.def"
};

static bool has_code(const struct form *x)
{
    return !x->row->uses_cc && in_line[x->row->op] && in_line[x->row->op](x);
}

bool cpu_has_code(unsigned opcode, enum emu_isa isa)
{
    const struct alu_row *row = emu_alu_row(opcode, isa);
    return row && has_code(&(struct form){.row = row, .imm = row->imm, .isa = isa});
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

/* Integer atomics of 32 bits on shared memory have code of their own. */
static bool shared_atomic(const struct emu_op *op)
{
    bool word = op->type == MG_TYPE_u32 || op->type == MG_TYPE_s32 || op->type == MG_TYPE_b32;
    return op->space == MG_SPACE_shared && op->bytes == 4 && word && !(op->flags & EMU_OF_CLUSTER) &&
           op->sub != EMU_ATOM_INC && op->sub != EMU_ATOM_DEC && op->sub != EMU_ATOM_CAS;
}

/* Words of ours in a CTA's shared memory lie elsewhere than compiled code looks. */
static bool is_apart(const struct emu_op *op)
{
    return op->probe && op->space == MG_SPACE_shared;
}

/* So have those on global memory that the host has an operation for, or can do in a short loop. */
static bool global_atomic(const struct emu_op *op)
{
    enum mg_type_kind k = mg_type_kind((enum mg_type)op->type);
    bool number = k == MG_TK_UINT || k == MG_TK_SINT || k == MG_TK_BITS,
         real = op->type == MG_TYPE_f32 || op->type == MG_TYPE_f64;
    if ((op->space != MG_SPACE_global && op->space != MG_SPACE_generic) || op->flags & EMU_OF_CLUSTER ||
        (op->bytes != 4 && op->bytes != 8))
        return false;
    return op->sub == EMU_ATOM_ADD
               ? number || real
               : number && op->sub != EMU_ATOM_INC && op->sub != EMU_ATOM_DEC && op->sub != EMU_ATOM_CAS;
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
    if ((row->op == MG_OP_setp || row->op == MG_OP_set) && op->a.imm & 3) n = 3; /* and a predicate */
    if (row->op == MG_OP_setp && (row->t[0] == MG_TYPE_b16 || row->t[0] == MG_TYPE_u16))
        in->t[0] = MG_TYPE_u32; /* one function: lanes are zero-extended */
    for (unsigned k = 0; k < n; k++) in->s[k] = cpu_reg_at(f, op->a.s[k]);
    in->d = cpu_reg_at(f, op->a.d);
    in->d2 = cpu_reg_at(f, op->a.d2);
    if (has_code(&(struct form){f, in, row, op->a.imm, f->isa}))
        in->kind = CPU_ALU;
    else if (!row->uses_cc)
        in->known = 1;
}

/* ---- operands of the operations of emu/operations.def ---------------------------------------------------- */

struct lowering {
    struct cpu_func *f;
    const struct emu_op *op;
    struct cpu_inst *in;
};

static uint32_t reg(const struct lowering *l, uint32_t off)
{
    return cpu_reg_at(l->f, off);
}
static void call_instead(const struct lowering *l)
{
    l->in->kind = CPU_CALL;
}

static void lower_no_operands(const struct lowering *l)
{
    (void)l;
}
static void lower_destination(const struct lowering *l)
{
    l->in->d = reg(l, l->op->a.d);
}

static void lower_clock(const struct lowering *l)
{
    lower_destination(l);
    l->in->mode = emu_clock_shift((uint64_t)l->op->a.imm) != 0;
}

static void lower_unary(const struct lowering *l)
{
    l->in->d = reg(l, l->op->a.d);
    l->in->s[0] = reg(l, l->op->a.s[0]);
}

static void lower_cvta(const struct lowering *l)
{
    if (l->op->space == MG_SPACE_shared)
        lower_unary(l);
    else
        call_instead(l);
}

static bool two_halves(const struct emu_op *op)
{
    return op->vec == 2 && op->bytes == 4 && op->a.imm == EMU_D;
}

static void lower_pack(const struct lowering *l)
{
    const uint32_t *part = l->op->slots;
    if (!two_halves(l->op)) {
        call_instead(l);
        return;
    }
    l->in->d = reg(l, l->op->a.d);
    for (int k = 0; k < 2; k++) l->in->s[k] = reg(l, part[k]);
    if (!l->in->s[0] || !l->in->s[1]) call_instead(l);
}

static void lower_unpack(const struct lowering *l)
{
    if (!two_halves(l->op)) {
        call_instead(l);
        return;
    }
    l->in->d = reg(l, l->op->slots[0]);
    l->in->d2 = reg(l, l->op->slots[1]);
    l->in->s[0] = reg(l, l->op->a.s[0]);
}

static void lower_count(const struct lowering *l)
{
    l->in->counts = l->op->ext;
    l->in->n_counts = l->op->a.imm;
    l->in->s[0] = reg(l, l->op->a.s[0]);
}

static void lower_request(const struct lowering *l)
{
    const struct emu_request *r = l->op->ext;
    l->in->bytes = r->bytes;
    l->in->space = r->space;
    l->in->off = l->op->off;
    l->in->s[0] = reg(l, l->op->a.s[0]);
    if (!l->in->s[0]) call_instead(l);
}

static void lower_carried(const struct lowering *l)
{
    const struct emu_carried *r = l->op->ext;
    l->in->bytes = r->bits / 8;
    l->in->mode = r->kind;
    for (int k = 0; k < 3; k++) l->in->s[k] = reg(l, l->op->a.s[k]);
    if (!l->in->s[0] || !l->in->s[1] || !l->in->s[2]) call_instead(l);
}

static enum emu_where where_of(unsigned opcode)
{
    switch (opcode) {
    case EMU_OP_load_shared:
    case EMU_OP_store_shared:
        return EMU_AT_SHARED;
    case EMU_OP_load_local:
    case EMU_OP_store_local:
        return EMU_AT_LOCAL;
    case EMU_OP_load_param:
        return EMU_AT_PARAM;
    default:
        return EMU_AT_GLOBAL;
    }
}

static void lower_access(const struct lowering *l)
{
    const struct emu_op *op = l->op;
    struct cpu_inst *in = l->in;
    if (op->flags & EMU_OF_CLUSTER || is_apart(op) || op->elem == EMU_E_B128Q) {
        call_instead(l);
        return;
    }
    in->where = (uint8_t)where_of(op->opcode);
    in->elem = op->elem;
    in->vec = op->vec;
    in->bytes = op->bytes;
    in->off = op->off;
    in->space = op->space;
    in->cache = op->cache;
    in->base_w = (op->flags & EMU_OF_BASE_W) != 0;
    in->base_none = (op->flags & EMU_OF_BASE_NONE) != 0;
    if (in->kind != CPU_PARAM && !in->base_none) in->s[0] = reg(l, op->a.s[0]);
    in->list = mg_arena_array(&l->f->arena, uint32_t, op->vec);
    in->n_list = op->vec;
    bool missing = false;
    for (unsigned k = 0; k < op->vec; k++) {
        in->list[k] = reg(l, op->slots ? op->slots[k] : in->kind == CPU_STORE ? op->a.s[1] : op->a.d);
        missing |= !in->list[k];
    }
    if (in->kind == CPU_STORE && missing) call_instead(l);
}

static void lower_texel(const struct lowering *l)
{
    const struct emu_op *op = l->op;
    struct cpu_inst *in = l->in;
    in->s[0] = reg(l, op->a.s[0]);
    in->s[1] = reg(l, op->a.s[1]);
    if (!(op->flags & EMU_OF_WORDS) || !in->s[0] || !in->s[1]) {
        in->s[0] = in->s[1] = 0;
        call_instead(l);
        return;
    }
    in->cache = op->cache;
    in->list = mg_arena_array(&l->f->arena, uint32_t, op->vec);
    in->n_list = op->vec;
    for (unsigned k = 0; k < op->vec; k++) in->list[k] = op->slots[k] ? reg(l, op->slots[k]) : 0;
}

/* The emulator's function, which reads s and writes d. */
static void call_atomic(const struct lowering *l)
{
    call_instead(l);
    l->in->known = 1;
    for (int k = 0; k < 3; k++) l->in->s[k] = reg(l, l->op->a.s[k]);
    l->in->d = reg(l, l->op->a.d);
}

static void lower_atomic(const struct lowering *l)
{
    const struct emu_op *op = l->op;
    struct cpu_inst *in = l->in;
    bool shared = shared_atomic(op) && !is_apart(op), global = op->opcode == EMU_OP_atom && global_atomic(op);
    if (op->vec > 1) {
        call_instead(l);
        return;
    }
    if (!shared && !global) {
        call_atomic(l);
        return;
    }
    in->where = shared ? EMU_AT_SHARED : EMU_AT_GLOBAL;
    in->bytes = op->bytes;
    in->off = op->off;
    in->cache = op->cache;
    in->base_w = !shared && op->flags & EMU_OF_BASE_W;
    in->waits = (op->flags & EMU_OF_SYNC) != 0;
    for (int k = 0; k < 2; k++) in->s[k] = k || !(op->flags & EMU_OF_BASE_NONE) ? reg(l, op->a.s[k]) : 0;
    in->d = reg(l, op->a.d);
    l->f->suspects |= in->waits;
    if (!in->s[1]) call_atomic(l);
}

static void lower_red_add(const struct lowering *l)
{
    if (l->op->vec <= 1) call_atomic(l);
}

static const struct {
    void (*operands)(const struct lowering *);
    uint8_t kind;
} lowerings[EMU_OP_COUNT] = {
#define ONE(name, operands, kind)    [EMU_OP_##name] = {lower_##operands, kind},
#define ISA(name, operands, kind)    [EMU_OP_##name] = {lower_##operands, kind},
#define ACCESS(name, operands, kind) [EMU_OP_##name] = {lower_##operands, kind},
#include "device/emu/operations.def"
};

enum cpu_kind cpu_lowered_kind(unsigned opcode)
{
    return (enum cpu_kind)lowerings[opcode].kind;
}

/* ---- one operation ------------------------------------------------------------------------------------------ */

static void lower_control(struct cpu_func *f, uint32_t ix, struct cpu_inst *in)
{
    const struct emu_op *op = &f->fn->ops[ix];
    in->kind = CPU_CTL;
    for (int k = 0; k < 4; k++) in->s[k] = cpu_reg_at(f, op->a.s[k]);
    in->d = cpu_reg_at(f, op->a.d);
    in->d2 = cpu_reg_at(f, op->a.d2);
    switch ((enum emu_ctl)op->ctl) {
    case EMU_CTL_CALL:
        if (!cpu_lower_pure_call(f, ix, in)) name_all(f, op, in, ix);
        break;
    case EMU_CTL_CALLI:
    case EMU_CTL_BUILTIN:
        name_all(f, op, in, ix);
        break;
    case EMU_CTL_SYNC:
        if (!cpu_sync_has_code(op->sub)) {
            name_all(f, op, in, ix);
            break;
        }
        in->known = 1;
        in->list = mg_arena_array(&f->arena, uint32_t, 1);
        in->list[0] = cpu_reg_at(f, op->a.cc); /* ORDER SYNC: the member mask */
        in->n_list = in->list[0] != 0;
        break;
    default:
        in->known = 1;
        break;
    }
}

/* May a loop with this call wait for others? Who only adds waits for nobody. */
static bool call_may_wait(const struct emu_op *op)
{
    switch (op->opcode) {
    case EMU_OP_mark_suspect:
        return true;
    case EMU_OP_nanosleep:
        return !op->probe;
    case EMU_OP_red_add:
    case EMU_OP_red_add_w:
    case EMU_OP_red_add_d:
        return op->flags & EMU_OF_SYNC;
    default:
        return op->flags & EMU_OF_SYNC || (op->flags & EMU_OF_READS && op->flags & EMU_OF_WRITES);
    }
}

static void lower_op(struct cpu_func *f, uint32_t ix)
{
    const struct emu_op *op = &f->fn->ops[ix];
    struct cpu_inst *in = &f->insts[ix];
    *in = (struct cpu_inst){.kind = CPU_CALL,
                            .ctl = op->ctl,
                            .sub = op->sub,
                            .mode = op->mode,
                            .type = op->type,
                            .guard_not = op->guard_flip != 0,
                            .imm = op->a.imm,
                            .probe = op->probe};
    in->guard = cpu_reg_at(f, op->guard);
    if (op->ctl) {
        lower_control(f, ix, in);
        return;
    }
    const struct alu_row *row = emu_alu_row(op->opcode, f->isa);
    if (row)
        lower_alu(f, row, op, in);
    else if (op->opcode < EMU_OP_COUNT && lowerings[op->opcode].operands) {
        in->kind = lowerings[op->opcode].kind;
        lowerings[op->opcode].operands(&(struct lowering){f, op, in});
    }
    if (in->kind != CPU_CALL) return;
    if (!in->known) name_all(f, op, in, ix);
    f->suspects |= call_may_wait(op);
}

static struct cpu_func *lower(const struct emu_func *fn, const uint32_t dims[3], bool pure, char *why, size_t why_bytes)
{
    if (fn->n_ops > CPU_MAX_LONE) {
        snprintf(why, why_bytes, "%u operations are more than the compiler takes", fn->n_ops);
        return NULL;
    }
    struct cpu_func *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->fn = fn;
    f->isa = fn->mod->dev->isa;
    f->slow_gathers = __builtin_cpu_is("amd");
    f->is_kernel = fn == fn->code->entry;
    f->pure = pure;
    f->static_shared = fn->code->static_shared;
    memcpy(f->dims, dims, sizeof f->dims);
    list_regs(f);
    f->n_insts = fn->n_ops;
    f->insts = mg_arena_array(&f->arena, struct cpu_inst, fn->n_ops + 1);
    for (uint32_t i = 0; i < fn->n_ops; i++) lower_op(f, i);
    for (uint32_t i = 0; i < f->n_regs; i++) {
        static const uint8_t known[] = {MG_SREG_tid,         MG_SREG_ctaid,       MG_SREG_ntid,
                                        MG_SREG_nctaid,      MG_SREG_laneid,      MG_SREG_lanemask_lt,
                                        MG_SREG_lanemask_le, MG_SREG_lanemask_eq, MG_SREG_lanemask_gt,
                                        MG_SREG_lanemask_ge, MG_SREG_WARP_SZ,     MG_SREG_warpid};
        if (f->regs[i].kind != CPU_REG_SREG) continue;
        bool is = false;
        for (unsigned k = 0; k < MG_COUNT_OF(known); k++) is |= f->regs[i].sreg == known[k];
        f->region.own_sregs |= !is;
    }
    if (!cpu_find_blocks(f, why, why_bytes)) {
        cpu_func_free(f);
        return NULL;
    }
    cpu_forward(f);
    if (f->n_insts > CPU_MAX_OPS && f->n_insts - cpu_count_lone(f) > CPU_MAX_OPS) {
        snprintf(why, why_bytes, "%u operations are more than the compiler takes", fn->n_ops);
        cpu_func_free(f);
        return NULL;
    }
    cpu_find_ranges(f);
    cpu_find_shapes(f); /* fronts and liveness with it: they depend on one another */
    cpu_find_regions(f);
    cpu_find_dirty(f);
    cpu_find_splits(f);
    cpu_find_tallies(f);
    cpu_find_idle(f);
    cpu_find_fused(f);
    cpu_find_walks(f);
    return f;
}

struct cpu_func *cpu_lower(const struct emu_func *fn, const uint32_t dims[3], char *why, size_t why_bytes)
{
    return lower(fn, dims, false, why, why_bytes);
}
struct cpu_func *cpu_lower_pure(const struct emu_func *fn, const uint32_t dims[3])
{
    char why[200];
    return lower(fn, dims, true, why, sizeof why);
}

void cpu_func_free(struct cpu_func *f)
{
    if (!f) return;
    for (uint32_t k = 0; k < f->n_pures; k++) cpu_func_free(f->pures[k]);
    free(f->pures);
    mg_arena_release(&f->arena);
    free(f);
}
