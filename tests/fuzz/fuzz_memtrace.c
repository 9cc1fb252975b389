/* Any bytes behind the first as a file of the thesis' format or of cuda-memtrace: an error that names a byte, or so
 * many accesses; never more than the bytes can hold. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "trace/memtrace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_diag d = MG_DIAG_INIT;
    uint64_t n = 0;
    if (!bytes) return 0;
    bool is_thesis = data[0] & 1;
    uint8_t *copy = malloc(bytes);
    memcpy(copy, data + 1, bytes - 1);
    if (mg_memtrace_parse(copy, bytes - 1, is_thesis, NULL, &n, &d) &&
        (!d.n_errors || !strstr(d.items[0].text, "byte ")))
        abort();
    if (n > bytes / 24 * (is_thesis ? 1 : UINT16_MAX) + 1) abort();
    free(copy);
    mg_diag_release(&d);
    return 0;
}
