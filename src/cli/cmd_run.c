/* margay run: starts a program with libmargay in front of the CUDA driver, waits for it, and says on
 * stderr what was seen. The program's own output, input and exit status are left alone.
 *
 *   options ── checks ── device ── environment (LD_PRELOAD, LD_LIBRARY_PATH, MARGAY_*) ── fork, exec
 *   wait ── DIR/run-<id>.db ── summary of this run
 *
 * What happens inside the program is inject/'s business; here nothing of it is loaded. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef MG_SANITIZER
#include <dlfcn.h>
#endif

#include "base/demangle.h"
#include "base/env.h"
#include "base/io.h"
#include "base/option.h"
#include "base/rank.h"
#include "base/number.h"
#include "capture/reader.h"
#include "cli/cli.h"
#include "cli/place.h"
#include "cli/run_dead.h"
#include "cli/run_of_trace.h"
#include "cli/run_tell.h"
#include "cli/run_tools.h"
#include "image/image.h"
#include "inject/choice.h"
#include "inject/range.h"
#include "inject/config.h"
#include "margay/control.h"
#include "report/report.h"
#include "store/reason.h"
#include "store/store.h"
#include "tool/spec.h"
#include "tool/tool.h"

enum { MOST_WORKERS = 1024 }; /* what more threads than any machine has processors would cost is memory */
enum { MOST_DEVICES = 16 };   /* as the driver has room for */
enum {
    STATUS_USAGE = 120,
    STATUS_STRICT = 121,
    STATUS_STATIC = 122,
    STATUS_DEVICE = 123,
    STATUS_VERIFY = 124,
    STATUS_CANNOT_EXEC = 126,
    STATUS_NOT_FOUND = 127
};

struct program {
    char **argv;
    int n;
    char file[PATH_MAX]; /* "" when PATH has none */
};
struct run {
    struct mg_opt_list tools;
    struct mg_opt_list one_liners;
    const char *probe, *dir, *device, *properties, *kernel, *launches, *range, *channel;
    bool verify, check, strict, eager, native_times, audit, stats, quiet, verbose, keep_ptx, witness, no_contract,
        overcommit;
    double time_limit;
    uint64_t workers, devices, repeat, error_exitcode;
    bool native; /* the tools instrument nothing */
    bool advise; /* -t advise was given */
    bool plain;  /* nothing was said of what to measure */
    bool keeps_trace;
    struct mg_analyst *analyst; /* of tools that analyse the trace: run_of_trace.h; NULL: there is none */
    struct program program;
    struct mg_place place;
    struct mg_config config;
    char path[PATH_MAX]; /* of DIR, absolute */
    bool made_dir;       /* it was not there before */
    uint64_t id;         /* of this run, unique in DIR; the same for all ranks of a parallel program */
    struct mg_rank rank; /* of which this launcher starts one */
};

static const struct mg_opt_page page = {
    "run", "[OPTIONS] -- APP [ARGS...]", "run a program under a tool",
    "SPEC selects launches; parts joined by commas, one of the first four must fit and no limit forbid:\n"
    "  N A-B A- %K        by number in the process, from 0; every K-th\n"
    "  first=N            the first N of every kernel and shape\n"
    "  random=F[:SEED]    each with probability F\n"
    "  budget=P%          limit: while instrumented kernels took at most P per cent of the run time\n"
    "  steady[=N]         limit: until N launches in a row of a kernel and shape had equal counts (3)\n"
    "ONE-LINER is SITES /predicate/ { @map[keys] = count() }, see docs/probe-language.md:\n"
    "  -e 'ld.global { @bytes[kernel, line] = sum(width) }'\n"
    "GLOB is matched with a kernel's mangled name, its C++ name, and its function name with or without namespaces and\n"
    "template arguments: 'reduce', 'ns::reduce', 'reduce<float>', 'reduce*'.\n"
    "Exit status: the program's own (128 + signal when killed); 120 bad usage, 121 --strict and something has no\n"
    "counts, 122 static or older CUDA runtime without a GPU, 123 no usable device, 124 --verify found a\n"
    "difference, 126 cannot be executed, 127 not found.\n"};

/* ---- checks -------------------------------------------------------------------------------------------------- */

/* The tools and their options. */
static int check_tools(struct run *r)
{
    r->verify = r->verify || r->repeat; /* --repeat is --verify and more */
    r->plain = !r->tools.n && !r->probe && !r->one_liners.n && !r->check && !r->witness;
    for (uint32_t i = 0; i < r->tools.n; i++) r->advise = r->advise || !strcmp(r->tools.at[i], "advise");
    mg_run_expand(&r->tools);
    r->keeps_trace = mg_run_of_trace(&r->tools);
    int status = mg_run_expr(&page, r->probe, &r->one_liners, &r->tools);
    if (!status) status = mg_run_tools(&page, &r->tools, r->witness ? "none" : "blocks", &r->native, &r->config.tools);
    if (!status && r->native && r->strict)
        return mg_opt_usage(&page, STATUS_USAGE, "--strict wants instrumented launches, %s has none",
                            r->witness ? "--witness" : "-t none");
    if (!status && r->native && r->verify)
        return mg_opt_usage(&page, STATUS_USAGE, "--verify compares instrumented launches, %s has none",
                            r->witness ? "--witness" : "-t none");
    return status;
}

static int check_options(struct run *r)
{
    if (!r->program.n) return mg_opt_usage(&page, STATUS_USAGE, "needs a program to run");
    struct mg_choice choice;
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err err = mg_choice_parse(r->launches, &choice, &d);
    int status = err ? mg_opt_usage(&page, STATUS_USAGE, "--launches %s", mg_diag_first(&d, err)) : 0;
    mg_diag_release(&d);
    if (status) return status;
    struct mg_range range;
    err = mg_range_parse(r->range, &range, &d);
    status = err ? mg_opt_usage(&page, STATUS_USAGE, "--range: %s", mg_diag_first(&d, err)) : 0;
    mg_diag_release(&d);
    if (status) return status;
    uint64_t every;
    bool part =
        r->channel && !strncmp(r->channel, "1/", 2) && mg_number_u64(r->channel + 2, false, 1, UINT32_MAX, &every);
    if (r->channel && !part && strcmp(r->channel, "block") && strcmp(r->channel, "drop"))
        return mg_opt_usage(&page, STATUS_USAGE,
                            "--channel wants block, drop, or 1/N with N from 1 to %u, not '%.200s'", UINT32_MAX,
                            r->channel);
    if (r->time_limit > 0 && r->time_limit < 1e-6)
        return mg_opt_usage(&page, STATUS_USAGE,
                            "--time-limit wants 0 (none) or a number from 0.000001 to 1000000000, not '%g'",
                            r->time_limit);
    if (r->dir && !*r->dir) return mg_opt_usage(&page, STATUS_USAGE, "-o wants a directory, not ''");
    if (r->kernel && !*r->kernel)
        return mg_opt_usage(&page, STATUS_USAGE, "--kernel wants a name or a pattern, not ''");
    struct stat st;
    if (r->properties && !stat(r->properties, &st) && S_ISDIR(st.st_mode))
        return mg_opt_usage(&page, STATUS_USAGE, "--as %s: a directory, no file of properties", r->properties);
    if (r->properties && strcmp(r->properties, "h200") && !mg_place_has(r->properties))
        return mg_opt_usage(&page, STATUS_USAGE, "--as %s: neither h200 nor a readable file", r->properties);
    if (r->properties && strcmp(r->properties, "h200") && !mg_place_has_properties(r->properties))
        return mg_opt_usage(&page, STATUS_USAGE,
                            "--as %s: no recorded property stands in it (number, name, result, value, tab-separated)",
                            r->properties);
    return check_tools(r);
}

/* Finds the program as execvp will; leaves "" when it is not there, execvp says why then. */
static void find_program(struct run *r)
{
    const char *name = r->program.argv[0], *path = getenv("PATH");
    if (strchr(name, '/')) {
        snprintf(r->program.file, sizeof r->program.file, "%s", name);
        return;
    }
    for (const char *p = path ? path : "/bin:/usr/bin"; *p;) {
        size_t n = strcspn(p, ":");
        snprintf(r->program.file, sizeof r->program.file, "%.*s%s%s", (int)n, p, n ? "/" : "", name);
        if (access(r->program.file, X_OK) == 0) return;
        p += n + (p[n] == ':');
    }
    r->program.file[0] = 0;
}

static int fail(int status, const char *fmt, ...) MG_PRINTF(2, 3);
static int fail(int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("margay: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    return status;
}

/* In a process of the program a wrong value only counts as none. */
static int check_environment(void)
{
    char text[200];
    int status = 0;
    for (unsigned e = 0; e < MG_ENV_COUNT; e++)
        if (mg_env_wrong((enum mg_env)e, text, sizeof text)) status = fail(STATUS_USAGE, "%s", text);
    return status;
}

/* auto: a GPU that answers, else the CPU device where it was built, else the emulator. */
static int pick_device(struct run *r)
{
    const char *want = r->device ? r->device : "auto";
    struct mg_gpu gpu = {0};
    if (!strcmp(want, "auto") || !strcmp(want, "nvidia")) mg_gpu_probe(&r->place, true, &gpu);
    if (gpu.answers) {
        r->config.device = strdup("nvidia");
        r->config.real = strdup(gpu.path);
    } else if (!strcmp(want, "nvidia")) {
        return fail(STATUS_DEVICE, "no NVIDIA GPU answers (%s): leave --device out to run without one",
                    gpu.path[0] ? "the driver is there but finds no device" : "there is no driver");
    } else if (!strcmp(want, "cpu") && !mg_place_has(r->place.cpu)) {
        return fail(STATUS_DEVICE,
                    "the CPU device is not there: install llvm-19-dev and build again, or use --device emu");
    } else {
        r->config.device = strdup(strcmp(want, "emu") && mg_place_has(r->place.cpu) ? "cpu" : "emu");
    }
    bool software = strcmp(r->config.device, "nvidia") != 0;
    if (!software && (r->time_limit > 0 || r->no_contract || r->overcommit))
        return mg_opt_usage(&page, STATUS_USAGE, "%s works on the cpu and emu devices only",
                            r->no_contract  ? "--no-contract"
                            : r->overcommit ? "--overcommit"
                                            : "--time-limit");
    if (!mg_place_has(r->place.libcuda) || (software && !mg_place_has(r->place.libcudart)))
        return fail(STATUS_DEVICE, "%s is missing: the installation is not complete",
                    mg_place_has(r->place.libcuda) ? r->place.libcudart : r->place.libcuda);
    if (software && r->program.file[0] && mg_image_is_static_cudart(r->program.file))
        return fail(STATUS_STATIC,
                    "%s holds a statically linked CUDA runtime, which needs a GPU: relink it with "
                    "NVCC_APPEND_FLAGS=\"-cudart shared\"",
                    r->program.file);
    char runtime[64];
    if (software && r->program.file[0] && mg_image_needs_other_cudart(r->program.file, 13, runtime, sizeof runtime))
        return fail(STATUS_STATIC,
                    "%s needs %s: without a GPU only programs of the CUDA 13 runtime run; rebuild it with CUDA 13",
                    r->program.file, runtime);
    return 0;
}

/* ---- environment ------------------------------------------------------------------------------------------------ */

static void set_list(const char *name, const char *front, const char *back)
{
    const char *old = getenv(name);
    struct mg_buf v = MG_BUF_INIT;
    const char *parts[] = {front, old, back};
    for (size_t i = 0; i < MG_COUNT_OF(parts); i++)
        if (parts[i] && *parts[i]) mg_buf_printf(&v, "%s%s", v.n ? ":" : "", parts[i]);
    setenv(name, v.n ? v.at : "", 1);
    mg_buf_release(&v);
}

/* Path of the sanitizer's runtime that we ourselves run on: it has to be loaded first. */
static const char *sanitizer(void)
{
#ifdef MG_SANITIZER
    Dl_info info;
    void *f = dlsym(RTLD_DEFAULT, "__" MG_SANITIZER "_init");
    if (f && dladdr(f, &info) && strstr(info.dli_fname, MG_SANITIZER)) return info.dli_fname;
#endif
    return NULL;
}

/* NVTX's header opens what this variable names; a tool that stands there already is named to ours. */
static void name_for_nvtx(const struct run *r)
{
    const char *other = getenv("NVTX_INJECTION64_PATH");
    bool wanted = (r->range && !strncmp(r->range, "nvtx:", 5)) || mg_tool_spec_lists(r->config.tools, "timeline");
    unsetenv(mg_env_name(MG_ENV_NVTX));
    if (!wanted) return;
    if (other && *other && strcmp(other, r->place.libcuda)) setenv(mg_env_name(MG_ENV_NVTX), other, 1);
    setenv("NVTX_INJECTION64_PATH", r->place.libcuda, 1);
}

/* Does the program's file name a library: is it linked with it? */
static bool names_library(const char *file, const char *library)
{
    struct stat st;
    int fd = *file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd >= 0 && !fstat(fd, &st) && st.st_size > 0
                   ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                   : MAP_FAILED;
    bool found = at != MAP_FAILED && memmem(at, (size_t)st.st_size, library, strlen(library));
    if (at != MAP_FAILED) munmap(at, (size_t)st.st_size);
    if (fd >= 0) close(fd);
    return found;
}

/* Calls of the runtime are recorded by a library in front of it: with the time line, as its option says. */
static bool wants_forward(const struct run *r, bool software)
{
    bool timeline = mg_tool_spec_lists(r->config.tools, "timeline"), on = software, off = !timeline;
    for (const char *at = r->config.tools; timeline && at && *at;) {
        char *spec = mg_tool_spec_next(&at);
        if (spec && mg_tool_spec_lists(spec, "timeline")) {
            size_t n;
            const char *asked = mg_option_value(spec, strlen(spec), "runtime", &n);
            on |= asked && n == 2 && !memcmp(asked, "on", n);
            off |= asked && n == 3 && !memcmp(asked, "off", n);
        }
        free(spec);
    }
    return !off && mg_place_has(r->place.forward) && (on || names_library(r->program.file, "libcudart.so."));
}

/* Calls of MPI are recorded by a library in front of it. */
static bool wants_mpi(const struct run *r)
{
    if (!mg_tool_spec_lists(r->config.tools, "timeline") || !mg_place_has(r->place.mpi)) return false;
    return names_library(r->program.file, "libmpi.so.") || names_library(r->program.file, "libmpich.so.");
}

static void set_environment(struct run *r)
{
    char ours[6 * PATH_MAX], dirs[2 * PATH_MAX + 64];
    const struct mg_place *p = &r->place;
    bool software = strcmp(r->config.device, "nvidia") != 0;
    bool forward = wants_forward(r, software);
    bool mpi = wants_mpi(r);
    snprintf(ours, sizeof ours, "%s%s%s%s%s%s%s", mpi ? p->mpi : "", mpi ? ":" : "", forward ? p->forward : "",
             forward ? ":" : "", software ? p->libcudart : "", software ? ":" : "", p->libcuda);
    snprintf(dirs, sizeof dirs, "%s/driver%s%s%s", p->lib, software ? ":" : "", software ? p->lib : "",
             software ? "/cudart" : "");
    set_list("LD_PRELOAD", sanitizer(), ours); /* behind the user's own: a preloaded witness sees the calls first */
    set_list("LD_LIBRARY_PATH", dirs, NULL);
    snprintf(dirs, sizeof dirs, "%s/tools", p->lib); /* ptxas: programs that assemble kernels by running it */
    set_list("PATH", dirs, NULL);
    if (r->audit) {
        set_list("LD_AUDIT", NULL, p->audit);
        setenv("MARGAY_SHIM", p->libcuda, 1);
    }
    if (sanitizer()) /* the program's own leaks are not ours to report; the user's options come behind and win */
        set_list("ASAN_OPTIONS", "detect_leaks=0", NULL);
    if (r->config.repeat ||
        r->config.native_times) /* times of either code are compared: both compiled from the first launch on */
        setenv("MARGAY_CPU_TIER", "sync", 0);
    if (software)
        setenv("MARGAY_CUDART", p->libcudart, 1);
    else
        unsetenv("MARGAY_CUDART");
    name_for_nvtx(r);
    mg_config_to_env(&r->config);
}

/* Readers join everything that lies in DIR: say so before a second run is added. */
static void say_earlier_runs(const char *dir)
{
    struct dirent *e;
    unsigned n = 0;
    DIR *d = opendir(dir);
    while (d && (e = readdir(d)))
        n += !strncmp(e->d_name, "run-", 4) && strlen(e->d_name) > 7 &&
             !strcmp(e->d_name + strlen(e->d_name) - 3, ".db");
    if (d) closedir(d);
    if (n)
        fail(0, "%s already holds %u run%s; reports add them up, what is said below is of this one", dir, n,
             n == 1 ? "" : "s");
}

/* The time of day tells runs apart, also those of one pid: in containers that is often the same. */
static uint64_t run_number(const struct mg_rank *rank)
{
    if (rank->rank >= 0 && rank->size > 1) return rank->job >> 1 | 1;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- parallel programs: mpirun -n 4 margay run -o DIR -- ./app --------------------------------------------------- */

static const char *get_variable(const char *name)
{
    return getenv(name);
}

static bool is_one_of_many(const struct run *r)
{
    return r->rank.rank >= 0 && r->rank.size > 1;
}

/* One launcher records the command and how it ended. */
static bool tells_of_run(const struct run *r)
{
    return !is_one_of_many(r) || r->rank.rank == 0;
}

/* Each launcher adds a byte to a file of the job when its program has ended: the one that completes it speaks for all.
 */
static bool is_last_of_many(const struct run *r)
{
    char path[PATH_MAX + 40];
    if (!is_one_of_many(r)) return true;
    snprintf(path, sizeof path, "%s/ranks.%llu", r->path, (unsigned long long)r->id);
    int fd = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0666);
    bool wrote = fd >= 0 && write(fd, "x", 1) == 1;
    bool last = wrote && lseek(fd, 0, SEEK_CUR) >= (off_t)r->rank.size;
    if (fd >= 0) close(fd);
    if (last) unlink(path);
    return last;
}

/* A scheduler on a GPU charges device time: kernels read their device's clock, in place of a pair of events each. */
static void measure_spans(struct run *r)
{
    struct mg_buf list = MG_BUF_INIT;
    for (uint32_t i = 0; i < r->tools.n; i++)
        if (!strcmp(r->tools.at[i], "span")) return;
    mg_buf_add(&list, r->config.tools, strlen(r->config.tools));
    mg_tool_spec_join(&list, "span");
    free(r->config.tools);
    r->config.tools = mg_buf_take(&list);
}

static int fill_config(struct run *r)
{
    struct mg_config *c = &r->config;
    char name[NAME_MAX], full[PATH_MAX];
    const char *base = strrchr(r->program.argv[0], '/');
    r->rank = mg_rank_read(get_variable);
    r->id = run_number(&r->rank);
    bool one_of = is_one_of_many(r);
    if (one_of)
        snprintf(name, sizeof name, "margay-%.200s-job%llu", base ? base + 1 : r->program.argv[0],
                 (unsigned long long)r->id % 1000000);
    else
        snprintf(name, sizeof name, "margay-%.200s-%d", base ? base + 1 : r->program.argv[0], (int)getpid());
    if (!r->dir) r->dir = strdup(name);
    if (strpbrk(r->place.lib, ": "))
        return fail(STATUS_USAGE, "%s: LD_PRELOAD cannot name a folder with a space or a colon; install elsewhere",
                    r->place.lib);
    struct mg_diag d = MG_DIAG_INIT;
    if (!r->quiet && !one_of) say_earlier_runs(r->dir);
    r->made_dir = access(r->dir, F_OK) != 0;
    if (one_of && mkdir(r->dir, 0777) && errno != EEXIST) return fail(STATUS_USAGE, "%s: %s", r->dir, strerror(errno));
    if (tells_of_run(r) && mg_store_run(r->dir, r->id, (uint32_t)getpid(), (const char *const *)r->program.argv,
                                        (uint32_t)r->program.n, -1, &d))
        return mg_cli_fail(&d, STATUS_USAGE);
    if (!realpath(r->dir, r->path)) return fail(STATUS_USAGE, "%s: %s", r->dir, strerror(errno));
    c->dir = strdup(r->path);
    c->properties =
        strdup(r->properties && strcmp(r->properties, "h200") && realpath(r->properties, full) ? full : "h200");
    c->kernel_glob = r->kernel ? strdup(r->kernel) : NULL;
    c->launches = r->launches ? strdup(r->launches) : NULL;
    c->range = r->range ? strdup(r->range) : NULL;
    c->channel = r->channel ? strdup(r->channel) : NULL;
    c->dump = r->keep_ptx ? strdup("twins") : NULL;
    c->time_limit_ns = (uint64_t)(r->time_limit * 1e9);
    c->workers = (uint32_t)r->workers;
    c->devices = (uint32_t)r->devices;
    if (r->devices > 1 && !strcmp(c->device, "nvidia"))
        return fail(STATUS_USAGE, "--devices is of cpu and emu: NVIDIA's driver shows the GPUs that there are");
    c->strict = r->strict;
    c->eager = r->eager;
    c->check = r->check;
    c->verify = r->verify;
    c->repeat = (uint32_t)r->repeat;
    if (r->verify && !r->workers && strcmp(c->device, "nvidia"))
        c->workers = 1; /* CTAs come in the same order in every run, and so do their atomics */
    c->plant = r->verify && mg_env(MG_ENV_PLANT); /* for tests of --verify */
    c->stats = r->stats;
    c->quiet = r->quiet;
    c->verbose = r->verbose;
    c->native_times = r->native_times;
    c->witness = r->witness;
    c->no_contract = r->no_contract;
    c->overcommit = r->overcommit;
    c->run = r->id;
    if (mg_env(MG_ENV_SCHEDULER)) /* of the margay sched that starts us */
        c->scheduler = (uint32_t)strtoul(mg_env(MG_ENV_SCHEDULER), NULL, 10);
    if (c->scheduler && !r->native && !strcmp(c->device, "nvidia")) measure_spans(r);
    return 0;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t child_pid;
static struct sigaction file_size_signal; /* as we found it: the program gets it so */

/* A file size limit then fails our writes, which is told, instead of killing us. */
static void ignore_file_size(void)
{
    sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, &file_size_signal);
}

static void forward(int sig)
{
    if (child_pid > 0) kill((pid_t)child_pid, sig);
}

/* The terminal sends interrupts to the program as well; we wait for what it makes of them. */
static void set_signals(struct sigaction old[2])
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, pass = {.sa_handler = forward, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &ignore, &old[0]);
    sigaction(SIGQUIT, &ignore, &old[1]);
    sigaction(SIGTERM, &pass, NULL);
    sigaction(SIGHUP, &pass, NULL);
}

static void exec_program(struct run *r, int report_fd, const struct sigaction old[2])
{
    sigaction(SIGINT, &old[0], NULL);
    sigaction(SIGQUIT, &old[1], NULL);
    sigaction(SIGXFSZ, &file_size_signal, NULL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    set_environment(r);
    char **argv = calloc((size_t)r->program.n + 1, sizeof *argv);
    for (int i = 0; argv && i < r->program.n; i++) argv[i] = r->program.argv[i];
    if (argv) execvp(argv[0], argv);
    int why = argv ? errno : ENOMEM;
    ssize_t n = write(report_fd, &why, sizeof why);
    _exit(n > 0 ? STATUS_NOT_FOUND : STATUS_CANNOT_EXEC);
}

/* Profilers attach to what they start themselves, and find our driver where they look for NVIDIA's. */
static void warn_of_profiler(const struct run *r)
{
    static const char *const known[] = {"ncu", "nv-nsight-cu-cli", "compute-sanitizer", "nsys"};
    const char *base = strrchr(r->program.argv[0], '/');
    base = base ? base + 1 : r->program.argv[0];
    for (size_t i = 0; i < MG_COUNT_OF(known) && !r->quiet && !strcmp(r->config.device, "nvidia"); i++)
        if (!strcmp(base, known[i]))
            fail(0, "%s sees nothing of a program that margay runs under it%s", base,
                 i < 3 ? "; put it in front (docs/nvidia.md, \"Beside other tools\")" : "");
}

/* The tools of advise make a program many times slower: who looks on is told after a second that it runs. */
static void say_that_it_runs(const struct run *r, pid_t pid)
{
    const int after_ms = 1000;
    if (!r->advise || r->quiet || !isatty(2)) return;
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    if (p.fd < 0) return;
    if (!poll(&p, 1, after_ms))
        fail(0, "runs with all tools of advise, which takes several times as long; findings follow when it ends");
    close(p.fd);
}

/* The exit status of the program; *why: errno when it could not be started, else 0. */
static int run_program(struct run *r, int *why)
{
    int fds[2], status = 0;
    struct sigaction old[2];
    *why = 0;
    if (pipe2(fds, O_CLOEXEC)) return *why = errno, STATUS_CANNOT_EXEC;
    set_signals(old);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) exec_program(r, fds[1], old);
    child_pid = pid;
    close(fds[1]);
    if (pid < 0 || read(fds[0], why, sizeof *why) != (ssize_t)sizeof *why) *why = pid < 0 ? errno : 0;
    close(fds[0]);
    if (pid > 0 && !*why) say_that_it_runs(r, pid);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    child_pid = 0;
    if (*why) return *why == ENOENT || *why == ENOTDIR ? STATUS_NOT_FOUND : STATUS_CANNOT_EXEC;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- afterwards -------------------------------------------------------------------------------------------------- */

/* Was every launch that the user selected instrumented, did each come to its end, and were all of them recorded? */
static bool is_strictly_good(const struct mg_recording *p)
{
    struct mg_coverage c;
    mg_coverage_init(&c, p);
    bool good = c.unknown == 0 && c.empty == 0 && c.not_written == 0 && c.no_end == 0 && c.incomplete == 0 &&
                c.failed == 0 && c.spoilt == 0 && !p->n_damaged;
    for (uint32_t i = 0; i < p->n_processes; i++) good = good && p->processes[i].closed;
    for (uint32_t i = 0; i < c.n_rows; i++)
        good = good && mg_reason_is_choice(
                           mg_reason_find(c.rows[i].reason)); /* --kernel, --launches, --native-times, margay ctl */
    for (uint32_t i = 0; i < p->n_regions; i++) good = good && !p->regions[i].reason; /* a tool left the kernel alone */
    mg_coverage_release(&c);
    return good;
}

/* Does this process, which is not ours, belong to the run? Readable for processes of the same user. */
static bool is_of_run(const char *pid, uint64_t id)
{
    char path[64], want[64];
    char *block = NULL;
    size_t bytes = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    int n = snprintf(want, sizeof want, "MARGAY_RUN=%llu", (unsigned long long)id);
    if (mg_io_read(path, &block, &bytes, NULL)) return false;
    for (size_t at = 0; at < bytes && !found; at += strlen(block + at) + 1)
        found = !strncmp(block + at, want, (size_t)n + 1);
    free(block);
    return found;
}

/* What goes on after the program itself has ended: a daemon, a job in the background. */
static uint32_t count_living(const struct run *r, struct mg_buf *names)
{
    struct dirent *e;
    uint32_t n = 0;
    DIR *d = opendir("/proc");
    while (d && (e = readdir(d)))
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && strtol(e->d_name, NULL, 10) != getpid() &&
            is_of_run(e->d_name, r->id) && n++ < 4)
            mg_buf_printf(names, "%s%.20s", n > 1 ? ", " : "", e->d_name);
    if (d) closedir(d);
    if (n > 4) mg_buf_adds(names, ", ...");
    return n;
}

static bool has_ended(const struct mg_pprocess *q)
{
    return kill((pid_t)q->pid, 0) && errno == ESRCH;
}

/* ---- a process that died in a tool ------------------------------------------------------------------------------- */

static bool read_page(const char *path, struct mg_control_page *seen)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && read(fd, seen, sizeof *seen) == (ssize_t)sizeof *seen && seen->magic == MG_CONTROL_MAGIC;
    if (fd >= 0) close(fd);
    return good;
}

static void say_of_page(const struct mg_control_page *seen)
{
    static const char *const calls[] = {"its options", "begin",    "instrument", "initialize",
                                        "read",        "finalize", "stream",     "end"}; /* ORDER mg_control_call */
    if (seen->opening[0])
        fail(0, "process %u ended while the tool %.127s was being opened: its constructors ended it", seen->pid,
             seen->opening);
    for (uint32_t t = 0; t < MG_CONTROL_TOOLS; t++)
        if (seen->inside[t])
            fail(0, "process %u ended while it was in the code of tool %.63s (%s)", seen->pid, seen->tools[t],
                 seen->doing[t] < MG_COUNT_OF(calls) ? calls[seen->doing[t]] : "?");
}

/* Pages that nobody could take away: of processes of this run that are no more. */
static void say_died_in_tool(const struct run *r, struct mg_deads *deads)
{
    char path[PATH_MAX + NAME_MAX + 2];
    struct mg_control_page seen;
    struct dirent *e;
    DIR *d = opendir(r->path);
    while (d && (e = readdir(d))) {
        snprintf(path, sizeof path, "%s/%s", r->path, e->d_name);
        if (strncmp(e->d_name, "ctl.", 4) || !read_page(path, &seen) || seen.run != r->id ||
            !(kill((pid_t)seen.pid, 0) && errno == ESRCH))
            continue;
        say_of_page(&seen);
        *mg_vec_push(&deads->list) = (struct mg_dead){seen.pid, seen.taken};
        unlink(path);
    }
    if (d) closedir(d);
}

/* The pages of margay ctl, of processes that could not take them away themselves. */
static void remove_pages(const struct run *r, const struct mg_recording *p)
{
    char path[PATH_MAX + 32];
    for (uint32_t i = 0; i < p->n_processes; i++) {
        snprintf(path, sizeof path, "%s/ctl.%u", r->path, p->processes[i].pid);
        if (has_ended(&p->processes[i])) unlink(path);
    }
}

/* Before the coverage line: what it does not speak of. */
static void say_what_is_open(const struct run *r, const struct mg_recording *p)
{
    struct mg_buf names = MG_BUF_INIT;
    uint32_t n = count_living(r, &names);
    if (n)
        fail(
            0,
            "%u process%s of this run still run%s (pid %s); what follows is what was recorded until now: margay report %s",
            n, n == 1 ? "" : "es", n == 1 ? "s" : "", names.at, r->dir);
    mg_buf_release(&names);
    for (uint32_t i = 0; i < p->n_processes; i++) {
        const struct mg_pprocess *q = &p->processes[i];
        if (!q->closed && has_ended(q))
            fail(0, "process %u was killed, or could not record to its end: its last launches may be missing", q->pid);
    }
    for (uint32_t i = 0; i < p->n_damaged; i++) fail(0, "%s; not in what follows", p->damaged[i]);
}

/* A pattern that fits nothing is a typing error more often than not. False: it did fit. */
static bool say_no_match(const struct run *r, const struct mg_recording *p)
{
    struct mg_buf names = MG_BUF_INIT;
    bool none = r->kernel && p->n_kernels;
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        none = none && !mg_name_matches(r->kernel, p->kernels[i].name);
        if (i < 4) mg_buf_printf(&names, "%s%s", i ? ", " : "", p->kernels[i].demangled);
    }
    if (none)
        fail(0, "--kernel %s matches none of the %u kernels that ran: %s%s", r->kernel, p->n_kernels, names.at,
             p->n_kernels > 4 ? ", ..." : "");
    mg_buf_release(&names);
    return none;
}

/* Nothing but errors is said under -q, and what --check found is one. */
static void say_checked(const struct run *r, const struct mg_recording *p)
{
    uint32_t n = mg_report_check_errors(p);
    if (n && !r->error_exitcode) fail(0, "--check found %u error%s: margay report %s", n, n == 1 ? "" : "s", r->dir);
}

/* Did --check find an error, --strict or --verify fail, or -t advise find something to mend? Says which. */
static bool has_errors(const struct run *r, const struct mg_recording *p, bool failed)
{
    uint32_t checked = r->check ? mg_report_check_errors(p) : 0, findings = r->advise ? mg_report_findings(p) : 0;
    if (checked)
        fail(0, "--error-exitcode: --check found %u error%s: margay report %s", checked, checked == 1 ? "" : "s",
             r->dir);
    if (findings) fail(0, "--error-exitcode: %u finding%s to fix", findings, findings == 1 ? "" : "s");
    return failed || checked || findings;
}

/* annotate needs lines of the source. */
static bool names_lines(const struct mg_recording *p)
{
    for (uint32_t k = 0; k < p->n_kernels; k++)
        for (uint32_t b = 0; b < p->kernels[k].n_blocks; b++)
            if (p->kernels[k].blocks[b].file) return true;
    return false;
}

/* Says which captures no replay will take. */
static bool holds_capture(const char *dir)
{
    DIR *d = opendir(dir);
    bool any = false;
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        char path[4096];
        if (n <= 4 || strncmp(e->d_name, "capture-", 8) || strcmp(e->d_name + n - 4, ".mgc")) continue;
        any = true;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (mg_cap_launches(path) < 0)
            fprintf(stderr, "margay: %s is not whole: the program ended before its end was written\n", path);
    }
    if (d) closedir(d);
    return any;
}

static void say_next(const struct run *r, const struct mg_recording *p, bool captured)
{
    fprintf(stderr, "profile%s %s; next: margay report %s", captured ? " and capture" : "", r->dir, r->dir);
    if (captured) fprintf(stderr, ", margay replay %s", r->dir);
    if (names_lines(p)) fprintf(stderr, ", margay annotate %s", r->dir);
    fputs(r->plain && !captured ? "; what to fix: margay run -t advise\n" : "\n", stderr);
}

static int conclude(struct run *r, int status)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_recording *p = NULL;
    struct mg_deads deads = {0};
    say_died_in_tool(r, &deads);
    enum mg_err err = mg_recording_open_run(r->path, r->id, &p, &d);
    if (!err && mg_dead_note_missing(&deads, p)) {
        mg_recording_free(p);
        err = mg_recording_open_run(r->path, r->id, &p, &d);
    }
    mg_vec_release(&deads.list);
    if (err) {
        mg_cli_fail(&d, 0);
        mg_diag_release(&d);
        return status;
    }
    bool captured = holds_capture(r->dir);
    if (!r->quiet) {
        struct mg_buf text = MG_BUF_INIT;
        say_what_is_open(r, p);
        if (r->stats) mg_run_tell_stats(p);
        say_next(r, p, captured);
        mg_report_summary(p, &text);
        if (text.n) fwrite(text.at, 1, text.n, stderr);
        mg_buf_release(&text);
    }
    if (r->quiet && r->check) say_checked(r, p);
    remove_pages(r, p);
    bool no_match = say_no_match(r, p);
    if (r->strict && (no_match || !is_strictly_good(p))) {
        fail(0, "--strict: %s (see %s%s)",
             no_match ? "nothing was instrumented" : "not every launch was instrumented, complete and recorded",
             r->quiet ? "margay report " : "the coverage line", r->quiet ? r->dir : "");
        status = STATUS_STRICT;
    }
    if (r->verify && mg_run_tell_verify(p, r->quiet)) status = STATUS_VERIFY;
    if (r->error_exitcode && has_errors(r, p, status == STATUS_STRICT || status == STATUS_VERIFY))
        status = (int)r->error_exitcode;
    mg_recording_free(p);
    mg_diag_release(&d);
    return status;
}

/* A program that never started leaves no profile behind. */
static void forget_run(const struct run *r)
{
    char file[PATH_MAX + 32];
    snprintf(file, sizeof file, "%s/run-%llu.db", r->path, (unsigned long long)r->id);
    unlink(file);
    if (r->made_dir) rmdir(r->path);
}

int cmd_run(int argc, char **argv)
{
    struct run r = {0};
    int status = STATUS_USAGE, why;
    const struct mg_opt opts[] = {
        MG_OPT_LIST('t', "tool", &r.tools, "TOOL[,k=v...]",
                    "what to measure (blocks): a name of margay tools, or the path of a tool's shared object"),
        MG_OPT_LIST('e', "expr", &r.one_liners, "ONE-LINER", "count with a one-liner, or with those of a @FILE"),
        MG_OPT_STR(0, "probe", &r.probe, "FILE",
                   "count with probes written in C: FILE.c, or FILE.ptx of margay probe compile"),
        MG_OPT_STR('o', "output", &r.dir, "DIR", "write the profile there (margay-APP-PID)"),
        MG_OPT_DEVICE(&r.device),
        MG_OPT_PROPERTIES(&r.properties),
        MG_OPT_STR(0, "kernel", &r.kernel, "GLOB", "instrument only kernels of this name (see below)"),
        MG_OPT_STR(0, "launches", &r.launches, "SPEC", "instrument only these launches"),
        MG_OPT_STR(0, "range", &r.range, "RANGE",
                   "look at this part of the run alone: profiler, nvtx:GLOB, delay=S,duration=S"),
        MG_OPT_STR(0, "channel", &r.channel, "HOW",
                   "records for the host that find no room: block (wait, the default), drop; or 1/N: write each N-th"),
        MG_OPT_FLAG(0, "verify", &r.verify, "compare what native and instrumented kernels write"),
        MG_OPT_U64(0, "repeat", &r.repeat, 1, 1000000, "N",
                   "as --verify, and up to N more runs of each code by turns, all timed: what instrumenting costs"),
        MG_OPT_FLAG(0, "check", &r.check, "find races, uses of undefined values, misused barriers; bounds to the byte"),
        MG_OPT_FLAG(0, "strict", &r.strict,
                    "exit with 121 unless every selected launch was instrumented and has counts"),
        MG_OPT_U64(0, "error-exitcode", &r.error_exitcode, 1, 255, "N",
                   "exit with N when --check, --strict, --verify or -t advise found something"),
        MG_OPT_FLAG(0, "eager", &r.eager, "instrument every kernel when its module is loaded"),
        MG_OPT_FLAG(0, "native-times", &r.native_times,
                    "every other launch of a kernel and shape runs native, for its time"),
        MG_OPT_F64(0, "time-limit", &r.time_limit, 0, 1e9, "S",
                   "stop a launch that runs longer than S seconds (cpu, emu; 0, never)"),
        MG_OPT_FLAG(0, "no-contract", &r.no_contract,
                    "round every mul and add by itself instead of contracting as ptxas does (cpu, emu)"),
        MG_OPT_FLAG(0, "overcommit", &r.overcommit,
                    "allow allocations beyond this machine's memory and swap (cpu, emu)"),
        MG_OPT_FLAG(0, "audit", &r.audit, "also redirect the driver where only the dynamic loader sees it"),
        MG_OPT_FLAG(0, "stats", &r.stats, "say how much time Margay itself took"),
        MG_OPT_FLAG(0, "keep-ptx", &r.keep_ptx, "write the instrumented PTX of every kernel into DIR"),
        MG_OPT_FLAG(0, "witness", &r.witness, "count instructions by text position, uninstrumented (emu)"),
        MG_OPT_U64(0, "workers", &r.workers, 0, MOST_WORKERS, "N",
                   "threads that run kernels, up to 1024 (cpu, emu; 0, all cores)"),
        MG_OPT_U64(0, "devices", &r.devices, 1, MOST_DEVICES, "N",
                   "show the program so many devices, up to 16 (cpu, emu; 1)"),
        MG_OPT_QUIET(&r.quiet),
        MG_OPT_FLAG('v', "verbose", &r.verbose, "say more"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, MG_OPT_STOP_AT_FIRST, argc, argv, &status);
    if (n < 0) return status;
    r.program.argv = argv;
    r.program.n = n;
    ignore_file_size();
    if (!mg_place_find(&r.place)) return fail(STATUS_USAGE, "our own executable cannot be found: is /proc mounted?");
    status = check_environment();
    if (!status) status = check_options(&r);
    if (!status) {
        find_program(&r);
        status = pick_device(&r);
    }
    if (!status) status = fill_config(&r);
    if (!status) {
        if (r.verbose) fail(0, "device %s, profile %s", r.config.device, r.path);
        warn_of_profiler(&r);
        r.analyst = mg_analyst_start(r.path, r.id, &r.tools, r.keeps_trace);
        status = run_program(&r, &why);
        mg_analyst_finish(r.analyst, false);
        if (why)
            fail(0, "%s: %s", r.program.argv[0],
                 why == ENOENT && !strchr(r.program.argv[0], '/') ? "command not found" : strerror(why));
        if (why)
            forget_run(&r);
        else if (tells_of_run(&r) && mg_store_run(r.path, r.id, (uint32_t)getpid(), (const char *const *)r.program.argv,
                                                  (uint32_t)r.program.n, status, NULL))
            fail(0, "%s: the exit status cannot be recorded", r.path);
        bool last = !why && is_last_of_many(&r);
        if (last) mg_analyst_finish(r.analyst, true);
        mg_analyst_free(r.analyst);
        if (last) status = conclude(&r, status);
    }
    mg_config_release(&r.config);
    free(r.tools.at);
    return status;
}
