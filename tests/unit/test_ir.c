/* ir: building, editing, uses and definitions, verification, cloning. Texts come from the parser. */
#include "test.h"

#include "base/buf.h"
#include "ptx/ptx.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

static struct mg_module *parse(const char *text)
{
    struct mg_module *m = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    if (mg_ptx_parse(text, strlen(text), "t.ptx", &m, &d))
        mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_INPUT));
    mg_diag_release(&d);
    return m;
}

static const char kernel[] = HEAD ".visible .entry k(.param .u64 p, .param .u32 n, .param .align 16 .b8 s[20])\n{\n"
                                  ".reg .pred %p<3>;\n.reg .b32 %r<10>;\n.reg .b64 %rd<5>;\n.reg .v4 .f32 %v;\n"
                                  "ld.param.u64 %rd1, [p];\n"
                                  "@%p1 ld.global.v2.u32 {%r1, %r2}, [%rd1+8];\n"
                                  "setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p1;\n"
                                  "st.global.u32 [%rd1], %r3;\n"
                                  "mov.f32 %v.x, 0f00000000;\n"
                                  "L: @!%p2 bra L;\n"
                                  "atom.global.add.u32 _, [%rd1], 1;\n"
                                  "ret;\n}\n";

/* The i-th instruction of the first function with a body. */
static mg_id inst(const struct mg_module *m, mg_id func, unsigned i)
{
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    if (m->nodes.at[id].kind == MG_NODE_inst && !i--) return id;
    return 0;
}

static void check_regs(const struct mg_module *m, mg_id node, bool defs, const char *want)
{
    mg_id ids[16];
    uint32_t n = defs ? mg_node_defs(m, node, ids, 16) : mg_node_uses(m, node, ids, 16);
    struct mg_buf b = MG_BUF_INIT;
    for (uint32_t i = 0; i < n; i++) {
        if (i) mg_buf_addc(&b, ' ');
        mg_reg_text(m, ids[i], &b);
    }
    MG_CHECK_STR(b.n ? b.at : "", want);
    mg_buf_release(&b);
}

MG_TEST(ir_uses_and_definitions)
{
    struct mg_module *m = parse(kernel);
    mg_id k = mg_module_find_func(m, "k");
    check_regs(m, inst(m, k, 0), true, "%rd1");
    check_regs(m, inst(m, k, 0), false, "");
    check_regs(m, inst(m, k, 1), true, "%r1 %r2");
    check_regs(m, inst(m, k, 1), false, "%p1 %rd1");
    check_regs(m, inst(m, k, 2), true, "%p1 %p2");
    check_regs(m, inst(m, k, 2), false, "%r1 %r2 %p1");
    check_regs(m, inst(m, k, 3), true, "");
    check_regs(m, inst(m, k, 3), false, "%rd1 %r3");
    check_regs(m, inst(m, k, 4), true, "%v");
    check_regs(m, inst(m, k, 4), false, "%v"); /* the other components stay */
    check_regs(m, inst(m, k, 6), true, "");
    check_regs(m, inst(m, k, 6), false, "%rd1");
    MG_CHECK_EQ(mg_node_uses(m, inst(m, k, 2), NULL, 0), 3);
    mg_module_free(m);
}

MG_TEST(ir_parameters_are_laid_out_as_ptx_says)
{
    struct mg_module *m = parse(kernel);
    const struct mg_func *f = &m->funcs.at[mg_module_find_func(m, "k")];
    MG_CHECK_EQ(mg_func_param_offset(f, m->vars.at, 0), 0);
    MG_CHECK_EQ(mg_func_param_offset(f, m->vars.at, 1), 8);
    MG_CHECK_EQ(mg_func_param_offset(f, m->vars.at, 2), 16);
    MG_CHECK_EQ(f->param_bytes, 36);
    mg_module_free(m);
}

MG_TEST(ir_added_names_are_unique_even_against_sets)
{
    struct mg_module *m = parse(kernel);
    mg_id k = mg_module_find_func(m, "k");
    struct mg_buf b = MG_BUF_INIT;
    mg_reg_text(m, mg_module_add_reg(m, k, "%r3", MG_TYPE_b32), &b);
    MG_CHECK(strcmp(b.at, "%r3"));
    mg_buf_reset(&b);
    mg_id set = mg_module_add_regs(m, k, "%r", MG_TYPE_u64, 4);
    mg_reg_text(m, set + 3, &b);
    MG_CHECK(strcmp(b.at, "%r3"));
    MG_CHECK_EQ(m->regs.at[set + 3].number, 3);
    MG_CHECK(strcmp(mg_name(m, m->labels.at[mg_module_add_label(m, k, "L")].name), "L"));
    mg_buf_release(&b);
    mg_module_free(m);
}

MG_TEST(ir_inserted_code_prints_parses_and_is_not_counted)
{
    struct mg_module *m = parse(kernel);
    mg_id k = mg_module_find_func(m, "k");
    uint32_t before = m->funcs.at[k].n_insts;
    mg_id r = mg_module_add_reg(m, k, "%mine", MG_TYPE_u32);
    struct mg_opnd o[3] = {mg_o_reg(r), mg_o_reg(r), mg_o_imm(-1)};
    mg_node_insert_before(m, k, inst(m, k, 1), mg_node_new(m, "add.u32", o, 3));
    mg_id label = mg_module_add_label(m, k, "here");
    mg_node_insert_after(m, k, m->funcs.at[k].last_node, mg_node_new_kind(m, MG_NODE_label, label));
    o[0] = mg_o_label(label);
    mg_node_insert_before(m, k, 0, mg_node_new(m, "bra", o, 1));
    MG_CHECK_EQ(m->funcs.at[k].n_insts, before);
    struct mg_diag d = MG_DIAG_INIT;
    MG_CHECK_EQ(mg_module_verify(m, &d), MG_ERR_OK);
    struct mg_buf b = MG_BUF_INIT;
    mg_ptx_print(m, &b);
    MG_CHECK(strstr(b.at, "\tadd.u32 %mine, %mine, -1;\n\t@%p1 ld.global"));
    MG_CHECK(strstr(b.at, "here:\n\tbra here;\n}"));
    struct mg_module *again = parse(b.at);
    MG_CHECK_EQ(again->n_insts, before + 2);
    mg_module_free(again);
    mg_node_remove(m, k, inst(m, k, 0));
    MG_CHECK_EQ(m->funcs.at[k].n_insts, before - 1);
    mg_buf_release(&b);
    mg_diag_release(&d);
    mg_module_free(m);
}

MG_TEST(ir_verify_finds_what_a_pass_may_break)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_module *m = parse(kernel);
    mg_id k = mg_module_find_func(m, "k");
    mg_id r = mg_module_add_reg(m, k, "%mine", MG_TYPE_u32);
    mg_id decl = m->funcs.at[k].first_node;
    struct mg_opnd o[2] = {mg_o_reg(r), mg_o_imm(1)};
    mg_node_insert_before(m, k, 0, mg_node_new(m, "mov.u32", o, 2));
    MG_CHECK_EQ(mg_module_verify(m, NULL), MG_ERR_OK);
    mg_node_remove(m, k, decl);
    MG_CHECK_EQ(mg_module_verify(m, &d), MG_ERR_STATE);
    MG_CHECK(d.n_errors && strstr(d.items[0].text, "%mine"));
    mg_module_free(m);
    m = parse(kernel);
    m->nodes.at[inst(m, k, 1)].guard = m->regs.n - 1; /* %v is no predicate */
    MG_CHECK_EQ(mg_module_verify(m, NULL), MG_ERR_STATE);
    mg_module_free(m);
    m = parse(kernel);
    o[0] = mg_o_label(mg_module_add_label(m, k, "nowhere"));
    mg_node_insert_before(m, k, 0, mg_node_new(m, "bra", o, 1));
    MG_CHECK_EQ(mg_module_verify(m, NULL), MG_ERR_STATE);
    mg_module_free(m);
    mg_diag_release(&d);
}

MG_TEST(ir_clone_prints_the_same_and_shares_nothing)
{
    struct mg_module *m = parse(kernel), *c = mg_module_clone(m);
    struct mg_buf a = MG_BUF_INIT, b = MG_BUF_INIT;
    mg_ptx_print(m, &a);
    mg_module_free(m);
    mg_id k = mg_module_find_func(c, "k");
    mg_ptx_print(c, &b);
    MG_CHECK_STR(a.at, b.at);
    MG_CHECK_EQ(mg_form_intern(c, "ret", 3), mg_form_intern(c, "ret", 3));
    mg_module_add_reg(c, k, "%more", MG_TYPE_u32);
    MG_CHECK_EQ(mg_module_verify(c, NULL), MG_ERR_OK);
    mg_buf_release(&a);
    mg_buf_release(&b);
    mg_module_free(c);
}

/* What MG_INST makes of operands as code writes them. */
static void expect_opnds(const char *form, const struct mg_opnd *o, uint32_t n, const char *text,
                         const struct mg_opnd *is, uint32_t n_is)
{
    MG_CHECK_STR(form, text);
    MG_CHECK_EQ(n, n_is);
    for (uint32_t i = 0; i < n && i < n_is; i++) {
        MG_CHECK_EQ(o[i].kind, is[i].kind);
        MG_CHECK_EQ(o[i].id, is[i].id);
        MG_CHECK_EQ(o[i].val, is[i].val);
    }
}

MG_TEST(ir_inst_operands)
{
    const mg_id r = 7;
    const int64_t far = -3000000000;
    expect_opnds(MG_INST("membar.gl"), "membar.gl", NULL, 0);
    expect_opnds(MG_INST("add.u32", r, r, -1), "add.u32",
                 (const struct mg_opnd[]){{.kind = MG_OPND_reg, .id = 7},
                                          {.kind = MG_OPND_reg, .id = 7},
                                          {.kind = MG_OPND_imm, .val = UINT64_MAX}},
                 3);
    expect_opnds(MG_INST("st.u64", mg_o_addr_reg(r, 8), far), "st.u64",
                 (const struct mg_opnd[]){{.kind = MG_OPND_addr, .sub = MG_OPND_reg, .id = 7, .val = 8},
                                          {.kind = MG_OPND_imm, .val = (uint64_t)-3000000000}},
                 2);
    expect_opnds(MG_INST("mov.u32", r, mg_o_imm(r)), "mov.u32",
                 (const struct mg_opnd[]){{.kind = MG_OPND_reg, .id = 7}, {.kind = MG_OPND_imm, .val = 7}}, 2);
    const struct mg_opnd each[7] = {{.kind = MG_OPND_imm, .val = 1}, {.kind = MG_OPND_imm, .val = 2},
                                    {.kind = MG_OPND_imm, .val = 3}, {.kind = MG_OPND_imm, .val = 4},
                                    {.kind = MG_OPND_imm, .val = 5}, {.kind = MG_OPND_imm, .val = 6},
                                    {.kind = MG_OPND_imm, .val = 7}};
    expect_opnds(MG_INST("x", 1, 2, 3, 4, 5, 6, 7), "x", each, 7);
}
