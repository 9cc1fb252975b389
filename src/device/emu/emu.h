/* Emulator, private to this folder: decoded code, frames, warps, CTAs, workers.
 *
 *   module_load (load.c)      globals get addresses, initialisers are written
 *   decode*.c                 per kernel: every reachable function to a flat array of emu_op, blocks in
 *                             rank order, so that the address of an operation is its scheduling key
 *   launch.c                  workers take CTAs; a CTA is resumable and stays with its worker
 *   run.c                     runs one warp until it exits, waits or must give way
 *   sched.c                   sets of lanes, parking, warp-level and CTA barriers
 *   vec_*.c                   lane loops, compiled once per vector ISA (EMU_ISA, EMU_SUF)
 *
 * Straight operations are called as fn(op, regs, mask); what may change the set of running lanes
 * (branches, calls, barriers, .sync operations) is a control operation that ends a run of them.
 * A fault anywhere below run_cta() leaves by longjmp to the worker.
 */
#ifndef MG_DEVICE_EMU_EMU_H
#define MG_DEVICE_EMU_EMU_H

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "device/device.h"
#include "device/emu/operations.h"

#define EMU_LANES       32
#define EMU_MAX_WARPS   32 /* 1024 threads a CTA */
#define EMU_N_BARS      16
#define EMU_MAX_CLUSTER 16
#define EMU_MAX_DEPTH   4096 /* calls */

/* Progress (docs/schedule.md): a warp gives way after this much, where a back-edge costs 1, or
 * EMU_SPIN_COST when a load that may see another thread's store was executed since the last one. */
#define EMU_TURN_BUDGET 65536
#define EMU_SPIN_COST   256
/* A warp pauses that often where it enters a loop, so that the warps of a CTA start loops nearly in
 * step, as on hardware: programs with harmless-looking races were only ever seen that way. */
#define EMU_LOOP_PAUSES 64
#define EMU_BAR_PAUSES                                                                                                 \
    8 /* at least, after a CTA barrier, and the same for all: each phase of a kernel begins in step */

struct emu_frame;
struct emu_warp;
struct emu_cta;
struct emu_worker;
struct emu_launch;
struct emu_func;
struct emu_op;

enum emu_ctl { /* control operations */
               EMU_CTL_NONE,
               EMU_CTL_NEXT, /* block end, falls into target */
               EMU_CTL_LOOP, /* as NEXT, into a loop from outside: warps of a CTA enter it in turns */
               EMU_CTL_BRA,
               EMU_CTL_BRX,
               EMU_CTL_CALL,
               EMU_CTL_CALLI,
               EMU_CTL_BUILTIN, /* vprintf, malloc, free, __assertfail */
               EMU_CTL_RET,
               EMU_CTL_EXIT,
               EMU_CTL_TRAP,
               EMU_CTL_BAR,
               EMU_CTL_SYNC, /* .sync warp operation */
};

enum emu_sync {
    EMU_SYNC_WARP,
    EMU_SYNC_SHFL,
    EMU_SYNC_VOTE,
    EMU_SYNC_MATCH,
    EMU_SYNC_REDUX,
    EMU_SYNC_ELECT,   /* up to here compiled code does it itself (cpu_sync_has_code) */
    EMU_SYNC_MATRIX,  /* all lanes of the warp; ext: struct emu_matrix */
    EMU_SYNC_MBAR,    /* mbarrier.try_wait: parks until the phase is complete */
    EMU_SYNC_CLUSTER, /* barrier.cluster.wait */
    EMU_SYNC_WGMMA,   /* wgmma.wait_group */
};
enum emu_bar { EMU_BAR_SYNC, EMU_BAR_ARRIVE, EMU_BAR_RED };
enum emu_builtin {
    EMU_BUILTIN_NONE,
    EMU_BUILTIN_VPRINTF,
    EMU_BUILTIN_MALLOC,
    EMU_BUILTIN_FREE,
    EMU_BUILTIN_ASSERT,
    /* child.c */
    EMU_BUILTIN_CHILD_BUFFER,
    EMU_BUILTIN_CHILD_LAUNCH,
    EMU_BUILTIN_CHILD_COPY,
    EMU_BUILTIN_CHILD_FILL,
    EMU_BUILTIN_CHILD_STREAM,
    EMU_BUILTIN_CHILD_NOTHING,
    EMU_BUILTIN_CHILD_ERROR,
    EMU_BUILTIN_CHILD_TEXT,
    EMU_BUILTIN_CHILD_MALLOC,
    EMU_BUILTIN_CHILD_FREE,
    EMU_BUILTIN_CHILD_DEVICE,
    EMU_BUILTIN_SET_CONDITIONAL
};

struct emu_op {            /* owner: the code's arena */
    struct emu_alu a;      /* first: a.fn is what the run loop calls */
    emu_alu_fn real;       /* behind the guard wrapper */
    uint32_t guard;        /* offset of the predicate, 0: none */
    uint32_t guard_flip;   /* ~0 for @!p */
    int64_t off;           /* byte offset added to an address; or what the op needs */
    const uint32_t *slots; /* vector elements, branch or call lists */
    const struct emu_op *target, *fall;
    const void *ext; /* struct emu_call, const struct emu_op *const [] of a branch table, ... */
    uint32_t run;    /* straight operations from here to the next control operation */
    uint32_t insts;  /* PTX instructions from here to the end of that control operation */
    mg_id node;      /* 0: helper, not counted */
    uint32_t site;   /* --check: the instruction's place in emu_code.sites; 0: none */
    uint32_t cache;  /* index of the access's cached range in the worker */
    uint8_t ctl;     /* enum emu_ctl */
    uint8_t sub;     /* enum emu_sync, emu_bar, emu_builtin, atomic operation */
    uint8_t mode;    /* shfl up/down/bfly/idx, vote all/any/uni/ballot, ... */
    uint8_t type;    /* enum mg_type */
    uint8_t bytes;   /* of one memory element */
    uint8_t vec;     /* elements, 1 when scalar */
    uint8_t space;   /* enum mg_space */
    uint8_t flags;   /* enum emu_op_flags */
    uint8_t extra;   /* further instructions that this operation stands for */
    bool probe;      /* inserted (MG_NF_PROBE): may reach Margay's memory and words */
    uint8_t elem;    /* enum emu_elem, of loads and stores */
    uint16_t opcode; /* enum emu_opcode, or a row of arithmetic */
};
enum emu_order {
    EMU_ORDER_WEAK,
    EMU_ORDER_STRONG,
    EMU_ORDER_ACQUIRE,
    EMU_ORDER_RELEASE
}; /* mode of loads and stores */
enum emu_op_flags {
    EMU_OF_WRITES = 1,
    EMU_OF_READS = 2,
    EMU_OF_SYNC = 4,       /* may see other threads' stores while spinning: costs more at a back-edge */
    EMU_OF_BASE_W = 8,     /* address register is 32 bits wide */
    EMU_OF_BASE_NONE = 16, /* no address register */
    EMU_OF_WIDE = 64,      /* value registers are 64 bits wide */
    EMU_OF_CLUSTER = 128,  /* the address is one of shared::cluster */
    EMU_OF_WORDS = 32,     /* of a texture: texels of device memory by their number; s: coordinate, handle */
};

/* One parameter of a call: where it is here and there. */
struct emu_arg {
    uint8_t from_reg, to_reg, from_class, to_class;
    uint32_t from, to, bytes;
};
struct emu_call {
    struct emu_func *callee; /* direct */
    uint32_t n_in, n_out;
    struct emu_arg *in, *out; /* out: from callee to here */
    uint32_t target;          /* indirect: register offset */
    /* As written, for indirect calls: arguments here, matched against the callee's parameters. */
    struct emu_arg *actual_in, *actual_out;
};

/* Words of Margay's in shared and local memory (MG_NF_PROBE): the first address; where those of a CTA lie behind its
 * shared memory. */
#define EMU_OWN_WORDS 0x80000000u
static inline uint64_t emu_own_shared_at(uint64_t shared_bytes)
{
    return (shared_bytes + 63) & ~63ull;
}

/* Behind that there is room for idle lanes of a row that begins inside: vectors are stored whole, with what was there.
 */
#define EMU_SHARED_SLACK (8 * EMU_LANES)

#define EMU_MAX_CELLS (1u << 24)
struct emu_count {        /* one of a run of additions to cells */
    uint32_t cell, warps; /* warps: once for all lanes that are here together, not for each */
    uint32_t from;        /* what is added: a register's value, 0: n */
    uint64_t n;
};
/* What a request asks for: of memory `space`, so many bytes a lane, a power of 2 (isa/request.h). */
#define EMU_MOST_REQUESTED 128u
struct emu_request {
    uint32_t cell; /* the first of MG_RQ_COUNT */
    uint8_t bytes, space;
};
/* What values are carried. */
struct emu_carried {
    uint32_t cell;      /* the first of MG_CR_COUNT */
    uint8_t bits, kind; /* enum mg_carried_kind */
};
struct emu_const {
    uint32_t off;
    uint8_t cls;
    uint64_t lo, hi;
};
struct emu_sreg {
    uint32_t off;
    uint8_t sreg, comp;
};
struct emu_slot {
    uint32_t off;
    uint8_t cls;
}; /* a place in the frame */
struct emu_mark_of {
    mg_id reg;
    uint8_t bits;
}; /* --check: which register, how wide (64 for wider ones: all or nothing) */

struct emu_func { /* decoded function of one kernel; owner: struct emu_code */
    struct emu_code *code;
    struct mg_dmod *mod;
    mg_id id;
    struct emu_op *ops;
    uint32_t n_ops;
    const struct emu_op *entry;
    uint64_t number; /* no other function of the process has it */
    uint32_t frame_bytes;
    uint32_t own_local_at, own_local; /* words of ours: where in the frame, bytes a lane */
    struct emu_const *consts;
    uint32_t n_consts;
    struct emu_sreg *sregs;
    uint32_t n_sregs;
    uint32_t cc;
    uint32_t local_bytes;
    uint32_t stack_slot;           /* where alloca stood at entry, for the return; 0: the function has no alloca */
    struct emu_arg *params, *rets; /* `to` of params, `from` of rets */
    uint32_t n_params, n_rets;
    uint32_t first_site, n_sites; /* witness: counters of this function in the module's array */
    /* where the device has a compiler: all places of the frame by offset; for operation i, the
     * offsets that its instruction names begin at named[named_at[i]] and end where another's begin */
    struct emu_slot *slots;
    uint32_t n_slots;
    uint32_t *named, *named_at;
    struct emu_mark_of *marks;
    uint32_t n_marks;  /* --check: registers by number, from 1; n_marks 0: off */
    uint32_t *mark_at; /* --check: number of the register at an offset, by offset / 4 */
    bool decoded;
};

struct emu_site {
    const struct emu_func *fn;
    mg_id node;
    bool combines; /* an atomic that depends on what memory held: not an exch whose result is never read */
};
struct emu_code { /* a kernel ready to run */
    struct mg_arena arena;
    struct mg_dkernel *kernel;
    struct emu_func *entry;
    MG_VEC(struct emu_func *) funcs;
    struct mg_map by_id;     /* (module, function) -> emu_func */
    struct mg_map shared_at; /* var -> offset */
    uint32_t static_shared, shared_align, own_shared;
    uint32_t local_bytes;  /* per thread */
    uint32_t alloca_bytes; /* of these, at the end: what alloca hands out, from the top down */
    bool has_cells;
    uint32_t cells_param, n_cells; /* of the launch: cell 0 lies cells_off behind what this parameter holds */
    uint64_t cells_off;
    uint32_t n_caches;
    uint32_t next_cache; /* once ready: where functions that indirect calls bring in go on; 0 before */
    pthread_mutex_t kept_lock;
    struct emu_range *kept; /* n_caches: what operations hit last, valid while kept_epoch is mg_mem_epoch() */
    uint64_t kept_epoch;
    bool recursive, indirect, allocates;
    _Atomic bool in_order;           /* its CTAs wait for one another: they begin in the order of the grid */
    void *compiled;                  /* the device's compiler's own */
    MG_VEC(struct emu_site) sites;   /* --check: instructions that findings may name, from 1 */
    MG_VEC(struct mg_unseen) unseen; /* --check: instructions that are not looked at for undefined values */
    _Atomic uint8_t check_fine;      /* --check: cells of shared memory have 8 >> this bytes */
};

struct mg_dkernel {
    struct mg_dmod *mod;
    mg_id func;
    const char *name;
    pthread_mutex_t lock;
    struct emu_code *code;   /* NULL until first needed */
    struct mg_fault refusal; /* kind != NONE: decoding failed, for good */
    uint32_t n_params, param_bytes;
    uint32_t *param_offsets, *param_sizes;
    uint32_t static_shared, local_bytes, const_bytes, registers;
    bool sized;
};

/* Compiled code for kernels (device/cpu). The emulator is its base: any warp can go on there at any
 * operation, and compiled code takes over again where it has an entry. */
struct emu_set;
struct emu_compiler {
    void (*begin)(struct emu_launch *l); /* may set l->compiled */
    void (*end)(struct emu_launch *l);
    /* The picked set *s goes on in compiled code when there is some for its place: true, and what
     * the warp does next is in its sets, or in *s when *again. */
    bool (*enter)(struct emu_warp *w, struct emu_set *s, bool *again);
    bool (*is_entry)(const struct emu_launch *l, const struct emu_op *op, const struct emu_func *fn);
    void (*forget)(struct emu_code *c); /* before the code is freed */
    void (*worker_end)(struct emu_worker *wk);
    /* Runs CTAs *at .. end - 1, none of them started, one after the other. EMU_CTA_RAN: all have ended. Else *at is
     * the first that has not: EMU_CTA_NOT: it was not begun; EMU_CTA_GOES_ON: it is started now, and the
     * emulator goes on where compiled code stopped. */
    int (*cta)(struct emu_cta *c, uint64_t *at, uint64_t end);
};

struct emu_global {
    uint64_t address, bytes;
};
struct mg_dmod {
    struct mg_device *dev;
    struct mg_module *ir;
    uint64_t seq;
    struct emu_global *globals; /* by var id; address 0: not a module variable in memory */
    uint64_t functions;         /* address of function descriptors: one EMU_FUNC_STRIDE each */
    struct mg_dkernel *kernels;
    uint32_t n_kernels;
    _Atomic uint64_t *threads, *warps; /* witness, by node id; NULL when off */
    struct mg_dmod *next;
    struct mg_dmod *sharer; /* ring of those that have its managed variables, too; NULL: nobody has */
};
#define EMU_FUNC_STRIDE 16

struct mg_device {
    struct mg_device_opts opts;
    char *properties;
    enum emu_isa isa;
    uint32_t n_workers, n_cpus;
    uint32_t n_sms;
    uint64_t apart;       /* MARGAY_APART, for tests: lanes part and meet by chance, seeded; 0: docs/schedule.md */
    pthread_mutex_t lock; /* modules, heap, printf */
    struct mg_dmod *mods;
    uint64_t next_seq;
    uint64_t heap_used;
    struct mg_buf print;
    _Atomic(struct mg_observe_opts *) trace;
    _Atomic uint64_t launches;
    struct mg_map strays; /* (module, node) whose stray reads or findings were told, under lock */
    struct emu_pool *pool;
    _Atomic(struct emu_room *) *rooms;   /* by worker; NULL: in use, or none yet */
    const struct emu_compiler *compiler; /* NULL: none; set before modules are loaded */
    void *compiler_own;
};

/* ---- execution ------------------------------------------------------------------------------ */

struct emu_range {
    uint64_t lo, hi;
};
#define EMU_TEXELS(handle, n) ((handle) << 32 | (n)) /* hi of a fetch's range; handles have 21 bits, n has 31 */

struct emu_frame { /* one activation of a function for some lanes of a warp */
    struct emu_worker *wk;
    struct emu_warp *w;
    char *shared;
    uint64_t shared_bytes;
    const char *params;
    uint64_t param_bytes;
    uint64_t local_va, local_stride, local_bytes; /* of lane 0 of the warp; per thread */
    uint64_t local_at;                            /* where this activation's variables begin in each thread's stack */
    struct emu_frame *parent;
    const struct emu_op *call; /* in the parent */
    const struct emu_func *fn;
    uint32_t mask; /* lanes inside */
    uint32_t depth, seq;
    struct emu_frame *next, *next_of_warp;
    struct emu_shade *shade; /* --check: undefined registers; NULL: off */
    _Alignas(64) char regs[];
};
#define EMU_FRAME(r) ((struct emu_frame *)((r)-offsetof(struct emu_frame, regs)))

enum emu_state { EMU_READY, EMU_PARK_SYNC, EMU_PARK_BAR, EMU_PARK_MBAR, EMU_PARK_CLUSTER, EMU_PARK_WGMMA };
struct emu_set { /* lanes at one place */
    const struct emu_op *pc;
    struct emu_frame *frame;
    uint32_t mask;
    uint32_t turn;
    uint32_t need; /* PARK_SYNC: member mask; PARK_MBAR: the phase that must be over; PARK_WGMMA: how many wgmma others
                      must have issued */
    const uint64_t *word; /* PARK_MBAR: the barrier */
    uint8_t state;        /* enum emu_state */
    uint8_t bar;          /* PARK_BAR */
};

struct emu_warp {
    struct emu_cta *cta;
    struct emu_worker *wk;
    uint32_t ix;
    uint32_t live;
    uint32_t n_sets;
    int32_t budget;
    uint8_t suspect;  /* an operation with EMU_OF_SYNC ran since the last back-edge */
    uint8_t spun;     /* gave way while suspect */
    uint8_t pauses;   /* left: EMU_LOOP_PAUSES at the start, at least EMU_BAR_PAUSES after a barrier */
    uint8_t at_bar;   /* all live lanes wait at barrier at_bar - 1 */
    uint8_t polls;    /* some sets are parked at an mbarrier or the cluster's barrier */
    uint32_t arrived; /* lanes that have arrived at the cluster's barrier in its present phase */
    uint32_t wgmmas, wgmma_groups, wgmma_at[8]; /* issued, committed, issued at the last commits */
    uint32_t next_seq;
    uint64_t chance; /* state of random choices; 0: the schedule of docs/schedule.md */
    struct emu_frame *root, *pool /* free */, *all;
    struct emu_set sets[EMU_LANES];
    uint32_t tid[3][EMU_LANES];
    uint32_t alloca_used[EMU_LANES];
};

struct emu_barrier {
    uint32_t warps /* arrived, bit mask */, threads, expect /* 0: all */, red_count, red_and, red_or;
    bool waiting;
};

struct emu_cta {
    struct emu_launch *l;
    struct emu_worker *wk;
    struct emu_cta *next;
    uint32_t id[3];
    uint64_t linear;
    uint32_t n_threads, n_warps, n_live; /* n_live: warps */
    char *shared;
    uint64_t shared_bytes, shared_cap;
    char *local;
    uint64_t local_stride, local_cap;
    const struct emu_code *code; /* frames were built for it */
    struct emu_barrier bars[EMU_N_BARS];
    struct emu_warp *warps;
    uint32_t warps_cap;
    /* The CTAs of a cluster run together on one worker; the first of them stands for all in queues. */
    struct emu_cta **peers; /* by rank, this one included; owner: the first */
    uint32_t n_peers, rank;
    struct emu_cta *self[1];         /* peers of a CTA that is its own cluster */
    struct emu_check *check;         /* --check: what is known of its shared memory; NULL: off */
    struct emu_defined_cta *defined; /* --check: undefined bytes of its memory */
};

struct emu_worker { /* one thread working on one launch */
    struct emu_launch *l;
    struct mg_device *dev;
    uint32_t ix, home; /* home: the part of the grid it begins with */
    uint64_t epoch;
    struct emu_range *ranges;
    uint32_t n_ranges;
    uint64_t warp_insts, thread_insts;
    uint64_t *cells; /* what inserted code has counted */
    uint64_t *mosts; /* the greatest of what it found, by cell; NULL: nothing */
    uint32_t n_cells;
    struct emu_cta *cta;        /* running */
    struct emu_cta *idle;       /* for reuse */
    bool rotated;               /* a turn ended while other sets of the warp were ready */
    struct emu_room *room;      /* memory kept for the next launch */
    void *compiled;             /* the compiler's own */
    struct emu_findings *found; /* --check */
    struct mg_map kept; /* --check: bytes of shared and local memory (their shadow) -> origin of what was stored there
                           undefined */
    struct mg_map origins,
        stores; /* --check: origin -> address first seen; site -> number of a store of undefined values */
    jmp_buf out;
};

struct emu_launch {
    struct mg_device *dev;
    const struct mg_launch *l;
    struct emu_code *code;
    char *params;
    uint32_t param_bytes;
    uint64_t grid_workspace; /* cooperative launches: what grid.sync() of cooperative groups counts in */
    uint64_t n_ctas /* units of work: CTAs, or clusters of them */, start_ns, deadline_ns, id;
    struct mg_dim3 cluster;
    uint32_t cluster_ctas; /* 1,1,1 and 1 when none was asked for */
    uint32_t shared_bytes, dyn_at;
    struct emu_span *spans;
    uint32_t n_spans; /* of the grid, in order (share.h) */
    _Atomic uint32_t joined, working;
    int cpu; /* where it was launched */
    _Atomic bool stop, rotated, in_order /* a CTA that waits for others has been seen */;
    pthread_mutex_t lock;
    struct mg_fault *fault;
    _Atomic uint64_t warp_insts, thread_insts, busy_ns;
    const struct mg_observe_opts *trace;
    uint32_t n_sites;
    bool observe;
    void *compiled;                 /* code for this launch; NULL: none */
    MG_VEC(struct mg_stray) strays; /* under lock */
    struct emu_child *children;
    uint64_t n_children; /* launched so far, latest first; under lock */
    _Atomic int child_error;
    _Atomic uint32_t n_handles;
    struct emu_findings *found; /* --check, under lock */
    struct emu_race *race;      /* --check: races on global memory */
};

enum emu_stop { EMU_STOP_DONE, EMU_STOP_WAIT, EMU_STOP_YIELD };

/* run.c, observe.c */
enum emu_stop emu_warp_run(struct emu_warp *w);
void emu_exit_lanes(struct emu_warp *w, struct emu_frame *f, uint32_t mask); /* leave f and all that called it */
void emu_observe(struct emu_warp *w, const struct emu_op *op, char *regs, uint32_t mask);
void emu_observe_ctl(struct emu_warp *w, const struct emu_op *op, char *regs, uint32_t mask, uint32_t taken);
void emu_positions(struct mg_dmod *mod, void (*fn)(void *, mg_id, mg_id, uint64_t, uint64_t), void *user);

/* sched.c */
void emu_set_add(struct emu_warp *w, const struct emu_op *pc, struct emu_frame *f, uint32_t mask, uint32_t turn);
bool emu_set_pick(struct emu_warp *w, struct emu_set *out);
uint32_t emu_chance(struct emu_warp *w); /* MARGAY_APART: the warp's next random number */
/* Lanes of a set reach a .sync operation: true when all of them may go on at once; *mask = those
 * that go on, the others are parked. */
uint32_t emu_sync_arrive(struct emu_warp *w, const struct emu_op *op, struct emu_frame *f, uint32_t mask,
                         uint32_t turn);
bool emu_bar_arrive(struct emu_warp *w, const struct emu_op *op, struct emu_frame *f, uint32_t mask);
void emu_lanes_exit(struct emu_warp *w, uint32_t mask);
void emu_cta_bar_check(struct emu_cta *c);
struct emu_frame *emu_frame_push(struct emu_warp *w, struct emu_func *fn, struct emu_frame *parent,
                                 const struct emu_op *call, uint32_t mask);
void emu_frame_drop(struct emu_frame *f);
void emu_frame_fill_sregs(struct emu_frame *f);
unsigned emu_clock_shift(uint64_t sreg); /* misc.c: to the half of the clock that the register holds */
void emu_deadlock(struct emu_cta *c) MG_NORETURN;

/* cluster.c: waiting that ends when memory or the cluster says so, and the cluster's shared memory */
uint32_t emu_wait_arrive(struct emu_warp *w, const struct emu_op *op, struct emu_frame *f, uint32_t mask,
                         uint32_t turn);
bool emu_wait_poll(struct emu_warp *w, bool give_up); /* true: some lanes go on; give_up: try_wait says no */
void emu_cluster_check(struct emu_cta *c);            /* the barrier, after lanes arrived or left */
void emu_cluster_cvta(const struct emu_alu *o, char *regs, uint32_t mask);
bool emu_in_cluster(const struct emu_frame *f, uint64_t address, uint32_t bytes); /* generic, any CTA's shared memory */
#define EMU_CLUSTER_SHIFT 24 /* of a shared::cluster address: rank + 1, 0 for the CTA's own */

/* warpops.c */
struct emu_part {
    const struct emu_op *op;
    char *regs;
    uint32_t mask;
};
bool emu_shfl_source(unsigned mode, uint32_t lane, uint32_t b, uint32_t c, uint32_t *from);
void emu_sync_exec(const struct emu_part *parts, uint32_t n, uint32_t lanes);
enum emu_opcode emu_warpop_find(const struct mg_form *f,
                                struct emu_op *op); /* EMU_OP_none: a .sync form (op->ctl), or none at all */

/* launch.c */
enum { EMU_CTA_NOT, EMU_CTA_RAN, EMU_CTA_GOES_ON };
bool emu_cta_start(struct emu_cta *c, uint64_t linear);
void emu_launch_run(struct mg_device *dev, const struct mg_launch *l, struct mg_launch_stats *stats,
                    struct mg_fault *fault); /* child.c: with all it launches */
struct emu_kids;
void emu_grid_run(struct mg_device *dev, const struct mg_launch *l, struct mg_launch_stats *stats,
                  struct mg_fault *fault, struct emu_kids *kids); /* one grid */
void emu_pool_free(struct mg_device *dev);
void emu_room_put(struct mg_device *dev, uint32_t worker,
                  struct emu_room *r); /* for its next launch; what lay there is freed */

/* fault.c */
void emu_fault(struct emu_frame *f, const struct emu_op *op, enum mg_fault_kind kind, int lane, uint64_t address,
               uint32_t bytes, const char *fmt, ...) MG_NORETURN MG_PRINTF(7, 8);
void emu_fault_access(struct emu_frame *f, const struct emu_op *op, int lane, uint64_t address,
                      uint32_t bytes) MG_NORETURN;
/* fault_buffer.c: 1 + the number of the one argument in whose buffer, `out`, the access was meant to be, or (NULL) that
 * is the null pointer which it went through; 0: there is none, or several. */
struct mg_alloc;
uint32_t emu_fault_argument(const struct emu_frame *f, mg_id node, struct mg_alloc *out);
/* A read just before or behind an allocation: true when it may pass; it is on record then. beside: where others may,
 * too; emu_stray_again puts so many of the operation on record. */
bool emu_stray(struct emu_frame *f, const struct emu_op *op, int lane, uint64_t address, uint32_t bytes,
               struct emu_range *beside);
void emu_stray_again(struct emu_frame *f, const struct emu_op *op, uint32_t times);
const char *emu_source_of(const struct mg_module *m, mg_id func, mg_id node,
                          uint32_t *line); /* file and line; NULL and 0 without */
void emu_place(const struct mg_module *m, mg_id func, mg_id node, struct mg_buf *out); /* "PTX line 12, x.cu:3" */
void emu_variable_words(const struct mg_module *m, const struct mg_var *v, char *out, size_t n);
struct mg_alloc;
/* The variable of a module that the allocation is; false: it is none. Takes dev->lock. */
bool emu_variable_name(struct mg_device *dev, const struct mg_alloc *a, char *out, size_t n);

/* mem_check.c: slow paths of accesses. Return when the access is fine, fault when it is not. Addresses
 * of reads that stray are replaced by one where zeros lie. */
void emu_check_lanes(struct emu_frame *f, const struct emu_op *op, uint64_t *ea, uint32_t mask, uint32_t bytes);
bool emu_check_range(struct emu_frame *f, const struct emu_op *op, uint64_t lo, uint64_t hi);
bool emu_check_one(struct emu_frame *f, const struct emu_op *op, int lane, uint64_t ea, uint32_t bytes);
bool emu_own_word(const struct emu_frame *f, const struct emu_op *op, uint32_t lane, uint64_t *ea, uint32_t bytes);
uint64_t emu_plain_address(const struct emu_frame *f, const struct emu_op *op, const char *regs, uint32_t lane);
void emu_plain_addresses(const struct emu_frame *f, const struct emu_op *op, const char *regs, uint64_t ea[EMU_LANES]);
void emu_epoch(struct emu_worker *wk);
void emu_ranges_begin(struct emu_worker *wk); /* as launches before left them */
void emu_ranges_end(struct emu_worker *wk);

/* atom.c */
enum emu_atom {
    EMU_ATOM_ADD,
    EMU_ATOM_MIN,
    EMU_ATOM_MAX,
    EMU_ATOM_INC,
    EMU_ATOM_DEC,
    EMU_ATOM_EXCH,
    EMU_ATOM_CAS,
    EMU_ATOM_AND,
    EMU_ATOM_OR,
    EMU_ATOM_XOR
};
enum emu_opcode emu_atom_find(const struct mg_form *f, struct emu_op *op,
                              bool with_result); /* EMU_OP_none: there is none */
bool emu_whole_needs_exchange(
    void); /* aligned moves of 16 bytes may come apart here: no AVX; MARGAY_ISA=sse, for tests */
void emu_host_addresses(struct emu_frame *f, const struct emu_op *op, char *regs, uint32_t mask, uint32_t bytes,
                        uint64_t *ea);

/* stack.c */
void emu_stack_enter(struct emu_frame *f);
void emu_stack_leave(struct emu_frame *f, uint32_t mask);

/* builtin.c */
enum emu_builtin emu_builtin_find(const char *name);
void emu_builtin_run(struct emu_frame *f, const struct emu_op *op, uint32_t mask);
/* Argument k: its first 8 bytes, or `bytes` of it to out. */
uint64_t emu_argument(struct emu_frame *f, const struct emu_call *call, uint32_t k, uint32_t lane, void *out,
                      uint32_t bytes);
void emu_result(struct emu_frame *f, const struct emu_call *call, uint32_t lane, uint64_t v);
uint64_t emu_heap_alloc(struct mg_device *dev, uint64_t bytes);
bool emu_heap_free(struct mg_device *dev, uint64_t at);

/* child.c: launches from kernels */
enum emu_builtin emu_child_find(const char *name);
void emu_child_builtin(struct emu_frame *f, const struct emu_op *op, uint32_t mask);
struct emu_kids {
    struct emu_child *first;
    uint64_t n;
};
void emu_print_flush(struct mg_device *dev);

/* load.c */
enum mg_err emu_module_load(struct mg_device *dev, struct mg_module *ptx, struct mg_dmod **out, struct mg_diag *d);
void emu_module_unload(struct mg_dmod *mod);
void emu_module_share(struct mg_dmod *mod, struct mg_dmod *with);
bool emu_function_at(struct mg_device *dev, uint64_t address, struct mg_dmod **mod, mg_id *func);

/* decode.c */
bool emu_kernel_code(struct mg_dkernel *k, struct mg_fault *fault); /* thread-safe, decodes once */
void emu_code_free(struct emu_code *c);
void emu_kernel_sizes(struct mg_dkernel *k);
struct emu_func *emu_code_func(struct emu_code *c, struct mg_dmod *mod, mg_id func,
                               struct mg_fault *fault); /* decodes when needed */

/* vec_mem.c */
enum emu_where { EMU_AT_GLOBAL, EMU_AT_GENERIC, EMU_AT_SHARED, EMU_AT_LOCAL, EMU_AT_PARAM /* kernel parameters */ };

static inline uint32_t emu_popc(uint32_t m)
{
    return m == UINT32_MAX ? 32 : (uint32_t)__builtin_popcount(m);
}
static inline int emu_first(uint32_t m)
{
    return __builtin_ctz(m);
}
#define EMU_FOR_LANES(i, m)                                                                                            \
    for (uint32_t m_##i = (m), i; m_##i && (i = (uint32_t)__builtin_ctz(m_##i), 1); m_##i &= m_##i - 1)

#endif
