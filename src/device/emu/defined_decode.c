/* --check, while decoding: the shadow step before each instruction (defined.h). Registers are numbered as
 * they are named; those of probes count as defined. What has no step is not looked at: its results count
 * as defined, and the kernel's report names it. */
#include "device/emu/defined.h"
#include "device/emu/check.h"
#include "device/emu/decode.h"

#include <string.h>

/* ---- registers ------------------------------------------------------------------------------------------ */

enum { WRITTEN_BY_PROBES = 1, WRITTEN_BY_PROGRAM = 2 };
static void note_written(const struct decoder *d, uint8_t *written)
{
    MG_EACH_NODE(d->m, d->f, id)
    {
        mg_id ids[16];
        uint32_t n = d->m->nodes.at[id].kind == MG_NODE_inst ? mg_node_defs(d->m, id, ids, 16) : 0;
        for (uint32_t k = 0; k < n && k < 16; k++)
            written[ids[k]] |= dec_is_probe(d, id) ? WRITTEN_BY_PROBES : WRITTEN_BY_PROGRAM;
    }
}

/* Registers that tools brought along: inserted instructions alone write them. */
static bool is_tools(struct decoder *d, mg_id reg)
{
    if (!d->written_regs) note_written(d, d->written_regs = mg_arena_array(&d->scratch, uint8_t, d->m->regs.n + 1));
    return d->written_regs[reg] == WRITTEN_BY_PROBES;
}

static uint32_t mark_of(struct decoder *d, const struct mg_opnd *o, uint32_t off)
{
    uint64_t mark;
    unsigned bits = mg_type_bits(d->m->regs.at[o->id].type);
    if (is_tools(d, o->id)) return 0;
    if (mg_map_get(&d->marks, off, &mark)) return (uint32_t)mark;
    if (!d->mark_list.n) *mg_vec_push(&d->mark_list) = (struct emu_mark_of){0};
    *mg_vec_push(&d->mark_list) = (struct emu_mark_of){o->id, (uint8_t)MG_MIN(bits, 64)};
    mg_map_set(&d->marks, off, d->mark_list.n - 1);
    return d->mark_list.n - 1;
}

/* Registers that exist before any instruction names them: parameters of functions. */
static void mark_formals(struct decoder *d)
{
    for (uint32_t k = 0; k < d->f->n_params + d->f->n_rets && d->f->kind != MG_FUNC_entry; k++) {
        const struct mg_var *v =
            &d->m->vars.at[k < d->f->n_params ? d->f->first_param + k : d->f->first_ret + (k - d->f->n_params)];
        struct mg_opnd o = mg_o_reg(v->reg);
        if (v->is_reg_param) mark_of(d, &o, dec_reg(d, &o));
    }
}

void dec_defined_end(struct decoder *d)
{
    struct emu_func *fn = d->fn;
    if (!d->mod->dev->opts.check) return;
    mark_formals(d);
    if (!d->mark_list.n) *mg_vec_push(&d->mark_list) = (struct emu_mark_of){0};
    fn->n_marks = d->mark_list.n;
    fn->marks = mg_arena_copy(&d->code->arena, d->mark_list.at, d->mark_list.n * sizeof *d->mark_list.at);
    uint32_t *at = mg_arena_array(&d->code->arena, uint32_t, d->frame_at / 4 + 1), i = 0;
    for (uint64_t off, mark; mg_map_next(&d->marks, &i, &off, &mark);) at[off / 4] = (uint32_t)mark;
    fn->mark_at = at;
    mg_map_release(&d->marks);
    mg_vec_release(&d->mark_list);
}

/* ---- operands --------------------------------------------------------------------------------------------- */

static bool is_register(const struct mg_opnd *o)
{
    return o->kind == MG_OPND_reg || o->kind == MG_OPND_not || o->kind == MG_OPND_neg || o->kind == MG_OPND_sel;
}

static struct emu_def_opnd register_at(struct decoder *d, mg_id reg, unsigned comp, bool flip)
{
    struct mg_opnd o = mg_o_reg(reg);
    o.sub = (uint8_t)comp;
    uint32_t off = dec_reg(d, &o), mark = mark_of(d, &o, off);
    return (struct emu_def_opnd){.mark = mark,
                                 .off = off,
                                 .cls = (uint8_t)dec_reg_class(d, &o),
                                 .bits = (uint8_t)MG_MIN(mg_type_bits(d->m->regs.at[reg].type), 64),
                                 .flip = flip};
}

/* A source or destination; false: its value is not known to a step (an address, a special register). */
static bool operand(struct decoder *d, const struct mg_opnd *o, enum mg_type t, struct emu_def_opnd *out)
{
    *out = (struct emu_def_opnd){0};
    if (is_register(o)) {
        *out = register_at(d, o->id, o->kind == MG_OPND_reg || o->kind == MG_OPND_not ? o->sub : 0,
                           o->kind == MG_OPND_not);
        return o->kind == MG_OPND_reg || o->kind == MG_OPND_not;
    }
    if (o->kind == MG_OPND_imm && o->sub != MG_IMM_WIDE) {
        out->value = dec_imm(d, o, t);
        return true;
    }
    return o->kind == MG_OPND_sink;
}

static void add_operand(struct decoder *d, const struct mg_opnd *o, struct emu_def_opnd *list, uint32_t *n)
{
    if (*n == EMU_DEF_MOST) return;
    if (is_register(o)) {
        const struct mg_reg *r = &d->m->regs.at[o->id];
        unsigned whole = r->vec && !o->sub ? r->vec : 1;
        for (unsigned k = 0; k < whole && *n < EMU_DEF_MOST; k++)
            list[(*n)++] = register_at(d, o->id, whole > 1 ? k + 1 : o->kind == MG_OPND_reg ? o->sub : 0, false);
    } else if (o->kind == MG_OPND_addr && o->sub == MG_OPND_reg)
        list[(*n)++] = register_at(d, o->id, o->n & 7, false);
    else if (o->kind == MG_OPND_vec || o->kind == MG_OPND_pair || o->kind == MG_OPND_list || o->kind == MG_OPND_tensor)
        for (uint32_t k = 0; k < o->n; k++) add_operand(d, &d->m->opnds.at[o->id + k], list, n);
}

/* ---- steps --------------------------------------------------------------------------------------------------- */

static struct emu_def *new_def(struct decoder *d)
{
    return mg_arena_new(&d->code->arena, struct emu_def);
}

/* ORDER STEP */
static struct emu_op *emit(struct decoder *d, enum emu_opcode opcode, const struct emu_def *def)
{
    const struct mg_node *n = &d->m->nodes.at[d->node];
    struct emu_def_opnd guard = {0};
    if (n->guard) guard = register_at(d, n->guard, 0, false);
    uint32_t site = dec_check_site(d);
    struct emu_op *op = dec_emit(d, opcode);
    op->guard = guard.off;
    op->guard_flip = n->flags & MG_NF_GUARD_NOT ? UINT32_MAX : 0;
    op->a.cc = guard.mark;
    op->site = site;
    op->ext = def;
    if (opcode != EMU_OP_defined_step) return op;
    for (uint32_t i = 0; i < MG_MIN(def->n_src, 4); i++) op->a.s[i] = def->src[i].mark;
    op->a.d = def->n_dst ? def->dst[0].mark : 0;
    op->a.d2 = def->n_dst > 1 ? def->dst[1].mark : 0;
    return op;
}

/* Instructions that do more than write registers: whether they are executed must not depend on what is undefined. */
static void check_guard(struct decoder *d)
{
    const struct mg_node *n = &d->m->nodes.at[d->node];
    if (n->guard && !is_tools(d, n->guard)) emit(d, EMU_OP_defined_check, NULL);
}

static void check_uses(struct decoder *d, const struct mg_opnd *o, enum emu_use use)
{
    struct emu_def *def = new_def(d);
    def->use = use;
    add_operand(d, o, def->src, &def->n_src);
    if (def->n_src) emit(d, EMU_OP_defined_check, def);
}

static enum emu_exact exact_of(const struct mg_form *f)
{
    switch ((enum mg_op)f->op) {
    case MG_OP_cvta:
        return EMU_EX_MOVE;
    case MG_OP_and:
        return EMU_EX_AND;
    case MG_OP_or:
        return EMU_EX_OR;
    case MG_OP_xor:
        return EMU_EX_XOR;
    case MG_OP_not:
        return EMU_EX_NOT;
    case MG_OP_lop3:
        return mg_form_has(f, MG_MOD_and) || mg_form_has(f, MG_MOD_or) ? EMU_EX_ANY : EMU_EX_LOP3;
    case MG_OP_shl:
        return EMU_EX_SHL;
    case MG_OP_shr:
        return EMU_EX_SHR;
    case MG_OP_shf:
        return EMU_EX_SHF;
    case MG_OP_prmt:
        return f->n_mods > 1 ? EMU_EX_ANY : EMU_EX_PRMT;
    case MG_OP_bfe:
        return EMU_EX_BFE;
    case MG_OP_bfi:
        return EMU_EX_BFI;
    case MG_OP_selp:
        return EMU_EX_SELECT;
    case MG_OP_setp:
        return EMU_EX_SETP;
    case MG_OP_brev:
        return EMU_EX_BREV;
    case MG_OP_cvt: {
        bool whole = f->n_types == 2 && mg_type_kind(f->types[0]) != MG_TK_FLOAT &&
                     mg_type_kind(f->types[1]) != MG_TK_FLOAT && mg_type_kind(f->types[0]) != MG_TK_PACKED &&
                     mg_type_kind(f->types[1]) != MG_TK_PACKED;
        return whole && !mg_form_has(f, MG_MOD_sat) && !mg_form_has(f, MG_MOD_pack) ? EMU_EX_CONVERT : EMU_EX_ANY;
    }
    default: {
        enum mg_type t = f->n_types ? f->types[0] : MG_TYPE_none;
        return f->n_types == 1 &&
                       (t == MG_TYPE_f16x2 || t == MG_TYPE_bf16x2 || t == MG_TYPE_u16x2 || t == MG_TYPE_s16x2)
                   ? EMU_EX_HALVES
                   : EMU_EX_ANY;
    }
    }
}

static void compare(const struct mg_form *f, struct emu_def *def)
{
    for (unsigned i = 0; i < f->n_mods; i++) {
        enum mg_mod m = (enum mg_mod)f->mods[i];
        if (m == MG_MOD_and || m == MG_MOD_or || m == MG_MOD_xor)
            def->bool_op = (uint8_t)(m == MG_MOD_and ? 1 : m == MG_MOD_or ? 2 : 3);
        else if (!def->cmp)
            def->cmp = (uint16_t)m;
    }
}

static void arithmetic(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    struct emu_def *def = new_def(d);
    const struct mg_opnd *dst = &o[0];
    bool pack = f->op == MG_OP_mov && n == 2 && o[1].kind == MG_OPND_vec,
         unpack = f->op == MG_OP_mov && o[0].kind == MG_OPND_vec;
    bool known = true;
    enum mg_type t = f->n_types ? f->types[0] : MG_TYPE_b32;
    def->exact = (uint8_t)exact_of(f);
    def->type = (uint8_t)t;
    def->from = f->n_types > 1 ? f->types[1] : (uint8_t)t;
    if (f->op == MG_OP_lop3 && n == 5) def->imm = (uint32_t)o[--n].val;
    if (f->op == MG_OP_shf) def->imm = (mg_form_has(f, MG_MOD_l) ? 1u : 0) | (mg_form_has(f, MG_MOD_wrap) ? 2u : 0);
    if (f->op == MG_OP_setp) compare(f, def);
    if (f->op == MG_OP_mov) def->exact = EMU_EX_MOVE;
    if (pack != unpack) {
        const struct mg_opnd *v = pack ? &o[1] : &o[0];
        def->exact = pack ? EMU_EX_PACK : EMU_EX_UNPACK;
        def->imm = v->n ? mg_type_bits(t) / v->n : 0;
    }
    if (pack && unpack) { /* element by element */
        for (uint32_t k = 0; k < o[0].n && k < o[1].n; k++) {
            struct emu_def *one = new_def(d);
            one->exact = EMU_EX_MOVE;
            add_operand(d, &d->m->opnds.at[o[1].id + k], one->src, &one->n_src);
            add_operand(d, &d->m->opnds.at[o[0].id + k], one->dst, &one->n_dst);
            emit(d, EMU_OP_defined_step, one);
        }
        return;
    }
    if (def->exact == EMU_EX_PACK) {
        const struct mg_opnd *e = &d->m->opnds.at[o[1].id];
        for (uint32_t k = 0; k < o[1].n && k < EMU_DEF_MOST; k++)
            known &= operand(d, &e[k], t, &def->src[def->n_src++]);
    } else {
        for (uint32_t k = 1; k < n && def->n_src < EMU_DEF_MOST; k++) {
            enum mg_type st = (f->op == MG_OP_shl || f->op == MG_OP_shr) && k == 2 ? MG_TYPE_u32
                              : f->op == MG_OP_setp && k == 3                      ? MG_TYPE_pred
                              : f->op == MG_OP_selp && k == 3                      ? MG_TYPE_pred
                              : def->exact == EMU_EX_CONVERT                       ? (enum mg_type)def->from
                                                                                   : t;
            if (def->exact == EMU_EX_ANY)
                add_operand(d, &o[k], def->src, &def->n_src);
            else if (o[k].kind == MG_OPND_reg && d->m->regs.at[o[k].id].vec && !o[k].sub)
                add_operand(d, &o[k], def->src, &def->n_src);
            else
                known &= operand(d, &o[k], st, &def->src[def->n_src++]);
        }
    }
    if (def->exact == EMU_EX_UNPACK) {
        const struct mg_opnd *e = &d->m->opnds.at[o[0].id];
        for (uint32_t k = 0; k < o[0].n && k < EMU_DEF_MOST; k++) operand(d, &e[k], t, &def->dst[def->n_dst++]);
    } else
        add_operand(d, dst, def->dst, &def->n_dst);
    if (o[0].kind == MG_OPND_sel) add_operand(d, &o[0], def->src, &def->n_src);
    if (!known && def->exact != EMU_EX_MOVE && def->exact != EMU_EX_PACK && def->exact != EMU_EX_UNPACK &&
        def->exact != EMU_EX_XOR && def->exact != EMU_EX_CONVERT)
        def->exact = EMU_EX_ANY;
    if (f->op == MG_OP_addc || f->op == MG_OP_subc || f->op == MG_OP_madc ||
        mg_form_has(f, MG_MOD_cc)) { /* the carry goes with the sum: not kept */
    }
    if (def->n_dst) emit(d, EMU_OP_defined_step, def);
}

static void address(struct decoder *d, struct emu_op *op, const struct emu_op *access, const struct mg_opnd *o)
{
    op->off = access->off;
    op->space = access->space;
    op->flags = access->flags;
    op->a.s[0] = access->a.s[0];
    op->bytes = access->bytes;
    op->vec = access->vec;
    op->sub = access->sub;
    op->a.s[1] = o->kind == MG_OPND_addr && o->sub == MG_OPND_reg ? register_at(d, o->id, o->n & 7, false).mark : 0;
}

void dec_defined_access(struct decoder *d, const struct emu_op *access, const struct mg_form *f,
                        const struct mg_opnd *where, const struct mg_opnd *from, uint32_t n_from,
                        const struct mg_opnd *to)
{
    if (!dec_checks(d)) return;
    const struct mg_node *n = &d->m->nodes.at[d->node];
    bool probes = (n->guard && is_tools(d, n->guard)) ||
                  (where->kind == MG_OPND_addr && where->sub == MG_OPND_reg && is_tools(d, where->id));
    bool atom = f->op == MG_OP_atom || f->op == MG_OP_red, store = f->op == MG_OP_st;
    struct emu_def *def = new_def(d);
    for (uint32_t k = 0; k < n_from; k++) add_operand(d, &from[k], def->src, &def->n_src);
    if (store) { /* one for each element, immediates as well */
        const struct mg_opnd *e = from->kind == MG_OPND_vec ? &d->m->opnds.at[from->id] : from;
        bool whole = from->kind == MG_OPND_reg && d->m->regs.at[from->id].vec && !from->sub;
        if (!whole) {
            def->n_src = 0;
            for (uint32_t k = 0; k < (from->kind == MG_OPND_vec ? from->n : 1u) && k < EMU_DEF_MOST; k++)
                operand(d, &e[k], (enum mg_type)f->types[0], &def->src[def->n_src++]);
        }
    }
    if (to && !atom && !store && to->kind == MG_OPND_vec) {
        const struct mg_opnd *e = &d->m->opnds.at[to->id];
        for (uint32_t k = 0; k < to->n && k < EMU_DEF_MOST; k++)
            operand(d, &e[k], (enum mg_type)f->types[0], &def->dst[def->n_dst++]);
    } else if (to)
        add_operand(d, to, def->dst, &def->n_dst);
    def->sext = mg_type_kind((enum mg_type)f->types[0]) == MG_TK_SINT;
    if (probes) {
        if (def->n_dst) {
            def->n_src = 0;
            emit(d, EMU_OP_defined_step, def);
        }
        return;
    }
    check_guard(d);
    struct emu_op *op = emit(d, atom ? EMU_OP_defined_atom : store ? EMU_OP_defined_store : EMU_OP_defined_load, def);
    uint32_t cc = op->a.cc, at = d->ops.n - 1;
    struct emu_op filled = *op;
    address(d, &filled, access, where);
    filled.a.cc = cc;
    d->ops.at[at] = filled;
}

const struct emu_def *dec_defined_warp(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    if (!dec_checks(d) || f->op == MG_OP_bar || f->op == MG_OP_activemask) return NULL;
    struct emu_def *def = new_def(d);
    uint32_t k = 1;
    def->op = 0;
    def->op = (uint16_t)f->op;
    add_operand(d, &o[0], def->dst, &def->n_dst);
    for (; k < n && def->n_src < 3 && f->op != MG_OP_elect; k++)
        operand(d, &o[k],
                f->op == MG_OP_vote ? MG_TYPE_pred
                : f->n_types        ? (enum mg_type)f->types[0]
                                    : MG_TYPE_b32,
                &def->src[def->n_src++]);
    return def;
}

void dec_defined_results(struct decoder *d, const struct emu_call *call)
{
    if (dec_checks(d)) emit(d, EMU_OP_defined_results, NULL)->ext = call;
}

/* ---- what is not looked at --------------------------------------------------------------------------------------- */

static void note_unseen(struct decoder *d, const struct mg_form *f)
{
    struct emu_code *c = d->code;
    const char *text = mg_name(d->m, f->text);
    size_t n = strcspn(text, ".");
    for (uint32_t i = 0; i < c->unseen.n; i++)
        if (strlen(c->unseen.at[i].name) == n && !strncmp(c->unseen.at[i].name, text, n)) {
            c->unseen.at[i].instructions++;
            return;
        }
    struct mg_unseen *u = mg_vec_push(&c->unseen);
    *u = (struct mg_unseen){.instructions = 1};
    if (n >= sizeof u->name) n = sizeof u->name - 1;
    memcpy(u->name, text, n);
}

static void unseen(struct decoder *d, const struct mg_form *f)
{
    struct emu_def *def = new_def(d);
    uint32_t n_defs;
    mg_id defs[64];
    note_unseen(d, f);
    check_guard(d);
    n_defs = mg_node_defs(d->m, d->node, defs, 64);
    for (uint32_t i = 0; i < n_defs && i < 64; i++) {
        unsigned whole = MG_MAX(d->m->regs.at[defs[i]].vec, 1);
        for (unsigned k = 0; k < whole; k++) {
            if (def->n_dst == EMU_DEF_MOST) {
                emit(d, EMU_OP_defined_step, def);
                def = new_def(d);
            }
            def->dst[def->n_dst++] = register_at(d, defs[i], whole > 1 ? k + 1 : 0, false);
        }
    }
    if (def->n_dst) emit(d, EMU_OP_defined_step, def);
}

/* ---- one instruction --------------------------------------------------------------------------------------------- */

static bool is_async(const struct mg_form *f)
{
    return mg_form_has(f, MG_MOD_async);
}

/* Nothing but registers of tools is written. */
static bool writes_tools(struct decoder *d)
{
    mg_id ids[16];
    uint32_t n = mg_node_defs(d->m, d->node, ids, 16), k = 0;
    while (k < n && k < 16 && is_tools(d, ids[k])) k++;
    return n && k == n;
}

void dec_defined(struct decoder *d, mg_id node)
{
    const struct mg_node *n = &d->m->nodes.at[node];
    const struct mg_form *f = mg_node_form(d->m, n);
    const struct mg_opnd *o = &d->m->opnds.at[n->opnd];
    if (!dec_checks(d) || (!n->n_opnds && !n->guard) || writes_tools(d)) return;
    switch ((enum mg_op)f->op) {
    case MG_OP_ld:
    case MG_OP_ldu:
    case MG_OP_st:
    case MG_OP_atom:
    case MG_OP_red:
        if (is_async(f)) unseen(d, f);
        return; /* else dec_defined_access() */
    case MG_OP_shfl:
    case MG_OP_vote:
    case MG_OP_match:
    case MG_OP_redux:
    case MG_OP_elect:
        check_guard(d);
        return; /* dec_defined_warp() */
    case MG_OP_bra:
    case MG_OP_ret:
    case MG_OP_exit:
    case MG_OP_trap:
        check_guard(d);
        return;
    case MG_OP_brx:
        check_guard(d);
        check_uses(d, &o[0], EMU_USE_BRANCH);
        return;
    case MG_OP_call:
        check_guard(d);
        for (uint32_t k = 0; k < n->n_opnds; k++)
            if (o[k].kind == MG_OPND_reg) check_uses(d, &o[k], EMU_USE_BRANCH);
        return;
    case MG_OP_bar:
    case MG_OP_barrier: {
        check_guard(d);
        if (!mg_form_has(f, MG_MOD_red) || n->n_opnds < 2) return;
        struct emu_def *def = new_def(d);
        def->use = EMU_USE_BRANCH;
        add_operand(d, &o[n->n_opnds - 1], def->src, &def->n_src);
        add_operand(d, &o[0], def->dst, &def->n_dst);
        emit(d, EMU_OP_defined_check, def);
        return;
    }
    case MG_OP_membar:
    case MG_OP_fence:
    case MG_OP_nanosleep:
    case MG_OP_prefetch:
    case MG_OP_prefetchu:
    case MG_OP_discard:
    case MG_OP_applypriority:
    case MG_OP_pmevent:
    case MG_OP_brkpt:
    case MG_OP_griddepcontrol:
    case MG_OP_setmaxnreg:
    case MG_OP_stackrestore:
        check_guard(d);
        return;
    case MG_OP_tex:
    case MG_OP_tld4:
    case MG_OP_suld:
    case MG_OP_sust:
    case MG_OP_sured:
    case MG_OP_cp:
    case MG_OP_ldmatrix:
    case MG_OP_stmatrix:
    case MG_OP_movmatrix:
    case MG_OP_mma:
    case MG_OP_wmma:
    case MG_OP_wgmma:
    case MG_OP_tcgen05:
    case MG_OP_mbarrier:
    case MG_OP_tensormap:
    case MG_OP_multimem:
    case MG_OP_clusterlaunchcontrol:
        unseen(d, f);
        return;
    default:
        if (f->op_flags & (MG_OPF_READS | MG_OPF_WRITES))
            unseen(d, f);
        else
            arithmetic(d, f, o, n->n_opnds);
        return;
    }
}
