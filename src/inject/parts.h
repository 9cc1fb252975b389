/* Allocations that a replay makes inside of memory that it maps (parts.c). */
#ifndef MG_INJECT_PARTS_H
#define MG_INJECT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

/* The one that an address lies in; its number is no other allocation's. */
bool mg_part_find(uint64_t address, uint64_t *id, uint64_t *offset, uint64_t *bytes);

#endif
