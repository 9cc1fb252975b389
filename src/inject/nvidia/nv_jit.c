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
#include <unistd.h>

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

static void hash_of(const char *ptx, size_t bytes, const struct mg_nv_jit *j, uint8_t h[32])
{
    struct mg_sha256 s;
    mg_sha256_init(&s);
    mg_sha256_add(&s, magic, sizeof magic);
    hash_place(&s);
    hash_text(&s, "registers", j->max_registers);
    hash_text(&s, "level", j->opt_level);
    mg_sha256_add(&s, ptx, bytes);
    mg_sha256_end(&s, h);
}

bool mg_nv_is_compiled(const char *ptx, size_t bytes, const struct mg_nv_jit *j)
{
    char path[PATH_MAX];
    uint8_t h[32];
    hash_of(ptx, bytes, j, h);
    return mg_cache_path("twins", h, false, path) && !access(path, R_OK);
}

/* ---- texts under way --------------------------------------------------------------------------------------- */

/* A text that some thread compiles: others that want the same wait for it. Gone with the last who wants it. */
struct job {
    struct job *next;
    uint8_t hash[32];
    uint32_t refs;
    bool done;
    cu_result rc;
    void *code;
    size_t bytes;
    char why[400];
};
static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_done = PTHREAD_COND_INITIALIZER;
static struct job *jobs;     /* under the lock, as all here */
static struct mg_map unused; /* first word of the hash of what was compiled ahead and not asked for -> bytes of text */
static uint64_t used_bytes;

static uint64_t key_of(const uint8_t hash[32])
{
    uint64_t key;
    memcpy(&key, hash, sizeof key);
    return key;
}

/* The job of this text; *ours: the caller is to do it. NULL: out of memory. */
static struct job *job_get(const uint8_t hash[32], bool *ours)
{
    pthread_mutex_lock(&jobs_lock);
    struct job *j = jobs;
    while (j && memcmp(j->hash, hash, sizeof j->hash)) j = j->next;
    *ours = !j;
    if (!j && (j = calloc(1, sizeof *j))) {
        memcpy(j->hash, hash, sizeof j->hash);
        j->next = jobs;
        jobs = j;
    }
    if (j) j->refs++;
    pthread_mutex_unlock(&jobs_lock);
    return j;
}

static void job_end(struct job *j)
{
    pthread_mutex_lock(&jobs_lock);
    j->done = true;
    pthread_cond_broadcast(&job_done);
    pthread_mutex_unlock(&jobs_lock);
}

static void job_unref(struct job *j) /* under the lock */
{
    if (--j->refs) return;
    struct job **at = &jobs;
    while (*at != j) at = &(*at)->next;
    *at = j->next;
    free(j->code);
    free(j);
}

static void job_leave(struct job *j)
{
    pthread_mutex_lock(&jobs_lock);
    job_unref(j);
    pthread_mutex_unlock(&jobs_lock);
}

/* Waits for it and takes what it made; the last one takes the memory, too. */
static cu_result job_take(struct job *j, void **code, size_t *bytes, char *why, size_t room)
{
    pthread_mutex_lock(&jobs_lock);
    while (!j->done) pthread_cond_wait(&job_done, &jobs_lock);
    cu_result rc = j->rc;
    *bytes = j->bytes;
    if (rc != CUE_SUCCESS)
        snprintf(why, room, "%s", j->why);
    else if (j->refs == 1)
        *code = j->code, j->code = NULL;
    else if ((*code = malloc(j->bytes + 1)))
        memcpy(*code, j->code, j->bytes + 1);
    else
        rc = CUE_OUT_OF_MEMORY;
    job_unref(j);
    pthread_mutex_unlock(&jobs_lock);
    return rc;
}

/* Somebody asks for it, or (bytes) it was compiled ahead. */
static void note_ahead(const uint8_t hash[32], uint64_t bytes)
{
    uint64_t was = 0;
    pthread_mutex_lock(&jobs_lock);
    if (bytes) {
        mg_map_set(&unused, key_of(hash), bytes);
    } else if (mg_map_get(&unused, key_of(hash), &was)) {
        mg_map_del(&unused, key_of(hash));
        used_bytes += was;
    }
    pthread_mutex_unlock(&jobs_lock);
}

uint64_t mg_nv_ahead_used(void)
{
    pthread_mutex_lock(&jobs_lock);
    uint64_t bytes = used_bytes;
    pthread_mutex_unlock(&jobs_lock);
    return bytes;
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

void mg_nv_load_linker(void)
{
    static const char text[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n";
    struct options o;
    void *code = NULL;
    size_t bytes;
    set_options(&o, &(struct mg_nv_jit){.opt_level = -1});
    link_text(text, sizeof text - 1, &o, &code, &bytes);
    free(code);
}

static void do_job(struct job *job, const char *ptx, size_t bytes, const struct mg_nv_jit *j)
{
    char path[PATH_MAX];
    struct options *o = NULL;
    if (mg_cache_path("twins", job->hash, false, path) && (job->code = mg_cache_read(path, magic, &job->bytes)))
        job->rc = CUE_SUCCESS;
    else if (!(o = calloc(1, sizeof *o)))
        job->rc = CUE_OUT_OF_MEMORY;
    else {
        set_options(o, j);
        job->rc = link_text(ptx, bytes, o, &job->code, &job->bytes);
        if (job->rc != CUE_SUCCESS)
            explain(job->rc, o->log, job->why, sizeof job->why);
        else if (mg_cache_path("twins", job->hash, true, path))
            mg_cache_write(path, magic, job->code, job->bytes);
    }
    free(o);
    job_end(job);
}

cu_result mg_nv_compile(const char *ptx, size_t bytes, const struct mg_nv_jit *j, void **out, size_t *out_bytes,
                        char *why, size_t why_room)
{
    uint8_t hash[32];
    bool ours;
    *out = NULL;
    if (j->whole) return CUE_SUCCESS;
    hash_of(ptx, bytes, j, hash);
    struct job *job = job_get(hash, &ours);
    if (!job) return CUE_OUT_OF_MEMORY;
    if (ours) do_job(job, ptx, bytes, j);
    cu_result rc = job_take(job, out, out_bytes, why, why_room);
    note_ahead(hash, 0);
    return rc;
}

void mg_nv_compile_ahead(const char *ptx, size_t bytes, const struct mg_nv_jit *j)
{
    uint8_t hash[32];
    bool ours;
    hash_of(ptx, bytes, j, hash);
    struct job *job = job_get(hash, &ours);
    if (!job) return;
    if (ours) {
        note_ahead(hash, bytes); /* before anybody who waits can have it */
        do_job(job, ptx, bytes, j);
    }
    job_leave(job);
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
