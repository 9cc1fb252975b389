/* Threads inside somebody else's process: signals are blocked on them, so that the application's handlers run
 * on its own threads. Faults of the thread itself are not: in a callback, or in memory of the application's, they are
 * its. */
#ifndef MG_BASE_THREAD_H
#define MG_BASE_THREAD_H

#include <pthread.h>

#include "base/compiler.h"

/* joinable NULL: detached. stack_bytes 0: the system's. False: there is no thread. */
bool mg_thread_start(void *(*fn)(void *), void *arg, size_t stack_bytes, pthread_t *joinable);
/* Names the calling thread for top -H, /proc and debuggers: at most 15 characters. */
void mg_thread_name(const char *name);
/* Has the process threads besides the calling one, those that mg_thread_start began and, where CUDA's driver is here,
 * the driver's? True where that is not known. */
bool mg_thread_has_others(bool cuda);
/* Processor time of this thread. */
uint64_t mg_thread_ns(void);
/* Processors that this process may run on, at least 1. */
unsigned mg_thread_cpus(void);

#endif
