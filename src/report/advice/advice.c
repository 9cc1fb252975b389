/* The rules one after the other, and the list that they fill. */
#include <stdlib.h>
#include <string.h>

#include "report/advice/priv.h"

static const struct mg_rule rules[] = {
#define RULE(name, tools, about) {#name, tools, about, mg_rule_##name},
#include "report/advice/rules.def"
#undef RULE
};

const char *mg_finding_rule(const struct mg_finding *f)
{
    return f->rule->name;
}

bool mg_advice_help(const char *name, struct mg_buf *out)
{
    if (!strcmp(name, MG_ADVICE) || !strcmp(name, "findings")) {
        mg_buf_adds(out, "advise: runs the tools that these rules read, and ends with what they found\n");
        for (size_t i = 0; i < MG_COUNT_OF(rules); i++)
            mg_buf_printf(out, "    %-15s %s\n", rules[i].name, rules[i].about);
        mg_buf_adds(out,
                    "    it takes no options; margay help RULE says when one of them finds something, and what to try\n"
                    "    margay help docs/findings.md: how a gain is computed\n");
        return true;
    }
    for (size_t i = 0; i < MG_COUNT_OF(rules); i++)
        if (!strcmp(name, rules[i].name)) {
            mg_buf_printf(out, "%s (rule of findings)  %s\n    tools: %s\n", rules[i].name, rules[i].about,
                          rules[i].tools);
            return true;
        }
    return false;
}

void mg_advice_rules(struct mg_json *j)
{
    mg_json_obj(j);
    for (size_t i = 0; i < MG_COUNT_OF(rules); i++) mg_json_key_str(j, rules[i].name, rules[i].about);
    mg_json_end(j, '}');
}

/* Is the word one of those that a row of rules.def joins by ' '? */
static bool names_tool(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (; *words; words += strcspn(words, " "), words += strspn(words, " "))
        if (strcspn(words, " ") == n && !memcmp(words, word, n)) return true;
    return false;
}

uint32_t mg_advice_tools(const char *specs[MG_ADVICE_MOST_TOOLS])
{
    static const struct {
        const char *name, *spec;
    } known[] = {/* few CTAs of clock: their cells are kept launch by launch */
                 {"blocks", "blocks"},
                 {"memory", "memory"},
                 {"lanes", "lanes"},
                 {"ctas", "ctas"},
                 {"values", "values,space=global"},
                 {"clock", "clock,ctas=256"}};
    uint32_t n = 0;
    for (size_t t = 0; t < MG_COUNT_OF(known); t++) {
        bool used = false;
        for (size_t i = 0; i < MG_COUNT_OF(rules); i++) used |= names_tool(rules[i].tools, known[t].name);
        if (used) specs[n++] = known[t].spec;
    }
    return n;
}

/* ---- what rules share --------------------------------------------------------------------------------------- */

bool is_shown(const struct advice *a, const struct mg_jval *site, const struct mg_pkernel **k)
{
    const struct mg_jval *id = mg_jval_get(site, "kernel");
    if (!id || id->kind != MG_JVAL_U64 || id->u >= a->facts->p->n_kernels) return false;
    *k = &a->facts->p->kernels[id->u];
    return mg_report_shows(a->facts->o, *k);
}

static bool has_tools(const struct advice *a, const char *words)
{
    for (size_t n; *words; words += n, words += strspn(words, " ")) {
        n = strcspn(words, " ");
        if (!mg_facts_tool(a->facts, mg_arena_strndup(&a->out->arena, words, n))) return false;
    }
    return true;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

struct line_sum *sum_of_place(struct line_sums *s, const struct mg_pkernel *k, struct place at)
{
    for (uint32_t i = s->n; i-- > 0;) { /* sites of a kernel stand together */
        struct line_sum *x = &s->at[i];
        if (x->k != k) break;
        if (at.file && x->place.line == at.line && same_text(x->place.file, at.file)) return x;
        if (!at.file && !x->place.file && x->place.ptx_line == at.ptx_line) return x;
    }
    if (s->n == s->cap) s->at = mg_xrealloc(s->at, (s->cap = s->cap * 2 + 16) * sizeof *s->at);
    s->at[s->n] = (struct line_sum){.k = k, .place = at, .regular = true};
    return &s->at[s->n++];
}

struct line_sum *sum_of_line(struct advice *a, struct line_sums *s, const struct mg_pkernel *k,
                             const struct mg_jval *site)
{
    const char *function = mg_jval_text(site, "function");
    struct line_sum *x = sum_of_place(s, k, place_of_site(a, k, site));
    if (x->function) return x; /* a line that was there */
    x->function = function ? function : k->name;
    x->op = mg_jval_text(site, "op");
    x->space = mg_jval_text(site, "space");
    x->width = (uint32_t)mg_jval_u64(site, "width");
    return x;
}

struct mg_finding *add_finding(struct advice *a, const struct kernel_cost *c, double gain, bool exact)
{
    struct mg_findings *list = a->out;
    if (list->n == a->cap) list->at = mg_xrealloc(list->at, (a->cap = a->cap * 2 + 16) * sizeof *list->at);
    struct mg_finding *f = &list->at[list->n++];
    *f = (struct mg_finding){
        .rule = a->rule, .kernel = c->k, .share_pct = 100 * c->share, .gain_pct = 100 * gain, .exact = exact};
    return f;
}

void place_at_line(struct mg_finding *f, const struct line_sum *s)
{
    f->function = s->function;
    f->file = s->place.file;
    f->line = s->place.file ? s->place.line : 0;
    f->ptx_line = s->place.ptx_line;
    f->header = s->place.header;
    f->header_line = s->place.header_line;
}

void place_at_access(struct advice *a, struct mg_finding *f, const struct line_sum *s)
{
    place_at_line(f, s);
    if (s->worst) f->ptx_line = (uint32_t)mg_jval_u64(s->worst, "ptx_line"); /* a line has several buffers */
    const char *buffer = mg_buffer_at(a->buffers, s->k, s->function, f->ptx_line);
    f->buffer = buffer ? mg_arena_strndup(&a->out->arena, buffer, strlen(buffer)) : NULL;
}

void place_at_kernel(struct mg_finding *f, const struct mg_pkernel *k)
{
    f->function = k->name;
    f->file = k->n_blocks ? k->blocks[0].file : NULL;
    f->line = f->file ? k->blocks[0].line : 0;
    f->ptx_line = k->n_blocks ? k->blocks[0].ptx_line : 0;
}

/* ---- the list --------------------------------------------------------------------------------------------------- */

static int by_rank(const void *x, const void *y)
{
    const struct mg_finding *a = x, *b = y;
    if (a->class != b->class) return a->class < b->class ? -1 : 1;
    if (a->gain_pct != b->gain_pct) return a->gain_pct > b->gain_pct ? -1 : 1;
    if (a->gain_pct <= 0 && a->share_pct != b->share_pct) return a->share_pct > b->share_pct ? -1 : 1;
    if (a->rule != b->rule) return a->rule < b->rule ? -1 : 1;
    if (a->kernel != b->kernel) return a->kernel->id < b->kernel->id ? -1 : 1;
    return a->ptx_line < b->ptx_line ? -1 : a->ptx_line > b->ptx_line;
}

static const char *keep(struct mg_findings *list, const char *text)
{
    return text ? mg_arena_strndup(&list->arena, text, strlen(text)) : NULL;
}

/* What tools memory and lanes say of kernels as a whole. */
static void add_parts(struct advice *a, struct mg_kernel_work *work)
{
    const struct mg_pkernel *k;
    const struct mg_jval *memory = mg_facts_tool(a->facts, "memory"), *lanes = mg_facts_tool(a->facts, "lanes");
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(memory, "kernels")); v; v = v->next) {
        if (!is_shown(a, v, &k)) continue;
        work[k->id].sectors = (struct mg_part){mg_jval_f64(v, "sectors_moved"), mg_jval_f64(v, "sectors_wasted")};
        work[k->id].passes = (struct mg_part){mg_jval_f64(v, "passes_made"), mg_jval_f64(v, "passes_wasted")};
    }
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(lanes, "kernels")); v; v = v->next)
        if (is_shown(a, v, &k))
            work[k->id].slots = (struct mg_part){mg_jval_f64(v, "slots"), mg_jval_f64(v, "slots_idle")};
}

void advice_init(struct advice *a, struct mg_facts *f, struct mg_findings *out, unsigned without)
{
    const struct mg_pprocess *first = f->p->n_processes ? &f->p->processes[0] : NULL;
    *a = (struct advice){.facts = f,
                         .out = out,
                         .without = without,
                         .sms = first && first->sms ? first->sms : 1,
                         .nvidia = first && first->device_kind && !strcmp(first->device_kind, "nvidia"),
                         .peak = find_peak(first ? first->sm : 0, first ? first->device_name : NULL)};
    a->modules = mg_lines_new(f->p);
    a->buffers = mg_buffers_new(f->p, a->modules);
    a->texts = mg_xcalloc(f->p->n_kernels + 1, sizeof *a->texts);
    find_spans(a);
    costs_init(a);
}

void advice_release(struct advice *a)
{
    texts_release(a);
    free(a->costs);
    free(a->uses);
    mg_map_release(&a->spans);
    mg_map_release(&a->site_spans);
    mg_vec_release(&a->divisions);
    mg_buffers_free(a->buffers);
    mg_lines_free(a->modules);
}

void mg_findings_init(struct mg_findings *list, struct mg_facts *f)
{
    struct advice a;
    *list = (struct mg_findings){0};
    if (!f->p->n_processes) return;
    advice_init(&a, f, list, 0);
    list->work = mg_arena_array(&list->arena, struct mg_kernel_work, f->p->n_kernels + 1);
    for (uint32_t k = 0; k < f->p->n_kernels; k++) {
        memcpy(list->work[k].parts, a.costs[k].parts, sizeof a.costs[k].parts);
        list->work[k].warps_resident = a.costs[k].warps_resident;
        list->work[k].warps_most = a.costs[k].warps_most;
    }
    add_parts(&a, list->work);
    list->complete = true;
    list->without_memory = !mg_facts_tool(f, "memory");
    for (size_t i = 0; i < MG_COUNT_OF(rules); i++) {
        list->complete = list->complete && a.counted && has_tools(&a, rules[i].tools);
        a.rule = &rules[i];
        if (a.counted || list->timed) rules[i].run(&a, &rules[i]); /* else nobody knows a kernel's share */
    }
    for (uint32_t i = 0; i < list->n; i++) { /* without a measured time exact ones first, if they gain something */
        struct mg_finding *x = &list->at[i];
        x->class = x->gain_pct <= 0 ? 3 : x->gain_pct < LEAST_GAIN_PCT ? 2 : !list->timed && !x->exact;
    }
    if (list->n) qsort(list->at, list->n, sizeof *list->at, by_rank);
    for (uint32_t i = 0; i < list->n; i++) { /* what facts and modules hold goes with them */
        struct mg_finding *x = &list->at[i];
        x->function = keep(list, x->function);
        x->file = keep(list, x->file);
        x->header = keep(list, x->header);
    }
    advice_release(&a);
}

void mg_findings_release(struct mg_findings *list)
{
    free(list->at);
    free(list->unjudged);
    mg_arena_release(&list->arena);
    *list = (struct mg_findings){0};
}

uint32_t mg_report_findings(const struct mg_recording *p)
{
    struct mg_facts facts;
    struct mg_findings list;
    uint32_t n = 0;
    mg_facts_init(&facts, p, NULL);
    mg_findings_init(&list, &facts);
    for (uint32_t i = 0; i < list.n; i++) n += list.at[i].gain_pct > 0;
    mg_findings_release(&list);
    mg_facts_release(&facts);
    return n;
}
