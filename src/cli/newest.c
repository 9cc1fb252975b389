#include "cli/newest.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"

static bool is_database(const char *name)
{
    return !strcmp(name, "profile.db") || !fnmatch("profile-*.db", name, 0) || !fnmatch("run-*.db", name, 0);
}

/* When a database in the directory was written last; false: it holds none. */
static bool find_time(const char *dir, struct timespec *last)
{
    DIR *d = opendir(dir);
    bool found = false;
    for (const struct dirent *e; d && (e = readdir(d));) {
        char path[PATH_MAX];
        struct stat st;
        if (!is_database(e->d_name) || snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= (int)sizeof path ||
            stat(path, &st))
            continue;
        bool later = !found || st.st_mtim.tv_sec > last->tv_sec ||
                     (st.st_mtim.tv_sec == last->tv_sec && st.st_mtim.tv_nsec > last->tv_nsec);
        if (later) *last = st.st_mtim;
        found = true;
    }
    if (d) closedir(d);
    return found;
}

bool mg_is_profile(const char *dir)
{
    struct timespec unused;
    return find_time(dir, &unused);
}

struct candidate {
    char name[NAME_MAX + 1];
    struct timespec time;
};

static int by_time(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->time.tv_sec != y->time.tv_sec) return x->time.tv_sec > y->time.tv_sec ? -1 : 1;
    if (x->time.tv_nsec != y->time.tv_nsec) return x->time.tv_nsec > y->time.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool find_newest(uint32_t skip, char dir[PATH_MAX])
{
    MG_VEC(struct candidate) list = {0};
    DIR *d = opendir(".");
    for (const struct dirent *e; d && (e = readdir(d));) {
        struct candidate c;
        if (!strcmp(e->d_name, "..") || !find_time(e->d_name, &c.time)) continue;
        snprintf(c.name, sizeof c.name, "%s", e->d_name);
        *mg_vec_push(&list) = c;
    }
    if (d) closedir(d);
    if (list.n) qsort(list.at, list.n, sizeof *list.at, by_time);
    bool found = skip < list.n;
    if (found) snprintf(dir, PATH_MAX, "%s", list.at[skip].name);
    mg_vec_release(&list);
    return found;
}

bool mg_newest_profile(uint32_t skip, char dir[PATH_MAX])
{
    bool found = find_newest(skip, dir);
    if (found) fprintf(stderr, "margay: profile %s\n", dir);
    return found;
}

bool mg_means_newest(const char *dir)
{
    char unused[PATH_MAX];
    return !strcmp(dir, ".") && !mg_is_profile(dir) && find_newest(0, unused);
}
