/* Memory accesses of a process as its trace has them (tool trace): what the host asked of the devices, in its order,
 * and of each launch the accesses of its warps, addresses written out.
 *
 *   struct mg_trace_reader *r;                            mg_trace_reader_open(dir, &r, &diag)
 *   struct mg_accesses *a;                                mg_accesses_open(r, 0, &a, &diag)
 *   const struct mg_trace_step *s = mg_accesses_steps(a, &n);
 *   for (i = 0; i < n; i++)
 *       if (s[i].kind == MG_STEP_LAUNCH) {
 *           mg_accesses_begin(a, &s[i]);                  as often as you like
 *           while ((x = mg_accesses_next(a))) ...;
 *       }
 *   mg_accesses_close(a);
 *
 * Memory: all steps, and the accesses of some launches as they are stored; a launch that is larger than that is read
 * from the file each time. One thread uses a handle; several threads open one each, over a reader of their own. */
#ifndef MG_TRACE_ACCESS_H
#define MG_TRACE_ACCESS_H

#include "trace/reader.h"

enum mg_step_kind { /* ORDER STEP_KINDS */
                    MG_STEP_LAUNCH,
                    MG_STEP_ALLOC,
                    MG_STEP_FREE,
                    MG_STEP_COPY,
                    MG_STEP_MEMSET,
                    MG_STEP_KIND_COUNT
};
enum mg_step_flags {
    MG_STEP_TRACED = 1, /* of a launch: its accesses are in the trace; else it ran native */
    MG_STEP_GRAPH = 2,  /* a node of a graph; a call that a graph recorded: it runs when the graph does, not here */
    MG_STEP_COOPERATIVE = 4,
    MG_STEP_PROGRAMMATIC = 8,  /* of a launch: it may begin before the one in front of it has ended */
    MG_STEP_FROM_HOST = 16,    /* of a copy: src is memory of the host that is not known to devices */
    MG_STEP_TO_HOST = 32,      /* of a copy: dst is */
    MG_STEP_ARRAY = 64,        /* of a copy: one side is an array, whose address is not known (0) */
    MG_STEP_MANAGED = 128,     /* of an allocation */
    MG_STEP_HOST_MEMORY = 256, /* of an allocation: memory of the host that devices can reach */
    MG_STEP_CHILD = 512,       /* a launch that a kernel made; its number counts those alone, from 2^62 */
    MG_STEP_TOGETHER =
        1024, /* of a node that may run twice at once: its accesses stand with the last TRACED replay before it */
};
struct mg_trace_step { /* owner: the handle */
    enum mg_step_kind kind;
    unsigned flags;   /* enum mg_step_flags */
    uint64_t order;   /* by which steps are sorted: that of the calls in the process, from 0 */
    uint64_t time_ns; /* of the call */
    uint32_t device, thread;
    uint64_t context, stream; /* dense numbers; stream 0: the default stream */
    const char *name;         /* of a launch: the kernel; else the driver's call */
    /* a launch */
    uint64_t launch, replay; /* number in its process; which run of a graph's node, else 0 */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t shared_bytes; /* dynamic */
    uint64_t graph;        /* number of its graph; 0: none */
    /* memory: `depth` times `height` rows of `width` bytes */
    uint64_t dst, src; /* dst: what is made, freed, written */
    uint64_t bytes;    /* in all; of FREE: of the allocation, 0: not known */
    uint64_t width, height, depth;
    uint64_t dst_pitch, src_pitch, dst_slice, src_slice; /* bytes from row to row, from plane to plane */
};

enum mg_access_kind { /* ORDER ACCESS_KINDS */
                      MG_ACCESS_LOAD,
                      MG_ACCESS_STORE,
                      MG_ACCESS_ATOMIC /* reads and writes; red, too */,
                      MG_ACCESS_BARRIER /* no address */,
                      MG_ACCESS_BLOCK /* with instructions=on: a basic block begins, no address */,
                      MG_ACCESS_INSTRUCTION /* of a block's list */,
                      MG_ACCESS_UNSEEN /* reaches global memory, nobody looks where: textures, tensor copies ... */,
                      MG_ACCESS_KIND_COUNT
};
struct mg_access_site { /* an instruction; owner: the handle */
    enum mg_access_kind kind;
    uint32_t number; /* of the instruction in its kernel: 0, 1, ... in the order of the text */
    uint32_t bytes;  /* of a lane's access; 0: a barrier */
    const char *kernel, *function, *op, *file; /* op: "ld.global.f32"; file "": not known */
    uint32_t line, ptx_line;                   /* line 0: not known */
    /* A block: what the lanes execute until the next block of theirs. Accesses among these have records of their own.
     */
    const struct mg_access_site *instructions;
    uint32_t n_instructions;
};
struct mg_trace_access {                /* of one warp; lives until the next call */
    const struct mg_trace_step *launch; /* NULL: it is not in the trace */
    uint64_t launch_number, replay;
    const struct mg_access_site *site;
    uint64_t cta;            /* linear, x fastest */
    uint32_t warp, sm;       /* warp: in its CTA */
    uint32_t number;         /* order among the warp's accesses: lanes that diverge may have equal ones */
    uint32_t mask, n_lanes;  /* lanes that access global memory */
    const uint64_t *address; /* by lane, 32; of lanes that are not in the mask 0 */
};

struct mg_accesses;
/* file: number in the reader. An error: the file has no accesses. What a damaged chunk held is left out; see
 * mg_accesses_damaged. */
enum mg_err mg_accesses_open(struct mg_trace_reader *r, uint32_t file, struct mg_accesses **out,
                             struct mg_diag *d) MG_MUST_CHECK;
/* The same of a file whose process runs, and says up to which step it is whole (trace.whole), of a reader of
 * mg_trace_reader_follow. Steps come in pieces, all of them in order:
 *
 *   while (s = mg_accesses_more(a, ended, &n), n or not ended) each of s as above
 *
 * ended: the process writes no more: all that are left. Those of the piece before are gone then. What of the file is
 * not needed any more ends at *done. */
enum mg_err mg_accesses_follow(struct mg_trace_reader *r, struct mg_accesses **out, struct mg_diag *d) MG_MUST_CHECK;
const struct mg_trace_step *mg_accesses_more(struct mg_accesses *a, bool ended, uint64_t *n, uint64_t *done);
void mg_accesses_close(struct mg_accesses *a);
/* In order; those of graphs' replays where they were enqueued. */
const struct mg_trace_step *mg_accesses_steps(const struct mg_accesses *a, uint64_t *n);
/* The accesses of a launch from here on, NULL: of no launch. Accesses of one warp come in their order, those of one
 * multiprocessor in about the order in which it made them. */
void mg_accesses_begin(struct mg_accesses *a, const struct mg_trace_step *launch);
const struct mg_trace_access *mg_accesses_next(struct mg_accesses *a); /* NULL: no more */
/* The accesses of one record of the kind trace.accesses, in place of a launch's; launch is NULL where that is not
 * known. The record lives until then. False: it is none. */
bool mg_accesses_begin_record(struct mg_accesses *a, const struct mg_trace_record *r);
/* "trace.access launch=... ..." and a JSON object with the members kind, pid and fields. */
void mg_trace_access_print(const struct mg_trace_access *x, uint32_t pid, struct mg_buf *out);
void mg_trace_access_print_json(const struct mg_trace_access *x, uint32_t pid, struct mg_buf *out);
/* Chunks and records that were left out since they are damaged, and the first one's cause (NULL: none). why may be
 * NULL. */
uint64_t mg_accesses_damaged(const struct mg_accesses *a, const char **why);
/* A trace without some of the accesses: dropped by the channel or left out by --channel 1/N, option sample, selection.
 */
bool mg_accesses_is_partial(const struct mg_accesses *a);

#endif
