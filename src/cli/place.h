/* Where the installed parts are, and which devices answer here. For `run` and `doctor`. */
#ifndef MG_CLI_PLACE_H
#define MG_CLI_PLACE_H

#include "base/compiler.h"

struct mg_place {         /* paths relative to our own executable: ../lib/margay/... */
    char lib[4096];       /* .../lib/margay */
    char libcuda[4200];   /* .../driver/libcuda.so.1 */
    char libcudart[4200]; /* .../cudart/libcudart.so.13 */
    char forward[4200];   /* .../libmargay-forward.so */
    char mpi[4200];       /* .../libmargay-mpi.so */
    char audit[4200];     /* .../libmargay-audit.so */
    char cpu[4200];       /* .../libmargay-cpu.so */
};
/* False: our own executable cannot be found (no /proc). */
bool mg_place_find(struct mg_place *p);
bool mg_place_has(const char *path);
/* Does the file hold a property as driver/device.c reads them: number, name, result, value, tab-separated? */
bool mg_place_has_properties(const char *path);

struct mg_gpu {      /* NVIDIA's driver */
    bool answers;    /* driver opened, cuInit succeeded, at least one device */
    char path[4096]; /* of the driver that was tried last; "" none found */
    char name[256];  /* of device 0 */
    int n_devices, driver_version, rc;
};
/* Asks in a child process, so that nothing of the driver stays in ours. quick: where the kernel's device
 * nodes open, the driver is found but not initialised, and name, n_devices and driver_version stay empty. */
void mg_gpu_probe(const struct mg_place *p, bool quick, struct mg_gpu *out);

#endif
