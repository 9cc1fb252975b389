/* Which buffer a memory instruction accesses (buffers.c). */
#ifndef MG_REPORT_BUFFERS_H
#define MG_REPORT_BUFFERS_H

#include "report/facts.h"
#include "report/lines.h"

struct mg_buffers;
struct mg_buffers *mg_buffers_new(const struct mg_recording *p, struct mg_lines *modules); /* modules outlive it */
void mg_buffers_free(struct mg_buffers *b);
/* NULL: not known. Owner: b. The second gives the text alone. */
const struct mg_buffer_name *mg_buffer_name_at(struct mg_buffers *b, const struct mg_pkernel *k, const char *function,
                                               uint32_t ptx_line);
const char *mg_buffer_at(struct mg_buffers *b, const struct mg_pkernel *k, const char *function, uint32_t ptx_line);
const char *mg_buffer_of(struct mg_buffers *b, const struct mg_fact *f);
/* Register and offset of the address, where the only instruction of that line has one; false: none. */
bool mg_buffer_base_at(struct mg_buffers *b, const struct mg_pkernel *k, const char *function, uint32_t ptx_line,
                       uint32_t *base, int64_t *offset);
/* Is this an atomic whose lanes the assembler adds up before memory sees them? `full`: all 32 execute it together. */
bool mg_buffer_is_added_up(struct mg_buffers *b, const struct mg_pkernel *k, const char *function, uint32_t ptx_line,
                           bool full);
const struct mg_buffer_name *mg_buffer_of_site(struct mg_buffers *b, uint32_t kernel, const char *function,
                                               uint32_t ptx_line);

#endif
