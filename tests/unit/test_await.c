/* Loops that another CTA may end: for each kernel the answer follows from what it reads, and where. */
#include "analysis/await.h"
#include "base/buf.h"
#include "ptx/ptx.h"
#include "test.h"

#define HEAD                                                                                                                           \
    ".version 7.8\n.target sm_90\n.address_size 64\n.shared .align 4 .b8 s[64];\n.const .align 4 .b8 c[64];\n.extern .func other();\n" \
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"                                                           \
    ".func (.param .b32 r) poll(.param .b64 a) {\n.reg .b64 %rd<3>; .reg .b32 %r<3>;\nld.param.u64 %rd1, [a];\n"                       \
    "ld.volatile.global.u32 %r1, [%rd1];\nst.param.b32 [r], %r1;\nret;\n}\n"                                                           \
    ".func traps(.param .b64 a) {\n.reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .pred %p<3>;\nld.param.u64 %rd1, [a];\n"                    \
    "ld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 ret;\ntrap;\n}\n"                                             \
    ".func tells(.param .b64 a) {\n.reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .pred %p<3>;\nld.param.u64 %rd1, [a];\n"                    \
    "ld.volatile.global.u32 %r1, [%rd1];\nsetp.ne.u32 %p1, %r1, 0;\nbarrier.red.or.pred %p2, 0, %p1;\nret;\n}\n"                       \
    ".func keeps(.param .b64 a) {\n.reg .b64 %rd<5>; .reg .pred %p<3>;\nld.param.u64 %rd1, [a];\nmov.b64 %rd2, a;\n"                   \
    "L:\nld.volatile.global.u64 %rd3, [%rd1];\nst.local.b64 [%rd2], %rd3;\nld.param.u64 %rd4, [a];\n"                                  \
    "setp.eq.u64 %p1, %rd4, 0;\n@%p1 bra L;\nret;\n}\n"                                                                                \
    ".func quits(.param .b64 a) {\n.reg .pred %p<3>;\nsetp.eq.u32 %p1, 1, 2;\n@%p1 exit;\nret;\n}\n"                                   \
    ".visible .entry k(.param .u64 a, .param .u32 n)\n{\n.reg .b32 %r<19>; .reg .b64 %rd<9>; .reg .pred %p<9>;\n"                      \
    "ld.param.u64 %rd1, [a]; ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 7;\n"

static void check(int line, bool want, const char *body)
{
    struct mg_module *m = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf text = MG_BUF_INIT;
    mg_buf_printf(&text, "%s%sret;\n}\n", HEAD, body);
    if (mg_ptx_parse(text.at, text.n, "t.ptx", &m, &d))
        mg_test_fail(__FILE__, line, "%s", mg_diag_first(&d, MG_ERR_INPUT));
    else if (mg_kernel_may_await(m, mg_module_find_func(m, "k")) != want)
        mg_test_fail(__FILE__, line, want ? "it may wait" : "it waits for nobody");
    mg_module_free(m);
    mg_buf_release(&text);
    mg_diag_release(&d);
}
#define WAITS(body) check(__LINE__, true, body)
#define NEVER(body) check(__LINE__, false, body)

MG_TEST(await_counted_loops_wait_for_nobody)
{
    NEVER("ld.global.u32 %r2, [%rd1];\nst.global.u32 [%rd1], %r2;\n");
    NEVER("L:\nld.global.u32 %r2, [%rd1];\nadd.u32 %r3, %r3, %r2;\nadd.u32 %r4, %r4, 1;\n"
          "setp.lt.u32 %p2, %r4, %r9;\n@%p2 bra L;\n");
    NEVER("ld.global.u32 %r2, [%rd1];\nL:\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, %r2;\n@%p2 bra L;\n");
    /* an inner loop that runs as often as the outer one has read, and ends by that alone */
    NEVER("L:\nld.global.u32 %r2, [%rd1];\nmov.u32 %r5, 0;\nM:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p3, %r5, %r2;\n"
          "@%p3 bra M;\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, %r9;\n@%p2 bra L;\n");
    /* what is read decides what is added, not how long */
    NEVER("L:\natom.global.add.u32 %r2, [%rd1], 1;\nsetp.eq.u32 %p3, %r2, 0;\n@%p3 bra M;\nadd.u32 %r5, %r5, 1;\nM:\n"
          "add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, %r9;\n@%p2 bra L;\n");
    NEVER("L:\nld.param.u32 %r2, [n];\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, %r2;\n@%p2 bra L;\n");
}

MG_TEST(await_what_a_loop_reads_may_end_it)
{
    WAITS("L:\nld.volatile.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra L;\n");
    WAITS("L:\natom.global.cas.b32 %r2, [%rd1], 0, 1;\nsetp.ne.u32 %p2, %r2, 0;\n@%p2 bra L;\n");
    WAITS("L:\nld.relaxed.gpu.global.u32 %r2, [%rd1];\nshl.b32 %r3, %r2, 1;\nmov.u32 %r4, %r3;\n"
          "setp.eq.u32 %p2, %r4, 0;\n@%p2 bra L;\n");
    /* in another register, the round before */
    WAITS("mov.u32 %r3, 0;\nL:\nsetp.ne.u32 %p2, %r3, 0;\n@%p2 bra M;\nld.global.u32 %r3, [%rd1];\nbra L;\nM:\n");
    /* what is read decides whether the counter goes on */
    WAITS("L:\nld.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p3, %r2, 0;\n@%p3 bra M;\nadd.u32 %r4, %r4, 1;\nM:\n"
          "setp.lt.u32 %p2, %r4, %r9;\n@%p2 bra L;\n");
    WAITS("L:\nld.global.u32 %r2, [%rd1];\nsetp.ne.u32 %p3, %r2, 0;\n@%p3 add.u32 %r4, %r4, 1;\n"
          "setp.lt.u32 %p2, %r4, %r9;\n@%p2 bra L;\n");
    /* what is read leads to a loop within, which reads again behind that */
    WAITS("L:\nld.global.u32 %r2, [%rd1];\nM:\nsetp.eq.u32 %p3, %r2, 0;\n@%p3 bra N;\nadd.u32 %r4, %r4, 1;\n"
          "setp.lt.u32 %p2, %r4, %r9;\n@%p2 bra L;\nbra O;\nN:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p4, %r5, %r9;\n"
          "@%p4 bra P;\nld.global.u32 %r6, [%rd1];\nP:\nbra M;\nO:\n");
    /* a way out that only a value from memory leads to */
    WAITS("L:\nld.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p3, %r2, 0;\n@%p3 bra L;\n@%p1 bra M;\nbra L;\nM:\n");
    WAITS("L:\nld.global.u32 %r2, [%rd1];\nsetp.ne.u32 %p3, %r2, 0;\n@%p3 exit;\nbra L;\n");
    /* one warp reads it and tells the others through shared memory */
    WAITS("L:\n@%p1 ld.global.u32 %r2, [%rd1];\nst.shared.u32 [s], %r2;\nbar.sync 0;\nld.shared.u32 %r3, [s];\n"
          "setp.eq.u32 %p2, %r3, 0;\n@%p2 bra L;\n");
    /* one lane of a warp, and the others by a vote */
    WAITS("L:\nld.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p2, %r2, 0;\nvote.sync.any.pred %p3, %p2, -1;\n@%p3 bra L;\n");
    WAITS("L:\nld.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p2, %r2, 0;\nbar.red.or.pred %p3, 0, %p2;\n@%p3 bra L;\n");
    /* a loop within the loop that shares its head, and one that ends by a flag that another of its ways sets */
    WAITS("mov.u32 %r3, 0;\nL:\nadd.u32 %r4, %r4, 1;\nM:\nsetp.ne.u32 %p3, %r3, 0;\n@%p3 bra N;\n"
          "ld.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p4, %r2, 0;\n@%p4 bra M;\nmov.u32 %r3, 1;\nbra M;\nN:\n"
          "setp.lt.u32 %p2, %r4, %r9;\n@%p2 bra L;\n");
    /* how often an inner loop ran */
    WAITS("L:\nld.global.u32 %r2, [%rd1];\nM:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p3, %r5, %r2;\n@%p3 bra M;\n"
          "setp.lt.u32 %p2, %r5, %r9;\n@%p2 bra L;\n");
}

/* One warp polls, and tells the others at a barrier of theirs; they answer, and all leave by the answer alone. */
#define HEARS "B:\nbarrier.red.or.pred %p3, 0, %p6;\nbarrier.red.or.pred %p4, 0, %p3;\n@!%p4 bra B;\nbra E;\n"

MG_TEST(await_threads_tell_each_other)
{
    WAITS("setp.ne.u32 %p6, %r9, %r9;\n@%p1 bra A;\n" HEARS
          "A:\nld.volatile.global.u32 %r2, [%rd1];\nsetp.ne.u32 %p5, %r2, 0;\nbarrier.red.or.pred %p7, 0, %p5;\n"
          "barrier.red.or.pred %p8, 0, %p6;\n@!%p8 bra A;\nE:\n");
    WAITS("setp.ne.u32 %p6, %r9, %r9;\n@%p1 bra A;\n" HEARS
          "A:\n{\n.param .b64 x;\nst.param.b64 [x], %rd1;\ncall tells, (x);\n}\nbarrier.red.or.pred %p8, 0, %p6;\n"
          "@!%p8 bra A;\nE:\n");
    NEVER("setp.ne.u32 %p6, %r9, %r9;\n" HEARS "E:\n"); /* nobody has read anything */
    /* what is told decides what is added, not how long */
    NEVER("L:\nld.global.u32 %r2, [%rd1];\nshfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;\nadd.u32 %r5, %r5, %r3;\n"
          "add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, %r9;\n@%p2 bra L;\n");
}

MG_TEST(await_an_endless_loop_ends_by_a_trap)
{
    WAITS("L:\n{\n.param .b64 x;\nst.param.b64 [x], %rd1;\ncall traps, (x);\n}\nbra L;\n");
    WAITS("L:\nld.volatile.global.u32 %r2, [%rd1];\nsetp.ne.u32 %p2, %r2, 0;\n@%p2 trap;\nbra L;\n");
    NEVER("L:\nld.const.u32 %r2, [c];\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, %r2;\n@%p2 bra L;\n");
    NEVER("ld.global.u32 %r2, [%rd1];\nsetp.ne.u32 %p2, %r2, 0;\n@%p2 bra M;\nL:\nbra L;\nM:\n"); /* nor natively */
}

MG_TEST(await_calls_are_followed)
{
    WAITS("L:\n{\n.param .b64 x;\n.param .b32 y;\nst.param.b64 [x], %rd1;\ncall (y), poll, (x);\n"
          "ld.param.b32 %r2, [y];\n}\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra L;\n");
    NEVER(
        "{\n.param .b64 x;\n.param .b32 y;\nst.param.b64 [x], %rd1;\ncall (y), poll, (x);\nld.param.b32 %r2, [y];\n}\n"
        "setp.eq.u32 %p2, %r2, 0;\n@%p2 bra M;\nadd.u32 %r2, %r2, 1;\nM:\n");
    NEVER("{\n.param .b64 x;\n.param .b64 z;\n.param .b32 y;\nst.param.b64 [x], %rd1;\nst.param.b64 [z], %rd1;\n"
          "call (y), vprintf, (x, z);\n}\n");
    WAITS("call other;\n");
    WAITS("{\n.param .b64 x;\nst.param.b64 [x], %rd1;\ncall keeps, (x);\n}\n"); /* in a parameter of its own */
    WAITS("{\n.param .b64 x;\nst.param.b64 [x], %rd1;\ncall quits, (x);\n}\n"); /* what calls it may be a loop */
}
