/* hot: a kernel's control-flow graph as a heat map: how often threads entered each block, with source
 * lines and loops, and the hottest region called out (as in "A framework for dynamically instrumenting GPU compute
 * applications within GPU Ocelot").
 *
 * Counts come from block counts. What the profile step needs besides is static: each block is a site
 * without cells whose note says in which loop it lies. A region is the blocks whose innermost loop is the
 * same one; blocks in no loop are regions of their own. */
#include <stdlib.h>
#include <string.h>

#include "analysis/loop.h"
#include "tool/tool.h"
#include "view/chart.h"
#include "view/kit.h"

enum { charts = 6, nodes_at_most = 250 };

static const struct mg_tool_opt hot_opts[] = {{0}};

static enum mg_err hot_configure(const char *args, void **conf, struct mg_diag *d)
{
    static const struct mg_field none[] = {{0}};
    return mg_fields_parse("hot", none, "", 0, args, conf, d);
}

static enum mg_err hot_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    mg_patch_want_blocks(p);
    return MG_ERR_OK;
}

/* note: loop depth | (header's dense block id + 1) << 8 */
static enum mg_err hot_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_sites *s = mg_patch_sites(p);
    (void)conf, (void)d;
    for (uint32_t id = 0; id < s->n_blocks; id++) {
        const struct mg_site_block *b = &s->blocks[id];
        const struct mg_loops *loops = mg_patch_loops(p, b->func_ix);
        uint32_t loop = loops->loop_of[b->block_ix], note = 0;
        if (loop != MG_NO_LOOP)
            note = MG_MIN(loops->loops[loop].depth, 255u) | (s->first_block[b->func_ix] + loops->loops[loop].header + 1)
                                                                << 8;
        mg_patch_site(p, MG_SITE_BLOCK, 0, id, 0, MG_MERGE_SUM, note);
    }
    return MG_ERR_OK;
}

/* ---- profile ------------------------------------------------------------------------------------------ */

struct heat { /* of one kernel */
    const struct mg_result_kernel *k;
    uint32_t n;             /* blocks */
    uint32_t *depth, *head; /* head: header of the innermost loop, the block itself outside of loops */
    uint64_t *insts, all, most_threads;
    uint32_t region;
    uint64_t region_insts; /* the hottest, by its head */
};

static void heat_init(struct heat *h, const struct mg_result_kernel *k)
{
    memset(h, 0, sizeof *h);
    h->k = k;
    h->n = k->n_blocks;
    h->depth = mg_xcalloc(h->n + 1, sizeof *h->depth);
    h->head = mg_xcalloc(h->n + 1, sizeof *h->head);
    h->insts = mg_xcalloc(h->n + 1, sizeof *h->insts);
    uint64_t *regions = mg_xcalloc(h->n + 1, sizeof *regions);
    for (uint32_t b = 0; b < h->n; b++) h->head[b] = b;
    for (uint32_t i = 0; i < k->n_sites; i++) {
        const struct mg_result_site *s = &k->sites[i];
        if (s->kind != MG_SITE_BLOCK || s->block >= h->n) continue;
        h->depth[s->block] = s->note & 255;
        if (s->note >> 8 && (s->note >> 8) - 1 < h->n) h->head[s->block] = (s->note >> 8) - 1;
    }
    for (uint32_t b = 0; b < h->n && k->threads; b++) {
        h->insts[b] = k->threads[b] * k->blocks[b].n_insts;
        h->all += h->insts[b];
        h->most_threads = MG_MAX(h->most_threads, k->threads[b]);
        regions[h->head[b]] += h->insts[b];
    }
    for (uint32_t b = 0; b < h->n; b++)
        if (regions[b] > h->region_insts) h->region = b, h->region_insts = regions[b];
    free(regions);
}

static void heat_release(struct heat *h)
{
    free(h->depth);
    free(h->head);
    free(h->insts);
}

static bool in_region(const struct heat *h, uint32_t b)
{
    return h->region_insts && h->head[b] == h->region;
}

static void block_name(const struct mg_site_block *b, struct mg_buf *out)
{
    if (b->label && *b->label)
        mg_buf_adds(out, b->label);
    else
        mg_buf_printf(out, "block %u", b->id);
}

static void heat_json(const struct heat *h, struct mg_json *j)
{
    const struct mg_result_kernel *k = h->k;
    bool measured = k->threads != NULL;
    mg_json_obj(j);
    mg_json_key_u64(j, "kernel", k->id);
    mg_json_key(j, "hottest");
    if (!measured || !h->region_insts) {
        mg_json_null(j);
    } else {
        mg_json_obj(j);
        mg_json_key(j, "blocks");
        mg_json_arr(j);
        for (uint32_t b = 0; b < h->n; b++)
            if (in_region(h, b)) mg_json_u64(j, b);
        mg_json_end(j, ']');
        mg_json_key_bool(j, "loop", h->depth[h->region] > 0);
        mg_json_key_str(j, "file", k->blocks[h->region].file);
        mg_json_key_u64_if(j, "line", k->blocks[h->region].file != NULL, k->blocks[h->region].line);
        mg_json_key_u64(j, "thread_instructions", h->region_insts);
        mg_json_key_f64(j, "share", mg_kit_share(h->region_insts, h->all));
        mg_json_end(j, '}');
    }
    mg_json_key(j, "blocks");
    mg_json_arr(j);
    for (uint32_t b = 0; b < h->n; b++) {
        mg_json_obj(j);
        mg_json_key_u64(j, "id", b);
        mg_json_key_u64(j, "depth", h->depth[b]);
        mg_json_key_u64_if(j, "loop", h->depth[b] > 0, h->head[b]);
        mg_json_key_u64_if(j, "thread_entries", measured, measured ? k->threads[b] : 0);
        mg_json_key_u64_if(j, "thread_instructions", measured, h->insts[b]);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

/* The graph in the terminal: one row a block, indented by loop depth, the hottest region marked. */
static void heat_rows(const struct heat *h, struct mg_table *t)
{
    struct mg_buf text = MG_BUF_INIT;
    for (uint32_t b = 0; b < h->n; b++) {
        const struct mg_site_block *s = &h->k->blocks[b];
        struct mg_result_site place = {
            .file = s->file, .line = s->line, .ptx_line = s->ptx_line, .function = s->function, .op = ""};
        mg_table_row(t);
        mg_table_text(t, h->k->demangled);
        mg_buf_reset(&text);
        for (uint32_t d = 0; d < h->depth[b]; d++) mg_buf_adds(&text, "| ");
        block_name(s, &text);
        if (in_region(h, b)) mg_buf_adds(&text, " <hottest>");
        mg_table_text(t, text.at);
        mg_table_place(t, &place);
        mg_table_u64(t, s->n_insts);
        if (h->k->threads)
            mg_table_u64(t, h->k->threads[b]), mg_table_f64(t, mg_kit_percent(h->insts[b], h->all));
        else
            mg_table_null(t), mg_table_null(t);
        mg_buf_reset(&text);
        for (uint32_t i = 0;
             h->most_threads && i < 1 + 19 * (double)(h->k->threads ? h->k->threads[b] : 0) / (double)h->most_threads &&
             h->k->threads[b];
             i++)
            mg_buf_addc(&text, '#');
        mg_table_text(t, text.at ? text.at : "");
        mg_buf_reset(&text);
        for (uint32_t i = 0; i < s->n_succs; i++)
            mg_buf_printf(&text, "%s%u%s", i ? " " : "", s->succs[i], s->succs[i] <= b ? "^" : "");
        mg_table_text(t, text.at ? text.at : "");
    }
    mg_buf_release(&text);
}

struct order {
    uint32_t *list, at;
};

static void note_last(void *user, uint32_t b)
{
    struct order *o = user;
    o->list[--o->at] = b;
}

/* Reverse postorder of all blocks: edges that lead to an earlier place of it go back. */
static void order_blocks(const struct heat *h, uint32_t *order)
{
    struct mg_arena arena = MG_ARENA_INIT;
    struct mg_graph g = mg_kit_graph(&arena, h->k->blocks, h->n);
    struct order o = {order, h->n};
    uint64_t *seen = mg_arena_array(&arena, uint64_t, mg_bits_words(h->n) + 1);
    for (uint32_t b = 0; b < h->n; b++)
        mg_graph_walk(&g, b, seen, &(struct mg_graph_visit){.leave = note_last, .user = &o});
    mg_arena_release(&arena);
}

static void heat_node(const struct heat *h, uint32_t b, struct mg_chart_node *node, struct mg_buf *text)
{
    const struct mg_site_block *s = &h->k->blocks[b];
    mg_buf_reset(text);
    block_name(s, text);
    mg_buf_printf(text, "  %llu threads\n%u instructions, ", (unsigned long long)h->k->threads[b], s->n_insts);
    mg_chart_number(text, mg_kit_percent(h->insts[b], h->all));
    mg_buf_adds(text, " %\n");
    if (s->file && s->line) {
        const char *slash = strrchr(s->file, '/');
        mg_buf_printf(text, "%s:%u", slash ? slash + 1 : s->file, s->line);
    } else {
        mg_buf_printf(text, "PTX line %u", s->ptx_line);
    }
    node->text = mg_buf_take(text);
    node->heat = mg_kit_share(h->k->threads[b], h->most_threads);
    node->marked = in_region(h, b);
}

static void heat_chart(const struct heat *h, struct mg_table *t, uint32_t ix)
{
    uint32_t n_edges = 0, e = 0;
    struct mg_buf text = MG_BUF_INIT, svg = MG_BUF_INIT, name = MG_BUF_INIT;
    uint32_t *order = mg_xcalloc(h->n + 1, sizeof *order), *place = mg_xcalloc(h->n + 1, sizeof *place);
    struct mg_chart_node *nodes = mg_xcalloc(h->n + 1, sizeof *nodes);
    order_blocks(h, order);
    for (uint32_t b = 0; b < h->n; b++) n_edges += h->k->blocks[b].n_succs;
    for (uint32_t i = 0; i < h->n; i++) {
        place[order[i]] = i;
        heat_node(h, order[i], &nodes[i], &text);
    }
    struct mg_chart_edge *edges = mg_xcalloc(n_edges + 1, sizeof *edges);
    for (uint32_t b = 0; b < h->n; b++)
        for (uint32_t i = 0; i < h->k->blocks[b].n_succs; i++) {
            uint32_t to = h->k->blocks[b].succs[i];
            if (to < h->n) edges[e++] = (struct mg_chart_edge){place[b], place[to], place[to] <= place[b]};
        }
    mg_kit_kernel_name(h->k, 80, &name);
    mg_chart_graph(&svg, name.at, nodes, h->n, edges, e);
    mg_buf_reset(&text);
    mg_buf_printf(&text, "hot-%u", ix);
    mg_table_chart(t, text.at, name.at, svg.at, svg.n);
    mg_buf_reset(&svg);
    mg_chart_dot(&svg, name.at, nodes, h->n, edges, e);
    mg_table_chart_dot(t, svg.at);
    for (uint32_t i = 0; i < h->n; i++) free((char *)(uintptr_t)nodes[i].text);
    free(nodes);
    free(edges);
    free(order);
    free(place);
    mg_buf_release(&text);
    mg_buf_release(&svg);
    mg_buf_release(&name);
}

static int hotter(const void *a, const void *b)
{
    const struct heat *x = a, *y = b;
    if (x->all != y->all) return x->all > y->all ? -1 : 1;
    return x->k->id < y->k->id ? -1 : 1;
}

static void hot_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    struct heat *h = mg_xcalloc(r->n_kernels + 1, sizeof *h);
    (void)conf;
    mg_json_key(j, "kernels");
    mg_json_arr(j);
    for (uint32_t k = 0; k < r->n_kernels; k++) {
        heat_init(&h[k], &r->kernels[k]);
        heat_json(&h[k], j);
    }
    mg_json_end(j, ']');
    if (r->n_kernels) qsort(h, r->n_kernels, sizeof *h, hotter);
    mg_table_begin(t, "hot", "control flow, hottest kernel first; in text order, | for each loop around, ^ leads back");
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_table_column(t, "block", MG_COL_TEXT, NULL);
    mg_table_column(t, "place", MG_COL_PLACE, NULL);
    mg_table_column(t, "instructions", MG_COL_COUNT, NULL);
    mg_table_column(t, "threads", MG_COL_COUNT, NULL);
    mg_table_column(t, "share", MG_COL_PERCENT, NULL);
    mg_table_column(t, "heat", MG_COL_TEXT, NULL);
    mg_table_column(t, "leads to", MG_COL_TEXT, NULL);
    for (uint32_t k = 0; k < r->n_kernels; k++) {
        heat_rows(&h[k], t);
        if (h[k].region_insts) {
            const struct mg_site_block *b = &h[k].k->blocks[h[k].region];
            mg_table_note(t, "%s: hottest is the %s at %s:%u, %.1f %% of the thread instructions", h[k].k->demangled,
                          h[k].depth[h[k].region] ? "loop" : "block", b->file && b->line ? b->file : "PTX",
                          b->file && b->line ? b->line : b->ptx_line, mg_kit_percent(h[k].region_insts, h[k].all));
        }
        if (k < charts && h[k].k->threads && h[k].n && h[k].n <= nodes_at_most) heat_chart(&h[k], t, k);
    }
    for (uint32_t k = 0; k < r->n_kernels; k++) heat_release(&h[k]);
    free(h);
}

extern const struct mg_tool mg_tool_hot;
const struct mg_tool mg_tool_hot = {
    .name = "hot",
    .summary = "the control-flow graph as a heat map, with the hottest region called out",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 1.03, as blocks (docs/measured.md)",
    .opts = hot_opts,
    .configure = hot_configure,
    .release = free,
    .analyze = hot_analyze,
    .instrument = hot_instrument,
    .profile = hot_profile,
    .flags = MG_TOOL_NO_LOADS,
};
