/* Names of host code at report time: an address inside a file to its function and line, by elfutils' libdw where that
 * is installed (its symbol tables, DWARF, separate debug files by build id or link). A file that has changed since it
 * was recorded (another build id; without one, a later time), or that is not there, gives none. */
#ifndef MG_SPAN_SYMBOLS_H
#define MG_SPAN_SYMBOLS_H

#include "base/map.h"
#include "base/vec.h"

struct mg_symbol {        /* texts live as long as the table */
    char *symbol;         /* as in the file; NULL: not known */
    const char *function; /* as people write it; NULL: not known */
    const char *file;     /* of the source; NULL: not known */
    uint32_t line;
};
struct mg_symbol_file;
struct mg_symbols {
    struct mg_map by_address; /* -> found */
    MG_VEC(struct mg_symbol *) found;
    MG_VEC(struct mg_symbol_file *) files;
    void *library;
    bool tried;
    uint32_t changed, missing; /* files */
    const char *first;         /* of these */
};
void mg_symbols_release(struct mg_symbols *s);
/* The number of a file; build_id "": it had none, and is taken for the same if it was not written since then. */
uint32_t mg_symbols_file(struct mg_symbols *s, const char *path, const char *build_id, uint64_t then_unix_ns);
const char *mg_symbols_path(const struct mg_symbols *s, uint32_t file);
/* address: as in the file. */
const struct mg_symbol *mg_symbols_find(struct mg_symbols *s, uint32_t file, uint64_t address);
bool mg_symbols_has_library(struct mg_symbols *s);

#endif
