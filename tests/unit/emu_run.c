/* See emu_run.h. */
#include "emu_run.h"

#include <stdlib.h>

#include "device/mem.h"
#include "ptx/ptx.h"
#include "test.h"

static struct mg_device *device(void)
{
    static struct mg_device *dev;
    if (dev) return dev;
    struct mg_device_opts o = {.size = sizeof o, .properties = "h200", .workers = 2, .count_positions = true};
    struct mg_diag d = MG_DIAG_INIT;
    mg_mem_init(0);
    if (mg_emu_ops.open(&dev, &o, &d)) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_DEVICE));
    mg_diag_release(&d);
    return dev;
}

struct mg_dmod *emu_load(const char *text)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_dmod *mod = NULL;
    struct mg_module *m = NULL;
    if (mg_ptx_parse(text, strlen(text), "t.ptx", &m, &d) || mg_emu_ops.module_load(device(), m, &mod, &d))
        mg_test_fail(__FILE__, __LINE__, "%s\n%s", mg_diag_first(&d, MG_ERR_INPUT), text);
    mg_diag_release(&d);
    return mod;
}

bool emu_launch(struct mg_dmod *mod, uint32_t grid, uint32_t block, const void *params, uint32_t bytes)
{
    struct mg_launch l = {.kernel = mg_emu_ops.kernel(mod, "k"),
                          .grid = {grid, 1, 1},
                          .block = {block, 1, 1},
                          .params = params,
                          .param_bytes = bytes,
                          .time_limit_ns = 300000000000u};
    struct mg_launch_stats s;
    struct mg_fault f;
    mg_emu_ops.launch(device(), &l, &s, &f);
    if (f.kind) mg_test_fail(__FILE__, __LINE__, "%s", f.text);
    return !f.kind;
}
