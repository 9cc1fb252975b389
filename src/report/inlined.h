/* Calls that the compiler inlined, told from `.loc ... function_name LABEL, inlined_at FILE LINE COLUMN` of a module
 * (inlined.c). */
#ifndef MG_REPORT_INLINED_H
#define MG_REPORT_INLINED_H

#include "base/arena.h"
#include "base/vec.h"
#include "ir/ir.h"

struct mg_inline_frame {
    const char *function; /* that was inlined, C++ name; NULL: not told */
    const char *file;     /* of the call; NULL: not told */
    uint32_t line;        /* of the call */
    uint32_t outer;       /* frame that the call itself lies in; 0: none */
    uint32_t depth;       /* frames from the outermost on */
};
struct mg_inlined {
    struct mg_arena arena;
    MG_VEC(struct mg_inline_frame) frames; /* [0] is none; outer ones stand before inner ones */
    uint32_t *of_loc;                      /* by loc id: the innermost frame, 0: none */
};
void mg_inlined_init(struct mg_inlined *x, const struct mg_module *m);
void mg_inlined_release(struct mg_inlined *x);

#endif
