/* Decoding of loads, stores, atomics and reductions. */
#include "device/emu/check.h"
#include "device/emu/race.h"
#include "device/emu/decode.h"
#include "device/emu/defined.h"

#include <string.h>

uint32_t dec_cache(struct decoder *d)
{
    struct emu_code *code = d->code;
    if (!code->next_cache) return code->n_caches++;
    return code->next_cache < code->n_caches ? code->next_cache++ : code->n_caches - 1; /* workers have this many */
}

/* Fills base register, offset, space and cache of an access. */
void dec_address(struct decoder *d, struct emu_op *op, const struct mg_opnd *o, enum mg_space space)
{
    if (o->kind != MG_OPND_addr) dec_refuse(d, "unsupported address");
    op->off = (int64_t)o->val;
    op->flags &= (uint8_t) ~(EMU_OF_BASE_W | EMU_OF_BASE_NONE);
    op->space = (uint8_t)space;
    op->probe = dec_is_probe(d, d->node);
    op->cache = dec_cache(d);
    switch ((enum mg_opnd_kind)o->sub) {
    case MG_OPND_reg: {
        struct mg_opnd base = mg_o_reg(o->id);
        base.sub = (uint8_t)(o->n & 7);
        op->a.s[0] = dec_reg(d, &base);
        if (dec_reg_class(d, &base) == EMU_W) op->flags |= EMU_OF_BASE_W;
        if (space == MG_SPACE_param && d->f->kind != MG_FUNC_entry) op->space = MG_SPACE_local;
        return;
    }
    case MG_OPND_var: {
        mg_id id = dec_var(d, o->id);
        const struct mg_var *v = &d->m->vars.at[id];
        op->flags |= EMU_OF_BASE_NONE;
        if (v->space != space && space != MG_SPACE_generic && !(v->space == MG_SPACE_param && space == MG_SPACE_local))
            dec_refuse(d, "%s is not in the state space that is accessed", mg_name(d->m, v->name));
        switch ((enum mg_space)v->space) {
        case MG_SPACE_global:
        case MG_SPACE_const:
            if (!d->mod->globals[id].address)
                dec_refuse(d, "variable %s is declared extern and defined nowhere", mg_name(d->m, v->name));
            op->off += (int64_t)d->mod->globals[id].address;
            return;
        case MG_SPACE_shared:
            op->off += dec_shared(d, id);
            op->space = MG_SPACE_shared;
            return;
        case MG_SPACE_local:
            op->off += dec_local(d, id);
            op->space = MG_SPACE_local;
            return;
        case MG_SPACE_param:
            if (d->f->kind == MG_FUNC_entry && v->is_param) {
                op->off += (int64_t)mg_func_param_offset(d->f, d->m->vars.at, id - d->f->first_param);
                return;
            }
            op->off += dec_local(d, id);
            op->space = MG_SPACE_local;
            return;
        default:
            dec_refuse(d, "unsupported address");
        }
    }
    default:
        op->flags |= EMU_OF_BASE_NONE;
        if (op->space == MG_SPACE_local) dec_refuse(d, "absolute local address");
        return;
    }
}

static enum emu_elem element(struct decoder *d, enum mg_type t, unsigned reg_bits)
{
    bool s = mg_type_kind(t) == MG_TK_SINT, wide = reg_bits == 64;
    switch (mg_type_bits(t)) {
    case 8:
        return wide ? s ? EMU_E_S8D : EMU_E_U8D : !s ? EMU_E_U8W : reg_bits == 16 ? EMU_E_S8H : EMU_E_S8W;
    case 16:
        return wide ? s ? EMU_E_S16D : EMU_E_U16D : s && reg_bits == 32 ? EMU_E_S16W : EMU_E_U16W;
    case 32:
        return wide ? s ? EMU_E_S32D : EMU_E_U32D : EMU_E_B32W;
    case 64:
        return EMU_E_B64D;
    case 128:
        return EMU_E_B128Q;
    default:
        dec_refuse(d, "access of type %s", mg_type_name(t));
    }
}

static bool may_see_others(const struct mg_form *f)
{
    return mg_form_has(f, MG_MOD_volatile) || mg_form_has(f, MG_MOD_acquire) || mg_form_has(f, MG_MOD_relaxed) ||
           mg_form_has(f, MG_MOD_mmio) || mg_form_has(f, MG_MOD_cv);
}

static unsigned register_bits(struct decoder *d, const struct mg_opnd *o, enum mg_type t)
{
    if (o->kind == MG_OPND_reg) return mg_type_bits(d->m->regs.at[o->id].type);
    return mg_type_bits(t) <= 32 ? 32 : mg_type_bits(t);
}

/* A vector register without component stands for all of them. */
static uint32_t elements(struct decoder *d, const struct mg_opnd *o, struct mg_opnd *out)
{
    uint32_t n = 1;
    out[0] = *o;
    if (o->kind == MG_OPND_vec) {
        n = o->n;
        if (n > 8) dec_refuse(d, "vector of %u elements", n);
        memcpy(out, &d->m->opnds.at[o->id], n * sizeof *out);
    } else if (o->kind == MG_OPND_reg && d->m->regs.at[o->id].vec && !o->sub) {
        n = d->m->regs.at[o->id].vec;
        for (uint32_t k = 0; k < n; k++) out[k] = *o, out[k].sub = (uint8_t)(k + 1);
    }
    return n;
}

/* For --check: what the access is. Strong ones do not race with their like, and order. */
static void check_access(struct decoder *d, const struct mg_form *form, struct emu_op at, bool store, bool wide,
                         uint32_t bytes, uint32_t count, const uint32_t *list, uint32_t value)
{
    bool volatile_ = mg_form_has(form, MG_MOD_volatile) || mg_form_has(form, MG_MOD_cv),
         strong = may_see_others(form) || mg_form_has(form, MG_MOD_release);
    at.flags = (uint8_t)(at.flags | (wide ? EMU_OF_WIDE : 0));
    at.sub = (uint8_t)((store ? EMU_CHECK_WRITE : EMU_CHECK_READ) | (strong ? EMU_CHECK_SYNC : 0));
    at.mode = volatile_ ? EMU_CK_VOLATILE : strong ? EMU_CK_ATOMIC : EMU_CK_PLAIN;
    at.bytes = (uint8_t)bytes;
    at.vec = (uint8_t)count;
    at.slots = list;
    at.a.s[1] = store ? value : 0;
    dec_check_access(d, &at);
    dec_race_access(d, form, &at, false);
}

static enum emu_opcode access_of(const struct emu_op *at, bool store)
{
    if (at->space == MG_SPACE_shared) return store ? EMU_OP_store_shared : EMU_OP_load_shared;
    if (at->space == MG_SPACE_local) return store ? EMU_OP_store_local : EMU_OP_load_local;
    if (at->space == MG_SPACE_param && at->flags & EMU_OF_BASE_NONE) return store ? EMU_OP_none : EMU_OP_load_param;
    return store ? EMU_OP_store_global : EMU_OP_load_global;
}

static void load_store(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o, uint32_t n, bool store)
{
    if (n < 2 || !form->n_types) dec_refuse(d, "unsupported access");
    const struct mg_opnd *value = store ? &o[1] : &o[0], *address = store ? &o[0] : &o[1];
    struct mg_opnd e[8];
    enum mg_type t = form->types[0];
    uint32_t count = elements(d, value, e), slots[8];
    unsigned bits = 0;
    for (uint32_t k = 0; k < count && !bits; k++)
        if (e[k].kind == MG_OPND_reg) bits = register_bits(d, &e[k], t);
    if (!bits) bits = mg_type_bits(t) <= 32 ? 32 : mg_type_bits(t);
    enum emu_elem elem = element(d, t, bits);
    enum emu_class c = bits <= 32 ? EMU_W : bits == 64 ? EMU_D : EMU_Q;
    for (uint32_t k = 0; k < count; k++) {
        if (store)
            slots[k] = dec_src(d, &e[k], c, t);
        else if (e[k].kind == MG_OPND_sink)
            slots[k] = d->trash;
        else if (e[k].kind != MG_OPND_reg || dec_reg_class(d, &e[k]) != c)
            dec_refuse(d, "unsupported destination");
        else
            slots[k] = dec_reg(d, &e[k]);
    }
    struct emu_op proto = {0};
    if (address->kind == MG_OPND_addr && address->sub == MG_OPND_imm && form->space == MG_SPACE_local)
        dec_refuse(d, "absolute local address");
    if (mg_form_has(form, MG_MOD_shared__cluster))
        dec_cluster_address(d, &proto, address);
    else
        dec_address(d, &proto, address, form->space);
    enum emu_opcode opcode = access_of(&proto, store);
    if (opcode == EMU_OP_none) dec_refuse(d, "unsupported access");
    uint32_t bytes = mg_type_bits(t) / 8;
    bool strong = may_see_others(form) || mg_form_has(form, MG_MOD_release);
    bool apart = strong && bytes * count >= 16 && emu_whole_needs_exchange();
    if (apart && opcode == EMU_OP_load_global) opcode = EMU_OP_load_exchange;
    if (apart && opcode == EMU_OP_store_global) opcode = EMU_OP_store_exchange;
    if (opcode == EMU_OP_load_param &&
        (proto.off < 0 || (uint64_t)proto.off + bytes * count > d->code->kernel->param_bytes))
        dec_refuse(d, "access outside the parameters");
    const uint32_t *list = count > 1 ? mg_arena_copy(&d->code->arena, slots, count * sizeof *slots) : NULL;
    if (dec_checks(d)) {
        struct emu_op access = proto;
        access.bytes = (uint8_t)bytes;
        access.vec = (uint8_t)count;
        dec_defined_access(d, &access, form, address, &o[1], store ? 1 : 0, store ? NULL : value);
        check_access(d, form, proto, store, c == EMU_D, bytes, count, list, slots[0]);
    }
    if (!store && may_see_others(form) && !dec_is_probe(d, d->node)) dec_emit(d, EMU_OP_mark_suspect);
    struct emu_op *op = dec_emit_inst(d, opcode, EMU_CTL_NONE);
    dec_set_element(d, op, elem, count);
    op->off = proto.off;
    op->space = proto.space;
    op->cache = proto.cache;
    op->flags = (uint8_t)(proto.flags | (store ? EMU_OF_WRITES : EMU_OF_READS) | (c == EMU_D ? EMU_OF_WIDE : 0));
    op->a.s[0] = proto.a.s[0];
    op->bytes = (uint8_t)bytes;
    op->type = (uint8_t)t;
    if (strong)
        op->mode = mg_form_has(form, MG_MOD_acquire)   ? EMU_ORDER_ACQUIRE
                   : mg_form_has(form, MG_MOD_release) ? EMU_ORDER_RELEASE
                                                       : EMU_ORDER_STRONG;
    if (count > 1)
        op->slots = list;
    else if (store)
        op->a.s[1] = slots[0];
    else
        op->a.d = slots[0];
}

static void atomic(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o, uint32_t n, bool result)
{
    struct emu_op proto = {0};
    enum emu_opcode opcode = emu_atom_find(form, &proto, result);
    if (opcode == EMU_OP_none) dec_refuse(d, "unsupported instruction");
    uint32_t at = result ? 1 : 0, n_values = proto.sub == EMU_ATOM_CAS ? 2 : 1;
    if (n < at + 1 + n_values) dec_refuse(d, "too few operands");
    enum mg_type t = proto.type;
    enum emu_class c = dec_class(t);
    uint32_t s[2] = {0}, slots[16], dst = 0, count = 1;
    struct mg_opnd e[8];
    if (proto.vec > 1) {
        count = elements(d, &o[at + 1], e);
        if (count != proto.vec) dec_refuse(d, "vector of another size");
        for (uint32_t k = 0; k < count; k++) slots[8 + k] = dec_src(d, &e[k], c, t);
        if (result) {
            elements(d, &o[0], e);
            for (uint32_t k = 0; k < count; k++) slots[k] = e[k].kind == MG_OPND_sink ? 0 : dec_reg(d, &e[k]);
        }
    } else {
        for (uint32_t k = 0; k < n_values; k++) s[k] = dec_src(d, &o[at + 1 + k], c, t);
        if (result && o[0].kind == MG_OPND_reg) {
            if (dec_reg_class(d, &o[0]) != c) dec_refuse(d, "destination register of another size");
            dst = dec_reg(d, &o[0]);
        } else if (result && o[0].kind != MG_OPND_sink)
            dec_refuse(d, "unsupported destination");
    }
    uint8_t sub = proto.sub, vec = proto.vec, bytes = proto.bytes;
    if (mg_form_has(form, MG_MOD_shared__cluster)) {
        struct emu_op at_cluster;
        dec_cluster_address(d, &at_cluster, &o[at]);
        proto = at_cluster;
    } else
        dec_address(d, &proto, &o[at], form->space);
    if (proto.space == MG_SPACE_local || proto.space == MG_SPACE_const || proto.space == MG_SPACE_param)
        dec_refuse(d, "unsupported instruction");
    if (opcode == EMU_OP_red_add && (proto.space == MG_SPACE_global || proto.space == MG_SPACE_generic) &&
        !(proto.flags & (EMU_OF_BASE_NONE | EMU_OF_BASE_W)))
        opcode = c == EMU_D ? EMU_OP_red_add_d : EMU_OP_red_add_w;
    if (dec_checks(d)) {
        struct emu_op access = proto;
        bool orders = sub == EMU_ATOM_CAS || sub == EMU_ATOM_EXCH || mg_form_has(form, MG_MOD_acquire) ||
                      mg_form_has(form, MG_MOD_release) || mg_form_has(form, MG_MOD_acq_rel);
        bool sets = dec_check_sets(d, form, result ? &o[0] : NULL);
        access.sub =
            (uint8_t)(EMU_CHECK_READ | EMU_CHECK_WRITE | (orders ? EMU_CHECK_SYNC : 0) | (sets ? EMU_CHECK_SETS : 0));
        access.mode = EMU_CK_ATOMIC;
        access.bytes = bytes;
        access.vec = vec;
        access.flags = (uint8_t)(access.flags | (c == EMU_D ? EMU_OF_WIDE : 0));
        access.slots = vec > 1 ? mg_arena_copy(&d->code->arena, slots + 8, vec * sizeof *slots) : NULL;
        access.a.s[1] = s[0];
        dec_check_access(d, &access);
        dec_race_access(d, form, &access, result && !(o[0].kind == MG_OPND_sink));
        access.sub = sub;
        dec_defined_access(d, &access, form, &o[at], &o[at + 1], n_values, result ? &o[0] : NULL);
    }
    struct emu_op *op = dec_emit_inst(d, opcode, EMU_CTL_NONE);
    op->off = proto.off;
    op->space = proto.space;
    op->cache = proto.cache;
    op->flags = (uint8_t)(proto.flags | EMU_OF_READS | EMU_OF_WRITES |
                          (result && !dec_is_probe(d, d->node) ? EMU_OF_SYNC : 0) | (c == EMU_D ? EMU_OF_WIDE : 0));
    op->a.s[0] = proto.a.s[0];
    op->a.s[1] = s[0];
    op->a.s[2] = s[1];
    op->a.d = dst;
    op->sub = sub;
    op->vec = vec;
    op->bytes = bytes;
    op->type = (uint8_t)t;
    if (vec > 1) op->slots = mg_arena_copy(&d->code->arena, slots, sizeof slots);
}

void dec_memory(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o, uint32_t n)
{
    switch ((enum mg_op)form->op) {
    case MG_OP_ld:
    case MG_OP_ldu:
        load_store(d, form, o, n, false);
        break;
    case MG_OP_st:
        load_store(d, form, o, n, true);
        break;
    case MG_OP_atom:
        atomic(d, form, o, n, true);
        break;
    default:
        atomic(d, form, o, n, false);
        break;
    }
}
