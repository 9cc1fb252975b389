/* A tool outside the tree that uses every part of the layer once; tests/inject/tools.sh has the closed forms.
 *   cells of the kernel   0 sum: threads, 1 max: thread of the CTA, 2 or: 1 << (thread & 7), 3 sum: launch + 1 for
 *                         each thread
 *   table                 by thread / 64 of the CTA: threads
 * Options: out=FILE: finalize writes "launch complete threads" there; refuse: leaves every kernel alone. */
#include "tool/host.h"
#include "tool/plugin.h"
#include "view/result.h"

#include <string.h>

struct conf {
    char out[512];
    bool refuse;
    uint32_t launches, allocations, modules, kernels, arrays, textures;
    const struct mg_tool_host *host;
};

static const struct mg_tool_opt opts[] = {
    {"out", "", "file for finalize"}, {"refuse", "off", "leave every kernel alone"}, {0}};

static enum mg_err configure(const char *args, void **out, struct mg_diag *d)
{
    struct conf *c = mg_xcalloc(1, sizeof *c);
    *out = NULL;
    if (!strncmp(args, "out=", 4))
        snprintf(c->out, sizeof c->out, "%s", args + 4);
    else if (!strcmp(args, "refuse"))
        c->refuse = true;
    else if (*args) {
        free(c);
        return mg_diag_err(d, MG_ERR_INPUT, "no option %s", args);
    }
    *out = c;
    return MG_ERR_OK;
}

static enum mg_err analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    if (((const struct conf *)conf)->refuse) return mg_diag_err(d, MG_ERR_UNSUPPORTED, "it refuses every kernel");
    mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 1, MG_MERGE_SUM, 7);
    mg_patch_cells(p, 1, MG_MERGE_MAX);
    mg_patch_cells(p, 1, MG_MERGE_OR);
    mg_patch_cells(p, 1, MG_MERGE_SUM);
    mg_patch_table(p, 1, 1, MG_MERGE_SUM, 16);
    mg_patch_words(p, 1);
    return MG_ERR_OK;
}

static enum mg_err instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    struct mg_code_at *at = mg_at_entry(p, 0);
    mg_id tid = mg_value_tid(at), bit = mg_code_temp(at, MG_TYPE_b32), one = mg_code_temp(at, MG_TYPE_b32),
          key = mg_code_temp(at, MG_TYPE_b64);
    mg_cell_update(at, 0, mg_o_imm(1), MG_TIMES);
    mg_cell_update(at, 1, mg_o_reg(tid), MG_EACH);
    MG_CODE(at, "and.b32", mg_o_reg(bit), mg_o_reg(tid), mg_o_imm(7));
    MG_CODE(at, "mov.b32", mg_o_reg(one), mg_o_imm(1));
    MG_CODE(at, "shl.b32", mg_o_reg(bit), mg_o_reg(one), mg_o_reg(bit));
    mg_cell_update(at, 2, mg_o_reg(bit), MG_EACH);
    mg_cell_update(at, 3, mg_o_reg(mg_value_word(at, 0)), MG_TIMES);
    MG_CODE(at, "shr.u32", mg_o_reg(bit), mg_o_reg(tid), mg_o_imm(6));
    MG_CODE(at, "cvt.u64.u32", mg_o_reg(key), mg_o_reg(bit));
    mg_table_update(at, 0, &key, (const struct mg_opnd[]){mg_o_imm(1)}, 1, MG_EACH);
    return MG_ERR_OK;
}

static void initialize(const void *conf, const struct mg_tool_launch *l, uint64_t *words)
{
    (void)conf;
    words[0] = l->id + 1;
}

static void finalize(void *conf, const struct mg_tool_launch *l, const uint64_t *cells, uint32_t n)
{
    struct conf *c = conf;
    FILE *f = *c->out ? fopen(c->out, "ae") : NULL;
    if (f) fprintf(f, "%llu %d %llu %u\n", (unsigned long long)l->id, l->complete, (unsigned long long)cells[0], n);
    if (f) fclose(f);
    __atomic_fetch_add(&c->launches, 1, __ATOMIC_RELAXED);
}

static void begin(void *conf, const struct mg_tool_host *host)
{
    ((struct conf *)conf)->host = host;
}
static void count_allocation(const struct mg_host_allocation *a, void *user)
{
    ((struct conf *)user)->allocations += a->kind == MG_HOST_DEVICE && a->bytes >= 1024;
}
static void count_module(const struct mg_host_module *m, void *user)
{
    ((struct conf *)user)->modules += strstr(m->ptx, "fill") != NULL;
}
static void count_symbol(const struct mg_host_symbol *s, void *user)
{
    ((struct conf *)user)->kernels += s->is_kernel;
}

static void count_object(const struct mg_host_object *o, void *user)
{
    struct conf *c = user;
    c->arrays += o->kind == MG_HOST_ARRAY && o->width == 16 && o->height == 8;
    c->textures += o->kind == MG_HOST_TEXTURE && o->of;
}

static void end(void *conf)
{
    struct conf *c = conf;
    char json[200];
    c->host->allocations(count_allocation, c);
    c->host->modules(count_module, c);
    c->host->symbols(count_symbol, c);
    c->host->objects(count_object, c);
    snprintf(
        json, sizeof json,
        "{\"finalized\": %u, \"allocations\": %u, \"modules\": %u, \"kernels\": %u, \"arrays\": %u, \"textures\": %u}",
        c->launches, c->allocations, c->modules, c->kernels, c->arrays, c->textures);
    c->host->result("every", "host", json);
}

static void profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    (void)conf;
    mg_table_begin(t, "threads", "threads by kernel");
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_table_column(t, "threads", MG_COL_COUNT, NULL);
    mg_json_key(j, "kernels");
    mg_json_arr(j);
    for (const struct mg_result_kernel *k = r->kernels; k < r->kernels + r->n_kernels; k++) {
        mg_table_row(t);
        mg_table_text(t, k->demangled);
        mg_table_u64(t, k->cells[0]);
        mg_json_obj(j);
        mg_json_key_str(j, "name", k->name);
        mg_json_key_u64(j, "counted", k->counted);
        mg_json_key_u64(j, "note", k->sites[0].note);
        mg_json_key(j, "cells");
        mg_json_arr(j);
        for (uint32_t c = 0; c < k->n_cells; c++) mg_json_u64(j, k->cells[c]);
        mg_json_end(j, ']');
        mg_json_key(j, "table");
        mg_json_arr(j);
        for (uint64_t e = 0; e < k->tables[0].n; e++) {
            mg_json_u64(j, k->tables[0].entries[e].keys[0]);
            mg_json_u64(j, k->tables[0].entries[e].cells[0]);
        }
        mg_json_end(j, ']');
        mg_json_key_u64(j, "lost", k->tables[0].lost);
        mg_json_key(j, "launches");
        mg_json_arr(j);
        for (uint64_t l = 0; l < k->n_of_launch; l++) mg_json_u64(j, k->of_launch[l].cells[3]);
        mg_json_end(j, ']');
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static const struct mg_tool every = {
    .name = "every",
    .summary = "uses every part of the layer once",
    .opts = opts,
    .configure = configure,
    .release = free,
    .analyze = analyze,
    .instrument = instrument,
    .initialize = initialize,
    .finalize = finalize,
    .begin = begin,
    .end = end,
    .profile = profile,
    .flags = MG_TOOL_PER_LAUNCH,
};
MG_TOOL_PLUGIN(every)
