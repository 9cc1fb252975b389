/* Machine code of twins: the driver's linker compiles the text, which waits for nothing, and what it
 * made is kept (base/cache.h, part "twins") under a hash of text, device, driver and options. A text that calls
 * functions, or would be slow as relocatable code, is left to the driver's loader, whose whole-program compilation
 * gives addresses of functions that the linker's relocatable code has not (the driver caches those itself). */
#include "inject/nvidia/nv_priv.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cache.h"

#define LOG_BYTES 8192u
static const char magic[8] = "mgcubin1";

/* ---- the cache ------------------------------------------------------------------------------------------ */

static void hash_text(struct mg_sha256 *s, const char *label, long long value)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%s=%lld;", label, value);
    mg_sha256_add(s, text, (size_t)n);
}

/* What the machine code depends on beside the text: the device and the driver's compiler. */
static void hash_place(struct mg_sha256 *s)
{
    int dev = 0, major = 0, minor = 0, version = 0;
    struct stat st;
    mg_nv.cuCtxGetDevice(&dev);
    mg_nv.cuDeviceGetAttribute(&major, CUDEV_COMPUTE_CAPABILITY_MAJOR, dev);
    mg_nv.cuDeviceGetAttribute(&minor, CUDEV_COMPUTE_CAPABILITY_MINOR, dev);
    mg_nv.cuDriverGetVersion(&version);
    hash_text(s, "sm", 10 * major + minor);
    hash_text(s, "driver", version);
    if (mg_nv.config.driver_path && !stat(mg_nv.config.driver_path, &st)) { /* builds of one version differ */
        hash_text(s, "bytes", (long long)st.st_size);
        hash_text(s, "made", (long long)st.st_mtime);
    }
}

static bool cache_path(const char *ptx, size_t bytes, const struct mg_nv_jit *j, bool make, char *path)
{
    uint8_t h[32];
    struct mg_sha256 s;
    mg_sha256_init(&s);
    mg_sha256_add(&s, magic, sizeof magic);
    hash_place(&s);
    hash_text(&s, "registers", j->max_registers);
    hash_text(&s, "level", j->opt_level);
    mg_sha256_add(&s, ptx, bytes);
    mg_sha256_end(&s, h);
    return mg_cache_path("twins", h, make, path);
}

/* ---- compiling -------------------------------------------------------------------------------------------- */

/* Options of the driver's JIT: log first, then what was asked for. */
struct options {
    int keys[8];
    void *values[8];
    unsigned n;
    char log[LOG_BYTES];
};

static void set_option(struct options *o, int key, void *value)
{
    o->keys[o->n] = key;
    o->values[o->n++] = value;
}
static void set_options(struct options *o, const struct mg_nv_jit *j)
{
    o->n = 0;
    o->log[0] = 0;
    set_option(o, CUJIT_ERROR_LOG_BUFFER, o->log);
    set_option(o, CUJIT_ERROR_LOG_BUFFER_SIZE_BYTES, (void *)(uintptr_t)LOG_BYTES);
    if (j->max_registers) set_option(o, CUJIT_MAX_REGISTERS, (void *)(uintptr_t)j->max_registers);
    if (j->opt_level >= 0) set_option(o, CUJIT_OPTIMIZATION_LEVEL, (void *)(uintptr_t)j->opt_level);
}

/* One line for the profile: what the driver said, else what its number means. */
static void explain(cu_result rc, const char *log, char *why, size_t room)
{
    const char *name = mg_cu_result_name(rc);
    if (rc == CUE_UNSUPPORTED_PTX_VERSION) {
        snprintf(why, room, "the PTX is newer than the driver");
        return;
    }
    log += strspn(log, " \t\r\n");
    size_t n = strcspn(log, "\r\n");
    if (n)
        snprintf(why, room, "the driver does not take the instrumented code (%s): %.*s", name ? name : "unknown error",
                 (int)MG_MIN(n, (size_t)300), log);
    else
        snprintf(why, room, "the driver does not take the instrumented code (%s)", name ? name : "unknown error");
}

static cu_result link_text(const char *ptx, size_t bytes, struct options *o, void **out, size_t *out_bytes)
{
    cu_link link;
    void *code = NULL;
    size_t n = 0;
    cu_result rc = mg_nv.cuLinkCreate_v2(o->n, o->keys, o->values, &link);
    if (rc != CUE_SUCCESS) return rc;
    rc = mg_nv.cuLinkAddData_v2(link, CUJITIN_PTX, (void *)(uintptr_t)ptx, bytes + 1, "twin", 0, NULL, NULL);
    if (rc == CUE_SUCCESS) rc = mg_nv.cuLinkComplete(link, &code, &n);
    if (rc == CUE_SUCCESS && (*out = malloc(n + 1))) {
        memcpy(*out, code, n);
        ((char *)*out)[n] = 0;
        *out_bytes = n;
    } else if (rc == CUE_SUCCESS) {
        rc = CUE_OUT_OF_MEMORY;
    }
    mg_nv.cuLinkDestroy(link);
    return rc;
}

cu_result mg_nv_compile(const char *ptx, size_t bytes, const struct mg_nv_jit *j, void **out, size_t *out_bytes,
                        char *why, size_t why_room)
{
    char path[PATH_MAX];
    *out = NULL;
    if (j->whole) return CUE_SUCCESS;
    if (cache_path(ptx, bytes, j, false, path) && (*out = mg_cache_read(path, magic, out_bytes))) return CUE_SUCCESS;
    struct options *o = calloc(1, sizeof *o);
    if (!o) return CUE_OUT_OF_MEMORY;
    set_options(o, j);
    cu_result rc = link_text(ptx, bytes, o, out, out_bytes);
    if (rc != CUE_SUCCESS)
        explain(rc, o->log, why, why_room);
    else if (cache_path(ptx, bytes, j, true, path))
        mg_cache_write(path, magic, *out, *out_bytes);
    free(o);
    return rc;
}

cu_result mg_nv_load(const char *ptx, const void *code, const struct mg_nv_jit *j, cu_module *m, char *why,
                     size_t why_room)
{
    struct options *o = calloc(1, sizeof *o);
    if (!o) return CUE_OUT_OF_MEMORY;
    set_options(o, j);
    cu_result rc = mg_nv.cuModuleLoadDataEx(m, code ? code : ptx, code ? 0 : o->n, o->keys, o->values);
    if (rc != CUE_SUCCESS) explain(rc, o->log, why, why_room);
    free(o);
    return rc;
}
