/* none: every launch runs the app's own code, nothing is instrumented. Copy this file to begin a
 * tool (docs/howto-add-a-tool.md), and leave the flag out. */
#include "patch/patch.h"
#include "tool/tool.h"

static const struct mg_tool_opt none_opts[] = {{0}};

static enum mg_err none_configure(const char *args, void **conf, struct mg_diag *d)
{
    *conf = NULL;
    if (!args || !*args) return MG_ERR_OK;
    return mg_diag_err(d, MG_ERR_INPUT, "tool none has no options, but got \"%s\"", args);
}

static enum mg_err none_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)p, (void)d;
    return MG_ERR_OK;
}

extern const struct mg_tool mg_tool_none;
const struct mg_tool mg_tool_none = {
    .name = "none",
    .summary = "run every launch native, instrument nothing",
    .opts = none_opts,
    .configure = none_configure,
    .instrument = none_instrument,
    .flags = MG_TOOL_NATIVE,
};
