/* Launches of processes that died before these were written: their control pages know how many there were. */
#ifndef MG_CLI_RUN_DEAD_H
#define MG_CLI_RUN_DEAD_H

#include "base/vec.h"
#include "store/store.h"

struct mg_dead {
    uint32_t pid;
    uint64_t launches;
}; /* that the driver has taken, but those captured for a graph */
struct mg_deads {
    MG_VEC(struct mg_dead) list;
};

/* Writes to the databases of these processes how many of their launches are not there. True: some are not, and the
 * recording is to be opened again. */
bool mg_dead_note_missing(const struct mg_deads *deads, const struct mg_recording *p);

#endif
