/* Rules about how evenly lanes, CTAs and multiprocessors are used. */
#include <stdlib.h>
#include <string.h>

#include "report/advice/priv.h"
#include "report/advice/view.h"
#include "report/priv.h"

/* A figure of tool lanes: a number, or of a sample an estimate. */
static double told(const struct mg_jval *v, const char *key)
{
    const struct mg_jval *x = mg_jval_get(v, key);
    return x && x->kind == MG_JVAL_OBJECT ? mg_jval_f64(x, "estimate") : mg_jval_number(x);
}

/* Does one of the branch's ways leave the loop around it? */
static bool leaves_loop(struct advice *a, struct view *v, const struct mg_pkernel *k, const struct mg_jval *branch)
{
    const struct mg_module *m = mg_lines_module(a->modules, k->module);
    const char *function = mg_jval_text(branch, "function");
    mg_id first = view_function(v, m, function ? function : k->name),
          node = first ? node_at(m, first, (uint32_t)mg_jval_u64(branch, "ptx_line")) : 0;
    uint32_t loop = node ? loop_at(v, node) : MG_NO_LOOP;
    if (loop == MG_NO_LOOP) return false;
    const struct mg_block *b = &v->cfg->blocks[mg_cfg_block_of(v->cfg, node)];
    for (uint32_t i = 0; i < b->n_succs; i++)
        if (!mg_loops_contains(v->loops, loop, v->cfg->edges[b->succ_at + i])) return true;
    return false;
}

double warps_of(const struct mg_jval *block, double *threads)
{
    double sum = 0, lanes = 0;
    *threads = 0;
    for (const struct mg_jval *l = mg_jval_first(mg_jval_get(block, "lanes")); l; l = l->next, lanes++) {
        sum += mg_jval_number(l);
        *threads += lanes * mg_jval_number(l);
    }
    return sum;
}

double warps_at(const struct mg_jval *kernel, uint64_t block, double *threads)
{
    *threads = 0;
    for (const struct mg_jval *b = mg_jval_first(mg_jval_get(kernel, "blocks")); b; b = b->next)
        if (mg_jval_u64(b, "id") == block) return warps_of(b, threads);
    return 0;
}

const struct mg_jval *lanes_of(const struct advice *a, const struct mg_pkernel *k)
{
    const struct mg_jval *lanes = a->without & MG_WORK_NO_LANES ? NULL : mg_facts_tool(a->facts, "lanes");
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(lanes, "kernels")); v; v = v->next)
        if (mg_jval_u64(v, "kernel") == k->id) return v;
    return NULL;
}

double idle_at(const struct mg_jval *kernel, uint64_t block)
{
    double threads, warps = warps_at(kernel, block, &threads);
    return warps > 0 ? 1 - threads / (32 * warps) : 0;
}

struct idle_accesses { /* of a kernel, what would not be there if lanes of warps were as full as they can be */
    double latency;    /* cycles of chain for requests */
    double moved;      /* cycles for sectors that lie between the lanes that are there */
};

/* 0: tool memory did not run. */
static struct idle_accesses sum_idle_accesses(const struct advice *a, const struct mg_jval *kernel)
{
    struct idle_accesses sum = {0};
    if (a->without & MG_WORK_NO_MEMORY) return sum;
    const struct mg_jval *sites = mg_jval_get(mg_facts_tool(a->facts, "memory"), "sites");
    const struct site_use *use = a->uses;
    for (const struct mg_jval *v = mg_jval_first(sites); v; v = v->next, use++)
        if (mg_jval_u64(v, "kernel") == mg_jval_u64(kernel, "kernel")) {
            sum.latency += use->wait * idle_at(kernel, mg_jval_u64(v, "block"));
            sum.moved += use->by_branches;
        }
    return sum;
}

/* By line of the source, at the worst of its branches. Where the PTX names none all branches of the kernel are one:
 * those of an unrolled loop would each be too small to be told. */
static struct line_sum *sum_of_branch(struct advice *a, struct line_sums *sums, const struct mg_pkernel *k,
                                      const struct mg_jval *branch)
{
    double idle = told(branch, "idle_slots");
    struct place at = place_of_site(a, k, branch);
    struct line_sum *s = NULL;
    if (!at.file && sums->n && sums->at[sums->n - 1].k == k && !sums->at[sums->n - 1].place.file)
        s = &sums->at[sums->n - 1];
    if (!s) s = sum_of_line(a, sums, k, branch);
    s->slots += idle;
    s->sites++;
    if (idle <= s->most) return s;
    s->most = idle;
    s->worst = branch;
    s->place = at;
    return s;
}

/* ", and 15 more branches of its line part them"; "": the one is all. */
static const char *say_others(struct advice *a, const struct line_sum *s)
{
    if (s->sites < 2) return "";
    return mg_arena_printf(&a->out->arena, ", and %u more branch%s of %s part%s them", s->sites - 1,
                           s->sites == 2 ? "" : "es", s->place.file ? "its line" : "the kernel",
                           s->sites == 2 ? "s" : "");
}

/* Warps that take a way of the branch whole, as often as CTAs come to it or more. */
static bool has_whole_warps(const struct mg_pkernel *k, const struct mg_jval *kernel, const struct ways *w,
                            double parted, double visits)
{
    double threads;
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t b = 0; b < k->n_blocks; b++)
            if (k->blocks[b].ptx_line == w->ptx_line[i] &&
                warps_at(kernel, k->blocks[b].id, &threads) - parted >= .999 * visits)
                return true;
    return false;
}

/* Part of a branch's idle slots that fuller warps would not have. One warp of a CTA that parts, while the others go
 * the other way, has none to share its lanes with: `if (threadIdx.x < 9)` idles as many lanes however the threads are
 * numbered. Where whole warps go that way too, threads of several CTAs in one would fill it. Where the data
 * decide, ordering them helps. */
static double part_to_mend(struct advice *a, const struct mg_pkernel *k, const struct mg_jval *kernel,
                           const struct mg_jval *branch, double executions)
{
    const struct kernel_cost *c = &a->costs[k->id];
    double divergent = told(branch, "divergent"), warps = c->all_ctas > 0 ? c->warps / c->all_ctas : 0;
    double alone =
        c->counted * (double)c->launches; /* one warp a launch, as at the end of the data: no other is there */
    struct ways ways;
    if (divergent <= 0 || warps <= 0) return 1;
    if (!ways_of_branch(a, k, branch, &ways)) return 1 - MG_MIN(alone / divergent, 1.);
    double visits = executions / warps; /* of CTAs */
    return has_whole_warps(k, kernel, &ways, divergent, visits) ? 1 : 1 - MG_MIN(visits / divergent, 1.);
}

/* What goes with the idle lanes beside their slots. */
static const char *say_moved(struct advice *a, const struct kernel_cost *c, const struct line_sum *s)
{
    double part = c->parts[PART_GLOBAL] > 0 ? 100 * s->moved / c->parts[PART_GLOBAL] : 0;
    if (part < 1) return "";
    return mg_arena_printf(
        &a->out->arena, ", and of what it moves of global memory %.0f %% lies between the lanes that are there", part);
}

static void tell_divergence(struct advice *a, struct view *view, const struct line_sum *s)
{
    const struct kernel_cost *c = &a->costs[s->k->id];
    double all = 32 * c->warp_insts, part = all > 0 ? s->slots / all : 0,
           machine = c->warp_insts > 0 ? c->issues / c->warp_insts : 1, cycles = s->idle / 32 / 4 * machine,
           gain = gain_of_full_warps(c, cycles, s->latency, s->moved), threads;
    bool issues = part >= .05 && is_worth_if_full(c, PART_ISSUE, cycles),
         moves = s->moved >= .05 * c->parts[PART_GLOBAL] && is_worth_if_full(c, PART_GLOBAL, s->moved);
    if (gain <= 0 || (!issues && !moves)) return;
    bool loop = leaves_loop(a, view, s->k, s->worst);
    double executions = warps_at(lanes_of(a, s->k), mg_jval_u64(s->worst, "block"), &threads);
    struct mg_finding *f = add_finding(a, c, gain, true);
    place_at_line(f, s);
    f->limit = say_limit(a, c, s->moved > cycles ? PART_GLOBAL : PART_ISSUE);
    f->measure = 100 * part;
    f->unit = "% of the kernel's lane slots idle";
    f->text = mg_arena_printf(
        &a->out->arena,
        "lanes of a warp %s (in %s of %s warp executions)%s: %.1f %% of the kernel's lane slots idle%s%s. %s",
        loop ? "leave this loop at different times" : "take both sides of this branch",
        say_number(a, told(s->worst, "divergent")), say_number(a, executions), say_others(a, s), f->measure,
        s->sites < 2 ? "" : mg_arena_printf(&a->out->arena, ", %.1f %% by this one", 100 * s->most / all),
        say_moved(a, c, s),
        loop ? "Give the lanes of a warp work of equal length: sort or bucket it, or share the rounds among lanes."
             : "Branch on what all lanes of a warp share, or order the data so that they do.");
    say_caller(a, f);
}

void mg_rule_divergence(struct advice *a, const struct mg_rule *self)
{
    const struct mg_jval *lanes = mg_facts_tool(a->facts, "lanes");
    struct line_sums sums = {0};
    struct view view = {0};
    (void)self;
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(lanes, "kernels")); v; v = v->next) {
        const struct mg_pkernel *k;
        double threads, slots;
        if (!is_shown(a, v, &k)) continue;
        slots = 32 * a->costs[k->id].warp_insts * (1 - mg_jval_f64(v, "lane_use"));
        struct idle_accesses accesses = slots > 0 ? sum_idle_accesses(a, v) : (struct idle_accesses){0};
        for (const struct mg_jval *b = mg_jval_first(mg_jval_get(v, "branches")); b; b = b->next) {
            if (told(b, "idle_slots") <= 0) continue;
            double executions = warps_at(v, mg_jval_u64(b, "block"), &threads),
                   idle = told(b, "idle_slots") * part_to_mend(a, k, v, b, executions);
            struct line_sum *s = sum_of_branch(a, &sums, k, b);
            s->idle += idle;
            s->latency += idle * accesses.latency / slots;
            s->moved += idle * accesses.moved / slots;
        }
    }
    for (uint32_t i = 0; i < sums.n; i++) tell_divergence(a, &view, &sums.at[i]);
    view_release(&view);
    free(sums.at);
}

/* "40", "(3,2,0)" */
static const char *name_cta(struct advice *a, const struct mg_jval *v)
{
    uint64_t at[3] = {0};
    uint32_t n = 0;
    for (const struct mg_jval *x = mg_jval_first(v); x && n < 3; x = x->next) at[n++] = (uint64_t)mg_jval_number(x);
    if (at[1] || at[2])
        return mg_arena_printf(&a->out->arena, "(%llu,%llu,%llu)", (unsigned long long)at[0], (unsigned long long)at[1],
                               (unsigned long long)at[2]);
    return mg_arena_printf(&a->out->arena, "%llu", (unsigned long long)at[0]);
}

/* " (3, 40 and 81)", of many the first; "": the profile does not name them. */
static const char *name_long_ctas(struct advice *a, const struct mg_jval *v)
{
    enum { MOST_NAMED = 5 };
    uint64_t all = mg_jval_u64(v, "long_ctas"), n = 0, named = MG_MIN(all, (uint64_t)MOST_NAMED);
    const char *text = "";
    for (const struct mg_jval *x = mg_jval_first(mg_jval_get(v, "long_cta_ids")); x && n < named; x = x->next, n++)
        text = mg_arena_printf(&a->out->arena, "%s%s%s", text, !n ? "" : n + 1 == all ? " and " : ", ", name_cta(a, x));
    if (!*text) return "";
    return all > named ? mg_arena_printf(&a->out->arena, " (%s and %llu more)", text, (unsigned long long)(all - named))
                       : mg_arena_printf(&a->out->arena, " (%s)", text);
}

/* "20,000 times", "once", "0.25 times" */
static const char *say_rounds(struct advice *a, double rounds)
{
    if (rounds == 1) return "once";
    return rounds >= 100 ? mg_arena_printf(&a->out->arena, "%s times", say_number(a, rounds))
                         : mg_arena_printf(&a->out->arena, "%.3g times", rounds);
}

/* Loops that the compiler made of the one of that block, itself included: those that begin at the same line. */
static uint32_t copies_of_loop(const struct mg_pkernel *k, uint64_t block)
{
    const struct mg_pblock *loop = block < k->n_blocks ? &k->blocks[block] : NULL;
    uint32_t n = 0;
    for (uint32_t b = 0; loop && loop->file && b < k->n_blocks; b++)
        for (uint32_t i = 0; i < k->blocks[b].n_succs; i++) {
            const struct mg_pblock *head = k->blocks[b].succs[i] <= b ? &k->blocks[k->blocks[b].succs[i]] : NULL;
            n += head && head->line == loop->line && head->file && !strcmp(head->file, loop->file);
        }
    return MG_MAX(n, 1u);
}

/* Why the longest CTA is longer. */
static const char *say_cause(struct advice *a, const struct mg_pkernel *k, const struct mg_jval *v)
{
    double mean = mg_jval_f64(v, "mean");
    uint32_t copies = mg_jval_yes(v, "loop") ? copies_of_loop(k, mg_jval_u64(v, "block")) : 0;
    if (copies)
        return mg_arena_printf(
            &a->out->arena, ": its threads go round this loop, %s, %s, the mean %s",
            copies < 2 ? "as it was compiled"
                       : mg_arena_printf(&a->out->arena, "one of %u that the compiler made of it", copies),
            say_rounds(a, mg_jval_f64(v, "rounds_of_longest")), say_rounds(a, mg_jval_f64(v, "rounds_mean")));
    return mean > 0
               ? mg_arena_printf(&a->out->arena, ", the shortest %.0f %% as many", 100 * mg_jval_f64(v, "least") / mean)
               : "";
}

/* May how often that loop is gone round depend on timing? */
static bool is_loop_by_timing(const struct mg_pkernel *k, const struct mg_jval *v)
{
    uint64_t block = mg_jval_u64(v, "block");
    return mg_jval_yes(v, "loop") && block < k->n_blocks && k->blocks[block].timing_dependent == 1;
}

/* What to try follows from how the work lies over the grid. */
static const char *say_remedy(struct advice *a, const struct mg_pkernel *k, const struct mg_jval *v, bool at_once)
{
    if (is_loop_by_timing(k, v))
        return "How often may depend on timing: another run may count otherwise, and threads that wait here for others "
               "have no work to share.";
    const char *shape = mg_jval_text(v, "shape");
    uint64_t beyond = mg_jval_u64(v, "long_ctas");
    if (shape && !strcmp(shape, "rising"))
        return at_once
                   ? "The work grows with the CTA's number: give each CTA one part from either end."
                   : "The work grows with the CTA's number: give each CTA one part from either end, or start with the long ones.";
    if (shape && !strcmp(shape, "falling"))
        return "The work falls with the CTA's number: give each CTA one part from either end.";
    if (shape && !strcmp(shape, "few long"))
        return beyond > 1
                   ? mg_arena_printf(&a->out->arena,
                                     "%llu CTAs%s%s are that long, all others are done long before: split the work of "
                                     "each of these among several CTAs.",
                                     (unsigned long long)beyond, mg_jval_yes(v, "estimate") ? " of the sample" : "",
                                     name_long_ctas(a, v))
                   : "No other is nearly as long: split its work among several CTAs.";
    return "Multiprocessors that are done wait for it: cut the work into equal parts, or let CTAs fetch the next part from a counter.";
}

/* Why the gain is not that of the longest CTA, or more than that of instructions (`fetched`). */
static const char *say_imbalance_limit(struct advice *a, const struct kernel_cost *c, double uneven, double fetched,
                                       double as_many, double ratio, bool at_once)
{
    if (uneven > as_many)
        return mg_arena_printf(
            &a->out->arena,
            "Gain: of equal CTAs in full waves. As many equal ones as now, %s of %s in the last wave, "
            "would gain %s.",
            say_number(a, (double)(c->tail.ctas % c->tail.wave)), say_number(a, c->tail.wave),
            as_many < .005 ? "nothing" : mg_arena_printf(&a->out->arena, "%.0f %%", 100 * as_many));
    if (at_once && uneven >= fetched + .02)
        return mg_arena_printf(
            &a->out->arena,
            "Gain: all its CTAs run at once, so that the longest decides, waits included; of instructions alone it "
            "would be %.0f %%.",
            100 * fetched);
    if (uneven < .6 * (1 - 1 / ratio) && !at_once)
        return "Gain: multiprocessors fetch the next CTA when they are free, so that long ones matter at the end alone.";
    return NULL;
}

void mg_rule_cta_imbalance(struct advice *a, const struct mg_rule *self)
{
    const struct mg_jval *ctas = mg_facts_tool(a->facts, "ctas");
    (void)self;
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(ctas, "kernels")); v; v = v->next) {
        const struct mg_pkernel *k;
        if (!is_shown(a, v, &k) || !mg_jval_is_number(mg_jval_get(v, "even_share"))) continue;
        struct kernel_cost *c = &a->costs[k->id];
        double even = mg_jval_f64(v, "even_share"), equal = mg_jval_f64(v, "grid_share"), /* of as many, equal CTAs */
            ratio = mg_jval_f64(v, "imbalance");
        if (even <= 0 || equal <= 0) continue;
        double fetched = MG_MAX(1 - even / equal, 0.), as_many = part_of_unequal(c, spread_of_ctas(v), false);
        bool in_waves = idle_in_tail(c) >= .1; /* rule tail leaves that to this finding */
        double uneven = in_waves ? part_of_unequal(c, spread_of_ctas(v), true) : as_many, gain = c->share * uneven;
        if (ratio < 1.25 || 100 * c->share * (1 - even) < LEAST_GAIN_PCT || gain <= 0) continue;
        bool sampled = mg_jval_yes(v, "estimate"), at_once = c->waves.all <= c->waves.launches; /* no order helps */
        struct line_sums one = {0};
        struct mg_finding *f = add_finding(a, c, gain, !sampled && !mg_timing_blocks(k));
        place_at_line(f, sum_of_line(a, &one, k, v));
        f->measure = ratio;
        f->unit = "longest CTA / mean";
        f->limit = say_imbalance_limit(a, c, uneven, fetched, as_many, ratio, at_once);
        f->text = mg_arena_printf(
            &a->out->arena, "CTA %s, the longest%s executes %.1f times as many instructions as the mean%s. %s%s",
            name_cta(a, mg_jval_get(v, "longest")),
            sampled ? mg_arena_printf(&a->out->arena, " of %s sampled, of %s,", say_number(a, mg_jval_f64(v, "ctas")),
                                      say_number(a, mg_jval_f64(v, "grid_ctas")))
                    : ",",
            ratio, say_cause(a, k, v), say_remedy(a, k, v, at_once),
            in_waves ? mg_arena_printf(&a->out->arena, " Choose the grid as a multiple of %s CTAs, too.",
                                       say_number(a, c->tail.wave))
                     : "");
        say_caller(a, f);
        c->imbalanced = true;
        c->uneven = fetched;
        free(one.at);
    }
}

void mg_rule_sm_imbalance(struct advice *a, const struct mg_rule *self)
{
    const struct mg_jval *clock = a->nvidia ? mg_facts_tool(a->facts, "clock") : NULL; /* else times are the host's */
    (void)self;
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(clock, "kernels")); v; v = v->next) {
        const struct mg_pkernel *k;
        if (!is_shown(a, v, &k)) continue;
        struct kernel_cost *c = &a->costs[k->id];
        double ratio = mg_jval_f64(v, "imbalance"), gain = ratio > 1 ? c->share * (1 - 1 / ratio) : 0;
        if (c->imbalanced || ratio < 1.2 || mg_jval_f64(v, "waves") < 1 || 100 * gain < LEAST_GAIN_PCT) continue;
        struct mg_finding *f = add_finding(a, c, gain, false);
        place_at_kernel(f, k);
        f->measure = ratio;
        f->unit = "busiest multiprocessor / mean";
        f->text = mg_arena_printf(
            &a->out->arena,
            "the busiest multiprocessor works %.2f times as long as the mean, though CTAs execute alike. Use more and smaller CTAs.",
            ratio);
        c->imbalanced = true;
    }
}
