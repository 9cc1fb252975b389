/* expr: counts what one-liners ask for (`margay run -e`). The tool's options are the program's text as it
 * was written, so that whoever reports knows the maps without the kernels. */
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "probe/expr_place.h"
#include "tool/tool.h"

static void expr_release(void *conf)
{
    struct mg_expr_conf *c = conf;
    if (!c) return;
    mg_expr_free(c->e);
    mg_probe_free(c->probe);
    free(c->file_name);
    free(c);
}

/* Whoever only reports does not need the probes themselves: they may be gone. */
static enum mg_err read_probe(struct mg_expr_conf *c, struct mg_diag *d)
{
    char *ptx;
    size_t bytes;
    if (mg_io_read(c->e->probe, &ptx, &bytes, NULL)) return MG_ERR_OK;
    enum mg_err err = mg_probe_parse(ptx, bytes, c->e->probe, &c->probe, d);
    free(ptx);
    return err ? err : mg_expr_join(c->e, c->probe, "-e", d);
}

static enum mg_err expr_configure(const char *args, void **conf, struct mg_diag *d)
{
    struct mg_expr_conf *c = mg_xcalloc(1, sizeof *c);
    *conf = NULL;
    pthread_mutex_init(&c->lock, NULL);
    enum mg_err err = mg_expr_parse(args ? args : "", args ? strlen(args) : 0, "-e", &c->e, d);
    if (!err && c->e->probe) err = read_probe(c, d);
    if (err) {
        expr_release(c);
        return err;
    }
    *conf = c;
    return MG_ERR_OK;
}

static void expr_initialize(const void *conf, const struct mg_tool_launch *l, uint64_t *words)
{
    const struct mg_expr_conf *c = conf;
    if (c->e->uses[MG_EV_launch]) words[0] = l->id;
}

static const struct mg_tool_opt expr_opts[] = {
    {"CLAUSES", "", "the text of one-liners takes the place of options: SITES /predicate/ { @map[keys] = count() }"},
    {0}};

extern const struct mg_tool mg_tool_expr;
const struct mg_tool mg_tool_expr = {
    .name = "expr",
    .summary = "count what one-liners ask for: see -e and docs/probe-language.md",
    .opts = expr_opts,
    .configure = expr_configure,
    .release = expr_release,
    .analyze = mg_expr_analyze,
    .instrument = mg_expr_instrument,
    .initialize = expr_initialize,
    .list = mg_expr_list,
    .profile = mg_expr_profile,
    .begin = mg_expr_host_begin,
    .stream = mg_expr_host_stream,
    .read = mg_expr_host_read,
    .end = mg_expr_host_end,
    .flags = MG_TOOL_ASKED | MG_TOOL_FRAME,
};
