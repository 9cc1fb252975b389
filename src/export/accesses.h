/* Traces of accesses (trace/access.h) in the formats of other programs, and back.
 *
 *   csv            a line for each lane
 *   thesis         24 bytes a lane, a file a stream: Rieber, "Instrumentation of CUDA programs ..."
 *                  (docs/man/trace.md)
 *   cudamemtrace   its public successor's version 3: 27 bytes for a run of adjacent accesses of a CTA
 *   accelsim       Accel-Sim: memory instructions alone, by CTA and warp; caches and DRAM, no cycles
 *
 * Formats are rows of one table (accesses.c). */
#ifndef MG_EXPORT_ACCESSES_H
#define MG_EXPORT_ACCESSES_H

#include "base/io.h"
#include "trace/access.h"

struct mg_convert_opts {
    size_t size;          /* sizeof this struct */
    const char *out;      /* a file, or a folder that is made */
    uint64_t first, last; /* launches */
};
struct mg_converted {
    uint64_t launches, native, accesses, lanes, bytes;
};
struct mg_convert_format {
    const char *name, *what;
    bool is_folder; /* makes a folder of files, else one file */
    enum mg_err (*write)(struct mg_accesses *a, const struct mg_convert_opts *o, struct mg_converted *out,
                         struct mg_diag *d);
};
const struct mg_convert_format *mg_convert_find(const char *name); /* NULL: none */
const struct mg_convert_format *mg_convert_at(uint32_t ix);        /* NULL past the last */

/* ---- inside of this folder ---- */

extern const struct mg_convert_format mg_convert_csv, mg_convert_thesis, mg_convert_cudamemtrace, mg_convert_accelsim;

/* Calls fn for each step of the selected launches, and for other steps where `all`. */
enum mg_err mg_convert_each(struct mg_accesses *a, const struct mg_convert_opts *o, struct mg_converted *out, bool all,
                            enum mg_err (*fn)(void *user, const struct mg_trace_step *s, struct mg_diag *d), void *user,
                            struct mg_diag *d);
/* A file of its own in the folder; folder NULL: name is the path, and "-" standard output. */
enum mg_err mg_convert_create(struct mg_io_part *p, const char *folder, const char *name,
                              struct mg_diag *d) MG_MUST_CHECK;
/* err: of what was read. What stands in front of damage is written all the same. */
enum mg_err mg_convert_finish(struct mg_io_part *p, enum mg_err err, struct mg_diag *d) MG_MUST_CHECK;
/* An empty one may be there. */
enum mg_err mg_convert_make_folder(const char *path, struct mg_diag *d);
static inline void mg_convert_cta(const struct mg_trace_step *s, uint64_t cta, uint32_t out[3])
{
    uint64_t x = s->grid[0] ? s->grid[0] : 1, y = s->grid[1] ? s->grid[1] : 1;
    out[0] = (uint32_t)(cta % x);
    out[1] = (uint32_t)(cta / x % y);
    out[2] = (uint32_t)(cta / x / y);
}

#endif
