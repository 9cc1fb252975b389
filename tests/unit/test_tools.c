/* The tools of the list against closed forms, on the emulator: as for emu and cpu, and as for a GPU (copies
 * of cells, warp reductions). */
#include <stdbool.h>
#include <stdlib.h>

#include "test.h"
#include "tool_run.h"

static const struct tool_shape full = {.grid = 3, .block = 96, .n = 7},
                               as_gpu = {.grid = 3, .block = 96, .n = 7, .sm = 90};

static void expect(const char *tool, const char *args, const char *ptx, const struct tool_shape *s, bool rows,
                   const char *const *want, unsigned n)
{
    char *got = rows ? tool_run_rows(tool, args, ptx, s) : tool_run_json(tool, args, ptx, s);
    for (unsigned i = 0; got && i < n; i++)
        if (!strstr(got, want[i]))
            mg_test_fail(__FILE__, __LINE__, "tool %s%s%s: no %s in\n%s", tool, *args ? "," : "", args, want[i], got);
    free(got);
}
#define EXPECT(tool, args, ptx, s, ...)                                                                                \
    expect(tool, args, ptx, s, false, (const char *const[]){__VA_ARGS__},                                              \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
#define EXPECT_ROWS(tool, args, ptx, s, ...)                                                                           \
    expect(tool, args, ptx, s, true, (const char *const[]){__VA_ARGS__},                                               \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* Threads below 40 store; lanes loop (lane & 3) + 1 times. One line a block. */
static const char loop[] = TOOL_HEAD TOOL_ENTRY
    "and.b32 %r4, %r1, 3; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; setp.lt.u32 %p1, %r1, 40;\n"
    "LOOP: sub.s32 %r4, %r4, 1; setp.ge.s32 %p2, %r4, 0; @%p2 bra LOOP;\n"
    "@%p1 st.global.u32 [%rd3], %r1; @%p1 st.global.u32 [%rd3], %r9; ret;\n}\n";

MG_TEST(tools_opcodes_counts)
{
    /* 288 threads; the loop's three instructions 288 * 2.5 = 720 times; two guarded stores for 40 lanes. */
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    for (int i = 0; i < 2; i++) {
        EXPECT("opcodes", "lanes=on", loop, shapes[i],
               "{\"name\":\"st.global.u32\",\"static\":2,\"thread\":576,\"lanes\":80}",
               "{\"name\":\"sub.s32\",\"static\":1,\"thread\":720,\"lanes\":720}",
               "{\"name\":\"bra\",\"static\":1,\"thread\":720,\"lanes\":432}",
               "{\"name\":\"send\",\"static\":4,\"thread\":1152,\"lanes\":656}",
               "{\"name\":\"s32\",\"static\":2,\"thread\":1440,\"lanes\":1440}",
               "{\"id\":1,\"opcodes\":[{\"name\":\"sub.s32\",\"static\":1,\"thread\":720,\"lanes\":720}");
        EXPECT("opcodes", "", loop, shapes[i],
               "{\"name\":\"st.global.u32\",\"static\":2,\"thread\":576,\"lanes\":null}",
               "{\"name\":\"compare\",\"static\":2,\"thread\":1008,\"lanes\":1008}");
    }
}

MG_TEST(tools_lanes_distribution)
{
    /* Every warp: loop entered by 32, 24, 16, 8 lanes. 9 warps. The back branch splits the first three times. */
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    for (int i = 0; i < 2; i++)
        EXPECT("lanes", "", loop, shapes[i],
               "\"lanes\":[0,0,0,0,0,0,0,0,9,0,0,0,0,0,0,0,9,0,0,0,0,0,0,0,9,0,0,0,0,0,0,0,9]",
               "\"taken\":432,\"not_taken\":288,\"divergent\":27,\"idle_slots\":1296");
}

/* What the profile says of a block whose entries had so many active lanes so often. */
static const char *lanes_of(char to[200], unsigned id, unsigned a, unsigned n_a, unsigned b, unsigned n_b)
{
    int n = sprintf(to, "{\"id\":%u,\"lanes\":[", id);
    for (unsigned l = 0; l <= 32; l++) n += sprintf(to + n, "%s%u", l ? "," : "", l == a ? n_a : l == b ? n_b : 0);
    sprintf(to + n, "]}");
    return to;
}

/* Barriers bring lanes together, in a loop that all make. Warps of 32, 32 and 8; 20 lanes of the first go aside. */
MG_TEST(tools_lanes_barriers)
{
    static const char text[] = TOOL_HEAD TOOL_ENTRY
        "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; mov.u32 %r5, 0; mov.u32 %r10, %tid.x; setp.lt.u32 %p1, %r10, 20;\n"
        "L: @!%p1 bra J; st.global.u32 [%rd3], %r5;\n"
        "J: bar.sync 0; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r9; @%p2 bra L;\n"
        "@%p1 bra OUT; st.global.u32 [%rd3], %r5;\nOUT: ret;\n}\n";
    const struct tool_shape shapes[] = {{.grid = 3, .block = 72, .n = 7}, {.grid = 3, .block = 72, .n = 7, .sm = 90}};
    char l[200], side[200], j[200], other[200], out[200];
    sprintf(
        other,
        "{\"id\":5,\"lanes\":[0,0,0,0,0,0,0,0,3,0,0,0,3,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,3]}"); /* 8, 12 and 32 */
    for (int i = 0; i < 2; i++)
        EXPECT("lanes", "", text, &shapes[i], lanes_of(l, 1, 32, 42, 8, 21), lanes_of(side, 2, 20, 21, 0, 0),
               lanes_of(j, 3, 32, 42, 8, 21), "\"taken\":1092,\"not_taken\":420,\"divergent\":21",
               "\"taken\":1296,\"not_taken\":216,\"divergent\":0", "\"taken\":60,\"not_taken\":156,\"divergent\":3",
               other, lanes_of(out, 6, 32, 6, 8, 3));
}

/* Both sides of a branch, for bit i of the thread in round i: split five times, then as one. */
MG_TEST(tools_lanes_sides)
{
    static const char text[] = TOOL_HEAD TOOL_ENTRY
        "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; mov.u32 %r5, 0; mov.u32 %r7, 0; mov.u32 %r10, %tid.x;\n"
        "L: shr.u32 %r4, %r10, %r5; and.b32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra A;\n"
        "add.u32 %r7, %r7, 3; bra J;\n"
        "A: add.u32 %r7, %r7, 5;\n"
        "J: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r9; @%p2 bra L;\n"
        "st.global.u32 [%rd3], %r7; ret;\n}\n";
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    char l[200], a[200], b[200], j[200];
    for (int i = 0; i < 2; i++)
        EXPECT("lanes", "", text, shapes[i], lanes_of(l, 1, 32, 63, 0, 0), lanes_of(b, 2, 16, 45, 32, 12),
               lanes_of(a, 3, 16, 45, 32, 6), lanes_of(j, 4, 32, 63, 0, 0),
               "\"taken\":912,\"not_taken\":1104,\"divergent\":45", "\"taken\":1728,\"not_taken\":288,\"divergent\":0");
}

/* Of 9 warps the first has all 32 under the guard of two stores, the second 8, seven none. */
MG_TEST(tools_lanes_guards)
{
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    for (int i = 0; i < 2; i++) {
        EXPECT(
            "lanes", "guards=on", loop, shapes[i],
            "\"op\":\"st.global.u32\",\"lanes\":[7,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1]}]}");
        EXPECT_ROWS("lanes", "guards=on", loop, shapes[i], "guards|:10|288|", "|9|7|st.global.u32|");
        EXPECT("lanes", "", loop, shapes[i], "\"guards\":[]}");
    }
}

/* A way out of a loop gathers those who take it in different rounds: of 32 threads 8 each in rounds 0, 1 and 2; the
 * last 8 leave another way. The branch splits three times, and 24 go out together. */
MG_TEST(tools_lanes_ways_out)
{
    static const char text[] = TOOL_HEAD TOOL_ENTRY
        "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; mov.u32 %r5, 0; and.b32 %r4, %r1, 3;\n"
        "L: setp.ne.u32 %p1, %r4, %r5; @%p1 bra ON;\n"
        "bra OUT;\n"
        "ON: add.u32 %r5, %r5, 1; setp.ne.u32 %p2, %r5, 3; @%p2 bra L;\n"
        "add.u32 %r5, %r5, 5;\n"
        "OUT: st.global.u32 [%rd3], %r5; ret;\n}\n";
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    char way[200], other[200];
    for (int i = 0; i < 2; i++)
        EXPECT("lanes", "", text, shapes[i], lanes_of(way, 2, 24, 9, 0, 0), lanes_of(other, 4, 8, 9, 0, 0),
               "\"taken\":432,\"not_taken\":216,\"divergent\":27");
}

/* Lanes of the first warp that come to a block in two groups, though all came to the one that it follows: 12 of 24 turn
 * so often before that the others do not wait for them (docs/schedule.md, turns). */
MG_TEST(tools_lanes_apart)
{
    static const char text[] = TOOL_HEAD TOOL_ENTRY
        "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; mov.u32 %r5, 0; setp.lt.u32 %p1, %r1, 12; @!%p1 bra F;\n"
        "L: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r9; @%p2 bra L;\n"
        "F: st.global.u32 [%rd3], %r5; ret;\n}\n";
    const struct tool_shape shapes[] = {{.grid = 2, .block = 24, .n = 70000},
                                        {.grid = 2, .block = 24, .n = 70000, .sm = 90}};
    char first[200], l[200], f[200];
    for (int i = 0; i < 2; i++)
        EXPECT("lanes", "", text, &shapes[i], lanes_of(first, 0, 24, 2, 0, 0), lanes_of(l, 1, 12, 70000, 0, 0),
               lanes_of(f, 2, 12, 2, 24, 1), "\"divergent\":1", "\"divergent\":0");
}

/* In a function called so often that, as for a GPU, words near the threads are taken to memory on the way (2^31 of
 * work, 24 lanes of 2^12 a call). */
MG_TEST(tools_lanes_callee)
{
    static const char text[] = TOOL_HEAD
        ".func f (.param .b32 a)\n{\n.reg .b32 %q<3>; .reg .pred %z<2>; ld.param.u32 %q1, [a]; setp.lt.u32 %z1, %q1, 12; @!%z1 bra E; mov.u32 %q2, 5;\nE: ret;\n}\n" TOOL_ENTRY
        "mov.u32 %r5, 0;\n"
        "L: { .param .b32 p; st.param.b32 [p], %r1; call.uni f, (p); }\n"
        "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r9; @%p1 bra L;\n"
        "st.global.u32 [%rd1], %r5; ret;\n}\n";
    const struct tool_shape shapes[] = {{.grid = 1, .block = 24, .n = 25000},
                                        {.grid = 1, .block = 24, .n = 25000, .sm = 90}};
    char l[200], f[200], side[200], e[200];
    for (int i = 0; i < 2; i++)
        EXPECT("lanes", "", text, &shapes[i], lanes_of(l, 1, 24, 25000, 0, 0), lanes_of(f, 4, 24, 25000, 0, 0),
               lanes_of(side, 5, 12, 25000, 0, 0), lanes_of(e, 6, 24, 25000, 0, 0),
               "\"taken\":300000,\"not_taken\":300000,\"divergent\":25000");
}

/* A program may read an array of words by fours because it happens to lie well: it does so with words of ours in front.
 */
MG_TEST(tools_lanes_shared_stays_aligned)
{
    static const char text[] = TOOL_HEAD TOOL_ENTRY
        ".shared .align 4 .b8 s[2048];\n"
        "and.b32 %r4, %r1, 3; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; mov.u32 %r6, s; mov.u32 %r10, %tid.x; mad.lo.u32 %r6, %r10, 16, %r6;\n"
        "L: sub.s32 %r4, %r4, 1; setp.ge.s32 %p2, %r4, 0; @%p2 bra L;\n"
        "st.shared.v4.u32 [%r6], {%r1, %r1, %r1, %r9}; ld.shared.u32 %r7, [%r6+12]; and.b32 %r11, %r6, 1023; add.u32 %r7, %r7, %r11; st.global.u32 [%rd3], %r7; ret;\n}\n";
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    for (int i = 0; i < 2; i++)
        EXPECT("lanes", "", text, shapes[i], "\"taken\":432,\"not_taken\":288,\"divergent\":27");
}

/* Loops of one block that lane l leaves after l % 5 + 1 rounds, so that 32, 25, 18, 12 and 6 lanes of a whole warp are
 * in it, and 20, 16, 12, 8 and 4 of one of 20: by itself, in another loop (5 rounds, 45 and 15 times), in a function
 * behind lanes that do not go in (those from 20 on). */
MG_TEST(tools_lanes_rounds)
{
    static const char loop_text[] =
        "L: sub.s32 %r4, %r4, 1; add.u32 %r6, %r6, %r4; setp.ge.s32 %p2, %r4, 0; @%p2 bra L;\n",
                      rest[] =
                          "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r6; ret;\n}\n",
                      start[] = "mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u32 %r8, %laneid; rem.u32 %r8, %r8, 5;\n";
    static const char func[] =
        ".func (.param .b32 to) f (.param .b32 a, .param .b32 b)\n{\n.reg .b32 %q<5>; .reg .pred %z<3>;\n"
        "ld.param.u32 %q1, [a]; ld.param.u32 %q3, [b]; mov.u32 %q2, 0; setp.ge.u32 %z1, %q3, 20; @%z1 bra E;\n"
        "L: sub.s32 %q1, %q1, 1; add.u32 %q2, %q2, %q1; setp.ge.s32 %z2, %q1, 0; @%z2 bra L;\n"
        "E: st.param.b32 [to], %q2; ret;\n}\n";
    const struct tool_shape shapes[] = {{.grid = 3, .block = 52, .n = 5}, {.grid = 3, .block = 52, .n = 5, .sm = 90}};
    char alone[1000], within[1000], called[2000];
    snprintf(alone, sizeof alone, "%s%s%smov.u32 %%r4, %%r8;\n%s%s", TOOL_HEAD, TOOL_ENTRY, start, loop_text, rest);
    snprintf(within, sizeof within,
             "%s%s%sO: mov.u32 %%r4, %%r8;\n%sadd.u32 %%r7, %%r7, 1; setp.lt.u32 %%p3, %%r7, 5; @%%p3 bra O;\n%s",
             TOOL_HEAD, TOOL_ENTRY, start, loop_text, rest);
    snprintf(called, sizeof called,
             "%s%s%s%smov.u32 %%r4, %%laneid;\n"
             "{ .param .b32 p; .param .b32 q; .param .b32 r; st.param.b32 [p], %%r8; st.param.b32 [q], %%r4;\n"
             "call.uni (r), f, (p, q); ld.param.b32 %%r6, [r]; }\n%s",
             TOOL_HEAD, func, TOOL_ENTRY, start, rest);
    for (int i = 0; i < 2; i++) {
        EXPECT("lanes", "", alone, &shapes[i],
               "{\"id\":1,\"lanes\":[0,0,0,0,3,0,3,0,3,0,0,0,6,0,0,0,3,0,3,0,3,0,0,0,0,3,0,0,0,0,0,0,3]}",
               "\"taken\":303,\"not_taken\":156,\"divergent\":24");
        EXPECT("lanes", "", within, &shapes[i],
               "{\"id\":2,\"lanes\":[0,0,0,0,15,0,15,0,15,0,0,0,30,0,0,0,15,0,15,0,15,0,0,0,0,15,0,0,0,0,0,0,15]}",
               "\"taken\":1515,\"not_taken\":780,\"divergent\":120");
        EXPECT("lanes", "", called, &shapes[i],
               "\"lanes\":[0,0,0,0,6,0,0,0,6,0,0,0,6,0,0,0,6,0,0,0,6,0,0,0,0,0,0,0,0,0,0,0,0]}",
               "\"taken\":240,\"not_taken\":120,\"divergent\":24");
    }
}

/* The head of a loop that lanes of partial warps leave by a way in its middle, lane l of 20 after l / 4 rounds, which
 * branches at its end hold up nowhere. Both sides of a branch in it: the odd rounds' one way, the others' another. */
MG_TEST(tools_lanes_heads)
{
    static const char text[] = TOOL_HEAD TOOL_ENTRY
        "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u32 %r4, %laneid; shr.u32 %r4, %r4, 2;\n"
        "L: and.b32 %r7, %r5, 1; setp.ne.u32 %p1, %r7, 0; @%p1 bra ODD;\n"
        "add.u32 %r6, %r6, 3; bra.uni J;\n"
        "ODD: add.u32 %r6, %r6, 5;\n"
        "J: setp.ge.u32 %p2, %r5, %r4; @%p2 bra OUT;\n"
        "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 100; @%p3 bra L;\n"
        "add.u32 %r6, %r6, 7;\n"
        "OUT: st.global.u32 [%rd3], %r6; ret;\n}\n";
    const struct tool_shape shapes[] = {{.grid = 3, .block = 20, .n = 7}, {.grid = 3, .block = 20, .n = 7, .sm = 90}};
    for (int i = 0; i < 2; i++)
        EXPECT("lanes", "", text, &shapes[i],
               "{\"id\":1,\"lanes\":[0,0,0,0,3,0,0,0,3,0,0,0,3,0,0,0,3,0,0,0,3,0,0,0,0,0,0,0,0,0,0,0,0]}",
               "{\"id\":2,\"lanes\":[0,0,0,0,3,0,0,0,0,0,0,0,3,0,0,0,0,0,0,0,3,0,0,0,0,0,0,0,0,0,0,0,0]}",
               "{\"id\":3,\"lanes\":[0,0,0,0,0,0,0,0,3,0,0,0,0,0,0,0,3,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}",
               "\"taken\":72,\"not_taken\":108,\"divergent\":0", "\"taken\":60,\"not_taken\":120,\"divergent\":12",
               "\"taken\":120,\"not_taken\":0,\"divergent\":0");
}

/* Loads: neighbours aligned; all one address; 16 bytes apart; neighbours 4 bytes off; a permutation of 128-byte lines.
 */
static const char loads[] = TOOL_HEAD TOOL_ENTRY
    "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; mul.wide.u32 %rd4, %r1, 16; add.u64 %rd5, %rd1, %rd4; mov.u32 %r5, %laneid;\n"
    "mul.lo.u32 %r6, %r5, 5; and.b32 %r6, %r6, 31; mul.wide.u32 %rd6, %r6, 128; add.u64 %rd7, %rd1, %rd6; setp.lt.u32 %p1, %r5, 8;\n"
    "ld.global.u32 %r7, [%rd3];\n"      /* line 10 */
    "ld.global.u32 %r7, [%rd1];\n"      /* 11 */
    "ld.global.u32 %r7, [%rd5];\n"      /* 12: 16 sectors, 4 lines */
    "ld.global.u32 %r7, [%rd3+4];\n"    /* 13: 5 sectors, 2 lines */
    "ld.global.u32 %r7, [%rd7];\n"      /* 14: 32 sectors, 32 lines; lane * 5 mod 32: no one stride */
    "@%p1 ld.global.u32 %r7, [%rd5];\n" /* 15: 8 lanes 16 bytes apart: 4 sectors, 1 line */
    "ld.global.v2.u32 {%r7, %r8}, [%rd1];\n"
    "ret;\n}\n";

MG_TEST(tools_memory_sectors)
{
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    for (int i = 0; i < 2; i++)
        EXPECT(
            "memory", "", loads, shapes[i],
            "\"ptx_line\":10,\"file\":null,\"line\":null,\"function\":\"k\",\"op\":\"ld.global.u32\",\"space\":\"global\",\"width\":4,\"accesses\":288,\"bytes_read\":1152,\"bytes_written\":0,\"requests\":9,\"sectors\":36,\"lines\":9,\"bank_conflicts\":null,\"patterns\":{\"same\":0,\"aligned\":9,",
            "\"requests\":9,\"sectors\":9,\"lines\":9,\"bank_conflicts\":null,\"patterns\":{\"same\":9,\"aligned\":0,",
            "\"requests\":9,\"sectors\":144,\"lines\":36,\"bank_conflicts\":null,\"patterns\":{\"same\":0,\"aligned\":0,\"unit\":0,\"stride_32\":9,",
            "\"requests\":9,\"sectors\":45,\"lines\":18,\"bank_conflicts\":null,\"patterns\":{\"same\":0,\"aligned\":0,\"unit\":9,",
            "\"requests\":9,\"sectors\":288,\"lines\":288,\"bank_conflicts\":null,\"patterns\":{\"same\":0,\"aligned\":0,\"unit\":0,\"stride_32\":0,\"stride_128\":0,\"stride_more\":0,\"irregular\":9}",
            "\"accesses\":72,\"bytes_read\":288,\"bytes_written\":0,\"requests\":9,\"sectors\":36,\"lines\":9,\"bank_conflicts\":null,\"patterns\":{\"same\":0,\"aligned\":0,\"unit\":0,\"stride_32\":0,\"stride_128\":0,\"stride_more\":0,\"irregular\":9}",
            "\"width\":8,\"accesses\":288,\"bytes_read\":2304",
            /* 9 x (4 + 1 + 16 + 5 + 32 + 4 + 1); beyond what bytes fill: 9 x (12 + 1 + 28 + 3) */
            "\"sectors_moved\":567,\"sectors_wasted\":396,\"passes_made\":null,\"passes_wasted\":null}");
    EXPECT("memory", "level=bytes", loads, &full,
           "\"accesses\":72,\"bytes_read\":288,\"bytes_written\":0,\"requests\":null,\"sectors\":null",
           "\"bytes_read\":8352,\"bytes_written\":0,\"sectors_moved\":null,\"sectors_wasted\":null,");
    EXPECT_ROWS("memory", "", loads, &full, "memory|:14|ld.global.u32|8064|32|12.5|-|9|irregular|k|-\nmemory|:12|");
}

/* Shared memory: neighbours; stride of 2, 32 words; all one word; 8 bytes a lane in order and 16 bytes apart; 16 bytes
 * a lane. */
static const char banks[] = TOOL_HEAD
    ".shared .align 16 .b8 s[8192];\n" TOOL_ENTRY
    "mov.u32 %r5, %laneid; mov.u32 %r4, s; shl.b32 %r6, %r5, 2; add.u32 %r10, %r4, %r6; add.u32 %r11, %r10, %r6; shl.b32 %r7, %r5, 7; add.u32 %r12, %r4, %r7; shl.b32 %r8, %r5, 4; add.u32 %r13, %r4, %r8;\n"
    "st.shared.u32 [%r10], %r1;\n"                         /* 10: 0 */
    "st.shared.u32 [%r11], %r1;\n"                         /* 11: 1 */
    "st.shared.u32 [%r12], %r1;\n"                         /* 12: 31 */
    "ld.shared.u32 %r14, [s];\n"                           /* 13: 0 */
    "st.shared.u64 [%r11], %rd1;\n"                        /* 14: halves in order: 0 */
    "st.shared.u64 [%r13], %rd1;\n"                        /* 15: two 8-byte words a bank pair in each half: 2 */
    "ld.shared.v4.u32 {%r14, %r15, %r16, %r17}, [%r13];\n" /* 16: 0 */
    "ld.shared.v4.u32 {%r14, %r15, %r16, %r17}, [%r12];\n" /* 17: 128 apart: 8 lanes of a quarter in one group of banks:
                                                              4 * 7 */
    "ret;\n}\n";

MG_TEST(tools_memory_banks)
{
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    for (int i = 0; i < 2; i++)
        EXPECT_ROWS(
            "memory", "", banks, shapes[i],
            "memory|:12|st.shared.u32|35712|-|-|31|9|stride_128|k|-\nmemory|:17|ld.shared.v4.u32|32256|-|-|28|9|stride_128|k|-\nmemory|:15|st.shared.u64|2304|-|-|2|9|stride_32|k|-\nmemory|:11|st.shared.u32|1152|-|-|1|9|stride_32|k|-\n",
            "memory|:10|st.shared.u32|0|-|-|0|9|unit|k|-", "memory|:13|ld.shared.u32|0|-|-|0|9|same|k|-",
            "memory|:14|st.shared.u64|0|-|-|0|9|unit|k|-", "memory|:16|ld.shared.v4.u32|0|-|-|0|9|unit|k|-");
    /* 9 x (4 of 4 bytes, 2 x 2 of 8, 2 x 4 of 16), and conflicts: 9 x (1 + 31 + 2 + 28) */
    EXPECT("memory", "", banks, &full,
           "\"sectors_moved\":null,\"sectors_wasted\":null,\"passes_made\":702,\"passes_wasted\":558}");
}

/* Instructions that count from one value, three rounds of a loop: neighbours at 0, 4 and 128 bytes; one address; 16
 * bytes apart from 0 and 8 on; lanes in the order 0 2 4 .. 30 1 3 .. 31; of shared memory neighbours, strides and pairs
 * of lanes, whole warps and the lower half of them. */
static const char groups[] = TOOL_HEAD
    ".shared .align 16 .b8 s[8192];\n" TOOL_ENTRY
    "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; mul.wide.u32 %rd4, %r1, 16; add.u64 %rd5, %rd1, %rd4; mov.u32 %r5, %laneid; setp.lt.u32 %p1, %r5, 16; mov.u32 %r6, 0;\n"
    "shl.b32 %r7, %r5, 1; shr.u32 %r8, %r7, 5; and.b32 %r7, %r7, 31; or.b32 %r7, %r7, %r8; mul.wide.u32 %rd6, %r7, 4; add.u64 %rd7, %rd1, %rd6;\n"
    "mov.u32 %r10, s; mad.lo.u32 %r11, %r5, 4, %r10; mad.lo.u32 %r12, %r5, 8, %r10; shr.u32 %r13, %r5, 1; mad.lo.u32 %r13, %r13, 128, %r10; mad.lo.u32 %r14, %r5, 64, %r10;\n"
    "LOOP: add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 3;\n"
    "ld.global.u32 %r15, [%rd3];\n"                              /* 13: aligned */
    "ld.global.u32 %r15, [%rd3+4];\n"                            /* 14: 5 sectors */
    "st.global.u32 [%rd3+128], %r6;\n"                           /* 15: as 13 */
    "ld.global.u32 %r15, [%rd1];\n"                              /* 16: one address */
    "ld.global.u32 %r15, [%rd1+4];\n"                            /* 17 */
    "ld.global.u32 %r15, [%rd5];\n"                              /* 18: 16 sectors */
    "ld.global.u32 %r15, [%rd5+20];\n"                           /* 19: 17 sectors, 5 lines */
    "ld.global.u32 %r15, [%rd7];\n"                              /* 20: 4 sectors, 1 line */
    "ld.global.u32 %r15, [%rd7+4];\n"                            /* 21: 5 sectors, 2 lines */
    "st.shared.u32 [%r11], %r6; st.shared.u32 [%r11+4], %r6;\n"  /* 22 */
    "st.shared.u32 [%r12], %r6; ld.shared.u32 %r15, [%r12+4];\n" /* 23: 1 conflict */
    "@%p1 st.shared.u32 [%r12], %r6;\n"                          /* 24: none in half a warp */
    "@%p1 st.shared.u32 [%r11], %r6;\n"                          /* 25 */
    "ld.shared.u32 %r15, [%r13];\n"                              /* 26: 16 pairs of lanes, all in one bank: 15 */
    "@!%p1 ld.shared.u64 %rd8, [%r14];\n" /* 27: the upper half, 64 apart: 4 lanes in each of 4 banks pairs...: 7 */
    "@%p2 bra LOOP; ret;\n}\n";

MG_TEST(tools_memory_groups)
{
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    for (int i = 0; i < 2; i++)
        EXPECT(
            "memory", "", groups, shapes[i],
            "\"ptx_line\":13,\"file\":null,\"line\":null,\"function\":\"k\",\"op\":\"ld.global.u32\",\"space\":\"global\",\"width\":4,\"accesses\":864,\"bytes_read\":3456,\"bytes_written\":0,\"requests\":27,\"sectors\":108,\"lines\":27,\"bank_conflicts\":null,\"patterns\":{\"same\":0,\"aligned\":27,",
            "\"ptx_line\":14,\"file\":null,\"line\":null,\"function\":\"k\",\"op\":\"ld.global.u32\",\"space\":\"global\",\"width\":4,\"accesses\":864,\"bytes_read\":3456,\"bytes_written\":0,\"requests\":27,\"sectors\":135,\"lines\":54,\"bank_conflicts\":null,\"patterns\":{\"same\":0,\"aligned\":0,\"unit\":27,",
            "\"bytes_written\":3456,\"requests\":27,\"sectors\":108,\"lines\":27,\"bank_conflicts\":null,\"patterns\":{\"same\":0,\"aligned\":27,",
            "\"sectors\":27,\"lines\":27,\"bank_conflicts\":null,\"patterns\":{\"same\":27,",
            "\"ptx_line\":17,\"file\":null,\"line\":null,\"function\":\"k\",\"op\":\"ld.global.u32\",\"space\":\"global\",\"width\":4,\"accesses\":864,\"bytes_read\":3456,\"bytes_written\":0,\"requests\":27,\"sectors\":27,",
            "\"sectors\":432,\"lines\":108,", "\"sectors\":459,\"lines\":135,",
            "\"sectors\":108,\"lines\":27,\"bank_conflicts\":null,\"patterns\":{\"same\":0,\"aligned\":0,\"unit\":0,\"stride_32\":0,\"stride_128\":0,\"stride_more\":0,\"irregular\":27}",
            "\"sectors\":135,\"lines\":54,\"bank_conflicts\":null,\"patterns\":{\"same\":0,\"aligned\":0,\"unit\":0,",
            "\"bank_conflicts\":0,\"patterns\":{\"same\":0,\"aligned\":0,\"unit\":27,",
            "\"bank_conflicts\":27,\"patterns\":{\"same\":0,\"aligned\":0,\"unit\":0,\"stride_32\":27,",
            "\"accesses\":432,\"bytes_read\":0,\"bytes_written\":1728,\"requests\":27,\"sectors\":null,\"lines\":null,\"bank_conflicts\":0,\"patterns\":{\"same\":0,\"aligned\":0,\"unit\":0,\"stride_32\":0,\"stride_128\":0,\"stride_more\":0,\"irregular\":27}",
            "\"bytes_written\":1728,\"requests\":27,\"sectors\":null,\"lines\":null,\"bank_conflicts\":0,\"patterns\":{\"same\":0,\"aligned\":0,\"unit\":27,",
            "\"bank_conflicts\":405,\"patterns\":",
            "\"width\":8,\"accesses\":432,\"bytes_read\":3456,\"bytes_written\":0,\"requests\":27,\"sectors\":null,\"lines\":null,\"bank_conflicts\":189,");
}

/* Stores: thread number (affine); n (uniform, constant, redundant the second time); zero for odd lanes; NaN. */
static const char stores[] = TOOL_HEAD TOOL_ENTRY
    "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; and.b32 %r4, %r1, 1; sub.s32 %r5, 5, %r1; mov.f32 %f1, 0f7fc00000; mov.f32 %f2, 0fc0000000; mov.u32 %r6, 0;\n"
    "st.global.u32 [%rd3], %r1;\n"    /* 10 */
    "L: st.global.u32 [%rd3], %r9;\n" /* 11: twice */
    "add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 2; @%p1 bra L;\n"
    "st.global.u32 [%rd3], %r4;\n" /* 13 */
    "st.global.s32 [%rd3], %r5;\n" /* 14: 5 .. -282 */
    "st.global.f32 [%rd3], %f1;\n"
    "st.global.f32 [%rd3], %f2;\n"
    "ret;\n}\n";

MG_TEST(tools_values_kinds)
{
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    for (int i = 0; i < 2; i++)
        EXPECT(
            "values", "", stores, shapes[i],
            "\"ptx_line\":9,\"file\":null,\"line\":null,\"function\":\"k\",\"op\":\"st.global.u32\",\"values\":288,\"zeros\":1,\"nans\":null,\"redundant\":0,\"warps\":9,\"uniform\":0,\"affine\":9,\"least\":\"0\",\"most\":\"287\",\"bits\":32,\"bits_needed\":9,\"constant\":false",
            "\"values\":576,\"zeros\":0,\"nans\":null,\"redundant\":288,\"warps\":18,\"uniform\":18,\"affine\":0,\"least\":\"7\",\"most\":\"7\",\"bits\":32,\"bits_needed\":3,\"constant\":true",
            "\"values\":288,\"zeros\":144,\"nans\":null,\"redundant\":0,\"warps\":9,\"uniform\":0,\"affine\":0,\"least\":\"0\",\"most\":\"1\",\"bits\":32,\"bits_needed\":1,",
            "\"op\":\"st.global.s32\",\"values\":288,\"zeros\":1,\"nans\":null,\"redundant\":0,\"warps\":9,\"uniform\":0,\"affine\":9,\"least\":\"-282\",\"most\":\"5\",\"bits\":32,\"bits_needed\":10,",
            "\"nans\":288,", "\"least\":\"-2\",\"most\":\"-2\",\"bits\":32,\"bits_needed\":32,\"constant\":true");
}

static const char longer[] = TOOL_HEAD TOOL_ENTRY
    "and.b32 %r4, %r1, 3; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; mov.u32 %r5, 0;\n"
    "LOOP: sub.s32 %r4, %r4, 1; add.u32 %r5, %r5, 3; xor.b32 %r5, %r5, 1; setp.ge.s32 %p2, %r4, 0; @%p2 bra LOOP;\n"
    "st.global.u32 [%rd3], %r5; ret;\n}\n";

MG_TEST(tools_hot_region)
{
    EXPECT("hot", "", longer, &full,
           "\"hottest\":{\"blocks\":[1],\"loop\":true,\"file\":null,\"line\":null,\"thread_instructions\":3600,",
           "{\"id\":1,\"depth\":1,\"loop\":1,\"thread_entries\":720,\"thread_instructions\":3600}");
    EXPECT_ROWS("hot", "", longer, &as_gpu, "hot|k|| LOOP <hottest>|:9|5|720|51.02|####################|2 1^");
}

MG_TEST(tools_clock_counts)
{
    EXPECT("clock", "", loop, &as_gpu, "\"launches\":1,\"ctas\":3,", "\"ctas\":3,\"estimate\":false}",
           "{\"sm\":2,\"ctas\":1,", "{\"sm\":3,\"ctas\":0,\"busy\":0");
    const struct tool_shape many = {.grid = 300, .block = 33, .n = 1, .sm = 90};
    EXPECT("clock", "", loop, &full,
           "\"imbalance\":null,\"cta_imbalance\":null,\"tail\":null,\"waves\":null,\"sms\":null}"); /* no GPU */
    EXPECT("clock", "ctas=64", loop, &many, "\"ctas\":300,", "\"ctas\":38,\"estimate\":true}", "{\"sm\":0,\"ctas\":3,",
           "{\"sm\":131,\"ctas\":2,");
}

/* CTA c goes round c + 1 times: 7 + 3 (c + 1) + 1 instructions a thread. */
static const char rounds[] = TOOL_HEAD TOOL_ENTRY "mov.u32 %r4, %ctaid.x;\n"
                                                  "LOOP: sub.s32 %r4, %r4, 1; setp.ge.s32 %p2, %r4, 0; @%p2 bra LOOP;\n"
                                                  "ret;\n}\n";

MG_TEST(tools_ctas_counts)
{
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    for (int i = 0; i < 2; i++)
        EXPECT(
            "ctas", "", rounds, shapes[i],
            "\"loop\":true,\"launches\":1,\"ctas\":3,\"grid_ctas\":3,\"estimate\":false,\"least\":1056,\"most\":1632,\"mean\":1344.0,",
            "\"imbalance\":1.2142857142857142,\"shortest_share\":0.7857142857142857,\"longest_share\":1.2142857142857142,\"even_share\":0.823529411764705",
            "\"block\":1,");
    /* 300 CTAs, every 8th sampled: the longest goes round 297 times, the mean 149 */
    const struct tool_shape many = {.grid = 300, .block = 32, .n = 1};
    EXPECT("ctas", "ctas=64", rounds, &many,
           "\"ctas\":38,\"grid_ctas\":300,\"estimate\":true,\"least\":352,\"most\":28768,\"mean\":14560.0,",
           "\"histogram\":{\"least\":352,\"most\":28768,\"ctas\":[3,2,2,3,2,2,3,2,2,3,2,2,3,2,2,3]}");
    /* equal CTAs: even, and the place is the kernel */
    EXPECT("ctas", "", loop, &full, "\"block\":0,", "\"loop\":false,",
           "\"imbalance\":1.0,\"shortest_share\":1.0,\"longest_share\":1.0,\"even_share\":1.0");
}

/* Callees that stay calls add to the same CTA; f is called by even threads, twice by those. */
MG_TEST(tools_ctas_callees)
{
    static const char text[] = TOOL_HEAD
        ".func g (.param .b32 a)\n{\n" TOOL_REGS "ld.param.u32 %r1, [a]; setp.eq.u32 %p1, %r1, 0; @%p1 bra END;\n"
        "sub.u32 %r1, %r1, 1; { .param .b32 b; st.param.b32 [b], %r1; call g, (b); }\nEND: ret;\n}\n" TOOL_ENTRY
        "{ .param .b32 b; mov.u32 %r4, %ctaid.x; st.param.b32 [b], %r4; call g, (b); }\nret;\n}\n";
    /* kernel: 6 + 3 + 1; g of n: n (3 + 3) + 3, and a ret each: 4 n + ... = 7 n + 4 */
    EXPECT("ctas", "", text, &full, "\"least\":1344,\"most\":2688,\"mean\":2016.0,");
}

/* f is called by even threads, twice by those; the kernel's own cycles hold those of f. */
static const char calls[] =
    TOOL_HEAD ".func (.param .b32 r) f (.param .b32 a)\n{\n" TOOL_REGS
              "ld.param.u32 %r1, [a]; add.u32 %r1, %r1, 1; st.param.b32 [r], %r1; ret;\n}\n" TOOL_ENTRY
              "and.b32 %r4, %r1, 1; setp.ne.u32 %p1, %r4, 0; mov.u32 %r5, 0;\n"
              "@%p1 bra END;\n"
              "L: { .param .b32 a; .param .b32 r; st.param.b32 [a], %r5; call (r), f, (a); ld.param.b32 %r5, [r]; }\n"
              "setp.lt.u32 %p2, %r5, 2; @%p2 bra L;\n"
              "END: ret;\n}\n";

MG_TEST(tools_functions_calls)
{
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    for (int i = 0; i < 2; i++) {
        EXPECT("functions", "", calls, shapes[i], "\"function\":\"k\",\"op\":null,\"calls\":288,",
               "\"function\":\"f\",\"op\":null,\"calls\":288,", "\"op\":\"call\",\"calls\":288,");
    }
}

MG_TEST(tools_latency_warps)
{
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    for (int i = 0; i < 2; i++)
        EXPECT("latency", "", loads, shapes[i],
               "\"ptx_line\":10,\"file\":null,\"line\":null,\"function\":\"k\",\"op\":\"ld.global.u32\",\"warps\":9,",
               "\"serialised\":true");
}

/* Thread 37 writes behind the end, thread 70 reads before the beginning twice, all read inside; thread 5 of
 * each CTA writes behind shared memory, others inside. What is left out leaves 0 behind. */
static const char faults[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 4 .b8 s[512];\n" TOOL_ENTRY
    "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; mov.u32 %r5, 7; mov.u32 %r10, %tid.x; setp.eq.u32 %p1, %r1, 37; setp.eq.u32 %p2, %r1, 70; mov.u32 %r6, 0;\n"
    "ld.global.u32 %r7, [%rd3];\n"
    "@%p1 st.global.u32 [%rd3+262144], %r5;\n"
    "L: mov.u32 %r8, 9; @%p2 ld.global.u32 %r8, [%rd1+-8]; add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, 2; @%p3 bra L;\n"
    "mov.u32 %r11, s; setp.eq.u32 %p4, %r10, 5; selp.u32 %r12, 640, 508, %p4; add.u32 %r11, %r11, %r12; st.shared.u32 [%r11], %r5;\n"
    "st.global.u32 [%rd3], %r8; ret;\n}\n";

MG_TEST(tools_bounds_findings)
{
    const struct tool_shape shapes[] = {{.grid = 3, .block = 96, .n = 7, .faulty = true},
                                        {.grid = 3, .block = 96, .n = 7, .sm = 90, .faulty = true}};
    for (int i = 0; i < 2; i++) {
        EXPECT("bounds", "", faults, &shapes[i], "\"kind\":\"write\",\"space\":\"global\"",
               "\"cta\":[0,0,0],\"thread\":[37,0,0],\"kind\":\"write\"", "\"bytes\":262144},\"times\":1}",
               "\"thread\":[70,0,0],\"kind\":\"read\"", "\"times\":2}",
               "\"thread\":[5,0,0],\"kind\":\"write\",\"space\":\"shared\"", "\"cta\":[2,0,0]", "\"more\":0");
        EXPECT_ROWS("bounds", "", faults, &shapes[i], "|CTA 0,0,0 thread 37,0,0|148 bytes behind the end of ",
                    "|CTA 0,0,0 thread 70,0,0|8 bytes before 0x");
        char *got = tool_run_rows("bounds", "", faults, &shapes[i]);
        unsigned rows = 0;
        for (const char *at = got; at && (at = strstr(at, "bounds|")); at++) rows++;
        MG_CHECK_EQ(rows, 5);
        free(got);
        got = tool_run_json("bounds", "", loads, &full);
        if (got && strcmp(got, "{\"findings\":[],\"more\":0}"))
            mg_test_fail(__FILE__, __LINE__, "a program without faults: %s", got);
        free(got);
    }
}

/* Three that count from one value: only the one behind the end is left out, and told of. */
MG_TEST(tools_bounds_groups)
{
    static const char text[] = TOOL_HEAD TOOL_ENTRY
        "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; setp.eq.u32 %p1, %r1, 9; @%p1 add.u64 %rd3, %rd1, 262136;\n"
        "st.global.u32 [%rd3], %r9;\n"
        "mov.u32 %r7, 5; ld.global.u32 %r7, [%rd3+8];\n"
        "st.global.u32 [%rd3+4], %r7; ret;\n}\n"; /* thread 9: 0 */
    const struct tool_shape shapes[] = {{.grid = 1, .block = 64, .n = 7, .faulty = true},
                                        {.grid = 1, .block = 64, .n = 7, .sm = 90, .faulty = true}};
    for (int i = 0; i < 2; i++) {
        char *got = tool_run_rows("bounds", "", text, &shapes[i]);
        if (got && (strncmp(got, "bounds|:10|read|", 16) || strstr(got + 1, "bounds|") ||
                    !strstr(got, "|CTA 0,0,0 thread 9,0,0|0 bytes behind the end of")))
            mg_test_fail(__FILE__, __LINE__, "%s", got);
        free(got);
    }
}

/* A table each: more of them than there was room for at once. */
MG_TEST(tools_bounds_many_sites)
{
    char text[16384] = TOOL_HEAD TOOL_ENTRY "setp.eq.u32 %p1, %r1, 3;\n";
    for (int i = 0; i < 200; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "@%%p1 st.global.u32 [%%rd1+%d], %%r9;\n",
                 i == 150 ? 262144 : 4 * i);
    strcat(text, "ret;\n}\n");
    const struct tool_shape shape = {.grid = 1, .block = 32, .n = 7, .faulty = true};
    char *got = tool_run_rows("bounds", "", text, &shape);
    if (got && (strncmp(got, "bounds|", 7) || strstr(got + 1, "bounds|") || !strstr(got, "|0 bytes behind the end of")))
        mg_test_fail(__FILE__, __LINE__, "%s", got);
    free(got);
}

/* A label of debug information in front of the variables, as LLVM writes it. */
MG_TEST(tools_bounds_behind_labels)
{
    static const char text[] = TOOL_HEAD
        ".visible .entry k (.param .u64 o, .param .u32 n)\n{\n" TOOL_REGS
        "Lfunc_begin0:\n.shared .align 4 .b8 s[256];\n"
        "ld.param.u64 %rd1, [o]; mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 63; mov.u32 %r2, s; mad.lo.u32 %r2, %r1, 4, %r2; st.shared.u32 [%r2], %r1; ret;\n}\n";
    const struct tool_shape *const shapes[] = {&full, &as_gpu};
    for (int i = 0; i < 2; i++) {
        char *got = tool_run_json("bounds", "", text, shapes[i]);
        if (got && strcmp(got, "{\"findings\":[],\"more\":0}"))
            mg_test_fail(__FILE__, __LINE__, "a program without faults: %s", got);
        free(got);
    }
}
