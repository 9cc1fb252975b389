/* The patch layer (tool/patch.h): small tools of the tests' own, run on the emulator, against closed forms
 * and against the witness. */
#include <stdlib.h>

#include "base/buf.h"
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"
#include "test.h"
#include "tool/layout.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define GID "ld.param.u64 %rd1, [o]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1;\n" \
            "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n"
#define REGS ".reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<8>;\n"
#define ENTRY(name) ".visible .entry " name " (.param .u64 o, .param .u32 n)\n{\n" REGS
#define R(r) mg_o_reg(r)
#define I(n) mg_o_imm(n)

enum { OUT_WORDS = 4096, MOST_CELLS = 4096, MOST_TOOLS = 4 };

static struct mg_device *device(void)
{
    static struct mg_device *dev;
    if (dev) return dev;
    struct mg_device_opts o = {.size = sizeof o, .properties = "h200", .workers = 2, .count_positions = true};
    struct mg_diag d = MG_DIAG_INIT;
    mg_mem_init(0);
    if (mg_emu_ops.open(&dev, &o, &d)) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_DEVICE));
    mg_diag_release(&d);
    return dev;
}

static struct mg_dmod *load(const char *text)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_dmod *mod = NULL;
    struct mg_module *m = NULL;
    if (mg_ptx_parse(text, strlen(text), "t.ptx", &m, &d) || mg_emu_ops.module_load(device(), m, &mod, &d))
        mg_test_fail(__FILE__, __LINE__, "%s\n%s", mg_diag_first(&d, MG_ERR_INPUT), text);
    mg_diag_release(&d);
    return mod;
}

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
    uint32_t sm, copies;
    bool reduce;
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

static bool launch(struct run *r, struct mg_dmod *mod, const void *params, uint32_t bytes)
{
    struct mg_launch l = {.kernel = mg_emu_ops.kernel(mod, "k"), .grid = {r->grid, 1, 1}, .block = {r->block, 1, 1},
                          .params = params, .param_bytes = bytes, .time_limit_ns = 10000000000u};
    struct mg_launch_stats s;
    struct mg_fault f;
    mg_emu_ops.launch(device(), &l, &s, &f);
    if (f.kind) mg_test_fail(__FILE__, __LINE__, "%s", f.text);
    return !f.kind;
}

static struct mg_twin *instrument(struct run *r, const struct mg_tool_use *uses, uint32_t n)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_twin *t = NULL;
    mg_id k = mg_module_find_func(r->m, "k");
    struct mg_pass_opts passes = {.size = sizeof passes, .verify = true};
    struct mg_tools_opts o = {.size = sizeof o, .sm = r->sm, .max_copies = r->copies, .reduce = r->reduce, .passes = &passes};
    r->sites = mg_sites_new(r->m, k);
    bool ok = !mg_twin_new(r->m, k, &t, &d) && !mg_tools_instrument(uses, n, r->sites, t, &o, &r->layout, &d);
    if (!ok) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_STATE));
    mg_diag_release(&d);
    struct mg_buf text = MG_BUF_INIT;
    if (t) mg_ptx_print(t->m, &text);
    r->text = mg_buf_take(&text);
    return ok ? t : NULL;
}

/* Runs k natively and as the tools' twin; the outputs must be equal. */
static bool run(struct run *r, const char *text, const struct mg_tool_use *uses, uint32_t n)
{
    struct mg_diag d = MG_DIAG_INIT;
    if (mg_ptx_parse(text, strlen(text), "t.ptx", &r->m, &d)) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_INPUT));
    mg_diag_release(&d);
    struct mg_dmod *native = load(text);
    struct mg_twin *t = r->m ? instrument(r, uses, n) : NULL;
    if (!native || !t) return false;
    struct mg_counter_launch shape = {.grid = {r->grid, 1, 1}, .block = {r->block, 1, 1}};
    uint64_t n_words = mg_layout_words(&r->layout, &shape), bytes = MG_CTX_BYTES + 8 * n_words + 8;
    uint64_t ctx = mg_mem_alloc(bytes, 256, MG_ALLOC_INTERNAL), *c = (uint64_t *)(uintptr_t)ctx;
    uint64_t out = mg_mem_alloc(OUT_WORDS * 4, 256, MG_ALLOC_DEVICE);
    struct { uint64_t out; uint32_t n, pad; uint64_t ctx; } params = {out, r->n, 0, ctx};
    memset(c, 0, bytes);
    memcpy(c + MG_CTX_WORDS / 8, r->words, sizeof r->words);
    c[MG_CTX_COUNTERS / 8] = ctx + MG_CTX_BYTES;
    memset((void *)(uintptr_t)out, 0, OUT_WORDS * 4);
    bool ok = launch(r, native, &params, 12);
    uint32_t *left = malloc(OUT_WORDS * 4);
    memcpy(left, (void *)(uintptr_t)out, OUT_WORDS * 4);
    memset((void *)(uintptr_t)out, 0, OUT_WORDS * 4);
    r->w_threads = calloc(r->m->nodes.n, 8);
    r->w_warps = calloc(r->m->nodes.n, 8);
    mg_emu_ops.positions(native, note_position, r);
    struct mg_dmod *code = load(r->text);
    ok = ok && code && launch(r, code, &params, 24);
    if (memcmp((void *)(uintptr_t)out, left, OUT_WORDS * 4)) mg_test_fail(__FILE__, __LINE__, "the twin computes something else:\n%s", r->text);
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
static const char loops[] = HEAD ENTRY("k") GID
    "ld.param.u32 %r9, [n]; and.b32 %r4, %r1, 7; mov.u32 %r5, 0;\n"
    "setp.lt.u32 %p3, %r1, %r9; @!%p3 bra LOOP; exit;\n"
    "LOOP: and.b32 %r6, %r4, 1; setp.eq.u32 %p1, %r6, 0; add.u32 %r5, %r5, 3;\n"
    "@%p1 st.global.u32 [%rd1], %r5;\n"
    "@%p1 ld.global.u32 %r7, [%rd1];\n"
    "sub.s32 %r4, %r4, 1; setp.ge.s32 %p2, %r4, 0; @%p2 bra LOOP;\n"
    "add.u32 %r5, %r5, %r1; st.global.u32 [%rd1], %r5; ret;\n}\n";

/* A function that is called with arguments, that leaves by exit for some lanes, and one that falls off. */
static const char calls[] = HEAD
    ".func (.param .b32 r) f (.param .b32 a)\n{\n" REGS
    "ld.param.u32 %r1, [a]; and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 3; @%p1 exit;\n"
    "setp.eq.u32 %p1, %r2, 1; @%p1 bra ONE; add.u32 %r1, %r1, 5; st.param.b32 [r], %r1; ret;\n"
    "ONE: add.u32 %r1, %r1, 7; st.param.b32 [r], %r1; ret;\n}\n"
    ENTRY("k") GID
    "mov.u32 %r8, 0; mov.u32 %r4, %r1;\n"
    "AGAIN: { .param .b32 a; .param .b32 r; st.param.b32 [a], %r4; call (r), f, (a); ld.param.b32 %r4, [r]; }\n"
    "add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 3; @%p1 bra AGAIN;\n"
    "st.global.u32 [%rd1], %r4; setp.lt.u32 %p2, %r1, 40; @%p2 bra END; st.global.u32 [%rd1], %r8;\nEND:\n}\n";

/* ---- one cell for each block and spread -------------------------------------------------------------------- */

static enum mg_err spreads(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    for (uint32_t b = 0; b < mg_patch_sites(p)->n_blocks; b++) {
        uint32_t cell = mg_patch_site(p, MG_SITE_BLOCK, 0, b, 4, MG_MERGE_SUM, b), max = mg_patch_cells(p, 1, MG_MERGE_MAX), ored = mg_patch_cells(p, 1, MG_MERGE_OR);
        struct mg_code_at *at = mg_at_block(p, b);
        mg_cell_update(at, cell, I(1), MG_EACH);
        mg_cell_update(at, cell + 1, I(1), MG_TIMES);
        mg_cell_update(at, cell + 2, I(3), MG_ONCE);
        mg_cell_update(at, cell + 3, R(mg_value_lane(at)), MG_EACH);
        mg_cell_update(at, max, R(mg_value_tid(at)), MG_EACH);
        mg_cell_update(at, ored, R(mg_value_active(at)), MG_ONCE);
    }
    return MG_ERR_OK;
}
static const struct mg_tool spreads_tool = {.name = "spreads", .instrument = spreads};

static void check_spreads(const struct run *r, uint32_t tool)
{
    const struct mg_region *g = &r->layout.regions[tool];
    MG_CHECK_EQ(g->n_sites, r->sites->n_blocks);
    MG_CHECK_EQ(g->n_cells, 6 * r->sites->n_blocks);
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
        mg_id guard = mg_node_guard(m, insts[i].node, &not);
        struct mg_code_at *at = mg_at_before(p, insts[i].node);
        mg_cell_update(at, cell, I(1), MG_TIMES);
        if (!ends) mg_cell_update(mg_at_after(p, insts[i].node), cell + 1, I(1), MG_EACH);
        mg_code_push_guard(at, guard, not);
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
            if (strcmp(s->op, "bra") && strcmp(s->op, "ret") && strcmp(s->op, "exit")) MG_CHECK_EQ(c[s->cell + 1], r->w_threads[first]);
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
