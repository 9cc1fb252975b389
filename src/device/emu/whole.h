/* A lane's 8 or 16 bytes in memory that other workers may access, by one move (docs/schedule.md, "Memory").
 *
 * x86-64 does aligned moves of up to 8 bytes at once, and where there is AVX those of 16 bytes as well. What the C
 * compiler makes of an assignment or memcpy is its own affair (it takes elements straight from memory, or copies in two
 * halves), so the moves stand here as instructions. Without AVX strong accesses of 16 bytes go by cmpxchg16b
 * (emu_whole_needs_exchange).
 */
#ifndef MG_DEVICE_EMU_WHOLE_H
#define MG_DEVICE_EMU_WHOLE_H

#include <emmintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* at: a multiple of 16. to: our own memory. */
static inline void emu_get16(void *to, const void *at)
{
    __m128i v;
    __asm__("%vmovdqa %1, %0" : "=x"(v) : "m"(*(const __m128i *)at));
    memcpy(to, &v, 16);
}
static inline void emu_put16(void *at, const void *from)
{
    __m128i v;
    memcpy(&v, from, 16);
    __asm__("%vmovdqa %1, %0" : "=m"(*(__m128i *)at) : "x"(v));
}

/* The lane of `bytes`, aligned to as many; what is wider, 16 at a time. */
static inline __attribute__((always_inline)) void emu_get_lane(void *to, const void *at, uint32_t bytes)
{
    uint64_t v8;
    uint32_t v4;
    uint16_t v2;
    switch (bytes) {
    case 1:
        *(char *)to = *(const volatile char *)at;
        return;
    case 2:
        v2 = __atomic_load_n((const uint16_t *)at, __ATOMIC_RELAXED), memcpy(to, &v2, 2);
        return;
    case 4:
        v4 = __atomic_load_n((const uint32_t *)at, __ATOMIC_RELAXED), memcpy(to, &v4, 4);
        return;
    case 8:
        v8 = __atomic_load_n((const uint64_t *)at, __ATOMIC_RELAXED), memcpy(to, &v8, 8);
        return;
    default:
        for (uint32_t k = 0; k < bytes; k += 16) emu_get16((char *)to + k, (const char *)at + k);
    }
}
static inline __attribute__((always_inline)) void emu_put_lane(void *at, const void *from, uint32_t bytes)
{
    uint64_t v8;
    uint32_t v4;
    uint16_t v2;
    switch (bytes) {
    case 1:
        *(volatile char *)at = *(const char *)from;
        return;
    case 2:
        memcpy(&v2, from, 2), __atomic_store_n((uint16_t *)at, v2, __ATOMIC_RELAXED);
        return;
    case 4:
        memcpy(&v4, from, 4), __atomic_store_n((uint32_t *)at, v4, __ATOMIC_RELAXED);
        return;
    case 8:
        memcpy(&v8, from, 8), __atomic_store_n((uint64_t *)at, v8, __ATOMIC_RELAXED);
        return;
    default:
        for (uint32_t k = 0; k < bytes; k += 16) emu_put16((char *)at + k, (const char *)from + k);
    }
}

/* *at == *want: becomes *to. want: what was there. */
static inline bool emu_exchange16(void *at, uint64_t want[2], const uint64_t to[2])
{
    bool did;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(did), "+m"(*(__m128i *)at), "+a"(want[0]), "+d"(want[1])
                     : "b"(to[0]), "c"(to[1])
                     : "memory");
    return did;
}

#endif
