/* --check: findings. Each worker keeps its own, one for each pair of instructions; they are put together
 * when it ends: the first of the lowest CTA stands for all, so that a report does not depend on the
 * number of workers where the accesses do not. */
#include "device/emu/check.h"
#include "device/emu/defined.h"
#include "device/emu/race.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PAIRS = 256 };

static void add_found(struct emu_findings *s, const struct emu_found *x)
{
    uint32_t lo = MG_MIN(x->site, x->other_site), hi = MG_MAX(x->site, x->other_site);
    uint64_t key = (uint64_t)(x->kind * 8u + x->misuse) << 58 | (uint64_t)hi << 29 | lo, at;
    if (mg_map_get(&s->at, key, &at)) {
        struct emu_found *old = &s->list.at[at];
        uint64_t times = old->times + x->times;
        if (x->linear < old->linear) *old = *x;
        old->times = times;
    } else if (s->list.n < MOST_PAIRS) {
        mg_map_set(&s->at, key, s->list.n);
        *mg_vec_push(&s->list) = *x;
    } else
        s->lost += x->times;
}

void emu_check_found(struct emu_frame *f, const struct emu_found *x)
{
    struct emu_worker *wk = f->wk;
    if (!wk->found) wk->found = calloc(1, sizeof *wk->found);
    if (wk->found) add_found(wk->found, x);
}

static void release(struct emu_findings *s)
{
    mg_map_release(&s->at);
    mg_vec_release(&s->list);
    free(s);
}

void emu_check_worker_end(struct emu_worker *wk)
{
    struct emu_launch *l = wk->l;
    struct emu_findings *s = wk->found;
    if (!s) return;
    pthread_mutex_lock(&l->lock);
    if (!l->found)
        l->found = s;
    else {
        for (uint32_t i = 0; i < s->list.n; i++) add_found(l->found, &s->list.at[i]);
        l->found->lost += s->lost;
        release(s);
    }
    pthread_mutex_unlock(&l->lock);
    wk->found = NULL;
}

/* ---- words ---------------------------------------------------------------------------------------- */

static const char *word_of(unsigned what)
{
    unsigned kind = what >> 4;
    bool reads = what & EMU_CHECK_READ, writes = what & EMU_CHECK_WRITE;
    return kind == EMU_CK_COPY                        ? "copy"
           : kind == EMU_CK_ATOMIC && reads && writes ? "atomic"
           : writes                                   ? "write"
                                                      : "read";
}

static void fill_at(struct emu_launch *l, struct mg_finding_at *at, uint32_t site, uint32_t thread, unsigned what)
{
    const struct emu_site *s = &l->code->sites.at[site];
    const struct mg_module *m = s->fn->mod->ir;
    const struct mg_dim3 *b = &l->l->block;
    at->ptx_line = m->nodes.at[s->node].line;
    at->file = emu_source_of(m, s->fn->id, s->node, &at->line);
    at->thread[0] = thread % b->x, at->thread[1] = thread / b->x % b->y, at->thread[2] = thread / b->x / b->y;
    at->access = word_of(what);
}

void emu_check_place(struct emu_launch *l, uint32_t site, struct mg_buf *b)
{
    const struct emu_site *s = &l->code->sites.at[site];
    const struct mg_module *m = s->fn->mod->ir;
    if (s->fn->id != l->code->kernel->func || s->fn->mod != l->code->kernel->mod)
        mg_buf_printf(b, "function %s, ", mg_name(m, m->funcs.at[s->fn->id].name));
    emu_place(m, s->fn->id, s->node, b);
}

/* The variable of shared memory around an address. */
void emu_check_variable(struct emu_launch *l, struct mg_finding *f)
{
    const struct mg_module *m = l->code->kernel->mod->ir;
    for (uint32_t i = 1; i < m->vars.n; i++) {
        const struct mg_var *v = &m->vars.at[i];
        uint64_t at, bytes = mg_var_bytes(v);
        if (v->space != MG_SPACE_shared || !mg_map_get(&l->code->shared_at, l->code->kernel->mod->seq << 32 | i, &at))
            continue;
        if (!bytes) bytes = l->l->dyn_shared_bytes;
        if (f->address < at || f->address - at >= bytes) continue;
        emu_variable_words(m, v, f->allocation, sizeof f->allocation);
        f->allocation_address = (uint32_t)at;
        f->allocation_bytes = (uint32_t)bytes;
        return;
    }
    snprintf(f->allocation, sizeof f->allocation, "%s",
             f->address >= l->dyn_at ? "dynamic shared memory" : "shared memory");
    f->allocation_address = f->address >= l->dyn_at ? l->dyn_at : 0;
    f->allocation_bytes = f->address >= l->dyn_at ? l->l->dyn_shared_bytes : l->shared_bytes;
}

static void tell_misuse(const struct emu_found *x, struct mg_buf *b)
{
    switch ((enum emu_check_misuse)x->misuse) {
    case EMU_MISUSE_MULTIPLE:
        mg_buf_printf(b, "barrier for %u threads, not a multiple of 32,", x->n[0]);
        break;
    case EMU_MISUSE_MORE:
        mg_buf_printf(b, "barrier for %u threads in a CTA of %u", x->n[0], x->n[1]);
        break;
    case EMU_MISUSE_COUNTS:
        mg_buf_printf(b, "barrier for %u threads, where another warp asked for %u,", x->n[0], x->n[1]);
        break;
    case EMU_MISUSE_PLACES:
        mg_buf_adds(b, "lanes of one warp at different barrier instructions, where all must be at one,");
        break;
    case EMU_MISUSE_MEMBERS:
        mg_buf_printf(b, "thread outside the member mask 0x%08x that it gives", x->n[0]);
        break;
    case EMU_MISUSE_NONE:
        break;
    }
}

static void describe(struct emu_launch *l, const struct emu_found *x, struct mg_finding *f)
{
    struct mg_buf b = MG_BUF_INIT;
    *f = (struct mg_finding){
        .kind = (enum mg_finding_kind)x->kind, .address = x->at, .bytes = x->bytes, .times = x->times};
    memcpy(f->cta, x->cta, sizeof f->cta);
    memcpy(f->other_cta, x->cta, sizeof f->other_cta);
    fill_at(l, &f->at, x->site, x->thread, x->what);
    if (x->other_site) fill_at(l, &f->other, x->other_site, x->other_thread, x->other_what);
    if (x->kind == MG_FINDING_UNINIT) {
        emu_defined_describe(l, x, f);
        return;
    }
    if (x->global) {
        emu_race_describe(l, x, f);
        return;
    }
    const uint32_t *c = f->cta, *t = f->at.thread, *o = f->other.thread;
    mg_buf_printf(&b, "kernel %s: ", l->code->kernel->name);
    if (x->kind == MG_FINDING_BARRIER) {
        struct mg_buf what = MG_BUF_INIT;
        f->at.access = "barrier";
        f->other.access = x->other_site ? "barrier" : NULL;
        tell_misuse(x, &what);
        mg_buf_adds(&b, what.at);
        snprintf(f->what, sizeof f->what, "%.*s", (int)(what.at[what.n - 1] == ',' ? what.n - 1 : what.n), what.at);
        mg_buf_release(&what);
        mg_buf_adds(&b, " at ");
        emu_check_place(l, x->site, &b);
        if (x->other_site) {
            mg_buf_adds(&b, " and ");
            emu_check_place(l, x->other_site, &b);
        }
        mg_buf_printf(&b, ", CTA (%u,%u,%u), thread (%u,%u,%u)", c[0], c[1], c[2], t[0], t[1], t[2]);
    } else {
        emu_check_variable(l, f);
        mg_buf_printf(&b, "race: %s of %u bytes of shared memory at ", f->at.access, x->bytes);
        emu_check_place(l, x->site, &b);
        mg_buf_printf(&b, ", CTA (%u,%u,%u), thread (%u,%u,%u)", c[0], c[1], c[2], t[0], t[1], t[2]);
        if (x->kind == MG_FINDING_RACE) {
            bool warp = x->thread / EMU_LANES == x->other_thread / EMU_LANES, copy = x->other_what >> 4 == EMU_CK_COPY;
            mg_buf_printf(&b, " and %s at ", copy ? "cp.async" : f->other.access);
            emu_check_place(l, x->other_site, &b);
            mg_buf_printf(&b, ", thread (%u,%u,%u)", o[0], o[1], o[2]);
            mg_buf_adds(&b,
                        copy ? " not waited for"
                        : x->site == x->other_site && warp && x->what >> 4 != EMU_CK_WARP && x->what & EMU_CHECK_WRITE
                            ? ", lanes of one warp, different values"
                        : warp ? ", lanes of one warp without __syncwarp() between"
                               : " without a barrier between");
        }
        mg_buf_printf(&b, "; address 0x%" PRIx64 " in %s of %" PRIu64 " bytes", f->address, f->allocation,
                      f->allocation_bytes);
    }
    mg_buf_printf(&b, " (%" PRIu64 " %s)", f->times, f->times == 1 ? "time" : "times");
    snprintf(f->text, sizeof f->text, "%s", b.at);
    mg_buf_release(&b);
}

static bool told_before(struct mg_device *dev, const struct emu_launch *l, const struct emu_found *x)
{
    const struct emu_site *s = &l->code->sites.at[x->site], *o = &l->code->sites.at[x->other_site];
    uint64_t key = (s->fn->mod->seq << 48) ^ ((uint64_t)s->node << 24) ^ o->node ^ ((uint64_t)(x->kind + 1) << 61);
    pthread_mutex_lock(&dev->lock);
    bool before = mg_map_get(&dev->strays, key, NULL);
    if (!before) mg_map_set(&dev->strays, key, 1);
    pthread_mutex_unlock(&dev->lock);
    return before;
}

static int by_place(const void *a, const void *b)
{
    const struct emu_found *x = a, *y = b;
    if (x->site != y->site) return x->site < y->site ? -1 : 1;
    if (x->other_site != y->other_site) return x->other_site < y->other_site ? -1 : 1;
    return x->kind - y->kind ? x->kind - y->kind : x->misuse - y->misuse;
}

void emu_check_launch_end(struct emu_launch *l, struct mg_launch_stats *stats)
{
    struct emu_findings *s = l->found;
    if (!s) return;
    struct mg_finding *list = stats ? calloc(s->list.n, sizeof *list) : NULL;
    qsort(s->list.at, s->list.n, sizeof *s->list.at, by_place);
    pthread_mutex_lock(&l->code->kernel->lock); /* indirect calls add instructions while other launches run */
    for (uint32_t i = 0; list && i < s->list.n; i++) {
        describe(l, &s->list.at[i], &list[i]);
        list[i].first = !list[i].copied && !told_before(l->dev, l, &s->list.at[i]);
    }
    pthread_mutex_unlock(&l->code->kernel->lock);
    if (stats) {
        stats->findings = list;
        stats->n_findings = list ? s->list.n : 0;
    }
    release(s);
    l->found = NULL;
}
