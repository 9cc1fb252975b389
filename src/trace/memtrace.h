/* The format of Rieber's thesis and of its public successor, cuda-memtrace: records of 24 bytes, little-endian,
 *
 *   multiprocessor 32, type 4, size 28 | address 64 | CTA x 32, y 16, z 16         each word from its high bits
 *
 * thesis         24, newline; for each launch the kernel's name, newline, a record for each lane, a record of
 *                zeros.
 *                Types: load 1, store 2, atomic add sub exch min max inc dec cas and or xor 3 to 13
 * cudamemtrace   ten bytes that name the format and its version 3; for each launch 0, 16 bits, the kernel's name;
 *                then
 *                0xff and a record, or 0xfe, a record and 16 bits: so many accesses of one CTA, one behind the
 *                  other.
 *                Types: load 0, store 1, atomic 2. Version 2 has no runs
 *
 * There is no warp and no lane in them, nor copies. Written by export/accesses_memtrace.c, read here. */
#ifndef MG_TRACE_MEMTRACE_H
#define MG_TRACE_MEMTRACE_H

#include <stdio.h>

#include "base/diag.h"

enum { MG_MEMTRACE_RECORD = 24, MG_MEMTRACE_HEAD = 10, MG_MEMTRACE_ATOMICS = 11 };
enum { MG_MEMTRACE_KERNEL = 0x00, MG_MEMTRACE_RUN = 0xfe, MG_MEMTRACE_ONE = 0xff };
extern const uint8_t mg_memtrace_head[MG_MEMTRACE_HEAD];           /* of version 3 */
extern const char *const mg_memtrace_atomics[MG_MEMTRACE_ATOMICS]; /* types of the thesis from 3 on */

struct mg_memtrace_record {
    uint32_t sm, type, size;
    uint64_t address;
    uint32_t cta[3];
};
void mg_memtrace_pack(const struct mg_memtrace_record *r, uint8_t out[MG_MEMTRACE_RECORD]);

/* A file of one of the formats ("thesis", "cudamemtrace") as CSV:
 * "kernel,launch,sm,type,bytes,address,cta_x,cta_y,cta_z", a line for each access; launch counts the kernels of the
 * file. out "-": stdout. What stands in front of damage is written. */
enum mg_err mg_memtrace_read(const char *path, const char *format, const char *out, uint64_t *n,
                             struct mg_diag *d) MG_MUST_CHECK;
/* The same of bytes in memory, to a stream; NULL: nowhere. */
enum mg_err mg_memtrace_parse(const uint8_t *at, size_t bytes, bool is_thesis, FILE *to, uint64_t *n,
                              struct mg_diag *d) MG_MUST_CHECK;

#endif
