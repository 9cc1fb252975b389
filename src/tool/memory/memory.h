/* Shared by memory.c (sites), tool/memory/count.c (their code) and tool/memory/report.c (what is shown). */
#ifndef MG_TOOL_MEMORY_H
#define MG_TOOL_MEMORY_H

#include "analysis/affine.h"
#include "view/kit.h"

enum mg_memory_level { MG_MEMORY_FULL, MG_MEMORY_BYTES };
struct mg_memory_opts {
    uint32_t level;
};

/* Cells of a site, level=full; level=bytes has the first alone, where the instruction is guarded. Sites of one
 * group (mg_patch_groups) share those of the first (`back`): all of them where addresses that differ by what
 * theirs do ask for the same; else those marked G. The site's own count what is left. Of accesses that are looked at
 * together the first site has these cells twice: those that count for all of them (`back` names it), then its own. */
enum mg_memory_cell {
    MG_MC_ACCESSES, /* G: of a guarded instruction; else the block's thread entries */
    MG_MC_SECTORS,  /* of requests that are neither MG_MC_SAME nor MG_MC_ALIGNED */
    MG_MC_LINES,
    MG_MC_CONFLICTS, /* shared memory: passes beyond the first of each group of lanes */
    /* Requests by the pattern of their addresses; one of them each. */
    MG_MC_SAME,      /* all lanes at one address */
    MG_MC_ALIGNED,   /* 32 lanes in order, from a multiple of 128 bytes on; of global memory alone */
    MG_MC_UNIT,      /* lanes in order, otherwise */
    MG_MC_STRIDE_32, /* one stride between 32 lanes, up to 32 bytes */
    MG_MC_STRIDE_128,
    MG_MC_STRIDE_MORE,
    MG_MC_IRREGULAR, /* anything else, and strides of less than 32 lanes */
    MG_MC_SAME_ALL,  /* G: MG_MC_SAME of all sites of the group */
    MG_MC_COUNT, /* G: behind it, if at all: 32 lanes in order, by where in its line the first lane's bytes begin, in
                    units of a lane's */
};
enum { MG_MC_PATTERNS = MG_MC_SAME_ALL - MG_MC_SAME, MG_MC_MOST_BACK = 255 };

/* A site's note: what the instruction does; which site before it is its group's first, or, of a site without cells, the
 * one whose cells are its own, 0: itself; how far behind the first one's address its own is, modulo 128, in units of 4
 * bytes. */
struct mg_memory_note {
    uint32_t bytes /* of a lane */, vec, space, back, apart;
    bool reads, writes, atomic, guarded, full;
};
static inline uint32_t mg_memory_pack(const struct mg_memory_note *n)
{
    return n->bytes | n->vec << 6 | n->space << 10 | (uint32_t)n->reads << 14 | (uint32_t)n->writes << 15 |
           (uint32_t)n->atomic << 16 | (uint32_t)n->guarded << 17 | (uint32_t)n->full << 18 | n->back << 19 |
           n->apart << 27;
}
static inline struct mg_memory_note mg_memory_unpack(uint32_t v)
{
    return (struct mg_memory_note){.bytes = v & 63,
                                   .vec = v >> 6 & 15,
                                   .space = v >> 10 & 15,
                                   .reads = v >> 14 & 1,
                                   .writes = v >> 15 & 1,
                                   .atomic = v >> 16 & 1,
                                   .guarded = v >> 17 & 1,
                                   .full = v >> 18 & 1,
                                   .back = v >> 19 & 255,
                                   .apart = v >> 27};
}

/* ---- code ------------------------------------------------------------------------------------------------ */

/* Registers that the first of a group leaves to the others: was the request counted for all of them (alike in the lanes
 * here); if not, its pattern, as a lane of the strip. */
struct mg_memory_group {
    mg_id covered, slot;
    mg_id in_step, from; /* predicate: 32 lanes `step` apart, which may be; the low half of lane 0's address. 0: that
                            was not asked */
    int64_t step;
};
/* Functions that several sites call. NULL in requests: all code stands at its site. */
struct mg_memory_function;
struct mg_memory_called {
    struct mg_patch *p;
    MG_VEC(struct mg_memory_function) functions;
};
void mg_memory_called_release(struct mg_memory_called *c);
struct mg_memory_request { /* one site under work */
    struct mg_code_at *at;
    struct mg_module *m;
    enum mg_space space;
    mg_id makes;                  /* predicate: this lane makes the access; 0: all here do */
    mg_id addr;                   /* b64 */
    int64_t off;                  /* what is to be added to it, where the code only says what is meant */
    uint32_t bytes, cell;         /* of a lane; the site's first */
    uint32_t strip;               /* of cells from MG_MC_SECTORS on */
    uint32_t places, place_strip; /* how many cells behind MG_MC_COUNT there are, at most 32; theirs */
    mg_id alike;                  /* of a class: lanes that have one address; 0: not known */
    uint32_t part_sum;            /* of parts of a class, alike or in order; UINT32_MAX: in memory */
    mg_id place;                  /* in such a function: where the lane's cell of the strip is; 0: elsewhere */
    struct mg_memory_called *called;
    const struct mg_memory_group *group; /* whose first it is; NULL: it is alone */
    mg_id here, active;                  /* lanes at the spot; of these, those that make the access */
    struct mg_opnd mask; /* a constant, where it is known that all lanes run this; else none (mask_of) */
};
/* What lanes ask of shared memory with addresses that count from one value, found where the value is made. Registers:
 * few, since they are kept from there on. */
struct mg_memory_class {
    mg_id lanes;   /* those that were there, where it is known what they ask for all together; else none */
    mg_id strip;   /* that: what this lane adds, and from bit 10 on to which cell */
    mg_id ordered; /* lanes, if they are in order; else none */
    mg_id breaks;  /* lanes of these that are not in order with the lane before; lane 0: addresses do not ascend word by
                      word */
    bool own;      /* lanes add to their own cells alone: some use is in a loop, where there are no words near */
    bool changes;  /* the value may be made more than once: lanes have to agree on what they know */
};
/* What 32 lanes ask of shared memory, known when the twin is made (tool/memory/fixed.c); of warps that lie in one row
 * of their CTA. */
struct mg_memory_fixed {
    uint32_t pattern, conflicts; /* a cell of the site; passes beyond the first */
    uint32_t breaks;             /* lanes that are not in order with the lane before */
    uint32_t ascends;            /* from lane to lane, word by word or more */
    uint32_t period; /* lanes ask for one bank when and only when their numbers differ by a multiple of this; 0: it
                        cannot be said so, or is not needed */
};
struct mg_memory_value;
/* known: NULL at first, of one kernel. value: SSA value of the kernel's own code that addresses count from. False: it
 * is not known. */
bool mg_memory_fix(struct mg_patch *p, struct mg_memory_value **known, uint32_t value, uint32_t bytes,
                   struct mg_memory_fixed *x);
/* Do parts of a warp mostly ask for the same? */
bool mg_memory_is_steady(const struct mg_memory_fixed *x);
/* Counts a request of which that is known. row: register, all ones where the warp lies in one row, else 0. sum: counts
 * requests of a steady one; else threads of whole warps; UINT32_MAX: whole warps are added to the cells here. some_sum:
 * requests of parts (mg_memory_parts_of); UINT32_MAX: they are looked at. */
void mg_memory_count_fixed(struct mg_memory_request *q, const struct mg_memory_fixed *x, mg_id row, uint32_t sum,
                           uint32_t some_sum);
/* What parts of warps mostly ask for; if that is steady, some_sum may count their requests. */
struct mg_memory_fixed mg_memory_parts_of(const struct mg_memory_fixed *x);
void mg_memory_classify(struct mg_memory_request *q, struct mg_memory_class *k);
/* Counts a request. k: class of its addresses, or NULL. */
void mg_memory_count(struct mg_memory_request *q, const struct mg_memory_class *k);
/* By SSA value of a function: how far it is likely to be apart from lane to lane; in_rows: threads of a warp are told
 * apart by their numbers in a row alone. */
const struct mg_affine *mg_memory_strides(struct mg_patch *p, uint32_t func_ix, bool in_rows);
/* An address in shared memory, up to a constant: scale times the SSA value `core`, and so many times others. */
struct mg_memory_term {
    uint32_t value, times;
};
struct mg_memory_form {
    uint32_t core, scale, n;
    struct mg_memory_term terms[4];
};
enum { MG_MEMORY_BUNDLED = 8 };
struct mg_memory_form mg_memory_form_of(const struct mg_ssa *s, const struct mg_affine *strides, uint32_t value);
/* Of n addresses with one core: which of them have to be asked, whether they are as far from the first in all lanes. */
uint32_t mg_memory_to_ask(const struct mg_memory_form *forms, uint32_t n, uint32_t *which);
/* Asks that of n - 1 addresses behind the first; elsewhere jumps to slow. */
void mg_memory_ask_apart(struct mg_memory_request *q, const mg_id *addr, uint32_t n, mg_id slow);
/* Each of n that are no parts of groups for itself. */
void mg_memory_count_each(struct mg_memory_request *qs, uint32_t n);
/* Where an address is made: b32, those that are here if they have one, else 0. */
mg_id mg_memory_find_alike(struct mg_memory_request *q);
/* Counts one of which it is likely that all lanes ask for one address, in a sum of that cell; UINT32_MAX: in memory.
 * lanes: those that do (mg_memory_find_alike); 0: not known, and all here make the access. likely: very much so. */
void mg_memory_count_alike(struct mg_memory_request *q, mg_id lanes, bool likely, uint32_t cell, uint32_t sum);
/* What 32 lanes that are one step apart ask for: a cell of the site, and what is beside it. */
struct mg_memory_ask {
    uint32_t pattern, conflicts, sectors, lines;
};
/* False: the step alone does not tell. */
bool mg_memory_of_step(enum mg_space space, uint32_t bytes, int64_t step, struct mg_memory_ask *a);
/* Each 32 of the sum are one such request. */
void mg_memory_share(struct mg_patch *p, uint32_t sum, uint32_t cell, const struct mg_memory_ask *a);
/* Counts one of which it is likely that lanes are one step apart, other than 0, of which all here make the access, in
 * that sum; UINT32_MAX: looks where it is, of global memory. */
void mg_memory_count_strided(struct mg_memory_request *q, int64_t step, bool likely, uint32_t sum);
/* Counts one that is not as was likely; likely: as a rule it is, and nothing is kept in registers. */
void mg_memory_count_as_any(struct mg_memory_request *q, bool likely);
/* Counts one of which it is known that all lanes ask for one address, in a sum of that cell; UINT32_MAX: in memory. */
void mg_memory_count_same(struct mg_memory_request *q, uint32_t cell, uint32_t sum);
/* Counts those of other instructions of the group, at other places in its lines, where the first one's did not for all:
 * one look for all of them, behind that one's code; between them it would stand in the way of loads. Not of shared
 * memory. */
struct mg_memory_follower {
    uint32_t cell, strip;
    int64_t apart;
};
void mg_memory_follow(const struct mg_memory_request *first, const struct mg_memory_group *g,
                      const struct mg_memory_follower *f, uint32_t n);

void mg_memory_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j);

#endif
