/* Loops whose accesses tool trace records once, where the loop is left: which they are (loops.c), and the code. See
 * loops.c. */
#ifndef MG_TOOL_TRACE_LOOPS_H
#define MG_TOOL_TRACE_LOOPS_H

#include "patch/patch.h"
#include "record/channel.h"
#include "tool/trace/strides.h"

struct mg_trace_item { /* an instruction that is recorded */
    const struct mg_patch_inst *inst;
    uint32_t number; /* of the instruction */
    struct mg_access a;
    bool access;     /* with an address, of global memory as far as can be told; else only that lanes come here */
    bool in_group;   /* it is recorded with those behind it */
    bool one_by_one; /* it does not stand for the lanes that come here: no loop may hold it */
    uint32_t loop;   /* in which it is recorded: number in mg_trace_loops.at; UINT32_MAX: none */
    uint32_t site, cell;
    struct mg_stride how;
    /* registers: address of this round (b64); what was widened to it (b32); of a loop whose rounds are compared, the
     * next round's address, if it is as far on, and how far (b64) */
    mg_id now, low, next, stride;
    int64_t off; /* of its address to `now`, which it has from another one */
};
struct mg_trace_loop {
    uint32_t in_func;                         /* number in mg_loops */
    uint32_t items[MG_CHANNEL_MOST_GROUP], n; /* in the order of a round */
    uint32_t look;                            /* of these: in front of which one addresses are compared */
    uint32_t accesses;                        /* of them, with addresses */
    bool compares;                            /* addresses of each round; else the last ones tell the others */
    bool is_long;                             /* it may go round more often than 32 bits tell */
    mg_id rounds;                             /* register, b32, of long ones b64 */
};
struct mg_trace_loops {
    struct mg_trace_loop *at;
    uint32_t n;
    bool quiet; /* all that is in loops is recorded where they are left */
};

/* How many items from `first` on one record can hold (groups.c). */
uint32_t mg_trace_group_from(struct mg_patch *p, const struct mg_trace_item *items, uint32_t n, uint32_t first);
/* Does a lane come once at most to each place that writes? */
bool mg_trace_comes_once(struct mg_patch *p, const struct mg_trace_item *items, uint32_t n);
/* Their addresses, kept until the last of them: items[i].now. */
void mg_trace_keep_addresses(struct mg_patch *p, struct mg_trace_item *items, uint32_t n);

/* Which loops of the kernel can be recorded so; sets items[i].loop. Owner of what is found: the patch. */
struct mg_trace_loops mg_trace_find_loops(struct mg_patch *p, struct mg_trace_item *items, uint32_t n);
struct mg_trace_rounds {                                               /* what is written */
    mg_id rounds;                                                      /* b32 */
    mg_id first[MG_CHANNEL_MOST_GROUP], stride[MG_CHANNEL_MOST_GROUP]; /* b64, by item; 0: no address */
};
/* The code of a loop whose items have their sites. write: the lanes at the spot write a record of rounds. */
typedef void mg_trace_write_fn(void *user, struct mg_code_at *at, const struct mg_trace_loop *l,
                               const struct mg_trace_rounds *r);
void mg_trace_put_loop(struct mg_patch *p, struct mg_trace_loop *l, struct mg_trace_item *items,
                       mg_trace_write_fn *write, void *user);

#endif
