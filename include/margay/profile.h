/* Profiles of Margay, finished or growing, for programs of your own. Link with -lmargay-profile.
 *
 *     char error[200];
 *     struct mg_profile *p = mg_profile_open("margay-app-4711", error, sizeof error);
 *     for (size_t i = 0; i < mg_profile_kernels(p); i++) printf("%s\n", mg_profile_kernel(p, i)->name);
 *     mg_profile_subscribe(p, on_launch, NULL);
 *     while (mg_profile_wait(p, 1000) >= 0) {}            a callback for each launch, as it ends
 *     mg_profile_close(p);
 *
 * A profile directory holds one database per process. What a program that runs has committed can be read at any
 * instant; launches are told within about a millisecond of their end, through shared memory beside the database. A
 * reader never makes a writer wait: one that lags reads what it missed from the database.
 *
 * One profile belongs to one thread at a time. Pointers stay valid until the next mg_profile_refresh or _close.
 * UINT64_MAX stands for what was not measured. */
#ifndef MARGAY_PROFILE_H
#define MARGAY_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

struct mg_profile;
/* NULL: error says why (no such directory, no profile in it, damaged, written by a newer Margay). */
struct mg_profile *mg_profile_open(const char *dir, char *error, size_t error_bytes);
void mg_profile_close(struct mg_profile *p);

/* ---- what has been recorded, as of open or the last refresh ------------------------------------------- */

/* Reads again what is committed by now. 1: something changed, 0: nothing, -1: an error, the old data stay. */
int mg_profile_refresh(struct mg_profile *p, char *error, size_t error_bytes);
/* Grows by one with each refresh that changed something; kernels carry the number at which they last did. */
uint64_t mg_profile_version(const struct mg_profile *p);

struct mg_profile_process {
    uint32_t pid;
    int32_t rank; /* -1: none */
    const char *executable, *device_kind, *device_name;
    uint32_t running;    /* 1: it has not ended its recording */
    int32_t exit_status; /* -1: unknown */
};
struct mg_profile_kernel {
    const char *name, *demangled, *module;
    uint64_t launches, incomplete;
    uint64_t thread_instructions, warp_instructions, time_ns; /* sums over launches that were counted, or timed */
    uint64_t timed_launches;
    uint32_t blocks;  /* basic blocks */
    uint64_t changed; /* mg_profile_version at which its numbers last changed */
};
struct mg_profile_block {
    const char *function, *file; /* file NULL: not known */
    uint32_t line, ptx_line, instructions;
    uint64_t thread_entries, warp_entries;
};
struct mg_profile_launch {
    uint64_t id, replay; /* number in its process; of a graph's node: how many replays its sums are of, 0 else */
    const char *kernel;  /* the mangled name */
    uint64_t thread_instructions, warp_instructions;
    uint64_t start_ns, time_ns; /* CLOCK_MONOTONIC of the machine that ran it (start UINT64_MAX: not known) */
    uint64_t told_ns;           /* CLOCK_MONOTONIC when its end was recorded; 0: read from the database */
    uint64_t stream, context;
    uint32_t device, pid, instrumented, complete;
};
size_t mg_profile_processes(const struct mg_profile *p);
const struct mg_profile_process *mg_profile_process(const struct mg_profile *p, size_t i);
size_t mg_profile_kernels(const struct mg_profile *p);
const struct mg_profile_kernel *mg_profile_kernel(const struct mg_profile *p, size_t i);
const struct mg_profile_kernel *mg_profile_find_kernel(const struct mg_profile *p,
                                                       const char *name); /* mangled or demangled */
/* Blocks are numbered from 0 to the kernel's `blocks`; false (0): no such block. */
int mg_profile_block(const struct mg_profile *p, size_t kernel, uint32_t block, struct mg_profile_block *out);
size_t mg_profile_launches(const struct mg_profile *p);
int mg_profile_launch(const struct mg_profile *p, size_t i, struct mg_profile_launch *out);
/* All that `margay report --json` prints, tools' tables included; NULL: out of memory. The caller frees it. */
char *mg_profile_json(const struct mg_profile *p);

/* ---- launches as they end -------------------------------------------------------------------------------- */

/* tell is called inside mg_profile_wait, once for each launch of every process: first those that have ended already.
 * The node of a graph is told each time its sums grow. Returns 0; -1: out of memory. */
int mg_profile_subscribe(struct mg_profile *p, void (*tell)(void *user, const struct mg_profile_launch *launch),
                         void *user);
/* Tells what is new; sleeps until there is something. How many launches were told; 0 at the timeout (in ms; below 0:
 * none); -1 when all is told and every process has ended. */
int mg_profile_wait(struct mg_profile *p, int timeout_ms);

/* ---- from inside a program that Margay runs ------------------------------------------------------------------ */

/* GPU Ocelot's kernelProfile(): what has been counted so far of a kernel of this process, by any of its names. Launches
 * that have ended are in it once their end is committed, some 10 ms later. 0: found; -1: no such kernel, or this
 * process is not run by Margay. */
int mg_profile_of_kernel(const char *kernel, struct mg_profile_kernel *out);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
