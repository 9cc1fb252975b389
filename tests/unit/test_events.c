/* Matching of events: lanes that part between begin and end, nesting, ends and begins that have no partner. */
#include "test.h"
#include "record/event.h"

enum { A, B, C };
struct seen {
    struct mg_event_sums of[2][3]; /* CTA 7 warp 1 and CTA 9 warp 0, by event */
    unsigned rows, pairs;
    struct mg_event_pair pair[8];
};

static void note_pair(void *user, const struct mg_event_pair *pair)
{
    struct seen *s = user;
    if (s->pairs < MG_COUNT_OF(s->pair)) s->pair[s->pairs] = *pair;
    s->pairs++;
}

static void note(void *user, const struct mg_event_row *row)
{
    struct seen *s = user;
    unsigned warp = row->cta == 9;
    if (row->event > C || row->cta != (warp ? 9u : 7u) || row->warp != (warp ? 0u : 1u) || row->sm != (warp ? 3u : 2u))
        return;
    s->of[warp][row->event] = row->s;
    s->rows++;
}

static struct mg_event_record of(unsigned cta, uint32_t event, bool end, uint32_t mask, uint64_t clock)
{
    return (struct mg_event_record){.clock = clock,
                                    .where = (uint64_t)cta << 5 | (cta == 7),
                                    .sm = cta == 7 ? 2 : 3,
                                    .mask = mask,
                                    .site = mg_event_site(event, end)};
}

/* The same as it lies in a frame, by the words of channel.h written out: a closed segment of 4 words, of one record
 * of 1. */
static struct mg_frame_place place(unsigned cta, uint32_t event, bool end, uint32_t mask, uint64_t clock)
{
    return (struct mg_frame_place){
        2ull << 62 | 4ull << 52 | 4ull << 42 | (uint64_t)(cta == 7) << 32 | (cta == 7 ? 2 : 3), 1ull << 63 | cta,
        7ull << 60 | (2ull * event + 2 + end) << 49 | 1ull << 32 | mask, clock};
}

static bool is(const struct mg_event_sums *s, uint64_t groups, uint64_t threads, uint64_t inclusive, uint64_t exclusive,
               uint64_t stray, uint64_t open)
{
    return s->groups == groups && s->threads == threads && s->inclusive == inclusive && s->exclusive == exclusive &&
           s->stray == stray && s->open == open;
}

MG_TEST(events_match)
{
    const struct mg_event_record r[] = {
        of(7, A, false, 0xf, 100), /* four lanes begin A ... */
        of(9, A, false, 0x1, 1),
        of(9, B, true, 0x3, 5), /* another warp in between: an end of B that nobody began */
        of(7, B, false, 0x3, 110),
        of(7, B, true, 0x3, 130), /* two of them do B for 20, */
        of(7, B, false, 0xc, 150),
        of(7, B, true, 0xc, 155), /* the others for 5; */
        of(7, A, true, 0x1, 200),
        of(7, A, true, 0xe, 300), /* lane 0 ends A at 200, the others at 300 */
        of(7, C, false, 0x1, 400),
        of(7, C, false, 0x1, 410),
        of(7, C, true, 0x1, 420),
        of(7, C, true, 0x1, 450), /* C inside itself */
        of(9, C, false, 0x1, 10),
        of(9, A, true, 0x1, 31), /* C is not ended when A is */
        {.clock = 1, .mask = 1, .site = 1},
        {.clock = 1, .mask = 1, .site = (MG_EVENTS_MOST + 1u) << 1}, /* of no event */
    };
    struct seen s = {.rows = 0};
    mg_events_match(r, MG_COUNT_OF(r), &(struct mg_event_sinks){.row = note, .pair = note_pair, .user = &s});
    MG_CHECK_EQ(s.rows, 6);
    MG_CHECK(is(&s.of[0][A], 1, 4, 100 + 3 * 200, 100 + 3 * 200 - 2 * 20 - 2 * 5, 0, 0));
    MG_CHECK(is(&s.of[0][B], 2, 4, 2 * 20 + 2 * 5, 50, 0, 0));
    MG_CHECK(is(&s.of[0][C], 2, 2, 10 + 50, 10 + 40, 0, 0));
    MG_CHECK(is(&s.of[1][A], 1, 1, 30, 30, 0, 0));
    MG_CHECK(is(&s.of[1][B], 0, 0, 0, 0, 2, 0));
    MG_CHECK(is(&s.of[1][C], 1, 1, 0, 0, 0, 1));
    static const uint64_t pairs[][6] = {
        /* event, begin, end, lanes, depth, CTA */
        {A, 100, 200, 0x1, 0, 7}, {A, 100, 300, 0xe, 0, 7}, {B, 110, 130, 0x3, 1, 7}, {B, 150, 155, 0xc, 1, 7},
        {C, 400, 450, 0x1, 0, 7}, {C, 410, 420, 0x1, 1, 7}, {A, 1, 31, 0x1, 0, 9},
    };
    MG_CHECK_EQ(s.pairs, MG_COUNT_OF(pairs));
    for (unsigned i = 0; i < MG_COUNT_OF(pairs); i++) {
        const struct mg_event_pair *p = &s.pair[i];
        MG_CHECK(mg_event_of(p->begin->site) == pairs[i][0] && mg_event_of(p->end->site) == pairs[i][0] &&
                 p->begin->clock == pairs[i][1] && p->end->clock == pairs[i][2] && p->lanes == pairs[i][3] &&
                 p->depth == pairs[i][4] && p->begin->where >> 5 == pairs[i][5]);
    }
}

/* Where a clock's tick holds several records, their places in the frame tell the order. */
MG_TEST(events_of_one_tick)
{
    struct mg_event_record r[] = {of(7, A, true, 1, 5), of(7, B, true, 1, 5), of(7, B, false, 1, 5),
                                  of(7, A, false, 1, 5)};
    struct seen s = {.rows = 0};
    for (unsigned i = 0; i < MG_COUNT_OF(r); i++) r[i].order = 40 - 10 * i;
    mg_events_match(r, MG_COUNT_OF(r), &(struct mg_event_sinks){.row = note, .pair = note_pair, .user = &s});
    MG_CHECK(is(&s.of[0][A], 1, 1, 0, 0, 0, 0) && is(&s.of[0][B], 1, 1, 0, 0, 0, 0));
    MG_CHECK(s.pairs == 2 && mg_event_of(s.pair[0].begin->site) == A && s.pair[1].depth == 1);
}

struct kept {
    struct mg_event_record at[4];
    unsigned n;
};
static void keep(void *user, const struct mg_record *r)
{
    struct kept *k = user;
    if (k->n < 4)
        k->at[k->n] = (struct mg_event_record){.clock = r->words[0],
                                               .where = r->cta << 5 | r->warp,
                                               .sm = r->launch,
                                               .mask = r->mask,
                                               .site = r->site,
                                               .order = r->number};
    k->n++;
    if (r->kind != MG_RECORD_ONCE || r->n_words != 1 || r->n_lanes != 1) k->n = 100;
}

static bool is_same(const struct mg_event_record *a, const struct mg_event_record *b)
{
    return a->clock == b->clock && a->where == b->where && a->sm == b->sm && a->mask == b->mask && a->site == b->site;
}

MG_TEST(events_frame_read)
{
    uint64_t list[MG_FRAME_HEAD_WORDS + 3 * MG_FRAME_RECORD_WORDS] = {0}, before[MG_FRAME_HEAD_WORDS] = {0};
    struct mg_frame_head *h = (void *)list, *was = (void *)before;
    struct mg_frame_place *r = (void *)(list + MG_FRAME_HEAD_WORDS);
    struct kept out = {0};
    h->fill = 9; /* more than there is room for */
    r[0] = place(7, A, false, 1, 5), r[2] = place(9, A, true, 1, 8);
    r[1] = place(7, B, false, 1, 6), r[1].record = 0; /* not written to its end */
    MG_CHECK_EQ(mg_frame_read(list, MG_COUNT_OF(list), NULL, keep, &out), 2);
    MG_CHECK(out.n == 2 && out.at[0].clock == 5 && out.at[1].clock == 8);
    const struct mg_event_record first = of(7, A, false, 1, 5), last = of(9, A, true, 1, 8);
    MG_CHECK(is_same(&out.at[0], &first) && is_same(&out.at[1], &last));
    was->fill = 2;
    MG_CHECK_EQ(mg_frame_read(list, MG_COUNT_OF(list), before, keep, &out), 1);
    was->fill = 9;
    MG_CHECK_EQ(mg_frame_read(list, MG_COUNT_OF(list), before, keep, &out), 0);
    MG_CHECK_EQ(mg_frame_read(list, 3, NULL, keep, &out), 0);
}

/* Whatever room is asked for: as much is there, in parts that its words tell again. */
MG_TEST(events_frame_shape)
{
    for (uint64_t records = 0; records <= MG_EVENT_MOST_RECORDS; records += records < 2000 ? 1 : 997) {
        uint32_t words = mg_frame_words(records);
        const struct mg_frame_shape s = mg_frame_shape(words);
        MG_CHECK_EQ(s.parts * s.stride, words);
        MG_CHECK(s.parts * s.room >= records && s.parts * s.room < records + s.parts &&
                 s.parts <= MG_FRAME_MOST_PARTS && !(s.parts & (s.parts - 1)));
        MG_CHECK(s.parts == 1 || s.room >= MG_FRAME_LEAST_RECORDS);
        MG_CHECK_EQ(s.stride, MG_FRAME_HEAD_WORDS + s.room * MG_FRAME_RECORD_WORDS);
    }
    MG_CHECK_EQ(mg_frame_shape(mg_frame_words(100)).parts, 1);
    MG_CHECK_EQ(mg_frame_shape(mg_frame_words(MG_EVENT_RECORDS)).parts, MG_FRAME_MOST_PARTS);

    uint32_t n = mg_frame_words(256); /* two parts: sums are of both */
    uint64_t *list = mg_xcalloc(n, sizeof *list);
    struct mg_frame_head *a = (void *)list, *b = (void *)(list + n / 2);
    struct kept out = {0};
    *a = (struct mg_frame_head){.status = MG_FRAME_FULL, .fill = 130, .lost = 2};
    *b = (struct mg_frame_head){.status = MG_FRAME_WRITTEN, .fill = 5, .lost = 1};
    ((struct mg_frame_place *)(a + 1))[127] = place(7, A, false, 1, 5);
    ((struct mg_frame_place *)(b + 1))[4] = place(9, A, false, 1, 6);
    struct mg_frame_head all = mg_frame_sums(list, n);
    MG_CHECK(all.status == MG_FRAME_FULL && all.fill == 133 && all.lost == 3 && !all.off);
    MG_CHECK_EQ(mg_frame_read(list, n, NULL, keep, &out), 2);
    MG_CHECK(out.n == 2 && out.at[0].clock == 5 && out.at[1].clock == 6);
    /* each stands in the part of its own multiprocessor (2 and 3 of two parts): the number is the place */
    MG_CHECK(out.at[0].order == 127 && out.at[1].order == 4);
    ((struct mg_frame_place *)(b + 1))[3] = place(7, A, true, 1, 5);
    out.n = 0;
    MG_CHECK_EQ(mg_frame_read(list, n, NULL, keep, &out), 3);
    MG_CHECK(out.at[1].clock == 5 && out.at[1].order == 128 + 3); /* behind what is in its own part */
    free(list);
}
