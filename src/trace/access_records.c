#include "trace/access_records.h"

#define STEP_KINDS   "launch|alloc|free|copy|memset"
#define ACCESS_KINDS "load|store|atomic|barrier|block|instruction|unseen"
_Static_assert(MG_STEP_KIND_COUNT == 5 && MG_ACCESS_KIND_COUNT == 7, "ORDER STEP_KINDS, ACCESS_KINDS");

/* In the order of the structures' members. Only what is not of accesses has a time: chunks with steps and sites are
 * found by that in the index. */
static const struct mg_trace_field step_fields[] = {
    {"time", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"order", MG_TRACE_u64},
    {"context", MG_TRACE_u64},
    {"stream", MG_TRACE_u64},
    {"launch", MG_TRACE_u64, .flags = MG_TRACE_NULLABLE},
    {"replay", MG_TRACE_u64},
    {"graph", MG_TRACE_u64},
    {"dst", MG_TRACE_hex},
    {"src", MG_TRACE_hex},
    {"bytes", MG_TRACE_u64},
    {"width", MG_TRACE_u64},
    {"height", MG_TRACE_u64},
    {"depth", MG_TRACE_u64},
    {"dst_pitch", MG_TRACE_u64},
    {"src_pitch", MG_TRACE_u64},
    {"dst_slice", MG_TRACE_u64},
    {"src_slice", MG_TRACE_u64},
    {"name", MG_TRACE_name},
    {"device", MG_TRACE_u32},
    {"thread", MG_TRACE_u32},
    {"flags", MG_TRACE_u32},
    {"shared", MG_TRACE_u32},
    {"grid_x", MG_TRACE_u32},
    {"grid_y", MG_TRACE_u32},
    {"grid_z", MG_TRACE_u32},
    {"block_x", MG_TRACE_u32},
    {"block_y", MG_TRACE_u32},
    {"block_z", MG_TRACE_u32},
    {"cluster_x", MG_TRACE_u32},
    {"cluster_y", MG_TRACE_u32},
    {"cluster_z", MG_TRACE_u32},
    {"kind", MG_TRACE_u8, .values = STEP_KINDS},
};
static const struct mg_trace_field site_fields[] = {
    {"time", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"sites", MG_TRACE_u32},
    {"number", MG_TRACE_u32},
    {"instruction", MG_TRACE_u32},
    {"bytes", MG_TRACE_u32},
    {"kernel", MG_TRACE_name},
    {"function", MG_TRACE_name},
    {"op", MG_TRACE_name},
    {"file", MG_TRACE_name},
    {"line", MG_TRACE_u32},
    {"ptx_line", MG_TRACE_u32},
    {"kind", MG_TRACE_u8, .values = ACCESS_KINDS},
    {"count", MG_TRACE_u32},
};
static const struct mg_trace_field pack_fields[] = {
    {"launch", MG_TRACE_u64, MG_TRACE_KEY_LAUNCH},
    {"replay", MG_TRACE_u64},
    {"cta_first", MG_TRACE_u64, MG_TRACE_KEY_CTA},
    {"cta_last", MG_TRACE_u64, MG_TRACE_KEY_CTA},
    {"sites", MG_TRACE_u32},
    {"sm", MG_TRACE_u32},
    {"accesses", MG_TRACE_u32},
    {"lanes", MG_TRACE_u32},
    {"data", MG_TRACE_bytes},
};
static const struct mg_trace_field left_fields[] = {{"time", MG_TRACE_time, MG_TRACE_KEY_TIME}, {"why", MG_TRACE_name}};
static const struct mg_trace_field whole_fields[] = {
    {"time", MG_TRACE_time, MG_TRACE_KEY_TIME}, {"order", MG_TRACE_u64}, {"begun", MG_TRACE_u64}};
_Static_assert(sizeof(struct mg_step_record) == 17 * 8 + 14 * 4 + 1 &&
                   sizeof(struct mg_site_record) == 8 + 11 * 4 + 1 && sizeof(struct mg_pack_record) == 4 * 8 + 4 * 4 &&
                   sizeof(struct mg_left_record) == 12 && sizeof(struct mg_whole_record) == 24,
               "as the fields");

const struct mg_trace_kind mg_step_record_kind = MG_TRACE_KIND("trace.step", step_fields);
const struct mg_trace_kind mg_site_record_kind = MG_TRACE_KIND("trace.site", site_fields);
const struct mg_trace_kind mg_pack_record_kind = MG_TRACE_KIND("trace.accesses", pack_fields);
const struct mg_trace_kind mg_left_record_kind = MG_TRACE_KIND("trace.left", left_fields);
const struct mg_trace_kind mg_whole_record_kind = MG_TRACE_KIND("trace.whole", whole_fields);
