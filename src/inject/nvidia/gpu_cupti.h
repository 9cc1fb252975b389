/* Times of device work from CUPTI (timeline, source=cupti). */
#ifndef MG_INJECT_NVIDIA_GPU_CUPTI_H
#define MG_INJECT_NVIDIA_GPU_CUPTI_H

#include "inject/calls.h"
#include "span/records.h"

/* False: CUPTI cannot be had, and a line said why. emit: work whose times have come, or will not come; on any thread.
 */
bool mg_cupti_begin(void (*emit)(void *user, const struct mg_record_work *r));
void mg_cupti_end(void); /* what still waits is emitted */
/* Around a call that has a number. */
void mg_cupti_enter(const struct mg_call_frame *f);
void mg_cupti_leave(const struct mg_call_frame *f, cu_result result, uint64_t end_ns);
/* True: it is emitted when its times are there. */
bool mg_cupti_work(const struct mg_record_work *r);

#endif
