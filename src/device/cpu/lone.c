/* Code that one lane alone comes to, as behind `if (threadIdx.x == 0)`: its blocks are scalar code for that lane
 * (plugin/serial.c), as loops are that lanes go through one after the other (serial.c). Vectors would do thirty-two
 * times the work, and large functions of that kind would take LLVM a minute.
 *
 * A region begins at a block to which only branches by thread numbers lead, in each warp for one lane at most, and has
 * the blocks behind it that nothing else leads to, as far as their operations have code for one lane. What it leads to
 * are its stops: there the lane waits as others do. It is one set all the way, so that each pass is a warp's. */
#include "device/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "device/emu/alu_form.h"

#define LEAST_OPS 200 /* of a region: registers come from the frame and go back there */

/* Does the branch at the end of block p lead to block h in one lane of each warp at most? */
static bool leads_one(const struct cpu_func *f, uint32_t p, uint32_t h)
{
    const struct cpu_inst *in = &f->insts[f->blocks[p].end - 1];
    if (in->kind != CPU_CTL || in->ctl != EMU_CTL_BRA || !in->guard || in->target == in->fall) return false;
    uint32_t threads = f->dims[0] * f->dims[1] * f->dims[2], lanes;
    for (uint32_t w = 0; 32 * w < threads; w++) {
        if (!cpu_branch_lanes(f, p, w, &lanes)) return false;
        if (in->target != h) lanes = ~lanes;
        if (threads - 32 * w < EMU_LANES) lanes &= (1u << (threads - 32 * w)) - 1;
        if (lanes & (lanes - 1)) return false;
    }
    return threads != 0;
}

static bool is_head(const struct cpu_func *f, uint32_t h)
{
    if (h == f->entry || !mg_graph_degree(&f->pred, h)) return false;
    MG_EACH_EDGE(&f->pred, h, e)
    if (!leads_one(f, f->pred.to[e], h)) return false;
    return true;
}

/* ... by the emulator's function where it is arithmetic, or memory that is the thread's */
static bool has_code(const struct cpu_func *f, uint32_t ix)
{
    const struct cpu_inst *in = &f->insts[ix];
    if (cpu_has_lane_code(in)) return true;
    if (in->kind == CPU_LOAD || in->kind == CPU_STORE) return in->where == EMU_AT_LOCAL;
    if (in->kind == CPU_CALL) return in->known && emu_alu_row(f->fn->ops[ix].opcode, f->isa);
    return in->kind == CPU_ALU;
}

static bool can_have(const struct cpu_func *f, const uint64_t *set, uint32_t h, uint32_t b)
{
    for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++)
        if (!has_code(f, i)) return false;
    MG_EACH_EDGE(&f->pred, b, e)
    if (b != h && !mg_has(set, f->pred.to[e])) return false;
    return true;
}

/* The region of h; returns how many operations it has. */
static uint32_t find_region(const struct cpu_func *f, uint32_t h, uint64_t *set, uint64_t *others)
{
    uint32_t n = 0;
    uint64_t wall[(CPU_MAX_BLOCKS + 63) / 64] = {0};
    mg_put(wall, h);
    mg_graph_after(&f->succ, f->entry, others, wall);
    mg_put(others, f->entry);
    mg_graph_after(&f->succ, h, set, others);
    mg_put(set, h);
    for (bool again = true; again;) {
        again = false;
        for (uint32_t b = 0; b < f->n_blocks; b++) {
            if (!mg_has(set, b) || can_have(f, set, h, b)) continue;
            mg_cut(set, b);
            again = true;
        }
    }
    for (uint32_t b = 0; b < f->n_blocks && mg_has(set, h); b++)
        if (mg_has(set, b)) n += f->blocks[b].end - f->blocks[b].first;
    return n;
}

void cpu_find_lone(struct cpu_func *f)
{
    uint64_t *set = mg_arena_array(&f->arena, uint64_t, f->block_words),
             *others = mg_arena_array(&f->arena, uint64_t, f->block_words);
    for (uint32_t h = 0; h < f->n_blocks; h++) {
        if (f->serial_of[h] || !is_head(f, h) || find_region(f, h, set, others) < LEAST_OPS) continue;
        cpu_add_serial(f, h, set, true);
        for (uint32_t b = 0; b < f->n_blocks; b++) {
            if (!mg_has(set, b)) continue;
            f->n_lone += f->blocks[b].end - f->blocks[b].first;
            if (b != h) f->blocks[b].entry = false;
        }
    }
}

uint32_t cpu_count_lone(const struct cpu_func *f)
{
    uint64_t *set = mg_xcalloc(3 * (size_t)f->block_words, sizeof *set), *others = set + f->block_words,
             *all = others + f->block_words;
    uint32_t n = 0;
    for (uint32_t h = 0; h < f->n_blocks; h++) {
        uint32_t more = mg_has(all, h) || !is_head(f, h) ? 0 : find_region(f, h, set, others);
        if (more < LEAST_OPS) continue;
        n += more;
        for (uint32_t w = 0; w < f->block_words; w++) all[w] |= set[w];
    }
    free(set);
    return n;
}
