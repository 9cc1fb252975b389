/* Processes of this machine: is one alive, and did it get the processor time that it wanted? On a busy machine
 * nothing of it moves for long, though nothing is stuck. From /proc; what cannot be read counts as "it did". */
#ifndef MG_BASE_PROCESSOR_H
#define MG_BASE_PROCESSOR_H

#include "base/compiler.h"

struct mg_processor {
    uint64_t got_ns, waited_ns; /* on a processor, and ready for one */
};
/* Adds up the threads that a process has now. */
void mg_processor_add(uint32_t pid, struct mg_processor *sum);
/* The part that it got of what it wanted from one time to a later one: 1/64 to 1. */
double mg_processor_part(const struct mg_processor *from, const struct mg_processor *to);
/* By a signal, or by a debugger. */
bool mg_process_is_stopped(uint32_t pid);
/* One that has ended and was not waited for is not. */
bool mg_process_is_alive(uint32_t pid);
uint32_t mg_process_parent(uint32_t pid); /* 0: there is no such process */

#endif
