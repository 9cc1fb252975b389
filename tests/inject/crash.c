/* A tool whose code ends the process, at the place that CRASH_AT names, as CRASH_HOW says; with CRASH_APP only in the
 * program. */
#include "tool/plugin.h"
#include "patch/patch.h"
#include "view/result.h"

static void end(const char *where)
{
    const char *at = getenv("CRASH_AT"), *how = getenv("CRASH_HOW");
    if (!at || strcmp(at, where) || (getenv("CRASH_APP") && !getenv("MARGAY_RUN"))) return;
    if (how && *how == '0') abort();
    if (how && *how == '1') _exit(0);
    *(volatile int *)8 = 1;
}
__attribute__((constructor)) static void born(void)
{
    end("CONSTRUCTOR");
}
__attribute__((destructor)) static void dies(void)
{
    end("DESTRUCTOR");
}
static enum mg_err configure(const char *args, void **conf, struct mg_diag *d)
{
    (void)args, (void)d;
    *conf = NULL;
    end("CONFIGURE");
    return MG_ERR_OK;
}
static void begin(void *conf, const struct mg_tool_host *host)
{
    (void)conf, (void)host;
    end("BEGIN");
}
static enum mg_err analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    end("ANALYZE");
    mg_patch_words(p, 1);
    return MG_ERR_OK;
}
static enum mg_err instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)p, (void)d;
    end("INSTRUMENT");
    return MG_ERR_OK;
}
static void initialize(const void *conf, const struct mg_tool_launch *l, uint64_t *words)
{
    (void)conf;
    words[0] = 1;
    if (l->id == 3) end("INITIALIZE");
}
static void finalize(void *conf, const struct mg_tool_launch *l, const uint64_t *cells, uint32_t n)
{
    (void)conf, (void)cells, (void)n;
    if (l->id == 3) end("FINALIZE");
}
static void profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    (void)conf, (void)r, (void)t, (void)j;
    end("PROFILE");
}

static const struct mg_tool crash = {.name = "crash",
                                     .summary = "ends the process",
                                     .configure = configure,
                                     .begin = begin,
                                     .analyze = analyze,
                                     .instrument = instrument,
                                     .initialize = initialize,
                                     .finalize = finalize,
                                     .profile = profile};
MG_TOOL_PLUGIN(crash)
