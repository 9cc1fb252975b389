/* Communication between launches: which entity wrote the bytes that another one read later. The thesis
 * "Characterization Of GPU Communication" defines the data sets; docs/studies/communication.md has every rule.
 *
 *   launches and host events, in order ──► mg_comm ──► steps (volumes by launch and CTA), edges (transfers)
 *                                                         │
 *                                                         └► comm_metrics.h ──► text, JSON, CSV, SVG
 *
 * A superstep is a launch, numbered in its stream. The analysis keeps the last writer of every cell of memory that a
 * launch wrote (shadow.h) and takes each launch in two passes: stores, then loads. It needs the accesses of one launch
 * at a time. Results are equal for every number of workers and every order of a launch's records. */
#ifndef MG_STUDY_COMM_H
#define MG_STUDY_COMM_H

#include "base/diag.h"
#include "base/vec.h"

enum mg_comm_kind { MG_COMM_LOAD, MG_COMM_STORE, MG_COMM_ATOMIC };
enum mg_comm_entity { MG_COMM_CTA, MG_COMM_WARP, MG_COMM_THREAD, MG_COMM_SM, MG_COMM_KERNEL };
enum mg_comm_match {
    MG_COMM_BYTE,  /* a read belongs to the writers of its bytes */
    MG_COMM_START, /* as in the thesis: to the last write that began at the same address */
};

enum { MG_COMM_LISTED = INT32_MIN, MG_COMM_NO_SM = UINT16_MAX };
struct mg_comm_access { /* of one warp */
    uint64_t base;      /* address of the lowest lane in the mask */
    int32_t stride;     /* bytes from one lane in the mask to the next; MG_COMM_LISTED: see first */
    uint32_t mask;
    uint64_t first;    /* MG_COMM_LISTED: index in the launch's addresses, one for each lane in the mask */
    uint32_t cta;      /* linear, x fastest */
    uint32_t order;    /* rises along the accesses of a warp */
    uint32_t phase;    /* barriers of the CTA that the warp has passed; 0 where nobody knows */
    uint32_t bytes;    /* of a lane */
    uint16_t warp, sm; /* sm: MG_COMM_NO_SM: not known */
    uint8_t kind;      /* enum mg_comm_kind */
};
struct mg_comm_launch {
    uint64_t id, replay;
    const char *kernel;
    uint32_t device, context, stream;
    uint32_t grid[3], block[3];
    const struct mg_comm_access *accesses;
    uint64_t n_accesses;
    const uint64_t *addresses;
};

struct mg_comm_opts {
    size_t size;
    enum mg_comm_entity entity;
    enum mg_comm_match match;
    unsigned workers;     /* 0: one for each processor */
    uint32_t rank, ranks; /* of several processes (comm_part.h); ranks 0, 1: this one alone */
    bool keep_addresses;  /* for mg_comm_communicates */
};

struct mg_comm_volume {
    uint64_t load, store, atomic;
};
struct mg_comm_step { /* a launch */
    uint64_t id, replay;
    uint32_t kernel; /* index of its name */
    uint32_t device, context, stream;
    uint32_t superstep; /* in its stream */
    uint32_t grid[3], block[3], n_ctas;
    uint32_t per_cta;                    /* units of the shadow in a CTA: 1, warps or threads */
    uint32_t first_unit;                 /* number of its first unit */
    uint32_t first_edge, n_edges;        /* edges that end here */
    struct mg_comm_volume *total, *used; /* by CTA; used: of addresses that communicate */
    uint16_t *sm;                        /* by CTA */
    uint64_t read_by_host;               /* bytes that copies took out before anybody overwrote them */
    uint64_t in_launch, in_launch_atomic, ambiguous,
        ambiguous_most; /* executed bytes of loads: comm_text.c has the words */
};
#define MG_COMM_SEVERAL UINT32_MAX
struct mg_comm_edge {
    uint32_t source_step, target_step;
    uint32_t source, target;  /* entities: numbers in their step; MG_COMM_SEVERAL: more than one wrote the cell */
    uint64_t bytes;           /* distinct */
    uint64_t executed, reads; /* every read again */
    uint64_t fresh; /* distinct bytes that no target of a lower number in this step has read from the source */
};
struct mg_comm_gap {
    uint64_t bytes, count;
};
typedef MG_VEC(struct mg_comm_gap) mg_comm_gaps;

struct mg_comm_result { /* owner: the mg_comm */
    struct mg_comm_opts opts;
    const char *const *kernels;
    uint32_t n_kernels;
    const struct mg_comm_step *steps;
    uint32_t n_steps;
    const struct mg_comm_edge *edges; /* by target step, target, source step, source; several last */
    uint32_t n_edges;
    mg_comm_gaps load_gaps, store_gaps; /* between sorted distinct addresses of a CTA in a launch, by size */
    uint64_t copied_in, copied_out, copied_within, cleared; /* bytes of copies and memsets */
    bool knows_sm;
};

struct mg_comm;
struct mg_comm *mg_comm_new(const struct mg_comm_opts *o);
void mg_comm_free(struct mg_comm *c);
/* Launches and host events, in their order. MG_ERR_LIMIT: more than 2^31 units. */
enum mg_err mg_comm_add_launch(struct mg_comm *c, const struct mg_comm_launch *l, struct mg_diag *d) MG_MUST_CHECK;
void mg_comm_add_copy_in(struct mg_comm *c, uint64_t address, uint64_t bytes);  /* from the host */
void mg_comm_add_copy_out(struct mg_comm *c, uint64_t address, uint64_t bytes); /* to the host */
void mg_comm_add_copy_within(struct mg_comm *c, uint64_t to, uint64_t from, uint64_t bytes);
void mg_comm_add_memset(struct mg_comm *c, uint64_t address, uint64_t bytes);
void mg_comm_add_allocation(struct mg_comm *c, uint64_t address, uint64_t bytes); /* and a free: nobody wrote it yet */
const struct mg_comm_result *mg_comm_finish(struct mg_comm *c);
uint64_t mg_comm_json_most(const struct mg_comm *c); /* bytes that the result takes as JSON, so far: rather too many */

/* Whether one of these bytes was ever written by a launch and read by a later one. */
bool mg_comm_communicates(const struct mg_comm *c, uint64_t address, uint64_t bytes);

/* How many entities a step has, and the CTA of one (MG_COMM_CTA, WARP, THREAD). */
uint32_t mg_comm_entities(const struct mg_comm_result *r, const struct mg_comm_step *s);
uint32_t mg_comm_cta_of(const struct mg_comm_step *s, uint32_t entity);

#endif
