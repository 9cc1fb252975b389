/* What `margay help` prints of docs/: whole pages, and what docs/findings.md says of one rule of the findings. The text
 * comes from these files when Margay is built (scripts/gen-docs), so that help and documents are one. */
#include "cli/docs.h"

#include <stdio.h>
#include <string.h>

static const struct doc {
    const char *name, *text;
} docs[] = {
#define DOC(name, text) {name, text},
#include "help_docs.h"
#undef DOC
};

enum { COLUMNS = 100 };

const char *mg_doc_find(const char *name)
{
    for (size_t i = 0; i < MG_COUNT_OF(docs); i++) {
        const char *ways[] = {docs[i].name, docs[i].name + strlen("docs/"), strrchr(docs[i].name, '/') + 1};
        for (size_t w = 0; w < MG_COUNT_OF(ways); w++) {
            size_t n = strlen(ways[w]) - strlen(".md");
            if (!strcmp(ways[w], name) || (strlen(name) == n && !memcmp(ways[w], name, n))) return docs[i].text;
        }
    }
    return NULL;
}

void mg_doc_list(struct mg_buf *out)
{
    for (size_t i = 0; i < MG_COUNT_OF(docs); i++) mg_buf_printf(out, "  %s\n", docs[i].name);
}

/* Markdown of one paragraph as plain words: no marks, of a link its text. */
static void add_plain(struct mg_buf *out, const char *at, size_t n)
{
    const char *end = at + n;
    while (at < end) {
        const char *close = *at == '[' ? memchr(at, ']', (size_t)(end - at)) : NULL;
        if (close && close + 1 < end && close[1] == '(') {
            const char *behind = memchr(close, ')', (size_t)(end - close));
            add_plain(out, at + 1, (size_t)(close - at - 1));
            at = behind ? behind + 1 : end;
        } else if (*at == '`' || (*at == '*' && at + 1 < end && at[1] == '*')) {
            at += *at == '*' ? 2 : 1;
        } else {
            mg_buf_addc(out, *at == '\n' ? ' ' : *at);
            at++;
        }
    }
}

static void add_paragraph(struct mg_buf *out, const char *label, const char *at, size_t n)
{
    struct mg_buf text = MG_BUF_INIT;
    uint32_t column = 4;
    mg_buf_adds(&text, label);
    add_plain(&text, at, n);
    mg_buf_adds(out, "    ");
    for (const char *p = text.at; *p;) {
        size_t word = strcspn(p, " "), gap = strspn(p + word, " ");
        if (column > 4 && column + word > COLUMNS) {
            mg_buf_adds(out, "\n    ");
            column = 4;
        }
        mg_buf_add(out, p, word);
        mg_buf_adds(out, p[word] ? " " : "");
        column += (uint32_t)word + 1;
        p += word + gap;
    }
    mg_buf_addc(out, '\n');
    mg_buf_release(&text);
}

/* Does the text name the rule, as `rule`? */
static bool names_rule(const char *at, size_t n, const char *rule)
{
    size_t length = strlen(rule);
    for (size_t i = 0; i + length + 2 <= n; i++)
        if (at[i] == '`' && !memcmp(at + i + 1, rule, length) && at[i + length + 1] == '`') return true;
    return false;
}

/* The cells of a table's row, in the order of its head. */
static void add_row(struct mg_buf *out, const char *row, size_t n)
{
    static const char *const labels[] = {"", "found when: ", "gain: ", "place: ", "try: "};
    const char *at = memchr(row + 1, '|', n - 1), *end = row + n;
    for (size_t i = 1; at && i < MG_COUNT_OF(labels); i++) {
        const char *next = memchr(at + 1, '|', (size_t)(end - at - 1));
        if (!next) return;
        const char *first = at + 1 + (at[1] == ' '), *last = next - (next[-1] == ' ');
        bool nothing = last - first == 1 && (*first == '0' || *first == '-');
        if (!nothing) add_paragraph(out, labels[i], first, (size_t)(last - first));
        at = next;
    }
}

bool mg_doc_rule(const char *rule, struct mg_buf *out)
{
    bool found = false;
    const char *at = strstr(mg_doc_find("docs/findings.md"), "\n## The rules\n");
    for (at = at ? at + 1 : ""; *at;) {
        size_t n = strcspn(at, "\n");
        if (*at == '|') {
            const char *cell = memchr(at + 1, '|', n > 1 ? n - 1 : 0);
            if (cell && names_rule(at, (size_t)(cell - at), rule)) {
                add_row(out, at, n);
                found = true;
            }
        } else if (!strncmp(at, "- ", 2)) {
            while (at[n] && !strncmp(at + n, "\n  ", 3)) n += 1 + strcspn(at + n + 1, "\n");
            if (names_rule(at, n, rule)) add_paragraph(out, "- ", at + 2, n - 2);
        } else if (!strncmp(at, "## ", 3) && strncmp(at, "## The rules", 12)) {
            break;
        }
        at += n + (at[n] == '\n');
    }
    return found;
}
