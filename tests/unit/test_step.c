/* Steps from round to round: random loops, whose rounds are computed one by one, and addresses as compilers write them.
 */
#include <stdlib.h>

#include "analysis/step.h"
#include "base/buf.h"
#include "ptx/ptx.h"
#include "test.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 o)\n{\n"
enum { REGS = 6, INSTS = 10, ROUNDS = 5 };

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

struct inst {
    uint32_t op, d, a, b;
    int64_t k; /* where b is REGS */
};
static const char *const names[] = {"add.s64", "sub.s64", "mov.u64", "shl.b64", "mul.lo.s64", "xor.b64", "mad.lo.s64"};

static uint64_t computed(const struct inst *x, const uint64_t *r)
{
    uint64_t a = r[x->a], b = x->b < REGS ? r[x->b] : (uint64_t)x->k;
    switch (x->op) {
    case 0:
        return a + b;
    case 1:
        return a - b;
    case 2:
        return a;
    case 3:
        return a << (x->k & 63);
    case 4:
        return a * b;
    case 5:
        return a ^ b;
    default:
        return a * (uint64_t)x->k + r[x->d];
    }
}

static void print_inst(struct mg_buf *b, const struct inst *x)
{
    mg_buf_printf(b, "%s %%rd%u, %%rd%u", names[x->op], x->d, x->a);
    if (x->op == 6)
        mg_buf_printf(b, ", %lld, %%rd%u", (long long)x->k, x->d);
    else if (x->op != 2 && x->b < REGS)
        mg_buf_printf(b, ", %%rd%u", x->b);
    else if (x->op != 2)
        mg_buf_printf(b, ", %lld", (long long)x->k);
    mg_buf_adds(b, ";\n");
}

static struct inst draw_inst(uint64_t *state)
{
    uint32_t op = (uint32_t)(draw(state) % MG_COUNT_OF(names));
    bool number = op == 3 || op == 6 || draw(state) % 2;
    return (struct inst){op, (uint32_t)(draw(state) % REGS), (uint32_t)(draw(state) % REGS),
                         number ? REGS : (uint32_t)(draw(state) % REGS),
                         op == 3 ? (int64_t)(draw(state) % 4) : (int64_t)(draw(state) % 9) - 4};
}

struct seen { /* of each register behind the body: what analysis says */
    struct mg_affine step[REGS];
};

/* The loop is LOOP; its stores, one of each register, stand in one line each, from `line` on. */
static struct seen look_at(const char *text, uint32_t line)
{
    struct mg_module *m = NULL;
    struct mg_diag diag = MG_DIAG_INIT;
    struct seen seen = {0};
    if (mg_ptx_parse(text, strlen(text), "t.ptx", &m, &diag)) {
        mg_test_fail(__FILE__, __LINE__, "%s\n%s", mg_diag_first(&diag, MG_ERR_INPUT), text);
        abort();
    }
    struct mg_cfg *c = mg_cfg_new(m, mg_module_find_func(m, "k"));
    struct mg_dom *d = mg_dom_new(c);
    struct mg_live *live = mg_live_new(c);
    struct mg_loops *l = mg_loops_new(c);
    struct mg_ssa *s = mg_ssa_new(c, d, live);
    MG_EACH_NODE(m, &m->funcs.at[c->func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind != MG_NODE_inst || n->line < line || n->line >= line + REGS) continue;
        seen.step[n->line - line] = mg_step_of(s, l, l->loop_of[mg_cfg_block_of(c, id)], id, m->opnds.at[n->opnd].id);
    }
    mg_ssa_free(s);
    mg_loops_free(l);
    mg_live_free(live);
    mg_dom_free(d);
    mg_cfg_free(c);
    mg_module_free(m);
    mg_diag_release(&diag);
    return seen;
}

MG_TEST(steps_are_those_of_rounds)
{
    uint64_t state = 11;
    unsigned known = 0, moving = 0;
    for (unsigned loop = 0; loop < 3000; loop++) {
        struct inst body[INSTS];
        struct mg_buf text = MG_BUF_INIT;
        uint64_t r[REGS], at[ROUNDS][REGS];
        uint32_t line = 13 + INSTS;
        mg_buf_adds(&text, HEAD ".reg .b64 %rd<8>; .reg .pred %p<2>; ld.param.u64 %rd7, [o];\n");
        for (uint32_t i = 0; i < REGS; i++) mg_buf_printf(&text, "ld.global.u64 %%rd%u, [%%rd7+%u];\n", i, 8 * i);
        mg_buf_adds(&text, "LOOP:");
        for (unsigned i = 0; i < INSTS; i++) {
            body[i] = draw_inst(&state);
            print_inst(&text, &body[i]);
        }
        for (uint32_t i = 0; i < REGS; i++) mg_buf_printf(&text, "st.global.u64 [%%rd%u], %%rd7;\n", i);
        mg_buf_adds(&text, "setp.ne.u64 %p1, %rd0, 7; @%p1 bra LOOP; ret;\n}\n");
        struct seen seen = look_at(text.at, line);
        for (uint32_t i = 0; i < REGS; i++) r[i] = draw(&state) << 31 ^ draw(&state);
        for (unsigned round = 0; round < ROUNDS; round++) {
            for (unsigned i = 0; i < INSTS; i++) r[body[i].d] = computed(&body[i], r);
            memcpy(at[round], r, sizeof r);
        }
        for (uint32_t i = 0; i < REGS; i++) {
            if (seen.step[i].is != MG_AFFINE_STEP) continue;
            known++;
            moving += seen.step[i].step != 0;
            for (unsigned round = 1; round < ROUNDS; round++)
                if ((int64_t)(at[round][i] - at[round - 1][i]) != seen.step[i].step)
                    mg_test_fail(__FILE__, __LINE__, "loop %u: %%rd%u does not step by %lld\n%s", loop, i,
                                 (long long)seen.step[i].step, text.at);
        }
        mg_buf_release(&text);
    }
    if (known < 1000 || moving < 200) mg_test_fail(__FILE__, __LINE__, "%u known, %u of them move", known, moving);
}

/* A pointer that goes up; an index that does, down as well; a row that a load in front of the loop names; what a load
 * in the loop names; what one of two ways steps. */
MG_TEST(steps_of_addresses)
{
    static const char text[] = HEAD
        ".reg .b64 %rd<20>; .reg .b32 %r<20>; .reg .pred %p<3>;\n"
        "ld.param.u64 %rd7, [o]; mov.u64 %rd1, %rd7; ld.global.u64 %rd6, [%rd7]; mov.u32 %r1, 0; mov.u32 %r2, 900; mov.u64 %rd8, %rd7;\n"
        "LOOP: mul.wide.s32 %rd9, %r1, 4; add.s64 %rd2, %rd7, %rd9; shl.b32 %r3, %r2, 3; cvt.s64.s32 %rd10, %r3; add.s64 %rd3, %rd6, %rd10; ld.global.u64 %rd4, [%rd7];\n"
        "st.global.u64 [%rd1], %rd7;\nst.global.u64 [%rd2], %rd7;\nst.global.u64 [%rd3], %rd7;\nst.global.u64 [%rd4], %rd7;\nst.global.u64 [%rd6], %rd7;\nst.global.u64 [%rd8], %rd7;\n"
        "add.s64 %rd1, %rd1, 4; add.s64 %rd1, %rd1, 12; add.s32 %r1, %r1, 2; sub.s32 %r2, %r2, 1; setp.eq.s32 %p1, %r2, 5;\n"
        "@%p1 add.s64 %rd8, %rd8, 4; setp.ne.s32 %p2, %r1, 800; @%p2 bra LOOP; ret;\n}\n";
    struct seen seen = look_at(text, 9);
    static const int64_t want[] = {16, 8, -8, INT64_MAX, 0, INT64_MAX};
    for (unsigned i = 0; i < REGS; i++)
        if ((seen.step[i].is == MG_AFFINE_STEP ? seen.step[i].step : INT64_MAX) != want[i])
            mg_test_fail(__FILE__, __LINE__, "address %u: state %d, step %lld", i, (int)seen.step[i].is,
                         (long long)seen.step[i].step);
}
