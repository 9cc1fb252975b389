/* Programs of tests that call the driver by names found with dlsym. */
#ifndef MG_TESTS_INJECT_BY_NAME_H
#define MG_TESTS_INJECT_BY_NAME_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define DO(call)                                                                                                       \
    do {                                                                                                               \
        int r_ = (call);                                                                                               \
        if (r_) {                                                                                                      \
            printf("%s: error %d\n", #call, r_);                                                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
/* An entry of the library `lib`, as a variable of its name. */
#define GET(name, type) int(*name) type = (int(*) type)(uintptr_t)dlsym(lib, #name)

#endif
