/* What a tool counted, as its `profile` sees it, and the tables it makes of that. The same in every
 * process that reports: `margay report`, the summary of `margay run`, a live profile.
 *
 * Cells are merged over copies, launches and processes by their rule, over complete launches only. */
#ifndef MG_VIEW_RESULT_H
#define MG_VIEW_RESULT_H

#include "base/json.h"
#include "patch/patch.h"

struct mg_table;

struct mg_result_site {
    enum mg_site_kind kind;
    uint32_t note;             /* the tool's own */
    uint32_t block;            /* dense id; of the instruction, too */
    uint32_t succ;             /* EDGE */
    uint32_t ptx_line;         /* of the instruction or the block's first; 0: the kernel */
    const char *function, *op; /* op: dotted text of an instruction, else "" */
    const char *file;
    uint32_t line;          /* source; NULL: not known */
    const char *inlined;    /* "file:line <- file:line" of the calls it was inlined through; NULL: not inlined */
    uint32_t cell, n_cells; /* its cells in `cells` */
};
struct mg_result_entry {
    const uint64_t *keys;
    const uint64_t *cells;
};
struct mg_result_table {
    uint32_t site, n_keys, n_cells;
    const struct mg_result_entry *entries;
    uint64_t n;
    uint64_t lost; /* updates that found no room */
};
struct mg_result_launch {
    uint64_t id;
    const uint64_t *cells, *threads /* of the block counter, NULL: not counted */;
    uint32_t grid[3], block[3];
    uint32_t resident; /* CTAs that a multiprocessor takes at once */
    uint64_t times;    /* replays that counted together */
    bool timed;
    uint64_t time_ns;
    bool complete;
};
struct mg_result_kernel {
    uint32_t id; /* of the profile */
    const char *name, *demangled, *module;
    uint64_t launches, counted; /* counted: complete ones that ran with this tool */
    const struct mg_result_site *sites;
    uint32_t n_sites;
    const uint64_t *cells;
    uint32_t n_cells;
    const struct mg_result_table *tables;
    uint32_t n_tables;
    const struct mg_result_launch *of_launch;
    uint64_t n_of_launch; /* tools with MG_TOOL_PER_LAUNCH, samples (one_of) */
    const struct mg_result_launch *others;
    uint64_t n_others; /* samples: launches that ran without the tool; no cells */
    /* Of the block counter, where it ran in the same launches: NULL else. By dense block id. */
    const uint64_t *threads, *warps;
    uint32_t n_blocks;
    const struct mg_site_block *blocks; /* static: opcodes, lines, successors */
};
/* Machine code of a kernel, as a disassembler says it. */
struct mg_sass;
struct mg_result_machine {
    const struct mg_sass *text; /* NULL: there is none, for the reason `why` */
    const char *why;
    bool native;        /* the program's own; else assembled from its PTX just now */
    uint32_t registers; /* 0: not known */
};
struct mg_result_place {
    const char *file; /* NULL: no line information */
    uint32_t line;
};
struct mg_buffer_name {
    const char *text;  /* "argument 2 `out`, buffer of 4,096 bytes", "shared variable tile of 64 bytes" */
    const char *place; /* the same without what launches say: "argument 2 `out`" */
    const char *brief; /* for tables on a terminal, with the bytes behind it: "arg 2 `out`", "tile" */
    uint64_t bytes;    /* 0: not known */
    uint64_t shift;    /* bytes between the lowest and the highest place in it that launches were given */
    bool is_shared;    /* a variable in shared memory, which `brief` names */
};
struct mg_tool_result {
    const char *device_kind, *device_name;
    uint32_t sms, sm;
    bool host_times; /* no GPU: clocks are the host's, multiprocessors are none */
    const struct mg_result_kernel *kernels;
    uint32_t n_kernels;
    const struct mg_result_kernel *bare;
    uint32_t n_bare; /* kernels without PTX: name and launches alone */
    /* Starts a disassembler, where one is installed; results live as long as this. NULL: not in this process. */
    struct mg_result_machine (*machine)(void *user, const struct mg_result_kernel *k);
    /* Which buffer the instruction of a site accesses; NULL: not known. The function is NULL where the
     * profile's PTX is not to be had. */
    const struct mg_buffer_name *(*buffer)(void *buffers, const struct mg_result_kernel *k,
                                           const struct mg_result_site *s);
    void *buffers;
    /* The line that most instructions of a block come from. NULL: not in this process. */
    struct mg_result_place (*line_of_block)(void *lines, const struct mg_result_kernel *k, uint32_t block);
    void *lines;
    /* The JSON text that the tool left under a key (tool/host.h), of the ix-th process that left one; NULL: no more. */
    const char *(*left)(const void *from, const char *key, uint32_t ix);
    const void *from;
    void *user;
    uint32_t columns, top; /* of text; rows to show, 0: all */
};

/* ---- tables: one builder for text and CSV ------------------------------------------------------------- */
enum mg_column_kind {
    MG_COL_TEXT,
    MG_COL_COUNT,
    MG_COL_PERCENT,
    MG_COL_REAL,
    MG_COL_BYTES,
    MG_COL_CYCLES,
    MG_COL_TIME_NS,
    MG_COL_HEX,
    MG_COL_PLACE /* file:line, else ptx line */
};
/* Begins a table; columns follow, then rows with one cell for each column. */
void mg_table_begin(struct mg_table *t, const char *name, const char *title);
void mg_table_column(struct mg_table *t, const char *name, enum mg_column_kind kind, const char *unit);
struct mg_column {
    const char *name;
    enum mg_column_kind kind;
    const char *unit;
    bool detail; /* text leaves it out where it has no room */
};
void mg_table_columns(struct mg_table *t, const struct mg_column *columns, uint32_t n);
#define MG_TABLE_COLUMNS(t, ...)                                                                                       \
    mg_table_columns((t), (const struct mg_column[]){__VA_ARGS__},                                                     \
                     MG_COUNT_OF(((const struct mg_column[]){__VA_ARGS__})))
void mg_table_row(struct mg_table *t);
void mg_table_text(struct mg_table *t, const char *v);
void mg_table_buffer(struct mg_table *t, const struct mg_buffer_name *name); /* NULL: not known */
void mg_table_u64(struct mg_table *t, uint64_t v);
void mg_table_f64(struct mg_table *t, double v);
void mg_table_null(struct mg_table *t);
void mg_table_place(struct mg_table *t, const struct mg_result_site *s);
/* Rows in order of a column, largest first; the row's place breaks ties. */
void mg_table_sort(struct mg_table *t, uint32_t column);
/* A picture that stands behind the table begun last: text and CSV leave it out. */
void mg_table_chart(struct mg_table *t, const char *name, const char *title, const char *svg, size_t n);
/* The picture added last, a graph, for Graphviz. */
void mg_table_chart_dot(struct mg_table *t, const char *dot);
/* What to say of the table if it has no rows; else "nothing was counted". */
void mg_table_empty(struct mg_table *t, const char *text);
/* A line of text under the table, or in front of the next. */
void mg_table_note(struct mg_table *t, const char *fmt, ...) MG_PRINTF(2, 3);
void mg_table_note_first(struct mg_table *t, const char *fmt, ...)
    MG_PRINTF(2, 3); /* to the first table: the summary shows it */

#endif
