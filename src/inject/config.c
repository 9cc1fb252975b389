/* The configuration travels from `margay run` into every process of the run as MARGAY_* variables.
 * One row of FIELDS a variable; reading is forgiving (a number that is none reads as 0), since a
 * program may be started with a stale environment. A program that clears its environment before it
 * uses CUDA keeps the configuration that it was started with. */
#include "inject/config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/io.h"

/*  kind  field            variable */
#define FIELDS(ROW)                                                                                                    \
    ROW(text, dir, DIR)                                                                                                \
    ROW(text, device, DEVICE)                                                                                          \
    ROW(text, properties, AS)                                                                                          \
    ROW(text, tools, TOOLS)                                                                                            \
    ROW(text, kernel_glob, KERNEL)                                                                                     \
    ROW(text, launches, LAUNCHES)                                                                                      \
    ROW(text, real, REAL)                                                                                              \
    ROW(text, dump, DUMP)                                                                                              \
    ROW(text, range, RANGE)                                                                                            \
    ROW(text, channel, CHANNEL)                                                                                        \
    ROW(u64, time_limit_ns, TIME_LIMIT_NS)                                                                             \
    ROW(u32, workers, WORKERS)                                                                                         \
    ROW(u32, devices, DEVICES)                                                                                         \
    ROW(u32, repeat, REPEAT)                                                                                           \
    ROW(u32, scheduler, SCHEDULER)                                                                                     \
    ROW(flag, strict, STRICT)                                                                                          \
    ROW(flag, eager, EAGER)                                                                                            \
    ROW(flag, verify, VERIFY)                                                                                          \
    ROW(flag, check, CHECK)                                                                                            \
    ROW(flag, stats, STATS)                                                                                            \
    ROW(flag, quiet, QUIET)                                                                                            \
    ROW(flag, verbose, VERBOSE)                                                                                        \
    ROW(flag, native_times, NATIVE_TIMES)                                                                              \
    ROW(flag, witness, WITNESS)                                                                                        \
    ROW(flag, stress, STRESS)                                                                                          \
    ROW(flag, plant, PLANT)                                                                                            \
    ROW(flag, no_contract, NO_CONTRACT)                                                                                \
    ROW(flag, overcommit, OVERCOMMIT)                                                                                  \
    ROW(u64, run, RUN)

static void read_text(char **to, const char *v)
{
    *to = v && *v ? strdup(v) : NULL;
}
static void read_u64(uint64_t *to, const char *v)
{
    *to = v ? strtoull(v, NULL, 10) : 0;
}
static void read_u32(uint32_t *to, const char *v)
{
    *to = v ? (uint32_t)strtoul(v, NULL, 10) : 0;
}
static void read_flag(bool *to, const char *v)
{
    *to = v && *v && strcmp(v, "0") != 0;
}

/* The environment that the process was started with: a program may have cleared its own since. */
static const char *find_initial(const char *name)
{
    static char *block;
    static size_t bytes;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    size_t n = strlen(name);
    pthread_mutex_lock(&lock);
    if (!block && mg_io_read("/proc/self/environ", &block, &bytes, NULL)) block = NULL;
    pthread_mutex_unlock(&lock);
    for (const char *at = block; at && at < block + bytes; at += strlen(at) + 1)
        if (!strncmp(at, name, n) && at[n] == '=') return at + n + 1;
    return NULL;
}

const char *mg_config_env(const char *name)
{
    return mg_env(MG_ENV_DIR)                      ? getenv(name)
           : find_initial(mg_env_name(MG_ENV_DIR)) ? find_initial(name)
                                                   : getenv(name);
}

void mg_config_from_env(struct mg_config *c)
{
#define ROW(kind, field, id) read_##kind(&c->field, mg_config_env(mg_env_name(MG_ENV_##id)));
    FIELDS(ROW)
#undef ROW
}

static void write_text(const char *name, char *v)
{
    if (v)
        setenv(name, v, 1);
    else
        unsetenv(name);
}
static void write_u64(const char *name, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    write_text(name, v ? text : NULL);
}
static void write_u32(const char *name, uint32_t v)
{
    write_u64(name, v);
}
static void write_flag(const char *name, bool v)
{
    write_text(name, v ? (char[]){"1"} : NULL);
}

void mg_config_to_env(const struct mg_config *c)
{
#define ROW(kind, field, id) write_##kind(mg_env_name(MG_ENV_##id), c->field);
    FIELDS(ROW)
#undef ROW
}

static void release_text(char **v)
{
    free(*v), *v = NULL;
}
static void release_u64(uint64_t *v)
{
    (void)v;
}
static void release_u32(uint32_t *v)
{
    (void)v;
}
static void release_flag(bool *v)
{
    (void)v;
}

void mg_config_release(struct mg_config *c)
{
#define ROW(kind, field, id) release_##kind(&c->field);
    FIELDS(ROW)
#undef ROW
}
