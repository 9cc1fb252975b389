/* Decoding of matrix operations into struct emu_matrix: shapes and types from the form, registers
 * counted against what the shape needs. */
#include "device/emu/check.h"
#include "device/emu/decode.h"
#include "device/emu/matrix.h"

#include <string.h>

/* "m16n8k16" */
static bool shape_of(const struct mg_form *f, struct emu_matrix *x)
{
    for (unsigned i = 0; i < f->n_mods; i++) {
        const char *t = mg_mod_text((enum mg_mod)f->mods[i]);
        unsigned v[3] = {0}, at = 0;
        if (mg_mod_class((enum mg_mod)f->mods[i]) != MG_MC_SHAPE || *t != 'm') continue;
        for (; *t; t++) {
            if (*t >= '0' && *t <= '9' && at)
                v[at - 1] = v[at - 1] * 10 + (unsigned)(*t - '0');
            else if (at < 3 && *t == "mnk"[at])
                at++;
            else
                return false;
        }
        x->m = (uint16_t)v[0];
        x->n = (uint16_t)v[1];
        x->k = (uint16_t)v[2];
        return at == 3;
    }
    return false;
}

static struct emu_matrix *new_matrix(struct decoder *d, enum emu_matrix_kind kind)
{
    struct emu_matrix *x = mg_arena_new(&d->code->arena, struct emu_matrix);
    x->kind = (uint8_t)kind;
    x->fraction = 25;
    x->ops = d->isa == EMU_ISA_AVX512 ? &emu_matrix_avx512
             : d->isa == EMU_ISA_AVX2 ? &emu_matrix_avx2
                                      : &emu_matrix_base;
    return x;
}

/* Registers of an operand: a list, one register, or a vector register. */
struct list {
    uint32_t at[320], n;
};

static uint32_t add_elements(struct decoder *d, struct list *l, const struct mg_opnd *o, enum mg_type t, bool dst)
{
    const struct mg_opnd *e = o->kind == MG_OPND_vec ? &d->m->opnds.at[o->id] : o;
    uint32_t n = o->kind == MG_OPND_vec ? o->n : 1;
    enum emu_class c = mg_type_bits(t) == 64 ? EMU_D : EMU_W;
    if (l->n + n > MG_COUNT_OF(l->at)) dec_refuse(d, "too many registers in a fragment");
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at;
        if (!dst)
            at = dec_src(d, &e[i], c,
                         c == EMU_D                       ? MG_TYPE_f64
                         : mg_type_kind(t) == MG_TK_FLOAT ? MG_TYPE_f32
                                                          : MG_TYPE_b32);
        else if (e[i].kind == MG_OPND_reg && dec_reg_class(d, &e[i]) == c)
            at = dec_reg(d, &e[i]);
        else if (e[i].kind == MG_OPND_sink)
            at = dec_slot(d, c);
        else
            dec_refuse(d, "unsupported destination");
        l->at[l->n++] = at;
    }
    return n;
}

static void finish(struct decoder *d, struct emu_matrix *x, const struct list *l)
{
    x->reg = mg_arena_copy(&d->code->arena, l->at, (l->n ? l->n : 1) * sizeof *l->at);
    x->at.node = d->node;
    x->at.site = dec_check_site(d);
    x->at.mode = x->kind == EMU_MAT_LOAD || x->kind == EMU_MAT_STORE ? EMU_CK_SELF : EMU_CK_WARP;
    uint32_t members = dec_const(d, EMU_W, UINT32_MAX);
    struct emu_op *op = dec_emit_inst(d, EMU_OP_none, EMU_CTL_SYNC);
    op->sub = EMU_SYNC_MATRIX;
    op->ext = x;
    op->a.cc = members; /* ORDER SYNC */
}

static bool is_int(unsigned t)
{
    return mg_type_kind((enum mg_type)t) != MG_TK_FLOAT;
}

/* Does the arithmetic know these types? Sets how it rounds. */
static void check_types(struct decoder *d, struct emu_matrix *x, bool wgmma)
{
    bool ok, fp8 = x->a == MG_TYPE_e4m3 || x->a == MG_TYPE_e5m2;
    switch (x->a) {
    case MG_TYPE_f16:
    case MG_TYPE_e4m3:
    case MG_TYPE_e5m2:
        ok = (x->c == MG_TYPE_f16 || x->c == MG_TYPE_f32) && (x->d == MG_TYPE_f16 || x->d == MG_TYPE_f32) &&
             (fp8 ? x->b == MG_TYPE_e4m3 || x->b == MG_TYPE_e5m2 : x->b == x->a);
        break;
    case MG_TYPE_bf16:
    case MG_TYPE_tf32:
        ok = x->b == x->a && x->c == MG_TYPE_f32 && x->d == MG_TYPE_f32;
        break;
    case MG_TYPE_f64:
        ok = x->b == x->a && x->c == x->a && x->d == x->a;
        break;
    case MG_TYPE_u8:
    case MG_TYPE_s8:
        ok = (x->b == MG_TYPE_u8 || x->b == MG_TYPE_s8) && x->c == MG_TYPE_s32 && x->d == MG_TYPE_s32;
        break;
    case MG_TYPE_u4:
    case MG_TYPE_s4:
        ok = (x->b == MG_TYPE_u4 || x->b == MG_TYPE_s4) && x->c == MG_TYPE_s32 && x->d == MG_TYPE_s32;
        break;
    case MG_TYPE_b1:
        ok = x->b == x->a && x->c == MG_TYPE_s32 && x->d == MG_TYPE_s32;
        break;
    default:
        ok = false;
    }
    if (!ok) dec_refuse(d, "matrices of these types are not supported by this device");
    if (fp8 && wgmma) {
        x->fraction = 13;
        if (x->d == MG_TYPE_f32) x->flags |= EMU_MF_E8M13;
    }
    if (x->m % 8 || x->n % 8 || x->m > 32 || x->n > 256 || !x->k || emu_matrix_row_bytes(x) > EMU_MAX_K_BYTES ||
        emu_matrix_row_bytes(x) % 16)
        dec_refuse(d, "unsupported matrix shape");
}

/* Registers that a fragment of rows x row_bytes has. */
static uint32_t n_rows(uint32_t rows, uint32_t row_bytes)
{
    return rows / 8 * (row_bytes / 16);
}
static uint32_t n_result(const struct emu_matrix *x, unsigned type)
{
    return x->m / 8u * (x->n / 8u) * (mg_type_bits((enum mg_type)type) == 16 ? 1 : 2);
}

static void check_counts(struct decoder *d, const struct emu_matrix *x)
{
    uint32_t row = x->a == MG_TYPE_f64 ? x->k * 4u : emu_matrix_row_bytes(x); /* 8 x 4 elements of 64 bits a register */
    bool spare = x->a == MG_TYPE_f16 && x->n_a == 8;                          /* wmma: more registers than elements */
    if ((x->n_a < n_rows(x->m, x->sparse ? row / 2 : row)) || x->n_b < n_rows(x->n, row) ||
        (!spare && x->n_a != n_rows(x->m, x->sparse ? row / 2 : row)) || (!spare && x->n_b != n_rows(x->n, row)) ||
        x->n_c != n_result(x, x->c) || x->n_d != n_result(x, x->d))
        dec_refuse(d, "a fragment has another number of registers than its shape needs");
}

/* mma and wmma.mma: d, a, b, c [, metadata, selector] */
static void multiply(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    bool wmma = f->op == MG_OP_wmma, sparse = mg_form_has(f, MG_MOD_sp) || mg_form_has(f, MG_MOD_sp__ordered_metadata);
    struct emu_matrix *x = new_matrix(d, EMU_MAT_MMA);
    struct list l = {.n = 0}, dst = {.n = 0};
    if (!shape_of(f, x) || n < (sparse ? 6u : 4u) || mg_form_has(f, MG_MOD_block_scale))
        dec_refuse(d, "unsupported instruction");
    if (f->n_types == 4)
        x->d = f->types[0], x->a = f->types[1], x->b = f->types[2], x->c = f->types[3];
    else if (f->n_types == 2 && wmma)
        x->d = f->types[0], x->a = x->b = MG_TYPE_f16, x->c = f->types[1]; /* .f32.f32: of f16 */
    else
        dec_refuse(d, "unsupported instruction");
    /* k = 4 with f16 has layouts of its own */
    if (x->m == 8 && x->n == 8 && x->k == 4 && x->a == MG_TYPE_f16 && !wmma) {
        x->kind = EMU_MAT_MMA884;
        const enum mg_mod col = MG_MOD_col;
        unsigned seen = 0;
        for (unsigned i = 0; i < f->n_mods; i++)
            if (f->mods[i] == MG_MOD_row || f->mods[i] == col) {
                if (seen == 0 && f->mods[i] == col) x->flags |= EMU_MF_A_COL;
                if (seen == 1 && f->mods[i] == MG_MOD_row) x->flags |= EMU_MF_B_ROW;
                seen++;
            }
    } else
        check_types(d, x, false);
    if (mg_form_has(f, MG_MOD_satfinite)) {
        if (!is_int(x->a)) dec_refuse(d, "unsupported instruction");
        x->flags |= EMU_MF_SAT;
    }
    if (mg_form_has(f, MG_MOD_and)) x->flags |= EMU_MF_AND;
    x->n_a = (uint16_t)add_elements(d, &l, &o[1], (enum mg_type)x->a, false);
    x->n_b = (uint16_t)add_elements(d, &l, &o[2], (enum mg_type)x->b, false);
    x->n_c = (uint16_t)add_elements(d, &l, &o[3], (enum mg_type)x->c, false);
    x->n_d = (uint16_t)add_elements(d, &dst, &o[0], (enum mg_type)x->d, true);
    if (l.n + dst.n + 1 > MG_COUNT_OF(l.at)) dec_refuse(d, "too many registers in a fragment");
    memcpy(l.at + l.n, dst.at, dst.n * sizeof *dst.at);
    l.n += dst.n;
    if (sparse) {
        if (o[5].kind != MG_OPND_imm || o[5].val > 3) dec_refuse(d, "unsupported sparsity selector");
        x->sparse = (uint8_t)(1 + o[5].val);
        add_elements(d, &l, &o[4], MG_TYPE_b32, false);
    }
    if (x->kind == EMU_MAT_MMA)
        check_counts(d, x);
    else if (x->n_a != 2 || x->n_b != 2 || (x->n_c != 4 && x->n_c != 8) || (x->n_d != 4 && x->n_d != 8))
        dec_refuse(d, "a fragment has another number of registers than its shape needs");
    finish(d, x, &l);
}

/* wmma.load: registers, [p], stride; wmma.store: [p], registers, stride */
static void transfer(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    bool store = mg_form_has(f, MG_MOD_store), a = mg_form_has(f, MG_MOD_a), b = mg_form_has(f, MG_MOD_b),
         row = mg_form_has(f, MG_MOD_row);
    struct emu_matrix *x = new_matrix(d, store ? EMU_MAT_STORE : EMU_MAT_LOAD);
    struct list l = {.n = 0};
    if (!shape_of(f, x) || n < 2 || !f->n_types) dec_refuse(d, "unsupported instruction");
    x->a = x->b = x->c = x->d = f->types[0];
    x->role = store || !(a || b) ? 'c' : a ? 'a' : 'b';
    if (x->role == 'b' ? row : !row) x->flags |= EMU_MF_TRANS;
    uint32_t bits = mg_type_bits((enum mg_type)x->a), rows = x->role == 'b' ? x->n : x->m,
             cols = x->role == 'c' ? x->n : x->k;
    if (x->m > 32 || x->n > 32 || rows % 8 || !cols || (bits < 8 && x->flags & EMU_MF_TRANS))
        dec_refuse(d, "unsupported matrix shape");
    x->n_a = (uint16_t)add_elements(d, &l, &o[store ? 1 : 0], (enum mg_type)x->a, !store);
    uint32_t need = x->role == 'c' ? n_result(x, x->a) : n_rows(rows, bits == 64 ? cols * 4 : cols * bits / 8);
    if (x->n_a < need || x->n_a % need)
        dec_refuse(d, "a fragment has another number of registers than its shape needs");
    dec_address(d, &x->at, &o[store ? 0 : 1], (enum mg_space)f->space);
    x->at.flags |= store ? EMU_OF_WRITES : EMU_OF_READS;
    if (n > 2) x->stride = dec_src(d, &o[2], EMU_W, MG_TYPE_u32);
    finish(d, x, &l);
}

static void tiles(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    bool store = f->op == MG_OP_stmatrix, move = f->op == MG_OP_movmatrix;
    struct emu_matrix *x = new_matrix(d, move ? EMU_MAT_MOVMATRIX : store ? EMU_MAT_STMATRIX : EMU_MAT_LDMATRIX);
    struct list l = {.n = 0};
    uint32_t want = mg_form_has(f, MG_MOD_x4) ? 4 : mg_form_has(f, MG_MOD_x2) ? 2 : 1;
    if (n < 2 || !mg_form_has(f, MG_MOD_m8n8) || !mg_form_has(f, MG_MOD_b16)) dec_refuse(d, "unsupported instruction");
    x->a = x->b = x->c = x->d = MG_TYPE_b32;
    if (mg_form_has(f, MG_MOD_trans)) x->flags |= EMU_MF_TRANS;
    if (move) {
        if (!mg_form_has(f, MG_MOD_trans)) dec_refuse(d, "unsupported instruction");
        x->n_a = (uint16_t)add_elements(d, &l, &o[1], MG_TYPE_b32, false);
        x->n_d = (uint16_t)add_elements(d, &l, &o[0], MG_TYPE_b32, true);
        want = 1;
    } else {
        x->n_a = (uint16_t)add_elements(d, &l, &o[store ? 1 : 0], MG_TYPE_b32, !store);
        dec_address(d, &x->at, &o[store ? 0 : 1], (enum mg_space)f->space);
        x->at.flags |= store ? EMU_OF_WRITES : EMU_OF_READS;
    }
    if (x->n_a != want) dec_refuse(d, "a fragment has another number of registers than its shape needs");
    finish(d, x, &l);
}

/* d, a | a-descriptor, b-descriptor [, metadata, selector], scale-d, scale-a, scale-b, trans-a, trans-b */
static void warpgroup(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    if (mg_form_has(f, MG_MOD_wait_group)) {
        struct emu_op *op = dec_emit_inst(d, EMU_OP_none, EMU_CTL_SYNC);
        op->sub = EMU_SYNC_WGMMA;
        op->a.imm = n && o[0].kind == MG_OPND_imm ? (uint32_t)o[0].val : 0;
        return;
    }
    if (!mg_form_has(f, MG_MOD_mma_async)) {
        dec_emit_inst(d, mg_form_has(f, MG_MOD_commit_group) ? EMU_OP_wgmma_commit : EMU_OP_nop, EMU_CTL_NONE);
        return;
    }
    bool sparse = mg_form_has(f, MG_MOD_sp);
    uint32_t next = sparse ? 5 : 3;
    struct emu_matrix *x = new_matrix(d, EMU_MAT_WGMMA);
    struct list l = {.n = 0};
    if (!shape_of(f, x) || x->m != 64 || n < 3 || f->n_types != 3 || (sparse && n < 5))
        dec_refuse(d, "unsupported instruction");
    x->m = 16; /* of a warp */
    x->d = x->c = f->types[0];
    x->a = f->types[1];
    x->b = f->types[2];
    check_types(d, x, true);
    if (emu_matrix_row_bytes(x) != (sparse ? 64u : 32u)) dec_refuse(d, "unsupported matrix shape");
    if (mg_form_has(f, MG_MOD_satfinite)) x->flags |= EMU_MF_SAT;
    if (mg_form_has(f, MG_MOD_and)) x->flags |= EMU_MF_AND;
    if (o[1].kind == MG_OPND_vec)
        x->n_a = (uint16_t)add_elements(d, &l, &o[1], MG_TYPE_b32, false);
    else
        x->desc_a = dec_src(d, &o[1], EMU_D, MG_TYPE_u64);
    x->desc_b = dec_src(d, &o[2], EMU_D, MG_TYPE_u64);
    x->n_c = (uint16_t)add_elements(d, &l, &o[0], (enum mg_type)x->d, true);
    x->n_d = (uint16_t)add_elements(d, &l, &o[0], (enum mg_type)x->d, true);
    if (sparse) {
        if (o[4].kind != MG_OPND_imm || o[4].val > 3) dec_refuse(d, "unsupported sparsity selector");
        x->sparse = (uint8_t)(1 + o[4].val);
        add_elements(d, &l, &o[3], MG_TYPE_b32, false);
    }
    if ((x->n_a && x->n_a != 4) || x->n_d != n_result(x, x->d))
        dec_refuse(d, "a fragment has another number of registers than its shape needs");
    if (n > next) {
        const struct mg_opnd *p = &o[next++];
        if (p->kind == MG_OPND_not)
            x->scale_d = dec_reg(d, p), x->scale_flip = UINT32_MAX;
        else
            x->scale_d = dec_src(d, p, EMU_P, MG_TYPE_pred);
    }
    int64_t imm[4] = {1, 1, 0, 0};
    for (uint32_t i = 0; i < 4 && next + i < n; i++) {
        if (o[next + i].kind != MG_OPND_imm) dec_refuse(d, "unsupported instruction");
        imm[i] = (int64_t)o[next + i].val;
    }
    bool is16 = x->a == MG_TYPE_f16 || x->a == MG_TYPE_bf16;
    if (n == next + 3 && !x->desc_a && is16) imm[3] = imm[2], imm[2] = 0; /* A in registers: only B may be transposed */
    if (imm[0] < 0) x->flags |= EMU_MF_NEG_A;
    if (imm[1] < 0) x->flags |= EMU_MF_NEG_B;
    if ((imm[2] || imm[3]) && !is16) dec_refuse(d, "unsupported instruction");
    if (imm[2]) x->flags |= EMU_MF_A_COL;
    if (imm[3]) x->flags |= EMU_MF_B_ROW;
    x->at.space = MG_SPACE_shared;
    x->at.flags = EMU_OF_READS | EMU_OF_BASE_NONE;
    finish(d, x, &l);
}

bool dec_matrix(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    switch ((enum mg_op)f->op) {
    case MG_OP_mma:
        multiply(d, f, o, n);
        return true;
    case MG_OP_wmma:
        if (mg_form_has(f, MG_MOD_load) || mg_form_has(f, MG_MOD_store))
            transfer(d, f, o, n);
        else
            multiply(d, f, o, n);
        return true;
    case MG_OP_ldmatrix:
    case MG_OP_stmatrix:
    case MG_OP_movmatrix:
        tiles(d, f, o, n);
        return true;
    case MG_OP_wgmma:
        warpgroup(d, f, o, n);
        return true;
    default:
        return false;
    }
}
