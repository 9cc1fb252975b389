/* blocks: how often each basic block was entered, by threads and by warps. This file holds its options; counting is
 * src/count, reports of counts are everyone's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"
#include "count/counters.h"
#include "tool/tool.h"

static const struct mg_tool_opt blocks_opts[] = {
    {"counters", "auto",
     "how to count: class, register, thread, flux, atomic; auto: class on emu and cpu, register on a GPU"},
    {"warps", "auto", "count warp entries too (on|off); auto: on where it is cheap: emu and cpu"},
    {"scope", "full", "which threads count: full, cta (one CTA) or warp (one warp of one CTA)"},
    {"cta", "0", "linear id of the CTA for scope=cta and scope=warp"},
    {"warp", "0", "linear id of the warp in its CTA for scope=warp"},
    {"weights", "",
     "counters=register: profile directory of an earlier run, or a file with its counts, one line \"KERNEL BLOCK COUNT\" each: puts counters where they cost least"},
    {"shards", "1",
     "counters=register: copies of the counters, a power of two; multiprocessors share them out (a GPU's run takes 64)"},
    {"registers", "32",
     "counters=register: 32-bit registers for counters in loops, 0-32; what a kernel has more is counted in shared memory. Where that may not be used (warps=on, scope=warp, functions) there are 32, and local memory takes the rest"},
    {"each", "",
     "counters=thread: folder for how often every thread entered each block: a CSV file a launch, PROCESS-LAUNCH.csv"},
    {"sm", "0", "compute capability of the device, as 90 for 9.0; 0: what the PTX names"},
    {0},
};

/* What was given, before `auto` is resolved. */
struct given {
    struct mg_counter_opts o;
    bool has_warps, has_place;
    char *weights;
};

/* The options that are numbers. */
struct number {
    const char *key;
    uint64_t least, most;
};
static const struct number numbers[] = {
    {"cta", 0, INT64_MAX}, {"warp", 0, 31}, {"shards", 1, 4096}, {"registers", 0, 32}, {"sm", 0, 999},
};

static const struct number *find_number(const char *key)
{
    for (size_t i = 0; i < MG_COUNT_OF(numbers); i++)
        if (!strcmp(numbers[i].key, key)) return &numbers[i];
    return NULL;
}

static int find_word(const char *const *words, unsigned n, const char *s)
{
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(words[i], s)) return (int)i;
    return -1;
}

static bool set_option(struct given *g, const char *key, const char *value)
{
    static const char *const schemes[] = {"class", "register", "thread", "flux", "atomic"}; /* ORDER mg_count_scheme */
    static const char *const scopes[] = {"full", "cta", "warp"};                            /* ORDER mg_count_scope */
    struct mg_counter_opts *o = &g->o;
    uint64_t n;
    if (!strcmp(key, "counters")) {
        int at = find_word(schemes, MG_COUNT_OF(schemes), value);
        if (at >= 0) o->scheme = (enum mg_count_scheme)at;
        return at >= 0 || !strcmp(value, "auto");
    }
    if (!strcmp(key, "warps")) {
        if (!strcmp(value, "auto")) return true;
        o->warps = !strcmp(value, "on");
        g->has_warps = o->warps || !strcmp(value, "off");
        return g->has_warps;
    }
    if (!strcmp(key, "scope")) {
        int at = find_word(scopes, MG_COUNT_OF(scopes), value);
        if (at >= 0) o->scope = (enum mg_count_scope)at;
        return at >= 0;
    }
    if (!strcmp(key, "weights")) {
        free(g->weights);
        g->weights = mg_xstrdup(value);
        return true;
    }
    if (!strcmp(key, "each")) {
        free(o->each);
        o->each = *value ? mg_xstrdup(value) : NULL;
        return true;
    }
    const struct number *f = find_number(key);
    if (!f || !mg_number_u64(value, false, f->least, f->most, &n)) return false;
    g->has_place |= !strcmp(key, "cta") || !strcmp(key, "warp");
    if (!strcmp(key, "cta"))
        o->cta = n;
    else if (!strcmp(key, "warp"))
        o->warp = (uint32_t)n;
    else if (!strcmp(key, "shards") && !(n & (n - 1)))
        o->shards = (uint32_t)n;
    else if (!strcmp(key, "registers"))
        o->registers = (uint32_t)n;
    else if (!strcmp(key, "sm"))
        o->sm = (uint32_t)n;
    else
        return false;
    return true;
}

static enum mg_err refuse(const char *key, const char *value, struct mg_diag *d)
{
    struct mg_buf want = MG_BUF_INIT;
    const struct number *f = find_number(key);
    if (f) {
        mg_number_print_u64(f->least, f->most, &want);
        mg_buf_adds(&want, strcmp(key, "shards") ? "" : ", a power of two");
    } else
        mg_buf_adds(&want, !strcmp(key, "counters") ? "auto, class, register, thread, flux or atomic"
                           : !strcmp(key, "warps")  ? "on, off or auto"
                           : !strcmp(key, "scope")  ? "full, cta or warp"
                                                    : "");
    enum mg_err err = want.n ? mg_diag_err(d, MG_ERR_INPUT, "tool blocks: bad option: %s= wants %s, not '%.200s'", key,
                                           want.at, value)
                             : mg_diag_err(d, MG_ERR_INPUT, "tool blocks has no option \"%s\"", key);
    mg_buf_release(&want);
    return err;
}

static void blocks_release(void *conf)
{
    struct mg_counter_opts *o = conf;
    if (!o) return;
    mg_count_weights_free(o->weights);
    free(o->each);
    free(o);
}

/* A device's defaults stand in front of what the user says; `auto` leaves them. */
static enum mg_err resolve(struct given *g, struct mg_diag *d)
{
    struct mg_counter_opts *o = &g->o;
    bool counts_warps = o->scheme == MG_SCHEME_CLASS || o->scheme == MG_SCHEME_REGISTER;
    if (!g->has_warps) o->warps = counts_warps;
    if (o->warps && !counts_warps)
        return mg_diag_err(d, MG_ERR_INPUT, "tool blocks: this scheme of counters has no warp counts (warps=off)");
    if (g->has_place && !o->scope)
        return mg_diag_err(d, MG_ERR_INPUT, "tool blocks: cta= and warp= need scope=cta or scope=warp");
    if (o->each && o->scheme != MG_SCHEME_THREAD)
        return mg_diag_err(d, MG_ERR_INPUT, "tool blocks: each= needs counters=thread, which counts thread by thread");
    if (o->each && mkdir(o->each, 0777) && errno != EEXIST)
        return mg_diag_err(d, MG_ERR_INPUT, "tool blocks: folder %s cannot be made", o->each);
    if (g->weights && *g->weights && !(o->weights = mg_count_weights_read(g->weights, d))) return MG_ERR_INPUT;
    return MG_ERR_OK;
}

static enum mg_err blocks_configure(const char *args, void **conf, struct mg_diag *d)
{
    struct given g = {.o = {.shards = 1, .registers = 32}};
    char *copy = mg_xstrdup(args ? args : ""), *save = NULL;
    enum mg_err err = MG_ERR_OK;
    for (char *kv = strtok_r(copy, ",", &save); kv && !err; kv = strtok_r(NULL, ",", &save)) {
        char *eq = strchr(kv, '=');
        if (eq) *eq = 0;
        if (!set_option(&g, kv, eq ? eq + 1 : "on")) err = refuse(kv, eq ? eq + 1 : "on", d);
    }
    if (!err) err = resolve(&g, d);
    free(copy);
    free(g.weights);
    *conf = NULL;
    if (err) {
        free(g.o.each);
        return err;
    }
    struct mg_counter_opts *o = mg_xcalloc(1, sizeof *o);
    *o = g.o;
    *conf = o;
    return MG_ERR_OK;
}

static const struct mg_counter_opts *blocks_counts(const void *conf)
{
    return conf;
}

extern const struct mg_tool mg_tool_blocks;
const struct mg_tool mg_tool_blocks = {
    .name = "blocks",
    .summary = "count how often each basic block is entered, by threads and by warps",
    .opts = blocks_opts,
    .configure = blocks_configure,
    .release = blocks_release,
    .counts = blocks_counts,
    .gpu_args = "counters=register,warps=off,shards=64",
    .cost =
        "kernel time on an H200, geometric mean: 1.02 of 161 public kernels, 1.03 of 20 of ours; of the latter with warps=on 1.27 (docs/measured.md)",
};
