/* Loops that ptxas may take for ones that wait, and what is added there: what ptxas 13.0 makes of these forms was
 * looked up with nvdisasm (YIELD or none when an atomic on shared memory stands in them). */
#include "analysis/spin.h"
#include "base/buf.h"
#include "ptx/ptx.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                                           \
    ".version 7.8\n.target sm_90\n.address_size 64\n.func f() { ret; }\n"                                              \
    ".visible .entry k(.param .u64 a, .param .u32 n)\n{\n.reg .b32 %r<19>; .reg .b64 %rd<9>; .reg .pred %p<9>; "       \
    ".reg .f32 %f<9>;\nld.param.u64 %rd1, [a]; ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x; ld.global.u32 %r2, "        \
    "[%rd1]; mov.u32 %r3, 0;\n"

/* want: a letter a loop, outer ones first: s it may spin, e it ends. */
static void check(int line, const char *want, const char *body)
{
    struct mg_module *m = NULL;
    struct mg_cfg *c = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf text = MG_BUF_INIT;
    mg_buf_printf(&text, "%s%sst.global.u32 [%%rd1], %%r3;\nret;\n}\n", HEAD, body);
    if (mg_ptx_parse(text.at, text.n, "t.ptx", &m, &d)) {
        mg_test_fail(__FILE__, line, "%s", mg_diag_first(&d, MG_ERR_INPUT));
    } else {
        c = mg_cfg_new(m, mg_module_find_func(m, "k"));
        struct mg_dom *dom = mg_dom_new(c);
        struct mg_loops *l = mg_loops_new(c);
        struct mg_ivs *v = mg_ivs_new(c, dom, l);
        bool *may = mg_loops_may_spin(c, l, v);
        if (l->n_loops != strlen(want)) mg_test_fail(__FILE__, line, "%u loops", (unsigned)l->n_loops);
        for (uint32_t i = 0; i < l->n_loops && i < strlen(want); i++)
            if (may[i] != (want[i] == 's')) mg_test_fail(__FILE__, line, "loop %u: want %c", (unsigned)i, want[i]);
        free(may);
        mg_ivs_free(v);
        mg_loops_free(l);
        mg_dom_free(dom);
    }
    mg_cfg_free(c);
    mg_module_free(m);
    mg_buf_release(&text);
    mg_diag_release(&d);
}
#define LOOPS(want, body) check(__LINE__, want, body)
#define UP(label, reg, bound, p)                                                                                       \
    "add.u32 " reg ", " reg ", 1;\nsetp.lt.u32 " p ", " reg ", " bound ";\n@" p " bra " label ";\n"

MG_TEST(spin_loops_that_count_up_end)
{
    LOOPS("e", "L:\n" UP("L", "%r3", "%r9", "%p1"));
    LOOPS("e", "L:\n" UP("L", "%r3", "%r2", "%p1"));
    LOOPS("ee", "L:\nmov.u32 %r4, 0;\nM:\n" UP("M", "%r4", "%r2", "%p3") UP("L", "%r3", "%r9", "%p1"));
    /* another way out, which is no matter */
    LOOPS("e", "L:\nld.global.u32 %r4, [%rd1];\nsetp.eq.u32 %p2, %r4, 7;\n@%p2 bra O;\n" UP("L", "%r3", "%r9",
                                                                                            "%p1") "O:\n");
    LOOPS("e", "div.approx.f32 %f1, %f2, %f3;\nL:\n" UP("L", "%r3", "%r9", "%p1"));
}

MG_TEST(spin_other_loops_may_wait)
{
    LOOPS("s", "L:\nadd.u32 %r3, %r3, -1;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra L;\n");
    LOOPS("s", "L:\nshr.u32 %r2, %r2, 1;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra L;\n");
    LOOPS("s", "L:\nld.volatile.global.u32 %r4, [%rd1];\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 bra L;\n");
    /* what is around one that does, or within */
    LOOPS("ss", "L:\nmov.u32 %r4, 0;\nM:\n" UP("M", "%r4", "%r9",
                                               "%p3") "shr.u32 %r2, %r2, 1;\nsetp.ne.u32 %p2, %r2, 0;\n@%p2 bra L;\n");
    LOOPS("es", "L:\nadd.u32 %r5, %r5, %r9;\nM:\nshr.u32 %r2, %r2, 1;\nsetp.ne.u32 %p2, %r2, 0;\n@%p2 bra M;\n" UP(
                    "L", "%r3", "%r9", "%p1"));
}

MG_TEST(spin_a_subroutine_hides_the_end_of_all)
{
    LOOPS("s", "L:\n" UP("L", "%r3", "%r9", "%p1") "div.rn.f32 %f1, %f2, %f3;\n");
    LOOPS("s", "sqrt.rn.f32 %f1, %f2;\nL:\n" UP("L", "%r3", "%r9", "%p1"));
    LOOPS("s", "L:\n" UP("L", "%r3", "%r9", "%p1") "call f;\n");
}
