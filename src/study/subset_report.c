/* What the study of subsets prints. */
#include "study/subset_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NOISIER 2 /* chance gives a sample of twenty this ratio in fewer than one run of a hundred */
static const double thresholds[] = {.5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; /* GT-Pin's figure 7 */

struct summary {
    struct mg_judged in_sample, held_out;
}; /* held_out: mean error of the judges, interval of the first */

static struct summary summarise(const struct mg_subset_view *w)
{
    struct summary m = {{NAN, NAN, NAN, NAN, NAN, NAN}, {NAN, NAN, NAN, NAN, NAN, NAN}};
    double sum = 0;
    if (w->program) m.in_sample = mg_subset_judge(w->s, w->program);
    for (uint32_t i = w->n_judges; i-- > 0;) {
        m.held_out = mg_subset_judge(w->s, w->judges[i]);
        sum += m.held_out.error_pct;
    }
    m.held_out.error_pct = w->n_judges ? sum / w->n_judges : NAN;
    return m;
}

static const char *device_of(const struct mg_subset_program *p)
{
    return p->p->n_processes ? p->p->processes[0].device_name : NULL;
}

static uint64_t launch_id(const struct mg_subset_view *w, uint64_t ix)
{
    return w->program ? w->program->launches[ix].l->id : ix;
}

static const char *times_text(const struct mg_subset_program *p)
{
    if (!p || !p->n_timed) return NULL;
    return p->n_timed < p->n_launches ? "incomplete" : p->native_times ? "native" : "instrumented";
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static void add_range(struct mg_json *j, double low, double high)
{
    mg_json_arr(j);
    if (isfinite(low))
        mg_json_f64(j, low);
    else
        mg_json_null(j);
    if (isfinite(high))
        mg_json_f64(j, high);
    else
        mg_json_null(j);
    mg_json_end(j, ']');
}

static void add_speedup(struct mg_json *j, struct mg_speedup x)
{
    mg_json_key(j, "speedup");
    mg_json_obj(j);
    mg_json_key_f64(j, "instructions", x.instructions);
    mg_json_key_f64(j, "launches", x.launches);
    mg_json_key_f64(j, "time", x.time);
    mg_json_end(j, '}');
}

static void add_selected(struct mg_json *j, const struct mg_subset_view *w)
{
    mg_json_key(j, "selected");
    mg_json_arr(j);
    for (uint32_t i = 0; i < w->s->n_picks; i++) {
        const struct mg_pick *p = &w->s->picks[i];
        const struct mg_interval *x = &w->s->v->intervals[p->interval];
        mg_json_obj(j);
        mg_json_key_u64(j, "launch", launch_id(w, x->first));
        mg_json_key(j, "launches");
        mg_json_arr(j);
        mg_json_u64(j, launch_id(w, x->first));
        mg_json_u64(j, launch_id(w, x->last));
        mg_json_end(j, ']');
        mg_json_key_f64(j, "weight", mg_pick_weight(w->s, p));
        mg_json_key_f64(j, "times", p->times);
        mg_json_key_str(j, "kernel", w->program ? w->program->p->kernels[x->kernel].demangled : NULL);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void add_judges(struct mg_json *j, const struct mg_subset_view *w)
{
    mg_json_key(j, "judges");
    mg_json_arr(j);
    for (uint32_t i = 0; i < w->n_judges; i++) {
        struct mg_judged x = mg_subset_judge(w->s, w->judges[i]);
        double truth = 100 * (x.measured_ns / x.projected_ns - 1);
        mg_json_obj(j);
        mg_json_key_str(j, "dir", w->judges[i]->dir);
        mg_json_key_str(j, "device", device_of(w->judges[i]));
        mg_json_key_str(j, "times", times_text(w->judges[i]));
        mg_json_key_f64(j, "measured_ns", x.measured_ns);
        mg_json_key_f64(j, "projected_ns", x.projected_ns);
        mg_json_key_f64(j, "error_pct", x.error_pct);
        mg_json_key(j, "interval_pct");
        add_range(j, x.low_pct, x.high_pct);
        mg_json_key_f64(j, "scatter_ratio", x.scatter_ratio);
        mg_json_key(j, "holds");
        if (isnan(x.low_pct) || isnan(truth))
            mg_json_null(j);
        else
            mg_json_bool(j, x.low_pct <= truth && truth <= x.high_pct);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

void mg_subset_json(const struct mg_subset_view *w, struct mg_buf *out)
{
    struct mg_json j;
    struct summary m = summarise(w);
    const struct mg_judged *x = isnan(m.held_out.low_pct) ? &m.in_sample : &m.held_out;
    mg_json_init(&j, out, 0);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "margay_json", 1);
    mg_json_key_str(&j, "method", w->s->method);
    mg_json_key_str(&j, "interval", mg_interval_names[w->interval]);
    mg_json_key_str(&j, "features", w->s->has_features && w->program ? mg_features[w->feature].name : NULL);
    mg_json_key_u64(&j, "clusters", w->s->clusters);
    add_selected(&j, w);
    add_speedup(&j, mg_subset_speedup(w->s));
    mg_json_key(&j, "error");
    mg_json_obj(&j);
    mg_json_key_f64(&j, "in_sample_pct", m.in_sample.error_pct);
    mg_json_key_f64(&j, "held_out_pct", m.held_out.error_pct);
    mg_json_key(&j, "interval_pct");
    add_range(&j, x->low_pct, x->high_pct);
    mg_json_end(&j, '}');
    add_judges(&j, w);
    mg_json_key_u64(&j, "seed", w->s->seed);
    mg_json_key_u64(&j, "intervals", w->s->v->n);
    mg_json_key_u64(&j, "launches", w->s->v->n_launches);
    mg_json_key_u64_if(&j, "launches_without_counts", w->program,
                       w->program ? w->program->n_launches - w->program->n_counted : 0);
    mg_json_key_str(&j, "times", times_text(w->program));
    mg_json_key(&j, "bic");
    mg_json_arr(&j);
    for (uint32_t i = 0; i < w->s->n_bic; i++) mg_json_f64(&j, w->s->bic[i]);
    mg_json_end(&j, ']');
    mg_json_end(&j, '}');
    mg_buf_addc(out, '\n');
}

static void add_combination(struct mg_json *j, const struct mg_combination *c)
{
    mg_json_obj(j);
    mg_json_key_str(j, "interval", mg_interval_names[c->interval]);
    mg_json_key_str(j, "features", mg_features[c->feature].name);
    mg_json_key_u64_if(j, "clusters", !c->why_not, c->clusters);
    mg_json_key_u64_if(j, "intervals", !c->why_not, c->intervals);
    add_speedup(j, c->speedup);
    mg_json_key(j, "error");
    mg_json_obj(j);
    mg_json_key_f64(j, "in_sample_pct", c->error_pct);
    mg_json_key_f64(j, "held_out_pct", c->held_out_pct);
    mg_json_end(j, '}');
    mg_json_key_bool(j, "pareto", c->pareto);
    mg_json_key_str(j, "why_not", c->why_not);
    mg_json_end(j, '}');
}

void mg_exploration_json(const struct mg_exploration *x, struct mg_buf *out)
{
    struct mg_json j;
    mg_json_init(&j, out, 0);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "margay_json", 1);
    mg_json_key(&j, "combinations");
    mg_json_arr(&j);
    for (uint32_t i = 0; i < x->n; i++) add_combination(&j, &x->all[i]);
    mg_json_end(&j, ']');
    mg_json_key(&j, "thresholds");
    mg_json_arr(&j);
    for (size_t i = 0; i <= MG_COUNT_OF(thresholds); i++) { /* the first is the least error */
        const struct mg_combination *c = mg_exploration_best(x, i ? thresholds[i - 1] : -1);
        mg_json_obj(&j);
        mg_json_key_f64(&j, "threshold_pct", i ? thresholds[i - 1] : NAN);
        mg_json_key(&j, "chosen");
        if (c)
            add_combination(&j, c);
        else
            mg_json_null(&j);
        mg_json_end(&j, '}');
    }
    mg_json_end(&j, ']');
    mg_json_end(&j, '}');
    mg_buf_addc(out, '\n');
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void add_number(struct mg_buf *out, double v, const char *unit)
{
    if (isfinite(v))
        mg_buf_printf(out, "%.4g%s", v, unit);
    else
        mg_buf_adds(out, "not known");
}

static void add_error(struct mg_buf *out, const char *what, const struct mg_judged *x)
{
    mg_buf_printf(out, "  %-40.40s ", what);
    add_number(out, x->error_pct, " %");
    if (isfinite(x->low_pct)) mg_buf_printf(out, ", 95 %% interval %+.3g %% to %+.3g %%", x->low_pct, x->high_pct);
    if (x->scatter_ratio >= NOISIER)
        mg_buf_printf(out, "; %.1f times the scatter of any recorded run", x->scatter_ratio);
    mg_buf_addc(out, '\n');
}

void mg_subset_text(const struct mg_subset_view *w, struct mg_buf *out)
{
    struct summary m = summarise(w);
    struct mg_speedup x = mg_subset_speedup(w->s);
    mg_buf_printf(out, "%s%s%s, intervals by %s: %u of %u intervals", w->s->method,
                  w->s->has_features && w->program ? " over " : "",
                  w->s->has_features && w->program ? mg_features[w->feature].name : "", mg_interval_names[w->interval],
                  w->s->n_picks, w->s->v->n);
    mg_buf_printf(out, ", %u cluster%s\n\n  %10s  %-21s %8s  %s\n", w->s->clusters, w->s->clusters == 1 ? "" : "s",
                  "launch", "launches", "weight", "kernel");
    for (uint32_t i = 0; i < w->s->n_picks; i++) {
        const struct mg_pick *p = &w->s->picks[i];
        const struct mg_interval *v = &w->s->v->intervals[p->interval];
        char range[48];
        unsigned long long first = launch_id(w, v->first), last = launch_id(w, v->last);
        snprintf(range, sizeof range, first == last ? "%llu" : "%llu-%llu", first, last);
        mg_buf_printf(out, "  %10llu  %-21s %8.4f  %.60s\n", first, range, mg_pick_weight(w->s, p),
                      w->program ? w->program->p->kernels[v->kernel].demangled : "");
    }
    mg_buf_adds(out, "\nspeed-up: ");
    add_number(out, x.instructions, " in instructions, ");
    add_number(out, x.launches, " in launches, ");
    mg_buf_adds(out, isfinite(x.time) ? "" : "in time ");
    add_number(out, x.time, " in time");
    mg_buf_addc(out, '\n');
    if (!w->program) return;
    uint64_t without = w->program->n_launches - w->program->n_counted;
    if (without)
        mg_buf_printf(out, "%llu of %llu launches have no counts and take no part\n", (unsigned long long)without,
                      (unsigned long long)w->program->n_launches);
    mg_buf_adds(out, "error of projected time per instruction:\n");
    add_error(out, "the run that selected", &m.in_sample);
    for (uint32_t i = 0; i < w->n_judges; i++) {
        struct mg_judged judged = mg_subset_judge(w->s, w->judges[i]);
        add_error(out, w->judges[i]->dir, &judged);
    }
    const char *times = times_text(w->program);
    if (times && !strcmp(times, "instrumented"))
        mg_buf_adds(out, "Times of the run that selected are of instrumented kernels: --times DIR takes them from a "
                         "run with -t timeline.\n");
}

static void add_row(struct mg_buf *out, const struct mg_combination *c)
{
    mg_buf_printf(out, "%-12s %-12s ", mg_interval_names[c->interval], mg_features[c->feature].name);
    if (c->why_not) {
        mg_buf_printf(out, "%s\n", c->why_not);
        return;
    }
    mg_buf_printf(out, "%9u %9u %13.1f ", c->intervals, c->clusters, c->speedup.instructions);
    if (isnan(c->error_pct))
        mg_buf_printf(out, "%10s ", "-");
    else
        mg_buf_printf(out, "%10.3f ", c->error_pct);
    if (isnan(c->held_out_pct))
        mg_buf_printf(out, "%10s", "-");
    else
        mg_buf_printf(out, "%10.3f", c->held_out_pct);
    mg_buf_adds(out, c->pareto ? "  front\n" : "\n");
}

void mg_exploration_text(const struct mg_exploration *x, struct mg_buf *out)
{
    mg_buf_printf(out, "%-12s %-12s %9s %9s %13s %10s %10s\n", "interval", "features", "intervals", "selected",
                  "x instr.", "error %", "held out %");
    for (uint32_t i = 0; i < x->n; i++) add_row(out, &x->all[i]);
    mg_buf_adds(out, "\nthe smallest selection whose error on the selecting run is at most\n");
    for (size_t i = 0; i <= MG_COUNT_OF(thresholds); i++) {
        const struct mg_combination *c = mg_exploration_best(x, i ? thresholds[i - 1] : -1);
        if (i)
            mg_buf_printf(out, "%6.1f %%   ", thresholds[i - 1]);
        else
            mg_buf_adds(out, "the least  ");
        if (c)
            add_row(out, c);
        else
            mg_buf_adds(out, "none\n");
    }
}
