/* A driver library over the emulator, with the SONAME and the exports of NVIDIA's: what
 * `--device nvidia` is tested with where there is no GPU. Unlike libmargay it hooks nothing. Three
 * habits of the real driver that cost deadlocks are imitated: loading a module, unloading one and
 * freeing memory wait for all work in flight. And one that costs crashes: a process that exits while
 * its linker is busy dies. From the environment:
 *   EMU_GPU_PTX=NN      texts of a later .version than N.N are too new for its compiler
 *   EMU_GPU_ASSEMBLER   its linker takes no text, and says so in the log
 *   EMU_GPU_MEMORY=N    no single allocation of N bytes or more
 *   EMU_GPU_COUNT       at the end: modules loaded, most at once, allocations made
 *   EMU_GPU_CTAS=N      a multiprocessor takes N CTAs of a twin
 *   EMU_GPU_WIDE=N      and so of one that was told how many registers there may be
 *   EMU_GPU_REGISTERS=N every function has N registers
 *   EMU_GPU_TWIN=N      a twin has N, or what its text's .maxnreg says, or where that is silent its compiler was told
 *   EMU_GPU_PLAIN       no virtual memory calls, and own host memory is not pinned
 *   EMU_GPU_MAPS=FILE   a line for each mapping of device memory, registration of host memory and their ends
 *   EMU_GPU_LEAVES      when the process exits it answers no more calls
 *   EMU_GPU_VIRTUAL=NN  machine code is said to be made from PTX of compute_NN */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/cu.h"
#include "driver/driver.h"

enum {
#define ENTRY(name, base, since, per_thread) FN_##name,
#include "abi/entries.def"
#undef ENTRY
    FN_COUNT
};
static const char *const names[] = {
#define ENTRY(name, base, since, per_thread) #name,
#include "abi/entries.def"
#undef ENTRY
};
extern void *mg_slots[FN_COUNT];
extern void *const mg_hook_table[FN_COUNT], *const mg_missing_table[FN_COUNT];
extern void mg_inject_ready(void);
extern cu_result mg_inject_missing(unsigned entry);

static void *real[FN_COUNT];

static void say(const char *line)
{
    fprintf(stderr, "driver: %s\n", line);
}

static bool has_left;
cu_result mg_inject_missing(unsigned entry)
{
    (void)entry;
    return has_left ? CUE_DEINITIALIZED : CUE_NOT_SUPPORTED;
}
static void leave(void)
{
    has_left = true;
    for (unsigned i = 0; i < FN_COUNT; i++) mg_slots[i] = mg_missing_table[i];
}

#define WAITS(name, params, args)                                                                                      \
    static cu_result wait_##name params                                                                                \
    {                                                                                                                  \
        mg_driver_drain(UINT64_MAX);                                                                                   \
        return ((cu_result(*) params)real[FN_##name])args;                                                             \
    }
WAITS(cuModuleLoadData, (cu_module * m, const void *p), (m, p))
WAITS(cuModuleLoadDataEx, (cu_module * m, const void *p, unsigned n, int *o, void **v), (m, p, n, o, v))
WAITS(cuModuleUnload, (cu_module m), (m))
WAITS(cuMemFree_v2, (cu_ptr p), (p))
WAITS(cuMemFreeHost, (void *p), (p))

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_loaded, n_modules, most_modules, n_allocations;
static cu_result count_module(cu_result rc, int by)
{
    pthread_mutex_lock(&counting);
    if (!rc) {
        n_loaded += by > 0;
        n_modules += (unsigned)by;
        most_modules = n_modules > most_modules ? n_modules : most_modules;
    }
    pthread_mutex_unlock(&counting);
    return rc;
}
static cu_result load_data(cu_module *m, const void *p)
{
    return count_module(wait_cuModuleLoadData(m, p), 1);
}
static __thread bool told;           /* how many registers there may be: the text that this thread compiled last */
static __thread unsigned told_most;  /* so many; 0: no number */
static const struct mg_module *wide; /* the twin that was loaded from such a text last */
static unsigned wide_most;
static void note_told(unsigned n, const int *keys, void *const *values, const char *text)
{
    told = text && strstr(text, ".minnctapersm");
    told_most = 0;
    for (unsigned k = 0; k < n; k++)
        if (keys[k] == CUJIT_MAX_REGISTERS) told = true, told_most = (unsigned)(uintptr_t)values[k];
    if (told_most && getenv("EMU_GPU_TOLD")) fprintf(stderr, "told: %u registers\n", told_most);
}
/* The assembler takes so many ms for a text of 64 KB and more; or until there is a file of this name. */
static void take_time(const char *text)
{
    const char *ms = getenv("EMU_GPU_ASSEMBLES"), *until = getenv("EMU_GPU_ASSEMBLES_UNTIL");
    if (strlen(text) < 65536) return;
    if (until) fclose(fopen("begun", "w"));
    if (ms) usleep(1000u * (unsigned)atoi(ms));
    for (unsigned k = 0; until && access(until, F_OK); k++) {
        usleep(1000);
        if (k == 60000) fprintf(stderr, "assembled for a minute\n"), abort();
    }
}
static cu_result load_data_ex(cu_module *m, const void *p, unsigned n, int *o, void **v)
{
    cu_function f;
    if (n) /* else it is machine code */
        note_told(n, o, v, p), take_time(p);
    cu_result rc = count_module(wait_cuModuleLoadDataEx(m, p, n, o, v), 1);
    if (!rc && told &&
        !((cu_result(*)(cu_function *, unsigned, cu_module))real[FN_cuModuleEnumerateFunctions])(&f, 1, *m)) {
        __atomic_store_n(&wide_most, told_most, __ATOMIC_RELAXED);
        __atomic_store_n(&wide, mg_driver_module(f), __ATOMIC_RELAXED);
    }
    return rc;
}
static cu_result unload(cu_module m)
{
    return count_module(wait_cuModuleUnload(m), -1);
}
static void print_counts(void)
{
    fprintf(stderr, "modules: %u %u %u\n", n_loaded, most_modules, n_allocations);
}

static __thread char *link_log; /* of the link under way */

static cu_result link_create(unsigned n, int *keys, void **values, cu_link *link)
{
    for (unsigned k = 0; k < n; k++)
        if (keys[k] == CUJIT_ERROR_LOG_BUFFER) link_log = values[k];
    note_told(n, keys, values, NULL);
    return ((cu_result(*)(unsigned, int *, void **, cu_link *))real[FN_cuLinkCreate_v2])(n, keys, values, link);
}
static int n_linking;
static void destroy_linker(void)
{
    if (__atomic_load_n(&n_linking, __ATOMIC_ACQUIRE)) fprintf(stderr, "driver: the linker is in use\n"), abort();
}
static void load_linker(void)
{
    atexit(destroy_linker);
}
static void link_text(const char *text)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_linker);
    __atomic_add_fetch(&n_linking, 1, __ATOMIC_ACQ_REL);
    take_time(text);
    __atomic_sub_fetch(&n_linking, 1, __ATOMIC_ACQ_REL);
}
static cu_result link_add(cu_link link, int type, void *data, size_t bytes, const char *name, unsigned n, int *keys,
                          void **values)
{
    told |= strstr(data, ".minnctapersm") != NULL;
    link_text(data);
    const char *newest = getenv("EMU_GPU_PTX"), *version = strstr(data, ".version ");
    if (newest && version && (int)(strtod(version + 9, NULL) * 10 + 0.5) > atoi(newest))
        return CUE_UNSUPPORTED_PTX_VERSION;
    if (getenv("EMU_GPU_ASSEMBLER")) {
        if (link_log)
            strcpy(link_log, "ptxas application ptx input, line 1; fatal   : not today\nptxas fatal   : aborted\n");
        return CUE_INVALID_PTX;
    }
    return ((cu_result(*)(cu_link, int, void *, size_t, const char *, unsigned, int *,
                          void **))real[FN_cuLinkAddData_v2])(link, type, data, bytes, name, n, keys, values);
}
static cu_result function_attribute(int *v, int what, cu_function f)
{
    cu_result rc = ((cu_result(*)(int *, int, cu_function))real[FN_cuFuncGetAttribute])(v, what, f);
    if (!rc && what == CUFUNC_PTX_VERSION && getenv("EMU_GPU_VIRTUAL")) *v = atoi(getenv("EMU_GPU_VIRTUAL"));
    if (!rc && what == CUFUNC_NUM_REGS && getenv("EMU_GPU_REGISTERS")) *v = atoi(getenv("EMU_GPU_REGISTERS"));
    return rc;
}
static cu_result mem_alloc(cu_ptr *p, size_t bytes)
{
    const char *most = getenv("EMU_GPU_MEMORY");
    __atomic_fetch_add(&n_allocations, 1, __ATOMIC_RELAXED);
    if (most && bytes >= strtoull(most, NULL, 10)) return CUE_OUT_OF_MEMORY;
    return ((cu_result(*)(cu_ptr *, size_t))real[FN_cuMemAlloc_v2])(p, bytes);
}

/* Virtual memory calls that wait for nothing, as NVIDIA's do not: what is mapped becomes an allocation of its own. */
static void note_map(const char *what, uint64_t at, size_t bytes)
{
    FILE *f = getenv("EMU_GPU_MAPS") ? fopen(getenv("EMU_GPU_MAPS"), "ae") : NULL;
    if (!f) return;
    fprintf(f, "%s 0x%llx %zu\n", what, (unsigned long long)at, bytes);
    fclose(f);
}
static struct {
    uint64_t at;
    size_t bytes;
} apart[64]; /* Margay's: large ranges, anywhere; others are the real driver's */
static bool is_apart(uint64_t at, bool forget)
{
    for (unsigned i = 0; i < 64; i++)
        if (at - apart[i].at < apart[i].bytes) {
            if (forget) apart[i].bytes = 0;
            return true;
        }
    return false;
}
static cu_result reserve(cu_ptr *at, size_t bytes, size_t align, cu_ptr hint, unsigned long long flags)
{
    unsigned i = 0;
    if (hint || bytes < (size_t)1 << 30)
        return ((cu_result(*)(cu_ptr *, size_t, size_t, cu_ptr, unsigned long long))real[FN_cuMemAddressReserve])(
            at, bytes, align, hint, flags);
    void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    while (i < 63 && apart[i].bytes) i++;
    if (p == MAP_FAILED) return CUE_OUT_OF_MEMORY;
    apart[i].at = *at = (uintptr_t)p;
    apart[i].bytes = bytes;
    note_map("reserve", *at, bytes);
    return CUE_SUCCESS;
}
static cu_result address_free(cu_ptr at, size_t bytes)
{
    if (!is_apart(at, true)) return ((cu_result(*)(cu_ptr, size_t))real[FN_cuMemAddressFree])(at, bytes);
    note_map("free", at, bytes);
    return munmap((void *)(uintptr_t)at, bytes) ? CUE_INVALID_VALUE : CUE_SUCCESS;
}
static cu_result mem_create(cu_mem_handle *h, size_t bytes, const struct cu_alloc_prop *p, unsigned long long flags)
{
    const char *most = getenv("EMU_GPU_MEMORY");
    __atomic_fetch_add(&n_allocations, 1, __ATOMIC_RELAXED);
    if (most && bytes >= strtoull(most, NULL, 10)) return CUE_OUT_OF_MEMORY;
    return ((cu_result(*)(cu_mem_handle *, size_t, const struct cu_alloc_prop *,
                          unsigned long long))real[FN_cuMemCreate])(h, bytes, p, flags);
}
static cu_result mem_map(cu_ptr at, size_t bytes, size_t offset, cu_mem_handle h, unsigned long long flags)
{
    if (!is_apart(at, false))
        return ((cu_result(*)(cu_ptr, size_t, size_t, cu_mem_handle, unsigned long long))real[FN_cuMemMap])(
            at, bytes, offset, h, flags);
    return mprotect((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE) ? CUE_INVALID_VALUE : CUE_SUCCESS;
}
static cu_result set_access(cu_ptr at, size_t bytes, const struct cu_access *a, size_t n)
{
    if (!is_apart(at, false))
        return ((cu_result(*)(cu_ptr, size_t, const struct cu_access *, size_t))real[FN_cuMemSetAccess])(at, bytes, a,
                                                                                                         n);
    note_map("map", at, bytes);
    return ((cu_result(*)(void *, size_t, unsigned))real[FN_cuMemHostRegister_v2])((void *)(uintptr_t)at, bytes, 3);
}
static cu_result mem_unmap(cu_ptr at, size_t bytes)
{
    if (!is_apart(at, false)) return ((cu_result(*)(cu_ptr, size_t))real[FN_cuMemUnmap])(at, bytes);
    note_map("unmap", at, bytes);
    ((cu_result(*)(void *))real[FN_cuMemHostUnregister])(
        (void *)(uintptr_t)at); /* refused where its context is gone, and the registration with it */
    void *p =
        mmap((void *)(uintptr_t)at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return p == MAP_FAILED ? CUE_INVALID_VALUE : CUE_SUCCESS;
}
static cu_result host_register(void *p, size_t bytes, unsigned flags)
{
    note_map("host", (uintptr_t)p, bytes);
    return ((cu_result(*)(void *, size_t, unsigned))real[FN_cuMemHostRegister_v2])(p, bytes, flags);
}
static cu_result device_attribute(int *v, int what, cu_device d)
{
    cu_result rc = ((cu_result(*)(int *, int, cu_device))real[FN_cuDeviceGetAttribute])(v, what, d);
    if (!rc && getenv("EMU_GPU_PLAIN") && (what == 102 || what == 91)) *v = 0;
    return rc;
}

/* A stand-in of CUPTI (fake_cupti.c) is told of these calls from inside, if the program has made it known to all. */
static void tell_cupti(const char *name, unsigned leaves)
{
    void (*fn)(const char *, unsigned);
    void *p = dlsym(RTLD_DEFAULT, "fake_cupti_called");
    memcpy(&fn, &p, sizeof fn);
    if (fn) fn(name, leaves);
}
#define TELLS(name, params, args)                                                                                      \
    static cu_result tell_##name params                                                                                \
    {                                                                                                                  \
        tell_cupti(#name, 0);                                                                                          \
        cu_result rc = ((cu_result(*) params)real[FN_##name])args;                                                     \
        tell_cupti(#name, 1);                                                                                          \
        return rc;                                                                                                     \
    }
TELLS(cuMemsetD32_v2, (cu_ptr p, unsigned v, size_t n), (p, v, n))
TELLS(cuMemcpyHtoD_v2, (cu_ptr to, const void *from, size_t n), (to, from, n))
TELLS(cuMemcpyDtoH_v2, (void *to, cu_ptr from, size_t n), (to, from, n))
TELLS(cuLaunchKernel,
      (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y, unsigned z, unsigned shared,
       cu_stream s, void **params, void **extra),
      (f, gx, gy, gz, x, y, z, shared, s, params, extra))
TELLS(cuLaunchKernelEx, (const struct cu_launch_config *c, cu_function f, void **params, void **extra),
      (c, f, params, extra))

/* CTAs a multiprocessor takes, by the registers that EMU_GPU_TWIN says. */
static int by_registers(const struct mg_module *m, const char *most, int threads)
{
    int n = atoi(most), bound = (int)__atomic_load_n(&wide_most, __ATOMIC_RELAXED);
    bool says = false;
    for (uint32_t i = 1; i < m->funcs.n; i++) {
        int own = (int)m->funcs.at[i].maxnreg;
        says |= own != 0;
        if (own && own < n) n = own;
    }
    if (!says && bound && bound < n && m == __atomic_load_n(&wide, __ATOMIC_RELAXED)) n = bound;
    return 65536 / ((n + 7) / 8 * 8 * 32) / ((threads + 31) / 32);
}

/* CTAs a multiprocessor takes, registers left out unless told: those of the emulator are estimates, which twins of
 * small kernels exceed. */
static cu_result occupancy(int *n, cu_function f, int threads, size_t shared)
{
    int bytes = 0, at = 2048 / (threads > 64 ? (threads + 31) / 32 * 32 : 64);
    cu_result rc =
        ((cu_result(*)(int *, int, cu_function))real[FN_cuFuncGetAttribute])(&bytes, CUFUNC_SHARED_SIZE_BYTES, f);
    size_t all = (size_t)bytes + shared + 1024;
    *n = at < (int)(233472 / all) ? at : (int)(233472 / all);
    const char *twins = getenv("EMU_GPU_CTAS"), *wides = getenv("EMU_GPU_WIDE");
    const char *registers = getenv("EMU_GPU_TWIN");
    const struct mg_module *m = (twins || wides || registers) && !rc ? mg_driver_module(f) : NULL;
    bool is_twin = m && mg_intern_find((struct mg_intern *)&m->names, "__mg_ctx", 8);
    if (is_twin && registers && *n > by_registers(m, registers, threads)) *n = by_registers(m, registers, threads);
    if (m && wides && m == __atomic_load_n(&wide, __ATOMIC_RELAXED)) twins = wides;
    if (!twins) return rc;
    if (is_twin) *n = atoi(twins);
    return rc;
}

static void fill(void)
{
    const char *devices = getenv("EMU_GPU_DEVICES");
    mg_driver_configure(&(struct mg_driver_config){.size = sizeof(struct mg_driver_config),
                                                   .device = "emu",
                                                   .properties = "h200",
                                                   .devices = devices ? (uint32_t)atoi(devices) : 1,
                                                   .say = say});
    for (unsigned i = 0; i < FN_COUNT; i++) {
        real[i] = mg_driver_symbol(names[i]);
        mg_slots[i] = real[i] ? real[i] : mg_missing_table[i];
    }
    mg_slots[FN_cuOccupancyMaxActiveBlocksPerMultiprocessor] = (void *)occupancy;
    mg_slots[FN_cuLinkCreate_v2] = (void *)link_create;
    mg_slots[FN_cuLinkAddData_v2] = (void *)link_add;
    mg_slots[FN_cuMemAlloc_v2] = (void *)mem_alloc;
    mg_slots[FN_cuFuncGetAttribute] = (void *)function_attribute;
    mg_slots[FN_cuMemAddressReserve] = (void *)reserve;
    mg_slots[FN_cuMemAddressFree] = (void *)address_free;
    mg_slots[FN_cuMemCreate] = (void *)mem_create;
    mg_slots[FN_cuMemMap] = (void *)mem_map;
    mg_slots[FN_cuMemUnmap] = (void *)mem_unmap;
    mg_slots[FN_cuMemSetAccess] = (void *)set_access;
    mg_slots[FN_cuMemHostRegister_v2] = (void *)host_register;
    mg_slots[FN_cuDeviceGetAttribute] = (void *)device_attribute;
#define SET(name) mg_slots[FN_##name] = (void *)wait_##name
    SET(cuMemFree_v2), SET(cuMemFreeHost);
#undef SET
#define SET(name) mg_slots[FN_##name] = (void *)tell_##name
    SET(cuMemsetD32_v2), SET(cuMemcpyHtoD_v2), SET(cuMemcpyDtoH_v2), SET(cuLaunchKernel), SET(cuLaunchKernelEx);
    mg_slots[FN_cuModuleLoadData] = (void *)load_data;
    mg_slots[FN_cuModuleLoadDataEx] = (void *)load_data_ex;
    mg_slots[FN_cuModuleUnload] = (void *)unload;
    if (getenv("EMU_GPU_COUNT")) atexit(print_counts);
    if (getenv("EMU_GPU_LEAVES")) atexit(leave);
}

void mg_inject_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
}
