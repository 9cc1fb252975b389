/* See kernels.h. */
#include "kernels.h"

struct gen {
    struct mg_buf b;
    uint32_t seed, regs, labels, budget;
    const char *result; /* of a function that never ends a lane */
};

static uint32_t draw(struct gen *g, uint32_t below)
{
    g->seed = g->seed * 1664525u + 1013904223u;
    return (g->seed >> 8) % below;
}

static void gen_body(struct gen *g, unsigned depth, uint32_t out);

static void gen_work(struct gen *g)
{
    mg_buf_printf(&g->b, "mad.lo.u32 %%r4, %%r4, %u, %u;\n", 2 * draw(g, 1000) + 1, draw(g, 1000));
}

/* A loop over %r<i>: `out` is left by breaks. */
static void gen_loop(struct gen *g, unsigned depth)
{
    uint32_t i = g->regs++, n = g->regs++, head = g->labels++, end = g->labels++, kind = draw(g, 9),
             step = 1u << 2 * draw(g, 2);
    bool wide = kind == 8;
    switch (kind) {
    case 0:
    case 1:
    case 8: /* constant, upwards */
        mg_buf_printf(&g->b, wide ? "mov.u64 %%w%u, 5;\n" : "mov.u32 %%v%u, 0;\n", i);
        break;
    case 2: /* guarded, to data */
        mg_buf_printf(&g->b, "and.b32 %%v%u, %%r4, 7; mov.u32 %%v%u, 0; setp.lt.s32 %%q%u, %%v%u, 1; @%%q%u bra X%u;\n",
                      n, i, i, n, i, end);
        break;
    case 3:
    case 4: /* downwards from data, guarded */
        mg_buf_printf(&g->b, "and.b32 %%v%u, %%r4, 3; setp.eq.s32 %%q%u, %%v%u, 0; @%%q%u bra X%u;\n", i, i, i, i, end);
        break;
    case 5: /* from data to data, not guarded */
        mg_buf_printf(&g->b, "and.b32 %%v%u, %%r4, 5; add.u32 %%v%u, %%v%u, %u;\n", i, n, i, step * (1 + draw(g, 3)));
        break;
    default: /* tested in front */
        mg_buf_printf(&g->b, "shr.u32 %%v%u, %%r4, 3; and.b32 %%v%u, %%v%u, 3; mov.u32 %%v%u, 0;\n", n, n, n, i);
        break;
    }
    mg_buf_printf(&g->b, "L%u:\n", head);
    if (kind == 6) mg_buf_printf(&g->b, "setp.ge.u32 %%q%u, %%v%u, %%v%u; @%%q%u bra X%u;\n", i, i, n, i, end);
    gen_body(g, depth + 1, end);
    switch (kind) {
    case 0:
        mg_buf_printf(&g->b, "add.s32 %%v%u, %%v%u, %u; setp.ne.s32 %%q%u, %%v%u, %u; @%%q%u bra L%u;\n", i, i, step, i,
                      i, step * 3, i, head);
        break;
    case 1:
        mg_buf_printf(&g->b, "add.s32 %%v%u, %%v%u, %u; setp.le.s32 %%q%u, %%v%u, 7; @%%q%u bra L%u;\n", i, i, step, i,
                      i, i, head);
        break;
    case 2:
        mg_buf_printf(&g->b, "add.s32 %%v%u, %%v%u, 1; setp.ne.s32 %%q%u, %%v%u, %%v%u; @%%q%u bra L%u;\n", i, i, i, i,
                      n, i, head);
        break;
    case 3:
        mg_buf_printf(&g->b, "add.s32 %%v%u, %%v%u, -1; setp.ne.s32 %%q%u, %%v%u, 0; @%%q%u bra L%u;\n", i, i, i, i, i,
                      head);
        break;
    case 4:
        mg_buf_printf(
            &g->b,
            "sub.u32 %%v%u, %%v%u, 1; setp.gt.s32 %%q%u, %%v%u, 0; and.pred %%q%u, %%q%u, %%p1; @%%q%u bra L%u;\n", i,
            i, i, i, i, i, i, head);
        break;
    case 5:
        mg_buf_printf(&g->b, "add.u32 %%v%u, %%v%u, %u; setp.lt.u32 %%q%u, %%v%u, %%v%u; @%%q%u bra L%u;\n", i, i, step,
                      i, i, n, i, head);
        break;
    case 6:
        mg_buf_printf(&g->b, "add.u32 %%v%u, %%v%u, 1; bra L%u;\n", i, i, head);
        break;
    case 7: /* by data alone; the register it steps has no bound */
        mg_buf_printf(
            &g->b,
            "mad.lo.u32 %%v%u, %%v%u, 5, 3; sub.s32 %%v%u, %%v%u, 1; and.b32 %%v0, %%v%u, 7; setp.ne.u32 %%q%u, %%v0, 0; @%%q%u bra L%u;\n",
            n, n, i, i, n, i, i, head);
        break;
    default:
        mg_buf_printf(&g->b, "add.s64 %%w%u, %%w%u, 4; setp.lt.s64 %%q%u, %%w%u, 16; @%%q%u bra L%u;\n", i, i, i, i, i,
                      head);
        break;
    }
    mg_buf_printf(&g->b, "X%u:\n", end);
}

static void gen_branch(struct gen *g, unsigned depth, uint32_t out)
{
    uint32_t p = g->regs++, other = g->labels++, join = g->labels++;
    bool again = draw(g, 3) == 0, has_else = draw(g, 2), negated = draw(g, 2);
    mg_buf_printf(&g->b, "and.b32 %%v%u, %%r4, %u; setp.eq.u32 %%q%u, %%v%u, 0;\n@%s%%q%u bra L%u;\n", p,
                  1u << draw(g, 4), p, p, negated ? "!" : "", p, other);
    gen_body(g, depth + 1, out);
    if (has_else) mg_buf_printf(&g->b, "bra L%u;\n", join);
    mg_buf_printf(&g->b, "L%u:\n", other);
    if (has_else) gen_body(g, depth + 1, out);
    mg_buf_printf(&g->b, "L%u:\n", join);
    if (!again) return;
    uint32_t skip = g->labels++;
    gen_work(g);
    mg_buf_printf(&g->b, "@%%q%u bra L%u;\n", p, skip);
    gen_work(g);
    mg_buf_printf(&g->b, "L%u:\n", skip);
}

static void gen_body(struct gen *g, unsigned depth, uint32_t out)
{
    for (uint32_t i = 0, n = 1 + draw(g, 3); i < n; i++) {
        uint32_t what = draw(g, 10);
        if (!g->budget || depth > 3 || what < 3) {
            gen_work(g);
            continue;
        }
        g->budget--;
        if (what < 5)
            gen_loop(g, depth);
        else if (what < 8)
            gen_branch(g, depth, out);
        else if (what == 8 && g->result)
            mg_buf_printf(&g->b, "%s and.b32 %%v%u, %%r4, 7; setp.eq.u32 %%q%u, %%v%u, 2; @%%q%u ret;\n", g->result,
                          g->regs, g->regs, g->regs, g->regs),
                g->regs++;
        else if (what == 8)
            mg_buf_printf(&g->b, "and.b32 %%v%u, %%r4, 31; setp.eq.u32 %%q%u, %%v%u, 9; @%%q%u %s;\n", g->regs, g->regs,
                          g->regs, g->regs, draw(g, 2) ? "ret" : "exit"),
                g->regs++;
        else if (out)
            mg_buf_printf(&g->b, "and.b32 %%v%u, %%r4, 15; setp.gt.u32 %%q%u, %%v%u, 12; @%%q%u bra X%u;\n", g->regs,
                          g->regs, g->regs, g->regs, out),
                g->regs++;
    }
}

void random_kernel(uint32_t seed, struct mg_buf *out)
{
    struct gen g = {.seed = seed, .regs = 1, .labels = 1, .budget = 14};
    mg_buf_adds(&g.b, HEAD ENTRY("k") ".reg .b32 %v<300>; .reg .b64 %w<300>; .reg .pred %q<300>;\n" GID
                                      "mul.lo.u32 %r4, %r1, 2654435; setp.ne.u32 %p1, %r1, 3;\n");
    gen_body(&g, 0, 0);
    mg_buf_adds(&g.b, "st.global.u32 [%rd1], %r4; ret;\n}\n");
    *out = g.b;
}

static void gen_func(struct gen *g, const char *name, const char *result, const char *first, const char *last,
                     bool may_end)
{
    mg_buf_printf(&g->b, ".func %s %s (.param .u32 a, .param .u32 n)\n{\n", *result ? "(.param .u32 r)" : "", name);
    mg_buf_adds(
        &g->b, REGS
        ".reg .b32 %v<300>; .reg .b64 %w<300>; .reg .pred %q<300>;\nld.param.u32 %r4, [a]; ld.param.u32 %r10, [n]; setp.ne.u32 %p1, %r4, 3;\n");
    mg_buf_adds(&g->b, first);
    g->regs = g->labels = 1;
    g->budget = 8;
    g->result = may_end ? NULL : result;
    gen_body(g, 0, 0);
    mg_buf_adds(&g->b, last);
    mg_buf_printf(&g->b, "%s ret;\n}\n", result);
}

#define CALL(f, x, n)                                                                                                  \
    "{ .param .u32 x; .param .u32 y; .param .u32 z; st.param.u32 [x], " x "; st.param.u32 [y], " n "; call (z), " f    \
    ", (x, y); ld.param.u32 %r4, [z]; }\n"
#define QUIET(f, x)                                                                                                    \
    "{ .param .u32 x; .param .u32 y; st.param.u32 [x], " x "; st.param.u32 [y], " x "; call " f ", (x, y); }\n"

void random_calls(uint32_t seed, struct mg_buf *out)
{
    static const char result[] = "st.param.u32 [r], %r4;",
                      down[] = "setp.eq.u32 %p3, %r10, 0; @%p3 bra DONE; sub.u32 %r10, %r10, 1;\n";
    struct gen g = {.seed = seed * 7919};
    mg_buf_adds(&g.b, HEAD ".func (.param .u32 r) ring (.param .u32 a, .param .u32 n);\n");
    gen_func(&g, "leaf", result, "", "", false);
    gen_func(&g, "quiet", "", "", "", false);
    gen_func(&g, "ends", result, CALL("leaf", "%r4", "%r10"), "", seed % 4 == 0);
    gen_func(&g, "mid", result, CALL("leaf", "%r4", "%r10"),
             seed % 3 ? QUIET("quiet", "%r4") : CALL("ends", "%r4", "%r10"), false);
    gen_func(&g, "self", result, down, CALL("self", "%r4", "%r10") QUIET("quiet", "%r4") "DONE:\n", false);
    gen_func(&g, "round", result, down, CALL("ring", "%r4", "%r10") "DONE:\n", false);
    gen_func(&g, "ring", result, down,
             "mov.u32 %r11, 0;\nAGAIN: and.b32 %r12, %r10, 1;\n" CALL(
                 "round", "%r4", "%r12") "add.u32 %r11, %r11, 1; setp.lt.u32 %p2, %r11, 2; @%p2 bra AGAIN;\nDONE:\n",
             false);
    mg_buf_adds(&g.b, ENTRY("k") ".reg .b32 %v<300>; .reg .b64 %w<300>; .reg .pred %q<300>;\n" GID
                                 "mul.lo.u32 %r4, %r1, 2654435; setp.ne.u32 %p1, %r1, 3; and.b32 %r13, %r1, 3;\n");
    if (seed % 2) mg_buf_adds(&g.b, CALL("mid", "%r4", "%r13"));
    g.regs = g.labels = 1;
    g.budget = 8;
    g.result = NULL;
    gen_body(&g, 0, 0);
    mg_buf_adds(&g.b, CALL("self", "%r4", "150")
                          CALL("ring", "%r4", "%r13") "mov.u32 %r14, 0;\nMORE:\n" CALL("leaf", "%r4", "%r13"));
    if (seed % 3 == 1) mg_buf_adds(&g.b, CALL("mid", "%r4", "%r13"));
    mg_buf_adds(
        &g.b, "add.u32 %r14, %r14, 1; setp.lt.u32 %p2, %r14, 3; @%p2 bra MORE;\nst.global.u32 [%rd1], %r4; ret;\n}\n");
    *out = g.b;
}

void random_rows(uint32_t n, uint32_t seed, struct mg_buf *out)
{
    *out = (struct mg_buf)MG_BUF_INIT;
    struct gen g = {.seed = seed};
    mg_buf_adds(out, HEAD ENTRY("k") GID "mul.lo.u32 %r4, %r1, 2654435; setp.eq.u32 %p1, %r1, 7; @%p1 bra OUT;\n");
    for (uint32_t i = 0; i < n; i++) {
        uint32_t what = draw(&g, 20);
        mg_buf_printf(
            out, "and.b32 %%r5, %%r4, %u; setp.eq.u32 %%p2, %%r5, 0; @%%p2 bra L%u;\nmad.lo.u32 %%r4, %%r4, %u, 1;\n",
            1u << draw(&g, 7), i, 2 * draw(&g, 900) + 1);
        if (what < 3)
            mg_buf_printf(
                out, "and.b32 %%r5, %%r4, 8; setp.eq.u32 %%p3, %%r5, 0; @%%p3 bra L%u;\nmad.lo.u32 %%r4, %%r4, 5, 3;\n",
                i);
        mg_buf_printf(out, "L%u: mad.lo.u32 %%r4, %%r4, 1664525, %u;\n", i, 2 * draw(&g, 900) + 1);
        if (what == 3) mg_buf_adds(out, "and.b32 %r5, %r4, 255; setp.eq.u32 %p2, %r5, 17; @%p2 bra OUT;\n");
        if (what == 4) mg_buf_adds(out, "and.b32 %r5, %r4, 255; setp.eq.u32 %p2, %r5, 33; @%p2 exit;\n");
        if (what == 5)
            mg_buf_printf(
                out,
                "and.b32 %%r6, %%r4, 3; add.u32 %%r6, %%r6, 1;\nA%u: mad.lo.u32 %%r4, %%r4, 5, 1; sub.u32 %%r6, %%r6, 1; setp.ne.u32 %%p2, %%r6, 0; @%%p2 bra A%u;\n",
                i, i);
        if (what == 6)
            mg_buf_printf(
                out,
                "and.b32 %%r5, %%r4, 64; setp.eq.u32 %%p2, %%r5, 0; @%%p2 bra L%u;\nmad.lo.u32 %%r4, %%r4, 3, 5;\n",
                i + 1 < n ? i + 1 : i);
    }
    mg_buf_adds(out, "OUT: st.global.u32 [%rd1], %r4; ret;\n}\n");
}

/* A predicate that no other instruction writes; from the thread's number or, where it changes, from data. */
static uint32_t steady_pred(struct gen *g, bool changes)
{
    static const char *const tests[] = {"eq", "ne", "lt", "ge"};
    uint32_t p = g->regs++;
    mg_buf_printf(&g->b, "shr.u32 %%v%u, %s, %u; and.b32 %%w%u, %%v%u, 3; setp.%s.u32 %%q%u, %%w%u, %u;\n", p,
                  changes ? "%r4" : "%r8", draw(g, 5), p, p, tests[draw(g, 4)], p, p, draw(g, 3));
    return p;
}

static void steady_body(struct gen *g, const uint32_t *known, uint32_t n_known, uint32_t out, uint32_t depth)
{
    for (uint32_t n = 1 + draw(g, 3); n; n--) {
        uint32_t what = draw(g, 12), l = g->labels++, p = known[draw(g, n_known)];
        if (what < 3)
            p = steady_pred(g, false);
        else if (what == 3)
            p = steady_pred(g, true);
        else if (what == 4)
            mg_buf_printf(&g->b, "and.pred %%q%u, %%q%u, %s%%q%u;\n", g->regs, p, draw(g, 2) ? "!" : "",
                          known[draw(g, n_known)]),
                p = g->regs++;
        mg_buf_printf(&g->b, "@%s%%q%u bra E%u;\nmad.lo.u32 %%r4, %%r4, %u, 1;\n", draw(g, 2) ? "!" : "", p, l,
                      2 * draw(g, 900) + 1);
        if (depth) steady_body(g, known, n_known, out, depth - 1);
        if (g->budget && draw(g, 12) == 0)
            mg_buf_printf(&g->b, "and.b32 %%r5, %%r4, 31; setp.eq.u32 %%p4, %%r5, 3; @%%p4 bra X%u;\n", out);
        if (g->budget && draw(g, 24) == 0)
            mg_buf_adds(&g->b, "and.b32 %r5, %r4, 63; setp.eq.u32 %p4, %r5, 33; @%p4 exit;\n");
        if (draw(g, 2))
            mg_buf_printf(&g->b, "bra F%u;\nE%u: mad.lo.u32 %%r4, %%r4, 5, 3;\nF%u:\n", l, l, l);
        else
            mg_buf_printf(&g->b, "E%u:\n", l);
        mg_buf_adds(&g->b, "add.u32 %r4, %r4, %r8;\n");
    }
}

/* The text with the number, of one digit, for each #. */
static void put_number(struct gen *g, const char *text, uint32_t n)
{
    for (; *text; text++) mg_buf_addc(&g->b, *text == '#' ? (char)('0' + n) : *text);
    mg_buf_addc(&g->b, '\n');
}

void random_steady(uint32_t seed, struct mg_buf *out)
{
    static const struct {
        const char *begin, *step, *test;
    } loops[] = {
        {"mov.u32 %i#, 0;", "add.u32 %i#, %i#, 1;", "setp.lt.u32 %p1, %i#, %n#;"},
        {"mov.u32 %i#, %n#;", "add.s32 %i#, %i#, -1;", "setp.ne.s32 %p1, %i#, 0;"},
        {"mov.u32 %i#, 0;", "add.s32 %i#, %i#, 4;", "setp.lt.s32 %p1, %i#, %n#;"},
        {"mov.u64 %l#, 0; cvt.u64.u32 %m#, %n#;", "add.u64 %l#, %l#, 1;", "setp.lt.u64 %p1, %l#, %m#;"},
        {"mov.u32 %i#, 0;", "add.u32 %i#, %i#, 1;", "setp.le.u32 %p1, %i#, %n#;"},
        {"mov.u32 %i#, %r1;", "add.u32 %i#, %i#, %r3;", "setp.lt.u32 %p1, %i#, 300;"},
    };
    struct gen g = {
        .seed = seed * 104729 + 5, .regs = 1, .labels = 1, .budget = seed % 3 == 0}; /* ways out in every third */
    bool nested = draw(&g, 2);
    mg_buf_adds(
        &g.b,
        HEAD ENTRY(
            "k") ".reg .b32 %i<3>; .reg .b32 %n<3>; .reg .b64 %l<3>; .reg .b64 %m<3>; .reg .b32 %v<600>; .reg .b32 %w<600>; .reg .pred %q<600>;\n" GID
                 "mul.lo.u32 %r8, %r1, 40503; shr.u32 %r8, %r8, 3; mul.lo.u32 %r4, %r1, 2654435;\n");
    uint32_t known[8];
    for (uint32_t i = 0; i < 4; i++) known[i] = steady_pred(&g, false);
    if (nested) mg_buf_adds(&g.b, "mov.u32 %r10, 0;\nAGAIN: mad.lo.u32 %r8, %r8, 5, 1;\n");
    for (uint32_t i = 4; i < 8; i++) known[i] = steady_pred(&g, false);
    for (uint32_t n = 1 + draw(&g, 2); n; n--) {
        uint32_t kind = draw(&g, MG_COUNT_OF(loops)), l = g.labels++;
        bool guard = draw(&g, 2);
        mg_buf_printf(&g.b, "and.b32 %%r7, %%r4, 7; add.u32 %%n%u, %%r7, 1;", n);
        put_number(&g, loops[kind].begin, n);
        if (guard) mg_buf_printf(&g.b, "setp.eq.u32 %%p3, %%n%u, 3; @%%p3 bra X%u;\n", n, l);
        mg_buf_printf(&g.b, "H%u:\n", l);
        steady_body(&g, known, 8, l, 2);
        put_number(&g, loops[kind].step, n);
        put_number(&g, loops[kind].test, n);
        mg_buf_printf(&g.b, "@%%p1 bra H%u;\nX%u: mad.lo.u32 %%r4, %%r4, 3, 7;\n", l, l);
    }
    if (nested) mg_buf_adds(&g.b, "add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 3; @%p2 bra AGAIN;\n");
    mg_buf_adds(&g.b, "st.global.u32 [%rd1], %r4; ret;\n}\n");
    *out = g.b;
}
