/* A pass for proofs: rewrites a module as violently as a tool might, without changing what it
 * computes. Renames every register, label, local variable and target list, removes every inner
 * scope, splits every straight line by a branch to its next instruction, and reads every
 * definition by a probe whose result nothing uses. What comes out must assemble and compute as
 * before. */
#ifndef MG_PASS_STRESS_H
#define MG_PASS_STRESS_H

#include "ir/ir.h"

void mg_stress(struct mg_module *m);

#endif
