/* Memory of devices that calls allocate and free, on the time line: a record for each, with its address and size. */
#include "inject/memory_calls.h"

#include <string.h>

#include "abi/cu.h"
#include "inject/hooks.h"
#include "span/writer.h"

enum { MEMORY_NONE, MEMORY_PLAIN, MEMORY_PITCH, MEMORY_CREATED, MEMORY_FREED };
uint8_t mg_memory_calls[MG_FN_COUNT];

void mg_memory_calls_find(void)
{
    static const struct {
        const char *name;
        uint8_t does;
    } calls[] = {{"cuMemAlloc_v2", MEMORY_PLAIN},
                 {"cuMemAllocPitch_v2", MEMORY_PITCH},
                 {"cuMemAllocManaged", MEMORY_PLAIN},
                 {"cuMemAllocAsync", MEMORY_PLAIN},
                 {"cuMemAllocAsync_ptsz", MEMORY_PLAIN},
                 {"cuMemAllocFromPoolAsync", MEMORY_PLAIN},
                 {"cuMemAllocFromPoolAsync_ptsz", MEMORY_PLAIN},
                 {"cuMemCreate", MEMORY_CREATED},
                 {"cuMemFree_v2", MEMORY_FREED},
                 {"cuMemFreeAsync", MEMORY_FREED},
                 {"cuMemFreeAsync_ptsz", MEMORY_FREED},
                 {"cuMemRelease", MEMORY_FREED}};
    for (size_t i = 0; i < MG_COUNT_OF(calls); i++) {
        int entry = mg_cu_entry_find(calls[i].name);
        if (entry >= 0) mg_memory_calls[entry] = calls[i].does;
    }
}

static uint64_t word_at(uint64_t address)
{
    uint64_t v = 0;
    if (address) memcpy(&v, (const void *)(uintptr_t)address, sizeof v);
    return v;
}

void mg_memory_call(struct mg_span_writer *w, const struct mg_call_frame *f, uint64_t end_ns)
{
    uint8_t does = mg_memory_calls[f->entry];
    const uint64_t *a = f->args;
    struct mg_record_memory r = {.time = end_ns, .correlation = f->correlation, .bytes = UINT64_MAX};
    cu_device device = 0;
    if (does == MEMORY_FREED) {
        r.address = a[0];
    } else {
        r.address = word_at(a[0]);
        r.bytes = does == MEMORY_PITCH ? word_at(a[1]) * a[3] : a[1];
        MG_REAL_AS(cuCtxGetDevice, cu_device *)(&device);
        r.device = (uint32_t)device;
    }
    if (does == MEMORY_CREATED) { /* type, handle types, kind of place, place: 1, of a device */
        uint32_t properties[4];
        memcpy(properties, (const void *)(uintptr_t)a[2], sizeof properties);
        if (properties[2] != 1) return;
        r.device = properties[3];
    }
    if (r.address) mg_span_put_memory(w, &r);
}
