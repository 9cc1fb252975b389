/* The CPU device: the emulator's operations with a compiler attached. Opening fails where the plugin
 * or its LLVM is missing; nothing of either is touched before. */
#include "device/cpu/cpu.h"

static enum mg_err open_device(struct mg_device **out, const struct mg_device_opts *opts, struct mg_diag *d)
{
    struct mg_device *dev;
    enum mg_err err = mg_emu_ops.open(&dev, opts, d);
    if (err) return err;
    if (!cpu_tier_open(dev, d)) {
        mg_emu_ops.close(dev);
        return MG_ERR_UNSUPPORTED;
    }
    dev->compiler = &cpu_compiler;
    *out = dev;
    return MG_ERR_OK;
}

static void close_device(struct mg_device *dev)
{
    if (!dev) return;
    emu_pool_free(dev);
    while (dev->mods) emu_module_unload(dev->mods);
    cpu_tier_close(dev);
    mg_emu_ops.close(dev);
}

/* Not where positions in the text are told. */
static bool likes_inlined(const struct mg_device *dev)
{
    return !dev->opts.check && !dev->opts.count_positions;
}

/* Without AVX2 sums with products have no code. */
static bool calls_arithmetic(const struct mg_device *dev)
{
    return dev->isa >= EMU_ISA_AVX2;
}

const struct mg_device_ops *mg_cpu_ops(void)
{
    static struct mg_device_ops ops;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!ops.name) {
        ops = mg_emu_ops;
        ops.open = open_device;
        ops.close = close_device;
        ops.likes_inlined = likes_inlined;
        ops.calls_arithmetic = calls_arithmetic;
        ops.name = "cpu";
    }
    pthread_mutex_unlock(&lock);
    return &ops;
}
