/* Compiles probes in C to PTX: with clang where it is installed, else with NVRTC. */
#ifndef MG_CLI_PROBE_COMPILE_H
#define MG_CLI_PROBE_COMPILE_H

#include "base/buf.h"
#include "base/diag.h"

/* with: "clang", "nvrtc" or NULL. PTX into out. Messages of the compiler go to stderr. */
enum mg_err mg_probe_compile(const char *file, const char *with, struct mg_buf *out, struct mg_diag *d) MG_MUST_CHECK;
/* A probe for `margay run`: FILE.c is compiled, or taken from the cache when it was compiled before; FILE.ptx is
 * taken as it is. Program that fires it (the first clauses of -e) into text. */
enum mg_err mg_probe_program(const char *file, struct mg_buf *text, struct mg_diag *d) MG_MUST_CHECK;

#endif
