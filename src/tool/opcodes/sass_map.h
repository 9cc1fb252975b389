/* How often threads executed machine instructions, from block counts of the PTX that they were made of.
 *
 * Machine blocks take the count of a PTX block by line and shape: by the PTX lines their instructions come from, and by
 * lying at the same depth of loops. What is left is filled in where the flow into or out of blocks leaves one answer
 * only. Of a loop that the assembler unrolled into several blocks nobody knows how often each ran, but all its copies
 * together ran as often as the PTX says. Instructions that none of this settles are not mapped, and are said to be. */
#ifndef MG_TOOL_SASS_MAP_H
#define MG_TOOL_SASS_MAP_H

#include "image/sass.h"
#include "view/result.h"

struct mg_sass_map {
    uint32_t n_blocks, *block_of; /* instruction -> machine block */
    bool *mapped;                 /* of blocks */
    uint64_t *entered;            /* by threads: of mapped blocks */
    bool *known;                  /* of instructions */
    uint64_t *threads;            /* executions of known ones; those of copies stand at the first of them */
    uint32_t mapped_blocks, known_insts;
    bool *seen;     /* PTX blocks of which known instructions come */
    bool has_lines; /* some instruction says which PTX line it comes from */
};
/* k: with sites of its instructions; block counts may be missing (nothing is mapped then). Owner: the caller. */
struct mg_sass_map *mg_sass_map_new(const struct mg_sass_func *f, const struct mg_result_kernel *k);
void mg_sass_map_free(struct mg_sass_map *m);

/* opcodes, level=sass: tables and the key "machine" of JSON (tool/opcodes/machine.c). */
void mg_opcodes_machine(const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j);

#endif
