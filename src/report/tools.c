/* Results that tools left as JSON text, and the tools a run was given. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/vec.h"
#include "report/advice/advice.h"
#include "report/priv.h"
#include "tool/spec.h"

/* ---- the list of tools --------------------------------------------------------------------------- */

struct named {
    char *name, *args;
    uint32_t use;
}; /* use: UINT32_MAX: none is recorded */
typedef MG_VEC(struct named) named_vec;

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    return c ? c : (x->use > y->use) - (x->use < y->use);
}

/* What the run was given: its recorded tools; before version 3 what stands in the process' list. */
static void list_tools(const struct mg_recording *p, named_vec *v)
{
    for (uint32_t u = 0; u < p->n_uses; u++)
        *mg_vec_push(v) = (struct named){mg_xstrdup(p->uses[u].name), mg_xstrdup(p->uses[u].args), u};
    for (uint32_t i = 0; i < p->n_processes && !p->n_uses; i++)
        for (const char *at = p->processes[i].tools; *at;) {
            char *spec = mg_tool_spec_next(&at);
            size_t n = spec ? strcspn(spec, ",") : 0;
            if (n)
                *mg_vec_push(v) = (struct named){mg_xstrdup(spec), mg_xstrdup(spec[n] ? spec + n + 1 : ""), UINT32_MAX};
            if (n) v->at[v->n - 1].name[n] = 0;
            free(spec);
        }
    bool timeline = false;
    for (uint32_t i = 0; i < v->n; i++) timeline |= !strcmp(v->at[i].name, "timeline");
    if (!timeline && mg_tau_has_files(p->dir))
        *mg_vec_push(v) = (struct named){mg_xstrdup("timeline"), mg_xstrdup(""), UINT32_MAX};
    for (uint32_t i = 0; i < p->n_tools; i++)
        *mg_vec_push(v) = (struct named){mg_xstrdup(p->tools[i].tool), mg_xstrdup(""), UINT32_MAX};
    if (v->n) qsort(v->at, v->n, sizeof *v->at, by_name);
}

static void release_list(named_vec *v)
{
    for (uint32_t i = 0; i < v->n; i++) {
        free(v->at[i].name);
        free(v->at[i].args);
    }
    mg_vec_release(v);
}

static void write_result(struct mg_json *j, const struct mg_recording *p, const struct named *t)
{
    for (uint32_t i = 0; i < p->n_tools; i++) {
        const struct mg_ptool *r = &p->tools[i];
        uint32_t n = 0;
        bool seen = false;
        if (strcmp(r->tool, t->name)) continue;
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

/* Kernels that the tool left alone. */
static void write_left_alone(struct mg_json *j, const struct mg_recording *p, uint32_t use)
{
    bool any = false;
    for (uint32_t i = 0; i < p->n_regions; i++) {
        const struct mg_pregion *g = &p->regions[i];
        if (g->use != use || !g->reason) continue;
        if (!any) {
            mg_json_key(j, "left_alone");
            mg_json_arr(j);
        }
        any = true;
        mg_json_obj(j);
        mg_json_key_u64(j, "kernel", g->kernel);
        mg_json_key_str(j, "reason", g->reason);
        mg_json_end(j, '}');
    }
    if (any) mg_json_end(j, ']');
}

void mg_report_tools_json(struct mg_json *j, const struct mg_recording *p, const struct mg_report_opts *o)
{
    named_vec v = {0};
    list_tools(p, &v);
    mg_json_key(j, "tools");
    mg_json_obj(j);
    for (uint32_t i = 0, end; i < v.n; i = end) {
        const struct named *t = &v.at[i];
        for (end = i + 1;
             end < v.n && !strcmp(v.at[end].name, t->name) && (v.at[end].use == UINT32_MAX || v.at[end].use == t->use);)
            end++;
        for (uint32_t k = i; k < end; k++)
            if (strlen(v.at[k].args) > strlen(t->args)) t = &v.at[k];
        if (o->tool && strcmp(o->tool, t->name)) continue;
        char key[600];
        bool again = i && !strcmp(v.at[i - 1].name, t->name); /* joined runs with other options */
        snprintf(key, sizeof key, again ? "%.80s,%.500s" : "%.80s", t->name, t->args);
        mg_json_key(j, key);
        mg_json_obj(j);
        mg_json_key(j, "options");
        mg_json_str(j, t->args);
        write_result(j, p, t);
        if (t->use != UINT32_MAX) {
            struct mg_table unused = {0};
            mg_tool_tell(p, t->use, o, &unused, j);
            mg_table_release(&unused);
            write_left_alone(j, p, t->use);
        } else if (!strcmp(t->name, "timeline")) { /* the program used the TAUcuda library */
            mg_tau_tell(p->dir, false, NULL, j);
        }
        mg_json_end(j, '}');
    }
    mg_json_end(j, '}');
    release_list(&v);
}

bool mg_report_has_tool(const struct mg_recording *p, const char *name)
{
    named_vec v = {0};
    bool found = !strcmp(name, MG_ADVICE);
    list_tools(p, &v);
    for (uint32_t i = 0; i < v.n; i++) found |= !strcmp(v.at[i].name, name);
    release_list(&v);
    return found;
}
