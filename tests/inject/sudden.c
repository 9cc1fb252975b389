/* Launches, waits for them, and dies at once: usage: sudden LAUNCHES MICROSECONDS segv|kill */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxSynchronize(void), cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";

int main(int argc, char **argv)
{
    int device;
    void *ctx, *module, *kernel;
    if (argc != 4 || cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&ctx, device) ||
        cuCtxSetCurrent(ctx) || cuModuleLoadData(&module, text) || cuModuleGetFunction(&kernel, module, "k"))
        return 1;
    for (int i = 0; i < atoi(argv[1]); i++)
        if (cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL)) return 1;
    cuLaunchKernel(kernel, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL); /* refused: no launch */
    if (cuCtxSynchronize()) return 1;
    usleep((unsigned)atoi(argv[2]));
    if (!strcmp(argv[3], "kill"))
        syscall(SYS_kill, getpid(), SIGKILL); /* as from outside: kill() itself writes first */
    signal(SIGSEGV, SIG_DFL);
    *(volatile int *)(uintptr_t)argc = 1;
    return 0;
}
