/* Operand values of the one-instruction tests: a pure function of (type, tuple, operand), shared by
 * the program that recorded the expected results on a GPU and by the tests that compare. */
#ifndef MG_TESTS_ALU_INPUTS_H
#define MG_TESTS_ALU_INPUTS_H

#include <stdint.h>

enum { ALU_TUPLES = 2048, ALU_SHOWN = 16 }; /* per form; the first ALU_SHOWN results are recorded in full */
enum alu_kind { IN_INT, IN_F16, IN_BF16, IN_F32, IN_F64 };

static inline uint64_t alu_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}
#define PICK(table, r) (table)[(r) % (sizeof(table) / sizeof((table)[0]))]

static inline uint64_t alu_int(uint64_t r, unsigned bits)
{
    static const int64_t specials[] = {
        0,          1,          -1,         2,          3,           7,         8,         15,         16,
        31,         32,         33,         63,         64,          65,        127,       128,        255,
        256,        -2,         -128,       -129,       32767,       32768,     65535,     65536,      -32768,
        2147483647, 2147483648, 4294967295, 4294967296, -2147483648, INT64_MAX, INT64_MIN, 0x01020304, 0x80808080};
    unsigned how = r & 3;
    r >>= 2;
    uint64_t v = how == 0 ? (uint64_t)PICK(specials, r) : how == 1 ? r % 70 : alu_mix(r) >> (how == 2 ? 0 : r % 64);
    if (bits < 64 && how == 0 && (r >> 20 & 1)) v = 1ull << (bits - 1);
    return bits == 64 ? v : v & ((1ull << bits) - 1);
}
static inline uint32_t alu_f32(uint64_t r)
{
    static const uint32_t specials[] = {
        0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001,
        0xffbfffff, 1,          0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff,
        0x3f000000, 0xbf000000, 0x3fc00000, 0x40200000, 0xc0200000, 0x3effffff, 0x3f7fffff, 0x3f800001, 0x4b000000,
        0x4b000001, 0xcb000001, 0x4effffff, 0x4f000000, 0xcf000000, 0x4f7fffff, 0x4f800000, 0x5f000000, 0xdf000000,
        0x5f7fffff, 0x5f800000, 0x40490fdb, 0x477fe000, 0x477ff000, 0x38800000, 0x387fc000, 0x33000000, 0x33000001,
        0x00ffffff, 0x437f0000, 0x43000000, 0xc3000000};
    unsigned how = r & 3;
    r >>= 2;
    uint64_t m = alu_mix(r);
    if (how == 0) return PICK(specials, r);
    if (how == 1) return (uint32_t)m;
    if (how == 2) return ((uint32_t)m & 0x807fffff) | (uint32_t)(112 + r % 32) << 23;
    return ((uint32_t)m & 0x80fff000) | (uint32_t)(120 + r % 16) << 23; /* few mantissa bits: ties */
}
static inline uint64_t alu_f64(uint64_t r)
{
    static const uint64_t specials[] = {0,
                                        1ull << 63,
                                        0x3ff0000000000000,
                                        0xbff0000000000000,
                                        0x7ff0000000000000,
                                        0xfff0000000000000,
                                        0x7ff8000000000000,
                                        0xfff8000000012345,
                                        0x7ff0000000000001,
                                        0xfff7ffffffffffff,
                                        1,
                                        0x8000000000000001,
                                        0x000fffffffffffff,
                                        0x0010000000000000,
                                        0x8010000000000000,
                                        0x7fefffffffffffff,
                                        0xffefffffffffffff,
                                        0x3fe0000000000000,
                                        0xbfe0000000000000,
                                        0x3ff8000000000000,
                                        0x4004000000000000,
                                        0xc004000000000000,
                                        0x41dfffffffc00000,
                                        0x41e0000000000000,
                                        0xc1e0000000000000,
                                        0xc1e0000000200000,
                                        0x41efffffffe00000,
                                        0x41f0000000000000,
                                        0x43e0000000000000,
                                        0xc3e0000000000000,
                                        0x43f0000000000000,
                                        0x4330000000000001,
                                        0x36a0000000000000,
                                        0x3690000000000000,
                                        0x3690000000000001,
                                        0x380fffffffffffff,
                                        0x47efffffe0000000,
                                        0x47effffff0000000,
                                        0x40effc0000000000,
                                        0x40effe0000000000,
                                        0x3e60000000000000,
                                        0x3e60000000000001,
                                        0x3ff0000010000000,
                                        0x3ff0000030000000,
                                        0x3ff0000010000001};
    unsigned how = r & 3;
    r >>= 2;
    uint64_t m = alu_mix(r);
    if (how == 0) return PICK(specials, r);
    if (how == 1) return m;
    if (how == 2) return (m & 0x800fffffffffffff) | (uint64_t)(990 + r % 66) << 52;
    return (m & 0x801ffff000000000) | (uint64_t)(1010 + r % 30) << 52;
}
static inline uint32_t alu_f16(uint64_t r)
{
    static const uint16_t specials[] = {0,      0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00,
                                        0xfe01, 0x7c01, 1,      0x8001, 0x3ff,  0x83ff, 0x400,
                                        0x8400, 0x7bff, 0xfbff, 0x3800, 0x3bff, 0x3c01, 0x4200};
    unsigned how = r & 3;
    r >>= 2;
    uint64_t m = alu_mix(r);
    if (how == 0) return PICK(specials, r);
    if (how == 1) return (uint32_t)m & 0xffff;
    return ((uint32_t)m & 0x83ff) | (uint32_t)(8 + r % 14) << 10;
}
static inline uint32_t alu_bf16(uint64_t r)
{
    static const uint16_t specials[] = {0,      0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0,
                                        0xffc1, 0x7f81, 1,      0x8001, 0x7f,   0x807f, 0x80,
                                        0x8080, 0x7f7f, 0xff7f, 0x3f00, 0x3f7f, 0x3f81, 0x4040};
    unsigned how = r & 3;
    r >>= 2;
    uint64_t m = alu_mix(r);
    if (how == 0) return PICK(specials, r);
    if (how == 1) return (uint32_t)m & 0xffff;
    return ((uint32_t)m & 0x807f) | (uint32_t)(110 + r % 34) << 7;
}
/* packed: two halves of 16 bits */
static inline uint64_t alu_input(enum alu_kind kind, unsigned bits, unsigned tuple, unsigned operand)
{
    uint64_t r = alu_mix((uint64_t)tuple * 8 + operand), r2 = alu_mix(r + 77);
    switch (kind) {
    case IN_F32:
        return alu_f32(r);
    case IN_F64:
        return alu_f64(r);
    case IN_F16:
        return bits == 32 ? alu_f16(r) | alu_f16(r2) << 16 : alu_f16(r);
    case IN_BF16:
        return bits == 32 ? alu_bf16(r) | alu_bf16(r2) << 16 : alu_bf16(r);
    default:
        return alu_int(r, bits);
    }
}
static inline uint64_t alu_hash(uint64_t h, uint64_t v)
{
    return (h ^ v) * 0x100000001b3ull ^ h >> 29;
}

#endif
