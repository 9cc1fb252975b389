/* A profile as one self-contained page that can be worked in: page/ holds its script and style, this the
 * data. Nothing is fetched: the page says so to the browser (its Content-Security-Policy).
 *
 * The data are parts, each a JSON value, unpacked when they are first needed:
 *   core: the report as --json prints it, without launches and tools; the page's own head; what --check found
 *   launches, source, ptx    spans: the time line, where there is one    tool-N: the tables and pictures of the Nth
 * tool */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/version.h"
#include "base/search.h"
#include "page_text.h" /* generated: page_begin, page_middle, page_end */
#include "report/advice/advice.h"
#include "report/page.h"
#include "tool/tool.h"
#include "view/chart.h"

/* ---- names ----------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct mg_page_name *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    return c ? c : (x->kernel > y->kernel) - (x->kernel < y->kernel);
}

static void sort_names(struct mg_page_name *names, uint32_t n)
{
    if (n) qsort(names, n, sizeof *names, by_name);
}

/* Kernels that share a demangled name get the beginning of their module's id behind it. */
static void name_kernels(struct mg_page *g)
{
    const struct mg_recording *p = g->p;
    uint32_t n = p->n_kernels;
    g->kernel_names = mg_arena_array(&g->arena, const char *, n + 1);
    g->names = mg_arena_array(&g->arena, struct mg_page_name, 2 * n + 1);
    for (uint32_t i = 0; i < n; i++) g->names[i] = (struct mg_page_name){p->kernels[i].demangled, i};
    sort_names(g->names, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_page_name *x = &g->names[i];
        bool shared = (i && !strcmp(x[-1].name, x->name)) || (i + 1 < n && !strcmp(x[1].name, x->name));
        struct mg_buf name = MG_BUF_INIT;
        mg_buf_printf(&name, shared ? "%s [%.8s #%u]" : "%s", x->name, p->kernels[x->kernel].module, x->kernel);
        g->kernel_names[x->kernel] = mg_arena_strndup(&g->arena, name.at, name.n);
        mg_buf_release(&name);
    }
    for (uint32_t i = 0; i < n; i++) {
        g->names[2 * i] = (struct mg_page_name){g->kernel_names[i], i};
        g->names[2 * i + 1] = (struct mg_page_name){p->kernels[i].name, i};
    }
    g->n_names = 2 * n;
    sort_names(g->names, g->n_names);
}

uint32_t mg_page_kernel(const struct mg_page *g, const char *name)
{
    uint32_t low;
    MG_FIND_FIRST(low, g->n_names, strcmp(g->names[low].name, name) < 0);
    if (low == g->n_names || strcmp(g->names[low].name, name)) return UINT32_MAX;
    uint32_t kernel = g->names[low].kernel;
    for (; low < g->n_names && !strcmp(g->names[low].name, name); low++)
        if (g->names[low].kernel != kernel) return UINT32_MAX;
    return kernel;
}

void mg_page_init(struct mg_page *g, const struct mg_recording *p, const struct mg_report_opts *o)
{
    *g = (struct mg_page){.p = p};
    if (o) g->o = *o;
    g->o.size = sizeof g->o;
    name_kernels(g);
    g->o.kernel_names = g->kernel_names;
}

void mg_page_release(struct mg_page *g)
{
    mg_arena_release(&g->arena);
}

/* ---- parts ----------------------------------------------------------------------------------------------- */

static bool shows_tool(const struct mg_page *g, uint32_t use)
{
    return !g->o.tool || !strcmp(g->o.tool, g->p->uses[use].name);
}

static void write_names(const struct mg_page *g, struct mg_json *j)
{
    mg_json_key(j, "kernel_names");
    mg_json_obj(j);
    for (uint32_t i = 0; i < g->p->n_kernels; i++) {
        char id[16];
        if (!mg_report_shows(&g->o, &g->p->kernels[i]) || !strcmp(g->kernel_names[i], g->p->kernels[i].demangled))
            continue;
        snprintf(id, sizeof id, "%u", i);
        mg_json_key_str(j, id, g->kernel_names[i]);
    }
    mg_json_end(j, '}');
}

static void write_head(const struct mg_page *g, struct mg_json *j)
{
    mg_json_obj(j);
    mg_json_key_str(j, "version", MG_VERSION);
    mg_json_key_str(j, "profile", g->p->dir);
    mg_json_key_str(j, "only_kernels", g->o.kernel_glob);
    mg_json_key_str(j, "only_tool", g->o.tool);
    mg_json_key(j, "tools");
    mg_json_arr(j);
    for (uint32_t u = 0; u < g->p->n_uses; u++) {
        if (!shows_tool(g, u)) continue;
        mg_json_obj(j);
        mg_json_key_u64(j, "id", u);
        mg_json_key_str(j, "name", g->p->uses[u].name);
        mg_json_key_str(j, "options", g->p->uses[u].args);
        const struct mg_tool *tool = mg_tool_find(g->p->uses[u].name);
        mg_json_key_str(j, "summary", tool ? tool->summary : NULL);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_key(j, "rules");
    mg_advice_rules(j);
    write_names(g, j);
    mg_json_end(j, '}');
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* {"ld.global.f32": "memory", ...} of every opcode on the page. */
static void write_op_kinds(const struct mg_page *g, struct mg_json *j)
{
    MG_VEC(const char *) ops = {0};
    for (uint32_t k = 0; k < g->p->n_kernels; k++)
        for (uint32_t b = 0; b < g->p->kernels[k].n_blocks && mg_report_shows(&g->o, &g->p->kernels[k]); b++) {
            const struct mg_pblock *block = &g->p->kernels[k].blocks[b];
            for (uint32_t i = 0; i < block->n_ops; i++) *mg_vec_push(&ops) = block->ops[i].op;
        }
    if (ops.n) qsort(ops.at, ops.n, sizeof *ops.at, by_text);
    mg_json_key(j, "op_kinds");
    mg_json_obj(j);
    for (uint32_t i = 0; i < ops.n; i++)
        if (!i || strcmp(ops.at[i], ops.at[i - 1])) mg_json_key_str(j, ops.at[i], mg_op_kind(ops.at[i]));
    mg_json_end(j, '}');
    mg_vec_release(&ops);
}

/* What a run left under a name, one value a process: [value, ...]. */
static void write_left(const struct mg_page *g, struct mg_json *j, const char *tool, const char *key)
{
    mg_json_key(j, key);
    mg_json_arr(j);
    for (uint32_t i = 0; i < g->p->n_tools; i++) {
        const struct mg_ptool *t = &g->p->tools[i];
        if (!strcmp(t->tool, tool) && !strcmp(t->key, key) && mg_json_valid(t->json)) mg_json_raw(j, t->json);
    }
    mg_json_end(j, ']');
}

static void write_left_alone(const struct mg_page *g, struct mg_json *j)
{
    mg_json_key(j, "left_alone");
    mg_json_arr(j);
    for (uint32_t i = 0; i < g->p->n_regions; i++) {
        const struct mg_pregion *r = &g->p->regions[i];
        if (!r->reason || !mg_report_shows(&g->o, &g->p->kernels[r->kernel])) continue;
        mg_json_obj(j);
        mg_json_key_u64(j, "kernel", r->kernel);
        mg_json_key_str(j, "tool", g->p->uses[r->use].name);
        mg_json_key_str(j, "reason", r->reason);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void write_core(const struct mg_page *g, struct mg_json *j)
{
    mg_json_obj(j);
    mg_json_key(j, "page");
    write_head(g, j);
    mg_json_key(j, "report");
    mg_write_report(j, g->p, &g->o, 0);
    mg_json_key(j, "check");
    mg_json_obj(j);
    write_left(g, j, "check", "findings");
    write_left(g, j, "check", "not_looked_at");
    mg_json_end(j, '}');
    write_left_alone(g, j);
    write_op_kinds(g, j);
    mg_json_end(j, '}');
}

struct part {
    struct mg_buf text;
    struct mg_json j;
};

static void begin_part(struct part *x)
{
    *x = (struct part){0};
    mg_json_init(&x->j, &x->text, 0);
    x->j.wide_as_text = true;
}

static void end_part(struct part *x, struct mg_buf *out, const char *name)
{
    mg_pack_part(out, name, x->text.at, x->text.n);
    mg_buf_release(&x->text);
}

static void add_parts(const struct mg_page *g, struct mg_buf *out)
{
    struct part a, b;
    begin_part(&a);
    write_core(g, &a.j);
    end_part(&a, out, "core");
    begin_part(&a);
    mg_page_launches(g, &a.j);
    end_part(&a, out, "launches");
    begin_part(&a), begin_part(&b);
    mg_page_lines(g, &a.j, &b.j);
    end_part(&a, out, "source");
    end_part(&b, out, "ptx");
    begin_part(&a);
    if ((!g->o.tool || !strcmp(g->o.tool, "timeline")) && mg_page_spans(g, &a.j)) end_part(&a, out, "spans");
    mg_buf_release(&a.text);
    for (uint32_t u = 0; u < g->p->n_uses; u++) {
        char name[32];
        if (!shows_tool(g, u)) continue;
        snprintf(name, sizeof name, "tool-%u", u);
        begin_part(&a);
        mg_page_tables(g, u, &a.j);
        end_part(&a, out, name);
    }
}

static void add_command(const struct mg_recording *p, struct mg_buf *out)
{
    const char *const *argv;
    uint32_t argc;
    int exit_code;
    mg_report_command(p, &argv, &argc, &exit_code);
    for (uint32_t i = 0; i < argc; i++) {
        if (i) mg_buf_addc(out, ' ');
        mg_chart_text(out, argv[i]);
    }
}

void mg_report_html(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    struct mg_page g;
    mg_page_init(&g, p, o);
    mg_buf_adds(out, page_begin);
    add_command(p, out);
    mg_buf_adds(out, page_middle);
    add_parts(&g, out);
    mg_buf_adds(out, page_end);
    mg_page_release(&g);
}
