/* Decompressors of fatbin payloads: LZ4 blocks by hand (they are that small), zstd frames through
 * the static library. */
#include <string.h>
#include <zstd.h>

#include "image/image.h"

/* A length that goes on in further bytes while they are 255. */
static bool more_length(const uint8_t **s, const uint8_t *end, size_t *len)
{
    uint8_t b;
    do {
        if (*s >= end) return false;
        *len += b = *(*s)++;
    } while (b == 255);
    return true;
}

int64_t mg_lz4_block(const uint8_t *src, size_t src_bytes, uint8_t *dst, size_t dst_bytes)
{
    const uint8_t *s = src, *end = src + src_bytes;
    size_t out = 0;
    while (s < end) {
        uint8_t token = *s++;
        size_t len = token >> 4;
        if (len == 15 && !more_length(&s, end, &len)) return -1;
        if (len > (size_t)(end - s) || len > dst_bytes - out) return -1;
        if (len) memcpy(dst + out, s, len);
        out += len;
        s += len;
        if (s == end) break;
        if (end - s < 2) return -1;
        size_t back = s[0] | (size_t)s[1] << 8;
        s += 2;
        if (!back || back > out) return -1;
        len = token & 15;
        if (len == 15 && !more_length(&s, end, &len)) return -1;
        len += 4;
        if (len > dst_bytes - out) return -1;
        for (; len; len--, out++) dst[out] = dst[out - back]; /* may overlap: byte by byte */
    }
    return (int64_t)out;
}

bool mg_zstd_may_hold(const uint8_t *src, size_t src_bytes, uint64_t unpacked)
{
    unsigned long long n = ZSTD_getFrameContentSize(src, src_bytes);
    if (n == ZSTD_CONTENTSIZE_ERROR) return false;
    return n == ZSTD_CONTENTSIZE_UNKNOWN ? unpacked / 1024 <= src_bytes : n <= unpacked && unpacked - n < 4096;
}

int64_t mg_zstd_frame(const uint8_t *src, size_t src_bytes, uint8_t *dst, size_t dst_bytes)
{
    size_t n = ZSTD_decompress(dst, dst_bytes, src, src_bytes);
    return ZSTD_isError(n) ? -1 : (int64_t)n;
}
