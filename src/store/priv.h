/* Inside store/: the schema's version, its statements and the encodings of columns. */
#ifndef MG_STORE_PRIV_H
#define MG_STORE_PRIV_H

#include "store/store.h"

#define MG_STORE_APP_ID  0x4d475052 /* "MGPR": PRAGMA application_id */
#define MG_STORE_VERSION 9          /* PRAGMA user_version; readers take older, refuse newer */

/* Every table, in one batch. */
extern const char mg_store_schema[];

/* Counts as bytes: LEB128 of each value; a 0 is followed by LEB128 of how many more zeros follow. */
size_t mg_counts_bound(uint32_t n);
size_t mg_counts_encode(const uint64_t *v, uint32_t n, uint8_t *out);
/* False when the bytes are not exactly n values. */
bool mg_counts_decode(const uint8_t *p, size_t bytes, uint64_t *v, uint32_t n);

/* Arguments as bytes: per argument LEB128 of offset, bytes, kind, allocation, allocation_off, then
 * the raw value (bytes long). */
size_t mg_args_bound(const struct mg_store_arg *a, uint32_t n);
size_t mg_args_encode(const struct mg_store_arg *a, uint32_t n, uint8_t *out);
/* Copies into the arena; false when damaged. */
bool mg_args_decode(const uint8_t *p, size_t bytes, struct mg_arena *arena, struct mg_store_arg **a, uint32_t *n);

/* Reads one LEB128 value; NULL when it runs past end or over 64 bits. */
const uint8_t *mg_leb_read(const uint8_t *p, const uint8_t *end, uint64_t *v);
uint8_t *mg_leb_write(uint8_t *p, uint64_t v);
#define MG_LEB_MAX 10

/* Sums launches into kernels; scales what was counted in one CTA or warp; sets the error of that. */
void mg_recording_sum(struct mg_recording *p);
/* Says of every block whether its count may depend on timing. */
void mg_timing_resolve(struct mg_recording *p);
/* How blocks were counted: from the row tools/margay/scope; before version 6 from the tools' options scope=, cta=,
 * warp=. */
void mg_scope_read(struct mg_pprocess *process, const char *json);
void mg_scope_parse(struct mg_pprocess *process);

#endif
