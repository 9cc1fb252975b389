/* Everything that differs between our own driver (backend_own.c) and NVIDIA's (nvidia/backend.c). */
#ifndef MG_INJECT_BACKEND_H
#define MG_INJECT_BACKEND_H

#include "abi/cu.h"
#include "driver/driver.h"
#include "inject/config.h"

struct mg_inst;
struct mg_run;
struct mg_shape;
struct mg_call;
struct mg_twin;
struct mg_body;
struct mg_variant;

/* What channels (channel.c) need of a device; `where`: its memory, of one context. */
struct mg_channel_io {
    bool in_place;                           /* the host reads what kernels write where it is */
    void (*size)(void *where, uint32_t *rings, uint32_t *pages); /* rings: a power of two, for every multiprocessor one; pages: more than warps it holds */
    void *(*where)(void);                    /* of the current context; NULL: none */
    uint64_t (*memory)(void *where, size_t bytes); /* in the current context; 0: none left */
    void *(*host)(void *where, size_t bytes); /* kernels have it at the same address */
    bool (*read)(void *where, void *to, uint64_t from, size_t bytes); /* these wait, for that alone */
    bool (*begin_read)(void *where, void *to, uint64_t from, size_t bytes); /* many at once, to memory of host(); NULL: in place */
    bool (*end_reads)(void *where);
    bool (*write)(void *where, uint64_t to, const void *data, size_t bytes);
    bool (*is_of)(void *where, void *ctx, int device); /* ctx NULL: the device's primary one */
    void (*enter)(void *where);              /* this thread of ours calls the others there; NULL: it may */
};

/* Everything that differs between our own driver and NVIDIA's. Our own addresses context blocks like
 * the host does and tells when a launch has ended (alloc, free, note); NVIDIA's has the other half. */
/* Puts words at an offset of a launch's context block, before it runs. */
typedef void (*mg_write_fn)(struct mg_run *r, uint64_t offset, const uint64_t *words, uint32_t n);
struct mg_backend {
    const char *kind;                       /* "nvidia" "cpu" "emu": goes into the profile */
    bool (*open)(const struct mg_config *c); /* says why not */
    void *(*symbol)(const char *name);      /* NULL: the driver lacks it */
    uint64_t (*alloc)(size_t bytes);        /* zeroed block for contexts and counters; 0: none */
    void (*free)(uint64_t block);
    /* The next launch (or graph node) of this thread calls fn when it has ended; false: never will. */
    bool (*note)(mg_launch_done_fn fn, void *user);
    const struct mg_channel_io *channel;
    /* The same for a graph node: drop is called once nothing can call fn any more. NULL: as note, for ever. */
    bool (*note_node)(mg_launch_done_fn fn, void *user, void (*drop)(void *user));
    bool (*global)(void *function, const char *name, uint64_t *address);
    uint64_t (*function_address)(struct mg_body *b, const char *name); /* in the app's image; 0: not known */
    bool (*registers_estimated)(void *function); /* NULL: never */
    bool (*allocation)(uint64_t address, uint64_t *id, uint64_t *offset);
    const struct mg_module *(*module)(void *function); /* linked IR behind a function, or NULL */
    void (*positions)(void *function, void (*fn)(void *user, mg_id func, mg_id node, uint64_t threads, uint64_t warps), void *user);
    bool takes_ir;                          /* load takes the variant's module as it is; else its text */
    bool (*load)(struct mg_body *b, void **twin, char *why, size_t room); /* in the current context */
    bool (*unload)(struct mg_body *b);      /* all that it has on the device; false: not now, something may use it */
    void (*drain)(uint64_t timeout_ns);
    /* NVIDIA's alone from here (gpu_*.c); NULL elsewhere. */
    void (*flush)(uint64_t timeout_ns);                           /* what has ended; for signal handlers, too */
    void (*adapt)(struct mg_twin *t);                             /* what the device asks of a twin's code */
    uint64_t (*table)(struct mg_body *b, const uint64_t *values, uint32_t n); /* addresses onto the device */
    bool (*known)(struct mg_body *b);                             /* reads the constants that launches bring along */
    void (*compile)(struct mg_body *b);                           /* its text is there; any number of threads at once */
    /* May the twin be loaded now, without waiting for the application's work? */
    bool (*may_load)(struct mg_body *b, const struct mg_shape *s);
    const char *(*why_not)(struct mg_body *b, const struct mg_shape *s); /* this launch's geometry asks for the native code */
    /* With which as many of its CTAs fit at once as natively (0: not known); must: it may need that. */
    uint32_t (*most_registers)(const struct mg_inst *i, const struct mg_shape *s, bool *must);
    bool (*take)(struct mg_run *r);                               /* fills r->room; r->block is it then */
    void (*give)(struct mg_run *r);
    mg_write_fn write;
    /* The launch's context block while its kernel runs, copied beside the application's work. */
    bool (*peek)(const struct mg_run *r, uint64_t offset, uint64_t *words, uint32_t n);
    void (*poke)(const struct mg_run *r, uint64_t offset, uint64_t word);
    /* Makes the driver's call and sees to everything that follows it. */
    cu_result (*send)(const struct mg_call *c, struct mg_run *r, void **params, void **extra);
    void (*context_ends)(void *ctx, int device);                  /* ctx NULL: the device's primary one */
    void (*context_ended)(void *ctx, int device, bool surely);    /* not surely: others may hold it */
};
extern const struct mg_backend mg_backend_own, mg_backend_nvidia;

#endif
