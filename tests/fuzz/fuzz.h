/* What a fuzz target is: one function, linked with libFuzzer or with replay.c. */
#ifndef MG_TESTS_FUZZ_H
#define MG_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#endif
