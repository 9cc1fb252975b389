/* Device memory of the software devices: two reserved arenas of address space, live allocations in a table that
 * every access can be checked against. Shared by emulator and CPU device.
 *
 *   program's  ├── device allocations, module globals, pools, host-visible (pinned, managed) ──┤  a red zone on
 *              each side of each
 *   our own    ├── context blocks, counters, channels, frames ──┤  for inserted accesses alone
 *
 * Ordinary host memory that the program registers (cuMemHostRegister) is entered in the program's table.
 * Device addresses are host addresses. All calls are thread-safe.
 */
#ifndef MG_DEVICE_MEM_H
#define MG_DEVICE_MEM_H

#include "base/compiler.h"

enum mg_alloc_kind {
    MG_ALLOC_DEVICE,
    MG_ALLOC_HOST /* pinned */,
    MG_ALLOC_REGISTERED,
    MG_ALLOC_MANAGED,
    MG_ALLOC_GLOBAL /* module variable */,
    MG_ALLOC_CONST,
    MG_ALLOC_HEAP /* device malloc */,
    MG_ALLOC_INTERNAL /* ours: context blocks, counters; in the arena of our own */,
    MG_ALLOC_VMM,
    MG_ALLOC_RUNTIME /* ours, for the program's instructions to reach: what device runtime calls hand out */
};
struct mg_alloc {
    uint64_t base, bytes;
    uint64_t id; /* dense, in order of allocation, never reused: what profiles name */
    enum mg_alloc_kind kind;
    bool readonly;
    uint32_t tag; /* owner's use (context) */
};

bool mg_mem_init(
    uint64_t reserve_bytes); /* idempotent; 0 = default (what --as says of total memory, capped by address space) */
/* Before any memory is asked for: the program's arena begins at this address. False: it is not free. What kernels
 * allocate lies from heap_base on where that is free. */
bool mg_mem_init_at(uint64_t base, uint64_t heap_base);
/* 0 when out of memory. Zero-filled is not promised. align 0: 256 (what CUDA promises), at least. */
uint64_t mg_mem_alloc(uint64_t bytes, uint64_t align, enum mg_alloc_kind kind);
bool mg_mem_free(uint64_t base);                     /* false: not the base of a live allocation */
bool mg_mem_register(uint64_t base, uint64_t bytes); /* host range; kind REGISTERED */
bool mg_mem_register_as(uint64_t base, uint64_t bytes,
                        enum mg_alloc_kind kind); /* REGISTERED or VMM (mapped by the driver) */
bool mg_mem_unregister(uint64_t base);
void mg_mem_arena(uint64_t out[2]);                           /* the program's: where it begins, bytes */
bool mg_mem_find(uint64_t address, struct mg_alloc *out);     /* the program's live allocation that holds address */
bool mg_mem_find_any(uint64_t address, struct mg_alloc *out); /* ours, too: for inserted accesses */
/* For messages: the program's allocations on both sides, one that was freed not long ago, is it in our arena? */
bool mg_mem_nearest(uint64_t address, struct mg_alloc *below, struct mg_alloc *above);
bool mg_mem_find_freed(uint64_t address, struct mg_alloc *out);
bool mg_mem_has_freed(uint64_t lo, uint64_t hi); /* was some of it freed not long ago? */
bool mg_mem_is_own(uint64_t address);
/* Ranges that were freed may be given out again at once (else after 1 GiB more). */
void mg_mem_reuse_freed(void);
/* Every live allocation of the program's in address order; fn must not allocate. */
void mg_mem_each(void (*fn)(void *user, const struct mg_alloc *a), void *user);
void mg_mem_totals(uint64_t *live_bytes, uint64_t *limit_bytes);
void mg_mem_set_limit(uint64_t bytes);
bool mg_mem_set_tag(uint64_t base, uint32_t tag);
/* Address space of the host at this address, 0: anywhere; NULL: it is not free. */
void *mg_mem_map_at(uint64_t base, uint64_t bytes, int protection);
/* Grows by one at every change of the table: a cached mg_mem_find result is valid while it is equal. */
uint64_t mg_mem_epoch(void);
void mg_mem_changed(void); /* another epoch: what was found about memory may no longer hold */

#endif
