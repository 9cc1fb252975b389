/* Events in a program's own kernels, for `margay run -t events` (docs/tools/events.md).
 *
 *   #include <margay/event.h>
 *
 *   mg_event_begin(load);                       a name, not a string: letters, digits, _
 *   tile[threadIdx.x] = in[i];
 *   mg_event_end(load);
 *
 * Without Margay a marker is nothing: it is text in the PTX that becomes no machine instruction. With it,
 * each group of threads of a warp that comes by together is recorded with clock, multiprocessor, CTA and warp.
 * Events nest; an end belongs to the last begin of its name that its thread has not ended yet.
 *
 * The compiler moves no access to memory across a marker, as it might without one; arithmetic it may move.
 * CUDA C++ in nvcc, NVRTC and clang; in host code a marker is nothing, too. The header needs no other. */
#ifndef MARGAY_EVENT_H
#define MARGAY_EVENT_H

#ifdef __CUDA_ARCH__
#define MG_EVENT_MARK(name)                                                                                            \
    __asm__ volatile("{ .reg .b32 __mg_event_" name "; mov.b32 __mg_event_" name ", 0; }" ::: "memory")
#define mg_event_begin(name) MG_EVENT_MARK("begin_" #name)
#define mg_event_end(name)   MG_EVENT_MARK("end_" #name)
#else
#define mg_event_begin(name) ((void)0)
#define mg_event_end(name)   ((void)0)
#endif

#endif
