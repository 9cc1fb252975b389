/* A kernel's twin while tools insert their probes, and where what they count lies.
 *
 *   tool.analyze     sees the application's code only; reserves cells for its sites
 *   tool.instrument  inserts code at spots; code of several tools stands side by side, in order of -t
 *
 *   spot     a place in the code: before or after an instruction, a block's head, an edge, entry, exits
 *   cell     a 64-bit word of device memory, 0 before each launch, merged by its rule after it: over the
 *            copies that multiprocessors share out, then over launches. What cells mean is the tool's.
 *   site     what a tool observes: an instruction, a block, a branch or the kernel, with its cells.
 *            Sites go into the profile, so that `profile` needs no PTX.
 *   table    a hash table of cells whose keys are known only on the device; bounded, loss is counted
 *   sum      a register of every thread that is added to its cell when the thread leaves: costs almost
 *            nothing inside loops
 *   strip      up to 32 cells, of which each lane of a warp keeps one in a register: for what is known of a whole
 *            warp
 *   tally    how often each number below 32 was told, kept by lanes likewise
 *   word     a word that the host fills anew for every launch
 *
 * Inserted code is MG_NF_META: it neither begins nor ends blocks and is never counted. It may branch
 * inside itself. It must not use barriers, nor wait for lanes that are not there with it.
 */
#ifndef MG_PATCH_PATCH_H
#define MG_PATCH_PATCH_H

#include "analysis/sites.h"
#include "pass/pass.h"

struct mg_json;
struct mg_patch;

/* struct mg_patch: one tool's view of one twin, valid during analyze and instrument. Functions that cannot do
 * what they are asked for make the tool fail, with their reason, when it is done. */

/* ---- what is under work ------------------------------------------------------------------------- */
struct mg_module *mg_patch_module(struct mg_patch *p);           /* the twin: same ids as the application's module */
const struct mg_sites *mg_patch_sites(const struct mg_patch *p); /* functions, blocks, CFGs of the application's code */
struct mg_twin *mg_patch_twin(struct mg_patch *p);
uint32_t mg_patch_sm(const struct mg_patch *p);        /* of the device, 90 */
struct mg_arena *mg_patch_scratch(struct mg_patch *p); /* freed with the patch */
/* Analyses of the application's code, made once for all tools. */
const struct mg_cfg *mg_patch_cfg(struct mg_patch *p, uint32_t func_ix);
const struct mg_dom *mg_patch_dom(struct mg_patch *p, uint32_t func_ix);
const struct mg_loops *mg_patch_loops(struct mg_patch *p, uint32_t func_ix);
const struct mg_ivs *mg_patch_ivs(struct mg_patch *p, uint32_t func_ix);
const struct mg_live *mg_patch_live(struct mg_patch *p, uint32_t func_ix);
const struct mg_ssa *mg_patch_ssa(struct mg_patch *p, uint32_t func_ix);
const struct mg_spaces *mg_patch_spaces(struct mg_patch *p, uint32_t func_ix);
const struct mg_uniform *mg_patch_uniform(struct mg_patch *p, uint32_t func_ix);
bool mg_patch_may_leave(struct mg_patch *p, uint32_t func_ix,
                        uint32_t block); /* does it end in a call that may end the thread? */
/* Instructions of the application in text order: function by function, block by block. */
struct mg_patch_inst {
    mg_id node;
    uint32_t func_ix, block; /* in its CFG */
    uint32_t id;             /* dense block id */
};
uint32_t mg_patch_insts(struct mg_patch *p, const struct mg_patch_inst **out); /* owner: the patch */
/* May a thread end in a function that the kernel calls? It takes its caller's registers with it. */
bool mg_patch_ends_in_callee(struct mg_patch *p);

/* What an instruction does to memory. */
struct mg_access {
    enum mg_space space; /* generic where it cannot be known */
    uint8_t bytes, vec;  /* of one element; elements */
    bool reads, writes, atomic, is_async, is_volatile;
    uint32_t addr; /* which operand is the address */
    uint32_t data; /* which holds what is read or written; UINT32_MAX: none */
};
bool mg_access_of(const struct mg_module *m, mg_id node, struct mg_access *a); /* false: no access */
/* The same as the application has it: a twin reads constants elsewhere. */
bool mg_patch_access(struct mg_patch *p, const struct mg_patch_inst *i, struct mg_access *a);
/* Accesses of one block, space (not generic) and guard whose addresses are one value plus constants, with no barrier
 * nor anything else between them where other lanes could join: executed by the same lanes; at most 64 KiB from end to
 * end. one_width: as many bytes each, too. All others are groups of their own. Returns how many groups; group_of: by
 * index in mg_patch_insts, UINT32_MAX: no access. */
struct mg_access_group {
    mg_id first; /* of them, in text order */
    enum mg_space space;
    uint32_t base;          /* SSA value of the register that all count from; 0: a variable, or a group of its own */
    int64_t from, low, end; /* constants: of the first; the lowest; behind the last byte */
    uint32_t n;
    uint32_t window, guard; /* groups of one window and guard (SSA value; 0: none) are of the same lanes */
    bool guard_not;
};
uint32_t mg_patch_groups(struct mg_patch *p, bool one_width, const struct mg_access_group **groups,
                         const uint32_t **group_of);

/* ---- reserving, in analyze or instrument ----------------------------------------------------------- */
enum mg_merge { MG_MERGE_SUM, MG_MERGE_MAX, MG_MERGE_OR }; /* a minimum: MAX of the complement */
enum mg_site_kind { MG_SITE_KERNEL, MG_SITE_BLOCK, MG_SITE_INST, MG_SITE_EDGE };
/* A new site with n cells behind one another, all of one rule; returns the number of the first cell.
 * `note` is the tool's own and goes into the profile. node: INST, and which successor for EDGE; block (dense
 * id): the others. n may be 0. A kernel has at most 2^22 cells of one tool. */
uint32_t mg_patch_site(struct mg_patch *p, enum mg_site_kind kind, mg_id node, uint32_t block, uint32_t n,
                       enum mg_merge rule, uint32_t note);
/* More cells for the last site, of another rule. */
uint32_t mg_patch_cells(struct mg_patch *p, uint32_t n, enum mg_merge rule);
/* Multiprocessors have no copies of the cells: the tool itself gives each its own, or few write. */
void mg_patch_one_copy(struct mg_patch *p);
/* A name of the tool's own for the last site, which the profile has in the place of the instruction's text. */
void mg_patch_name(struct mg_patch *p, const char *name);
/* Hash table of that site: `keys` words of key and n cells an entry, room for `entries` (a power of two, at most
 * 2^20; 0: it has none on the device, tool.read fills it). Keys of several words are told apart by a hash of 64 bits.
 */
uint32_t mg_patch_table(struct mg_patch *p, uint32_t keys, uint32_t n, enum mg_merge rule, uint32_t entries);
/* Per-launch words, filled by tool.initialize: number of the first. The tool's own count from 0. */
uint32_t mg_patch_words(struct mg_patch *p, uint32_t n);
uint64_t mg_patch_ctas(const struct mg_patch *p); /* of the launch that the twin is made for; 0: not known */
/* A register of the kernel's own code with the address, in shared memory, of so many bytes of this warp's; made in
 * instrument, in front of what uses it. 0: the kernel leaves no room. */
mg_id mg_patch_warp_bytes(struct mg_patch *p, uint32_t bytes);
/* A list of up to n more words a launch, in the kernel's memory like cells: filled by tool.list, read by tool.read. */
void mg_patch_list(struct mg_patch *p, uint32_t n);
/* Makes the tool fail; the first reason stays. */
void mg_patch_refuse(struct mg_patch *p, enum mg_err err, const char *fmt, ...) MG_PRINTF(3, 4);
/* Asks, in analyze, that block counts be taken too (tool blocks); `profile` gets them. */
void mg_patch_want_blocks(struct mg_patch *p);
/* Says, in analyze, that the tool tells which lanes run together: what is added leaves lanes to meet where they meet
 * natively, as far as the assembler lets it (docs/nvidia.md, "Which lanes run together"). */
void mg_patch_keep_lanes(struct mg_patch *p);

/* ---- spots and code ------------------------------------------------------------------------------------ */
struct mg_code_at; /* where code goes; owner: the patch */
struct mg_code_at *mg_at_before(struct mg_patch *p,
                                mg_id node); /* reached by every lane that reaches it, guard true or not */
struct mg_code_at *mg_at_after(struct mg_patch *p, mg_id node); /* not behind what ends a block */
struct mg_code_at *mg_at_block(struct mg_patch *p, uint32_t block);
struct mg_code_at *mg_at_edge(struct mg_patch *p, uint32_t block, uint32_t succ);
/* Of an edge: its code stands in front of what stands at the head of the block that it leads to, not behind it. */
void mg_code_comes_first(struct mg_code_at *at);
struct mg_code_at *mg_at_entry(struct mg_patch *p, uint32_t func_ix);
/* Every way a thread leaves the kernel (func_ix 0: also by exit inside callees) or returns from the
 * function: fn is called once for each. In front of barriers nobody waits for these lanes. */
void mg_at_exits(struct mg_patch *p, uint32_t func_ix, void (*fn)(struct mg_code_at *at, void *user), void *user);

uint32_t mg_at_func(const struct mg_code_at *at); /* func_ix: registers are a function's own */

/* Code is PTX by the instruction: form and operands (MG_INST in ir.h), new registers by type. All at one spot stand in
 * the order in which they were emitted. */
mg_id mg_code_reg(struct mg_code_at *at, enum mg_type type); /* the function's: may be read at other spots of it, too */
mg_id mg_code_temp(struct mg_code_at *at, enum mg_type type); /* of this spot alone; others use it again: prefer it */
uint32_t mg_code_func(const struct mg_code_at *at);           /* func_ix of the function the spot is in */
void mg_code(struct mg_code_at *at, const char *form, const struct mg_opnd *opnds, uint32_t n);
#define MG_CODE(at, ...) mg_code((at), MG_INST(__VA_ARGS__))
bool mg_at_repeats(
    const struct mg_code_at *at);           /* may code here run more than once in an activation of its function? */
mg_id mg_code_label(struct mg_code_at *at); /* a new label, not placed yet */
void mg_code_place(struct mg_code_at *at, mg_id label);
void mg_code_rolled(struct mg_code_at *at); /* in front of the label of a loop: assemblers leave it as it is */
/* From here on code is guarded by this predicate, too, which must not change meanwhile; 0: no longer. Nests with
 * push and pop (predicates are and-ed). */
void mg_code_guard(struct mg_code_at *at, mg_id pred, bool negated);
void mg_code_push_guard(struct mg_code_at *at, mg_id pred,
                        bool negated); /* pred must keep its value at this spot: what lanes it leaves is asked once */
void mg_code_pop_guard(struct mg_code_at *at);
/* The guard of an application instruction as predicate and negation; 0: none. */
mg_id mg_node_guard(const struct mg_module *m, mg_id node, bool *negated);

/* A function of ours, and calls of it from the spots of any function (patch/called.c): a spot for its body. Parameters
 * (b32, b64) before any of its code; what it tells is b32. There cells are reached by mg_place_* and, behind
 * mg_called_cells, by their number from the one on that the caller hands over; nothing is asked of the launch. */
struct mg_code_at *mg_at_called(struct mg_patch *p, bool has_result);
mg_id mg_called_param(struct mg_code_at *f, enum mg_type type); /* its register */
void mg_called_cells(struct mg_code_at *f);                     /* the next parameter is mg_cell_place */
mg_id mg_cell_place(struct mg_code_at *at, uint32_t first);     /* b64: where cells begin, for mg_code_call */
void mg_called_return(struct mg_code_at *f, mg_id result);      /* at the end of its code */
void mg_code_call(struct mg_code_at *at, const struct mg_code_at *f, mg_id result /* 0: none */, const mg_id *args);

/* Values at a spot: registers that hold them, at this spot alone. The same value asked for again at the same
 * spot, or one that does not change in the function, is computed once. */
mg_id mg_value_active(struct mg_code_at *at); /* b32: lanes here, guard of the code included */
/* The lanes of mg_value_active, as a number that differs by lane for all that ptxas can know. Of what activemask told
 * it takes for granted that it is equal in all lanes that run together, keeps it and what follows from it (how many
 * lanes) in one register for all, and makes branches of its own of updates by one lane: pieces of a warp that are at a
 * spot at once meet behind these, and go on with the number of one, or add for one as often as there are pieces (seen
 * on an H200). What a lane keeps of its mask over a jump or an update is this; instructions that ask right behind are
 * cheaper by mg_value_active. */
mg_id mg_value_own(struct mg_code_at *at);
mg_id mg_value_own_of(struct mg_code_at *at,
                      mg_id active); /* the same of a mask that was asked for in front of one jump, behind which no
                                        pieces meet: nobody is asked again */
mg_id mg_value_leader(struct mg_code_at *at);              /* pred: the lowest of these */
mg_id mg_value_n_active(struct mg_code_at *at);            /* b32 */
mg_id mg_value_lane(struct mg_code_at *at);                /* b32 */
mg_id mg_value_lt(struct mg_code_at *at);                  /* b32: the lanes below it */
mg_id mg_value_bit(struct mg_code_at *at);                 /* b32: that of this lane in a mask */
mg_id mg_value_warp(struct mg_code_at *at);                /* b32: in its CTA, linear thread id / 32 */
mg_id mg_value_tid(struct mg_code_at *at);                 /* b32: linear in the CTA */
mg_id mg_value_cta(struct mg_code_at *at);                 /* b64: linear in the grid */
mg_id mg_value_sm(struct mg_code_at *at);                  /* b32 */
mg_id mg_value_clock(struct mg_code_at *at);               /* b64: read here, every time */
mg_id mg_value_globaltimer(struct mg_code_at *at);         /* b64 */
mg_id mg_value_word(struct mg_code_at *at, uint32_t word); /* b64: per-launch word */
mg_id mg_value_list(struct mg_code_at *at);                /* b64: address of the list's first word, in global memory */
mg_id mg_value_address(struct mg_code_at *at,
                       mg_id node); /* b64: of an access, as the instruction has it (its space's) */
mg_id mg_value_param(struct mg_code_at *at, uint32_t ix); /* kernel argument, widened to 64 bits; entry function only:
                                                             elsewhere, and of structs and arrays, 0 */
mg_id mg_value_wide(struct mg_code_at *at, struct mg_opnd v); /* b64: the bits of an operand of an instruction here */

/* Updates. v: register or immediate of 64 bits (b32: widened unsigned). */
enum mg_spread {
    MG_EACH,  /* every lane here has its own v */
    MG_ONCE,  /* the lanes here have one v, counted once a warp */
    MG_TIMES, /* one v, counted once for every lane */
    MG_ALONE, /* the guard has left one lane at most: nothing is asked of the others */
};
void mg_cell_update(struct mg_code_at *at, uint32_t cell, struct mg_opnd v,
                    enum mg_spread spread); /* by the cell's rule */
/* The same of a cell whose rule is MAX and whose v, each lane's own b64, is seldom more than what is there: that is
 * looked at first. */
void mg_cell_raise(struct mg_code_at *at, uint32_t cell, mg_id v);
/* Cell `first` + ix of a run of n, ix b32 and each lane's own (MG_ONCE: the lowest lane's): beyond it nothing is
 * counted. */
void mg_cell_update_at(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id ix, struct mg_opnd v,
                       enum mg_spread spread);
/* That cell becomes v, whatever it was: the last one stays. ix has to be below n. Cells of one copy only
 * (mg_patch_one_copy). */
void mg_cell_set_at(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id ix, struct mg_opnd v);
void mg_table_update(struct mg_code_at *at, uint32_t table, const mg_id *keys, const struct mg_opnd *v, uint32_t n,
                     enum mg_spread spread); /* keys b64, each lane its own */
/* Each lane here adds 1 to cell `first` + k of n, whose rule is a sum; k: b32, below n, the same in all lanes of the
 * mask, which are those here as each of them knows (mg_value_own). often: enough for these cells to lie near the
 * threads (mg_patch_near). */
void mg_count_lanes(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id k, mg_id mask, bool often);
/* The lanes of a mask were at one place `times` in a row (b64, a double: one instruction adds 1): the lowest of them
 * adds their number so often to cell `first` + their number; so do all that call it, each for its own mask. */
void mg_count_run(struct mg_code_at *at, uint32_t first, mg_id mask, mg_id times);
/* Where lanes come out of a loop of one block: rounds (b64, a double) is how many this lane made, 0: it was not in; who
 * made the last one with it, in a register that ptxas does not take for equal in all of them. For each round with l
 * lanes l is added to cell `first` + l, to that of the second half (from `first` + half on) where the round before had
 * more. rounds becomes 0. On GPUs, from sm_70 on. */
void mg_count_rounds(struct mg_code_at *at, uint32_t first, uint32_t half, mg_id who, mg_id rounds);
/* A sum in registers: add to it anywhere in the kernel, functions included. */
uint32_t mg_patch_sum(struct mg_patch *p, uint32_t cell);
void mg_sum_add(struct mg_code_at *at, uint32_t sum, struct mg_opnd v); /* b32 or b64 */
/* A sum that has no cell of its own: each `every` of it add so much to a cell, or to several. Of threads of whole warps
 * every 32. */
uint32_t mg_patch_shared_sum(struct mg_patch *p);
void mg_patch_share(struct mg_patch *p, uint32_t sum, uint32_t every, uint32_t cell, uint32_t times);

/* A strip of n (at most 32) cells from `first` on, whose rule is a sum: lane k keeps the k-th. Add to it anywhere:
 * v (b32, at most 64) of each lane here goes to its own cell, 0 in lanes from n on. Lanes that are not here cannot
 * count. */
uint32_t mg_patch_strip(struct mg_patch *p, uint32_t first, uint32_t n);
void mg_strip_add(struct mg_code_at *at, uint32_t strip, mg_id v);
void mg_strip_mark(struct mg_code_at *at, uint32_t strip, mg_id p); /* 1 in lanes where p holds */
void mg_strip_ones(struct mg_patch *p, uint32_t strip);             /* it is added to at one place alone, 1 at most */
/* The same in a loop, of a v that keeps its value until the function is left, up to 255, whatever is above these 8
 * bits: how often it is added is counted. False: there is no register for that, and nothing was done. */
bool mg_strip_add_kept(struct mg_code_at *at, uint32_t strip, mg_id v);
/* The same to any cell, k (b32), not the lane's own; lanes that add 0 should name their own. Is that as cheap here? */
void mg_strip_add_at(struct mg_code_at *at, uint32_t strip, mg_id k, mg_id v);
bool mg_strip_goes_anywhere(struct mg_code_at *at);
/* Where this lane's cell of the strip is, for code in functions of ours: a register (b64) to hand over. Then adding
 * there: v of each lane to its own cell; v of one lane to the k-th. In memory: a function that adds to shared memory
 * parts lanes wherever it is called (patch/shared.c). */
mg_id mg_strip_place(struct mg_code_at *at, uint32_t strip);
void mg_place_add(struct mg_code_at *at, mg_id place, mg_id v);
void mg_place_put_each(struct mg_code_at *at, mg_id place, struct mg_opnd k, struct mg_opnd v,
                       mg_id some); /* several lanes, each to a cell of its own */
void mg_place_put(struct mg_code_at *at, mg_id place, struct mg_opnd k, struct mg_opnd v, mg_id one);
/* v (b32, at most 64) of the one lane here for which the predicate holds goes to the k-th cell. */
void mg_strip_put(struct mg_code_at *at, uint32_t strip, uint32_t k, struct mg_opnd v, mg_id one);
/* Strips and tallies of the kernel's own code outside of loops, from here on, lie in the CTA's shared memory where that
 * can be (on GPUs): pays where a thread adds to them more often than a few times. */
void mg_patch_near(struct mg_patch *p);
/* The twin is to do with so many registers, or few more than the native code has where that is known: for code that
 * rarely runs and needs many. kept: registers that the tool keeps in loops, beside strips. At the end of instrument. */
void mg_patch_few_registers(struct mg_patch *p, uint32_t least, uint32_t kept);
/* Registers beyond the native code's that the launch leaves unused; 0: none, or not known. */
uint32_t mg_patch_room(struct mg_patch *p);
/* Adds 1, once a warp, to cell `first` + k of n (at most 32), whose rule is a sum; k: b32, below n, the same in all
 * lanes here. In loops a lane that is here keeps it, if the right one is. */
void mg_tally_add(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id k);

/* The instruction is executed only by lanes where pred is false; where it is left out, what it would
 * have loaded (or an atomic returned) is 0. */
void mg_patch_skip(struct mg_patch *p, mg_id node, mg_id pred);

#endif
