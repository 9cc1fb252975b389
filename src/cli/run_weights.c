/* weights=DIR of the tool blocks: the profile of an earlier run becomes a file of block counts, which the tool
 * reads. The file lies in the cache folder under the hash of what it holds, so that equal profiles give equal
 * options, and twins made with them are found again. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/io.h"
#include "base/option.h"
#include "cli/run_tools.h"
#include "store/store.h"

static enum mg_err print_weights(const char *dir, struct mg_buf *out, struct mg_diag *d)
{
    struct mg_recording *p;
    enum mg_err err = mg_recording_open(dir, &p, d);
    if (err) return err;
    for (uint32_t k = 0; k < p->n_kernels; k++)
        for (uint32_t b = 0; b < p->kernels[k].n_blocks; b++)
            if (p->kernels[k].blocks[b].has_threads)
                mg_buf_printf(out, "%s %u %llu\n", p->kernels[k].name, (unsigned)b,
                              (unsigned long long)p->kernels[k].blocks[b].threads);
    mg_recording_free(p);
    return out->n ? MG_ERR_OK : mg_diag_err(d, MG_ERR_INPUT, "%s: no block was counted in this profile", dir);
}

/* Writes the text where its hash says, unless it is there. */
static enum mg_err keep(const struct mg_buf *text, char *path, struct mg_diag *d)
{
    uint8_t hash[32];
    struct stat st;
    mg_sha256_of(text->at, text->n, hash);
    if (!mg_cache_path("weights", hash, true, path))
        return mg_diag_err(d, MG_ERR_STATE, "there is no cache folder to put the weights in");
    if (!stat(path, &st)) return MG_ERR_OK;
    return mg_io_write(path, text->at, text->n, d);
}

enum mg_err mg_run_weights(char **args, struct mg_diag *d)
{
    size_t n;
    const char *at = mg_option_value(*args, strlen(*args), "weights", &n);
    struct stat st;
    char path[PATH_MAX];
    if (!at) return MG_ERR_OK;
    char *dir = mg_xmalloc(n + 1);
    memcpy(dir, at, n);
    dir[n] = 0;
    enum mg_err err = MG_ERR_OK;
    if (!stat(dir, &st) && S_ISDIR(st.st_mode)) {
        struct mg_buf text = MG_BUF_INIT, made = MG_BUF_INIT;
        err = print_weights(dir, &text, d);
        if (!err) err = keep(&text, path, d);
        if (!err) {
            mg_buf_add(&made, *args, (size_t)(at - *args));
            mg_buf_printf(&made, "%s%s", path, at + n);
            free(*args);
            *args = mg_buf_take(&made);
        }
        mg_buf_release(&made);
        mg_buf_release(&text);
    }
    free(dir);
    return err;
}
