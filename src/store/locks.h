/* Locks of SQLite that belong to an open file, and not to the process. */
#ifndef MG_STORE_LOCKS_H
#define MG_STORE_LOCKS_H

#include <stdbool.h>

/* Before the first database is opened; any number of times. A process may hold two copies of SQLite (the writer's and
 * libmargay-profile's), and may open and close our files itself. POSIX' locks do not see the other copy's, which then
 * starts a log afresh that is in use; and whoever closes any descriptor of the file drops them all. */
void mg_locks_prepare(void);
/* Was there a file whose file system has no locks? It can be neither written nor read. */
bool mg_locks_missing(void);

#endif
