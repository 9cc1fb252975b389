/* Analyses: fixed examples worked out by hand, and random graphs held to the definitions: dominance
 * by deleting blocks, equal counts by walking, SSA by following values along walks. */
#include <stdlib.h>

#include "analysis/callgraph.h"
#include "analysis/dom.h"
#include "analysis/equiv.h"
#include "analysis/freq.h"
#include "analysis/indvar.h"
#include "analysis/live.h"
#include "analysis/loop.h"
#include "analysis/reach.h"
#include "analysis/space.h"
#include "analysis/ssa.h"
#include "analysis/uniform.h"
#include "base/buf.h"
#include "count/plan.h"
#include "insert/place.h"
#include "ptx/ptx.h"
#include "test.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define REGS ".reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<8>;\n"

static struct mg_module *parse(const char *text)
{
    struct mg_module *m = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    if (mg_ptx_parse(text, strlen(text), "t.ptx", &m, &d)) {
        mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_INPUT));
        abort();
    }
    mg_diag_release(&d);
    return m;
}

/* "0>1,2 1>2 2>" */
static void check_edges(const struct mg_cfg *c, const char *want)
{
    struct mg_buf b = MG_BUF_INIT;
    for (uint32_t i = 0; i < c->n_blocks; i++) {
        mg_buf_printf(&b, "%s%u>", i ? " " : "", i);
        for (uint32_t e = 0; e < c->blocks[i].n_succs; e++)
            mg_buf_printf(&b, "%s%u", e ? "," : "", c->edges[c->blocks[i].succ_at + e]);
        if (c->blocks[i].leaves) mg_buf_addc(&b, '!');
    }
    MG_CHECK_STR(b.n ? b.at : "", want);
    mg_buf_release(&b);
}

static void check_numbers(const uint32_t *at, uint32_t n, const char *want)
{
    struct mg_buf b = MG_BUF_INIT;
    for (uint32_t i = 0; i < n; i++) mg_buf_printf(&b, at[i] > 0xfffffff0u ? "%s-" : "%s%u", i ? " " : "", at[i]);
    MG_CHECK_STR(b.n ? b.at : "", want);
    mg_buf_release(&b);
}

MG_TEST(cfg_follows_the_definition)
{
    struct mg_module *m = parse(HEAD ".visible .func g() { ret; }\n.visible .entry k(.param .u32 n)\n{\n" REGS
                                     "$debug: mov.u32 %r1, 0;\n" /* 0: a label nobody branches to begins no block */
                                     "bar.sync 0; $debug2: mov.u32 %r2, 1;\n"
                                     "@%p1 bra A;\n"
                                     "call g;\n"                    /* 1 */
                                     "@%p2 ret;\n"                  /* 2 */
                                     "A: B: add.u32 %r1, %r1, 1;\n" /* 3 */
                                     "@%p3 exit;\n"
                                     "T: .branchtargets A, C;\n"
                                     "brx.idx %r1, T;\n"  /* 4 */
                                     "mov.u32 %r3, 1;\n"  /* 5: unreachable */
                                     "C: @%p4 bra END;\n" /* 6 */
                                     "@!%p4 trap;\n"      /* 7 */
                                     "bra.uni B;\n"       /* 8 */
                                     "END:\n}\n");
    struct mg_cfg *c = mg_cfg_new(m, mg_module_find_func(m, "k"));
    check_edges(c, "0>1,3 1>2 2>3! 3>4! 4>3,6 5>6 6>7! 7>8! 8>3");
    MG_CHECK_EQ(c->blocks[0].n_insts, 4);
    MG_CHECK_EQ(c->blocks[1].n_insts, 1);
    MG_CHECK_EQ(c->blocks[3].n_insts, 2);
    MG_CHECK(!c->reachable[5]);
    MG_CHECK_STR(mg_name(m, m->labels.at[c->blocks[3].label].name), "A");
    MG_CHECK_EQ(mg_cfg_block_of(c, c->blocks[6].first), 6);
    MG_CHECK_EQ(mg_cfg_block_of(c, 0), MG_NO_BLOCK);
    mg_cfg_free(c);
    mg_module_free(m);
}

/* A function whose block i is reached by label Li and ends as the string says:
 * 'r' ret, "5" bra L5, "?5" @p bra L5, "!" @p ret. */
static struct mg_module *graph(const char *const *ends, uint32_t n)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_adds(&b, HEAD ".visible .entry k(.param .u32 n)\n{\n" REGS);
    for (uint32_t i = 0; i < n; i++) {
        mg_buf_printf(&b, "L%u: ", i);
        if (ends[i][0] == 'r')
            mg_buf_adds(&b, "ret;\n");
        else if (ends[i][0] == '!')
            mg_buf_adds(&b, "@%p1 ret;\n");
        else if (ends[i][0] == '?')
            mg_buf_printf(&b, "@%%p1 bra L%s;\n", ends[i] + 1);
        else
            mg_buf_printf(&b, "bra L%s;\n", ends[i]);
    }
    mg_buf_adds(&b, "}\n");
    struct mg_module *m = parse(b.at);
    mg_buf_release(&b);
    return m;
}

MG_TEST(loops_and_ranks)
{
    /* 0 -> 1 { 2 { 3 } 4 } 5: two nested loops, the inner one a do-while at 2-3 */
    static const char *const nested[] = {"1", "?5", "3", "?2", "1", "r"};
    struct mg_module *m = graph(nested, 6);
    struct mg_cfg *c = mg_cfg_new(m, mg_module_find_func(m, "k"));
    struct mg_loops *l = mg_loops_new(c);
    MG_CHECK_EQ(l->n_loops, 2);
    MG_CHECK_EQ(l->loops[0].header, 1);
    MG_CHECK_EQ(l->loops[1].header, 2);
    MG_CHECK_EQ(l->loops[1].parent, 0);
    MG_CHECK_EQ(mg_loops_depth(l, 3), 2);
    MG_CHECK_EQ(mg_loops_depth(l, 4), 1);
    MG_CHECK_EQ(mg_loops_depth(l, 5), 0);
    MG_CHECK_EQ(mg_loops_common_depth(l, 3, 4), 1);
    check_numbers(c->rank, 6, "0 1 2 3 4 5");
    mg_loops_free(l);
    mg_cfg_free(c);
    mg_module_free(m);
    /* the exit stands in front of the body in the text: it must still rank behind it */
    static const char *const early[] = {"3", "r", "3", "?1", "2"};
    m = graph(early, 5);
    c = mg_cfg_new(m, mg_module_find_func(m, "k"));
    check_numbers(c->rank, 5, "0 4 3 1 2");
    mg_cfg_free(c);
    mg_module_free(m);
    /* irreducible: 1 and 2 enter one cycle */
    static const char *const two[] = {"?2", "2", "?1", "r"};
    m = graph(two, 4);
    c = mg_cfg_new(m, mg_module_find_func(m, "k"));
    l = mg_loops_new(c);
    MG_CHECK_EQ(l->n_loops, 1);
    MG_CHECK_EQ(l->loops[0].n_headers, 2);
    mg_loops_free(l);
    mg_cfg_free(c);
    mg_module_free(m);
}

MG_TEST(dominators_of_a_diamond)
{
    static const char *const ends[] = {"?2", "3", "3", "?0", "r"};
    struct mg_module *m = graph(ends, 5);
    struct mg_cfg *c = mg_cfg_new(m, mg_module_find_func(m, "k"));
    struct mg_dom *d = mg_dom_new(c), *p = mg_postdom_new(c);
    struct mg_frontier *f = mg_frontier_new(c, d);
    check_numbers(d->idom, 5, "- 0 0 0 3");
    check_numbers(p->idom, 5, "3 3 3 4 -");
    MG_CHECK_EQ(p->idom[4], MG_DOM_ROOT);
    MG_CHECK(mg_dom_over(d, 0, 4) && mg_dom_over(d, 3, 3) && !mg_dom_over(d, 1, 3));
    MG_CHECK_EQ(f->at[2] - f->at[1], 1);
    MG_CHECK_EQ(f->list[f->at[1]], 3);
    mg_frontier_free(f);
    mg_dom_free(p);
    mg_dom_free(d);
    mg_cfg_free(c);
    mg_module_free(m);
}

/* ---- random graphs --------------------------------------------------------------------------- */

static uint32_t seed;
static uint32_t rnd(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* Blocks with random moves between four registers and random ends. */
static struct mg_module *random_graph(uint32_t n)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_adds(&b, HEAD ".visible .entry k(.param .u32 n)\n{\n" REGS);
    for (uint32_t i = 0; i < n; i++) {
        mg_buf_printf(&b, "L%u:\n", i);
        for (uint32_t k = rnd(3); k; k--)
            mg_buf_printf(&b, "%sadd.u32 %%r%u, %%r%u, %%r%u;\n", rnd(3) ? "" : "@%p2 ", rnd(4), rnd(4), rnd(4));
        uint32_t e = rnd(10);
        if (i + 1 == n || !e)
            mg_buf_adds(&b, "ret;\n");
        else if (e == 1)
            mg_buf_adds(&b, "@%p1 ret;\n");
        else if (e < 4)
            mg_buf_printf(&b, "bra L%u;\n", rnd(n));
        else
            mg_buf_printf(&b, "@%%p1 bra L%u;\n", rnd(n));
    }
    mg_buf_adds(&b, "}\n");
    struct mg_module *m = parse(b.at);
    mg_buf_release(&b);
    return m;
}

/* Can `from` come to block `to` (or, to = n_blocks, leave) without entering `without`? */
static bool reaches(const struct mg_cfg *c, uint32_t from, uint32_t to, uint32_t without)
{
    if (from == without) return false;
    bool *seen = calloc(c->n_blocks + 1, 1);
    uint32_t *todo = malloc(sizeof *todo * (c->n_blocks + 1)), n = 0;
    bool found = false;
    seen[todo[n++] = from] = true;
    while (n && !found) {
        uint32_t b = todo[--n];
        found = b == to || (to == c->n_blocks && c->blocks[b].leaves);
        for (uint32_t e = 0; e < c->blocks[b].n_succs; e++) {
            uint32_t x = c->edges[c->blocks[b].succ_at + e];
            if (!seen[x] && x != without) seen[todo[n++] = x] = true;
        }
    }
    free(seen);
    free(todo);
    return found;
}

MG_TEST(dominance_by_deletion)
{
    for (seed = 1; seed < 200;) {
        uint32_t keep = seed;
        struct mg_module *m = random_graph(2 + rnd(14));
        struct mg_cfg *c = mg_cfg_new(m, mg_module_find_func(m, "k"));
        struct mg_dom *d = mg_dom_new(c), *p = mg_postdom_new(c);
        for (uint32_t a = 0; a < c->n_blocks; a++)
            for (uint32_t b = 0; b < c->n_blocks; b++) {
                bool ab = reaches(c, 0, b, MG_NO_BLOCK), aa = reaches(c, 0, a, MG_NO_BLOCK);
                bool want = ab && aa && (a == b || !reaches(c, 0, b, a));
                if (mg_dom_over(d, a, b) != want)
                    mg_test_fail(__FILE__, __LINE__, "seed %u: %u dom %u is %d", keep, a, b, !want);
                bool lb = reaches(c, b, c->n_blocks, MG_NO_BLOCK), la = reaches(c, a, c->n_blocks, MG_NO_BLOCK);
                want = lb && la && (a == b || !reaches(c, b, c->n_blocks, a));
                if (mg_dom_over(p, a, b) != want)
                    mg_test_fail(__FILE__, __LINE__, "seed %u: %u pdom %u is %d", keep, a, b, !want);
            }
        mg_dom_free(p);
        mg_dom_free(d);
        mg_cfg_free(c);
        mg_module_free(m);
        seed = keep + 1;
    }
}

/* A random walk from the entry until it leaves; false when it takes too long. visit sees every block. */
static bool walk(const struct mg_cfg *c, void (*visit)(void *, uint32_t block, uint32_t from), void *user)
{
    uint32_t b = 0, from = MG_NO_BLOCK;
    for (uint32_t steps = 0; steps < 300; steps++) {
        visit(user, b, from);
        const struct mg_block *k = &c->blocks[b];
        uint32_t ways = k->n_succs + k->leaves;
        if (!ways) return false;
        uint32_t w = rnd(ways);
        if (w == k->n_succs) return true;
        from = b;
        b = c->edges[k->succ_at + w];
    }
    return false;
}

static void count_visit(void *user, uint32_t block, uint32_t from)
{
    (void)from;
    ((uint32_t *)user)[block]++;
}

MG_TEST(equal_counts_by_walking)
{
    uint32_t shared = 0;
    for (uint32_t s = 1; s < 300; s++) {
        seed = s;
        struct mg_module *m = random_graph(2 + rnd(12));
        struct mg_cfg *c = mg_cfg_new(m, mg_module_find_func(m, "k"));
        struct mg_equiv *q = mg_equiv_new(c, NULL);
        shared += c->n_blocks - q->n_classes;
        for (uint32_t w = 0; w < 40; w++) {
            uint32_t count[32] = {0};
            if (!walk(c, count_visit, count)) continue;
            for (uint32_t a = 0; a < c->n_blocks; a++) {
                if (q->class_of[a] == MG_NO_CLASS)
                    MG_CHECK_EQ(count[a], 0);
                else if (q->class_of[a] == q->once)
                    MG_CHECK_EQ(count[a], 1);
                for (uint32_t b = 0; b < a; b++)
                    if (q->class_of[a] == q->class_of[b] && count[a] != count[b])
                        mg_test_fail(__FILE__, __LINE__, "seed %u: blocks %u and %u: %u and %u", s, a, b, count[a],
                                     count[b]);
            }
        }
        mg_equiv_free(q);
        mg_cfg_free(c);
        mg_module_free(m);
    }
    MG_CHECK(shared > 300); /* the analysis finds something */
    /* a block on a way that may be skipped inside a loop is not its header's equal */
    static const char *const skip[] = {"1", "?1", "?1", "r"};
    struct mg_module *m = graph(skip, 4);
    struct mg_cfg *c = mg_cfg_new(m, mg_module_find_func(m, "k"));
    struct mg_equiv *q = mg_equiv_new(c, NULL);
    MG_CHECK(q->class_of[1] != q->class_of[2]);
    MG_CHECK_EQ(q->class_of[0], q->class_of[3]);
    MG_CHECK_EQ(q->once, q->class_of[0]);
    mg_equiv_free(q);
    mg_cfg_free(c);
    mg_module_free(m);
}

/* Follows which value every register holds along a walk and compares with what SSA says. */
struct follow {
    const struct mg_cfg *c;
    const struct mg_ssa *s;
    const struct mg_live *l;
    uint32_t now[64]; /* register - reg_lo -> value in force */
    bool written[64];
    uint32_t bad;
};

static void follow_visit(void *user, uint32_t b, uint32_t from)
{
    struct follow *f = user;
    const struct mg_cfg *c = f->c;
    const struct mg_module *m = c->m;
    mg_id ids[32];
    for (uint32_t p = f->s->phis_at[b]; p < f->s->phis_at[b + 1]; p++) {
        const struct mg_ssa_value *v = &f->s->values[f->s->phis[p]];
        uint32_t i = 0;
        while (from != MG_NO_BLOCK && c->preds[c->blocks[b].pred_at + i] != from) i++;
        uint32_t arg = from == MG_NO_BLOCK ? 0 : f->s->args[v->args_at + i], held = f->now[v->reg - f->l->reg_lo];
        f->bad += from != MG_NO_BLOCK && held && arg != held;
        f->now[v->reg - f->l->reg_lo] = f->s->phis[p];
    }
    for (mg_id id = c->blocks[b].first;; id = m->nodes.at[id].next) {
        uint32_t n = m->nodes.at[id].kind == MG_NODE_inst ? mg_node_uses(m, id, ids, 32) : 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t got = mg_ssa_read(f->s, id, ids[i]), held = f->now[ids[i] - f->l->reg_lo];
            bool entry = f->s->values[got].kind == MG_SSA_entry;
            f->bad += !got || (held ? got != held : !entry) || f->s->values[got].reg != ids[i];
            f->bad += !mg_live_in(f->l, b, ids[i]) && !f->written[ids[i] - f->l->reg_lo];
        }
        n = m->nodes.at[id].kind == MG_NODE_inst ? mg_node_defs(m, id, ids, 32) : 0;
        for (uint32_t i = 0; i < n; i++) {
            f->now[ids[i] - f->l->reg_lo] = mg_ssa_write(f->s, id, ids[i]);
            f->written[ids[i] - f->l->reg_lo] = true;
        }
        if (id == c->blocks[b].last) break;
    }
    memset(f->written, 0, sizeof f->written); /* liveness is asked per block */
}

MG_TEST(ssa_by_walking)
{
    for (uint32_t s = 1; s < 300; s++) {
        seed = s;
        struct mg_module *m = random_graph(2 + rnd(12));
        struct mg_cfg *c = mg_cfg_new(m, mg_module_find_func(m, "k"));
        struct mg_dom *d = mg_dom_new(c);
        struct mg_live *l = mg_live_new(c);
        struct mg_ssa *ssa = mg_ssa_new(c, d, l);
        for (uint32_t w = 0; w < 20; w++) {
            struct follow f = {.c = c, .s = ssa, .l = l};
            walk(c, follow_visit, &f);
            if (f.bad) mg_test_fail(__FILE__, __LINE__, "seed %u: %u reads see another value", s, f.bad);
        }
        for (uint32_t v = 1; v < ssa->n_values; v++)
            for (uint32_t u = 0; u < ssa->values[v].n_uses; u++) {
                struct mg_ssa_use use = ssa->uses[ssa->values[v].uses_at + u];
                if (use.node) MG_CHECK_EQ(mg_ssa_read(ssa, use.node, ssa->values[v].reg), v);
            }
        mg_ssa_free(ssa);
        mg_live_free(l);
        mg_dom_free(d);
        mg_cfg_free(c);
        mg_module_free(m);
    }
}

MG_TEST(liveness_keeps_guarded_writes)
{
    struct mg_module *m =
        parse(HEAD ".visible .entry k(.param .u64 o)\n{\n" REGS "mov.u32 %r1, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra A;\n"
                   "@%p2 mov.u32 %r1, 2; mov.u32 %r2, 3;\n"
                   "A: ld.param.u64 %rd1, [o]; st.global.u32 [%rd1], %r1; ret;\n}\n");
    struct mg_cfg *c = mg_cfg_new(m, mg_module_find_func(m, "k"));
    struct mg_live *l = mg_live_new(c);
    const struct mg_node *st = &m->nodes.at[m->nodes.at[c->blocks[2].last].prev];
    mg_id r1 = m->opnds.at[st->opnd + 1].id;
    MG_CHECK(mg_live_in(l, 1, r1)); /* lanes with %p2 false keep it */
    MG_CHECK(mg_live_in(l, 2, r1) && !mg_live_in(l, 0, r1));
    MG_CHECK_EQ(mg_live_pressure(l, c), 3); /* %r1 and the two cells of %rd1 */
    mg_live_free(l);
    mg_cfg_free(c);
    mg_module_free(m);
}

static void check_cohorts_of(const char *body, bool barriers, const char *want)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_printf(&b, HEAD ".visible .entry k(.param .u64 o, .param .u32 n)\n{\n%s%s}\n", REGS, body);
    struct mg_module *m = parse(b.at);
    struct mg_cfg *c = mg_cfg_new(m, mg_module_find_func(m, "k"));
    struct mg_loops *l = mg_loops_new(c);
    struct mg_dom *dom = mg_dom_new(c), *post = mg_postdom_new(c);
    struct mg_equiv *e = mg_equiv_new(c, NULL);
    struct mg_uniform *u = barriers ? mg_uniform_new_barriers(c, l, dom, post, e) : mg_uniform_new(c, l);
    check_numbers(u->cohort, c->n_blocks, want);
    mg_uniform_free(u);
    mg_equiv_free(e);
    mg_dom_free(dom);
    mg_dom_free(post);
    mg_loops_free(l);
    mg_cfg_free(c);
    mg_module_free(m);
    mg_buf_release(&b);
}

static void check_cohorts(const char *body, const char *want)
{
    check_cohorts_of(body, false, want);
}

MG_TEST(cohorts_over_barriers)
{
    static const char head[] =
        "ld.param.u32 %r9, [n]; mov.u32 %r1, 0; mov.u32 %r2, %tid.x; setp.lt.u32 %p2, %r2, 9;\nL: ";
    static const struct {
        const char *aside, *meet, *with, *without;
    } all[] = {
        {"@%p2 bra J; mov.u32 %r3, 1;", "bar.sync 0;", "0 0 - 0 0", "0 - - - -"},
        {"@%p2 bra J; mov.u32 %r3, 1;", "add.u32 %r3, %r3, 1; bar.sync 0;", "0 0 - - 0", "0 - - - -"}, /* behind it */
        {"@%p2 bra J; mov.u32 %r9, 1;", "bar.sync 0;", "0 - - - -",
         "0 - - - -"}, /* how often they turn is written aside */
        {"@%p2 bra J; mov.u32 %r3, 1;", "bar.sync 0, 64;", "0 - - - -", "0 - - - -"},
        {"@%p2 bra J; mov.u32 %r3, 1;", "barrier.sync 0;", "0 - - - -",
         "0 - - - -"},                                                      /* lanes may come to it one by one */
        {"@%p2 ret; mov.u32 %r3, 1;", "bar.sync 0;", "0 - - -", "0 - - -"}, /* not all do */
    };
    for (unsigned i = 0; i < MG_COUNT_OF(all); i++) {
        char text[500];
        snprintf(text, sizeof text,
                 "%s%s\nJ: %s add.u32 %%r1, %%r1, 1; setp.lt.u32 %%p1, %%r1, %%r9; @%%p1 bra L; ret;\n", head,
                 all[i].aside, all[i].meet);
        check_cohorts_of(text, true, all[i].with);
        check_cohorts_of(text, false, all[i].without);
    }
}

MG_TEST(cohorts)
{
    /* uniform loop: the trip count is a parameter */
    check_cohorts(
        "ld.param.u32 %r9, [n]; mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r9; @%p1 bra L; ret;\n",
        "0 0 0");
    /* bounds check, then the uniform loop in a cohort of its own; where they meet: none */
    check_cohorts(
        "ld.param.u32 %r9, [n]; mov.u32 %r2, %tid.x; setp.ge.u32 %p2, %r2, %r9; @%p2 bra OUT; mov.u32 %r1, 0;\n"
        "L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r9; @%p1 bra L; st.local.u32 [%rd1], %r1; OUT: ret;\n",
        "0 1 1 1 -");
    /* lanes leave one by one: what follows inside the loop has no cohort */
    check_cohorts("mov.u32 %r2, %laneid; mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.eq.u32 %p1, %r1, %r2; @%p1 ret;\n"
                  "setp.lt.u32 %p2, %r1, 40; @%p2 bra L; ret;\n",
                  "0 - - -");
    /* a guarded exit outside every cycle begins one */
    check_cohorts("mov.u32 %r2, %laneid; setp.eq.u32 %p1, %r2, 3; @%p1 exit; mov.u32 %r1, 1; ret;\n", "0 1");
    /* values read from memory others may write are not trusted */
    check_cohorts(
        "ld.param.u64 %rd1, [o]; ld.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra A; mov.u32 %r2, 1; A: ret;\n",
        "0 1 -");
    check_cohorts(
        "ld.param.u64 %rd1, [o]; ld.global.nc.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra A; mov.u32 %r2, 1; A: ret;\n",
        "0 0 0");
    /* the carry flag is no operand */
    check_cohorts(
        "mov.u32 %r2, %tid.x; add.cc.u32 %r3, %r2, -1; addc.u32 %r4, 0, 0; setp.eq.u32 %p1, %r4, 0; @%p1 bra A; mov.u32 %r2, 1; A: ret;\n",
        "0 1 -");
}

MG_TEST(address_spaces)
{
    struct mg_module *m = parse(
        HEAD
        ".global .u32 g; .shared .u32 s[8];\n"
        ".func (.param .u64 r) pick (.param .u64 a, .param .u64 b)\n{\n" REGS
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.u32 %r1, [%rd1]; selp.b64 %rd3, %rd1, %rd2, %p1; st.param.u64 [r], %rd3; ret;\n}\n"
        ".visible .entry k(.param .u64 o, .param .u64 n)\n{\n" REGS ".local .b8 buf[16];\n"
        "ld.param.u64 %rd1, [o]; ld.u32 %r1, [%rd1+4];\n" /* global */
        "mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3; st.u32 [%rd4], %r1;\n" /* shared */
        "@%p1 bra A; mov.u64 %rd5, buf; cvta.local.u64 %rd6, %rd5; bra B; A: mov.u64 %rd6, %rd2; B: ld.u32 %r2, [%rd6];\n" /* local | shared */
        "ld.global.u64 %rd7, [%rd1]; ld.u32 %r3, [%rd7];\n" /* anything */
        "{ .param .u64 x; .param .u64 y; .param .u64 z; st.param.u64 [x], %rd2; st.param.u64 [y], %rd4; call (z), pick, (x, y); ld.param.u64 %rd8, [z]; }\n"
        "atom.add.u32 %r4, [%rd8], 1;\n" /* shared, through the call */
        "ret;\n}\n");
    struct mg_spaces *s = mg_spaces_new(m);
    unsigned shared = MG_SPACE_BIT(MG_SPACE_shared), local = MG_SPACE_BIT(MG_SPACE_local),
             global = MG_SPACE_BIT(MG_SPACE_global);
    unsigned want[] = {shared, global, shared, local | shared, MG_SPACE_WINDOWS, shared}, n = 0;
    for (mg_id f = 1; f < m->funcs.n; f++) MG_EACH_NODE(m, &m->funcs.at[f], id)
        {
            if (m->nodes.at[id].kind != MG_NODE_inst || !mg_spaces_of(s, id)) continue;
            if (mg_node_form(m, &m->nodes.at[id])->space) continue;
            if (n < MG_COUNT_OF(want)) MG_CHECK_EQ(mg_spaces_of(s, id), want[n]);
            n++;
        }
    MG_CHECK_EQ(n, MG_COUNT_OF(want));
    MG_CHECK_EQ(s->n_generic, 6);
    MG_CHECK_EQ(s->n_resolved, 4);
    mg_spaces_free(s);
    mg_module_free(m);
}

MG_TEST(callgraph_reaches)
{
    struct mg_module *m = parse(
        HEAD
        ".extern .func vprintf ();\n.func a();\n.func unused() { ret; }\n"
        ".func b() { call a; ret; }\n.func a() { call b; call vprintf; ret; }\n"
        ".func (.param .u32 r) v1(.param .u32 x) { ret; }\n.func v2(.param .u64 x) { ret; }\n"
        ".global .u64 vt[2] = {v1, v2};\n"
        ".visible .entry k() { call b; ret; }\n"
        ".visible .entry p() {\n" REGS
        ".param .u32 x; .param .u32 y;\nT: .callprototype (.param .u32 _) _ (.param .u32 _);\ncall (y), %rd1, (x), T; ret; }\n");
    struct mg_callgraph *g = mg_callgraph_new(m, mg_module_find_func(m, "k"));
    MG_CHECK_EQ(g->n_funcs, 3);
    MG_CHECK_STR(mg_name(m, m->funcs.at[g->funcs[0]].name), "k");
    MG_CHECK_STR(mg_name(m, m->funcs.at[g->funcs[1]].name), "b");
    MG_CHECK_STR(mg_name(m, m->funcs.at[g->funcs[2]].name), "a");
    MG_CHECK(g->has_recursion && !g->has_indirect);
    mg_callgraph_free(g);
    g = mg_callgraph_new(m, mg_module_find_func(m, "p"));
    MG_CHECK(g->has_indirect && !g->has_recursion);
    MG_CHECK_EQ(g->n_taken, 2);
    MG_CHECK_EQ(g->n_funcs, 2);
    MG_CHECK_STR(mg_name(m, m->funcs.at[g->funcs[1]].name), "v1");
    mg_callgraph_free(g);
    mg_module_free(m);
}

/* want: "everything" or the offsets and variables, in the order in which the text names them. */
static void check_reach(const char *body, const char *want)
{
    struct mg_buf text = MG_BUF_INIT, got = MG_BUF_INIT;
    mg_buf_adds(&text, HEAD ".global .u64 g[4]; .shared .u32 s[8];\n.func side (.param .u64 a)\n{\n" REGS
                            "ld.param.u64 %rd1, [a]; st.global.u32 [%rd1], 1; ret;\n}\n"
                            ".visible .entry k(.param .u64 o, .param .u32 n, .param .align 8 .b8 q[24])\n{\n" REGS);
    mg_buf_adds(&text, body);
    mg_buf_adds(&text, "ret;\n}\n");
    struct mg_module *m = parse(text.at);
    struct mg_reach *r = mg_reach_new(m, mg_module_find_func(m, "k"));
    for (uint32_t i = 0; i < r->n_params; i++) mg_buf_printf(&got, "%s%u", got.n ? " " : "", r->params[i]);
    for (uint32_t i = 0; i < r->n_vars; i++)
        mg_buf_printf(&got, "%s%s", got.n ? " " : "", mg_name(m, m->vars.at[r->vars[i]].name));
    MG_CHECK_STR(r->everything ? "everything" : got.n ? got.at : "", want);
    mg_reach_free(r);
    mg_module_free(m);
    mg_buf_release(&text);
    mg_buf_release(&got);
}

MG_TEST(reach_of_stores)
{
    check_reach(
        "ld.param.u64 %rd1, [o]; ld.param.u64 %rd2, [q+8]; ld.global.u32 %r1, [%rd1]; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd2, %rd3;\n"
        "cvta.to.global.u64 %rd5, %rd4; st.global.u32 [%rd5+4], %r1;",
        "24"); /* o 0, n 8, q 16..40: what is only read is not reached */
    check_reach("ld.param.u64 %rd1, [o]; mov.u64 %rd2, g; selp.b64 %rd3, %rd1, %rd2, %p1; atom.add.u32 %r1, [%rd3], 1;",
                "0 g");
    check_reach("ld.param.u64 %rd1, [o]; L: add.u64 %rd1, %rd1, 4; st.u32 [%rd1], 1; @%p1 bra L;", "0");
    check_reach("st.shared.u32 [s], 1; mov.u64 %rd1, s; cvta.shared.u64 %rd2, %rd1; st.u32 [%rd2], 1;", "");
    check_reach("red.global.add.u64 [g+8], 1;", "g");
    check_reach("ld.param.u64 %rd1, [o]; ld.global.u64 %rd2, [%rd1]; st.global.u32 [%rd2], 1;",
                "everything"); /* a pointer in memory */
    check_reach(
        "ld.param.u64 %rd1, [o]; ld.global.u64 %rd2, [%rd1]; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], 1;",
        "everything");
    check_reach("mov.u64 %rd1, 4096; st.global.u32 [%rd1], 1;", "everything");
    check_reach("mov.b64 %rd1, {%r1, %r2}; st.global.u32 [%rd1], 1;", "everything");
    check_reach("{ .param .u64 x; st.param.u64 [x], %rd1; call side, (x); }", "everything");
}

/* Of a kernel of one loop: how long it can run, and how many registers tell how often it went around. */
static void check_trips(unsigned i, const char *before, const char *body, unsigned trips, unsigned bits, uint32_t n)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_printf(
        &b,
        "%s.visible .entry k(.param .u32 n, .param .u32 s, .param .u64 o)\n{\n%s ld.param.u32 %%r9, [n]; ld.param.u32 %%r5, [s]; ld.param.u64 %%rd1, [o]; mov.u32 %%r4, %%tid.x;\n%s\nL: %s\nE: ret;\n}\n",
        HEAD, REGS, before, body);
    struct mg_module *m = parse(b.at);
    struct mg_cfg *c = mg_cfg_new(m, 1);
    struct mg_loops *l = mg_loops_new(c);
    struct mg_dom *d = mg_dom_new(c);
    struct mg_ivs *v = mg_ivs_new(c, d, l);
    if (l->n_loops != 1 || v->trips[0] != trips || v->trip_bits[0] != bits || v->n != n)
        mg_test_fail(__FILE__, __LINE__, "case %u: %u loops, %u of %u bits, %u registers", i, (unsigned)l->n_loops,
                     (unsigned)v->trips[0], (unsigned)v->trip_bits[0], (unsigned)v->n);
    mg_ivs_free(v);
    mg_dom_free(d);
    mg_loops_free(l);
    mg_cfg_free(c);
    mg_module_free(m);
    mg_buf_release(&b);
}

/* How long a loop can run, when what bounds it is stepped by a register or shifted. Where a value may be met again
 * while the loop still ends, nothing is said. */
MG_TEST(loops_bounded_by_strides_and_shifts)
{
    static const struct {
        const char *before, *body;
        uint8_t trips, bits;
    } cases[] = {
        {"", "add.u32 %r4, %r4, %r5; setp.lt.u32 %p1, %r4, %r9; @%p1 bra L;", MG_TRIPS_LIMITED, 32},
        {"setp.ge.u32 %p2, %r4, %r9; @%p2 bra E;", "add.u32 %r4, %r5, %r4; setp.lt.u32 %p1, %r4, %r9; @%p1 bra L;",
         MG_TRIPS_BELOW, 32},
        {"setp.le.s32 %p2, %r4, %r9; @%p2 bra E;", "sub.s32 %r4, %r4, %r5; setp.gt.s32 %p1, %r4, %r9; @%p1 bra L;",
         MG_TRIPS_BELOW, 32},
        {"setp.ge.s32 %p2, %r4, %r9; @%p2 bra E;", "add.u32 %r4, %r4, %r5; setp.lt.u32 %p1, %r4, %r9; @%p1 bra L;",
         MG_TRIPS_LIMITED, 32}, /* compared in another way */
        {"setp.ge.u32 %p2, %r4, %r9; @%p2 bra E;",
         "add.u32 %r6, %r4, %r5; setp.lt.u32 %p1, %r6, %r9; mov.u32 %r4, %r6; @%p1 bra L;", MG_TRIPS_BELOW, 32},
        {"setp.eq.u32 %p3, %r5, 7; @%p3 bra O; setp.ge.u32 %p2, %r4, %r9; @%p2 bra E;",
         "add.u32 %r4, %r5, %r4; setp.lt.u32 %p1, %r4, %r9; @%p1 bra L; bra E;\nO: add.u32 %r4, %r4, 1;",
         MG_TRIPS_BELOW, 32}, /* written elsewhere, too */
        {"setp.eq.u32 %p3, %r5, 7; @!%p3 bra O; add.u32 %r4, %r4, 1;\nO: setp.ge.u32 %p2, %r4, %r9; @%p2 bra E;",
         "add.u32 %r4, %r5, %r4; setp.lt.u32 %p1, %r4, %r9; @%p1 bra L;", MG_TRIPS_LIMITED, 32},
        {"", "add.u32 %r4, %r4, %r5; setp.ne.u32 %p1, %r4, %r9; @%p1 bra L;", MG_TRIPS_LIMITED, 32},
        {"", "add.u32 %r5, %r5, 2; add.u32 %r4, %r4, %r5; setp.lt.u32 %p1, %r4, %r9; @%p1 bra L;", MG_TRIPS_ANY,
         0}, /* the step changes */
        {"", "ld.global.u32 %r9, [%rd1]; add.u32 %r4, %r4, %r5; setp.lt.u32 %p1, %r4, %r9; @%p1 bra L;", MG_TRIPS_ANY,
         0}, /* the bound does */
        {"",
         "ld.global.u32 %r7, [%rd1]; setp.eq.u32 %p2, %r7, 3; @%p2 bra E; add.u32 %r4, %r4, %r5; setp.lt.u32 %p1, %r4, %r9; @%p1 bra L;",
         MG_TRIPS_ANY, 0}, /* it may end later */
        {"", "sub.u32 %r4, %r5, %r4; setp.lt.u32 %p1, %r4, %r9; @%p1 bra L;", MG_TRIPS_ANY, 0},
        {"", "shr.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra L;", MG_TRIPS_BELOW, 6},
        {"", "shl.b32 %r4, %r4, 2; setp.lt.s32 %p1, %r4, %r9; @%p1 bra L;", MG_TRIPS_BELOW, 6},
        {"", "shr.u32 %r4, %r4, %r5; setp.ne.u32 %p1, %r4, 0; @%p1 bra L;", MG_TRIPS_ANY, 0},
        {"",
         "shl.b32 %r4, %r4, 1; ld.global.u32 %r7, [%rd1]; setp.eq.u32 %p2, %r7, 3; @%p2 bra E; setp.lt.s32 %p1, %r4, %r9; @%p1 bra L;",
         MG_TRIPS_ANY, 0},
    };
    for (unsigned i = 0; i < MG_COUNT_OF(cases); i++)
        check_trips(i, cases[i].before, cases[i].body, cases[i].trips, cases[i].bits,
                    i == 8); /* only that step of two counts */
}

/* Where a loop's register begins: by the last instruction in front of it that all lanes pass, whatever stands before
 * that or on other ways. */
MG_TEST(loops_begin_where_the_last_value_is_set)
{
    static const char step[] = "add.s32 %r4, %r4, 1; setp.lt.s32 %p1, %r4, %r9; @%p1 bra L;";
    static const struct {
        const char *before;
        uint8_t trips, bits;
    } cases[] = {
        {"mov.u32 %r4, 0;", MG_TRIPS_BELOW, 31},
        {"mov.u32 %r4, 0; setp.lt.s32 %p2, %r9, 1; @%p2 bra E; mov.u32 %r4, 0;", MG_TRIPS_BELOW, 31},
        {"mov.u32 %r4, 5; setp.lt.s32 %p2, %r9, 1; @%p2 bra O; bra.uni P;\nO: mov.u32 %r4, 7;\nP: mov.u32 %r4, 0;",
         MG_TRIPS_BELOW, 31},
        {"", MG_TRIPS_LIMITED, 32},
        {"mov.u32 %r4, 0; setp.lt.s32 %p2, %r9, 1; @%p2 bra O; add.s32 %r4, %r4, %r5;\nO: add.u32 %r7, %r5, 1;",
         MG_TRIPS_LIMITED, 32},
        {"mov.u32 %r4, 0; setp.lt.s32 %p2, %r9, 1; @%p2 mov.u32 %r4, 0;", MG_TRIPS_LIMITED, 32},
        {"mov.u32 %r4, 0; setp.lt.s32 %p2, %r9, 1; @%p2 bra O; mov.u32 %r4, 0;\nO: add.u32 %r7, %r5, 1;",
         MG_TRIPS_LIMITED, 32},
    };
    for (unsigned i = 0; i < MG_COUNT_OF(cases); i++)
        check_trips(i, cases[i].before, step, cases[i].trips, cases[i].bits, 1);
}

/* What measured counts make a warp pay: nearly whole warps on both ways of a branch by thread, as many lanes as went
 * where a parameter decides, and where a loop's lanes end one by one. */
MG_TEST(measured_counts_are_paid_by_warps)
{
    static const struct {
        const char *p;
        double paid;
    } cases[] = {{"mov.u32 %r1, %tid.x;", 1000}, {"ld.param.u32 %r1, [n];", 250}};
    static const uint64_t counts[] = {1000, 250, 1000, 3000,
                                      1000}; /* 0: the branch; 1: around; 2: joined; 3: three rounds; 4 */
    for (unsigned i = 0; i < MG_COUNT_OF(cases); i++) {
        struct mg_buf b = MG_BUF_INIT;
        mg_buf_printf(
            &b,
            "%s.visible .entry k(.param .u32 n)\n{\n%s %s setp.gt.u32 %%p1, %%r1, 5; @%%p1 bra J;\nmov.u32 %%r2, 1;\nJ: mov.u32 %%r3, 0;\n"
            "L: add.u32 %%r3, %%r3, 1; setp.lt.u32 %%p2, %%r3, %%r1; @%%p2 bra L;\nret;\n}\n",
            HEAD, REGS, cases[i].p);
        struct mg_module *m = parse(b.at);
        struct mg_cfg *c = mg_cfg_new(m, 1);
        struct mg_loops *l = mg_loops_new(c);
        struct mg_freq *f = mg_freq_new(c, l, counts);
        MG_CHECK_EQ(c->n_blocks, 5);
        MG_CHECK(f->block[1] > 0.99 * cases[i].paid && f->block[1] < 1.01 * cases[i].paid);
        MG_CHECK(f->block[0] == 1000 && f->block[2] == 1000 && f->block[3] == 3000 && f->block[4] == 1000);
        mg_freq_free(f);
        mg_loops_free(l);
        mg_cfg_free(c);
        mg_module_free(m);
        mg_buf_release(&b);
    }
}

/* A cold branch over a few instructions is counted in front of it, so that the assembler can predicate them; one over a
 * call, over many, or backwards gets a block of its own. */
MG_TEST(edges_over_little_are_counted_in_front)
{
    static const struct {
        const char *inside;
        enum mg_edge_place place;
    } cases[] = {
        {"ld.global.u32 %r5, [%rd1]; add.u32 %r4, %r4, %r5;", MG_PLACE_GUARD},
        {"ld.global.u32 %r5, [%rd1]; setp.eq.u32 %p4, %r5, 0; @%p4 bra J; add.u32 %r4, %r4, %r5;", MG_PLACE_GUARD},
        {"call f;", MG_PLACE_AWAY},
        {"bar.sync 0; mov.u32 %r5, 1; @%p5 bra J; mov.u32 %r5, 1;", MG_PLACE_AWAY},
        {"M: add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 9; @%p4 bra M;", MG_PLACE_AWAY},
        {"add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1;"
         "add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1;",
         MG_PLACE_AWAY},
    };
    for (unsigned i = 0; i < MG_COUNT_OF(cases); i++) {
        struct mg_buf b = MG_BUF_INIT;
        mg_buf_printf(
            &b,
            "%s.visible .func f() { ret; }\n.visible .entry k(.param .u64 o)\n{\n%s ld.param.u64 %%rd1, [o]; mov.u32 %%r4, %%tid.x; setp.lt.u32 %%p1, %%r4, 3; setp.gt.u32 %%p2, %%r4, 30; or.pred %%p3, %%p1, %%p2;\n"
            "@%%p3 bra J;\n%s\nJ: st.global.u32 [%%rd1], %%r4; ret;\n}\n",
            HEAD, REGS, cases[i].inside);
        struct mg_module *m = parse(b.at);
        struct mg_cfg *c = mg_cfg_new(m, mg_module_find_func(m, "k"));
        struct mg_loops *l = mg_loops_new(c);
        struct mg_freq *f = mg_freq_new(c, l, NULL);
        if (mg_edge_place(c, f, 0, c->blocks[0].succ_at + 1) != cases[i].place)
            mg_test_fail(__FILE__, __LINE__, "case %u", i);
        mg_freq_free(f);
        mg_loops_free(l);
        mg_cfg_free(c);
        mg_module_free(m);
        mg_buf_release(&b);
    }
}
