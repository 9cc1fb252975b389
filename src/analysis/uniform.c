/* Cohorts and lane-varying registers; see uniform.h. One fixpoint over both: a varying predicate
 * ends cohorts, and what is written outside a cohort's blocks does not matter inside them, since
 * nothing flows back from there. */
#include "analysis/uniform.h"

#include <stdlib.h>
#include <string.h>

struct solver {
    const struct mg_cfg *c;
    const struct mg_module *m;
    struct mg_uniform *u;
    bool changed;
    const struct mg_dom *dom, *post;
    const struct mg_equiv *equiv; /* NULL: barriers are not looked at */
    uint32_t *meets; /* block -> block whose lanes meet in its barrier and could not else be known to be together;
                        MG_NO_BLOCK: none */
};

static bool sreg_varies(unsigned s)
{
    switch (s) {
    case MG_SREG_ntid:
    case MG_SREG_warpid:
    case MG_SREG_nwarpid:
    case MG_SREG_ctaid:
    case MG_SREG_nctaid:
    case MG_SREG_smid:
    case MG_SREG_nsmid:
    case MG_SREG_gridid:
    case MG_SREG_clusterid:
    case MG_SREG_nclusterid:
    case MG_SREG_cluster_ctaid:
    case MG_SREG_cluster_nctaid:
    case MG_SREG_cluster_ctarank:
    case MG_SREG_cluster_nctarank:
    case MG_SREG_is_explicit_cluster:
    case MG_SREG_total_smem_size:
    case MG_SREG_aggr_smem_size:
    case MG_SREG_dynamic_smem_size:
    case MG_SREG_WARP_SZ:
        return false;
    default:
        return true; /* lane numbers, masks, clocks */
    }
}

static bool reg_varies(const struct solver *s, mg_id r)
{
    return r < s->u->reg_lo || r >= s->u->reg_hi || s->u->varying[r - s->u->reg_lo];
}

static bool run_varies(const struct solver *s, mg_id first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_opnd *o = &s->m->opnds.at[first + i];
        switch (o->kind) {
        case MG_OPND_reg:
        case MG_OPND_not:
        case MG_OPND_neg:
        case MG_OPND_sel:
            if (reg_varies(s, o->id)) return true;
            break;
        case MG_OPND_addr:
            if (o->sub == MG_OPND_reg && reg_varies(s, o->id)) return true;
            break;
        case MG_OPND_sreg:
            if (sreg_varies(o->id)) return true;
            break;
        case MG_OPND_sym:
            return true;
        case MG_OPND_vec:
        case MG_OPND_list:
        case MG_OPND_tensor:
        case MG_OPND_pair:
            if (run_varies(s, o->id, o->n)) return true;
            break;
        default:
            break;
        }
    }
    return false;
}

/* May the results of the instruction differ between lanes that execute it together? */
static bool result_varies(const struct solver *s, const struct mg_node *n)
{
    const struct mg_form *f = mg_node_form(s->m, n);
    if (f->unknown) return true;
    if (f->op_flags & (MG_OPF_ATOMIC | MG_OPF_CONVERGENT | MG_OPF_HIDDEN)) return true;
    switch (f->op) {
    case MG_OP_ld:
        /* the same address gives all lanes the same value only where nobody writes meanwhile */
        if (f->space == MG_SPACE_param) {
            const struct mg_opnd *o = &s->m->opnds.at[n->opnd + (n->n_opnds > 1 ? 1 : 0)];
            bool entry_param = o->kind == MG_OPND_addr && o->sub == MG_OPND_var && s->m->vars.at[o->id].is_param;
            if (!entry_param) return true;
        } else if (f->space != MG_SPACE_const && !(f->space == MG_SPACE_global && mg_form_has(f, MG_MOD_nc))) {
            return true;
        }
        break;
    default:
        if (f->op_flags & (MG_OPF_READS | MG_OPF_WRITES)) return true;
    }
    if (n->guard && reg_varies(s, n->guard)) return true;
    return run_varies(s, n->opnd, n->n_opnds);
}

static void set_varying(struct solver *s, mg_id r)
{
    if (r < s->u->reg_lo || r >= s->u->reg_hi || s->u->varying[r - s->u->reg_lo]) return;
    s->u->varying[r - s->u->reg_lo] = true;
    s->changed = true;
}

static void scan_block(struct solver *s, uint32_t b)
{
    const struct mg_block *k = &s->c->blocks[b];
    for (mg_id id = k->first;; id = s->m->nodes.at[id].next) {
        const struct mg_node *n = &s->m->nodes.at[id];
        if (n->kind == MG_NODE_inst) {
            mg_id defs[64];
            uint32_t n_defs = mg_node_defs(s->m, id, defs, 64);
            bool known = n_defs > 0;
            for (uint32_t i = 0; i < n_defs && i < 64; i++) known = known && reg_varies(s, defs[i]);
            if (n_defs && !known && result_varies(s, n))
                for (uint32_t i = 0; i < n_defs && i < 64; i++) set_varying(s, defs[i]);
        }
        if (id == k->last) break;
    }
}

/* Do all lanes of a cohort that end this block together go on together? */
static bool ends_together(const struct solver *s, uint32_t b)
{
    const struct mg_node *n = &s->m->nodes.at[s->c->blocks[b].last];
    const struct mg_form *f = mg_node_form(s->m, n);
    if (n->kind != MG_NODE_inst || !(f->op_flags & MG_OPF_ENDS_BLOCK)) return true;
    if (f->op == MG_OP_call) return false; /* when lanes come back is the callee's matter */
    if (n->guard && reg_varies(s, n->guard)) return false;
    if (f->op == MG_OP_brx) return !run_varies(s, n->opnd, n->n_opnds);
    return true;
}

static bool in_cycle(const struct mg_loops *l, uint32_t b)
{
    return l->loop_of[b] != MG_NO_LOOP;
}

#define UNSEEN (UINT32_MAX - 1) /* not reached yet by this round */

/* One edge, taken at most once by each lane, begins a cohort of the lanes that take it. */
static bool begins_cohort(const struct solver *s, const struct mg_loops *l, uint32_t b)
{
    const struct mg_block *k = &s->c->blocks[b];
    if (k->n_preds != 1) return false;
    uint32_t p = s->c->preds[k->pred_at];
    const struct mg_node *end = &s->m->nodes.at[s->c->blocks[p].last];
    unsigned op = mg_node_form(s->m, end)->op;
    if (in_cycle(l, p) || in_cycle(l, b) || op == MG_OP_call) return false;
    bool leaves = op == MG_OP_ret || op == MG_OP_exit || op == MG_OP_trap;
    return leaves || s->c->blocks[p].n_succs > 1; /* both ways to one place: two edges */
}

static uint32_t cohort_of(const struct solver *s, const struct mg_loops *l, uint32_t b)
{
    const struct mg_block *k = &s->c->blocks[b];
    uint32_t same = b == 0 ? 0 : UNSEEN; /* the launch is a predecessor of the entry */
    bool together = true;
    for (uint32_t i = 0; i < k->n_preds; i++) {
        uint32_t p = s->c->preds[k->pred_at + i];
        if (!s->c->reachable[p] || s->u->at_end[p] == UNSEEN) continue;
        uint32_t pc = s->u->at_end[p];
        if (pc == MG_NO_COHORT) return MG_NO_COHORT;
        if (same != UNSEEN && pc != same) together = false;
        same = pc;
        if (!ends_together(s, p)) together = false;
    }
    if (together) return same;
    return b != 0 && begins_cohort(s, l, b) ? b : MG_NO_COHORT;
}

/* ---- barriers ------------------------------------------------------------------------------------------ */

enum barrier { NO_BARRIER, INSIDE, FIRST };

bool mg_is_cta_barrier(const struct mg_module *m, mg_id node)
{
    const struct mg_node *n = &m->nodes.at[node];
    const struct mg_form *f = mg_node_form(m, n);
    if (n->kind != MG_NODE_inst || n->guard || !(f->op_flags & MG_OPF_BARRIER)) return false;
    if (f->op != MG_OP_bar &&
        !(f->op == MG_OP_barrier && mg_form_has(f, MG_MOD_aligned) && !mg_form_has(f, MG_MOD_cluster)))
        return false;
    return mg_form_has(f, MG_MOD_sync) && n->n_opnds == 1 &&
           m->opnds.at[n->opnd].kind == MG_OPND_imm; /* with a count it is some threads' own */
}

static enum barrier barrier_of(const struct solver *s, uint32_t b)
{
    const struct mg_block *k = &s->c->blocks[b];
    bool first = true;
    for (mg_id id = k->first;; id = s->m->nodes.at[id].next) {
        const struct mg_node *n = &s->m->nodes.at[id];
        if (mg_is_cta_barrier(s->m, id)) return first ? FIRST : INSIDE;
        if (n->kind == MG_NODE_inst && !(n->flags & MG_NF_META)) first = false;
        if (id == k->last) return NO_BARRIER;
    }
}

/* The nearest block that has a cohort, all of whose lanes come to b once before they come there again. */
static uint32_t meets_of(const struct solver *s, uint32_t b)
{
    if (!s->dom) return MG_NO_BLOCK;
    for (uint32_t p = s->dom->idom[b]; p != MG_NO_BLOCK; p = s->dom->idom[p])
        if (s->equiv->class_of[p] == s->equiv->class_of[b] && s->u->cohort[p] < UNSEEN && mg_dom_over(s->post, b, p))
            return p;
    return MG_NO_BLOCK;
}

/* What lanes wrote on their ways to the barrier may differ. */
static void vary_between(struct solver *s, uint32_t from, uint32_t to)
{
    const struct mg_cfg *c = s->c;
    uint64_t *between = mg_xcalloc(2 * (size_t)mg_bits_words(c->n_blocks) + 1, sizeof *between),
             *wall = between + mg_bits_words(c->n_blocks);
    mg_put(wall, to);
    mg_graph_after(&c->succ, from, between, wall);
    for (uint32_t b = 0; b < c->n_blocks; b++)
        for (mg_id id = mg_has(between, b) ? c->blocks[b].first : 0; id;
             id = id == c->blocks[b].last ? 0 : s->m->nodes.at[id].next) {
            mg_id defs[64];
            uint32_t n = s->m->nodes.at[id].kind == MG_NODE_inst ? mg_node_defs(s->m, id, defs, 64) : 0;
            for (uint32_t i = 0; i < n && i < 64; i++) set_varying(s, defs[i]);
        }
    free(between);
}

/* now: as paths tell. */
static uint32_t with_barrier(struct solver *s, uint32_t b, uint32_t now)
{
    bool apart = now == MG_NO_COHORT || now == b;
    enum barrier at = b && s->dom && apart ? barrier_of(s, b) : NO_BARRIER;
    s->meets[b] = at == NO_BARRIER ? MG_NO_BLOCK : meets_of(s, b);
    if (at == FIRST && s->meets[b] != MG_NO_BLOCK) now = s->u->cohort[s->meets[b]];
    s->u->at_end[b] = s->meets[b] != MG_NO_BLOCK ? s->u->cohort[s->meets[b]] : now;
    return now;
}

/* ---- to the fixpoint ----------------------------------------------------------------------------------- */

/* Cohorts under the registers known to vary so far. Not by mg_dataflow: at a barrier a block takes over the cohort of
 * one that dominates it, which no edge need lead from. */
static void find_cohorts(struct solver *s, const struct mg_loops *l)
{
    const struct mg_cfg *c = s->c;
    for (uint32_t i = 0; i < c->n_blocks; i++) {
        s->u->cohort[i] = s->u->at_end[i] = c->reachable[i] ? UNSEEN : MG_NO_COHORT;
        s->meets[i] = MG_NO_BLOCK;
    }
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < c->n_blocks; i++) {
            uint32_t b = c->rpo[i];
            if (s->u->at_end[b] == MG_NO_COHORT) continue;
            uint32_t end = s->u->at_end[b],
                     now = with_barrier(s, b, s->u->cohort[b] == MG_NO_COHORT ? MG_NO_COHORT : cohort_of(s, l, b));
            again |= now != s->u->cohort[b] || end != s->u->at_end[b];
            s->u->cohort[b] = now;
        }
    }
}

struct mg_uniform *mg_uniform_new_barriers(const struct mg_cfg *c, const struct mg_loops *l, const struct mg_dom *dom,
                                           const struct mg_dom *post, const struct mg_equiv *e)
{
    struct mg_uniform *u = mg_xcalloc(1, sizeof *u);
    struct solver s = {.c = c, .m = c->m, .u = u, .dom = dom, .post = post, .equiv = e};
    u->n_blocks = c->n_blocks;
    u->cohort = mg_xmalloc(sizeof *u->cohort * (c->n_blocks + 1));
    u->at_end = mg_xmalloc(sizeof *u->at_end * (c->n_blocks + 1));
    mg_func_regs(c->m, c->func, &u->reg_lo, &u->reg_hi);
    u->varying = mg_xcalloc(u->reg_hi - u->reg_lo + 1, sizeof *u->varying);
    memset(u->cohort, 0xff, sizeof *u->cohort * (c->n_blocks + 1));
    memset(u->at_end, 0xff, sizeof *u->at_end * (c->n_blocks + 1));
    if (c->m->funcs.at[c->func].kind != MG_FUNC_entry) {
        memset(u->varying, 1, u->reg_hi - u->reg_lo + 1);
        return u;
    }
    s.meets = mg_xmalloc(sizeof *s.meets * (c->n_blocks + 1));
    do {
        s.changed = false;
        find_cohorts(&s, l);
        for (uint32_t i = 0; i < c->n_blocks; i++) {
            uint32_t b = c->rpo[i];
            if (u->at_end[b] == MG_NO_COHORT) continue;
            scan_block(&s, b);
            if (s.meets[b] != MG_NO_BLOCK) vary_between(&s, s.meets[b], b);
        }
    } while (s.changed);
    free(s.meets);
    return u;
}

struct mg_uniform *mg_uniform_new(const struct mg_cfg *c, const struct mg_loops *l)
{
    return mg_uniform_new_barriers(c, l, NULL, NULL, NULL);
}

void mg_uniform_free(struct mg_uniform *u)
{
    if (!u) return;
    free(u->cohort);
    free(u->at_end);
    free(u->varying);
    free(u);
}
