/* Tool blocks end to end without a driver: the twin's counters, run on the emulator, against the
 * witness that counts executed instructions per position of the ORIGINAL code without looking at
 * the CFG; and against closed forms. Printing and parsing the twin again is part of the path. */
#include <stdlib.h>

#include "base/buf.h"
#include "count/storage/storage.h"
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"
#include "kernels.h"
#include "test.h"
#include "tool/tool.h"

static struct mg_device *device(void)
{
    static struct mg_device *dev;
    if (dev) return dev;
    struct mg_device_opts o = {.size = sizeof o,
                               .properties = "h200",
                               .workers = 2,
                               .count_positions = true,
                               .heap_bytes = 1 << 20,
                               .printf_bytes = 1 << 20};
    struct mg_diag d = MG_DIAG_INIT;
    mg_mem_init(0);
    if (mg_emu_ops.open(&dev, &o, &d)) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_DEVICE));
    mg_diag_release(&d);
    return dev;
}

static struct mg_module *parse(const char *text)
{
    struct mg_module *m = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    if (mg_ptx_parse(text, strlen(text), "t.ptx", &m, &d))
        mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_INPUT));
    mg_diag_release(&d);
    return m;
}

static struct mg_dmod *load(const char *text)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_dmod *mod = NULL;
    struct mg_module *m = parse(text);
    if (m && mg_emu_ops.module_load(device(), m, &mod, &d))
        mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_INPUT));
    mg_diag_release(&d);
    return mod;
}

static bool launch(struct mg_dmod *mod, const char *kernel, uint32_t grid, uint32_t block, const void *params,
                   uint32_t bytes)
{
    struct mg_launch l = {.kernel = mg_emu_ops.kernel(mod, kernel),
                          .grid = {grid, 1, 1},
                          .block = {block, 1, 1},
                          .params = params,
                          .param_bytes = bytes,
                          .time_limit_ns = 10000000000u};
    struct mg_launch_stats s;
    struct mg_fault f;
    mg_emu_ops.launch(device(), &l, &s, &f);
    if (f.kind) mg_test_fail(__FILE__, __LINE__, "%s: %s", kernel, f.text);
    return !f.kind;
}

/* Witness counts by position. */
struct witness {
    uint64_t *threads, *warps;
    uint32_t n;
};

static void note_position(void *user, mg_id func, mg_id node, uint64_t threads, uint64_t warps)
{
    struct witness *w = user;
    (void)func;
    if (node >= w->n) return;
    w->threads[node] = threads;
    w->warps[node] = warps;
}

struct run { /* of one kernel, native and instrumented */
    struct mg_sites *sites;
    uint64_t *threads, *warps; /* counted by the twin */
    uint64_t other;
    bool has_warps;
    struct witness w;
    struct mg_module *m;
    uint32_t *out; /* what the native run left, then compared */
    char *text;    /* of the twin */
};

enum { BEHIND = 32, OUT_WORDS = 4096 };

static char *preset(char *text);

static unsigned twin_flags; /* enum mg_twin_flags */
static bool lowered;        /* counts are code, as on a GPU, not what the code says that it counts */
static bool slim;           /* with what a GPU's twin has done to it after all tools */

static bool instrument(struct run *r, const char *kernel, const char *args, struct mg_counter_layout *layout,
                       struct mg_twin **twin)
{
    struct mg_diag d = MG_DIAG_INIT;
    const struct mg_tool *tool = mg_tool_find("blocks");
    void *conf = NULL;
    mg_id k = mg_module_find_func(r->m, kernel);
    r->sites = mg_sites_new(r->m, k);
    bool ok = !mg_twin_new_as(r->m, k, twin_flags, twin, &d);
    if (ok) (*twin)->m->marked = !lowered;
    ok = ok && !tool->configure(args, &conf, &d) &&
         !mg_count_insert(tool->counts(conf), r->sites, *twin, layout, NULL, &d);
    if (ok && slim) {
        mg_twin_drop_contexts(*twin);
        mg_twin_inline(*twin);
    }
    if (ok) mg_twin_split_constants(*twin);
    ok = ok && !mg_module_verify((*twin)->m, &d);
    if (!ok) mg_test_fail(__FILE__, __LINE__, "%s: %s", kernel, mg_diag_first(&d, MG_ERR_STATE));
    if (conf) tool->release(conf);
    mg_diag_release(&d);
    if (!ok) return false;
    struct mg_buf text = MG_BUF_INIT;
    (*twin)->m->marked = true;
    mg_ptx_print((*twin)->m, &text);
    r->text = preset(mg_buf_take(&text));
    return true;
}

/* Values of constants beside the launch, as they are or as they are not any more. */
static bool stale;

static void bring_constants(const struct mg_twin *t, const uint64_t *table, uint64_t *known, uint64_t copy)
{
    if (!t->known_bytes) return;
    MG_CHECK_EQ(t->known_offset, 32);
    known[0] = copy;
    for (uint32_t i = 0; i < t->n_known; i++) {
        const struct mg_twin_known *k = &t->known[i];
        known[1 + i] = table[k->symbol];
        memcpy((char *)known + k->at, (void *)(uintptr_t)(table[k->symbol] + k->from), k->bytes);
        if (stale && k->bytes) ((char *)known)[k->at + k->bytes - 1] ^= 64;
    }
    memcpy((void *)(uintptr_t)copy, (const char *)known + t->known_values, t->known_bytes - t->known_values);
}

/* Params: u64 buffer, u32 n. */
static bool run_both(struct run *r, const char *text, const char *kernel, uint32_t grid, uint32_t block, uint32_t n,
                     const char *args)
{
    *r = (struct run){.m = parse(text)};
    struct mg_dmod *native = load(text);
    struct mg_counter_layout layout = {0};
    struct mg_twin *twin = NULL;
    uint64_t words[MG_CTX_N_WORDS] = {0};
    if (!r->m || !native || !instrument(r, kernel, args, &layout, &twin)) return false;
    struct mg_counter_launch shape = {{grid, 1, 1}, {block, 1, 1}};
    uint64_t n_words = mg_counters_words(&layout, &shape);
    uint64_t ctx = mg_mem_alloc(MG_CTX_BYTES + 8 * n_words + 8 * BEHIND, 256, MG_ALLOC_INTERNAL),
             *c = (uint64_t *)(uintptr_t)ctx;
    memset(c, 0, MG_CTX_BYTES + 8 * (n_words + BEHIND));
    memcpy(c + MG_CTX_WORDS / 8, words, sizeof words);
    uint64_t out = mg_mem_alloc(OUT_WORDS * 4, 256, MG_ALLOC_DEVICE);
    struct {
        uint64_t out;
        uint32_t n, pad;
        uint64_t ctx, pad2, known[512];
    } params = {.out = out, .n = n, .ctx = ctx};
    memset((void *)(uintptr_t)out, 0, OUT_WORDS * 4);
    bool ok = launch(native, kernel, grid, block, &params, 12);
    r->out = malloc(OUT_WORDS * 4);
    memcpy(r->out, (void *)(uintptr_t)out, OUT_WORDS * 4);
    memset((void *)(uintptr_t)out, 0, OUT_WORDS * 4);
    r->w = (struct witness){calloc(r->m->nodes.n, 8), calloc(r->m->nodes.n, 8), r->m->nodes.n};
    mg_emu_ops.positions(native, note_position, &r->w);

    uint64_t counters = ctx + MG_CTX_BYTES;
    uint64_t table = mg_mem_alloc(8 * (uint64_t)twin->n_symbols + 8, 256, MG_ALLOC_INTERNAL);
    for (uint32_t i = 0; i < twin->n_symbols; i++) {
        uint64_t at = 0, bytes;
        if (twin->symbols[i].is_func)
            at = mg_emu_ops.function_address(native, twin->symbols[i].name);
        else if (mg_emu_ops.global(native, twin->symbols[i].name, &at, &bytes))
            mg_test_fail(__FILE__, __LINE__, "no symbol %s", twin->symbols[i].name);
        if (!at) mg_test_fail(__FILE__, __LINE__, "symbol %s is null", twin->symbols[i].name);
        ((uint64_t *)(uintptr_t)table)[i] = at;
    }
    c[MG_CTX_COUNTERS / 8] = counters;
    c[MG_CTX_SYMBOLS / 8] = table;
    MG_CHECK_EQ(twin->ctx_offset, 16);
    struct mg_dmod *code = load(r->text);
    uint64_t copy = mg_mem_alloc(twin->known_bytes + 8, 256, MG_ALLOC_INTERNAL);
    bring_constants(twin, (const uint64_t *)(uintptr_t)table, params.known, copy);
    ok = ok && code &&
         launch(code, kernel, grid, block, &params, twin->known_bytes ? twin->known_offset + twin->known_bytes : 24);
    mg_mem_free(copy);
    if (memcmp((void *)(uintptr_t)out, r->out, OUT_WORDS * 4))
        mg_test_fail(__FILE__, __LINE__, "%s: the twin computes something else", kernel);
    r->threads = calloc(r->sites->n_blocks + 1, 8);
    r->warps = calloc(r->sites->n_blocks + 1, 8);
    r->has_warps = layout.warps != NULL;
    const uint64_t *raw = (uint64_t *)(uintptr_t)counters;
    if (!mg_counters_read(&layout, &shape, raw, r->threads, r->warps) && ok)
        mg_test_fail(__FILE__, __LINE__, "%s: an edge is taken fewer than 0 times", kernel);
    r->other = mg_counters_other(&layout, &shape, raw);
    for (uint32_t i = 0; i < BEHIND; i++)
        if (raw[n_words + i]) mg_test_fail(__FILE__, __LINE__, "%s: added to word %u behind the counters", kernel, i);
    mg_counter_layout_release(&layout);
    mg_twin_free(twin);
    if (code) mg_emu_ops.module_unload(code);
    mg_emu_ops.module_unload(native);
    mg_mem_free(ctx);
    mg_mem_free(table);
    mg_mem_free(out);
    return ok;
}

static void release(struct run *r)
{
    mg_sites_free(r->sites);
    mg_module_free(r->m);
    free(r->threads);
    free(r->warps);
    free(r->w.threads);
    free(r->w.warps);
    free(r->out);
    free(r->text);
}

/* Twin and witness agree on every block, and inside a block on every position. */
static void check_witness(const struct run *r, const char *what)
{
    for (uint32_t b = 0; b < r->sites->n_blocks; b++) {
        const struct mg_site_block *s = &r->sites->blocks[b];
        const struct mg_block *k = &r->sites->cfgs[s->func_ix]->blocks[s->block_ix];
        if (r->threads[b] != r->w.threads[k->first])
            mg_test_fail(__FILE__, __LINE__, "%s: block %u (line %u): %llu threads, witness %llu", what, b, s->ptx_line,
                         (unsigned long long)r->threads[b], (unsigned long long)r->w.threads[k->first]);
        if (r->has_warps && r->warps[b] != r->w.warps[k->first])
            mg_test_fail(__FILE__, __LINE__, "%s: block %u (line %u): %llu warps, witness %llu", what, b, s->ptx_line,
                         (unsigned long long)r->warps[b], (unsigned long long)r->w.warps[k->first]);
        if (r->w.threads[k->first] != r->w.threads[k->last])
            mg_test_fail(__FILE__, __LINE__, "%s: block %u is no straight line", what, b);
    }
}

static const char divergent_loop[] =
    HEAD ENTRY("k") GID "ld.param.u32 %r9, [n]; setp.ge.u32 %p1, %r1, %r9; @%p1 bra OUT;\n"
                        "and.b32 %r4, %r1, 7; mov.u32 %r5, 0;\n"
                        "L: setp.eq.u32 %p2, %r4, 0; @%p2 bra DONE;\n"
                        "add.u32 %r5, %r5, %r4; sub.u32 %r4, %r4, 1; bra L;\n"
                        "DONE: st.global.u32 [%rd1], %r5;\n"
                        "OUT: ret;\n}\n";

MG_TEST(tool_blocks_divergent_loop)
{
    struct run r;
    if (run_both(&r, divergent_loop, "k", 3, 64, 150, "")) {
        check_witness(&r, "divergent loop");
        /* threads 0..149 enter; trip count i & 7: 18 groups of 8 (28 each) and 6 more (0..5: 15) */
        MG_CHECK_EQ(r.sites->n_blocks, 6);
        MG_CHECK_EQ(r.threads[0], 192);
        MG_CHECK_EQ(r.threads[1], 150);
        MG_CHECK_EQ(r.threads[3], 18 * 28 + 15);
        MG_CHECK_EQ(r.threads[2], 18 * 28 + 15 + 150);
        MG_CHECK_EQ(r.threads[4], 150);
        MG_CHECK_EQ(r.threads[5], 192);
        MG_CHECK_EQ(r.warps[0], 6);
        MG_CHECK_EQ(r.warps[1], 5);
        MG_CHECK_EQ(r.warps[2], 5 * 8 - 0); /* the longest lane of every warp: 7 rounds and the test that ends it */
        MG_CHECK_EQ(r.out[6], 21);
        MG_CHECK_STR(r.sites->blocks[2].label, "L");
        MG_CHECK_STR(r.sites->blocks[0].label, "entry");
    }
    release(&r);
}

MG_TEST(tool_blocks_warps_off)
{
    struct run r;
    if (run_both(&r, divergent_loop, "k", 3, 64, 150, "warps=off")) {
        MG_CHECK(!r.has_warps);
        check_witness(&r, "warps=off");
        MG_CHECK(!strstr(r.text, "activemask"));
    }
    release(&r);
}

MG_TEST(tool_blocks_scope)
{
    struct run r;
    if (run_both(&r, divergent_loop, "k", 3, 64, 150, "scope=cta,cta=1")) {
        MG_CHECK_EQ(r.threads[0], 64);
        MG_CHECK_EQ(r.threads[3], 8 * 28);
        MG_CHECK_EQ(r.warps[0], 2);
    }
    release(&r);
    if (run_both(&r, divergent_loop, "k", 3, 64, 150, "scope=warp,cta=2,warp=0")) {
        MG_CHECK_EQ(r.threads[0], 32);
        MG_CHECK_EQ(r.threads[1], 22); /* threads 128..149 */
        MG_CHECK_EQ(r.warps[0], 1);
    }
    release(&r);
}

MG_TEST(tool_blocks_bad_options)
{
    static const char *const bad[] = {"scope=half", "cta=x", "warps=maybe", "speed=9", "warp=64", "cta="};
    for (unsigned i = 0; i < MG_COUNT_OF(bad); i++) {
        struct mg_diag d = MG_DIAG_INIT;
        void *conf = &d;
        MG_CHECK_EQ(mg_tool_find("blocks")->configure(bad[i], &conf, &d), MG_ERR_INPUT);
        MG_CHECK(conf == NULL);
        MG_CHECK_EQ(d.n_errors, 1);
        mg_diag_release(&d);
    }
    MG_CHECK(mg_tool_find("none")->flags & MG_TOOL_NATIVE);
    MG_CHECK(mg_tool_find("nonesuch") == NULL);
}

/* One kernel that holds what can go wrong: guarded ret and exit, a uniform and a divergent loop,
 * a barrier, falling off the end, an unreachable block. */
static const char exits[] = HEAD ENTRY("k") GID "ld.param.u32 %r9, [n]; mov.u32 %r7, 0; mov.u32 %r8, 0;\n"
                                                "U: add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, %r9; @%p1 bra U;\n"
                                                "and.b32 %r4, %r1, 31; setp.eq.u32 %p2, %r4, 0; @%p2 ret;\n"
                                                "setp.gt.u32 %p3, %r4, 29; @%p3 exit;\n"
                                                "st.global.u32 [%rd1], %r4;\n"
                                                "D: add.u32 %r8, %r8, 1; setp.eq.u32 %p4, %r8, %r4; @%p4 ret;\n"
                                                "setp.lt.u32 %p5, %r8, 12; @%p5 bra D;\n"
                                                "bra END;\n"
                                                "add.u32 %r8, %r8, 1;\n"
                                                "END:\n}\n";

MG_TEST(tool_blocks_exits)
{
    struct run r;
    static const uint32_t blocks[] = {32, 33, 100, 1, 96};
    for (unsigned i = 0; i < MG_COUNT_OF(blocks); i++) {
        if (run_both(&r, exits, "k", 2, blocks[i], 5, "")) check_witness(&r, "exits");
        if (blocks[i] == 96) {
            MG_CHECK_EQ(r.threads[1], 192 * 5);
            MG_CHECK_EQ(r.warps[1], 6 * 5);
            MG_CHECK_EQ(r.threads[3], 6 * 31);
            MG_CHECK_EQ(r.threads[4], 6 * 29);
            MG_CHECK_EQ(r.threads[r.sites->n_blocks - 1], 0);
        }
        release(&r);
    }
}

/* Calls: recursion, a callee that exits, state of the module, shared memory, constants. */
static const char calls[] = HEAD
    ".global .align 4 .u32 total; .global .align 8 .u64 back = total; .const .align 4 .u32 tab[4] = {3, 5, 7, 9};\n"
    ".shared .align 4 .u32 s[64];\n"
    ".func (.param .u32 r) fib (.param .u32 a)\n{\n" REGS
    " ld.param.u32 %r1, [a]; setp.lt.u32 %p1, %r1, 2; @%p1 bra SMALL;\n"
    " sub.u32 %r2, %r1, 1; sub.u32 %r3, %r1, 2;\n"
    " { .param .u32 x; .param .u32 y; st.param.u32 [x], %r2; call.uni (y), fib, (x); ld.param.u32 %r4, [y]; }\n"
    " { .param .u32 x; .param .u32 y; st.param.u32 [x], %r3; call.uni (y), fib, (x); ld.param.u32 %r5, [y]; }\n"
    " add.u32 %r1, %r4, %r5;\n"
    "SMALL: st.param.u32 [r], %r1; ret;\n}\n"
    ".func quit (.param .u32 a)\n{\n" REGS
    " ld.param.u32 %r1, [a]; and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 2; @%p1 exit; ret;\n}\n" ENTRY("k") GID
    "mov.u32 %r8, %tid.x; mul.lo.u32 %r6, %r8, 4; mov.u32 %r7, s; add.u32 %r7, %r7, %r6; st.shared.u32 [%r7], %r1; bar.sync 0;\n"
    "and.b32 %r4, %r1, 7;\n"
    "{ .param .u32 x; .param .u32 y; st.param.u32 [x], %r4; call (y), fib, (x); ld.param.u32 %r5, [y]; }\n"
    "mov.u32 %r10, 0;\n"
    "L: { .param .u32 x; st.param.u32 [x], %r4; @%p7 call quit, (x); call quit, (x); }\n"
    "add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 3; @%p1 bra L;\n"
    "and.b32 %r11, %r1, 3; mul.wide.u32 %rd5, %r11, 4; mov.u64 %rd6, tab; add.u64 %rd6, %rd6, %rd5; ld.const.u32 %r12, [%rd6];\n"
    "ld.const.u32 %r13, [tab+8]; add.u32 %r12, %r12, %r13; ld.shared.u32 %r14, [%r7]; add.u32 %r12, %r12, %r14; add.u32 %r12, %r12, %r5;\n"
    "st.global.u32 [%rd1], %r12; red.global.add.u32 [total], 1; ld.global.u64 %rd7, [back]; ld.u32 %r15, [%rd7];\n"
    "ret;\n}\n";

MG_TEST(tool_blocks_calls)
{
    struct run r;
    char *text = strdup(calls), *at = strstr(text, "setp.lt.u32 %p1, %r10");
    (void)at;
    /* %p7: odd threads */
    struct mg_buf b = MG_BUF_INIT;
    char *split = strstr(text, "mov.u32 %r10, 0;");
    mg_buf_add(&b, text, (size_t)(split - text));
    mg_buf_adds(&b, "and.b32 %r16, %r1, 1; setp.eq.u32 %p7, %r16, 1;\n");
    mg_buf_adds(&b, split);
    if (run_both(&r, b.at, "k", 3, 48, 0, "")) {
        check_witness(&r, "calls");
        /* fib entries for n: 2 fib(n+1) - 1 = 1 1 3 5 9 15 25 41, sum 100 for each 8 threads */
        MG_CHECK_EQ(r.sites->n_funcs, 3);
        MG_CHECK_EQ(r.threads[r.sites->first_block[1]], 144 / 8 * 100);
        MG_CHECK_EQ(r.out[2], 0); /* lanes with (n & 3) == 2 left in quit */
        MG_CHECK_EQ(r.out[1], 5 + 7 + 1 + 1);
    }
    release(&r);
    mg_buf_release(&b);
    free(text);
}

/* Function pointers: a table in memory, so what is called is a native address. */
static const char pointers[] = HEAD
    ".func (.param .u32 r) one (.param .u32 a)\n{\n" REGS
    " ld.param.u32 %r1, [a]; add.u32 %r1, %r1, 1; st.param.u32 [r], %r1; ret;\n}\n"
    ".func (.param .u32 r) two (.param .u32 a)\n{\n" REGS
    " ld.param.u32 %r1, [a]; setp.gt.u32 %p1, %r1, 40; @%p1 bra B; mul.lo.u32 %r1, %r1, 2;\nB: st.param.u32 [r], %r1; ret;\n}\n"
    ".func other (.param .u64 a)\n{\n ret;\n}\n"
    ".global .align 8 .u64 table[3] = {one, two, other};\n" ENTRY("k") GID
    "and.b32 %r4, %r1, 1; mul.wide.u32 %rd5, %r4, 8; mov.u64 %rd6, table; add.u64 %rd6, %rd6, %rd5; ld.global.u64 %rd7, [%rd6];\n"
    "setp.lt.u32 %p2, %r1, 60;\n"
    "{ .param .u32 x; .param .u32 y; st.param.u32 [x], %r1; P: .callprototype (.param .u32 _) _ (.param .u32 _);\n"
    "@%p2 call (y), %rd7, (x), P; ld.param.u32 %r5, [y]; }\n"
    "mov.u64 %rd8, one;\n"
    "{ .param .u32 x; .param .u32 y; st.param.u32 [x], %r5; T: .calltargets one, two;\n call (y), %rd8, (x), T; ld.param.u32 %r5, [y]; }\n"
    "st.global.u32 [%rd1], %r5; ret;\n}\n";

MG_TEST(tool_blocks_function_pointers)
{
    struct run r;
    if (run_both(&r, pointers, "k", 1, 64, 0, "")) {
        MG_CHECK_EQ(r.sites->n_funcs, 3); /* `other` has another shape */
        MG_CHECK_EQ(r.other, 0);
        MG_CHECK_EQ(r.threads[r.sites->first_block[1]], 30 + 64);
        MG_CHECK_EQ(r.threads[r.sites->first_block[2]], 30);
        MG_CHECK_EQ(r.out[4], 6);
        MG_CHECK_EQ(r.out[5], 11);
        check_witness(&r, "function pointers");
    }
    release(&r);
}

/* Loops that end by one of two conditions: neither tells how often they ran, whether it is a predicate of its own
 * or part of the comparison. */
static const char two_ends[] = HEAD ENTRY("k") GID
    "mov.u32 %r4, 0; add.u32 %r5, %r1, 1;\n"
    "A: add.u32 %r4, %r4, 1; shr.u32 %r5, %r5, 1; setp.gt.u32 %p1, %r5, 1; setp.lt.u32 %p2, %r4, 50; and.pred %p3, %p1, %p2; @%p3 bra A;\n"
    "mov.u32 %r7, 0; add.u32 %r9, %r1, 3;\n"
    "B: add.u32 %r7, %r7, 1; shr.u32 %r9, %r9, 1; setp.ne.u32 %p4, %r9, 0; setp.lt.and.u32 %p5, %r7, 40, %p4; @%p5 bra B;\n"
    "add.u32 %r10, %r4, %r7; st.global.u32 [%rd1], %r10; ret;\n}\n";

/* More events than a field of 8 bits holds: 300 levels down, 300 rounds of calls that return at once, two functions
 * by turns, and a loop of the kernel around such a call. */
#define CALL1(f, in, out)                                                                                              \
    " { .param .u32 x; .param .u32 y; st.param.u32 [x], " in "; call (y), " f ", (x); ld.param.u32 " out ", [y]; }\n"
#define FUNC(name)                                                                                                     \
    ".func (.param .u32 r) " name " (.param .u32 a)\n{\n" REGS " ld.param.u32 %r1, [a]; mov.u32 %r5, 1;\n"
static const char deep[] = HEAD
    FUNC("down") " setp.eq.u32 %p1, %r1, 0; @%p1 bra END; sub.u32 %r2, %r1, 1;\n" CALL1("down", "%r2", "%r5") " add.u32 %r5, %r5, 1;\nEND: st.param.u32 [r], %r5; ret;\n}\n" FUNC("fan") " setp.eq.u32 %p1, %r1, 0; @%p1 bra END; mov.u32 %r2, 0; mov.u32 %r4, 0;\nL:" CALL1(
        "fan", "%r4",
        "%r3") " add.u32 %r5, %r5, %r3; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r1; @%p2 bra L;\nEND: st.param.u32 [r], %r5; ret;\n}\n"
               ".func (.param .u32 r) odd (.param .u32 a);\n" FUNC("even") " setp.eq.u32 %p1, %r1, 0; @%p1 bra END; sub.u32 %r2, %r1, 1;\n" CALL1("odd", "%r2", "%r5") "END: st.param.u32 [r], %r5; ret;\n}\n" FUNC(
                   "odd") " setp.eq.u32 %p1, %r1, 0; @%p1 bra END; sub.u32 %r2, %r1, 1;\n" CALL1("even", "%r2",
                                                                                                 "%r5") "END: st.param.u32 [r], %r5; ret;\n}\n" ENTRY("k")
                   GID
    "rem.u32 %r2, %r1, 3; add.u32 %r2, %r2, 299;\n" CALL1("down", "%r2", "%r4")
        CALL1("fan", "%r2", "%r6") "add.u32 %r4, %r4, %r6;\n" CALL1("even", "%r2", "%r6") "mov.u32 %r8, 0; mov.u32 %r7, 0;\nA:" CALL1(
            "even", "%r7",
            "%r6") " add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 400; @%p1 bra A; st.global.u32 [%rd1], %r4; ret;\n}\n";

/* Every scheme counts what the witness counts: exits, calls, recursion, pointers, divergent loops. */
static const char *const schemes[] = {
    "counters=class",
    "counters=register",
    "counters=register,warps=off",
    "counters=register,shards=4,sm=90",
    "counters=register,warps=off,sm=90,registers=0",
    "counters=thread",
    "counters=flux",
    "counters=atomic",
};

MG_TEST(tool_blocks_schemes)
{
    static const struct {
        const char *text, *name;
        uint32_t grid, block, n;
    } cases[] = {
        {divergent_loop, "divergent loop", 3, 64, 150},
        {divergent_loop, "divergent loop", 2, 33, 40},
        {exits, "exits", 2, 96, 5},
        {exits, "exits", 3, 33, 70},
        {exits, "exits", 1, 1, 2},
        {calls, "calls", 3, 48, 0},
        {pointers, "function pointers", 1, 64, 0},
        {two_ends, "two ends", 3, 96, 0},
        {deep, "deep", 1, 33, 0},
    };
    for (unsigned i = 0; i < MG_COUNT_OF(cases); i++)
        for (unsigned k = 0; k < MG_COUNT_OF(schemes) + 2; k++) {
            struct run r;
            char what[120];
            lowered = k >= MG_COUNT_OF(schemes);
            const char *args = !lowered                    ? schemes[k]
                               : k == MG_COUNT_OF(schemes) ? "counters=class"
                                                           : "counters=class,warps=off";
            snprintf(what, sizeof what, "%s, %s%s", cases[i].name, args, lowered ? ", lowered" : "");
            if (run_both(&r, cases[i].text, "k", cases[i].grid, cases[i].block, cases[i].n, args))
                check_witness(&r, what);
            if (k == 0 || lowered) MG_CHECK_EQ(strstr(r.text, "count_threads") != NULL, !lowered);
            release(&r);
        }
    lowered = false;
}

/* Lanes that pass a bounds check count nothing: the way out is counted, in a block of its own. */
MG_TEST(tool_blocks_bounds_check)
{
    static const char text[] = HEAD ENTRY("k") GID
        "setp.ge.u32 %p1, %r1, 100; @%p1 bra OUT; mul.lo.u32 %r4, %r1, 3; st.global.u32 [%rd1], %r4;\nOUT: ret;\n}\n";
    struct run r;
    if (run_both(&r, text, "k", 2, 96, 0, "counters=register,warps=off,sm=90")) {
        check_witness(&r, "bounds check");
        MG_CHECK(strstr(r.text, "bra $__mg_edge") != NULL);
    }
    release(&r);
}

/* Lanes that neither exit nor branch run off the kernel's end. */
MG_TEST(tool_blocks_running_off)
{
    static const char text[] = HEAD ENTRY("k") GID
        "setp.ge.u32 %p1, %r1, 100; @%p1 bra OUT; mul.lo.u32 %r4, %r1, 3; setp.ge.u32 %p2, %r1, 50;\n"
        "st.global.u32 [%rd1], %r4; @%p2 exit;\nOUT:\n}\n";
    static const char *const some[] = {"counters=register,warps=off,sm=90", "counters=register,warps=on,sm=90"};
    for (unsigned k = 0; k < MG_COUNT_OF(some); k++) {
        struct run r;
        if (run_both(&r, text, "k", 2, 72, 0, some[k])) check_witness(&r, "running off");
        release(&r);
    }
}

/* Random kernels, and functions whose counters travel with calls (kernels.h). */
MG_TEST(tool_blocks_random)
{
    static const char *const some[] = {"counters=register", "counters=register,sm=90,shards=2,warps=off",
                                       "counters=thread", "counters=register,sm=90,shards=2,warps=off,registers=0"};
    for (uint32_t seed = 0; seed < 60; seed++) {
        if (!mg_test_takes(seed)) continue;
        struct mg_buf b;
        random_kernel(seed, &b);
        for (unsigned k = 0; k < MG_COUNT_OF(some); k++) {
            struct run r;
            char what[120];
            snprintf(what, sizeof what, "random kernel %u, %s", seed, some[k]);
            if (run_both(&r, b.at, "k", 2, 72, 5, some[k])) check_witness(&r, what);
            release(&r);
        }
        mg_buf_release(&b);
    }
}

static bool has_func_without_context(const char *text)
{
    for (const char *f = strstr(text, "\n.func"); f; f = strstr(f + 1, "\n.func")) {
        const char *body = strchr(f, '{'), *context = strstr(f, "__mg_ctx");
        if (body && (!context || context > body)) return true;
    }
    return false;
}

MG_TEST(tool_blocks_random_calls)
{
    static const char *const some[] = {"counters=register,sm=90,shards=2,warps=off", "counters=register,warps=off",
                                       "counters=register,sm=80", "counters=register,sm=90,warps=off,registers=0"};
    uint32_t n_inlined = 0, n_without = 0;
    for (uint32_t seed = 0; seed < 40; seed++) {
        if (!mg_test_takes(seed)) continue;
        struct mg_buf b;
        random_calls(seed, &b);
        for (unsigned k = 0; k < 2 * MG_COUNT_OF(some); k++) {
            struct run r;
            char what[120];
            slim = k >= MG_COUNT_OF(some);
            snprintf(what, sizeof what, "random calls %u, %s%s", seed, some[k % MG_COUNT_OF(some)],
                     slim ? ", slim" : "");
            if (run_both(&r, b.at, "k", 2, 72, 5, some[k % MG_COUNT_OF(some)])) check_witness(&r, what);
            if (k < 2) MG_CHECK(strstr(r.text, "__mg_in") != NULL);
            if (slim && r.text) n_inlined += strstr(r.text, "$__mg_inlined") != NULL;
            if (slim && r.text) n_without += has_func_without_context(r.text);
            release(&r);
        }
        mg_buf_release(&b);
    }
    slim = false;
    MG_CHECK(
        MG_TEST_PART > 1 ||
        (n_inlined > 20 && n_without > 10)); /* functions were put in place, others do without the context's address */
}

/* Constants come from a parameter while their values are what they were, else from memory: words, pairs and a guarded
 * one, of two tables; one table is read at places that are not fixed, too. */
static const char constants[] = HEAD
    ".const .align 4 .b32 one[12] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};\n.const .align 8 .b8 two[96] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24};\n" ENTRY(
        "k") ".shared .align 4 .b32 own[64]; .reg .f32 %f<4>;\n" GID
             "ld.const.u32 %r4, [one+4]; ld.const.u32 %r5, [one+20]; mad.lo.u32 %r4, %r4, 7, %r5; setp.gt.u32 %p1, %r1, 60; @%p1 bra SKIP;\n"
             "ld.const.u32 %r5, [one+28]; mad.lo.u32 %r4, %r4, 7, %r5; ld.const.b32 %r5, [one+32]; mad.lo.u32 %r4, %r4, 7, %r5; ld.const.f32 %f1, [one+36]; mov.b32 %r5, %f1; mad.lo.u32 %r4, %r4, 7, %r5;\n"
             "SKIP: setp.eq.u32 %p2, %r2, 1; mov.u32 %r5, 77; @%p2 ld.const.u32 %r5, [one+44]; mad.lo.u32 %r4, %r4, 7, %r5; ld.const.u32 %r5, [one]; mad.lo.u32 %r4, %r4, 7, %r5;\n"
             "ld.const.u32 %r5, [one+8]; mad.lo.u32 %r4, %r4, 7, %r5; ld.const.u32 %r5, [one+12]; mad.lo.u32 %r4, %r4, 7, %r5;\n"
             "ld.const.v2.u32 {%r5, %r6}, [two+8]; mad.lo.u32 %r4, %r4, 7, %r5; mad.lo.u32 %r4, %r4, 7, %r6; ld.const.u64 %rd5, [two+16]; cvt.u32.u64 %r5, %rd5; mad.lo.u32 %r4, %r4, 7, %r5;\n"
             "ld.const.u8 %r5, [two+19]; mad.lo.u32 %r4, %r4, 7, %r5; ld.const.u16 %r5, [two+22]; mad.lo.u32 %r4, %r4, 7, %r5; ld.const.u32 %r5, [two+12]; mad.lo.u32 %r4, %r4, 7, %r5;\n"
             "ld.const.u32 %r5, [two]; mad.lo.u32 %r4, %r4, 7, %r5; ld.const.u32 %r5, [two+4]; mad.lo.u32 %r4, %r4, 7, %r5; ld.const.u32 %r5, [two+20]; mad.lo.u32 %r4, %r4, 7, %r5;\n"
             "and.b32 %r6, %r1, 3; mul.lo.u32 %r6, %r6, 4; cvt.u64.u32 %rd6, %r6; mov.u64 %rd7, one; add.u64 %rd7, %rd7, %rd6; ld.const.u32 %r5, [%rd7]; mad.lo.u32 %r4, %r4, 7, %r5;\n"
             "st.global.u32 [%rd1], %r4; ret;\n}\n";

MG_TEST(twin_constants)
{
    struct run r;
    for (unsigned turn = 0; turn < 3; turn++) {
        twin_flags = turn ? MG_TWIN_CONSTANTS : 0;
        stale = turn == 2;
        if (run_both(&r, constants, "k", 2, 72, 0, "counters=register,warps=off,sm=90")) {
            check_witness(&r, "constants");
            MG_CHECK_EQ(strstr(r.text, "ld.param.f32") != NULL, twin_flags != 0);
            MG_CHECK_EQ(strstr(r.text, "ld.param.v2.u32") != NULL, twin_flags != 0);
            MG_CHECK_EQ(strstr(r.text, "$__mg_slow:") != NULL, twin_flags != 0);
        }
        release(&r);
    }
    stale = false;
    twin_flags = 0;
}

/* Addresses of variables come with the launch, alone or beside the values of constants; functions look them up. */
MG_TEST(twin_addresses)
{
    static const char text[] =
        ".version 7.0\n.target sm_80\n.address_size 64\n.const .align 4 .b32 one[4] = {7, 1, 4, 1};\n.const .align 4 .b32 big[2000] = {3, 4, 5};\n.global .align 4 .b32 state[4] = {9, 8, 7, 6};\n"
        ".func (.param .b32 v) add (.param .b32 x)\n{\n.reg .b32 %a<4>; ld.param.u32 %a1, [x]; ld.global.u32 %a2, [state+8]; add.u32 %a1, %a1, %a2; st.param.b32 [v], %a1; ret;\n}\n" ENTRY(
            "k") GID
        "mov.u64 %rd5, state; ld.global.u32 %r4, [%rd5+4]; ld.global.u32 %r5, [state]; add.u32 %r4, %r4, %r5; ld.const.u32 %r5, [one+4]; mad.lo.u32 %r4, %r4, 5, %r5;\n"
        "and.b32 %r6, %r1, 3; mul.wide.u32 %rd6, %r6, 4; mov.u64 %rd7, %s; add.u64 %rd7, %rd7, %rd6; ld.const.u32 %r5, [%rd7]; mad.lo.u32 %r4, %r4, 5, %r5; setp.lt.u32 %p1, %r4, 900; @%p1 bra END;\n"
        "%s st.global.u32 [%rd1], %r4;\nEND: ret;\n}\n";
    static const char call[] =
        "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %r4; call (v), add, (a); ld.param.b32 %r4, [v]; }";
    for (unsigned k = 0; k < 16; k++) {
        struct run r;
        struct mg_buf b = MG_BUF_INIT;
        const char *word[] = {k & 1 ? "big" : "one", k & 2 ? call : ""}, **next = word;
        for (const char *c = text; *c; c++) {
            if (!strncmp(c, "%s", 2) && (c[2] == ';' || c[2] == ' '))
                mg_buf_adds(&b, *next++), c++;
            else
                mg_buf_add(&b, c, 1);
        }
        twin_flags = (k & 4 ? MG_TWIN_CONSTANTS : 0) | MG_TWIN_ADDRESSES;
        stale = k & 8;
        if (run_both(&r, b.at, "k", 2, 72, 0, "counters=register,warps=off,sm=90")) {
            check_witness(&r, "addresses");
            MG_CHECK(strstr(r.text, "ld.param.u64 __mg_s, [__mg_known+") != NULL);
            MG_CHECK_EQ(strstr(r.text, "__mg_table") != NULL, (k & 2) != 0);
            MG_CHECK_EQ(strstr(r.text, "$__mg_slow") != NULL, (k & 7) == 4); /* neither a large table nor a function */
        }
        release(&r);
        mg_buf_release(&b);
    }
    stale = false;
    twin_flags = 0;
}

/* With counters in shared memory: the words are cleared in front of both bodies, by code that partly stands behind
 * them. */
MG_TEST(twin_constants_shared)
{
    static const char text[] =
        ".version 7.0\n.target sm_80\n.address_size 64\n.const .align 4 .b32 one[4] = {7, 1, 4, 1};\n" ENTRY("k") GID
        "mov.u32 %r4, %r1; mov.u32 %r6, 0; ld.const.u32 %r5, [one+4];\n"
        "L: mad.lo.u32 %r4, %r4, 5, %r5; and.b32 %r3, %r4, 8; setp.eq.u32 %p1, %r3, 0; @%p1 bra A; st.global.u32 [%rd1], %r4; add.u32 %r4, %r4, 3;\n"
        "A: add.u32 %r6, %r6, 1; and.b32 %r3, %r1, 7; setp.le.u32 %p1, %r6, %r3; @%p1 bra L; st.global.u32 [%rd1], %r4; ret;\n}\n";
    twin_flags = MG_TWIN_CONSTANTS;
    for (unsigned turn = 0; turn < 2; turn++) {
        struct run r;
        stale = turn;
        if (run_both(&r, text, "k", 2, 72, 0, "counters=register,warps=off,sm=90,registers=0")) {
            check_witness(&r, "constants");
            MG_CHECK(strstr(r.text, "$__mg_slow:") && strstr(r.text, "red.shared"));
        }
        release(&r);
    }
    stale = false;
    twin_flags = 0;
}

/* A table that a loop reads at moving places is fetched when the kernel begins; a small one, one of bytes, and one
 * read at fixed places are not. */
MG_TEST(twin_prefetch)
{
    static const struct {
        const char *table, *place;
        bool fetched;
    } cases[] = {
        {".const .align 4 .b32 t[1000] = {7, 1, 4, 1, 5, 9};\n", "[%rd7]", true},
        {".const .align 4 .b32 t[60] = {7, 1};\n", "[%rd7]", false},
        {".const .align 2 .b16 t[200] = {7, 1};\n", "[%rd7]", false},
        {".const .align 4 .b32 t[100] = {7, 1};\n", "[t+4]", false},
    };
    twin_flags = MG_TWIN_CONSTANTS | MG_TWIN_ADDRESSES;
    for (unsigned i = 0; i < MG_COUNT_OF(cases); i++) {
        struct run r;
        struct mg_buf b = MG_BUF_INIT;
        mg_buf_adds(&b, ".version 7.0\n.target sm_80\n.address_size 64\n");
        mg_buf_adds(&b, cases[i].table);
        mg_buf_adds(&b, ENTRY("k") GID "mov.u32 %r4, 0; mov.u32 %r6, 0; mov.u64 %rd7, t;\nL: ld.const.u16 %r5, ");
        mg_buf_adds(&b, cases[i].place);
        mg_buf_adds(
            &b,
            "; mad.lo.u32 %r4, %r4, 3, %r5; add.u64 %rd7, %rd7, 4; add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 30; @%p1 bra L;\n"
            "st.global.u32 [%rd1], %r4; ret;\n}\n");
        if (run_both(&r, b.at, "k", 2, 72, 0, "counters=register,warps=off,sm=90")) {
            check_witness(&r, cases[i].table);
            MG_CHECK_EQ(strstr(r.text, "cp.async.ca") != NULL, cases[i].fetched);
            MG_CHECK_EQ(strstr(r.text, "__mg_table") != NULL,
                        i % 2 == 0); /* neither values nor, in loops, addresses come along */
        }
        release(&r);
        mg_buf_release(&b);
    }
    twin_flags = 0;
}

MG_TEST(tool_blocks_rows)
{
    for (uint32_t seed = 0; seed < 8; seed++) {
        if (!mg_test_takes(seed)) continue;
        struct run r;
        struct mg_buf b;
        random_rows(200 + 20 * seed, seed + 3, &b);
        if (run_both(&r, b.at, "k", 2, 72, 0, "counters=register,warps=off,sm=90")) {
            check_witness(&r, "rows");
            MG_CHECK(strstr(r.text, "__mg_saved") != NULL);
        }
        release(&r);
        mg_buf_release(&b);
    }
}

/* Loops that hold barriers, and no register for counters: all of them, those of what happens once as well, in shared
 * memory. */
MG_TEST(tool_blocks_all_shared)
{
    static const char text[] = HEAD ENTRY(
        "k") ".shared .b32 s[128];\n" GID
             "mul.lo.u32 %r4, %r1, 40503; mov.u32 %r5, 0; mov.u32 %r6, %tid.x; shl.b32 %r6, %r6, 2; mov.u32 %r7, s; add.u32 %r6, %r6, %r7; st.shared.u32 [%r6], %r4;\n"
             "and.b32 %r8, %r2, 3; add.u32 %r8, %r8, 1; and.b32 %r9, %r1, 64; setp.ne.u32 %p6, %r9, 0; @%p6 bra A; xor.b32 %r4, %r4, 5; st.shared.u32 [%r6], %r4;\n"
             "A: bar.sync 0; ld.shared.u32 %r9, [%r6]; and.b32 %r10, %r9, 1; setp.eq.u32 %p1, %r10, 0; @%p1 bra B; mad.lo.u32 %r9, %r9, 3, 1;\n"
             "B: and.b32 %r10, %r9, 6; setp.eq.u32 %p2, %r10, 2; @%p2 bra C; shr.u32 %r9, %r9, 1;\n"
             "C: st.shared.u32 [%r6], %r9; add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r8; @%p3 bra A;\n"
             "and.b32 %r10, %r9, 7; setp.eq.u32 %p4, %r10, 5; @%p4 bra OUT; setp.gt.u32 %p5, %r10, 5; @%p5 exit; st.global.u32 [%rd1], %r9;\nOUT: ret;\n}\n";
    static const uint32_t blocks[] = {1, 20, 32, 33, 72, 128};
    for (unsigned i = 0; i < MG_COUNT_OF(blocks); i++) {
        struct run r;
        if (run_both(&r, text, "k", 6, blocks[i], 0, "counters=register,warps=off,sm=90,registers=0")) {
            check_witness(&r, "all in shared memory");
            MG_CHECK(strstr(r.text, "ld.volatile.shared") != NULL && strstr(r.text, "__mg_k0") == NULL);
        }
        release(&r);
    }
    struct run one = {0}, class = {0}; /* one CTA's counts: not all that are drained */
    if (run_both(&one, text, "k", 6, 72, 0, "counters=register,warps=off,sm=90,registers=0,scope=cta,cta=2") &&
        run_both(&class, text, "k", 6, 72, 0, "counters=class,warps=off,scope=cta,cta=2"))
        for (uint32_t b = 0; b < one.sites->n_blocks; b++) MG_CHECK_EQ(one.threads[b], class.threads[b]);
    release(&one);
    release(&class);
}

/* Where all that leave have counted in shared memory, only the last of a CTA drain it: warps that are not whole and
 * lanes that leave alone add themselves up with the others. Where some leave having counted nothing, whoever leaves
 * drains. */
MG_TEST(tool_blocks_last_drain)
{
    static const char body[] =
        "mov.u32 %r5, 0; and.b32 %r9, %r1, 15; mul.lo.u32 %r4, %r1, 40503;\n"
        "L: add.u32 %r5, %r5, 1; and.b32 %r6, %r4, 7; setp.lt.u32 %p1, %r6, 3; @%p1 bra A; mad.lo.u32 %r4, %r4, 5, 1; bra B;\nA: shr.u32 %r4, %r4, 1; add.u32 %r4, %r4, 77;\n"
        "B: and.b32 %r6, %r4, 24; setp.eq.u32 %p2, %r6, 8; @%p2 bra C; xor.b32 %r4, %r4, 9;\nC: and.b32 %r7, %r4, 3; add.u32 %r7, %r7, %r5; setp.le.u32 %p3, %r7, %r9; @%p3 bra L; st.global.u32 [%rd1], %r4;\n";
    static const struct {
        const char *begin, *end;
        bool adds_up;
    } cases[] = {
        {"", "ret;\n}\n", true},
        {"", "and.b32 %r6, %r4, 1; setp.eq.u32 %p2, %r6, 0; @%p2 exit; st.global.u32 [%rd1], %r5; ret;\n}\n", true},
        {"setp.eq.u32 %p1, %r1, 3; @%p1 ret;\n", "ret;\n}\n", false},
    };
    static const uint32_t blocks[] = {1, 20, 32, 33, 72, 256};
    for (unsigned k = 0; k < MG_COUNT_OF(cases) * MG_COUNT_OF(blocks); k++) {
        struct run r;
        struct mg_buf b = MG_BUF_INIT;
        bool adds_up = cases[k / MG_COUNT_OF(blocks)].adds_up;
        mg_buf_printf(&b, "%s%s%s%s", HEAD ENTRY("k") GID, cases[k / MG_COUNT_OF(blocks)].begin, body,
                      cases[k / MG_COUNT_OF(blocks)].end);
        if (run_both(&r, b.at, "k", 3, blocks[k % MG_COUNT_OF(blocks)], 0,
                     "counters=register,warps=off,sm=90,registers=0")) {
            check_witness(&r, "leave");
            MG_CHECK(strstr(r.text, "red.shared.add") != NULL);
            MG_CHECK_EQ(strstr(r.text, "atom.shared.add") != NULL, adds_up);
        }
        release(&r);
        mg_buf_release(&b);
    }
}

/* Loops that wait for an mbarrier go to memory at once, blocks with a brkpt count no rounds. Warps that hand registers
 * over get some; what happens once is a word, too. */
MG_TEST(tool_blocks_waits)
{
    static const char *const args[] = {"counters=register,warps=off,sm=90,registers=0",
                                       "counters=register,warps=off,sm=90", "counters=register,warps=off",
                                       "counters=register,sm=90"};
    static const char begin[] =
        ".version 8.0\n.target sm_90a\n.address_size 64\n" ENTRY("k") ".shared .align 8 .b64 bar;\n" GID;
    static const char text[] =
        "mov.u32 %r5, %tid.x; mov.u32 %r6, %ntid.x; mov.u32 %r7, bar; setp.ne.u32 %p0, %r5, 0; @%p0 bra GO; mbarrier.init.shared.b64 [%r7], %r6;\nGO: bar.sync 0; mov.u32 %r4, 0; mov.u32 %r8, 0; mul.lo.u32 %r9, %r1, 40503;\n"
        "L: mov.u32 %r5, 0;\n{\n.reg .pred P1;\nWAIT: mbarrier.try_wait.parity.shared.b64 P1, [%r7], %r8, 20; @P1 bra DONE; add.u32 %r5, %r5, 1; setp.eq.u32 %p1, %r5, 3; @%p1 mbarrier.arrive.shared.b64 %rd3, [%r7]; bra WAIT;\nDONE:\n}\n"
        "xor.b32 %r8, %r8, 1; and.b32 %r10, %r9, 5; setp.ne.u32 %p2, %r10, 4; @%p2 bra A; mad.lo.u32 %r9, %r9, 3, 1;\nA: setp.lt.u32 %p3, %r4, 1000; @%p3 bra B; brkpt;\n"
        "B: and.b32 %r10, %r9, 3; setp.eq.u32 %p4, %r10, 1; @%p4 bra C; shr.u32 %r9, %r9, 1;\nC: add.u32 %r4, %r4, 1; setp.lt.u32 %p5, %r4, 5; @%p5 bra L; st.global.u32 [%rd1], %r9; ret;\n}\n";
    for (unsigned k = 0; k < 2 * MG_COUNT_OF(args); k++)
        for (uint32_t threads = 1; threads <= 32; threads += 31) {
            struct run r;
            struct mg_buf b = MG_BUF_INIT;
            bool hands = k & 1, words = k / 2 == 0;
            mg_buf_printf(&b, "%s%s%s", begin, hands ? "setmaxnreg.inc.sync.aligned.u32 232; " : "", text);
            if (run_both(&r, b.at, "k", 2, threads, 0, args[k / 2])) {
                check_witness(&r, args[k / 2]);
                MG_CHECK_EQ(strstr(r.text, "red.global.add.u64 [__mg_ctxp+") != NULL, words);
                MG_CHECK(!words || !hands || strstr(r.text, "__mg_k0") == NULL);
            }
            release(&r);
            mg_buf_release(&b);
        }
}

/* What docs/howto-add-a-storage-class.md asks of each row. */
MG_TEST(tool_storage_classes)
{
    uint32_t n = 0;
    for (const struct mg_storage *s; (s = mg_storage_at(n)); n++) {
        MG_CHECK(s->name && s->event && !s->holds == !s->take);
        MG_CHECK(!s->in_memory || (!s->packed && !s->wide && !s->part)); /* a register or memory */
        MG_CHECK(!s->flush || s->in_memory);
        MG_CHECK(s->in_memory || (s->lane && (s->begin || s->clear)));      /* 0 at the entry */
        MG_CHECK(s->in_memory || s->part || s == mg_storage_at(MG_RC_BIT)); /* whose register is summed whole */
        MG_CHECK(!s->packed || (s->told && !s->wide)); /* else a flush of nothing but its counters is skipped */
        MG_CHECK(!s->packed || !s->holds || s->reg);   /* else each counter had a register of its own */
        MG_CHECK(!s->reg || s->packed);
    }
    MG_CHECK_EQ(n, MG_RC_KINDS);
}

/* Where a class is not asked the next in order holds its counters, whatever their width: what happens once in registers
 * of its own, in bytes or words of local memory, in words of shared memory. */
MG_TEST(tool_storage_in_front)
{
    static const uint32_t unasked[] = {1u << MG_RC_BIT,
                                       1u << MG_RC_FEW,
                                       1u << MG_RC_BIT | 1u << MG_RC_FLAG,
                                       1u << MG_RC_BIT | 1u << MG_RC_FLAG | 1u << MG_RC_FEW,
                                       1u << MG_RC_BIT | 1u << MG_RC_FLAG | 1u << MG_RC_LOCAL,
                                       1u << MG_RC_BIT | 1u << MG_RC_FLAG | 1u << MG_RC_32};
    static const char *const some[] = {"counters=register,sm=90,warps=off", "counters=register,sm=90",
                                       "counters=register,warps=off,scope=warp",
                                       "counters=register,sm=90,warps=off,registers=0"};
    uint32_t n_bits = 0, n_words = 0;
    for (uint32_t seed = 0; seed < 12; seed++) {
        if (!mg_test_takes(seed)) continue;
        struct mg_buf b[2];
        random_kernel(seed, &b[0]);
        random_calls(seed, &b[1]);
        for (unsigned k = 0; k < 2 * MG_COUNT_OF(some) * MG_COUNT_OF(unasked); k++) {
            struct run r;
            char what[120];
            const char *args = some[k / 2 % MG_COUNT_OF(some)];
            mg_storage_unasked = unasked[k / 2 / MG_COUNT_OF(some)];
            snprintf(what, sizeof what, "random %s %u, %s, without %x", k & 1 ? "calls" : "kernel", seed, args,
                     mg_storage_unasked);
            if (run_both(&r, b[k & 1].at, "k", 2, 72, 5, args)) {
                if (!strstr(args, "scope")) check_witness(&r, what);
                n_bits += !(k & 1) && mg_storage_unasked >> MG_RC_BIT & 1 && strstr(r.text, "__mg_k0");
                n_words += mg_storage_unasked >> MG_RC_FLAG & 1 && strstr(r.text, "__mg_c");
            }
            release(&r);
        }
        mg_storage_unasked = 0;
        mg_buf_release(&b[0]);
        mg_buf_release(&b[1]);
    }
    MG_CHECK(!n_bits && (n_words > 100 || MG_TEST_PART > 1));
}

/* Many counters in loops, nested and one behind the other, of which lanes leave early and in pieces: bytes of
 * registers, which some lanes fill up several times. */
MG_TEST(tool_blocks_fields)
{
    static const char *const some[] = {"counters=register,sm=90", "counters=register,warps=off,scope=warp",
                                       "counters=register,sm=90,shards=2"};
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_adds(&b,
                HEAD ENTRY("k") GID "and.b32 %r4, %r1, 31; mul.lo.u32 %r4, %r4, 37; mov.u32 %r5, 0; mov.u32 %r6, 1;\n"
                                    "L: and.b32 %r7, %r5, %r1; setp.eq.u32 %p1, %r7, 1021; @%p1 bra OUT;\n");
    for (unsigned i = 0; i < 17; i++)
        mg_buf_printf(
            &b,
            "shr.u32 %%r7, %%r6, %u; xor.b32 %%r7, %%r7, %%r1; and.b32 %%r7, %%r7, 1; setp.eq.u32 %%p1, %%r7, 0; @%%p1 bra A%u; mad.lo.u32 %%r6, %%r6, 69069, %u;\nA%u:\n",
            i, i, 2 * i + 1, i);
    mg_buf_adds(&b, "and.b32 %r8, %r6, 3;\nM:\n");
    for (unsigned i = 0; i < 4; i++)
        mg_buf_printf(
            &b,
            "shr.u32 %%r7, %%r6, %u; add.u32 %%r7, %%r7, %%r8; and.b32 %%r7, %%r7, 1; setp.eq.u32 %%p1, %%r7, 0; @%%p1 bra B%u; add.u32 %%r6, %%r6, %u;\nB%u:\n",
            5 + i, i, 7 * i + 3, i);
    mg_buf_adds(
        &b,
        "setp.ne.u32 %p1, %r8, 0; sub.u32 %r8, %r8, 1; @%p1 bra M; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r4; @%p1 bra L;\n"
        "OUT: st.global.u32 [%rd1], %r6; ret;\n}\n");
    for (unsigned k = 0; k < MG_COUNT_OF(some); k++) {
        struct run r;
        if (run_both(&r, b.at, "k", 2, 72, 0, some[k])) {
            MG_CHECK(strstr(r.text, "__mg_f") && !strstr(r.text, "__mg_locals"));
            if (!strstr(some[k], "scope")) check_witness(&r, some[k]);
            struct run class;
            if (k == 1 && run_both(&class, b.at, "k", 2, 72, 0, "counters=class,warps=off,scope=warp"))
                for (uint32_t i = 0; i < r.sites->n_blocks; i++) MG_CHECK_EQ(r.threads[i], class.threads[i]);
            if (k == 1) release(&class);
        }
        release(&r);
    }
    mg_buf_release(&b);
}

/* A wait that goes to memory at once while registers still hold what is rarer: its place is not among theirs. */
MG_TEST(tool_blocks_wait_among_registers)
{
    static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n" ENTRY(
        "k") ".shared .align 8 .b64 bar;\n" GID
             "mov.u32 %r5, %tid.x; mov.u32 %r6, %ntid.x; mov.u32 %r7, bar; setp.ne.u32 %p0, %r5, 0; @%p0 bra GO; mbarrier.init.shared.b64 [%r7], %r6;\n"
             "GO: bar.sync 0; mbarrier.arrive.shared.b64 %rd3, [%r7]; and.b32 %r8, %r1, 3; mov.u32 %r4, 0;\n"
             "OUTER: mul.lo.u32 %r9, %r1, 40503;\nV: shr.u32 %r9, %r9, 3; setp.ne.u32 %p1, %r9, 0; @%p1 bra V; mul.lo.u32 %r9, %r1, 30529;\n"
             "W: shr.u32 %r9, %r9, 5; setp.ne.u32 %p1, %r9, 0; @%p1 bra W;\n"
             "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r7], 0, 20; @!%p2 bra WAIT; add.u32 %r4, %r4, 1; setp.le.u32 %p3, %r4, %r8; @%p3 bra OUTER;\n"
             "mov.u32 %r10, 0;\nL: add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, %r4; @%p4 bra L; setp.eq.u32 %p5, %r8, 2; @%p5 bra E; mov.u32 %r10, 0;\n"
             "M: add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, %r4; @%p4 bra M;\nE: st.global.u32 [%rd1], %r9; ret;\n}\n";
    for (unsigned registers = 0; registers <= 12; registers++) {
        struct run r;
        char args[64];
        snprintf(args, sizeof args, "counters=register,warps=off,sm=90,registers=%u", registers);
        if (run_both(&r, text, "k", 2, 64, 0, args)) check_witness(&r, args);
        release(&r);
    }
}

/* Branches that no round of their loop changes are counted behind it. */
MG_TEST(tool_blocks_steady)
{
    static const char *const some[] = {"counters=register,warps=off,sm=90", "counters=register",
                                       "counters=register,warps=off,sm=90,registers=0"};
    uint32_t n = 0, n_own = 0;
    for (uint32_t seed = 0; seed < 80; seed++) {
        if (!mg_test_takes(seed)) continue;
        struct mg_buf b;
        random_steady(seed, &b);
        for (unsigned k = 0; k < MG_COUNT_OF(some); k++) {
            struct run r;
            char what[120];
            snprintf(what, sizeof what, "steady branches %u, %s", seed, some[k]);
            if (run_both(&r, b.at, "k", 2, 72, 5, some[k])) check_witness(&r, what);
            n += r.text && strstr(r.text, "__mg_if");
            n_own += r.text && strstr(r.text, "__mg_own");
            release(&r);
        }
        mg_buf_release(&b);
    }
    if (MG_TEST_PART == 1 && (n < 30 || n_own < 4))
        mg_test_fail(__FILE__, __LINE__, "%u kernels, %u with a register of their own", (unsigned)n, (unsigned)n_own);
}

/* Ways join in one arm of a branch before they join behind it: rows begin all the same. */
MG_TEST(tool_blocks_rows_behind_arms)
{
    struct run r;
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_adds(
        &b, HEAD ENTRY("k") GID
        "mul.lo.u32 %r4, %r1, 2654435; setp.eq.u32 %p1, %r1, 7; @%p1 bra OUT; setp.gt.u32 %p1, %r1, 40; @%p1 bra ELSE;\n"
        "setp.gt.u32 %p2, %r1, 20; @%p2 bra IN; add.u32 %r4, %r4, 5;\nIN: add.u32 %r4, %r4, 6; bra JOIN;\nELSE: add.u32 %r4, %r4, 9;\nJOIN:\n");
    for (unsigned i = 0; i < 180; i++)
        mg_buf_printf(
            &b,
            "and.b32 %%r5, %%r4, %u; setp.eq.u32 %%p2, %%r5, 0; @%%p2 bra L%u;\nmad.lo.u32 %%r4, %%r4, 7, 1;\nL%u: mad.lo.u32 %%r4, %%r4, 1664525, 3;\n",
            1u << i % 7, i, i);
    mg_buf_adds(&b, "OUT: st.global.u32 [%rd1], %r4; ret;\n}\n");
    if (run_both(&r, b.at, "k", 2, 72, 0, "counters=register,warps=off,sm=90")) {
        check_witness(&r, "rows behind arms");
        MG_CHECK(strstr(r.text, "__mg_saved") != NULL && strstr(r.text, "st.local.u8") == NULL);
    }
    release(&r);
    mg_buf_release(&b);
}

/* What counters hold after 2^40 events of each lane, put there before the first: sums are exact in
 * either way of adding, and what 32 bits cannot hold goes to memory at once. */
static const char *preset_from, *preset_to;
static bool preset_all; /* wherever it stands, else once */

static char *replace(char *text, const char *what, const char *with, bool everywhere)
{
    char *at = what ? strstr(text, what) : NULL;
    if (!at) return text;
    struct mg_buf b = MG_BUF_INIT;
    const char *from = text;
    for (; at; at = everywhere ? strstr(from, what) : NULL) {
        mg_buf_add(&b, from, (size_t)(at - from));
        mg_buf_adds(&b, with);
        from = at + strlen(what);
    }
    mg_buf_adds(&b, from);
    free(text);
    return mg_buf_take(&b);
}

static char *preset(char *text)
{
    text = replace(text, preset_from, preset_to, preset_all);
    return preset_all ? replace(text, ", 4227858432;", ", 4294967295;", true) : text; /* what is drained is large */
}

/* Outer rounds have no bound that is known: its edge needs 64 bits; the inner loop's count carries. */
static const char wide_counts[] =
    HEAD ENTRY("k") GID "mov.u32 %r4, %r1;\n"
                        "A: mad.lo.u32 %r4, %r4, 5, 3; and.b32 %r5, %r4, 3; add.u32 %r6, %r5, 2;\n"
                        "B: add.s32 %r6, %r6, -1; setp.ne.s32 %p1, %r6, 0; @%p1 bra B;\n"
                        "setp.ne.u32 %p2, %r5, 0; @%p2 bra A;\n"
                        "st.global.u32 [%rd1], %r4; ret;\n}\n";
static const char one_loop[] =
    HEAD ENTRY("k") GID "mov.u32 %r4, %r1; setp.ge.u32 %p3, %r1, 1000; @%p3 bra OUT;\n"
                        "A: mad.lo.u32 %r4, %r4, 5, 3; and.b32 %r5, %r4, 3; setp.ne.u32 %p2, %r5, 0; @%p2 bra A;\n"
                        "OUT: st.global.u32 [%rd1], %r4; ret;\n}\n";

/* mov: of the counter's register, of 32 bits or 64; for an H200 (sm=90) the latter is a double that begins with 2^52.
 */
static void check_preset(const char *text, uint32_t block, const char *mov, uint64_t more, uint32_t threads)
{
    for (unsigned sm = 0; sm <= 90; sm += 90) {
        struct run r, p;
        char args[64], from[64], to[64];
        uint64_t zero = sm && strstr(mov, "u64") ? 0x4330000000000000 : 0;
        snprintf(from, sizeof from, "%s, %llu;", mov, (unsigned long long)zero);
        snprintf(to, sizeof to, "%s, %llu;", mov, (unsigned long long)(zero + more));
        snprintf(args, sizeof args, "counters=register,warps=off,sm=%u", sm);
        preset_from = NULL;
        bool ok = run_both(&r, text, "k", 1, threads, 0, args);
        preset_from = from;
        preset_to = to;
        ok = run_both(&p, text, "k", 1, threads, 0, args) && ok;
        preset_from = NULL;
        if (ok && !strstr(p.text, to)) mg_test_fail(__FILE__, __LINE__, "no \"%s\" in the twin", from);
        if (ok) MG_CHECK_EQ(p.threads[block] - r.threads[block], more * threads);
        release(&r);
        release(&p);
    }
}

MG_TEST(tool_blocks_wide_counts)
{
    uint64_t far = (1ull << 40) + 12345;
    check_preset(one_loop, 1, "mov.u64 __mg_c", far, 64);
    check_preset(one_loop, 1, "mov.u64 __mg_c", far, 33);
    check_preset(one_loop, 1, "mov.u64 __mg_c", 134217726, 64); /* just fits a sum of 32 bits */
    check_preset(one_loop, 1, "mov.u64 __mg_c", 4294967295u, 64);
    check_preset(wide_counts, 1, "mov.u32 __mg_c", 4294967294u, 64); /* runs over in the loop */
    check_preset(wide_counts, 1, "mov.u32 __mg_c", 4294967294u, 33);
}

/* Counters in shared memory, and those of 32 bits whose rounds are counted, drained while the kernel runs: made to do
 * so every 8 rounds, and to put loops of two rounds and more aside, random kernels still count what the witness says.
 */
MG_TEST(tool_blocks_shared)
{
    static const struct {
        const char *from, *to, *args;
    } cases[] = {
        /* ORDER MOST_ROUNDS, MOST_STEPS of count/shared.c */
        {"add.u32 __mg_r, __mg_r, 1048576;", "add.u32 __mg_r, __mg_r, 536870912;",
         "counters=register,warps=off,sm=90,registers=0"},
        {"add.u32 __mg_r, __mg_r, 1048576;", "add.u32 __mg_r, __mg_r, 536870912;", "counters=register,warps=off,sm=90"},
        {", 511;", ", 2;", "counters=register,warps=off,sm=90,registers=0"},
    };
    uint32_t n[MG_COUNT_OF(cases)] = {0};
    preset_all = true;
    for (uint32_t seed = 0; seed < 60; seed++) {
        if (!mg_test_takes(seed)) continue;
        struct mg_buf b;
        random_kernel(seed, &b);
        for (unsigned k = 0; k < MG_COUNT_OF(cases); k++) {
            struct run r;
            preset_from = cases[k].from;
            preset_to = cases[k].to;
            if (run_both(&r, b.at, "k", 2, 72, 5, cases[k].args)) check_witness(&r, preset_to);
            n[k] += r.text && strstr(r.text, preset_to) != NULL;
            release(&r);
        }
        mg_buf_release(&b);
    }
    preset_from = NULL;
    preset_all = false;
    for (unsigned k = 0; k < MG_COUNT_OF(cases); k++)
        if (MG_TEST_PART == 1 && n[k] < 4)
            mg_test_fail(__FILE__, __LINE__, "%s: %u kernels", cases[k].from, (unsigned)n[k]);
}

/* One body of a loop of four, or of its rest: two branches on what the thread's word in shared memory holds. */
static void put_body(struct mg_buf *b, unsigned k, bool waits)
{
    mg_buf_printf(
        b,
        "%sld.shared.u32 %%r9, [%%r6]; and.b32 %%r10, %%r9, 1; setp.eq.u32 %%p1, %%r10, 0; @%%p1 bra X%u; mad.lo.u32 %%r9, %%r9, 3, 1; st.global.u32 [%%rd1], %%r9;\n",
        waits ? "bar.sync 0; " : "", k);
    mg_buf_printf(
        b,
        "X%u: and.b32 %%r10, %%r9, 6; setp.eq.u32 %%p2, %%r10, 2; @%%p2 bra Y%u; shr.u32 %%r9, %%r9, 1; xor.b32 %%r9, %%r9, 21;\nY%u: st.shared.u32 [%%r6], %%r9;\n",
        k, k, k);
}

/* n rounds, four at a time and the rest one by one; a rest that differs from thread to thread, and that some leave
 * early. */
static void rest_kernel(struct mg_buf *b, bool same, bool wide, bool up)
{
    const char *t = wide ? "64" : "32", *x = wide ? "%rd10" : "%r12", *i = wide ? "%rd11" : "%r13";
    mg_buf_adds(
        b,
        HEAD ENTRY(
            "k") ".shared .b32 s[256];\n" GID
                 "mul.lo.u32 %r4, %r1, 40503; mov.u32 %r6, %tid.x; shl.b32 %r6, %r6, 2; mov.u32 %r7, s; add.u32 %r6, %r6, %r7; st.shared.u32 [%r6], %r4;\n"
                 "ld.param.u32 %r11, [n]; setp.eq.u32 %p3, %r11, 0; @%p3 bra OUT; setp.lt.u32 %p4, %r11, 4; @%p4 bra REST;\nand.b32 %r14, %r11, 4092;\nFOUR:\n");
    for (unsigned k = 0; k < 4; k++) put_body(b, k, true);
    mg_buf_printf(b, "add.s32 %%r14, %%r14, -4; setp.ne.s32 %%p5, %%r14, 0; @%%p5 bra FOUR;\nREST: ");
    mg_buf_adds(b, same ? "mov.b32 %r16, %r11; " : "shr.u32 %r15, %r4, 3; add.u32 %r16, %r11, %r15; ");
    if (wide)
        mg_buf_printf(b, "cvt.u64.u32 %%rd12, %%r16; and.b64 %s, %%rd12, 3; ", x);
    else
        mg_buf_printf(b, "and.b32 %s, %%r16, 3; ", x);
    mg_buf_printf(b, "setp.eq.s%s %%p7, %s, 0; @%%p7 bra OUT; %s.%s%s %s, %s;\nONE:\n", t, x, up ? "neg" : "mov",
                  up ? "s" : "b", t, i, x);
    put_body(b, 9, same);
    if (!same) mg_buf_printf(b, "and.b32 %%r10, %%r9, 15; setp.eq.u32 %%p6, %%r10, 9; @%%p6 exit; ");
    mg_buf_printf(
        b,
        "add.s%s %s, %s, %d; setp.ne.s%s %%p0, %s, 0; @%%p0 bra ONE;\nOUT: ld.shared.u32 %%r9, [%%r6]; and.b32 %%r10, %%r9, 7; setp.ne.u32 %%p6, %%r10, 3; @%%p6 bra END; xor.b32 %%r9, %%r9, 1; st.global.u32 [%%rd1], %%r9;\nEND: ret;\n}\n",
        t, i, i, up ? 1 : -1, t, i);
}

/* What happens a few times at most is packed; words in shared memory of a loop that is not run are neither cleared nor
 * looked at. */
MG_TEST(tool_blocks_rest)
{
    static const uint32_t threads[] = {32, 256, 20, 72}, rounds[] = {0, 1, 2, 3, 4, 5, 7, 8, 40};
    static const char *const some[] = {"counters=register,warps=off,sm=90,registers=0",
                                       "counters=register,warps=off,sm=90", "counters=register",
                                       "counters=register,warps=off,sm=70"};
    for (unsigned kind = 0; kind < 8; kind++) {
        if (!mg_test_takes(kind)) continue;
        struct mg_buf b = MG_BUF_INIT;
        rest_kernel(&b, kind & 1, kind & 2, kind & 4);
        for (unsigned k = 0; k < MG_COUNT_OF(threads) * MG_COUNT_OF(rounds) * MG_COUNT_OF(some); k++) {
            const char *args = some[k % MG_COUNT_OF(some)];
            bool packed = k % MG_COUNT_OF(some) < 2, words = k % MG_COUNT_OF(some) == 0, drained = words && kind & 2;
            uint32_t t = threads[k / MG_COUNT_OF(some) % MG_COUNT_OF(threads)],
                     n = rounds[k / MG_COUNT_OF(some) / MG_COUNT_OF(threads)];
            struct run r;
            char what[120];
            preset_from = drained ? "add.u32 __mg_r, __mg_r, 1048576;" : NULL;
            preset_to = drained ? "add.u32 __mg_r, __mg_r, 536870912;" : NULL;
            snprintf(what, sizeof what, "rest %u, %u threads, %u rounds, %s", kind, (unsigned)t, (unsigned)n, args);
            if (run_both(&r, b.at, "k", 3, t, n, args)) {
                check_witness(&r, what);
                if ((strstr(r.text, "__mg_few") != NULL) != packed)
                    mg_test_fail(__FILE__, __LINE__, "%s: packed or not", what);
                MG_CHECK((strstr(r.text, "__mg_shared") != NULL) == words);
            }
            release(&r);
        }
        mg_buf_release(&b);
    }
    preset_from = NULL;
}

/* Counters that are below 8 in every lane of a whole warp are summed four at a time; one lane with more, or a warp that
 * is not whole, and they go one by one. */
MG_TEST(tool_blocks_small)
{
    static const uint32_t threads[] = {32, 256, 20, 72}, bits[] = {0, 1, 0x2, 0x7f, 0xff, 0xffff, 0xffffffff};
    for (uint32_t n = 2; n < 40; n = n < 12 ? n + 1 : n + 13) {
        struct mg_buf b = MG_BUF_INIT;
        mg_buf_adds(&b, HEAD ENTRY("k") GID "ld.param.u32 %r3, [n]; mul.lo.u32 %r4, %r1, 40503; mov.u32 %r8, 0;\n");
        for (uint32_t i = 0; i < n; i++) /* as many rounds as bits are set */
            mg_buf_printf(
                &b,
                "mad.lo.u32 %%r4, %%r4, 1664525, 1013904223; shr.u32 %%r5, %%r4, 7; and.b32 %%r5, %%r5, %%r3; setp.eq.u32 %%p0, %%r5, 0; @%%p0 bra D%u;\n"
                "L%u: add.u32 %%r6, %%r5, -1; and.b32 %%r5, %%r5, %%r6; mad.lo.u32 %%r8, %%r8, 3, %%r5; setp.ne.u32 %%p1, %%r5, 0; @%%p1 bra L%u;\nD%u:\n",
                (unsigned)i, (unsigned)i, (unsigned)i, (unsigned)i);
        mg_buf_adds(&b, "st.global.u32 [%rd1], %r8; ret;\n}\n");
        for (unsigned k = 0; k < MG_COUNT_OF(threads) * MG_COUNT_OF(bits); k++) {
            struct run r;
            char what[80];
            snprintf(what, sizeof what, "%u loops, %u threads, mask %x", (unsigned)n, (unsigned)threads[k % 4],
                     (unsigned)bits[k / 4]);
            if (run_both(&r, b.at, "k", 3, threads[k % 4], bits[k / 4], "counters=register,warps=off,sm=90")) {
                check_witness(&r, what);
                MG_CHECK_EQ(strstr(r.text, ", 65536, __mg_t") != NULL, n > 3);
            }
            release(&r);
        }
        mg_buf_release(&b);
    }
}

/* What every CTA does alike, CTA 0 counts for all: what follows from the parameters, the shape and the thread's place.
 * What follows from the CTA's number, from memory or other threads, or stands behind a branch on such, each CTA counts.
 */
MG_TEST(tool_blocks_alike)
{
#define LOOP(a, b, part, bound) /* part: sets %p1 */                                                                   \
    "mov.u32 %r6, 0;\n" a ": add.u32 %r6, %r6, 1; " part " @%p1 bra " b                                                \
    "; mad.lo.u32 %r9, %r9, 5, 1; st.global.u32 [%rd1], %r9;\n" b ": setp.lt.u32 %p2, %r6, " bound "; @%p2 bra " a     \
    ";\n"
    static const char begin[] = HEAD ENTRY("k") GID "ld.param.u32 %r4, [n]; mov.u32 %r5, %tid.x; mov.u32 %r9, %r1;\n";
    static const char *const end = "st.global.u32 [%rd1], %r9; ret;\n}\n";
    static const struct {
        const char *body;
        bool alike;
    } cases[] = {
        {LOOP("A", "B", "and.b32 %r7, %r5, %r6; setp.eq.u32 %p1, %r7, 1;", "%r4"), true},
        {LOOP("A", "B", "and.b32 %r7, %r2, %r6; setp.eq.u32 %p1, %r7, 1;", "%r4"), false},
        {"ld.global.u32 %r8, [%rd1]; add.u32 %r8, %r8, %r2;\n" LOOP(
             "A", "B", "and.b32 %r7, %r5, %r6; setp.eq.u32 %p1, %r7, 1;", "%r8"),
         false},
        {"and.b32 %r8, %r2, 1; setp.eq.u32 %p3, %r8, 0; @%p3 bra C;\n" LOOP(
             "A", "B", "and.b32 %r7, %r5, %r6; setp.eq.u32 %p1, %r7, 1;", "%r4") "C:\n",
         false},
        {"setp.gt.u32 %p3, %r1, 100; @%p3 exit;\n" LOOP("A", "B", "and.b32 %r7, %r5, %r6; setp.eq.u32 %p1, %r7, 1;",
                                                        "%r4"),
         false},
        {"mov.u32 %r8, 0;\nC: add.u32 %r8, %r8, 1; setp.lt.u32 %p3, %r8, %r2; @%p3 bra C;\n" LOOP(
             "A", "B", "setp.eq.u32 %p1, %r6, %r8;", "%r4"),
         false},
        {"mov.u32 %r8, 0; setp.eq.u32 %p3, %r2, 1; @%p3 mov.u32 %r8, 3;\n" LOOP("A", "B", "setp.gt.u32 %p1, %r6, %r8;",
                                                                                "%r4"),
         false},
        {"mov.u32 %r8, 7; setp.ne.u32 %p3, %r2, 1; @%p3 bra C; mov.u32 %r8, 3;\nC:\n" LOOP(
             "A", "B", "and.b32 %r7, %r5, %r6; setp.eq.u32 %p1, %r7, 1;", "%r8"),
         false},
        {"vote.sync.ballot.b32 %r8, %p1, -1; and.b32 %r8, %r8, 0; add.u32 %r8, %r8, %r4;\n" LOOP(
             "A", "B", "and.b32 %r7, %r5, %r6; setp.eq.u32 %p1, %r7, 1;", "%r8"),
         false},
        {LOOP("A", "B", "and.b32 %r7, %r5, %r6; setp.eq.u32 %p1, %r7, 1;", "%r4") "and.b32 %r8, %r2, 1; setp.eq.u32 %p3, %r8, 0; @%p3 bra D; xor.b32 %r9, %r9, 5; st.global.u32 [%rd1], %r9;\nD:\n" LOOP(
             "E", "F", "setp.eq.u32 %p1, %r6, 2;", "%r4"),
         false},
    };
    for (unsigned k = 0; k < MG_COUNT_OF(cases); k++)
        for (unsigned t = 0; t < 2; t++) {
            char text[4000], what[60];
            struct run r;
            snprintf(text, sizeof text, "%s%s%s", begin, cases[k].body, end);
            snprintf(what, sizeof what, "alike %u", k);
            if (run_both(&r, text, "k", 5, t ? 72 : 64, 6,
                         t ? "counters=register,warps=off" : "counters=register,warps=off,sm=90")) {
                check_witness(&r, what);
                MG_CHECK_EQ(strstr(r.text, ", %ctaid.z;") != NULL, cases[k].alike);
            }
            release(&r);
        }
#undef LOOP
}

/* Where lanes leave: a fence keeps a rare last block one of its own, and the flush asks whether anything was counted
 * where lanes that counted nothing are likely, not where all have: gone round a loop, or past it. */
MG_TEST(tool_blocks_leave)
{
    static const char long_arm[] =
        "mad.lo.u32 %r9, %r9, 5, 1; mad.lo.u32 %r9, %r9, 7, 3; xor.b32 %r9, %r9, 5; mad.lo.u32 %r9, %r9, 5, 1; xor.b32 %r9, %r9, 9; st.global.u32 [%rd1], %r9;\n";
    static const struct {
        const char *body[2];
        bool fence, asks;
    } cases[] = {
        {{"setp.ne.u32 %p1, %r1, 7; @%p1 bra OUT;\n", long_arm}, true, true},
        {{"setp.ne.u32 %p1, %r1, 7; @%p1 bra OUT;\n", "xor.b32 %r9, %r9, 5; st.global.u32 [%rd1], %r9;\n"},
         false,
         true},
        {{"mov.u32 %r6, 0; setp.lt.s32 %p1, %r4, 1; @%p1 bra OUT;\nA: mad.lo.u32 %r9, %r9, 5, %r6; add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, %r4; @%p2 bra A;\n",
          "st.global.u32 [%rd1], %r9;\n"},
         false,
         false},
    };
    for (unsigned k = 0; k < MG_COUNT_OF(cases); k++) {
        char text[4000], what[60];
        struct run r;
        snprintf(text, sizeof text, "%s%s%s%s", HEAD ENTRY("k") GID "ld.param.u32 %r4, [n]; mov.u32 %r9, %r1;\n",
                 cases[k].body[0], cases[k].body[1], "OUT: ret;\n}\n");
        snprintf(what, sizeof what, "leave %u", k);
        if (run_both(&r, text, "k", 3, 96, 6, "counters=register,warps=off,sm=90")) {
            check_witness(&r, what);
            MG_CHECK_EQ(strstr(r.text, "fence.acq_rel.cta;") != NULL, cases[k].fence);
            MG_CHECK_EQ(strstr(r.text, "@!__mg_p bra $__mg_flush;") != NULL, cases[k].asks);
        }
        release(&r);
    }
}

/* n diamonds on what is loaded from memory, then what is given, # a letter for labels of its own; lanes leave with a
 * last block in common. */
static void lone_kernel(struct mg_buf *b, const char *ask, unsigned n, const char *then)
{
    mg_buf_adds(
        b, HEAD
        ".func (.param .b32 v) odd (.param .b32 x)\n{\n.reg .b32 %a<4>; .reg .pred %q;\nld.param.u32 %a1, [x]; and.b32 %a2, %a1, 1; setp.eq.u32 %q, %a2, 0; @%q bra EVEN; mad.lo.u32 %a1, %a1, 3, 1;\nEVEN: st.param.b32 [v], %a1; ret;\n}\n" ENTRY(
            "k") GID "ld.param.u32 %r4, [n]; mul.lo.u32 %r9, %r1, 40503; mov.u32 %r5, %tid.x;\n");
    mg_buf_printf(b, "and.b32 %%r6, %%r2, 1; setp.eq.u32 %%p3, %%r6, 0; @%%p3 bra SECOND; %s @%%p1 bra OUT;\n", ask);
    for (unsigned side = 0; side < 2; side++) {
        for (unsigned k = 0; k < n; k++)
            mg_buf_printf(
                b,
                "and.b32 %%r10, %%r9, %u; setp.eq.u32 %%p2, %%r10, 0; @%%p2 bra D%u_%u; mad.lo.u32 %%r9, %%r9, 5, %u;\nD%u_%u: xor.b32 %%r9, %%r9, 21;\n",
                1u << k % 5, side, k, k, side, k);
        for (const char *c = then; *c; c++) mg_buf_printf(b, "%c", *c == '#' ? 'A' + (int)side : *c);
        mg_buf_adds(b, side ? "st.global.u32 [%rd1], %r9;\nOUT: ret;\n}\n"
                            : "bra.uni OUT;\nSECOND: setp.eq.u32 %p4, %r5, 33; @!%p4 bra OUT;\n");
    }
}

/* A kernel that is one lane's work adds its events to memory one by one, whatever else its loops and callees count. */
MG_TEST(tool_blocks_alone)
{
    static const char lone[] = "setp.ne.u32 %p1, %r5, 0;";
    static const char round[] =
        "mov.u32 %r6, 0;\nL#: and.b32 %r10, %r9, 3; setp.eq.u32 %p2, %r10, 1; @%p2 bra M#; mad.lo.u32 %r9, %r9, 5, 1;\nM#: add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, %r4; @%p2 bra L#;\n";
    static const char call[] =
        "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %r9; call (v), odd, (a); ld.param.b32 %r9, [v]; }\n";
    static const struct {
        const char *ask, *then;
        unsigned n;
        bool alone;
    } cases[] = {
        {lone, "", 20, true},
        {lone, call, 20, true},
        {lone, round, 20, true},
        {"setp.eq.u32 %p1, 0, %r5; not.pred %p1, %p1;", "", 20, false},
        {"setp.ne.u32 %p1, %r1, 0;", "", 20, false},
        {lone, "", 12, false},
        {"setp.ne.and.u32 %p1, %r5, 0, %p3;", "", 20, false},
        {"setp.gt.u32 %p1, %r5, 0;", "", 20, false},
        {lone, "setp.eq.u32 %p2, %r9, 77; @%p2 exit;\n", 20, false},
        {lone, "setp.ne.u32 %p2, %r9, 77; @%p2 bra OUT;\n", 20, true},
        {lone,
         "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %r9; call (v), odd, (a); ld.param.b32 %r9, [v]; } setp.ne.u32 %p2, %r9, 77; @%p2 bra OUT;\n",
         20, true},
    };
    static const char *const args[] = {"counters=register,warps=off,sm=90", "counters=register,warps=off",
                                       "counters=register,sm=90"};
    for (unsigned k = 0; k < MG_COUNT_OF(cases); k++)
        for (unsigned t = 0; t < 2 * MG_COUNT_OF(args); t++) {
            char what[60];
            struct run r;
            struct mg_buf b = MG_BUF_INIT;
            bool alone = cases[k].alone && t < 4;
            lone_kernel(&b, cases[k].ask, cases[k].n, cases[k].then);
            snprintf(what, sizeof what, "alone %u %u", k, t);
            if (run_both(&r, b.at, "k", 5, t & 1 ? 72 : 64, 6, args[t / 2])) {
                check_witness(&r, what);
                MG_CHECK_EQ(strstr(r.text, "__mg_one;") != NULL, alone);
                if (alone) MG_CHECK(!strstr(r.text, "sync"));
            }
            release(&r);
            mg_buf_release(&b);
        }
}

/* Shared arrays of whole 16 bytes are aligned so; the one whose size the launch gives only where it lies as before. */
MG_TEST(twin_aligns_shared)
{
    static const char a[] =
        HEAD ".extern .shared .align 4 .b8 d[];\n.shared .align 4 .b8 s[64];\n.shared .align 4 .f32 one[7];\n" ENTRY(
            "k") " .shared .align 1 .b8 t[20]; .shared .align 8 .f64 w[4]; ret;\n}\n";
    static const char b[] = HEAD ".extern .shared .align 4 .b8 d[];\n" ENTRY("k") " .shared .f32 s[8]; ret;\n}\n";
    static const struct {
        const char *text, *name;
        uint32_t align;
    } want[] = {
        {a, "d", 4}, {a, "s", 16}, {a, "one", 4}, {a, "t", 1}, {a, "w", 16}, {b, "d", 16}, {b, "s", 16},
    };
    for (unsigned i = 0; i < MG_COUNT_OF(want); i++) {
        struct mg_module *m = parse(want[i].text);
        mg_twin_align_shared(m);
        for (mg_id k = 1; k < m->vars.n; k++)
            if (!strcmp(mg_name(m, m->vars.at[k].name), want[i].name))
                MG_CHECK_EQ(mg_var_align(&m->vars.at[k]), want[i].align);
        mg_module_free(m);
    }
}

/* Lanes that are apart come together in front of barriers of all threads, and of no others; two halves of a warp that
 * arrive at two barriers still do. */
MG_TEST(twin_gathers_lanes)
{
    struct mg_module *m = parse(HEAD ".shared .u32 s[64];\n" ENTRY(
        "k") "ld.param.u64 %rd1, [o]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;\n"
             "mov.u32 %r3, s; mad.lo.u32 %r3, %r1, 4, %r3; @%p1 bra $even;\n"
             "st.shared.u32 [%r3], %r1; barrier.sync 0; barrier.sync 1, 64; bra $on;\n"
             "$even: st.shared.u32 [%r3], 100; @%p1 barrier.sync 0; barrier.sync 1, 64;\n"
             "$on: barrier.sync.aligned 2; bar.sync 3; xor.b32 %r4, %r1, 1; mov.u32 %r5, s; mad.lo.u32 %r5, %r4, 4, %r5;\n"
             "ld.shared.u32 %r6, [%r5]; mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r6; ret;\n}\n");
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_twin *t = NULL;
    struct mg_buf b = MG_BUF_INIT;
    if (!m) return;
    MG_CHECK_EQ(mg_twin_new(m, mg_module_find_func(m, "k"), &t, &d), MG_ERR_OK);
    mg_twin_for_gpu(t);
    mg_ptx_print(t->m, &b);
    unsigned n = 0;
    for (const char *at = b.at; (at = strstr(at, "bar.warp.sync 4294967295;")); at++, n++)
        MG_CHECK(!strncmp(strchr(at, '\n'), n ? "\n\t@%p1 barrier.sync 0;" : "\n\tbarrier.sync 0;", n ? 22 : 17));
    MG_CHECK_EQ(n, 2);
    MG_CHECK(strstr(b.at, "@%p1 bar.warp.sync"));
    struct mg_dmod *apart = load(b.at);
    uint64_t out = mg_mem_alloc(64 * 4, 256, MG_ALLOC_DEVICE);
    struct {
        uint64_t out;
        uint32_t n, pad;
        uint64_t ctx, pad2;
    } params = {.out = out};
    MG_CHECK(apart && launch(apart, "k", 1, 64, &params, 24));
    for (uint32_t i = 0; i < 64; i++) MG_CHECK_EQ(((uint32_t *)(uintptr_t)out)[i], i & 1 ? 100 : i + 1);
    mg_mem_free(out);
    if (apart) mg_emu_ops.module_unload(apart);
    mg_buf_release(&b);
    mg_twin_free(t);
    mg_module_free(m);
}

/* Products and sums that code with a branch was inserted between compute what they compute without it. */
MG_TEST(twin_contracts)
{
    static const char body[] =
        "ld.param.u64 %rd1, [o]; mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1; fma.rn.f32 %f1, %f1, 0f3F9D3A21, 0f3F800001;\n"
        "mul.wide.u32 %rd2, %r1, 48; add.u64 %rd1, %rd1, %rd2; mov.f32 %f2, 0f3FAAAAAB; mov.f32 %f3, 0fBFD55555;\n"
        "mul.f32 %f4, %f1, %f2; add.f32 %f5, %f4, %f3; st.global.f32 [%rd1], %f5;\n"
        "mul.f32 %f6, %f1, %f1; sub.f32 %f7, %f6, %f2; st.global.f32 [%rd1+4], %f7;\n"
        "mul.ftz.f32 %f8, %f2, %f1; sub.ftz.f32 %f9, %f3, %f8; st.global.f32 [%rd1+8], %f9;\n"
        "mul.f32 %f10, %f1, %f2; add.sat.f32 %f11, %f3, %f10; st.global.f32 [%rd1+12], %f11;\n"
        "mul.f32 %f12, %f1, %f3; add.f32 %f13, %f12, %f2; st.global.f32 [%rd1+16], %f12; st.global.f32 [%rd1+20], %f13;\n"
        "mul.rn.f32 %f14, %f1, %f3; add.f32 %f15, %f14, %f2; st.global.f32 [%rd1+24], %f15;\n"
        "cvt.f64.f32 %d1, %f1; mul.f64 %d2, %d1, 0d3FF5555555555555; sub.f64 %d3, %d2, %d1; st.global.f64 [%rd1+32], %d3;\n"
        "mul.f32 %f16, %f1, %f1; mov.b32 %r2, %f16; bra.uni on; on: mov.b32 %f17, %r2; neg.f32 %f18, %f17; sub.f32 %f19, %f2, %f18; st.global.f32 [%rd1+40], %f19; ret;\n}\n";
    struct mg_buf text = MG_BUF_INIT, b = MG_BUF_INIT;
    mg_buf_printf(&text, "%s.reg .f32 %%f<20>; .reg .f64 %%d<8>; %s", HEAD ENTRY("k"), body);
    struct mg_module *m = parse(text.at);
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_twin *t = NULL;
    uint32_t n_fma = 0, n = 0;
    if (!m) return;
    MG_CHECK_EQ(mg_twin_new(m, mg_module_find_func(m, "k"), &t, &d), MG_ERR_OK);
    mg_id func = t->funcs[0], next;
    for (mg_id id = t->m->funcs.at[func].first_node; id; id = next) {
        const struct mg_node *k = &t->m->nodes.at[id];
        next = k->next;
        if (k->kind != MG_NODE_inst || mg_node_form(t->m, k)->op != MG_OP_mul || mg_node_form(t->m, k)->n_types != 1)
            continue;
        char name[20];
        snprintf(name, sizeof name, "$split%u", n++);
        mg_id label = mg_module_add_label(t->m, func, name);
        mg_node_insert_after(t->m, func, id, mg_node_new_kind(t->m, MG_NODE_label, label));
        mg_node_insert_after(t->m, func, id, mg_node_new(t->m, "bra", (struct mg_opnd[]){mg_o_label(label)}, 1));
    }
    mg_twin_contract(t);
    mg_ptx_print(t->m, &b);
    for (const char *at = b.at; (at = strstr(at, "fma.rn")); at++) n_fma++;
    MG_CHECK_EQ(n_fma, 1 + 6); /* not the product that somebody else sees, nor the rounded one */
    struct mg_dmod *whole = load(text.at), *split = load(b.at);
    uint64_t out = mg_mem_alloc(64 * 48, 256, MG_ALLOC_DEVICE);
    struct {
        uint64_t out;
        uint32_t n, pad;
        uint64_t ctx, pad2;
    } params = {.out = out};
    static uint32_t want[64 * 12];
    memset((void *)(uintptr_t)out, 0, sizeof want);
    MG_CHECK(whole && launch(whole, "k", 1, 64, &params, 12));
    memcpy(want, (void *)(uintptr_t)out, sizeof want);
    memset((void *)(uintptr_t)out, 0, sizeof want);
    MG_CHECK(split && launch(split, "k", 1, 64, &params, 24));
    MG_CHECK(!memcmp(want, (void *)(uintptr_t)out, sizeof want));
    mg_mem_free(out);
    if (whole) mg_emu_ops.module_unload(whole);
    if (split) mg_emu_ops.module_unload(split);
    mg_buf_release(&text);
    mg_buf_release(&b);
    mg_twin_free(t);
    mg_module_free(m);
}

MG_TEST(twin_refusals)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {HEAD ".global .texref t;\n.global .samplerref s;\n" ENTRY(
             "k") ".reg .f32 %f<5>; mov.u32 %r1, 0; tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [t, s, {%r1}]; ret;\n}\n",
         "sampler reference s"},
        {HEAD ".extern .func (.param .b32 r) cudaLaunchDeviceV2 (.param .b64 a, .param .b64 b);\n" ENTRY(
             "k") "{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %rd1; st.param.b64 [b], %rd1; call (c), cudaLaunchDeviceV2, (a, b); } ret;\n}\n",
         "device-side launch"},
        {".version 4.0\n.target sm_20\n.address_size 32\n.entry k (.param .u32 o) { ret; }\n", "32-bit addresses"},
        {HEAD ENTRY("k") "isspacep.const %p1, %rd1; ret;\n}\n", "constant window"},
        {HEAD ".visible .entry k (.param .b8 big[4090])\n{ ret; }\n", "4104 bytes"},
    };
    for (unsigned i = 0; i < MG_COUNT_OF(cases); i++) {
        struct mg_diag d = MG_DIAG_INIT;
        struct mg_twin *t = NULL;
        struct mg_module *m = parse(cases[i].text);
        if (!m) continue;
        MG_CHECK(mg_twin_new(m, mg_module_find_func(m, "k"), &t, &d) != MG_ERR_OK);
        if (!strstr(mg_diag_first(&d, MG_ERR_OK), cases[i].why))
            mg_test_fail(__FILE__, __LINE__, "case %u: %s", i, mg_diag_first(&d, MG_ERR_OK));
        MG_CHECK(t == NULL);
        mg_module_free(m);
        mg_diag_release(&d);
    }
}

/* What speaks of the rest of the module is gone: debug sections, names of inlined functions, other
 * kernels, variables; what the kernel needs is there. */
MG_TEST(twin_stands_alone)
{
    struct mg_module *m = parse(
        HEAD ".global .u32 g;\n.shared .u32 used[4];\n.shared .u32 unused[4];\n.extern .shared .align 4 .b8 dyn[];\n"
             ".visible .entry other() { ret; }\n" ENTRY(
                 "k") ".loc 1 4 2\n.loc 1 3 1, function_name $L__info_string0, inlined_at 1 4 2\n"
                      "mov.u32 %r1, used; mov.u32 %r2, dyn; st.global.u32 [g], %r1; ret;\n}\n"
                      ".file 1 \"x.cu\"\n.section .debug_str\n{\n$L__info_string0:\n.b8 65\n.b8 0\n}\n");
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_twin *t = NULL;
    struct mg_buf b = MG_BUF_INIT;
    MG_CHECK_EQ(mg_twin_new(m, mg_module_find_func(m, "k"), &t, &d), MG_ERR_OK);
    mg_ptx_print(t->m, &b);
    static const char *const gone[] = {"info_string", ".debug_str", "other", "unused", ".global .u32 g", "[g]"};
    static const char *const there[] = {"used[4]", "dyn[]", ".file", ".loc", "__mg_ctx", ".entry k"};
    for (unsigned i = 0; i < MG_COUNT_OF(gone); i++)
        if (strstr(b.at, gone[i])) mg_test_fail(__FILE__, __LINE__, "%s is still there", gone[i]);
    for (unsigned i = 0; i < MG_COUNT_OF(there); i++)
        if (!strstr(b.at, there[i])) mg_test_fail(__FILE__, __LINE__, "%s is gone", there[i]);
    MG_CHECK_EQ(t->n_symbols, 1);
    MG_CHECK_STR(t->symbols[0].name, "g");
    struct mg_module *again = parse(b.at);
    mg_module_free(again);
    mg_buf_release(&b);
    mg_twin_free(t);
    mg_module_free(m);
    mg_diag_release(&d);
}
