/* margay doctor: what works on this machine and what does not, one line each, with what to do about
 * it. Exit 0 when `margay run` can run programs here, 4 when not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/place.h"

static const struct mg_opt_page page = {"doctor", "", "say what works here and what does not", NULL};

static void line(const char *what, bool good, const char *text)
{
    printf("%-18s %-4s %s\n", what, good ? "ok" : "--", text);
}

static bool check_part(const char *what, const char *path, const char *missing)
{
    bool good = mg_place_has(path);
    line(what, good, good ? path : missing);
    return good;
}

static void check_gpu(const struct mg_place *p, bool *answers)
{
    struct mg_gpu g;
    char text[4600];
    mg_gpu_probe(p, false, &g);
    *answers = g.answers;
    if (g.answers)
        snprintf(text, sizeof text, "%s, driver %d.%d, %d device%s (%s)", g.name, g.driver_version / 1000,
                 g.driver_version % 1000 / 10, g.n_devices, g.n_devices == 1 ? "" : "s", g.path);
    else if (g.path[0])
        snprintf(text, sizeof text, "%s is there but answers %d and %d devices", g.path, g.rc, g.n_devices);
    else
        snprintf(text, sizeof text, "no NVIDIA driver: programs run on the emulator");
    line("nvidia device", g.answers, text);
}

static void check_loader(void)
{
    const char *preload = getenv("LD_PRELOAD"), *audit = getenv("LD_AUDIT");
    line("LD_PRELOAD", true, preload && *preload ? preload : "not set: ours are added behind what a program sets");
    if (audit && *audit)
        line("LD_AUDIT", true, audit);
    if (access("/etc/ld.so.preload", R_OK) == 0)
        line("ld.so.preload", true, "/etc/ld.so.preload is there: what it names comes before our libraries");
}

static void check_tools(void)
{
    static const struct { const char *name, *use; } tools[] = {
        {"nvcc", "builds CUDA programs; link them with -cudart shared"},
        {"clang", "builds kernels without a CUDA toolkit"},
        {"ptxas", "lets tests compare machine code"},
    };
    for (size_t i = 0; i < MG_COUNT_OF(tools); i++) {
        char command[64], path[4096] = "";
        snprintf(command, sizeof command, "command -v %s 2>/dev/null", tools[i].name);
        FILE *f = popen(command, "r");
        if (f && fgets(path, sizeof path, f))
            path[strcspn(path, "\n")] = 0;
        if (f)
            pclose(f);
        line(tools[i].name, path[0], path[0] ? path : tools[i].use);
    }
}

int cmd_doctor(int argc, char **argv)
{
    const struct mg_opt opts[] = {MG_OPT_END};
    int status = MG_EXIT_USAGE;
    struct mg_place p;
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0)
        return status;
    if (n)
        return mg_opt_usage(&page, MG_EXIT_USAGE, "takes no operands");
    if (!mg_place_find(&p)) {
        line("installation", false, "our own executable cannot be found: is /proc mounted?");
        return MG_EXIT_DEVICE;
    }
    bool gpu, good = check_part("driver library", p.libcuda, "missing: build or install again");
    good &= check_part("runtime library", p.libcudart, "missing: programs on the CUDA runtime need a GPU");
    check_part("audit library", p.audit, "missing: `margay run --audit` does not work");
    check_gpu(&p, &gpu);
    check_part("cpu device", p.cpu, "not built: install llvm-19-dev (or llvm-22-dev) and build again");
    line("emu device", good, good ? "always there" : "needs the libraries above");
    if (strpbrk(p.lib, ": ")) {
        line("install path", false, "holds a space or a colon, which LD_PRELOAD cannot name: install elsewhere");
        good = false;
    }
    line("arithmetic", true, "cpu and emu contract unrounded mul and add as ptxas does; margay run --no-contract does not");
    check_loader();
    check_tools();
    puts(gpu ? "margay run uses the GPU." : !good ? "margay run cannot run programs here." : mg_place_has(p.cpu) ? "margay run uses the CPU device; statically linked CUDA runtimes need a GPU." :
                                                  "margay run uses the emulator; statically linked CUDA runtimes need a GPU.");
    return gpu || good ? MG_EXIT_OK : MG_EXIT_DEVICE;
}
