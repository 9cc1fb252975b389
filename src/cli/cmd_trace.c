/* margay trace: what the trace files of a profile hold: a summary, the records, and whether they are whole. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/number.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/trace_convert.h"
#include "cli/trace_damage.h"
#include "cli/trace_print.h"
#include "trace/access.h"
#include "view/unseen.h"

static const struct mg_opt_page page = {
    "trace", "info|print|verify|convert DIR [OPTIONS]", "show, check and convert the trace files of a profile",
    "info     each file's process, chunks, records, time; with --kinds the records of each kind\n"
    "print    the records, one a line, in the order of the files or of their times\n"
    "convert  accesses of tool trace in another format, --to csv, thesis, cudamemtrace, accelsim-memory, accelsim-pseudo,\n"
    "         ramulator2, dramsim3, into -o\n"
    "verify   reads every byte: status 3 where something is damaged, torn, missing or was lost\n\n"
    "DIR is a profile directory; one file of its folder trace may be named instead. A trace may be read while its program\n"
    "runs and after it was killed.\n"};

struct trace_opts {
    bool json, kinds, by_time;
    const char *kind, *time, *launch, *cta;
    struct mg_convert_wish convert;
    uint64_t top;
};

/* "A-B", "A-", "-B" or "A", both ends included. */
static bool read_range(const char *text, struct mg_trace_range *out)
{
    const char *at = text;
    *out = (struct mg_trace_range){0, UINT64_MAX};
    if (*at != '-' && !(at = mg_number_read_u64(at, &out->first))) return false;
    if (!*at) out->last = out->first;
    if (!*at) return true;
    if (*at++ != '-' || (!*at && at == text + 1)) return false;
    if (!*at) return true;
    at = mg_number_read_u64(at, &out->last);
    return at && !*at && out->first <= out->last;
}

static bool make_query(const struct trace_opts *o, struct mg_trace_query *q, const char **wrong)
{
    const struct {
        const char *text, *name;
        enum mg_trace_key key;
    } ranges[] = {{o->time, "--time", MG_TRACE_KEY_TIME},
                  {o->launch, "--launch", MG_TRACE_KEY_LAUNCH},
                  {o->cta, "--cta", MG_TRACE_KEY_CTA}};
    *q = (struct mg_trace_query){
        .size = sizeof *q, .kinds = o->kind, .order = o->by_time ? MG_TRACE_BY_TIME : MG_TRACE_BY_FILE};
    for (size_t i = 0; i < MG_COUNT_OF(ranges); i++) {
        struct mg_trace_range *r = &q->keys[ranges[i].key - 1];
        *wrong = ranges[i].name;
        if (!ranges[i].text) continue;
        if (!read_range(ranges[i].text, r)) return false;
        q->with_keys |= 1u << ranges[i].key;
    }
    return true;
}

/* Nothing of the traces is missing then, but what they belong to is. */
static int say_empty(const char *dir, int status)
{
    struct mg_buf path = MG_BUF_INIT;
    struct stat st;
    mg_buf_printf(&path, "%s/profile.db", dir);
    bool empty = !stat(path.at, &st) && S_ISREG(st.st_mode) && !st.st_size;
    if (empty) fprintf(stderr, "margay: %s is empty: nothing of its process was recorded\n", path.at);
    mg_buf_release(&path);
    return empty ? MG_EXIT_INPUT : status;
}

/* ---- info ---------------------------------------------------------------------------------------------- */

struct kind_count {
    const char *name;
    uint32_t version;
    uint64_t records, bytes;
};
struct kind_counts {
    MG_VEC(struct kind_count) at;
};

static int compare_kinds(const void *a, const void *b)
{
    const struct kind_count *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    return c ? c : (x->version > y->version) - (x->version < y->version);
}

static int count_kinds(struct mg_trace_reader *r, struct kind_counts *out)
{
    struct mg_trace_query q = {.size = sizeof q};
    struct mg_trace_cursor *c = mg_trace_cursor_open(r, &q);
    for (const struct mg_trace_record *rec; (rec = mg_trace_next(c));) {
        while (out->at.n <= rec->kind_ix) *mg_vec_push(&out->at) = (struct kind_count){0};
        struct kind_count *k = &out->at.at[rec->kind_ix];
        *k = (struct kind_count){rec->kind->name, rec->kind->version, k->records + 1, k->bytes + rec->bytes + 4};
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->at.n; i++)
        if (out->at.at[i].records) out->at.at[n++] = out->at.at[i];
    out->at.n = n;
    if (n) qsort(out->at.at, n, sizeof *out->at.at, compare_kinds);
    int status = mg_trace_say_damage(c);
    mg_trace_cursor_close(c);
    return status;
}

/* Instructions of traced kernels whose accesses are not in the trace (MG_ACCESS_UNSEEN), of one file. */
struct unseen {
    const char *kernel, *op; /* of the arena */
};
struct unseens {
    struct mg_arena arena;
    MG_VEC(struct unseen) at;
};

static const char *text_field(struct unseens *u, const struct mg_trace_record *r, const char *field)
{
    uint32_t bytes = 0, ix = mg_trace_field_ix(r->kind, field);
    const char *text = ix == UINT32_MAX ? NULL : mg_trace_text(r, ix, &bytes);
    return mg_arena_strndup(&u->arena, text ? text : "", text ? bytes : 0);
}

static bool is_file(void *user, const struct mg_trace_file *f)
{
    return f == user;
}

static void find_unseen(struct mg_trace_reader *r, const struct mg_trace_file *f, struct unseens *out)
{
    struct mg_trace_query q = {.size = sizeof q,
                               .kinds = "trace.site",
                               .with_keys = 1u << MG_TRACE_KEY_TIME,
                               .only = is_file,
                               .only_user = (void *)(uintptr_t)f};
    q.keys[MG_TRACE_KEY_TIME - 1] = (struct mg_trace_range){0, UINT64_MAX};
    struct mg_trace_cursor *c = mg_trace_cursor_open(r, &q);
    for (const struct mg_trace_record *rec; (rec = mg_trace_next(c));) {
        bool seen = mg_trace_u64(rec, mg_trace_field_ix(rec->kind, "kind")) != MG_ACCESS_UNSEEN;
        struct unseen u = {seen ? NULL : text_field(out, rec, "kernel"), seen ? NULL : text_field(out, rec, "op")};
        for (uint32_t i = 0; i < out->at.n && !seen; i++)
            seen = !strcmp(out->at.at[i].kernel, u.kernel) && !strcmp(out->at.at[i].op, u.op);
        if (!seen) *mg_vec_push(&out->at) = u;
    }
    mg_trace_cursor_close(c);
}

static void release_unseen(struct unseens *u)
{
    mg_vec_release(&u->at);
    mg_arena_release(&u->arena);
}

static void json_unseen(struct mg_json *j, struct mg_trace_reader *r, const struct mg_trace_file *f)
{
    struct unseens u = {.arena = MG_ARENA_INIT};
    find_unseen(r, f, &u);
    mg_json_key(j, "not_looked_at");
    mg_json_arr(j);
    for (uint32_t i = 0; i < u.at.n; i++) {
        mg_json_obj(j);
        mg_json_key_str(j, "kernel", u.at.at[i].kernel);
        mg_json_key_str(j, "op", u.at.at[i].op);
        mg_json_key_str(j, "kind", mg_unseen_kind(u.at.at[i].op));
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    release_unseen(&u);
}

static void json_range(struct mg_json *j, const char *key, const struct mg_trace_range *r)
{
    mg_json_key(j, key);
    if (r->first > r->last) {
        mg_json_null(j);
        return;
    }
    mg_json_arr(j);
    mg_json_u64(j, r->first);
    mg_json_u64(j, r->last);
    mg_json_end(j, ']');
}

static void json_attributes(struct mg_json *j, const struct mg_trace_file *f)
{
    mg_json_key(j, "attributes");
    mg_json_obj(j);
    for (const char *at = f->attributes; *at; at += at[strcspn(at, "\n")] ? strcspn(at, "\n") + 1 : strlen(at)) {
        size_t line = strcspn(at, "\n"), key = strcspn(at, "=\n");
        char *name = strndup(at, key), *value = key < line ? strndup(at + key + 1, line - key - 1) : NULL;
        mg_json_key(j, name ? name : "");
        mg_json_str(j, value ? value : "");
        free(name);
        free(value);
    }
    mg_json_end(j, '}');
}

static void info_json(struct mg_trace_reader *r, const struct kind_counts *kinds, bool with_kinds, struct mg_buf *out)
{
    struct mg_json j;
    mg_json_init(&j, out, 2);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "margay_json", 1);
    mg_json_key(&j, "files");
    mg_json_arr(&j);
    for (uint32_t i = 0; i < mg_trace_n_files(r); i++) {
        const struct mg_trace_file *f = mg_trace_file(r, i);
        mg_json_obj(&j);
        mg_json_key_str(&j, "path", f->path);
        mg_json_key_u64_if(&j, "version", !f->bad_header, f->version);
        mg_json_key_u64_if(&j, "pid", !f->bad_header, f->pid);
        mg_json_key_u64_if(&j, "rank", f->rank >= 0, (uint64_t)f->rank);
        mg_json_key_bool(&j, "closed", f->closed);
        mg_json_key_u64(&j, "bytes", f->bytes);
        mg_json_key_u64(&j, "raw_bytes", f->raw_bytes);
        mg_json_key_u64(&j, "chunks", f->chunks);
        mg_json_key_u64(&j, "records", f->records);
        mg_json_key_u64(&j, "dropped", f->dropped);
        mg_json_key_u64(&j, "skipped", f->skipped);
        mg_json_key_u64(&j, "lost", f->lost);
        mg_json_key_u64(&j, "damaged_bytes", f->damaged_bytes);
        mg_json_key_u64(&j, "start_ns", f->start_mono_ns);
        json_range(&j, "range_ns", &f->keys[MG_TRACE_KEY_TIME - 1]);
        json_range(&j, "launches", &f->keys[MG_TRACE_KEY_LAUNCH - 1]);
        json_range(&j, "ctas", &f->keys[MG_TRACE_KEY_CTA - 1]);
        json_attributes(&j, f);
        json_unseen(&j, r, f);
        mg_json_end(&j, '}');
    }
    mg_json_end(&j, ']');
    mg_json_key(&j, "kinds");
    if (!with_kinds)
        mg_json_null(&j);
    else
        mg_json_arr(&j);
    for (uint32_t i = 0; with_kinds && i < kinds->at.n; i++) {
        const struct kind_count *k = &kinds->at.at[i];
        mg_json_obj(&j);
        mg_json_key_str(&j, "kind", k->name);
        mg_json_key_u64(&j, "version", k->version);
        mg_json_key_u64(&j, "records", k->records);
        mg_json_key_u64(&j, "bytes", k->bytes);
        mg_json_end(&j, '}');
    }
    if (with_kinds) mg_json_end(&j, ']');
    mg_json_end(&j, '}');
    mg_buf_addc(out, '\n');
}

static void info_unseen(struct mg_trace_reader *r, const struct mg_trace_file *f, struct mg_buf *out)
{
    struct unseens u = {.arena = MG_ARENA_INIT};
    find_unseen(r, f, &u);
    for (uint32_t i = 0; i < u.at.n; i++) {
        const char *kind = mg_unseen_kind(u.at.at[i].op);
        mg_buf_printf(out, "  not looked at in %s: %s (%s)\n", u.at.at[i].kernel, u.at.at[i].op, kind ? kind : "?");
    }
    release_unseen(&u);
}

static void info_file(const struct mg_trace_file *f, struct mg_buf *out)
{
    static const char *const keys[] = {"time", "launches", "CTAs"};
    mg_buf_printf(out, "%s\n", f->path);
    if (f->bad_header)
        mg_buf_adds(out, "  head damaged");
    else
        mg_buf_printf(out, "  process %u", f->pid);
    if (f->rank >= 0) mg_buf_printf(out, ", rank %d", f->rank);
    mg_buf_printf(out, "; %" PRIu64 " records in %" PRIu64 " chunks, %" PRIu64 " bytes (%" PRIu64 " unpacked)%s\n",
                  f->records, f->chunks, f->bytes, f->raw_bytes, f->closed ? "" : "; not closed");
    for (int k = 0; k < MG_TRACE_INDEXED; k++)
        if (f->keys[k].first <= f->keys[k].last)
            mg_buf_printf(out, "  %s %" PRIu64 " to %" PRIu64 "%s\n", keys[k], f->keys[k].first, f->keys[k].last,
                          k ? "" : " ns");
    if (f->dropped || f->skipped || f->lost)
        mg_buf_printf(out, "  %" PRIu64 " records dropped, %" PRIu64 " skipped by sampling, %" PRIu64 " not written\n",
                      f->dropped, f->skipped, f->lost);
    if (f->damaged_bytes)
        mg_buf_printf(out, "  %" PRIu64 " bytes belong to no chunk: torn or damaged\n", f->damaged_bytes);
}

static int run_info(struct mg_trace_reader *r, const struct trace_opts *o)
{
    struct mg_buf out = MG_BUF_INIT;
    struct kind_counts kinds = {0};
    int status = o->kinds ? count_kinds(r, &kinds) : MG_EXIT_OK;
    if (o->json) info_json(r, &kinds, o->kinds, &out);
    for (uint32_t i = 0; !o->json && i < mg_trace_n_files(r); i++) {
        info_file(mg_trace_file(r, i), &out);
        info_unseen(r, mg_trace_file(r, i), &out);
    }
    for (uint32_t i = 0; !o->json && i < kinds.at.n; i++)
        mg_buf_printf(&out, "%-20s version %u %12" PRIu64 " records %14" PRIu64 " bytes\n", kinds.at.at[i].name,
                      kinds.at.at[i].version, kinds.at.at[i].records, kinds.at.at[i].bytes);
    int printed = mg_cli_out(&out);
    mg_buf_release(&out);
    mg_vec_release(&kinds.at);
    return printed ? printed : status;
}

/* ---- verify ------------------------------------------------------------------------------------- */

/* Records that are not in the files, and accesses that tool trace has not put there: unwanted, or as selected. */
static enum mg_err check_left(struct mg_trace_reader *r, struct mg_diag *d)
{
    struct mg_trace_query q = {.size = sizeof q, .kinds = "trace.left", .with_keys = 1u << MG_TRACE_KEY_TIME};
    enum mg_err err = MG_ERR_OK;
    for (uint32_t i = 0; i < mg_trace_n_files(r); i++) {
        const struct mg_trace_file *f = mg_trace_file(r, i);
        if (f->lost + f->dropped)
            err = mg_diag_err(d, MG_ERR_INPUT,
                              "%s: %" PRIu64 " records lost: %" PRIu64 " found no free buffer, %" PRIu64
                              " could not be written",
                              f->path, f->lost + f->dropped, f->dropped, f->lost);
    }
    q.keys[MG_TRACE_KEY_TIME - 1] = (struct mg_trace_range){0, UINT64_MAX};
    struct mg_trace_cursor *c = mg_trace_cursor_open(r, &q);
    for (const struct mg_trace_record *rec; (rec = mg_trace_next(c));) {
        uint32_t n = 0, ix = mg_trace_field_ix(rec->kind, "why");
        const char *why = ix == UINT32_MAX ? NULL : mg_trace_text(rec, ix, &n);
        bool meant = why && ((n == 6 && !memcmp(why, "sample", n)) || (n == 9 && !memcmp(why, "selection", n)));
        if (meant)
            printf("%s: a part of the accesses, as was asked for: %.*s\n", rec->file->path, (int)n, why);
        else
            err = mg_diag_err(d, MG_ERR_INPUT, "%s: accesses are not in it: %.*s", rec->file->path, (int)n,
                              why ? why : "");
    }
    mg_trace_cursor_close(c);
    return err;
}

static int run_verify(struct mg_trace_reader *r, struct mg_diag *d)
{
    uint64_t records = 0, chunks = 0;
    if (mg_trace_verify(r, d) || check_left(r, d) || d->n_errors) return mg_cli_fail(d, MG_EXIT_INPUT);
    for (uint32_t i = 0; i < mg_trace_n_files(r); i++) {
        records += mg_trace_file(r, i)->records;
        chunks += mg_trace_file(r, i)->chunks;
    }
    printf("%u file%s, %" PRIu64 " chunks, %" PRIu64 " records: whole\n", mg_trace_n_files(r),
           mg_trace_n_files(r) == 1 ? "" : "s", chunks, records);
    return MG_EXIT_OK;
}

int cmd_trace(int argc, char **argv)
{
    struct trace_opts o = {.top = UINT64_MAX, .convert = {.l1_bytes = 256 << 10, .l2_bytes = 60 << 20}}; /* an H200 */
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_trace_reader *r = NULL;
    struct mg_trace_query q;
    const char *wrong;
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_FLAG(0, "json", &o.json, "print: one object a line; info: one object"),
        MG_OPT_FLAG(0, "kinds", &o.kinds, "info: read all records and count each kind"),
        MG_OPT_STR(0, "kind", &o.kind, "KIND,...", "print: only records of these kinds"),
        MG_OPT_STR(0, "time", &o.time, "A-B", "print: only records in this time, in ns"),
        MG_OPT_STR(0, "launch", &o.launch, "A-B", "print, convert: only these launches"),
        MG_OPT_STR(0, "cta", &o.cta, "A-B", "print: only records of these CTAs"),
        MG_OPT_FLAG(0, "by-time", &o.by_time, "print: all processes in one order of time"),
        MG_OPT_STR(0, "to", &o.convert.to, "FORMAT", "convert: into this format"),
        MG_OPT_STR(0, "from", &o.convert.from, "FORMAT",
                   "convert: DIR is a file of this format, thesis or cudamemtrace"),
        MG_OPT_STR('o', "output", &o.convert.out, "OUT", "convert: the file, or the folder that is made; -: stdout"),
        MG_OPT_U64(0, "pid", &o.convert.pid, 1, UINT32_MAX, "PID", "convert: of several processes this one"),
        MG_OPT_SIZE(0, "l1", &o.convert.l1_bytes, 4096, 1 << 26, "BYTES",
                    "convert to ramulator2, dramsim3: L1 of the model; 256k without it"),
        MG_OPT_SIZE(0, "l2", &o.convert.l2_bytes, 128, (uint64_t)1 << 33, "BYTES", "the same: its L2; 60M"),
        MG_OPT_U64(0, "top", &o.top, 1, 1e15, "N", "print: the first N"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    const char *what = n ? argv[0] : "";
    bool info = !strcmp(what, "info"), print = !strcmp(what, "print"), verify = !strcmp(what, "verify"),
         convert = !strcmp(what, "convert");
    if (!info && !print && !verify && !convert)
        return mg_opt_usage(&page, MG_EXIT_USAGE, "wants info, print, verify or convert");
    if (n != 2) return mg_opt_usage(&page, MG_EXIT_USAGE, "%s wants one directory or file", what);
    if (!make_query(&o, &q, &wrong))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "%s wants a range: A-B, A-, -B or A", wrong);
    o.convert.launches = o.launch ? q.keys[MG_TRACE_KEY_LAUNCH - 1] : (struct mg_trace_range){0, UINT64_MAX};
    if (convert) return mg_trace_convert(argv[1], &o.convert);
    if (mg_trace_reader_open(argv[1], &r, &d))
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    else if (verify)
        status = run_verify(r, &d);
    else
        status = info ? run_info(r, &o) : mg_trace_print_all(r, &q, o.json, o.top);
    if (r && !verify && mg_trace_say_lost(r)) status = MG_EXIT_INPUT;
    if (r && d.n_errors && !verify) status = mg_cli_fail(&d, MG_EXIT_INPUT); /* of several files some are no traces */
    status = say_empty(argv[1], status);
    mg_trace_reader_free(r);
    mg_diag_release(&d);
    return status;
}
