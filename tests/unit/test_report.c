/* Figures and outputs of the report, from profiles written by hand: every expected value is worked
 * out from the sample's closed forms. */
#include "profile_sample.h"

#include "base/json.h"
#include "base/json_read.h"
#include "report/priv.h"

static struct mg_recording *sample_profile(char **dir, void (*write)(struct mg_store *s), const char *tools)
{
    struct mg_store *s = NULL;
    struct mg_recording *p = NULL;
    struct mg_store_process proc = sample_process(11);
    if (tools) proc.tools = tools;
    if (!*dir) *dir = sample_dir();
    if (mg_store_open(*dir, &proc, NULL, &s, NULL)) mg_test_fail(__FILE__, __LINE__, "cannot open");
    write(s);
    mg_store_close(s, 0);
    if (mg_recording_open(*dir, &p, NULL)) mg_test_fail(__FILE__, __LINE__, "cannot read");
    return p;
}

static void done_with(struct mg_recording *p, const char *dir)
{
    mg_recording_free(p);
    sample_remove(dir);
}

MG_TEST(report_sums)
{
    char *dir = NULL;
    struct mg_recording *p = sample_profile(&dir, sample_write, NULL);
    struct mg_kernel_sums s;
    mg_kernel_sums_init(&s, &p->kernels[0]);
    /* two launches; blocks of 4, 4, 1 instructions entered 1, 10, 1 times by every thread */
    MG_CHECK_EQ(s.thread_insts, 2u * SAMPLE_THREADS * (4 + 4 * 10 + 1));
    MG_CHECK_EQ(s.warp_insts, 2u * SAMPLE_WARPS * (4 + 4 * 10 + 1));
    MG_CHECK_EQ(s.n_ops, 7);
    for (uint32_t i = 0; i < s.n_ops; i++) {
        const struct mg_opcount *op = &s.ops[i];
        if (i) MG_CHECK(strcmp(s.ops[i - 1].op, op->op) < 0);
        MG_CHECK_EQ(op->guarded, !strcmp(op->op, "bra"));
        if (!strcmp(op->op, "bra")) MG_CHECK_EQ(op->threads, 2u * SAMPLE_THREADS * 11);
        if (!strcmp(op->op, "ld.param.u64")) MG_CHECK_EQ(op->warps, 2u * SAMPLE_WARPS * 2);
    }
    mg_kernel_sums_release(&s);
    mg_kernel_sums_init(&s, &p->kernels[1]);
    MG_CHECK(!s.measured && !s.has_warps && !s.n_ops);
    mg_kernel_sums_release(&s);
    done_with(p, dir);
}

static void write_reasons(struct mg_store *s)
{
    sample_write(s);
    struct mg_store_done done = {.complete = true};
    struct mg_store_launch l = sample_launch(0);
    l.ran = MG_RAN_FAILED;
    l.reason = "assembler error";
    mg_store_launch_done(s, mg_store_launch(s, &l), &done);
    l.kernel = 1;
    l.ran = MG_RAN_NATIVE;
    l.reason = "filtered";
    mg_store_launch_done(s, mg_store_launch(s, &l), &done);
    l.reason = "no PTX";
    done.replays = 5;
    mg_store_launch_done(s, mg_store_launch(s, &l), &done);
    mg_store_unknown(s, "cuGraphLaunch", 3, "conditional node");
}

MG_TEST(report_coverage)
{
    char *dir = NULL;
    struct mg_recording *p = sample_profile(&dir, write_reasons, NULL);
    struct mg_coverage c;
    mg_coverage_init(&c, p);
    MG_CHECK_EQ(c.launches, 2 + 1 + 1 + 1 + 5);
    MG_CHECK_EQ(c.instrumented, 2);
    MG_CHECK_EQ(c.failed, 1);
    MG_CHECK_EQ(c.unknown, 3);
    MG_CHECK_EQ(c.n_rows, 4);
    MG_CHECK_STR(c.rows[0].reason, "assembler error");
    MG_CHECK_STR(c.rows[1].reason, "filtered");
    MG_CHECK_STR(c.rows[2].reason, "no PTX");
    MG_CHECK_EQ(c.rows[2].launches, 6);
    MG_CHECK_STR(c.rows[3].kernel, "cuGraphLaunch");
    MG_CHECK(c.timed && c.timed_pct == 30.0);         /* 3 of 10 */
    MG_CHECK(c.time_pct > 85.7 && c.time_pct < 85.8); /* 3000 of 3500 ns */
    mg_coverage_release(&c);
    struct mg_buf out = MG_BUF_INIT;
    mg_report_summary(p, &out);
    int lines = 0;
    for (size_t i = 0; i < out.n; i++) lines += out.at[i] == '\n';
    MG_CHECK(lines <= 24);
    const char *last = strstr(out.at, "coverage: ");
    MG_CHECK(last && !strchr(strchr(last, '\n') + 1, '\n')); /* the coverage line ends it */
    MG_CHECK(strstr(last, "2 of 10 launches instrumented (20.0 %)") && strstr(last, "1 failed") &&
             strstr(last, "3 unknown"));
    mg_buf_release(&out);
    done_with(p, dir);
}

MG_TEST(report_json_is_deterministic_json)
{
    char *dir = NULL;
    struct mg_recording *p = sample_profile(&dir, write_reasons, NULL);
    struct mg_buf a = MG_BUF_INIT, b = MG_BUF_INIT;
    struct mg_report_opts o = {.size = sizeof o, .per_launch = true};
    mg_report_json(p, &o, &a);
    mg_report_json(p, &o, &b);
    MG_CHECK(a.n == b.n && !memcmp(a.at, b.at, a.n));
    MG_CHECK(mg_json_valid(a.at));
    MG_CHECK(strstr(a.at, "\"bra\": {\"thread\":360448,\"warp\":11264,\"lanes\":null}"));
    MG_CHECK(strstr(a.at, "\"add.f32\": {\"thread\":327680,\"warp\":10240,\"lanes\":327680}"));
    MG_CHECK(strstr(a.at, "\"thread_instructions\": null"));
    MG_CHECK(strstr(a.at, "\"value\":\"0x40200000\"")); /* 2.5f */
    mg_buf_release(&a);
    mg_buf_release(&b);
    done_with(p, dir);
}

MG_TEST(report_json_text_check)
{
    static const char *const good[] = {"1", " {\"a\": [1, -2.5e3, true, null, \"x\\n\"]} ", "[]", "{}", "[[[]]]"};
    static const char *const bad[] = {"",    "{",   "[1,]",       "{\"a\"}", "01x", "\"a",
                                      "tru", "1 2", "{\"a\":1,}", "\"\n\"",  "-"};
    for (size_t i = 0; i < MG_COUNT_OF(good); i++) MG_CHECK(mg_json_valid(good[i]));
    for (size_t i = 0; i < MG_COUNT_OF(bad); i++) MG_CHECK(!mg_json_valid(bad[i]));
}

/* Grid of 10 CTAs of 48 threads: 2 warps a CTA, the second half full. The kernel has one block of
 * 9 instructions, the last two of which leave it or go round; thread t of CTA c enters it c + 1 times. */
static void write_scoped(struct mg_store *s, uint64_t threads, uint64_t warps)
{
    static const struct mg_site_op ops[] = {{"add.s32", 7, 0}, {"bra", 1, 0}, {"ret", 1, 1}};
    static const uint32_t round[] = {0};
    static struct mg_site_block block = {
        .function = "k", .label = "", .n_insts = 9, .succs = round, .n_succs = 1, .ops = ops, .n_ops = 3};
    static const struct mg_sites sites = {.kernel = "k", .blocks = &block, .n_blocks = 1};
    struct mg_store_kernel k = {.name = "k", .module = "m", .sites = &sites};
    struct mg_store_launch l = {.kernel = mg_store_kernel(s, &k), .grid = {10, 1, 1}, .block = {48, 1, 1}};
    struct mg_store_done done = {.complete = true, .threads = &threads, .warps = &warps, .n_blocks = 1};
    mg_store_launch_done(s, mg_store_launch(s, &l), &done);
}
static void write_one_cta(struct mg_store *s)
{
    write_scoped(s, 48 * 3, 2 * 3);
    mg_store_tool_json(s, "margay", "scope", "{\"scope\": \"cta\", \"cta\": 2, \"warp\": 0}");
} /* CTA 2 */
static void write_cta_outside(struct mg_store *s)
{
    write_scoped(s, 48 * 3, 2 * 3);
    mg_store_tool_json(s, "margay", "scope", "{\"scope\": \"cta\", \"cta\": 10, \"warp\": 0}");
}
static void write_one_warp(struct mg_store *s)
{
    write_scoped(s, 16 * 3, 3);
    mg_store_tool_json(s, "margay", "scope", "{\"scope\": \"warp\", \"cta\": 2, \"warp\": 1}");
} /* its second warp */
static void write_whole_grid(struct mg_store *s)
{
    write_scoped(s, 48 * 55, 2 * 55);
} /* 1 + 2 + ... + 10 = 55 */

MG_TEST(report_scales_one_cta)
{
    char *dir = NULL;
    struct mg_recording *p = sample_profile(&dir, write_one_cta, "blocks,scope=cta,cta=2");
    MG_CHECK(p->kernels[0].estimated && p->kernels[0].scope == MG_COUNT_CTA);
    MG_CHECK_EQ(p->kernels[0].blocks[0].threads, 48 * 3 * 10);
    MG_CHECK_EQ(p->kernels[0].blocks[0].warps, 2 * 3 * 10);
    MG_CHECK_EQ(p->kernels[0].measured_thread_insts, 48 * 3 * 9);
    MG_CHECK(!p->kernels[0].has_error);
    MG_CHECK_EQ(p->launches[0].threads[0], 48 * 3); /* per launch: as measured */
    mg_recording_free(p);
    p = sample_profile(&dir, write_whole_grid, "blocks"); /* a second process counts in full: the error is known */
    MG_CHECK(p->kernels[0].has_error);
    double want = 100.0 * (55 - 30) / 55; /* 3 * 10 for 55 */
    MG_CHECK(p->kernels[0].error_pct > want - 1e-9 && p->kernels[0].error_pct < want + 1e-9);
    done_with(p, dir);
}

MG_TEST(report_scales_one_warp)
{
    char *dir = NULL;
    struct mg_recording *p = sample_profile(&dir, write_one_warp, "blocks,warps=on,scope=warp,cta=2,warp=1");
    MG_CHECK_EQ(p->kernels[0].blocks[0].threads, 16 * 3 * (480 / 16)); /* 480 threads, 16 measured */
    MG_CHECK_EQ(p->kernels[0].blocks[0].warps, 3 * 20);                /* of 20 warps */
    struct mg_buf out = MG_BUF_INIT;
    mg_report_text(p, NULL, &out);
    MG_CHECK(strstr(out.at, "~ scaled to the grid from one warp a launch"));
    MG_CHECK(strstr(out.at, "~12,960")); /* 1440 * 9 */
    mg_buf_release(&out);
    done_with(p, dir);
}

/* A launch that has no such CTA was not measured: null, not 0. */
MG_TEST(report_scope_outside_the_grid)
{
    char *dir = NULL;
    struct mg_recording *p = sample_profile(&dir, write_cta_outside, "blocks,scope=cta,cta=10");
    struct mg_kernel_sums s;
    MG_CHECK(!p->kernels[0].blocks[0].has_threads);
    mg_kernel_sums_init(&s, &p->kernels[0]);
    MG_CHECK(!s.measured);
    mg_kernel_sums_release(&s);
    done_with(p, dir);
}

MG_TEST(report_text_shows_what_is_hot)
{
    char *dir = NULL;
    struct mg_recording *p = sample_profile(&dir, sample_write, NULL);
    struct mg_buf out = MG_BUF_INIT;
    struct mg_report_opts o = {.size = sizeof o, .ascii = true, .top = 2};
    mg_report_text(p, &o, &out);
    MG_CHECK(strstr(out.at, "loop(float*, int)"));
    const char *hot = strstr(out.at, "loop.cu:5"), *cool = strstr(out.at, "loop.cu:3");
    MG_CHECK(hot && cool && hot < cool);
    MG_CHECK(strstr(out.at, "88.9 %")); /* 40 of 45 instructions */
    MG_CHECK(!strstr(out.at, "\xe2"));  /* no UTF-8 asked for */
    MG_CHECK(strstr(out.at, "and 1 more blocks that ran"));
    mg_buf_reset(&out);
    o.kernel_glob = "nothing*";
    mg_report_text(p, &o, &out);
    MG_CHECK(!strstr(out.at, "loop.cu"));
    mg_buf_reset(&out);
    o.kernel_glob = "loop(*"; /* the demangled name matches, too */
    mg_report_text(p, &o, &out);
    MG_CHECK(strstr(out.at, "loop.cu:5"));
    mg_buf_release(&out);
    done_with(p, dir);
}

MG_TEST(report_bars)
{
    static const struct {
        double share;
        const char *ascii, *utf8;
    } cases[] = {{0, "", ""},
                 {1, "####", "\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88"},
                 {0.5, "##", "\xe2\x96\x88\xe2\x96\x88"},
                 {0.125, "#", "\xe2\x96\x8c"},
                 {0.25 / 8, "", "\xe2\x96\x8f"}};
    for (size_t i = 0; i < MG_COUNT_OF(cases); i++)
        for (int ascii = 0; ascii < 2; ascii++) {
            struct mg_buf out = MG_BUF_INIT;
            mg_add_bar(&out, cases[i].share, 4, ascii);
            MG_CHECK_STR(out.n ? out.at : "", ascii ? cases[i].ascii : cases[i].utf8);
            mg_buf_release(&out);
        }
}

MG_TEST(report_diff_of_profiles)
{
    char *one = NULL, keep[64], *two = NULL;
    struct mg_recording *a = sample_profile(&one, sample_write, NULL);
    snprintf(keep, sizeof keep, "%s", one);
    struct mg_recording *b = sample_profile(&two, write_whole_grid, NULL);
    struct mg_buf out = MG_BUF_INIT;
    MG_CHECK(mg_report_diff(a, a, NULL, &out) == 0);
    MG_CHECK(strstr(out.at, "2 of 2 kernels equal"));
    mg_buf_reset(&out);
    MG_CHECK(mg_report_diff(a, b, NULL, &out) > 1e300); /* kernels in one only */
    MG_CHECK(strstr(out.at, "only one") && strstr(out.at, "0 of 3 kernels equal"));
    mg_buf_release(&out);
    mg_recording_free(a);
    sample_remove(keep);
    done_with(b, two);
}

/* The sample's loop: 64 CTAs of 256 threads go 10 times round. What no program can count is told as none. */
struct spoilt {
    uint64_t threads[3], warps[3];
    bool fits;
};
static const struct spoilt *spoilt_now;
static void write_spoilt(struct mg_store *s)
{
    struct mg_store_kernel k = {.name = "_Z4loopPfi", .module = "m", .sites = &sample_sites};
    struct mg_store_launch l = sample_launch(mg_store_kernel(s, &k));
    struct mg_store_done done = {
        .complete = true, .threads = spoilt_now->threads, .warps = spoilt_now->warps, .n_blocks = 3};
    mg_store_launch_done(s, mg_store_launch(s, &l), &done);
}
MG_TEST(report_counts_that_contradict_one_another)
{
    enum { T = SAMPLE_THREADS, W = SAMPLE_WARPS };
    static const struct spoilt all[] = {
        {{T, 10 * T, T}, {W, 10 * W, W}, true},
        {{T, 3, T}, {W, 3, W}, true}, /* three lanes go round, once each */
        {{T, 0, T}, {W, 0, W}, true},
        {{T + 1, 10 * T, T}, {W, 10 * W, W}, false}, /* more than were launched enter it */
        {{T - 1, 10 * T, T}, {W, 10 * W, W}, false},
        {{T, 10 * T, T - 1}, {W, 10 * W, W}, false}, /* one never leaves */
        {{T, 10 * T, T + 1}, {W, 10 * W, W}, false},
        {{T, 10 * T, T}, {W, 11 * W, W}, true},      /* warps that are not full */
        {{T, 10 * T, T}, {W, 10 * W - 1, W}, false}, /* more than 32 lanes in a warp */
        {{T, 10 * W - 1, T}, {W, 10 * W, W}, false}, /* a warp without lanes */
        {{T, 0x1234567812345678, T}, {W, 0x1234567812345678, W}, true},
        {{T, (uint64_t)-5, T}, {W, (uint64_t)-5, W}, false},
    };
    for (size_t i = 0; i < MG_COUNT_OF(all); i++) {
        char *dir = NULL;
        spoilt_now = &all[i];
        struct mg_recording *p = sample_profile(&dir, write_spoilt, NULL);
        struct mg_coverage c;
        mg_coverage_init(&c, p);
        if (p->launches[0].spoilt == all[i].fits)
            mg_test_fail(__FILE__, __LINE__, "case %zu: %s", i, p->launches[0].why ? p->launches[0].why : "fits");
        MG_CHECK_EQ(c.spoilt, !all[i].fits);
        MG_CHECK_EQ(c.instrumented, 1);
        MG_CHECK(all[i].fits == p->kernels[0].blocks[0].has_threads && all[i].fits == (p->launches[0].threads != NULL));
        MG_CHECK(all[i].fits || !strcmp(p->launches[0].why, MG_SPOILT_COUNTS));
        mg_coverage_release(&c);
        done_with(p, dir);
    }
}

static void name_is(const char *name, uint32_t width, const char *want)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_add_name(&b, name, width);
    MG_CHECK_STR(b.at, want);
    MG_CHECK(b.n <= width);
    mg_buf_release(&b);
}

static void short_name_is(const char *name, const char *want)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_add_short_name(&b, name);
    MG_CHECK_STR(b.at, want);
    mg_buf_release(&b);
}

MG_TEST(report_short_names)
{
    short_name_is("saxpy(float*, int)", "saxpy");
    short_name_is("void turn<32>(float const*, float*)", "turn<32>");
    short_name_is("void ns::f<std::pair<int, float> >(int)", "ns::f<std::pair<int, float> >");
    short_name_is("void (anonymous namespace)::g<(bool)1>(int (*)(int))", "(anonymous namespace)::g<(bool)1>");
    short_name_is("ns::A::operator()(int) const", "ns::A::operator()");
    short_name_is("_Z1fv", "_Z1fv");
}

MG_TEST(report_names_by_family)
{
    static const char sort[] =
        "void cub::detail::radix<cub::policy<int, float>::type, (bool)0>::sort_kernel<unsigned int, 5>(unsigned int const*, int)";
    struct mg_buf b = MG_BUF_INIT;
    name_is("saxpy(float*, int)", 40, "saxpy(float*, int)");
    name_is("saxpy(float*, int)", 10, "saxpy");
    name_is(sort, 200, sort);
    name_is(sort, 100, "void cub::detail::radix<cub::policy<int, float>::type, (bool)0>::sort_kernel<unsigned int, 5>");
    name_is(sort, 60, "void cub::detail::radix<..>::sort_kernel<..>");
    name_is(sort, 20, "sort_kernel<..>");
    name_is("(anonymous namespace)::f(int)", 26, "(anonymous namespace)::f");
    name_is("abcdefghij", 6, "abcd..");
    mg_add_family(&b, sort);
    MG_CHECK_STR(b.at, "cub::detail::radix::sort_kernel");
    mg_buf_reset(&b);
    mg_add_family(&b, "turn(float const*, float*)");
    MG_CHECK_STR(b.at, "turn");
    mg_buf_release(&b);
}

/* A count as wide as its column still stands apart from the one before. */
MG_TEST(report_counts_stand_apart)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_add_count(&b, 1, true, false, 4);
    mg_add_count(&b, 12345678901234567, true, false, 22);
    MG_CHECK_STR(b.at, "   1 12,345,678,901,234,567" + 0);
    mg_buf_reset(&b);
    mg_add_count(&b, 1, true, false, 4);
    mg_add_count(&b, 123, true, false, 3);
    MG_CHECK_STR(b.at, "   1 123");
    mg_buf_release(&b);
}
