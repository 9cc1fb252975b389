/* margay ptx instrument: the text a device would get: a tool's twin of each kernel, or the module
 * after a pass. */
#include "cli/ptx.h"

#include <stdlib.h>
#include <string.h>

#include "cli/opt.h"
#include "ptx/ptx.h"
#include "tool/tool.h"

static enum mg_err run_tool(const struct mg_module *m, mg_id kernel, const struct mg_tool *tool, const void *conf,
                            const struct ptx_opts *o, struct mg_buf *out, struct mg_diag *d)
{
    struct mg_twin *t = NULL;
    struct mg_sites *sites = mg_sites_new(m, kernel);
    struct mg_counter_layout layout = {.other_at = UINT32_MAX}; /* what a tool leaves alone */
    struct mg_pass_opts passes = {.size = sizeof passes, .dump = o->dump, .dump_to = out, .verify = true};
    enum mg_err err = mg_twin_new(m, kernel, &t, d);
    if (!err) err = mg_tool_instrument(tool, conf, sites, t, &layout, &passes, d);
    if (!err) {
        mg_buf_printf(out, "// %s: %u counters for %u blocks", sites->kernel, layout.n_counters, sites->n_blocks);
        for (uint32_t i = 0; i < t->n_symbols; i++) mg_buf_printf(out, "%s%s", i ? ", " : "; symbols ", t->symbols[i].name);
        mg_buf_addc(out, '\n');
        mg_ptx_print(t->m, out);
    }
    mg_counter_layout_release(&layout);
    mg_twin_free(t);
    mg_sites_free(sites);
    return err;
}

static enum mg_err run_pass(struct mg_module *m, const struct ptx_opts *o, struct mg_buf *out, struct mg_diag *d)
{
    const struct mg_pass *p = mg_pass_find(o->pass);
    if (!p) return mg_diag_err(d, MG_ERR_NOT_FOUND, "no pass \"%s\"", o->pass);
    struct mg_pipeline_step step = {p, NULL};
    struct mg_pass_opts opts = {.size = sizeof opts, .verify = true};
    enum mg_err err = mg_pass_run(m, &step, 1, &opts, d);
    if (!err) mg_ptx_print(m, out);
    return err;
}

enum mg_err ptx_instrument(struct mg_module *m, const struct ptx_opts *o, struct mg_buf *out, struct mg_diag *d)
{
    if (o->pass) return run_pass(m, o, out, d);
    char *spec = mg_xstrdup(o->tool ? o->tool : "blocks"), *args = strchr(spec, ',');
    if (args) *args++ = 0;
    const struct mg_tool *tool = mg_tool_find(spec);
    void *conf = NULL;
    enum mg_err err = tool ? tool->configure(args ? args : "", &conf, d) : mg_diag_err(d, MG_ERR_NOT_FOUND, "no tool \"%s\"", spec);
    for (mg_id f = 1; !err && f < m->funcs.n; f++)
        if (m->funcs.at[f].kind == MG_FUNC_entry && ptx_wants(o, m, f)) err = run_tool(m, f, tool, conf, o, out, d);
    if (conf) tool->release(conf);
    free(spec);
    return err;
}

bool ptx_opts_check(const struct ptx_opts *o, const char *action, const struct mg_opt_page *page)
{
    bool instrument = !strcmp(action, "instrument");
    if (!instrument && (o->tool || o->pass || o->dump)) {
        mg_opt_usage(page, 0, "%s is for instrument", o->tool ? "-t" : o->pass ? "--pass" : "--dump");
        return false;
    }
    if (o->pass && !mg_pass_find(o->pass)) {
        mg_opt_usage(page, 0, "no pass '%s'", o->pass);
        return false;
    }
    struct mg_diag d = MG_DIAG_INIT;
    char *spec = mg_xstrdup(o->tool ? o->tool : "blocks"), *args = strchr(spec, ',');
    if (args) *args++ = 0;
    const struct mg_tool *tool = mg_tool_find(spec);
    void *conf = NULL;
    enum mg_err err = MG_ERR_OK;
    if (!tool) mg_opt_usage(page, 0, "there is no tool named %s (margay tools lists them)", spec);
    else if (tool->configure && (err = tool->configure(args ? args : "", &conf, &d))) mg_opt_usage(page, 0, "-t %s: %s", o->tool, mg_diag_first(&d, err));
    if (conf && tool->release) tool->release(conf);
    mg_diag_release(&d);
    free(spec);
    return tool && !err;
}
