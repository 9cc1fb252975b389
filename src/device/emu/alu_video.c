#include "device/emu/alu_priv.h"
bool alu_video_find(const struct mg_form *f, unsigned n_src, uint32_t key, struct emu_alu_desc *out)
{
    (void)f, (void)n_src, (void)key, (void)out;
    return false;
}
