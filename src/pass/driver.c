/* The pass driver: runs a pipeline over a module.
 *
 *   for each run of steps with the same scope:
 *     immutable, module   each pass once
 *     kernel              for each function with a body: every pass of the run, in order
 *     block               for each block of each function: every pass of the run, in order
 *
 * so that neighbouring passes of one scope work on a function or block while it is warm. Analyses
 * are computed when a pass asks for them and dropped after a pass that does not keep them. After
 * each pass (each run, for coalesced ones) the module is verified in debug builds or on demand.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/dom.h"
#include "analysis/live.h"
#include "analysis/loop.h"
#include "analysis/space.h"
#include "analysis/ssa.h"
#include "analysis/uniform.h"
#include "base/io.h"
#include "pass/pass.h"
#include "ptx/ptx.h"

struct func_facts { /* owner: the context; NULL: not computed */
    struct mg_cfg *cfg;
    struct mg_dom *dom, *postdom;
    struct mg_loops *loops;
    struct mg_live *live;
    struct mg_ssa *ssa;
    struct mg_uniform *uniform;
};

struct mg_pass_ctx {
    struct mg_module *m;
    struct mg_diag *d;
    struct func_facts *facts; /* by func id */
    uint32_t n_facts;
    struct mg_spaces *spaces;
};

struct mg_module *mg_pass_module(struct mg_pass_ctx *c)
{
    return c->m;
}

struct mg_diag *mg_pass_diag(struct mg_pass_ctx *c)
{
    return c->d;
}

static struct func_facts *facts_of(struct mg_pass_ctx *c, mg_id func)
{
    if (func >= c->n_facts) {
        uint32_t n = c->m->funcs.n;
        c->facts = mg_xrealloc(c->facts, sizeof *c->facts * n);
        memset(c->facts + c->n_facts, 0, sizeof *c->facts * (n - c->n_facts));
        c->n_facts = n;
    }
    return &c->facts[func];
}

const struct mg_cfg *mg_pass_cfg(struct mg_pass_ctx *c, mg_id func)
{
    struct func_facts *f = facts_of(c, func);
    if (!f->cfg) f->cfg = mg_cfg_new(c->m, func);
    return f->cfg;
}

const struct mg_dom *mg_pass_dom(struct mg_pass_ctx *c, mg_id func)
{
    struct func_facts *f = facts_of(c, func);
    if (!f->dom) f->dom = mg_dom_new(mg_pass_cfg(c, func));
    return f->dom;
}

const struct mg_dom *mg_pass_postdom(struct mg_pass_ctx *c, mg_id func)
{
    struct func_facts *f = facts_of(c, func);
    if (!f->postdom) f->postdom = mg_postdom_new(mg_pass_cfg(c, func));
    return f->postdom;
}

const struct mg_loops *mg_pass_loops(struct mg_pass_ctx *c, mg_id func)
{
    struct func_facts *f = facts_of(c, func);
    if (!f->loops) f->loops = mg_loops_new(mg_pass_cfg(c, func));
    return f->loops;
}

const struct mg_live *mg_pass_live(struct mg_pass_ctx *c, mg_id func)
{
    struct func_facts *f = facts_of(c, func);
    if (!f->live) f->live = mg_live_new(mg_pass_cfg(c, func));
    return f->live;
}

const struct mg_ssa *mg_pass_ssa(struct mg_pass_ctx *c, mg_id func)
{
    struct func_facts *f = facts_of(c, func);
    if (!f->ssa) f->ssa = mg_ssa_new(mg_pass_cfg(c, func), mg_pass_dom(c, func), mg_pass_live(c, func));
    return f->ssa;
}

const struct mg_uniform *mg_pass_uniform(struct mg_pass_ctx *c, mg_id func)
{
    struct func_facts *f = facts_of(c, func);
    if (!f->uniform) f->uniform = mg_uniform_new(mg_pass_cfg(c, func), mg_pass_loops(c, func));
    return f->uniform;
}

const struct mg_spaces *mg_pass_spaces(struct mg_pass_ctx *c)
{
    if (!c->spaces) c->spaces = mg_spaces_new(c->m);
    return c->spaces;
}

/* ORDER: what is built on another result goes before it. */
static void drop(struct mg_pass_ctx *c, struct func_facts *f, unsigned keeps)
{
    if (!(keeps & MG_AN_CFG)) keeps = 0; /* everything rests on the graph */
    if (!(keeps & MG_AN_DOM) || !(keeps & MG_AN_LIVE)) keeps &= ~(unsigned)MG_AN_SSA;
    if (!(keeps & MG_AN_LOOP)) keeps &= ~(unsigned)MG_AN_UNIFORM;
    if (!(keeps & MG_AN_UNIFORM)) {
        mg_uniform_free(f->uniform);
        f->uniform = NULL;
    }
    if (!(keeps & MG_AN_SSA)) {
        mg_ssa_free(f->ssa);
        f->ssa = NULL;
    }
    if (!(keeps & MG_AN_LIVE)) {
        mg_live_free(f->live);
        f->live = NULL;
    }
    if (!(keeps & MG_AN_LOOP)) {
        mg_loops_free(f->loops);
        f->loops = NULL;
    }
    if (!(keeps & MG_AN_DOM)) {
        mg_dom_free(f->dom);
        mg_dom_free(f->postdom);
        f->dom = f->postdom = NULL;
    }
    if (!(keeps & MG_AN_SPACE)) {
        mg_spaces_free(c->spaces);
        c->spaces = NULL;
    }
    if (!(keeps & MG_AN_CFG)) {
        mg_cfg_free(f->cfg);
        f->cfg = NULL;
    }
}

static void drop_all(struct mg_pass_ctx *c, unsigned keeps)
{
    for (uint32_t i = 0; i < c->n_facts; i++) drop(c, &c->facts[i], keeps);
    if (!(keeps & MG_AN_SPACE)) {
        mg_spaces_free(c->spaces);
        c->spaces = NULL;
    }
}

static void compute(struct mg_pass_ctx *c, unsigned needs, mg_id func)
{
    if (needs & MG_AN_CFG) mg_pass_cfg(c, func);
    if (needs & MG_AN_DOM) mg_pass_dom(c, func), mg_pass_postdom(c, func);
    if (needs & MG_AN_LOOP) mg_pass_loops(c, func);
    if (needs & MG_AN_LIVE) mg_pass_live(c, func);
    if (needs & MG_AN_SSA) mg_pass_ssa(c, func);
    if (needs & MG_AN_UNIFORM) mg_pass_uniform(c, func);
    if (needs & MG_AN_SPACE) mg_pass_spaces(c);
}

static bool has_body(const struct mg_module *m, mg_id func)
{
    const struct mg_func *f = &m->funcs.at[func];
    return f->defined && f->kind != MG_FUNC_proto;
}

static enum mg_err run_one(struct mg_pass_ctx *c, const struct mg_pipeline_step *s, mg_id func, uint32_t block,
                           uint64_t *ns)
{
    uint64_t start = ns ? mg_now_ns() : 0;
    if (func) compute(c, s->pass->needs, func);
    enum mg_err err = s->pass->run(c, s->user, func, block);
    if (func)
        drop(c, facts_of(c, func), s->pass->keeps);
    else
        drop_all(c, s->pass->keeps);
    if (ns) *ns += mg_now_ns() - start;
    return err;
}

/* The steps [from, to) have one scope. */
static enum mg_err run_group(struct mg_pass_ctx *c, const struct mg_pipeline_step *steps, uint32_t from, uint32_t to,
                             uint64_t *ns)
{
    enum mg_pass_scope scope = steps[from].pass->scope;
    enum mg_err err = MG_ERR_OK;
    uint32_t n_funcs = c->m->funcs.n; /* functions a pass adds are not visited */
    if (scope == MG_SCOPE_IMMUTABLE || scope == MG_SCOPE_MODULE) {
        for (uint32_t i = from; i < to && !err; i++) err = run_one(c, &steps[i], 0, 0, ns ? &ns[i] : NULL);
        return err;
    }
    for (mg_id f = 1; f < n_funcs && !err; f++) {
        if (!has_body(c->m, f)) continue;
        if (scope == MG_SCOPE_KERNEL) {
            for (uint32_t i = from; i < to && !err; i++) err = run_one(c, &steps[i], f, 0, ns ? &ns[i] : NULL);
            continue;
        }
        uint32_t n_blocks = mg_pass_cfg(c, f)->n_blocks;
        for (uint32_t b = 0; b < n_blocks && !err; b++)
            for (uint32_t i = from; i < to && !err; i++) err = run_one(c, &steps[i], f, b, ns ? &ns[i] : NULL);
    }
    return err;
}

static bool dumps(const struct mg_pass_opts *o, const char *name)
{
    return o && o->dump && o->dump_to && (!strcmp(o->dump, "all") || !strcmp(o->dump, name));
}

static enum mg_err after_group(struct mg_pass_ctx *c, const struct mg_pipeline_step *steps, uint32_t from, uint32_t to,
                               const struct mg_pass_opts *o, bool verify)
{
    for (uint32_t i = from; i < to; i++) {
        if (!dumps(o, steps[i].pass->name)) continue;
        mg_buf_printf(o->dump_to, "// after pass %s\n", steps[i].pass->name);
        mg_ptx_print(c->m, o->dump_to);
    }
    if (!verify || steps[from].pass->scope == MG_SCOPE_IMMUTABLE) return MG_ERR_OK;
    enum mg_err err = mg_module_verify(c->m, c->d);
    if (err) mg_diag_err(c->d, err, "the module is broken after pass %s", steps[to - 1].pass->name);
    return err;
}

enum mg_err mg_pass_run(struct mg_module *m, const struct mg_pipeline_step *steps, uint32_t n,
                        const struct mg_pass_opts *opts, struct mg_diag *d)
{
    struct mg_pass_ctx c = {.m = m, .d = d};
    enum mg_err err = MG_ERR_OK;
#ifdef MG_DEBUG
    bool verify = true;
#else
    bool verify = opts && opts->verify;
#endif
    uint64_t *ns = opts ? opts->pass_ns : NULL;
    if (ns) memset(ns, 0, sizeof *ns * n);
    for (uint32_t i = 0; i < n && !err;) {
        uint32_t to = i + 1;
        /* a dump shows the module between passes: then they are not coalesced */
        while (to < n && steps[to].pass->scope == steps[i].pass->scope && !(opts && opts->dump)) to++;
        err = run_group(&c, steps, i, to, ns);
        if (!err) err = after_group(&c, steps, i, to, opts, verify);
        i = to;
    }
    drop_all(&c, 0);
    free(c.facts);
    return err;
}
