/* The memory behind an L2 (study/dram.h) against a list that is searched from end to end. */
#include <stdlib.h>
#include <string.h>

#include "study/dram.h"
#include "test.h"

enum { MOST = 5, ACCESSES = 4000 };
struct said {
    uint64_t address[16 * ACCESSES];
    bool write[16 * ACCESSES];
    uint32_t n;
};

static void note(void *user, uint64_t address, bool write)
{
    struct said *s = user;
    s->address[s->n] = address;
    s->write[s->n++] = write;
}

struct plain {
    uint64_t line[MOST];
    unsigned has[MOST], dirty[MOST]; /* newest first */
    uint32_t n;
};

static void plain_access(struct plain *p, uint64_t line, unsigned sectors, bool reads, bool writes, struct said *s)
{
    uint32_t i = 0;
    while (i < p->n && p->line[i] != line) i++;
    unsigned has = i < p->n ? p->has[i] : 0, dirty = i < p->n ? p->dirty[i] : 0;
    if (i == p->n && p->n == MOST) {
        i = MOST - 1;
        for (unsigned k = 0; k < 4; k++)
            if (p->dirty[i] >> k & 1) note(s, p->line[i] * 128 + k * 32, true);
    } else if (i == p->n) {
        p->n++;
    }
    for (; i; i--) {
        p->line[i] = p->line[i - 1];
        p->has[i] = p->has[i - 1];
        p->dirty[i] = p->dirty[i - 1];
    }
    for (unsigned k = 0; k < 4 && reads; k++)
        if ((sectors & ~has) >> k & 1) note(s, line * 128 + k * 32, false);
    p->line[0] = line;
    p->has[0] = has | sectors;
    p->dirty[0] = writes ? dirty | sectors : dirty;
}

MG_TEST(dram_is_an_lru_cache_with_write_back)
{
    static struct said one, two;
    struct plain p = {.n = 0};
    struct mg_dram *d = mg_dram_new(MOST * 128, note, &one);
    uint64_t seed = 12345;
    for (int i = 0; i < ACCESSES; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t line = (seed >> 40) % 9;
        unsigned sectors = (unsigned)(seed >> 50) % 15 + 1, kind = (unsigned)(seed >> 60) % 3;
        mg_dram_access(d, line, sectors, kind != 1, kind != 0);
        plain_access(&p, line, sectors, kind != 1, kind != 0, &two);
    }
    MG_CHECK(one.n == two.n && one.n > ACCESSES);
    MG_CHECK(!memcmp(one.address, two.address, one.n * sizeof *one.address));
    MG_CHECK(!memcmp(one.write, two.write, one.n * sizeof *one.write));
    mg_dram_free(d);
}
