/* See profile_file.h. */
#include "tau/profile_file.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/vec.h"

/* Quotes cannot stand inside a quoted name, nor can a line end there. */
static void print_name(const char *name, struct mg_buf *out)
{
    mg_buf_addc(out, '"');
    for (; *name; name++) mg_buf_addc(out, *name == '"' ? '\'' : (unsigned char)*name < ' ' ? ' ' : *name);
    mg_buf_addc(out, '"');
}

static void print_xml(const char *text, struct mg_buf *out)
{
    for (; *text; text++)
        if (*text == '<')
            mg_buf_adds(out, "&lt;");
        else if (*text == '>')
            mg_buf_adds(out, "&gt;");
        else if (*text == '&')
            mg_buf_adds(out, "&amp;");
        else
            mg_buf_addc(out, (unsigned char)*text < ' ' ? ' ' : *text);
}

void tau_file_print(const struct tau_file *f, struct mg_buf *out)
{
    mg_buf_printf(out, "%u templated_functions_MULTI_TIME\n# Name Calls Subrs Excl Incl ProfileCalls", f->n_functions);
    if (f->n_metadata) {
        mg_buf_adds(out, " # <metadata>");
        for (uint32_t i = 0; i < f->n_metadata; i++) {
            mg_buf_adds(out, "<attribute><name>");
            print_xml(f->metadata[i].name, out);
            mg_buf_adds(out, "</name><value>");
            print_xml(f->metadata[i].value, out);
            mg_buf_adds(out, "</value></attribute>");
        }
        mg_buf_adds(out, "</metadata>");
    }
    mg_buf_addc(out, '\n');
    for (uint32_t i = 0; i < f->n_functions; i++) {
        const struct tau_function *x = &f->functions[i];
        print_name(x->name, out);
        mg_buf_printf(out, " %llu %llu %.16G %.16G 0 GROUP=", (unsigned long long)x->calls,
                      (unsigned long long)x->children, x->exclusive_us, x->inclusive_us);
        print_name(x->group, out);
        mg_buf_addc(out, '\n');
    }
    mg_buf_adds(out, "0 aggregates\n");
    if (!f->n_events) return;
    mg_buf_printf(out, "%u userevents\n# eventname numevents max min mean sumsqr\n", f->n_events);
    for (uint32_t i = 0; i < f->n_events; i++) {
        const struct tau_user_event *x = &f->events[i];
        print_name(x->name, out);
        mg_buf_printf(out, " %llu %.16G %.16G %.16G %.16G\n", (unsigned long long)x->n, x->most, x->least, x->mean,
                      x->sum_of_squares);
    }
}

/* ---- reading ------------------------------------------------------------------------------------------- */

struct reader {
    char *next, *end;
    const char *path;
    uint32_t line;
    struct mg_diag *d;
};

static enum mg_err bad(const struct reader *r, const char *what)
{
    return mg_diag_add(r->d, MG_ERR_INPUT, MG_SEV_ERROR, r->path, r->line, 0, NULL, "no TAU profile: %s", what);
}

/* The next line, ended by NUL; NULL at the end. */
static char *next_line(struct reader *r)
{
    if (r->next >= r->end) return NULL;
    char *line = r->next, *newline = memchr(line, '\n', (size_t)(r->end - line));
    if (newline) *newline = 0;
    r->next = newline ? newline + 1 : r->end;
    r->line++;
    return line;
}

static bool read_count(char **at, uint64_t *out)
{
    while (**at == ' ') ++*at;
    const char *end = mg_number_read_u64(*at, out);
    if (!end || *end == '.') return false;
    *at = (char *)end;
    return true;
}

static bool read_real(char **at, double *out)
{
    char *end;
    *out = mg_number_plain(*at, &end);
    if (end == *at) return false;
    *at = end;
    return true;
}

/* "name" at *at: its text; *at moves behind the second quote. */
static const char *read_name(char **at)
{
    if (**at != '"') return NULL;
    char *name = ++*at, *quote = strchr(name, '"');
    if (!quote) return NULL;
    *quote = 0;
    *at = quote + 1;
    return name;
}

/* "N text" with at most `most` lines to follow. */
static bool read_head(char *line, const char *text, uint64_t most, uint32_t *n)
{
    uint64_t count;
    if (!line || !read_count(&line, &count) || *line++ != ' ' || strncmp(line, text, strlen(text)) || count > most)
        return false;
    *n = (uint32_t)count;
    return true;
}

static bool read_function(char *line, struct tau_function *f)
{
    f->name = read_name(&line);
    uint64_t profiles;
    if (!f->name || !read_count(&line, &f->calls) || !read_count(&line, &f->children) ||
        !read_real(&line, &f->exclusive_us))
        return false;
    if (!read_real(&line, &f->inclusive_us) || !read_count(&line, &profiles)) return false;
    char *group = strstr(line, "GROUP=");
    if (!group) return false;
    group += strlen("GROUP=");
    return (f->group = read_name(&group)) != NULL;
}

static bool read_event(char *line, struct tau_user_event *e)
{
    e->name = read_name(&line);
    return e->name && read_count(&line, &e->n) && read_real(&line, &e->most) && read_real(&line, &e->least) &&
           read_real(&line, &e->mean) && read_real(&line, &e->sum_of_squares);
}

/* Whole lines of the rest, a bound on how many entries can follow. */
static uint64_t lines_left(const struct reader *r)
{
    uint64_t n = 1;
    for (const char *c = r->next; c < r->end; c++) n += *c == '\n';
    return n;
}

static enum mg_err parse(struct reader *r, struct tau_file *f)
{
    if (!read_head(next_line(r), "templated_functions", lines_left(r), &f->n_functions))
        return bad(r, "the first line counts no functions");
    f->functions = calloc(f->n_functions + 1u, sizeof *f->functions);
    char *line = next_line(r);
    if (!line || line[0] != '#') return bad(r, "the line of column names is missing");
    for (uint32_t i = 0; i < f->n_functions; i++)
        if (!(line = next_line(r)) || !read_function(line, &f->functions[i]))
            return bad(r, "this line should be a function");
    uint32_t n_aggregates;
    if (!read_head(next_line(r), "aggregates", lines_left(r), &n_aggregates))
        return bad(r, "the line that counts aggregates is missing");
    for (uint32_t i = 0; i < n_aggregates; i++)
        if (!next_line(r)) return bad(r, "aggregates are missing");
    if (!(line = next_line(r))) return MG_ERR_OK;
    if (!read_head(line, "userevents", lines_left(r), &f->n_events))
        return bad(r, "this line should count user events");
    f->events = calloc(f->n_events + 1u, sizeof *f->events);
    if (!(line = next_line(r)) || line[0] != '#') return bad(r, "the line of column names is missing");
    for (uint32_t i = 0; i < f->n_events; i++)
        if (!(line = next_line(r)) || !read_event(line, &f->events[i]))
            return bad(r, "this line should be a user event");
    return MG_ERR_OK;
}

enum mg_err tau_file_parse(char *text, size_t bytes, const char *path, struct tau_file *f, struct mg_diag *d)
{
    *f = (struct tau_file){.text = text};
    const char *name = strrchr(path, '/');
    unsigned node, context, thread;
    if (sscanf(name ? name + 1 : path, "profile.%u.%u.%u", &node, &context, &thread) == 3)
        f->node = node, f->context = context, f->thread = thread;
    struct reader r = {text, text + bytes, path, 0, d};
    if (memchr(text, 0, bytes)) return bad(&r, "it holds a NUL byte");
    return parse(&r, f);
}

void tau_file_release(struct tau_file *f)
{
    free(f->functions);
    free(f->events);
    free(f->text);
    *f = (struct tau_file){0};
}
