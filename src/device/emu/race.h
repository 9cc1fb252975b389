/* --check: races on global memory between threads of one launch, of other CTAs or of other warps of a CTA.
 *
 *   race_decode.c  puts an operation of ours before each access and behind each fence
 *   race.c         the words' shadow, and what two accesses of one word are to one another
 *   race_order.c   who is ordered before whom: barriers, fences, flags
 *   race_report.c  a finding in words
 *
 * Each word of 4 bytes that is touched has a shadow of 20: the last write, its value and one read. A record says who,
 * where and when in the CTA's own count of intervals; a warp begins a new one wherever it synchronises:
 *
 *      63     42 41  37 36  32 31      18 17  6 5    4 3     0
 *     [ CTA     | warp | lane | interval | site | kind | bytes ]
 *
 * Orders between CTAs have one clock for the launch, moved on by each strong write (atomic, relaxed, volatile). Such
 * a write behind a fence publishes, at its moment, the intervals that the fence ended; who reads the word and then
 * fences, or meets a barrier, has seen everything that was published up to the word's last write. So a record of
 * another CTA is ordered before an access when it was published no later than what the warp has seen: what a third
 * CTA published meanwhile counts as seen, too, which misses races and never invents one.
 * Within a warp nothing is looked at but lanes that store different values to one word in one instruction. */
#ifndef MG_DEVICE_EMU_RACE_H
#define MG_DEVICE_EMU_RACE_H

#include "device/emu/check.h"

enum emu_race_kind {
    EMU_RACE_WEAK,
    EMU_RACE_STRONG,
    EMU_RACE_CTA /* strong, for its own CTA alone */,
    EMU_RACE_ATOMIC
};
enum {
    EMU_RACE_ACQUIRE = 4,
    EMU_RACE_RELEASE = 8,
    EMU_RACE_NARROW = 16 /* of CTA scope */,
    EMU_RACE_RESULT = 32
}; /* in emu_op.sub, with EMU_CHECK_READ and WRITE */

#define EMU_RACE_LAST       0x3fffu /* interval: the count has run out, ordered with everything */
#define EMU_RACE_MOST_CTAS  (1u << 22)
#define EMU_RACE_MOST_SITES (1u << 12)
#define EMU_RACE_CAP        (4ull << 30) /* bytes of shadow for a launch */
#define EMU_RACE_PAGE       4096u        /* bytes of memory for which shadow is made at once */

struct emu_race_word {
    uint64_t write, read;
};
struct emu_race_page {
    struct emu_race_word words[EMU_RACE_PAGE / 4];
    uint32_t values[EMU_RACE_PAGE / 4]; /* what the last write of each stores */
    uint32_t *times;                    /* of each word's last strong write; NULL: none yet */
    struct emu_race_page *next;         /* of the launch's */
};
/* What a CTA has published: at `time` every interval below `all`, of warp `warp` every one below `own`. */
struct emu_race_event {
    uint32_t time, all, own;
    uint8_t warp;
    bool narrow;
};
struct emu_race_past {
    MG_VEC(struct emu_race_event) events;
};
struct emu_race_level {
    _Atomic(struct emu_race_page *) pages[1 << 18];
    struct emu_race_level *next;
};

struct emu_race { /* of a launch */
    _Atomic(struct emu_race_level *) levels[1 << 18];
    _Atomic uint8_t locks[1024]; /* of pages, by number */
    _Atomic(struct emu_race_level *) all_levels;
    _Atomic(struct emu_race_page *) all_pages;
    _Atomic uint32_t time;
    _Atomic uint64_t bytes; /* of shadow */
    _Atomic bool full;      /* some words have none: the cap, or no memory */
    pthread_rwlock_t past_lock;
    struct emu_race_past **past;
    uint64_t n_ctas; /* by linear number; NULL: published nothing */
};

struct emu_race_warp {
    uint32_t from;              /* intervals of this CTA below this one were before the last barrier */
    uint32_t seen, seen_narrow; /* of the launch's clock; narrow: in its own CTA */
    uint32_t pending;           /* read from flags; seen at the next fence or barrier */
    uint64_t
        asked[EMU_LANES];    /* words of global memory that the last strong access read: looked at once that is done */
    uint8_t n_asked;         /* more than fit: everything published counts as read */
    bool acquires[2];        /* that access was an acquire; of CTA scope */
    uint32_t own[2], all[2]; /* ended by the last fence of GPU, of CTA scope */
    uint32_t lent;           /* own[0], as of a barrier: any warp's strong write publishes it */
    bool fenced[2];          /* and nothing has been published since */
};
struct emu_race_cta {
    struct emu_race *race;
    uint32_t interval;
    bool touched;        /* accesses were recorded in it */
    struct mg_map flags; /* in shared memory: address -> time of its last write */
    struct emu_race_warp warps[EMU_MAX_WARPS];
};

/* race.c */
struct emu_race_cta *emu_race_cta_new(struct emu_launch *l); /* NULL: no memory */
void emu_race_cta_free(struct emu_race_cta *k);
void emu_race_free(struct emu_race *r);

/* What the warp's last strong access may have read: called before anything else of the warp's is looked at. The access
 * itself came behind our look at it, and others may have published in between. */
void emu_race_settle(struct emu_race_cta *k, uint32_t warp);

/* race_order.c */
void emu_race_start(struct emu_race_cta *k);
void emu_race_ends_interval(struct emu_race_cta *k);
void emu_race_fenced(struct emu_race_cta *k, uint32_t warp, bool narrow);
/* A strong write by the warp: publishes what it fenced; the moment. */
uint32_t emu_race_publish(struct emu_race_cta *k, uint64_t cta, uint32_t warp);
void emu_race_bar(struct emu_cta *c, uint32_t warps); /* a barrier that these warps leave */
void emu_race_cluster(struct emu_cta *c, uint32_t warp);
void emu_race_mbar(struct emu_cta *c, uint32_t warp, const uint64_t *words, uint32_t lanes, bool waits);
/* Of another warp's record: was it ordered before what the warp does now? */
bool emu_race_ordered(struct emu_race_cta *k, uint64_t cta, uint32_t warp, uint64_t record);

/* race_report.c */
#define EMU_RACE_CTA_OF(x)      ((x) >> 42)
#define EMU_RACE_WARP_OF(x)     ((uint32_t)((x) >> 37) & 31)
#define EMU_RACE_LANE_OF(x)     ((uint32_t)((x) >> 32) & 31)
#define EMU_RACE_INTERVAL_OF(x) ((uint32_t)((x) >> 18) & EMU_RACE_LAST)
#define EMU_RACE_SITE_OF(x)     ((uint32_t)((x) >> 6) & (EMU_RACE_MOST_SITES - 1))
#define EMU_RACE_KIND_OF(x)     ((unsigned)((x) >> 4) & 3)
struct emu_race_fact {
    uint32_t site, lane, bytes;
    unsigned what, kind, other_what;
    uint64_t address, other;
    bool same /* value */;
};
void emu_race_found(struct emu_frame *f, const struct emu_race_fact *x);
void emu_race_describe(struct emu_launch *l, const struct emu_found *x, struct mg_finding *f);

/* race_decode.c */
struct decoder;
struct mg_form;
void dec_race_access(struct decoder *d, const struct mg_form *form, const struct emu_op *access, bool result);
void dec_race_fence(struct decoder *d, const struct mg_form *form);

#endif
