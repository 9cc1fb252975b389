/* Where what a twin counts lies in a launch's memory, how it is read back, and what was observed.
 *
 *   +0                  context block (pass.h); words of tools in its words[]
 *   +MG_CTX_BYTES       block counters, where blocks are counted
 *   then                one region for each tool: copies of its cells, then its hash tables
 *
 * All u64, all 0 before the launch. Outlives the module. */
#ifndef MG_PATCH_LAYOUT_H
#define MG_PATCH_LAYOUT_H

#include "count/counters.h"
#include "patch/patch.h"

struct mg_record_type;
struct mg_layout_site {
    enum mg_site_kind kind;
    uint32_t note;             /* the tool's own */
    uint32_t block;            /* dense id; of an instruction, too; the kernel: 0 */
    uint32_t succ;             /* EDGE: which of the block's successors */
    uint32_t ptx_line;         /* of the instruction, or the block's first; 0: the kernel */
    const char *function, *op; /* op: dotted text of an instruction, else "" */
    const char *file;
    uint32_t line;       /* source; NULL: not known */
    const char *inlined; /* "file:line <- file:line"; NULL: not inlined */
    uint32_t cell, n_cells;
};
struct mg_layout_table {
    uint32_t site, n_keys, n_cells, n_entries;
    enum mg_merge rule;
    uint64_t at; /* word in the region */
};
struct mg_layout_sum {
    uint32_t cell;
    uint32_t slot;
}; /* a word behind the cells of a copy that belongs to a cell; UINT32_MAX: to those it is shared out to */
struct mg_layout_share {
    uint32_t cell, slot, times, every;
}; /* each `every` of the word add so much to the cell */

struct mg_region { /* of one tool; strings and arrays live as long as the layout */
    const char *tool;
    const char *reason;   /* why the tool left this kernel alone; NULL: it did not */
    uint64_t at, n_words; /* words, behind the context block */
    uint32_t n_cells, n_copies, copy_words;
    uint8_t *rules; /* cell -> enum mg_merge */
    struct mg_layout_sum *sums;
    uint32_t n_sums;
    struct mg_layout_share *shares;
    uint32_t n_shares;
    struct mg_layout_site *sites;
    uint32_t n_sites;
    struct mg_layout_table *tables;
    uint32_t n_tables;
    uint32_t n_list;
    uint64_t list_at;                    /* words of tool.list: how many, and where in the region */
    uint32_t n_frame, frame_payload;     /* of these, the first: a frame (record/frame.h); values of its records */
    uint32_t first_word, n_launch_words; /* in the context block's words[]: what initialize fills */
    bool has_channel;
    uint8_t *channel_widths;
    uint32_t n_channel_widths; /* bytes of a lane's access, by site of the channel */
    const struct mg_record_type **record_types;
    uint32_t n_record_types; /* record/record.h: by site; NULL: the tool knows its records */
    uint32_t
        channel_word; /* of its words: address of the channel, number of the launch: filled by who makes channels */
};
struct mg_layout {
    struct mg_arena arena;
    struct mg_counter_layout blocks;
    bool has_blocks;   /* counted: by the tool blocks or because a tool asked for it */
    struct mg_fit fit; /* what the counts of blocks have to fit, where they are counted */
    struct mg_region *regions;
    uint32_t n_regions;      /* one for each tool in use, in their order; the tool blocks has an empty one */
    uint64_t n_region_words; /* of all regions */
};
void mg_layout_release(struct mg_layout *l);
/* Words behind the context block. Depends on the launch only where the block counter's scheme is `thread`. */
uint64_t mg_layout_words(const struct mg_layout *l, const struct mg_counter_launch *g);
/* raw: the words behind the context block; cells: r->n_cells, copies merged. */
void mg_layout_read(const struct mg_region *r, const uint64_t *raw, uint64_t *cells);
/* Calls fn for each entry of a table; returns how many updates found no room. */
uint64_t mg_layout_read_table(const struct mg_region *r, uint32_t table, const uint64_t *raw,
                              void (*fn)(const uint64_t *keys, const uint64_t *cells, void *user), void *user);
/* into = into merged with from, by rule. */
static inline uint64_t mg_merge_word(enum mg_merge rule, uint64_t into, uint64_t from)
{
    return rule == MG_MERGE_SUM ? into + from : rule == MG_MERGE_OR ? into | from : into > from ? into : from;
}

/* ---- instrumenting ------------------------------------------------------------------------------- */

struct mg_tools_opts {
    size_t size;
    uint32_t sm;            /* compute capability of the device, 90; 0: what the PTX names */
    uint32_t max_copies;    /* of cells, a power of two: multiprocessors share them out; 0 and 1: one */
    uint32_t channel_every; /* records of channels: each n-th of a warp; 0, 1: all */
    bool reduce; /* add up over a warp before memory (a GPU); else lanes go to memory one by one (emu, cpu) */
    const struct mg_pass_opts *passes; /* NULL: none */
};

#endif
