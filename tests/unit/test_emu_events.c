/* The emulator's event stream against closed forms, and calls through pointers from another module. */
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"
#include "test.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

/* Every thread: out[tid + 64 * ctaid] = 3 * tid for odd tid, tid for even ones; a call, a barrier. */
static const char text[] =
    HEAD ".visible .func (.param .b32 r) same(.param .b32 a)\n{\n"
         "  .reg .b32 %r<2>;\n"
         "  ld.param.u32 %r0, [a];\n"
         "  st.param.b32 [r], %r0;\n"
         "  ret;\n}\n"
         ".visible .entry work(.param .u64 out)\n{\n"
         "  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;\n"
         "  mov.u32 %r0, %tid.x;\n"
         "  mov.u32 %r1, %ctaid.x;\n"
         "  and.b32 %r2, %r0, 1;\n"
         "  setp.eq.u32 %p0, %r2, 0;\n"
         "  mov.u32 %r3, %r0;\n"
         "  @%p0 bra STORE;\n"
         "  mul.lo.u32 %r3, %r0, 3;\n"
         "STORE:\n"
         "  bar.sync 0;\n"
         "  { .param .b32 a; .param .b32 r; st.param.b32 [a], %r3; call (r), same, (a); ld.param.b32 %r4, [r]; }\n"
         "  mad.lo.u32 %r5, %r1, 64, %r0;\n"
         "  ld.param.u64 %rd0, [out];\n"
         "  mad.wide.u32 %rd1, %r5, 4, %rd0;\n"
         "  st.global.u32 [%rd1], %r4;\n"
         "  ret;\n}\n"
         ".visible .entry other(.param .u64 out)\n{\n  ret;\n}\n";

struct seen {
    unsigned n[8], wrong, muls;
    uint64_t out;
};

static void note(void *user, const struct mg_event *ev)
{
    struct seen *s = user;
    s->n[ev->kind]++;
    if (ev->kind == MG_EVENT_BRANCH) s->wrong += ev->taken != 0x55555555 || ev->active != UINT32_MAX;
    if (ev->kind == MG_EVENT_INST && ev->mask == 0xaaaaaaaa) s->muls++;
    if (ev->kind == MG_EVENT_BARRIER || ev->kind == MG_EVENT_CALL) s->wrong += ev->mask != UINT32_MAX;
    if (ev->kind != MG_EVENT_MEMORY || ev->space != MG_SPACE_global) return;
    s->n[7]++;
    s->wrong += !ev->write || ev->bytes != 4 || !ev->values;
    for (uint32_t i = 0; i < 32 && ev->values; i++) {
        uint32_t tid = ev->warp * 32 + i;
        s->wrong += ev->addresses[i] != s->out + 4ull * (64 * ev->cta[0] + tid);
        s->wrong += ((const uint32_t *)ev->values)[i] != (tid & 1 ? 3 * tid : tid);
    }
}

static struct mg_dmod *load(struct mg_device *dev, const char *ptx)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_module *m = NULL;
    struct mg_dmod *mod = NULL;
    if (mg_ptx_parse(ptx, strlen(ptx), "test.ptx", &m, &d) || mg_emu_ops.module_load(dev, m, &mod, &d))
        mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_INPUT));
    mg_diag_release(&d);
    return mod;
}

static void launch(struct mg_device *dev, struct mg_dmod *mod, const char *kernel, uint32_t grid, uint32_t block,
                   const void *params, uint32_t bytes)
{
    struct mg_launch l = {.kernel = mg_emu_ops.kernel(mod, kernel),
                          .grid = {grid, 1, 1},
                          .block = {block, 1, 1},
                          .params = params,
                          .param_bytes = bytes};
    struct mg_launch_stats stats = {0};
    struct mg_fault fault;
    mg_emu_ops.launch(dev, &l, &stats, &fault);
    if (fault.kind) mg_test_fail(__FILE__, __LINE__, "%s", fault.text);
}

MG_TEST(emu_events)
{
    struct mg_device_opts opts = {.size = sizeof opts, .properties = "h200", .workers = 1};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_device *dev;
    struct seen s = {.out = mg_mem_alloc(4 * 64 * 4, 0, MG_ALLOC_DEVICE)};
    struct mg_observe_opts trace = {.size = sizeof trace, .fn = note, .user = &s};
    MG_CHECK_EQ(mg_emu_ops.open(&dev, &opts, &d), 0);
    struct mg_dmod *mod = load(dev, text);
    launch(dev, mod, "work", 4, 64, &s.out, 8); /* off: nothing is seen, nothing is kept */
    MG_CHECK_EQ(s.n[MG_EVENT_INST], 0);
    mg_emu_ops.trace(dev, &trace);
    launch(dev, mod, "work", 4, 64, &s.out, 8);
    MG_CHECK_EQ(s.wrong, 0);
    MG_CHECK_EQ(s.n[MG_EVENT_BRANCH], 8); /* 4 CTAs of 2 warps */
    MG_CHECK_EQ(s.n[MG_EVENT_BARRIER], 8);
    MG_CHECK_EQ(s.n[MG_EVENT_CALL], 8);
    MG_CHECK_EQ(s.n[MG_EVENT_RETURN], 16);
    MG_CHECK_EQ(s.n[MG_EVENT_EXIT], 0);
    MG_CHECK_EQ(s.n[7], 8);
    MG_CHECK_EQ(s.muls, 8);
    MG_CHECK_EQ(s.n[MG_EVENT_INST], 8 * 8);         /* 5 moves and compares, mul, two mads */
    MG_CHECK_EQ(s.n[MG_EVENT_MEMORY], 8 * (5 + 1)); /* 2 + 2 of parameters of the call, 1 of the kernel's, the store */
    struct seen all = s;
    trace.first_cta = 2;
    trace.n_ctas = 1;
    trace.kernel_glob = "w*";
    mg_emu_ops.trace(dev, &trace);
    launch(dev, mod, "work", 4, 64, &s.out, 8);
    launch(dev, mod, "other", 4, 64, &s.out, 8);
    MG_CHECK_EQ(s.n[MG_EVENT_RETURN] - all.n[MG_EVENT_RETURN], 4); /* one CTA's two warps */
    MG_CHECK_EQ(s.n[7] - all.n[7], 2);
    all = s;
    mg_emu_ops.trace(dev, NULL);
    launch(dev, mod, "work", 4, 64, &s.out, 8);
    MG_CHECK(!memcmp(&s, &all, sizeof s));
    mg_emu_ops.module_unload(mod);
    mg_emu_ops.close(dev);
    mg_mem_free(s.out);
    mg_diag_release(&d);
}

/* 40 values loaded before the first is used need 40 registers, the address 2 more; 8 for the machine. */
MG_TEST(emu_register_estimate)
{
    struct mg_device_opts opts = {.size = sizeof opts, .properties = "h200", .workers = 1};
    struct mg_device *dev;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_kernel_info info;
    char ptx[8192];
    int n = snprintf(
        ptx, sizeof ptx,
        HEAD
        ".visible .entry none()\n{\n ret;\n}\n.visible .entry many(.param .u64 p)\n{\n .reg .b32 %%r<40>; .reg .b64 %%a;\n ld.param.u64 %%a, [p];\n");
    for (int i = 0; i < 40; i++)
        n += snprintf(ptx + n, sizeof ptx - (size_t)n, " ld.global.u32 %%r%d, [%%a+%d];\n", i, 4 * i);
    for (int i = 0; i < 40; i++)
        n += snprintf(ptx + n, sizeof ptx - (size_t)n, " st.global.u32 [%%a+%d], %%r%d;\n", 4 * i, 39 - i);
    snprintf(ptx + n, sizeof ptx - (size_t)n, " ret;\n}\n");
    MG_CHECK_EQ(mg_emu_ops.open(&dev, &opts, &d), 0);
    struct mg_dmod *mod = load(dev, ptx);
    mg_emu_ops.kernel_info(mg_emu_ops.kernel(mod, "none"), &info);
    MG_CHECK_EQ(info.registers, 8);
    mg_emu_ops.kernel_info(mg_emu_ops.kernel(mod, "many"), &info);
    MG_CHECK_EQ(info.registers, 56); /* 50, in steps of 8 */
    mg_emu_ops.module_unload(mod);
    mg_emu_ops.close(dev);
    mg_diag_release(&d);
}

/* A table of functions, as virtual functions have, that one module fills and another one calls. */
static const char maker[] = HEAD
    ".func (.param .b32 r) twice(.param .b32 a)\n{\n .reg .b32 %r<3>;\n ld.param.u32 %r0, [a];\n add.u32 %r1, %r0, %r0;\n st.param.b32 [r], %r1;\n ret;\n}\n"
    ".func (.param .b32 r) square(.param .b32 a)\n{\n .reg .b32 %r<3>;\n ld.param.u32 %r0, [a];\n mul.lo.u32 %r1, %r0, %r0;\n st.param.b32 [r], %r1;\n ret;\n}\n"
    ".visible .entry make(.param .u64 table)\n{\n .reg .b64 %rd<4>;\n ld.param.u64 %rd0, [table];\n mov.u64 %rd1, twice;\n mov.u64 %rd2, square;\n"
    " st.global.u64 [%rd0], %rd1;\n st.global.u64 [%rd0+8], %rd2;\n ret;\n}\n";
static const char caller[] = HEAD
    ".visible .entry use(.param .u64 table, .param .u64 out)\n{\n .reg .b32 %r<5>; .reg .b64 %rd<9>;\n"
    " mov.u32 %r0, %tid.x;\n and.b32 %r1, %r0, 1;\n ld.param.u64 %rd0, [table];\n mad.wide.u32 %rd1, %r1, 8, %rd0;\n ld.global.u64 %rd2, [%rd1];\n"
    " { .param .b32 a; .param .b32 r; st.param.b32 [a], %r0;\n proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n call (r), %rd2, (a), proto;\n ld.param.b32 %r2, [r]; }\n"
    " ld.param.u64 %rd3, [out];\n mad.wide.u32 %rd4, %r0, 4, %rd3;\n st.global.u32 [%rd4], %r2;\n ret;\n}\n";

MG_TEST(emu_calls_another_module)
{
    struct mg_device_opts opts = {.size = sizeof opts, .properties = "h200", .workers = 1};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_device *dev;
    uint64_t params[2] = {mg_mem_alloc(16, 0, MG_ALLOC_DEVICE), mg_mem_alloc(48 * 4, 0, MG_ALLOC_DEVICE)};
    MG_CHECK_EQ(mg_emu_ops.open(&dev, &opts, &d), 0);
    struct mg_dmod *a = load(dev, maker), *b = load(dev, caller);
    launch(dev, a, "make", 1, 1, params, 8);
    launch(dev, b, "use", 1, 48, params, 16);
    unsigned wrong = 0;
    for (uint32_t i = 0; i < 48; i++) wrong += ((const uint32_t *)params[1])[i] != (i & 1 ? i * i : 2 * i);
    MG_CHECK_EQ(wrong, 0);
    mg_emu_ops.module_unload(b);
    mg_emu_ops.module_unload(a);
    mg_emu_ops.close(dev);
    mg_mem_free(params[0]);
    mg_mem_free(params[1]);
    mg_diag_release(&d);
}
