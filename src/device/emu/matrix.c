/* Matrix operations of a warp: fragments to and from rows of bytes, shared and global memory. The
 * arithmetic is in vec_matrix.c, wgmma's operands in wgmma.c; matrix.h has the layouts. */
#include "device/emu/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/emu/async.h"
#include "device/emu/check.h"

static const uint32_t *regs_a(const struct emu_matrix *x)
{
    return x->reg;
}
static const uint32_t *regs_b(const struct emu_matrix *x)
{
    return x->reg + x->n_a;
}

bool emu_matrix_same(const struct emu_matrix *a, const struct emu_matrix *b)
{
    return a->kind == b->kind && a->flags == b->flags && a->a == b->a && a->b == b->b && a->c == b->c && a->d == b->d &&
           a->m == b->m && a->n == b->n && a->k == b->k && a->role == b->role && a->sparse == b->sparse &&
           a->n_a == b->n_a && a->n_b == b->n_b && a->n_c == b->n_c && a->n_d == b->n_d;
}

double emu_matrix_value(enum mg_type t, uint32_t u)
{
    int eb = t == MG_TYPE_f16 || t == MG_TYPE_e5m2 ? 5
             : t == MG_TYPE_e4m3                   ? 4
                                                   : 8,
        mb = t == MG_TYPE_f16    ? 10
             : t == MG_TYPE_e5m2 ? 2
             : t == MG_TYPE_e4m3 ? 3
             : t == MG_TYPE_bf16 ? 7
                                 : 10;
    if (t == MG_TYPE_tf32) u >>= 13;
    uint32_t top = (1u << eb) - 1, e = u >> mb & top, m = u & ((1u << mb) - 1);
    double v;
    if (t == MG_TYPE_e4m3)
        v = (u & 0x7f) == 0x7f ? NAN : e ? ldexp(8 + m, (int)e - 10) : ldexp(m, -9);
    else if (e == top)
        v = m ? NAN : INFINITY;
    else
        v = ldexp((e ? 1u << mb : 0) + m, (int)(e ? e : 1) - (int)(top >> 1) - mb);
    return u >> (eb + mb) & 1 ? -v : v;
}

/* ---- fragments -------------------------------------------------------------------------------- */

/* Two of four elements (one of two for 32 bits, two pairs of four for 4 bits) are stored; the
 * metadata says which. Threads of a quad hold it in pieces, as PTX ISA's figures have it. */
void emu_matrix_expand(const struct emu_matrix *x, const char *regs, const uint8_t *const *packed, uint8_t (*out)[128])
{
    uint32_t bits = mg_type_bits((enum mg_type)x->a),
             groups = x->k * bits /
                      (bits == 32  ? 64
                       : bits == 4 ? 32
                                   : bits * 4),
             selector = x->sparse - 1u, mt = x->m / 8u;
    const uint32_t *meta = (const uint32_t *)(const void *)(regs + x->reg[x->n_a + x->n_b + x->n_c + x->n_d]);
    bool words = bits <= 8; /* a lane holds 32 bits of one row; else 16 bits of row g and of g + 8 */
    memset(out, 0, (size_t)mt * (emu_matrix_row_bytes(x) / 16) * 128);
    for (uint32_t r = 0; r < x->m; r++)
        for (uint32_t g = 0; g < groups; g++) {
            uint32_t quad = r % 8 * 4, low = r >= 8, lane, code,
                     piece = bits == 4 ? 1 : bits / 8; /* bytes moved at once */
            if (words) {
                lane = quad + (groups > 8 ? g / 8 * 2 : 2 * selector) + low;
                code = meta[lane] >> 4 * (g % 8);
            } else {
                lane = quad + (groups > 4 ? 2 * selector + g / 4 : selector);
                code = meta[lane] >> 16 * low >> 4 * (g % 4);
            }
            for (uint32_t e = 0; e < (bits == 32 ? 1u : 2u); e++) {
                uint32_t from = bits == 32 ? 4 * g : piece * (2 * g + e),
                         to = bits == 32 ? 8 * g + (code >> 1 & 1) * 4 : piece * (4 * g + (code >> 2 * e & 3));
                memcpy(out[r / 8 + mt * (to / 16)] + r % 8 * 16 + to % 16,
                       packed[r / 8 + mt * (from / 16)] + r % 8 * 16 + from % 16, piece);
            }
        }
}

static void multiply(const struct emu_matrix *x, char *regs)
{
    const uint8_t *a[EMU_MAX_TILES_A], *b[EMU_MAX_TILES_B], (*dense)[128];
    uint8_t space[EMU_MAX_TILES_A][128];
    if (x->a == MG_TYPE_f64) {
        x->ops->product_f64(x, regs);
        return;
    }
    for (uint32_t i = 0; i < x->n_a && i < EMU_MAX_TILES_A; i++) a[i] = (const uint8_t *)regs + regs_a(x)[i];
    for (uint32_t i = 0; i < x->n_b && i < EMU_MAX_TILES_B; i++) b[i] = (const uint8_t *)regs + regs_b(x)[i];
    if (x->sparse) {
        emu_matrix_expand(x, regs, a, space);
        dense = (const uint8_t(*)[128])space;
        for (uint32_t i = 0; i < 2u * x->n_a; i++) a[i] = dense[i];
    }
    x->ops->product(x, a, b, regs, false);
}

/* mma.m8n8k4 of f16: four products of 8 x 8 x 4, each by lanes 4p .. 4p+3 and 16 more. */
static void multiply_884(const struct emu_matrix *x, char *regs)
{
    const uint32_t *rc = x->reg + x->n_a + x->n_b, *rd = rc + x->n_c;
    bool c_half = x->n_c == 4, d_half = x->n_d == 4;
    union {
        uint32_t w[32];
        uint16_t h[64];
    } c[8], d[8];
    uint16_t in[4][32];       /* elements of A or B by lane */
    uint8_t rows[4][2][8][8]; /* quad pair, A or B, row, 4 halves */
    for (int side = 0; side < 2; side++) {
        const uint32_t *reg = side ? regs_b(x) : regs_a(x);
        for (int i = 0; i < 4; i++)
            for (int l = 0; l < 32; l++) memcpy(&in[i][l], regs + reg[i / 2] + 4 * l + 2 * (i & 1), 2);
        bool rows_in_lanes = side ? !(x->flags & EMU_MF_B_ROW) : !(x->flags & EMU_MF_A_COL);
        for (int l = 0; l < 32; l++)
            for (int i = 0; i < 4; i++) {
                int row = rows_in_lanes ? l % 4 + l / 16 * 4 : i + l / 16 * 4, k = rows_in_lanes ? i : l % 4;
                memcpy(&rows[l / 4 % 4][side][row][2 * k], &in[i][l], 2);
            }
    }
    for (uint32_t i = 0; i < x->n_c; i++) memcpy(&c[i], regs + rc[i], 128);
    for (int p = 0; p < 4; p++) {
        /* the product works on tiles: one of 8 x 8 in two registers of f32, K filled up to 8 */
        _Alignas(64) char file[64 + 512];
        uint32_t reg[] = {64, 192, 64, 192};
        struct emu_matrix y = *x;
        y.m = y.n = 8;
        y.k = 8;
        y.n_a = y.n_b = 0;
        y.n_c = y.n_d = 2;
        y.c = MG_TYPE_f32;
        y.d = x->d;
        y.reg = reg;
        _Alignas(64) uint8_t a[8][16] = {{0}}, b[8][16] = {{0}};
        const uint8_t *const at[] = {a[0]}, *const bt[] = {b[0]};
        uint32_t *t = (uint32_t *)(void *)(file + 64);
        for (int r = 0; r < 8; r++) memcpy(a[r], rows[p][0][r], 8), memcpy(b[r], rows[p][1][r], 8);
        for (int l8 = 0; l8 < 8; l8++)
            for (int i = 0; i < 8; i++) {
                int lane = 4 * p + l8 % 4 + l8 / 4 * 16;
                int row = c_half ? lane % 4 + lane / 16 * 4 : (lane & 1) + (i & 2) + lane / 16 * 4,
                    col = c_half ? i : (i & 4) + (lane & 2) + (i & 1);
                float f = c_half ? (float)emu_matrix_value(MG_TYPE_f16, c[i / 2].h[2 * lane + (i & 1)]) : 0;
                uint32_t u = c[i].w[lane];
                if (c_half) memcpy(&u, &f, 4);
                t[32 * (col & 1) + 4 * row + col / 2] = u;
            }
        x->ops->product(&y, at, bt, file, false);
        const uint16_t *half = (const uint16_t *)(const void *)(file + 64);
        for (int l8 = 0; l8 < 8; l8++)
            for (int i = 0; i < 8; i++) {
                int lane = 4 * p + l8 % 4 + l8 / 4 * 16;
                int row = d_half ? lane % 4 + lane / 16 * 4 : (lane & 1) + (i & 2) + lane / 16 * 4,
                    col = d_half ? i : (i & 4) + (lane & 2) + (i & 1);
                if (d_half)
                    d[i / 2].h[2 * lane + (i & 1)] = half[8 * row + col];
                else
                    d[i].w[lane] = t[32 * (col & 1) + 4 * row + col / 2];
            }
    }
    for (uint32_t i = 0; i < x->n_d; i++) memcpy(regs + rd[i], &d[i], 128);
}

/* ---- memory ----------------------------------------------------------------------------------- */

/* --check: the warp's access, row by row; what lies between rows is not touched. */
static void check_rows(struct emu_frame *f, const struct emu_matrix *x, uint32_t lane, const char *p, uint32_t n,
                       uint32_t bytes, uint64_t step)
{
    struct emu_op place = x->at;
    place.mode = EMU_CK_WARP;
    for (uint32_t i = 0; i < n; i++) emu_check_at(f, &place, lane, (uint64_t)p + i * step, bytes);
}

/* wmma.load, wmma.store: element (row, column) of the tile matrix is at row * ld + column, or the
 * other way round (EMU_MF_TRANS); rows are those of A, of transposed B, of C. */
static void transfer(const struct emu_matrix *x, struct emu_frame *f, char *regs, uint32_t lanes)
{
    uint32_t bits = mg_type_bits((enum mg_type)x->a), rows = x->role == 'b' ? x->n : x->m,
             cols = x->role == 'c' ? x->n : x->k;
    bool trans = x->flags & EMU_MF_TRANS, store = x->kind == EMU_MAT_STORE;
    uint32_t lane = (uint32_t)emu_first(lanes);
    uint64_t ld = x->stride ? ((const uint32_t *)(const void *)(regs + x->stride))[lane] : trans ? rows : cols;
    uint64_t last = trans ? (cols - 1) * ld + rows : (rows - 1) * ld + cols;
    char *p = emu_at(f, &x->at, regs, lane, (last * bits + 7) / 8, bits < 8 ? 4 : bits / 8);
    uint32_t rt = rows / 8, wide = bits == 64;
    if (f->w->cta->check)
        check_rows(f, x, lane, p, trans ? cols : rows, ((trans ? rows : cols) * bits + 7) / 8, ld * bits / 8);
    if (x->role == 'c') { /* registers hold single 32- or 64-bit elements, or rows of 16-bit ones */
        uint32_t per = bits == 16 ? 1 : 2;
        for (uint32_t i = 0; i < x->n_a; i++) {
            uint32_t t = i / per % (rt * (cols / 8)), r0 = t % rt * 8, c0 = t / rt * 8;
            char *reg = regs + x->reg[i];
            for (uint32_t l = 0; l < EMU_LANES; l++)
                for (uint32_t e = 0; e < (per == 1 ? 2u : 1u); e++) {
                    uint32_t r = r0 + l / 4, c = c0 + 2 * (l % 4) + (per == 1 ? e : i % 2);
                    char *at = p + (trans ? c * ld + r : r * ld + c) * (bits / 8),
                         *v = reg + (wide ? 8 * l : 4 * l + 2 * e);
                    if (store)
                        memcpy(at, v, bits / 8);
                    else
                        memcpy(v, at, bits / 8);
                }
        }
        return;
    }
    uint32_t row_bytes = cols * bits / 8, kt = wide ? cols / 4 : row_bytes / 16, tiles = rt * kt;
    for (uint32_t i = 0; i < x->n_a; i++) {
        uint32_t t = i % tiles, r0 = (x->role == 'b' ? t / kt : t % rt) * 8, q = x->role == 'b' ? t % kt : t / rt;
        char *reg = regs + x->reg[i];
        if (wide) {
            for (uint32_t l = 0; l < EMU_LANES; l++) {
                uint64_t r = r0 + l / 4, c = 4 * q + l % 4;
                memcpy(reg + 8 * l, p + (trans ? c * ld + r : r * ld + c) * 8, 8);
            }
            continue;
        }
        for (uint32_t r = 0; r < 8; r++) {
            if (!trans) {
                memcpy(reg + 16 * r, p + ((r0 + r) * ld * bits + 128 * q) / 8, 16);
                continue;
            }
            uint32_t n = 128 / bits, bytes = bits / 8; /* sub-byte types have one layout only */
            for (uint32_t c = 0; c < n; c++)
                memcpy(reg + 16 * r + c * bytes, p + ((q * n + c) * ld + r0 + r) * bytes, bytes);
        }
    }
}

static void transpose_tile(uint16_t *t)
{
    for (int r = 0; r < 8; r++)
        for (int c = 0; c < r; c++) {
            uint16_t v = t[8 * r + c];
            t[8 * r + c] = t[8 * c + r];
            t[8 * c + r] = v;
        }
}

static void move_tiles(const struct emu_matrix *x, struct emu_frame *f, char *regs, const char *addresses)
{
    char *row[4][8];
    uint16_t t[4][64];
    for (uint32_t i = 0; i < x->n_a; i++) /* all addresses first: a destination may hold them */
        for (uint32_t r = 0; r < 8; r++) row[i][r] = emu_at(f, &x->at, addresses, 8 * i + r, 16, 16);
    for (uint32_t i = 0; i < x->n_a; i++) {
        if (x->kind == EMU_MAT_LDMATRIX)
            for (int r = 0; r < 8; r++) memcpy(t[i] + 8 * r, row[i][r], 16);
        else
            memcpy(t[i], regs + x->reg[i], 128);
        if (x->flags & EMU_MF_TRANS) transpose_tile(t[i]);
    }
    for (uint32_t i = 0; i < x->n_a; i++) {
        if (x->kind == EMU_MAT_LDMATRIX)
            memcpy(regs + x->reg[i], t[i], 128);
        else
            for (int r = 0; r < 8; r++) memcpy(row[i][r], t[i] + 8 * r, 16);
    }
}

/* ---- execution -------------------------------------------------------------------------------- */

static void run(const struct emu_matrix *x, struct emu_frame *f, char *regs, const char *addresses, uint32_t lanes,
                bool scale)
{
    switch ((enum emu_matrix_kind)x->kind) {
    case EMU_MAT_MMA:
        multiply(x, regs);
        break;
    case EMU_MAT_MMA884:
        multiply_884(x, regs);
        break;
    case EMU_MAT_WGMMA:
        emu_wgmma_run(x, f, regs, scale);
        break;
    case EMU_MAT_LOAD:
    case EMU_MAT_STORE:
        transfer(x, f, regs, lanes);
        break;
    case EMU_MAT_LDMATRIX:
    case EMU_MAT_STMATRIX:
        move_tiles(x, f, regs, addresses);
        break;
    case EMU_MAT_MOVMATRIX: {
        uint16_t t[64];
        memcpy(t, regs + x->reg[0], sizeof t);
        transpose_tile(t);
        memcpy(regs + x->reg[1], t, sizeof t);
        break;
    }
    }
}

static uint32_t slot_bytes(const struct emu_matrix *x, uint32_t i)
{
    enum mg_type t = i < x->n_a                               ? x->a
                     : i < (uint32_t)x->n_a + x->n_b          ? x->b
                     : i < (uint32_t)x->n_a + x->n_b + x->n_c ? x->c
                                                              : x->d;
    return mg_type_bits(t) == 64 ? 8 : 4;
}

/* Lanes from several places: their registers are brought together in a file of their own, and what
 * was written goes back to each. Registers an operation leaves alone come back as they were. */
static void run_together(const struct emu_part *parts, uint32_t n, uint32_t lanes, bool scale)
{
    const struct emu_matrix *first = parts[0].op->ext;
    uint32_t all = (uint32_t)first->n_a + first->n_b + first->n_c + first->n_d + (first->sparse != 0), slots[320];
    static const uint32_t extra = 4; /* base, stride, descriptors */
    char *file = aligned_alloc(64, sizeof(struct emu_frame) / 64 * 64 + 128 + (all + extra) * 256ul);
    if (!file || all > MG_COUNT_OF(slots)) {
        free(file);
        emu_fault(EMU_FRAME(parts[0].regs), parts[0].op, MG_FAULT_MEMORY, emu_first(lanes), 0, 0,
                  "host memory ran out for a matrix operation");
    }
    struct emu_frame *f = (struct emu_frame *)(void *)file;
    *f = *EMU_FRAME(parts[0].regs);
    struct emu_matrix x = *first;
    uint32_t *special[] = {&x.at.a.s[0], &x.stride, &x.desc_a, &x.desc_b};
    memset(f->regs, 0, 64 + (all + extra) * 256ul);
    for (uint32_t i = 0; i < all; i++) slots[i] = 64 + i * 256;
    x.reg = slots;
    for (uint32_t k = 0; k < n; k++) {
        const struct emu_matrix *y = parts[k].op->ext;
        const uint32_t theirs[] = {y->at.a.s[0], y->stride, y->desc_a, y->desc_b};
        const bool wide[] = {!(y->at.flags & EMU_OF_BASE_W), false, true, true};
        EMU_FOR_LANES(l, parts[k].mask)
        {
            for (uint32_t i = 0; i < all; i++)
                memcpy(f->regs + slots[i] + l * slot_bytes(y, i), parts[k].regs + y->reg[i] + l * slot_bytes(y, i),
                       slot_bytes(y, i));
            for (uint32_t i = 0; i < extra; i++)
                if (theirs[i])
                    memcpy(f->regs + 64 + (all + i) * 256 + l * (wide[i] ? 8 : 4),
                           parts[k].regs + theirs[i] + l * (wide[i] ? 8 : 4), wide[i] ? 8 : 4);
        }
    }
    for (uint32_t i = 0; i < extra; i++)
        if (*special[i]) *special[i] = 64 + (all + i) * 256;
    run(&x, f, f->regs, f->regs, lanes, scale);
    for (uint32_t k = 0; k < n; k++) {
        const struct emu_matrix *y = parts[k].op->ext;
        EMU_FOR_LANES(l, parts[k].mask)
        for (uint32_t i = 0; i < all; i++)
            memcpy(parts[k].regs + y->reg[i] + l * slot_bytes(y, i), f->regs + slots[i] + l * slot_bytes(y, i),
                   slot_bytes(y, i));
    }
    free(file);
}

void emu_matrix_exec(const struct emu_part *parts, uint32_t n, uint32_t lanes)
{
    const struct emu_matrix *x = parts[0].op->ext;
    uint32_t preds =
        x->scale_d ? *(const uint32_t *)(const void *)(parts[0].regs + x->scale_d) ^ x->scale_flip : UINT32_MAX;
    bool scale = preds >> emu_first(parts[0].mask) & 1;
    if (n == 1 && lanes == UINT32_MAX)
        run(x, EMU_FRAME(parts[0].regs), parts[0].regs, parts[0].regs, lanes, scale);
    else
        run_together(parts, n, lanes, scale);
}
