/* Front-end speed: parse, CFG of every function and print of one PTX text on one core.
 *   bench-ptx FILE [REPEATS]     one line of figures on stdout
 * Peak memory is that of the whole process, the text it read included. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "analysis/analysis.h"
#include "base/io.h"
#include "ptx/ptx.h"

struct times {
    uint64_t parse_ns, cfg_ns, print_ns;
};

static uint64_t cpu_ns(void) /* of this process: other load on the machine does not show */
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t total(const struct times *t)
{
    return t->parse_ns + t->cfg_ns + t->print_ns;
}

static bool measure(const char *text, size_t bytes, struct times *t, uint64_t *insts, uint64_t *blocks, size_t *printed)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_module *m;
    struct mg_buf out = MG_BUF_INIT;
    uint64_t start = cpu_ns();
    if (mg_ptx_parse(text, bytes, "bench", &m, &d)) {
        fprintf(stderr, "bench-ptx: %s\n", mg_diag_first(&d, MG_ERR_INPUT));
        return false;
    }
    uint64_t parsed = cpu_ns();
    *blocks = 0;
    for (mg_id f = 1; f < m->funcs.n; f++) {
        if (!m->funcs.at[f].defined) continue;
        struct mg_cfg *c = mg_cfg_new(m, f);
        *blocks += c->n_blocks;
        mg_cfg_free(c);
    }
    uint64_t graphed = cpu_ns();
    mg_ptx_print(m, &out);
    uint64_t end = cpu_ns();
    *t = (struct times){parsed - start, graphed - parsed, end - graphed};
    *insts = m->n_insts;
    *printed = out.n;
    mg_buf_release(&out);
    mg_module_free(m);
    return true;
}

int main(int argc, char **argv)
{
    char *text;
    size_t bytes, printed = 0;
    uint64_t insts = 0, blocks = 0;
    struct times best = {0}, t;
    struct rusage use;
    int repeats = argc > 2 ? atoi(argv[2]) : 1;
    if (argc < 2 || mg_io_read(argv[1], &text, &bytes, NULL)) return 2;
    for (int i = 0; i < repeats; i++) {
        if (!measure(text, bytes, &t, &insts, &blocks, &printed)) return 3;
        if (!i || total(&t) < total(&best)) best = t;
    }
    getrusage(RUSAGE_SELF, &use);
    printf(
        "%zu bytes, %llu instructions, %llu blocks: parse %.1f ms, cfg %.1f ms, print %.1f ms, total_ns %llu, %.1f MB/s, peak %.1f x the text\n",
        bytes, (unsigned long long)insts, (unsigned long long)blocks, best.parse_ns / 1e6, best.cfg_ns / 1e6,
        best.print_ns / 1e6, (unsigned long long)total(&best), bytes * 1e3 / total(&best),
        use.ru_maxrss * 1024.0 / bytes);
    free(text);
    return 0;
}
