/* values: what memory instructions carry: constant, uniform, affine, narrow, redundant values, zeros and NaNs.
 *
 *   counted    values: one for every lane, element and execution     zero, nan: of these
 *   redundant  the same as the value before it at this place in this thread
 *   uniform    warp executions in which all lanes held one value; affine: one step between neighbours
 *              (differences of the bits; uniform ones are not affine again)
 *   range      least and largest bits, as an unsigned or as a signed number, as the type says (floats:
 *              in their order): equal when the instruction only ever carried one value
 *   span       from the lowest to the highest byte accessed, of all launches together
 *
 * Loads are looked at after, stores before. A value is up to 64 bits wide. */
#include <stdlib.h>
#include <string.h>

#include "analysis/loop.h"
#include "analysis/space.h"
#include "analysis/ssa.h"
#include "isa/request.h"
#include "tool/tool.h"
#include "view/kit.h"

enum {                            /* of the tool's own, behind what a device may count for it (isa/request.h) */
       cell_lowest = MG_CR_COUNT, /* address, complement */
       cell_behind,               /* the highest, behind its last byte */
       n_cells,
       n_without_span = cell_lowest /* as profiles of before have */
};

static const struct mg_tool_opt values_opts[] = {{"space", "any", "which accesses: any, global, shared, local"}, {0}};
struct conf {
    uint32_t space;
};
static const char *const spaces[] = {"any", "global", "shared", "local", NULL};
static const struct mg_field values_fields[] = {{"space", MG_FIELD_CHOICE, offsetof(struct conf, space), 0, 0, spaces},
                                                {0}};

static enum mg_err values_configure(const char *args, void **conf, struct mg_diag *d)
{
    const struct conf defaults = {0};
    return mg_fields_parse("values", values_fields, &defaults, sizeof defaults, args, conf, d);
}

static enum mg_err values_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf;
    if (mg_patch_module(p)->sm < 70)
        return mg_diag_err(d, MG_ERR_UNSUPPORTED, "tool values: the PTX is for sm_%u, warps are matched from sm_70 on",
                           mg_patch_module(p)->sm);
    return MG_ERR_OK;
}

/* ---- instrument ---------------------------------------------------------------------------------------- */

#define R               mg_o_reg
#define I               mg_o_imm
#define EMIT(form, ...) MG_CODE(at, form, __VA_ARGS__)

static enum mg_carried_kind shape_of(enum mg_type t)
{
    if (t == MG_TYPE_f32) return MG_CK_F32;
    if (t == MG_TYPE_f64) return MG_CK_F64;
    if (mg_type_kind(t) == MG_TK_SINT) return MG_CK_SIGNED;
    return MG_CK_UNSIGNED;
}

/* The bits of one element, without what lies above its width. */
static mg_id bits_of(struct mg_code_at *at, struct mg_opnd v, unsigned bits)
{
    mg_id wide = mg_value_wide(at, v);
    if (bits >= 64) return wide;
    mg_id r = mg_code_temp(at, MG_TYPE_b64);
    EMIT("and.b64", r, wide, (int64_t)(((uint64_t)1 << bits) - 1));
    return r;
}

/* Bits in an order in which unsigned comparison is the type's: sign bit flipped, negative floats complemented. */
static mg_id ordered(struct mg_code_at *at, mg_id v, enum mg_carried_kind shape, unsigned bits)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b64), sign = mg_code_temp(at, MG_TYPE_b64), p = mg_code_temp(at, MG_TYPE_pred);
    uint64_t top = (uint64_t)1 << (bits - 1), all = top | (top - 1);
    if (shape == MG_CK_UNSIGNED) return v;
    if (shape == MG_CK_SIGNED) {
        EMIT("xor.b64", r, v, (int64_t)top);
        return r;
    }
    EMIT("and.b64", sign, v, (int64_t)top);
    EMIT("setp.ne.u64", p, sign, 0);
    EMIT("selp.b64", sign, (int64_t)all, (int64_t)top, p);
    EMIT("xor.b64", r, v, sign);
    return r;
}

static mg_id all_equal(struct mg_patch *p, struct mg_code_at *at, mg_id v)
{
    struct mg_module *m = mg_patch_module(p);
    mg_id same = mg_code_temp(at, MG_TYPE_pred), mask = mg_code_temp(at, MG_TYPE_b32), pair = mg_opnd_alloc(m, 2);
    m->opnds.at[pair] = R(mask);
    m->opnds.at[pair + 1] = R(same);
    EMIT("match.all.sync.b64", ((struct mg_opnd){.kind = MG_OPND_pair, .id = pair, .n = 2}), v, mg_value_active(at));
    return same;
}

static void count_if(struct mg_code_at *at, mg_id p, uint32_t cell, enum mg_spread spread)
{
    mg_code_push_guard(at, p, false);
    mg_cell_update(at, cell, I(1), spread);
    mg_code_pop_guard(at);
}

/* All lanes one value, or one step between lanes: v - lane * (second - first) alike, by the two lowest lanes. */
static void count_warp(struct mg_patch *p, struct mg_code_at *at, mg_id v, unsigned bits, uint32_t cell)
{
    mg_id active = mg_value_active(at), lane = mg_value_lane(at), low = mg_code_temp(at, MG_TYPE_b32),
          rest = mg_code_temp(at, MG_TYPE_b32), next = mg_code_temp(at, MG_TYPE_b32);
    mg_id step = mg_code_temp(at, MG_TYPE_b64), base = mg_code_temp(at, MG_TYPE_b64),
          other = mg_code_temp(at, MG_TYPE_pred), two = mg_code_temp(at, MG_TYPE_pred);
    mg_id part[2][2], wide[2];
    struct mg_module *m = mg_patch_module(p);
    mg_cell_update(at, cell + MG_CR_WARPS, I(1), MG_ONCE);
    mg_id same = all_equal(p, at, v);
    count_if(at, same, cell + MG_CR_UNIFORM, MG_ONCE);
    EMIT("brev.b32", low, active);
    EMIT("clz.b32", low, low);
    EMIT("add.u32", rest, active, -1);
    EMIT("and.b32", rest, rest, active);
    EMIT("setp.ne.u32", two, rest, 0);
    EMIT("brev.b32", next, rest);
    EMIT("clz.b32", next, next);
    EMIT("selp.b32", next, next, low, two);
    for (int i = 0; i < 2; i++) { /* the values of the two lowest lanes */
        part[i][0] = mg_code_temp(at, MG_TYPE_b32), part[i][1] = mg_code_temp(at, MG_TYPE_b32);
        wide[i] = mg_code_temp(at, MG_TYPE_b64);
        mg_id vec = mg_opnd_alloc(m, 2);
        m->opnds.at[vec] = R(part[i][0]), m->opnds.at[vec + 1] = R(part[i][1]);
        EMIT("mov.b64", ((struct mg_opnd){.kind = MG_OPND_vec, .id = vec, .n = 2}), v);
        for (int h = 0; h < 2; h++) EMIT("shfl.sync.idx.b32", part[i][h], part[i][h], i ? next : low, 31, active);
        vec = mg_opnd_alloc(m, 2);
        m->opnds.at[vec] = R(part[i][0]), m->opnds.at[vec + 1] = R(part[i][1]);
        EMIT("mov.b64", wide[i], ((struct mg_opnd){.kind = MG_OPND_vec, .id = vec, .n = 2}));
    }
    /* step * (next - low) is what they differ by: compare v * distance with lane * difference, without dividing. */
    mg_id distance = mg_code_temp(at, MG_TYPE_b32), far = mg_code_temp(at, MG_TYPE_b64),
          mine = mg_code_temp(at, MG_TYPE_b64);
    EMIT("sub.u32", distance, next, low);
    EMIT("cvt.u64.u32", far, distance);
    EMIT("sub.u64", step, wide[1], wide[0]);
    EMIT("sub.u32", rest, lane, low);
    EMIT("cvt.u64.u32", base, rest);
    EMIT("mul.lo.u64", base, base, step);
    EMIT("mul.lo.u64", mine, v, far);
    EMIT("sub.u64", base, mine, base);
    if (bits < 64) EMIT("and.b64", base, base, (int64_t)(((uint64_t)1 << bits) - 1));
    mg_id affine = all_equal(p, at, base);
    EMIT("not.pred", other, same);
    EMIT("and.pred", affine, affine, other);
    EMIT("and.pred", affine, affine, two);
    count_if(at, affine, cell + MG_CR_AFFINE, MG_ONCE);
}

static uint64_t low_bits(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

/* The same as this thread's value before? Registers hold it and whether there was one. */
static void count_redundant(struct mg_patch *p, const struct mg_patch_inst *i, struct mg_code_at *at, mg_id v,
                            uint32_t cell)
{
    struct mg_code_at *entry = mg_at_entry(p, i->func_ix);
    mg_id before = mg_code_reg(at, MG_TYPE_b64), had = mg_code_reg(at, MG_TYPE_b32),
          is = mg_code_temp(at, MG_TYPE_pred), seen = mg_code_temp(at, MG_TYPE_pred);
    MG_CODE(entry, "mov.u32", had, 0);
    MG_CODE(entry, "mov.u64", before, 0);
    EMIT("setp.ne.u32", seen, had, 0);
    EMIT("setp.eq.and.u64", is, before, v, seen);
    count_if(at, is, cell + MG_CR_REDUNDANT, MG_TIMES);
    EMIT("mov.u32", had, 1);
    EMIT("mov.b64", before, v);
}

/* For devices that take probes by what they mean. */
static void say(struct mg_patch *p, const struct mg_patch_inst *i, struct mg_code_at *at, struct mg_opnd data,
                enum mg_type type, uint32_t cell)
{
    unsigned bits = mg_type_bits(type);
    struct mg_code_at *entry = mg_at_entry(p, i->func_ix);
    enum mg_type held = bits > 32 ? MG_TYPE_b64 : MG_TYPE_b32;
    mg_id v = mg_code_reg(at, held), before = mg_code_reg(at, held), had = mg_code_reg(at, MG_TYPE_b32);
    bool plain = data.kind == MG_OPND_reg && !data.sub && !data.val && bits >= 32 &&
                 mg_type_bits((enum mg_type)mg_patch_module(p)->regs.at[data.id].type) == bits;
    if (plain || bits > 32)
        EMIT(bits > 32 ? "mov.b64" : "mov.b32", v, plain ? data : R(bits_of(at, data, bits)));
    else
        EMIT("cvt.u32.u64", v, bits_of(at, data, bits));
    MG_CODE(entry, "mov.u32", had, 0);
    MG_CODE(entry, bits > 32 ? "mov.b64" : "mov.b32", before, 0);
    EMIT("count_carried", I(cell), I(bits + MG_CR_BITS * (unsigned)shape_of(type)), v, before, had);
    EMIT("mov.u32", had, 1);
    EMIT(bits > 32 ? "mov.b64" : "mov.b32", before, v);
}

static void count_value(struct mg_patch *p, const struct mg_patch_inst *i, struct mg_code_at *at, struct mg_opnd data,
                        enum mg_type type, uint32_t cell)
{
    if (mg_patch_module(p)->marked) {
        say(p, i, at, data, type, cell);
        return;
    }
    unsigned bits = mg_type_bits(type);
    enum mg_carried_kind shape = shape_of(type);
    bool is_float = shape == MG_CK_F32 || shape == MG_CK_F64;
    mg_id v = bits_of(at, data, bits), is = mg_code_temp(at, MG_TYPE_pred), size = v;
    mg_cell_update(at, cell + MG_CR_VALUES, I(1), MG_TIMES);
    if (is_float) EMIT("and.b64", size = mg_code_temp(at, MG_TYPE_b64), v, (int64_t)low_bits(bits - 1));
    EMIT("setp.eq.u64", is, size, 0);
    count_if(at, is, cell + MG_CR_ZEROS, MG_TIMES);
    if (is_float) {
        mg_id nan = mg_code_temp(at, MG_TYPE_pred);
        EMIT("setp.gt.u64", nan, size, I(shape == MG_CK_F32 ? 0x7f800000 : 0x7ff0000000000000));
        count_if(at, nan, cell + MG_CR_NANS, MG_TIMES);
    }
    mg_id key = ordered(at, v, shape, bits), complement = mg_code_temp(at, MG_TYPE_b64);
    EMIT("not.b64", complement, key);
    mg_cell_raise(at, cell + MG_CR_MOST, key);
    mg_cell_raise(at, cell + MG_CR_LEAST, complement);
    count_redundant(p, i, at, v, cell);
    count_warp(p, at, v, bits, cell);
}

/* In front of the instruction: a load may overwrite its address. */
static void count_span(struct mg_patch *p, const struct mg_patch_inst *i, const struct mg_access *a, uint32_t cell)
{
    bool negated = false;
    mg_id guard = mg_node_guard(mg_patch_module(p), i->node, &negated);
    struct mg_code_at *at = mg_at_before(p, i->node);
    mg_code_push_guard(at, guard, negated);
    mg_id from = mg_value_address(at, i->node), behind = mg_code_temp(at, MG_TYPE_b64),
          complement = mg_code_temp(at, MG_TYPE_b64);
    EMIT("add.u64", behind, from, (int64_t)a->bytes * a->vec);
    EMIT("not.b64", complement, from);
    mg_cell_raise(at, cell + cell_behind, behind);
    mg_cell_raise(at, cell + cell_lowest, complement);
    mg_code_pop_guard(at);
}

/* ---- addresses that a loop does not change ----------------------------------------------------------------- */

enum { SAME_ADDRESS = 1 << 16 /* in a site's note */ };

/* Does every round of a loop access the address that the one before it did? */
static bool is_same_address(struct mg_patch *p, const struct mg_patch_inst *i, const struct mg_access *a)
{
    const struct mg_module *m = mg_patch_module(p);
    const struct mg_opnd *o = &m->opnds.at[m->nodes.at[i->node].opnd + a->addr];
    uint32_t loop = mg_patch_loops(p, i->func_ix)->loop_of[i->block];
    if (loop == MG_NO_LOOP || o->kind != MG_OPND_addr) return false;
    if (o->sub == MG_OPND_var) return true;
    const struct mg_ssa *s = mg_patch_ssa(p, i->func_ix);
    return o->sub == MG_OPND_reg &&
           mg_ssa_is_fixed(s, mg_patch_loops(p, i->func_ix), loop, mg_ssa_read(s, i->node, o->id));
}

static void count_site(struct mg_patch *p, const struct mg_patch_inst *i, const struct mg_access *a,
                       enum mg_space space)
{
    struct mg_module *m = mg_patch_module(p);
    const struct mg_form *f = mg_node_form(m, &m->nodes.at[i->node]);
    enum mg_type type = (enum mg_type)f->types[f->n_types - 1];
    struct mg_opnd o = m->opnds.at[m->nodes.at[i->node].opnd + a->data];
    bool negated = false, atomic = a->atomic;
    mg_id guard = mg_node_guard(m, i->node, &negated);
    uint32_t cell = mg_patch_site(p, MG_SITE_INST, i->node, i->id, MG_CR_SUMS, MG_MERGE_SUM,
                                  (uint32_t)shape_of(type) | mg_type_bits(type) << 8 |
                                      (is_same_address(p, i, a) ? SAME_ADDRESS : 0));
    mg_patch_cells(p, n_cells - MG_CR_SUMS, MG_MERGE_MAX);
    struct mg_code_at *at =
        a->reads && !(atomic && f->op == MG_OP_red) ? mg_at_after(p, i->node) : mg_at_before(p, i->node);
    if (space == MG_SPACE_global) count_span(p, i, a, cell);
    mg_code_push_guard(at, guard, negated);
    uint32_t n = o.kind == MG_OPND_vec ? o.n : 1;
    for (uint32_t e = 0; e < n; e++) {
        struct mg_opnd one = o.kind == MG_OPND_vec ? m->opnds.at[o.id + e] : o;
        if (one.kind != MG_OPND_sink && one.kind != MG_OPND_none) count_value(p, i, at, one, type, cell);
    }
    mg_code_pop_guard(at);
}

static enum mg_err values_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    static const enum mg_space only[] = {MG_SPACE_generic, MG_SPACE_global, MG_SPACE_shared, MG_SPACE_local};
    const struct conf *c = conf;
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts);
    (void)d;
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_module *m = mg_patch_module(p);
        struct mg_access a;
        if (!mg_access_of(m, insts[i].node, &a) || a.space == MG_SPACE_param || a.is_async || a.data == UINT32_MAX ||
            a.bytes > 8)
            continue;
        enum mg_space space =
            a.space ? a.space : mg_spaces_one(mg_spaces_of(mg_patch_spaces(p, insts[i].func_ix), insts[i].node));
        if (!c->space || space == only[c->space]) count_site(p, &insts[i], &a, space);
    }
    return MG_ERR_OK;
}

/* ---- profile ------------------------------------------------------------------------------------------- */

struct figure {
    enum mg_carried_kind shape;
    unsigned bits;
    uint64_t least, most; /* as the type's bits */
    const uint64_t *c;
    unsigned narrow; /* bits that the range needs */
};

static uint64_t disordered(uint64_t key, enum mg_carried_kind shape, unsigned bits)
{
    uint64_t top = (uint64_t)1 << (bits - 1);
    if (shape == MG_CK_SIGNED) return key ^ top;
    if (shape == MG_CK_UNSIGNED) return key;
    return key & top ? key ^ top : ~key & low_bits(bits);
}

static int64_t sign_extended(uint64_t v, unsigned bits)
{
    return bits < 64 && v >> (bits - 1) & 1 ? (int64_t)(v | ~low_bits(bits)) : (int64_t)v;
}

/* Bytes from the lowest to the highest accessed; 0: not known. */
static uint64_t span_of(const struct mg_result_kernel *k, const struct mg_result_site *s)
{
    const uint64_t *c = mg_kit_cells(k, s);
    return s->n_cells == n_cells && c[cell_behind] ? c[cell_behind] - ~c[cell_lowest] : 0;
}

struct hull { /* of all that a kernel's sites access of one buffer */
    const char *buffer;
    uint64_t lowest, behind;
};
struct hulls {
    MG_VEC(struct hull) at;
};

static struct hull *hull_of(struct hulls *h, const struct mg_buffer_name *name)
{
    for (uint32_t i = 0; name && i < h->at.n; i++)
        if (!strcmp(h->at.at[i].buffer, name->text)) return &h->at.at[i];
    return NULL;
}

static void find_hulls(struct hulls *h, const struct mg_tool_result *r, const struct mg_result_kernel *k)
{
    h->at.n = 0;
    for (uint32_t i = 0; i < k->n_sites; i++) {
        const struct mg_result_site *s = &k->sites[i];
        const struct mg_buffer_name *name = mg_kit_buffer(r, k, s);
        const uint64_t *c = mg_kit_cells(k, s);
        if (!name || !span_of(k, s)) continue;
        struct hull *x = hull_of(h, name);
        if (!x) {
            x = mg_vec_push(&h->at);
            *x = (struct hull){name->text, UINT64_MAX, 0};
        }
        x->lowest = MG_MIN(x->lowest, ~c[cell_lowest]);
        x->behind = MG_MAX(x->behind, c[cell_behind]);
    }
}

static void figure_init(struct figure *f, const struct mg_result_kernel *k, const struct mg_result_site *s)
{
    f->c = mg_kit_cells(k, s);
    f->shape = (enum mg_carried_kind)(s->note & 255);
    f->bits = s->note >> 8 & 255;
    f->least = disordered(~f->c[MG_CR_LEAST] & low_bits(f->bits), f->shape, f->bits);
    f->most = disordered(f->c[MG_CR_MOST], f->shape, f->bits);
    uint64_t widest = f->most;
    if (f->shape == MG_CK_SIGNED) { /* two's complement: magnitude and a sign */
        int64_t lo = sign_extended(f->least, f->bits), hi = sign_extended(f->most, f->bits);
        widest = (uint64_t)MG_MAX(hi < 0 ? ~hi : hi, lo < 0 ? ~lo : lo);
    }
    for (f->narrow = f->shape == MG_CK_SIGNED; widest; widest >>= 1) f->narrow++;
    if (f->shape == MG_CK_F32 || f->shape == MG_CK_F64) f->narrow = f->bits;
}

static void add_value(struct mg_buf *out, const struct figure *f, uint64_t v)
{
    if (f->shape == MG_CK_SIGNED) {
        mg_buf_printf(out, "%lld", (long long)sign_extended(v, f->bits));
    } else if (f->shape == MG_CK_F32) {
        float x;
        uint32_t b = (uint32_t)v;
        memcpy(&x, &b, sizeof x);
        mg_buf_printf(out, "%.9g", (double)x);
    } else if (f->shape == MG_CK_F64) {
        double x;
        memcpy(&x, &v, sizeof x);
        mg_buf_printf(out, "%.17g", x);
    } else {
        mg_buf_printf(out, "%llu", (unsigned long long)v);
    }
}

static void site_json(const struct mg_tool_result *r, const struct figure *f, const struct mg_result_kernel *k,
                      const struct mg_result_site *s, struct hulls *hulls, struct mg_json *j)
{
    const struct hull *all = hull_of(hulls, mg_kit_buffer(r, k, s));
    static const char *const names[] = {"values", "zeros", "nans", "redundant", "warps", "uniform", "affine"};
    bool is_float = f->shape == MG_CK_F32 || f->shape == MG_CK_F64;
    mg_json_obj(j);
    mg_kit_site_json(j, k, s);
    for (uint32_t i = 0; i < MG_CR_SUMS; i++) mg_json_key_u64_if(j, names[i], i != MG_CR_NANS || is_float, f->c[i]);
    struct mg_buf text = MG_BUF_INIT;
    add_value(&text, f, f->least);
    mg_json_key_str(j, "least", f->c[MG_CR_VALUES] ? text.at : NULL);
    mg_buf_reset(&text);
    add_value(&text, f, f->most);
    mg_json_key_str(j, "most", f->c[MG_CR_VALUES] ? text.at : NULL);
    mg_json_key_u64(j, "bits", f->bits);
    mg_json_key_u64_if(j, "bits_needed", f->c[MG_CR_VALUES] > 0, f->narrow);
    mg_json_key_bool(j, "constant", f->c[MG_CR_VALUES] && f->least == f->most);
    mg_json_key_bool(j, "same_address", s->note & SAME_ADDRESS);
    mg_json_key_u64_if(j, "span_bytes", span_of(k, s) > 0, span_of(k, s));
    mg_json_key_u64_if(j, "buffer_span_bytes", all != NULL, all ? all->behind - all->lowest : 0);
    mg_kit_key_buffer(j, mg_kit_buffer(r, k, s));
    mg_json_end(j, '}');
    mg_buf_release(&text);
}

static void site_row(const struct mg_tool_result *r, const struct figure *f, const struct mg_result_kernel *k,
                     const struct mg_result_site *s, struct mg_table *t)
{
    struct mg_buf text = MG_BUF_INIT;
    const uint64_t *c = f->c;
    mg_table_row(t);
    mg_table_place(t, s);
    mg_table_text(t, s->op);
    mg_table_u64(t, c[MG_CR_VALUES]);
    mg_table_f64(t, mg_kit_percent(c[MG_CR_REDUNDANT], c[MG_CR_VALUES]));
    mg_table_f64(t, mg_kit_percent(c[MG_CR_ZEROS], c[MG_CR_VALUES]));
    mg_table_u64(t, c[MG_CR_NANS]);
    mg_table_f64(t, mg_kit_percent(c[MG_CR_UNIFORM], c[MG_CR_WARPS]));
    mg_table_f64(t, mg_kit_percent(c[MG_CR_AFFINE], c[MG_CR_WARPS]));
    mg_table_u64(t, f->narrow);
    if (c[MG_CR_VALUES]) {
        add_value(&text, f, f->least);
        if (f->least != f->most) mg_buf_adds(&text, " .. "), add_value(&text, f, f->most);
        mg_table_text(t, text.at);
    } else {
        mg_table_null(t);
    }
    mg_table_text(t, k->demangled);
    mg_table_buffer(t, mg_kit_buffer(r, k, s));
    mg_buf_release(&text);
}

static void values_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    (void)conf;
    mg_table_begin(t, "values", "values of memory instructions, by those that repeat");
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "instruction", MG_COL_TEXT, NULL);
    mg_table_column(t, "values", MG_COL_COUNT, NULL);
    mg_table_column(t, "redundant", MG_COL_PERCENT, NULL);
    mg_table_column(t, "zero", MG_COL_PERCENT, NULL);
    mg_table_column(t, "NaN", MG_COL_COUNT, NULL);
    mg_table_column(t, "uniform", MG_COL_PERCENT, NULL);
    mg_table_column(t, "affine", MG_COL_PERCENT, NULL);
    mg_table_column(t, "bits", MG_COL_COUNT, NULL);
    mg_table_column(t, "range", MG_COL_TEXT, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_table_column(t, "buffer", MG_COL_TEXT, NULL);
    mg_json_key(j, "sites");
    mg_json_arr(j);
    struct hulls hulls = {0};
    for (uint32_t k = 0; k < r->n_kernels; k++) {
        find_hulls(&hulls, r, &r->kernels[k]);
        for (uint32_t i = 0; i < r->kernels[k].n_sites; i++) {
            struct figure f;
            uint32_t n = r->kernels[k].sites[i].n_cells;
            if (n != n_cells && n != n_without_span) continue;
            figure_init(&f, &r->kernels[k], &r->kernels[k].sites[i]);
            site_json(r, &f, &r->kernels[k], &r->kernels[k].sites[i], &hulls, j);
            site_row(r, &f, &r->kernels[k], &r->kernels[k].sites[i], t);
        }
    }
    mg_vec_release(&hulls.at);
    mg_json_end(j, ']');
    mg_table_sort(t, 3);
}

extern const struct mg_tool mg_tool_values;
const struct mg_tool mg_tool_values = {
    .name = "values",
    .summary = "constant, uniform, affine, narrow and redundant values of memory instructions, zeros and NaNs",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 9.6 (docs/measured.md)",
    .opts = values_opts,
    .configure = values_configure,
    .release = free,
    .analyze = values_analyze,
    .instrument = values_instrument,
    .profile = values_profile,
    .flags = MG_TOOL_ACCESSES | MG_TOOL_MINOR,
};
