#include "capture/format.h"

#include <string.h>

static const struct {
    const char *name;
    uint32_t words;
} ops[] = {
#define OP(name, words, text) {#name, words},
#include "capture/ops.def"
#undef OP
};
_Static_assert(MG_COUNT_OF(ops) == MG_CAP_OP_COUNT, "one row a kind");

const char *mg_cap_op_name(uint32_t kind)
{
    return kind < MG_CAP_OP_COUNT ? ops[kind].name : NULL;
}
uint32_t mg_cap_op_words(uint32_t kind)
{
    return kind < MG_CAP_OP_COUNT ? ops[kind].words : 0;
}

bool mg_cap_has_content(uint32_t kind)
{
    return kind == MG_CAP_image || kind == MG_CAP_write || kind == MG_CAP_left || kind == MG_CAP_copy3d;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* Four lanes of 16 bytes, so that a processor works at all of them at once. */
void mg_cap_hash(const void *p, size_t bytes, uint64_t out[2])
{
    static const uint64_t secret[4] = {0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu, 0x8ebc6af09c88c6e3u,
                                       0x589965cc75374cc3u};
    uint64_t lane[4], w[8];
    const uint8_t *s = p;
    size_t left = bytes;
    for (int k = 0; k < 4; k++) lane[k] = secret[k] ^ bytes;
    for (; left >= sizeof w; s += sizeof w, left -= sizeof w) {
        memcpy(w, s, sizeof w);
        for (int k = 0; k < 4; k++) lane[k] = fold(w[2 * k] ^ secret[k], w[2 * k + 1] ^ lane[k]) + w[2 * k];
    }
    memset(w, 0, sizeof w);
    if (left) memcpy(w, s, left);
    for (int k = 0; k < 4; k++) lane[k] = fold(w[2 * k] ^ secret[k], w[2 * k + 1] ^ lane[k]) + w[2 * k];
    out[0] = fold(lane[0] ^ secret[1], lane[1] ^ secret[2]) + fold(lane[2] ^ secret[3], lane[3] ^ secret[0]);
    out[1] = fold(lane[0] ^ secret[3], lane[2] ^ secret[0]) ^ fold(lane[1] ^ secret[1], lane[3] ^ secret[2]) ^ lane[0];
}

bool mg_cap_has_addresses(const char *p, uint64_t bytes)
{
    for (uint64_t k = 0, w; k + 8 <= bytes; k += 8) {
        memcpy(&w, p + k, 8);
        if (w >> 42 == MG_CAP_ARENA >> 42 || w >> 40 == 0x7f || w >> 40 == 0x55) return true;
    }
    return false;
}
