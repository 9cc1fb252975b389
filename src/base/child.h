/* Programs that we start: found by name, waited for. Not for code in the application's process. */
#ifndef MG_BASE_CHILD_H
#define MG_BASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>

/* In the folders of PATH, then of `also` (NULL: none). */
bool mg_child_find(const char *name, const char *also, char *path, size_t size);
/* True when it ended with status 0. Its output goes to the file `out` and its messages nowhere, or (NULL) where ours
 * go. */
bool mg_child_run(char *const argv[], const char *out);

struct mg_buf;
/* Runs code that is not ours in a process of its own, with nothing on stdout and stderr. True: it came back; what it
 * put behind `out` is there. False: `why` says how the process ended. */
bool mg_child_try(void (*fn)(void *user, struct mg_buf *out), void *user, struct mg_buf *out, char why[100]);

#endif
