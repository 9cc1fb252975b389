/* Accounts: what the cells of a tool in a kernel add up to over the launches of this process. Launches
 * only merge into memory; the writer takes what has changed with every commit, so that a kernel that is
 * launched a million times costs a row for each commit, not for each launch.
 *
 * In the application: out of memory means that an entry is lost, and counted so. */
#include "store/cells.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/db.h"
#include "store/priv.h"

#define MAX_ENTRIES (1u << 20) /* of one table; what finds no room is lost */

struct table { /* open addressing; a slot: keys, then cells */
    uint32_t n_keys, n_cells;
    enum mg_merge rule;
    uint64_t *slots, n, cap, lost;
    uint8_t *used;
    bool dirty;
};
struct mg_account {
    struct mg_accounts *all;
    struct mg_account *next;
    uint32_t use, kernel, n_cells, n_tables;
    uint8_t *rules;
    uint64_t *cells, counted;
    struct table *tables;
    bool dirty;
};
struct mg_accounts {
    pthread_mutex_t lock;
    struct mg_account *first;
    struct mg_row *kept, **kept_end; /* cells of single launches */
};

struct mg_accounts *mg_accounts_new(void)
{
    struct mg_accounts *all = calloc(1, sizeof *all);
    if (!all || pthread_mutex_init(&all->lock, NULL)) {
        free(all);
        return NULL;
    }
    all->kept_end = &all->kept;
    return all;
}

static void free_account(struct mg_account *a)
{
    for (uint32_t t = 0; a->tables && t < a->n_tables; t++) {
        free(a->tables[t].slots);
        free(a->tables[t].used);
    }
    free(a->tables);
    free(a->rules);
    free(a->cells);
    free(a);
}

void mg_accounts_free(struct mg_accounts *all)
{
    if (!all) return;
    while (all->first) {
        struct mg_account *a = all->first;
        all->first = a->next;
        free_account(a);
    }
    while (all->kept) {
        struct mg_row *r = all->kept;
        all->kept = r->next;
        free(r);
    }
    pthread_mutex_destroy(&all->lock);
    free(all);
}

struct mg_account *mg_account_new(struct mg_accounts *all, const struct mg_store_region *r)
{
    struct mg_account *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    *a = (struct mg_account){
        .all = all, .use = r->use, .kernel = r->kernel, .n_cells = r->n_cells, .n_tables = r->n_tables};
    a->rules = malloc(r->n_cells + 1);
    a->cells = calloc((size_t)r->n_cells + 1, sizeof *a->cells);
    a->tables = calloc((size_t)r->n_tables + 1, sizeof *a->tables);
    if (!a->rules || !a->cells || !a->tables) {
        free_account(a);
        return NULL;
    }
    if (r->n_cells) memcpy(a->rules, r->rules, r->n_cells);
    for (uint32_t t = 0; t < r->n_tables; t++)
        a->tables[t] =
            (struct table){.n_keys = r->tables[t].n_keys, .n_cells = r->tables[t].n_cells, .rule = r->tables[t].rule};
    pthread_mutex_lock(&all->lock);
    a->next = all->first;
    all->first = a;
    pthread_mutex_unlock(&all->lock);
    return a;
}

/* ---- adding ---------------------------------------------------------------------------------------- */

static void keep_launch(struct mg_account *a, const uint64_t *cells, uint64_t launch) /* under the lock */
{
    struct mg_row *r = mg_row_new(MG_STMT_launch_cells, mg_counts_bound(a->n_cells));
    if (!r) return;
    mg_row_int(r, (int64_t)launch);
    mg_row_int(r, a->use);
    mg_row_kept(r, mg_counts_encode(cells, a->n_cells, mg_row_room(r)));
    *a->all->kept_end = r;
    a->all->kept_end = &r->next;
}

void mg_account_add(struct mg_account *a, const uint64_t *cells, uint64_t launches, bool keep, uint64_t launch)
{
    if (!a) return;
    pthread_mutex_lock(&a->all->lock);
    for (uint32_t i = 0; i < a->n_cells; i++)
        a->cells[i] = mg_merged((enum mg_merge)a->rules[i], a->cells[i], cells[i]);
    a->counted += launches;
    a->dirty = true;
    if (keep) keep_launch(a, cells, launch);
    pthread_mutex_unlock(&a->all->lock);
}

static uint64_t slot_of(const struct table *t, const uint64_t *keys)
{
    uint32_t width = t->n_keys + t->n_cells;
    uint64_t at = mg_hash64(keys, t->n_keys * sizeof *keys, 0) & (t->cap - 1);
    while (t->used[at] && memcmp(&t->slots[at * width], keys, t->n_keys * sizeof *keys)) at = (at + 1) & (t->cap - 1);
    return at;
}

static bool grow(struct table *t)
{
    uint32_t width = t->n_keys + t->n_cells;
    struct table more = *t;
    more.cap = t->cap ? t->cap * 2 : 64;
    more.slots = malloc(more.cap * width * sizeof *more.slots);
    more.used = calloc(more.cap, 1);
    if (!more.slots || !more.used) {
        free(more.slots);
        free(more.used);
        return false;
    }
    for (uint64_t i = 0; i < t->cap; i++) {
        if (!t->used[i]) continue;
        uint64_t at = slot_of(&more, &t->slots[i * width]);
        more.used[at] = 1;
        memcpy(&more.slots[at * width], &t->slots[i * width], width * sizeof *t->slots);
    }
    free(t->slots);
    free(t->used);
    *t = more;
    return true;
}

void mg_account_entry(struct mg_account *a, uint32_t table, const uint64_t *keys, const uint64_t *cells)
{
    if (!a || table >= a->n_tables) return;
    pthread_mutex_lock(&a->all->lock);
    struct table *t = &a->tables[table];
    t->dirty = true;
    if (2 * t->n >= t->cap && t->n < MAX_ENTRIES) (void)!grow(t);
    uint32_t width = t->n_keys + t->n_cells;
    uint64_t at = t->cap ? slot_of(t, keys) : 0;
    if (t->cap && (t->used[at] || t->n + 1 < t->cap)) { /* one slot stays free: searches end */
        uint64_t *to = &t->slots[at * width];
        if (!t->used[at]) {
            memset(to, 0, width * sizeof *to);
            memcpy(to, keys, t->n_keys * sizeof *keys);
            t->used[at] = 1;
            t->n++;
        }
        for (uint32_t c = 0; c < t->n_cells; c++) to[t->n_keys + c] = mg_merged(t->rule, to[t->n_keys + c], cells[c]);
    } else {
        t->lost++;
    }
    pthread_mutex_unlock(&a->all->lock);
}

void mg_account_lost(struct mg_account *a, uint32_t table, uint64_t n)
{
    if (!a || table >= a->n_tables || !n) return;
    pthread_mutex_lock(&a->all->lock);
    a->tables[table].lost += n;
    a->tables[table].dirty = true;
    pthread_mutex_unlock(&a->all->lock);
}

/* ---- rows -------------------------------------------------------------------------------------------- */

static struct mg_row *cells_row(const struct mg_account *a)
{
    struct mg_row *r = mg_row_new(MG_STMT_cells, mg_counts_bound(a->n_cells));
    if (!r) return NULL;
    mg_row_int(r, a->use);
    mg_row_int(r, a->kernel);
    mg_row_int(r, (int64_t)a->counted);
    mg_row_kept(r, mg_counts_encode(a->cells, a->n_cells, mg_row_room(r)));
    return r;
}

static struct mg_row *entries_row(const struct mg_account *a, uint32_t table)
{
    const struct table *t = &a->tables[table];
    uint32_t width = t->n_keys + t->n_cells;
    struct mg_row *r = mg_row_new(MG_STMT_entries, t->n * width * MG_LEB_MAX);
    if (!r) return NULL;
    mg_row_int(r, a->use);
    mg_row_int(r, a->kernel);
    mg_row_int(r, table);
    mg_row_int(r, (int64_t)t->n);
    mg_row_int(r, (int64_t)t->lost);
    uint8_t *from = mg_row_room(r), *p = from;
    for (uint64_t i = 0; i < t->cap; i++)
        for (uint32_t w = 0; t->used[i] && w < width; w++) p = mg_leb_write(p, t->slots[i * width + w]);
    mg_row_kept(r, (size_t)(p - from));
    return r;
}

void mg_accounts_rows(struct mg_accounts *all, struct mg_row *rows)
{
    while (rows->next) rows = rows->next;
    pthread_mutex_lock(&all->lock);
    for (struct mg_account *a = all->first; a; a = a->next) {
        if (a->dirty && (rows->next = cells_row(a))) {
            rows = rows->next;
            a->dirty = false;
        }
        for (uint32_t t = 0; t < a->n_tables; t++)
            if (a->tables[t].dirty && (rows->next = entries_row(a, t))) {
                rows = rows->next;
                a->tables[t].dirty = false;
            }
    }
    rows->next = all->kept;
    all->kept = NULL;
    all->kept_end = &all->kept;
    pthread_mutex_unlock(&all->lock);
}

static struct mg_row *site_row(const struct mg_store_region *g, uint32_t id)
{
    const struct mg_result_site *s = &g->sites[id];
    struct mg_row *r = mg_row_new(MG_STMT_site, mg_row_text_bytes(s->function) + mg_row_text_bytes(s->op) +
                                                    mg_row_text_bytes(s->file) + mg_row_text_bytes(s->inlined));
    if (!r) return NULL;
    mg_row_int(r, g->use);
    mg_row_int(r, g->kernel);
    mg_row_int(r, id);
    mg_row_int(r, s->kind);
    mg_row_int(r, s->note);
    mg_row_int(r, s->block);
    mg_row_int(r, s->succ);
    mg_row_int(r, s->ptx_line);
    mg_row_text(r, s->function);
    mg_row_text(r, s->op);
    mg_row_text(r, s->file);
    mg_row_int(r, s->line);
    mg_row_text(r, s->inlined);
    mg_row_int(r, s->cell);
    mg_row_int(r, s->n_cells);
    return r;
}

static void row_rules(struct mg_row *r, const struct mg_store_region *g)
{
    uint8_t *from = mg_row_room(r), *p = from;
    for (uint32_t i = 0, end; i < g->n_cells; i = end) {
        for (end = i + 1; end < g->n_cells && g->rules[end] == g->rules[i];) end++;
        p = mg_leb_write(p, end - i);
        *p++ = g->rules[i];
    }
    mg_row_kept(r, (size_t)(p - from));
}

struct mg_row *mg_region_rows(const struct mg_store_region *g)
{
    size_t n_runs = 1;
    for (uint32_t i = 1; i < g->n_cells; i++) n_runs += g->rules[i] != g->rules[i - 1];
    struct mg_row *r = mg_row_new(MG_STMT_region, mg_row_text_bytes(g->reason) + n_runs * (MG_LEB_MAX + 1) +
                                                      (size_t)g->n_tables * 4 * MG_LEB_MAX),
                  **tail = r ? &r->next : NULL;
    if (!r) return NULL;
    mg_row_int(r, g->use);
    mg_row_int(r, g->kernel);
    mg_row_text(r, g->reason);
    mg_row_int(r, g->n_sites);
    mg_row_int(r, g->n_cells);
    row_rules(r, g);
    uint8_t *from = mg_row_room(r), *p = from;
    for (uint32_t t = 0; t < g->n_tables; t++) {
        p = mg_leb_write(p, g->tables[t].site);
        p = mg_leb_write(p, g->tables[t].n_keys);
        p = mg_leb_write(p, g->tables[t].n_cells);
        p = mg_leb_write(p, (uint64_t)g->tables[t].rule);
    }
    mg_row_kept(r, (size_t)(p - from));
    for (uint32_t i = 0; i < g->n_sites; i++) {
        if (!(*tail = site_row(g, i))) {
            while (r) {
                struct mg_row *next = r->next;
                free(r);
                r = next;
            }
            return NULL;
        }
        tail = &(*tail)->next;
    }
    return r;
}
