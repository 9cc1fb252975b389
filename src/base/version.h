/* The version that `margay --version` and pages name. */
#ifndef MG_BASE_VERSION_H
#define MG_BASE_VERSION_H

#define MG_VERSION "0.1.0"

#endif
