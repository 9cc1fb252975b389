/* --check: undefined values in words (defined.h). */
#include "device/emu/defined.h"
#include "device/emu/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/defined.h"
#include "device/mem.h"

static const char *const spaces[] = {"", "register", "local", "shared", "global"};
static const char *const uses[] = {"branch", "address", "atomic", "copied"};
_Static_assert(MG_COUNT_OF(uses) == EMU_USE_COUNT, "a word for each");

static const char *const kinds[] = {[MG_ALLOC_DEVICE] = "device memory",
                                    [MG_ALLOC_HOST] = "pinned memory",
                                    [MG_ALLOC_REGISTERED] = "registered memory",
                                    [MG_ALLOC_MANAGED] = "managed memory",
                                    [MG_ALLOC_GLOBAL] = "a module's variable",
                                    [MG_ALLOC_CONST] = "a constant variable",
                                    [MG_ALLOC_HEAP] = "memory of malloc()",
                                    [MG_ALLOC_INTERNAL] = "memory",
                                    [MG_ALLOC_VMM] = "mapped memory"};

static void name_allocation(struct emu_launch *l, uint64_t address, struct mg_finding *f)
{
    struct mg_alloc a;
    if (f->space == spaces[EMU_ORIGIN_SHARED]) {
        emu_check_variable(l, f);
        return;
    }
    if (f->space != spaces[EMU_ORIGIN_GLOBAL] || !mg_mem_find(address, &a)) return;
    if (!emu_variable_name(l->dev, &a, f->allocation, sizeof f->allocation))
        snprintf(f->allocation, sizeof f->allocation, "%s", kinds[a.kind]);
    f->allocation_address = a.base;
    f->allocation_bytes = a.bytes;
}

static void tell_origin(struct emu_launch *l, const struct emu_found *x, const struct mg_finding *f, struct mg_buf *b)
{
    const struct emu_site *s = &l->code->sites.at[x->site];
    const struct mg_module *m = s->fn->mod->ir;
    if (f->space == spaces[EMU_ORIGIN_REGISTER]) {
        mg_buf_adds(b, "register ");
        mg_reg_text(m, x->at, b);
        mg_buf_adds(b, " was not written");
        return;
    }
    mg_buf_printf(b, "%s memory that nobody has written", f->space);
    if (!x->other_site) return;
    mg_buf_adds(b, x->other_site == x->site ? ", read there" : ", read at ");
    if (x->other_site != x->site) emu_check_place(l, x->other_site, b);
    mg_buf_printf(b, "; address 0x%" PRIx64, f->address);
    if (f->allocation[0]) mg_buf_printf(b, " in %s of %" PRIu64 " bytes", f->allocation, (uint64_t)f->allocation_bytes);
}

void emu_defined_describe(struct emu_launch *l, const struct emu_found *x, struct mg_finding *f)
{
    static const char *const said[] = {
        "an undefined value decides the branch", "an undefined value is part of the address",
        "an undefined value is an operand of the atomic", "an undefined value is stored and was copied to the host"};
    struct mg_buf b = MG_BUF_INIT;
    uint64_t address = (uint64_t)x->n[1] << 32 | x->n[0];
    f->use = uses[x->misuse];
    snprintf(f->what, sizeof f->what, "%s", f->use);
    f->space = spaces[x->other_what];
    f->at.access = x->misuse == EMU_USE_COPIED   ? "write"
                   : x->misuse == EMU_USE_BRANCH ? "branch"
                   : x->misuse == EMU_USE_ATOMIC ? "atomic"
                                                 : "address";
    f->other.access = "read";
    f->address = x->other_what == EMU_ORIGIN_REGISTER ? 0 : address;
    if (x->other_what == EMU_ORIGIN_REGISTER) {
        struct mg_buf r = MG_BUF_INIT;
        mg_reg_text(l->code->sites.at[x->site].fn->mod->ir, x->at, &r);
        snprintf(f->allocation, sizeof f->allocation, "%s", r.at ? r.at : "");
        mg_buf_release(&r);
    } else
        name_allocation(l, address, f);
    const uint32_t *c = f->cta, *t = f->at.thread;
    mg_buf_printf(&b, "kernel %s: uninitialised: %s at ", l->code->kernel->name, said[x->misuse]);
    emu_check_place(l, x->site, &b);
    mg_buf_printf(&b, ", CTA (%u,%u,%u), thread (%u,%u,%u): ", c[0], c[1], c[2], t[0], t[1], t[2]);
    tell_origin(l, x, f, &b);
    mg_buf_printf(&b, " (%" PRIu64 " %s)", f->times, f->times == 1 ? "time" : "times");
    snprintf(f->text, sizeof f->text, "%s", b.at);
    mg_buf_release(&b);
    if (x->misuse != EMU_USE_COPIED) return;
    f->copied = x->what;
    mg_defined_store_tell(x->what, f->text);
}

void emu_defined_unseen(struct emu_launch *l, struct mg_launch_stats *stats)
{
    struct emu_code *c = l->code;
    pthread_mutex_lock(&c->kernel->lock); /* indirect calls add instructions while other launches run */
    struct mg_unseen *list = c->unseen.n ? malloc(c->unseen.n * sizeof *list) : NULL;
    if (list) {
        memcpy(list, c->unseen.at, c->unseen.n * sizeof *list);
        stats->unseen = list;
        stats->n_unseen = c->unseen.n;
    }
    pthread_mutex_unlock(&c->kernel->lock);
}
