/* How many sectors loads at one address register touch together. Where lanes step by a constant, the step and the place
 * of the first lane in its line are those that give the sectors and lines which were counted of each load: then the
 * union follows. Members may lie across two sectors in some lanes, in all, or in none. Else it is bounded: no less than
 * the load that touches most, for each sector that the offsets touch in one lane, no more than the sum. */
#include <math.h>
#include <stdlib.h>

#include "report/advice/priv.h"

#define LARGEST_ERROR .02 /* a last warp has fewer lanes */
enum {
    SECTOR = 32,
    LINE = 128,
    LANES = 32,
    WARPS = 4, /* a step of whole bytes is at the same place in a line again after so many */
};

struct layout {
    int64_t step, begin; /* of lanes; of the first lane's register in its line */
};

static int64_t floor_of(int64_t v, int64_t unit)
{
    return (v >= 0 ? v : v - unit + 1) / unit;
}

/* Pieces of that size that one load of that layout touches, in WARPS warps. */
static uint32_t count_pieces(const struct member *m, struct layout at, int64_t piece)
{
    uint32_t n = 0;
    for (int w = 0; w < WARPS; w++) {
        int64_t last = INT64_MIN;
        for (int i = 0; i < LANES; i++) {
            int64_t here = floor_of(at.begin + (w * LANES + i) * at.step + m->offset, piece);
            n += here != last;
            last = here;
        }
    }
    return n;
}

static double error_of(double counted, uint32_t n)
{
    return fabs(WARPS * counted - n) / n;
}

/* By how much what was counted of a load differs from the layout, at most. */
static double error_of_layout(const struct member *m, uint32_t n, struct layout at)
{
    double most = 0;
    for (uint32_t i = 0; i < n && most <= LARGEST_ERROR; i++) {
        if ((at.begin + m[i].offset) % m[i].width || at.step % m[i].width) return 1;
        most = MG_MAX(most, error_of(m[i].sectors, count_pieces(&m[i], at, SECTOR)));
        most = MG_MAX(most, error_of(m[i].lines, count_pieces(&m[i], at, LINE)));
    }
    return most;
}

/* Steps that the lines of a load allow: first and last, of whole units. Beyond a line no count tells the step: a whole
 * number of lines touches fewest sectors. */
static void bound_steps(const struct member *m, uint32_t n, int64_t unit, int64_t steps[2])
{
    int64_t first = m->offset, behind = m->offset, most = (int64_t)(m->lines * LINE / LANES) / unit * unit + unit;
    for (uint32_t i = 0; i < n; i++) {
        first = MG_MIN(first, m[i].offset);
        behind = MG_MAX(behind, m[i].offset + m[i].width);
    }
    steps[0] = MG_MAX(most - LINE / LANES - 2 * unit, 0);
    steps[1] = MG_MIN(most, LINE);
    if (m->far) steps[0] = steps[1] = (floor_of(behind - first, LINE) + 2) * LINE;
}

/* The one that agrees best with what was counted; of several the first: buffers begin at a line, so that a register
 * mostly does. */
static bool find_layout(const struct member *m, uint32_t n, struct layout *found)
{
    int64_t unit = m->width, steps[2];
    double least = LARGEST_ERROR;
    for (uint32_t i = 0; i < n; i++) unit = MG_MIN(unit, (int64_t)m[i].width);
    bound_steps(m, n, unit, steps);
    for (int64_t begin = 0; begin < LINE && least > 0; begin += unit)
        for (int64_t step = steps[0] / unit * unit; step <= steps[1] && least > 0; step += unit) {
            double error = error_of_layout(m, n, (struct layout){step, begin});
            if (error >= least) continue;
            least = error;
            *found = (struct layout){step, begin};
        }
    return least < LARGEST_ERROR;
}

static int by_value(const void *x, const void *y)
{
    const int64_t *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

static uint32_t count_unlike(int64_t *at, uint32_t n)
{
    uint32_t unlike = 0;
    if (n) qsort(at, n, sizeof *at, by_value);
    for (uint32_t i = 0; i < n; i++) unlike += !i || at[i] != at[i - 1];
    return unlike;
}

/* Of all loads together, in so many lanes of one warp. */
static uint32_t count_together(const struct member *m, uint32_t n, struct layout at, int warp, int lanes)
{
    int64_t *sectors = mg_xcalloc((size_t)n * (size_t)lanes + 1, sizeof *sectors);
    uint32_t all = 0;
    for (uint32_t i = 0; i < n; i++)
        for (int l = 0; l < lanes; l++)
            sectors[all++] = floor_of(at.begin + (warp * LANES + l) * at.step + m[i].offset, SECTOR);
    all = count_unlike(sectors, all);
    free(sectors);
    return all;
}

double sectors_of_members(const struct member *m, uint32_t n, bool constant_step)
{
    struct layout at = {0, 0};
    double all = 0, most = 0, touched = 0;
    for (uint32_t i = 0; i < n; i++) {
        all += m[i].sectors;
        most = MG_MAX(most, m[i].sectors);
    }
    if (constant_step && find_layout(m, n, &at))
        for (int w = 0; w < WARPS; w++) touched += count_together(m, n, at, w, LANES) / (double)WARPS;
    else
        touched = most * count_together(m, n, (struct layout){0, 0}, 0, 1);
    return MG_MIN(all, MG_MAX(most, touched));
}
