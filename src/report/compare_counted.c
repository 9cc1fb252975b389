/* May the work of two profiles be compared? Not where one of them lacks what the other counted: a kernel that was not
 * counted there (`--kernel`, tools without block counts), of which only some launches were (`--launches`), or parts of
 * each (`scope=`). */
#include <string.h>

#include "report/compare.h"
#include "report/priv.h"

struct counted { /* a kernel's launches of one profile */
    uint64_t launches, with;
    bool is_there, has_counts, scaled;
};

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

static struct counted counted_of(const struct mg_recording *p, const struct mg_report_opts *o, const char *family)
{
    struct counted c = {0};
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        struct mg_buf b = MG_BUF_INIT;
        if (mg_report_shows(o, &p->kernels[i])) mg_add_family(&b, p->kernels[i].demangled);
        if (b.n && (!family || !strcmp(b.at, family))) add_kernel(&c, &p->kernels[i]);
        mg_buf_release(&b);
    }
    return c;
}

static const char *say(struct mg_arena *arena, const char *family, const struct counted c[2])
{
    unsigned long long with[2] = {c[0].with, c[1].with}, all[2] = {c[0].launches, c[1].launches};
    if (c[0].has_counts != c[1].has_counts)
        return mg_arena_printf(arena, "%.200s has counts of instructions %s alone", family,
                               c[0].has_counts ? "before" : "after");
    if (c[0].scaled != c[1].scaled)
        return mg_arena_printf(arena, "of %.200s a part of each launch was counted %s alone (scope=)", family,
                               c[0].scaled ? "before" : "after");
    if ((with[0] < all[0]) != (with[1] < all[1]))
        return mg_arena_printf(arena, "of %.200s %llu of %llu launches have counts before, %llu of %llu after", family,
                               with[0], all[0], with[1], all[1]);
    return NULL;
}

/* NULL: both counted as much of every kernel that both have. */
static const char *find_uneven(struct mg_arena *arena, const struct mg_recording *const p[2],
                               const struct mg_report_opts *o)
{
    const char *why = NULL;
    for (uint32_t i = 0; i < p[0]->n_kernels && !why; i++) {
        struct mg_buf family = MG_BUF_INIT;
        if (mg_report_shows(o, &p[0]->kernels[i])) mg_add_family(&family, p[0]->kernels[i].demangled);
        if (family.n) {
            struct counted c[2] = {counted_of(p[0], o, family.at), counted_of(p[1], o, family.at)};
            if (c[0].is_there && c[1].is_there) why = say(arena, family.at, c);
        }
        mg_buf_release(&family);
    }
    return why;
}

void mg_compare_counted(struct mg_comparison *c, const struct mg_recording *const p[2], const struct mg_report_opts *o)
{
    bool has[2];
    for (int side = 0; side < 2; side++) has[side] = counted_of(p[side], o, NULL).has_counts;
    if (has[0] && has[1]) c->uncounted = find_uneven(&c->arena, p, o);
    c->uneven = c->uncounted != NULL;
    if (!has[0] || !has[1])
        c->uncounted = has[0]   ? "after has no counts of instructions"
                       : has[1] ? "before has no counts of instructions"
                                : "no counts of instructions";
}
