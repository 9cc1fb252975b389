/* ptx: what the parser accepts, how it is printed, what it says about errors. */
#include "test.h"

#include "base/buf.h"
#include "ptx/ptx.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define BODY(s)                                                                                                           \
    HEAD                                                                                                                  \
        ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<9>;\n" \
        ".reg .f64 %fd<9>;\n" s "\nret;\n}\n"

static struct mg_module *parse_as(const char *text, int line)
{
    struct mg_module *m = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    if (mg_ptx_parse(text, strlen(text), "t.ptx", &m, &d)) {
        struct mg_buf b = MG_BUF_INIT;
        mg_diag_print(&d, &b);
        mg_test_fail(__FILE__, line, "%s", b.at);
        mg_buf_release(&b);
    } else {
        if (mg_module_verify(m, &d)) mg_test_fail(__FILE__, line, "%s", mg_diag_first(&d, MG_ERR_STATE));
        if (m->n_unknown_forms) mg_test_fail(__FILE__, line, "unknown words");
    }
    mg_diag_release(&d);
    return m;
}

/* Prints text's module, checks that wanted is part of it, and that printing is a fixed point. */
static void check_print(const char *text, const char *wanted, int line)
{
    struct mg_buf a = MG_BUF_INIT, b = MG_BUF_INIT;
    struct mg_module *m = parse_as(text, line);
    if (!m) return;
    mg_ptx_print(m, &a);
    mg_module_free(m);
    if (!strstr(a.at, wanted)) mg_test_fail(__FILE__, line, "\"%s\" is not in:\n%s", wanted, a.at);
    m = parse_as(a.at, line);
    if (m) {
        mg_ptx_print(m, &b);
        mg_module_free(m);
        if (strcmp(a.at, b.at)) mg_test_fail(__FILE__, line, "no fixed point:\n%s\n%s", a.at, b.at);
    }
    mg_buf_release(&a);
    mg_buf_release(&b);
}
#define PRINTS(in, out) check_print(BODY(in), out, __LINE__)
#define KEEPS(in)       check_print(BODY(in), in, __LINE__)
#define MODULE(in, out) check_print(HEAD in, out, __LINE__)

/* The first error must stand at line:col and contain words; n errors in all. */
static void check_error(const char *text, unsigned line, unsigned col, const char *words, unsigned n, int at)
{
    struct mg_module *m = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    if (!mg_ptx_parse(text, strlen(text), "t.ptx", &m, &d)) {
        mg_test_fail(__FILE__, at, "accepted");
        mg_module_free(m);
    } else if (d.n_errors != n || d.items[0].line != line || d.items[0].col != col || !strstr(d.items[0].text, words)) {
        struct mg_buf b = MG_BUF_INIT;
        mg_diag_print(&d, &b);
        mg_test_fail(__FILE__, at, "want %u errors, the first at %u:%u with \"%s\":\n%s", n, line, col, words, b.at);
        mg_buf_release(&b);
    }
    mg_diag_release(&d);
}
#define FAILS(text, line, col, words, n) check_error(text, line, col, words, n, __LINE__)

MG_TEST(ptx_operands)
{
    KEEPS("\tmov.u32 %r1, %tid.x;");
    KEEPS("\tmov.u64 %rd1, %clock64;");
    KEEPS("\tmov.u32 %r1, WARP_SZ;");
    KEEPS("\tmov.b64 {%r1, %r2}, %rd1;");
    KEEPS("\tld.global.v4.f32 {%f1, %f2, _, %f4}, [%rd1+-16];");
    KEEPS("\tst.global.u32 [%rd1+4], 7;");
    KEEPS("\tld.global.u32 %r1, [4096];");
    KEEPS("\tsetp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;");
    KEEPS("\tshfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;");
    KEEPS("\t@!%p1 bra $L;\n$L:");
    KEEPS("\tvadd.u32.u32.s32.sat %r1, %r2.b3, -%r3.h1, %r4;");
    KEEPS("\tatom.global.cas.b32 _, [%rd1], 0, 1;");
    KEEPS("\tadd.u32 %r1, %r2+1, %r3+-1;");
    PRINTS("ld.param.u64 %rd1,[p+0];", "\tld.param.u64 %rd1, [p];");
    PRINTS("cvt.u32\n.u16 %r1, 3 ; // split\n", "\tcvt.u32.u16 %r1, 3;");
    PRINTS("ld.global.u32 %r1, [%rd1-4];", "[%rd1+-4]");
    PRINTS("ld.global.u32 %r1, [%rd1 + 4*2];", "[%rd1+8]");
}

MG_TEST(ptx_constants)
{
    KEEPS("\tmov.u32 %r1, 0xffffffff;");
    KEEPS("\tmov.u64 %rd1, 18446744073709551615U;");
    KEEPS("\tmov.u32 %r1, 017;");
    KEEPS("\tmov.u32 %r1, 0b1011;");
    KEEPS("\tmov.u32 %r1, -2147483648;");
    KEEPS("\tmov.f32 %f1, 0f3F800000;");
    KEEPS("\tmov.f64 %fd1, 0d3FF0000000000000;");
    KEEPS("\tmov.f32 %f1, 1.5;");
    KEEPS("\tmov.f64 %fd1, -1.5e-3;");
    PRINTS("mov.f32 %f1, -0f3f800000;", "0fBF800000");
    PRINTS("mov.u32 %r1, (1 + 2) * 3 - (4 << 2) / 5;", " 6;");
    PRINTS("mov.u32 %r1, 7 > 3 ? 10 : 20;", " 10;");
    PRINTS("mov.s32 %r1, ~0;", " -1;");
    PRINTS("mov.u64 %rd1, (.u64) -1;", "18446744073709551615U");
    PRINTS("mov.u32 %r1, WARP_SZ * 2;", " 64;");
    PRINTS("mov.f64 %fd1, 1.0 / 4.0;", "0d3FD0000000000000");
    PRINTS("mov.u32 %r1, -7 % 4;", " -3;");
}

/* Of a function's first instruction. */
static const struct mg_opnd *second_operand(const struct mg_module *m, mg_id func)
{
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    if (m->nodes.at[id].kind == MG_NODE_inst) return &m->opnds.at[m->nodes.at[id].opnd + 1];
    return m->opnds.at;
}

MG_TEST(ptx_scopes_shadow_and_end)
{
    KEEPS("\t{\n\t.reg .b32 %r<2>;\n\tmov.u32 %r1, 1;\n\tmov.u32 %r5, 2;\n\t}\n\tmov.u32 %r1, 3;");
    struct mg_module *m = parse_as(
        BODY("{ .reg .b64 %r1; mov.u64 %r1, 1; { .reg .b32 %r<2>; mov.u32 %r1, %r3; } }\nmov.u32 %r1, 2;"), __LINE__);
    enum mg_type types[8];
    unsigned n = 0;
    MG_EACH_NODE(m, &m->funcs.at[1], id)
    if (m->nodes.at[id].kind == MG_NODE_inst && m->nodes.at[id].n_opnds && n < 8)
        types[n++] = m->regs.at[m->opnds.at[m->nodes.at[id].opnd].id].type;
    MG_CHECK_EQ(n, 3);
    MG_CHECK_EQ(types[0], MG_TYPE_b64);
    MG_CHECK_EQ(types[1], MG_TYPE_b32);
    MG_CHECK_EQ(types[2], MG_TYPE_b32);
    mg_module_free(m);
    FAILS(BODY("{ .reg .b32 x; }\nmov.u32 x, 1;"), 12, 9, "'x' is not declared", 1);
    /* a parameter called as its function hides it in there, and only there */
    m = parse_as(
        HEAD
        ".func f(.param .b32 f)\n{\n.reg .b32 %r<2>;\nld.param.u32 %r1, [f];\nret;\n}\n.entry k()\n{\n.reg .b64 %d;\nmov.u64 %d, f;\nret;\n}\n",
        __LINE__);
    const struct mg_opnd *in = second_operand(m, 1), *out = second_operand(m, 2);
    MG_CHECK(in->kind == MG_OPND_addr && in->sub == MG_OPND_var);
    MG_CHECK_EQ(out->kind, MG_OPND_func);
    MG_CHECK_EQ(out->id, 1);
    mg_module_free(m);
}

MG_TEST(ptx_labels_belong_to_their_block)
{
    struct mg_module *m = parse_as(BODY("{ bra L; L: }\n{ bra L; L: }\n{ bra OUT; }\nOUT:\nOUT2:"), __LINE__);
    mg_id targets[3], n = 0;
    MG_EACH_NODE(m, &m->funcs.at[1], id)
    if (m->nodes.at[id].kind == MG_NODE_inst && mg_node_form(m, &m->nodes.at[id])->op == MG_OP_bra)
        targets[n++] = m->opnds.at[m->nodes.at[id].opnd].id;
    MG_CHECK(targets[0] != targets[1]);
    MG_CHECK(m->labels.at[targets[0]].targeted);
    MG_CHECK(m->labels.at[targets[0]].node < m->labels.at[targets[1]].node);
    MG_CHECK_STR(mg_name(m, m->labels.at[targets[2]].name), "OUT");
    MG_CHECK(!m->labels.at[m->labels.n - 1].targeted);
    mg_module_free(m);
    FAILS(BODY("bra NOWHERE;"), 11, 5, "'NOWHERE' is not declared", 1);
    FAILS(BODY("L:\nL:"), 12, 1, "stands twice", 1);
}

MG_TEST(ptx_calls_prototypes_and_branch_tables)
{
    MODULE(".extern .func (.param .b32 r) f(\n\t.param .b64 a\n);\n"
           ".entry k()\n{\n\t{\n\t.param .b64 q;\n\t.param .b32 s;\n\tcall.uni (s), f, (q);\n\t}\n\tret;\n}\n",
           "\tcall.uni (s), f, (q);");
    MODULE(
        ".entry k()\n{\n\t.reg .b64 %rd<2>;\n\t.param .b64 q;\n"
        "proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[12]) .noreturn;\n\tcall %rd1, (q), proto;\n\tret;\n}\n",
        "proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[12]) .noreturn;\n\tcall %rd1, (q), proto;");
    struct mg_module *m = parse_as(BODY("ts: .branchtargets A, B;\nbrx.idx %r1, ts;\nA:\nB:"), __LINE__);
    MG_CHECK(m->labels.at[1].targeted && m->labels.at[2].targeted);
    mg_module_free(m);
    KEEPS("ts: .branchtargets A, B;\n\tbrx.idx %r1, ts;\nA:\nB:");
    MODULE(".func f()\n{\n\tret;\n}\n.func g();\n.alias g, f;\n", ".alias g, f;");
    MODULE(
        ".func f()\n{\n\tret;\n}\n.entry k()\n{\n\t.reg .b64 r;\nt: .calltargets f;\n\tmov.u64 r, f;\n\tcall r, t;\n\tret;\n}\n",
        "t: .calltargets f;");
}

MG_TEST(ptx_functions_with_register_parameters)
{
    MODULE(".func (.reg .f32 y) f (.reg .f32 a, .reg .b32 n)\n{\n\tadd.f32 y, a, a;\n\tret;\n}\n",
           ".func (.reg .f32 y) f(\n\t.reg .f32 a,\n\t.reg .b32 n\n)");
    struct mg_module *m = parse_as(
        HEAD ".func f (.param .u32 a)\n.func g (.param .u32 a)\n{\nret;\n}\n.func f (.param .u32 b)\n{ ret; }\n",
        __LINE__);
    mg_id f = mg_module_find_func(m, "f");
    MG_CHECK(m->funcs.at[f].defined && f != 1);
    MG_CHECK_EQ(m->funcs.at[1].def, f);
    MG_CHECK_EQ(m->funcs.at[f].decl_of, 1);
    mg_module_free(m);
    FAILS(HEAD ".func f() { ret; }\n.func f() { ret; }\n", 5, 13, "defined twice", 1);
}

MG_TEST(ptx_entries_with_directives)
{
    struct mg_module *m = parse_as(
        HEAD
        ".visible .entry k(.param .u64 .ptr .global .align 8 p)\n.maxntid 256, 2\n.minnctapersm 3 .pragma \"x.y\";\n"
        ".maxnreg 40\n.reqnctapercluster 2\n{ ret; }\n",
        __LINE__);
    const struct mg_func *f = &m->funcs.at[1];
    MG_CHECK_EQ(f->maxntid[0], 256);
    MG_CHECK_EQ(f->maxntid[1], 2);
    MG_CHECK_EQ(f->maxntid[2], 1);
    MG_CHECK_EQ(f->minnctapersm, 3);
    MG_CHECK_EQ(f->maxnreg, 40);
    MG_CHECK_EQ(f->cluster[0], 2);
    MG_CHECK_EQ(f->n_directives, 5);
    const struct mg_var *p = &m->vars.at[f->first_param];
    MG_CHECK(p->is_ptr && p->ptr_space == MG_SPACE_global && p->ptr_align == 8);
    mg_module_free(m);
    MODULE(".entry k(.param .u64 .ptr .global .align 8 p)\n.maxntid 256,2 .pragma \"x.y\";\n{ ret; }\n",
           ".param .u64 .ptr .global .align 8 p\n)\n.maxntid 256,2\n.pragma \"x.y\";\n{");
}

MG_TEST(ptx_variables_and_initialisers)
{
    MODULE(".global .align 4 .u32 a[2][3] = {{1, 2}, {3}};\n", ".global .align 4 .u32 a[2][3] = {{1, 2}, {3}};");
    MODULE(".const .f32 c[] = {1.5, 0f3f800000, 2};\n", ".const .f32 c[3] = {1.5, 0f3F800000, 2};");
    MODULE(".global .u32 x;\n.global .u64 t[3] = {x, generic(x)+4, t};\n", ".global .u64 t[3] = {x, generic(x)+4, t};");
    MODULE(".global .u32 x;\n.global .u8 b[2] = {0xFF(x), 0xff00(generic(x))};\n", "{0xFF(x), 0xFF00(generic(x))};");
    MODULE(".func f() { ret; }\n.visible .global .u64 vt[2] = {0, f};\n", ".visible .global .u64 vt[2] = {0, f};");
    MODULE(".extern .shared .align 16 .b8 s[];\n", ".extern .shared .align 16 .b8 s[];");
    MODULE(".global .attribute(.managed) .b32 m;\n", ".global .attribute(.managed) .b32 m;");
    MODULE(".global .samplerref s = { addr_mode_0 = clamp_to_border, filter_mode=nearest };\n",
           "{addr_mode_0 = clamp_to_border, filter_mode = nearest};");
    MODULE(".global .u32 a, b = 4, c[2];\n", ".global .u32 a;\n.global .u32 b = 4;\n.global .u32 c[2];");
    MODULE(".shared .v4 .f32 q<2>;\n", ".shared .v4 .f32 q0;\n.shared .v4 .f32 q1;");
    MODULE(".const[2] .u32 bank;\n", ".const[2] .u32 bank;");
    MODULE(".weak .const .align 8 .b8 w[16] = {1};\n", ".weak .const .align 8 .b8 w[16] = {1};");
    struct mg_module *m = parse_as(
        HEAD ".extern .global .u32 e;\n.func f() { .reg .b64 r; mov.u64 r, e; ret; }\n.global .u32 e = 7;\n", __LINE__);
    MG_CHECK_EQ(m->vars.at[1].def, 2);
    MG_CHECK_EQ(mg_module_find_var(m, "e"), 2);
    mg_module_free(m);
    FAILS(HEAD ".global .u64 t = nothing;\n", 4, 18, "'nothing' is not declared", 1);
}

MG_TEST(ptx_array_elements_are_addresses)
{
    struct mg_module *m = parse_as(
        HEAD
        ".global .u32 a[4][5];\n.entry k() { .reg .b32 r; .reg .b64 d;\nld.global.u32 r, a[2];\nmov.u64 d, a[1];\nret; }\n",
        __LINE__);
    struct mg_buf b = MG_BUF_INIT;
    mg_ptx_print(m, &b);
    MG_CHECK(strstr(b.at, "ld.global.u32 r, [a+8];"));
    MG_CHECK(strstr(b.at, "mov.u64 d, a+4;"));
    mg_buf_release(&b);
    mg_module_free(m);
}

static unsigned marks_of(const struct mg_module *m)
{
    unsigned marks = 0, n = 0;
    MG_EACH_NODE(m, &m->funcs.at[mg_module_find_func(m, "k")], id)
    if (m->nodes.at[id].kind == MG_NODE_inst || m->nodes.at[id].kind == MG_NODE_label)
        marks |= (m->nodes.at[id].flags & MG_NF_PROBE ? 1u : 0u) << n++;
    return marks;
}

/* Which instructions and labels were inserted survives printing, in texts that say so in their first line, and in no
 * others. */
MG_TEST(ptx_marks_of_inserted_code_survive_printing)
{
    static const char body[] = HEAD
        ".entry k() { .reg .b32 r; .reg .pred p;\nmov.u32 r, 1; //@\nmov.u32 r, 2;\nA: //@\nB:\n@p bra A; //@\nret; //\n}\n";
    char marked[sizeof body + sizeof MG_PTX_MARKED];
    snprintf(marked, sizeof marked, "%s%s", MG_PTX_MARKED, body);
    struct mg_module *plain = parse_as(body, __LINE__), *m = parse_as(marked, __LINE__), *again;
    MG_CHECK_EQ(marks_of(plain), 0);
    MG_CHECK_EQ(marks_of(m), 0x15);
    struct mg_buf b = MG_BUF_INIT;
    struct mg_opnd o[2] = {mg_o_reg(1), mg_o_imm(3)};
    mg_id func = mg_module_find_func(m, "k");
    mg_node_insert_before(m, func, m->funcs.at[func].last_node, mg_node_new(m, "mov.u32", o, 2));
    mg_ptx_print(m, &b);
    MG_CHECK(strstr(b.at, "mov.u32 r, 3; //@\n\tret;\n"));
    again = parse_as(b.at, __LINE__);
    MG_CHECK_EQ(marks_of(again), 0x35);
    mg_buf_release(&b);
    plain->marked = false;
    mg_ptx_print(plain, &b);
    MG_CHECK(!strstr(b.at, "//"));
    mg_buf_release(&b);
    mg_module_free(plain);
    mg_module_free(m);
    mg_module_free(again);
}

/* What inserted code counts stands in pragmas of such texts, and nowhere else. */
MG_TEST(ptx_what_inserted_code_counts_survives_printing)
{
    static const char body[] =
        HEAD ".entry k(.param .u64 c) { .reg .b64 d; .reg .pred p;\n.pragma \"margay cells [c], 128;\";\n"
             ".pragma \"margay @!p count_warps 7, d;\";\n.pragma \"margay count_threads 9, 3;\";\nret;\n}\n";
    static const char *const bad[] = {"count_threads 1, 2;",
                                      ".pragma \"margay add.u64 d, d, 1;\";",
                                      ".pragma \"margay count_warps 1, 2\";",
                                      ".pragma \"margay count_warps 1, 2;",
                                      ".pragma \"margay @ count_warps 1, 2;\";",
                                      ".pragma \"margay \";"};
    char text[400];
    snprintf(text, sizeof text, "%s%s", MG_PTX_MARKED, body);
    struct mg_module *plain = parse_as(body, __LINE__), *m = parse_as(text, __LINE__), *again;
    mg_id func = mg_module_find_func(m, "k"), node = m->funcs.at[func].first_node;
    MG_CHECK_EQ(plain->funcs.at[mg_module_find_func(plain, "k")].n_insts, 1);
    MG_CHECK_EQ(m->funcs.at[func].n_insts, 4);
    while (mg_node_form(m, &m->nodes.at[node])->op != MG_OP_count_warps || m->nodes.at[node].kind != MG_NODE_inst)
        node = m->nodes.at[node].next;
    MG_CHECK_EQ(m->nodes.at[node].flags, MG_NF_PROBE | MG_NF_GUARD_NOT);
    MG_CHECK(m->nodes.at[node].guard != 0);
    struct mg_buf b = MG_BUF_INIT, c = MG_BUF_INIT;
    mg_ptx_print(m, &b);
    MG_CHECK(strstr(
        b.at, "\t.pragma \"margay @!p count_warps 7, d;\";\n\t.pragma \"margay count_threads 9, 3;\";\n\tret;\n"));
    again = parse_as(b.at, __LINE__);
    mg_ptx_print(again, &c);
    MG_CHECK_STR(b.at, c.at);
    for (unsigned i = 0; i < MG_COUNT_OF(bad); i++) {
        struct mg_module *none = NULL;
        struct mg_diag d = MG_DIAG_INIT;
        snprintf(text, sizeof text, MG_PTX_MARKED HEAD ".entry k() { .reg .b64 d;\n%s\nret;\n}\n", bad[i]);
        MG_CHECK(mg_ptx_parse(text, strlen(text), "bad.ptx", &none, &d) != MG_ERR_OK && !none);
        mg_diag_release(&d);
    }
    mg_buf_release(&b);
    mg_buf_release(&c);
    mg_module_free(plain);
    mg_module_free(m);
    mg_module_free(again);
}

MG_TEST(ptx_numbers_of_registers_may_have_leading_zeros)
{
    PRINTS("mov.u32 %r01, %r007;", "mov.u32 %r1, %r7;");
}

MG_TEST(ptx_textures_surfaces_and_tensors)
{
    MODULE(
        ".global .texref t;\n.entry k() {\n.reg .f32 f<5>;\n.reg .b32 r<5>;\n.reg .b64 rd<5>;\n.reg .pred p;\n"
        "\ttex.2d.v4.f32.f32 {f0, f1, f2, f3}, [t, {f0, f1}];\n\ttex.1d.v4.s32.s32 {r0, r1, r2, r3}|p, [rd1, rd2, {r0}];\n"
        "\tsust.b.2d.b32.trap [rd1, {r1, r2}], {r0};\n"
        "\tcp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [r1], [rd1, {r2, r3}], [r4+8];\nret;\n}\n",
        "\ttex.2d.v4.f32.f32 {f0, f1, f2, f3}, [t, {f0, f1}];\n\ttex.1d.v4.s32.s32 {r0, r1, r2, r3}|p, [rd1, rd2, {r0}];\n"
        "\tsust.b.2d.b32.trap [rd1, {r1, r2}], {r0};\n"
        "\tcp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [r1], [rd1, {r2, r3}], [r4+8];");
}

MG_TEST(ptx_debug_information)
{
    MODULE(
        ".file 1 \"a \xc3\xa4.cu\", 123, 456\n.entry k() { .loc 1 2 3\n.loc 1 2 3, function_name $s + 4, inlined_at 1 9 8\nret;\n}\n"
        ".section .debug_str { // text\n$s:\n.b8 1,2 /* x */\n.b32 $s+4\n}\n",
        ".file 1 \"a \xc3\xa4.cu\", 123, 456\n.entry k\n{\n\t.loc 1 2 3\n\t.loc 1 2 3, function_name $s + 4, inlined_at 1 9 8\n\tret;\n}\n"
        ".section .debug_str\n{\n$s:\n.b8 1,2\n.b32 $s+4\n}\n");
    MODULE("@@DWARF .section .debug_info, \"\",@progbits\n@@DWARF .byte 0x01\n", "@@DWARF .byte 0x01\n");
}

MG_TEST(ptx_old_texts)
{
    check_print(
        ".version 1.4\n.target sm_10, map_f64_to_f32\n.tex .u32 t;\n.entry k (\n.param .u32 x)\n{\n.reg .u32 %r<3>;\n$LBB1: ld.param.u32 %r1, [x];\nset.lt.u32.s32 %r2, %r1, 0;\nexit;\n$LDWend: }\n",
        ".version 1.4\n.target sm_10, map_f64_to_f32\n.tex .u32 t;\n.entry k(\n\t.param .u32 x\n)\n{", __LINE__);
    struct mg_module *m = parse_as(".version 1.4\n.target sm_13\n", __LINE__);
    MG_CHECK_EQ(m->sm, 13);
    MG_CHECK(!m->has_address_size);
    mg_module_free(m);
}

MG_TEST(ptx_pragma_stays_with_its_load)
{
    KEEPS("\t.pragma \"used_bytes_mask 0xfff\";\n\tld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];");
}

MG_TEST(ptx_unknown_words_pass_through)
{
    const char *text = BODY(
        "\tfrob.sync.f32 %r1, [%rd1, {%r2}], later, 3;\n\tadd.frob.u32 %r1, %r2, 1;\n\tmov.u32 %r1, %newthing;\nlater:");
    struct mg_module *m = NULL;
    struct mg_buf b = MG_BUF_INIT;
    MG_CHECK_EQ(mg_ptx_parse(text, strlen(text), NULL, &m, NULL), MG_ERR_OK);
    MG_CHECK_EQ(m->n_unknown_forms, 2);
    MG_CHECK_EQ(m->n_unknown_sregs, 1);
    mg_ptx_print(m, &b);
    MG_CHECK(strstr(
        b.at, "\tfrob.sync.f32 %r1, [%rd1, {%r2}], later, 3;\n\tadd.frob.u32 %r1, %r2, 1;\n\tmov.u32 %r1, %newthing;"));
    mg_buf_release(&b);
    mg_module_free(m);
}

MG_TEST(ptx_errors_have_places_and_recovery_finds_the_next)
{
    FAILS(BODY("mov.u32 %r1 %r2;\nadd.u32 %r1, %r2, 1;\nadd.u32 %r99, 1, 2;\n@%r1 bra L;\nL:"), 11, 13,
          "expected ';' after the operands, found '%'", 3);
    FAILS(".target sm_70\n", 1, 1, "no .version", 1);
    FAILS(HEAD "frob\n.entry k() { ret; }\n", 4, 1, "expected a directive", 1);
    FAILS(HEAD ".entry k() {\nret;\n", 6, 1, "never closed", 1);
    FAILS(HEAD ".entry k() {\n.reg .b32 r;\nmov.u32 r, 0x;\n}\n", 6, 12, "malformed number", 1);
    FAILS(HEAD ".entry k() {\n.reg .b32 r;\nmov.u32 r, 1/0;\n}\n", 6, 15, "division by zero", 1);
    FAILS(HEAD "/* never\n", 4, 1, "never closed", 1);
    FAILS(HEAD ".entry k() { .pragma \"a\n; ret; }\n", 4, 22, "not closed", 1);
    FAILS("\x7f"
          "ELF",
          1, 1, "unexpected byte", 1);
}

MG_TEST(ptx_text_needs_no_nul_and_ignores_trailing_ones)
{
    static const char text[] = HEAD ".entry k() { ret; }\n\0\0\0";
    struct mg_module *m = NULL, *n = NULL;
    MG_CHECK_EQ(mg_ptx_parse(text, sizeof text, NULL, &m, NULL), MG_ERR_OK);
    MG_CHECK_EQ(mg_ptx_parse(text, strlen(text), NULL, &n, NULL), MG_ERR_OK);
    MG_CHECK_STR(m->id, n->id);
    mg_module_free(m);
    mg_module_free(n);
}
