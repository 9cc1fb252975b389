/* A driver-API program whose kernel was assembled by ptxas as a process of its own, as XLA does it.
 * usage: assembled run IN.ptx OUT.cubin     runs `ptxas` from PATH first
 *        assembled load OUT.cubin           loads what an earlier run, or Triton, left
 * The machine code is handed over as bytes; 200 of 256 threads store their number. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(uint64_t *, size_t);
int cuMemcpyDtoH_v2(void *, uint64_t, size_t);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

static int assemble(const char *in, const char *out)
{
    int status = -1;
    pid_t pid = fork();
    if (!pid) {
        execlp("ptxas", "ptxas", in, "-o", out, "-arch=sm_90", "--warn-on-spills", (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
    static char code[1 << 20];
    static uint32_t got[256];
    uint64_t d;
    uint32_t n = 200, bad = 0;
    void *ctx, *module, *f, *args[] = {&d, &n};
    int dev, rc;
    if (argc == 4 && (rc = assemble(argv[2], argv[3]))) return printf("ptxas: %d\n", rc), 3;
    FILE *file = argc > 2 ? fopen(argv[argc - 1], "rb") : NULL;
    if (!file || !fread(code, 1, sizeof code, file)) return 2;
    fclose(file);
    if (cuInit(0) || cuDeviceGet(&dev, 0) || cuDevicePrimaryCtxRetain(&ctx, dev) || cuCtxSetCurrent(ctx)) return 2;
    if ((rc = cuModuleLoadData(&module, code))) return printf("load: %d\n", rc), 3;
    if (cuModuleGetFunction(&f, module, "fill") || cuMemAlloc_v2(&d, sizeof got) ||
        cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, args, NULL) || cuMemcpyDtoH_v2(got, d, sizeof got))
        return 2;
    for (uint32_t i = 0; i < 256; i++) bad += got[i] != (i < n ? i : 0);
    puts(bad ? "wrong" : "ok");
    return bad ? 1 : 0;
}
