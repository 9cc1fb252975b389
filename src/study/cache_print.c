/* The model of caches as JSON and text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "study/cache.h"

enum { LINES = 12 /* of the source and buffers, in the text */, NAME = 60, KINDS = 3 };
static const char *const kinds[KINDS] = {"load", "store", "atomic"}; /* enum mg_access_kind */

const char *const *mg_cache_assumptions(void)
{
    static const char *const texts[] = {
        "lines of 128 bytes in 4 sectors of 32, of which L1 fetches each alone; an access of a warp asks for each of its "
        "sectors once",
        "L1: one for each multiprocessor, LRU, fully associative, empty when a launch begins, its size less the "
        "dynamic shared memory of resident CTAs",
        "resident CTAs: as many as have 2048 threads, 32 at most; static shared memory, registers and the driver's "
        "carve-out are not known",
        "stores write through; whether they make room for their line is not known: both are computed",
        "atomics and loads with .cg, .cv, volatile, relaxed or acquire (beyond a CTA) pass L1 by; local memory, constants "
        "and textures are not in the trace",
        "an acquire beyond a CTA empties its multiprocessor's L1; so do fences, but these are not in the trace: behind "
        "one, L1 hits are too many",
        "orders on a multiprocessor: as traced, warps in turn, CTA after CTA, interleavings of warps at random by "
        "their seeds. The device's own order is another one: L1 figures are the least and the most of each launch, "
        "L2 sees the traced order",
        "a line belongs to the buffer of the first lane that reaches it",
        "one L2 for all, several devices of a program included",
        "L2: LRU, writes allocate, multiprocessors in turn, an access each; each figure is of the order as traced",
        "L2 hits, most: what any of three machines holds. The first: one cache, fully associative; a read brings the 64 "
        "bytes that its sector lies in (CU_LIMIT_MAX_L2_FETCH_GRANULARITY's default). Where it misses all 64 bytes, and "
        "another load of the launch asks for half of them, that one may come first: one sector more",
        "L2 hits, least: what all three hold. The second: half the size in 16 ways, since what both halves of the chip "
        "read may be held twice. Sectors are fetched alone; a read finds only what its own multiprocessor has read since "
        "it was written. What others read may lie in the other half, or be on its way. A write finds what was written. "
        "If the trace has no multiprocessors, no read is sure",
        "L2 hits, guess: the third: two halves, each of half the size in 16 ways. A hash tells which half pairs of "
        "multiprocessors read through, and which is the home of a line, by its number in the order of first touches. 64 "
        "bytes that a read misses in its half come from the home, and both hold them then. Readers of the home's half "
        "find them after as many accesses of each multiprocessor as warps reside there. Writes go to the home and take "
        "the other half's copy away",
        "hits of an L2 of each size: one cache, fully associative; least: sectors are fetched alone; most: 64 bytes are",
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

static void print_part(struct mg_json *j, const struct mg_cache_part *p)
{
    print_span(j, "l1_hit_range", p->l1_hits);
    print_span(j, "l1_first", p->l1_first);
    print_span(j, "l1_capacity", p->l1_capacity);
    mg_json_key_u64(j, "l2_sectors", p->l2_sectors);
    mg_json_key_u64(j, "l2_first", p->l2_first);
    print_span(j, "l2_hits", p->l2_hits);
    mg_json_key_u64(j, "l2_hits_guess", p->l2_guess);
    print_span(j, "l2_capacity", p->l2_capacity);
}

static void print_site(struct mg_json *j, const struct mg_cache_site *s)
{
    mg_json_obj(j);
    mg_json_key_str(j, "kernel", s->kernel);
    mg_json_key_str(j, "file", s->file);
    mg_json_key_u64_if(j, "line", s->line != 0, s->line);
    mg_json_key_u64(j, "ptx_line", s->ptx_line);
    mg_json_key_str(j, "op", s->op);
    mg_json_key_u64(j, "requests", s->part.requests[s->kind]);
    mg_json_key_u64(j, "sectors", s->part.sectors[s->kind]);
    mg_json_key_u64(j, "l1_hits", s->hits);
    mg_json_key_str(j, "kind", kinds[s->kind]);
    mg_json_key_str(j, "buffer", s->buffer);
    print_part(j, &s->part);
    mg_json_end(j, '}');
}

static void print_buffer(struct mg_json *j, const struct mg_cache_buffer *b)
{
    bool known = b->number != MG_CACHE_NO_ALLOCATION;
    mg_json_obj(j);
    mg_json_key_u64_if(j, "allocation", known, b->number);
    mg_json_key_u64_if(j, "bytes", known, b->bytes);
    mg_json_key_str(j, "call", b->call);
    mg_json_key_str(j, "name", b->name);
    for (int i = 0; i < 2 * KINDS; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s_%s", kinds[i % KINDS], i < KINDS ? "requests" : "sectors");
        mg_json_key_u64(j, key, i < KINDS ? b->part.requests[i] : b->part.sectors[i - KINDS]);
    }
    print_part(j, &b->part);
    mg_json_end(j, '}');
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
    mg_json_key(j, "seeds");
    mg_json_arr(j);
    for (uint64_t i = 0; i < r->opts.interleavings; i++) mg_json_u64(j, r->opts.seed + i);
    mg_json_end(j, ']');
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
    mg_json_key_u64(j, "hits_guess", r->l2.guess);
    mg_json_key_u64(j, "read_sectors", r->l2.load_sectors);
    print_span(j, "read_hits", r->l2.load_hits);
    mg_json_key_u64(j, "read_hits_guess", r->l2.load_guess);
    print_sizes(j, r->l2.sizes);
    mg_json_end(j, '}');
    mg_json_key(j, "sites");
    mg_json_arr(j);
    for (uint32_t i = 0; i < r->sites.n; i++) print_site(j, &r->sites.at[i]);
    mg_json_end(j, ']');
    mg_json_key(j, "buffers");
    mg_json_arr(j);
    for (uint32_t i = 0; i < r->buffers.n; i++) print_buffer(j, &r->buffers.at[i]);
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

/* ---- text --------------------------------------------------------------------------------------------- */

static double percent(uint64_t part, uint64_t of)
{
    return of ? 100.0 * (double)part / (double)of : 0;
}

/* Of nothing there is no share. */
static void print_shares(struct mg_buf *out, struct mg_cache_span s, uint64_t of)
{
    if (of)
        mg_buf_printf(out, " %6.1f - %5.1f %%", percent(s.least, of), percent(s.most, of));
    else
        mg_buf_printf(out, " %16s", "-");
}

/* The best guess between the bounds. */
static void print_guess(struct mg_buf *out, struct mg_cache_span s, uint64_t guess, uint64_t of)
{
    if (of)
        mg_buf_printf(out, " %5.1f - %5.1f - %5.1f %%", percent(s.least, of), percent(guess, of), percent(s.most, of));
    else
        mg_buf_printf(out, " %23s", "-");
}

static void print_more(struct mg_buf *out, uint32_t n, const char *what)
{
    if (n > LINES) mg_buf_printf(out, "  and %lu more %s: --csv FILE, --json\n", (unsigned long)(n - LINES), what);
}

static void print_kernels(const struct mg_cache_result *r, struct mg_buf *out)
{
    mg_buf_printf(out, "%10s %14s %14s %14s %14s %16s  kernel\n", "launches", "load sectors", "store sectors",
                  "atomics", "first touched", "L1 hits of loads");
    for (uint32_t i = 0; i < r->kernels.n; i++) {
        const struct mg_cache_kernel *k = &r->kernels.at[i];
        const struct mg_cache_counts *c = &k->counts;
        mg_buf_printf(out, "%10" PRIu64 " %14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %14" PRIu64, k->launches,
                      c->load_sectors, c->store_sectors, c->atomic_sectors, c->first_sectors);
        print_shares(out, c->l1_hits, c->load_sectors);
        mg_buf_adds(out, "  ");
        mg_demangle_add(out, k->name, SIZE_MAX);
        mg_buf_addc(out, '\n');
    }
}

static void print_by_size(const struct mg_cache_result *r, struct mg_buf *out)
{
    mg_buf_adds(out, "\nhits by size, % of sectors: L1 of the kernel with most load sectors, L2\n");
    const struct mg_cache_kernel *k = &r->kernels.at[0];
    for (uint32_t i = 1; i < r->kernels.n; i++)
        if (r->kernels.at[i].counts.load_sectors > k->counts.load_sectors) k = &r->kernels.at[i];
    for (uint32_t i = 0; i < MG_CACHE_SIZES; i += 2)
        mg_buf_printf(out, "  %8" PRIu64 " KiB  %6.1f - %6.1f %%  %6.1f - %6.1f %%\n", mg_cache_size(i) / 1024,
                      percent(k->sizes[i].least, k->counts.load_sectors),
                      percent(k->sizes[i].most, k->counts.load_sectors), percent(r->l2.sizes[i].least, r->l2.sectors),
                      percent(r->l2.sizes[i].most, r->l2.sectors));
}

/* Sectors that may go on to L2. */
static uint64_t beyond_l1(const struct mg_cache_part *p)
{
    return p->sectors[0] + p->sectors[1] + p->sectors[2] - p->l1_hits.least;
}

struct ranked { /* a row of the result, by what may go on to L2 */
    uint64_t beyond, then;
    uint32_t ix;
};

static int more_misses(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->beyond != y->beyond) return x->beyond > y->beyond ? -1 : 1;
    if (x->then != y->then) return x->then < y->then ? -1 : 1;
    return x->ix < y->ix ? -1 : x->ix > y->ix;
}

static void print_part_text(struct mg_buf *out, const struct mg_cache_part *p)
{
    uint64_t loads = p->sectors[MG_ACCESS_LOAD], all = loads + p->sectors[1] + p->sectors[2];
    mg_buf_printf(out, "%14" PRIu64, all);
    print_shares(out, p->l1_hits, loads);
    if (loads)
        mg_buf_printf(out, " %14" PRIu64 " - %-12" PRIu64, p->l1_capacity.least, p->l1_capacity.most);
    else
        mg_buf_printf(out, " %29s", "-");
    print_guess(out, p->l2_hits, p->l2_guess, p->l2_sectors);
    mg_buf_printf(out, " %12" PRIu64 "\n", p->l2_first);
}

static void print_head(struct mg_buf *out, const char *title, const char *what)
{
    mg_buf_printf(out, "\n%s: %s, below it\n%14s %16s %29s %23s %12s\n", title, what, "sectors", "L1 hits of loads",
                  "L1 capacity misses", "L2 least - guess - most", "L2 first");
}

static void print_sites(const struct mg_cache_result *r, struct mg_buf *out)
{
    struct ranked *rows = mg_xmalloc(((size_t)r->sites.n + 1) * sizeof *rows);
    for (uint32_t i = 0; i < r->sites.n; i++)
        rows[i] = (struct ranked){beyond_l1(&r->sites.at[i].part), r->sites.at[i].ptx_line, i};
    qsort(rows, r->sites.n, sizeof *rows, more_misses);
    print_head(out, "accesses with most sectors beyond L1", "place");
    for (uint32_t i = 0; i < r->sites.n && i < LINES; i++) {
        const struct mg_cache_site *s = &r->sites.at[rows[i].ix];
        mg_buf_adds(out, "  ");
        if (s->line) mg_buf_printf(out, "%s:%lu, ", s->file, (unsigned long)s->line);
        mg_buf_printf(out, "PTX line %lu", (unsigned long)s->ptx_line);
        mg_buf_printf(out, " %s (", s->op);
        mg_demangle_add(out, s->kernel, NAME);
        mg_buf_adds(out, ")\n");
        print_part_text(out, &s->part);
    }
    print_more(out, r->sites.n, "accesses");
    free(rows);
}

static void print_buffers(const struct mg_cache_result *r, struct mg_buf *out)
{
    struct ranked *rows = mg_xmalloc(((size_t)r->buffers.n + 1) * sizeof *rows);
    for (uint32_t i = 0; i < r->buffers.n; i++) rows[i] = (struct ranked){beyond_l1(&r->buffers.at[i].part), 0, i};
    qsort(rows, r->buffers.n, sizeof *rows, more_misses);
    print_head(out, "buffers with most sectors beyond L1", "buffer");
    for (uint32_t i = 0; i < r->buffers.n && i < LINES; i++) {
        const struct mg_cache_buffer *b = &r->buffers.at[rows[i].ix];
        mg_buf_adds(out, "  ");
        if (b->number != MG_CACHE_NO_ALLOCATION)
            mg_buf_printf(out, "allocation %" PRIu64 ", %" PRIu64 " bytes: ", b->number, b->bytes);
        mg_buf_printf(out, "%s\n", b->name ? b->name : "(no name)");
        print_part_text(out, &b->part);
    }
    print_more(out, r->buffers.n, "buffers");
    free(rows);
}

/* ---- CSV ---------------------------------------------------------------------------------------------- */

static void add_cell(struct mg_buf *out, const char *text)
{
    mg_buf_addc(out, ',');
    if (!text || !strpbrk(text, ",\"\n")) {
        mg_buf_adds(out, text ? text : "");
        return;
    }
    mg_buf_addc(out, '"');
    for (; *text; text++) {
        if (*text == '"') mg_buf_addc(out, '"');
        mg_buf_addc(out, *text);
    }
    mg_buf_addc(out, '"');
}

static void add_part(struct mg_buf *out, const struct mg_cache_part *p)
{
    const struct mg_cache_span spans[] = {p->l1_hits, p->l1_first, p->l1_capacity, p->l2_hits, p->l2_capacity};
    for (int i = 0; i < KINDS; i++) mg_buf_printf(out, ",%" PRIu64 ",%" PRIu64, p->requests[i], p->sectors[i]);
    mg_buf_printf(out, ",%" PRIu64 ",%" PRIu64, p->l2_sectors, p->l2_first);
    for (size_t i = 0; i < MG_COUNT_OF(spans); i++)
        mg_buf_printf(out, ",%" PRIu64 ",%" PRIu64, spans[i].least, spans[i].most);
    mg_buf_printf(out, ",%" PRIu64 "\n", p->l2_guess);
}

void mg_cache_print_csv(const struct mg_cache_result *r, struct mg_buf *out)
{
    mg_buf_adds(out, "row,kernel,file,line,ptx_line,op,buffer,allocation,bytes");
    for (int i = 0; i < KINDS; i++) mg_buf_printf(out, ",%s_requests,%s_sectors", kinds[i], kinds[i]);
    mg_buf_adds(out, ",l2_sectors,l2_first,l1_hits_least,l1_hits_most,l1_first_least,l1_first_most,l1_capacity_least,"
                     "l1_capacity_most,l2_hits_least,l2_hits_most,l2_capacity_least,l2_capacity_most,l2_hits_guess\n");
    for (uint32_t i = 0; i < r->sites.n; i++) {
        const struct mg_cache_site *s = &r->sites.at[i];
        mg_buf_adds(out, "access");
        add_cell(out, s->kernel);
        add_cell(out, s->file);
        mg_buf_printf(out, ",%lu,%lu", (unsigned long)s->line, (unsigned long)s->ptx_line);
        add_cell(out, s->op);
        add_cell(out, s->buffer);
        mg_buf_adds(out, ",,");
        add_part(out, &s->part);
    }
    for (uint32_t i = 0; i < r->buffers.n; i++) {
        const struct mg_cache_buffer *b = &r->buffers.at[i];
        mg_buf_adds(out, "buffer,,,,,");
        add_cell(out, b->name);
        if (b->number != MG_CACHE_NO_ALLOCATION)
            mg_buf_printf(out, ",%" PRIu64 ",%" PRIu64, b->number, b->bytes);
        else
            mg_buf_adds(out, ",,");
        add_part(out, &b->part);
    }
}

/* ---- all ---------------------------------------------------------------------------------------------- */

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
    mg_buf_printf(out, "L2: %" PRIu64 " sectors, %" PRIu64 " touched for the first time,\n    hits", r->l2.sectors,
                  r->l2.first);
    print_guess(out, r->l2.hits, r->l2.guess, r->l2.sectors);
    mg_buf_adds(out, " (the middle one: a guess), working set ");
    mg_buf_printf(out, "%.1f KiB\n", (double)r->lines / 8);
    print_by_size(r, out);
    print_buffers(r, out);
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
    if (r->opts.interleavings)
        mg_buf_printf(out, "\ninterleavings at random: seeds %" PRIu64 " to %" PRIu64 "\n", r->opts.seed,
                      r->opts.seed + r->opts.interleavings - 1);
    mg_buf_adds(out, "\nassumptions\n");
    for (const char *const *text = mg_cache_assumptions(); *text; text++) mg_buf_printf(out, "  - %s\n", *text);
}
