/* What the launch entries of launch.c and legacy.c share. */
#ifndef MG_INJECT_LAUNCH_H
#define MG_INJECT_LAUNCH_H

#include "inject/run.h"

struct mg_call { /* one launch as the application asked for it */
    cu_function f;
    struct mg_shape shape;
    void **params, **extra;
    const struct cu_launch_config *config; /* cuLaunchKernelEx */
    /* Makes the driver's call for the application's function or for its twin. */
    cu_result (*send)(const struct mg_call *c, cu_function f, void **params, void **extra);
};
cu_result mg_launch(const struct mg_call *c);

#endif
