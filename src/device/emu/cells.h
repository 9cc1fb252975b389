/* What inserted code counts, while a launch runs: cells.c. */
#ifndef MG_DEVICE_EMU_CELLS_H
#define MG_DEVICE_EMU_CELLS_H

#include "device/emu/emu.h"

void emu_cell_add(struct emu_worker *wk, uint32_t cell, uint64_t n);
void emu_cell_most(struct emu_worker *wk, uint32_t cell, uint64_t v); /* the greatest of what is told */
bool emu_cells_begin(struct emu_worker *wk);
void emu_cells_end(struct emu_worker *wk); /* to the launch's memory */

#endif
