/* Whole-file reading and writing, and paths. */
#ifndef MG_BASE_IO_H
#define MG_BASE_IO_H

#include "base/diag.h"

/* Reads a file into malloc'd memory with a NUL behind it; *bytes excludes the NUL. */
enum mg_err mg_io_read(const char *path, char **data, size_t *bytes, struct mg_diag *d) MG_MUST_CHECK;
enum mg_err mg_io_write(const char *path, const void *data, size_t bytes, struct mg_diag *d) MG_MUST_CHECK;
uint64_t mg_now_ns(void); /* CLOCK_MONOTONIC */
/* Folder of what is kept between runs: $MARGAY_CACHE, else $XDG_CACHE_HOME/margay, else
 * $HOME/.cache/margay, with `part` below it; `path` has room for PATH_MAX. False: there is no such
 * place, or with `make`, it cannot be made. */
bool mg_io_cache_dir(const char *part, char *path, bool make);

#endif
