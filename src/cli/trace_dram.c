#include "cli/trace_dram.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "export/accesses.h"
#include "study/cache.h"

static const struct mg_dram_format formats[] = {
    {"ramulator2", "misses of the L2 model for Ramulator 2: LD or ST and an address"},
    {"dramsim3", "misses of the L2 model for DRAMsim3: address, READ or WRITE, and their order as cycles"},
};

const struct mg_dram_format *mg_dram_format_at(uint32_t ix)
{
    return ix < MG_COUNT_OF(formats) ? &formats[ix] : NULL;
}

const struct mg_dram_format *mg_dram_format_find(const char *name)
{
    for (size_t i = 0; i < MG_COUNT_OF(formats); i++)
        if (!strcmp(formats[i].name, name)) return &formats[i];
    return NULL;
}

struct writing {
    FILE *f;
    bool ramulator;
    uint64_t reads, writes;
};

static void put(void *user, uint64_t address, bool write)
{
    struct writing *w = user;
    if (w->ramulator)
        fprintf(w->f, "%s 0x%" PRIx64 "\n", write ? "ST" : "LD", address);
    else
        fprintf(w->f, "0x%" PRIX64 " %s %" PRIu64 "\n", address, write ? "WRITE" : "READ", w->reads + w->writes);
    *(write ? &w->writes : &w->reads) += 1;
}

int mg_trace_convert_dram(struct mg_trace_reader *r, uint32_t file, const struct mg_dram_format *f,
                          const struct mg_convert_wish *w, struct mg_diag *d)
{
    struct mg_io_part part;
    struct mg_comm_source source;
    if (mg_convert_create(&part, NULL, w->out, d)) return mg_cli_fail(d, MG_EXIT_INPUT);
    struct writing x = {.f = part.file, .ramulator = !strcmp(f->name, "ramulator2")};
    const struct mg_cache_opts o = {.size = sizeof o,
                                    .l1_bytes = w->l1_bytes,
                                    .l2_bytes = w->l2_bytes,
                                    .first = w->launches.first,
                                    .end = w->launches.last + 1,
                                    .memory = put,
                                    .user = &x};
    struct mg_cache *c = mg_cache_new(&o);
    enum mg_err err = mg_convert_finish(&part, mg_cache_feed(c, r, file, &source, d), d);
    mg_cache_free(c);
    if (err) return mg_cli_fail(d, MG_EXIT_INPUT);
    fprintf(stderr, "margay: %" PRIu64 " launches; %" PRIu64 " sectors read, %" PRIu64 " written, of 32 bytes\n",
            source.launches - source.untraced, x.reads, x.writes);
    fprintf(stderr,
            "margay: a model: L1 of %" PRIu64 " bytes, L2 of %" PRIu64 ", fully associative, LRU; what it holds "
            "at the end is not written; times are none\n",
            w->l1_bytes, w->l2_bytes);
    if (source.untraced)
        fprintf(stderr, "margay: %" PRIu64 " launches ran native: their accesses are not known\n", source.untraced);
    if (source.unseen)
        fprintf(stderr, "margay: not looked at, run by %" PRIu64 " lanes: %s\n", source.unseen, source.unseen_ops);
    if (source.is_partial)
        fprintf(stderr, "margay: the trace holds a part of the accesses: selected, sampled or dropped\n");
    if (source.damaged) fprintf(stderr, "margay: %" PRIu64 " chunks or records were left out\n", source.damaged);
    return source.damaged ? MG_EXIT_INPUT : MG_EXIT_OK;
}
