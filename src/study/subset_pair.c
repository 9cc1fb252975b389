/* Which launch of one run is which of another. Launches of one thread in one stream come in the same order in every
 * run; how those of several threads or streams lie between each other differs. So launches are paired by their role
 * (process, context, stream, and thread where several launch in one stream) and their number in it. A replay launches
 * from one thread, whatever the program did: with it streams are paired as they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "study/subset_program.h"

struct role {
    uint32_t process, thread; /* thread: 0 where it has the stream alone, or is not known */
    uint64_t ctx, stream;
    uint64_t *at; /* launches, in their order; owner: the arena of roles */
    uint64_t n;
    uint64_t sequence; /* hash of kernels and geometries */
    bool paired;
};
struct roles {
    struct mg_arena arena;
    const struct mg_subset_program *s;
    bool any_geometry;
    struct role *at;
    uint32_t n;
};

static uint64_t key_of(const struct mg_plaunch *l, uint32_t thread)
{
    uint64_t w[] = {l->process, l->ctx, l->stream, thread};
    return mg_hash64(w, sizeof w, 7);
}

/* Are all of its launches known to be of one thread? */
static bool is_of_one_thread(const struct mg_subset_program *s)
{
    bool one = s->has_epochs;
    for (uint64_t i = 1; one && i < s->n_launches; i++) one = s->launches[i].thread == s->launches[0].thread;
    return one;
}

/* Streams into which several threads launch: value 1. */
static void find_shared(const struct mg_subset_program *s, struct mg_map *shared)
{
    struct mg_map first = MG_MAP_INIT;
    uint64_t thread;
    for (uint64_t i = 0; i < s->n_launches; i++) {
        uint64_t key = key_of(s->launches[i].l, 0);
        if (!mg_map_get(&first, key, &thread))
            mg_map_set(&first, key, s->launches[i].thread);
        else if (thread != s->launches[i].thread)
            mg_map_set(shared, key, 1);
    }
    mg_map_release(&first);
}

static uint64_t sequence_with(const struct roles *r, uint64_t so_far, const struct mg_plaunch *l)
{
    const char *name = r->s->p->kernels[l->kernel].name;
    uint64_t w[] = {so_far, mg_hash64(name, strlen(name), 1)};
    so_far = mg_hash64(w, sizeof w, 2);
    if (r->any_geometry) return so_far;
    so_far = mg_hash64(l->grid, sizeof l->grid, so_far);
    return mg_hash64(l->block, sizeof l->block, so_far);
}

static void roles_init(struct roles *r, const struct mg_subset_program *s, bool any_geometry, bool by_thread)
{
    struct mg_map shared = MG_MAP_INIT, known = MG_MAP_INIT;
    MG_VEC(struct role) all = {0};
    uint32_t *of = mg_xcalloc(s->n_launches + 1, sizeof *of);
    uint64_t k;
    *r = (struct roles){.s = s, .any_geometry = any_geometry};
    if (by_thread) find_shared(s, &shared);
    for (uint64_t i = 0; i < s->n_launches; i++) {
        const struct mg_plaunch *l = s->launches[i].l;
        uint32_t thread = mg_map_get(&shared, key_of(l, 0), NULL) ? s->launches[i].thread : 0;
        if (!mg_map_get(&known, key_of(l, thread), &k)) {
            mg_map_set(&known, key_of(l, thread), k = all.n);
            *mg_vec_push(&all) = (struct role){l->process, thread, l->ctx, l->stream, NULL, 0, 0, false};
        }
        of[i] = (uint32_t)k;
        all.at[k].n++;
        all.at[k].sequence = sequence_with(r, all.at[k].sequence, l);
    }
    r->n = all.n;
    r->at = mg_arena_array(&r->arena, struct role, all.n + 1);
    for (uint32_t j = 0; j < all.n; j++) {
        r->at[j] = all.at[j];
        r->at[j].at = mg_arena_array(&r->arena, uint64_t, all.at[j].n);
        r->at[j].n = 0;
    }
    for (uint64_t i = 0; i < s->n_launches; i++) r->at[of[i]].at[r->at[of[i]].n++] = i;
    free(of);
    mg_vec_release(&all);
    mg_map_release(&shared);
    mg_map_release(&known);
}

/* ---- what differs --------------------------------------------------------------------------------------- */

static enum mg_err tell_difference(const struct mg_subset_program *a, uint64_t i, const struct mg_subset_program *b,
                                   uint64_t j, struct mg_diag *d)
{
    const struct mg_plaunch *x = a->launches[i].l, *y = b->launches[j].l;
    return mg_diag_err(d, MG_ERR_INPUT,
                       "%s: launch %llu is %.80s, grid %u,%u,%u block %u,%u,%u; in %s it is %.80s, grid "
                       "%u,%u,%u block %u,%u,%u: the sequences differ",
                       b->dir, (unsigned long long)j, b->p->kernels[y->kernel].demangled, y->grid[0], y->grid[1],
                       y->grid[2], y->block[0], y->block[1], y->block[2], a->dir, a->p->kernels[x->kernel].demangled,
                       x->grid[0], x->grid[1], x->grid[2], x->block[0], x->block[1], x->block[2]);
}

static enum mg_err tell_counts(const struct mg_subset_program *a, uint64_t n, const struct mg_subset_program *b,
                               uint64_t m, const char *where, struct mg_diag *d)
{
    return mg_diag_err(d, MG_ERR_INPUT, "%s has %llu launches%s and %s has %llu: the sequences differ", b->dir,
                       (unsigned long long)m, where, a->dir, (unsigned long long)n);
}

static bool is_same(const struct roles *a, uint64_t i, const struct roles *b, uint64_t j)
{
    const struct mg_plaunch *x = a->s->launches[i].l, *y = b->s->launches[j].l;
    if (strcmp(a->s->p->kernels[x->kernel].name, b->s->p->kernels[y->kernel].name)) return false;
    return a->any_geometry ||
           (!memcmp(x->grid, y->grid, sizeof x->grid) && !memcmp(x->block, y->block, sizeof x->block));
}

/* x, of a, has no partner; y, NULL: the role of b that has its place. */
static enum mg_err tell_role(const struct roles *a, const struct role *x, const struct roles *b, const struct role *y,
                             struct mg_diag *d)
{
    char where[64];
    for (uint64_t k = 0; y && k < x->n && k < y->n; k++)
        if (!is_same(a, x->at[k], b, y->at[k])) return tell_difference(a->s, x->at[k], b->s, y->at[k], d);
    bool one = a->n == 1 && b->n == 1;
    snprintf(where, sizeof where, one ? "" : " in stream %llu", (unsigned long long)x->stream);
    return tell_counts(a->s, x->n, b->s, y ? y->n : 0, where, d);
}

/* ---- pairs ------------------------------------------------------------------------------------------------ */

static bool in_stream(const struct role *x, const struct role *y)
{
    return x->process == y->process && x->ctx == y->ctx && x->stream == y->stream;
}

/* Threads of one stream that make the same launches. */
static enum mg_err refuse_twins(const struct roles *r, struct mg_diag *d)
{
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t j = 0; r->at[i].thread && j < i; j++)
            if (in_stream(&r->at[i], &r->at[j]) && r->at[i].sequence == r->at[j].sequence)
                return mg_diag_err(d, MG_ERR_INPUT,
                                   "%s: two threads make the same launches in stream %llu: which launch is which in "
                                   "another run is not known",
                                   r->s->dir, (unsigned long long)r->at[i].stream);
    return MG_ERR_OK;
}

/* By stream; of streams that are made by threads numbers differ, too: then by the launches, where these tell. */
static struct role *partner_of(const struct role *x, const struct roles *b, bool by_stream)
{
    struct role *found = NULL;
    for (uint32_t k = 0; k < b->n; k++) {
        struct role *y = &b->at[k];
        if (y->paired || y->process != x->process || y->sequence != x->sequence || y->n != x->n) continue;
        if (by_stream ? in_stream(x, y) && !y->thread == !x->thread : !found)
            found = y;
        else if (!by_stream)
            return NULL;
    }
    return found;
}

static const struct role *in_place_of(const struct role *x, const struct roles *b)
{
    for (uint32_t k = 0; k < b->n; k++)
        if (!b->at[k].paired && in_stream(x, &b->at[k])) return &b->at[k];
    return NULL;
}

static enum mg_err pair_roles(struct roles *a, struct roles *b, uint64_t *place, struct mg_diag *d)
{
    for (int by_stream = 1; by_stream >= 0; by_stream--)
        for (uint32_t i = 0; i < a->n; i++) {
            struct role *x = &a->at[i], *y = x->paired ? NULL : partner_of(x, b, by_stream);
            if (!y) continue;
            x->paired = y->paired = true;
            for (uint64_t k = 0; k < x->n; k++) place[x->at[k]] = y->at[k];
        }
    for (uint32_t i = 0; i < a->n; i++)
        if (!a->at[i].paired) return tell_role(a, &a->at[i], b, in_place_of(&a->at[i], b), d);
    return MG_ERR_OK;
}

static enum mg_err knows_threads(const struct roles *r, const struct roles *other, struct mg_diag *d)
{
    bool shared = false;
    for (uint32_t i = 0; i < other->n; i++) shared = shared || other->at[i].thread;
    if (!shared || r->s->has_epochs) return MG_ERR_OK;
    return mg_diag_err(d, MG_ERR_INPUT, "%s: several threads launch in one stream, and it does not tell them apart: %s",
                       r->s->dir, r->s->why_no_epochs);
}

enum mg_err mg_subset_program_pair(const struct mg_subset_program *a, struct mg_subset_program *b, bool any_geometry,
                                   struct mg_diag *d)
{
    struct roles ra, rb;
    uint64_t *place = mg_xcalloc(a->n_launches + 1, sizeof *place);
    bool by_thread = !is_of_one_thread(a) && !is_of_one_thread(b);
    roles_init(&ra, a, any_geometry, by_thread);
    roles_init(&rb, b, any_geometry, by_thread);
    enum mg_err err = MG_ERR_OK;
    if (ra.n > 1 && a->n_launches != b->n_launches) err = tell_counts(a, a->n_launches, b, b->n_launches, "", d);
    if (!err) err = knows_threads(&rb, &ra, d);
    if (!err) err = knows_threads(&ra, &rb, d);
    if (!err) err = refuse_twins(&ra, d);
    if (!err) err = pair_roles(&ra, &rb, place, d);
    if (!err && a->n_launches != b->n_launches) err = tell_counts(a, a->n_launches, b, b->n_launches, "", d);
    if (!err) {
        struct mg_subset_launch *old = b->launches;
        b->launches = mg_arena_array(&b->arena, struct mg_subset_launch, b->n_launches + 1);
        for (uint64_t i = 0; i < b->n_launches; i++) b->launches[i] = old[place[i]];
    }
    mg_arena_release(&ra.arena);
    mg_arena_release(&rb.arena);
    free(place);
    return err;
}
