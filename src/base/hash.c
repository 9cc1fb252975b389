/* wyhash-like mixing for tables; SHA-256 (FIPS 180-4) for identities. */
#include "base/hash.h"

#include <string.h>

static uint64_t fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

uint64_t mg_hash64(const void *p, size_t bytes, uint64_t seed)
{
    const uint8_t *s = p;
    uint64_t h = seed ^ 0xa0761d6478bd642fu ^ bytes, w;
    for (; bytes >= 8; s += 8, bytes -= 8) {
        memcpy(&w, s, 8);
        h = fold(h ^ w, 0xe7037ed1a0b428dbu);
    }
    w = 0;
    if (bytes) memcpy(&w, s, bytes);
    return fold(h ^ w, 0x8ebc6af09c88c6e3u);
}

static uint32_t rotr(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static void sha_block_plain(uint32_t h[8], const uint8_t *p)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] + (rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t t1 =
            v[7] + (rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
        uint32_t t2 =
            (rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) h[i] += v[i];
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

static bool has_sha(void)
{
    static _Atomic int known; /* cpuid is slow under a hypervisor: asked once. 1 no, 2 yes */
    int have = known;
    unsigned a, b, c, d;
    if (have) return have == 2;
    have = 1;
    if (__get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_1 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA)
        have = 2;
    known = have;
    return have == 2;
}

/* Four rounds an iteration; the state is kept as ABEF and CDGH, as the instructions want it. */
__attribute__((target("sha,sse4.1"))) static void sha_blocks_x86(uint32_t h[8], const uint8_t *p, size_t n)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)h), 0xb1);
    __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(h + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(dcba, efgh, 8), cdgh = _mm_blend_epi16(efgh, dcba, 0xf0);
    for (; n; n--, p += 64) {
        __m128i abef0 = abef, cdgh0 = cdgh, w[4];
        for (int i = 0; i < 4; i++) w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
        for (int i = 0; i < 16; i++) {
            __m128i x = w[i & 3];
            if (i >= 4) {
                x = _mm_sha256msg1_epu32(x, w[(i + 1) & 3]);
                x = _mm_add_epi32(x, _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
                x = w[i & 3] = _mm_sha256msg2_epu32(x, w[(i + 3) & 3]);
            }
            x = _mm_add_epi32(x, _mm_loadu_si128((const __m128i *)(k + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, x);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(x, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef0);
        cdgh = _mm_add_epi32(cdgh, cdgh0);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)h, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#endif

static void sha_blocks(uint32_t h[8], const uint8_t *p, size_t n)
{
#if defined(__x86_64__)
    if (has_sha()) {
        sha_blocks_x86(h, p, n);
        return;
    }
#endif
    for (; n; n--, p += 64) sha_block_plain(h, p);
}

void mg_sha256_init(struct mg_sha256 *s)
{
    static const uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->h, h, sizeof h);
    s->bytes = 0;
}

void mg_sha256_add(struct mg_sha256 *s, const void *p, size_t bytes)
{
    const uint8_t *q = p;
    while (bytes) {
        size_t have = s->bytes % 64, take = MG_MIN(64 - have, bytes);
        if (!have && bytes >= 64) { /* whole blocks straight from the caller */
            take = bytes / 64 * 64;
            sha_blocks(s->h, q, take / 64);
            s->bytes += take;
            q += take;
            bytes -= take;
            continue;
        }
        memcpy(s->block + have, q, take);
        s->bytes += take;
        q += take;
        bytes -= take;
        if (have + take == 64) sha_blocks(s->h, s->block, 1);
    }
}

void mg_sha256_end(struct mg_sha256 *s, uint8_t out[32])
{
    uint64_t bits = s->bytes * 8;
    uint8_t pad[72] = {0x80}, tail[8];
    size_t have = s->bytes % 64, n = have < 56 ? 56 - have : 120 - have;
    for (int i = 0; i < 8; i++) tail[i] = (uint8_t)(bits >> (56 - 8 * i));
    mg_sha256_add(s, pad, n);
    mg_sha256_add(s, tail, 8);
    for (int i = 0; i < 32; i++) out[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void mg_sha256_of(const void *p, size_t bytes, uint8_t out[32])
{
    struct mg_sha256 s;
    mg_sha256_init(&s);
    mg_sha256_add(&s, p, bytes);
    mg_sha256_end(&s, out);
}

void mg_sha256_hex(const uint8_t sum[32], unsigned n, char *out)
{
    for (unsigned i = 0; i < n; i++) {
        out[2 * i] = "0123456789abcdef"[sum[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[sum[i] & 15];
    }
    out[2 * n] = 0;
}

void mg_text_id(const char *text, size_t bytes, char out[33])
{
    uint8_t sum[32];
    while (bytes && !text[bytes - 1]) bytes--;
    mg_sha256_of(text, bytes, sum);
    mg_sha256_hex(sum, 16, out);
}
