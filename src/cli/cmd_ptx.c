/* margay ptx: looks at PTX without a device. FILE is PTX text, a fatbin, a cubin that carries its
 * PTX, or an executable; every PTX in it is handled in turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/unwritten.h"
#include "base/io.h"
#include "cli/cli.h"
#include "cli/ptx.h"
#include "image/image.h"
#include "pass/stress.h"
#include "ptx/ptx.h"

struct ptx_run {
    struct mg_buf out;        /* for stdout */
    bool many;                /* more than one PTX is handled: say which */
    bool stress;              /* print: through the stress pass */
    uint32_t n_ptx, n_wanted; /* texts; functions in them that --kernel matches */
    struct ptx_opts o;        /* of cfg, stat, instrument */
    struct mg_json json;      /* writes to out */
    int status;               /* worst so far */
};
struct ptx_action {
    const char *name;
    void (*run)(struct ptx_run *r, const char *label, struct mg_module *m);
    const char *help;
};

static void worsen(struct ptx_run *r, int status)
{
    if (status > r->status) r->status = status;
}

/* ---- check ------------------------------------------------------------------------------------- */

static void add_unknown(struct ptx_run *r, const struct mg_module *m)
{
    if (!m->n_unknown_forms && !m->n_unknown_sregs && !m->n_unknown_directives) return;
    mg_buf_printf(&r->out,
                  "  unknown: %u opcodes or modifiers, %u special registers, %u directives; kept as they are\n",
                  m->n_unknown_forms, m->n_unknown_sregs, m->n_unknown_directives);
    for (mg_id f = 1; f < m->forms.n; f++) {
        if (!m->forms.at[f].unknown) continue;
        uint64_t uses = 0;
        for (mg_id n = 1; n < m->nodes.n; n++) uses += m->nodes.at[n].kind == MG_NODE_inst && m->nodes.at[n].ref == f;
        mg_buf_printf(&r->out, "    %s  x %llu\n", mg_name(m, m->forms.at[f].text), (unsigned long long)uses);
    }
    worsen(r, MG_EXIT_FINDING);
}

/* Not an error: a way on which nothing was written need not be one that the program goes. */
static void add_unwritten(struct ptx_run *r, const struct mg_module *m)
{
    for (mg_id f = 1; f < m->funcs.n; f++) {
        if (!m->funcs.at[f].defined) continue;
        struct mg_cfg *c = mg_cfg_new(m, f);
        struct mg_unwritten *u = c ? mg_unwritten_new(c) : NULL;
        for (uint32_t i = 0; u && i < u->n; i++) {
            mg_buf_printf(&r->out, "  %s: register ", mg_name(m, m->funcs.at[f].name));
            mg_reg_text(m, u->at[i].reg, &r->out);
            mg_buf_printf(&r->out, " may be read before it is written, line %u\n", m->nodes.at[u->at[i].node].line);
        }
        if (u && u->n_given_up)
            mg_buf_printf(&r->out, "  %s: %u registers whose ways are too many to be followed\n",
                          mg_name(m, m->funcs.at[f].name), u->n_given_up);
        mg_unwritten_free(u);
        if (c) mg_cfg_free(c);
    }
}

static void check(struct ptx_run *r, const char *label, struct mg_module *m)
{
    uint32_t entries = 0, funcs = 0;
    struct mg_diag d = MG_DIAG_INIT;
    for (mg_id f = 1; f < m->funcs.n; f++) {
        entries += m->funcs.at[f].kind == MG_FUNC_entry && m->funcs.at[f].defined;
        funcs += m->funcs.at[f].kind == MG_FUNC_func && m->funcs.at[f].defined;
    }
    if (mg_module_verify(m, &d)) worsen(r, mg_cli_fail(&d, MG_EXIT_INPUT));
    mg_diag_release(&d);
    mg_buf_printf(&r->out, "%s: PTX %u.%u, %s, %u-bit: %u kernels, %u functions, %u instructions, %u distinct\n", label,
                  m->version_major, m->version_minor, mg_name(m, m->target), m->address_size, entries, funcs,
                  m->n_insts, m->forms.n - 1);
    add_unknown(r, m);
    add_unwritten(r, m);
}

/* ---- print ------------------------------------------------------------------------------------- */

static void print(struct ptx_run *r, const char *label, struct mg_module *m)
{
    if (r->many) mg_buf_printf(&r->out, "// %s\n", label);
    if (r->stress) {
        struct mg_diag d = MG_DIAG_INIT;
        mg_stress(m);
        if (mg_module_verify(m, &d)) worsen(r, mg_cli_fail(&d, MG_EXIT_INPUT));
        mg_diag_release(&d);
    }
    mg_ptx_print(m, &r->out);
}

/* ---- cfg, stat, instrument ----------------------------------------------------------------------- */

static void cfg(struct ptx_run *r, const char *label, struct mg_module *m)
{
    if (r->o.json) {
        ptx_cfg_json(m, &r->o, label, &r->json);
        return;
    }
    if (r->many) mg_buf_printf(&r->out, r->o.dot ? "// %s\n" : "%s:\n", label);
    ptx_cfg(m, &r->o, &r->out);
}

static void stat(struct ptx_run *r, const char *label, struct mg_module *m)
{
    if (r->o.json) {
        ptx_stat_json(m, &r->o, label, &r->json);
        return;
    }
    if (r->many) mg_buf_printf(&r->out, "%s:\n", label);
    ptx_stat(m, &r->o, &r->out);
}

static void instrument(struct ptx_run *r, const char *label, struct mg_module *m)
{
    struct mg_diag d = MG_DIAG_INIT;
    if (r->many) mg_buf_printf(&r->out, "// %s\n", label);
    if (ptx_instrument(m, &r->o, &r->out, &d)) worsen(r, mg_cli_fail(&d, MG_EXIT_INPUT));
    mg_diag_release(&d);
}

static const struct ptx_action actions[] = {
    {"check", check, "parse; report errors, unknown opcodes and modifiers, registers read before they are written"},
    {"print", print, "parse and print the PTX as Margay understands it"},
    {"cfg", cfg, "blocks, edges, dominators, loops of each function; data flow of their instructions"},
    {"stat", stat,
     "size, loops, registers, memory operations, opcodes of each function; counts that follow from a launch's shape and arguments"},
    {"instrument", instrument, "print what a device would get under a tool"},
};

/* ---- files ------------------------------------------------------------------------------------- */

static void run_text(struct ptx_run *r, const struct ptx_action *a, const char *label, const char *text, size_t bytes)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_module *m;
    r->n_ptx++;
    if (mg_ptx_parse(text, bytes, label, &m, &d)) {
        worsen(r, mg_cli_fail(&d, MG_EXIT_INPUT));
    } else {
        for (mg_id f = 1; f < m->funcs.n; f++) r->n_wanted += ptx_wants(&r->o, m, f);
        a->run(r, label, m);
        mg_module_free(m);
    }
    mg_diag_release(&d);
}

static void run_image(struct ptx_run *r, const struct ptx_action *a, const char *file, const struct mg_image *im)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < im->n_entries; i++) n += im->entries[i].kind == MG_ENTRY_PTX;
    if (n > 1) r->many = true;
    if (!n) {
        fprintf(stderr, "margay: %s: holds no PTX\n", file);
        worsen(r, MG_EXIT_INPUT);
    }
    for (uint32_t i = 0; i < im->n_entries; i++) {
        const struct mg_image_entry *e = &im->entries[i];
        struct mg_buf label = MG_BUF_INIT;
        if (e->kind != MG_ENTRY_PTX) continue;
        mg_buf_adds(&label, file);
        if (im->kind != MG_IMAGE_PTX) {
            mg_buf_printf(&label, "(%u:sm_%u", e->group, e->sm);
            if (e->suffix) mg_buf_addc(&label, e->suffix);
            mg_buf_addc(&label, ')');
        }
        run_text(r, a, label.at, e->data, e->bytes);
        mg_buf_release(&label);
    }
}

static void run_file(struct ptx_run *r, const struct ptx_action *a, const char *file)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_image *im;
    char *data;
    size_t bytes;
    bool standard_input = !strcmp(file, "-");
    if (standard_input) file = "/dev/stdin";
    if (mg_io_read(file, &data, &bytes, &d)) {
        worsen(r, mg_cli_fail(&d, MG_EXIT_INPUT));
    } else {
        if (standard_input) file = "-";
        if (mg_image_open_bytes(data, bytes, file, &im, &d)) {
            worsen(r, MG_EXIT_INPUT);
        } else {
            run_image(r, a, file, im);
            mg_image_free(im);
        }
        if (d.n_items) worsen(r, mg_cli_fail(&d, MG_EXIT_INPUT));
        free(data);
    }
    mg_diag_release(&d);
}

int cmd_ptx(int argc, char **argv)
{
    int status = MG_EXIT_USAGE;
    struct mg_buf more = MG_BUF_INIT;
    mg_buf_adds(&more, "Actions:\n");
    for (size_t i = 0; i < MG_COUNT_OF(actions); i++)
        mg_buf_printf(&more, "  %-10s %s\n", actions[i].name, actions[i].help);
    mg_buf_adds(
        &more,
        "FILE is PTX text, a fatbin, a cubin that carries its PTX, or an executable; - is standard input. Exit status: 0 well,\n"
        "1 something unknown was found, 3 bad input.\n");
    const struct mg_opt_page page = {"ptx", "ACTION FILE...", "check, print, analyse PTX without a device", more.at};
    struct ptx_run r = {.status = MG_EXIT_OK};
    const struct mg_opt opts[] = {
        MG_OPT_FLAG(0, "stress", &r.stress, "print: rewrite everything that may be rewritten first (for tests)"),
        MG_OPT_STR(0, "kernel", &r.o.kernel, "GLOB", "cfg, stat, instrument: only functions of this name"),
        MG_OPT_FLAG(0, "dot", &r.o.dot, "cfg: for Graphviz"),
        MG_OPT_FLAG(0, "data", &r.o.data,
                    "cfg: each instruction with who wrote what it reads, whether lanes may differ, and its space"),
        MG_OPT_FLAG(0, "json", &r.o.json, "cfg: blocks and instructions, stat: blocks, opcodes and counts, as JSON"),
        MG_OPT_LIST('t', "tool", &r.o.tools, "TOOL[,k=v...]", "instrument: with this tool (blocks)"),
        MG_OPT_U64(0, "sm", &r.o.sm, 0, 999, "N",
                   "instrument: as for a GPU of this compute capability, 90; else as for emu and cpu"),
        MG_OPT_STR(0, "pass", &r.o.pass, "PASS,...",
                   "instrument: run these passes over the module instead: ssa, regs, stress, verify"),
        MG_OPT_STR(0, "dump", &r.o.dump, "PASS",
                   "instrument: print the module after this pass, or after all; plan: what counts blocks, and why so"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) goto out;
    const struct ptx_action *a = NULL;
    for (size_t i = 0; n && i < MG_COUNT_OF(actions); i++)
        if (!strcmp(argv[0], actions[i].name)) a = &actions[i];
    if (!a || n < 2) {
        status = a ? mg_opt_usage(&page, MG_EXIT_USAGE, "%s needs at least one file", a->name)
                   : mg_opt_usage(&page, MG_EXIT_USAGE, n ? "no action '%s'" : "needs an action and files",
                                  n ? argv[0] : "");
        goto out;
    }
    if (!ptx_opts_check(&r.o, a->name, &page)) goto out;
    r.many = n > 2;
    if (r.o.json) {
        mg_json_init(&r.json, &r.out, 1);
        mg_json_obj(&r.json);
        mg_json_key_u64(&r.json, "margay_json", 1);
        mg_json_key(&r.json, "modules");
        mg_json_arr(&r.json);
    }
    for (int i = 1; i < n; i++) run_file(&r, a, argv[i]);
    if (r.o.json) {
        mg_json_end(&r.json, ']');
        mg_json_end(&r.json, '}');
        mg_buf_addc(&r.out, '\n');
    }
    if (r.o.kernel && r.n_ptx && !r.n_wanted) fprintf(stderr, "margay: --kernel %s matches no function\n", r.o.kernel);
    if (mg_cli_out(&r.out)) worsen(&r, MG_EXIT_INPUT);
    status = r.status;
out:
    free(r.o.tools.at);
    mg_buf_release(&r.out);
    mg_buf_release(&more);
    return status;
}
