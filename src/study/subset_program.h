/* A program as the study of subsets sees it: the sequence of its launches, with what a profile knows of each. Counts
 * may come from one profile and times from another. Repeats (`--repeat`) are left out, graph nodes are launches whose
 * counts sum up their replays. */
#ifndef MG_STUDY_SUBSET_PROGRAM_H
#define MG_STUDY_SUBSET_PROGRAM_H

#include "store/store.h"

enum mg_opclass { /* ORDER OPCLASSES: what an instruction does, the same on every device */
                  MG_OPCLASS_INTEGER,
                  MG_OPCLASS_FLOAT,
                  MG_OPCLASS_DOUBLE,
                  MG_OPCLASS_SPECIAL,
                  MG_OPCLASS_MATRIX,
                  MG_OPCLASS_MOVE,
                  MG_OPCLASS_CONTROL,
                  MG_OPCLASS_BARRIER,
                  MG_OPCLASS_GLOBAL_LOAD,
                  MG_OPCLASS_GLOBAL_STORE,
                  MG_OPCLASS_GLOBAL_ATOMIC,
                  MG_OPCLASS_SHARED_LOAD,
                  MG_OPCLASS_SHARED_STORE,
                  MG_OPCLASS_SHARED_ATOMIC,
                  MG_OPCLASS_LOCAL_LOAD,
                  MG_OPCLASS_LOCAL_STORE,
                  MG_OPCLASS_CONSTANT,
                  MG_OPCLASS_TEXTURE,
                  MG_OPCLASS_OTHER,
                  MG_OPCLASS_COUNT
};
const char *mg_opclass_name(enum mg_opclass c);

struct mg_block_facts {               /* of one entry of one thread */
    double read_bytes, written_bytes; /* global, generic and local memory */
    double ops[MG_OPCLASS_COUNT];
};
struct mg_kernel_facts {
    uint64_t key;                  /* of its name and module: the same in every run */
    struct mg_block_facts *blocks; /* [n_blocks] */
};
struct mg_subset_launch {
    const struct mg_plaunch *l;
    double insts;      /* thread instructions; NAN: not counted */
    double warp_insts; /* NAN: not counted */
    double read_bytes, written_bytes;
    double time_ns;  /* NAN: not timed */
    bool plain_call; /* made by cuLaunchKernel, which alone older tracers number; guessed where has_epochs is not set */
    uint64_t epoch;  /* synchronising calls of its process before it; 0 where they are not known */
    uint32_t thread; /* that made it; 0 where has_epochs is not set */
};
struct mg_subset_trials {
    double *times; /* [n_launches * cap] */
    uint32_t n, cap;
    bool least; /* the least of them counts, not the median */
};
struct mg_subset_program {
    struct mg_arena arena;
    struct mg_recording *p;
    const char *dir;
    struct mg_kernel_facts *kernels;
    struct mg_subset_launch *launches; /* in order of calls, process by process */
    uint64_t n_launches, n_counted, n_timed;
    bool has_epochs; /* the time line was recorded and knows every launch */
    const char *why_no_epochs;
    bool native_times;              /* no timed launch ran instrumented */
    struct mg_subset_trials trials; /* that the times are joined from; n 0: they are of one run */
};

enum mg_err mg_subset_program_open(const char *dir, struct mg_subset_program **out, struct mg_diag *d) MG_MUST_CHECK;
void mg_subset_program_free(struct mg_subset_program *s);
/* Puts the launches of b into the order of a's: each pair has the same kernel, and the same geometry unless
 * any_geometry; else an error that names the first launch that differs (subset_pair.c). */
enum mg_err mg_subset_program_pair(const struct mg_subset_program *a, struct mg_subset_program *b, bool any_geometry,
                                   struct mg_diag *d) MG_MUST_CHECK;
/* Times of each launch in several runs (trials), s the first of them. */
enum mg_err mg_subset_trials_init(struct mg_subset_trials *t, const struct mg_subset_program *s, uint32_t runs,
                                  struct mg_diag *d) MG_MUST_CHECK;
/* They are paired. */
void mg_subset_trials_add(struct mg_subset_trials *t, const struct mg_subset_program *run);
/* The times of s become those of the trials, which it takes: where one of them has none, none. */
void mg_subset_trials_end(struct mg_subset_trials *t, bool least, struct mg_subset_program *s);

/* The times of `from`, and its trials, in place of those of s. They are paired. */
void mg_subset_program_times(struct mg_subset_program *s, struct mg_subset_program *from);

static inline double mg_launch_ctas(const struct mg_plaunch *l)
{
    return (double)l->grid[0] * l->grid[1] * l->grid[2];
}

#endif
