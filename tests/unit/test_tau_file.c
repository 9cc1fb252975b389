/* TAU's profile files: what is printed reads back, and what is wrong is told with its line. */
#include <stdlib.h>

#include "tau/profile_file.h"
#include "test.h"

static enum mg_err parse(const char *text, struct tau_file *f, struct mg_diag *d)
{
    return tau_file_parse(strdup(text), strlen(text), "a/profile.4.0.7", f, d);
}

MG_TEST(tau_file_round_trip)
{
    struct tau_function functions[] = {{".TAU application", "TAU_DEFAULT", 1, 2, 0.125, 1e12},
                                       {"say \"x\"", "TAU_CUDA", 3, 0, 1.0 / 3, 2.5}};
    struct tau_user_event events[] = {{"say \"x\" : wait", 3, 9, 0, 3, 81}};
    struct tau_metadata metadata[] = {{"Command Line", "a <b> & c"}};
    struct tau_file f = {0, 0, 0, functions, 2, events, 1, metadata, 1, NULL}, g;
    struct mg_buf b = MG_BUF_INIT;
    tau_file_print(&f, &b);
    MG_CHECK(strstr(b.at, "a &lt;b&gt; &amp; c"));
    MG_CHECK(!parse(b.at, &g, NULL));
    MG_CHECK_EQ(g.node, 4);
    MG_CHECK_EQ(g.thread, 7);
    MG_CHECK_EQ(g.n_functions, 2);
    MG_CHECK_STR(g.functions[1].name, "say 'x'");
    MG_CHECK(g.functions[1].exclusive_us == 1.0 / 3 && g.functions[0].inclusive_us == 1e12);
    MG_CHECK_EQ(g.n_events, 1);
    MG_CHECK(g.events[0].mean == 3 && g.events[0].sum_of_squares == 81);
    tau_file_release(&g);
    mg_buf_release(&b);
}

static void wrong(uint32_t line, const char *text)
{
    struct tau_file f;
    struct mg_diag d = MG_DIAG_INIT;
    MG_CHECK_EQ(parse(text, &f, &d), MG_ERR_INPUT);
    MG_CHECK_EQ(d.n_errors, 1);
    if (d.n_errors) MG_CHECK_EQ(d.items[0].line, line);
    tau_file_release(&f);
    mg_diag_release(&d);
}

MG_TEST(tau_file_errors)
{
    wrong(0, "");
    wrong(1, "functions\n");
    wrong(1, "4000000000 templated_functions\n#\n");
    wrong(2, "0 templated_functions\nno names\n0 aggregates\n");
    wrong(3, "1 templated_functions\n#\n\"a\" 1 0 1 x 0 GROUP=\"g\"\n0 aggregates\n");
    wrong(3, "1 templated_functions\n#\n\"a\" 1 0 1 1 0\n0 aggregates\n");
    wrong(4, "1 templated_functions\n#\n\"a\" 1 0 1 1 0 GROUP=\"g\"\nx\n");
    wrong(6, "0 templated_functions\n#\n0 aggregates\n1 userevents\n#\n\"e\" 1 2 3 4\n");
}
