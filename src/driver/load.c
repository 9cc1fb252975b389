/* From an image to PTX text: which entry of a container the device would take, linked when the
 * container holds relocatable ones, and what the machine code beside it says of its kernels. */
#include "driver/priv.h"

#include <stdlib.h>
#include <string.h>

#include "image/image.h"

void mg_image_facts_unref(struct mg_image_facts *f)
{
    if (!f || __atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL)) return;
    for (uint32_t i = 0; i < f->n; i++) free(f->at[i].name);
    free(f->at);
    free(f);
}

static int compute_capability(void)
{
    return mg_drv.attrs[CUDEV_COMPUTE_CAPABILITY_MAJOR] * 10 + mg_drv.attrs[CUDEV_COMPUTE_CAPABILITY_MINOR];
}

/* Registers per kernel from the machine code for our compute capability. */
static void keep_registers(void *user, const char *name, uint32_t registers)
{
    struct mg_image_facts *f = user;
    struct mg_image_fact *at = realloc(f->at, (f->n + 1) * sizeof *at);
    if (!at) return;
    f->at = at;
    at[f->n].name = strdup(name);
    at[f->n].registers = registers;
    if (at[f->n].name) f->n++;
}

static void read_options(struct mg_image_facts *f, const char *options)
{
    const char *p = options ? strstr(options, "-maxrregcount") : NULL;
    if (!p) return;
    p += strlen("-maxrregcount");
    while (*p == '=' || *p == ' ') p++;
    f->max_registers = (int)strtol(p, NULL, 10);
}

static struct mg_image_facts *read_facts(const struct mg_image *im, const struct mg_image_entry *ptx)
{
    struct mg_image_facts *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->refs = 1;
    for (uint32_t i = 0; i < im->n_entries; i++) {
        const struct mg_image_entry *e = &im->entries[i];
        if (e->kind == MG_ENTRY_CUBIN && (int)e->sm == compute_capability())
            mg_cubin_registers(e->data, e->bytes, keep_registers, f);
    }
    if (ptx) read_options(f, ptx->options);
    return f;
}

cu_result mg_image_text(const void *image, size_t bytes, const char *file, char **text, size_t *n,
                        struct mg_image_facts **facts, struct mg_diag *d)
{
    struct mg_image *im = NULL;
    enum mg_err e = bytes ? mg_image_open_bytes(image, bytes, file, &im, d) : mg_image_open_memory(image, &im, d);
    if (e) return e == MG_ERR_NO_MEMORY ? CUE_OUT_OF_MEMORY : CUE_INVALID_IMAGE;
    uint32_t sm = (uint32_t)compute_capability(), groups = 0;
    for (uint32_t i = 0; i < im->n_entries; i++) groups = MG_MAX(groups, im->entries[i].group + 1);
    cu_result r = CUE_NO_BINARY_FOR_GPU;
    MG_VEC(const struct mg_image_entry *) found = {0};
    for (uint32_t i = 0; i < im->n_entries && im->kind == MG_IMAGE_CUBIN; i++) {
        const struct mg_image_entry *c =
            &im->entries[i]; /* machine code is for its own generation, whatever its PTX would do */
        if (c->kind == MG_ENTRY_CUBIN && (c->sm / 10 != sm / 10 || c->sm > sm)) groups = 0;
    }
    for (uint32_t g = 0; g < groups; g++) {
        const struct mg_image_entry *p = mg_image_best_ptx(im, g, sm);
        if (p) *mg_vec_push(&found) = p;
    }
    if (found.n == 1) {
        *text = malloc(found.at[0]->bytes + 1);
        if (*text) {
            memcpy(*text, found.at[0]->data, found.at[0]->bytes);
            (*text)[found.at[0]->bytes] = 0;
            *n = found.at[0]->bytes;
        }
        r = *text ? CUE_SUCCESS : CUE_OUT_OF_MEMORY;
    } else if (found.n > 1) { /* relocatable ones, one a translation unit */
        struct mg_text *texts = calloc(found.n, sizeof *texts);
        for (uint32_t i = 0; texts && i < found.n; i++)
            texts[i] = (struct mg_text){found.at[i]->data, found.at[i]->bytes, found.at[i]->name};
        enum mg_err le = texts ? mg_link_texts(texts, found.n, text, n, d) : MG_ERR_NO_MEMORY;
        r = !le ? CUE_SUCCESS : le == MG_ERR_NO_MEMORY ? CUE_OUT_OF_MEMORY : CUE_INVALID_PTX;
        free(texts);
    } else {
        mg_diag_err(d, MG_ERR_NOT_FOUND, "the image holds no %s for compute capability %u.%u", groups ? "PTX" : "code",
                    sm / 10, sm % 10);
    }
    if (!r && facts) *facts = read_facts(im, found.n ? found.at[0] : NULL);
    mg_vec_release(&found);
    mg_image_free(im);
    return r;
}
