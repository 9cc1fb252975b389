/* Calls that the application makes, on the time line: begin, end, arguments, result, thread.
 *
 *   exported cu* ── jump ──► mg_targets ──► hook or slot                    not recorded
 *                                     └──► mg_traced (generated) ── mg_calls_enter ── hook or slot ── mg_calls_leave
 *
 * A recorded call has a number (correlation) by which the device work that it enqueues names it. What Margay calls
 * itself goes through slots and is never recorded. */
#ifndef MG_INJECT_CALLS_H
#define MG_INJECT_CALLS_H

#include "base/compiler.h"
#include "inject/hooks.h"

extern void *mg_targets[MG_FN_COUNT];            /* where an exported entry jumps to */
extern void *const mg_traced_table[MG_FN_COUNT]; /* the same entry, recorded */

enum { MG_CALL_MOST_ARGUMENTS = 16 };
struct mg_runtime_function { /* kept by the library in front of the runtime, filled by us */
    const char *name;
    uint32_t number;        /* of the name in the file; 0: not told yet */
    uint8_t class_, wanted; /* wanted: 0 not asked yet, 1 recorded, 2 not */
    bool class_known;
    uint8_t layer; /* 0: of the runtime */
};
struct mg_call_frame { /* in the stack frame of mg_traced: 256 bytes at most (scripts/gen-thunks) */
    uint64_t begin_ns, correlation;
    struct mg_call_frame *outer; /* the call inside which this thread makes this one; NULL: none */
    const void *caller;          /* address behind the application's call */
    uint32_t entry, n_args;
    struct mg_runtime_function *function; /* of a call that is none of the driver's; NULL: entry names it */
    uint8_t layer, class_;                /* then */
    bool wanted, step;                    /* step: steps.c is told */
    uint64_t order;                       /* of a step */
    struct mg_gpu_work *work;             /* NVIDIA: the pair of events around it, NULL: none */
    uint64_t stack;                       /* of the host, 0: not taken */
    uint32_t stream, context;             /* of a call that asks or waits: their numbers; UINT32_MAX: none */
    uint64_t args[MG_CALL_MOST_ARGUMENTS];
};
_Static_assert(sizeof(struct mg_call_frame) <= 256, "room in the frame of mg_traced");

void *mg_calls_enter(struct mg_call_frame *f, uint32_t entry, const uint64_t registers[6], const uint64_t *stack);
void mg_calls_leave(struct mg_call_frame *f, cu_result result);

/* How the library in front of the CUDA runtime (forward/) reaches us: a table of the driver's interface that has this
 * number. */
#define MG_RUNTIME_LINK                                                                                                \
    {                                                                                                                  \
        {                                                                                                              \
            'M', 'a', 'r', 'g', 'a', 'y', ' ', 't', 'i', 'm', 'e', ' ', 'l', 'i', 'n', 'e'                             \
        }                                                                                                              \
    }
enum mg_link_record { MG_LINK_MESSAGE, MG_LINK_COMMUNICATOR, MG_LINK_CLOCK, MG_LINK_COUNT }; /* of span/records.h */
struct mg_runtime_link {
    size_t size;
    void (*enter)(struct mg_call_frame *f, struct mg_runtime_function *function);
    void (*leave)(struct mg_call_frame *f, cu_result result);
    bool (*wants)(struct mg_runtime_function *function);
    /* A record of another kind, with words behind it. */
    void (*put)(enum mg_link_record kind, const void *record, const uint64_t *words, uint32_t n);
};
extern const struct mg_runtime_link mg_runtime_link;

/* Fills the targets: slots and hooks, and with the time line on what records calls. Once, when slots are filled. */
void mg_calls_fill(bool record);
/* From now on only these entries are recorded, and those that have a device do something. */
void mg_calls_choose(const bool wanted[MG_FN_COUNT]);
/* What a program gets that asked for an entry and would have got `p`. */
void *mg_calls_pointer(int entry, void *p);
/* The number of the innermost recorded call of this thread; 0: none. */
uint64_t mg_calls_correlation(void);
uint64_t mg_calls_begin_ns(void); /* and when it began */
/* The innermost call of this thread; NULL where it is not recorded, or none of the driver's. */
const struct mg_call_frame *mg_calls_recorded(void);
void mg_calls_forget(void); /* the innermost call of this thread is not recorded */
/* Address behind the application's call of the entry whose hook asks; `found`: the hook's own return address. */
void *mg_calls_caller(void *found);

#endif
