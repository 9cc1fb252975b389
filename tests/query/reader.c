/* Reads all that libmargay-profile gives of a profile, subscribes to it, and closes it. usage: reader DIR: prints "read
 * N kernels, N launches, N told; N bytes of
 * names", or "refused: WHY"; a name that is no text, or a number beyond its bound, ends it. */
#include <margay/profile.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long long told;
static void tell(void *user, const struct mg_profile_launch *l)
{
    (void)user;
    told += strlen(l->kernel) < 100000;
}

int main(int argc, char **argv)
{
    char error[300] = "";
    struct mg_profile *p = argc > 1 ? mg_profile_open(argv[1], error, sizeof error) : NULL;
    if (!p) return printf("refused: %s\n", error), !*error;
    size_t sum = 0;
    for (size_t i = 0; i < mg_profile_processes(p); i++) sum += strlen(mg_profile_process(p, i)->executable);
    for (size_t i = 0; i < mg_profile_kernels(p); i++) {
        const struct mg_profile_kernel *k = mg_profile_kernel(p, i);
        struct mg_profile_block b;
        sum += strlen(k->name) + strlen(k->demangled) + strlen(k->module);
        for (uint32_t n = 0; n <= k->blocks; n++)
            if (mg_profile_block(p, i, n, &b)) sum += strlen(b.function) + (b.file ? strlen(b.file) : 0);
        if (mg_profile_find_kernel(p, k->name) == NULL) return printf("%s is not found\n", k->name), 1;
    }
    struct mg_profile_launch l;
    for (size_t i = 0; mg_profile_launch(p, i, &l); i++) sum += strlen(l.kernel);
    char *json = mg_profile_json(p);
    if (!json || *json != '{') return puts("no JSON"), 1;
    free(json);
    mg_profile_subscribe(p, tell, NULL);
    while (mg_profile_wait(p, 300) > 0) {
    }
    mg_profile_refresh(p, error, sizeof error);
    printf("read %zu kernels, %zu launches, %llu told; %zu bytes of names\n", mg_profile_kernels(p),
           mg_profile_launches(p), told, sum);
    mg_profile_close(p);
    return 0;
}
