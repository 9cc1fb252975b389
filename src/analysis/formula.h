/* How often a launch enters each block of a kernel, as a formula of its geometry and its arguments, where
 * that decides it (the outlook of CUDA Flux).
 *
 *   threads, threads.x   of the launch, along an axis      gridDim, blockDim, argN     parameter N, from 0
 *   S(e)                 e added up over all threads, of which it may use threadIdx and blockIdx
 *   min max  // % << >> & < <= == != and or   as in Python; a comparison is 0 or 1
 *   ceil(a, b)           a / b upwards                      bits(a)                     a's length in bits, 0 for
 *                        0 and below
 *
 * Holds where sym.h says, and for launches that end by themselves. */
#ifndef MG_ANALYSIS_FORMULA_H
#define MG_ANALYSIS_FORMULA_H

#include "analysis/analysis.h"

struct mg_formulas {
    char **text;
    uint32_t n_blocks, n_known;
}; /* text: NULL where it depends on something else */
struct mg_formulas *mg_formulas_new(const struct mg_cfg *c);
void mg_formulas_free(struct mg_formulas *f);

#endif
