/* Machine code as NVIDIA's disassemblers print it: the text of `nvdisasm -c [-g|-gp]` and of `cuobjdump -sass`. Only
 * what their output says of instructions is taken: address, opcode, guard, branch targets, line. No encoding is known
 * here. */
#ifndef MG_IMAGE_SASS_H
#define MG_IMAGE_SASS_H

#include "base/arena.h"

struct mg_sass_inst {
    uint32_t addr, line;         /* line: of the PTX (-gp) or source (-g), 0: not said */
    const char *op;              /* "LDG.E.64" */
    bool guarded;                /* some threads may not execute it, or not take it */
    uint32_t targets, n_targets; /* branches, calls: in func->targets */
};
struct mg_sass_func { /* a kernel with what its section holds besides, or a function in a section of its own */
    const char *name;
    struct mg_sass_inst *insts;
    uint32_t n_insts;
    uint32_t *targets; /* numbers of instructions */
};
struct mg_sass {
    struct mg_arena arena;
    struct mg_sass_func *funcs;
    uint32_t n_funcs;
};
/* Never fails: text of another kind has no functions. */
struct mg_sass *mg_sass_parse(const char *text, size_t bytes);
void mg_sass_free(struct mg_sass *s);
const struct mg_sass_func *mg_sass_find(const struct mg_sass *s, const char *name); /* NULL: not there */

/* What an instruction does to control. */
enum mg_sass_flow {
    MG_SASS_ON,
    MG_SASS_BRANCH,
    MG_SASS_LEAVE /* exits or returns */,
    MG_SASS_ANYWHERE /* a branch whose targets nobody says */
};
enum mg_sass_flow mg_sass_flow_of(const struct mg_sass_inst *i);

#endif
