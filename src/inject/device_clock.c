#include "inject/device_clock.h"

#include <pthread.h>

#include "base/io.h"
#include "inject/covered.h"
#include "inject/kernels.h"
#include "inject/session.h"
#include "inject/tools.h"
#include "inject/twin_clock.h"
#include "tool/span.h"

enum { DEVICES = 64 };

static const struct mg_region *region_of(const struct mg_run *r)
{
    const struct mg_variant *v = r->block && r->body ? r->body->variant : NULL;
    for (uint32_t k = 0; v && k < v->layout.n_regions; k++) {
        const struct mg_region *g = &v->layout.regions[k];
        bool is = mg_session.uses[v->uses[k]].tool->flags & MG_TOOL_SPAN;
        if (is && !g->reason && g->n_cells == MG_SPAN_CELLS) return g;
    }
    return NULL;
}

bool mg_device_clock_is_read(const struct mg_run *r)
{
    return region_of(r) != NULL;
}

bool mg_device_clock_read(const struct mg_run *r, const uint64_t *raw, uint64_t *begin, uint64_t *end)
{
    const struct mg_region *g = raw ? region_of(r) : NULL;
    uint64_t cells[MG_SPAN_CELLS];
    if (!g) return false;
    mg_layout_read(g, raw, cells);
    *begin = ~cells[MG_SPAN_BEGIN];
    *end = cells[MG_SPAN_END];
    return cells[MG_SPAN_BEGIN] && *end >= *begin;
}

uint64_t mg_device_clock_own(const struct mg_run *r, const uint64_t *raw)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct mg_covered devices[DEVICES];
    uint64_t begin, end;
    if (!mg_device_clock_read(r, raw, &begin, &end)) return 0;
    pthread_mutex_lock(&lock);
    uint64_t own_ns = mg_covered_add(&devices[r->device % DEVICES], begin, MG_MAX(end, begin + 1));
    pthread_mutex_unlock(&lock);
    return MG_MAX(own_ns, 1);
}

/* A GPU's is placed between the call and now, ever more closely. */
uint64_t mg_device_clock_offset(const struct mg_run *r, uint64_t first, uint64_t last, uint64_t *uncertainty_ns)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct mg_twin_clock clocks[DEVICES];
    pthread_mutex_lock(&lock);
    struct mg_twin_clock *c = &clocks[r->device % DEVICES];
    mg_twin_clock_add(c, first, last, r->node ? 0 : r->sent_ns ? r->sent_ns : r->call_ns, mg_now_ns());
    uint64_t offset = (uint64_t)mg_twin_clock_offset(c, last, uncertainty_ns);
    pthread_mutex_unlock(&lock);
    return offset;
}

bool mg_device_clock_time(const struct mg_run *r, const uint64_t *raw, const struct mg_launch_done *d,
                          struct mg_launch_done *by_clock)
{
    uint64_t begin, end;
    if (!mg_device_clock_read(r, raw, &begin, &end)) return false;
    *by_clock = *d;
    uint64_t offset = mg_device_clock_offset(r, begin, end, &by_clock->uncertainty_ns);
    by_clock->start_ns = begin + offset;
    by_clock->end_ns = MG_MAX(end, begin + 1) + offset;
    return true;
}
