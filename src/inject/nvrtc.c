/* Programs compiled at run time: when one asks NVRTC for the machine code of a program, the PTX of the
 * same program is asked for as well and kept under the machine code's hash (image/known.h). A load of
 * that cubin then finds its PTX: our own driver runs it, and twins are made of it.
 *
 *   nvrtcGetCUBIN(prog, out) ── the library's ──► out
 *                └─ nvrtcGetPTX(prog) of the same library ─► mg_known_ptx_add(out, ptx)
 *
 * Programs that load the PTX itself need none of this. A program compiled to LTO-IR has no PTX: its
 * launches are native, or refused without a GPU. PTX linked by nvJitLink: nvjitlink.c. */
#include "inject/symbols.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "image/known.h"
#include "inject/session.h"

enum { NVRTC_SUCCESS = 0, NVRTC_INTERNAL_ERROR = 11 };

MG_EXPORT int nvrtcGetCUBIN(void *program, char *out);

struct nvrtc { /* functions of one library */
    int (*get_cubin)(void *program, char *out);
    int (*cubin_size)(void *program, size_t *bytes);
    int (*get_ptx)(void *program, char *out);
    int (*ptx_size)(void *program, size_t *bytes);
};
static struct nvrtc by_dlsym; /* of the library that a program asked by name; under the session's lock */

/* The rest of the library that holds this nvrtcGetCUBIN. */
static bool open_library(void *get_cubin, struct nvrtc *n)
{
    Dl_info info;
    if (!get_cubin || get_cubin == (void *)(uintptr_t)nvrtcGetCUBIN || !dladdr(get_cubin, &info) || !info.dli_fname)
        return false;
    void *lib = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!lib) return false;
    *(void **)&n->get_cubin = get_cubin;
    *(void **)&n->cubin_size = mg_real_symbol(lib, "nvrtcGetCUBINSize");
    *(void **)&n->get_ptx = mg_real_symbol(lib, "nvrtcGetPTX");
    *(void **)&n->ptx_size = mg_real_symbol(lib, "nvrtcGetPTXSize");
    dlclose(lib); /* the caller has it open */
    return n->cubin_size && n->get_ptx && n->ptx_size;
}

/* Handles mean something to the library that made them alone: two of them, both asked by name, cannot
 * be told apart later, so only the first is stood in for. */
void *mg_nvrtc_symbol(void *real)
{
    struct nvrtc n;
    if (!open_library(real, &n)) return NULL;
    pthread_mutex_lock(&mg_session.lock);
    bool ok = !by_dlsym.get_cubin || by_dlsym.get_cubin == n.get_cubin;
    if (ok) by_dlsym = n;
    pthread_mutex_unlock(&mg_session.lock);
    return ok ? (void *)(uintptr_t)nvrtcGetCUBIN : NULL;
}

/* The library that the calling object was linked with: by its own dependencies, as the loader would
 * have bound the call, then the one asked for by name, then whichever stands behind us. */
static bool find_library(void *caller, struct nvrtc *n)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && map && map->l_name && *map->l_name) {
        void *lib = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
        void *f = lib ? mg_real_symbol(lib, "nvrtcGetCUBIN") : NULL;
        bool ok = f && open_library(f, n);
        if (lib) dlclose(lib);
        if (ok) return true;
    }
    pthread_mutex_lock(&mg_session.lock);
    *n = by_dlsym;
    pthread_mutex_unlock(&mg_session.lock);
    return n->get_cubin || open_library(mg_real_symbol(RTLD_NEXT, "nvrtcGetCUBIN"), n);
}

static void keep_ptx(const struct nvrtc *n, void *program, const char *cubin)
{
    size_t bytes = 0, ptx_bytes = 0;
    if (n->cubin_size(program, &bytes) || !bytes || n->ptx_size(program, &ptx_bytes) || ptx_bytes < 2) return;
    char *text = malloc(ptx_bytes);
    if (text && n->get_ptx(program, text) == NVRTC_SUCCESS && !mg_known_ptx_add(cubin, bytes, text, ptx_bytes))
        mg_session_say("out of memory: the PTX of a program compiled at run time is lost");
    free(text);
}

int nvrtcGetCUBIN(void *program, char *out)
{
    struct nvrtc n;
    if (!find_library(__builtin_return_address(0), &n)) return NVRTC_INTERNAL_ERROR;
    int rc = n.get_cubin(program, out);
    if (rc == NVRTC_SUCCESS && out) keep_ptx(&n, program, out);
    return rc;
}
