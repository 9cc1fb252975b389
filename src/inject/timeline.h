/* The time line inside the application (tool timeline): what is recorded and where it goes.
 *
 *   calls.c, nvtx.c ── calls, marks ──┐
 *   run.c, own driver's watch, nvidia/gpu_work.c ── device work ──► timeline.c ──► trace/<pid>.mgt, read by span/ */
#ifndef MG_INJECT_TIMELINE_H
#define MG_INJECT_TIMELINE_H

#include "inject/calls.h"
#include "inject/session.h"
#include "span/records.h"

struct mg_run;
struct mg_timeline {
    bool on; /* the tool was given; from the first call on */
    bool arguments, work;
    bool pairs; /* NVIDIA: copies, memsets and graphs are recorded at their calls, with events around them */
    bool wants_cupti;
    bool cupti;   /* CUPTI times kernels, copies and memsets */
    bool untimed; /* on a GPU: no event pairs */
    bool twin;    /* kernels read their device's clock themselves */
    bool runtime;
    uint32_t sample;
    uint32_t stacks; /* each so manyth launch or wait has its stack, 0: none */
    bool wanted[MG_FN_COUNT];
};
extern struct mg_timeline mg_timeline;

static inline bool mg_timeline_wants(uint32_t entry)
{
    return mg_timeline.on && mg_timeline.wanted[entry];
}

/* Does this launch get a pair of events? Every one, or each mg_timeline.sample-th. */
static inline bool mg_timeline_times(void)
{
    static uint32_t launches;
    if (!mg_timeline.on || !mg_timeline.work || mg_timeline.untimed || mg_timeline.twin || mg_timeline.cupti)
        return false;
    return mg_timeline.sample < 2 || __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED) % mg_timeline.sample == 0;
}

uint64_t mg_timeline_stack(const struct mg_call_frame *f); /* of a call that is recorded; 0: it has none */
uint64_t mg_nvtx_range(void);                              /* the innermost range of this thread (nvtx.c), 0: none */
bool mg_timeline_wants_runtime(struct mg_runtime_function *f); /* is its call recorded? */
void mg_timeline_prepare(void);      /* before anything else of the session: calls are kept until begin */
void mg_timeline_begin(void);        /* the tool's options are known, the profile is open */
void mg_timeline_begin_source(void); /* behind that, outside of whatever begins once; any number of times */
void mg_timeline_end(void);
void mg_timeline_flush(void);  /* what is there goes to disk; a signal handler may call it */
void mg_timeline_forked(void); /* in a child */

void mg_timeline_call(const struct mg_call_frame *f, cu_result result, uint64_t end_ns);
/* Work of a device that has ended; name: any text, NULL for what has no name of its own. */
void mg_timeline_work(struct mg_record_work *w, const char *name);
/* Before the first call of CUDA a mark is kept: it is written if that call comes from the same thread. */
void mg_timeline_mark(struct mg_record_mark *m, const char *name, const char *domain);
void mg_timeline_thread(uint32_t thread, const char *name);
/* What a library in front of another one hands over (calls.h). Kept before the profile is open. */
void mg_timeline_link(enum mg_link_record kind, const void *record, const uint64_t *words, uint32_t n);
/* One execution of a launch's kernel: launch UINT64_MAX: not in the profile. raw: what it counted alone, NULL: nothing.
 * False: it is not on the time line; else k says what is needed for what lies inside of it. */
struct mg_timeline_kernel {
    struct mg_record_work w;
    uint64_t offset;      /* host less device's clock, modulo 2^64 */
    bool placed;          /* offset and w's uncertainty are known: the kernel read its device's clock itself */
    uint64_t uncertainty; /* of the offset */
};
bool mg_timeline_kernel(const struct mg_run *r, uint64_t launch, const struct mg_launch_done *d, const uint64_t *raw,
                        struct mg_timeline_kernel *k);
/* Its device's clock, of which the kernel read no less than first and no more than last; then what lies inside. */
struct mg_inside;
void mg_timeline_place(struct mg_timeline_kernel *k, const struct mg_run *r, uint64_t first, uint64_t last);
void mg_timeline_inside(const struct mg_timeline_kernel *k, const struct mg_inside *s);

extern const struct mg_driver_watch mg_timeline_watch,
    mg_graphs_watch; /* for our own driver: of all work, of graphs' streams alone */

#endif
