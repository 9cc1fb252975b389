/* Tools of the benchmark: the same counts as the tool blocks takes, by probes that are put in as written,
 * without any thought of which counters could be spared. */
#include "probes.h"

#include <string.h>

/* A register of each thread for every block, to which 1 is added where the block begins. */
static enum mg_err sums(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    for (uint32_t b = 0; b < mg_patch_sites(p)->n_blocks; b++) {
        uint32_t cell = mg_patch_site(p, MG_SITE_BLOCK, 0, b, 1, MG_MERGE_SUM, 0);
        mg_sum_add(mg_at_block(p, b), mg_patch_sum(p, cell), mg_o_imm(1));
    }
    return MG_ERR_OK;
}

/* One register of each thread for the whole kernel. */
static enum mg_err one_sum(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    uint32_t sum = mg_patch_sum(p, mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 1, MG_MERGE_SUM, 0));
    for (uint32_t b = 0; b < mg_patch_sites(p)->n_blocks; b++) mg_sum_add(mg_at_block(p, b), sum, mg_o_imm(1));
    return MG_ERR_OK;
}

/* A cell for every block, in memory: once a warp. */
static enum mg_err cells(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    for (uint32_t b = 0; b < mg_patch_sites(p)->n_blocks; b++)
        mg_cell_update(mg_at_block(p, b), mg_patch_site(p, MG_SITE_BLOCK, 0, b, 1, MG_MERGE_SUM, 0), mg_o_imm(1), MG_TIMES);
    return MG_ERR_OK;
}

static const struct mg_tool probes[] = {
    {.name = "probe-sum", .instrument = one_sum}, {.name = "probe-sums", .instrument = sums}, {.name = "probe-cells", .instrument = cells},
};

const struct mg_tool *probe_find(const char *name)
{
    for (unsigned i = 0; i < MG_COUNT_OF(probes); i++)
        if (!strcmp(probes[i].name, name)) return &probes[i];
    return NULL;
}
