/* The pass driver: order of work by scope, analyses kept and dropped, dumps, a broken module caught. */
#include <stdlib.h>

#include "analysis/dom.h"
#include "analysis/uniform.h"
#include "base/buf.h"
#include "pass/pass.h"
#include "ptx/ptx.h"
#include "test.h"

static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry a()\n{\n.reg .pred %p<2>; .reg .b32 %r<3>;\n@%p1 bra L; mov.u32 %r1, 1; L: ret;\n}\n"
    ".visible .entry b()\n{\nret;\n}\n";

static struct mg_module *parse(void)
{
    struct mg_module *m = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    if (mg_ptx_parse(text, strlen(text), "t.ptx", &m, &d)) abort();
    return m;
}

struct log {
    struct mg_buf text;
    const struct mg_cfg *cfg;
    bool kept;
};

static enum mg_err note(struct mg_pass_ctx *c, struct log *l, const char *name, mg_id func, uint32_t block)
{
    struct mg_module *m = mg_pass_module(c);
    mg_buf_printf(&l->text, "%s:%s:%u ", name, func ? mg_name(m, m->funcs.at[func].name) : "-", block);
    return MG_ERR_OK;
}
static enum mg_err run_p(struct mg_pass_ctx *c, void *u, mg_id f, uint32_t b)
{
    return note(c, u, "p", f, b);
}
static enum mg_err run_q(struct mg_pass_ctx *c, void *u, mg_id f, uint32_t b)
{
    return note(c, u, "q", f, b);
}

MG_TEST(passes_of_one_scope_are_coalesced)
{
    struct log l = {{0}, NULL, false};
    const struct mg_pass mp = {.name = "mp", .scope = MG_SCOPE_MODULE, .run = run_p},
                         kp = {.name = "kp", .scope = MG_SCOPE_KERNEL, .run = run_p},
                         kq = {.name = "kq", .scope = MG_SCOPE_KERNEL, .run = run_q},
                         bp = {.name = "bp", .scope = MG_SCOPE_BLOCK, .run = run_p},
                         bq = {.name = "bq", .scope = MG_SCOPE_BLOCK, .run = run_q};
    const struct mg_pipeline_step steps[] = {{&mp, &l}, {&kp, &l}, {&kq, &l}, {&bp, &l}, {&bq, &l}};
    struct mg_module *m = parse();
    uint64_t ns[5];
    struct mg_pass_opts o = {.size = sizeof o, .verify = true, .pass_ns = ns};
    MG_CHECK_EQ(mg_pass_run(m, steps, 5, &o, NULL), MG_ERR_OK);
    MG_CHECK_STR(l.text.at, "p:-:0 p:a:0 q:a:0 p:b:0 q:b:0 p:a:0 q:a:0 p:a:1 q:a:1 p:a:2 q:a:2 p:b:0 q:b:0 ");
    mg_buf_release(&l.text);
    mg_module_free(m);
}

static enum mg_err look(struct mg_pass_ctx *c, void *u, mg_id f, uint32_t b)
{
    struct log *l = u;
    (void)b;
    const struct mg_cfg *now = mg_pass_cfg(c, f);
    if (!strcmp(mg_name(mg_pass_module(c), mg_pass_module(c)->funcs.at[f].name), "a")) {
        l->kept = l->cfg == now && now->n_blocks == mg_pass_dom(c, f)->n_blocks &&
                  now->n_blocks == mg_pass_uniform(c, f)->n_blocks;
        l->cfg = now;
    }
    return MG_ERR_OK;
}

/* Puts a label and a branch to it behind the function's last instruction: more blocks. */
static enum mg_err grow(struct mg_pass_ctx *c, void *u, mg_id f, uint32_t b)
{
    struct mg_module *m = mg_pass_module(c);
    (void)u, (void)b;
    mg_id l = mg_module_add_label(m, f, "L_new"), node = mg_node_new_kind(m, MG_NODE_label, l);
    mg_node_insert_before(m, f, 0, node);
    mg_id ret = mg_node_new(m, "ret", NULL, 0);
    m->nodes.at[ret].flags = 0;
    mg_node_insert_before(m, f, 0, ret);
    struct mg_opnd o = mg_o_label(l);
    mg_id bra = mg_node_new(m, "bra", &o, 1);
    m->nodes.at[bra].flags = 0;
    mg_node_insert_before(m, f, ret, bra);
    mg_node_remove(m, f, node);
    mg_node_insert_before(m, f, ret, node);
    return MG_ERR_OK;
}

MG_TEST(analyses_live_as_long_as_they_are_kept)
{
    struct log l = {{0}, NULL, false};
    const struct mg_pass see = {
        .name = "see", .scope = MG_SCOPE_KERNEL, .needs = MG_AN_CFG | MG_AN_DOM, .keeps = MG_AN_ALL, .run = look};
    const struct mg_pass change = {.name = "grow", .scope = MG_SCOPE_KERNEL, .run = grow};
    const struct mg_pass verify = {.name = "v", .scope = MG_SCOPE_IMMUTABLE, .keeps = MG_AN_ALL, .run = run_p};
    struct mg_module *m = parse();
    const struct mg_pipeline_step kept[] = {{&see, &l}, {&verify, &l}, {&see, &l}};
    MG_CHECK_EQ(mg_pass_run(m, kept, 3, NULL, NULL), MG_ERR_OK);
    MG_CHECK(l.kept);
    l.cfg = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    const struct mg_pipeline_step dropped[] = {{&see, &l}, {&change, NULL}, {&see, &l}};
    struct mg_pass_opts o = {.size = sizeof o, .verify = true};
    if (mg_pass_run(m, dropped, 3, &o, &d)) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_STATE));
    struct mg_cfg *c = mg_cfg_new(m, mg_module_find_func(m, "b"));
    MG_CHECK_EQ(c->n_blocks, 3);
    mg_cfg_free(c);
    mg_buf_release(&l.text);
    mg_diag_release(&d);
    mg_module_free(m);
}

static enum mg_err spoil(struct mg_pass_ctx *c, void *u, mg_id f, uint32_t b)
{
    struct mg_module *m = mg_pass_module(c);
    (void)u, (void)b;
    struct mg_opnd o = mg_o_reg(m->regs.n + 7); /* no such register */
    mg_node_insert_after(m, f, 0, mg_node_new(m, "mov.u32", (struct mg_opnd[]){o, o}, 2));
    return MG_ERR_OK;
}

MG_TEST(a_broken_module_is_caught)
{
    const struct mg_pass bad = {.name = "spoil", .scope = MG_SCOPE_KERNEL, .run = spoil};
    const struct mg_pipeline_step step = {&bad, NULL};
    struct mg_pass_opts o = {.size = sizeof o, .verify = true};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_module *m = parse();
    MG_CHECK(mg_pass_run(m, &step, 1, &o, &d) != MG_ERR_OK);
    bool named = false;
    for (uint32_t i = 0; i < d.n_items; i++) named |= strstr(d.items[i].text, "after pass spoil") != NULL;
    MG_CHECK(named);
    mg_diag_release(&d);
    mg_module_free(m);
}

MG_TEST(dumps)
{
    const struct mg_pass *stress = mg_pass_find("stress");
    const struct mg_pipeline_step step = {stress, NULL};
    struct mg_buf b = MG_BUF_INIT;
    struct mg_pass_opts o = {.size = sizeof o, .verify = true, .dump = "stress", .dump_to = &b};
    struct mg_module *m = parse();
    MG_CHECK_EQ(mg_pass_run(m, &step, 1, &o, NULL), MG_ERR_OK);
    MG_CHECK(b.n && strstr(b.at, "// after pass stress\n.version 7.0"));
    MG_CHECK(mg_pass_find("nonesuch") == NULL && mg_pass_at(0) && mg_pass_at(1000) == NULL);
    mg_buf_release(&b);
    mg_module_free(m);
}

/* A device that takes the IR itself sees what it would see in the printed text: kernels and variables that the twin
 * does not have are there no more, and what was inserted is code like any other. */
MG_TEST(finished_twin_is_what_its_text_says)
{
    static const char two[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.global .align 4 .u32 used;\n.global .align 4 .u32 other[4] = {1, 2, 3, 4};\n"
        ".shared .align 4 .b8 mine[64];\n.shared .align 4 .b8 theirs[32];\n"
        ".visible .entry a()\n{\n.reg .b32 %r<3>; .reg .b64 %rd<3>;\nmov.u64 %rd1, used; ld.global.u32 %r1, [%rd1]; st.shared.u32 [mine], %r1; ret;\n}\n"
        ".visible .entry b()\n{\n.reg .b32 %r<3>;\nld.shared.u32 %r1, [theirs]; ld.global.u32 %r1, [other]; ret;\n}\n";
    struct mg_module *m = NULL, *read = NULL;
    struct mg_twin *t = NULL;
    struct mg_buf printed = MG_BUF_INIT;
    MG_CHECK_EQ(mg_ptx_parse(two, strlen(two), "t.ptx", &m, NULL), MG_ERR_OK);
    MG_CHECK_EQ(mg_twin_new(m, mg_module_find_func(m, "a"), &t, NULL), MG_ERR_OK);
    mg_ptx_print(t->m, &printed);
    MG_CHECK_EQ(mg_ptx_parse(printed.at, printed.n, "twin.ptx", &read, NULL), MG_ERR_OK);
    mg_module_finish(t->m);
    static const char *const funcs[] = {"a", "b"}, *const vars[] = {"used", "other", "mine", "theirs"};
    for (size_t i = 0; i < MG_COUNT_OF(funcs); i++) {
        mg_id x = mg_module_find_func(t->m, funcs[i]), y = mg_module_find_func(read, funcs[i]);
        MG_CHECK_EQ(x && t->m->funcs.at[x].defined, y && read->funcs.at[y].defined);
    }
    for (size_t i = 0; i < MG_COUNT_OF(vars); i++) {
        mg_id x = mg_module_find_var(t->m, vars[i]), y = mg_module_find_var(read, vars[i]);
        MG_CHECK_EQ(x ? t->m->vars.at[x].space : 0, y ? read->vars.at[y].space : 0);
        MG_CHECK_EQ(x ? t->m->vars.at[x].n_inits : 0, y ? read->vars.at[y].n_inits : 0);
    }
    MG_CHECK(mg_module_find_func(read, "a") && !mg_module_find_func(read, "b") && mg_module_find_var(read, "mine") &&
             !mg_module_find_var(read, "other"));
    for (mg_id n = 1; n < t->m->nodes.n; n++)
        MG_CHECK(!(t->m->nodes.at[n].flags & MG_NF_META) && !t->m->nodes.at[n].origin);
    mg_twin_free(t);
    mg_module_free(read);
    mg_module_free(mg_module_hold(m));
    MG_CHECK(mg_module_find_func(m, "b") != 0); /* one owner is left */
    mg_module_free(m);
    mg_buf_release(&printed);
}
