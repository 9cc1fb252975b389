/* Compiled functions kept between runs (base/cache.h, part "cpu"). The key is all that the code depends
 * on: the function as lowered, with its analyses, for one block shape and vector ISA, and the plugin that
 * made it. Code holds no address of the process, but a kernel's constants may: the address of a module
 * variable is one, so such a kernel is found again only where its variables lie where they lay.
 *
 *   uint32 blocks, words; uint64 saved[blocks][words]; object
 *
 * Of a function that is refused each time: instead of the object a zero and why, with a zero behind. Compiling such a
 * one takes the longest. */
#include "device/cpu/cpu.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"

static const char magic[8] = "mgcpu001";

static void add_words(struct mg_sha256 *s, const uint64_t *set, uint32_t words)
{
    mg_sha256_add(s, set, words * sizeof *set);
}

static void add_func(struct mg_sha256 *s, const struct cpu_func *f, bool whole)
{
    const uint32_t head[] = {(uint32_t)f->isa, f->dims[0],          f->dims[1], f->dims[2],       f->is_kernel,
                             f->suspects,      f->region.own_sregs, f->n_regs,  f->n_insts,       f->n_blocks,
                             f->entry,         f->n_linear,         whole,      f->static_shared, f->slow_gathers,
                             f->pure,          f->n_pures};
    mg_sha256_add(s, head, sizeof head);
    mg_sha256_add(s, f->regs, f->n_regs * sizeof *f->regs);
    if (f->n_tiles) mg_sha256_add(s, f->tiles, f->n_tiles * sizeof *f->tiles);
    for (uint32_t i = 0; i < f->n_insts; i++) {
        struct cpu_inst in = f->insts[i];
        in.list = NULL;
        in.counts = NULL;
        mg_sha256_add(s, &in, sizeof in);
        for (uint32_t k = 0; k < in.n_counts; k++)
            mg_sha256_add(s, &f->insts[i].counts[k].warps, sizeof f->insts[i].counts[k].warps);
        if (in.n_list) mg_sha256_add(s, f->insts[i].list, in.n_list * sizeof *f->insts[i].list);
    }
    for (uint32_t i = 0; i < f->n_blocks; i++) {
        const struct cpu_block *b = &f->blocks[i];
        const uint32_t at[] = {b->first, b->end, b->entry, b->merges, f->serial_of[i]};
        mg_sha256_add(s, at, sizeof at);
        add_words(s, b->front, f->block_words);
        add_words(s, b->live, f->reg_words);
        add_words(s, b->keep, f->reg_words);
        for (int k = 0; k < 2; k++) add_words(s, b->dirty[k], f->reg_words);
    }
    for (uint32_t k = 0; k < f->fn->n_params && f->pure; k++)
        mg_sha256_add(s, &f->fn->params[k].to, sizeof f->fn->params[k].to);
    for (uint32_t k = 0; k < f->n_pures; k++) add_func(s, f->pures[k], whole);
}

static bool find_path(const struct cpu_func *f, bool whole, const char *maker, bool make, char *path)
{
    struct mg_sha256 s;
    uint8_t h[32];
    mg_sha256_init(&s);
    mg_sha256_add(&s, magic, sizeof magic);
    mg_sha256_add(&s, maker, strlen(maker) + 1);
    add_func(&s, f, whole);
    mg_sha256_end(&s, h);
    return mg_cache_path("cpu", h, make, path);
}

static size_t prefix_bytes(const struct cpu_func *f)
{
    return 8 + (size_t)f->n_blocks * f->reg_words * sizeof(uint64_t);
}

bool cpu_store_find(struct cpu_func *f, bool whole, const char *maker, void **object, size_t *bytes)
{
    char path[PATH_MAX];
    size_t n, prefix = prefix_bytes(f);
    char *data = find_path(f, whole, maker, false, path) ? mg_cache_read(path, magic, &n) : NULL;
    const uint32_t want[2] = {f->n_blocks, f->reg_words};
    if (!data || n <= prefix || memcmp(data, want, sizeof want)) {
        free(data);
        return false;
    }
    for (uint32_t b = 0; b < f->n_blocks; b++)
        memcpy(f->blocks[b].saved, data + 8 + (size_t)b * f->reg_words * 8, f->reg_words * sizeof(uint64_t));
    bool refused = !data[prefix] && !data[n - 1] && n > prefix + 1;
    memmove(data, data + prefix + refused, n - prefix - refused);
    *object = data;
    *bytes = refused ? CPU_NEVER : n - prefix;
    return true;
}

void cpu_store_keep(const struct cpu_func *f, bool whole, const char *maker, const void *object, size_t bytes)
{
    char path[PATH_MAX];
    bool refused = bytes == CPU_NEVER;
    size_t prefix = prefix_bytes(f) + refused;
    if (refused) bytes = strlen(object) + 1;
    char *data = find_path(f, whole, maker, true, path) ? malloc(prefix + bytes) : NULL;
    if (!data) return;
    data[prefix - 1] = 0;
    memcpy(data, (uint32_t[2]){f->n_blocks, f->reg_words}, 8);
    for (uint32_t b = 0; b < f->n_blocks; b++)
        memcpy(data + 8 + (size_t)b * f->reg_words * 8, f->blocks[b].saved, f->reg_words * sizeof(uint64_t));
    memcpy(data + prefix, object, bytes);
    mg_cache_write(path, magic, data, prefix + bytes);
    free(data);
}
