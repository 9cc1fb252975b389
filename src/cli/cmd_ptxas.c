/* margay, started under the name ptxas: the assembler of programs that compile kernels by running it
 * (XLA is one). `margay run` puts lib/margay/tools in front of PATH; there, ptxas is a link to us.
 *
 *   ptxas IN.ptx -o OUT ... ──► the real ptxas, with the same words ──► IN.ptx kept under OUT's hash
 *
 * Results, output and exit status are the real one's; what cannot be kept only leaves those kernels
 * native, which the coverage line says. */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/cli.h"
#include "image/beside.h"
#include "image/image.h"

enum { NOT_FOUND = 127 };

static bool runs(const char *path, const struct stat *self)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK) &&
           (st.st_dev != self->st_dev || st.st_ino != self->st_ino);
}

/* Of the NVIDIA wheels beside the Python packages that the calling process has loaded. */
static bool find_in_wheels(const struct stat *self, char *out)
{
    char line[PATH_MAX + 128], maps[64];
    bool found = false;
    snprintf(maps, sizeof maps, "/proc/%d/maps", (int)getppid());
    FILE *f = fopen(maps, "r");
    while (f && !found && fgets(line, sizeof line, f)) {
        char *path = strchr(line, '/'), *end = path ? strstr(path, "-packages/") : NULL;
        if (!end) continue;
        glob_t g;
        strcpy(end, "-packages");
        if (strlen(path) + 32 < sizeof line - (size_t)(path - line)) strcat(path, "/nvidia/*/bin/ptxas");
        if (glob(path, 0, NULL, &g)) continue;
        for (size_t i = 0; i < g.gl_pathc && !found; i++)
            if ((found = runs(g.gl_pathv[i], self))) snprintf(out, PATH_MAX, "%s", g.gl_pathv[i]);
        globfree(&g);
    }
    if (f) fclose(f);
    return found;
}

/* The next ptxas in PATH that is not we ourselves, else the toolkit's, else a wheel's. */
static bool find_real(char *out)
{
    struct stat self = {0};
    const char *path = getenv("PATH");
    if (stat("/proc/self/exe", &self)) return false;
    for (const char *at = path ? path : ""; *at;) {
        size_t n = strcspn(at, ":");
        if (n && snprintf(out, PATH_MAX, "%.*s/ptxas", (int)n, at) < PATH_MAX && runs(out, &self)) return true;
        at += n + (at[n] == ':');
    }
    const char *home = getenv("CUDA_HOME");
    if (home && snprintf(out, PATH_MAX, "%s/bin/ptxas", home) < PATH_MAX && runs(out, &self)) return true;
    snprintf(out, PATH_MAX, "/usr/local/cuda/bin/ptxas");
    return runs(out, &self) || find_in_wheels(&self, out);
}

/* The one input that is PTX, and the output; false: this call makes no such pair. */
static bool find_pair(int argc, char **argv, const char **in, const char **out)
{
    *in = *out = NULL;
    for (int i = 1; i < argc; i++) {
        if ((!strcmp(argv[i], "-o") || !strcmp(argv[i], "--output-file")) && i + 1 < argc)
            *out = argv[++i];
        else if (!strncmp(argv[i], "--output-file=", 14))
            *out = argv[i] + 14;
        else if (argv[i][0] != '-' && !access(argv[i], R_OK)) {
            if (*in) return false;
            *in = argv[i];
        }
    }
    return *in && *out;
}

static void keep_pair(const char *in, const char *out)
{
    char *ptx = NULL, *code = NULL;
    size_t ptx_bytes = 0, bytes = 0;
    struct mg_image *im = NULL;
    if (!mg_io_read(in, &ptx, &ptx_bytes, NULL) && memmem(ptx, ptx_bytes, ".version", 8) &&
        !mg_io_read(out, &code, &bytes, NULL) && !mg_image_open_bytes(code, bytes, NULL, &im, NULL)) {
        bool has = false;
        for (uint32_t i = 0; i < im->n_entries; i++) has |= im->entries[i].kind == MG_ENTRY_PTX;
        for (uint32_t i = 0; i < im->n_entries && !has; i++)
            if (im->entries[i].kind == MG_ENTRY_CUBIN &&
                mg_beside_keep(im->entries[i].data, im->entries[i].bytes, ptx, ptx_bytes, NULL))
                break; /* those kernels run native, with the reason "no PTX" on record */
    }
    mg_image_free(im);
    free(ptx);
    free(code);
}

int cmd_ptxas(int argc, char **argv)
{
    char real[PATH_MAX];
    const char *in, *out;
    int status = 0;
    if (!find_real(real)) {
        fprintf(stderr, "margay: no ptxas stands behind ours in PATH, in CUDA_HOME or in the NVIDIA wheels\n");
        return NOT_FOUND;
    }
    argv[0] = real;
    pid_t pid = find_pair(argc, argv, &in, &out) ? fork() : 0;
    if (!pid || pid < 0) { /* nothing to keep, or no process to spare: just the real one */
        execv(real, argv);
        fprintf(stderr, "margay: %s: %s\n", real, strerror(errno));
        _exit(NOT_FOUND);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    if (!WEXITSTATUS(status)) keep_pair(in, out);
    return WEXITSTATUS(status);
}
