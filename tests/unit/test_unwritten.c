/* Registers that may be read before they are written: what is and what is not follows from the few ways that
 * each of these kernels has. */
#include "analysis/unwritten.h"
#include "base/buf.h"
#include "ptx/ptx.h"
#include "test.h"

#define HEAD                                                                                                                                     \
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<5>; .reg .pred %p<5>;\n" \
    "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 7; setp.gt.u32 %p2, %r1, 9;\n"

/* "%r2@6": the register and the line of its use; lines of the body are counted from 8 on. */
static void check(int line, const char *body, const char *want)
{
    struct mg_module *m = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf text = MG_BUF_INIT, got = MG_BUF_INIT;
    mg_buf_printf(&text, "%s%s}\n", HEAD, body);
    if (mg_ptx_parse(text.at, text.n, "t.ptx", &m, &d)) {
        mg_test_fail(__FILE__, line, "%s", mg_diag_first(&d, MG_ERR_INPUT));
        return;
    }
    struct mg_cfg *c = mg_cfg_new(m, mg_module_find_func(m, "k"));
    struct mg_unwritten *u = mg_unwritten_new(c);
    mg_buf_adds(&got, "");
    for (uint32_t i = 0; i < u->n; i++) {
        if (i) mg_buf_addc(&got, ' ');
        mg_reg_text(m, u->at[i].reg, &got);
        mg_buf_printf(&got, "@%u", m->nodes.at[u->at[i].node].line - 7);
    }
    if (strcmp(got.at ? got.at : "", want) || u->n_given_up)
        mg_test_fail(__FILE__, line, "\"%s\", not \"%s\"", got.at ? got.at : "", want);
    mg_unwritten_free(u);
    mg_cfg_free(c);
    mg_module_free(m);
    mg_buf_release(&text);
    mg_buf_release(&got);
    mg_diag_release(&d);
}
#define IS(want, body) check(__LINE__, body, want)

MG_TEST(unwritten_registers_are_named)
{
    IS("%r2@1", "st.global.u32 [%rd1], %r2;\nret;\n");
    IS("%r2@2", "@%p1 mov.u32 %r2, 1;\nst.global.u32 [%rd1], %r2;\nret;\n");
    IS("%r2@2", "@%p1 mov.u32 %r2, 1;\n@%p2 st.global.u32 [%rd1], %r2;\nret;\n");
    IS("%r2@2", "@%p1 mov.u32 %r2, 1;\n@!%p1 st.global.u32 [%rd1], %r2;\nret;\n");
    IS("%r2@3",
       "@%p1 mov.u32 %r2, 1;\nsetp.lt.u32 %p1, %r1, 8;\n@%p1 st.global.u32 [%rd1], %r2;\nret;\n"); /* another %p1 */
    IS("%r2@4", "@%p1 bra L;\nmov.u32 %r2, 1;\nL:\nst.global.u32 [%rd1], %r2;\nret;\n");
    IS("%r2@2", "mov.u32 %r3, %r2;\nadd.u32 %r4, %r3, 1;\nst.global.u32 [%rd1], %r4;\nret;\n"); /* through a move */
    IS("%r2@2", "selp.b32 %r3, %r1, %r2, %p1;\nst.global.u32 [%rd1], %r3;\nret;\n");
    IS("%p3@1", "@%p3 st.global.u32 [%rd1], %r1;\nret;\n");
    IS("%r2@2", "L:\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p3, %r2, 9;\n@%p3 bra L;\nret;\n"); /* an induction variable
                                                                                               without a beginning */
    IS("%rd2@1", "ld.global.u32 %r2, [%rd2];\nret;\n");
}

MG_TEST(unwritten_is_silent_on_predicated_code)
{
    IS("", "mov.u32 %r2, 1;\nst.global.u32 [%rd1], %r2;\nret;\n");
    IS("", "@%p1 mov.u32 %r2, 1;\n@%p1 st.global.u32 [%rd1], %r2;\nret;\n");
    IS("", "@%p1 mov.u32 %r2, 1;\n@!%p1 mov.u32 %r2, 2;\nst.global.u32 [%rd1], %r2;\nret;\n");
    IS("", "@%p1 bra L;\nmov.u32 %r2, 1;\nL:\n@%p1 bra M;\nst.global.u32 [%rd1], %r2;\nM:\nret;\n"); /* two branches on
                                                                                                        one predicate */
    IS("", "@%p1 mov.u32 %r2, 1;\n@!%p1 bra M;\nst.global.u32 [%rd1], %r2;\nM:\nret;\n");
    IS("", "@%p1 bra L;\nmov.u32 %r2, 1;\nbra M;\nL:\nmov.u32 %r2, 2;\nM:\nst.global.u32 [%rd1], %r2;\nret;\n");
    IS("", "mov.u32 %r3, %r2;\nret;\n"); /* moved, and not used */
    IS("", "@%p1 mov.u32 %r2, 1;\nselp.b32 %r3, %r2, 5, %p1;\n@%p1 st.global.u32 [%rd1], %r3;\nret;\n");
    IS("", "@%p1 ret;\nL:\nmov.u32 %r2, 1;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p3, %r2, 1;\n@%p3 bra L;\nret;\n");
}
