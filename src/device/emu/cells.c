/* Cells: what inserted code counts in (MG_OP_count_threads, MG_OP_count_warps). Each worker has its own while a launch
 * runs and adds them to the launch's memory when it is done. */
#include "device/emu/cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/emu/request.h"
#include "device/mem.h"

static void lose(struct emu_launch *l, enum mg_fault_kind kind)
{
    pthread_mutex_lock(&l->lock);
    if (l->fault->kind == MG_FAULT_NONE) {
        l->fault->kind = kind;
        snprintf(l->fault->text, sizeof l->fault->text, "kernel %s: no memory for what inserted code counts",
                 l->code->kernel->name);
    }
    pthread_mutex_unlock(&l->lock);
}

static bool grow(uint64_t **cells, uint32_t from, uint32_t to)
{
    uint64_t *more = realloc(*cells, to * sizeof *more);
    if (!more) return false;
    memset(more + from, 0, (to - from) * sizeof *more);
    *cells = more;
    return true;
}

/* Is there room for the cell? A function that came by an indirect call brings cells of its own. */
static bool has_cell(struct emu_worker *wk, uint32_t cell)
{
    uint32_t more = cell + 64;
    if (MG_LIKELY(cell < wk->n_cells)) return true;
    if (!grow(&wk->cells, wk->n_cells, more) || (wk->mosts && !grow(&wk->mosts, wk->n_cells, more))) {
        lose(wk->l, MG_FAULT_MEMORY);
        return false;
    }
    wk->n_cells = more;
    return true;
}

void emu_cell_add(struct emu_worker *wk, uint32_t cell, uint64_t n)
{
    if (has_cell(wk, cell)) wk->cells[cell] += n;
}

void emu_cell_most(struct emu_worker *wk, uint32_t cell, uint64_t v)
{
    if (!has_cell(wk, cell)) return;
    if (!wk->mosts && !(wk->mosts = calloc(wk->n_cells, sizeof *wk->mosts))) {
        lose(wk->l, MG_FAULT_MEMORY);
        return;
    }
    wk->mosts[cell] = MG_MAX(wk->mosts[cell], v);
}

void emu_count(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_count *list = ((const struct emu_op *)o)->ext;
    struct emu_worker *wk = EMU_FRAME(regs)->wk;
    uint32_t lanes = emu_popc(mask);
    if (!mask) return;
    for (uint32_t k = 0; k < o->imm; k++) emu_cell_add(wk, list[k].cell, list[k].warps ? list[k].n : lanes * list[k].n);
}

void emu_count_value(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_count *c = ((const struct emu_op *)o)->ext;
    const uint64_t *v = (const uint64_t *)(regs + o->s[0]);
    uint64_t sum = 0;
    if (!mask) return;
    if (c->warps) mask &= 0u - mask;
    EMU_FOR_LANES(i, mask) sum += v[i];
    emu_cell_add(EMU_FRAME(regs)->wk, c->cell, sum);
}

void emu_request_add(struct emu_worker *wk, const struct emu_request *r, const struct emu_looked *x, uint64_t n)
{
    emu_cell_add(wk, r->cell + x->pattern, n);
    if (x->sectors) emu_cell_add(wk, r->cell + MG_RQ_SECTORS, n * x->sectors);
    if (x->lines) emu_cell_add(wk, r->cell + MG_RQ_LINES, n * x->lines);
    if (x->conflicts) emu_cell_add(wk, r->cell + MG_RQ_CONFLICTS, n * x->conflicts);
}

void emu_carried_add(struct emu_worker *wk, const struct emu_carried *r, const uint64_t *sums, uint64_t least,
                     uint64_t most)
{
    if (!sums[MG_CR_VALUES]) return;
    for (uint32_t k = 0; k < MG_CR_SUMS; k++)
        if (sums[k]) emu_cell_add(wk, r->cell + k, sums[k]);
    emu_cell_most(wk, r->cell + MG_CR_LEAST, ~least);
    emu_cell_most(wk, r->cell + MG_CR_MOST, most);
}

static void raise_to(uint64_t *at, uint64_t v)
{
    uint64_t was = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (was < v && !__atomic_compare_exchange_n(at, &was, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
}

bool emu_cells_begin(struct emu_worker *wk)
{
    wk->n_cells = wk->l->code->n_cells;
    wk->cells = wk->n_cells ? calloc(wk->n_cells, sizeof *wk->cells) : NULL;
    return wk->cells || !wk->n_cells;
}

void emu_cells_end(struct emu_worker *wk)
{
    struct emu_launch *l = wk->l;
    uint64_t base = 0;
    struct mg_alloc a;
    while (wk->n_cells && !wk->cells[wk->n_cells - 1] && !(wk->mosts && wk->mosts[wk->n_cells - 1])) wk->n_cells--;
    if (wk->n_cells && l->code->has_cells) {
        memcpy(&base, l->params + l->code->cells_param, sizeof base);
        base += l->code->cells_off;
    }
    if (wk->n_cells &&
        (base & 7 || !mg_mem_find_any(base, &a) || a.readonly || (a.base + a.bytes - base) / 8 < wk->n_cells))
        lose(l, MG_FAULT_ADDRESS);
    else
        for (uint32_t k = 0; k < wk->n_cells; k++) {
            if (wk->cells[k]) __atomic_fetch_add((uint64_t *)base + k, wk->cells[k], __ATOMIC_RELAXED);
            if (wk->mosts && wk->mosts[k]) raise_to((uint64_t *)base + k, wk->mosts[k]);
        }
    free(wk->cells);
    free(wk->mosts);
    wk->cells = wk->mosts = NULL;
}
