/* What programs register before main, and what it becomes. Code that nvcc or clang makes calls
 * __cudaRegisterFatBinary once per image and then names its kernels and variables by the address
 * of a host object. Nothing is loaded then: an image goes to the driver at the first use of
 * anything in it, as the public cuLibraryLoadData with the wrapper as it lies in the program.
 *
 *   host stub address  --table-->  name, image  --cuLibraryGetKernel-->  CUkernel
 *   host variable      --table-->  name, image  --cuLibraryGetGlobal-->  address in the current context
 *
 * Registration runs in constructors, also of libraries opened later, and look-ups in any thread. */
#include "runtime/priv.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct image { /* a registered fatbin; its address is the handle that the program holds */
    void *wrapper;
    pthread_mutex_t lock; /* loading */
    cu_library lib;
    cu_result error; /* of loading, kept: asked again it fails again */
    bool tried, has_managed;
    struct image *next;
};
enum symbol_kind { SYMBOL_KERNEL = 1, SYMBOL_VARIABLE, SYMBOL_MANAGED, SYMBOL_HANDLE };
struct symbol {
    const void *host; /* key: stub, variable, or a CUkernel given out */
    enum symbol_kind kind;
    struct image *image;
    const char *name; /* in the program's own data */
    size_t bytes;
    void **managed;   /* the program's pointer to fill */
    cu_kernel kernel; /* once found */
    const void *stub; /* of a handle: the host stub it stands for, if any */
    struct symbol *next;
};

static struct {
    pthread_rwlock_t lock;
    struct image *images;
    struct symbol **buckets;
    size_t bucket_count, symbol_count;
    int managed_pending; /* images with managed variables that are not loaded */
} registry = {.lock = PTHREAD_RWLOCK_INITIALIZER};

static size_t hash_pointer(const void *p, size_t buckets)
{
    uint64_t x = (uint64_t)(uintptr_t)p * 0x9e3779b97f4a7c15u;
    return (size_t)(x >> 32) & (buckets - 1);
}

static void grow_buckets(void)
{
    size_t n = registry.bucket_count ? registry.bucket_count * 2 : 256;
    struct symbol **buckets = calloc(n, sizeof *buckets);
    if (!buckets) return;
    for (size_t i = 0; i < registry.bucket_count; i++) {
        for (struct symbol *s = registry.buckets[i], *next; s; s = next) {
            next = s->next;
            size_t h = hash_pointer(s->host, n);
            s->next = buckets[h];
            buckets[h] = s;
        }
    }
    free(registry.buckets);
    registry.buckets = buckets;
    registry.bucket_count = n;
}

/* Needs the lock. */
static struct symbol *find_symbol(const void *host)
{
    if (!registry.bucket_count) return NULL;
    struct symbol *s = registry.buckets[hash_pointer(host, registry.bucket_count)];
    while (s && s->host != host) s = s->next;
    return s;
}

static struct symbol *add_symbol(const void *host, struct symbol init)
{
    pthread_rwlock_wrlock(&registry.lock);
    struct symbol *s = find_symbol(host);
    if (!s) {
        if (registry.symbol_count >= registry.bucket_count) grow_buckets();
        s = registry.bucket_count ? calloc(1, sizeof *s) : NULL;
        if (s) {
            size_t h = hash_pointer(host, registry.bucket_count);
            init.host = host;
            init.next = registry.buckets[h];
            registry.buckets[h] = s;
            registry.symbol_count++;
            *s = init;
        }
    }
    pthread_rwlock_unlock(&registry.lock);
    return s;
}

static struct symbol *look_up(const void *host)
{
    pthread_rwlock_rdlock(&registry.lock);
    struct symbol *s = find_symbol(host);
    pthread_rwlock_unlock(&registry.lock);
    return s;
}

/* ---- loading ---- */

/* Threads that main left behind may launch until the process is gone. So images stay loaded at exit; what dlclose
 * closes is unloaded. This runs at exit before the program unregisters any image that was loaded: that image's own
 * handler was registered by a constructor, which is before the image could be used, and the last one runs first. */
static int exit_began;
static void note_exit(void)
{
    __atomic_store_n(&exit_began, 1, __ATOMIC_RELEASE);
}

static cu_result load_image(struct image *image)
{
    pthread_mutex_lock(&image->lock);
    if (!image->tried) {
        int option = CULIB_BINARY_IS_PRESERVED; /* the wrapper outlives the library */
        void *value = (void *)1;
        image->error = cu.cuLibraryLoadData(&image->lib, image->wrapper, NULL, NULL, 0, &option, &value, 1);
        image->tried = true;
        atexit(note_exit);
    }
    cu_result r = image->error;
    pthread_mutex_unlock(&image->lock);
    return r;
}

cudaError_t mg_rt_kernel(const void *func, cu_function *out)
{
    struct symbol *s = func ? look_up(func) : NULL;
    if (!s || (s->kind != SYMBOL_KERNEL && s->kind != SYMBOL_HANDLE)) return cudaErrorInvalidDeviceFunction;
    cu_kernel kernel = __atomic_load_n(&s->kernel, __ATOMIC_ACQUIRE);
    if (!kernel) {
        cu_result r = load_image(s->image);
        if (r) return mg_rt_from_driver(r);
        r = cu.cuLibraryGetKernel(&kernel, s->image->lib, s->name);
        if (r) return r == CUE_NOT_FOUND ? cudaErrorInvalidDeviceFunction : mg_rt_from_driver(r);
        __atomic_store_n(&s->kernel, kernel, __ATOMIC_RELEASE);
    }
    *out = (cu_function)(void *)kernel; /* the driver takes a CUkernel for a CUfunction */
    return cudaSuccess;
}

const char *mg_rt_kernel_name(const void *func)
{
    struct symbol *s = func ? look_up(func) : NULL;
    return s && s->kind == SYMBOL_KERNEL ? s->name : NULL;
}

void mg_rt_kernel_note(cu_kernel kernel)
{
    add_symbol(kernel, (struct symbol){.kind = SYMBOL_HANDLE, .kernel = kernel});
}

cudaError_t mg_rt_function(const void *func, cu_function kernel, cu_function *out)
{
    struct symbol *s = look_up(func);
    if (s && s->kind == SYMBOL_HANDLE && s->stub) { /* is a CUfunction already */
        *out = kernel;
        return cudaSuccess;
    }
    cu_result r = cu.cuKernelGetFunction(out, (cu_kernel)(void *)kernel);
    if (r) return mg_rt_from_driver(r);
    s = add_symbol(*out, (struct symbol){.kind = SYMBOL_HANDLE, .kernel = (cu_kernel)(void *)*out, .stub = func});
    if (s && !s->stub) s->stub = func; /* a driver may answer with the kernel itself */
    return cudaSuccess;
}

const void *mg_rt_host_of(const void *handle)
{
    struct symbol *s = handle ? look_up(handle) : NULL;
    return s && s->stub ? s->stub : handle;
}

/* A managed variable is named by its address, which is what the program's pointer holds. */
static struct symbol *look_up_managed(const void *address)
{
    struct symbol *found = NULL;
    pthread_rwlock_rdlock(&registry.lock);
    for (size_t i = 0; i < registry.bucket_count && !found; i++) {
        for (found = registry.buckets[i]; found; found = found->next) {
            if (found->kind == SYMBOL_MANAGED && *found->managed == address) break;
        }
    }
    pthread_rwlock_unlock(&registry.lock);
    return found;
}

cudaError_t mg_rt_variable(const void *symbol, struct mg_rt_variable *out)
{
    struct symbol *s = symbol ? look_up(symbol) : NULL;
    if (symbol && !s) s = look_up_managed(symbol);
    if (!s || (s->kind != SYMBOL_VARIABLE && s->kind != SYMBOL_MANAGED)) return cudaErrorInvalidSymbol;
    cu_result r = load_image(s->image);
    if (r) return mg_rt_from_driver(r);
    if (s->kind == SYMBOL_MANAGED)
        r = cu.cuLibraryGetManaged(&out->address, &out->bytes, s->image->lib, s->name);
    else
        r = cu.cuLibraryGetGlobal(&out->address, &out->bytes, s->image->lib, s->name);
    return r == CUE_NOT_FOUND ? cudaErrorInvalidSymbol : mg_rt_from_driver(r);
}

/* Loads an image with managed variables and gives the program their addresses. */
static cudaError_t fill_managed(struct image *image)
{
    cu_result r = load_image(image);
    for (size_t i = 0; !r && i < registry.bucket_count; i++) {
        for (struct symbol *s = registry.buckets[i]; s; s = s->next) {
            if (s->image != image || s->kind != SYMBOL_MANAGED) continue;
            cu_ptr address = 0;
            r = cu.cuLibraryGetManaged(&address, NULL, image->lib, s->name);
            if (r) break;
            *s->managed = (void *)(uintptr_t)address;
        }
    }
    return mg_rt_from_driver(r);
}

cudaError_t mg_rt_managed_ready(void)
{
    if (!__atomic_load_n(&registry.managed_pending, __ATOMIC_ACQUIRE)) return cudaSuccess;
    pthread_rwlock_wrlock(&registry.lock);
    cudaError_t e = cudaSuccess;
    for (struct image *image = registry.images; image; image = image->next) {
        if (!image->has_managed || image->tried) continue;
        e = fill_managed(image);
        if (e) break;
        __atomic_sub_fetch(&registry.managed_pending, 1, __ATOMIC_RELEASE);
    }
    pthread_rwlock_unlock(&registry.lock);
    return e;
}

/* ---- what the program's constructors call ---- */

RT_VISIBLE void **__cudaRegisterFatBinary(void *wrapper);
RT_VISIBLE void **__cudaRegisterFatBinary(void *wrapper)
{
    struct image *image = calloc(1, sizeof *image);
    if (!image) return NULL;
    image->wrapper = wrapper;
    pthread_mutex_init(&image->lock, NULL);
    pthread_rwlock_wrlock(&registry.lock);
    image->next = registry.images;
    registry.images = image;
    pthread_rwlock_unlock(&registry.lock);
    return (void **)image;
}

RT_VISIBLE void __cudaRegisterFatBinaryEnd(void **handle);
RT_VISIBLE void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

RT_VISIBLE void __cudaUnregisterFatBinary(void **handle);
RT_VISIBLE void __cudaUnregisterFatBinary(void **handle)
{
    struct image *image = (struct image *)(void *)handle;
    if (!image || __atomic_load_n(&exit_began, __ATOMIC_ACQUIRE)) return;
    pthread_rwlock_wrlock(&registry.lock);
    for (size_t i = 0; i < registry.bucket_count; i++) {
        for (struct symbol **at = &registry.buckets[i], *s; (s = *at);) {
            if (s->image == image) {
                *at = s->next;
                free(s);
                registry.symbol_count--;
            } else {
                at = &s->next;
            }
        }
    }
    struct image **at = &registry.images;
    while (*at && *at != image) at = &(*at)->next;
    if (*at) *at = image->next;
    if (image->has_managed && !image->tried) __atomic_sub_fetch(&registry.managed_pending, 1, __ATOMIC_RELEASE);
    pthread_rwlock_unlock(&registry.lock);
    if (image->lib) cu.cuLibraryUnload(image->lib); /* a driver that is gone says so, harmlessly */
    pthread_mutex_destroy(&image->lock);
    free(image);
}

RT_VISIBLE void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                                       int thread_limit, void *tid, void *bid, void *block, void *grid, int *warp);
RT_VISIBLE void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                                       int thread_limit, void *tid, void *bid, void *block, void *grid, int *warp)
{
    (void)device, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    add_symbol(host, (struct symbol){.kind = SYMBOL_KERNEL, .image = (struct image *)(void *)handle, .name = name});
}

RT_VISIBLE void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext, size_t bytes,
                                  int constant, int global);
RT_VISIBLE void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext, size_t bytes,
                                  int constant, int global)
{
    (void)device, (void)ext, (void)constant, (void)global;
    add_symbol(host,
               (struct symbol){
                   .kind = SYMBOL_VARIABLE, .image = (struct image *)(void *)handle, .name = name, .bytes = bytes});
}

RT_VISIBLE void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext,
                                         size_t bytes, int constant, int global);
RT_VISIBLE void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext,
                                         size_t bytes, int constant, int global)
{
    struct image *image = (struct image *)(void *)handle;
    (void)device, (void)ext, (void)constant, (void)global;
    add_symbol(host,
               (struct symbol){.kind = SYMBOL_MANAGED, .image = image, .name = name, .bytes = bytes, .managed = host});
    if (!image->has_managed) __atomic_add_fetch(&registry.managed_pending, 1, __ATOMIC_RELEASE);
    image->has_managed = true;
}

/* What code that touches a managed variable calls before the first runtime call. */
RT_VISIBLE char __cudaInitModule(void **handle);
RT_VISIBLE char __cudaInitModule(void **handle)
{
    (void)handle;
    return mg_rt_fail(mg_rt_enter()) == cudaSuccess;
}

/* ---- kernels by stub ---- */

/* Stubs ask once and launch with the answer. When loading fails they get their own address as the
 * handle: the launch looks it up again and reports why there is no kernel. */
RT_API(__cudaGetKernel, (cudaKernel_t * out, const void *func))
{
    cu_function f = (cu_function)(uintptr_t)func;
    cudaError_t e = mg_rt_enter();
    if (!e) e = mg_rt_kernel(func, &f);
    *out = (cudaKernel_t)(void *)f;
    if (!e) mg_rt_kernel_note(*out);
    return mg_rt_fail(e);
}

RT_API(cudaGetKernel, (cudaKernel_t * out, const void *func))
{
    RT_ENTER();
    cu_function f;
    if (!out) return mg_rt_fail(cudaErrorInvalidValue);
    cudaError_t e = mg_rt_kernel(func, &f);
    if (e) return mg_rt_fail(e);
    *out = (cudaKernel_t)(void *)f;
    mg_rt_kernel_note(*out);
    return cudaSuccess;
}

RT_API(cudaGetFuncBySymbol, (cudaFunction_t * out, const void *func))
{
    RT_ENTER();
    cu_function f;
    if (!out) return mg_rt_fail(cudaErrorInvalidValue);
    cudaError_t e = mg_rt_kernel(func, &f);
    return mg_rt_fail(e ? e : mg_rt_function(func, f, out));
}

RT_API(cudaFuncGetName, (const char **name, const void *func))
{
    RT_ENTER();
    cu_function f;
    cudaError_t e = name ? mg_rt_kernel(func, &f) : cudaErrorInvalidValue;
    if (e) return mg_rt_fail(e);
    *name = mg_rt_kernel_name(func);
    return *name ? cudaSuccess : mg_rt_done(cu.cuFuncGetName(name, f));
}
