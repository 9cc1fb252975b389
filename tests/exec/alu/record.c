/* Runs the kernels of make_ptx.py on a GPU and writes what they give: DIR/raw, all results of all
 * forms (two 8-byte slots a tuple), and stdout, one line a form for tests/exec/alu/h200.txt:
 *   form | result types | operand types | hash of all results | first results in hex
 * usage: record DIR > h200.txt        build: cc -O2 record.c -ldl */
#include "inputs.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
static int check(int r, const char *what)
{
    if (r) {
        fprintf(stderr, "%s: error %d\n", what, r);
        exit(1);
    }
    return r;
}
#define FN(name, ...) static CUresult (*name)(__VA_ARGS__)
FN(cuInit, unsigned);
FN(cuDeviceGet, int *, int);
FN(cuCtxCreate, void **, void *, unsigned, int);
FN(cuMemAlloc, uint64_t *, size_t);
FN(cuMemcpyHtoD, uint64_t, const void *, size_t);
FN(cuMemcpyDtoH, void *, uint64_t, size_t);
FN(cuModuleLoad, void **, const char *);
FN(cuModuleGetFunction, void **, void *, const char *);
FN(cuLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
   void **);
FN(cuCtxSynchronize, void);
FN(cuMemsetD8, uint64_t, unsigned char, size_t);

static unsigned type_bits(const char *t)
{
    size_t n = strlen(t);
    if (!strcmp(t, "pred") || !strcmp(t, "cin")) return 1;
    if (n > 2 && !strcmp(t + n - 2, "x2")) return 32;
    while (*t && (*t < '0' || *t > '9')) t++;
    unsigned b = (unsigned)atoi(t);
    return b < 8 ? 8 : b;
}
static enum alu_kind type_kind(const char *t)
{
    return !strncmp(t, "bf", 2)    ? IN_BF16
           : !strncmp(t, "f16", 3) ? IN_F16
           : !strcmp(t, "f32")     ? IN_F32
           : !strcmp(t, "f64")     ? IN_F64
                                   : IN_INT;
}

int main(int argc, char **argv)
{
    char path[600], line[1000];
    if (argc < 2) return 2;
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) return fprintf(stderr, "%s\n", dlerror()), 1;
#define LOAD(name, sym) *(void **)&name = dlsym(lib, sym)
    LOAD(cuInit, "cuInit"), LOAD(cuDeviceGet, "cuDeviceGet"), LOAD(cuCtxCreate, "cuCtxCreate_v4"),
        LOAD(cuMemAlloc, "cuMemAlloc_v2");
    LOAD(cuMemcpyHtoD, "cuMemcpyHtoD_v2"), LOAD(cuMemcpyDtoH, "cuMemcpyDtoH_v2"), LOAD(cuModuleLoad, "cuModuleLoad");
    LOAD(cuModuleGetFunction, "cuModuleGetFunction"), LOAD(cuLaunchKernel, "cuLaunchKernel"),
        LOAD(cuCtxSynchronize, "cuCtxSynchronize");
    LOAD(cuMemsetD8, "cuMemsetD8_v2");
    int dev;
    void *ctx, *module = NULL, *fn;
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&dev, 0), "cuDeviceGet");
    if (cuCtxCreate)
        check(cuCtxCreate(&ctx, NULL, 0, dev), "cuCtxCreate");
    else {
        CUresult (*create)(void **, unsigned, int);
        *(void **)&create = dlsym(lib, "cuCtxCreate_v2");
        check(create(&ctx, 0, dev), "cuCtxCreate_v2");
    }
    static uint64_t in[ALU_TUPLES][4], out[ALU_TUPLES][2];
    uint64_t din, dout;
    check(cuMemAlloc(&din, sizeof in), "cuMemAlloc");
    check(cuMemAlloc(&dout, sizeof out), "cuMemAlloc");
    snprintf(path, sizeof path, "%s/raw", argv[1]);
    FILE *raw = fopen(path, "wb");
    snprintf(path, sizeof path, "%s/manifest", argv[1]);
    FILE *manifest = fopen(path, "r");
    char loaded[200] = "";
    while (fgets(line, sizeof line, manifest)) {
        char cubin[100], kernel[100], results[200], operands[200], form[300], types[4][20] = {{0}};
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%99s %99s %199s %199s %299[^\n]", cubin, kernel, results, operands, form) != 5) return 3;
        if (strcmp(loaded, cubin)) {
            snprintf(path, sizeof path, "%s/%s", argv[1], cubin);
            check(cuModuleLoad(&module, path), path);
            strcpy(loaded, cubin);
        }
        int n = sscanf(operands, "%19[^,],%19[^,],%19[^,],%19[^,]", types[0], types[1], types[2], types[3]);
        for (unsigned t = 0; t < ALU_TUPLES; t++)
            for (int k = 0; k < 4; k++) {
                int slot = k < n && !strcmp(types[k], "cin") ? 3 : k;
                if (k < n) in[t][slot] = alu_input(type_kind(types[k]), type_bits(types[k]), t, (unsigned)slot);
            }
        check(cuMemcpyHtoD(din, in, sizeof in), "copy");
        check(cuMemsetD8(dout, 0, sizeof out), "memset");
        check(cuModuleGetFunction(&fn, module, kernel), kernel);
        void *args[] = {&din, &dout};
        check(cuLaunchKernel(fn, ALU_TUPLES / 64, 1, 1, 64, 1, 1, 0, NULL, args, NULL), "launch");
        check(cuCtxSynchronize(), form);
        check(cuMemcpyDtoH(out, dout, sizeof out), "copy");
        unsigned rbits = type_bits(results);
        uint64_t h = 0, cut = rbits < 64 ? (1ull << rbits) - 1 : ~0ull;
        if (strchr(results, ',')) {
            char first[200];
            strcpy(first, results);
            *strchr(first, ',') = 0;
            rbits = type_bits(first);
            cut = rbits < 64 ? (1ull << rbits) - 1 : ~0ull;
        }
        for (unsigned t = 0; t < ALU_TUPLES; t++) {
            out[t][0] &= cut;
            if (!strchr(results, ',')) out[t][1] = 0;
            h = alu_hash(alu_hash(h, out[t][0]), out[t][1]);
        }
        fwrite(out, sizeof out, 1, raw);
        printf("%s | %s | %s | %016llx |", form, results, operands, (unsigned long long)h);
        for (unsigned t = 0; t < ALU_SHOWN; t++) {
            printf(" %llx", (unsigned long long)out[t][0]);
            if (strchr(results, ',')) printf(":%llx", (unsigned long long)out[t][1]);
        }
        putchar('\n');
    }
    return fclose(raw);
}
