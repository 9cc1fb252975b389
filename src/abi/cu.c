/* Names of the driver ABI as tables: exported entries with the version each appeared in, results
 * with their texts. Pure data and lookup; no state. */
#include "abi/cu.h"

#include <string.h>

#include "base/compiler.h"
#include "base/search.h"

const struct mg_cu_entry mg_cu_entries[] = {
#define ENTRY(name, base, since, per_thread) {#name, #base, since, per_thread},
#include "abi/entries.def"
#undef ENTRY
};
const uint32_t mg_cu_entry_count = MG_COUNT_OF(mg_cu_entries);

int mg_cu_entry_find(const char *name)
{
    uint32_t k; /* ORDER ENTRIES: sorted by name */
    MG_FIND_FIRST(k, mg_cu_entry_count, strcmp(mg_cu_entries[k].name, name) < 0);
    return k < mg_cu_entry_count && !strcmp(mg_cu_entries[k].name, name) ? (int)k : -1;
}

int mg_cu_entry_resolve(const char *base, int version, uint64_t flags, int *status)
{
    /* Rows of one base begin with the base's own name and lie together, except that longer bases
     * may stand between: scanning from the base's first row while the prefix holds finds all. */
    uint32_t n = (uint32_t)strlen(base), lo;
    MG_FIND_FIRST(lo, mg_cu_entry_count, strncmp(mg_cu_entries[lo].name, base, n) < 0);
    int best[2] = {-1, -1}; /* [per_thread] */
    bool known = false;
    for (uint32_t i = lo; i < mg_cu_entry_count && !strncmp(mg_cu_entries[i].name, base, n); i++) {
        const struct mg_cu_entry *e = &mg_cu_entries[i];
        if (strcmp(e->base, base)) continue;
        known = true;
        if ((int)e->since > version) continue;
        int *b = &best[e->per_thread];
        if (*b < 0 || mg_cu_entries[*b].since < e->since) *b = (int)i;
    }
    int got = (flags & CUPROC_PER_THREAD_STREAM) && best[1] >= 0 ? best[1] : best[0];
    if (status) *status = got >= 0 ? CUPROC_OK : known ? CUPROC_VERSION_TOO_LOW : CUPROC_NOT_FOUND;
    return got;
}

static const struct {
    int number;
    const char *name, *text;
} results[] = {
#define RESULT(name, number, text) {number, "CUDA_ERROR_" #name, text},
#include "abi/errors.def"
#undef RESULT
};

static int find_result(cu_result r)
{
    for (uint32_t i = 0; i < MG_COUNT_OF(results); i++)
        if (results[i].number == r) return (int)i;
    return -1;
}

const char *mg_cu_result_name(cu_result r)
{
    int i = find_result(r);
    return !r ? "CUDA_SUCCESS" : i < 0 ? NULL : results[i].name;
}

const char *mg_cu_result_text(cu_result r)
{
    int i = find_result(r);
    return i < 0 ? NULL : results[i].text;
}

struct cu_memcpy3d mg_cu_copy_of_2d(const struct cu_memcpy2d *c)
{
    return (struct cu_memcpy3d){.src_x = c->src_x,
                                .src_y = c->src_y,
                                .src_type = c->src_type,
                                .src_host = c->src_host,
                                .src_device = c->src_device,
                                .src_array = c->src_array,
                                .src_pitch = c->src_pitch,
                                .dst_x = c->dst_x,
                                .dst_y = c->dst_y,
                                .dst_type = c->dst_type,
                                .dst_host = c->dst_host,
                                .dst_device = c->dst_device,
                                .dst_array = c->dst_array,
                                .dst_pitch = c->dst_pitch,
                                .width = c->width,
                                .height = c->height,
                                .depth = 1};
}

int mg_cu_relax_captures(mg_cu_exchange_fn exchange)
{
    int mode = CUCAPTURE_RELAXED;
    return exchange(&mode) == CUE_SUCCESS ? mode : -1;
}

void mg_cu_restore_captures(mg_cu_exchange_fn exchange, int before)
{
    if (before >= 0) exchange(&before);
}
