/* Which process of a parallel program this is, as its launcher says in the environment: Open MPI, MPICH and Intel MPI,
 * Cray PALS, PMIx, MVAPICH, torchrun, Slurm. No MPI library is needed. */
#ifndef MG_BASE_RANK_H
#define MG_BASE_RANK_H

#include <stdint.h>

struct mg_rank {
    int32_t rank;  /* -1: it is none of a parallel program */
    uint32_t size; /* processes in all; 0: not known */
    int32_t local; /* number on this host, -1: not known */
    uint64_t job;  /* the same for all ranks that one launcher started on this host */
};
/* get: getenv, or what answers like it. */
struct mg_rank mg_rank_read(const char *(*get)(const char *name));

#endif
