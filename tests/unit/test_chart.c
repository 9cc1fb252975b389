/* Pictures: well-formed, to scale, escaped; and the classes of instructions. */
#include <stdlib.h>

#include "test.h"
#include "view/chart.h"
#include "tool/opcodes/opclass.h"

/* Every tag is closed in the order in which it was opened. */
static bool well_formed(const char *s)
{
    const char *open[32];
    size_t depth = 0;
    for (s = strchr(s, '<'); s; s = strchr(s, '<')) {
        const char *end = strchr(s, '>');
        if (!end) return false;
        if (s[1] == '/') {
            if (!depth || strncmp(open[--depth], s + 2, (size_t)(end - s - 2))) return false;
        } else if (end[-1] != '/') {
            if (depth == 32) return false;
            open[depth++] = s + 1;
        }
        s = end;
    }
    return !depth;
}

static unsigned count(const char *s, const char *what)
{
    unsigned n = 0;
    for (s = strstr(s, what); s; s = strstr(s + 1, what)) n++;
    return n;
}

MG_TEST(chart_bars_to_scale)
{
    struct mg_buf b = MG_BUF_INIT;
    const struct mg_chart_bar bars[] = {
        {"a<b>&\"c\"", 10, "ten"}, {"half", 5, NULL}, {"none", 0, "0"}, {"nan", 0.0 / 0.0, NULL}};
    mg_chart_bars(&b, "title", bars, 4);
    MG_CHECK(well_formed(b.at));
    MG_CHECK(strstr(b.at, "a&lt;b&gt;&amp;&quot;c&quot;") != NULL);
    MG_CHECK(strstr(b.at, "width=\"420\" height=\"13\"") != NULL);
    MG_CHECK(strstr(b.at, "width=\"210\" height=\"13\"") != NULL);
    MG_CHECK_EQ(count(b.at, "<rect"), 4);
    mg_buf_release(&b);
}

MG_TEST(chart_strip_and_distribution)
{
    struct mg_buf b = MG_BUF_INIT;
    double shares[132], bins[33] = {[32] = 8, [1] = 4};
    for (int i = 0; i < 132; i++) shares[i] = i == 7 ? 1 : 0.5;
    mg_chart_strip(&b, "SMs", "SM", shares, 132);
    MG_CHECK(well_formed(b.at));
    MG_CHECK_EQ(count(b.at, "height=\"60\""), 131);
    MG_CHECK_EQ(count(b.at, "height=\"120\""), 1);
    MG_CHECK_EQ(count(b.at, "#2e8b57"), 1); /* all of one is used: good */
    mg_buf_reset(&b);
    bins[32] = 11.5e6, bins[1] = 5.75e6;
    mg_chart_distribution(&b, "lanes", "active lanes", "warps", bins, 33, 0, NULL);
    MG_CHECK(well_formed(b.at));
    MG_CHECK(strstr(b.at, ">11.5 M warps<") && strstr(b.at, ">5.8 M<") && strstr(b.at, ">0<"));
    mg_buf_reset(&b);
    bins[32] = 162700, bins[1] = 1;
    mg_chart_distribution(&b, "lanes", "active lanes", "warp instructions", bins, 33, 0, NULL);
    const char *level = strstr(b.at, "\" text-anchor=\"end\">162.7 k warp instructions<"), *x = level;
    while (x && strncmp(x, "x=\"", 3)) x--;
    MG_CHECK(x && atof(x + 3) >= 25 * 7.3); /* it ends there: 25 characters of 7.3 are not cut */
    /* a bar that is nearly nothing is seen, and says how much it is; of neighbours the larger one does */
    MG_CHECK_EQ(count(b.at, "height=\"3\""), 1);
    MG_CHECK(strstr(b.at, ">1</text>") && strstr(b.at, ">162.7 k</text>"));
    bins[2] = 7, bins[3] = 5;
    mg_buf_reset(&b);
    mg_chart_distribution(&b, "lanes", "active lanes", "warp instructions", bins, 33, 1000, NULL);
    MG_CHECK(strstr(b.at, ">7</text>") && !strstr(b.at, ">1</text>") && !strstr(b.at, ">5</text>"));
    bins[32] = 11.5e6, bins[1] = 5.75e6, bins[2] = bins[3] = 0;
    const char *marks[33] = {[32] = "2 k"};
    mg_buf_reset(&b);
    mg_chart_distribution(&b, "cycles", "cycles", NULL, bins, 33, 0, marks);
    MG_CHECK(strstr(b.at, ">2 k<") && !strstr(b.at, ">4<"));
    MG_CHECK_EQ(count(b.at, "height=\"110\""), 1);
    MG_CHECK_EQ(count(b.at, "height=\"55\""), 1);
    mg_buf_reset(&b);
    const char *rows[] = {"x", "y"};
    const double v[] = {1, 0, 0.5, 1}, parts[] = {3, 1, 0, 0};
    mg_chart_heat(&b, "heat", rows, 2, 2, "axis", v);
    MG_CHECK(well_formed(b.at));
    MG_CHECK_EQ(count(b.at, "#800026"), 2);
    mg_buf_reset(&b);
    mg_chart_stacked(&b, "mix", rows, 2, rows, NULL, 2, parts, "requests");
    MG_CHECK(well_formed(b.at));
    MG_CHECK(strstr(b.at, ">4 requests<") && strstr(b.at, ">100 %<"));
    MG_CHECK(strstr(b.at, "width=\"375\"") && strstr(b.at, "width=\"125\""));
    const char *const colors[] = {"#123456", "#654321"};
    mg_buf_reset(&b);
    mg_chart_stacked(&b, "mix", rows, 2, rows, colors, 2, parts, "requests");
    MG_CHECK_EQ(count(b.at, "#123456"), 2);
    MG_CHECK_EQ(count(b.at, "#654321"), 2);
    mg_buf_release(&b);
}

MG_TEST(chart_graph_layers)
{
    struct mg_buf b = MG_BUF_INIT;
    const struct mg_chart_node nodes[] = {
        {"entry", 0, false}, {"loop\n10 times", 1, true}, {"then", .5, false}, {"exit", 0, false}};
    const struct mg_chart_edge edges[] = {{0, 1, false}, {1, 1, true},  {1, 2, false},
                                          {2, 1, true},  {2, 3, false}, {0, 3, false}};
    mg_chart_graph(&b, "cfg", nodes, 4, edges, 6);
    MG_CHECK(well_formed(b.at));
    MG_CHECK_EQ(count(b.at, "<rect"), 4);
    MG_CHECK_EQ(count(b.at, "stroke-dasharray"), 2);
    MG_CHECK_EQ(count(b.at, "<path d=\"M"), 1 + 6); /* the tip, 3 short edges, one over two layers in 3 parts */
    MG_CHECK(strstr(b.at, "#800026") != NULL);
    mg_buf_reset(&b);
    mg_chart_dot(&b, "c\"fg", nodes, 4, edges, 6);
    MG_CHECK(strstr(b.at, "digraph \"c\\\"fg\" {") == b.at);
    MG_CHECK(
        strstr(
            b.at,
            "n1 [fillcolor=\"#800026\" fontcolor=white color=\"#4477aa\" penwidth=3 label=\"loop\\l10 times\\l\"];") !=
        NULL);
    MG_CHECK(strstr(b.at, "n2 -> n1 [style=dashed];") && strstr(b.at, "n2 -> n3;"));
    mg_buf_reset(&b);
    mg_chart_graph(&b, "empty", NULL, 0, NULL, 0);
    MG_CHECK(well_formed(b.at));
    mg_buf_release(&b);
}

MG_TEST(opclass_by_form)
{
    static const struct {
        const char *op;
        enum mg_op_class c;
        enum mg_gt_class gt;
        enum mg_op_width w;
    } cases[] = {
        {"add.s32", MG_CLASS_INTEGER, MG_GT_COMPUTATION, MG_WIDTH_SCALAR},
        {"fma.rn.f32", MG_CLASS_FLOAT, MG_GT_COMPUTATION, MG_WIDTH_SCALAR},
        {"fma.rn.f16x2", MG_CLASS_HALF, MG_GT_COMPUTATION, MG_WIDTH_PACKED},
        {"ld.global.v4.f32", MG_CLASS_MEMORY, MG_GT_SEND, MG_WIDTH_V4},
        {"st.shared.v2.u64", MG_CLASS_MEMORY, MG_GT_SEND, MG_WIDTH_V2},
        {"setp.lt.and.f32", MG_CLASS_COMPARE, MG_GT_LOGIC, MG_WIDTH_SCALAR},
        {"selp.b32", MG_CLASS_COMPARE, MG_GT_MOVE, MG_WIDTH_SCALAR},
        {"bar.sync", MG_CLASS_SYNC, MG_GT_CONTROL, MG_WIDTH_SCALAR},
        {"bra.uni", MG_CLASS_CONTROL, MG_GT_CONTROL, MG_WIDTH_SCALAR},
        {"mov.u32", MG_CLASS_MOVE, MG_GT_MOVE, MG_WIDTH_SCALAR},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", MG_CLASS_MATRIX, MG_GT_COMPUTATION, MG_WIDTH_MATRIX},
        {"atom.global.add.u32", MG_CLASS_ATOMIC, MG_GT_SEND, MG_WIDTH_SCALAR},
        {"tex.2d.v4.f32.f32", MG_CLASS_TEXTURE, MG_GT_SEND, MG_WIDTH_V4},
        {"min.s32", MG_CLASS_INTEGER, MG_GT_LOGIC, MG_WIDTH_SCALAR},
        {"shl.b32", MG_CLASS_LOGIC, MG_GT_LOGIC, MG_WIDTH_SCALAR},
        {"sin.approx.f32", MG_CLASS_FLOAT, MG_GT_COMPUTATION, MG_WIDTH_SCALAR},
        {"frobnicate.u32", MG_CLASS_OTHER, MG_GT_MOVE, MG_WIDTH_SCALAR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mg_form f = {0};
        mg_form_parse(&f, cases[i].op, strlen(cases[i].op));
        MG_CHECK_STR(mg_op_class_name(mg_form_class(&f)), mg_op_class_name(cases[i].c));
        MG_CHECK_STR(mg_gt_class_name(mg_form_gt_class(&f)), mg_gt_class_name(cases[i].gt));
        MG_CHECK_STR(mg_op_width_name(mg_form_width(&f)), mg_op_width_name(cases[i].w));
    }
}
