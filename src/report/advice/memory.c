/* Rules about memory instructions: sectors, banks, atomics, local memory, loads that bring nothing new. All add up the
 * sites of one source line, since an unrolled loop has many. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "report/advice/priv.h"

static bool is_atomic(const char *op)
{
    return op && (!strncmp(op, "atom", 4) || !strncmp(op, "red", 3));
}

/* Passes through shared memory that a request takes without conflicts. */
static double least_passes(double width)
{
    return width > 4 ? width / 4 : 1;
}

/* What a site of tool memory says, added to its line's. The worst of a line has most sectors beyond the ideal or, of
 * accesses to shared memory, most conflicts. */
static void add_site(struct line_sum *s, const struct mg_jval *v, const struct site_use *use)
{
    const struct mg_jval *patterns = mg_jval_get(v, "patterns");
    double requests = mg_jval_f64(v, "requests"), accesses = mg_jval_f64(v, "accesses"),
           width = mg_jval_f64(v, "width");
    uint64_t conflicts = mg_jval_u64(v, "bank_conflicts");
    s->accesses += accesses;
    s->requests += requests;
    s->sectors += use->cycles - use->by_branches;
    s->ideal += use->ideal;
    s->between += use->between - use->by_branches;
    double same = mg_jval_f64(patterns, "same"), beyond = mg_jval_is_number(mg_jval_get(v, "sectors"))
                                                              ? use->cycles - use->by_branches - use->ideal
                                                              : (double)conflicts;
    if (!s->worst || beyond > s->beyond) {
        s->worst = v;
        s->use = use;
        s->beyond = beyond;
    }
    s->conflicts += (double)conflicts;
    s->passes += requests * least_passes(width);
    s->regular = s->regular && (!conflicts || (requests > 0 && conflicts % (uint64_t)requests == 0));
    s->same += same;
    s->narrow += mg_jval_f64(patterns, "stride_32");
    s->wide += mg_jval_f64(patterns, "stride_128") + mg_jval_f64(patterns, "stride_more");
    s->wider += mg_jval_f64(patterns, "stride_more");
    s->irregular += mg_jval_f64(patterns, "irregular");
}

enum want { WANT_GLOBAL, WANT_SHARED, WANT_ATOMIC, WANT_LOCAL };

static bool is_wanted(const struct mg_jval *v, enum want want)
{
    const char *op = mg_jval_text(v, "op");
    if (want == WANT_LOCAL) return is_local(v);
    if (!mg_jval_is_number(mg_jval_get(v, "requests")) || !mg_jval_u64(v, "requests")) return false;
    if (want == WANT_ATOMIC) return is_atomic(op);
    if (want == WANT_GLOBAL) return !is_atomic(op) && mg_jval_is_number(mg_jval_get(v, "sectors"));
    return !is_atomic(op) && mg_jval_is_number(mg_jval_get(v, "bank_conflicts"));
}

static void sum_lines(struct advice *a, enum want want, struct line_sums *s)
{
    const struct mg_jval *memory = mg_facts_tool(a->facts, "memory");
    const struct site_use *use = a->uses;
    *s = (struct line_sums){0};
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(memory, "sites")); v; v = v->next, use++) {
        const struct mg_pkernel *k;
        if (is_shown(a, v, &k) && is_wanted(v, want) && !(want == WANT_ATOMIC && is_added_up(a, k, v)))
            add_site(sum_of_line(a, s, k, v), v, use);
    }
}

/* ---- lines that are told together -------------------------------------------------------------------------------- */

struct fault { /* what is wrong with a line: cycles of a part that mending it saves */
    const struct line_sum *line;
    double cycles;
};
typedef void tell_fn(struct advice *a, const struct line_sum *s, double gain, const char *others);

static bool same_buffer(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static const char *buffer_of(struct advice *a, const struct line_sum *s)
{
    return mg_buffer_at(a->buffers, s->k, s->function,
                        s->worst ? (uint32_t)mg_jval_u64(s->worst, "ptx_line") : s->place.ptx_line);
}

/* What its kernel costs. Fewer passes through L1 gain nothing below what memory takes, wherever the bytes come from. */
static struct kernel_cost cost_of(struct advice *a, const struct line_sum *s)
{
    struct kernel_cost c = a->costs[s->k->id];
    if (!s->use || !s->use->by_passes) return c;
    c.from_memory = MG_MAX(c.from_memory, first_bytes(a, &c) / a->peak->bytes_cycle);
    c.used = c.from_memory;
    return c;
}

/* 0: not worth to be told. */
static double gain_of_fault(struct advice *a, enum part part, const struct fault *x)
{
    struct kernel_cost c = cost_of(a, x->line);
    double gain = gain_of(&c, part, x->cycles);
    bool passes = x->line->use && x->line->use->by_passes; /* of a kernel that memory limits none is left */
    return is_worth(&c, part, x->cycles) && (!passes || 100 * gain >= LEAST_GAIN_PCT) ? gain : 0;
}

/* A finding for each line that gains enough. All others that access one buffer of a kernel are one finding, at the
 * worst of them: those of little gain, and those without a line of the source, where an unrolled loop has many. So are
 * all lines of a buffer where one change of the buffer mends them (by_buffer). */
static void tell_faults(struct advice *a, enum part part, const struct fault *faults, uint32_t n, bool by_buffer,
                        tell_fn *tell)
{
    const char **buffers = mg_xcalloc(n + 1, sizeof *buffers);
    bool *done = mg_xcalloc(n + 1, sizeof *done);
    for (uint32_t i = 0; i < n; i++) {
        const struct line_sum *s = faults[i].line;
        double gain = gain_of_fault(a, part, &faults[i]);
        buffers[i] = buffer_of(a, s);
        done[i] = s->place.file && gain > 0 && !(by_buffer && buffers[i]);
        if (done[i]) tell(a, s, gain, "");
    }
    for (uint32_t i = 0; i < n; i++) {
        struct fault all = {faults[i].line, 0};
        double most = 0;
        uint32_t lines = 0;
        if (done[i]) continue;
        for (uint32_t j = i; j < n && faults[j].line->k == faults[i].line->k;
             j++) { /* lines of a kernel stand together */
            if (done[j] || !same_buffer(buffers[i], buffers[j])) continue;
            done[j] = true;
            all.cycles += faults[j].cycles;
            lines++;
            if (faults[j].cycles <= most) continue;
            most = faults[j].cycles;
            all.line = faults[j].line;
        }
        double gain = gain_of_fault(a, part, &all);
        if (gain <= 0) continue;
        tell(a, all.line, gain,
             lines < 2 ? ""
                       : mg_arena_printf(&a->out->arena, " (and %u more access%s%s)", lines - 1, lines == 2 ? "" : "es",
                                         buffers[i] ? " of this buffer" : " of the kernel"));
    }
    free(buffers);
    free(done);
}

/* ---- uncoalesced ------------------------------------------------------------------------------------------------- */

/* A warp that lies in several rows of threads accesses as many pieces of memory. */
static const char *tell_irregular(struct advice *a, const struct line_sum *s)
{
    const struct kernel_cost *c = &a->costs[s->k->id];
    if (!c->row_threads || c->row_threads >= 32 || c->threads <= c->row_threads)
        return "the addresses have no one stride: order the indices, or gather through shared memory";
    return mg_arena_printf(
        &a->out->arena,
        "the addresses have no one stride, and a warp lies in %u rows of %u threads: let blockDim.x be a "
        "multiple of 32, order the indices, or gather through shared memory",
        (31 + c->row_threads) / c->row_threads, c->row_threads);
}

/* Other rounds of a loop, or other lanes, may use what lanes step over: where more bytes are asked for than lie between
 * the lowest and the highest. */
static bool may_be_used(const struct advice *a, const struct line_sum *s)
{
    double used = s->accesses * mg_jval_f64(s->worst, "width"); /* by all that the line has of an unrolled loop */
    return used >= .95 * (double)span_of_site(a, s->k, s->worst);
}

static const char *tell_narrow(struct advice *a, const struct line_sum *s)
{
    if (!may_be_used(a, s))
        return "lanes step over bytes that this access does not use: an array for each member, or one wide load of all members";
    return "lanes step over bytes that other rounds may use, if L1 has them still: let neighbouring lanes use neighbouring "
           "elements, or one wide load bring several";
}

static const char *tell_stride(struct advice *a, const struct line_sum *s)
{
    if (s->between > .5 * (s->sectors - s->ideal))
        return mg_arena_printf(
            &a->out->arena,
            "lanes are in order, but %.1f of 32 are there in the mean, with idle ones between: order "
            "the data so that neighbours access it together",
            s->accesses / s->requests);
    if (s->narrow >= s->wide && s->narrow >= s->irregular) return tell_narrow(a, s);
    if (s->wide < s->irregular) return tell_irregular(a, s);
    uint32_t width = MG_MAX((uint32_t)mg_jval_u64(s->worst, "width"), 1u);
    return mg_arena_printf(
        &a->out->arena,
        "neighbouring lanes are %s%u elements of %u bytes apart%s: let neighbouring threads use neighbouring "
        "elements (swap the array's dimensions or the loops, an array for each member of a struct, or go through shared "
        "memory)",
        s->wider > s->wide / 2 ? "more than " : mg_arena_printf(&a->out->arena, "%u to ", 32 / width + 1), 128 / width,
        width,
        !s->use->by_passes && is_kept_by_l1(mg_jval_text(s->worst, "op")) && may_be_used(a, s)
            ? " (other accesses may use the rest, if L1 has it still)"
            : "");
}

/* Of loads that use together what their sectors bring: no byte comes for nothing. */
static void tell_passes(struct advice *a, struct mg_finding *f, const struct line_sum *s, const char *others)
{
    double requests = mg_jval_f64(s->worst, "requests"),
           filled = mg_jval_f64(s->worst, "accesses") * mg_jval_f64(s->worst, "width") / 128;
    bool members = s->narrow >= s->wide && s->narrow >= s->irregular;
    const char *stride = !members ? tell_stride(a, s)
                         : s->use->by_rounds
                             ? "one wide load of several elements, or neighbouring lanes at neighbouring "
                               "elements, takes fewer"
                             : "an array for each member, or one wide load of several, takes fewer";
    f->measure = mg_jval_f64(s->worst, "lines") / requests;
    f->unit = "passes through L1 a request";
    f->text = mg_arena_printf(
        &a->out->arena,
        "a request of %s takes %.1f passes through L1, one for each line of 128 bytes, where %.3g would do%s. %s use the "
        "rest of its sectors, so that no byte comes for nothing. %c%s.",
        mg_jval_text(s->worst, "op"), f->measure, MG_MAX(filled / requests, 1.), others,
        s->use->by_rounds ? "Later rounds of the loop, for which L1 keeps them," : "Loads beside it",
        stride[0] - 'a' + 'A', stride + 1);
}

static void tell_uncoalesced(struct advice *a, const struct line_sum *s, double gain, const char *others)
{
    const struct kernel_cost c = cost_of(a, s);
    struct mg_finding *f = add_finding(a, &c, gain, true);
    place_at_access(a, f, s);
    f->limit = say_limit(a, &c, PART_GLOBAL);
    if (s->use->by_passes) {
        tell_passes(a, f, s, others);
        return;
    }
    double requests = mg_jval_f64(s->worst, "requests"), sectors = mg_jval_f64(s->worst, "sectors"),
           filled = mg_jval_f64(s->worst, "accesses") * mg_jval_f64(s->worst, "width") / 32;
    f->measure = sectors / requests; /* of the worst instruction: others of the line may be sound */
    f->unit = "sectors a request";
    const char *stride = tell_stride(a, s);
    f->text =
        mg_arena_printf(&a->out->arena, "a request of %s moves %.1f sectors of 32 bytes where %.1f would do%s. %c%s.",
                        mg_jval_text(s->worst, "op"), f->measure, MG_MAX(filled / requests, 1.), others,
                        stride[0] - 'a' + 'A', stride + 1);
}

void mg_rule_uncoalesced(struct advice *a, const struct mg_rule *self)
{
    struct line_sums sums;
    (void)self;
    sum_lines(a, WANT_GLOBAL, &sums);
    struct fault *faults = mg_xcalloc(sums.n + 1, sizeof *faults);
    uint32_t n = 0;
    for (uint32_t i = 0; i < sums.n; i++) {
        const struct line_sum *s = &sums.at[i];
        if (s->sectors >= WASTED * s->ideal) faults[n++] = (struct fault){s, s->sectors - s->ideal};
    }
    tell_faults(a, PART_GLOBAL, faults, n, false, tell_uncoalesced);
    free(faults);
    free(sums.at);
}

/* ---- bank_conflict ----------------------------------------------------------------------------------------------- */

/* The array that is accessed, with the line that declares it, and whether the launch gives its size. */
static const char *name_array(struct advice *a, const struct line_sum *s, bool *sized_by_launch)
{
    const struct mg_buffer_name *buffer =
        mg_buffer_name_at(a->buffers, s->k, s->function, (uint32_t)mg_jval_u64(s->worst, "ptx_line"));
    *sized_by_launch = false;
    if (!buffer || !buffer->is_shared) return "the array";
    const char *name = buffer->brief, *slash = s->place.file ? strrchr(s->place.file, '/') : NULL;
    uint32_t line = find_shared(a, s->place.file, s->place.line, name, strlen(name));
    *sized_by_launch = !buffer->bytes;
    if (!line) return mg_arena_strndup(&a->out->arena, name, strlen(name));
    return mg_arena_printf(&a->out->arena, "%s (%s:%u)", name, slash ? slash + 1 : s->place.file, line);
}

/* A step of k x 32 words, or any even step, becomes odd by one element more a row: 32 lanes then fall on 32 banks.
 * Lanes that step a few words have no row: a word more after every 32 does the same. */
static const char *tell_padding(struct advice *a, const struct line_sum *s)
{
    uint32_t pad = MG_MAX((uint32_t)mg_jval_u64(s->worst, "width"), 4u);
    bool sized_by_launch;
    const char *array = name_array(a, s, &sized_by_launch);
    const char *size =
        sized_by_launch
            ? mg_arena_printf(
                  &a->out->arena,
                  " The launch gives its size (dynamic shared memory): add %u bytes for each row there, and to the length of a row wherever it is indexed.",
                  pad)
            : "";
    if (!s->regular)
        return mg_arena_printf(
            &a->out->arena,
            "Not all requests conflict alike: pad the rows of %s if lanes step by a constant, else change the "
            "index or spread the data (a copy for each warp).%s",
            array, size);
    if (s->narrow > s->wide && s->narrow > s->irregular)
        return mg_arena_printf(
            &a->out->arena,
            "Let lanes use neighbouring words, or pad %s: index + index / 32 (%u bytes after every 32 words).%s", array,
            pad, size);
    bool constant = s->wide + s->narrow >= s->irregular; /* else a warp of several rows, or of no pattern */
    return mg_arena_printf(
        &a->out->arena, "Pad each row of %s by %u bytes (%s): %s then fall on different banks.%s", array, pad,
        pad > 8 ? "the width of an access" : "one element of that size more",
        constant ? "lanes" : "its lanes have no one step (irregular); groups of them that step by rows, if any,", size);
}

/* An access of several elements, which the source mostly has as several. */
static const char *say_joined(const struct mg_jval *site)
{
    const char *op = mg_jval_text(site, "op");
    if (op && strstr(op, ".v2.")) return " (the compiler joined two accesses, where the source has one element)";
    return op && strstr(op, ".v4.") ? " (the compiler joined four accesses, where the source has one element)" : "";
}

static double ways_of(const struct line_sum *s)
{
    return (s->passes + s->conflicts) / s->passes;
}

static void tell_bank_conflict(struct advice *a, const struct line_sum *s, double gain, const char *others)
{
    struct mg_finding *f = add_finding(a, &a->costs[s->k->id], gain, true);
    place_at_access(a, f, s);
    f->limit = say_limit(a, &a->costs[s->k->id], PART_SHARED);
    f->measure = ways_of(s);
    f->unit = "times the passes that would do";
    double each = s->conflicts / s->requests, /* of the line, and of its worst access */
        worst = mg_jval_f64(s->worst, "bank_conflicts") / MG_MAX(mg_jval_f64(s->worst, "requests"), 1.);
    const char *mean =
        fabs(worst - each) > .05 * (each + 1)
            ? mg_arena_printf(&a->out->arena, " in the mean of this line's accesses (the worst has %.1f conflicts)",
                              worst)
            : "";
    f->text = mg_arena_printf(
        &a->out->arena,
        "%s%s takes %.1f passes through shared memory%s where %.3g would do%s, %.3g for conflicts: lanes ask one bank for different words. %s",
        mg_jval_text(s->worst, "op"), say_joined(s->worst), (s->passes + s->conflicts) / s->requests, mean,
        s->passes / s->requests, others, s->conflicts / s->requests, tell_padding(a, s));
}

void mg_rule_bank_conflict(struct advice *a, const struct mg_rule *self)
{
    struct line_sums sums;
    (void)self;
    sum_lines(a, WANT_SHARED, &sums);
    struct fault *faults = mg_xcalloc(sums.n + 1, sizeof *faults);
    uint32_t n = 0;
    for (uint32_t i = 0; i < sums.n; i++)
        if (ways_of(&sums.at[i]) >= 1.25) faults[n++] = (struct fault){&sums.at[i], sums.at[i].conflicts};
    tell_faults(a, PART_SHARED, faults, n, true, tell_bank_conflict);
    free(faults);
    free(sums.at);
}

/* ---- hot_atomic -------------------------------------------------------------------------------------------------- */

/* How a warp makes one value of its lanes'. Machines add up integers of 32 bits, since sm_80. */
static const char *say_combining(struct advice *a, const char *op)
{
    static const char *const ops[] = {"add", "min", "max", "and", "or", "xor"};
    const char *type = strrchr(op, '.');
    bool whole = a->peak->sm >= 80 && type && (!strcmp(type, ".u32") || !strcmp(type, ".s32") || !strcmp(type, ".b32"));
    for (size_t i = 0; i < MG_COUNT_OF(ops); i++) {
        if (!strstr(op, mg_arena_printf(&a->out->arena, ".%s.", ops[i]))) continue;
        const char *what = i ? "Combine the lanes' values" : "Add up";
        return !whole ? mg_arena_printf(&a->out->arena, "%s in the warp first (shuffles)", what)
                      : mg_arena_printf(&a->out->arena, "%s in the warp first (__reduce_%s_sync or shuffles)", what,
                                        ops[i]);
    }
    return "Let one lane stand for all that can (a vote or shuffles)";
}

void mg_rule_hot_atomic(struct advice *a, const struct mg_rule *self)
{
    struct line_sums sums;
    (void)self;
    sum_lines(a, WANT_ATOMIC, &sums);
    for (uint32_t i = 0; i < sums.n; i++) {
        const struct line_sum *s = &sums.at[i];
        const struct kernel_cost *c = &a->costs[s->k->id];
        double lanes = s->accesses / s->requests, same = s->same / s->requests;
        double each = cycles_at_one_address(s->op, s->space && !strcmp(s->space, "shared"), s->width),
               waits = (s->accesses - s->requests) * same * each, gain = gain_of(c, PART_ATOMIC, waits);
        if (same < .5 || lanes < 2 || !is_worth(c, PART_ATOMIC, waits)) continue;
        struct mg_finding *f = add_finding(a, c, gain, true);
        place_at_access(a, f, s);
        f->limit = say_limit(a, &a->costs[s->k->id], PART_ATOMIC);
        f->measure = lanes;
        f->unit = "lanes at one address";
        f->text = mg_arena_printf(
            &a->out->arena,
            "%.0f %% of the warps that execute %s have %.1f lanes at one address, which wait for one another. %s, "
            "then one atomic for each warp or CTA.",
            100 * same, s->op, lanes, say_combining(a, s->op));
    }
    free(sums.at);
}

/* ---- spill ------------------------------------------------------------------------------------------------------- */

static void tell_spill(struct advice *a, const struct line_sum *s, double gain, const char *others)
{
    struct mg_finding *f = add_finding(a, &a->costs[s->k->id], gain, true);
    place_at_access(a, f, s);
    f->limit = say_limit(a, &a->costs[s->k->id], PART_GLOBAL);
    f->measure = s->accesses / (double)s->k->threads_launched;
    f->unit = "local accesses a thread";
    f->text = mg_arena_printf(
        &a->out->arena,
        "each thread accesses local memory %.1f times here (%s)%s. Index arrays by constants (unroll), so that they stay in "
        "registers, or put them into shared memory; a table of constants into __constant__ memory.",
        f->measure, s->op, others);
}

void mg_rule_spill(struct advice *a, const struct mg_rule *self)
{
    struct line_sums sums;
    (void)self;
    sum_lines(a, WANT_LOCAL, &sums);
    struct fault *faults = mg_xcalloc(sums.n + 1, sizeof *faults);
    uint32_t n = 0;
    for (uint32_t i = 0; i < sums.n; i++)
        if (sums.at[i].k->threads_launched)
            faults[n++] = (struct fault){&sums.at[i], sums.at[i].accesses * sums.at[i].width / 32};
    tell_faults(a, PART_GLOBAL, faults, n, false, tell_spill);
    free(faults);
    free(sums.at);
}

/* ---- redundant_load ---------------------------------------------------------------------------------------------- */

#define LEAST_REDUNDANT .9 /* of a load's executions */

/* What the load at that line of the PTX brings and waits; NULL: tool memory did not look at it. */
static const struct site_use *use_at(struct advice *a, const struct mg_pkernel *k, const struct mg_jval *load)
{
    const struct mg_jval *memory = mg_facts_tool(a->facts, "memory");
    const struct site_use *use = a->uses;
    uint64_t ptx_line = mg_jval_u64(load, "ptx_line");
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(memory, "sites")); v; v = v->next, use++)
        if (mg_jval_u64(v, "kernel") == k->id && mg_jval_u64(v, "ptx_line") == ptx_line) return use;
    return NULL;
}

/* Of an unrolled loop several loads have one address: the first one brings what all need. */
static bool is_copy(struct advice *a, struct mg_map *seen, const struct mg_pkernel *k, const struct mg_jval *load)
{
    const char *function = mg_jval_text(load, "function");
    uint32_t base;
    int64_t offset;
    if (!a->buffers || !function ||
        !mg_buffer_base_at(a->buffers, k, function, (uint32_t)mg_jval_u64(load, "ptx_line"), &base, &offset))
        return false;
    uint64_t key = mg_hash64(function, strlen(function), (uint64_t)k->id << 32 | base), before;
    key = mg_hash64(&offset, sizeof offset, key);
    if (mg_map_get(seen, key, &before)) return true;
    mg_map_set(seen, key, 1);
    return false;
}

/* Loads of a line whose address a loop does not change. */
static void sum_redundant(struct advice *a, struct line_sums *sums)
{
    const struct mg_jval *values = mg_facts_tool(a->facts, "values");
    struct mg_map seen = MG_MAP_INIT;
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(values, "sites")); v; v = v->next) {
        const struct mg_pkernel *k;
        const char *op = mg_jval_text(v, "op");
        if (!is_shown(a, v, &k) || !op || strncmp(op, "ld.", 3) || !mg_jval_yes(v, "same_address")) continue;
        if (is_read_each_time(op)) continue;
        double redundant = mg_jval_f64(v, "redundant"), all = mg_jval_f64(v, "values");
        struct line_sum *s = sum_of_line(a, sums, k, v);
        const struct site_use *use = use_at(a, k, v);
        if (redundant >= LEAST_REDUNDANT * all && is_copy(a, &seen, k, v)) redundant = all;
        s->values += all;
        s->redundant += redundant;
        if (!use || all <= 0) continue;
        s->sectors += use->cycles * redundant / all;
        s->latency += use->wait * redundant / all;
    }
    mg_map_release(&seen);
}

/* The first load is left, and what memory brings for it. */
static double gain_of_redundant(const struct kernel_cost *c, const struct line_sum *s)
{
    struct kernel_cost mended = without_cycles(c, PART_GLOBAL, s->sectors);
    mended = without_cycles(&mended, PART_ISSUE, s->redundant / 32 / 4);
    mended.chain -= s->latency;
    mended.from_memory = c->from_memory;
    return gain_if(c, &mended);
}

void mg_rule_redundant_load(struct advice *a, const struct mg_rule *self)
{
    struct line_sums sums = {0};
    (void)self;
    sum_redundant(a, &sums);
    for (uint32_t i = 0; i < sums.n; i++) {
        const struct line_sum *s = &sums.at[i];
        const struct kernel_cost *c = &a->costs[s->k->id];
        double gain = gain_of_redundant(c, s);
        if (s->redundant < LEAST_REDUNDANT * s->values || gain <= 0 ||
            !(is_worth_if_full(c, PART_GLOBAL, s->sectors) || is_worth_if_full(c, PART_ISSUE, s->redundant / 32 / 4)))
            continue;
        struct mg_finding *f = add_finding(a, c, gain, true);
        place_at_access(a, f, s);
        f->limit = say_limit(a, &a->costs[s->k->id], PART_GLOBAL);
        f->measure = 100 * s->redundant / s->values;
        f->unit = "% of values as before";
        f->text = mg_arena_printf(
            &a->out->arena,
            "%.1f %% of what this load in a loop brings is what the thread had before, from the same address. Load it in front of "
            "the loop; __restrict__ lets the compiler do so.",
            f->measure);
    }
    free(sums.at);
}
