/* The shadow of memory: pages, lines, cells, and the lists of cells with several writers. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "study/shadow.h"

enum { CELL_WORDS = SHADOW_WORDS, CELL_BYTES = SHADOW_LINE };

static uint32_t cells_of(bool fine)
{
    return fine ? CELL_BYTES : CELL_WORDS;
}

static uint32_t place_of(const struct shadow *s, uint64_t number)
{
    uint32_t at = (uint32_t)(number * 0x9e3779b97f4a7c15u >> 32) & (s->cap - 1);
    while (s->pages[at] && s->pages[at]->number != number) at = (at + 1) & (s->cap - 1);
    return at;
}

struct shadow_page *shadow_find(struct shadow *s, uint64_t address)
{
    uint64_t number = address >> SHADOW_PAGE_SHIFT;
    if (s->last && s->last->number == number) return s->last;
    if (!s->cap) return NULL;
    struct shadow_page *p = s->pages[place_of(s, number)];
    if (p) s->last = p;
    return p;
}

static void grow_pages(struct shadow *s)
{
    struct shadow_page **old = s->pages;
    uint32_t cap = s->cap;
    s->cap = cap ? 2 * cap : 64;
    s->pages = mg_xcalloc(s->cap, sizeof *s->pages);
    for (uint32_t i = 0; i < cap; i++)
        if (old[i]) s->pages[place_of(s, old[i]->number)] = old[i];
    free(old);
}

struct shadow_page *shadow_page(struct shadow *s, uint64_t address)
{
    struct shadow_page *p = shadow_find(s, address);
    if (p) return p;
    if (2 * (s->n_pages + 1) > s->cap) grow_pages(s);
    p = mg_xcalloc(1, sizeof *p);
    p->number = address >> SHADOW_PAGE_SHIFT;
    s->pages[place_of(s, p->number)] = p;
    s->n_pages++;
    return s->last = p;
}

void shadow_release(struct shadow *s)
{
    for (uint32_t i = 0; i < s->cap; i++) {
        if (!s->pages[i]) continue;
        for (uint32_t k = 0; k < SHADOW_LINES; k++) {
            free(s->pages[i]->slots[k].old);
            free(s->pages[i]->slots[k].now);
        }
        free(s->pages[i]->communicates);
        free(s->pages[i]);
    }
    free(s->pages);
    mg_vec_release(&s->written);
    mg_vec_release(&s->old_shares);
    mg_vec_release(&s->new_shares);
    memset(s, 0, sizeof *s);
}

/* ---- lists -------------------------------------------------------------------------------------------- */

static uint32_t new_share(struct shadow *s)
{
    uint32_t ix = s->free_share;
    if (ix) {
        s->free_share = s->old_shares.at[ix].next;
        return ix;
    }
    if (!s->old_shares.n) *mg_vec_push(&s->old_shares) = (struct share){0};
    *mg_vec_push(&s->old_shares) = (struct share){0};
    return s->old_shares.n - 1;
}

void shadow_drop_list(struct shadow *s, uint32_t writer)
{
    if (!(writer & SHADOW_LIST)) return;
    for (uint32_t ix = writer & ~SHADOW_LIST, next; ix; ix = next) {
        next = s->old_shares.at[ix].next;
        s->old_shares.at[ix].next = s->free_share;
        s->free_share = ix;
    }
}

uint32_t shadow_keep_list(struct shadow *s, uint32_t list, uint32_t first_unit)
{
    uint32_t head = 0;
    for (uint32_t ix = list & ~SHADOW_LIST; ix; ix = s->new_shares.at[ix].next) {
        uint32_t at = new_share(s);
        s->old_shares.at[at] = s->new_shares.at[ix];
        s->old_shares.at[at].unit += first_unit;
        s->old_shares.at[at].next = head;
        head = at;
    }
    return head | SHADOW_LIST;
}

void shadow_add_share(struct shadow *s, struct new_cell *c, uint32_t unit, uint64_t stores, uint64_t atomics)
{
    if (!s->new_shares.n) *mg_vec_push(&s->new_shares) = (struct share){0};
    uint32_t head = c->writer & ~SHADOW_LIST;
    if (!(c->writer & SHADOW_LIST)) { /* the first writer becomes a share */
        head = s->new_shares.n;
        *mg_vec_push(&s->new_shares) =
            (struct share){.stores = c->stores, .atomics = c->atomics, .unit = c->writer - 1};
        c->stores = 0;
        c->atomics = 0;
    }
    if (s->new_shares.at[head].unit != unit) {
        *mg_vec_push(&s->new_shares) = (struct share){.unit = unit, .next = head};
        head = s->new_shares.n - 1;
    }
    s->new_shares.at[head].stores += stores;
    s->new_shares.at[head].atomics += atomics;
    c->writer = head | SHADOW_LIST;
}

/* ---- lines -------------------------------------------------------------------------------------------- */

struct old_line *shadow_old(struct shadow_slot *slot, bool fine)
{
    if (!slot->old) {
        slot->old = mg_xcalloc(1, sizeof *slot->old + cells_of(fine) * sizeof(struct old_cell));
        slot->old->fine = fine;
    }
    return slot->old;
}

static uint32_t copy_old_list(struct shadow *s, uint32_t writer)
{
    uint32_t head = 0;
    for (uint32_t ix = writer & ~SHADOW_LIST; ix; ix = s->old_shares.at[ix].next) {
        uint32_t at = new_share(s);
        s->old_shares.at[at] = s->old_shares.at[ix];
        s->old_shares.at[at].next = head;
        head = at;
    }
    return head | SHADOW_LIST;
}

/* Executed bytes of a word belong to its bytes in equal parts. */
static void quarter(struct share *list, uint32_t head)
{
    for (uint32_t ix = head & ~SHADOW_LIST; ix; ix = list[ix].next) {
        list[ix].stores /= 4;
        list[ix].atomics /= 4;
    }
}

void shadow_divide_old(struct shadow *s, struct shadow_slot *slot)
{
    struct old_line *l = slot->old, *fine;
    if (!l || l->fine) return;
    fine = mg_xcalloc(1, sizeof *fine + CELL_BYTES * sizeof(struct old_cell));
    fine->fine = true;
    for (uint32_t i = 0; i < CELL_WORDS; i++) {
        struct old_cell c = l->cells[i];
        c.stores /= 4;
        c.atomics /= 4;
        if (c.writer & SHADOW_LIST) quarter(s->old_shares.at, c.writer);
        for (uint32_t k = 0; k < 4; k++) {
            struct old_cell *to = &fine->cells[4 * i + k];
            *to = c;
            to->start = k == 0 && c.start;
            if (k && c.writer & SHADOW_LIST) to->writer = copy_old_list(s, c.writer);
        }
    }
    free(l);
    slot->old = fine;
}

struct new_line *shadow_new(struct shadow *s, struct shadow_slot *slot, uint64_t address, bool fine)
{
    if (!slot->now) {
        slot->now = mg_xcalloc(1, sizeof *slot->now + cells_of(fine) * sizeof(struct new_cell));
        slot->now->fine = fine;
        *mg_vec_push(&s->written) = address & ~(uint64_t)(SHADOW_LINE - 1);
    }
    return slot->now;
}

static uint32_t copy_new_list(struct shadow *s, uint32_t writer)
{
    uint32_t first = s->new_shares.n;
    for (uint32_t ix = writer & ~SHADOW_LIST; ix; ix = s->new_shares.at[ix].next) {
        struct share *to = mg_vec_push(&s->new_shares);
        *to = s->new_shares.at[ix];
        if (to->next) to->next = s->new_shares.n;
    }
    return first | SHADOW_LIST;
}

void shadow_divide_new(struct shadow *s, struct shadow_slot *slot)
{
    struct new_line *l = slot->now, *fine;
    if (!l || l->fine) return;
    fine = mg_xcalloc(1, sizeof *fine + CELL_BYTES * sizeof(struct new_cell));
    fine->fine = true;
    for (uint32_t i = 0; i < CELL_WORDS; i++) {
        struct new_cell c = l->cells[i];
        c.stores /= 4;
        c.atomics /= 4;
        if (c.writer & SHADOW_LIST) quarter(s->new_shares.at, c.writer);
        for (uint32_t k = 0; k < 4; k++) {
            struct new_cell *to = &fine->cells[4 * i + k];
            *to = c;
            to->start = k == 0 && c.start;
            if (k && c.writer & SHADOW_LIST) to->writer = copy_new_list(s, c.writer);
        }
    }
    free(l);
    slot->now = fine;
}

void shadow_forget_new(struct shadow *s)
{
    for (uint32_t i = 0; i < s->written.n; i++) {
        struct shadow_slot *slot = shadow_slot(shadow_find(s, s->written.at[i]), s->written.at[i]);
        free(slot->now);
        slot->now = NULL;
    }
    s->written.n = 0;
    s->new_shares.n = 0;
}

/* ---- what was ever read ------------------------------------------------------------------------------- */

void shadow_note_read(struct shadow *s, uint64_t address, uint32_t bytes)
{
    struct shadow_page *p = shadow_page(s, address);
    if (!p->communicates) p->communicates = mg_xcalloc(1, (size_t)1 << (SHADOW_PAGE_SHIFT - 3));
    for (uint32_t i = 0; i < bytes; i++, address++) {
        uint32_t bit = address & ((1u << SHADOW_PAGE_SHIFT) - 1);
        p->communicates[bit / 8] |= (uint8_t)(1u << bit % 8);
    }
}

bool shadow_was_read(const struct shadow *s, uint64_t address)
{
    uint32_t bit = address & ((1u << SHADOW_PAGE_SHIFT) - 1);
    if (!s->cap) return false;
    const struct shadow_page *p = s->pages[place_of(s, address >> SHADOW_PAGE_SHIFT)];
    return p && p->communicates && p->communicates[bit / 8] >> bit % 8 & 1;
}

/* ---- ranges ------------------------------------------------------------------------------------------- */

/* The next line from *at on, up to end, that has old cells; NULL: there is none. */
static struct shadow_slot *next_line(struct shadow *s, uint64_t *at, uint64_t end)
{
    while (*at < end) {
        struct shadow_page *p = shadow_find(s, *at);
        uint64_t page_end = (*at | (((uint64_t)1 << SHADOW_PAGE_SHIFT) - 1)) + 1;
        if (!page_end) page_end = end;
        for (; p && *at < end && *at < page_end; *at = (*at | (SHADOW_LINE - 1)) + 1)
            if (shadow_slot(p, *at)->old) return shadow_slot(p, *at);
        *at = page_end;
    }
    return NULL;
}

static void each_cell(struct shadow *s, uint64_t address, uint64_t bytes, bool clear,
                      void (*fn)(void *user, uint32_t writer, uint32_t bytes), void *user)
{
    uint64_t end = address + bytes < address ? UINT64_MAX : address + bytes;
    struct shadow_slot *slot;
    while ((slot = next_line(s, &address, end))) {
        uint64_t last = address | (SHADOW_LINE - 1);
        uint64_t to = last < end ? last + 1 : end;
        if ((address | to) & 3) shadow_divide_old(s, slot);
        uint32_t width = slot->old->fine ? 1 : 4;
        for (; address < to; address += width) {
            struct old_cell *c = &slot->old->cells[(address & (SHADOW_LINE - 1)) / width];
            if (fn && c->writer) fn(user, c->writer, width);
            if (!clear) continue;
            shadow_drop_list(s, c->writer);
            *c = (struct old_cell){0};
        }
    }
}

void shadow_clear(struct shadow *s, uint64_t address, uint64_t bytes)
{
    each_cell(s, address, bytes, true, NULL, NULL);
}

void shadow_each(struct shadow *s, uint64_t address, uint64_t bytes,
                 void (*fn)(void *user, uint32_t writer, uint32_t bytes), void *user)
{
    each_cell(s, address, bytes, false, fn, user);
}
