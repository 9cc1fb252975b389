/* From a profile to what a tool's `profile` sees (view/result.h), and calling it: the tool is found by
 * its name, or opened again by the path that the profile recorded. Where it is not to be had any more,
 * its sites and cells are shown as they are, and the reason is said. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "isa/resident.h"
#include "report/buffers.h"
#include "report/priv.h"
#include "tool/spec.h"
#include "view/unseen.h"

#define ASKED_ROWS 24 /* of a table in the summary of a run */

struct making {
    const struct mg_recording *p;
    const struct mg_report_opts *o;
    struct mg_arena *arena;
    uint32_t use;
};

/* ---- a kernel ------------------------------------------------------------------------------------------ */

static const struct mg_site_block *blocks_of(struct making *m, const struct mg_pkernel *k)
{
    struct mg_site_block *b = mg_arena_array(m->arena, struct mg_site_block, k->n_blocks + 1);
    for (uint32_t i = 0; i < k->n_blocks; i++) {
        const struct mg_pblock *f = &k->blocks[i];
        b[i] = (struct mg_site_block){.id = f->id,
                                      .function = f->function,
                                      .label = f->label,
                                      .ptx_line = f->ptx_line,
                                      .file = f->file,
                                      .line = f->line,
                                      .n_insts = f->n_insts,
                                      .succs = f->succs,
                                      .n_succs = f->n_succs,
                                      .ops = f->ops,
                                      .n_ops = f->n_ops,
                                      .apart = f->apart == 1};
    }
    return b;
}

struct counted {
    uint64_t *threads, *warps;
    bool all_warps;
}; /* of a kernel's blocks */

/* Block counts of the launches that ran with this tool, by kernel. Those that are estimates are none. */
static struct counted *sum_blocks(struct making *m)
{
    struct counted *of = mg_arena_array(m->arena, struct counted, m->p->n_kernels + 1);
    for (uint64_t i = 0; i < m->p->n_launches && m->use < 63; i++) {
        const struct mg_plaunch *l = &m->p->launches[i];
        struct counted *c = &of[l->kernel];
        uint32_t n = m->p->kernels[l->kernel].n_blocks;
        if (l->repeat || !l->complete || !l->threads || !(l->tools >> m->use & 1) ||
            m->p->processes[l->process].scope != MG_COUNT_FULL)
            continue;
        if (!c->threads) {
            c->threads = mg_arena_array(m->arena, uint64_t, n + 1);
            c->warps = mg_arena_array(m->arena, uint64_t, n + 1);
            c->all_warps = true;
        }
        for (uint32_t b = 0; b < n && b < l->n_counts; b++) {
            c->threads[b] += l->threads[b];
            if (l->warps) c->warps[b] += l->warps[b];
        }
        c->all_warps &= l->warps != NULL;
    }
    return of;
}

static uint32_t resident_of(const struct mg_recording *p, const struct mg_plaunch *l)
{
    const char *limit;
    int32_t registers = p->kernels[l->kernel].regs_native;
    return mg_resident_ctas(
        mg_sm_limits(p->processes[l->process].sm), (l->block[0] * l->block[1] * l->block[2] + 31) / 32,
        registers > 0 ? (uint32_t)registers : 0, (uint64_t)l->static_shared_bytes + l->dyn_shared_bytes, &limit);
}

static struct mg_result_launch launch_of(const struct mg_recording *p, const struct mg_plaunch *l,
                                         const uint64_t *cells)
{
    return (struct mg_result_launch){.id = l->id,
                                     .cells = cells,
                                     .grid = {l->grid[0], l->grid[1], l->grid[2]},
                                     .block = {l->block[0], l->block[1], l->block[2]},
                                     .resident = resident_of(p, l),
                                     .times = l->replays ? l->replays : 1,
                                     .timed = l->timed,
                                     .time_ns = l->time_ns,
                                     .complete = l->complete};
}

/* Launches that a sample left out, of the kernels that have one. Those that did not complete are neither. */
static void add_others(struct making *m, struct mg_tool_result *r)
{
    struct mg_result_kernel **of = mg_arena_array(m->arena, struct mg_result_kernel *, m->p->n_kernels + 1);
    for (uint32_t k = 0; k < r->n_kernels; k++)
        if (r->kernels[k].n_of_launch)
            of[r->kernels[k].id] = (struct mg_result_kernel *)(uintptr_t)&r->kernels[k]; /* of our arena */
    for (uint64_t i = 0; i < m->p->n_launches && m->use < 63; i++) {
        const struct mg_plaunch *l = &m->p->launches[i];
        struct mg_result_kernel *k = of[l->kernel];
        if (!k || l->repeat || l->tools >> m->use & 1 || l->ran == MG_RAN_UNKNOWN ||
            (l->ran == MG_RAN_INSTRUMENTED && (!l->complete || l->spoilt)))
            continue;
        if (!k->others)
            k->others = mg_arena_array(m->arena, struct mg_result_launch, m->p->kernels[l->kernel].launches + 1);
        if (k->n_others < m->p->kernels[l->kernel].launches)
            ((struct mg_result_launch *)(uintptr_t)k->others)[k->n_others++] = launch_of(m->p, l, NULL);
    }
}

/* Cells of single launches, each to the kernel of its region (region -> kernel, NULL: not shown). */
static void add_launches(struct making *m, struct mg_result_kernel *const *kernels)
{
    uint64_t *room = mg_arena_array(m->arena, uint64_t, m->p->n_regions + 1);
    for (uint64_t i = 0; i < m->p->n_launch_cells; i++) room[m->p->launch_cells[i].region]++;
    for (uint32_t g = 0; g < m->p->n_regions; g++)
        if (kernels[g] && room[g]) kernels[g]->of_launch = mg_arena_array(m->arena, struct mg_result_launch, room[g]);
    for (uint64_t i = 0; i < m->p->n_launch_cells; i++) {
        const struct mg_plaunch_cells *c = &m->p->launch_cells[i];
        const struct mg_plaunch *l = &m->p->launches[c->launch];
        struct mg_result_kernel *k = kernels[c->region];
        if (!k) continue;
        struct mg_result_launch *at =
            (struct mg_result_launch *)(uintptr_t)&k->of_launch[k->n_of_launch++]; /* of our arena */
        *at = launch_of(m->p, l, c->cells);
        if (m->p->processes[l->process].scope == MG_COUNT_FULL && l->n_counts >= k->n_blocks) at->threads = l->threads;
    }
}

static void add_tables(struct making *m, const struct mg_pregion *g, struct mg_result_kernel *r)
{
    struct mg_result_table *tables = mg_arena_array(m->arena, struct mg_result_table, g->n_tables + 1);
    for (uint32_t t = 0; t < g->n_tables; t++) {
        const struct mg_ptable *from = &g->tables[t];
        struct mg_result_entry *e = mg_arena_array(m->arena, struct mg_result_entry, from->n + 1);
        for (uint64_t i = 0; i < from->n; i++) {
            e[i].keys = from->words + i * (from->n_keys + from->n_cells);
            e[i].cells = e[i].keys + from->n_keys;
        }
        tables[t] = (struct mg_result_table){from->site, from->n_keys, from->n_cells, e, from->n, from->lost};
    }
    r->tables = tables;
    r->n_tables = g->n_tables;
}

static void fill(struct making *m, struct mg_tool_result *r)
{
    const struct mg_pprocess *first = m->p->n_processes ? &m->p->processes[0] : NULL;
    struct mg_result_kernel *kernels = mg_arena_array(m->arena, struct mg_result_kernel, m->p->n_regions + 1);
    struct mg_result_kernel **of_region = mg_arena_array(m->arena, struct mg_result_kernel *, m->p->n_regions + 1);
    const struct counted *counted = sum_blocks(m);
    *r = (struct mg_tool_result){.device_kind = first ? first->device_kind : "",
                                 .device_name = first ? first->device_name : "",
                                 .sms = first ? first->sms : 0,
                                 .sm = first ? first->sm : 0,
                                 .host_times = mg_has_host_times(m->p),
                                 .kernels = kernels,
                                 .columns = m->o->columns,
                                 .top = m->o->top};
    for (uint32_t i = 0; i < m->p->n_regions; i++) {
        const struct mg_pregion *g = &m->p->regions[i];
        const struct mg_pkernel *k = &m->p->kernels[g->kernel];
        if (g->use != m->use || g->reason || !mg_report_shows(m->o, k)) continue;
        struct mg_result_kernel *to = &kernels[r->n_kernels++];
        const char *name = m->o->kernel_names ? m->o->kernel_names[k->id] : k->demangled;
        *to = (struct mg_result_kernel){.id = k->id,
                                        .name = k->name,
                                        .demangled = name,
                                        .module = k->module,
                                        .launches = k->launches,
                                        .counted = g->counted,
                                        .sites = g->sites,
                                        .n_sites = g->n_sites,
                                        .cells = g->cells,
                                        .n_cells = g->n_cells,
                                        .n_blocks = k->n_blocks};
        to->blocks = blocks_of(m, k);
        to->threads = counted[k->id].threads;
        to->warps = counted[k->id].all_warps ? counted[k->id].warps : NULL;
        add_tables(m, g, to);
        of_region[i] = to;
    }
    struct mg_result_kernel *bare = mg_arena_array(m->arena, struct mg_result_kernel, m->p->n_kernels + 1);
    r->bare = bare;
    for (uint32_t i = 0; i < m->p->n_kernels; i++) {
        const struct mg_pkernel *k = &m->p->kernels[i];
        if (k->has_sites || *k->module || !mg_report_shows(m->o, k)) continue;
        bare[r->n_bare++] = (struct mg_result_kernel){
            .id = k->id, .name = k->name, .demangled = k->demangled, .module = k->module, .launches = k->launches};
    }
    add_launches(m, of_region);
    add_others(m, r);
}

/* ---- without the tool ------------------------------------------------------------------------------------ */

static void show_raw(const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    struct mg_buf cells = MG_BUF_INIT;
    mg_table_begin(t, "sites", NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_table_column(t, "place", MG_COL_PLACE, NULL);
    mg_table_column(t, "op", MG_COL_TEXT, NULL);
    mg_table_column(t, "note", MG_COL_COUNT, NULL);
    mg_table_column(t, "cells", MG_COL_TEXT, NULL);
    mg_json_key(j, "sites");
    mg_json_arr(j);
    for (uint32_t k = 0; k < r->n_kernels; k++)
        for (uint32_t i = 0; i < r->kernels[k].n_sites; i++) {
            const struct mg_result_site *s = &r->kernels[k].sites[i];
            mg_buf_reset(&cells);
            mg_json_obj(j);
            mg_json_key_u64(j, "kernel", r->kernels[k].id);
            mg_json_key_u64_if(j, "ptx_line", s->ptx_line != 0, s->ptx_line);
            mg_json_key_str(j, "op", s->op);
            mg_json_key_u64(j, "note", s->note);
            mg_json_key(j, "cells");
            mg_json_arr(j);
            for (uint32_t c = 0; c < s->n_cells; c++) {
                mg_buf_printf(&cells, c ? " %llu" : "%llu", (unsigned long long)r->kernels[k].cells[s->cell + c]);
                mg_json_u64(j, r->kernels[k].cells[s->cell + c]);
            }
            mg_json_end(j, ']');
            mg_json_end(j, '}');
            mg_table_row(t);
            mg_table_text(t, r->kernels[k].demangled);
            mg_table_place(t, s);
            mg_table_text(t, s->op);
            mg_table_u64(t, s->note);
            mg_table_text(t, cells.n ? cells.at : "");
        }
    mg_json_end(j, ']');
    mg_buf_release(&cells);
}

/* A profile names the file that will be opened, and may come from anywhere. */
static bool is_safe(const char *path)
{
    struct stat st;
    if (stat(path, &st)) return true; /* opening says why */
    return (st.st_uid == geteuid() || !st.st_uid) && !(st.st_mode & S_IWOTH);
}

/* The same as below in a process that may end: of a tool whose code is not ours. */
struct trial {
    const struct mg_recording *p;
    uint32_t use;
    const struct mg_report_opts *o;
};

static void report_tool_result(const struct mg_recording *p, uint32_t use, const struct mg_report_opts *o,
                               const char *broken, struct mg_table *t, struct mg_json *j);

static void try_tell(void *user, struct mg_buf *out)
{
    const struct trial *x = user;
    struct mg_table t = {0};
    struct mg_buf text = MG_BUF_INIT;
    struct mg_json j;
    (void)out;
    mg_json_init(&j, &text, 0);
    mg_json_obj(&j);
    report_tool_result(x->p, x->use, x->o, NULL, &t, &j);
    mg_table_release(&t);
}

void mg_tool_tell(const struct mg_recording *p, uint32_t use, const struct mg_report_opts *o, struct mg_table *t,
                  struct mg_json *j)
{
    if (!strcmp(p->uses[use].name, "timeline") && !p->uses[use].path) {
        mg_timeline_tell(p, p->uses[use].args, t, j); /* of the directory's trace files */
        return;
    }
    struct mg_buf none = MG_BUF_INIT;
    char why[100];
    bool good = !p->uses[use].path || mg_child_try(try_tell, &(struct trial){p, use, o}, &none, why);
    mg_buf_release(&none);
    report_tool_result(p, use, o, good ? NULL : why, t, j);
}

static bool is_wanted(const struct mg_recording *p, uint32_t use, const struct mg_report_opts *o)
{
    return !o->tool || !strcmp(o->tool, p->uses[use].name);
}

bool mg_tool_tables(const struct mg_recording *p, uint32_t use, const struct mg_report_opts *o, struct mg_table *t)
{
    struct mg_buf text = MG_BUF_INIT;
    struct mg_json j;
    *t = (struct mg_table){0};
    if (!is_wanted(p, use, o)) return false;
    mg_json_init(&j, &text, 0);
    mg_json_obj(&j);
    mg_tool_tell(p, use, o, t, &j);
    mg_buf_release(&text);
    return true;
}

static const struct mg_buffer_name *buffer_of(void *buffers, const struct mg_result_kernel *k,
                                              const struct mg_result_site *s)
{
    return mg_buffer_of_site(buffers, k->id, s->function, s->ptx_line);
}

struct block_lines { /* of the kernel that was asked for last */
    const struct mg_recording *p;
    struct mg_lines *modules;
    const struct mg_pkernel *k;
    struct mg_kernel_lines of;
};

static struct mg_result_place line_of_block(void *lines, const struct mg_result_kernel *k, uint32_t block)
{
    struct block_lines *x = lines;
    const struct mg_pkernel *asked = &x->p->kernels[k->id];
    if (x->k != asked) {
        if (x->k) mg_kernel_lines_release(&x->of);
        mg_lines_of(x->modules, x->k = asked, &x->of);
    }
    struct mg_block_place at = mg_block_place_of(&x->of, &asked->blocks[block]);
    return (struct mg_result_place){at.file, at.line};
}

static const char *left_by_tool(const void *from, const char *key, uint32_t ix)
{
    const struct making *m = from;
    for (uint32_t i = 0; i < m->p->n_tools; i++) {
        const struct mg_ptool *t = &m->p->tools[i];
        if (!strcmp(t->tool, m->p->uses[m->use].name) && !strcmp(t->key, key) && !ix--) return t->json;
    }
    return NULL;
}

static void report_tool_result(const struct mg_recording *p, uint32_t use, const struct mg_report_opts *o,
                               const char *broken, struct mg_table *t, struct mg_json *j)
{
    static const struct mg_report_opts defaults = {.size = sizeof defaults};
    struct mg_arena arena = MG_ARENA_INIT;
    struct making m = {p, o ? o : &defaults, &arena, use};
    struct mg_tool_result r;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_tool_spec spec = {0};
    void *conf = NULL;
    const struct mg_puse *u = &p->uses[use];
    enum mg_err err =
        broken ? mg_diag_err(&d, MG_ERR_INPUT, "tool %s (%s) cannot show its result: %s", u->name, u->path, broken)
        : u->path && !is_safe(u->path) ? mg_diag_err(&d, MG_ERR_INPUT, "%s is not opened: others may write it", u->path)
                                       : mg_tool_spec_find(u->name, u->path, &spec, &d);
    if (!err) err = mg_tool_configure(spec.tool, u->args, 0, &conf, &d);
    fill(&m, &r);
    r.machine = mg_machine_of;
    r.user = mg_machines_new(p);
    struct mg_lines *modules = mg_lines_new(p);
    r.buffers = mg_buffers_new(p, modules);
    r.buffer = buffer_of;
    struct block_lines lines = {.p = p, .modules = modules};
    r.lines = &lines;
    r.line_of_block = line_of_block;
    r.left = left_by_tool;
    r.from = &m;
    if (!err && spec.tool->profile) {
        spec.tool->profile(conf, &r, t, j);
    } else if (err || !(spec.tool->counts || spec.tool->flags & (MG_TOOL_NATIVE | MG_TOOL_SPAN))) {
        show_raw(&r, t, j);
        if (err) mg_table_note(t, "%s; its sites and cells are shown as they are", mg_diag_first(&d, err));
    }
    if (!err && spec.tool->flags & MG_TOOL_ACCESSES) mg_unseen_tell(&r, t, j, spec.tool->flags & MG_TOOL_BULK);
    if (!err && spec.tool->release) spec.tool->release(conf);
    mg_machines_free(r.user);
    mg_buffers_free(r.buffers);
    if (lines.k) mg_kernel_lines_release(&lines.of);
    mg_lines_free(modules);
    mg_tool_spec_close(&spec);
    mg_diag_release(&d);
    mg_arena_release(&arena);
}

/* ---- all tools -------------------------------------------------------------------------------------------- */

/* Of a run without the time line whose program used the TAUcuda library. */
static void add_tau_files(const struct mg_recording *p, const struct mg_report_opts *o, uint32_t rows,
                          struct mg_buf *out)
{
    for (uint32_t u = 0; u < p->n_uses; u++)
        if (!strcmp(p->uses[u].name, "timeline")) return;
    if ((o->tool && strcmp(o->tool, "timeline")) || !mg_tau_has_files(p->dir)) return;
    struct mg_table t = {0};
    struct mg_buf text = MG_BUF_INIT;
    struct mg_json j;
    mg_json_init(&j, &text, 0);
    mg_json_obj(&j);
    mg_tau_tell(p->dir, false, &t, &j);
    mg_buf_addc(out, '\n');
    mg_add_table(&t.tables.at[0], o, rows, out);
    mg_table_release(&t);
    mg_buf_release(&text);
}

/* In the report of many tools at once only what says something: no table whose rows are all 0 in the column that ranks
 * them, none behind the first of its tool, none of a tool that finds things for others. */
static bool says_something(const struct mg_one_table *t, uint32_t ix, const struct mg_tool *tool, bool host_times)
{
    bool unseen = tool && tool->flags & MG_TOOL_ACCESSES && t->notes.n; /* accesses that it does not look at */
    if (host_times && tool && tool->flags & MG_TOOL_CLOCKS && !unseen) return false;
    if (t->notes.n || !tool || tool->flags & MG_TOOL_ASKED) return true;
    if (ix || tool->flags & MG_TOOL_MINOR || !t->n_rows) return false;
    if (!t->order) return true;
    struct mg_table_value v = mg_table_value(t, 0, t->by); /* the largest */
    return v.kind == MG_TV_F64 ? v.f > 0 : v.kind != MG_TV_U64 || v.u > 0;
}

bool mg_has_host_times(const struct mg_recording *p)
{
    const char *kind = p->n_processes ? p->processes[0].device_kind : NULL;
    return kind && strcmp(kind, "nvidia") != 0;
}

static bool has_one_kernel(const struct mg_recording *p, const struct mg_report_opts *o)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_kernels; i++) n += mg_report_shows(o, &p->kernels[i]);
    return n == 1;
}

void mg_add_tools(const struct mg_recording *p, const struct mg_report_opts *given, uint32_t rows, bool first_only,
                  struct mg_buf *out)
{
    struct mg_report_opts opts = *given, *o = &opts;
    struct mg_buf left = MG_BUF_INIT; /* tables that are */
    bool brief = !o->tool && p->n_uses > MG_MOST_TABLES;
    bool one = has_one_kernel(p, o);
    o->short_names = mg_short_names(p);
    for (uint32_t u = 0; u < p->n_uses; u++) {
        struct mg_table t;
        if (!is_wanted(p, u, o)) continue;
        const struct mg_tool *tool = mg_tool_find(p->uses[u].name);
        bool asked = first_only && tool && tool->flags & MG_TOOL_ASKED; /* what was asked for is shown */
        o->one_kernel = one && tool && !(tool->flags & MG_TOOL_ASKED);
        mg_tool_tables(p, u, o, &t);
        for (uint32_t i = 0; i < t.tables.n && (i == 0 || !first_only || asked); i++) {
            if (o->table && strcmp(o->table, t.tables.at[i].name)) continue;
            if (brief && !says_something(&t.tables.at[i], i, tool, mg_has_host_times(p))) {
                mg_buf_printf(&left, "%s%s", left.n ? ", " : "", t.tables.at[i].name);
                continue;
            }
            mg_buf_addc(out, '\n');
            mg_add_table(&t.tables.at[i], o, asked ? ASKED_ROWS : rows, out);
        }
        mg_table_release(&t);
    }
    if (left.n) mg_buf_printf(out, "\ntables not shown: %s (margay report --tool NAME)\n", left.at);
    mg_buf_release(&left);
    add_tau_files(p, o, rows, out);
}

bool mg_add_tools_csv(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    bool found = false;
    for (uint32_t u = 0; u < p->n_uses && !found; u++) {
        struct mg_table t;
        if (!mg_tool_tables(p, u, o, &t)) continue;
        for (uint32_t i = 0; i < t.tables.n && !found; i++) {
            found = !o->table || !strcmp(o->table, t.tables.at[i].name);
            if (found && out) mg_add_table_csv(p, &t.tables.at[i], out);
        }
        mg_table_release(&t);
    }
    return found;
}

const char *mg_report_tool_of_table(const struct mg_recording *p, const struct mg_report_opts *o, const char *table)
{
    const char *found = NULL;
    for (uint32_t u = 0; u < p->n_uses && !found; u++) {
        struct mg_table t;
        if (!mg_tool_tables(p, u, o, &t)) continue;
        for (uint32_t i = 0; i < t.tables.n; i++)
            if (!strcmp(t.tables.at[i].name, table)) found = p->uses[u].name;
        mg_table_release(&t);
    }
    return found;
}

void mg_list_tool_tables(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    for (uint32_t u = 0; u < p->n_uses; u++) {
        struct mg_table t;
        if (!mg_tool_tables(p, u, o, &t)) continue;
        for (uint32_t i = 0; i < t.tables.n; i++) mg_buf_printf(out, "%s,%s\r\n", t.tables.at[i].name, p->uses[u].name);
        mg_table_release(&t);
    }
}

void mg_add_left_alone(const struct mg_recording *p, struct mg_buf *out, uint32_t max_rows)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_regions; i++) {
        const struct mg_pregion *g = &p->regions[i];
        if (g->reason && n++ < max_rows)
            mg_buf_printf(out, "  %s: without tool %s, %s\n", p->kernels[g->kernel].demangled, p->uses[g->use].name,
                          g->reason);
    }
    if (n > max_rows)
        mg_buf_printf(out, "  and %u more that a tool left alone (margay report --json names all)\n", n - max_rows);
}
