/* The device's clock on the host's: a simulated device whose oscillator drifts, whose drift wanders and whose clock
 * steps, with events that are late by random times and distances rounded to float milliseconds, as the driver's are. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "inject/nvidia/nv_clock.h"

#define HOUR_NS  3600000000000.0
#define START_NS 9000000000000000.0 /* the host's clock after a hundred days: doubles hold it to 1 ns */

struct sim { /* times relative to the host time START_NS */
    double host_ns, device_ns, ppm, wander_ppm, steps_ns;
    double wait_ns; /* least time from recording to the device's clock read, and on to completion seen */
    double base_ns; /* device time of the current base event */
    double chain_ns;
    uint64_t seed;
    struct mg_clock clock;
};

static double uniform(struct sim *s)
{
    s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(s->seed >> 11) * 0x1p-53;
}

static double delay(struct sim *s) /* mostly short, now and then 100 us */
{
    double u = uniform(s);
    return s->wait_ns + 400 * uniform(s) + (u > 0.9 ? 20000 * uniform(s) : 0) + (u > 0.99 ? 100000 * uniform(s) : 0);
}

static void advance(struct sim *s, double ns)
{
    double drift = s->ppm + s->wander_ppm * sin(2 * M_PI * s->host_ns / HOUR_NS);
    s->host_ns += ns;
    s->device_ns += ns * (1 + drift * 1e-6);
}

static double read_event(const struct sim *s) /* a device's clock ticks every 32 ns */
{
    return 32 * floor((s->device_ns + s->steps_ns) / 32);
}

static double elapsed(double from, double to)
{
    return (double)(float)((to - from) * 1e-6) * 1e6;
}

static uint64_t host(const struct sim *s)
{
    return (uint64_t)(START_NS + s->host_ns);
}

static void record_base(struct sim *s)
{
    double best = INFINITY, best_event = 0;
    uint64_t early = 0, late = 0;
    for (int k = 0; k < 4; k++) {
        uint64_t before = host(s);
        advance(s, delay(s));
        double event = read_event(s);
        advance(s, delay(s));
        if ((double)(host(s) - before) < best)
            best = (double)(host(s) - before), early = before, late = host(s), best_event = event;
    }
    s->chain_ns = mg_clock_newest(&s->clock) + (s->clock.n ? elapsed(s->base_ns, best_event) : 0);
    s->base_ns = best_event;
    mg_clock_add(&s->clock, s->chain_ns, early, late);
}

/* One kernel of this length; how far its start is placed from where it was. */
static double run_kernel(struct sim *s, double length_ns, struct mg_clock_span *span)
{
    uint64_t call = host(s);
    advance(s, 200000 * uniform(s)); /* queued */
    double begin = read_event(s), start = s->host_ns;
    advance(s, length_ns);
    double end = read_event(s);
    advance(s, 4e6 * uniform(s)); /* the drain thread sleeps */
    *span = mg_clock_place(&s->clock, elapsed(s->base_ns, end), elapsed(begin, end), call, host(s));
    return (double)(int64_t)(span->start_ns - (uint64_t)START_NS) - start;
}

/* So many hours; the largest distance of a start from its true place, kernels beside a step left out. */
static double simulate(struct sim *s, double hours, double step_ns, double *length_error, int *beyond)
{
    double worst = 0, next_step = 900e9, pause = 1e6;
    bool settled = true;
    *length_error = 0;
    *beyond = 0;
    while (s->host_ns < hours * HOUR_NS) {
        if (step_ns != 0 && s->host_ns > next_step) {
            s->steps_ns += step_ns * (uniform(s) < 0.5 ? -1 : 1);
            next_step += 900e9;
            settled = false;
        }
        if (mg_clock_is_due(&s->clock, host(s))) {
            record_base(s);
            settled = true;
        }
        struct mg_clock_span span;
        double length = 2000 + 3e6 * uniform(s);
        double error = fabs(run_kernel(s, length, &span));
        if (settled) {
            worst = fmax(worst, error);
            *beyond += error > (double)span.uncertainty_ns;
            *length_error = fmax(*length_error, fabs((double)span.length_ns - length));
        }
        pause = s->host_ns < 10e9 ? 1e6 : 200e6;
        advance(s, pause * uniform(s));
    }
    return worst;
}

MG_TEST(clock_holds_for_ten_hours_of_drift)
{
    static const double ppms[] = {-100, 0, 100};
    for (unsigned i = 0; i < 3; i++) {
        struct sim s = {.ppm = ppms[i], .wander_ppm = 2, .wait_ns = 800, .seed = 7 + i};
        double length_error;
        int beyond;
        double worst = simulate(&s, 10, 0, &length_error, &beyond);
        MG_CHECK(worst < 2000);
        MG_CHECK(length_error < 700);
        MG_CHECK(beyond == 0);
        MG_CHECK(s.clock.steps == 0);
        MG_CHECK(fabs(s.clock.slope - 1 / (1 + ppms[i] * 1e-6)) < 4e-6);
    }
}

MG_TEST(clock_follows_steps)
{
    static const double steps[] = {20e3, 1e6, 5e9};
    for (unsigned i = 0; i < 3; i++) {
        struct sim s = {.ppm = 60, .wander_ppm = 2, .wait_ns = 800, .seed = 70 + i};
        double length_error;
        int beyond;
        MG_CHECK(simulate(&s, 10, steps[i], &length_error, &beyond) < 2000);
        MG_CHECK(beyond == 0);
        MG_CHECK(s.clock.steps == 39);
    }
}

/* A step between base and kernel: the host's own knowledge bounds the error. */
MG_TEST(clock_clamps_into_what_the_host_saw)
{
    struct mg_clock c = {0};
    mg_clock_add(&c, 0, 1000000, 1002000);
    struct mg_clock_span s = mg_clock_place(&c, 5e6, 1000, 1500000, 1510000);
    MG_CHECK(s.start_ns == 1509000 && s.length_ns == 1000 && s.uncertainty_ns <= 9500);
    s = mg_clock_place(&c, -5e6, 1000, 1500000, 1510000);
    MG_CHECK(s.start_ns == 1500000 && s.length_ns == 1000);
    s = mg_clock_place(&c, 506000, 1000, 1500000, 1510000);
    MG_CHECK(s.start_ns == 1506000);
    MG_CHECK(mg_clock_is_due(&c, 1002000 + 4000000) && !mg_clock_is_due(&c, 1002000 + 3000000));
}

/* What the former scheme, one base for the whole run and no drift term, would have said after an hour. */
MG_TEST(clock_beats_a_single_base)
{
    struct sim s = {.ppm = 50, .wait_ns = 800, .seed = 3};
    record_base(&s);
    double first = s.base_ns, first_host = s.host_ns;
    advance(&s, HOUR_NS);
    double single = first_host + elapsed(first, read_event(&s)) - s.host_ns;
    MG_CHECK(fabs(single) > 1e8);
}
