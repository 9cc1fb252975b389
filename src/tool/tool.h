/* Tools: analyze -> instrument -> initialize (per launch) -> finalize -> profile (seed ocelot 3.2).
 * A tool never knows the device: it sees sites and counters. */
#ifndef MG_TOOL_TOOL_H
#define MG_TOOL_TOOL_H

#include "analysis/analysis.h"
#include "pass/pass.h"

/* What is known of a kernel without running it: blocks of every function reachable from it, in
 * text order, entry first. Stored once per kernel (store/). Owner: its own arena. */
struct mg_site_op { const char *op; uint32_t n; uint32_t n_guarded; }; /* dotted text; n_guarded: of those, how many carry a guard */
struct mg_site_block {
    uint32_t id;            /* dense over all functions of the kernel */
    const char *function, *label; /* label "" when none */
    uint32_t func_ix, block_ix; /* function in mg_sites.funcs, block in its CFG */
    uint32_t ptx_line;      /* of the first instruction */
    const char *file; uint32_t line; /* source; file NULL when unknown */
    uint32_t n_insts;
    const uint32_t *succs; uint32_t n_succs; /* dense ids */
    const struct mg_site_op *ops; uint32_t n_ops; /* sorted by op */
    const char *timing;     /* does its count depend on timing: analysis/timing.h, mg_timing_text */
};
struct mg_sites {
    struct mg_arena arena;
    const char *kernel;
    mg_id *funcs; uint32_t n_funcs;  /* in the original module; entry first, then text order */
    uint32_t *first_block;           /* func_ix -> first dense block id */
    struct mg_cfg **cfgs;
    struct mg_site_block *blocks; uint32_t n_blocks;
};
struct mg_sites *mg_sites_new(const struct mg_module *m, mg_id kernel);
void mg_sites_free(struct mg_sites *s);

enum mg_blocks_scope { MG_COUNT_FULL, MG_COUNT_CTA, MG_COUNT_WARP };
enum mg_blocks_scheme {
    MG_SCHEME_CLASS,    /* a register for every class of equally frequent blocks */
    MG_SCHEME_REGISTER, /* a minimal set of counters, one reduction a warp (pass/count.h) */
    MG_SCHEME_THREAD,   /* GPU Ocelot's matrix: a word in memory for every block and thread */
    MG_SCHEME_FLUX,     /* CUDA Flux: the lowest active lane adds the lanes to one of 64 banks */
    MG_SCHEME_ATOMIC,   /* every thread adds 1 to memory */
};
struct mg_blocks_weights; /* block counts of an earlier run, by kernel */
struct mg_blocks_opts { /* parsed from -t blocks,k=v,... */
    bool warps;
    enum mg_blocks_scheme scheme;
    enum mg_blocks_scope scope; uint64_t cta; uint32_t warp; /* linear ids */
    uint32_t shards;  /* scheme register: copies of the counters, a power of two */
    uint32_t registers; /* scheme register: of 32 bits for counters in loops; the rest counts in shared memory */
    uint32_t sm;      /* compute capability of the device, 90 for 9.0; 0: what the PTX names */
    struct mg_blocks_weights *weights; /* NULL: none */
    char *each;       /* scheme thread: folder for what every thread counted; NULL: none */
};

/* ---- where a kernel's counters lie --------------------------------------------------------------
 * Counters are u64 words behind the launch's context block, all 0 before the launch. Counter k is the
 * sum of raw[k * counter_words + s * copy_words] over the copies s. Blocks may share a counter, and
 * counts of blocks may have to be solved for: read them with mg_counters_read.
 * Owner: whoever called instrument; mg_counter_layout_release. */
struct mg_counter_flow;   /* a function whose counts are solved for; tool/counters.c */
struct mg_fit_block { const uint32_t *succs; uint32_t n_succs; bool begins /* a function */, leaves /* lanes may end in it */; };
struct mg_fit { struct mg_fit_block *blocks; uint32_t n; }; /* block 0 is where the kernel begins */
struct mg_counter_layout {
    uint32_t n_counters;
    uint32_t n_blocks;
    uint32_t n_copies, copy_words, counter_words; /* n_copies 0: one copy for each thread of the launch,
                                                   * and counter_words is the number of threads */
    uint32_t *threads;   /* block -> counter of its thread entries; unused where flows are given */
    uint32_t *warps;     /* block -> counter of its warp entries, UINT32_MAX: solved for; NULL: not counted */
    uint32_t other_at;   /* counter of thread calls that left for a function without a clone
                          * ("uninstrumented callee"); UINT32_MAX: there are no such calls */
    struct mg_counter_flow *flows; uint32_t n_flows; /* callers before callees */
    enum mg_blocks_scope scope; uint64_t cta; uint32_t warp; /* whose threads were counted */
    const char *each;    /* the options', as long as they live */
};
struct mg_counter_launch { uint32_t grid[3], block[3]; uint64_t times; /* replays that counted together, 0: one launch */ };
void mg_counter_layout_release(struct mg_counter_layout *l);
/* Words of the counter array of one launch. Depends on the launch only when l->n_copies is 0. */
uint64_t mg_counters_words(const struct mg_counter_layout *l, const struct mg_counter_launch *g);
/* threads and warps hold n_blocks each; warps is left alone when it was not counted; NULL: skip. False: what was solved
 * for went below 0, so no launch that ran to its end has counted this. */
bool mg_counters_read(const struct mg_counter_layout *l, const struct mg_counter_launch *g, const uint64_t *raw, uint64_t *threads, uint64_t *warps);
/* Threads and warps of a launch whose entries count: all of them, those of a CTA, or one warp's. */
void mg_counters_launched(enum mg_blocks_scope scope, uint64_t cta, uint32_t warp, const struct mg_counter_launch *g, uint64_t *threads, uint64_t *warps);
/* Do the counts of a launch that ran to its end fit together (tool/fit.c)? launched: threads that entered the kernel. */
bool mg_counts_fit(const struct mg_fit *f, uint64_t launched, const uint64_t *threads, const uint64_t *warps);
struct mg_fit_block mg_fit_block_of(const uint32_t *succs, uint32_t n_succs, const struct mg_site_op *ops, uint32_t n_ops, bool begins);
/* Calls that left for uninstrumented callees. */
uint64_t mg_counters_other(const struct mg_counter_layout *l, const struct mg_counter_launch *g, const uint64_t *raw);
/* Scheme thread: how often every thread (linear id in the grid) entered each block, as CSV; what is 0 is left out. */
enum mg_err mg_counters_write_each(const struct mg_counter_layout *l, const struct mg_counter_launch *g, const uint64_t *raw, const char *path, struct mg_diag *d) MG_MUST_CHECK;

/* ---- tools ------------------------------------------------------------------------------------- */

struct mg_patch;       /* tool/patch.h: one tool's view of a kernel */
struct mg_json;
struct mg_stream;      /* tool/channel.h */
struct mg_table;       /* tool/result.h: what becomes text and CSV */
struct mg_tool_result; /* tool/result.h: what was counted, by kernel and site */
struct mg_tool_host;   /* tool/host.h: what a tool may ask of the measured process */
struct mg_region;      /* tool/layout.h: sites and tables of a tool in a kernel */

struct mg_tool_opt { const char *key, *value, *help; };
struct mg_tool_launch { /* what a tool may know of one launch */
    const char *kernel;
    uint64_t id;        /* number of the launch in its process */
    struct mg_counter_launch shape;
    const void *args; uint32_t args_bytes; /* as the kernel sees them; NULL: not known */
    bool complete;      /* finalize */
    bool node;          /* of a graph: replayed as often as the program likes, later than this is asked */
};
struct mg_tool_list { /* the list of a launch (mg_patch_list), as its kernel left it or as it is so far */
    const uint64_t *words; uint32_t n;
    const uint64_t *before;  /* what read got when it was called last for the same memory (replays of graphs); NULL: it began as 0 */
    const struct mg_region *region;
    bool running;            /* the kernel still writes; nothing may be added then */
    /* An entry, or more for one, of a table that has none on the device. */
    void (*add)(const struct mg_tool_list *l, uint32_t table, const uint64_t *keys, const uint64_t *cells);
    void *user;
};
/* analyze -> instrument (once per kernel) -> initialize -> finalize (per launch) -> profile (per report). Any
 * but name and instrument may be NULL. conf is what configure made; hooks may run on any thread, analyze
 * and instrument on one at a time, and must not call CUDA. */
struct mg_tool {
    const char *name, *summary;
    const struct mg_tool_opt *opts; /* documented keys with defaults, ends with key NULL */
    /* Parses "k=v,..." into a heap struct. */
    enum mg_err (*configure)(const char *args, void **conf, struct mg_diag *d);
    void (*release)(void *conf);
    /* Of so many launches of a kernel one runs with the tool, drawn at random, and the first in any case; cells are
     * kept launch by launch then. NULL: every launch. */
    uint32_t (*one_of)(const void *conf);
    /* Looks at the application's code, reserves sites and cells. Pure functions of their input: the
     * kernel's text, conf, the device's compute capability. An error leaves the kernel to the other tools,
     * with the reason in the coverage. */
    enum mg_err (*analyze)(const void *conf, struct mg_patch *p, struct mg_diag *d);
    enum mg_err (*instrument)(const void *conf, struct mg_patch *p, struct mg_diag *d);
    /* Fills its words (mg_patch_words) of one launch. */
    void (*initialize)(const void *conf, const struct mg_tool_launch *l, uint64_t *words);
    /* Fills its list (mg_patch_list) of one launch; returns how many words are used. */
    uint32_t (*list)(const void *conf, const struct mg_tool_launch *l, uint64_t *words, uint32_t n);
    /* Its list, in front of finalize when the launch is complete; of a frame (MG_TOOL_FRAME) also now and then while
     * the kernel runs. On a thread of ours. */
    void (*read)(void *conf, const struct mg_tool_launch *l, const struct mg_tool_list *list);
    /* Cells of one launch, merged over copies. On a thread of ours: it may print or send them. */
    void (*finalize)(void *conf, const struct mg_tool_launch *l, const uint64_t *cells, uint32_t n);
    /* Records of its channels (tool/channel.h), while kernels run; by several threads. */
    void (*stream)(void *conf, const struct mg_stream *s, const uint64_t *segment, uint32_t bytes);
    /* What was counted, as tables and as JSON (the value of tools.<name>). In the process that reports. */
    void (*profile)(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j);
    /* Once in a measured process: before its first kernel, and when it ends. */
    void (*begin)(void *conf, const struct mg_tool_host *host);
    void (*end)(void *conf);
    /* The block counter alone (tool blocks), in the place of instrument: its counters have a layout of their own. */
    enum mg_err (*count)(const void *conf, const struct mg_sites *sites, struct mg_twin *twin, struct mg_counter_layout *layout, struct mg_diag *d);
    unsigned flags;
    const char *gpu_args; /* options a GPU's run puts in front of the user's; NULL: none */
    const char *cost;     /* one line for `margay tools -v`: kernel time on which device, by which measurement; NULL: not measured */
};
enum mg_tool_flags {
    MG_TOOL_NATIVE = 1,     /* never instruments: every launch runs native, reason "no tool" */
    MG_TOOL_PER_LAUNCH = 2, /* the profile keeps its cells launch by launch, too */
    MG_TOOL_ASKED = 4,      /* each of its tables was asked for by name: the summary of a run shows them all */
    MG_TOOL_FRAME = 8,      /* its list is a frame (tool/frame.h): read while the kernel runs, too, and switched with the tool */
    MG_TOOL_NO_LOADS = 16,  /* looks at no load, as tools that count blocks: a GPU's twin may read constants elsewhere (MG_TWIN_CONSTANTS) */
    MG_TOOL_ACCESSES = 64,  /* looks at accesses: reports name the memory instructions that are none (unseen.h) */
    MG_TOOL_APART = 32,     /* but at how far apart lanes read constants (MG_TWIN_ONE_TABLE) */
};
/* What of these flags of a GPU's twin (mg_twin_flags) the tool can do with. */
static inline unsigned mg_tool_twin_flags(const struct mg_tool *t, unsigned flags)
{
    if (t->instrument && !(t->flags & MG_TOOL_NO_LOADS)) flags &= ~(unsigned)MG_TWIN_CONSTANTS;
    return t->flags & MG_TOOL_APART ? flags | MG_TWIN_ONE_TABLE : flags;
}
const struct mg_tool *mg_tool_find(const char *name);
const struct mg_tool *mg_tool_at(uint32_t ix); /* NULL past the last: the list of tools.def */

#endif
