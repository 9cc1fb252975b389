/* Faults of running kernels: one clear line with place and cause, then out by longjmp. */
#include "device/emu/emu.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/mem.h"

/* The .loc in force at a node: the last one before it in the body. */
void emu_place(const struct mg_module *m, mg_id func, mg_id node, struct mg_buf *out)
{
    const struct mg_loc *loc = NULL;
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind == MG_NODE_loc) loc = &m->locs.at[n->ref];
        if (id == node) break;
    }
    mg_buf_printf(out, "PTX line %u", m->nodes.at[node].line);
    if (!loc) return;
    for (uint32_t i = 1; i < m->files.n; i++)
        if (m->files.at[i].index == loc->file) {
            mg_buf_printf(out, ", %s:%u", mg_name(m, m->files.at[i].path), loc->line);
            return;
        }
}

static void leave(struct emu_frame *f, const struct emu_op *op, enum mg_fault_kind kind, int lane, uint64_t address, uint32_t bytes, const char *text)
{
    struct emu_launch *l = f->wk->l;
    pthread_mutex_lock(&l->lock);
    if (l->fault->kind == MG_FAULT_NONE) {
        struct mg_fault *o = l->fault;
        const struct emu_warp *w = f->w;
        const struct mg_module *m = f->fn->mod->ir;
        struct mg_buf b = MG_BUF_INIT;
        mg_buf_printf(&b, "kernel %s: %s at ", l->code->kernel->name, text);
        if (f->fn->id != l->code->kernel->func) mg_buf_printf(&b, "function %s, ", mg_name(m, m->funcs.at[f->fn->id].name));
        mg_id node = op->node;
        for (const struct emu_op *p = op; !node && p < f->fn->ops + f->fn->n_ops; p++) node = p->node;
        emu_place(m, f->fn->id, node, &b);
        *o = (struct mg_fault){.kind = kind, .address = address, .bytes = bytes, .write = op->flags & EMU_OF_WRITES};
        o->ptx_line = m->nodes.at[node].line;
        for (int k = 0; k < 3; k++) o->cta[k] = w->cta->id[k], o->thread[k] = w->tid[k][lane];
        mg_buf_printf(&b, ", CTA (%u,%u,%u), thread (%u,%u,%u)", o->cta[0], o->cta[1], o->cta[2], o->thread[0], o->thread[1], o->thread[2]);
        if (kind == MG_FAULT_ADDRESS && (op->space == MG_SPACE_global || op->space == MG_SPACE_generic || op->space == MG_SPACE_const)) {
            struct mg_alloc below = {0}, above = {0};
            mg_mem_nearest(address, &below, &above);
            if (below.base && address - below.base < below.bytes)
                mg_buf_printf(&b, "; inside 0x%" PRIx64 " of %" PRIu64 " bytes%s", below.base, below.bytes, below.readonly ? ", which is read-only" : "");
            else if (below.base && (!above.base || address - (below.base + below.bytes) <= above.base - address))
                mg_buf_printf(&b, "; %" PRIu64 " bytes past the end of the nearest allocation, 0x%" PRIx64 " of %" PRIu64 " bytes", address - (below.base + below.bytes), below.base, below.bytes);
            else if (above.base)
                mg_buf_printf(&b, "; %" PRIu64 " bytes before the nearest allocation, 0x%" PRIx64 " of %" PRIu64 " bytes", above.base - address, above.base, above.bytes);
            else mg_buf_adds(&b, "; nothing is allocated");
        }
        snprintf(o->text, sizeof o->text, "%s", b.at);
        mg_buf_release(&b);
    }
    pthread_mutex_unlock(&l->lock);
    atomic_store(&l->stop, true);
    longjmp(f->wk->out, 1);
}

void emu_fault(struct emu_frame *f, const struct emu_op *op, enum mg_fault_kind kind, int lane, uint64_t address, uint32_t bytes, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text - 40, fmt, ap);
    va_end(ap);
    if (kind == MG_FAULT_MISALIGNED && n > 0 && (size_t)n < sizeof text - 40) snprintf(text + n, 40, " at address 0x%" PRIx64, address);
    leave(f, op, kind, lane, address, bytes, text);
    mg_unreachable();
}

void emu_fault_access(struct emu_frame *f, const struct emu_op *op, int lane, uint64_t address, uint32_t bytes)
{
    char text[256];
    const char *what = op->flags & EMU_OF_WRITES ? op->flags & EMU_OF_READS ? "atomic" : "write" : "read";
    const char *space = op->space == MG_SPACE_generic ? "generic" : mg_space_name(op->space);
    if (op->space == MG_SPACE_shared || op->space == MG_SPACE_local)
        snprintf(text, sizeof text, "out-of-bounds %s of %u bytes at %s address 0x%" PRIx64 " (the %s has %" PRIu64 " bytes)", what, bytes, space, address,
                 op->space == MG_SPACE_shared ? "CTA" : "thread", op->space == MG_SPACE_shared ? f->shared_bytes : f->local_bytes);
    else snprintf(text, sizeof text, "out-of-bounds %s of %u bytes at %s address 0x%" PRIx64, what, bytes, space, address);
    leave(f, op, MG_FAULT_ADDRESS, lane, address, bytes, text);
    mg_unreachable();
}
