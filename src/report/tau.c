/* Profile objects of TAUcuda in a report: those of the library's files in DIR/tau, and with -t timeline,tau=on one for
 * every kernel, context and stream of the time line (span/tau_events.h). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/io.h"
#include "base/vec.h"
#include "report/priv.h"
#include "span/tau_events.h"
#include "tau/profile_file.h"

#define GROUP "TAU_CUDA"

struct row { /* a profile object; times below 0: not known */
    const char *event, *name, *context, *from;
    uint32_t node, device, thread;
    uint64_t stream, calls;
    double inclusive_us, exclusive_us, wait_us, finalize_us;
};
struct rows {
    MG_VEC(struct row) at;
    struct mg_arena arena;
    MG_VEC(const char *) unread; /* files: why */
};

/* ---- the library's files --------------------------------------------------------------------------------- */

/* Sum of a user event "EVENT : WHAT". */
static double sum_of(const struct tau_file *f, const char *event, const char *what)
{
    size_t n = strlen(event);
    for (uint32_t i = 0; i < f->n_events; i++) {
        const char *name = f->events[i].name;
        if (!strncmp(name, event, n) && !strncmp(name + n, " : ", 3) && !strcmp(name + n + 3, what))
            return (double)f->events[i].n * f->events[i].mean;
    }
    return -1;
}

/* "Interpolate (C-[main]#D-0#S-0)" in its parts; false: another name. */
static bool read_event(struct rows *r, const char *event, struct row *x)
{
    const char *open = NULL, *close = NULL;
    for (const char *at = event; (at = strstr(at, " (C-[")); at++) open = at;
    for (const char *at = open; at && (at = strstr(at, "]#D-")); at++) close = at;
    unsigned long long stream;
    if (!close || sscanf(close, "]#D-%u#S-%llu)", &x->device, &stream) != 2) return false;
    x->event = mg_arena_strndup(&r->arena, event, strlen(event));
    x->name = mg_arena_strndup(&r->arena, event, (size_t)(open - event));
    x->context = mg_arena_strndup(&r->arena, open + 5, (size_t)(close - open - 5));
    x->stream = stream;
    return true;
}

static void add_file(struct rows *r, const struct tau_file *f)
{
    for (uint32_t i = 0; i < f->n_functions; i++) {
        const struct tau_function *x = &f->functions[i];
        struct row row = {.from = "tau_cuda",
                          .node = f->node,
                          .thread = f->thread,
                          .calls = x->calls,
                          .inclusive_us = x->inclusive_us,
                          .exclusive_us = x->exclusive_us,
                          .wait_us = sum_of(f, x->name, "wait"),
                          .finalize_us = sum_of(f, x->name, "finalize")};
        if (!strcmp(x->group, GROUP) && read_event(r, x->name, &row)) *mg_vec_push(&r->at) = row;
    }
}

static void read_file(struct rows *r, const char *path)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct tau_file f = {0};
    char *text;
    size_t bytes;
    enum mg_err err = mg_io_read(path, &text, &bytes, &d);
    if (!err) err = tau_file_parse(text, bytes, path, &f, &d);
    if (err)
        *mg_vec_push(&r->unread) = mg_arena_printf(&r->arena, "%s: %s", path, mg_diag_first(&d, err));
    else
        add_file(r, &f);
    tau_file_release(&f);
    mg_diag_release(&d);
}

static int is_profile(const struct dirent *e)
{
    unsigned node, context, thread;
    return sscanf(e->d_name, "profile.%u.%u.%u", &node, &context, &thread) == 3;
}

/* By node and thread as numbers. */
static int by_number(const struct dirent **a, const struct dirent **b)
{
    return strverscmp((*a)->d_name, (*b)->d_name);
}

static void read_files(struct rows *r, const char *dir)
{
    struct mg_buf path = MG_BUF_INIT;
    struct dirent **list;
    mg_buf_printf(&path, "%s/tau", dir);
    int n = scandir(path.at, &list, is_profile, by_number);
    for (int i = 0; i < n; i++) {
        mg_buf_reset(&path);
        mg_buf_printf(&path, "%s/tau/%s", dir, list[i]->d_name);
        read_file(r, path.at);
        free(list[i]);
    }
    if (n >= 0) free(list);
    mg_buf_release(&path);
}

bool mg_tau_has_files(const char *dir)
{
    struct mg_buf path = MG_BUF_INIT;
    mg_buf_printf(&path, "%s/tau", dir);
    DIR *folder = opendir(path.at);
    bool found = false;
    for (const struct dirent *e; folder && !found && (e = readdir(folder));) found = is_profile(e);
    if (folder) closedir(folder);
    mg_buf_release(&path);
    return found;
}

/* ---- the time line ----------------------------------------------------------------------------------------- */

static uint32_t node_of(const struct mg_tau_events *e, uint32_t pid)
{
    for (uint32_t i = 0; i < mg_spans_n_processes(e->spans); i++) {
        struct mg_span_process p = mg_spans_process(e->spans, i);
        if (p.pid == pid) return p.rank >= 0 ? (uint32_t)p.rank : i;
    }
    return 0;
}

static double us(bool known, uint64_t ns)
{
    return known ? (double)ns * 1e-3 : -1;
}

static void add_events(struct rows *r, const struct mg_tau_events *e)
{
    for (uint32_t i = 0; i < e->at.n; i++) {
        const struct mg_tau_event *x = &e->at.at[i];
        const char *name = mg_arena_strndup(&r->arena, x->name, strlen(x->name));
        const char *context = mg_arena_strndup(&r->arena, x->context, strlen(x->context));
        double inclusive = us(x->calls > x->untimed, x->inclusive_ns);
        *mg_vec_push(&r->at) = (struct row){
            .event = mg_arena_printf(&r->arena, "%s (C-[%s]#D-%u#S-%llu)", name, context, x->device,
                                     (unsigned long long)x->stream),
            .name = name,
            .context = context,
            .from = "timeline",
            .node = node_of(e, x->process),
            .device = x->device,
            .thread = x->thread,
            .stream = x->stream,
            .calls = x->calls,
            .inclusive_us = inclusive,
            .exclusive_us = inclusive,
            .wait_us = us(x->delivered, x->wait_ns),
            .finalize_us = us(x->delivered, x->finalize_ns),
        };
    }
}

/* ---- report ------------------------------------------------------------------------------------------------ */

static void write_us(struct mg_json *j, const char *key, double v)
{
    mg_json_key(j, key);
    if (v < 0)
        mg_json_null(j);
    else
        mg_json_f64(j, v);
}

static void write_row(struct mg_json *j, const struct row *x)
{
    mg_json_obj(j);
    mg_json_key_str(j, "event", x->event);
    mg_json_key_str(j, "name", x->name);
    mg_json_key_str(j, "context", x->context);
    mg_json_key_u64(j, "device", x->device);
    mg_json_key_u64(j, "stream", x->stream);
    mg_json_key_u64(j, "node", x->node);
    mg_json_key_u64(j, "thread", x->thread);
    mg_json_key_u64(j, "calls", x->calls);
    write_us(j, "inclusive_us", x->inclusive_us);
    write_us(j, "exclusive_us", x->exclusive_us);
    write_us(j, "wait_us", x->wait_us);
    write_us(j, "finalize_us", x->finalize_us);
    mg_json_key_str(j, "from", x->from);
    mg_json_end(j, '}');
}

static void add_us(struct mg_table *t, double v)
{
    if (v < 0)
        mg_table_null(t);
    else
        mg_table_u64(t, (uint64_t)(v * 1e3 + 0.5));
}

/* The event with its kernel as people write it; the JSON has the name as it is. */
static void add_event(struct mg_table *t, const struct row *x)
{
    struct mg_buf text = MG_BUF_INIT;
    mg_demangle_add(&text, x->name, 32);
    mg_buf_adds(&text, x->event + strlen(x->name));
    mg_table_text(t, text.at);
    mg_buf_release(&text);
}

static void add_table(struct mg_table *t, const struct rows *r)
{
    static const char *const times[] = {"inclusive", "exclusive", "wait", "finalize"};
    mg_table_begin(t, "tau", "profile objects of TAUcuda");
    mg_table_column(t, "event", MG_COL_TEXT, NULL);
    mg_table_column(t, "node", MG_COL_COUNT, NULL);
    mg_table_column(t, "thread", MG_COL_COUNT, NULL);
    mg_table_column(t, "calls", MG_COL_COUNT, NULL);
    for (size_t i = 0; i < MG_COUNT_OF(times); i++) mg_table_column(t, times[i], MG_COL_TIME_NS, NULL);
    for (uint32_t i = 0; i < r->at.n; i++) {
        const struct row *x = &r->at.at[i];
        mg_table_row(t);
        add_event(t, x);
        mg_table_u64(t, x->node);
        mg_table_u64(t, x->thread);
        mg_table_u64(t, x->calls);
        add_us(t, x->inclusive_us);
        add_us(t, x->exclusive_us);
        add_us(t, x->wait_us);
        add_us(t, x->finalize_us);
    }
    mg_table_empty(t, "no block completed and no kernel ran");
    for (uint32_t i = 0; i < r->unread.n; i++) mg_table_note(t, "%s", r->unread.at[i]);
}

void mg_tau_tell(const char *dir, bool events, struct mg_table *t, struct mg_json *j)
{
    struct rows r = {.arena = MG_ARENA_INIT};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_tau_events e;
    read_files(&r, dir);
    if (events && !mg_tau_events_init(&e, dir, &d)) {
        add_events(&r, &e);
        mg_tau_events_release(&e);
    }
    mg_json_key(j, "tau");
    mg_json_arr(j);
    for (uint32_t i = 0; i < r.at.n; i++) write_row(j, &r.at.at[i]);
    mg_json_end(j, ']');
    if (t) add_table(t, &r);
    mg_vec_release(&r.unread);
    mg_vec_release(&r.at);
    mg_arena_release(&r.arena);
    mg_diag_release(&d);
}
