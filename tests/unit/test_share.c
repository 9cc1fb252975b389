/* Handing out CTAs to workers: each exactly once, each worker its own part first, in order where CTAs wait for others.
 */
#include "device/emu/share.h"

#include <pthread.h>
#include <stdlib.h>

#include "device/emu/emu.h"
#include "test.h"

enum { WORKERS = 4 };
struct hand {
    struct emu_launch l;
    struct mg_launch ml;
    struct mg_device dev;
    _Atomic uint8_t *taken;
};
struct one {
    struct hand *h;
    uint32_t ix;
    uint64_t first, shares, empty;
};

static void set_up(struct hand *h, uint64_t n, uint32_t workers, bool in_order)
{
    *h = (struct hand){.l = {.n_ctas = n, .compiled = h}};
    h->l.dev = &h->dev;
    h->l.l = &h->ml;
    h->dev.n_workers = workers;
    h->taken = calloc(n, 1);
    MG_CHECK(h->taken && emu_spans_init(&h->l, in_order));
}

static void tear_down(struct hand *h)
{
    uint64_t wrong = 0;
    for (uint64_t k = 0; k < h->l.n_ctas; k++) wrong += h->taken[k] != 1;
    MG_CHECK_EQ(wrong, 0);
    MG_CHECK(!emu_spans_left(&h->l) && emu_spans_lowest(&h->l) == UINT64_MAX);
    emu_spans_release(&h->l);
    free((void *)h->taken);
}

static void *take_all(void *arg)
{
    struct one *w = arg;
    struct emu_share s = {0};
    w->first = UINT64_MAX;
    for (; emu_share_take(&w->h->l, w->ix, &s); w->shares++) {
        if (w->first == UINT64_MAX) w->first = s.at;
        w->empty += s.at >= s.end;
        for (; s.at < s.end; s.at++) w->h->taken[s.at]++;
    }
    return NULL;
}

MG_TEST(share_threads)
{
    static const uint64_t grids[] = {1, 2, 3, 4, 5, 31, 4096, 300007};
    for (size_t g = 0; g < MG_COUNT_OF(grids); g++)
        for (int in_order = 0; in_order < 2; in_order++) {
            struct hand h;
            struct one w[WORKERS];
            pthread_t t[WORKERS];
            set_up(&h, grids[g], WORKERS, in_order);
            for (uint32_t k = 0; k < WORKERS; k++) {
                w[k] = (struct one){&h, k};
                MG_CHECK(!pthread_create(&t[k], NULL, take_all, &w[k]));
            }
            uint64_t empty = 0;
            for (uint32_t k = 0; k < WORKERS; k++) {
                pthread_join(t[k], NULL);
                empty += w[k].empty;
            }
            MG_CHECK_EQ(empty, 0);
            tear_down(&h);
        }
}

/* One thread alone, of four: many shares, of which many are short. */
MG_TEST(share_alone)
{
    for (uint32_t home = 0; home < WORKERS; home++) {
        struct hand h;
        struct one w = {&h, home};
        set_up(&h, 1 << 20, WORKERS, false);
        take_all(&w);
        MG_CHECK_EQ(w.first, (uint64_t)home << 18);
        MG_CHECK_EQ(w.empty, 0);
        tear_down(&h);
    }
}

/* Each has a part of its own, that it likes where nobody else does. */
MG_TEST(share_claim)
{
    struct hand h;
    set_up(&h, 100, 3, false);
    MG_CHECK_EQ(emu_span_claim(&h.l, 1), 1);
    MG_CHECK_EQ(emu_span_claim(&h.l, 4), 2);
    MG_CHECK_EQ(emu_span_claim(&h.l, 1), 0);
    MG_CHECK_EQ(emu_span_claim(&h.l, 5), 2);
    emu_spans_release(&h.l);
    free((void *)h.taken);
}

MG_TEST(share_order)
{
    struct hand h;
    struct emu_share a = {0}, b = {0};
    set_up(&h, 100, 2, false);
    MG_CHECK(emu_share_take(&h.l, 1, &a) && a.at == 50 && a.end == 51);
    MG_CHECK_EQ(emu_spans_lowest(&h.l), 0);
    atomic_store(&h.l.in_order, true);
    MG_CHECK(emu_share_take(&h.l, 1, &b) && b.at == 0);
    for (uint64_t last = 0; emu_share_take(&h.l, 1, &b); last = b.at) MG_CHECK(b.at > last && b.at != 50);
    emu_spans_release(&h.l);
    free((void *)h.taken);
}
