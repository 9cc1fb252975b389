/* What the program loads, its kernels and its variables. Everything has a number: images by content (the file keeps
 * equal chunks once), loads by call, kernels when they are first launched. */
#include "inject/capture/capture.h"

#include <stdlib.h>
#include <string.h>

#include "abi/jit.h"
#include "base/io.h"
#include "image/image.h"
#include "image/packed.h"
#include "inject/kernels.h"
#include "inject/session.h"

struct made {
    uint64_t load;
    uint32_t context; /* where it was launched first */
};
static struct mg_map loads;           /* module and library handles -> load */
static struct mg_map kernels;         /* function and kernel handles -> kernel; under the lock */
static MG_VEC(struct made) of_kernel; /* by number */
static MG_VEC(uint32_t) context_of;   /* by load; 0: of a library, which is in all of them */
static uint64_t n_images;
static struct mg_map images; /* hash of a packed image -> its number */

/* ---- loads --------------------------------------------------------------------------------------------- */

/* Machine code whose PTX its compiler left (NVRTC, Triton): both, so that a GPU runs what it ran, and other devices the
 * PTX. */
static bool pack_pair(const void *image, struct mg_buf *packed)
{
    struct mg_image *im = NULL;
    const struct mg_image_entry *cubin = NULL, *ptx = NULL;
    if (mg_image_open_memory(image, &im, NULL)) return false;
    for (uint32_t k = 0; im->kind == MG_IMAGE_CUBIN && k < im->n_entries; k++)
        if (im->entries[k].kind == MG_ENTRY_PTX)
            ptx = &im->entries[k];
        else if (im->entries[k].kind == MG_ENTRY_CUBIN)
            cubin = &im->entries[k];
    if (cubin && ptx) mg_image_pack_pair(cubin, ptx, packed);
    mg_image_free(im);
    return packed->n != 0;
}

static uint64_t image_of(const void *image)
{
    struct mg_buf packed = MG_BUF_INIT;
    uint64_t hash[2], number = 0;
    if (pack_pair(image, &packed) || mg_image_pack(image, &packed)) {
        mg_cap_hash(packed.at, packed.n, hash);
        if (!mg_map_get(&images, hash[0], &number)) {
            number = ++n_images;
            mg_map_set(&images, hash[0], number);
            PUT_CONTENT(MG_CAP_image, packed.at, packed.n, number, packed.n);
        }
    }
    mg_buf_release(&packed);
    return number;
}

static void loaded(void *handle, const void *image, bool library, unsigned n, const int *options, void *const *values)
{
    uint64_t words[3 + 2 * 16], k = 3;
    mg_capture_lock();
    words[1] = image_of(image);
    if (!words[1]) mg_capture_miss("an image of an unknown kind is not captured", true);
    if (!context_of.n) *mg_vec_push(&context_of) = 0;
    words[0] = context_of.n;
    *mg_vec_push(&context_of) = library ? 0 : mg_cap_context();
    words[2] = library;
    for (unsigned i = 0; options && values && i < n && k < MG_COUNT_OF(words); i++)
        if (mg_cu_jit_changes_code(options[i])) {
            words[k++] = (uint64_t)options[i];
            words[k++] = (uint32_t)(uintptr_t)values[i];
        }
    mg_map_set(&loads, (uintptr_t)handle, words[0]);
    if (words[1]) mg_capture_put(MG_CAP_load, words, (uint32_t)k, NULL, 0);
    mg_capture_unlock();
}

static void loaded_file(void *handle, const char *path, bool library)
{
    char *data;
    size_t bytes;
    mg_inside++;
    if (!mg_io_read(path, &data, &bytes, NULL)) {
        loaded(handle, data, library, 0, NULL, NULL);
        free(data);
    }
    mg_inside--;
}

MG_CAPTURE(cuModuleLoad, cu_module *m, const char *path)
{
    cu_result rc = NEXT(cuModuleLoad)(m, path);
    if (rc == CUE_SUCCESS && mg_capture_looks()) loaded_file(*m, path, false);
    return rc;
}
MG_CAPTURE(cuModuleLoadData, cu_module *m, const void *image)
{
    cu_result rc = NEXT(cuModuleLoadData)(m, image);
    if (rc == CUE_SUCCESS && mg_capture_looks()) loaded(*m, image, false, 0, NULL, NULL);
    return rc;
}
MG_CAPTURE(cuModuleLoadDataEx, cu_module *m, const void *image, unsigned n, int *options, void **values)
{
    cu_result rc = NEXT(cuModuleLoadDataEx)(m, image, n, options, values);
    if (rc == CUE_SUCCESS && mg_capture_looks()) loaded(*m, image, false, n, options, values);
    return rc;
}
MG_CAPTURE(cuModuleLoadFatBinary, cu_module *m, const void *image)
{
    cu_result rc = NEXT(cuModuleLoadFatBinary)(m, image);
    if (rc == CUE_SUCCESS && mg_capture_looks()) loaded(*m, image, false, 0, NULL, NULL);
    return rc;
}
MG_CAPTURE(cuLibraryLoadData, cu_library *l, const void *image, int *jit, void **jit_values, unsigned n_jit,
           int *options, void **values, unsigned n)
{
    cu_result rc = NEXT(cuLibraryLoadData)(l, image, jit, jit_values, n_jit, options, values, n);
    if (rc == CUE_SUCCESS && mg_capture_looks()) loaded(*l, image, true, n_jit, jit, jit_values);
    return rc;
}
MG_CAPTURE(cuLibraryLoadFromFile, cu_library *l, const char *path, int *jit, void **jit_values, unsigned n_jit,
           int *options, void **values, unsigned n)
{
    cu_result rc = NEXT(cuLibraryLoadFromFile)(l, path, jit, jit_values, n_jit, options, values, n);
    if (rc == CUE_SUCCESS && mg_capture_looks()) loaded_file(*l, path, true);
    return rc;
}
MG_CAPTURE(cuLibraryGetModule, cu_module *m, cu_library l)
{
    uint64_t load;
    cu_result rc = NEXT(cuLibraryGetModule)(m, l);
    if (rc == CUE_SUCCESS && mg_capture_looks()) {
        mg_capture_lock();
        if (mg_map_get(&loads, (uintptr_t)l, &load)) mg_map_set(&loads, (uintptr_t)*m, load);
        mg_capture_unlock();
    }
    return rc;
}

/* Handles of a load, or of all that is one context's, may be given out again for something else. */
static void drop_handles(struct mg_map *map, uint64_t load, uint32_t context)
{
    uint64_t key, v;
    MG_VEC(uint64_t) dead = {0};
    for (uint32_t i = 0; mg_map_next(map, &i, &key, &v);) {
        uint64_t of = map == &kernels ? of_kernel.at[v].load : v;
        uint32_t in = map == &kernels ? of_kernel.at[v].context : context_of.at[v];
        if (context ? in == context : of == load) *mg_vec_push(&dead) = key;
    }
    for (uint32_t i = 0; i < dead.n; i++) mg_map_del(map, dead.at[i]);
    mg_vec_release(&dead);
}

static void unload(uint64_t load, bool there)
{
    mg_cap_areas_unload((uint32_t)load, there);
    drop_handles(&loads, load, 0);
    drop_handles(&kernels, load, 0);
    context_of.at[load] = 0;
    PUT(MG_CAP_unload, load);
}

static void unloads(void *handle)
{
    uint64_t load;
    if (!mg_capture_looks()) return;
    mg_capture_lock();
    if (mg_map_get(&loads, (uintptr_t)handle, &load)) unload(load, mg_check_wait(true));
    mg_capture_unlock();
}

/* With its modules, and the functions that kernels of libraries have there. */
void mg_cap_modules_end(uint32_t context)
{
    for (uint32_t load = 1; context && load < context_of.n; load++)
        if (context_of.at[load] == context) unload(load, false); /* compared before */
    if (context) drop_handles(&kernels, 0, context);
}
MG_CAPTURE(cuModuleUnload, cu_module m)
{
    unloads(m);
    return NEXT(cuModuleUnload)(m);
}
MG_CAPTURE(cuLibraryUnload, cu_library l)
{
    unloads(l);
    return NEXT(cuLibraryUnload)(l);
}

/* ---- kernels -------------------------------------------------------------------------------------------- */

static uint64_t load_of(void *function)
{
    uint64_t load = 0;
    cu_library l = NULL;
    cu_module m = NULL;
    cu_kernel k = NULL;
    if (MG_REAL_AS(cuKernelGetLibrary, cu_library *, cu_kernel)(&l, function) == CUE_SUCCESS &&
        mg_map_get(&loads, (uintptr_t)l, &load))
        return load;
    const struct mg_inst *i = mg_kernel_get(function);
    if (i && (k = i->kernel) && MG_REAL_AS(cuKernelGetLibrary, cu_library *, cu_kernel)(&l, k) == CUE_SUCCESS &&
        mg_map_get(&loads, (uintptr_t)l, &load))
        return load;
    if (MG_REAL_AS(cuFuncGetModule, cu_module *, cu_function)(&m, function) == CUE_SUCCESS)
        mg_map_get(&loads, (uintptr_t)m, &load);
    return load;
}

uint32_t mg_cap_kernel_of(void *function, struct mg_inst **inst)
{
    uint64_t number, load;
    *inst = mg_kernel_get(function);
    if (!*inst) return 0;
    if (mg_map_get(&kernels, (uintptr_t)function, &number)) return (uint32_t)number;
    load = load_of(function);
    if (!load) return 0;
    if (!of_kernel.n) *mg_vec_push(&of_kernel) = (struct made){0};
    number = of_kernel.n;
    *mg_vec_push(&of_kernel) = (struct made){load, mg_cap_context()};
    mg_map_set(&kernels, (uintptr_t)function, number);
    PUT_TEXT(MG_CAP_kernel, (*inst)->code->name, number, load);
    return (uint32_t)number;
}

/* Attributes that decide what a launch does; the others change times. */
static bool is_kept_attribute(int which)
{
    return which == CUFUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES || which == CUFUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED ||
           (which >= CUFUNC_REQUIRED_CLUSTER_WIDTH && which <= CUFUNC_REQUIRED_CLUSTER_DEPTH);
}

static void attribute(void *function, int which, int value, cu_ctx of)
{
    struct mg_inst *i;
    mg_capture_lock();
    mg_capture.of = of;
    uint32_t kernel = mg_cap_kernel_of(function, &i);
    if (kernel && is_kept_attribute(which)) PUT(MG_CAP_attribute, kernel, (uint64_t)which, (uint64_t)(unsigned)value);
    mg_capture.of = NULL;
    mg_capture_unlock();
}
MG_CAPTURE(cuFuncSetAttribute, cu_function f, int which, int value)
{
    cu_result rc = NEXT(cuFuncSetAttribute)(f, which, value);
    if (rc == CUE_SUCCESS && mg_capture_looks()) attribute(f, which, value, NULL);
    return rc;
}
MG_CAPTURE(cuKernelSetAttribute, int which, int value, cu_kernel k, cu_device d)
{
    cu_result rc = NEXT(cuKernelSetAttribute)(which, value, k, d);
    if (rc == CUE_SUCCESS && mg_capture_looks()) attribute(k, which, value, mg_cap_context_primary(d));
    return rc;
}
MG_CAPTURE(cuCtxSetLimit, int limit, size_t value)
{
    cu_result rc = NEXT(cuCtxSetLimit)(limit, value);
    if (rc == CUE_SUCCESS && mg_capture_looks()) {
        mg_capture_lock();
        PUT(MG_CAP_limit, (uint64_t)limit, value);
        mg_capture_unlock();
    }
    return rc;
}

/* ---- variables -------------------------------------------------------------------------------------------- */

/* A variable that the program has asked for: from then on it may copy there, or hand its address on. */
static void variable(void *container, const char *name, uint64_t at, uint64_t bytes, bool managed)
{
    uint64_t load;
    if (!at || !bytes) return;
    mg_capture_lock();
    if (!mg_cap_area_find(at) && mg_map_get(&loads, (uintptr_t)container, &load)) {
        PUT_TEXT(MG_CAP_variable, name, load, at, bytes);
        struct mg_cap_area *a = mg_cap_area_add(at, bytes, managed ? MG_CAP_MANAGED : MG_CAP_DEVICE);
        a->stays = true;
        a->load = (uint32_t)load;
        if (managed) {
            a->known = calloc(bytes / MG_CAP_CHUNK + 1, sizeof *a->known);
            mg_capture.shares = true;
        }
        a->told = true;
    }
    mg_capture_unlock();
}
/* Sizes and addresses may not have been asked for: the driver is asked again. */
#define VARIABLE(entry, container)                                                                                     \
    cu_result rc = NEXT(entry)(p, bytes, container, name);                                                             \
    cu_ptr at;                                                                                                         \
    size_t size;                                                                                                       \
    if (rc == CUE_SUCCESS && name && mg_capture_looks() && NEXT(entry)(&at, &size, container, name) == CUE_SUCCESS)
MG_CAPTURE(cuModuleGetGlobal_v2, cu_ptr *p, size_t *bytes, cu_module m, const char *name)
{
    VARIABLE(cuModuleGetGlobal_v2, m)
    variable(m, name, at, size, false);
    return rc;
}
MG_CAPTURE(cuLibraryGetGlobal, cu_ptr *p, size_t *bytes, cu_library l, const char *name)
{
    VARIABLE(cuLibraryGetGlobal, l)
    variable(l, name, at, size, false);
    return rc;
}
MG_CAPTURE(cuLibraryGetManaged, cu_ptr *p, size_t *bytes, cu_library l, const char *name)
{
    VARIABLE(cuLibraryGetManaged, l)
    variable(l, name, at, size, true);
    return rc;
}
