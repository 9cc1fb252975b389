/* A tool outside of the tree that counts blocks by cells, the plainest way there is: what each thread adds, three times
 * that, and once a warp. */
#include "tool/plugin.h"
#include "view/result.h"

static enum mg_err instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_sites *s = mg_patch_sites(p);
    (void)conf, (void)d;
    for (uint32_t b = 0; b < s->n_blocks; b++) {
        uint32_t cell = mg_patch_site(p, MG_SITE_BLOCK, 0, b, 3, MG_MERGE_SUM, 0);
        mg_cell_update(mg_at_block(p, b), cell, mg_o_imm(1), MG_TIMES);
        mg_cell_update(mg_at_block(p, b), cell + 1, mg_o_imm(3), MG_TIMES);
        mg_cell_update(mg_at_block(p, b), cell + 2, mg_o_imm(1), MG_ONCE);
    }
    return MG_ERR_OK;
}
static const struct mg_tool cells = {
    .name = "cells", .summary = "adds to cells in each block", .instrument = instrument};
MG_TOOL_PLUGIN(cells)
