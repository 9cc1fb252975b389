/* margay replay: runs margay-replay on a capture, by `margay run`: under tools, on any device. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/vec.h"
#include "capture/reader.h"
#include "cli/cli.h"
#include "cli/place.h"

static const struct mg_opt_page page = {
    "replay", "[OPTIONS] DIR", "run a captured program's work on the device again, and check its results",
    "DIR is that of margay capture; of several processes in it, --pid names one. Neither the program nor its inputs are\n"
    "needed. Operations run in the order in which they were recorded. What memory holds is compared with the hashes of\n"
    "the capture, and the first launch that left other bytes is named.\n"
    "--launches selects the launches that tools instrument, as in margay run. With --extract and --export it selects the\n"
    "launches that are taken out: N, A-B, A-, joined by commas.\n"
    "Exit status: 0 the recorded results, 1 others, 2 usage, 3 the capture is damaged or lacks something, 4 device,\n"
    "5 it ran, and the capture holds no check of it.\n"};

struct replay {
    struct mg_opt_list tools, one_liners;
    const char *dir, *device, *properties, *kernel, *workers, *devices, *launches, *extract, *export;
    uint64_t pid;
    bool list, differences, quiet;
};

/* Of a folder: how many captures it has, with launches if any has, and one of them. -1: it cannot be read. */
static int count_captures(const struct replay *o, const char *dir, char *path, size_t room)
{
    struct dirent *e;
    int idle = 0, n = 0;
    unsigned pid;
    char end, file[4096];
    DIR *d = opendir(dir);
    if (!d) return -1;
    while ((e = readdir(d))) {
        bool is = sscanf(e->d_name, "capture-%u.mg%c", &pid, &end) == 2 ||
                  sscanf(e->d_name, "capture-%u-%*u.mg%c", &pid, &end) == 2;
        if (!is || end != 'c' || (o->pid && o->pid != pid)) continue;
        snprintf(file, sizeof file, "%s/%s", dir, e->d_name);
        bool launches = mg_cap_launches(file) != 0;
        if (launches || !n) snprintf(path, room, "%s", file);
        launches ? n++ : idle++;
    }
    closedir(d);
    return n ? n : idle;
}

/* DIR/capture-PID.mgc, or the file itself. Of a process that launched nothing only where no other did. False: said why.
 */
static bool find_capture(const struct replay *o, const char *dir, char *path, size_t room)
{
    struct stat st;
    if (!stat(dir, &st) && !S_ISDIR(st.st_mode)) {
        snprintf(path, room, "%s", dir);
        return true;
    }
    int n = count_captures(o, dir, path, room);
    if (n < 0)
        fprintf(stderr, "margay: %s: %s\n", dir, strerror(errno));
    else if (!n)
        fprintf(stderr, "margay: %s holds no capture\n", dir);
    else if (n > 1)
        fprintf(stderr, "margay: %s holds %d captures: --pid selects one, or name the file\n", dir, n);
    return n == 1;
}

static int status_of(int run)
{
    switch (run) {
    case 120:
        return MG_EXIT_USAGE;
    case 123:
        return MG_EXIT_DEVICE;
    default:
        return run;
    }
}

/* What needs no device. Comes back where it cannot be started. */
static int start(const char *program, const char *capture, const char *option, const char *value)
{
    execl(program, "margay-replay", capture, option, value, (char *)NULL);
    return fprintf(stderr, "margay: %s: %s\n", program, strerror(errno)), MG_EXIT_DEVICE;
}

/* Programs have their pinned and managed memory near the top, where libraries lie as well. What is started from here
 * has its libraries near a third of the way up instead, so that these addresses are free. Where that is not to be had
 * the replay may find them taken, and says so. */
static void lay_out(void)
{
    int now = personality(0xffffffff);
    if (now >= 0) personality((unsigned long)now | ADDR_COMPAT_LAYOUT);
}

static int replay(const struct replay *o, const char *capture)
{
    struct mg_place place;
    char program[sizeof place.lib + 32], dir[64], path[4096];
    MG_VEC(const char *) run = {0};
    if (!mg_place_find(&place))
        return fputs("margay: our own executable cannot be found: is /proc mounted?\n", stderr), MG_EXIT_DEVICE;
    snprintf(program, sizeof program, "%s/margay-replay", place.lib);
    snprintf(dir, sizeof dir, "margay-replay-%d", (int)getpid());
    if (o->list || (o->export && !o->launches))
        return start(program, capture, o->list ? "--list" : "--export", o->list ? NULL : o->export);
    if (o->export && !o->extract) { /* by way of a capture beside the program */
        struct replay both = *o;
        both.extract = o->export;
        return replay(&both, capture);
    }
    if (o->extract && mkdir(o->extract, 0777) && errno != EEXIST)
        return fprintf(stderr, "margay: %s: %s\n", o->extract, strerror(errno)), MG_EXIT_INPUT;
    if (o->extract) snprintf(path, sizeof path, "%s/capture-%d.mgc", o->extract, (int)getpid());
    const struct {
        const char *option, *value;
    } handed_on[] = {{"-o", o->dir       ? o->dir
                            : o->extract ? o->extract
                                         : dir},
                     {"--device", o->device},
                     {"--as", o->properties},
                     {"--kernel", o->kernel},
                     {"--workers", o->workers},
                     {"--devices", o->devices},
                     {"--launches", o->extract ? NULL : o->launches}};
    *mg_vec_push(&run) = "run";
    if (o->quiet) *mg_vec_push(&run) = "-q";
    for (size_t k = 0; k < MG_COUNT_OF(handed_on); k++)
        if (handed_on[k].value) *mg_vec_push(&run) = handed_on[k].option, *mg_vec_push(&run) = handed_on[k].value;
    for (uint32_t k = 0; k < o->tools.n; k++) *mg_vec_push(&run) = "-t", *mg_vec_push(&run) = o->tools.at[k];
    for (uint32_t k = 0; k < o->one_liners.n; k++) *mg_vec_push(&run) = "-e", *mg_vec_push(&run) = o->one_liners.at[k];
    if (!o->tools.n && !o->one_liners.n) *mg_vec_push(&run) = "-t", *mg_vec_push(&run) = "none";
    const char *back[] = {"--",
                          program,
                          capture,
                          o->quiet ? "-q" : NULL,
                          o->differences ? "--differences" : NULL,
                          o->extract ? "--extract" : NULL,
                          o->extract ? path : NULL,
                          o->extract ? "--launches" : NULL,
                          o->extract ? o->launches : NULL};
    for (size_t k = 0; k < MG_COUNT_OF(back); k++)
        if (back[k]) *mg_vec_push(&run) = back[k];
    *mg_vec_push(&run) = NULL;
    lay_out();
    int status = status_of(cmd_run((int)run.n - 1, (char **)(uintptr_t)run.at));
    mg_vec_release(&run);
    return status || !o->export ? status : start(program, path, "--export", o->export);
}

int cmd_replay(int argc, char **argv)
{
    struct replay o = {0};
    char path[4096];
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_LIST('t', "tool", &o.tools, "TOOL[,k=v...]", "run it under a tool (none)"),
        MG_OPT_LIST('e', "expr", &o.one_liners, "ONE-LINER", "count with a one-liner"),
        MG_OPT_STR('o', "output", &o.dir, "DIR", "write the profile there (margay-replay-PID)"),
        MG_OPT_DEVICE(&o.device),
        MG_OPT_PROPERTIES(&o.properties),
        MG_OPT_STR(0, "kernel", &o.kernel, "GLOB", "instrument only kernels of this name"),
        MG_OPT_STR(0, "workers", &o.workers, "N", "threads that run kernels (cpu, emu)"),
        MG_OPT_STR(0, "devices", &o.devices, "N", "show so many devices, up to 16 (cpu, emu; 1)"),
        MG_OPT_STR(0, "launches", &o.launches, "SPEC", "instrument, or take out, only these launches"),
        MG_OPT_STR(
            0, "extract", &o.extract, "NEW",
            "take the launches of --launches out, with the memory that they start from, as a capture of their own"),
        MG_OPT_STR(0, "export", &o.export, "FOLDER",
                   "write a C program of them, or of the whole capture, that needs the CUDA driver alone"),
        MG_OPT_FLAG(0, "list", &o.list, "print what the capture holds, one operation a line"),
        MG_OPT_FLAG(0, "differences", &o.differences, "print every check that differs, not only the first"),
        MG_OPT_U64(0, "pid", &o.pid, 1, UINT32_MAX, "PID", "the process, where DIR holds captures of several"),
        MG_OPT_QUIET(&o.quiet),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (n != 1)
        status = mg_opt_usage(&page, MG_EXIT_USAGE, "needs the directory of one capture");
    else if (o.extract && !o.launches)
        status = mg_opt_usage(&page, MG_EXIT_USAGE, "--extract needs --launches");
    else if (!find_capture(&o, argv[0], path, sizeof path))
        status = MG_EXIT_INPUT;
    else
        status = replay(&o, path);
    free(o.tools.at);
    free(o.one_liners.at);
    return status;
}
