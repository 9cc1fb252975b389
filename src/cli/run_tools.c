/* The tools of `margay run`: checked before the program starts, so that a typing error stops here, and
 * joined for the processes of the run, with paths of shared objects made absolute. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/io.h"
#include "cli/cli.h"
#include "cli/probe_compile.h"
#include "cli/run_tools.h"
#include "probe/expr.h"
#include "report/advice/advice.h"
#include "tool/spec.h"

#define USAGE 120

/* A shared object's own code, first in a process of its own: should it end that, it is named. */
static void try_open(void *user, struct mg_buf *out)
{
    struct mg_tool_spec t;
    void *conf = NULL;
    (void)out;
    if (mg_tool_spec_open(user, &t, NULL)) return;
    if (!mg_tool_configure(t.tool, t.args, 0, &conf, NULL) && t.tool->release) t.tool->release(conf);
    mg_tool_spec_close(&t);
}

bool mg_run_tool_opens(const char *given, char why[100])
{
    struct mg_buf none = MG_BUF_INIT;
    size_t n = strcspn(given, ",");
    bool foreign = memchr(given, '/', n) || (n > 3 && !strncmp(given + n - 3, ".so", 3));
    bool good = !foreign || mg_child_try(try_open, (void *)(uintptr_t)given, &none, why);
    mg_buf_release(&none);
    return good;
}

int mg_run_tool(const struct mg_opt_page *page, const char *option, const char *given, struct mg_buf *list,
                unsigned *flags, char **name)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_tool_spec t;
    void *conf = NULL;
    char why[100];
    if (!strncmp(given, MG_ADVICE ",", sizeof MG_ADVICE))
        return mg_opt_usage(page, USAGE,
                            "%s %s: advise takes no options; name the tool that has it (margay help advise)", option,
                            given);
    if (!mg_run_tool_opens(given, why))
        return mg_opt_usage(page, USAGE, "%s %s: the tool cannot be opened: %s", option, given, why);
    enum mg_err err = mg_tool_spec_open(given, &t, &d);
    if (err) {
        int status = mg_opt_usage(page, USAGE, "%s: %s", option, mg_diag_first(&d, err));
        mg_diag_release(&d);
        return status;
    }
    if (!t.path && !strcmp(t.name, "blocks")) err = mg_run_weights(&t.args, &d);
    if (!err) err = mg_tool_configure(t.tool, t.args, 0, &conf, &d);
    int status = err ? mg_opt_usage(page, USAGE, "%s %s: %s", option, given, mg_diag_first(&d, err)) : 0;
    if (!err) {
        struct mg_buf spec = MG_BUF_INIT;
        mg_buf_printf(&spec, "%s%s%s", t.path ? t.path : t.name, *t.args ? "," : "", t.args);
        mg_tool_spec_join(list, spec.at);
        mg_buf_release(&spec);
        *flags = t.tool->flags & ~(mg_tool_is_native(t.tool, conf) ? 0u : MG_TOOL_NATIVE);
        *name = mg_xstrdup(t.name);
        if (t.tool->release) t.tool->release(conf);
    }
    mg_tool_spec_close(&t);
    mg_diag_release(&d);
    return status;
}

static bool is_twice(char *const *names, uint32_t n)
{
    for (uint32_t i = 0; i + 1 < n; i++)
        if (!strcmp(names[i], names[n - 1])) return true;
    return false;
}

void mg_run_expand(struct mg_opt_list *tools)
{
    struct mg_opt_list to = {mg_xcalloc(tools->n + MG_ADVICE_MOST_TOOLS + 1, sizeof *to.at), 0};
    bool advised = false;
    for (uint32_t i = 0; i < tools->n; i++) {
        const char *specs[MG_ADVICE_MOST_TOOLS];
        bool advise = !strcmp(tools->at[i], "advise") && !advised;
        uint32_t n = advise ? mg_advice_tools(specs) : 0;
        for (uint32_t k = 0; k < n; k++) to.at[to.n++] = specs[k];
        if (!advise) to.at[to.n++] = tools->at[i];
        advised = advised || advise;
    }
    free(tools->at);
    *tools = to;
}

int mg_run_tools(const struct mg_opt_page *page, const struct mg_opt_list *given, const char *otherwise, bool *native,
                 char **out)
{
    struct mg_buf list = MG_BUF_INIT;
    uint32_t n = given->n ? given->n : 1, n_names = 0;
    char **names = mg_xcalloc(n + 1, sizeof *names);
    int status = 0;
    bool alone = false;
    *native = true;
    for (uint32_t i = 0; i < n && !status; i++) {
        unsigned flags = 0;
        status = mg_run_tool(page, "-t", given->n ? given->at[i] : otherwise, &list, &flags, &names[n_names]);
        n_names += !status;
        *native &= (flags & MG_TOOL_NATIVE) != 0;
        alone |= (flags & (MG_TOOL_NATIVE | MG_TOOL_BESIDE)) == MG_TOOL_NATIVE;
        if (!status && is_twice(names, n_names)) status = mg_opt_usage(page, USAGE, "-t %s is given twice", names[i]);
        if (!status && alone && n_names > 1)
            status = mg_opt_usage(page, USAGE, "-t %s runs everything native: no other tool goes with it",
                                  flags & MG_TOOL_NATIVE ? names[i] : names[0]);
    }
    for (uint32_t i = 0; i < n_names; i++) free(names[i]);
    free(names);
    if (!status) *out = mg_buf_take(&list);
    mg_buf_release(&list);
    return status;
}

/* The text of one -e: as given, or of the file behind '@'. */
static int add_one_liner(const struct mg_opt_page *page, const char *given, struct mg_buf *text)
{
    char *file = NULL;
    size_t bytes;
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err err = *given == '@' && !strpbrk(given, "{ ") ? mg_io_read(given + 1, &file, &bytes, &d) : MG_ERR_OK;
    int status = err ? mg_opt_usage(page, USAGE, "-e: %s", mg_diag_first(&d, err)) : 0;
    mg_buf_printf(text, "%s%s", text->n ? "\n" : "", file ? file : given);
    while (text->n && text->at[text->n - 1] == '\n') text->at[--text->n] = 0;
    free(file);
    mg_diag_release(&d);
    return status;
}

static int add_probe(const char *file, struct mg_buf *text)
{
    struct mg_diag d = MG_DIAG_INIT;
    int status = mg_probe_program(file, text, &d) ? mg_cli_fail(&d, USAGE) : 0;
    mg_diag_release(&d);
    return status;
}

int mg_run_expr(const struct mg_opt_page *page, const char *probe, const struct mg_opt_list *one_liners,
                struct mg_opt_list *tools)
{
    struct mg_buf text = MG_BUF_INIT, spec = MG_BUF_INIT;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_expr *e = NULL;
    int status = probe ? add_probe(probe, &text) : 0;
    for (uint32_t i = 0; i < one_liners->n && !status; i++) status = add_one_liner(page, one_liners->at[i], &text);
    if (!status && one_liners->n && mg_expr_parse(text.at, text.n, "-e", &e, &d)) status = mg_cli_fail(&d, USAGE);
    if (!status && text.n) {
        mg_buf_printf(&spec, "expr,%s", text.at);
        tools->at = mg_xrealloc(tools->at, (tools->n + 1) * sizeof *tools->at);
        tools->at[tools->n++] = mg_buf_take(&spec); /* as long as the program runs */
    }
    mg_expr_free(e);
    mg_diag_release(&d);
    mg_buf_release(&text);
    return status;
}
