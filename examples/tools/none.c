/* A tool that places nothing: copy this file to begin your own (docs/howto-add-a-tool.md).
 *   make none.so, then margay run -t ./none.so -- ./app
 * Kernels run as a copy of the application's code that is the same but for one parameter. */
#include "tool/plugin.h"
#include "view/result.h"

static enum mg_err analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)p, (void)d; /* reserve sites and cells here: mg_patch_site */
    return MG_ERR_OK;
}

static enum mg_err instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)p, (void)d; /* insert code here: mg_at_before, mg_cell_update */
    return MG_ERR_OK;
}

static void profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    (void)conf;
    mg_table_begin(t, "kernels", "launches that ran with this tool");
    mg_table_column(t, "launches", MG_COL_COUNT, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_json_key(j, "launches");
    mg_json_arr(j);
    for (uint32_t i = 0; i < r->n_kernels; i++) {
        mg_table_row(t);
        mg_table_u64(t, r->kernels[i].counted);
        mg_table_text(t, r->kernels[i].demangled);
        mg_json_u64(j, r->kernels[i].counted);
    }
    mg_json_end(j, ']');
}

static const struct mg_tool none = {
    .name = "mine",
    .summary = "places nothing",
    .analyze = analyze,
    .instrument = instrument,
    .profile = profile,
};
MG_TOOL_PLUGIN(none)
