/* The policy none: every gate stays open. It shows what programs do to each other. */
#include <margay/policy.h>
#include <stddef.h>

extern const struct mg_policy mg_policy_none;
const struct mg_policy mg_policy_none = {.version = MG_POLICY_VERSION, .name = "none", .turns = 0};
