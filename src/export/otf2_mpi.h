#ifndef MG_EXPORT_OTF2_MPI_H
#define MG_EXPORT_OTF2_MPI_H

#include "export/format.h"
#include "export/otf2_library.h"

struct mg_otf2_communicator {
    uint64_t id;
    MG_VEC(int32_t) ranks; /* members that are on the time line */
};
struct mg_otf2_mpi {
    MG_VEC(struct mg_otf2_communicator) communicators; /* in the order in which they were met; the world first */
    struct mg_map ix_of;
};
struct mg_otf2_collective {
    bool is;
    uint8_t operation;
    uint32_t communicator, root;
    uint64_t sent, received; /* all ones: not known */
};
void mg_otf2_mpi_release(struct mg_otf2_mpi *m);
/* What an end of a message is at the begin or at the end of its call; the library's error. *written: events. */
int mg_otf2_mpi_message(struct mg_otf2_mpi *m, struct mg_export *x, const struct mg_otf2 *lib,
                        struct OTF2_EvtWriter_struct *w, uint64_t time_ns, const struct mg_message_end *e, bool begins,
                        uint32_t *written);
/* Is the call a collective operation? */
bool mg_otf2_mpi_collective(struct mg_otf2_mpi *m, struct mg_export *x, const struct mg_span *call,
                            struct mg_otf2_collective *out);
/* The groups and communicators that were met. */
int mg_otf2_mpi_define(struct mg_otf2_mpi *m, struct mg_export *x, const struct mg_otf2 *lib,
                       struct OTF2_GlobalDefWriter_struct *w, uint32_t *n_strings);

#endif
