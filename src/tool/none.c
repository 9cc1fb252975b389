/* none: every launch runs the app's own code, nothing is instrumented. Copy this file to begin a
 * tool. */
#include "tool/tool.h"

static const struct mg_tool_opt none_opts[] = {{0}};

static enum mg_err none_configure(const char *args, void **conf, struct mg_diag *d)
{
    *conf = NULL;
    if (!args || !*args) return MG_ERR_OK;
    return mg_diag_err(d, MG_ERR_INPUT, "tool none has no options, but got \"%s\"", args);
}

static void none_release(void *conf)
{
    (void)conf;
}

static enum mg_err none_instrument(const void *conf, const struct mg_sites *sites, struct mg_twin *twin,
                                   struct mg_counter_layout *layout, struct mg_diag *d)
{
    (void)conf, (void)sites, (void)twin, (void)d;
    *layout = (struct mg_counter_layout){.other_at = UINT32_MAX};
    return MG_ERR_OK;
}

static void none_initialize(const void *conf, uint64_t words[MG_CTX_N_WORDS])
{
    (void)conf, (void)words;
}

extern const struct mg_tool mg_tool_none;
const struct mg_tool mg_tool_none = {
    .name = "none", .summary = "run every launch native, instrument nothing",
    .opts = none_opts, .configure = none_configure, .release = none_release,
    .instrument = none_instrument, .initialize = none_initialize, .flags = MG_TOOL_NATIVE,
};
