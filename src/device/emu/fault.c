/* Faults of running kernels: one clear line with place and cause, then out by longjmp; and the reads
 * that are let pass with such a line. */
#include "device/emu/emu.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/demangle.h"
#include "device/mem.h"

enum { LEAST_ADDRESS = 65536 }; /* Linux as it is set up maps nothing below */

/* The .loc in force at a node, the last one before it in the body: file and line, NULL without. */
const char *emu_source_of(const struct mg_module *m, mg_id func, mg_id node, uint32_t *line)
{
    const struct mg_loc *loc = NULL;
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind == MG_NODE_loc) loc = &m->locs.at[n->ref];
        if (id == node) break;
    }
    for (uint32_t i = 1; loc && i < m->files.n; i++)
        if (m->files.at[i].index == loc->file) {
            *line = loc->line;
            return mg_name(m, m->files.at[i].path);
        }
    *line = 0;
    return NULL;
}

void emu_variable_words(const struct mg_module *m, const struct mg_var *v, char *out, size_t n)
{
    struct mg_buf b = MG_BUF_INIT;
    const char *name = mg_name(m, v->name), *local = NULL;
    mg_demangle_add(&b, name, SIZE_MAX);
    for (const char *c = b.at; c && !strncmp(name, "_ZZ", 3) && (c = strstr(c, "::")); c += 2) local = c + 2;
    snprintf(out, n, "%s", local ? local : b.at ? b.at : ""); /* of a function: without it */
    mg_buf_release(&b);
}

/* A kernel's twin reaches the variables of the program's module by address. */
bool emu_variable_name(struct mg_device *dev, const struct mg_alloc *a, char *out, size_t n)
{
    bool found = false;
    if (a->kind != MG_ALLOC_GLOBAL && a->kind != MG_ALLOC_CONST && a->kind != MG_ALLOC_MANAGED) return false;
    pthread_mutex_lock(&dev->lock);
    for (const struct mg_dmod *mod = dev->mods; mod && !found; mod = mod->next)
        for (uint32_t i = 1; mod->globals && i < mod->ir->vars.n && !found; i++)
            if (mod->globals[i].address == a->base) {
                emu_variable_words(mod->ir, &mod->ir->vars.at[i], out, n);
                found = true;
            }
    pthread_mutex_unlock(&dev->lock);
    return found;
}

void emu_place(const struct mg_module *m, mg_id func, mg_id node, struct mg_buf *out)
{
    uint32_t line;
    const char *file = emu_source_of(m, func, node, &line);
    mg_buf_printf(out, "PTX line %u", m->nodes.at[node].line);
    if (file) mg_buf_printf(out, ", %s:%u", file, line);
}

/* Operations that the decoder added have no node: that of the next one. */
static mg_id node_of(const struct emu_frame *f, const struct emu_op *op)
{
    mg_id node = op->node;
    for (const struct emu_op *p = op; !node && p < f->fn->ops + f->fn->n_ops; p++) node = p->node;
    return node;
}

/* "kernel K: <text> at <place>, CTA (..), thread (..)" */
static void describe_place(struct emu_frame *f, const struct emu_op *op, int lane, const char *text, struct mg_buf *b)
{
    const struct emu_warp *w = f->w;
    const struct mg_module *m = f->fn->mod->ir;
    const struct emu_code *code = f->wk->l->code;
    mg_buf_printf(b, "kernel %s: %s at ", code->kernel->name, text);
    if (f->fn->id != code->kernel->func) mg_buf_printf(b, "function %s, ", mg_name(m, m->funcs.at[f->fn->id].name));
    emu_place(m, f->fn->id, node_of(f, op), b);
    mg_buf_printf(b, ", CTA (%u,%u,%u), thread (%u,%u,%u)", w->cta->id[0], w->cta->id[1], w->cta->id[2],
                  w->tid[0][lane], w->tid[1][lane], w->tid[2][lane]);
}

static bool is_global(const struct emu_op *op)
{
    return op->space == MG_SPACE_global || op->space == MG_SPACE_generic || op->space == MG_SPACE_const;
}

/* "arg 2 `out`": a name that a compiler made says nothing. argument: its number + 1. */
static void tell_argument(const struct emu_frame *f, uint32_t argument, struct mg_buf *b)
{
    const struct mg_module *m = f->fn->mod->ir;
    const char *name = mg_name(m, m->vars.at[m->funcs.at[f->fn->id].first_param + argument - 1].name);
    mg_buf_printf(b, "arg %u", argument - 1);
    if (!strstr(name, "_param_")) mg_buf_printf(b, " `%s`", name);
}

/* Nobody's memory lies so far below: the address is an index or a member of what was a null pointer. */
static void tell_null(const struct emu_frame *f, mg_id node, struct mg_buf *b)
{
    uint32_t argument = emu_fault_argument(f, node, NULL);
    mg_buf_adds(b, "; a null pointer");
    if (!argument) return;
    mg_buf_adds(b, ", ");
    tell_argument(f, argument, b);
}

/* "the buffer of arg 2 `out`, 0x7f.. of 1024 bytes". */
static void tell_buffer(const struct emu_frame *f, uint32_t argument, const struct mg_alloc *a, struct mg_buf *b)
{
    char variable[160];
    if (argument) {
        mg_buf_adds(b, "the buffer of ");
        tell_argument(f, argument, b);
    } else if (emu_variable_name(f->wk->l->dev, a, variable, sizeof variable))
        mg_buf_printf(b, "the variable `%s`", variable);
    else
        mg_buf_adds(b, "the nearest allocation");
    mg_buf_printf(b, ", 0x%" PRIx64 " of %" PRIu64 " bytes", a->base, a->bytes);
}

/* Of the allocations on both sides of an address that lies in none: below it where both are as far. */
static const struct mg_alloc *nearer(const struct mg_alloc *below, const struct mg_alloc *above, uint64_t address)
{
    if (!below->base || !above->base) return below->base ? below : above;
    return address - (below->base + below->bytes) <= above->base - address ? below : above;
}

/* Where the address lies, as seen from the buffer of the argument that it was made from, or from what is nearest. */
static void tell_place(const struct emu_frame *f, mg_id node, uint64_t address, struct mg_buf *b)
{
    struct mg_alloc below = {0}, above = {0}, near;
    if (address < LEAST_ADDRESS) {
        tell_null(f, node, b);
        return;
    }
    uint32_t argument = emu_fault_argument(f, node, &near);
    mg_mem_nearest(address, &below, &above);
    if (mg_mem_is_own(address))
        mg_buf_adds(b, "; in Margay's own memory");
    else if (mg_mem_find_freed(address, &near)) {
        mg_buf_printf(b, "; inside 0x%" PRIx64 " of %" PRIu64 " bytes, which was freed", near.base, near.bytes);
        return;
    } else if (below.base && address - below.base < below.bytes) {
        mg_buf_printf(b, "; inside 0x%" PRIx64 " of %" PRIu64 " bytes%s", below.base, below.bytes,
                      below.readonly ? ", which is read-only" : "");
        return;
    }
    if (!argument && !below.base && !above.base) {
        mg_buf_adds(b, "; nothing is allocated");
        return;
    }
    if (!argument) near = *nearer(&below, &above, address);
    bool behind = address > near.base;
    mg_buf_printf(b, "; %" PRIu64 " bytes %s ", behind ? address - (near.base + near.bytes) : near.base - address,
                  behind ? "past the end of" : "before");
    tell_buffer(f, argument, &near, b);
}

static void leave(struct emu_frame *f, const struct emu_op *op, enum mg_fault_kind kind, int lane, uint64_t address,
                  uint32_t bytes, const char *text)
{
    struct emu_launch *l = f->wk->l;
    pthread_mutex_lock(&l->lock);
    if (l->fault->kind == MG_FAULT_NONE) {
        struct mg_fault *o = l->fault;
        const struct emu_warp *w = f->w;
        struct mg_buf b = MG_BUF_INIT;
        describe_place(f, op, lane, text, &b);
        *o = (struct mg_fault){.kind = kind, .address = address, .bytes = bytes, .write = op->flags & EMU_OF_WRITES};
        o->ptx_line = f->fn->mod->ir->nodes.at[node_of(f, op)].line;
        o->file = emu_source_of(f->fn->mod->ir, f->fn->id, node_of(f, op), &o->line);
        for (int k = 0; k < 3; k++) o->cta[k] = w->cta->id[k], o->thread[k] = w->tid[k][lane];
        if (kind == MG_FAULT_ADDRESS && is_global(op)) tell_place(f, node_of(f, op), address, &b);
        snprintf(o->text, sizeof o->text, "%s", b.at);
        mg_buf_release(&b);
    }
    pthread_mutex_unlock(&l->lock);
    atomic_store(&l->stop, true);
    longjmp(f->wk->out, 1);
}

/* ---- reads that stray --------------------------------------------------------------------------- */

enum { STRAYS_MAX = 64 };

static bool told_before(struct mg_device *dev, const struct emu_func *fn, mg_id node)
{
    uint64_t key = fn->mod->seq << 32 | node;
    pthread_mutex_lock(&dev->lock);
    bool before = mg_map_get(&dev->strays, key, NULL);
    if (!before) mg_map_set(&dev->strays, key, 1);
    pthread_mutex_unlock(&dev->lock);
    return before;
}

static void note_stray(struct emu_frame *f, const struct emu_op *op, int lane, uint64_t address, uint32_t bytes,
                       const struct mg_alloc *near, struct mg_stray *s)
{
    const struct mg_module *m = f->fn->mod->ir;
    const struct emu_warp *w = f->w;
    mg_id node = node_of(f, op);
    struct mg_buf b = MG_BUF_INIT;
    char text[128];
    snprintf(text, sizeof text, "out-of-bounds read of %u bytes at global address 0x%" PRIx64, bytes, address);
    *s = (struct mg_stray){.ptx_line = m->nodes.at[node].line,
                           .address = address,
                           .bytes = bytes,
                           .allocation = near->base,
                           .allocation_bytes = near->bytes,
                           .times = 1};
    s->file = emu_source_of(m, f->fn->id, node, &s->line);
    for (int k = 0; k < 3; k++) s->cta[k] = w->cta->id[k], s->thread[k] = w->tid[k][lane];
    s->first = !told_before(f->wk->dev, f->fn, node);
    describe_place(f, op, lane, text, &b);
    tell_place(f, node, address, &b);
    mg_buf_adds(&b, "; read as 0, the launch goes on (--check stops it)");
    snprintf(s->text, sizeof s->text, "%s", b.at);
    mg_buf_release(&b);
}

/* The addresses around one beside an allocation where every read lies beside it; none where that is not soon told. */
static struct emu_range find_beside(const struct mg_alloc *below, const struct mg_alloc *above, bool behind,
                                    uint64_t far)
{
    uint64_t end = below->base + below->bytes, begin = above->base;
    struct emu_range r = {behind ? end : begin - far, behind ? end + far : begin};
    bool room = !below->base || !begin || begin - end > 2 * far;
    return room && !mg_mem_has_freed(r.lo, r.hi) ? r : (struct emu_range){0};
}

/* Does the read lie whole in the so many bytes before or behind a device allocation, and is that the nearest one?
 * Memory that was freed is nobody's. */
static bool lies_beside(uint64_t address, uint32_t bytes, uint64_t far, struct mg_alloc *out, struct emu_range *beside)
{
    struct mg_alloc below = {0}, above = {0};
    mg_mem_nearest(address, &below, &above);
    if (below.base && address - below.base < below.bytes) return false;
    *out = *nearer(&below, &above, address);
    uint64_t away = address < out->base ? out->base - address : address + bytes - (out->base + out->bytes);
    if (!out->base || out->kind != MG_ALLOC_DEVICE || away < bytes || away > far || mg_mem_find_freed(address, NULL))
        return false;
    *beside = find_beside(&below, &above, address > out->base, far);
    return true;
}

/* Hardware sees accesses to memory that is not mapped, in pages of 2 MiB; programs are used to reading an element or a
 * row too many and to dropping what came. Such a read passes when it is a plain one and lies beside an allocation. */
bool emu_stray(struct emu_frame *f, const struct emu_op *op, int lane, uint64_t address, uint32_t bytes,
               struct emu_range *beside)
{
    struct emu_launch *l = f->wk->l;
    uint64_t far = f->wk->dev->opts.stray_bytes;
    struct mg_alloc near;
    if (!far || op->flags & EMU_OF_WRITES || (op->space != MG_SPACE_global && op->space != MG_SPACE_generic) ||
        !lies_beside(address, bytes, far, &near, beside))
        return false;
    uint32_t line = f->fn->mod->ir->nodes.at[node_of(f, op)].line;
    pthread_mutex_lock(&l->lock);
    uint32_t i = 0;
    while (i < l->strays.n && l->strays.at[i].ptx_line != line) i++;
    if (i < l->strays.n)
        l->strays.at[i].times++;
    else if (i < STRAYS_MAX)
        note_stray(f, op, lane, address, bytes, &near, mg_vec_push(&l->strays));
    pthread_mutex_unlock(&l->lock);
    return true;
}

void emu_stray_again(struct emu_frame *f, const struct emu_op *op, uint32_t times)
{
    struct emu_launch *l = f->wk->l;
    uint32_t line = f->fn->mod->ir->nodes.at[node_of(f, op)].line;
    if (!times) return;
    pthread_mutex_lock(&l->lock);
    for (uint32_t i = 0; i < l->strays.n; i++)
        if (l->strays.at[i].ptx_line == line) l->strays.at[i].times += times;
    pthread_mutex_unlock(&l->lock);
}

void emu_fault(struct emu_frame *f, const struct emu_op *op, enum mg_fault_kind kind, int lane, uint64_t address,
               uint32_t bytes, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text - 40, fmt, ap);
    va_end(ap);
    if (kind == MG_FAULT_MISALIGNED && n > 0 && (size_t)n < sizeof text - 40)
        snprintf(text + n, 40, " at address 0x%" PRIx64, address);
    leave(f, op, kind, lane, address, bytes, text);
    mg_unreachable();
}

void emu_fault_access(struct emu_frame *f, const struct emu_op *op, int lane, uint64_t address, uint32_t bytes)
{
    char text[256];
    const char *what = op->flags & EMU_OF_WRITES ? op->flags & EMU_OF_READS ? "atomic" : "write" : "read";
    const char *space = op->space == MG_SPACE_generic ? "generic" : mg_space_name(op->space);
    if (op->space == MG_SPACE_shared || op->space == MG_SPACE_local)
        snprintf(text, sizeof text,
                 "out-of-bounds %s of %u bytes at %s address 0x%" PRIx64 " (the %s has %" PRIu64 " bytes)", what, bytes,
                 space, address, op->space == MG_SPACE_shared ? "CTA" : "thread",
                 op->space == MG_SPACE_shared ? f->shared_bytes : f->local_bytes);
    else
        snprintf(text, sizeof text, "out-of-bounds %s of %u bytes at %s address 0x%" PRIx64, what, bytes, space,
                 address);
    leave(f, op, MG_FAULT_ADDRESS, lane, address, bytes, text);
    mg_unreachable();
}
