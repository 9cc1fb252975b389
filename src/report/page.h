/* Inside the page's files: one self-contained page from a profile.
 *
 *   page.c: template (page/, made a C text by scripts/gen-page) and parts of data ──► page.html
 *   page_tables.c: tables of tools    page_launches.c: launches by geometry    page_source.c: source and PTX lines
 *   page_spans.c: the time line
 *   pack.c: a part as text that the page's script unpacks */
#ifndef MG_REPORT_PAGE_H
#define MG_REPORT_PAGE_H

#include "report/priv.h"

struct mg_page_name {
    const char *name;
    uint32_t kernel;
};
struct mg_page {
    const struct mg_recording *p;
    struct mg_report_opts o; /* with kernel_names */
    struct mg_arena arena;
    const char **kernel_names; /* by kernel id: unique */
    struct mg_page_name *names;
    uint32_t n_names; /* those and the mangled ones, sorted */
};
void mg_page_init(struct mg_page *g, const struct mg_recording *p, const struct mg_report_opts *o);
void mg_page_release(struct mg_page *g);
/* The kernel of that name; UINT32_MAX: none, or several. */
uint32_t mg_page_kernel(const struct mg_page *g, const char *name);

/* Each writes one JSON value. */
void mg_page_tables(const struct mg_page *g, uint32_t use, struct mg_json *j);
void mg_page_launches(const struct mg_page *g, struct mg_json *j);
bool mg_page_spans(const struct mg_page *g, struct mg_json *j); /* false: there is no time line, nothing was written */
void mg_page_lines(const struct mg_page *g, struct mg_json *source, struct mg_json *ptx);

/* Appends an element that holds `bytes` bytes of text, compressed (an LZ4 block in base 64), under the id data-NAME. */
void mg_pack_part(struct mg_buf *out, const char *name, const char *text, size_t bytes);

#endif
