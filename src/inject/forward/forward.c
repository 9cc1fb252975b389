/* In front of the CUDA runtime that the program has, ours or NVIDIA's, for the time line: every public function leads
 * to the same one of that runtime, through code that records the call. Preloaded by `margay run -t timeline` where the
 * runtime is a shared library. Finds libmargay through the driver's own interface (MG_RUNTIME_LINK); without
 * it, or without the tool, calls go straight through. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "inject/calls.h"

enum entry {
#define FORWARD(name) FN_##name,
#include "forward-names.def"
#undef FORWARD
    FN_COUNT
};
static struct mg_runtime_function functions[] = {
#define FORWARD(name) {#name},
#include "forward-names.def"
#undef FORWARD
};
enum { NOT_FOUND = 302 /* cudaErrorSharedObjectSymbolNotFound */ };

extern void *mg_targets[];
extern void *const mg_traced_table[];
void mg_inject_ready(void);

static void *real[FN_COUNT];
static const struct mg_runtime_link *runtime_link;

static int missing(void)
{
    return NOT_FOUND;
}

/* The runtime where it was opened for a library alone: not in the global scope, which dlsym searches. */
static int find_loaded(struct dl_phdr_info *info, size_t size, void *user)
{
    const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    (void)size;
    if (!base || strncmp(base, "/libcudart.so", 13)) return 0;
    *(void **)user = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    return *(void **)user != NULL;
}

static void find_link(void)
{
    static const cu_uuid id = MG_RUNTIME_LINK;
    int (*get)(const void **, const cu_uuid *);
    const void *table = NULL;
    *(void **)&get = dlsym(RTLD_DEFAULT, "cuGetExportTable");
    if (get && !get(&table, &id) && table && ((const struct mg_runtime_link *)table)->size >= sizeof *runtime_link)
        runtime_link = table;
}

static void fill(void)
{
    void *library = NULL;
    for (unsigned i = 0; i < FN_COUNT; i++) {
        real[i] = dlsym(RTLD_NEXT, functions[i].name);
        if (!real[i] && !library) dl_iterate_phdr(find_loaded, &library);
        if (!real[i] && library) real[i] = dlsym(library, functions[i].name);
        if (!real[i]) real[i] = (void *)missing;
    }
    find_link();
    for (unsigned i = 0; i < FN_COUNT; i++) mg_targets[i] = runtime_link ? mg_traced_table[i] : real[i];
}

void mg_inject_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
}

void *mg_calls_enter(struct mg_call_frame *f, uint32_t entry, const uint64_t registers[6], const uint64_t *stack)
{
    (void)registers, (void)stack;
    f->entry = entry;
    runtime_link->enter(f, &functions[entry]);
    return real[entry];
}

void mg_calls_leave(struct mg_call_frame *f, cu_result result)
{
    runtime_link->leave(f, result);
}
