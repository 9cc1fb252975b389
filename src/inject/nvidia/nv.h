/* A real GPU behind NVIDIA's driver, as far as instrumented launches need more than the calls that the
 * application makes: memory for counters, knowing when a launch has ended, and machine code for twins.
 *
 *   launch thread   slot_take ── launch_begin ── (driver's launch, our event rides on it) ── launch_end
 *   drain thread    event done? ── copy slots to the host ── fn(user, counters) ── slots zeroed, free again
 *
 * Rules, each for a reason seen on an H200 (facts in docs/nvidia.md):
 *   - nothing waits on work of the application in a warm launch, and no stream operation is added: the
 *     completion event is an attribute of the launch itself where the launch allows one (but slot_set for graphs);
 *   - the drain thread touches only events and a stream of its own, never a stream of the application:
 *     querying a stream that another thread captures breaks the capture;
 *   - memory of ours lies apart from the program's, with unmapped addresses around it (apart.c);
 *   - memory is never freed while the context lives, since that waits for all work in flight: what is not
 *     needed any more is used again. Loading and unloading a module wait too, so mg_nv_is_busy is asked
 *     first.
 * Knows neither tools nor PTX: counters are bytes, twins are text. */
#ifndef MG_INJECT_NVIDIA_NV_H
#define MG_INJECT_NVIDIA_NV_H

#include "abi/cu.h"
#include "base/diag.h"

struct mg_nv_config {
    size_t size;
    void *(*symbol)(const char *name); /* of the driver */
    void (*say)(const char *line);
    void (*thread_begins)(void);                   /* called first on the drain thread */
    bool (*is_hurried)(void);                      /* does somebody wait for ends? */
    bool (*takes_turns)(void);                     /* may somebody do so soon? */
    void (*pass_begins)(void), (*pass_ends)(void); /* around each look, on whichever thread drains */
    const char *driver_path;                       /* for the key of the cache of machine code */
};
/* Once. NULL, or the entry that the driver lacks; nothing below may be called then. */
const char *mg_nv_open(const struct mg_nv_config *c);

/* ---- contexts ---------------------------------------------------------------------------------- */

struct mg_nv_ctx; /* lives until the process ends, also when its context is gone */
/* Of the context that is current; NULL: there is none, or it cannot be used. */
struct mg_nv_ctx *mg_nv_ctx_current(void);
/* The context is about to go: waits for its launches, at most so long, hands over what they counted.
 * What is left then gets CUE_CONTEXT_IS_DESTROYED. After `gone` nothing is called in it any more. */
void mg_nv_ctx_ends(cu_ctx ctx, uint64_t timeout_ns);
bool mg_nv_ctx_is_quiet(const struct mg_nv_ctx *x); /* all that was launched there has ended */
void mg_nv_ctx_gone(cu_ctx ctx);
cu_ctx mg_nv_ctx_primary(cu_device device); /* NULL: not met */
bool mg_nv_ctx_is_active(cu_device device); /* is the device's primary context there? */
/* Memory with this content, until it is given back or the context ends; 0: none left. */
uint64_t mg_nv_upload(struct mg_nv_ctx *x, const void *data, size_t bytes);
void mg_nv_give_back(struct mg_nv_ctx *x, uint64_t at, size_t bytes); /* nothing uses it any more */
bool mg_nv_ctx_is_broken(const struct mg_nv_ctx *x);                  /* or gone: nothing may be called in it */
/* Is nothing that was followed running in it? */
bool mg_nv_ctx_is_idle(struct mg_nv_ctx *x);
bool mg_nv_read(struct mg_nv_ctx *x, void *to, uint64_t from, size_t bytes);
/* Many at once, to pinned memory, which has them when mg_nv_end_reads says so. */
bool mg_nv_begin_read(struct mg_nv_ctx *x, void *to, uint64_t from, size_t bytes);
bool mg_nv_end_reads(struct mg_nv_ctx *x);

bool mg_nv_write(struct mg_nv_ctx *x, uint64_t to, const void *data, size_t bytes);
bool mg_nv_ctx_is(const struct mg_nv_ctx *x, cu_ctx ctx);
uint32_t mg_nv_warps(const struct mg_nv_ctx *x, uint32_t *multiprocessors); /* that it can hold at once */
/* Device memory; and host memory that the device has at the same address. Of the current context, for as long as it
 * lives. 0, NULL: none left. */
uint64_t mg_nv_memory(struct mg_nv_ctx *x, size_t bytes);
void *mg_nv_host_memory(struct mg_nv_ctx *x, size_t bytes);
void mg_nv_enter(struct mg_nv_ctx *x); /* this thread of ours calls what is there */

/* ---- slots: a header and a zeroed body in device memory, one a launch ---------------------------- */

struct mg_nv_slots; /* slots of one size and header */
struct mg_nv_slot {
    uint64_t at;
    struct mg_nv_slots *owner;
    struct mg_nv_chunk *chunk;
    uint32_t ix;
    struct mg_nv_slot *next;
};
/* Word 0 of every slot's header becomes the address of its body. NULL: out of memory. */
struct mg_nv_slots *mg_nv_slots_new(struct mg_nv_ctx *x, const void *header, size_t header_bytes, size_t body_bytes);
size_t mg_nv_slots_body(const struct mg_nv_slots *s);
struct mg_nv_slots *mg_nv_slots_next(struct mg_nv_slots *s,
                                     struct mg_nv_slots *next); /* a link for the owner: sets, returns `next` */
struct mg_nv_slots *mg_nv_slots_link(const struct mg_nv_slots *s);
/* NULL: neither memory nor a slot that comes back soon. */
struct mg_nv_slot *mg_nv_slot_take(struct mg_nv_slots *s);
void mg_nv_slot_give(struct mg_nv_slot *slot); /* as it was taken: nothing has run with it */
bool mg_nv_slot_write(struct mg_nv_slot *slot, size_t offset, const void *p, size_t bytes); /* before its launch */
/* The same while its launch runs, beside all work of the application's; poke is of this life alone. In pass_ends. */
bool mg_nv_slot_peek(struct mg_nv_slot *slot, size_t offset, void *to, size_t bytes);
bool mg_nv_slot_poke(struct mg_nv_slot *slot, size_t offset, const void *p, size_t bytes);
/* A word of one that stays in use, set in this stream and from then on expected there. */
bool mg_nv_slot_set(struct mg_nv_slot *slot, size_t offset, uint32_t word, cu_stream s, bool per_thread);
bool mg_nv_slots_are_free(const struct mg_nv_slots *s); /* every one */
void mg_nv_slots_free(struct mg_nv_slots *s);           /* when every one is free; their memory serves others */

/* ---- launches ------------------------------------------------------------------------------------ */

struct mg_nv_done {
    cu_result error; /* of the context; CUE_SUCCESS: complete */
    bool timed;
    uint64_t start_ns, time_ns; /* host clock (mg_now_ns) and duration */
    uint64_t uncertainty_ns;    /* of both ends */
    uint64_t *body;             /* what the slot counted; for the time of the call; NULL: no slot, or lost */
    bool spoilt;                /* the program wrote into memory around it */
};
/* Called on the drain thread, or on the thread that ends a context or the process. */
typedef void (*mg_nv_done_fn)(void *user, const struct mg_nv_done *d);

struct mg_nv_launch {
    cu_stream stream;
    bool per_thread;           /* the default stream is the thread's own */
    bool plain;                /* no attribute can be added: the event is recorded behind the launch */
    bool may_time, wants_time; /* an event pair is allowed; and asked for, else now and then */
    bool only_timed;           /* follow it only when it is timed */
    /* Its end was seen; its counts come later. time_ns 0: not timed. Called as fn is. May be NULL. */
    void (*seen)(void *user, uint64_t time_ns);
    cu_event event; /* out: the launch attribute's; NULL: none */
    struct mg_nv_ctx *ctx;
    struct mg_nv_lane *lane;
    struct mg_nv_window *window;
};
/* Before the driver's call. False: nothing can be followed here; launch without. */
bool mg_nv_launch_begin(struct mg_nv_launch *l);
/* After it. When it was taken fn is called once, possibly before this returns; else never. */
void mg_nv_launch_end(struct mg_nv_launch *l, bool taken, struct mg_nv_slot *slot, mg_nv_done_fn fn, void *user);
/* Is anything that was followed still running, in this stream (same) or another? */
struct mg_nv_busy {
    bool same, other;
};
struct mg_nv_busy mg_nv_is_busy(struct mg_nv_ctx *x, cu_stream stream, bool per_thread);

/* Slots that stay in use (nodes of graphs): bodies are read without being zeroed. Sorts `slots` by
 * address, calls fn for each; they are of one context. False: the context is broken. In pass_ends. */
bool mg_nv_slots_read(struct mg_nv_slot **slots, uint32_t n,
                      void (*fn)(void *user, struct mg_nv_slot *slot, uint64_t *body, bool spoilt), void *user);
/* Slots that nothing uses any more become new and free again; of one context. In pass_ends. */
void mg_nv_slots_recycle(struct mg_nv_slot **slots, uint32_t n);
/* The thread that drains; launch_end starts it by itself. */
void mg_nv_thread_start(void);

/* Waits until the thread that drains has handed over what has ended by now, at most so long. Takes no
 * lock: a signal handler may call it. */
void mg_nv_flush(uint64_t timeout_ns);
/* Hands over what has ended by now, on this thread. */
void mg_nv_collect(void);
/* Hands over everything that has ended, and waits for the rest, at most so long. False: that was too short. */
bool mg_nv_drain(uint64_t timeout_ns);

/* ---- machine code ---------------------------------------------------------------------------------- */

struct mg_nv_jit {
    unsigned max_registers; /* 0: no cap */
    int opt_level;          /* -1: the driver's own */
    bool whole;             /* let the driver compile it as one program, while it loads it */
};
/* Machine code of a PTX text for the device of the current context, from the cache when it is there.
 * out is malloc'd; NULL with CUE_SUCCESS: the driver shall load the text itself. why: one line. */
cu_result mg_nv_compile(const char *ptx, size_t bytes, const struct mg_nv_jit *j, void **out, size_t *out_bytes,
                        char *why, size_t why_room);
/* Has the driver load its compiler, if it has not yet. */
void mg_nv_load_linker(void);
/* Compiles it into the cache, for whoever asks later; nothing where that has it, or another thread is at it. */
void mg_nv_compile_ahead(const char *ptx, size_t bytes, const struct mg_nv_jit *j);
bool mg_nv_is_compiled(const char *ptx, size_t bytes, const struct mg_nv_jit *j); /* the cache has it */
uint64_t mg_nv_ahead_used(void); /* bytes of texts that were compiled ahead and asked for since */
/* Loads machine code, or the text when code is NULL. */
cu_result mg_nv_load(const char *ptx, const void *code, const struct mg_nv_jit *j, cu_module *m, char *why,
                     size_t why_room);

#endif
