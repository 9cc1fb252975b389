/* Any bytes as PTX: parse, verify, print; what printed must parse again and print the same. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "pass/stress.h"
#include "ptx/ptx.h"
#include "report/inlined.h"

static void fail(const char *what, const struct mg_buf *text)
{
    fprintf(stderr, "%s:\n%s\n", what, text->at ? text->at : "");
    abort();
}

static void check_module(struct mg_module *m)
{
    struct mg_buf one = MG_BUF_INIT, two = MG_BUF_INIT;
    struct mg_module *again;
    mg_ptx_print(m, &one);
    if (mg_module_verify(m, NULL)) fail("verify fails", &one);
    if (mg_ptx_parse(one.at, one.n, "printed", &again, NULL)) fail("what was printed does not parse", &one);
    mg_ptx_print(again, &two);
    if (one.n != two.n || memcmp(one.at, two.at, one.n)) fail("printing is no fixed point", &one);
    mg_module_free(again);
    struct mg_module *copy = mg_module_clone(m);
    mg_stress(copy);
    mg_buf_reset(&two);
    mg_ptx_print(copy, &two);
    if (mg_module_verify(copy, NULL)) fail("the stress pass breaks it", &two);
    mg_module_free(copy);
    mg_buf_release(&one);
    mg_buf_release(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_module *m;
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err err = mg_ptx_parse((const char *)data, bytes, "fuzz", &m, &d);
    if (!err) {
        struct mg_inlined inlined;
        mg_inlined_init(&inlined, m);
        mg_inlined_release(&inlined);
        check_module(m);
        mg_module_free(m);
    } else if (!d.n_errors) {
        fprintf(stderr, "refused without a message\n");
        abort();
    }
    mg_diag_release(&d);
    return 0;
}
