/* What inserted code counts (CPU_COUNT), told from how often compiled code passes it.
 *
 * Compiled code keeps an array of counts for each worker and function: at a site how many times all lanes of a warp
 * have passed, and for other passes how many lanes and how many times; a value is summed in eight parts. When the
 * worker is done with the launch the sums go to its cells (cpu_tally_flush). What all warps pass exactly once in a
 * region of whole-CTA code is not counted at all: regions are (cpu_start.always, cpu_start.rounds). */
#include "device/cpu/cpu.h"

#include <string.h>

#include "device/emu/cells.h"

void cpu_find_tallies(struct cpu_func *f)
{
    uint32_t n = 0, value = 0; /* values come first: they are vectors, which lie at multiples of their size */
    for (uint32_t i = 0; i < f->n_insts; i++) {
        n += f->insts[i].kind == CPU_COUNT;
        if (f->insts[i].kind == CPU_COUNT && f->insts[i].s[0]) f->tally.n_counts += CPU_VALUE_WORDS;
    }
    if (!n) return;
    f->tally.sites = mg_arena_array(&f->arena, struct cpu_site, n);
    f->tally.site_at = mg_arena_array(&f->arena, uint32_t, f->n_insts + 1);
    for (uint32_t b = 0; b < f->n_blocks; b++)
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
            const struct cpu_inst *in = &f->insts[i];
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
