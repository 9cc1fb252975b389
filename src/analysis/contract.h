/* Which unrounded products and sums the assembler makes one operation of (analysis/contract.c). */
#ifndef MG_ANALYSIS_CONTRACT_H
#define MG_ANALYSIS_CONTRACT_H
#include "analysis/analysis.h"
#include "base/map.h"

/* What a sum takes in. */
struct mg_contraction {
    mg_id product;
    bool second;   /* it is the sum's second term */
    bool negative; /* it came through `neg` */
    bool apart;    /* they stand in different blocks, where the assembler fuses by itself */
};
static inline uint64_t mg_contraction_pack(struct mg_contraction c)
{
    return c.product | (uint64_t)c.second << 32 | (uint64_t)c.negative << 33 | (uint64_t)c.apart << 34;
}
static inline struct mg_contraction mg_contraction_unpack(uint64_t v)
{
    return (struct mg_contraction){(mg_id)v, v >> 32 & 1, v >> 33 & 1, v >> 34 & 1};
}

/* sums: node of a sum -> what it takes in, packed. */
void mg_contract_find(const struct mg_module *m, const struct mg_cfg *cfg, struct mg_map *sums);
/* A product that a sum may take in. */
bool mg_contract_is_product(const struct mg_form *f, const struct mg_node *n);
/* A division that is a product with the reciprocal. */
bool mg_contract_is_quotient(const struct mg_form *f, const struct mg_node *n);
/* Of a constant divisor, as f32; 0 where it is none, or the assembler does not take the reciprocal. */
uint32_t mg_contract_reciprocal(const struct mg_module *m, const struct mg_opnd *divisor);
/* What `mov` alone puts into a register; else the operand itself. */
const struct mg_opnd *mg_contract_moved(const struct mg_module *m, mg_id func, const struct mg_opnd *o);
/* Keeps in m->fused those of all functions, before code is inserted between them. */
void mg_contract_keep(struct mg_module *m);
/* Does the assembler's code for it have branches? */
bool mg_contract_ends_block(const struct mg_form *f, const struct mg_node *n);

#endif
