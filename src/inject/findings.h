/* What devices and analyses found in a program, on its way to the store (findings.c, checked.c, unwritten.c). */
#ifndef MG_INJECT_FINDINGS_H
#define MG_INJECT_FINDINGS_H

#include "driver/driver.h"

struct mg_code;
struct mg_json;

/* Tool result "findings", n of them; while the store is open. */
void mg_findings_tell(const char *tool, uint32_t n, void (*write)(struct mg_json *j, uint32_t i));
/* Reads that the device let pass (findings.c); both while the store is open. */
void mg_findings_add(uint64_t kernel, uint64_t launch, const struct mg_launch_done *d);
void mg_findings_write(void);
/* What --check found (checked.c), called by those. */
void mg_checked_add(uint64_t kernel, uint64_t launch, const struct mg_launch_done *d);
void mg_checked_write(void);
/* Registers that a kernel may read without having written them (unwritten.c): when its blocks are looked at, then
 * while the store is open. */
void mg_unwritten_look(const struct mg_code *c);
void mg_unwritten_write(bool last);

#endif
