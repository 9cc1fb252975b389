/* The host's call stacks of a time line: which file lay at which address of which process, frames with their names. */
#ifndef MG_SPAN_STACKS_H
#define MG_SPAN_STACKS_H

#include "base/buf.h"
#include "span/symbols.h"

struct mg_frame {
    const struct mg_symbol *symbol; /* its members are NULL where nothing is known */
    const char *path;               /* of the file with the code; NULL: it came from no file */
    uint64_t address;               /* in the file, else of the process */
};
struct mg_stack_module {
    uint32_t process, file; /* file: UINT32_MAX: nothing lies there any more */
    uint64_t begin, end, bias;
};
struct mg_stack {
    uint32_t process, first, n; /* of the places */
    bool cut;
    struct mg_frame *frames; /* NULL: nobody has asked */
};
struct mg_stacks {
    struct mg_map by_id;
    MG_VEC(struct mg_stack) at;
    MG_VEC(struct mg_stack_module) modules;
    MG_VEC(uint64_t) places; /* two words a frame: the file, UINT32_MAX: none; the address */
    struct mg_symbols symbols;
};
void mg_stacks_release(struct mg_stacks *s);
void mg_stacks_add_module(struct mg_stacks *s, const struct mg_stack_module *m);
void mg_stacks_add(struct mg_stacks *s, uint32_t process, uint64_t id, const uint64_t *addresses, uint32_t n, bool cut);
/* Index of a stack; UINT32_MAX: it is not in the file. */
uint32_t mg_stacks_find(const struct mg_stacks *s, uint32_t process, uint64_t id);
/* The frames, innermost first, without those of Margay's own. */
const struct mg_frame *mg_stacks_frames(struct mg_stacks *s, uint32_t ix, uint32_t *n);
/* The innermost frame that is not CUDA's or a stub that nvcc made for a kernel (`kernels`: hashes of their
 * names by mg_stack_name_key): where the program launches or waits. */
uint32_t mg_stacks_site(struct mg_stacks *s, uint32_t ix, const struct mg_map *kernels);
uint64_t mg_stack_name_key(const char *name);
/* "function", "libx.so+0x12", "code of no file" */
void mg_frame_print(const struct mg_frame *f, struct mg_buf *out);
/* All frames, the outermost first, parted by ';'; "..." in front where there are more. */
void mg_stack_print(struct mg_stacks *s, uint32_t ix, struct mg_buf *out);

#endif
