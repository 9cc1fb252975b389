/* Programs that link at run time on a GPU: the PTX given to cuLinkAdd* is kept under the hash of the machine
 * code that cuLinkComplete returns (image/known.h), so that a load of that machine code finds it.
 *
 *   cuLinkAddData(link, PTX) ─► kept with the link ─► cuLinkComplete ─► mg_known_ptx_add(cubin, PTX)
 *
 * Several PTX texts are linked here as well. A link of PTX with libraries or machine code has kernels or
 * functions that no text holds: its launches run native. Our own driver links text and needs none of this. */
#include "inject/hooks.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"
#include "driver/link.h"
#include "image/known.h"
#include "inject/session.h"

struct link {
    MG_VEC(struct mg_text) texts;
    bool other;
}; /* owner of the texts; other: an input that is no PTX */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mg_map links; /* cu_link -> struct link */

static bool is_on(void)
{
    return mg_session.active && !mg_inside && mg_session_can(MG_BACKEND_HARDWARE);
}

static void add_input(cu_link l, int type, const char *data, size_t bytes)
{
    uint64_t v = 0;
    pthread_mutex_lock(&lock);
    if (!mg_map_get(&links, (uint64_t)(uintptr_t)l, &v)) {
        v = (uint64_t)(uintptr_t)calloc(1, sizeof(struct link));
        if (v) mg_map_set(&links, (uint64_t)(uintptr_t)l, v);
    }
    struct link *k = (struct link *)(uintptr_t)v;
    char *text = k && type == CUJITIN_PTX ? malloc(bytes + 1) : NULL;
    if (text) {
        memcpy(text, data, bytes);
        text[bytes] = 0;
        *mg_vec_push(&k->texts) = (struct mg_text){.at = text, .n = strlen(text)};
    } else if (k) {
        k->other = true;
    }
    pthread_mutex_unlock(&lock);
}

static struct link *link_take(cu_link l)
{
    uint64_t v = 0;
    pthread_mutex_lock(&lock);
    if (mg_map_get(&links, (uint64_t)(uintptr_t)l, &v)) mg_map_del(&links, (uint64_t)(uintptr_t)l);
    pthread_mutex_unlock(&lock);
    return (struct link *)(uintptr_t)v;
}
static void link_free(struct link *k)
{
    for (uint32_t i = 0; k && i < k->texts.n; i++) free((void *)(uintptr_t)k->texts.at[i].at);
    if (k) mg_vec_release(&k->texts);
    free(k);
}

static void keep_linked(const struct link *k, const void *cubin, size_t bytes)
{
    struct mg_diag d = MG_DIAG_INIT;
    char *text = NULL;
    size_t n = 0;
    enum mg_err err = MG_ERR_OK;
    if (k->texts.n == 1) { /* as it is: its hash names the module */
        n = k->texts.at[0].n;
        text = strdup(k->texts.at[0].at);
    } else {
        err = mg_link_texts(k->texts.at, k->texts.n, &text, &n, &d);
    }
    if (err && mg_session.config.verbose)
        mg_session_say("PTX linked at run time is not known: %s", mg_diag_first(&d, err));
    else if (!err && (!text || !mg_known_ptx_add(cubin, bytes, text, n)))
        mg_session_say("out of memory: the PTX of a program linked at run time is lost");
    free(text);
    mg_diag_release(&d);
}

#define ADD_DATA(entry)                                                                                                \
    MG_HOOK(entry, cu_link l, int type, void *data, size_t bytes, const char *name, unsigned n, int *keys,             \
            void **values)                                                                                             \
    {                                                                                                                  \
        cu_result rc = MG_REAL(entry)(l, type, data, bytes, name, n, keys, values);                                    \
        if (rc == CUE_SUCCESS && is_on()) add_input(l, type, data, bytes);                                             \
        return rc;                                                                                                     \
    }
ADD_DATA(cuLinkAddData)
ADD_DATA(cuLinkAddData_v2)

#define ADD_FILE(entry)                                                                                                \
    MG_HOOK(entry, cu_link l, int type, const char *path, unsigned n, int *keys, void **values)                        \
    {                                                                                                                  \
        char *data = NULL;                                                                                             \
        size_t bytes = 0;                                                                                              \
        cu_result rc = MG_REAL(entry)(l, type, path, n, keys, values);                                                 \
        if (rc == CUE_SUCCESS && is_on() && mg_io_read(path, &data, &bytes, NULL) == MG_ERR_OK)                        \
            add_input(l, type, data, bytes);                                                                           \
        free(data);                                                                                                    \
        return rc;                                                                                                     \
    }
ADD_FILE(cuLinkAddFile)
ADD_FILE(cuLinkAddFile_v2)

MG_HOOK(cuLinkComplete, cu_link l, void **cubin, size_t *bytes)
{
    size_t room = 0;
    cu_result rc = MG_REAL(cuLinkComplete)(l, cubin, bytes ? bytes : &room);
    struct link *k = rc == CUE_SUCCESS && is_on() ? link_take(l) : NULL;
    if (k && k->texts.n && !k->other && cubin) keep_linked(k, *cubin, bytes ? *bytes : room);
    link_free(k);
    return rc;
}
MG_HOOK(cuLinkDestroy, cu_link l)
{
    if (is_on()) link_free(link_take(l));
    return MG_REAL(cuLinkDestroy)(l);
}
