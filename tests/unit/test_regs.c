/* Passes ssa and regs: what a kernel computes stays, registers are written at one place, few are left. */
#include <stdlib.h>

#include "analysis/ssa.h"
#include "base/buf.h"
#include "device/mem.h"
#include "emu_run.h"
#include "kernels.h"
#include "pass/pass.h"
#include "ptx/ptx.h"
#include "test.h"

enum { OUT_WORDS = 256 };

static void run_text(const char *text, uint32_t *out)
{
    uint64_t at = mg_mem_alloc(OUT_WORDS * 4, 256, MG_ALLOC_DEVICE);
    struct {
        uint64_t out;
        uint32_t n;
    } params = {at, 5};
    struct mg_dmod *mod = emu_load(text);
    memset((void *)(uintptr_t)at, 0, OUT_WORDS * 4);
    if (mod && emu_launch(mod, 2, 72, &params, 12)) memcpy(out, (void *)(uintptr_t)at, OUT_WORDS * 4);
    if (mod) mg_emu_ops.module_unload(mod);
    mg_mem_free(at);
}

/* The text after the passes, which are run one after another. */
static struct mg_module *after(const char *text, const char *const *names, uint32_t n)
{
    struct mg_module *m = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_pipeline_step steps[4];
    struct mg_pass_opts o = {.size = sizeof o, .verify = true};
    if (mg_ptx_parse(text, strlen(text), "t.ptx", &m, &d)) abort();
    for (uint32_t i = 0; i < n; i++) steps[i] = (struct mg_pipeline_step){mg_pass_find(names[i]), NULL};
    if (mg_pass_run(m, steps, n, &o, &d)) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_STATE));
    mg_diag_release(&d);
    return m;
}

/* Registers named in the functions, and those of them that are written at more places than one. */
static void count_registers(const struct mg_module *m, uint32_t *named, uint32_t *often)
{
    uint32_t *writes = calloc(m->regs.n, sizeof *writes);
    bool *seen = calloc(m->regs.n, sizeof *seen);
    mg_id ids[16];
    for (mg_id f = 1; f < m->funcs.n; f++)
        for (mg_id id = m->funcs.at[f].defined ? m->funcs.at[f].first_node : 0; id; id = m->nodes.at[id].next) {
            uint32_t n = mg_node_defs(m, id, ids, 16);
            for (uint32_t i = 0; i < n; i++) writes[ids[i]] += m->nodes.at[id].guard ? 0 : 1, seen[ids[i]] = true;
            n = mg_node_uses(m, id, ids, 16);
            for (uint32_t i = 0; i < n; i++) seen[ids[i]] = true;
        }
    *named = *often = 0;
    for (mg_id r = 1; r < m->regs.n; r++) {
        *named += seen[r];
        *often += writes[r] > 1;
    }
    free(writes);
    free(seen);
}

static uint32_t count_phis(const char *text)
{
    struct mg_module *m = after(text, NULL, 0);
    uint32_t n = 0;
    for (mg_id f = 1; f < m->funcs.n; f++) {
        if (!m->funcs.at[f].defined) continue;
        struct mg_cfg *c = mg_cfg_new(m, f);
        struct mg_dom *d = mg_dom_new(c);
        struct mg_live *l = mg_live_new(c);
        struct mg_ssa *s = mg_ssa_new(c, d, l);
        for (uint32_t v = 1; v < s->n_values; v++) n += s->values[v].kind == MG_SSA_phi;
        mg_ssa_free(s);
        mg_live_free(l);
        mg_dom_free(d);
        mg_cfg_free(c);
    }
    mg_module_free(m);
    return n;
}

MG_TEST(regs_random)
{
    static const char *const both[] = {"ssa", "regs"}, *const twice[] = {"regs", "ssa", "regs"};
    for (uint32_t seed = 0; seed < 40; seed++) {
        if (!mg_test_takes(seed)) continue;
        struct mg_buf b;
        uint32_t want[OUT_WORDS] = {0}, had, has, often, few = 0, again;
        if (seed % 3 == 2)
            random_calls(seed, &b);
        else
            random_kernel(seed, &b);
        run_text(b.at, want);
        struct mg_module *none = after(b.at, NULL, 0);
        count_registers(none, &had, &often);
        mg_module_free(none);
        for (unsigned k = 0; k < 3; k++) {
            struct mg_module *m = k == 0 ? after(b.at, both, 1) : k == 1 ? after(b.at, both, 2) : after(b.at, twice, 3);
            struct mg_buf text = MG_BUF_INIT;
            uint32_t got[OUT_WORDS] = {1};
            mg_ptx_print(m, &text);
            run_text(text.at, got);
            if (memcmp(want, got, sizeof want))
                mg_test_fail(__FILE__, __LINE__, "random kernel %u, way %u computes something else:\n%s",
                             (unsigned)seed, k, text.at);
            count_registers(m, &has, k ? &again : &often);
            if (k == 0) MG_CHECK_EQ(often, count_phis(b.at)); /* only what moves of phis go through */
            if (k == 1) few = has;
            if (k) MG_CHECK(has <= had);
            if (k == 2) MG_CHECK(has <= few + 2);
            mg_module_free(m);
            mg_buf_release(&text);
        }
        mg_buf_release(&b);
    }
}

/* Two values that change places, and one that lives on behind its loop: what simple moves get wrong. */
MG_TEST(regs_swap)
{
    static const char text[] = HEAD ENTRY("k") GID
        "mov.u32 %r4, 1; mov.u32 %r5, 1000; and.b32 %r7, %r1, 7;\n"
        "L: mov.u32 %r6, %r4; mov.u32 %r4, %r5; mov.u32 %r5, %r6; mov.u32 %r8, %r7; sub.u32 %r7, %r7, 1; setp.ne.u32 %p1, %r8, 0; @%p1 bra L;\n"
        "mad.lo.u32 %r4, %r4, 3, %r5; mad.lo.u32 %r4, %r8, 7, %r4; sub.u32 %r4, %r4, %r7; st.global.u32 [%rd1], %r4; ret;\n}\n";
    static const char *const both[] = {"ssa", "regs"};
    for (unsigned n = 1; n <= 2; n++) {
        struct mg_module *m = after(text, both, n);
        struct mg_buf b = MG_BUF_INIT;
        uint32_t got[OUT_WORDS] = {0};
        mg_ptx_print(m, &b);
        run_text(b.at, got);
        for (uint32_t t = 0; t < 144; t++) MG_CHECK_EQ(got[t], (t & 7) % 2 ? 1 * 3 + 1000 + 1 : 1000 * 3 + 1 + 1);
        mg_buf_release(&b);
        mg_module_free(m);
    }
}
