#include "image/image.h"
#include "replay/replay.h"

#include <stdlib.h>
#include <string.h>

#define UNKNOWN(r, what, n)                                                                                            \
    mg_replay_fail(r, MG_REPLAY_INPUT, "%s: it names a %s that it lacks: %llu", (r)->path, what,                       \
                   (unsigned long long)(n))

#define FIND(list, number_)                                                                                            \
    do {                                                                                                               \
        for (uint32_t k = (list).n; k-- > 0;)                                                                          \
            if ((list).at[k].number == (number_)) return &(list).at[k];                                                \
        return NULL;                                                                                                   \
    } while (0)
struct mg_image_bytes *mg_replay_image_of(struct mg_replay *r, uint64_t number)
{
    FIND(r->images, number);
}
struct mg_load *mg_replay_load_of(struct mg_replay *r, uint64_t number)
{
    FIND(r->loads, number);
}
struct mg_kernel *mg_replay_kernel_of(struct mg_replay *r, uint64_t number)
{
    FIND(r->kernels, number);
}

static char *name_of(const struct mg_cap_op *op)
{
    return memchr(op->payload, 0, op->payload_bytes) ? NULL : strndup((const char *)op->payload, op->payload_bytes);
}

int mg_replay_image(struct mg_replay *r, const struct mg_cap_op *op)
{
    const char *why;
    struct mg_image_bytes im = {.number = op->words[0], .bytes = op->words[1], .at = malloc(op->words[1] + 1)};
    if (!im.at)
        return mg_replay_fail(r, MG_REPLAY_INPUT, "there is no memory for an image of %llu bytes",
                              (unsigned long long)op->words[1]);
    if (!mg_cap_content(r->reader, op, im.at, &why) || !mg_image_unpack(im.at, im.bytes, &im.unpacked)) {
        free(im.at);
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: image %llu is malformed", r->path,
                              (unsigned long long)im.number);
    }
    *mg_vec_push(&r->images) = im;
    return 0;
}

static cu_result load(struct mg_load *l, const void *image, unsigned n, int *options, void **values)
{
    return l->library ? mg_cu.cuLibraryLoadData((cu_library *)&l->handle, image, options, values, n, NULL, NULL, 0)
                      : mg_cu.cuModuleLoadDataEx((cu_module *)&l->handle, image, n, options, values);
}

/* Where a device refuses an image for its machine code, the PTX beside that may do. */
static cu_result load_ptx(struct mg_load *l, const struct mg_image_unpacked *u, unsigned n, int *options, void **values,
                          cu_result refused)
{
    struct mg_image *im = NULL;
    cu_result rc = refused;
    if (u->image != u->parts[0] || mg_image_open_bytes(u->parts[0], u->sizes[0], NULL, &im, NULL)) return rc;
    for (uint32_t k = 0; im->kind == MG_IMAGE_FATBIN && k < im->n_entries && rc != CUE_SUCCESS; k++)
        if (im->entries[k].kind == MG_ENTRY_PTX && load(l, im->entries[k].data, n, options, values) == CUE_SUCCESS)
            rc = CUE_SUCCESS;
    mg_image_free(im);
    return rc;
}

int mg_replay_load(struct mg_replay *r, const struct mg_cap_op *op)
{
    struct mg_image_bytes *im = mg_replay_image_of(r, op->words[1]);
    struct mg_load l = {.number = op->words[0],
                        .image = op->words[1],
                        .context = r->context,
                        .library = op->words[2] != 0,
                        .live = true};
    int options[32];
    void *values[32];
    unsigned n = 0;
    if (!im) return UNKNOWN(r, "image", op->words[1]);
    for (uint32_t k = 3; k + 1 < op->n_words && n < MG_COUNT_OF(options); k += 2, n++) {
        options[n] = (int)op->words[k];
        values[n] = (void *)(uintptr_t)op->words[k + 1];
    }
    cu_result rc = load(&l, im->unpacked.image, n, options, values);
    if (rc != CUE_SUCCESS) rc = load_ptx(&l, &im->unpacked, n, options, values, rc);
    l.n_words = MG_MIN(op->n_words, (uint32_t)MG_COUNT_OF(l.words));
    memcpy(l.words, op->words, l.n_words * sizeof *l.words);
    int status = mg_replay_call(r, rc, "loading image %llu", (unsigned long long)im->number);
    if (!status) *mg_vec_push(&r->loads) = l;
    return status;
}

static void drop_variable(struct mg_replay *r, uint32_t k)
{
    free(r->variables.at[k].name);
    r->variables.at[k] = r->variables.at[--r->variables.n];
}

int mg_replay_unload(struct mg_replay *r, const struct mg_cap_op *op)
{
    struct mg_load *l = mg_replay_load_of(r, op->words[0]);
    if (!l || !l->live) return UNKNOWN(r, "module", op->words[0]);
    int status = mg_replay_settle(r);
    if (status) return status;
    l->live = false;
    for (uint32_t k = 0; k < r->variables.n; k++)
        if (r->variables.at[k].load == l->number) drop_variable(r, k--);
    return mg_replay_call(r, l->library ? mg_cu.cuLibraryUnload(l->handle) : mg_cu.cuModuleUnload(l->handle),
                          "unloading a module");
}

int mg_replay_kernel(struct mg_replay *r, const struct mg_cap_op *op)
{
    struct mg_load *l = mg_replay_load_of(r, op->words[1]);
    struct mg_kernel k = {.number = op->words[0], .load = op->words[1], .name = name_of(op), .context = r->context};
    if (!l || !l->live || !k.name) return UNKNOWN(r, "module", op->words[1]);
    cu_result rc = l->library ? mg_cu.cuLibraryGetKernel(&k.kernel, l->handle, k.name)
                              : mg_cu.cuModuleGetFunction((cu_function *)&k.handle, l->handle, k.name);
    if (rc == CUE_SUCCESS && l->library) rc = mg_cu.cuKernelGetFunction((cu_function *)&k.handle, k.kernel);
    int status = mg_replay_call(r, rc, "finding the kernel %s", k.name);
    if (!status) *mg_vec_push(&r->kernels) = k;
    return status;
}

cu_function mg_replay_function(struct mg_replay *r, struct mg_kernel *k)
{
    if (k->kernel && k->context != r->context) {
        if (mg_replay_call(r, mg_cu.cuKernelGetFunction((cu_function *)&k->handle, k->kernel), "finding the kernel %s",
                           k->name))
            return NULL;
        k->context = r->context;
    }
    return k->handle;
}

int mg_replay_variable(struct mg_replay *r, const struct mg_cap_op *op)
{
    struct mg_load *l = mg_replay_load_of(r, op->words[0]);
    struct mg_variable v = {.load = op->words[0], .was = op->words[1], .bytes = op->words[2], .name = name_of(op)};
    cu_ptr at = 0;
    size_t bytes = 0;
    if (!l || !l->live || !v.name) return UNKNOWN(r, "module", op->words[0]);
    cu_result rc = !l->library ? mg_cu.cuModuleGetGlobal_v2(&at, &bytes, l->handle, v.name)
                               : mg_cu.cuLibraryGetGlobal(&at, &bytes, l->handle, v.name);
    if (rc != CUE_SUCCESS && l->library) rc = mg_cu.cuLibraryGetManaged(&at, &bytes, l->handle, v.name);
    int status = mg_replay_call(r, rc, "finding the variable %s", v.name);
    if (!status && bytes != v.bytes)
        status = mg_replay_fail(r, MG_REPLAY_INPUT, "the variable %s has %zu bytes here, not %llu", v.name, bytes,
                                (unsigned long long)v.bytes);
    v.is = at;
    for (uint32_t k = 0; k < r->variables.n; k++) /* of a context that is gone */
        if (v.was < r->variables.at[k].was + r->variables.at[k].bytes && r->variables.at[k].was < v.was + v.bytes)
            drop_variable(r, k--);
    if (!status) *mg_vec_push(&r->variables) = v;
    return status;
}

uint64_t mg_replay_here(const struct mg_replay *r, uint64_t was)
{
    for (uint32_t k = 0; k < r->variables.n; k++)
        if (was - r->variables.at[k].was < r->variables.at[k].bytes)
            return r->variables.at[k].is + (was - r->variables.at[k].was);
    return was;
}

/* Words are looked at only where all variables together lie. */
void mg_replay_translate(const struct mg_replay *r, void *data, uint64_t bytes, bool back)
{
    uint64_t lo = UINT64_MAX, hi = 0, w;
    for (uint32_t k = 0; k < r->variables.n; k++) {
        const struct mg_variable *v = &r->variables.at[k];
        lo = MG_MIN(lo, back ? v->is : v->was);
        hi = MG_MAX(hi, (back ? v->is : v->was) + v->bytes);
    }
    for (uint64_t k = 0; hi && k + 8 <= bytes; k += 8) {
        memcpy(&w, (char *)data + k, 8);
        if (w < lo || w >= hi) continue;
        for (uint32_t i = 0; i < r->variables.n; i++) {
            const struct mg_variable *v = &r->variables.at[i];
            uint64_t from = back ? v->is : v->was, to = back ? v->was : v->is;
            if (w - from < v->bytes) {
                w = to + (w - from);
                memcpy((char *)data + k, &w, 8);
                break;
            }
        }
    }
}
