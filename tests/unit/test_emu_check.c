/* --check: planted races, uninitialised reads and misused barriers, each found with its lines, threads and
 * address; clean kernels give no finding. Marks (// A, // B) in the PTX say where. */
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"
#include "test.h"

#define HEAD(name)                                                                                                              \
    ".visible .entry " name                                                                                                     \
    "(.param .u64 out)\n{\n  .reg .b32 %r<20>; .reg .b16 %h<4>; .reg .b64 %d<8>; .reg .pred %p<8>;\n"                           \
    "  .shared .align 16 .b8 pad[1024];\n  .shared .align 16 .b8 s[1024];\n  .shared .align 8 .b8 m[8];\n"                      \
    "  mov.u32 %r1, %tid.x;\n  shl.b32 %r2, %r1, 2;\n  mov.u32 %r3, s;\n  add.u32 %r4, %r3, %r2;\n  ld.param.u64 %d1, [out];\n" \
    "  mov.u32 %r9, pad;\n  st.shared.u32 [pad], %r9;\n  bar.sync 0;\n"
#define TAIL  "  ret;\n}\n"
#define FIRST "  setp.eq.u32 %p1, %r1, 0;\n  setp.eq.u32 %p2, %r1, 32;\n  mov.u32 %r5, 1;\n"
static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
    /* other threads' words without a barrier: thread t reads what t + 1 wrote (its own word is initialised first) */
    HEAD(
        "raw") "  st.shared.u32 [%r4], %r1;\n  bar.sync 0;\n  st.shared.u32 [%r4], %r2; // A\n  xor.b32 %r5, %r2, 128;\n  add.u32 %r5, %r3, %r5;\n"
               "  ld.shared.u32 %r6, [%r5]; // B\n" TAIL HEAD(
                   "lanes") "  st.shared.u32 [%r4], %r1; // A\n  xor.b32 %r5, %r4, 4;\n  ld.shared.u32 %r6, [%r5]; // B\n" TAIL
                   HEAD(
                       "uninit") "  setp.lt.u32 %p1, %r1, 5;\n  @%p1 st.shared.u32 [%r4], %r1;\n  bar.sync 0;\n  ld.shared.u32 %r6, [%r4]; // A\n  setp.eq.u32 %p2, %r6, 7;\n  @%p2 ret; // B\n" TAIL
                       HEAD("values") "  st.shared.u32 [s], %r1; // A\n" TAIL HEAD(
                           "same") "  mov.u32 %r5, 7;\n  st.shared.u32 [s], %r5;\n  ld.shared.u32 %r6, [s];\n" TAIL
                           HEAD(
                               "clean") "  st.shared.u32 [%r4], %r1;\n  bar.sync 0;\n  xor.b32 %r5, %r2, 252;\n  add.u32 %r5, %r3, %r5;\n  ld.shared.u32 %r6, [%r5];\n  bar.sync 0;\n  st.shared.u32 [%r4], %r6;\n" TAIL
                               HEAD(
                                   "synced") "  st.shared.u32 [%r4], %r1;\n  bar.warp.sync -1;\n  xor.b32 %r5, %r4, 4;\n  ld.shared.u32 %r6, [%r5];\n  bar.warp.sync -1;\n  st.shared.u32 [%r4], %r6;\n" TAIL
                                   /* halves of a warp synchronise by themselves: neighbours in a half are ordered, the
                                      halves are not */
                                   HEAD(
                                       "halves") "  and.b32 %r7, %r1, 16;\n  mov.u32 %r8, 0xffff;\n  shl.b32 %r8, %r8, %r7;\n  st.shared.u32 [%r4], %r1; // A\n  bar.warp.sync %r8;\n"
                                                 "  xor.b32 %r5, %r4, 4;\n  ld.shared.u32 %r6, [%r5];\n  xor.b32 %r5, %r4, 64;\n  ld.shared.u32 %r6, [%r5]; // B\n" TAIL
                                                     HEAD(
                                                         "bytes") "  add.u32 %r5, %r3, %r1;\n  st.shared.u8 [%r5], %r1;\n  bar.sync 0;\n  xor.b32 %r5, %r1, 3;\n  add.u32 %r5, %r3, %r5;\n  ld.shared.u8 %r6, [%r5];\n" TAIL
                                                         HEAD(
                                                             "atomics") "  setp.eq.u32 %p1, %r1, 0;\n  mov.u32 %r5, 0;\n  @%p1 st.shared.u32 [s], %r5;\n  bar.sync 0;\n  atom.shared.add.u32 %r6, [s], 1;\n  bar.sync 0;\n  ld.shared.u32 %r6, [s];\n" TAIL
                                                             HEAD(
                                                                 "counter") "  setp.eq.u32 %p1, %r1, 0;\n  mov.u32 %r5, 0;\n  @%p1 st.shared.u32 [s], %r5;\n  bar.sync 0;\n  red.shared.add.u32 [s], 1; // A\n  @%p1 ld.shared.u32 %r6, [s]; // B\n" TAIL
                                                                 /* warp 1 hands over through barrier 3, warp 0
                                                                    waits; warp 1's second store is not ordered */
                                                                 HEAD(
                                                                     "handover") "  setp.ge.u32 %p1, %r1, 32;\n  @%p1 bra MAKE;\n  bar.sync 3, 64;\n  ld.shared.u32 %r6, [s];\n  ld.shared.u32 %r6, [s+4]; // B\n  ret;\nMAKE:\n"
                                                                                 "  st.shared.u32 [s], %r3;\n  st.shared.u32 [s+4], %r3;\n  bar.arrive 3, 64;\n  mov.u32 %r5, 9;\n  st.shared.u32 [s+4], %r5; // A\n" TAIL
                                                                                     HEAD(
                                                                                         "lock") "  setp.eq.u32 %p1, %r1, 0;\n  mov.u32 %r5, 0;\n  @%p1 st.shared.u32 [s], %r5;\n  @%p1 st.shared.u32 [s+4], %r5;\n  bar.sync 0;\n"
                                                                                                 "AGAIN:\n  atom.shared.cas.b32 %r6, [s], 0, 1;\n  setp.ne.u32 %p2, %r6, 0;\n  @%p2 bra AGAIN;\n  ld.shared.u32 %r7, [s+4];\n  add.u32 %r7, %r7, 1;\n  st.shared.u32 [s+4], %r7;\n"
                                                                                                 "  membar.cta;\n  atom.shared.exch.b32 %r6, [s], 0;\n" TAIL
                                                                                                     /* an
                                                                                                        exchange
                                                                                                        whose
                                                                                                        result
                                                                                                        is never
                                                                                                        read is
                                                                                                        a store:
                                                                                                        of the
                                                                                                        same
                                                                                                        value no
                                                                                                        race, of
                                                                                                        another
                                                                                                        one it
                                                                                                        is */
                                                                                                     HEAD("exchange")
                                                                                                         FIRST
    "  @%p1 atom.shared.exch.b32 %r6, [s], 1;\n  @%p2 st.shared.u32 [s], %r5;\n"
    "  @%p1 st.shared.u32 [s+4], %r5;\n  @%p2 atom.shared.exch.b32 %r7, [s+4], 1;\n" TAIL HEAD("exchanges") FIRST
    "  @%p1 atom.shared.exch.b32 %r6, [s], 2; // A\n  @%p2 st.shared.u32 [s], %r5; // B\n" TAIL HEAD("exchanged") FIRST
    "  @%p1 atom.shared.exch.b32 %r6, [s], 1; // A\n  @%p2 st.shared.u32 [s], %r5; // B\n  mov.u32 %r7, %r6;\n" TAIL
        HEAD("added") FIRST
    "  @%p1 st.shared.u32 [s], %r5;\n  bar.sync 0;\n  @%p1 red.shared.add.u32 [s], 0; // A\n  @%p2 st.shared.u32 [s], %r5; // B\n" TAIL HEAD(
        "copies") "  cp.async.ca.shared.global [%r4], [%d1], 4;\n  cp.async.commit_group;\n  cp.async.wait_group 0;\n  bar.sync 0;\n  xor.b32 %r5, %r4, 128;\n  ld.shared.u32 %r6, [%r5];\n" TAIL
        HEAD(
            "early") "  cp.async.ca.shared.global [%r4], [%d1], 4; // A\n  cp.async.commit_group;\n  bar.sync 0;\n  ld.shared.u32 %r6, [%r4]; // B\n" TAIL
            HEAD(
                "counts") "  setp.ge.u32 %p1, %r1, 32;\n  @%p1 bra OTHER;\n  bar.sync 2, 64; // B\n  ret;\nOTHER:\n  bar.sync 2; // A\n" TAIL
                HEAD("odd") "  bar.sync 2, 40; // A\n" TAIL HEAD(
                    "apart") "  setp.lt.u32 %p1, %r1, 8;\n  @%p1 bra OTHER;\n  bar.sync 2; // B\n  ret;\nOTHER:\n  bar.sync 2; // A\n" TAIL
                    HEAD("outside") "  mov.u32 %r5, 0xfffffff7;\n  bar.warp.sync %r5; // A\n" TAIL HEAD(
                        "replaced") "  mov.u32 %r5, 0xfffffff7;\n  setp.ne.u32 %p1, %r1, 99;\n  vote.sync.ballot.b32 %r5, %p1, %r5; // A\n" TAIL
                        HEAD(
                            "ballot") "  mov.u32 %r5, 0xffffffff;\n  setp.eq.u32 %p1, %r1, 99;\n  vote.sync.ballot.b32 %r5, %p1, %r5;\n" TAIL
                            HEAD("beyond") "  bar.sync 0;\n  st.shared.u32 [m+8], %r1; // A\n" TAIL HEAD(
                                "crooked") "  ld.shared.u32 %r6, [s+2]; // A\n" TAIL;

struct bench {
    struct mg_device *dev;
    struct mg_dmod *mod;
    uint64_t out;
    struct mg_launch_stats stats;
    struct mg_fault fault;
};

static void set_up(struct bench *t, uint32_t workers)
{
    struct mg_device_opts opts = {.size = sizeof opts, .properties = "h200", .workers = workers, .check = true};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_module *m = NULL;
    memset(t, 0, sizeof *t);
    MG_CHECK_EQ(mg_emu_ops.open(&t->dev, &opts, &d), 0);
    MG_CHECK_EQ(mg_ptx_parse(text, strlen(text), "test.ptx", &m, &d), 0);
    MG_CHECK_EQ(mg_emu_ops.module_load(t->dev, m, &t->mod, &d), 0);
    mg_diag_release(&d);
    t->out = mg_mem_alloc(64, 0, MG_ALLOC_DEVICE);
}

static void forget(struct mg_launch_stats *s)
{
    free(s->findings);
    free(s->unseen);
    free(s->strays);
    *s = (struct mg_launch_stats){0};
}

static void tear_down(struct bench *t)
{
    forget(&t->stats);
    mg_mem_free(t->out);
    mg_emu_ops.close(t->dev);
}

static uint32_t run(struct bench *t, const char *kernel)
{
    struct mg_launch l = {.kernel = mg_emu_ops.kernel(t->mod, kernel),
                          .grid = {3, 1, 1},
                          .block = {64, 1, 1},
                          .params = &t->out,
                          .param_bytes = 8};
    forget(&t->stats);
    mg_emu_ops.launch(t->dev, &l, &t->stats, &t->fault);
    return t->stats.n_findings;
}

/* Line of a mark in a kernel. */
static uint32_t line_of(const char *kernel, const char *mark)
{
    char name[64];
    snprintf(name, sizeof name, ".entry %s(", kernel);
    const char *at = strstr(strstr(text, name), mark);
    uint32_t n = 1;
    for (const char *s = text; s < at; s++) n += *s == '\n';
    return n;
}

static bool between(const struct mg_finding *f, uint32_t a, uint32_t b)
{
    return (f->at.ptx_line == a && f->other.ptx_line == b) || (f->at.ptx_line == b && f->other.ptx_line == a);
}

/* One finding of the kernel: a race of the marked lines. */
static const struct mg_finding *race(struct bench *t, const char *kernel, uint64_t times)
{
    MG_CHECK_EQ(run(t, kernel), 1);
    MG_CHECK_EQ(t->fault.kind, MG_FAULT_NONE);
    if (t->stats.n_findings != 1) return NULL;
    const struct mg_finding *f = t->stats.findings;
    MG_CHECK_EQ(f->kind, MG_FINDING_RACE);
    MG_CHECK(between(f, line_of(kernel, "// A"), line_of(kernel, "// B")));
    MG_CHECK_EQ(f->times, times);
    if (f->times != times) fprintf(stderr, "%s\n", f->text);
    MG_CHECK(f->cta[0] == 0 && !strcmp(f->allocation, "s") && f->allocation_address == 1024 &&
             f->allocation_bytes == 1024);
    return f;
}

MG_TEST(check_finds_races)
{
    struct bench t;
    const struct mg_finding *f;
    set_up(&t, 1);
    if ((f = race(&t, "raw", 192))) { /* warp 0 reads before warp 1 writes, warp 1 reads what warp 0 wrote */
        MG_CHECK_EQ(f->other.thread[0] ^ f->at.thread[0], 32);
        MG_CHECK_EQ(f->address, 1024 + 4 * (f->at.access[0] == 'w' ? f->at.thread[0] : f->other.thread[0]));
        MG_CHECK(f->first && strstr(f->text, "kernel raw: race: ") && strstr(f->text, "CTA (0,0,0)") &&
                 strstr(f->text, "without a barrier between; address 0x"));
    }
    if ((f = race(&t, "lanes", 192))) {
        MG_CHECK((f->at.thread[0] ^ f->other.thread[0]) == 1 && f->address == 1024 + 4 * f->other.thread[0] &&
                 f->bytes == 4);
        MG_CHECK(!strcmp(f->at.access, "read") && !strcmp(f->other.access, "write") &&
                 strstr(f->text, "lanes of one warp without __syncwarp()"));
    }
    if ((f = race(&t, "halves", 192))) MG_CHECK_EQ(f->at.thread[0] ^ f->other.thread[0], 16);
    if ((f = race(&t, "early", 192)))
        MG_CHECK(f->at.thread[0] == f->other.thread[0] && strstr(f->text, "not waited for"));
    MG_CHECK(run(&t, "counter") == 1 &&
             between(t.stats.findings, line_of("counter", "// A"), line_of("counter", "// B")));
    MG_CHECK(run(&t, "handover") == 1 &&
             between(t.stats.findings, line_of("handover", "// A"), line_of("handover", "// B")) &&
             t.stats.findings->address == 1028);
    MG_CHECK(run(&t, "values") == 1 && between(t.stats.findings, line_of("values", "// A"), line_of("values", "// A")));
    static const char *const same[] = {"exchanges", "exchanged", "added"};
    for (unsigned i = 0; i < MG_COUNT_OF(same); i++) {
        f = run(&t, same[i]) == 1 ? t.stats.findings : NULL;
        MG_CHECK(f && f->kind == MG_FINDING_RACE && between(f, line_of(same[i], "// A"), line_of(same[i], "// B")) &&
                 f->address == 1024);
    }
    MG_CHECK(run(&t, "values") == 1 && !t.stats.findings->first); /* told once */
    tear_down(&t);
}

MG_TEST(check_finds_uninitialised_reads)
{
    struct bench t;
    set_up(&t, 1);
    MG_CHECK_EQ(run(&t, "uninit"), 1);
    if (t.stats.n_findings == 1) {
        const struct mg_finding *f = t.stats.findings;
        MG_CHECK(f->kind == MG_FINDING_UNINIT && f->at.ptx_line == line_of("uninit", "// B") &&
                 f->other.ptx_line == line_of("uninit", "// A") && !strcmp(f->space, "shared") &&
                 !strcmp(f->use, "branch"));
        MG_CHECK(f->at.thread[0] % 32 == (f->at.thread[0] < 32 ? 5 : 0) && f->address == 1024 + 4 * f->at.thread[0] &&
                 f->times == 3 * 59);
    }
    tear_down(&t);
}

MG_TEST(check_finds_misused_barriers)
{
    static const struct {
        const char *kernel, *what;
        bool other;
    } cases[] = {{"counts", "another warp asked for", false},
                 {"odd", "40 threads, not a multiple of 32", false},
                 {"apart", "different barrier instructions", true},
                 {"outside", "outside the member mask 0xfffffff7", false},
                 {"replaced", "outside the member mask 0xfffffff7", false}};
    struct bench t;
    set_up(&t, 1);
    MG_CHECK_EQ(run(&t, "counts"), 0); /* 64 threads of 64 are all of them */
    MG_CHECK_EQ(run(&t, "ballot"), 0); /* its result, 0, takes the place of the mask that it was given */
    for (unsigned i = 1; i < MG_COUNT_OF(cases); i++) {
        MG_CHECK_EQ(run(&t, cases[i].kernel), 1);
        if (t.stats.n_findings != 1) continue;
        const struct mg_finding *f = t.stats.findings;
        MG_CHECK(f->kind == MG_FINDING_BARRIER && strstr(f->text, cases[i].what) &&
                 (f->other.ptx_line != 0) == cases[i].other);
        if (cases[i].other)
            MG_CHECK(between(f, line_of(cases[i].kernel, "// A"), line_of(cases[i].kernel, "// B")));
        else
            MG_CHECK_EQ(f->at.ptx_line, line_of(cases[i].kernel, "// A"));
    }
    MG_CHECK_EQ(run(&t, "outside"), 1);
    MG_CHECK_EQ(t.stats.findings->at.thread[0] % 32, 3);
    tear_down(&t);
}

MG_TEST(check_is_silent_on_clean_kernels)
{
    static const char *const kernels[] = {"clean", "synced", "same", "bytes", "atomics", "lock", "exchange", "copies"};
    struct bench t;
    for (uint32_t workers = 1; workers < 3; workers++) {
        set_up(&t, workers);
        for (unsigned i = 0; i < MG_COUNT_OF(kernels); i++) {
            MG_CHECK_EQ(run(&t, kernels[i]), 0);
            if (t.stats.n_findings) fprintf(stderr, "%s\n", t.stats.findings->text);
            MG_CHECK_EQ(t.fault.kind, MG_FAULT_NONE);
        }
        tear_down(&t);
    }
}

MG_TEST(check_stops_at_what_hardware_stops_at)
{
    struct bench t;
    set_up(&t, 1);
    run(&t, "beyond"); /* the byte behind the last variable; without --check memory ends at a multiple of 128 */
    MG_CHECK(t.fault.kind == MG_FAULT_ADDRESS && t.fault.ptx_line == line_of("beyond", "// A"));
    run(&t, "crooked");
    MG_CHECK(t.fault.kind == MG_FAULT_MISALIGNED && t.fault.ptx_line == line_of("crooked", "// A") &&
             strstr(t.fault.text, "address 0x402"));
    tear_down(&t);
}
