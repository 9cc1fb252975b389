/* What the libraries inside the application do when memory runs out.
 *
 * The linker gives every allocation of these libraries, SQLite's included, to reserve.c (--wrap in the Makefile).
 * Where the C library has no memory the reserve serves: address space that was set aside at the first allocation.
 * So code here sees no failed allocation and needs no way back from one. What is under way is finished,
 * inject/ stops recording (mg_session_is_short), and the rest of the run is native. */
#ifndef MG_BASE_INPROC_RESERVE_H
#define MG_BASE_INPROC_RESERVE_H

#include "base/compiler.h"

/* Has an allocation failed so far? */
bool mg_memory_is_short(void);
/* Is there memory for a step that needs so much, the reserve left out? False is remembered as a failed allocation. */
bool mg_memory_has(size_t bytes);

#endif
