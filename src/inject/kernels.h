/* Kernels (kernels.c): a code is one kernel of one image, an instance is that kernel in one context. */
#ifndef MG_INJECT_KERNELS_H
#define MG_INJECT_KERNELS_H

#include <pthread.h>

#include "inject/images.h"
#include "inject/session.h"

struct mg_body;
struct mg_legacy;
struct mg_variant;

enum mg_state { MG_STATE_NEW, MG_STATE_READY, MG_STATE_FAILED };

struct mg_code_use { /* one of the session's tools in a kernel */
    uint32_t use;
    bool told; /* the store knows what it placed there; under the session's lock */
    struct mg_account *account;
    uint64_t drawn_from; /* launches of which its sample was drawn */
    struct mg_code_use *next;
};
struct mg_code { /* one kernel of one image, the same for every context */
    struct mg_img *im;
    struct mg_code *next; /* of the image */
    struct mg_ptx *ptx;   /* where it was found, NULL: nowhere */
    char *name;
    const struct mg_module *m; /* borrowed: ptx->m or the driver's linked module */
    mg_id kernel;              /* in m; 0: not found */
    uint32_t store_id;         /* UINT32_MAX: not told to the store yet */
    bool sites_stored;         /* else it ran native so far */
    enum mg_state state;       /* READY: it can have twins */
    char *reason;              /* FAILED: why */
    uint16_t ptx_sm;           /* target of its PTX; 0: not parsed yet */
    uint16_t native_sm;        /* virtual architecture that the native machine code was made from; 0: not known */
    bool launches;             /* FAILED because it launches kernels itself: nobody counts those */
    bool no_ptx;               /* FAILED because there is nothing to instrument */
    bool located;              /* ptx was looked for */
    bool awaits;               /* READY: a CTA of it may wait for another's (analysis/await.h) */
    struct mg_sites *sites;
    struct mg_variant *variants;         /* newest first; only ever added to, under the lock of twin.c */
    struct mg_code_use *uses;            /* newest first; only ever added to */
    uint64_t n_ended, n_timed, timed_ns; /* launches and replays, of them those whose time is known; for --stats */
    uint64_t other_calls;                /* thread calls that left for a function without a clone */
    bool verify_known;
    enum mg_reason verify_why; /* --verify: why it cannot run three times, none: it can */
    struct mg_reach *reach;    /* --verify: what it may write; NULL: anything */
};

struct mg_native {      /* why something runs the application's own code */
    enum mg_reason why; /* none: not known */
    enum mg_ran ran;
};
struct mg_inst { /* a kernel as one handle in one context names it; freed when its module is unloaded and no run is left
                    (leftover.c) */
    struct mg_code *code;
    uint32_t refs;             /* runs; atomic */
    struct mg_inst *next_left; /* see leftover.c */
    void *handle, *ctx;
    void *function;         /* of the context, for queries; the handle itself when that is one */
    bool is_kernel;         /* a cu_kernel: one handle for all contexts */
    void *kernel;           /* the cu_kernel that the handle is, or stands for in this context; else NULL */
    struct mg_body *bodies; /* newest first; only ever added to, under the session's lock */
    uint32_t generation;
    pthread_mutex_t describing;
    bool described; /* the driver was asked for what follows, up to ctx_number */
    int32_t regs_native;
    uint32_t n_params, param_bytes;
    uint32_t *param_offsets, *param_sizes; /* NULL: not known */
    uint32_t static_shared;
    uint32_t device;
    uint64_t ctx_number;
    uint32_t n_timed;         /* launches that were timed on purpose */
    struct mg_native native;  /* the last node of a graph that was made so (nvidia/gpu_graph.c) */
    uint64_t busy_ns;         /* device time of launches of late that passed the gate, 0: not known; atomic */
    struct mg_legacy *legacy; /* what the launch interface of CUDA 3 set on it, NULL: nothing */
};

void mg_legacy_free(struct mg_legacy *l); /* legacy.c */
/* That tool's, made when it is asked for first. NULL: out of memory. */
struct mg_code_use *mg_code_use(struct mg_code *c, uint32_t use);
/* Tells that a handle names a kernel of an image. */
void mg_kernel_note(void *handle, struct mg_img *im, const char *name, bool is_kernel);
/* A function handle of a kernel that is known. */
void mg_kernel_alias(void *function, void *kernel);
void mg_kernel_forget(struct mg_img *im); /* its handles are dead */
/* The instance that a launch of this handle runs in the current context; NULL: unknown handle. */
struct mg_inst *mg_kernel_get(void *handle);
struct mg_body *mg_kernel_of_twin(void *function); /* NULL: no twin of ours */
void mg_kernel_add_twin(struct mg_body *b);
void mg_kernel_drop_twin(struct mg_body *b); /* it is unloaded */
void mg_kernel_spend(
    struct mg_code *c); /* gives back what can be made again; under the session's lock, nothing uses it */
void mg_leftover_add(struct mg_inst *i); /* its module is unloaded; under the session's lock */
/* Frees instances that are left over and unloads their twins, as far as nothing uses them: after a call of the
 * application's that waited for all work, as the unloading may. */
void mg_leftover_unload(void);
void mg_kernel_each_twin(void *handle, void (*fn)(void *twin, void *user), void *user);
bool mg_code_is_news(const struct mg_code *c); /* the store lacks something of it */
/* Tells the store of the kernel, and of what the tools of this body placed in it. */
uint32_t mg_kernel_store_id(struct mg_inst *i, struct mg_body *b);
/* Collects the witness counts of an image before it goes away. */
void mg_witness_collect(struct mg_img *im, void *function);
void mg_witness_end(void); /* of every image that ran: before its context dies */
/* Device time of all launches that have ended, those without a time taken as the others of their kernel. */
uint64_t mg_kernel_executed(uint64_t *ended, uint64_t *timed);
/* Tool result "uninstrumented_callees": {"kernel": thread calls}, when there were any. */
void mg_kernel_tell_other_calls(void);
/* Tool result "virtual_architecture": kernels whose machine code was made from PTX of another target. */
void mg_kernel_tell_other_ptx(void);

#endif
