/* Inside report/overview: a program's figures. */
#ifndef MG_REPORT_OVERVIEW_PRIV_H
#define MG_REPORT_OVERVIEW_PRIV_H

#include "base/vec.h"
#include "report/facts.h"
#include "report/overview/overview.h"
#include "report/priv.h"

/* The eight instruction metrics of nvprof that CUDA Flux was compared with (ORDER METRICS in eight.c). */
enum overview_metric {
    METRIC_FP32,
    METRIC_FP64,
    METRIC_INTEGER,
    METRIC_CONVERT,
    METRIC_CONTROL,
    METRIC_MEMORY,
    METRIC_LANES,
    METRIC_MISC,
    METRIC_COUNT
};
enum overview_metric metric_of(const char *op);
extern const char *const metric_names[METRIC_COUNT];

/* Steps of making twins, as `--stats` keeps them (ORDER STEPS in gather.c). */
enum { STEP_COUNT = 7, STEP_INSTRUMENT = 2, STEP_EXECUTE = 6 };
extern const char *const step_names[STEP_COUNT];

struct work { /* of one program, from block counts */
    bool any, has_warps, estimate;
    uint64_t kernels, blocks;            /* launched kernels; blocks of them, each once */
    uint64_t launches, counted_launches; /* of the program; those whose counts are in the sums below */
    uint64_t thread_entries, warp_entries, thread_insts, warp_insts;
    uint64_t metrics[METRIC_COUNT]; /* thread instructions */
};
struct named_sum {
    const char *name;
    uint64_t n;
};
struct mix { /* from the tool opcodes; names are the arena's */
    MG_VEC(struct named_sum) classes, widths;
};
struct moved { /* from the tool memory: bytes to and from memory other than shared */
    bool any;
    uint64_t read, written;
};
struct load { /* of the kernel that takes most */
    const char *kernel;
    unsigned knows; /* which of the tools the profile had */
    double share;   /* of the program's time, else of its instructions */
    uint64_t ctas, launches;
    double cta_imbalance, sm_imbalance; /* NaN: not measured */
    double *busy;                       /* share of the kernel's time, by multiprocessor */
    uint32_t n_sms;
};
struct calls {
    bool any;
    uint64_t n;
    double kernel_pct, sync_pct, other_pct;
};
struct cost { /* of one way of instrumenting: kernel time over native kernel time */
    const char *mode;
    double ratio, low, high; /* low NaN: fewer than six times of some kernel */
    uint64_t native_ns;      /* medians, each as often as it was launched */
    uint64_t compared, launches;
    bool host_times;
};
struct program {
    const char *name, *domain; /* domain NULL: not told */
    const char *device;        /* kind, of the block counts */
    struct work work;
    struct mix mix;
    struct moved moved;
    struct load load;
    struct calls calls;
    bool has_steps;
    uint64_t steps[STEP_COUNT];
    MG_VEC(struct cost) costs;
};
struct mg_overview {
    struct mg_arena arena;
    MG_VEC(struct program) programs;
};

/* Costs of every mode among the runs of a program (cost.c); names into the arena. */
void costs_of(struct program *to, struct mg_recording *const *runs, uint32_t n, struct mg_arena *arena);
void overview_tables(const struct mg_overview *o, struct mg_table *t); /* tables.c */

#endif
