/* The emulator device: struct mg_device_ops over load, decode and launch. */
#include "device/emu/emu.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "device/defined.h"
#include "device/mem.h"

static enum mg_err open_device(struct mg_device **out, const struct mg_device_opts *opts, struct mg_diag *d)
{
    struct mg_device *dev = calloc(1, sizeof *dev);
    if (!dev || !mg_mem_init(0)) {
        free(dev);
        return mg_diag_err(d, MG_ERR_NO_MEMORY, "no address space for device memory");
    }
    if (opts) dev->opts = *opts;
    if (dev->opts.check && !mg_defined_begin()) {
        free(dev);
        return mg_diag_err(d, MG_ERR_NO_MEMORY, "no address space for --check");
    }
    dev->properties = opts && opts->properties ? strdup(opts->properties) : NULL;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    dev->n_workers = dev->opts.workers ? dev->opts.workers : cores > 0 ? (uint32_t)cores : 1;
    cpu_set_t cpus;
    dev->n_cpus = sched_getaffinity(0, sizeof cpus, &cpus) ? 0 : (uint32_t)CPU_COUNT(&cpus);
    dev->n_sms = 132;
    const char *apart = mg_env(MG_ENV_APART);
    dev->apart = apart ? strtoull(apart, NULL, 0) : 0;
    if (!dev->opts.heap_bytes) dev->opts.heap_bytes = 8u << 20;
    if (!dev->opts.printf_bytes) dev->opts.printf_bytes = 1u << 20;
    dev->isa = emu_isa_best();
    dev->next_seq = 1;
    dev->rooms = calloc(dev->n_workers, sizeof *dev->rooms);
    if (!dev->rooms) {
        free(dev->properties);
        free(dev);
        return mg_diag_err(d, MG_ERR_NO_MEMORY, "no memory for a device");
    }
    pthread_mutex_init(&dev->lock, NULL);
    *out = dev;
    return MG_ERR_OK;
}

static void close_device(struct mg_device *dev)
{
    if (!dev) return;
    emu_pool_free(dev);
    while (dev->mods) emu_module_unload(dev->mods);
    for (uint32_t k = 0; k < dev->n_workers; k++) emu_room_put(dev, k, NULL);
    free(dev->rooms);
    mg_buf_release(&dev->print);
    mg_map_release(&dev->strays);
    free(atomic_load(&dev->trace));
    free(dev->properties);
    pthread_mutex_destroy(&dev->lock);
    free(dev);
}

static const struct mg_module *module_ir(const struct mg_dmod *mod)
{
    return mod->ir;
}

static struct mg_dkernel *find_kernel(struct mg_dmod *mod, const char *name)
{
    for (uint32_t i = 0; i < mod->n_kernels; i++)
        if (!strcmp(mod->kernels[i].name, name)) return &mod->kernels[i];
    return NULL;
}

static void kernel_info(const struct mg_dkernel *ck, struct mg_kernel_info *out)
{
    struct mg_dkernel *k = (struct mg_dkernel *)ck;
    emu_kernel_sizes(k);
    const struct mg_func *f = &k->mod->ir->funcs.at[k->func];
    uint32_t threads = 1;
    for (int i = 0; i < 3; i++) threads *= f->maxntid[i] ? f->maxntid[i] : f->reqntid[i] ? f->reqntid[i] : 1;
    *out = (struct mg_kernel_info){
        .name = k->name,
        .n_params = k->n_params,
        .param_bytes = k->param_bytes,
        .param_offsets = k->param_offsets,
        .param_sizes = k->param_sizes,
        .static_shared_bytes = k->static_shared,
        .local_bytes = k->local_bytes,
        .const_bytes = k->const_bytes,
        .registers = k->registers,
        .max_threads = f->maxntid[0] || f->reqntid[0] ? threads : 1024,
        .func = f,
    };
}

static enum mg_err find_global(struct mg_dmod *mod, const char *name, uint64_t *address, uint64_t *bytes)
{
    mg_id v = mg_module_find_var(mod->ir, name);
    if (!v || !mod->globals[v].address) return MG_ERR_NOT_FOUND;
    if (address) *address = mod->globals[v].address;
    if (bytes) *bytes = mod->globals[v].bytes;
    return MG_ERR_OK;
}

static uint64_t function_address(struct mg_dmod *mod, const char *name)
{
    mg_id f = mg_module_find_func(mod->ir, name);
    if (f && mod->ir->funcs.at[f].def) f = mod->ir->funcs.at[f].def;
    return f && mod->ir->funcs.at[f].defined ? mod->functions + (uint64_t)f * EMU_FUNC_STRIDE : 0;
}

static void set_trace(struct mg_device *dev, const struct mg_observe_opts *opts)
{
    struct mg_observe_opts *copy = NULL;
    if (opts && opts->fn && (copy = calloc(1, sizeof *copy))) *copy = *opts;
    free(atomic_exchange(&dev->trace, copy)); /* between launches only: running ones keep the old pointer */
}

static enum mg_err prepare(struct mg_dkernel *k, struct mg_fault *fault)
{
    struct mg_fault f = {0};
    bool ok = emu_kernel_code(k, &f);
    if (fault) *fault = f;
    return ok ? MG_ERR_OK : f.kind == MG_FAULT_UNSUPPORTED ? MG_ERR_UNSUPPORTED : MG_ERR_DEVICE;
}

const struct mg_device_ops mg_emu_ops = {
    .name = "emu",
    .open = open_device,
    .close = close_device,
    .module_load = emu_module_load,
    .module_unload = emu_module_unload,
    .module_share = emu_module_share,
    .module_ir = module_ir,
    .kernel = find_kernel,
    .kernel_info = kernel_info,
    .global = find_global,
    .function_address = function_address,
    .launch = emu_launch_run,
    .trace = set_trace,
    .positions = emu_positions,
    .prepare = prepare,
};
