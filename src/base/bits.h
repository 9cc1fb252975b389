/* Sets of small numbers as rows of 64-bit words: `uint64_t set[mg_bits_words(n)]`, number i is bit i % 64 of word i
 * / 64. The caller owns the words and knows how many there are. */
#ifndef MG_BASE_BITS_H
#define MG_BASE_BITS_H

#include "base/compiler.h"

static inline uint32_t mg_bits_words(uint32_t n)
{
    return (n + 63) / 64;
}
static inline bool mg_has(const uint64_t *set, uint32_t i)
{
    return set[i >> 6] >> (i & 63) & 1;
}
static inline void mg_put(uint64_t *set, uint32_t i)
{
    set[i >> 6] |= 1ull << (i & 63);
}
static inline void mg_cut(uint64_t *set, uint32_t i)
{
    set[i >> 6] &= ~(1ull << (i & 63));
}

/* Union into `to`. True: it grew. */
static inline bool mg_bits_join(uint64_t *to, const uint64_t *from, uint32_t words)
{
    uint64_t grew = 0;
    for (uint32_t w = 0; w < words; w++) {
        grew |= from[w] & ~to[w];
        to[w] |= from[w];
    }
    return grew != 0;
}

/* Intersection into `to`. True: it shrank. */
static inline bool mg_bits_meet(uint64_t *to, const uint64_t *from, uint32_t words)
{
    uint64_t gone = 0;
    for (uint32_t w = 0; w < words; w++) {
        gone |= to[w] & ~from[w];
        to[w] &= from[w];
    }
    return gone != 0;
}

#endif
