/* What instrumenting costs: kernel time of each mode over native kernel time, kernel by kernel and shape by shape.
 *
 * Native and instrumented times come from one profile where it was written with --repeat (turns of either code on the
 * same memory, without the first run of each), else from runs of their own. On the CPU device the latter are not
 * compared: early launches are interpreted there, and tiers are never mixed into one ratio. Of each kernel and shape
 * the medians are compared, as often as it was launched.
 */
#include <math.h>
#include <string.h>

#include "report/overview/priv.h"

typedef MG_VEC(double) times;

struct group { /* a kernel in one shape */
    const char *kernel, *module;
    uint32_t grid[3], block[3], shared;
    uint64_t launches; /* of the program */
    times native, instrumented;
    uint64_t turn;        /* runs of the turn so far, */
    enum mg_ran turn_ran; /* and of which code */
};
typedef MG_VEC(struct group) groups;

static bool same_shape(const struct group *g, const struct mg_pkernel *k, const struct mg_plaunch *l)
{
    return g->shared == l->dyn_shared_bytes && !memcmp(g->grid, l->grid, sizeof g->grid) &&
           !memcmp(g->block, l->block, sizeof g->block) && !strcmp(g->kernel, k->name) && !strcmp(g->module, k->module);
}

static struct group *group_of(groups *all, const struct mg_pkernel *k, const struct mg_plaunch *l)
{
    for (uint32_t i = all->n; i-- > 0;)
        if (same_shape(&all->at[i], k, l)) return &all->at[i];
    struct group *g = mg_vec_push(all);
    *g = (struct group){.kernel = k->name, .module = k->module, .shared = l->dyn_shared_bytes};
    memcpy(g->grid, l->grid, sizeof g->grid);
    memcpy(g->block, l->block, sizeof g->block);
    return g;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(times *t)
{
    qsort(t->at, t->n, sizeof *t->at, by_size);
    return t->n % 2 ? t->at[t->n / 2] : (t->at[t->n / 2 - 1] + t->at[t->n / 2]) / 2;
}

/* Order statistics that hold the median in 95 of 100 cases; sorted before. false: too few. */
static bool bounds(const times *t, double *low, double *high)
{
    double p = pow(0.5, t->n), sum = 0; /* of exactly k below the median */
    uint32_t k = 0;
    for (; k < t->n && sum + p <= 0.025; k++) {
        sum += p;
        p *= (double)(t->n - k) / (k + 1);
    }
    if (!k) return false;
    *low = t->at[k - 1];
    *high = t->at[t->n - k];
    return true;
}

static bool has_repeats(const struct mg_recording *p)
{
    for (uint64_t i = 0; i < p->n_launches; i++)
        if (p->launches[i].repeat && p->launches[i].timed) return true;
    return false;
}

static bool is_timed(const struct mg_plaunch *l)
{
    return l->timed && l->complete && l->time_ns && l->graph != MG_GRAPH_DEVICE &&
           (l->ran == MG_RAN_NATIVE || l->ran == MG_RAN_INSTRUMENTED);
}

enum taking { TAKE_NATIVE = 1, TAKE_INSTRUMENTED = 2, COUNT_LAUNCHES = 4 };

/* Is it the first run of a turn? It finds the other code in the caches. */
static bool begins_turn(struct group *g, const struct mg_plaunch *l)
{
    if (g->turn && g->turn_ran == l->ran) return !g->turn++;
    g->turn = 1;
    g->turn_ran = l->ran;
    return true;
}

static void add_run(groups *all, const struct mg_recording *p, unsigned taking)
{
    bool turns = has_repeats(p);
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        struct group *g = group_of(all, &p->kernels[l->kernel], l);
        if (!l->repeat && taking & COUNT_LAUNCHES) g->launches += l->replays;
        if (!is_timed(l) || turns != l->repeat || (turns && begins_turn(g, l))) continue;
        if (l->ran == MG_RAN_NATIVE && taking & TAKE_NATIVE)
            *mg_vec_push(&g->native) = (double)l->time_ns / (double)l->replays;
        else if (l->ran == MG_RAN_INSTRUMENTED && taking & TAKE_INSTRUMENTED)
            *mg_vec_push(&g->instrumented) = (double)l->time_ns / (double)l->replays;
    }
}

/* "blocks" or "blocks+clock"; "" when nothing was to be instrumented. */
static const char *mode_of(const struct mg_recording *p, struct mg_arena *arena)
{
    struct mg_buf b = MG_BUF_INIT;
    for (uint32_t u = 0; u < p->n_uses; u++) {
        const struct mg_puse *use = &p->uses[u];
        if (!strcmp(use->name, "none") || !strcmp(use->name, "timeline")) continue;
        mg_buf_printf(&b, "%s%s%s%s", b.n ? "+" : "", use->name, use->args && *use->args ? "," : "",
                      use->args ? use->args : "");
    }
    const char *mode = mg_arena_strndup(arena, b.n ? b.at : "", b.n);
    mg_buf_release(&b);
    return mode;
}

/* One mode from all its groups; false: nothing was timed both ways. */
static bool sum_up(groups *all, struct cost *c)
{
    double native = 0, instrumented = 0, low[2] = {0}, high[2] = {0};
    bool bounded = true;
    for (uint32_t i = 0; i < all->n; i++) {
        struct group *g = &all->at[i];
        double n = (double)g->launches, l, h;
        c->launches += g->launches;
        if (!g->native.n || !g->instrumented.n || !g->launches) continue;
        c->compared += g->launches;
        native += n * median(&g->native);
        instrumented += n * median(&g->instrumented);
        if (!bounds(&g->native, &l, &h)) bounded = false, l = h = 0;
        low[0] += n * l, high[0] += n * h;
        if (!bounds(&g->instrumented, &l, &h)) bounded = false, l = h = 0;
        low[1] += n * l, high[1] += n * h;
    }
    if (!c->compared) return false;
    c->ratio = instrumented / native;
    c->native_ns = (uint64_t)(native + 0.5);
    c->low = bounded ? low[1] / high[0] : NAN;
    c->high = bounded ? high[1] / low[0] : NAN;
    return true;
}

static void release(groups *all)
{
    for (uint32_t i = 0; i < all->n; i++) {
        mg_vec_release(&all->at[i].native);
        mg_vec_release(&all->at[i].instrumented);
    }
    mg_vec_release(all);
}

void costs_of(struct program *to, struct mg_recording *const *runs, uint32_t n, struct mg_arena *arena)
{
    const char **modes = mg_xcalloc(n + 1, sizeof *modes);
    for (uint32_t r = 0; r < n; r++) modes[r] = mode_of(runs[r], arena);
    for (uint32_t r = 0; r < n; r++) {
        groups all = {0};
        const struct mg_recording *p = runs[r];
        struct cost c = {.mode = modes[r]};
        const char *kind = p->n_processes ? p->processes[0].device_kind : NULL;
        bool first = *modes[r] && (has_repeats(p) || !kind || strcmp(kind, "cpu"));
        for (uint32_t s = 0; s < r; s++) first = first && strcmp(modes[s], modes[r]);
        if (!first) continue;
        c.host_times = kind && strcmp(kind, "nvidia");
        for (uint32_t s = r; s < n; s++)
            if (!strcmp(modes[s], modes[r]))
                add_run(&all, runs[s], TAKE_INSTRUMENTED | TAKE_NATIVE | (s == r ? COUNT_LAUNCHES : 0));
        for (uint32_t s = 0; s < n; s++)
            if (!*modes[s] && !has_repeats(p)) add_run(&all, runs[s], TAKE_NATIVE);
        if (sum_up(&all, &c)) *mg_vec_push(&to->costs) = c;
        release(&all);
    }
    free(modes);
}
