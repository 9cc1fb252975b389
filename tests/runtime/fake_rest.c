/* The rest of the fake driver (fake.c): every entry that the runtime may call, noted, successful. */
#include "tests/runtime/fake.h"

#define CU(name, params)                                                                                               \
    __attribute__((weak)) cu_result name(void);                                                                        \
    __attribute__((weak)) cu_result name(void)                                                                         \
    {                                                                                                                  \
        fake_note(#name);                                                                                              \
        return fake_result(#name);                                                                                     \
    }
#include "runtime/driver.def"
