#include "cli/place.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/number.h"

bool mg_place_has(const char *path)
{
    return access(path, R_OK) == 0;
}

bool mg_place_has_properties(const char *path)
{
    char line[4096];
    bool found = false;
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        uint64_t id, result;
        const char *end = mg_number_read_u64(line, &id), *rc = end && *end == '\t' ? strchr(end + 1, '\t') : NULL;
        found = rc && (end = mg_number_read_u64(rc + 1, &result)) && *end == '\t' && strchr("-0123456789", end[1]) &&
                end[1];
    }
    if (f) fclose(f);
    return found;
}

bool mg_place_find(struct mg_place *p)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) return false;
    exe[n] = 0;
    for (int up = 0; up < 2; up++) { /* bin/margay -> bin -> prefix */
        char *slash = strrchr(exe, '/');
        if (!slash) return false;
        *slash = 0;
    }
    if (snprintf(p->lib, sizeof p->lib, "%s/lib/margay", exe) >= (int)sizeof p->lib) return false;
    snprintf(p->libcuda, sizeof p->libcuda, "%s/driver/libcuda.so.1", p->lib);
    snprintf(p->libcudart, sizeof p->libcudart, "%s/cudart/libcudart.so.13", p->lib);
    snprintf(p->mpi, sizeof p->mpi, "%s/libmargay-mpi.so", p->lib);
    snprintf(p->forward, sizeof p->forward, "%s/libmargay-forward.so", p->lib);
    snprintf(p->audit, sizeof p->audit, "%s/libmargay-audit.so", p->lib);
    snprintf(p->cpu, sizeof p->cpu, "%s/libmargay-cpu.so", p->lib);
    return true;
}

/* ---- NVIDIA's driver -------------------------------------------------------------------------------------- */

static bool is_ours(const struct mg_place *p, const char *path)
{
    char real[PATH_MAX];
    return realpath(path, real) && !strncmp(real, p->lib, strlen(p->lib));
}

/* The kernel's side of a GPU opens for us: with a driver library there is no need to initialise it, which
 * takes a tenth of a second, and which a profiler that watches every process takes for a program's. Not
 * when the environment may hide the GPU: a number there that is none of a node's is asked of the driver. */
static bool has_device_nodes(void)
{
    char path[32];
    unsigned long n = 0, first = 0;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (access("/dev/nvidiactl", R_OK | W_OK)) return false;
    for (int i = 0; i < 64; i++) {
        snprintf(path, sizeof path, "/dev/nvidia%d", i);
        n += access(path, R_OK | W_OK) == 0;
    }
    if (visible) {
        char *end;
        first = strtoul(visible, &end, 10);
        if (end == visible || *visible < '0' || *visible > '9' || (*end && *end != ',')) return false;
    }
    return first < n;
}

/* Whoever stands in for dlopen (Nsight Compute) may give a library of his own for the driver's, which he
 * has loaded himself. False: no driver is mapped here. */
static bool find_mapped(const struct mg_place *p, char *path, size_t room)
{
    char line[PATH_MAX + 128];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        char *at = strchr(line, '/'), *base = strrchr(line, '/');
        line[strcspn(line, "\n")] = 0;
        found = base && !strncmp(base, "/libcuda.so", 11) && !is_ours(p, at);
        if (found) snprintf(path, room, "%s", at);
    }
    if (f) fclose(f);
    return found;
}

static bool try_driver(const struct mg_place *p, const char *name, bool quick, struct mg_gpu *g)
{
    void *h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    struct link_map *map = NULL;
    if (!h) return false;
    const char *path = dlinfo(h, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] ? map->l_name : name;
    char mapped[PATH_MAX];
    const char *base = strrchr(path, '/');
    if (strncmp(base ? base + 1 : path, "libcuda.so", 10) && find_mapped(p, mapped, sizeof mapped)) {
        path = mapped;
        h = dlmopen(LM_ID_BASE, path, RTLD_NOW | RTLD_LOCAL); /* dlopen past whoever stands in for it */
        if (!h) return false;
    }
    if (is_ours(p, path)) return false;
    snprintf(g->path, sizeof g->path, "%s", path);
    g->answers = quick && has_device_nodes();
    if (g->answers) return true;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(h, "cuInit");
    int (*count)(int *) = (int (*)(int *))dlsym(h, "cuDeviceGetCount");
    int (*name_of)(char *, int, int) = (int (*)(char *, int, int))dlsym(h, "cuDeviceGetName");
    int (*version)(int *) = (int (*)(int *))dlsym(h, "cuDriverGetVersion");
    g->rc = init ? init(0) : -1;
    if (version) version(&g->driver_version);
    if (!g->rc && count) g->rc = count(&g->n_devices);
    if (!g->rc && g->n_devices > 0 && name_of) name_of(g->name, sizeof g->name - 1, 0);
    g->answers = !g->rc && g->n_devices > 0;
    return g->answers;
}

static void probe_here(const struct mg_place *p, bool quick, struct mg_gpu *g)
{
    static const char *const names[] = {
        "libcuda.so.1",          "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
        "/usr/lib/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1",          "/run/opengl-driver/lib/libcuda.so.1",
    };
    for (size_t i = 0; i < MG_COUNT_OF(names); i++)
        if (try_driver(p, names[i], quick, g)) return;
}

void mg_gpu_probe(const struct mg_place *p, bool quick, struct mg_gpu *out)
{
    int fds[2];
    memset(out, 0, sizeof *out);
    if (pipe(fds)) return;
    pid_t pid = fork();
    if (pid == 0) {
        struct mg_gpu g = {0};
        close(fds[0]);
        probe_here(p, quick, &g);
        ssize_t n = write(fds[1], &g, sizeof g);
        _exit(n == (ssize_t)sizeof g ? 0 : 1);
    }
    close(fds[1]);
    size_t have = 0;
    while (pid > 0 && have < sizeof *out) {
        ssize_t n = read(fds[0], (char *)out + have, sizeof *out - have);
        if (n == 0 || (n < 0 && errno != EINTR)) break;
        have += n > 0 ? (size_t)n : 0;
    }
    close(fds[0]);
    if (have < sizeof *out) memset(out, 0, sizeof *out);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}
