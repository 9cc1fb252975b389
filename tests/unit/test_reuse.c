/* Reuse distances against caches that keep a list of lines, newest first. */
#include <string.h>

#include "study/reuse.h"
#include "test.h"

enum { LINES = 40, ACCESSES = 6000, SIZES = 5 };

struct cache { /* fully associative, LRU, of so many lines */
    uint32_t size, n;
    struct {
        uint64_t line;
        unsigned sectors;
    } at[LINES];
};

/* Lines that were seen, and the caches; sometimes all become invalid. */
struct witness {
    struct cache caches[SIZES];
    unsigned seen[LINES];
};

static void invalidate(struct mg_reuse *r, struct witness *w)
{
    mg_reuse_invalidate(r);
    for (int k = 0; k < SIZES; k++) w->caches[k].n = 0;
}

/* The sectors of the mask that are there. */
static unsigned look_up(struct cache *c, uint64_t line, unsigned sectors)
{
    uint32_t at = 0;
    unsigned had = 0;
    while (at < c->n && c->at[at].line != line) at++;
    if (at < c->n)
        had = c->at[at].sectors;
    else if (c->n < c->size)
        c->n++;
    else
        at--; /* the oldest leaves */
    memmove(&c->at[1], &c->at[0], at * sizeof *c->at);
    c->at[0].line = line;
    c->at[0].sectors = had | sectors;
    return had & sectors;
}

static void compare(struct mg_reuse *r, uint64_t seed, uint64_t gap)
{
    struct witness w = {.caches = {{.size = 1}, {.size = 2}, {.size = 7}, {.size = 16}, {.size = LINES}}};
    for (int i = 0; i < ACCESSES; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t number = (seed >> 33) % (seed >> 60 < 8 ? LINES : 6), line = number * gap;
        unsigned sectors = seed >> 50 & 15 ? (unsigned)(seed >> 50 & 15) : 1;
        uint32_t distance[MG_REUSE_SECTORS];
        if ((seed >> 24) % 61 == 0) invalidate(r, &w);
        mg_reuse_access(r, line, sectors, distance);
        for (int k = 0; k < SIZES; k++) {
            unsigned has = look_up(&w.caches[k], line, sectors), hits = 0;
            for (unsigned s = 0; s < MG_REUSE_SECTORS; s++)
                if (sectors >> s & 1 && distance[s] < w.caches[k].size) hits |= 1u << s;
            MG_CHECK_EQ(hits, has);
        }
        for (unsigned s = 0; s < MG_REUSE_SECTORS; s++)
            if (sectors >> s & 1) MG_CHECK_EQ(distance[s] == MG_REUSE_FIRST, !(w.seen[number] >> s & 1));
        w.seen[number] |= sectors;
    }
}

MG_TEST(reuse_is_lru_of_every_size)
{
    struct mg_reuse r = {0};
    for (uint64_t seed = 1; seed < 4; seed++) {
        compare(&r, seed, 977);
        mg_reuse_reset_numbered(&r, seed == 2 ? LINES : 2 * LINES); /* more, fewer and as many as there are */
        compare(&r, seed, 1);
        mg_reuse_reset_numbered(&r, LINES);
        compare(&r, seed + 9, 1);
        mg_reuse_reset(&r);
    }
    mg_reuse_release(&r);
}
