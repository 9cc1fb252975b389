/* What a GPU's driver lets pass, and a capture has to: a kernel that reaches a little beyond its buffer, on either
 * side; a context that goes with its stream before the program ends. */
#include "adder.h"

D(cuCtxCreate_v2, cu_ctx *, unsigned, cu_device)
D(cuCtxDestroy_v2, cu_ctx)

int main(int argc, char **argv)
{
    unsigned host[N], sum = 0;
    cu_ctx own;
    cu_stream s;
    cu_ptr p;
    if (argc < 2) return 2;
    load(argv[1]);
    OK(cuCtxCreate_v2(&own, 0, 0));
    load_here(argv[1]);
    OK(cuStreamCreate(&s, 1));
    OK(cuMemAlloc_v2(&p, sizeof host));
    run_add(p, 1, s);
    run_add(p - 64, 1, s);
    run_add(p + 64, 1, s);
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(host, p, sizeof host));
    for (unsigned i = 0; i < N; i++) sum += host[i];
    printf("edges: %u %s\n", sum, sum == 3 * N - 32 ? "ok" : "WRONG");
    OK(cuCtxDestroy_v2(own));
    return 0;
}
