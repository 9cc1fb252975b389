/* The patch layer (patch/patch.h): small tools of the tests' own, run on the emulator, against closed forms
 * and against the witness. */
#include <stdlib.h>

#include "base/buf.h"
#include "device/mem.h"
#include "ptx/ptx.h"
#include "emu_run.h"
#include "kernels.h"
#include "test.h"
#include "patch/layout.h"
#include "tool/instrument.h"

#define R(r) mg_o_reg(r)
#define I(n) mg_o_imm(n)

enum { OUT_WORDS = 4096, MOST_CELLS = 4096, MOST_TOOLS = 4 };

struct run { /* of kernel k, native and instrumented */
    struct mg_module *m;
    struct mg_sites *sites;
    struct mg_layout layout;
    uint64_t cells[MOST_TOOLS][MOST_CELLS];
    uint64_t *raw;
    uint64_t *w_threads, *w_warps; /* witness of the native run, by node */
    uint64_t *threads, *warps;     /* of the block counter */
    uint64_t words[MG_CTX_N_WORDS];
    uint32_t grid, block, n;
    uint32_t sm, copies, registers /* of the native code; 0: not known */;
    uint32_t most_registers; /* that leave room for all CTAs of the launch, which run at once; 0: not known */
    uint32_t cta;            /* threads of a CTA of that launch; likewise */
    bool reduce, changes;    /* changes: the tool alters what the kernel computes */
    uint32_t *out;           /* of the twin */
    char *text;
};

static void note_position(void *user, mg_id func, mg_id node, uint64_t threads, uint64_t warps)
{
    struct run *r = user;
    (void)func;
    if (node >= r->m->nodes.n) return;
    r->w_threads[node] = threads;
    r->w_warps[node] = warps;
}

static struct mg_twin *instrument(struct run *r, const struct mg_tool_use *uses, uint32_t n)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_twin *t = NULL;
    mg_id k = mg_module_find_func(r->m, "k");
    struct mg_pass_opts passes = {.size = sizeof passes, .verify = true};
    struct mg_tools_opts o = {
        .size = sizeof o, .sm = r->sm, .max_copies = r->copies, .reduce = r->reduce, .passes = &passes};
    r->sites = mg_sites_new(r->m, k);
    bool ok = !mg_twin_new(r->m, k, &t, &d);
    if (ok)
        t->registers = r->registers, t->most_registers = r->most_registers, t->must_fit = r->most_registers != 0,
        t->threads = r->cta;
    if (ok) t->m->marked = !r->reduce;
    ok = ok && !mg_tools_instrument(uses, n, r->sites, t, &o, &r->layout, &d);
    if (!ok) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_STATE));
    mg_diag_release(&d);
    struct mg_buf text = MG_BUF_INIT;
    if (t) t->m->marked = true;
    if (t) mg_ptx_print(t->m, &text);
    r->text = mg_buf_take(&text);
    return ok ? t : NULL;
}

/* Runs k natively and as the tools' twin; the outputs must be equal. */
static bool run(struct run *r, const char *text, const struct mg_tool_use *uses, uint32_t n)
{
    struct mg_diag d = MG_DIAG_INIT;
    if (mg_ptx_parse(text, strlen(text), "t.ptx", &r->m, &d))
        mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_INPUT));
    mg_diag_release(&d);
    struct mg_dmod *native = emu_load(text);
    struct mg_twin *t = r->m ? instrument(r, uses, n) : NULL;
    if (!native || !t) return false;
    struct mg_counter_launch shape = {.grid = {r->grid, 1, 1}, .block = {r->block, 1, 1}};
    uint64_t n_words = mg_layout_words(&r->layout, &shape), bytes = MG_CTX_BYTES + 8 * n_words + 8;
    uint64_t ctx = mg_mem_alloc(bytes, 256, MG_ALLOC_INTERNAL), *c = (uint64_t *)(uintptr_t)ctx;
    uint64_t out = mg_mem_alloc(OUT_WORDS * 4, 256, MG_ALLOC_DEVICE);
    struct {
        uint64_t out;
        uint32_t n, pad;
        uint64_t ctx;
    } params = {out, r->n, 0, ctx};
    memset(c, 0, bytes);
    memcpy(c + MG_CTX_WORDS / 8, r->words, sizeof r->words);
    c[MG_CTX_COUNTERS / 8] = ctx + MG_CTX_BYTES;
    memset((void *)(uintptr_t)out, 0, OUT_WORDS * 4);
    bool ok = emu_launch(native, r->grid, r->block, &params, 12);
    uint32_t *left = malloc(OUT_WORDS * 4);
    memcpy(left, (void *)(uintptr_t)out, OUT_WORDS * 4);
    memset((void *)(uintptr_t)out, 0, OUT_WORDS * 4);
    r->w_threads = calloc(r->m->nodes.n, 8);
    r->w_warps = calloc(r->m->nodes.n, 8);
    mg_emu_ops.positions(native, note_position, r);
    struct mg_dmod *code = emu_load(r->text);
    ok = ok && code && emu_launch(code, r->grid, r->block, &params, 24);
    r->out = malloc(OUT_WORDS * 4);
    memcpy(r->out, (void *)(uintptr_t)out, OUT_WORDS * 4);
    if (!r->changes && memcmp(r->out, left, OUT_WORDS * 4))
        mg_test_fail(__FILE__, __LINE__, "the twin computes something else:\n%s", r->text);
    r->raw = malloc(8 * n_words + 8);
    memcpy(r->raw, c + MG_CTX_BYTES / 8, 8 * n_words);
    for (uint32_t i = 0; i < n; i++)
        if (!r->layout.regions[i].reason) mg_layout_read(&r->layout.regions[i], r->raw, r->cells[i]);
    r->threads = calloc(r->sites->n_blocks + 1, 8);
    r->warps = calloc(r->sites->n_blocks + 1, 8);
    if (r->layout.has_blocks) mg_counters_read(&r->layout.blocks, &shape, r->raw, r->threads, r->warps);
    free(left);
    mg_twin_free(t);
    if (code) mg_emu_ops.module_unload(code);
    mg_emu_ops.module_unload(native);
    mg_mem_free(ctx);
    mg_mem_free(out);
    return ok;
}

static void release(struct run *r)
{
    mg_layout_release(&r->layout);
    mg_sites_free(r->sites);
    mg_module_free(r->m);
    free(r->raw);
    free(r->out);
    free(r->w_threads);
    free(r->w_warps);
    free(r->threads);
    free(r->warps);
    free(r->text);
    memset(r, 0, sizeof *r);
}

static struct run *new_run(uint32_t grid, uint32_t block, uint32_t n)
{
    struct run *r = calloc(1, sizeof *r);
    r->grid = grid;
    r->block = block;
    r->n = n;
    return r;
}

static void drop(struct run *r)
{
    release(r);
    free(r);
}

/* ---- kernels --------------------------------------------------------------------------------------------- */

/* Lanes leave the loop after gid & 7 more rounds; guarded loads and stores; one exit in the middle. */
static const char loops[] =
    HEAD ENTRY("k") GID "ld.param.u32 %r9, [n]; and.b32 %r4, %r1, 7; mov.u32 %r5, 0;\n"
                        "setp.lt.u32 %p3, %r1, %r9; @!%p3 bra LOOP; exit;\n"
                        "LOOP: and.b32 %r6, %r4, 1; setp.eq.u32 %p1, %r6, 0; add.u32 %r5, %r5, 3;\n"
                        "@%p1 st.global.u32 [%rd1], %r5;\n"
                        "@%p1 ld.global.u32 %r7, [%rd1];\n"
                        "sub.s32 %r4, %r4, 1; setp.ge.s32 %p2, %r4, 0; @%p2 bra LOOP;\n"
                        "add.u32 %r5, %r5, %r1; st.global.u32 [%rd1], %r5; ret;\n}\n";

/* A function that is called with arguments, that leaves by exit for some lanes, and one that falls off. */
static const char calls[] =
    HEAD ".func (.param .b32 r) f (.param .b32 a)\n{\n" REGS
         "ld.param.u32 %r1, [a]; and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 3; @%p1 exit;\n"
         "setp.eq.u32 %p1, %r2, 1; @%p1 bra ONE; add.u32 %r1, %r1, 5; st.param.b32 [r], %r1; ret;\n"
         "ONE: add.u32 %r1, %r1, 7; st.param.b32 [r], %r1; ret;\n}\n" ENTRY("k") GID
    "mov.u32 %r8, 0; mov.u32 %r4, %r1;\n"
    "AGAIN: { .param .b32 a; .param .b32 r; st.param.b32 [a], %r4; call (r), f, (a); ld.param.b32 %r4, [r]; }\n"
    "add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 3; @%p1 bra AGAIN;\n"
    "st.global.u32 [%rd1], %r4; setp.lt.u32 %p2, %r1, 40; @%p2 bra END; st.global.u32 [%rd1], %r8;\nEND:\n}\n";

/* ---- one cell for each block and spread -------------------------------------------------------------------- */

static enum mg_err spreads(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    for (uint32_t b = 0; b < mg_patch_sites(p)->n_blocks; b++) {
        uint32_t cell = mg_patch_site(p, MG_SITE_BLOCK, 0, b, 4, MG_MERGE_SUM, b),
                 max = mg_patch_cells(p, 1, MG_MERGE_MAX), ored = mg_patch_cells(p, 1, MG_MERGE_OR);
        uint32_t wide = mg_patch_cells(p, 1, MG_MERGE_SUM), high = mg_patch_cells(p, 1, MG_MERGE_MAX),
                 either = mg_patch_cells(p, 1, MG_MERGE_OR), raised = mg_patch_cells(p, 1, MG_MERGE_MAX);
        struct mg_code_at *at = mg_at_block(p, b);
        mg_cell_update(at, cell, I(1), MG_EACH);
        mg_cell_update(at, cell + 1, I(1), MG_TIMES);
        mg_cell_update(at, cell + 2, I(3), MG_ONCE);
        mg_cell_update(at, cell + 3, R(mg_value_lane(at)), MG_EACH);
        mg_cell_update(at, max, R(mg_value_tid(at)), MG_EACH);
        mg_cell_update(at, ored, R(mg_value_active(at)), MG_ONCE);
        mg_id big = mg_code_temp(at, MG_TYPE_b64),
              low = mg_code_temp(at, MG_TYPE_pred); /* of lanes below 20: tid * (2^58 + 2^31 + 7) */
        MG_CODE(at, "mul.wide.u32", R(big), R(mg_value_tid(at)), I(1));
        MG_CODE(at, "mul.lo.u64", R(big), R(big), I((1ll << 58) + (1ll << 31) + 7));
        MG_CODE(at, "setp.lt.u32", R(low), R(mg_value_lane(at)), I(20));
        mg_code_push_guard(at, low, false);
        mg_cell_update(at, wide, R(big), MG_EACH);
        mg_cell_update(at, high, R(big), MG_EACH);
        mg_cell_update(at, either, R(big), MG_EACH);
        mg_cell_raise(at, raised, big);
        mg_code_pop_guard(at);
    }
    return MG_ERR_OK;
}
static const struct mg_tool spreads_tool = {.name = "spreads", .instrument = spreads};

static void check_spreads(const struct run *r, uint32_t tool)
{
    const struct mg_region *g = &r->layout.regions[tool];
    MG_CHECK_EQ(g->n_sites, r->sites->n_blocks);
    MG_CHECK_EQ(g->n_cells, 10 * r->sites->n_blocks);
    for (uint32_t b = 0; b < r->sites->n_blocks; b++) {
        const struct mg_site_block *s = &r->sites->blocks[b];
        mg_id first = r->sites->cfgs[s->func_ix]->blocks[s->block_ix].first;
        const uint64_t *c = r->cells[tool] + g->sites[b].cell;
        MG_CHECK_EQ(c[0], r->w_threads[first]);
        MG_CHECK_EQ(c[1], r->w_threads[first]);
        MG_CHECK_EQ(c[2], 3 * r->w_warps[first]);
        if (r->w_threads[first]) MG_CHECK(c[5] != 0);
    }
    MG_CHECK_EQ(r->cells[tool][4], r->block - 1);
    uint64_t lanes = 0;
    for (uint32_t i = 0; i < r->block; i++) lanes += i % 32;
    MG_CHECK_EQ(r->cells[tool][3], r->grid * lanes);
    uint64_t sum = 0, max = 0, either = 0;
    for (uint64_t i = 0; i < r->block; i++) {
        if (i % 32 >= 20) continue;
        uint64_t v = i * ((1ull << 58) + (1ull << 31) + 7);
        sum += r->grid * v;
        max = v > max ? v : max;
        either |= v;
    }
    MG_CHECK_EQ(r->cells[tool][6], sum);
    MG_CHECK_EQ(r->cells[tool][7], max);
    MG_CHECK_EQ(r->cells[tool][8], either);
    MG_CHECK_EQ(r->cells[tool][9], max);
}

MG_TEST(patch_cells)
{
    static const char *const texts[] = {loops, calls};
    static const uint32_t shapes[][2] = {{3, 64}, {2, 33}, {1, 1}, {2, 128}};
    for (unsigned t = 0; t < 2; t++)
        for (unsigned s = 0; s < 4; s++)
            for (unsigned gpu = 0; gpu < 2; gpu++) {
                struct run *r = new_run(shapes[s][0], shapes[s][1], 5);
                if (gpu) r->sm = 90, r->copies = 64, r->reduce = true;
                if (run(r, texts[t], &(struct mg_tool_use){&spreads_tool, NULL}, 1)) check_spreads(r, 0);
                if (gpu) MG_CHECK_EQ(r->layout.regions[0].n_copies, 64);
                drop(r);
            }
}

/* ---- rows and tallies ------------------------------------------------------------------------------------ */

/* A loop in a function from which everybody returns, so that it keeps what it counts in registers. */
static const char returns[] = HEAD
    ".func (.param .b32 r) f (.param .b32 a)\n{\n" REGS "ld.param.u32 %r1, [a]; and.b32 %r2, %r1, 7;\n"
    "ROUND: sub.s32 %r2, %r2, 1; setp.ge.s32 %p1, %r2, 0; @%p1 bra ROUND; add.u32 %r1, %r1, 1; st.param.b32 [r], %r1; ret;\n}\n" ENTRY(
        "k") GID
    "mov.u32 %r8, 0; mov.u32 %r4, %r1;\n"
    "AGAIN: { .param .b32 a; .param .b32 r; st.param.b32 [a], %r4; call (r), f, (a); ld.param.b32 %r4, [r]; }\n"
    "add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 3; @%p1 bra AGAIN;\n"
    "st.global.u32 [%rd1], %r4; ret;\n}\n";

/* Of each block: every lane adds its number + 1 to its own cell, five lanes add 2 to theirs, how many lanes there are
 * is told, and 3 by those from the fifth on: lane 3, which would keep it, is not among them. */
static enum mg_err kept(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)d;
    if (conf) mg_patch_near(p);
    for (uint32_t b = 0; b < mg_patch_sites(p)->n_blocks; b++) {
        uint32_t cell = mg_patch_site(p, MG_SITE_BLOCK, 0, b, 32 + 5 + 32 + 7, MG_MERGE_SUM, b),
                 all = mg_patch_strip(p, cell, 32), five = mg_patch_strip(p, cell + 32, 5);
        struct mg_code_at *at = mg_at_block(p, b);
        mg_id v = mg_code_temp(at, MG_TYPE_b32), few = mg_code_temp(at, MG_TYPE_pred),
              others = mg_code_temp(at, MG_TYPE_b32), three = mg_code_temp(at, MG_TYPE_b32);
        MG_CODE(at, "mov.u32", R(three), I(3));
        MG_CODE(at, "add.u32", R(v), R(mg_value_lane(at)), I(1));
        mg_strip_add(at, all, v);
        MG_CODE(at, "setp.lt.u32", R(few), R(mg_value_lane(at)), I(5));
        MG_CODE(at, "selp.u32", R(v), I(2), I(0), R(few));
        mg_strip_add(at, five, v);
        MG_CODE(at, "add.u32", R(others), R(mg_value_n_active(at)), I(-1));
        mg_tally_add(at, cell + 37, 32, others);
        mg_code_push_guard(at, few, true);
        mg_tally_add(at, cell + 69, 7, three);
        mg_code_pop_guard(at);
        mg_strip_put(at, five, 0, R(others), mg_value_leader(at));
    }
    return MG_ERR_OK;
}
static const struct mg_tool kept_tool = {.name = "kept", .instrument = kept};

MG_TEST(patch_rows_and_tallies)
{
    static const char *const texts[] = {loops, calls, returns};
    static const uint32_t shapes[][2] = {{3, 64}, {2, 33}, {1, 1}, {2, 120}};
    for (unsigned i = 0; i < 3 * 4 * 3; i++) {
        struct run *r = new_run(shapes[i / 9][0], shapes[i / 9][1], 5);
        if (i % 3) r->sm = 90, r->copies = 64, r->reduce = true;
        bool ok = run(r, texts[i / 3 % 3], &(struct mg_tool_use){&kept_tool, i % 3 == 2 ? "near" : NULL}, 1);
        if (ok && texts[i / 3 % 3] != calls)
            MG_CHECK_EQ(strstr(r->text, "red.shared.add.u32") != NULL,
                        i % 3 == 2); /* calls: one of its functions ends threads */
        for (uint32_t b = 0; ok && b < r->sites->n_blocks; b++) {
            const struct mg_site_block *s = &r->sites->blocks[b];
            mg_id first = r->sites->cfgs[s->func_ix]->blocks[s->block_ix].first;
            const uint64_t *c = r->cells[0] + r->layout.regions[0].sites[b].cell;
            uint64_t threads = 0, warps = 0, lanes = 0, fewer = 0;
            for (uint32_t l = 0; l < 32; l++) fewer += l * c[37 + l];
            for (uint32_t l = 0; l < 32; l++) {
                MG_CHECK_EQ(c[l] % (l + 1), 0);
                if (l < 5) MG_CHECK_EQ(c[32 + l] - (l ? 0 : fewer), 2 * c[l] / (l + 1));
                threads += c[l] / (l + 1);
                warps += c[37 + l];
                lanes += (l + 1) * c[37 + l];
            }
            MG_CHECK_EQ(threads, r->w_threads[first]);
            MG_CHECK_EQ(warps, r->w_warps[first]);
            MG_CHECK_EQ(lanes, r->w_threads[first]);
            MG_CHECK(c[72] <= warps && (c[72] > 0) == (threads > (c[0] + c[1] / 2 + c[2] / 3 + c[3] / 4 + c[4] / 5)));
        }
        drop(r);
    }
}

struct few {
    uint32_t least, kept;
};

static enum mg_err few(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct few *f = conf;
    (void)d;
    mg_patch_few_registers(p, f->least, f->kept);
    mg_patch_few_registers(p, 250, 0); /* the first one holds */
    return MG_ERR_OK;
}

MG_TEST(patch_few_registers)
{
    static const struct mg_tool tool = {.name = "few", .instrument = few};
    static const struct {
        uint32_t registers, most, kept, threads;
        const char *want;
    } cases[] = {{0, 0, 0, 0, NULL},
                 {16, 0, 0, 0, ".maxnreg 40\n"},
                 {33, 0, 0, 0, ".maxnreg 48\n"},
                 {254, 0, 0, 0, ".maxnreg 255\n"},
                 {16, 32, 0, 0, ".maxnreg 40\n"}, /* the launch has no room */
                 {16, 70, 0, 0, ".maxnreg 64\n"},
                 {16, 512, 0, 0, ".maxnreg 255\n"},
                 {32, 0, 64, 0, ".maxnreg 72\n"}, /* what is kept in loops, its two blocks among it */
                 {32, 0, 200, 0, ".maxnreg 96\n"},
                 {32, 128, 64, 0, ".maxnreg 128\n"},
                 {16, 0, 0, 1024, ".maxnreg 64\n"}, /* one CTA, with as many */
                 {16, 0, 0, 512, ".maxnreg 40\n"}};
    for (unsigned i = 0; i < MG_COUNT_OF(cases); i++) {
        const struct few conf = {40, cases[i].kept};
        struct run *r = new_run(1, 32, 5);
        r->registers = cases[i].registers, r->most_registers = cases[i].most, r->cta = cases[i].threads;
        if (run(r, loops, &(struct mg_tool_use){&tool, &conf}, 1)) {
            MG_CHECK_EQ(strstr(r->text, ".maxnreg") != NULL, cases[i].want != NULL);
            if (cases[i].want && !strstr(r->text, cases[i].want))
                mg_test_fail(__FILE__, __LINE__, "case %u: no %s", i, cases[i].want);
        }
        drop(r);
    }
}

/* Two tools together count what each counts alone, and so does the block counter with them. */
MG_TEST(patch_tools_together)
{
    struct mg_diag d = MG_DIAG_INIT;
    const struct mg_tool *blocks = mg_tool_find("blocks");
    static const char *const args[] = {"counters=class", "counters=register", "counters=register,shards=4,sm=90"};
    for (unsigned i = 0; i < MG_COUNT_OF(args); i++) {
        void *conf = NULL;
        MG_CHECK(!blocks->configure(args[i], &conf, &d));
        struct run *r = new_run(2, 72, 9);
        struct mg_tool_use uses[] = {{&spreads_tool, NULL}, {blocks, conf}, {&spreads_tool, NULL}};
        if (run(r, loops, uses, 3)) {
            check_spreads(r, 0);
            check_spreads(r, 2);
            for (uint32_t b = 0; b < r->sites->n_blocks; b++) {
                mg_id first = r->sites->cfgs[0]->blocks[b].first;
                MG_CHECK_EQ(r->threads[b], r->w_threads[first]);
                MG_CHECK_EQ(r->warps[b], r->w_warps[first]);
            }
        }
        drop(r);
        blocks->release(conf);
    }
    mg_diag_release(&d);
}

static const struct mg_counter_opts *by_register(const void *conf)
{
    static const struct mg_counter_opts o = {.scheme = MG_SCHEME_REGISTER, .warps = true, .shards = 1, .registers = 32};
    (void)conf;
    return &o;
}

/* Any tool may have blocks counted its way, and insert code of its own beside; of two that want different counters the
 * first is heard. */
MG_TEST(patch_any_tool_has_blocks_counted)
{
    struct mg_tool counting = spreads_tool;
    struct mg_diag d = MG_DIAG_INIT;
    const struct mg_tool *blocks = mg_tool_find("blocks");
    void *conf = NULL;
    counting.name = "counting";
    counting.counts = by_register;
    MG_CHECK(!blocks->configure("counters=class", &conf, &d));
    struct run *r = new_run(2, 72, 9);
    struct mg_tool_use uses[] = {{&counting, NULL}, {&counting, NULL}, {blocks, conf}};
    if (run(r, loops, uses, 3)) {
        check_spreads(r, 0);
        check_spreads(r, 1);
        for (uint32_t b = 0; b < r->sites->n_blocks; b++) {
            mg_id first = r->sites->cfgs[0]->blocks[b].first;
            MG_CHECK_EQ(r->threads[b], r->w_threads[first]);
            MG_CHECK_EQ(r->warps[b], r->w_warps[first]);
        }
        MG_CHECK(!r->layout.regions[0].reason && !r->layout.regions[1].reason);
        MG_CHECK_STR(r->layout.regions[2].reason, "another tool of this run has blocks counted in another way");
    }
    drop(r);
    blocks->release(conf);
    mg_diag_release(&d);
}

/* ---- spots -------------------------------------------------------------------------------------------------- */

static void count_exit(struct mg_code_at *at, void *user)
{
    mg_cell_update(at, *(uint32_t *)user, I(1), MG_TIMES);
}

/* Cells: entry, exits of the kernel; entries, exits of each function; then before and after each instruction,
 * and lanes whose guard holds. */
static enum mg_err spots(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    const struct mg_patch_inst *insts;
    const struct mg_sites *s = mg_patch_sites(p);
    const struct mg_module *m = mg_patch_module(p);
    uint32_t n = mg_patch_insts(p, &insts);
    for (uint32_t f = 0; f < s->n_funcs; f++) {
        uint32_t cell = mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 2, MG_MERGE_SUM, f), out = cell + 1;
        mg_cell_update(mg_at_entry(p, f), cell, I(1), MG_TIMES);
        mg_at_exits(p, f, count_exit, &out);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t cell = mg_patch_site(p, MG_SITE_INST, insts[i].node, 0, 3, MG_MERGE_SUM, i);
        bool not, ends = mg_node_form(m, &m->nodes.at[insts[i].node])->op_flags & MG_OPF_ENDS_BLOCK;
        mg_id guard = mg_node_guard(m, insts[i].node, &not );
        struct mg_code_at *at = mg_at_before(p, insts[i].node);
        mg_cell_update(at, cell, I(1), MG_TIMES);
        if (!ends) mg_cell_update(mg_at_after(p, insts[i].node), cell + 1, I(1), MG_EACH);
        mg_code_push_guard(at, guard, not );
        mg_cell_update(at, cell + 2, I(1), MG_TIMES);
        mg_code_pop_guard(at);
    }
    return MG_ERR_OK;
}
static const struct mg_tool spots_tool = {.name = "spots", .instrument = spots};

MG_TEST(patch_spots)
{
    struct run *r = new_run(3, 48, 5);
    if (run(r, loops, &(struct mg_tool_use){&spots_tool, NULL}, 1)) {
        const uint64_t *c = r->cells[0];
        MG_CHECK_EQ(c[0], 144);
        MG_CHECK_EQ(c[1], 144);
        for (uint32_t i = 1; i < r->layout.regions[0].n_sites; i++) {
            const struct mg_layout_site *s = &r->layout.regions[0].sites[i];
            const struct mg_site_block *b = &r->sites->blocks[s->block];
            mg_id first = r->sites->cfgs[b->func_ix]->blocks[b->block_ix].first;
            MG_CHECK_EQ(c[s->cell], r->w_threads[first]);
            if (strcmp(s->op, "bra") && strcmp(s->op, "ret") && strcmp(s->op, "exit"))
                MG_CHECK_EQ(c[s->cell + 1], r->w_threads[first]);
            /* the guarded store and load: rounds in which 7 - round is even, of threads that did not leave */
            if (!strcmp(s->op, "ld.global.u32")) {
                uint64_t even = 0;
                for (uint32_t t = 5; t < 144; t++) even += (t & 7) / 2 + 1;
                MG_CHECK_EQ(c[s->cell + 2], even);
            } else if (!strncmp(s->op, "add", 3)) {
                MG_CHECK_EQ(c[s->cell + 2], c[s->cell]);
            }
        }
    }
    drop(r);
    r = new_run(2, 48, 0);
    if (run(r, calls, &(struct mg_tool_use){&spots_tool, NULL}, 1)) {
        const uint64_t *c = r->cells[0];
        const struct mg_sites *s = r->sites;
        MG_CHECK_EQ(c[0], 96);
        MG_CHECK_EQ(c[1], 96); /* by exit in f, or off the end */
        MG_CHECK_EQ(c[2], r->w_threads[s->cfgs[1]->blocks[0].first]);
        mg_id add = s->cfgs[0]->blocks[2].first; /* behind the call */
        MG_CHECK_EQ(c[3], r->w_threads[add]);
    }
    drop(r);
}

/* ---- edges, sums, tables, code that branches --------------------------------------------------------------- */

/* At each block: a cell counts its entries by way of a hash table, a sum, and code that branches. On each edge a cell.
 */
static enum mg_err mixed(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)d;
    const unsigned *what = conf;
    const struct mg_sites *s = mg_patch_sites(p);
    uint32_t table_site = mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 0, MG_MERGE_SUM, 0),
             table = mg_patch_table(p, 2, 2, MG_MERGE_SUM, 4096);
    (void)table_site;
    for (uint32_t b = 0; b < s->n_blocks; b++) {
        uint32_t cell = mg_patch_site(p, MG_SITE_BLOCK, 0, b, 4, MG_MERGE_SUM, b);
        struct mg_code_at *at = mg_at_block(p, b);
        if (*what & 1) {
            mg_id keys[2] = {mg_code_temp(at, MG_TYPE_b64), mg_code_temp(at, MG_TYPE_b64)},
                  low = mg_code_temp(at, MG_TYPE_b32);
            MG_CODE(at, "mov.u64", R(keys[0]), I(b));
            MG_CODE(at, "and.b32", R(low), R(mg_value_tid(at)), I(3));
            MG_CODE(at, "cvt.u64.u32", R(keys[1]), R(low));
            struct mg_opnd v[2] = {I(1), R(keys[1])};
            mg_table_update(at, table, keys, v, 2, MG_EACH);
        }
        if (*what & 2) {
            uint32_t sum = mg_patch_sum(p, cell);
            mg_id p1 = mg_code_temp(at, MG_TYPE_pred), odd = mg_code_temp(at, MG_TYPE_b32);
            mg_sum_add(at, sum, I(1));
            MG_CODE(at, "and.b32", R(odd), R(mg_value_lane(at)), I(1));
            MG_CODE(at, "setp.ne.u32", R(p1), R(odd), I(0));
            mg_code_push_guard(at, p1, false);
            mg_sum_add(at, mg_patch_sum(p, cell + 1), R(mg_value_lane(at)));
            mg_code_pop_guard(at);
        }
        if (*what & 4) { /* lanes part, and are together again behind it */
            mg_id skip = mg_code_label(at), p1 = mg_code_temp(at, MG_TYPE_pred);
            MG_CODE(at, "setp.lt.u32", R(p1), R(mg_value_lane(at)), I(10));
            mg_code_push_guard(at, p1, false);
            MG_CODE(at, "bra", mg_o_label(skip));
            mg_code_pop_guard(at);
            mg_cell_update(at, cell + 2, I(1), MG_TIMES);
            mg_code_place(at, skip);
            mg_cell_update(at, cell + 3, I(1), MG_ONCE);
        }
        if (!(*what & 8)) continue;
        for (uint32_t k = 0; k < s->blocks[b].n_succs; k++) {
            uint32_t edge = mg_patch_site(p, MG_SITE_EDGE, k, b, 1, MG_MERGE_SUM, 0);
            mg_cell_update(mg_at_edge(p, b, k), edge, I(1), MG_TIMES);
        }
    }
    return MG_ERR_OK;
}
static const struct mg_tool mixed_tool = {.name = "mixed", .instrument = mixed};

struct entries {
    uint64_t *counts, *values;
    uint32_t n_blocks;
};

static void add_entry(const uint64_t *keys, const uint64_t *cells, void *user)
{
    struct entries *e = user;
    MG_CHECK(keys[0] < e->n_blocks && keys[1] < 4);
    MG_CHECK_EQ(cells[1], cells[0] * keys[1]);
    e->counts[keys[0]] += cells[0];
}

static bool ends_lanes(const struct run *r, const struct mg_site_block *s) /* lanes may not come out of its call */
{
    const struct mg_cfg *c = r->sites->cfgs[s->func_ix];
    return mg_node_form(r->m, &r->m->nodes.at[c->blocks[s->block_ix].last])->op == MG_OP_call ||
           c->blocks[s->block_ix].leaves;
}

static void check_mixed(const struct run *r, unsigned what, const char *name)
{
    const struct mg_region *g = &r->layout.regions[0];
    const uint64_t *c = r->cells[0];
    uint32_t n = r->sites->n_blocks, bad = 0;
    uint64_t *want = calloc(n, 8), *out = calloc(n, 8);
    struct entries e = {.counts = calloc(n, 8), .n_blocks = n};
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_site_block *s = &r->sites->blocks[i];
        want[i] = r->w_threads[r->sites->cfgs[s->func_ix]->blocks[s->block_ix].first];
    }
    if (what & 1) MG_CHECK_EQ(mg_layout_read_table(g, 0, r->raw, add_entry, &e), 0);
    for (uint32_t i = 1; i < g->n_sites; i++) {
        const struct mg_layout_site *s = &g->sites[i];
        if (s->kind == MG_SITE_EDGE)
            out[s->block] += c[s->cell];
        else if (what & 2)
            bad += c[s->cell] != want[s->block];
        if (s->kind == MG_SITE_BLOCK && what & 4) {
            const struct mg_site_block *b = &r->sites->blocks[s->block];
            bad += c[s->cell + 3] != r->w_warps[r->sites->cfgs[b->func_ix]->blocks[b->block_ix].first];
            bad += c[s->cell + 2] > want[s->block];
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (what & 1) bad += e.counts[i] != want[i];
        if (what & 8 && r->sites->blocks[i].n_succs)
            bad += ends_lanes(r, &r->sites->blocks[i]) ? out[i] > want[i] : out[i] != want[i];
        const struct mg_site_block *s = &r->sites->blocks[i];
        if (r->layout.has_blocks)
            bad += r->threads[i] != want[i] ||
                   r->warps[i] != r->w_warps[r->sites->cfgs[s->func_ix]->blocks[s->block_ix].first];
    }
    if (bad) mg_test_fail(__FILE__, __LINE__, "%s, %u: %u blocks are counted wrong", name, what, (unsigned)bad);
    free(want);
    free(out);
    free(e.counts);
}

/* Random kernels under all kinds of code at once: counts of threads are the witness's, and so are counts
 * of warps, which inserted code must not change. */
MG_TEST(patch_random)
{
    struct mg_diag d = MG_DIAG_INIT;
    const struct mg_tool *blocks = mg_tool_find("blocks");
    void *conf = NULL;
    MG_CHECK(!blocks->configure("counters=class", &conf, &d));
    for (uint32_t seed = 0; seed < 60; seed++) {
        if (!mg_test_takes(seed)) continue;
        static const unsigned whats[] = {1, 2, 4, 8, 15};
        struct mg_buf b;
        char name[40];
        unsigned what = whats[seed / 2 % 5];
        snprintf(name, sizeof name, "random %s %u", seed % 2 ? "calls" : "kernel", (unsigned)seed);
        if (seed % 2)
            random_calls(seed, &b);
        else
            random_kernel(seed, &b);
        struct run *r = new_run(2, 72, 5);
        if (seed % 4 >= 2) r->sm = 90, r->copies = 64, r->reduce = true;
        struct mg_tool_use uses[] = {{&mixed_tool, &what}, {blocks, conf}};
        if (run(r, b.at, uses, 2)) check_mixed(r, what, name);
        drop(r);
        mg_buf_release(&b);
    }
    blocks->release(conf);
    mg_diag_release(&d);
}

/* ---- values, skipping, refusals ------------------------------------------------------------------------------ */

static void time_exit(struct mg_code_at *at, void *user)
{
    const uint32_t *u = user; /* cell, register of the clock at the entry */
    mg_id t = mg_code_temp(at, MG_TYPE_b64), later = mg_code_temp(at, MG_TYPE_pred),
          one = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "sub.u64", R(t), R(mg_value_clock(at)), R(u[1]));
    MG_CODE(at, "setp.ge.s64", R(later), R(t), I(0));
    MG_CODE(at, "selp.b64", R(one), I(1), I(0), R(later));
    mg_cell_update(at, u[0], R(one), MG_EACH);
}

static enum mg_err values(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    uint32_t word = mg_patch_words(p, 2), c = mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 16, MG_MERGE_SUM, 0),
             m = mg_patch_cells(p, 4, MG_MERGE_MAX);
    struct mg_code_at *at = mg_at_entry(p, 0);
    mg_id t0 = mg_code_reg(at, MG_TYPE_b64), ix = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "mov.b64", R(t0), R(mg_value_clock(at)));
    mg_cell_update(at, c, R(mg_value_param(at, 1)), MG_ONCE);
    mg_cell_update(at, c + 1, R(mg_value_cta(at)), MG_EACH);
    mg_cell_update(at, c + 2, R(mg_value_word(at, word + 1)), MG_ALONE);
    mg_cell_update(at, c + 3, R(mg_value_param(at, 7)), MG_EACH);
    mg_cell_update(at, m, R(mg_value_warp(at)), MG_EACH);
    mg_cell_update(at, m + 1, R(mg_value_sm(at)), MG_EACH);
    MG_CODE(at, "and.b32", R(ix), R(mg_value_lane(at)), I(15)); /* 0 to 15; beyond 6 cells nothing is counted */
    mg_cell_update_at(at, c + 4, 6, ix, I(2), MG_EACH);
    uint32_t u[2] = {c + 10, t0};
    mg_at_exits(p, 0, time_exit, u);
    const struct mg_patch_inst *insts;
    for (uint32_t i = 0, n = mg_patch_insts(p, &insts); i < n; i++) {
        struct mg_access a;
        if (!mg_access_of(mg_patch_module(p), insts[i].node, &a) || a.space != MG_SPACE_global) continue;
        at = mg_at_before(p, insts[i].node);
        mg_id out = mg_value_param(at, 0), off = mg_code_temp(at, MG_TYPE_b64);
        MG_CODE(at, "sub.u64", R(off), R(mg_value_address(at, insts[i].node)), R(out));
        mg_cell_update(at, c + 11 + a.reads, R(off), MG_EACH);
        const struct mg_node *node = &mg_patch_module(p)->nodes.at[insts[i].node];
        if (a.writes) mg_cell_update(at, m + 2, mg_patch_module(p)->opnds.at[node->opnd + a.data], MG_EACH);
    }
    return MG_ERR_OK;
}
static const struct mg_tool values_tool = {.name = "values", .analyze = values};

MG_TEST(patch_values)
{
    static const char text[] =
        HEAD ENTRY("k") GID "mov.u32 %r5, 70; sub.u32 %r5, %r5, %r1; st.global.u32 [%rd1+8], %r5; ret;\n}\n";
    struct run *r = new_run(3, 40, 11);
    r->words[1] = 5;
    if (run(r, text, &(struct mg_tool_use){&values_tool, NULL}, 1)) {
        const uint64_t *c = r->cells[0];
        MG_CHECK_EQ(c[0], 11 * 6); /* the argument, once a warp */
        MG_CHECK_EQ(c[1], 40 * (0 + 1 + 2));
        MG_CHECK_EQ(c[2], 5 * 120);
        MG_CHECK_EQ(c[3], 0); /* there is no such argument */
        for (unsigned i = 0; i < 5; i++) MG_CHECK_EQ(c[4 + i], 2 * 3 * (i < 8 ? 3 : 2));
        MG_CHECK_EQ(c[10], 120); /* clocks go on */
        uint64_t offs = 0;
        for (uint64_t t = 0; t < 120; t++) offs += 4 * t + 8;
        MG_CHECK_EQ(c[11], offs);
        MG_CHECK_EQ(c[12], 0);
        MG_CHECK_EQ(c[16], 1);           /* highest warp of a CTA */
        MG_CHECK_EQ(c[18], 4294967295u); /* highest value stored, as bits */
        MG_CHECK_EQ(r->layout.regions[0].n_launch_words, 2);
    }
    drop(r);
}

/* Loads of odd threads are left out: they give 0. */
static enum mg_err skip_odd(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    const struct mg_patch_inst *insts;
    for (uint32_t i = 0, n = mg_patch_insts(p, &insts); i < n; i++) {
        struct mg_access a;
        if (!mg_access_of(mg_patch_module(p), insts[i].node, &a) || a.space != MG_SPACE_global || !a.reads) continue;
        struct mg_code_at *at = mg_at_before(p, insts[i].node);
        mg_id odd = mg_code_reg(at, MG_TYPE_pred), t = mg_code_temp(at, MG_TYPE_b32);
        MG_CODE(at, "and.b32", R(t), R(mg_value_tid(at)), I(1));
        MG_CODE(at, "setp.ne.u32", R(odd), R(t), I(0));
        mg_patch_skip(p, insts[i].node, odd);
    }
    return MG_ERR_OK;
}
static const struct mg_tool skip_tool = {.name = "skip", .instrument = skip_odd};

MG_TEST(patch_skip)
{
    /* a plain load, one under a guard (threads below 20) and its negation, a pair, an atomic */
    static const char text[] = HEAD ENTRY("k") GID
        "mov.u32 %r4, 9; st.global.u32 [%rd1+1024], %r4; setp.lt.u32 %p1, %r1, 20; mov.u32 %r5, 100; mov.u32 %r6, 100;\n"
        "ld.global.u32 %r7, [%rd1+1024]; @%p1 ld.global.u32 %r5, [%rd1+1024]; @!%p1 ld.global.u32 %r6, [%rd1+1024];\n"
        "mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd3, %rd1; ld.global.v2.u32 {%r8, %r9}, [%rd3+1024]; atom.global.add.u32 %r10, [%rd3+1024], 1;\n"
        "add.u32 %r8, %r8, %r9; mad.lo.u32 %r7, %r5, 1000, %r7; mad.lo.u32 %r7, %r6, 1000000, %r7; st.global.u32 [%rd1], %r7; st.global.u32 [%rd1+8192], %r10;\n"
        "st.global.u32 [%rd1+4096], %r8; ret;\n}\n";
    struct run *r = new_run(1, 32, 0);
    r->changes = true;
    if (run(r, text, &(struct mg_tool_use){&skip_tool, NULL}, 1))
        for (uint32_t t = 0; t < 32; t++) {
            uint32_t v = t & 1 ? 0 : 9, r5 = t < 20 ? v : 100, r6 = t < 20 ? 100 : v;
            MG_CHECK_EQ(r->out[t], v + 1000 * r5 + 1000000 * r6);
            if (t & 1) MG_CHECK_EQ(r->out[1024 + t], 0);
            if (t & 1) MG_CHECK_EQ(r->out[2048 + t], 0);
        }
    drop(r);
}

static enum mg_err wrong(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)d;
    switch (*(const unsigned *)conf) {
    case 0:
        mg_cell_update(mg_at_block(p, 0), 7, I(1), MG_EACH);
        break;
    case 1:
        mg_at_after(p, mg_patch_cfg(p, 0)->blocks[0].last);
        break;
    case 2:
        mg_patch_want_blocks(p);
        break;
    case 3:
        mg_patch_site(p, MG_SITE_EDGE, 3, 0, 1, MG_MERGE_SUM, 0);
        break;
    case 4:
        mg_code_pop_guard(mg_at_block(p, 0));
        break;
    case 5:
        mg_patch_words(p, 15);
        break;
    case 6:
        return mg_diag_err(d, MG_ERR_UNSUPPORTED, "not this one");
    case 7:
        mg_patch_skip(p, mg_patch_cfg(p, 0)->blocks[0].last, mg_code_reg(mg_at_entry(p, 0), MG_TYPE_pred));
        break;
    default:
        mg_patch_table(p, 1, 1, MG_MERGE_SUM, 128);
        break;
    }
    return MG_ERR_OK;
}
static const struct mg_tool wrong_tool = {.name = "wrong", .instrument = wrong};

/* A tool that fails leaves nothing behind, and the kernel to the others. */
MG_TEST(patch_refusals)
{
    static const char *const why[] = {"cell 7 was not reserved",
                                      "behind what ends a block",
                                      "asked for by analyze",
                                      "not of this kernel",
                                      "was not set",
                                      "more than 13 words",
                                      "not this one",
                                      "bra cannot be skipped",
                                      "cells without a site"};
    for (unsigned i = 0; i < MG_COUNT_OF(why); i++) {
        struct run *r = new_run(2, 33, 5);
        struct mg_tool_use uses[] = {{&spreads_tool, NULL}, {&wrong_tool, &i}};
        if (run(r, loops, uses, 2)) {
            check_spreads(r, 0);
            const char *reason = r->layout.regions[1].reason;
            if (!reason || !strstr(reason, why[i]))
                mg_test_fail(__FILE__, __LINE__, "%u: %s", i, reason ? reason : "no reason");
        }
        drop(r);
    }
}

/* A table that is too small loses updates and says how many. */
static enum mg_err crowd(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 0, MG_MERGE_SUM, 0);
    uint32_t table = mg_patch_table(p, 1, 1, MG_MERGE_SUM, 16);
    struct mg_code_at *at = mg_at_entry(p, 0);
    mg_id key = mg_value_wide(at, R(mg_value_tid(at)));
    mg_table_update(at, table, &key, (const struct mg_opnd[]){I(1)}, 1, MG_EACH);
    return MG_ERR_OK;
}
static const struct mg_tool crowd_tool = {.name = "crowd", .instrument = crowd};

static void add_up(const uint64_t *keys, const uint64_t *cells, void *user)
{
    uint64_t *sum = user;
    MG_CHECK(keys[0] < 64);
    MG_CHECK_EQ(cells[0], 3);
    sum[0]++;
    sum[1] += cells[0];
}

MG_TEST(patch_table_loses)
{
    struct run *r = new_run(3, 64, 5);
    uint64_t sum[2] = {0, 0};
    if (run(r, loops, &(struct mg_tool_use){&crowd_tool, NULL}, 1)) {
        uint64_t lost = mg_layout_read_table(&r->layout.regions[0], 0, r->raw, add_up, sum);
        MG_CHECK_EQ(sum[0], 16);
        MG_CHECK_EQ(sum[1] + lost, 3 * 64);
    }
    drop(r);
}

/* Loops and atomics of inserted code take no turns: lanes that wait for others, behind a loop in which every
 * round puts a new key into a table, go on together with them. */
static enum mg_err new_keys(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    const struct mg_patch_inst *insts;
    mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 0, MG_MERGE_SUM, 0);
    uint32_t table = mg_patch_table(p, 1, 1, MG_MERGE_SUM, 1024);
    for (uint32_t i = 0, n = mg_patch_insts(p, &insts); i < n; i++) {
        const struct mg_node *node = &mg_patch_module(p)->nodes.at[insts[i].node];
        if (mg_node_form(mg_patch_module(p), node)->op != MG_OP_sub) continue;
        struct mg_code_at *at = mg_at_before(p, insts[i].node);
        mg_id key = mg_value_wide(at, mg_patch_module(p)->opnds.at[node->opnd + 1]);
        mg_table_update(at, table, &key, (const struct mg_opnd[]){I(1)}, 1, MG_EACH);
    }
    return MG_ERR_OK;
}
static const struct mg_tool new_keys_tool = {.name = "keys", .instrument = new_keys};

MG_TEST(patch_takes_no_turns)
{
    static const char text[] =
        HEAD ENTRY("k") GID "and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 0; @%p1 bra JOIN; mov.u32 %r5, 900;\n"
                            "LOOP: sub.u32 %r5, %r5, 1; setp.ne.u32 %p2, %r5, 0; @%p2 bra LOOP;\n"
                            "JOIN: add.u32 %r5, %r5, %r1; st.global.u32 [%rd1], %r4; ret;\n}\n";
    struct mg_diag d = MG_DIAG_INIT;
    const struct mg_tool *blocks = mg_tool_find("blocks");
    void *conf = NULL;
    MG_CHECK(!blocks->configure("counters=class", &conf, &d));
    struct run *r = new_run(1, 32, 0);
    struct mg_tool_use uses[] = {{&new_keys_tool, NULL}, {blocks, conf}};
    if (run(r, text, uses, 2)) {
        MG_CHECK_EQ(r->w_warps[r->sites->cfgs[0]->blocks[3].first], 1);
        MG_CHECK_EQ(r->warps[3], 1);
        MG_CHECK_EQ(r->threads[2], 16 * 900);
    }
    drop(r);
    blocks->release(conf);
    mg_diag_release(&d);
}
