/* CRC-32C: the processor's instruction where it has one, else eight bytes a step by tables. */
#include "base/crc.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* reversed */

static uint32_t tables[8][256];
static bool has_instruction;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>

static bool find_instruction(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_2;
}

__attribute__((target("sse4.2"))) static uint32_t crc_by_instruction(uint32_t crc, const uint8_t *s, size_t bytes)
{
    uint64_t c = crc, w;
    for (; bytes >= 8; s += 8, bytes -= 8) {
        memcpy(&w, s, 8);
        c = _mm_crc32_u64(c, w);
    }
    for (; bytes; s++, bytes--) c = _mm_crc32_u8((uint32_t)c, *s);
    return (uint32_t)c;
}
#else
static bool find_instruction(void)
{
    return false;
}

static uint32_t crc_by_instruction(uint32_t crc, const uint8_t *s, size_t bytes)
{
    (void)s, (void)bytes;
    return crc;
}
#endif

static void prepare(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) c = c >> 1 ^ (c & 1 ? POLYNOMIAL : 0);
        tables[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int t = 1; t < 8; t++) tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 255];
    has_instruction = find_instruction();
}

static uint32_t crc_by_tables(uint32_t crc, const uint8_t *s, size_t bytes)
{
    for (; bytes >= 8; s += 8, bytes -= 8) {
        uint64_t w;
        memcpy(&w, s, 8);
        w ^= crc;
        crc = 0;
        for (int i = 0; i < 8; i++) crc ^= tables[7 - i][w >> (8 * i) & 255];
    }
    for (; bytes; s++, bytes--) crc = crc >> 8 ^ tables[0][(crc ^ *s) & 255];
    return crc;
}

uint32_t mg_crc32c(uint32_t crc, const void *p, size_t bytes)
{
    pthread_once(&prepared, prepare);
    crc = ~crc;
    return ~(has_instruction ? crc_by_instruction(crc, p, bytes) : crc_by_tables(crc, p, bytes));
}
