/* Frames of inlined calls out of .loc and .debug_str: what nvcc writes, and what is damaged. */
#include <string.h>

#include "ptx/ptx.h"
#include "report/inlined.h"
#include "test.h"

static struct mg_module *parse(const char *locs, const char *strings)
{
    struct mg_buf text = MG_BUF_INIT;
    struct mg_module *m = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    mg_buf_printf(
        &text,
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n%s\tret;\n}\n.file 1 \"/a/b.cu\"\n"
        ".section .debug_str\n{\n%s}\n",
        locs, strings);
    MG_CHECK(!mg_ptx_parse(text.at, text.n, NULL, &m, &d));
    mg_buf_release(&text);
    mg_diag_release(&d);
    return m;
}

MG_TEST(inlined_frames)
{
    struct mg_inlined x;
    struct mg_module *m = parse(
        "\t.loc 1 6 30\n\t.loc 1 3 3, function_name $L__a, inlined_at 1 6 30\n\t.loc 1 1 73, function_name $L__b, inlined_at 1 3 3\n",
        "$L__a:\n.b8 95,90,53,111,117\n.b8 116,101,114,102,0\n$L__b:\n.b8 115,113,0\n");
    mg_inlined_init(&x, m);
    MG_CHECK_EQ(x.frames.n, 3);
    const struct mg_inline_frame *in = &x.frames.at[x.of_loc[3]], *out = &x.frames.at[x.of_loc[2]];
    MG_CHECK(!x.of_loc[1]);
    MG_CHECK_STR(in->function, "sq");
    MG_CHECK_STR(in->file, "/a/b.cu");
    MG_CHECK(in->line == 3 && in->outer == x.of_loc[2] && in->depth == 2);
    MG_CHECK_STR(out->function, "outer(float)");
    MG_CHECK(out->line == 6 && !out->outer && out->depth == 1);
    mg_inlined_release(&x);
    mg_module_free(m);
}

MG_TEST(inlined_of_damaged_text)
{
    /* no label, no closing 0, a number that is no byte, no .b8, an empty name, a label alone at the end */
    static const char *const strings[] = {
        "", "$L__a:\n.b8 95,90\n", "$L__a:\n.b8 300,0\n", "$L__a:\n.b16 1\n", "$L__a:\n.b8 0\n", "$L__a:\n"};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        struct mg_inlined x;
        struct mg_module *m = parse("\t.loc 1 3 3, function_name $L__a, inlined_at 9 6 30\n", strings[i]);
        mg_inlined_init(&x, m);
        MG_CHECK(x.frames.n == 2 && !x.frames.at[1].function && !x.frames.at[1].file);
        mg_inlined_release(&x);
        mg_module_free(m);
    }
    /* a place that is inlined into itself again and again: the chain ends */
    struct mg_buf many = MG_BUF_INIT;
    struct mg_inlined x;
    for (int i = 0; i < 200; i++)
        mg_buf_printf(&many, "\t.loc 1 3 3, function_name $L__a, inlined_at 1 3 3\n\t.loc 1 4 %d\n", i);
    struct mg_module *m = parse(many.at, "");
    mg_inlined_init(&x, m);
    for (uint32_t i = 1; i < x.frames.n; i++) {
        MG_CHECK(x.frames.at[i].depth <= 32 && x.frames.at[i].outer < i);
        MG_CHECK(x.frames.at[i].depth == (x.frames.at[i].outer ? x.frames.at[x.frames.at[i].outer].depth + 1 : 1));
    }
    mg_inlined_release(&x);
    mg_module_free(m);
    mg_buf_release(&many);
}
