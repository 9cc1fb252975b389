/* Linking PTX with PTX: what nvlink does with relocatable code, done on the text before any device
 * sees it. Each input is parsed, what only it may see is renamed where another input has the same
 * name, what an earlier input already gives is dropped, and the printed rests are one module: a
 * declaration and its definition meet by name. Also cuLink*, whose "cubin" is that text.
 *
 * Debug sections are dropped; line tables are kept with their files renumbered.
 */
#include "driver/priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "image/image.h"
#include "ptx/ptx.h"

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

/* ---- names over all inputs ------------------------------------------------------------------------------ */

enum { DECLARED = 1, WEAK = 2, STRONG = 3, PRIVATE = 4 };
struct names {
    struct mg_intern text;
    struct mg_map state;
};

static uint64_t state_of(struct names *g, const char *name)
{
    uint64_t v = 0;
    mg_map_get(&g->state, mg_intern_adds(&g->text, name), &v);
    return v;
}
static void set_state(struct names *g, const char *name, uint64_t v)
{
    mg_map_set(&g->state, mg_intern_adds(&g->text, name), v);
}

static mg_str private_name(struct names *g, struct mg_module *m, const char *name)
{
    struct mg_buf b = MG_BUF_INIT;
    for (uint32_t k = 1;; k++) {
        mg_buf_reset(&b);
        mg_buf_printf(&b, "%s$%u", name, k);
        if (!state_of(g, b.at)) break;
    }
    set_state(g, b.at, PRIVATE);
    mg_str s = mg_intern_adds(&m->names, b.at);
    mg_buf_release(&b);
    return s;
}

/* What to do with a module-scope name of this linkage: keep it (MG_ERR_OK), drop it (*drop), or fail. */
static enum mg_err judge(struct names *g, const char *name, int link, bool defined, bool *drop, bool *rename,
                         struct mg_diag *d)
{
    uint64_t had = state_of(g, name);
    *drop = *rename = false;
    if (!defined || link == MG_LINK_extern) {
        *drop = had && had != PRIVATE && link == MG_LINK_extern;
        if (had == PRIVATE) return MG_ERR_OK; /* cannot be: privates were renamed away or keep their own name first */
        if (!had) set_state(g, name, DECLARED);
        return MG_ERR_OK;
    }
    if (link == MG_LINK_none) {
        *rename = had != 0;
        if (!had) set_state(g, name, PRIVATE);
        return MG_ERR_OK;
    }
    bool weak = link == MG_LINK_weak || link == MG_LINK_common;
    if (had == STRONG || had == WEAK) {
        if (!weak && had == STRONG) return mg_diag_err(d, MG_ERR_INPUT, "multiple definition of '%s'", name);
        *drop = true; /* the first one stands: all weak ones are the same, and a strong one would have come as such */
        return MG_ERR_OK;
    }
    set_state(g, name, weak ? WEAK : STRONG);
    return MG_ERR_OK;
}

/* ---- one input ----------------------------------------------------------------------------------------------- */

static enum mg_err adapt(struct names *g, struct mg_module *m, uint32_t first_file, struct mg_diag *d)
{
    struct mg_map renamed = MG_MAP_INIT; /* old name -> new name, for later declarations of a private one */
    enum mg_err e = MG_ERR_OK;
    for (uint32_t i = 1; i < m->items.n && !e; i++) {
        struct mg_item *it = &m->items.at[i];
        bool drop = false, rename = false;
        if (it->kind == MG_ITEM_section || it->kind == MG_ITEM_loc) {
            it->kind = MG_ITEM_none;
        } else if (it->kind == MG_ITEM_file) {
            m->files.at[it->id].index += first_file;
        } else if (it->kind == MG_ITEM_func) {
            struct mg_func *f = &m->funcs.at[it->id];
            uint64_t to;
            if (f->kind == MG_FUNC_proto) continue;
            if (f->link == MG_LINK_none && mg_map_get(&renamed, f->name, &to)) {
                f->name = (mg_str)to;
                continue;
            }
            /* A private function may be declared before it is defined: the name is settled at its first mention. */
            bool counts = f->defined || f->link == MG_LINK_none;
            e = judge(g, mg_name(m, f->name), f->link, counts, &drop, &rename, d);
            if (f->link == MG_LINK_none && !e) {
                mg_str old = f->name;
                if (rename) f->name = private_name(g, m, mg_name(m, old));
                mg_map_set(&renamed, old, f->name);
            }
            if (drop && !f->defined && f->link != MG_LINK_extern) drop = false;
            if (drop) it->kind = MG_ITEM_none;
        } else if (it->kind == MG_ITEM_decl) {
            struct mg_decl *dc = &m->decls.at[it->id];
            if (dc->space == MG_SPACE_reg) continue;
            uint32_t n_drop = 0;
            for (uint32_t k = 0; k < dc->n && !e; k++) {
                struct mg_var *v = &m->vars.at[dc->first + k];
                e = judge(g, mg_name(m, v->name), v->link, v->link != MG_LINK_extern, &drop, &rename, d);
                if (rename) v->name = private_name(g, m, mg_name(m, v->name));
                n_drop += drop;
            }
            if (n_drop == dc->n && dc->n)
                it->kind = MG_ITEM_none;
            else if (n_drop)
                e = mg_diag_err(d, MG_ERR_UNSUPPORTED,
                                "one statement declares variables that another module has and others");
        }
    }
    for (uint32_t i = 1; i < m->locs.n; i++) {
        struct mg_loc *l = &m->locs.at[i];
        l->file += first_file;
        l->has_inlined = 0; /* its function names live in a debug section */
        l->function = 0;
    }
    mg_map_release(&renamed);
    return e;
}

/* Printed without the lines that only the whole may have. */
static void append_body(const struct mg_module *m, struct mg_buf *out)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_ptx_print(m, &b);
    for (const char *p = b.at; p && *p;) {
        const char *end = strchr(p, '\n'), *s = p;
        size_t n = end ? (size_t)(end + 1 - p) : strlen(p);
        while (*s == ' ' || *s == '\t') s++;
        bool header = !strncmp(s, ".version", 8) || !strncmp(s, ".target", 7) || !strncmp(s, ".address_size", 13);
        if (!header) mg_buf_add(out, p, n);
        p += n;
    }
    mg_buf_release(&b);
}

enum mg_err mg_link_texts(const struct mg_text *texts, uint32_t n, char **out, size_t *bytes, struct mg_diag *d)
{
    struct names g = {.state = MG_MAP_INIT};
    struct mg_buf body = MG_BUF_INIT, whole = MG_BUF_INIT;
    mg_intern_init(&g.text);
    enum mg_err e = MG_ERR_OK;
    uint32_t version = 0, sm = 0, files = 0;
    char suffix = 0;
    for (uint32_t i = 0; i < n && !e; i++) {
        struct mg_module *m = NULL;
        e = mg_ptx_parse(texts[i].at, texts[i].n, texts[i].name, &m, d);
        if (e) break;
        version = MG_MAX(version, (uint32_t)m->version_major * 100 + m->version_minor);
        if (m->sm > sm || (m->sm == sm && m->sm_suffix)) sm = m->sm, suffix = m->sm_suffix;
        uint32_t most = 0;
        for (uint32_t k = 1; k < m->files.n; k++) most = MG_MAX(most, m->files.at[k].index);
        e = adapt(&g, m, files, d);
        files += most;
        if (!e) append_body(m, &body);
        mg_module_free(m);
    }
    if (!e) {
        mg_buf_printf(&whole, ".version %u.%u\n.target sm_%u", version / 100, version % 100, sm);
        if (suffix) mg_buf_addc(&whole, suffix);
        mg_buf_adds(&whole, "\n.address_size 64\n");
        if (body.n) mg_buf_add(&whole, body.at, body.n);
        *bytes = whole.n;
        *out = mg_buf_take(&whole);
    }
    mg_buf_release(&whole);
    mg_buf_release(&body);
    mg_map_release(&g.state);
    mg_intern_release(&g.text);
    return e;
}

/* ---- cuLink ------------------------------------------------------------------------------------------------ */

struct CUlinkState_st {
    MG_VEC(struct mg_text) inputs; /* at and name malloc'd */
    struct mg_jit jit;
    char *result;
};

static cu_result cuLinkCreate_v2(unsigned n, int *options, void **values, cu_link *out)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    CHECK(out && (!n || (options && values)));
    struct CUlinkState_st *s = calloc(1, sizeof *s);
    if (!s) return CUE_OUT_OF_MEMORY;
    mg_jit_read(&s->jit, n, options, values);
    mg_obj_add(s, MG_OBJ_LINK);
    *out = s;
    return CUE_SUCCESS;
}
static cu_result cuLinkCreate(unsigned n, int *options, void **values, cu_link *out)
{
    return cuLinkCreate_v2(n, options, values, out);
}

static cu_result add_input(cu_link s, int type, const void *data, size_t bytes, const char *name)
{
    struct mg_text t = {.name = name ? strdup(name) : NULL};
    struct mg_diag d = MG_DIAG_INIT;
    cu_result r = CUE_SUCCESS;
    char *text = NULL;
    if (type == CUJITIN_PTX) {
        text = malloc(bytes + 1);
        if (text) {
            memcpy(text, data, bytes);
            text[bytes] = 0;
            t.n = strnlen(text, bytes);
        } else {
            r = CUE_OUT_OF_MEMORY;
        }
        struct mg_module *m = NULL; /* errors belong to the call that hands the text over */
        if (text && mg_ptx_parse(text, t.n, name, &m, &d)) r = CUE_INVALID_PTX;
        mg_module_free(m);
    } else if (type == CUJITIN_LIBRARY && bytes >= 8 && !memcmp(data, "!<arch>\n", 8)) {
        free((char *)(uintptr_t)
                 t.name); /* an archive of machine code, cudadevrt as a rule: nothing of it can run here */
        return CUE_SUCCESS;
    } else if (type == CUJITIN_NVVM) {
        mg_say("linking of NVVM IR is not supported");
        r = CUE_NOT_SUPPORTED;
    } else {
        r = mg_image_text(data, bytes, name, &text, &t.n, NULL, &d);
    }
    mg_jit_write(&s->jit, &d);
    mg_diag_release(&d);
    t.at = text;
    if (r) {
        free(text);
        free((char *)(uintptr_t)t.name);
        return r;
    }
    *mg_vec_push(&s->inputs) = t;
    return CUE_SUCCESS;
}

static cu_result cuLinkAddData_v2(cu_link s, int type, void *data, size_t bytes, const char *name, unsigned n,
                                  int *options, void **values)
{
    (void)n, (void)options, (void)values;
    cu_result r = mg_enter(NULL);
    if (r) return r;
    if (!mg_obj_is(s, MG_OBJ_LINK)) return CUE_INVALID_HANDLE;
    CHECK(data && bytes && type >= CUJITIN_CUBIN && type <= CUJITIN_NVVM && !s->result);
    return add_input(s, type, data, bytes, name);
}
static cu_result cuLinkAddData(cu_link s, int type, void *data, size_t bytes, const char *name, unsigned n,
                               int *options, void **values)
{
    return cuLinkAddData_v2(s, type, data, bytes, name, n, options, values);
}

static cu_result cuLinkAddFile_v2(cu_link s, int type, const char *path, unsigned n, int *options, void **values)
{
    (void)n, (void)options, (void)values;
    cu_result r = mg_enter(NULL);
    if (r) return r;
    if (!mg_obj_is(s, MG_OBJ_LINK)) return CUE_INVALID_HANDLE;
    CHECK(path && type >= CUJITIN_CUBIN && type <= CUJITIN_NVVM && !s->result);
    char *data = NULL;
    size_t bytes;
    if (mg_io_read(path, &data, &bytes, NULL)) return CUE_FILE_NOT_FOUND;
    r = bytes ? add_input(s, type, data, bytes, path) : CUE_INVALID_IMAGE;
    free(data);
    return r;
}
static cu_result cuLinkAddFile(cu_link s, int type, const char *path, unsigned n, int *options, void **values)
{
    return cuLinkAddFile_v2(s, type, path, n, options, values);
}

static cu_result cuLinkComplete(cu_link s, void **out, size_t *bytes)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    if (!mg_obj_is(s, MG_OBJ_LINK)) return CUE_INVALID_HANDLE;
    CHECK(out && s->inputs.n && !s->result);
    struct mg_diag d = MG_DIAG_INIT;
    size_t n = 0;
    enum mg_err e = mg_link_texts(s->inputs.at, s->inputs.n, &s->result, &n, &d);
    mg_jit_write(&s->jit, &d);
    if (e) mg_say("not linked: %s", mg_diag_first(&d, e));
    mg_diag_release(&d);
    if (e) return e == MG_ERR_NO_MEMORY ? CUE_OUT_OF_MEMORY : CUE_INVALID_PTX;
    *out = s->result;
    if (bytes) *bytes = n + 1;
    return CUE_SUCCESS;
}

static cu_result cuLinkDestroy(cu_link s)
{
    if (!mg_obj_del(s, MG_OBJ_LINK)) return CUE_INVALID_HANDLE;
    for (uint32_t i = 0; i < s->inputs.n; i++) {
        free((char *)(uintptr_t)s->inputs.at[i].at);
        free((char *)(uintptr_t)s->inputs.at[i].name);
    }
    mg_vec_release(&s->inputs);
    free(s->result);
    free(s);
    return CUE_SUCCESS;
}

const struct mg_entry mg_entries_link[] = {
    MG_ENTRY(cuLinkCreate),     MG_ENTRY(cuLinkCreate_v2), MG_ENTRY(cuLinkAddData),
    MG_ENTRY(cuLinkAddData_v2), MG_ENTRY(cuLinkAddFile),   MG_ENTRY(cuLinkAddFile_v2),
    MG_ENTRY(cuLinkComplete),   MG_ENTRY(cuLinkDestroy),   {0},
};
