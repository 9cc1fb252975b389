/* Stands where a program might find another libcuda.so.1: whoever reaches it fails loudly. */
#include <stdio.h>
#define F(name)                                                                                                        \
    int name(void);                                                                                                    \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        fprintf(stderr, "decoy: %s was called\n", #name);                                                              \
        return 999;                                                                                                    \
    }
F(cuInit)
F(cuDeviceGet)
F(cuDevicePrimaryCtxRetain)
F(cuCtxSetCurrent) F(cuModuleLoadData) F(cuModuleGetFunction) F(cuMemAlloc_v2) F(cuMemcpyDtoH_v2) F(cuLaunchKernel)
    F(cuGetProcAddress) F(cuGetProcAddress_v2)
