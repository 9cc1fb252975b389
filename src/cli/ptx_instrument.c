/* margay ptx instrument: the text a device would get: the tools' twin of each kernel, or the module
 * after a pass. */
#include "base/child.h"
#include "cli/ptx.h"
#include "cli/run_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/opt.h"
#include "ptx/ptx.h"
#include "patch/layout.h"
#include "tool/instrument.h"
#include "tool/spec.h"

enum { GPU_COPIES = 256 };

struct tools {
    struct mg_tool_use *uses;
    void **confs;
    struct mg_tool_spec *specs;
    uint32_t n;
};

static void release_tools(struct tools *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->confs[i] && t->uses[i].tool->release) t->uses[i].tool->release(t->confs[i]);
        mg_tool_spec_close(&t->specs[i]);
    }
    free(t->uses);
    free(t->confs);
    free(t->specs);
}

static enum mg_err add_tool(struct tools *t, const char *given, uint64_t sm, struct mg_diag *d)
{
    struct mg_tool_spec *spec = &t->specs[t->n];
    enum mg_err err = mg_tool_spec_open(given, spec, d);
    if (err) return err;
    err = mg_tool_configure(spec->tool, spec->args, (uint32_t)sm, &t->confs[t->n], d);
    t->uses[t->n] = (struct mg_tool_use){spec->tool, t->confs[t->n]};
    t->n++;
    return err;
}

static enum mg_err find_tools(const struct ptx_opts *o, struct tools *t, struct mg_diag *d)
{
    enum mg_err err = MG_ERR_OK;
    t->uses = mg_xcalloc(o->tools.n + 1, sizeof *t->uses);
    t->confs = mg_xcalloc(o->tools.n + 1, sizeof *t->confs);
    t->specs = mg_xcalloc(o->tools.n + 1, sizeof *t->specs);
    if (!o->tools.n) err = add_tool(t, "blocks", o->sm, d);
    for (uint32_t i = 0; i < o->tools.n && !err; i++) err = add_tool(t, o->tools.at[i], o->sm, d);
    return err;
}

static void add_head(const struct mg_sites *sites, const struct mg_twin *t, const struct mg_layout *l,
                     struct mg_buf *out)
{
    const struct mg_counter_launch one = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    mg_buf_printf(out, "// %s: %u counters for %u blocks", sites->kernel, l->blocks.n_counters, sites->n_blocks);
    for (uint32_t i = 0; i < l->n_regions; i++) {
        const struct mg_region *r = &l->regions[i];
        if (r->reason)
            mg_buf_printf(out, "; %s: %s", r->tool, r->reason);
        else if (r->n_words)
            mg_buf_printf(out, "; %s: %u cells in %u copies, %u tables", r->tool, r->n_cells, r->n_copies, r->n_tables);
    }
    if (l->n_region_words) mg_buf_printf(out, "; %llu words", (unsigned long long)mg_layout_words(l, &one));
    for (uint32_t i = 0; i < t->n_symbols; i++) mg_buf_printf(out, "%s%s", i ? ", " : "; symbols ", t->symbols[i].name);
    mg_buf_addc(out, '\n');
}

static enum mg_err run_tools(const struct mg_module *m, mg_id kernel, const struct tools *tools,
                             const struct ptx_opts *o, struct mg_buf *out, struct mg_diag *d)
{
    struct mg_twin *t = NULL;
    struct mg_sites *sites = mg_sites_new(m, kernel);
    struct mg_layout layout = {.n_regions = 0};
    struct mg_pass_opts passes = {.size = sizeof passes, .dump = o->dump, .dump_to = out, .verify = true};
    struct mg_tools_opts opts = {.size = sizeof opts,
                                 .sm = (uint32_t)o->sm,
                                 .max_copies = o->sm ? GPU_COPIES : 1,
                                 .reduce = o->sm != 0,
                                 .passes = &passes};
    unsigned flags = o->sm ? MG_TWIN_CONSTANTS | MG_TWIN_ADDRESSES : 0;
    for (uint32_t i = 0; i < tools->n; i++) flags = mg_tool_twin_flags(tools->uses[i].tool, flags); /* as a run does */
    enum mg_err err = mg_twin_new_as(m, kernel, flags, &t, d);
    if (!err) t->m->marked = !o->sm;
    if (!err && o->sm) mg_twin_for_gpu(t);
    if (!err) err = mg_tools_instrument(tools->uses, tools->n, sites, t, &opts, &layout, d);
    if (!err) err = mg_module_verify(t->m, d); /* all of it, as a run does */
    if (!err) {
        add_head(sites, t, &layout, out);
        mg_ptx_print(t->m, out);
    }
    mg_layout_release(&layout);
    mg_twin_free(t);
    mg_sites_free(sites);
    return err;
}

enum { MOST_PASSES = 16 };

/* "ssa,regs": passes in order; false: one of them is none, named in `bad`. */
static bool find_passes(const char *list, struct mg_pipeline_step steps[MOST_PASSES], uint32_t *n, char bad[64])
{
    *n = 0;
    for (const char *at = list; *at && *n < MOST_PASSES;) {
        size_t len = strcspn(at, ",");
        snprintf(bad, 64, "%.*s", (int)MG_MIN(len, (size_t)63), at);
        const struct mg_pass *p = mg_pass_find(bad);
        if (!p) return false;
        steps[(*n)++] = (struct mg_pipeline_step){p, NULL};
        at += len + (at[len] == ',');
    }
    return *n != 0;
}

static enum mg_err run_passes(struct mg_module *m, const struct ptx_opts *o, struct mg_buf *out, struct mg_diag *d)
{
    struct mg_pipeline_step steps[MOST_PASSES];
    struct mg_pass_opts opts = {.size = sizeof opts, .verify = true, .dump = o->dump, .dump_to = out};
    uint32_t n;
    char bad[64] = "";
    if (!find_passes(o->pass, steps, &n, bad)) return mg_diag_err(d, MG_ERR_NOT_FOUND, "no pass \"%s\"", bad);
    enum mg_err err = mg_pass_run(m, steps, n, &opts, d);
    if (!err) mg_ptx_print(m, out);
    return err;
}

/* A shared object's own code, first in a process of its own. */
struct trial {
    struct mg_module *m;
    const struct ptx_opts *o;
};

static enum mg_err instrument(struct mg_module *m, const struct ptx_opts *o, struct mg_buf *out, struct mg_diag *d)
{
    struct tools tools = {.n = 0};
    enum mg_err err = find_tools(o, &tools, d);
    for (mg_id f = 1; !err && f < m->funcs.n; f++)
        if (m->funcs.at[f].kind == MG_FUNC_entry && ptx_wants(o, m, f)) err = run_tools(m, f, &tools, o, out, d);
    release_tools(&tools);
    return err;
}

static void try_instrument(void *user, struct mg_buf *out)
{
    const struct trial *t = user;
    struct mg_buf text = MG_BUF_INIT;
    (void)out;
    (void)!instrument(t->m, t->o, &text, NULL);
    mg_buf_release(&text);
}

enum mg_err ptx_instrument(struct mg_module *m, const struct ptx_opts *o, struct mg_buf *out, struct mg_diag *d)
{
    char why[100];
    struct mg_buf none = MG_BUF_INIT;
    bool foreign = false;
    if (o->pass) return run_passes(m, o, out, d);
    for (uint32_t i = 0; i < o->tools.n; i++) foreign |= strcspn(o->tools.at[i], "/") < strcspn(o->tools.at[i], ",");
    if (foreign && !mg_child_try(try_instrument, &(struct trial){m, o}, &none, why))
        return mg_diag_err(d, MG_ERR_INPUT, "the tool cannot instrument: %s", why);
    mg_buf_release(&none);
    return instrument(m, o, out, d);
}

bool ptx_opts_check(const struct ptx_opts *o, const char *action, const struct mg_opt_page *page)
{
    bool instrument = !strcmp(action, "instrument");
    if (!instrument && (o->tools.n || o->pass || o->dump || o->sm)) {
        mg_opt_usage(page, 0, "%s is for instrument",
                     o->tools.n ? "-t"
                     : o->pass  ? "--pass"
                     : o->dump  ? "--dump"
                                : "--sm");
        return false;
    }
    bool cfg = !strcmp(action, "cfg");
    if ((o->json && !cfg && strcmp(action, "stat")) || (!cfg && (o->dot || o->data))) {
        mg_opt_usage(page, 0, o->json ? "--json is for cfg and stat" : "%s is for cfg", o->dot ? "--dot" : "--data");
        return false;
    }
    if (o->dot && (o->json || o->data)) {
        mg_opt_usage(page, 0, "--dot goes without --json and --data");
        return false;
    }
    struct mg_pipeline_step steps[MOST_PASSES];
    uint32_t n;
    char bad[64] = "";
    if (o->pass && !find_passes(o->pass, steps, &n, bad)) {
        mg_opt_usage(page, 0, "no pass '%s'", bad);
        return false;
    }
    for (uint32_t i = 0; i < o->tools.n; i++) {
        char why[100];
        if (mg_run_tool_opens(o->tools.at[i], why)) continue;
        mg_opt_usage(page, 0, "-t %s: the tool cannot be opened: %s", o->tools.at[i], why);
        return false;
    }
    struct mg_diag d = MG_DIAG_INIT;
    struct tools tools = {.n = 0};
    enum mg_err err = find_tools(o, &tools, &d);
    if (err) mg_opt_usage(page, 0, "-t: %s", mg_diag_first(&d, err));
    release_tools(&tools);
    mg_diag_release(&d);
    return !err;
}
