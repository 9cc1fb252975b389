/* Which function a program gets when it asks the driver for one, and the first call of all.
 *
 * cuGetProcAddress: the driver answers first; its pointer is mapped to our hook by address, else by
 * (name, version, flags) as the driver itself would have resolved them. Names are never probed with
 * other suffixes: the same base name has other arguments in other versions. */
#include "inject/backend.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "inject/calls.h"
#include "inject/hooks.h"
#include "inject/session.h"

static void *map_pointer(void *p, const char *name, int version, uint64_t flags)
{
    int entry = mg_slot_find(p), status;
    if (entry < 0) entry = mg_cu_entry_resolve(name, version, flags, &status);
    return mg_calls_pointer(entry, p);
}

MG_HOOK(cuGetProcAddress_v2, const char *name, void **fn, int version, uint64_t flags, int *status)
{
    cu_result rc = MG_REAL(cuGetProcAddress_v2)(name, fn, version, flags, status);
    if (rc == CUE_SUCCESS && name && fn && *fn) *fn = map_pointer(*fn, name, version, flags);
    return rc;
}

MG_HOOK(cuGetProcAddress, const char *name, void **fn, int version, uint64_t flags)
{
    cu_result rc = MG_REAL(cuGetProcAddress)(name, fn, version, flags);
    if (rc == CUE_SUCCESS && name && fn && *fn) *fn = map_pointer(*fn, name, version, flags);
    return rc;
}

/* Nobody but NVIDIA links these. */
static bool is_closed(const char *file)
{
    static const char *const names[] = {"libcublas", "libcufft", "libcurand", "libcusparse", "libcusolver",
                                        "libcudnn",  "libnpp",   "libnvjpeg", "libnccl",     "libcutensor"};
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    for (size_t i = 0; i < MG_COUNT_OF(names); i++)
        if (!strncmp(name, names[i], strlen(names[i])) && strstr(name, ".so")) return true;
    return false;
}

/* Private tables: left to NVIDIA's driver; our own has none and says whose call that was, since it
 * is what a statically linked runtime does first. */
MG_HOOK(cuGetExportTable, const void **table, const cu_uuid *id)
{
    void *caller = mg_calls_caller(__builtin_return_address(0));
    static const cu_uuid link = MG_RUNTIME_LINK;
    mg_inject_ready();
    if (id && table && !memcmp(id, &link, sizeof link)) {
        mg_calls_forget(); /* it is ours */
        *table = &mg_runtime_link;
        return CUE_SUCCESS;
    }
    if (mg_session_can(MG_BACKEND_HARDWARE)) return MG_REAL(cuGetExportTable)(table, id);
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char said[16][256];
    Dl_info info;
    const char *file = dladdr(caller, &info) && info.dli_fname ? info.dli_fname : "the program";
    if (strstr(file, "libnvrtc")) { /* looks whether there is a GPU, and does without */
        if (table) *table = NULL;
        return CUE_NOT_SUPPORTED;
    }
    pthread_mutex_lock(&lock);
    unsigned i = 0;
    while (i < MG_COUNT_OF(said) && said[i][0] && strncmp(said[i], file, sizeof said[i] - 1)) i++;
    bool fresh = i < MG_COUNT_OF(said) && !said[i][0];
    if (fresh) strncpy(said[i], file, sizeof said[i] - 1);
    pthread_mutex_unlock(&lock);
    if (fresh && is_closed(file))
        mg_session_say("%s is closed and has a CUDA runtime of its own, which needs a GPU: its calls fail", file);
    else if (fresh)
        mg_session_say("%s holds a statically linked CUDA runtime, which needs a GPU: relink it with "
                       "NVCC_APPEND_FLAGS=\"-cudart shared\"",
                       file);
    if (table) *table = NULL;
    return CUE_NOT_SUPPORTED;
}

MG_HOOK(cuInit, unsigned flags)
{
    cu_result rc = MG_REAL(cuInit)(flags);
    if (rc == CUE_SUCCESS) mg_session_begin();
    return rc;
}
