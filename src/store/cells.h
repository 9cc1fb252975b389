/* Inside store/: cells of tools between the launches that counted them and the writer. */
#ifndef MG_STORE_CELLS_H
#define MG_STORE_CELLS_H

#include "store/queue.h"
#include "store/store.h"

struct mg_accounts;                        /* of one process */
struct mg_accounts *mg_accounts_new(void); /* NULL: out of memory */
void mg_accounts_free(struct mg_accounts *all);
/* Appends to the chain what has changed since the last time. On the writer's thread. */
void mg_accounts_rows(struct mg_accounts *all, struct mg_row *rows);

struct mg_row *mg_region_rows(const struct mg_store_region *r); /* the region, then its sites; NULL: out of memory */
struct mg_account *mg_account_new(struct mg_accounts *all, const struct mg_store_region *r);

static inline uint64_t mg_merged(enum mg_merge rule, uint64_t a, uint64_t b)
{
    return rule == MG_MERGE_SUM ? a + b : rule == MG_MERGE_MAX ? MG_MAX(a, b) : a | b;
}

#endif
