/* Steps: what the host asked of the devices, for the trace of accesses (tool trace): launches, and what the program
 * does with memory. Read by trace/access.h.
 *
 *   calls.c ── calls that make, free, copy, set memory ──┐
 *   launch.c, run.c ── launches, nodes of graphs ────────┴──► steps.c ──► trace/<pid>.mgt */
#ifndef MG_INJECT_STEPS_H
#define MG_INJECT_STEPS_H

#include "inject/calls.h"
#include "trace/access_records.h"

struct mg_run;
struct mg_launch_done;
struct mg_work_mark;
struct mg_work_span;

extern bool mg_steps_on;                   /* tool trace was given */
extern uint8_t mg_steps_rows[MG_FN_COUNT]; /* what an entry does with memory: a row of steps.c, 0: nothing */

void mg_steps_prepare(void); /* before the first call */
void mg_steps_end(void);
uint64_t mg_steps_order(void); /* of what is asked for now; 0: nobody wants to know */
/* For who reads the trace while the process runs (channel_mark.c): an order that is taken is held until it is over,
 * which means that all that is to be told of it was put. */
void mg_steps_follow(void); /* somebody does; before the first call */
bool mg_steps_followed(void);
uint64_t mg_steps_take(void);
void mg_steps_hold(uint64_t order); /* once more, of one that is held; 0: none */
void mg_steps_over(uint64_t order);
uint64_t mg_steps_whole(uint64_t *begun); /* all orders up to this one are over; begun: the last one there is */
void mg_steps_call(const struct mg_call_frame *f, cu_result result);
/* A launch: describe it before the driver has it, tell when it was taken; then its order is over, which its run may
 * hold, too. */
void mg_steps_describe(struct mg_run *r, struct mg_step_record *out);
void mg_steps_put(const struct mg_step_record *s, const char *name);
/* Work of a graph's replay: on our own devices when it has ended, on a GPU when it is launched. own: what it writes
 * carries the number of this replay; else it stands with an earlier one. */
void mg_steps_node(const struct mg_run *r, const struct mg_launch_done *d, uint64_t replay, bool own);
void mg_steps_work(const struct mg_work_mark *m, const struct mg_work_span *s);
/* The same of a graph's copies and memsets on a GPU: what it is, known beforehand; and that it runs. */
void mg_steps_alloc_node(uint64_t at, uint64_t bytes); /* a node of a graph allocates that */
void mg_steps_copy_node(const struct cu_memcpy3d *c, struct mg_step_record *out);
void mg_steps_memset_node(const struct cu_memset_node *m, struct mg_step_record *out);
void mg_steps_put_node(const struct mg_step_record *s, uint64_t order, uint64_t ctx, uint64_t stream);

#endif
