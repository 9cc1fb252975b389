/* A tool of the tests: records in bounded memory, room for 3008 a launch: when a warp begins, and before each store. */
#include "record/record.h"
#include "tool/plugin.h"

static const struct mg_trace_field enter_fields[] = {{.name = "cta3", .type = MG_TRACE_u64},
                                                     {.name = "minus", .type = MG_TRACE_i64},
                                                     {.name = "seven", .type = MG_TRACE_u64}};
static const struct mg_trace_field store_fields[] = {{.name = "cta1", .type = MG_TRACE_u64}};
static const struct mg_record_type enter = {"enter", MG_RECORD_PER_WARP, enter_fields, MG_COUNT_OF(enter_fields)};
static const struct mg_record_type store = {"store", MG_RECORD_PER_WARP, store_fields, MG_COUNT_OF(store_fields)};

static enum mg_err analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    mg_records_open_bounded(p, 3008, 3);
    return MG_ERR_OK;
}

static mg_id times(struct mg_code_at *at, int64_t factor, int64_t more)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "mul.lo.u64", mg_o_reg(r), mg_o_reg(mg_value_cta(at)), mg_o_imm(factor));
    MG_CODE(at, "add.u64", mg_o_reg(r), mg_o_reg(r), mg_o_imm(more));
    return r;
}

static enum mg_err instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_patch_inst *insts;
    struct mg_code_at *entry = mg_at_entry(p, 0);
    struct mg_access a;
    (void)conf, (void)d;
    mg_record_write(entry, &enter, 0, (const mg_id[]){times(entry, 3, 0), times(entry, 0, -9), times(entry, 0, 7)});
    for (uint32_t i = 0, n = mg_patch_insts(p, &insts); i < n; i++) {
        mg_id node = insts[i].node;
        if (!mg_access_of(mg_patch_module(p), node, &a) || !a.writes || a.reads || a.space != MG_SPACE_global) continue;
        struct mg_code_at *at = mg_at_before(p, node);
        bool negated;
        mg_id guard = mg_node_guard(mg_patch_module(p), node, &negated);
        mg_code_push_guard(at, guard, negated);
        mg_record_write(at, &store, node, (const mg_id[]){times(at, 1, 1)});
        mg_code_pop_guard(at);
    }
    return MG_ERR_OK;
}

static const struct mg_tool bounded = {
    .name = "bounded", .summary = "bounded records of the tests", .analyze = analyze, .instrument = instrument};
MG_TOOL_PLUGIN(bounded)
