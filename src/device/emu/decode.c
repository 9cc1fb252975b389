/* Decoding: a kernel and everything it calls, from IR to flat operations.
 *
 * Registers, special registers and constants of a function each get a 32-lane array in its
 * activation's file; an operation names them by offset. Blocks are laid out in rank order
 * (mg_cfg.rank), so comparing two operations' addresses compares their scheduling keys. Each block
 * ends with a control operation. What the device cannot run is refused here, by name and line,
 * before anything has run.
 */
#include "device/emu/decode.h"
#include "device/emu/defined.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/live.h"
#include "base/number.h"
#include "base/order.h"
#include "ptx/ptx.h"

#define ALIGN_UP(x, a)  (((x) + (a)-1) & ~((a)-1))
#define ALLOCA_BYTES    (128u << 10) /* thread stack for alloca */
#define RECURSION_BYTES (128u << 10) /* thread stack when the call depth is not known */

void dec_refuse(struct decoder *d, const char *fmt, ...)
{
    struct mg_buf b = MG_BUF_INIT;
    va_list ap;
    mg_buf_printf(&b, "kernel %s: ", d->code->kernel->name);
    va_start(ap, fmt);
    mg_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    if (d->node) {
        mg_buf_adds(&b, ": ");
        mg_ptx_print_node(d->m, d->node, &b);
        mg_buf_adds(&b, " at ");
        if (d->fn->id != d->code->kernel->func) mg_buf_printf(&b, "function %s, ", mg_name(d->m, d->f->name));
        emu_place(d->m, d->fn->id, d->node, &b);
        d->fault->ptx_line = d->m->nodes.at[d->node].line;
    }
    d->fault->kind = MG_FAULT_UNSUPPORTED;
    snprintf(d->fault->text, sizeof d->fault->text, "%s", b.at);
    mg_buf_release(&b);
    longjmp(d->refused, 1);
}

/* ---- the register file ------------------------------------------------------------------------ */

enum emu_class dec_class(enum mg_type t)
{
    unsigned bits = mg_type_bits(t);
    if (t == MG_TYPE_pred) return EMU_P;
    return bits == 0 ? EMU_D : bits <= 32 ? EMU_W : bits <= 64 ? EMU_D : EMU_Q;
}

uint32_t dec_slot(struct decoder *d, enum emu_class c)
{
    uint32_t at, bytes = c == EMU_W ? 128 : c == EMU_D ? 256 : 512;
    if (c == EMU_P) {
        if (d->pred_at == d->pred_end) {
            d->pred_at = d->frame_at;
            d->pred_end = d->frame_at += 64;
        }
        at = d->pred_at;
        d->pred_at += 4;
    } else {
        at = d->frame_at;
        d->frame_at += bytes;
    }
    if (d->frame_at > (64u << 20)) dec_refuse(d, "too many registers");
    if (d->mod->dev->compiler) {
        *mg_vec_push(&d->all_slots) = (struct emu_slot){.off = at, .cls = c};
        *mg_vec_push(&d->named) = at;
    }
    return at;
}

static uint32_t name_slot(struct decoder *d, uint32_t at)
{
    if (d->mod->dev->compiler) *mg_vec_push(&d->named) = at;
    return at;
}

enum emu_class dec_reg_class(struct decoder *d, const struct mg_opnd *o)
{
    return dec_class(d->m->regs.at[o->id].type);
}

uint32_t dec_reg(struct decoder *d, const struct mg_opnd *o)
{
    const struct mg_reg *r = &d->m->regs.at[o->id];
    enum emu_class c = dec_class(r->type);
    uint64_t at;
    if (!mg_map_get(&d->slots, o->id, &at)) {
        at = dec_slot(d, c);
        for (unsigned k = 1; k < r->vec; k++) dec_slot(d, c);
        mg_map_set(&d->slots, o->id, at);
    }
    unsigned comp = o->kind == MG_OPND_reg || o->kind == MG_OPND_not ? o->sub : 0;
    return name_slot(d, (uint32_t)at + (comp && c != EMU_P ? (comp - 1u) * (c == EMU_W   ? 128u
                                                                            : c == EMU_D ? 256u
                                                                                         : 512u)
                                                           : 0));
}

uint32_t dec_const(struct decoder *d, enum emu_class c, uint64_t value)
{
    struct mg_map *map = c == EMU_W ? &d->const_w : c == EMU_D ? &d->const_d : NULL;
    uint64_t at;
    if (map && mg_map_get(map, value, &at)) return name_slot(d, (uint32_t)at);
    at = dec_slot(d, c);
    *mg_vec_push(&d->consts) = (struct emu_const){.off = (uint32_t)at, .cls = c, .lo = value};
    if (map) mg_map_set(map, value, at);
    return (uint32_t)at;
}

static uint32_t special(struct decoder *d, enum mg_sreg s, unsigned comp)
{
    for (uint32_t i = 0; i < d->sregs.n; i++)
        if (d->sregs.at[i].sreg == s && d->sregs.at[i].comp == comp) return name_slot(d, d->sregs.at[i].off);
    uint32_t at = dec_slot(d, dec_class(mg_sreg_type(s)));
    *mg_vec_push(&d->sregs) = (struct emu_sreg){.off = at, .sreg = (uint8_t)s, .comp = (uint8_t)comp};
    return at;
}

static bool is_clock(enum mg_sreg s)
{
    return s == MG_SREG_clock || s == MG_SREG_clock_hi || s == MG_SREG_clock64 || s == MG_SREG_globaltimer ||
           s == MG_SREG_globaltimer_lo || s == MG_SREG_globaltimer_hi;
}

/* ---- operands ---------------------------------------------------------------------------------- */

uint64_t dec_imm(struct decoder *d, const struct mg_opnd *o, enum mg_type t)
{
    double x = 0;
    float f = 0;
    uint32_t b = 0;
    uint64_t v = o->val;
    unsigned bits = mg_type_bits(t);
    if (o->kind == MG_OPND_f32) {
        b = (uint32_t)o->val;
        memcpy(&f, &b, 4);
        x = f;
        v = b;
        if (t == MG_TYPE_f64) memcpy(&v, &x, 8);
        return v;
    }
    if (o->kind == MG_OPND_f64) {
        if (o->sub == 1)
            x = mg_number_plain(mg_name(d->m, o->id), NULL);
        else
            memcpy(&x, &o->val, 8);
        memcpy(&v, &x, 8);
        if (bits == 32) {
            f = (float)x;
            memcpy(&b, &f, 4);
            v = b;
        }
        return v;
    }
    if (t == MG_TYPE_pred) return v != 0;
    if ((t == MG_TYPE_f32 || t == MG_TYPE_f64) && o->sub != MG_IMM_HEX && o->sub != MG_IMM_HEX_UNSIGNED) {
        x = (double)(int64_t)v;
        f = (float)x;
        memcpy(&b, &f, 4);
        if (t == MG_TYPE_f32) return b;
        memcpy(&v, &x, 8);
        return v;
    }
    return bits && bits < 64 ? v & ((1ull << bits) - 1) : v;
}

/* Variables that instructions of the function name, in any operand. */
enum { NAMED_BY_PROBES = 1, NAMED_BY_PROGRAM = 2 };
static void note_named(const struct mg_module *m, const struct mg_func *f, uint8_t *named)
{
    MG_EACH_NODE(m, f, id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        uint8_t by = n->flags & MG_NF_PROBE ? NAMED_BY_PROBES : NAMED_BY_PROGRAM;
        for (uint32_t j = 0; n->kind == MG_NODE_inst && j < n->n_opnds; j++) {
            const struct mg_opnd *o = &m->opnds.at[n->opnd + j];
            uint32_t count = o->kind == MG_OPND_vec || o->kind == MG_OPND_list || o->kind == MG_OPND_pair ||
                                     o->kind == MG_OPND_tensor
                                 ? o->n
                                 : 1;
            const struct mg_opnd *e =
                count == 1 && o->kind != MG_OPND_vec && o->kind != MG_OPND_list && o->kind != MG_OPND_tensor
                    ? o
                    : &m->opnds.at[o->id];
            for (uint32_t q = 0; q < count; q++)
                if (e[q].kind == MG_OPND_var || (e[q].kind == MG_OPND_addr && e[q].sub == MG_OPND_var))
                    named[m->vars.at[e[q].id].def ? m->vars.at[e[q].id].def : e[q].id] |= by;
        }
    }
}

/* A local variable of ours, which the program's instructions do not name? */
static bool is_own_local(struct decoder *d, mg_id var)
{
    if (d->m->vars.at[var].space != MG_SPACE_local || !dec_is_probe(d, d->node)) return false;
    if (!d->named_vars) note_named(d->m, d->f, d->named_vars = mg_arena_array(&d->scratch, uint8_t, d->m->vars.n + 1));
    return d->named_vars[var] == NAMED_BY_PROBES;
}

uint32_t dec_local(struct decoder *d, mg_id var)
{
    uint64_t at;
    if (mg_map_get(&d->locals, var, &at)) return (uint32_t)at;
    const struct mg_var *v = &d->m->vars.at[var];
    uint64_t bytes = mg_var_bytes(v), align = MG_MAX(mg_var_align(v), 1);
    if (bytes > (1u << 28))
        dec_refuse(d, "local variable %s of %llu bytes", mg_name(d->m, v->name), (unsigned long long)bytes);
    if (is_own_local(d, var)) {
        at = ALIGN_UP((uint64_t)d->fn->own_local, align);
        d->fn->own_local = (uint32_t)ALIGN_UP(at + bytes, 16u);
        mg_map_set(&d->locals, var, EMU_OWN_WORDS + at);
        return EMU_OWN_WORDS + (uint32_t)at;
    }
    at = ALIGN_UP((uint64_t)d->fn->local_bytes, align);
    d->fn->local_bytes = (uint32_t)(at + MG_MAX(bytes, 1));
    mg_map_set(&d->locals, var, at);
    return (uint32_t)at;
}

uint32_t dec_shared(struct decoder *d, mg_id var)
{
    uint64_t at, key = (uint64_t)d->mod->seq << 32 | var;
    if (mg_map_get(&d->code->shared_at, key, &at)) return (uint32_t)at;
    dec_refuse(d, "shared variable %s of a function that is only reached through a pointer",
               mg_name(d->m, d->m->vars.at[var].name));
}

/* The definition of a variable that was declared extern before. */
mg_id dec_var(struct decoder *d, mg_id var)
{
    return d->m->vars.at[var].def ? d->m->vars.at[var].def : var;
}

/* Address of a variable as class c. */
static uint32_t variable_address(struct decoder *d, const struct mg_opnd *o, enum emu_class c)
{
    mg_id id = dec_var(d, o->id);
    const struct mg_var *v = &d->m->vars.at[id];
    enum emu_opcode opcode = EMU_OP_none;
    int64_t off = (int64_t)o->val;
    if (c != EMU_W && c != EMU_D) dec_refuse(d, "address of %s in a register of this type", mg_name(d->m, v->name));
    if (dec_is_reference(v) && c == EMU_D) return dec_reference(d, id);
    switch ((enum mg_space)v->space) {
    case MG_SPACE_shared:
        return dec_const(d, c, (dec_shared(d, id) + o->val) & (c == EMU_W ? UINT32_MAX : UINT64_MAX));
    case MG_SPACE_global:
    case MG_SPACE_const:
        if (!d->mod->globals[id].address)
            dec_refuse(d, "variable %s is declared extern and defined nowhere", mg_name(d->m, v->name));
        if (c == EMU_W) dec_refuse(d, "32-bit address of %s", mg_name(d->m, v->name));
        return dec_const(d, c, d->mod->globals[id].address + o->val);
    case MG_SPACE_local:
        opcode = EMU_OP_local_address;
        off += dec_local(d, id);
        if (off >= EMU_OWN_WORDS) return dec_const(d, c, (uint64_t)off);
        break;
    case MG_SPACE_param:
        if (d->f->kind == MG_FUNC_entry && v->is_param) {
            opcode = EMU_OP_param_address;
            off += (int64_t)mg_func_param_offset(d->f, d->m->vars.at, id - d->f->first_param);
        } else {
            opcode = EMU_OP_local_address;
            off += dec_local(d, id);
        }
        break;
    default:
        dec_refuse(d, "address of %s", mg_name(d->m, v->name));
    }
    uint32_t at = dec_slot(d, c);
    struct emu_op *op = dec_emit(d, opcode);
    op->a.d = at;
    op->off = off;
    op->flags = c == EMU_D ? EMU_OF_WIDE : 0;
    return at;
}

uint32_t dec_src(struct decoder *d, const struct mg_opnd *o, enum emu_class c, enum mg_type t)
{
    enum emu_class have = c;
    uint32_t at = 0;
    switch ((enum mg_opnd_kind)o->kind) {
    case MG_OPND_reg:
    case MG_OPND_sel:
    case MG_OPND_neg:
        if (o->kind == MG_OPND_reg && o->val) dec_refuse(d, "sum of a register and a constant as operand");
        have = dec_reg_class(d, o);
        at = dec_reg(d, o);
        break;
    case MG_OPND_not: {
        uint32_t s = dec_reg(d, o);
        at = dec_slot(d, EMU_P);
        struct emu_op *op = dec_emit(d, EMU_OP_not_p);
        op->a.d = at;
        op->a.s[0] = s;
        have = EMU_P;
        break;
    }
    case MG_OPND_imm:
    case MG_OPND_f32:
    case MG_OPND_f64: {
        if (o->kind == MG_OPND_imm && o->sub == MG_IMM_WIDE) dec_refuse(d, "128-bit literal");
        uint64_t v = dec_imm(d, o, t);
        if (c == EMU_W) v &= UINT32_MAX;
        return dec_const(d, c, v);
    }
    case MG_OPND_sreg: {
        enum mg_sreg s = (enum mg_sreg)o->id;
        have = dec_class(mg_sreg_type(s));
        if (!is_clock(s)) {
            at = special(d, s, o->sub ? o->sub - 1u : 0);
            break;
        }
        at = dec_slot(d, have);
        struct emu_op *op = dec_emit(d, EMU_OP_clock);
        op->a.d = at;
        op->a.imm = s;
        op->flags = have == EMU_D ? EMU_OF_WIDE : 0;
        break;
    }
    case MG_OPND_var:
        return variable_address(d, o, c);
    case MG_OPND_func: {
        mg_id f = d->m->funcs.at[o->id].def ? d->m->funcs.at[o->id].def : o->id;
        if (!d->m->funcs.at[f].defined)
            dec_refuse(d, "address of function %s, which is defined nowhere", mg_name(d->m, d->m->funcs.at[f].name));
        return dec_const(d, c, d->mod->functions + (uint64_t)f * EMU_FUNC_STRIDE);
    }
    case MG_OPND_sym:
        dec_refuse(d, "undeclared name %s", mg_name(d->m, o->id));
    default:
        dec_refuse(d, "unsupported operand");
    }
    if (have == c) return at;
    uint32_t to = dec_slot(d, c);
    struct emu_op *op = NULL;
    if (have == EMU_D && c == EMU_W)
        op = dec_emit(d, EMU_OP_lo_dw);
    else if (have == EMU_W && c == EMU_D)
        op = dec_emit(d, EMU_OP_zext_wd);
    else
        dec_refuse(d, "register of another size");
    op->a.d = to;
    op->a.s[0] = at;
    return to;
}

/* ---- emitting ---------------------------------------------------------------------------------- */

struct emu_op *dec_emit(struct decoder *d, unsigned opcode)
{
    struct emu_op *op = mg_vec_push(&d->ops);
    memset(op, 0, sizeof *op);
    op->opcode = (uint16_t)opcode;
    op->a.fn = emu_function(opcode, d->isa, 0, false);
    return op;
}

struct emu_op *dec_emit_inst(struct decoder *d, unsigned opcode, enum emu_ctl ctl)
{
    const struct mg_node *n = &d->m->nodes.at[d->node];
    uint32_t guard = 0;
    if (n->guard) {
        struct mg_opnd g = mg_o_reg(n->guard);
        guard = dec_reg(d, &g);
    }
    struct emu_op *op = dec_emit(d, opcode);
    op->node = d->node;
    op->probe = n->flags & MG_NF_PROBE;
    op->ctl = ctl;
    op->guard = guard;
    op->guard_flip = n->flags & MG_NF_GUARD_NOT ? UINT32_MAX : 0;
    if (guard && !ctl) {
        op->real = op->a.fn;
        op->a.fn = emu_guarded(d->isa);
    }
    return op;
}

void dec_set_element(struct decoder *d, struct emu_op *op, enum emu_elem elem, uint32_t count)
{
    op->elem = (uint8_t)elem;
    op->vec = (uint8_t)count;
    *(op->real ? &op->real : &op->a.fn) = emu_function(op->opcode, d->isa, elem, count > 1);
}

uint32_t dec_next_block(struct decoder *d)
{
    return d->block + 1;
}

uint32_t dec_label_block(struct decoder *d, mg_id label)
{
    uint64_t b;
    if (!mg_map_get(&d->label_block, label, &b))
        dec_refuse(d, "jump to label %s, which is in no block", mg_name(d->m, d->m->labels.at[label].name));
    return (uint32_t)b;
}

bool dec_falls_in(const struct decoder *d, mg_id label)
{
    mg_id id = d->m->labels.at[label].node;
    bool own = dec_is_probe(d, id);
    while (own && (id = d->m->nodes.at[id].next) && d->m->nodes.at[id].kind != MG_NODE_inst)
        if (d->m->nodes.at[id].kind == MG_NODE_label && !dec_is_probe(d, id)) return true;
    return false;
}

static void find_labels(struct decoder *d)
{
    MG_VEC(mg_id) waiting = {0};
    MG_EACH_NODE(d->m, d->f, id)
    {
        const struct mg_node *n = &d->m->nodes.at[id];
        if (n->kind == MG_NODE_label) *mg_vec_push(&waiting) = n->ref;
        if (n->kind != MG_NODE_inst || !waiting.n) continue;
        uint32_t b = mg_cfg_block_of(d->cfg, id);
        for (uint32_t i = 0; i < waiting.n; i++)
            mg_map_set(&d->label_block, waiting.at[i], b == MG_NO_BLOCK ? d->cfg->n_blocks : b);
        waiting.n = 0;
    }
    for (uint32_t i = 0; i < waiting.n; i++) mg_map_set(&d->label_block, waiting.at[i], d->cfg->n_blocks);
    mg_vec_release(&waiting);
}

/* Formal parameters: where arguments arrive and results are left. */
static void place_formals(struct decoder *d)
{
    struct emu_func *fn = d->fn;
    fn->n_params = d->f->n_params;
    fn->n_rets = d->f->n_rets;
    fn->params = mg_arena_array(&d->code->arena, struct emu_arg, fn->n_params + 1);
    fn->rets = mg_arena_array(&d->code->arena, struct emu_arg, fn->n_rets + 1);
    if (d->f->kind == MG_FUNC_entry) return;
    for (uint32_t k = 0; k < fn->n_params + fn->n_rets; k++) {
        bool ret = k >= fn->n_params;
        mg_id id = ret ? d->f->first_ret + (k - fn->n_params) : d->f->first_param + k;
        const struct mg_var *v = &d->m->vars.at[id];
        struct emu_arg a = {.bytes = (uint32_t)mg_var_bytes(v)};
        uint32_t at;
        if (v->is_reg_param) {
            struct mg_opnd o = mg_o_reg(v->reg);
            at = dec_reg(d, &o);
            a.bytes = MG_MAX(a.bytes, 1);
            a.to_reg = a.from_reg = 1;
            a.to_class = a.from_class = (uint8_t)dec_class(v->type);
        } else
            at = dec_local(d, id);
        a.to = a.from = at;
        if (ret)
            fn->rets[k - fn->n_params] = a;
        else
            fn->params[k] = a;
    }
}

static void name_none(struct decoder *d)
{
    if (d->mod->dev->compiler) *mg_vec_push(&d->named_at) = d->named.n;
}

/* Blocks that nothing reaches were not decoded: whoever names one goes to the end. */
static const struct emu_op *block_start(const struct emu_func *fn, const uint32_t *start, const uint32_t *front,
                                        uint32_t n, const struct emu_op *block)
{
    uintptr_t b = (uintptr_t)block;
    if (b & DEC_FRONT && (b &= ~DEC_FRONT) < n && front[b] != UINT32_MAX) return fn->ops + front[b];
    return fn->ops + (b <= n && start[b] != UINT32_MAX ? start[b] : start[n]);
}

static int by_offset(const void *a, const void *b)
{
    uint32_t x = ((const struct emu_slot *)a)->off, y = ((const struct emu_slot *)b)->off;
    return x < y ? -1 : x > y;
}

/* For a compiler: all places of the frame, and which of them each operation's instruction names. */
static void keep_slots(struct decoder *d)
{
    struct emu_func *fn = d->fn;
    fn->n_slots = d->all_slots.n;
    fn->slots = mg_arena_copy(&d->code->arena, d->all_slots.at, d->all_slots.n * sizeof *d->all_slots.at);
    qsort(fn->slots, fn->n_slots, sizeof *fn->slots, by_offset);
    while (d->named_at.n <= d->ops.n) *mg_vec_push(&d->named_at) = d->named.n;
    fn->named = d->named.n ? mg_arena_copy(&d->code->arena, d->named.at, d->named.n * sizeof *d->named.at) : NULL;
    fn->named_at = mg_arena_copy(&d->code->arena, d->named_at.at, d->named_at.n * sizeof *d->named_at.at);
}

/* The label of ours that the block's branch jumps to: no loop of the program's, and none that warps enter in turns. */
static mg_id own_label(struct decoder *d, const struct mg_block *b)
{
    const struct mg_node *n = &d->m->nodes.at[b->last];
    const struct mg_opnd *o = &d->m->opnds.at[n->opnd];
    bool jumps = n->kind == MG_NODE_inst && mg_node_form(d->m, n)->op == MG_OP_bra && o->kind == MG_OPND_label;
    return jumps && dec_is_probe(d, d->m->labels.at[o->id].node) ? o->id : 0;
}

static void decode_blocks(struct decoder *d)
{
    uint32_t n = d->cfg->n_blocks;
    uint64_t *order = mg_arena_array(&d->scratch, uint64_t, n + 1);
    uint32_t *start = mg_arena_array(&d->scratch, uint32_t, n + 2), n_order = 0;
    uint8_t *loops = mg_arena_array(&d->scratch, uint8_t, n + 1);
    uint8_t *apart =
        mg_arena_array(&d->scratch, uint8_t, n + 1); /* inserted code jumps to where the block is fallen into */
    uint32_t *front = mg_arena_array(&d->scratch, uint32_t, n + 1);
    for (uint32_t b = 0; b < n; b++)
        if (d->cfg->reachable[b]) order[n_order++] = (uint64_t)d->cfg->rank[b] << 32 | b;
    qsort(order, n_order, sizeof *order, mg_by_u64);
    for (uint32_t i = 0; i <= n; i++) start[i] = front[i] = UINT32_MAX;
    for (uint32_t b = 0; b < n; b++) { /* heads of the program's loops: targets of edges that do not go up in rank */
        const struct mg_block *from = &d->cfg->blocks[b];
        mg_id label = own_label(d, from);
        uint32_t own = label ? dec_label_block(d, label) : MG_NO_BLOCK;
        if (label && dec_falls_in(d, label)) apart[own] = 1;
        for (uint32_t k = 0; k < from->n_succs && d->cfg->reachable[b]; k++) {
            uint32_t to = d->cfg->edges[from->succ_at + k];
            loops[to] |= d->cfg->rank[to] <= d->cfg->rank[b] && to != own;
        }
    }
    for (uint32_t i = 0; i < n_order; i++) {
        d->block = (uint32_t)order[i];
        const struct mg_block *b = &d->cfg->blocks[d->block];
        if (loops[d->block] && apart[d->block]) { /* lanes meet before they enter the loop */
            front[d->block] = d->ops.n;
            struct emu_op *op = dec_emit(d, EMU_OP_none);
            op->ctl = EMU_CTL_LOOP;
            op->target = DEC_BLOCK(d->block);
            name_none(d);
        }
        start[d->block] = d->ops.n;
        for (mg_id id = b->first; id; id = d->m->nodes.at[id].next) {
            if (d->m->nodes.at[id].kind == MG_NODE_inst) {
                d->node = id;
                uint32_t named = d->named.n;
                mg_id last = dec_count(d, id, b->last);
                if (last)
                    id = last;
                else {
                    dec_defined(d, id);
                    dec_instruction(d, id);
                }
                while (d->mod->dev->compiler && d->named_at.n < d->ops.n) *mg_vec_push(&d->named_at) = named;
            }
            if (id == b->last) break;
        }
        d->node = 0;
        const struct emu_op *last = d->ops.n ? &d->ops.at[d->ops.n - 1] : NULL;
        bool ends =
            last && d->ops.n > start[d->block] && last->ctl && last->ctl != EMU_CTL_BAR && last->ctl != EMU_CTL_SYNC;
        uint32_t next = d->block + 1;
        bool enters = next < n && loops[next] && d->cfg->rank[next] > d->cfg->rank[d->block];
        bool meets = enters && apart[next];
        if (!ends) {
            struct emu_op *op = dec_emit(d, EMU_OP_none);
            op->ctl = enters && !meets ? EMU_CTL_LOOP : EMU_CTL_NEXT;
            op->target = meets ? DEC_IN_FRONT(next) : DEC_BLOCK(next);
            name_none(d);
        } else if (meets && last->ctl == EMU_CTL_BRA) {
            d->ops.at[d->ops.n - 1].fall = DEC_IN_FRONT(next);
        } else if (enters && last->ctl == EMU_CTL_BRA) { /* falls into a loop: by way of an operation of its own */
            d->ops.at[d->ops.n - 1].fall = DEC_SELF;
            struct emu_op *op = dec_emit(d, EMU_OP_none);
            op->ctl = EMU_CTL_LOOP;
            op->target = DEC_BLOCK(next);
            name_none(d);
        }
    }
    start[n] = d->ops.n;
    struct emu_op *end = dec_emit(d, EMU_OP_none); /* running off the end is ret */
    end->ctl = EMU_CTL_RET;
    end->target = end->fall = DEC_BLOCK(n);

    struct emu_func *fn = d->fn;
    if (d->mod->dev->compiler) keep_slots(d);
    fn->n_ops = d->ops.n;
    fn->ops = mg_arena_alloc(&d->code->arena, (size_t)fn->n_ops * sizeof *fn->ops + 64);
    fn->ops = (struct emu_op *)(((uintptr_t)fn->ops + 63) & ~(uintptr_t)63);
    memcpy(fn->ops, d->ops.at, (size_t)fn->n_ops * sizeof *fn->ops);
    for (uint32_t i = fn->n_ops; i-- > 0;) {
        struct emu_op *op = &fn->ops[i];
        uint32_t own = (op->node != 0) + op->extra;
        if (op->ctl) {
            op->run = 0;
            op->insts = own;
            op->target = block_start(fn, start, front, n, op->target);
            op->fall = op->fall == DEC_SELF ? op + 1 : block_start(fn, start, front, n, op->fall);
            if (op->ctl == EMU_CTL_BRX) {
                const struct emu_op **table = (const struct emu_op **)(uintptr_t)op->ext;
                for (uint32_t k = 0; k < op->a.imm; k++) table[k] = block_start(fn, start, front, n, table[k]);
            }
        } else {
            op->run = op[1].run + 1;
            op->insts = op[1].insts + own;
        }
    }
    fn->entry = block_start(fn, start, front, n, DEC_BLOCK(0));
}

static bool decode_func(struct emu_func *fn, struct mg_fault *fault)
{
    struct decoder *d = calloc(1, sizeof *d);
    if (!d) {
        fault->kind = MG_FAULT_MEMORY;
        return false;
    }
    d->code = fn->code;
    d->fn = fn;
    d->mod = fn->mod;
    d->m = fn->mod->ir;
    d->f = &d->m->funcs.at[fn->id];
    d->isa = fn->mod->dev->isa;
    d->fault = fault;
    d->trash = 64; /* offset 0 means "no operand" */
    d->frame_at = 64 + 512;
    volatile bool ok = false;
    if (!setjmp(d->refused)) {
        d->cfg = mg_cfg_new(d->m, fn->id);
        if (!d->cfg) dec_refuse(d, "no control-flow graph");
        place_formals(d);
        fn->cc = dec_slot(d, EMU_P);
        find_labels(d);
        dec_find_fusions(d);
        decode_blocks(d);
        dec_defined_end(d);
        fn->own_local_at = ALIGN_UP(d->frame_at, 64u);
        fn->frame_bytes = ALIGN_UP(fn->own_local_at + EMU_LANES * fn->own_local, 64u);
        fn->n_consts = d->consts.n;
        fn->consts =
            d->consts.n ? mg_arena_copy(&d->code->arena, d->consts.at, d->consts.n * sizeof *d->consts.at) : NULL;
        fn->n_sregs = d->sregs.n;
        fn->sregs = d->sregs.n ? mg_arena_copy(&d->code->arena, d->sregs.at, d->sregs.n * sizeof *d->sregs.at) : NULL;
        fn->local_bytes = ALIGN_UP(fn->local_bytes, 16u);
        fn->decoded = ok = true;
    }
    if (d->cfg) mg_cfg_free(d->cfg);
    mg_arena_release(&d->scratch);
    mg_vec_release(&d->ops);
    mg_vec_release(&d->consts);
    mg_vec_release(&d->sregs);
    mg_vec_release(&d->all_slots);
    mg_vec_release(&d->named);
    mg_vec_release(&d->named_at);
    mg_map_release(&d->slots);
    mg_map_release(&d->const_w);
    mg_map_release(&d->const_d);
    mg_map_release(&d->locals);
    mg_map_release(&d->label_block);
    mg_map_release(&d->fused);
    mg_map_release(&d->marks);
    mg_vec_release(&d->mark_list);
    free(d);
    return ok;
}

/* ---- kernels ----------------------------------------------------------------------------------- */

/* The function within this kernel, not necessarily decoded yet. */
static struct emu_func *func_get(struct emu_code *c, struct mg_dmod *mod, mg_id id)
{
    uint64_t key = mod->seq << 32 | id, at;
    if (mg_map_get(&c->by_id, key, &at)) return (struct emu_func *)at;
    static _Atomic uint64_t numbers;
    struct emu_func *fn = mg_arena_new(&c->arena, struct emu_func);
    fn->number = ++numbers;
    fn->code = c;
    fn->mod = mod;
    fn->id = id;
    mg_map_set(&c->by_id, key, (uint64_t)fn);
    *mg_vec_push(&c->funcs) = fn;
    return fn;
}

struct emu_func *dec_callee(struct decoder *d, mg_id func)
{
    return func_get(d->code, d->mod, func);
}

static bool decode_pending(struct emu_code *c, struct mg_fault *fault)
{
    for (uint32_t i = 0; i < c->funcs.n; i++)
        if (!c->funcs.at[i]->decoded && !decode_func(c->funcs.at[i], fault)) return false;
    return true;
}

/* At run time, for targets of indirect calls. */
struct emu_func *emu_code_func(struct emu_code *c, struct mg_dmod *mod, mg_id func, struct mg_fault *fault)
{
    pthread_mutex_lock(&c->kernel->lock);
    struct emu_func *fn = func_get(c, mod, func);
    bool ok = fn->decoded || decode_pending(c, fault);
    pthread_mutex_unlock(&c->kernel->lock);
    return ok ? fn : NULL;
}

/* Every shared variable of the kernel's functions: the program's from 0 on, and apart from them ours. */
static void place_shared(struct emu_code *c, const struct mg_callgraph *g)
{
    struct mg_dkernel *k = c->kernel;
    const struct mg_module *m = k->mod->ir;
    uint8_t *named = calloc(m->vars.n + 1, 1);
    uint64_t at = 0, own = 0;
    uint32_t align_dynamic = 16;
    if (!named) return;
    for (uint32_t i = 0; i < g->n_funcs; i++) note_named(m, &m->funcs.at[g->funcs[i]], named);
    for (int dynamic = 0; dynamic < 2; dynamic++)
        for (uint32_t i = 1; i < m->vars.n; i++) {
            const struct mg_var *v = &m->vars.at[i];
            if (!named[i] || v->space != MG_SPACE_shared) continue;
            uint64_t bytes = mg_var_bytes(v);
            uint32_t align = MG_MAX(mg_var_align(v), 1);
            if ((bytes == 0) != dynamic) continue;
            if (named[i] == NAMED_BY_PROBES && !dynamic) {
                own = ALIGN_UP(own, (uint64_t)align);
                mg_map_set(&c->shared_at, k->mod->seq << 32 | i, EMU_OWN_WORDS + own);
                own += bytes;
            } else if (dynamic)
                align_dynamic = MG_MAX(align_dynamic, align);
            else {
                at = ALIGN_UP(at, (uint64_t)align);
                mg_map_set(&c->shared_at, k->mod->seq << 32 | i, at);
                at += bytes;
            }
        }
    c->static_shared = (uint32_t)at;
    c->own_shared = (uint32_t)own;
    c->shared_align = align_dynamic;
    for (uint32_t i = 1; i < m->vars.n; i++) /* all unsized arrays begin where the dynamic part does */
        if (named[i] && m->vars.at[i].space == MG_SPACE_shared && !mg_var_bytes(&m->vars.at[i]))
            mg_map_set(&c->shared_at, k->mod->seq << 32 | i, ALIGN_UP(at, (uint64_t)align_dynamic));
    free(named);
}

/* Longest chain of calls from fn, in bytes of local memory; recursion sets c->recursive. */
static uint32_t stack_bytes(struct emu_code *c, struct emu_func *fn, uint32_t depth)
{
    uint32_t most = 0;
    if (depth > c->funcs.n) {
        c->recursive = true;
        return 0;
    }
    for (uint32_t i = 0; i < fn->n_ops && !c->recursive; i++) {
        const struct emu_op *op = &fn->ops[i];
        if (op->ctl == EMU_CTL_CALLI) c->indirect = true;
        if (op->ctl != EMU_CTL_CALL) continue;
        uint32_t n = stack_bytes(c, ((const struct emu_call *)op->ext)->callee, depth + 1);
        most = MG_MAX(most, n);
    }
    return fn->local_bytes + most;
}

static struct emu_code *code_new(struct mg_dkernel *k, struct mg_fault *fault)
{
    const struct mg_module *m = k->mod->ir;
    if (m->address_size == 32) {
        fault->kind = MG_FAULT_UNSUPPORTED;
        snprintf(fault->text, sizeof fault->text,
                 "kernel %s: the module has 32-bit addresses (.address_size 32), which this device does not run",
                 k->name);
        return NULL;
    }
    struct emu_code *c = calloc(1, sizeof *c);
    struct mg_callgraph *g = c ? mg_callgraph_new(m, k->func) : NULL;
    if (!g) {
        free(c);
        fault->kind = MG_FAULT_MEMORY;
        return NULL;
    }
    pthread_mutex_init(&c->kept_lock, NULL);
    c->kernel = k;
    place_shared(c, g);
    mg_callgraph_free(g);
    c->entry = func_get(c, k->mod, k->func);
    if (!decode_pending(c, fault)) {
        emu_code_free(c);
        return NULL;
    }
    c->local_bytes = stack_bytes(c, c->entry, 0);
    k->static_shared = c->static_shared;
    k->local_bytes = c->local_bytes;
    if (c->recursive || c->indirect) c->local_bytes += RECURSION_BYTES;
    if (c->allocates || c->indirect) { /* functions that indirect calls bring in may want it */
        c->alloca_bytes = ALLOCA_BYTES;
        c->local_bytes = ALIGN_UP(c->local_bytes, 4096u) + c->alloca_bytes;
    }
    c->next_cache = c->n_caches + 1;
    c->n_caches += 256; /* room for functions that indirect calls bring in */
    return c;
}

void emu_code_free(struct emu_code *c)
{
    if (!c) return;
    if (c->compiled) c->kernel->mod->dev->compiler->forget(c);
    mg_vec_release(&c->funcs);
    mg_map_release(&c->by_id);
    mg_map_release(&c->shared_at);
    mg_vec_release(&c->sites);
    mg_vec_release(&c->unseen);
    mg_arena_release(&c->arena);
    pthread_mutex_destroy(&c->kept_lock);
    free(c->kept);
    free(c);
}

bool emu_kernel_code(struct mg_dkernel *k, struct mg_fault *fault)
{
    pthread_mutex_lock(&k->lock);
    if (!k->code && k->refusal.kind == MG_FAULT_NONE) k->code = code_new(k, &k->refusal);
    bool ok = k->code != NULL;
    if (!ok && fault) *fault = k->refusal;
    pthread_mutex_unlock(&k->lock);
    return ok;
}

/* Registers a compiler might give the kernel: an estimate from liveness, functions it calls included,
 * in the machine's steps of 8; the driver knows the recorded number where there is one. All
 * that it may have for what is too large to be looked at for an attribute. */
static uint32_t register_estimate(const struct mg_dkernel *k)
{
    uint32_t most = 0;
    for (uint32_t i = 0; k->code && i < k->code->funcs.n; i++) {
        const struct emu_func *fn = k->code->funcs.at[i];
        if (fn->n_ops > 20000) return 255;
        struct mg_cfg *c = fn->mod == k->mod ? mg_cfg_new(fn->mod->ir, fn->id) : NULL;
        struct mg_live *l = c ? mg_live_new(c) : NULL;
        if (l) most = MG_MAX(most, mg_live_pressure(l, c));
        if (l) mg_live_free(l);
        if (c) mg_cfg_free(c);
    }
    return k->code ? MG_MIN(ALIGN_UP(most + 8, 8u), 255u) : 32;
}

/* What attribute queries need; without decoding when the kernel will not decode. */
void emu_kernel_sizes(struct mg_dkernel *k)
{
    struct mg_fault ignored;
    if (k->sized) return;
    emu_kernel_code(k, &ignored);
    const struct mg_module *m = k->mod->ir;
    uint32_t n = 0;
    for (uint32_t i = 1; i < m->vars.n; i++)
        if (m->vars.at[i].space == MG_SPACE_const && k->mod->globals[i].address)
            n += (uint32_t)k->mod->globals[i].bytes;
    k->const_bytes = n;
    pthread_mutex_lock(&k->lock); /* indirect calls add functions while others run */
    k->registers = register_estimate(k);
    pthread_mutex_unlock(&k->lock);
    k->sized = true;
}
