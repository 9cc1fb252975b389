/* Reads just before an allocation: which pass, what they give, what is told of them. */
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
    uint64_t b, out, below;
};

/* b begins a megabyte, and what lies below it ends half a megabyte before it, wherever the pool was; junk lies before
 * b. */
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
    memset((void *)(t->b - 64), 0x55, 64);
}

static void tear_down(struct bench *t)
{
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

MG_TEST(reads_just_before_an_allocation_pass_and_are_told)
{
    struct bench t;
    struct mg_launch_stats stats = {0};
    set_up(&t, 65536);
    MG_CHECK_EQ(run(&t, "reads", t.b - 4, &stats), MG_FAULT_NONE);
    MG_CHECK_EQ(*(uint32_t *)t.out, 0); /* not the junk there */
    MG_CHECK_EQ(stats.n_strays, 1);
    if (stats.n_strays == 1) {
        const struct mg_stray *s = stats.strays;
        MG_CHECK_EQ(s->times, 80);
        MG_CHECK_EQ(s->address, t.b - 4);
        MG_CHECK_EQ(s->allocation, t.b);
        MG_CHECK_EQ(s->allocation_bytes, 4096);
        MG_CHECK_EQ(s->bytes, 4);
        MG_CHECK(s->first);
        MG_CHECK(strstr(s->text, "kernel reads: out-of-bounds read of 4 bytes") &&
                 strstr(s->text, "4 bytes before the nearest allocation"));
    }
    free(stats.strays);
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

MG_TEST(other_accesses_outside_of_allocations_stop_the_launch)
{
    struct bench t;
    set_up(&t, 65536);
    MG_CHECK_EQ(run(&t, "reads", t.b - 65540, NULL), MG_FAULT_ADDRESS); /* too far */
    MG_CHECK_EQ(run(&t, "reads", t.b + 4096, NULL), MG_FAULT_ADDRESS);  /* past the end */
    MG_CHECK_EQ(run(&t, "writes", t.b - 4, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(run(&t, "adds", t.b - 4, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(*(uint32_t *)(t.b - 4), 0x55555555);
    /* nearer to the end of what lies below than to the start of what lies above: past the end */
    enum { ZONE = 4096 + 768, MOST = 64 };
    uint64_t own[MOST], lower = 0, upper = 0;
    uint32_t n = 0;
    while (n < MOST && (n < 2 || upper != lower + 1024 + 2 * ZONE)) { /* first ones may fill gaps of other tests */
        lower = upper;
        own[n++] = upper = mg_mem_alloc(1000, 0, MG_ALLOC_DEVICE);
    }
    MG_CHECK_EQ(upper, lower + 1024 + 2 * ZONE); /* a red zone behind one, another before the other */
    MG_CHECK_EQ(run(&t, "reads", lower + 1000, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(run(&t, "reads", lower + 1024 + ZONE - 16, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(run(&t, "reads", lower + 1024 + ZONE, NULL), MG_FAULT_NONE);
    MG_CHECK_EQ(run(&t, "reads", upper - 4, NULL), MG_FAULT_NONE);
    while (n) mg_mem_free(own[--n]);
    tear_down(&t);
}

MG_TEST(exact_bounds_stop_reads_before_an_allocation)
{
    struct bench t;
    set_up(&t, 0);
    MG_CHECK_EQ(run(&t, "reads", t.b - 4, NULL), MG_FAULT_ADDRESS);
    MG_CHECK_EQ(run(&t, "reads", t.b, NULL), MG_FAULT_NONE);
    tear_down(&t);
}
