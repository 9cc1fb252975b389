/* Lists of directories, opened as one run. */
#include "cli/study_runs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *mg_study_next_dir(const char **at, const char *list)
{
    if (!**at) return NULL;
    size_t n = *at == list && !access(list, F_OK) ? strlen(list) : strcspn(*at, ",");
    char *dir = mg_xmalloc(n + 1);
    memcpy(dir, *at, n);
    dir[n] = 0;
    *at += n + ((*at)[n] == ',');
    return dir;
}

bool mg_study_same_dir(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

struct opening {
    const struct mg_subset_program *with;
    bool any_geometry;
    struct mg_subset_program *first;
    struct mg_subset_trials trials;
    uint32_t most;
};

static enum mg_err add_run(struct opening *o, const char *dir, struct mg_diag *d)
{
    struct mg_subset_program *p;
    enum mg_err err = mg_subset_program_open(dir, &p, d);
    if (err) return err;
    if (o->with) err = mg_subset_program_pair(o->with, p, o->any_geometry, d);
    if (!err && o->first) err = mg_subset_program_pair(o->first, p, false, d);
    if (!err && !o->first) err = mg_subset_trials_init(&o->trials, p, o->most, d);
    if (!err) mg_subset_trials_add(&o->trials, p);
    if (!err && o->first) o->first->native_times = o->first->native_times && p->native_times;
    if (!err && !o->first)
        o->first = p;
    else
        mg_subset_program_free(p);
    return err;
}

enum mg_err mg_study_open(const char *list, const struct mg_subset_program *with, bool any_geometry, bool least,
                          struct mg_subset_program **out, struct mg_diag *d)
{
    struct opening o = {.with = with, .any_geometry = any_geometry, .most = 1};
    enum mg_err err = MG_ERR_OK;
    char *dir;
    for (const char *x = list; *x; x++) o.most += *x == ',';
    for (const char *at = list; !err && (dir = mg_study_next_dir(&at, list));) {
        err = add_run(&o, dir, d);
        free(dir);
    }
    if (!err && !o.first) err = mg_diag_err(d, MG_ERR_INPUT, "an empty name of a directory");
    if (!err && o.trials.n > 1) {
        mg_subset_trials_end(&o.trials, least, o.first);
        o.first->dir = mg_arena_printf(&o.first->arena, "%s", list);
    }
    free(o.trials.times);
    if (err)
        mg_subset_program_free(o.first);
    else
        *out = o.first;
    return err;
}
