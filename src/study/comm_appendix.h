/* The three structures of the thesis' appendix B: volumes, transfers, addresses. */
#ifndef MG_STUDY_COMM_APPENDIX_H
#define MG_STUDY_COMM_APPENDIX_H

#include "study/comm_print.h"

struct mg_comm_op { /* a lane's access to an address that communicates */
    uint64_t address;
    uint32_t step, cta, bytes;
    uint16_t sm;
    uint8_t type; /* as in the thesis' table 5.1: 1 load, 2 store, 3 to 13 atomics */
};
typedef MG_VEC(struct mg_comm_op) mg_comm_ops;

/* Entities are CTAs. ops: in the order of supersteps; sorted here. */
void mg_comm_print_appendix(const struct mg_comm_study *s, mg_comm_ops *ops, bool pickle, struct mg_buf *out);
/* All operations on addresses that communicate: the trace once more, after mg_comm_finish. */
enum mg_err mg_comm_feed_ops(struct mg_trace_reader *r, uint32_t file, const struct mg_comm *c, mg_comm_ops *ops,
                             struct mg_diag *d) MG_MUST_CHECK;

#endif
