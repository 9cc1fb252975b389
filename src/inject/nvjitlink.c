/* Programs that link PTX at run time with nvJitLink: the PTX that goes in is linked by us as well, and the
 * text is kept under the hash of the machine code that comes out (image/known.h), as for NVRTC (nvrtc.c).
 *
 *   nvJitLinkAddData(h, PTX) ──► the library's, and a copy in inputs_of(h)
 *   nvJitLinkGetLinkedCubin(h, out) ──► the library's ──► out
 *              └─ mg_link_texts(inputs of h) ─► mg_known_ptx_add(out, text)
 *
 * A link with an input that is no PTX (LTO-IR, machine code, host objects and libraries but
 * libcudadevrt) has no text: its launches are native, or refused without a GPU. */
/* clang-format off */
#include "inject/symbols.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/vec.h"
#include "driver/link.h"
#include "image/known.h"
#include "inject/session.h"

enum { LINK_SUCCESS = 0, LINK_INTERNAL_ERROR = 6 };
enum { INPUT_PTX = 2, INPUT_LIBRARY = 6, INPUT_ANY = 10 };

/* The names that one function goes by: nvJitLink's own, and one for each release. */
#define VERSIONS(X)                                                                                              \
    X(, ) \
    X(__, _12_0) \
    X(__, _12_1) \
    X(__, _12_2) \
    X(__, _12_3) \
    X(__, _12_4) \
    X(__, _12_5) \
    X(__, _12_6) \
    X(__, _12_7) \
    X(__, _12_8) \
    X(__, _12_9) \
    X(__, _13_0) \
    X(__, _13_1) \
    X(__, _13_2)
#define INDEX(pre, post) AT##post,
enum version { VERSIONS(INDEX) N_VERSIONS };
#undef INDEX
#define NAME(pre, post) {#pre, #post},
static const struct { const char *pre, *post; } versions[] = {VERSIONS(NAME)};
#undef NAME

/* ---- inputs --------------------------------------------------------------------------------------- */

struct link_inputs { /* of one handle */
    struct link_inputs *next;
    void *handle;
    MG_VEC(struct mg_text) texts; /* malloc'd */
    bool other;                   /* something came in that has no PTX */
};
static struct link_inputs *all; /* under lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void forget(void *handle)
{
    pthread_mutex_lock(&lock);
    for (struct link_inputs **at = &all; *at; at = &(*at)->next) {
        struct link_inputs *l = *at;
        if (l->handle != handle)
            continue;
        *at = l->next;
        for (uint32_t i = 0; i < l->texts.n; i++)
            free((char *)(uintptr_t)l->texts.at[i].at);
        mg_vec_release(&l->texts);
        free(l);
        break;
    }
    pthread_mutex_unlock(&lock);
}

static struct link_inputs *inputs_of(void *handle) /* lock held */
{
    struct link_inputs *l = all;
    while (l && l->handle != handle)
        l = l->next;
    if (!l && (l = calloc(1, sizeof *l))) {
        l->handle = handle;
        l->next = all;
        all = l;
    }
    return l;
}

/* What nvJitLink takes for PTX when the program leaves the choice to it. */
static bool looks_like_text(const char *p, size_t n)
{
    while (n && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n'))
        p++, n--;
    return n > 2 && (*p == '.' || !strncmp(p, "//", 2) || !strncmp(p, "/*", 2));
}

static void keep_input(void *handle, int type, const char *data, size_t n, const char *name)
{
    if (type == INPUT_LIBRARY && name && strstr(name, "cudadevrt"))
        return;
    bool ptx = type == INPUT_PTX || (type == INPUT_ANY && looks_like_text(data, n));
    char *copy = ptx ? malloc(n + 1) : NULL;
    pthread_mutex_lock(&lock);
    struct link_inputs *l = inputs_of(handle);
    if (l && copy) {
        memcpy(copy, data, n);
        copy[n] = 0;
        *mg_vec_push(&l->texts) = (struct mg_text){.at = copy, .n = strlen(copy)};
    } else {
        free(copy);
        if (l)
            l->other = true;
    }
    pthread_mutex_unlock(&lock);
}

static void keep_linked(void *handle, const char *cubin, size_t bytes)
{
    struct mg_diag d = MG_DIAG_INIT;
    char *text = NULL;
    size_t n = 0;
    enum mg_err e = MG_ERR_OK;
    pthread_mutex_lock(&lock);
    const struct link_inputs *l = inputs_of(handle);
    bool any = l && l->texts.n && !l->other;
    if (any && l->texts.n == 1) {
        text = strdup(l->texts.at[0].at);
        n = l->texts.at[0].n;
    } else if (any)
        e = mg_link_texts(l->texts.at, l->texts.n, &text, &n, &d);
    pthread_mutex_unlock(&lock);
    if (e)
        mg_session_say("PTX linked by nvJitLink is not known: %s", mg_diag_first(&d, e));
    else if (any && (!text || !mg_known_ptx_add(cubin, bytes, text, n)))
        mg_session_say("out of memory: the PTX of a program linked at run time is lost");
    free(text);
    mg_diag_release(&d);
}

/* ---- the library ------------------------------------------------------------------------------------ */

static void *asked[N_VERSIONS]; /* a function of the library that a program asked by name, under lock */

static void *in_library_of(void *function, const char *name)
{
    Dl_info info;
    void *lib = function && dladdr(function, &info) && info.dli_fname ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *p = lib ? mg_real_symbol(lib, name) : NULL;
    if (lib)
        dlclose(lib); /* the caller has it open */
    return p;
}

static bool is_ours(void *function)
{
    Dl_info theirs, here;
    return dladdr(function, &theirs) && dladdr((void *)(uintptr_t)is_ours, &here) && theirs.dli_fbase == here.dli_fbase;
}

/* As the loader would have bound the caller's call, then of the library asked by name, then whichever
 * stands behind us. */
static void *library_function(enum version v, const char *what, void *caller)
{
    char name[64];
    Dl_info info;
    struct link_map *map = NULL;
    void *p = NULL;
    snprintf(name, sizeof name, "%snvJitLink%s%s", versions[v].pre, what, versions[v].post);
    if (dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && map && map->l_name && *map->l_name)
        p = in_library_of(caller, name);
    pthread_mutex_lock(&lock);
    void *other = asked[v];
    pthread_mutex_unlock(&lock);
    if (!p || is_ours(p))
        p = in_library_of(other, name);
    if (!p || is_ours(p))
        p = mg_real_symbol(RTLD_NEXT, name);
    return p && !is_ours(p) ? p : NULL;
}

static int add_data(enum version v, void *caller, void *handle, int type, const void *data, size_t size, const char *name)
{
    int (*f)(void *, int, const void *, size_t, const char *);
    *(void **)&f = library_function(v, "AddData", caller);
    int rc = f ? f(handle, type, data, size, name) : LINK_INTERNAL_ERROR;
    if (rc == LINK_SUCCESS && data)
        keep_input(handle, type, data, size, name);
    return rc;
}

static int add_file(enum version v, void *caller, void *handle, int type, const char *path)
{
    int (*f)(void *, int, const char *);
    *(void **)&f = library_function(v, "AddFile", caller);
    int rc = f ? f(handle, type, path) : LINK_INTERNAL_ERROR;
    char *data = NULL;
    size_t n = 0;
    if (rc == LINK_SUCCESS && path && !mg_io_read(path, &data, &n, NULL))
        keep_input(handle, type, data, n, path);
    free(data);
    return rc;
}

static int get_cubin(enum version v, void *caller, void *handle, void *out)
{
    int (*f)(void *, void *), (*size)(void *, size_t *);
    size_t bytes = 0;
    *(void **)&f = library_function(v, "GetLinkedCubin", caller);
    *(void **)&size = library_function(v, "GetLinkedCubinSize", caller);
    int rc = f ? f(handle, out) : LINK_INTERNAL_ERROR;
    if (rc == LINK_SUCCESS && out && size && size(handle, &bytes) == LINK_SUCCESS && bytes)
        keep_linked(handle, out, bytes);
    return rc;
}

static int destroy(enum version v, void *caller, void **handle)
{
    int (*f)(void **);
    *(void **)&f = library_function(v, "Destroy", caller);
    void *h = handle ? *handle : NULL;
    int rc = f ? f(handle) : LINK_INTERNAL_ERROR;
    if (rc == LINK_SUCCESS && h)
        forget(h);
    return rc;
}

#define CALLER __builtin_return_address(0)
#define ENTRIES(pre, post)                                                                                     \
    MG_EXPORT int pre##nvJitLinkAddData##post(void *h, int type, const void *data, size_t size, const char *name); \
    MG_EXPORT int pre##nvJitLinkAddFile##post(void *h, int type, const char *path);                             \
    MG_EXPORT int pre##nvJitLinkGetLinkedCubin##post(void *h, void *out);                                       \
    MG_EXPORT int pre##nvJitLinkDestroy##post(void **h);                                                        \
    int pre##nvJitLinkAddData##post(void *h, int type, const void *data, size_t size, const char *name)         \
    {                                                                                                           \
        return add_data(AT##post, CALLER, h, type, data, size, name);                                           \
    }                                                                                                           \
    int pre##nvJitLinkAddFile##post(void *h, int type, const char *path) { return add_file(AT##post, CALLER, h, type, path); } \
    int pre##nvJitLinkGetLinkedCubin##post(void *h, void *out) { return get_cubin(AT##post, CALLER, h, out); }  \
    int pre##nvJitLinkDestroy##post(void **h) { return destroy(AT##post, CALLER, h); }
VERSIONS(ENTRIES)

/* ---- asked by name ------------------------------------------------------------------------------------ */

#define ADDRESSES(pre, post)                                                                                  \
    {(void *)(uintptr_t)pre##nvJitLinkAddData##post, (void *)(uintptr_t)pre##nvJitLinkAddFile##post,           \
     (void *)(uintptr_t)pre##nvJitLinkGetLinkedCubin##post, (void *)(uintptr_t)pre##nvJitLinkDestroy##post},
void *mg_nvjitlink_symbol(const char *name, void *real)
{
    static const char *const kinds[] = {"AddData", "AddFile", "GetLinkedCubin", "Destroy"};
    static void *const ours[][4] = {VERSIONS(ADDRESSES)};
    for (unsigned v = 0; real && !is_ours(real) && v < N_VERSIONS; v++)
        for (unsigned k = 0; k < 4; k++) {
            char text[64];
            snprintf(text, sizeof text, "%snvJitLink%s%s", versions[v].pre, kinds[k], versions[v].post);
            if (strcmp(text, name))
                continue;
            pthread_mutex_lock(&lock);
            bool first = !asked[v] || in_library_of(asked[v], name) == real; /* two libraries cannot be told apart later */
            if (first)
                asked[v] = real;
            pthread_mutex_unlock(&lock);
            return first ? ours[v][k] : NULL;
        }
    return NULL;
}
