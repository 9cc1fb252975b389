/* What one worker of the analysis has: its pages, and what it found in the launch at hand. comm.c divides the work,
 * comm_pass.c does it. */
#ifndef MG_STUDY_COMM_WORKER_H
#define MG_STUDY_COMM_WORKER_H

#include "base/sort.h"
#include "study/comm_gaps.h"
#include "study/shadow.h"

struct source { /* of the target at hand */
    uint32_t step, entity;
    uint64_t bytes, executed, reads, fresh;
    uint64_t access; /* number of the lane access that counted last */
};
struct comm_worker {
    struct mg_comm *comm;
    uint32_t number;
    struct shadow shadow;
    /* the target at hand and its sources */
    uint32_t target;      /* entity */
    uint32_t mark;        /* of the target, see struct old_cell */
    uint32_t *sources_at; /* hash of indices + 1 */
    uint32_t sources_cap;
    MG_VEC(struct source) sources;
    MG_VEC(struct mg_sort_key) keys;   /* of the sources, in two halves */
    uint64_t access;                   /* lane accesses so far */
    uint32_t last_writer, last_source; /* writer of a cell and its source, of this target */
    struct mg_comm_volume used;        /* of the CTA at hand */
    /* found in this launch */
    MG_VEC(struct mg_comm_edge) edges;
    uint64_t in_launch, in_launch_atomic, ambiguous, ambiguous_most;
    struct gap_runs loads; /* addresses of the CTA at hand */
    struct gap_spans load_spans;
    struct gap_stores stores; /* of all launches */
    uint64_t read_by_host;
};

struct stream_steps {
    uint32_t device, context, stream, n;
}; /* launches so far */

struct mg_comm {
    struct mg_comm_opts opts;
    struct comm_worker *workers;
    MG_VEC(struct mg_comm_step) steps;
    MG_VEC(uint32_t) first_entity; /* of each step, in one row of all steps */
    MG_VEC(char *) kernels;
    MG_VEC(struct mg_comm_edge) edges;
    MG_VEC(struct stream_steps) streams;
    struct gap_spans spans; /* of all launches, kept where there are several ranks */
    uint32_t n_shares;      /* of memory: workers of all ranks */
    struct mg_map load_gaps, store_gaps;
    struct mg_comm_result result;
    bool finished;
    /* the launch at hand */
    const struct mg_comm_launch *launch;
    struct mg_comm_step *step;
    uint32_t *order; /* its accesses, those of a target together */
    uint32_t entity_base;
    uint16_t n_sms;
    uint64_t units;            /* of all steps */
    uint64_t volumes, longest; /* for mg_comm_json_most: CTAs and multiprocessors of all steps; a kernel's name */
    uint64_t entities;
};

/* Runs the launch at hand over the worker's pages. */
void comm_pass(struct comm_worker *w);
/* Stores of all workers, in the first one's list. */
struct gap_stores *comm_join_stores(struct mg_comm *c);
uint32_t comm_entity_of_unit(const struct mg_comm *c, const struct mg_comm_step *s, uint32_t unit);
const struct mg_comm_step *comm_step_of_unit(const struct mg_comm *c, uint32_t unit);

#endif
