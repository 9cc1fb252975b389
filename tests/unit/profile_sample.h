/* A profile written by hand through the store's own calls: two kernels, three launches. The block
 * counts are of a loop of 10 turns over 64x256 threads and of a kernel that ran native. */
#ifndef MG_TESTS_UNIT_PROFILE_SAMPLE_H
#define MG_TESTS_UNIT_PROFILE_SAMPLE_H

#include <stdlib.h>
#include <unistd.h>

#include "store/store.h"
#include "test.h"

#define SAMPLE_THREADS (64 * 256)
#define SAMPLE_WARPS   (64 * 8)
static const uint32_t sample_succ0[] = {1, 2}, sample_succ1[] = {1, 2};
static const struct mg_site_op sample_ops0[] = {{"ld.param.u64", 2, 0}, {"mov.u32", 1, 0}, {"bra", 1, 1}};
static const struct mg_site_op sample_ops1[] = {
    {"add.f32", 1, 0}, {"bra", 1, 1}, {"ld.global.f32", 1, 0}, {"setp.lt.s32", 1, 0}};
static const struct mg_site_op sample_ops2[] = {{"ret", 1, 0}};
static struct mg_site_block sample_blocks[] = {{.id = 0,
                                                .function = "_Z4loopPfi",
                                                .label = "",
                                                .ptx_line = 12,
                                                .file = "loop.cu",
                                                .line = 3,
                                                .n_insts = 4,
                                                .succs = sample_succ0,
                                                .n_succs = 2,
                                                .ops = sample_ops0,
                                                .n_ops = 3},
                                               {.id = 1,
                                                .function = "_Z4loopPfi",
                                                .label = "$L__BB0_1",
                                                .ptx_line = 18,
                                                .file = "loop.cu",
                                                .line = 5,
                                                .n_insts = 4,
                                                .succs = sample_succ1,
                                                .n_succs = 2,
                                                .ops = sample_ops1,
                                                .n_ops = 4},
                                               {.id = 2,
                                                .function = "_Z4loopPfi",
                                                .label = "$L__BB0_2",
                                                .ptx_line = 24,
                                                .n_insts = 1,
                                                .ops = sample_ops2,
                                                .n_ops = 1}};
static const struct mg_sites sample_sites = {.kernel = "_Z4loopPfi", .blocks = sample_blocks, .n_blocks = 3};
static const char *const sample_argv[] = {"./app", "-n", "10"};

static inline struct mg_store_process sample_process(uint32_t pid)
{
    return (struct mg_store_process){.pid = pid,
                                     .ppid = 1,
                                     .rank = -1,
                                     .exe = "/usr/bin/app",
                                     .argv = sample_argv,
                                     .argc = 3,
                                     .device_kind = "emu",
                                     .device_name = "NVIDIA H200 (emulated)",
                                     .sms = 132,
                                     .sm = 90,
                                     .properties = "h200",
                                     .tools = "blocks",
                                     .start_unix_ns = 1000 + pid};
}

static inline struct mg_store_launch sample_launch(uint32_t kernel)
{
    return (struct mg_store_launch){.kernel = kernel,
                                    .grid = {64, 1, 1},
                                    .block = {256, 1, 1},
                                    .static_shared_bytes = 128,
                                    .dyn_shared_bytes = 64,
                                    .ran = MG_RAN_INSTRUMENTED};
}

/* Two instrumented launches of the loop and a native one of another kernel. */
static inline void sample_write(struct mg_store *s)
{
    struct mg_store_kernel k = {.name = "_Z4loopPfi",
                                .module = "00112233445566778899aabbccddeeff",
                                .regs_native = 20,
                                .regs_instrumented = 26,
                                .sites = &sample_sites};
    struct mg_store_kernel other = {.name = "other", .module = "", .regs_native = -1, .regs_instrumented = -1};
    uint32_t loop = mg_store_kernel(s, &k), plain = mg_store_kernel(s, &other);
    float scale = 2.5f;
    struct mg_store_arg args[] = {{0, 8, MG_ARG_POINTER, 3, 256, &(uint64_t){0x7f0000000100}},
                                  {8, 4, MG_ARG_VALUE, 0, 0, &scale}};
    for (int i = 0; i < 2; i++) {
        struct mg_store_launch l = sample_launch(loop);
        uint64_t threads[] = {SAMPLE_THREADS, SAMPLE_THREADS * 10, SAMPLE_THREADS},
                 warps[] = {SAMPLE_WARPS, SAMPLE_WARPS * 10, SAMPLE_WARPS};
        l.args = args;
        l.n_args = 2;
        uint64_t id = mg_store_launch(s, &l);
        struct mg_store_done done = {.complete = true,
                                     .schedule_dependent = -1,
                                     .start_ns = 100 + (uint64_t)i,
                                     .time_ns = 1500,
                                     .timed = true,
                                     .replays = 1,
                                     .threads = threads,
                                     .warps = warps,
                                     .n_blocks = 3};
        mg_store_launch_done(s, id, &done);
    }
    struct mg_store_launch l = sample_launch(plain);
    l.ran = MG_RAN_NATIVE;
    l.reason = "no PTX";
    struct mg_store_done done = {
        .complete = true, .schedule_dependent = -1, .start_ns = 300, .time_ns = 500, .timed = true};
    mg_store_launch_done(s, mg_store_launch(s, &l), &done);
}

static inline char *sample_dir(void)
{
    static char dir[64];
    snprintf(dir, sizeof dir, "/tmp/margay-test-XXXXXX");
    if (!mkdtemp(dir)) mg_test_fail(__FILE__, __LINE__, "no scratch directory");
    return dir;
}

static inline void sample_remove(const char *dir)
{
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
    if (system(cmd)) mg_test_fail(__FILE__, __LINE__, "cannot remove %s", dir);
}

#endif
