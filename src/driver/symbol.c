/* The driver's table of entries, and the calls that need no context: initialisation, versions,
 * error texts, entries by name. Private tables (cuGetExportTable) do not exist here: the call is
 * refused, whatever it asks for. */
#include "driver/priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"

struct mg_driver_state mg_drv = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

void mg_say(const char *fmt, ...)
{
    if (!mg_drv.config.say) return;
    char line[1400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    mg_drv.config.say(line);
}

/* What is stored keeps the name as it is in the PTX: reports find the kernel by it. */
void mg_say_of_kernel(const char *text)
{
    struct mg_buf b = MG_BUF_INIT;
    const char *rest = strncmp(text, "kernel ", 7) ? NULL : strchr(text, ':');
    if (!mg_drv.config.say) return;
    if (rest) {
        char *name = strndup(text + 7, (size_t)(rest - text) - 7);
        mg_buf_adds(&b, "kernel ");
        if (name) mg_demangle_add(&b, name, 80);
        free(name);
    }
    mg_say("%s%s", b.at ? b.at : "", rest ? rest : text);
    mg_buf_release(&b);
}

/* ---- handles --------------------------------------------------------------------------------- */

static struct mg_map handles = MG_MAP_INIT;
static pthread_rwlock_t handles_lock = PTHREAD_RWLOCK_INITIALIZER;

void mg_obj_add(const void *handle, enum mg_obj_kind kind)
{
    pthread_rwlock_wrlock(&handles_lock);
    mg_map_set(&handles, (uintptr_t)handle, kind);
    pthread_rwlock_unlock(&handles_lock);
}

bool mg_obj_del(const void *handle, enum mg_obj_kind kind)
{
    uint64_t k = 0;
    pthread_rwlock_wrlock(&handles_lock);
    bool ok = handle && mg_map_get(&handles, (uintptr_t)handle, &k) && k == kind;
    if (ok) mg_map_del(&handles, (uintptr_t)handle);
    pthread_rwlock_unlock(&handles_lock);
    return ok;
}

bool mg_obj_is(const void *handle, enum mg_obj_kind kind)
{
    uint64_t k = 0;
    if (!handle) return false;
    pthread_rwlock_rdlock(&handles_lock);
    bool ok = mg_map_get(&handles, (uintptr_t)handle, &k) && k == kind;
    pthread_rwlock_unlock(&handles_lock);
    return ok;
}

/* ---- output of kernels ----------------------------------------------------------------------- */

static struct mg_buf printed = MG_BUF_INIT;
static pthread_mutex_t printed_lock = PTHREAD_MUTEX_INITIALIZER;
static bool any_printed; /* read without the lock: most programs never print */

static void keep_printed(void *user, const char *text, size_t n)
{
    (void)user;
    pthread_mutex_lock(&printed_lock);
    mg_buf_add(&printed, text, n);
    __atomic_store_n(&any_printed, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&printed_lock);
}

void mg_print_flush(void)
{
    if (!__atomic_load_n(&any_printed, __ATOMIC_ACQUIRE)) return;
    pthread_mutex_lock(&printed_lock);
    __atomic_store_n(&any_printed, false, __ATOMIC_RELAXED);
    if (printed.n) fwrite(printed.at, 1, printed.n, stdout);
    mg_buf_reset(&printed);
    pthread_mutex_unlock(&printed_lock);
}

/* ---- start --------------------------------------------------------------------------------------- */

void mg_driver_configure(const struct mg_driver_config *c)
{
    memset(&mg_drv.config, 0, sizeof mg_drv.config);
    memcpy(&mg_drv.config, c, MG_MIN(c->size, sizeof mg_drv.config));
}

/* How far before or behind an allocation a read may lie (docs/schedule.md): a row of a large picture. */
#define STRAY_BYTES 65536

static cu_result open_device(void)
{
    const struct mg_driver_config *c = &mg_drv.config;
    const struct mg_device_ops *ops = c->ops                                   ? c->ops
                                      : c->device && !strcmp(c->device, "cpu") ? mg_cpu_ops()
                                                                               : &mg_emu_ops;
    if (c->device && strcmp(c->device, ops->name)) {
        mg_say("no device named %s", c->device);
        return CUE_NO_DEVICE;
    }
    cu_result r = mg_properties_load(c->properties, c->properties_path);
    if (r) return r;
    if (!mg_mem_init(0)) return CUE_OUT_OF_MEMORY;
    r = mg_devices_choose(MG_MIN(c->devices, (uint32_t)MG_DEVICES_MAX));
    if (r) return r;
    uint64_t memory = mg_drv.memory_bytes * (unsigned)mg_drv.n_devices;
    mg_mem_set_limit(c->overcommit ? memory : MG_MIN(memory, mg_machine_memory()));
    struct mg_device_opts opts = {
        .size = sizeof opts,
        .properties = c->properties,
        .workers = c->workers,
        .print = keep_printed,
        .count_positions = c->count_positions,
        .no_contract = c->no_contract,
        .check = c->check,
        .stray_bytes = c->check ? 0 : STRAY_BYTES,
        .heap_bytes = 8u << 20,
        .child_hooks = c->children ? &mg_child_hooks : NULL,
        .printf_bytes = 1u << 20,
    };
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err e = ops->open(&mg_drv.device, &opts, &d);
    if (e) mg_say("the device does not open: %s", mg_diag_first(&d, e));
    mg_diag_release(&d);
    if (e) return CUE_NO_DEVICE;
    mg_drv.ops = ops;
    return CUE_SUCCESS;
}

/* A forked child has none of the driver's threads: as with NVIDIA's, no call works in it any more
 * once the parent has initialised the driver, instead of waiting for ever. */
static void leave_child(void)
{
    mg_drv.forked = true;
    mg_drv.initialised = false;
}

static cu_result cuInit(unsigned flags)
{
    if (flags) return CUE_INVALID_VALUE;
    if (mg_drv.forked) return CUE_NOT_INITIALIZED; /* before the lock: the parent may have held it */
    mg_lock();
    cu_result r = mg_drv.initialised ? CUE_SUCCESS : open_device();
    if (!r && !mg_drv.initialised) {
        mg_drv.initialised = true;
        pthread_atfork(NULL, NULL, leave_child);
    }
    mg_unlock();
    return r;
}

static cu_result cuDriverGetVersion(int *version)
{
    if (!version) return CUE_INVALID_VALUE;
    *version = MG_CUDA_VERSION;
    return CUE_SUCCESS;
}

static cu_result cuGetErrorName(cu_result error, const char **text)
{
    if (!text) return CUE_INVALID_VALUE;
    *text = mg_cu_result_name(error);
    return *text ? CUE_SUCCESS : CUE_INVALID_VALUE;
}

static cu_result cuGetErrorString(cu_result error, const char **text)
{
    if (!text) return CUE_INVALID_VALUE;
    *text = mg_cu_result_text(error);
    return *text ? CUE_SUCCESS : CUE_INVALID_VALUE;
}

static cu_result cuGetExportTable(const void **table, const cu_uuid *id)
{
    (void)id;
    if (table) *table = NULL;
    return CUE_NOT_SUPPORTED;
}

static cu_result cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags, int *status)
{
    if (!symbol || !fn) return CUE_INVALID_VALUE;
    *fn = NULL;
    int state = CUPROC_NOT_FOUND;
    if (!*symbol) { /* asked first by NVIDIA's runtime: the call itself */
        *fn = (void *)cuGetProcAddress_v2;
        state = CUPROC_OK;
    } else {
        int ix = mg_cu_entry_resolve(symbol, version, flags, &state);
        if (ix >= 0) *fn = mg_driver_symbol(mg_cu_entries[ix].name);
        if (ix >= 0 && !*fn) state = CUPROC_NOT_FOUND;
    }
    if (status) *status = state;
    return *fn ? CUE_SUCCESS : CUE_NOT_FOUND;
}

static cu_result cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(symbol, fn, version, flags, NULL);
}

static cu_result cuProfilerStart(void)
{
    return mg_enter(NULL);
}
static cu_result cuProfilerStop(void)
{
    return mg_enter(NULL);
}
static cu_result cuProfilerInitialize(const char *config, const char *out, int mode)
{
    (void)config, (void)out, (void)mode;
    return CUE_NOT_SUPPORTED;
}

static const struct mg_entry entries[] = {
    MG_ENTRY(cuInit),
    MG_ENTRY(cuDriverGetVersion),
    MG_ENTRY(cuGetErrorName),
    MG_ENTRY(cuGetErrorString),
    MG_ENTRY(cuGetExportTable),
    MG_ENTRY(cuGetProcAddress),
    MG_ENTRY(cuGetProcAddress_v2),
    MG_ENTRY(cuProfilerStart),
    MG_ENTRY(cuProfilerStop),
    MG_ENTRY(cuProfilerInitialize),
    {0},
};

/* ---- all entries ----------------------------------------------------------------------------------- */

#define TABLE(name) extern const struct mg_entry mg_entries_##name[];
#include "driver/tables.def"
#undef TABLE
static const struct mg_entry *const tables[] = {
    entries,
#define TABLE(name) mg_entries_##name,
#include "driver/tables.def"
#undef TABLE
};

static struct mg_entry *all;
static uint32_t n_all;
static pthread_once_t joined = PTHREAD_ONCE_INIT;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct mg_entry *)a)->name, ((const struct mg_entry *)b)->name);
}

static void join_tables(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < MG_COUNT_OF(tables); i++)
        for (const struct mg_entry *e = tables[i]; e->name; e++) n++;
    struct mg_entry *v = malloc((n + 1) * sizeof *v);
    if (!v) return;
    for (uint32_t i = 0; i < MG_COUNT_OF(tables); i++)
        for (const struct mg_entry *e = tables[i]; e->name; e++) v[n_all++] = *e;
    qsort(v, n_all, sizeof *v, by_name);
    all = v;
}

void *mg_driver_symbol(const char *name)
{
    pthread_once(&joined, join_tables);
    struct mg_entry key = {name, NULL};
    const struct mg_entry *e = all ? bsearch(&key, all, n_all, sizeof *all, by_name) : NULL;
    return e ? e->fn : NULL;
}

const char *mg_driver_symbol_at(uint32_t ix)
{
    pthread_once(&joined, join_tables);
    return ix < n_all ? all[ix].name : NULL;
}
