/* --check: planted uses of undefined values, each found with its line, what it decides and where it came
 * from; sound counterparts of each give no finding. Marks in the PTX say where: "// A" the use, "// B" the load
 * that brought it. What is expected follows from PTX: which lanes of 64 threads wrote what. */
/* clang-format off */
#include "device/defined.h"
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"
#include "test.h"

#define HEAD(name) ".visible .entry " name "(.param .u64 out, .param .u64 in)\n{\n  .reg .b32 %r<20>; .reg .b16 %h<8>; .reg .b64 %d<12>; .reg .pred %p<8>; .reg .f32 %f<4>;\n" \
    "  .shared .align 16 .b8 s[1024];\n  .local .align 16 .b8 l[64];\n" \
    "  mov.u32 %r1, %tid.x;\n  shl.b32 %r2, %r1, 2;\n  cvt.u64.u32 %d3, %r2;\n  mov.u32 %r3, s;\n  add.u32 %r4, %r3, %r2;\n" \
    "  ld.param.u64 %d1, [out];\n  ld.param.u64 %d2, [in];\n  add.u64 %d4, %d1, %d3;\n  add.u64 %d5, %d2, %d3;\n"
#define TAIL "  ret;\n}\n"
#define BRANCH(r) "  setp.gt.s32 %p1, " r ", 5;\n  @%p1 bra DONE; // A\n  st.global.u32 [%d4], 1;\nDONE:\n"
static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".func (.param .b32 r) twice(.param .b32 a)\n{\n  .reg .b32 %r<3>;\n  ld.param.u32 %r1, [a];\n  add.u32 %r2, %r1, %r1;\n  st.param.u32 [r], %r2;\n  ret;\n}\n"
    /* registers */
    HEAD("sum") "  add.u32 %r6, %r5, %r1;\n  shl.b32 %r6, %r6, 1;\n" BRANCH("%r6") TAIL
    /* whose register it is follows from who writes it, not from its name */
    HEAD("named") "  .reg .b32 __mg_t;\n  add.u32 %r6, __mg_t, %r1;\n" BRANCH("%r6") TAIL
    HEAD("named_sound") "  .reg .b32 __mg_t;\n  mov.u32 __mg_t, 1;\n  add.u32 %r6, __mg_t, %r1;\n" BRANCH("%r6") TAIL
    HEAD("sum_sound") "  mov.u32 %r5, 1;\n  add.u32 %r6, %r5, %r1;\n  shl.b32 %r6, %r6, 1;\n" BRANCH("%r6") TAIL
    HEAD("where") "  and.b32 %r6, %r5, 4;\n  cvt.u64.u32 %d6, %r6;\n  add.u64 %d7, %d1, %d6;\n  ld.global.u32 %r7, [%d7]; // A\n" TAIL
    HEAD("where_sound") "  and.b32 %r6, %r5, 0;\n  cvt.u64.u32 %d6, %r6;\n  add.u64 %d7, %d1, %d6;\n  ld.global.u32 %r7, [%d7];\n" TAIL
    HEAD("guard") "  setp.lt.u32 %p1, %r1, 40;\n  @%p1 setp.eq.u32 %p2, %r1, 3;\n  @%p2 st.global.u32 [%d4], %r1; // A\n" TAIL
    HEAD("guard_sound") "  setp.lt.u32 %p1, %r1, 40;\n  @%p1 setp.eq.u32 %p2, %r1, 3;\n  and.pred %p3, %p2, %p1;\n  @%p3 st.global.u32 [%d4], %r1;\n" TAIL
    HEAD("call") "  .param .b32 a; .param .b32 r;\n  st.param.u32 [a], %r5;\n  call (r), twice, (a);\n  ld.param.u32 %r6, [r];\n" BRANCH("%r6") TAIL
    HEAD("call_sound") "  .param .b32 a; .param .b32 r;\n  st.param.u32 [a], %r1;\n  call (r), twice, (a);\n  ld.param.u32 %r6, [r];\n" BRANCH("%r6") TAIL
    HEAD("index") "  setp.lt.u32 %p1, %r1, 40;\n  @%p1 mov.u32 %r5, 0;\n  TS: .branchtargets L0, L1;\n  brx.idx %r5, TS; // A\nL0:\n  st.global.u32 [%d4], 1;\nL1:\n" TAIL
    /* local memory, written in part */
    HEAD("part") "  st.local.u16 [l], %h1;\n  st.local.u16 [l], 7;\n  st.local.u8 [l+2], 1;\n  ld.local.u32 %r6, [l]; // B\n" BRANCH("%r6") TAIL
    HEAD("part_sound") "  st.local.u16 [l], 7;\n  st.local.u8 [l+2], 1;\n  ld.local.u32 %r6, [l];\n  and.b32 %r6, %r6, 0xffffff;\n" BRANCH("%r6") TAIL
    HEAD("generic") "  mov.u64 %d6, l;\n  cvta.local.u64 %d6, %d6;\n  st.u8 [%d6+1], 3;\n  ld.u16 %h2, [%d6]; // B\n  cvt.u32.u16 %r6, %h2;\n" BRANCH("%r6") TAIL
    HEAD("generic_sound") "  mov.u64 %d6, l;\n  cvta.local.u64 %d6, %d6;\n  st.u8 [%d6+1], 3;\n  ld.u16 %h2, [%d6];\n  cvt.u32.u16 %r6, %h2;\n  bfe.u32 %r6, %r6, 8, 8;\n" BRANCH("%r6") TAIL
    /* shared memory, through a shuffle: the upper half of each warp has written nothing and passes it to the lower one */
    HEAD("passed") "  and.b32 %r5, %r1, 16;\n  setp.eq.u32 %p2, %r5, 0;\n  @%p2 st.shared.u32 [%r4], %r1;\n  ld.shared.u32 %r6, [%r4]; // B\n  shfl.sync.bfly.b32 %r7, %r6, 16, 31, -1;\n  @!%p2 bra END;\n" BRANCH("%r7") "END:\n" TAIL
    HEAD("passed_sound") "  and.b32 %r5, %r1, 16;\n  setp.eq.u32 %p2, %r5, 0;\n  @%p2 st.shared.u32 [%r4], %r1;\n  ld.shared.u32 %r6, [%r4];\n  shfl.sync.bfly.b32 %r7, %r6, 16, 31, -1;\n  @%p2 bra END;\n" BRANCH("%r7") "END:\n" TAIL
    HEAD("add") "  atom.shared.add.u32 %r5, [s], 1; // A\n" TAIL
    HEAD("add_sound") "  setp.eq.u32 %p1, %r1, 0;\n  @%p1 st.shared.u32 [s], 0;\n  bar.sync 0;\n  atom.shared.add.u32 %r5, [s], 1;\n  ld.shared.u32 %r6, [s+512];\n  st.shared.u32 [%r4+256], %r6;\n" TAIL
    /* global memory that nobody has written, through pack, prmt, selp */
    HEAD("packed") "  ld.global.u32 %r5, [%d5]; // B\n  mov.b64 %d6, {%r1, %r5};\n  shr.u64 %d6, %d6, 8;\n  mov.b64 {%r6, %r7}, %d6;\n" BRANCH("%r7") TAIL
    HEAD("packed_sound") "  ld.global.u32 %r5, [%d5];\n  mov.b64 %d6, {%r1, %r5};\n  shr.u64 %d6, %d6, 8;\n  mov.b64 {%r6, %r7}, %d6;\n  and.b32 %r6, %r6, 0xffffff;\n" BRANCH("%r6") TAIL
    HEAD("chosen") "  ld.global.u32 %r5, [%d5]; // B\n  setp.lt.u32 %p1, %r1, 60;\n  selp.b32 %r6, %r1, %r5, %p1;\n  red.global.add.u32 [%d1], %r6; // A\n" TAIL
    HEAD("chosen_sound") "  ld.global.u32 %r5, [%d5];\n  setp.lt.u32 %p1, %r1, 64;\n  selp.b32 %r6, %r1, %r5, %p1;\n  prmt.b32 %r6, %r6, %r5, 0x3210;\n  red.global.add.u32 [%d1], %r6;\n" TAIL
    HEAD("counted") "  atom.global.add.u32 %r5, [%d5], 1; // A\n" TAIL
    HEAD("counted_sound") "  atom.global.exch.b32 %r5, [%d5], 1;\n  atom.global.add.u32 %r6, [%d5], 1;\n" BRANCH("%r6") TAIL
    HEAD("polled") "  ld.global.u32 %r5, [%d5]; // B\n  setp.eq.u32 %p1, %r5, 7;\n  vote.sync.ballot.b32 %r6, %p1, -1;\n  popc.b32 %r6, %r6;\n" BRANCH("%r6") TAIL
    HEAD("polled_sound") "  ld.global.u32 %r5, [%d5];\n  setp.eq.u32 %p1, %r5, 7;\n  setp.lt.u32 %p2, %r1, 64;\n  or.pred %p3, %p1, %p2;\n  vote.sync.ballot.b32 %r6, %p3, -1;\n  popc.b32 %r6, %r6;\n" BRANCH("%r6") TAIL
    /* what reaches the host */
    HEAD("left") "  add.f32 %f2, %f1, 0f3F800000;\n  st.global.f32 [%d4], %f2; // A\n" TAIL
    HEAD("left_sound") "  add.f32 %f2, %f1, 0f3F800000;\n  st.global.f32 [%d4], %f2;\n  st.global.u32 [%d4], %r1;\n" TAIL
    /* the second member of a structure of 16 bytes begins at 8: what lies between is never written */
    HEAD("padding_sound") "  st.local.u32 [l], %r1;\n  st.local.u64 [l+8], %d3;\n  ld.local.v2.u64 {%d6, %d7}, [l];\n  shl.b32 %r5, %r1, 4;\n  cvt.u64.u32 %d8, %r5;\n  add.u64 %d8, %d1, %d8;\n"
                         "  st.global.v2.u64 [%d8], {%d6, %d7};\n" TAIL;

struct bench { struct mg_device *dev; struct mg_dmod *mod; uint64_t params[2]; struct mg_launch_stats stats; struct mg_fault fault; };

static void set_up(struct bench *t)
{
    struct mg_device_opts opts = {.size = sizeof opts, .properties = "h200", .workers = 1, .check = true};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_module *m = NULL;
    memset(t, 0, sizeof *t);
    MG_CHECK_EQ(mg_emu_ops.open(&t->dev, &opts, &d), 0);
    MG_CHECK_EQ(mg_ptx_parse(text, strlen(text), "test.ptx", &m, &d), 0);
    MG_CHECK_EQ(mg_emu_ops.module_load(t->dev, m, &t->mod, &d), 0);
    mg_diag_release(&d);
    for (int i = 0; i < 2; i++) t->params[i] = mg_mem_alloc(1024, 0, MG_ALLOC_DEVICE);
    memset((void *)t->params[0], 0, 1024);
    memset((void *)t->params[1], 0, 1024);
}

static void tear_down(struct bench *t)
{
    free(t->stats.findings);
    for (int i = 0; i < 2; i++) mg_mem_free(t->params[i]);
    mg_emu_ops.close(t->dev);
    mg_defined_on = false;
}

/* One CTA of 64 threads; `out` was written by the host, `in` by nobody. */
static uint32_t run(struct bench *t, const char *kernel)
{
    struct mg_launch l = {.kernel = mg_emu_ops.kernel(t->mod, kernel), .grid = {1, 1, 1}, .block = {64, 1, 1}, .params = t->params, .param_bytes = 16};
    free(t->stats.findings);
    mg_defined_set(t->params[0], 1024);
    mg_defined_fresh(t->params[1], 1024);
    mg_emu_ops.launch(t->dev, &l, &t->stats, &t->fault);
    MG_CHECK_EQ(t->fault.kind, MG_FAULT_NONE);
    return t->stats.n_findings;
}

static uint32_t line_of(const char *kernel, const char *mark)
{
    char name[64];
    snprintf(name, sizeof name, ".entry %s(", kernel);
    const char *from = strstr(text, name), *end = strstr(from, "\n}"), *at = strstr(from, mark);
    uint32_t n = 1;
    if (!at || at > end) return 0;
    for (const char *s = text; s < at; s++) n += *s == '\n';
    return n;
}

MG_TEST(defined_planted_uses)
{
    /* thread: the first that the schedule comes to; times: how many threads */
    static const struct { const char *kernel, *space, *use; uint32_t thread, times; } cases[] = {
        {"sum", "register", "branch", 0, 64},    {"where", "register", "address", 0, 64}, {"guard", "register", "branch", 40, 24},
        {"call", "register", "branch", 0, 64},   {"index", "register", "branch", 40, 24}, {"part", "local", "branch", 0, 64},
        {"generic", "local", "branch", 0, 64},   {"passed", "shared", "branch", 0, 32},   {"add", "shared", "atomic", 0, 1},
        {"packed", "global", "branch", 0, 64},   {"chosen", "global", "atomic", 60, 4},   {"counted", "global", "atomic", 0, 64},
        {"polled", "global", "branch", 0, 64},   {"left", "register", "copied", 0, 64},   {"named", "register", "branch", 0, 64},
    };
    struct bench t;
    set_up(&t);
    for (unsigned i = 0; i < MG_COUNT_OF(cases); i++) {
        char sound[64];
        MG_CHECK_EQ(run(&t, cases[i].kernel), 1);
        const struct mg_finding *f = t.stats.findings;
        if (t.stats.n_findings != 1) {
            fprintf(stderr, "%s: %u findings, the first: %s\n", cases[i].kernel, t.stats.n_findings, f ? f->text : "");
            continue;
        }
        MG_CHECK_EQ(f->kind, MG_FINDING_UNINIT);
        MG_CHECK_STR(f->space, cases[i].space);
        MG_CHECK_STR(f->use, cases[i].use);
        MG_CHECK_EQ(f->at.ptx_line, line_of(cases[i].kernel, "// A"));
        if (line_of(cases[i].kernel, "// B")) MG_CHECK_EQ(f->other.ptx_line, line_of(cases[i].kernel, "// B"));
        MG_CHECK_EQ(f->at.thread[0] & 31, cases[i].thread & 31);
        MG_CHECK_EQ(f->times, cases[i].times);
        snprintf(sound, sizeof sound, "%s_sound", cases[i].kernel);
        if (!mg_emu_ops.kernel(t.mod, sound)) continue;
        uint32_t n = run(&t, sound), told = 0;
        for (uint32_t k = 0; k < n; k++) told += !t.stats.findings[k].copied; /* copied: not yet */
        MG_CHECK_EQ(told, 0);
        if (told) fprintf(stderr, "%s: %s\n", sound, t.stats.findings->text);
    }
    tear_down(&t);
}

MG_TEST(defined_names_the_origin)
{
    struct bench t;
    set_up(&t);
    MG_CHECK_EQ(run(&t, "sum"), 1);
    MG_CHECK(t.stats.n_findings && strstr(t.stats.findings->text, "register %r5 was not written") && !strcmp(t.stats.findings->allocation, "%r5"));
    MG_CHECK_EQ(run(&t, "passed"), 1);
    MG_CHECK(t.stats.n_findings && !strcmp(t.stats.findings->allocation, "s") && t.stats.findings->allocation_bytes == 1024);
    MG_CHECK_EQ(run(&t, "chosen"), 1); /* thread 60 reads element 60 first of those that are used; the load met thread 32 or 0 before */
    MG_CHECK(t.stats.n_findings && t.stats.findings->allocation_address == t.params[1] && t.stats.findings->allocation_bytes == 1024);
    MG_CHECK(t.stats.n_findings && t.stats.findings->address - t.params[1] < 256);
    tear_down(&t);
}

MG_TEST(defined_copies_to_the_host)
{
    struct bench t;
    set_up(&t);
    MG_CHECK_EQ(run(&t, "left"), 1);
    uint8_t store = t.stats.n_findings ? t.stats.findings->copied : 0;
    MG_CHECK(store && !mg_defined_copied(store) && !mg_defined_said());
    mg_defined_copy(0, t.params[0] + 256, 256, true); /* not what the kernel wrote */
    MG_CHECK_EQ(mg_defined_copied(store), 0);
    mg_defined_copy(t.params[1], t.params[0], 256, false); /* within the device: undefined there, too */
    MG_CHECK_EQ(mg_defined_copied(store), 0);
    mg_defined_copy(0, t.params[1] + 8, 12, true);
    MG_CHECK_EQ(mg_defined_copied(store), 12);
    MG_CHECK(mg_defined_said() && !mg_defined_said());
    run(&t, "left_sound"); /* overwritten before it is copied */
    store = t.stats.n_findings ? t.stats.findings->copied : 0;
    mg_defined_copy(0, t.params[0], 1024, true);
    MG_CHECK(store && !mg_defined_copied(store));
    MG_CHECK_EQ(run(&t, "padding_sound"), 0);
    mg_defined_copy(0, t.params[0], 1024, true);
    MG_CHECK(!mg_defined_said());
    tear_down(&t);
}

MG_TEST(defined_pages)
{
    uint64_t a = 0x700000000000ull;
    MG_CHECK(mg_defined_begin());
    MG_CHECK_EQ(mg_page_of(a), MG_PAGE_DEFINED);
    mg_defined_fresh(a + 512, 3 * 4096);
    MG_CHECK(mg_page_of(a) > MG_PAGE_FRESH && mg_page_of(a + 4096) == MG_PAGE_FRESH && mg_page_of(a + 8192) == MG_PAGE_FRESH && mg_page_of(a + 3 * 4096) > MG_PAGE_FRESH && mg_page_of(a + 4 * 4096) == MG_PAGE_DEFINED);
    const uint8_t *bits = ((const struct mg_page *)mg_page_of(a))->bits;
    MG_CHECK(bits[511] == 0xff && bits[512] == 0 && bits[4095] == 0);
    mg_defined_set(a + 4096 + 100, 4096);
    bits = ((const struct mg_page *)mg_page_of(a + 4096))->bits;
    MG_CHECK(bits[99] == 0 && bits[100] == 0xff && bits[4095] == 0xff);
    mg_defined_copy(a + 4096, a + 8192 + 50, 100, false);
    MG_CHECK(bits[49] == 0xff && bits[50] == 0 && bits[100] == 0xff);
    mg_defined_fresh(a, 4 * 4096); /* handed out again */
    MG_CHECK(mg_page_of(a) == MG_PAGE_FRESH && mg_page_of(a + 4096) == MG_PAGE_FRESH);
    mg_defined_set(a, 5 * 4096);
    MG_CHECK(mg_page_of(a) == MG_PAGE_DEFINED && mg_page_of(a + 3 * 4096) == MG_PAGE_DEFINED);
    mg_defined_on = false;
}
