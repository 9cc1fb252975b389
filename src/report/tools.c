/* Results that tools left as JSON text, and the tools a run was given. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "report/priv.h"

/* ---- is it JSON? A database may be damaged: its text never breaks the document ------------------ */

static const char *skip_space(const char *s)
{
    return s + strspn(s, " \t\r\n");
}

static const char *skip_string(const char *s)
{
    if (*s++ != '"') return NULL;
    for (; *s != '"'; s++) {
        if ((unsigned char)*s < 0x20) return NULL; /* the end, too */
        if (*s == '\\' && !strchr("\"\\/bfnrtu", *++s)) return NULL;
        if (!*s) return NULL;
    }
    return s + 1;
}

static const char *skip_value(const char *s, int depth);

static const char *skip_list(const char *s, char close, int depth)
{
    s = skip_space(s + 1);
    if (*s == close) return s + 1;
    for (;;) {
        if (close == '}') {
            if (!(s = skip_string(s))) return NULL;
            s = skip_space(s);
            if (*s++ != ':') return NULL;
        }
        if (!(s = skip_value(s, depth + 1))) return NULL;
        s = skip_space(s);
        if (*s == close) return s + 1;
        if (*s++ != ',') return NULL;
        s = skip_space(s);
    }
}

static const char *skip_value(const char *s, int depth)
{
    static const char *const words[] = {"true", "false", "null"};
    s = skip_space(s);
    if (depth > 40) return NULL;
    if (*s == '{') return skip_list(s, '}', depth);
    if (*s == '[') return skip_list(s, ']', depth);
    if (*s == '"') return skip_string(s);
    for (size_t i = 0; i < MG_COUNT_OF(words); i++)
        if (!strncmp(s, words[i], strlen(words[i]))) return s + strlen(words[i]);
    if (*s != '-' && (*s < '0' || *s > '9')) return NULL;
    char *end;
    size_t n = strspn(s, "-+.0123456789eE");
    strtod(s, &end);
    return end == s + n ? end : NULL;
}

const char *mg_json_skip(const char *text) { return skip_value(text, 0); }

bool mg_json_valid(const char *text)
{
    const char *end = skip_value(text, 0);
    return end && !*skip_space(end);
}

/* ---- the list of tools --------------------------------------------------------------------------- */

struct named { const char *name; size_t len; const char *args; size_t args_len; };

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int c = strncmp(x->name, y->name, MG_MIN(x->len, y->len));
    return c ? c : x->len < y->len ? -1 : x->len > y->len;
}

static void write_result(struct mg_json *j, const struct mg_profile *p, const struct named *t)
{
    for (uint32_t i = 0; i < p->n_tools; i++) {
        const struct mg_ptool *r = &p->tools[i];
        uint32_t n = 0;
        bool seen = false;
        if (strlen(r->tool) != t->len || memcmp(r->tool, t->name, t->len)) continue;
        for (uint32_t k = 0; k < p->n_tools; k++) {
            bool same = !strcmp(p->tools[k].tool, r->tool) && !strcmp(p->tools[k].key, r->key);
            n += same;
            seen |= same && k < i;
        }
        if (seen) continue;
        mg_json_key(j, r->key);
        if (n == 1) {
            mg_json_raw(j, mg_json_valid(r->json) ? r->json : "null");
            continue;
        }
        mg_json_arr(j);
        for (uint32_t k = i; k < p->n_tools; k++) {
            if (strcmp(p->tools[k].tool, r->tool) || strcmp(p->tools[k].key, r->key)) continue;
            mg_json_obj(j);
            mg_json_key(j, "process");
            mg_json_u64(j, p->tools[k].process);
            mg_json_key(j, "value");
            mg_json_raw(j, mg_json_valid(p->tools[k].json) ? p->tools[k].json : "null");
            mg_json_end(j, '}');
        }
        mg_json_end(j, ']');
    }
}

void mg_report_tools_json(struct mg_json *j, const struct mg_profile *p, const struct mg_report_opts *o)
{
    MG_VEC(struct named) v = {0};
    for (uint32_t i = 0; i < p->n_processes; i++)
        for (const char *at = p->processes[i].tools; *at;) {
            size_t n = strcspn(at, ";"), name = strcspn(at, ",;");
            if (name) *mg_vec_push(&v) = (struct named){at, name, at + name + (name < n), n - name - (name < n)};
            at += n + (at[n] == ';');
        }
    for (uint32_t i = 0; i < p->n_tools; i++) *mg_vec_push(&v) = (struct named){p->tools[i].tool, strlen(p->tools[i].tool), "", 0};
    if (v.n) qsort(v.at, v.n, sizeof *v.at, by_name);
    mg_json_key(j, "tools");
    mg_json_obj(j);
    for (uint32_t i = 0; i < v.n;) {
        struct named t = v.at[i];
        for (; i < v.n && !by_name(&v.at[i], &t); i++)
            if (v.at[i].args_len > t.args_len) t = v.at[i];
        if (o->tool && (strlen(o->tool) != t.len || memcmp(o->tool, t.name, t.len))) continue;
        char *name = mg_xmalloc(t.len + t.args_len + 2), *args = name + t.len + 1;
        memcpy(name, t.name, t.len);
        name[t.len] = 0;
        memcpy(args, t.args, t.args_len);
        args[t.args_len] = 0;
        mg_json_key(j, name);
        mg_json_obj(j);
        mg_json_key(j, "options");
        mg_json_str(j, args);
        write_result(j, p, &t);
        mg_json_end(j, '}');
        free(name);
    }
    mg_json_end(j, '}');
    mg_vec_release(&v);
}

bool mg_report_has_tool(const struct mg_profile *p, const char *name)
{
    size_t len = strlen(name);
    for (uint32_t i = 0; i < p->n_tools; i++)
        if (!strcmp(p->tools[i].tool, name)) return true;
    for (uint32_t i = 0; i < p->n_processes; i++)
        for (const char *at = p->processes[i].tools; *at;) {
            size_t n = strcspn(at, ";");
            if (strcspn(at, ",;") == len && !memcmp(at, name, len)) return true;
            at += n + (at[n] == ';');
        }
    return false;
}
