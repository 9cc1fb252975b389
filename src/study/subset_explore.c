/* Every interval with every feature, the co-optimisation of error and size, and the Pareto front. */
#include <math.h>

#include "study/subset.h"

static void try_one(struct mg_combination *c, const struct mg_subset_program *s,
                    struct mg_subset_program *const *judges, uint32_t n, const struct mg_subset_opts *o,
                    const struct mg_vectors *v, struct mg_diag *d)
{
    struct mg_subset x;
    double sum = 0;
    if (mg_subset_init(&x, v, o, d)) {
        c->why_not = "it cannot be selected";
        mg_subset_release(&x);
        return;
    }
    c->clusters = x.n_picks;
    c->intervals = v->n;
    c->speedup = mg_subset_speedup(&x);
    c->error_pct = mg_subset_judge(&x, s).error_pct;
    for (uint32_t i = 0; i < n; i++) sum += mg_subset_judge(&x, judges[i]).error_pct;
    c->held_out_pct = n ? sum / n : NAN;
    mg_subset_release(&x);
}

static bool beats(const struct mg_combination *a, const struct mg_combination *b)
{
    bool no_worse = a->error_pct <= b->error_pct && a->speedup.instructions >= b->speedup.instructions;
    return no_worse && (a->error_pct < b->error_pct || a->speedup.instructions > b->speedup.instructions);
}

static bool equals(const struct mg_combination *a, const struct mg_combination *b)
{
    return a->error_pct == b->error_pct && a->speedup.instructions == b->speedup.instructions;
}

static void mark_front(struct mg_exploration *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        x->all[i].pareto = !x->all[i].why_not && !isnan(x->all[i].error_pct);
        for (uint32_t j = 0; j < x->n; j++)
            if (!x->all[j].why_not && (beats(&x->all[j], &x->all[i]) || (j < i && equals(&x->all[j], &x->all[i]))))
                x->all[i].pareto = false;
    }
}

enum mg_err mg_exploration_init(struct mg_exploration *x, const struct mg_subset_program *s,
                                struct mg_subset_program *const *judges, uint32_t n, const struct mg_subset_opts *o,
                                bool ours, struct mg_diag *d)
{
    double interval_insts = o->interval_insts > 0 ? o->interval_insts : 1e8;
    *x = (struct mg_exploration){0};
    for (int kind = 0; kind < MG_INTERVAL_COUNT; kind++)
        for (int f = 0; f < (ours ? MG_FEATURE_COUNT : MG_FEATURE_GTPIN); f++) {
            struct mg_combination *c = &x->all[x->n++];
            struct mg_vectors v;
            *c = (struct mg_combination){.interval = (enum mg_interval_kind)kind,
                                         .feature = (enum mg_feature_kind)f,
                                         .error_pct = NAN,
                                         .held_out_pct = NAN,
                                         .speedup = {NAN, NAN, NAN}};
            if (kind == MG_INTERVAL_SYNC && !s->has_epochs) {
                c->why_not = s->why_no_epochs;
                continue;
            }
            enum mg_err err = mg_vectors_init(&v, s, c->interval, c->feature, interval_insts, d);
            if (err) return err;
            try_one(c, s, judges, n, o, &v, d);
            mg_vectors_release(&v);
        }
    mark_front(x);
    return MG_ERR_OK;
}

const struct mg_combination *mg_exploration_best(const struct mg_exploration *x, double pct)
{
    const struct mg_combination *best = NULL;
    for (uint32_t i = 0; i < x->n; i++) {
        const struct mg_combination *c = &x->all[i];
        if (c->why_not || isnan(c->error_pct) || (pct >= 0 && c->error_pct > pct)) continue;
        bool smaller = !best || c->speedup.instructions > best->speedup.instructions;
        if (pct < 0)
            smaller = !best || c->error_pct < best->error_pct || (c->error_pct == best->error_pct && smaller);
        else if (best && c->speedup.instructions == best->speedup.instructions)
            smaller = c->error_pct < best->error_pct;
        if (smaller) best = c;
    }
    return best;
}
