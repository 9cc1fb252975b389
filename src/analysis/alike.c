/* One fixpoint over blocks and registers. A register differs that is written in a block that does, or by what may give
 * another result in another CTA. A block differs that some branch decides on (it lies on the way from one of the
 * branch's successors to where they meet again) whose predicate differs or which itself does. */
#include "analysis/alike.h"

#include <stdlib.h>
#include <string.h>

struct solver {
    const struct mg_cfg *c;
    const struct mg_module *m;
    struct mg_alike *a;
    const struct mg_dom *post;
    bool changed;
};

static bool is_known_sreg(unsigned s)
{
    switch (s) {
    case MG_SREG_tid:
    case MG_SREG_ntid:
    case MG_SREG_nctaid:
    case MG_SREG_WARP_SZ:
    case MG_SREG_total_smem_size:
    case MG_SREG_dynamic_smem_size:
        return true;
    default:
        return false;
    }
}

static bool reg_differs(const struct mg_alike *a, mg_id r)
{
    return r < a->lo || r >= a->hi || a->differs[r - a->lo];
}

static bool run_differs(const struct solver *s, mg_id first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_opnd *o = &s->m->opnds.at[first + i];
        switch (o->kind) {
        case MG_OPND_imm:
        case MG_OPND_f32:
        case MG_OPND_f64:
            break;
        case MG_OPND_var:
            if (s->m->vars.at[o->id].space == MG_SPACE_local) return true;
            break;
        case MG_OPND_reg:
        case MG_OPND_not:
        case MG_OPND_neg:
        case MG_OPND_sel:
            if (reg_differs(s->a, o->id)) return true;
            break;
        case MG_OPND_sreg:
            if (!is_known_sreg(o->id)) return true;
            break;
        case MG_OPND_vec:
        case MG_OPND_pair:
            if (run_differs(s, o->id, o->n)) return true;
            break;
        default:
            return true;
        }
    }
    return false;
}

/* Arithmetic on what is alike; parameters. */
static bool result_differs(const struct solver *s, const struct mg_node *n)
{
    const struct mg_form *f = mg_node_form(s->m, n);
    const struct mg_opnd *o = &s->m->opnds.at[n->opnd];
    if (f->unknown || mg_form_has(f, MG_MOD_cc) || (f->op_flags & (MG_OPF_ATOMIC | MG_OPF_CONVERGENT | MG_OPF_BARRIER)))
        return true;
    if (n->guard && reg_differs(s->a, n->guard)) return true;
    switch (f->op) {
    case MG_OP_ld:
        return f->space != MG_SPACE_param || n->n_opnds != 2 || o[1].kind != MG_OPND_addr || o[1].sub != MG_OPND_var ||
               !s->m->vars.at[o[1].id].is_param;
    case MG_OP_cvta: /* generic addresses of shared and local memory are some CTA's own */
        if (f->space == MG_SPACE_shared || f->space == MG_SPACE_local) return true;
        break;
    case MG_OP_mul24:
    case MG_OP_mad24:
        break;
    default:
        if (!mg_op_is_plain(f->op)) return true;
    }
    return run_differs(s, n->opnd, n->n_opnds);
}

static void scan_block(struct solver *s, uint32_t b)
{
    const struct mg_block *k = &s->c->blocks[b];
    for (mg_id id = k->first;; id = s->m->nodes.at[id].next) {
        const struct mg_node *n = &s->m->nodes.at[id];
        mg_id defs[256];
        uint32_t n_defs = n->kind == MG_NODE_inst ? mg_node_defs(s->m, id, defs, MG_COUNT_OF(defs)) : 0;
        bool known = true;
        for (uint32_t i = 0; i < n_defs && i < MG_COUNT_OF(defs); i++) known = known && reg_differs(s->a, defs[i]);
        if (!known && (!s->a->block[b] || result_differs(s, n)))
            for (uint32_t i = 0; i < n_defs && i < MG_COUNT_OF(defs); i++) {
                if (reg_differs(s->a, defs[i])) continue;
                s->a->differs[defs[i] - s->a->lo] = true;
                s->changed = true;
            }
        if (id == k->last) break;
    }
}

static void set_apart(struct solver *s, uint32_t b)
{
    s->changed |= s->a->block[b];
    s->a->block[b] = false;
}

/* What the block's end decides on differs. */
static void part_behind(struct solver *s, uint32_t b)
{
    const struct mg_block *k = &s->c->blocks[b];
    for (uint32_t i = 0; i < k->n_succs; i++)
        for (uint32_t y = s->c->edges[k->succ_at + i]; y != s->post->idom[b] && y != MG_DOM_ROOT;) {
            if (y == MG_NO_BLOCK) { /* nobody comes out of there */
                for (uint32_t x = 0; x < s->c->n_blocks; x++) set_apart(s, x);
                return;
            }
            set_apart(s, y);
            y = s->post->idom[y];
        }
}

bool mg_alike_end(const struct mg_alike *a, const struct mg_cfg *c, uint32_t b)
{
    const struct mg_node *n = &c->m->nodes.at[c->blocks[b].last];
    const struct mg_form *f = mg_node_form(c->m, n);
    if (!a->block[b]) return false;
    if (!(f->op_flags & MG_OPF_ENDS_BLOCK) || f->op == MG_OP_call) return true;
    if (f->op == MG_OP_brx) return false;
    return !n->guard || !reg_differs(a, n->guard);
}

struct mg_alike *mg_alike_new(const struct mg_cfg *c, const bool *may_leave)
{
    struct mg_alike *a = mg_xcalloc(1, sizeof *a);
    const struct mg_module *m = c->m;
    bool none = m->funcs.at[c->func].kind != MG_FUNC_entry;
    a->n_blocks = c->n_blocks;
    a->block = mg_xcalloc(c->n_blocks + 1, sizeof *a->block);
    mg_func_regs(m, c->func, &a->lo, &a->hi);
    a->differs = mg_xcalloc(a->hi - a->lo + 1, sizeof *a->differs);
    for (uint32_t b = 0; may_leave && b < c->n_blocks; b++) none = none || may_leave[b];
    if (none) return a;
    struct mg_dom *post = mg_postdom_new(c);
    struct solver s = {.c = c, .m = m, .a = a, .post = post, .changed = true};
    for (uint32_t b = 0; b < c->n_blocks; b++) a->block[b] = c->reachable[b];
    while (s.changed) {
        s.changed = false;
        for (uint32_t i = 0; i < c->n_blocks; i++) {
            uint32_t b = c->rpo[i];
            if (!c->reachable[b]) continue;
            scan_block(&s, b);
            if (c->blocks[b].n_succs + c->blocks[b].leaves > 1 && !mg_alike_end(a, c, b)) part_behind(&s, b);
        }
    }
    mg_dom_free(post);
    return a;
}

void mg_alike_free(struct mg_alike *a)
{
    if (!a) return;
    free(a->block);
    free(a->differs);
    free(a);
}

bool mg_alike_reg(const struct mg_alike *a, mg_id reg)
{
    return !reg_differs(a, reg);
}
