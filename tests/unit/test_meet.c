/* Blocks in front of which it is open whether lanes have met: small kernels whose answer can be seen. */
#include <stdlib.h>

#include "analysis/sites.h"
#include "base/buf.h"
#include "ptx/ptx.h"
#include "test.h"

#define HEAD                                                                                                           \
    ".version 7.0\n.target sm_70\n.address_size 64\n"                                                                  \
    ".func f()\n{\n.reg .pred %p<4>; .reg .b32 %r<4>;\nmov.u32 %r1, %laneid; setp.eq.u32 %p1, %r1, 3;\n@%p1 bra $f;\n" \
    "add.u32 %r1, %r1, 1;\n$f: ret;\n}\n"                                                                              \
    ".func g()\n{\n.reg .pred %p<4>; .reg .b32 %r<4>;\nmov.u32 %r1, %laneid; setp.eq.u32 %p1, %r1, 3;\n@%p1 bra $g;\n" \
    "call g;\n$g: ret;\n}\n"
#define KERNEL                                                                                                         \
    ".visible .entry k(.param .u64 a)\n{\n.reg .b32 %r<9>; .reg .pred %p<9>;\nmov.u32 %r1, %tid.x; mov.u32 %r2, 0;\n"  \
    "setp.eq.u32 %p1, %r1, 1; setp.eq.u32 %p2, %r1, 2; setp.eq.u32 %p3, %r1, 3;\n"

/* want: a character for each block of the kernel, then of f if it is called; 1: open */
static void check(int line, const char *body, const char *want)
{
    struct mg_module *m = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf text = MG_BUF_INIT, got = MG_BUF_INIT;
    mg_buf_printf(&text, "%s%s%s", HEAD, KERNEL, body);
    if (mg_ptx_parse(text.at, text.n, "t.ptx", &m, &d)) {
        mg_test_fail(__FILE__, line, "%s", mg_diag_first(&d, MG_ERR_INPUT));
        abort();
    }
    struct mg_sites *s = mg_sites_new(m, mg_module_find_func(m, "k"));
    for (uint32_t i = 0; i < s->n_blocks; i++) mg_buf_addc(&got, s->blocks[i].apart ? '1' : '0');
    if (strcmp(got.at, want)) mg_test_fail(__FILE__, line, "blocks %s, not %s", got.at, want);
    mg_sites_free(s);
    mg_buf_release(&text);
    mg_buf_release(&got);
    mg_module_free(m);
    mg_diag_release(&d);
}
#define CHECK(body, want) check(__LINE__, body, want)

#define END  "add.u32 %r2, %r2, 7;\nret;\n}\n"
#define STEP "add.u32 %r2, %r2, 1;\n"

MG_TEST(meet_where_ways_nest)
{
    CHECK(END, "0");
    CHECK("@%p1 bra $a;\n" STEP "$a: " END, "000");
    CHECK("@%p1 bra $a;\n" STEP "bra $b;\n$a: " STEP "$b: " END, "0000");
    CHECK("$l: " STEP "@%p1 bra $l;\n" END, "000");
    CHECK("$l: @%p2 bra $o;\n" STEP "@%p1 bra $l;\n$o: " END, "0000");
    /* lanes that end, by a guard and by a block of their own */
    CHECK("$l: @%p2 ret;\n" STEP "@%p1 bra $l;\n" END, "0000");
    CHECK("$l: @%p2 bra $r;\n" STEP "@%p1 bra $l;\n" STEP "$r: ret;\n}\n", "00000");
    /* sides of a branch in a loop that only ending leads out of, at its end, within it too */
    CHECK("$l: @%p1 bra $a;\n" STEP "bra $b;\n$a: " STEP "$b: " STEP "@%p3 bra $l;\nret;\n}\n", "000000");
    CHECK("$l: @%p1 bra $a;\n" STEP "bra $b;\n$a: " STEP "$b: " STEP "@%p2 bra $r;\n" STEP
          "@%p3 bra $l;\n$r: ret;\n}\n",
          "0000000");
    CHECK("$l: @%p1 bra $a;\n" STEP "$a: @%p2 ret;\n" STEP "@%p3 bra $l;\nret;\n}\n", "000000");
    /* entries of a table that lead to one place */
    CHECK("t: .branchtargets $a, $b, $a;\nbrx.idx %r1, t;\n$a: " STEP "bra $c;\n$b: " STEP "$c: " END, "0000");
    CHECK("@%p1 bra $a;\ncall f;\n$a: " END, "000000");
}

MG_TEST(meet_is_open_where_ways_join_early)
{
    /* the code that docs/nvidia.md lists: work in front of `return` in a loop */
    CHECK("$l: @%p2 bra $r;\n" STEP "@%p1 bra $l;\n" STEP "ret;\n$r: " END, "00011");
    /* if (p1 || p2) y; else x */
    CHECK("@%p1 bra $y;\n@%p2 bra $y;\n" STEP "bra $z;\n$y: " STEP "$z: " END, "00011");
    /* `continue` in an `if` */
    CHECK("$l: @%p1 bra $s;\n@%p2 bra $n;\n" STEP "$s: " STEP "$n: " STEP "@%p3 bra $l;\n" END, "0000110");
    /* `continue`, then `break` */
    CHECK("$l: @%p1 bra $n;\n" STEP "@%p2 bra $e;\n" STEP "$n: " STEP "@%p3 bra $l;\n$e: " END, "011111");
    /* a case that falls into the next, and where the switch ends */
    CHECK("t: .branchtargets $a, $b, $c;\nbrx.idx %r1, t;\n$a: " STEP "$b: " STEP "bra $d;\n$c: " STEP "$d: " END,
          "00101");
    /* two ways out of a loop, one further than the other */
    CHECK("$l: @%p2 bra $far;\n" STEP "@%p1 bra $l;\n" STEP "$far: " END, "00011");
    /* out of two loops at once: behind the inner one, its next round in the outer one, and where both end */
    CHECK("$o: " STEP "$l: @%p2 bra $far;\n" STEP "@%p1 bra $l;\n" STEP "@%p3 bra $o;\n$far: " END, "011111");
    /* into the other side of a branch, and what is called from there */
    CHECK("@%p1 bra $a;\n" STEP "@%p2 bra $in;\nbra $b;\n$a: " STEP "$in: call f;\n$b: " END, "000011111");
}

MG_TEST(meet_is_open_behind_recursion)
{
    CHECK("call f;\n" END, "00000");
    CHECK("call g;\n" END, "01001");
    CHECK("@%p1 bra $a;\ncall g;\n" STEP "$a: " END, "0011001");
    CHECK("@%p1 bra $a;\ncall g;\nbra $b;\n$a: " STEP "$b: " END, "00101001");
    /* what is called behind it */
    CHECK("call g;\ncall f;\n" END, "011111001");
}
