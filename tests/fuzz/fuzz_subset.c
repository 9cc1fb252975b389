/* Any bytes as frequency vectors, as a simulator's results, and as counts of CTAs. What is accepted can be clustered,
 * and written again.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "study/subset_ctas.h"
#include "study/subset_report.h"

static void cluster(const struct mg_vectors *v)
{
    struct mg_subset_opts o = {.size = sizeof o, .max_clusters = 4};
    struct mg_subset s;
    double sum = 0;
    if (v->n > 200 || mg_subset_init(&s, v, &o, NULL)) return;
    for (uint32_t i = 0; i < s.n_picks; i++) sum += mg_pick_weight(&s, &s.picks[i]);
    if (!(fabs(sum - 1) < 1e-6)) abort();
    mg_subset_release(&s);
}

static void project(const char *text, size_t bytes)
{
    struct mg_plaunch rows[4] = {{.id = 0}, {.id = 1}, {.id = 2}, {.id = 3}};
    struct mg_subset_launch launches[4];
    struct mg_interval intervals[2] = {{.last = 1, .member = 0, .n_launches = 2, .insts = 5},
                                       {.first = 2, .last = 3, .member = 2, .n_launches = 2, .insts = 5}};
    uint64_t members[] = {0, 1, 2, 3};
    struct mg_pick picks[] = {{0, 1}, {1, 1}};
    for (int i = 0; i < 4; i++) launches[i] = (struct mg_subset_launch){.l = &rows[i], .insts = 1};
    struct mg_vectors v = {.intervals = intervals, .n = 2, .members = members, .insts = 10, .n_launches = 4};
    struct mg_subset s = {.v = &v, .picks = picks, .n_picks = 2};
    struct mg_subset_program run = {.launches = launches, .n_launches = 4};
    struct mg_subset_view w = {.s = &s, .program = &run};
    struct mg_buf out = MG_BUF_INIT;
    if (!mg_subset_project(&w, text, bytes, "f", bytes & 1, &out, NULL) && !out.n) abort();
    mg_buf_release(&out);
}

static void count_ctas(const char *text, size_t bytes)
{
    struct mg_ctas c = {.dir = "d", .kernel = "k", .grid_ctas = 8, .n = 4, .step = 2};
    if (!mg_ctas_add_csv(&c, "f", text, bytes, NULL) && !c.held_out.n) abort();
    mg_vec_release(&c.held_out);
    mg_arena_release(&c.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_vectors v, again;
    char *copy = malloc(bytes + !bytes); /* exactly as long as the input: reading beyond it is seen */
    if (!copy) return 0;
    memcpy(copy, data, bytes);
    if (!mg_vectors_parse(&v, copy, bytes, "f", NULL)) {
        struct mg_buf out = MG_BUF_INIT;
        mg_vectors_print(&v, &out);
        if (mg_vectors_parse(&again, out.at, out.n, "f", NULL) || again.n != v.n) abort();
        cluster(&v);
        mg_vectors_release(&v);
        mg_vectors_release(&again);
        mg_buf_release(&out);
    }
    project(copy, bytes);
    count_ctas(copy, bytes);
    free(copy);
    return 0;
}
