/* Environment variables of Margay's own, by id (env.def). */
#ifndef MG_BASE_ENV_H
#define MG_BASE_ENV_H

#include "base/compiler.h"

enum mg_env {
#define ENV(id, who, text) MG_ENV_##id,
#include "base/env.def"
#undef ENV
    MG_ENV_COUNT
};
const char *mg_env_name(enum mg_env e); /* "MARGAY_DIR" */
const char *mg_env(enum mg_env e);      /* its value; NULL: not set */

#endif
