/* --check, while decoding: numbers for the instructions that findings name, and operations of ours
 * beside theirs. These are not instructions: they are counted nowhere and change no schedule. */
#include "device/emu/check.h"
#include "device/emu/decode.h"

#include <string.h>

bool dec_checks(const struct decoder *d)
{
    return d->mod->dev->opts.check && d->node && !(d->m->nodes.at[d->node].flags & (MG_NF_META | MG_NF_PROBE));
}

uint32_t dec_check_site(struct decoder *d)
{
    struct emu_code *c = d->code;
    if (!dec_checks(d)) return 0;
    if (!c->sites.n) *mg_vec_push(&c->sites) = (struct emu_site){0};
    struct emu_site *last = &c->sites.at[c->sites.n - 1];
    if (last->fn != d->fn || last->node != d->node)
        *mg_vec_push(&c->sites) = (struct emu_site){.fn = d->fn, .node = d->node};
    return c->sites.n - 1;
}

static bool is_read(const struct mg_module *m, mg_id func, mg_id reg)
{
    mg_id ids[64];
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        if (m->nodes.at[id].kind != MG_NODE_inst) continue;
        uint32_t n = mg_node_uses(m, id, ids, MG_COUNT_OF(ids));
        if (n > MG_COUNT_OF(ids)) return true;
        for (uint32_t i = 0; i < n; i++)
            if (ids[i] == reg) return true;
    }
    return false;
}

bool dec_check_sets(struct decoder *d, const struct mg_form *form, const struct mg_opnd *result)
{
    uint32_t site = dec_check_site(d);
    bool unread = !result || result->kind == MG_OPND_sink ||
                  (result->kind == MG_OPND_reg && !is_read(d->m, d->fn->id, result->id));
    bool sets = mg_form_has(form, MG_MOD_exch) && unread;
    if (site) d->code->sites.at[site].combines = !sets;
    return sets;
}

struct emu_op *dec_emit_check(struct decoder *d, enum emu_opcode opcode)
{
    const struct mg_node *n = &d->m->nodes.at[d->node];
    uint32_t guard = 0;
    if (n->guard) {
        struct mg_opnd g = mg_o_reg(n->guard);
        guard = dec_reg(d, &g);
    }
    struct emu_op *op = dec_emit(d, opcode); /* looks at its guard itself */
    op->guard = guard;
    op->guard_flip = n->flags & MG_NF_GUARD_NOT ? UINT32_MAX : 0;
    op->site = dec_check_site(d);
    return op;
}

struct emu_op *dec_emit_check_of(struct decoder *d, enum emu_opcode opcode, const struct emu_op *access)
{
    struct emu_op *op = dec_emit_check(d, opcode);
    op->off = access->off;
    op->space = access->space;
    op->flags = access->flags;
    op->a.s[0] = access->a.s[0];
    op->a.s[1] = access->a.s[1];
    op->slots = access->slots;
    op->bytes = access->bytes;
    op->vec = access->vec;
    return op;
}

void dec_check_access(struct decoder *d, const struct emu_op *access)
{
    if (!dec_checks(d) || (access->space != MG_SPACE_shared && access->space != MG_SPACE_generic)) return;
    struct emu_op *op = dec_emit_check_of(d, EMU_OP_check_access, access);
    op->sub = access->sub;
    op->mode = access->mode;
    uint8_t fine = access->bytes >= 8 ? 0 : access->bytes >= 4 ? 1 : access->bytes >= 2 ? 2 : 3;
    if (access->space == MG_SPACE_shared && fine > atomic_load(&d->code->check_fine))
        atomic_store(&d->code->check_fine, fine);
}

void dec_check_after(struct decoder *d, enum emu_opcode opcode, const struct emu_op *of)
{
    if (!dec_checks(d)) return;
    struct emu_op *op = dec_emit_check(d, opcode);
    op->ext = of->ext;
    op->off = of->off;
    op->a.cc = of->a.cc;
    op->a.d = of->a.d;
}
