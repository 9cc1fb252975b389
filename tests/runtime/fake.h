/* Shared by the two files of the fake driver. */
#ifndef MG_TESTS_RUNTIME_FAKE_H
#define MG_TESTS_RUNTIME_FAKE_H

#include "abi/cu.h"
#include "abi/cudart.h"

void fake_note(const char *format, ...);
/* 0, or the number in FAKE_FAIL=NAME:NUMBER. */
cu_result fake_result(const char *name);

#endif
