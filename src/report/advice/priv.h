/* Inside report/advice/. */
#ifndef MG_REPORT_ADVICE_PRIV_H
#define MG_REPORT_ADVICE_PRIV_H

#include "analysis/dom.h"
#include "analysis/same.h"
#include "report/advice/advice.h"
#include "report/buffers.h"
#include "report/lines.h"

#define LEAST_GAIN_PCT 1.0 /* of the program: what gains less, even if launches filled the device, is no finding */

/* ---- what a kernel costs (cost.c): cycles of one multiprocessor, summed over the launches that were counted ------ */
struct waves {                                                 /* of CTAs, summed over launches */
    double launches, all, turns;                               /* turns: one at least */
    double long_launches, long_all, full, last /* not full */; /* of launches of a wave or more */
    double last_ctas, short_ctas; /* of the busiest multiprocessor: in last waves, in launches of less than one */
};
struct tail {         /* the launch that loses most to a last wave that is not full */
    double lost, all; /* all: launches with such a wave */
    uint64_t ctas;
    uint32_t wave;
};
enum part { PART_ISSUE, PART_SHARED, PART_GLOBAL, PART_ATOMIC, PART_COUNT }; /* ORDER mg_work_part */
struct kernel_cost {
    const struct mg_pkernel *k;
    double parts[PART_COUNT];
    double warp_insts, issues; /* of PTX; of the machine (issue.c) */
    double chain;              /* cycles that warps take if each runs alone, of all warps together */
    double share;              /* of the program, 0..1 */
    /* of its direct launches */
    uint64_t launches, direct;
    double counted;  /* part of them that has counts: the others are taken to be like these, but cost nothing here */
    double all_ctas; /* summed over launches; the same by their work; of one multiprocessor that has any */
    double cta_work, sm_work;
    double bytes;             /* that its accesses move if no cache serves any */
    double from_memory, used; /* cycles for bytes that no cache has, and for those that lanes access; 0: not known */
    double memory_range[2];   /* of from_memory, least and most: whatever L2 holds, and lanes leave out between */
    double sector_cycles;     /* for one sector from memory */
    double launching;         /* cycles for launching its CTAs */
    struct waves waves, by_work, by_wait; /* each launch once; times its CTAs' work over the mean; its warps' */
    struct tail tail;
    bool unweighed;                           /* of some launch with counts nobody knows which are its own */
    double most;                              /* work of the launch that has most, */
    uint32_t threads, row_threads, registers; /* and of that launch; row: blockDim.x */
    uint64_t shared_bytes, ctas;
    uint32_t warps_resident, warps_most;
    double warps, empty_lanes;            /* launched; lanes of these that have no thread */
    uint32_t least_threads, most_threads; /* of a CTA, over launches */
    const char *limit;                    /* of resident warps: "registers", "shared memory", "threads", "CTAs" */
    bool imbalanced;                      /* a rule has said so: tail and occupancy are silent */
    double uneven;                        /* part of its instructions' time that the inequality of its CTAs takes */
    bool few_ctas;                        /* a rule has said that multiprocessors get none: no verdict of their peaks */
};
struct peak {
    uint32_t sm;
    const char *name;
    double bytes_cycle;
    uint32_t mhz, l2_mb;
};
struct advice;
const struct peak *find_peak(uint32_t sm, const char *device);

/* ---- why a gain is no larger (limit.c) --------------------------------------------------------------------------- */
/* What else the kernel's time consists of, where mending takes cycles off that part of its work; NULL: nothing. */
const char *say_limit(struct advice *a, const struct kernel_cost *c, enum part part);
/* Warps that a multiprocessor holds at most, as far as the largest launch goes. */
double warps_held(const struct advice *a, const struct kernel_cost *c);
const char *say_number(struct advice *a, double v); /* "203,520" */

/* ---- machine instructions (issue.c) ------------------------------------------------------------------------------ */
/* Of one opcode as profiles write it, and of a block, as schedulers issue them: one that takes twice as long counts 2.
 */
double issues_of_op(const char *op);
double issues_of_block(const struct mg_pblock *b);
/* Of a division by what a loop does not change, or by a constant: what is left in each round. */
double issues_of_op_again(const char *op);

/* ---- divisions (divide.c) ---------------------------------------------------------------------------------------- */
struct division { /* of integers, or a remainder */
    const struct mg_pkernel *k;
    uint32_t block, ptx_line;
    const char *op; /* of the module that a->modules keeps */
    double issues;  /* machine instructions, each time */
    bool by_constant;
};
void find_divisions(struct advice *a);
/* issues_of_block with what its divisions take. */
double issues_of(const struct advice *a, const struct mg_pkernel *k, const struct mg_pblock *b);

/* ---- where a finding is told (place.c) --------------------------------------------------------------------------- */
struct kernel_text {
    bool asked, known;
    struct mg_kernel_lines lines;
    struct mg_cfg *cfg; /* NULL: not asked for yet */
    struct mg_dom *post;
    struct mg_same *same; /* among CTAs */
};
struct place {
    const char *file; /* NULL: not known */
    uint32_t line, ptx_line;
    const char *header; /* of the toolkit, where it is inlined from; NULL: from nowhere */
    uint32_t header_line;
};
struct place place_of_site(struct advice *a, const struct mg_pkernel *k, const struct mg_jval *site);
struct place place_of_line(struct advice *a, const struct mg_pkernel *k, uint32_t ptx_line); /* of an instruction */
/* The line of that file that declares a __shared__ variable of that name, the last one up to the access, else the first
 * behind it; 0: none does. */
uint32_t find_shared(struct advice *a, const char *file, uint32_t access, const char *name, size_t n);
struct ways {                /* of a branch */
    uint32_t n, ptx_line[2]; /* blocks that they begin with, without the one where they meet */
};
/* Does the branch go by the launch's shape, arguments and the thread's place in its CTA alone, so that it parts the
 * same threads of each CTA? false: or that is not known. */
bool ways_of_branch(struct advice *a, const struct mg_pkernel *k, const struct mg_jval *branch, struct ways *w);
/* Names the call that the finding's line was inlined by, behind its text. */
void say_caller(struct advice *a, struct mg_finding *f);
void texts_release(struct advice *a);
bool is_toolkit_header(const char *path);

/* ---- sectors that several loads touch (reuse.c) ----------------------------------------------------------------- */
#define PASS_CYCLES .25 /* of a sector, in a pass through L1: it takes the four of a line */
#define WASTED      1.5 /* times as many sectors as the bytes fill: some are for nothing */
struct site_use {
    double sectors;  /* that it brings: not those that a load beside it has brought; twice, if they are read, too */
    double cycles;   /* for these, or for its passes through L1 where they take longer */
    double ideal;    /* for as few as would do, of the loads beside it together */
    double together; /* sectors that it and the loads beside it bring together */
    bool by_passes;  /* these take longer, and loads beside it use what its sectors bring, */
    bool by_rounds;  /* or later rounds of a loop */
    double wait;     /* of all warps together for its requests */
    /* Of the cycles beyond the ideal: for what lies between lanes that stand in order, since the lanes there are idle,
     * and of these what branches idle (tool lanes), which rule divergence tells. */
    double between, by_branches;
};
/* A load that is to look at memory each time: another thread may change it meanwhile, or a device. */
bool is_read_each_time(const char *op);
bool is_kept_by_l1(const char *op);
struct member { /* a load at an address register that others have, too: offset, width; of a request */
    int64_t offset;
    uint32_t width;
    bool far; /* lanes lie more than 128 bytes apart */
    double sectors, lines;
};
/* Sectors that a request of all of them touches (members.c). constant_step: of each load, lanes have one. */
double sectors_of_members(const struct member *m, uint32_t n, bool constant_step);
/* What tool lanes has of the kernel; NULL: it does not take part. */
const struct mg_jval *lanes_of(const struct advice *a, const struct mg_pkernel *k);
/* Part of a block's lane slots without a lane, of what lanes_of() gives. */
double idle_at(const struct mg_jval *kernel, uint64_t block);
/* By place in tool memory's list, once it is known how CTAs lie. Owner: the caller. */
struct site_use *uses_of_sites(struct advice *a);

struct advice {
    struct mg_facts *facts;
    struct mg_findings *out;
    uint32_t cap;               /* of out->at */
    const struct mg_rule *rule; /* that runs */
    const struct peak *peak;
    uint32_t sms;
    bool nvidia;
    struct mg_lines *modules;
    struct kernel_text *texts; /* by kernel id */
    struct mg_buffers *buffers;
    struct mg_sources *sources;        /* NULL: none was read yet */
    struct kernel_cost *costs;         /* by kernel id */
    struct site_use *uses;             /* by place in tool memory's list; NULL: every sector counts once */
    struct mg_map spans, site_spans;   /* of buffers, and of sites alone, by site (bound.c) */
    unsigned without;                  /* MG_WORK_NO_: tools that do not take part */
    bool counted;                      /* some kernel has counts */
    MG_VEC(struct division) divisions; /* those of a kernel and of a block of it stand together */
};
struct mg_rule {
    const char *name, *tools, *about;
    void (*run)(struct advice *a, const struct mg_rule *self);
};

/* Cycles after which a warp goes on, where no other does beside it: measured on an H200, rounded. */
#define INST_LATENCY   3.   /* the next instruction: less than that of one, since some do not need the one before */
#define SHARED_LATENCY 25.  /* an access to shared memory */
#define GLOBAL_LATENCY 100. /* a load of global memory: most come from L1 or L2, or several are on their way */
#define CACHED_LATENCY 35.  /* one that L1 has, as it has a small buffer that is read again and again */
/* Of shared memory for an atomic that loops until its compare-and-swap succeeds: a pass, and a lane more at its
 * address. Others take what accesses do, and a cycle for each lane more (an H100, 1,024 threads). */
#define ROUND_CYCLES      6.
#define WIDE_ROUND_CYCLES 9.   /* of 64 bits */
#define CTA_CYCLES        160. /* of a multiprocessor, for a CTA to be launched */

/* The costs of all kernels shown, and what finding their places needs; `without`: MG_WORK_NO_. */
void advice_init(struct advice *a, struct mg_facts *f, struct mg_findings *out, unsigned without);
void advice_release(struct advice *a);
void costs_init(struct advice *a);
/* Threads of the CTAs that together have most lanes without one; 0: every lane has one. */
uint32_t emptiest_size(const struct advice *a, const struct kernel_cost *c);
/* What tool values says of the bytes that are accessed of buffers. */
void find_spans(struct advice *a);
/* The bytes of a site's buffer that are accessed, at most: all of it, if tool values did not look at the site. */
uint64_t bytes_of_buffer(const struct advice *a, const struct mg_pkernel *k, const struct mg_jval *site,
                         const struct mg_buffer_name *buffer);
/* Bytes from the lowest to the highest that the site accesses, over all launches. 0: not known. */
uint64_t span_of_site(const struct advice *a, const struct mg_pkernel *k, const struct mg_jval *site);
/* Bytes of a kernel that no cache can serve, at most: those of each buffer once a launch, if its size is known. */
double first_bytes(struct advice *a, const struct kernel_cost *c);
/* Bytes of a kernel that come from memory: of its buffers, once a launch, as far as they do not fit into L2. */
struct memory_bytes {
    double all, used;   /* used: those that come whatever its accesses look like */
    double least, most; /* least: each byte comes once, and L2 holds what it can; most: L2 has none before a launch */
};
struct memory_bytes bytes_from_memory(struct advice *a, const struct kernel_cost *c);
/* Cycles from the begin to the end of its launches together; cycles_at: if the parts overlapped fully, or not at all.
 */
double modelled_cycles(const struct kernel_cost *c);
/* What throughput does not tell: what each warp does one after the other while too few others run beside it, the
 * launching of CTAs, and bytes that come from memory in any case. Cycles of the multiprocessors that have work. */
struct least_times {
    double alone, launching, memory;
};
struct least_times least_times(const struct kernel_cost *c);
double busy_cycles(const struct kernel_cost *c, bool overlap); /* its parts, of all multiprocessors together */
double cycles_at(const struct kernel_cost *c, bool overlap);
/* Multiprocessors that have work, in the mean over launches by how long they work. */
double busy_sms(const struct kernel_cost *c);
/* What it costs when so many cycles of one part go. */
struct kernel_cost without_cycles(const struct kernel_cost *c, enum part part, double cycles);
/* Part of the program's time that goes if the kernel costs what `mended` does. 0..1. */
double gain_if(const struct kernel_cost *c, const struct kernel_cost *mended);
/* Part of the program's time that goes when so many cycles of one part of a kernel's cost go: the mean of what it would
 * be if the parts overlapped fully and if they did not at all. 0..1. */
double gain_of(const struct kernel_cost *c, enum part part, double cycles);
/* The same where warps with idle lanes become fewer, with fuller ones: `latency` is what goes of the chain for
 * accesses, `sectors` what goes of them. */
double gain_of_full_warps(const struct kernel_cost *c, double cycles, double latency, double sectors);
/* Is the site of tool memory an atomic whose lanes the assembler adds up? */
bool is_added_up(struct advice *a, const struct mg_pkernel *k, const struct mg_jval *site);
/* Executions by warps of a block of tool lanes; `threads`: by threads. */
double warps_of(const struct mg_jval *block, double *threads);
bool is_shared(const struct mg_jval *site);
bool is_local(const struct mg_jval *site);
/* The same of the kernel's block of that number. */
double warps_at(const struct mg_jval *kernel, uint64_t block, double *threads);
/* Cycles for each lane beyond the first that has an atomic's address. */
double cycles_at_one_address(const char *op, bool shared, double width);
/* Would it gain LEAST_GAIN_PCT if launches filled the device? */
bool is_worth_if_full(const struct kernel_cost *c, enum part part, double cycles);
/* The same, and anything as they are? */
bool is_worth(const struct kernel_cost *c, enum part part, double cycles);

/* ---- how CTAs lie over multiprocessors (spread.c) ------------------------------------------------------------- */
struct spread {
    bool known;      /* else all multiprocessors are taken to have an even share */
    double length;   /* how many times as long as with equal CTAs the busiest one works */
    double shortest; /* how long the shortest CTA takes over the mean: then the last wave begins */
    double longest;  /* the longest */
    double warps;    /* the same of the warps of a CTA */
};
struct spread spread_of_ctas(const struct mg_jval *row); /* of tool ctas */
double resident_ctas(const struct kernel_cost *c);
struct weight { /* of a launch: what its CTAs, and its warps, have to do, over the mean of the kernel's */
    double work, wait;
};
/* Adds launches of a grid to what is said of waves. */
void add_waves(struct kernel_cost *c, uint64_t ctas, uint32_t wave, uint32_t sms, double times, struct weight w);
/* Cycles from begin to end of its launches. All that longer CTAs do is more (`whole`), or their instructions alone
 * (chain_of_insts: the part of c->chain that these take). */
double cycles_of_spread(const struct kernel_cost *c, struct spread x, double chain_of_insts, bool whole, bool overlap);
/* Of what it takes, what unequal CTAs take more than as many equal ones would, or than equal ones in `full` waves. */
double part_of_unequal(const struct kernel_cost *c, struct spread x, bool full);
/* Do all its launches have as many CTAs, with a last wave that is not full? */
bool has_one_grid(const struct kernel_cost *c);
/* Of the time of launches of a wave or more, in which multiprocessors wait for the last one; 0: or nobody knows. */
double idle_in_tail(const struct kernel_cost *c);
/* Of what launches of a wave or more take, what waves of equal time would save; what these launches take of all. */
double part_of_tail(const struct kernel_cost *c);
double part_of_long(const struct kernel_cost *c);

/* ---- what rules share -------------------------------------------------------------------------------------------- */
/* Rows of one tool's list that belong to one line of the source (or of the PTX where there is none), added up. */
struct line_sum {
    const struct mg_pkernel *k;
    struct place place;
    const char *function, *op, *space;
    uint32_t width;
    double accesses, requests, sectors, ideal, between, conflicts, passes, same, narrow, wide, wider,
        irregular; /* narrow: strides up to 32 bytes; wide: beyond; wider: beyond 128 */
    const struct mg_jval
        *worst; /* the site with most sectors beyond the ideal, bank conflicts or idle slots; NULL: not looked for */
    const struct site_use *use; /* of worst */
    double beyond;              /* how many those are */
    bool regular;               /* every site's conflicts are a whole number a request */
    double values, redundant;
    double cycles; /* that go if it is mended */
    double idle, slots;
    double latency, moved; /* of accesses, that goes with idle slots, or with redundant loads; cycles for sectors */
    uint32_t sites;
    double most; /* of one site: there it is placed */
};
struct line_sums {
    struct line_sum *at;
    uint32_t n, cap;
};
struct line_sum *sum_of_line(struct advice *a, struct line_sums *s, const struct mg_pkernel *k,
                             const struct mg_jval *site);
/* The same, with nothing but the place known. */
struct line_sum *sum_of_place(struct line_sums *s, const struct mg_pkernel *k, struct place at);
bool is_shown(const struct advice *a, const struct mg_jval *site, const struct mg_pkernel **k);

/* A finding of the rule that runs; its share is the kernel's. Left out when its gain is below LEAST_GAIN_PCT, unless it
 * is a verdict (gain 0, verdict true). */
struct mg_finding *add_finding(struct advice *a, const struct kernel_cost *c, double gain, bool exact);
void place_at_line(struct mg_finding *f, const struct line_sum *s);
/* The same of an access, with its buffer. */
void place_at_access(struct advice *a, struct mg_finding *f, const struct line_sum *s);
void place_at_kernel(struct mg_finding *f, const struct mg_pkernel *k);

#define RULE(name, tools, about) void mg_rule_##name(struct advice *a, const struct mg_rule *self);
#include "report/advice/rules.def"
#undef RULE

#endif
