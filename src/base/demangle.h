/* C++ names of kernels as people write them: the part of the Itanium ABI's name grammar that
 * kernels use. Written here so that nothing needs a C++ runtime; spelled as c++filt spells.
 * Expressions in template arguments (decltype, sizeof...) are not read: such a name stays raw. */
#ifndef MG_BASE_DEMANGLE_H
#define MG_BASE_DEMANGLE_H

/* malloc'd text, or NULL when the name is not mangled or not understood. */
char *mg_demangle(const char *name);

#endif
