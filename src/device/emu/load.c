/* Loading a module: its variables get memory and initial values, its functions get addresses. */
#include "device/emu/emu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/number.h"
#include "device/mem.h"

/* ---- initialisers ---------------------------------------------------------------------------- */

struct writer {
    struct mg_dmod *mod;
    const struct mg_var *v;
    const struct mg_init *at, *end;
    char *out; /* NULL: only measure */
    uint64_t cap, used;
    uint32_t elem; /* bytes */
};

static uint64_t stride(const struct writer *w, uint32_t level)
{
    uint64_t n = w->elem;
    if (level < w->v->n_dims && w->v->vec) n *= w->v->vec;
    for (uint32_t i = level + 1; i < w->v->n_dims; i++) n *= w->v->dims[i];
    return n;
}

static uint64_t symbol_address(struct mg_dmod *mod, const struct mg_init *t)
{
    if (!t->is_func) return mod->globals[t->id].address;
    mg_id f = mod->ir->funcs.at[t->id].def ? mod->ir->funcs.at[t->id].def : t->id;
    return mod->functions + (uint64_t)f * EMU_FUNC_STRIDE;
}

static void scalar(struct writer *w, uint64_t at)
{
    const struct mg_init *t = w->at++;
    bool f32 = w->v->type == MG_TYPE_f32, f64 = w->v->type == MG_TYPE_f64;
    uint64_t bits = (uint64_t)t->val;
    double d = 0;
    float s;
    switch ((enum mg_init_kind)t->kind) {
    case MG_INIT_f32:
        if (f64) {
            uint32_t b = (uint32_t)bits;
            memcpy(&s, &b, 4);
            d = s;
            memcpy(&bits, &d, 8);
        }
        break;
    case MG_INIT_f64:
        if (t->style == 1) {
            d = mg_number_plain(mg_name(w->mod->ir, t->id), NULL);
            memcpy(&bits, &d, 8);
        } else
            memcpy(&d, &bits, 8);
        if (f32) {
            s = (float)d;
            bits = 0;
            memcpy(&bits, &s, 4);
        }
        break;
    case MG_INIT_int:
        if (f32 && t->style != MG_IMM_HEX) {
            s = (float)t->val;
            bits = 0;
            memcpy(&bits, &s, 4);
        } else if (f64 && t->style != MG_IMM_HEX) {
            d = (double)t->val;
            memcpy(&bits, &d, 8);
        }
        break;
    case MG_INIT_sym:
    case MG_INIT_generic:
        bits = symbol_address(w->mod, t) + (uint64_t)t->val;
        break;
    case MG_INIT_mask: {
        uint64_t mask = (uint64_t)t->val;
        bits = mask ? ((symbol_address(w->mod, t) + (uint64_t)t->off) & mask) >> __builtin_ctzll(mask) : 0;
        break;
    }
    default:
        break;
    }
    if (at + w->elem > w->used) w->used = at + w->elem;
    if (w->out && at + w->elem <= w->cap) memcpy(w->out + at, &bits, w->elem < 8 ? w->elem : 8);
}

static void fill(struct writer *w, uint32_t level, uint64_t at)
{
    if (w->at->kind != MG_INIT_open) {
        scalar(w, at);
        return;
    }
    w->at++;
    uint64_t leaf = 0;
    for (uint64_t i = 0; w->at < w->end && w->at->kind != MG_INIT_close; i++) {
        if (w->at->kind == MG_INIT_open)
            fill(w, level + 1, at + i * stride(w, level));
        else { /* values without inner braces fill the elements in order */
            scalar(w, at + leaf);
            leaf += w->elem;
        }
    }
    if (w->at < w->end) w->at++;
}

static uint64_t initialise(struct mg_dmod *mod, const struct mg_var *v, char *out, uint64_t cap)
{
    if (!v->n_inits) return 0;
    const struct mg_init *first = &mod->ir->inits.at[v->first_init];
    struct writer w = {.mod = mod,
                       .v = v,
                       .at = first,
                       .end = first + v->n_inits,
                       .out = out,
                       .cap = cap,
                       .elem = mg_type_bits(v->type) / 8};
    if (!w.elem) w.elem = 8;
    while (w.at < w.end) fill(&w, 0, w.used);
    return w.used;
}

/* ---- modules --------------------------------------------------------------------------------- */

static void initialise_all(struct mg_dmod *mod, bool managed)
{
    for (uint32_t i = 1; i < mod->ir->vars.n; i++) {
        const struct mg_var *v = &mod->ir->vars.at[i];
        if (mod->globals[i].address && mg_type_kind((enum mg_type)v->type) != MG_TK_OPAQUE && (managed || !v->managed))
            initialise(mod, v, (char *)mod->globals[i].address, mod->globals[i].bytes);
    }
}

static enum mg_err place_globals(struct mg_dmod *mod, struct mg_diag *d)
{
    const struct mg_module *m = mod->ir;
    for (uint32_t i = 1; i < m->vars.n; i++) {
        const struct mg_var *v = &m->vars.at[i];
        if (v->is_param || v->is_ret ||
            (v->space != MG_SPACE_global && v->space != MG_SPACE_const && v->space != MG_SPACE_tex))
            continue;
        if (v->link == MG_LINK_extern && !v->n_inits) continue;
        bool reference = mg_type_kind((enum mg_type)v->type) == MG_TK_OPAQUE || v->space == MG_SPACE_tex;
        uint64_t bytes =
            reference ? 8 : mg_var_bytes(v); /* of a texture or surface reference: the handle bound to it */
        if (!bytes) bytes = initialise(mod, v, NULL, 0);
        uint64_t at = mg_mem_alloc(bytes, mg_var_align(v),
                                   v->space == MG_SPACE_const ? MG_ALLOC_CONST
                                   : v->managed               ? MG_ALLOC_MANAGED
                                                              : MG_ALLOC_GLOBAL);
        if (!at)
            return mg_diag_err(d, MG_ERR_NO_MEMORY, "no device memory for variable %s of %llu bytes",
                               mg_name(m, v->name), (unsigned long long)bytes);
        memset((void *)at, 0, bytes);
        mod->globals[i] = (struct emu_global){at, bytes};
    }
    initialise_all(mod, true);
    return MG_ERR_OK;
}

void emu_module_share(struct mg_dmod *mod, struct mg_dmod *with)
{
    bool any = false;
    for (uint32_t i = 1; i < mod->ir->vars.n; i++) {
        if (!mod->ir->vars.at[i].managed || !mod->globals[i].address) continue;
        mg_mem_free(mod->globals[i].address);
        mod->globals[i] = with->globals[i];
        any = true;
    }
    if (!any) return;
    initialise_all(mod, false); /* other variables may point to them */
    pthread_mutex_lock(&mod->dev->lock);
    mod->sharer = with->sharer ? with->sharer : with;
    with->sharer = mod;
    pthread_mutex_unlock(&mod->dev->lock);
}

/* Needs the lock. Whether others still have its managed variables. */
static bool leave_sharers(struct mg_dmod *mod)
{
    struct mg_dmod *before = mod->sharer;
    if (!before) return false;
    while (before->sharer != mod) before = before->sharer;
    before->sharer = mod->sharer == before ? NULL : mod->sharer;
    return true;
}

static bool list_kernels(struct mg_dmod *mod)
{
    const struct mg_module *m = mod->ir;
    uint32_t n = 0;
    for (uint32_t i = 1; i < m->funcs.n; i++) n += m->funcs.at[i].kind == MG_FUNC_entry && m->funcs.at[i].defined;
    mod->kernels = calloc(n + 1, sizeof *mod->kernels);
    if (!mod->kernels) return false;
    for (uint32_t i = 1; i < m->funcs.n; i++) {
        const struct mg_func *f = &m->funcs.at[i];
        if (f->kind != MG_FUNC_entry || !f->defined) continue;
        struct mg_dkernel *k = &mod->kernels[mod->n_kernels++];
        k->mod = mod;
        k->func = i;
        k->name = mg_name(m, f->name);
        pthread_mutex_init(&k->lock, NULL);
        k->n_params = f->n_params;
        k->param_bytes = (uint32_t)f->param_bytes;
        k->param_offsets = calloc(2 * f->n_params + 1, sizeof *k->param_offsets);
        if (!k->param_offsets) return false;
        k->param_sizes = k->param_offsets + f->n_params;
        for (uint32_t p = 0; p < f->n_params; p++) {
            k->param_offsets[p] = (uint32_t)mg_func_param_offset(f, m->vars.at, p);
            k->param_sizes[p] = (uint32_t)mg_var_bytes(&m->vars.at[f->first_param + p]);
        }
    }
    return true;
}

/* ---- addresses of functions ------------------------------------------------------------------------ */

static size_t functions_bytes(const struct mg_dmod *mod)
{
    return ((size_t)mod->ir->funcs.n + 1) * EMU_FUNC_STRIDE;
}

/* Addresses that every process gives the functions of such a module, where they are free: programs keep them in memory,
 * and a replay has what they kept. Nothing is read there. */
static uint64_t take_addresses(const struct mg_dmod *mod)
{
    enum { PLACES = 1 << 16, PLACE_BYTES = 1 << 20, TRIES = 64 };
    const struct mg_module *m = mod->ir;
    uint64_t key = mg_mix64((uint64_t)m->nodes.n << 32 ^ m->funcs.n);
    for (mg_id f = 1; f < m->funcs.n; f++) {
        const char *name = mg_name(m, m->funcs.at[f].name);
        key = mg_hash64(name, strlen(name), key);
    }
    for (uint64_t k = 0; k < TRIES; k++) { /* the last one anywhere */
        uint64_t want = k + 1 < TRIES ? UINT64_C(0x2e0000000000) + (key + k) % PLACES * PLACE_BYTES : 0;
        void *p = mg_mem_map_at(want, functions_bytes(mod), PROT_READ);
        if (p) return (uint64_t)p;
    }
    return 0;
}

enum mg_err emu_module_load(struct mg_device *dev, struct mg_module *ptx, struct mg_dmod **out, struct mg_diag *d)
{
    struct mg_dmod *mod = calloc(1, sizeof *mod);
    if (!mod) {
        mg_module_free(ptx);
        return mg_diag_err(d, MG_ERR_NO_MEMORY, "host memory ran out");
    }
    mod->dev = dev;
    mod->ir = ptx;
    mod->globals = calloc(ptx->vars.n + 1, sizeof *mod->globals);
    mod->functions = take_addresses(mod);
    if (dev->opts.count_positions) {
        mod->threads = calloc(ptx->nodes.n + 1, sizeof *mod->threads);
        mod->warps = calloc(ptx->nodes.n + 1, sizeof *mod->warps);
    }
    enum mg_err err = MG_ERR_NO_MEMORY;
    if (!mod->globals || !mod->functions || (dev->opts.count_positions && (!mod->threads || !mod->warps)) ||
        !list_kernels(mod))
        mg_diag_err(d, err, "host memory ran out");
    else
        err = place_globals(mod, d);
    pthread_mutex_lock(&dev->lock);
    mod->seq = dev->next_seq++;
    mod->next = dev->mods;
    dev->mods = mod;
    pthread_mutex_unlock(&dev->lock);
    if (err) {
        emu_module_unload(mod);
        return err;
    }
    *out = mod;
    return MG_ERR_OK;
}

void emu_module_unload(struct mg_dmod *mod)
{
    struct mg_device *dev = mod->dev;
    pthread_mutex_lock(&dev->lock);
    for (struct mg_dmod **at = &dev->mods; *at; at = &(*at)->next)
        if (*at == mod) {
            *at = mod->next;
            break;
        }
    bool shared = leave_sharers(mod);
    pthread_mutex_unlock(&dev->lock);
    for (uint32_t i = 0; mod->globals && i < mod->ir->vars.n; i++)
        if (mod->globals[i].address && !(shared && mod->ir->vars.at[i].managed)) mg_mem_free(mod->globals[i].address);
    for (uint32_t i = 0; i < mod->n_kernels; i++) {
        struct mg_dkernel *k = &mod->kernels[i];
        emu_code_free(k->code);
        free(k->param_offsets);
        pthread_mutex_destroy(&k->lock);
    }
    free(mod->kernels);
    free(mod->globals);
    if (mod->functions) munmap((void *)mod->functions, functions_bytes(mod));
    free((void *)mod->threads);
    free((void *)mod->warps);
    mg_module_free(mod->ir);
    free(mod);
}

bool emu_function_at(struct mg_device *dev, uint64_t address, struct mg_dmod **mod, mg_id *func)
{
    bool found = false;
    pthread_mutex_lock(&dev->lock);
    for (struct mg_dmod *m = dev->mods; m && !found; m = m->next) {
        uint64_t off = address - m->functions;
        if (off >= (uint64_t)m->ir->funcs.n * EMU_FUNC_STRIDE || off % EMU_FUNC_STRIDE) continue;
        mg_id f = (mg_id)(off / EMU_FUNC_STRIDE);
        if (!f || !m->ir->funcs.at[f].defined) continue;
        *mod = m;
        *func = f;
        found = true;
    }
    pthread_mutex_unlock(&dev->lock);
    return found;
}
