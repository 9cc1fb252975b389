/* What reaches the memory behind an L2: a cache of lines of 128 bytes in 4 sectors, fully associative, LRU, writes
 * allocate and are written when their line goes. For simulators of DRAM, which want misses. */
#ifndef MG_STUDY_DRAM_H
#define MG_STUDY_DRAM_H

#include "base/compiler.h"

struct mg_dram;
typedef void mg_dram_fn(void *user, uint64_t address, bool write); /* of a sector of 32 bytes */
/* Of so many bytes, one line at least. */
struct mg_dram *mg_dram_new(uint64_t bytes, mg_dram_fn *fn, void *user);
void mg_dram_free(struct mg_dram *d);
/* Sectors of a line, as bits. A store has all bytes of its sectors: they are not read from memory. */
void mg_dram_access(struct mg_dram *d, uint64_t line, unsigned sectors, bool reads, bool writes);

#endif
