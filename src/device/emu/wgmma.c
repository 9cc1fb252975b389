/* wgmma.mma_async: operands described in shared memory. Each of the four warps multiplies its own 16
 * of the 64 rows when it gets to the instruction; fence, commit and wait are no work then.
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
#include "device/emu/matrix.h"

struct operand { uint32_t start, leading, stride, base, width; };

static struct operand read_descriptor(uint64_t d)
{
    static const uint8_t widths[] = {0, 128, 64, 32};
    return (struct operand){(uint32_t)(d & 0x3fff) << 4, (uint32_t)(d >> 16 & 0x3fff) << 4, (uint32_t)(d >> 32 & 0x3fff) << 4, (uint32_t)(d >> 49 & 7), widths[d >> 62]};
}

/* Shared memory of `bytes` at an offset of the matrix; both within one 16-byte piece. */
static const char *element(const struct emu_matrix *x, struct emu_frame *f, const struct operand *o, uint32_t at, uint32_t bytes)
{
    uint32_t a = o->start + at, row = (a >> 7) - o->base;
    if (o->width) a ^= (row & (o->width / 16 - 1)) << 4;
    if ((uint64_t)a + bytes > f->shared_bytes) emu_fault_access(f, &x->at, 0, a, bytes);
    return f->shared + a;
}

/* Rows first .. first + n of row_bytes each. */
static void fetch(const struct emu_matrix *x, struct emu_frame *f, uint64_t descriptor, bool rows_inner, uint32_t first, uint32_t n, uint32_t row_bytes, uint8_t *out)
{
    struct operand o = read_descriptor(descriptor);
    uint32_t w = o.width;
    if (!rows_inner) {
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t q = 0; q < row_bytes / 16; q++) {
                uint32_t r = first + i, at = w ? r % 8 * w + r / 8 * o.stride + q * 16 : r % 8 * 16 + r / 8 * o.stride + q * o.leading;
                memcpy(out + i * row_bytes + q * 16, element(x, f, &o, at, 16), 16);
            }
        return;
    }
    for (uint32_t i = 0; i < n; i += 8)
        for (uint32_t k = 0; k < row_bytes / 2; k++) {
            uint32_t r = first + i, at = w ? r % (w / 2) * 2 + r / (w / 2) * o.leading + k % 8 * w + k / 8 * o.stride : k % 8 * 16 + r / 8 * o.stride + k / 8 * o.leading;
            const char *s = element(x, f, &o, at, 16);
            for (uint32_t e = 0; e < 8; e++) memcpy(out + (i + e) * row_bytes + 2 * k, s + 2 * e, 2);
        }
}

void emu_wgmma_run(const struct emu_matrix *x, struct emu_frame *f, char *regs, bool scale)
{
    uint8_t a[16 * EMU_MAX_K_BYTES], packed[16 * EMU_MAX_K_BYTES], b[256 * EMU_MAX_K_BYTES];
    uint32_t row = emu_matrix_row_bytes(x), a_row = x->sparse ? row / 2 : row;
    uint8_t *to = x->sparse ? packed : a;
    if (x->desc_a) fetch(x, f, *(const uint64_t *)(const void *)(regs + x->desc_a), x->flags & EMU_MF_A_COL, f->w->ix % 4 * 16, 16, a_row, to);
    else emu_matrix_rows_a(x, regs, to, a_row);
    if (x->sparse) emu_matrix_expand(x, regs, packed, a, row);
    fetch(x, f, *(const uint64_t *)(const void *)(regs + x->desc_b), x->flags & EMU_MF_B_ROW, 0, x->n, row, b);
    x->ops->product(x, a, b, regs, !scale);
}
