/* Which function holds an address of this process: from the symbol table of the file that it was loaded from. */
#ifndef MG_TAU_CALLER_H
#define MG_TAU_CALLER_H

#include "base/compiler.h"

/* The function's name without parameters ("main", "Solver::step"), malloc'd; NULL: not known. */
char *tau_function_at(const void *address);

#endif
