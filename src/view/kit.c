/* Options as a table, and what several tools print alike. */
#include "view/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/number.h"

static bool set_field(const struct mg_field *f, void *conf, const char *value)
{
    char *at = (char *)conf + f->at;
    if (f->kind == MG_FIELD_FLAG) {
        bool on = !strcmp(value, "on");
        if (!on && strcmp(value, "off")) return false;
        memcpy(at, &on, sizeof on);
        return true;
    }
    if (f->kind == MG_FIELD_CHOICE) {
        for (uint32_t i = 0; f->words[i]; i++)
            if (!strcmp(f->words[i], value)) {
                memcpy(at, &i, sizeof i);
                return true;
            }
        return false;
    }
    uint64_t n;
    if (!mg_number_u64(value, f->kind == MG_FIELD_SIZE, f->least, f->most, &n)) return false;
    memcpy(at, &n, sizeof n);
    return true;
}

/* What the option wants, and what it got. */
static enum mg_err refuse(const char *tool, const struct mg_field *f, const char *value, struct mg_diag *d)
{
    struct mg_buf want = MG_BUF_INIT;
    if (f->kind == MG_FIELD_FLAG)
        mg_buf_adds(&want, "on or off");
    else if (f->kind == MG_FIELD_NUMBER || f->kind == MG_FIELD_SIZE)
        mg_number_print_u64(f->least, f->most, &want);
    else
        for (uint32_t i = 0; f->words[i]; i++)
            mg_buf_printf(&want, "%s%s", !i ? "" : f->words[i + 1] ? ", " : " or ", f->words[i]);
    enum mg_err err =
        mg_diag_err(d, MG_ERR_INPUT, "tool %s: bad option: %s= wants %s, not '%.200s'", tool, f->key, want.at, value);
    mg_buf_release(&want);
    return err;
}

enum mg_err mg_fields_parse(const char *tool, const struct mg_field *fields, const void *defaults, size_t bytes,
                            const char *args, void **conf, struct mg_diag *d)
{
    char *copy = mg_xstrdup(args ? args : ""), *save = NULL;
    enum mg_err err = MG_ERR_OK;
    void *made = mg_xcalloc(1, bytes ? bytes : 1);
    memcpy(made, defaults, bytes);
    for (char *kv = strtok_r(copy, ",", &save); kv && !err; kv = strtok_r(NULL, ",", &save)) {
        char *eq = strchr(kv, '=');
        if (eq) *eq = 0;
        const struct mg_field *f = fields;
        while (f->key && strcmp(f->key, kv)) f++;
        if (!f->key)
            err = mg_diag_err(d, MG_ERR_INPUT, "tool %s has no option \"%s\"", tool, kv);
        else if (!set_field(f, made, eq ? eq + 1 : "on"))
            err = refuse(tool, f, eq ? eq + 1 : "on", d);
    }
    free(copy);
    *conf = err ? NULL : made;
    if (err) free(made);
    return err;
}

void mg_kit_site_json(struct mg_json *j, const struct mg_result_kernel *k, const struct mg_result_site *s)
{
    mg_json_key_u64(j, "kernel", k->id);
    mg_json_key_u64(j, "block", s->block);
    mg_json_key_u64(j, "ptx_line", s->ptx_line);
    mg_json_key_str(j, "file", s->file);
    mg_json_key_u64_if(j, "line", s->file != NULL, s->line);
    mg_json_key_str(j, "function", s->function);
    mg_json_key_str(j, "op", s->op);
    if (s->inlined) mg_json_key_str(j, "inlined", s->inlined);
}

void mg_kit_demangled(struct mg_table *t, const char *mangled)
{
    char *name = mg_demangle(mangled ? mangled : "");
    mg_table_text(t, name ? name : mangled);
    free(name);
}

void mg_kit_sampled(struct mg_table *t, const struct mg_result_kernel *k, uint64_t ctas, uint64_t all)
{
    struct mg_buf name = MG_BUF_INIT;
    if (ctas >= all) return;
    mg_kit_kernel_name(k, 60, &name);
    mg_table_note(t, "%llu of %llu CTAs sampled: %s", (unsigned long long)ctas, (unsigned long long)all, name.at);
    mg_buf_release(&name);
}

void mg_kit_kernel_name(const struct mg_result_kernel *k, uint32_t most, struct mg_buf *out)
{
    const char *name = k->demangled ? k->demangled : k->name;
    size_t n = strlen(name);
    if (n > most) n = MG_MIN(n, strcspn(name, "(<"));
    mg_buf_add(out, name, MG_MIN(n, most));
}

void mg_kit_chart(struct mg_table *t, const char *tool, uint32_t ix, struct mg_buf *title, struct mg_buf *svg)
{
    char name[64];
    snprintf(name, sizeof name, "%s-%u", tool, (unsigned)ix);
    mg_table_chart(t, name, title->at, svg->at, svg->n);
    mg_buf_release(title);
    mg_buf_release(svg);
}

uint32_t *mg_kit_preds(const struct mg_site_block *blocks, uint32_t n)
{
    uint32_t *preds = mg_xcalloc(2 * (size_t)n + 1, sizeof *preds), *all = preds + n;
    for (uint32_t b = 0; b < n; b++) {
        if (!b || strcmp(blocks[b].function, blocks[b - 1].function))
            preds[b]++, all[b] ^= UINT32_MAX; /* a function's first */
        for (uint32_t i = 0; i < blocks[b].n_succs; i++)
            if (blocks[b].succs[i] < n) preds[blocks[b].succs[i]]++, all[blocks[b].succs[i]] ^= b;
    }
    return preds;
}

struct mg_graph mg_kit_graph(struct mg_arena *a, const struct mg_site_block *blocks, uint32_t n)
{
    uint32_t n_edges = 0, k = 0;
    for (uint32_t b = 0; b < n; b++) n_edges += blocks[b].n_succs;
    uint32_t *from = mg_xmalloc(sizeof *from * (n_edges + 1)), *to = mg_xmalloc(sizeof *to * (n_edges + 1));
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t i = 0; i < blocks[b].n_succs; i++)
            if (blocks[b].succs[i] < n) from[k] = b, to[k++] = blocks[b].succs[i];
    struct mg_graph g = mg_graph_of_pairs(a, n, from, to, k);
    free(from);
    free(to);
    return g;
}

bool mg_kit_writes(const struct mg_module *m, mg_id node, mg_id reg)
{
    mg_id defs[64];
    uint32_t n = mg_node_defs(m, node, defs, MG_COUNT_OF(defs));
    for (uint32_t i = 0; i < n && i < MG_COUNT_OF(defs); i++)
        if (defs[i] == reg) return true;
    return n > MG_COUNT_OF(defs);
}

/* Does every thread that enters the block go on to its only successor? */
static bool goes_on(const struct mg_site_block *k)
{
    static const char *const ends[] = {"call", "exit", "ret", "trap", "brkpt"};
    for (uint32_t i = 0; i < k->n_ops; i++)
        for (uint32_t e = 0; e < MG_COUNT_OF(ends); e++)
            if (!strncmp(k->ops[i].op, ends[e], strlen(ends[e]))) return false;
    return k->n_succs == 1;
}

bool mg_kit_taken(const struct mg_site_block *blocks, const uint32_t *preds, uint32_t n, uint32_t b, bool leaves,
                  struct mg_kit_taken *t)
{
    const struct mg_site_block *k = &blocks[b];
    if (k->n_succs != (leaves ? 1u : 2u)) return false; /* the one that is fallen through to, the target */
    for (uint32_t others = 0; others < 2; others++)
        for (uint32_t i = k->n_succs; i-- > 0;) {
            uint32_t of = k->succs[i], other = of < n ? preds[n + of] ^ b : n;
            *t = (struct mg_kit_taken){.of = of, .without = others ? other : MG_KIT_NONE, .off = !i};
            if (of >= n || preds[of] != 1 + others) continue;
            if (!others || (other < n && other != b && goes_on(&blocks[other]))) return true;
        }
    return false;
}

uint64_t mg_kit_takers(const struct mg_kit_taken *t, const uint64_t *threads, uint32_t b)
{
    uint64_t n = threads[t->of] - (t->without == MG_KIT_NONE ? 0 : threads[t->without]);
    return t->off ? threads[b] - n : n;
}
