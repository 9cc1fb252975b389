/* span: how long each launch ran, by the device's own clock: from the first CTA's begin to the last warp's end. Its
 * cells take the place of event pairs for the launch's time (src/inject/device_clock.c). */
#include "tool/span.h"

#include "view/kit.h"

static void at_exit(struct mg_code_at *at, void *user)
{
    (void)user;
    mg_cell_update(at, MG_SPAN_END, mg_o_reg(mg_value_globaltimer(at)), MG_ONCE);
}

/* The first thread of a CTA says when it began; every warp says when it leaves. */
void mg_span_place(struct mg_patch *p)
{
    mg_patch_site(p, MG_SITE_KERNEL, 0, 0, MG_SPAN_CELLS, MG_MERGE_MAX, 0);
    struct mg_code_at *at = mg_at_entry(p, 0);
    mg_id time = mg_value_globaltimer(at), before = mg_code_temp(at, MG_TYPE_b64),
          first = mg_code_temp(at, MG_TYPE_pred);
    MG_CODE(at, "not.b64", before, time);
    MG_CODE(at, "setp.eq.u32", first, mg_value_tid(at), 0);
    mg_code_push_guard(at, first, false);
    mg_cell_update(at, MG_SPAN_BEGIN, mg_o_reg(before), MG_ALONE);
    mg_code_pop_guard(at);
    mg_at_exits(p, 0, at_exit, NULL);
}

static enum mg_err span_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf;
    (void)d;
    mg_span_place(p);
    return MG_ERR_OK;
}

extern const struct mg_tool mg_tool_span;
const struct mg_tool mg_tool_span = {
    .name = "span",
    .summary = "how long each launch ran, by the device's own clock",
    .instrument = span_instrument,
    .flags = MG_TOOL_NO_LOADS | MG_TOOL_SPAN,
};
