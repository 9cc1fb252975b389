/* margay trace convert --to accelsim-pseudo: every PTX instruction of a trace under a name of machine code. */
#ifndef MG_CLI_TRACE_PSEUDO_H
#define MG_CLI_TRACE_PSEUDO_H

#include "cli/trace_convert.h"
#include "export/accesses.h"

#define MG_PSEUDO_NAME "accelsim-pseudo"
#define MG_PSEUDO_WHAT "Accel-Sim: PTX instructions under names of machine code, virtual registers; no cycles"
/* As a format's write, with the profile that has the kernels' PTX. */
enum mg_err mg_trace_convert_pseudo(const char *profile, struct mg_accesses *a, const struct mg_convert_opts *o,
                                    struct mg_converted *out, struct mg_diag *d) MG_MUST_CHECK;

#endif
