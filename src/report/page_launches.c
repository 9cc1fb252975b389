/* Launches for the page: those of one kernel with one geometry and one fate are one row, so that a
 * program of a million launches is a short list. Numbers are sums, the least and the largest. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "report/page.h"

enum { ROWS_OF_KERNEL = 100 };

struct group {
    const struct mg_plaunch *first;
    uint64_t launches, timed, incomplete, time_ns, least_ns, most_ns;
};

static bool is_same(const struct mg_plaunch *a, const struct mg_plaunch *b)
{
    return a->kernel == b->kernel && a->ran == b->ran && a->repeat == b->repeat && a->process == b->process &&
           !memcmp(a->grid, b->grid, sizeof a->grid) && !memcmp(a->block, b->block, sizeof a->block) &&
           !memcmp(a->cluster, b->cluster, sizeof a->cluster) && a->dyn_shared_bytes == b->dyn_shared_bytes &&
           a->static_shared_bytes == b->static_shared_bytes &&
           !strcmp(a->reason ? a->reason : "", b->reason ? b->reason : "");
}

static uint64_t key_of(const struct mg_plaunch *l)
{
    uint64_t words[] = {l->kernel, (uint64_t)l->ran << 1 | l->repeat, l->process,
                        (uint64_t)l->dyn_shared_bytes << 32 | l->static_shared_bytes};
    uint64_t h = mg_hash64(words, sizeof words, 0);
    h = mg_hash64(l->grid, sizeof l->grid, h);
    h = mg_hash64(l->block, sizeof l->block, h);
    h = mg_hash64(l->cluster, sizeof l->cluster, h);
    return l->reason ? mg_hash64(l->reason, strlen(l->reason), h) : h;
}

static void add_launch(struct group *g, const struct mg_plaunch *l)
{
    g->launches += l->replays;
    g->incomplete += l->complete ? 0 : l->replays;
    if (!l->timed) return;
    uint64_t each = l->replays ? l->time_ns / l->replays : l->time_ns;
    g->least_ns = g->timed ? MG_MIN(g->least_ns, each) : each;
    g->most_ns = MG_MAX(g->most_ns, each);
    g->timed += l->replays;
    g->time_ns += l->time_ns;
}

static void write_group(struct mg_json *j, const struct group *g)
{
    const struct mg_plaunch *l = g->first;
    mg_json_obj(j);
    mg_json_key_u64(j, "kernel", l->kernel);
    mg_json_key_u64(j, "process", l->process);
    mg_json_key_dim(j, "grid", l->grid);
    mg_json_key_dim(j, "block", l->block);
    mg_json_key_dim(j, "cluster", l->cluster);
    mg_json_key_u64(j, "shared_bytes", (uint64_t)l->static_shared_bytes + l->dyn_shared_bytes);
    mg_json_key_str(j, "ran", mg_ran_text(l->ran));
    mg_json_key_str(j, "reason", l->reason);
    mg_json_key_bool(j, "repeat", l->repeat);
    mg_json_key_u64(j, "launches", g->launches);
    mg_json_key_u64(j, "incomplete", g->incomplete);
    mg_json_key_u64_if(j, "time_ns", g->timed != 0, g->time_ns);
    mg_json_key_u64_if(j, "least_ns", g->timed != 0, g->least_ns);
    mg_json_key_u64_if(j, "most_ns", g->timed != 0, g->most_ns);
    mg_json_end(j, '}');
}

void mg_page_launches(const struct mg_page *g, struct mg_json *j)
{
    const struct mg_recording *p = g->p;
    MG_VEC(struct group) groups = {0};
    struct mg_map of_key = MG_MAP_INIT;
    uint32_t *rows = mg_xcalloc(p->n_kernels + 1, sizeof *rows);
    uint64_t left_out = 0;
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        uint64_t key = key_of(l), at;
        if (!mg_report_shows(&g->o, &p->kernels[l->kernel])) continue;
        while (mg_map_get(&of_key, key, &at) && !is_same(groups.at[at].first, l)) key++;
        if (!mg_map_get(&of_key, key, &at)) {
            if (rows[l->kernel] == ROWS_OF_KERNEL) {
                left_out += l->replays;
                continue;
            }
            rows[l->kernel]++;
            at = groups.n;
            *mg_vec_push(&groups) = (struct group){.first = l};
            mg_map_set(&of_key, key, at);
        }
        add_launch(&groups.at[at], l);
    }
    mg_json_obj(j);
    mg_json_key(j, "groups");
    mg_json_arr(j);
    for (uint32_t i = 0; i < groups.n; i++) write_group(j, &groups.at[i]);
    mg_json_end(j, ']');
    mg_json_key_u64(j, "left_out", left_out);
    mg_json_end(j, '}');
    mg_map_release(&of_key);
    mg_vec_release(&groups);
    free(rows);
}
