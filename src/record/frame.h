/* Frames: memory of one launch into which its kernel writes records while it runs, and which the host may
 * read and switch off meanwhile (as in "Performance Measurement of Applications with GPU Acceleration using CUDA",
 * profiling inside kernels). A frame is the list of a launch
 * (mg_patch_list), in parts of the same size: a header that both sides read and write, then records. A multiprocessor
 * writes into a part of its own, or of its own and few others, by one addition to that part's header, so that places
 * are not all taken from one word; into others when that one is full. It is bounded: what finds no room in any is
 * counted. Nothing waits, and nothing but these additions orders the records: a warp's are in the order of their
 * clocks.
 *
 * Here: the code that writes, and reading. What an event is: event.h. */
#ifndef MG_RECORD_FRAME_H
#define MG_RECORD_FRAME_H

#include "patch/patch.h"
#include "record/channel.h"

struct mg_frame_head { /* of a part: a line of memory; kernels read the first four at once */
    uint32_t off;      /* the host's: not 0 stops the kernel from writing, at once */
    uint32_t less;     /* the host's: records fewer than there is room for */
    uint32_t next;     /* the kernel's: so many parts from this one on are full; all of them: nobody looks any more */
    uint32_t status;   /* the kernel's: enum mg_frame_status */
    uint64_t fill;     /* the kernel's: records asked for here, with some that found no room */
    uint64_t lost;     /* the kernel's: records that found none in any part, by the part of their multiprocessor */
    uint64_t unused[12];
};
enum mg_frame_status { MG_FRAME_NEW, MG_FRAME_WRITTEN, MG_FRAME_FULL };
/* A place: a segment of one record, as in a channel's page (channel.h). Its launch is known to whoever reads a frame:
 * the multiprocessor stands there. No word of one that is written is 0. */
struct mg_frame_place {
    uint64_t head;   /* of the segment; 31..0: multiprocessor */
    uint64_t cta;    /* and MG_FRAME_UNNUMBERED: a frame's records have clocks in place of numbers */
    uint64_t record; /* ONCE, the tool's site, one word, lanes that came together */
    uint64_t clock;
};
#define MG_FRAME_UNNUMBERED (1ull << 63)
enum {
    MG_FRAME_HEAD_WORDS = sizeof(struct mg_frame_head) / 8,
    MG_FRAME_RECORD_WORDS = sizeof(struct mg_frame_place) / 8,
    MG_FRAME_MOST_PARTS = 128,
    MG_FRAME_LEAST_RECORDS = 128 /* in one of several parts */
};
_Static_assert(!offsetof(struct mg_frame_head, off) && sizeof(struct mg_frame_head) == 128 &&
                   sizeof(struct mg_frame_place) == 32,
               "kernels know these sizes");
/* payload: values that a record may have behind its clock; places are longer by as many words, made even. */
uint32_t mg_frame_words_of(uint64_t records, uint32_t payload);
static inline uint32_t mg_frame_words(uint64_t records)
{
    return mg_frame_words_of(records, 0);
}
struct mg_frame_shape {
    uint32_t parts, stride /* words */, place /* words of one */;
    uint64_t room; /* records in a part */
};
struct mg_frame_shape mg_frame_shape_of(uint32_t n_words, uint32_t payload); /* of a frame of so many */
static inline struct mg_frame_shape mg_frame_shape(uint32_t n_words)
{
    return mg_frame_shape_of(n_words, 0);
}
/* The words of a place but those that each record has its own: lanes are added to the record's, warp and multiprocessor
 * to the head's. */
static inline uint64_t mg_frame_segment_head(uint32_t values)
{
    const uint64_t words = MG_FRAME_RECORD_WORDS + values;
    return (uint64_t)MG_SEGMENT_OPENED << 62 | words << MG_SEGMENT_WORDS_SHIFT | words << MG_SEGMENT_USED_SHIFT;
}
static inline uint64_t mg_frame_record_head(uint32_t site, uint32_t values)
{
    return (uint64_t)MG_RECORD_ONCE << MG_RECORD_KIND_SHIFT | (uint64_t)site << MG_RECORD_SITE_SHIFT |
           (1ull + values) << MG_RECORD_WORDS_SHIFT;
}

/* In analyze: room for so many records. */
void mg_frame_reserve(struct mg_patch *p, uint32_t records, uint32_t payload);
/* In instrument. staged: so many of a warp's first records wait in shared memory until it leaves, where the kernel
 * leaves room there and calls no function. Such a launch tells of them, and takes notice of `off`, when a warp leaves;
 * a warp's records are in the order of their clocks. */
struct mg_frame_code {
    struct mg_patch *p;
    struct mg_frame_shape shape;
    uint32_t staged, payload;
    bool global; /* its clock is %globaltimer, whose ticks are longer: what is staged may lose its order then */
    mg_id stage;
};
void mg_frame_begin(struct mg_frame_code *f, struct mg_patch *p, uint32_t records,
                    uint32_t staged); /* before any record; with a payload nothing is staged */
/* One record of the lanes here, of one of the tool's sites (below MG_CHANNEL_MOST_SITES), with the clock as late as can
 * be, or as early (late: of a beginning). */
void mg_frame_write(struct mg_frame_code *f, struct mg_code_at *at, uint32_t site, bool late);
/* The same with values behind the clock: 64-bit registers, as many as the frame has payload for, or fewer. */
void mg_frame_write_values(struct mg_frame_code *f, struct mg_code_at *at, uint32_t site, const mg_id *values,
                           uint32_t n);
void mg_frame_end(struct mg_frame_code *f); /* behind all of them */

/* What the headers in a list of n words say together: off is the first's, status the highest, fill without those that
 * found no room. */
struct mg_frame_head mg_frame_sums_of(const uint64_t *list, uint32_t n, uint32_t payload);
static inline struct mg_frame_head mg_frame_sums(const uint64_t *list, uint32_t n)
{
    return mg_frame_sums_of(list, n, 0);
}
/* The records in it that are whole, without those that it had when it was `before` (NULL: none): by the reader of
 * channels. launch of a record: its multiprocessor; words[0]: its clock; number: rises with a warp's records, which go
 * into ever further parts, but for those that were staged. Returns how many. */
uint64_t mg_frame_read_of(const uint64_t *list, uint32_t n, uint32_t payload, const uint64_t *before,
                          void (*fn)(void *user, const struct mg_record *r), void *user);
static inline uint64_t mg_frame_read(const uint64_t *list, uint32_t n, const uint64_t *before,
                                     void (*fn)(void *user, const struct mg_record *r), void *user)
{
    return mg_frame_read_of(list, n, 0, before, fn, user);
}

#endif
