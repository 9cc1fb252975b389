/* wgmma.mma_async: operands described in shared memory. Each of the four warps multiplies its own 16
 * of the 64 rows when it gets to the instruction; wait_group waits for the other warps (cluster.c).
 *
 * A descriptor holds the start address (bits 0-13), the leading (16-29) and the stride byte offset
 * (32-45), all in units of 16 bytes, a base offset (49-51) and the swizzle (62-63: none, 128, 64, 32
 * bytes W). Where an element lies, before the swizzle:
 *   K innermost   row r, 16 bytes of k number q:  none  r%8 * 16 + r/8 * stride + q * leading
 *                                                 W     r%8 * W  + r/8 * stride + q * 16
 *   rows innermost (16-bit elements): row r, k:   none  r%8 * 2 + k%8 * 16 + r/8 * stride + k/8 * leading
 *                                                 W     r%(W/2) * 2 + r/(W/2) * leading + k%8 * W + k/8 * stride
 */
#include <string.h>

#include "device/emu/async.h"
#include "device/emu/check.h"
#include "device/emu/matrix.h"

struct operand {
    uint32_t start, leading, stride, base, width;
};

static struct operand read_descriptor(uint64_t d)
{
    static const uint8_t widths[] = {0, 128, 64, 32};
    return (struct operand){(uint32_t)(d & 0x3fff) << 4, (uint32_t)(d >> 16 & 0x3fff) << 4,
                            (uint32_t)(d >> 32 & 0x3fff) << 4, (uint32_t)(d >> 49 & 7), widths[d >> 62]};
}

/* Shared memory of `bytes` at an offset of the matrix; both within one 16-byte piece. */
static const char *element(const struct emu_matrix *x, struct emu_frame *f, const struct operand *o, uint32_t at,
                           uint32_t bytes)
{
    uint32_t a = o->start + at, row = (a >> 7) - o->base;
    if (o->width) a ^= (row & (o->width / 16 - 1)) << 4;
    if ((uint64_t)a + bytes > f->shared_bytes) emu_fault_access(f, &x->at, 0, a, bytes);
    if (f->w->cta->check) emu_check_at(f, &x->at, 0, (uint64_t)f->shared + a, bytes);
    return f->shared + a;
}

/* Rows first .. first + n, of kt times 16 bytes: tile (row group g, q) at out[g * g_step + q * q_step]. */
static void fetch(const struct emu_matrix *x, struct emu_frame *f, uint64_t descriptor, bool rows_inner, uint32_t first,
                  uint32_t n, uint32_t kt, uint8_t (*out)[128], uint32_t g_step, uint32_t q_step)
{
    struct operand o = read_descriptor(descriptor);
    uint32_t w = o.width;
    if (!rows_inner) {
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t q = 0; q < kt; q++) {
                uint32_t r = first + i,
                         at = w ? r % 8 * w + r / 8 * o.stride + q * 16 : r % 8 * 16 + r / 8 * o.stride + q * o.leading;
                memcpy(out[i / 8 * g_step + q * q_step] + i % 8 * 16, element(x, f, &o, at, 16), 16);
            }
        return;
    }
    for (uint32_t i = 0; i < n; i += 8)
        for (uint32_t k = 0; k < kt * 8; k++) {
            uint32_t r = first + i, at = w ? r % (w / 2) * 2 + r / (w / 2) * o.leading + k % 8 * w + k / 8 * o.stride
                                           : k % 8 * 16 + r / 8 * o.stride + k / 8 * o.leading;
            const char *s = element(x, f, &o, at, 16);
            uint8_t *to = out[i / 8 * g_step + k / 8 * q_step] + k % 8 * 2;
            for (uint32_t e = 0; e < 8; e++) memcpy(to + 16 * e, s + 2 * e, 2);
        }
}

void emu_wgmma_run(const struct emu_matrix *x, struct emu_frame *f, char *regs, bool scale)
{
    _Alignas(64) uint8_t stored[8][128], dense[16][128], columns[32 * 4][128];
    const uint8_t *a[16], *b[32 * 4];
    uint32_t kt = emu_matrix_row_bytes(x) / 16, a_kt = x->sparse ? kt / 2 : kt;
    if (x->desc_a)
        fetch(x, f, *(const uint64_t *)(const void *)(regs + x->desc_a), x->flags & EMU_MF_A_COL, f->w->ix % 4 * 16, 16,
              a_kt, stored, 1, 2);
    for (uint32_t i = 0; i < 2 * a_kt; i++) a[i] = x->desc_a ? stored[i] : (const uint8_t *)regs + x->reg[i];
    if (x->sparse) {
        emu_matrix_expand(x, regs, a, dense);
        for (uint32_t i = 0; i < 2 * kt; i++) a[i] = dense[i];
    }
    fetch(x, f, *(const uint64_t *)(const void *)(regs + x->desc_b), x->flags & EMU_MF_B_ROW, 0, x->n, kt, columns, kt,
          1);
    for (uint32_t i = 0; i < x->n / 8u * kt; i++) b[i] = columns[i];
    x->ops->product(x, a, b, regs, !scale);
    f->w->wgmmas++;
}
