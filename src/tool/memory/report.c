/* memory: from cells to figures, tables, JSON and charts. */
#include <stdlib.h>
#include <string.h>

#include "view/chart.h"
#include "tool/memory/memory.h"

enum { pattern_rows = 24 }; /* of the picture */
static const char *const patterns[MG_MC_PATTERNS] = {"same",       "aligned",     "unit",     "stride_32",
                                                     "stride_128", "stride_more", "irregular"};
static const char *const pattern_labels[MG_MC_PATTERNS] = {"one address",      "in order, aligned", "in order",
                                                           "steps up to 32 B", "steps up to 128 B", "larger steps",
                                                           "no one step"};
/* What moves at most one sector more than it needs is blue or green; the redder, the more it moves. */
static const char *const pattern_colors[MG_MC_PATTERNS] = {"#4477aa", "#228833", "#88bb66", "#ccbb44",
                                                           "#ee9955", "#dd6644", "#aa2222"};

struct figures { /* of one site */
    const struct mg_result_kernel *k;
    const struct mg_result_site *s;
    struct mg_memory_note note;
    bool counted, has_requests, has_sectors, has_conflicts;
    uint64_t accesses, bytes_read, bytes_written, requests, sectors, lines, conflicts,
        least; /* least: sectors that the bytes would fill */
    uint64_t pattern[MG_MC_PATTERNS];
};

static uint64_t up(uint64_t v, uint64_t unit)
{
    return (v + unit - 1) / unit;
}

/* Requests of 32 lanes in order, told by the place in its line where the group's first site begins. */
static void add_places(struct figures *f, const uint64_t *places, uint32_t n)
{
    uint64_t bytes = f->note.bytes;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = (i * bytes + 4 * f->note.apart) % 128;
        f->pattern[at ? MG_MC_UNIT - MG_MC_SAME : MG_MC_ALIGNED - MG_MC_SAME] += places[i];
        f->sectors += places[i] * up(at % 32 + 32 * bytes, 32);
        f->lines += places[i] * up(at + 32 * bytes, 128);
    }
}

static const struct mg_result_site *back_of(const struct mg_result_kernel *k, const struct mg_result_site *s)
{
    uint32_t back = mg_memory_unpack(s->note).back;
    return s - k->sites >= (ptrdiff_t)back ? s - back : s;
}

static void figures_init(struct figures *f, const struct mg_result_kernel *k, const struct mg_result_site *s)
{
    *f = (struct figures){.k = k, .s = s, .note = mg_memory_unpack(s->note)};
    const struct mg_memory_note *n = &f->note;
    const struct mg_result_site *own = s->n_cells ? s : back_of(k, s), /* whose cells are its own: it is at its place */
        *g = back_of(k, own);                                          /* first of its group, or of its bundle */
    const uint64_t *of_group = mg_kit_cells(k, g), *c = mg_kit_cells(k, own), *of_all = NULL;
    if (n->space == MG_SPACE_shared && g->n_cells >= 2 * MG_MC_COUNT) {
        of_all = of_group;
        if (own == g) c = of_all + MG_MC_COUNT;
    }
    f->counted = n->guarded ? g->n_cells > 0 : k->threads && s->block < k->n_blocks;
    f->accesses = n->guarded ? (g->n_cells ? of_group[MG_MC_ACCESSES] : 0) : f->counted ? k->threads[s->block] : 0;
    f->bytes_read = n->reads ? f->accesses * n->bytes : 0;
    f->bytes_written = n->writes ? f->accesses * n->bytes : 0;
    if (!n->full || g->n_cells < MG_MC_COUNT) return;
    f->has_requests = true;
    f->has_sectors = n->space == MG_SPACE_global || n->space == MG_SPACE_generic;
    f->has_conflicts = n->space == MG_SPACE_shared || n->space == MG_SPACE_generic;
    for (uint32_t i = 0; i < MG_MC_PATTERNS; i++) f->pattern[i] = c[MG_MC_SAME + i];
    for (uint32_t i = 0; of_all && i < MG_MC_PATTERNS; i++) f->pattern[i] += of_all[MG_MC_SAME + i];
    f->pattern[0] += of_group[MG_MC_SAME_ALL];
    f->sectors = c[MG_MC_SECTORS] + f->pattern[0] + f->pattern[1] * n->bytes;
    f->lines = c[MG_MC_LINES] + f->pattern[0] + f->pattern[1] * up(32 * (uint64_t)n->bytes, 128);
    if (n->space != MG_SPACE_shared) add_places(f, of_group + MG_MC_COUNT, g->n_cells - MG_MC_COUNT);
    for (uint32_t i = 0; i < MG_MC_PATTERNS; i++) f->requests += f->pattern[i];
    f->conflicts = c[MG_MC_CONFLICTS] + (of_all ? of_all[MG_MC_CONFLICTS] : 0);
    f->least = MG_MIN(f->sectors, up(f->accesses * n->bytes, 32));
}

static void key_if(struct mg_json *j, const char *key, bool has, uint64_t v)
{
    mg_json_key_u64_if(j, key, has, v);
}

static const char *space_name(const struct figures *f)
{
    return f->note.space == MG_SPACE_generic ? "generic" : mg_space_name((enum mg_space)f->note.space);
}

static void site_json(const struct mg_tool_result *r, const struct figures *f, struct mg_json *j)
{
    mg_json_obj(j);
    mg_kit_site_json(j, f->k, f->s);
    mg_json_key_str(j, "space", space_name(f));
    mg_json_key_u64(j, "width", f->note.bytes);
    key_if(j, "accesses", f->counted, f->accesses);
    key_if(j, "bytes_read", f->counted, f->bytes_read);
    key_if(j, "bytes_written", f->counted, f->bytes_written);
    key_if(j, "requests", f->has_requests, f->requests);
    key_if(j, "sectors", f->has_sectors, f->sectors);
    key_if(j, "lines", f->has_sectors, f->lines);
    key_if(j, "bank_conflicts", f->has_conflicts, f->conflicts);
    mg_json_key(j, "patterns");
    if (f->has_requests) {
        mg_json_obj(j);
        for (uint32_t i = 0; i < MG_MC_PATTERNS; i++) mg_json_key_u64(j, patterns[i], f->pattern[i]);
        mg_json_end(j, '}');
    } else {
        mg_json_null(j);
    }
    mg_kit_key_buffer(j, mg_kit_buffer(r, f->k, f->s));
    mg_json_end(j, '}');
}

struct totals {             /* of a kernel */
    uint64_t read, written; /* over all spaces that are memory of the device */
    uint64_t sectors, wasted, passes, conflicts;
    bool has_sectors, has_passes; /* tells of some instruction */
};

static void totals_init(struct totals *t, const struct figures *f, uint32_t n, const struct mg_result_kernel *k)
{
    *t = (struct totals){0};
    for (; n-- > 0; f++) {
        if (f->k != k) continue;
        if (f->note.space != MG_SPACE_shared) t->read += f->bytes_read, t->written += f->bytes_written;
        t->has_sectors = t->has_sectors || f->has_sectors;
        if (f->has_sectors) t->sectors += f->sectors, t->wasted += f->sectors - f->least;
        if (f->note.space != MG_SPACE_shared || !f->has_requests) continue; /* of a generic one nobody knows how many */
        t->has_passes = true;
        t->passes += f->requests * MG_MAX(f->note.bytes / 4, 1u) + f->conflicts;
        t->conflicts += f->conflicts;
    }
}

static void totals_json(const struct figures *f, uint32_t n, const struct mg_result_kernel *k, struct mg_json *j)
{
    struct totals t;
    totals_init(&t, f, n, k);
    mg_json_obj(j);
    mg_json_key_u64(j, "kernel", k->id);
    key_if(j, "bytes_read", k->threads != NULL, t.read);
    key_if(j, "bytes_written", k->threads != NULL, t.written);
    key_if(j, "sectors_moved", t.has_sectors, t.sectors); /* not "sectors": diff adds those of sites up */
    key_if(j, "sectors_wasted", t.has_sectors, t.wasted);
    key_if(j, "passes_made", t.has_passes, t.passes);
    key_if(j, "passes_wasted", t.has_passes, t.conflicts);
    mg_json_end(j, '}');
}

static void place_columns(struct mg_table *t)
{
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "instruction", MG_COL_TEXT, NULL);
}

static void place_values(struct mg_table *t, const struct figures *f)
{
    mg_table_row(t);
    mg_table_place(t, f->s);
    mg_table_text(t, f->s->op);
}

static const char *worst_pattern(const struct figures *f)
{
    uint32_t at = 0;
    for (uint32_t i = 1; i < MG_MC_PATTERNS; i++)
        if (f->pattern[i] > f->pattern[at]) at = i;
    return f->requests ? patterns[at] : "";
}

/* What the transfers of a request carried that nobody asked for: sectors of 32 bytes, passes of 128. */
static uint64_t wasted(const struct figures *f)
{
    return (f->has_sectors ? 32 * (f->sectors - f->least) : 0) + (f->has_conflicts ? 128 * f->conflicts : 0);
}

static void request_table(struct mg_table *t, const struct mg_tool_result *r, const struct figures *f, uint32_t n)
{
    mg_table_begin(
        t, "memory",
        "memory instructions, the most wasteful first; wasted: 32 B a sector beyond what bytes fill, 128 B a pass of a bank conflict");
    place_columns(t);
    mg_table_column(t, "wasted", MG_COL_BYTES, NULL);
    mg_table_column(t, "sectors", MG_COL_REAL, "a request");
    mg_table_column(t, "efficiency", MG_COL_PERCENT, NULL);
    mg_table_column(t, "conflicts", MG_COL_REAL, "a request");
    mg_table_column(t, "requests", MG_COL_COUNT, NULL);
    mg_table_column(t, "mostly", MG_COL_TEXT, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_table_column(t, "buffer", MG_COL_TEXT, NULL);
    for (uint32_t i = 0; i < n; i++) {
        if (!f[i].requests) continue;
        place_values(t, &f[i]);
        mg_table_u64(t, wasted(&f[i]));
        if (f[i].has_sectors)
            mg_table_f64(t, mg_kit_share(f[i].sectors, f[i].requests)),
                mg_table_f64(t, MG_MIN(100.0, mg_kit_percent(f[i].accesses * f[i].note.bytes, f[i].sectors * 32)));
        else
            mg_table_null(t), mg_table_null(t);
        if (f[i].has_conflicts)
            mg_table_f64(t, mg_kit_share(f[i].conflicts, f[i].requests));
        else
            mg_table_null(t);
        mg_table_u64(t, f[i].requests);
        mg_table_text(t, worst_pattern(&f[i]));
        mg_table_text(t, f[i].k->demangled);
        mg_table_buffer(t, mg_kit_buffer(r, f[i].k, f[i].s));
    }
    mg_table_sort(t, 2);
}

static void bytes_table(struct mg_table *t, const struct figures *f, uint32_t n)
{
    mg_table_begin(t, "bytes", "bytes that instructions ask for");
    place_columns(t);
    mg_table_column(t, "space", MG_COL_TEXT, NULL);
    mg_table_column(t, "read", MG_COL_BYTES, NULL);
    mg_table_column(t, "written", MG_COL_BYTES, NULL);
    mg_table_column(t, "accesses", MG_COL_COUNT, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    for (uint32_t i = 0; i < n; i++) {
        place_values(t, &f[i]);
        mg_table_text(t, space_name(&f[i]));
        if (f[i].counted)
            mg_table_u64(t, f[i].bytes_read), mg_table_u64(t, f[i].bytes_written), mg_table_u64(t, f[i].accesses);
        else
            mg_table_null(t), mg_table_null(t), mg_table_null(t);
        mg_table_text(t, f[i].k->demangled);
    }
    mg_table_sort(t, 5);
}

struct pattern_row { /* instructions of one place */
    const struct mg_result_kernel *k;
    char *label;
    double requests, patterns[MG_MC_PATTERNS];
    uint32_t at; /* in the order of the code */
};

static int by_requests(const void *a, const void *b)
{
    const struct pattern_row *x = a, *y = b;
    return x->requests != y->requests ? (x->requests < y->requests ? 1 : -1) : (x->at > y->at) - (x->at < y->at);
}

static char *pattern_label(const struct figures *f)
{
    const char *file = f->s->line ? f->s->file : NULL,
               *slash = file ? strrchr(file, '/') : NULL; /* line 0: the compiler's */
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_printf(&b, "%s:%u %s", file ? (slash ? slash + 1 : file) : "PTX", file ? f->s->line : f->s->ptx_line,
                  f->s->op);
    return mg_buf_take(&b);
}

static int by_place(const void *a, const void *b)
{
    const struct pattern_row *x = a, *y = b;
    int c = x->k != y->k ? (x->k > y->k) - (x->k < y->k) : strcmp(x->label, y->label);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

struct pattern_places {
    MG_VEC(struct pattern_row) rows;
};

/* Instructions of one place of a kernel as one row. */
static void join_places(struct pattern_places *x)
{
    uint32_t n = 0;
    if (x->rows.n) qsort(x->rows.at, x->rows.n, sizeof *x->rows.at, by_place);
    for (uint32_t r = 0; r < x->rows.n; r++) {
        struct pattern_row *from = &x->rows.at[r], *to = n ? &x->rows.at[n - 1] : NULL;
        if (!to || to->k != from->k || strcmp(to->label, from->label)) {
            x->rows.at[n++] = *from;
            continue;
        }
        to->requests += from->requests;
        for (uint32_t p = 0; p < MG_MC_PATTERNS; p++) to->patterns[p] += from->patterns[p];
        free(from->label);
    }
    x->rows.n = n;
}

static void stride_chart(struct mg_table *t, const struct figures *f, uint32_t n)
{
    struct pattern_places x = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (!f[i].requests) continue;
        struct pattern_row *row = mg_vec_push(&x.rows);
        *row = (struct pattern_row){f[i].k, pattern_label(&f[i]), (double)f[i].requests, .at = i};
        for (uint32_t p = 0; p < MG_MC_PATTERNS; p++) row->patterns[p] = (double)f[i].pattern[p];
    }
    join_places(&x);
    if (x.rows.n) qsort(x.rows.at, x.rows.n, sizeof *x.rows.at, by_requests);
    uint32_t shown = MG_MIN(x.rows.n, (uint32_t)pattern_rows);
    const char *labels[pattern_rows];
    double values[pattern_rows * MG_MC_PATTERNS];
    struct mg_buf svg = MG_BUF_INIT, title = MG_BUF_INIT;
    for (uint32_t r = 0; r < shown; r++) {
        labels[r] = x.rows.at[r].label;
        memcpy(values + r * MG_MC_PATTERNS, x.rows.at[r].patterns, sizeof x.rows.at[r].patterns);
    }
    mg_buf_adds(&title, "Requests by the pattern of their addresses");
    if (shown < x.rows.n) mg_buf_printf(&title, ": the %u of %u places with the most", shown, x.rows.n);
    if (shown) {
        mg_chart_stacked(&svg, title.at, labels, shown, pattern_labels, pattern_colors, MG_MC_PATTERNS, values,
                         "requests");
        mg_table_chart(t, "memory-patterns", title.at, svg.at, svg.n);
    }
    for (uint32_t r = 0; r < x.rows.n; r++) free(x.rows.at[r].label);
    mg_vec_release(&x.rows);
    mg_buf_release(&svg), mg_buf_release(&title);
}

void mg_memory_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    uint32_t n = 0, at = 0;
    (void)conf;
    for (uint32_t k = 0; k < r->n_kernels; k++) n += r->kernels[k].n_sites;
    struct figures *f = mg_xcalloc(n + 1, sizeof *f);
    for (uint32_t k = 0; k < r->n_kernels; k++)
        for (uint32_t i = 0; i < r->kernels[k].n_sites; i++)
            figures_init(&f[at++], &r->kernels[k], &r->kernels[k].sites[i]);
    mg_json_key(j, "kernels");
    mg_json_arr(j);
    for (uint32_t k = 0; k < r->n_kernels; k++) totals_json(f, n, &r->kernels[k], j);
    mg_json_end(j, ']');
    mg_json_key(j, "sites");
    mg_json_arr(j);
    for (uint32_t i = 0; i < n; i++) site_json(r, &f[i], j);
    mg_json_end(j, ']');
    bool requests = false;
    for (uint32_t i = 0; i < n; i++) requests = requests || f[i].has_requests;
    if (requests) request_table(t, r, f, n);
    bytes_table(t, f, n);
    if (requests) stride_chart(t, f, n);
    free(f);
}
