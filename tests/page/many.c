/* many FILE.ptx: launches every kernel of the file, each (int n, const int *in, int *out), the k-th 1 + k % 3 times. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
int cuMemAlloc_v2(uint64_t *, size_t), cuMemsetD8_v2(uint64_t, unsigned char, size_t), cuCtxSynchronize(void);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

enum { THREADS = 64, CTAS = 2 };
static void try(int rc, const char *what)
{
    if (rc) fprintf(stderr, "%s: %d\n", what, rc), exit(1);
}

int main(int argc, char **argv)
{
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    enum { MOST = 16 << 20 };
    char *text = calloc(MOST, 1),
         name[2000]; /* on the heap: PTX in the program's own data would be as old as the program */
    void *context, *module, *function;
    uint64_t in, out;
    int device, n = THREADS * CTAS;
    unsigned k = 0;
    if (!f || !text || !fread(text, 1, MOST - 1, f)) return 2;
    fclose(f);
    try(cuInit(0), "cuInit");
    try(cuDeviceGet(&device, 0), "cuDeviceGet");
    try(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    try(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    try(cuModuleLoadData(&module, text), "cuModuleLoadData");
    try(cuMemAlloc_v2(&in, 4 * THREADS * CTAS), "cuMemAlloc");
    try(cuMemAlloc_v2(&out, 4 * THREADS * CTAS), "cuMemAlloc");
    try(cuMemsetD8_v2(in, 3, 4 * THREADS * CTAS), "cuMemsetD8");
    for (const char *at = text; (at = strstr(at, ".visible .entry ")); at++, k++) {
        void *args[] = {&n, &in, &out};
        if (sscanf(at, ".visible .entry %1999[^(]", name) != 1) return 3;
        try(cuModuleGetFunction(&function, module, name), name);
        for (unsigned i = 0; i <= k % 3; i++)
            try(cuLaunchKernel(function, CTAS, 1, 1, THREADS, 1, 1, 0, NULL, args, NULL), name);
    }
    try(cuCtxSynchronize(), "cuCtxSynchronize");
    printf("%u kernels\n", k);
    return 0;
}
