/* Tools of the benchmark. */
#ifndef MG_BENCH_GPU_PROBES_H
#define MG_BENCH_GPU_PROBES_H

#include "patch/patch.h"

const struct mg_tool *probe_find(const char *name); /* NULL: none of these */

#endif
