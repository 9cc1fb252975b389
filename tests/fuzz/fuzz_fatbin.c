/* Any bytes as a file that may hold PTX: every container, every packing. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_image *im;
    struct mg_diag d = MG_DIAG_INIT;
    /* an exact copy on the heap, so that a sanitizer sees one byte too many */
    uint8_t *copy = malloc(bytes ? bytes : 1);
    memcpy(copy, data, bytes);
    if (!mg_image_open_bytes(copy, bytes, "fuzz", &im, &d)) {
        for (uint32_t i = 0; i < im->n_entries; i++) {
            const struct mg_image_entry *e = &im->entries[i];
            if (e->kind == MG_ENTRY_PTX && e->data[e->bytes]) abort();
            (void)mg_image_best_ptx(im, e->group, 90);
        }
        mg_image_free(im);
    } else if (!d.n_errors) {
        abort();
    }
    mg_diag_release(&d);
    free(copy);
    return 0;
}
