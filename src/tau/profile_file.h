/* TAU's profile files, profile.NODE.CONTEXT.THREAD: written by the TAUcuda library and by `export tau`, read back by
 * reports. Times are in microseconds. docs/tau-cuda.md shows one. */
#ifndef MG_TAU_PROFILE_FILE_H
#define MG_TAU_PROFILE_FILE_H

#include "base/buf.h"
#include "base/diag.h"

struct tau_function {
    const char *name, *group;
    uint64_t calls, children;
    double exclusive_us, inclusive_us;
};
struct tau_user_event {
    const char *name;
    uint64_t n;
    double most, least, mean, sum_of_squares;
};
struct tau_metadata {
    const char *name, *value;
};
struct tau_file {
    uint32_t node, context, thread;
    struct tau_function *functions;
    uint32_t n_functions;
    struct tau_user_event *events;
    uint32_t n_events;
    struct tau_metadata *metadata;
    uint32_t n_metadata;
    char *text; /* owner of the strings of a file that was read */
};
void tau_file_print(const struct tau_file *f, struct mg_buf *out);
/* Reads a file's text; keeps it. A profile whose counts and lines do not agree is an error with its line. */
enum mg_err tau_file_parse(char *text, size_t bytes, const char *path, struct tau_file *f,
                           struct mg_diag *d) MG_MUST_CHECK;
void tau_file_release(struct tau_file *f); /* of one that was read */

#endif
