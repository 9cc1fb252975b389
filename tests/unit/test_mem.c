/* Device memory: bounds, best fit, joining of neighbours, lookups, registration, limits. */
#include "device/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

MG_TEST(mem_alloc_is_aligned_and_exact)
{
    uint64_t a = mg_mem_alloc(1000, 0, MG_ALLOC_DEVICE), b = mg_mem_alloc(1, 4096, MG_ALLOC_DEVICE);
    struct mg_alloc x;
    MG_CHECK(a && a % 256 == 0);
    MG_CHECK(b && b % 4096 == 0);
    MG_CHECK(mg_mem_find(a, &x) && x.base == a && x.bytes == 1000);
    MG_CHECK(mg_mem_find(a + 999, &x) && x.base == a);
    MG_CHECK(!mg_mem_find(a + 1000, &x));
    MG_CHECK(!mg_mem_free(a + 8));
    MG_CHECK(mg_mem_free(a));
    MG_CHECK(!mg_mem_free(a));
    MG_CHECK(!mg_mem_find(a, &x));
    MG_CHECK(mg_mem_free(b));
}

MG_TEST(mem_free_neighbours_join)
{
    enum { N = 64 };
    uint64_t p[N], lo = UINT64_MAX;
    for (int i = 0; i < N; i++) {
        p[i] = mg_mem_alloc(4096, 0, MG_ALLOC_DEVICE);
        if (p[i] < lo) lo = p[i];
    }
    for (int i = 0; i < N; i += 2) mg_mem_free(p[i]);
    for (int i = 1; i < N; i += 2) mg_mem_free(p[i]);
    mg_mem_reuse_freed();
    uint64_t all = mg_mem_alloc(N * 4096, 0, MG_ALLOC_DEVICE);
    MG_CHECK(all <= lo);
    mg_mem_free(all);
}

/* Around an allocation of n bytes nothing else begins or ends within max(4 KiB, min(n / 4, 1 MiB)). */
MG_TEST(mem_red_zones)
{
    static const uint64_t sizes[][2] = {{1, 4096},      {1000, 4096},       {16384, 4096},
                                        {65536, 16384}, {4 << 20, 1 << 20}, {64 << 20, 1 << 20}};
    uint64_t live0, live1, bytes = 0, p[12];
    struct mg_alloc below, above;
    mg_mem_totals(&live0, NULL);
    for (unsigned i = 0; i < 12; i++)
        p[i] = mg_mem_alloc(sizes[i % 6][0], 0, i & 1 ? MG_ALLOC_MANAGED : MG_ALLOC_DEVICE), bytes += sizes[i % 6][0];
    mg_mem_totals(&live1, NULL);
    MG_CHECK_EQ(live1 - live0, bytes); /* what the program sees of it */
    for (unsigned i = 0; i < 12; i++) {
        uint64_t n = sizes[i % 6][0], zone = sizes[i % 6][1];
        MG_CHECK(p[i] && p[i] % 256 == 0);
        mg_mem_nearest(p[i] - 1, &below, NULL);
        mg_mem_nearest(p[i] + n, NULL, &above);
        MG_CHECK(!below.base || p[i] - (below.base + below.bytes) >= zone);
        MG_CHECK(!above.base || above.base - (p[i] + n) >= zone);
        MG_CHECK(!mg_mem_find(p[i] - 1, NULL) && !mg_mem_find(p[i] - zone, NULL) && !mg_mem_find(p[i] + n, NULL) &&
                 !mg_mem_find(p[i] + n + zone - 1, NULL));
    }
    for (unsigned i = 0; i < 12; i++) mg_mem_free(p[i]);
}

/* A processor takes a load for one of what was stored 4 KiB away: arrays of a power of 2 begin at 8 places of a page.
 */
MG_TEST(mem_arrays_begin_at_several_places)
{
    uint64_t p[8], places = 0;
    for (unsigned i = 0; i < 8; i++) {
        p[i] = mg_mem_alloc(4 << 20, 512, MG_ALLOC_DEVICE);
        places |= UINT64_C(1) << p[i] % 4096 / 512;
    }
    MG_CHECK_EQ(places, 0xff);
    for (unsigned i = 0; i < 8; i++) mg_mem_free(p[i]);
}

/* What was freed is nobody's until 1 GiB has been freed after it, and its pages hold nothing. */
MG_TEST(mem_freed_ranges_wait)
{
    enum { N = 8 << 20 };
    uint64_t first = mg_mem_alloc(N, 0, MG_ALLOC_DEVICE);
    struct mg_alloc x;
    bool again = false;
    *(char *)first = 1;
    mg_mem_free(first);
    MG_CHECK(mg_mem_find_freed(first + N - 1, &x) && x.base == first && x.bytes == N);
    MG_CHECK_EQ(*(char *)first, 0);
    for (int i = 0; i < (1 << 30) / (N + (2 << 20)) - 2; i++) {
        uint64_t p = mg_mem_alloc(N, 0, MG_ALLOC_DEVICE);
        MG_CHECK(p + N <= first || p >= first + N);
        mg_mem_free(p);
    }
    for (int i = 0; i < 200 && !again; i++) {
        uint64_t p = mg_mem_alloc(N, 0, MG_ALLOC_DEVICE);
        again = p < first + N && p + N > first;
        mg_mem_free(p);
    }
    MG_CHECK(again);
    mg_mem_reuse_freed();
    MG_CHECK(!mg_mem_find_freed(first, &x));
}

MG_TEST(mem_own_memory_is_apart)
{
    uint64_t a = mg_mem_alloc(1024, 0, MG_ALLOC_DEVICE), own = mg_mem_alloc(1024, 0, MG_ALLOC_INTERNAL),
             b = mg_mem_alloc(1024, 0, MG_ALLOC_DEVICE), arena[2], live0, live1;
    struct mg_alloc x, y;
    MG_CHECK(!mg_mem_find(own, NULL) && mg_mem_find_any(own, &x) && x.base == own && x.kind == MG_ALLOC_INTERNAL);
    MG_CHECK(mg_mem_is_own(own) && !mg_mem_is_own(a) && !mg_mem_is_own(b) && mg_mem_find_any(a, NULL));
    mg_mem_arena(arena);
    MG_CHECK(own < arena[0] || own >= arena[0] + arena[1]);
    mg_mem_nearest(own, &x, &y);
    MG_CHECK(x.kind != MG_ALLOC_INTERNAL && y.kind != MG_ALLOC_INTERNAL);
    mg_mem_totals(&live0, NULL);
    MG_CHECK(mg_mem_free(own) && !mg_mem_find_any(own, NULL));
    mg_mem_totals(&live1, NULL);
    MG_CHECK_EQ(live0, live1);
    mg_mem_free(a);
    mg_mem_free(b);
}

MG_TEST(mem_epoch_changes_with_the_table)
{
    uint64_t e0 = mg_mem_epoch(), a = mg_mem_alloc(64, 0, MG_ALLOC_DEVICE), e1 = mg_mem_epoch();
    mg_mem_free(a);
    MG_CHECK(e1 > e0 && mg_mem_epoch() > e1);
}

MG_TEST(mem_register_refuses_overlap)
{
    char *p = malloc(1 << 16);
    uint64_t a = (uint64_t)p;
    struct mg_alloc x;
    MG_CHECK(mg_mem_register(a, 1 << 16));
    MG_CHECK(!mg_mem_register(a + 100, 10));
    MG_CHECK(mg_mem_find(a + 65535, &x) && x.kind == MG_ALLOC_REGISTERED);
    MG_CHECK(!mg_mem_free(a));
    MG_CHECK(mg_mem_unregister(a));
    MG_CHECK(!mg_mem_find(a, &x));
    free(p);
}

MG_TEST(mem_random_allocations_never_overlap)
{
    enum { N = 400 };
    static uint64_t base[N], size[N];
    uint32_t r = 12345;
    uint64_t live0, live1;
    mg_mem_totals(&live0, NULL);
    for (int step = 0; step < 20000; step++) {
        r = r * 1664525u + 1013904223u;
        int i = (r >> 8) % N;
        if (base[i]) {
            struct mg_alloc x;
            MG_CHECK(mg_mem_find(base[i] + size[i] / 2, &x) && x.base == base[i] && x.bytes == size[i]);
            MG_CHECK(mg_mem_free(base[i]));
            base[i] = 0;
        } else {
            size[i] = 1 + (r >> 10) % 5000;
            base[i] = mg_mem_alloc(size[i], 1u << (r >> 28), MG_ALLOC_DEVICE);
            for (int j = 0; j < N; j++)
                if (j != i && base[j] && base[i] < base[j] + size[j] && base[j] < base[i] + size[i])
                    MG_CHECK(!"overlap");
        }
    }
    for (int i = 0; i < N; i++)
        if (base[i]) mg_mem_free(base[i]);
    mg_mem_totals(&live1, NULL);
    MG_CHECK_EQ(live1, live0);
}

MG_TEST(mem_limit_is_kept)
{
    uint64_t live, limit;
    mg_mem_totals(&live, &limit);
    mg_mem_set_limit(live + 1000);
    MG_CHECK(!mg_mem_alloc(1001, 0, MG_ALLOC_DEVICE));
    uint64_t a = mg_mem_alloc(1000, 0, MG_ALLOC_DEVICE);
    MG_CHECK(a != 0);
    mg_mem_free(a);
    mg_mem_set_limit(limit);
}

MG_TEST(mem_nearest_names_both_sides)
{
    uint64_t a = mg_mem_alloc(256, 0, MG_ALLOC_DEVICE);
    struct mg_alloc below, above;
    MG_CHECK(mg_mem_nearest(a + 256, &below, &above));
    MG_CHECK_EQ(below.base, a);
    mg_mem_free(a);
}

/* Does the mapping around the address ask for large pages? */
static bool asks_for_large_pages(uint64_t at)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long long lo, hi;
    bool here = false, found = false;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%llx-%llx ", &lo, &hi) == 2)
            here = at >= lo && at < hi;
        else if (here && !strncmp(line, "VmFlags:", 8))
            found = strstr(line, " hg") != NULL;
    }
    if (f) fclose(f);
    return found;
}

MG_TEST(mem_large_allocations_have_large_pages)
{
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK)) {
        mg_test_skip("the kernel has no large pages");
        return;
    }
    uint64_t at = mg_mem_alloc(5 << 20, 0, MG_ALLOC_DEVICE), end = (at + (5 << 20)) & ~(uint64_t)((2 << 20) - 1);
    MG_CHECK(asks_for_large_pages(end - 1));
    mg_mem_free(at);
}
