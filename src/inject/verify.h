/* --verify: what allocs.c knows of memory, and what launch.c asks of verify.c. */
#ifndef MG_INJECT_VERIFY_H
#define MG_INJECT_VERIFY_H

#include "inject/launch.h"

enum mg_area_kind { MG_AREA_DEVICE, MG_AREA_HOST /* pinned, registered */, MG_AREA_MANAGED };
struct mg_area {            /* a live allocation of the application */
    uint64_t at, bytes, id; /* id: in order of allocation, never reused */
    void *ctx;
    enum mg_area_kind kind;
    bool mapped; /* by cuMemMap: addresses go on into what is mapped beside it */
};

/* ---- allocs.c; everything is empty without --verify or a GPU ------------------------------------ */

bool mg_areas_on(void);
bool mg_area_find(uint64_t address, struct mg_area *out);
bool mg_area_lives(const struct mg_area *a); /* under the lock below */
struct mg_area *mg_areas_copy(uint32_t *n);  /* malloc'd; NULL: out of memory */
void mg_areas_lock(void);                    /* nothing is freed meanwhile */
void mg_areas_unlock(void);
void mg_areas_forget_context(void *ctx, int device); /* ctx NULL: the primary one, if it is gone */
bool mg_streams_capturing(void);                     /* of whichever device: to wait for the context would spoil it */
void mg_streams_hold(void);                          /* no stream capture begins until mg_streams_let */
void mg_streams_let(void);
bool mg_areas_capturing(void); /* some stream is being captured */
bool mg_areas_peers(void);     /* kernels may reach the memory of another device */

/* ---- settle.c: between mg_verify_enter and mg_verify_leave --------------------------------------- */

/* Everything of the current context has ended: *rc is what the driver says then. False: it has not, within
 * a limit, which is short when the kernel was handed memory that the host shares. */
bool mg_settle(cu_result *rc, bool shared);
/* A software device works with the processors of this process: on a machine that has others to serve it goes on being
 * waited for while it works, until it has had as much of them as the limit. */
static inline bool mg_settle_is_over(uint64_t limit_ns, uint64_t wall_ns, uint64_t processor_ns)
{
    return wall_ns >= limit_ns && (processor_ns >= limit_ns || processor_ns < wall_ns / 100);
}
bool mg_settle_is_stuck(void); /* what we stopped waiting for has still not ended */

/* Keeps a stream back until it is opened, so that what is sent to it meanwhile runs without gaps (--repeat). */
bool mg_hold_begin(cu_stream stream, bool per_thread);
void mg_hold_end(void);

/* ---- verify.c ------------------------------------------------------------------------------------ */

struct mg_verify;
/* Before the twin of r is sent. True: the kernel itself has run, once, and that was all: *rc is the
 * answer, *why the reason when it was taken. False: send the twin; *v, when there is one, goes to
 * mg_verify_end after that. One launch at a time is between mg_verify_enter and mg_verify_leave. */
void mg_verify_enter(void);
void mg_verify_leave(void);
bool mg_verify_begin(const struct mg_call *c, const struct mg_run *r, struct mg_verify **v, cu_result *rc,
                     enum mg_reason *why);
/* --repeat: everything has ended and memory is as the launch found it; false: no more of it. */
bool mg_verify_again(struct mg_verify *v);
void mg_verify_end(struct mg_verify *v, const struct mg_call *c, cu_result rc);
void mg_verify_skip(enum mg_reason why); /* an instrumented launch or node that is not compared */
void mg_verify_tell(void);               /* into the profile, while the store is open */

#endif
