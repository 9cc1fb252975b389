/* make bench-gpu: what counting costs on a GPU. Runs the kernels of kernels.cu natively and as twins with
 * each scheme of counters, interleaved round by round and timed by events; prints medians, registers
 * and resident CTAs. The same program runs on the emulator under `margay run -t none`, where it writes
 * the counts of a small size (--counts-out) that the GPU's are compared with (--counts). Talks to the
 * driver alone, by dlopen; instruments by itself, in process.
 *
 *   bench-gpu PTX [--size full|small] [--rounds N] [--only a,b] [--styles a,b] [--counts FILE] [--counts-out FILE]
 *     [--json FILE] [--check] [--once] [--keep DIR]
 *   bench-gpu PTX --hand DIR   six probes, put in by tools and written by hand into the source (DIR/hand.1.ptx
 *                              ...; hand.h)
 *   bench-gpu PTX --long N     one thread, N rounds of a loop (8589934602): every block against what few rounds
 *                              predict
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "bench.h"
#include "probes.h"
#include "ptx/ptx.h"
#include "tool/host.h"
#include "patch/layout.h"
#include "tool/instrument.h"

struct cuda cu;

static void load_driver(void)
{
    void *h = dlopen("libcuda.so.1", RTLD_NOW);
    if (!h) fprintf(stderr, "bench-gpu: no CUDA driver: %s\n", dlerror()), exit(4);
#define GET(field, name) *(void **)&cu.field = dlsym(h, name)
    GET(init, "cuInit");
    GET(device_get, "cuDeviceGet");
    GET(device_name, "cuDeviceGetName");
    GET(device_attribute, "cuDeviceGetAttribute");
    GET(retain, "cuDevicePrimaryCtxRetain");
    GET(set_current, "cuCtxSetCurrent");
    GET(sync, "cuCtxSynchronize");
    GET(set_limit, "cuCtxSetLimit");
    GET(load, "cuModuleLoadDataEx");
    GET(unload, "cuModuleUnload");
    GET(function, "cuModuleGetFunction");
    GET(global, "cuModuleGetGlobal_v2");
    GET(attribute, "cuFuncGetAttribute");
    GET(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    GET(launch, "cuLaunchKernel");
    GET(alloc, "cuMemAlloc_v2");
    GET(free, "cuMemFree_v2");
    GET(to_device, "cuMemcpyHtoD_v2");
    GET(to_host, "cuMemcpyDtoH_v2");
    GET(copy, "cuMemcpyDtoD_v2");
    GET(set, "cuMemsetD32_v2");
    GET(event_create, "cuEventCreate");
    GET(event_record, "cuEventRecord");
    GET(event_sync, "cuEventSynchronize");
    GET(event_elapsed, "cuEventElapsedTime");
#undef GET
}

void check(int rc, const char *what)
{
    if (!rc) return;
    fprintf(stderr, "bench-gpu: %s gives error %d\n", what, rc);
    exit(4);
}

/* ---- styles ------------------------------------------------------------------------------------ */

struct style {
    const char *name, *tool, *args;
    bool slow;
    const char *also; /* a style whose tools stand in the same twin */
    unsigned one_of;  /* of so many launches one runs the twin, the others native code; 0: all */
};
static const struct style styles[] = {
    {"native", NULL, NULL, false, NULL, 0},
    {"twin", "none", "", false, NULL, 0}, /* the twin alone: no counters */
    {"register", "blocks", "counters=register,warps=off,shards=64", false, NULL, 0},
    {"measured", "blocks", "counters=register,warps=off,shards=64,weights=", false, NULL,
     0}, /* with weights of an earlier run */
    {"warps", "blocks", "counters=register,warps=on,shards=64", false, NULL, 0},
    {"cta", "blocks", "counters=register,warps=off,shards=64,scope=cta,cta=0", false, NULL, 0},
    {"warp", "blocks", "counters=register,warps=off,shards=64,scope=warp,cta=0,warp=0", false, NULL, 0},
    {"probe-sum", "probe-sum", "", false, NULL, 0},
    {"probe-sums", "probe-sums", "", false, NULL, 0},
    {"probe-cells", "probe-cells", "", true, NULL, 0},
    {"opcodes", "opcodes", "", false, NULL, 0},
    {"guards", "opcodes", "lanes=on", false, NULL, 0},
    {"bytes", "memory", "level=bytes", false, NULL, 0},
    {"clock", "clock", "", false, NULL, 0},
    {"lanes", "lanes", "", true, NULL, 0},
    {"memory", "memory", "", true, NULL, 0},
    {"bounds", "bounds", "", true, NULL, 0},
    {"latency", "latency", "", true, NULL, 0},
    {"functions", "functions", "", true, NULL, 0},
    {"values", "values", "", true, NULL, 0},
    {"sampled", "lanes", "", true, NULL, 32}, /* lanes,sample=32 */
    {"gtpin", "memory", "level=bytes", false, "opcodes", 0},
    {"gtpin-lanes", "lanes", "", true, "gtpin", 0}, /* GT-Pin's counts, widths and bytes; with its channel use */
    {"class", "blocks", "counters=class,warps=off", true, NULL, 0},
    {"thread", "blocks", "counters=thread", true, NULL, 0},
    {"flux", "blocks", "counters=flux", true, NULL, 0},
    {"atomic", "blocks", "counters=atomic", true, NULL, 0},
};
enum {
    N_STYLES = sizeof styles / sizeof *styles,
    NATIVE = 0,
    TWIN = 1,
    REGISTER = 2,
    MEASURED = 3,
    MOST_ROUNDS = 64,
    COPIES = 256
};

struct built { /* one style of one kernel */
    void *module, *function;
    struct mg_layout layout;
    uint32_t n_blocks; /* counted; 0: none */
    uint64_t block;    /* context block and what is behind it; 0: native */
    uint64_t words;
    uint64_t *known; /* what the twin's parameter for constants holds; NULL: it has none */
    int registers, local_bytes, resident;
    double load_ms, times[MOST_ROUNDS], median;
    uint32_t n_times;
    const char *failed;
};

struct result {
    const struct work *w;
    struct built b[N_STYLES];
    uint64_t *totals;
    uint32_t n_blocks;
    bool counts_checked, counts_wrong, output_wrong;
};

static struct {
    const char *ptx, *only, *styles, *counts_in, *counts_out, *json, *keep, *hand;
    int rounds, sm;
    bool small, check_only, once;
    uint64_t far;
} o = {.rounds = 15};
static char *ptx_text;
static struct mg_module *ptx_module;
static void *native_module;

static bool wanted(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : "")
        if (!strncmp(at, name, n) && (at[n] == ',' || !at[n])) return true;
    return !list;
}

static uint64_t volume(const unsigned d[3])
{
    return (uint64_t)d[0] * d[1] * d[2];
}

static struct mg_counter_launch shape_of(const struct launch *l)
{
    return (struct mg_counter_launch){{l->grid[0], l->grid[1], l->grid[2]}, {l->block[0], l->block[1], l->block[2]}};
}

static void load_style(struct built *b, const char *kernel, const char *text, int cap)
{
    int option = 0; /* CU_JIT_MAX_REGISTERS */
    void *value = (void *)(intptr_t)cap;
    uint64_t start = mg_now_ns();
    int rc = cu.load(&b->module, text, cap ? 1 : 0, cap ? &option : NULL, cap ? &value : NULL);
    b->load_ms = (double)(mg_now_ns() - start) / 1e6;
    if (rc)
        b->failed = "the driver does not take it";
    else
        check(cu.function(&b->function, b->module, kernel), "cuModuleGetFunction");
}

static void measure_function(struct built *b, const struct launch *l)
{
    cu.attribute(&b->registers, 4, b->function);
    cu.attribute(&b->local_bytes, 3, b->function);
    if (cu.occupancy) cu.occupancy(&b->resident, b->function, (int)volume(l->block), 0);
}

static void keep_text(const char *work, const char *style, const char *text, size_t n)
{
    char path[600];
    snprintf(path, sizeof path, "%.400s/%s.%s.ptx", o.keep, work, style);
    if (mg_io_write(path, text, n, NULL)) fprintf(stderr, "bench-gpu: %s cannot be written\n", path);
}

/* Allocations as bounds is to see them: all memory in one, and fifteen more to search among. */
static void allocations(void (*fn)(const struct mg_host_allocation *a, void *user), void *user)
{
    for (uint64_t k = 1; k < 16; k++) fn(&(struct mg_host_allocation){4096 * k, 256, k, MG_HOST_DEVICE}, user);
    fn(&(struct mg_host_allocation){1 << 20, UINT64_MAX >> 1, 16, MG_HOST_DEVICE}, user);
}

static void put_list(const struct built *b, const struct mg_tool *tool, void *conf)
{
    static const struct mg_tool_host host = {.size = sizeof host, .device_kind = "nvidia", .allocations = allocations};
    const struct mg_region *r = &b->layout.regions[0];
    if (!tool->list) return;
    uint64_t *words = mg_xcalloc(r->n_list + 1, sizeof *words);
    const struct mg_tool_launch l = {.kernel = "", .id = 0};
    if (tool->begin) tool->begin(conf, &host);
    tool->list(conf, &l, words, r->n_list);
    check(cu.to_device(b->block + MG_CTX_BYTES + 8 * (r->at + r->list_at), words, 8 * (size_t)r->n_list), "list");
    free(words);
}

/* The tools of the styles that this one stands with, behind the n that are there. */
static uint32_t add_also(const struct style *s, struct mg_tool_use *uses, void **confs, uint32_t n, struct mg_diag *d)
{
    for (unsigned i = 0; s->also && i < N_STYLES; i++) {
        if (strcmp(styles[i].name, s->also)) continue;
        const struct mg_tool *tool = mg_tool_find(styles[i].tool);
        check(tool->configure(styles[i].args, &confs[n], d), styles[i].name);
        uses[n] = (struct mg_tool_use){tool, confs[n]};
        return add_also(&styles[i], uses, confs, n + 1, d);
    }
    return n;
}

/* Constants are as the module has them: the values at their addresses, and a copy behind the table of symbols. */
static void fill_known(struct built *b, const struct mg_twin *t, const uint64_t *symbols, uint64_t copy)
{
    if (!t->known_bytes) return;
    b->known = mg_xcalloc(t->known_bytes / 8 + 2, 8);
    b->known[0] = copy;
    for (uint32_t i = 0; i < t->n_known; i++) {
        const struct mg_twin_known *k = &t->known[i];
        b->known[1 + i] = symbols[k->symbol];
        if (k->bytes) check(cu.to_host((char *)b->known + k->at, symbols[k->symbol] + k->from, k->bytes), "constants");
    }
    if (t->known_bytes > t->known_values)
        check(cu.to_device(copy, (const char *)b->known + t->known_values, t->known_bytes - t->known_values),
              "constants");
}

/* Instruments the kernel anew and loads it; fills the symbol table from the native module. */
static void build(struct built *b, const struct style *s, const struct work *w, const char *weights, int cap)
{
    const struct launch *l = &w->launches[0];
    if (!s->tool) {
        b->module = native_module;
        check(cu.function(&b->function, native_module, l->kernel), l->kernel);
        measure_function(b, l);
        return;
    }
    struct mg_diag d = MG_DIAG_INIT;
    const struct mg_tool *listed = mg_tool_find(s->tool), *probe = listed ? NULL : probe_find(s->tool),
                         *tool = listed ? listed : probe; /* a probe may have a tool's name */
    struct mg_tools_opts opts = {.size = sizeof opts, .sm = (uint32_t)o.sm, .max_copies = COPIES, .reduce = true};
    char args[512];
    snprintf(args, sizeof args, "%s%s", s->args, weights);
    if (!strcmp(s->tool, "blocks")) snprintf(args + strlen(args), sizeof args - strlen(args), ",sm=%d", o.sm);
    mg_id k = mg_module_find_func(ptx_module, l->kernel);
    struct mg_sites *sites = mg_sites_new(ptx_module, k);
    struct mg_twin *t = NULL;
    void *confs[4] = {NULL}; /* chains of `also` are no longer */
    bool ok = !tool->configure || !tool->configure(args, &confs[0], &d);
    struct mg_tool_use uses[4] = {{tool, confs[0]}};
    uint32_t n_uses = ok ? add_also(s, uses, confs, 1, &d) : 0;
    unsigned flags = MG_TWIN_CONSTANTS | MG_TWIN_ADDRESSES;
    for (uint32_t i = 0; i < n_uses; i++) flags = mg_tool_twin_flags(uses[i].tool, flags);
    ok = ok && !mg_twin_new_as(ptx_module, k, flags, &t, &d);
    void *native = NULL;
    int native_registers = 0;
    if (ok && !cu.function(&native, native_module, l->kernel))
        cu.attribute(&native_registers, 4, native), t->registers = (uint32_t)native_registers;
    if (!ok || mg_tools_instrument(uses, n_uses, sites, t, &opts, &b->layout, &d) || mg_module_verify(t->m, &d)) {
        fprintf(stderr, "bench-gpu: %s, %s: %s\n", l->kernel, s->name, mg_diag_first(&d, MG_ERR_STATE));
        exit(3);
    }
    b->n_blocks =
        b->layout.has_blocks || (probe && b->layout.regions[0].n_cells >= sites->n_blocks) ? sites->n_blocks : 0;
    struct mg_counter_launch g = shape_of(l);
    b->words = mg_layout_words(&b->layout, &g);
    struct mg_buf text = MG_BUF_INIT;
    mg_ptx_print(t->m, &text);
    if (o.keep) keep_text(w->name, s->name, text.at, text.n);
    load_style(b, l->kernel, text.at, cap);
    if (!b->failed && cu.alloc(&b->block, MG_CTX_BYTES + 8 * b->words + 8 * (t->n_symbols + 1) + t->known_bytes))
        b->failed = "no memory for counters";
    if (!b->failed) {
        uint64_t head[MG_CTX_BYTES / 8] = {0}, table[64] = {0};
        head[MG_CTX_COUNTERS / 8] = b->block + MG_CTX_BYTES;
        head[MG_CTX_SYMBOLS / 8] = b->block + MG_CTX_BYTES + 8 * b->words;
        for (uint32_t i = 0; i < t->n_symbols && i < 64; i++) {
            size_t bytes;
            check(cu.global(&table[i], &bytes, native_module, t->symbols[i].name), t->symbols[i].name);
        }
        check(cu.to_device(b->block, head, sizeof head), "context block");
        check(cu.set(b->block + MG_CTX_BYTES, 0, 2 * b->words), "counters");
        put_list(b, tool, confs[0]);
        if (t->n_symbols) check(cu.to_device(head[MG_CTX_SYMBOLS / 8], table, 8 * t->n_symbols), "symbols");
        fill_known(b, t, table, head[MG_CTX_SYMBOLS / 8] + 8 * (t->n_symbols + 1));
        measure_function(b, l);
    }
    mg_buf_release(&text);
    for (uint32_t i = 0; i < n_uses; i++)
        if (confs[i]) uses[i].tool->release(confs[i]);
    mg_twin_free(t);
    mg_sites_free(sites);
    mg_diag_release(&d);
}

static void release(struct built *b)
{
    free(b->known);
    if (b->module && b->module != native_module) cu.unload(b->module);
    if (b->block) cu.free(b->block);
    mg_layout_release(&b->layout);
    *b = (struct built){.n_blocks = 0};
}

static void send(const struct built *b, const struct launch *l)
{
    void *params[12];
    uint64_t block = b->block;
    for (unsigned i = 0; i < l->n_args; i++) params[i] = (void *)&l->args[i];
    params[l->n_args] = &block;
    params[l->n_args + 1] = b->known;
    check(cu.launch(b->function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], 0, NULL,
                    params, NULL),
          l->kernel);
}

static void reset_data(const struct work *w)
{
    for (unsigned i = 0; i < w->n_resets; i++)
        check(cu.copy(w->resets[i].to, w->resets[i].from, w->resets[i].bytes), "reset");
}

/* ---- counts ------------------------------------------------------------------------------------- */

static uint64_t *count_blocks(const struct built *b, const struct work *w)
{
    uint32_t n = b->n_blocks, n_cells = b->layout.has_blocks ? n : MG_MAX(n, b->layout.regions[0].n_cells);
    uint64_t *totals = mg_xcalloc(n + 1, sizeof *totals), *one = mg_xcalloc(n_cells + 1, sizeof *one),
             *raw = mg_xcalloc(b->words + 1, sizeof *raw);
    reset_data(w);
    for (unsigned i = 0; i < w->n_launches; i++) {
        struct mg_counter_launch g = shape_of(&w->launches[i]);
        check(cu.set(b->block + MG_CTX_BYTES, 0, 2 * b->words), "counters");
        send(b, &w->launches[i]);
        check(cu.sync(), w->name);
        check(cu.to_host(raw, b->block + MG_CTX_BYTES, 8 * b->words), "counters");
        if (b->layout.has_blocks)
            mg_counters_read(&b->layout.blocks, &g, raw, one, NULL);
        else
            mg_layout_read(&b->layout.regions[0], raw, one);
        for (uint32_t k = 0; k < n; k++) totals[k] += one[k];
    }
    free(one);
    free(raw);
    return totals;
}

/* Lines "KERNEL BLOCK COUNT", which the option weights= reads too. */
static bool compare_file(struct result *r, const char *path)
{
    char *text = NULL, *save = NULL;
    size_t len;
    uint32_t seen = 0;
    if (mg_io_read(path, &text, &len, NULL)) return false;
    for (char *s = strtok_r(text, "\n", &save); s; s = strtok_r(NULL, "\n", &save)) {
        char name[100];
        unsigned block;
        unsigned long long count;
        if (sscanf(s, "%99s %u %llu", name, &block, &count) != 3 || strcmp(name, r->w->launches[0].kernel) ||
            block >= r->n_blocks)
            continue;
        seen++;
        if (r->totals[block] == count) continue;
        fprintf(stderr, "%s: block %u: %llu here, %llu in %s\n", name, block, (unsigned long long)r->totals[block],
                count, path);
        r->counts_wrong = true;
    }
    free(text);
    r->counts_checked = seen == r->n_blocks;
    return true;
}

static char weights_path[64];

static void write_weights(const struct result *r, const char *path, const char *mode)
{
    FILE *f = fopen(path, mode);
    for (uint32_t b = 0; f && b < r->n_blocks; b++)
        fprintf(f, "%s %u %llu\n", r->w->launches[0].kernel, b, (unsigned long long)r->totals[b]);
    if (f) fclose(f);
}

static void launch_all(const struct built *b, const struct work *w)
{
    reset_data(w);
    for (unsigned i = 0; i < w->n_launches; i++) send(b, &w->launches[i]);
    check(cu.sync(), w->name);
}

/* All schemes count alike, and the twins leave what the kernel leaves. */
static void check_counts(struct result *r)
{
    const struct work *w = r->w;
    void *want = malloc(w->out_bytes), *got = malloc(w->out_bytes);
    launch_all(&r->b[NATIVE], w);
    check(cu.to_host(want, w->out, w->out_bytes), "output");
    for (unsigned s = NATIVE + 1; s < N_STYLES; s++) {
        if (!r->b[s].block || r->b[s].failed) continue;
        bool counted = r->b[s].n_blocks && r->b[s].layout.blocks.scope == MG_COUNT_FULL;
        uint64_t *totals = counted ? count_blocks(&r->b[s], w) : NULL;
        if (!counted) launch_all(&r->b[s], w);
        check(cu.to_host(got, w->out, w->out_bytes), "output");
        bool output = !o.small || !memcmp(want, got, w->out_bytes); /* large data are not restored between runs */
        if (!output) fprintf(stderr, "%s, %s: the twin computes something else\n", w->name, styles[s].name);
        r->output_wrong |= !output;
        if (!counted) continue;
        if (!r->totals) {
            r->totals = totals;
            r->n_blocks = r->b[s].n_blocks;
            continue;
        }
        for (uint32_t b = 0; b < r->n_blocks; b++)
            if (totals[b] != r->totals[b]) {
                fprintf(stderr, "%s, %s: block %u: %llu, before %llu\n", w->name, styles[s].name, b,
                        (unsigned long long)totals[b], (unsigned long long)r->totals[b]);
                r->counts_wrong = true;
            }
        free(totals);
    }
    free(want);
    free(got);
    if (o.counts_in && o.small && !compare_file(r, o.counts_in))
        fprintf(stderr, "bench-gpu: %s cannot be read\n", o.counts_in);
    if (o.counts_out) write_weights(r, o.counts_out, "a");
}

/* ---- times ---------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double run_once(const struct built *b, const struct work *w, void *start, void *end)
{
    float ms = 0;
    unsigned times = w->n_resets || o.once ? 1 : 3;
    reset_data(w);
    check(cu.event_record(start, NULL), "event");
    for (unsigned k = 0; k < times; k++)
        for (unsigned i = 0; i < w->n_launches; i++) send(b, &w->launches[i]);
    check(cu.event_record(end, NULL), "event");
    check(cu.event_sync(end), w->name);
    check(cu.event_elapsed(&ms, start, end), "event");
    return ms / times;
}

/* The mean of a round of launches of which one runs the twin. Data that a launch spoils are put back before each. */
static double run_sampled(const struct result *r, unsigned style, void *start, void *end)
{
    unsigned n = styles[style].one_of;
    double sum = 0;
    float ms = 0;
    if (r->w->n_resets) {
        for (unsigned k = 0; k < n; k++) sum += run_once(&r->b[k == n / 2 ? style : NATIVE], r->w, start, end);
        return sum / n;
    }
    check(cu.event_record(start, NULL), "event");
    for (unsigned k = 0; k < n; k++)
        for (unsigned i = 0; i < r->w->n_launches; i++) send(&r->b[k == n / 2 ? style : NATIVE], &r->w->launches[i]);
    check(cu.event_record(end, NULL), "event");
    check(cu.event_sync(end), r->w->name);
    check(cu.event_elapsed(&ms, start, end), "event");
    return ms / n;
}

static void time_all(struct result *r)
{
    void *start, *end;
    check(cu.event_create(&start, 0), "event");
    check(cu.event_create(&end, 0), "event");
    for (int slow = 0; slow < 2; slow++) /* those that change what the caches hold most come last */
        for (int round = o.once ? -1 : -2; round < (o.once ? 1 : slow ? 3 : o.rounds); round++)
            for (unsigned s = 0; s < N_STYLES; s++) {
                struct built *b = &r->b[s];
                if (!b->function || b->failed || styles[s].slow != slow) continue;
                double ms = styles[s].one_of ? run_sampled(r, s, start, end) : run_once(b, r->w, start, end);
                if (round >= 0) b->times[b->n_times++] = ms;
            }
    for (unsigned s = 0; s < N_STYLES; s++) {
        struct built *b = &r->b[s];
        if (!b->n_times) continue;
        qsort(b->times, b->n_times, sizeof *b->times, by_value);
        b->median = b->times[b->n_times / 2];
    }
}

/* ---- report --------------------------------------------------------------------------------------- */

static void print_row(const struct result *r, bool *any)
{
    if (!*any) {
        printf("%-14s %9s", "kernel", "native ms");
        for (unsigned s = 1; s < N_STYLES; s++) printf(" %8s", styles[s].name);
        printf("   registers native/twin/register/measured/warps, resident CTAs\n");
    }
    *any = true;
    printf("%-14s %9.4f", r->w->name, r->b[NATIVE].median);
    for (unsigned s = 1; s < N_STYLES; s++) {
        if (r->b[s].median > 0)
            printf(" %8.3f", r->b[s].median / r->b[NATIVE].median);
        else
            printf(" %8s", r->b[s].failed ? "failed" : "-");
    }
    printf("   %d/%d/%d/%d/%d %d/%d/%d/%d/%d%s%s%s\n", r->b[0].registers, r->b[1].registers, r->b[2].registers,
           r->b[3].registers, r->b[4].registers, r->b[0].resident, r->b[1].resident, r->b[2].resident, r->b[3].resident,
           r->b[4].resident, r->counts_wrong ? " COUNTS DIFFER" : "", r->output_wrong ? " OUTPUT DIFFERS" : "",
           r->counts_checked ? " (counts as on the emulator)" : "");
    fflush(stdout);
}

static void print_means(const struct result *all, unsigned n)
{
    printf("%-14s %9s", "geomean", "");
    double worst[N_STYLES] = {0};
    for (unsigned s = 1; s < N_STYLES; s++) {
        double sum = 0;
        unsigned k = 0;
        for (unsigned i = 0; i < n; i++) {
            if (all[i].b[s].median <= 0) continue;
            double ratio = all[i].b[s].median / all[i].b[NATIVE].median;
            sum += log(ratio < 1 ? 1 : ratio); /* each clamped: code that got faster by chance pays for nothing */
            worst[s] = ratio > worst[s] ? ratio : worst[s];
            k++;
        }
        if (k)
            printf(" %8.3f", exp(sum / k));
        else
            printf(" %8s", "-");
    }
    printf("\n%-14s %9s", "worst", "");
    for (unsigned s = 1; s < N_STYLES; s++) printf(" %8.3f", worst[s]);
    printf("\n");
}

static void write_json(const struct result *all, unsigned n, const char *device)
{
    FILE *f = fopen(o.json, "w");
    if (!f) return;
    fprintf(f, "{\"bench_gpu\": 1, \"device\": \"%s\", \"ptx\": \"%s\", \"rounds\": %d, \"kernels\": [", device, o.ptx,
            o.rounds);
    for (unsigned i = 0; i < n; i++) {
        const struct result *r = &all[i];
        fprintf(
            f,
            "%s\n {\"name\": \"%s\", \"counts_equal\": %s, \"counts_as_emulator\": %s, \"output_equal\": %s, \"styles\": {",
            i ? "," : "", r->w->name, r->counts_wrong ? "false" : "true",
            r->counts_checked && !r->counts_wrong ? "true" : "false", r->output_wrong ? "false" : "true");
        for (unsigned s = 0; s < N_STYLES; s++) {
            const struct built *b = &r->b[s];
            fprintf(f, "%s\"%s\": ", s ? ", " : "", styles[s].name);
            if (b->failed)
                fprintf(f, "{\"failed\": \"%s\"}", b->failed);
            else if (!b->function)
                fprintf(f, "null");
            else
                fprintf(
                    f,
                    "{\"ms\": %.5f, \"registers\": %d, \"local_bytes\": %d, \"resident_ctas\": %d, \"load_ms\": %.2f, \"counters\": %u}",
                    b->median, b->registers, b->local_bytes, b->resident, b->load_ms, b->layout.blocks.n_counters);
        }
        fprintf(f, "}}");
    }
    fprintf(f, "\n]}\n");
    fclose(f);
}

/* ---- main ----------------------------------------------------------------------------------------- */

static void run_work(struct result *r)
{
    struct work *w = (struct work *)r->w;
    for (unsigned s = 0; s < N_STYLES; s++) {
        if (s == MEASURED || !wanted(s == NATIVE ? NULL : o.styles, styles[s].name)) continue;
        build(&r->b[s], &styles[s], w, "", 0);
    }
    if (w->out_bytes <= 64u << 20) check_counts(r);
    if (r->totals && wanted(o.styles, "measured")) {
        write_weights(r, weights_path, "w");
        build(&r->b[MEASURED], &styles[MEASURED], w, weights_path, 0);
    }
    if (!o.check_only) time_all(r);
}

/* Counts of every block are a + b * rounds for even numbers of rounds. */
static int run_far(void)
{
    struct work w;
    struct built b = {.n_blocks = 0};
    uint64_t *few[2], bad = 0;
    work_long(&w, 10);
    build(&b, &styles[REGISTER], &w, "", 0);
    check(b.failed != NULL, "long_run");
    for (unsigned i = 0; i < 2; i++) {
        w.launches[0].args[1] = 10 + 10 * i;
        few[i] = count_blocks(&b, &w);
    }
    w.launches[0].args[1] = o.far;
    uint64_t start = mg_now_ns(), *got = count_blocks(&b, &w);
    for (uint32_t k = 0; k < b.n_blocks; k++) {
        uint64_t want = few[0][k] + (few[1][k] - few[0][k]) * ((o.far - 10) / 10) +
                        (few[1][k] - few[0][k]) * ((o.far - 10) % 10) / 10;
        printf("block %u: %llu%s\n", k, (unsigned long long)got[k], got[k] == want ? "" : " WRONG");
        bad += got[k] != want;
    }
    printf("%llu rounds in one thread, %.1f s: %s\n", (unsigned long long)o.far, (double)(mg_now_ns() - start) / 1e9,
           bad ? "WRONG" : "exact");
    return bad != 0;
}

/* ---- probes written by hand --------------------------------------------------------------------------- */

enum { HAND_WORDS = 64, HAND_COPIES = 64 };

static void build_hand(struct built *b, const struct work *w, void **module, unsigned n)
{
    char path[600];
    char *text = NULL;
    size_t len;
    snprintf(path, sizeof path, "%.500s/hand.%u.ptx", o.hand, n + 1);
    if (!*module && (mg_io_read(path, &text, &len, NULL) || cu.load(module, text, 0, NULL, NULL))) {
        fprintf(stderr, "bench-gpu: %s cannot be loaded\n", path);
        exit(3);
    }
    free(text);
    check(cu.function(&b->function, *module, w->launches[0].kernel), path);
    check(cu.alloc(&b->block, 8 * HAND_WORDS * HAND_COPIES), "words");
    check(cu.set(b->block, 0, 2 * HAND_WORDS * HAND_COPIES), "words");
    measure_function(b, &w->launches[0]);
}

/* Both have counted the same? */
static bool equal_words(const struct work *w, struct built *hand, struct built *ours)
{
    uint64_t by_hand[HAND_WORDS] = {0}, copies[HAND_COPIES][HAND_WORDS], cells[HAND_WORDS] = {0},
             *raw = mg_xcalloc(ours->words + 1, sizeof *raw);
    check(cu.set(hand->block, 0, 2 * HAND_WORDS * HAND_COPIES), "words");
    check(cu.set(ours->block + MG_CTX_BYTES, 0, 2 * ours->words), "words");
    reset_data(w);
    for (unsigned i = 0; i < w->n_launches; i++) send(hand, &w->launches[i]);
    reset_data(w);
    check(cu.sync(), w->name);
    for (unsigned i = 0; i < w->n_launches; i++) send(ours, &w->launches[i]);
    check(cu.sync(), w->name);
    check(cu.to_host(copies, hand->block, sizeof copies), "words");
    check(cu.to_host(raw, ours->block + MG_CTX_BYTES, 8 * ours->words), "words");
    mg_layout_read(&ours->layout.regions[0], raw, cells);
    for (uint32_t i = 0; i < HAND_COPIES; i++)
        for (uint32_t k = 0; k < ours->layout.regions[0].n_cells; k++)
            by_hand[k] = mg_merge_word((enum mg_merge)ours->layout.regions[0].rules[k], by_hand[k], copies[i][k]);
    free(raw);
    return !memcmp(by_hand, cells, 8 * ours->layout.regions[0].n_cells);
}

static double median_of(struct built *b)
{
    qsort(b->times, b->n_times, sizeof *b->times, by_value);
    return b->times[b->n_times / 2];
}

static int run_hand(void)
{
    static const char *const probes[] = {"bytes", "values", "warps", "max", "cycles", "lanes"}; /* ORDER hand.h */
    static const char *const kernels = "saxpy,nbody,reduce,histogram,stencil";
    void *modules[MG_COUNT_OF(probes)] = {0}, *start, *end;
    double sum[2] = {0};
    unsigned n = 0, bad = 0;
    check(cu.event_create(&start, 0), "event");
    check(cu.event_create(&end, 0), "event");
    printf("%-12s %-8s %9s %8s %8s %8s  registers\n", "kernel", "probe", "native ms", "by hand", "by tool", "ratio");
    for (unsigned i = 0; i < n_works; i++) {
        if (!wanted(kernels, works[i].name) || !wanted(o.only, works[i].name)) continue;
        works[i].setup(&works[i], o.small, native_module);
        for (unsigned k = 0; k < MG_COUNT_OF(probes); k++) {
            struct built b[3] = {{0}};
            const struct style native = {"native", NULL, NULL, false}, tool = {probes[k], probes[k], "", false};
            build(&b[0], &native, &works[i], "", 0);
            build_hand(&b[1], &works[i], &modules[k], k);
            build(&b[2], &tool, &works[i], "", 0);
            bool same =
                k == 4 || !o.small ||
                equal_words(&works[i], &b[1],
                            &b[2]); /* large data are not restored between runs; cycles are never the same twice */
            for (int round = -2; round < o.rounds && !o.check_only; round++)
                for (unsigned s = 0; s < 3; s++) {
                    double ms = run_once(&b[s], &works[i], start, end);
                    if (round >= 0) b[s].times[b[s].n_times++] = ms;
                }
            if (o.check_only) printf("%-12s %-8s %s\n", works[i].name, probes[k], same ? "equal" : "WORDS DIFFER");
            if (b[0].n_times) {
                double t[3] = {median_of(&b[0]), median_of(&b[1]), median_of(&b[2])};
                printf("%-12s %-8s %9.4f %8.3f %8.3f %8.3f  %d/%d/%d%s\n", works[i].name, probes[k], t[0], t[1] / t[0],
                       t[2] / t[0], t[2] / t[1], b[0].registers, b[1].registers, b[2].registers,
                       same ? "" : " WORDS DIFFER");
                sum[0] += log(t[2] / t[1]);
                sum[1] += log(t[2] / t[0]);
                n++;
            }
            bad += !same;
            check(cu.free(b[1].block), "cuMemFree");
            b[1].block = 0;
            b[0].module = b[1].module = NULL;
            release(&b[2]);
        }
        work_release(&works[i]);
    }
    if (n) printf("geomean: by tool / by hand %.3f, by tool / native %.3f\n", exp(sum[0] / n), exp(sum[1] / n));
    return bad != 0;
}

static void parse_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *v = i + 1 < argc ? argv[i + 1] : "";
        if (argv[i][0] != '-')
            o.ptx = argv[i];
        else if (!strcmp(argv[i], "--check"))
            o.check_only = true;
        else if (!strcmp(argv[i], "--once"))
            o.once = true;
        else if (!strcmp(argv[i], "--size"))
            o.small = !strcmp(v, "small"), i++;
        else if (!strcmp(argv[i], "--rounds"))
            o.rounds = atoi(v), i++;
        else if (!strcmp(argv[i], "--only"))
            o.only = v, i++;
        else if (!strcmp(argv[i], "--styles"))
            o.styles = v, i++;
        else if (!strcmp(argv[i], "--counts"))
            o.counts_in = v, i++;
        else if (!strcmp(argv[i], "--counts-out"))
            o.counts_out = v, i++;
        else if (!strcmp(argv[i], "--json"))
            o.json = v, i++;
        else if (!strcmp(argv[i], "--keep"))
            o.keep = v, i++;
        else if (!strcmp(argv[i], "--hand"))
            o.hand = v, i++;
        else if (!strcmp(argv[i], "--long"))
            o.far = strtoull(v, NULL, 10), i++;
        else
            o.ptx = NULL, argc = 0;
    }
    if (!o.ptx)
        fprintf(
            stderr,
            "usage: bench-gpu PTX [--size full|small] [--rounds N] [--only a,b] [--styles a,b] [--counts FILE] [--counts-out FILE] [--json FILE] [--check] [--once]\n"),
            exit(2);
    if (o.rounds < 1 || o.rounds > MOST_ROUNDS) o.rounds = 15;
}

int main(int argc, char **argv)
{
    parse_options(argc, argv);
    load_driver();
    int device, major = 0, minor = 0;
    char name[128] = "";
    void *ctx;
    check(cu.init(0), "cuInit");
    check(cu.device_get(&device, 0), "cuDeviceGet");
    cu.device_name(name, sizeof name, device);
    cu.device_attribute(&major, 75, device);
    cu.device_attribute(&minor, 76, device);
    o.sm = 10 * major + minor;
    check(cu.retain(&ctx, device), "cuDevicePrimaryCtxRetain");
    check(cu.set_current(ctx), "cuCtxSetCurrent");
    if (cu.set_limit) cu.set_limit(0, 16384); /* stack: frames of recursive functions hold counters */
    struct mg_diag d = MG_DIAG_INIT;
    size_t len;
    if (mg_io_read(o.ptx, &ptx_text, &len, &d) || mg_ptx_parse(ptx_text, len, o.ptx, &ptx_module, &d)) {
        fprintf(stderr, "bench-gpu: %s\n", mg_diag_first(&d, MG_ERR_INPUT));
        return 3;
    }
    check(cu.load(&native_module, ptx_text, 0, NULL, NULL), "cuModuleLoadDataEx of the kernels");
    if (o.far) return run_far();
    if (o.hand) return run_hand();
    snprintf(weights_path, sizeof weights_path, "/tmp/bench-gpu-%ld", (long)getpid());
    if (o.counts_out) remove(o.counts_out);
    printf("%s, %s, %s sizes, median of %d interleaved rounds, kernel time over native\n", name, o.ptx,
           o.small ? "small" : "full", o.rounds);
    struct result all[64] = {0};
    unsigned n = 0, bad = 0;
    bool any = false;
    for (unsigned i = 0; i < n_works && n < 64; i++) {
        if (!wanted(o.only, works[i].name)) continue;
        works[i].setup(&works[i], o.small, native_module);
        struct result *r = &all[n++];
        *r = (struct result){.w = &works[i]};
        run_work(r);
        if (!o.check_only) print_row(r, &any);
        bad += r->counts_wrong || r->output_wrong;
        printf(o.check_only ? "%-14s %s\n" : "", r->w->name,
               r->counts_wrong   ? "COUNTS DIFFER"
               : r->output_wrong ? "OUTPUT DIFFERS"
                                 : "ok");
        for (unsigned s = 0; s < N_STYLES; s++) {
            struct built keep = r->b[s];
            uint32_t counters = keep.layout.blocks.n_counters;
            release(&r->b[s]);
            keep.layout = (struct mg_layout){.blocks.n_counters = counters};
            r->b[s] = keep;
        }
        work_release(&works[i]);
    }
    if (!o.check_only) print_means(all, n);
    if (o.json) write_json(all, n, name);
    remove(weights_path);
    return bad ? 1 : 0;
}
