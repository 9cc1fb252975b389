/* Any bytes as an object of compiled code. */
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct cpu_object o;
    char why[200] = "";
    uint8_t *copy = malloc(bytes ? bytes : 1); /* aligned, and a sanitizer sees one byte too many */
    memcpy(copy, data, bytes);
    if (cpu_object_load(copy, bytes, &o, why, sizeof why)) {
        if (!o.fn || !o.image) abort();
    } else if (!why[0]) {
        abort();
    }
    cpu_object_free(&o);
    free(copy);
    return 0;
}
