/* Do the counts of a launch that ran to its end fit together? A program that writes past its own memory may hit the
 * words in which its launch is counted; such counts are told as none. What is asked, of every block b of a function:
 *
 *     entries(b) <= threads (where the kernel begins) + entries of all blocks that may go on to b
 *     entries(b) >= threads (there) + entries of the blocks that can go on to b alone
 *     entries(b) <= entries of all blocks b may go on to, unless lanes may leave in b
 *     the kernel is left as often as it is entered;  warps <= threads <= 32 * warps
 *
 * Holds for every device and every way of counting; the counters' own solution is stricter (count/solve.c). */
#include <stdlib.h>
#include <string.h>

#include "count/counters.h"

#define MOST ((uint64_t)1 << 62) /* what no launch counts: a sum that went below 0 */

static uint64_t volume(const uint32_t d[3])
{
    return (uint64_t)d[0] * d[1] * d[2];
}

void mg_counters_launched(enum mg_count_scope scope, uint64_t cta, uint32_t warp, const struct mg_counter_launch *g,
                          uint64_t *threads, uint64_t *warps)
{
    uint64_t block = volume(g->block), per_cta = (block + 31) / 32, times = g->times ? g->times : 1;
    *threads = volume(g->grid) * block;
    *warps = volume(g->grid) * per_cta;
    if (scope != MG_COUNT_FULL) {
        bool is_there = cta < volume(g->grid) && (scope == MG_COUNT_CTA || warp < per_cta);
        *threads = !is_there ? 0 : scope == MG_COUNT_CTA ? block : MG_MIN(block - 32ull * warp, 32ull);
        *warps = !is_there ? 0 : scope == MG_COUNT_CTA ? per_cta : 1;
    }
    *threads *= times;
    *warps *= times;
}

/* May lanes leave the function in the block, or in a function that it calls? */
static bool may_leave(const struct mg_site_op *ops, uint32_t n)
{
    static const char *const names[] = {"ret", "exit", "trap", "brkpt", "call"};
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < MG_COUNT_OF(names); k++) {
            size_t bytes = strlen(names[k]);
            if (!strncmp(ops[i].op, names[k], bytes) && (!ops[i].op[bytes] || ops[i].op[bytes] == '.')) return true;
        }
    return false;
}

struct mg_fit_block mg_fit_block_of(const uint32_t *succs, uint32_t n_succs, const struct mg_site_op *ops,
                                    uint32_t n_ops, bool begins)
{
    return (struct mg_fit_block){
        .succs = succs, .n_succs = n_succs, .begins = begins, .leaves = !n_succs || may_leave(ops, n_ops)};
}

struct sums {
    unsigned __int128 least, most, behind;
}; /* of entries: at least, at most, of what follows */

static bool is_again(const uint32_t *succs, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (succs[k] == succs[i]) return true;
    return false;
}

static bool has_one_way(const struct mg_fit_block *b)
{
    for (uint32_t i = 1; i < b->n_succs; i++)
        if (b->succs[i] != b->succs[0]) return false;
    return b->n_succs && !b->leaves;
}

static void add_flows(const struct mg_fit *f, const uint64_t *entries, struct sums *s)
{
    for (uint32_t b = 0; b < f->n; b++) {
        const struct mg_fit_block *k = &f->blocks[b];
        bool one = has_one_way(k);
        for (uint32_t i = 0; i < k->n_succs; i++) {
            if (is_again(k->succs, i)) continue;
            s[k->succs[i]].most += entries[b];
            if (one) s[k->succs[i]].least += entries[b];
            s[b].behind += entries[k->succs[i]];
        }
    }
}

static bool flows_fit(const struct mg_fit *f, uint64_t launched, const uint64_t *entries)
{
    struct sums *s = mg_xcalloc((size_t)f->n + 1, sizeof *s);
    unsigned __int128 left = 0, surely = 0; /* by lanes that leave the kernel: at most, at least */
    bool fits = true, in_kernel = true;
    add_flows(f, entries, s);
    for (uint32_t b = 0; b < f->n && fits; b++) {
        const struct mg_fit_block *k = &f->blocks[b];
        in_kernel = in_kernel && (!b || !k->begins);
        unsigned __int128 more = b ? 0 : launched;
        if (k->leaves && in_kernel) left += entries[b];
        if (!k->n_succs && in_kernel) surely += entries[b];
        fits = entries[b] < MOST && entries[b] >= s[b].least + more && (k->leaves || entries[b] <= s[b].behind) &&
               ((b && k->begins) || entries[b] <= s[b].most + more);
    }
    free(s);
    return fits && left >= launched && surely <= launched;
}

bool mg_counts_fit(const struct mg_fit *f, uint64_t launched, const uint64_t *threads, const uint64_t *warps)
{
    for (uint32_t b = 0; threads && warps && b < f->n; b++)
        if (warps[b] > threads[b] || threads[b] > (unsigned __int128)32 * warps[b]) return false;
    return !threads || !f->n || flows_fit(f, launched, threads);
}
