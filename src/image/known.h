/* PTX that is known to lie behind machine code: what a compiler inside the process (NVRTC) made of
 * one program, the cubin and the PTX beside it. mg_image_open_* gives such a cubin that PTX. */
#ifndef MG_IMAGE_KNOWN_H
#define MG_IMAGE_KNOWN_H

#include "base/compiler.h"

/* Both are copied; kept until the process ends, since nobody knows when the cubin is loaded last.
 * False: out of memory. */
bool mg_known_ptx_add(const void *cubin, size_t bytes, const char *ptx, size_t ptx_bytes);
/* The PTX behind these bytes, which lives as long as the process; NULL: unknown. */
const char *mg_known_ptx_find(const void *cubin, size_t bytes, size_t *ptx_bytes);

#endif
