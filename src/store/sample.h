/* Launches of a kernel of which only some were counted (--launches, margay ctl, launches that ran native):
 * what all of them would have counted, with a bound (base/estimate.h). A stratum is the launches of one kernel and
 * geometry, a launch's size its threads. Bounds speak of launches drawn at random: the first N of a program are no
 * such sample, nor are those before its counts were steady. */
#ifndef MG_STORE_SAMPLE_H
#define MG_STORE_SAMPLE_H

#include "base/estimate.h"
#include "store/store.h"

struct mg_sample {
    uint64_t launches, counted; /* that completed or ran native; replays of graphs each for itself */
    enum mg_sample_method method;
    struct mg_estimate insts;   /* thread instructions */
    struct mg_estimate *blocks; /* thread entries, of each block; owner: the sample */
};
/* False: every launch was counted, or none, or its counts are scaled anyhow (scope=). */
bool mg_sample_of(const struct mg_recording *p, const struct mg_pkernel *k, struct mg_sample *out);
void mg_sample_release(struct mg_sample *s);

/* Both codes' times, where launches of a geometry were timed either way (--native-times): of each such geometry
 * the medians, times its launches. */
struct mg_both_times {
    uint64_t launches;
    double native_ns, instrumented_ns;
};
/* False: no geometry was. */
bool mg_sample_times(const struct mg_recording *p, const struct mg_pkernel *k, struct mg_both_times *out);

#endif
