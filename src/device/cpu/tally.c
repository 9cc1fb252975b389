/* What inserted code counts (CPU_COUNT), told from how often compiled code passes it.
 *
 * Compiled code keeps an array of counts for each worker and function: at a site how many times all lanes of a warp
 * have passed, and for other passes how many lanes and how many times; a value is summed in eight parts. When the
 * worker is done with the launch the sums go to its cells (cpu_tally_flush). What all warps pass exactly once in a
 * region of whole-CTA code is not counted at all: regions are (cpu_start.always, cpu_start.rounds). */
#include "device/cpu/cpu.h"

#include <string.h>

#include "device/emu/cells.h"
#include "device/emu/request.h"

/* ---- requests ---------------------------------------------------------------------------------------------- */

enum { LINE = 128 };

/* Where in its line the first lane begins makes no difference to shared memory but for parts of a word. */
static uint32_t places_of(const struct cpu_inst *in)
{
    uint32_t period = in->space == MG_SPACE_shared ? 4 : in->space == MG_SPACE_const ? 1 : LINE;
    return MG_MAX(period / in->bytes, 1u);
}

static void add_request(struct cpu_func *f, uint32_t at)
{
    const struct cpu_inst *in = &f->insts[at];
    struct cpu_request r = {.at = at, .count = f->tally.n_counts, .n_places = places_of(in)};
    uint32_t case_words = CPU_CASES * sizeof(struct cpu_case) / sizeof(uint64_t);
    f->tally.n_counts += r.n_places + (cpu_is_placed(f, in) ? case_words : 0);
    f->tally.requests[f->tally.n_requests++] = r;
    f->tally.site_at[at] = f->tally.n_requests;
}

static void flush_request(const struct cpu_func *f, const struct cpu_request *r, struct emu_worker *wk, uint64_t key,
                          uint64_t n)
{
    const struct cpu_inst *in = &f->insts[r->at];
    const struct emu_request *what = f->fn->ops[r->at].ext;
    struct emu_looked x;
    uint64_t at[EMU_LANES];
    struct cpu_shape in_order = {.stride = in->bytes},
                     s = cpu_is_placed(f, in) ? f->regs[in->s[0] - 1].shape : in_order;
    uint64_t place = key << (64 - CPU_CASE_APART) >> (64 - CPU_CASE_APART + CPU_CASE_PLACE),
             apart = s.halves ? (uint64_t)((int64_t)key >> CPU_CASE_APART) : 0;
    for (uint32_t i = 0; i < EMU_LANES; i++) /* in the middle of memory */
        at[i] = (1u << 30) + place * in->bytes + (uint64_t)cpu_lane_offset(f, s, i) + (i < 16 ? 0 : apart);
    emu_request_look_base(what, at, (uint32_t)key, &x);
    emu_request_add(wk, what, &x, n);
}

static void flush_requests(const struct cpu_func *f, const uint64_t *counts, struct emu_worker *wk)
{
    for (uint32_t i = 0; i < f->tally.n_requests; i++) {
        const struct cpu_request *r = &f->tally.requests[i];
        const struct cpu_case *c = (const struct cpu_case *)(const void *)(counts + r->count + r->n_places);
        for (uint32_t k = 0; k < r->n_places; k++)
            if (counts[r->count + k])
                flush_request(f, r, wk, (uint64_t)k << CPU_CASE_PLACE | UINT32_MAX, counts[r->count + k]);
        for (uint32_t k = 0; k < CPU_CASES && cpu_is_placed(f, &f->insts[r->at]); k++)
            if (c[k].n) flush_request(f, r, wk, c[k].key, c[k].n);
    }
}

/* ---- values --------------------------------------------------------------------------------------------------- */

/* Keys come first: they are vectors, which lie at multiples of their size. */
static void add_carried(struct cpu_func *f, uint32_t at, uint32_t *keys)
{
    struct cpu_carried r = {.at = at, .count = *keys, .key_words = f->insts[at].bytes > 4 ? 2 * EMU_LANES : EMU_LANES};
    *keys += r.key_words + CPU_VALUE_WORDS;
    f->tally.carried[f->tally.n_carried++] = r;
    f->tally.site_at[at] = f->tally.n_carried;
}

static void flush_carried(const struct cpu_func *f, const uint64_t *counts, struct emu_worker *wk)
{
    for (uint32_t i = 0; i < f->tally.n_carried; i++) {
        const struct cpu_carried *r = &f->tally.carried[i];
        const uint64_t *keys = counts + r->count;
        const uint32_t *narrow = (const uint32_t *)(const void *)keys;
        bool wide = f->insts[r->at].bytes > 4;
        uint64_t most[2] = {0};
        for (uint32_t k = 0; k < 2 * EMU_LANES; k++)
            most[k / EMU_LANES] = MG_MAX(most[k / EMU_LANES], wide ? keys[k] : narrow[k]);
        uint64_t sums[MG_CR_SUMS];
        memcpy(sums, keys + r->key_words, sizeof sums);
        sums[MG_CR_VALUES] = EMU_LANES * sums[MG_CR_WARPS];
        emu_carried_add(wk, f->fn->ops[r->at].ext, sums, wide ? ~most[1] : (uint32_t)~most[1], most[0]);
    }
}

/* ---- sites --------------------------------------------------------------------------------------------------- */

void cpu_find_tallies(struct cpu_func *f)
{
    uint32_t n = 0, requests = 0, carried = 0,
             value = 0; /* values come first: they are vectors, which lie at multiples of their size */
    for (uint32_t i = 0; i < f->n_insts; i++) {
        n += f->insts[i].kind == CPU_COUNT;
        requests += f->insts[i].kind == CPU_REQUEST;
        carried += f->insts[i].kind == CPU_CARRIED;
        if (f->insts[i].kind == CPU_COUNT && f->insts[i].s[0]) f->tally.n_counts += CPU_VALUE_WORDS;
        if (f->insts[i].kind == CPU_CARRIED)
            f->tally.n_counts += (f->insts[i].bytes > 4 ? 2 : 1) * EMU_LANES + CPU_VALUE_WORDS;
    }
    if (!n && !requests && !carried) return;
    f->tally.carried = mg_arena_array(&f->arena, struct cpu_carried, carried);
    f->tally.sites = mg_arena_array(&f->arena, struct cpu_site, n);
    f->tally.requests = mg_arena_array(&f->arena, struct cpu_request, requests);
    f->tally.site_at = mg_arena_array(&f->arena, uint32_t, f->n_insts + 1);
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
            const struct cpu_inst *in = &f->insts[i];
            if (in->kind == CPU_REQUEST) add_request(f, i);
            if (in->kind == CPU_CARRIED) add_carried(f, i, &value);
            if (in->kind != CPU_COUNT) continue;
            struct cpu_site s = {.at = i, .block = b, .guarded = in->guard || in->s[0]};
            for (uint32_t k = 0; k < in->n_counts; k++) {
                s.lanes |= !in->counts[k].warps;
                s.times |= in->counts[k].warps != 0;
            }
            uint32_t *next = in->s[0] ? &value : &f->tally.n_counts;
            s.count = *next;
            *next += in->s[0] ? CPU_VALUE_WORDS : CPU_SITE_WORDS;
            f->tally.sites[f->tally.n++] = s;
            f->tally.site_at[i] = f->tally.n;
        }
    for (uint32_t i = 0; i < f->region.n_starts; i++) f->region.starts[i].rounds = f->tally.n_counts++;
}

/* Whole-CTA code has left the region where it stood in warp `own` at operation pc: what it was about to count for
 * all warps at once is due for those that were there. */
void cpu_tally_leave(const struct cpu_func *f, const struct cpu_call *call, uint64_t *counts)
{
    for (uint32_t i = 0; i < f->tally.n; i++)
        if (cpu_site_always(f, f->region.start_of[call->start] - 1, &f->tally.sites[i]))
            counts[f->tally.sites[i].count] += call->own + (call->pc > f->tally.sites[i].at);
}

static uint64_t passes(const struct cpu_func *f, const struct cpu_site *s, const uint64_t *counts)
{
    uint64_t n = counts[s->count];
    for (uint32_t k = 0; k < f->region.n_starts; k++)
        if (cpu_site_always(f, k, s)) n += f->region.n_warps * counts[f->region.starts[k].rounds];
    return n;
}

void cpu_tally_flush(const struct cpu_func *f, const uint64_t *counts, struct emu_worker *wk)
{
    flush_requests(f, counts, wk);
    flush_carried(f, counts, wk);
    for (uint32_t i = 0; i < f->tally.n; i++) {
        const struct cpu_site *s = &f->tally.sites[i];
        const struct cpu_inst *in = &f->insts[s->at];
        if (in->s[0]) {
            uint64_t sum = 0;
            for (uint32_t k = 0; k < CPU_VALUE_WORDS; k++) sum += counts[s->count + k];
            if (sum) emu_cell_add(wk, in->counts->cell, sum);
            continue;
        }
        uint64_t full = passes(f, s, counts), lanes = 32 * full + counts[s->count + 1],
                 times = full + counts[s->count + 2];
        for (uint32_t k = 0; k < in->n_counts; k++) {
            uint64_t n = (in->counts[k].warps ? times : lanes) * in->counts[k].n;
            if (n) emu_cell_add(wk, in->counts[k].cell, n);
        }
    }
}
