/* What loads of one struct have in common. A warp that loads the members of an array's elements one after the other
 * touches the same sectors by each load: the first brings them, the others find them in L1. Such loads stand in one
 * block, or each behind a guard of its own (if (i + 1 < n) b = p[i + 1];), at one address register, with offsets of
 * their own.
 *
 * They are taken as one access: it touches the sectors that any of them touches (members.c), and needs the bytes of
 * all. L1 takes the lines of 128 bytes of each load one after the other, a pass for each, while sectors come: what
 * takes longer counts. All is spread over the loads as their sectors are.
 *
 * Rows that lanes walk in a loop, by steps of less than a sector, are alike: a round brings the sectors, the next ones
 * find them in L1, if it holds what the warps of a multiprocessor bring till then. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/step.h"
#include "isa/resident.h"
#include "report/advice/priv.h"
#include "report/advice/view.h"

#define SECTOR_BYTES 32.
#define LINE_BYTES   128.
#define MOST_OF      .75 /* of the bytes: an unrolled loop has a second one for what is left */

struct load { /* a load of global memory whose address register is known */
    const struct mg_jval *site;
    const char *function;
    const struct mg_pkernel *k;
    uint64_t block, requests;
    uint32_t base, ix; /* ix: of the site, in the tool's list */
    int64_t offset;
    bool constant_step; /* of lanes */
    double sectors, lines, filled;
};

static int by_base(const void *x, const void *y)
{
    const struct load *a = x, *b = y;
    if (a->k->id != b->k->id) return a->k->id < b->k->id ? -1 : 1;
    if (a->function != b->function && strcmp(a->function, b->function)) return strcmp(a->function, b->function);
    if (a->base != b->base) return a->base < b->base ? -1 : 1;
    if (a->requests != b->requests) return a->requests < b->requests ? -1 : 1;
    if (a->block != b->block) return a->block < b->block ? -1 : 1;
    return (a->ix > b->ix) - (a->ix < b->ix);
}

/* One block, or two with at most a guard between, and no loop. */
static bool is_next(const struct load *a, const struct load *b)
{
    if (b->block - a->block > 2 || b->block >= a->k->n_blocks) return b->block == a->block;
    for (uint64_t x = a->block; x < b->block; x++)
        for (uint32_t i = 0; i < a->k->blocks[x].n_succs; i++)
            if (a->k->blocks[x].succs[i] <= x) return false;
    return true;
}

static bool are_together(const struct load *a, const struct load *b)
{
    return a->k == b->k && !strcmp(a->function, b->function) && a->base == b->base && a->requests == b->requests &&
           is_next(a, b);
}

bool is_read_each_time(const char *op)
{
    static const char *const how[] = {".volatile", ".relaxed", ".acquire", ".mmio", ".cv"};
    for (size_t i = 0; i < MG_COUNT_OF(how) && op && !strncmp(op, "ld.", 3); i++)
        if (strstr(op, how[i])) return true;
    return false;
}

/* Does L1 keep what such a load brings? */
bool is_kept_by_l1(const char *op)
{
    return op && !strncmp(op, "ld.", 3) && !is_read_each_time(op) && !strstr(op, ".cg") && !strstr(op, ".no_allocate");
}

static double sectors_together(const struct load *group, uint32_t n)
{
    struct member *m = mg_xcalloc(n, sizeof *m);
    bool constant_step = true;
    double requests = (double)group->requests;
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_jval *site = group[i].site;
        bool far = mg_jval_f64(mg_jval_get(site, "patterns"), "stride_more") > .5 * requests;
        m[i] = (struct member){group[i].offset, MG_MAX((uint32_t)mg_jval_u64(site, "width"), 1u), far,
                               group[i].sectors / requests, group[i].lines / requests};
        constant_step = constant_step && group[i].constant_step;
    }
    double touched = requests * sectors_of_members(m, n, constant_step);
    free(m);
    return touched;
}

struct loads {
    struct load *at;
    uint32_t n;
    struct view view; /* of the function of the one looked at last */
};

/* Bytes from where a lane loads in one round of its loop to where it does in the next one; 0: nobody knows. */
static double step_of_load(struct advice *a, struct loads *all, const struct load *x)
{
    const struct mg_module *m = mg_lines_module(a->modules, x->k->module);
    mg_id first = view_function(&all->view, m, x->function),
          node = first ? node_at(m, first, (uint32_t)mg_jval_u64(x->site, "ptx_line")) : 0;
    uint32_t loop = node ? loop_at(&all->view, node) : MG_NO_LOOP;
    if (loop == MG_NO_LOOP) return 0;
    struct mg_affine step = mg_step_of(ssa_of(&all->view), all->view.loops, loop, node, x->base);
    return step.is == MG_AFFINE_STEP ? fabs((double)step.step) : 0;
}

/* Bytes of L1 that a warp's loads of that block take in so many rounds: rows their lines, all others as many each
 * round. */
static double bytes_of_rounds(struct advice *a, struct loads *all, const struct load *of, double rounds)
{
    double sum = 0, widest = 0; /* of one address register: its loads share lines */
    uint32_t base = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        const struct load *x = &all->at[i];
        if (x->k != of->k || x->block != of->block || strcmp(x->function, of->function)) continue;
        double step = step_of_load(a, all, x),
               bytes = LINE_BYTES * x->lines / (double)x->requests * (step > 0 && step < SECTOR_BYTES ? 1 : rounds);
        if (x->base != base) widest = 0;
        sum += MG_MAX(bytes - widest, 0.);
        widest = MG_MAX(widest, bytes);
        base = x->base;
    }
    return sum;
}

/* What shared memory leaves, of as much as CTAs can have of it. */
static double bytes_of_l1(const struct advice *a, const struct kernel_cost *c)
{
    return (double)mg_sm_limits(a->peak->sm)->shared_bytes - resident_ctas(c) * (double)c->shared_bytes;
}

/* Sectors that the loads bring, of those that their requests touch: fewer where each round touches those of the one
 * before. All bytes of the rows have to be asked for: of a row of few rounds others were not. */
static double sectors_of_rounds(struct advice *a, struct loads *all, const struct load *group, uint32_t n,
                                double touched)
{
    double filled = 0, span = 0;
    for (uint32_t i = 0; i < n; i++) {
        filled += group[i].filled;
        span = MG_MAX(span, (double)span_of_site(a, group->k, group[i].site));
    }
    if (span <= 0 || SECTOR_BYTES * touched <= 1.05 * span || SECTOR_BYTES * filled < MOST_OF * span) return touched;
    const struct kernel_cost *c = &a->costs[group->k->id];
    double step = step_of_load(a, all, group);
    if (step <= 0 || step >= SECTOR_BYTES || !c->warps_resident) return touched;
    double held = bytes_of_rounds(a, all, group, SECTOR_BYTES / step) * warps_held(a, c);
    return held > bytes_of_l1(a, c) ? touched : MG_MAX(touched * step / SECTOR_BYTES, MG_MIN(filled, touched));
}

static void share(struct advice *a, struct site_use *uses, struct loads *list, const struct load *group, uint32_t n)
{
    double all = 0, filled = 0, passes = 0, least = 0; /* least: as few as would do */
    for (uint32_t i = 0; i < n; i++) {
        all += group[i].sectors;
        filled += group[i].filled;
        passes += MG_MAX(group[i].lines, PASS_CYCLES * group[i].sectors);
        least += MG_MAX((double)group->requests, PASS_CYCLES * uses[group[i].ix].ideal);
    }
    double once = n > 1 ? sectors_together(group, n) : all, touched = sectors_of_rounds(a, list, group, n, once);
    if (n < 2 && touched >= once) return;
    double needed = MG_MIN(touched, MG_MAX(filled, (double)group->requests));
    bool by_passes = passes > touched && touched < WASTED * needed;
    for (uint32_t i = 0; all > 0 && i < n; i++) {
        struct site_use *u = &uses[group[i].ix];
        double part = group[i].sectors / all;
        u->sectors = part * touched;
        u->together = touched;
        u->cycles = part * MG_MAX(touched, passes);
        u->ideal = part * MG_MAX(needed, least);
        u->by_passes = by_passes;
        u->by_rounds = touched < once;
    }
}

/* Sectors of which a store fills less than half cost twice as much: each byte comes with its mask, and the rest of the
 * sector has to be there. A matrix written by columns took 3.4 cycles a sector on an H200, a loaded one 1. */
static bool is_store(const char *op)
{
    return op && !strncmp(op, "st.", 3);
}

static bool has_constant_step(const struct mg_jval *site)
{
    const struct mg_jval *patterns = mg_jval_get(site, "patterns");
    return patterns && mg_jval_f64(patterns, "irregular") <= .02 * mg_jval_f64(site, "requests");
}

/* Lanes that stand in order, but for some that are idle: what lies between is for nothing, though no lane steps over
 * it. No more than these lanes would have asked for. */
static void find_between(struct advice *a, const struct mg_pkernel *k, const struct mg_jval *site, struct site_use *use)
{
    const struct mg_jval *patterns = mg_jval_get(site, "patterns");
    double slots = 32 * mg_jval_f64(site, "requests"), idle = slots - mg_jval_f64(site, "accesses"),
           in_order = mg_jval_f64(patterns, "unit"),
           others = mg_jval_f64(patterns, "stride_32") + mg_jval_f64(patterns, "stride_128") +
                    mg_jval_f64(patterns, "stride_more") + mg_jval_f64(patterns, "irregular"),
           each = is_store(mg_jval_text(site, "op")) ? 2 : 1, beyond = use->cycles - use->ideal;
    if (in_order <= 0 || idle <= 0 || beyond <= 0) return;
    use->between = MG_MIN(beyond * in_order / (in_order + others), each * idle * mg_jval_f64(site, "width") / 32);
    const struct mg_jval *lanes = lanes_of(a, k);
    double parted = lanes ? slots * idle_at(lanes, mg_jval_u64(site, "block")) : 0;
    use->by_branches = use->between * MG_MIN(parted / idle, 1.);
}

struct site_use *uses_of_sites(struct advice *a)
{
    const struct mg_jval *sites = mg_jval_first(mg_jval_get(mg_facts_tool(a->facts, "memory"), "sites"));
    uint32_t all = 0, ix = 0;
    for (const struct mg_jval *v = sites; v; v = v->next) all++;
    struct site_use *uses = mg_xcalloc(all + 1, sizeof *uses);
    struct loads loads = {.at = mg_xcalloc(all + 1, sizeof *loads.at)};
    for (const struct mg_jval *v = sites; v; v = v->next, ix++) {
        const struct mg_pkernel *k;
        const char *function = mg_jval_text(v, "function");
        double filled = mg_jval_f64(v, "accesses") * mg_jval_f64(v, "width") / 32,
               requests = mg_jval_f64(v, "requests"), sectors = mg_jval_f64(v, "sectors");
        struct load l = {.site = v,
                         .function = function,
                         .block = mg_jval_u64(v, "block"),
                         .requests = mg_jval_u64(v, "requests"),
                         .ix = ix,
                         .constant_step = has_constant_step(v),
                         .sectors = sectors,
                         .lines = mg_jval_f64(v, "lines"),
                         .filled = filled};
        uses[ix].sectors = sectors + (is_store(mg_jval_text(v, "op")) ? MG_MAX(sectors - 2 * filled, 0.) : 0);
        uses[ix].cycles = uses[ix].together = uses[ix].sectors;
        uses[ix].ideal = MG_MIN(sectors, MG_MAX(filled, requests));
        if (!is_shown(a, v, &k) || !function || !requests || !is_kept_by_l1(mg_jval_text(v, "op"))) continue;
        if (!mg_buffer_base_at(a->buffers, k, function, (uint32_t)mg_jval_u64(v, "ptx_line"), &l.base, &l.offset))
            continue;
        l.k = k;
        loads.at[loads.n++] = l;
    }
    if (loads.n) qsort(loads.at, loads.n, sizeof *loads.at, by_base);
    for (uint32_t from = 0, to; from < loads.n; from = to) {
        for (to = from + 1; to < loads.n && are_together(&loads.at[to - 1], &loads.at[to]); to++) {
        }
        share(a, uses, &loads, &loads.at[from], to - from);
    }
    view_release(&loads.view);
    free(loads.at);
    ix = 0;
    for (const struct mg_jval *v = sites; v; v = v->next, ix++) {
        const struct mg_pkernel *k;
        if (is_shown(a, v, &k)) find_between(a, k, v, &uses[ix]);
    }
    return uses;
}
