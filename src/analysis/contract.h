/* Which unrounded products and sums the assembler makes one operation of (analysis/contract.c). */
#ifndef MG_ANALYSIS_CONTRACT_H
#define MG_ANALYSIS_CONTRACT_H
#include "analysis/analysis.h"
#include "base/map.h"

/* sums: node of a sum -> node of the product that it takes in. */
void mg_contract_find(const struct mg_module *m, const struct mg_cfg *cfg, struct mg_map *sums);
/* A division that is a product with the reciprocal. */
bool mg_contract_is_quotient(const struct mg_form *f, const struct mg_node *n);
/* Of a constant divisor, as f32; 0 where it is none, or the assembler does not take the reciprocal. */
uint32_t mg_contract_reciprocal(const struct mg_module *m, const struct mg_opnd *divisor);
/* Does the assembler's code for it have branches? */
/* Keeps in m->fused those of all functions, before code is inserted between them. */
void mg_contract_keep(struct mg_module *m);
bool mg_contract_ends_block(const struct mg_form *f, const struct mg_node *n);

#endif
