/* Findings as text and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "report/advice/priv.h"
#include "report/priv.h"

enum { INDENT = 15 }; /* of what belongs to a finding */

/* Text in lines of at most so many columns, each after the first with the indent in front. */
static void add_wrapped(struct mg_buf *out, const char *text, uint32_t indent, uint32_t columns)
{
    uint32_t at = indent;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (at > indent && at + word + 1 > columns) {
            mg_buf_printf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent) {
            mg_buf_addc(out, ' ');
            at++;
        }
        mg_buf_add(out, text, word);
        at += (uint32_t)word;
        text += word;
        while (*text == ' ') text++;
    }
    mg_buf_addc(out, '\n');
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void add_place(const struct mg_finding *f, struct mg_buf *out)
{
    if (f->file && f->line)
        mg_buf_printf(out, "%s:%u", base_name(f->file), f->line);
    else if (f->ptx_line)
        mg_buf_printf(out, "ptx:%u", f->ptx_line);
}

/* What stands at the place. */
static void add_source(const struct mg_finding *f, struct mg_sources *s, uint32_t columns, struct mg_buf *out)
{
    size_t bytes = 0;
    const char *text = f->file && f->line ? mg_sources_line(s, f->file, f->line, &bytes) : NULL;
    if (!text) return;
    mg_buf_printf(out, "%*s> ", INDENT, "");
    size_t room = columns - INDENT - 2, shown = bytes > room ? room - 2 : bytes;
    for (size_t i = 0; i < shown; i++) mg_buf_addc(out, (unsigned char)text[i] < ' ' ? ' ' : text[i]);
    if (shown < bytes) mg_buf_adds(out, "..");
    mg_buf_addc(out, '\n');
}

/* A verdict is of the whole kernel: it has neither a number nor a place. */
static void add_verdict(const struct mg_finding *f, const struct mg_recording *p, uint32_t columns, struct mg_buf *out)
{
    struct mg_buf name = MG_BUF_INIT;
    mg_add_kernel_name(&name, p, f->kernel, 60);
    mg_buf_printf(out, "      verdict  %s  %s\n%*s", f->rule->name, name.at, INDENT, "");
    add_wrapped(out, f->text, INDENT, columns);
    mg_buf_release(&name);
}

static void add_beside(const char *what, const char *text, uint32_t columns, struct mg_buf *out)
{
    struct mg_buf line = MG_BUF_INIT;
    mg_buf_printf(&line, "%s%s", what, text);
    mg_buf_printf(out, "%*s", INDENT, "");
    add_wrapped(out, line.at, INDENT, columns);
    mg_buf_release(&line);
}

/* What stands behind the first finding of a kernel: what limits its gain, and the kernel's verdicts, which are no
 * rivals of it. Marks these as told. */
static void add_context(const struct mg_findings *list, uint32_t ix, bool *told, bool *judged, uint32_t columns,
                        struct mg_buf *out)
{
    const struct mg_pkernel *k = list->at[ix].kernel;
    for (uint32_t i = 0; i < ix; i++)
        if (list->at[i].kernel == k && list->at[i].gain_pct > 0) return;
    if (list->at[ix].limit) add_beside("", list->at[ix].limit, columns, out);
    for (uint32_t i = ix + 1; i < list->n; i++) {
        const struct mg_finding *f = &list->at[i];
        if (f->kernel != k || f->gain_pct > 0) continue;
        told[i] = true;
        struct mg_buf what = MG_BUF_INIT;
        mg_buf_printf(&what, "Verdict %s: ", mg_finding_rule(f));
        add_beside(what.at, f->text, columns, out);
        mg_buf_release(&what);
    }
    for (uint32_t i = 0; i < list->n_unjudged; i++)
        if (list->unjudged[i].kernel == k && !judged[i]) {
            judged[i] = true;
            add_beside("No verdict: ", list->unjudged[i].why, columns, out);
        }
}

void mg_add_gain(struct mg_buf *out, const struct mg_finding *f)
{
    if (f->gain_pct < .5)
        mg_buf_adds(out, "<1 %");
    else
        mg_buf_printf(out, "%s%.0f %%", f->exact ? "" : "~", f->gain_pct);
}

static void add_one(const struct mg_finding *f, const struct mg_recording *p, struct mg_sources *sources,
                    uint32_t number, uint32_t columns, struct mg_buf *out)
{
    struct mg_buf gain = MG_BUF_INIT, name = MG_BUF_INIT;
    mg_add_gain(&gain, f);
    mg_add_kernel_name(&name, p, f->kernel, 60);
    mg_buf_printf(out, "  %2u. %7s  %s  ", (unsigned)number, gain.at, f->rule->name);
    add_place(f, out);
    mg_buf_printf(out, "  %s", name.at);
    if (f->buffer) mg_buf_printf(out, ", %s", f->buffer);
    if (f->header) mg_buf_printf(out, ", calls %s:%u", base_name(f->header), f->header_line);
    mg_buf_addc(out, '\n');
    add_source(f, sources, columns, out);
    mg_buf_printf(out, "%*s", INDENT, "");
    add_wrapped(out, f->text, INDENT, columns);
    mg_buf_release(&gain);
    mg_buf_release(&name);
}

/* A finding's text behind its figures, which end with the first ": " or ". ": the cause, and what to try. */
static const char *cause_of(const struct mg_finding *f)
{
    for (const char *p = f->text; *p; p++)
        if ((*p == ':' || *p == '.') && p[1] == ' ') return p + 2;
    return f->text;
}

/* Findings that say the same of other places of a kernel: an unrolled loop has many. */
static bool is_like(const struct mg_finding *a, const struct mg_finding *b)
{
    bool same_buffer = a->buffer == b->buffer || (a->buffer && b->buffer && !strcmp(a->buffer, b->buffer));
    return a->rule == b->rule && a->kernel == b->kernel && a->gain_pct > 0 && same_buffer &&
           !strcmp(cause_of(a), cause_of(b));
}

/* Where the same was found, behind its first. Marks them as told. */
static void add_likes(const struct mg_findings *list, uint32_t first, bool *told, uint32_t columns, struct mg_buf *out)
{
    enum { MOST_PLACES = 8 };
    struct mg_buf text = MG_BUF_INIT;
    uint32_t n = 0;
    for (uint32_t i = first + 1; i < list->n; i++) {
        const struct mg_finding *f = &list->at[i];
        if (told[i] || !is_like(&list->at[first], f)) continue;
        told[i] = true;
        if (n++ >= MOST_PLACES) continue;
        mg_buf_adds(&text, n == 1 ? "The same at " : ", ");
        add_place(f, &text);
        mg_buf_adds(&text, " (");
        mg_add_gain(&text, f);
        mg_buf_addc(&text, ')');
    }
    if (n > MOST_PLACES) mg_buf_printf(&text, " and %u more places", n - MOST_PLACES);
    if (n) {
        mg_buf_printf(out, "%*s", INDENT, "");
        add_wrapped(out, text.at, INDENT, columns);
    }
    mg_buf_release(&text);
}

/* Is an earlier finding that was told of the same file? */
static bool was_named(const struct mg_findings *list, const bool *told, uint32_t ix)
{
    for (uint32_t i = 0; i < ix; i++)
        if (told[i] && list->at[i].file && !strcmp(list->at[i].file, list->at[ix].file)) return true;
    return false;
}

/* A line of a source that was written anew is no line that ran. */
static void add_doubts(const struct mg_findings *list, const bool *told, struct mg_sources *sources, struct mg_buf *out)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const char *file = told[i] ? list->at[i].file : NULL;
        size_t bytes;
        if (!file || was_named(list, told, i) || !mg_sources_text(sources, file, &bytes)) continue;
        const char *doubt = mg_sources_doubt(sources, file);
        if (doubt) mg_buf_printf(out, "  %s %s\n", base_name(file), doubt);
    }
}

static void add_unjudged(const struct mg_findings *list, const bool *judged, const struct mg_recording *p,
                         uint32_t columns, struct mg_buf *out)
{
    enum { MOST_KERNELS = 3 };
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->n_unjudged; i++) {
        struct mg_buf text = MG_BUF_INIT;
        if (judged[i] || n++ >= MOST_KERNELS) continue;
        mg_buf_adds(&text, "no verdict on ");
        mg_add_kernel_name(&text, p, list->unjudged[i].kernel, 60);
        mg_buf_printf(&text, ": %s", list->unjudged[i].why);
        mg_buf_printf(out, "%*s", 6, "");
        add_wrapped(out, text.at, 6, columns);
        mg_buf_release(&text);
    }
    if (n > MOST_KERNELS) mg_buf_printf(out, "      nor on %u more kernels (--json)\n", n - MOST_KERNELS);
}

/* Whose parts gains and shares are. */
static const char *of_what(const struct mg_findings *list)
{
    return list->timed ? "kernel time" : "the kernels' work as counted";
}

void mg_add_findings(const struct mg_findings *list, const struct mg_recording *p, uint32_t columns, uint32_t most,
                     struct mg_buf *out)
{
    bool modelled = false, unplaced = false, gains = false, *told = mg_xcalloc(list->n + 1, sizeof *told),
         *judged = mg_xcalloc(list->n_unjudged + 1, sizeof *judged);
    uint32_t shown = 0, left = 0;
    struct mg_buf text = MG_BUF_INIT;
    struct mg_sources *sources = mg_sources_new(p);
    columns = columns >= 60 ? columns : 120;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct mg_finding *f = &list->at[i];
        if (told[i]) continue;
        if (most && shown == most) {
            left++;
            continue;
        }
        told[i] = true;
        shown++;
        if (f->gain_pct <= 0)
            add_verdict(f, p, columns, &text);
        else
            add_one(f, p, sources, shown, columns, &text);
        add_likes(list, i, told, columns, &text);
        if (f->gain_pct > 0) add_context(list, i, told, judged, columns, &text);
        gains |= f->gain_pct > 0;
        modelled |= f->gain_pct > 0 && !f->exact;
        unplaced |= f->gain_pct > 0 && !f->file && f->ptx_line;
    }
    if (gains)
        mg_buf_printf(out, "findings: what fixing each is estimated to gain, in per cent of %s%s%s; docs/findings.md\n",
                      of_what(list),
                      list->without_memory && !list->timed ? ", without memory (-t advise counts it)" : "",
                      modelled ? " (~: found by a model of the device)" : "");
    else if (list->complete)
        mg_buf_adds(out, "findings: none: no rule found what fixing would gain 1 % of the kernels' work\n");
    else if (shown)
        mg_buf_adds(out, "findings: nothing to fix among what was counted (-t advise counts all)\n");
    if (shown) mg_buf_add(out, text.at, text.n);
    if (left)
        mg_buf_printf(out, "  and %u more (margay report --top %u)\n", left, shown + left);
    else
        add_unjudged(list, judged, p, columns, out);
    if (unplaced)
        mg_buf_adds(out, "  ptx:N is a line of the PTX: built with nvcc -lineinfo, findings name source lines\n");
    add_doubts(list, told, sources, out);
    mg_sources_free(sources);
    mg_buf_release(&text);
    free(judged);
    free(told);
}

/* The text with what limits the gain. */
static struct mg_buf whole_text(const struct mg_finding *f)
{
    struct mg_buf text = MG_BUF_INIT;
    mg_buf_printf(&text, "%s%s%s", f->text, f->limit ? " " : "", f->limit ? f->limit : "");
    return text;
}

static void add_csv_number(struct mg_buf *out, bool has, double v)
{
    if (has) mg_buf_printf(out, "%.17g", v);
    mg_buf_addc(out, ',');
}

static void add_csv_text(struct mg_buf *out, const char *s)
{
    mg_add_csv_text(out, s);
    mg_buf_addc(out, ',');
}

void mg_add_findings_csv(const struct mg_findings *list, struct mg_buf *out)
{
    mg_buf_adds(
        out,
        "rank,rule,gain_pct,sure,kernel,kernel_name,function,file,line,ptx_line,buffer,measure,unit,share_pct,text,"
        "limit\r\n");
    for (uint32_t i = 0; i < list->n; i++) {
        const struct mg_finding *f = &list->at[i];
        add_csv_number(out, true, i + 1);
        add_csv_text(out, f->rule->name);
        add_csv_number(out, true, f->gain_pct);
        add_csv_text(out, f->exact ? "exact" : "model");
        add_csv_number(out, true, f->kernel->id);
        add_csv_text(out, f->kernel->demangled);
        add_csv_text(out, f->function);
        add_csv_text(out, f->file);
        add_csv_number(out, f->file && f->line, f->line);
        add_csv_number(out, f->ptx_line, f->ptx_line);
        add_csv_text(out, f->buffer);
        add_csv_number(out, true, f->measure);
        add_csv_text(out, f->unit);
        add_csv_number(out, true, f->share_pct);
        struct mg_buf text = whole_text(f);
        add_csv_text(out, text.at);
        mg_add_csv_text(out, f->limit);
        mg_buf_release(&text);
        mg_buf_adds(out, "\r\n");
    }
}

void mg_write_findings(const struct mg_findings *list, struct mg_json *j)
{
    mg_json_key(j, "findings");
    mg_json_arr(j);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct mg_finding *f = &list->at[i];
        mg_json_obj(j);
        mg_json_key_str(j, "rule", f->rule->name);
        mg_json_key_u64(j, "kernel", f->kernel->id);
        mg_json_key_str(j, "function", f->function);
        mg_json_key_str(j, "file", f->file);
        mg_json_key_u64_if(j, "line", f->file && f->line, f->line);
        mg_json_key_u64_if(j, "ptx_line", f->ptx_line != 0, f->ptx_line);
        mg_json_key_str(j, "header", f->header);
        mg_json_key_u64_if(j, "header_line", f->header != NULL, f->header_line);
        mg_json_key_str(j, "buffer", f->buffer);
        mg_json_key_f64(j, "measure", f->measure);
        mg_json_key_str(j, "unit", f->unit);
        mg_json_key_f64(j, "share_pct", f->share_pct);
        mg_json_key_f64(j, "gain_pct", f->gain_pct);
        mg_json_key_str(j, "sure", f->exact ? "exact" : "model");
        struct mg_buf text = whole_text(f);
        mg_json_key_str(j, "text", text.at);
        mg_json_key_str(j, "limit", f->limit);
        mg_buf_release(&text);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_key_str(j, "findings_in", of_what(list));
    mg_json_key_bool(j, "findings_complete", list->complete);
    mg_json_key(j, "no_verdict");
    mg_json_arr(j);
    for (uint32_t i = 0; i < list->n_unjudged; i++) {
        mg_json_obj(j);
        mg_json_key_u64(j, "kernel", list->unjudged[i].kernel->id);
        mg_json_key_str(j, "why", list->unjudged[i].why);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}
