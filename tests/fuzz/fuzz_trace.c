/* Fuzz target: the bytes are a trace file, or, behind a first byte that is odd, the inside of a chunk for which head
 * and checksums are made, so that what lies behind these is reached, too. Whatever they hold, opening gives an error or
 * a reader, all records print, the JSON is valid, the model of caches adds
 * up, and verification ends. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/io.h"
#include "report/priv.h"
#include "base/json_read.h"
#include "fuzz.h"
#include "scratch.h"
#include "span/sum.h"
#include "study/cache.h"
#include "trace/access.h"
#include "trace/format.h"

/* A file with one chunk of these bytes, plain. The first two say how many records and segments it claims. */
static void wrap(const uint8_t *data, size_t bytes, struct mg_buf *out)
{
    struct mg_trace_file_head f = {.version = MG_TRACE_VERSION, .head_bytes = sizeof f, .rank = -1};
    struct mg_trace_chunk_head h = {.magic = MG_TRACE_CHUNK_MAGIC, .version = MG_TRACE_VERSION};
    static const char zeros[8];
    if (bytes < 3) return;
    h.n_records = data[0];
    h.n_segments = data[1];
    data += 2;
    bytes -= 2;
    h.packed_bytes = h.raw_bytes = (uint32_t)bytes;
    for (int i = 0; i < MG_TRACE_INDEXED; i++) h.keys[i] = (struct mg_trace_range){0, UINT64_MAX};
    memcpy(f.magic, MG_TRACE_MAGIC, sizeof f.magic);
    f.crc = mg_crc32c(0, &f, sizeof f);
    h.payload_crc = mg_crc32c(mg_crc32c(0, data, bytes), zeros, mg_trace_padded(bytes) - bytes);
    mg_trace_chunk_head_seal(&h);
    mg_buf_add(out, &f, sizeof f);
    mg_buf_add(out, &h, sizeof h);
    mg_buf_add(out, data, bytes);
    mg_buf_add(out, zeros, mg_trace_padded(bytes) - bytes);
}

static void read_all(struct mg_trace_reader *r, enum mg_trace_order order)
{
    struct mg_trace_query q = {.size = sizeof q, .order = order};
    struct mg_trace_cursor *c = mg_trace_cursor_open(r, &q);
    struct mg_buf out = MG_BUF_INIT;
    const char *why;
    for (const struct mg_trace_record *rec; (rec = mg_trace_next(c));) {
        mg_buf_reset(&out);
        mg_trace_print(rec, &out);
        mg_buf_reset(&out);
        mg_trace_print_json(rec, &out);
        if (!mg_json_valid(out.at)) abort();
    }
    if (mg_trace_damaged(c, &why) && !strstr(why, path)) abort(); /* an error must name the path */
    mg_buf_release(&out);
    mg_trace_cursor_close(c);
}

/* How many of 65,536 accesses are left: 0 where a few bytes say that they stand for more. */
static uint64_t read_accesses(struct mg_trace_reader *r)
{
    struct mg_accesses *a;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf out = MG_BUF_INIT;
    uint64_t n, left = 1 << 16;
    if (!mg_trace_n_files(r) || mg_accesses_open(r, 0, &a, &d)) {
        mg_diag_release(&d);
        return left;
    }
    const struct mg_trace_step *s = mg_accesses_steps(a, &n);
    for (uint64_t i = 0; i < n; i++) {
        if (s[i].kind >= MG_STEP_KIND_COUNT || !s[i].name || (i && s[i].order < s[i - 1].order)) abort();
        mg_accesses_begin(a, &s[i]);
        for (const struct mg_trace_access *x; left && (x = mg_accesses_next(a)); left--) {
            if (!x->mask || x->launch != &s[i] || x->site->kind >= MG_ACCESS_KIND_COUNT) abort();
            mg_buf_reset(&out);
            mg_trace_access_print_json(x, 1, &out);
            if (!mg_json_valid(out.at)) abort();
        }
    }
    mg_buf_release(&out);
    mg_accesses_close(a);
    mg_diag_release(&d);
    return left;
}

static bool is_part(const struct mg_cache_part *p)
{
    const struct mg_cache_span *loads[] = {&p->l1_hits, &p->l1_first, &p->l1_capacity};
    for (size_t i = 0; i < MG_COUNT_OF(loads); i++)
        if (loads[i]->least > loads[i]->most || loads[i]->most > p->sectors[MG_ACCESS_LOAD]) return false;
    return p->l2_hits.least <= p->l2_guess && p->l2_guess <= p->l2_hits.most && p->l2_hits.most <= p->l2_sectors &&
           p->l2_capacity.least <= p->l2_capacity.most && p->l2_first + p->l2_capacity.most <= p->l2_sectors &&
           p->l2_sectors <= p->sectors[0] + p->sectors[1] + p->sectors[2];
}

/* What the model of caches makes of it adds up. */
static void model_caches(struct mg_trace_reader *r)
{
    const struct mg_cache_opts o = {.size = sizeof o, .l1_bytes = 4096, .l2_bytes = 1 << 14, .interleavings = 1};
    struct mg_cache *c = mg_cache_new(&o);
    struct mg_comm_source source;
    struct mg_diag d = MG_DIAG_INIT;
    uint64_t sites = 0, buffers = 0;
    if (mg_trace_n_files(r) && !mg_cache_feed(c, r, 0, &source, &d)) {
        const struct mg_cache_result *x = mg_cache_finish(c);
        for (uint32_t i = 0; i < x->sites.n; i++) {
            if (!is_part(&x->sites.at[i].part)) abort();
            sites += x->sites.at[i].part.l2_sectors;
        }
        for (uint32_t i = 0; i < x->buffers.n; i++) {
            if (!is_part(&x->buffers.at[i].part)) abort();
            buffers += x->buffers.at[i].part.l2_sectors;
        }
        if (sites != buffers || sites != x->l2.sectors) abort();
    }
    mg_cache_free(c);
    mg_diag_release(&d);
}

/* The same file as a time line: whatever its records hold, spans come in order and figures are made of them. */
static void sum_up(void)
{
    struct mg_sum s;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_span_query q = {.size = sizeof q, .kinds = UINT32_MAX};
    struct mg_spans *spans;
    uint64_t last = 0;
    if (!mg_sum_init(&s, path, &d)) {
        if (s.devices.n && s.devices.at[0].busy_ns > s.devices.at[0].last_ns - s.devices.at[0].first_ns) abort();
        for (uint32_t i = 0; i < s.inside.n; i++)
            if (s.inside.at[i].covered_ns > s.inside.at[i].time_ns || s.inside.at[i].outside > s.inside.at[i].count)
                abort();
        mg_sum_release(&s);
    }
    if (!mg_spans_open(path, &q, &spans, &d)) {
        for (const struct mg_span *p; (p = mg_spans_next(spans)); last = p->begin_ns)
            if (p->begin_ns < last || p->end_ns < p->begin_ns || !p->name || !p->domain || !p->kernel ||
                p->kind >= MG_SPAN_KIND_COUNT)
                abort();
        mg_spans_close(spans);
    }
    mg_diag_release(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_trace_reader *r = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf made = MG_BUF_INIT;
    if (!*path) prepare_file();
    if (bytes && data[0] & 1) wrap(data + 1, bytes - 1, &made);
    if (mg_io_write(path, made.n ? made.at : (const char *)data, made.n ? made.n : bytes, NULL)) abort();
    if (!mg_trace_reader_open(path, &r, &d)) {
        read_all(r, MG_TRACE_BY_FILE);
        read_all(r, MG_TRACE_BY_TIME);
        if (read_accesses(r)) model_caches(r);
        sum_up();
        if (mg_trace_verify(r, &d) && (!d.n_errors || !strstr(mg_diag_first(&d, MG_ERR_IO), path))) abort();
    } else if (!d.n_errors || !strstr(mg_diag_first(&d, MG_ERR_IO), path)) {
        abort();
    }
    mg_trace_reader_free(r);
    mg_buf_release(&made);
    mg_diag_release(&d);
    return 0;
}
