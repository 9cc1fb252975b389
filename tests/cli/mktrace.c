/* Writes a trace through the library, for tests of `margay trace`: mktrace DIR CHUNKS RECORDS: so many chunks of so
 * many records; record i of all is at time 1000 + i, of launch i / 10 and CTA i % 10. With a fourth argument "lose"
 * one record more is lost, with another one the process is killed in place of closing the trace. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "trace/writer.h"

static const struct mg_trace_field fields[] = {{"time", MG_TRACE_time, MG_TRACE_KEY_TIME},
                                               {"launch", MG_TRACE_u32, MG_TRACE_KEY_LAUNCH},
                                               {"cta", MG_TRACE_u32, MG_TRACE_KEY_CTA},
                                               {"name", MG_TRACE_name}};
static const struct mg_trace_kind step = MG_TRACE_KIND("step", fields), other = MG_TRACE_KIND("other", fields);

int main(int argc, char **argv)
{
    struct mg_trace_opts o = {.size = sizeof o, .dir = argv[1], .rank = -1, .flush_ms = 100000};
    struct mg_trace_writer *w;
    if (argc < 4 || mg_trace_open(&o, &w, NULL)) return 1;
    uint32_t chunks = (uint32_t)atoi(argv[2]), each = (uint32_t)atoi(argv[3]),
             kinds[] = {mg_trace_kind_add(w, &step), mg_trace_kind_add(w, &other)};
    for (uint32_t i = 0; i < chunks * each; i++) {
        struct {
            uint64_t time;
            uint32_t launch, cta, name;
        } __attribute__((packed)) r = {1000 + i, i / 10, i % 10, mg_trace_name(w, i & 1 ? "odd" : "even")};
        if (!mg_trace_put(mg_trace_thread(w), kinds[i % 5 == 0], &r, sizeof r, NULL, 0)) return 1;
        if ((i + 1) % each == 0) mg_trace_flush(w, 10000);
    }
    if (argc > 4 && !strcmp(argv[4], "lose")) { /* a record that is not one of its kind */
        uint8_t part[4] = {0};
        mg_trace_put(mg_trace_thread(w), kinds[0], part, sizeof part, NULL, 0);
    } else if (argc > 4) {
        raise(SIGKILL);
    }
    mg_trace_close(w);
    return 0;
}
