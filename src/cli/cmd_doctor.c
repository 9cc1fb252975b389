/* margay doctor: what works on this machine and what does not, one line each, with what to do about
 * it. Exit 0 when `margay run` can run programs here, 4 when not. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/env.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/place.h"

static const struct mg_opt_page page = {"doctor", "", "say what works here and what does not", NULL};

struct doctor {
    bool json;
    struct mg_buf text;
    struct mg_json j;
}; /* --json: an object a line, in a list */

static void line(struct doctor *d, const char *what, bool good, const char *text)
{
    if (!d->json) {
        mg_buf_printf(&d->text, "%-18s %-4s %s\n", what, good ? "ok" : "--", text);
        return;
    }
    mg_json_obj(&d->j);
    mg_json_key_str(&d->j, "what", what);
    mg_json_key_bool(&d->j, "ok", good);
    mg_json_key_str(&d->j, "text", text);
    mg_json_end(&d->j, '}');
}

static void begin(struct doctor *d, bool json)
{
    *d = (struct doctor){.json = json};
    if (!json) return;
    mg_json_init(&d->j, &d->text, 1);
    mg_json_obj(&d->j);
    mg_json_key_u64(&d->j, "margay_json", 1);
    mg_json_key(&d->j, "checks");
    mg_json_arr(&d->j);
}

/* device: what `margay run` takes; NULL: it cannot run programs. */
static int end(struct doctor *d, const char *device, const char *said)
{
    if (d->json) {
        mg_json_end(&d->j, ']');
        mg_json_key_str(&d->j, "device", device);
        mg_json_end(&d->j, '}');
        mg_buf_addc(&d->text, '\n');
    } else {
        mg_buf_printf(&d->text, "%s\n", said);
    }
    int status = mg_cli_out(&d->text);
    mg_buf_release(&d->text);
    return status ? status : device ? MG_EXIT_OK : MG_EXIT_DEVICE;
}

static bool check_part(struct doctor *d, const char *what, const char *path, const char *missing)
{
    bool good = mg_place_has(path);
    line(d, what, good, good ? path : missing);
    return good;
}

static void check_gpu(struct doctor *d, const struct mg_place *p, bool *answers)
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
        snprintf(text, sizeof text, "no NVIDIA driver");
    line(d, "nvidia device", g.answers, text);
}

static void check_loader(struct doctor *d)
{
    const char *preload = getenv("LD_PRELOAD"), *audit = getenv("LD_AUDIT");
    line(d, "LD_PRELOAD", true, preload && *preload ? preload : "not set: ours are added behind what a program sets");
    if (audit && *audit) line(d, "LD_AUDIT", true, audit);
    if (access("/etc/ld.so.preload", R_OK) == 0)
        line(d, "ld.so.preload", true, "/etc/ld.so.preload is there: what it names comes before our libraries");
}

static void check_environment(struct doctor *d)
{
    char text[PATH_MAX + 200];
    bool good = mg_cache_try(text, sizeof text);
    line(d, "cache folder", good, text);
    for (unsigned e = 0; e < MG_ENV_COUNT; e++)
        if (mg_env_wrong((enum mg_env)e, text, sizeof text)) line(d, "environment", false, text);
}

static void check_tools(struct doctor *d)
{
    static const struct {
        const char *name, *use;
    } tools[] = {
        {"nvcc", "builds CUDA programs; link them with -cudart shared"},
        {"clang", "builds kernels without a CUDA toolkit"},
        {"ptxas", "lets tests compare machine code"},
    };
    for (size_t i = 0; i < MG_COUNT_OF(tools); i++) {
        char command[64], path[4096] = "";
        snprintf(command, sizeof command, "command -v %s 2>/dev/null", tools[i].name);
        FILE *f = popen(command, "r");
        if (f && fgets(path, sizeof path, f)) path[strcspn(path, "\n")] = 0;
        if (f) pclose(f);
        line(d, tools[i].name, path[0], path[0] ? path : tools[i].use);
    }
}

int cmd_doctor(int argc, char **argv)
{
    bool json = false;
    struct doctor d;
    const struct mg_opt opts[] = {MG_OPT_FLAG(0, "json", &json, "as JSON"), MG_OPT_END};
    int status = MG_EXIT_USAGE;
    struct mg_place p;
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (n) return mg_opt_usage(&page, MG_EXIT_USAGE, "takes no operands");
    begin(&d, json);
    if (!mg_place_find(&p)) {
        line(&d, "installation", false, "our own executable cannot be found: is /proc mounted?");
        return end(&d, NULL, "margay run cannot run programs here.");
    }
    bool gpu, good = check_part(&d, "driver library", p.libcuda, "missing: build or install again");
    good &= check_part(&d, "runtime library", p.libcudart, "missing: programs on the CUDA runtime need a GPU");
    check_part(&d, "audit library", p.audit, "missing: `margay run --audit` does not work");
    check_gpu(&d, &p, &gpu);
    check_part(&d, "cpu device", p.cpu, "not built: install llvm-19-dev (or llvm-22-dev) and build again");
    line(&d, "emu device", good, good ? "always there" : "needs the libraries above");
    if (strpbrk(p.lib, ": ")) {
        line(&d, "install path", false, "holds a space or a colon, which LD_PRELOAD cannot name: install elsewhere");
        good = false;
    }
    line(&d, "arithmetic", true,
         "cpu and emu contract unrounded mul and add as ptxas does; margay run --no-contract does not");
    check_environment(&d);
    check_loader(&d);
    check_tools(&d);
    bool cpu = mg_place_has(p.cpu);
    return end(&d,
               gpu     ? "nvidia"
               : !good ? NULL
               : cpu   ? "cpu"
                       : "emu",
               gpu     ? "margay run uses the GPU."
               : !good ? "margay run cannot run programs here."
               : cpu   ? "margay run uses the CPU device; statically linked CUDA runtimes need a GPU."
                       : "margay run uses the emulator; statically linked CUDA runtimes need a GPU.");
}
