/* What scheme register of the tool blocks takes of a kernel's registers and shared memory. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "pass/pass.h"
#include "ptx/ptx.h"
#include "test.h"
#include "tool/tool.h"

/* As many registers as the CTAs leave that a launch needs at once; what other kernels of the module have in shared
 * memory is no reason against counters there. */
static char *made_for(uint32_t registers, uint32_t most_registers, bool must_fit, const char *in_loop)
{
    struct mg_buf text = MG_BUF_INIT, out = MG_BUF_INIT;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_twin *t = NULL;
    struct mg_counter_layout l = {0};
    void *conf = NULL;
    mg_buf_adds(&text, HEAD ENTRY("k") GID "mov.u32 %r4, %r1;\n");
    for (int i = 0; i < 5; i++)
        mg_buf_printf(
            &text,
            "A%d: mad.lo.u32 %%r4, %%r4, 5, 3; and.b32 %%r5, %%r4, 3; setp.ne.u32 %%p2, %%r5, 0; %s @%%p2 bra A%d;\n",
            i, in_loop, i);
    mg_buf_adds(
        &text,
        "st.global.u32 [%rd1], %r4; ret;\n}\n.visible .entry other()\n{\n.shared .b8 large[49000];\n.reg .b32 %r<2>;\nmov.u32 %r1, large;\nst.shared.u32 [%r1], 0;\nret;\n}\n");
    struct mg_module *m = NULL;
    MG_CHECK_EQ(mg_ptx_parse(text.at, text.n, "t.ptx", &m, &d), MG_ERR_OK);
    mg_id k = mg_module_find_func(m, "k");
    struct mg_sites *sites = mg_sites_new(m, k);
    MG_CHECK_EQ(mg_twin_new(m, k, &t, &d), MG_ERR_OK);
    const struct mg_tool *tool = mg_tool_find("blocks");
    MG_CHECK_EQ(tool->configure("counters=register,warps=off,sm=90", &conf, &d), MG_ERR_OK);
    t->registers = registers;
    t->most_registers = most_registers;
    t->must_fit = must_fit;
    MG_CHECK_EQ(mg_count_insert(tool->counts(conf), sites, t, &l, NULL, &d), MG_ERR_OK);
    mg_ptx_print(t->m, &out);
    tool->release(conf);
    mg_counter_layout_release(&l);
    mg_sites_free(sites);
    mg_twin_free(t);
    mg_module_free(m);
    mg_buf_release(&text);
    mg_diag_release(&d);
    return mg_buf_take(&out);
}

MG_TEST(tool_blocks_leaves_registers)
{
    static const struct {
        uint32_t registers, most;
        bool must;
        const char *in_loop;
        unsigned shared;
    } cases[] = {
        {40, 0, true, "", 0},
        {40, 64, true, "", 0},
        {40, 40, true, "", 5},
        {48, 40, true, "", 5},
        {40, 45, true, "", 3},
        {40, 40, false, "", 0},
        {40, 40, false, "bar.sync 0;", 5},
    };
    for (unsigned i = 0; i < MG_COUNT_OF(cases); i++) {
        char *text = made_for(cases[i].registers, cases[i].most, cases[i].must, cases[i].in_loop);
        unsigned n = 0;
        for (const char *at = text; at && (at = strstr(at, "red.shared.add")); at++) n++;
        if (n != cases[i].shared)
            mg_test_fail(__FILE__, __LINE__, "of %u registers, %u at most: %u counters in shared memory",
                         cases[i].registers, cases[i].most, n);
        free(text);
    }
}
