/* Block counters: how they are asked for, where a kernel's counters lie, and how counts are read from them. */
#ifndef MG_COUNT_COUNTERS_H
#define MG_COUNT_COUNTERS_H

#include "analysis/sites.h"

struct mg_buf;
struct mg_twin;

enum mg_count_scope { MG_COUNT_FULL, MG_COUNT_CTA, MG_COUNT_WARP };
enum mg_count_scheme {
    MG_SCHEME_CLASS,    /* a counter for every class of equally frequent blocks */
    MG_SCHEME_REGISTER, /* a minimal set of counters, one reduction a warp (count/plan.h) */
    MG_SCHEME_THREAD,   /* GPU Ocelot's matrix: a word in memory for every block and thread */
    MG_SCHEME_FLUX,     /* CUDA Flux: the lowest active lane adds the lanes to one of 64 banks */
    MG_SCHEME_ATOMIC,   /* every thread adds 1 to memory */
};
struct mg_count_weights; /* block counts of an earlier run, by kernel */
struct mg_counter_opts { /* how blocks are to be counted */
    bool warps;
    enum mg_count_scheme scheme;
    enum mg_count_scope scope;
    uint64_t cta;
    uint32_t warp;      /* linear ids */
    uint32_t shards;    /* scheme register: copies of the counters, a power of two */
    uint32_t registers; /* scheme register: of 32 bits for counters in loops; the rest counts in shared memory */
    uint32_t sm;        /* compute capability of the device, 90 for 9.0; 0: what the PTX names */
    struct mg_count_weights *weights; /* NULL: none */
    char *each;                       /* scheme thread: folder for what every thread counted; NULL: none */
};

/* What costs least where a tool asks for nothing else: on a GPU of this compute capability, on a software device. */
struct mg_counter_opts mg_counter_opts_for(bool gpu, uint32_t sm);
/* Do both ask for the same counters of the same threads? */
bool mg_counter_opts_equal(const struct mg_counter_opts *a, const struct mg_counter_opts *b);

/* Counts of an earlier run: lines "KERNEL BLOCK COUNT". NULL with a message in d. */
struct mg_count_weights *mg_count_weights_read(const char *path, struct mg_diag *d);
void mg_count_weights_free(struct mg_count_weights *w);
/* Counts of the kernel's blocks, n of them; NULL: not known. To be freed. */
uint64_t *mg_count_weights_of(const struct mg_count_weights *w, const char *kernel, uint32_t n);

/* ---- where a kernel's counters lie --------------------------------------------------------------
 * Counters are u64 words behind the launch's context block, all 0 before the launch. Counter k is the
 * sum of raw[k * counter_words + s * copy_words] over the copies s. Blocks may share a counter, and
 * counts of blocks may have to be solved for: read them with mg_counters_read.
 * Owner: whoever called instrument; mg_counter_layout_release. */
struct mg_counter_flow; /* a function whose counts are solved for; count/counters.c */
struct mg_fit_block {
    const uint32_t *succs;
    uint32_t n_succs;
    bool begins /* a function */, leaves /* lanes may end in it */;
};
struct mg_fit {
    struct mg_fit_block *blocks;
    uint32_t n;
}; /* block 0 is where the kernel begins */
struct mg_counter_layout {
    uint32_t n_counters;
    uint32_t n_blocks;
    uint32_t n_copies, copy_words, counter_words; /* n_copies 0: one copy for each thread of the launch,
                                                   * and counter_words is the number of threads */
    uint32_t *threads; /* block -> counter of its thread entries; unused where flows are given */
    uint32_t *warps;   /* block -> counter of its warp entries, UINT32_MAX: solved for; NULL: not counted */
    uint32_t other_at; /* counter of thread calls that left for a function without a clone
                        * ("uninstrumented callee"); UINT32_MAX: there are no such calls */
    struct mg_counter_flow *flows;
    uint32_t n_flows; /* callers before callees */
    enum mg_count_scope scope;
    uint64_t cta;
    uint32_t warp;    /* whose threads were counted */
    const char *each; /* the options', as long as they live */
};
/* Inserts the counters into a twin of the kernel that nothing was inserted into yet. plan: what is counted where and
 * why is printed there, as comments of PTX; NULL: nowhere. */
enum mg_err mg_count_insert(const struct mg_counter_opts *o, const struct mg_sites *s, struct mg_twin *t,
                            struct mg_counter_layout *l, struct mg_buf *plan, struct mg_diag *d) MG_MUST_CHECK;
struct mg_counter_launch {
    uint32_t grid[3], block[3];
    uint64_t times; /* replays that counted together, 0: one launch */
};
void mg_counter_layout_release(struct mg_counter_layout *l);
/* Words of the counter array of one launch. Depends on the launch only when l->n_copies is 0. */
uint64_t mg_counters_words(const struct mg_counter_layout *l, const struct mg_counter_launch *g);
/* threads and warps hold n_blocks each; warps is left alone when it was not counted; NULL: skip. False: what was solved
 * for went below 0, so no launch that ran to its end has counted this. */
bool mg_counters_read(const struct mg_counter_layout *l, const struct mg_counter_launch *g, const uint64_t *raw,
                      uint64_t *threads, uint64_t *warps);
/* Threads and warps of a launch whose entries count: all of them, those of a CTA, or one warp's. */
void mg_counters_launched(enum mg_count_scope scope, uint64_t cta, uint32_t warp, const struct mg_counter_launch *g,
                          uint64_t *threads, uint64_t *warps);
/* Do the counts of a launch that ran to its end fit together (count/fit.c)? launched: threads that entered the kernel.
 */
bool mg_counts_fit(const struct mg_fit *f, uint64_t launched, const uint64_t *threads, const uint64_t *warps);
struct mg_fit_block mg_fit_block_of(const uint32_t *succs, uint32_t n_succs, const struct mg_site_op *ops,
                                    uint32_t n_ops, bool begins);
/* Calls that left for uninstrumented callees. */
uint64_t mg_counters_other(const struct mg_counter_layout *l, const struct mg_counter_launch *g, const uint64_t *raw);
/* Scheme thread: how often every thread (linear id in the grid) entered each block, as CSV; what is 0 is left out. */
enum mg_err mg_counters_write_each(const struct mg_counter_layout *l, const struct mg_counter_launch *g,
                                   const uint64_t *raw, const char *path, struct mg_diag *d) MG_MUST_CHECK;

#endif
