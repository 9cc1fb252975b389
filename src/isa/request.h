/* What `count_request` counts (docs/counters.md, "What probes mean"): the cells from the one that it names on. A
 * request is what the lanes that run an access together ask for; docs/tools/memory.md says what each figure means. */
#ifndef MG_ISA_REQUEST_H
#define MG_ISA_REQUEST_H

enum mg_request_cell {
    MG_RQ_SECTORS,   /* aligned 32 bytes, of requests that are neither MG_RQ_SAME nor MG_RQ_ALIGNED; global memory alone
                      */
    MG_RQ_LINES,     /* aligned 128 bytes, likewise */
    MG_RQ_CONFLICTS, /* shared memory: passes beyond the first of each group of lanes */
    /* requests by the pattern of their addresses; one of them each */
    MG_RQ_SAME,      /* all lanes at one address */
    MG_RQ_ALIGNED,   /* 32 lanes in order, from a multiple of 128 bytes on; not of shared and constant memory */
    MG_RQ_UNIT,      /* lanes in order, otherwise */
    MG_RQ_STRIDE_32, /* one stride between 32 lanes, up to 32 bytes */
    MG_RQ_STRIDE_128,
    MG_RQ_STRIDE_MORE,
    MG_RQ_IRREGULAR,
    MG_RQ_COUNT
};

/* Its second operand: bytes of a lane's access, and the space (enum mg_space; generic: global, or nobody knows). */
#define MG_RQ_BYTES 256
static inline unsigned mg_request_pack(unsigned bytes, unsigned space)
{
    return bytes | space * MG_RQ_BYTES;
}

/* What `count_carried` counts: values that lanes load, store or exchange; docs/tools/values.md. */
enum mg_carried_cell {
    MG_CR_VALUES,
    MG_CR_ZEROS,
    MG_CR_NANS,
    MG_CR_REDUNDANT, /* what the lane carried there before */
    MG_CR_WARPS,
    MG_CR_UNIFORM, /* warps whose lanes carry one value */
    MG_CR_AFFINE,  /* ... other ones, that grow by one step from lane to lane */
    MG_CR_SUMS,
    MG_CR_LEAST = MG_CR_SUMS, /* the greatest of complements; as MG_CR_MOST of keys, which are in the type's order */
    MG_CR_MOST,
    MG_CR_COUNT
};

/* Its second operand: how many bits a value has, and how they are ordered. */
enum mg_carried_kind { MG_CK_UNSIGNED, MG_CK_SIGNED, MG_CK_F32, MG_CK_F64 };
#define MG_CR_BITS 256

#endif
