/* Writes profiles for the tests of `margay report`, `diff` and `merge`, through store/ alone.
 *   mkprofile DIR                 the sample of tests/unit/profile_sample.h, pid 11, ended with status 0
 *   mkprofile DIR PID             the same by process PID
 *   mkprofile DIR PID LAUNCHES    endless launches until killed when LAUNCHES is 0, else so many
 *   mkprofile DIR PID scoped      one launch, counted in CTA 0 alone; a tool's result beside it
 */
#include "../unit/profile_sample.h"

void mg_test_fail(const char *file, int line, const char *fmt, ...)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, fmt);
    exit(9);
}

static void say(const char *line)
{
    fprintf(stderr, "%s\n", line);
}

static void write_launches(struct mg_store *s, uint64_t n)
{
    struct mg_store_kernel k = {.name = "_Z4loopPfi",
                                .module = "00112233445566778899aabbccddeeff",
                                .regs_native = 20,
                                .regs_instrumented = 26,
                                .sites = &sample_sites};
    uint32_t loop = mg_store_kernel(s, &k);
    for (uint64_t i = 0; !n || i < n; i++) {
        uint64_t threads[] = {SAMPLE_THREADS, SAMPLE_THREADS * i, SAMPLE_THREADS},
                 warps[] = {SAMPLE_WARPS, SAMPLE_WARPS * i, SAMPLE_WARPS};
        struct mg_store_launch l = sample_launch(loop);
        struct mg_store_done done = {.complete = true,
                                     .start_ns = i + 1,
                                     .time_ns = 1000,
                                     .timed = true,
                                     .replays = 1,
                                     .threads = threads,
                                     .warps = warps,
                                     .n_blocks = 3};
        mg_store_launch_done(s, mg_store_launch(s, &l), &done);
        if (!n && i % 64 == 0) usleep(500);
    }
}

static void write_scoped(struct mg_store *s)
{
    struct mg_store_kernel k = {.name = "_Z4loopPfi",
                                .module = "00112233445566778899aabbccddeeff",
                                .regs_native = 20,
                                .regs_instrumented = 26,
                                .sites = &sample_sites};
    struct mg_store_launch l = sample_launch(mg_store_kernel(s, &k));
    uint64_t threads[] = {256, 2560, 256}, warps[] = {8, 80, 8};
    struct mg_store_done done = {.complete = true, .threads = threads, .warps = warps, .n_blocks = 3};
    mg_store_launch_done(s, mg_store_launch(s, &l), &done);
    mg_store_tool_json(s, "blocks", "note", "[1, 2]");
    mg_store_tool_json(s, "margay", "scope", "{\"scope\": \"cta\", \"cta\": 0, \"warp\": 0}");
}

int main(int argc, char **argv)
{
    struct mg_store *s;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_store_process p = sample_process(argc > 2 ? (uint32_t)atoi(argv[2]) : 11);
    bool scoped = argc > 3 && !strcmp(argv[3], "scoped");
    if (argc < 2) return 2;
    if (scoped) p.tools = "blocks,scope=cta,cta=0";
    if (mg_store_open(argv[1], &p, say, &s, &d)) {
        fprintf(stderr, "margay: %s\n", mg_diag_first(&d, MG_ERR_IO));
        return 3;
    }
    if (scoped)
        write_scoped(s);
    else if (argc > 3)
        write_launches(s, strtoull(argv[3], NULL, 0));
    else
        sample_write(s);
    mg_store_close(s, 0);
    return 0;
}
