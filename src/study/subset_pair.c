/* Which launch of one run is which of another. Launches of one thread in one stream come in the same order in every
 * run; how those of several threads or streams lie between each other differs. So launches are paired by their role
 * (process, context, stream, and thread where several launch in one stream) and their number in it. A replay launches
 * from one thread, whatever the program did, and branches of a graph have no order: there the n-th launch of a kernel
 * and geometry in a stream is paired with the n-th. Where launches with other counts
 * could be taken for each other the runs are refused, or, in graphs, a warning says so. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "study/subset_program.h"

struct role {
    uint32_t process, thread; /* thread: 0 where it has the stream alone, or is not known */
    uint32_t device, by;      /* by: the thread that made its first launch; 0 where that is not known */
    uint64_t ctx, stream;
    uint64_t *at; /* launches, in their order; owner: the arena of roles */
    uint64_t n;
    uint64_t sequence; /* hash of kernels and geometries, in their order unless that says nothing */
    bool paired;
};
struct rule { /* how launches of two runs are told apart */
    bool any_geometry, by_thread, ordered, by_device;
};
struct roles {
    struct mg_arena arena;
    const struct mg_subset_program *s;
    struct rule rule;
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

static bool of_several_threads(const struct mg_subset_program *s)
{
    return s->has_epochs && !is_of_one_thread(s);
}

static bool has_graphs(const struct mg_subset_program *s)
{
    bool any = false;
    for (uint64_t i = 0; !any && i < s->n_launches; i++) any = s->launches[i].l->graph != 0;
    return any;
}

static uint32_t n_devices(const struct mg_subset_program *s)
{
    uint64_t seen = 0;
    for (uint64_t i = 0; i < s->n_launches; i++) seen |= UINT64_C(1) << s->launches[i].l->device % 64;
    return (uint32_t)__builtin_popcountll(seen);
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

static uint64_t kind_of(const struct roles *r, const struct mg_plaunch *l)
{
    const char *name = r->s->p->kernels[l->kernel].name;
    uint64_t h = mg_hash64(name, strlen(name), 1);
    if (r->rule.any_geometry) return h;
    h = mg_hash64(l->grid, sizeof l->grid, h);
    return mg_hash64(l->block, sizeof l->block, h);
}

static uint64_t sequence_with(const struct roles *r, uint64_t so_far, const struct mg_plaunch *l)
{
    uint64_t w[] = {so_far, kind_of(r, l)};
    return r->rule.ordered ? mg_hash64(w, sizeof w, 2) : so_far + mg_hash64(w + 1, sizeof *w, 2);
}

static void roles_init(struct roles *r, const struct mg_subset_program *s, struct rule rule)
{
    struct mg_map shared = MG_MAP_INIT, known = MG_MAP_INIT;
    MG_VEC(struct role) all = {0};
    uint32_t *of = mg_xcalloc(s->n_launches + 1, sizeof *of);
    uint64_t k;
    *r = (struct roles){.s = s, .rule = rule};
    if (rule.by_thread) find_shared(s, &shared);
    for (uint64_t i = 0; i < s->n_launches; i++) {
        const struct mg_plaunch *l = s->launches[i].l;
        uint32_t thread = mg_map_get(&shared, key_of(l, 0), NULL) ? s->launches[i].thread : 0;
        if (!mg_map_get(&known, key_of(l, thread), &k)) {
            mg_map_set(&known, key_of(l, thread), k = all.n);
            *mg_vec_push(&all) = (struct role){
                l->process, thread, l->device, s->launches[i].thread, l->ctx, l->stream, NULL, 0, 0, false};
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
    return a->rule.any_geometry ||
           (!memcmp(x->grid, y->grid, sizeof x->grid) && !memcmp(x->block, y->block, sizeof x->block));
}

/* x, of a, has no partner; y, NULL: the role of b that has its place. */
static enum mg_err tell_role(const struct roles *a, const struct role *x, const struct roles *b, const struct role *y,
                             struct mg_diag *d)
{
    char where[64];
    for (uint64_t k = 0; y && a->rule.ordered && k < x->n && k < y->n; k++)
        if (!is_same(a, x->at[k], b, y->at[k])) return tell_difference(a->s, x->at[k], b->s, y->at[k], d);
    if (y && x->n == y->n)
        return mg_diag_err(d, MG_ERR_INPUT, "%s has other launches than %s in stream %llu: the runs differ", b->s->dir,
                           a->s->dir, (unsigned long long)x->stream);
    bool one = a->n == 1 && b->n == 1;
    snprintf(where, sizeof where, one ? "" : " in stream %llu", (unsigned long long)x->stream);
    return tell_counts(a->s, x->n, b->s, y ? y->n : 0, where, d);
}

/* ---- pairs ------------------------------------------------------------------------------------------------ */

static bool in_stream(const struct role *x, const struct role *y)
{
    return x->process == y->process && x->ctx == y->ctx && x->stream == y->stream;
}

static bool differ(double x, double y)
{
    return !isnan(x) && !isnan(y) && x != y;
}

static bool same_counts(const struct roles *r, const struct role *x, const struct role *y)
{
    for (uint64_t k = 0; k < x->n && k < y->n; k++)
        if (differ(r->s->launches[x->at[k]].insts, r->s->launches[y->at[k]].insts)) return false;
    return true;
}

#define NOT_KNOWN "which launch is which in another run is not known"
#define REPLAYS   "counts and times of replays of one capture are of the same launches"

/* Threads of one stream, or of streams of their own, and processes, that make the same launches: numbers of streams
 * and processes say who came first. A replay does not tell who made its streams; the run that it is paired with does.
 */
static enum mg_err refuse_twins(const struct roles *r, const struct roles *other, struct mg_diag *d)
{
    bool threads = is_of_one_thread(r->s) && of_several_threads(other->s);
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t j = 0; j < i; j++) {
            const struct role *x = &r->at[i], *y = &r->at[j];
            if (x->sequence != y->sequence || x->n != y->n || (r->rule.by_device && x->device != y->device)) continue;
            if (x->thread && in_stream(x, y))
                return mg_diag_err(d, MG_ERR_INPUT,
                                   "%s: two threads make the same launches in stream %llu: " NOT_KNOWN "; " REPLAYS,
                                   r->s->dir, (unsigned long long)x->stream);
            if ((threads || x->process != y->process || x->by != y->by) && !same_counts(r, x, y))
                return mg_diag_err(d, MG_ERR_INPUT,
                                   "%s: two %s make the same launches, with other counts: " NOT_KNOWN "; " REPLAYS,
                                   r->s->dir, x->process != y->process ? "processes" : "threads");
        }
    return MG_ERR_OK;
}

/* Kinds of launches (kernel and geometry) of which it is not known which is which: value 1. */
static void kinds_of_threads(const struct roles *r, struct mg_map *unknown)
{
    struct mg_map first = MG_MAP_INIT;
    for (uint64_t i = 0; r->s->has_epochs && i < r->s->n_launches; i++) {
        const struct mg_subset_launch *x = &r->s->launches[i];
        uint64_t w[] = {kind_of(r, x->l), key_of(x->l, 0)}, kind = mg_hash64(w, sizeof w, 3), thread;
        if (!mg_map_get(&first, kind, &thread))
            mg_map_set(&first, kind, x->thread);
        else if (thread != x->thread)
            mg_map_set(unknown, w[0], 1);
    }
    mg_map_release(&first);
}
static void kinds_of_graphs(const struct roles *r, struct mg_map *unknown)
{
    for (uint64_t i = 0; i < r->s->n_launches; i++)
        if (r->s->launches[i].l->graph) mg_map_set(unknown, kind_of(r, r->s->launches[i].l), 1);
}

/* A launch of such a kind that has other counts than one before it; NULL: none has. */
static const struct mg_plaunch *counted_apart(const struct roles *r, const struct mg_map *unknown)
{
    struct mg_map first = MG_MAP_INIT;
    const struct mg_plaunch *found = NULL;
    for (uint64_t i = 0, at; !found && i < r->s->n_launches; i++) {
        uint64_t kind = kind_of(r, r->s->launches[i].l);
        if (!mg_map_get(unknown, kind, NULL)) continue;
        if (!mg_map_get(&first, kind, &at))
            mg_map_set(&first, kind, i);
        else if (differ(r->s->launches[at].insts, r->s->launches[i].insts))
            found = r->s->launches[i].l;
    }
    mg_map_release(&first);
    return found;
}

/* a has counts. One of them is a replay, which has no threads, or they have graphs. */
static enum mg_err look_at_kinds(const struct roles *a, const struct roles *b, struct mg_diag *d)
{
    struct mg_map threads = MG_MAP_INIT, graphs = MG_MAP_INIT;
    const struct mg_plaunch *l = NULL;
    enum mg_err err = MG_ERR_OK;
    if (!a->rule.by_thread) {
        kinds_of_threads(a, &threads);
        kinds_of_threads(b, &threads);
        l = counted_apart(a, &threads);
    }
    if (l)
        err = mg_diag_err(d, MG_ERR_INPUT,
                          "several threads launch %.80s in stream %llu, with other counts, and one of %s and %s is a "
                          "replay: " NOT_KNOWN "; " REPLAYS,
                          a->s->p->kernels[l->kernel].demangled, (unsigned long long)l->stream, a->s->dir, b->s->dir);
    if (!err && !a->rule.ordered) {
        kinds_of_graphs(a, &graphs);
        kinds_of_graphs(b, &graphs);
        l = counted_apart(a, &graphs);
        if (l)
            (void)mg_diag_add(d, MG_ERR_OK, MG_SEV_WARNING, NULL, 0, 0, NULL,
                              "%s: launches of %.80s in graphs have one geometry and other counts: where they are on "
                              "branches that run side by side, " NOT_KNOWN "; " REPLAYS,
                              b->s->dir, a->s->p->kernels[l->kernel].demangled);
    }
    mg_map_release(&threads);
    mg_map_release(&graphs);
    return err;
}

/* By stream; of streams that are made by threads numbers differ, too: then by the launches, where these tell. */
static struct role *partner_of(const struct role *x, const struct roles *b, bool by_stream)
{
    struct role *found = NULL;
    for (uint32_t k = 0; k < b->n; k++) {
        struct role *y = &b->at[k];
        if (y->paired || y->process != x->process || y->sequence != x->sequence || y->n != x->n ||
            (b->rule.by_device && y->device != x->device))
            continue;
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

struct kind_at {
    uint64_t kind, k;
};
static int by_kind(const void *a, const void *b)
{
    const struct kind_at *x = a, *y = b;
    return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : x->k < y->k ? -1 : x->k > y->k;
}
static struct kind_at *kinds_in_order(const struct roles *r, const struct role *x)
{
    struct kind_at *all = mg_xcalloc(x->n + 1, sizeof *all);
    for (uint64_t k = 0; k < x->n; k++)
        all[k] = (struct kind_at){r->rule.ordered ? 0 : kind_of(r, r->s->launches[x->at[k]].l), k};
    qsort(all, x->n, sizeof *all, by_kind);
    return all;
}
static void pair_launches(const struct roles *a, const struct role *x, const struct roles *b, const struct role *y,
                          uint64_t *place)
{
    struct kind_at *of_x = kinds_in_order(a, x), *of_y = kinds_in_order(b, y);
    for (uint64_t k = 0; k < x->n; k++) place[x->at[of_x[k].k]] = y->at[of_y[k].k];
    free(of_x);
    free(of_y);
}

static enum mg_err pair_roles(struct roles *a, struct roles *b, uint64_t *place, struct mg_diag *d)
{
    for (int by_stream = 1; by_stream >= 0; by_stream--)
        for (uint32_t i = 0; i < a->n; i++) {
            struct role *x = &a->at[i], *y = x->paired ? NULL : partner_of(x, b, by_stream);
            if (!y) continue;
            x->paired = y->paired = true;
            pair_launches(a, x, b, y, place);
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
    bool told_apart = by_thread || !(of_several_threads(a) || of_several_threads(b)); /* else one is a replay */
    struct rule rule = {.any_geometry = any_geometry,
                        .by_thread = by_thread,
                        .ordered = told_apart && !has_graphs(a) && !has_graphs(b),
                        .by_device = n_devices(a) > 1 && n_devices(a) == n_devices(b)};
    roles_init(&ra, a, rule);
    roles_init(&rb, b, rule);
    enum mg_err err = MG_ERR_OK;
    if (ra.n > 1 && a->n_launches != b->n_launches) err = tell_counts(a, a->n_launches, b, b->n_launches, "", d);
    if (!err) err = knows_threads(&rb, &ra, d);
    if (!err) err = knows_threads(&ra, &rb, d);
    if (!err) err = refuse_twins(&ra, &rb, d);
    if (!err) err = look_at_kinds(&ra, &rb, d);
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
