/* Runs kernel k of a PTX text on an emulator of the tests' own. */
#ifndef MG_TESTS_UNIT_EMU_RUN_H
#define MG_TESTS_UNIT_EMU_RUN_H

#include "device/device.h"

struct mg_dmod *emu_load(const char *text); /* NULL: the test has failed */
bool emu_launch(struct mg_dmod *mod, uint32_t grid, uint32_t block, const void *params, uint32_t bytes);

#endif
