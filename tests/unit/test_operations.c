/* Decoded operations keep their opcode: two tables are indexed by it, the emulator's functions and the CPU device's
 * code, and this says which operation lacks which. The list of what compiled code calls the emulator for is
 * operations.txt: who adds code for an operation, or an operation without, changes it there. */
#include <glob.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/io.h"
#include "device/cpu/cpu.h"
#include "device/device.h"
#include "device/emu/alu_form.h"
#include "ptx/ptx.h"
#include "test.h"

#define EACH_ISA(isa) for (enum emu_isa isa = EMU_ISA_BASE; isa < EMU_ISA_COUNT; isa++)

MG_TEST(operations_all_have_a_function)
{
    EACH_ISA(isa)
    for (unsigned k = EMU_OP_none + 1; k < EMU_OP_COUNT; k++)
        for (enum emu_elem e = 0; e < EMU_E_COUNT; e++)
            if (!emu_function(k, isa, e, false) || !emu_function(k, isa, e, true))
                mg_test_fail(__FILE__, __LINE__, "%s, isa %d, element %d: the emulator has no function",
                             emu_opcode_name(k), (int)isa, (int)e);
    MG_CHECK(!emu_function(EMU_OP_none, EMU_ISA_BASE, 0, false));
}

/* A row has one number, whatever the vector ISA. */
MG_TEST(operations_rows_are_the_same_on_every_isa)
{
    unsigned n = EMU_OP_COUNT;
    for (const struct alu_row *a; (a = emu_alu_row(n, EMU_ISA_BASE)); n++) EACH_ISA(isa)
        {
            const struct alu_row *b = emu_alu_row(n, isa);
            bool same = b && a->op == b->op && !memcmp(a->t, b->t, sizeof a->t) && a->key == b->key &&
                        a->imm == b->imm && b->fn && emu_function(n, isa, 0, false) == b->fn;
            if (!same)
                mg_test_fail(__FILE__, __LINE__, "row %u, %s, is another one on isa %d", n,
                             mg_op_name((enum mg_op)a->op), (int)isa);
        }
    EACH_ISA(isa) MG_CHECK(!emu_alu_row(n, isa));
    MG_CHECK(n > EMU_OP_COUNT + 1000 && n < UINT16_MAX);
}

static void print_types_without(struct mg_buf *b, enum mg_op op)
{
    bool known[MG_TYPE_COUNT] = {0}, has[MG_TYPE_COUNT] = {0};
    const struct alu_row *r;
    for (unsigned k = EMU_OP_COUNT; (r = emu_alu_row(k, EMU_ISA_AVX512)); k++)
        if (r->op == op) known[r->t[0]] = true, has[r->t[0]] |= cpu_has_code(k, EMU_ISA_AVX512);
    for (unsigned t = 0; t < MG_TYPE_COUNT; t++)
        if (known[t] && !has[t]) mg_buf_printf(b, " %s", t ? mg_type_name((enum mg_type)t) : "(no type)");
}

/* One line an operation without code, then one a PTX opcode: how many forms have code, which types have none. */
static void print_lacks(struct mg_buf *b)
{
    for (unsigned k = EMU_OP_none + 1; k < EMU_OP_COUNT; k++)
        if (cpu_lowered_kind(k) == CPU_CALL) mg_buf_printf(b, "%s: called\n", emu_opcode_name(k));
    for (unsigned op = 0; op < MG_OP_COUNT; op++) {
        unsigned n = 0, with[EMU_ISA_COUNT] = {0};
        const struct alu_row *r;
        for (unsigned k = EMU_OP_COUNT; (r = emu_alu_row(k, EMU_ISA_BASE)); k++) {
            if (r->op != op) continue;
            n++;
            EACH_ISA(isa) with[isa] += cpu_has_code(k, isa);
        }
        if (!n) continue;
        mg_buf_printf(b, "%s: %u forms, in line %u %u %u;", mg_op_name((enum mg_op)op), n, with[0], with[1], with[2]);
        print_types_without(b, (enum mg_op)op);
        mg_buf_adds(b, "\n");
    }
}

MG_TEST(operations_that_compiled_code_calls_are_listed)
{
    struct mg_buf b = MG_BUF_INIT;
    char *want = NULL;
    size_t bytes = 0;
    print_lacks(&b);
    MG_CHECK(!mg_io_read("tests/unit/operations.txt", &want, &bytes, NULL));
    const char *x = b.at, *y = want ? want : "";
    for (unsigned line = 1; *x || *y; line++) {
        size_t n = strcspn(x, "\n"), m = strcspn(y, "\n");
        if (n != m || memcmp(x, y, n)) {
            mg_test_fail(__FILE__, __LINE__, "line %u is \"%.*s\", operations.txt has \"%.*s\"; all of it:\n%s", line,
                         (int)n, x, (int)m, y, b.at);
            break;
        }
        x += n + (x[n] == '\n');
        y += m + (y[m] == '\n');
    }
    mg_buf_release(&b);
    free(want);
}

/* Every operation that is decoded says by its opcode which function runs. */
static unsigned check_kernel(struct mg_dmod *mod, struct mg_dkernel *k, const char *file)
{
    struct mg_fault fault = {0};
    unsigned n = 0;
    if (!emu_kernel_code(k, &fault)) return 0; /* refused: some of the files want that */
    for (uint32_t i = 0; i < k->code->funcs.n; i++) {
        const struct emu_func *fn = k->code->funcs.at[i];
        for (uint32_t j = 0; j < fn->n_ops; j++, n++) {
            const struct emu_op *op = &fn->ops[j];
            emu_alu_fn runs = op->real ? op->real : op->a.fn,
                       known = emu_function(op->opcode, mod->dev->isa, (enum emu_elem)op->elem, op->vec > 1);
            if (runs != known || (!op->ctl && op->opcode == EMU_OP_none))
                mg_test_fail(__FILE__, __LINE__, "%s: operation %u of %s is not what its opcode %u says", file, j,
                             k->name, op->opcode);
        }
    }
    return n;
}

static unsigned check_file(struct mg_device *dev, const char *file)
{
    struct mg_diag diag = MG_DIAG_INIT;
    struct mg_module *m = NULL;
    struct mg_dmod *mod = NULL;
    char *text = NULL;
    size_t bytes = 0;
    unsigned n = 0;
    if (!mg_io_read(file, &text, &bytes, &diag) && !mg_ptx_parse(text, bytes, file, &m, &diag) &&
        !mg_emu_ops.module_load(dev, m, &mod, &diag)) {
        for (uint32_t k = 0; k < mod->n_kernels; k++) n += check_kernel(mod, &mod->kernels[k], file);
        mg_emu_ops.module_unload(mod);
    }
    mg_diag_release(&diag);
    free(text);
    return n;
}

MG_TEST(operations_say_which_function_runs)
{
    glob_t files;
    unsigned n = 0;
    if (glob("tests/exec/*.ptx", 0, NULL, &files)) {
        mg_test_fail(__FILE__, __LINE__, "no tests/exec/*.ptx (run from the root)");
        return;
    }
    for (int check = 0; check < 2; check++) {
        struct mg_device_opts opts = {.size = sizeof opts, .properties = "h200", .workers = 1, .check = check};
        struct mg_diag diag = MG_DIAG_INIT;
        struct mg_device *dev = NULL;
        MG_CHECK(!mg_emu_ops.open(&dev, &opts, &diag));
        for (size_t i = 0; dev && i < files.gl_pathc; i++) n += check_file(dev, files.gl_pathv[i]);
        if (dev) mg_emu_ops.close(dev);
        mg_diag_release(&diag);
    }
    globfree(&files);
    MG_CHECK(n > 5000);
}
