/* The table of what --check found, from the JSON that the run left (docs/json.md, tools.check.findings). */
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/json_read.h"
#include "report/priv.h"

/* The value of a key in the object at `obj`; NULL without. The text is valid JSON. */
static const char *value_of(const char *obj, const char *key)
{
    size_t n = strlen(key);
    const char *s = obj + 1;
    for (;;) {
        s += strspn(s, " \t\r\n,");
        if (*s != '"') return NULL;
        bool found = !strncmp(s + 1, key, n) && s[n + 1] == '"';
        s = mg_json_skip(s);
        if (!s) return NULL;
        s += strspn(s, " \t\r\n:");
        if (found) return s;
        s = mg_json_skip(s);
        if (!s) return NULL;
    }
}

/* A text without its quotes; names of files and words have nothing escaped that matters in a table. */
static void add_text(struct mg_buf *out, const char *value)
{
    if (!value || *value != '"') return;
    for (const char *s = value + 1; *s && *s != '"'; s++) {
        if (*s == '\\' && s[1]) s++;
        mg_buf_addc(out, *s);
    }
}

static bool is_text(const char *value, const char *text)
{
    size_t n = strlen(text);
    return value && *value == '"' && !strncmp(value + 1, text, n) && value[n + 1] == '"';
}

/* "x.cu:12" or "PTX line 40" of an access, its last part of the path alone */
static void add_place(struct mg_buf *out, const char *at)
{
    const char *file = value_of(at, "file"), *line = value_of(at, "line"), *ptx = value_of(at, "ptx_line");
    struct mg_buf name = MG_BUF_INIT;
    if (file && *file == '"' && line && *line != 'n') {
        add_text(&name, file);
        const char *last = name.at ? strrchr(name.at, '/') : NULL;
        mg_buf_printf(out, "%s:%lu", last ? last + 1 : name.at ? name.at : "", strtoul(line, NULL, 10));
    } else
        mg_buf_printf(out, "PTX line %lu", ptx ? strtoul(ptx, NULL, 10) : 0);
    mg_buf_release(&name);
}

static void add_point(struct mg_buf *out, const char *list)
{
    const char *end = list && *list == '[' ? strchr(list, ']') : NULL;
    if (!end) return;
    mg_buf_addc(out, '(');
    for (const char *s = list + 1; s < end; s++)
        if (*s != ' ') mg_buf_addc(out, *s);
    mg_buf_addc(out, ')');
}

static bool same_point(const char *a, const char *b)
{
    size_t n = a && *a == '[' ? strcspn(a, "]") : 0;
    return !n || !b || *b != '[' || (n == strcspn(b, "]") && !strncmp(a, b, n));
}

static void add_access(struct mg_buf *out, const char *at)
{
    add_text(out, value_of(at, "access"));
    mg_buf_addc(out, ' ');
    add_place(out, at);
    mg_buf_adds(out, " thread ");
    add_point(out, value_of(at, "thread"));
}

static void add_row(const struct mg_recording *p, const char *f, uint32_t columns, struct mg_buf *out)
{
    struct mg_buf cell = MG_BUF_INIT;
    const char *times = value_of(f, "times"), *other = value_of(f, "other"), *allocation = value_of(f, "allocation"),
               *text = value_of(f, "text"), *kind = value_of(f, "kind");
    mg_add_count(out, times ? strtoull(times, NULL, 10) : 0, times != NULL, false, 12);
    mg_buf_adds(out, "  ");
    add_text(&cell, kind);
    mg_add_left(out, cell.at ? cell.at : "", 14);
    mg_buf_reset(&cell);
    if (text && !strncmp(text, "\"kernel ", 8)) { /* "kernel NAME: ..." */
        mg_buf_add(&cell, text + 8, strcspn(text + 8, ":\""));
        for (uint32_t i = 0; i < p->n_kernels; i++)
            if (!strcmp(p->kernels[i].name, cell.at)) {
                mg_buf_reset(&cell);
                mg_buf_adds(&cell, p->kernels[i].demangled);
                break;
            }
    }
    mg_buf_adds(out, "  ");
    mg_add_left(out, cell.at ? cell.at : "", columns > 130 ? columns - 90 : 40);
    mg_buf_reset(&cell);
    mg_buf_adds(out, "\n                ");
    add_access(out, f);
    if (other && *other == '{') {
        mg_buf_adds(out, ", ");
        add_access(out, other);
    }
    mg_buf_adds(out, ", CTA ");
    add_point(out, value_of(f, "cta"));
    if (other && *other == '{' && !same_point(value_of(f, "cta"), value_of(other, "cta"))) {
        mg_buf_adds(out, " and ");
        add_point(out, value_of(other, "cta"));
    }
    if (allocation && *allocation == '{') {
        mg_buf_adds(out, ", ");
        add_text(out, value_of(f, "address"));
        mg_buf_adds(out, " in ");
        add_text(out, value_of(allocation, "name"));
    }
    if (is_text(kind, "barrier") && text) { /* what is wrong stands behind the name */
        const char *s = strstr(text, ": "), *end = s ? strstr(s, " at ") : NULL;
        if (end) mg_buf_printf(out, ": %.*s", (int)(end - s - 2), s + 2);
    }
    mg_buf_addc(out, '\n');
    mg_buf_release(&cell);
}

static uint32_t for_each(const struct mg_recording *p, const char *json, uint32_t columns, uint32_t max,
                         struct mg_buf *out)
{
    uint32_t n = 0;
    const char *s = json + strspn(json, " \t\r\n");
    if (!mg_json_valid(json) || *s != '[') return 0;
    for (s++;; n++) {
        s += strspn(s, " \t\r\n,");
        if (*s != '{') return n;
        if (out && n < max) add_row(p, s, columns, out);
        s = mg_json_skip(s);
        if (!s) return n;
    }
}

/* What was not looked at for undefined values, each name once. */
static void add_unseen(const struct mg_recording *p, struct mg_buf *out)
{
    struct mg_buf told = MG_BUF_INIT;
    for (uint32_t i = 0; i < p->n_tools; i++) {
        const struct mg_ptool *t = &p->tools[i];
        if (strcmp(t->tool, "check") || strcmp(t->key, "not_looked_at") || !mg_json_valid(t->json)) continue;
        for (const char *s = t->json + strspn(t->json, " \t\r\n") + 1; s; s = mg_json_skip(s)) {
            struct mg_buf name = MG_BUF_INIT;
            s += strspn(s, " \t\r\n,");
            if (*s != '{') break;
            mg_buf_addc(&name, ' ');
            add_text(&name, value_of(s, "name"));
            mg_buf_addc(&name, ',');
            if (!told.at || !strstr(told.at, name.at)) mg_buf_adds(&told, name.at);
            mg_buf_release(&name);
        }
    }
    if (told.n)
        mg_buf_printf(out, "   not looked at for undefined values:%.*s (--json counts them)\n", (int)told.n - 1,
                      told.at);
    mg_buf_release(&told);
}

void mg_add_checked(const struct mg_recording *p, uint32_t columns, uint32_t max_rows, struct mg_buf *out)
{
    uint32_t n = 0, shown = 0, lists = 0;
    for (uint32_t i = 0; i < p->n_tools; i++)
        if (!strcmp(p->tools[i].tool, "check") && !strcmp(p->tools[i].key, "findings")) {
            n += for_each(p, p->tools[i].json, columns, 0, NULL);
            lists++;
        }
    if (!lists) return;
    mg_buf_printf(out, "\n--check: %u %s\n", n, n == 1 ? "finding" : "findings");
    if (n) mg_buf_adds(out, "       times  kind            kernel\n");
    for (uint32_t i = 0; i < p->n_tools && shown < max_rows; i++)
        if (!strcmp(p->tools[i].tool, "check") && !strcmp(p->tools[i].key, "findings"))
            shown += for_each(p, p->tools[i].json, columns, max_rows - shown, out);
    if (n > max_rows) mg_buf_printf(out, "   and %u more (--top %u, --json)\n", n - max_rows, n);
    add_unseen(p, out);
}

/* ---- registers that a kernel never writes ------------------------------------------------------------ */

/* The entries of all processes, one after the other; `at` is where to go on. NULL: no more. */
static const char *next_unwritten(const struct mg_recording *p, uint32_t *tool, const char *at)
{
    for (; *tool < p->n_tools; ++*tool, at = NULL) {
        const struct mg_ptool *t = &p->tools[*tool];
        if (strcmp(t->tool, "registers") || strcmp(t->key, "findings") || !mg_json_valid(t->json)) continue;
        const char *s = at ? mg_json_skip(at) : t->json + strspn(t->json, " \t\r\n") + 1;
        if (s) s += strspn(s, " \t\r\n,");
        if (s && *s == '{') return s;
    }
    return NULL;
}

static bool same_kernel(const char *a, const char *b)
{
    const char *x = value_of(a, "kernel"), *y = value_of(b, "kernel"), *end = x ? mg_json_skip(x) : NULL;
    return end && y && !strncmp(x, y, (size_t)(end - x));
}

static uint32_t count_of(const struct mg_recording *p, const char *kernel)
{
    uint32_t n = 0, tool = 0;
    for (const char *s = next_unwritten(p, &tool, NULL); s; s = next_unwritten(p, &tool, s))
        n += same_kernel(kernel, s);
    return n;
}

void mg_add_unwritten(const struct mg_recording *p, struct mg_buf *out, uint32_t max_rows)
{
    uint32_t tool = 0, rows = 0;
    const char *before = NULL;
    for (const char *s = next_unwritten(p, &tool, NULL); s; before = s, s = next_unwritten(p, &tool, s)) {
        struct mg_buf name = MG_BUF_INIT;
        uint32_t n = count_of(p, s);
        if ((before && same_kernel(before, s)) || rows++ >= max_rows) continue;
        add_text(&name, value_of(s, "kernel"));
        char *plain = mg_demangle(name.at ? name.at : "");
        mg_buf_printf(out, "  %.120s: may depend on registers that it never writes (",
                      plain     ? plain
                      : name.at ? name.at
                                : "");
        add_text(out, value_of(s, "register"));
        mg_buf_adds(out, " read at ");
        add_place(out, s);
        if (n > 1) mg_buf_printf(out, ", and %u more", n - 1);
        mg_buf_adds(out, ")\n");
        free(plain);
        mg_buf_release(&name);
    }
    if (rows > max_rows)
        mg_buf_printf(out, "  and %u more kernels that may depend on registers that they never write\n",
                      rows - max_rows);
}

void mg_write_unwritten(struct mg_json *j, const struct mg_recording *p)
{
    uint32_t tool = 0;
    mg_json_arr(j);
    for (const char *s = next_unwritten(p, &tool, NULL); s; s = next_unwritten(p, &tool, s)) {
        const char *end = mg_json_skip(s);
        struct mg_buf one = MG_BUF_INIT;
        if (end) mg_buf_add(&one, s, (size_t)(end - s));
        if (end) mg_json_raw(j, one.at);
        mg_buf_release(&one);
    }
    mg_json_end(j, ']');
}

uint32_t mg_report_check_errors(const struct mg_recording *p)
{
    struct mg_arena arena = MG_ARENA_INIT;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_tools; i++) {
        const struct mg_ptool *t = &p->tools[i];
        if (strcmp(t->tool, "check") || strcmp(t->key, "findings")) continue;
        for (const struct mg_jval *v = mg_jval_first(mg_jval_parse(&arena, t->json, strlen(t->json))); v; v = v->next) {
            const char *kind = mg_jval_text(v, "kind");
            n += kind && strcmp(kind, "note");
        }
    }
    mg_arena_release(&arena);
    return n;
}
