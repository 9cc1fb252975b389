/* PTX of kernels for tests: what all of them begin with, and kernels made at random. */
#ifndef MG_TESTS_UNIT_KERNELS_H
#define MG_TESTS_UNIT_KERNELS_H

#include "base/buf.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define GID                                                                                                                      \
    "ld.param.u64 %rd1, [o]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1;\n" \
    "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n"
#define REGS        ".reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<8>;\n"
#define ENTRY(name) ".visible .entry " name " (.param .u64 o, .param .u32 n)\n{\n" REGS

/* Kernel k: loops that count up and down, by one and by four, to constants and to data, tested before and
 * after the step, in 32 and 64 bits; data-dependent loops; branches, some twice on one predicate; ways
 * out of loops and out of the kernel. Each thread leaves one word. */
void random_kernel(uint32_t seed, struct mg_buf *out);
/* Kernel k, and functions with such bodies: entered once, a few times, in loops, recursive, in a circle;
 * one of them ends lanes now and then. */
void random_calls(uint32_t seed, struct mg_buf *out);

/* Kernel k: so many branches that bits go to rows of local memory: a guard in front, nested ones, a loop between, ways
 * out in the middle of a warp. */
void random_rows(uint32_t n, uint32_t seed, struct mg_buf *out);

/* Kernel k: loops, nested and not, full of branches on what no round changes, written in front of the loop or in it,
 * inside one another and behind one another, among some on what changes; ways out of loops and of the kernel. */
void random_steady(uint32_t seed, struct mg_buf *out);

#endif
