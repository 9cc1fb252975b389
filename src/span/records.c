#include "span/records.h"

#include <stddef.h>

#define LAYERS     "driver|runtime|mpi|nvtx|mark"
#define CLASSES    "kernel|copy|memset|memory|synchronisation|event|stream|graph|module|other"
#define WORKS      "kernel|copy|memset|prefetch|graph"
#define SOURCES    "none|device|events|twin|cupti|host"
#define DIRECTIONS "none|HtoD|DtoH|DtoD|HtoH"

/* In the order of the structures' members. */
static const struct mg_trace_field call_fields[] = {
    {"begin", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"end", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"correlation", MG_TRACE_u64},
    {"outer", MG_TRACE_u64},
    {"name", MG_TRACE_name},
    {"result", MG_TRACE_i32},
    {"stream", MG_TRACE_u32, .flags = MG_TRACE_NULLABLE},
    {"context", MG_TRACE_u32, .flags = MG_TRACE_NULLABLE},
    {"stack", MG_TRACE_u64},
    {"layer", MG_TRACE_u8, .values = LAYERS},
    {"class", MG_TRACE_u8, .values = CLASSES},
    {"arguments", MG_TRACE_words},
};
static const struct mg_trace_field work_fields[] = {
    {"begin", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"end", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"correlation", MG_TRACE_u64},
    {"stream", MG_TRACE_u64},
    {"context", MG_TRACE_u64},
    {"bytes", MG_TRACE_u64, .flags = MG_TRACE_NULLABLE},
    {"launch", MG_TRACE_u64, MG_TRACE_KEY_LAUNCH, MG_TRACE_NULLABLE},
    {"replay", MG_TRACE_u64, .flags = MG_TRACE_NULLABLE},
    {"mark", MG_TRACE_u64},
    {"name", MG_TRACE_name},
    {"device", MG_TRACE_u32},
    {"uncertainty_ns", MG_TRACE_u32, .flags = MG_TRACE_NULLABLE},
    {"work", MG_TRACE_u8, .values = WORKS},
    {"source", MG_TRACE_u8, .values = SOURCES},
    {"direction", MG_TRACE_u8, .values = DIRECTIONS},
    {"inside", MG_TRACE_u8},
};
static const struct mg_trace_field mark_fields[] = {
    {"begin", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"end", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"payload", MG_TRACE_u64},
    {"correlation", MG_TRACE_u64},
    {"outer", MG_TRACE_u64},
    {"name", MG_TRACE_name},
    {"domain", MG_TRACE_name},
    {"end_thread", MG_TRACE_u32},
    {"layer", MG_TRACE_u8, .values = LAYERS},
    {"kind", MG_TRACE_u8, .values = "pushed|started|instant"},
};
static const struct mg_trace_field inside_fields[] = {
    {"begin", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"end", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"launch", MG_TRACE_u64, MG_TRACE_KEY_LAUNCH, MG_TRACE_NULLABLE},
    {"replay", MG_TRACE_u64, .flags = MG_TRACE_NULLABLE},
    {"cta", MG_TRACE_u64, MG_TRACE_KEY_CTA},
    {"correlation", MG_TRACE_u64},
    {"context", MG_TRACE_u64},
    {"stream", MG_TRACE_u64},
    {"outside_ns", MG_TRACE_u64, .flags = MG_TRACE_NULLABLE},
    {"name", MG_TRACE_name},
    {"kernel", MG_TRACE_name},
    {"device", MG_TRACE_u32},
    {"sm", MG_TRACE_u32},
    {"lanes", MG_TRACE_u32},
    {"uncertainty_ns", MG_TRACE_u32, .flags = MG_TRACE_NULLABLE},
    {"warp", MG_TRACE_u8},
    {"depth", MG_TRACE_u8},
    {"source", MG_TRACE_u8, .values = SOURCES},
};
static const struct mg_trace_field thread_fields[] = {
    {"time", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"thread", MG_TRACE_u32},
    {"name", MG_TRACE_name},
};
static const struct mg_trace_field message_fields[] = {
    {"time", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"correlation", MG_TRACE_u64},
    {"done", MG_TRACE_u64},
    {"communicator", MG_TRACE_u64},
    {"bytes", MG_TRACE_u64, .flags = MG_TRACE_NULLABLE},
    {"tag", MG_TRACE_i64},
    {"peer", MG_TRACE_u32, .flags = MG_TRACE_NULLABLE},
    {"kind", MG_TRACE_u8, .values = "sent|received"},
};
static const struct mg_trace_field communicator_fields[] = {
    {"time", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"id", MG_TRACE_u64},
    {"parent", MG_TRACE_u64, .flags = MG_TRACE_NULLABLE},
    {"members", MG_TRACE_words},
};
static const struct mg_trace_field stack_fields[] = {
    {"time", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"id", MG_TRACE_u64},
    {"cut", MG_TRACE_u8},
    {"addresses", MG_TRACE_words},
};
static const struct mg_trace_field module_fields[] = {
    {"time", MG_TRACE_time, MG_TRACE_KEY_TIME},
    {"begin_address", MG_TRACE_u64},
    {"end_address", MG_TRACE_u64},
    {"bias", MG_TRACE_u64},
    {"name", MG_TRACE_name},
    {"build_id", MG_TRACE_name},
};
static const struct mg_trace_field memory_fields[] = {
    {"time", MG_TRACE_time, MG_TRACE_KEY_TIME},          {"correlation", MG_TRACE_u64}, {"address", MG_TRACE_u64},
    {"bytes", MG_TRACE_u64, .flags = MG_TRACE_NULLABLE}, {"device", MG_TRACE_u32},
};
_Static_assert(sizeof(struct mg_record_memory) == 36 && sizeof(struct mg_record_inside) == 99, "as the fields");
_Static_assert(sizeof(struct mg_record_stack) == 17 && sizeof(struct mg_record_module) == 40, "as the fields");
_Static_assert(sizeof(struct mg_record_message) == 53 && sizeof(struct mg_record_communicator) == 24, "as the fields");
_Static_assert(sizeof(struct mg_record_call) == 58 && sizeof(struct mg_record_work) == 88 &&
                   sizeof(struct mg_record_mark) == 54 && sizeof(struct mg_record_thread) == 16,
               "as the fields");

const struct mg_trace_kind mg_record_call_kind = MG_TRACE_KIND("call", call_fields);
const struct mg_trace_kind mg_record_work_kind = {
    .name = "work", .version = 2, .fields = work_fields, .n_fields = MG_COUNT_OF(work_fields)};
const struct mg_trace_kind mg_record_mark_kind = MG_TRACE_KIND("mark", mark_fields);
const struct mg_trace_kind mg_record_inside_kind = MG_TRACE_KIND("inside", inside_fields);
const struct mg_trace_kind mg_record_thread_kind = MG_TRACE_KIND("thread", thread_fields);
const struct mg_trace_kind mg_record_message_kind = MG_TRACE_KIND("message", message_fields);
const struct mg_trace_kind mg_record_communicator_kind = MG_TRACE_KIND("communicator", communicator_fields);
const struct mg_trace_kind mg_record_stack_kind = MG_TRACE_KIND("stack", stack_fields);
const struct mg_trace_kind mg_record_module_kind = MG_TRACE_KIND("module", module_fields);
const struct mg_trace_kind mg_record_memory_kind = MG_TRACE_KIND("memory", memory_fields);
