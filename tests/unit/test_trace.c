/* Trace files: what is written comes back, whatever happens to the file; policies; order; what a damaged file gives. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <signal.h>

#include "base/crc.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/vec.h"
#include "profile_sample.h"
#include "trace/format.h"
#include "trace/reader.h"
#include "trace/writer.h"

static uint32_t random_state;
static uint32_t random_next(uint32_t below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(random_state >> 4) * below >> 28);
}

static uint64_t random_u64(void)
{
    return (uint64_t)random_next(1u << 28) << 40 ^ (uint64_t)random_next(1u << 28) << 20 ^ random_next(1u << 28);
}

static struct mg_trace_writer *open_writer(const char *dir, struct mg_trace_opts o)
{
    struct mg_trace_writer *w = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    o.size = sizeof o;
    o.dir = dir;
    if (mg_trace_open(&o, &w, &d)) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_IO));
    mg_diag_release(&d);
    return w;
}

static struct mg_trace_reader *open_reader(const char *path)
{
    struct mg_trace_reader *r = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    if (mg_trace_reader_open(path, &r, &d)) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_IO));
    mg_diag_release(&d);
    return r;
}

static bool verifies(const char *path)
{
    struct mg_trace_reader *r = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    bool ok = !mg_trace_reader_open(path, &r, &d) && !mg_trace_verify(r, &d);
    if (!ok && !d.n_errors) mg_test_fail(__FILE__, __LINE__, "no error is told of %s", path);
    mg_trace_reader_free(r);
    mg_diag_release(&d);
    return ok;
}

MG_TEST(crc32c_of_known_texts)
{
    MG_CHECK_EQ(mg_crc32c(0, "123456789", 9), 0xe3069283u); /* the catalogue's check value */
    uint8_t zeros[32] = {0};
    MG_CHECK_EQ(mg_crc32c(0, zeros, 32), 0x8a9136aau); /* RFC 3720, B.4 */
    MG_CHECK_EQ(mg_crc32c(mg_crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
}

/* ---- one kind ------------------------------------------------------------------------------------------ */

static const struct mg_trace_field call_fields[] = {{"begin", MG_TRACE_time, MG_TRACE_KEY_TIME},
                                                    {"end", MG_TRACE_time, MG_TRACE_KEY_TIME, MG_TRACE_NULLABLE},
                                                    {"name", MG_TRACE_name},
                                                    {"class", MG_TRACE_u8, .values = "kernel|copy"},
                                                    {"launch", MG_TRACE_u32, MG_TRACE_KEY_LAUNCH},
                                                    {"result", MG_TRACE_i32},
                                                    {"args", MG_TRACE_words}};
static const struct mg_trace_kind call_kind = MG_TRACE_KIND("call", call_fields);
struct call {
    uint64_t begin, end;
    uint32_t name;
    uint8_t class;
    uint32_t launch;
    int32_t result;
} __attribute__((packed));

MG_TEST(trace_prints_what_was_put)
{
    const char *dir = sample_dir();
    struct mg_trace_writer *w = open_writer(
        dir, (struct mg_trace_opts){.rank = 3, .attributes = (const char *[]){"exe=./app"}, .n_attributes = 1});
    uint32_t kind = mg_trace_kind_add(w, &call_kind);
    MG_CHECK_EQ(mg_trace_kind_add(w, &call_kind), kind);
    struct mg_trace_stream *s = mg_trace_thread(w);
    MG_CHECK(s == mg_trace_thread(w));
    struct call c = {1000, 2000, mg_trace_name(w, "cuLaunchKernel"), 0, 7, 0};
    uint64_t args[] = {0x10, 0xffff};
    MG_CHECK(mg_trace_put(s, kind, &c, sizeof c, args, sizeof args));
    c = (struct call){3000, UINT64_MAX, mg_trace_name(w, "a \"b\"\n"), 9, 8, -700};
    MG_CHECK(mg_trace_put(s, kind, &c, sizeof c, NULL, 0));
    MG_CHECK(!mg_trace_put(s, kind + 1, &c, sizeof c, NULL, 0)); /* no such kind: lost */
    MG_CHECK(!mg_trace_put(NULL, kind, &c, sizeof c, NULL, 0));
    MG_CHECK(mg_trace_put(s, kind, &c, sizeof c - 1, NULL, 0)); /* found by the writer thread: lost */
    MG_CHECK(mg_trace_flush(w, 10000));
    struct mg_trace_counts n;
    mg_trace_counts(w, &n);
    MG_CHECK_EQ(n.written, 2);
    MG_CHECK_EQ(n.lost, 2);
    mg_trace_close(w);
    struct mg_trace_reader *r = open_reader(dir);
    MG_CHECK_EQ(mg_trace_n_files(r), 1);
    const struct mg_trace_file *f = mg_trace_file(r, 0);
    size_t bytes;
    MG_CHECK(f->closed);
    MG_CHECK_EQ(f->lost, 2);
    MG_CHECK_EQ(f->rank, 3);
    MG_CHECK_EQ(f->pid, getpid());
    MG_CHECK(!strncmp(mg_trace_attribute(f, "exe", &bytes), "./app\n", 6));
    MG_CHECK_EQ(bytes, 5);
    MG_CHECK(mg_trace_attribute(f, "boot", &bytes));
    MG_CHECK_EQ(f->keys[MG_TRACE_KEY_TIME - 1].first, 1000);
    MG_CHECK_EQ(f->keys[MG_TRACE_KEY_TIME - 1].last, 3000); /* an end that is null is not indexed */
    MG_CHECK_EQ(f->keys[MG_TRACE_KEY_LAUNCH - 1].last, 8);
    MG_CHECK(f->keys[MG_TRACE_KEY_CTA - 1].first > f->keys[MG_TRACE_KEY_CTA - 1].last);
    struct mg_trace_query q = {.size = sizeof q};
    struct mg_trace_cursor *cursor = mg_trace_cursor_open(r, &q);
    struct mg_buf out = MG_BUF_INIT;
    char want[256];
    const struct mg_trace_record *rec = mg_trace_next(cursor);
    mg_trace_print(rec, &out);
    snprintf(
        want, sizeof want,
        "call pid=%d stream=0 begin=1000 end=2000 name=\"cuLaunchKernel\" class=kernel launch=7 result=0 args=0x10,0xffff",
        (int)getpid());
    MG_CHECK_STR(out.at, want);
    mg_buf_reset(&out);
    rec = mg_trace_next(cursor);
    mg_trace_print_json(rec, &out);
    snprintf(
        want, sizeof want,
        "{\"kind\":\"call\",\"pid\":%d,\"stream\":0,\"tid\":%d,\"time_ns\":3000,\"fields\":{\"begin\":3000,\"end\":null,\"name\":\"a \\\"b\\\"\\n\",\"class\":9,\"launch\":8,\"result\":-700,\"args\":[]}}",
        (int)getpid(), (int)gettid());
    MG_CHECK_STR(out.at, want);
    MG_CHECK(!mg_trace_next(cursor));
    mg_buf_release(&out);
    mg_trace_cursor_close(cursor);
    mg_trace_reader_free(r);
    MG_CHECK(verifies(dir));
    sample_remove(dir);
}

MG_TEST(trace_refuses_wrong_kinds)
{
    const char *dir = sample_dir();
    struct mg_trace_writer *w = open_writer(dir, (struct mg_trace_opts){0});
    const struct mg_trace_field twice[] = {{"a", MG_TRACE_u8}, {"a", MG_TRACE_u8}},
                                middle[] = {{"a", MG_TRACE_text}, {"b", MG_TRACE_u8}},
                                key[] = {{"a", MG_TRACE_f64, MG_TRACE_KEY_TIME}};
    const struct mg_trace_kind wrong[] = {MG_TRACE_KIND("x", twice),
                                          MG_TRACE_KIND("x", middle),
                                          MG_TRACE_KIND("x", key),
                                          MG_TRACE_KIND("", call_fields),
                                          {.name = "x"}};
    for (size_t i = 0; i < MG_COUNT_OF(wrong); i++) MG_CHECK_EQ(mg_trace_kind_add(w, &wrong[i]), 0);
    mg_trace_close(w);
    MG_CHECK(verifies(dir)); /* without any chunk */
    sample_remove(dir);
}

/* ---- random kinds and records -------------------------------------------------------------------------- */

struct made {
    MG_VEC(char *) lines;
};

static void random_text(char *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) out[i] = (char)('a' + random_next(26));
    out[n] = 0;
}

struct random_kind {
    struct mg_trace_kind kind;
    struct mg_trace_field fields[8];
    char names[9][12];
    uint32_t number;
};

static void make_kind(struct random_kind *k, uint32_t i)
{
    k->kind = (struct mg_trace_kind){
        .name = k->names[8], .version = i + 1, .fields = k->fields, .n_fields = 1 + random_next(8)};
    snprintf(k->names[8], sizeof k->names[8], "kind%u", i);
    for (uint32_t f = 0; f < k->kind.n_fields; f++) {
        bool last = f + 1 == k->kind.n_fields;
        snprintf(k->names[f], sizeof k->names[f], "f%u", f);
        k->fields[f] = (struct mg_trace_field){.name = k->names[f],
                                               .type = random_next(last ? MG_TRACE_TYPE_COUNT : MG_TRACE_text)};
        if (k->fields[f].type == MG_TRACE_time && !random_next(3)) k->fields[f].key = MG_TRACE_KEY_TIME;
        if (k->fields[f].type == MG_TRACE_u32 && !random_next(3)) k->fields[f].key = MG_TRACE_KEY_LAUNCH;
    }
}

/* Puts a random record and notes the line that it must print as. */
static void put_random(struct mg_trace_writer *w, struct mg_trace_stream *s, uint32_t stream,
                       const struct random_kind *k, struct made *made)
{
    uint8_t bytes[8 * 8 + 8 * 32];
    uint32_t n = 0, tail = 0;
    struct mg_buf line = MG_BUF_INIT;
    mg_buf_printf(&line, "%s pid=%d stream=%u", k->kind.name, (int)getpid(), stream);
    for (uint32_t f = 0; f < k->kind.n_fields; f++) {
        uint64_t v = random_u64();
        char text[40];
        mg_buf_printf(&line, " %s=", k->fields[f].name);
        switch (k->fields[f].type) {
        case MG_TRACE_u8:
            v &= 0xff;
            mg_buf_printf(&line, "%u", (unsigned)v);
            break;
        case MG_TRACE_u16:
            v &= 0xffff;
            mg_buf_printf(&line, "%u", (unsigned)v);
            break;
        case MG_TRACE_u32:
            v &= UINT32_MAX;
            mg_buf_printf(&line, "%u", (unsigned)v);
            break;
        case MG_TRACE_u64:
        case MG_TRACE_time:
            mg_buf_printf(&line, "%llu", (unsigned long long)v);
            break;
        case MG_TRACE_i32:
            mg_buf_printf(&line, "%d", (int32_t)v);
            break;
        case MG_TRACE_i64:
            mg_buf_printf(&line, "%lld", (long long)v);
            break;
        case MG_TRACE_f64: {
            double x = (double)(int64_t)v / 3;
            memcpy(&v, &x, 8);
            mg_buf_printf(&line, "%.17g", x);
            break;
        }
        case MG_TRACE_hex:
            mg_buf_printf(&line, "0x%llx", (unsigned long long)v);
            break;
        case MG_TRACE_name:
            random_text(text, 1 + random_next(2));
            v = mg_trace_name(w, text);
            mg_buf_printf(&line, "\"%s\"", text);
            break;
        default:
            break;
        }
        uint32_t size = mg_trace_type_bytes(k->fields[f].type);
        memcpy(bytes + n, &v, size);
        n += size;
        if (size) continue;
        tail = random_next(32);
        if (k->fields[f].type == MG_TRACE_text) {
            random_text(text, tail);
            memcpy(bytes + n, text, tail);
            mg_buf_printf(&line, "\"%s\"", text);
            continue;
        }
        bool words = k->fields[f].type == MG_TRACE_words;
        for (uint32_t i = 0; i < tail; i++) {
            v = random_u64() & (words ? UINT64_MAX : 255);
            memcpy(bytes + n + i * (words ? 8 : 1), &v, words ? 8 : 1);
            mg_buf_printf(&line, words ? "%s0x%llx" : "%s%02llx", words && i ? "," : "", (unsigned long long)v);
        }
        tail *= words ? 8 : 1;
    }
    MG_CHECK(mg_trace_put(s, k->number, bytes, n, bytes + n, tail));
    *mg_vec_push(&made->lines) = mg_buf_take(&line);
}

static void round_trip(uint32_t seed)
{
    const char *dir = sample_dir();
    struct random_kind kinds[6];
    struct made made[3] = {0};
    struct mg_trace_stream *streams[3];
    random_state = seed;
    struct mg_trace_writer *w = open_writer(dir, (struct mg_trace_opts){.flush_ms = 1 + random_next(20)});
    uint32_t n_kinds = 1 + random_next(6), n = random_next(3) ? random_next(3000) : random_next(60000);
    for (uint32_t i = 0; i < n_kinds; i++) {
        make_kind(&kinds[i], i);
        kinds[i].number = mg_trace_kind_add(w, &kinds[i].kind);
        MG_CHECK_EQ(kinds[i].number, i + 1);
    }
    for (uint32_t i = 0; i < 3; i++) streams[i] = mg_trace_stream_open(w, "s");
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = random_next(3);
        put_random(w, streams[s], s, &kinds[random_next(n_kinds)], &made[s]);
    }
    for (uint32_t i = 0; i < 3; i++) mg_trace_stream_close(streams[i]);
    mg_trace_close(w);
    if (!verifies(dir)) mg_test_fail(__FILE__, __LINE__, "seed %u: not whole", seed);
    struct mg_trace_reader *r = open_reader(dir);
    struct mg_trace_query q = {.size = sizeof q};
    struct mg_trace_cursor *c = mg_trace_cursor_open(r, &q);
    struct mg_buf out = MG_BUF_INIT;
    uint32_t at[3] = {0}, total = 0;
    for (const struct mg_trace_record *rec; (rec = mg_trace_next(c)); total++) {
        mg_buf_reset(&out);
        mg_trace_print(rec, &out);
        uint32_t s = rec->stream;
        if (s > 2 || at[s] == made[s].lines.n) {
            mg_test_fail(__FILE__, __LINE__, "seed %u: too many records", seed);
            break;
        }
        if (strcmp(out.at, made[s].lines.at[at[s]++])) {
            mg_test_fail(__FILE__, __LINE__, "seed %u: is \"%s\", want \"%s\"", seed, out.at,
                         made[s].lines.at[at[s] - 1]);
            break;
        }
    }
    MG_CHECK_EQ(total, n);
    mg_buf_release(&out);
    mg_trace_cursor_close(c);
    mg_trace_reader_free(r);
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t l = 0; l < made[i].lines.n; l++) free(made[i].lines.at[l]);
        mg_vec_release(&made[i].lines);
    }
    sample_remove(dir);
}

MG_TEST(trace_round_trip_of_random_kinds)
{
    for (uint32_t seed = 1; seed <= 12; seed++) round_trip(seed);
}

/* ---- damage -------------------------------------------------------------------------------------------- */

struct small {
    char path[128];
    char *data;
    size_t bytes;
    uint32_t n;
};

/* A closed file of several small chunks in dir/trace; n records {time i, launch i / 4}. */
static const struct mg_trace_field tick_fields[] = {
    {"time", MG_TRACE_time, MG_TRACE_KEY_TIME}, {"launch", MG_TRACE_u32, MG_TRACE_KEY_LAUNCH}, {"what", MG_TRACE_name}};
static const struct mg_trace_kind tick_kind = MG_TRACE_KIND("tick", tick_fields);
struct tick {
    uint64_t time;
    uint32_t launch, what;
} __attribute__((packed));

static struct small make_small(const char *dir, uint32_t chunks, uint32_t each)
{
    struct small f = {.n = chunks * each};
    struct mg_trace_writer *w = open_writer(dir, (struct mg_trace_opts){.flush_ms = 100000});
    uint32_t kind = mg_trace_kind_add(w, &tick_kind);
    for (uint32_t i = 0; i < f.n; i++) {
        struct tick t = {100 + i, i / 4, mg_trace_name(w, i & 1 ? "odd" : "even")};
        mg_trace_put(mg_trace_thread(w), kind, &t, sizeof t, NULL, 0);
        if ((i + 1) % each == 0) MG_CHECK(mg_trace_flush(w, 10000));
    }
    snprintf(f.path, sizeof f.path, "%s", mg_trace_path(w));
    mg_trace_close(w);
    MG_CHECK(!mg_io_read(f.path, &f.data, &f.bytes, NULL));
    return f;
}

/* Reads the records of a file: how many, while each must be what was written. first: the lowest of them. */
static uint32_t read_ticks(const char *path, uint32_t *first)
{
    struct mg_trace_reader *r = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    uint32_t n = 0;
    *first = 0;
    if (!mg_trace_reader_open(path, &r, &d)) {
        struct mg_trace_query q = {.size = sizeof q};
        struct mg_trace_cursor *c = mg_trace_cursor_open(r, &q);
        for (const struct mg_trace_record *rec; (rec = mg_trace_next(c)); n++) {
            uint32_t i = (uint32_t)mg_trace_u64(rec, 0) - 100, bytes;
            const char *text = mg_trace_text(rec, 2, &bytes);
            if (mg_trace_u64(rec, 1) != i / 4 || strcmp(text, i & 1 ? "odd" : "even"))
                mg_test_fail(__FILE__, __LINE__, "a wrong record");
            if (!n) *first = i;
        }
        mg_trace_cursor_close(c);
    }
    mg_trace_reader_free(r);
    mg_diag_release(&d);
    return n;
}

MG_TEST(trace_rejects_every_flipped_byte)
{
    const char *dir = sample_dir();
    struct small f = make_small(dir, 3, 8);
    uint32_t first;
    MG_CHECK(verifies(f.path));
    MG_CHECK_EQ(read_ticks(f.path, &first), 24);
    for (size_t i = 0; i < f.bytes; i++) {
        uint8_t flip = (uint8_t)(1u << i % 8);
        if (i % 3 == 0) flip = 0xff;
        f.data[i] ^= (char)flip;
        MG_CHECK(!mg_io_write(f.path, f.data, f.bytes, NULL));
        f.data[i] ^= (char)flip;
        if (verifies(f.path)) mg_test_fail(__FILE__, __LINE__, "byte %zu of %zu may be flipped", i, f.bytes);
        if (read_ticks(f.path, &first) < 16)
            mg_test_fail(__FILE__, __LINE__, "byte %zu flipped loses more than a chunk", i);
    }
    free(f.data);
    sample_remove(dir);
}

MG_TEST(trace_torn_anywhere_keeps_the_chunks_before)
{
    const char *dir = sample_dir();
    struct small f = make_small(dir, 4, 8);
    uint32_t first;
    uint64_t ends[5] = {((struct mg_trace_file_head *)(void *)f.data)->head_bytes};
    for (int i = 0; i < 4; i++) {
        struct mg_trace_chunk_head h;
        memcpy(&h, f.data + ends[i], sizeof h);
        MG_CHECK_EQ(h.n_records, 8);
        ends[i + 1] = ends[i] + mg_trace_stored(h.packed_bytes);
    }
    for (size_t bytes = f.bytes; bytes-- > 0;) {
        MG_CHECK(!truncate(f.path, (off_t)bytes));
        uint32_t whole = 0;
        while (whole < 4 && ends[whole + 1] <= bytes) whole++;
        MG_CHECK(bytes == 0 || !verifies(f.path));
        if (read_ticks(f.path, &first) != 8 * whole)
            mg_test_fail(__FILE__, __LINE__, "%zu bytes: not %u chunks", bytes, whole);
    }
    free(f.data);
    sample_remove(dir);
}

MG_TEST(trace_of_a_newer_version_is_refused)
{
    const char *dir = sample_dir();
    struct small f = make_small(dir, 1, 4);
    struct mg_trace_file_head h;
    struct mg_trace_reader *r = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    memcpy(&h, f.data, sizeof h);
    h.version = MG_TRACE_VERSION + 1;
    h.crc = 0;
    memcpy(f.data, &h, sizeof h);
    h.crc = mg_crc32c(0, f.data, h.head_bytes);
    memcpy(f.data, &h, sizeof h);
    MG_CHECK(!mg_io_write(f.path, f.data, f.bytes, NULL));
    MG_CHECK_EQ(mg_trace_reader_open(dir, &r, &d), MG_ERR_UNSUPPORTED);
    MG_CHECK(strstr(mg_diag_first(&d, MG_ERR_IO), f.path));
    mg_diag_release(&d);
    free(f.data);
    sample_remove(dir);
}

/* ---- order and seeking --------------------------------------------------------------------------------- */

static void *put_ticks(void *arg)
{
    struct mg_trace_writer *w = arg;
    struct mg_trace_stream *s = mg_trace_thread(w);
    uint32_t kind = mg_trace_kind_add(w, &tick_kind), name = mg_trace_name(w, "t");
    uint64_t mine = mg_hash64(&s, sizeof s, 0) % 7;
    for (uint32_t i = 0; i < 20000; i++) {
        struct tick t = {1000 + 64ull * i + mine, i, name};
        mg_trace_put(s, kind, &t, sizeof t, NULL, 0);
    }
    return NULL;
}

MG_TEST(trace_of_threads_is_merged_by_time)
{
    const char *dir = sample_dir();
    struct mg_trace_writer *w = open_writer(dir, (struct mg_trace_opts){.memory_bytes = 1 << 18, .flush_ms = 5});
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) MG_CHECK(!pthread_create(&threads[i], NULL, put_ticks, w));
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    mg_trace_close(w);
    MG_CHECK(verifies(dir));
    struct mg_trace_reader *r = open_reader(dir);
    struct mg_trace_query q = {.size = sizeof q, .order = MG_TRACE_BY_TIME};
    struct mg_trace_cursor *c = mg_trace_cursor_open(r, &q);
    uint64_t before = 0, n = 0, out_of_order = 0;
    for (const struct mg_trace_record *rec; (rec = mg_trace_next(c)); n++) {
        out_of_order += rec->time < before;
        before = rec->time;
    }
    MG_CHECK_EQ(n, 8 * 20000);
    MG_CHECK_EQ(out_of_order, 0);
    mg_trace_cursor_close(c);
    q.with_keys = 1u << MG_TRACE_KEY_LAUNCH;
    q.keys[MG_TRACE_KEY_LAUNCH - 1] = (struct mg_trace_range){1000, 1009};
    c = mg_trace_cursor_open(r, &q);
    for (n = 0; mg_trace_next(c); n++) {
    }
    MG_CHECK_EQ(n, 8 * 10);
    mg_trace_cursor_close(c);
    q = (struct mg_trace_query){.size = sizeof q, .kinds = "tock,ticks"};
    c = mg_trace_cursor_open(r, &q);
    MG_CHECK(!mg_trace_next(c));
    mg_trace_cursor_close(c);
    mg_trace_reader_free(r);
    sample_remove(dir);
}

/* ---- policies and failures ----------------------------------------------------------------------------- */

MG_TEST(trace_samples_and_counts)
{
    const char *dir = sample_dir();
    struct mg_trace_writer *w = open_writer(dir, (struct mg_trace_opts){.policy = MG_TRACE_SAMPLE, .every = 10});
    struct mg_trace_kind sampled = tick_kind;
    sampled.flags = MG_TRACE_SAMPLED;
    uint32_t some = mg_trace_kind_add(w, &sampled), all = mg_trace_kind_add(w, &tick_kind);
    MG_CHECK(some != all);
    for (uint32_t i = 0; i < 1000; i++) {
        struct tick t = {i, i, 0};
        mg_trace_put(mg_trace_thread(w), some, &t, sizeof t, NULL, 0);
        mg_trace_put(mg_trace_thread(w), all, &t, sizeof t, NULL, 0);
    }
    mg_trace_close(w);
    struct mg_trace_reader *r = open_reader(dir);
    MG_CHECK_EQ(mg_trace_file(r, 0)->records, 1100);
    MG_CHECK_EQ(mg_trace_file(r, 0)->skipped, 900);
    mg_trace_reader_free(r);
    MG_CHECK(verifies(dir));
    sample_remove(dir);
}

MG_TEST(trace_drops_no_more_than_it_says)
{
    const char *dir = sample_dir();
    struct mg_trace_writer *w = open_writer(dir, (struct mg_trace_opts){.policy = MG_TRACE_DROP, .memory_bytes = 1});
    uint32_t kind = mg_trace_kind_add(w, &tick_kind);
    uint64_t put = 0, n = 300000;
    for (uint32_t i = 0; i < n; i++) {
        struct tick t = {i, i, 0};
        put += mg_trace_put(mg_trace_thread(w), kind, &t, sizeof t, NULL, 0);
    }
    mg_trace_close(w);
    struct mg_trace_reader *r = open_reader(dir);
    MG_CHECK_EQ(mg_trace_file(r, 0)->records, put);
    MG_CHECK_EQ(mg_trace_file(r, 0)->records + mg_trace_file(r, 0)->dropped, n);
    mg_trace_reader_free(r);
    MG_CHECK(verifies(dir));
    sample_remove(dir);
}

static char said[512];
static void keep_line(void *user, const char *line)
{
    (void)user;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", line);
}

MG_TEST(trace_stops_when_the_file_may_not_grow)
{
    const char *dir = sample_dir();
    pid_t child = fork();
    if (!child) { /* the limit is the process' */
        struct rlimit limit = {3000000, RLIM_INFINITY};
        struct mg_trace_writer *w = open_writer(dir, (struct mg_trace_opts){.say = keep_line});
        uint32_t kind = mg_trace_kind_add(w, &tick_kind);
        struct mg_trace_counts n;
        setrlimit(RLIMIT_FSIZE, &limit);
        for (uint32_t i = 0; i < 2000000; i++) {
            struct tick t = {i * 0x9e3779b97f4a7c15ull, i, 0}; /* does not compress */
            mg_trace_put(mg_trace_thread(w), kind, &t, sizeof t, NULL, 0);
        }
        mg_trace_flush(w, 10000);
        mg_trace_counts(w, &n);
        mg_trace_end(w);
        bool ok = n.stopped && n.written && n.written + n.lost == 2000000 && strstr(said, "File too large") &&
                  strstr(said, "up to launch") && strchr(said, '\n') == said + strlen(said) - 1;
        if (!ok)
            fprintf(stderr, "stopped %d written %llu lost %llu dropped %llu: %s\n", n.stopped,
                    (unsigned long long)n.written, (unsigned long long)n.lost, (unsigned long long)n.dropped, said);
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    MG_CHECK_EQ(status, 0);
    struct mg_trace_reader *r = open_reader(dir);
    struct mg_trace_query q = {.size = sizeof q};
    struct mg_trace_cursor *c = mg_trace_cursor_open(r, &q);
    uint64_t n = 0, wrong = 0;
    for (const struct mg_trace_record *rec; (rec = mg_trace_next(c)); n++) wrong += mg_trace_u64(rec, 1) != n;
    MG_CHECK_EQ(n, mg_trace_file(r, 0)->records);
    MG_CHECK_EQ(wrong, 0);
    MG_CHECK_EQ(mg_trace_file(r, 0)->damaged_bytes, 0);
    mg_trace_cursor_close(c);
    mg_trace_reader_free(r);
    sample_remove(dir);
}

MG_TEST(trace_of_a_killed_process_keeps_what_was_flushed)
{
    const char *dir = sample_dir();
    int pipe_fds[2];
    MG_CHECK(!pipe(pipe_fds));
    pid_t child = fork();
    if (!child) {
        struct mg_trace_writer *w = open_writer(dir, (struct mg_trace_opts){0});
        uint32_t kind = mg_trace_kind_add(w, &tick_kind);
        for (uint32_t i = 0; i < 5000; i++) {
            struct tick t = {i, i, 0};
            mg_trace_put(mg_trace_thread(w), kind, &t, sizeof t, NULL, 0);
        }
        mg_trace_flush(w, 10000);
        if (write(pipe_fds[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    char x;
    MG_CHECK_EQ(read(pipe_fds[0], &x, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    struct mg_trace_reader *r = open_reader(dir);
    MG_CHECK_EQ(mg_trace_file(r, 0)->records, 5000);
    MG_CHECK(!mg_trace_file(r, 0)->closed);
    mg_trace_reader_free(r);
    sample_remove(dir);
}

MG_TEST(trace_survives_a_closed_descriptor)
{
    const char *dir = sample_dir();
    struct mg_trace_writer *w = open_writer(dir, (struct mg_trace_opts){0});
    uint32_t kind = mg_trace_kind_add(w, &tick_kind);
    struct tick t = {1, 1, 0};
    struct stat ours, st;
    mg_trace_put(mg_trace_thread(w), kind, &t, sizeof t, NULL, 0);
    MG_CHECK(mg_trace_flush(w, 10000) && !stat(mg_trace_path(w), &ours));
    int taken = -1;
    for (int fd = 3; fd < 1024; fd++) {
        if (fstat(fd, &st) || st.st_ino != ours.st_ino || st.st_dev != ours.st_dev) continue;
        close(fd);
        taken = open("/dev/null", O_RDONLY); /* has its number now */
    }
    MG_CHECK(taken > 0);
    mg_trace_put(mg_trace_thread(w), kind, &t, sizeof t, NULL, 0);
    mg_trace_close(w);
    close(taken);
    struct mg_trace_reader *r = open_reader(dir);
    MG_CHECK_EQ(mg_trace_file(r, 0)->records, 2);
    mg_trace_reader_free(r);
    MG_CHECK(verifies(dir));
    sample_remove(dir);
}

static uint32_t openings; /* UINT32_MAX: no more */
/* Once for each opening. */
static void *take_folder(void *folder)
{
    for (uint32_t now, taken = UINT32_MAX; (now = __atomic_load_n(&openings, __ATOMIC_ACQUIRE)) != UINT32_MAX;)
        if (now != taken && !rmdir(folder)) taken = now;
    return NULL;
}

/* Another run of the same profile ends meanwhile. */
MG_TEST(trace_folder_is_taken_away_while_it_is_opened)
{
    const char *dir = sample_dir();
    char folder[4096];
    pthread_t t;
    snprintf(folder, sizeof folder, "%s/trace", dir);
    openings = 0;
    MG_CHECK_EQ(pthread_create(&t, NULL, take_folder, folder), 0);
    for (int i = 0; i < 1000; i++) {
        struct mg_trace_writer *w = open_writer(dir, (struct mg_trace_opts){0});
        if (!w) break;
        unlink(mg_trace_path(w));
        mg_trace_close(w);
        __atomic_store_n(&openings, (uint32_t)i + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&openings, UINT32_MAX, __ATOMIC_RELEASE);
    pthread_join(t, NULL);
}
