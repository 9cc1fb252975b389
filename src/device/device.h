/* What our own driver sees of a software device (emulator, CPU): one ops struct.
 * (The NVIDIA device is real hardware behind NVIDIA's driver; inject/nvidia serves it.)
 *
 * Devices know PTX modules, memory and launches. They never know tools: an instrumented twin is a
 * module like any other. Device addresses are host virtual addresses inside one reserved arena
 * (device/mem.h), so copies are memcpy and a counter is read where it lies.
 */
#ifndef MG_DEVICE_DEVICE_H
#define MG_DEVICE_DEVICE_H

#include "base/diag.h"
#include "ir/ir.h"

struct mg_device;  /* one opened device */
struct mg_dmod;    /* one loaded module instance: its globals have addresses */
struct mg_dkernel; /* an entry of a loaded module */

enum mg_fault_kind { /* why a launch ended early; ORDER FAULT: names in mg_fault_kind_text() */
                     MG_FAULT_NONE,
                     MG_FAULT_ADDRESS,     /* access outside live allocations: CUDA_ERROR_ILLEGAL_ADDRESS 700 */
                     MG_FAULT_MISALIGNED,  /* CUDA_ERROR_MISALIGNED_ADDRESS 716 */
                     MG_FAULT_TRAP,        /* trap instruction: CUDA_ERROR_LAUNCH_FAILED 719 */
                     MG_FAULT_ASSERT,      /* __assertfail: CUDA_ERROR_ASSERT 710 */
                     MG_FAULT_DEADLOCK,    /* every live warp parked: 719 */
                     MG_FAULT_TIMEOUT,     /* --time-limit: CUDA_ERROR_LAUNCH_TIMEOUT 702 */
                     MG_FAULT_UNSUPPORTED, /* an instruction this device refuses by name: CUDA_ERROR_NOT_SUPPORTED 801
                                            */
                     MG_FAULT_BAD_CALL,    /* indirect call to no function: CUDA_ERROR_INVALID_PC 718 */
                     MG_FAULT_STACK,       /* call depth or local memory exhausted: 719 */
                     MG_FAULT_MEMORY,      /* host memory ran out: CUDA_ERROR_OUT_OF_MEMORY 2 */
                     MG_FAULT_CANCELLED,   /* process is shutting down */
                     MG_FAULT_COUNT
};
const char *mg_fault_kind_text(enum mg_fault_kind k);

struct mg_fault { /* filled by launch; text is one clear line: what, kernel, PTX line, source line, CTA, thread, address
                   */
    enum mg_fault_kind kind;
    uint32_t ptx_line, line; /* line 0: no source line is known */
    const char *file;        /* owner: the module */
    uint32_t cta[3], thread[3];
    uint64_t address;
    uint32_t bytes;
    bool write;
    char text[1024];
};

struct mg_dim3 {
    uint32_t x, y, z;
};

/* The value that decides about a conditional graph node: in device memory, its address is the handle. */
struct mg_cond_value {
    uint64_t magic;
    uint32_t value, initial;
    bool assigns;
};
#define MG_COND_MAGIC 0x6c616e6f69746964ull

struct mg_launch {
    struct mg_dkernel *kernel;
    struct mg_dim3 grid, block, cluster; /* cluster 0,0,0: none */
    uint32_t dyn_shared_bytes;
    const void *params; /* the parameter block as the kernel sees it (mg_func.param_bytes) */
    uint32_t param_bytes;
    bool cooperative;
    uint64_t time_limit_ns;      /* 0: none */
    const volatile bool *cancel; /* may be NULL; polled */
    bool busy;                   /* busy_ns of its statistics is wanted */
};

/* A place of a kernel that read just before or behind an allocation and was let pass (docs/schedule.md). The
 * first such read in full, and how often. */
struct mg_stray {
    uint32_t ptx_line, line; /* line 0: no source line is known */
    const char *file;        /* owner: the module; NULL without a line */
    uint32_t cta[3], thread[3];
    uint64_t address;
    uint32_t bytes;
    uint64_t allocation, allocation_bytes; /* the nearest one */
    uint64_t times;                        /* thread accesses */
    bool first;                            /* no earlier launch told of this place */
    char text[512];                        /* one clear line, as of mg_fault */
};

/* What --check found; the launch went on. One for each pair of instructions: the first time in full,
 * and how often. */
enum mg_finding_kind {
    MG_FINDING_NONE,
    MG_FINDING_RACE,
    MG_FINDING_UNINIT,
    MG_FINDING_BARRIER,
    MG_FINDING_NOTE /* no error */,
    MG_FINDING_COUNT
};
const char *mg_finding_kind_text(enum mg_finding_kind k); /* as in the JSON */
struct mg_finding_at {
    uint32_t ptx_line, line; /* as in mg_stray; ptx_line 0: there is no such access */
    const char *file;
    uint32_t thread[3];
    const char *access; /* read, write, atomic, copy, barrier; static */
};
struct mg_finding {
    enum mg_finding_kind kind;
    struct mg_finding_at at, other; /* other: whom it races with, the other barrier */
    uint32_t cta[3], other_cta[3];
    uint64_t address;
    uint32_t bytes;       /* in shared memory, of races on global memory and of undefined values in any */
    char allocation[160]; /* variable of shared memory, buffer, empty for barriers; a kind of memory; a register */
    uint64_t allocation_address, allocation_bytes;
    const char *space,
        *use; /* of undefined values: register, local, shared, global; branch, address, atomic, copied; else NULL */
    uint8_t copied;  /* a store of undefined values: told only if mg_defined_copied() of this is not 0 */
    char what[128];  /* of a barrier: what is wrong */
    uint64_t times;  /* thread accesses */
    bool first;      /* no earlier launch told of it */
    char text[1024]; /* one clear line */
};

/* Instructions of a kernel that --check does not look at for undefined values. */
struct mg_unseen {
    char name[24];
    uint32_t instructions;
};

struct mg_launch_stats {
    uint64_t start_ns, end_ns; /* mg_now_ns */
    uint64_t busy_ns; /* processor time of the threads that helped the caller's, where the launch asks for it */
    uint64_t warp_instructions, thread_instructions; /* as executed by the device, probes included */
    bool schedule_dependent;                         /* warp counts depend on when turns ended (docs/schedule.md) */
    bool race_full;           /* --check: not all of global memory was looked at, its shadow is used up */
    uint64_t device_launches; /* grids that kernels of this launch launched themselves, theirs included */
    struct mg_stray *strays;
    uint32_t n_strays; /* the caller frees them; the first 64 places of the launch */
    struct mg_finding *findings;
    uint32_t n_findings; /* likewise; the first 256 pairs */
    struct mg_unseen *unseen;
    uint32_t n_unseen; /* likewise; under --check */
};

struct mg_kernel_info {
    const char *name; /* owner: the module */
    uint32_t n_params, param_bytes;
    const uint32_t *param_offsets, *param_sizes;
    uint32_t static_shared_bytes, local_bytes, const_bytes,
        registers;              /* registers: estimate from liveness, see driver for recorded ones */
    uint32_t max_threads;       /* .maxntid product or 1024 */
    const struct mg_func *func; /* directives; borrowed */
};

/* ---- per-warp event stream (emulator): the instruction trace for simulators ------------------ */
enum mg_event_kind {
    MG_EVENT_INST,
    MG_EVENT_MEMORY,
    MG_EVENT_BRANCH,
    MG_EVENT_BARRIER,
    MG_EVENT_CALL,
    MG_EVENT_RETURN,
    MG_EVENT_EXIT
};
struct mg_event {
    enum mg_event_kind kind;
    const struct mg_dkernel *kernel;
    uint32_t func_ix; /* function id in the module's IR */
    mg_id node;       /* instruction in the module's IR */
    uint32_t ptx_line;
    uint32_t cta[3], warp;
    uint32_t mask;   /* lanes that execute it (guard true) */
    uint32_t active; /* lanes that are here */
    /* MG_EVENT_MEMORY */
    enum mg_space space;
    bool write;
    uint32_t bytes;            /* per lane, all vector elements */
    const uint64_t *addresses; /* [32] */
    const void *values;        /* [32][bytes], lane-major, NULL when not available */
    /* MG_EVENT_BRANCH */
    uint32_t taken;
};
typedef void (*mg_event_fn)(void *user, const struct mg_event *ev);
struct mg_observe_opts {
    size_t size;
    mg_event_fn fn;
    void *user;
    const char *kernel_glob;    /* NULL: all */
    uint64_t first_cta, n_ctas; /* linear CTA ids; n_ctas 0: all */
};

/* What asks to see a device-side launch: may put another kernel and other parameters in place. */
struct mg_launch_stats;
struct mg_child_hooks {
    void *(*begin)(struct mg_launch *l); /* token, NULL: not interested */
    void (*end)(void *token, const struct mg_launch_stats *stats, const struct mg_fault *fault);
};

struct mg_device_opts {
    size_t size;
    const char *properties;                                /* "h200" */
    uint32_t workers;                                      /* 0: all cores */
    void (*print)(void *user, const char *text, size_t n); /* printf output of kernels; NULL: stdout */
    void *print_user;
    bool count_positions;                     /* witness: executed instructions per PTX position, without the CFG */
    uint64_t heap_bytes;                      /* device malloc heap limit */
    const struct mg_child_hooks *child_hooks; /* may be NULL */
    uint64_t printf_bytes;
    bool no_contract;     /* unrounded products and sums stay two operations (docs/arithmetic.md) */
    bool check;           /* --check: findings on shared memory and barriers, its bounds to the byte */
    uint64_t stray_bytes; /* reads that lie so near before or behind an allocation pass, see mg_stray; 0: none does */
};

struct mg_device_ops {
    const char *name; /* "emu", "cpu" */
    enum mg_err (*open)(struct mg_device **out, const struct mg_device_opts *opts, struct mg_diag *d);
    void (*close)(struct mg_device *dev);
    /* Takes ownership of ptx. Allocates and initialises its globals; kernels are decoded on first launch.
     * `extern` variables and functions are resolved inside the module only (linking is the driver's). */
    enum mg_err (*module_load)(struct mg_device *dev, struct mg_module *ptx, struct mg_dmod **out, struct mg_diag *d);
    void (*module_unload)(struct mg_dmod *mod);
    /* Is code faster where small functions stand in place of their calls (pass/pass.h)? NULL: no. */
    bool (*likes_inlined)(const struct mg_device *dev);
    bool (*calls_arithmetic)(const struct mg_device *dev); /* ... but larger ones of arithmetic alone are called? */
    /* Another instance of the same text, of which nothing has run: its managed variables are `with`'s from now on.
     * May be NULL. */
    void (*module_share)(struct mg_dmod *mod, struct mg_dmod *with);
    const struct mg_module *(*module_ir)(const struct mg_dmod *mod);
    struct mg_dkernel *(*kernel)(struct mg_dmod *mod, const char *name); /* NULL when absent */
    void (*kernel_info)(const struct mg_dkernel *k, struct mg_kernel_info *out);
    enum mg_err (*global)(struct mg_dmod *mod, const char *name, uint64_t *address, uint64_t *bytes);
    /* Value a function has when its address is taken, on this instance; 0 when absent. */
    uint64_t (*function_address)(struct mg_dmod *mod, const char *name);
    /* Runs to completion on the caller's thread plus the device's workers. Thread-safe: several
     * launches may run at once. Result: fault->kind. */
    void (*launch)(struct mg_device *dev, const struct mg_launch *l, struct mg_launch_stats *stats,
                   struct mg_fault *fault);
    void (*trace)(struct mg_device *dev,
                  const struct mg_observe_opts *opts); /* NULL opts: off; NULL fn pointer in ops: not supported */
    /* Witness: calls fn(user, ptx_line, node, thread_count, warp_count) for every instruction of
     * every function of the module, in text order; counts since load. Needs count_positions. */
    void (*positions)(struct mg_dmod *mod,
                      void (*fn)(void *user, mg_id func, mg_id node, uint64_t threads, uint64_t warps), void *user);
    /* Decodes a kernel now, so that what launch would refuse is refused here: the fault's kind says. May be NULL. */
    enum mg_err (*prepare)(struct mg_dkernel *k, struct mg_fault *fault);
};
extern const struct mg_device_ops mg_emu_ops; /* device/emu */
const struct mg_device_ops *mg_cpu_ops(void); /* device/cpu; its open fails where there is no plugin */

#endif
