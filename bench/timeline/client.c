/* The least that a tool on CUPTI's activities does: kernels are recorded and counted. Loaded by bench/timeline/loop.py.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CONCURRENT_KERNEL = 10, BYTES = 4 << 20 };
unsigned long long client_kernels;
static int (*next_record)(uint8_t *, size_t, void **), (*flush_all)(uint32_t);

static void request(uint8_t **buffer, size_t *bytes, size_t *most)
{
    *buffer = aligned_alloc(8, *bytes = BYTES);
    *most = 0;
}
static void complete(void *ctx, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    void *record = NULL;
    uint32_t kind;
    (void)ctx, (void)stream, (void)bytes;
    while (valid && !next_record(buffer, valid, &record)) {
        memcpy(&kind, record, sizeof kind);
        client_kernels += kind == CONCURRENT_KERNEL;
    }
    free(buffer);
}
int client_start(const char *library)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
    void *l = library ? dlopen(library, RTLD_NOW) : NULL;
    int (*enable)(int),
        (*callbacks)(void (*)(uint8_t **, size_t *, size_t *), void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
    for (unsigned i = 0; i < sizeof names / sizeof *names && !l; i++) l = dlopen(names[i], RTLD_NOW);
    if (!l) return -1;
    *(void **)&enable = dlsym(l, "cuptiActivityEnable");
    *(void **)&callbacks = dlsym(l, "cuptiActivityRegisterCallbacks");
    *(void **)&next_record = dlsym(l, "cuptiActivityGetNextRecord");
    *(void **)&flush_all = dlsym(l, "cuptiActivityFlushAll");
    if (!enable || !callbacks || !next_record || !flush_all) return -2;
    int rc = callbacks(request, complete);
    return rc ? rc : enable(CONCURRENT_KERNEL);
}
void client_stop(void)
{
    flush_all(1);
}
