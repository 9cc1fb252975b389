/* Hashes: a fast one for tables, SHA-256 for identities that leave the process. */
#ifndef MG_BASE_HASH_H
#define MG_BASE_HASH_H

#include "base/compiler.h"

uint64_t mg_hash64(const void *p, size_t bytes, uint64_t seed);
static inline uint64_t mg_mix64(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}
struct mg_sha256 {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[64];
};
void mg_sha256_init(struct mg_sha256 *s);
void mg_sha256_add(struct mg_sha256 *s, const void *p, size_t bytes);
void mg_sha256_end(struct mg_sha256 *s, uint8_t out[32]);
void mg_sha256_of(const void *p, size_t bytes, uint8_t out[32]);
/* The first n bytes of a sum as 2 * n digits and NUL. */
void mg_sha256_hex(const uint8_t sum[32], unsigned n, char *out);
/* Identity of a PTX text: first 16 bytes of SHA-256 as 32 hex digits and NUL. Trailing NULs of the
 * text are not part of it. */
void mg_text_id(const char *text, size_t bytes, char out[33]);

#endif
