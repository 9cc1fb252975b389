/* C++ names of kernels as people write them: the part of the Itanium ABI's name grammar that
 * kernels use. Written here so that nothing needs a C++ runtime; spelled as c++filt spells.
 * A name with what is not read (folds and new in template arguments) stays raw. */
#ifndef MG_BASE_DEMANGLE_H
#define MG_BASE_DEMANGLE_H

#include <stdbool.h>

#include "base/buf.h"

/* malloc'd text, or NULL when the name is not mangled or not understood. */
char *mg_demangle(const char *name);
/* Adds that text, or the name as it is; of a text longer than `most` the function alone, as f<..>. */
void mg_demangle_add(struct mg_buf *out, const char *name, size_t most);

/* Does a pattern (as of fnmatch) name this kernel? Any of these may fit: the name as in the PTX, the whole
 * C++ name, and of it the function's name, with or without its namespaces and template arguments:
 * _ZN2ns1fIdEEvPT_ is "void ns::f<double>(double*)", ns::f<double>, ns::f, f<double> and f. */
bool mg_name_matches(const char *glob, const char *name);

#endif
