/* Kernels that may read registers they never wrote (analysis/unwritten.h): their results and counts need
 * not be the same everywhere, in the native kernel and in its twin. Looked for once a kernel, on every device, when its
 * blocks are; into the profile as tools/registers/findings. */
#include "inject/findings.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/unwritten.h"
#include "base/json.h"
#include "base/vec.h"
#include "inject/kernels.h"

enum { MOST_ENTRIES = 256 };
struct entry {
    char *kernel, *function, *reg, *file;
    uint32_t ptx_line, line;
};

static struct {
    pthread_mutex_t lock;
    MG_VEC(struct entry) list;
    bool changed;
} unwritten = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The source line in force at a node. */
static char *source_of(const struct mg_cfg *c, mg_id node, uint32_t *line)
{
    const struct mg_module *m = c->m;
    mg_id id = node;
    *line = 0;
    while (id && m->nodes.at[id].kind != MG_NODE_loc) id = m->nodes.at[id].prev;
    const struct mg_loc *loc = id ? &m->locs.at[m->nodes.at[id].ref] : NULL;
    for (uint32_t i = 0; loc && i < m->files.n; i++)
        if (m->files.at[i].index == loc->file && m->files.at[i].path) {
            *line = loc->line;
            return strdup(mg_name(m, m->files.at[i].path));
        }
    return NULL;
}

static void note(const struct mg_code *k, const struct mg_cfg *c, const struct mg_unwritten_use *u)
{
    struct mg_buf reg = MG_BUF_INIT;
    if (unwritten.list.n == MOST_ENTRIES) return;
    mg_reg_text(c->m, u->reg, &reg);
    struct entry e = {.kernel = strdup(k->sites->kernel),
                      .function = strdup(mg_name(c->m, c->m->funcs.at[c->func].name)),
                      .reg = strdup(reg.at ? reg.at : ""),
                      .ptx_line = c->m->nodes.at[u->node].line};
    e.file = source_of(c, u->node, &e.line);
    *mg_vec_push(&unwritten.list) = e;
    unwritten.changed = true;
    mg_buf_release(&reg);
}

void mg_unwritten_look(const struct mg_code *k)
{
    for (uint32_t i = 0; i < k->sites->n_funcs; i++) {
        struct mg_unwritten *u = mg_unwritten_new(k->sites->cfgs[i]);
        pthread_mutex_lock(&unwritten.lock);
        for (uint32_t r = 0; r < u->n; r++) note(k, k->sites->cfgs[i], &u->at[r]);
        pthread_mutex_unlock(&unwritten.lock);
        mg_unwritten_free(u);
    }
}

static void write_one(struct mg_json *j, uint32_t i)
{
    const struct entry *e = &unwritten.list.at[i];
    mg_json_obj(j);
    mg_json_key_str(j, "kernel", e->kernel);
    mg_json_key_str(j, "function", e->function);
    mg_json_key_str(j, "register", e->reg);
    mg_json_key_u64(j, "ptx_line", e->ptx_line);
    mg_json_key_str(j, "file", e->file);
    mg_json_key_u64_if(j, "line", e->line, e->line);
    mg_json_end(j, '}');
}

void mg_unwritten_write(bool last)
{
    pthread_mutex_lock(&unwritten.lock);
    if (unwritten.changed) mg_findings_tell("registers", unwritten.list.n, write_one);
    unwritten.changed = false;
    for (uint32_t i = 0; last && i < unwritten.list.n; i++) {
        free(unwritten.list.at[i].kernel);
        free(unwritten.list.at[i].function);
        free(unwritten.list.at[i].reg);
        free(unwritten.list.at[i].file);
    }
    if (last) mg_vec_release(&unwritten.list);
    pthread_mutex_unlock(&unwritten.lock);
}
