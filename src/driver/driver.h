/* Our own CUDA driver over the software devices: what libmargay's slots point to when there is no
 * GPU. Every entry is an ordinary public driver call; inject/ sits in front exactly as it sits in
 * front of NVIDIA's. The extension below is what inject uses instead of events and polling. */
#ifndef MG_DRIVER_DRIVER_H
#define MG_DRIVER_DRIVER_H

#include "abi/cu.h"
#include "device/device.h"

/* Address of our implementation of an exported driver name ("cuMemAlloc_v2"), or NULL. */
void *mg_driver_symbol(const char *name);

/* Names of all entries we have, in order; NULL behind the last. */
const char *mg_driver_symbol_at(uint32_t ix);

/* Launches that kernels make, on a thread of the driver with the context of the launch current. begin
 * gives back a token for end, or NULL: not interested; it may put another kernel and other parameters
 * into *l. `container`: the module or library handle that `function` came with. */
struct mg_launch_done;
struct mg_driver_children {
    void *(*begin)(void *function, void *container, const char *name, struct mg_launch *l);
    void (*end)(void *token, const struct mg_launch_done *done);
};

/* Device work as somebody else follows it: who enqueued it, and when it ran. */
struct mg_work_mark {
    uint64_t correlation;  /* of the call that enqueued it, 0: not known */
    uint64_t ctx, stream;  /* numbers of whoever watches */
    uint64_t range, order; /* numbers of whoever watches, too */
    bool skip;             /* whoever watches does not want it */
    uint32_t device;       /* ordinal; the driver's */
    uint64_t replay;       /* of the executable graph it belongs to, from 0; UINT64_MAX: none */
    bool last;             /* of that replay: nothing comes behind it */
};
enum mg_work_direction {
    MG_DIRECTION_NONE,
    MG_HOST_TO_DEVICE,
    MG_DEVICE_TO_HOST,
    MG_DEVICE_TO_DEVICE,
    MG_HOST_TO_HOST
};
struct mg_work_span {
    bool copy;  /* else a memset */
    bool array; /* one side is an array: its address is 0 */
    enum mg_work_direction direction;
    uint64_t bytes, start_ns, end_ns;
    uint64_t dst, src, width, height, depth, dst_pitch, src_pitch, dst_slice,
        src_slice; /* depth planes of height rows of width bytes */
};
struct mg_driver_watch {
    /* On the thread of the call, under no lock of the driver. stream NULL: a default stream. The mark of a graph has a
     * replay, though not yet its number. */
    void (*enqueued)(void *ctx, void *stream, struct mg_work_mark *m);
    /* NULL where nobody asks, as `ended`. */
    void (*replayed)(const struct mg_work_mark *m); /* all of a graph's launch has run, or it was not taken; calls
                                                       nothing of the driver's */
    /* A copy or memset has run, on a thread of the driver; kernels have their notes. */
    void (*ended)(const struct mg_work_mark *m, const struct mg_work_span *s);
};

enum { MG_DEVICES_MAX = 16 };
struct mg_driver_config {
    size_t size;
    const char *device;          /* "emu" or "cpu" */
    const char *properties;      /* --as */
    const char *properties_path; /* file of recorded properties, NULL: built in */
    uint64_t time_limit_ns;
    uint32_t workers;
    uint32_t devices; /* how many the program finds, at most MG_DEVICES_MAX; 0: one */
    bool count_positions;
    bool no_contract;                          /* as in mg_device_opts */
    bool overcommit;                           /* allocations may be larger than the machine's memory and swap */
    bool check;                                /* --check: as in mg_device_opts; and no read strays */
    void (*say)(const char *line);             /* one line of chatter for the user (stderr) */
    const struct mg_driver_children *children; /* may be NULL */
    const struct mg_driver_watch *watch;       /* may be NULL */
    const struct mg_device_ops *ops;           /* NULL: the device named above */
    bool (*wants_busy)(void);                  /* does this launch tell its busy_ns? May be NULL */
};
/* Once, before the first entry is called. Cheap: devices open at cuInit. */
void mg_driver_configure(const struct mg_driver_config *c);

struct mg_launch_done { /* what the driver tells when a launch has ended */
    uint64_t start_ns, end_ns;
    uint64_t busy_ns;        /* as in mg_launch_stats; 0: not measured */
    struct mg_fault fault;   /* kind NONE when complete */
    int cuda_error;          /* 0 when complete */
    bool others;             /* of a graph's node: it is running again (another executable); one of these comes later */
    bool schedule_dependent; /* as in mg_launch_stats */
    const struct mg_stray *strays;
    uint32_t n_strays; /* for the time of the call */
    const struct mg_finding *findings;
    uint32_t n_findings; /* likewise */
    const struct mg_unseen *unseen;
    uint32_t n_unseen; /* likewise */
    struct mg_work_mark mark;
    uint64_t uncertainty_ns; /* of both times */
};
typedef void (*mg_launch_done_fn)(void *user, const struct mg_launch_done *done);
/* The next kernel launch that this thread makes (any form; captured launches keep the note in
 * their graph node and call it at every replay) calls fn once it has ended, on a thread of the
 * driver, before any later work of that stream begins. If the launch is rejected the note is
 * dropped without a call. */
void mg_driver_note_next_launch(mg_launch_done_fn fn, void *user);
/* The same for a graph node, made explicitly or by capture: drop is called exactly once, when nothing
 * (node, copy of it, executable graph, replay) can call fn any more, also when the node is not made. It
 * may run under the driver's lock: it calls no driver entry and takes no lock. */
void mg_driver_note_next_node(mg_launch_done_fn fn, void *user, void (*drop)(void *user));

/* Of a CUfunction or CUkernel of our driver. */
struct mg_dkernel *mg_driver_kernel(void *function);
/* Loads a twin's module, which is the driver's from now on, into the current context. Launch limits of the twin are
 * judged with the figures of `native`. *twin: its kernel of this name. */
cu_result mg_driver_twin_open(struct mg_module *ir, const char *name, void *native, void **twin);
/* Unloads a twin's module, which is loaded for it alone; waits for nothing. False: work of its context is in flight. */
bool mg_driver_twin_close(void *twin);
/* IR of the module instance behind a function; owner: the instance. */
const struct mg_module *mg_driver_module(void *function);
/* False: the register count was read from embedded machine code. */
bool mg_driver_registers_estimated(void *function);
/* Value of a function's address inside the module instance that `function` belongs to. */
uint64_t mg_driver_function_address(void *function, const char *name);
/* Address of a module-scope variable of the instance that `function` belongs to, any linkage. */
bool mg_driver_global_address(void *function, const char *name, uint64_t *address, uint64_t *bytes);
/* The allocation a device pointer lies in (dense id, offset): how profiles store pointer arguments. */
bool mg_driver_allocation(uint64_t address, uint64_t *id, uint64_t *offset, uint64_t *bytes);
/* Witness counts of the module instance behind a function (device count_positions). */
void mg_driver_positions(void *function,
                         void (*fn)(void *user, mg_id func, mg_id node, uint64_t threads, uint64_t warps), void *user);
/* Waits until every stream is idle; called at process exit by inject before the store closes. */
void mg_driver_drain(uint64_t timeout_ns);

#endif
