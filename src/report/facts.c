#include "report/facts.h"

#include <string.h>

#include "report/priv.h"

void mg_facts_init(struct mg_facts *f, const struct mg_recording *p, const struct mg_report_opts *o)
{
    static const struct mg_report_opts defaults = {.size = sizeof defaults};
    *f = (struct mg_facts){.p = p, .o = o ? o : &defaults};
    f->of_use = mg_arena_array(&f->arena, const struct mg_jval *, p->n_uses + 1);
}

void mg_facts_release(struct mg_facts *f)
{
    mg_arena_release(&f->arena);
    *f = (struct mg_facts){0};
}

const struct mg_jval *mg_facts_use(struct mg_facts *f, uint32_t use)
{
    static const struct mg_jval nothing = {.kind = MG_JVAL_OBJECT};
    if (f->of_use[use]) return f->of_use[use];
    struct mg_table tables = {0};
    struct mg_buf text = MG_BUF_INIT;
    struct mg_json j;
    mg_json_init(&j, &text, 0);
    mg_json_obj(&j);
    mg_tool_tell(f->p, use, f->o, &tables, &j);
    mg_json_end(&j, '}');
    const struct mg_jval *v = mg_jval_parse(&f->arena, text.at, text.n);
    mg_table_release(&tables);
    mg_buf_release(&text);
    return f->of_use[use] = v ? v : &nothing;
}

const struct mg_jval *mg_facts_tool(struct mg_facts *f, const char *tool)
{
    for (uint32_t u = 0; u < f->p->n_uses; u++)
        if (!strcmp(f->p->uses[u].name, tool)) return mg_facts_use(f, u);
    return NULL;
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

bool mg_fact_is_metric(const struct mg_jval *member)
{
    static const char *const places[] = {"kernel", "block", "ptx_line", "line", "id", "launch"};
    if (!mg_jval_is_number(member)) return false;
    for (size_t i = 0; i < MG_COUNT_OF(places); i++)
        if (!strcmp(member->key, places[i])) return false;
    return true;
}

struct walk {
    struct mg_facts *f;
    const char *tool;
    mg_fact_fn fn;
    void *user;
};

/* A block of the kernel by "id" has its place from the profile. */
static bool place_of(const struct mg_jval *v, const char *list, const struct mg_pkernel *k, struct mg_fact *to)
{
    const struct mg_jval *ptx = mg_jval_get(v, "ptx_line"), *id = mg_jval_get(v, "id"),
                         *block = mg_jval_get(v, "block");
    bool placed = mg_jval_is_number(ptx) || mg_jval_is_number(mg_jval_get(v, "line"));
    if (!block && id && !strcmp(list, "blocks")) block = id;
    to->block = block && block->kind == MG_JVAL_U64 && block->u < k->n_blocks ? (uint32_t)block->u : UINT32_MAX;
    if (!placed && to->block == UINT32_MAX) return false;
    const struct mg_pblock *b = to->block != UINT32_MAX ? &k->blocks[to->block] : NULL;
    bool of_block = b && !placed;
    to->file = of_block ? b->file : mg_jval_text(v, "file");
    to->line = of_block ? b->line : (uint32_t)mg_jval_u64(v, "line");
    to->ptx_line = of_block ? b->ptx_line : (uint32_t)mg_jval_u64(v, "ptx_line");
    to->function = mg_jval_text(v, "function");
    if (!to->function) to->function = b ? b->function : k->name;
    to->op = mg_jval_text(v, "op");
    to->inlined = mg_jval_text(v, "inlined");
    return true;
}

static void walk_value(struct walk *w, const struct mg_jval *v, const char *list, const struct mg_pkernel *k, int depth)
{
    if (depth > 8) return;
    if (v->kind == MG_JVAL_OBJECT) {
        const struct mg_jval *kernel = mg_jval_get(v, "kernel");
        struct mg_fact fact = {.tool = w->tool, .list = list, .values = v};
        if (kernel && kernel->kind == MG_JVAL_U64 && kernel->u < w->f->p->n_kernels) k = &w->f->p->kernels[kernel->u];
        fact.kernel = k;
        if (k && place_of(v, list, k, &fact)) w->fn(&fact, w->user);
    }
    for (const struct mg_jval *e = mg_jval_first(v); e; e = e->next)
        if (e->kind == MG_JVAL_ARRAY || e->kind == MG_JVAL_OBJECT)
            walk_value(w, e, e->key ? e->key : list, k, depth + 1);
}

void mg_facts_each(struct mg_facts *f, mg_fact_fn fn, void *user)
{
    for (uint32_t u = 0; u < f->p->n_uses; u++) {
        struct walk w = {f, f->p->uses[u].name, fn, user};
        if (!f->o->tool || !strcmp(f->o->tool, w.tool)) walk_value(&w, mg_facts_use(f, u), "", NULL, 0);
    }
}
