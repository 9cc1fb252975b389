#include "study/dram.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"

enum { LINE = 128, SECTOR = 32, NONE = 0 /* lines begin at 1 */ };

struct line {
    uint64_t number;
    uint32_t newer, older; /* of the lines in order of use */
    uint8_t has, dirty;
};
struct mg_dram {
    mg_dram_fn *fn;
    void *user;
    struct mg_map at; /* line number to its index */
    MG_VEC(struct line) lines;
    uint32_t newest, oldest, most;
};

struct mg_dram *mg_dram_new(uint64_t bytes, mg_dram_fn *fn, void *user)
{
    struct mg_dram *d = mg_xcalloc(1, sizeof *d);
    d->fn = fn;
    d->user = user;
    d->most = (uint32_t)MG_MIN(MG_MAX(bytes / LINE, (uint64_t)1), (uint64_t)UINT32_MAX / 2);
    (void)mg_vec_push(&d->lines); /* none */
    d->lines.at[NONE] = (struct line){0};
    return d;
}

void mg_dram_free(struct mg_dram *d)
{
    if (!d) return;
    mg_map_release(&d->at);
    mg_vec_release(&d->lines);
    free(d);
}

static void unlink_line(struct mg_dram *d, uint32_t ix)
{
    const struct line *l = &d->lines.at[ix];
    if (l->newer)
        d->lines.at[l->newer].older = l->older;
    else
        d->newest = l->older;
    if (l->older)
        d->lines.at[l->older].newer = l->newer;
    else
        d->oldest = l->newer;
}

static void link_newest(struct mg_dram *d, uint32_t ix)
{
    struct line *l = &d->lines.at[ix];
    l->newer = NONE;
    l->older = d->newest;
    if (d->newest) d->lines.at[d->newest].newer = ix;
    d->newest = ix;
    if (!d->oldest) d->oldest = ix;
}

static void tell(struct mg_dram *d, uint64_t line, unsigned sectors, bool write)
{
    for (unsigned k = 0; k < LINE / SECTOR; k++)
        if (sectors >> k & 1) d->fn(d->user, line * LINE + k * SECTOR, write);
}

/* Room for a line: a new one, or the oldest one's, which is written where it is dirty. */
static uint32_t make_room(struct mg_dram *d)
{
    if (d->lines.n <= d->most) {
        (void)mg_vec_push(&d->lines);
        return d->lines.n - 1;
    }
    uint32_t ix = d->oldest;
    unlink_line(d, ix);
    mg_map_del(&d->at, d->lines.at[ix].number);
    tell(d, d->lines.at[ix].number, d->lines.at[ix].dirty, true);
    return ix;
}

void mg_dram_access(struct mg_dram *d, uint64_t line, unsigned sectors, bool reads, bool writes)
{
    uint64_t found;
    uint32_t ix;
    if (mg_map_get(&d->at, line, &found)) {
        ix = (uint32_t)found;
        unlink_line(d, ix);
    } else {
        ix = make_room(d);
        d->lines.at[ix] = (struct line){.number = line};
        mg_map_set(&d->at, line, ix);
    }
    link_newest(d, ix);
    struct line *l = &d->lines.at[ix];
    if (reads) tell(d, line, sectors & ~l->has, false);
    l->has |= (uint8_t)sectors;
    if (writes) l->dirty |= (uint8_t)sectors;
}
