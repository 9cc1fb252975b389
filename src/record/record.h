/* Records: what a tool hands to the host while kernels run. A tool says what its records hold, as kinds of named,
 * typed
 * fields, and where they are written; how they travel is not its business.
 *
 *   analyze     mg_records_open   ── the kernel writes records
 *   instrument  mg_record_write   ── one at a spot
 *   DIR/trace   every record, with its launch, CTA, warp, lanes and place, by the names of its fields: margay
 *               trace print
 *
 * A tool with a `stream` hook gets the records itself, as they come (mg_stream_read), and nothing is written to
 * DIR/trace. Which policy keeps memory bounded, and what a record costs: docs/records.md. The words on the way:
 * channel.h. */
#ifndef MG_RECORD_RECORD_H
#define MG_RECORD_RECORD_H

#include "record/channel.h"
#include "trace/trace.h"

enum { MG_RECORDS_MOST = 1 << 20 /* of a launch, bounded */ };
enum mg_record_form {
    MG_RECORD_PER_WARP,   /* a value for each field, of the lowest lane at the spot */
    MG_RECORD_PER_LANE,   /* a value for each field of every lane at the spot */
    MG_RECORD_PER_ACCESS, /* the addresses of the lanes of a memory instruction, coded; no fields */
};
/* Static, as the tool itself: what is written refers to it as long as the process lives. */
struct mg_record_type {
    const char *name;
    enum mg_record_form form;
    const struct mg_trace_field
        *fields; /* of 64 bits: u64, i64, f64, hex, time; MG_CHANNEL_MOST_WORDS of them at most */
    uint32_t n_fields;
};

/* In analyze: a stream without bounds. */
void mg_records_open(struct mg_patch *p);
/* In its place: bounded memory, so many records for each launch, of so many fields at most. The first that come have
 * room, the others are counted. Records are of the form MG_RECORD_PER_WARP, with their clock, and reach the host when
 * the launch has ended. */
void mg_records_open_bounded(struct mg_patch *p, uint32_t records, uint32_t fields);
/* In instrument: the lanes at the spot write a record. node: the instruction that it is of, whose place it tells; 0:
 * none. values: a 64-bit register for each field; NULL for an access. */
void mg_record_write(struct mg_code_at *at, const struct mg_record_type *k, mg_id node, const mg_id *values);

/* On the host: how a kind's records stand in a trace: named "tool.kind"; first what every record has, in the order of
 * enum mg_record_field, then its fields, or a table of them: a row for each lane. */
enum mg_record_field {
    MG_RECORD_LAUNCH,
    MG_RECORD_CTA,
    MG_RECORD_WARP,
    MG_RECORD_NUMBER,
    MG_RECORD_LANE_MASK,
    MG_RECORD_KERNEL,
    MG_RECORD_OP,
    MG_RECORD_FILE,
    MG_RECORD_LINE,
    MG_RECORD_PTX_LINE,
    MG_RECORD_FIELD_COUNT
};
struct mg_record_head { /* these fields */
    uint64_t launch, cta;
    uint32_t warp, number; /* number: order among its warp's records */
    uint64_t lanes;
    uint32_t kernel, op, file, line, ptx_line;
} __attribute__((packed));
/* Of a bounded record: behind the head its clock; number is 0. */
#define MG_RECORD_CLOCK MG_RECORD_FIELD_COUNT
struct mg_record_trace { /* owner: the caller; `name` and what it points to are in it */
    struct mg_trace_kind kind;
    struct mg_trace_field fields[MG_RECORD_FIELD_COUNT + 1 + MG_CHANNEL_MOST_WORDS];
    char name[128], columns[512];
};
void mg_record_trace_kind(const char *tool, const struct mg_record_type *k, bool bounded, struct mg_record_trace *out);

#endif
