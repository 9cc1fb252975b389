/* Accesses in traces: packs against what was put in, sizes against the rule, and steps and launches read back. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "test.h"
#include "trace/access_code.h"
#include "trace/access_records.h"
#include "trace/writer.h"

enum { ROOM = 1 << 20 };
static const uint32_t widths[] = {4, 1, 8, 16, 2, 0};
enum { SITES = sizeof widths / sizeof *widths };

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct mg_packed_access draw_access(uint64_t *s)
{
    struct mg_packed_access a = {.site = (uint32_t)(draw(s) % SITES)};
    uint64_t base = 0x7f0000000000 + draw(s) % (1ull << (4 + draw(s) % 40)), how = draw(s) % 7, step = draw(s) % 5000;
    a.cta = draw(s) % 3 ? draw(s) % 4000 : draw(s) % (1ull << 33);
    a.warp = (uint32_t)(draw(s) % 32);
    a.number = (uint32_t)draw(s);
    a.bytes = widths[a.site];
    a.mask = draw(s) % 2 ? UINT32_MAX : draw(s) % 2 ? (uint32_t)draw(s) | 16 : 0xff0u;
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint64_t rows = 2u << step % 4;
        uint64_t at = base + (how == 6   ? lane % rows * (step % 3 ? a.bytes : 0) + lane / rows * step * 7
                              : how == 0 ? lane * a.bytes
                              : how == 1 ? 0
                              : how == 2 ? lane * step
                              : how == 3 ? draw(s) % 256 * a.bytes
                              : how == 4 ? draw(s) % 100000
                                         : draw(s) % (1ull << 45));
        a.address[lane] = a.bytes && a.mask >> lane & 1 ? at : 0;
    }
    return a;
}

static bool equal(const struct mg_packed_access *a, const struct mg_packed_access *b)
{
    return a->cta == b->cta && a->warp == b->warp && a->number == b->number && a->site == b->site &&
           a->bytes == b->bytes && a->mask == b->mask && !memcmp(a->address, b->address, sizeof a->address);
}

MG_TEST(packs_hold_what_was_put_in)
{
    enum { N = 5000 };
    uint8_t *data = malloc(ROOM);
    struct mg_packed_access *in = malloc(N * sizeof *in), out;
    struct mg_packer p;
    struct mg_unpacker u;
    uint64_t state = 88172645463325252u;
    uint32_t n = 0;
    mg_packer_init(&p, data, ROOM);
    for (; n < N; n++) {
        in[n] = draw_access(&state);
        if (n && draw(&state) % 2) { /* the warp goes on */
            in[n].cta = in[n - 1].cta;
            in[n].warp = in[n - 1].warp;
            in[n].number = in[n - 1].number + 1;
        }
        if (!mg_packer_add(&p, &in[n])) break;
    }
    MG_CHECK(n > 2000);
    mg_unpacker_init(&u, data, p.n);
    uint32_t i = 0;
    for (; mg_unpacker_next(&u, widths, SITES, &out); i++)
        if (i >= n || !equal(&in[i], &out)) break;
    MG_CHECK(i == n && !u.damaged);
    /* any cut and any flipped bit is read without a step beside it, and comes to an end */
    uint8_t *one = malloc(2000);
    for (uint32_t cut = 0; cut < 2000; cut += 7) {
        memcpy(one, data, cut);
        mg_unpacker_init(&u, one, cut);
        while (mg_unpacker_next(&u, widths, SITES, &out)) MG_CHECK(out.mask != 0);
    }
    for (uint32_t bit = 0; bit < 16000; bit += 3) {
        memcpy(one, data, 2000);
        one[bit / 8] ^= (uint8_t)(1u << bit % 8);
        mg_unpacker_init(&u, one, 2000);
        while (mg_unpacker_next(&u, widths, SITES, &out)) MG_CHECK(out.mask != 0);
    }
    free(one);
    free(in);
    free(data);
}

/* Loops against their rounds added up by hand, among accesses of their own; and hostile ones come to an end. */
MG_TEST(packs_hold_loops)
{
    enum { N = 300, MOST = 40000 };
    uint8_t *data = malloc(ROOM);
    struct mg_packed_access *want = malloc(MOST * sizeof *want), out;
    struct mg_packer p;
    struct mg_unpacker u;
    uint64_t state = 1234567u;
    uint32_t n = 0, i = 0;
    mg_packer_init(&p, data, ROOM);
    for (uint32_t k = 0; k < N; k++) {
        struct mg_packed_access first[MG_PACK_MOST_LOOP];
        uint32_t items = 1 + (uint32_t)(draw(&state) % MG_PACK_MOST_LOOP), rounds = 1 + (uint32_t)(draw(&state) % 9);
        int64_t stride[MG_PACK_MOST_LOOP];
        for (uint32_t j = 0; j < items; j++) {
            first[j] = draw_access(&state);
            first[j].number = j ? first[j - 1].number + 1 : first[j].number;
            if (j) first[j].cta = first[0].cta, first[j].warp = first[0].warp;
            stride[j] = draw(&state) % 3 ? (int64_t)(draw(&state) % 1000) - 500 : (int64_t)draw(&state);
        }
        if (k % 3 == 0) {
            want[n++] = first[0];
            MG_CHECK(mg_packer_add(&p, &first[0]));
            continue;
        }
        if (!mg_packer_begin_loop(&p, &first[0], items, rounds)) break;
        for (uint32_t j = 0; j < items; j++) mg_packer_add_to_loop(&p, &first[j], stride[j]);
        for (uint32_t r = 0; r < rounds; r++)
            for (uint32_t j = 0; j < items; j++) {
                struct mg_packed_access *a = &want[n++];
                *a = first[j];
                a->number += r * items;
                for (uint32_t l = 0; l < 32; l++)
                    if (a->bytes && a->mask >> l & 1) a->address[l] += (uint64_t)stride[j] * r;
            }
    }
    MG_CHECK(n > 5000 && n < MOST);
    mg_unpacker_init(&u, data, p.n);
    for (; mg_unpacker_next(&u, widths, SITES, &out); i++)
        if (i >= n || !equal(&want[i], &out)) break;
    MG_CHECK(i == n && !u.damaged);
    uint8_t *one = malloc(3000);
    for (uint32_t bit = 0; bit < 24000; bit += 5) {
        uint32_t left = 1 << 14;
        memcpy(one, data, 3000);
        one[bit / 8] ^= (uint8_t)(1u << bit % 8);
        mg_unpacker_init(&u, one, 3000);
        while (left && mg_unpacker_next(&u, widths, SITES, &out)) left--;
    }
    free(one);
    free(want);
    free(data);
}

MG_TEST(packs_bound_what_loops_stand_for)
{
    struct mg_packer p;
    struct mg_unpacker u;
    struct mg_packed_access a = {.bytes = 4, .mask = 1, .address = {4096}}, out;
    uint64_t n = 0;
    static uint8_t large[1 << 16];
    mg_packer_init(&p, large, MG_PACK_LOOP_ROOM - 1);
    MG_CHECK(!mg_packer_begin_loop(&p, &a, 1, 1) && !p.n);
    for (uint32_t much = 0; much < 2; much++) { /* as many rounds as may be, and one more */
        mg_packer_init(&p, large, sizeof large);
        MG_CHECK(mg_packer_begin_loop(&p, &a, 1, MG_PACK_MOST_ROUNDS + much));
        mg_packer_add_to_loop(&p, &a, 4);
        mg_unpacker_init(&u, large, p.n);
        for (n = 0; mg_unpacker_next(&u, widths, SITES, &out);) n++;
        MG_CHECK_EQ(n, much ? 0 : MG_PACK_MOST_ROUNDS);
        MG_CHECK(u.damaged == much);
    }
    mg_packer_init(&p, large, sizeof large); /* many loops: so many accesses, then the pack is damaged */
    for (uint32_t k = 0; k < 40; k++) {
        MG_CHECK(mg_packer_begin_loop(&p, &a, 1, MG_PACK_MOST_ROUNDS));
        mg_packer_add_to_loop(&p, &a, 4);
    }
    mg_unpacker_init(&u, large, p.n);
    for (n = 0; mg_unpacker_next(&u, widths, SITES, &out);) n++;
    MG_CHECK_EQ(n, MG_PACK_MOST_LOOPS);
    MG_CHECK(u.damaged);
}

/* Bytes of the second of two equal warps' accesses, as the rule says. */
static uint32_t bytes_of(struct mg_packed_access a)
{
    uint8_t data[2048];
    struct mg_packer p;
    mg_packer_init(&p, data, sizeof data);
    a.number = 0;
    if (!mg_packer_add(&p, &a)) return 0;
    uint32_t before = p.n;
    a.number = 1;
    return mg_packer_add(&p, &a) ? p.n - before : 0;
}

MG_TEST(packs_are_as_small_as_the_rule_says)
{
    struct mg_packed_access a = {.bytes = 4, .mask = UINT32_MAX};
    for (uint32_t lane = 0; lane < 32; lane++) a.address[lane] = 0x7f1200000000 + 4 * lane;
    MG_CHECK_EQ(bytes_of(a), 8); /* one behind the other */
    a.mask = 0x0000fff0;
    MG_CHECK_EQ(bytes_of(a), 8); /* adjacent lanes */
    a.mask = 0xa0a0a0a1;
    MG_CHECK_EQ(bytes_of(a), 12); /* any lanes, one stride */
    a.mask = 1u << 31;
    MG_CHECK_EQ(bytes_of(a), 8); /* one lane */
    a.mask = UINT32_MAX;
    for (uint32_t lane = 0; lane < 32; lane++) a.address[lane] = 0x7f1200000000 - 400 * lane;
    MG_CHECK_EQ(bytes_of(a), 8); /* stride of -100 elements */
    for (uint32_t lane = 0; lane < 32; lane++) a.address[lane] = 0x7f1200000000 + 4096 * lane;
    MG_CHECK_EQ(bytes_of(a), 16); /* a large stride */
    for (uint32_t lane = 0; lane < 32; lane++) a.address[lane] = 0x7f1200000000 + 4 * (lane * lane % 29);
    MG_CHECK_EQ(bytes_of(a), 8 + 64); /* 31 times 16 bits */
    for (uint32_t lane = 0; lane < 32; lane++) a.address[lane] = 0x7f1200000000 + 4ull * (lane * lane) * 100000;
    MG_CHECK_EQ(bytes_of(a), 8 + 31 * 4);
    for (uint32_t lane = 0; lane < 32; lane++) a.address[lane] = 0x7f1200000000 + ((uint64_t)lane * lane << 33);
    MG_CHECK_EQ(bytes_of(a), 8 + 31 * 8);
    for (uint32_t lane = 0; lane < 32; lane++) a.address[lane] = 0x7f1200000000 + 4 * (lane % 16) + lane / 16 * 1000000;
    MG_CHECK_EQ(bytes_of(a), 12); /* two rows of 16 lanes */
    for (uint32_t lane = 0; lane < 32; lane++) a.address[lane] = 0x7f1200000000 - lane / 8 * 4096;
    MG_CHECK_EQ(bytes_of(a), 12); /* four rows of 8, each at one address */
    a.mask = 0xfff0fffe;
    for (uint32_t lane = 0; lane < 32; lane++) a.address[lane] = 0x7f1200000000 + 4 * (lane % 16);
    MG_CHECK_EQ(bytes_of(a), 16); /* the same row twice, some lanes not there */
    a.mask = 0x3ffff;
    for (uint32_t lane = 0; lane < 32; lane++) a.address[lane] = 0x7f1200000000 + 4 * (lane * lane % 29);
    MG_CHECK_EQ(bytes_of(a), 8 + 36); /* 18 lanes: 17 distances, padded */
}

/* ---- a trace ------------------------------------------------------------------------------------------- */

enum { LAUNCHES = 40, PER_LAUNCH = 25 };

static void put_launch(struct mg_trace_writer *w, struct mg_trace_stream *s, uint64_t launch)
{
    struct mg_step_record step = {.time = 1000 + launch,
                                  .order = launch,
                                  .launch = launch,
                                  .name = mg_trace_name(w, "k"),
                                  .flags = MG_STEP_TRACED,
                                  .grid = {7, 1, 1},
                                  .block = {64, 1, 1},
                                  .kind = MG_STEP_LAUNCH};
    mg_trace_put(s, mg_trace_kind_add(w, &mg_step_record_kind), &step, sizeof step, NULL, 0);
}

static void put_pack(struct mg_trace_writer *w, struct mg_trace_stream *s, uint64_t launch)
{
    uint8_t data[4096];
    struct mg_packer p;
    mg_packer_init(&p, data, sizeof data);
    for (uint32_t i = 0; i < PER_LAUNCH; i++) {
        struct mg_packed_access a = {.cta = launch % 7, .warp = 1, .number = i, .bytes = 4, .mask = 0xff};
        for (uint32_t lane = 0; lane < 8; lane++) a.address[lane] = launch << 32 | i << 8 | lane << 2;
        MG_CHECK(mg_packer_add(&p, &a));
    }
    struct mg_pack_record r = {.launch = launch,
                               .cta_first = launch % 7,
                               .cta_last = launch % 7,
                               .sites = 1,
                               .sm = 3,
                               .accesses = PER_LAUNCH,
                               .lanes = 8 * PER_LAUNCH};
    mg_trace_put(s, mg_trace_kind_add(w, &mg_pack_record_kind), &r, sizeof r, data, p.n);
}

static void write_trace(const char *dir)
{
    struct mg_trace_opts o = {.size = sizeof o, .dir = dir, .rank = -1, .flush_ms = 1};
    struct mg_trace_writer *w;
    MG_CHECK(!mg_trace_open(&o, &w, NULL));
    struct mg_trace_stream *s = mg_trace_thread(w);
    struct mg_site_record site = {.time = 1,
                                  .sites = 1,
                                  .bytes = 4,
                                  .kernel = mg_trace_name(w, "k"),
                                  .op = mg_trace_name(w, "st.global.u32"),
                                  .file = mg_trace_name(w, "k.cu"),
                                  .line = 12,
                                  .kind = MG_ACCESS_STORE};
    struct mg_step_record alloc = {
        .time = 2, .order = 500, .dst = 0x1000, .bytes = 77, .launch = UINT64_MAX, .kind = MG_STEP_ALLOC};
    struct mg_step_record freed = {.time = 3, .order = 501, .dst = 0x1000, .launch = UINT64_MAX, .kind = MG_STEP_FREE};
    mg_trace_put(s, mg_trace_kind_add(w, &mg_site_record_kind), &site, sizeof site, NULL, 0);
    mg_trace_put(s, mg_trace_kind_add(w, &mg_step_record_kind), &freed, sizeof freed, NULL, 0);
    mg_trace_put(s, mg_trace_kind_add(w, &mg_step_record_kind), &alloc, sizeof alloc, NULL, 0);
    for (uint64_t i = 0; i < LAUNCHES; i++) put_launch(w, s, i);
    for (uint64_t i = 0; i < LAUNCHES; i++) { /* not in their order */
        put_pack(w, s, i ^ 5);
        if (i % 8 == 7) MG_CHECK(mg_trace_flush(w, 1000));
    }
    mg_trace_close(w);
}

static void check_launch(struct mg_accesses *a, const struct mg_trace_step *s)
{
    const struct mg_trace_access *x;
    uint32_t i = 0;
    mg_accesses_begin(a, s);
    for (; (x = mg_accesses_next(a)); i++) {
        MG_CHECK(x->launch == s && x->cta == s->launch % 7 && x->warp == 1 && x->sm == 3 && x->number == i &&
                 x->mask == 0xff);
        MG_CHECK(x->n_lanes == 8 && x->address[7] == (s->launch << 32 | i << 8 | 28) && !x->address[8]);
        MG_CHECK(x->site->line == 12 && !strcmp(x->site->op, "st.global.u32") && x->site->kind == MG_ACCESS_STORE);
    }
    MG_CHECK_EQ(i, PER_LAUNCH);
}

MG_TEST(accesses_are_read_by_launch)
{
    char dir[] = "/tmp/margay-access-XXXXXX", command[100];
    struct mg_trace_reader *r;
    struct mg_accesses *a;
    uint64_t n;
    const char *why;
    MG_CHECK(mkdtemp(dir) != NULL);
    write_trace(dir);
    MG_CHECK(!mg_trace_reader_open(dir, &r, NULL));
    MG_CHECK(!mg_accesses_open(r, 0, &a, NULL));
    const struct mg_trace_step *s = mg_accesses_steps(a, &n);
    MG_CHECK_EQ(n, LAUNCHES + 2);
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        MG_CHECK(s[i].kind == MG_STEP_LAUNCH && s[i].order == i && s[i].grid[0] == 7 && !strcmp(s[i].name, "k"));
        check_launch(a, &s[i]);
    }
    check_launch(a, &s[3]); /* again, and backwards */
    MG_CHECK(s[n - 2].kind == MG_STEP_ALLOC && s[n - 1].kind == MG_STEP_FREE && s[n - 1].bytes == 77);
    mg_accesses_begin(a, &s[n - 1]);
    MG_CHECK(!mg_accesses_next(a));
    MG_CHECK(!mg_accesses_damaged(a, &why) && !mg_accesses_is_partial(a));
    mg_accesses_close(a);
    mg_trace_reader_free(r);
    snprintf(command, sizeof command, "rm -r %s", dir);
    MG_CHECK(!system(command));
}
