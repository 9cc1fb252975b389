/* Counts of CTAs: from profiles and CSV files into a selection, and what is printed of it. */
#include "study/subset_ctas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

/* ---- profile ------------------------------------------------------------------------------------------- */

/* The tool's cells of one launch: of each of n_slots CTAs its instructions, then its entries of each loop. */
struct cells {
    const struct mg_plaunch *l;
    const struct mg_pregion *r;
    const uint64_t *at;
    uint32_t n_slots, n_loops, n, step;
    double insts;
};

/* False: these are not cells of the tool ctas. */
static bool read_cells(const struct mg_recording *p, const struct mg_plaunch_cells *c, struct cells *out)
{
    const struct mg_pregion *r = &p->regions[c->region];
    const struct mg_plaunch *l = NULL;
    if (strcmp(p->uses[r->use].name, "ctas") || !r->n_sites || r->reason) return false;
    for (uint64_t i = 0; i < p->n_launches && !l; i++)
        if (p->launches[i].id == c->launch) l = &p->launches[i];
    uint32_t loops = r->sites[0].note, slots = r->sites[0].n_cells / (1 + loops);
    if (!l || !l->complete || l->repeat || !slots || r->sites[0].cell + r->sites[0].n_cells > r->n_cells) return false;
    uint64_t ctas = (uint64_t)mg_launch_ctas(l), step = 1;
    while ((ctas + step - 1) / step > slots) step *= 2;
    *out = (struct cells){.l = l,
                          .r = r,
                          .at = c->cells + r->sites[0].cell,
                          .n_slots = slots,
                          .n_loops = loops,
                          .n = (uint32_t)((ctas + step - 1) / step),
                          .step = (uint32_t)step};
    for (uint32_t i = 0; i < out->n; i++) out->insts += (double)out->at[i];
    return true;
}

static enum mg_err find_cells(const struct mg_recording *p, const char *dir, uint64_t launch, struct cells *found,
                              struct mg_diag *d)
{
    struct cells c;
    *found = (struct cells){0};
    for (uint64_t i = 0; i < p->n_launch_cells; i++) {
        const struct mg_plaunch_cells *x = &p->launch_cells[i];
        bool wanted = launch == UINT64_MAX || x->launch == launch;
        if (wanted && read_cells(p, x, &c) && (!found->l || c.insts * c.step > found->insts * found->step)) *found = c;
    }
    if (found->l && found->insts > 0) return MG_ERR_OK;
    if (launch == UINT64_MAX)
        return mg_diag_err(d, MG_ERR_INPUT, "%s: it has no counts of CTAs: run with -t ctas", dir);
    return mg_diag_err(d, MG_ERR_INPUT, "%s: launch %llu has no counts of CTAs (-t ctas)", dir,
                       (unsigned long long)launch);
}

static double *add_count(struct mg_ctas *c, const char *name)
{
    double *of = mg_arena_array(&c->arena, double, c->n + 1);
    *mg_vec_push(&c->held_out) = (struct mg_cta_count){mg_arena_printf(&c->arena, "%s", name), of};
    return of;
}

static const char *name_of_loop(struct mg_ctas *c, const struct cells *x, uint32_t loop)
{
    for (uint32_t i = 1; i < x->r->n_sites; i++) {
        const struct mg_result_site *s = &x->r->sites[i];
        if ((s->note & 255) != loop) continue;
        if (s->file && s->line) return mg_arena_printf(&c->arena, "entries of the loop at %s:%u", s->file, s->line);
        return mg_arena_printf(&c->arena, "entries of the loop at PTX line %u", s->ptx_line);
    }
    return "entries of a loop";
}

static void read_counts(struct mg_ctas *c, const struct cells *x)
{
    c->insts = mg_arena_array(&c->arena, double, c->n);
    for (uint32_t i = 0; i < c->n; i++) c->insts[i] = (double)x->at[i];
    for (uint32_t k = 1; k <= x->n_loops; k++) {
        double *of = add_count(c, name_of_loop(c, x, k)), sum = 0;
        for (uint32_t i = 0; i < c->n; i++) sum += of[i] = (double)x->at[(size_t)k * x->n_slots + i];
        if (sum <= 0) c->held_out.n--; /* nobody entered it */
    }
}

/* One interval a CTA. What SimPoint clusters is its size: the number of its instructions in powers of two to an eighth,
 * beside a dimension that all share, so that equal sizes coincide and unequal ones do not. */
static void make_vectors(struct mg_ctas *c)
{
    struct mg_vectors *v = &c->v;
    *v = (struct mg_vectors){.n = c->n, .n_launches = c->n, .time_ns = NAN};
    v->intervals = mg_arena_array(&v->arena, struct mg_interval, c->n);
    v->vectors = mg_arena_array(&v->arena, struct mg_vector, c->n);
    v->members = mg_arena_array(&v->arena, uint64_t, c->n);
    for (uint32_t i = 0; i < c->n; i++) {
        struct mg_vector *x = &v->vectors[i];
        v->members[i] = i;
        v->intervals[i] = (struct mg_interval){
            .first = i, .last = i, .member = i, .n_launches = 1, .insts = c->insts[i], .time_ns = NAN, .ctas = 1};
        v->insts += c->insts[i];
        x->keys = mg_arena_array(&v->arena, uint64_t, 1);
        x->values = mg_arena_array(&v->arena, double, 1);
        x->keys[0] = 1 + (uint64_t)round(8 * log2(c->insts[i]));
        x->n = 1;
        x->sum = x->values[0] = c->insts[i];
    }
}

enum mg_err mg_ctas_open(const char *dir, uint64_t launch, struct mg_ctas **out, struct mg_diag *d)
{
    struct mg_recording *p;
    struct cells x;
    enum mg_err err = mg_recording_open(dir, &p, d);
    if (err) return err;
    err = find_cells(p, dir, launch, &x, d);
    for (uint32_t i = 0; i < x.n && !err; i++)
        if (!x.at[i])
            err = mg_diag_err(d, MG_ERR_INPUT, "%s: launch %llu: CTA %u has no instructions", dir,
                              (unsigned long long)x.l->id, i * x.step);
    if (!err) {
        struct mg_ctas *c = mg_xcalloc(1, sizeof *c);
        c->dir = mg_arena_printf(&c->arena, "%s", dir);
        c->kernel = mg_arena_printf(&c->arena, "%s", p->kernels[x.l->kernel].demangled);
        c->launch = x.l->id;
        c->grid_ctas = (uint64_t)mg_launch_ctas(x.l);
        c->n = x.n;
        c->step = x.step;
        read_counts(c, &x);
        make_vectors(c);
        *out = c;
    }
    mg_recording_free(p);
    return err;
}

void mg_ctas_free(struct mg_ctas *c)
{
    if (!c) return;
    mg_vec_release(&c->held_out);
    mg_arena_release(&c->v.arena);
    mg_arena_release(&c->arena);
    free(c);
}

enum mg_err mg_ctas_add_run(struct mg_ctas *c, const char *dir, struct mg_diag *d)
{
    struct mg_recording *p;
    struct cells x;
    enum mg_err err = mg_recording_open(dir, &p, d);
    if (err) return err;
    err = find_cells(p, dir, c->launch, &x, d);
    if (!err && ((uint64_t)mg_launch_ctas(x.l) != c->grid_ctas || x.n != c->n ||
                 strcmp(p->kernels[x.l->kernel].demangled, c->kernel)))
        err = mg_diag_err(
            d, MG_ERR_INPUT,
            "%s: launch %llu is %.80s of %.0f CTAs, %u of them counted; in %s it is %.80s of %llu, %u counted", dir,
            (unsigned long long)c->launch, p->kernels[x.l->kernel].demangled, mg_launch_ctas(x.l), x.n, c->dir,
            c->kernel, (unsigned long long)c->grid_ctas, c->n);
    if (!err) {
        double *of = add_count(c, mg_arena_printf(&c->arena, "instructions in %s", dir));
        for (uint32_t i = 0; i < c->n; i++) of[i] = (double)x.at[i];
    }
    mg_recording_free(p);
    return err;
}

/* ---- CSV ------------------------------------------------------------------------------------------------ */

enum { MOST_COLUMNS = 64 };
struct columns {
    uint32_t n, cta, launch;      /* which of them; UINT32_MAX: there is none */
    double *of[MOST_COLUMNS];     /* NULL: no count */
    uint32_t count[MOST_COLUMNS]; /* its place in held_out; UINT32_MAX: none */
};

/* Cells of a line, parted by commas; quotes around a whole cell go. */
static uint32_t split(char *line, char **cells)
{
    uint32_t n = 0;
    line[strcspn(line, "\r")] = 0;
    for (char *at = line; at && n < MOST_COLUMNS; n++) {
        bool quoted = *at == '"';
        char *end = quoted ? strchr(at + 1, '"') : NULL;
        cells[n] = at + quoted;
        at = strchr(end ? end : at, ',');
        if (at) *at++ = 0;
        if (end) *end = 0;
    }
    return n;
}

static bool read_header(struct mg_ctas *c, const char *path, char *line, struct columns *x)
{
    char *cells[MOST_COLUMNS];
    x->n = split(line, cells);
    x->cta = x->launch = UINT32_MAX;
    for (uint32_t k = 0; k < x->n; k++) {
        x->count[k] = UINT32_MAX;
        if (!strcmp(cells[k], "cta"))
            x->cta = k;
        else if (!strcmp(cells[k], "launch"))
            x->launch = k;
        else if (strcmp(cells[k], "kernel")) { /* a number or a name */
            x->of[k] = add_count(c, mg_arena_printf(&c->arena, "%s of %s", cells[k], path));
            x->count[k] = c->held_out.n - 1;
        }
    }
    return x->cta != UINT32_MAX && x->n > 1;
}

static const char *read_row(struct mg_ctas *c, struct columns *x, char *line)
{
    char *cells[MOST_COLUMNS], *end;
    uint64_t cta, launch = c->launch;
    if (split(line, cells) != x->n) return "it has not as many cells as there are columns";
    if (x->launch != UINT32_MAX && !mg_number_u64(cells[x->launch], false, 0, UINT64_MAX - 1, &launch))
        return "not the number of a launch";
    if (launch != c->launch) return NULL;
    if (!mg_number_u64(cells[x->cta], false, 0, UINT64_MAX - 1, &cta)) return "not the number of a CTA";
    if (cta >= c->grid_ctas) return "the launch has no such CTA";
    for (uint32_t k = 0; k < x->n; k++) {
        if (!x->of[k]) continue;
        double value = mg_number_plain(cells[k], &end);
        if (end == cells[k] || *end || !isfinite(value))
            x->of[k] = NULL; /* text, such as a kernel's name */
        else if (cta % c->step == 0)
            x->of[k][cta / c->step] += value;
    }
    return NULL;
}

/* Columns of text are no counts. */
static void drop_text(struct mg_ctas *c, const struct columns *x)
{
    for (uint32_t k = x->n; k-- > 0;)
        if (x->count[k] != UINT32_MAX && !x->of[k]) {
            memmove(c->held_out.at + x->count[k], c->held_out.at + x->count[k] + 1,
                    (c->held_out.n - 1 - x->count[k]) * sizeof *c->held_out.at);
            c->held_out.n--;
        }
}

enum mg_err mg_ctas_add_csv(struct mg_ctas *c, const char *path, const char *text, size_t bytes, struct mg_diag *d)
{
    struct columns x = {0};
    char *copy = mg_arena_printf(&c->arena, "%.*s", (int)MG_MIN(bytes, (size_t)INT32_MAX), text);
    uint32_t line = 0, before = c->held_out.n;
    const char *wrong = strlen(copy) == bytes ? NULL : "it is not text";
    for (char *at = copy, *next; at && !wrong; at = next) {
        next = strchr(at, '\n');
        if (next) *next++ = 0;
        line++;
        if (!*at || *at == '#' || *at == '\r') continue;
        if (x.n)
            wrong = read_row(c, &x, at);
        else if (!read_header(c, path, at, &x))
            wrong = "wants a line of column names, one of them cta, and another";
    }
    if (!wrong) drop_text(c, &x);
    if (!wrong && c->held_out.n == before) wrong = "it has no column of numbers beside cta";
    return wrong ? mg_diag_add(d, MG_ERR_INPUT, MG_SEV_ERROR, path, line, 0, NULL, "%s", wrong) : MG_ERR_OK;
}

/* ---- judging, printing ------------------------------------------------------------------------------------- */

static struct mg_judged judge(const struct mg_ctas *c, const struct mg_subset *s, const double *of)
{
    struct mg_subset_program run = {.n_launches = c->n};
    run.launches = mg_xcalloc(c->n, sizeof *run.launches);
    for (uint32_t i = 0; i < c->n; i++) run.launches[i] = (struct mg_subset_launch){.time_ns = of[i], .insts = NAN};
    struct mg_judged x = mg_subset_judge(s, &run);
    free(run.launches);
    return x;
}

static bool holds(const struct mg_judged *x)
{
    double truth = 100 * (x->measured_ns / x->projected_ns - 1);
    return x->low_pct <= truth + 1e-9 && truth <= x->high_pct + 1e-9;
}

static void judge_json(const struct mg_cta_count *of, const struct mg_judged *x, struct mg_json *j)
{
    bool known = isfinite(x->low_pct) && isfinite(x->high_pct);
    mg_json_obj(j);
    mg_json_key_str(j, "count", of->name);
    mg_json_key_f64(j, "measured", x->measured_ns);
    mg_json_key_f64(j, "projected", x->projected_ns);
    mg_json_key_f64(j, "error_pct", x->error_pct);
    mg_json_key_f64(j, "low_pct", x->low_pct);
    mg_json_key_f64(j, "high_pct", x->high_pct);
    mg_json_key(j, "holds");
    if (known)
        mg_json_bool(j, holds(x));
    else
        mg_json_null(j);
    mg_json_end(j, '}');
}

void mg_ctas_json(const struct mg_ctas *c, const struct mg_subset *s, struct mg_buf *out)
{
    struct mg_json j;
    struct mg_speedup fast = mg_subset_speedup(s);
    mg_json_init(&j, out, 0);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "margay_json", 1);
    mg_json_key_str(&j, "method", s->method);
    mg_json_key_u64(&j, "launch", c->launch);
    mg_json_key_str(&j, "kernel", c->kernel);
    mg_json_key_u64(&j, "ctas", c->grid_ctas);
    mg_json_key_u64(&j, "counted", c->n);
    mg_json_key_u64(&j, "strata", s->clusters);
    mg_json_key(&j, "selected");
    mg_json_arr(&j);
    for (uint32_t i = 0; i < s->n_picks; i++) {
        mg_json_obj(&j);
        mg_json_key_u64(&j, "cta", (uint64_t)s->picks[i].interval * c->step);
        mg_json_key_f64(&j, "times", s->picks[i].times);
        mg_json_key_f64(&j, "weight", mg_pick_weight(s, &s->picks[i]));
        mg_json_end(&j, '}');
    }
    mg_json_end(&j, ']');
    mg_json_key(&j, "speedup");
    mg_json_obj(&j);
    mg_json_key_f64(&j, "instructions", fast.instructions);
    mg_json_key_f64(&j, "ctas", fast.launches);
    mg_json_end(&j, '}');
    mg_json_key(&j, "judges");
    mg_json_arr(&j);
    for (uint32_t k = 0; k < c->held_out.n; k++) {
        struct mg_judged x = judge(c, s, c->held_out.at[k].of);
        judge_json(&c->held_out.at[k], &x, &j);
    }
    mg_json_end(&j, ']');
    mg_json_key_u64(&j, "seed", s->seed);
    mg_json_end(&j, '}');
    mg_buf_addc(out, '\n');
}

void mg_ctas_csv(const struct mg_ctas *c, const struct mg_subset *s, struct mg_buf *out)
{
    mg_buf_printf(out, "launch,cta,times,weight\n");
    for (uint32_t i = 0; i < s->n_picks; i++)
        mg_buf_printf(out, "%llu,%llu,%.17g,%.17g\n", (unsigned long long)c->launch,
                      (unsigned long long)s->picks[i].interval * c->step, s->picks[i].times,
                      mg_pick_weight(s, &s->picks[i]));
}

void mg_ctas_text(const struct mg_ctas *c, const struct mg_subset *s, struct mg_buf *out)
{
    struct mg_speedup fast = mg_subset_speedup(s);
    mg_buf_printf(out, "launch %llu, %.120s: %llu CTAs", (unsigned long long)c->launch, c->kernel,
                  (unsigned long long)c->grid_ctas);
    if (c->step > 1)
        mg_buf_printf(out, ", every %uth counted (-t ctas,ctas=8192 counts more); what follows is of these", c->step);
    mg_buf_printf(
        out, "\n%s: %u CTAs from %u strata stand for all: %.1f times fewer CTAs, %.1f times fewer instructions\n\n",
        s->method, s->n_picks, s->clusters, fast.launches, fast.instructions);
    mg_buf_printf(out, "    cta     times   share\n");
    for (uint32_t i = 0; i < s->n_picks; i++)
        mg_buf_printf(out, "%7llu %9.2f %5.1f %%\n", (unsigned long long)s->picks[i].interval * c->step,
                      s->picks[i].times, 100 * mg_pick_weight(s, &s->picks[i]));
    if (!c->held_out.n) mg_buf_printf(out, "\nno count was held out: name a CSV by cta, or another run with -t ctas\n");
    for (uint32_t k = 0; k < c->held_out.n; k++) {
        struct mg_judged x = judge(c, s, c->held_out.at[k].of);
        mg_buf_printf(out, "%s%.100s: %.10g, projected %.10g", k ? "" : "\nheld out, error:\n", c->held_out.at[k].name,
                      x.measured_ns, x.projected_ns);
        if (isfinite(x.error_pct)) mg_buf_printf(out, ", error %.2f %%", x.error_pct);
        if (isfinite(x.low_pct) && isfinite(x.high_pct))
            mg_buf_printf(out, " (95 %% interval %+.2f to %+.2f %%%s)", x.low_pct, x.high_pct,
                          holds(&x) ? "" : ", which does not hold");
        mg_buf_addc(out, '\n');
    }
}
