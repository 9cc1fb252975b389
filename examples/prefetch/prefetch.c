/* prefetch: a tool that changes the program. In the hot loops of an earlier profile it asks for what each
 * load from global memory will want some rounds from now, so that it lies in the L2 cache by then.
 *
 *   margay run -o before -- ./app && margay report before --csv > hot.csv
 *   margay run --verify -t ./prefetch.so,hot=hot.csv -- ./app        results stay what they were
 *   margay run --native-times -t ./prefetch.so,hot=hot.csv -o after -- ./app      what it is worth:
 *     examples/prefetch/run
 *
 * A register of each thread holds the address that the load had in the round before: how far it moved since
 * is how far it will move again. Where that is more than 64 KB, or nothing, nothing is asked for. */
#include "analysis/loop.h"
#include "tool/plugin.h"
#include "view/result.h"

struct hot {
    char *kernel;
    uint32_t block;
    uint64_t count;
};
struct conf {
    struct hot *hot;
    uint32_t n, share, ahead;
};

/* Lines of `margay report --csv`: number, kernel, module, block, ... entries, warps, estimate. */
static enum mg_err read_hot(struct conf *c, const char *path, struct mg_diag *d)
{
    char line[4096], name[2048];
    FILE *f = fopen(path, "r");
    if (!f) return mg_diag_err(d, MG_ERR_IO, "%s cannot be read", path);
    while (fgets(line, sizeof line, f)) {
        unsigned block;
        if (sscanf(line, "%*u,%2047[^,],%*[^,],%u,", name, &block) != 2) continue;
        char *count = NULL;
        for (unsigned k = 0; k < 3; k++)
            if ((count = strrchr(line, ',')) && k < 2) *count = 0;
        if (!count) continue;
        c->hot = realloc(c->hot, sizeof *c->hot * (c->n + 1));
        c->hot[c->n++] = (struct hot){strdup(name), block, strtoull(count + 1, NULL, 10)};
    }
    fclose(f);
    return c->n ? MG_ERR_OK : mg_diag_err(d, MG_ERR_INPUT, "%s has no counts of blocks", path);
}

static enum mg_err configure(const char *args, void **conf, struct mg_diag *d)
{
    struct conf *c = calloc(1, sizeof *c);
    char *copy = strdup(args), *save = NULL;
    enum mg_err err = MG_ERR_OK;
    *conf = c;
    c->share = 50;
    c->ahead = 8;
    for (char *kv = strtok_r(copy, ",", &save); kv && !err; kv = strtok_r(NULL, ",", &save)) {
        if (!strncmp(kv, "hot=", 4))
            err = read_hot(c, kv + 4, d);
        else if (sscanf(kv, "share=%u", &c->share) != 1 && sscanf(kv, "ahead=%u", &c->ahead) != 1)
            err = mg_diag_err(d, MG_ERR_INPUT, "prefetch has no option \"%s\"", kv);
    }
    if (!err && !c->n)
        err =
            mg_diag_err(d, MG_ERR_INPUT, "prefetch needs a profile: hot=FILE, as `margay report DIR --csv` writes it");
    free(copy);
    return err;
}

static void release(void *conf)
{
    struct conf *c = conf;
    for (uint32_t i = 0; i < c->n; i++) free(c->hot[i].kernel);
    free(c->hot);
    free(c);
}

static uint64_t count_of(const struct conf *c, const char *kernel, uint32_t block, uint64_t *most)
{
    uint64_t count = 0;
    *most = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (strcmp(c->hot[i].kernel, kernel)) continue;
        if (c->hot[i].block == block) count = c->hot[i].count;
        if (c->hot[i].count > *most) *most = c->hot[i].count;
    }
    return count;
}

static void add(struct mg_patch *p, const struct mg_patch_inst *i, uint32_t ahead, uint32_t sum)
{
    bool negated;
    mg_id guard = mg_node_guard(mg_patch_module(p), i->node, &negated);
    struct mg_code_at *at = mg_at_before(p, i->node), *entry = mg_at_entry(p, i->func_ix);
    mg_id last = mg_code_reg(entry, MG_TYPE_b64), step = mg_code_temp(at, MG_TYPE_b64),
          to = mg_code_temp(at, MG_TYPE_b64), far = mg_code_temp(at, MG_TYPE_b64);
    mg_id near = mg_code_temp(at, MG_TYPE_pred), moved = mg_code_temp(at, MG_TYPE_pred),
          address = mg_value_address(at, i->node);
    MG_CODE(entry, "mov.u64", last, 0);
    mg_code_guard(at, guard, negated);
    MG_CODE(at, "sub.s64", step, address, last);
    MG_CODE(at, "mov.b64", last, address);
    MG_CODE(at, "abs.s64", far, step);
    MG_CODE(at, "setp.le.s64", near, far, 64 << 10);
    MG_CODE(at, "setp.ne.s64", moved, step, 0);
    MG_CODE(at, "mad.lo.s64", to, step, mg_o_imm(ahead), address);
    mg_code_push_guard(at, near, false);
    mg_code_push_guard(at, moved, false);
    MG_CODE(at, "prefetch.global.L2", mg_o_addr_reg(to, 0));
    mg_sum_add(at, sum, mg_o_imm(1));
    mg_code_pop_guard(at);
    mg_code_pop_guard(at);
}

static enum mg_err instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct conf *c = conf;
    const struct mg_patch_inst *insts;
    const char *kernel = mg_patch_sites(p)->kernel;
    uint32_t chosen = 0;
    for (uint32_t i = 0, n = mg_patch_insts(p, &insts); i < n; i++) {
        struct mg_access a;
        uint64_t most, count = count_of(c, kernel, insts[i].id, &most);
        bool reads = mg_access_of(mg_patch_module(p), insts[i].node, &a) && a.reads && !a.writes && !a.is_async &&
                     a.space == MG_SPACE_global;
        if (!reads || !count || 100 * count < c->share * most ||
            mg_patch_loops(p, insts[i].func_ix)->loop_of[insts[i].block] == MG_NO_LOOP)
            continue;
        uint32_t cell = mg_patch_site(p, MG_SITE_INST, insts[i].node, 0, 1, MG_MERGE_SUM, 0);
        add(p, &insts[i], c->ahead, mg_patch_sum(p, cell));
        chosen++;
    }
    return chosen ? MG_ERR_OK : mg_diag_err(d, MG_ERR_NOT_FOUND, "no load from global memory in a hot loop");
}

static void profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    (void)conf;
    mg_table_begin(t, "prefetches", "loads that were asked for beforehand");
    mg_table_column(t, "prefetches", MG_COL_COUNT, NULL), mg_table_column(t, "place", MG_COL_PLACE, NULL),
        mg_table_column(t, "op", MG_COL_TEXT, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_json_key(j, "sites"), mg_json_arr(j);
    for (const struct mg_result_kernel *k = r->kernels; k < r->kernels + r->n_kernels; k++)
        for (const struct mg_result_site *s = k->sites; s < k->sites + k->n_sites; s++) {
            mg_table_row(t), mg_table_u64(t, k->cells[s->cell]), mg_table_place(t, s), mg_table_text(t, s->op),
                mg_table_text(t, k->demangled);
            mg_json_obj(j), mg_json_key_u64(j, "kernel", k->id), mg_json_key_u64(j, "block", s->block),
                mg_json_key_u64(j, "ptx_line", s->ptx_line);
            mg_json_key_u64(j, "prefetches", k->cells[s->cell]), mg_json_end(j, '}');
        }
    mg_json_end(j, ']');
}

static const struct mg_tool prefetch = {
    .name = "prefetch",
    .summary = "prefetch before the hot loads of an earlier profile",
    .configure = configure,
    .release = release,
    .instrument = instrument,
    .profile = profile,
};
MG_TOOL_PLUGIN(prefetch)
