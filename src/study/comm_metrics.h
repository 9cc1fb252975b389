/* The thesis' metrics (its sections 6.1 to 6.9 and 4.2.2) of the steps and edges that comm.h found. */
#ifndef MG_STUDY_COMM_METRICS_H
#define MG_STUDY_COMM_METRICS_H

#include "study/comm.h"

struct mg_comm_bin {
    uint64_t value, count;
}; /* so many things have this value */
typedef MG_VEC(struct mg_comm_bin) mg_comm_bins;
struct mg_comm_cell {
    uint32_t source, target;
    uint64_t reads, bytes;
}; /* CTA numbers, kernels and supersteps merged */
typedef MG_VEC(struct mg_comm_cell) mg_comm_cells;
enum mg_comm_pattern {                         /* of an edge among those of its target step */
                       MG_COMM_POINT_TO_POINT, /* its source has this target alone, its target this source */
                       MG_COMM_GATHER,         /* the target has several sources, each of them this target alone */
                       MG_COMM_SCATTER,        /* the source has several targets that read different bytes */
                       MG_COMM_MULTICAST,      /* the same, and some bytes are read by several */
                       MG_COMM_ALL,            /* several sources and several targets */
                       MG_COMM_PATTERN_COUNT
};
const char *mg_comm_pattern_name(enum mg_comm_pattern p);
struct mg_comm_by_step { /* out-degree of a step's entities, and the patterns of the edges that end in it */
    double mean, deviation, active_mean, active_deviation; /* active: of those that have a partner */
    uint64_t active;
    struct {
        uint64_t edges, bytes;
    } pattern[MG_COMM_PATTERN_COUNT];
};
struct mg_comm_side {
    bool is_known;
    uint64_t bytes;
};
struct mg_comm_metrics {
    mg_comm_bins sizes;                 /* transfers by distinct bytes */
    mg_comm_bins in_degree, out_degree; /* entities of all steps by partners, those of none, too */
    struct mg_comm_side bisection[3];   /* x, y, z */
    uint64_t bytes;                     /* of all edges */
    uint64_t unplaced;                  /* of them, with several writers or entities that have no place in a grid */
    mg_comm_cells density;              /* by source, target */
    uint32_t density_ctas;              /* one more than the highest number in it */
    mg_comm_bins distance;              /* bytes (count) by supersteps between (value) */
    uint64_t other_stream;              /* bytes of edges between streams, which have no distance */
    struct mg_comm_by_step *steps;      /* one for each step */
    struct mg_comm_volume total, used;
};
void mg_comm_metrics_init(struct mg_comm_metrics *m, const struct mg_comm_result *r);
void mg_comm_metrics_release(struct mg_comm_metrics *m);
/* Whether entities have a place in the grid: the CTA's. */
bool mg_comm_has_ctas(const struct mg_comm_result *r);

#endif
