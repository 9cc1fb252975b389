/* The profile directory: one SQLite database per process (WAL, readable at any instant, survives
 * kill -9), joined by readers. docs/format-profile.md has the schema.
 *
 *   DIR/profile.db            the first process that made a CUDA call
 *   DIR/profile-<pid>.db      every other
 *   DIR/run-<id>.db           what a launcher started, and how that ended; id: of the run
 *
 * Writing (in process): calls only queue; one writer thread commits at least every 500 ms and at
 * close. Nothing here ever takes the application down: on an I/O error one line is said, recording
 * stops, what was committed stays readable; launches that were lost are told as unknown at the end,
 * and where that cannot be written either, the process stays one that has not closed its profile.
 */
#ifndef MG_STORE_STORE_H
#define MG_STORE_STORE_H

#include "base/diag.h"
#include "base/intern.h"
#include "count/counters.h"
#include "view/result.h"

struct mg_store; /* writer */

struct mg_store_process {
    uint32_t pid, ppid;
    int32_t rank; /* MPI rank, -1 none */
    const char *exe;
    const char *const *argv;
    uint32_t argc;
    const char *device_kind; /* "nvidia" "cpu" "emu" */
    const char *device_name;
    uint32_t sms, sm;                 /* sm: 90 */
    const char *properties;           /* --as */
    const char *tools;                /* as given, "blocks,warps=on" joined by ';' */
    uint64_t start_unix_ns, start_ns; /* of the first CUDA call: by the calendar, and CLOCK_MONOTONIC */
    uint64_t run;                     /* which run of a launcher it belongs to, 0: none */
};
/* Opens DIR (made when absent) and claims a database in it. */
enum mg_err mg_store_open(const char *dir, const struct mg_store_process *p, void (*say)(const char *line),
                          struct mg_store **out, struct mg_diag *d);
/* exit: 0..255, 128+signal, or -1 when unknown (killed). Flushes and joins the writer thread. */
void mg_store_close(struct mg_store *s, int exit_code);
void mg_store_forked(struct mg_store *s); /* in a forked child, once: it records nothing */
void mg_store_flush(struct mg_store *s);  /* blocks until what was queued is on disk */
/* The process may end without closing: what was queued goes to disk, with this exit status. Whatever
 * is recorded afterwards takes that back. Blocks for 2 s at most, also under a signal handler. */
void mg_store_leave(struct mg_store *s, int exit_code);
/* To the database of a process that is no more: so many of its launches are not in it. */
enum mg_err mg_store_missing(const char *path, uint64_t n, const char *reason, struct mg_diag *d);
/* The same of what a tool left: the members of a JSON object, written without spaces between keys and values. */
enum mg_err mg_store_results(const char *path, const char *tool, const char *object, struct mg_diag *d);
/* The launcher's record of run number `run` (unique in DIR), once before and once after: exit_code -1 while it runs.
 * Also says what ran when the program never made a CUDA call. Makes DIR when absent. */
enum mg_err mg_store_run(const char *dir, uint64_t run, uint32_t pid, const char *const *argv, uint32_t argc,
                         int exit_code, struct mg_diag *d);

struct mg_store_kernel {
    const char *name, *demangled, *module;  /* module: 32 hex digits of the PTX text; "" when there is no PTX */
    int32_t regs_native, regs_instrumented; /* -1 unknown */
    bool regs_estimated;
    uint64_t built_unix_ns;       /* when the file that the module was loaded from was written; 0: not known */
    const struct mg_sites *sites; /* NULL: nothing known (no PTX) */
};
/* Dense id from 0. */
uint32_t mg_store_kernel(struct mg_store *s, const struct mg_store_kernel *k);
/* What was not known when the kernel first ran, native then: module, registers of the twin, sites. Once a kernel. */
void mg_store_kernel_found(struct mg_store *s, uint32_t kernel, const struct mg_store_kernel *k);
/* Source files and module texts, stored once (compressed), so that a report can show lines. */
void mg_store_module(struct mg_store *s, const char *id, const char *ptx, size_t bytes);

/* Why a launch that ran to its end has no counts, told in mg_store_done.why. */
#define MG_SPOILT        "the program wrote into it"
#define MG_SPOILT_WORDS  MG_SPOILT ": words beside its counters are no longer what they were"
#define MG_SPOILT_COUNTS MG_SPOILT ": its counts contradict one another"
enum mg_ran {
    MG_RAN_INSTRUMENTED,
    MG_RAN_NATIVE,
    MG_RAN_FAILED /* instrumentation failed, native ran */,
    MG_RAN_UNKNOWN,
    MG_RAN_COUNT
};
enum mg_arg_kind { MG_ARG_VALUE, MG_ARG_POINTER };
struct mg_store_arg {
    uint32_t offset, bytes;
    enum mg_arg_kind kind;
    uint64_t allocation, allocation_off;
    const void *value;
};
#define MG_GRAPH_DEVICE UINT64_MAX /* in place of a graph: a kernel made the launch */
struct mg_store_launch {
    uint32_t kernel;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t static_shared_bytes, dyn_shared_bytes;
    uint32_t device;
    uint64_t stream, ctx; /* dense numbers in order of creation, 0 = the default one; never handles */
    uint64_t graph;       /* 0: direct; else graph exec number */
    enum mg_ran ran;
    const char *reason; /* why not instrumented; NULL when it is */
    bool cooperative;
    uint64_t tools; /* bit u: ran with tool u of mg_store_use; from 63 on none is noted */
    const struct mg_store_arg *args;
    uint32_t n_args;
};
/* Written as incomplete at once; dense id from 0, in order of calls. Copies everything. */
uint64_t mg_store_launch(struct mg_store *s, const struct mg_store_launch *l);
/* The driver rejected it: no launch took place. Its id is not used again. */
void mg_store_launch_drop(struct mg_store *s, uint64_t launch);
struct mg_store_done {
    bool complete;
    const char *why;   /* incomplete: one line; NULL else */
    uint64_t start_ns; /* since process start */
    uint64_t time_ns;
    bool timed;
    uint64_t replays;        /* graph nodes: replays these counts are the sum of; 1 else (0 reads as 1) */
    const uint64_t *threads; /* [n_blocks] or NULL: not measured */
    const uint64_t *warps;   /* [n_blocks] or NULL */
    uint32_t n_blocks;
    int schedule_dependent; /* warp counts depend on the schedule (docs/schedule.md): 1, 0 not, -1 unknown */
};
void mg_store_launch_done(struct mg_store *s, uint64_t launch, const struct mg_store_done *done);
/* Launches nobody could count, with the reason. The writer itself adds one of this name when recording stops: launches
 * that ran and are not in the profile. */
#define MG_STORE_NOT_WRITTEN "not written"
void mg_store_unknown(struct mg_store *s, const char *what, uint64_t n, const char *reason);
/* Free-form result of a tool: JSON text kept under tools/<tool>/<key>. */
void mg_store_tool_json(struct mg_store *s, const char *tool, const char *key, const char *json);

/* ---- tools: what they placed in a kernel, and what that counted (cells.c) ------------------------ */
/* A tool of the process; dense number from 0. path: of its shared object, NULL: built in. */
uint32_t mg_store_use(struct mg_store *s, const char *name, const char *args, const char *path);
struct mg_store_table {
    uint32_t site, n_keys, n_cells;
    enum mg_merge rule;
};
struct mg_store_region { /* the same in every twin of the kernel */
    uint32_t use, kernel;
    const char *reason; /* why the tool left the kernel alone; NULL: it did not */
    const struct mg_result_site *sites;
    uint32_t n_sites;
    const uint8_t *rules;
    uint32_t n_cells; /* enum mg_merge of each */
    const struct mg_store_table *tables;
    uint32_t n_tables;
};
/* Cells of one region, merged over launches and committed as often as launches are. Owner: the store,
 * until it closes; NULL: not recorded. */
struct mg_account;
struct mg_account *mg_store_region(struct mg_store *s, const struct mg_store_region *r);
/* Before mg_store_launch_done of the launch. keep: the launch's own cells, too. */
void mg_account_add(struct mg_account *a, const uint64_t *cells, uint64_t launches, bool keep, uint64_t launch);
void mg_account_entry(struct mg_account *a, uint32_t table, const uint64_t *keys, const uint64_t *cells);
void mg_account_lost(struct mg_account *a, uint32_t table, uint64_t n);

/* ---- reading (report/, study/): the join over all processes of DIR ---------------------------- */
struct mg_recording; /* everything in memory, arena-owned, kernels merged by (module, name) in order of first use */
struct mg_pblock {
    const char *function, *label, *file;
    uint32_t id, ptx_line, line, n_insts;
    const uint32_t *succs;
    uint32_t n_succs;
    const struct mg_site_op *ops;
    uint32_t n_ops;
    uint64_t threads, warps;
    bool has_threads, has_warps;
    const char *timing;   /* as written; NULL: before version 4 */
    int timing_dependent; /* 1: its count may depend on timing (analysis/timing.h), 0: not, -1: not known */
    int apart; /* 1: on a GPU it is open whether lanes have met in front of it (analysis/meet.h), 0: not, -1: not known
                  (before version 9) */
};
struct mg_pkernel {
    uint32_t id;
    const char *name, *demangled /* never NULL */, *module;
    int32_t regs_native, regs_instrumented;
    bool regs_estimated;
    bool has_sites;
    uint64_t
        built_unix_ns; /* when the program or library that has it was written, the latest of several; 0: not known */
    struct mg_pblock *blocks;
    uint32_t n_blocks;
    uint64_t launches, repeats /* besides, by --repeat */, incomplete, instrumented,
        spoilt /* complete, without counts: mg_plaunch.spoilt */;
    int schedule_dependent; /* of any launch: 1; -1 unknown of some, 0 of none */
    uint64_t threads_launched;
    uint64_t time_ns, timed_launches;
    /* Counted in one CTA or warp a launch and scaled to the grid (enum mg_count_scope): block counts are estimates. */
    bool estimated;
    enum mg_count_scope scope;
    uint64_t measured_thread_insts; /* before scaling, of the scaled launches */
    bool has_error;
    double error_pct; /* of scaled thread instructions against launches of equal geometry that were counted in full; the
                         worst geometry */
};
struct mg_plaunch {
    uint64_t id;
    uint32_t process, kernel;
    uint32_t grid[3], block[3], cluster[3], static_shared_bytes, dyn_shared_bytes, device;
    uint64_t stream, ctx, graph;
    enum mg_ran ran;
    const char *reason;
    bool complete, unended /* its end was not written: recording had stopped */, timed, cooperative,
        repeat /* of --repeat, not the program's */,
        spoilt /* the program wrote into its counts, `why` says more: it has none */;
    const char *why;
    uint64_t start_ns, time_ns, replays;
    int schedule_dependent; /* as in mg_store_done */
    struct mg_store_arg *args;
    uint32_t n_args;
    const uint64_t *threads, *warps;
    uint32_t n_counts;
    uint64_t tools; /* bit u: ran with mg_recording.uses[u] */
};
struct mg_pprocess {
    const char *path; /* of its database */
    uint32_t pid, ppid;
    int32_t rank;
    const char *exe;
    const char **argv;
    uint32_t argc;
    const char *device_kind, *device_name, *properties, *tools;
    uint32_t sms, sm;
    int exit_code;
    bool closed;
    enum mg_count_scope scope;
    uint64_t scope_cta;
    uint32_t scope_warp; /* which of them scope means */
    uint64_t start_unix_ns, run;
    const char *host, *version; /* of the machine; of Margay that wrote it; NULL: not known */
};
struct mg_prun {
    uint64_t run; /* 0 before version 2 */
    uint32_t pid;
    const char **argv;
    uint32_t argc;
    int exit_code;
}; /* by a launcher; -1: not ended or unknown */
struct mg_punknown {
    const char *what, *reason;
    uint64_t n;
    bool not_written; /* they ran; recording had stopped */
};
struct mg_ptool {
    const char *tool, *key, *json;
    uint32_t process;
};
/* Tools: joined over processes by name, options and path; regions by tool and kernel while their shapes agree. */
struct mg_puse {
    const char *name, *args, *path;
};
struct mg_ptable {
    uint32_t site, n_keys, n_cells;
    enum mg_merge rule;
    const uint64_t *words; /* n times keys, then cells; sorted by keys */
    uint64_t n, lost;
};
struct mg_pregion {
    uint32_t use, kernel;
    const char *reason;
    const struct mg_result_site *sites;
    uint32_t n_sites;
    const uint8_t *rules;
    uint64_t *cells;
    uint32_t n_cells;
    uint64_t counted; /* launches */
    struct mg_ptable *tables;
    uint32_t n_tables;
};
struct mg_plaunch_cells {
    uint64_t launch;
    uint32_t region;
    const uint64_t *cells;
};
struct mg_recording {
    struct mg_arena arena;
    struct mg_intern names; /* texts of the rows */
    const char *dir;
    struct mg_prun *runs;
    uint32_t n_runs;
    uint32_t n_empty; /* processes that claimed a database and could write nothing into it */
    struct mg_pprocess *processes;
    uint32_t n_processes; /* the first to make a CUDA call first, then by rank and start */
    struct mg_pkernel *kernels;
    uint32_t n_kernels;
    struct mg_plaunch *launches;
    uint64_t n_launches;
    struct mg_punknown *unknowns;
    uint32_t n_unknowns;
    struct mg_ptool *tools;
    uint32_t n_tools;
    struct mg_puse *uses;
    uint32_t n_uses;
    struct mg_pregion *regions;
    uint32_t n_regions; /* by use, then kernel */
    struct mg_plaunch_cells *launch_cells;
    uint64_t n_launch_cells; /* in order of launches */
    const char **damaged;
    uint32_t n_damaged; /* databases that could not be read, or (of all runs) that hold no process: one line each, with
                           path and cause */
};
/* Works on a live, killed or read-only DIR, without changing it. Block counts of kernels are the sum
 * over complete launches. Errors name the path: no such DIR, no profile in it, a damaged database,
 * one written by a newer version. Where other processes' databases are good the profile is of these
 * and lists the bad ones. */
enum mg_err mg_recording_open(const char *dir, struct mg_recording **out, struct mg_diag *d) MG_MUST_CHECK;
/* The same of one run alone (mg_store_process.run); a DIR without any process of it is no error. */
enum mg_err mg_recording_open_run(const char *dir, uint64_t run, struct mg_recording **out,
                                  struct mg_diag *d) MG_MUST_CHECK;
void mg_recording_free(struct mg_recording *p);
/* Copies every database of the n profiles into `to` (absent or empty). A process without a rank gets
 * its profile's index when there are several. Sources are not changed. */
enum mg_err mg_recording_merge(const char *to, const char *const *dirs, uint32_t n, struct mg_diag *d) MG_MUST_CHECK;
/* PTX text of a module, malloc'd, NULL when it was not kept. */
char *mg_recording_module(const char *dir, const char *id, size_t *bytes);

#endif
