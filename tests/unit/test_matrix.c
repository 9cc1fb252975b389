/* mma on the emulator, every type, at each vector ISA, against a model of its own: fragments are
 * placed by PTX ISA's formulas, sums are taken in integers (matrix.h says how floats are cut). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"
#include "test.h"

typedef __int128 wide;

struct form {
    const char *text; /* after "mma.sync.aligned." */
    unsigned m, n, k;
    char a, b, c, d; /* h f16, b bf16, t tf32, e e4m3, E e5m2, d f64, s f32 or s32, S s8, U u8, i s4, u u4, 1 b1 */
    bool sat, is_and;
    int sparse; /* selector, -1: dense */
};

static unsigned bits_of(char t)
{
    return strchr("hb", t) ? 16 : strchr("ts", t) ? 32 : t == 'd' ? 64 : strchr("eESU", t) ? 8 : t == '1' ? 1 : 4;
}
static bool is_int(char t)
{
    return strchr("SUiu1", t) != NULL;
}

static uint32_t rng = 1;
static uint32_t next(void)
{
    rng = rng * 1664525u + 1013904223u;
    return rng >> 8;
}

/* value = mant * 2^exp; unit exponent: of the leading bit of a normal number of that exponent field */
struct number {
    int64_t mant;
    int exp, top;
};
static struct number read_number(char t, uint32_t u)
{
    int eb = t == 'h' || t == 'E' ? 5
             : t == 'e'           ? 4
                                  : 8,
        mb = t == 'h'   ? 10
             : t == 'b' ? 7
             : t == 't' ? 10
             : t == 'e' ? 3
             : t == 'E' ? 2
                        : 23;
    if (t == 't') u >>= 13;
    int e = (int)(u >> mb & ((1u << eb) - 1)), bias = (1 << (eb - 1)) - 1;
    int64_t m = u & ((1u << mb) - 1);
    if (e) m |= 1 << mb;
    struct number r = {u >> (eb + mb) & 1 ? -m : m, (e ? e : 1) - bias - mb, (e ? e : 1) - bias};
    return r;
}

/* The rule of matrix.h in whole numbers. half: the result is an f16. */
static uint32_t float_sum(const struct number *p, unsigned n, struct number c, bool half)
{
    int top = -126;
    for (unsigned i = 0; i < n; i++)
        if (p[i].mant && p[i].top > top) top = p[i].top;
    if (c.mant && c.top > top) top = c.top;
    int unit = top - 25;
    wide sum = 0;
    for (unsigned i = 0; i <= n; i++) {
        struct number x = i < n ? p[i] : c;
        wide m = x.mant < 0 ? -(wide)x.mant : x.mant;
        int shift = x.exp - unit;
        m = shift >= 0 ? m << shift : shift < -100 ? 0 : m >> -shift;
        sum += x.mant < 0 ? -m : m;
    }
    bool negative = sum < 0;
    uint64_t m = (uint64_t)(negative ? -sum : sum);
    if (half) { /* to nearest even */
        double v = ldexp((double)m, unit), step = v < 0x1p-14 ? 0x1p-24 : ldexp(1, ilogb(v) - 10),
               n_steps = nearbyint(v / step);
        v = n_steps * step;
        if (v >= 65520) return 0x7c00u | (negative ? 0x8000u : 0);
        uint32_t code = v < 0x1p-14
                            ? (uint32_t)(v / 0x1p-24)
                            : (uint32_t)((ilogb(v) + 15) << 10) + (uint32_t)(v / ldexp(1, ilogb(v) - 10)) - 1024;
        return code | (negative ? 0x8000u : 0);
    }
    if (!m) return 0;
    int e = unit;
    while (m >> 24) m >>= 1, e++;
    while (e < -149) m >>= 1, e++;
    float f = (float)ldexp((double)m, e);
    uint32_t u;
    if (negative) f = -f;
    memcpy(&u, &f, 4);
    return u;
}

static int32_t read_int(char t, uint32_t u)
{
    return t == 'S'   ? (int8_t)u
           : t == 'U' ? (uint8_t)u
           : t == 'i' ? (int32_t)(u << 28) >> 28
           : t == 'u' ? (int32_t)(u & 15)
                      : (int32_t)(u & 1);
}

static uint32_t random_bits(char t, unsigned mode)
{
    uint32_t u = next();
    switch (t) {
    case 'h':
        return mode == 0   ? (u & 0x84ff) | 0x3c00
               : mode == 1 ? (u & 0x83ff) | ((u >> 16) % 24) << 10
                           : 0x3c00u * (u & 1);
    case 'b':
        return mode == 2 ? 0x3f80 * (u & 1) : (u & 0x80ff) | (0x3e80 + (u >> 4 & 0x300) * mode);
    case 't':
    case 's':
        return mode == 2 ? 0x3f800000u + 0x800000u * (u & 1)
                         : (u << 8 & 0x807fffff) | (next() & 0x7fff) | ((120 + (u & 15) * (mode + 1) / 2) << 23);
    case 'e':
        return (u & 0x7f) == 0x7f ? 0 : u & 0xff;
    case 'E':
        return (u & 0x7c) == 0x7c ? 0x3c : u & 0xff;
    case '1':
        return u >> 5 & 1;
    default:
        return bits_of(t) < 32 ? u & ((1u << bits_of(t)) - 1) : 0; /* wider ones are made elsewhere */
    }
}

static void put_bits(uint8_t *p, unsigned at, unsigned bits, uint32_t v)
{
    if (bits >= 8)
        memcpy(p + at * (bits / 8), &v, bits / 8);
    else
        p[at * bits / 8] = (uint8_t)((p[at * bits / 8] & ~(((1u << bits) - 1) << at * bits % 8)) | v << at * bits % 8);
}

enum {
    MAX_REGS = 8,
    A_AT = 0,
    B_AT = MAX_REGS * 256,
    C_AT = 2 * B_AT,
    D_AT = 3 * B_AT,
    META_AT = 4 * B_AT,
    BYTES = 5 * B_AT
};

static void registers(struct mg_buf *b, char name, unsigned n)
{
    mg_buf_adds(b, "{");
    for (unsigned i = 0; i < n; i++) mg_buf_printf(b, "%s%%%c%u", i ? ", " : "", name, i);
    mg_buf_adds(b, "}");
}

static char *kernel_text(const struct form *f, unsigned na, unsigned nb, unsigned nc, unsigned nd)
{
    struct mg_buf b = MG_BUF_INIT;
    bool f64 = f->a == 'd';
    const char *reg = f64 ? "f64" : "b32", *c = f->c == 's' && !is_int(f->a) ? "f32" : reg,
               *d = f->d == 's' && !is_int(f->a) ? "f32" : reg;
    mg_buf_printf(
        &b,
        ".version 8.5\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n .reg .b64 %%p, %%q; .reg .b32 %%t, %%m;\n .reg .%s %%a<8>, %%b<8>; .reg .%s %%c<8>; .reg .%s %%d<8>;\n",
        reg, c, d);
    mg_buf_printf(
        &b, " ld.param.u64 %%p, [p];\n mov.u32 %%t, %%laneid;\n mul.wide.u32 %%q, %%t, %u;\n add.u64 %%p, %%p, %%q;\n",
        f64 ? 8 : 4);
    for (unsigned i = 0; i < na; i++) mg_buf_printf(&b, " ld.global.%s %%a%u, [%%p+%u];\n", reg, i, A_AT + 256 * i);
    for (unsigned i = 0; i < nb; i++) mg_buf_printf(&b, " ld.global.%s %%b%u, [%%p+%u];\n", reg, i, B_AT + 256 * i);
    for (unsigned i = 0; i < nc; i++) mg_buf_printf(&b, " ld.global.%s %%c%u, [%%p+%u];\n", c, i, C_AT + 256 * i);
    if (f->sparse >= 0) mg_buf_printf(&b, " ld.global.b32 %%m, [%%p+%u];\n", META_AT);
    mg_buf_printf(&b, " mma.%ssync.aligned.%s ", f->sparse >= 0 ? "sp::ordered_metadata." : "", f->text);
    registers(&b, 'd', nd), mg_buf_adds(&b, ", "), registers(&b, 'a', na), mg_buf_adds(&b, ", "),
        registers(&b, 'b', nb), mg_buf_adds(&b, ", "), registers(&b, 'c', nc);
    if (f->sparse >= 0) mg_buf_printf(&b, ", %%m, %d", f->sparse);
    mg_buf_adds(&b, ";\n");
    for (unsigned i = 0; i < nd; i++) mg_buf_printf(&b, " st.global.%s [%%p+%u], %%d%u;\n", d, D_AT + 256 * i, i);
    mg_buf_adds(&b, " ret;\n}\n");
    return mg_buf_take(&b);
}

/* PTX ISA: register r, element j of it, of a lane: row and column */
static void place_ab(const struct form *f, bool is_b, unsigned r, unsigned j, unsigned lane, unsigned *row, unsigned *k)
{
    unsigned e = f->a == 'd' ? 1 : 32 / bits_of(is_b ? f->b : f->a), rows = is_b ? 1 : f->m / 8;
    *row = lane / 4 + 8 * (r % rows);
    *k = lane % 4 * e + j + r / rows * 4 * e;
}

static void check_form(struct mg_device *dev, const struct form *f, unsigned mode)
{
    static const unsigned pairs[6][2] = {{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}};
    unsigned ab = bits_of(f->a), e = f->a == 'd' ? 1 : 32 / ab, ka = f->sparse >= 0 ? f->k / 2 : f->k;
    unsigned na = f->m / 8 * (ka / (4 * e)), nb = f->k / (4 * e), nc = f->m / 8 * (f->c == 'h' ? 1 : 2),
             nd = f->m / 8 * (f->d == 'h' ? 1 : 2);
    static uint32_t a[16][256], b[256][8], dense[16][256], c[16][8];
    static double x[16][16], y[16][8], z[16][8];
    uint64_t at = mg_mem_alloc(BYTES, 0, MG_ALLOC_DEVICE);
    uint8_t *mem = (uint8_t *)at;
    memset(mem, 0, BYTES);
    memset(dense, 0, sizeof dense);
    for (unsigned i = 0; i < f->m; i++)
        for (unsigned k = 0; k < ka; k++)
            a[i][k] = dense[i][k] = random_bits(f->a, mode),
            x[i][k & 15] = (int)(next() % 2001) * 0x1p-5 - 30 + (double)next() * 0x1p-60;
    for (unsigned k = 0; k < f->k; k++)
        for (unsigned j = 0; j < f->n; j++)
            b[k][j] = random_bits(f->b, mode),
            y[k & 15][j] = (int)(next() % 2001) * 0x1p-3 - 99 + (double)next() * 0x1p-58;
    for (unsigned i = 0; i < f->m; i++)
        for (unsigned j = 0; j < f->n; j++)
            c[i][j] =
                is_int(f->a) ? (f->sat ? (next() & 1 ? 0x7fffff00u : 0x80000020u) : next()) : random_bits(f->c, mode),
            z[i][j] = (double)next() - 1e5;
    if (f->sparse >= 0) { /* 2 of 4 elements; of tf32 1 of 2 */
        memset(dense, 0, sizeof dense);
        unsigned groups = f->a == 't' ? f->k / 2 : f->k / 4;
        for (unsigned i = 0; i < f->m; i++)
            for (unsigned g = 0; g < groups; g++) {
                const unsigned *p = pairs[next() % 6];
                unsigned code = p[0] | p[1] << 2, which = next() & 1, lane = i % 8 * 4, shift;
                if (f->a == 't')
                    dense[i][2 * g + which] = a[i][g], code = which ? 14 : 4;
                else
                    dense[i][4 * g + p[0]] = a[i][2 * g], dense[i][4 * g + p[1]] = a[i][2 * g + 1];
                if (ab == 8 && groups == 16)
                    lane += g / 8 * 2 + i / 8, shift = g % 8 * 4; /* all lanes: one row each */
                else
                    lane += groups > 4 ? 2 * (unsigned)f->sparse + g / 4 : (unsigned)f->sparse,
                        shift = i / 8 * 16 + g % 4 * 4;
                uint32_t m;
                memcpy(&m, mem + META_AT + 4 * lane, 4);
                m |= code << shift;
                memcpy(mem + META_AT + 4 * lane, &m, 4);
            }
    }
    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned row, k;
        for (unsigned r = 0; r < na; r++)
            for (unsigned j = 0; j < e; j++) {
                place_ab(f, false, r, j, lane, &row, &k);
                if (f->a == 'd')
                    memcpy(mem + A_AT + 256 * r + 8 * lane, &x[row][k], 8);
                else
                    put_bits(mem + A_AT + 256 * r + 4 * lane, j, ab, a[row][k]);
            }
        for (unsigned r = 0; r < nb; r++)
            for (unsigned j = 0; j < e; j++) {
                place_ab(f, true, r, j, lane, &row, &k);
                if (f->a == 'd')
                    memcpy(mem + B_AT + 256 * r + 8 * lane, &y[k][row], 8);
                else
                    put_bits(mem + B_AT + 256 * r + 4 * lane, j, ab, b[k][row]);
            }
        for (unsigned i = 0; i < f->m; i += 8)
            for (unsigned q = 0; q < 2; q++) {
                unsigned rr = i + lane / 4, cc = 2 * (lane % 4) + q;
                if (f->a == 'd')
                    memcpy(mem + C_AT + 256 * (i / 8 * 2 + q) + 8 * lane, &z[rr][cc], 8);
                else if (f->c == 'h')
                    memcpy(mem + C_AT + 256 * (i / 8) + 4 * lane + 2 * q, &c[rr][cc], 2);
                else
                    memcpy(mem + C_AT + 256 * (i / 8 * 2 + q) + 4 * lane, &c[rr][cc], 4);
            }
    }
    char *text = kernel_text(f, na, nb, nc, nd);
    struct mg_diag diag = MG_DIAG_INIT;
    struct mg_module *m;
    struct mg_dmod *mod = NULL;
    struct mg_fault fault = {0};
    if (mg_ptx_parse(text, strlen(text), "mma", &m, &diag) || mg_emu_ops.module_load(dev, m, &mod, &diag)) {
        mg_test_fail(__FILE__, __LINE__, "%s: %s", f->text, mg_diag_first(&diag, MG_ERR_INPUT));
        return;
    }
    struct mg_launch l = {
        .kernel = mg_emu_ops.kernel(mod, "k"), .grid = {1, 1, 1}, .block = {32, 1, 1}, .params = &at, .param_bytes = 8};
    mg_emu_ops.launch(dev, &l, NULL, &fault);
    if (fault.kind) mg_test_fail(__FILE__, __LINE__, "%s: %s", f->text, fault.text);
    unsigned bad = 0;
    for (unsigned i = 0; i < f->m; i++)
        for (unsigned j = 0; j < f->n; j++) {
            unsigned lane = i % 8 * 4 + j / 2, reg = i / 8 * 2 + (j & 1);
            uint64_t got = 0, want = 0;
            if (f->a == 'd') {
                double s = z[i][j];
                for (unsigned k = 0; k < f->k; k++) s = fma(x[i][k], y[k][j], s);
                memcpy(&want, &s, 8), memcpy(&got, mem + D_AT + 256 * reg + 8 * lane, 8);
            } else if (is_int(f->a)) {
                int64_t s = 0;
                for (unsigned k = 0; k < f->k; k++) {
                    if (f->a == '1')
                        s += f->is_and ? dense[i][k] & b[k][j] : dense[i][k] ^ b[k][j];
                    else
                        s += (int64_t)read_int(f->a, dense[i][k]) * read_int(f->b, b[k][j]);
                }
                s += (int32_t)c[i][j];
                if (f->sat) s = s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s;
                want = (uint32_t)s, memcpy(&got, mem + D_AT + 256 * reg + 4 * lane, 4);
            } else {
                struct number p[256];
                for (unsigned k = 0; k < f->k; k++) {
                    struct number u = read_number(f->a, dense[i][k]), v = read_number(f->b, b[k][j]);
                    p[k] = (struct number){u.mant * v.mant, u.exp + v.exp, u.top + v.top};
                }
                want = float_sum(p, f->k, read_number(f->c, c[i][j]), f->d == 'h');
                if (f->d == 'h')
                    memcpy(&got, mem + D_AT + 256 * (i / 8) + 4 * lane + 2 * (j & 1), 2);
                else
                    memcpy(&got, mem + D_AT + 256 * reg + 4 * lane, 4);
            }
            if (got != want && !bad++)
                mg_test_fail(__FILE__, __LINE__, "%s (input %u): element %u,%u is %#llx, want %#llx", f->text, mode, i,
                             j, (unsigned long long)got, (unsigned long long)want);
        }
    if (fault.kind == MG_FAULT_NONE) mg_emu_ops.module_unload(mod);
    mg_diag_release(&diag);
    free(text);
    mg_mem_free(at);
}

static const struct form forms[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 8, 16, 'h', 'h', 's', 's', .sparse = -1},
    {"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 8, 'h', 'h', 's', 's', .sparse = -1},
    {"m16n8k16.row.col.f16.f16.f16.f16", 16, 8, 16, 'h', 'h', 'h', 'h', .sparse = -1},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 8, 16, 'b', 'b', 's', 's', .sparse = -1},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, 8, 'b', 'b', 's', 's', .sparse = -1},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 8, 't', 't', 's', 's', .sparse = -1},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 16, 8, 4, 't', 't', 's', 's', .sparse = -1},
    {"m16n8k32.row.col.f32.e4m3.e5m2.f32", 16, 8, 32, 'e', 'E', 's', 's', .sparse = -1},
    {"m16n8k32.row.col.f16.e5m2.e4m3.f16", 16, 8, 32, 'E', 'e', 'h', 'h', .sparse = -1},
    {"m8n8k4.row.col.f64.f64.f64.f64", 8, 8, 4, 'd', 'd', 'd', 'd', .sparse = -1},
    {"m16n8k4.row.col.f64.f64.f64.f64", 16, 8, 4, 'd', 'd', 'd', 'd', .sparse = -1},
    {"m16n8k8.row.col.f64.f64.f64.f64", 16, 8, 8, 'd', 'd', 'd', 'd', .sparse = -1},
    {"m16n8k16.row.col.f64.f64.f64.f64", 16, 8, 16, 'd', 'd', 'd', 'd', .sparse = -1},
    {"m8n8k16.row.col.s32.s8.u8.s32", 8, 8, 16, 'S', 'U', 's', 's', .sparse = -1},
    {"m16n8k16.row.col.s32.u8.s8.s32", 16, 8, 16, 'U', 'S', 's', 's', .sparse = -1},
    {"m16n8k32.row.col.satfinite.s32.s8.s8.s32", 16, 8, 32, 'S', 'S', 's', 's', .sat = true, .sparse = -1},
    {"m16n8k32.row.col.s32.u4.s4.s32", 16, 8, 32, 'u', 'i', 's', 's', .sparse = -1},
    {"m8n8k32.row.col.satfinite.s32.s4.s4.s32", 8, 8, 32, 'i', 'i', 's', 's', .sat = true, .sparse = -1},
    {"m16n8k64.row.col.s32.s4.u4.s32", 16, 8, 64, 'i', 'u', 's', 's', .sparse = -1},
    {"m8n8k128.row.col.s32.b1.b1.s32.xor.popc", 8, 8, 128, '1', '1', 's', 's', .sparse = -1},
    {"m16n8k128.row.col.s32.b1.b1.s32.and.popc", 16, 8, 128, '1', '1', 's', 's', .is_and = true, .sparse = -1},
    {"m16n8k256.row.col.s32.b1.b1.s32.xor.popc", 16, 8, 256, '1', '1', 's', 's', .sparse = -1},
    {"m16n8k32.row.col.f32.f16.f16.f32", 16, 8, 32, 'h', 'h', 's', 's', .sparse = 1},
    {"m16n8k16.row.col.f16.f16.f16.f16", 16, 8, 16, 'h', 'h', 'h', 'h', .sparse = 3},
    {"m16n8k16.row.col.f32.tf32.tf32.f32", 16, 8, 16, 't', 't', 's', 's', .sparse = 0},
    {"m16n8k64.row.col.s32.s8.u8.s32", 16, 8, 64, 'S', 'U', 's', 's', .sparse = 0},
};

MG_TEST(emu_matrix)
{
    static const char *const isas[] = {"base", "avx2", "avx512"};
    const char *old = getenv("MARGAY_ISA");
    char *kept = old ? strdup(old) : NULL;
    for (unsigned isa = 0; isa < 3; isa++) {
        struct mg_device *dev;
        struct mg_diag diag = MG_DIAG_INIT;
        struct mg_device_opts opts = {.size = sizeof opts, .workers = 1};
        setenv("MARGAY_ISA", isas[isa], 1);
        rng = 1;
        MG_CHECK(!mg_emu_ops.open(&dev, &opts, &diag));
        for (unsigned i = 0; i < MG_COUNT_OF(forms); i++)
            for (unsigned mode = 0; mode < 3; mode++) check_form(dev, &forms[i], mode);
        mg_emu_ops.close(dev);
        mg_diag_release(&diag);
    }
    if (kept)
        setenv("MARGAY_ISA", kept, 1);
    else
        unsetenv("MARGAY_ISA");
    free(kept);
}
