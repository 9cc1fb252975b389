/* Device memory of the software devices: one reserved arena of address space, live allocations in
 * a table that every access can be checked against. Shared by emulator and CPU device.
 *
 *   reserve ├── device allocations, module globals, pools, host-visible (pinned, managed) ──┤
 *
 * Ordinary host memory that the program registers (cuMemHostRegister) is entered in the same table.
 * Device addresses are host addresses. All calls are thread-safe.
 */
#ifndef MG_DEVICE_MEM_H
#define MG_DEVICE_MEM_H

#include "base/compiler.h"

enum mg_alloc_kind {
    MG_ALLOC_DEVICE, MG_ALLOC_HOST /* pinned */, MG_ALLOC_REGISTERED, MG_ALLOC_MANAGED, MG_ALLOC_GLOBAL /* module variable */,
    MG_ALLOC_CONST, MG_ALLOC_HEAP /* device malloc */, MG_ALLOC_INTERNAL /* ours: context blocks, counters */, MG_ALLOC_VMM
};
struct mg_alloc {
    uint64_t base, bytes;
    uint64_t id;          /* dense, in order of allocation, never reused: what profiles name */
    enum mg_alloc_kind kind;
    bool readonly;
    uint32_t tag;         /* owner's use (context) */
};

bool mg_mem_init(uint64_t reserve_bytes); /* idempotent; 0 = default (what --as says of total memory, capped by address space) */
/* 0 when out of memory. Zero-filled is not promised. align 0: 256 (what CUDA promises), at least. */
uint64_t mg_mem_alloc(uint64_t bytes, uint64_t align, enum mg_alloc_kind kind);
bool mg_mem_free(uint64_t base);                        /* false: not the base of a live allocation */
bool mg_mem_register(uint64_t base, uint64_t bytes);    /* host range; kind REGISTERED */
bool mg_mem_register_as(uint64_t base, uint64_t bytes, enum mg_alloc_kind kind); /* REGISTERED or VMM (mapped by the driver) */
bool mg_mem_unregister(uint64_t base);
void mg_mem_arena(uint64_t out[2]);                     /* where it begins, bytes */
bool mg_mem_find(uint64_t address, struct mg_alloc *out); /* live allocation that holds address */
bool mg_mem_nearest(uint64_t address, struct mg_alloc *below, struct mg_alloc *above); /* for messages */
/* Every live allocation in address order; fn must not allocate. */
void mg_mem_each(void (*fn)(void *user, const struct mg_alloc *a), void *user);
void mg_mem_totals(uint64_t *live_bytes, uint64_t *limit_bytes);
void mg_mem_set_limit(uint64_t bytes);
bool mg_mem_set_tag(uint64_t base, uint32_t tag);
bool mg_mem_set_readonly(uint64_t base, bool readonly); /* kernels may not store there (constants are so from the start) */
/* Grows by one at every change of the table: a cached mg_mem_find result is valid while it is equal. */
uint64_t mg_mem_epoch(void);

#endif
