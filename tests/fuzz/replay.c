/* Runs a fuzz target over files, without libFuzzer: the corpus is replayed by `make check`.
 *   replay TARGET FILE-OR-FOLDER... */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

#define X(name) int fuzz_##name(const uint8_t *data, size_t bytes);
TARGETS
#undef X
static const struct {
    const char *name;
    int (*run)(const uint8_t *data, size_t bytes);
} targets[] = {
#define X(name) {#name, fuzz_##name},
    TARGETS
#undef X
};
static int (*target)(const uint8_t *data, size_t bytes);

static int replay_file(const char *path, long bytes)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc((size_t)bytes + 1); /* exact size under a sanitizer matters more than speed */
    if (!f || !data || fread(data, 1, (size_t)bytes, f) != (size_t)bytes) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(3);
    }
    fclose(f);
    data = realloc(data, bytes ? (size_t)bytes : 1);
    target(data, (size_t)bytes);
    free(data);
    return 1;
}

static int replay(const char *path)
{
    struct stat st;
    int n = 0;
    if (stat(path, &st)) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(3);
    }
    if (!S_ISDIR(st.st_mode)) return replay_file(path, (long)st.st_size);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char child[4096];
        if (e->d_name[0] == '.') continue;
        snprintf(child, sizeof child, "%s/%s", path, e->d_name);
        n += replay(child);
    }
    if (d) closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (size_t i = 0; argc > 1 && i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(argv[1], targets[i].name)) target = targets[i].run;
    if (!target) {
        fprintf(stderr, "no such target: %s\n", argc > 1 ? argv[1] : "");
        return 3;
    }
    for (int i = 2; i < argc; i++) n += replay(argv[i]);
    printf("%d inputs\n", n);
    return n ? 0 : 3;
}
