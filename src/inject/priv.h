/* What the files of inject/ share.
 *
 *   exported cu* ── jump ──► hook (one of hooks.def) ── MG_REAL(cu*) ──► slot ──► backend
 *        └───────────────── jump ─────────────────────────────────────────┘    own driver, or NVIDIA's
 *
 * Rules of this folder: the guard first (mg_inside), the driver's result returned unchanged, pass
 * through on any doubt, no lock held across a call that the application's code may be under,
 * nothing printed but one line through mg_session_say.
 */
#ifndef MG_INJECT_PRIV_H
#define MG_INJECT_PRIV_H

#include <pthread.h>

#include "margay/control.h"
#include "abi/cu.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"
#include "driver/driver.h"
#include "image/image.h"
#include "inject/config.h"
#include "store/store.h"
#include "tool/host.h"
#include "tool/layout.h"

/* ---- entries and slots (slots.c, generated thunks) ------------------------------------------- */

enum mg_entry {
#define ENTRY(name, base, since, per_thread) MG_FN_##name,
#include "abi/entries.def"
#undef ENTRY
    MG_FN_COUNT
};
extern void *mg_slots[MG_FN_COUNT];             /* where a call goes in the end */
extern void *const mg_hook_table[MG_FN_COUNT];  /* our hook or NULL */
extern void *const mg_missing_table[MG_FN_COUNT]; /* says the name once, returns NOT_SUPPORTED */

/* Defines a hook: MG_HOOK(cuInit, unsigned flags) { ... } */
#define MG_HOOK(name, ...)                          \
    cu_result mg_hook_##name(__VA_ARGS__);          \
    cu_result mg_hook_##name(__VA_ARGS__)
/* The driver's function behind a hooked entry, and behind any other with its type given. */
#define MG_REAL(name) ((__typeof__(&mg_hook_##name))mg_slots[MG_FN_##name])
#define MG_REAL_AS(name, ...) ((cu_result(*)(__VA_ARGS__))mg_slots[MG_FN_##name])
/* Reads the configuration, opens the backend and fills the slots, once. */
void mg_inject_ready(void);
cu_result mg_inject_missing(unsigned entry);
/* Entry whose slot holds this address, or -1. */
int mg_slot_find(const void *address);

/* ---- functions of libraries (preload.c, nvrtc.c) ------------------------------------------------ */

/* dlsym of the C library, as called by this library. */
void *mg_real_symbol(void *handle, const char *name);
/* The C library's own function, past everybody who stands in for it; NULL: not found. */
void *mg_libc_symbol(const char *name);
/* What a program gets that asked for nvrtcGetCUBIN and would have got `real`; NULL: just that. */
void *mg_nvrtc_symbol(void *real);
/* The same for the functions of nvJitLink that nvjitlink.c stands in for. */
void *mg_nvjitlink_symbol(const char *name, void *real);

/* ---- backends --------------------------------------------------------------------------------- */

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
    void (*twin)(void *twin, void *native, const uint32_t *line_of, uint32_t n_lines);
    void (*positions)(void *function, void (*fn)(void *user, mg_id func, mg_id node, uint64_t threads, uint64_t warps), void *user);
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
    bool (*load)(struct mg_body *b, void **twin, char *why, size_t room);
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

/* The parts of NVIDIA's: gpu_twin.c, gpu_run.c. */
void mg_gpu_adapt(struct mg_twin *t);
void mg_gpu_compile(struct mg_body *b);
bool mg_gpu_unload(struct mg_body *b);
bool mg_gpu_global(void *function, const char *name, uint64_t *address);
uint64_t mg_gpu_function_address(struct mg_body *b, const char *name);
uint64_t mg_gpu_table(struct mg_body *b, const uint64_t *values, uint32_t n);
bool mg_gpu_known_fill(struct mg_body *b);
bool mg_gpu_may_load(struct mg_body *b, const struct mg_shape *s);
bool mg_gpu_load(struct mg_body *b, void **twin, char *why, size_t room);
const char *mg_gpu_why_not(struct mg_body *b, const struct mg_shape *s);
uint32_t mg_gpu_most_registers(const struct mg_inst *i, const struct mg_shape *s, bool *must);
bool mg_gpu_take(struct mg_run *r);
void mg_gpu_give(struct mg_run *r);
void mg_gpu_write(struct mg_run *r, uint64_t offset, const uint64_t *words, uint32_t n);
bool mg_gpu_peek(const struct mg_run *r, uint64_t offset, uint64_t *words, uint32_t n);
void mg_gpu_poke(const struct mg_run *r, uint64_t offset, uint64_t word);
cu_result mg_gpu_send(const struct mg_call *c, struct mg_run *r, void **params, void **extra);
/* gpu_graph.c: the run of a node that the driver took (it is ours from now on); the same for a node of an
 * executable graph. */
void mg_gpu_node_add(struct mg_run *r);
void mg_gpu_exec_set(cu_graph_exec x, cu_node node, struct mg_run *r);
void mg_gpu_graph_stays(cu_graph g); /* it becomes part of another: its nodes are kept */
void mg_gpu_graph_pass(void);  /* hands over what replays counted; on the thread that drains */
/* gpu_run.c: tells the store of the launches taken since the last time. */
void mg_gpu_announce(void);

/* ---- the session (session.c) ------------------------------------------------------------------- */

#define MG_MAX_USES 32
struct mg_use { /* a tool of the session (tools.c) */
    const struct mg_tool *tool;
    void *conf;
    char *name, *args, *path;        /* path: of its shared object, NULL: built in */
    uint32_t store_id;
    uint32_t one_of;                 /* launches of a kernel it looks at one of; 1: at all */
};
struct mg_session {
    struct mg_config config;
    const struct mg_backend *backend;
    struct mg_store *store;          /* NULL: nothing is recorded */
    struct mg_use uses[MG_MAX_USES]; /* tools; only ever added to */
    uint32_t n_uses;
    const char *cannot;              /* why nothing can be instrumented; NULL: it can */
    bool active;                     /* launches are looked at */
    uint32_t pid;                    /* of the process that opened the profile */
    uint64_t start_ns;               /* mg_now_ns at the first CUDA call */
    uint32_t sm;                     /* 90 */
    pthread_mutex_t lock;            /* the maps of images.c, kernels.c and streams.c */
    pthread_rwlock_t closing;        /* read: a launch or its end talks to the store; write: the session ends */
    uint32_t generation;             /* grows when a context dies: twins loaded before are dead */
    struct { uint64_t parse, analyse, instrument, print, jit, load; } ns; /* for --stats; under the lock of twin.c, jit atomic */
    uint32_t n_twins;                /* texts made */
    uint64_t n_launches;             /* looked at so far, for --launches */
};
extern struct mg_session mg_session;
extern __thread int mg_inside; /* > 0: this thread is in a hook, or in a call that we make ourselves */

/* Tools (tools.c). The set that launches run with from now on; 0: native, for this reason. */
uint32_t mg_tools_active(const char **why);
bool mg_tools_any(void);      /* one that instruments was given */
void mg_tools_begin(void);    /* those of the configuration, and those that announced themselves */
/* One more, as -t names it; effective from the next launch. False: `why` says why not. */
bool mg_tools_add(const char *spec, char *why, size_t room);
void mg_tools_end(void);
const struct mg_tool_host *mg_tools_host(void); /* host.c */
void mg_objects_each(void (*fn)(const struct mg_host_object *o, void *user), void *user); /* objects.c */
uint32_t mg_tools_list(uint32_t set, struct mg_use *uses, uint32_t *at); /* of a set; at: number in the session */
void mg_tools_tell(struct mg_variant *v); /* to the store: what they placed; under the session's lock */
/* Fills the words of tools; per launch. */
bool mg_tools_words(const struct mg_run *r, uint64_t *words); /* false: nobody wants any */
void mg_host_variable(uint64_t at, uint64_t bytes);           /* a module's variable that is now known (host.c) */
void mg_tools_lists(struct mg_run *r, mg_write_fn write);     /* the same of their lists */
void mg_tools_running(const struct mg_run *r, uint32_t region, const uint64_t *list); /* the list of one that runs, for tool.read */
/* Cells of one launch, or of n replays since `before` was read (NULL: since they were 0). Their hash. */
uint64_t mg_tools_ended(const struct mg_run *r, uint64_t launch, const uint64_t *raw, const uint64_t *before, uint64_t replays, bool complete);

void mg_session_begin(void);  /* at cuInit, after the driver's: opens DIR */
void mg_session_end(void);    /* at process end; later calls pass straight through */
void mg_session_exit(int status); /* the same, when the status is known */
/* The process may end now, or become another program: what has ended so far goes to disk, with this
 * status (-1: none). When it does not end after all, recording goes on. May be called by a signal
 * handler; waits up to drain_ns for launches that run. */
void mg_session_leave(int status, uint64_t drain_ns);
/* One line on stderr, "margay: " in front; nothing with -q. */
void mg_session_say(const char *fmt, ...) MG_PRINTF(1, 2);
void mg_session_say_line(const char *line);
/* Does a kernel's name match a glob (mg_name_matches); without one every name does. */
bool mg_kernel_matches(const char *glob, const char *name);

/* ---- what was loaded (images.c) ------------------------------------------------------------------ */

struct mg_ptx { /* one PTX text of an image; owner: its image */
    char *text; size_t bytes;
    char id[33];
    unsigned max_registers;  /* what it was compiled with; 0: no cap */
    struct mg_module *m;     /* parsed when first needed */
    bool parsed, stored;
    char *why;               /* why m is NULL after parsing */
};
/* What one load call was given. The first with its texts has them, and the kernels' codes, for all others; it stays, with what
 * is the same whenever those texts are loaded again (text ids, codes with their numbers in the store), and gives back the rest
 * when nothing is loaded and nothing is in flight that came from them. */
struct mg_img {
    struct mg_img *first;    /* the same texts were loaded before: texts and codes are that one's; else NULL */
    uint32_t refs;           /* of a first: loaded images that share it, instances of its kernels; under the session's lock */
    bool spent;              /* of a first: refs came to 0 */
    struct mg_ptx *ptx; uint32_t n_ptx;
    bool linked;             /* made of relocatable parts: the driver's linked module is the text */
    uint32_t seen;           /* witness counts were taken of instances of generation seen - 1 */
    const char *why;         /* why there is no PTX */
    struct mg_module *whole; /* all texts linked, when no driver gives that */
    bool tried;              /* to link them */
    MG_VEC(struct mg_code *) codes;
};
void mg_img_unref(struct mg_img *first);
struct mg_img *mg_img_of(void *handle);        /* of a module or library handle, NULL when unknown */
const struct mg_module *mg_img_linked(struct mg_img *im); /* NULL: they do not link */
/* Calls fn for every text that was loaded, once each. */
void mg_img_each_ptx(void (*fn)(const struct mg_host_module *m, void *user), void *user);
struct mg_ptx *mg_img_parsed(struct mg_img *im, uint32_t ix); /* parses on first use */
void mg_eager_load(void *handle, struct mg_img *im, bool library); /* eager.c */

/* ---- kernels (kernels.c) --------------------------------------------------------------------------- */

enum mg_state { MG_STATE_NEW, MG_STATE_READY, MG_STATE_FAILED };

struct mg_code { /* one kernel of one image, the same for every context */
    struct mg_img *im;
    struct mg_ptx *ptx;          /* where it was found, NULL: nowhere */
    char *name;
    const struct mg_module *m;   /* borrowed: ptx->m or the driver's linked module */
    mg_id kernel;                /* in m; 0: not found */
    uint32_t store_id;           /* UINT32_MAX: not told to the store yet */
    bool sites_stored;           /* else it ran native so far */
    enum mg_state state;         /* READY: it can have twins */
    char *reason;                /* FAILED: why */
    uint16_t ptx_sm;             /* target of its PTX; 0: not parsed yet */
    uint16_t native_sm;          /* virtual architecture that the native machine code was made from; 0: not known */
    bool launches;               /* FAILED because it launches kernels itself: nobody counts those */
    bool no_ptx;                 /* FAILED because there is nothing to instrument */
    bool located;                /* ptx was looked for */
    struct mg_sites *sites;
    struct mg_variant *variants; /* newest first; only ever added to, under the lock of twin.c */
    bool told[MG_MAX_USES];      /* the store knows what this tool placed in it; under the session's lock */
    struct mg_account *accounts[MG_MAX_USES];
    uint64_t drawn_from[MG_MAX_USES]; /* launches of which this tool's sample was drawn */
    uint64_t n_ended, n_timed, timed_ns; /* launches and replays, of them those whose time is known; for --stats */
    uint64_t other_calls;        /* thread calls that left for a function without a clone */
    bool verify_known; const char *verify_why; /* --verify: why it cannot run three times, NULL: it can */
    struct mg_reach *reach;      /* --verify: what it may write; NULL: anything */
};
struct mg_variant { /* text of a twin: the kernel with one set of tools */
    struct mg_variant *next;
    struct mg_code *code;
    uint32_t set;                /* bit u: with tool u of the session */
    enum mg_state state;         /* of what follows */
    char *reason;                /* FAILED: why */
    char *text;                  /* PTX */
    uint32_t *line_of; uint32_t n_lines; /* line of text -> line of the app's PTX */
    struct mg_layout layout;
    uint32_t uses[MG_MAX_USES];  /* region -> tool of the session */
    struct mg_twin_symbol *symbols; uint32_t n_symbols;
    uint32_t ctx_offset;
    struct mg_twin_known *known; uint32_t n_known, known_bytes, known_offset, known_values; /* as in struct mg_twin */
    uint64_t tools;              /* as the store numbers those that stand in the text */
    bool told;                   /* the store knows of all regions */
};
struct mg_block_mem { struct mg_block_mem *next; uint64_t at, words; void *slot; }; /* context block, then its counters */
struct mg_inst { /* a kernel as one handle in one context names it; freed when its module is unloaded and no run is left (leftover.c) */
    struct mg_code *code;
    uint32_t refs;               /* runs; atomic */
    struct mg_inst *next_left;   /* see leftover.c */
    void *handle, *ctx;
    void *function;              /* of the context, for queries; the handle itself when that is one */
    bool is_kernel;              /* a cu_kernel: one handle for all contexts */
    void *kernel;                /* the cu_kernel that the handle is, or stands for in this context; else NULL */
    struct mg_body *bodies;      /* newest first; only ever added to, under the session's lock */
    uint32_t generation;
    pthread_mutex_t describing;
    bool described;              /* the driver was asked for what follows, up to ctx_number */
    int32_t regs_native;
    uint32_t n_params, param_bytes;
    uint32_t *param_offsets, *param_sizes; /* NULL: not known */
    uint32_t static_shared;
    uint32_t device; uint64_t ctx_number;
    uint32_t n_timed;            /* launches that were timed on purpose */
    struct mg_legacy *legacy;    /* what the launch interface of CUDA 3 set on it, NULL: nothing */
};
struct mg_body { /* a variant as it is loaded in one context; owner: its instance */
    struct mg_body *next;
    struct mg_inst *inst;
    struct mg_variant *variant;
    enum mg_state state;
    char *reason;
    uint32_t threads;            /* of a CTA of the launch that asked first; 0: none has */
    uint32_t most_registers;     /* with which as many of its CTAs fit at once as natively; 0: not known */
    bool must_fit;               /* it may need that */
    void *twin;                  /* cu_function */
    uint64_t symbols;            /* table of addresses on the device */
    const uint64_t *known;       /* what the twin's parameter for constants holds; NULL: it has none */
    struct mg_block_mem *blocks; /* free ones; under the session's lock */
    struct mg_gpu_body *gpu;     /* of the NVIDIA backend, NULL: nothing yet */
    uint32_t n_nodes;            /* NVIDIA: nodes of graphs that run the twin */
};
void mg_legacy_free(struct mg_legacy *l); /* legacy.c */
/* Tells that a handle names a kernel of an image. */
void mg_kernel_note(void *handle, struct mg_img *im, const char *name, bool is_kernel);
/* A function handle of a kernel that is known. */
void mg_kernel_alias(void *function, void *kernel);
void mg_kernel_forget(struct mg_img *im);     /* its handles are dead */
/* The instance that a launch of this handle runs in the current context; NULL: unknown handle. */
struct mg_inst *mg_kernel_get(void *handle);
uint64_t mg_jit_spent(uint64_t ns); /* adds to the session's; returns what this thread spent so far */
struct mg_body *mg_kernel_of_twin(void *function); /* NULL: no twin of ours */
void mg_kernel_add_twin(struct mg_body *b);
/* The kernel with this set of tools, in this context; NULL: out of memory. */
struct mg_body *mg_kernel_body(struct mg_inst *i, uint32_t set);
void mg_kernel_drop_twin(struct mg_body *b);  /* it is unloaded */
void mg_kernel_spend(struct mg_code *c);      /* gives back what can be made again; under the session's lock, nothing uses it */
void mg_leftover_add(struct mg_inst *i);      /* its module is unloaded; under the session's lock */
/* Frees instances that are left over and unloads their twins, as far as nothing uses them: after a call of the
 * application's that waited for all work, as the unloading may. */
void mg_leftover_unload(void);
void mg_twin_settings(struct mg_inst *i, void *twin); /* what the application set on the kernel so far */
/* The part of making a twin that waits for nothing: its text, and machine code where the backend compiles apart. */
void mg_kernel_prepare(struct mg_body *b);
/* Makes the twin on first use; false: it cannot have one, b->reason says why. */
bool mg_kernel_twin(struct mg_body *b, const struct mg_shape *s);
/* Which PTX text the kernel is in, without parsing it: its identity in the profile. */
void mg_kernel_find(struct mg_inst *i);
void mg_kernel_each_twin(void *handle, void (*fn)(void *twin, void *user), void *user);
/* The set without those tools whose sample the next launch of the kernel is not in (tools.c). */
uint32_t mg_tools_draw(struct mg_code *c, uint32_t set);
bool mg_code_is_news(const struct mg_code *c); /* the store lacks something of it */
/* Tells the store of the kernel, and of what the tools of this body placed in it. */
uint32_t mg_kernel_store_id(struct mg_inst *i, struct mg_body *b);
/* Collects the witness counts of an image before it goes away. */
void mg_witness_collect(struct mg_img *im, void *function);
void mg_witness_end(void);                    /* of every image that ran: before its context dies */
/* Device time of all launches that have ended, those without a time taken as the others of their kernel. */
uint64_t mg_kernel_executed(uint64_t *ended, uint64_t *timed);
/* Tool result "uninstrumented_callees": {"kernel": thread calls}, when there were any. */
void mg_kernel_tell_other_calls(void);
/* Tool result "virtual_architecture": kernels whose machine code was made from PTX of another target. */
void mg_kernel_tell_other_ptx(void);

/* Tool result "findings", n of them; while the store is open. */
void mg_findings_tell(const char *tool, uint32_t n, void (*write)(struct mg_json *j, uint32_t i));
/* Reads that the device let pass (findings.c); both while the store is open. */
void mg_findings_add(uint64_t kernel, uint64_t launch, const struct mg_launch_done *d);
void mg_findings_write(void);
/* What --check found (checked.c), called by those. */
void mg_checked_add(uint64_t kernel, uint64_t launch, const struct mg_launch_done *d);
void mg_checked_write(void);
/* Registers that a kernel may read without having written them (unwritten.c): when its blocks are looked at, then
 * while the store is open. */
void mg_unwritten_look(const struct mg_code *c);
void mg_unwritten_write(bool last);

/* ---- launches (launch.c, run.c) ----------------------------------------------------------------------- */

struct mg_shape { /* geometry of a launch */
    unsigned grid[3], block[3], cluster[3], shared_bytes;
    cu_stream stream; /* NULL: the default stream */
    bool cooperative;
    bool per_thread;  /* stream NULL is the thread's own */
    bool programmatic; /* may begin before the kernel in front of it has ended */
    bool own_event;    /* a launch attribute that records an event of the application's */
};
/* One launch, or one kernel node of a graph that is launched many times. */
struct mg_run {
    uint32_t refs;               /* a launch: 1; a node: the call that makes it, and the driver's note */
    struct mg_run *next_dead;
    struct mg_inst *inst;
    struct mg_body *body;        /* NULL: native */
    struct mg_shape shape;
    enum mg_ran ran;
    const char *reason;          /* owner: the instance, or static */
    struct mg_block_mem *block;  /* NULL: native */
    struct mg_block_mem room;    /* NVIDIA: what block points to */
    bool node;                   /* of a graph: recorded at every replay */
    bool child;                  /* made by a kernel */
    uint64_t graph;              /* dense number, 0: direct */
    uint64_t number;             /* of launches that were looked at, as --launches counts */
    uint32_t kernel;             /* the store's */
    uint64_t launch;             /* the store's, direct launches only */
    uint32_t device;
    uint64_t stream, ctx;        /* dense numbers */
    struct mg_run *next;         /* NVIDIA: not yet told to the store, newest first */
    bool announced, over;        /* told to the store; ended already, nobody will tell */
    struct mg_found { uint64_t id, off; bool is; } *found; /* NVIDIA: by parameter, the allocation it points to; or NULL */
    struct mg_run_channel { struct mg_chan *chan; uint32_t number; } *channels; /* by region; NULL: none */
    const char *spoilt;          /* who drains: words around its counters are no longer what they were (MG_SPOILT_*) */
    struct mg_run *next_frame; bool framed; uint64_t read_ns; /* in flight with a frame (frames.c); when it was read last */
    uint64_t *values;            /* argument bytes laid out as the kernel sees them, 8-byte units; or NULL */
};
/* Decides and prepares: a run with its context block, or one that stays native with the reason.
 * params/extra as the driver call takes them. NULL: out of memory. */
struct mg_run *mg_run_new(struct mg_inst *i, const struct mg_shape *s, void **params, void **extra, bool node);
struct mg_run *mg_run_native(struct mg_run *r, const char *reason); /* the same launch again, native */
void mg_run_bury(void); /* runs of nodes that the driver has dropped */
void mg_run_free(struct mg_run *r);   /* of a node: when the driver has dropped it, too */
void mg_run_begin(struct mg_run *r);  /* before the driver's call: records it and leaves the note */
void mg_run_reject(struct mg_run *r); /* the driver did not take it */
void mg_run_accept(struct mg_run *r, bool node); /* it did; r of a launch may be gone already */
struct mg_counter_launch mg_run_launch(const struct mg_shape *s);
void mg_run_ended(struct mg_run *r, const struct mg_launch_done *d, uint64_t *raw); /* NVIDIA: host copy of the counters, or NULL */
void mg_run_announce(struct mg_run *r);
/* A launch that a kernel makes: as mg_run_new, told to the store; then its end. */
struct mg_run *mg_run_child(struct mg_inst *i, const struct mg_shape *s, void **extra);
void mg_run_child_ended(struct mg_run *r, const struct mg_launch_done *d);
extern const struct mg_driver_children mg_children; /* children.c */
/* raw: now; before: when told last. */
void mg_run_replays(const struct mg_run *r, uint64_t n, const struct mg_launch_done *d, uint64_t *raw, const uint64_t *before);
struct mg_run *mg_run_native_node(struct mg_inst *i, const struct mg_shape *s, void **params, void **extra);
void mg_run_record(struct mg_inst *i, const struct mg_shape *s, const char *reason); /* ran native, not prepared */
void mg_run_unknown(const char *reason); /* a launch of nobody knows what */
/* Channels of a launch's tools (channel.c). Else: why there are none. */
const char *mg_channels_take(struct mg_run *r);
void mg_channels_words(const struct mg_run *r, uint32_t region, uint64_t *words);
void mg_channels_give(struct mg_run *r);
void mg_channels_context_ends(void *ctx, int device); /* behind the backend's: its launches have ended */
void mg_channels_end(void);                           /* what is there goes to the tools */
/* Launches with frames, while they run (frames.c). look: every now and then; on NVIDIA's the thread that drains does. */
void mg_frames_add(struct mg_run *r);
void mg_frames_remove(struct mg_run *r); /* before its block is given back */
void mg_frames_look(void);
/* The user's choice (select.c). NULL: instrument it; else why not. `number`: of the launch. */
void mg_select_begin(void);
void mg_select_end(void);
void mg_select_name(uint32_t at, const char *name); /* tells the control page of a tool */
void mg_select_known(uint32_t at);                  /* it can be switched from now on */
/* In which tool the process is: `margay run` names it when the process dies there. */
void mg_select_opening(const char *path);
void mg_select_enter(uint32_t tool, enum mg_control_call call);
void mg_select_leave(uint32_t tool);
bool mg_select_is_on(uint32_t tool);
uint32_t mg_select_tools(void); /* those that are switched on; adds what somebody wishes first */
const char *mg_select_why_not(const struct mg_run *r, uint64_t number);
/* --repeat: what the next launch shall be, whatever was chosen. */
enum mg_select_turn { MG_TURN_ANY, MG_TURN_NATIVE, MG_TURN_TWIN };
void mg_select_force(enum mg_select_turn turn);
void mg_select_ended(const struct mg_run *r, uint64_t hash, bool timed, uint64_t time_ns); /* hash: of all that it counted */
/* Parameters for the twin: those given, the context block, values of constants if it takes any. `room` is the caller's. */
struct mg_params { void **params, **extra; void *heap; uint64_t ctx; const uint64_t *known; size_t size; void *extra_at[5]; void *params_at[64]; };
bool mg_params_extend(struct mg_params *p, const struct mg_run *r, void **params, void **extra);
void mg_params_release(struct mg_params *p);

/* ---- numbers (streams.c) ------------------------------------------------------------------------------ */

uint64_t mg_stream_number(cu_stream s); /* 0 = default stream */
uint64_t mg_ctx_number(void *ctx);
uint64_t mg_graph_number(void *graph);      /* of a graph or its executable, from 1 */
uint64_t mg_capture_number(cu_stream s);    /* of the capture that the stream is in, from 1 */

#endif
