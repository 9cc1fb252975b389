/* Reads just before or behind an allocation: which pass, what they give, what is told of them. */
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"
#include "test.h"

static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
#define KERNEL(name, access)                                                                                           \
    ".visible .entry " name "(.param .u64 at, .param .u64 out)\n{\n"                                                   \
    "  .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"                                                                           \
    "  ld.param.u64 %rd0, [at];\n  ld.param.u64 %rd1, [out];\n  mov.u32 %r1, 7;\n" access "\n"                         \
    "  st.global.u32 [%rd1], %r1;\n  ret;\n}\n"
    KERNEL("reads", "  ld.global.u32 %r1, [%rd0];") KERNEL("reads_generic", "  ld.u32 %r1, [%rd0];")
        KERNEL("reads_four", "  ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0];")
            KERNEL("writes", "  st.global.u32 [%rd0], %r1;") KERNEL("adds", "  atom.global.add.u32 %r1, [%rd0], %r1;");

struct bench {
    struct mg_device *dev;
    struct mg_dmod *mod;
    uint64_t b, out, below, large;
};
enum { LARGE = (4 << 20) - 4, ZONE = 4096 + 768 };

/* b begins a megabyte, and what lies below it ends half a megabyte before it, wherever the pool was. Around the large
 * one nothing lies for a megabyte. Junk lies before b and behind the large one. */
static void set_up(struct bench *t, uint64_t stray_bytes)
{
    struct mg_device_opts opts = {.size = sizeof opts, .properties = "h200", .workers = 1, .stray_bytes = stray_bytes};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_module *m = NULL;
    MG_CHECK_EQ(mg_emu_ops.open(&t->dev, &opts, &d), 0);
    MG_CHECK_EQ(mg_ptx_parse(text, strlen(text), "test.ptx", &m, &d), 0);
    MG_CHECK_EQ(mg_emu_ops.module_load(t->dev, m, &t->mod, &d), 0);
    mg_diag_release(&d);
    t->out = mg_mem_alloc(4, 0, MG_ALLOC_MANAGED);
    t->below = mg_mem_alloc(1 << 19, 1 << 20, MG_ALLOC_DEVICE);
    t->b = mg_mem_alloc(4096, 1 << 20, MG_ALLOC_DEVICE);
    t->large = mg_mem_alloc(LARGE, 0, MG_ALLOC_DEVICE);
    memset((void *)(t->b - 64), 0x55, 64);
    memset((void *)(t->large + LARGE), 0x55, 64);
}

static void tear_down(struct bench *t)
{
    mg_mem_free(t->large);
    mg_mem_free(t->b);
    mg_mem_free(t->below);
    mg_mem_free(t->out);
    mg_emu_ops.close(t->dev);
}

static enum mg_fault_kind run(struct bench *t, const char *kernel, uint64_t at, struct mg_launch_stats *stats)
{
    uint64_t params[2] = {at, t->out};
    struct mg_launch l = {.kernel = mg_emu_ops.kernel(t->mod, kernel),
                          .grid = {2, 1, 1},
                          .block = {40, 1, 1},
                          .params = params,
                          .param_bytes = sizeof params};
    struct mg_fault fault;
    *(uint32_t *)t->out = 99;
    mg_emu_ops.launch(t->dev, &l, stats, &fault);
    return fault.kind;
}

static void check_told(struct bench *t, uint64_t at, uint64_t base, uint64_t bytes, const char *where)
{
    struct mg_launch_stats stats = {0};
    MG_CHECK_EQ(run(t, "reads", at, &stats), MG_FAULT_NONE);
    MG_CHECK_EQ(*(uint32_t *)t->out, 0); /* not the junk there */
    MG_CHECK_EQ(stats.n_strays, 1);
    if (stats.n_strays == 1) {
        const struct mg_stray *s = stats.strays;
        MG_CHECK_EQ(s->times, 80);
        MG_CHECK_EQ(s->address, at);
        MG_CHECK_EQ(s->allocation, base);
        MG_CHECK_EQ(s->allocation_bytes, bytes);
        MG_CHECK_EQ(s->bytes, 4);
        MG_CHECK(s->first);
        MG_CHECK(strstr(s->text, "kernel reads: out-of-bounds read of 4 bytes") && strstr(s->text, where));
    }
    free(stats.strays);
}

MG_TEST(reads_just_before_an_allocation_pass_and_are_told)
{
    struct bench t;
    struct mg_launch_stats stats = {0};
    set_up(&t, 65536);
    check_told(&t, t.b - 4, t.b, 4096, "4 bytes before the nearest allocation");
    MG_CHECK_EQ(run(&t, "reads", t.b - 65536, &stats), MG_FAULT_NONE);
    MG_CHECK(stats.n_strays == 1 && !stats.strays[0].first); /* told once a place */
    free(stats.strays);
    MG_CHECK_EQ(run(&t, "reads_generic", t.b - 8, NULL), MG_FAULT_NONE);
    MG_CHECK_EQ(run(&t, "reads_four", t.b - 16, NULL), MG_FAULT_NONE);
    MG_CHECK_EQ(*(uint32_t *)t.out, 0);
    MG_CHECK_EQ(run(&t, "reads", t.b, &stats), MG_FAULT_NONE); /* inside: nothing to tell */
    MG_CHECK_EQ(stats.n_strays, 0);
    free(stats.strays);
    tear_down(&t);
}

MG_TEST(reads_just_behind_an_allocation_pass_and_are_told)
{
    struct bench t;
    struct mg_launch_stats stats = {0};
    set_up(&t, 65536);
    uint64_t end = t.large + LARGE;
    check_told(&t, end, t.large, LARGE, "0 bytes past the end of the nearest allocation");
    MG_CHECK_EQ(run(&t, "reads", end + 65532, &stats), MG_FAULT_NONE); /* its last byte is the 65536th */
    MG_CHECK(stats.n_strays == 1 && !stats.strays[0].first);
    free(stats.strays);
    MG_CHECK_EQ(run(&t, "reads", t.b - 4, &stats), MG_FAULT_NONE); /* the same place, on the other side of another */
    MG_CHECK(stats.n_strays == 1 && !stats.strays[0].first && stats.strays[0].allocation == t.b);
    free(stats.strays);
    MG_CHECK_EQ(run(&t, "reads_generic", end, NULL), MG_FAULT_NONE);
    MG_CHECK_EQ(run(&t, "reads_four", end + 4, NULL), MG_FAULT_NONE);
    MG_CHECK_EQ(*(uint32_t *)t.out, 0);
    MG_CHECK_EQ(run(&t, "reads", end - 4, &stats), MG_FAULT_NONE); /* inside: nothing to tell */
    MG_CHECK_EQ(stats.n_strays, 0);
    free(stats.strays);
    tear_down(&t);
}

MG_TEST(other_accesses_outside_of_allocations_stop_the_launch)
{
    struct bench t;
    set_up(&t, 65536);
    uint64_t end = t.large + LARGE;
    MG_CHECK_EQ(run(&t, "reads", t.b - 65540, NULL), MG_FAULT_ADDRESS); /* too far */
    MG_CHECK_EQ(run(&t, "reads", end + 65536, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(run(&t, "reads_four", end - 12, NULL), MG_FAULT_ADDRESS); /* over the end */
    MG_CHECK_EQ(run(&t, "reads", t.out + 4, NULL), MG_FAULT_ADDRESS);     /* no device memory */
    MG_CHECK_EQ(run(&t, "reads", t.out - 4, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(run(&t, "writes", t.b - 4, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(run(&t, "adds", t.b - 4, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(run(&t, "writes", end, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(run(&t, "adds", end, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(*(uint32_t *)(t.b - 4), 0x55555555);
    MG_CHECK_EQ(*(uint32_t *)end, 0x55555555);
    tear_down(&t);
}

static uint64_t told_of(struct bench *t, uint64_t at)
{
    struct mg_launch_stats stats = {0};
    MG_CHECK_EQ(run(t, "reads", at, &stats), MG_FAULT_NONE);
    uint64_t base = stats.n_strays == 1 ? stats.strays[0].allocation : 0;
    free(stats.strays);
    return base;
}

/* It lies beside the nearer one, the lower where both are as far. What was freed is nobody's, however near. */
MG_TEST(a_read_between_two_allocations_lies_beside_the_nearer_one)
{
    enum { MOST = 64 };
    struct bench t;
    uint64_t own[MOST], lower = 0, upper = 0;
    uint32_t n = 0;
    set_up(&t, 65536);
    while (n < MOST && (n < 2 || upper != lower + 1024 + 2 * ZONE)) { /* first ones may fill gaps of other tests */
        lower = upper;
        own[n++] = upper = mg_mem_alloc(1000, 0, MG_ALLOC_DEVICE);
    }
    MG_CHECK_EQ(upper, lower + 1024 + 2 * ZONE); /* a red zone behind one, another before the other */
    MG_CHECK_EQ(told_of(&t, lower + 1000), lower);
    MG_CHECK_EQ(told_of(&t, lower + 1012 + ZONE), lower); /* as far from both */
    MG_CHECK_EQ(told_of(&t, lower + 1016 + ZONE), upper);
    MG_CHECK_EQ(told_of(&t, upper - 4), upper);
    mg_mem_free(lower);
    MG_CHECK_EQ(run(&t, "reads", lower, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(run(&t, "reads", lower + 996, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(told_of(&t, lower + 1024), upper);
    while (n)
        if (own[--n] != lower) mg_mem_free(own[n]);
    tear_down(&t);
}

MG_TEST(exact_bounds_stop_reads_beside_an_allocation)
{
    struct bench t;
    set_up(&t, 0);
    MG_CHECK_EQ(run(&t, "reads", t.b - 4, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(run(&t, "reads", t.b, NULL), MG_FAULT_NONE);
    MG_CHECK_EQ(run(&t, "reads", t.large + LARGE - 4, NULL), MG_FAULT_NONE);
    MG_CHECK_EQ(run(&t, "reads", t.large + LARGE, NULL), MG_FAULT_ADDRESS);
    tear_down(&t);
}
