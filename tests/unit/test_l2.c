/* The L2 of two halves: closed forms of small programs, in reads that hit at least, at a guess, at most. */
#include "study/l2.h"
#include "test.h"

enum { MB = 1 << 20, LOAD = 0, STORE = 1, ATOMIC = 2 };

struct sum {
    struct mg_l2 *l2;
    uint64_t turn;
    unsigned n, first, least, guess, most, lost_least, lost_most;
};

static unsigned bits(unsigned mask)
{
    return (unsigned)__builtin_popcount(mask);
}

static void ask(struct sum *s, int kind, uint32_t sm, uint64_t line, unsigned sectors, unsigned split)
{
    struct mg_l2_answer a;
    const struct mg_l2_request q = {.line = line,
                                    .turn = s->turn,
                                    .window = 8,
                                    .sm = sm,
                                    .sectors = (uint8_t)sectors,
                                    .split = (uint8_t)split,
                                    .reads = kind != STORE,
                                    .writes = kind != LOAD};
    mg_l2_access(s->l2, &q, &a);
    MG_CHECK_EQ(a.least & ~a.guess, 0);
    MG_CHECK_EQ(a.guess & ~a.most, 0);
    MG_CHECK_EQ(a.most & ~sectors, 0);
    s->n += bits(sectors);
    s->first += bits(a.first);
    s->least += bits(a.least);
    s->guess += bits(a.guess);
    s->most += bits(a.most);
    s->lost_least += bits(a.lost_least);
    s->lost_most += bits(a.lost_most);
}

/* The first line's home is the half of the first one, the second one is of the other half. */
static void find_sms(uint32_t *near, uint32_t *far)
{
    for (*near = 0; mg_l2_half(*near / 2) != mg_l2_half(0);) *near += 2;
    for (*far = 0; mg_l2_half(*far / 2) == mg_l2_half(0);) *far += 2;
}

static struct sum begin(uint64_t bytes)
{
    return (struct sum){.l2 = mg_l2_new(bytes)};
}

static void expect(struct sum *s, unsigned least, unsigned guess, unsigned most)
{
    MG_CHECK_EQ(s->least, least);
    MG_CHECK_EQ(s->guess, guess);
    MG_CHECK_EQ(s->most, most);
    mg_l2_free(s->l2);
}

/* A sector at a time, in rows: 64 bytes come, so half of them hit; alone none does. */
MG_TEST(l2_rows)
{
    struct sum s = begin(MB);
    for (uint64_t line = 0; line < 100; line++)
        for (unsigned k = 0; k < 4; k++) ask(&s, LOAD, 5, line, 1u << k, 15);
    MG_CHECK_EQ(s.first, 400);
    MG_CHECK_EQ(s.lost_most, 0);
    expect(&s, 0, 200, 200);
}

/* A line at a time: all of its sectors miss together. Where another load asks for one of 64 bytes, it may come before.
 */
MG_TEST(l2_whole_lines)
{
    struct sum s = begin(MB);
    for (uint64_t line = 0; line < 100; line++) ask(&s, LOAD, 5, line, 15, line < 50 ? 0 : 12);
    expect(&s, 0, 0, 50);
}

/* Two multiprocessors read a sector: of one half the second one hits, of two halves it may not. The first reader's
 * misses go to the home: if the other half is the home, it hits when the sector has come. */
MG_TEST(l2_two_multiprocessors)
{
    struct sum s = begin(MB);
    uint64_t line = 5;
    uint32_t near, far;
    find_sms(&near, &far);
    ask(&s, LOAD, near, line, 1, 1), ask(&s, LOAD, near + 1, line, 1, 1);
    expect(&s, 0, 1, 1);
    s = begin(MB), ask(&s, LOAD, near, line, 1, 1), ask(&s, LOAD, far, line, 1, 1);
    expect(&s, 0, 0, 1);
    s = begin(MB), ask(&s, LOAD, far, line, 1, 1), s.turn = 8, ask(&s, LOAD, near, line, 1, 1);
    expect(&s, 0, 1, 1);
    s = begin(MB), ask(&s, LOAD, far, line, 1, 1), s.turn = 7, ask(&s, LOAD, near, line, 1, 1);
    ask(&s, LOAD, near + 1, line, 1, 1), ask(&s, LOAD, far + 1, line, 1, 1);
    expect(&s, 0, 2, 3);
}

/* 4096 lines, each read in the one half and long after in the other one: where that is the home, half of the time, it
 * is there. */
MG_TEST(l2_homes)
{
    struct sum s = begin(64 * MB);
    uint32_t near, far;
    find_sms(&near, &far);
    for (unsigned i = 0; i < 2 * 4096; i++, s.turn += 8) ask(&s, LOAD, i % 2 ? far : near, i / 2, 4, 0);
    MG_CHECK(s.guess > 2048 - 160 && s.guess < 2048 + 160); /* five deviations of fair coins */
    expect(&s, 0, s.guess, 4096);
}

/* What n multiprocessors read r times each: sure are the r - 1 later reads of each. Above those that are known none is.
 */
MG_TEST(l2_own_reads)
{
    struct sum s = begin(MB);
    for (unsigned i = 0; i < 3 * 130; i++) ask(&s, LOAD, i % 130, 1, 8, 8);
    expect(&s, 2 * 130, 3 * 130 - 2, 3 * 130 - 1);
    s = begin(MB);
    for (unsigned i = 0; i < 7; i++) ask(&s, LOAD, UINT16_MAX, 1, 8, 8);
    expect(&s, 0, 6, 6);
}

/* A write takes from all what they have read; writes find what was written, not what was read. */
MG_TEST(l2_writes)
{
    struct sum s = begin(MB);
    uint64_t line = 5;
    uint32_t near, far;
    find_sms(&near, &far);
    ask(&s, LOAD, near, line, 1, 0), ask(&s, STORE, far, line, 1, 0);
    ask(&s, LOAD, near, line, 1, 0), ask(&s, LOAD, near, line, 1, 0);
    expect(&s, 1, 3, 3);
    s = begin(MB);
    ask(&s, LOAD, far, line, 1, 0), ask(&s, STORE, near, line, 1, 0);
    ask(&s, LOAD, far, line, 1, 0), ask(&s, LOAD, far, line, 1, 0);
    expect(&s, 1, 2, 3); /* the copy in the other half is gone */
    s = begin(MB);
    ask(&s, STORE, 0, line, 1, 0), ask(&s, STORE, 9, line, 1, 0), ask(&s, LOAD, near, line, 2, 0);
    expect(&s, 1, 1, 1); /* a store brings no partner */
    s = begin(MB);
    ask(&s, ATOMIC, 4, line, 4, 0), ask(&s, STORE, 4, line, 8, 0), ask(&s, ATOMIC, 5, line, 12, 0);
    expect(&s, 2, 3, 3);
}

/* 4096 lines, read twice in turn by one multiprocessor: half of the size holds none of them, the whole size all. Its
 * own half is all that the guess has of what is at home elsewhere. One line more, and nothing holds all. */
MG_TEST(l2_capacity)
{
    struct sum s = begin(4096 * 128);
    for (unsigned i = 0; i < 2 * 4096; i++) ask(&s, LOAD, 0, i % 4096, 1, 0);
    MG_CHECK_EQ(s.first, 4096);
    MG_CHECK_EQ(s.lost_least, 0);
    MG_CHECK_EQ(s.lost_most, 4096);
    expect(&s, 0, 0, 4096);
    s = begin(4096 * 128);
    for (unsigned i = 0; i < 2 * 2048; i++) ask(&s, LOAD, 0, i % 2048, 1, 0);
    MG_CHECK_EQ(s.lost_most, 0);
    expect(&s, 2048, 2048, 2048);
    s = begin(4096 * 128);
    for (unsigned i = 0; i < 2 * 4112; i++) ask(&s, LOAD, 0, i % 4112, 1, 0);
    MG_CHECK_EQ(s.lost_least, 4112);
    expect(&s, 0, 0, 0);
}
