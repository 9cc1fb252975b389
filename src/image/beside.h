/* PTX that lies on disk for machine code that carries none: what compilers that run as processes left.
 *
 *   XLA and others ── ptxas, our wrapper in front (cli/cmd_ptxas.c) ──► mg_beside_keep ──► CACHE/ptx/<hash>.ptx
 *   Triton, inductor ── their own cache: <name>.cubin and <name>.ptx of one compilation in one folder
 */
#ifndef MG_IMAGE_BESIDE_H
#define MG_IMAGE_BESIDE_H

#include "base/diag.h"

/* The PTX that this cubin was made of, malloc'd with a NUL behind it; NULL: nobody left it. */
char *mg_beside_find(const void *cubin, size_t bytes, size_t *ptx_bytes);
/* Leaves it for later processes. */
enum mg_err mg_beside_keep(const void *cubin, size_t bytes, const char *ptx, size_t ptx_bytes,
                           struct mg_diag *d) MG_MUST_CHECK;

#endif
