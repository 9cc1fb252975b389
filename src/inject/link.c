/* Programs that link at run time on a GPU: the PTX given to cuLinkAdd* is kept under the hash of the machine
 * code that cuLinkComplete returns (image/known.h), so that a load of that machine code finds it.
 *
 *   cuLinkAddData(link, PTX) ─► kept with the link ─► cuLinkComplete ─► mg_known_ptx_add(cubin, PTX)
 *
 * A link of several PTX texts, or of PTX with libraries, has no single text that the kernels could be
 * taken from: its launches run native. Our own driver links text and needs none of this. */
#include "inject/priv.h"

#include <stdlib.h>
#include <string.h>

#include "image/known.h"

struct link { char *ptx; size_t bytes; uint32_t n_inputs; }; /* ptx: the first text */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mg_map links; /* cu_link -> struct link */

static bool is_on(void)
{
    return mg_session.active && !mg_inside && mg_session.backend->send;
}

static void add_input(cu_link l, int type, const char *data, size_t bytes)
{
    uint64_t v = 0;
    pthread_mutex_lock(&lock);
    if (!mg_map_get(&links, (uint64_t)(uintptr_t)l, &v)) {
        v = (uint64_t)(uintptr_t)calloc(1, sizeof(struct link));
        if (v)
            mg_map_set(&links, (uint64_t)(uintptr_t)l, v);
    }
    struct link *k = (struct link *)(uintptr_t)v;
    if (k && !k->n_inputs++ && type == CUJITIN_PTX && (k->ptx = malloc(bytes + 1))) {
        memcpy(k->ptx, data, bytes);
        k->ptx[bytes] = 0;
        k->bytes = strlen(k->ptx);
    }
    pthread_mutex_unlock(&lock);
}

static struct link *link_take(cu_link l)
{
    uint64_t v = 0;
    pthread_mutex_lock(&lock);
    if (mg_map_get(&links, (uint64_t)(uintptr_t)l, &v))
        mg_map_del(&links, (uint64_t)(uintptr_t)l);
    pthread_mutex_unlock(&lock);
    return (struct link *)(uintptr_t)v;
}
static void link_free(struct link *k)
{
    if (k)
        free(k->ptx);
    free(k);
}

#define ADD_DATA(entry)                                                                                               \
    MG_HOOK(entry, cu_link l, int type, void *data, size_t bytes, const char *name, unsigned n, int *keys, void **values) \
    {                                                                                                                 \
        cu_result rc = MG_REAL(entry)(l, type, data, bytes, name, n, keys, values);                                   \
        if (rc == CUE_SUCCESS && is_on())                                                                             \
            add_input(l, type, data, bytes);                                                                          \
        return rc;                                                                                                    \
    }
ADD_DATA(cuLinkAddData)
ADD_DATA(cuLinkAddData_v2)

#define ADD_FILE(entry)                                                                             \
    MG_HOOK(entry, cu_link l, int type, const char *path, unsigned n, int *keys, void **values)     \
    {                                                                                               \
        char *data = NULL;                                                                          \
        size_t bytes = 0;                                                                           \
        cu_result rc = MG_REAL(entry)(l, type, path, n, keys, values);                              \
        if (rc == CUE_SUCCESS && is_on() && mg_io_read(path, &data, &bytes, NULL) == MG_ERR_OK)     \
            add_input(l, type, data, bytes);                                                        \
        free(data);                                                                                 \
        return rc;                                                                                  \
    }
ADD_FILE(cuLinkAddFile)
ADD_FILE(cuLinkAddFile_v2)

MG_HOOK(cuLinkComplete, cu_link l, void **cubin, size_t *bytes)
{
    size_t room = 0;
    cu_result rc = MG_REAL(cuLinkComplete)(l, cubin, bytes ? bytes : &room);
    struct link *k = rc == CUE_SUCCESS && is_on() ? link_take(l) : NULL;
    if (k && k->ptx && k->n_inputs == 1 && cubin && !mg_known_ptx_add(*cubin, bytes ? *bytes : room, k->ptx, k->bytes + 1))
        mg_session_say("out of memory: the PTX of a program linked at run time is lost");
    link_free(k);
    return rc;
}
MG_HOOK(cuLinkDestroy, cu_link l)
{
    if (is_on())
        link_free(link_take(l));
    return MG_REAL(cuLinkDestroy)(l);
}
