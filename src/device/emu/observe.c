/* The watched run: the witness (instructions executed per text position, counted without the CFG)
 * and the event stream. Only launches that asked for either come here. */
#include "device/emu/emu.h"

#include <fnmatch.h>
#include <string.h>

static void count(struct emu_frame *f, const struct emu_op *op, uint32_t mask)
{
    struct mg_dmod *mod = f->fn->mod;
    if (!mod->threads || !op->node) return;
    atomic_fetch_add_explicit(&mod->threads[op->node], emu_popc(mask), memory_order_relaxed);
    atomic_fetch_add_explicit(&mod->warps[op->node], 1, memory_order_relaxed);
}

static const struct mg_observe_opts *traced(const struct emu_warp *w)
{
    const struct mg_observe_opts *t = w->wk->l->trace;
    if (!t) return NULL;
    if (t->n_ctas && (w->cta->linear < t->first_cta || w->cta->linear - t->first_cta >= t->n_ctas)) return NULL;
    if (t->kernel_glob && fnmatch(t->kernel_glob, w->wk->l->code->kernel->name, 0)) return NULL;
    return t;
}

static struct mg_event event(enum mg_event_kind kind, struct emu_frame *f, const struct emu_op *op, uint32_t active,
                             uint32_t mask)
{
    const struct emu_cta *c = f->w->cta;
    struct mg_event ev = {.kind = kind,
                          .kernel = f->wk->l->code->kernel,
                          .func_ix = f->fn->id,
                          .node = op->node,
                          .ptx_line = f->fn->mod->ir->nodes.at[op->node].line,
                          .cta = {c->id[0], c->id[1], c->id[2]},
                          .warp = f->w->ix,
                          .mask = mask,
                          .active = active};
    return ev;
}

static void gather_values(const struct emu_op *op, const char *regs, bool store, char *out)
{
    unsigned all = (unsigned)op->bytes * op->vec;
    for (unsigned k = 0; k < op->vec; k++) {
        uint32_t off = op->slots ? op->slots[k] : store ? op->a.s[1] : op->a.d;
        unsigned step = op->bytes == 16 ? 16 : op->flags & EMU_OF_WIDE ? 8 : 4;
        for (uint32_t i = 0; i < EMU_LANES; i++)
            memcpy(out + i * all + k * op->bytes, regs + off + i * step, op->bytes);
    }
}

/* Runs one straight operation, watched. */
void emu_observe(struct emu_warp *w, const struct emu_op *op, char *regs, uint32_t mask)
{
    struct emu_frame *f = EMU_FRAME(regs);
    const struct mg_observe_opts *t = op->node ? traced(w) : NULL;
    count(f, op, mask);
    if (!t) {
        op->a.fn(&op->a, regs, mask);
        return;
    }
    uint32_t on = op->guard ? mask & (*(const uint32_t *)(regs + op->guard) ^ op->guard_flip) : mask;
    if (!(op->flags & (EMU_OF_READS | EMU_OF_WRITES))) {
        struct mg_event ev = event(MG_EVENT_INST, f, op, mask, on);
        op->a.fn(&op->a, regs, mask);
        t->fn(t->user, &ev);
        return;
    }
    uint64_t addresses[EMU_LANES];
    char values[EMU_LANES * 128];
    bool atomic = op->flags & EMU_OF_READS && op->flags & EMU_OF_WRITES, store = op->flags & EMU_OF_WRITES;
    struct mg_event ev = event(MG_EVENT_MEMORY, f, op, mask, on);
    ev.space = op->space;
    ev.write = store;
    ev.bytes = (uint32_t)op->bytes * op->vec;
    ev.addresses = addresses;
    ev.values = atomic ? NULL : values;
    emu_plain_addresses(f, op, regs, addresses);
    if (store && !atomic) gather_values(op, regs, true, values);
    op->a.fn(&op->a, regs, mask);
    if (!store) gather_values(op, regs, false, values);
    t->fn(t->user, &ev);
}

/* Announces a control operation before it takes effect. */
void emu_observe_ctl(struct emu_warp *w, const struct emu_op *op, char *regs, uint32_t mask, uint32_t taken)
{
    static const uint8_t kinds[] = {
        [EMU_CTL_BRA] = MG_EVENT_BRANCH, [EMU_CTL_BRX] = MG_EVENT_BRANCH,   [EMU_CTL_CALL] = MG_EVENT_CALL,
        [EMU_CTL_CALLI] = MG_EVENT_CALL, [EMU_CTL_BUILTIN] = MG_EVENT_CALL, [EMU_CTL_RET] = MG_EVENT_RETURN,
        [EMU_CTL_EXIT] = MG_EVENT_EXIT,  [EMU_CTL_TRAP] = MG_EVENT_INST,    [EMU_CTL_BAR] = MG_EVENT_BARRIER,
        [EMU_CTL_SYNC] = MG_EVENT_INST};
    struct emu_frame *f = EMU_FRAME(regs);
    const struct mg_observe_opts *t = op->node ? traced(w) : NULL;
    count(f, op, mask);
    if (!t) return;
    struct mg_event ev = event(kinds[op->ctl], f, op, mask, taken);
    ev.taken = taken;
    t->fn(t->user, &ev);
}

void emu_positions(struct mg_dmod *mod, void (*fn)(void *, mg_id, mg_id, uint64_t, uint64_t), void *user)
{
    const struct mg_module *m = mod->ir;
    for (uint32_t f = 1; mod->threads && f < m->funcs.n; f++) {
        if (!m->funcs.at[f].defined) continue;
        MG_EACH_NODE(m, &m->funcs.at[f], id)
        if (m->nodes.at[id].kind == MG_NODE_inst)
            fn(user, f, id, atomic_load(&mod->threads[id]), atomic_load(&mod->warps[id]));
    }
}
