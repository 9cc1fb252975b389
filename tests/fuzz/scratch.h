/* A file or a folder of the target's own, in memory where that can be had, for parsers that read files: path, once
 * prepared. Both go when the target ends, with what lies in the folder. */
#ifndef MG_TESTS_SCRATCH_H
#define MG_TESTS_SCRATCH_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];

static void clean_up(void)
{
    DIR *d = opendir(path);
    char file[400];
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        unlink(file);
    }
    if (d) closedir(d);
    if (unlink(path)) rmdir(path);
}

static void choose_path(void)
{
    snprintf(path, sizeof path, "%s/margay-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    atexit(clean_up);
}

static inline void prepare_file(void)
{
    choose_path();
    int fd = mkstemp(path);
    if (fd < 0) abort();
    close(fd);
}

static inline void prepare_folder(void)
{
    choose_path();
    if (!mkdtemp(path)) abort();
}

#endif
