/* The encodings of columns that hold many numbers: counts per block, arguments per launch. */
#include "store/priv.h"

#include <string.h>

uint8_t *mg_leb_write(uint8_t *p, uint64_t v)
{
    while (v >= 128) {
        *p++ = (uint8_t)(v | 128);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

const uint8_t *mg_leb_read(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    uint64_t sum = 0;
    for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
        uint8_t b = *p++;
        if (shift == 63 && b > 1) return NULL;
        sum |= (uint64_t)(b & 127) << shift;
        if (b < 128) {
            *v = sum;
            return p;
        }
    }
    return NULL;
}

size_t mg_counts_bound(uint32_t n)
{
    return (size_t)n * (MG_LEB_MAX + 1);
}

size_t mg_counts_encode(const uint64_t *v, uint32_t n, uint8_t *out)
{
    uint8_t *p = out;
    for (uint32_t i = 0; i < n;) {
        p = mg_leb_write(p, v[i]);
        if (v[i++]) continue;
        uint32_t from = i;
        while (i < n && !v[i]) i++;
        p = mg_leb_write(p, i - from);
    }
    return (size_t)(p - out);
}

bool mg_counts_decode(const uint8_t *p, size_t bytes, uint64_t *v, uint32_t n)
{
    if (!bytes) return !n;
    const uint8_t *end = p + bytes;
    for (uint32_t i = 0; i < n;) {
        uint64_t zeros;
        if (!(p = mg_leb_read(p, end, &v[i]))) return false;
        if (v[i++]) continue;
        if (!(p = mg_leb_read(p, end, &zeros)) || zeros > n - i) return false;
        memset(&v[i], 0, zeros * sizeof *v);
        i += (uint32_t)zeros;
    }
    return p == end;
}

size_t mg_args_bound(const struct mg_store_arg *a, uint32_t n)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) bytes += 5 * MG_LEB_MAX + a[i].bytes;
    return bytes;
}

size_t mg_args_encode(const struct mg_store_arg *a, uint32_t n, uint8_t *out)
{
    uint8_t *p = out;
    for (uint32_t i = 0; i < n; i++) {
        p = mg_leb_write(p, a[i].offset);
        p = mg_leb_write(p, a[i].bytes);
        p = mg_leb_write(p, (uint64_t)a[i].kind);
        p = mg_leb_write(p, a[i].allocation);
        p = mg_leb_write(p, a[i].allocation_off);
        if (a[i].value)
            memcpy(p, a[i].value, a[i].bytes);
        else
            memset(p, 0, a[i].bytes);
        p += a[i].bytes;
    }
    return (size_t)(p - out);
}

bool mg_args_decode(const uint8_t *p, size_t bytes, struct mg_arena *arena, struct mg_store_arg **a, uint32_t *n)
{
    uint64_t f[5];
    uint32_t count = 0;
    *a = NULL;
    *n = 0;
    if (!bytes) return true; /* p may be NULL then */
    const uint8_t *end = p + bytes, *at;
    for (at = p; at < end; count++) { /* once to check and count */
        for (int i = 0; i < 5; i++)
            if (!(at = mg_leb_read(at, end, &f[i]))) return false;
        if (f[0] > UINT32_MAX || f[1] > (uint64_t)(end - at) || f[2] > MG_ARG_POINTER) return false;
        at += f[1];
    }
    *n = count;
    *a = count ? mg_arena_array(arena, struct mg_store_arg, count) : NULL;
    at = p;
    for (uint32_t k = 0; k < count; k++) {
        for (int i = 0; i < 5; i++) at = mg_leb_read(at, end, &f[i]);
        (*a)[k] = (struct mg_store_arg){.offset = (uint32_t)f[0],
                                        .bytes = (uint32_t)f[1],
                                        .kind = (enum mg_arg_kind)f[2],
                                        .allocation = f[3],
                                        .allocation_off = f[4],
                                        .value = mg_arena_copy(arena, at, f[1])};
        at += f[1];
    }
    return true;
}
