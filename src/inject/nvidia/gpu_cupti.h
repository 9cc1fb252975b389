/* Times of device work from CUPTI (timeline, source=cupti). */
#ifndef MG_INJECT_NVIDIA_GPU_CUPTI_H
#define MG_INJECT_NVIDIA_GPU_CUPTI_H

#include "inject/calls.h"
#include "span/records.h"

/* False: CUPTI cannot be had, and a line said why. emit: work whose times have come, or will not come; on any thread.
 */
bool mg_cupti_begin(void (*emit)(void *user, const struct mg_record_work *r));
void mg_cupti_end(void);                             /* what still waits is emitted */
void mg_cupti_failed(const struct mg_call_frame *f); /* a recorded call has */
/* True: it is emitted when its times are there, or it is known that none come. */
bool mg_cupti_work(const struct mg_record_work *r);

#endif
