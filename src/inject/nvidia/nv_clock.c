#include "inject/nvidia/nv_clock.h"

#include <math.h>

#include "base/compiler.h"

#define BASE_EVERY_NS   250000000.0
#define BASE_FIRST_NS   4000000.0
#define SLOPE_LEAST_NS  20000000.0 /* a slope is measured over at least so long */
#define SLOPE_ENOUGH_NS 2e9        /* one over so long is replaced by any other over so long */
#define DRIFT_MOST      200e-6     /* of an oscillator that was not measured yet */
#define DRIFT_WANDERS   0.5e-6     /* of one that was */
#define STEP_LEAST_NS   300.0

static const struct mg_clock_anchor *anchor(const struct mg_clock *c, uint32_t back)
{
    return &c->at[(c->newest + MG_CLOCK_ANCHORS - back) % MG_CLOCK_ANCHORS];
}

static double half_width(const struct mg_clock_anchor *a)
{
    return (double)(a->late_ns - a->early_ns) / 2 + 1;
}

/* Middle of the anchor's interval, relative to a host time. */
static double middle(const struct mg_clock_anchor *a, uint64_t host_ns)
{
    return (double)(int64_t)(a->early_ns - host_ns) + (double)(a->late_ns - a->early_ns) / 2;
}

static double host_of(const struct mg_clock *c, double device_ns) /* relative to host_ns */
{
    return c->fraction_ns + (device_ns - c->device_ns) * c->slope;
}

static double slope_error(const struct mg_clock *c)
{
    return c->slope_span_ns > 0 ? c->slope_error + DRIFT_WANDERS : DRIFT_MOST;
}

static bool is_step(const struct mg_clock *c, const struct mg_clock_anchor *a)
{
    double error = fabs(middle(a, c->host_ns) - host_of(c, a->device_ns));
    double distance = fabs(a->device_ns - c->device_ns);
    return error > half_width(a) + c->error_ns + distance * slope_error(c) + STEP_LEAST_NS;
}

/* Least squares through the middles of the anchors; narrow and recent ones weigh more. */
static void fit_line(struct mg_clock *c)
{
    const struct mg_clock_anchor *last = anchor(c, 0);
    double w_sum = 0, x_sum = 0, y_sum = 0, narrowest = half_width(last), recent = 1;
    for (uint32_t i = 0; i < c->n; i++, recent *= 0.9) {
        const struct mg_clock_anchor *a = anchor(c, i);
        double w = recent / (half_width(a) * half_width(a));
        w_sum += w;
        x_sum += w * (a->device_ns - last->device_ns);
        y_sum += w * middle(a, last->late_ns);
        narrowest = fmin(narrowest, half_width(a));
    }
    double x_mean = x_sum / w_sum, y_mean = y_sum / w_sum, xx = 0, xy = 0;
    recent = 1;
    for (uint32_t i = 0; i < c->n; i++, recent *= 0.9) {
        const struct mg_clock_anchor *a = anchor(c, i);
        double w = recent / (half_width(a) * half_width(a)), x = a->device_ns - last->device_ns - x_mean;
        xx += w * x * x;
        xy += w * x * (middle(a, last->late_ns) - y_mean);
    }
    double span = last->device_ns - anchor(c, c->n - 1)->device_ns;
    if (c->slope_span_ns <= 0 && xx <= 0) c->slope = 1;
    if (xx > 0 && span >= fmax(SLOPE_LEAST_NS, fmin(c->slope_span_ns, SLOPE_ENOUGH_NS))) {
        c->slope = xy / xx;
        c->slope_span_ns = span;
        c->slope_error = narrowest / span;
    }
    c->device_ns = last->device_ns;
    c->host_ns = last->late_ns;
    c->fraction_ns = y_mean - x_mean * c->slope;
    c->error_ns = narrowest;
}

void mg_clock_add(struct mg_clock *c, double device_ns, uint64_t early_ns, uint64_t late_ns)
{
    struct mg_clock_anchor a = {device_ns, early_ns, late_ns};
    if (c->n && is_step(c, &a)) {
        c->steps++;
        c->n = 0;
    }
    c->newest = (c->newest + 1) % MG_CLOCK_ANCHORS;
    c->at[c->newest] = a;
    c->n = MG_MIN(c->n + 1, MG_CLOCK_ANCHORS);
    fit_line(c);
}

double mg_clock_newest(const struct mg_clock *c)
{
    return c->n ? anchor(c, 0)->device_ns : 0;
}

bool mg_clock_is_due(const struct mg_clock *c, uint64_t now_ns)
{
    if (!c->n) return true;
    double every = fmin(fmax(c->slope_span_ns / 4, BASE_FIRST_NS), BASE_EVERY_NS);
    return (double)(int64_t)(now_ns - anchor(c, 0)->late_ns) >= every;
}

struct mg_clock_span mg_clock_place(const struct mg_clock *c, double from_base_ns, double length_ns, uint64_t call_ns,
                                    uint64_t seen_ns)
{
    double length = fmax(length_ns * c->slope, 1);
    double end = host_of(c, anchor(c, 0)->device_ns + from_base_ns), start = end - length;
    double call = (double)(int64_t)(call_ns - c->host_ns), seen = (double)(int64_t)(seen_ns - c->host_ns);
    start = fmin(start, seen - length);
    start = fmax(start, call);
    double rounding = (fabs(from_base_ns) + length_ns) * 0x1p-24; /* of a float */
    double error = c->error_ns + fabs(from_base_ns) * slope_error(c) + rounding + MG_CLOCK_RESOLUTION_NS;
    error = fmin(error, fmax(seen - call - length, 0) + MG_CLOCK_RESOLUTION_NS);
    return (struct mg_clock_span){
        .start_ns = c->host_ns + (uint64_t)(int64_t)llround(start),
        .length_ns = (uint64_t)llround(length),
        .uncertainty_ns = (uint64_t)ceil(error),
    };
}
