/* The model of caches as JSON and text. */
#include <inttypes.h>
#include <stdlib.h>

#include "study/cache.h"

enum { LINES = 12 /* of the source, in the text */, NAME = 40 };

const char *const *mg_cache_assumptions(void)
{
    static const char *const texts[] = {
        "lines of 128 bytes in 4 sectors of 32 that are fetched alone; an access of a warp asks for each of its "
        "sectors once",
        "L1: one for each multiprocessor, LRU, fully associative, empty when a launch begins, its size less the "
        "dynamic shared memory of resident CTAs",
        "resident CTAs: as many as have 2048 threads, 32 at most; static shared memory, registers and the driver's "
        "carve-out are not known",
        "stores write through; whether they make room for their line is not known: both are computed",
        "atomics and loads with .cg, .cv, volatile, relaxed or acquire pass L1 by; local memory, constants and "
        "textures are not in the trace",
        "orders on a multiprocessor: as traced, warps in turn, CTA after CTA; the device's own order is another one: "
        "hits are the least and the most",
        "one L2 for all, LRU, writes allocate; its multiprocessors in turn; most: fully associative; least: half the "
        "size, 16-way, since what "
        "both halves of the chip read may be held twice and how addresses are spread is secret",
        "copies of the host do not pass through L2, and it keeps its lines from launch to launch",
        "the trace is of PTX: what the assembler merges, moves or drops is not known",
        NULL};
    return texts;
}

static void print_span(struct mg_json *j, const char *key, struct mg_cache_span s)
{
    mg_json_key(j, key);
    mg_json_arr(j);
    mg_json_u64(j, s.least);
    mg_json_u64(j, s.most);
    mg_json_end(j, ']');
}

static void print_sizes(struct mg_json *j, const struct mg_cache_span *sizes)
{
    mg_json_key(j, "sizes");
    mg_json_arr(j);
    for (uint32_t i = 0; i < MG_CACHE_SIZES; i++) {
        mg_json_obj(j);
        mg_json_key_u64(j, "bytes", mg_cache_size(i));
        print_span(j, "hits", sizes[i]);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void print_kernel(struct mg_json *j, const struct mg_cache_kernel *k)
{
    const struct mg_cache_counts *c = &k->counts;
    mg_json_obj(j);
    mg_json_key_str(j, "kernel", k->name);
    mg_json_key_u64(j, "launches", k->launches);
    mg_json_key_u64(j, "load_requests", c->load_requests);
    mg_json_key_u64(j, "store_requests", c->store_requests);
    mg_json_key_u64(j, "atomic_requests", c->atomic_requests);
    mg_json_key_u64(j, "load_sectors", c->load_sectors);
    mg_json_key_u64(j, "store_sectors", c->store_sectors);
    mg_json_key_u64(j, "atomic_sectors", c->atomic_sectors);
    mg_json_key_u64(j, "first_sectors", c->first_sectors);
    print_span(j, "l1_hits", c->l1_hits);
    print_sizes(j, k->sizes);
    mg_json_end(j, '}');
}

void mg_cache_print_json(const struct mg_cache_result *r, const struct mg_comm_source *source, struct mg_json *j)
{
    mg_json_obj(j);
    mg_json_key_bool(j, "estimate", true);
    mg_json_key(j, "assumptions");
    mg_json_arr(j);
    for (const char *const *text = mg_cache_assumptions(); *text; text++) mg_json_str(j, *text);
    mg_json_end(j, ']');
    mg_json_key_u64(j, "l1_bytes", r->opts.l1_bytes);
    mg_json_key_u64(j, "l2_bytes", r->opts.l2_bytes);
    mg_json_key_bool(j, "knows_multiprocessors", r->knows_sm);
    mg_json_key_u64(j, "launches", source->launches);
    mg_json_key_u64(j, "untraced", source->untraced);
    mg_json_key_bool(j, "partial", source->is_partial);
    mg_json_key_u64(j, "damaged", source->damaged);
    mg_comm_print_unseen(source, j);
    mg_json_key(j, "kernels");
    mg_json_arr(j);
    for (uint32_t i = 0; i < r->kernels.n; i++) print_kernel(j, &r->kernels.at[i]);
    mg_json_end(j, ']');
    mg_json_key(j, "l2");
    mg_json_obj(j);
    mg_json_key_u64(j, "sectors", r->l2.sectors);
    mg_json_key_u64(j, "first_sectors", r->l2.first);
    mg_json_key_u64(j, "lines", r->lines);
    print_span(j, "hits", r->l2.hits);
    mg_json_key_u64(j, "read_sectors", r->l2.load_sectors);
    print_span(j, "read_hits", r->l2.load_hits);
    print_sizes(j, r->l2.sizes);
    mg_json_end(j, '}');
    mg_json_key(j, "sites");
    mg_json_arr(j);
    for (uint32_t i = 0; i < r->sites.n; i++) {
        const struct mg_cache_site *s = &r->sites.at[i];
        mg_json_obj(j);
        mg_json_key_str(j, "kernel", s->kernel);
        mg_json_key_str(j, "file", s->file);
        mg_json_key_u64_if(j, "line", s->line != 0, s->line);
        mg_json_key_u64(j, "ptx_line", s->ptx_line);
        mg_json_key_str(j, "op", s->op);
        mg_json_key_u64(j, "requests", s->requests);
        mg_json_key_u64(j, "sectors", s->sectors);
        mg_json_key_u64(j, "l1_hits", s->hits);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

/* ---- text --------------------------------------------------------------------------------------------- */

static double percent(uint64_t part, uint64_t of)
{
    return of ? 100.0 * (double)part / (double)of : 0;
}

static void print_kernels(const struct mg_cache_result *r, struct mg_buf *out)
{
    mg_buf_printf(out, "%10s %14s %14s %14s %14s %17s  kernel\n", "launches", "load sectors", "store sectors",
                  "atomics", "first touched", "L1 hits of loads");
    for (uint32_t i = 0; i < r->kernels.n; i++) {
        const struct mg_cache_kernel *k = &r->kernels.at[i];
        const struct mg_cache_counts *c = &k->counts;
        mg_buf_printf(
            out, "%10" PRIu64 " %14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %6.1f - %6.1f %%  %.*s\n",
            k->launches, c->load_sectors, c->store_sectors, c->atomic_sectors, c->first_sectors,
            percent(c->l1_hits.least, c->load_sectors), percent(c->l1_hits.most, c->load_sectors), NAME, k->name);
    }
}

static void print_by_size(const struct mg_cache_result *r, struct mg_buf *out)
{
    mg_buf_adds(out, "\nhits by size, % of sectors: L1 of the kernel with most load sectors, L2\n");
    const struct mg_cache_kernel *k = &r->kernels.at[0];
    for (uint32_t i = 1; i < r->kernels.n; i++)
        if (r->kernels.at[i].counts.load_sectors > k->counts.load_sectors) k = &r->kernels.at[i];
    for (uint32_t i = 0; i < MG_CACHE_SIZES; i += 2)
        mg_buf_printf(out, "  %8" PRIu64 " KiB  %6.1f - %6.1f %%  %6.1f %%\n", mg_cache_size(i) / 1024,
                      percent(k->sizes[i].least, k->counts.load_sectors),
                      percent(k->sizes[i].most, k->counts.load_sectors), percent(r->l2.sizes[i].most, r->l2.sectors));
}

static int more_misses(const void *a, const void *b)
{
    const struct mg_cache_site *x = *(const struct mg_cache_site *const *)a,
                               *y = *(const struct mg_cache_site *const *)b;
    uint64_t m = x->sectors - x->hits, n = y->sectors - y->hits;
    if (m != n) return m > n ? -1 : 1;
    return x->ptx_line < y->ptx_line ? -1 : x->ptx_line > y->ptx_line;
}

static void print_sites(const struct mg_cache_result *r, struct mg_buf *out)
{
    const struct mg_cache_site **sites = mg_xmalloc(((size_t)r->sites.n + 1) * sizeof *sites);
    for (uint32_t i = 0; i < r->sites.n; i++) sites[i] = &r->sites.at[i];
    qsort(sites, r->sites.n, sizeof *sites, more_misses);
    mg_buf_printf(out, "\naccesses with most sectors beyond L1 (as traced)\n%14s %9s  place\n", "sectors", "L1 hits");
    for (uint32_t i = 0; i < r->sites.n && i < LINES; i++) {
        const struct mg_cache_site *s = sites[i];
        mg_buf_printf(out, "%14" PRIu64 " %7.1f %%  ", s->sectors, percent(s->hits, s->sectors));
        if (s->line)
            mg_buf_printf(out, "%s:%lu", s->file, (unsigned long)s->line);
        else
            mg_buf_printf(out, "PTX line %lu", (unsigned long)s->ptx_line);
        mg_buf_printf(out, " %s (%.*s)\n", s->op, NAME, s->kernel);
    }
    free(sites);
}

void mg_cache_print_text(const struct mg_cache_result *r, const struct mg_comm_source *source, struct mg_buf *out)
{
    mg_buf_printf(
        out, "caches, a model: L1 of %" PRIu64 " KiB a multiprocessor with its shared memory, L2 of %" PRIu64 " MiB\n",
        r->opts.l1_bytes / 1024, r->opts.l2_bytes >> 20);
    if (!r->kernels.n) {
        mg_buf_adds(out, "no launch with accesses is in the trace\n");
        return;
    }
    print_kernels(r, out);
    mg_buf_printf(
        out, "L2: %" PRIu64 " sectors, %" PRIu64 " touched for the first time, hits %.1f - %.1f %%, working set ",
        r->l2.sectors, r->l2.first, percent(r->l2.hits.least, r->l2.sectors), percent(r->l2.hits.most, r->l2.sectors));
    mg_buf_printf(out, "%.1f KiB\n", (double)r->lines / 8);
    print_by_size(r, out);
    print_sites(r, out);
    if (source->untraced)
        mg_buf_printf(out, "warning: %" PRIu64 " of %" PRIu64 " launches ran native and are not in the model\n",
                      source->untraced, source->launches);
    if (source->is_partial) mg_buf_adds(out, "warning: the trace leaves accesses out\n");
    if (source->unseen)
        mg_buf_printf(out, "warning: not looked at, run by %" PRIu64 " lanes: %s\n", source->unseen,
                      source->unseen_ops);
    if (source->damaged)
        mg_buf_printf(out, "warning: %" PRIu64 " damaged pieces of the trace are left out\n", source->damaged);
    mg_buf_adds(out, "\nassumptions\n");
    for (const char *const *text = mg_cache_assumptions(); *text; text++) mg_buf_printf(out, "  - %s\n", *text);
}
