/* Files kept between runs under a hash of all they depend on: <cache folder>/<part>/<64 hex digits>.
 * A file is magic, SHA-256 of the rest, the rest; a damaged one, or one of another magic, is not there. */
#ifndef MG_BASE_CACHE_H
#define MG_BASE_CACHE_H

#include "base/hash.h"

/* Where the thing of this hash lies; `path` has room for PATH_MAX. False: there is no cache folder
 * (mg_io_cache_dir), or with `make` it cannot be made. */
bool mg_cache_path(const char *part, const uint8_t hash[32], bool make, char *path);
/* NULL when it is not there; else malloc'd. magic: 8 bytes. */
void *mg_cache_read(const char *path, const char *magic, size_t *bytes);
/* Written aside and renamed, so that a reader never sees half of one. Failing is no harm. */
void mg_cache_write(const char *path, const char *magic, const void *data, size_t bytes);
/* Who is told, once a process, that nothing can be kept and why. */
void mg_cache_hear(void (*tell)(const char *line));
/* Can files be kept? The folder is made for it, a file written and removed. text, of PATH_MAX + 200: where, or why not.
 */
bool mg_cache_try(char *text, size_t bytes);

#endif
