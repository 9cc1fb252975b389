/* After how many launches the program waited at once (waits.c). */
#ifndef MG_INJECT_WAITS_H
#define MG_INJECT_WAITS_H

#include "abi/cu.h"

void mg_waits_launched(cu_stream stream); /* this thread, directly and outside of captures */
void mg_waits_write(void);                /* to the profile, at the end of the session; nothing where there was none */

#endif
