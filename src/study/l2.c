#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "study/l2.h"

enum { LINE = 128, WAYS = 16, SMS = 256 /* of a higher number nothing is sure */, SECTORS = MG_REUSE_SECTORS };

struct row {
    uint64_t due[SECTORS]; /* guess: the turn at which a sector is there that the other half asked for */
    uint32_t readers;      /* sure: index + 1 */
    uint8_t sectors, written;
};
struct half {
    uint64_t n_sets, now;
    uint64_t *line, *used; /* by row; used 0: free */
    struct row *rows;
};
struct paired { /* the largest distance that the line had since a sector came, in 64 bytes */
    uint32_t most[SECTORS];
};
struct readers {
    uint64_t sms[SECTORS][SMS / 64];
};
struct mg_l2 {
    uint64_t n_lines;
    struct mg_reuse alone;
    MG_VEC(struct paired) paired; /* by line of it */
    struct half sure, guess[2];
    MG_VEC(struct readers) readers;
};

static void half_init(struct half *h, uint64_t bytes)
{
    h->n_sets = MG_MAX(bytes / LINE / WAYS, (uint64_t)1);
    h->line = mg_xcalloc(h->n_sets * WAYS, sizeof *h->line);
    h->used = mg_xcalloc(h->n_sets * WAYS, sizeof *h->used);
    h->rows = mg_xcalloc(h->n_sets * WAYS, sizeof *h->rows);
}

static void half_release(struct half *h)
{
    free(h->line);
    free(h->used);
    free(h->rows);
}

struct mg_l2 *mg_l2_new(uint64_t bytes)
{
    struct mg_l2 *l = mg_xcalloc(1, sizeof *l);
    l->n_lines = bytes / LINE;
    half_init(&l->sure, bytes / 2);
    for (int i = 0; i < 2; i++) half_init(&l->guess[i], bytes / 2);
    return l;
}

void mg_l2_free(struct mg_l2 *l)
{
    if (!l) return;
    mg_reuse_release(&l->alone);
    mg_vec_release(&l->paired);
    half_release(&l->sure);
    for (int i = 0; i < 2; i++) half_release(&l->guess[i]);
    mg_vec_release(&l->readers);
    free(l);
}

uint32_t mg_l2_lines(const struct mg_l2 *l)
{
    return l->alone.lines.n;
}

unsigned mg_l2_pairs(unsigned sectors)
{
    return sectors | (sectors & 5) << 1 | (sectors & 10) >> 1;
}

unsigned mg_l2_half(uint64_t number)
{
    return (unsigned)mg_mix64(number) & 1;
}

/* ---- sets of 16 ways ---------------------------------------------------------------------------------- */

/* The line's row, or the one that it would get: free, else the oldest of its set. */
static uint64_t seek(const struct half *h, uint64_t line)
{
    uint64_t at = line % h->n_sets * WAYS, best = at;
    for (uint64_t i = at; i < at + WAYS; i++) {
        if (h->used[i] && h->line[i] == line) return i;
        if (h->used[i] < h->used[best]) best = i;
    }
    return best;
}

static struct row *peek(struct half *h, uint64_t line)
{
    uint64_t i = seek(h, line);
    return h->used[i] && h->line[i] == line ? &h->rows[i] : NULL;
}

/* The line's row, now the newest; made if it has none. */
static struct row *take(struct mg_l2 *l, struct half *h, uint64_t line)
{
    uint64_t i = seek(h, line);
    struct row *r = &h->rows[i];
    if (!h->used[i] || h->line[i] != line) {
        uint32_t readers = r->readers;
        *r = (struct row){.readers = readers};
        if (readers) l->readers.at[readers - 1] = (struct readers){0};
        h->line[i] = line;
    }
    h->used[i] = ++h->now;
    return r;
}

/* ---- what is sure ------------------------------------------------------------------------------------- */

/* Sectors that the multiprocessor has read; notes that it reads these now, or that nobody has the new content. */
static unsigned note_readers(struct mg_l2 *l, struct row *r, const struct mg_l2_request *q)
{
    unsigned had = 0;
    if (!r->readers) {
        *mg_vec_push(&l->readers) = (struct readers){0};
        r->readers = l->readers.n;
    }
    for (unsigned k = 0; k < SECTORS; k++) {
        if (!(q->sectors >> k & 1)) continue;
        uint64_t *sms = l->readers.at[r->readers - 1].sms[k];
        if (q->writes) {
            memset(sms, 0, sizeof l->readers.at->sms[k]);
        } else if (q->sm < SMS) {
            had |= (unsigned)(sms[q->sm / 64] >> q->sm % 64 & 1) << k;
            sms[q->sm / 64] |= (uint64_t)1 << q->sm % 64;
        }
    }
    return had;
}

/* Which sectors hit for sure; *there: which lie in the sets at all. */
static unsigned ask_sure(struct mg_l2 *l, const struct mg_l2_request *q, unsigned *there)
{
    struct row *r = take(l, &l->sure, q->line);
    *there = r->sectors & q->sectors;
    unsigned had = note_readers(l, r, q), known = *there & (q->writes ? r->written : had);
    r->sectors |= q->sectors;
    if (q->writes) r->written |= q->sectors;
    return known;
}

/* ---- the best guess ----------------------------------------------------------------------------------- */

static void fill(struct row *r, unsigned sectors, uint64_t due)
{
    r->sectors |= (uint8_t)sectors;
    for (unsigned k = 0; k < SECTORS; k++)
        if (sectors >> k & 1) r->due[k] = due;
}

static unsigned guess_read(struct mg_l2 *l, const struct mg_l2_request *q, struct half *home, struct half *own)
{
    struct row *mine = take(l, own, q->line);
    unsigned hits = mine->sectors & q->sectors;
    for (unsigned k = 0; k < SECTORS; k++)
        if (mine->due[k] > q->turn) hits &= ~(1u << k);
    unsigned brought = mg_l2_pairs(q->sectors & ~hits);
    if (brought && home != own) {
        struct row *theirs = take(l, home, q->line);
        fill(theirs, brought & ~theirs->sectors, q->turn + q->window);
    }
    fill(mine, brought, 0);
    return hits;
}

static unsigned guess_write(struct mg_l2 *l, const struct mg_l2_request *q, struct half *home, struct half *other)
{
    struct row *row = take(l, home, q->line), *copy = peek(other, q->line);
    unsigned hits = row->sectors & q->sectors;
    fill(row, q->reads ? mg_l2_pairs(q->sectors & ~hits) | q->sectors : q->sectors, 0);
    if (copy) copy->sectors &= (uint8_t)~q->sectors;
    return hits;
}

static unsigned ask_guess(struct mg_l2 *l, const struct mg_l2_request *q)
{
    unsigned home = mg_l2_half(mg_reuse_newest(&l->alone));
    if (q->writes) return guess_write(l, q, &l->guess[home], &l->guess[!home]);
    return guess_read(l, q, &l->guess[home], &l->guess[mg_l2_half(q->sm / 2)]);
}

/* ---- one cache ---------------------------------------------------------------------------------------- */

/* Distances if 64 bytes come at a time, from the line's own one. */
static void note_paired(struct mg_l2 *l, const struct mg_l2_request *q, uint32_t of_line, uint32_t distance[SECTORS])
{
    uint32_t ix = mg_reuse_newest(&l->alone);
    unsigned brought = q->reads ? mg_l2_pairs(q->sectors) : q->sectors;
    if (ix == l->paired.n)
        *mg_vec_push(&l->paired) = (struct paired){{MG_REUSE_FIRST, MG_REUSE_FIRST, MG_REUSE_FIRST, MG_REUSE_FIRST}};
    for (unsigned k = 0; k < SECTORS; k++) {
        uint32_t *most = &l->paired.at[ix].most[k];
        if (*most != MG_REUSE_FIRST && of_line > *most) *most = of_line;
        distance[k] = *most;
        if (brought >> k & 1) *most = 0;
    }
}

/* ---- all ---------------------------------------------------------------------------------------------- */

/* Of 64 bytes that a read misses as a whole one sector may hit: if another load, that asks for the other one alone,
 * comes before. */
static unsigned may_come_before(const struct mg_l2_request *q, unsigned one)
{
    unsigned missing = q->sectors & ~one & q->split, low = missing & missing >> 1 & 5;
    return q->writes ? 0 : low;
}

void mg_l2_access(struct mg_l2 *l, const struct mg_l2_request *q, struct mg_l2_answer *a)
{
    unsigned one = 0, first = 0, there;
    note_paired(l, q, mg_reuse_access(&l->alone, q->line, q->sectors, a->alone), a->paired);
    for (unsigned k = 0; k < SECTORS; k++) {
        if (!(q->sectors >> k & 1)) continue;
        first |= (unsigned)(a->alone[k] == MG_REUSE_FIRST) << k;
        one |= (unsigned)(a->paired[k] < l->n_lines) << k;
    }
    unsigned sure = ask_sure(l, q, &there), guess = ask_guess(l, q), again = q->sectors & ~first;
    a->first = (uint8_t)first;
    a->guess = (uint8_t)guess;
    a->least = (uint8_t)(one & sure & guess);
    a->most = (uint8_t)(one | sure | guess | may_come_before(q, one));
    a->lost_least = (uint8_t)(again & ~(one | there));
    a->lost_most = (uint8_t)(again & ~(one & there));
}
