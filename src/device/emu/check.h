/* --check: races on shared memory, reads of what nobody wrote, barriers used against PTX's rules.
 *
 *   check_decode.c   puts an operation of ours before each access of shared memory, after each .sync
 *   vec_check.c      that operation over 32 lanes: whole rows of cells at once
 *   check.c          one lane's access in full; the accesses that have no operation of their own (emu_at)
 *   check_order.c    who is ordered before whom: barriers, __syncwarp, mbarriers, locks, copies
 *   check_report.c   findings: one for each pair of instructions, counted
 *
 * Nothing of this exists in a launch without --check: no operation is added, no cell allocated.
 *
 * Shared memory is divided into cells of 1 to 8 bytes, as small as the kernel's smallest access. Three
 * accesses of each cell are remembered: the last write, the last read, and one more read by another
 * warp (or lane). Two accesses race when they are of different threads, not both reads, not both
 * atomic, and nothing orders them. Time is counted in intervals: a warp begins a new one wherever it
 * synchronises. A stamp says who made an access and in which interval:
 *
 *      30        12 11 10 9    5 4    0
 *     [ interval   | kind | warp | lane ]
 *
 * Intervals only grow within a CTA (and over the CTAs that use its memory one after the other), so
 * "everything before the barrier" is "all stamps below a limit": one compare for most accesses.
 */
#ifndef MG_DEVICE_EMU_CHECK_H
#define MG_DEVICE_EMU_CHECK_H

#include "device/emu/emu.h"

enum emu_check_kind {
    EMU_CK_PLAIN,
    EMU_CK_ATOMIC,   /* does not race with its like */
    EMU_CK_VOLATILE, /* does not race with its like of another warp */
    EMU_CK_WARP,     /* made by a warp as a whole, or by several of its lanes with one value */
    /* of places only (emu_at): */
    EMU_CK_COPY, /* cp.async: nobody may look before it was waited for */
    EMU_CK_SELF, /* the instruction tells of its accesses itself */
};
enum {
    EMU_CHECK_READ = EMU_OF_READS,
    EMU_CHECK_WRITE = EMU_OF_WRITES,
    EMU_CHECK_SYNC = 4 /* orders, too: locks and flags */,
    EMU_CHECK_SETS = 64 /* an atomic that acts as a store */
};

#define EMU_STAMP(interval) ((int32_t)(interval) << 12)
#define EMU_STAMP_KIND(k)   ((int32_t)(k) << 10)
#define EMU_STAMP_WHO       0x3ff
#define EMU_STAMP_WARP      0x3e0
#define EMU_COPY_INTERVAL   0x7ffff /* of a cp.async that nobody has waited for */
/* its stamp; of a kind, so that it is no plain access of its own thread */
#define EMU_STAMP_COPY(self) (EMU_STAMP(EMU_COPY_INTERVAL) | EMU_STAMP_KIND(EMU_CK_WARP) | ((self)&EMU_STAMP_WHO))
#define EMU_LAST_INTERVAL    0x7fff0

struct emu_check_copy {
    uint32_t at, bytes, lane, group;
};
struct emu_check_warp {
    int32_t now;                 /* stamp of lane 0's plain accesses */
    int32_t limit;               /* stamps of anybody below this are ordered before what the warp does */
    int32_t own;                 /* stamps of any lane of this warp, likewise */
    int32_t seen[EMU_MAX_WARPS]; /* stamps of that warp, likewise; what limit says holds as well */
    int32_t (*lanes)[EMU_LANES]; /* stamps of a lane (second) for a lane (first); NULL until __syncwarp of a part */
    uint32_t groups[EMU_LANES];  /* cp.async groups committed */
    uint32_t members[EMU_LANES]; /* mask that the lane gave to its last .sync operation */
    uint32_t syncing;            /* lanes whose guard let them begin it */
    MG_VEC(struct emu_check_copy) copies; /* not waited for */
};
struct emu_check_point {
    int32_t seen[EMU_MAX_WARPS];
}; /* what a release published */

struct emu_check { /* of one CTA; owner: the CTA */
    struct emu_cta *cta;
    uint32_t shift, n_cells; /* a cell has 1 << shift bytes */
    int32_t base;            /* stamps below this: not written by this CTA */
    uint32_t interval;       /* the greatest in use */
    int32_t *w, *r, *q;      /* last write; last read; another read, not ordered before that */
    uint32_t *ws, *rs, *qs;  /* by which instruction */
    void *cells;             /* all six */
    struct {
        struct emu_check_point at;
        uint32_t signals /* warps that do not wait */, count /* threads asked for */, site;
        bool used;
    } bars[EMU_N_BARS];
    struct mg_map points_at; /* address of a lock or mbarrier -> its place in points, plus one */
    MG_VEC(struct emu_check_point) points;
    struct emu_race_cta *race; /* races on global memory (race.h); NULL: not looked for */
    struct emu_check_warp warps[EMU_MAX_WARPS];
};

struct emu_check_access { /* one instruction's */
    struct emu_frame *f;
    const struct emu_op *op; /* stored values: as in emu_op of a store; NULL: not known */
    uint32_t site;
    uint8_t what, kind;
};

/* check.c */
struct emu_check *emu_check_new(struct emu_cta *c);
void emu_check_free(struct emu_check *k);
void emu_check_start(struct emu_check *k);                   /* the CTA begins: its memory holds nothing */
void emu_check_regrain(struct emu_check *k, uint32_t bytes); /* cells of at most so many bytes */
void emu_check_touch(const struct emu_check_access *a, uint32_t lane, uint32_t at, uint32_t bytes);
void emu_check_lanes_touch(const struct emu_op *op, struct emu_frame *f, const uint32_t *at, uint32_t mask);
/* Lanes some of which store to one address in one instruction: fine when they store the same. */
void emu_check_same(const struct emu_op *op, struct emu_frame *f, const uint32_t *at, uint32_t mask);
/* An access through emu_at: host address anywhere. */
void emu_check_at(struct emu_frame *f, const struct emu_op *place, uint32_t lane, uint64_t host, uint32_t bytes);
void emu_check_filled(struct emu_frame *f, const char *p,
                      uint32_t bytes);                            /* some CTA's memory was written by another's copy */
bool emu_check_combines(const struct emu_code *c, uint32_t site); /* emu_site.combines */
bool emu_check_conflict(const struct emu_check *k, uint32_t warp, uint32_t lane, unsigned kind, int32_t stamp);

/* check_order.c */
uint32_t emu_check_interval(struct emu_check *k);
void emu_check_bar_arrive(struct emu_warp *w, uint32_t b);
void emu_check_bar_done(struct emu_cta *c, uint32_t b, uint32_t warps);
void emu_check_release(struct emu_check *k, uint32_t warp, const uint64_t *address, uint32_t lanes);
void emu_check_acquire(struct emu_check *k, uint32_t warp, const uint64_t *address, uint32_t lanes,
                       bool among); /* among: lanes of the warp, too */
/* Its operations (operations.def) have the sources of the instruction before (or behind) which they stand. */

/* check_report.c */
enum emu_check_misuse {
    EMU_MISUSE_NONE,
    EMU_MISUSE_MULTIPLE,
    EMU_MISUSE_COUNTS,
    EMU_MISUSE_MORE,
    EMU_MISUSE_PLACES,
    EMU_MISUSE_MEMBERS
};
struct emu_found {
    uint8_t kind, misuse, what, other_what; /* enum mg_finding_kind, emu_check_misuse; EMU_CHECK_* | kind << 4 */
    uint32_t site, other_site, thread, other_thread, at, bytes, n[2];
    uint32_t cta[3];
    uint64_t linear, times;
    bool global; /* in global memory: */
    uint64_t address, other_linear;
};
struct emu_findings {
    struct mg_map at;
    MG_VEC(struct emu_found) list;
    uint64_t lost;
};
void emu_check_found(struct emu_frame *f, const struct emu_found *x);
void emu_check_worker_end(struct emu_worker *wk); /* the worker's findings to the launch's */
void emu_check_place(struct emu_launch *l, uint32_t site, struct mg_buf *b);
void emu_check_variable(struct emu_launch *l,
                        struct mg_finding *f); /* the variable of shared memory around f->address */
void emu_check_launch_end(struct emu_launch *l, struct mg_launch_stats *stats);

/* check_decode.c */
struct decoder;
struct mg_form;
uint32_t dec_check_site(struct decoder *d); /* 0: not checked */
/* A step in front of the program's instruction, which looks at that one's guard itself; of an access: with its
 * operands. */
struct emu_op *dec_emit_check(struct decoder *d, enum emu_opcode opcode);
struct emu_op *dec_emit_check_of(struct decoder *d, enum emu_opcode opcode, const struct emu_op *access);
void dec_check_access(struct decoder *d, const struct emu_op *access); /* before it is emitted */
void dec_check_after(struct decoder *d, enum emu_opcode opcode, const struct emu_op *of);
bool dec_check_sets(struct decoder *d, const struct mg_form *form,
                    const struct mg_opnd *result); /* notes it in the site */
bool dec_checks(const struct decoder *d);          /* --check, and an instruction of the program's own */

#endif
