/* See env.h. */
#include "base/env.h"

#include <stdlib.h>

static const char *const names[MG_ENV_COUNT] = {
#define ENV(id, who, text) "MARGAY_" #id,
#include "base/env.def"
#undef ENV
};

const char *mg_env_name(enum mg_env e)
{
    return names[e];
}

const char *mg_env(enum mg_env e)
{
    return getenv(names[e]);
}
