/* Verdicts: is a kernel bound by memory or by its instructions, from counts and the device's peaks: a roofline, which
 * knows no latency. What caches serve is not counted either, so it is bounded: memory moves all sectors at most, and
 * with caches that lose nothing each byte of a buffer once a launch, of those from the lowest to the highest that was
 * accessed (tool values; of launches that are given one part after the other, a part). A verdict holds at either bound;
 * where they differ there is none. Verdicts gain nothing by themselves; they say where to look. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "report/advice/priv.h"

#define CLEARLY 1.25 /* a peak is not known any better */
#define FAR     3.   /* times as long as at a peak: that peak does not hold it up */
#define ONCE    1.05 /* as many bytes moved as lie from the lowest to the highest: each of them once */

struct moved { /* of one buffer of a kernel, in one direction */
    const char *buffer;
    bool store;
    double bytes, used, most; /* of sectors; that lanes access; of the buffer, once a launch */
};
struct moved_vec {
    struct moved *at;
    uint32_t n, cap;
};

/* What the other rules found of the kernel stands above its verdict. */
static bool has_gain(const struct advice *a, const struct mg_pkernel *k)
{
    for (uint32_t i = 0; i < a->out->n; i++)
        if (a->out->at[i].kernel == k && a->out->at[i].gain_pct > 0) return true;
    return false;
}

static uint64_t key_of_site(const struct mg_pkernel *k, const struct mg_jval *site)
{
    const char *function = mg_jval_text(site, "function");
    return mg_hash64(function ? function : "", function ? strlen(function) : 0,
                     (uint64_t)k->id << 32 | mg_jval_u64(site, "ptx_line"));
}

void find_spans(struct advice *a)
{
    const struct mg_jval *values = a->without & MG_WORK_NO_VALUES ? NULL : mg_facts_tool(a->facts, "values");
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(values, "sites")); v; v = v->next) {
        const struct mg_pkernel *k;
        if (!is_shown(a, v, &k)) continue;
        mg_map_set(&a->spans, key_of_site(k, v), mg_jval_u64(v, "buffer_span_bytes"));
        mg_map_set(&a->site_spans, key_of_site(k, v), mg_jval_u64(v, "span_bytes"));
    }
}

uint64_t span_of_site(const struct advice *a, const struct mg_pkernel *k, const struct mg_jval *site)
{
    uint64_t span = 0;
    mg_map_get(&a->site_spans, key_of_site(k, site), &span);
    return span;
}

uint64_t bytes_of_buffer(const struct advice *a, const struct mg_pkernel *k, const struct mg_jval *site,
                         const struct mg_buffer_name *buffer)
{
    uint64_t span = 0;
    bool known = buffer && buffer->bytes;
    mg_map_get(known ? &a->spans : &a->site_spans, key_of_site(k, site), &span);
    if (!known || !span) return known ? buffer->bytes : span;
    if (span > buffer->shift) span -= buffer->shift; /* of all launches: each has its part */
    return MG_MIN(span, buffer->bytes);
}

static void add_moved(struct moved_vec *v, const char *buffer, bool store, double bytes, double used, double most)
{
    uint32_t i = 0;
    while (i < v->n && (v->at[i].store != store || strcmp(v->at[i].buffer, buffer))) i++;
    if (i == v->cap) v->at = mg_xrealloc(v->at, (v->cap = v->cap * 2 + 8) * sizeof *v->at);
    if (i == v->n) v->at[v->n++] = (struct moved){.buffer = buffer, .store = store, .most = most};
    v->at[i].most = MG_MAX(v->at[i].most, most); /* one that was not looked at may access all */
    v->at[i].bytes += bytes;
    v->at[i].used += used;
}

/* What the kernel moves of each buffer. Accesses whose buffer is not known may all be of one: of the widest span of one
 * access. */
static struct moved_vec moved_of(struct advice *a, const struct kernel_cost *c)
{
    const struct mg_jval *memory = mg_facts_tool(a->facts, "memory");
    const struct site_use *use = a->uses; /* without what loads find in L1 beside one another */
    struct moved_vec v = {0};
    for (const struct mg_jval *s = mg_jval_first(mg_jval_get(memory, "sites")); s; s = s->next, use++) {
        const struct mg_pkernel *k;
        const char *function = mg_jval_text(s, "function"), *op = mg_jval_text(s, "op");
        if (!is_shown(a, s, &k) || k != c->k || !function || mg_jval_f64(s, "sectors") <= 0) continue;
        const struct mg_buffer_name *buffer =
            mg_buffer_name_at(a->buffers, k, function, (uint32_t)mg_jval_u64(s, "ptx_line"));
        bool known = buffer && buffer->bytes;
        if (known || !is_local(s))
            add_moved(&v, known ? buffer->text : "", op && !strncmp(op, "st", 2), 32 * use->sectors,
                      mg_jval_f64(s, "accesses") * mg_jval_f64(s, "width"),
                      (double)bytes_of_buffer(a, k, s, buffer) * MG_MAX(c->counted * (double)c->launches, 1.));
    }
    return v;
}

double first_bytes(struct advice *a, const struct kernel_cost *c)
{
    struct moved_vec v = moved_of(a, c);
    double served = 0;
    for (uint32_t i = 0; i < v.n; i++) served += MG_MAX(v.at[i].bytes - v.at[i].most, 0);
    free(v.at);
    return c->bytes - served;
}

/* How much of what a launch accesses comes from memory: nothing of half of what L2 holds, all of three halves. L2 is
 * shared with what other launches left there, so that neither end is sharp. */
static double part_beyond_l2(double bytes, double l2_bytes)
{
    return MG_MIN(MG_MAX(bytes / l2_bytes - .5, 0.), 1.);
}

struct memory_bytes bytes_from_memory(struct advice *a, const struct kernel_cost *c)
{
    struct moved_vec v = moved_of(a, c);
    struct memory_bytes m = {0};
    double once = 0, launches = c->counted * (double)c->launches, l2 = launches * a->peak->l2_mb * 1e6;
    for (uint32_t i = 0; i < v.n; i++) {
        const struct moved *x = &v.at[i];
        double bytes = MG_MIN(x->bytes, x->most);
        m.most += bytes;
        m.used += MG_MIN(x->used, bytes);
        once += x->bytes <= ONCE * x->most ? bytes : 0;
    }
    free(v.at);
    double part = l2 > 0 ? part_beyond_l2(m.most, l2) : 0;
    m.all = part * m.most;
    m.used *= part;
    m.least = MG_MIN(MG_MAX(once - l2, 0.), m.all);
    return m;
}

struct times { /* cycles at the device's peaks */
    double moving, first /* of bytes that caches cannot serve */, issuing;
};

static bool is_judged(const struct advice *a, const struct kernel_cost *c)
{
    return c->share >= .05 && c->parts[PART_ISSUE] > 0 && c->parts[PART_GLOBAL] > 0 && a->peak->bytes_cycle > 0;
}

static struct times times_of(struct advice *a, const struct kernel_cost *c)
{
    return (struct times){.moving = c->bytes / a->peak->bytes_cycle,
                          .first = first_bytes(a, c) / a->peak->bytes_cycle,
                          .issuing = c->parts[PART_ISSUE]};
}

/* An opcode of the kernel that moves bytes and that tool memory does not look at; NULL: none that ran. */
static const char *find_unseen(struct advice *a, const struct mg_pkernel *k)
{
    const struct mg_jval *memory = mg_facts_tool(a->facts, "memory");
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(memory, "not_looked_at")); v; v = v->next) {
        const struct mg_jval *times = mg_jval_get(v, "executions");
        const char *kind = mg_jval_text(v, "kind"), *op = mg_jval_text(v, "op");
        bool ran = !times || !mg_jval_is_number(times) || mg_jval_number(times) > 0;
        if (mg_jval_u64(v, "kernel") == k->id && ran && op && kind && strcmp(kind, "barrier in memory")) return op;
    }
    return NULL;
}

/* A kernel that is far from either peak: neither fewer bytes nor fewer instructions make it faster. */
static const char *say_far(struct advice *a, const struct kernel_cost *c, const struct times *t)
{
    struct least_times l = least_times(c);
    double peak = MG_MAX(t->moving, t->issuing), least = MG_MAX(l.alone, l.launching);
    if (least < FAR * peak) return NULL;
    return mg_arena_printf(&a->out->arena,
                           "it is far from either peak: %s takes %.1f times as long as its bytes and its instructions",
                           l.launching >= l.alone ? "launching its CTAs" : "what one warp waits", least / peak);
}

/* Neither bytes nor instructions hold such a kernel up, or not all bytes are known. */
static const char *other_cause(struct advice *a, const struct kernel_cost *c, const struct times *t)
{
    const char *unseen = find_unseen(a, c->k);
    if (unseen) return mg_arena_printf(&a->out->arena, "tool memory does not look at what %s moves", unseen);
    if (c->parts[PART_SHARED] > t->moving && c->parts[PART_SHARED] > t->issuing)
        return "passes through shared memory take a little longer than its bytes and its instructions";
    if (c->parts[PART_ATOMIC] > t->moving && c->parts[PART_ATOMIC] > t->issuing)
        return "atomics at one address take longer than its bytes and its instructions";
    return say_far(a, c, t);
}

static double shared_ratio(const struct kernel_cost *c, const struct times *t)
{
    double most = MG_MAX(t->moving, t->issuing);
    return most > 0 ? c->parts[PART_SHARED] / most : 0;
}

static const char *say_remedy(struct advice *a, const struct mg_pkernel *k, const char *what)
{
    return mg_arena_printf(&a->out->arena, has_gain(a, k) ? "Fix the findings, then %s." : "To be faster, %s.", what);
}

static void judge(struct advice *a, bool memory)
{
    for (uint32_t i = 0; i < a->facts->p->n_kernels; i++) {
        const struct kernel_cost *c = &a->costs[i];
        if (!is_judged(a, c) || c->few_ctas) continue; /* no peak of the device is near */
        struct times t = times_of(a, c);
        double ratio = memory ? t.first / t.issuing : t.issuing / t.moving;
        if (ratio < CLEARLY || other_cause(a, c, &t)) continue;
        struct mg_finding *f = add_finding(a, c, 0, false);
        place_at_kernel(f, c->k);
        f->measure = ratio;
        f->unit = memory ? "time for bytes / time for instructions" : "time for instructions / time for bytes";
        const char *caches = t.first >= t.moving ? ""
                             : memory ? ", each byte from the lowest to the highest that it accesses once a launch"
                                      : ", even if caches serve none";
        f->text = mg_arena_printf(
            &a->out->arena,
            "at the device's peaks its %s take %.1f times as long as its %s (%.2f bytes a warp instruction%s). %s",
            memory ? "bytes" : "instructions", f->measure, memory ? "instructions" : "bytes",
            (memory ? t.first : t.moving) * a->peak->bytes_cycle / c->warp_insts, caches,
            say_remedy(a, c->k, memory ? "move fewer bytes" : "execute fewer instructions"));
    }
}

void mg_rule_memory_bound(struct advice *a, const struct mg_rule *self)
{
    (void)self;
    judge(a, true);
}

void mg_rule_shared_bound(struct advice *a, const struct mg_rule *self)
{
    (void)self;
    for (uint32_t i = 0; i < a->facts->p->n_kernels; i++) {
        const struct kernel_cost *c = &a->costs[i];
        if (!is_judged(a, c) || c->few_ctas || find_unseen(a, c->k)) continue;
        struct times t = times_of(a, c);
        double ratio = shared_ratio(c, &t);
        if (ratio < CLEARLY) continue;
        struct mg_finding *f = add_finding(a, c, 0, false);
        place_at_kernel(f, c->k);
        f->measure = ratio;
        f->unit = "time for shared memory / time for bytes or instructions";
        f->text = mg_arena_printf(
            &a->out->arena,
            "its passes through shared memory take %.1f times as long as its bytes at the device's peak, and %.1f times as long as "
            "its instructions. %s",
            t.moving > 0 ? c->parts[PART_SHARED] / t.moving : 0, c->parts[PART_SHARED] / t.issuing,
            say_remedy(a, c->k, "access shared memory less often (wider accesses, more in registers)"));
    }
}

/* Bytes that caches decide about: what is known at either end. */
static const char *say_range(struct advice *a, const struct times *t)
{
    return mg_arena_printf(
        &a->out->arena,
        "caches decide. With perfect ones, which bring what lies from the lowest to the highest byte that it accesses of "
        "a buffer once a launch, its bytes take %.2g times as long as its instructions; with none, %.2g times. `margay run -t cache` models them.",
        t->first / t->issuing, t->moving / t->issuing);
}

/* The last rule: who has no verdict is known now. */
void mg_rule_compute_bound(struct advice *a, const struct mg_rule *self)
{
    struct mg_findings *list = a->out;
    (void)self;
    judge(a, false);
    list->unjudged = mg_xcalloc(a->facts->p->n_kernels + 1, sizeof *list->unjudged);
    for (uint32_t i = 0; i < a->facts->p->n_kernels; i++) {
        const struct kernel_cost *c = &a->costs[i];
        if (!is_judged(a, c)) continue;
        struct times t = times_of(a, c);
        const char *why = other_cause(a, c, &t);
        bool judged = t.first >= CLEARLY * t.issuing || t.issuing >= CLEARLY * t.moving;
        if (c->few_ctas || (judged && !why) || (shared_ratio(c, &t) >= CLEARLY && !find_unseen(a, c->k))) continue;
        if (!why && (t.moving >= CLEARLY * t.issuing || t.issuing >= CLEARLY * t.first)) why = say_range(a, &t);
        list->unjudged[list->n_unjudged++] =
            (struct mg_unjudged){c->k, why ? why : "its bytes take about as long as its instructions"};
    }
}
