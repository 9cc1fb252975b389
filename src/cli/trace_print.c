#include "cli/trace_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cli/cli.h"
#include "trace/access.h"

struct printing {
    struct mg_trace_reader *r;
    const struct mg_trace_query *q;
    bool json;
    uint64_t left;
    int status;
    struct mg_buf out;
    MG_VEC(struct mg_accesses *) of; /* by file; NULL: not opened yet, or it has none */
    uint64_t damaged;
};

int mg_trace_say_damage(const struct mg_trace_cursor *c)
{
    const char *why;
    uint64_t n = mg_trace_damaged(c, &why);
    if (!n) return MG_EXIT_OK;
    fprintf(stderr, "margay: %" PRIu64 " damaged chunk%s left out; %s\n", n, n == 1 ? "" : "s", why);
    return MG_EXIT_INPUT;
}

static void end_line(struct printing *x)
{
    mg_buf_addc(&x->out, '\n');
    x->left--;
    if (x->out.n < 1 << 16) return;
    x->status = mg_cli_out(&x->out);
    mg_buf_reset(&x->out);
}

static struct mg_accesses *accesses_of(struct printing *x, const struct mg_trace_file *f)
{
    uint32_t i = 0;
    while (i < mg_trace_n_files(x->r) && mg_trace_file(x->r, i) != f) i++;
    while (x->of.n <= i) *mg_vec_push(&x->of) = NULL;
    if (!x->of.at[i] && mg_accesses_open(x->r, i, &x->of.at[i], NULL)) x->of.at[i] = NULL;
    return x->of.at[i];
}

/* Prints what a pack holds; false: it is printed as the record that it is. */
static bool print_accesses(struct printing *x, const struct mg_trace_record *rec)
{
    struct mg_accesses *a = strcmp(rec->kind->name, "trace.accesses") ? NULL : accesses_of(x, rec->file);
    const struct mg_trace_range *cta = &x->q->keys[MG_TRACE_KEY_CTA - 1];
    const bool by_cta = x->q->with_keys >> MG_TRACE_KEY_CTA & 1;
    const struct mg_trace_access *access;
    if (!a || !mg_accesses_begin_record(a, rec)) return false;
    while (x->left && !x->status && (access = mg_accesses_next(a))) {
        if (by_cta && (access->cta < cta->first || access->cta > cta->last)) continue;
        if (x->json)
            mg_trace_access_print_json(access, rec->file->pid, &x->out);
        else
            mg_trace_access_print(access, rec->file->pid, &x->out);
        end_line(x);
    }
    return true;
}

static int say_bad_accesses(const struct printing *x)
{
    int status = MG_EXIT_OK;
    for (uint32_t i = 0; i < x->of.n; i++) {
        const char *why = NULL;
        uint64_t n = x->of.at[i] ? mg_accesses_damaged(x->of.at[i], &why) : 0;
        if (!n) continue;
        fprintf(stderr, "margay: %s: %" PRIu64 " records are damaged or incomplete; %s\n", mg_trace_file(x->r, i)->path,
                n, why);
        status = MG_EXIT_INPUT;
    }
    return status;
}

/* "trace.access" is asked for by the name of the records that hold accesses. */
static char *replace_kinds(const char *kinds)
{
    static const char one[] = "trace.access";
    struct mg_buf b = MG_BUF_INIT;
    while (kinds && *kinds) {
        size_t n = strcspn(kinds, ",");
        mg_buf_printf(&b, "%s%.*s%s", b.n ? "," : "", (int)n, kinds,
                      n == sizeof one - 1 && !strncmp(kinds, one, n) ? "es" : "");
        kinds += n + (kinds[n] == ',');
    }
    char *text = kinds ? mg_xstrdup(b.n ? b.at : "") : NULL;
    mg_buf_release(&b);
    return text;
}

int mg_trace_print_all(struct mg_trace_reader *r, const struct mg_trace_query *q, bool json, uint64_t top)
{
    struct mg_trace_query query = *q;
    char *kinds = replace_kinds(q->kinds);
    query.kinds = kinds;
    struct printing x = {.r = r, .q = q, .json = json, .left = top, .out = MG_BUF_INIT};
    struct mg_trace_cursor *c = mg_trace_cursor_open(r, &query);
    const struct mg_trace_record *rec;
    while (x.left && !x.status && (rec = mg_trace_next(c))) {
        if (print_accesses(&x, rec)) continue;
        if (json)
            mg_trace_print_json(rec, &x.out);
        else
            mg_trace_print(rec, &x.out);
        end_line(&x);
    }
    if (!x.status) x.status = mg_cli_out(&x.out);
    if (!x.status) x.status = mg_trace_say_damage(c);
    if (!x.status) x.status = say_bad_accesses(&x);
    for (uint32_t i = 0; i < x.of.n; i++) mg_accesses_close(x.of.at[i]);
    mg_vec_release(&x.of);
    mg_buf_release(&x.out);
    mg_trace_cursor_close(c);
    free(kinds);
    return x.status;
}
