/* Which moments of the run tools look at, as `--range` says. */
#include "base/demangle.h"
#include "base/io.h"
#include "inject/hooks.h"
#include "inject/range.h"
#include "inject/session.h"

static struct mg_range range;
static uint64_t from_ns, to_ns;
static int open_count; /* of kinds that open and close: so many openings */

void mg_window_begin(const char *spec, uint64_t start_ns)
{
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err err = mg_range_parse(spec, &range, &d);
    if (err) {
        range.kind = MG_RANGE_ALL;
        mg_session_say("%s; all of the run is looked at", mg_diag_first(&d, err));
    }
    mg_diag_release(&d);
    from_ns = start_ns + range.delay_ns;
    to_ns = range.duration_ns ? from_ns + range.duration_ns : UINT64_MAX;
}

bool mg_window_is_open(void)
{
    if (range.kind == MG_RANGE_ALL) return true;
    if (range.kind != MG_RANGE_TIME) return __atomic_load_n(&open_count, __ATOMIC_RELAXED) > 0;
    uint64_t now = mg_now_ns();
    return now >= from_ns && now < to_ns;
}

void mg_window_profiler(bool starts)
{
    if (range.kind == MG_RANGE_PROFILER) __atomic_store_n(&open_count, starts, __ATOMIC_RELAXED);
}

bool mg_window_wants(const char *mark)
{
    return range.kind == MG_RANGE_NVTX && mg_name_matches(range.glob, mark);
}

void mg_window_mark(int change)
{
    __atomic_add_fetch(&open_count, change, __ATOMIC_RELAXED);
}

MG_HOOK(cuProfilerStart, void)
{
    mg_window_profiler(true);
    return MG_REAL(cuProfilerStart)();
}
MG_HOOK(cuProfilerStop, void)
{
    mg_window_profiler(false);
    return MG_REAL(cuProfilerStop)();
}
