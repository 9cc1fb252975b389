/* Totals from a sample, see estimate.h. */
#include "base/estimate.h"

#include <math.h>
#include <stddef.h>

#include "base/compiler.h"

const double mg_student_t95[30] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                   2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                   2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

static double quantile(double freedom)
{
    if (freedom > (double)MG_COUNT_OF(mg_student_t95)) return 1.96 + 2.46 / freedom;
    return mg_student_t95[freedom < 1 ? 0 : (size_t)freedom - 1];
}

struct stratum {
    double times, counted, members, mean, square;
}; /* square: sum of squared distances from the mean */

/* Counted members from..to, their distances from `ratio` times their size, or (ratio < 0) from their mean. */
static struct stratum stratum_of(const struct mg_member *m, uint64_t from, uint64_t to, double ratio)
{
    struct stratum s = {0};
    for (uint64_t i = from; i < to; i++) {
        s.times += m[i].times;
        if (!m[i].counted) continue;
        s.counted += m[i].times;
        s.members++;
        s.mean += m[i].times * m[i].count;
    }
    s.mean = s.counted > 0 ? s.mean / s.counted : 0;
    for (uint64_t i = from; i < to; i++) {
        double off = m[i].counted ? m[i].count - (ratio < 0 ? s.mean : ratio * m[i].size) : 0;
        s.square += m[i].times * off * off;
    }
    return s;
}

/* Variance of the stratum's total; *freedom becomes the least seen. */
static double variance(const struct stratum *s, double *freedom)
{
    if (s->counted >= s->times) return 0;
    *freedom = MG_MIN(*freedom, s->members - 1);
    if (s->members < 2) return 0;
    double one = s->square / s->counted * s->members / (s->members - 1);
    return s->times * s->times * (1 - s->counted / s->times) * one / s->members;
}

static uint64_t stratum_end(const struct mg_member *m, uint64_t n, uint64_t from)
{
    uint64_t to = from;
    while (to < n && m[to].stratum == m[from].stratum) to++;
    return to;
}

static struct mg_estimate finish(double value, double square, double freedom)
{
    return (struct mg_estimate){value, freedom < 1 ? -1 : quantile(freedom) * sqrt(square)};
}

static struct mg_estimate by_strata(const struct mg_member *m, uint64_t n)
{
    double value = 0, square = 0, freedom = INFINITY;
    for (uint64_t i = 0, to; i < n; i = to) {
        to = stratum_end(m, n, i);
        struct stratum s = stratum_of(m, i, to, -1);
        value += s.times * s.mean;
        square += variance(&s, &freedom);
    }
    return finish(value, square, freedom);
}

static struct mg_estimate by_size(const struct mg_member *m, uint64_t n)
{
    double size[2] = {0, 0}, sum = 0, freedom = INFINITY;
    for (uint64_t i = 0; i < n; i++) {
        size[m[i].counted] += m[i].times * m[i].size;
        sum += m[i].counted ? m[i].times * m[i].count : 0;
    }
    double ratio = size[1] > 0 ? sum / size[1] : 0;
    struct stratum s = stratum_of(m, 0, n, ratio);
    double square = variance(&s, &freedom);
    return finish(ratio * (size[0] + size[1]), square, freedom);
}

enum mg_sample_method mg_estimate_method(const struct mg_member *m, uint64_t n)
{
    for (uint64_t i = 0, to; i < n; i = to) {
        uint64_t counted = 0;
        to = stratum_end(m, n, i);
        for (uint64_t j = i; j < to; j++) counted += m[j].counted;
        if (counted < 2 && counted < to - i) return MG_SAMPLE_THREADS;
    }
    return MG_SAMPLE_GEOMETRY;
}

struct mg_estimate mg_estimate_total(const struct mg_member *m, uint64_t n, enum mg_sample_method method)
{
    return method == MG_SAMPLE_GEOMETRY ? by_strata(m, n) : by_size(m, n);
}
