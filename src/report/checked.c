/* The table of what --check found, from the JSON that the run left (docs/json.md, tools.check.findings). */
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/json_read.h"
#include "base/vec.h"
#include "report/priv.h"

/* What all processes left as lists under this name, one entry behind the other. */
struct left {
    struct mg_arena arena;
    MG_VEC(const struct mg_jval *) entries;
    bool any; /* a process left a list, were it an empty one */
};

static void read_left(struct left *l, const struct mg_recording *p, const char *tool, const char *key)
{
    *l = (struct left){.arena = MG_ARENA_INIT};
    for (uint32_t i = 0; i < p->n_tools; i++) {
        const struct mg_ptool *t = &p->tools[i];
        if (strcmp(t->tool, tool) || strcmp(t->key, key)) continue;
        l->any = true;
        for (const struct mg_jval *v = mg_jval_first(mg_jval_parse(&l->arena, t->json, strlen(t->json))); v;
             v = v->next)
            *mg_vec_push(&l->entries) = v;
    }
}

static void release_left(struct left *l)
{
    mg_vec_release(&l->entries);
    mg_arena_release(&l->arena);
}

static const char *text_of(const struct mg_jval *v, const char *key)
{
    const char *text = mg_jval_text(v, key);
    return text ? text : "";
}

/* "x.cu:12" or "PTX line 40" of an access, its last part of the path alone */
static void add_place(struct mg_buf *out, const struct mg_jval *at)
{
    const char *file = mg_jval_text(at, "file"), *last = file ? strrchr(file, '/') : NULL;
    if (file && mg_jval_is_number(mg_jval_get(at, "line")))
        mg_buf_printf(out, "%s:%llu", last ? last + 1 : file, (unsigned long long)mg_jval_u64(at, "line"));
    else
        mg_buf_printf(out, "PTX line %llu", (unsigned long long)mg_jval_u64(at, "ptx_line"));
}

static void add_point(struct mg_buf *out, const struct mg_jval *point)
{
    const char *before = "(";
    if (!point || point->kind != MG_JVAL_ARRAY) return;
    for (const struct mg_jval *v = mg_jval_first(point); v; v = v->next, before = ",")
        mg_buf_printf(out, "%s%.0f", before, mg_jval_number(v));
    mg_buf_addc(out, ')');
}

static bool is_elsewhere(const struct mg_jval *a, const struct mg_jval *b)
{
    const struct mg_jval *x = mg_jval_first(a), *y = mg_jval_first(b);
    for (; x && y; x = x->next, y = y->next)
        if (mg_jval_number(x) != mg_jval_number(y)) return true;
    return false;
}

static void add_access(struct mg_buf *out, const struct mg_jval *at)
{
    mg_buf_printf(out, "%s ", text_of(at, "access"));
    add_place(out, at);
    mg_buf_adds(out, " thread ");
    add_point(out, mg_jval_get(at, "thread"));
}

/* Whose kernel it was: its number is that of one process, so its name stands in the line that was told. */
static void add_kernel(const struct mg_recording *p, const struct mg_jval *f, struct mg_buf *out)
{
    const char *text = text_of(f, "text");
    if (strncmp(text, "kernel ", 7)) return;
    size_t n = strcspn(text + 7, ":");
    for (uint32_t i = 0; i < p->n_kernels; i++)
        if (!strncmp(p->kernels[i].name, text + 7, n) && !p->kernels[i].name[n]) {
            mg_buf_adds(out, p->kernels[i].demangled);
            return;
        }
    mg_buf_add(out, text + 7, n);
}

static void add_row(const struct mg_recording *p, const struct mg_jval *f, uint32_t columns, struct mg_buf *out)
{
    struct mg_buf name = MG_BUF_INIT;
    const struct mg_jval *other = mg_jval_first(mg_jval_get(f, "other")) ? mg_jval_get(f, "other") : NULL,
                         *allocation = mg_jval_get(f, "allocation"), *cta = mg_jval_get(f, "cta");
    const char *what = text_of(f, "what");
    mg_add_count(out, mg_jval_u64(f, "times"), mg_jval_get(f, "times") != NULL, false, 12);
    mg_buf_adds(out, "  ");
    mg_add_left(out, text_of(f, "kind"), 14);
    mg_buf_adds(out, "  ");
    add_kernel(p, f, &name);
    mg_add_left(out, name.at ? name.at : "", columns > 130 ? columns - 90 : 40);
    mg_buf_adds(out, "\n                ");
    add_access(out, f);
    if (other) {
        mg_buf_adds(out, ", ");
        add_access(out, other);
    }
    mg_buf_adds(out, ", CTA ");
    add_point(out, cta);
    if (is_elsewhere(cta, mg_jval_get(other, "cta"))) {
        mg_buf_adds(out, " and ");
        add_point(out, mg_jval_get(other, "cta"));
    }
    if (mg_jval_first(allocation)) mg_buf_printf(out, ", %s in %s", text_of(f, "address"), text_of(allocation, "name"));
    if (*what) mg_buf_printf(out, ": %s", what);
    mg_buf_addc(out, '\n');
    mg_buf_release(&name);
}

/* What was not looked at for undefined values, each name once. */
static void add_unseen(const struct mg_recording *p, struct mg_buf *out)
{
    struct left l;
    struct mg_intern seen;
    const char *before = "   not looked at for undefined values: ";
    read_left(&l, p, "check", "not_looked_at");
    mg_intern_init(&seen);
    for (uint32_t i = 0, n = 0; i < l.entries.n; i++) {
        const char *name = text_of(l.entries.at[i], "name");
        if (mg_intern_adds(&seen, name) <= n) continue;
        n++;
        mg_buf_printf(out, "%s%s", before, name);
        before = ", ";
    }
    if (*before == ',') mg_buf_adds(out, " (--json counts them)\n");
    mg_intern_release(&seen);
    release_left(&l);
}

void mg_add_checked(const struct mg_recording *p, uint32_t columns, uint32_t max_rows, struct mg_buf *out)
{
    struct left l;
    read_left(&l, p, "check", "findings");
    uint32_t n = l.entries.n;
    if (l.any) {
        mg_buf_printf(out, "\n--check: %u %s\n", n, n == 1 ? "finding" : "findings");
        if (n) mg_buf_adds(out, "       times  kind            kernel\n");
        for (uint32_t i = 0; i < n && i < max_rows; i++) add_row(p, l.entries.at[i], columns, out);
        if (n > max_rows) mg_buf_printf(out, "   and %u more (--top %u, --json)\n", n - max_rows, n);
        add_unseen(p, out);
    }
    release_left(&l);
}

/* ---- registers that a kernel may read before it writes them ------------------------------------------ */

static bool is_same_kernel(const struct mg_jval *a, const struct mg_jval *b)
{
    return !strcmp(text_of(a, "kernel"), text_of(b, "kernel"));
}

void mg_add_unwritten(const struct mg_recording *p, struct mg_buf *out, uint32_t max_rows)
{
    struct left l;
    uint32_t rows = 0;
    read_left(&l, p, "registers", "findings");
    for (uint32_t i = 0; i < l.entries.n; i++) {
        const struct mg_jval *v = l.entries.at[i];
        const char *name = text_of(v, "kernel");
        uint32_t n = 0;
        if ((i && is_same_kernel(v, l.entries.at[i - 1])) || rows++ >= max_rows) continue;
        for (uint32_t k = 0; k < l.entries.n; k++) n += is_same_kernel(v, l.entries.at[k]);
        mg_buf_adds(out, "  ");
        mg_demangle_add(out, name, 80);
        mg_buf_printf(out, ": may read %s before it writes it (", text_of(v, "register"));
        add_place(out, v);
        if (n > 1) mg_buf_printf(out, "; %u more registers", n - 1);
        mg_buf_adds(out, ")\n");
    }
    if (rows > max_rows)
        mg_buf_printf(out, "  and %u more kernels that may read registers before they write them\n", rows - max_rows);
    release_left(&l);
}

void mg_write_unwritten(struct mg_json *j, const struct mg_recording *p)
{
    struct left l;
    read_left(&l, p, "registers", "findings");
    mg_json_arr(j);
    for (uint32_t i = 0; i < l.entries.n; i++) {
        const struct mg_jval *v = l.entries.at[i];
        mg_json_obj(j);
        mg_json_key_str(j, "kernel", mg_jval_text(v, "kernel"));
        mg_json_key_str(j, "function", mg_jval_text(v, "function"));
        mg_json_key_str(j, "register", mg_jval_text(v, "register"));
        mg_json_key_u64(j, "ptx_line", mg_jval_u64(v, "ptx_line"));
        mg_json_key_str(j, "file", mg_jval_text(v, "file"));
        mg_json_key_u64_if(j, "line", mg_jval_is_number(mg_jval_get(v, "line")), mg_jval_u64(v, "line"));
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    release_left(&l);
}

uint32_t mg_report_check_errors(const struct mg_recording *p)
{
    struct left l;
    uint32_t n = 0;
    read_left(&l, p, "check", "findings");
    for (uint32_t i = 0; i < l.entries.n; i++) n += strcmp(text_of(l.entries.at[i], "kind"), "note") != 0;
    release_left(&l);
    return n;
}
