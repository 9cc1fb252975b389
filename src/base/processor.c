#include "base/processor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A file of /proc is read in one call. */
static bool read_text(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, room - 1) : -1;
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

void mg_processor_add(uint32_t pid, struct mg_processor *sum)
{
    char path[300], text[100];
    snprintf(path, sizeof path, "/proc/%u/task", pid);
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        unsigned long long got, waited;
        snprintf(path, sizeof path, "/proc/%u/task/%.32s/schedstat", pid, e->d_name);
        if (*e->d_name == '.' || !read_text(path, text, sizeof text) || sscanf(text, "%llu %llu", &got, &waited) != 2)
            continue;
        sum->got_ns += got;
        sum->waited_ns += waited;
    }
    if (d) closedir(d);
}

double mg_processor_part(const struct mg_processor *from, const struct mg_processor *to)
{
    double got = to->got_ns > from->got_ns ? (double)(to->got_ns - from->got_ns) : 0;
    double waited = to->waited_ns > from->waited_ns ? (double)(to->waited_ns - from->waited_ns) : 0;
    if (got + waited <= 0) return 1;
    return waited > 63 * got ? 1.0 / 64 : got / (got + waited);
}

/* What its stat says behind the program's name, which may be anything: "S 1 ..."; NULL: nothing. */
static const char *read_stat(uint32_t pid, char text[static 512])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    const char *end = read_text(path, text, 512) ? strrchr(text, ')') : NULL;
    return end && end[1] ? end + 2 : NULL;
}

bool mg_process_is_stopped(uint32_t pid)
{
    char text[512];
    const char *stat = read_stat(pid, text);
    return stat && (*stat == 'T' || *stat == 't');
}

/* A first thread that has ended is a zombie while others run. */
static bool has_other_threads(uint32_t pid)
{
    char path[64];
    uint32_t n = 0;
    snprintf(path, sizeof path, "/proc/%u/task", pid);
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) n += *e->d_name != '.';
    if (d) closedir(d);
    return n > 1;
}

bool mg_process_is_alive(uint32_t pid)
{
    char text[512];
    const char *stat = read_stat(pid, text);
    if (!stat) return !(kill((pid_t)pid, 0) && errno == ESRCH); /* it may be hidden */
    return *stat == 'Z' ? has_other_threads(pid) : *stat != 'X';
}

uint32_t mg_process_parent(uint32_t pid)
{
    char text[512];
    unsigned parent = 0;
    const char *stat = read_stat(pid, text);
    return stat && sscanf(stat, "%*c %u", &parent) == 1 ? parent : 0;
}
