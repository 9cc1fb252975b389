/* margay capture: `margay run -t none` with what the program has its device do written into DIR (src/inject/capture).
 */
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/vec.h"
#include "cli/cli.h"

enum { STATUS_USAGE = 120 }; /* as of run */

static const struct mg_opt_page page = {
    "capture", "[OPTIONS] -- APP [ARGS...]",
    "record a program's work on the device, to run it again without the program",
    "DIR gets capture-PID.mgc for every process that uses CUDA, and a profile of the run. Next: margay replay DIR.\n"
    "Results are hashed behind launches for as long as that takes at most half of the rest's time (auto), behind every\n"
    "launch (all), or only before memory is freed and at the end (end).\n"
    "Exit status: as of margay run.\n"};

int cmd_capture(int argc, char **argv)
{
    const char *dir = NULL, *device = NULL, *properties = NULL, *check = "auto", *workers = NULL, *devices = NULL;
    bool quiet = false;
    int status = STATUS_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_STR('o', "output", &dir, "DIR", "write the capture there (margay-APP-PID)"),
        MG_OPT_DEVICE(&device),
        MG_OPT_PROPERTIES(&properties),
        MG_OPT_STR(
            0, "workers", &workers, "N",
            "threads that run kernels (cpu, emu): with 1, races between CTAs go the same way in every replay with 1"),
        MG_OPT_STR(0, "devices", &devices, "N", "show the program so many devices, up to 16 (cpu, emu; 1)"),
        MG_OPT_CHOICE(0, "check", &check, "auto|all|end", "how often results are hashed (auto)"),
        MG_OPT_QUIET(&quiet),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, MG_OPT_STOP_AT_FIRST, argc, argv, &status);
    if (n < 0) return status;
    if (!n) return mg_opt_usage(&page, STATUS_USAGE, "needs a program to run");
    MG_VEC(char *) run = {0};
    const char *front[] = {"run",      "-t",
                           "none",     dir ? "-o" : NULL,
                           dir,        device ? "--device" : NULL,
                           device,     properties ? "--as" : NULL,
                           properties, workers ? "--workers" : NULL,
                           workers,    devices ? "--devices" : NULL,
                           devices,    quiet ? "-q" : NULL,
                           "--"};
    for (size_t k = 0; k < MG_COUNT_OF(front); k++)
        if (front[k]) *mg_vec_push(&run) = (char *)(uintptr_t)front[k];
    for (int k = 0; k < n; k++) *mg_vec_push(&run) = argv[k];
    *mg_vec_push(&run) = NULL;
    setenv(mg_env_name(MG_ENV_CAPTURE), check, 1);
    status = cmd_run((int)run.n - 1, run.at);
    mg_vec_release(&run);
    return status;
}
