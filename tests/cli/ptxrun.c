/* A driver-API program for tests of the command line: does its arguments in order.
 *   load=FILE.ptx            KERNEL:GX,GY,GZ:BX,BY,BZ:N   launches it with (buffer, N) and waits; says the error
 *   closefrom                closes every descriptor from 3 on, opens /dev/null at 3 to 20 and 512 to 530
 *   daemon=MS                goes into the background; the rest happens there, after so many milliseconds
 *   locale                   takes the locale of its environment
 *   sleep=MS  print=TEXT  sum (of the first 1024 words of the buffer)  sync=0 launches without waiting
 *   times=N                  launches each kernel that follows so often
 *   mib=N                    in front of all: so large is the buffer, 1 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define F(name, args) static int(*name) args;
#define LIST                                                                                                           \
    F(cuInit, (unsigned))                                                                                              \
    F(cuDeviceGet, (int *, int))                                                                                       \
    F(cuDevicePrimaryCtxRetain, (void **, int))                                                                        \
    F(cuCtxSetCurrent, (void *))                                                                                       \
    F(cuModuleLoad, (void **, const char *))                                                                           \
    F(cuCtxSynchronize, (void))                                                                                        \
    F(cuModuleGetFunction, (void **, void *, const char *))                                                            \
    F(cuMemAlloc_v2, (uint64_t *, size_t))                                                                             \
    F(cuMemsetD8_v2, (uint64_t, unsigned char, size_t))                                                                \
    F(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                                                     \
    F(cuLaunchKernel,                                                                                                  \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))
LIST
#undef F

    static void *module,
    *lib;
static uint64_t buffer;
static int sync_each = 1, times = 1, mib = 1;

static int begin(void)
{
    void *ctx;
    int device;
    if (lib) return 0;
    if (!(lib = dlopen("libcuda.so.1", RTLD_NOW))) return fprintf(stderr, "ptxrun: %s\n", dlerror()), 1;
#define F(name, args)                                                                                                  \
    if (!(name = (int(*) args)dlsym(lib, #name))) return 1;
    LIST
#undef F
        return cuInit(0) ||
        cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&ctx, device) || cuCtxSetCurrent(ctx) ||
        cuMemAlloc_v2(&buffer, (size_t)mib << 20) || cuMemsetD8_v2(buffer, 0, 1 << 20);
}

static int launch(char *what)
{
    unsigned g[3] = {1, 1, 1}, b[3] = {1, 1, 1}, n = 0;
    char *at = strchr(what, ':');
    void *f, *params[] = {&buffer, &n};
    sscanf(at, ":%u,%u,%u:%u,%u,%u:%u", &g[0], &g[1], &g[2], &b[0], &b[1], &b[2], &n);
    *at = 0;
    int rc = cuModuleGetFunction(&f, module, what);
    for (int i = 0; i < times && !rc; i++)
        rc = cuLaunchKernel(f, g[0], g[1], g[2], b[0], b[1], b[2], 0, NULL, params, NULL);
    if (!rc && sync_each) rc = cuCtxSynchronize();
    if (rc) printf("%s: error %d\n", what, rc);
    return rc;
}

static void close_all(void)
{
    closefrom(3);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 4; fd <= 530; fd = fd == 20 ? 512 : fd + 1) dup2(null, fd);
}

static int sum(void)
{
    static uint32_t words[1024];
    uint64_t s = 0;
    int rc = cuMemcpyDtoH_v2(words, buffer, sizeof words);
    for (int i = 0; i < 1024; i++) s += words[i];
    printf("sum %llu\n", (unsigned long long)s);
    return rc;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        char *a = argv[i];
        if (!strncmp(a, "print=", 6)) {
            puts(a + 6);
        } else if (!strncmp(a, "sleep=", 6)) {
            usleep((unsigned)atoi(a + 6) * 1000);
        } else if (!strncmp(a, "daemon=", 7)) {
            fflush(NULL);
            if (daemon(1, 0)) return 1;
            usleep((unsigned)atoi(a + 7) * 1000);
        } else if (!strcmp(a, "locale")) {
            printf("locale %s\n", setlocale(LC_ALL, "") ? localeconv()->decimal_point : "none");
        } else if (!strcmp(a, "closefrom")) {
            close_all();
        } else if (!strncmp(a, "times=", 6)) {
            times = atoi(a + 6);
        } else if (!strncmp(a, "mib=", 4)) {
            mib = atoi(a + 4);
        } else if (!strcmp(a, "sync=0")) {
            sync_each = 0;
        } else if (begin()) {
            return fprintf(stderr, "ptxrun: no device\n"), 1;
        } else if (!strncmp(a, "load=", 5)) {
            if (cuModuleLoad(&module, a + 5)) return fprintf(stderr, "ptxrun: %s does not load\n", a + 5), 1;
        } else if (!strcmp(a, "sum")) {
            failed |= sum() != 0;
        } else {
            failed |= launch(a) != 0;
        }
    }
    return failed ? 3 : 0;
}
