/* Any bytes as a compiled probe: it is refused with a message, or goes into a kernel without breaking it. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ptx/ptx.h"
#include "probe/expr_place.h"
#include "patch/layout.h"
#include "tool/instrument.h"

extern const struct mg_tool mg_tool_expr;

static const char kernel[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
    ".reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %d<4>; .reg .pred %p<2>;\n"
    "ld.param.u64 %d1, [p];\nmov.u32 %r1, 0;\nL:\nld.global.f32 %f1, [%d1];\nadd.f32 %f2, %f1, %f1;\nst.global.f32 [%d1+4], %f2;\n"
    "atom.global.add.u32 %r2, [%d1+8], 1;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 8;\n@%p1 bra L;\nret;\n}\n";

static void fail(const char *what, const struct mg_buf *text)
{
    fprintf(stderr, "%s:\n%s\n", what, text->n ? text->at : "");
    abort();
}

static void put_in(struct mg_expr_conf *conf)
{
    struct mg_module *m, *again;
    struct mg_twin *t;
    struct mg_layout layout = {0};
    struct mg_buf text = MG_BUF_INIT;
    if (mg_ptx_parse(kernel, sizeof kernel - 1, "kernel", &m, NULL)) abort();
    mg_id k = mg_module_find_func(m, "k");
    if (mg_twin_new(m, k, &t, NULL)) abort();
    struct mg_sites *sites = mg_sites_new(m, k);
    struct mg_tool_use use = {&mg_tool_expr, conf};
    struct mg_tools_opts opts = {.size = sizeof opts, .sm = 90};
    if (!mg_tools_instrument(&use, 1, sites, t, &opts, &layout, NULL)) {
        mg_ptx_print(t->m, &text);
        if (mg_module_verify(t->m, NULL)) fail("verify fails", &text);
        if (mg_ptx_parse(text.at, text.n, "twin", &again, NULL)) fail("what was printed does not parse", &text);
        mg_module_free(again);
    }
    mg_layout_release(&layout);
    mg_sites_free(sites);
    mg_twin_free(t);
    mg_module_free(m);
    mg_buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_expr_conf conf = {0};
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err err = mg_probe_parse((const char *)data, bytes, "fuzz", &conf.probe, &d);
    if (!err != !!conf.probe || !err != !d.n_errors) abort();
    if (!err) {
        struct mg_buf text = MG_BUF_INIT;
        mg_probe_text(conf.probe, "fuzz", &text);
        err = mg_expr_parse(text.at, text.n, "fuzz", &conf.e, &d);
        if (!err) err = mg_expr_join(conf.e, conf.probe, "fuzz", &d);
        if (!err) put_in(&conf);
        mg_buf_release(&text);
    }
    mg_expr_free(conf.e);
    mg_probe_free(conf.probe);
    mg_diag_release(&d);
    return 0;
}
