/* Selections for other programs, and their results back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/vec.h"
#include "study/subset_report.h"

void mg_subset_simpoints(const struct mg_subset *s, struct mg_buf *out)
{
    for (uint32_t i = 0; i < s->n_picks; i++)
        mg_buf_printf(out, "%u %u\n", s->picks[i].interval, s->label ? s->label[s->picks[i].interval] : i);
}

void mg_subset_weights(const struct mg_subset *s, struct mg_buf *out)
{
    for (uint32_t i = 0; i < s->n_picks; i++)
        mg_buf_printf(out, "%.17g %u\n", mg_pick_weight(s, &s->picks[i]),
                      s->label ? s->label[s->picks[i].interval] : i);
}

bool mg_subset_labels(const struct mg_subset *s, struct mg_buf *out)
{
    for (uint32_t i = 0; s->label && i < s->v->n; i++) mg_buf_printf(out, "%u\n", s->label[i]);
    return s->label != NULL;
}

void mg_subset_launches(const struct mg_subset_view *w, struct mg_buf *out)
{
    const struct mg_subset_program *p = w->program;
    uint64_t *number = mg_xcalloc(p->n_launches + 1, sizeof *number),
             *plain = mg_xcalloc(p->n_launches + 1, sizeof *plain);
    for (uint64_t i = 0, all = 0, old = 0; i < p->n_launches; i++) {
        if (i && p->launches[i].l->process != p->launches[i - 1].l->process) all = old = 0;
        number[i] = ++all;
        if (p->launches[i].plain_call) plain[i] = ++old;
    }
    mg_buf_adds(out, "launch,pid,number,cuLaunchKernel,weight,times,kernel\r\n");
    for (uint32_t i = 0; i < w->s->n_picks; i++) {
        const struct mg_interval *x = &w->s->v->intervals[w->s->picks[i].interval];
        for (uint64_t j = x->member; j < x->member + x->n_launches; j++) {
            uint64_t at = w->s->v->members[j];
            const struct mg_plaunch *l = p->launches[at].l;
            mg_buf_printf(out, "%llu,%u,%llu,", (unsigned long long)l->id, p->p->processes[l->process].pid,
                          (unsigned long long)number[at]);
            if (plain[at]) mg_buf_addu(out, plain[at]);
            mg_buf_printf(out, ",%.17g,%.17g,%s\r\n", mg_pick_weight(w->s, &w->s->picks[i]), w->s->picks[i].times,
                          p->p->kernels[l->kernel].name);
        }
    }
    free(number);
    free(plain);
}

/* ---- results of a simulator -------------------------------------------------------------------------------- */

enum { MOST_COLUMNS = 64 };
struct results {
    char *names[MOST_COLUMNS]; /* NULL: the column of launches */
    uint32_t n;
    bool numbers; /* launches are numbered from 1, as a tracer counts them, not as in the profile */
    double *sums; /* of each column, over members; [n_intervals * n] of picks */
    bool *seen;   /* of each launch of the program */
};

/* The next cell of a line; false: the line has ended. */
static bool next_cell(char **at, char **cell)
{
    if (!*at) return false;
    *cell = *at;
    char *comma = strchr(*at, ',');
    if (comma) *comma = 0;
    *at = comma ? comma + 1 : NULL;
    while (**cell == ' ') ++*cell;
    for (size_t n = strlen(*cell); n && strchr(" \r\"", (*cell)[n - 1]); n--) (*cell)[n - 1] = 0;
    if (**cell == '"') ++*cell;
    return true;
}

static bool read_header(char *line, struct results *r)
{
    char *cell;
    bool found = false;
    while (next_cell(&line, &cell)) {
        if (r->n == MOST_COLUMNS) return false;
        bool number = !strcmp(cell, "number"), launch = number || !strcmp(cell, "launch");
        if (launch && found) return false;
        found |= launch;
        r->numbers |= number;
        r->names[r->n++] = launch ? NULL : cell;
    }
    return found && r->n > 1;
}

/* Numbers count in a process: of one alone they tell launches apart. */
static bool one_process(const struct mg_subset_program *p)
{
    return !p->n_launches || p->launches[0].l->process == p->launches[p->n_launches - 1].l->process;
}

static uint64_t launch_of(const struct mg_subset_program *p, const struct results *r, uint64_t cell)
{
    if (!r->numbers) return cell;
    return cell && cell <= p->n_launches ? p->launches[cell - 1].l->id : UINT64_MAX;
}

/* Which pick the launch is of; UINT32_MAX: none. */
static uint32_t pick_of(const struct mg_subset_view *w, uint64_t launch, uint64_t *member)
{
    for (uint32_t i = 0; i < w->s->n_picks; i++) {
        const struct mg_interval *x = &w->s->v->intervals[w->s->picks[i].interval];
        for (uint64_t j = x->member; j < x->member + x->n_launches; j++)
            if (w->program->launches[w->s->v->members[j]].l->id == launch) {
                *member = w->s->v->members[j];
                return i;
            }
    }
    return UINT32_MAX;
}

static const char *read_row(const struct mg_subset_view *w, char *line, struct results *r)
{
    double values[MOST_COLUMNS];
    char *cell, *end;
    uint64_t launch = UINT64_MAX, member = 0;
    uint32_t n = 0;
    for (; next_cell(&line, &cell); n++) {
        if (n == r->n) return "more cells than columns";
        if (!r->names[n] && !mg_number_u64(cell, false, 0, UINT64_MAX - 1, &launch)) return "not a launch number";
        values[n] = r->names[n] ? mg_number_plain(cell, &end) : 0;
        if (r->names[n] && (end == cell || *end || !isfinite(values[n]))) return "not a number";
        if (r->names[n] && values[n] < 0) return "below 0: results have to add up";
    }
    if (n < r->n) return "fewer cells than columns";
    uint32_t pick = pick_of(w, launch_of(w->program, r, launch), &member);
    if (pick == UINT32_MAX) return NULL; /* more was simulated than was selected */
    if (r->seen[member]) return "this launch stood above already";
    r->seen[member] = true;
    for (uint32_t c = 0; c < r->n; c++) r->sums[(size_t)pick * r->n + c] += values[c];
    return NULL;
}

static enum mg_err read_results(const struct mg_subset_view *w, char *text, const char *path, struct results *r,
                                struct mg_diag *d)
{
    uint32_t line = 0;
    for (char *at = text, *next; at; at = next) {
        next = strchr(at, '\n');
        if (next) *next++ = 0;
        line++;
        if (!*at || *at == '#' || *at == '\r') continue;
        if (!r->n) {
            if (!read_header(at, r))
                return mg_diag_add(d, MG_ERR_INPUT, MG_SEV_ERROR, path, line, 0, NULL,
                                   "wants a line of column names, one of them launch or number (64 at most)");
            if (r->numbers && !one_process(w->program))
                return mg_diag_err(d, MG_ERR_INPUT,
                                   "%s: numbers count in each process and this program has several: give launch", path);
            r->sums = mg_xcalloc((size_t)w->s->n_picks * r->n, sizeof *r->sums);
            continue;
        }
        const char *wrong = read_row(w, at, r);
        if (wrong) return mg_diag_add(d, MG_ERR_INPUT, MG_SEV_ERROR, path, line, 0, NULL, "%s", wrong);
    }
    return r->n ? MG_ERR_OK : mg_diag_err(d, MG_ERR_INPUT, "%s: it is empty", path);
}

/* Every selected launch has a result. */
static enum mg_err check_complete(const struct mg_subset_view *w, const struct results *r, const char *path,
                                  struct mg_diag *d)
{
    for (uint32_t i = 0; i < w->s->n_picks; i++) {
        const struct mg_interval *x = &w->s->v->intervals[w->s->picks[i].interval];
        for (uint64_t j = x->member; j < x->member + x->n_launches; j++)
            if (!r->seen[w->s->v->members[j]])
                return mg_diag_err(d, MG_ERR_INPUT, "%s: it has no result of launch %llu, which was selected", path,
                                   (unsigned long long)w->program->launches[w->s->v->members[j]].l->id);
    }
    return MG_ERR_OK;
}

static void print_projection(const struct mg_subset_view *w, const struct results *r, bool json, struct mg_buf *out)
{
    struct mg_json j;
    mg_json_init(&j, out, 0);
    if (json) {
        mg_json_obj(&j);
        mg_json_key_u64(&j, "margay_json", 1);
        mg_json_key(&j, "projected");
        mg_json_arr(&j);
    }
    for (uint32_t c = 0; c < r->n; c++) {
        double total = 0, simulated = 0;
        if (!r->names[c]) continue;
        for (uint32_t i = 0; i < w->s->n_picks; i++) {
            total += w->s->picks[i].times * r->sums[(size_t)i * r->n + c];
            simulated += r->sums[(size_t)i * r->n + c];
        }
        if (!json) {
            mg_buf_printf(out, "%-24.60s %.10g for the program, %.10g simulated, %.6g per thread instruction\n",
                          r->names[c], total, simulated, total / w->s->v->insts);
            continue;
        }
        mg_json_obj(&j);
        mg_json_key_str(&j, "column", r->names[c]);
        mg_json_key_f64(&j, "total", total);
        mg_json_key_f64(&j, "simulated", simulated);
        mg_json_key_f64(&j, "per_instruction", total / w->s->v->insts);
        mg_json_end(&j, '}');
    }
    if (!json) return;
    mg_json_end(&j, ']');
    mg_json_end(&j, '}');
    mg_buf_addc(out, '\n');
}

enum mg_err mg_subset_project(const struct mg_subset_view *w, const char *text, size_t bytes, const char *path,
                              bool json, struct mg_buf *out, struct mg_diag *d)
{
    struct results r = {.seen = mg_xcalloc(w->program->n_launches + 1, sizeof *r.seen)};
    char *copy = mg_xmalloc(bytes + 1);
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    enum mg_err err = strlen(copy) != bytes ? mg_diag_err(d, MG_ERR_INPUT, "%s: it is not text", path) : MG_ERR_OK;
    if (!err) err = read_results(w, copy, path, &r, d);
    if (!err) err = check_complete(w, &r, path, d);
    if (!err) print_projection(w, &r, json, out);
    free(copy);
    free(r.seen);
    free(r.sums);
    return err;
}
