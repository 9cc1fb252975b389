/* A tool on the emulator: instrument, run, read cells back, profile. */
#include "tool_run.h"

#include <stdlib.h>

#include "base/json.h"
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"
#include "test.h"
#include "tool/host.h"
#include "patch/layout.h"
#include "tool/instrument.h"
#include "view/table.h"

enum { OUT_BYTES = 256 << 10 };

struct ran {
    const struct mg_tool *tool;
    void *conf;
    struct mg_module *m;
    struct mg_sites *sites;
    struct mg_layout layout;
    uint64_t *raw, *cells, *threads, *warps;
    struct mg_result_table *tables;
    uint32_t n_tables;
    struct mg_result_site *result_sites;
    struct mg_result_kernel kernel;
    struct mg_result_launch launch;
    struct mg_tool_result result;
};

static struct mg_device *device(void)
{
    static struct mg_device *dev;
    if (dev) return dev;
    struct mg_device_opts o = {.size = sizeof o, .properties = "h200", .workers = 2};
    struct mg_diag d = MG_DIAG_INIT;
    mg_mem_init(0);
    if (mg_emu_ops.open(&dev, &o, &d)) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_DEVICE));
    mg_diag_release(&d);
    return dev;
}

static bool launch(const char *text, const struct tool_shape *s, const void *params, uint32_t bytes)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_dmod *mod = NULL;
    struct mg_module *m = NULL;
    if (mg_ptx_parse(text, strlen(text), "t.ptx", &m, &d) || mg_emu_ops.module_load(device(), m, &mod, &d))
        mg_test_fail(__FILE__, __LINE__, "%s\n%s", mg_diag_first(&d, MG_ERR_INPUT), text);
    mg_diag_release(&d);
    if (!mod) return false;
    struct mg_launch l = {.kernel = mg_emu_ops.kernel(mod, "k"),
                          .grid = {s->grid, 1, 1},
                          .block = {s->block, 1, 1},
                          .params = params,
                          .param_bytes = bytes,
                          .time_limit_ns = 300000000000u};
    struct mg_launch_stats stats;
    struct mg_fault f;
    mg_emu_ops.launch(device(), &l, &stats, &f);
    if (f.kind) mg_test_fail(__FILE__, __LINE__, "%s\n%s", f.text, text);
    mg_emu_ops.module_unload(mod);
    return !f.kind;
}

static bool instrument(struct ran *r, const char *args, const char *ptx, const struct tool_shape *s, struct mg_twin **t)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_pass_opts passes = {.size = sizeof passes, .verify = true};
    struct mg_tools_opts o = {
        .size = sizeof o, .sm = s->sm, .max_copies = s->sm ? 4 : 1, .reduce = s->sm > 0, .passes = &passes};
    bool ok = !r->tool->configure(args, &r->conf, &d) && !mg_ptx_parse(ptx, strlen(ptx), "t.ptx", &r->m, &d);
    if (ok) {
        struct mg_tool_use use = {r->tool, r->conf};
        r->sites = mg_sites_new(r->m, mg_module_find_func(r->m, "k"));
        ok = !mg_twin_new(r->m, mg_module_find_func(r->m, "k"), t, &d);
        if (ok) (*t)->m->marked = !s->sm;
        ok = ok && !mg_tools_instrument(&use, 1, r->sites, *t, &o, &r->layout, &d);
        ok = ok && !r->layout.regions[0].reason;
    }
    if (!ok)
        mg_test_fail(__FILE__, __LINE__, "%s: %s", r->tool->name,
                     r->layout.n_regions && r->layout.regions[0].reason ? r->layout.regions[0].reason
                                                                        : mg_diag_first(&d, MG_ERR_STATE));
    mg_diag_release(&d);
    return ok;
}

static uint64_t live; /* address of `out` */

static void allocations(void (*fn)(const struct mg_host_allocation *a, void *user), void *user)
{
    fn(&(struct mg_host_allocation){live, OUT_BYTES, 0, MG_HOST_DEVICE}, user);
}

static void read_table(const uint64_t *keys, const uint64_t *cells, void *user)
{
    struct ran *r = user;
    const struct mg_layout_table *t = &r->layout.regions[0].tables[r->n_tables - 1];
    struct mg_result_table *to = &r->tables[r->n_tables - 1];
    uint64_t *copy = malloc(8 * (t->n_keys + t->n_cells));
    struct mg_result_entry *entries = realloc((void *)(uintptr_t)to->entries, (to->n + 1) * sizeof *entries);
    memcpy(copy, keys, 8 * t->n_keys);
    memcpy(copy + t->n_keys, cells, 8 * t->n_cells);
    entries[to->n++] = (struct mg_result_entry){copy, copy + t->n_keys};
    to->entries = entries;
}

static void read_tables(struct ran *r)
{
    const struct mg_region *g = &r->layout.regions[0];
    r->tables = calloc(g->n_tables + 1, sizeof *r->tables);
    for (uint32_t i = 0; i < g->n_tables; i++) {
        r->tables[r->n_tables++] = (struct mg_result_table){
            .site = g->tables[i].site, .n_keys = g->tables[i].n_keys, .n_cells = g->tables[i].n_cells};
        r->tables[i].lost = mg_layout_read_table(g, i, r->raw, read_table, r);
    }
}

static void free_tables(struct ran *r)
{
    for (uint32_t i = 0; i < r->n_tables; i++) {
        for (uint64_t e = 0; e < r->tables[i].n; e++) free((void *)(uintptr_t)r->tables[i].entries[e].keys);
        free((void *)(uintptr_t)r->tables[i].entries);
    }
    free(r->tables);
}

static bool run_twin(struct ran *r, struct mg_twin *t, const char *ptx, const struct tool_shape *s)
{
    struct mg_tool_launch l = {.kernel = "k", .shape = {.grid = {s->grid, 1, 1}, .block = {s->block, 1, 1}}};
    uint64_t n_words = mg_layout_words(&r->layout, &l.shape), bytes = MG_CTX_BYTES + 8 * n_words + 8;
    uint64_t ctx = mg_mem_alloc(bytes, 256, MG_ALLOC_INTERNAL), *c = (uint64_t *)(uintptr_t)ctx,
             out = mg_mem_alloc(OUT_BYTES, 256, MG_ALLOC_DEVICE);
    struct {
        uint64_t out;
        uint32_t n, pad;
        uint64_t ctx;
    } params = {out, s->n, 0, ctx};
    void *left = malloc(OUT_BYTES), *at = (void *)(uintptr_t)out;
    struct mg_buf text = MG_BUF_INIT;
    t->m->marked = true;
    mg_ptx_print(t->m, &text);
    memset(c, 0, bytes);
    c[MG_CTX_COUNTERS / 8] = ctx + MG_CTX_BYTES;
    if (r->tool->initialize) r->tool->initialize(r->conf, &l, c + MG_CTX_WORDS / 8 + r->layout.regions[0].first_word);
    live = out;
    static const struct mg_tool_host host = {
        .size = sizeof host, .device_kind = "emu", .sm = 90, .allocations = allocations};
    if (r->tool->begin) r->tool->begin(r->conf, &host);
    if (r->tool->list)
        r->tool->list(r->conf, &l, c + MG_CTX_BYTES / 8 + r->layout.regions[0].at + r->layout.regions[0].list_at,
                      r->layout.regions[0].n_list);
    memset(at, 0, OUT_BYTES);
    bool ok = s->faulty || launch(ptx, s, &params, 12);
    memcpy(left, at, OUT_BYTES);
    memset(at, 0, OUT_BYTES);
    ok = ok && launch(text.at, s, &params, 24);
    if (ok && !s->faulty && memcmp(at, left, OUT_BYTES))
        mg_test_fail(__FILE__, __LINE__, "the twin computes something else:\n%s", text.at);
    r->raw = malloc(8 * n_words + 8);
    memcpy(r->raw, c + MG_CTX_BYTES / 8, 8 * n_words);
    r->cells = calloc(r->layout.regions[0].n_cells + 1, 8);
    mg_layout_read(&r->layout.regions[0], r->raw, r->cells);
    read_tables(r);
    r->threads = calloc(r->sites->n_blocks + 1, 8);
    r->warps = calloc(r->sites->n_blocks + 1, 8);
    bool fits = !r->layout.has_blocks || mg_counters_read(&r->layout.blocks, &l.shape, r->raw, r->threads, r->warps);
    if (ok && !s->faulty && r->layout.has_blocks && r->layout.blocks.scope == MG_COUNT_FULL) {
        uint64_t launched, warps;
        mg_counters_launched(MG_COUNT_FULL, 0, 0, &l.shape, &launched, &warps);
        if (!fits || !mg_counts_fit(&r->layout.fit, launched, r->threads, r->layout.blocks.warps ? r->warps : NULL))
            mg_test_fail(__FILE__, __LINE__, "the counts contradict one another");
    }
    free(left);
    mg_buf_release(&text);
    mg_mem_free(ctx);
    mg_mem_free(out);
    return ok;
}

static void fill_result(struct ran *r, const struct tool_shape *s)
{
    const struct mg_region *g = &r->layout.regions[0];
    r->result_sites = calloc(g->n_sites + 1, sizeof *r->result_sites);
    for (uint32_t i = 0; i < g->n_sites; i++) {
        const struct mg_layout_site *x = &g->sites[i];
        r->result_sites[i] = (struct mg_result_site){x->kind, x->note, x->block, x->succ,    x->ptx_line, x->function,
                                                     x->op,   x->file, x->line,  x->inlined, x->cell,     x->n_cells};
    }
    r->launch = (struct mg_result_launch){
        .cells = r->cells, .grid = {s->grid, 1, 1}, .block = {s->block, 1, 1}, .complete = true};
    r->kernel = (struct mg_result_kernel){.name = "k",
                                          .demangled = "k",
                                          .module = "m",
                                          .launches = 1,
                                          .counted = 1,
                                          .sites = r->result_sites,
                                          .n_sites = g->n_sites,
                                          .cells = r->cells,
                                          .n_cells = g->n_cells,
                                          .tables = r->tables,
                                          .n_tables = r->n_tables,
                                          .of_launch = &r->launch,
                                          .n_of_launch = 1,
                                          .threads = r->layout.has_blocks ? r->threads : NULL,
                                          .n_blocks = r->sites->n_blocks,
                                          .blocks = r->sites->blocks};
    r->result = (struct mg_tool_result){.device_kind = "emu",
                                        .device_name = "emulator",
                                        .sms = 132,
                                        .sm = 90,
                                        .host_times = !s->sm,
                                        .kernels = &r->kernel,
                                        .n_kernels = 1,
                                        .columns = 100};
}

static void add_rows(const struct mg_table *t, struct mg_buf *out)
{
    for (uint32_t i = 0; i < t->tables.n; i++)
        for (uint32_t row = 0; row < t->tables.at[i].n_rows; row++) {
            mg_buf_adds(out, t->tables.at[i].name);
            for (uint32_t c = 0; c < t->tables.at[i].columns.n; c++) {
                struct mg_table_value v = mg_table_value(&t->tables.at[i], row, c);
                mg_buf_addc(out, '|');
                if (v.kind == MG_TV_TEXT)
                    mg_buf_adds(out, v.text);
                else if (v.kind == MG_TV_U64)
                    mg_buf_addu(out, v.u);
                else if (v.kind == MG_TV_F64)
                    mg_buf_printf(out, "%.4g", v.f);
                else if (v.kind == MG_TV_PLACE)
                    mg_buf_printf(out, "%s:%llu", v.text ? v.text : "", (unsigned long long)v.u);
                else
                    mg_buf_addc(out, '-');
            }
            mg_buf_addc(out, '\n');
        }
}

static char *tool_run(const char *tool, const char *args, const char *ptx, const struct tool_shape *s, bool rows)
{
    struct ran r = {.tool = mg_tool_find(tool)};
    struct mg_twin *t = NULL;
    struct mg_buf json = MG_BUF_INIT, text = MG_BUF_INIT;
    struct mg_table table = {0};
    struct mg_json j;
    bool ok = r.tool && instrument(&r, args, ptx, s, &t) && run_twin(&r, t, ptx, s);
    if (!r.tool) mg_test_fail(__FILE__, __LINE__, "no tool %s", tool);
    if (ok) {
        fill_result(&r, s);
        mg_json_init(&j, &json, 0);
        mg_json_obj(&j);
        r.tool->profile(r.conf, &r.result, &table, &j);
        mg_json_end(&j, '}');
        add_rows(&table, &text);
    }
    mg_twin_free(t);
    mg_table_release(&table);
    mg_layout_release(&r.layout);
    mg_sites_free(r.sites);
    mg_module_free(r.m);
    if (r.tool && r.tool->release) r.tool->release(r.conf);
    free_tables(&r);
    free(r.raw), free(r.cells), free(r.threads), free(r.warps), free(r.result_sites);
    mg_buf_addc(&json, 0), mg_buf_addc(&text, 0);
    char *keep = ok ? mg_buf_take(rows ? &text : &json) : NULL;
    mg_buf_release(&json);
    mg_buf_release(&text);
    return keep;
}

char *tool_run_json(const char *tool, const char *args, const char *ptx, const struct tool_shape *s)
{
    return tool_run(tool, args, ptx, s, false);
}
char *tool_run_rows(const char *tool, const char *args, const char *ptx, const struct tool_shape *s)
{
    return tool_run(tool, args, ptx, s, true);
}
