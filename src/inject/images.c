/* What the application loads: every load call is passed on unchanged, then the PTX texts of what it
 * was given are kept under the handle it got. Lookups tell which kernel a function handle names.
 *
 *   cuModuleLoadData(image) ── driver ──► handle ──► struct mg_img { PTX texts }
 *   cuModuleGetFunction(handle, name) ──► function ──► (image, name), see kernels.c
 *
 * Texts are copied at once, since an image need not outlive the call; they are parsed when the first
 * kernel of theirs is launched. */
#include "inject/images.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"
#include "driver/link.h"
#include "inject/hooks.h"
#include "inject/kernels.h"
#include "inject/session.h"
#include "inject/twin.h"
#include "ptx/ptx.h"

static struct mg_map images; /* module and library handles -> struct mg_img; under the session's lock */

static struct mg_img *image_get(void *handle)
{
    uint64_t v = 0;
    pthread_mutex_lock(&mg_session.lock);
    mg_map_get(&images, (uint64_t)(uintptr_t)handle, &v);
    pthread_mutex_unlock(&mg_session.lock);
    return (struct mg_img *)(uintptr_t)v;
}
struct mg_img *mg_img_of(void *handle)
{
    return image_get(handle);
}

static void image_set(void *handle, struct mg_img *im)
{
    pthread_mutex_lock(&mg_session.lock);
    mg_map_set(&images, (uint64_t)(uintptr_t)handle, (uint64_t)(uintptr_t)im);
    pthread_mutex_unlock(&mg_session.lock);
}

/* ---- reading ---------------------------------------------------------------------------------------- */

static bool keep_text(struct mg_img *im, const struct mg_image_entry *e)
{
    struct mg_ptx *more = realloc(im->ptx, (im->n_ptx + 1) * sizeof *more);
    if (!more) return false;
    im->ptx = more;
    struct mg_ptx *p = &im->ptx[im->n_ptx];
    const char *cap = e->options ? strstr(e->options, "maxrregcount") : NULL;
    *p = (struct mg_ptx){.bytes = e->bytes,
                         .text = malloc(e->bytes + 1),
                         .max_registers = cap ? (unsigned)strtoul(cap + strcspn(cap, "0123456789"), NULL, 10) : 0};
    if (!p->text) return false;
    memcpy(p->text, e->data, e->bytes);
    p->text[e->bytes] = 0;
    mg_text_id(p->text, p->bytes, p->id);
    im->n_ptx++;
    return true;
}

static void keep_registers(void *user, const char *kernel, uint32_t n)
{
    struct mg_ptx *p = user;
    struct mg_native_registers *more = realloc(p->registers, (p->n_registers + 1) * sizeof *more);
    char *name = more ? strdup(kernel) : NULL;
    if (more) p->registers = more;
    if (name) more[p->n_registers++] = (struct mg_native_registers){name, n};
}

/* Of the machine code that the device would take beside the text: for its own capability, or an earlier one of the same
 * generation. */
static void find_registers(struct mg_ptx *p, const struct mg_image *src, uint32_t group)
{
    const struct mg_image_entry *best = NULL;
    uint32_t sm = mg_session.sm;
    for (uint32_t i = 0; i < src->n_entries; i++) {
        const struct mg_image_entry *e = &src->entries[i];
        if (e->kind == MG_ENTRY_CUBIN && e->group == group && e->sm / 10 == sm / 10 && e->sm <= sm &&
            (!best || e->sm > best->sm))
            best = e;
    }
    if (best) mg_cubin_registers(best->data, best->bytes, keep_registers, p);
}

static void forget_registers(struct mg_ptx *p)
{
    for (uint32_t k = 0; k < p->n_registers; k++) free(p->registers[k].kernel);
    free(p->registers);
}

static bool has_ptx(const struct mg_image *src)
{
    for (uint32_t i = 0; i < src->n_entries; i++)
        if (src->entries[i].kind == MG_ENTRY_PTX) return true;
    return false;
}

/* The PTX that the device would take from every group of the container. */
static void keep_texts(struct mg_img *im, const struct mg_image *src)
{
    uint32_t n_groups = 0, sm = mg_session.sm;
    for (uint32_t i = 0; i < src->n_entries; i++) {
        n_groups = MG_MAX(n_groups, src->entries[i].group + 1);
        im->linked |= src->entries[i].relocatable;
    }
    for (uint32_t g = 0; g < n_groups; g++) {
        const struct mg_image_entry *e = mg_image_best_ptx(src, g, sm);
        if (e && !keep_text(im, e)) im->why = MG_REASON_no_memory;
        if (e && !im->why && mg_session_can(MG_BACKEND_COMPILES_APART)) find_registers(&im->ptx[im->n_ptx - 1], src, g);
    }
    if (!im->n_ptx && !im->why) im->why = has_ptx(src) ? MG_REASON_no_ptx_device : MG_REASON_no_ptx;
    if (im->n_ptx > 1) im->linked = true;
}

static uint64_t written_ns(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : mg_io_written_ns(&st);
}

struct place {
    uintptr_t at;
    uint64_t built_ns;
};

static int find_object(struct dl_phdr_info *o, size_t size, void *user)
{
    struct place *x = user;
    bool found = false;
    (void)size;
    for (uint32_t i = 0; i < o->dlpi_phnum && !found; i++) {
        const ElfW(Phdr) *h = &o->dlpi_phdr[i];
        found = h->p_type == PT_LOAD && !(h->p_flags & PF_W) && x->at - (o->dlpi_addr + h->p_vaddr) < h->p_memsz;
    }
    if (found) x->built_ns = written_ns(*o->dlpi_name ? o->dlpi_name : "/proc/self/exe");
    return found;
}

/* When the program or library was written that has the image; 0: none has, or it lies where the program can have put
 * anything. */
static uint64_t built_ns(const void *image)
{
    struct place x = {.at = (uintptr_t)image};
    if (image) dl_iterate_phdr(find_object, &x);
    return x.built_ns;
}

static struct mg_img *read_image(const void *data, size_t bytes, const char *file)
{
    struct mg_img *im = calloc(1, sizeof *im);
    struct mg_image *src = NULL;
    if (!im) return NULL;
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err err = bytes ? mg_image_open_bytes(data, bytes, NULL, &src, &d) : mg_image_open_memory(data, &src, &d);
    if (err) {
        im->why = MG_REASON_no_ptx_unreadable;
        if (mg_session.config.verbose) mg_session_say("an image cannot be read: %s", mg_diag_first(&d, err));
    } else {
        keep_texts(im, src);
        uint64_t built = file ? written_ns(file) : built_ns(src->start);
        for (uint32_t k = 0; k < im->n_ptx; k++) im->ptx[k].built_unix_ns = built;
        mg_image_free(src);
    }
    mg_diag_release(&d);
    return im;
}

static struct mg_img *first_of(struct mg_img *im)
{
    return im->first ? im->first : im;
}

/* What a channel carries to a tool names sites for as long as the tool likes to look at them. */
static bool has_channel(const struct mg_img *im)
{
    for (const struct mg_code *c = im->codes; c; c = c->next)
        for (const struct mg_variant *v = c->variants; v; v = v->next)
            for (uint32_t k = 0; k < v->layout.n_regions; k++)
                if (v->layout.regions[k].has_channel) return true;
    return false;
}

void mg_img_unref(struct mg_img *im)
{
    pthread_mutex_lock(&mg_session.lock);
    if (--im->refs == 0 && !has_channel(im)) {
        for (struct mg_code *c = im->codes; c; c = c->next) mg_kernel_spend(c);
        for (uint32_t k = 0; k < im->n_ptx; k++) {
            struct mg_ptx *p = &im->ptx[k];
            free(p->text);
            free(p->why);
            mg_module_free(p->m);
            p->text = p->why = NULL;
            p->m = NULL;
            p->parsed = false;
        }
        mg_module_free(im->whole);
        im->whole = NULL;
        im->tried = false;
        im->spent = true;
    }
    pthread_mutex_unlock(&mg_session.lock);
}

void mg_img_each_ptx(void (*fn)(const struct mg_host_module *m, void *user), void *user)
{
    uint64_t key, v;
    MG_VEC(struct mg_host_module) all = {0};
    MG_VEC(struct mg_img *) held = {0}; /* so that their texts stay */
    pthread_mutex_lock(&mg_session.lock);
    for (uint32_t at = 0; mg_map_next(&images, &at, &key, &v);) {
        struct mg_img *im = (struct mg_img *)(uintptr_t)v;
        *mg_vec_push(&held) = first_of(im);
        first_of(im)->refs++;
        for (uint32_t k = 0; k < im->n_ptx; k++) {
            uint32_t i = 0;
            while (i < all.n && strcmp(all.at[i].id, im->ptx[k].id)) i++;
            if (i == all.n)
                *mg_vec_push(&all) = (struct mg_host_module){im->ptx[k].id, im->ptx[k].text, im->ptx[k].bytes};
        }
    }
    pthread_mutex_unlock(&mg_session.lock);
    for (uint32_t i = 0; i < all.n; i++) fn(&all.at[i], user);
    for (uint32_t i = 0; i < held.n; i++) mg_img_unref(held.at[i]);
    mg_vec_release(&all);
    mg_vec_release(&held);
}

struct mg_ptx *mg_img_parsed(struct mg_img *im, uint32_t ix)
{
    struct mg_ptx *p = &im->ptx[ix];
    if (p->parsed) return p;
    if (!mg_session_has_memory(MG_PARSE_BYTES(p->bytes))) {
        p->parsed = true;
        p->why = strdup(mg_reason_text(MG_REASON_no_memory));
        return p;
    }
    uint64_t start = mg_now_ns();
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err err = mg_ptx_parse(p->text, p->bytes, NULL, &p->m, &d);
    if (err || !p->m) {
        struct mg_buf why = MG_BUF_INIT;
        mg_buf_printf(&why, mg_reason_text(MG_REASON_bad_ptx), mg_diag_first(&d, err));
        if (d.n_items && d.items[0].line) mg_buf_printf(&why, " (PTX line %u)", d.items[0].line);
        p->why = mg_buf_take(&why);
        p->m = NULL;
    }
    mg_diag_release(&d);
    p->parsed = true;
    mg_session.ns.parse += mg_now_ns() - start;
    return p;
}

/* Relocatable texts as one module, the way the machine code was linked: NVIDIA's driver gives none. */
const struct mg_module *mg_img_linked(struct mg_img *im)
{
    if (im->tried) return im->whole;
    im->tried = true;
    size_t given = 0;
    for (uint32_t k = 0; k < im->n_ptx; k++) given += im->ptx[k].bytes;
    if (!mg_session_has_memory(2 * MG_PARSE_BYTES(given))) return NULL;
    struct mg_text *texts = calloc(im->n_ptx + 1, sizeof *texts);
    char *text = NULL;
    size_t bytes = 0;
    struct mg_diag d = MG_DIAG_INIT;
    for (uint32_t k = 0; texts && k < im->n_ptx; k++)
        texts[k] = (struct mg_text){.at = im->ptx[k].text, .n = im->ptx[k].bytes, .name = "part"};
    if (texts && mg_link_texts(texts, im->n_ptx, &text, &bytes, &d) == MG_ERR_OK &&
        mg_ptx_parse(text, bytes, NULL, &im->whole, &d) != MG_ERR_OK)
        im->whole = NULL;
    if (!im->whole && mg_session.config.verbose)
        mg_session_say("relocatable PTX does not link: %s", mg_diag_first(&d, MG_ERR_INPUT));
    mg_diag_release(&d);
    free(text);
    free(texts);
    return im->whole;
}

/* ---- loads ------------------------------------------------------------------------------------------ */

static bool same_texts(const struct mg_img *a, const struct mg_img *b)
{
    bool same = a->n_ptx == b->n_ptx;
    for (uint32_t k = 0; k < a->n_ptx && same; k++)
        same = !strcmp(a->ptx[k].id, b->ptx[k].id) && a->ptx[k].max_registers == b->ptx[k].max_registers;
    return same;
}

/* Texts that its first has already are freed, those that it has given back are its own again. Under the lock. */
static void hand_over(struct mg_img *first, struct mg_img *im)
{
    for (uint32_t k = 0; k < im->n_ptx; k++) {
        if (first->spent)
            first->ptx[k].text = im->ptx[k].text;
        else
            free(im->ptx[k].text);
        forget_registers(&im->ptx[k]);
    }
    free(im->ptx);
    first->spent = false;
    first->refs++;
    im->ptx = first->ptx;
    im->first = first;
}

/* A module loaded again has its texts and twins already. What was linked has not: its text is the driver's. */
static void share(struct mg_img *im)
{
    static struct mg_map firsts; /* hash of the texts -> struct mg_img; under the session's lock */
    uint64_t key = 0, v = 0;
    im->refs = 1;
    if (im->linked || !im->n_ptx || im->why) return;
    for (uint32_t k = 0; k < im->n_ptx; k++)
        key = mg_hash64(im->ptx[k].id, sizeof im->ptx[k].id, key + im->ptx[k].max_registers);
    pthread_mutex_lock(&mg_session.lock);
    if (!mg_map_get(&firsts, key, &v))
        mg_map_set(&firsts, key, (uint64_t)(uintptr_t)im);
    else if (same_texts((struct mg_img *)(uintptr_t)v, im))
        hand_over((struct mg_img *)(uintptr_t)v, im);
    pthread_mutex_unlock(&mg_session.lock);
}

/* file: what the bytes were read from; NULL: the application has them in memory */
static void loaded(void *handle, const void *data, size_t bytes, bool library, const char *file)
{
    const struct mg_session *s = &mg_session;
    if (!handle || !data || mg_session_is_short()) return;
    mg_inside++;
    struct mg_img *im = read_image(data, bytes, file);
    if (im) {
        share(im);
        image_set(handle, im);
    }
    if (im && s->config.eager && !s->cannot) mg_eager_load(handle, im, library);
    mg_leftover_unload();
    mg_inside--;
}

/* Without a GPU: an image that holds machine code alone. The driver has said so to the application;
 * the profile names the kernels that could not run. */
static void name_kernel(void *user, const char *name)
{
    (void)user;
    mg_store_unknown(mg_session.store, name, 0, mg_reason_text(MG_REASON_no_ptx_not_loaded));
}
static void refused(const void *data, size_t bytes)
{
    struct mg_image *src = NULL;
    mg_inside++;
    enum mg_err err =
        bytes ? mg_image_open_bytes(data, bytes, NULL, &src, NULL) : mg_image_open_memory(data, &src, NULL);
    pthread_rwlock_rdlock(&mg_session.closing);
    for (uint32_t i = 0; !err && mg_session.store && i < src->n_entries; i++)
        if (src->entries[i].kind == MG_ENTRY_CUBIN)
            mg_cubin_kernels(src->entries[i].data, src->entries[i].bytes, name_kernel, NULL);
    pthread_rwlock_unlock(&mg_session.closing);
    mg_image_free(src);
    mg_inside--;
}
#define REFUSED(rc, data) ((rc) == CUE_NO_BINARY_FOR_GPU && mg_session.active && !mg_inside && (data))

/* handle NULL: it was refused */
static void loaded_file(void *handle, const char *path, bool library)
{
    char *data;
    size_t bytes;
    if (path && mg_io_read(path, &data, &bytes, NULL) == MG_ERR_OK) {
        if (handle)
            loaded(handle, data, bytes, library, path);
        else if (bytes)
            refused(data, bytes);
        free(data);
    }
}

/* Looks only when the driver took it, the session is on and the call is the application's own. */
#define LOADED(rc, handle) ((rc) == CUE_SUCCESS && mg_session.active && !mg_inside && (handle))

MG_HOOK(cuModuleLoadData, cu_module *m, const void *image)
{
    cu_result rc = MG_REAL(cuModuleLoadData)(m, image);
    if (LOADED(rc, m))
        loaded(*m, image, 0, false, NULL);
    else if (REFUSED(rc, image))
        refused(image, 0);
    return rc;
}
MG_HOOK(cuModuleLoadDataEx, cu_module *m, const void *image, unsigned n, int *opts, void **values)
{
    cu_result rc = MG_REAL(cuModuleLoadDataEx)(m, image, n, opts, values);
    if (LOADED(rc, m))
        loaded(*m, image, 0, false, NULL);
    else if (REFUSED(rc, image))
        refused(image, 0);
    return rc;
}
MG_HOOK(cuModuleLoadFatBinary, cu_module *m, const void *image)
{
    cu_result rc = MG_REAL(cuModuleLoadFatBinary)(m, image);
    if (LOADED(rc, m))
        loaded(*m, image, 0, false, NULL);
    else if (REFUSED(rc, image))
        refused(image, 0);
    return rc;
}
MG_HOOK(cuModuleLoad, cu_module *m, const char *path)
{
    cu_result rc = MG_REAL(cuModuleLoad)(m, path);
    if (LOADED(rc, m))
        loaded_file(*m, path, false);
    else if (REFUSED(rc, path))
        loaded_file(NULL, path, false);
    return rc;
}
MG_HOOK(cuLibraryLoadData, cu_library *l, const void *code, int *jit, void **jit_values, unsigned n_jit, int *opts,
        void **values, unsigned n)
{
    cu_result rc = MG_REAL(cuLibraryLoadData)(l, code, jit, jit_values, n_jit, opts, values, n);
    if (LOADED(rc, l))
        loaded(*l, code, 0, true, NULL);
    else if (REFUSED(rc, code))
        refused(code, 0);
    return rc;
}
MG_HOOK(cuLibraryLoadFromFile, cu_library *l, const char *path, int *jit, void **jit_values, unsigned n_jit, int *opts,
        void **values, unsigned n)
{
    cu_result rc = MG_REAL(cuLibraryLoadFromFile)(l, path, jit, jit_values, n_jit, opts, values, n);
    if (LOADED(rc, l))
        loaded_file(*l, path, true);
    else if (REFUSED(rc, path))
        loaded_file(NULL, path, true);
    return rc;
}

/* ---- unloads: the handles die, what was recorded stays ------------------------------------------------ */

/* A library's image has the handles of its modules, too. */
static void forget_handles(const struct mg_img *im)
{
    uint64_t key, v;
    MG_VEC(uint64_t) dead = {0};
    pthread_mutex_lock(&mg_session.lock);
    for (uint32_t i = 0; mg_map_next(&images, &i, &key, &v);)
        if (v == (uint64_t)(uintptr_t)im) *mg_vec_push(&dead) = key;
    for (uint32_t i = 0; i < dead.n; i++) mg_map_del(&images, dead.at[i]);
    pthread_mutex_unlock(&mg_session.lock);
    mg_vec_release(&dead);
}

static void unloading(void *handle)
{
    struct mg_img *im = mg_session.active && !mg_inside ? image_get(handle) : NULL;
    if (!im) return;
    mg_inside++;
    mg_kernel_forget(im);
    forget_handles(im);
    mg_img_unref(first_of(im));
    if (im->first) free(im);
    mg_inside--;
}
static cu_result unloaded(cu_result rc)
{
    if (rc == CUE_SUCCESS && mg_session.active && !mg_inside) {
        mg_inside++;
        mg_leftover_unload();
        mg_inside--;
    }
    return rc;
}
MG_HOOK(cuModuleUnload, cu_module m)
{
    unloading(m);
    return unloaded(MG_REAL(cuModuleUnload)(m));
}
MG_HOOK(cuLibraryUnload, cu_library l)
{
    unloading(l);
    return unloaded(MG_REAL(cuLibraryUnload)(l));
}

/* ---- lookups ------------------------------------------------------------------------------------------ */

static void found(void *handle, void *container, const char *name, bool is_kernel)
{
    struct mg_img *im = mg_session.active && !mg_inside && handle ? image_get(container) : NULL;
    if (im && name) mg_kernel_note(handle, im, name, is_kernel);
}

MG_HOOK(cuModuleGetFunction, cu_function *f, cu_module m, const char *name)
{
    cu_result rc = MG_REAL(cuModuleGetFunction)(f, m, name);
    if (rc == CUE_SUCCESS && f) found(*f, m, name, false);
    return rc;
}
MG_HOOK(cuLibraryGetKernel, cu_kernel *k, cu_library l, const char *name)
{
    cu_result rc = MG_REAL(cuLibraryGetKernel)(k, l, name);
    if (rc == CUE_SUCCESS && k) found(*k, l, name, true);
    return rc;
}
MG_HOOK(cuLibraryGetModule, cu_module *m, cu_library l)
{
    cu_result rc = MG_REAL(cuLibraryGetModule)(m, l);
    struct mg_img *im = rc == CUE_SUCCESS && m && mg_session.active ? image_get(l) : NULL;
    if (im) image_set(*m, im);
    return rc;
}
MG_HOOK(cuModuleEnumerateFunctions, cu_function *fns, unsigned n, cu_module m)
{
    cu_result rc = MG_REAL(cuModuleEnumerateFunctions)(fns, n, m);
    const char *name;
    for (unsigned i = 0; rc == CUE_SUCCESS && mg_session.active && fns && i < n; i++)
        if (fns[i] && MG_REAL_AS(cuFuncGetName, const char **, cu_function)(&name, fns[i]) == CUE_SUCCESS)
            found(fns[i], m, name, false);
    return rc;
}
MG_HOOK(cuLibraryEnumerateKernels, cu_kernel *ks, unsigned n, cu_library l)
{
    cu_result rc = MG_REAL(cuLibraryEnumerateKernels)(ks, n, l);
    const char *name;
    for (unsigned i = 0; rc == CUE_SUCCESS && mg_session.active && ks && i < n; i++)
        if (ks[i] && MG_REAL_AS(cuKernelGetName, const char **, cu_kernel)(&name, ks[i]) == CUE_SUCCESS)
            found(ks[i], l, name, true);
    return rc;
}
/* The same kernel as a function of the current context: known by what is known of the kernel. */
MG_HOOK(cuKernelGetFunction, cu_function *f, cu_kernel k)
{
    cu_result rc = MG_REAL(cuKernelGetFunction)(f, k);
    if (rc == CUE_SUCCESS && f && mg_session.active && !mg_inside) mg_kernel_alias(*f, k);
    return rc;
}
