/* Source lines of a kernel's instructions (lines.c). */
#ifndef MG_REPORT_LINES_H
#define MG_REPORT_LINES_H

#include "base/vec.h"
#include "store/store.h"

/* Instructions of one block that follow each other and come from one line. */
struct mg_line_row {
    uint32_t block;    /* id in the profile */
    uint32_t line;     /* 0: none */
    uint32_t ptx_line; /* of the first of them */
    uint32_t n_insts;
    const char *file; /* NULL: no line information; owner: mg_lines */
    uint32_t inlined; /* innermost frame that the place was inlined through; 0: none */
};
struct mg_module;
struct mg_line_range {
    uint32_t first, last;
};
struct mg_kernel_lines {
    MG_VEC(struct mg_line_row) rows;    /* in text order, function after function */
    MG_VEC(struct mg_line_range) texts; /* lines of the PTX text, a function each */
    const char *text;
    size_t bytes; /* of the module; owner: mg_lines */
    const struct mg_inline_frame *frames;
    uint32_t n_frames; /* of the module (report/inlined.h); owner: mg_lines */
};
/* The line that most instructions of a block come from (its first is often left over from the line above; the page does
 * the same: mainLines in page/data.js), and the first and last line of that file in it. */
struct mg_block_place {
    const char *file; /* NULL: no line information */
    uint32_t line, first, last;
};
struct mg_block_rows {
    const struct mg_line_row *at;
    uint32_t n;
};
struct mg_block_rows mg_block_rows_of(const struct mg_kernel_lines *k, uint32_t block);
struct mg_block_place mg_block_place_of(const struct mg_kernel_lines *k, const struct mg_pblock *b);
struct mg_lines; /* modules parsed so far */
struct mg_lines *mg_lines_new(const struct mg_recording *p);
void mg_lines_free(struct mg_lines *l);
/* false: the profile keeps no PTX of the kernel, or one that does not fit. Release with mg_kernel_lines_release. */
bool mg_lines_of(struct mg_lines *l, const struct mg_pkernel *k, struct mg_kernel_lines *out);
/* The module of that id as IR; NULL: the profile keeps no text of it, or one that does not parse. */
const struct mg_module *mg_lines_module(struct mg_lines *l, const char *id);
void mg_kernel_lines_release(struct mg_kernel_lines *k);

#endif
