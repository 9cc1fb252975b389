/* The profile that a command means when no directory is given. */
#ifndef MG_CLI_NEWEST_H
#define MG_CLI_NEWEST_H

#include <limits.h>

#include "base/compiler.h"

/* Does the directory hold a profile? */
bool mg_is_profile(const char *dir);
/* Does "." stand for the newest profile below it, having none itself? */
bool mg_means_newest(const char *dir);
/* The directory in the working directory (or that itself) whose profile was written last, but for the `skip` newest
 * ones; false: there is none. Says on stderr which it is. */
bool mg_newest_profile(uint32_t skip, char dir[PATH_MAX]);

#endif
