/* A file of the target's own, in memory where that can be had, for parsers that read files: path, once prepared. */
#ifndef MG_TESTS_SCRATCH_H
#define MG_TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];

static void clean_up(void)
{
    unlink(path);
}

static void prepare(void)
{
    snprintf(path, sizeof path, "%s",
             access("/dev/shm", W_OK) ? "/tmp/margay-fuzz-XXXXXX" : "/dev/shm/margay-fuzz-XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0) abort();
    close(fd);
    atexit(clean_up);
}

#endif
