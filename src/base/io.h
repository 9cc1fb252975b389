/* Whole-file reading and writing, and paths. */
#ifndef MG_BASE_IO_H
#define MG_BASE_IO_H

#include <stdio.h>

#include "base/diag.h"

/* Reads a file into malloc'd memory with a NUL behind it; *bytes excludes the NUL. */
enum mg_err mg_io_read(const char *path, char **data, size_t *bytes, struct mg_diag *d) MG_MUST_CHECK;

/* A file that is there whole or not at all: it is written beside its place, as PATH.PID.part, and then takes the name.
 * What stood there stays until then. What is no regular file (/dev/stdout, a pipe), or lies where no second file may be
 * made, is written as it is. */
struct mg_io_part {
    FILE *file;
    char *path, *part; /* part NULL: the path itself is written */
};
enum mg_err mg_io_part_open(struct mg_io_part *p, const char *path, struct mg_diag *d) MG_MUST_CHECK;
/* err: of the writer; then, or when the file cannot be written, nothing is left. Returns it, or what went wrong here.
 */
enum mg_err mg_io_part_close(struct mg_io_part *p, enum mg_err err, struct mg_diag *d) MG_MUST_CHECK;
/* Where to write, for a library that opens files itself: it does so before _close. */
static inline const char *mg_io_part_path(const struct mg_io_part *p)
{
    return p->part ? p->part : p->path;
}
/* The same of bytes in memory. */
enum mg_err mg_io_write(const char *path, const void *data, size_t bytes, struct mg_diag *d) MG_MUST_CHECK;
uint64_t mg_now_ns(void); /* CLOCK_MONOTONIC */
struct stat;
uint64_t mg_io_written_ns(const struct stat *st); /* since 1970 */
/* Folder of what is kept between runs: $MARGAY_CACHE, else $XDG_CACHE_HOME/margay, else
 * $HOME/.cache/margay, with `part` below it; `path` has room for PATH_MAX. False: there is no such
 * place (path is then ""), or with `make`, it cannot be made (errno). */
bool mg_io_cache_dir(const char *part, char *path, bool make);

#endif
