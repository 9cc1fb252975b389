/* What two profiles counted of the kernels that both have. They are not compared at all where they have none in common;
 * nor is their work, where one of them lacks what the other counted: a kernel that was not counted there (`--kernel`,
 * tools without block counts), of which only some launches were (`--launches`), or parts of each (`scope=`). */
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "report/compare.h"
#include "report/priv.h"

struct counted { /* a kernel's launches of one profile */
    uint64_t launches, with;
    bool is_there, has_counts, scaled;
};
struct family { /* kernels are paired by family, as functions are */
    const char *name;
    bool in[2];
    struct counted of[2];
};
struct families {
    MG_VEC(struct family) at; /* in order of the first profile */
    struct mg_map ix;         /* hash of the name -> place */
};

static struct family *family_of(struct families *f, struct mg_arena *arena, const struct mg_pkernel *k)
{
    struct mg_buf b = MG_BUF_INIT;
    uint64_t ix;
    mg_add_family(&b, k->demangled);
    uint64_t key = mg_hash64(b.n ? b.at : "", b.n, 0);
    if (b.n && !mg_map_get(&f->ix, key, &ix)) {
        mg_map_set(&f->ix, key, ix = f->at.n);
        *mg_vec_push(&f->at) = (struct family){.name = mg_arena_strndup(arena, b.at, b.n)};
    }
    struct family *found = b.n ? &f->at.at[ix] : NULL;
    mg_buf_release(&b);
    return found;
}

static void add_kernel(struct counted *c, const struct mg_pkernel *k)
{
    struct mg_kernel_sums s;
    if (!k->launches) return;
    mg_kernel_sums_init(&s, k);
    c->is_there = true;
    c->has_counts |= s.measured;
    c->scaled |= k->estimated;
    c->launches += k->launches;
    c->with += s.measured ? k->instrumented - MG_MIN(k->instrumented, k->spoilt) : 0;
    mg_kernel_sums_release(&s);
}

/* NULL: both counted as much of it. */
static const char *say_uneven(struct mg_arena *arena, const struct family *f)
{
    const struct counted *c = f->of;
    unsigned long long with[2] = {c[0].with, c[1].with}, all[2] = {c[0].launches, c[1].launches};
    if (!c[0].is_there || !c[1].is_there) return NULL;
    if (c[0].has_counts != c[1].has_counts)
        return mg_arena_printf(arena, "%.200s has counts of instructions %s alone", f->name,
                               c[0].has_counts ? "before" : "after");
    if (c[0].scaled != c[1].scaled)
        return mg_arena_printf(arena, "of %.200s a part of each launch was counted %s alone (scope=)", f->name,
                               c[0].scaled ? "before" : "after");
    if ((with[0] < all[0]) != (with[1] < all[1]))
        return mg_arena_printf(arena, "of %.200s %llu of %llu launches have counts before, %llu of %llu after", f->name,
                               with[0], all[0], with[1], all[1]);
    return NULL;
}

void mg_compare_counted(struct mg_comparison *c, const struct mg_recording *const p[2], const struct mg_report_opts *o)
{
    struct families list = {.ix = MG_MAP_INIT};
    bool has[2] = {false, false}, common = false;
    const char *uneven = NULL;
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < p[side]->n_kernels; i++) {
            const struct mg_pkernel *k = &p[side]->kernels[i];
            struct family *f = mg_report_shows(o, k) ? family_of(&list, &c->arena, k) : NULL;
            if (!f) continue;
            f->in[side] = true;
            add_kernel(&f->of[side], k);
            has[side] |= f->of[side].has_counts;
        }
    for (uint32_t i = 0; i < list.at.n; i++) {
        common |= list.at.at[i].in[0] && list.at.at[i].in[1];
        if (!uneven) uneven = say_uneven(&c->arena, &list.at.at[i]);
    }
    c->apart = p[0]->n_kernels && p[1]->n_kernels && !common;
    c->uneven = has[0] && has[1] && uneven;
    c->uncounted = c->uneven          ? uneven
                   : has[0] && has[1] ? NULL
                   : has[0]           ? "after has no counts of instructions"
                   : has[1]           ? "before has no counts of instructions"
                                      : "no counts of instructions";
    mg_vec_release(&list.at);
    mg_map_release(&list.ix);
}
