/* The tables and pictures, one function each: rows of ours, and where the papers give numbers, theirs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/overview/priv.h"
#include "view/chart.h"

/* ---- what tables share ----------------------------------------------------------------------------------------- */

typedef bool (*has_fn)(const struct program *p);

/* Programs that have no row, and what would give them one. */
static void note_missing(const struct mg_overview *o, struct mg_table *t, has_fn has, const char *how)
{
    uint32_t n = 0;
    const char *first = NULL;
    for (uint32_t i = 0; i < o->programs.n; i++) {
        if (has(&o->programs.at[i])) continue;
        if (!n++) first = o->programs.at[i].name;
    }
    char text[200];
    snprintf(text, sizeof text, "no profile here has it: %s", how);
    mg_table_empty(t, text);
    if (n == 1 && o->programs.n > 1)
        mg_table_note(t, "1 of %u programs is missing, %s: no profile of it has this (%s)", o->programs.n, first, how);
    else if (n && n < o->programs.n)
        mg_table_note(t, "%u of %u programs are missing, %s first: no profile of theirs has this (%s)", n,
                      o->programs.n, first, how);
}

static void put_chart(struct mg_table *t, const char *name, const char *title, struct mg_buf *svg)
{
    mg_table_chart(t, name, title, svg->at, svg->n);
    mg_buf_release(svg);
}

static void f64_if(struct mg_table *t, bool has, double v)
{
    if (has)
        mg_table_f64(t, v);
    else
        mg_table_null(t);
}

static void u64_if(struct mg_table *t, bool has, uint64_t v)
{
    if (has)
        mg_table_u64(t, v);
    else
        mg_table_null(t);
}

/* 100 % a program, divided by series: values_of fills one row. */
static void stacked(const struct mg_overview *o, struct mg_table *t, const char *name, const char *title, has_fn has,
                    const char *const *series, uint32_t n_series,
                    void (*values_of)(const struct program *p, double *values), const char *unit)
{
    const char **labels = mg_xcalloc(o->programs.n + 1, sizeof *labels);
    double *values = mg_xcalloc((size_t)o->programs.n * n_series + 1, sizeof *values);
    struct mg_buf svg = MG_BUF_INIT;
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->programs.n; i++) {
        if (!has(&o->programs.at[i])) continue;
        labels[n] = o->programs.at[i].name;
        values_of(&o->programs.at[i], values + (size_t)n++ * n_series);
    }
    if (n) {
        mg_chart_stacked(&svg, title, labels, n, series, NULL, n_series, values, unit);
        put_chart(t, name, title, &svg);
    }
    free(labels);
    free(values);
}

/* Bars as long as the number has digits: programs differ by orders of magnitude. */
static void log_bars(const struct mg_overview *o, struct mg_table *t, const char *name, const char *title, has_fn has,
                     uint64_t (*value)(const struct program *p))
{
    struct mg_chart_bar *bars = mg_xcalloc(o->programs.n + 1, sizeof *bars);
    struct mg_arena texts = MG_ARENA_INIT;
    struct mg_buf svg = MG_BUF_INIT;
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->programs.n; i++) {
        const struct program *p = &o->programs.at[i];
        if (!has(p)) continue;
        struct mg_buf text = MG_BUF_INIT;
        mg_add_grouped(&text, value(p));
        bars[n++] =
            (struct mg_chart_bar){p->name, log10(1 + (double)value(p)), mg_arena_strndup(&texts, text.at, text.n)};
        mg_buf_release(&text);
    }
    if (n) {
        mg_chart_bars(&svg, title, bars, n);
        put_chart(t, name, title, &svg);
    }
    mg_arena_release(&texts);
    free(bars);
}

/* ---- programs: GT-Pin's figures 3b and 3c ------------------------------------------------------------------------ */

static bool has_work(const struct program *p)
{
    return p->work.any;
}
static uint64_t kernels_in(const struct program *p)
{
    return p->work.kernels;
}
static uint64_t blocks_in(const struct program *p)
{
    return p->work.blocks;
}
static uint64_t launches_of(const struct program *p)
{
    return p->work.launches;
}
/* Of warps, which a GPU runs as GT-Pin's hardware threads; of threads where warps were not counted. */
static uint64_t entries_of(const struct program *p)
{
    return p->work.has_warps ? p->work.warp_entries : p->work.thread_entries;
}
static uint64_t insts_of(const struct program *p)
{
    return p->work.has_warps ? p->work.warp_insts : p->work.thread_insts;
}

static void programs_table(const struct mg_overview *o, struct mg_table *t)
{
    mg_table_begin(t, "programs", "programs: kernels, blocks and work (GT-Pin, figures 3b and 3c)");
    MG_TABLE_COLUMNS(t, {"program", MG_COL_TEXT}, {"domain", MG_COL_TEXT}, {"device", MG_COL_TEXT},
                     {"kernels", MG_COL_COUNT}, {"blocks", MG_COL_COUNT}, {"launches", MG_COL_COUNT},
                     {"counted", MG_COL_COUNT}, {"warp entries", MG_COL_COUNT}, {"thread entries", MG_COL_COUNT},
                     {"warp instructions", MG_COL_COUNT}, {"thread instructions", MG_COL_COUNT});
    for (uint32_t i = 0; i < o->programs.n; i++) {
        const struct program *p = &o->programs.at[i];
        const struct work *w = &p->work;
        if (!w->any) continue;
        mg_table_row(t);
        mg_table_text(t, p->name);
        mg_table_text(t, p->domain);
        mg_table_text(t, p->device);
        mg_table_u64(t, w->kernels);
        mg_table_u64(t, w->blocks);
        mg_table_u64(t, w->launches);
        mg_table_u64(t, w->counted_launches);
        u64_if(t, w->has_warps, w->warp_entries);
        mg_table_u64(t, w->thread_entries);
        u64_if(t, w->has_warps, w->warp_insts);
        mg_table_u64(t, w->thread_insts);
        if (w->estimate) mg_table_note(t, "%s: counts are estimates, from one CTA or warp a launch", p->name);
    }
    note_missing(o, t, has_work, "margay run -t blocks");
    mg_table_note(t, "entries: block executions; counts are of the counted launches");
    log_bars(o, t, "overview-kernels", "Unique kernels (bars: logarithmic)", has_work, kernels_in);
    log_bars(o, t, "overview-blocks", "Static basic blocks (bars: logarithmic)", has_work, blocks_in);
    log_bars(o, t, "overview-launches", "Kernel launches (bars: logarithmic)", has_work, launches_of);
    log_bars(o, t, "overview-entries", "Basic block executions (bars: logarithmic)", has_work, entries_of);
    log_bars(o, t, "overview-instructions", "Instructions executed (bars: logarithmic)", has_work, insts_of);
}

/* ---- totals: table I, and minimum, mean, maximum beside the paper's ---------------------------------------------- */

static const struct {
    const char *name;
    uint64_t (*value)(const struct program *p);
    double least, mean, most; /* GT-Pin's text; the most launches are table II's */
} quantities[] = {
    {"unique kernels", kernels_in, 1, 10.2, 50},      {"static blocks", blocks_in, 7, 1139, 11500},
    {"launches", launches_of, 55, 4764, 18157},       {"block executions", entries_of, 44e6, 13e9, 180e9},
    {"instructions", insts_of, 3.7e9, 227e9, 2.9e12},
};
/* Table I by domain: what section IV calls them. The GPU performance benchmark of Sandra stands under throughput. */
static const struct {
    const char *name;
    uint32_t programs;
} domains[] = {{"vision", 3},   {"physics", 3},      {"image", 4}, {"throughput", 4},
               {"graphics", 2}, {"cryptography", 2}, {"video", 7}};
#define PAPER_PROGRAMS 25u

static bool is_in(const struct program *p, const char *domain)
{
    if (!p->work.any) return false;
    if (!domain) return true;
    bool known = false;
    for (size_t i = 0; p->domain && i < MG_COUNT_OF(domains); i++) known |= !strcmp(p->domain, domains[i].name);
    return known ? !strcmp(p->domain, domain) : !*domain;
}

static bool any_other(const struct mg_overview *o)
{
    for (uint32_t i = 0; i < o->programs.n; i++)
        if (is_in(&o->programs.at[i], "")) return true;
    return false;
}

/* domain NULL: all; "": those in none of the paper's. */
static void totals_row(const struct mg_overview *o, struct mg_table *t, uint32_t q, const char *domain, uint32_t paper)
{
    double sum = 0, least = INFINITY, most = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->programs.n; i++) {
        if (!is_in(&o->programs.at[i], domain)) continue;
        double v = (double)quantities[q].value(&o->programs.at[i]);
        n++, sum += v, least = fmin(least, v), most = fmax(most, v);
    }
    if (!n && q) return; /* a domain without a program of ours stands in the list once */
    mg_table_row(t);
    mg_table_text(t, quantities[q].name);
    mg_table_text(t, !domain ? "all" : *domain ? domain : "other");
    mg_table_u64(t, n);
    u64_if(t, n, (uint64_t)(n ? least : 0));
    f64_if(t, n, n ? sum / n : 0);
    u64_if(t, n, (uint64_t)most);
    mg_table_u64(t, paper);
    u64_if(t, !domain, (uint64_t)quantities[q].least);
    f64_if(t, !domain, quantities[q].mean);
    u64_if(t, !domain, (uint64_t)quantities[q].most);
}

static void totals_table(const struct mg_overview *o, struct mg_table *t)
{
    bool any = false, apart = false, threads = false;
    mg_table_begin(t, "totals", "minimum, mean and maximum by domain, beside GT-Pin's 25 programs (its table I)");
    MG_TABLE_COLUMNS(t, {"quantity", MG_COL_TEXT}, {"domain", MG_COL_TEXT}, {"programs", MG_COL_COUNT},
                     {"min", MG_COL_COUNT}, {"mean", MG_COL_REAL}, {"max", MG_COL_COUNT},
                     {"paper programs", MG_COL_COUNT}, {"paper min", MG_COL_COUNT}, {"paper mean", MG_COL_REAL},
                     {"paper max", MG_COL_COUNT});
    for (uint32_t i = 0; i < o->programs.n; i++) {
        any |= has_work(&o->programs.at[i]);
        apart |= o->programs.at[i].domain != NULL;
        threads |= has_work(&o->programs.at[i]) && !o->programs.at[i].work.has_warps;
    }
    for (uint32_t q = 0; any && q < MG_COUNT_OF(quantities); q++) {
        totals_row(o, t, q, NULL, PAPER_PROGRAMS);
        for (size_t i = 0; apart && i < MG_COUNT_OF(domains); i++)
            totals_row(o, t, q, domains[i].name, domains[i].programs);
        if (apart && any_other(o)) totals_row(o, t, q, "", 0);
    }
    mg_table_empty(t, "no profile here has it: margay run -t blocks");
    if (!any) return;
    mg_table_note(t,
                  "block executions and instructions are those of warps%s: GT-Pin counts hardware threads, which "
                  "execute vectors",
                  threads ? " (of threads where a profile has no warps: -t blocks,warps=on)" : "");
    if (!apart) mg_table_note(t, "--domains FILE parts the programs by domain");
}

/* ---- calls: GT-Pin's figure 3a ----------------------------------------------------------------------------------- */

static bool has_calls(const struct program *p)
{
    return p->calls.any;
}

static void call_shares(const struct program *p, double *values)
{
    values[0] = p->calls.kernel_pct, values[1] = p->calls.sync_pct, values[2] = p->calls.other_pct;
}

static void calls_table(const struct mg_overview *o, struct mg_table *t)
{
    static const char *const kinds[] = {"kernel", "synchronisation", "other"};
    double sum[3] = {0}, one[3];
    uint32_t n = 0;
    mg_table_begin(t, "calls", "driver calls by kind (GT-Pin, figure 3a)");
    MG_TABLE_COLUMNS(t, {"program", MG_COL_TEXT}, {"calls", MG_COL_COUNT});
    for (int i = 0; i < 3; i++) mg_table_column(t, kinds[i], MG_COL_PERCENT, "%");
    for (uint32_t i = 0; i < o->programs.n; i++) {
        if (!has_calls(&o->programs.at[i])) continue;
        mg_table_row(t);
        mg_table_text(t, o->programs.at[i].name);
        mg_table_u64(t, o->programs.at[i].calls.n);
        call_shares(&o->programs.at[i], one);
        for (int k = 0; k < 3; k++) mg_table_f64(t, one[k]), sum[k] += one[k];
        n++;
    }
    note_missing(o, t, has_calls, "margay run -t timeline");
    if (!n) return;
    mg_table_note(t,
                  "mean: %.1f %% kernel, %.1f %% synchronisation; GT-Pin's programs: about 15 %% (4.5 to 76.5), 6.8 %% "
                  "(at most 25.7)",
                  sum[0] / n, sum[1] / n);
    stacked(o, t, "overview-calls", "Driver calls by kind", has_calls, kinds, 3, call_shares, NULL);
}

/* ---- overhead: Ocelot's figure 5, CUDA Flux's table -------------------------------------------------------------- */

static bool has_costs(const struct program *p)
{
    return p->costs.n != 0;
}

/* Modes in order of their first program. */
static uint32_t modes_of(const struct mg_overview *o, const char **modes, uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->programs.n; i++)
        for (uint32_t c = 0; c < o->programs.at[i].costs.n; c++) {
            uint32_t m = 0;
            while (m < n && strcmp(modes[m], o->programs.at[i].costs.at[c].mode)) m++;
            if (m == n && n < most) modes[n++] = o->programs.at[i].costs.at[c].mode;
        }
    return n;
}

static const struct cost *cost_of(const struct program *p, const char *mode)
{
    for (uint32_t c = 0; c < p->costs.n; c++)
        if (!strcmp(p->costs.at[c].mode, mode)) return &p->costs.at[c];
    return NULL;
}

enum { MOST_MODES = 8 };

static void overhead_chart(const struct mg_overview *o, struct mg_table *t)
{
    const char *modes[MOST_MODES], **labels = mg_xcalloc(o->programs.n + 1, sizeof *labels);
    uint32_t n_modes = modes_of(o, modes, MOST_MODES), n = 0;
    double *values = mg_xcalloc((size_t)o->programs.n * n_modes + 1, sizeof *values);
    struct mg_buf svg = MG_BUF_INIT;
    for (uint32_t i = 0; i < o->programs.n; i++) {
        const struct program *p = &o->programs.at[i];
        if (!has_costs(p)) continue;
        labels[n] = p->name;
        for (uint32_t m = 0; m < n_modes; m++) {
            const struct cost *c = cost_of(p, modes[m]);
            values[(size_t)n * n_modes + m] = c ? c->ratio : NAN;
        }
        n++;
    }
    if (n) {
        mg_chart_grouped(&svg, "Kernel time, instrumented over native", labels, n, modes, n_modes, values, 1);
        put_chart(t, "overview-overhead", "Kernel time, instrumented over native", &svg);
    }
    free(labels);
    free(values);
}

static void overhead_table(const struct mg_overview *o, struct mg_table *t)
{
    bool host = false;
    mg_table_begin(t, "overhead", "kernel time, instrumented over native (GPU Ocelot, figure 5)");
    MG_TABLE_COLUMNS(t, {"program", MG_COL_TEXT}, {"mode", MG_COL_TEXT}, {"ratio", MG_COL_REAL}, {"from", MG_COL_REAL},
                     {"to", MG_COL_REAL}, {"native", MG_COL_TIME_NS}, {"compared", MG_COL_COUNT},
                     {"launches", MG_COL_COUNT});
    for (uint32_t i = 0; i < o->programs.n; i++)
        for (uint32_t k = 0; k < o->programs.at[i].costs.n; k++) {
            const struct cost *c = &o->programs.at[i].costs.at[k];
            mg_table_row(t);
            mg_table_text(t, o->programs.at[i].name);
            mg_table_text(t, c->mode);
            mg_table_f64(t, c->ratio);
            mg_table_f64(t, c->low);
            mg_table_f64(t, c->high);
            mg_table_u64(t, c->native_ns);
            mg_table_u64(t, c->compared);
            mg_table_u64(t, c->launches);
            host |= c->host_times;
        }
    note_missing(o, t, has_costs, "margay run -t TOOL --repeat 40, or runs with -t timeline and with -t TOOL");
    mg_table_note(t, "from, to: 95 %% intervals of the kernels' medians; none where a kernel has fewer than six times");
    if (host) mg_table_note(t, "without a GPU times are the host's");
    overhead_chart(o, t);
}

static void slowdown_row(struct mg_table *t, const char *mode, uint32_t n, double least, double mean, double geometric,
                         double most)
{
    mg_table_row(t);
    mg_table_text(t, mode);
    u64_if(t, n, n);
    mg_table_f64(t, least);
    mg_table_f64(t, mean);
    mg_table_f64(t, geometric);
    mg_table_f64(t, most);
}

static void slowdown_table(const struct mg_overview *o, struct mg_table *t)
{
    const char *modes[MOST_MODES];
    uint32_t n_modes = modes_of(o, modes, MOST_MODES);
    mg_table_begin(t, "slowdown", "the same by mode (CUDA Flux, overhead summary)");
    MG_TABLE_COLUMNS(t, {"mode", MG_COL_TEXT}, {"programs", MG_COL_COUNT}, {"min", MG_COL_REAL}, {"mean", MG_COL_REAL},
                     {"geometric mean", MG_COL_REAL}, {"max", MG_COL_REAL});
    for (uint32_t m = 0; m < n_modes; m++) {
        double least = INFINITY, sum = 0, logs = 0, most = 0;
        uint32_t n = 0;
        for (uint32_t i = 0; i < o->programs.n; i++) {
            const struct cost *c = cost_of(&o->programs.at[i], modes[m]);
            if (!c) continue;
            n++, sum += c->ratio, logs += log(c->ratio);
            least = fmin(least, c->ratio), most = fmax(most, c->ratio);
        }
        slowdown_row(t, modes[m], n, least, sum / n, exp(logs / n), most);
    }
    mg_table_empty(t, "no profile here has it (overhead says what it takes)");
    if (!n_modes) return;
    slowdown_row(t, "paper: flux_full, Tesla K20", 0, 1.10, 24.22, NAN, 202.44);
    slowdown_row(t, "paper: flux_full, Titan Xp", 0, 0.76, 55.92, NAN, 244.25);
    slowdown_row(t, "paper: nvprof, 8 metrics, Tesla K20", 0, 17.63, 241.88, NAN, 2378.64);
    slowdown_row(t, "paper: nvprof, 8 metrics, Titan Xp", 0, 14.76, 363.59, NAN, 2966.64);
    slowdown_row(t, "paper: Ocelot, basic blocks", 0, NAN, NAN, NAN, 5.5);
    slowdown_row(t, "paper: Ocelot, clock cycles", 0, NAN, NAN, NAN, 1.3);
}

/* ---- metrics: the eight that nvprof has -------------------------------------------------------------------------- */

static void metric_values(const struct program *p, double *values)
{
    for (int i = 0; i < METRIC_COUNT; i++) values[i] = (double)p->work.metrics[i];
}

static void metrics_table(const struct mg_overview *o, struct mg_table *t)
{
    mg_table_begin(t, "metrics", "thread instructions by nvprof's eight instruction metrics (CUDA Flux)");
    mg_table_column(t, "program", MG_COL_TEXT, NULL);
    for (int i = 0; i < METRIC_COUNT; i++) mg_table_column(t, metric_names[i], MG_COL_COUNT, NULL);
    for (uint32_t i = 0; i < o->programs.n; i++) {
        const struct program *p = &o->programs.at[i];
        if (!has_work(p)) continue;
        mg_table_row(t);
        mg_table_text(t, p->name);
        for (int k = 0; k < METRIC_COUNT; k++) mg_table_u64(t, p->work.metrics[k]);
    }
    note_missing(o, t, has_work, "margay run -t blocks");
    mg_table_note(t, "of PTX, guarded-off ones too; moves, parameters, f16 and matrices are miscellaneous");
    stacked(o, t, "overview-metrics", "Thread instructions by nvprof's metrics", has_work, metric_names, METRIC_COUNT,
            metric_values, "");
}

/* ---- classes, widths, bytes: GT-Pin's figure 4 ------------------------------------------------------------------- */

static bool has_mix(const struct program *p)
{
    return p->mix.classes.n != 0;
}
static bool has_widths(const struct program *p)
{
    return p->mix.widths.n != 0;
}

static const char *const class_names[] = {"move", "logic", "control", "computation", "send"};
static const char *const width_names[] = {"scalar", "v2", "v4", "v8", "packed", "matrix"};

static double share_of(const struct named_sum *at, uint32_t n, const char *name)
{
    double all = 0, it = 0;
    for (uint32_t i = 0; i < n; i++) {
        all += (double)at[i].n;
        if (!strcmp(at[i].name, name)) it = (double)at[i].n;
    }
    return all > 0 ? 100 * it / all : 0;
}

static void class_shares(const struct program *p, double *values)
{
    for (size_t i = 0; i < MG_COUNT_OF(class_names); i++)
        values[i] = share_of(p->mix.classes.at, p->mix.classes.n, class_names[i]);
}

static void width_shares(const struct program *p, double *values)
{
    for (size_t i = 0; i < MG_COUNT_OF(width_names); i++)
        values[i] = share_of(p->mix.widths.at, p->mix.widths.n, width_names[i]);
}

/* Shares of programs, one column a series, and their means as the last row. */
static void shares_table(const struct mg_overview *o, struct mg_table *t, has_fn has, const char *const *series,
                         uint32_t n_series, void (*values_of)(const struct program *p, double *values))
{
    double one[METRIC_COUNT], sum[METRIC_COUNT] = {0};
    uint32_t n = 0;
    mg_table_column(t, "program", MG_COL_TEXT, NULL);
    for (uint32_t s = 0; s < n_series; s++) mg_table_column(t, series[s], MG_COL_PERCENT, "%");
    for (uint32_t i = 0; i < o->programs.n; i++) {
        if (!has(&o->programs.at[i])) continue;
        values_of(&o->programs.at[i], one);
        mg_table_row(t);
        mg_table_text(t, o->programs.at[i].name);
        for (uint32_t s = 0; s < n_series; s++) mg_table_f64(t, one[s]), sum[s] += one[s];
        n++;
    }
    if (!n) return;
    mg_table_row(t);
    mg_table_text(t, "(mean)");
    for (uint32_t s = 0; s < n_series; s++) mg_table_f64(t, sum[s] / n);
}

static void classes_table(const struct mg_overview *o, struct mg_table *t)
{
    mg_table_begin(t, "classes", "thread instructions by class (GT-Pin, figure 4a)");
    shares_table(o, t, has_mix, class_names, MG_COUNT_OF(class_names), class_shares);
    note_missing(o, t, has_mix, "margay run -t opcodes");
    mg_table_note(t, "GT-Pin's programs: 36.2 %% computation, 7.3 %% control, 5.1 %% send (of vectors)");
    stacked(o, t, "overview-classes", "Thread instructions by class", has_mix, class_names, MG_COUNT_OF(class_names),
            class_shares, NULL);
}

static void widths_table(const struct mg_overview *o, struct mg_table *t)
{
    mg_table_begin(t, "widths", "thread instructions by operation width (GT-Pin, figure 4b)");
    shares_table(o, t, has_widths, width_names, MG_COUNT_OF(width_names), width_shares);
    note_missing(o, t, has_widths, "margay run -t opcodes");
    stacked(o, t, "overview-widths", "Thread instructions by operation width", has_widths, width_names,
            MG_COUNT_OF(width_names), width_shares, NULL);
}

static bool has_moved(const struct program *p)
{
    return p->moved.any;
}

static uint64_t read_by(const struct program *p)
{
    return p->moved.read;
}
static uint64_t written_by(const struct program *p)
{
    return p->moved.written;
}

static void bytes_table(const struct mg_overview *o, struct mg_table *t)
{
    mg_table_begin(t, "bytes", "bytes read and written, all memory but shared (GT-Pin, figure 4c)");
    MG_TABLE_COLUMNS(t, {"program", MG_COL_TEXT}, {"read", MG_COL_BYTES}, {"written", MG_COL_BYTES});
    for (uint32_t i = 0; i < o->programs.n; i++) {
        if (!has_moved(&o->programs.at[i])) continue;
        mg_table_row(t);
        mg_table_text(t, o->programs.at[i].name);
        mg_table_u64(t, o->programs.at[i].moved.read);
        mg_table_u64(t, o->programs.at[i].moved.written);
    }
    note_missing(o, t, has_moved, "margay run -t memory");
    log_bars(o, t, "overview-read", "Bytes read (bars: logarithmic)", has_moved, read_by);
    log_bars(o, t, "overview-written", "Bytes written (bars: logarithmic)", has_moved, written_by);
}

/* ---- load: Ocelot's figure 6 ------------------------------------------------------------------------------------- */

static bool has_load(const struct program *p)
{
    return p->load.kernel != NULL;
}

static void load_chart(const struct mg_overview *o, struct mg_table *t)
{
    const char **labels = mg_xcalloc(o->programs.n + 1, sizeof *labels);
    uint32_t n = 0, sms = 0;
    struct mg_buf svg = MG_BUF_INIT;
    for (uint32_t i = 0; i < o->programs.n; i++) sms = MG_MAX(sms, o->programs.at[i].load.n_sms);
    double *values = mg_xcalloc((size_t)o->programs.n * sms + 1, sizeof *values);
    for (uint32_t i = 0; i < o->programs.n && sms; i++) {
        const struct load *l = &o->programs.at[i].load;
        if (!l->n_sms) continue;
        labels[n] = o->programs.at[i].name;
        memcpy(values + (size_t)n++ * sms, l->busy, l->n_sms * sizeof *values);
    }
    if (n) {
        mg_chart_heat(&svg, "Time each multiprocessor was busy, over the kernel's time", labels, n, sms,
                      "multiprocessor", values);
        put_chart(t, "overview-load", "Load of multiprocessors", &svg);
    }
    free(labels);
    free(values);
}

static void load_table(const struct mg_overview *o, struct mg_table *t)
{
    mg_table_begin(t, "load", "imbalance in each program's first kernel (GPU Ocelot, figure 6)");
    MG_TABLE_COLUMNS(t, {"program", MG_COL_TEXT}, {"share", MG_COL_PERCENT, "%"}, {"launches", MG_COL_COUNT},
                     {"ctas", MG_COL_COUNT}, {"CTA imbalance", MG_COL_REAL}, {"SM imbalance", MG_COL_REAL},
                     {"SMs", MG_COL_COUNT}, {"idle SMs", MG_COL_COUNT}, {"mean busy", MG_COL_PERCENT, "%"},
                     {"kernel name", MG_COL_TEXT});
    for (uint32_t i = 0; i < o->programs.n; i++) {
        const struct load *l = &o->programs.at[i].load;
        uint64_t idle = 0;
        double busy = 0;
        if (!has_load(&o->programs.at[i])) continue;
        for (uint32_t s = 0; s < l->n_sms; s++) idle += l->busy[s] <= 0, busy += l->busy[s];
        mg_table_row(t);
        mg_table_text(t, o->programs.at[i].name);
        mg_table_f64(t, 100 * l->share);
        mg_table_u64(t, l->launches);
        mg_table_u64(t, l->ctas);
        mg_table_f64(t, l->cta_imbalance);
        mg_table_f64(t, l->sm_imbalance);
        u64_if(t, l->n_sms, l->n_sms);
        u64_if(t, l->n_sms, idle);
        f64_if(t, l->n_sms, l->n_sms ? 100 * busy / l->n_sms : 0);
        mg_table_text(t, l->kernel);
    }
    note_missing(o, t, has_load, "margay run -t ctas -t clock");
    mg_table_note(t, "CTA imbalance: instructions of the longest CTA over the mean, exact; SM imbalance: time of the "
                     "busiest over the mean, GPUs only");
    load_chart(o, t);
}

/* ---- steps: Ocelot's figure 9 ------------------------------------------------------------------------------------ */

static bool has_steps(const struct program *p)
{
    return p->has_steps;
}

static void step_shares(const struct program *p, double *values)
{
    double all = 0;
    for (int s = 0; s < STEP_COUNT; s++) all += (double)p->steps[s];
    for (int s = 0; s < STEP_COUNT; s++) values[s] = all > 0 ? 100 * (double)p->steps[s] / all : 0;
}

static void steps_table(const struct mg_overview *o, struct mg_table *t)
{
    mg_table_begin(t, "steps", "time of instrumenting by step, and of kernels (GPU Ocelot, figure 9)");
    shares_table(o, t, has_steps, step_names, STEP_COUNT, step_shares);
    note_missing(o, t, has_steps, "margay run --stats");
    mg_table_note(t, "GPU Ocelot, mri-fhd: 14.6 %% of the time is instrumentation, less than parsing or emitting");
    stacked(o, t, "overview-steps", "Time by step, per cent of all steps and the kernels", has_steps, step_names,
            STEP_COUNT, step_shares, NULL);
}

void overview_tables(const struct mg_overview *o, struct mg_table *t)
{
    static void (*const all[])(const struct mg_overview *o, struct mg_table *t) = {
        programs_table, totals_table, calls_table, overhead_table, slowdown_table, metrics_table,
        classes_table,  widths_table, bytes_table, load_table,     steps_table,
    };
    for (size_t i = 0; i < MG_COUNT_OF(all); i++) all[i](o, t);
}
