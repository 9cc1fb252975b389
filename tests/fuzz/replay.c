/* Runs a fuzz target over files, without libFuzzer: the corpus is replayed by `make check`.
 *   replay-<target> FILE-OR-FOLDER... */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fuzz.h"

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
    LLVMFuzzerTestOneInput(data, (size_t)bytes);
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
    for (int i = 1; i < argc; i++) n += replay(argv[i]);
    printf("%d inputs\n", n);
    return n ? 0 : 3;
}
