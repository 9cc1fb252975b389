/* The emulator's arithmetic against one-instruction kernels recorded on an H200 (tests/exec/alu), on
 * every vector ISA this CPU has, with full and partial masks. */
#include "alu_run.h"
#include "test.h"

#define EACH_ISA(isa) for (enum emu_isa isa = EMU_ISA_BASE; isa <= emu_isa_best(); isa++)

static bool compare(const struct alu_case *c, enum emu_isa isa)
{
    static struct alu_machine m;
    struct emu_alu op;
    struct emu_alu_desc desc;
    if (!alu_prepare(c, isa, &op, &desc)) {
        mg_test_fail(__FILE__, __LINE__, "%s is not known", c->form);
        return false;
    }
    uint64_t h = 0;
    char *p = c->shown;
    for (unsigned t = 0; t < ALU_TUPLES; t += 32) {
        alu_load(&m, c, t);
        op.fn(&op, m.regs, 0xffffffff);
        for (unsigned i = 0; i < 32; i++) {
            uint64_t r = alu_result(&m, c, &desc, 0, i), r2 = alu_result(&m, c, &desc, 1, i);
            h = alu_hash(alu_hash(h, r), r2);
            if (t + i >= ALU_SHOWN) continue;
            uint64_t want = strtoull(p, &p, 16), want2 = *p == ':' ? strtoull(p + 1, &p, 16) : 0;
            if (r == want && r2 == want2) continue;
            mg_test_fail(__FILE__, __LINE__, "%s, isa %d, tuple %u: %llx:%llx, want %llx:%llx", c->form, (int)isa,
                         t + i, (unsigned long long)r, (unsigned long long)r2, (unsigned long long)want,
                         (unsigned long long)want2);
            return false;
        }
    }
    if (h == c->hash) return true;
    mg_test_fail(__FILE__, __LINE__, "%s, isa %d: the results of all tuples differ from the recorded ones", c->form,
                 (int)isa);
    return false;
}

static char line[8000];
static FILE *open_recorded(void)
{
    FILE *f = fopen("tests/exec/alu/h200.txt", "r");
    if (!f) mg_test_fail(__FILE__, __LINE__, "tests/exec/alu/h200.txt cannot be read (run from the root)");
    return f;
}
static bool next_case(FILE *f, struct alu_case *c)
{
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        memset(c, 0, sizeof *c);
        if (line[0] != '#' && alu_case_parse(c, line)) return true;
    }
    return false;
}

MG_TEST(alu_gives_what_an_h200_gives)
{
    struct alu_case c;
    FILE *f = open_recorded();
    unsigned n = 0, bad = 0;
    if (!f) return;
    while (next_case(f, &c)) {
        struct alu_case again;
        char copy[8000];
        memcpy(copy, line, sizeof copy);
        EACH_ISA(isa)
        {
            again = c;
            bad += !compare(&again, isa);
            n++;
        }
        if (bad > 20) break;
    }
    fclose(f);
    MG_CHECK(n > 1000);
}

/* Lanes outside the mask keep everything, lanes inside get what they get under a full mask. */
MG_TEST(alu_writes_active_lanes_only)
{
    static struct alu_machine m, full;
    struct alu_case c;
    struct emu_alu op;
    struct emu_alu_desc desc;
    FILE *f = open_recorded();
    unsigned bad = 0;
    if (!f) return;
    while (next_case(f, &c) && bad < 10) EACH_ISA(isa)
        {
            if (!alu_prepare(&c, isa, &op, &desc)) continue;
            uint32_t mask = (uint32_t)alu_mix(c.hash + isa);
            alu_load(&full, &c, 64);
            memcpy(&m, &full, sizeof m);
            op.fn(&op, full.regs, 0xffffffff);
            op.fn(&op, m.regs, mask);
            struct alu_machine before;
            alu_load(&before, &c, 64);
            for (unsigned i = 0; i < 32; i++) {
                const struct alu_machine *want = mask >> i & 1 ? &full : &before;
                for (unsigned k = 0; k < 2; k++)
                    if (alu_result(&m, &c, &desc, k, i) != alu_result(want, &c, &desc, k, i)) {
                        mg_test_fail(__FILE__, __LINE__, "%s, isa %d, lane %u, mask %x", c.form, (int)isa, i, mask);
                        bad++;
                        i = 32;
                        break;
                    }
            }
            for (unsigned s = 0; s < 4; s++) /* sources stay */
                if (memcmp(m.regs + ALU_AT_S + s * 512, before.regs + ALU_AT_S + s * 512, 512))
                    mg_test_fail(__FILE__, __LINE__, "%s wrote a source", c.form), bad++;
        }
    fclose(f);
}

/* A destination that is one of the sources */
MG_TEST(alu_works_in_place)
{
    static struct alu_machine m, apart;
    struct alu_case c;
    struct emu_alu op;
    struct emu_alu_desc desc;
    FILE *f = open_recorded();
    unsigned bad = 0;
    if (!f) return;
    while (next_case(f, &c) && bad < 10) EACH_ISA(isa)
        {
            if (!alu_prepare(&c, isa, &op, &desc)) continue;
            for (unsigned s = 0; s < desc.n_src; s++) {
                if (desc.src[s] != desc.d) continue;
                alu_load(&apart, &c, 96);
                memcpy(&m, &apart, sizeof m);
                op.fn(&op, apart.regs, 0x7fffffff);
                struct emu_alu in_place = op;
                in_place.d = op.s[s];
                in_place.fn(&in_place, m.regs, 0x7fffffff);
                size_t bytes = desc.d == EMU_P ? 4 : desc.d == EMU_W ? 124 : 248;
                uint32_t p, q;
                memcpy(&p, m.regs + op.s[s], 4);
                memcpy(&q, apart.regs + op.d, 4);
                bool same =
                    desc.d == EMU_P ? !((p ^ q) & 0x7fffffff) : !memcmp(m.regs + op.s[s], apart.regs + op.d, bytes);
                if (!same)
                    mg_test_fail(__FILE__, __LINE__, "%s, isa %d, in place of source %u", c.form, (int)isa, s), bad++;
            }
        }
    fclose(f);
}

static bool run1(const char *form, const uint32_t *in, unsigned n_src, uint32_t *out)
{
    static struct alu_machine m;
    struct mg_form f = {0};
    struct emu_alu_desc desc;
    mg_form_parse(&f, form, strlen(form));
    if (!emu_alu_find(&f, n_src + 1, 90, false, emu_isa_best(), &desc)) return false;
    struct emu_alu op = {.fn = emu_function(desc.opcode, emu_isa_best(), 0, false),
                         .d = ALU_AT_D,
                         .s = {ALU_AT_S, ALU_AT_S + 512, ALU_AT_S + 1024},
                         .imm = desc.imm};
    for (unsigned k = 0; k < n_src; k++)
        for (unsigned i = 0; i < 32; i++) memcpy(m.regs + ALU_AT_S + 512 * k + 4 * i, &in[k], 4);
    op.fn(&op, m.regs, 0xffffffff);
    memcpy(out, m.regs + ALU_AT_D, 4);
    return true;
}

/* fns: what PTX defines, base up to 31 (undefined beyond, so nothing is recorded) */
MG_TEST(alu_fns_counts_from_its_base)
{
    static const struct {
        uint32_t mask, base, offset, want;
    } t[] = {{0xf0, 5, 0, 5},
             {0xf0, 3, 0, 0xffffffff},
             {0xf0, 0, 1, 4},
             {0xf0, 5, 2, 6},
             {0xf0, 5, (uint32_t)-2, 4},
             {0xf0, 5, (uint32_t)-3, 0xffffffff},
             {0x80000001, 31, (uint32_t)-2, 0},
             {0x80000001, 0, 2, 31},
             {0, 0, 1, 0xffffffff}};
    for (unsigned i = 0; i < sizeof t / sizeof t[0]; i++) {
        uint32_t r = 0, in[3] = {t[i].mask, t[i].base, t[i].offset};
        MG_CHECK(run1("fns.b32", in, 3, &r));
        MG_CHECK_EQ(r, t[i].want);
    }
}

/* PTX 1.x: .ftz is implied, unrounded operations are approximations, mad.f32 truncates its product */
MG_TEST(alu_follows_the_rules_of_ptx_1)
{
    struct mg_form f = {0};
    struct emu_alu_desc d, e;
    mg_form_parse(&f, "add.f32", 7);
    MG_CHECK(emu_alu_find(&f, 3, 13, true, EMU_ISA_BASE, &d));
    mg_form_parse(&f, "add.rn.ftz.f32", 14);
    MG_CHECK(emu_alu_find(&f, 3, 13, true, EMU_ISA_BASE, &e));
    MG_CHECK(d.opcode == e.opcode && d.imm == e.imm);
    memset(&f, 0, sizeof f);
    mg_form_parse(&f, "rcp.f32", 7);
    MG_CHECK(emu_alu_find(&f, 2, 10, true, EMU_ISA_BASE, &d));
    memset(&f, 0, sizeof f);
    mg_form_parse(&f, "mad.f32", 7);
    MG_CHECK(emu_alu_find(&f, 4, 10, true, EMU_ISA_BASE, &d));
    static struct alu_machine m;
    float in[3] = {0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f}, r; /* exact: 2^-46; the cut product leaves 0 */
    for (unsigned k = 0; k < 3; k++)
        for (unsigned i = 0; i < 32; i++) memcpy(m.regs + ALU_AT_S + 512 * k + 4 * i, &in[k], 4);
    struct emu_alu op = {.fn = emu_function(d.opcode, EMU_ISA_BASE, 0, false),
                         .d = ALU_AT_D,
                         .s = {ALU_AT_S, ALU_AT_S + 512, ALU_AT_S + 1024},
                         .imm = d.imm};
    op.fn(&op, m.regs, 0xffffffff);
    memcpy(&r, m.regs + ALU_AT_D, 4);
    MG_CHECK(r == 0.0f);
}

MG_TEST(alu_refuses_what_it_does_not_know)
{
    static const char *const forms[] = {"cvt.rs.satfinite.e4m3x4.f32",
                                        "add.rn.sat.f32x2",
                                        "cvt.rp.tf32.f32",
                                        "add.nonsense.f32",
                                        "ld.global.f32",
                                        "bra",
                                        "shfl.sync.bfly.b32"};
    struct emu_alu_desc d;
    for (unsigned i = 0; i < sizeof forms / sizeof forms[0]; i++)
        for (unsigned n = 1; n < 6; n++) {
            struct mg_form f = {0};
            mg_form_parse(&f, forms[i], strlen(forms[i]));
            MG_CHECK(!emu_alu_find(&f, n, 90, false, EMU_ISA_BASE, &d));
        }
}
