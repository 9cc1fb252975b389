/* What an H200 gives (driver 580.159, ptxas 13.0), as sums of hashes of (operand, result), test_alu_approx.c:
 * over 131,072 operands of every sign and exponent, and over the 2^24 from block on. f64: upper words. */
#ifndef MG_TESTS_APPROX_H200_H
#define MG_TESTS_APPROX_H200_H

#include <stdint.h>

static const struct approx_h200 {
    const char *form;
    uint64_t samples;
    uint32_t block;
    uint64_t sum;
} approx_h200[] = {
    {"ex2.approx.f32", 0x4a6ffebb3273c0fbull, 0xc2000000, 0x69dc3394e5d52ab4ull},
    {"ex2.approx.ftz.f32", 0x41295d28b852df94ull, 0x40000000, 0xc6a949cae8f24ae3ull},
    {"lg2.approx.f32", 0xc6a0362694007210ull, 0x3f000000, 0x039ee4e70f08d764ull},
    {"lg2.approx.ftz.f32", 0xf2a1eb8b23d4980dull, 0x42000000, 0xdbd0bf48b49ebf9dull},
    {"sin.approx.f32", 0xa299b2ae88960b29ull, 0x3f000000, 0x4fcd537bb1886e35ull},
    {"sin.approx.ftz.f32", 0xa299b2ae88960b29ull, 0xc1000000, 0x3a5100d5d3ddd345ull},
    {"cos.approx.f32", 0xd5d9b0b722228f66ull, 0x40000000, 0x376e3f7b7191bd73ull},
    {"cos.approx.ftz.f32", 0xd5d9b0b722228f66ull, 0xbf000000, 0x2a9b6a1e57cd5016ull},
    {"rcp.approx.f32", 0x58d7fdd6193a39c2ull, 0x7e000000, 0x0ca295080473aa06ull},
    {"rcp.approx.ftz.f32", 0xf741646937a69139ull, 0xc0000000, 0x343e280b3be8adcfull},
    {"rsqrt.approx.f32", 0x97cfcd1e1811ad31ull, 0x00000000, 0x8a28d19fedb45084ull},
    {"rsqrt.approx.ftz.f32", 0xcd7c9ae144d6d69cull, 0x40000000, 0x971a6c8b9938193eull},
    {"sqrt.approx.f32", 0x6bed80e7bee3be48ull, 0x00000000, 0xa88e7ee36f9473a5ull},
    {"sqrt.approx.ftz.f32", 0xbb65f34245d6f764ull, 0x3e000000, 0x9ff4c7577bae4ae3ull},
    {"tanh.approx.f32", 0x3f93d810e7e0531bull, 0x3f000000, 0xfa882d034c471630ull},
    {"rcp.approx.ftz.f64", 0xb6d69329bc497768ull, 0x3f000000, 0x54a0d04c3810c650ull},
    {"rsqrt.approx.ftz.f64", 0x279649f96b132715ull, 0x40000000, 0x7dd766d8f9596141ull},
    {"ex2.approx.f16x2", 0x33e506762f02f397ull, 0x3c000000, 0xe3f4f88a77965edcull},
    {"ex2.approx.ftz.bf16x2", 0x5c992d17f1fcd656ull, 0x40000000, 0x54a61f6916413160ull},
    {"tanh.approx.f16x2", 0x8bf18effba4d43cdull, 0x38000000, 0x8e5896f1b7e29583ull},
    {"tanh.approx.bf16x2", 0xa1c447a8a3db0f99ull, 0x3f000000, 0xe585691f9579a56dull},
};

#endif
