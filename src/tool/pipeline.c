/* A tool's instrumentation as a step of the pass pipeline: verified, dumped and timed like any
 * other pass. */
#include "tool/tool.h"

struct step {
    const struct mg_tool *tool;
    const void *conf;
    const struct mg_sites *sites;
    struct mg_twin *twin;
    struct mg_counter_layout *layout;
};

static enum mg_err run(struct mg_pass_ctx *c, void *user, mg_id func, uint32_t block)
{
    struct step *s = user;
    (void)func, (void)block;
    return s->tool->instrument(s->conf, s->sites, s->twin, s->layout, mg_pass_diag(c));
}

enum mg_err mg_tool_instrument(const struct mg_tool *tool, const void *conf, const struct mg_sites *sites, struct mg_twin *twin,
                               struct mg_counter_layout *layout, const struct mg_pass_opts *opts, struct mg_diag *d)
{
    struct step s = {tool, conf, sites, twin, layout};
    struct mg_pass pass = {.name = tool->name, .summary = tool->summary, .scope = MG_SCOPE_MODULE, .run = run};
    struct mg_pipeline_step step = {&pass, &s};
    return mg_pass_run(twin->m, &step, 1, opts, d);
}
