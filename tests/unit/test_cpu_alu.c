/* Arithmetic in compiled code against the emulator, bit for bit: every form that has vector code, over
 * special and random operands, with all lanes active, with some, and with operands that are equal in
 * all lanes (scalar code). The emulator's own results are held against recorded ones in test_alu.c. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"
#include "test.h"

/* name, type of the result, types of the sources */
static const char *const forms[] = {
    "add.s32 r r r",
    "sub.u32 r r r",
    "mul.lo.s32 r r r",
    "mul.hi.s32 r r r",
    "mul.hi.u32 r r r",
    "mad.lo.s32 r r r r",
    "min.s32 r r r",
    "max.u32 r r r",
    "abs.s32 r r",
    "neg.s32 r r",
    "not.b32 r r",
    "and.b32 r r r",
    "or.b32 r r r",
    "xor.b32 r r r",
    "shl.b32 r r r",
    "shr.u32 r r r",
    "shr.s32 r r r",
    "mul.wide.s32 d r r",
    "mul.wide.u32 d r r",
    "mad.wide.s32 d r r d",
    "mul.wide.s16 r h h",
    "mul.wide.u16 r h h",
    "add.s64 d d d",
    "sub.s64 d d d",
    "mul.lo.s64 d d d",
    "mad.lo.s64 d d d d",
    "min.s64 d d d",
    "max.u64 d d d",
    "abs.s64 d d",
    "neg.s64 d d",
    "not.b64 d d",
    "and.b64 d d d",
    "or.b64 d d d",
    "xor.b64 d d d",
    "shl.b64 d d r",
    "shr.u64 d d r",
    "shr.s64 d d r",
    "add.rn.f32 f f f",
    "sub.rn.f32 f f f",
    "mul.rn.f32 f f f",
    "fma.rn.f32 f f f f",
    "add.rn.sat.f32 f f f",
    "mul.rn.sat.f32 f f f",
    "fma.rn.sat.f32 f f f f",
    "div.rn.f32 f f f",
    "rcp.rn.f32 f f",
    "sqrt.rn.f32 f f",
    "neg.f32 f f",
    "abs.f32 f f",
    "min.f32 f f f",
    "max.f32 f f f",
    "add.rn.f64 g g g",
    "sub.rn.f64 g g g",
    "mul.rn.f64 g g g",
    "fma.rn.f64 g g g g",
    "div.rn.f64 g g g",
    "rcp.rn.f64 g g",
    "sqrt.rn.f64 g g",
    "min.f64 g g g",
    "neg.f64 g g",
    "cvt.f64.f32 g f",
    "cvt.rn.f32.f64 f g",
    "cvt.rzi.s32.f32 r f",
    "cvt.rzi.u32.f32 r f",
    "cvt.rn.f32.s32 f r",
    "cvt.rn.f32.u32 f r",
    "cvt.rn.f32.s64 f d",
    "cvt.rn.f32.u64 f d",
    "cvt.rn.f64.s32 g r",
    "cvt.rn.f64.u32 g r",
    "cvt.rn.f64.s64 g d",
    "cvt.rn.f64.u64 g d",
    "cvt.s64.s32 d r",
    "cvt.u64.u32 d r",
    "cvt.u32.u64 r d",
    "cvt.s32.s8 r r",
    "cvt.u32.u8 r r",
    "cvt.s32.s16 r h",
    "cvt.u32.u16 r h",
    "cvt.u16.u32 h r",
    "cvt.s64.s16 d h",
    "cvt.rni.s32.f32 r f",
    "ex2.approx.f32 f f",
    "rsqrt.approx.f32 f f",
    "add.rn.ftz.f32 f f f",
    "fma.rz.f32 f f f f",
    "fma.rm.f32 f f f f",
    "fma.rp.f32 f f f f",
    "add.rm.f32 f f f",
    "sub.rp.f32 f f f",
    "mul.rz.f32 f f f",
    "popc.b32 r r",
    "bfe.u32 r r r r",
    "prmt.b32 r r r r",
    "div.s32 r r r",
    "rem.u32 r r r",
    "ex2.approx.ftz.f32 f f",
    "lg2.approx.f32 f f",
    "lg2.approx.ftz.f32 f f",
    "sin.approx.f32 f f",
    "sin.approx.ftz.f32 f f",
    "cos.approx.f32 f f",
    "cos.approx.ftz.f32 f f",
    "tanh.approx.f32 f f",
    "rcp.approx.ftz.f64 g g",
    "rsqrt.approx.ftz.f64 g g",
    "rsqrt.approx.f64 g g",
    "rcp.approx.f32 f f",
    "rcp.approx.ftz.f32 f f",
    "sqrt.approx.f32 f f",
    "sqrt.approx.ftz.f32 f f",
    "rsqrt.approx.ftz.f32 f f",
    "div.approx.f32 f f f",
    "div.approx.ftz.f32 f f f",
    "div.full.f32 f f f",
    "div.full.ftz.f32 f f f",
    "sub.ftz.f32 f f f",
    "mul.ftz.f32 f f f",
    "mul.ftz.sat.f32 f f f",
    "fma.rn.ftz.f32 f f f f",
    "div.rn.ftz.f32 f f f",
    "rcp.rn.ftz.f32 f f",
    "sqrt.rn.ftz.f32 f f",
    "neg.ftz.f32 f f",
    "abs.ftz.f32 f f",
    "min.ftz.f32 f f f",
    "max.ftz.f32 f f f",
    "min.NaN.f32 f f f",
    "max.NaN.f32 f f f",
    "max.ftz.NaN.f32 f f f",
    "max.f64 g g g",
    "abs.f64 g g",
    "rem.s32 r r r",
    "div.u32 r r r",
    "div.s64 d d d",
    "rem.s64 d d d",
    "div.u64 d d d",
    "rem.u64 d d d",
    "div.s16 h h h",
    "rem.s16 h h h",
    "add.s16 h h h",
    "sub.s16 h h h",
    "min.s16 h h h",
    "max.s16 h h h",
    "mul.lo.s16 h h h",
    "div.u16 h h h",
    "rem.u16 h h h",
    "add.u16 h h h",
    "sub.u16 h h h",
    "min.u16 h h h",
    "max.u16 h h h",
    "mul.lo.u16 h h h",
    "mad.lo.s16 h h h h",
    "neg.s16 h h",
    "abs.s16 h h",
    "not.b16 h h",
    "and.b16 h h h",
    "or.b16 h h h",
    "xor.b16 h h h",
    "shl.b16 h h r",
    "shr.u16 h h r",
    "shr.s16 h h r",
    "bfe.s32 r r r r",
    "bfe.u64 d d r r",
    "bfe.s64 d d r r",
    "bfi.b32 r r r r 7",
    "bfi.b64 d d d r 40",
    "bfi.b32 r r r r 0",
    "bfi.b32 r r r r 32",
    "bfind.u32 r r",
    "bfind.s32 r r",
    "bfind.shiftamt.u32 r r",
    "bfind.shiftamt.s32 r r",
    "bfind.u64 r d",
    "bfind.s64 r d",
    "bfind.shiftamt.s64 r d",
    "lop3.b32 r r r r 0x96",
    "lop3.b32 r r r r 0xe8",
    "lop3.b32 r r r r 0x1b",
    "lop3.b32 r r r r 0xfe",
    "shf.l.wrap.b32 r r r r",
    "shf.r.wrap.b32 r r r r",
    "shf.l.clamp.b32 r r r r",
    "shf.r.clamp.b32 r r r r",
    "prmt.b32 r r r 0x3ba4",
    "slct.b32.s32 r r r r",
    "slct.f32.f32 f f f f",
    "slct.b64.f32 d d d f",
    "slct.ftz.u32.f32 r r r f",
    "mul24.lo.s32 r r r",
    "mul24.hi.u32 r r r",
    "mul24.hi.s32 r r r",
    "mad24.lo.u32 r r r r",
    "sad.u32 r r r r",
    "sad.s32 r r r r",
    "cvt.rni.f32.f32 f f",
    "cvt.rni.f64.f64 g g",
    "cvt.rni.u64.f64 d g",
    "cvt.rzi.f32.f32 f f",
    "cvt.rzi.f64.f64 g g",
    "cvt.rzi.u64.f64 d g",
    "cvt.rmi.f32.f32 f f",
    "cvt.rmi.f64.f64 g g",
    "cvt.rmi.s32.f32 r f",
    "cvt.rmi.u64.f64 d g",
    "cvt.rpi.f32.f32 f f",
    "cvt.rpi.f64.f64 g g",
    "cvt.rpi.s32.f32 r f",
    "cvt.rpi.u64.f64 d g",
    "cvt.rpi.ftz.f32.f32 f f",
    "cvt.rpi.ftz.s32.f32 r f",
    "cvt.rzi.s64.f32 d f",
    "cvt.rzi.u64.f32 d f",
    "cvt.rzi.s32.f64 r g",
    "cvt.rzi.u32.f64 r g",
    "cvt.rmi.s64.f64 d g",
    "cvt.ftz.f64.f32 g f",
    "cvt.rn.ftz.f32.f64 f g",
    "cvt.ftz.f32.f32 f f",
    "cvt.sat.f32.f32 f f",
    "cvt.sat.f64.f64 g g",
    "cvt.f32.f16 f h",
    "cvt.rn.f16.f32 h f",
    "cvt.rn.bf16.f32 h f",
    "cvt.f32.bf16 f h",
};
static const char *const compares[] = {
    "eq.s32 r",  "ne.s32 r",  "lt.s32 r",  "le.u32 r",  "gt.s32 r",  "ge.u32 r",  "lt.u16 h",     "lt.s16 h",
    "ne.b16 h",  "eq.b32 r",  "lt.s64 d",  "ge.u64 d",  "ne.b64 d",  "eq.f32 f",  "ne.f32 f",     "lt.f32 f",
    "le.f32 f",  "gt.f32 f",  "ge.f32 f",  "equ.f32 f", "neu.f32 f", "ltu.f32 f", "leu.f32 f",    "gtu.f32 f",
    "geu.f32 f", "num.f32 f", "nan.f32 f", "lt.f64 g",  "neu.f64 g", "num.f64 g", "lt.ftz.f32 f", "neu.ftz.f32 f",
};

enum { LANES = 64, SLOTS = MG_COUNT_OF(forms) + MG_COUNT_OF(compares) * 2 + 1, BYTES = SLOTS * LANES * 8 };

static const uint32_t words[] = {0,          0x80000000, 1,          0x7fffffff, 0xffffffff, 0x3f800000, 0xbf800000,
                                 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345, 0x00000001, 0x807fffff,
                                 0x00800000, 0x7f7fffff, 0x4f000000, 0xcf000000, 0x4effffff, 0x4f800000, 31,
                                 32,         63,         64,         0x34000000, 0x5f000000, 0x3f7fffff, 0x00800001,
                                 0x3f800001, 0x7e800001, 0xc2fc0001, 0x42b17218};

static uint64_t operand(unsigned set, unsigned lane, unsigned k)
{
    uint32_t seed = set * 2654435761u + lane * 40503u + k * 2246822519u + 12345;
    seed ^= seed >> 15;
    seed *= 2246822519u;
    seed ^= seed >> 13;
    uint64_t r = (uint64_t)seed << 32 | (seed * 3266489917u ^ seed >> 7);
    unsigned n = MG_COUNT_OF(words);
    if (set % 3 == 0) r = (r & 0xffffffff00000000ull) | words[(lane * 7 + k * 11 + set) % n];
    if (set % 3 == 1) { /* f64: the same kinds of values */
        static const uint64_t doubles[] = {0,
                                           1ull << 63,
                                           0x3ff0000000000000ull,
                                           0x7ff0000000000000ull,
                                           0xfff0000000000000ull,
                                           0x7ff8000000000001ull,
                                           0xfff4000000000abcull,
                                           1,
                                           0x000fffffffffffffull,
                                           0x0010000000000000ull,
                                           0x7fefffffffffffffull,
                                           0xc3e0000000000000ull,
                                           0x41dfffffffc00000ull,
                                           0x36a0000000000000ull};
        r = doubles[(lane * 5 + k * 3 + set) % MG_COUNT_OF(doubles)];
    }
    return r;
}

/* What a kernel of forms has of them: a larger one would stay in the emulator. */
enum { PART = 40, KERNELS = (MG_COUNT_OF(forms) + PART - 1) / PART + 2 };

/* mode 0: operands by lane; 1: every third lane is off; 2: operands equal in all lanes */
static void begin_kernel(struct mg_buf *b, unsigned part)
{
    mg_buf_printf(b, ".visible .entry k%u(", part);
    mg_buf_adds(
        b,
        ".param .u64 in, .param .u64 out, .param .u32 mode)\n{\n"
        " .reg .b64 %d<9>, %i, %o; .reg .b32 %r<9>, %t, %m; .reg .b16 %h<5>; .reg .f32 %f<9>; .reg .f64 %g<9>; .reg .pred %p<5>;\n"
        " ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; ld.param.u32 %m, [mode]; mov.u32 %t, %tid.x;\n"
        " setp.eq.u32 %p1, %m, 2; @%p1 bra SAME;\n mul.wide.u32 %d1, %t, 24; add.u64 %i, %i, %d1;\n"
        " ld.global.u64 %d1, [%i]; ld.global.u64 %d2, [%i+8]; ld.global.u64 %d3, [%i+16];\n bra.uni GO;\n"
        "SAME: ld.global.u64 %d1, [%i]; ld.global.u64 %d2, [%i+8]; ld.global.u64 %d3, [%i+16];\n"
        "GO: mul.wide.u32 %d5, %t, 8; add.u64 %o, %o, %d5;\n rem.u32 %r5, %t, 3; setp.eq.u32 %p1, %m, 1; setp.eq.u32 %p2, %r5, 0; and.pred %p1, %p1, %p2; @%p1 bra END;\n");
    for (int k = 1; k < 4; k++)
        mg_buf_printf(
            b, " cvt.u32.u64 %%r%d, %%d%d; cvt.u16.u64 %%h%d, %%d%d; mov.b32 %%f%d, %%r%d; mov.b64 %%g%d, %%d%d;\n", k,
            k, k, k, k, k, k, k);
}

static void write_forms(struct mg_buf *b, unsigned part)
{
    unsigned at = part * PART * LANES * 8;
    for (unsigned i = part * PART; i < MG_COUNT_OF(forms) && i < (part + 1) * PART; i++, at += LANES * 8) {
        char op[40], c[5][8] = {{0}};
        int n = sscanf(forms[i], "%39s %7s %7s %7s %7s %7s", op, c[0], c[1], c[2], c[3], c[4]);
        mg_buf_printf(b, " %s %%%s4", op, c[0]);
        for (int k = 1; k < n - 1; k++) /* a register, or a number */
            isalpha(c[k][0]) ? mg_buf_printf(b, ", %%%s%d", c[k], k) : mg_buf_printf(b, ", %s", c[k]);
        if (c[0][0] == 'r') mg_buf_adds(b, "; cvt.u64.u32 %d4, %r4");
        if (c[0][0] == 'h') mg_buf_adds(b, "; cvt.u64.u16 %d4, %h4");
        if (c[0][0] == 'f') mg_buf_adds(b, "; mov.b32 %r4, %f4; cvt.u64.u32 %d4, %r4");
        if (c[0][0] == 'g') mg_buf_adds(b, "; mov.b64 %d4, %g4");
        mg_buf_printf(b, "; st.global.u64 [%%o+%u], %%d4;\n", at);
    }
}

static void write_compares(struct mg_buf *b)
{
    unsigned at = MG_COUNT_OF(forms) * LANES * 8;
    for (unsigned i = 0; i < MG_COUNT_OF(compares); i++) {
        char op[40], c;
        sscanf(compares[i], "%39s %c", op, &c);
        mg_buf_printf(b, " setp.%s %%p3, %%%c1, %%%c2; selp.u64 %%d4, 1, 0, %%p3; st.global.u64 [%%o+%u], %%d4;\n", op,
                      c, c, at);
        at += LANES * 8;
        char *dot = strchr(op, '.');
        *dot = 0;
        mg_buf_printf(
            b,
            " setp.lt.u32 %%p2, %%r3, %%r1; setp.%s.and.%s %%p3|%%p4, %%%c1, %%%c2, !%%p2; selp.u64 %%d4, 1, 0, %%p3; selp.u64 %%d5, 2, 0, %%p4; add.u64 %%d4, %%d4, %%d5; st.global.u64 [%%o+%u], %%d4;\n",
            op, dot + 1, c, c, at);
        at += LANES * 8;
    }
}

/* More approximate functions than have code in line. */
static void write_many(struct mg_buf *b)
{
    mg_buf_adds(b, " mov.f32 %f4, %f1;\n");
    for (int k = 0; k < 100; k++) mg_buf_adds(b, " sin.approx.f32 %f4, %f4; lg2.approx.f32 %f4, %f4;\n");
    mg_buf_printf(b, " mov.b32 %%r4, %%f4; cvt.u64.u32 %%d4, %%r4; st.global.u64 [%%o+%u], %%d4;\n",
                  (unsigned)(SLOTS - 1) * LANES * 8);
}

static void write_kernels(struct mg_buf *b)
{
    mg_buf_adds(b, ".version 8.0\n.target sm_90\n.address_size 64\n");
    for (unsigned part = 0; part < KERNELS; part++) {
        begin_kernel(b, part);
        if (part + 2 < KERNELS)
            write_forms(b, part);
        else if (part + 2 == KERNELS)
            write_compares(b);
        else
            write_many(b);
        mg_buf_adds(b, "END: ret;\n}\n");
    }
}

static struct mg_dmod *load(const struct mg_device_ops *ops, struct mg_device *dev, const struct mg_buf *text)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_module *m;
    struct mg_dmod *mod = NULL;
    if (mg_ptx_parse(text->at, text->n, "alu", &m, &d) || ops->module_load(dev, m, &mod, &d))
        mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_INPUT));
    mg_diag_release(&d);
    return mod;
}

static bool run(const struct mg_device_ops *ops, struct mg_device *dev, struct mg_dmod *mod, uint64_t in, uint64_t out,
                uint32_t mode)
{
    struct {
        uint64_t in, out;
        uint32_t mode;
    } params = {in, out, mode};
    struct mg_fault fault = {0};
    memset((void *)out, 0, BYTES);
    for (unsigned part = 0; part < KERNELS && !fault.kind; part++) {
        char name[8];
        snprintf(name, sizeof name, "k%u", part);
        struct mg_launch l = {.kernel = ops->kernel(mod, name),
                              .grid = {1, 1, 1},
                              .block = {LANES, 1, 1},
                              .params = &params,
                              .param_bytes = 20};
        ops->launch(dev, &l, NULL, &fault);
    }
    if (fault.kind) mg_test_fail(__FILE__, __LINE__, "%s", fault.text);
    return !fault.kind;
}

static unsigned compare_all(const struct mg_device_ops *cpu, const struct mg_buf *text, const char *isa)
{
    struct mg_device *a = NULL, *b = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    unsigned bad = 0;
    if (mg_emu_ops.open(&a, NULL, &d) || cpu->open(&b, NULL, &d)) {
        mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_DEVICE));
        return 1;
    }
    struct mg_dmod *ma = load(&mg_emu_ops, a, text), *mb = load(cpu, b, text);
    uint64_t in = mg_mem_alloc(LANES * 24, 0, MG_ALLOC_DEVICE), one = mg_mem_alloc(BYTES, 0, MG_ALLOC_DEVICE),
             two = mg_mem_alloc(BYTES, 0, MG_ALLOC_DEVICE);
    for (unsigned set = 0; set < 60 && ma && mb && bad < 10; set++) {
        for (unsigned i = 0; i < LANES * 3; i++) ((uint64_t *)in)[i] = operand(set, i / 3, i % 3);
        uint32_t mode = set / 3 % 3;
        if (!run(&mg_emu_ops, a, ma, in, one, mode) || !run(cpu, b, mb, in, two, mode)) break;
        for (unsigned i = 0; i < SLOTS * LANES; i++) {
            uint64_t x = ((uint64_t *)one)[i], y = ((uint64_t *)two)[i];
            unsigned f = i / LANES, c = (f - MG_COUNT_OF(forms)) / 2;
            if (x == y || bad++ >= 10) continue;
            const char *what = f < MG_COUNT_OF(forms) ? forms[f] : c < MG_COUNT_OF(compares) ? compares[c] : "many";
            mg_test_fail(__FILE__, __LINE__, "%s: %s (%u), set %u, lane %u: %llx, the emulator has %llx", isa, what, f,
                         set, i % LANES, (unsigned long long)y, (unsigned long long)x);
        }
    }
    mg_mem_free(in);
    mg_mem_free(one);
    mg_mem_free(two);
    mg_emu_ops.close(a);
    cpu->close(b);
    mg_diag_release(&d);
    return bad;
}

/* What the device says of its kernels (MARGAY_CPU_VERBOSE) goes into a file while they run. */
static int begin_listening(FILE *to)
{
    int old = dup(2);
    fflush(stderr);
    dup2(fileno(to), 2);
    return old;
}
static void end_listening(FILE *said, int old, const char *isa)
{
    char line[500];
    fflush(stderr);
    dup2(old, 2);
    close(old);
    rewind(said);
    while (fgets(line, sizeof line, said))
        if (strstr(line, "emulated")) mg_test_fail(__FILE__, __LINE__, "%s: %s", isa, line);
    rewind(said);
    if (ftruncate(fileno(said), 0)) mg_test_fail(__FILE__, __LINE__, "%s: cannot empty a file", isa);
}

MG_TEST(cpu_alu)
{
#ifdef MG_ASAN
    if (!getenv("MG_CPU_ASAN")) {
        mg_test_skip("LLVM is not run under the address sanitizer");
        return;
    }
#endif
    static const char *const isas[] = {"avx512", "avx2", "base"};
    const struct mg_device_ops *cpu = mg_cpu_ops();
    struct mg_diag diag = MG_DIAG_INIT;
    struct mg_device *dev;
    struct mg_buf text = MG_BUF_INIT;
    setenv("MARGAY_CPU_TIER", "sync", 1);
    setenv("MARGAY_CPU_VERIFY", "1", 1);
    setenv("MARGAY_CPU_VERBOSE", "1", 1);
    FILE *said = tmpfile();
    if (!said || cpu->open(&dev, NULL, &diag))
        mg_test_skip(mg_diag_first(&diag, MG_ERR_UNSUPPORTED));
    else {
        cpu->close(dev);
        write_kernels(&text);
        const char *own = getenv("MARGAY_ISA"), *wish = own ? own : getenv("ISA"); /* tests/run */
        for (size_t i = 0; i < MG_COUNT_OF(isas); i++) {
            if (wish && !strstr(wish, isas[i])) continue;
            setenv("MARGAY_ISA", isas[i], 1);
            int old = begin_listening(said);
            compare_all(cpu, &text, isas[i]);
            end_listening(said, old, isas[i]);
        }
        if (!own) unsetenv("MARGAY_ISA");
        mg_buf_release(&text);
    }
    unsetenv("MARGAY_CPU_VERBOSE");
    if (said) fclose(said);
    mg_diag_release(&diag);
}
