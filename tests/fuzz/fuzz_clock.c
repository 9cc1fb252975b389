/* The bytes are PID.clock of a process of another host, beside the trace of rank 0's. Whatever it says, its times are moved
 * by one line: the spans of each process stay in their order and keep their number, all come by their begins, and a clock
 * that counts as measured has an uncertainty. */
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/io.h"
#include "fuzz.h"
#include "scratch.h"
#include "span/span.h"
#include "span/writer.h"
#include "trace/format.h"

enum { SPANS = 9, HERE = 11, THERE = 22 };
static char clock_path[96];

/* The file that was written, as one of another process, host and boot. */
static void write_as(const char *file, uint32_t pid, char boot, const char *whole, size_t bytes)
{
    struct mg_trace_file_head h;
    char *copy = mg_xmalloc(bytes), to[96], *at;
    memcpy(copy, whole, bytes);
    memcpy(&h, copy, sizeof h);
    h.pid = pid;
    h.rank = (int32_t)(pid == THERE);
    if (!(at = memmem(copy, h.head_bytes, "boot", 4))) abort();
    while (*at < '0' || *at > '9') at++; /* the first digit of its value */
    *at = boot;
    h.crc = 0;
    memcpy(copy, &h, sizeof h);
    h.crc = mg_crc32c(0, copy, h.head_bytes);
    memcpy(copy, &h, sizeof h);
    snprintf(to, sizeof to, "%s/%s", path, file);
    if (mg_io_write(to, copy, bytes, NULL)) abort();
    free(copy);
}

static void prepare(void)
{
    struct mg_span_writer *w;
    char file[160], *whole;
    size_t bytes;
    prepare_folder();
    struct mg_span_writer_opts o = {.size = sizeof o, .dir = path, .memory_bytes = 1 << 20, .wait = true};
    if (mg_span_writer_open(&o, &w, NULL)) abort();
    for (uint64_t i = 0; i < SPANS; i++) {
        struct mg_record_mark m = {.begin = 1000 + 100 * i, .end = 1050 + 100 * i, .correlation = i + 1};
        m.name = mg_span_name(w, "step");
        mg_span_put_mark(w, &m);
    }
    mg_span_writer_close(w);
    snprintf(file, sizeof file, "%s/trace/%d.mgt", path, (int)getpid());
    if (mg_io_read(file, &whole, &bytes, NULL)) abort();
    unlink(file);
    snprintf(file, sizeof file, "%s/trace", path);
    rmdir(file);
    write_as("11.mgt", HERE, '0', whole, bytes);
    write_as("22.mgt", THERE, '1', whole, bytes);
    free(whole);
    snprintf(file, sizeof file, "%s/11.clock", path); /* what the others' clocks were compared with */
    if (mg_io_write(file, "1000 0 0\n", 9, NULL)) abort();
    snprintf(clock_path, sizeof clock_path, "%s/22.clock", path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_spans *s;
    struct mg_span_query q = {.size = sizeof q};
    if (!*path) prepare();
    if (mg_io_write(clock_path, (const char *)data, bytes, NULL)) abort();
    if (mg_spans_open(path, &q, &s, NULL) || mg_spans_n_processes(s) != 2) abort();
    uint64_t n[2] = {0, 0}, last = 0, next[2] = {1, 1};
    for (const struct mg_span *p; (p = mg_spans_next(s)); last = p->begin_ns) {
        bool there = p->process == THERE;
        if (p->begin_ns < last || p->end_ns < p->begin_ns) abort();
        if (!there && (p->begin_ns != 1000 + 100 * n[0] || p->correlation != next[0]++)) abort();
        n[there]++;
    }
    if (n[0] != SPANS || n[1] != SPANS) abort();
    struct mg_span_process other = mg_spans_process(s, 1);
    if (other.clock == MG_TRACE_MESSAGES && other.clock_uncertainty_ns == MG_SPAN_NONE) abort();
    mg_spans_close(s);
    return 0;
}
