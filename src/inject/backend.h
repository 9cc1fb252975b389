/* What stands behind the slots: our own driver (backend_own.c) or NVIDIA's (nvidia/backend.c). */
#ifndef MG_INJECT_BACKEND_H
#define MG_INJECT_BACKEND_H

#include "abi/cu.h"
#include "driver/driver.h"
#include "inject/config.h"
#include "store/reason.h"

struct mg_block_mem;
struct mg_inst;
struct mg_run;
struct mg_shape;
struct mg_call;
struct mg_twin;
struct mg_body;
struct mg_variant;

/* What channels (channel.c) need of a device; `where`: its memory, of one context. */
struct mg_channel_io {
    bool in_place; /* the host reads what kernels write where it is */
    void (*size)(
        void *where, uint32_t *rings,
        uint32_t *pages); /* rings: a power of two, for every multiprocessor one; pages: more than warps it holds */
    void *(*where)(void); /* of the current context; NULL: none */
    uint64_t (*memory)(void *where, size_t bytes);                    /* in the current context; 0: none left */
    void *(*host)(void *where, size_t bytes);                         /* kernels have it at the same address */
    bool (*read)(void *where, void *to, uint64_t from, size_t bytes); /* these wait, for that alone */
    bool (*begin_read)(void *where, void *to, uint64_t from,
                       size_t bytes); /* many at once, to memory of host(); NULL: in place */
    bool (*end_reads)(void *where);
    bool (*write)(void *where, uint64_t to, const void *data, size_t bytes);
    bool (*is_of)(void *where, void *ctx, int device); /* ctx NULL: the device's primary one */
    bool (*is_quiet)(void *where);                     /* every launch and replay of a twin there has ended */
    void (*enter)(void *where);                        /* this thread of ours calls the others there; NULL: it may */
};

/* What a backend can do beyond what all can. */
enum mg_backend_caps {
    MG_BACKEND_HARDWARE = 1,    /* code runs on real multiprocessors, as machine code that NVIDIA's driver makes */
    MG_BACKEND_TELLS_ENDS = 2,  /* note, note_node: the driver calls when a launch has ended; else send sees to that */
    MG_BACKEND_ALLOCATIONS = 4, /* allocation(): it knows what the program has allocated */
    MG_BACKEND_CHILDREN = 8,    /* launches that kernels make are seen */
    MG_BACKEND_TAKES_IR = 16,   /* load takes the variant's module; else its text */
    MG_BACKEND_COMPILES_APART = 32,  /* compile: before the load, on any number of threads at once */
    MG_BACKEND_LOOKS = 64,           /* a thread of its own calls mg_frames_look now and then */
    MG_BACKEND_ENDS_AT_RELEASE = 128 /* every release of a primary context counts as its end, not the last alone */
};

/* Puts words at an offset of a launch's context block, before it runs. */
typedef void (*mg_write_fn)(struct mg_run *r, uint64_t offset, const uint64_t *words, uint32_t n);

/* Everything that differs between our own driver and NVIDIA's. No member is NULL: what a backend does not name is
 * MG_BACKEND_DEFAULTS's, which does nothing or knows nothing. */
struct mg_backend {
    unsigned caps;                                  /* enum mg_backend_caps */
    const char *(*kind)(const struct mg_config *c); /* "nvidia" "cpu" "emu": goes into the profile */
    bool (*open)(const struct mg_config *c);        /* says why not */
    void *(*symbol)(const char *name);              /* NULL: the driver lacks it */
    const struct mg_channel_io *channel;

    /* The application's images. */
    bool (*global)(void *function, const char *name, uint64_t *address);
    uint64_t (*function_address)(struct mg_body *b, const char *name); /* in the app's image; 0: not known */
    bool (*registers_estimated)(void *function);
    bool (*allocation)(uint64_t address, uint64_t *id, uint64_t *offset, uint64_t *bytes);
    const struct mg_module *(*module)(void *function); /* linked IR behind a function, or NULL */
    void (*positions)(void *function, void (*fn)(void *user, mg_id func, mg_id node, uint64_t threads, uint64_t warps),
                      void *user);

    /* Twins. */
    void (*adapt)(struct mg_twin *t); /* what the device asks of a twin's code */
    uint64_t (*table)(struct mg_body *b, const uint64_t *values,
                      uint32_t n);         /* addresses onto the device; 0: no memory */
    bool (*known)(struct mg_body *b);      /* reads the constants that launches bring along */
    void (*compile)(struct mg_body *b);    /* its text is there */
    bool (*is_for_any)(struct mg_body *b); /* is its text to be made for any launch, not for the one that asked? */
    void (*ahead)(struct mg_body *b);      /* it is wanted: others of its image may be soon */
    bool (*may_load)(struct mg_body *b,
                     const struct mg_shape *s); /* now, without waiting for the application's work? */
    bool (*load)(struct mg_body *b, void **twin, char *why, size_t room); /* in the current context */
    bool (*unload)(struct mg_body *b); /* all that it has on the device; false: not now, something may use it */
    enum mg_reason (*why_not)(
        struct mg_body *b,
        const struct mg_shape *s); /* why this geometry asks for the native code; none: it does not */
    /* With which as many of its CTAs fit at once as natively (0: not known); must: it may need that. */
    uint32_t (*most_registers)(const struct mg_inst *i, const struct mg_shape *s, bool *must);

    /* Launches. */
    struct mg_block_mem *(*block_take)(
        struct mg_run *r); /* a context block with its counters, zeroed; NULL: no memory */
    void (*block_give)(struct mg_run *r, struct mg_block_mem *m);
    mg_write_fn write;
    /* The launch's context block while its kernel runs, copied beside the application's work. */
    bool (*peek)(const struct mg_run *r, uint64_t offset, uint64_t *words, uint32_t n);
    void (*poke)(const struct mg_run *r, uint64_t offset, uint64_t word);
    /* The next launch of this thread calls fn when it has ended. */
    void (*note)(mg_launch_done_fn fn, void *user);
    /* The same for a graph node: drop is called once nothing can call fn any more. */
    void (*note_node)(mg_launch_done_fn fn, void *user, void (*drop)(void *user));
    /* Makes the driver's call, of the twin where the run has a block, and sees to what follows when it was taken. */
    cu_result (*send)(const struct mg_call *c, struct mg_run *r, void **params, void **extra);
    /* The driver has taken a node of a graph, or x: changed one of an executable graph. The run is the backend's now.
     */
    void (*node_taken)(struct mg_run *r, cu_graph_exec x, cu_node node);
    void (*graph_stays)(cu_graph g); /* it becomes part of another */
    /* A node of an executable graph was changed that is no kernel. */
    void (*node_changed)(cu_graph_exec x, cu_node node, const struct cu_node_params *p);

    /* Ends. */
    void (*drain)(uint64_t timeout_ns);
    void (*collect)(void);                                     /* counts of what has ended, on this thread */
    void (*flush)(uint64_t timeout_ns);                        /* what has ended; for signal handlers, too */
    void (*context_ends)(void *ctx, int device);               /* ctx NULL: the device's primary one */
    void (*context_ended)(void *ctx, int device, bool surely); /* not surely: others may hold it */
};
extern const struct mg_backend mg_backend_own, mg_backend_nvidia;

/* backend.c */
#define MG_BACKEND_DEFAULTS                                                                                            \
    .registers_estimated = mg_backend_no_estimate, .allocation = mg_backend_no_allocation,                             \
    .module = mg_backend_no_module, .positions = mg_backend_no_positions, .adapt = mg_backend_no_adapt,                \
    .known = mg_backend_no_constants, .compile = mg_backend_no_compile, .is_for_any = mg_backend_for_one,              \
    .ahead = mg_backend_no_compile, .may_load = mg_backend_any_time, .why_not = mg_backend_any_shape,                  \
    .most_registers = mg_backend_any_registers, .note = mg_backend_no_note, .note_node = mg_backend_no_note_node,      \
    .graph_stays = mg_backend_no_graph, .node_changed = mg_backend_no_change, .collect = mg_backend_no_collect,        \
    .flush = mg_backend_no_flush, .context_ended = mg_backend_no_context
bool mg_backend_no_estimate(void *function);
bool mg_backend_no_allocation(uint64_t address, uint64_t *id, uint64_t *offset, uint64_t *bytes);
const struct mg_module *mg_backend_no_module(void *function);
void mg_backend_no_positions(void *function,
                             void (*fn)(void *user, mg_id func, mg_id node, uint64_t threads, uint64_t warps),
                             void *user);
void mg_backend_no_adapt(struct mg_twin *t);
bool mg_backend_no_constants(struct mg_body *b);
void mg_backend_no_compile(struct mg_body *b);
bool mg_backend_for_one(struct mg_body *b);
bool mg_backend_any_time(struct mg_body *b, const struct mg_shape *s);
enum mg_reason mg_backend_any_shape(struct mg_body *b, const struct mg_shape *s);
uint32_t mg_backend_any_registers(const struct mg_inst *i, const struct mg_shape *s, bool *must);
void mg_backend_no_note(mg_launch_done_fn fn, void *user);
void mg_backend_no_note_node(mg_launch_done_fn fn, void *user, void (*drop)(void *user));
void mg_backend_no_graph(cu_graph g);
void mg_backend_no_change(cu_graph_exec x, cu_node node, const struct cu_node_params *p);
void mg_backend_no_collect(void);
void mg_backend_no_flush(uint64_t timeout_ns);
void mg_backend_no_context(void *ctx, int device, bool surely);

#endif
