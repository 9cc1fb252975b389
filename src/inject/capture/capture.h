/* margay capture: what the program has its device do goes into DIR/capture-PID.mgc (src/capture), so that it can be run
 * again without the program.
 *
 *   exported cu* ── jump ──► mg_capture_cu* (entries.def) ── NEXT ──► hook or slot          state, lock: core.c
 *                                  │ after the driver has taken the call: one operation
 *                                  └─► contexts.c (where), areas.c (memory), shared.c (memory that the host writes),
 * check.c (hashes of results)
 *
 * Other than the rest of this folder's parent a capture waits for launches, so that it can hash what they wrote, and
 * places allocations at addresses that are free in other processes, too. */
#ifndef MG_INJECT_CAPTURE_CAPTURE_H
#define MG_INJECT_CAPTURE_CAPTURE_H

#include <pthread.h>

#include "capture/writer.h"
#include "inject/hooks.h"
#include "inject/run.h"

struct mg_cap_area { /* memory that kernels reach; all under the lock */
    uint64_t at, bytes;
    enum mg_cap_memory kind;
    bool told;        /* the capture has it; memory of the host is told when a kernel was first handed it */
    bool stays;       /* memory of a variable: no operation makes it */
    bool registered;  /* the program's own memory */
    uint64_t checked; /* launches when its content was last hashed */
    uint64_t hash;    /* of its content then */
    uint32_t same;    /* how often it was the same in a row */
    uint64_t *known;  /* memory of the host: hash of each chunk as the capture has it */
    uint32_t context; /* that it was made in, 0: none */
    uint32_t load;    /* that it is a variable of, 0: of none */
};
struct mg_capture {
    bool wanted;          /* MARGAY_CAPTURE is set: entries lead to ours */
    bool on;              /* between the first call and the end */
    bool hardware;        /* memory is read through the driver */
    pthread_mutex_t lock; /* recursive */
    struct mg_cap_writer out;
    MG_VEC(struct mg_cap_area) areas; /* by address */
    uint64_t n_launches, n_changes;   /* changes: operations that change memory, launches among them */
    uint64_t n_ended;                 /* launches when all work had ended last */
    uint64_t n_waited;                /* changes when the program last waited */
    uint32_t sticky;                  /* reason by which every later launch cannot be replayed; 0: none */
    uint32_t n_reasons;
    bool alone;                     /* in front of the last launch the program had one thread */
    bool shares;                    /* some told area is memory that the host writes */
    bool told_graph;                /* operations of a graph are told before it runs */
    bool host_works;                /* queued work may still write memory of the host */
    cu_stream stream;               /* that all work went to so far, */
    bool uses_stream, uses_streams; /* if any did; more than one */
    bool captures;                  /* nothing was waited for last, since a stream was being captured into a graph */
    bool lame;                      /* a launch did not end while we waited: nothing is waited for any more */
    uint32_t context;               /* number of the one that the capture was told last, 0: none */
    cu_ctx of;                      /* what is told now is of this one; NULL: of the current one */
    uint64_t begin_ns, hash_ns;
    int check; /* enum mg_capture_check */
};
enum mg_capture_check { MG_CAPTURE_CHECK_AUTO, MG_CAPTURE_CHECK_ALL, MG_CAPTURE_CHECK_END };
extern struct mg_capture mg_capture;

/* core.c */
void mg_capture_prepare(void);           /* before the backend is opened */
void mg_capture_begin(void);             /* the session has begun */
void mg_capture_end(void);               /* hashes what is left, writes the END; once */
void *mg_capture_target(unsigned entry); /* ours in front of an entry; NULL: none */
bool mg_capture_looks(void);             /* is it on, and is this call the program's own? */
void mg_capture_lock(void);
void mg_capture_unlock(void);
/* An operation; under the lock. */
void mg_capture_put(enum mg_cap_op_kind kind, const uint64_t *words, uint32_t n, const void *payload, size_t bytes);
void mg_capture_put_content(enum mg_cap_op_kind kind, const uint64_t *words, uint32_t n, const void *data,
                            uint64_t bytes);
/* Something happened that the capture does not hold: its number, for the launch; sticky: for all that follow. */
uint32_t mg_capture_miss(const char *why, bool sticky);
#define PUT(kind, ...)                                                                                                 \
    mg_capture_put(kind, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8, NULL, 0)
#define PUT_TEXT(kind, text, ...)                                                                                      \
    mg_capture_put(kind, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8, text,           \
                   strlen(text))
#define PUT_CONTENT(kind, data, bytes, ...)                                                                            \
    mg_capture_put_content(kind, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8, data,   \
                           bytes)

/* contexts.c: numbers from 1 */
uint32_t mg_cap_context(void);              /* of what is told now; 0: there is none */
uint32_t mg_cap_context_of(cu_ctx c);       /* of a context that has one; else 0 */
cu_ctx mg_cap_context_primary(cu_device d); /* NULL: it is not there */
void mg_cap_context_told(void);             /* an operation follows: the capture learns where */
void mg_cap_context_ends(uint32_t context, bool primary);
bool mg_cap_contexts_settle(cu_result *rc); /* all work in all of them has ended; false: some has not */

/* areas.c */
struct mg_cap_area *mg_cap_area_find(uint64_t p);
struct mg_cap_area *mg_cap_area_add(uint64_t at, uint64_t bytes, enum mg_cap_memory kind);
void mg_cap_area_tell(struct mg_cap_area *a);        /* kernels get it: from now on the capture has it */
void mg_cap_areas_unload(uint32_t load, bool there); /* variables; there: they can still be compared */
void mg_cap_areas_drop(uint32_t context);            /* it is gone */
enum mg_cap_place {
    MG_PLACE_HOST,
    MG_PLACE_DEVICE,
    MG_PLACE_SHARED
}; /* shared: both the host's and, as kernels reach it, the device's */
enum mg_cap_place mg_cap_place_of(uint64_t p);
void mg_cap_freed(uint64_t p);                                                         /* before the driver's call */
bool mg_cap_read(const struct mg_cap_area *a, uint64_t off, void *to, uint64_t bytes); /* what lies there now */

/* fixed.c */
bool mg_fixed_alloc(cu_ptr *out, size_t bytes, cu_result *rc); /* false: the driver's own is to be called */
bool mg_fixed_has(cu_ptr p);
cu_result mg_fixed_free(cu_ptr p);
void mg_fixed_ends(uint32_t context);
bool mg_fixed_range(cu_ptr p, cu_ptr *base, size_t *bytes);

/* shared.c */
void mg_shared_before(void); /* a launch or copy follows: what the host has written since */
void mg_shared_after(void);  /* the launch that was told last has ended: what is there now is the device's */
bool mg_shared_is_there(struct mg_cap_area *a); /* false: memory of the program's own that has gone */
void mg_shared_refresh(struct mg_cap_area *a,
                       const char *now); /* what differs from what the capture has the host has written */

/* host.c */
void mg_host_fills(const void *to);                /* a copy to memory of the host was queued */
bool mg_host_reads(const void *from, bool waited); /* a copy's source may be read now; false: said why not */

/* check.c */
uint64_t mg_check_now_ns(void);                             /* what begin_ns and hash_ns are in */
void mg_check_launch(const uint64_t *args, uint32_t bytes); /* behind the launch that was told last */
void mg_check_sync(void);                                   /* the program has waited for its work */
void mg_check_area(struct mg_cap_area *a, bool must);
void mg_check_bytes(uint64_t at, const void *data, uint64_t bytes); /* the program has read them */
void mg_check_stream(cu_stream s);                                  /* work follows in this one */
bool mg_check_wait(bool must);                                      /* false: not everything has ended */

/* modules.c */
void mg_cap_modules_end(uint32_t context);
uint32_t mg_cap_kernel_of(void *function, struct mg_inst **inst); /* its number, 0: not known */

/* launches.c */
struct mg_cap_launch_in {
    uint32_t kernel;
    struct mg_shape shape;
    uint64_t graph, stream;
    uint32_t why;
    uint64_t *args;
    uint32_t arg_bytes;
    bool allocates;
    cu_ctx ctx; /* a graph's node: the one that it names */
};
bool mg_cap_launch_read(struct mg_cap_launch_in *l, void *function, const struct mg_shape *s, void **params,
                        void **extra);
void mg_cap_launch_before(const struct mg_cap_launch_in *l); /* memory that the arguments name is told */
void mg_cap_launch_put(const struct mg_cap_launch_in *l);
bool mg_cap_is_capturing(cu_stream s, bool per_thread); /* CUDA's stream capture: nothing runs */

/* copies.c: the operation of a copy that runs now, or of a graph's node */
void mg_cap_copy_linear(uint64_t to, uint64_t from, uint64_t bytes, uint64_t stream, bool waited);
void mg_cap_copy_3d(const struct cu_memcpy3d *c, uint64_t stream, bool waited);
void mg_cap_set(uint64_t at, uint64_t pitch, uint64_t width, uint64_t height, uint64_t element, uint64_t value,
                uint64_t stream);

/* objects.c */
void mg_cap_objects_end(uint32_t context);
uint64_t mg_cap_array_of(void *array); /* its number, 0: not known */

#define MG_CAPTURE(name, ...)                                                                                          \
    cu_result mg_capture_##name(__VA_ARGS__);                                                                          \
    cu_result mg_capture_##name(__VA_ARGS__)
extern void *mg_capture_next[MG_FN_COUNT];
#define NEXT(name)               ((__typeof__(&mg_capture_##name))mg_capture_next[MG_FN_##name])
#define STREAM_OF(s, per_thread) ((s) || !(per_thread) ? (s) : CU_PER_THREAD_STREAM)

#endif
