/* The list of passes that can be named on a command line. */
#include <string.h>

#include "pass/pass.h"
#include "pass/stress.h"

static enum mg_err run_stress(struct mg_pass_ctx *c, void *user, mg_id func, uint32_t block)
{
    (void)user, (void)func, (void)block;
    mg_stress(mg_pass_module(c));
    return MG_ERR_OK;
}

static enum mg_err run_verify(struct mg_pass_ctx *c, void *user, mg_id func, uint32_t block)
{
    (void)user, (void)func, (void)block;
    return mg_module_verify(mg_pass_module(c), mg_pass_diag(c));
}

static const struct mg_pass mg_pass_stress = {
    .name = "stress",
    .summary = "rewrite everything that may be rewritten, keep what it computes",
    .scope = MG_SCOPE_MODULE,
    .run = run_stress,
};
static const struct mg_pass mg_pass_verify = {
    .name = "verify",
    .summary = "check what every pass must leave true",
    .scope = MG_SCOPE_IMMUTABLE,
    .keeps = MG_AN_ALL,
    .run = run_verify,
};

/* In files of their own. */
extern const struct mg_pass mg_pass_into_ssa, mg_pass_regs;

static const struct mg_pass *const passes[] = {
#define PASS(name) &mg_pass_##name,
#include "pass/passes.def"
#undef PASS
};

const struct mg_pass *mg_pass_at(uint32_t ix)
{
    return ix < MG_COUNT_OF(passes) ? passes[ix] : NULL;
}

const struct mg_pass *mg_pass_find(const char *name)
{
    for (uint32_t i = 0; i < MG_COUNT_OF(passes); i++)
        if (!strcmp(passes[i]->name, name)) return passes[i];
    return NULL;
}
