/* Few keys by insertion, many digit by digit from the lowest; digits that all keys share cost nothing. */
#include "base/sort.h"

#include <string.h>

enum { FEW = 32, DIGITS = 256 };

static void insert_all(struct mg_sort_key *at, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const struct mg_sort_key k = at[i];
        uint32_t to = i;
        for (; to && at[to - 1].key > k.key; to--) at[to] = at[to - 1];
        at[to] = k;
    }
}

static void sort_digit(const struct mg_sort_key *from, struct mg_sort_key *to, uint32_t n, int shift)
{
    uint32_t place[DIGITS + 1] = {0};
    for (uint32_t i = 0; i < n; i++) place[(from[i].key >> shift & (DIGITS - 1)) + 1]++;
    for (int i = 1; i < DIGITS; i++) place[i] += place[i - 1];
    for (uint32_t i = 0; i < n; i++) to[place[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
}

void mg_sort_keys(struct mg_sort_key *at, struct mg_sort_key *room, uint32_t n)
{
    struct mg_sort_key *from = at, *to = room;
    uint64_t differ = 0;
    bool sorted = true;
    for (uint32_t i = 1; i < n; i++) {
        differ |= at[i].key ^ at[0].key;
        sorted &= at[i - 1].key <= at[i].key;
    }
    if (sorted) return;
    if (n <= FEW) {
        insert_all(at, n);
        return;
    }
    for (int shift = 0; shift < 64; shift += 8) {
        if (!(differ >> shift & (DIGITS - 1))) continue;
        sort_digit(from, to, n, shift);
        struct mg_sort_key *other = from;
        from = to;
        to = other;
    }
    if (from != at) memcpy(at, from, n * sizeof *at);
}
