/* A tool of the tests: every access to global memory as a record, and once more by its lanes' values and by its warp's.
 */
#include "record/record.h"
#include "tool/plugin.h"

static const struct mg_trace_field lane_fields[] = {{.name = "address", .type = MG_TRACE_hex},
                                                    {.name = "tid", .type = MG_TRACE_u64}};
static const struct mg_trace_field warp_fields[] = {{.name = "cta_again", .type = MG_TRACE_u64},
                                                    {.name = "minus", .type = MG_TRACE_i64}};
static const struct mg_record_type by_access = {"access", MG_RECORD_PER_ACCESS, NULL, 0};
static const struct mg_record_type by_lane = {"lane", MG_RECORD_PER_LANE, lane_fields, MG_COUNT_OF(lane_fields)};
static const struct mg_record_type by_warp = {"warp", MG_RECORD_PER_WARP, warp_fields, MG_COUNT_OF(warp_fields)};

static enum mg_err analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    mg_records_open(p);
    return MG_ERR_OK;
}

static enum mg_err instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_patch_inst *insts;
    struct mg_access a;
    (void)conf, (void)d;
    for (uint32_t i = 0, n = mg_patch_insts(p, &insts); i < n; i++) {
        mg_id node = insts[i].node;
        bool negated;
        if (!mg_access_of(mg_patch_module(p), node, &a) || (a.space != MG_SPACE_global && a.space != MG_SPACE_generic))
            continue;
        mg_id guard = mg_node_guard(mg_patch_module(p), node, &negated);
        struct mg_code_at *at = mg_at_before(p, node);
        mg_code_push_guard(at, guard, negated);
        mg_id tid = mg_code_temp(at, MG_TYPE_b64), minus = mg_code_temp(at, MG_TYPE_b64);
        MG_CODE(at, "cvt.u64.u32", mg_o_reg(tid), mg_o_reg(mg_value_tid(at)));
        MG_CODE(at, "mov.u64", mg_o_reg(minus), mg_o_imm(-5));
        mg_record_write(at, &by_access, node, NULL);
        mg_record_write(at, &by_lane, node, (const mg_id[]){mg_value_address(at, node), tid});
        mg_record_write(at, &by_warp, node, (const mg_id[]){mg_value_cta(at), minus});
        mg_code_pop_guard(at);
    }
    return MG_ERR_OK;
}

static const struct mg_tool recorder = {
    .name = "recorder", .summary = "records of the tests", .analyze = analyze, .instrument = instrument};
MG_TOOL_PLUGIN(recorder)
