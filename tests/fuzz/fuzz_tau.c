/* Any bytes as a TAU profile: an error with a line, or a profile that reads the same when it is printed. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tau/profile_file.h"

static enum mg_err parse(const void *data, size_t bytes, struct tau_file *f, struct mg_diag *d)
{
    char *text = malloc(bytes + 1);
    memcpy(text, data, bytes);
    text[bytes] = 0;
    return tau_file_parse(text, bytes, "fuzz/profile.1.0.2", f, d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct tau_file f, again;
    struct mg_diag d = MG_DIAG_INIT;
    if (parse(data, bytes, &f, &d)) {
        if (!d.n_errors || !d.items[0].line) abort();
    } else {
        struct mg_buf out = MG_BUF_INIT;
        tau_file_print(&f, &out);
        if (f.node != 1 || f.thread != 2 || parse(out.at, out.n, &again, &d)) abort();
        if (again.n_functions != f.n_functions || again.n_events != f.n_events) abort();
        for (uint32_t i = 0; i < f.n_functions; i++)
            if (again.functions[i].calls != f.functions[i].calls ||
                again.functions[i].children != f.functions[i].children)
                abort();
        tau_file_release(&again);
        mg_buf_release(&out);
    }
    tau_file_release(&f);
    mg_diag_release(&d);
    return 0;
}
