/* What tools share: options as a table, places in JSON, quantities that several of them print.
 * Convenience only: an out-of-tree tool can use it too, or do without. */
#ifndef MG_VIEW_KIT_H
#define MG_VIEW_KIT_H

#include <stdio.h>

#include "view/result.h"

/* ---- options: one row per key, in the order of the tool's mg_tool_opt list --------------------------- */
enum mg_field_kind {
    MG_FIELD_FLAG /* bool, on|off */,
    MG_FIELD_NUMBER /* uint64_t up to most */,
    MG_FIELD_SIZE /* the same, k, m, g may stand behind it */,
    MG_FIELD_CHOICE /* uint32_t, index into words */
};
struct mg_field {
    const char *key;
    enum mg_field_kind kind;
    size_t at;
    uint64_t least, most;
    const char *const *words;
};
/* Parses "k=v,k" into *conf: a heap copy of `defaults`. fields end with key NULL. A flag alone is on. */
enum mg_err mg_fields_parse(const char *tool, const struct mg_field *fields, const void *defaults, size_t bytes,
                            const char *args, void **conf, struct mg_diag *d);

/* ---- blocks ------------------------------------------------------------------------------------------- */
/* How many blocks lead to each, a call of its function counted as one; behind these n, which they are (all of them
 * xor-ed). malloc'd. */
uint32_t *mg_kit_preds(const struct mg_site_block *blocks, uint32_t n);
/* The blocks of a kernel as a graph, in the arena. */
struct mg_graph mg_kit_graph(struct mg_arena *a, const struct mg_site_block *blocks, uint32_t n);
/* Threads for whom the guard of the instruction that ends block b is true, told from thread entries: those of block
 * `of`, without those that come there from the only other block before it, which goes nowhere else; taken off those of
 * b or not. */
enum { MG_KIT_NONE = UINT32_MAX };
struct mg_kit_taken {
    uint32_t of, without /* MG_KIT_NONE: none */;
    bool off;
};
/* leaves: the instruction is ret or exit; else bra. n: blocks of the kernel. false: entries do not tell. */
bool mg_kit_taken(const struct mg_site_block *blocks, const uint32_t *preds, uint32_t n, uint32_t b, bool leaves,
                  struct mg_kit_taken *t);
uint64_t mg_kit_takers(const struct mg_kit_taken *t, const uint64_t *threads, uint32_t b);

bool mg_kit_writes(const struct mg_module *m, mg_id node, mg_id reg); /* does the instruction write that register? */

/* ---- results ------------------------------------------------------------------------------------------ */
/* "kernel", "block", "ptx_line", "file", "line", "function", "op" and, where inlined, "inlined": members of an open
 * object. */
void mg_kit_site_json(struct mg_json *j, const struct mg_result_kernel *k, const struct mg_result_site *s);
/* Begins a table of times: its title says whose they are. */
static inline void mg_kit_times_table(struct mg_table *t, const struct mg_tool_result *r, const char *name,
                                      const char *title)
{
    char text[240];
    snprintf(text, sizeof text, r->host_times ? "%s (no GPU: times are the host's)" : "%s", title);
    mg_table_begin(t, name, text);
}
/* Which buffer a site's instruction accesses; NULL: not known. */
static inline const struct mg_buffer_name *
mg_kit_buffer(const struct mg_tool_result *r, const struct mg_result_kernel *k, const struct mg_result_site *s)
{
    return r->buffer ? r->buffer(r->buffers, k, s) : NULL;
}
static inline void mg_kit_key_buffer(struct mg_json *j, const struct mg_buffer_name *name)
{
    mg_json_key_str(j, "buffer", name ? name->text : NULL);
}
static inline const uint64_t *mg_kit_cells(const struct mg_result_kernel *k, const struct mg_result_site *s)
{
    return k->cells + s->cell;
}
static inline double mg_kit_share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}
static inline double mg_kit_percent(uint64_t part, uint64_t whole)
{
    return 100 * mg_kit_share(part, whole);
} /* as columns of tables have it */
/* A cell with the name that a mangled one stands for. */
void mg_kit_demangled(struct mg_table *t, const char *mangled);
/* Kernel's name for people: demangled, without template and function arguments when longer than `most`. */
/* "200 of 400 CTAs sampled: KERNEL" below the last table, where fewer than all were. */
void mg_kit_sampled(struct mg_table *t, const struct mg_result_kernel *k, uint64_t ctas, uint64_t all);
void mg_kit_kernel_name(const struct mg_result_kernel *k, uint32_t most, struct mg_buf *out);
/* A chart of the table's, named tool-ix. Releases title and picture. */
void mg_kit_chart(struct mg_table *t, const char *tool, uint32_t ix, struct mg_buf *title, struct mg_buf *svg);

#endif
