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
                if (j != i && base[j] && base[i] < base[j] + size[j] && base[j] < base[i] + size[i]) MG_CHECK(!"overlap");
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
        if (sscanf(line, "%llx-%llx ", &lo, &hi) == 2) here = at >= lo && at < hi;
        else if (here && !strncmp(line, "VmFlags:", 8)) found = strstr(line, " hg") != NULL;
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
