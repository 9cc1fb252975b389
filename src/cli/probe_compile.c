/* Probes in C to PTX. The header margay/probe.h is in this program, so that no place has to be known; clang
 * reads it from a folder made for the purpose, NVRTC from memory. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/env.h"
#include "base/hash.h"
#include "base/io.h"
#include "cli/probe_compile.h"
#include "probe/probe.h"

static const char header[] =
#include "probe-header.h" /* made by the build */
    ;

/* ---- clang ------------------------------------------------------------------------------------------ */

static bool find_clang(char *path, size_t size)
{
    static const char *const names[] = {"clang",    "clang-19", "clang-18", "clang-17",
                                        "clang-16", "clang-15", "clang-14"};
    const char *given = mg_env(MG_ENV_CLANG);
    if (given && *given) return snprintf(path, size, "%s", given) < (int)size;
    for (unsigned i = 0; i < MG_COUNT_OF(names); i++)
        if (mg_child_find(names[i], NULL, path, size)) return true;
    return false;
}

static enum mg_err use_clang(char *clang, const char *file, struct mg_buf *out, struct mg_diag *d)
{
    char dir[] = "/tmp/margay-probe-XXXXXX", sub[64], inc[64], ptx[64], *text = NULL;
    size_t bytes;
    if (!mkdtemp(dir)) return mg_diag_err(d, MG_ERR_IO, "%s: %s", dir, strerror(errno));
    snprintf(sub, sizeof sub, "%s/margay", dir);
    snprintf(inc, sizeof inc, "%s/margay/probe.h", dir);
    snprintf(ptx, sizeof ptx, "%s/probe.ptx", dir);
    char *argv[] = {clang,
                    "-x",
                    "c",
                    "-std=c17",
                    "--target=nvptx64-nvidia-cuda",
                    "-Xclang",
                    "-target-cpu",
                    "-Xclang",
                    "sm_70",
                    "-O2",
                    "-gline-directives-only",
                    "-gdwarf-2",
                    "-nostdinc",
                    "-Wall",
                    "-I",
                    dir,
                    "-S",
                    "-o",
                    ptx,
                    (char *)(uintptr_t)file,
                    NULL};
    enum mg_err err = mkdir(sub, 0700) ? MG_ERR_IO : mg_io_write(inc, header, sizeof header - 1, d);
    if (!err && !mg_child_run(argv, NULL)) err = mg_diag_err(d, MG_ERR_INPUT, "%s does not compile (%s)", file, clang);
    if (!err) err = mg_io_read(ptx, &text, &bytes, d);
    if (!err) mg_buf_add(out, text, bytes);
    free(text);
    unlink(ptx);
    unlink(inc);
    rmdir(sub);
    rmdir(dir);
    return err;
}

/* ---- NVRTC ------------------------------------------------------------------------------------------- */

struct nvrtc {
    void *lib;
    int (*create)(void **p, const char *text, const char *name, int n, const char *const *headers,
                  const char *const *names);
    int (*compile)(void *p, int n, const char *const *options);
    int (*log_size)(void *p, size_t *n);
    int (*log)(void *p, char *text);
    int (*ptx_size)(void *p, size_t *n);
    int (*ptx)(void *p, char *text);
    int (*destroy)(void **p);
};

static bool open_nvrtc(struct nvrtc *v)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so"};
    struct {
        const char *name;
        void *to;
    } calls[] = {{"nvrtcCreateProgram", &v->create},       {"nvrtcCompileProgram", &v->compile},
                 {"nvrtcGetProgramLogSize", &v->log_size}, {"nvrtcGetProgramLog", &v->log},
                 {"nvrtcGetPTXSize", &v->ptx_size},        {"nvrtcGetPTX", &v->ptx},
                 {"nvrtcDestroyProgram", &v->destroy}};
    for (unsigned i = 0; i < MG_COUNT_OF(names) && !v->lib; i++) v->lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    for (unsigned i = 0; v->lib && i < MG_COUNT_OF(calls); i++) {
        void *f = dlsym(v->lib, calls[i].name);
        if (!f) return false;
        memcpy(calls[i].to, &f, sizeof f);
    }
    return v->lib != NULL;
}

static enum mg_err use_nvrtc(const struct nvrtc *v, const char *file, struct mg_buf *out, struct mg_diag *d)
{
    static const char *const names[] = {"margay/probe.h"}, *const headers[] = {header};
    static const char *const options[] = {"-rdc=true", "-lineinfo", "-std=c++17", "-default-device"};
    char *text;
    size_t bytes, n = 0;
    void *p = NULL;
    enum mg_err err = mg_io_read(file, &text, &bytes, d);
    if (err) return err;
    int rc = v->create(&p, text, file, 1, headers, names);
    if (!rc) rc = v->compile(p, (int)MG_COUNT_OF(options), options);
    if (p && !v->log_size(p, &n) && n > 1) {
        char *log = mg_xcalloc(n + 1, 1);
        if (!v->log(p, log)) fputs(log, stderr);
        free(log);
    }
    if (rc || v->ptx_size(p, &n) || v->ptx(p, mg_buf_room(out, n + 1)))
        err = mg_diag_err(d, MG_ERR_INPUT, "%s does not compile (NVRTC)", file);
    else
        out->n += n ? n - 1 : 0; /* the NUL */
    if (p) v->destroy(&p);
    free(text);
    return err;
}

enum mg_err mg_probe_compile(const char *file, const char *with, struct mg_buf *out, struct mg_diag *d)
{
    char clang[PATH_MAX];
    struct nvrtc v = {0};
    if (access(file, R_OK)) return mg_diag_err(d, MG_ERR_IO, "%s: %s", file, strerror(errno));
    if ((!with || !strcmp(with, "clang")) && find_clang(clang, sizeof clang)) return use_clang(clang, file, out, d);
    if ((!with || !strcmp(with, "nvrtc")) && open_nvrtc(&v)) {
        enum mg_err err = use_nvrtc(&v, file, out, d);
        dlclose(v.lib);
        return err;
    }
    return mg_diag_err(d, MG_ERR_NOT_FOUND,
                       "%s: %s: install clang, or take a probe along that `margay probe compile` made elsewhere", file,
                       with ? "that compiler is not there" : "neither clang nor NVRTC is there");
}

/* ---- for a run ---------------------------------------------------------------------------------------------- */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

/* Place in the cache of what this text compiles to. Other headers than ours are not looked at: a probe that
 * includes some is compiled each time. */
static bool cache_path(const char *file, char *path, bool *fresh)
{
    char *text = NULL, dir[PATH_MAX], sum[33];
    uint8_t hash[32];
    size_t bytes;
    struct mg_sha256 s;
    if (!mg_io_cache_dir("probes", dir, true) || mg_io_read(file, &text, &bytes, NULL)) return false;
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, "#include")); at++) n++;
    mg_sha256_init(&s);
    mg_sha256_add(&s, header, sizeof header);
    mg_sha256_add(&s, file, strlen(file) + 1); /* messages name it */
    mg_sha256_add(&s, text, bytes);
    mg_sha256_end(&s, hash);
    mg_sha256_hex(hash, 16, sum);
    free(text);
    *fresh = n > 1;
    return snprintf(path, PATH_MAX, "%s/%s.ptx", dir, sum) < PATH_MAX;
}

static enum mg_err compiled(const char *file, char *path, struct mg_diag *d)
{
    struct mg_buf ptx = MG_BUF_INIT;
    bool fresh;
    if (!cache_path(file, path, &fresh))
        return mg_diag_err(
            d, MG_ERR_IO,
            access(file, R_OK) ? "%s cannot be read" : "%s: there is no place to keep what it compiles to", file);
    if (!fresh && !access(path, R_OK)) return MG_ERR_OK;
    enum mg_err err = mg_probe_compile(file, NULL, &ptx, d);
    if (!err) err = mg_io_write(path, ptx.at, ptx.n, d);
    mg_buf_release(&ptx);
    return err;
}

enum mg_err mg_probe_program(const char *file, struct mg_buf *text, struct mg_diag *d)
{
    char path[PATH_MAX], *ptx = NULL;
    struct mg_probe *p = NULL;
    struct mg_expr *e = NULL;
    size_t bytes;
    enum mg_err err = MG_ERR_OK;
    if (!ends_with(file, ".ptx"))
        err = compiled(file, path, d);
    else if (!realpath(file, path))
        err = mg_diag_err(d, MG_ERR_IO, "%s: %s", file, strerror(errno));
    if (!err && strpbrk(path, "\"\n")) err = mg_diag_err(d, MG_ERR_INPUT, "%s: a name that cannot be quoted", path);
    if (!err) err = mg_io_read(path, &ptx, &bytes, d);
    if (!err) err = mg_probe_parse(ptx, bytes, path, &p, d);
    if (!err) {
        mg_probe_text(p, path, text);
        err = mg_expr_parse(text->at, text->n, file, &e, d);
        if (err)
            (void)mg_diag_add(d, err, MG_SEV_NOTE, file, 0, 0, NULL, "of MG_MAP and MG_PROBE this was made:\n%s",
                              text->at);
    }
    if (!err) err = mg_expr_join(e, p, file, d);
    mg_expr_free(e);
    mg_probe_free(p);
    free(ptx);
    return err;
}
