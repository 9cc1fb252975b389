/* --check: which bytes of global memory somebody has written.
 *
 *   a page of 4 KiB is   written as a whole            MG_PAGE_DEFINED: nothing is kept
 *                        as it was allocated           MG_PAGE_FRESH: nothing is kept
 *                        in part, or with what was     struct mg_page: a bit for each bit, 1: defined,
 *                        undefined itself              and who stored undefined bits
 *
 * Memory counts as written unless mg_defined_fresh() said otherwise: what the host can write (pinned,
 * managed, registered), variables of modules and memory of ours never are anything else. Kernels write
 * pages without a lock, as they write memory; the host's calls take one.
 *
 * A store of undefined bits is not an error by itself. Each place that does it has a number (mg_defined_
 * store_new); when such bytes are copied to the host the first place of each kernel is told.
 */
#ifndef MG_DEVICE_DEFINED_H
#define MG_DEVICE_DEFINED_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"

#define MG_PAGE_SHIFT 12
#define MG_PAGE_BYTES (1u << MG_PAGE_SHIFT)
#define MG_PAGE_WORDS (MG_PAGE_BYTES / 4)
struct mg_page {
    uint8_t bits[MG_PAGE_BYTES];
    _Atomic(uint8_t *) who; /* of each 4 bytes: the store that left undefined bits there, 0: none; NULL: none at all */
    _Atomic uint32_t looks; /* since it was made: now and then it is asked whether it is wholly defined by now */
    struct mg_page *next;   /* free, or retired */
};
#define MG_PAGE_DEFINED ((uintptr_t)0)
#define MG_PAGE_FRESH   ((uintptr_t)1)

extern bool mg_defined_on;   /* set by the device that looks; without it the calls do nothing */
bool mg_defined_begin(void); /* false: out of memory, and mg_defined_on stays as it is */

/* Of ranges, by the host. */
void mg_defined_fresh(uint64_t base, uint64_t bytes); /* allocated: nobody has written it */
void mg_defined_set(uint64_t base, uint64_t bytes);   /* written; or freed */
void mg_defined_copy(uint64_t to, uint64_t from, uint64_t bytes,
                     bool to_host); /* memory was copied; to_host: undefined bits are told of */

/* Of pages, by kernels. */
enum { MG_PAGE_LOW = 18, MG_PAGE_HIGH = 18 };
typedef _Atomic uintptr_t mg_page_slot;
extern _Atomic(mg_page_slot *) *mg_page_table;
static inline uintptr_t mg_page_of(uint64_t address)
{
    uint64_t high = address >> (MG_PAGE_SHIFT + MG_PAGE_LOW);
    mg_page_slot *row = high >> MG_PAGE_HIGH ? NULL : atomic_load_explicit(&mg_page_table[high], memory_order_acquire);
    return row ? atomic_load_explicit(&row[address >> MG_PAGE_SHIFT & ((1u << MG_PAGE_LOW) - 1)], memory_order_acquire)
               : MG_PAGE_DEFINED;
}
struct mg_page *mg_page_open(uint64_t address); /* made where there is none; NULL: out of memory */
/* Is it wholly defined? Looked for at some of the calls; then nothing is kept of the page any more. */
bool mg_page_try_defined(uint64_t address, struct mg_page *p);
/* Around each launch: pages that were given up while kernels ran are used again when none does. */
void mg_defined_enter(void);
void mg_defined_leave(void);
void mg_page_who(struct mg_page *p, uint64_t address, uint32_t bytes, uint8_t store);

/* Stores of undefined bits. */
enum { MG_DEFINED_STORES = 255 };
uint8_t mg_defined_store_new(const char *kernel,
                             uint64_t place); /* the same number for the same place; 0: there are too many */
void mg_defined_store_tell(uint8_t store, const char *text); /* the line for it */
uint64_t mg_defined_copied(
    uint8_t store); /* bytes of it that were copied to the host; 0: none, or another place of the kernel was told */
const char *mg_defined_said(void); /* a line that is to be said now, each once; NULL: none. After copies. */

#endif
