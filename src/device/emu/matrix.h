/* Matrix operations of a warp: wmma, mma, ldmatrix, stmatrix, movmatrix, wgmma.
 *
 * A fragment's 32-bit register, over 32 lanes, is 8 rows of 16 bytes: row = lane / 4, so its array
 * is an 8 x 8 matrix of 16-bit elements (8 x 4 of 32, 8 x 16 of 8 bits, ...) in row-major order.
 * All layouts that PTX prescribes are such tiles; those it leaves open (wmma) are made likewise:
 *   A  m x k      register i: rows 8 * (i % (m/8)), 16 bytes of k number i / (m/8)
 *   B  k x n      the same of the transposed matrix: columns 8 * (i / KT), 16 bytes of k i % KT
 *   C, D m x n    8 x 8 tile t = i / 2: rows 8 * (t % (m/8)), columns 8 * (t / (m/8)); of 32-bit elements
 *                 register i holds columns 2q + i % 2; 16-bit ones have one register a tile
 *
 * Arithmetic of floats, as published studies of these units found it and recordings of an H200 agree:
 * all products of an instruction and the addend are exact, aligned to the largest exponent, cut off
 * (towards zero) `fraction` bits below it, summed, and the sum is cut to f32 or rounded to f16.
 * f64 is a chain of fused operations in the order of k. Integers wrap, or saturate once at the end.
 */
#ifndef MG_DEVICE_EMU_MATRIX_H
#define MG_DEVICE_EMU_MATRIX_H

#include "device/emu/emu.h"

enum emu_matrix_kind {
    EMU_MAT_MMA,
    EMU_MAT_MMA884,
    EMU_MAT_WGMMA,
    EMU_MAT_LOAD,
    EMU_MAT_STORE,
    EMU_MAT_LDMATRIX,
    EMU_MAT_STMATRIX,
    EMU_MAT_MOVMATRIX
};
enum emu_matrix_flags {
    EMU_MF_SAT = 1,   /* satfinite of integers */
    EMU_MF_AND = 2,   /* b1: and.popc, else xor.popc */
    EMU_MF_TRANS = 4, /* ldmatrix, stmatrix: transposed; wmma.load, store: memory has k (or n) outermost */
    EMU_MF_A_COL = 8,
    EMU_MF_B_ROW = 16, /* m8n8k4 of f16: layouts; wgmma: transposed in shared memory */
    EMU_MF_NEG_A = 32,
    EMU_MF_NEG_B = 64,
    EMU_MF_E8M13 = 128, /* results keep 13 bits of fraction (wgmma of 8-bit floats) */
};

#define EMU_MAX_K_BYTES 128 /* of one row of A, sparse ones expanded */

struct emu_matrix { /* owner: code */
    uint8_t kind, flags;
    uint8_t a, b, c, d; /* enum mg_type; loads and stores: a is the element's */
    uint16_t m, n, k;
    uint8_t fraction; /* bits kept below the largest exponent */
    uint8_t role;     /* loads and stores: 'a', 'b', 'c' */
    uint8_t sparse;   /* 0, or 1 + sparsity selector */
    uint16_t n_a, n_b, n_c, n_d;
    const uint32_t *reg;                          /* offsets: a, b, c, d, then metadata (sparse) */
    struct emu_op at;                             /* memory operand */
    uint32_t stride;                              /* register, elements; 0: none */
    uint32_t desc_a, desc_b, scale_d, scale_flip; /* wgmma: 64-bit registers (desc_a 0: A in registers), predicate */
    const struct emu_matrix_ops *ops;
};

struct emu_matrix_ops { /* one per vector ISA (vec_matrix.c) */
    /* d = a * b + c, of tiles: a[row tile + m/8 * (16 bytes of k)], b[column tile * KT + (16 bytes of k)],
     * each 128 bytes; c and d in registers. zero_c: c is 0. */
    void (*product)(const struct emu_matrix *x, const uint8_t *const *a, const uint8_t *const *b, char *regs,
                    bool zero_c);
    void (*product_f64)(const struct emu_matrix *x, char *regs);
};
extern const struct emu_matrix_ops emu_matrix_base, emu_matrix_avx2, emu_matrix_avx512;

static inline uint32_t emu_matrix_row_bytes(const struct emu_matrix *x)
{
    return x->k * mg_type_bits((enum mg_type)x->a) / 8;
}

/* Executes for lanes that came together, perhaps from several places of the program. */
void emu_matrix_exec(const struct emu_part *parts, uint32_t n, uint32_t lanes);
bool emu_matrix_same(const struct emu_matrix *a,
                     const struct emu_matrix *b); /* the same instruction, registers aside */
void emu_wgmma_run(const struct emu_matrix *x, struct emu_frame *f, char *regs, bool scale); /* scale: c is added */
/* Tiles of a sparse A with their zeros: out is as many tiles as a dense one has. */
void emu_matrix_expand(const struct emu_matrix *x, const char *regs, const uint8_t *const *packed, uint8_t (*out)[128]);
enum { EMU_MAX_TILES_A = 4 * EMU_MAX_K_BYTES / 16, EMU_MAX_TILES_B = 32 * EMU_MAX_K_BYTES / 16 };
/* Value of an element of any floating type, for what is not finite. */
double emu_matrix_value(enum mg_type t, uint32_t bits);

#endif
