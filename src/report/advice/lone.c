/* Rule lone_warp: what one warp of each CTA does while the others wait at a barrier. The branch that lets it through
 * goes by the thread's place alone, no more warps than CTAs come through, and behind where its ways meet stands a
 * barrier of the CTA. */
#include <stdlib.h>
#include <string.h>

#include "analysis/dom.h"
#include "analysis/uniform.h"
#include "base/map.h"
#include "ir/ir.h"
#include "report/advice/priv.h"

#define LEAST_INSTS 50 /* a visit: less is a step that cannot be cut, as the last ones of a reduction */

struct found { /* of a line */
    const struct mg_pblock *block;
    double cycles;
};
struct lone {
    struct advice *a;
    const struct mg_pkernel *k;
    struct mg_cfg *cfg;
    struct mg_dom *post;
    struct mg_same *same;
    const struct mg_pblock **blocks; /* by block of the cfg; NULL: not known */
    double *warps, *cycles;          /* executions; of all warps one after the other */
    bool *seen;                      /* belongs to a way that was looked at */
    uint32_t *queue;
    struct found *found;
    uint32_t n;
    double per_cta; /* warps */
};

/* Each list is gone through once: kernels have thousands of blocks and sites. */
static void find_blocks(struct lone *l, const struct mg_jval *lanes)
{
    const struct mg_cfg *cfg = l->cfg;
    uint32_t *at = mg_xcalloc(l->k->n_blocks + 1, sizeof *at); /* block of the profile -> of the cfg, + 1 */
    struct mg_map lines = MG_MAP_INIT;
    uint64_t b;
    for (uint32_t i = 0; i < cfg->n_blocks; i++) mg_map_set(&lines, cfg->m->nodes.at[cfg->blocks[i].first].line, i + 1);
    for (uint32_t i = 0; i < l->k->n_blocks; i++) {
        const struct mg_pblock *p = &l->k->blocks[i];
        if (p->id >= l->k->n_blocks || (p->function && strcmp(p->function, l->k->name) != 0)) continue;
        if (!mg_map_get(&lines, p->ptx_line, &b)) continue;
        at[p->id] = (uint32_t)b;
        l->blocks[b - 1] = p;
    }
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(lanes, "blocks")); v; v = v->next) {
        uint64_t id = mg_jval_u64(v, "id");
        if (id >= l->k->n_blocks || !at[id]) continue;
        double threads, warps = warps_of(v, &threads);
        l->warps[at[id] - 1] = warps;
        l->cycles[at[id] - 1] = INST_LATENCY * warps * issues_of(l->a, l->k, l->blocks[at[id] - 1]);
    }
    const struct mg_jval *sites = mg_jval_get(mg_facts_tool(l->a->facts, "memory"), "sites");
    const struct site_use *use = l->a->uses;
    for (const struct mg_jval *v = mg_jval_first(sites); v; v = v->next, use++) {
        uint64_t id = mg_jval_u64(v, "block");
        if (mg_jval_u64(v, "kernel") == l->k->id && id < l->k->n_blocks && at[id]) l->cycles[at[id] - 1] += use->wait;
    }
    mg_map_release(&lines);
    free(at);
}

static bool has_barrier(const struct lone *l, uint32_t b)
{
    const struct mg_block *k = &l->cfg->blocks[b];
    for (mg_id id = k->first;; id = l->cfg->m->nodes.at[id].next) {
        if (mg_is_cta_barrier(l->cfg->m, id)) return true;
        if (id == k->last) return false;
    }
}

/* Does every way from the block's head on come to a barrier? */
static bool comes_to_barrier(const struct lone *l, uint32_t b)
{
    for (; b < l->cfg->n_blocks; b = l->post->idom[b])
        if (has_barrier(l, b)) return true;
    return false;
}

/* Does a loop wait here for what another thread stores? */
static bool waits_for_others(const struct mg_pblock *p)
{
    for (uint32_t i = 0; p && p->timing_dependent == 1 && i < p->n_ops; i++)
        if (is_read_each_time(p->ops[i].op)) return true;
    return false;
}

/* Cycles of the way that begins with `from`, up to where the ways meet; `insts`: warp instructions. */
static double cycles_of_way(struct lone *l, uint32_t from, uint32_t meet, double *insts)
{
    double sum = 0;
    *insts = 0;
    uint32_t n = 0;
    l->queue[n++] = from;
    while (n) {
        uint32_t b = l->queue[--n];
        if (b == meet || l->seen[b]) continue;
        l->seen[b] = true;
        bool works = l->blocks[b] && !waits_for_others(l->blocks[b]);
        sum += works ? l->cycles[b] : 0;
        *insts += works ? l->warps[b] * l->blocks[b]->n_insts : 0;
        for (uint32_t i = 0; i < l->cfg->blocks[b].n_succs; i++)
            l->queue[n++] = l->cfg->edges[l->cfg->blocks[b].succ_at + i];
    }
    return sum;
}

static void keep_lone(struct lone *l, uint32_t branch, uint32_t first, double cycles)
{
    const struct mg_pblock *p = l->blocks[first]->line || !l->blocks[branch] ? l->blocks[first] : l->blocks[branch];
    uint32_t i = 0;
    while (i < l->n && !(p->line && l->found[i].block->line == p->line)) i++;
    if (i == l->n) l->found[l->n++] = (struct found){p, 0};
    l->found[i].cycles += cycles;
}

static void tell_lone(struct lone *l, const struct mg_pblock *p, double cycles)
{
    struct kernel_cost *c = &l->a->costs[l->k->id], before = *c;
    before.chain += cycles * (l->per_cta - 1); /* all wait for the one */
    double gain = gain_if(&before, c);
    if (100 * gain < LEAST_GAIN_PCT) return;
    struct line_sum at = {.k = l->k, .function = l->k->name, .place = {p->file, p->line, p->ptx_line, NULL, 0}};
    struct mg_finding *f = add_finding(l->a, c, gain, false);
    place_at_line(f, &at);
    f->measure = 100 * cycles / (before.chain / l->per_cta);
    f->unit = "% of what a warp takes alone";
    f->text = mg_arena_printf(
        &l->a->out->arena,
        "one warp of each CTA's %.3g works here while the others wait at the barrier behind it: %.0f %% of what a CTA takes "
        "if it runs alone. Share the work among all threads (each a part, then shuffles or a sum in shared memory), or let the "
        "others do theirs meanwhile.",
        l->per_cta, f->measure);
}

static void look_at(struct lone *l, uint32_t b)
{
    const struct mg_block *k = &l->cfg->blocks[b];
    const struct mg_node *n = &l->cfg->m->nodes.at[k->last];
    uint32_t meet = l->post->idom[b];
    if (k->n_succs != 2 || !n->guard || !mg_same_reg(l->same, n->guard) || l->seen[b]) return;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t s = l->cfg->edges[k->succ_at + i];
        double visits = l->warps[b] / l->per_cta;
        if (s == meet || !l->blocks[s] || l->warps[s] <= 0 || l->cfg->blocks[s].n_preds != 1) continue;
        if (l->warps[s] > 1.001 * visits || !comes_to_barrier(l, meet)) continue;
        double insts, cycles = cycles_of_way(l, s, meet, &insts);
        if (insts >= LEAST_INSTS * l->warps[s]) keep_lone(l, b, s, cycles);
    }
}

static void look_through(struct advice *a, const struct mg_pkernel *k, const struct mg_jval *lanes, double per_cta)
{
    const struct mg_module *m = mg_lines_module(a->modules, k->module);
    mg_id func = m ? mg_module_find_func(m, k->name) : 0;
    if (!func || !m->funcs.at[func].defined) return;
    struct lone l = {.a = a, .k = k, .per_cta = per_cta, .cfg = mg_cfg_new(m, func)};
    uint32_t n = l.cfg->n_blocks, edges = 1;
    for (uint32_t b = 0; b < n; b++) edges += l.cfg->blocks[b].n_succs;
    l.post = mg_postdom_new(l.cfg);
    l.same = mg_same_new(l.cfg, MG_SAME_CTAS);
    l.blocks = mg_xcalloc(n + 1, sizeof *l.blocks);
    l.warps = mg_xcalloc(n + 1, sizeof *l.warps);
    l.cycles = mg_xcalloc(n + 1, sizeof *l.cycles);
    l.seen = mg_xcalloc(n + 1, sizeof *l.seen);
    l.queue = mg_xcalloc(edges, sizeof *l.queue);
    l.found = mg_xcalloc(edges, sizeof *l.found);
    find_blocks(&l, lanes);
    for (uint32_t i = 0; i < n; i++)
        if (l.cfg->reachable[l.cfg->rpo[i]]) look_at(&l, l.cfg->rpo[i]);
    for (uint32_t i = 0; i < l.n; i++) tell_lone(&l, l.found[i].block, l.found[i].cycles);
    free(l.found);
    free(l.blocks);
    free(l.warps);
    free(l.cycles);
    free(l.seen);
    free(l.queue);
    mg_same_free(l.same);
    mg_dom_free(l.post);
    mg_cfg_free(l.cfg);
}

void mg_rule_lone_warp(struct advice *a, const struct mg_rule *self)
{
    const struct mg_jval *lanes = mg_facts_tool(a->facts, "lanes");
    (void)self;
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(lanes, "kernels")); v; v = v->next) {
        const struct mg_pkernel *k;
        if (!is_shown(a, v, &k)) continue;
        const struct kernel_cost *c = &a->costs[k->id];
        double per_cta = c->all_ctas > 0 ? c->warps / c->all_ctas : 0;
        if (per_cta >= 2 && c->share >= LEAST_GAIN_PCT / 100) look_through(a, k, v, per_cta);
    }
}
