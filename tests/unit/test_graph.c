/* Walks and fixpoints over random graphs, held to a matrix of ways (Warshall) and to paths counted one by one. */
#include <stdlib.h>
#include <string.h>

#include "analysis/graph.h"
#include "test.h"

#define MOST 70 /* more than one word of bits */

struct random_graph {
    struct mg_arena arena;
    struct mg_graph g, back;
    bool way[MOST][MOST]; /* of one edge or more */
};

static uint32_t draw(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*state >> 33) % n;
}

static void find_ways(struct random_graph *r, const bool *wall)
{
    uint32_t n = r->g.n;
    memset(r->way, 0, sizeof r->way);
    for (uint32_t x = 0; x < n; x++) MG_EACH_EDGE(&r->g, x, e) r->way[x][r->g.to[e]] = !wall[r->g.to[e]];
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++) r->way[i][j] |= r->way[i][k] && r->way[k][j];
}

static void make(struct random_graph *r, uint64_t *state)
{
    uint32_t n = 1 + draw(state, MOST), n_edges = draw(state, 2 * n + 1), from[2 * MOST + 1], to[2 * MOST + 1];
    for (uint32_t e = 0; e < n_edges; e++) from[e] = draw(state, n), to[e] = draw(state, n);
    r->arena = (struct mg_arena)MG_ARENA_INIT;
    r->g = mg_graph_of_pairs(&r->arena, n, from, to, n_edges);
    r->back = mg_graph_reversed(&r->arena, &r->g);
    for (uint32_t x = 0, e; x < n; x++) { /* every pair stands at its node, in its order, and the other way round */
        e = r->g.at[x];
        for (uint32_t p = 0; p < n_edges; p++) {
            if (from[p] != x) continue;
            MG_CHECK_EQ(r->g.to[e++], to[p]);
            bool found = false;
            MG_EACH_EDGE(&r->back, to[p], b) found |= r->back.to[b] == x;
            MG_CHECK(found);
        }
        MG_CHECK_EQ(e, r->g.at[x + 1]);
    }
    MG_CHECK_EQ(r->back.at[n], n_edges);
}

MG_TEST(graph_reach)
{
    uint64_t state = 11;
    static struct random_graph r;
    for (int round = 0; round < 300; round++) {
        make(&r, &state);
        uint32_t n = r.g.n, from = draw(&state, n), other = draw(&state, n);
        uint64_t set[2] = {0}, wall[2] = {0};
        bool walls[MOST] = {0};
        for (uint32_t k = draw(&state, 4); k > 0; k--) {
            uint32_t x = draw(&state, n);
            walls[x] = true;
            mg_put(wall, x);
        }
        find_ways(&r, walls);
        mg_graph_after(&r.g, from, set, wall);
        for (uint32_t x = 0; x < n; x++) MG_CHECK_EQ(mg_has(set, x), r.way[from][x]);
        memset(set, 0, sizeof set);
        mg_put(set, from);
        mg_put(set, other);
        mg_graph_close(&r.g, set, wall);
        for (uint32_t x = 0; x < n; x++)
            MG_CHECK_EQ(mg_has(set, x), x == from || x == other || r.way[from][x] || r.way[other][x]);
        mg_arena_release(&r.arena);
    }
}

/* In a postorder of a depth-first walk an edge leads to a later place only where a cycle comes back over it. */
MG_TEST(graph_order)
{
    uint64_t state = 12;
    static struct random_graph r;
    for (int round = 0; round < 300; round++) {
        make(&r, &state);
        uint32_t n = r.g.n, root = draw(&state, n), order[MOST], place[MOST];
        uint64_t seen[2] = {0};
        bool no_walls[MOST] = {0};
        find_ways(&r, no_walls);
        uint32_t m = mg_graph_order(&r.g, root, seen, order);
        MG_CHECK_EQ(order[0], root);
        memset(place, 0xff, sizeof place);
        for (uint32_t i = 0; i < m; i++) place[order[i]] = i;
        for (uint32_t x = 0; x < n; x++) {
            MG_CHECK_EQ(place[x] != UINT32_MAX, x == root || r.way[root][x]);
            MG_CHECK_EQ(mg_has(seen, x), place[x] != UINT32_MAX);
            if (place[x] == UINT32_MAX) continue;
            MG_EACH_EDGE(&r.g, x, e) MG_CHECK(place[x] < place[r.g.to[e]] || r.way[r.g.to[e]][x]);
        }
        mg_arena_release(&r.arena);
    }
}

/* Fact x is made at node x and ended by every node of `ends`: it holds at a node where some way brings it. */
struct facts {
    uint64_t ends[2];
};

static void pass(void *user, uint32_t node, uint64_t *row)
{
    const struct facts *f = user;
    if (mg_has(f->ends, node)) memset(row, 0, 2 * sizeof *row);
    mg_put(row, node);
}

MG_TEST(graph_facts)
{
    uint64_t state = 13;
    static struct random_graph r;
    for (int round = 0; round < 200; round++) {
        make(&r, &state);
        uint32_t n = r.g.n;
        struct facts f = {{0}};
        uint64_t rows[MOST][2] = {{0}};
        for (uint32_t k = draw(&state, 5); k > 0; k--) mg_put(f.ends, draw(&state, n));
        mg_dataflow_run(
            &(struct mg_dataflow){.g = &r.g, .any = true, .words = 2, .rows = rows[0], .pass = pass, .user = &f});
        for (uint32_t x = 0; x < n; x++) {
            uint64_t set[2] = {0}, got[2] = {0}; /* from x over nodes that end nothing: closed step by step */
            MG_EACH_EDGE(&r.g, x, e) mg_put(set, r.g.to[e]);
            for (bool again = true; again;) {
                again = false;
                for (uint32_t y = 0; y < n; y++) {
                    if (!mg_has(set, y) || mg_has(f.ends, y)) continue;
                    MG_EACH_EDGE(&r.g, y, e)
                    {
                        again |= !mg_has(set, r.g.to[e]);
                        mg_put(set, r.g.to[e]);
                    }
                }
            }
            for (uint32_t y = 0; y < n; y++)
                if (mg_has(rows[y], x)) mg_put(got, y);
            MG_CHECK(!memcmp(set, got, sizeof set));
        }
        mg_arena_release(&r.arena);
    }
}

/* By all ways: what dominates. A node on no way from a source knows everything; sources know nothing. */
MG_TEST(graph_facts_of_all_ways)
{
    uint64_t state = 14;
    static struct random_graph r;
    for (int round = 0; round < 200; round++) {
        make(&r, &state);
        uint32_t n = r.g.n;
        struct facts none = {{0}};
        uint64_t rows[MOST][2];
        mg_dataflow_run(&(struct mg_dataflow){.g = &r.g, .words = 2, .rows = rows[0], .pass = pass, .user = &none});
        for (uint32_t x = 0; x < n; x++) {
            uint64_t left[2] = {0}, wall[2] = {0}; /* what sources reach without x */
            mg_put(wall, x);
            for (uint32_t s = 0; s < n; s++)
                if (s != x && !mg_graph_degree(&r.back, s)) mg_put(left, s);
            mg_graph_close(&r.g, left, wall);
            for (uint32_t y = 0; y < n; y++) {
                bool source = !mg_graph_degree(&r.back, y), brought = false;
                MG_EACH_EDGE(&r.back, y, e) brought |= r.back.to[e] != x && mg_has(left, r.back.to[e]);
                MG_CHECK_EQ(mg_has(rows[y], x), !source && !brought);
            }
        }
        mg_arena_release(&r.arena);
    }
}

/* What is behind what, and loops, by the matrix of ways with walls. */
MG_TEST(graph_behind_and_loops)
{
    uint64_t state = 15;
    static struct random_graph r;
    for (int round = 0; round < 300; round++) {
        make(&r, &state);
        uint32_t n = r.g.n, root = draw(&state, n), through = draw(&state, n), head = draw(&state, n);
        bool walls[MOST] = {0};
        uint64_t wall[2] = {0}, set[2];
        for (uint32_t k = draw(&state, 3); k > 0; k--) {
            uint32_t x = draw(&state, n);
            walls[x] = true;
            mg_put(wall, x);
        }
        walls[root] = walls[through] = true;
        find_ways(&r, walls);
        for (uint32_t x = 0; x < n; x++)
            MG_CHECK_EQ(mg_graph_is_behind(&r.g, root, through, x, wall),
                        through == x || through == root || (x != root && !r.way[root][x]));
        memset(walls, 0, sizeof walls);
        walls[head] = true; /* ways that do not pass the head */
        find_ways(&r, walls);
        bool found = mg_graph_loop(&r.back, head, set), any = false;
        for (uint32_t x = 0; x < n; x++) {
            bool in = false;
            for (uint32_t y = head; y < n; y++) {
                bool back = false;
                MG_EACH_EDGE(&r.g, y, e) back |= r.g.to[e] == head;
                any |= back;
                in |= back && (x == head || x == y || (y != head && r.way[x][y]));
            }
            MG_CHECK_EQ(mg_has(set, x), in);
        }
        MG_CHECK_EQ(found, any);
        mg_arena_release(&r.arena);
    }
}

/* Liveness, held to a search from each node and value for a node that reads it before it is written. */
struct effects {
    uint64_t use[MOST], def[MOST];
};

static void note_effects(void *user, uint32_t node, struct mg_effects *e)
{
    const struct effects *f = user;
    for (uint32_t v = 0; v < 64; v++) { /* a use behind the write, which does not count */
        if (f->use[node] >> v & 1) mg_effect_use(e, v);
        if (f->def[node] >> v & 1) mg_effect_def(e, v), mg_effect_use(e, v);
    }
}

MG_TEST(graph_liveness)
{
    uint64_t state = 16;
    static struct random_graph r;
    for (int round = 0; round < 200; round++) {
        make(&r, &state);
        uint32_t n = r.g.n;
        struct effects f = {{0}, {0}};
        uint64_t in[MOST] = {0}, out[MOST] = {0};
        for (uint32_t k = 0; k < 3 * n; k++)
            (draw(&state, 2) ? f.use : f.def)[draw(&state, n)] |= 1ull << draw(&state, 64);
        mg_liveness_run(&(struct mg_liveness){
            .pred = &r.back, .words = 1, .effects = note_effects, .user = &f, .in = in, .out = out});
        for (uint32_t v = 0; v < 64; v++) {
            uint64_t live[2] = {
                0}; /* nodes in front of which v is live: readers, and what comes to them without writing it */
            for (uint32_t x = 0; x < n; x++)
                if (f.use[x] >> v & 1) mg_put(live, x);
            for (bool again = true; again;) {
                again = false;
                for (uint32_t x = 0; x < n; x++) {
                    if (mg_has(live, x) || f.def[x] >> v & 1) continue;
                    MG_EACH_EDGE(&r.g, x, e)
                    if (mg_has(live, r.g.to[e])) mg_put(live, x), again = true;
                }
            }
            for (uint32_t x = 0; x < n; x++) {
                bool behind = false;
                MG_EACH_EDGE(&r.g, x, e) behind |= mg_has(live, r.g.to[e]);
                MG_CHECK_EQ(in[x] >> v & 1, mg_has(live, x));
                MG_CHECK_EQ(out[x] >> v & 1, behind);
            }
        }
        mg_arena_release(&r.arena);
    }
}
