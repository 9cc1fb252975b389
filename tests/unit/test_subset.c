/* Selection of subsets: planted phases, permutations, equation (1) by hand, intervals against a known truth. */
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "study/subset_report.h"
#include "test.h"

enum { N_PHASES = 6, N_KEYS = 40 };

/* Intervals of planted phases: each phase has its own keys' values; jitter: of every value, relative. */
struct planted {
    struct mg_vectors v;
    uint32_t *phase;
};

static void plant(struct planted *p, uint32_t n, double jitter, uint64_t seed)
{
    static const double share[N_PHASES] = {.4, .3, .15, .1, .04, .01};
    uint64_t state = seed;
    *p = (struct planted){.v.n = n};
    p->phase = mg_arena_array(&p->v.arena, uint32_t, n);
    p->v.intervals = mg_arena_array(&p->v.arena, struct mg_interval, n);
    p->v.vectors = mg_arena_array(&p->v.arena, struct mg_vector, n);
    p->v.members = mg_arena_array(&p->v.arena, uint64_t, n);
    for (uint32_t i = 0; i < n; i++) {
        double u = mg_draw_unit(&state);
        uint32_t phase = i < N_PHASES ? i : 0;
        for (uint32_t k = 0; i >= N_PHASES && k + 1 < N_PHASES && u >= share[k]; k++) u -= share[k], phase = k + 1;
        struct mg_vector *x = &p->v.vectors[i];
        x->keys = mg_arena_array(&p->v.arena, uint64_t, N_KEYS);
        x->values = mg_arena_array(&p->v.arena, double, N_KEYS);
        for (uint32_t k = 0; k < N_KEYS; k++) {
            uint64_t one = phase * 1000 + k;
            double value = 1000 * mg_draw_unit(&one);
            if (mg_draw_unit(&one) < .3) continue;
            x->keys[x->n] = k + 1;
            x->values[x->n] = value * (1 + jitter * (2 * mg_draw_unit(&state) - 1));
            x->sum += x->values[x->n++];
        }
        p->phase[i] = phase;
        p->v.members[i] = i;
        p->v.intervals[i] = (struct mg_interval){.first = i,
                                                 .last = i,
                                                 .member = i,
                                                 .n_launches = 1,
                                                 .insts = x->sum,
                                                 .kernel_key = phase % 2,
                                                 .ctas = 1,
                                                 .time_ns = NAN};
        p->v.insts += x->sum;
        p->v.n_launches++;
    }
    p->v.time_ns = NAN;
}

static void check_planted(double jitter, uint64_t seed)
{
    struct planted p;
    struct mg_subset s;
    struct mg_subset_opts o = {.size = sizeof o, .seed = seed};
    double insts[N_PHASES] = {0};
    bool seen[N_PHASES] = {0};
    plant(&p, 500, jitter, seed);
    for (uint32_t i = 0; i < p.v.n; i++) insts[p.phase[i]] += p.v.intervals[i].insts;
    MG_CHECK_EQ(mg_subset_init(&s, &p.v, &o, NULL), MG_ERR_OK);
    MG_CHECK_EQ(s.clusters, N_PHASES);
    for (uint32_t i = 0; i < s.n_picks; i++) {
        uint32_t phase = p.phase[s.picks[i].interval];
        MG_CHECK(!seen[phase]);
        seen[phase] = true;
        MG_CHECK(fabs(mg_pick_weight(&s, &s.picks[i]) - insts[phase] / p.v.insts) < 1e-12);
    }
    for (uint32_t i = 0; i < p.v.n; i++)
        for (uint32_t j = 0; j < i; j++)
            if ((p.phase[i] == p.phase[j]) != (s.label[i] == s.label[j])) {
                mg_test_fail(__FILE__, __LINE__, "intervals %u and %u of phases %u and %u", i, j, p.phase[i],
                             p.phase[j]);
                i = j = p.v.n;
            }
    mg_subset_release(&s);
    mg_vectors_release(&p.v);
}

MG_TEST(subset_planted_phases)
{
    for (uint64_t seed = 1; seed <= 5; seed++) check_planted(0, seed);
    for (uint64_t seed = 1; seed <= 5; seed++) check_planted(.01, seed);
}

/* Which launches, by what they are: their place in the order before they were shuffled. */
static void select_shuffled(const struct planted *p, const char *method, uint64_t seed, bool *picked)
{
    struct mg_vectors v = p->v;
    uint32_t *order = mg_xcalloc(v.n, sizeof *order);
    uint64_t state = seed;
    struct mg_subset s;
    struct mg_subset_opts o = {.size = sizeof o, .seed = 3, .method = method, .n = 40};
    v.arena = (struct mg_arena)MG_ARENA_INIT;
    v.intervals = mg_arena_array(&v.arena, struct mg_interval, v.n);
    v.vectors = mg_arena_array(&v.arena, struct mg_vector, v.n);
    for (uint32_t i = 0; i < v.n; i++) order[i] = i;
    for (uint32_t i = v.n; seed && i > 1; i--) {
        uint32_t at = (uint32_t)mg_draw_below(&state, i), x = order[at];
        order[at] = order[i - 1];
        order[i - 1] = x;
    }
    for (uint32_t i = 0; i < v.n; i++) {
        v.intervals[i] = p->v.intervals[order[i]];
        v.vectors[i] = p->v.vectors[order[i]];
    }
    MG_CHECK_EQ(mg_subset_init(&s, &v, &o, NULL), MG_ERR_OK);
    for (uint32_t i = 0; i < s.n_picks; i++) picked[order[s.picks[i].interval]] = true;
    mg_subset_release(&s);
    mg_arena_release(&v.arena);
    free(order);
}

MG_TEST(subset_is_the_same_for_any_order_of_launches)
{
    static const char *const methods[] = {"simpoint", "random"};
    struct planted p;
    plant(&p, 300, .01, 9);
    for (size_t m = 0; m < MG_COUNT_OF(methods); m++) {
        bool straight[300] = {0}, shuffled[300];
        select_shuffled(&p, methods[m], 0, straight);
        for (uint64_t seed = 1; seed <= 4; seed++) {
            memset(shuffled, 0, sizeof shuffled);
            select_shuffled(&p, methods[m], seed, shuffled);
            MG_CHECK(!memcmp(straight, shuffled, sizeof straight));
        }
    }
    mg_vectors_release(&p.v);
}

/* Four launches of 10, 10, 20, 20 instructions and 1, 2, 6, 6 ns. Measured: 15 / 60 = 0.25 ns an instruction.
 * Launches 0 and 2 stand for their equals: 1/3 * 1/10 + 2/3 * 6/20 = 0.2333; the error is 6.667 %. */
MG_TEST(subset_equation_by_hand)
{
    static const double insts[] = {10, 10, 20, 20}, times[] = {1, 2, 6, 6};
    struct mg_interval intervals[4];
    struct mg_subset_launch launches[4] = {0};
    uint64_t members[] = {0, 1, 2, 3};
    struct mg_pick picks[] = {{0, 2}, {2, 2}};
    for (uint64_t i = 0; i < 4; i++) {
        intervals[i] = (struct mg_interval){
            .first = i, .last = i, .member = i, .n_launches = 1, .insts = insts[i], .time_ns = times[i]};
        launches[i] = (struct mg_subset_launch){.insts = insts[i], .time_ns = times[i]};
    }
    struct mg_vectors v = {
        .intervals = intervals, .n = 4, .members = members, .insts = 60, .time_ns = 15, .n_launches = 4};
    struct mg_subset s = {.v = &v, .picks = picks, .n_picks = 2};
    struct mg_subset_program run = {.launches = launches, .n_launches = 4, .n_counted = 4, .n_timed = 4};
    struct mg_judged j = mg_subset_judge(&s, &run);
    MG_CHECK(fabs(j.error_pct - 100. / 15) < 1e-12);
    MG_CHECK(fabs(j.projected_ns - 14) < 1e-12);
    MG_CHECK(isnan(j.low_pct));
    struct mg_speedup x = mg_subset_speedup(&s);
    MG_CHECK(x.instructions == 2 && x.launches == 2 && fabs(x.time - 15. / 7) < 1e-12);
    launches[3].time_ns = NAN; /* one launch was not timed: there is no error to state */
    MG_CHECK(isnan(mg_subset_judge(&s, &run).error_pct));
}

/* ---- the estimator ------------------------------------------------------------------------------------------- */

static double draw_normal(uint64_t *state)
{
    double r = sqrt(-2 * log(1 - mg_draw_unit(state)));
    return r * cos(2 * M_PI * mg_draw_unit(state));
}

enum { STRATA = 6, EACH = 200, MEMBERS = STRATA * EACH };
struct population {
    uint32_t stratum[MEMBERS];
    double size[MEMBERS], value[MEMBERS], total;
};

/* Values follow sizes with a part that does not depend on them, and scatter: noise times a log-normal. */
static void populate(struct population *p, double noise, double fixed, uint64_t seed)
{
    uint64_t state = seed;
    *p = (struct population){0};
    for (uint32_t i = 0; i < MEMBERS; i++) {
        uint32_t h = p->stratum[i] = i / EACH;
        p->size[i] = h % 2 ? 1000 * (h + 1) : 1000 * (h + 1) * (1 + mg_draw_unit(&state));
        p->value[i] = (fixed * 1000 + p->size[i]) * (.5 + h) * exp(noise * draw_normal(&state) - noise * noise / 2);
        p->total += p->value[i];
    }
}

/* How often of 100 the interval holds the truth. */
static double coverage(double noise, double fixed, uint32_t samples, enum mg_estimator e, double *bias_pct)
{
    enum { TRIALS = 400 };
    static struct population p;
    bool sampled[MEMBERS];
    uint32_t holds = 0;
    double sum = 0;
    populate(&p, noise, fixed, 17);
    for (uint64_t t = 0; t < TRIALS; t++) {
        uint64_t state = 1000 + t * 77777;
        memset(sampled, 0, sizeof sampled);
        for (uint32_t h = 0; h < STRATA; h++)
            for (uint32_t k = 0; k < samples;) {
                uint32_t at = h * EACH + (uint32_t)mg_draw_below(&state, EACH);
                if (!sampled[at]) sampled[at] = true, k++;
            }
        struct mg_stratified s = {MEMBERS, STRATA, p.stratum, p.size, sampled, e};
        struct mg_total x = mg_stratified_total(&s, p.value, t);
        holds += x.low <= p.total && p.total <= x.high;
        sum += x.value;
    }
    *bias_pct = 100 * fabs(sum / TRIALS / p.total - 1);
    return 100. * holds / TRIALS;
}

MG_TEST(subset_intervals_hold_the_truth)
{
    static const struct {
        double noise, fixed;
        uint32_t samples;
        enum mg_estimator e;
    } cases[] = {{.1, 0, 2, MG_ESTIMATE_SIZE}, {.1, 0, 8, MG_ESTIMATE_SIZE},  {.1, 2, 8, MG_ESTIMATE_SIZE},
                 {.4, 0, 4, MG_ESTIMATE_SIZE}, {.4, 1, 20, MG_ESTIMATE_SIZE}, {.02, 0, 3, MG_ESTIMATE_SIZE},
                 {.2, 0, 5, MG_ESTIMATE_MEAN}, {.2, 3, 30, MG_ESTIMATE_MEAN}};
    for (size_t i = 0; i < MG_COUNT_OF(cases); i++) {
        double bias, held = coverage(cases[i].noise, cases[i].fixed, cases[i].samples, cases[i].e, &bias);
        if (held < 93 || bias > 1)
            mg_test_fail(__FILE__, __LINE__, "case %zu: holds in %.1f %%, bias %.2f %%", i, held, bias);
    }
}

MG_TEST(subset_draws_what_was_asked_for)
{
    enum { N = 103 };
    uint32_t stratum[N], size[] = {7, 1, 20};
    bool sampled[N];
    for (uint32_t i = 0; i < N; i++) stratum[i] = i < 80 ? i % 2 : 2; /* 40, 40 and 23 members */
    for (int spread = 0; spread < 2; spread++)
        for (uint64_t seed = 0; seed < 50; seed++) {
            struct mg_design g = {stratum, size, NULL, N, 3, spread};
            uint32_t n[3] = {0}, piece[7] = {0}, at = 0;
            mg_design_draw(&g, seed, sampled);
            for (uint32_t i = 0; i < N; i++) {
                n[stratum[i]] += sampled[i];
                if (stratum[i] == 0 && sampled[i]) piece[at * 7 / 40]++;
                at += stratum[i] == 0;
            }
            MG_CHECK(n[0] == 7 && n[1] == 1 && n[2] == 20);
            for (int k = 0; spread && k < 7; k++) MG_CHECK_EQ(piece[k], 1);
        }
}

/* One member in 50 is ten times as large: samples of 20 mostly miss them, and then their own interval is too narrow.
 * That of the design is right by the run that it was made from. */
MG_TEST(subset_intervals_know_of_rare_members)
{
    enum { N = 1000, TRIALS = 400 };
    static uint32_t stratum[N], size[] = {20};
    static double sizes[N], values[N], others[N];
    bool sampled[N];
    double truth = 0, alone = 0, held = 0;
    uint64_t state = 4;
    for (uint32_t i = 0; i < N; i++) {
        sizes[i] = 1;
        values[i] = (1 + .05 * draw_normal(&state)) * (i % 50 == 3 ? 10 : 1);
        truth += others[i] =
            (1 + .05 * draw_normal(&state)) * (i % 50 == 31 ? 10 : 1); /* in another run others are slow */
    }
    struct mg_design g = {stratum, size, NULL, N, 1, false};
    struct mg_errors e =
        mg_design_errors(&g, sizes, &(struct mg_recorded){values, 1, 1, 1, 1, false}, MG_ESTIMATE_SIZE, 1);
    for (uint64_t t = 0; t < TRIALS; t++) {
        mg_design_draw(&g, 1000 + t, sampled);
        struct mg_stratified s = {N, 1, stratum, sizes, sampled, MG_ESTIMATE_SIZE};
        struct mg_total x = mg_stratified_total(&s, others, t);
        alone += x.low <= truth && truth <= x.high;
        held += fmin(x.low, x.value * (1 + e.low)) <= truth && truth <= fmax(x.high, x.value * (1 + e.high));
    }
    if (100 * alone / TRIALS > 80)
        mg_test_fail(__FILE__, __LINE__, "the sample's own interval holds in %.1f %%", 100 * alone / TRIALS);
    if (100 * held / TRIALS < 93) mg_test_fail(__FILE__, __LINE__, "holds in %.1f %%", 100 * held / TRIALS);
}

/* Bursts of slow launches, three a run on average: a run's own total hangs on how many it met. */
static double burst_run(double *values, uint32_t n, uint64_t *state)
{
    double total = 0;
    for (uint32_t i = 0; i < n; i++) values[i] = 1 + .02 * draw_normal(state);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t r = mg_mix64(++*state);
        if (r % n < 3)
            for (uint32_t k = i; k < i + 5 && k < n; k++) values[k] = 40;
    }
    for (uint32_t i = 0; i < n; i++) total += values[i];
    return total;
}

/* Of three recorded runs what a fourth may be is told; by the sample alone it is not. */
MG_TEST(subset_intervals_hold_in_runs_that_were_not_recorded)
{
    enum { N = 600, TRIALS = 100, RUNS = 3 };
    static uint32_t stratum[N], size[] = {20};
    static double sizes[N], run[N], recorded[N * RUNS];
    bool sampled[N];
    double alone = 0, held = 0;
    uint64_t state = 11;
    for (uint32_t i = 0; i < N; i++) sizes[i] = 1;
    struct mg_design g = {stratum, size, NULL, N, 1, true};
    for (uint64_t t = 0; t < TRIALS; t++) {
        for (uint32_t r = 0; r < RUNS; r++) {
            burst_run(run, N, &state);
            for (uint32_t i = 0; i < N; i++) recorded[i * RUNS + r] = run[i];
        }
        double truth = burst_run(run, N, &state);
        struct mg_errors e =
            mg_design_errors(&g, sizes, &(struct mg_recorded){recorded, RUNS, RUNS, 1, 1, false}, MG_ESTIMATE_SIZE, t);
        mg_design_draw(&g, 1000 + t, sampled);
        struct mg_stratified s = {N, 1, stratum, sizes, sampled, MG_ESTIMATE_SIZE};
        struct mg_total x = mg_stratified_total(&s, run, t);
        alone += x.low <= truth && truth <= x.high;
        held += fmin(x.low, x.value * (1 + e.low)) <= truth && truth <= fmax(x.high, x.value * (1 + e.high));
    }
    if (100 * alone / TRIALS > 60)
        mg_test_fail(__FILE__, __LINE__, "the sample's own interval holds in %.1f %%", 100 * alone / TRIALS);
    if (100 * held / TRIALS < 93) mg_test_fail(__FILE__, __LINE__, "holds in %.1f %%", 100 * held / TRIALS);
}

MG_TEST(subset_scatter_against_recorded_runs)
{
    enum { N = 40 };
    static uint32_t stratum[N];
    static double sizes[N], recorded[2 * N], run[N];
    bool sampled[N];
    for (uint32_t i = 0; i < N; i++) {
        sizes[i] = 1;
        sampled[i] = i % 2;
        recorded[2 * i] = i / 2 % 2 ? 99 : 101; /* 1 % around 100 */
        recorded[2 * i + 1] = i / 2 % 2 ? 98 : 102;
        run[i] = i / 2 % 2 ? 94 : 106;
    }
    struct mg_stratified s = {N, 1, stratum, sizes, sampled, MG_ESTIMATE_SIZE};
    MG_CHECK(fabs(mg_stratified_scatter(&s, run) - (6. / 94 + 6. / 106) / 2) < 1e-12);
    struct mg_recorded runs = {recorded, 2, 2, 1, 1, false};
    MG_CHECK(fabs(mg_scatter_ratio(&s, run, &runs) - 3) < .02); /* against the noisier one */
    runs.joined = 2;                                            /* medians of both */
    MG_CHECK(fabs(mg_scatter_ratio(&s, run, &runs) - 4) < .02);
}

MG_TEST(subset_totals_by_hand)
{
    static const uint32_t stratum[] = {0, 0, 0, 1, 1};
    static const double size[] = {10, 20, 30, 7, 7}, value[] = {5, 11, 14, 3, 0};
    bool sampled[] = {true, true, false, true, false}, all[] = {true, true, true, true, true};
    double times[5];
    struct mg_stratified s = {5, 2, stratum, size, sampled, MG_ESTIMATE_SIZE};
    mg_stratified_times(&s, times); /* ratio 60 / 30 = 2; mean 2 / 1 */
    MG_CHECK(times[0] == 2 && times[1] == 2 && times[2] == 0 && times[3] == 2 && times[4] == 0);
    MG_CHECK(mg_stratified_total(&s, value, 1).value == 2 * 16 + 2 * 3);
    s.sampled = all;
    struct mg_total x = mg_stratified_total(&s, value, 1); /* nothing is left to estimate */
    MG_CHECK(x.value == 33 && x.low == 33 && x.high == 33);
}

MG_TEST(subset_sample_sizes)
{
    double n[] = {1000, 1000}, mean[] = {10, 10}, sigma[] = {2, 4}, t[] = {1, 4, 60, 1e12},
           want[] = {12.706, 2.776, 2.000, 1.960};
    uint32_t least[] = {1, 1}, out[2];
    mg_neyman_sizes(1, n, mean, sigma, .05, least, out);
    MG_CHECK_EQ(out[0], ceil(1.96 * 1.96 * 4 / (.25 * 1))); /* (z sigma / (epsilon mean))^2 */
    mg_neyman_sizes(2, n, mean, sigma, .02, least, out);    /* of equal cost: in proportion to N sigma */
    MG_CHECK(fabs((double)out[1] / out[0] - 2) < .05);
    mg_neyman_sizes(2, n, mean, sigma, 1e-9, least, out);
    MG_CHECK(out[0] == 1000 && out[1] == 1000);
    for (int i = 0; i < 4; i++) MG_CHECK(fabs(mg_student_t(t[i]) - want[i]) < 1.5e-3);
}

MG_TEST(subset_vector_files)
{
    static const char *const bad[] = {"",         "T\n",      "T:1\n",     "T:1:x\n",   "x:1:2\n", "T:1:2 :1:3\n",
                                      "T:-1:2\n", "T:1:-2\n", "T:1:2:3\n", "T:1:inf\n", "T:1:0\n"};
    struct mg_vectors v;
    struct mg_buf out = MG_BUF_INIT;
    const char *text = "# of another program\nT:3:10 :1:2.5\nT:1:4\n\nT:70:1";
    MG_CHECK_EQ(mg_vectors_parse(&v, text, strlen(text), "f", NULL), MG_ERR_OK);
    MG_CHECK_EQ(v.n, 3);
    MG_CHECK(v.insts == 17.5 && v.intervals[0].insts == 12.5);
    mg_vectors_print(&v, &out);
    MG_CHECK_STR(out.at, "T:1:2.5 :2:10\nT:1:4\nT:3:1\n");
    mg_vectors_release(&v);
    mg_buf_release(&out);
    for (size_t i = 0; i < MG_COUNT_OF(bad); i++) {
        if (!mg_vectors_parse(&v, bad[i], strlen(bad[i]), "f", NULL)) {
            mg_test_fail(__FILE__, __LINE__, "accepts %s", bad[i]);
            mg_vectors_release(&v);
        }
    }
}
