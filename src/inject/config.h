/* What `margay run` tells the library inside the application, through the environment: one
 * variable a field, named MARGAY_<FIELD>. Also read by libcudart's stand-in and by `margay doctor`. */
#ifndef MG_INJECT_CONFIG_H
#define MG_INJECT_CONFIG_H

#include "base/diag.h"

struct mg_config {     /* strings: owner is the config; NULL when not given */
    char *dir;         /* MARGAY_DIR: absolute path of the profile directory */
    char *device;      /* MARGAY_DEVICE: nvidia cpu emu (auto is resolved by the launcher) */
    char *properties;  /* MARGAY_AS */
    char *tools;       /* MARGAY_TOOLS: as -t, several joined by ';' */
    char *kernel_glob; /* MARGAY_KERNEL */
    char *launches;    /* MARGAY_LAUNCHES */
    char *real;        /* MARGAY_REAL: path of the real driver */
    char *dump;        /* MARGAY_DUMP: pass to dump */
    char *range;       /* MARGAY_RANGE: as --range */
    char *channel;     /* MARGAY_CHANNEL: block, drop or 1/N: what writers of records do that find no room, or only each
                          N-th */
    uint64_t time_limit_ns; /* MARGAY_TIME_LIMIT_NS */
    uint32_t workers;       /* MARGAY_WORKERS */
    uint32_t devices;       /* MARGAY_DEVICES: how many software devices the program finds; 0: one */
    uint32_t repeat;        /* MARGAY_REPEAT: with --verify, so many more runs of either code */
    uint32_t scheduler;     /* MARGAY_SCHEDULER: process of the margay sched behind whose gate the program begins */
    bool strict, eager, verify, check, stats, quiet, verbose, native_times, witness;
    bool overcommit;  /* MARGAY_OVERCOMMIT: allocations may be larger than the machine's memory and swap */
    bool no_contract; /* MARGAY_NO_CONTRACT: the software devices do not contract mul and add */
    bool stress;      /* MARGAY_STRESS: rewrite every twin thoroughly (pass/stress.h), for tests */
    bool plant;       /* MARGAY_PLANT: every twin writes one wrong byte (insert/plant.h), for tests */
    uint64_t run;     /* MARGAY_RUN: number of the run, unique in DIR: which processes belong together */
};
/* A variable of the configuration: from the environment, or, when the program has cleared that, from
 * the one it was started with. NULL: neither has it. */
const char *mg_config_env(const char *name);
void mg_config_from_env(struct mg_config *c);
void mg_config_to_env(const struct mg_config *c); /* setenv, for the launcher before exec */
void mg_config_release(struct mg_config *c);

#endif
