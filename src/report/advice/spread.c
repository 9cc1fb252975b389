/* How long launches take by how their CTAs lie over multiprocessors: what findings say of tails and of unequal CTAs,
 * and what diff compares. Cycles from begin to end, of all launches of a kernel together, as its costs are.
 *
 * Equal CTAs: full waves, each as long as its CTAs' work or as one warp waits, and a last one of fewer CTAs, which have
 * the multiprocessors for themselves. Unequal ones: multiprocessors fetch them in order, and the longest waits longest.
 */
#include <math.h>

#include "report/advice/priv.h"

double resident_ctas(const struct kernel_cost *c)
{
    return MG_MAX((double)(c->warps_resident / MG_MAX((c->threads + 31) / 32, 1u)), 1.);
}

void add_waves(struct kernel_cost *c, uint64_t ctas, uint32_t resident, uint32_t sms, double times)
{
    uint64_t wave = (uint64_t)sms * MG_MAX(resident, 1u), full = ctas / wave, rest = ctas % wave;
    double waves = (double)ctas / (double)wave;
    c->waves += waves * times;
    c->turns += MG_MAX(waves, 1.) * times;
    if (!full) {
        c->short_ctas += ceil((double)rest / sms) * times;
        return;
    }
    c->long_launches += times;
    c->long_waves += waves * times;
    c->full_waves += (double)full * times;
    c->last_waves += rest ? times : 0;
    c->last_ctas += ceil((double)rest / sms) * times;
}

struct spread spread_of_ctas(const struct mg_jval *row)
{
    double even = mg_jval_f64(row, "even_share"), equal = mg_jval_f64(row, "grid_share");
    if (even <= 0 || equal <= 0) return (struct spread){0};
    return (struct spread){true, MG_MAX(equal / even, 1.), MG_MAX(mg_jval_f64(row, "imbalance"), 1.), 1};
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
    return c->full_waves * MG_MAX(resident_ctas(c) * work, wait) + MG_MAX(c->last_ctas * work, c->last_waves * wait);
}

static double cycles_of_short(const struct kernel_cost *c, bool overlap)
{
    double launches = (double)c->launches - c->long_launches;
    return MG_MAX(c->short_ctas * work_of_cta(c, overlap), launches * alone(c, c->chain));
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
    double ctas = c->full_waves * resident_ctas(c) + c->last_ctas + c->short_ctas, /* of the busiest multiprocessor */
        equal = cycles_of_long(c, overlap) + cycles_of_short(c, overlap),
           more = (x.longest * x.warps - 1) * alone(c, whole ? c->chain : chain_of_insts),
           waits = c->turns * alone(c, c->chain) + (double)c->launches * more;
    return MG_MAX(MG_MAX(equal, cycles_of_any(c)), MG_MAX(ctas * work_of_cta(&longest, overlap), waits));
}

double part_of_unequal(const struct kernel_cost *c, struct spread x)
{
    const struct spread equal = {true, 1, 1, 1};
    double part = 0;
    for (int overlap = 0; overlap < 2; overlap++) {
        double now = cycles_of_spread(c, x, c->chain, true, overlap);
        part += now > 0 ? .5 * (1 - cycles_of_spread(c, equal, c->chain, true, overlap) / now) : 0;
    }
    return part;
}

double part_of_tail(const struct kernel_cost *c)
{
    double part = 0, any = cycles_of_any(c) * c->long_waves / c->waves;
    for (int overlap = 0; overlap < 2; overlap++) {
        double wave = MG_MAX(resident_ctas(c) * work_of_cta(c, overlap), alone(c, c->chain)),
               now = MG_MAX(cycles_of_long(c, overlap), any), even = MG_MAX(c->long_waves * wave, any);
        part += now > 0 ? .5 * MG_MAX(1 - even / now, 0.) : 0;
    }
    return part;
}
