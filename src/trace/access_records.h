/* The records of which access.h is made, as they stand in trace files: who writes them is tool trace
 * (tool/trace/trace.c) and, of the host's side, inject/steps.c. A field is only ever added; the reader goes by names.
 */
#ifndef MG_TRACE_ACCESS_RECORDS_H
#define MG_TRACE_ACCESS_RECORDS_H

#include "trace/access.h"

#define MG_PACKED __attribute__((packed))
struct mg_step_record { /* of all steps: a launch, or what the host did with memory */
    uint64_t time, order, context, stream, launch, replay, graph, dst, src, bytes, width, height, depth;
    uint64_t dst_pitch, src_pitch, dst_slice, src_slice;
    uint32_t name, device, thread, flags, shared, grid[3], block[3], cluster[3];
    uint8_t kind;
} MG_PACKED;
struct mg_site_record { /* an instruction: what packs name by sites and number */
    uint64_t time;
    uint32_t sites, number, instruction, bytes, kernel, function, op, file, line, ptx_line;
    uint8_t kind;
    uint32_t count; /* of a block: instructions */
} MG_PACKED;
struct mg_pack_record { /* accesses of one launch on one multiprocessor; behind it a pack (access_code.h) */
    uint64_t launch, replay, cta_first, cta_last;
    uint32_t sites, sm, accesses, lanes;
} MG_PACKED;
struct mg_left_record { /* what the trace leaves out on purpose */
    uint64_t time;
    uint32_t why; /* name: "sample=16", "kernel=..." */
} MG_PACKED;
struct mg_whole_record { /* for who reads while the process runs */
    uint64_t time;
    uint64_t order; /* steps up to this one, and all accesses of their launches, stand in front of it in the file */
    uint64_t begun; /* what stands in front of the record of this kind before it is of steps up to this one: chunks
                       are filled from several streams, so that what came later may stand in front of this record */
} MG_PACKED;
#undef MG_PACKED

extern const struct mg_trace_kind mg_step_record_kind, mg_site_record_kind, mg_pack_record_kind, mg_left_record_kind,
    mg_whole_record_kind;

#endif
