/* stores: what each lane writes to global memory by st (not by atom, red, st.async, cp), and where, as records; and
 * when each warp began. margay run -t ./stores.so -o prof -- ./app; margay trace print prof
 * docs/howto-stream-records.md tells it step by step. */
#include "record/record.h"
#include "tool/plugin.h"

static const struct mg_trace_field store_fields[] = {{.name = "address", .type = MG_TRACE_hex},
                                                     {.name = "value", .type = MG_TRACE_hex}};
static const struct mg_trace_field begin_fields[] = {{.name = "clock", .type = MG_TRACE_u64}};
static const struct mg_record_type store = {"store", MG_RECORD_PER_LANE, store_fields, MG_COUNT_OF(store_fields)};
static const struct mg_record_type begins = {"begin", MG_RECORD_PER_WARP, begin_fields, MG_COUNT_OF(begin_fields)};

static enum mg_err analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    mg_records_open(p);
    return MG_ERR_OK;
}

static void record_store(struct mg_patch *p, mg_id node, const struct mg_access *a)
{
    struct mg_module *m = mg_patch_module(p);
    struct mg_code_at *at = mg_at_before(p, node);
    bool negated, generic = a->space == MG_SPACE_generic;
    const struct mg_opnd all = m->opnds.at[m->nodes.at[node].opnd + a->data];
    mg_id guard = mg_node_guard(m, node, &negated), address = mg_value_address(at, node);
    mg_code_push_guard(at, guard, negated); /* lanes that do not store write nothing */
    if (generic) {                          /* nor do those whose address is one of shared or local memory */
        mg_id global = mg_code_reg(at, MG_TYPE_pred);
        MG_CODE(at, "isspacep.global", global, address);
        mg_code_push_guard(at, global, false);
    }
    for (uint32_t e = 0; e < a->vec; e++) { /* of a vector: a record for each element */
        struct mg_opnd value = all.kind == MG_OPND_vec ? m->opnds.at[all.id + e] : all;
        mg_id place = e ? mg_code_reg(at, MG_TYPE_b64) : address;
        if (e) MG_CODE(at, "add.u64", place, address, (int64_t)e * a->bytes);
        mg_record_write(at, &store, node, (const mg_id[]){place, mg_value_wide(at, value)});
    }
    if (generic) mg_code_pop_guard(at);
    mg_code_pop_guard(at);
}

static enum mg_err instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_module *m = mg_patch_module(p);
    const struct mg_patch_inst *insts;
    struct mg_code_at *entry = mg_at_entry(p, 0);
    struct mg_access a;
    (void)conf, (void)d;
    mg_record_write(entry, &begins, 0, (const mg_id[]){mg_value_clock(entry)});
    for (uint32_t i = 0, n = mg_patch_insts(p, &insts); i < n; i++) {
        mg_id node = insts[i].node;
        if (mg_access_of(m, node, &a) && a.writes && !a.reads && !a.is_async && a.data != UINT32_MAX &&
            (a.space == MG_SPACE_global || a.space == MG_SPACE_generic))
            record_store(p, node, &a);
    }
    return MG_ERR_OK;
}

static const struct mg_tool stores = {
    .name = "stores", .summary = "what lanes store to global memory", .analyze = analyze, .instrument = instrument};
MG_TOOL_PLUGIN(stores)
