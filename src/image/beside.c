/* Finds PTX on disk by machine code. Two places are looked at:
 *
 *   CACHE/ptx/<SHA-256 of the cubin>.ptx    kept by our ptxas wrapper: exact by construction
 *   Triton's cache folders                  <kernel>.cubin with the same bytes, <kernel>.ptx beside it; a
 *                                           .ttgir beside both says that one compilation made them all
 *
 * A .ptx that merely lies beside a .cubin elsewhere is not believed: nothing says that they belong
 * together. Only bare cubins are looked up: kernels of libraries come in fatbins, many and large.
 * Not here: PTX inside the cubin (image.c) and PTX of compilers inside the process (known.c). */
#include "image/beside.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "image/image.h"

enum { DEPTH = 3 }; /* inductor: torchinductor_<user>/triton/<device>/<hash>/ */

/* ---- our own cache ---------------------------------------------------------------------------------- */

static bool cache_path(const void *cubin, size_t bytes, char path[PATH_MAX], bool make)
{
    char dir[PATH_MAX], name[65];
    uint8_t id[32];
    struct stat st;
    if (!mg_io_cache_dir("ptx", dir, make) || (!make && stat(dir, &st))) return false;
    mg_sha256_of(cubin, bytes, id);
    mg_sha256_hex(id, sizeof id, name);
    return snprintf(path, PATH_MAX, "%s/%s.ptx", dir, name) < PATH_MAX;
}

enum mg_err mg_beside_keep(const void *cubin, size_t bytes, const char *ptx, size_t ptx_bytes, struct mg_diag *d)
{
    char path[PATH_MAX];
    if (!cache_path(cubin, bytes, path, true))
        return mg_diag_err(d, MG_ERR_IO, "no folder for the cache: set MARGAY_CACHE or HOME");
    return mg_io_write(path, ptx, ptx_bytes, d);
}

/* ---- Triton's caches --------------------------------------------------------------------------------- */

struct search {
    const void *cubin;
    size_t bytes;
    char kernel[NAME_MAX - 16];
    char *ptx;
    size_t ptx_bytes;
};

/* Does this folder hold the very cubin, and the PTX of its compilation? */
static bool look_into(struct search *s, const char *dir)
{
    char path[PATH_MAX];
    struct stat st;
    char *data = NULL;
    size_t n = 0;
    if (snprintf(path, sizeof path, "%s/%s.ttgir", dir, s->kernel) >= (int)sizeof path || access(path, R_OK))
        return false;
    snprintf(path, sizeof path, "%s/%s.cubin", dir, s->kernel);
    if (stat(path, &st) || (size_t)st.st_size < s->bytes || mg_io_read(path, &data, &n, NULL)) return false;
    bool same = n >= s->bytes && !memcmp(data, s->cubin, s->bytes);
    free(data);
    snprintf(path, sizeof path, "%s/%s.ptx", dir, s->kernel);
    return same && mg_io_read(path, &s->ptx, &s->ptx_bytes, NULL) == MG_ERR_OK;
}

static bool search_tree(struct search *s, const char *dir, int depth)
{
    char path[PATH_MAX];
    bool hit = look_into(s, dir);
    DIR *d = hit || !depth ? NULL : opendir(dir);
    for (struct dirent *e; d && !hit && (e = readdir(d));)
        if (e->d_name[0] != '.' && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) &&
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name) < (int)sizeof path)
            hit = search_tree(s, path, depth - 1);
    if (d) closedir(d);
    return hit;
}

static void keep_name(void *user, const char *name)
{
    struct search *s = user;
    if (!s->kernel[0] && strlen(name) < sizeof s->kernel && !strchr(name, '/')) strcpy(s->kernel, name);
}

static char *find_triton(const void *cubin, size_t bytes, size_t *ptx_bytes)
{
    struct search s = {.cubin = cubin, .bytes = bytes};
    char home[PATH_MAX], inductor[PATH_MAX];
    const char *dir = getenv("TRITON_CACHE_DIR"), *h = getenv("HOME"), *t = getenv("TMPDIR"), *user = getenv("USER");
    snprintf(home, sizeof home, "%s/.triton/cache", h ? h : "/root");
    snprintf(inductor, sizeof inductor, "%s/torchinductor_%s/triton", t ? t : "/tmp", user ? user : "root");
    mg_cubin_kernels(cubin, bytes, keep_name, &s);
    if (s.kernel[0] && ((dir && search_tree(&s, dir, 1)) || search_tree(&s, home, 1) ||
                        ((dir = getenv("TORCHINDUCTOR_CACHE_DIR")) && search_tree(&s, dir, DEPTH)) ||
                        search_tree(&s, inductor, DEPTH - 1)))
        *ptx_bytes = s.ptx_bytes;
    return s.ptx;
}

char *mg_beside_find(const void *cubin, size_t bytes, size_t *ptx_bytes)
{
    char path[PATH_MAX], *ptx = NULL;
    if (cache_path(cubin, bytes, path, false) && mg_io_read(path, &ptx, ptx_bytes, NULL) == MG_ERR_OK) return ptx;
    return find_triton(cubin, bytes, ptx_bytes);
}
