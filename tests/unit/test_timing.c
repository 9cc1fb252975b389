/* Blocks whose counts may depend on timing: small kernels whose answer can be seen. */
#include <stdlib.h>

#include "analysis/callgraph.h"
#include "analysis/timing.h"
#include "base/buf.h"
#include "ptx/ptx.h"
#include "test.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define REGS ".reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<8>;\n"
#define KERNEL                                                                                                         \
    ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n" REGS                                         \
    "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r9, [n];\n"                                         \
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r1;\n"               \
    "mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;\n"
/* Block 1 is decided by %p1, block 2 is where ways meet. */
#define BRANCH "setp.eq.s32 %p1, %r5, 0;\n@%p1 bra $end;\nst.global.u32 [%rd5], 1;\n$end: ret;\n}\n"

static void check(int line, const char *body, const char *want)
{
    struct mg_module *m = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf text = MG_BUF_INIT, got = MG_BUF_INIT;
    mg_buf_printf(&text, "%s%s", HEAD, body);
    if (mg_ptx_parse(text.at, text.n, "t.ptx", &m, &d)) {
        mg_test_fail(__FILE__, line, "%s", mg_diag_first(&d, MG_ERR_INPUT));
        abort();
    }
    struct mg_callgraph *g = mg_callgraph_new(m, mg_module_find_func(m, "k"));
    struct mg_cfg *cfgs[8];
    for (uint32_t i = 0; i < g->n_funcs; i++) cfgs[i] = mg_cfg_new(m, g->funcs[i]);
    struct mg_timing *t = mg_timing_new(m, g->funcs, cfgs, g->n_funcs);
    for (uint32_t i = 0; i < g->n_funcs; i++)
        for (uint32_t b = 0; b < cfgs[i]->n_blocks; b++) {
            const char *one = mg_timing_text(t, t->of[i][b], &t->arena);
            mg_buf_printf(&got, "%s%s", i || b ? " " : "", *one ? one : "-");
        }
    if (strcmp(got.at, want)) mg_test_fail(__FILE__, line, "blocks %s, not %s", got.at, want);
    mg_timing_free(t);
    for (uint32_t i = 0; i < g->n_funcs; i++) mg_cfg_free(cfgs[i]);
    mg_callgraph_free(g);
    mg_buf_release(&text);
    mg_buf_release(&got);
    mg_module_free(m);
    mg_diag_release(&d);
}
#define CHECK(body, want) check(__LINE__, body, want)

MG_TEST(timing_is_of_atomics_clocks_and_places)
{
    CHECK(KERNEL "atom.global.add.u32 %r5, [%rd1], 1;\n" BRANCH, "- * -");
    CHECK(KERNEL "red.global.add.u32 [%rd1], 1;\nmov.u32 %r5, %r4;\n" BRANCH, "- - -");
    CHECK(KERNEL "mov.u32 %r5, %clock;\nand.b32 %r5, %r5, 1;\n" BRANCH, "- * -");
    CHECK(KERNEL "mov.u32 %r5, %smid;\n" BRANCH, "- * -");
    CHECK(KERNEL "mov.u32 %r5, %nsmid;\n" BRANCH, "- - -");
    CHECK(KERNEL "mov.u64 %rd6, %globaltimer;\ncvt.u32.u64 %r5, %rd6;\n" BRANCH, "- * -");
    CHECK(KERNEL "shr.u32 %r5, %r4, 2;\n" BRANCH, "- - -");
}

MG_TEST(timing_is_of_memory_that_others_may_write)
{
    /* another buffer: it depends when both are one */
    CHECK(KERNEL "ld.global.u32 %r5, [%rd4];\n" BRANCH, "- 0,8 -");
    CHECK(KERNEL "ld.global.nc.u32 %r5, [%rd4];\n" BRANCH, "- - -");
    /* the thread's own element of the buffer that it writes, its neighbour's, and every thread's */
    CHECK(KERNEL "ld.global.u32 %r5, [%rd5];\n" BRANCH, "- - -");
    CHECK(KERNEL "ld.global.u32 %r5, [%rd5+4];\n" BRANCH, "- * -");
    CHECK(KERNEL "ld.global.u32 %r5, [%rd2];\n" BRANCH, "- * -");
    /* CTAs of 16 elements that lie 8 apart; an element of 8 bytes in steps of 4; rows */
    CHECK(
        KERNEL
        "mad.lo.s32 %r4, %r2, 1, %r1;\nmul.wide.s32 %rd3, %r4, 4; add.s64 %rd5, %rd2, %rd3;\nld.global.u32 %r5, [%rd5];\n" BRANCH,
        "- * -");
    CHECK(KERNEL "ld.global.u64 %rd6, [%rd5];\ncvt.u32.u64 %r5, %rd6;\n" BRANCH, "- * -");
    CHECK(
        KERNEL
        "mad.lo.s32 %r4, %r4, %r9, 3;\nmul.wide.s32 %rd3, %r4, 4; add.s64 %rd5, %rd2, %rd3;\nld.global.u32 %r5, [%rd5];\n" BRANCH,
        "- - -");
}

MG_TEST(timing_follows_loops_in_steps_of_the_grid)
{
#define LOOP(step, off)                                                                                                 \
    KERNEL                                                                                                              \
    "mov.u32 %r6, %nctaid.x; mul.lo.s32 %r7, %r6, %r3;\n$next:\nmul.wide.s32 %rd3, %r4, 4; add.s64 %rd5, %rd2, %rd3;\n" \
    "ld.global.u32 %r5, [%rd5" off "]; setp.eq.s32 %p1, %r5, 0;\n@%p1 bra $skip;\nst.global.u32 [%rd5], 1;\n"           \
    "$skip: add.s32 %r4, %r4, " step "; setp.lt.s32 %p2, %r4, %r9;\n@%p2 bra $next;\nret;\n}\n"
    CHECK(LOOP("%r7", ""), "- - - - -");
    CHECK(LOOP("%r7", "+4"), "- - * - -");
    CHECK(LOOP("1", ""), "- - * - -"); /* the next round is the next thread's element */
    CHECK(LOOP("4096", ""), "- - - - -");
    /* a loop that ends when another thread has written */
    CHECK(
        KERNEL
        "$wait: ld.volatile.global.u32 %r5, [%rd2];\nsetp.eq.s32 %p2, %r5, 0;\n@%p2 bra $wait;\nadd.s32 %r5, %r1, 1;\n" BRANCH,
        "- * - - -");
}

MG_TEST(timing_goes_through_memory_calls_and_branches)
{
    /* by way of shared memory, behind a barrier */
    CHECK(".shared .b32 s;\n.shared .b32 u;\n" KERNEL
          "atom.global.add.u32 %r6, [%rd1], 1;\nst.shared.u32 [s], %r6;\nbar.sync 0;\nld.shared.u32 %r5, [s];\n" BRANCH,
          "- * -");
    CHECK(".shared .b32 s;\n.shared .b32 u;\n" KERNEL
          "atom.global.add.u32 %r6, [%rd1], 1;\nst.shared.u32 [s], %r6;\nbar.sync 0;\nld.shared.u32 %r5, [u];\n" BRANCH,
          "- - -");
    /* the value depends on which way was taken */
    CHECK(
        KERNEL
        "atom.global.add.u32 %r6, [%rd1], 1;\nmov.u32 %r5, 0;\nsetp.eq.s32 %p2, %r6, 7;\n@!%p2 bra $on;\nmov.u32 %r5, 1;\n$on:\n" BRANCH,
        "- * - * -");
    CHECK(KERNEL "atom.global.add.u32 %r6, [%rd1], 1;\nsetp.eq.s32 %p2, %r6, 7;\nselp.b32 %r5, %r1, %r2, %p2;\n" BRANCH,
          "- * -");
    CHECK(
        KERNEL
        "atom.global.add.u32 %r6, [%rd1], 1;\nmov.u32 %r5, 0;\nsetp.eq.s32 %p2, %r6, 7;\n@%p2 mov.u32 %r5, 1;\n" BRANCH,
        "- * -");
    /* a callee: what it returns, and that it runs at all */
    CHECK(
        ".func (.param .b32 r) f(.param .b32 x)\n{\n.reg .b32 %r<4>;\nld.param.b32 %r1, [x];\nadd.s32 %r1, %r1, 1;\nst.param.b32 [r], %r1;\nret;\n}\n" KERNEL
        "atom.global.add.u32 %r6, [%rd1], 1;\n{\n.param .b32 p0;\n.param .b32 q0;\nst.param.b32 [p0], %r6;\ncall (q0), f, (p0);\nld.param.b32 %r5, [q0];\n}\n" BRANCH,
        "- - * - -");
    CHECK(".func f()\n{\nret;\n}\n" KERNEL
          "atom.global.add.u32 %r5, [%rd1], 1;\nsetp.eq.s32 %p1, %r5, 0;\n@%p1 bra $end;\ncall f;\n$end: ret;\n}\n",
          "- * - *");
}
