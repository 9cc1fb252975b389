/* Tools: analyze -> instrument -> initialize (per launch) -> finalize -> profile, as in "A framework for dynamically
 * instrumenting GPU compute applications within GPU Ocelot".
 * A tool never knows the device: it sees sites and counters. */
#ifndef MG_TOOL_TOOL_H
#define MG_TOOL_TOOL_H

#include "analysis/sites.h"
#include "count/counters.h"
#include "pass/pass.h"
#include "patch/launch.h"

struct mg_patch; /* patch/patch.h: one tool's view of a kernel */
struct mg_json;
struct mg_stream;      /* record/channel.h */
struct mg_table;       /* view/result.h: what becomes text and CSV */
struct mg_tool_result; /* view/result.h: what was counted, by kernel and site */
struct mg_tool_host;   /* tool/host.h: what a tool may ask of the measured process */

struct mg_tool_opt {
    const char *key, *value, *help;
};
/* analyze -> instrument (once per kernel) -> initialize -> finalize (per launch) -> profile (per report). Any
 * but name may be NULL; one of instrument and counts is there, but for MG_TOOL_NATIVE. conf is what configure made;
 * hooks may run on any thread, analyze and instrument on one at a time, and must not call CUDA. */
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
    /* Records of its channels (record/channel.h), while kernels run; by several threads. */
    void (*stream)(void *conf, const struct mg_stream *s, const uint64_t *segment, uint32_t bytes);
    /* What was counted, as tables and as JSON (the value of tools.<name>). In the process that reports. */
    void (*profile)(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j);
    /* Once in a measured process: before its first kernel, and when it ends. */
    void (*begin)(void *conf, const struct mg_tool_host *host);
    void (*end)(void *conf);
    /* How it wants blocks counted, whose counts are its answer or part of it; NULL: it has no say in that
     * (mg_patch_want_blocks asks for counts, however they are made). Counts of one twin are made once: tools of one run
     * have to agree. */
    const struct mg_counter_opts *(*counts)(const void *conf);
    unsigned flags;
    /* With MG_TOOL_NATIVE: do these options instrument after all? NULL: none does; without it: not asked. */
    bool (*instruments)(const void *conf);
    const char *gpu_args; /* options a GPU's run puts in front of the user's; NULL: none */
    const char *cost; /* one line for `margay tools -v`: kernel time on which device, by which measurement; NULL: not
                         measured */
};
enum mg_tool_flags {
    MG_TOOL_NATIVE = 1, /* instruments nothing, but with `instruments`: every launch runs native, reason "no tool" */
    MG_TOOL_PER_LAUNCH = 2, /* the profile keeps its cells launch by launch, too */
    MG_TOOL_ASKED = 4,      /* each of its tables was asked for by name: the summary of a run shows them all */
    MG_TOOL_FRAME =
        8, /* its list is a frame (record/frame.h): read while the kernel runs, too, and switched with the tool */
    MG_TOOL_NO_LOADS = 16,  /* looks at no load, as tools that count blocks: a GPU's twin may read constants elsewhere
                               (MG_TWIN_CONSTANTS) */
    MG_TOOL_ACCESSES = 64,  /* looks at accesses: reports name the memory instructions that are none (unseen.h) */
    MG_TOOL_BULK = 256,     /* with MG_TOOL_ACCESSES: looks at bulk copies that are no tensor copies, too */
    MG_TOOL_MINOR = 1024,   /* beside other tools it serves the findings: the report of many tools has no table of it */
    MG_TOOL_CLOCKS = 2048,  /* reads clocks: without a GPU the report of many tools has no table of it */
    MG_TOOL_BESIDE = 128,   /* with MG_TOOL_NATIVE: other tools may instrument beside it */
    MG_TOOL_OF_TRACE = 512, /* with MG_TOOL_NATIVE and BESIDE: its result is made of the records of tool trace, which
                               margay run adds (tool/of_trace.h) */
    MG_TOOL_SPAN = 4096,    /* its cells are when a launch began and ended by its device's clock (tool/span.h) */
    MG_TOOL_APART = 32,     /* but at how far apart lanes read constants (MG_TWIN_ONE_TABLE) */
};
_Static_assert(MG_TOOL_NATIVE + MG_TOOL_PER_LAUNCH + MG_TOOL_ASKED + MG_TOOL_FRAME + MG_TOOL_NO_LOADS +
                       MG_TOOL_ACCESSES + MG_TOOL_BULK + MG_TOOL_MINOR + MG_TOOL_CLOCKS + MG_TOOL_BESIDE +
                       MG_TOOL_OF_TRACE + MG_TOOL_SPAN + MG_TOOL_APART ==
                   (1 << 13) - 1,
               "each flag has a bit of its own");
/* What of these flags of a GPU's twin (mg_twin_flags) the tool can do with. */
static inline unsigned mg_tool_twin_flags(const struct mg_tool *t, unsigned flags)
{
    if (t->instrument && !(t->flags & MG_TOOL_NO_LOADS)) flags &= ~(unsigned)MG_TWIN_CONSTANTS;
    return t->flags & MG_TOOL_APART ? flags | MG_TWIN_ONE_TABLE : flags;
}
static inline bool mg_tool_is_native(const struct mg_tool *t, const void *conf)
{
    return t->flags & MG_TOOL_NATIVE && !(t->instruments && t->instruments(conf));
}
const struct mg_tool *mg_tool_find(const char *name);
const struct mg_tool *mg_tool_at(uint32_t ix);     /* NULL past the last: the list of tools.def */
const char *mg_tool_page(const struct mg_tool *t); /* of documentation; NULL: not of that list */

#endif
