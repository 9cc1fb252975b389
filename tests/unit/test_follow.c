/* A trace of accesses that is read while it is written: steps come when the file says that they are whole, no chunk is
 * forgotten that a later step needs. */
#include "profile_sample.h"
#include "trace/access_code.h"
#include "trace/access_records.h"
#include "trace/writer.h"

struct made {
    struct mg_trace_writer *w;
    struct mg_trace_stream *s;
};

static void put(struct made *m, const struct mg_trace_kind *kind, const void *fixed, size_t bytes, const void *tail,
                uint32_t tail_bytes)
{
    MG_CHECK(mg_trace_put(m->s, mg_trace_kind_add(m->w, kind), fixed, (uint32_t)bytes, tail, tail_bytes));
}

static void put_step(struct made *m, uint64_t order, uint64_t launch)
{
    const struct mg_step_record r = {.time = order,
                                     .order = order,
                                     .launch = launch,
                                     .name = mg_trace_name(m->w, "k"),
                                     .flags = MG_STEP_TRACED,
                                     .grid = {1, 1, 1},
                                     .block = {32, 1, 1},
                                     .kind = MG_STEP_LAUNCH};
    put(m, &mg_step_record_kind, &r, sizeof r, NULL, 0);
}

static void put_accesses(struct made *m, uint64_t launch, uint32_t n)
{
    uint8_t data[4096];
    struct mg_packer p;
    mg_packer_init(&p, data, sizeof data);
    for (uint32_t i = 0; i < n; i++) {
        struct mg_packed_access a = {.number = i, .bytes = 4, .mask = UINT32_MAX};
        a.address[0] = 0x1000 * (launch + 1) + 128 * i;
        MG_CHECK(mg_packer_add_run(&p, &a, 4));
    }
    const struct mg_pack_record r = {.launch = launch, .sites = 1, .accesses = n, .lanes = 32 * n};
    put(m, &mg_pack_record_kind, &r, sizeof r, data, p.n);
}

static void put_mark(struct made *m, uint64_t order, uint64_t begun)
{
    const struct mg_whole_record r = {.time = order, .order = order, .begun = begun};
    put(m, &mg_whole_record_kind, &r, sizeof r, NULL, 0);
}

/* Accesses of the one step that comes now, of this order; UINT32_MAX: another one, or none. */
static uint32_t next_step(struct mg_accesses *a, uint64_t order, uint64_t *done)
{
    uint64_t n;
    uint32_t accesses = 0;
    const struct mg_trace_step *s = mg_accesses_more(a, false, &n, done);
    if (n != 1 || s->order != order) return UINT32_MAX;
    mg_accesses_begin(a, s);
    for (const struct mg_trace_access *x; (x = mg_accesses_next(a)); accesses++)
        MG_CHECK_EQ(x->address[1], 0x1000 * (s->launch + 1) + 128 * x->number + 4);
    return accesses;
}

MG_TEST(follow_gives_whole_steps_and_forgets_what_is_done)
{
    const char *dir = sample_dir();
    struct mg_trace_opts o = {.size = sizeof o, .dir = dir, .rank = -1, .flush_ms = 100000};
    struct made m = {0};
    struct mg_trace_reader *r;
    struct mg_accesses *a;
    uint64_t n, done, first, behind;
    MG_CHECK(!mg_trace_open(&o, &m.w, NULL));
    m.s = mg_trace_thread(m.w);
    const struct mg_site_record site = {.sites = 1, .bytes = 4, .kind = MG_ACCESS_STORE};
    put(&m, &mg_site_record_kind, &site, sizeof site, NULL, 0);
    put_step(&m, 1, 0);
    put_accesses(&m, 0, 5);
    put_step(&m, 2, 1);
    put_accesses(&m, 1, 3);
    MG_CHECK(mg_trace_flush(m.w, 10000));
    MG_CHECK(!mg_trace_reader_follow(mg_trace_path(m.w), &r, NULL) && !mg_accesses_follow(r, &a, NULL));
    mg_accesses_more(a, false, &n, &done);
    MG_CHECK_EQ(n, 0); /* nothing says that a step is whole */
    put_mark(&m, 1, 2);
    MG_CHECK(mg_trace_flush(m.w, 10000));
    MG_CHECK_EQ(next_step(a, 1, &first), 5);
    put_step(&m, 3, 2); /* in front of the next mark, which was made before it */
    put_accesses(&m, 2, 7);
    MG_CHECK(mg_trace_flush(m.w, 10000));
    put_accesses(&m, 1, 4);
    put_mark(&m, 2, 2);
    MG_CHECK(mg_trace_flush(m.w, 10000));
    MG_CHECK_EQ(next_step(a, 2, &done), 3 + 4);
    MG_CHECK_EQ(done, first); /* the first chunk was needed until now */
    mg_accesses_more(a, false, &n, &behind);
    MG_CHECK_EQ(n, 0);
    MG_CHECK(behind > first);
    put_mark(&m, 3, 3);
    MG_CHECK(mg_trace_flush(m.w, 10000));
    MG_CHECK_EQ(next_step(a, 3, &done), 7);
    MG_CHECK_EQ(done, behind);
    put_step(&m, 2, 9); /* nobody may take it for one that was given */
    put_step(&m, 4, 3);
    mg_trace_close(m.w);
    mg_accesses_more(a, true, &n, &done);
    MG_CHECK_EQ(n, 2);
    MG_CHECK_EQ(mg_accesses_damaged(a, NULL), 1);
    MG_CHECK(!mg_accesses_is_partial(a));
    MG_CHECK(done >= behind);
    mg_accesses_more(a, true, &n, &done);
    MG_CHECK_EQ(n, 0);
    mg_accesses_close(a);
    mg_trace_reader_free(r);
}
