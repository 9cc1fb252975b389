/* A fixpoint: registers begin as the same and turn different by what writes them, or by a branch whose predicate
 * differs and which decides between their writes. */
#include "analysis/same.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/dom.h"

struct def {
    mg_id reg;
    uint32_t block;
};
struct solver {
    const struct mg_cfg *c;
    const struct mg_module *m;
    struct mg_same *s;
    const struct mg_dom *post;
    MG_VEC(struct def) defs; /* by register */
    bool *parted;            /* block -> its end was found to part lanes */
    unsigned char
        *arm; /* block -> ways of the branch that is looked at which lead there before they meet, a bit each */
    uint32_t *queue;
    bool changed;
};

static bool differs(const struct mg_same *s, mg_id r)
{
    return r < s->lo || r >= s->hi || s->differs[r - s->lo];
}

bool mg_same_reg(const struct mg_same *s, mg_id reg)
{
    return !differs(s, reg);
}

static bool is_same_in_all_ctas(unsigned s)
{
    switch (s) {
    case MG_SREG_tid:
    case MG_SREG_ntid:
    case MG_SREG_nctaid:
    case MG_SREG_laneid:
    case MG_SREG_WARP_SZ:
    case MG_SREG_total_smem_size:
    case MG_SREG_dynamic_smem_size:
        return true;
    default:
        return false;
    }
}

static bool is_same_in_all_lanes(unsigned s)
{
    switch (s) {
    case MG_SREG_ntid:
    case MG_SREG_ctaid:
    case MG_SREG_nctaid:
    case MG_SREG_gridid:
    case MG_SREG_clusterid:
    case MG_SREG_nclusterid:
    case MG_SREG_cluster_ctaid:
    case MG_SREG_cluster_nctaid:
    case MG_SREG_cluster_ctarank:
    case MG_SREG_WARP_SZ:
    case MG_SREG_total_smem_size:
    case MG_SREG_dynamic_smem_size:
        return true;
    default:
        return false;
    }
}

static bool are_same(const struct mg_same *s, const struct mg_module *m, mg_id first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!mg_same_operand(s, m, &m->opnds.at[first + i])) return false;
    return true;
}

bool mg_same_operand(const struct mg_same *s, const struct mg_module *m, const struct mg_opnd *o)
{
    switch (o->kind) {
    case MG_OPND_imm:
    case MG_OPND_f32:
    case MG_OPND_f64:
        return true;
    case MG_OPND_var:
        return m->vars.at[o->id].space != MG_SPACE_local;
    case MG_OPND_addr:
        if (o->sub == MG_OPND_var) return m->vars.at[o->id].space != MG_SPACE_local;
        return o->sub != MG_OPND_reg || !differs(s, o->id);
    case MG_OPND_reg:
    case MG_OPND_not:
    case MG_OPND_neg:
    case MG_OPND_sel:
        return !differs(s, o->id);
    case MG_OPND_sreg:
        return s->among == MG_SAME_CTAS ? is_same_in_all_ctas(o->id) : is_same_in_all_lanes(o->id);
    case MG_OPND_vec:
    case MG_OPND_pair:
        return are_same(s, m, o->id, o->n);
    default:
        return false;
    }
}

/* shfl.idx gives all lanes the value of the lane that they name: the same where they name one. */
static bool is_broadcast(const struct solver *s, const struct mg_node *n)
{
    return mg_form_has(mg_node_form(s->m, n), MG_MOD_idx) && n->n_opnds > 2 &&
           mg_same_operand(s->s, s->m, &s->m->opnds.at[n->opnd + 2]);
}

static bool result_differs(const struct solver *s, const struct mg_node *n)
{
    const struct mg_form *f = mg_node_form(s->m, n);
    if (f->unknown || mg_form_has(f, MG_MOD_cc)) return true;
    if (n->guard && differs(s->s, n->guard)) return true;
    switch (f->op) {
    case MG_OP_vote:
        return s->s->among == MG_SAME_CTAS;
    case MG_OP_shfl:
        return s->s->among == MG_SAME_CTAS || !is_broadcast(s, n);
    case MG_OP_ld:
        if (f->space == MG_SPACE_local) return true;
        if (s->s->among == MG_SAME_CTAS && f->space != MG_SPACE_param && f->space != MG_SPACE_const) return true;
        break;
    case MG_OP_cvta: /* generic addresses of local memory are the lane's own */
        if (f->space == MG_SPACE_local) return true;
        break;
    case MG_OP_mul24:
    case MG_OP_mad24:
        break;
    default:
        if (!mg_op_is_plain(f->op)) return true;
    }
    uint32_t at = n->n_opnds > 1; /* behind the results */
    return !are_same(s->s, s->m, n->opnd + at, n->n_opnds - at);
}

static void set_differs(struct solver *s, mg_id r)
{
    if (differs(s->s, r)) return;
    s->s->differs[r - s->s->lo] = true;
    s->changed = true;
}

static void scan_block(struct solver *s, uint32_t b)
{
    const struct mg_block *k = &s->c->blocks[b];
    for (mg_id id = k->first;; id = s->m->nodes.at[id].next) {
        const struct mg_node *n = &s->m->nodes.at[id];
        mg_id defs[64];
        uint32_t n_defs = n->kind == MG_NODE_inst ? mg_node_defs(s->m, id, defs, MG_COUNT_OF(defs)) : 0;
        if (n_defs && result_differs(s, n))
            for (uint32_t i = 0; i < n_defs && i < MG_COUNT_OF(defs); i++) set_differs(s, defs[i]);
        if (id == k->last) break;
    }
}

/* ---- branches ---------------------------------------------------------------------------------------------------- */

static bool parts_lanes(const struct solver *s, uint32_t b)
{
    const struct mg_node *n = &s->m->nodes.at[s->c->blocks[b].last];
    if (s->c->blocks[b].n_succs + s->c->blocks[b].leaves < 2 || n->kind != MG_NODE_inst) return false;
    if (mg_node_form(s->m, n)->op == MG_OP_brx) return !are_same(s->s, s->m, n->opnd, n->n_opnds);
    return n->guard && differs(s->s, n->guard);
}

/* Marks the blocks that this way leads to before the ways of the branch meet again. */
static void mark_way(struct solver *s, uint32_t branch, uint32_t way)
{
    const struct mg_block *k = &s->c->blocks[branch];
    unsigned char bit = (unsigned char)(1u << MG_MIN(way, 7u));
    uint32_t n = 0, meet = s->post->idom[branch];
    s->queue[n++] = s->c->edges[k->succ_at + way];
    while (n) {
        uint32_t b = s->queue[--n];
        if (b == meet || s->arm[b] & bit) continue;
        s->arm[b] |= bit;
        for (uint32_t i = 0; i < s->c->blocks[b].n_succs; i++) s->queue[n++] = s->c->edges[s->c->blocks[b].succ_at + i];
    }
}

/* A register differs behind the branch if only some ways write it, or several do. */
static void part_behind(struct solver *s, uint32_t b)
{
    memset(s->arm, 0, s->c->n_blocks);
    for (uint32_t i = 0; i < s->c->blocks[b].n_succs; i++) mark_way(s, b, i);
    for (uint32_t i = 0, j; i < s->defs.n; i = j) {
        unsigned char all = 0;
        bool outside = false;
        for (j = i; j < s->defs.n && s->defs.at[j].reg == s->defs.at[i].reg; j++) {
            unsigned char arm = s->arm[s->defs.at[j].block];
            all |= arm;
            outside = outside || !arm;
        }
        if (j - i > 1 && all && (outside || all & (all - 1))) set_differs(s, s->defs.at[i].reg);
    }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int by_reg(const void *a, const void *b)
{
    const struct def *x = a, *y = b;
    return x->reg != y->reg ? (x->reg > y->reg) - (x->reg < y->reg) : (x->block > y->block) - (x->block < y->block);
}

static void find_defs(struct solver *s)
{
    const struct mg_func *f = &s->m->funcs.at[s->c->func];
    mg_id defs[64];
    MG_EACH_NODE(s->m, f, id)
    {
        const struct mg_node *n = &s->m->nodes.at[id];
        if (n->kind == MG_NODE_decl && s->m->decls.at[n->ref].space == MG_SPACE_reg) {
            s->s->lo = MG_MIN(s->s->lo, s->m->decls.at[n->ref].first);
            s->s->hi = MG_MAX(s->s->hi, s->m->decls.at[n->ref].first + s->m->decls.at[n->ref].n);
        }
        uint32_t block = mg_cfg_block_of(s->c, id);
        if (n->kind != MG_NODE_inst || block == MG_NO_BLOCK) continue;
        uint32_t n_defs = MG_MIN(mg_node_defs(s->m, id, defs, MG_COUNT_OF(defs)), MG_COUNT_OF(defs));
        for (uint32_t i = 0; i < n_defs; i++) *mg_vec_push(&s->defs) = (struct def){defs[i], block};
    }
    if (s->defs.n) qsort(s->defs.at, s->defs.n, sizeof *s->defs.at, by_reg);
    s->s->lo = MG_MIN(s->s->lo, s->s->hi);
}

struct mg_same *mg_same_new(const struct mg_cfg *c, enum mg_same_among among)
{
    struct mg_same *same = mg_xcalloc(1, sizeof *same);
    struct solver s = {.c = c, .m = c->m, .s = same, .changed = true};
    same->among = among;
    same->lo = UINT32_MAX;
    if (c->m->funcs.at[c->func].kind != MG_FUNC_entry) {
        same->lo = 0;
        return same;
    }
    find_defs(&s);
    struct mg_dom *post = mg_postdom_new(c);
    uint32_t n_edges = 0;
    for (uint32_t b = 0; b < c->n_blocks; b++) n_edges += c->blocks[b].n_succs;
    same->differs = mg_xcalloc(same->hi - same->lo + 1, sizeof *same->differs);
    s.post = post;
    s.parted = mg_xcalloc(c->n_blocks + 1, sizeof *s.parted);
    s.arm = mg_xcalloc(c->n_blocks + 1, sizeof *s.arm);
    s.queue = mg_xcalloc(n_edges + 1, sizeof *s.queue);
    while (s.changed) {
        s.changed = false;
        for (uint32_t i = 0; i < c->n_blocks; i++) {
            uint32_t b = c->rpo[i];
            if (!c->reachable[b]) continue;
            scan_block(&s, b);
            if (s.parted[b] || !parts_lanes(&s, b)) continue;
            s.parted[b] = true;
            part_behind(&s, b);
        }
    }
    mg_dom_free(post);
    mg_vec_release(&s.defs);
    free(s.parted);
    free(s.arm);
    free(s.queue);
    return same;
}

void mg_same_free(struct mg_same *s)
{
    if (s) free(s->differs);
    free(s);
}
