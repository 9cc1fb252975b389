/* Environment variables of Margay's own, by id (env.def). One whose value is not allowed counts as not set; who starts
 * a program, or is started in one, says so (mg_env_wrong). */
#ifndef MG_BASE_ENV_H
#define MG_BASE_ENV_H

#include "base/compiler.h"

enum mg_env {
#define ENV(id, who, allowed, text) MG_ENV_##id,
#include "base/env.def"
#undef ENV
    MG_ENV_COUNT
};
const char *mg_env_name(enum mg_env e);           /* "MARGAY_DIR" */
const char *mg_env(enum mg_env e);                /* its value; NULL: not set */
bool mg_env_is(enum mg_env e, const char *value); /* is it set to this? */
/* Is the value one that is not allowed? text: "MARGAY_ISA=avx3: it takes sse, base, avx2 or avx512". */
bool mg_env_wrong(enum mg_env e, char *text, size_t bytes);

#endif
