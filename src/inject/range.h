/* `--range`: the part of a run that tools look at. Read by the launcher, to refuse a bad one, and by the library
 * inside
 * the application, to follow it.
 *
 *   profiler                     from cuProfilerStart (cudaProfilerStart) to cuProfilerStop
 *   nvtx:GLOB                    while a range of NVTX is open whose name fits, on any thread
 *   delay=S,duration=S           from so many seconds after the first CUDA call on, for so long; either alone will
 *                                do
 *
 * What begins outside of it runs native and is not on the time line. */
#ifndef MG_INJECT_RANGE_H
#define MG_INJECT_RANGE_H

#include "base/diag.h"

enum mg_range_kind { MG_RANGE_ALL, MG_RANGE_PROFILER, MG_RANGE_NVTX, MG_RANGE_TIME };
struct mg_range {
    enum mg_range_kind kind;
    char glob[256];
    uint64_t delay_ns, duration_ns; /* duration 0: to the end */
};
/* NULL: all of the run. */
enum mg_err mg_range_parse(const char *spec, struct mg_range *out, struct mg_diag *d) MG_MUST_CHECK;

/* Inside the application (window.c). */
void mg_window_begin(const char *spec, uint64_t start_ns);
bool mg_window_is_open(void);
void mg_window_profiler(bool starts);
bool mg_window_wants(const char *mark); /* is it a range that opens the window? */
void mg_window_mark(int change);        /* one of those has begun (1) or ended (-1) */

#endif
