/* Inside the nv_ files: the driver's entries, the state, and what its files call of each other. */
#ifndef MG_INJECT_NVIDIA_NV_PRIV_H
#define MG_INJECT_NVIDIA_NV_PRIV_H

#include <pthread.h>

#include "base/map.h"
#include "base/vec.h"
#include "inject/nvidia/nv.h"
#include "inject/nvidia/nv_clock.h"

/*        entry                                  parameters */
#define MG_NV_CALLS(CALL)                                                                                              \
    CALL(cuCtxGetCurrent, cu_ctx *)                                                                                    \
    CALL(cuCtxSetCurrent, cu_ctx)                                                                                      \
    CALL(cuCtxPushCurrent_v2, cu_ctx)                                                                                  \
    CALL(cuCtxPopCurrent_v2, cu_ctx *)                                                                                 \
    CALL(cuCtxGetDevice, cu_device *)                                                                                  \
    CALL(cuDevicePrimaryCtxGetState, cu_device, unsigned *, int *)                                                     \
    CALL(cuDevicePrimaryCtxRetain, cu_ctx *, cu_device)                                                                \
    CALL(cuDevicePrimaryCtxRelease_v2, cu_device)                                                                      \
    CALL(cuDeviceGetAttribute, int *, int, cu_device)                                                                  \
    CALL(cuDriverGetVersion, int *)                                                                                    \
    CALL(cuMemAlloc_v2, cu_ptr *, size_t)                                                                              \
    CALL(cuMemHostAlloc, void **, size_t, unsigned)                                                                    \
    CALL(cuMemcpyHtoDAsync_v2, cu_ptr, const void *, size_t, cu_stream)                                                \
    CALL(cuMemsetD32Async, cu_ptr, unsigned, size_t, cu_stream)                                                        \
    CALL(cuMemsetD32Async_ptsz, cu_ptr, unsigned, size_t, cu_stream)                                                   \
    CALL(cuMemcpyDtoHAsync_v2, void *, cu_ptr, size_t, cu_stream)                                                      \
    CALL(cuStreamCreate, cu_stream *, unsigned)                                                                        \
    CALL(cuEventCreate, cu_event *, unsigned)                                                                          \
    CALL(cuEventRecord, cu_event, cu_stream)                                                                           \
    CALL(cuEventRecord_ptsz, cu_event, cu_stream)                                                                      \
    CALL(cuEventQuery, cu_event)                                                                                       \
    CALL(cuEventElapsedTime, float *, cu_event, cu_event)                                                              \
    CALL(cuThreadExchangeStreamCaptureMode, int *)                                                                     \
    CALL(cuLinkCreate_v2, unsigned, int *, void **, cu_link *)                                                         \
    CALL(cuLinkAddData_v2, cu_link, int, void *, size_t, const char *, unsigned, int *, void **)                       \
    CALL(cuLinkComplete, cu_link, void **, size_t *)                                                                   \
    CALL(cuLinkDestroy, cu_link)                                                                                       \
    CALL(cuModuleLoadDataEx, cu_module *, const void *, unsigned, int *, void **)
/* What a driver may lack: memory of ours lies among the program's then (apart.c). */
#define MG_NV_MORE_CALLS(CALL)                                                                                         \
    CALL(cuMemAddressReserve, cu_ptr *, size_t, size_t, cu_ptr, unsigned long long)                                    \
    CALL(cuMemAddressFree, cu_ptr, size_t)                                                                             \
    CALL(cuMemCreate, cu_mem_handle *, size_t, const struct cu_alloc_prop *, unsigned long long)                       \
    CALL(cuMemRelease, cu_mem_handle)                                                                                  \
    CALL(cuMemMap, cu_ptr, size_t, size_t, cu_mem_handle, unsigned long long)                                          \
    CALL(cuMemUnmap, cu_ptr, size_t)                                                                                   \
    CALL(cuMemSetAccess, cu_ptr, size_t, const struct cu_access *, size_t)                                             \
    CALL(cuMemHostRegister_v2, void *, size_t, unsigned)

struct mg_nv_item {          /* one launch that was taken */
    struct mg_nv_slot *slot; /* NULL: it counts nothing, or its slot is read by its owner */
    mg_nv_done_fn fn;
    void *user;
    bool timed;
    struct mg_clock_span span;
    void (*seen)(void *user, uint64_t time_ns);
    struct mg_nv_item *next;
};
/* Launches of a stream whose completion one event tells: the last of them carries it. */
struct mg_nv_window {
    cu_event begin, end; /* begin: of a timed launch, which has a window of its own */
    uint32_t pins;       /* launches between launch_begin and launch_end */
    uint32_t n;          /* items */
    struct mg_nv_item *first, **last;
    uint64_t opened_ns;
    uint64_t called_ns, launched_ns; /* timed: when the call that launches began and had returned */
    struct mg_nv_window *next;
};
struct mg_nv_lane { /* a stream, or a thread's default stream */
    cu_stream stream;
    struct mg_nv_window *first, *open;
    uint64_t timed_ns;                     /* when a launch was last timed */
    uint64_t ended_ns, end_uncertainty_ns; /* end of the last one that was timed */
};
struct mg_nv_piece {
    uint64_t at;
    size_t bytes;
};
enum mg_nv_kind { MG_NV_DEVICE, MG_NV_HOST };
struct mg_nv_apart {            /* memory of ours of one kind */
    struct mg_nv_range *ranges; /* the newest first */
    MG_VEC(struct mg_nv_piece) holes, pieces;
    uint32_t next_look; /* of the pieces */
    bool tried, plain;  /* plain: each piece is the driver's own allocation */
};
#define MG_NV_BASE_TRIES 4u
struct mg_nv_bases {                       /* events that place the device's clock on the host's (nv_base.c) */
    cu_stream stream;                      /* ours, non-blocking, for them alone */
    cu_event events[1 + MG_NV_BASE_TRIES]; /* the first is the newest base */
    struct mg_clock clock;
};
struct mg_nv_ctx {
    cu_ctx ctx;
    cu_device device;
    bool primary;
    cu_stream copy; /* ours, non-blocking */
    cu_event copied;
    struct mg_nv_bases bases; /* owner: whoever holds draining */
    cu_result error;          /* the context's first error: nothing is called in it any more */
    struct mg_map lanes;      /* stream and thread -> struct mg_nv_lane */
    MG_VEC(struct mg_nv_lane *) lane_list;
    MG_VEC(cu_event) timed, plain; /* events free for use */
    uint32_t pending;              /* items not handed over */
    void *staging;                 /* pinned */
    size_t staging_bytes;
    pthread_mutex_t copying;           /* owner of copy, copied and staging */
    struct mg_nv_chunk *spare;         /* memory of slots that are no more */
    MG_VEC(struct mg_nv_piece) pieces; /* given back */
    pthread_mutex_t growing;           /* owner of apart; behind copying */
    struct mg_nv_apart apart[2];
    uint64_t looked_ns; /* when check words between the pieces were looked at */
    bool spoilt;        /* they were no longer what they were */
    struct mg_nv_ctx *next;
};

struct mg_nv_state {
#define CALL(name, ...) cu_result (*name)(__VA_ARGS__);
    MG_NV_CALLS(CALL)
    MG_NV_MORE_CALLS(CALL)
#undef CALL
    struct mg_nv_config config;
    pthread_mutex_t lock;     /* lists of contexts, lanes, windows, items and slots; no driver call under it */
    pthread_mutex_t draining; /* one drain pass at a time; taken before lock */
    struct mg_nv_ctx *contexts;
    bool thread_started;
};
extern struct mg_nv_state mg_nv;

/* Between these this thread's calls do not disturb a capture, its own or another's. */
int mg_nv_relax(void);
void mg_nv_unrelax(int before);
/* Runs one batch of copies of ours to its end. Holding x->copying; begin once, then any number of
 * copies on x->copy, then wait. */
bool mg_nv_copies_wait(struct mg_nv_ctx *x);
bool mg_nv_staging(struct mg_nv_ctx *x, size_t bytes);

bool mg_nv_bases_init(struct mg_nv_bases *b);    /* in the current context */
void mg_nv_bases_refresh(struct mg_nv_bases *b); /* a new base where one is due; in its context */
/* The time between two completed events, on the host's clock. False: the driver does not tell. */
bool mg_nv_bases_place(const struct mg_nv_bases *b, cu_event begin, cu_event end, uint64_t call_ns, uint64_t seen_ns,
                       struct mg_clock_span *span);

/* A piece of memory apart from the program's, with check words on both sides; 0: none left. Holding neither lock. */
uint64_t mg_nv_take(struct mg_nv_ctx *x, enum mg_nv_kind kind, size_t bytes);
void mg_nv_check_fill(void *to, uint64_t at, size_t bytes); /* to: what shall stand at `at` */
bool mg_nv_check_holds(const void *from, uint64_t at, size_t bytes);
void mg_nv_look_around(struct mg_nv_ctx *x, bool all); /* at the check words; holding copying */
void mg_nv_look_at_all(struct mg_nv_ctx *x);           /* the same for all pieces, from any thread */
void mg_nv_apart_gone(struct mg_nv_ctx *x);            /* with its context: nothing runs there any more */
/* Zeroes and frees slots whose bodies were read. `slots` is sorted by address. */
void mg_nv_slots_restore(struct mg_nv_ctx *x, struct mg_nv_slot **slots, uint32_t n);
size_t mg_nv_slot_stride(const struct mg_nv_slot *s);
struct mg_nv_ctx *mg_nv_slot_ctx(const struct mg_nv_slot *s);
size_t mg_nv_slot_head(const struct mg_nv_slot *s);
/* Is what stands around the body of the slot, copied to `from`, what was there before the launch? */
bool mg_nv_slot_is_whole(const struct mg_nv_slot *s, const void *from);
bool mg_nv_drain_pass(struct mg_nv_ctx *only);

#endif
