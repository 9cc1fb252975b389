/* Names of kernels and functions for people: C++ names shortened by family, so that what tells two of them apart stays.
 */
#include <stdlib.h>
#include <string.h>

#include "report/priv.h"

/* Behind the bracket that closes the one at `at`; at the end where none does. */
static size_t behind_closer(const char *name, size_t at)
{
    char open = name[at], close = open == '(' ? ')' : open == '[' ? ']' : '>';
    int depth = 0;
    for (; name[at]; at++) {
        if (name[at] == '-' && name[at + 1] == '>') { /* no bracket */
            at++;
            continue;
        }
        depth += (name[at] == open) - (name[at] == close);
        if (!depth) return at + 1;
    }
    return at;
}

/* Where the parameter list of a function begins: the first round bracket outside of template arguments, but for that of
 * "(anonymous namespace)" and "operator()". */
static size_t parameters_at(const char *name)
{
    for (size_t i = 0; name[i];) {
        if (!strncmp(name + i, "(anonymous namespace)", 21))
            i += 21;
        else if (!strncmp(name + i, "operator()", 10))
            i += 10;
        else if (!strncmp(name + i, "operator<", 9))
            i += 9 + (name[i + 9] == '<');
        else if (name[i] == '<')
            i = behind_closer(name, i);
        else if (name[i] == '(')
            return i;
        else
            i++;
    }
    return strlen(name);
}

/* Drops what stands in template brackets of the first n bytes, innermost ones last: keep holds how many levels stay. */
static void add_levels(struct mg_buf *out, const char *name, size_t n, int keep)
{
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        bool opens = name[i] == '<' && strncmp(name + i - MG_MIN(i, 8u), "operator", 8);
        if (opens && depth++ == keep) mg_buf_adds(out, "<..>");
        if (depth <= keep) mg_buf_addc(out, name[i]);
        if (name[i] == '>' && depth && (!i || name[i - 1] != '-')) depth--;
    }
}

/* Where the last part of a qualified name begins, template arguments not looked into. */
static size_t last_part(const char *name)
{
    size_t from = 0;
    int depth = 0;
    for (size_t i = 0; name[i]; i++) {
        depth += (name[i] == '<' || name[i] == '(') - (name[i] == '>' || name[i] == ')');
        if (!depth && name[i] == ':' && name[i + 1] == ':') from = i + 2;
        if (!depth && name[i] == ' ') from = i + 1; /* behind a return type */
    }
    return from;
}

void mg_add_name(struct mg_buf *out, const char *name, uint32_t width)
{
    struct mg_buf b = MG_BUF_INIT;
    size_t n = parameters_at(name);
    if (strlen(name) <= width) {
        mg_buf_adds(out, name);
        return;
    }
    bool fits = n <= width;
    if (fits) mg_buf_add(&b, name, n);
    for (int keep = 2; keep >= 0 && !fits; keep--) {
        mg_buf_reset(&b);
        add_levels(&b, name, n, keep);
        fits = b.n <= width;
    }
    const char *text = b.n ? b.at : "";
    if (!fits) text += last_part(text);
    size_t shown = MG_MIN(strlen(text), (size_t)width);
    mg_buf_add(out, text, shown);
    if (strlen(text) > width && width > 2) memcpy(out->at + out->n - 2, "..", 2);
    mg_buf_release(&b);
}

/* Where a name begins behind its return type: the last space outside of brackets in front of the parameters. */
static size_t behind_type(const char *name, size_t n)
{
    size_t from = 0;
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        depth += (name[i] == '<' || name[i] == '(') - (name[i] == '>' || name[i] == ')');
        if (!strncmp(name + i, "operator", 8)) break;
        if (!depth && name[i] == ' ') from = i + 1;
    }
    return from;
}

void mg_add_short_name(struct mg_buf *out, const char *name)
{
    size_t n = parameters_at(name), from = behind_type(name, n);
    if (from < n)
        mg_buf_add(out, name + from, n - from);
    else
        mg_buf_adds(out, name);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool mg_short_names(const struct mg_recording *p)
{
    char **names = mg_xcalloc(p->n_kernels + 1, sizeof *names);
    bool differ = true;
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        struct mg_buf b = MG_BUF_INIT;
        mg_add_short_name(&b, p->kernels[i].demangled);
        names[i] = mg_xstrdup(b.n ? b.at : "");
        mg_buf_release(&b);
    }
    qsort(names, p->n_kernels, sizeof *names, by_text);
    for (uint32_t i = 1; i < p->n_kernels; i++) differ = differ && strcmp(names[i - 1], names[i]);
    for (uint32_t i = 0; i < p->n_kernels; i++) free(names[i]);
    free(names);
    return differ;
}

void mg_add_kernel_name(struct mg_buf *out, const struct mg_recording *p, const struct mg_pkernel *k, uint32_t width)
{
    struct mg_buf b = MG_BUF_INIT;
    if (mg_short_names(p)) mg_add_short_name(&b, k->demangled);
    mg_add_name(out, b.n ? b.at : k->demangled, width);
    mg_buf_release(&b);
}

void mg_add_family(struct mg_buf *out, const char *name)
{
    struct mg_buf b = MG_BUF_INIT;
    size_t from = 0;
    int depth = 0;
    add_levels(&b, name, parameters_at(name), 0);
    const char *text = b.n ? b.at : "";
    for (size_t i = 0; text[i]; i++) { /* behind a return type */
        depth += (text[i] == '(') - (text[i] == ')');
        if (text[i] == ' ' && !depth && strncmp(text + i - MG_MIN(i, 8u), "operator", 8)) from = i + 1;
    }
    for (const char *at = text + from; *at; at++) {
        if (!strncmp(at, "<..>", 4))
            at += 3;
        else
            mg_buf_addc(out, *at);
    }
    mg_buf_release(&b);
}
