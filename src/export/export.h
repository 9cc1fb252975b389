/* Writing the time line for other programs. One pass over the spans of a profile; memory does not grow with their
 * number, only with names, threads and streams. A format is one file of this folder and a row of formats[] in export.c.
 */
#ifndef MG_EXPORT_EXPORT_H
#define MG_EXPORT_EXPORT_H

#include "base/diag.h"

struct mg_export_opts {
    size_t size;     /* sizeof this struct */
    const char *out; /* file or folder, NULL: standard output, for formats of one file */
    bool demangle;   /* kernels by their C++ names */
    bool stages;     /* perfetto: device work as render stages */
    void (*progress)(void *ctx, uint64_t done, uint64_t all); /* records; NULL: none */
    void *ctx;
};
struct mg_export_result {
    uint64_t spans;
    uint64_t arrows;        /* from a call to its work */
    uint64_t lost_arrows;   /* work whose call is not on the time line, or too far back */
    uint64_t messages;      /* of MPI, both of whose ends are there */
    uint64_t lone_messages; /* sent or received, the other end is not there */
    uint64_t damaged;       /* chunks of the trace that were left out */
};
const char *mg_export_summary(const char *format); /* NULL: no such format */
bool mg_export_needs_folder(const char *format);   /* cannot go to standard output */
enum mg_err mg_export(const char *format, const char *dir, const struct mg_export_opts *o, struct mg_export_result *r,
                      struct mg_diag *d) MG_MUST_CHECK;

#endif
