/* Sizes of the allocations that arguments of kernels point into (buffers.c). */
#ifndef MG_INJECT_BUFFERS_H
#define MG_INJECT_BUFFERS_H

#include <stdint.h>

/* An argument points into this allocation. Any thread, while the store is open. */
void mg_buffers_note(uint64_t allocation, uint64_t bytes);

#endif
