/* How updates of maps become sites, cells and tables of a kernel, and back: what a site's note says. */
#ifndef MG_TOOL_EXPR_PLACE_H
#define MG_TOOL_EXPR_PLACE_H

#include <pthread.h>
#include <stdio.h>

#include "probe/expr_code.h"
#include "probe/probe.h"
#include "tool/tool.h"
#include "view/result.h"

/*   note:  31 .. 25 update   24 23 kind   22 .. 0 payload */
enum mg_expr_note {
    MG_EN_CELLS,   /* the site's cells are the update's entry */
    MG_EN_DERIVED, /* payload times the thread count of the site's block */
    MG_EN_TABLE,   /* the site has a table of the update; payload: which of its keys the site tells, a bit each */
    MG_EN_NAME,    /* payload: number of these site keys in the update's table */
};
enum { MG_EXPR_PAYLOAD = 1 << 23 };
static inline uint32_t mg_expr_note(uint32_t update, enum mg_expr_note kind, uint32_t payload)
{
    return update << 25 | (uint32_t)kind << 23 | payload;
}
static inline uint32_t mg_expr_note_update(uint32_t note)
{
    return note >> 25;
}
static inline enum mg_expr_note mg_expr_note_kind(uint32_t note)
{
    return (enum mg_expr_note)(note >> 23 & 3);
}
static inline uint32_t mg_expr_note_payload(uint32_t note)
{
    return note & (MG_EXPR_PAYLOAD - 1);
}

/* Which of an update's keys the site tells: the rest are words of a table's key, behind the number of the
 * NAME site where there are any that the site tells. */
uint32_t mg_expr_site_keys(const struct mg_expr_update *up, const struct mg_expr_env *env); /* a bit each */
/* Cells hold 0 for "nothing yet", so what is kept of a value is this; both ways. */
static inline uint64_t mg_expr_from_cell(uint8_t agg, uint64_t cell)
{
    uint64_t biased = agg == MG_EA_min ? ~(cell - 1) : cell - 1;
    return biased ^ (uint64_t)1 << 63;
}
/* Does the update keep its entries in a table, whatever its keys? */
static inline bool mg_expr_wants_table(const struct mg_expr_map *m)
{
    return m->agg == MG_EA_topk;
}

struct mg_expr_conf {
    struct mg_expr *e;
    struct mg_probe *probe;          /* NULL: none, or not to be read here */
    const struct mg_tool_host *host; /* from here on: expr_host.c's */
    bool global;                     /* events have %globaltimer, for the time line */
    pthread_mutex_t lock;
    FILE *file;
    char *file_name; /* of records that were emitted; NULL: none yet */
    uint64_t received;
    bool cannot_write, told, many;
};
uint32_t mg_expr_list(const void *conf, const struct mg_tool_launch *l, uint64_t *words, uint32_t n); /* expr_alloc.c */
/* What happens in the measured process. */
void mg_expr_host_begin(void *conf, const struct mg_tool_host *host);
void mg_expr_host_stream(void *conf, const struct mg_stream *s, const uint64_t *segment, uint32_t bytes);
void mg_expr_host_read(void *conf, const struct mg_tool_launch *l, const struct mg_tool_list *list);
void mg_expr_host_end(void *conf);
enum mg_err mg_expr_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d);
enum mg_err mg_expr_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d);
void mg_expr_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j);

#endif
