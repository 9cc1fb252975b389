/* Compiled arithmetic against the emulator's, bit for bit, for every 32-bit operand: a form over all 2^32 values of its
 * first operand, the others random by seed. `functions [--seed N] [--every N] FORM...`; a form is an instruction with
 * the letters of its operands, r or f, as "ex2.approx.f32 f f". Without forms: the list below. --every N: each Nth
 * block of 2^24. A form behind "near " gets operands whose product, quotient or sum lies about 2^-126, where .ftz
 * decides. MARGAY_ISA chooses the code that is compared. Prints a line a form, exits with 1 if one differs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"

#define BLOCK (1u << 24) /* operands a launch */

static const char *const usual[] = {
    "ex2.approx.f32 f f",
    "lg2.approx.f32 f f",
    "sin.approx.f32 f f",
    "cos.approx.f32 f f",
    "rcp.approx.f32 f f",
    "rsqrt.approx.f32 f f",
    "sqrt.approx.f32 f f",
    "tanh.approx.f32 f f",
    "ex2.approx.ftz.f32 f f",
    "lg2.approx.ftz.f32 f f",
    "sin.approx.ftz.f32 f f",
    "cos.approx.ftz.f32 f f",
    "rcp.approx.ftz.f32 f f",
    "rsqrt.approx.ftz.f32 f f",
    "sqrt.approx.ftz.f32 f f",
    "div.approx.f32 f f f",
    "div.approx.ftz.f32 f f f",
    "div.full.f32 f f f",
    "div.full.ftz.f32 f f f",
    "add.ftz.f32 f f f",
    "mul.ftz.f32 f f f",
    "fma.rn.ftz.f32 f f f f",
    "div.rn.ftz.f32 f f f",
    "rcp.rn.ftz.f32 f f",
    "sqrt.rn.ftz.f32 f f",
    "near mul.ftz.f32 f f f",
    "near fma.rn.ftz.f32 f f f f",
    "near div.rn.ftz.f32 f f f",
    "near div.approx.ftz.f32 f f f",
    "near div.full.ftz.f32 f f f",
};

struct side {
    const struct mg_device_ops *ops;
    struct mg_device *dev;
    struct mg_dmod *mod;
    uint64_t out;
};

static void write_kernel(struct mg_buf *b, const char *form)
{
    char op[64], c[4] = {0};
    bool near = !strncmp(form, "near ", 5), quotient = strstr(form, "div") != NULL;
    if (near) form += 5;
    int n = sscanf(form, "%63s %c %c %c %c", op, &c[0], &c[1], &c[2], &c[3]);
    mg_buf_adds(
        b,
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 base, .param .u32 "
        "seed)\n{\n .reg .b64 %o, %a; .reg .b32 %r<6>, %s, %t, %u; .reg .f32 %f<6>;\n"
        " ld.param.u64 %o, [out]; ld.param.u32 %r1, [base]; ld.param.u32 %s, [seed];\n"
        " mov.u32 %t, %ctaid.x; mov.u32 %u, %tid.x; mad.lo.u32 %t, %t, 256, %u; mul.wide.u32 %a, %t, 4;\n"
        " add.u64 %o, %o, %a; add.u32 %r1, %r1, %t; xor.b32 %u, %r1, %s;\n");
    for (int k = 2; k < 4; k++)
        mg_buf_printf(
            b,
            " shr.u32 %%r%d, %%u, 15; xor.b32 %%u, %%u, %%r%d; mul.lo.u32 %%u, %%u, %u; shr.u32 %%r%d, %%u, 13; xor.b32 %%u, %%u, %%r%d; mov.b32 %%r%d, %%u;\n",
            k, k, k == 2 ? 2246822519u : 3266489917u, k, k, k);
    if (near) /* r2 = 2^-126 / r1, or r1 / 2^-126, and 4 units of the last place about; r3 about 2^-126 */
        mg_buf_printf(
            b,
            " mov.b32 %%f1, %%r1; mov.f32 %%f2, 0f00800000; div.rn.f32 %%f2, %%f%d, %%f%d; and.b32 %%r2, %%r2, 7; "
            "mov.b32 %%u, %%f2; add.u32 %%r2, %%r2, %%u; sub.u32 %%r2, %%r2, 4; and.b32 %%r3, %%r3, 0x81ffffff;\n",
            quotient ? 1 : 2, quotient ? 2 : 1);
    for (int k = 1; k < 4; k++) mg_buf_printf(b, " mov.b32 %%f%d, %%r%d;\n", k, k);
    mg_buf_printf(b, " %s %%%c4", op, c[0]);
    for (int k = 1; k < n - 1; k++) mg_buf_printf(b, ", %%%c%d", c[k], k);
    mg_buf_printf(b, ";\n%s st.global.u32 [%%o], %%r4; ret;\n}\n", c[0] == 'f' ? " mov.b32 %r4, %f4;\n" : "");
}

static bool start(struct side *s, const struct mg_device_ops *ops, const struct mg_buf *text)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_module *m;
    s->ops = ops;
    bool ok = !ops->open(&s->dev, NULL, &d) && !mg_ptx_parse(text->at, text->n, "functions", &m, &d) &&
              !ops->module_load(s->dev, m, &s->mod, &d);
    if (!ok) fprintf(stderr, "%s\n", mg_diag_first(&d, MG_ERR_INPUT));
    mg_diag_release(&d);
    s->out = mg_mem_alloc(BLOCK * 4ull, 0, MG_ALLOC_DEVICE);
    return ok;
}

static bool run(struct side *s, uint32_t base, uint32_t seed)
{
    struct {
        uint64_t out;
        uint32_t base, seed;
    } params = {s->out, base, seed};
    struct mg_fault fault;
    struct mg_launch l = {.kernel = s->ops->kernel(s->mod, "k"),
                          .grid = {BLOCK / 256, 1, 1},
                          .block = {256, 1, 1},
                          .params = &params,
                          .param_bytes = sizeof params};
    s->ops->launch(s->dev, &l, NULL, &fault);
    if (fault.kind) fprintf(stderr, "%s\n", fault.text);
    return !fault.kind;
}

/* How many results differ; UINT64_MAX: it did not run. */
static uint64_t compare(const char *form, uint32_t seed, unsigned every, uint64_t *n)
{
    struct mg_buf text = MG_BUF_INIT;
    struct side emu = {0}, cpu = {0};
    uint64_t bad = 0;
    write_kernel(&text, form);
    if (!start(&emu, &mg_emu_ops, &text) || !start(&cpu, mg_cpu_ops(), &text)) return UINT64_MAX;
    for (unsigned b = 0; b < 256; b += every) {
        if (!run(&emu, b << 24, seed) || !run(&cpu, b << 24, seed)) return UINT64_MAX;
        const uint32_t *want = (const uint32_t *)emu.out, *got = (const uint32_t *)cpu.out;
        *n += BLOCK;
        if (!memcmp(want, got, BLOCK * 4ull)) continue;
        for (uint32_t i = 0; i < BLOCK; i++)
            if (want[i] != got[i] && !bad++)
                printf("  %s of %08x: %08x, the emulator has %08x\n", form, b << 24 | i, got[i], want[i]);
    }
    mg_mem_free(emu.out);
    mg_mem_free(cpu.out);
    emu.ops->close(emu.dev);
    cpu.ops->close(cpu.dev);
    mg_buf_release(&text);
    return bad;
}

int main(int argc, char **argv)
{
    uint32_t seed = 1, every = 1;
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2)
        *(strcmp(argv[i], "--seed") ? &every : &seed) = (uint32_t)strtoul(argv[i + 1], NULL, 0);
    setenv("MARGAY_CPU_TIER", "sync", 1);
    setenv("MARGAY_CPU_STORE", "off", 1);
    bool own = i < argc, differ = false;
    for (int k = 0; k < (own ? argc - i : (int)MG_COUNT_OF(usual)); k++) {
        const char *form = own ? argv[i + k] : usual[k];
        uint64_t n = 0, bad = compare(form, seed, every ? every : 1, &n);
        differ = differ || bad;
        printf("%-30s %llu operands, %lld differ\n", form, (unsigned long long)n, (long long)bad);
        fflush(stdout);
    }
    return differ;
}
