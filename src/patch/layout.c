/* Reading what a launch counted: copies of cells are merged by their rules, sums go to their cells. */
#include "patch/layout.h"

void mg_layout_release(struct mg_layout *l)
{
    mg_counter_layout_release(&l->blocks);
    mg_arena_release(&l->arena);
    *l = (struct mg_layout){.blocks = {.other_at = UINT32_MAX}};
}

uint64_t mg_layout_words(const struct mg_layout *l, const struct mg_counter_launch *g)
{
    uint64_t n = l->has_blocks ? mg_counters_words(&l->blocks, g) : 0;
    for (uint32_t i = 0; i < l->n_regions; i++)
        if (l->regions[i].n_words) n = l->regions[i].at + l->regions[i].n_words;
    return n;
}

void mg_layout_read(const struct mg_region *r, const uint64_t *raw, uint64_t *cells)
{
    for (uint32_t i = 0; i < r->n_cells; i++) cells[i] = 0;
    if (!r->n_words) return;
    for (uint32_t k = 0; k < r->n_copies; k++) {
        const uint64_t *copy = raw + r->at + (uint64_t)k * r->copy_words;
        for (uint32_t i = 0; i < r->n_cells; i++)
            cells[i] = mg_merge_word((enum mg_merge)r->rules[i], cells[i], copy[i]);
        for (uint32_t i = 0; i < r->n_sums; i++)
            if (r->sums[i].cell != UINT32_MAX) cells[r->sums[i].cell] += copy[r->sums[i].slot];
    }
    for (uint32_t i = 0; i < r->n_shares; i++) {
        const struct mg_layout_share *s = &r->shares[i];
        uint64_t all = 0;
        for (uint32_t k = 0; k < r->n_copies; k++) all += raw[r->at + (uint64_t)k * r->copy_words + s->slot];
        cells[s->cell] += all / s->every * s->times;
    }
}

uint64_t mg_layout_read_table(const struct mg_region *r, uint32_t table, const uint64_t *raw,
                              void (*fn)(const uint64_t *keys, const uint64_t *cells, void *user), void *user)
{
    const struct mg_layout_table *t = &r->tables[table];
    const uint64_t *words = raw + r->at + t->at;
    for (uint32_t i = 0; i < t->n_entries; i++) {
        const uint64_t *e = words + 1 + (uint64_t)i * (1 + t->n_keys + t->n_cells);
        if (*e) fn(e + 1, e + 1 + t->n_keys, user);
    }
    return words[0];
}
