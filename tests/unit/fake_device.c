/* See fake_device.h. */
#include "fake_device.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "device/mem.h"

int fake_launches;

const char fake_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter = 7;\n"
    ".visible .const .align 4 .u32 table[4];\n"
    ".visible .entry add(.param .u64 p, .param .u32 n, .param .u32 inc)\n{\n ret;\n}\n" /* p[i] += inc */
    ".visible .entry mul(.param .u64 p, .param .u32 n, .param .u32 by)\n{\n ret;\n}\n"  /* p[i] *= by */
    ".visible .entry nap(.param .u32 ms)\n{\n ret;\n}\n"
    ".visible .entry await(.param .u64 p)\n{\n ret;\n}\n" /* until *p != 0 */
    ".visible .entry fault()\n{\n ret;\n}\n"
    ".visible .entry refused()\n{\n ret;\n}\n"
    ".visible .entry big() .maxntid 128, 1, 1\n{\n ret;\n}\n";

struct mg_device {
    struct mg_device_opts opts;
};
struct mg_dkernel {
    struct mg_dmod *mod;
    const char *name;
    const struct mg_func *func;
    uint32_t offsets[8], sizes[8];
};
struct mg_dmod {
    struct mg_module *ir;
    uint64_t counter, table;
    struct mg_dkernel kernels[16];
    uint32_t n;
};

static enum mg_err open_fake(struct mg_device **out, const struct mg_device_opts *opts, struct mg_diag *d)
{
    (void)d;
    *out = calloc(1, sizeof **out);
    (*out)->opts = *opts;
    return MG_ERR_OK;
}
static void close_fake(struct mg_device *dev)
{
    free(dev);
}

static enum mg_err load(struct mg_device *dev, struct mg_module *ir, struct mg_dmod **out, struct mg_diag *d)
{
    (void)dev, (void)d;
    struct mg_dmod *m = calloc(1, sizeof *m);
    m->ir = ir;
    m->counter = mg_mem_alloc(4, 0, MG_ALLOC_GLOBAL);
    m->table = mg_mem_alloc(16, 0, MG_ALLOC_CONST);
    *(uint32_t *)(uintptr_t)m->counter = 7;
    for (uint32_t i = 1; i < ir->funcs.n && m->n < 16; i++) {
        const struct mg_func *f = &ir->funcs.at[i];
        if (f->kind != MG_FUNC_entry) continue;
        struct mg_dkernel *k = &m->kernels[m->n++];
        *k = (struct mg_dkernel){.mod = m, .name = mg_name(ir, f->name), .func = f};
        for (uint32_t p = 0; p < f->n_params && p < 8; p++) {
            k->offsets[p] = (uint32_t)mg_func_param_offset(f, ir->vars.at, p);
            k->sizes[p] = (uint32_t)mg_var_bytes(&ir->vars.at[f->first_param + p]);
        }
    }
    *out = m;
    return MG_ERR_OK;
}
static void unload(struct mg_dmod *m)
{
    mg_mem_free(m->counter);
    mg_mem_free(m->table);
    mg_module_free(m->ir);
    free(m);
}
static const struct mg_module *ir_of(const struct mg_dmod *m)
{
    return m->ir;
}

static struct mg_dkernel *kernel(struct mg_dmod *m, const char *name)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (!strcmp(m->kernels[i].name, name)) return &m->kernels[i];
    return NULL;
}

static void info(const struct mg_dkernel *k, struct mg_kernel_info *out)
{
    const struct mg_func *f = k->func;
    *out = (struct mg_kernel_info){
        .name = k->name,
        .n_params = f->n_params,
        .param_bytes = (uint32_t)f->param_bytes,
        .param_offsets = k->offsets,
        .param_sizes = k->sizes,
        .registers = 32,
        .static_shared_bytes = 1024,
        .func = f,
        .max_threads = f->maxntid[0] ? f->maxntid[0] : 1024,
    };
}

static enum mg_err global(struct mg_dmod *m, const char *name, uint64_t *p, uint64_t *n)
{
    bool counter = !strcmp(name, "counter"), table = !strcmp(name, "table");
    *p = counter ? m->counter : m->table;
    *n = counter ? 4 : 16;
    return counter || table ? MG_ERR_OK : MG_ERR_NOT_FOUND;
}
static uint64_t function_address(struct mg_dmod *m, const char *name)
{
    return kernel(m, name) ? 4096 : 0;
}

static void launch(struct mg_device *dev, const struct mg_launch *l, struct mg_launch_stats *stats,
                   struct mg_fault *fault)
{
    struct {
        uint64_t p;
        uint32_t n, by;
    } a = {0};
    const char *name = l->kernel->name;
    stats->start_ns = mg_now_ns();
    __atomic_add_fetch(&fake_launches, 1, __ATOMIC_RELAXED);
    memcpy(&a, l->params, MG_MIN(sizeof a, l->param_bytes));
    uint32_t *v = (uint32_t *)(uintptr_t)a.p;
    if (!strcmp(name, "add")) {
        for (uint32_t i = 0; i < a.n; i++) __atomic_add_fetch(&v[i], a.by, __ATOMIC_ACQ_REL);
    } else if (!strcmp(name, "mul")) {
        for (uint32_t i = 0; i < a.n; i++) v[i] *= a.by;
    } else if (!strcmp(name, "nap")) {
        struct timespec t = {0, (long)(uint32_t)a.p * 1000000};
        nanosleep(&t, NULL);
        if (dev->opts.print) dev->opts.print(dev->opts.print_user, "", 0);
    } else if (!strcmp(name, "await")) {
        while (!__atomic_load_n(v, __ATOMIC_ACQUIRE) && !*l->cancel) nanosleep(&(struct timespec){0, 100000}, NULL);
    } else if (!strcmp(name, "fault")) {
        fault->kind = MG_FAULT_ADDRESS;
        strcpy(fault->text, "fake fault");
    }
    stats->end_ns = mg_now_ns();
}

static enum mg_err prepare(struct mg_dkernel *k, struct mg_fault *fault)
{
    if (strcmp(k->name, "refused")) return MG_ERR_OK;
    fault->kind = MG_FAULT_UNSUPPORTED;
    return MG_ERR_UNSUPPORTED;
}

const struct mg_device_ops fake_ops = {
    .name = "fake",
    .open = open_fake,
    .close = close_fake,
    .module_load = load,
    .module_unload = unload,
    .module_ir = ir_of,
    .kernel = kernel,
    .kernel_info = info,
    .global = global,
    .function_address = function_address,
    .launch = launch,
    .prepare = prepare,
};
