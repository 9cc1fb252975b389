/* Inside store/: what reader.c and regions.c share while they read databases. */
#ifndef MG_STORE_READ_H
#define MG_STORE_READ_H

#include "base/map.h"
#include "base/vec.h"
#include "store/priv.h"

struct sqlite3;
struct sqlite3_stmt;

struct mg_reading { /* all databases of one DIR */
    struct mg_recording *p;
    struct mg_intern names;  /* every text: equal text, one copy */
    struct mg_map kernel_of; /* interned "module\nname\nblocks" -> global kernel */
    MG_VEC(struct mg_prun) runs;
    MG_VEC(struct mg_pprocess) processes;
    MG_VEC(struct mg_pkernel) kernels;
    struct mg_plaunch *launches; /* 64-bit count */
    uint64_t n_launches, cap_launches;
    MG_VEC(struct mg_punknown) unknowns;
    MG_VEC(struct mg_ptool) tools;
    MG_VEC(struct mg_puse) uses;
    MG_VEC(struct mg_pregion) regions;
    MG_VEC(struct mg_plaunch_cells) launch_cells;
    MG_VEC(const char *) empty; /* a line for each database without a process */
    uint64_t run;               /* only what belongs to this one; 0: everything */
    struct mg_diag *diag;
};
struct mg_one_db { /* the database being read */
    struct mg_reading *r;
    const char *path;
    struct sqlite3 *sql;
    int64_t version;
    uint32_t process;
    MG_VEC(uint32_t) kernels; /* local id -> global id */
    MG_VEC(uint32_t) n_blocks;
    MG_VEC(uint32_t) uses;  /* the same of tools */
    struct mg_map regions;  /* local use << 32 | kernel -> global region */
    struct mg_map launches; /* local id -> global id */
};

typedef enum mg_err (*mg_row_fn)(struct mg_one_db *o, struct sqlite3_stmt *st);
/* SELECT columns rest; a column "N:name" came with version N and reads as NULL before. */
enum mg_err mg_each_row(struct mg_one_db *o, const char *columns, const char *rest, mg_row_fn fn);
enum mg_err mg_damaged(struct mg_one_db *o, const char *what);
const char *mg_text_at(struct mg_one_db *o, struct sqlite3_stmt *st, int col); /* interned; NULL: null */

/* Tools, their regions and what they counted (regions.c); after the launches. */
enum mg_err mg_read_regions(struct mg_one_db *o);
void mg_regions_done(struct mg_reading *r); /* orders them and sorts the entries of their tables */

#endif
