/* How long launches take by how their CTAs lie over multiprocessors: what findings say of tails and of unequal CTAs,
 * and what diff compares. Cycles from begin to end, of all launches of a kernel together, as its costs are.
 *
 * Equal CTAs: full waves, each as long as its CTAs' work or as one warp waits, and a last one of fewer CTAs, which have
 * the multiprocessors for themselves. Unequal ones: multiprocessors fetch them in order (tool ctas), and the longest
 * waits longest.
 */
#include <math.h>

#include "report/advice/priv.h"

double resident_ctas(const struct kernel_cost *c)
{
    return MG_MAX((double)(c->warps_resident / MG_MAX((c->threads + 31) / 32, 1u)), 1.);
}

static void add_to(struct waves *v, uint64_t ctas, uint32_t wave, uint32_t sms, double times)
{
    uint64_t full = ctas / wave, rest = ctas % wave;
    double waves = (double)ctas / wave;
    v->launches += times;
    v->all += waves * times;
    v->turns += MG_MAX(waves, 1.) * times;
    if (!full) {
        v->short_ctas += ceil((double)rest / sms) * times;
        return;
    }
    v->long_launches += times;
    v->long_all += waves * times;
    v->full += (double)full * times;
    v->last += rest ? times : 0;
    v->last_ctas += ceil((double)rest / sms) * times;
}

void add_waves(struct kernel_cost *c, uint64_t ctas, uint32_t wave, uint32_t sms, double times, struct weight w)
{
    uint64_t rest = ctas % wave;
    double lost = rest && ctas > wave ? w.work * (double)(wave - rest) : 0;
    add_to(&c->waves, ctas, wave, sms, times);
    add_to(&c->by_work, ctas, wave, sms, times * w.work);
    add_to(&c->by_wait, ctas, wave, sms, times * w.wait);
    c->tail.all += lost > 0 ? times : 0;
    if (lost <= c->tail.lost) return;
    c->tail.lost = lost;
    c->tail.ctas = ctas;
    c->tail.wave = wave;
}

struct spread spread_of_ctas(const struct mg_jval *row)
{
    double even = mg_jval_f64(row, "even_share"), equal = mg_jval_f64(row, "grid_share");
    if (even <= 0 || equal <= 0) return (struct spread){0};
    return (struct spread){true, equal / even, mg_jval_f64(row, "shortest_share"),
                           MG_MAX(mg_jval_f64(row, "longest_share"), 1.), 1};
}

/* What one CTA works, and one warp waits, where it is alone; as much less as launches have counts. */
static double work_of_cta(const struct kernel_cost *c, bool overlap)
{
    return c->all_ctas > 0 ? c->counted * busy_cycles(c, overlap) / c->all_ctas : 0;
}

static double alone(const struct kernel_cost *c, double chain)
{
    return c->warps > 0 ? chain / c->warps : 0;
}

static double cycles_of_long(const struct kernel_cost *c, bool overlap)
{
    double work = work_of_cta(c, overlap), wait = alone(c, c->chain);
    return MG_MAX(c->by_work.full * resident_ctas(c) * work, c->by_wait.full * wait) +
           MG_MAX(c->by_work.last_ctas * work, c->by_wait.last * wait);
}

static double cycles_of_short(const struct kernel_cost *c, bool overlap)
{
    double launches = c->by_wait.launches - c->by_wait.long_launches;
    return MG_MAX(c->by_work.short_ctas * work_of_cta(c, overlap), launches * alone(c, c->chain));
}

/* Neither depends on where CTAs run. */
static double cycles_of_any(const struct kernel_cost *c)
{
    return MG_MAX(c->launching, c->from_memory) / MG_MAX(busy_sms(c), 1.);
}

double cycles_of_spread(const struct kernel_cost *c, struct spread x, double chain_of_insts, bool whole, bool overlap)
{
    struct kernel_cost longest = *c;
    if (!x.known) return cycles_at(c, overlap);
    for (int i = 0; i < PART_COUNT; i++) longest.parts[i] *= whole || i == PART_ISSUE ? x.length : 1;
    const struct waves *work = &c->by_work, *wait = &c->by_wait;
    double ctas = work->full * resident_ctas(c) + work->last_ctas + work->short_ctas, /* of the busiest */
        turns = wait->turns * alone(c, c->chain),
           more = (x.longest * x.warps - 1) * alone(c, whole ? c->chain : chain_of_insts),
           now = MG_MAX(ctas * work_of_cta(&longest, overlap), turns + wait->launches * more);
    double equal = MG_MAX(ctas * work_of_cta(c, overlap), turns), /* as if there were no last waves; so much more: */
        last = cycles_of_long(c, overlap) + cycles_of_short(c, overlap) - equal;
    return MG_MAX(MG_MAX(now, MG_MIN(now, equal) + x.shortest * last), cycles_of_any(c));
}

static void fill_waves(struct waves *v)
{
    v->full = v->long_all;
    v->last = v->last_ctas = 0;
}

double part_of_unequal(const struct kernel_cost *c, struct spread x, bool full)
{
    const struct spread equal = {true, 1, 1, 1, 1};
    struct kernel_cost mended = *c;
    double part = 0;
    if (full) fill_waves(&mended.by_work), fill_waves(&mended.by_wait);
    for (int overlap = 0; overlap < 2; overlap++) {
        double now = cycles_of_spread(c, x, c->chain, true, overlap);
        part += now > 0 ? .5 * (1 - cycles_of_spread(&mended, equal, c->chain, true, overlap) / now) : 0;
    }
    return part;
}

bool has_one_grid(const struct kernel_cost *c)
{
    double mean = c->waves.all / c->waves.launches * c->tail.wave;
    return c->tail.all >= c->waves.launches && fabs(mean - (double)c->tail.ctas) < .5;
}

double idle_in_tail(const struct kernel_cost *c)
{
    double taken = c->unweighed && !has_one_grid(c) ? 0 : c->by_work.full + c->by_work.last;
    return taken > 0 ? 1 - c->by_work.long_all / taken : 0;
}

double part_of_long(const struct kernel_cost *c)
{
    double part = 0;
    for (int overlap = 0; overlap < 2; overlap++) {
        double of_long = cycles_of_long(c, overlap), all = of_long + cycles_of_short(c, overlap);
        part += all > 0 ? .5 * of_long / all : 0;
    }
    return part;
}

double part_of_tail(const struct kernel_cost *c)
{
    struct kernel_cost mended = *c;
    double part = 0, any = cycles_of_any(c) * c->by_work.long_all / c->by_work.all;
    fill_waves(&mended.by_work), fill_waves(&mended.by_wait);
    for (int overlap = 0; overlap < 2; overlap++) {
        double now = MG_MAX(cycles_of_long(c, overlap), any), even = MG_MAX(cycles_of_long(&mended, overlap), any);
        part += now > 0 ? .5 * MG_MAX(1 - even / now, 0.) : 0;
    }
    return part;
}
