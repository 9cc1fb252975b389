/* What communication means for other machines: launches that could be one, clusters, several GPUs. A model: its
 * assumptions are printed with it. */
#ifndef MG_STUDY_COMM_SCALE_H
#define MG_STUDY_COMM_SCALE_H

#include "study/comm_metrics.h"

enum { MG_COMM_LEAST_CLUSTER = 2, MG_COMM_MOST_CLUSTER = 16 }; /* CTAs, powers of two */

/* Launches of `to` right behind launches of `from` in a stream. */
struct mg_comm_pair {
    uint32_t from, to; /* kernels */
    uint64_t times;    /* of which `to` */
    uint64_t free;     /* reads nothing of `from` */
    uint64_t own;      /* reads of each CTA's own alone: one kernel could do both without a barrier of the grid */
    uint64_t bytes, own_bytes; /* distinct, from one to the other; of `own` */
};
struct mg_comm_advice {
    MG_VEC(struct mg_comm_pair) pairs;
    uint64_t next_bytes;    /* from a launch to the next one of its stream */
    uint64_t same_cta;      /* of these: to the same CTA number */
    uint64_t in_cluster[4]; /* to a CTA of the same 2, 4, 8, 16 neighbours */
};
void mg_comm_advice_init(struct mg_comm_advice *a, const struct mg_comm_result *r);
void mg_comm_advice_release(struct mg_comm_advice *a);

enum mg_comm_placement { MG_COMM_BLOCKS, MG_COMM_CYCLIC, MG_COMM_CUT, MG_COMM_PLACEMENT_COUNT };
const char *mg_comm_placement_name(enum mg_comm_placement p);
struct mg_comm_link {
    double memory_gbs, link_gbs, latency_us;
}; /* of a GPU; the link: one direction */
struct mg_comm_scale {
    uint32_t gpus;
    enum mg_comm_placement placement;
    uint64_t bytes;      /* between GPUs */
    uint64_t most_bytes; /* of the superstep with most */
    uint64_t unplaced;   /* of `bytes`: several writers, taken as from another GPU */
    double speedup;      /* bound: memory and link alone cost time */
};
typedef MG_VEC(struct mg_comm_scale) mg_comm_scales;
/* For 2, 4, 8, 16 GPUs and each placement; none where entities have no place in a grid. */
void mg_comm_scale(const struct mg_comm_result *r, const struct mg_comm_metrics *m, const struct mg_comm_link *link,
                   mg_comm_scales *out);

#endif
